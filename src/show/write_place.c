#include "show/answers.h"

#include <math.h>
#include <string.h>

#include "data/jobs/read_placement.h"
#include "data/text/json_out.h"
#include "job/assumptions.h"
#include "job/knobs.h"
#include "show/quantity.h"
#include "show/run/write_run.h"
#include "show/text_table.h"

#define N_ROWS      12   /* orders shown                            */
#define N_LINKS     3    /* links shown of either                   */
#define LEAST_SHARE 5e-4 /* of a step, that a part must differ by   */

static const LsPlaceRow *
row_at (const LsPlace *p, guint i)
{
  return &g_array_index (p->rows, LsPlaceRow, i);
}

static double
now_s (const LsPlace *p)
{
  return ls_job_result_step_time_s (p->now);
}

/* --- text ------------------------------------------------------------------------------------------ */

/* Rows by step; those without one, as they are found, behind them. Newly allocated. */
static guint *
by_step (const LsPlace *p)
{
  guint n = p->rows->len, *order = g_new (guint, n + 1);
  for (guint i = 0; i < n; i++) {
    guint at = i;
    const LsPlaceRow *row = row_at (p, i);
    for (; at > 0 && row->step > 0; at--) {
      const LsPlaceRow *before = row_at (p, order[at - 1]);
      if (before->step > 0 && before->step <= row->step)
        break;
      order[at] = order[at - 1];
    }
    order[at] = i;
  }
  return order;
}

/* Of stages and replicas, where they are other ones than the job's; newly allocated. */
static char *
shares_text (const char *layers, const char *counts)
{
  return g_strconcat (layers ? ", layers " : "", layers ? layers : "", counts ? ", micro-batches " : "",
                      counts ? counts : "", NULL);
}

static void
append_orders (GString *out, const LsPlace *p)
{
  g_autofree guint *order = by_step (p);
  guint n = p->rows->len, n_pruned = 0, n_refused = 0, n_shown = 0;
  LsTextTable table;
  ls_text_table_init (&table, "rrll");
  g_string_append_printf (out, "\nOrders of ranks, and of their %ss%s\n", p->now->report.chip,
                          n > N_ROWS ? ": the fastest" : "");
  for (guint i = 0; i < n; i++) {
    const LsPlaceRow *row = row_at (p, order[i]);
    n_refused += row->refused != NULL;
    n_pruned += row->least > 0;
    if (row->step == 0 || n_shown++ >= N_ROWS)
      continue;
    ls_text_table_take (&table, ls_format_time (row->step));
    ls_text_table_add (&table, "%+.1f %%\v%s", 100 * (now_s (p) / ls_time_to_s (row->step) - 1), row->order);
    g_autofree char *shares = shares_text (row->layers, row->counts);
    ls_text_table_add (&table, "%s%s%s", row->seats, shares, order[i] == 0 ? "  (the job)" : "");
  }
  ls_text_table_print (&table, 2, out);
  if (n_pruned > 0)
    g_string_append_printf (out, "  %u more cannot be faster than the job, by their lower bound\n", n_pruned);
  if (n_refused > 0)
    g_string_append_printf (out, "  %u more are refused: %s\n", n_refused, row_at (p, order[n - 1])->refused);
}

static void
append_swaps (GString *out, const LsPlace *p)
{
  if (p->n_swaps + p->n_pruned == 0)
    return;
  g_string_append_printf (out, "\nSwaps of nodes  %u simulated, %u cannot gain, %u kept", p->n_swaps,
                          p->n_pruned, p->n_kept);
  if (p->n_left_out > 0)
    g_string_append_printf (out, "; %u not tried (--tries)", p->n_left_out);
  g_string_append_c (out, '\n');
}

/* What of the step became shorter or longer. */
static void
append_parts (GString *out, const LsPlace *p)
{
  const LsReport *now = &p->now->report, *then = &p->then->report;
  LsTextTable table;
  ls_text_table_init (&table, "lrrr");
  g_string_append (out, "\nWhat changes  mean over ranks\n");
  for (const char *const *head = (const char *const[]) { "", "given", "best", "", NULL }; *head; head++)
    ls_text_table_add (&table, "%s", *head);
  for (int part = 0; part < LS_N_PARTS; part++) {
    double before = now->breakdown_s[part], after = then->breakdown_s[part];
    if (fabs (after - before) < LEAST_SHARE * now->step_time_s)
      continue;
    g_autofree char *name = g_strdelimit (g_strdup (ls_part_name ((LsPart) part)), "_", ' ');
    ls_text_table_add (&table, "%s", name);
    g_autofree char *more = ls_text_time (fabs (after - before));
    ls_text_table_take (&table, ls_text_time (before));
    ls_text_table_take (&table, ls_text_time (after));
    ls_text_table_add (&table, "%s%s", after < before ? "-" : "+", more);
  }
  ls_text_table_print (&table, 2, out);
}

static void
append_links_of (LsTextTable *table, const char *when, const LsReport *r)
{
  for (guint i = 0; i < MIN (N_LINKS, r->n_link_groups); i++) {
    const LsLinkGroup *g = &r->link_groups[i];
    ls_text_table_add (table, "%s\v%s\v%.1f %%\v%.2f GB\v(%u)", i == 0 ? when : "", g->name,
                       100 * g->max_utilisation, g->bytes / 1e9, g->n);
  }
}

static void
append_links (GString *out, const LsPlace *p)
{
  LsTextTable table;
  ls_text_table_init (&table, "llrrr");
  g_string_append (out, "\nBusiest links  the most of one, payload of all, how many\n");
  append_links_of (&table, "given", &p->now->report);
  append_links_of (&table, "best", &p->then->report);
  ls_text_table_print (&table, 2, out);
}

static const char *
order_of (const LsJobResult *r)
{
  return r->strategy.rank_order;
}

/* What to append to the job; NULL: nothing of that. */
static char *
options_text (const char *order, const char *placement, const char *layers, const char *counts)
{
  const char *const parts[][2] = { { "--rank-order", order },
                                   { "--placement", placement },
                                   { "--layers-per-chunk", layers },
                                   { "--micro-batches-per-replica", counts } };
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *quoted = parts[i][1] ? ls_shell_quote (parts[i][1]) : NULL;
    if (quoted)
      g_string_append_printf (out, "%s%s %s", out->len > 0 ? " " : "", parts[i][0], quoted);
  }
  return g_string_free (out, FALSE);
}

char *
ls_place_options (const LsPlace *p, const char *file)
{
  bool has_order = g_strcmp0 (order_of (p->now), order_of (p->then)) != 0;
  g_autofree char *usual = ls_rank_order_text (0);
  const char *order = order_of (p->then) ? order_of (p->then) : usual;
  return options_text (has_order ? order : NULL, file, p->layers, p->counts);
}

static char *
row_options (const LsPlace *p, const LsPlaceRow *row)
{
  bool has_order = strcmp (row->order, row_at (p, 0)->order) != 0;
  return options_text (has_order ? row->order : NULL, row->placement, row->layers, row->counts);
}

/* Whether all orders take what the job as given takes, by what is shown. */
static bool
is_alike (const LsPlace *p)
{
  bool are_alike = p->n_pruned == 0;
  for (guint i = 0; i < p->rows->len; i++) {
    const LsPlaceRow *row = row_at (p, i);
    are_alike &= row->refused
        || (row->step > 0 && fabs (now_s (p) / ls_time_to_s (row->step) - 1) < LS_PLACE_LEAST_GAIN);
  }
  return are_alike;
}

/* "step 1.234 s, 12,345 tokens/s"; the rate is not known of each trace. NULL: of no job. */
static char *
step_text (const LsJobResult *job)
{
  g_autofree char *step = job ? ls_text_time (ls_job_result_step_time_s (job)) : NULL,
                  *tokens = job ? ls_text_count (job->report.tokens_per_s) : NULL;
  if (job && isnan (job->report.tokens_per_s))
    return g_strconcat ("step ", step, NULL);
  return job ? g_strdup_printf ("step %s, %s tokens/s", step, tokens) : NULL;
}

char *
ls_place_to_text (const LsPlace *p, const char *title, const char *subtitle)
{
  GString *out = g_string_new (NULL);
  const LsPlaceRow *best = row_at (p, p->best);
  g_autofree char *now = step_text (p->now), *then = step_text (p->then);
  g_string_append_printf (out, "%s\n%s\n\n  given  %s\n", title, subtitle, now);
  g_autofree char *shares = shares_text (p->layers, p->counts);
  if (p->gain < LS_PLACE_LEAST_GAIN)
    g_string_append_printf (out, "  best   %s\n",
                            is_alike (p) ? "placement does not matter: all orders that were tried are as fast"
                                         : "no order that was tried is faster");
  else
    g_string_append_printf (out, "  best   %s, %+.1f %%: %s, %s%s%s\n", then, 100 * p->gain, best->order,
                            best->seats, p->n_kept > 0 ? ", nodes swapped" : "", shares);
  append_orders (out, p);
  append_swaps (out, p);
  if (p->gain >= LS_PLACE_LEAST_GAIN) {
    append_parts (out, p);
    append_links (out, p);
  }
  return g_string_free (out, FALSE);
}

/* --- for programs ---------------------------------------------------------------------------------- */

/* With the seats of all ranks, where they are not the job's. Newly allocated. */
static char *
best_options (const LsPlace *p)
{
  const LsJobResult *then = p->then;
  bool is_moved = !ls_plan_has_same_gpus (p->now->plan, then->plan)
      || then->cluster->spec.interior == LS_INTERIOR_TORUS;
  g_autofree char *seats
      = is_moved ? ls_placement_text (then->cluster, ls_plan_gpus (then->plan), then->plan->n_ranks) : NULL;
  return ls_place_options (p, seats);
}

#include "show/place_keys.h"
