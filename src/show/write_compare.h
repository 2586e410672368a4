/* show/write_compare.h — comparisons, for people and for programs (`compare --json`). */
#ifndef LS_SHOW_WRITE_COMPARE_H
#define LS_SHOW_WRITE_COMPARE_H

#include "ask/compare.h"
#include "data/text/json_out.h"

/* Newly allocated, ending in a newline. Text leaves out what is 0 in both, and of the links
 * all but the ten whose use moved most. */
char *ls_result_compare_to_text (const LsResultCompare *compare);
char *ls_result_compare_to_json (const LsResultCompare *compare);

/* Newly allocated, ending in a newline. */
char *ls_span_compare_to_text (const LsSpanCompare *compare);
char *ls_span_compare_to_json (const LsSpanCompare *compare);

/* ---- any number of results: a column for each ---- */

/* Newly allocated, ending in a newline. Text leaves out what is 0 in all, and links. */
char *ls_compare_many_to_text (LsResultFile *const *files, guint n);
char *ls_compare_many_to_json (LsResultFile *const *files, guint n);

#endif
