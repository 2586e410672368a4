#include "show/answers.h"

#include <math.h>

#include "show/quantity.h"
#include "show/run/write_run.h"
#include "show/text_table.h"

#define DAY_S      86400.0
#define MAX_PHASES 12

/* --- text ------------------------------------------------------------------------------ */

static void
append_phase (LsTextTable *table, const LsTrainPhase *p)
{
  ls_text_table_add (table, "%s", p->name);
  ls_text_table_take (table, ls_text_count (p->tokens));
  ls_text_table_add (table, "%.0f", p->n_steps);
  ls_text_table_take (table, p->seq > 0 ? g_strdup_printf ("%u", p->global_batch) : g_strdup ("-"));
  ls_text_table_take (table, p->seq > 0 ? g_strdup_printf ("%u", p->seq) : g_strdup ("-"));
  ls_text_table_take (table, ls_text_time (p->step_s));
  ls_text_table_take (table, isnan (p->mfu) ? g_strdup ("-") : g_strdup_printf ("%.1f %%", 100 * p->mfu));
  ls_text_table_take (table, ls_text_time (p->n_steps * p->step_s));
  ls_text_table_note (table, p->fits ? NULL : "does not fit into memory: see lockstep memory");
}

/* Of many (a batch that grows) only the ends. */
static void
append_phases (GString *out, const LsTrainReport *r)
{
  LsTextTable table;
  ls_text_table_init (&table, "lrrrrrrr");
  static const char *const heads[] = { "phase", "tokens", "steps", "batch", "seq", "step", "MFU", "time" };
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&table, "%s", heads[i]);
  for (guint i = 0; i < r->phases->len; i++) {
    bool is_shown = r->phases->len <= MAX_PHASES || i < 2 || i + 2 >= r->phases->len;
    if (is_shown)
      append_phase (&table, &g_array_index (r->phases, LsTrainPhase, i));
    else if (i == 2)
      for (guint k = 0; k < G_N_ELEMENTS (heads); k++)
        ls_text_table_add (&table, "%s", "...");
  }
  ls_text_table_print (&table, 2, out);
}

static void
append_line (LsTextTable *table, const char *name, char *value)
{
  ls_text_table_add (table, "%s", name);
  ls_text_table_take (table, value);
}

static char *
time_of (const LsOverSeeds *s)
{
  g_autofree char *mean = ls_text_time (s->mean), *low = ls_text_time (s->low),
                  *high = ls_text_time (s->high);
  return g_strdup_printf ("%s (%s to %s)", mean, low, high);
}

static char *
tokens_of (const LsTrainReport *r)
{
  g_autofree char *mean = ls_text_count (r->tokens.mean), *low = ls_text_count (r->tokens.low),
                  *high = ls_text_count (r->tokens.high);
  return g_strdup_printf ("%s (%s to %s)", mean, low, high);
}

static char *
energy_of (const LsTrainReport *r)
{
  g_autofree char *all = ls_text_energy (1e3 * r->mwh);
  return g_strdup_printf ("%s, a %s %.4g W in the mean", all, r->chip, r->gpu_watts);
}

static void
append_costs (LsTextTable *table, const LsTrainReport *r)
{
  g_autofree char *hours = g_strdup_printf ("%s hours", r->chip);
  append_line (table, hours, ls_text_count (r->gpu_hours));
  if (!isnan (r->usd))
    append_line (table, "money", ls_text_money (r->usd));
  if (!isnan (r->mwh))
    append_line (table, "energy", energy_of (r));
  if (r->has_activities)
    append_line (table, "",
                 g_strdup_printf ("%.1f %% computing, %.1f %% communicating, %.1f %% idle, %.1f %% free",
                                  100 * r->mwh_by.computing / r->mwh, 100 * r->mwh_by.communicating / r->mwh,
                                  100 * r->mwh_by.idle / r->mwh, 100 * r->mwh_by.free / r->mwh));
  if (!isnan (r->co2_t))
    append_line (table, "CO2", g_strdup_printf ("%.4g t", r->co2_t));
}

/* The loss at the end, and where batches become too large. */
static void
append_goal (LsTextTable *table, const LsTrainReport *r)
{
  const LsLossGoal *g = &r->goal;
  if (g->law.name) {
    g_autofree char *n = ls_text_count (g->n_params), *tokens = ls_text_count (r->small_tokens);
    append_line (table, "loss",
                 g_strdup_printf ("%.4g nats per token by %s%s, of %s tokens in small batches", r->loss,
                                  g->law.name, g->law_is_assumed ? " (assumed)" : "", tokens));
    append_line (table, "least loss", g_strdup_printf ("%.4g with %s parameters", g->floor, n));
  }
  if (g->critical_law) {
    g_autofree char *tokens = ls_text_count (g->critical_batch);
    append_line (table, "critical batch", g_strdup_printf ("%s tokens by %s", tokens, g->critical_law));
  }
}

/* Of the last phase. */
static void
append_variation (LsTextTable *table, const LsTrainReport *r)
{
  const LsStepSpread *s = r->step_spread;
  if (!s)
    return;
  const LsSpreadRow *job = ls_step_spread_of_job (s);
  double base = ls_step_spread_base_s (s);
  g_autofree char *mean = ls_text_time (base * (1 + job->noise)), *low = ls_text_time (base * job->low),
                  *high = ls_text_time (base * job->high);
  append_line (table, r->phases->len > 1 ? "a last step" : "a step",
               g_strdup_printf ("%s in the mean (%s to %s), %+.2f %%: jitter %s", mean, low, high,
                                100 * (base * (1 + job->noise) / s->step_s - 1), s->jitter));
}

static void
append_summary (GString *out, const LsTrainReport *r)
{
  LsTextTable table;
  ls_text_table_init (&table, "ll");
  if (r->has_end)
    append_line (&table, "tokens seen", tokens_of (r));
  else
    append_line (&table, "all steps alone", ls_text_time (r->ideal_s));
  append_variation (&table, r);
  append_line (&table, "time", time_of (&r->wall_s));
  append_line (&table, "goodput",
               g_strdup_printf ("%.2f %% (%.2f to %.2f)", 100 * r->goodput.mean, 100 * r->goodput.low,
                                100 * r->goodput.high));
  append_line (&table, "stops",
               g_strdup_printf ("%.4g (%.4g to %.4g)", r->stops.mean, r->stops.low, r->stops.high));
  append_line (&table, "between failures", ls_text_time (r->checkpoint.mtbf_s));
  append_goal (&table, r);
  append_costs (&table, r);
  ls_text_table_print (&table, 2, out);
}

static void
append_checkpoint (GString *out, const LsTrainReport *r)
{
  const LsTrainCheckpoint *c = &r->checkpoint;
  const LsTrainPhase *last = &g_array_index (r->phases, LsTrainPhase, r->phases->len - 1);
  g_autofree char *size = ls_format_bytes ((uint64_t) c->bytes), *interval = ls_text_time (c->interval_s),
                  *save = ls_text_time (c->times.save_s), *write = ls_text_time (c->times.write_s),
                  *read = ls_text_time (c->times.read_s), *frozen = ls_text_time (c->times.frozen_s);
  g_string_append_printf (
      out,
      "\ncheckpoint of %s every %" G_GUINT64_FORMAT " steps (%s): the job waits %s, it may be "
      "read after %s more; reading takes %s%s%s\n",
      size, (guint64) last->every, interval, save, write, read,
      c->times.frozen_s > 0 ? ", frozen weights " : "", c->times.frozen_s > 0 ? frozen : "");
  if (!isnan (c->best_s)) {
    g_autofree char *young = ls_text_time (c->young_s), *daly = ls_text_time (c->daly_s),
                    *best = ls_text_time (c->best_s);
    g_string_append_printf (out, "  best interval: Young %s, Daly %s, exactly %s\n", young, daly, best);
  }
  if (!isnan (c->expected_goodput))
    g_string_append_printf (out, "  goodput in closed form %.2f %%, simulated %.2f +- %.2f %%\n",
                            100 * c->expected_goodput, 100 * r->goodput.mean, 100 * r->goodput.error);
}

static void
append_share (LsTextTable *table, const char *name, double seconds, double of_s)
{
  ls_text_table_add (table, "%s", name);
  ls_text_table_take (table, ls_text_time (seconds));
  ls_text_table_add (table, "%.2f %%", 100 * seconds / of_s);
}

static void
append_lost (GString *out, const LsTrainReport *r)
{
  g_string_append (out, "\nwhere time was lost\n");
  LsTextTable table;
  ls_text_table_init (&table, "lrr");
  for (int k = 0; k < LS_N_LOST; k++)
    if (r->lost_s[k] != 0)
      append_share (&table, ls_lost_name ((LsLost) k), r->lost_s[k], r->wall_s.mean);
  ls_text_table_print (&table, 2, out);
}

static void
append_causes (GString *out, const LsTrainReport *r)
{
  LsTextTable table;
  ls_text_table_init (&table, "lrrr");
  ls_text_table_add (&table, "cause\vtimes\vlost\vof the time");
  for (guint i = 0; i < r->causes->len; i++) {
    const LsTrainCause *c = &g_array_index (r->causes, LsTrainCause, i);
    ls_text_table_add (&table, "%s\v%.1f", c->name, c->n);
    ls_text_table_take (&table, ls_text_time (c->lost_s));
    ls_text_table_add (&table, "%.2f %%", 100 * c->lost_s / r->wall_s.mean);
  }
  g_string_append_printf (out, "\nfailures: %s%s, mean of %u seed%s\n", r->reliability,
                          r->reliability_is_assumed ? " (assumed)" : "", r->n_seeds,
                          r->n_seeds == 1 ? "" : "s");
  ls_text_table_print (&table, 2, out);
}

static char *
spares_text (uint32_t spares)
{
  return spares == LS_SPARES_ANY ? g_strdup ("any") : g_strdup_printf ("%u", spares);
}

static void
append_choices (GString *out, const LsTrainReport *r)
{
  if (r->choices->len < 2)
    return;
  LsTextTable table;
  ls_text_table_init (&table, "rrrrr");
  ls_text_table_add (&table, "every\vsteps\vspares\vgoodput\vtime");
  for (guint i = 0; i < r->choices->len; i++) {
    const LsTrainChoice *c = &g_array_index (r->choices, LsTrainChoice, i);
    ls_text_table_take (&table, ls_text_time (c->interval_s));
    ls_text_table_add (&table, "%" G_GUINT64_FORMAT, (guint64) c->every);
    ls_text_table_take (&table, spares_text (c->spares));
    bool is_lost = isnan (c->goodput.mean);
    ls_text_table_take (
        &table,
        is_lost ? g_strdup ("no run survives")
                : g_strdup_printf ("%.3f +- %.3f %%", 100 * c->goodput.mean, 100 * c->goodput.error));
    ls_text_table_take (&table, ls_text_time (is_lost ? NAN : c->wall_s.mean));
  }
  g_string_append (out, "\nintervals and spare nodes\n");
  ls_text_table_print (&table, 2, out);
}

static void
append_batch (LsTextTable *table, const LsTrainBatch *b)
{
  ls_text_table_add (table, "%u", b->global_batch);
  if (b->refused) {
    for (int i = 0; i < 6; i++)
      ls_text_table_add (table, "-");
    ls_text_table_note (table, b->refused);
    return;
  }
  ls_text_table_take (table, ls_text_count (b->tokens));
  ls_text_table_add (table, "%.0f", b->steps);
  ls_text_table_take (table, ls_text_time (b->step_s));
  ls_text_table_take (table, ls_text_time (b->wall_s));
  ls_text_table_take (table, ls_text_count (b->gpu_hours));
  ls_text_table_take (table, ls_text_money (b->usd));
  ls_text_table_note (table, b->fits ? NULL : "does not fit into memory: see lockstep memory");
}

/* Of the run, and of the same with other batches. */
static void
append_batches (GString *out, const LsTrainReport *r)
{
  if (r->batches->len == 0)
    return;
  g_autofree char *hours = g_strdup_printf ("%s hours", r->chip),
                  *critical = ls_text_count (r->goal.critical_batch);
  LsTextTable table;
  ls_text_table_init (&table, "rrrrrrr");
  ls_text_table_add (&table, "batch\vtokens\vsteps\vstep\vtime\v%s\vmoney", hours);
  for (guint i = 0; i < r->batches->len; i++)
    append_batch (&table, &g_array_index (r->batches, LsTrainBatch, i));
  if (r->goal.critical_batch > 0)
    g_string_append_printf (out, "\nbatches, to the same loss with a critical batch of %s tokens\n",
                            critical);
  else
    g_string_append_printf (out, "\nbatches, %s\n",
                            r->has_end         ? "after the same days"
                                : r->has_steps ? "after the same steps"
                                : r->goal.law.name
                                ? "to the same loss, as if a larger batch needed no more tokens"
                                : "to the same tokens");
  ls_text_table_print (&table, 2, out);
}

char *
ls_train_to_text (const LsTrainReport *r, const char *title, const char *subtitle)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s\n%s\n\n", title, subtitle);
  append_phases (out, r);
  g_string_append_c (out, '\n');
  append_summary (out, r);
  append_checkpoint (out, r);
  append_lost (out, r);
  if (r->causes->len > 0)
    append_causes (out, r);
  append_choices (out, r);
  append_batches (out, r);
  return g_string_free (out, FALSE);
}
