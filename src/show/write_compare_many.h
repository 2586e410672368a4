/* show/write_compare_many.h — any number of results beside each other: a column for each. */
#ifndef LS_SHOW_WRITE_COMPARE_MANY_H
#define LS_SHOW_WRITE_COMPARE_MANY_H

#include "data/measured/read_result.h"
#include "data/text/json_out.h"

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
