/* Pins machines that are not NVIDIA's usual ones against published figures that no constant was fitted to, and
 * that nothing of NVIDIA is there where it is not: all-reduces of RCCL on 8 MI300X at the sizes held out of
 * the fit, and over two nodes; products of PyTorch on MI300X; no NVLS, no LL128, no nvfp4 on GPUs of AMD. */
#include "ls_test.h"

#include <string.h>

#include "ask/collective/collective_sizes.h"
#include "data/machines/machines.h"
#include "job/job.h"

static LsCollectiveRun *
all_reduces (const char *cluster, const char *gpus, const char *min, const char *max)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_collective_spec_set (&spec, "cluster", cluster, diags)
            && ls_collective_spec_set (&spec, "op", "all-reduce", diags)
            && ls_collective_spec_set (&spec, "gpus", gpus, diags)
            && ls_collective_spec_set (&spec, "min", min, diags)
            && ls_collective_spec_set (&spec, "max", max, diags)
            && ls_collective_spec_set (&spec, "factor", "4", diags));
  LsCollectiveRun *r = ls_collective_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_collective_spec_clear (&spec);
  return r;
}

/* Microseconds of all-reduces of 2 MiB, times 4 each (ROCm/rocm-blogs, mi300x-rccl-xgmi@0e81c2c): the sizes that
 * topologies/calib/nccl.set.json holds out. */
static const double mi300x_us[] = { 34.81, 83.68, 244.1, 797.4, 3026.2, 11891, 47278 };

static void
rccl_is_as_measured_at_sizes_held_out (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi300x-8", "8", "2MiB", "8GiB");
  const LsCollectiveTable *t = run ? ls_collective_run_table (run) : NULL;
  if (!t || !LS_CHECK_INT (t->n_rows, ==, G_N_ELEMENTS (mi300x_us)))
    return;
  for (guint i = 0; i < t->n_rows; i++)
    LS_CHECK_NEAR ((double) t->rows[i].time / LS_US, mi300x_us[i], 0.15);
}

/* 361 GB/s of bus bandwidth with 16 GiB (ROCm/rccl, pull request 2078); no more than its NICs carry. */
static void
two_nodes_of_mi300x_fill_their_nics (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi300x-8", "16", "16GiB", "16GiB");
  const LsCollectiveTable *t = run ? ls_collective_run_table (run) : NULL;
  if (!t)
    return;
  double bus = 2 * 15 / 16.0 * (double) t->rows[0].bytes / ls_time_to_s (t->rows[0].time);
  LS_CHECK_NEAR (bus, 361e9, 0.15);
  LS_CHECK (bus < 8 * 50e9 * 0.97);
}

/* Two of them have one link, of which RCCL gets what TransferBench does. */
static void
two_mi300x_have_one_link (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi300x-8", "2", "1GiB", "1GiB");
  const LsCollectiveTable *t = run ? ls_collective_run_table (run) : NULL;
  if (t)
    LS_CHECK_NEAR ((double) t->rows[0].bytes / ls_time_to_s (t->rows[0].time), 46.55e9, 0.03);
}

static void
amd_has_nothing_of_nvidia (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi355x-8", "8", "4KiB", "4GiB");
  const LsCollectiveTable *t = run ? ls_collective_run_table (run) : NULL;
  for (guint i = 0; t && i < t->n_rows; i++) {
    LS_CHECK_STR (t->rows[i].algorithm, "ring");
    LS_CHECK (strcmp (t->rows[i].protocol, "LL128") != 0);
  }
  static const char *const refused[][3]
      = { { "mi355x-8", "nvfp4", "--dtype nvfp4: mi355x gives no peak_flops" },
          { "mi300x-8:gpu=mi250x-gcd", "fp8", "--dtype fp8: mi250x-gcd gives" } };
  for (guint i = 0; i < G_N_ELEMENTS (refused); i++) {
    LsJobSpec spec;
    ls_job_spec_init (&spec);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GError) error = NULL;
    LS_CHECK (ls_job_spec_set (&spec, "cluster", refused[i][0], diags)
              && ls_job_spec_set (&spec, "model", "gpt-1.7b", diags)
              && ls_job_spec_set (&spec, "gpus", "8", diags)
              && ls_job_spec_set (&spec, "dtype", refused[i][1], diags));
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
    LS_CHECK (!r && error && strstr (error->message, refused[i][2]) != NULL);
    ls_job_spec_clear (&spec);
  }
}

/* m, n, k and microseconds of linear layers in bf16, PyTorch 2.6 with ROCm (a profile of AMD-AGI/TraceLens). */
static const double products[][4]
    = { { 8944, 1024, 1024, 40.7 }, { 8944, 2816, 1024, 110.5 }, { 8944, 1024, 2816, 98.3 } };

static void
products_of_mi300x_are_as_measured (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsGpu gpu = { 0 };
  LsCalibration c = { 0 };
  if (LS_CHECK (ls_gpu_load ("mi300x", &gpu, diags) && ls_calibration_load (gpu.calibration, &c, diags)))
    for (guint i = 0; i < G_N_ELEMENTS (products); i++) {
      const double *p = products[i];
      LsKernel k = ls_kernel_gemm ("g", LS_DTYPE_BF16, (uint64_t) p[0], (uint64_t) p[1], (uint64_t) p[2], 1,
                                   2, false);
      LS_CHECK_NEAR ((double) ls_kernel_cost (&c, &gpu, &k).alone / LS_US, p[3], 0.15);
    }
  ls_calibration_clear (&c);
  ls_gpu_clear (&gpu);
}

LS_TEST_MAIN ("machines", LS_TEST (rccl_is_as_measured_at_sizes_held_out),
              LS_TEST (two_nodes_of_mi300x_fill_their_nics), LS_TEST (two_mi300x_have_one_link),
              LS_TEST (amd_has_nothing_of_nvidia), LS_TEST (products_of_mi300x_are_as_measured))
