#include "show/run/write_run.h"

#include <math.h>

#include "show/text_table.h"

/* --- how a step follows the hardware, the same --------------------------------------------------- */

#define BAR_WIDTH   30
#define LABEL_WIDTH 28

/* Most effect first; of equals that which the table has first. */
static void
sort (const LsSensitivityTable *t, guint *order)
{
  for (guint i = 0; i < t->n; i++) {
    guint at = i;
    for (; at > 0 && fabs (t->rows[i].elasticity) > fabs (t->rows[order[at - 1]].elasticity); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

void
ls_sensitivity_to_text (const LsSensitivityTable *t, bool is_color, bool is_ascii, GString *out)
{
  g_autofree guint *order = g_new0 (guint, t->n);
  sort (t, order);
  ls_text_heading (out, is_color, "Sensitivity",
                   "percent of the step's time per percent more of each; ms per percent");
  double most = t->n > 0 ? fabs (t->rows[order[0]].elasticity) : 0;
  for (guint i = 0; i < t->n; i++) {
    const LsSensitivity *row = &t->rows[order[i]];
    int n = most > 0 ? (int) lround (fabs (row->elasticity) / most * BAR_WIDTH) : 0;
    g_string_append_printf (out, "  %-*s %+7.3f %+11.4f ms%s", LABEL_WIDTH, row->label,
                            row->elasticity == 0 ? 0 : row->elasticity,
                            row->seconds_per_percent == 0 ? 0 : 1e3 * row->seconds_per_percent,
                            n > 0 ? "  " : "");
    for (int k = 0; k < n; k++)
      g_string_append (out, is_ascii ? "#" : "█");
    g_string_append_c (out, '\n');
  }
}

/* --- over clusters and steps ------------------------------------------------------------------------ */

static char *
more_text (double part)
{
  return g_strdup_printf ("%+.2f %%", 100 * part);
}

static void
append_rows (const LsStepSpread *s, GString *out)
{
  LsTextTable table;
  ls_text_table_init (&table, "rrrrrrrrrr");
  ls_text_table_add (&table,
                     "ranks\vreplicas\vslowest\vnoise\v5 %%\vmedian\v95 %%\vby speed\vby noise\vby day");
  for (guint i = 0; i < s->rows->len; i++) {
    const LsSpreadRow *row = &g_array_index (s->rows, LsSpreadRow, i);
    const double more[] = { row->slowest, row->noise, row->low - 1, row->median - 1, row->high - 1 };
    const double deviations[] = { row->of_gpus, row->of_noise, row->of_day };
    ls_text_table_add (&table, "%u\v%u", row->n_gpus, row->n_replicas);
    for (guint k = 0; k < G_N_ELEMENTS (more); k++)
      ls_text_table_take (&table, more_text (more[k]));
    for (guint k = 0; k < G_N_ELEMENTS (deviations); k++)
      ls_text_table_add (&table, "%.2f %%", 100 * deviations[k]);
  }
  ls_text_table_print (&table, 2, out);
}

static char *
time_text (double seconds)
{
  return ls_format_time (ls_time_from_s (seconds));
}

void
ls_spread_to_text (const LsStepSpread *s, bool is_color, GString *out)
{
  const LsSpreadRow *job = ls_step_spread_of_job (s);
  double base = ls_step_spread_base_s (s);
  g_autofree char *mean = time_text (base * (1 + job->noise)), *low = time_text (base * job->low),
                  *median = time_text (base * job->median), *high = time_text (base * job->high),
                  *alike = time_text (s->alike_s);
  ls_text_heading (out, is_color, "Variation of steps", "jitter %s: %u clusters drawn, %u steps of each",
                   s->jitter, job->n_clusters, job->n_steps);
  g_string_append_printf (out, "  steps    mean %s, median %s; 5 %% to 95 %%: %s to %s\n", mean, median, low,
                          high);
  g_string_append_printf (
      out, "  slowest  in the predicted step: %+.2f %% over all %ss alike, %s; drawn one by one %+.2f %%\n",
      100 * (s->step_s / s->alike_s - 1), s->chip, alike, 100 * job->slowest);
  g_string_append_printf (out, "  noise    not in it: %.2f %% of a %s's step makes steps %.2f %% longer\n",
                          100 * s->noise, s->chip, 100 * job->noise);
  if (s->shift != 0)
    g_string_append_printf (out,
                            "  spread   another than the accelerator's file has: steps change by %+.2f %%\n",
                            100 * s->shift);
  append_rows (s, out);
}

/* --- over seeds of hashed routing ------------------------------------------------------------------- */

static void
add_draw (const char *what, const LsEcmpDraw *draw, const LsEcmpTable *t, bool has_seed, GString *out)
{
  g_autofree char *step = ls_format_time (ls_time_from_s (draw->step_s)),
                  *seed = has_seed ? g_strdup_printf ("%u", draw->seed) : g_strdup ("-");
  g_string_append_printf (out, "  %-8s %12s %+9.2f %%  %9.2f %6s", what, step,
                          100 * (draw->step_s / t->ideal.step_s - 1), draw->crowding, seed);
  g_string_append_printf (out, "%s%s\n", draw->busiest ? "  " : "", draw->busiest ? draw->busiest : "");
}

void
ls_ecmp_to_text (const LsEcmpTable *t, bool is_color, GString *out)
{
  if (!t)
    return;
  ls_text_heading (out, is_color, "Hashed routing",
                   "%u seeds; crowding: bytes of the busiest link between switches over the mean", t->n);
  if (t->ideal.crowding == 0) {
    g_string_append (out, "  nothing passes between switches, so that nothing is chosen\n");
    return;
  }
  g_string_append_printf (out, "  %-8s %12s %11s  %9s %6s  %s\n", "", "step", "slower", "crowding", "seed",
                          "busiest");
  add_draw ("ideal", &t->ideal, t, false, out);
  static const struct {
    const char *what;
    double share;
  } quantiles[] = { { "least", 0 }, { "median", 0.5 }, { "95 %", 0.95 }, { "most", 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (quantiles); i++)
    add_draw (quantiles[i].what, ls_ecmp_quantile (t, quantiles[i].share), t, true, out);
}

/* --- over single faults ----------------------------------------------------------------------------- */

#define N_SHOWN 20

/* "link at 50 % of its capacity", "gpu at 90 % of its speed", "failed link". */
static char *
what_text (const LsFaultAsk *ask, const char *kind)
{
  if (ask->share == 0)
    return g_strdup_printf ("failed %s", kind);
  return g_strdup_printf ("%s at %.4g %% of its %s", kind, 100 * ask->share,
                          ask->kind == LS_FAULT_LINK ? "capacity" : "speed");
}

void
ls_faults_to_text (const LsFaultTable *t, bool is_color, GString *out)
{
  if (!t)
    return;
  const char *kind = t->ask.kind == LS_FAULT_GPU ? t->chip : ls_fault_kind_name (t->ask.kind);
  if (t->rows->len == 0) {
    g_string_append_printf (out, "\n%sOne %s slower%s  there is none that the step uses\n",
                            is_color ? "\033[1m" : "", kind, is_color ? "\033[0m" : "");
    return;
  }
  g_autofree char *what = what_text (&t->ask, kind), *heading = g_strconcat ("One ", what, NULL);
  ls_text_heading (out, is_color, heading,
                   "the step with each, one at a time; alike: as many as it stands for");
  g_string_append_printf (out, "  %12s %9s %7s  %s\n", "step", "slower", "alike", kind);
  for (guint i = 0; i < MIN (t->rows->len, N_SHOWN); i++) {
    const LsFaultRow *row = &g_array_index (t->rows, LsFaultRow, i);
    g_autofree char *step = row->cut_off ? g_strdup ("none") : ls_format_time (ls_time_from_s (row->step_s)),
                    *slower
        = row->cut_off ? g_strdup ("") : g_strdup_printf ("%+.2f %%", 100 * (row->step_s / t->step_s - 1));
    g_string_append_printf (out, "  %12s %9s %7u  %s", step, slower, row->n_alike, row->first);
    if (row->pattern)
      g_string_append_printf (out, "  of %s", row->pattern);
    if (row->cut_off)
      g_string_append_printf (out, "  %s", row->cut_off);
    g_string_append_c (out, '\n');
  }
  if (t->rows->len > N_SHOWN)
    g_string_append_printf (out, "  %u more slow the step no more than these\n", t->rows->len - N_SHOWN);
  if (t->n_idle > 0)
    g_string_append_printf (out, "  %u links carry nothing\n", t->n_idle);
}
