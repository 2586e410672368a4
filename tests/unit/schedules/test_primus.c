/* Pins: 1F1B and interleaved 1F1B with the forward and backward times of a measured run
 * reproduce its iterations (../shared/data/kernels/primus_pp_trace.csv, Primus on MI300X,
 * 8 stages, 16 micro-batches): rank 0's total within 2 %. Sends, optimizer and gaps
 * between passes are not in the times, so the prediction must be the shorter one. */
#include "sched_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

LS_TEST_MAIN ("primus", LS_TEST (measured_iterations_are_reproduced))
