/* show/write_compare.h — comparisons, for people and for programs (`compare --json`). */
#ifndef LS_SHOW_WRITE_COMPARE_H
#define LS_SHOW_WRITE_COMPARE_H

#include "ask/compare.h"

/* Newly allocated, ending in a newline. Text leaves out what is 0 in both, and of the links
 * all but the ten whose use moved most. */
char *ls_result_compare_to_text (const LsResultCompare *compare);
char *ls_result_compare_to_json (const LsResultCompare *compare);

/* What write_compare_many.c shares: the names of a section, a number as its text has it, and the line of a
 * file. */
const char *ls_compare_section_key (int section);   /* static: "breakdown_s"    */
const char *ls_compare_section_title (int section); /* static: "breakdown, ms"  */
void ls_compare_value_print (GString *out, double value, int section);
void ls_compare_file_print (GString *out, const char *column, const LsResultFile *file);

/* Newly allocated, ending in a newline. */
char *ls_span_compare_to_text (const LsSpanCompare *compare);
char *ls_span_compare_to_json (const LsSpanCompare *compare);

#endif
