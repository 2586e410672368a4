/* io/gnuplot.h — runs a gnuplot script that draws one picture. */
#ifndef LS_IO_GNUPLOT_H
#define LS_IO_GNUPLOT_H

#include <glib.h>

/* Runs `script` in its folder with the gnuplot variable `output` set to a
 * temporary name beside `picture` and of the same type, then renames that to
 * `picture`. Both are paths in the same folder. Errors: LS_ERROR_IO: gnuplot is
 * missing or says why it failed. */
gboolean ls_gnuplot_run (const char *script, const char *picture, GError **error);

/* `text` as a gnuplot string in single quotes, newly allocated. */
char *ls_gnuplot_quote (const char *text);

#endif
