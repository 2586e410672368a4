/* tests/support/hand_trace.h — jobs of a few ranks written out by hand, run and
 * looked at. Each rank has one program of one segment, or of several in any order; kernels
 * have recorded times; the host is free unless a test says otherwise.
 *
 *     Hand *h = hand_new (2);
 *     hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (uint32_t[]) { 0, 1 }, 2);
 *     hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
 *     hand_sync (h, 0, LS_SLOT_TP, COLL_ALL_REDUCE, 1 << 20);   compute waits for it
 *     LsTimeline *t = hand_run (h);
 */
#ifndef LS_TESTS_HAND_TRACE_H
#define LS_TESTS_HAND_TRACE_H

#include <string.h>

#include "exec/run.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"

#define HAND_MAX_RANKS    16
#define HAND_MAX_SEGMENTS 4 /* of a rank */

typedef struct {
  GArray *ops[HAND_MAX_RANKS];                       /* LsOp          */
  uint32_t first[HAND_MAX_RANKS][HAND_MAX_SEGMENTS]; /* op of each segment */
  uint32_t n_segments[HAND_MAX_RANKS];               /* ended before the last one */
  GArray *order[HAND_MAX_RANKS];                     /* uint32_t: segments as they run; NULL: each once */
  GArray *next_deps[HAND_MAX_RANKS];                 /* LsDep: of the next compute op */
  LsPlan *plan;
  GArray *comms;
  GArray *kernels;
  LsCluster *cluster;
  LsCalibration calibration;
  LsNccl nccl;
  LsRunOptions options;
} Hand;

/* All but the options. */
static inline Hand *
hand_plan_new (uint32_t n_ranks)
{
  Hand *h = g_new0 (Hand, 1);
  LsClusterSpec spec = tiny_dgx (1);
  h->cluster = ls_cluster_build (&spec, NULL);
  h->plan = g_new0 (LsPlan, 1);
  h->plan->arena = ls_arena_new ();
  h->plan->n_ranks = n_ranks;
  h->plan->bindings = ls_arena_new_array (h->plan->arena, LsBinding, n_ranks);
  h->plan->gpu_of_rank = ls_arena_new_array (h->plan->arena, uint32_t, n_ranks);
  h->comms = g_array_new (FALSE, FALSE, sizeof (LsCommunicator));
  h->kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  for (uint32_t r = 0; r < n_ranks; r++) {
    h->ops[r] = g_array_new (FALSE, FALSE, sizeof (LsOp));
    h->next_deps[r] = g_array_new (FALSE, FALSE, sizeof (LsDep));
    h->plan->gpu_of_rank[r] = r;
    LsBinding *b = &h->plan->bindings[r];
    b->role = r;
    b->peer[0] = (r + n_ranks - 1) % n_ranks;
    b->peer[1] = (r + 1) % n_ranks;
    for (int s = 0; s < LS_N_SLOTS; s++)
      b->comm[s] = b->member[s] = UINT32_MAX;
  }
  ls_calibration_init_roofline (&h->calibration);
  h->nccl = (LsNccl) {
    LS_TEST_NCCL_OF_JOB,
    .base_all_gather = 10 * LS_US,
    .base_reduce_scatter = 10 * LS_US,
    .sm_share_per_channel = 1.0 / 32,
  };
  return h;
}

static inline Hand *
hand_new (uint32_t n_ranks)
{
  Hand *h = hand_plan_new (n_ranks);
  ls_run_options_init (&h->options);
  h->options.n_steps = 1;
  memset (h->options.host.cost, 0, sizeof h->options.host.cost);
  return h;
}

/* One that is run in pieces and op by op, and compared. */
static inline Hand *
hand_coarse_new (uint32_t n_ranks)
{
  Hand *h = hand_new (n_ranks);
  h->options.coarsen = LS_SHORTCUT_CHECK;
  return h;
}

static inline void
hand_comm (Hand *h, LsSlot slot, LsAxis axis, bool spans_stages, const uint32_t *ranks, uint32_t n)
{
  LsCommunicator c = { axis, spans_stages, n, ls_arena_new_array (h->plan->arena, uint32_t, n) };
  memcpy (c.offsets, ranks, n * sizeof *ranks);
  for (uint32_t i = 0; i < n; i++) {
    h->plan->bindings[ranks[i]].comm[slot] = h->comms->len;
    h->plan->bindings[ranks[i]].member[slot] = i;
  }
  g_array_append_val (h->comms, c);
}

static inline uint16_t
hand_op (Hand *h, uint32_t rank, LsOp op, const LsDep *deps, uint16_t n)
{
  GArray *own = h->next_deps[rank];
  guint n_joins = op.stream == LS_STREAM_COMPUTE ? own->len : 0;
  LsDep *all = ls_arena_new_array (h->plan->arena, LsDep, n + n_joins);
  for (uint16_t i = 0; i < n; i++)
    all[i] = deps[i];
  for (guint i = 0; i < n_joins; i++)
    all[n + i] = g_array_index (own, LsDep, i);
  if (n_joins)
    g_array_set_size (own, 0);
  op.deps = all;
  op.n_deps = (uint16_t) (n + n_joins);
  g_array_append_val (h->ops[rank], op);
  return (uint16_t) (h->ops[rank]->len - 1 - h->first[rank][h->n_segments[rank]]);
}

static inline void
hand_join (Hand *h, uint32_t rank, uint16_t op)
{
  LsDep dep = { LS_DEP_END, op };
  g_array_append_val (h->next_deps[rank], dep);
}

static inline uint16_t
hand_kernel (Hand *h, uint32_t rank, LsTag tag, LsTime duration)
{
  LsOp op = ls_op_blank (LS_OP_KERNEL, LS_STREAM_COMPUTE, tag, "kernel");
  op.host = LS_HOST_LAUNCH;
  op.recorded = duration;
  return hand_op (h, rank, op, NULL, 0);
}

/* A collective on a stream of its own, after the compute so far; nobody waits. */
static inline uint16_t
hand_async (Hand *h, uint32_t rank, LsSlot slot, LsStream stream, int coll, uint64_t bytes)
{
  LsOp op = ls_op_blank (LS_OP_COLLECTIVE, stream, LS_TAG_SYNC, "collective");
  op.host = LS_HOST_COMM;
  op.slot = (uint8_t) slot;
  op.coll = (uint8_t) coll;
  op.bytes = bytes;
  op.dtype = LS_DTYPE_FP16;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  return hand_op (h, rank, op, &compute, 1);
}

/* The same, and the next compute op waits for it. */
static inline uint16_t
hand_sync (Hand *h, uint32_t rank, LsSlot slot, LsStream stream, int coll, uint64_t bytes)
{
  uint16_t op = hand_async (h, rank, slot, stream, coll, bytes);
  hand_join (h, rank, op);
  return op;
}

static inline uint16_t
hand_p2p (Hand *h, uint32_t rank, LsSlot slot, bool is_send, uint64_t bytes)
{
  LsTransfer *t = ls_arena_new_array (h->plan->arena, LsTransfer, 1);
  *t = (LsTransfer) { bytes, (uint8_t) slot, is_send };
  LsOp op = ls_op_blank (LS_OP_P2P, LS_STREAM_PP_FWD, LS_TAG_SYNC, "p2p");
  op.host = LS_HOST_COMM;
  op.transfers = t;
  op.n_transfers = 1;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  return hand_op (h, rank, op, &compute, 1);
}

static inline uint16_t
hand_copy (Hand *h, uint32_t rank, LsCopyDirection direction, uint64_t bytes)
{
  LsOp op = ls_op_blank (LS_OP_COPY, LS_STREAM_COPY, LS_TAG_SYNC, "copy");
  op.direction = (uint8_t) direction;
  op.bytes = bytes;
  return hand_op (h, rank, op, NULL, 0);
}

static inline void
hand_host_sync (Hand *h, uint32_t rank, uint16_t op)
{
  LsOp sync = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "host sync");
  sync.host = LS_HOST_SYNC;
  LsDep dep = { LS_DEP_END, op };
  hand_op (h, rank, sync, &dep, 1);
}

/* What follows is in a segment of its own. */
static inline void
hand_next_segment (Hand *h, uint32_t rank)
{
  g_assert (h->n_segments[rank] + 1 < HAND_MAX_SEGMENTS);
  h->first[rank][++h->n_segments[rank]] = h->ops[rank]->len;
}

/* The segment runs n times behind what the order has so far. */
static inline void
hand_then (Hand *h, uint32_t rank, uint32_t segment, uint32_t n)
{
  if (!h->order[rank])
    h->order[rank] = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t i = 0; i < n; i++)
    g_array_append_val (h->order[rank], segment);
}

/* Each instance is a micro-batch of its own. */
static inline void
hand_program (Hand *h, uint32_t rank)
{
  LsPlan *p = h->plan;
  LsProgram *program = &p->programs[rank];
  uint32_t n = h->n_segments[rank] + 1, first = HAND_MAX_SEGMENTS * rank;
  LsOp *ops = (LsOp *) h->ops[rank]->data;
  for (uint32_t s = 0; s < n; s++) {
    uint32_t from = h->first[rank][s], to = s + 1 < n ? h->first[rank][s + 1] : h->ops[rank]->len;
    p->segments[first + s] = (LsSegment) { "hand-written", to - from, ops + from };
  }
  program->n_instances = h->order[rank] ? h->order[rank]->len : n;
  program->instances = ls_arena_new_array (p->arena, LsInstance, program->n_instances);
  for (uint32_t i = 0; i < program->n_instances; i++)
    program->instances[i] = (LsInstance) {
      .segment = first + (h->order[rank] ? g_array_index (h->order[rank], uint32_t, i) : i), .mb = i
    };
  program->n_events = 4;
  p->n_micro_batches = MAX (p->n_micro_batches, program->n_instances);
}

static inline void
hand_freeze (Hand *h)
{
  LsPlan *p = h->plan;
  if (p->segments)
    return;
  p->n_chunks = 1;
  p->n_roles = p->n_ranks;
  p->n_segments = HAND_MAX_SEGMENTS * p->n_ranks;
  p->segments = ls_arena_new_array (p->arena, LsSegment, p->n_segments);
  p->programs = ls_arena_new_array (p->arena, LsProgram, p->n_ranks);
  p->n_comms = h->comms->len;
  p->comms = (LsCommunicator *) h->comms->data;
  p->n_kernels = h->kernels->len;
  p->kernels = (LsKernel *) h->kernels->data;
  for (uint32_t r = 0; r < p->n_ranks; r++)
    hand_program (h, r);
}

static inline LsTimeline *
hand_run_error (Hand *h, GError **error)
{
  hand_freeze (h);
  return ls_run (h->plan, h->cluster, &h->calibration, &h->nccl, &h->options, NULL, error);
}

static inline LsTimeline *
hand_run (Hand *h)
{
  g_autoptr (GError) error = NULL;
  LsTimeline *t = hand_run_error (h, &error);
  LS_CHECK_NO_ERROR (error);
  return t;
}

/* Time of a collective of these GPUs by itself. */
static inline LsTime
hand_coll_time (const Hand *h, LsCollKind kind, uint64_t bytes, const uint32_t *gpus, uint32_t n)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  return ls_coll_time_alone (h->cluster,
                             ls_coll_plan (h->cluster, &h->nccl, &request, LS_NETWORK_FLOW, arena));
}

static inline void
hand_free (Hand *h)
{
  for (uint32_t r = 0; r < h->plan->n_ranks; r++) {
    g_array_unref (h->ops[r]);
    g_array_unref (h->next_deps[r]);
    g_clear_pointer (&h->order[r], g_array_unref);
  }
  g_array_unref (h->comms);
  g_array_unref (h->kernels);
  ls_cluster_free (h->cluster);
  ls_calibration_clear (&h->calibration);
  ls_arena_free (h->plan->arena);
  g_free (h->plan);
  g_free (h);
}

/* Who stands for whom, and for how many. */
static inline bool
has_same_classes (const LsTimeline *a, const LsTimeline *b)
{
  bool are_same = a->n_classes == b->n_classes && a->n_ranks == b->n_ranks;
  for (uint32_t r = 0; r < a->n_ranks && are_same; r++)
    are_same = ls_timeline_representative (a, r) == ls_timeline_representative (b, r)
        && ls_timeline_multiplicity (a, r) == ls_timeline_multiplicity (b, r);
  return are_same;
}

static inline bool
has_same_bytes_on_links (const LsTimeline *a, const LsTimeline *b)
{
  for (uint32_t i = 0; i < a->n_resources; i++)
    if (ls_timeline_bytes (a, i) != ls_timeline_bytes (b, i))
      return false;
  return a->n_resources == b->n_resources;
}

#endif
