#include "schedules/sched.h"

#include <string.h>

#include "schedules/sched_impl.h"

#define LS_SCHED_MAX_STAGES 32768

static const LsSched *const registry[] = {
  &ls_sched_none,      &ls_sched_naive,       &ls_sched_gpipe,      &ls_sched_1f1b,
  &ls_sched_pipedream, &ls_sched_interleaved, &ls_sched_looped_bfs, &ls_sched_interleaved_zb,
  &ls_sched_zb_h1,     &ls_sched_zb_h2,       &ls_sched_zb_auto,    &ls_sched_zb_1p,
  &ls_sched_zb_2p,     &ls_sched_zbv,         &ls_sched_zbv_auto,   &ls_sched_v_half,
  &ls_sched_v_min,     &ls_sched_dualpipe,    &ls_sched_dualpipev,  &ls_sched_chimera,
  &ls_sched_hanayo,
};

const LsSched *
ls_sched_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (g_ascii_strcasecmp (registry[i]->name, name) == 0)
      return registry[i];
  return NULL;
}

const LsSched *
ls_sched_at (guint i)
{
  return i < G_N_ELEMENTS (registry) ? registry[i] : NULL;
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

const char *
ls_sched_refusal (const LsSched *sched, const LsSchedShape *shape)
{
  if (shape->pp == 0)
    return "pp must be at least 1";
  if (shape->n_micro_batches == 0)
    return "there must be at least 1 micro-batch";
  const char *rule = refuse_size (sched, shape);
  return rule ? rule : sched->refusal (shape);
}

uint32_t
ls_sched_n_chunks (const LsSched *sched, const LsSchedShape *shape)
{
  return sched->n_chunks ? sched->n_chunks (shape) : MAX (shape->vpp, 1);
}

uint32_t
ls_sched_two_chunks (const LsSchedShape *shape)
{
  return 2;
}

void
ls_sched_append_1f1b (const LsSchedShape *shape, uint32_t n_warmup, LsSchedNth nth, GArray *actions)
{
  uint32_t n = MAX (shape->vpp, 1) * shape->n_micro_batches;
  g_assert (n_warmup <= n);

  for (uint32_t k = 0; k < n + n_warmup; k++) {
    if (k < n) {
      LsAction forward = nth (shape, LS_ACTION_F, k);
      g_array_append_val (actions, forward);
    }
    if (k >= n_warmup) {
      LsAction backward = nth (shape, LS_ACTION_B, k - n_warmup);
      g_array_append_val (actions, backward);
    }
  }
}

static void
append_half (const LsSchedShape *shape, LsActionType half, LsSchedNth nth, uint32_t k, GArray *actions)
{
  LsAction a = nth (shape, LS_ACTION_B, k);
  a.type = (uint8_t) half;
  g_array_append_val (actions, a);
}

void
ls_sched_append_1f1b_split (const LsSchedShape *shape, uint32_t n_warmup, uint32_t n_delay, LsSchedNth nth,
                            GArray *actions)
{
  uint32_t n = MAX (shape->vpp, 1) * shape->n_micro_batches;
  uint32_t n_w = 0;
  g_assert (n_warmup <= n);

  for (uint32_t k = 0; k < n + n_warmup; k++) {
    if (k < n) {
      LsAction forward = nth (shape, LS_ACTION_F, k);
      g_array_append_val (actions, forward);
    }
    if (k >= n_warmup) {
      append_half (shape, LS_ACTION_I, nth, k - n_warmup, actions);
      if (k - n_warmup >= n_delay)
        append_half (shape, LS_ACTION_W, nth, n_w++, actions);
    }
  }
  while (n_w < n)
    append_half (shape, LS_ACTION_W, nth, n_w++, actions);
}

LsAction
ls_sched_nth_in_order (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  return (LsAction) { .mb = k, .chunk = 0, .type = (uint8_t) type };
}

void
ls_sched_slot_add (GArray *slots, uint64_t at, LsActionType type, uint32_t chunk, uint32_t mb)
{
  LsSchedSlot slot = { at, { .mb = mb, .chunk = (uint16_t) chunk, .type = (uint8_t) type } };
  g_array_append_val (slots, slot);
}

static int
compare_slots (const void *x, const void *y)
{
  const LsSchedSlot *a = x, *b = y;
  return (a->at > b->at) - (a->at < b->at);
}

void
ls_sched_append_slots (GArray *slots, bool is_split, GArray *actions)
{
  g_array_sort (slots, compare_slots);
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

const char *
ls_sched_refuse_chunks (const LsSchedShape *shape)
{
  return shape->vpp > 1 ? "vpp must be 1: a rank holds one stage" : NULL;
}

const char *
ls_sched_refuse_other_than_two (const LsSchedShape *shape)
{
  return shape->vpp != 0 && shape->vpp != 2 ? "vpp must be 2: the model goes down the ranks and back" : NULL;
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
