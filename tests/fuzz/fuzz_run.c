/* Bytes as a small plan, not necessarily a legal one, of one to four ranks: kernels,
 * collectives, groups, copies, events, host syncs and delays, buffers. The checker takes
 * it or says why not; what the engine may be given (exec/run.h) it runs in a few ways.
 * Each ends in a result, an error or a deadlock report, all in the same; every picosecond
 * of a result is explained. A plan that the checker accepts in full has no mismatch. */
#include <string.h>

#include "analysis/report.h"
#include "exec/run.h"
#include "fuzz.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"

#define MAX_RANKS 4
#define MAX_OPS   12

/* ---- bytes ---- */

typedef struct {
  const uint8_t *data;
  size_t left;
} Bytes;

/* 0 after the last. */
static uint32_t
take (Bytes *b, uint32_t below)
{
  if (b->left == 0)
    return 0;
  b->left--;
  return *b->data++ % below;
}

static const uint64_t sizes[]
    = { 1 << 20, 0, 1, 4096, 1 << 26, UINT64_C (1) << 33, UINT64_C (1) << 50, UINT64_MAX };
static const LsTime durations[]
    = { LS_US, 0, 1, 10 * LS_US, LS_MS, LS_S, 86400 * LS_S, LS_TIME_NEVER - 1, LS_TIME_NEVER, -1 };

static uint64_t
take_size (Bytes *b)
{
  return sizes[take (b, G_N_ELEMENTS (sizes))];
}

static LsTime
take_duration (Bytes *b)
{
  return durations[take (b, G_N_ELEMENTS (durations))];
}

/* ---- ops ---- */

static void
take_deps (Bytes *b, LsArena *arena, LsOp *op, uint32_t index)
{
  LsDep *deps = ls_arena_new_array (arena, LsDep, 2);
  op->n_deps = (uint16_t) take (b, 3);
  for (uint32_t i = 0; i < op->n_deps; i++) {
    deps[i].kind = (uint16_t) take (b, LS_DEP_STREAM + 1);
    deps[i].index = (uint16_t) take (b, deps[i].kind == LS_DEP_STREAM ? LS_N_STREAMS : index + 1);
  }
  op->deps = deps;
}

static void
take_transfers (Bytes *b, LsArena *arena, LsOp *op)
{
  LsTransfer *t = ls_arena_new_array (arena, LsTransfer, 4);
  op->n_transfers = (uint16_t) (1 + take (b, 4));
  for (uint32_t i = 0; i < op->n_transfers; i++)
    t[i] = (LsTransfer) { take_size (b), (uint8_t) (LS_SLOT_PREV + take (b, 2)), (uint8_t) take (b, 2) };
  op->transfers = t;
}

static void
take_buffer (Bytes *b, LsArena *arena, LsOp *op)
{
  LsBufferEvent *e = ls_arena_new_array (arena, LsBufferEvent, 1);
  *e = (LsBufferEvent) { .bytes = take_size (b),
                         .id = (uint16_t) take (b, 2),
                         .category = LS_MEM_ACTIVATIONS,
                         .is_free = (uint8_t) take (b, 2),
                         .when = (uint8_t) take (b, LS_AT_END + 2) };
  op->n_buffers = 1;
  op->buffers = e;
}

static LsOp
take_op (Bytes *b, LsArena *arena, uint32_t index)
{
  LsOp op = { .kind = (uint8_t) take (b, LS_N_OP_KINDS),
              .stream = (uint8_t) take (b, LS_N_STREAMS),
              .layer = UINT16_MAX,
              .unit = UINT16_MAX,
              .event = LS_EVENT_NONE,
              .kernel = UINT32_MAX,
              .recorded = LS_TIME_NEVER,
              .name = "op" };
  uint32_t extras = take (b, 64);
  op.host = extras & 3;
  op.tag = (uint8_t) (extras % LS_N_TAGS);
  switch (op.kind) {
  case LS_OP_KERNEL:
    op.kernel = take (b, 6); /* there are four */
    if (extras & 4)
      op.recorded = take_duration (b);
    break;
  case LS_OP_COLLECTIVE:
    op.slot = (uint8_t) take (b, 2);
    op.coll = (uint8_t) take (b, LS_N_COLL_KINDS + 1);
    op.bytes = take_size (b);
    op.dtype = (uint8_t) take (b, 2);
    break;
  case LS_OP_P2P:
    take_transfers (b, arena, &op);
    break;
  case LS_OP_COPY:
    op.direction = (uint8_t) take (b, 3);
    op.bytes = take_size (b);
    if (extras & 4)
      op.recorded = take_duration (b);
    break;
  case LS_OP_RECORD:
  case LS_OP_WAIT:
    op.event = (uint16_t) take (b, 3);
    if (extras & 4)
      op.event = LS_EVENT_NONE;
    break;
  case LS_OP_HOST_DELAY:
    op.recorded = take_duration (b);
  }
  if (extras & 8)
    take_deps (b, arena, &op, index);
  if (extras & 16)
    take_buffer (b, arena, &op);
  return op;
}

/* ---- plans ---- */

static const LsKernel kernels[4] = {
  { .name = "gemm",
    .kind = LS_KERNEL_GEMM,
    .dtype = LS_DTYPE_FP16,
    .m = 1024,
    .n = 1024,
    .k = 1024,
    .batch = 1,
    .flops = 2e9,
    .bytes = 6e6 },
  { .name = "add",
    .kind = LS_KERNEL_ELEMENTWISE,
    .dtype = LS_DTYPE_FP16,
    .m = 1024,
    .n = 1024,
    .flops = 1e6,
    .bytes = 6e6 },
  { .name = "nothing", .kind = LS_KERNEL_MEMSET },
  { .name = "long",
    .kind = LS_KERNEL_GEMM,
    .dtype = LS_DTYPE_FP16,
    .m = 1 << 20,
    .n = 1 << 20,
    .k = 1 << 20,
    .batch = 1,
    .flops = 2.0 * (1 << 20) * (1 << 20) * (1 << 20),
    .bytes = 6.0 * (1 << 20) * (1 << 20) },
};

static void
take_segments (Bytes *b, LsPlan *p)
{
  p->n_segments = 1 + take (b, 4);
  p->segments = ls_arena_new_array (p->arena, LsSegment, p->n_segments);
  for (uint32_t s = 0; s < p->n_segments; s++) {
    uint32_t n = take (b, MAX_OPS + 1);
    p->segments[s] = (LsSegment) { "segment", n, ls_arena_new_array (p->arena, LsOp, n) };
    for (uint32_t i = 0; i < n; i++)
      p->segments[s].ops[i] = take_op (b, p->arena, i);
  }
}

static void
take_programs (Bytes *b, LsPlan *p)
{
  p->programs = ls_arena_new_array (p->arena, LsProgram, p->n_roles);
  for (uint32_t r = 0; r < p->n_roles; r++) {
    LsProgram *g = &p->programs[r];
    g->n_instances = (1 + take (b, 5)) % 5; /* mostly some */
    g->instances = ls_arena_new_array (p->arena, LsInstance, g->n_instances);
    for (uint32_t i = 0; i < g->n_instances; i++)
      g->instances[i]
          = (LsInstance) { take (b, p->n_segments), take (b, p->n_micro_batches + 1) % p->n_micro_batches,
                           (uint16_t) take (b, p->n_chunks), 0 };
    g->n_events = 2;
    g->static_bytes[LS_MEM_PARAMETERS] = 1000;
  }
}

/* Members by a bit mask; 0: all. Communicator c is slot c of its members. */
static void
take_communicators (Bytes *b, LsPlan *p)
{
  p->n_comms = 2;
  p->comms = ls_arena_new_array (p->arena, LsCommunicator, p->n_comms);
  for (uint32_t c = 0; c < p->n_comms; c++) {
    uint32_t mask = take (b, 1u << p->n_ranks), axis = take (b, LS_N_AXES);
    LsCommunicator *comm = &p->comms[c];
    *comm
        = (LsCommunicator) { (LsAxis) axis, c == 1, 0, ls_arena_new_array (p->arena, uint32_t, p->n_ranks) };
    for (uint32_t r = 0; r < p->n_ranks; r++)
      if (mask == 0 || (mask >> r & 1)) {
        p->bindings[r].comm[c] = c;
        p->bindings[r].member[c] = comm->n_ranks;
        comm->offsets[comm->n_ranks++] = r;
      }
  }
}

static void
take_bindings (Bytes *b, LsPlan *p)
{
  p->bindings = ls_arena_new_array (p->arena, LsBinding, p->n_ranks);
  p->gpu_of_rank = ls_arena_new_array (p->arena, uint32_t, p->n_ranks);
  uint32_t peers = take (b, 4), stride = 1 + take (b, 9);
  for (uint32_t r = 0; r < p->n_ranks; r++) {
    LsBinding *g = &p->bindings[r];
    g->role = r % p->n_roles;
    for (int s = 0; s < LS_N_SLOTS; s++)
      g->comm[s] = g->member[s] = UINT32_MAX;
    g->peer[0] = g->peer[1] = UINT32_MAX;
    if (peers == 3) { /* anybody */
      g->peer[0] = take (b, MAX_RANKS);
      g->peer[1] = take (b, MAX_RANKS);
    } else if (p->n_ranks > 1 && peers != 2) { /* a ring */
      g->peer[0] = (r + p->n_ranks - 1) % p->n_ranks;
      g->peer[1] = (r + 1) % p->n_ranks;
    }
    p->gpu_of_rank[r] = r * stride; /* beyond the cluster at times */
  }
  take_communicators (b, p);
}

static LsPlan *
take_plan (Bytes *b)
{
  LsPlan *p = g_new0 (LsPlan, 1);
  p->arena = ls_arena_new ();
  p->n_ranks = 1 + take (b, MAX_RANKS);
  p->n_roles = take (b, 2) ? p->n_ranks : 1;
  p->n_micro_batches = 1 + take (b, 2);
  p->n_chunks = 1 + take (b, 2);
  p->n_kernels = G_N_ELEMENTS (kernels);
  p->kernels = ls_arena_new_array (p->arena, LsKernel, p->n_kernels);
  memcpy (p->kernels, kernels, sizeof kernels);
  take_bindings (b, p);
  take_segments (b, p);
  take_programs (b, p);
  return p;
}

/* ---- runs ---- */

static const LsNccl nccl = {
  LS_TEST_NCCL_OF_JOB, .base_all_gather = 9 * LS_US, .base_reduce_scatter = 8 * LS_US,
  .hop_intra = LS_US,  .hop_inter = 5 * LS_US,       .sm_share_per_channel = 0.0093,
};

typedef struct {
  const LsPlan *plan;
  bool is_legal; /* the checker accepts it, and only collectives that exist are called */
  uint32_t n_steps;
  bool is_host_free;
  LsNetworkFidelity network;
  double slow[MAX_RANKS];
} Case;

static const LsCluster *
cluster (void)
{
  static LsCluster *c;
  LsClusterSpec spec = tiny_dgx (2);
  if (!c)
    c = ls_cluster_build (&spec, NULL);
  return c;
}

static void
check_timeline (const LsTimeline *t)
{
  LsTime parts[LS_N_PARTS], bubbles[LS_N_BUBBLES];
  ls_breakdown (t, parts, bubbles); /* asserts that they sum to the window */
  for (int part = 0; part < LS_N_PARTS; part++)
    g_assert (parts[part] >= 0);
  for (uint32_t r = 0; r < t->n_ranks; r++)
    for (uint32_t i = 0; i < t->ranks[r].n; i++) {
      const LsSpan *s = &t->ranks[r].spans[i];
      g_assert (s->end >= s->start && s->start >= 0);
      g_assert (s->cause == LS_SPAN_NONE || s->cause < t->ranks[r].n);
    }
}

static bool
may_fail_with (const Case *k, int code)
{
  return code == LS_ERROR_DEADLOCK || code == LS_ERROR_LIMIT || code == LS_ERROR_CONFLICT
      || (code == LS_ERROR_INPUT && !k->is_legal);
}

static LsTimeline *
run (const Case *k, LsRunOptions options, int *ret_code)
{
  static LsCalibration calibration;
  if (!calibration.name)
    ls_calibration_init_roofline (&calibration);
  g_autoptr (GError) error = NULL;
  options.n_steps = k->n_steps;
  options.network = k->network;
  options.max_memory_bytes = 64 << 20;
  options.slow = k->slow;
  if (k->is_host_free)
    memset (options.host.cost, 0, sizeof options.host.cost);
  LsTimeline *t = ls_run (k->plan, cluster (), &calibration, &nccl, &options, NULL, &error);
  *ret_code = error ? error->code : -1;
  if ((t == NULL) == (error == NULL) || (error && !may_fail_with (k, error->code)))
    fuzz_fail ("%s: %s", k->is_legal ? "a legal plan" : "a plan",
               error ? error->message : "neither a result nor an error");
  if (t)
    check_timeline (t);
  return t;
}

/* ---- for people: LS_FUZZ_SHOW=1 ---- */

static void
show_op (const LsOp *op)
{
  static const char *const kinds[]
      = { "kernel", "collective", "p2p", "copy", "record", "wait", "host sync", "host delay" };
  printf ("    %s on %s, host %u", kinds[op->kind], ls_stream_names[op->stream].name, op->host);
  if (op->kind == LS_OP_COLLECTIVE)
    printf (", slot %u, kind %u", op->slot, op->coll);
  printf (", %" G_GUINT64_FORMAT
          " bytes, kernel %d, event %u, root %u, direction %u, recorded %" G_GINT64_FORMAT,
          op->bytes, (int) op->kernel, op->event, op->root, op->direction, op->recorded);
  for (uint32_t i = 0; i < op->n_deps; i++)
    printf (", after %s %u",
            op->deps[i].kind == LS_DEP_STREAM    ? "stream"
                : op->deps[i].kind == LS_DEP_END ? "end of"
                                                 : "issue of",
            op->deps[i].index);
  for (uint32_t i = 0; i < op->n_transfers; i++)
    printf (", %s %s %" G_GUINT64_FORMAT, op->transfers[i].is_send ? "to" : "from",
            ls_slot_names[op->transfers[i].slot].name, op->transfers[i].bytes);
  puts ("");
}

static void
show (const LsPlan *p)
{
  for (uint32_t c = 0; c < p->n_comms; c++)
    for (uint32_t i = 0; i < p->comms[c].n_ranks; i++)
      printf ("communicator %u, member %u: rank %u\n", c, i, ls_comm_rank (&p->comms[c], i));
  for (uint32_t r = 0; r < p->n_ranks; r++)
    printf ("rank %u: role %u, GPU %u, peers %d %d\n", r, p->bindings[r].role, p->gpu_of_rank[r],
            (int) p->bindings[r].peer[0], (int) p->bindings[r].peer[1]);
  for (uint32_t r = 0; r < p->n_roles; r++)
    for (uint32_t i = 0; i < p->programs[r].n_instances; i++) {
      const LsInstance *in = &p->programs[r].instances[i];
      printf ("  role %u, instance %u: segment %u, micro-batch %u, chunk %u\n", r, i, in->segment, in->mb,
              in->chunk);
      for (uint32_t o = 0; o < p->segments[in->segment].n_ops; o++)
        show_op (&p->segments[in->segment].ops[o]);
    }
}

/* The fast ways are exact. */
static void
run_all (const Case *k)
{
  bool is_shown = g_getenv ("LS_FUZZ_SHOW") != NULL;
  LsRunOptions o[3];
  int code[3];
  LsTimeline *t[3];
  for (int i = 0; i < 3; i++)
    ls_run_options_init (&o[i]);
  o[1].no_run_ahead = true;
  o[2].queue = LS_QUEUE_REFERENCE;
  o[2].solver = LS_SOLVER_REFERENCE;
  for (int i = 0; i < 3; i++) {
    t[i] = run (k, o[i], &code[i]);
    if (is_shown)
      printf ("run %d: code %d, window %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT ", %u steps\n", i, code[i],
              t[i] ? t[i]->window_start : -1, t[i] ? t[i]->window_end : -1, t[i] ? t[i]->n_steps : 0);
  }
  for (int i = 1; i < 3; i++) {
    g_assert_cmpint (code[i], ==, code[0]);
    if (t[0]) {
      g_assert_cmpint (t[i]->window_start, ==, t[0]->window_start);
      g_assert_cmpint (t[i]->window_end, ==, t[0]->window_end);
      g_assert_cmpuint (t[i]->digest, ==, t[0]->digest);
    }
  }
  for (int i = 0; i < 3; i++)
    ls_timeline_free (t[i]);
}

/* What exec/run.h demands: all but what ranks owe each other. */
static bool
may_run (const GError *error)
{
  static const char *const owed[] = { "call ", "send ", "receive " };
  const char *what = error ? strstr (error->message, "(op): ") : NULL;
  for (size_t i = 0; what && i < G_N_ELEMENTS (owed); i++)
    if (g_str_has_prefix (what + strlen ("(op): "), owed[i]))
      return true;
  return error == NULL;
}

/* The checker does not know which there are: parallel/ does not see network/. */
static bool
has_unknown_call (const LsPlan *plan)
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++)
      if (plan->segments[s].ops[i].kind == LS_OP_COLLECTIVE
          && plan->segments[s].ops[i].coll >= LS_COLL_SEND_RECV)
        return true;
  return false;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  Bytes b = { data, n };
  Case k = { .n_steps = 1 + take (&b, 3),
             .is_host_free = take (&b, 2),
             .network = take (&b, 4) == 3 ? LS_NETWORK_ALPHABETA : LS_NETWORK_FLOW };
  for (int r = 0; r < MAX_RANKS; r++)
    k.slow[r] = 1;
  k.slow[take (&b, MAX_RANKS)] = 1 + take (&b, 3) / 8.0;
  g_autoptr (LsPlan) plan = take_plan (&b);
  g_autoptr (GError) error = NULL;
  k.plan = plan;
  bool is_accepted = ls_plan_check (plan, &error);
  g_assert (is_accepted == (error == NULL));
  k.is_legal = is_accepted && !has_unknown_call (plan);
  if (g_getenv ("LS_FUZZ_SHOW"))
    show (plan);
  if (may_run (error))
    run_all (&k);
  if (is_accepted) {
    g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = plan });
    for (uint32_t r = 0; r < plan->n_roles; r++)
      g_assert (
          memory->classes[r].overfreed_bytes == 0
          && memcmp (memory->classes[r].at_end, memory->classes[r].at_begin, sizeof memory->classes[r].at_end)
              == 0);
  }
  return 0;
}
