/* core/event.h — events live inside what they belong to; the queue only orders
 * them. Order is (at, phase, seq): seq is given out when an event is scheduled,
 * so ties are broken by history, never by an address. */
#ifndef LS_CORE_EVENT_H
#define LS_CORE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/units.h>

/* Phases of one instant: everything that ends has ended before anything starts,
 * and rates are solved once after both. */
typedef enum { LS_PHASE_COMPLETE, LS_PHASE_DISPATCH, LS_PHASE_RATE, LS_N_PHASES } LsPhaseOfInstant;

#define LS_EVENT_IDLE UINT32_MAX

typedef struct LsEvent LsEvent;
typedef void (*LsEventFn) (LsEvent *event, void *context);

struct LsEvent {
  LsTime at;
  uint64_t order; /* phase << 56 | seq          */
  LsEventFn fire;
  uint32_t place; /* in the queue; LS_EVENT_IDLE: not queued */
};

static inline void
ls_event_init (LsEvent *e, LsEventFn fire)
{
  e->fire = fire;
  e->place = LS_EVENT_IDLE;
}

static inline bool
ls_event_is_queued (const LsEvent *e)
{
  return e->place != LS_EVENT_IDLE;
}

static inline bool
ls_event_before (const LsEvent *a, const LsEvent *b)
{
  return a->at != b->at ? a->at < b->at : a->order < b->order;
}

#endif
