/* base/order.h — the order of numbers for qsort() and g_array_sort(), of structs by their members, and the
 * middle one. */
#ifndef LS_BASE_ORDER_H
#define LS_BASE_ORDER_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -1, 0 or 1, as x is less than, equal to or more than y. */
#define LS_ORDER(x, y) (((x) > (y)) - ((x) < (y)))

/* For a comparer by several keys: returns where these differ; the smaller, or the larger, comes first. */
#define LS_SMALLER_FIRST(x, y)                                                                               \
  do {                                                                                                       \
    if ((x) != (y))                                                                                          \
      return (x) < (y) ? -1 : 1;                                                                             \
  } while (0)
#define LS_LARGER_FIRST(x, y) LS_SMALLER_FIRST (y, x)

/* A member by which structs are ordered; a list of them, of which the first that differs decides, ends with
 * zeros:
 *
 *     static const LsSortKey by_use[] = { { LS_FALLING (Row, use) }, { LS_RISING (Row, name) }, { 0 } }; */
typedef struct {
  char type; /* 'b', 'i', 'u', 'l', 'm', 'd', 's': LS_TYPE_OF_KEY() */
  size_t offset;
  bool is_falling; /* the larger comes first */
} LsSortKey;

/* Of an enum that of unsigned int. */
#define LS_TYPE_OF_KEY(member)                                                                               \
  _Generic((member), bool : 'b', uint8_t : 'b', int : 'i', uint32_t : 'u', int64_t : 'l', uint64_t : 'm',    \
           double : 'd', char * : 's', const char * : 's')
#define LS_RISING(type, member)  LS_TYPE_OF_KEY (((type *) 0)->member), offsetof (type, member), false
#define LS_FALLING(type, member) LS_TYPE_OF_KEY (((type *) 0)->member), offsetof (type, member), true

/* A comparer for g_array_sort_with_data(). keys: LsSortKey. */
int ls_compare_by (const void *a, const void *b, void *keys);
/* Equal ones stay in their order. */
void ls_sort_by (GArray *list, const LsSortKey *keys);
/* The first in the list that is as the element by these keys, which is appended where none is. Borrowed
 * until the list grows. */
gpointer ls_list_like (GArray *list, const LsSortKey *keys, gconstpointer element);

static inline int
ls_compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return LS_ORDER (x, y);
}

static inline int
ls_compare_uint32 (const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return LS_ORDER (x, y);
}

/* Of char *. */
static inline int
ls_compare_texts (const void *a, const void *b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

/* Of LsTime too. */
static inline int
ls_compare_int64 (const void *a, const void *b)
{
  int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;
  return LS_ORDER (x, y);
}

/* Of n > 0 values, which it sorts; the mean of the middle two if n is even. */
static inline double
ls_median (double *values, guint n)
{
  qsort (values, n, sizeof *values, ls_compare_doubles);
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

#endif
