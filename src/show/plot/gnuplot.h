/* show/plot/gnuplot.h — runs a gnuplot script that draws one picture.
 *
 * gnuplot reads script and data from open files and draws to its standard output, which is
 * passed on to the picture's file: what a path may hold never passes through gnuplot's own
 * language, nothing needs a name that could be left behind, and the picture is there as a whole
 * or not at all (data/text/write_file.h). A script for this begins with
 *
 *     if (!exists('to_stdout')) set output './x.svg'
 *     if (!exists('data')) data = './x.dat'
 *
 * so that people can run it too. A gnuplot that takes longer than 300 s, or than LS_GNUPLOT_SECONDS of
 * the environment, is killed; on Linux it ends with us, whatever ends us. */
#ifndef LS_SHOW_PLOT_GNUPLOT_H
#define LS_SHOW_PLOT_GNUPLOT_H

#include <glib.h>
#include <stdio.h>

/* Runs `script` with `data`, both written, flushed and at any position, and writes what it draws to
 * `picture`. Errors: those of ls_write_file(); LS_ERROR_IO: gnuplot is missing, says why it failed,
 * or took too long; LS_ERROR_USAGE: LS_GNUPLOT_SECONDS is no number of seconds. */
gboolean ls_gnuplot_run (FILE *script, FILE *data, const char *picture, GError **error);

/* Whether there is a gnuplot: LS_ERROR_IO that says how to get one. */
gboolean ls_gnuplot_check (GError **error);

/* `text` as a gnuplot string in single quotes, newly allocated. */
char *ls_gnuplot_quote (const char *text);

#endif
