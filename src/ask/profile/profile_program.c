#include "ask/profile/profile_program.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "plan/mesh.h"

#define PS_PER_NS   1000
#define SEGMENT_OPS 12000 /* each of which is four ops at most: a segment has 60,000 */
#define MAX_OPS     2000000
#define BLOCKED_NS  20000
#define QUEUE_OPS   500 /* of the 1024 that a GPU's queue takes, kernels and copies */
#define NAME_CHARS  60
#define NO_EVENT    G_MAXUINT

/* What becomes an op of the plan. */
typedef enum { ITEM_DELAY, ITEM_SYNC, ITEM_UNEXPLAINED, ITEM_OP, ITEM_JOIN } ItemKind;

typedef struct {
  uint8_t kind;     /* ItemKind */
  bool takes_waits; /* the first of its op */
  guint op;         /* of the step         */
  int64_t ns;
  uint32_t streams; /* bits: of a sync or join, waited for */
} Item;

typedef struct {
  const LsProfileStep *step;
  const LsMeasuredStep *cut;
  const LsProfileChanges *changes;
  GArray *items; /* Item */
  guint *event;  /* of each op; NO_EVENT: none */
  guint n_events;
  int64_t begins;      /* when the host issues the first op */
  int64_t host, spare; /* its clock; by how much it is ahead of the profile's */
  uint32_t streams;    /* bits: that its ops are on */
} Program;

typedef struct {
  LsPlan *plan;
  GArray *segments;  /* LsSegment */
  GArray *ops;       /* LsOp: of the segment that is being made */
  GHashTable *names; /* of the profile -> of the plan */
  guint *place;      /* of each op of the step, in its segment */
} Writing;

static const LsProfileOp *
op_at (const Program *p, guint i)
{
  return &g_array_index (p->step->ops, LsProfileOp, i);
}

/* ---- the groups of its collectives ---- */

#define MAX_STAGES 1024

void
ls_profile_groups_clear (LsProfileGroups *groups)
{
  g_clear_pointer (&groups->groups, g_array_unref);
}

/* ---- what a group is ---- */

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
has_word (const char *text, const char *word)
{
  size_t n = strlen (word);
  for (const char *at = text; (at = strstr (at, word)); at += n)
    if ((at == text || !g_ascii_isalnum (at[-1])) && !g_ascii_isalnum (at[n]))
      return true;
  return false;
}

static bool
find_by_words (const char *said, LsProfileGroup *g)
{
  g_autofree char *text = g_ascii_strdown (said, -1);
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (has_word (text, words[i].word)) {
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

uint8_t *
ls_profile_groups_slots (const LsProfileGroups *groups, const LsKineto *k)
{
  uint8_t *slots = g_new0 (uint8_t, k->groups->len + 1);
  for (guint i = 0; i < k->groups->len; i++) {
    const LsKinetoGroup *said = &g_array_index (k->groups, LsKinetoGroup, i);
    bool is_tiled_group = is_tiled (said, groups->n_ranks);
    LsProfileGroup g = is_tiled_group ? describe (said, groups->n_ranks) : (LsProfileGroup) { 0 };
    guint at = is_tiled_group ? find_same (groups, &g) : groups->groups->len;
    slots[i] = at < groups->groups->len ? group_at (groups, at)->slot : LS_N_SLOTS;
  }
  return slots;
}

gboolean
ls_profile_groups_find (const LsKineto *const *profiles, const bool *const *is_used, guint n,
                        LsProfileGroups *ret_groups, GError **error)
{
  int64_t n_ranks = 1;
  for (guint i = 0; i < n; i++)
    n_ranks = MAX (n_ranks, ranks_seen (profiles[i]));
  *ret_groups = (LsProfileGroups) { 0 };
  if (n_ranks > LS_PROFILE_MAX_RANKS)
    return ls_fail (error, LS_ERROR_LIMIT,
                    "%s: error: it is of %" G_GINT64_FORMAT " ranks; a trace has %d at most",
                    profiles[0]->path, n_ranks, LS_PROFILE_MAX_RANKS);
  ret_groups->n_ranks = (uint32_t) n_ranks;
  ret_groups->groups = g_array_new (FALSE, FALSE, sizeof (LsProfileGroup));
  for (guint i = 0; i < n; i++)
    collect (profiles[i], is_used[i], ret_groups);
  ret_groups->has_mesh = find_mesh (ret_groups);
  if (!ret_groups->has_mesh && (!give_slots (ret_groups) || n_ranks > LS_PROFILE_MAX_LISTED))
    g_array_set_size (ret_groups->groups, 0);
  return TRUE;
}

/* ---- binding ---- */

static uint32_t
first_member (const LsProfileGroup *g, uint32_t rank)
{
  uint32_t block = g->size * g->stride;
  return rank / block * block + rank % g->stride;
}

static void
bind_group (const LsProfileGroups *p, const LsProfileGroup *g, LsPlan *plan)
{
  for (uint32_t rank = 0; rank < p->n_ranks; rank++) {
    uint32_t first = first_member (g, rank);
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

/* Binds all ranks of the plan: their roles are their stages, or, not NULL, those of role_of [n_ranks], which
 * lists them. */
static void
bind_groups (const LsProfileGroups *groups, const uint32_t *role_of, LsPlan *plan)
{
  uint32_t slots = 0;
  for (guint i = 0; i < groups->groups->len; i++)
    slots |= LS_SLOT_BIT (group_at (groups, i)->slot);
  if (groups->has_mesh && !role_of)
    ls_plan_bind_mesh (plan, &groups->mesh, slots);
  else
    bind_listed (groups, role_of, plan);
}

/* ---- what the host does ---- */

static void
add_item (Program *p, ItemKind kind, guint op, int64_t ns)
{
  const Item item = { .kind = (uint8_t) kind, .op = op, .ns = ns };
  g_array_append_val (p->items, item);
}

static void
delay_until (Program *p, int64_t at)
{
  if (at > p->host && !p->changes->without_stalls)
    add_item (p, ITEM_DELAY, 0, at - p->host);
  p->host = MAX (p->host, at);
}

static void
add_sync (Program *p, const LsProfileSync *sync)
{
  delay_until (p, sync->start - p->spare);
  add_item (p, ITEM_SYNC, 0, 0);
  g_array_index (p->items, Item, p->items->len - 1).streams = sync->streams;
  if (sync->resolved >= p->host) {
    p->host = sync->resolved;
    p->spare = 0;
  }
}

/* Ops that were issued before and had not started. */
static guint
n_ahead (const GArray *starts, guint issued, int64_t at)
{
  const int64_t later = at + 1;
  guint started = ls_list_first_from (starts, ls_compare_int64, &later);
  return issued > started ? issued - started : 0;
}

static GArray *
starts_of (const LsProfileStep *step)
{
  GArray *starts = g_array_sized_new (FALSE, FALSE, sizeof (int64_t), step->ops->len);
  for (guint i = 0; i < step->ops->len; i++)
    g_array_append_val (starts, g_array_index (step->ops, LsProfileOp, i).start);
  g_array_sort (starts, ls_compare_int64);
  return starts;
}

static int64_t
blocked (const LsProfileOp *op, const GArray *starts, guint i)
{
  int64_t call = op->op->called == LS_KINETO_NONE ? 0 : op->op->called - op->op->launch;
  return call > BLOCKED_NS && n_ahead (starts, i, op->launch) >= QUEUE_OPS ? call : 0;
}

static void
add_op (Program *p, guint i, const GArray *starts)
{
  const LsProfileOp *op = op_at (p, i);
  bool has_gap = op->wait > 0 && !p->changes->without_stalls;
  p->streams |= 1u << op->stream;
  if (op->is_hosts)
    p->spare = 0;
  if (op->issue != LS_KINETO_NONE)
    delay_until (p, op->issue - p->spare);
  if (has_gap)
    add_item (p, ITEM_UNEXPLAINED, i, op->wait);
  guint first = p->items->len - has_gap;
  int64_t begun = op->wait > 0 || op->is_hosts ? op->start : op->ready;
  add_item (p, ITEM_OP, i, MAX (0, op->end - begun));
  g_array_index (p->items, Item, first).takes_waits = true;
  p->spare += blocked (op, starts, i);
}

/* The host goes on with the next step when it did. Without a next one it waits for the GPU. */
static void
end_step (Program *p)
{
  int64_t length = p->step->length, next = p->cut->next_launch;
  if (p->cut->is_open) {
    const LsProfileSync all = { .start = G_MININT64 / 2, .streams = p->streams, .resolved = length };
    add_sync (p, &all);
  } else if (next == LS_KINETO_NONE)
    delay_until (p, p->begins + length);
  else
    delay_until (p, MIN (next - p->cut->start + p->step->latency, p->begins + length) - p->spare);
}

static void
list_items (Program *p)
{
  g_autoptr (GArray) starts = starts_of (p->step);
  const GArray *syncs = p->step->syncs;
  guint sync = 0;
  int64_t first = op_at (p, 0)->issue;
  p->begins = p->host = first == LS_KINETO_NONE ? 0 : first;
  for (guint i = 0; i < p->step->ops->len; i++) {
    for (; sync < syncs->len && g_array_index (syncs, LsProfileSync, sync).before <= i; sync++)
      add_sync (p, &g_array_index (syncs, LsProfileSync, sync));
    add_op (p, i, starts);
  }
  for (; sync < syncs->len; sync++)
    add_sync (p, &g_array_index (syncs, LsProfileSync, sync));
  if (p->step->joined) {
    add_item (p, ITEM_JOIN, 0, 0);
    g_array_index (p->items, Item, p->items->len - 1).streams = p->step->joined;
  }
  end_step (p);
}

/* ---- ops of the plan ---- */

static const char *
name_of (Writing *w, const char *name)
{
  char *have = g_hash_table_lookup (w->names, name);
  if (have)
    return have;
  const char *plain = g_str_has_prefix (name, "void ") ? name + strlen ("void ") : name;
  g_autofree char *cut
      = g_utf8_strlen (plain, -1) > NAME_CHARS ? g_utf8_substring (plain, 0, NAME_CHARS) : g_strdup (plain);
  have = ls_arena_strdup (w->plan->arena, *cut ? cut : "op");
  g_hash_table_insert (w->names, (gpointer) name, have);
  return have;
}

static LsTag
tag_of (const Program *p, const LsKinetoOp *op)
{
  bool is_other = op->thread >= 0 && p->cut->thread >= 0 && op->thread != p->cut->thread;
  return op->class == LS_CLASS_OPTIMIZER ? LS_TAG_OPTIMIZER : is_other ? LS_TAG_B : LS_TAG_F;
}

static LsTime
scaled (const Program *p, int64_t ns)
{
  return (LsTime) llround ((double) (ns * PS_PER_NS) * p->changes->compute_scale);
}

static LsOp
op_of (Writing *w, const Program *p, const Item *item)
{
  const LsProfileOp *from = op_at (p, item->op);
  LsOp op = ls_op_blank (LS_OP_KERNEL, (LsStream) from->stream, LS_TAG_SYNC, name_of (w, from->op->name));
  op.recorded = item->ns * PS_PER_NS;
  if (from->kind == LS_PROFILE_KERNEL) {
    op.tag = (uint8_t) tag_of (p, from->op);
    op.recorded = scaled (p, item->ns);
    op.beside = scaled (p, MIN (from->beside, item->ns));
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
put (Writing *w, LsOp op, const GArray *deps)
{
  if (deps && deps->len > 0) {
    LsDep *own = ls_arena_new_array (w->plan->arena, LsDep, deps->len);
    memcpy (own, deps->data, deps->len * sizeof (LsDep));
    op.deps = own;
    op.n_deps = (uint16_t) deps->len;
  }
  g_array_append_val (w->ops, op);
}

static void
put_streams (Writing *w, LsOp op, uint32_t streams)
{
  g_autoptr (GArray) deps = g_array_new (FALSE, FALSE, sizeof (LsDep));
  for (uint16_t s = 0; s < LS_N_STREAMS; s++) {
    const LsDep dep = { LS_DEP_STREAM, s };
    if (streams & (1u << s))
      g_array_append_val (deps, dep);
  }
  put (w, op, deps);
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
deps_of (Writing *w, const Program *p, guint i)
{
  const LsProfileOp *op = op_at (p, i);
  GArray *deps = g_array_new (FALSE, FALSE, sizeof (LsDep));
  for (guint n = 0; n < op->n_waits; n++) {
    guint on = g_array_index (p->step->waits, guint, op->first_wait + n);
    const LsDep dep = { LS_DEP_END, (uint16_t) w->place[on] };
    LsOp wait = ls_op_blank (LS_OP_WAIT, (LsStream) op->stream, LS_TAG_SYNC, "wait");
    wait.event = (uint16_t) p->event[on];
    if (segment_of (on) == segment_of (i))
      g_array_append_val (deps, dep);
    else
      put (w, wait, NULL);
  }
  return deps;
}

static void
put_op (Writing *w, const Program *p, const Item *item)
{
  const LsProfileOp *from = op_at (p, item->op);
  g_autoptr (GArray) deps = item->takes_waits ? deps_of (w, p, item->op) : NULL;
  if (item->kind == ITEM_UNEXPLAINED) {
    LsOp wait = ls_op_blank (LS_OP_COPY, (LsStream) from->stream, LS_TAG_SYNC, "not explained");
    wait.recorded = item->ns * PS_PER_NS;
    wait.direction = LS_COPY_TO_DEVICE; /* of that length, whatever it was */
    put (w, wait, deps);
    return;
  }
  put (w, op_of (w, p, item), deps);
  w->place[item->op] = w->ops->len - 1;
  if (p->event[item->op] != NO_EVENT) {
    LsOp record = ls_op_blank (LS_OP_RECORD, (LsStream) from->stream, LS_TAG_SYNC, "record");
    record.event = (uint16_t) p->event[item->op];
    put (w, record, NULL);
  }
}

static void
put_item (Writing *w, const Program *p, const Item *item)
{
  if (item->kind == ITEM_DELAY) {
    LsOp delay = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "host");
    delay.recorded = item->ns * PS_PER_NS;
    put (w, delay, NULL);
  } else if (item->kind == ITEM_SYNC)
    put_streams (w, ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "sync"), item->streams);
  else if (item->kind == ITEM_JOIN)
    put_streams (w, ls_op_blank (LS_OP_RECORD, LS_STREAM_COMPUTE, LS_TAG_SYNC, "step ends"), item->streams);
  else
    put_op (w, p, item);
}

/* ---- segments and programs ---- */

static void
end_segment (Writing *w, const char *name)
{
  if (w->ops->len == 0)
    return;
  LsSegment s = { .name = name, .n_ops = w->ops->len };
  s.ops = ls_arena_new_array (w->plan->arena, LsOp, w->ops->len);
  memcpy (s.ops, w->ops->data, w->ops->len * sizeof (LsOp));
  g_array_append_val (w->segments, s);
  g_array_set_size (w->ops, 0);
}

/* What of the step before still runs as the first step begins. */
static bool
put_lead (Writing *w, const Program *p)
{
  if (p->begins >= 0 || p->changes->without_stalls)
    return false;
  LsOp behind = ls_op_blank (LS_OP_COPY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "step before");
  behind.recorded = -p->begins * PS_PER_NS;
  behind.direction = LS_COPY_TO_DEVICE; /* likewise */
  put (w, behind, NULL);
  end_segment (w, "before");
  return true;
}

static void
fill_program (LsProgram *program, const LsPlan *plan, const Program *p, uint32_t first, uint32_t n,
              bool has_lead)
{
  program->n_instances = n;
  program->n_lead = has_lead;
  program->n_events = p->n_events;
  program->instances = ls_arena_new_array (plan->arena, LsInstance, n);
  for (uint32_t i = 0; i < n; i++)
    program->instances[i] = (LsInstance) { .segment = first + i };
}

static gboolean
put_program (Writing *w, Program *p, LsProgram *program, GError **error)
{
  uint32_t first = w->segments->len;
  list_items (p);
  find_events (p);
  if (p->n_events >= LS_EVENT_NONE)
    return ls_fail (error, LS_ERROR_LIMIT, "%s: error: more than %u events in a step", p->step->profile->path,
                    LS_EVENT_NONE);
  bool has_lead = put_lead (w, p);
  guint segment = 0;
  for (guint i = 0; i < p->items->len; i++) {
    const Item *item = &g_array_index (p->items, Item, i);
    bool is_op = item->kind == ITEM_OP || item->kind == ITEM_UNEXPLAINED;
    if (is_op && segment_of (item->op) != segment) {
      end_segment (w, "step");
      segment = segment_of (item->op);
    }
    put_item (w, p, item);
  }
  end_segment (w, "step");
  fill_program (program, w->plan, p, first, w->segments->len - first, has_lead);
  return TRUE;
}

/* One stage after the other runs the only program, if there is one. */
static void
repeat_stages (LsPlan *plan, guint n_written)
{
  for (uint32_t r = 0; r < plan->n_roles; r++) {
    if (r >= n_written)
      plan->programs[r] = plan->programs[0];
    plan->programs[r].stage = (uint16_t) r;
    if (r >= n_written) {
      LsProgram *p = &plan->programs[r];
      const LsInstance *from = p->instances;
      p->instances = ls_arena_new_array (plan->arena, LsInstance, p->n_instances);
      memcpy (p->instances, from, p->n_instances * sizeof (LsInstance));
    }
    for (uint32_t i = 0; i < plan->programs[r].n_instances; i++)
      plan->programs[r].instances[i].stage = (uint16_t) r;
  }
}

static gboolean
write_one (Writing *w, const LsProfileStep *step, const LsMeasuredStep *cut, const LsProfileChanges *changes,
           LsProgram *program, GError **error)
{
  Program p = { .step = step, .cut = cut, .changes = changes };
  if (step->ops->len > MAX_OPS)
    return ls_fail (
        error, LS_ERROR_LIMIT,
        "%s: error: %u kernels and copies in a step; a trace takes %d at most: choose fewer steps",
        step->profile->path, step->ops->len, MAX_OPS);
  p.items = g_array_new (FALSE, FALSE, sizeof (Item));
  p.event = g_new0 (guint, step->ops->len + 1);
  w->place = g_new0 (guint, step->ops->len + 1);
  gboolean ok = put_program (w, &p, program, error);
  g_array_unref (p.items);
  g_free (p.event);
  g_clear_pointer (&w->place, g_free);
  return ok;
}

static void
take_segments (LsPlan *plan, const GArray *segments)
{
  plan->n_segments = segments->len;
  plan->segments = ls_arena_new_array (plan->arena, LsSegment, MAX (1, segments->len));
  memcpy (plan->segments, segments->data, segments->len * sizeof (LsSegment));
}

LsPlan *
ls_profile_plan (const LsProfileStep *const *steps, const LsMeasuredStep *const *cuts, guint n,
                 const LsProfileGroups *groups, const uint32_t *role_of, const LsProfileChanges *changes,
                 GError **error)
{
  g_autoptr (LsPlan) plan = g_new0 (LsPlan, 1);
  plan->arena = ls_arena_new ();
  plan->n_micro_batches = plan->n_chunks = 1;
  plan->n_roles = role_of ? n : groups->has_mesh ? groups->mesh.pp : 1;
  plan->programs = ls_arena_new_array (plan->arena, LsProgram, plan->n_roles);
  plan->kernels = ls_arena_new_array (plan->arena, LsKernel, 1);
  g_autoptr (GArray) segments = g_array_new (FALSE, FALSE, sizeof (LsSegment)),
                     ops = g_array_new (FALSE, FALSE, sizeof (LsOp));
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  Writing w = { .plan = plan, .segments = segments, .ops = ops, .names = names };
  for (guint i = 0; i < n; i++)
    if (!write_one (&w, steps[i], cuts[i], changes, &plan->programs[i], error))
      return NULL;
  take_segments (plan, segments);
  repeat_stages (plan, n);
  bind_groups (groups, role_of, plan);
  return ls_plan_check (plan, error) ? g_steal_pointer (&plan) : NULL;
}
