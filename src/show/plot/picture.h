/* show/plot/picture.h — a chart as NAME.svg or NAME.png; or, named NAME.gp, as the gnuplot script that draws
 * NAME.svg with its data in NAME.dat, to be edited. */
#ifndef LS_SHOW_PLOT_PICTURE_H
#define LS_SHOW_PLOT_PICTURE_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "data/text/write_file.h"

/* Whether a chart can be written there; creates nothing. LS_ERROR_USAGE: another suffix, or what
 * ls_write_file_check() refuses; LS_ERROR_IO: it cannot be written there, or gnuplot is missing for a
 * picture. */
gboolean ls_picture_check (const char *path, GError **error);

/* How large a chart is, in pixels, and where its title begins, which the script writes itself where there is
 * none here. Fonts are variables of its script, points in PNG and pixels in SVG; NULL: that of the title. */
typedef struct {
  double width, height, left;
  const char *svg_fonts, *png_fonts;
  bool has_symbols; /* beyond ASCII */
  const char *title, *note;
} LsChart;

/* Writes data, then a script that opens the terminal which the suffix asks for, has where its data are as
 * the variable `data`, and goes on with what write_script writes, each given `user`; and draws, or leaves
 * both. On failure no new file stays. Errors: those of ls_picture_check(); LS_ERROR_IO: gnuplot failed. */
gboolean ls_chart_draw (const char *path, const LsChart *chart, LsWriteFunc write_data,
                        LsWriteFunc write_script, gpointer user, GError **error);

/* In a script: a title, and a note below it. */
void ls_picture_write_title (FILE *out, const LsChart *chart, const char *title, const char *note);
/* In the script: where the axes of a panel lie, in pixels from the chart's left and top. */
void ls_picture_write_margins (FILE *out, const LsChart *chart, double left, double top, double width,
                               double height);
/* Where a legend of one column lies, in the same pixels; the rest of its options. */
void ls_picture_write_key (FILE *out, const LsChart *chart, double left, double top, const char *options);

/* --- runs a gnuplot script that draws one picture ------------------------------------------------ */

/* gnuplot reads script and data from open files and draws to its standard output, which is
 * passed on to the picture's file: what a path may hold never passes through gnuplot's own
 * language, nothing needs a name that could be left behind, and the picture is there as a whole
 * or not at all (data/text/write_file.h). A script for this begins with
 *
 *     if (!exists('to_stdout')) set output './x.svg'
 *     if (!exists('data')) data = './x.dat'
 *
 * so that people can run it too. A gnuplot that takes longer than 300 s, or than LS_GNUPLOT_SECONDS of
 * the environment, is killed; on Linux it ends with us, whatever ends us. */

/* Runs `script` with `data`, both written, flushed and at any position, and writes what it draws to
 * `picture`. Errors: those of ls_write_file(); LS_ERROR_IO: gnuplot is missing, says why it failed,
 * or took too long; LS_ERROR_USAGE: LS_GNUPLOT_SECONDS is no number of seconds. */
gboolean ls_gnuplot_run (FILE *script, FILE *data, const char *picture, GError **error);

/* `text` as a gnuplot string in single quotes, newly allocated. */
char *ls_gnuplot_quote (const char *text);

/* Colours of a scale, dark to bright: viridis (N. Smith and S. van der Walt, matplotlib) at 0, 1/8, .. 1.
 * People with impaired colour vision tell them apart. */
#define LS_N_VIRIDIS 9
extern const char *const ls_viridis[LS_N_VIRIDIS];
/* Of things that are an order, such as numbers of GPUs: viridis at 0, 0.2, .. 0.8; `at` from 0 to 1. */
guint32 ls_viridis_at (double at);

/* Markers of gnuplot that tell series of points apart, beside their colours (show/draw/palette.h); they
 * repeat. Filled circle, square, triangle, diamond, triangle down; open is one less. */
#define LS_N_SERIES_MARKERS 5
static const int ls_series_markers[LS_N_SERIES_MARKERS] = { 7, 5, 9, 13, 11 };

#endif
