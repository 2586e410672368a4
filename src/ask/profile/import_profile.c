#include "ask/profile/import_profile.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "data/traces/traces.h"
#include "plan/mesh.h"

#define MAX_RANKS  1048576 /* of a trace             */
#define MAX_LISTED 65536   /* of ranks one by one    */
#define MAX_STAGES 1024

typedef struct {
  uint8_t slot; /* LsSlot */
  uint8_t axis; /* LsAxis */
  uint32_t size, stride;
  const char *called; /* borrowed */
  bool is_inferred;   /* its dimension is not that of its name */
} LsProfileGroup;

typedef struct {
  uint32_t n_ranks;
  bool has_mesh;
  LsMesh mesh;
  GArray *groups; /* LsProfileGroup: those that are bound */
} LsProfileGroups;

typedef struct {
  LsKineto *k;
  LsMeasuredStep cut;
  bool *is_used;    /* of its groups */
  uint8_t *slot_of; /* of its groups */
  LsProfileStep *step;
} Rank;

static Rank *
rank_at (const GArray *ranks, guint i)
{
  return &g_array_index (ranks, Rank, i);
}

#define PS_PER_NS   1000
#define SEGMENT_OPS 12000 /* each of which is four ops at most: a segment has 60,000 */
#define MAX_OPS     2000000
#define BLOCKED_NS  20000
#define QUEUE_OPS   500 /* of the 1024 that a GPU's queue takes, kernels and copies */
#define NAME_CHARS  60
#define NO_EVENT    G_MAXUINT

/* A program that is being written, and the plan that it is of. */
typedef struct {
  LsPlan *plan;
  const LsProfileChanges *changes;
  GArray *segments;  /* LsSegment: of all programs */
  GArray *ops;       /* LsOp: of the segment that is being made */
  GHashTable *names; /* of the profile -> of the plan */
  const LsProfileStep *step;
  guint *place; /* of each op of the step, in its segment */
  guint *event; /* of each op; NO_EVENT: none */
  guint n_events;
  int64_t begins;      /* when the host issues the first op */
  int64_t host, spare; /* its clock; by how much it is ahead of the profile's */
  uint32_t streams;    /* bits: that its ops are on */
} Program;

static const LsProfileOp *
op_at (const Program *p, guint i)
{
  return &g_array_index (p->step->ops, LsProfileOp, i);
}

/* ---- the groups of its collectives ---- */

/* Words of a description, as Megatron-LM, DeepSpeed and DeviceMesh write them, in small letters. */
static const struct {
  const char *word;
  uint8_t slot, axis;
} words[] = {
  { "tensor", LS_SLOT_TP, LS_AXIS_TP },      { "tp", LS_SLOT_TP, LS_AXIS_TP },
  { "context", LS_SLOT_CP, LS_AXIS_CP },     { "cp", LS_SLOT_CP, LS_AXIS_CP },
  { "sequence", LS_SLOT_CP, LS_AXIS_CP },    { "expert", LS_SLOT_EP, LS_AXIS_EP },
  { "ep", LS_SLOT_EP, LS_AXIS_EP },          { "embedding", LS_SLOT_EMBEDDING, LS_AXIS_PP },
  { "pipeline", LS_SLOT_MODEL, LS_AXIS_PP }, { "pp", LS_SLOT_MODEL, LS_AXIS_PP },
  { "shard", LS_SLOT_SHARD, LS_AXIS_DP },    { "replicate", LS_SLOT_REPLICA, LS_AXIS_DP },
  { "data", LS_SLOT_DP, LS_AXIS_DP },        { "dp", LS_SLOT_DP, LS_AXIS_DP },
  { "fsdp", LS_SLOT_DP, LS_AXIS_DP },        { "ddp", LS_SLOT_DP, LS_AXIS_DP },
};

static bool
find_by_words (const char *said, LsProfileGroup *g)
{
  g_autofree char *text = g_ascii_strdown (said, -1);
  g_auto (GStrv) parts = g_strsplit (g_strcanon (text, "abcdefghijklmnopqrstuvwxyz0123456789", ' '), " ", -1);
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_strv_contains ((const char *const *) parts, words[i].word)) {
      g->slot = words[i].slot;
      g->axis = words[i].axis;
      return true;
    }
  return false;
}

static LsProfileGroup
describe (const LsKinetoGroup *k, uint32_t n_ranks)
{
  bool is_all = k->size == (int64_t) n_ranks;
  LsProfileGroup g = { .size = (uint32_t) k->size,
                       .stride = is_all ? 1 : (uint32_t) k->stride,
                       .called = *k->what ? k->what : k->name };
  if (find_by_words (k->what, &g) || find_by_words (k->name, &g))
    return g;
  bool is_inner = !is_all && g.stride == 1;
  g.slot = is_inner ? LS_SLOT_TP : LS_SLOT_DP;
  g.axis = is_inner ? LS_AXIS_TP : LS_AXIS_DP;
  g.is_inferred = true;
  return g;
}

/* ---- how many ranks ---- */

static int64_t
ranks_seen (const LsKineto *k)
{
  int64_t n = MAX (k->world_size, k->rank + 1);
  for (guint i = 0; i < k->groups->len; i++) {
    const LsKinetoGroup *g = &g_array_index (k->groups, LsKinetoGroup, i);
    n = MAX (n, MAX (g->size, g->start + (g->size - 1) * g->stride + 1));
  }
  return MAX (n, 1);
}

static bool
is_tiled (const LsKinetoGroup *g, uint32_t n_ranks)
{
  int64_t block = g->size * g->stride;
  return g->size > 1 && (g->size == n_ranks || (g->stride > 0 && block <= n_ranks && n_ranks % block == 0));
}

/* ---- mesh ---- */

static LsProfileGroup *
group_at (const LsProfileGroups *p, guint i)
{
  return &g_array_index (p->groups, LsProfileGroup, i);
}

/* The inner and the outer dimension, and all ranks; NULL: there is none. False: they are something else. */
static bool
find_dimensions (const LsProfileGroups *p, LsProfileGroup **inner, LsProfileGroup **outer,
                 LsProfileGroup **all)
{
  for (guint i = 0; i < p->groups->len; i++) {
    LsProfileGroup *g = group_at (p, i),
                   **where = g->size == p->n_ranks ? all
        : g->axis == LS_AXIS_TP && g->stride == 1  ? inner
        : g->slot == LS_SLOT_DP                    ? outer
                                                   : NULL;
    if (!where || *where)
      return false;
    *where = g;
  }
  return true;
}

/* tp neighbours, dp groups of ranks as far apart, stages of what is left. */
static bool
find_mesh (LsProfileGroups *p)
{
  LsProfileGroup *inner = NULL, *outer = NULL, *all = NULL;
  if (!find_dimensions (p, &inner, &outer, &all))
    return false;
  if (all && !inner && !outer) {
    bool is_tp = all->axis == LS_AXIS_TP;
    all->slot = is_tp ? LS_SLOT_TP : LS_SLOT_DP;
    p->mesh = (LsMesh) { .tp = is_tp ? all->size : 1, .cp = 1, .dp = is_tp ? 1 : all->size, .pp = 1 };
    return true;
  }
  uint32_t tp = inner ? inner->size : outer ? outer->stride : 1, dp = outer ? outer->size : p->n_ranks / tp;
  if ((inner && outer && outer->stride != tp) || p->n_ranks % (tp * dp) != 0
      || p->n_ranks / (tp * dp) > MAX_STAGES)
    return false;
  p->mesh = (LsMesh) { .tp = tp, .cp = 1, .dp = dp, .pp = p->n_ranks / tp / dp };
  if (inner)
    inner->slot = LS_SLOT_TP;
  if (all)
    all->slot = LS_SLOT_WORLD;
  return true;
}

/* ---- slots ---- */

/* Each group has a slot of its own: the one of its name, or the next that is free. False: none is. */
static bool
give_slots (LsProfileGroups *p)
{
  uint32_t taken = 0;
  for (guint i = 0; i < p->groups->len; i++) {
    LsProfileGroup *g = group_at (p, i);
    uint8_t slot = g->slot;
    for (uint8_t other = 0; (taken & LS_SLOT_BIT (slot)) && other < LS_SLOT_PREV; other++)
      slot = taken & LS_SLOT_BIT (other) ? slot : other;
    if (taken & LS_SLOT_BIT (slot))
      return false;
    taken |= LS_SLOT_BIT (slot);
    g->slot = slot;
  }
  return true;
}

/* Groups of the same ranks are one. */
static guint
find_same (const LsProfileGroups *p, const LsProfileGroup *g)
{
  guint i = 0;
  while (i < p->groups->len && (group_at (p, i)->size != g->size || group_at (p, i)->stride != g->stride))
    i++;
  return i;
}

static void
collect (const LsKineto *k, const bool *is_used, LsProfileGroups *p)
{
  for (guint i = 0; i < k->groups->len; i++) {
    const LsKinetoGroup *said = &g_array_index (k->groups, LsKinetoGroup, i);
    if (!is_used[i] || !is_tiled (said, p->n_ranks))
      continue;
    LsProfileGroup g = describe (said, p->n_ranks);
    if (find_same (p, &g) == p->groups->len && p->groups->len < LS_SLOT_PREV)
      g_array_append_val (p->groups, g);
  }
}

/* Of each group of a profile the slot; LS_N_SLOTS: it is not bound. Newly allocated. */
static uint8_t *
slots_of (const LsProfileGroups *groups, const LsKineto *k)
{
  uint8_t *slots = g_new (uint8_t, k->groups->len + 1);
  for (guint i = 0; i < k->groups->len; i++) {
    const LsKinetoGroup *said = &g_array_index (k->groups, LsKinetoGroup, i);
    LsProfileGroup g = describe (said, groups->n_ranks);
    guint at = is_tiled (said, groups->n_ranks) ? find_same (groups, &g) : groups->groups->len;
    slots[i] = at < groups->groups->len ? group_at (groups, at)->slot : LS_N_SLOTS;
  }
  return slots;
}

/* Of the profiles the groups that is_used marks. LS_ERROR_LIMIT: more ranks than a trace has. */
static gboolean
find_groups (const GArray *ranks, LsProfileGroups *ret, GError **error)
{
  int64_t n_ranks = 1;
  for (guint i = 0; i < ranks->len; i++)
    n_ranks = MAX (n_ranks, ranks_seen (rank_at (ranks, i)->k));
  if (n_ranks > MAX_RANKS)
    return ls_fail (error, LS_ERROR_LIMIT,
                    "%s: error: it is of %" G_GINT64_FORMAT " ranks; a trace has %d at most",
                    rank_at (ranks, 0)->k->path, n_ranks, MAX_RANKS);
  ret->n_ranks = (uint32_t) n_ranks;
  for (guint i = 0; i < ranks->len; i++)
    collect (rank_at (ranks, i)->k, rank_at (ranks, i)->is_used, ret);
  ret->has_mesh = find_mesh (ret);
  if (!ret->has_mesh && (!give_slots (ret) || n_ranks > MAX_LISTED))
    g_array_set_size (ret->groups, 0);
  return TRUE;
}

/* ---- binding ---- */

static void
bind_group (const LsProfileGroups *p, const LsProfileGroup *g, LsPlan *plan)
{
  for (uint32_t rank = 0; rank < p->n_ranks; rank++) {
    uint32_t block = g->size * g->stride, first = rank / block * block + rank % g->stride;
    LsBinding *b = &plan->bindings[rank];
    if (first == rank) {
      LsCommunicator *c = &plan->comms[plan->n_comms];
      *c = (LsCommunicator) { .axis = (LsAxis) g->axis, .n_ranks = g->size };
      c->offsets = ls_arena_new_array (plan->arena, uint32_t, g->size);
      for (uint32_t i = 0; i < g->size; i++)
        c->offsets[i] = rank + i * g->stride;
      b->comm[g->slot] = plan->n_comms++;
    } else
      b->comm[g->slot] = plan->bindings[first].comm[g->slot];
    b->member[g->slot] = (rank - first) / g->stride;
  }
}

static void
bind_listed (const LsProfileGroups *p, const uint32_t *role_of, LsPlan *plan)
{
  uint32_t n = 0;
  plan->n_ranks = p->n_ranks;
  plan->bindings = ls_arena_new_array (plan->arena, LsBinding, p->n_ranks);
  plan->gpu_of_rank = ls_arena_new_array (plan->arena, uint32_t, p->n_ranks);
  for (guint i = 0; i < p->groups->len; i++)
    n += p->n_ranks / group_at (p, i)->size;
  plan->comms = ls_arena_new_array (plan->arena, LsCommunicator, MAX (1, n));
  for (uint32_t rank = 0; rank < p->n_ranks; rank++) {
    LsBinding *b = &plan->bindings[rank];
    plan->gpu_of_rank[rank] = rank;
    b->role = role_of ? role_of[rank] : 0;
    b->peer[0] = b->peer[1] = UINT32_MAX;
    for (int s = 0; s < LS_N_SLOTS; s++)
      b->comm[s] = b->member[s] = UINT32_MAX;
  }
  for (guint i = 0; i < p->groups->len; i++)
    bind_group (p, group_at (p, i), plan);
}

/* ---- ops of the plan ---- */

static const char *
name_of (Program *p, const char *name)
{
  char *have = g_hash_table_lookup (p->names, name);
  if (have)
    return have;
  const char *plain = g_str_has_prefix (name, "void ") ? name + strlen ("void ") : name;
  g_autofree char *cut
      = g_utf8_strlen (plain, -1) > NAME_CHARS ? g_utf8_substring (plain, 0, NAME_CHARS) : g_strdup (plain);
  have = ls_arena_strdup (p->plan->arena, *cut ? cut : "op");
  g_hash_table_insert (p->names, (gpointer) name, have);
  return have;
}

static LsTime
scaled (const Program *p, int64_t ns)
{
  return (LsTime) llround ((double) (ns * PS_PER_NS) * p->changes->compute_scale);
}

/* Takes so long, whatever it is. */
static LsOp
op_of_length (LsOpKind kind, uint8_t stream, const char *name, int64_t ns)
{
  LsOp op = ls_op_blank (kind, (LsStream) stream, LS_TAG_SYNC, name);
  op.recorded = ns * PS_PER_NS;
  if (kind == LS_OP_COPY)
    op.direction = LS_COPY_TO_DEVICE;
  return op;
}

static LsOp
op_of (Program *p, const LsProfileOp *from, int64_t ns)
{
  LsOp op = op_of_length (LS_OP_KERNEL, from->stream, name_of (p, from->op->name), ns);
  if (from->kind == LS_PROFILE_KERNEL) {
    int64_t own = p->step->cut->thread, thread = from->op->thread;
    bool is_optimizer = from->op->class == LS_CLASS_OPTIMIZER,
         is_other = thread >= 0 && own >= 0 && thread != own;
    op.tag = is_optimizer ? LS_TAG_OPTIMIZER : is_other ? LS_TAG_B : LS_TAG_F;
    op.recorded = scaled (p, ns);
    op.beside = scaled (p, MIN (from->beside, ns));
  } else if (from->kind == LS_PROFILE_BESIDE) {
    op.kind = LS_OP_COPY;
    op.direction = strstr (from->op->name, "DtoH") ? LS_COPY_TO_HOST : LS_COPY_TO_DEVICE;
  } else {
    op.kind = LS_OP_COLLECTIVE;
    op.recorded = LS_TIME_NEVER;
    op.slot = from->slot;
    op.coll = (uint8_t) (from->op->class - LS_CLASS_OF_COLL);
    op.algorithm = LS_ALGORITHM_CHOOSE;
    op.bytes = from->op->bytes;
    op.dtype = from->op->dtype;
  }
  return op;
}

static void
put (Program *p, LsOp op, const GArray *deps)
{
  if (deps && deps->len > 0) {
    LsDep *own = ls_arena_new_array (p->plan->arena, LsDep, deps->len);
    memcpy (own, deps->data, deps->len * sizeof (LsDep));
    op.deps = own;
    op.n_deps = (uint16_t) deps->len;
  }
  g_array_append_val (p->ops, op);
}

/* An op that waits for these streams. */
static void
put_join (Program *p, LsOpKind kind, const char *name, uint32_t streams)
{
  g_autoptr (GArray) deps = g_array_new (FALSE, FALSE, sizeof (LsDep));
  for (uint16_t s = 0; s < LS_N_STREAMS; s++) {
    const LsDep dep = { LS_DEP_STREAM, s };
    if (streams & (1u << s))
      g_array_append_val (deps, dep);
  }
  put (p, ls_op_blank (kind, LS_STREAM_COMPUTE, LS_TAG_SYNC, name), deps);
}

/* Waits for an event, or records it. */
static void
put_event (Program *p, LsOpKind kind, const char *name, uint8_t stream, guint event)
{
  LsOp op = ls_op_blank (kind, (LsStream) stream, LS_TAG_SYNC, name);
  op.event = (uint16_t) event;
  put (p, op, NULL);
}

static void
end_segment (Program *p, const char *name)
{
  if (p->ops->len == 0)
    return;
  LsSegment s = { .name = name, .n_ops = p->ops->len };
  s.ops = ls_arena_new_array (p->plan->arena, LsOp, p->ops->len);
  memcpy (s.ops, p->ops->data, p->ops->len * sizeof (LsOp));
  g_array_append_val (p->segments, s);
  g_array_set_size (p->ops, 0);
}

/* ---- waits within a segment, and beyond ---- */

static guint
segment_of (guint op)
{
  return op / SEGMENT_OPS;
}

static void
find_events (Program *p)
{
  for (guint i = 0; i < p->step->ops->len; i++)
    p->event[i] = NO_EVENT;
  for (guint i = 0; i < p->step->ops->len; i++) {
    const LsProfileOp *op = op_at (p, i);
    for (guint w = 0; w < op->n_waits; w++) {
      guint on = g_array_index (p->step->waits, guint, op->first_wait + w);
      if (segment_of (on) != segment_of (i) && p->event[on] == NO_EVENT)
        p->event[on] = p->n_events++;
    }
  }
}

/* A wait within the segment is a dependency, others are waits for events, put before it. */
static GArray *
deps_of (Program *p, guint i)
{
  const LsProfileOp *op = op_at (p, i);
  GArray *deps = g_array_new (FALSE, FALSE, sizeof (LsDep));
  for (guint n = 0; n < op->n_waits; n++) {
    guint on = g_array_index (p->step->waits, guint, op->first_wait + n);
    const LsDep dep = { LS_DEP_END, (uint16_t) p->place[on] };
    if (segment_of (on) == segment_of (i))
      g_array_append_val (deps, dep);
    else
      put_event (p, LS_OP_WAIT, "wait", op->stream, p->event[on]);
  }
  return deps;
}

/* ---- what the host does ---- */

static void
delay_until (Program *p, int64_t at)
{
  if (at > p->host && !p->changes->without_stalls)
    put (p, op_of_length (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, "host", at - p->host), NULL);
  p->host = MAX (p->host, at);
}

static void
put_sync (Program *p, const LsProfileSync *sync)
{
  delay_until (p, sync->start - p->spare);
  put_join (p, LS_OP_HOST_SYNC, "sync", sync->streams);
  if (sync->resolved >= p->host) {
    p->host = sync->resolved;
    p->spare = 0;
  }
}

/* How long a launch waited for room in the queue: so many ops were issued before it and had not started. */
static int64_t
blocked (const LsProfileOp *op, const GArray *starts, guint issued)
{
  const int64_t later = MIN (op->launch, G_MAXINT64 - 1) + 1;
  int64_t call = op->op->called == LS_KINETO_NONE ? 0 : op->op->called - op->op->launch;
  return call > BLOCKED_NS && issued >= QUEUE_OPS + ls_list_first_from (starts, ls_compare_int64, &later)
      ? call
      : 0;
}

/* The first op that is put for it has its waits. */
static void
put_op (Program *p, guint i, const GArray *starts)
{
  const LsProfileOp *op = op_at (p, i);
  p->streams |= 1u << op->stream;
  if (op->is_hosts)
    p->spare = 0;
  if (op->issue != LS_KINETO_NONE)
    delay_until (p, op->issue - p->spare);
  if (i > 0 && segment_of (i) != segment_of (i - 1))
    end_segment (p, "step");
  g_autoptr (GArray) deps = deps_of (p, i);
  if (op->wait > 0 && !p->changes->without_stalls) {
    put (p, op_of_length (LS_OP_COPY, op->stream, LS_OP_NOT_EXPLAINED, op->wait), deps);
    g_array_set_size (deps, 0);
  }
  int64_t begun = op->wait > 0 || op->is_hosts ? op->start : op->ready;
  put (p, op_of (p, op, MAX (0, op->end - begun)), deps);
  p->place[i] = p->ops->len - 1;
  if (p->event[i] != NO_EVENT)
    put_event (p, LS_OP_RECORD, "record", op->stream, p->event[i]);
  p->spare += blocked (op, starts, i);
}

/* The host goes on with the next step when it did. Without a next one it waits for the GPU. */
static void
end_step (Program *p)
{
  const LsMeasuredStep *cut = p->step->cut;
  int64_t length = p->step->length, next = cut->next_launch;
  if (cut->is_open) {
    const LsProfileSync all = { .start = G_MININT64 / 2, .streams = p->streams, .resolved = length };
    put_sync (p, &all);
  } else if (next == LS_KINETO_NONE)
    delay_until (p, p->begins + length);
  else
    delay_until (p, MIN (next - cut->start + p->step->latency, p->begins + length) - p->spare);
}

static void
put_step (Program *p)
{
  const GArray *syncs = p->step->syncs;
  guint n = p->step->ops->len, sync = 0;
  g_autoptr (GArray) starts = g_array_sized_new (FALSE, FALSE, sizeof (int64_t), n);
  for (guint i = 0; i < n; i++)
    g_array_append_val (starts, op_at (p, i)->start);
  g_array_sort (starts, ls_compare_int64);
  p->host = p->begins;
  for (guint i = 0; i <= n; i++) {
    for (; sync < syncs->len && (i == n || g_array_index (syncs, LsProfileSync, sync).before <= i); sync++)
      put_sync (p, &g_array_index (syncs, LsProfileSync, sync));
    if (i < n)
      put_op (p, i, starts);
  }
  if (p->step->joined)
    put_join (p, LS_OP_RECORD, "step ends", p->step->joined);
  end_step (p);
  end_segment (p, "step");
}

/* ---- programs ---- */

static gboolean
put_program (Program *p, LsProgram *program, GError **error)
{
  uint32_t first = p->segments->len;
  int64_t issue = op_at (p, 0)->issue;
  find_events (p);
  if (p->n_events >= LS_EVENT_NONE)
    return ls_fail (error, LS_ERROR_LIMIT, "%s: error: more than %u events in a step", p->step->profile->path,
                    LS_EVENT_NONE);
  p->begins = issue == LS_KINETO_NONE ? 0 : issue;
  program->n_lead = p->begins < 0 && !p->changes->without_stalls;
  if (program->n_lead > 0) { /* what of the step before still runs as the first step begins */
    put (p, op_of_length (LS_OP_COPY, LS_STREAM_COMPUTE, "step before", -p->begins), NULL);
    end_segment (p, "before");
  }
  put_step (p);
  program->n_events = p->n_events;
  program->n_instances = p->segments->len - first;
  program->instances = ls_arena_new_array (p->plan->arena, LsInstance, program->n_instances);
  for (uint32_t i = 0; i < program->n_instances; i++)
    program->instances[i] = (LsInstance) { .segment = first + i };
  return TRUE;
}

/* One stage after the other runs the only program, if there is one. */
static void
repeat_stages (LsPlan *plan, guint n_written)
{
  for (uint32_t r = 0; r < plan->n_roles; r++) {
    LsProgram *p = &plan->programs[r];
    if (r >= n_written) {
      *p = plan->programs[0];
      p->instances = ls_arena_new_array (plan->arena, LsInstance, p->n_instances);
      memcpy (p->instances, plan->programs[0].instances, p->n_instances * sizeof (LsInstance));
    }
    p->stage = (uint16_t) r;
    for (uint32_t i = 0; i < p->n_instances; i++)
      p->instances[i].stage = (uint16_t) r;
  }
}

/* all: what programs of the plan have in common. */
static gboolean
write_one (const Program *all, const LsProfileStep *step, LsProgram *program, GError **error)
{
  if (step->ops->len > MAX_OPS)
    return ls_fail (
        error, LS_ERROR_LIMIT,
        "%s: error: %u kernels and copies in a step; a trace takes %d at most: choose fewer steps",
        step->profile->path, step->ops->len, MAX_OPS);
  g_autofree guint *event = g_new0 (guint, step->ops->len + 1), *place = g_new0 (guint, step->ops->len + 1);
  Program p = *all;
  p.step = step;
  p.event = event;
  p.place = place;
  return put_program (&p, program, error);
}

/* One program for each step; of one profile all ranks run it, of several role_of says which [n_ranks]. The
 * plan is checked. LS_ERROR_LIMIT: too many ops; else as of ls_plan_check(). */
static LsPlan *
plan_of (const GArray *ranks, const LsProfileGroups *groups, const uint32_t *role_of,
         const LsProfileChanges *changes, GError **error)
{
  guint n = ranks->len;
  g_autoptr (LsPlan) plan = g_new0 (LsPlan, 1);
  plan->arena = ls_arena_new ();
  plan->n_micro_batches = plan->n_chunks = 1;
  plan->n_roles = role_of ? n : groups->has_mesh ? groups->mesh.pp : 1;
  plan->programs = ls_arena_new_array (plan->arena, LsProgram, plan->n_roles);
  plan->kernels = ls_arena_new_array (plan->arena, LsKernel, 1);
  g_autoptr (GArray) segments = g_array_new (FALSE, FALSE, sizeof (LsSegment)),
                     ops = g_array_new (FALSE, FALSE, sizeof (LsOp));
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  const Program all = { .plan = plan, .changes = changes, .segments = segments, .ops = ops, .names = names };
  for (guint i = 0; i < n; i++)
    if (!write_one (&all, rank_at (ranks, i)->step, &plan->programs[i], error))
      return NULL;
  plan->n_segments = segments->len;
  plan->segments = ls_arena_new_array (plan->arena, LsSegment, MAX (1, segments->len));
  memcpy (plan->segments, segments->data, segments->len * sizeof (LsSegment));
  repeat_stages (plan, n);
  uint32_t slots = 0;
  for (guint i = 0; i < groups->groups->len; i++)
    slots |= LS_SLOT_BIT (group_at (groups, i)->slot);
  if (groups->has_mesh && !role_of) /* roles are stages */
    ls_plan_bind_mesh (plan, &groups->mesh, slots);
  else
    bind_listed (groups, role_of, plan);
  return ls_plan_check (plan, error) ? g_steal_pointer (&plan) : NULL;
}

/* --- profiles as a trace ------------------------------------------------------------------------------ */

typedef struct {
  const LsProfileImportSpec *spec;
  GArray *ranks; /* Rank */
  LsProfileGroups groups;
  LsProfileImport *import;
} Importing;

void
ls_profile_import_free (LsProfileImport *import)
{
  if (!import)
    return;
  g_free (import->text);
  g_free (import->gpu);
  g_free (import->what);
  g_array_unref (import->traffic);
  g_ptr_array_unref (import->notes);
  g_free (import);
}

static void
rank_clear (gpointer data)
{
  Rank *r = data;
  ls_profile_step_free (r->step);
  ls_measured_step_clear (&r->cut);
  ls_kineto_free (r->k);
  g_free (r->is_used);
  g_free (r->slot_of);
}

/* ---- files ---- */

/* Takes k. */
static gboolean
take (Importing *m, LsKineto *k, GError **error)
{
  Rank *r = ls_list_add (m->ranks, &(Rank) { .k = k });
  if (!ls_measured_step_cut (r->k, m->spec->step, &r->cut, error))
    return FALSE;
  r->is_used = g_new0 (bool, k->groups->len + 1);
  for (guint i = 0; i < r->cut.chosen->len; i++) {
    const LsKinetoOp *op = &g_array_index (k->ops, LsKinetoOp, g_array_index (r->cut.chosen, guint, i));
    if (ls_profile_is_known (op))
      r->is_used[op->group - 1] = true;
  }
  return TRUE;
}

/* Takes loaded; NULL: the files of the spec. */
static gboolean
take_all (Importing *m, LsKineto *loaded, GError **error)
{
  gboolean ok = !loaded || take (m, loaded, error);
  for (guint i = 0; ok && !loaded && m->spec->paths[i]; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsKineto *k = ls_kineto_load (m->spec->paths[i], diags);
    ok = k ? take (m, k, error) : ls_diag_list_to_error (diags, error);
  }
  return ok;
}

static int
by_rank (gconstpointer a, gconstpointer b)
{
  const Rank *x = a, *y = b;
  return LS_ORDER (x->k->rank, y->k->rank);
}

/* Several profiles must say which ranks they are of, each another one. */
static gboolean
check_ranks (Importing *m, GError **error)
{
  for (guint i = 0; m->ranks->len > 1 && i < m->ranks->len; i++)
    if (rank_at (m->ranks, i)->k->rank < 0)
      return ls_fail (error, LS_ERROR_INPUT,
                      "%s: error: it does not say of which rank it is (\"rank\" of distributedInfo), which "
                      "several profiles must",
                      rank_at (m->ranks, i)->k->path);
  g_array_sort (m->ranks, by_rank);
  for (guint i = 1; i < m->ranks->len; i++)
    if (rank_at (m->ranks, i)->k->rank == rank_at (m->ranks, i - 1)->k->rank)
      return ls_fail (error, LS_ERROR_CONFLICT,
                      "%s: error: it is of rank %" G_GINT64_FORMAT ", as another one is",
                      rank_at (m->ranks, i)->k->path, rank_at (m->ranks, i)->k->rank);
  return TRUE;
}

/* ---- steps and groups ---- */

/* Of each rank the profile: its own, or of the nearest below. NULL: one for all. */
static uint32_t *
roles_of (const Importing *m)
{
  if (m->ranks->len == 1)
    return NULL;
  uint32_t *role_of = g_new0 (uint32_t, m->groups.n_ranks);
  for (uint32_t rank = 0, at = 0; rank < m->groups.n_ranks; rank++) {
    while (at + 1 < m->ranks->len && rank_at (m->ranks, at + 1)->k->rank <= rank)
      at++;
    role_of[rank] = at;
  }
  return role_of;
}

static char *
source_of (const Importing *m, const LsPlan *plan)
{
  const Rank *r = rank_at (m->ranks, 0);
  g_autofree char *kept = ls_op_classes_recorded (plan), *file = g_path_get_basename (r->k->path),
                  *length = ls_format_time (r->cut.side->length),
                  *others
      = m->ranks->len > 1 ? g_strdup_printf (" and of %u other ranks", m->ranks->len - 1) : g_strdup ("");
  return g_strdup_printf ("%s of the profile %s%s%s%s, which took %s%s%s%s%s%s%s", r->cut.what, file, others,
                          r->k->gpu ? " of " : "", r->k->gpu ? r->k->gpu : "", length,
                          ls_plan_has_ops (plan, LS_TAKES_NETWORK, false) ? "; communication of ours" : "",
                          kept ? "; " : "", kept ? kept : "", kept ? " as measured" : "",
                          m->spec->changes.without_stalls ? ", without stalls" : "",
                          m->spec->changes.compute_scale != 1 ? ", kernels scaled" : "");
}

static gboolean
write_text (Importing *m, GError **error)
{
  g_autofree uint32_t *role_of = roles_of (m);
  g_autoptr (LsPlan) plan = plan_of (m->ranks, &m->groups, role_of, &m->spec->changes, error);
  if (!plan) {
    if (m->ranks->len > 1)
      g_prefix_error (error, "the profiles are not of the same step of one job: ");
    return FALSE;
  }
  const char *gpu = m->import->gpu = g_strdup (rank_at (m->ranks, 0)->k->gpu);
  g_autofree char *source = source_of (m, plan);
  g_ptr_array_add (m->import->notes, NULL);
  g_autofree char *assumes = g_strjoinv (" | ", (char **) m->import->notes->pdata);
  g_ptr_array_set_size (m->import->notes, (int) m->import->notes->len - 1);
  const LsTraceHead head = { .name = m->spec->name,
                             .source = source,
                             .measured_on = gpu,
                             .assumes = assumes,
                             .compute_scale = m->spec->changes.compute_scale,
                             .mesh = m->groups.has_mesh && !role_of ? &m->groups.mesh : NULL };
  m->import->text = ls_trace_format (plan, &head, error);
  return m->import->text != NULL;
}

/* ---- what is told ---- */

/* By what they are, then those alike are one. */
static const LsSortKey by_kind[] = { { LS_RISING (LsProfileTraffic, class) },
                                     { LS_RISING (LsProfileTraffic, bytes) },
                                     { LS_RISING (LsProfileTraffic, size) },
                                     { LS_RISING (LsProfileTraffic, is_ours) },
                                     { 0 } };

static void
join_alike (GArray *list)
{
  guint n = 0;
  ls_sort_by (list, by_kind);
  for (guint i = 0; i < list->len; i++) {
    const LsProfileTraffic t = g_array_index (list, LsProfileTraffic, i);
    LsProfileTraffic *last = n > 0 ? &g_array_index (list, LsProfileTraffic, n - 1) : NULL;
    if (last && ls_compare_by (last, &t, (gpointer) by_kind) == 0) {
      last->n++;
      last->time += t.time;
    } else
      g_array_index (list, LsProfileTraffic, n++) = t;
  }
  g_array_set_size (list, n);
}

static const LsSortKey most_time_first[]
    = { { LS_FALLING (LsProfileTraffic, time) },   { LS_RISING (LsProfileTraffic, class) },
        { LS_RISING (LsProfileTraffic, bytes) },   { LS_RISING (LsProfileTraffic, size) },
        { LS_RISING (LsProfileTraffic, is_ours) }, { 0 } };

static void
count (Importing *m)
{
  LsProfileImport *import = m->import;
  const Rank *r = rank_at (m->ranks, 0);
  for (guint i = 0; i < r->step->ops->len; i++) {
    const LsProfileOp *op = &g_array_index (r->step->ops, LsProfileOp, i);
    uint32_t group = op->op->group;
    LsTime time = (op->end - op->start) * PS_PER_NS;
    import->takes_dp
        |= op->kind == LS_PROFILE_COLLECTIVE && (op->slot == LS_SLOT_DP || op->slot == LS_SLOT_WORLD);
    const LsProfileTraffic one
        = { .class = op->op->class,
            .bytes = op->op->bytes,
            .size = group ? (uint32_t) g_array_index (r->k->groups, LsKinetoGroup, group - 1).size : 0,
            .is_ours = op->kind == LS_PROFILE_COLLECTIVE,
            .n = 1,
            .time = time };
    if (ls_op_class_is_communication ((LsOpClass) op->op->class))
      g_array_append_val (import->traffic, one);
    else if (op->op->class == LS_CLASS_COPY)
      import->n_copies++;
    else {
      import->n_kernels++;
      import->kernels += time;
    }
    if (op->is_hosts && op->start > op->ready)
      import->host_late += (op->start - op->ready) * PS_PER_NS * (op->stream == LS_STREAM_COMPUTE);
  }
  join_alike (import->traffic);
  ls_sort_by (import->traffic, most_time_first);
  import->n_syncs = r->step->syncs->len;
  import->step = r->cut.side->length;
  import->what = g_strdup (r->cut.what);
  import->n_profiles = m->ranks->len;
  import->n_ranks = m->groups.n_ranks;
  import->has_mesh = m->groups.has_mesh && m->ranks->len == 1;
  import->mesh = m->groups.mesh;
}

static void
note_step (Importing *m)
{
  const Rank *r = rank_at (m->ranks, 0);
  const guint n = r->k->steps->len;
  g_autofree char *of = n > 0
      ? g_strdup_printf (", of %u steps in the profile%s", n, m->spec->step ? "" : ", the last whole one")
      : g_strdup (", as the profile marks no steps");
  ls_note (m->import->notes, "%s is replayed%s%s: lockstep trace import PROFILE --step %s for another",
           r->cut.what, of, r->cut.is_open ? "; no next step, so it is assumed to end with its last op" : "",
           n > 0 ? "N" : "FROM:TO");
}

static void
note_ranks (Importing *m)
{
  uint32_t n = m->groups.n_ranks;
  if (m->ranks->len == 1 && n > 1)
    ls_note (m->import->notes,
             "one profile stands for all %u ranks: they run the same, and arrive at collectives together", n);
  else if (m->ranks->len < n)
    ls_note (m->import->notes, "%u of %u ranks have a profile: another runs that of the nearest below it",
             m->ranks->len, n);
  for (guint i = 0; i < m->groups.groups->len; i++) {
    const LsProfileGroup *g = &g_array_index (m->groups.groups, LsProfileGroup, i);
    if (g->is_inferred)
      ls_note (m->import->notes, "the group \"%s\" of %u ranks, %u apart, is assumed to be %s", g->called,
               g->size, g->stride, ls_slot_names[g->slot].name);
  }
}

/* Sends and receives between two ranks are rows of each replay, and in its source. */
static void
note_unknown (Importing *m)
{
  guint n = 0, of = 0;
  LsTime time = 0;
  for (guint i = 0; i < m->import->traffic->len; i++) {
    const LsProfileTraffic *t = &g_array_index (m->import->traffic, LsProfileTraffic, i);
    of += t->n;
    n += t->is_ours || t->class == LS_CLASS_SEND_RECV ? 0 : t->n;
    time += t->is_ours ? 0 : t->time;
  }
  g_autofree char *length = ls_format_time (time);
  if (!m->spec->as_measured && n > 0)
    ls_note (
        m->import->notes,
        "%u of %u communication kernels do not say what they move, or among which ranks: they take the time "
        "that they took on any cluster (with what other kernels of this kind took, %s)",
        n, of, length);
}

static void
note_waits (Importing *m)
{
  const LsProfileStep *step = rank_at (m->ranks, 0)->step;
  if (step->n_inferred > 0)
    ls_note (m->import->notes,
             "%u waits between streams are inferred from the order of launches and the times of ops (%u are "
             "reported by the profile)",
             step->n_inferred, step->n_told);
  if (step->n_shared > 0)
    ls_note (m->import->notes, "%u streams share one with others: a replay has %d", step->n_shared,
             LS_N_STREAMS);
}

/* Whether the host is as far ahead of the GPU as the step ends as it was when it began. */
static void
note_unsteady (Importing *m)
{
  const LsMeasuredStep *cut = &rank_at (m->ranks, 0)->cut;
  const LsProfileOp *first = &g_array_index (rank_at (m->ranks, 0)->step->ops, LsProfileOp, 0);
  if (cut->next_launch == LS_KINETO_NONE || first->launch == LS_KINETO_NONE)
    return;
  int64_t ahead = (cut->end - cut->next_launch) - (first->start - first->launch);
  g_autofree char *length = ls_format_time (ABS (ahead) * PS_PER_NS);
  if (ABS (ahead) > (cut->end - cut->start) / 100)
    ls_note (
        m->import->notes,
        "%s is no steady step: the host %s the GPU by %s in it; a replay, which repeats it, may take another "
        "time",
        cut->what, ahead > 0 ? "gets ahead of" : "falls back towards", length);
}

/* Of kernels that ran beside communication. */
static void
note_beside (Importing *m)
{
  const LsProfileStep *step = rank_at (m->ranks, 0)->step;
  LsTime time = 0;
  for (guint i = 0; i < step->ops->len; i++)
    time += g_array_index (step->ops, LsProfileOp, i).beside * PS_PER_NS;
  g_autofree char *length = ls_format_time (time);
  if (time > 0)
    ls_note (m->import->notes,
             "%s of kernels ran together with communication that is ours now: their times hold its slowdown, "
             "which the replay does not add again, nor take away where there is less communication",
             length);
}

static gboolean
import_all (Importing *m, LsKineto *loaded, GError **error)
{
  if (!take_all (m, loaded, error) || !check_ranks (m, error) || !find_groups (m->ranks, &m->groups, error))
    return FALSE;
  for (guint i = 0; i < m->ranks->len; i++) {
    Rank *r = rank_at (m->ranks, i);
    r->slot_of = slots_of (&m->groups, r->k);
    r->step = ls_profile_step_new (r->k, &r->cut, r->slot_of, m->spec->as_measured);
  }
  count (m);
  note_step (m);
  note_ranks (m);
  note_unknown (m);
  note_waits (m);
  note_unsteady (m);
  note_beside (m);
  gboolean ok = write_text (m, error);
  for (guint i = 0; i < m->ranks->len; i++)
    g_ptr_array_extend_and_steal (m->import->notes, g_ptr_array_ref (rank_at (m->ranks, i)->k->notes));
  return ok;
}

LsProfileImport *
ls_profile_import_new (LsKineto *k, const LsProfileImportSpec *spec, GError **error)
{
  g_autoptr (LsProfileImport) import = g_new0 (LsProfileImport, 1);
  import->traffic = g_array_new (FALSE, FALSE, sizeof (LsProfileTraffic));
  import->notes = g_ptr_array_new_with_free_func (g_free);
  Importing m = { .spec = spec, .import = import, .ranks = ls_list_new (sizeof (Rank), rank_clear) };
  m.groups.groups = g_array_new (FALSE, FALSE, sizeof (LsProfileGroup));
  gboolean ok = import_all (&m, k, error);
  g_array_unref (m.ranks);
  g_array_unref (m.groups.groups);
  return ok ? g_steal_pointer (&import) : NULL;
}
