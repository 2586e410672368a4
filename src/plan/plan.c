#include "plan/plan.h"

#include <string.h>

#include "base/diag.h"

/* Several plans as one: ranks, communicators, roles, segments and kernels of each behind those of the
 * one before. */

/* Adds up, and says where each begins. */
static gboolean
count (const LsPlan *const *plans, uint32_t n, LsPlanPart *ret_parts, LsPlan *sum, GError **error)
{
  uint64_t rank = 0, comm = 0, role = 0, segment = 0, kernel = 0;
  for (uint32_t i = 0; i < n; i++) {
    const LsPlan *p = plans[i];
    ret_parts[i] = (LsPlanPart) { (uint32_t) rank, (uint32_t) comm, (uint32_t) role, (uint32_t) segment,
                                  (uint32_t) kernel };
    rank += p->n_ranks;
    comm += p->n_comms;
    role += p->n_roles;
    segment += p->n_segments;
    kernel += p->n_kernels;
    if (MAX (MAX (rank, comm), MAX (MAX (role, segment), kernel)) >= UINT32_MAX / 2)
      return ls_fail (error, LS_ERROR_LIMIT,
                      "the jobs have more ranks or communicators than can be replayed together");
    sum->n_micro_batches = MAX (sum->n_micro_batches, p->n_micro_batches);
    sum->n_chunks = MAX (sum->n_chunks, p->n_chunks);
  }
  sum->n_ranks = (uint32_t) rank;
  sum->n_comms = (uint32_t) comm;
  sum->n_roles = (uint32_t) role;
  sum->n_segments = (uint32_t) segment;
  sum->n_kernels = (uint32_t) kernel;
  return TRUE;
}

static uint32_t
moved (uint32_t index, uint32_t first)
{
  return index == UINT32_MAX ? index : index + first;
}

/* Its ops name kernels by number. */
static LsSegment
join_segment (LsArena *arena, const LsSegment *from, uint32_t first_kernel)
{
  LsSegment to = *from;
  if (first_kernel == 0 || from->n_ops == 0)
    return to;
  to.ops = ls_arena_new_array (arena, LsOp, from->n_ops);
  memcpy (to.ops, from->ops, from->n_ops * sizeof *to.ops);
  for (uint32_t i = 0; i < to.n_ops; i++)
    to.ops[i].kernel = moved (to.ops[i].kernel, first_kernel);
  return to;
}

static LsProgram
join_program (LsArena *arena, const LsProgram *from, uint32_t first_segment)
{
  LsProgram to = *from;
  to.instances = ls_arena_new_array (arena, LsInstance, MAX (1, from->n_instances));
  for (uint32_t i = 0; i < from->n_instances; i++) {
    to.instances[i] = from->instances[i];
    to.instances[i].segment += first_segment;
  }
  return to;
}

static LsCommunicator
join_comm (LsArena *arena, LsCommunicator from, uint32_t first_rank)
{
  LsCommunicator to = from;
  to.first += first_rank;
  to.offsets = ls_arena_new_array (arena, uint32_t, MAX (1, from.n_ranks));
  memcpy (to.offsets, from.offsets, from.n_ranks * sizeof *to.offsets);
  return to;
}

static LsBinding
join_binding (LsBinding to, const LsPlanPart *part)
{
  to.role += part->role;
  for (int s = 0; s < LS_N_SLOTS; s++)
    to.comm[s] = moved (to.comm[s], part->comm);
  for (int p = 0; p < 2; p++)
    to.peer[p] = moved (to.peer[p], part->rank);
  return to;
}

static void
join_one (LsPlan *to, const LsPlan *from, const LsPlanPart *part)
{
  for (uint32_t i = 0; i < from->n_segments; i++)
    to->segments[part->segment + i] = join_segment (to->arena, &from->segments[i], part->kernel);
  for (uint32_t i = 0; i < from->n_roles; i++)
    to->programs[part->role + i] = join_program (to->arena, &from->programs[i], part->segment);
  if (from->n_kernels > 0)
    memcpy (to->kernels + part->kernel, from->kernels, from->n_kernels * sizeof *from->kernels);
  for (uint32_t i = 0; i < from->n_comms; i++)
    to->comms[part->comm + i] = join_comm (to->arena, ls_plan_communicator (from, i), part->rank);
  for (uint32_t i = 0; i < from->n_ranks; i++) {
    to->bindings[part->rank + i] = join_binding (ls_plan_binding (from, i), part);
    to->gpu_of_rank[part->rank + i] = ls_plan_gpu (from, i);
  }
}

LsPlan *
ls_plan_join (const LsPlan *const *plans, uint32_t n, LsPlanPart *ret_parts, GError **error)
{
  LsPlan sum = { 0 };
  if (!count (plans, n, ret_parts, &sum, error))
    return NULL;
  LsPlan *p = g_new (LsPlan, 1);
  *p = sum;
  p->arena = ls_arena_new ();
  p->segments = ls_arena_new_array (p->arena, LsSegment, MAX (1, p->n_segments));
  p->programs = ls_arena_new_array (p->arena, LsProgram, MAX (1, p->n_roles));
  p->kernels = ls_arena_new_array (p->arena, LsKernel, MAX (1, p->n_kernels));
  p->comms = ls_arena_new_array (p->arena, LsCommunicator, MAX (1, p->n_comms));
  p->bindings = ls_arena_new_array (p->arena, LsBinding, MAX (1, p->n_ranks));
  p->gpu_of_rank = ls_arena_new_array (p->arena, uint32_t, MAX (1, p->n_ranks));
  for (uint32_t i = 0; i < n; i++)
    join_one (p, plans[i], &ret_parts[i]);
  return p;
}

/* --- the one intermediate form: programs of roles, and the table that binds ranks to them -------- */

const LsEnumName ls_tag_names[LS_N_TAGS + 1] = {
  [LS_TAG_F] = { "F", LS_TAG_F },
  [LS_TAG_I] = { "I", LS_TAG_I },
  [LS_TAG_W] = { "W", LS_TAG_W },
  [LS_TAG_B] = { "B", LS_TAG_B },
  [LS_TAG_RECOMPUTE] = { "recompute", LS_TAG_RECOMPUTE },
  [LS_TAG_OPTIMIZER] = { "optimizer", LS_TAG_OPTIMIZER },
  [LS_TAG_SYNC] = { "sync", LS_TAG_SYNC },
};

const LsEnumName ls_site_names[LS_N_SITES + 1] = {
  [LS_SITE_OTHER] = { "elsewhere", LS_SITE_OTHER },
  [LS_SITE_EMBEDDING] = { "embedding", LS_SITE_EMBEDDING },
  [LS_SITE_NORM] = { "norm", LS_SITE_NORM },
  [LS_SITE_ATTENTION] = { "attention", LS_SITE_ATTENTION },
  [LS_SITE_MLP] = { "mlp", LS_SITE_MLP },
  [LS_SITE_EXPERTS] = { "experts", LS_SITE_EXPERTS },
  [LS_SITE_RESIDUAL] = { "residual", LS_SITE_RESIDUAL },
  [LS_SITE_HEAD] = { "head", LS_SITE_HEAD },
  [LS_SITE_LOSS] = { "loss", LS_SITE_LOSS },
  [LS_SITE_DATA] = { "data parallelism", LS_SITE_DATA },
  [LS_SITE_OPTIMIZER] = { "optimizer", LS_SITE_OPTIMIZER },
};

const LsEnumName ls_stream_names[LS_N_STREAMS + 1] = {
  [LS_STREAM_COMPUTE] = { "compute", LS_STREAM_COMPUTE },
  [LS_STREAM_TP] = { "tp", LS_STREAM_TP },
  [LS_STREAM_DP] = { "dp", LS_STREAM_DP },
  [LS_STREAM_PP_FWD] = { "pp-fwd", LS_STREAM_PP_FWD },
  [LS_STREAM_PP_FWD_RECV] = { "pp-fwd-recv", LS_STREAM_PP_FWD_RECV },
  [LS_STREAM_PP_BWD] = { "pp-bwd", LS_STREAM_PP_BWD },
  [LS_STREAM_PP_BWD_RECV] = { "pp-bwd-recv", LS_STREAM_PP_BWD_RECV },
  [LS_STREAM_GLOBAL] = { "global", LS_STREAM_GLOBAL },
  [LS_STREAM_COPY] = { "copy", LS_STREAM_COPY },
  [LS_STREAM_COPY_IN] = { "copy-in", LS_STREAM_COPY_IN },
  [LS_STREAM_GATHER] = { "gather", LS_STREAM_GATHER },
  [LS_STREAM_CP] = { "cp", LS_STREAM_CP },
  [LS_STREAM_EP] = { "ep", LS_STREAM_EP },
  [LS_STREAM_GATHER_IN] = { "gather-in", LS_STREAM_GATHER_IN },
  [LS_STREAM_REPLICA] = { "replica", LS_STREAM_REPLICA },
  [LS_STREAM_SHARED] = { "shared-experts", LS_STREAM_SHARED },
};

#define NAMED(name, number) [number] = { name, number }

const LsEnumName ls_slot_names[LS_N_SLOTS + 1] = {
  LS_COMM_SLOTS (NAMED),
  [LS_SLOT_PREV] = { "prev", LS_SLOT_PREV },
  [LS_SLOT_NEXT] = { "next", LS_SLOT_NEXT },
};

const LsEnumName ls_axis_names[LS_N_AXES + 1] = {
  [LS_AXIS_TP] = { "tp", LS_AXIS_TP }, [LS_AXIS_DP] = { "dp", LS_AXIS_DP },
  [LS_AXIS_PP] = { "pp", LS_AXIS_PP }, [LS_AXIS_CP] = { "cp", LS_AXIS_CP },
  [LS_AXIS_EP] = { "ep", LS_AXIS_EP },
};

const LsEnumName ls_mem_category_names[LS_N_MEM + 1] = { LS_MEM_CATEGORIES (NAMED) };

uint32_t *
ls_comm_ranks (const LsCommunicator *c)
{
  uint32_t *ranks = g_new (uint32_t, c->n_ranks);
  for (uint32_t i = 0; i < c->n_ranks; i++)
    ranks[i] = ls_comm_rank (c, i);
  return ranks;
}

LsOp
ls_op_blank (LsOpKind kind, LsStream stream, LsTag tag, const char *name)
{
  return (LsOp) {
    .kind = kind,
    .stream = stream,
    .tag = tag,
    .host = LS_HOST_FREE,
    .direction = ls_op_takes (kind, LS_TAKES_ENGINE) ? ls_op_kinds[kind].direction : LS_N_COPY_DIRECTIONS,
    .layer = UINT16_MAX,
    .unit = UINT16_MAX,
    .event = LS_EVENT_NONE,
    .kernel = UINT32_MAX,
    .recorded = LS_TIME_NEVER,
    .name = name,
  };
}

void
ls_plan_free (LsPlan *plan)
{
  if (!plan)
    return;
  ls_arena_free (plan->arena);
  g_free (plan);
}

uint32_t *
ls_program_uses (const LsPlan *plan, const LsProgram *program, uint32_t from)
{
  uint32_t *n_uses = g_new0 (uint32_t, plan->n_segments + 1);
  for (uint32_t i = from; i < program->n_instances; i++)
    n_uses[program->instances[i].segment]++;
  return n_uses;
}

guint
ls_name_hash (gconstpointer key)
{
  uint64_t bits = GPOINTER_TO_SIZE (key) * UINT64_C (0x9e3779b97f4a7c15); /* Fibonacci hashing */
  return (guint) (bits >> 32);
}

uint64_t
ls_plan_n_op_instances (const LsPlan *plan)
{
  uint64_t n = 0;
  g_autofree uint64_t *n_ranks = ls_plan_ranks_of_roles (plan);
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    const LsProgram *p = &plan->programs[role];
    for (uint32_t i = p->n_lead; i < p->n_instances; i++)
      n += n_ranks[role] * plan->segments[p->instances[i].segment].n_ops;
  }
  return n;
}

bool
ls_plan_has_ops (const LsPlan *plan, LsOpTakes takes, bool is_recorded)
{
  bool has_some = false;
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (const LsOp *op = plan->segments[s].ops; op < plan->segments[s].ops + plan->segments[s].n_ops; op++)
      has_some |= ls_op_takes (op->kind, takes) && (op->recorded != LS_TIME_NEVER) == is_recorded
          && (takes != LS_TAKES_HOST || op->recorded > 0);
  return has_some;
}

uint32_t *
ls_plan_gpus (LsPlan *plan)
{
  if (plan->gpu_of_rank)
    return plan->gpu_of_rank;
  plan->gpu_of_rank = ls_arena_new_array (plan->arena, uint32_t, MAX (1, plan->n_ranks));
  for (uint32_t i = 0; i < plan->n_ranks; i++)
    plan->gpu_of_rank[i] = i;
  return plan->gpu_of_rank;
}

bool
ls_plan_has_same_gpus (const LsPlan *a, const LsPlan *b)
{
  bool are_same = true;
  for (uint32_t i = 0; i < a->n_ranks && are_same && (a->gpu_of_rank || b->gpu_of_rank); i++)
    are_same = ls_plan_gpu (a, i) == ls_plan_gpu (b, i);
  return are_same;
}

uint32_t
ls_plan_end_of_role (const LsPlan *plan, uint32_t rank)
{
  if (!plan->bindings && !plan->role_of_rank)
    return ls_mesh_binding_end_of_stage (plan->by_mesh, rank);
  uint32_t role = ls_plan_role (plan, rank);
  while (rank < plan->n_ranks && ls_plan_role (plan, rank) == role)
    rank++;
  return rank;
}

uint64_t *
ls_plan_ranks_of_roles (const LsPlan *plan)
{
  uint64_t *n_ranks = g_new0 (uint64_t, plan->n_roles);
  for (uint32_t first = 0, end; first < plan->n_ranks; first = end) {
    end = ls_plan_end_of_role (plan, first);
    n_ranks[ls_plan_role (plan, first)] += end - first;
  }
  return n_ranks;
}

static bool
is_same_communicator (const LsPlan *a, const LsPlan *b, uint32_t comm)
{
  const LsCommunicator of_a = ls_plan_communicator (a, comm), of_b = ls_plan_communicator (b, comm);
  bool is_same
      = of_a.axis == of_b.axis && of_a.spans_stages == of_b.spans_stages && of_a.n_ranks == of_b.n_ranks;
  for (uint32_t i = 0; is_same && i < of_a.n_ranks; i++)
    is_same = ls_comm_rank (&of_a, i) == ls_comm_rank (&of_b, i);
  return is_same;
}

/* Of ranks of one mesh. */
static bool
have_same_roles (const LsPlan *a, const LsPlan *b)
{
  if (!a->role_of_rank || !b->role_of_rank)
    return a->role_of_rank == b->role_of_rank;
  return memcmp (a->role_of_rank, b->role_of_rank, a->n_ranks * sizeof *a->role_of_rank) == 0;
}

/* The rules of one mesh make the same of all ranks. */
static bool
have_one_mesh (const LsPlan *a, const LsPlan *b)
{
  return !a->bindings && !b->bindings && ls_mesh_binding_is_same (a->by_mesh, b->by_mesh)
      && have_same_roles (a, b);
}

bool
ls_plan_has_same_ranks (const LsPlan *a, const LsPlan *b)
{
  bool is_same = a->n_ranks == b->n_ranks && a->n_comms == b->n_comms && ls_plan_has_same_gpus (a, b);
  if (!is_same || have_one_mesh (a, b))
    return is_same;
  for (uint32_t r = 0; r < a->n_ranks && is_same; r++) {
    const LsBinding of_a = ls_plan_binding (a, r), of_b = ls_plan_binding (b, r);
    is_same = memcmp (&of_a, &of_b, sizeof of_a) == 0;
  }
  for (uint32_t c = 0; c < a->n_comms && is_same; c++)
    is_same = is_same_communicator (a, b, c);
  return is_same;
}

/* ---- ops of a plan before which the host is held up ---- */

#define MAX_OPS (UINT16_MAX - 1)

/* Stalls of one instance, a part of the list. */
typedef struct {
  const LsStall *stalls;
  guint n;
} Stalls;

static LsOp
wait_for_all (LsPlan *plan)
{
  LsOp op = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "allocator retry");
  LsDep *deps = ls_arena_new_array (plan->arena, LsDep, LS_N_STREAMS);
  for (int s = 0; s < LS_N_STREAMS; s++)
    deps[s] = (LsDep) { LS_DEP_STREAM, (uint16_t) s };
  op.host = LS_HOST_SYNC;
  op.deps = deps;
  op.n_deps = LS_N_STREAMS;
  return op;
}

static const LsDep *
moved_deps (LsPlan *plan, const LsOp *op, const uint16_t *moved)
{
  LsDep *deps = ls_arena_new_array (plan->arena, LsDep, op->n_deps);
  for (uint32_t d = 0; d < op->n_deps; d++) {
    deps[d] = op->deps[d];
    if (deps[d].kind != LS_DEP_STREAM)
      deps[d].index = moved[deps[d].index];
  }
  return deps;
}

static LsSegment
stalled (LsPlan *plan, const LsSegment *from, const Stalls *s)
{
  LsSegment to = { .name = from->name };
  to.ops = ls_arena_new_array (plan->arena, LsOp, from->n_ops + 2 * s->n);
  g_autofree uint16_t *moved = g_new (uint16_t, from->n_ops);
  guint next = 0;
  for (uint32_t i = 0; i < from->n_ops; i++) {
    if (next < s->n && s->stalls[next].op == i) {
      if (s->stalls[next].waits)
        to.ops[to.n_ops++] = wait_for_all (plan);
      to.ops[to.n_ops]
          = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "cudaFree, cudaMalloc");
      to.ops[to.n_ops++].recorded = s->stalls[next++].time;
    }
    moved[i] = (uint16_t) to.n_ops;
    LsOp *op = &to.ops[to.n_ops++];
    *op = from->ops[i];
    op->deps = moved_deps (plan, op, moved);
  }
  return to;
}

/* What follows of the same instance. */
static Stalls
next_instance (const GArray *stalls, guint from)
{
  Stalls s = { &g_array_index (stalls, LsStall, from), 1 };
  while (from + s.n < stalls->len && s.stalls[s.n].instance == s.stalls[0].instance)
    s.n++;
  return s;
}

static gboolean
check (const LsPlan *plan, const LsProgram *p, const GArray *stalls, guint *ret_n, GError **error)
{
  *ret_n = 0;
  for (guint i = 0; i < stalls->len; ++*ret_n) {
    Stalls s = next_instance (stalls, i);
    const LsSegment *seg = &plan->segments[p->instances[s.stalls[0].instance].segment];
    i += s.n;
    if (seg->n_ops + 2 * s.n <= MAX_OPS)
      continue;
    return ls_fail (error, LS_ERROR_LIMIT,
                    "segment %s has %u ops and %u stalls; with two for each it may have %u", seg->name,
                    seg->n_ops, s.n, MAX_OPS);
  }
  return TRUE;
}

gboolean
ls_plan_add_stalls (LsPlan *plan, uint32_t role, const GArray *stalls, GError **error)
{
  LsProgram *p = &plan->programs[role];
  guint n;
  if (!check (plan, p, stalls, &n, error))
    return FALSE;
  LsSegment *segments = ls_arena_new_array (plan->arena, LsSegment, plan->n_segments + n);
  LsInstance *instances = ls_arena_new_array (plan->arena, LsInstance, p->n_instances);
  memcpy (segments, plan->segments, plan->n_segments * sizeof *segments);
  memcpy (instances, p->instances, p->n_instances * sizeof *instances);
  plan->segments = segments;
  p->instances = instances;
  for (guint i = 0; i < stalls->len;) {
    Stalls s = next_instance (stalls, i);
    LsInstance *instance = &instances[s.stalls[0].instance];
    segments[plan->n_segments] = stalled (plan, &segments[instance->segment], &s);
    instance->segment = plan->n_segments++;
    i += s.n;
  }
  return TRUE;
}

/* ---- kinds of ops ---- */

static char *
kernel_fault (const LsPlan *plan, const LsOp *op)
{
  if (op->kernel < plan->n_kernels || (op->kernel == UINT32_MAX && op->recorded != LS_TIME_NEVER))
    return NULL;
  return g_strdup_printf ("kernel %u does not exist", op->kernel);
}

static char *
collective_fault (const LsPlan *plan, const LsOp *op)
{
  return ls_slot_is_peer (op->slot)
      ? g_strdup_printf ("a collective cannot use slot %s", ls_slot_names[op->slot].name)
      : NULL;
}

static char *
copy_fault (const LsPlan *plan, const LsOp *op)
{
  if (op->direction < LS_N_COPY_DIRECTIONS)
    return NULL;
  return g_strdup_printf ("direction %u: a copy has one of %d", op->direction, LS_N_COPY_DIRECTIONS);
}

static char *
delay_fault (const LsPlan *plan, const LsOp *op)
{
  return op->recorded == LS_TIME_NEVER ? g_strdup ("a host delay needs a recorded duration") : NULL;
}

const LsEnumName ls_op_kind_names[LS_N_OP_KINDS + 1] = {
  [LS_OP_KERNEL] = { "kernel", LS_OP_KERNEL },
  [LS_OP_COLLECTIVE] = { "collective", LS_OP_COLLECTIVE },
  [LS_OP_P2P] = { "p2p", LS_OP_P2P },
  [LS_OP_COPY] = { "copy", LS_OP_COPY },
  [LS_OP_RECORD] = { "record", LS_OP_RECORD },
  [LS_OP_WAIT] = { "wait", LS_OP_WAIT },
  [LS_OP_HOST_SYNC] = { "host-sync", LS_OP_HOST_SYNC },
  [LS_OP_HOST_DELAY] = { "host-delay", LS_OP_HOST_DELAY },
};

/* clang-format off */
const LsOpKindRow ls_op_kinds[LS_N_OP_KINDS] = {
  [LS_OP_KERNEL] = { LS_TAKES_GPU,
    .has = LS_HAS_KERNEL | LS_HAS_RECORDED | LS_HAS_BESIDE | LS_HAS_REPEAT | LS_HAS_GRAPH,
    .needs = LS_HAS_KERNEL | LS_HAS_RECORDED,
    .lacking = "a kernel needs a shape (\"kernel\") or a time (\"recorded\")",
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_F, .host = LS_HOST_LAUNCH, .fault = kernel_fault },
  [LS_OP_COLLECTIVE] = { LS_TAKES_NETWORK, .has = LS_HAS_CALL | LS_HAS_BYTES,
    .needs = LS_HAS_CALL, .lacking = "a collective needs \"slot\" and \"coll\"",
    .stream = LS_STREAM_GLOBAL, .tag = LS_TAG_SYNC, .host = LS_HOST_COMM, .fault = collective_fault },
  [LS_OP_P2P] = { LS_TAKES_NETWORK, .has = LS_HAS_TRANSFERS, .needs = LS_HAS_TRANSFERS,
    .lacking = "a p2p needs \"transfers\"",
    .stream = LS_STREAM_PP_FWD, .tag = LS_TAG_SYNC, .host = LS_HOST_COMM },
  [LS_OP_COPY] = { LS_TAKES_ENGINE, .has = LS_HAS_RECORDED | LS_HAS_BYTES | LS_HAS_DIRECTION,
    .stream = LS_STREAM_COPY, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE, .fault = copy_fault },
  [LS_OP_RECORD] = { LS_TAKES_NOTHING, .records = true, .has = LS_HAS_EVENT,
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE },
  [LS_OP_WAIT] = { LS_TAKES_NOTHING, .has = LS_HAS_EVENT, .needs = LS_HAS_EVENT,
    .lacking = "a wait needs an \"event\"",
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE },
  [LS_OP_HOST_SYNC] = { LS_TAKES_HOST, .host_waits = true,
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_SYNC },
  [LS_OP_HOST_DELAY] = { LS_TAKES_HOST, .has = LS_HAS_RECORDED | LS_HAS_REPEAT,
    .needs = LS_HAS_RECORDED, .lacking = "a host-delay needs \"recorded\"",
    .stream = LS_STREAM_COMPUTE, .tag = LS_TAG_SYNC, .host = LS_HOST_FREE, .fault = delay_fault },
};
/* clang-format on */

const LsEnumName ls_copy_names[LS_N_COPY_DIRECTIONS + 1] = {
  [LS_COPY_TO_DEVICE] = { "to-device", LS_COPY_TO_DEVICE },
  [LS_COPY_TO_HOST] = { "to-host", LS_COPY_TO_HOST },
  [LS_COPY_FROM_NVME] = { "from-nvme", LS_COPY_FROM_NVME },
  [LS_COPY_TO_NVME] = { "to-nvme", LS_COPY_TO_NVME },
  [LS_COPY_IN_HOST] = { "in-host", LS_COPY_IN_HOST },
};

const LsCopyRow ls_copies[LS_N_COPY_DIRECTIONS] = {
  [LS_COPY_TO_DEVICE] = { "copies to the device of rank", LS_COPY_BY_HOST },
  [LS_COPY_TO_HOST] = { "copies to the host of rank", LS_COPY_BY_HOST, .is_out = true },
  [LS_COPY_FROM_NVME] = { "reads from NVMe of rank", LS_COPY_BY_NVME },
  [LS_COPY_TO_NVME] = { "writes to NVMe of rank", LS_COPY_BY_NVME, .is_out = true },
  [LS_COPY_IN_HOST]
  = { "work in the host's memory of rank", LS_COPY_BY_HOST, .is_out = true, .is_in_host = true },
};
