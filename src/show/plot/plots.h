/* show/plot/plots.h — charts of curves and points. Each is drawn by gnuplot into path, NAME.svg or NAME.png.
 * Of NAME.gp script and data are left, to be edited and drawn again with `gnuplot NAME.gp`. On failure, there
 * is no new file. Texts are lines of UTF-8. Errors: those of ls_chart_draw(), and as
 * named. */
#ifndef LS_SHOW_PLOT_PLOTS_H
#define LS_SHOW_PLOT_PLOTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "ask/collective/collective_table.h"
#include "ask/schedule.h"
#include "calibrate/fit_report.h"
#include "data/text/write_file.h"
#include "sweep/sweep_charts.h"
#include "sweep/sweep_report.h"
#include "validate/validate.h"

/* Bubbles of pipeline schedules over micro-batches and over stages. LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_bubbles (const LsBubbles *b, const char *path, GError **error);

/* Bus bandwidth over size or over GPUs. Of a table one panel: a line, its points told apart by algorithm and
 * protocol, or a line for each fidelity. Of a comparison a panel for each family: for each number of GPUs a
 * line simulated and points measured. Over GPUs one panel: a line for each size (and fidelity), and marks
 * where a node, a leaf and a pod are full. LS_ERROR_CONFLICT: no row has a size (over GPUs a barrier shows
 * its time). */
gboolean ls_plot_collective (const LsCollectiveTable *t, const char *path, GError **error);

/* A figure over two axes, a cell for each pair of values: what is known of the cell, and no more. A cell that
 * was left out by a bound is hatched and shows that bound. LS_ERROR_CONFLICT: no cell has a value. */
gboolean ls_plot_heat (const LsHeatMap *map, const char *path, GError **error);

/* Configurations by memory, time and cost; those that nothing beats in all of these are marked, and some of
 * them named. LS_ERROR_CONFLICT: there is no point. */
gboolean ls_plot_pareto (const LsParetoPlot *plot, const char *path, GError **error);

/* Step time, tokens/s and MFU of the best configuration over the number of GPUs, and over the global batch,
 * beside ideal scaling (sweep/sweep_report.c). Of another objective what counts, the goodput, and days and
 * cost to the loss in their place. LS_ERROR_CONFLICT: no two groups have a best. */
gboolean ls_plot_scaling (const LsSweepReport *report, const char *path, GError **error);

/* Predicted over measured time of the kernels of a fit, both axes logarithmic: on the line they agree, inside
 * the band they differ by 10 % at most. A colour for each class; open marks were held out. */
gboolean ls_plot_calibration (const LsFitReport *report, const char *path, GError **error);

/* The same of step times; below, the errors over the same axis. A colour and a mark for each family; refused
 * rows are not there. LS_ERROR_FAILED: no row was simulated. */
gboolean ls_plot_scores (const LsScores *scores, const char *path, GError **error);

/* --- a chart as NAME.svg or NAME.png; or as NAME.gp with its data in NAME.dat ---------------------- */

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

/* Markers of gnuplot that tell series of points apart, beside their colours (show/draw/palette.c); they
 * repeat. Filled circle, square, triangle, diamond, triangle down; open is one less. */
#define LS_N_SERIES_MARKERS 5
static const int ls_series_markers[LS_N_SERIES_MARKERS] = { 7, 5, 9, 13, 11 };

#endif
