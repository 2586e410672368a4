/* core/evq.h — the event queue: two implementations of one contract.
 *
 *   fast       4-ary heap with the keys beside the pointers    O(log n)
 *   reference  sorted array                                    O(n)
 *
 * Both support removal and rescheduling of any queued event, and pop in the same
 * order. */
#ifndef LS_CORE_EVQ_H
#define LS_CORE_EVQ_H

#include <stddef.h>

#include "core/event.h"

typedef struct {
  const char *name;
  void *(*create) (void);
  void (*destroy) (void *queue);
  void (*push) (void *queue, LsEvent *e);   /* e is idle, its key is set      */
  void (*update) (void *queue, LsEvent *e, LsTime at, uint64_t order); /* e is queued */
  void (*remove) (void *queue, LsEvent *e); /* e is queued                    */
  LsEvent *(*pop) (void *queue);            /* NULL if empty; leaves it idle  */
  LsEvent *(*peek) (void *queue);           /* NULL if empty                  */
  size_t (*size) (void *queue);
} LsEvqType;

extern const LsEvqType ls_evq_heap;
extern const LsEvqType ls_evq_reference;

#endif
