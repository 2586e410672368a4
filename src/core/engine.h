/* core/engine.h — the clock: pops events in order and fires them.
 *
 * One engine is one thread and owns no model state: several can live in one
 * process. Time never goes back; scheduling in the past is a programming error. */
#ifndef LS_CORE_ENGINE_H
#define LS_CORE_ENGINE_H

#include "core/evq.h"

typedef struct {
  LsTime now;
  LsTime stop_at; /* no event at or after this fires; LS_TIME_NEVER at first */
  uint64_t n_events;
  void *context;                 /* handed to every event */
  void (*after) (void *context); /* each event; NULL: nothing */
  /* private */
  const LsEvqType *type;
  void *queue;
  uint64_t seq;
  uint64_t n_at_instant;
} LsEngine;

typedef enum {
  LS_ENGINE_DRAINED, /* no event left                                       */
  LS_ENGINE_STOPPED, /* reached stop_at                                     */
  LS_ENGINE_LIVELOCK /* more than LS_ENGINE_MAX_PER_INSTANT events at one instant */
} LsEngineEnd;

#define LS_ENGINE_MAX_PER_INSTANT 100000000u

void ls_engine_init (LsEngine *e, const LsEvqType *type, void *context);
void ls_engine_clear (LsEngine *e);

/* Schedules, or moves if already queued. */
void ls_engine_at (LsEngine *e, LsEvent *event, LsTime at, LsPhaseOfInstant phase);
void ls_engine_cancel (LsEngine *e, LsEvent *event); /* no effect if idle */

LsEngineEnd ls_engine_run (LsEngine *e);

#endif
