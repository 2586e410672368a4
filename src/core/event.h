/* core/event.h — events live inside what they belong to; the queue only orders
 * them. Order is (at, phase, seq): seq is given out when an event is scheduled,
 * so ties are broken by history, never by an address. */
#ifndef LS_CORE_EVENT_H
#define LS_CORE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/units.h>

/* Phases of one instant: everything that ends has ended before anything starts,
 * and rates are solved once after both. */
typedef enum { LS_PHASE_COMPLETE, LS_PHASE_DISPATCH, LS_PHASE_RATE, LS_N_PHASES } LsPhaseOfInstant;

typedef struct LsEvent LsEvent;
typedef void (*LsEventFn) (LsEvent *event, void *context);

struct LsEvent {
  LsTime at;
  uint64_t order; /* phase << 56 | seq             */
  LsEventFn fire;
  void *place; /* the queue's; NULL: not queued */
};

static inline void
ls_event_init (LsEvent *e, LsEventFn fire)
{
  e->fire = fire;
  e->place = NULL;
}

static inline bool
ls_event_is_queued (const LsEvent *e)
{
  return e->place != NULL;
}

static inline LsPhaseOfInstant
ls_event_phase (const LsEvent *e)
{
  return (LsPhaseOfInstant) (e->order >> 56);
}

static inline bool
ls_event_before (const LsEvent *a, const LsEvent *b)
{
  return a->at != b->at ? a->at < b->at : a->order < b->order;
}

#endif
