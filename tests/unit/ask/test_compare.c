/* Pins what is laid beside each other: two results, and a profiled layer with the lists of kernels there are. */
#include "ls_test.h"
#include "kineto_writer.h"

#include <math.h>

#include "ask/compare.h"
#include "ask/profile/profile_step.h"
#include "ask/profile/reconcile_job.h"
#include "lower/lower.h"

/* Pins how two results are laid beside each other, and what of measured and predicted spans
 * is added up: classes, computing, gaps, the step. */

static LsResultFile *
new_file (const char *path)
{
  LsResultFile *file = g_new0 (LsResultFile, 1);
  file->path = g_strdup (path);
  file->options = g_ptr_array_new ();
  file->assumptions = g_ptr_array_new ();
  file->origins = g_ptr_array_new ();
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++)
    file->sections[s] = g_array_new (FALSE, FALSE, sizeof (LsResultNumber));
  return file;
}

static void
add_number (LsResultFile *file, LsResultSection section, char *name, double value)
{
  LsResultNumber number = { name, value };
  g_array_append_val (file->sections[section], number);
}

static void
rows_are_joined_by_name_and_section (void)
{
  g_autoptr (LsResultFile) a = new_file ("a"), b = new_file ("b");
  add_number (a, LS_RESULT_BREAKDOWN, "forward", 1);
  add_number (a, LS_RESULT_BREAKDOWN, "gone", 2);
  add_number (a, LS_RESULT_LINKS, "new", 5); /* the same name elsewhere is another number */
  add_number (b, LS_RESULT_BREAKDOWN, "new", 3);
  add_number (b, LS_RESULT_BREAKDOWN, "forward", 4);

  LsResultFile *const files[] = { a, b };
  static const struct {
    const char *name;
    double a, b; /* NaN: there is none */
  } rows[] = { { "forward", 1, 4 }, { "gone", 2, NAN }, { "new", NAN, 3 } };
  g_autoptr (GPtrArray) names = ls_compare_names (files, 2, LS_RESULT_BREAKDOWN),
                        links = ls_compare_names (files, 2, LS_RESULT_LINKS);
  LS_CHECK_INT (names->len, ==, 3);
  LS_CHECK_INT (links->len, ==, 1);
  for (guint i = 0; i < names->len; i++) {
    double x = ls_compare_number (a, LS_RESULT_BREAKDOWN, rows[i].name),
           y = ls_compare_number (b, LS_RESULT_BREAKDOWN, rows[i].name);
    LS_CHECK_STR (names->pdata[i], rows[i].name);
    LS_CHECK (isnan (rows[i].a) ? isnan (x) : x == rows[i].a);
    LS_CHECK (isnan (rows[i].b) ? isnan (y) : y == rows[i].b);
  }
}

static LsSpanTable *
new_table (double step_us)
{
  LsSpanTable *table = g_new0 (LsSpanTable, 1);
  *table = (LsSpanTable) { !isnan (step_us), step_us, g_array_new (FALSE, FALSE, sizeof (LsSpanRow)) };
  return table;
}

static void
add_span (LsSpanTable *table, uint32_t rank, const char *stream, const char *name, double start_us,
          double end_us)
{
  LsSpanRow span = { g_intern_string (stream), g_intern_string (name), rank, start_us, end_us };
  g_array_append_val (table->spans, span);
}

/* Two streams: what overlaps on compute counts once, the copy not at all; a gap is what
 * nothing on compute covers, from the first span to the last. */
static void
gaps_are_those_of_the_compute_stream (void)
{
  g_autoptr (LsSpanTable) measured = new_table (120), predicted = new_table (NAN);
  add_span (measured, 2, "compute", "gemm", 50, 90);
  add_span (measured, 2, "compute", "gemm", 10, 30);
  add_span (measured, 2, "compute", "norm", 25, 40);
  add_span (measured, 2, "copy", "copy", 0, 100);
  add_span (predicted, 2, "compute", "gemm", -5, 20);
  add_span (predicted, 2, "compute", "record", 20, 20);
  add_span (predicted, 2, "tp", "all-reduce", 20, 60);
  add_span (predicted, 1, "compute", "gemm", 0, 500);

  g_autoptr (LsSpanCompare) c = ls_span_compare_new (measured, predicted, NULL);
  if (!LS_CHECK (c != NULL))
    return;
  LS_CHECK_INT (c->rank, ==, 2);
  LS_CHECK (c->measured.busy_us == 70 && c->measured.gap_us == 10 && c->measured.step_us == 120);
  LS_CHECK (c->predicted.busy_us == 25 && c->predicted.gap_us == 0 && c->predicted.step_us == 60);

  const LsSpanClass *k
      = (const LsSpanClass *) (gpointer) c->classes->data; /* copy 100, gemm 60, all-reduce 40, norm 15 */
  LS_CHECK_INT (c->classes->len, ==, 4);
  LS_CHECK_STR (k[0].name, "copy");
  LS_CHECK_STR (k[1].name, "gemm");
  LS_CHECK_INT (k[1].n_predicted, ==, 1);
  LS_CHECK_INT (k[1].n_measured, ==, 2);
  LS_CHECK (k[1].predicted_us == 25 && k[1].measured_us == 60);
  LS_CHECK (isnan (k[2].measured_us) && k[2].n_measured == 0);
}

static void
other_ranks_are_refused (void)
{
  g_autoptr (LsSpanTable) measured = new_table (9), predicted = new_table (NAN);
  g_autoptr (GError) error = NULL;
  add_span (measured, 1, "compute", "a", 0, 1);
  add_span (predicted, 0, "compute", "a", 0, 1);
  LS_CHECK (ls_span_compare_new (measured, predicted, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  g_clear_error (&error);
  add_span (measured, 0, "compute", "a", 0, 1);
  LS_CHECK (ls_span_compare_new (measured, predicted, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
}

/* Pins that the kernels of a profiled layer are laid beside those of the job and of each list there is: two
 * real profiles of an eager layer come nearest to the list of the software that ran, on two vendors' GPUs; a
 * simulated step comes nearest to the job's own. Without the profiles, which are not shipped, only the
 * latter. */

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
  g_autoptr (GArray) operators = ls_operators_new ();
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

LS_TEST_SUITE (LS_TEST (rows_are_joined_by_name_and_section), LS_TEST (gaps_are_those_of_the_compute_stream),
               LS_TEST (other_ranks_are_refused), LS_TEST (an_eager_layer_is_nearest_to_its_software),
               LS_TEST (a_simulated_layer_is_the_jobs_own), LS_TEST (other_layers_are_not_taken_for_it))
