/* ask/profile/profile_groups.c — process groups of a profile as a mesh, or as communicators. */
#include "ask/profile/profile_program.h"

#include <string.h>

#include <lockstep/error.h>

#include "plan/bind.h"

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

void
ls_profile_groups_bind (const LsProfileGroups *groups, const uint32_t *role_of, LsPlan *plan)
{
  uint32_t slots = 0;
  for (guint i = 0; i < groups->groups->len; i++)
    slots |= LS_SLOT_BIT (group_at (groups, i)->slot);
  if (groups->has_mesh && !role_of)
    ls_plan_bind_mesh (plan, &groups->mesh, slots);
  else
    bind_listed (groups, role_of, plan);
}
