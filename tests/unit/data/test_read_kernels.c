/* Pins how tables of timed kernels are read: of others, and of kernelbench. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "data/measured/read_kernels.h"

/* Tables of kernels: what each kind of table means, in FLOPs, bytes and seconds, and
 * which families are held out of fits. */

/* By the usual rule. */
static bool
is_held_out (const char *key)
{
  return ls_kernel_family (key) % 5 == 0;
}

static GArray *
parse (const char *text, const char *gpu)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  GArray *rows = ls_read_kernels ("t.csv", text, gpu, NULL, NULL, diags);
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

/* Of products with scales of blocks nothing is said, nor of attention to a cache in another format. */
static void
formats_of_others_are_passed_over_and_counted (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-kernels-XXXXXX", NULL),
                  *path = g_build_filename (folder, "k.csv", NULL);
  LS_CHECK (g_file_set_contents (
      path, "dtype,m,n,k,latency_ms\nfp8_block,256,512,1024,0.2\nbfloat16,256,512,1024,0.25\nint8,1,1,1,1\n",
      -1, NULL));
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  guint n_foreign = 0;
  g_autoptr (GArray) rows = ls_read_kernels (path, NULL, "b300", &n_foreign, NULL, diags);
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 0);
  LS_CHECK_INT (n_foreign, ==, 2);
  if (LS_CHECK (rows) && LS_CHECK_INT (rows->len, ==, 1))
    LS_CHECK_INT (at (rows, 0)->kernel.dtype, ==, LS_DTYPE_BF16);
  g_unlink (path);
  g_rmdir (folder);
  g_autoptr (GArray) attention
      = parse ("attn_dtype,kv_dtype,batch,seq,heads,kv_heads,head_dim,latency_ms\n"
               "bfloat16,fp8,2,1024,8,2,64,1\nfp8,fp8,2,1024,8,2,64,1\nbfloat16,bfloat16,2,2048,8,2,64,1\n",
               "h100");
  LS_CHECK_INT (attention->len, ==, 2);
  LS_CHECK_INT (at (attention, 0)->kernel.dtype, ==, LS_DTYPE_FP8);
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
  LS_CHECK (is_held_out ("64,1024"));
  LS_CHECK (is_held_out ("64,4096"));
  LS_CHECK (is_held_out ("8,2,128"));
  LS_CHECK (!is_held_out ("64,512"));
  LS_CHECK (!is_held_out ("64,2048"));

  guint n = 0;
  for (guint i = 1; i <= 1000; i++) {
    g_autofree char *key = g_strdup_printf ("%u,%u", i, 2 * i);
    n += is_held_out (key);
  }
  LS_CHECK_INT (n, >, 160); /* a fifth, more or less */
  LS_CHECK_INT (n, <, 240);
}

/* Pins: what a kernelbench profile gives, as JSON and as CSV, and that both agree; what is
 * passed over; that tables of others come through. Wrong files are in tests/reject/profile. */

#define ROWS                                                                                                 \
  R ("gemm-isolated", "wgrad", "6144x768x8192", "bf16", 151519232, 77309411328, 120.5, "layout=NT")          \
  R ("gemm-isolated", "forward", "8*128x64x32", "fp16", 229376, 4194304, 4.5, "layout=TN")                   \
  R ("gemm-sustained", "forward", "2048x6144x768", "bf16", 38535168, 19327352832, 40.25, "layout=TN")        \
  R ("streams", "add", "8192x6144", "fp16", 301989888, 0, 110.75, "of_copy=0.99")                            \
  R ("streams", "adam", "1x50000000", "fp32", 1400000000, 0, 500, "")                                        \
  R ("gemm-batched", "scores-bmm", "24*2048x2048x128", "fp16", 226492416, 25769803776, 60,                   \
     "operands=interleaved")                                                                                 \
  R ("attention", "flash-attention-bwd", "1x4096x32x8x128", "bf16", 335544320, 343597383680, 900,            \
     "causal=1")                                                                                             \
  R ("streams", "some-new-kernel", "8192x6144", "fp16", 301989888, 0, 110.75, "")                            \
  R ("host", "launch", "-", "-", 0, 0, 2.5, "")

#define R(group, name, shape, dtype, bytes, flops, us, note)                                                 \
  "{\"group\":\"" group "\",\"name\":\"" name "\",\"shape\":\"" shape "\",\"dtype\":\"" dtype                \
  "\",\"bytes\":" #bytes ",\"flops\":" #flops ",\"time_us\":" #us                                            \
  ",\"spread_pct\":1,\"rate\":1,\"note\":\"" note "\"},"
static const char json[]
    = "{\"schema\":\"lockstep.kernelbench/1\",\"gpu\":\"NVIDIA H200\",\"n_sms\":132,"
      "\"l2_bytes\":1,\"memory_bytes\":1,\"driver\":\"550\",\"cuda\":\"12.4\",\"cublaslt\":1,"
      "\"date\":\"2026-11-20T08:00:00Z\",\"method\":\"m\",\"n_skipped\":0,\"states\":[],\"rows\":[" ROWS;
#undef R
#define R(group, name, shape, dtype, bytes, flops, us, note)                                                 \
  group "," name "," shape "," dtype "," #bytes "," #flops "," #us ",1,1," note "\n"
static const char csv[] = "group,name,shape,dtype,bytes,flops,time_us,spread_pct,rate,note\n" ROWS;
#undef R

static LsProfile *
read_profile_parse (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsProfile *p = ls_profile_parse ("p", text, strlen (text), "a100", diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  return p;
}

static LsProfile *
parse_json (void)
{
  g_autofree char *text = g_strndup (json, strlen (json) - 1); /* without the last comma */
  g_autofree char *whole = g_strconcat (text, "]}", NULL);
  return read_profile_parse (whole);
}

static void
check_kernels (const LsProfile *p)
{
  LS_CHECK (p->is_ours);
  LS_CHECK_INT (p->n_rows, ==, 9);
  LS_CHECK_INT (p->n_passed, ==, 3);
  LS_CHECK_INT (p->n_own_attention, ==, 1); /* kernelbench's, which no job runs */
  if (!LS_CHECK (p->kernels->len == 4 && p->sustained->len == 1))
    return;
  const LsTimedKernel *t = &g_array_index (p->kernels, LsTimedKernel, 0);
  LS_CHECK_INT (t->kernel.kind, ==, LS_KERNEL_GEMM);
  LS_CHECK_INT (t->kernel.m, ==, 6144);
  LS_CHECK_INT (t->kernel.k, ==, 8192);
  LS_CHECK_DOUBLE (t->kernel.bytes, ==, 151519232);
  LS_CHECK_NEAR (t->measured_s, 120.5e-6, 1e-12);
  LS_CHECK_INT (t->held_out, ==, is_held_out ("768,8192"));
  const LsTimedKernel *batched = &g_array_index (p->kernels, LsTimedKernel, 1);
  LS_CHECK_INT (batched->kernel.kind, ==, LS_KERNEL_BATCHED_GEMM);
  LS_CHECK_INT (batched->kernel.batch, ==, 8);
  const LsTimedKernel *adam = &g_array_index (p->kernels, LsTimedKernel, 3);
  LS_CHECK_INT (adam->kernel.kind, ==, LS_KERNEL_OPTIMIZER);
  LS_CHECK_STR (adam->kernel.name, "adam");
  LS_CHECK_INT (adam->kernel.dtype, ==, LS_DTYPE_FP32);
  LS_CHECK_DOUBLE (adam->kernel.flops, ==, 0);
  LS_CHECK_INT (adam->row, ==, 4);
  LS_CHECK_INT (g_array_index (p->sustained, LsTimedKernel, 0).row, ==, 2);
}

static void
a_profile_is_read (void)
{
  g_autoptr (LsProfile) p = parse_json ();
  if (!LS_CHECK (p != NULL))
    return;
  check_kernels (p);
  LS_CHECK_STR (p->gpu, "NVIDIA H200");
  LS_CHECK_STR (p->date, "2026-11-20T08:00:00Z");
  LS_CHECK_INT (p->n_sm, ==, 132);
  LS_CHECK_INT (strlen (p->sha256), ==, 64);
}

static void
its_csv_says_the_same (void)
{
  g_autoptr (LsProfile) p = read_profile_parse (csv);
  if (!LS_CHECK (p != NULL))
    return;
  check_kernels (p);
  LS_CHECK (!p->gpu && !p->date && p->n_sm == 0);
}

static void
a_table_of_others_is_read (void)
{
  g_autoptr (LsProfile) p = read_profile_parse (
      "dtype,m,n,k,latency_ms,gpu\nbf16,256,512,512,0.01,a100\nbf16,512,512,512,0.01,h100\n"
      "fp16,1024,512,512,0.02,a100\n");
  if (!LS_CHECK (p != NULL && p->kernels->len == 2))
    return;
  LS_CHECK (!p->is_ours);
  LS_CHECK_INT (g_array_index (p->kernels, LsTimedKernel, 1).row, ==, 2);
}

static void
a_row_is_located (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsProfile) p = read_profile_parse (csv);
  if (!LS_CHECK (p != NULL))
    return;
  ls_profile_error (p, 3, "time_us", diags, "too fast");
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK (g_str_has_prefix (said, "p:5:40: error: /streams/time_us: too fast\n"));
}

/* A newer profile: what two events cost is taken off what lies between two, rows that were
 * disturbed are left out, and what failed is counted. */
static void
events_are_taken_off_and_disturbed_rows_left_out (void)
{
  static const char head[]
      = "{\"schema\":\"lockstep.kernelbench/1\",\"gpu\":\"x\",\"uuid\":\"y\",\"n_sms\":1,\"mig\":false,"
        "\"host\":true,\"checked\":true,\"date\":\"d\",\"failed\":[{\"case\":\"a\",\"why\":\"b\"}],\"rows\":[";
  static const char product[]
      = "{\"group\":\"gemm-isolated\",\"name\":\"forward\",\"shape\":\"64x64x64\",\"dtype\":\"bf16\","
        "\"bytes\":24576,\"flops\":524288,\"time_us\":10,\"implementation\":\"own\",\"sm_mhz\":1,"
        "\"sm_mhz_min\":1,\"memory_mhz\":1,\"power_w\":1,\"temperature_c\":1,\"throttle\":0,\"others\":0";
  static const char rest[]
      = "{\"group\":\"streams\",\"name\":\"add\",\"shape\":\"64x64\",\"dtype\":\"bf16\",\"bytes\":24576,"
        "\"flops\":0,\"time_us\":10},{\"group\":\"host\",\"name\":\"event-pair\",\"shape\":\"-\","
        "\"dtype\":\"-\",\"bytes\":0,\"flops\":0,\"time_us\":1.5}";
  g_autofree char *text
      = g_strconcat (head, product, "},", product, ",\"disturbed\":\"heat\"},", rest, "]}", NULL);
  g_autoptr (LsProfile) p = read_profile_parse (text);
  if (!LS_CHECK (p != NULL) || !LS_CHECK (p->kernels->len == 2))
    return;
  LS_CHECK_INT (p->n_disturbed, ==, 1);
  LS_CHECK_INT (p->n_failed, ==, 1);
  LS_CHECK_NEAR (g_array_index (p->kernels, LsTimedKernel, 0).measured_s, 8.5e-6, 1e-9);
  LS_CHECK_NEAR (g_array_index (p->kernels, LsTimedKernel, 1).measured_s, 10e-6, 1e-9);
}

#define ROW(group, name, shape, bytes, flops, note, implementation)                                          \
  "{\"group\":\"" group "\",\"name\":\"" name "\",\"shape\":\"" shape                                        \
  "\",\"dtype\":\"bf16\",\"bytes\":" #bytes ",\"flops\":" #flops ",\"time_us\":900,\"note\":\"" note         \
  "\",\"implementation\":\"" implementation "\"}"

/* Attention is of the implementation that ran, under the groups' names and a job's; ours, and what only
 * streamed as many bytes in place of a job's kernel, are kernels of nobody. */
static void
kernels_are_kept_by_implementation (void)
{
  static const char text[] = "{\"schema\":\"lockstep.kernelbench/1\",\"gpu\":\"x\",\"n_sms\":1,\"date\":\"d\",\"rows\":[" ROW (
      "attention", "flash-attention-bwd", "1x4096x32x8x128", 335544320, 343597383680, "causal=1",
      "fa3") "," ROW ("shapes", "flash-attention-fwd", "1x4096x32x8x128", 83886080, 137438953472,
                      "kind=attention-fwd causal=1",
                      "cudnn") "," ROW ("shapes", "flash-attention-fwd", "1x4096x32x8x128", 83886080,
                                        137438953472, "kind=attention-fwd causal=1",
                                        "own") "," ROW ("shapes", "fc1", "8*64x64x64", 196608, 4194304,
                                                        "kind=batched-gemm layout=TN",
                                                        "cublaslt") "," ROW ("shapes", "rope-fwd", "64x64",
                                                                             16384, 0, "kind=elementwise",
                                                                             "stand-in") "," ROW ("shapes",
                                                                                                  "swiglu",
                                                                                                  "64x64",
                                                                                                  24576, 0,
                                                                                                  "kind=elementwise",
                                                                                                  "own") "," ROW ("shapes",
                                                                                                                  "swiglu",
                                                                                                                  "64x64",
                                                                                                                  24576,
                                                                                                                  0,
                                                                                                                  "kind=of-tomorrow",
                                                                                                                  "own") "]}";
  g_autoptr (LsProfile) p = read_profile_parse (text);
  if (!LS_CHECK (p != NULL) || !LS_CHECK (p->kernels->len == 4))
    return;
  const LsTimedKernel *t = &g_array_index (p->kernels, LsTimedKernel, 0);
  LS_CHECK_INT (t[0].kernel.kind, ==, LS_KERNEL_ATTENTION_BWD);
  LS_CHECK_INT (t[0].kernel.batch, ==, 32);
  LS_CHECK_DOUBLE (t[0].kernel.flops, ==, 343597383680);
  LS_CHECK_INT (t[0].held_out, ==, is_held_out ("32,8,128"));
  LS_CHECK_INT (t[0].attention, ==, LS_ATTENTION_KERNEL_FA3);
  LS_CHECK_INT (t[1].kernel.kind, ==, LS_KERNEL_ATTENTION_FWD);
  LS_CHECK_INT (t[1].attention, ==, LS_ATTENTION_KERNEL_CUDNN);
  LS_CHECK_STR (t[2].kernel.name, "fc1");
  LS_CHECK_INT (t[2].kernel.kind, ==, LS_KERNEL_BATCHED_GEMM);
  LS_CHECK_INT (t[2].kernel.batch, ==, 8);
  LS_CHECK_STR (t[3].kernel.name, "swiglu");
  LS_CHECK_INT (p->n_own_attention, ==, 1);
  LS_CHECK_INT (p->n_passed, ==, 2);
}

/* Of a step that was run: medians, less what two events show around nothing; products on a hot GPU; no span
 * beside another stream's kernel, no stand-in, nothing of our own attention, no copy. */
static void
spans_of_a_plan_are_kernels (void)
{
  static const char spans[]
      = "rank,stream,name,tag,segment,op,micro_batch,chunk,layer,start_us,end_us,spread_pct,shape,dtype,bytes,flops,note,implementation\n"
        "0,step,step,,,,,,,0,500,1,,,0,0,,\n"
        "0,step,event-pair,,,,,,,0,2,1,,,0,0,,\n"
        "0,compute,fc1,F,layer,0,0,0,0,0,42,1,2048x4096x1024,bf16,29360128,17179869184,kind=gemm layout=TN,cublaslt\n"
        "0,compute,fc1,F,layer,0,0,0,1,50,96,1,2048x4096x1024,bf16,29360128,17179869184,kind=gemm layout=TN,cublaslt\n"
        "0,compute,fc1,F,layer,0,0,0,2,100,158,1,2048x4096x1024,bf16,29360128,17179869184,kind=gemm layout=TN,cublaslt\n"
        "0,compute,add,F,layer,1,0,0,0,160,172,1,2048x1024,bf16,12582912,0,kind=elementwise,own\n"
        "0,compute,add,F,layer,1,0,0,1,180,199,1,2048x1024,bf16,12582912,0,kind=elementwise,own\n"
        "0,dp,mul,F,layer,1,0,0,1,190,191,1,2048x1024,bf16,12582912,0,kind=elementwise,own\n"
        "0,compute,odd,F,layer,2,0,0,0,200,210,1,2048x1024,bf16,12582912,0,kind=elementwise,stand-in\n"
        "0,compute,attention,F,layer,3,0,0,0,220,260,1,1x64x1x1x64,bf16,32768,1048576,kind=attention-fwd causal=0,own\n"
        "0,h2d,copy,F,layer,4,0,0,0,160,170,1,,,0,0,,\n";
  g_autoptr (LsProfile) p = read_profile_parse (spans);
  LS_CHECK (p->is_ours);
  LS_CHECK_INT (p->n_rows, ==, 11);
  LS_CHECK_INT (p->n_beside, ==, 2);
  LS_CHECK_INT (p->n_own_attention, ==, 1);
  if (!LS_CHECK (p->kernels->len == 1 && p->sustained->len == 1))
    return;
  LS_CHECK_NEAR (g_array_index (p->sustained, LsTimedKernel, 0).measured_s, 44e-6, 1e-12);
  LS_CHECK_INT (g_array_index (p->sustained, LsTimedKernel, 0).kernel.n, ==, 4096);
  LS_CHECK_NEAR (g_array_index (p->kernels, LsTimedKernel, 0).measured_s, 10e-6, 1e-12);
  LS_CHECK_STR (g_array_index (p->kernels, LsTimedKernel, 0).kernel.name, "add");
}

/* Under the names of what they are; events are taken off, as they lie between the kernels of a layer too. Its
 * products and totals are none. */
static void
streams_of_a_layer_are_read (void)
{
  g_autoptr (LsProfile) p
      = read_profile_parse ("group,name,shape,dtype,bytes,flops,time_us,note\n"
                            "context,layernorm-fwd,8192x6144,fp16,201326592,0,91,isolated_us=80 ratio=1.1\n"
                            "context,qkv-grad-concat,8192x2304,fp16,75497472,0,41,\n"
                            "context,qkv,8192x2304x6144,fp16,1,231928233984,400,layout=TN\n"
                            "context,layer-streams,hidden=6144,fp16,276824064,0,132,ratio=1.1\n"
                            "host,event-pair,1x32,none,0,0,1,\n");
  if (!LS_CHECK (p != NULL && p->in_layer->len == 2))
    return;
  const LsTimedKernel *norm = &g_array_index (p->in_layer, LsTimedKernel, 0),
                      *copy = &g_array_index (p->in_layer, LsTimedKernel, 1);
  LS_CHECK_INT (norm->kernel.kind, ==, LS_KERNEL_NORM);
  LS_CHECK_NEAR (norm->measured_s, 90e-6, 1e-12);
  LS_CHECK_STR (copy->kernel.name, "copy");
  LS_CHECK_INT (copy->kernel.n, ==, 2304);
  LS_CHECK_NEAR (copy->measured_s, 40e-6, 1e-12);
  LS_CHECK_INT (p->kernels->len, ==, 0);
  LS_CHECK_INT (p->n_passed, ==, 5);
  LS_CHECK_INT (p->facts->len, ==, 5);
}

LS_TEST_SUITE (LS_TEST (gemms_in_two_spellings), LS_TEST (formats_of_others_are_passed_over_and_counted),
               LS_TEST (attention_is_causal_and_timed_with_its_rotation), LS_TEST (streams_say_whose_kernel),
               LS_TEST (a_layer_is_seven_kernels), LS_TEST (shapes_alone_have_no_time),
               LS_TEST (held_out_families_are_those_of_the_md5), LS_TEST (spans_of_a_plan_are_kernels),
               LS_TEST (a_profile_is_read), LS_TEST (its_csv_says_the_same),
               LS_TEST (a_table_of_others_is_read), LS_TEST (a_row_is_located),
               LS_TEST (events_are_taken_off_and_disturbed_rows_left_out),
               LS_TEST (kernels_are_kept_by_implementation), LS_TEST (streams_of_a_layer_are_read))
