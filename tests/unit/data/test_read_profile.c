/* Pins: what a kernelbench profile gives, as JSON and as CSV, and that both agree; what is
 * passed over; that tables of others come through. Wrong files are in tests/reject/profile. */
#include "ls_test.h"

#include <string.h>

#include "data/measured/read_profile.h"

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
parse (const char *text)
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
  return parse (whole);
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
  LS_CHECK_INT (t->held_out, ==, ls_kernel_is_held_out ("768,8192"));
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
  g_autoptr (LsProfile) p = parse (csv);
  if (!LS_CHECK (p != NULL))
    return;
  check_kernels (p);
  LS_CHECK (!p->gpu && !p->date && p->n_sm == 0);
}

static void
a_table_of_others_is_read (void)
{
  g_autoptr (LsProfile) p
      = parse ("dtype,m,n,k,latency_ms,gpu\nbf16,256,512,512,0.01,a100\nbf16,512,512,512,0.01,h100\n"
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
  g_autoptr (LsProfile) p = parse (csv);
  if (!LS_CHECK (p != NULL))
    return;
  ls_profile_error (p, 3, diags, "too fast");
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
  g_autoptr (LsProfile) p = parse (text);
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
  g_autoptr (LsProfile) p = parse (text);
  if (!LS_CHECK (p != NULL) || !LS_CHECK (p->kernels->len == 4))
    return;
  const LsTimedKernel *t = &g_array_index (p->kernels, LsTimedKernel, 0);
  LS_CHECK_INT (t[0].kernel.kind, ==, LS_KERNEL_ATTENTION_BWD);
  LS_CHECK_INT (t[0].kernel.batch, ==, 32);
  LS_CHECK_DOUBLE (t[0].kernel.flops, ==, 343597383680);
  LS_CHECK_INT (t[0].held_out, ==, ls_kernel_is_held_out ("32,8,128"));
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
  g_autoptr (LsProfile) p = parse (spans);
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
      = parse ("group,name,shape,dtype,bytes,flops,time_us,note\n"
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

LS_TEST_SUITE (LS_TEST (spans_of_a_plan_are_kernels), LS_TEST (a_profile_is_read),
               LS_TEST (its_csv_says_the_same), LS_TEST (a_table_of_others_is_read),
               LS_TEST (a_row_is_located), LS_TEST (events_are_taken_off_and_disturbed_rows_left_out),
               LS_TEST (kernels_are_kept_by_implementation), LS_TEST (streams_of_a_layer_are_read))
