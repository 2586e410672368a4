/* Pins that the kernels of a profiled layer are laid beside those of the job and of each list there is: two
 * real profiles of an eager layer come nearest to the list of the software that ran, on two vendors' GPUs; a
 * simulated step comes nearest to the job's own. Without the profiles, which are not shipped, only the
 * latter. */
#include "ls_test.h"

#include "ask/profile/measured_step.h"
#include "ask/profile/reconcile_layer.h"
#include "kineto_writer.h"
#include "lower/lower.h"

static LsJobResult *
job_of (const char *const (*knobs)[2], guint n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (guint i = 0; i < n; i++)
    LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  LsJobResult *job = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return job;
}

static LsLayerReport *
report_of (LsKineto *profile, const LsJobResult *job)
{
  g_autoptr (GError) error = NULL;
  LsMeasuredStep step;
  g_autoptr (LsStepSide) predicted = job ? ls_step_side_of_timeline (job->timeline, 0, &error) : NULL;
  if (!LS_CHECK (profile && predicted && ls_measured_step_cut (profile, NULL, &step, &error)))
    return NULL;
  LsLayerReport *r = ls_layer_report_new (step.side, predicted, job, &error);
  LS_CHECK_NO_ERROR (error);
  ls_measured_step_clear (&step);
  return r;
}

/* The model does not matter but for its sort: RMSNorm, SwiGLU, as many heads of K as of Q. */
static void
an_eager_layer_is_nearest_to_its_software (void)
{
  static const char *const files[]
      = { "tracelens_h100_qwen1.5-0.5b.json.gz", "tracelens_mi300_qwen1.5-0.5b.json.gz" };
  static const char *const knobs[][2] = { { "model", "llama3.1-8b:layers=4,kv_heads=32" },
                                          { "cluster", "dgx-h100" },
                                          { "gpus", "8" },
                                          { "zero", "3" },
                                          { "kernels", "built-in" } };
  if (!ls_test_shared_data ())
    return;
  g_autoptr (LsJobResult) job = job_of (knobs, G_N_ELEMENTS (knobs));
  for (guint i = 0; i < G_N_ELEMENTS (files) && job; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *path = g_build_filename (ls_test_shared_data (), "kineto", files[i], NULL);
    g_autoptr (LsKineto) profile = ls_kineto_load (path, diags);
    g_autoptr (LsLayerReport) r = report_of (profile, job);
    if (!r || !LS_CHECK (ls_layer_report_is_there (r)))
      continue;
    LS_CHECK_INT (r->measured.pass[LS_PASS_FORWARD].n_layers, ==, 32);
    LS_CHECK_INT (ls_pass_kernels_total (&r->measured.pass[LS_PASS_FORWARD]), ==, 42);
    LS_CHECK_STR (ls_layer_report_job (r)->name, "built-in");
    LS_CHECK_STR (ls_layer_report_nearest (r)->name, "hf-transformers-4.49");
    LS_CHECK_INT (ls_layer_report_nearest (r)->off, ==, 0);
    LS_CHECK (ls_layer_report_job (r)->off > 20);
  }
}

static void
a_simulated_layer_is_the_jobs_own (void)
{
  static const char *const knobs[][2]
      = { { "model", "llama3.1-8b:layers=4" }, { "cluster", "dgx-h100" }, { "dp", "8" } };
  g_autoptr (LsJobResult) job = job_of (knobs, G_N_ELEMENTS (knobs));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsStepSide) side = job ? ls_step_side_of_timeline (job->timeline, 0, &error) : NULL;
  const KinetoForm form = { .n_steps = 2, .rank = 0, .world_size = 8 };
  g_autofree char *text = side ? kineto_of_side (side, &form) : g_strdup ("");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsKineto) profile = ls_kineto_parse ("trace", text, strlen (text), diags);
  g_autoptr (LsLayerReport) r = report_of (profile, job);
  if (!r || !LS_CHECK (ls_layer_report_is_there (r)))
    return;
  for (int pass = 0; pass < LS_N_PASSES; pass++)
    LS_CHECK (r->measured.pass[pass].n_layers >= 3);
  LS_CHECK_INT (r->nearest, ==, 0);
  LS_CHECK_INT (ls_layer_report_job (r)->off, ==, 0);
  LS_CHECK (r->lists->len > 5);
}

/* A ring of attention is no layer each; a model most of whose layers have experts is held against one of
 * these. */
static void
other_layers_are_not_taken_for_it (void)
{
  static const char *const ring[][2]
      = { { "model", "llama3.1-8b:layers=4" }, { "cluster", "dgx-h100" }, { "cp", "2" }, { "dp", "4" } };
  static const char *const mixed[][2]
      = { { "model", "deepseek-v2:layers=6" }, { "cluster", "dgx-h100" }, { "dp", "8" }, { "ep", "8" } };
  g_autoptr (LsJobResult) cut = job_of (ring, G_N_ELEMENTS (ring)),
                          experts = job_of (mixed, G_N_ELEMENTS (mixed));
  g_autoptr (GArray) operators = g_array_new (FALSE, FALSE, sizeof (LsOperator));
  g_autoptr (GError) error = NULL;
  bool has_router = false;
  if (!cut || !experts)
    return;
  g_autoptr (LsStepSide) side = ls_step_side_of_timeline (cut->timeline, 0, &error);
  g_autoptr (LsLayerReport) r = ls_layer_report_new (side, side, cut, &error);
  LS_CHECK (r && !ls_layer_report_is_there (r) && r->why);
  LS_CHECK (ls_layer_operators (&experts->model, &experts->strategy, operators, &error));
  for (guint i = 0; i < operators->len; i++)
    has_router |= g_str_equal (g_array_index (operators, LsOperator, i).name, "router");
  LS_CHECK (has_router);
  LS_CHECK_NO_ERROR (error);
}

LS_TEST_SUITE (LS_TEST (an_eager_layer_is_nearest_to_its_software),
               LS_TEST (a_simulated_layer_is_the_jobs_own), LS_TEST (other_layers_are_not_taken_for_it))
