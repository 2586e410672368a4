/* sweep/sweep_cloud.c — what a sweep simulated, by time, memory and cost. */
#include <math.h>

#include "sweep/sweep_charts.h"
#include "sweep/sweep_state.h"

#define GIB             1073741824.0
#define SECONDS_PER_DAY 86400.0

/* What differs between configurations, with the number of chips where that is said: "tp 4+sp+o, pp 2 x 3
 * interleaved-1f1b, dp 8, zero 1 megatron, mb 2". */
static char *
short_name (const LsStrategy *s, const char *chips)
{
  GString *out = g_string_new (NULL);
  if (chips)
    g_string_append_printf (out, "%u %s, batch %u, ", s->gpus, chips, s->global_batch);
  g_string_append_printf (out, "tp %u%s%s", s->tp, s->sp ? "+sp" : "", s->tp_overlap ? "+o" : "");
  if (s->pp > 1)
    g_string_append_printf (out, ", pp %u", s->pp);
  if (s->vpp > 1)
    g_string_append_printf (out, " x %u", s->vpp);
  if (s->pp > 1)
    g_string_append_printf (out, " %s", s->schedule);
  if (s->cp > 1)
    g_string_append_printf (out, ", cp %u", s->cp);
  if (s->ep > 1)
    g_string_append_printf (out, ", ep %u", s->ep);
  g_string_append_printf (out, ", dp %u zero %u %s, mb %u", s->dp, s->zero_stage,
                          ls_dp_kind_name (s->dp_kind), s->micro_batch);
  if (s->recompute != LS_RECOMPUTE_NONE)
    g_string_append_printf (out, ", %s recompute", ls_recompute_name (s->recompute));
  return g_string_free (out, FALSE);
}

static bool
is_in_front (const LsSweepRun *x, guint candidate)
{
  for (guint i = 0; i < x->front->len; i++)
    if (g_array_index (x->front, guint, i) == candidate)
      return true;
  return false;
}

/* Cost without a price is time of GPUs. */
static LsParetoPoint
point_of (const LsSweepRun *x, guint i)
{
  const Candidate *c = candidate_at (x, i);
  LsStrategy s;
  candidate_strategy_at (x, c->index, &s);
  double tokens_per_s = (double) s.global_batch * s.seq / ls_time_to_s (c->step);
  double usd = ls_price_usd (&x->price, s.gpus, tokens_per_s);
  LsParetoPoint point = {
    .days = 1e12 / tokens_per_s / SECONDS_PER_DAY,
    .gib = (double) c->memory_bytes / GIB,
    .cost = isnan (usd) ? s.gpus * 1e12 / tokens_per_s / 3600 : 1e12 * usd,
    .name = is_in_front (x, i) ? short_name (&s, x->groups->len > 1 ? x->report.chips : NULL) : NULL,
  };
  ls_strategy_clear (&s);
  return point;
}

static int
compare_points (gconstpointer a, gconstpointer b)
{
  const LsParetoPoint *x = a, *y = b;
  if (x->days != y->days)
    return x->days < y->days ? -1 : 1;
  return (x->gib > y->gib) - (x->gib < y->gib);
}

void
ls_sweep_run_pareto (const LsSweepRun *x, LsParetoPlot *ret_plot)
{
  *ret_plot = (LsParetoPlot) {
    .title = sweep_chart_title (x),
    .capacity_gib = (double) x->capacity_bytes / GIB,
    .chip = x->report.chip,
    .is_money = !isnan (x->price.usd_per_gpu_hour),
    .points = g_array_new (FALSE, FALSE, sizeof (LsParetoPoint)),
  };
  for (guint i = 0; i < x->candidates->len; i++)
    if (candidate_at (x, i)->status == TRY_DONE && candidate_at (x, i)->is_confirmed) {
      LsParetoPoint point = point_of (x, i);
      g_array_append_val (ret_plot->points, point);
    }
  g_array_sort (ret_plot->points, compare_points);
  ret_plot->note = g_strdup_printf (
      "time, memory and cost of %u configurations that were simulated and fit; nothing beats %u in all three",
      ret_plot->points->len, x->front->len);
}

static void
point_clear (gpointer point)
{
  g_free (((LsParetoPoint *) point)->name);
}

void
ls_pareto_plot_clear (LsParetoPlot *plot)
{
  g_free (plot->title);
  g_free (plot->note);
  for (guint i = 0; plot->points && i < plot->points->len; i++)
    point_clear (&g_array_index (plot->points, LsParetoPoint, i));
  g_clear_pointer (&plot->points, g_array_unref);
}
