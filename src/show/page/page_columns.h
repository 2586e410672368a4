/* show/page/page_columns.h — columns of whole numbers, which pack better than rows (private to page_*.c). */
#ifndef LS_SHOW_PAGE_PAGE_COLUMNS_H
#define LS_SHOW_PAGE_PAGE_COLUMNS_H

#include <lockstep/units.h>

#include "data/text/json_out.h"

/* To the nearest. */
static inline int64_t
nanoseconds (LsTime ps)
{
  return (ps + (ps >= 0 ? LS_NS / 2 : -(LS_NS / 2))) / LS_NS;
}

/* Of int64_t. */
static inline void
columns_init (GArray **columns, guint n)
{
  for (guint i = 0; i < n; i++)
    columns[i] = g_array_new (FALSE, FALSE, sizeof (int64_t));
}

static inline void
push (GArray *column, int64_t value)
{
  g_array_append_val (column, value);
}

/* Writes them as members of an object, and frees them. */
static inline void
columns_write (LsJsonOut *w, const char *const *keys, GArray **columns, guint n)
{
  for (guint i = 0; i < n; i++) {
    ls_json_out_begin_array (w, keys[i]);
    for (guint k = 0; k < columns[i]->len; k++)
      ls_json_out_int (w, NULL, g_array_index (columns[i], int64_t, k));
    ls_json_out_end_array (w);
    g_array_unref (columns[i]);
  }
}

#endif
