/* Pins that parameters are found again from steps made with them, and that those which the
 * steps cannot tell are kept and named: unseen, too many for the rows, or trading with
 * another; that repeats of a job are left out together; and that the errors of what was left out are the
 * interval of a later job on the cluster. By a formula first, then by the simulator. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/calibrate_runs.h"
#include "calibrate/runs_fit.h"
#include "job/job_interval.h"

/* ---- what is said of runs before they are fitted, and what is not ---- */

static void
check (const LsCheckedRun *runs, guint n, const char *expected_note, const char *expected_error)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_runs_check ("mine.csv", runs, n, notes, &error) == !expected_error);
  LS_CHECK (
      !expected_error
      || (g_error_matches (error, LS_ERROR, LS_ERROR_INPUT) && strstr (error->message, expected_error)));
  LS_CHECK_INT (notes->len, ==, expected_note ? 1 : 0);
  if (expected_note && notes->len == 1)
    LS_CHECK (strstr (g_ptr_array_index (notes, 0), expected_note) != NULL);
}

static void
runs_that_agree_are_left_in_peace (void)
{
  static const LsCheckedRun runs[] = { { "a", 1.1, 1 }, { "b", 2.1, 2 }, { "c", 3.3, 3 }, { "d", 1.12, 1 } };
  check (runs, 4, NULL, NULL);
  /* all slow alike: a slow cluster, no outlier */
  static const LsCheckedRun slow[] = { { "a", 3, 1 }, { "b", 6, 2 }, { "c", 9.5, 3 } };
  check (slow, 3, NULL, NULL);
}

static void
milliseconds_are_refused (void)
{
  static const LsCheckedRun runs[] = { { "a", 1100, 1 }, { "b", 2050, 2 }, { "c", 3300, 3 } };
  check (runs, 3, NULL, "mine.csv: measured times are 1.1e+03 times what is predicted");
}

static void
outliers_and_contradictions_are_named (void)
{
  static const LsCheckedRun far[] = { { "a", 1.1, 1 }, { "b", 2.1, 2 }, { "c", 9, 3 }, { "d", 4.3, 4 } };
  check (far, 4, "c is far from the others: measured is 3 times", NULL);
  static const LsCheckedRun twice[] = { { "a", 1.2, 1 }, { "b", 2.1, 2 }, { "c", 1.05, 1 }, { "d", 1.1, 1 } };
  check (twice, 4, "c and a are one job to the simulator, and measured 1.14 times apart", NULL);
}

/* ---- fits ---- */

/* t = a_i / compute + b_i / link + c_i * host; a row each. */
typedef struct {
  double a, b, c;
} Row;

static bool
predict (void *context, const double *x, double *ret_log)
{
  const Row *rows = context;
  for (size_t i = 0; rows[i].a > 0; i++)
    ret_log[i] = log (rows[i].a / x[0] + rows[i].b / x[1] + rows[i].c * x[2]);
  return true;
}

static const LsRunsParameter parameters[]
    = { { "compute", 1, 0.5, 1.2 }, { "link", 1, 0.4, 1.25 }, { "host", 10, 2, 50 } };

static LsRunsFit
fit_of (Row *rows, size_t n, const double *truth)
{
  double log_measured[16];
  predict (rows, truth, log_measured);
  const LsRunsProblem p = { parameters, 3, n, log_measured, NULL, NULL, predict, rows };
  LsRunsFit fit;
  LS_CHECK (ls_runs_fit (&p, &fit));
  return fit;
}

static const double truth[] = { 0.8, 0.7, 10 };

static void
what_rows_show_is_found (void)
{
  Row rows[] = { { 1, 0.1, 0 },   { 1, 0.5, 0 },   { 1, 0.9, 0 }, { 2, 0.1, 0 },
                 { 0.3, 0.6, 0 }, { 0.4, 0.1, 0 }, { 0 } };
  LsRunsFit fit = fit_of (rows, 6, truth);
  LS_CHECK (fit.state[0] == LS_FITTED && fit.state[1] == LS_FITTED && fit.state[2] == LS_KEPT_UNSEEN);
  LS_CHECK_NEAR (fit.value[0], 0.8, 1e-4);
  LS_CHECK_NEAR (fit.value[1], 0.7, 1e-4);
  LS_CHECK_DOUBLE (fit.value[2], ==, 10);
  LS_CHECK_INT (fit.n_fitted, ==, 2);
  LS_CHECK (fit.singular[0] >= fit.singular[1] && fit.singular[1] > fit.singular[2] && fit.condition > 1
            && fit.condition < 100);
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

/* A row for each of two parameters, on which its log depends. */
static bool
predict_apart (void *context, const double *x, double *ret_log)
{
  (void) context;
  for (size_t i = 0; i < 2; i++)
    ret_log[i] = 1 - log (x[i]);
  return true;
}

/* Of two rows one parameter is tried: that which explains more within its range. The second, by half of what
 * its row is off: 0.4^2 - 0.2^2 is more than 0.3^2. Where it may go a sixth of the way,
 * 0.4^2 - (5 / 6 0.4)^2 is less. */
static void
the_one_that_explains_more_is_tried (void)
{
  static const struct {
    double most;
    int tried;
  } cases[] = { { 0.2, 1 }, { 0.4 / 6, 0 } };
  const double log_measured[] = { 1 - 0.3, 1 - 0.4 };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const LsRunsParameter two[] = { { "a", 1, 0.5, 2 }, { "b", 1, 0.5, exp (cases[i].most) } };
    const LsRunsProblem p = { two, 2, 2, log_measured, NULL, NULL, predict_apart, NULL };
    int tried = cases[i].tried;
    LsRunsFit fit;
    LS_CHECK (ls_runs_fit (&p, &fit));
    LS_CHECK_INT (fit.state[tried], !=, LS_KEPT_FEW_ROWS);
    LS_CHECK_INT (fit.state[!tried], ==, LS_KEPT_FEW_ROWS);
    ls_runs_fit_clear (&fit);
  }
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
predict_behind (void *context, const double *x, double *ret_log)
{
  const Row *rows = context;
  for (size_t i = 0; rows[i].a > 0; i++)
    ret_log[i] = log (rows[i].a / x[0] + rows[i].b / fmin (x[1], 1) + rows[i].c * x[2]);
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
    predict_behind (rows, half, log_measured);
    rows[n].a = 0;
    const LsRunsProblem p = { parameters, 3, n, log_measured, NULL, NULL, predict_behind, rows };
    LsRunsFit fit;
    LS_CHECK (ls_runs_fit (&p, &fit));
    LS_CHECK (fit.state[1] == LS_FITTED && fit.state[2] == LS_KEPT_UNSEEN);
    LS_CHECK_NEAR (fit.value[1], 0.5, 1e-3);
    LS_CHECK_NEAR (fit.value[0], 1, 1e-3);
    ls_runs_fit_clear (&fit);
  }
}

/* While the host is far off the link seems not to bite: it is tried again, from where the host has come to. */
static void
what_bites_on_one_side_is_tried_again (void)
{
  static const double known[] = { 1, 0.8, 35 };
  Row rows[] = { { 2, 0, 0.01 }, { 3, 0, 0.09 }, { 1, 0, 0.01 }, { 4, 0.5, 0.02 }, { 0 } };
  double log_measured[4];
  predict_behind (rows, known, log_measured);
  const LsRunsProblem p = { parameters, 3, 4, log_measured, NULL, NULL, predict_behind, rows };
  LsRunsFit fit;
  LS_CHECK (ls_runs_fit (&p, &fit));
  LS_CHECK (fit.state[1] == LS_FITTED && fit.state[2] == LS_FITTED);
  for (int k = 0; k < 3; k++)
    LS_CHECK_NEAR (fit.value[k], known[k], 1e-3);
  ls_runs_fit_clear (&fit);
}

static bool
predict_compute (void *context, const double *x, double *ret_log)
{
  const double all[] = { x[0], 1, 0 };
  return predict (context, all, ret_log);
}

/* Two runs of a job that took 1.2 times what the others did: neither predicts the other, nor do they tell of
 * it. */
static void
repeats_are_left_out_together (void)
{
  Row rows[] = { { 1, 1e-9, 0 }, { 1, 1e-9, 0 }, { 2, 1e-9, 0 }, { 3, 1e-9, 0 }, { 0 } };
  const double log_measured[] = { log (1.2), log (1.2), log (2), log (3) };
  const unsigned jobs[] = { 0, 0, 2, 3 };
  LsRunsProblem p = { parameters, 1, 4, log_measured, NULL, jobs, predict_compute, rows };
  LsRunsFit fit;
  LS_CHECK (ls_runs_fit (&p, &fit));
  LS_CHECK_INT (fit.n_fitted, ==, 1);
  LS_CHECK_NEAR (fit.left_out[0], -log (1.2), 1e-3); /* the two others alone say 1 s */
  LS_CHECK_NEAR (fit.left_out[0], fit.left_out[1], 1e-9);
  LS_CHECK_NEAR (fit.left_out[2], 2 * log (1.2) / 3, 1e-3);
  ls_runs_fit_clear (&fit);

  p.jobs = NULL;
  LS_CHECK (ls_runs_fit (&p, &fit));
  LS_CHECK_NEAR (fit.left_out[0], log (1.2) / 3 - log (1.2), 1e-3);
  ls_runs_fit_clear (&fit);
}

/* Two runs of a job, one ten times longer than predicted and one a fifth, tell nothing: all is as before. */
static void
what_is_kept_is_as_it_was (void)
{
  Row rows[] = { { 1, 1e-9, 0 }, { 1, 1e-9, 0 }, { 0 } };
  const double log_measured[] = { log (10), log (0.2) };
  const LsRunsProblem p = { parameters, 1, 2, log_measured, NULL, NULL, predict_compute, rows };
  LsRunsFit fit;
  LS_CHECK (ls_runs_fit (&p, &fit));
  LS_CHECK (fit.state[0] == LS_KEPT_UNCERTAIN && fit.n_fitted == 0 && isnan (fit.condition));
  LS_CHECK_DOUBLE (fit.value[0], ==, 1);
  for (int i = 0; i < 2; i++)
    LS_CHECK (fit.after[i] == fit.before[i] && isnan (fit.left_out[i]));
  ls_runs_fit_clear (&fit);
}

/* ---- by the simulator ---- */

#define HEAD                                                                                                                         \
  "id,cluster,gpus,layers,hidden,heads,kv_heads,ffn,vocab,seq,mlp,attention,dtype,grad_dtype,global_batch,micro_batch,tp,pp,vpp,dp," \
  "cp,ep,zero,sp,recompute,schedule,dp_kind,dp_overlap,tp_overlap,p2p,iteration_s\n"

static const struct {
  const char *id, *middle, *end;
} shapes[] = {
  { "tp2", "2,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,16,2,2,1,1,1",
    "none,none,megatron,1,0,none" },
  { "one", "1,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,8,2,1,1,1,1", "none,none,none,1,0,none" },
  { "dp2", "2,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,16,4,1,1,1,2",
    "none,none,megatron,0,0,none" },
  { "tp2-wide", "2,2,4096,32,32,16384,50000,1024,gelu,flash,bf16,bf16,16,2,2,1,1,1",
    "none,none,megatron,1,0,none" },
  { "pp2", "2,4,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,16,2,1,2,1,1", "none,1f1b,none,1,0,batched" },
  { "long", "2,2,2048,16,16,8192,50000,4096,gelu,flash,bf16,bf16,8,1,2,1,1,1",
    "none,none,megatron,1,0,none" },
};

static void
append_rows (GString *out, const double *seconds)
{
  g_string_assign (out, HEAD);
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    g_string_append_printf (out, "%s,pair,%s,1,1,0,0,%s,%.9g\n", shapes[i].id, shapes[i].middle,
                            shapes[i].end, seconds ? seconds[i] : 1.0);
}

static LsCalibrateRuns *
calibrated_with (const char *cluster, const double *seconds, const LsProgress *progress, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  char *paths[] = { NULL, NULL };
  append_rows (text, seconds);
  close (g_file_open_tmp ("runs-XXXXXX.csv", paths, NULL));
  g_file_set_contents (paths[0], text->str, -1, NULL);
  const LsCalibrateRunsSpec spec = { (const char *const *) paths, cluster, 2, "test", *progress };
  LsCalibrateRuns *run = ls_calibrate_runs_new (&spec, error);
  g_unlink (paths[0]);
  g_free (paths[0]);
  return run;
}

static LsCalibrateRuns *
calibrated (const char *cluster, const double *seconds, GError **error)
{
  return calibrated_with (cluster, seconds, &(LsProgress) { 0 }, error);
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
    g_autofree char *model
        = g_strdup_printf ("tiny:layers=%s,hidden=%s,heads=%s,ffn=%s,seq=%s", c[1], c[2], c[3], c[5], c[7]);
    const char *const knobs[][2] = { { "model", model },
                                     { "cluster", cluster },
                                     { "gpus", c[0] },
                                     { "global-batch", c[12] },
                                     { "micro-batch", c[13] },
                                     { "tp", c[14] },
                                     { "pp", c[15] },
                                     { "dp", c[17] },
                                     { "sp", "0" },
                                     { "dp-kind", e[2] },
                                     { "dp-overlap", e[3] },
                                     { "grad-dtype", "bf16" },
                                     { "zero", "0" } };
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
  LS_CHECK (!line_of (r, "inter_node")->is_fitted
            && line_of (r, "inter_node")->value == 1); /* one node: nobody asks the network */
  LS_CHECK_DOUBLE (r->error.before, >, 0.1);
  LS_CHECK_DOUBLE (r->error.after, <, 0.002);
  LS_CHECK_DOUBLE (r->error.left_out, <, 0.01);
}

/* ---- the interval of a later job ---- */

static void
use_spec (LsJobSpec *spec, const char *const (*knobs)[2], guint n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_job_spec_init (spec);
  for (guint k = 0; k < n; k++)
    LS_CHECK (ls_job_spec_set (spec, knobs[k][0], knobs[k][1], diags));
}

/* Of "tp2", the first of the shapes, or of a job with other GPUs; its label is newly allocated. */
static char *
interval_of (const char *cluster, const char *residuals, const char *gpus, double *ret_low, double *ret_high)
{
  const char *const knobs[][2]
      = { { "cluster", cluster },   { "model", "tiny:layers=4,hidden=2048,heads=16,ffn=8192,seq=1024" },
          { "gpus", gpus },         { "tp", "2" },
          { "global-batch", "16" }, { "micro-batch", "2" },
          { "grad-dtype", "bf16" }, { "residuals", residuals } };
  LsJobSpec spec;
  use_spec (&spec, knobs, G_N_ELEMENTS (knobs) - (residuals ? 0 : 1));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  g_autoptr (LsResiduals) published = NULL;
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (ls_job_residuals_load (&spec, NULL, &published, &error));
  LsInterval interval = { 0 };
  if (r && published)
    ls_job_interval (&spec, r, published, NULL, &interval);
  char *label = ls_interval_label (&interval);
  *ret_low = interval.low;
  *ret_high = interval.high;
  ls_interval_clear (&interval);
  ls_job_spec_clear (&spec);
  return label;
}

/* Steps that are off what the cluster takes by these, and by nothing else. */
static const double off[] = { 0.03, -0.02, 0.01, -0.03, 0.02, -0.01 };

static char *
calibrated_file (LsCalibrateRuns *run)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *json = ls_calibrate_runs_json (run, "mine-of-runs-fit", &error);
  LS_CHECK_NO_ERROR (error);
  char *path = g_build_filename (g_get_tmp_dir (), "mine-of-runs-fit.json", NULL);
  LS_CHECK (json && g_file_set_contents (path, json, -1, NULL));
  return path;
}

/* Of six runs the largest error, 0.8 * 7 / 6 of six being more than five. */
static void
the_interval_is_of_what_was_left_out (void)
{
  double seconds[G_N_ELEMENTS (shapes)], most = 0, is_low, is_high;
  g_autoptr (GError) error = NULL;
  simulate_at ("fitted.compute=0.8", seconds);
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    seconds[i] *= exp (off[i]);
  g_autoptr (LsCalibrateRuns) run = calibrated (NULL, seconds, &error);
  LS_CHECK_NO_ERROR (error);
  if (!run)
    return;
  const LsFittedReport *r = ls_calibrate_runs_report (run);
  for (guint i = 0; i < r->rows->len; i++) {
    const LsFittedRow *row = &g_array_index (r->rows, LsFittedRow, i);
    LS_CHECK_DOUBLE (fabs (log (row->measured_s / row->left_out_s) - off[i]), <,
                     0.02); /* but for what the fit makes of the others' */
    most = fmax (most, fabs (log (row->measured_s / row->left_out_s)));
  }
  g_autofree char *path = calibrated_file (run), *like = interval_of (path, NULL, "2", &is_low, &is_high);
  LS_CHECK_NEAR (is_low, exp (-most), 1e-5);
  LS_CHECK_NEAR (is_high, exp (most), 1e-5);
  LS_CHECK (g_str_has_prefix (like, "80 % interval, from 6 of your runs (runs-"));
  LS_CHECK (g_str_has_suffix (like, ".csv), left out one at a time"));
  g_autofree char *wider = interval_of (path, NULL, "8", &is_low, &is_high);
  LS_CHECK (strstr (wider, "as none of yours is on more than 2 GPUs") != NULL);
  LS_CHECK_DOUBLE (is_high / is_low, >, 1.05 * exp (2 * most));
  g_autofree char *named
      = interval_of (path, "residuals", "2", &is_low, &is_high); /* what is asked for is not ignored */
  LS_CHECK (strstr (named, "do not count next to --residuals") != NULL);
  g_unlink (path);
}

/* All simulations are counted, and no more are made than were announced. */
static void
count_simulations (guint64 n_done, guint64 n_to_do, gpointer data)
{
  guint64 *last = data;
  LS_CHECK (n_done == last[0] + 1 && n_to_do >= n_done);
  last[0] = n_done;
  last[1] = n_to_do;
}

static void
progress_has_a_total (void)
{
  double seconds[G_N_ELEMENTS (shapes)];
  guint64 last[] = { 0, 0 };
  g_autoptr (GError) error = NULL;
  simulate_at ("fitted.compute=0.8", seconds);
  g_autoptr (LsCalibrateRuns) run
      = calibrated_with (NULL, seconds, &(LsProgress) { count_simulations, last }, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK_INT (last[1], ==, 6 * (1 + 2 * 5 + 6));
  LS_CHECK_DOUBLE ((double) last[0], >, 0.5 * (double) last[1]);
}

static double
step_s (const char *cluster, const char *host_launch)
{
  LsJobSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_job_spec_init (&spec);
  LS_CHECK (ls_job_spec_set (&spec, "model", "tiny", diags)
            && ls_job_spec_set (&spec, "cluster", cluster, diags));
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
  LS_CHECK (!calibrated ("pair:fitted.compute=0.9", NULL, &error)
            && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  g_clear_error (&error);
  LS_CHECK (!calibrated ("nowhere", NULL, &error) && g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (runs_that_agree_are_left_in_peace),
                    LS_TEST (milliseconds_are_refused), LS_TEST (outliers_and_contradictions_are_named),
                    LS_TEST (what_rows_show_is_found), LS_TEST (what_trades_is_kept),
                    LS_TEST (few_rows_fit_few), LS_TEST (the_one_that_explains_more_is_tried),
                    LS_TEST (ranges_hold), LS_TEST (what_bites_on_one_side_is_found),
                    LS_TEST (what_bites_on_one_side_is_tried_again), LS_TEST (repeats_are_left_out_together),
                    LS_TEST (what_is_kept_is_as_it_was), LS_TEST (the_interval_is_of_what_was_left_out),
                    LS_TEST (progress_has_a_total), LS_TEST (a_cluster_is_found_again),
                    LS_TEST (the_host_is_the_clusters), LS_TEST (what_cannot_be_fitted_is_refused))
