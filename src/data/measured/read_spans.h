/* data/measured/read_spans.h — spans read back: those that `run --csv` predicts (show/run/write_spans.h) and
 * those that tools/kernelbench measures (`kernelbench --plan`).
 *
 *     predicted  rank,stream,name,...,start_ps,...,end_ps,...
 *     measured   rank,stream,name,...,start_us,end_us,...
 *
 * A measured file begins with rows of the stream "step": one of name "step", whose end is how
 * long an undisturbed step took. */
#ifndef LS_DATA_MEASURED_READ_SPANS_H
#define LS_DATA_MEASURED_READ_SPANS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

typedef struct {
  const char *stream, *name; /* interned */
  uint32_t rank;
  double start_us, end_us;
} LsSpanRow;

typedef struct {
  bool is_measured;
  double step_us; /* NaN: predicted                                        */
  GArray *spans;  /* LsSpanRow, in the order of the file; without those of
                     the host, of `step`, and that never ended             */
} LsSpanTable;

/* NULL, with located diagnostics (LS_ERROR_INPUT): columns are missing, a time or rank is none,
 * a span ends before it starts, no row is left, a measured file has no step. Free with
 * ls_span_table_free(). */
LsSpanTable *ls_span_table_load (const char *path, LsDiagList *diags);
void ls_span_table_free (LsSpanTable *table); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSpanTable, ls_span_table_free)

#endif
