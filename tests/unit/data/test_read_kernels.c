/* Tables of kernels: what each kind of table means, in FLOPs, bytes and seconds, and
 * which families are held out of fits. */
#include "ls_test.h"

#include <math.h>

#include "data/measured/read_kernels.h"

static GArray *
parse (const char *text, const char *gpu)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  GArray *rows = ls_parse_kernels ("t.csv", text, gpu, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  ls_check_impl (rows != NULL, __FILE__, __LINE__, "%s", said);
  return rows;
}

static const LsTimedKernel *
at (const GArray *rows, guint i)
{
  return &g_array_index (rows, LsTimedKernel, i);
}

static void
gemms_in_two_spellings (void)
{
  g_autoptr (GArray) sweep
      = parse ("dtype,m,n,k,latency_ms\nbfloat16,256,512,1024,0.25\nfp8,256,512,1024,0.5\n", "a100");
  LS_CHECK_INT (sweep->len, ==, 2);
  LS_CHECK_INT (at (sweep, 0)->kernel.dtype, ==, LS_DTYPE_BF16);
  LS_CHECK_DOUBLE (at (sweep, 0)->kernel.flops, ==, 2.0 * 256 * 512 * 1024);
  LS_CHECK_NEAR (at (sweep, 0)->measured_s, 0.25e-3, 1e-12);
  LS_CHECK_DOUBLE (at (sweep, 0)->side_bytes, ==, 0);
  LS_CHECK_DOUBLE (at (sweep, 1)->side_bytes, ==, 3.0 * 256 * 1024); /* the cast of the input */

  g_autoptr (GArray) vidur
      = parse ("gpu,M,N,K,us_median\na100,256,512,1024,7\nh100,256,512,1024,5\n", "h100");
  LS_CHECK_INT (vidur->len, ==, 1); /* the other row is another GPU's */
  LS_CHECK_NEAR (at (vidur, 0)->measured_s, 5e-6, 1e-12);
  LS_CHECK_INT (at (vidur, 0)->kernel.dtype, ==, LS_DTYPE_FP16);
}

static void
attention_is_causal_and_timed_with_its_rotation (void)
{
  g_autoptr (GArray) rows = parse (
      "attn_dtype,kv_dtype,batch,seq,heads,kv_heads,head_dim,latency_ms\nbfloat16,bfloat16,2,1024,8,2,64,1\n",
      "h100");
  const LsTimedKernel *t = at (rows, 0);
  LS_CHECK_INT (t->kernel.kind, ==, LS_KERNEL_ATTENTION_FWD);
  LS_CHECK_INT (t->kernel.batch, ==, 16);
  LS_CHECK_DOUBLE (t->kernel.flops, ==, 2.0 * 2 * 1024 * 1024 * 8 * 64);
  LS_CHECK_DOUBLE (t->kernel.bytes, ==, 2.0 * 2048 * 64 * (2 * 8 + 2 * 2));
  LS_CHECK_DOUBLE (t->side_bytes, ==, 4.0 * 2048 * 64 * (8 + 2 * 2));
  LS_CHECK (t->has_host);
}

static void
streams_say_whose_kernel (void)
{
  g_autoptr (GArray) rows = parse (
      "op,tokens,hidden,bytes_min,us_median\nadd,8,4,192,1\nrmsnorm,8,4,128,1\nsilu_mul,8,4,192,1\n", "a100");
  const LsTimedWhat what[] = { LS_TIMED_USUAL, LS_TIMED_VLLM_RMSNORM, LS_TIMED_VLLM_SILU_MUL };
  for (guint i = 0; i < 3; i++)
    LS_CHECK_INT (at (rows, i)->what, ==, what[i]);
  LS_CHECK_INT (at (rows, 1)->kernel.kind, ==, LS_KERNEL_NORM);
}

/* Llama-2 7B cut in two: 16 of 32 heads each, gate and up beside each other. */
static void
a_layer_is_seven_kernels (void)
{
  g_autoptr (GArray) rows = parse (
      "n_head,n_kv_head,n_embd,n_expanded_embd,use_gated_mlp,num_tokens,num_tensor_parallel_workers,"
      "attn_pre_proj_median_ms,attn_post_proj_median_ms,mlp_up_proj_median_ms,mlp_down_proj_median_ms,"
      "input_layernorm_median_ms,mlp_act_median_ms,add_median_ms\n"
      "32,32,4096,11008,True,1024,2,1,2,3,4,5,6,7\n"
      "32,32,4096,11008,True,8,2,1,2,3,4,5,6,7\n",
      "a100");
  LS_CHECK_INT (rows->len, ==, 7); /* eight tokens are decoding */
  const uint64_t n[] = { 6144, 4096, 11008, 4096 }, k[] = { 4096, 2048, 4096, 5504 };
  for (guint i = 0; i < 4; i++) {
    LS_CHECK_INT (at (rows, i)->kernel.n, ==, n[i]);
    LS_CHECK_INT (at (rows, i)->kernel.k, ==, k[i]);
  }
  const double bytes[] = { 2.0 * 2 * 1024 * 4096, 3.0 * 2 * 1024 * 5504, 3.0 * 2 * 1024 * 4096 };
  for (guint i = 0; i < 3; i++)
    LS_CHECK_DOUBLE (at (rows, 4 + i)->kernel.bytes, ==, bytes[i]);
  for (guint i = 0; i < rows->len; i++)
    LS_CHECK_NEAR (at (rows, i)->measured_s, (i + 1) * 1e-3, 1e-12);
}

static void
shapes_alone_have_no_time (void)
{
  g_autoptr (GArray) rows = parse ("m,n,k\n256,512,1024\n", "a100");
  LS_CHECK (isnan (at (rows, 0)->measured_s));
}

/* Keys by an independent md5 and big-number arithmetic (Python); and a fifth of many. */
static void
held_out_families_are_those_of_the_md5 (void)
{
  LS_CHECK (ls_kernel_is_held_out ("64,1024"));
  LS_CHECK (ls_kernel_is_held_out ("64,4096"));
  LS_CHECK (ls_kernel_is_held_out ("8,2,128"));
  LS_CHECK (!ls_kernel_is_held_out ("64,512"));
  LS_CHECK (!ls_kernel_is_held_out ("64,2048"));

  guint n = 0;
  for (guint i = 1; i <= 1000; i++) {
    g_autofree char *key = g_strdup_printf ("%u,%u", i, 2 * i);
    n += ls_kernel_is_held_out (key);
  }
  LS_CHECK_INT (n, >, 160); /* a fifth, more or less */
  LS_CHECK_INT (n, <, 240);
}

LS_TEST_SUITE (LS_TEST (gemms_in_two_spellings), LS_TEST (attention_is_causal_and_timed_with_its_rotation),
               LS_TEST (streams_say_whose_kernel), LS_TEST (a_layer_is_seven_kernels),
               LS_TEST (shapes_alone_have_no_time), LS_TEST (held_out_families_are_those_of_the_md5))
