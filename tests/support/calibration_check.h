/* tests/support/calibration_check.h — a user's tables laid over a shipped calibration: what that must not
 * move. */
#ifndef LS_TESTS_CALIBRATION_CHECK_H
#define LS_TESTS_CALIBRATION_CHECK_H

#include "support/ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "calibrate/calibrate_fit.h"
#include "compute/measured.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/measured/read_kernels.h"
#include "job/job.h"

#define WORSE 0.02

enum { GEMM = 1, ATTENTION = 2, STREAM = 4, N_MIXES = 8, N_SOURCES = 3 };

typedef struct {
  const char *name;    /* of the GPU */
  const char *cluster; /* of 8 a node, with NVSwitches */
  LsGpu gpu;
  LsCalibration shipped;
} Fixture;

static const struct {
  const char *gpu, *cluster;
} machines[] = {
  { "h100", "dgx-h100" }, { "a100-80g", "dgx-a100-80g" }, { "h200", "dgx-h200" }, { "b200", "dgx-b200" }
};

static bool
fixture_load (Fixture *x, guint machine)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  x->name = machines[machine].gpu;
  x->cluster = machines[machine].cluster;
  return LS_CHECK (ls_gpu_load (x->name, &x->gpu, diags)
                   && ls_calibration_load (x->gpu.calibration, &x->shipped, diags));
}

static void
fixture_clear (Fixture *x)
{
  ls_gpu_clear (&x->gpu);
  ls_calibration_clear (&x->shipped);
}

/* Files of a user: a text of each that is not empty. */
typedef struct {
  GString *text[N_SOURCES];
} Files;

static Files
files_new (void)
{
  return (Files) { { g_string_new (NULL), g_string_new (NULL), g_string_new (NULL) } };
}

static void
files_clear (Files *files)
{
  for (guint i = 0; i < G_N_ELEMENTS (files->text); i++)
    g_string_free (files->text[i], TRUE);
}

static double
predict_s (const Fixture *x, const LsTimedKernel *t)
{
  const LsKindFit *fit = ls_calibration_fit (&x->shipped, &t->kernel);
  if (t->what != LS_TIMED_USUAL)
    fit = t->what == LS_TIMED_VLLM_RMSNORM ? &x->shipped.kind[LS_ENTRY_VLLM_RMSNORM]
                                           : &x->shipped.kind[LS_ENTRY_VLLM_SILU_MUL];
  return ls_fit_predict_s (fit, &x->gpu, t);
}

/* ---- calibrations ---- */

static LsCalibrateRun *
calibrate (const Fixture *x, const Files *files)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  char *paths[G_N_ELEMENTS (files->text) + 1] = { NULL };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (files->text); i++)
    if (files->text[i]->len > 0) {
      g_autofree char *name = g_strdup_printf ("%u.csv", i);
      paths[n] = g_build_filename (folder, name, NULL);
      LS_CHECK (g_file_set_contents (paths[n++], files->text[i]->str, -1, NULL));
    }
  const LsCalibrateSpec spec = { .files = (const char *const *) paths, .gpu = x->name, .version = "test" };
  g_autoptr (GError) error = NULL;
  LsCalibrateRun *run = ls_calibrate_run_new (&spec, &error);
  if (n > 0 && !run && !strstr (error->message, "no kernel that an entry"))
    LS_CHECK_NO_ERROR (error);
  for (guint i = 0; i < n; i++) {
    g_unlink (paths[i]);
    g_free (paths[i]);
  }
  g_rmdir (folder);
  return run;
}

static bool
result_of (const char *json, LsCalibration *ret)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (json, strlen (json), "mine.json", diags);
  bool ok = doc && ls_calibration_read (doc, ret, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  return ok;
}

/* ---- predictions ---- */

/* No size is one that the tables above may have. */
static GArray *
probes_new (void)
{
  const LsKernel some[] = {
    ls_kernel_gemm ("qkv", LS_DTYPE_BF16, 8191, 6143, 4095, 1, 2, false),
    ls_kernel_gemm ("fc1", LS_DTYPE_BF16, 16383, 28671, 4095, 1, 2, false),
    ls_kernel_gemm ("proj", LS_DTYPE_BF16, 2047, 4095, 511, 1, 2, false),
    ls_kernel_gemm ("small", LS_DTYPE_BF16, 127, 127, 127, 1, 2, false),
    ls_kernel_gemm ("skinny", LS_DTYPE_BF16, 15, 8191, 8191, 1, 2, false),
    ls_kernel_gemm ("bmm", LS_DTYPE_BF16, 2047, 2047, 127, 32, 2, false),
    ls_kernel_gemm ("fp8", LS_DTYPE_FP8, 8191, 6143, 4095, 1, 2, false),
    ls_kernel_attention ("long", LS_DTYPE_BF16, 1, 32767, 32, 8, 128, true, false),
    ls_kernel_attention ("usual", LS_DTYPE_BF16, 2, 4095, 32, 8, 128, true, false),
    ls_kernel_attention ("narrow", LS_DTYPE_BF16, 1, 2047, 8, 8, 64, true, false),
    ls_kernel_attention ("tiny", LS_DTYPE_BF16, 1, 511, 1, 1, 64, true, false),
    ls_kernel_attention ("usual-bwd", LS_DTYPE_BF16, 2, 4095, 32, 8, 128, true, true),
    ls_kernel_attention ("short-bwd", LS_DTYPE_BF16, 1, 1023, 4, 4, 64, true, true),
    ls_kernel_stream ("norm", LS_KERNEL_NORM, LS_DTYPE_BF16, 8191, 4095, 4.0 * 8191 * 4095, 0),
    ls_kernel_stream ("norm-small", LS_KERNEL_NORM, LS_DTYPE_BF16, 255, 1023, 4.0 * 255 * 1023, 0),
    ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 2047, 4095, 6.0 * 2047 * 4095, 0),
    ls_kernel_stream ("add-large", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 16383, 16383, 6.0 * 16383 * 16383,
                      0),
    ls_kernel_stream ("softmax", LS_KERNEL_SOFTMAX, LS_DTYPE_BF16, 65535, 2047, 4.0 * 65535 * 2047, 0),
    ls_kernel_stream ("adam", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, 1, 1 << 28, 30.0 * (1 << 28), 0),
    ls_kernel_stream ("loss", LS_KERNEL_CROSS_ENTROPY, LS_DTYPE_BF16, 8191, 128255, 6.0 * 8191 * 128255, 0),
    ls_kernel_stream ("rows", LS_KERNEL_EMBEDDING, LS_DTYPE_BF16, 8191, 4095, 4.0 * 8191 * 4095, 0),
  };
  GArray *all = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  g_array_append_vals (all, some, G_N_ELEMENTS (some));
  return all;
}

static void
check_probes (const Fixture *x, const LsCalibration *c, const char *what)
{
  g_autoptr (GArray) probes = probes_new ();
  for (guint i = 0; i < probes->len; i++) {
    const LsKernel *k = &g_array_index (probes, LsKernel, i);
    double was = ls_time_to_s (ls_kernel_cost (&x->shipped, &x->gpu, k).alone),
           now = ls_time_to_s (ls_kernel_cost (c, &x->gpu, k).alone);
    ls_check_impl (fabs (now / was - 1) <= WORSE, __FILE__, __LINE__, "%s: %s goes from %.3f to %.3f us",
                   what, k->name, was * 1e6, now * 1e6);
  }
}

static double
step_s (const char *const *knobs, const char *gpu_calibration)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (; *knobs; knobs += 2)
    LS_CHECK (ls_job_spec_set (&spec, knobs[0], knobs[1], diags));
  if (gpu_calibration)
    LS_CHECK (ls_job_spec_set (&spec, "gpu-calibration", gpu_calibration, diags));
  LsJobResult *r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  double s = r ? ls_job_result_step_time_s (r) : NAN;
  ls_job_result_free (r);
  ls_job_spec_clear (&spec);
  return s;
}

static void
check_steps (const Fixture *x, const char *json, const char *what)
{
  const char *const dense[] = { "model", "llama3.1-8b", "cluster", x->cluster, "nodes", "1", NULL },
                    *const cut[] = { "model", "llama3.1-70b", "cluster", x->cluster, "nodes", "2", "tp",
                                     "8",     "global-batch", "8",       NULL },
                    *const experts[] = { "model", "mixtral-8x7b", "cluster", x->cluster, "nodes", "2", "ep",
                                         "8",     "global-batch", "32",      NULL };
  const char *const *jobs[] = { dense, cut, experts };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "mine.json", NULL);
  LS_CHECK (g_file_set_contents (path, json, -1, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    double was = step_s (jobs[i], NULL), now = step_s (jobs[i], path);
    ls_check_impl (fabs (now / was - 1) <= WORSE, __FILE__, __LINE__, "%s: a step of %s goes from %g to %g s",
                   what, jobs[i][1], was, now);
  }
  g_unlink (path);
  g_rmdir (folder);
}

/* No probe and no step moves by more than 2 %. False: the tables hold no kernel that is fitted; else the
 * caller clears *ret. */
static bool
check_moves (const Fixture *x, const Files *files, const char *what, LsCalibration *ret)
{
  g_autoptr (LsCalibrateRun) run = calibrate (x, files);
  g_autofree char *json = run ? ls_calibrate_run_json (run, "mine") : NULL;
  if (!json || !result_of (json, ret))
    return false;
  check_probes (x, ret, what);
  check_steps (x, json, what);
  return true;
}

#endif
