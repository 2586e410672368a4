#include "show/answers.h"

#include <math.h>

#include "data/text/csv.h"
#include "job/assumptions.h"
#include "job/knobs.h"
#include "show/quantity.h"
#include "show/text_table.h"

#define GIB 1073741824.0

/* --- text ------------------------------------------------------------------------------ */

static void
add_figure (LsTextTable *t, const char *format, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  ls_text_table_add (t, "%s", isnan (value) ? "-" : g_ascii_formatd (buffer, sizeof buffer, format, value));
}

static void
add_layout (LsTextTable *t, const LsStrategy *s)
{
  ls_text_table_add (t, "%u\v%u\v%u%s%s", s->gpus, s->global_batch, s->tp, s->sp ? "+sp" : "",
                     s->tp_overlap ? "+o" : "");
  g_autofree char *chunks = s->vpp > 1 ? g_strdup_printf (" x %u", s->vpp) : g_strdup ("");
  g_autofree char *layers = ls_sweep_layers_text (s);
  ls_text_table_add (t, layers ? "%u%s: %s" : "%u%s", s->pp, chunks, layers);
  ls_text_table_add (t, s->cp > 1 || s->ep > 1 ? "%u, cp %u, ep %u" : "%u", s->dp, s->cp, s->ep);
  ls_text_table_add (t, "%u\v%u %s\v%s", s->micro_batch, s->zero_stage, ls_dp_kind_name (s->dp_kind),
                     s->schedule);
  g_autofree char *recompute = ls_knobs_recompute (s);
  ls_text_table_add (t, "%s", recompute);
}

/* "also vpp 5 (+0.4 %), micro-batch 2 (+1.3 %)"; NULL: none. */
static char *
also_text (const LsSweepRow *r)
{
  if (!r->also)
    return NULL;
  GString *out = g_string_new ("also ");
  for (guint i = 0; i < r->also->len; i++) {
    const LsSweepVariant *v = &g_array_index (r->also, LsSweepVariant, i);
    char more[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd (more, sizeof more, "%.1f",
                     100 * ((double) v->step / v->goodput / ((double) r->step / r->goodput) - 1));
    g_string_append_printf (out, "%s%s (+%s %%)", i > 0 ? "; " : "", v->change, more);
  }
  return g_string_free (out, FALSE);
}

static void
add_row (LsTextTable *t, const LsSweepRow *r)
{
  add_layout (t, &r->strategy);
  ls_text_table_take (t, ls_format_time (r->step));
  ls_text_table_take (t, ls_text_count (r->tokens_per_s));
  add_figure (t, "%.1f", 100 * r->mfu);
  add_figure (t, "%.2f", (double) r->memory_bytes / (double) (UINT64_C (1) << 30));
  ls_text_table_take (t, ls_text_time (r->exposed_s));
  ls_text_table_take (t, ls_text_time (r->bubble_s));
  g_autofree char *also = also_text (r);
  g_autofree char *note
      = g_strjoin (r->why && also ? "; " : "", r->why ? r->why : "", also ? also : "", NULL);
  ls_text_table_note (t, *note ? note : NULL);
}

#define LAYOUT_COLUMNS "rrlllrlll"

static void
append_table (GString *out, const GArray *rows)
{
  LsTextTable t;
  ls_text_table_init (&t, LAYOUT_COLUMNS "rrrrrr");
  ls_text_table_add (
      &t,
      "gpus\vbatch\vtp\vpp\vdp\vmb\vzero\vschedule\vrecompute\vstep\vtokens/s\vMFU %%\vGiB\vexposed\vbubble");
  for (guint i = 0; i < rows->len; i++)
    add_row (&t, &g_array_index (rows, LsSweepRow, i));
  ls_text_table_print (&t, 2, out);
}

static void
append_cost (GString *out, const LsSweepReport *r)
{
  const LsSweepRow *best = &g_array_index (r->best, LsSweepRow, 0);
  char b[G_ASCII_DTOSTR_BUF_SIZE], c[G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *cost = ls_text_money (best->usd_per_trillion),
                  *of_hour = ls_text_money (r->usd_per_gpu_hour),
                  *energy = ls_text_energy (best->kwh_per_trillion);
  bool has_cost = !isnan (best->usd_per_trillion);
  if (has_cost)
    g_string_append_printf (out, "\n  a trillion tokens cost %s at %s for an hour of a %s (--gpu-hour)\n",
                            cost, of_hour, r->chip);
  if (!isnan (best->kwh_per_trillion))
    g_string_append_printf (out, "%s take %s at %s W for a %s (--gpu-watts), PUE %s (--pue)\n",
                            has_cost ? "  and" : "\n  a trillion tokens", energy,
                            g_ascii_formatd (b, sizeof b, "%.0f", best->gpu_watts), r->chip,
                            g_ascii_formatd (c, sizeof c, "%.2f", r->pue));
}

static void
append_rule (GString *out, const LsSweepReport *r, const LsSweepGroup *g)
{
  g_string_append_printf (out, "\nThe rule of thumb (%s in the node, PP across, DP the rest)",
                          r->has_experts ? "EP" : "TP");
  if (!g->rule) {
    g_string_append (out, ": none that is legal fits.\n");
    return;
  }
  g_autoptr (GArray) one = g_array_new (FALSE, FALSE, sizeof (LsSweepRow)); /* borrows */
  g_array_append_vals (one, g->rule, 1);
  g_string_append_printf (out, " is number %" G_GUINT64_FORMAT "%s\n", g->rule_rank,
                          g->is_rule_rank_exact   ? ""
                              : r->is_interrupted ? " at best, as the sweep was stopped"
                                                  : " at best, as some were pruned");
  append_table (out, one);
}

/* What a sweep of these GPUs and this batch alone would print. */
static void
append_group (GString *out, const LsSweepReport *r, const LsSweepGroup *g)
{
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (LsSweepRow)); /* borrows */
  for (guint i = 0; i < r->best->len; i++) {
    const LsSweepRow *row = &g_array_index (r->best, LsSweepRow, i);
    if (row->strategy.gpus == g->gpus && row->strategy.global_batch == g->global_batch)
      g_array_append_vals (rows, row, 1);
  }
  if (rows->len == 0) {
    g_string_append (out, "None is legal and fits.\n");
    return;
  }
  append_table (out, rows);
  if (r->groups->len == 1)
    append_cost (out, r);
  append_rule (out, r, g);
}

static void
append_scaling (GString *out, const LsSweepReport *r)
{
  g_autofree char *of_one = g_strdup_printf ("a %s", r->chip), *share = g_strdup_printf ("%s %%", r->chips);
  LsTextTable t;
  ls_text_table_init (&t, "rrrrrrrr");
  ls_text_table_add (&t, "gpus\vbatch\vstep\vtokens/s\v%s\vMFU %%\v%s\vbatch %%", of_one, share);
  for (guint i = 0; i < r->groups->len; i++) {
    const LsSweepGroup *g = &g_array_index (r->groups, LsSweepGroup, i);
    ls_text_table_add (&t, "%u\v%u", g->gpus, g->global_batch);
    ls_text_table_take (&t, ls_text_time (g->first ? ls_time_to_s (g->first->step) : NAN));
    ls_text_table_take (&t, ls_text_count (g->first ? g->first->tokens_per_s : NAN));
    ls_text_table_take (&t, ls_text_count (g->tokens_per_s_per_gpu));
    add_figure (&t, "%.1f", g->first ? 100 * g->first->mfu : NAN);
    add_figure (&t, "%.1f", 100 * g->of_fewest_gpus);
    add_figure (&t, "%.1f", 100 * g->of_largest_batch);
  }
  g_string_append_printf (
      out, "\nScaling of the best  tokens/s of a %s against the fewest %s, and against the largest batch\n",
      r->chip, r->chips);
  ls_text_table_print (&t, 2, out);
}

/* --- objectives --- */

static gint
compare_values (gconstpointer a, gconstpointer b)
{
  const LsSweepGroup *x = *(LsSweepGroup *const *) a, *y = *(LsSweepGroup *const *) b;
  return x->first->value < y->first->value ? -1 : x->first->value > y->first->value;
}

/* Those that have a best, by it. */
static GPtrArray *
ranked_groups (const LsSweepReport *r)
{
  GPtrArray *list = g_ptr_array_new ();
  for (guint i = 0; i < r->groups->len; i++)
    if (g_array_index (r->groups, LsSweepGroup, i).first)
      g_ptr_array_add (list, &g_array_index (r->groups, LsSweepGroup, i));
  g_ptr_array_sort (list, compare_values);
  return list;
}

static void
append_goal (GString *out, const LsSweepReport *r)
{
  const LsObjective *o = r->objective;
  const LsLossGoal *g = &o->goal;
  char a[G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *tokens = ls_text_count (g->tokens), *critical = ls_text_count (g->critical_batch);
  if (o->kind == LS_OBJECTIVE_GOODPUT)
    g_string_append (out, "\nTokens that count");
  else if (g->law.name)
    g_string_append_printf (out, "\nTo a loss of %s by %s%s: %s tokens in small batches",
                            g_ascii_formatd (a, sizeof a, "%.6g", g->loss), g->law.name,
                            g->law_is_assumed ? " (assumed)" : "", tokens);
  else
    g_string_append_printf (out, "\nTo the loss of %s tokens in small batches", tokens);
  if (g->critical_batch > 0)
    g_string_append_printf (out, ", critical batch %s tokens%s%s", critical, g->critical_law ? " by " : "",
                            g->critical_law ? g->critical_law : "");
  else if (o->kind != LS_OBJECTIVE_GOODPUT)
    g_string_append (out, ", as if a larger batch needed no more (--critical-batch)");
  g_string_append_printf (out, "; failures: %s%s\n", o->reliability.name,
                          o->reliability_is_assumed ? " (assumed)" : "");
}

static void
add_to_loss (LsTextTable *t, const LsSweepGroup *g)
{
  const LsToLoss *f = &g->first->to_loss;
  ls_text_table_take (t, ls_text_count (f->tokens));
  add_figure (t, "%.0f", f->steps);
  ls_text_table_take (t, ls_text_time (f->time_s));
  ls_text_table_take (t, ls_text_money (f->usd));
  ls_text_table_take (t, ls_text_energy (1e3 * f->mwh));
  ls_text_table_add (t, "%s", g->is_beaten ? "" : "*");
}

/* The best of each number of GPUs and batch, best first. */
static void
append_objective (GString *out, const LsSweepReport *r)
{
  static const char *const heads[] = { "gpus",  "batch", "step",  "goodput %", "tokens/s", "tokens",
                                       "steps", "time",  "money", "energy",    "" };
  if (r->objective->kind == LS_OBJECTIVE_STEP)
    return;
  bool is_to_loss = r->objective->kind != LS_OBJECTIVE_GOODPUT;
  g_autoptr (GPtrArray) list = ranked_groups (r);
  LsTextTable t;
  ls_text_table_init (&t, is_to_loss ? "rrrrrrrrrrl" : "rrrrr");
  for (guint i = 0; i < (is_to_loss ? G_N_ELEMENTS (heads) : 5); i++)
    ls_text_table_add (&t, "%s", heads[i]);
  for (guint i = 0; i < list->len; i++) {
    const LsSweepGroup *g = list->pdata[i];
    ls_text_table_add (&t, "%u\v%u", g->gpus, g->global_batch);
    ls_text_table_take (&t, ls_format_time (g->first->step));
    add_figure (&t, "%.2f", 100 * g->first->goodput);
    ls_text_table_take (&t, ls_text_count (g->first->tokens_per_s * g->first->goodput));
    if (is_to_loss)
      add_to_loss (&t, g);
  }
  append_goal (out, r);
  ls_text_table_print (&t, 2, out);
  if (is_to_loss && list->len > 1)
    g_string_append (out, "  * no other is as fast and as cheap\n");
}

static void
append_rules (GString *out, const LsSweepNone *none)
{
  if (none->rules->len == 0)
    return;
  guint first = 0;
  for (; first < none->rules->len && g_array_index (none->rules, LsSweepRule, first).is_of_all; first++)
    g_string_append_printf (out, "%s  %s\n",
                            first == 0 ? "\nNo configuration can be legal, whatever else it breaks\n" : "",
                            g_array_index (none->rules, LsSweepRule, first).text);
  if (first == none->rules->len)
    return;
  g_string_append_printf (out,
                          "\nRules that %" G_GUINT64_FORMAT
                          " configurations break: of how many it is the only one, and in all\n",
                          none->n_looked_at);
  for (guint i = first; i < none->rules->len; i++) {
    const LsSweepRule *rule = &g_array_index (none->rules, LsSweepRule, i);
    g_string_append_printf (out, "  %8" G_GUINT64_FORMAT " %8" G_GUINT64_FORMAT "  %s\n", rule->n_alone,
                            rule->n, rule->text);
  }
}

/* What would help the nearest. */
static void
append_help (GString *out, const LsSweepNone *none, const char *chips)
{
  uint64_t limit = none->capacity_bytes - MIN (none->headroom_bytes, none->capacity_bytes);
  if (none->needed_bytes <= none->capacity_bytes)
    g_string_append_printf (out, "With --headroom %.2fGiB it fits\n",
                            floor (100 * (double) (none->capacity_bytes - none->needed_bytes) / GIB) / 100);
  ls_memory_advice_print (none->advice, out);
  if (!(none->advice && ls_what_if_n_fit (none->advice->tried) > 0) && limit > 0)
    g_string_append_printf (out, "%.0f %s would hold what these %u need, if all of it were cut over more\n",
                            ceil ((double) none->needed_bytes * none->gpus / (double) limit), chips,
                            none->gpus);
}

static void
append_none (GString *out, const LsSweepNone *none, const char *chips)
{
  if (!none)
    return;
  if (none->nearest) {
    double short_gib
        = ((double) none->needed_bytes + (double) none->headroom_bytes - (double) none->capacity_bytes) / GIB;
    g_string_append_printf (
        out, "\nThe nearest is %.2f GiB short: it needs %.2f of %.2f GiB, and a headroom of %s\n  %s\n",
        short_gib, (double) none->needed_bytes / GIB, (double) none->capacity_bytes / GIB, none->headroom,
        none->nearest);
    append_help (out, none, chips);
  }
  append_rules (out, none);
}

/* A variant that was not simulated may be better than one that is listed. */
static void
append_also (GString *out, const LsSweepReport *r)
{
  bool has_also = false;
  for (guint i = 0; i < r->best->len; i++)
    has_also |= g_array_index (r->best, LsSweepRow, i).also != NULL;
  if (has_also && r->counts.pruned > 0)
    g_string_append (out,
                     "\n\"also\" lists what was simulated; of what cannot win, some may be better than "
                     "what is listed (--prune off)\n");
}

#define LINE_WIDTH 110

/* Options, as many in a line as there is place for. */
static void
append_untried (GString *out, const LsSweepReport *r)
{
  gsize begin = 0;
  for (guint i = 0; r->untried && i < r->untried->len; i++) {
    const char *option = ((const LsSweepUntried *) r->untried->pdata[i])->option;
    bool is_full = out->len - begin + strlen (option) > LINE_WIDTH;
    if (i == 0)
      g_string_append (out, "\nNot tried (in each list first what was; with it a sweep tries all of it)");
    if (i == 0 || is_full) {
      g_string_append (out, "\n");
      begin = out->len;
    }
    g_string_append_printf (out, "  %s", option);
  }
  g_string_append (out, begin > 0 ? "\n" : "");
}

char *
ls_sweep_to_text (const LsSweepReport *r)
{
  const LsSweepCounts *c = &r->counts;
  GString *out = g_string_new (NULL);
  g_string_append_printf (out,
                          "%s\n%" G_GUINT64_FORMAT " configurations: %" G_GUINT64_FORMAT
                          " illegal, %" G_GUINT64_FORMAT " do not fit, %" G_GUINT64_FORMAT
                          " cannot win, %" G_GUINT64_FORMAT " simulated",
                          r->title, c->enumerated, c->illegal, c->infeasible, c->pruned, c->simulated);
  if (r->is_interrupted)
    g_string_append_printf (out, "; stopped with %" G_GUINT64_FORMAT " left", c->left);
  g_autofree char *assumed = ls_assumptions_text (r->assumptions);
  g_string_append_printf (out, "\n%s%s\n\n", assumed ? "" : "software ", assumed ? assumed : r->software);
  if (r->best->len == 0) {
    g_string_append (out,
                     r->is_interrupted ? "None that was tried so far is legal and fits.\n"
                                       : "None is legal and fits.\n");
    append_none (out, r->none, r->chips);
    append_untried (out, r);
    return g_string_free (out, FALSE);
  }
  for (guint i = 0; i < r->groups->len; i++) {
    const LsSweepGroup *g = &g_array_index (r->groups, LsSweepGroup, i);
    if (r->groups->len > 1)
      g_string_append_printf (out, "%s%u %s, global batch %u\n", i > 0 ? "\n" : "", g->gpus, r->chips,
                              g->global_batch);
    append_group (out, r, g);
  }
  if (r->groups->len > 1) {
    append_scaling (out, r);
    append_cost (out, r);
  }
  append_also (out, r);
  append_objective (out, r);
  if (r->front) {
    g_string_append (out, "\nPareto front of time, memory and cost\n");
    append_table (out, r->front);
  }
  if (r->headroom)
    g_string_append_printf (out, "\nEach leaves a headroom of %s (--headroom)\n", r->headroom);
  append_untried (out, r);
  if (r->changes)
    ls_sweep_changes_print (r->changes, out);
  if (r->has_timing) {
    char wall[G_ASCII_DTOSTR_BUF_SIZE], simulate[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf (out, "\nTook %s s, of which threads simulated %s s\n",
                            g_ascii_formatd (wall, sizeof wall, "%.1f", r->wall_s),
                            g_ascii_formatd (simulate, sizeof simulate, "%.1f", r->simulate_s));
  }
  ls_sweep_again_print (r, out);
  return g_string_free (out, FALSE);
}

/* Knobs that the first columns have. */
static bool
is_in_front (const char *key)
{
  g_autofree char *word = g_strdup_printf (" %s ", key);
  return strstr (" gpus tp pp dp cp ep vpp sp zero dp_kind schedule micro_batch global_batch recompute "
                 "tp_overlap layers_per_chunk ",
                 word);
}

/* --- JSON ------------------------------------------------------------------------------ */

/* The rule of thumb is that of the last. */
static const LsSweepGroup *
last_of (const LsSweepReport *r)
{
  return &g_array_index (r->groups, LsSweepGroup, r->groups->len - 1);
}

#include "show/sweep_keys.h"
