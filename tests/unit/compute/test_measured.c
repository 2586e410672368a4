/* Pins the rule of a measured table: exact before interpolated before the fit, never
 * extrapolated, and how a step and a name change it. */
#include "ls_test.h"

#include <math.h>

#include "compute/measured.h"

static const LsGpu gpu = { .n_sm = 100,
                           .hbm_bytes_per_s = 1e12,
                           .vector_flops = 10e12,
                           .peak_flops = { [LS_DTYPE_BF16] = 100e12, [LS_DTYPE_FP16] = 100e12 } };
static const LsKindFit fit
    = { .is_fitted = true, .compute_efficiency = 0.8, .memory_efficiency = 0.8, .launch = 2 * LS_US };

static LsKernel
gemm (uint64_t m, uint64_t n, uint64_t k)
{
  return ls_kernel_gemm ("gemm", LS_DTYPE_BF16, m, n, k, 1, 2, false);
}

/* A row that takes `factor` times as long as the fit says. */
static void
add (GArray *table, const char *name, const LsKernel *k, double factor)
{
  double fitted = (double) ls_kernel_cost_by (&fit, 1, &gpu, k).alone;
  const LsMeasuredKernel row = { .name = g_strdup (name),
                                 .kind = (int) k->kind,
                                 .dtype = (int) k->dtype,
                                 .m = k->m,
                                 .n = k->n,
                                 .k = k->k,
                                 .batch = k->batch,
                                 .flops = k->flops,
                                 .bytes = k->bytes,
                                 .time = (LsTime) llround (fitted * factor) };
  g_array_append_val (table, row);
}

static GArray *
table_new (void)
{
  return g_array_new (FALSE, FALSE, sizeof (LsMeasuredKernel));
}

static bool
find (const GArray *table, LsKernel k, double *ret_factor, LsCostSource *ret_source)
{
  return ls_measured_find (table, LS_ATTENTION_KERNEL_AUTO, &fit, &gpu, &k, ret_factor, ret_source);
}

/* Of one shape, each implementation has its row, and what is not said is none of them. */
static void
attention_is_known_by_whose_it_is (void)
{
  GArray *table = table_new ();
  LsKernel k = ls_kernel_attention ("flash-attention-fwd", LS_DTYPE_BF16, 2, 4096, 32, 8, 128, true, false);
  static const int whose[] = { LS_ATTENTION_KERNEL_AUTO, LS_ATTENTION_KERNEL_FA2, LS_ATTENTION_KERNEL_FA3 };
  for (guint i = 0; i < G_N_ELEMENTS (whose); i++) {
    add (table, k.name, &k, 1.1 + 0.1 * i);
    g_array_index (table, LsMeasuredKernel, i).implementation = whose[i];
  }
  for (guint i = 0; i < G_N_ELEMENTS (whose); i++) {
    double factor = 0;
    LsCostSource source = LS_COST_FITTED;
    LS_CHECK (ls_measured_find (table, whose[i], &fit, &gpu, &k, &factor, &source));
    LS_CHECK_NEAR (factor, 1.1 + 0.1 * i, 1e-4);
  }
  double factor;
  LsCostSource source;
  LS_CHECK (!ls_measured_find (table, LS_ATTENTION_KERNEL_CUDNN, &fit, &gpu, &k, &factor, &source));
  ls_measured_free (table);
}

/* The worked example of measured.h. */
static void
neighbours_are_interpolated_in_the_logarithm (void)
{
  GArray *table = table_new ();
  LsKernel below = gemm (1024, 4096, 4096), above = gemm (4096, 4096, 4096);
  add (table, NULL, &below, 1.2);
  add (table, NULL, &above, 1.1);
  double factor = 0;
  LsCostSource source = LS_COST_FITTED;
  LS_CHECK (find (table, gemm (2048, 4096, 4096), &factor, &source));
  LS_CHECK_NEAR (factor, sqrt (1.2 * 1.1), 1e-6);
  LS_CHECK_INT (source, ==, LS_COST_INTERPOLATED);
  LS_CHECK (find (table, above, &factor, &source));
  LS_CHECK_NEAR (factor, 1.1, 1e-6);
  LS_CHECK_INT (source, ==, LS_COST_MEASURED);
  ls_measured_free (table);
}

static void
nothing_is_extrapolated (void)
{
  GArray *table = table_new ();
  LsKernel rows[] = { gemm (1024, 4096, 4096), gemm (4096, 4096, 4096), gemm (65536, 4096, 4096) };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    add (table, NULL, &rows[i], 1.2);
  double factor;
  LsCostSource source;
  LS_CHECK (!find (table, gemm (512, 4096, 4096), &factor, &source));    /* below       */
  LS_CHECK (!find (table, gemm (131072, 4096, 4096), &factor, &source)); /* above       */
  LS_CHECK (!find (table, gemm (16384, 4096, 4096), &factor, &source));  /* 16 apart    */
  LS_CHECK (!find (table, gemm (2048, 2048, 4096), &factor, &source));   /* another n   */
  LS_CHECK (!find (NULL, gemm (1024, 4096, 4096), &factor, &source));
  LsKernel other = rows[0];
  other.dtype = LS_DTYPE_FP16;
  LS_CHECK (!find (table, other, &factor, &source));
  LsKernel accumulates = ls_kernel_gemm ("gemm", LS_DTYPE_BF16, 1024, 4096, 4096, 1, 4, true);
  LS_CHECK (!find (table, accumulates, &factor, &source));
  ls_measured_free (table);
}

/* Of two sizes between neighbours, that with the nearer ones; rows of one shape are averaged. */
static void
the_nearest_neighbours_count (void)
{
  GArray *table = table_new ();
  LsKernel in_m[] = { gemm (1024, 4096, 4096), gemm (4096, 4096, 4096) };
  LsKernel in_n[] = { gemm (2048, 3072, 4096), gemm (2048, 6144, 4096) };
  for (guint i = 0; i < 2; i++) {
    add (table, NULL, &in_m[i], 2);
    add (table, NULL, &in_n[i], 1.1);
    add (table, NULL, &in_n[i], 1.3);
  }
  double factor = 0;
  LsCostSource source;
  LS_CHECK (find (table, gemm (2048, 4096, 4096), &factor, &source));
  LS_CHECK_NEAR (factor, sqrt (1.1 * 1.3), 1e-6);
  ls_measured_free (table);
}

static void
streams_go_by_name (void)
{
  GArray *table = table_new ();
  LsKernel add_kernel
      = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_FP16, 4096, 4096, 6.0 * 4096 * 4096, 0);
  LsKernel other = add_kernel;
  other.name = "bias-dropout-add";
  add (table, "add", &add_kernel, 1.5);
  double factor = 0;
  LsCostSource source;
  LS_CHECK (find (table, add_kernel, &factor, &source));
  LS_CHECK_NEAR (factor, 1.5, 1e-6);
  LS_CHECK (!find (table, other, &factor, &source));
  ls_measured_free (table);
}

/* Alone the time is the measured one to the picosecond; inside a step it is as much longer
 * as the fit; beside communication its compute term is stretched like any other. */
static void
the_cost_model_takes_the_table_first (void)
{
  LsKernel k = gemm (4096, 4096, 4096);
  LsCalibration c = { .sustained = 1, .measured = table_new () };
  c.kind[LS_KERNEL_GEMM] = fit;
  add (c.measured, NULL, &k, 1.25);
  LsTime measured = g_array_index (c.measured, LsMeasuredKernel, 0).time;
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, &k);
  LS_CHECK_INT (ABS (cost.alone - measured), <=, 1);
  LS_CHECK_INT (cost.source, ==, LS_COST_MEASURED);
  LS_CHECK (!cost.extrapolated);

  c.sustained = 0.5;
  double hot = (double) ls_kernel_cost_by (&fit, 0.5, &gpu, &k).alone;
  LS_CHECK_NEAR ((double) ls_kernel_cost (&c, &gpu, &k).alone, 1.25 * hot, 1e-6);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &k).launch_s, 1.25 * 2e-6, 1e-6);
  ls_measured_free (c.measured);
}

LS_TEST_SUITE (LS_TEST (attention_is_known_by_whose_it_is),
               LS_TEST (neighbours_are_interpolated_in_the_logarithm), LS_TEST (nothing_is_extrapolated),
               LS_TEST (the_nearest_neighbours_count), LS_TEST (streams_go_by_name),
               LS_TEST (the_cost_model_takes_the_table_first))
