/* Schedules beside those of others. */
#include "ls_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sched_run.h"

/* --- another implementation ------------------------------------------------------------------------- */

/* Pins schedules whose authors' code was not found against the orders of an independent
 * implementation (ELF) where they are, both run on our evaluator: never later, never more
 * activations than their bound. */

static uint32_t
number_after (const char *name, const char *key)
{
  const char *p = strstr (name, key);
  return p ? (uint32_t) g_ascii_strtoull (p + strlen (key), NULL, 10) : 0;
}

static void
append_cell (LsOrders *o, uint32_t rank, const char *cell)
{
  static const char letters[] = "FBIW";
  char *p;
  uint32_t stage = (uint32_t) g_ascii_strtoull (cell, &p, 10);
  LsAction a = {
    .chunk = ls_layout_home (&o->layout, 0, stage).chunk,
    .type = (uint8_t) (strchr (letters, *p) - letters),
    .mb = (uint32_t) g_ascii_strtoull (p + 1, NULL, 10),
  };
  g_array_append_val (o->ranks[rank], a);
}

/* The orders of a file, on the layout of ours. */
static LsOrders *
read_orders (const char *path, const LsOrders *ours)
{
  const LsLayout *l = &ours->layout;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  g_file_get_contents (path, &text, NULL, &error);
  if (!LS_CHECK_NO_ERROR (error))
    return NULL;
  LsOrders *o = ls_orders_new (l->n_ranks, l->n_chunks, 1, l->n_stages, l->n_micro_batches, l->stages);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (uint32_t rank = 0; rank < l->n_ranks; rank++) {
    g_auto (GStrv) cells = g_strsplit (lines[rank], ",", -1);
    for (guint i = 0; cells[i]; i++)
      append_cell (o, rank, cells[i]);
  }
  return o;
}

/* F, I, W, comm: equal, inputs dearer, forwards dearer, fused, extremes, profiled ones. */
static const LsTime costs[][4] = {
  { 1, 1, 1, 0 },
  { 10, 12, 8, 0 },
  { 12, 10, 8, 0 },
  { 1, 2, 0, 0 },
  { 2, 1, 0, 0 },
  { 10, 5, 15, 0 },
  { 20, 10, 5, 0 },
  { 10, 30, 5, 0 },
  { 10, 12, 8, 1 },
  { 10, 10, 10, 5 },
  { 10, 20, 0, 4 },
  { 18522, 18086, 9337, 601 },
  { 29718, 29444, 19927, 527 },
};

static void
compare (const char *path, const char *name, const char *schedule)
{
  LsSchedShape shape = {
    .pp = number_after (name, "_p"),
    .n_micro_batches = number_after (name, "_m"),
    .waves = number_after (name, "_waves"),
  };
  g_autoptr (LsOrders) ours = checked_orders (schedule, &shape);
  g_autoptr (LsOrders) theirs = ours ? read_orders (path, ours) : NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!theirs || !LS_CHECK (ls_orders_check (theirs, NULL, diags)))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (costs); i++) {
    LsSchedTimes times = times_of (costs[i][0], costs[i][1], costs[i][2], 0, costs[i][3]);
    g_autoptr (LsSchedEval) a = ls_orders_eval (ours, &times);
    g_autoptr (LsSchedEval) b = ls_orders_eval (theirs, &times);
    if (!LS_CHECK_INT (a->makespan, <=, b->makespan) || !LS_CHECK_INT (a->span, <=, b->span))
      printf ("  %s, times %u\n", name, i);
  }
}

static void
compare_family (const char *schedule, guint n_files)
{
  const char *shared = ls_test_shared_data ();
  if (!shared)
    return;
  g_autofree char *folder = g_build_filename (shared, "schedules", schedule, NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  if (!LS_CHECK (dir != NULL))
    return;
  guint n = 0;
  for (const char *name; (name = g_dir_read_name (dir)); n++) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    compare (path, name, schedule);
  }
  LS_CHECK_INT (n, ==, n_files);
}

static void
zb_h1_is_never_later (void)
{
  compare_family ("zb-h1", 10);
}

static void
zb_h2_is_never_later (void)
{
  compare_family ("zb-h2", 11);
}

static void
hanayo_is_never_later (void)
{
  compare_family ("hanayo", 44);
}

/* --- a measured run --------------------------------------------------------------------------------- */

/* Pins: 1F1B and interleaved 1F1B with the forward and backward times of a measured run
 * reproduce its iterations (../shared/data/kernels/primus_pp_trace.csv, Primus on MI300X,
 * 8 stages, 16 micro-batches): rank 0's total within 2 %. Sends, optimizer and gaps
 * between passes are not in the times, so the prediction must be the shorter one. */

enum { PP = 8, MICRO_BATCHES = 16, MAX_PASSES = 2 * MICRO_BATCHES };

typedef struct {
  double forward_ms[PP][MAX_PASSES], backward_ms[PP][MAX_PASSES]; /* in execution order */
  double total_ms;                                                /* of rank 0 */
  guint n;
} Iteration;

/* Columns: schedule, rank, iter, iter_total_ms, idx, fwd_start_ms, fwd_end_ms, bwd_start_ms, bwd_end_ms. */
static void
read_iteration (const char *text, const char *schedule, const char *iteration, Iteration *ret)
{
  *ret = (Iteration) { .n = 0 };
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines + 1; *line; line++) {
    g_auto (GStrv) cell = g_strsplit (*line, ",", -1);
    if (g_strv_length (cell) < 9 || strcmp (cell[0], schedule) != 0 || strcmp (cell[2], iteration) != 0)
      continue;
    int rank = atoi (cell[1]), k = atoi (cell[4]);
    if (!LS_CHECK (rank >= 0 && rank < PP && k >= 0 && k < MAX_PASSES))
      return;
    ret->forward_ms[rank][k] = g_ascii_strtod (cell[6], NULL) - g_ascii_strtod (cell[5], NULL);
    ret->backward_ms[rank][k] = g_ascii_strtod (cell[8], NULL) - g_ascii_strtod (cell[7], NULL);
    if (rank == 0)
      ret->total_ms = g_ascii_strtod (cell[3], NULL);
    ret->n++;
  }
}

/* The k-th forward of a rank is that of its order. */
static LsTime *
action_times (const LsOrders *orders, uint32_t rank, const Iteration *it)
{
  guint n_forward = 0, n_backward = 0;
  LsTime *times = g_new (LsTime, orders->ranks[rank]->len);
  for (guint i = 0; i < orders->ranks[rank]->len; i++) {
    bool is_forward = g_array_index (orders->ranks[rank], LsAction, i).type == LS_ACTION_F;
    double ms = is_forward ? it->forward_ms[rank][n_forward++] : it->backward_ms[rank][n_backward++];
    times[i] = (LsTime) llround (ms * (double) LS_MS);
  }
  return times;
}

static void
check_iteration (const char *text, const char *schedule, uint32_t vpp, const char *traced,
                 const char *iteration)
{
  Iteration it;
  read_iteration (text, traced, iteration, &it);
  LS_CHECK_INT (it.n, ==, PP * MICRO_BATCHES * vpp);
  LsSchedShape shape = { .pp = PP, .vpp = vpp, .n_micro_batches = MICRO_BATCHES };
  g_autoptr (LsOrders) orders = checked_orders (schedule, &shape);
  if (!orders)
    return;
  LsTime *of_rank[PP];
  for (uint32_t r = 0; r < PP; r++)
    of_rank[r] = action_times (orders, r, &it);
  LsSchedTimes times = { .actions = (const LsTime *const *) of_rank };
  g_autoptr (LsSchedEval) eval = ls_orders_eval (orders, &times);
  double ratio = ls_time_to_s (eval->ranks[0].last) * 1e3 / it.total_ms;
  printf ("%s, iteration %s: %.1f ms, measured %.1f, %+.1f %%\n", schedule, iteration,
          ls_time_to_s (eval->ranks[0].last) * 1e3, it.total_ms, 100 * (ratio - 1));
  LS_CHECK_DOUBLE (ratio, >=, 0.98);
  LS_CHECK_DOUBLE (ratio, <=, 1.0);
  for (uint32_t r = 0; r < PP; r++)
    g_free (of_rank[r]);
}

static void
measured_iterations_are_reproduced (void)
{
  const char *data = ls_test_shared_data ();
  if (!data)
    return;
  g_autofree char *path = g_build_filename (data, "kernels", "primus_pp_trace.csv", NULL), *text = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &text, NULL, NULL)))
    return;
  static const char *const iterations[] = { "6", "7", "8" };
  for (guint i = 0; i < G_N_ELEMENTS (iterations); i++) {
    check_iteration (text, "1f1b", 1, "pp8", iterations[i]);
    check_iteration (text, "interleaved-1f1b", 2, "pp8_vpp2", iterations[i]);
  }
}

LS_TEST_SUITE (LS_TEST (zb_h1_is_never_later), LS_TEST (zb_h2_is_never_later),
               LS_TEST (hanayo_is_never_later), LS_TEST (measured_iterations_are_reproduced))
