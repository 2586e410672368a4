/* core/waiting.h — which of n numbered things is the first: a binary heap.
 *
 * Each of them waits with a key > 0, or does not wait: its key is 0. A key may change. Things
 * with equal keys come in an order that depends on history alone, not on addresses. */
#ifndef LS_CORE_WAITING_H
#define LS_CORE_WAITING_H

#include <stdint.h>

typedef struct {
  int64_t key;
  uint32_t id;
} LsWaitingEntry;

typedef struct {
  uint32_t n;           /* that wait                            */
  LsWaitingEntry *heap; /* [n]: heap[0] is the first            */
  int64_t *key;         /* [n_ids]                              */
  uint32_t *place;      /* [n_ids], in the heap, of those in it */
} LsWaiting;

void ls_waiting_init (LsWaiting *waiting, uint32_t n_ids);
void ls_waiting_clear (LsWaiting *waiting);

void ls_waiting_set (LsWaiting *waiting, uint32_t id, int64_t key);

#endif
