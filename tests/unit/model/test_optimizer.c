/* Pins the bytes of an optimizer step. */
#include "ls_test.h"

#include "model/operators.h"

static GArray *
optimizer (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype)
{
  GArray *kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  ls_optimizer_kernels (n_params, dtype, grad_dtype, kernels);
  return kernels;
}

static double
bytes_of (const GArray *kernels, const char *name)
{
  for (guint i = 0; i < kernels->len; i++)
    if (g_str_equal (g_array_index (kernels, LsKernel, i).name, name))
      return g_array_index (kernels, LsKernel, i).bytes;
  return 0;
}

static double
bytes_per_param (LsDtype dtype, LsDtype grad_dtype)
{
  g_autoptr (GArray) kernels = optimizer (1000, dtype, grad_dtype);
  double bytes = 0;
  for (guint i = 0; i < kernels->len; i++)
    bytes += g_array_index (kernels, LsKernel, i).bytes / 1000;
  return bytes;
}

/* norm 4, clip 8, Adam 28 always; 16-bit gradients are copied to fp32 (6); fp16
 * unscales (8); masters are copied to 16-bit weights (6). */
static void
bytes_follow_from_the_recipe (void)
{
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_BF16, LS_DTYPE_BF16), ==, 6 + 40 + 6);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_BF16, LS_DTYPE_FP32), ==, 40 + 6);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_FP16, LS_DTYPE_FP16), ==, 6 + 8 + 40 + 6);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_FP32, LS_DTYPE_FP32), ==, 40);
}

/* opt-2 (tests/README.md) counts fused kernels: 30 bytes for each of
 * 70e9 / 64 parameters at 85 % of 3.35 TB/s, 11.5 ms. Adam alone moves 28 of them;
 * the 16-bit write is a kernel of its own here. */
static void
adam_moves_28_of_the_30_bytes_of_a_fused_step (void)
{
  g_autoptr (GArray) kernels = optimizer (70000000000 / 64, LS_DTYPE_BF16, LS_DTYPE_FP32);
  LS_CHECK_NEAR (bytes_of (kernels, "adam") * 30 / 28 / (0.85 * 3.35e12), 11.5e-3, 0.005);
}

static void
only_fp16_unscales (void)
{
  g_autoptr (GArray) fp16 = optimizer (10, LS_DTYPE_FP16, LS_DTYPE_FP32);
  g_autoptr (GArray) bf16 = optimizer (10, LS_DTYPE_BF16, LS_DTYPE_FP32);
  LS_CHECK_DOUBLE (bytes_of (fp16, "grad-unscale"), ==, 80);
  LS_CHECK_DOUBLE (bytes_of (bf16, "grad-unscale"), ==, 0);
  LS_CHECK_INT (fp16->len, ==, bf16->len + 1);
}

static GArray *
casts (LsDtype dtype)
{
  GArray *kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  ls_weight_cast_kernels (16, dtype, kernels);
  return kernels;
}

/* fp8: 2 bytes read, 1 written in each of two layouts. nvfp4: a pass over 2 bytes for the maximum, then 2
 * read and 9/16 written twice. The optimizer's own kernels are those of bf16. */
static void
scaled_formats_cast_weights (void)
{
  g_autoptr (GArray) fp8 = casts (LS_DTYPE_FP8), nvfp4 = casts (LS_DTYPE_NVFP4), bf16 = casts (LS_DTYPE_BF16);
  LS_CHECK_DOUBLE (bytes_of (fp8, "fp8-weight-cast"), ==, 16 * 4);
  LS_CHECK_DOUBLE (bytes_of (nvfp4, "nvfp4-weight-amax"), ==, 16 * 2);
  LS_CHECK_DOUBLE (bytes_of (nvfp4, "nvfp4-weight-cast"), ==, 16 * 2 + 2 * 9);
  LS_CHECK_INT (bf16->len, ==, 0);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_NVFP4, LS_DTYPE_BF16), ==,
                   bytes_per_param (LS_DTYPE_BF16, LS_DTYPE_BF16));
}

/* The gradient-norm all-reduce goes after the one REDUCTION, before the clip. */
static void
one_reduction_comes_before_clip_and_adam (void)
{
  g_autoptr (GArray) kernels = optimizer (10, LS_DTYPE_FP16, LS_DTYPE_FP16);
  const char *expected[]
      = { "main-grad-copy", "grad-unscale", "grad-norm", "grad-clip", "adam", "weight-copy" };
  if (!LS_CHECK (kernels->len == G_N_ELEMENTS (expected)))
    return;
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernel *k = &g_array_index (kernels, LsKernel, i);
    LS_CHECK_STR (k->name, expected[i]);
    LS_CHECK_INT (k->kind == LS_KERNEL_REDUCTION, ==, g_str_equal (k->name, "grad-norm"));
  }
}

/* FSDP: fp32 shards only. Norm 4, clip 8, Adam 28; fp16 unscales. */
static void
shards_are_stepped_on_in_place (void)
{
  static const LsDtype dtypes[] = { LS_DTYPE_BF16, LS_DTYPE_FP32, LS_DTYPE_FP16 };
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
    ls_optimizer_kernels_sharded (10, dtypes[i], kernels);
    LS_CHECK_INT (kernels->len, ==, dtypes[i] == LS_DTYPE_FP16 ? 4 : 3);
    LS_CHECK_DOUBLE (bytes_of (kernels, "grad-norm") + bytes_of (kernels, "grad-clip")
                         + bytes_of (kernels, "adam"),
                     ==, 400);
  }
}

/* Transformer Engine's FusedAdam: gradients of 2 bytes as they are, norm 2, clip 4; the step in fp32: 2 + 16 + 8
 * with the 16 bits that bf16 lacks. Moments of 2 bytes are cast there and back, 6 each way; of 1 byte 5, and 9
 * with its largest value; fp16 is scaled by 8 more each way, a master too. */
static void
narrower_states_are_cast (void)
{
  const LsAdamStates bf16 = { LS_MASTER_REMAINDER, LS_DTYPE_BF16, LS_DTYPE_FP8 },
                     fp16 = { LS_MASTER_FP16, LS_DTYPE_FP32, LS_DTYPE_FP32 },
                     plain = { LS_MASTER_FP32, 0, 0 };
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (LsKernel)),
                     b = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  double sum_a = 0, sum_b = 0;
  ls_optimizer_kernels_narrow (10, LS_DTYPE_BF16, LS_DTYPE_BF16, &bf16, a);
  ls_optimizer_kernels_narrow (10, LS_DTYPE_BF16, LS_DTYPE_FP32, &fp16, b);
  for (guint i = 0; i < a->len; i++)
    sum_a += g_array_index (a, LsKernel, i).bytes;
  for (guint i = 0; i < b->len; i++)
    sum_b += g_array_index (b, LsKernel, i).bytes;
  LS_CHECK_DOUBLE (sum_a, ==, 10 * (2 + 4 + 6 + 5 + 26 + 6 + 9));
  LS_CHECK_DOUBLE (sum_b, ==, 10 * (4 + 8 + 14 + 30 + 18));
  LS_CHECK_INT (ls_adam_bytes (&bf16, LS_DTYPE_BF16), ==, 2 + 2 + 1);
  LS_CHECK_INT (ls_adam_bytes (&fp16, LS_DTYPE_BF16), ==, 2 + 4 + 4);
  LS_CHECK_INT (ls_adam_bytes (&plain, LS_DTYPE_FP32), ==, 8);
  LS_CHECK (ls_adam_is_plain (&plain) && !ls_adam_is_plain (&fp16));
}

LS_TEST_SUITE (LS_TEST (narrower_states_are_cast), LS_TEST (shards_are_stepped_on_in_place),
               LS_TEST (bytes_follow_from_the_recipe),
               LS_TEST (adam_moves_28_of_the_30_bytes_of_a_fused_step), LS_TEST (only_fp16_unscales),
               LS_TEST (scaled_formats_cast_weights), LS_TEST (one_reduction_comes_before_clip_and_adam))
