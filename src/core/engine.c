#include "core/engine.h"

#include <glib.h>
#include <string.h>

void
ls_engine_init (LsEngine *e, const LsEvqType *type, void *context)
{
  memset (e, 0, sizeof *e);
  e->type = type;
  e->queue = type->create ();
  e->context = context;
  e->stop_at = LS_TIME_NEVER;
}

void
ls_engine_clear (LsEngine *e)
{
  if (e->queue)
    e->type->destroy (e->queue);
  e->queue = NULL;
}

void
ls_engine_at (LsEngine *e, LsEvent *event, LsTime at, LsPhaseOfInstant phase)
{
  g_assert (at >= e->now);
  uint64_t order = (uint64_t) phase << 56 | e->seq++;
  if (ls_event_is_queued (event)) {
    e->type->update (e->queue, event, at, order);
    return;
  }
  event->at = at;
  event->order = order;
  e->type->push (e->queue, event);
}

void
ls_engine_cancel (LsEngine *e, LsEvent *event)
{
  if (ls_event_is_queued (event))
    e->type->remove (e->queue, event);
}

LsEngineEnd
ls_engine_run (LsEngine *e)
{
  for (;;) {
    LsEvent *event = e->type->pop (e->queue, e->stop_at);
    if (!event)
      return e->type->size (e->queue) > 0 ? LS_ENGINE_STOPPED : LS_ENGINE_DRAINED;
    g_assert (event->at >= e->now);
    if (event->at > e->now)
      e->n_at_instant = 0;
    else if (++e->n_at_instant > LS_ENGINE_MAX_PER_INSTANT)
      return LS_ENGINE_LIVELOCK;
    e->now = event->at;
    e->n_events++;
    event->fire (event, e->context);
    if (e->after)
      e->after (e->context);
  }
}
