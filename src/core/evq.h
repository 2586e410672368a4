/* core/evq.h — the event queue: two implementations of one contract.
 *
 *   fast       radix heap      an event is moved 12 times at most, however many there are
 *   reference  sorted array    O(n)
 *
 * Both support removal and rescheduling of any queued event, and pop in the same
 * order. They may count on what an engine keeps anyway: no event is put before the
 * time of the last one that was popped, and each push and update has a greater seq
 * than those before it. An earlier phase of the present time is allowed. */
#ifndef LS_CORE_EVQ_H
#define LS_CORE_EVQ_H

#include <lockstep/units.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- events live inside what they belong to; the queue only orders them -------------------------- */

/* Order is (at, phase, seq): seq is given out when an event is scheduled,
 * so ties are broken by history, never by an address. */

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

/* An event may begin in one line of the cache and end in the next. NULL: nothing is fetched. */
static inline void
ls_event_prefetch (const LsEvent *e)
{
  uintptr_t at = (uintptr_t) e;
  __builtin_prefetch ((const void *) at, 1);
  __builtin_prefetch ((const void *) (at + offsetof (LsEvent, place)), 1);
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

/* --- the event queue: two implementations of one contract ---------------------------------------- */

typedef struct {
  const char *name;
  void *(*create) (void);
  void (*destroy) (void *queue);                                       /* events may be queued still     */
  void (*push) (void *queue, LsEvent *e);                              /* e is idle, its key is set      */
  void (*update) (void *queue, LsEvent *e, LsTime at, uint64_t order); /* e is queued */
  void (*remove) (void *queue, LsEvent *e);                            /* e is queued                    */
  LsEvent *(*pop) (void *queue, LsTime before);                        /* the first, if it is before that
                                               time, and leaves it idle; else NULL */
  size_t (*size) (void *queue);
} LsEvqType;

extern const LsEvqType ls_evq_radix;
extern const LsEvqType ls_evq_reference;

#endif
