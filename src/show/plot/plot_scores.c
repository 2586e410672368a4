/* show/plot/plot_scores.c — predicted over measured: step times, times of kernels. */
#include "show/plot/plots.h"

#include <math.h>

#include <lockstep/error.h>

#include "show/draw/drawing.h"

/* Pixels. Of runs the upper panel is square, the lower one shares its x axis. */
#define WIDTH  980
#define HEIGHT 980
#define TOP    78
#define LEFT   88
#define RIGHT  250 /* legend, right of the panels */
#define SIDE   (WIDTH - LEFT - RIGHT)
#define GAP    24
#define BOTTOM 62

/* Of kernels. */
#define FIT_HEIGHT 700
#define FIT_RIGHT  310
#define FIT_BOTTOM 68

typedef struct {
  const LsScores *s;
  LsChart chart;
  double lo, hi;  /* of both axes, in seconds  */
  double max_pct; /* of the errors' axis, both ways */
} Plot;

typedef struct {
  const LsFitReport *r;
  LsChart chart;
  double lo, hi; /* of both axes, in us */
} FitPlot;

static void
find_range (Plot *p)
{
  p->lo = INFINITY;
  p->hi = 0;
  for (guint i = 0; i < p->s->n_rows; i++) { /* fmin and fmax pass over NaN */
    p->lo = fmin (p->lo, fmin (p->s->rows[i].measured_s, p->s->rows[i].predicted_s));
    p->hi = fmax (p->hi, fmax (p->s->rows[i].measured_s, p->s->rows[i].predicted_s));
  }
  p->lo /= 1.3;
  p->hi *= 1.3;
  p->max_pct = fmax (20, 10 * ceil (fabs (p->s->total.worst_pct) / 10));
}

static void
find_fit_range (FitPlot *p)
{
  p->lo = INFINITY;
  p->hi = 0;
  for (guint i = 0; i < p->r->kernels->len; i++) {
    const LsFittedKernel *k = &g_array_index (p->r->kernels, LsFittedKernel, i);
    p->lo = fmin (p->lo, 1e6 * fmin (k->measured_s, k->predicted_s));
    p->hi = fmax (p->hi, 1e6 * fmax (k->measured_s, k->predicted_s));
  }
  p->lo /= 1.3;
  p->hi *= 1.3;
}

#include "show/plot_scores_text.h"

gboolean
ls_plot_scores (const LsScores *scores, const char *path, GError **error)
{
  if (scores->total.n == 0)
    return ls_fail (error, LS_ERROR_FAILED, "%s: nothing to draw, as no row could be simulated", path);
  Plot p = { .s = scores, .chart = { .width = WIDTH, .height = HEIGHT, .left = LEFT } };
  find_range (&p);
  return ls_chart_draw (path, &p.chart, write_scores_data, write_scores_script, &p, error);
}

gboolean
ls_plot_calibration (const LsFitReport *report, const char *path, GError **error)
{
  g_autofree char *title = g_strdup_printf ("Kernels on %s: predicted over measured time", report->gpu);
  static const char note[]
      = "in the band within 10 %; open: held out of the fit; in brackets the mean absolute error";
  FitPlot p = { .r = report, .chart = { .width = WIDTH, .height = FIT_HEIGHT, .left = LEFT } };
  p.chart.title = title;
  p.chart.note = note;
  find_fit_range (&p);
  return ls_chart_draw (path, &p.chart, write_fit_data, write_fit_script, &p, error);
}
