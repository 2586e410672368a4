/* io/gnuplot.h — runs a gnuplot script that draws one picture.
 *
 * gnuplot draws to its standard output, which is the picture's file: what a path
 * may hold never passes through gnuplot's own language, and the picture is there
 * as a whole or not at all (io/write_file.h). A script for this begins with
 *
 *     if (!exists('to_stdout')) set output './x.svg'
 *
 * so that people can run it too. */
#ifndef LS_IO_GNUPLOT_H
#define LS_IO_GNUPLOT_H

#include <glib.h>

/* Runs `script` in its folder with the gnuplot variable `to_stdout` set and writes
 * what it draws to `picture`. Errors: those of ls_write_file(); LS_ERROR_IO: gnuplot
 * is missing or says why it failed. */
gboolean ls_gnuplot_run (const char *script, const char *picture, GError **error);

/* Whether there is a gnuplot: LS_ERROR_IO that says how to get one. */
gboolean ls_gnuplot_check (GError **error);

/* `text` as a gnuplot string in single quotes, newly allocated. */
char *ls_gnuplot_quote (const char *text);

#endif
