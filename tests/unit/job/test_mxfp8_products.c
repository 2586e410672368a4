/* Pins products in mxfp8, whose operands have a scale for each 32 values, beside measured ones. They take the rates of
 * fp8 with one scale, as no table of shapes of them is known: what is published agrees with that. */
#include "ls_test.h"

#include <math.h>

#include "job/hardware.h"
#include "model/kernel.h"

typedef struct {
  const char *cluster;
  uint64_t m, n, k;
  uint32_t batch;
} Product;

/* Of a B300: Transformer Engine's benchmark of a layer of 4,096 columns, 15,872 tokens, operands in mxfp8 before
 * it starts: 12 products in 7.161 ms, 6.812 with one scale (NVIDIA/TransformerEngine@8f2e6357,
 * docs/examples/gemm_profiling/gemm_profiling.rst). */
static const Product of_layer[] = {
  { "dgx-b300", 15872, 12288, 4096, 1 }, { "dgx-b300", 15872, 4096, 4096, 1 },
  { "dgx-b300", 15872, 16384, 4096, 1 }, { "dgx-b300", 15872, 4096, 16384, 1 },
  { "dgx-b300", 15872, 4096, 12288, 1 }, { "dgx-b300", 15872, 4096, 4096, 1 },
  { "dgx-b300", 15872, 4096, 16384, 1 }, { "dgx-b300", 15872, 16384, 4096, 1 },
  { "dgx-b300", 12288, 4096, 15872, 1 }, { "dgx-b300", 4096, 4096, 15872, 1 },
  { "dgx-b300", 16384, 4096, 15872, 1 }, { "dgx-b300", 4096, 16384, 15872, 1 },
};

/* Of a B200: eight experts of 2,048 columns, 131,072 tokens of 7,168, forward and the gradients of both operands
 * (pytorch/ao@36027d8, torchao/prototype/moe_training/README.md): 1.671, 1.683 and 2.103 ms. */
static const Product of_experts[] = {
  { "dgx-b200", 16384, 2048, 7168, 8 },
  { "dgx-b200", 16384, 7168, 2048, 8 },
  { "dgx-b200", 2048, 7168, 16384, 8 },
};

/* As inside a step. */
static double
time_ms (const Product *products, guint n)
{
  double s = 0;
  for (guint i = 0; i < n; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsHardware) h = ls_hardware_load (products[i].cluster, diags);
    if (!LS_CHECK (h != NULL))
      return 0;
    LsKernel k = ls_kernel_gemm ("product", LS_DTYPE_FP8, products[i].m, products[i].n, products[i].k,
                                 products[i].batch, 2, false);
    s += ls_time_to_s (ls_kernel_cost (&h->calibration, &h->spec.gpu, &k).alone);
  }
  return 1e3 * s;
}

static void
check (const char *what, const Product *products, guint n, double measured_ms, double within)
{
  double ms = time_ms (products, n);
  g_print ("%s: %.3f ms, measured %.3f\n", what, ms, measured_ms);
  ls_check_impl (fabs (ms / measured_ms - 1) < within, __FILE__, __LINE__, "%s: %.3f ms, measured %.3f", what,
                 ms, measured_ms);
}

static void
they_take_what_was_measured (void)
{
  check ("a layer", of_layer, G_N_ELEMENTS (of_layer), 7.161, 0.05);
  check ("experts", of_experts, G_N_ELEMENTS (of_experts), 1.671 + 1.683 + 2.103, 0.15);
}

LS_TEST_SUITE (LS_TEST (they_take_what_was_measured))
