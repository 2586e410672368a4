/* Pins parameter counts against published ones (ids: tests/README.md). */
#include "ls_test.h"

#include <math.h>

#include "model_shapes.h"

static LsModel
llama2_13b (void)
{
  return llama (40, 5120, 40, 40, 13824, 32000);
}

/* par-1: jax-ml/scaling-book, training.md, question 1: 3LDF + 4DNHL + 2VD. */
static void
llama2_13b_has_13_billion (void)
{
  LsModel m = llama2_13b ();
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 13.1e9, 0.01);
}

/* par-2: jax-ml/scaling-book, applied-training.md: grouped queries, K = 8. */
static void
llama3_70b_has_70_4_billion (void)
{
  LsModel m = llama3_70b ();
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 70.4e9, 0.005);
}

/* par-3: jax-ml/scaling-book, transformers.md, question 1: L(3DF + 4D^2 + D) + 2DV
 * is 1.74423e10; the book rounds it to 16e9. Its D per layer is one norm; ours are
 * two and a last one. */
static void
book_example_of_64_layers (void)
{
  LsModel m = llama (64, 4096, 32, 32, 4 * 4096, 32000);
  double one_norm_per_layer = (double) ls_model_params (&m, m.vocab) - 65 * 4096.0;
  LS_CHECK_NEAR (one_norm_per_layer, 1.74423e10, 1e-5);
  LS_CHECK_NEAR (one_norm_per_layer, 16e9, 0.0902);
}

/* mosaic-1: llm-foundry prints N = 64,862,437,376 for MPT-70b; dimensions from its
 * mpt-70b.yaml. Exact: biases everywhere, learned positions, tied. */
static void
mpt_70b_is_exact (void)
{
  LsModel m = gpt (80, 8192, 64);
  LS_CHECK_INT (ls_model_params (&m, 50368), ==, INT64_C (64862437376));
}

/* Released checkpoints, as Hugging Face counts their tensors. */
static void
llama3_checkpoints_are_exact (void)
{
  LsModel small = llama (32, 4096, 32, 8, 14336, 128256);
  LsModel middle = llama3_70b ();
  LsModel large = llama (126, 16384, 128, 8, 53248, 128256);
  LS_CHECK_INT (ls_model_params (&small, small.vocab), ==, INT64_C (8030261248));
  LS_CHECK_INT (ls_model_params (&middle, middle.vocab), ==, INT64_C (70553706496));
  LS_CHECK_INT (ls_model_params (&large, large.vocab), ==, INT64_C (405853388800));
}

/* Narayanan et al. 2021, equation 2: P = 12Lh^2 (1 + 13/12h + (V+s)/12Lh), which
 * leaves out the last norm. */
static void
gpt_follows_equation_2 (void)
{
  LsModel m = gpt (96, 12288, 96);
  uint64_t L = 96, h = 12288;
  uint64_t expected = 12 * L * h * h + 13 * L * h + (51200 + 2048) * h + 2 * h;
  LS_CHECK_INT (ls_model_params (&m, m.vocab), ==, expected);
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, 12 * h * h + 13 * h);
  LS_CHECK_INT (ls_model_linear_params (&m, m.vocab), ==, 12 * L * h * h + 51200 * h);
}

/* Qwen: biases on Q, K, V alone. */
static void
qkv_bias_alone_adds_qkv_width (void)
{
  LsModel m = llama3_70b ();
  uint64_t without = ls_model_layer_params (&m, 0);
  m.qkv_bias = true;
  LS_CHECK_INT (ls_model_layer_params (&m, 0) - without, ==, 8192 + 2 * 8 * 128);
  m.linear_bias = true; /* implies it */
  LS_CHECK_INT (ls_model_layer_params (&m, 0) - without, ==, 8192 + 2 * 8 * 128 + 8192 + 2 * 28672 + 8192);
}

/* mem-1: jax-ml/scaling-book, training.md, question 2: (2 + 4 + 4) P = 130 GB. */
static void
bf16_weights_and_two_moments_of_13b (void)
{
  LsModel m = llama2_13b ();
  double per_param = ls_dtype_bytes (LS_DTYPE_BF16) + 2 * ls_dtype_bytes (LS_DTYPE_FP32);
  LS_CHECK_NEAR (per_param * (double) ls_model_params (&m, m.vocab), 130e9, 0.01);
}

/* mem-4: jax-ml/scaling-book, gpus.md, quiz 5, question 2: 2 + 8 bytes per
 * parameter of LLaMA-3 70B need 9 GPUs of 80 GB. */
static void
llama3_70b_needs_nine_h100 (void)
{
  LsModel m = llama3_70b ();
  LS_CHECK_DOUBLE (ceil (10 * (double) ls_model_params (&m, m.vocab) / 80e9), ==, 9);
}

static void
vocabulary_is_padded_to_128_per_rank (void)
{
  LsModel m = { .vocab = 50257 };
  LS_CHECK_INT (ls_model_padded_vocab (&m, 1), ==, 50304);
  LS_CHECK_INT (ls_model_padded_vocab (&m, 8), ==, 51200);
  m.vocab = 51200;
  LS_CHECK_INT (ls_model_padded_vocab (&m, 8), ==, 51200);
}

static void
copies_own_their_strings (void)
{
  LsModel a = llama3_70b (), b;
  a.name = g_strdup ("a");
  ls_model_copy (&b, &a);
  ls_model_clear (&a);
  LS_CHECK_STR (b.name, "a");
  LS_CHECK_INT (b.n_layers, ==, 80);
  LS_CHECK (a.name == NULL);
  ls_model_clear (&b);
  ls_model_clear (NULL);
}

LS_TEST_SUITE (LS_TEST (llama2_13b_has_13_billion), LS_TEST (llama3_70b_has_70_4_billion),
               LS_TEST (book_example_of_64_layers), LS_TEST (mpt_70b_is_exact),
               LS_TEST (llama3_checkpoints_are_exact), LS_TEST (gpt_follows_equation_2),
               LS_TEST (qkv_bias_alone_adds_qkv_width), LS_TEST (bf16_weights_and_two_moments_of_13b),
               LS_TEST (llama3_70b_needs_nine_h100), LS_TEST (vocabulary_is_padded_to_128_per_rank),
               LS_TEST (copies_own_their_strings))
