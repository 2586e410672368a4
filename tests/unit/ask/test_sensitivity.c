/* Pins the sensitivity of a step: one parameter that is all of the step has the elasticity of
 * its formula, what does not matter has none, all of them together scale time (Euler's theorem:
 * a step is homogeneous of degree 1 in all times and inverse rates), measured kernels follow
 * their GPU, and threads change nothing. Simulates the small job of tests/golden/data. */
#include "ls_test.h"

#include <string.h>

#include "ask/reruns.h"
#include "compute/measured.h"
#include "job/sensitivity_scale.h"

static void
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_job_spec_set (spec, key, value, diags));
}

/* knobs: key, value, ..., NULL */
static LsSensitivityTable *
sensitivity_of (guint n_threads, const char *const *knobs)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  ls_job_spec_init (&spec);
  set (&spec, "model", "tiny");
  set (&spec, "cluster", "pair");
  for (; *knobs; knobs += 2)
    set (&spec, knobs[0], knobs[1]);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  LsSensitivityTable *t = r ? ls_sensitivity_new (&spec, r, n_threads, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return t;
}
#define SENSITIVITY(n_threads, ...) sensitivity_of ((n_threads), (const char *const[]) { __VA_ARGS__, NULL })

static double
elasticity (const LsSensitivityTable *t, LsScale scale)
{
  return t->rows[scale].elasticity;
}

/* The job itself lies between what it is with more and with less of anything. */
static void
check_middle (const LsSensitivityTable *t)
{
  for (guint i = 0; i < t->n; i++)
    LS_CHECK_NEAR ((t->rows[i].up_s + t->rows[i].down_s) / 2, t->step_s, 2e-4);
}

/* Of 1 / p, a percent up and down. */
static const double of_inverse = (1 / 1.01 - 1 / 0.99) / 0.02;

/* One GPU, and a host that costs nothing: a roofline, each kernel by FLOPs or by bytes. */
static void
one_gpu_is_flops_and_memory (void)
{
  g_autoptr (LsSensitivityTable) t
      = SENSITIVITY (1, "gpus", "1", "host-launch", "0us", "host-comm", "0us", "host-sync", "0us");
  LS_CHECK (elasticity (t, LS_SCALE_GPU_FLOPS) < -0.1 && elasticity (t, LS_SCALE_HBM_BANDWIDTH) < -0.01);
  LS_CHECK_NEAR (elasticity (t, LS_SCALE_GPU_FLOPS) + elasticity (t, LS_SCALE_HBM_BANDWIDTH), of_inverse,
                 1e-6);
  for (int scale = LS_SCALE_NVLINK_BANDWIDTH; scale < LS_N_SCALES; scale++)
    LS_CHECK (elasticity (t, (LsScale) scale) == 0);
}

static void
a_slow_host_is_the_step (void)
{
  g_autoptr (LsSensitivityTable) t = SENSITIVITY (1, "gpus", "1", "host-launch", "200ms", "host-sync", "0us");
  LS_CHECK (elasticity (t, LS_SCALE_HOST_LAUNCH) > 0.99 && elasticity (t, LS_SCALE_HOST_LAUNCH) <= 1);
}

/* Two nodes with all kinds of communication: nothing that takes time is left out. */
static void
all_parameters_together_scale_time (void)
{
  g_autoptr (LsSensitivityTable) t
      = SENSITIVITY (2, "nodes", "4", "tp", "2", "pp", "2", "zero", "1", "host-sync", "0us");
  double rates = 0, times = 0;
  check_middle (t);
  for (int scale = 0; scale <= LS_SCALE_NIC_BANDWIDTH; scale++) {
    LS_CHECK (elasticity (t, (LsScale) scale) <= 0);
    rates += elasticity (t, (LsScale) scale);
  }
  for (int scale = LS_SCALE_NETWORK_LATENCY; scale < LS_N_SCALES; scale++) {
    LS_CHECK (elasticity (t, (LsScale) scale) >= 0);
    times += elasticity (t, (LsScale) scale);
  }
  ls_check_impl (rates < -0.5 && times > 0 && times - rates > 0.999 && times - rates < 1.001, __FILE__,
                 __LINE__, "times %g, rates %g: together %g, expected 1", times, rates, times - rates);
}

static void
threads_change_nothing (void)
{
  g_autoptr (LsSensitivityTable) one = SENSITIVITY (1, "nodes", "2", "tp", "2", "pp", "2");
  g_autoptr (LsSensitivityTable) many = SENSITIVITY (5, "nodes", "2", "tp", "2", "pp", "2");
  for (guint i = 0; i < one->n; i++)
    LS_CHECK (one->rows[i].up_s == many->rows[i].up_s && one->rows[i].down_s == many->rows[i].down_s);
}

/* A GEMM bound by FLOPs that was timed at twice what the roofline says: twice it stays. */
static void
measured_kernels_follow_their_gpu (void)
{
  const LsKernel kernel = { .name = "gemm",
                            .kind = LS_KERNEL_GEMM,
                            .dtype = LS_DTYPE_BF16,
                            .m = 4096,
                            .n = 4096,
                            .k = 4096,
                            .batch = 1,
                            .flops = 2.0 * 4096 * 4096 * 4096,
                            .bytes = 3.0 * 2 * 4096 * 4096 };
  LsHardware hardware = { 0 };
  LsHostCosts host = { 0 };
  ls_calibration_init_roofline (&hardware.calibration);
  hardware.spec.gpu
      = (LsGpu) { .hbm_bytes_per_s = 1e12, .hbm_efficiency = 1, .n_sm = 100, .vector_flops = 1e13 };
  hardware.spec.gpu.peak_flops[LS_DTYPE_BF16] = 1e14;
  LsTime alone = ls_kernel_cost (&hardware.calibration, &hardware.spec.gpu, &kernel).alone;
  LsMeasuredKernel row = { .kind = LS_KERNEL_GEMM,
                           .dtype = LS_DTYPE_BF16,
                           .m = 4096,
                           .n = 4096,
                           .k = 4096,
                           .batch = 1,
                           .flops = kernel.flops,
                           .bytes = kernel.bytes,
                           .time = 2 * alone };
  hardware.calibration.measured = g_array_new (FALSE, FALSE, sizeof (LsMeasuredKernel));
  g_array_append_val (hardware.calibration.measured, row);
  LS_CHECK_NEAR ((double) ls_kernel_cost (&hardware.calibration, &hardware.spec.gpu, &kernel).alone,
                 2 * (double) alone, 1e-9);

  LsScaled x;
  ls_scaled_init (&x, &hardware.spec, &hardware, &host, LS_SCALE_GPU_FLOPS, 1.01);
  LsKernelCost scaled = ls_kernel_cost (&x.calibration, &x.spec.gpu, &kernel);
  LS_CHECK_INT (scaled.source, ==, LS_COST_MEASURED);
  LS_CHECK_NEAR ((double) scaled.alone, 2 * (double) alone / 1.01, 1e-6);
  ls_scaled_clear (&x);
  LS_CHECK_INT (g_array_index (hardware.calibration.measured, LsMeasuredKernel, 0).time, ==,
                2 * alone); /* the table is as it was */
  ls_calibration_clear (&hardware.calibration);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (one_gpu_is_flops_and_memory),
                    LS_TEST (a_slow_host_is_the_step), LS_TEST (all_parameters_together_scale_time),
                    LS_TEST (threads_change_nothing), LS_TEST (measured_kernels_follow_their_gpu))
