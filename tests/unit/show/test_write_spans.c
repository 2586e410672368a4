/* Pins the CSV of spans: a row each, uncut, exact to the picosecond, names quoted as
 * RFC 4180 asks, and causes that lead from row to row. */
#include "show/run/write_spans.h"

#include <glib/gstdio.h>

#include "data/text/csv.h"
#include "ls_test.h"
#include "pipeline.h"

static const PipelineShape shape
    = { 2, 1, 3, 10 * LS_MS + 1, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

static LsCsv *
table_of (const LsTimeline *t)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-spans-XXXXXX", NULL),
                  *path = g_build_filename (folder, "s.csv", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_spans_write (t, path, &error));
  LS_CHECK_NO_ERROR (error);
  LsCsv *csv = ls_csv_load (path, diags);
  g_unlink (path);
  g_rmdir (folder);
  return csv;
}

static const char *
cell (const LsCsv *csv, guint row, const char *column)
{
  return ls_csv_cell (csv, row, (guint) ls_csv_column (csv, column));
}

static void
a_row_says_when_and_why (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autoptr (LsCsv) csv = table_of (&p.t);
  if (LS_CHECK (csv != NULL)) {
    /* rank 0, micro-batch 0: half of 10 ms and 1 ps, rounded down, the all-reduce, the rest */
    LS_CHECK_INT (ls_csv_n_rows (csv), ==, p.t.ranks[0].n + p.t.ranks[1].n);
    LS_CHECK_STR (cell (csv, 0, "stream"), "compute");
    LS_CHECK_STR (cell (csv, 0, "name"), "forward");
    LS_CHECK_STR (cell (csv, 0, "end_ps"), "5000000000");
    LS_CHECK_STR (cell (csv, 0, "cause"), "none");
    LS_CHECK_STR (cell (csv, 0, "cause_span"), "");
    LS_CHECK_STR (cell (csv, 0, "matched_ps"), "");
    LS_CHECK_STR (cell (csv, 0, "layer"), "");
    LS_CHECK_STR (cell (csv, 1, "stream"), "tp");
    LS_CHECK_STR (cell (csv, 1, "name"), "all-reduce");
    LS_CHECK_STR (cell (csv, 1, "matched_ps"), "5000000000");
    LS_CHECK_STR (cell (csv, 1, "cause"), "dep");
    LS_CHECK_STR (cell (csv, 1, "cause_span"), "0");
    LS_CHECK_STR (cell (csv, 2, "start_ps"), "6000000000");
    LS_CHECK_STR (cell (csv, 2, "end_ps"), "11000000001");
  }
  pipeline_clear (&p);
}

static void
spans_number_from_0_on_each_rank (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autoptr (LsCsv) csv = table_of (&p.t);
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++) {
    guint rank = row >= p.t.ranks[0].n;
    LS_CHECK_INT (g_ascii_strtoll (cell (csv, row, "rank"), NULL, 10), ==, rank);
    LS_CHECK_INT (g_ascii_strtoll (cell (csv, row, "span"), NULL, 10), ==, row - rank * p.t.ranks[0].n);
  }
  pipeline_clear (&p);
}

static void
spans_are_not_cut_at_the_window (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  p.t.window_start = LS_MS;
  p.t.ranks[0].spans[1].matched = p.t.ranks[0].spans[1].end = LS_TIME_NEVER;
  g_autoptr (LsCsv) csv = table_of (&p.t);
  if (LS_CHECK (csv != NULL)) {
    LS_CHECK_STR (cell (csv, 0, "start_ps"), "-1000000000");
    LS_CHECK_STR (cell (csv, 0, "end_ps"), "4000000000");
    LS_CHECK_STR (cell (csv, 1, "start_ps"), "4000000000");
    LS_CHECK_STR (cell (csv, 1, "matched_ps"), "");
    LS_CHECK_STR (cell (csv, 1, "end_ps"), "");
  }
  pipeline_clear (&p);
}

static void
any_name_survives (void)
{
  const char *const name = "one, \"two\"\tthree";
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  p.ops[p.plan.programs[0].instances[0].segment][PIPELINE_FIRST].name = name;
  g_autoptr (LsCsv) csv = table_of (&p.t);
  if (LS_CHECK (csv != NULL)) {
    LS_CHECK_STR (cell (csv, 0, "name"), name);
    LS_CHECK_STR (cell (csv, 0, "cause"), "none");
  }
  pipeline_clear (&p);
}

LS_TEST_SUITE (LS_TEST (a_row_says_when_and_why), LS_TEST (spans_number_from_0_on_each_rank),
               LS_TEST (spans_are_not_cut_at_the_window), LS_TEST (any_name_survives))
