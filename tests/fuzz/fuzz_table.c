/* Any text as a table of a kind: read, or refused with reasons. fuzz_target is the kind. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "data/jobs/read_schedule.h"
#include "data/measured/read_cases.h"
#include "data/measured/read_kernels.h"
#include "data/measured/read_nccl_tests.h"
#include "data/measured/read_profile.h"
#include "data/text/csv.h"
#include "schedules/sched_eval.h"

/* The number of rows; -1 if it is no table. */
static int
rows_of (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("fuzz.csv", text, -1, diags);
  g_assert ((csv == NULL) == (ls_diag_list_n (diags) > 0));
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++)
    for (guint column = 0; column < ls_csv_n_columns (csv); column++)
      g_assert (ls_csv_cell (csv, row, column) != NULL);
  return csv ? (int) ls_csv_n_rows (csv) : -1;
}

static bool
read_cases (const char *text, LsDiagList *diags)
{
  int n_rows = rows_of (text);
  g_autoptr (GPtrArray) cases = ls_read_cases ("fuzz.csv", text, false, diags);
  g_assert (!cases || (int) cases->len == n_rows);
  return cases != NULL;
}

static bool
read_collectives (const char *text, LsDiagList *diags)
{
  g_autoptr (GPtrArray) rows = ls_read_collectives ("fuzz.csv", text, diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsMeasuredCollective *m = g_ptr_array_index (rows, i);
    g_assert (m->cluster && m->op && *m->op && m->n_nodes > 0 && m->n_gpus % m->n_nodes == 0
              && m->time_us > 0);
  }
  return rows != NULL;
}

static bool
read_kernels (const char *text, LsDiagList *diags)
{
  g_autoptr (GArray) rows = ls_read_kernels ("fuzz.csv", text, "a100", NULL, diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsTimedKernel *t = &g_array_index (rows, LsTimedKernel, i);
    g_assert (t->kernel.bytes > 0 && t->kernel.flops >= 0 && isfinite (t->kernel.flops));
    g_assert (isnan (t->measured_s) || t->measured_s > 0);
  }
  return rows != NULL;
}

static void
check_nccl_run (const LsNcclTests *t)
{
  g_assert (t->rows->len > 0 && t->n_ranks > 0 && t->n_hosts > 0);
  for (guint i = 0; i < t->rows->len; i++) {
    const LsNcclTestsRow *row = &g_array_index (t->rows, LsNcclTestsRow, i);
    g_assert (row->bytes > 0 && row->time_us > 0 && isfinite (row->time_us));
  }
}

/* An output of nccl-tests. */
static bool
read_nccl_tests (const char *text, LsDiagList *diags)
{
  g_autoptr (GPtrArray) runs = ls_nccl_tests_parse ("fuzz", text, strlen (text), diags);
  for (guint i = 0; runs && i < runs->len; i++)
    check_nccl_run (runs->pdata[i]);
  return runs != NULL;
}

static void
check_profile_rows (const GArray *kernels, guint n_rows)
{
  for (guint i = 0; i < kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    g_assert (t->measured_s > 0 && isfinite (t->measured_s) && t->kernel.bytes > 0 && t->row < n_rows);
  }
}

/* Measured kernels, a profile or a table. Every row can be pointed at. */
static bool
read_profile (const char *text, LsDiagList *diags)
{
  g_autoptr (LsProfile) p = ls_profile_parse ("fuzz", text, strlen (text), "a100", diags);
  if (!p)
    return false;
  g_autoptr (LsDiagList) pointed = ls_diag_list_new ();
  check_profile_rows (p->kernels, p->n_rows);
  check_profile_rows (p->sustained, p->n_rows);
  for (guint i = 0; i < p->n_rows; i++)
    ls_profile_error (p, i, "time_us", pointed, "row %u", i);
  g_autofree char *said = ls_diag_list_format (pointed);
  g_assert (g_utf8_validate (said, -1, NULL));
  return true;
}

/* A schedule in PyTorch's format: orders that run to their end. */
static bool
read_schedule (const char *text, LsDiagList *diags)
{
  static const LsSchedTimes times = { .chunk = { 1, 1, 1, 2, 3 } };
  g_autoptr (LsOrders) orders = ls_parse_schedule ("fuzz.csv", text, diags);
  if (!orders)
    return false;
  g_autoptr (LsSchedEval) eval = ls_orders_eval (orders, &times);
  g_assert (eval->ideal > 0 && eval->ideal <= eval->span && eval->span <= eval->makespan);
  return true;
}

static const struct {
  const char *target;
  bool (*read) (const char *text, LsDiagList *diags);
} kinds[] = {
  { "cases", read_cases },           { "collectives", read_collectives }, { "kernels", read_kernels },
  { "nccl_tests", read_nccl_tests }, { "profile", read_profile },         { "schedule", read_schedule },
};

static void
read_text (const char *text, bool (*read) (const char *text, LsDiagList *diags))
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = read (text, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].target, fuzz_target) == 0) {
      read_text (text, kinds[i].read);
      return 0;
    }
  fuzz_fail ("no kind of table: %s", fuzz_target);
}
