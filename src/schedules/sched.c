#include "schedules/sched.h"

#include <string.h>

#include "base/order.h"
#include "schedules/sched_impl.h"

#define LS_SCHED_MAX_STAGES 32768

static const LsSched *const registry[] = {
  &ls_sched_none,           &ls_sched_naive,     &ls_sched_gpipe,       &ls_sched_gpipe_lifo,
  &ls_sched_1f1b,           &ls_sched_pipedream, &ls_sched_interleaved, &ls_sched_looped_bfs,
  &ls_sched_interleaved_zb, &ls_sched_zb_h1,     &ls_sched_zb_h2,       &ls_sched_zb_auto,
  &ls_sched_zb_1p,          &ls_sched_zb_2p,     &ls_sched_zbv,         &ls_sched_zbv_auto,
  &ls_sched_v_half,         &ls_sched_v_min,     &ls_sched_dualpipe,    &ls_sched_dualpipev,
  &ls_sched_chimera,        &ls_sched_hanayo,
};

/* Papers' names of schedules that have another here. DAPPLE (Fan et al. 2021, PPoPP) runs backwards early,
 * which is 1F1B; its planner, which chooses stages and replicas, is none of ours. */
static const struct {
  const char *name;
  const LsSched *sched;
} aliases[] = { { "dapple", &ls_sched_1f1b } };

const LsSched *
ls_sched_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (registry[i]->name[0] == name[0] && strcmp (registry[i]->name, name) == 0) /* mostly, and faster */
      return registry[i];
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (g_ascii_strcasecmp (registry[i]->name, name) == 0)
      return registry[i];
  for (guint i = 0; i < G_N_ELEMENTS (aliases); i++)
    if (g_ascii_strcasecmp (aliases[i].name, name) == 0)
      return aliases[i].sched;
  return NULL;
}

const LsSched *
ls_sched_at (guint i)
{
  return i < G_N_ELEMENTS (registry) ? registry[i] : NULL;
}

const LsSched *
ls_sched_usual (uint32_t pp, uint32_t vpp)
{
  LsSchedUse use = vpp > 1 ? LS_SCHED_CHUNKS : pp > 1 ? LS_SCHED_STAGES : LS_SCHED_ONE_STAGE;
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (registry[i]->use == use)
      return registry[i];
  return NULL;
}

/* What the types of an action and a layout hold. */
static const char *
refuse_size (const LsSched *sched, const LsSchedShape *shape)
{
  if (MAX (MAX (shape->vpp, shape->pipes), MAX (shape->waves, shape->pp)) > LS_SCHED_MAX_STAGES)
    return "there may be at most 32768 stages";
  uint64_t n_chunks = ls_sched_n_chunks (sched, shape);
  if (n_chunks * shape->pp > LS_SCHED_MAX_STAGES)
    return "there may be at most 32768 stages";
  if (n_chunks * shape->n_micro_batches > G_MAXINT32 / 4)
    return "there may be at most 2^29 chunk forwards on a rank";
  return NULL;
}

static const char *
refuse_chunks (const LsSched *sched, const LsSchedShape *shape)
{
  uint32_t vpp = shape->vpp;
  switch (sched->chunks) {
  case LS_CHUNKS_ONE:
    return vpp <= 1 ? NULL : sched->other ? sched->other : "vpp must be 1: a rank holds one stage";
  case LS_CHUNKS_TWO:
    return vpp == 0 || vpp == 2 ? NULL : "vpp must be 2: the model goes down the ranks and back";
  case LS_CHUNKS_SEVERAL:
    return vpp >= 2 ? NULL : sched->other;
  default:
    return NULL;
  }
}

const char *
ls_sched_own_refusal (const LsSched *sched, const LsSchedShape *shape)
{
  const char *rule = refuse_chunks (sched, shape);
  if (!rule && sched->refusal)
    rule = sched->refusal (shape);
  if (!rule && ls_sched_is_searched (sched) && shape->memory_limit != 0 && !(shape->memory_limit >= 1))
    rule = "the memory limit must be at least 1 micro-batch";
  return rule;
}

const char *
ls_sched_refusal (const LsSched *sched, const LsSchedShape *shape)
{
  if (shape->pp == 0)
    return "pp must be at least 1";
  if (shape->n_micro_batches == 0)
    return "there must be at least 1 micro-batch";
  const char *rule = refuse_size (sched, shape);
  return rule ? rule : ls_sched_own_refusal (sched, shape);
}

bool
ls_sched_fixes_chunks (const LsSched *sched)
{
  return sched->n_chunks && sched->placement != LS_PLACE_PIPES; /* pipes replicate the model */
}

bool
ls_sched_is_searched (const LsSched *sched)
{
  return sched->orders != NULL;
}

bool
ls_sched_is_flushed (const LsSched *sched)
{
  return sched->recipe != LS_RECIPE_UNFLUSHED;
}

uint32_t
ls_sched_n_versions (const LsSched *sched, const LsSchedShape *shape, uint32_t rank)
{
  return ls_sched_is_flushed (sched) ? 1 : sched->n_versions (shape, rank);
}

uint64_t
ls_sched_in_flight (const LsSched *sched, const LsSchedShape *shape, uint32_t rank)
{
  return sched->in_flight ? sched->in_flight (shape, rank) : shape->vpp <= 1;
}

/* ---- which stage is where ---- */

uint32_t
ls_sched_n_chunks (const LsSched *sched, const LsSchedShape *shape)
{
  return sched->n_chunks ? sched->n_chunks (shape) : MAX (shape->vpp, 1);
}

static LsStageRef
place_pipe (uint32_t pp, uint32_t n_pipes, uint32_t rank, uint32_t pipe)
{
  uint32_t first = pipe / 2 * (pp / MAX (n_pipes / 2, 1));
  uint32_t down = (rank + pp - first) % pp;
  return (LsStageRef) { (uint16_t) pipe, (uint16_t) (pipe % 2 == 0 ? down : pp - 1 - down) };
}

LsStageRef
ls_place (LsPlacement placement, uint32_t pp, uint32_t n_chunks, uint32_t rank, uint32_t chunk)
{
  switch (placement) {
  case LS_PLACE_LOOP:
    return (LsStageRef) { 0, (uint16_t) (chunk * pp + rank) };
  case LS_PLACE_WAVE:
    return (LsStageRef) { 0, (uint16_t) (chunk * pp + (chunk % 2 == 0 ? rank : pp - 1 - rank)) };
  case LS_PLACE_PIPES:
    return place_pipe (pp, n_chunks, rank, chunk);
  }
  g_assert_not_reached ();
}

static void
fill_homes (LsLayout *l)
{
  for (uint32_t i = 0; i < l->n_pipes * l->n_stages; i++)
    l->homes[i] = (LsHome) { UINT32_MAX, 0 };
  for (uint32_t rank = 0; rank < l->n_ranks; rank++)
    for (uint32_t chunk = 0; chunk < l->n_chunks; chunk++) {
      LsStageRef ref = ls_layout_stage (l, rank, chunk);
      if (ref.pipe >= l->n_pipes || ref.stage >= l->n_stages)
        continue;
      LsHome *home = &l->homes[ref.pipe * l->n_stages + ref.stage];
      if (home->rank == UINT32_MAX)
        *home = (LsHome) { rank, (uint16_t) chunk };
    }
}

LsOrders *
ls_orders_new (uint32_t n_ranks, uint32_t n_chunks, uint32_t n_pipes, uint32_t n_stages,
               uint32_t n_micro_batches, const LsStageRef *stages)
{
  LsOrders *orders = g_new0 (LsOrders, 1);
  orders->layout = (LsLayout) {
    .n_ranks = n_ranks,
    .n_chunks = n_chunks,
    .n_pipes = n_pipes,
    .n_stages = n_stages,
    .n_micro_batches = n_micro_batches,
    .stages = g_new (LsStageRef, (gsize) n_ranks * n_chunks),
    .homes = g_new (LsHome, (gsize) n_pipes * n_stages),
  };
  for (gsize i = 0; i < (gsize) n_ranks * n_chunks; i++)
    orders->layout.stages[i] = stages[i];
  fill_homes (&orders->layout);

  orders->ranks = g_new (GArray *, n_ranks);
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    orders->ranks[rank] = g_array_new (FALSE, FALSE, sizeof (LsAction));
  return orders;
}

void
ls_orders_free (LsOrders *orders)
{
  if (!orders)
    return;
  for (uint32_t rank = 0; rank < orders->layout.n_ranks; rank++)
    g_array_unref (orders->ranks[rank]);
  g_free (orders->ranks);
  g_free (orders->layout.stages);
  g_free (orders->layout.homes);
  g_free (orders);
}

/* ---- the orders of a schedule ---- */

static LsOrders *
empty_orders (const LsSched *sched, const LsSchedShape *shape)
{
  bool has_pipes = sched->placement == LS_PLACE_PIPES;
  uint32_t pp = shape->pp, n_chunks = ls_sched_n_chunks (sched, shape);
  g_autofree LsStageRef *stages = g_new (LsStageRef, (gsize) pp * n_chunks);
  for (uint32_t rank = 0; rank < pp; rank++)
    for (uint32_t chunk = 0; chunk < n_chunks; chunk++)
      stages[rank * n_chunks + chunk] = ls_place (sched->placement, pp, n_chunks, rank, chunk);
  return ls_orders_new (pp, n_chunks, has_pipes ? n_chunks : 1, has_pipes ? pp : pp * n_chunks,
                        shape->n_micro_batches / (has_pipes ? n_chunks : 1), stages);
}

static void
append_nth (const LsSched *sched, const LsSchedShape *shape, LsActionType type, uint32_t k, GArray *actions)
{
  LsActionType of = type == LS_ACTION_F ? LS_ACTION_F : LS_ACTION_B;
  LsAction a = sched->nth ? sched->nth (shape, of, k) : (LsAction) { .mb = k };
  a.type = (uint8_t) type;
  g_array_append_val (actions, a);
}

/* The pattern of the 1F1B family: n_warmup forwards, then pairs of a forward and a backward (executed
 * together if the shape has pairs) until the forwards are used up, then the backwards that are left.
 *
 *     n = 4, n_warmup = 2:   F0 F1 | F2 B0 F3 B1 | B2 B3
 *
 * n = vpp * n_micro_batches forwards and as many backwards; n_warmup <= n. With n_delay each B is an I, and
 * the k-th W follows the I that is n_delay later.
 *
 *     n = 4, n_warmup = 1, n_delay = 2:   F0 | F1 I0 F2 I1 F3 I2 W0 | I3 W1 W2 W3 */
static void
append_1f1b (const LsSched *sched, const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t n = MAX (shape->vpp, 1) * shape->n_micro_batches, n_w = 0,
           n_warmup = sched->n_warmup ? sched->n_warmup (shape, rank) : 0,
           n_delay = sched->n_delay ? sched->n_delay (shape, rank) : 0;
  g_assert (n_warmup <= n);

  for (uint32_t k = 0; k < n + n_warmup; k++) {
    if (k < n)
      append_nth (sched, shape, LS_ACTION_F, k, actions);
    if (k < n && !sched->n_delay)
      g_array_index (actions, LsAction, actions->len - 1).is_paired = shape->has_pairs && k >= n_warmup;
    if (k >= n_warmup)
      append_nth (sched, shape, sched->n_delay ? LS_ACTION_I : LS_ACTION_B, k - n_warmup, actions);
    if (sched->n_delay && k >= n_warmup + n_delay)
      append_nth (sched, shape, LS_ACTION_W, n_w++, actions);
  }
  while (sched->n_delay && n_w < n)
    append_nth (sched, shape, LS_ACTION_W, n_w++, actions);
}

LsOrders *
ls_sched_orders (const LsSched *sched, const LsSchedShape *shape)
{
  LsOrders *orders = empty_orders (sched, shape);
  if (sched->orders)
    sched->orders (sched, shape, orders->ranks);
  for (uint32_t rank = 0; rank < shape->pp && !sched->orders; rank++)
    if (sched->order)
      sched->order (shape, rank, orders->ranks[rank]);
    else
      append_1f1b (sched, shape, rank, orders->ranks[rank]);
  return orders;
}

/* ---- text ---- */

void
ls_action_append_text (const LsLayout *l, uint32_t rank, const LsAction *a, GString *text)
{
  LsStageRef ref = ls_layout_stage (l, rank, a->chunk);
  if (l->n_pipes > 1)
    g_string_append_printf (text, "d%us", ref.pipe);
  g_string_append_printf (text, "%u%c%u", ref.stage, ls_action_letter (a->type), a->mb);
}

void
ls_orders_append_rank (const LsOrders *orders, uint32_t rank, GString *text)
{
  const GArray *actions = orders->ranks[rank];
  for (guint i = 0; i < actions->len; i++) {
    const LsAction *a = &g_array_index (actions, LsAction, i);
    g_string_append (text, i > 0 ? "," : "");
    if (a->is_paired) {
      g_string_append_c (text, '(');
      ls_action_append_text (&orders->layout, rank, a, text);
      g_string_append_c (text, ';');
      ls_action_append_text (&orders->layout, rank, a + 1, text);
      g_string_append (text, ")OVERLAP_F_B");
      i++;
    } else {
      ls_action_append_text (&orders->layout, rank, a, text);
    }
  }
}

uint32_t
ls_sched_two_chunks (const LsSchedShape *shape)
{
  return 2;
}

uint32_t
ls_sched_rank (const LsSchedShape *shape, uint32_t rank)
{
  return rank;
}

void
ls_sched_slot_add (GArray *slots, uint64_t at, LsActionType type, uint32_t chunk, uint32_t mb)
{
  LsSchedSlot slot = { at, { .mb = mb, .chunk = (uint16_t) chunk, .type = (uint8_t) type } };
  g_array_append_val (slots, slot);
}

void
ls_sched_append_slots (GArray *slots, bool is_split, GArray *actions)
{
  static const LsSortKey by_time[] = { { LS_RISING (LsSchedSlot, at) }, { 0 } };
  ls_sort_by (slots, by_time);
  for (guint i = 0; i < slots->len; i++) {
    LsAction a = g_array_index (slots, LsSchedSlot, i).action;
    if (is_split && a.type == LS_ACTION_B) {
      ls_sched_append (actions, LS_ACTION_I, a.chunk, a.mb);
      ls_sched_append (actions, LS_ACTION_W, a.chunk, a.mb);
    } else {
      g_array_append_val (actions, a);
    }
  }
}
