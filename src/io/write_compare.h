/* io/write_compare.h — comparisons, for people and for programs (`compare --json`). */
#ifndef LS_IO_WRITE_COMPARE_H
#define LS_IO_WRITE_COMPARE_H

#include <glib.h>
#include <stdint.h>

#include "io/read_result.h"

/* ---- two results ---- */

typedef struct {
  const char *name; /* borrowed from a LsResultFile */
  double a, b;      /* NaN: that result lacks it    */
} LsCompareRow;

typedef struct {
  const LsResultFile *a, *b; /* borrowed */
  GArray *sections[LS_N_RESULT_SECTIONS]; /* LsCompareRow */
} LsResultCompare;

/* Newly allocated, ending in a newline. Text leaves out what is 0 in both, and of the links
 * all but the ten whose use moved most. */
char *ls_result_compare_to_text (const LsResultCompare *compare);
char *ls_result_compare_to_json (const LsResultCompare *compare);

/* What write_compare_many.c shares: the names of a section, a number as its text has it, and the line of a file. */
const char *ls_compare_section_key (int section);   /* static: "breakdown_s"    */
const char *ls_compare_section_title (int section); /* static: "breakdown, ms"  */
void ls_compare_value_print (GString *out, double value, int section);
void ls_compare_file_print (GString *out, const char *column, const LsResultFile *file);

/* ---- measured and predicted spans ---- */

/* All spans of one name on a rank. */
typedef struct {
  const char *name; /* interned */
  guint n_predicted, n_measured;
  double predicted_us, measured_us; /* sums; NaN without spans */
} LsSpanClass;

/* A side as a whole. Gaps are those between the first and the last span of the compute
 * stream. */
typedef struct {
  double step_us; /* measured: undisturbed; predicted: to the end of the last span */
  double busy_us, gap_us;
} LsSpanTotal;

typedef struct {
  uint32_t rank;
  GArray *classes; /* LsSpanClass, most time first */
  LsSpanTotal predicted, measured;
} LsSpanCompare;

/* Newly allocated, ending in a newline. */
char *ls_span_compare_to_text (const LsSpanCompare *compare);
char *ls_span_compare_to_json (const LsSpanCompare *compare);

#endif
