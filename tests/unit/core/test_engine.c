/* Pins: events fire in the order (time, phase, history), also those that an event
 * schedules, moves or cancels at its own time; a run that stopped goes on where it
 * was. With both queues. */
#include "ls_test.h"

#include <string.h>

#include "core/engine.h"

static const LsEvqType *const types[] = { &ls_evq_radix, &ls_evq_reference };

typedef struct {
  LsEngine engine;
  LsEvent a, b, c, d;
  char log[32];
} World;

static void
note (LsEvent *e, void *context)
{
  World *w = context;
  size_t n = strlen (w->log);
  w->log[n] = e == &w->a ? 'a' : e == &w->b ? 'b' : e == &w->c ? 'c' : 'd';
  w->log[n + 1] = '\0';
}

/* c is of the last phase: what it schedules now comes next, whatever its phase. */
static void
schedules_earlier_phase (LsEvent *e, void *context)
{
  World *w = context;
  note (e, w);
  ls_engine_at (&w->engine, &w->a, w->engine.now, LS_PHASE_COMPLETE);
  ls_engine_cancel (&w->engine, &w->b);
  ls_engine_cancel (&w->engine, &w->b); /* idle: no effect */
}

static void
world_init (World *w, const LsEvqType *type)
{
  *w = (World) { 0 };
  ls_engine_init (&w->engine, type, w);
  ls_event_init (&w->a, note);
  ls_event_init (&w->b, note);
  ls_event_init (&w->c, note);
  ls_event_init (&w->d, note);
}

static void
an_instant_goes_by_phase_then_history (void)
{
  for (size_t k = 0; k < G_N_ELEMENTS (types); k++) {
    World w;
    world_init (&w, types[k]);
    w.c.fire = schedules_earlier_phase;
    ls_engine_at (&w.engine, &w.c, 10, LS_PHASE_RATE);
    ls_engine_at (&w.engine, &w.d, 10, LS_PHASE_RATE);
    ls_engine_at (&w.engine, &w.b, 11, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.a, 10, LS_PHASE_DISPATCH);
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_DRAINED);
    LS_CHECK_STR (w.log, "acad");
    LS_CHECK_INT (w.engine.now, ==, 10);
    LS_CHECK_INT (w.engine.n_events, ==, 4);
    ls_engine_clear (&w.engine);
  }
}

static void
a_moved_event_goes_behind_its_new_equals (void)
{
  for (size_t k = 0; k < G_N_ELEMENTS (types); k++) {
    World w;
    world_init (&w, types[k]);
    ls_engine_at (&w.engine, &w.a, 5, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.b, 9, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.c, 5, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.a, 5, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.b, 2, LS_PHASE_RATE);
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_DRAINED);
    LS_CHECK_STR (w.log, "bca");
    ls_engine_clear (&w.engine);
  }
}

static void
a_stopped_run_goes_on (void)
{
  for (size_t k = 0; k < G_N_ELEMENTS (types); k++) {
    World w;
    world_init (&w, types[k]);
    ls_engine_at (&w.engine, &w.a, 3, LS_PHASE_RATE);
    ls_engine_at (&w.engine, &w.b, 1000000, LS_PHASE_COMPLETE);
    w.engine.stop_at = 1000000;
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_STOPPED);
    LS_CHECK_STR (w.log, "a");
    LS_CHECK_INT (w.engine.now, ==, 3);
    ls_engine_at (&w.engine, &w.c, 3, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.d, 999999, LS_PHASE_RATE);
    w.engine.stop_at = LS_TIME_NEVER;
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_DRAINED);
    LS_CHECK_STR (w.log, "acdb");
    ls_engine_clear (&w.engine);
  }
}

LS_TEST_SUITE (LS_TEST (an_instant_goes_by_phase_then_history),
               LS_TEST (a_moved_event_goes_behind_its_new_equals), LS_TEST (a_stopped_run_goes_on))
