/* lower/data/lower_dp_fsdp1.c — the limiter of FSDP1: the host waits before a gather while two that
 * were freed are queued (private; lower_dp_fsdp.c). */
#include "lower/data/lower_dp_fsdp.h"
#include "lower/layers/lower_layers.h"

#define MAX_QUEUED 2 /* FreeEventQueue._max_num_inflight_all_gathers */

void
fsdp_limit (Build *b, Fsdp *f)
{
  if (!b->l->s->data.limit_all_gathers || f->free_ops->len < MAX_QUEUED)
    return;
  Free oldest = g_array_index (f->free_ops, Free, 0);
  g_array_remove_index (f->free_ops, 0);
  if (oldest.has_passed)
    return;
  if (oldest.is_event)
    oldest.op = build_event (b, LS_OP_WAIT, LS_STREAM_GATHER, "wait for free", oldest.op, NULL);
  LsDep freed = { LS_DEP_END, oldest.op };
  build_host_sync (b, LS_TAG_SYNC, "all-gather limiter", &freed, 1);
}

/* How many frees are queued after one more gather. */
static guint
queued_after_gather (guint n_queued)
{
  return n_queued < MAX_QUEUED ? n_queued : n_queued - 1;
}

/* And after a pass over n units that finds so many queued: the order of gathers and frees is
 * that of start(), enter() and leave(). */
static guint
queued_after_pass (const Lower *l, const Fsdp *f, bool is_forward, guint n_queued)
{
  bool is_early
      = is_forward ? l->s->data.forward_prefetch > 0 : l->s->data.backward_prefetch == LS_PREFETCH_PRE;
  if (is_forward && f->root != NO_UNIT)
    n_queued = queued_after_gather (n_queued);
  for (guint i = 0; i < f->n; i++) {
    if (!is_early || i == 0)
      n_queued = queued_after_gather (n_queued);
    if (is_early && i + 1 < f->n)
      n_queued = queued_after_gather (n_queued);
    n_queued++;
  }
  return n_queued + (!is_forward && f->root != NO_UNIT);
}

/* Frees that a forward finds queued, or its backward, when they take turns: what they then leave
 * is what they found. From none the number only grows until it is that. */
static guint
n_found (const Lower *l, const Fsdp *f, bool is_forward)
{
  guint at_forward = 0, at_backward, next = 0;
  if (!l->s->data.limit_all_gathers || fsdp_hold (l, false) != HOLD_PASS)
    return 0;
  do {
    at_forward = next;
    at_backward = queued_after_pass (l, f, true, at_forward);
    next = queued_after_pass (l, f, false, at_backward);
  } while (next != at_forward);
  return is_forward ? at_forward : at_backward;
}

/* The last units that a forward frees, which its backward's limiter still finds queued. */
static guint
n_left_over (const Lower *l, const Fsdp *f)
{
  return MIN (f->n, n_found (l, f, false));
}

void
fsdp_note_free (Build *b, Fsdp *f, guint unit, uint16_t op)
{
  Free freed = { .op = op };
  g_array_append_val (f->free_ops, freed);
  if (f->p->type != LS_ACTION_F || unit + n_left_over (b->l, f) < f->n || unit == f->root)
    return;
  build_event (b, LS_OP_RECORD, LS_STREAM_COMPUTE, "freed", event_params (b->l, f->n - 1 - unit), NULL);
}

void
fsdp_recall_frees (const Lower *l, Fsdp *f)
{
  bool is_forward = f->p->type == LS_ACTION_F;
  Free passed = { .has_passed = true };
  guint n_events = is_forward ? 0 : n_left_over (l, f), n_passed = n_found (l, f, is_forward) - n_events;
  for (guint i = 0; i < n_passed; i++)
    g_array_append_val (f->free_ops, passed);
  for (guint i = n_events; i-- > 0;) {
    Free freed = { .is_event = true, .op = event_params (l, i) };
    g_array_append_val (f->free_ops, freed);
  }
}
