/* show/plot/picture.h — a chart as NAME.svg or NAME.png; or, named NAME.gp, as the gnuplot script that draws
 * NAME.svg with its data in NAME.dat, to be edited. */
#ifndef LS_SHOW_PLOT_PICTURE_H
#define LS_SHOW_PLOT_PICTURE_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "data/text/write_file.h"

typedef struct {
  const char *suffix; /* static: ".svg", ".png"              */
  char *path, *stem;
  char *data; /* NAME.dat of a script; NULL: a picture */
} LsPicture;

/* Names the files and makes sure that they can be written; creates nothing. LS_ERROR_USAGE:
 * another suffix, or what ls_write_file_check() refuses; LS_ERROR_IO: it cannot be written
 * there, or gnuplot is missing for a picture. Clear in either case. */
gboolean ls_picture_init (LsPicture *p, const char *path, GError **error);
void ls_picture_clear (LsPicture *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsPicture, ls_picture_clear)

/* Whether ls_picture_init() would do. */
gboolean ls_picture_check (const char *path, GError **error);

/* Writes data and script, each given `user`, and draws, or leaves it at these; on failure no new
 * file stays. LS_ERROR_IO: cannot be written, or gnuplot failed. */
gboolean ls_picture_draw (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user,
                          GError **error);

/* How large it is, in pixels, and where its title begins. The fonts are variables of its script: points in
 * PNG, pixels in SVG. */
typedef struct {
  double width, height, left;
  const char *svg_fonts, *png_fonts;
  bool has_symbols; /* beyond ASCII */
} LsChart;

/* How a script begins: it opens the terminal that the output's suffix asks for, and says where its data are,
 * as the variable `data`. */
void ls_picture_begin (const LsPicture *p, FILE *out, const LsChart *chart);
/* In a script: a title, and a note below it. */
void ls_picture_write_title (FILE *out, const LsChart *chart, const char *title, const char *note);
/* In the script: where the axes of a panel lie, as shares of the picture from its left and its bottom. */
void ls_picture_write_margins (FILE *out, double left, double right, double top, double bottom);

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
