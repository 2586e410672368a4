#include "schedules/sched_impl.h"

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
      forward.is_paired = shape->has_pairs && k >= n_warmup;
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
