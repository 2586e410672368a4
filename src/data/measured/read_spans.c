#include "data/measured/read_spans.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "data/text/csv.h"

#define US_PER_PS 1e-6
#define MAX_RANK  G_MAXUINT32

typedef struct {
  guint rank, stream, name, start, end;
} Columns;

void
ls_span_table_free (LsSpanTable *table)
{
  if (!table)
    return;
  g_array_unref (table->spans);
  g_free (table);
}

static guint
find_column (const LsCsv *csv, const char *name, LsDiagList *diags)
{
  int column = ls_csv_column (csv, name);
  if (column < 0)
    ls_csv_header_error (csv, diags, "expected a column \"%s\"; got none", name);
  return column < 0 ? 0 : (guint) column;
}

static bool
find_columns (const LsCsv *csv, bool is_measured, Columns *ret, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (ls_csv_column (csv, "start_us") < 0 && ls_csv_column (csv, "start_ps") < 0) {
    ls_csv_header_error (csv, diags,
                         "expected spans, with a column \"start_ps\" (lockstep run --csv) or \"start_us\" "
                         "(kernelbench --plan); got neither");
    return false;
  }
  *ret = (Columns) {
    .rank = find_column (csv, "rank", diags),
    .stream = find_column (csv, "stream", diags),
    .name = find_column (csv, "name", diags),
    .start = find_column (csv, is_measured ? "start_us" : "start_ps", diags),
    .end = find_column (csv, is_measured ? "end_us" : "end_ps", diags),
  };
  return ls_diag_list_n (diags) == n_before;
}

static bool
read_time (const LsCsv *csv, guint row, guint column, double *ret, LsDiagList *diags)
{
  const char *text = ls_csv_cell (csv, row, column);
  char *end;
  errno = 0;
  *ret = g_ascii_strtod (text, &end);
  if (end != text && !*end && isfinite (*ret) && errno == 0)
    return true;
  ls_csv_error (csv, row, column, diags, "expected a time; got \"%.40s\"", text);
  return false;
}

static bool
read_rank (const LsCsv *csv, guint row, guint column, uint32_t *ret, LsDiagList *diags)
{
  guint64 rank;
  const char *text = ls_csv_cell (csv, row, column);
  if (!g_ascii_string_to_unsigned (text, 10, 0, MAX_RANK, &rank, NULL)) {
    ls_csv_error (csv, row, column, diags, "expected a rank; got \"%.40s\"", text);
    return false;
  }
  *ret = (uint32_t) rank;
  return true;
}

static void
read_row (LsSpanTable *table, const LsCsv *csv, guint row, const Columns *c, LsDiagList *diags)
{
  const char *stream = ls_csv_cell (csv, row, c->stream), *name = ls_csv_cell (csv, row, c->name);
  double unit = table->is_measured ? 1 : US_PER_PS, start, end;
  LsSpanRow span = { g_intern_string (stream), g_intern_string (name), 0, 0, 0 };
  if (strcmp (stream, "host") == 0 || !*ls_csv_cell (csv, row, c->end))
    return;
  if (!read_rank (csv, row, c->rank, &span.rank, diags) || !read_time (csv, row, c->start, &start, diags)
      || !read_time (csv, row, c->end, &end, diags))
    return;
  if (end < start) {
    ls_csv_error (csv, row, c->end, diags, "expected an end that is not before the start, %s; got %s",
                  ls_csv_cell (csv, row, c->start), ls_csv_cell (csv, row, c->end));
    return;
  }
  if (strcmp (stream, "step") == 0) {
    if (strcmp (name, "step") == 0)
      table->step_us = (end - start) * unit;
    return;
  }
  span.start_us = start * unit;
  span.end_us = end * unit;
  g_array_append_val (table->spans, span);
}

LsSpanTable *
ls_span_table_load (const char *path, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  Columns columns;
  if (!csv)
    return NULL;
  bool is_measured = ls_csv_column (csv, "start_us") >= 0;
  if (!find_columns (csv, is_measured, &columns, diags))
    return NULL;
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsSpanTable) table = g_new0 (LsSpanTable, 1);
  *table = (LsSpanTable) { is_measured, NAN, g_array_new (FALSE, FALSE, sizeof (LsSpanRow)) };
  for (guint row = 0; row < ls_csv_n_rows (csv); row++)
    read_row (table, csv, row, &columns, diags);
  if (ls_diag_list_n (diags) == n_before && table->spans->len == 0)
    ls_csv_header_error (csv, diags, "expected a span below the header; got none");
  else if (ls_diag_list_n (diags) == n_before && is_measured && !(table->step_us > 0))
    ls_csv_header_error (csv, diags,
                         "expected a row of stream \"step\" and name \"step\" that takes time; got none");
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&table) : NULL;
}
