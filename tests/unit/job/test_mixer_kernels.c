/* Pins kernels of gated delta nets beside measured ones: flash-linear-attention's on an H200 and a GB200, of
 * benchmark/benchmark_results_H200.txt and _GB200.txt in QwenLM/FlashQLA@c18a4860 (fla 0.5.1 and 0.5.2; heads of 128,
 * chunks of 64). The rates in topologies/calib/access.set.json are of these tables: what is pinned is that one rate
 * and one step for each GPU, with products counted forward and backward, hold for all numbers of heads and tokens. */
#include "ls_test.h"

#include <math.h>

#include "job/hardware.h"
#include "model_shapes.h"

typedef struct {
  const char *gpu;
  uint32_t keys, heads, tokens, sequences;
  double fwd_ms, bwd_ms; /* 0: not in the table */
} Row;

static const Row rows[] = {
  { "h200", 2, 8, 2048, 1, 0.081, 0 },     { "h200", 2, 8, 8192, 1, 0.234, 0 },
  { "h200", 2, 8, 32768, 1, 0.902, 0 },    { "h200", 2, 8, 8192, 4, 0.467, 0 },
  { "h200", 8, 32, 8192, 1, 0.466, 0 },    { "h200", 8, 32, 32768, 1, 1.885, 0 },
  { "h200", 8, 32, 8192, 4, 1.886, 0 },    { "h200", 16, 48, 8192, 1, 0.665, 0 },
  { "h200", 16, 64, 4096, 1, 0.417, 0 },   { "h200", 16, 64, 32768, 1, 3.331, 0 },
  { "h200", 32, 32, 8192, 1, 0.500, 0 },   { "h200", 16, 32, 8192, 1, 0, 1.444 },
  { "h200", 16, 32, 32768, 1, 0, 5.697 },  { "h200", 8, 16, 8192, 1, 0, 0.957 },
  { "h200", 4, 8, 32768, 1, 0, 2.743 },    { "h200", 2, 4, 8192, 1, 0, 0.606 },
  { "gb200", 2, 8, 8192, 1, 0.277, 0 },    { "gb200", 2, 8, 32768, 1, 1.085, 0 },
  { "gb200", 8, 32, 8192, 1, 0.473, 0 },   { "gb200", 16, 64, 8192, 1, 0.761, 0 },
  { "gb200", 8, 32, 8192, 4, 1.499, 0 },   { "gb200", 16, 32, 8192, 1, 0, 1.552 },
  { "gb200", 16, 32, 32768, 1, 0, 6.171 }, { "gb200", 4, 8, 32768, 1, 0, 3.191 },
  { "gb200", 2, 4, 8192, 1, 0, 0.709 },
};

static double
time_ms (const LsHardware *h, const LsKernel *kernels, uint32_t n)
{
  double s = 0;
  for (uint32_t i = 0; i < n; i++)
    if (kernels[i].access == LS_ACCESS_TRITON_DOT)
      s += ls_time_to_s (ls_kernel_cost (&h->calibration, &h->spec.gpu, &kernels[i]).alone);
  return 1e3 * s;
}

static void
kernels_of_delta_nets_take_what_was_measured (void)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const Row *r = &rows[i];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsHardware) h
        = ls_hardware_load (g_str_equal (r->gpu, "h200") ? "dgx-h200" : "gb200-nvl72", diags);
    if (!LS_CHECK (h != NULL))
      return;
    LsModel m = llama (4, 2048, 16, 2, 6144, 1000);
    m.layers.pattern = (char *) "M";
    m.mixer.kind = LS_MIXER_DELTA;
    m.mixer.heads = r->heads, m.mixer.groups = r->keys;
    m.mixer.head_dim = m.mixer.state = 128, m.mixer.chunk = 64, m.mixer.conv = 4;
    LsShard s = { .tp = 1, .cp = 1, .micro_batch = r->sequences, .seq = r->tokens, .dtype = LS_DTYPE_BF16 };
    s.attention = LS_ATTENTION_FLASH;
    g_autoptr (GArray) layer = layer_operators (&m, &s);
    const LsOperator *o = find_operator (layer, "mixer-chunks");
    double measured = r->fwd_ms > 0 ? r->fwd_ms : r->bwd_ms,
           ours = r->fwd_ms > 0 ? time_ms (h, o->fwd, o->n_fwd) : time_ms (h, o->igrad, o->n_igrad);
    ls_check_impl (fabs (ours / measured - 1) < 0.35, __FILE__, __LINE__,
                   "%s, %u heads, %u x %u, %s: %.3f ms, measured %.3f", r->gpu, r->heads, r->sequences,
                   r->tokens, r->fwd_ms > 0 ? "forward" : "backward", ours, measured);
    sum += fabs (ours / measured - 1);
    n++;
  }
  g_print ("kernels of gated delta nets: %.1f %% off in the mean of %u\n", 100 * sum / n, n);
  LS_CHECK (sum / n < 0.12);
}

/* A GPU of which nothing is known runs them as cuBLAS's products, not for nothing. */
static void
without_a_rate_they_are_products (void)
{
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  const LsGpu gpu = { .peak_flops = { [LS_DTYPE_BF16] = 1e15 }, .hbm_bytes_per_s = 1e13, .n_sm = 100 };
  LsKernel k = ls_kernel_gemm ("chunk", LS_DTYPE_BF16, 64, 128, 128, 1000, 2, false);
  LsTime plain = ls_kernel_cost (&c, &gpu, &k).alone;
  k.access = LS_ACCESS_TRITON_DOT;
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &k).alone, ==, plain);
  c.access[LS_ACCESS_TRITON_DOT].elements_per_sm = 1e9; /* 1.05e9 multiply-adds */
  LS_CHECK_DOUBLE (ls_kernel_cost (&c, &gpu, &k).compute_s, ==, 64.0 * 128 * 128 * 1000 / 1e11);
  c.access[LS_ACCESS_TRITON_DOT].step = 2 * LS_MS;
  k.n_serial = 10;
  LS_CHECK_DOUBLE (ls_kernel_cost (&c, &gpu, &k).compute_s, ==, 0.02);
  ls_calibration_clear (&c);
}

LS_TEST_SUITE (LS_TEST (kernels_of_delta_nets_take_what_was_measured),
               LS_TEST (without_a_rate_they_are_products))
