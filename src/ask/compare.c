#include "ask/compare.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/order.h"

/* ---- results ---- */

double
ls_compare_number (const LsResultFile *file, LsResultSection section, const char *name)
{
  for (guint i = 0; i < file->sections[section]->len; i++) {
    const LsResultNumber *number = &g_array_index (file->sections[section], LsResultNumber, i);
    if (strcmp (number->name, name) == 0)
      return number->value;
  }
  return NAN;
}

GPtrArray *
ls_compare_names (LsResultFile *const *files, guint n, LsResultSection section)
{
  GPtrArray *names = g_ptr_array_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < files[i]->sections[section]->len; k++) {
      char *name = g_array_index (files[i]->sections[section], LsResultNumber, k).name;
      if (g_hash_table_add (seen, name))
        g_ptr_array_add (names, name);
    }
  return names;
}

/* ---- spans ---- */

void
ls_span_compare_free (LsSpanCompare *c)
{
  if (!c)
    return;
  g_array_unref (c->classes);
  g_free (c);
}

static LsSpanClass *
class_of (GArray *classes, GHashTable *places, const char *name)
{
  gpointer place;
  if (!g_hash_table_lookup_extended (places, name, NULL, &place)) {
    LsSpanClass k = { name, 0, 0, NAN, NAN };
    place = GUINT_TO_POINTER (classes->len);
    g_hash_table_insert (places, (gpointer) name, place);
    g_array_append_val (classes, k);
  }
  return &g_array_index (classes, LsSpanClass, GPOINTER_TO_UINT (place));
}

/* Spans without length are joins of streams: bookkeeping that no GPU runs. */
static guint
add_spans (const LsSpanTable *table, uint32_t rank, GArray *classes, GHashTable *places)
{
  guint n = 0;
  for (guint i = 0; i < table->spans->len; i++) {
    const LsSpanRow *span = &g_array_index (table->spans, LsSpanRow, i);
    if (span->rank != rank || span->end_us == span->start_us)
      continue;
    LsSpanClass *k = class_of (classes, places, span->name);
    double *sum = table->is_measured ? &k->measured_us : &k->predicted_us;
    *sum = (isnan (*sum) ? 0 : *sum) + span->end_us - span->start_us;
    (*(table->is_measured ? &k->n_measured : &k->n_predicted))++;
    n++;
  }
  return n;
}

static const LsSortKey by_start[] = { { LS_RISING (LsSpanRow, start_us) }, { 0 } };

static LsSpanTotal
total_of (const LsSpanTable *table, uint32_t rank)
{
  LsSpanTotal total = { table->step_us, 0, 0 };
  double last = -INFINITY, last_of_all = 0;
  g_autoptr (GArray) sorted = g_array_new (FALSE, FALSE, sizeof (LsSpanRow));
  for (guint i = 0; i < table->spans->len; i++) {
    const LsSpanRow *span = &g_array_index (table->spans, LsSpanRow, i);
    if (span->rank != rank)
      continue;
    last_of_all = MAX (last_of_all, span->end_us);
    if (strcmp (span->stream, "compute") == 0)
      g_array_append_vals (sorted, span, 1);
  }
  ls_sort_by (sorted, by_start);
  for (guint i = 0; i < sorted->len; i++) {
    const LsSpanRow *span = &g_array_index (sorted, LsSpanRow, i);
    if (i > 0)
      total.gap_us += MAX (0, span->start_us - last);
    total.busy_us += MAX (0, span->end_us - MAX (span->start_us, last));
    last = MAX (last, span->end_us);
  }
  if (!table->is_measured)
    total.step_us = last_of_all;
  return total;
}

static double
most_time (const LsSpanClass *k)
{
  return fmax (k->predicted_us, k->measured_us); /* of a NaN and a number: the number */
}

static int
by_time (gconstpointer a, gconstpointer b)
{
  double x = most_time (a), y = most_time (b);
  int order = x > y ? -1 : x < y;
  return order != 0 ? order : strcmp (((const LsSpanClass *) a)->name, ((const LsSpanClass *) b)->name);
}

LsSpanCompare *
ls_span_compare_new (const LsSpanTable *measured, const LsSpanTable *predicted, GError **error)
{
  g_autoptr (LsSpanCompare) c = g_new0 (LsSpanCompare, 1);
  g_autoptr (GHashTable) places = g_hash_table_new (g_str_hash, g_str_equal);
  c->classes = g_array_new (FALSE, FALSE, sizeof (LsSpanClass));
  c->rank = g_array_index (measured->spans, LsSpanRow, 0).rank;
  for (guint i = 1; i < measured->spans->len; i++)
    if (g_array_index (measured->spans, LsSpanRow, i).rank != c->rank)
      return ls_fail_null (error, LS_ERROR_CONFLICT,
                           "expected measured spans of one rank; got those of %u and %u", c->rank,
                           g_array_index (measured->spans, LsSpanRow, i).rank);
  if (add_spans (predicted, c->rank, c->classes, places) == 0)
    return ls_fail_null (error, LS_ERROR_CONFLICT,
                         "the prediction has no spans of rank %u, which was measured", c->rank);
  add_spans (measured, c->rank, c->classes, places);
  g_array_sort (c->classes, by_time);
  c->predicted = total_of (predicted, c->rank);
  c->measured = total_of (measured, c->rank);
  return g_steal_pointer (&c);
}
