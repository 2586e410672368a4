/* show/write_compare.h — comparisons, for people and for programs (`compare --json`). */
#ifndef LS_SHOW_WRITE_COMPARE_H
#define LS_SHOW_WRITE_COMPARE_H

#include "ask/compare.h"
#include "data/text/json_out.h"

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

/* ---- any number of results: a column for each ---- */

/* Names (char *, borrowed) of options that are not the same in all files, in the order in which they appear;
 * of files that do not say their options, none. n > 0. Free with g_ptr_array_unref(). */
GPtrArray *ls_compare_options (LsResultFile *const *files, guint n);

/* Their rows, "--tp  2  4", below a line with the columns; nothing if there are none. width: of the names. */
void ls_compare_options_print (LsResultFile *const *files, guint n, int width, GString *out);

/* The member "options" of an open object: name and values, as a and b of two files. */
void ls_compare_options_write (LsResultFile *const *files, guint n, LsJsonOut *w);

/* Newly allocated, ending in a newline. Text leaves out what is 0 in all, and links. */
char *ls_compare_many_to_text (LsResultFile *const *files, guint n);
char *ls_compare_many_to_json (LsResultFile *const *files, guint n);

#endif
