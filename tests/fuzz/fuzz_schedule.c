/* Any text as a schedule in PyTorch's format: orders that run to their end, or reasons. */
#include "fuzz.h"

#include "data/jobs/read_schedule.h"
#include "schedules/sched_eval.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  static const LsSchedTimes times = { .chunk = { 1, 1, 1, 2, 3 } };
  g_autofree char *text = fuzz_text (data, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOrders) orders = ls_parse_schedule ("fuzz.csv", text, diags);
  g_assert ((orders == NULL) == (ls_diag_list_n (diags) > 0));
  if (orders) {
    g_autoptr (LsSchedEval) eval = ls_orders_eval (orders, &times);
    g_assert (eval->ideal > 0 && eval->ideal <= eval->span && eval->span <= eval->makespan);
  }
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
  return 0;
}
