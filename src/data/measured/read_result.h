/* data/measured/read_result.h — what runs wrote, read back to be compared: results of `run --json`, and
 * spans.
 *
 * Which numbers there are is left to the file: a result of another version compares in what
 * both have. */
#ifndef LS_DATA_MEASURED_READ_RESULT_H
#define LS_DATA_MEASURED_READ_RESULT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

typedef enum {
  LS_RESULT_STEP,      /* step_time_s, mfu and others of the top                */
  LS_RESULT_BREAKDOWN, /* seconds                                               */
  LS_RESULT_BUBBLES,   /* seconds, by their reasons; of a file that has them    */
  LS_RESULT_PATH,      /* picoseconds of the critical path by kind; the same    */
  LS_RESULT_MEMORY,    /* bytes: peak, needed, capacity, categories at the peak */
  LS_RESULT_LINKS,     /* utilisation, 0 to 1: the busiest of each group of links
                          that are alike; of a file without groups, of each link */
  LS_N_RESULT_SECTIONS
} LsResultSection;

typedef struct {
  char *name;   /* "forward", "node0/nic0>leaf0" */
  double value; /* NaN: the file says null       */
} LsResultNumber;

typedef struct {
  char *name;  /* "--tp", "--set tp_async"   */
  char *value; /* "2"; of a switch "on"      */
} LsResultOption;

/* The value of an option, or what it is by itself; NULL: the file does not tell. */
const char *ls_result_option (const GPtrArray *options, const char *name);
/* NULL: the file does not tell. */
const char *ls_result_assumption (const GPtrArray *assumptions, const char *name);

typedef struct {
  char *path;
  char *model, *trace, *cluster;          /* names; NULL: the file says none             */
  bool model_is_of_file;                  /* its name is that of a launch file           */
  double params;                          /* NaN: not known                              */
  GPtrArray *options;                     /* LsResultOption *, as resolved; none if the file does not say */
  GPtrArray *assumptions;                 /* LsResultOption *: "seq", "8192": what its numbers rest on */
  GPtrArray *origins;                     /* LsResultOption *: "seq", "the model's": whence that is */
  GArray *sections[LS_N_RESULT_SECTIONS]; /* LsResultNumber, in the order of the file */
} LsResultFile;

/* NULL, with located diagnostics (LS_ERROR_INPUT): the file cannot be read or is no such
 * result. Free with ls_result_file_free(). */
LsResultFile *ls_result_file_load (const char *path, LsDiagList *diags);
/* The same of a text; name stands for the path. */
LsResultFile *ls_result_file_parse (const char *name, const char *text, LsDiagList *diags);
void ls_result_file_free (LsResultFile *file); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsResultFile, ls_result_file_free)

/* Spans read back: those that `run --csv` predicts (show/run/write_run.h) and those that
 * tools/kernelbench measures (`kernelbench --plan`). */

/* predicted  rank,stream,name,...,start_ps,...,end_ps,...
 *     measured   rank,stream,name,...,start_us,end_us,...
 *
 * A measured file begins with rows of the stream "step": one of name "step", whose end is how
 * long an undisturbed step took. */

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
