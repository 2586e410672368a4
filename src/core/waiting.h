/* core/waiting.h — which of many things is the first: a binary heap of things that know their place in it.
 *
 * Each of them waits with a key > 0, or does not wait: its key is 0. A key may change. Things
 * with equal keys come in an order that depends on history alone, not on addresses. */
#ifndef LS_CORE_WAITING_H
#define LS_CORE_WAITING_H

#include <stdint.h>

/* Part of what waits. All zero: it does not. */
typedef struct {
  int64_t key;
  uint32_t place; /* in the heap, while it waits */
} LsWaiter;

typedef struct {
  int64_t key;
  LsWaiter *who;
} LsWaitingEntry;

typedef struct {
  uint32_t n;           /* that wait                    */
  LsWaitingEntry *heap; /* [most]: heap[0] is the first */
} LsWaiting;

/* most: that will ever wait at once. */
void ls_waiting_init (LsWaiting *waiting, uint32_t most);
void ls_waiting_clear (LsWaiting *waiting);

void ls_waiting_set (LsWaiting *waiting, LsWaiter *who, int64_t key);

#endif
