/* show/write_place.c — where ranks sit best, as text, JSON, CSV. */
#include "show/answers.h"

#include <lockstep/units.h>
#include <math.h>
#include <string.h>

#include "data/jobs/read_placement.h"
#include "data/text/csv.h"
#include "job/assumptions.h"
#include "job/knobs.h"
#include "show/share_keys.h"
#include "show/train_keys.h"

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

/* Whether a part of the step became so much shorter or longer that it is shown. */
static bool
is_other (const LsPlace *p, LsPart part)
{
  const LsReport *now = &p->now->report;
  return fabs (p->then->report.breakdown_s[part] - now->breakdown_s[part]) >= LEAST_SHARE * now->step_time_s;
}

#include "show/place_text.h"

/* --- for programs ---------------------------------------------------------------------------------- */

static const char *
order_of (const LsJobResult *r)
{
  return r->strategy.layout.rank_order;
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

/* With the seats of all ranks, where they are not the job's. Newly allocated. */
static char *
best_options (const LsPlace *p)
{
  const LsJobResult *then = p->then;
  bool is_moved = !ls_plan_has_same_gpus (p->now->plan, then->plan)
      || ls_cluster_traits (&then->cluster->spec)->is_slice;
  g_autofree char *seats
      = is_moved ? ls_placement_text (then->cluster, ls_plan_gpus (then->plan), then->plan->n_ranks) : NULL;
  return ls_place_options (p, seats);
}

#include "show/place_keys.h"

/* ---- what jobs on one cluster lose to each other ---- */

#define MOST_JOBS_SHOWN  4    /* of a link */
#define MOST_NODES_SHOWN 32   /* characters of a list */
#define LEAST_GAIN       5e-4 /* what is shown as equal is */

/* A list as it is, or how many where it is long. Newly allocated. */
static char *
nodes_text (const char *nodes, uint32_t n)
{
  return strlen (nodes) > MOST_NODES_SHOWN ? g_strdup_printf ("%u nodes", n) : g_strdup (nodes);
}

static const LsSharingShift *
shift_at (const LsSharing *s, guint i)
{
  return &g_array_index (s->shifts, LsSharingShift, i);
}

static guint
worst_shift (const LsSharing *s)
{
  guint worst = 0;
  for (guint i = 1; i < s->shifts->len; i++)
    if (shift_at (s, i)->mean > shift_at (s, worst)->mean)
      worst = i;
  return worst;
}

#include "show/share_text.h"

/* ---- a training run of weeks, as text, JSON and CSV ---- */

#define MAX_PHASES   12
#define DOES_NOT_FIT "does not fit into memory: see lockstep memory"

static char *
spares_text (uint32_t spares)
{
  return spares == LS_SPARES_ANY ? g_strdup ("any") : g_strdup_printf ("%u", spares);
}

/* Until when batches are compared that need no more tokens. */
static const char *
batches_to (const LsTrainReport *r)
{
  return r->has_end      ? "after the same days"
      : r->has_steps     ? "after the same steps"
      : r->goal.law.name ? "to the same loss, as if a larger batch needed no more tokens"
                         : "to the same tokens";
}

/* Cells of CSV. */
static char *
number (double value)
{
  GString *out = g_string_new (NULL);
  ls_csv_append_number (out, value);
  return g_string_free (out, FALSE);
}

static char *
cell (const char *text)
{
  GString *out = g_string_new (NULL);
  ls_csv_append (out, text);
  return g_string_free (out, FALSE);
}

#include "show/train_text.h"
