/* Pins how two results are laid beside each other, and what of measured and predicted spans
 * is added up: classes, computing, gaps, the step. */
#include "ls_test.h"

#include <math.h>

#include "ask/compare.h"

static LsResultFile *
new_file (const char *path)
{
  LsResultFile *file = g_new0 (LsResultFile, 1);
  file->path = g_strdup (path);
  file->options = g_ptr_array_new ();
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++)
    file->sections[s] = g_array_new (FALSE, FALSE, sizeof (LsResultNumber));
  return file;
}

static void
add_number (LsResultFile *file, LsResultSection section, char *name, double value)
{
  LsResultNumber number = { name, value };
  g_array_append_val (file->sections[section], number);
}

static void
rows_are_joined_by_name_and_section (void)
{
  g_autoptr (LsResultFile) a = new_file ("a"), b = new_file ("b");
  add_number (a, LS_RESULT_BREAKDOWN, "forward", 1);
  add_number (a, LS_RESULT_BREAKDOWN, "gone", 2);
  add_number (a, LS_RESULT_LINKS, "new", 5); /* the same name elsewhere is another number */
  add_number (b, LS_RESULT_BREAKDOWN, "new", 3);
  add_number (b, LS_RESULT_BREAKDOWN, "forward", 4);

  g_autoptr (LsResultCompare) c = ls_result_compare_new (a, b);
  const LsCompareRow *rows = (const LsCompareRow *) (gpointer) c->sections[LS_RESULT_BREAKDOWN]->data;
  LS_CHECK_INT (c->sections[LS_RESULT_BREAKDOWN]->len, ==, 3);
  LS_CHECK_STR (rows[0].name, "forward");
  LS_CHECK (rows[0].a == 1 && rows[0].b == 4);
  LS_CHECK_STR (rows[1].name, "gone");
  LS_CHECK (rows[1].a == 2 && isnan (rows[1].b));
  LS_CHECK_STR (rows[2].name, "new");
  LS_CHECK (isnan (rows[2].a) && rows[2].b == 3);
  LS_CHECK_INT (c->sections[LS_RESULT_LINKS]->len, ==, 1);
}

static LsSpanTable *
new_table (double step_us)
{
  LsSpanTable *table = g_new0 (LsSpanTable, 1);
  *table = (LsSpanTable) { !isnan (step_us), step_us, g_array_new (FALSE, FALSE, sizeof (LsSpanRow)) };
  return table;
}

static void
add_span (LsSpanTable *table, uint32_t rank, const char *stream, const char *name, double start_us,
          double end_us)
{
  LsSpanRow span = { g_intern_string (stream), g_intern_string (name), rank, start_us, end_us };
  g_array_append_val (table->spans, span);
}

/* Two streams: what overlaps on compute counts once, the copy not at all; a gap is what
 * nothing on compute covers, from the first span to the last. */
static void
gaps_are_those_of_the_compute_stream (void)
{
  g_autoptr (LsSpanTable) measured = new_table (120), predicted = new_table (NAN);
  add_span (measured, 2, "compute", "gemm", 50, 90);
  add_span (measured, 2, "compute", "gemm", 10, 30);
  add_span (measured, 2, "compute", "norm", 25, 40);
  add_span (measured, 2, "copy", "copy", 0, 100);
  add_span (predicted, 2, "compute", "gemm", -5, 20);
  add_span (predicted, 2, "compute", "record", 20, 20);
  add_span (predicted, 2, "tp", "all-reduce", 20, 60);
  add_span (predicted, 1, "compute", "gemm", 0, 500);

  g_autoptr (LsSpanCompare) c = ls_span_compare_new (measured, predicted, NULL);
  if (!LS_CHECK (c != NULL))
    return;
  LS_CHECK_INT (c->rank, ==, 2);
  LS_CHECK (c->measured.busy_us == 70 && c->measured.gap_us == 10 && c->measured.step_us == 120);
  LS_CHECK (c->predicted.busy_us == 25 && c->predicted.gap_us == 0 && c->predicted.step_us == 60);

  const LsSpanClass *k
      = (const LsSpanClass *) (gpointer) c->classes->data; /* copy 100, gemm 60, all-reduce 40, norm 15 */
  LS_CHECK_INT (c->classes->len, ==, 4);
  LS_CHECK_STR (k[0].name, "copy");
  LS_CHECK_STR (k[1].name, "gemm");
  LS_CHECK_INT (k[1].n_predicted, ==, 1);
  LS_CHECK_INT (k[1].n_measured, ==, 2);
  LS_CHECK (k[1].predicted_us == 25 && k[1].measured_us == 60);
  LS_CHECK (isnan (k[2].measured_us) && k[2].n_measured == 0);
}

static void
other_ranks_are_refused (void)
{
  g_autoptr (LsSpanTable) measured = new_table (9), predicted = new_table (NAN);
  g_autoptr (GError) error = NULL;
  add_span (measured, 1, "compute", "a", 0, 1);
  add_span (predicted, 0, "compute", "a", 0, 1);
  LS_CHECK (ls_span_compare_new (measured, predicted, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  g_clear_error (&error);
  add_span (measured, 0, "compute", "a", 0, 1);
  LS_CHECK (ls_span_compare_new (measured, predicted, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
}

LS_TEST_SUITE (LS_TEST (rows_are_joined_by_name_and_section), LS_TEST (gaps_are_those_of_the_compute_stream),
               LS_TEST (other_ranks_are_refused))
