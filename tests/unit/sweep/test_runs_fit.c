/* Pins that parameters are found again from steps made with them, and that those which the
 * steps cannot tell are kept and named: unseen, too many for the rows, or trading with
 * another. By a formula first, then by the simulator. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "sweep/calibrate_runs.h"
#include "sweep/job.h"
#include "sweep/runs_fit.h"

/* t = a_i / compute + b_i / link + c_i * host; a row each. */
typedef struct {
  double a, b, c;
} Row;

static bool
predict (void *context, const double *x, size_t row, double *ret_log)
{
  const Row *rows = context;
  for (size_t i = 0; rows[i].a > 0; i++)
    if (row == LS_ALL_ROWS || row == i)
      ret_log[i] = log (rows[i].a / x[0] + rows[i].b / x[1] + rows[i].c * x[2]);
  return true;
}

static const LsRunsParameter parameters[] = { { "compute", 1, 0.5, 1.2 }, { "link", 1, 0.4, 1.25 }, { "host", 10, 2, 50 } };

static LsRunsFit
fit_of (Row *rows, size_t n, const double *truth)
{
  double log_measured[16];
  predict (rows, truth, LS_ALL_ROWS, log_measured);
  const LsRunsProblem p = { parameters, 3, n, log_measured, NULL, predict, rows };
  LsRunsFit fit;
  LS_CHECK (ls_runs_fit (&p, &fit));
  return fit;
}

static const double truth[] = { 0.8, 0.7, 10 };

static void
what_rows_show_is_found (void)
{
  Row rows[] = { { 1, 0.1, 0 }, { 1, 0.5, 0 }, { 1, 0.9, 0 }, { 2, 0.1, 0 }, { 0.3, 0.6, 0 }, { 0.4, 0.1, 0 }, { 0 } };
  LsRunsFit fit = fit_of (rows, 6, truth);
  LS_CHECK (fit.state[0] == LS_FITTED && fit.state[1] == LS_FITTED && fit.state[2] == LS_KEPT_UNSEEN);
  LS_CHECK_NEAR (fit.value[0], 0.8, 1e-4);
  LS_CHECK_NEAR (fit.value[1], 0.7, 1e-4);
  LS_CHECK_DOUBLE (fit.value[2], ==, 10);
  LS_CHECK_INT (fit.n_fitted, ==, 2);
  LS_CHECK (fit.singular[0] >= fit.singular[1] && fit.singular[1] > fit.singular[2] && fit.condition > 1 && fit.condition < 100);
  for (int i = 0; i < 6; i++) {
    LS_CHECK (fabs (fit.after[i]) < 1e-4);
    LS_CHECK (fabs (fit.left_out[i]) < 1e-3); /* data that agree predict each other */
    LS_CHECK (fit.before[i] < -0.05);
  }
  ls_runs_fit_clear (&fit);
}

/* Rows in which compute and link have one and the same part cannot tell them apart. */
static void
what_trades_is_kept (void)
{
  Row rows[] = { { 1, 1, 0 }, { 2, 2, 0 }, { 3, 3, 0 }, { 0.5, 0.5, 0 }, { 4, 4, 0 }, { 5, 5, 0 }, { 0 } };
  LsRunsFit fit = fit_of (rows, 6, truth);
  LS_CHECK_INT ((fit.state[0] == LS_KEPT_UNCERTAIN) + (fit.state[1] == LS_KEPT_UNCERTAIN), ==, 1);
  LS_CHECK_INT (fit.n_fitted, ==, 1);
  for (int i = 0; i < 6; i++)
    LS_CHECK (fabs (fit.after[i]) < 1e-4);
  ls_runs_fit_clear (&fit);
}

static void
few_rows_fit_few (void)
{
  Row rows[] = { { 1, 0.2, 0.001 }, { 1, 0.6, 0.002 }, { 0 } };
  LsRunsFit fit = fit_of (rows, 2, truth);
  LS_CHECK_INT (fit.n_fitted, ==, 1);
  LS_CHECK (fit.state[0] == LS_FITTED && fit.state[1] == LS_KEPT_FEW_ROWS);
  ls_runs_fit_clear (&fit);
}

/* Beyond its range a parameter stays at the end of it, and says so. */
static void
ranges_hold (void)
{
  static const double slow[] = { 0.3, 1, 10 };
  Row rows[] = { { 1, 0.001, 0 }, { 2, 0.001, 0 }, { 3, 0.001, 0 }, { 4, 0.001, 0 }, { 0 } };
  LsRunsFit fit = fit_of (rows, 4, slow);
  LS_CHECK_NEAR (fit.value[0], 0.5, 1e-6);
  LS_CHECK (fit.at_bound[0]);
  ls_runs_fit_clear (&fit);
}

/* t = a / compute + b / min (link, 1): at the start link bites on one side only. */
static bool
predict_behind (void *context, const double *x, size_t row, double *ret_log)
{
  const Row *rows = context;
  for (size_t i = 0; rows[i].a > 0; i++)
    if (row == LS_ALL_ROWS || row == i)
      ret_log[i] = log (rows[i].a / x[0] + rows[i].b / fmin (x[1], 1) + 0 * x[2]);
  return true;
}

/* Also with so few rows that only two of three can be fitted: those are taken that explain them. */
static void
what_bites_on_one_side_is_found (void)
{
  static const double half[] = { 1, 0.5, 10 };
  Row rows[] = { { 1, 0.1, 0 }, { 1, 0.5, 0 }, { 1, 0.9, 0 }, { 2, 0.1, 0 }, { 0 } };
  for (size_t n = 4; n >= 2; n -= 2) {
    double log_measured[4];
    predict_behind (rows, half, LS_ALL_ROWS, log_measured);
    rows[n].a = 0;
    const LsRunsProblem p = { parameters, 3, n, log_measured, NULL, predict_behind, rows };
    LsRunsFit fit;
    LS_CHECK (ls_runs_fit (&p, &fit));
    LS_CHECK (fit.state[1] == LS_FITTED && fit.state[2] == LS_KEPT_UNSEEN);
    LS_CHECK_NEAR (fit.value[1], 0.5, 1e-3);
    LS_CHECK_NEAR (fit.value[0], 1, 1e-3);
    ls_runs_fit_clear (&fit);
  }
}

/* ---- by the simulator ---- */

#define HEAD "id,cluster,gpus,layers,hidden,heads,kv_heads,ffn,vocab,seq,mlp,attention,dtype,grad_dtype,global_batch,micro_batch,tp,pp,vpp,dp," \
             "cp,ep,zero,sp,recompute,schedule,dp_kind,dp_overlap,tp_overlap,p2p,iteration_s\n"

static const struct {
  const char *id, *middle, *end;
} shapes[] = {
  { "tp2", "2,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,16,2,2,1,1,1", "none,none,megatron,1,0,none" },
  { "one", "1,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,8,2,1,1,1,1", "none,none,none,1,0,none" },
  { "dp2", "2,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,16,4,1,1,1,2", "none,none,megatron,0,0,none" },
  { "tp2-wide", "2,2,4096,32,32,16384,50000,1024,gelu,flash,bf16,bf16,16,2,2,1,1,1", "none,none,megatron,1,0,none" },
  { "pp2", "2,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,16,2,1,2,1,1", "none,1f1b,none,1,0,batched" },
  { "long", "2,2,2048,16,16,8192,50000,4096,gelu,flash,bf16,bf16,8,1,2,1,1,1", "none,none,megatron,1,0,none" },
};

static void
append_rows (GString *out, const double *seconds)
{
  g_string_assign (out, HEAD);
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    g_string_append_printf (out, "%s,pair,%s,1,1,0,0,%s,%.9g\n", shapes[i].id, shapes[i].middle, shapes[i].end, seconds ? seconds[i] : 1.0);
}

static LsCalibrateRuns *
calibrated (const char *cluster, const double *seconds, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *path = NULL;
  append_rows (text, seconds);
  close (g_file_open_tmp ("runs-XXXXXX.csv", &path, NULL));
  g_file_set_contents (path, text->str, -1, NULL);
  const LsCalibrateRunsSpec spec = { .path = path, .cluster = cluster, .n_threads = 2, .version = "test" };
  LsCalibrateRuns *run = ls_calibrate_runs_new (&spec, error);
  g_unlink (path);
  return run;
}

/* What a cluster with known figures takes: rows "measured" as 1 s come back with what is
 * predicted before the fit. */
static void
simulate_at (const char *fitted, double *ret_seconds)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *cluster = g_strdup_printf ("pair:%s", fitted);
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    LsJobSpec spec;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    ls_job_spec_init (&spec);
    g_auto (GStrv) c = g_strsplit (shapes[i].middle, ",", -1);
    g_auto (GStrv) e = g_strsplit (shapes[i].end, ",", -1);
    g_autofree char *model = g_strdup_printf ("tiny:layers=%s,hidden=%s,heads=%s,ffn=%s,seq=%s", c[1], c[2], c[3], c[5], c[7]);
    const char *const knobs[][2] = { { "model", model }, { "cluster", cluster }, { "gpus", c[0] }, { "global-batch", c[12] }, { "micro-batch", c[13] },
                                     { "tp", c[14] }, { "pp", c[15] }, { "dp", c[17] }, { "sp", "0" }, { "dp-kind", e[2] }, { "dp-overlap", e[3] },
                                     { "grad-dtype", "bf16" }, { "zero", "0" } };
    for (guint k = 0; k < G_N_ELEMENTS (knobs); k++)
      LS_CHECK (strcmp (knobs[k][0], "sp") == 0 || ls_job_spec_set (&spec, knobs[k][0], knobs[k][1], diags));
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    ret_seconds[i] = r ? ls_job_result_step_time_s (r) : 1;
    ls_job_spec_clear (&spec);
  }
}

static const LsFittedLine *
line_of (const LsFittedReport *r, const char *name)
{
  for (guint i = 0; i < r->lines->len; i++)
    if (strcmp (g_array_index (r->lines, LsFittedLine, i).name, name) == 0)
      return &g_array_index (r->lines, LsFittedLine, i);
  return NULL;
}

static void
a_cluster_is_found_again (void)
{
  double seconds[G_N_ELEMENTS (shapes)];
  simulate_at ("fitted.compute=0.8,fitted.intra_node=0.7", seconds);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCalibrateRuns) run = calibrated (NULL, seconds, &error);
  LS_CHECK_NO_ERROR (error);
  if (!run)
    return;
  const LsFittedReport *r = ls_calibrate_runs_report (run);
  LS_CHECK (line_of (r, "compute")->is_fitted && line_of (r, "intra_node")->is_fitted);
  LS_CHECK_NEAR (line_of (r, "compute")->value, 0.8, 0.01);
  LS_CHECK_NEAR (line_of (r, "intra_node")->value, 0.7, 0.02);
  LS_CHECK (!line_of (r, "inter_node")->is_fitted && line_of (r, "inter_node")->value == 1); /* one node: nobody asks the network */
  LS_CHECK_DOUBLE (r->error.before, >, 0.1);
  LS_CHECK_DOUBLE (r->error.after, <, 0.002);
  LS_CHECK_DOUBLE (r->error.left_out, <, 0.01);
}

static double
step_s (const char *cluster, const char *host_launch)
{
  LsJobSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_job_spec_init (&spec);
  LS_CHECK (ls_job_spec_set (&spec, "model", "tiny", diags) && ls_job_spec_set (&spec, "cluster", cluster, diags));
  LS_CHECK (!host_launch || ls_job_spec_set (&spec, "host-launch", host_launch, diags));
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r ? ls_job_result_step_time_s (r) : 0;
}

/* A fitted host counts for every job on the cluster, but for one that says otherwise. */
static void
the_host_is_the_clusters (void)
{
  double plain = step_s ("pair", NULL), slow = step_s ("pair:fitted.host_launch=500us", NULL);
  LS_CHECK_DOUBLE (slow, >, 1.5 * plain);
  LS_CHECK_DOUBLE (slow, ==, step_s ("pair", "500us"));
  LS_CHECK_DOUBLE (plain, ==, step_s ("pair:fitted.host_launch=500us", "10us"));
  LS_CHECK_DOUBLE (plain, ==, step_s ("pair:fitted.compute=1", NULL));
  LS_CHECK_DOUBLE (plain, <, step_s ("pair:fitted.compute=0.9", NULL));
}

static void
what_cannot_be_fitted_is_refused (void)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!calibrated ("pair:fitted.compute=0.9", NULL, &error) && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  g_clear_error (&error);
  LS_CHECK (!calibrated ("nowhere", NULL, &error) && g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
}

int
main (void)
{
  g_autofree char *data = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data", NULL);
  g_setenv ("LS_DATA_DIR", data, TRUE);
  static const LsTestCase cases[] = { LS_TEST (what_rows_show_is_found), LS_TEST (what_trades_is_kept), LS_TEST (few_rows_fit_few),
                                      LS_TEST (ranges_hold), LS_TEST (what_bites_on_one_side_is_found),
                                      LS_TEST (a_cluster_is_found_again), LS_TEST (the_host_is_the_clusters),
                                      LS_TEST (what_cannot_be_fitted_is_refused) };
  return ls_test_run ("runs_fit", cases, G_N_ELEMENTS (cases));
}
