/* base/order.h — the order of plain numbers, ascending, for qsort() and g_array_sort(). */
#ifndef LS_BASE_ORDER_H
#define LS_BASE_ORDER_H

#include <stdint.h>

static inline int
ls_compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

static inline int
ls_compare_uint32 (const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return (x > y) - (x < y);
}

#endif
