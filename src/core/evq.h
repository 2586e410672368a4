/* core/evq.h — the event queue: two implementations of one contract.
 *
 *   fast       radix heap      an event is moved 11 times at most, however many there are
 *   reference  sorted array    O(n)
 *
 * Both support removal and rescheduling of any queued event, and pop in the same
 * order. They may count on what an engine keeps anyway: no event is put before the
 * time of the last one that was popped, and each push and update has a greater seq
 * than those before it. An earlier phase of the present time is allowed. */
#ifndef LS_CORE_EVQ_H
#define LS_CORE_EVQ_H

#include <stddef.h>

#include "core/event.h"

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
