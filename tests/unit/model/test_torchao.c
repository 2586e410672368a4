/* Pins what torchao's linear layers in fp8 launch beside their products, and keep: counts by hand. */
#include "ls_test.h"

#include "model_shapes.h"

static const LsOperator *
operator_named (const GArray *ops, const char *name)
{
  for (guint i = 0; i < ops->len; i++)
    if (g_str_equal (g_array_index (ops, LsOperator, i).name, name))
      return &g_array_index (ops, LsOperator, i);
  return NULL;
}

static double
sum_of (const LsKernel *kernels, uint32_t n)
{
  double bytes = 0;
  for (uint32_t i = 0; i < n; i++)
    bytes += kernels[i].kind == LS_KERNEL_GEMM ? 0 : kernels[i].bytes;
  return bytes;
}

/* torchao's Float8Linear, the second product of an MLP: T tokens, F wide in, H out. Of the input amax 2 and cast
 * 3 bytes, of the weight too, unless it comes in fp8; of the gradient amax 2 and both layouts 4, of the weight
 * its other layout, of the input too: from 16 bits 3 bytes, from fp8 2. */
static void
torchao_casts_in_each_pass (void)
{
  const double T = 8192, F = 28672, H = 8192;
  const struct {
    LsFp8Linear linear;
    uint32_t tp;
    bool has_weights;
    double fwd, igrad, wgrad, kept;
  } cases[] = {
    { LS_FP8_LINEAR_TORCHAO, 1, false, 5 * T * F + 5 * F * H, 6 * T * H + 3 * F * H, 3 * T * F, 2 * T * F },
    { LS_FP8_LINEAR_TORCHAO, 1, true, 5 * T * F, 6 * T * H + 2 * F * H, 3 * T * F, 2 * T * F },
    { LS_FP8_LINEAR_TORCHAO_CAST, 1, false, 5 * T * F + 5 * F * H, 6 * T * H + 2 * F * H, 2 * T * F, T * F },
    { LS_FP8_LINEAR_TORCHAO, 8, true, 5 * T * F / 8, 6 * T * H + 2 * F * H / 8, 2 * T * F / 8, T * F / 8 },
  };
  LsModel m = llama3_70b ();
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsShard s = shard (&m, cases[i].tp, cases[i].tp > 1, 1);
    s.dtype = LS_DTYPE_FP8;
    s.fp8.recipe = LS_FP8_CURRENT;
    s.fp8.linear = cases[i].linear;
    s.fp8.weights = cases[i].has_weights;
    s.grad.is_fresh = true;
    g_autoptr (GArray) ops = layer_operators (&m, &s);
    const LsOperator *fc2 = operator_named (ops, "fc2");
    if (!LS_CHECK (fc2 != NULL))
      return;
    LS_CHECK_DOUBLE (sum_of (fc2->fwd, fc2->n_fwd), ==, cases[i].fwd);
    LS_CHECK_DOUBLE (sum_of (fc2->igrad, fc2->n_igrad), ==, cases[i].igrad);
    LS_CHECK_DOUBLE (sum_of (fc2->wgrad, fc2->n_wgrad), ==, cases[i].wgrad);
    LS_CHECK_DOUBLE ((double) fc2->kept.saved_bytes, ==, cases[i].kept);
  }
}

/* Of mxfp8 no maximum, and both layouts of a gradient in kernels of their own. */
static void
torchao_casts_blocks_twice (void)
{
  const double T = 8192, F = 28672, H = 8192, to = 2 + 33.0 / 32;
  LsModel m = llama3_70b ();
  LsShard s = shard (&m, 1, false, 1);
  s.dtype = LS_DTYPE_FP8;
  s.fp8.recipe = LS_FP8_MXFP8;
  s.fp8.linear = LS_FP8_LINEAR_TORCHAO;
  s.grad.is_fresh = true;
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  const LsOperator *fc2 = operator_named (ops, "fc2");
  if (!LS_CHECK (fc2 != NULL))
    return;
  LS_CHECK_DOUBLE (sum_of (fc2->fwd, fc2->n_fwd), ==, to * (T * F + F * H));
  LS_CHECK_DOUBLE (sum_of (fc2->igrad, fc2->n_igrad), ==, to * (T * H + F * H));
  LS_CHECK_DOUBLE (sum_of (fc2->wgrad, fc2->n_wgrad), ==, to * (T * F + T * H));
}

/* Experts whose products are in bf16 have the kernels and inputs of bf16; attention is in fp8. */
static void
experts_may_stay_in_bf16 (void)
{
  LsModel m = llama3_70b ();
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) bf16 = layer_operators (&m, &s);
  s.dtype = LS_DTYPE_FP8;
  s.fp8.recipe = LS_FP8_CURRENT;
  s.fp8.formats.of[LS_MODULE_EXPERT_FC1] = s.fp8.formats.of[LS_MODULE_EXPERT_FC2] = LS_FORMAT_BF16;
  g_autoptr (GArray) fp8 = layer_operators (&m, &s);
  const LsOperator *of_bf16 = operator_named (bf16, "expert-fc1"),
                   *of_fp8 = operator_named (fp8, "expert-fc1"), *qkv = operator_named (fp8, "qkv");
  if (!LS_CHECK (of_bf16 && of_fp8 && qkv))
    return;
  LS_CHECK_INT (of_fp8->n_fwd, ==, of_bf16->n_fwd);
  LS_CHECK_INT (of_fp8->fwd[0].dtype, ==, LS_DTYPE_BF16);
  LS_CHECK_DOUBLE (of_fp8->wgrad[0].bytes, ==, of_bf16->wgrad[0].bytes);
  LS_CHECK_INT (of_fp8->kept.saved_bytes, ==, of_bf16->kept.saved_bytes);
  LS_CHECK_INT (qkv->fwd[qkv->n_fwd - 1].dtype, ==, LS_DTYPE_FP8);
}

LS_TEST_SUITE (LS_TEST (experts_may_stay_in_bf16), LS_TEST (torchao_casts_in_each_pass),
               LS_TEST (torchao_casts_blocks_twice))
