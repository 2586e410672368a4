/* Pins what a captured launch computes by its kernel's name and its operator's tensors, what of a captured
 * step is refused, with which reason, and that damage to it ends in a trace or in a reason. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "../../fuzz/mutate.h"
#include "captured_bundle.h"
#include "data/datadir.h"
#include "data/traces/captured_read.h"
#include "data/traces/traces.h"

/* --- kernels --- */

#define ACTIVATION "bf16[4,2048,2048]"

static const struct {
  const char *kernel, *op, *inputs, *outputs;
  LsKernelKind kind;
  LsAccess access;
  double bytes;
  bool is_known;
  double made;     /* bytes that were allocated before it */
  double elements; /* that it touches; 0: not looked at */
  bool is_into;
} launches[] = {
  { "vectorized_elementwise_kernel", "aten::add", "[\"" ACTIVATION "\",\"" ACTIVATION "\",1]",
    "[\"" ACTIVATION "\"]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_VEC, 3 * 33554432.0, true },
  /* what is copied to is not read; to more bytes is casting up */
  { "unrolled_elementwise_kernel", "aten::copy_", "[\"fp32[1024]\",\"bf16[1024]\",false]", "[\"fp32[1024]\"]",
    LS_KERNEL_ELEMENTWISE, LS_ACCESS_CASTUP, 1024 * 6.0, true },
  { "vectorized_elementwise_kernel", "aten::copy_", "[\"bf16[1024]\",\"fp32[1024]\",false]",
    "[\"bf16[1024]\"]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_CASTDN, 1024 * 6.0, true },
  /* nor is what out= writes to */
  { "vectorized_elementwise_kernel", "aten::mul", "[\"fp32[1024]\",\"cpu:fp64[]\",\"fp32[1024]\",null]",
    "[\"fp32[1024]\"]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_VEC, 2 * 4096.0, true, .is_into = true },
  { "elementwise_kernel", "aten::mul", "[\"bf16[64,512]\",\"bf16[512]\"]", "[\"bf16[64,512]\"]",
    LS_KERNEL_ELEMENTWISE, LS_ACCESS_BCAST16, 2 * (2 * 64 * 512 + 512.0), true },
  { "elementwise_kernel", "aten::copy_", "[\"bf16[2,4,8]\",\"bf16[2,4,8]:[8,0,1]\",false]",
    "[\"bf16[2,4,8]\"]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_STRIDED16, 2 * (64 + 64 / 4.0), true },
  /* complex numbers are two of fp32; of a table the rows that are asked for are read, or written */
  { "elementwise_kernel", "aten::mul", "[\"c10::complex<float>[64,512]\",\"c10::complex<float>[512]\"]",
    "[\"c10::complex<float>[64,512]\"]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_BCAST32, 8 * (2 * 64 * 512 + 512.0),
    true },
  { "vectorized_gather_kernel", "aten::index_select", "[\"bf16[32000,1024]\",0,\"int64[512]\"]",
    "[\"bf16[512,1024]\"]", LS_KERNEL_EMBEDDING, LS_ACCESS_GATHER, 2 * (2 * 512 * 1024 + 8 * 512.0), true, 0,
    514 * 1024 },
  { "sum_and_scatter", "aten::embedding_dense_backward", "[\"bf16[512,1024]\",\"int64[512]\",32000]",
    "[\"bf16[32000,1024]\"]", LS_KERNEL_EMBEDDING, LS_ACCESS_SCATTER, 2 * (2 * 512 * 1024 + 8 * 512.0), true,
    0, 514 * 1024 },
  { "index_elementwise_kernel", "aten::index", "[\"fp32[512,32000]\",[\"int64[512]\",\"int64[512]\"]]",
    "[\"fp32[512]\"]", LS_KERNEL_EMBEDDING, LS_ACCESS_GATHER, 2 * (2 * 8 + 4) * 512.0, true, 0, 5 * 512 },
  { "index_elementwise_kernel", "aten::_index_put_impl_",
    "[\"fp32[512,32000]\",[\"int64[512]\",\"int64[512]\"],\"fp32[512]\",false,false]",
    "[\"fp32[512,32000]\"]", LS_KERNEL_EMBEDDING, LS_ACCESS_SCATTER, 2 * (2 * 8 + 4) * 512.0, true, 0,
    5 * 512 },
  /* a loss reads, and its gradient is, a number of each row; without a table as large as all, nothing is left out */
  { "nll_loss_forward_reduce_cuda_kernel_2d", "aten::nll_loss_forward",
    "[\"fp32[512,32000]\",\"int64[512]\",null,1,-100]", "[\"fp32[]\",\"fp32[]\"]", LS_KERNEL_CROSS_ENTROPY,
    LS_ACCESS_GATHER, 2 * (8 * 512 + 2 * 4.0), true, 0, 2 * 512 + 2 },
  { "nll_loss_backward_reduce_cuda_kernel_2d", "aten::nll_loss_backward",
    "[\"fp32[]\",\"fp32[512,32000]\",\"int64[512]\",null,1,-100,\"fp32[]\"]", "[\"fp32[512,32000]\"]",
    LS_KERNEL_CROSS_ENTROPY, LS_ACCESS_SCATTER, 2 * (8 * 512 + 2 * 4.0), true, 0, 2 * 512 + 2 },
  { "vectorized_gather_kernel", "aten::index_select", "[\"bf16[512,1024]\",0,\"int64[512]\"]",
    "[\"bf16[512,1024]\"]", LS_KERNEL_EMBEDDING, LS_ACCESS_GATHER, 2 * 2 * 512 * 1024 + 8 * 512.0, true, 0,
    512 * 1024 },
  /* aligned tensors are joined in vectors; FSDP2 copies lists of tensors */
  { "CatArrayBatchedCopy_aligned16_contig", "aten::cat", "[[\"fp32[64]\",\"fp32[64]\"],0]", "[\"fp32[128]\"]",
    LS_KERNEL_ELEMENTWISE, LS_ACCESS_VEC, 2 * 512.0, true },
  { "CatArrayBatchedCopy", "aten::cat", "[[\"bf16[64,3]\",\"bf16[64,3]\"],1]", "[\"bf16[64,6]\"]",
    LS_KERNEL_ELEMENTWISE, LS_ACCESS_CAT, 2 * 768.0, true },
  { "split_with_sizes_copy_out_contiguous_no_cast_kernel", "fsdp::split_with_sizes_copy",
    "[\"fp32[8,64]\",[32,32],1,[\"fp32[8,32]\",\"fp32[8,32]\"]]", "[]", LS_KERNEL_ELEMENTWISE,
    LS_ACCESS_MULTI, 2 * 2048.0, true },
  { "reduce_kernel", "aten::sum", "[\"bf16[8192,2048]\",[0],true]", "[\"bf16[1,2048]\"]", LS_KERNEL_REDUCTION,
    LS_ACCESS_COLRED, 2 * (8192 * 2048 + 2048.0), true },
  { "reduce_kernel", "aten::mean", "[\"fp32[16,4096]\",[-1],true]", "[\"fp32[16,1]\"]", LS_KERNEL_REDUCTION,
    LS_ACCESS_ROWRED, 4 * (16 * 4096 + 16.0), true },
  /* lists that are changed in place are read and written, and not given back: of Adam all but gradients */
  { "multi_tensor_apply_kernel", "aten::_foreach_mul_", "[[\"fp32[100]\",\"fp32[28]\"],null]", "[]",
    LS_KERNEL_OPTIMIZER, LS_ACCESS_MULTI, 2 * 4 * 128.0, true },
  { "multi_tensor_apply_kernel", "aten::_fused_adamw_",
    "[[\"bf16[128]\"],[\"bf16[128]\"],[\"bf16[128]\"],[\"bf16[128]\"]]", "[]", LS_KERNEL_OPTIMIZER,
    LS_ACCESS_ADAM16, 7 * 2 * 128.0, true },
  { "triton_red_fused_add_0", "triton_red_fused_add_0", "[\"bf16[64,64]\",\"bf16[64,64]\",4096]",
    "[\"bf16[64,64]\"]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_TRITON_RED, 3 * 2 * 4096.0, true },
  { "flash_fwd_kernel", "aten::_flash_attention_forward",
    "[\"bf16[2,8192,32,128]\",\"bf16[2,8192,8,128]\",\"bf16[2,8192,8,128]\",null,null,8192,8192,null,true,false,null]",
    "[]", LS_KERNEL_ATTENTION_FWD, LS_ACCESS_NONE, 2 * 8192 * 128 * (2 * 32 + 2 * 8) * 2.0, true },
  /* a row in shared memory is read once, one that is not three times; backwards its gradient twice */
  { "cunn_SoftMaxForwardSmem", "aten::_log_softmax", "[\"fp32[64,1000]\",1,false]", "[\"fp32[64,1000]\"]",
    LS_KERNEL_CROSS_ENTROPY, LS_ACCESS_SOFTMAX, 2 * 4 * 64000.0, true },
  { "cunn_SoftMaxForward", "aten::_log_softmax", "[\"fp32[64,128256]\",1,false]", "[\"fp32[64,128256]\"]",
    LS_KERNEL_CROSS_ENTROPY, LS_ACCESS_SOFTMAX, 4 * 4 * 64 * 128256.0, true },
  { "cunn_SoftMaxBackward", "aten::_log_softmax_backward_data",
    "[\"fp32[64,128256]\",\"fp32[64,128256]\",1,6]", "[\"fp32[64,128256]\"]", LS_KERNEL_CROSS_ENTROPY,
    LS_ACCESS_SOFTMAX, 4 * 4 * 64 * 128256.0, true },
  /* a template is a product; flex attention masks what nobody knows, and is only its template */
  { "triton_tem_fused_mm_0", "triton_tem_fused_mm_0", "[\"bf16[64,512]\",\"bf16[512,128]\",\"bf16[64,128]\"]",
    "[]", LS_KERNEL_GEMM, LS_ACCESS_NONE, 2 * (64 * 512 + 512 * 128 + 64 * 128.0), true },
  { "triton_tem_fused_flex_attention_0", "triton_tem_fused_flex_attention_0",
    "[\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\"]", "[]", LS_KERNEL_ATTENTION_FWD,
    LS_ACCESS_NONE, 2 * 64 * 32 * 2 * 4.0, false },
  { "triton_per_fused_flex_attention_backward_0", "triton_per_fused_flex_attention_backward_0",
    "[\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"fp32[1,2,64]\"]", "[]", LS_KERNEL_ELEMENTWISE,
    LS_ACCESS_TRITON_RED, 2 * 2 * 2 * 64 * 32 + 4 * 2 * 64.0, true },
  /* of libraries: passes over what was allocated for it; nobody knows the second */
  { "rmsnorm_bwd_tuned_kernel", "_LayerNormLinearBackward", "[\"bf16[64,512]\"]", "[]", LS_KERNEL_NORM,
    LS_ACCESS_TE_NORM_GRAD, 3 * 1000, true, 1000 },
  { "unheard_of", "MyFunction", "[\"fp32[64]\"]", "[]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_NONE, 2 * 1000,
    false, 1000 },
  { "unheard_of", "MyFunction", "[\"fp32[64]\"]", "[]", LS_KERNEL_ELEMENTWISE, LS_ACCESS_NONE, 32 * 1000,
    false },
  { "unheard_of", "aten::op", "[\"fp32[64]\",\"cpu:fp32[1000000]\"]", "[]", LS_KERNEL_ELEMENTWISE,
    LS_ACCESS_NONE, 256, false },
  /* 10 blocks of 65,536 elements of four lists, of which three are written too */
  { "multi_tensor_apply_kernelI18TensorListMetadataILi4ELb0EE11AdamFunctor", NULL, "[]", "[]",
    LS_KERNEL_OPTIMIZER, LS_ACCESS_ADAM, 10 * 65536 * 4.0 * 7, true },
};

static void
kernels_are_of_their_class (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (launches); i++) {
    cJSON *inputs = cJSON_Parse (launches[i].inputs), *outputs = cJSON_Parse (launches[i].outputs);
    const LsCapturedLaunch launch = { .kernel = launches[i].kernel,
                                      .op = launches[i].op,
                                      .inputs = inputs,
                                      .outputs = outputs,
                                      .is_into = launches[i].is_into,
                                      .threads = 1000,
                                      .blocks = 10,
                                      .made = launches[i].made,
                                      .share = 1 };
    LsKernel k;
    bool is_known = ls_captured_kernel (&launch, &k);
    ls_check_impl (is_known == launches[i].is_known && k.kind == launches[i].kind
                       && k.access == launches[i].access && fabs (k.bytes - launches[i].bytes) < 0.5,
                   __FILE__, __LINE__, "launch %u: known %d, kind %s, access %s, %.0f bytes", i, is_known,
                   ls_kernel_kind_names[k.kind].name, ls_access_names[k.access].name, k.bytes);
    double n = (double) k.m * (double) k.n, most = launches[i].elements;
    ls_check_impl (most <= 0 || (n <= most && n > most / 2), __FILE__, __LINE__, "launch %u: %.0f elements",
                   i, n);
    cJSON_Delete (inputs);
    cJSON_Delete (outputs);
  }
}

/* An operator that launches several kernels has its bytes and elements shared among them, a single row too. */
static void
kernels_of_one_operator_share_it (void)
{
  cJSON *inputs = cJSON_Parse ("[[\"bf16[800]\",\"bf16[800]\"],0]"),
        *outputs = cJSON_Parse ("[\"bf16[1600]\"]");
  const LsCapturedLaunch launch = { .kernel = "CatArrayBatchedCopy_vectorized",
                                    .op = "aten::cat",
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .threads = 100,
                                    .blocks = 1,
                                    .share = 0.25 };
  LsKernel k;
  LS_CHECK (ls_captured_kernel (&launch, &k));
  LS_CHECK (k.bytes == 0.25 * 2 * 3200 && k.m * k.n == 400);
  cJSON_Delete (inputs);
  cJSON_Delete (outputs);
}

/* Half the pairs of a causal attention are computed; which truth value says so depends on the operator. */
static void
attention_is_causal_where_it_says_so (void)
{
  static const struct {
    const char *op, *inputs;
    double flops;
  } cases[] = {
    { "aten::_scaled_dot_product_flash_attention",
      "[\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",null,true,false]", 2 },
    { "aten::_scaled_dot_product_flash_attention",
      "[\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",null,false,true]", 4 },
    { "aten::_cudnn_attention_forward",
      "[\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",null,64,64,true,null,true,false]", 2 },
    { "aten::_cudnn_attention_forward",
      "[\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",null,64,64,true,null,false,false]", 4 },
    { "aten::_efficient_attention_forward",
      "[\"bf16[1,64,2,32]\",\"bf16[1,64,2,32]\",\"bf16[1,64,2,32]\",null,null,null,1,true]", 2 },
    { "aten::_scaled_dot_product_flash_attention_backward",
      "[\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",null,true]", 5 },
    { "flash_attn_3::bwd", "[null,\"bf16[1,64,2,32]\",\"bf16[1,64,2,32]\",null,true]", 5 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    cJSON *inputs = cJSON_Parse (cases[i].inputs);
    const LsCapturedLaunch launch
        = { .work = strstr (cases[i].op, "cudnn") ? LS_CAPTURED_PLAN : LS_CAPTURED_KERNEL,
            .kernel = strstr (cases[i].op, "efficient") ? "fmha_cutlassF"
                : strstr (cases[i].op, "_3::")          ? "flash::FlashAttnBwdSm90"
                                                        : "flash_fwd_kernel",
            .op = cases[i].op,
            .share = 1,
            .inputs = inputs };
    LsKernel k;
    LS_CHECK (ls_captured_kernel (&launch, &k)
              && (k.attention == LS_ATTENTION_KERNEL_FA3) == !strncmp (cases[i].op, "flash_attn_3", 12));
    ls_check_impl (fabs (k.flops - cases[i].flops * 64 * 64 * 2 * 32) < 0.5, __FILE__, __LINE__,
                   "case %u: %.0f FLOPs", i, k.flops);
    cJSON_Delete (inputs);
  }
}

/* What a mask adds is read by the kernels, which are slower for it; statistics and the like are no mask. */
static void
attention_reads_a_mask_where_it_is_given_one (void)
{
#define FOUR "\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,32]\""
  static const struct {
    const char *op, *inputs;
    bool is_masked;
  } cases[] = {
    { "aten::_cudnn_attention_forward", "[" FOUR ",\"bf16[1,1,64,64]\",null,null,64,64,true,null,false]",
      true },
    { "aten::_cudnn_attention_forward", "[" FOUR ",null,null,null,64,64,true,null,false]", false },
    { "aten::_cudnn_attention_backward",
      "[null," FOUR ",null,\"fp32[1,2,64,1]\",\"int64[]\",\"int64[]\",\"bf16[1,1,64,64]\",null,null,64,64]",
      true },
    { "aten::_efficient_attention_backward", "[null," FOUR ",null,\"bf16[1,2,64,32]\",null,null,64,64]",
      false },
    { "aten::_efficient_attention_backward", "[null," FOUR ",\"bf16[1,2,64,64]\",null,null,null,64,64]",
      true },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    for (guint products = 0; products <= 2; products += 2) {
      cJSON *inputs = cJSON_Parse (cases[i].inputs);
      const LsCapturedLaunch launch = { .work = products > 0 ? LS_CAPTURED_PLAN : LS_CAPTURED_KERNEL,
                                        .kernel = "fmha_cutlass",
                                        .op = cases[i].op,
                                        .inputs = inputs,
                                        .products = products,
                                        .m = 64,
                                        .n = 64,
                                        .k = 32,
                                        .batch = 2,
                                        .share = 1 };
      LsKernel k;
      bool is_known = ls_captured_kernel (&launch, &k);
      ls_check_impl (is_known && k.masked == cases[i].is_masked, __FILE__, __LINE__, "case %u: masked %d", i,
                     k.masked);
      cJSON_Delete (inputs);
    }
}

/* Sequences that lie one after the other, and masks of blocks: as many pairs as the capture says; where it
 * does not, at most so many, which is a guess but where all are as long as the longest. */
static void
attention_has_the_pairs_that_are_said (void)
{
#define PACKED "\"bf16[96,2,32]\",\"bf16[96,2,32]\",\"bf16[96,2,32]\""
#define FLEX   "\"bf16[1,4,64,32]\",\"bf16[1,2,64,32]\",\"bf16[1,2,64,16]\",\"fp32[1,4,64]\",\"int32[64]\""
  static const struct {
    const char *kernel, *op, *inputs;
    double pairs, flops; /* flops: of a head with a width of 1 */
    uint64_t m, n, k, batch;
    bool is_known, is_plan;
  } cases[] = {
    { "flash_fwd_kernel", "flash_attn::_flash_attn_varlen_forward",
      "[" PACKED ",\"int32[4]\",\"int32[4]\",64,64,null,null,true,-1,-1]", 1000, 4 * 1000, 32, 64, 32, 6,
      true },
    { "flash_fwd_kernel", "flash_attn::_flash_attn_varlen_forward",
      "[" PACKED ",\"int32[4]\",\"int32[4]\",64,64,null,null,true,-1,-1]", 0, 4 * 96 * 64 / 2, 32, 64, 32, 6,
      false },
    { "flash_fwd_kernel", "aten::_flash_attention_forward",
      "[" PACKED ",\"int32[4]\",\"int32[4]\",32,32,null,false,false]", 0, 4 * 96 * 32, 32, 32, 32, 6, true },
    { "flash_bwd_dq_dk_dv_loop_seqk_parallel", "flash_attn::_flash_attn_varlen_backward",
      "[null," PACKED ",null,null,null,null,null,\"int32[4]\",\"int32[4]\",64,64,null,null,true]", 1000,
      10 * 1000, 32, 64, 32, 6, true },
    { "flash::FlashAttnFwdSm90", "flash_attn_3::fwd",
      "[" PACKED ",null,null,null,null,\"int32[4]\",\"int32[4]\",null,null,null,64,64]", 1000, 4 * 1000, 32,
      64, 32, 6, true },
    { "fmha_cutlassB", "aten::_efficient_attention_backward",
      "[null,\"bf16[1,96,2,32]\",\"bf16[1,96,2,32]\",\"bf16[1,96,2,32]\",null,null,"
      "\"int32[4]\",\"int32[4]\",64,64,"
      "null,null,null,null,1,false]",
      0, 10 * 96 * 64 / 2, 32, 64, 32, 6, false },
    /* the graph says four times the longest */
    { NULL, "aten::_cudnn_attention_forward",
      "[" PACKED ",null,\"int32[4]\",\"int32[4]\",64,64,true,null,true,false]", 1000, 4 * 1000, 32, 64, 32, 6,
      true, true },
    { "triton_tem_fused_flex_attention_0", "triton_tem_fused_flex_attention_0", "[" FLEX "]", 500, 4 * 500,
      64, 64, 24, 4, true },
    { "triton_tem_fused_flex_attention_backward_1", "triton_tem_fused_flex_attention_backward_1",
      "[" FLEX "]", 0, 10 * 64 * 64, 64, 64, 24, 4, false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    cJSON *inputs = cJSON_Parse (cases[i].inputs);
    const LsCapturedLaunch launch = { .work = cases[i].is_plan ? LS_CAPTURED_PLAN : LS_CAPTURED_KERNEL,
                                      .kernel = cases[i].kernel,
                                      .op = cases[i].op,
                                      .inputs = inputs,
                                      .pairs = cases[i].pairs,
                                      .products = cases[i].is_plan ? 2 : 0,
                                      .m = 64,
                                      .n = 64,
                                      .k = 32,
                                      .batch = 6,
                                      .share = 1 };
    LsKernel k;
    bool is_known = ls_captured_kernel (&launch, &k), is_flex = strstr (cases[i].op, "flex") != NULL;
    LS_CHECK (k.attention
              == (cases[i].is_plan                       ? LS_ATTENTION_KERNEL_CUDNN
                      : strstr (cases[i].op, "attn_3::") ? LS_ATTENTION_KERNEL_FA3
                                                         : LS_ATTENTION_KERNEL_FA2));
    double flops = cases[i].flops * (is_flex ? 4 : 2) * (double) cases[i].k;
    ls_check_impl (is_known == cases[i].is_known && ls_kernel_is_attention (k.kind)
                       && fabs (k.flops - flops) < 0.5 && k.m == cases[i].m && k.n == cases[i].n
                       && k.k == cases[i].k && k.batch == cases[i].batch,
                   __FILE__, __LINE__, "case %u: known %d, %.0f FLOPs of %.0f, %ux%ux%u in %u", i, is_known,
                   k.flops, flops, (guint) k.m, (guint) k.n, (guint) k.k, (guint) k.batch);
    cJSON_Delete (inputs);
  }
}

/* --- files --- */

static char *bundle;
static gsize n_bundle;

/* The text of its diagnostics, newly allocated; "": it is read. */
static char *
read_text (const char *text, gsize n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, n, "fuzz.json", diags);
  g_autoptr (LsTrace) t = doc ? captured_bundle_parse (doc, diags) : NULL;
  LS_CHECK ((t == NULL) == (ls_diag_list_n (diags) > 0));
  char *said = ls_diag_list_format (diags);
  LS_CHECK (g_utf8_validate (said, -1, NULL));
  return said;
}

static void
what_is_wrong_is_said (void)
{
  static const struct {
    const char *from, *to, *says;
  } cases[] = {
    { "lockstep.captured-job/1", "lockstep.captured-job/2",
      "expected \"schema\": \"lockstep.captured-job/1\"" },
    { "lockstep.captured/1", "lockstep.captured/9", "expected \"schema\": \"lockstep.captured/1\"" },
    { "\"world\":4", "\"world\":0", "world: expected 1 to 1048576" },
    { "\"represents\":[0,0,2,2]", "\"represents\":[0,0,2]", "expected one for each of 4 ranks" },
    { "\"represents\":[0,0,2,2]", "\"represents\":[0,0,2,3]", "rank 3 was not captured" },
    { "rank-2.json\"}", "rank-3.json\"}", "there is no such file" },
    { "\"file\":\"rank-0.json\"", "\"file\":\"../rank-0.json\"", "files: expected" },
    { "[0,4,1]", "[0,5,1]", "a group: expected" },
    { "[\"w\",2,0]", "[\"w\",2,9]", "an event is waited for that is not recorded" },
    { "[\"k\",2,0,1,4,16,1,128,1,1]", "[\"q\",2,0,1,4,16,1,128,1,1]", "did: line 3 is not one" },
    { "\"send\",1048576,9,1", "\"send\",1048576,99,1", "did: line 10 is not one" },
    { "\"all-reduce\"", "\"all-praise\"", "all-praise" },
    { "\"send\",1048576,9,1", "\"send\",1048577,9,1", "" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (GStrv) parts = g_strsplit (bundle, cases[i].from, 2);
    ls_check_impl (parts[0] && parts[1], __FILE__, __LINE__, "case %u: its text is not there", i);
    if (!parts[0] || !parts[1])
      continue;
    g_autofree char *text = g_strconcat (parts[0], cases[i].to, parts[1], NULL),
                    *said = read_text (text, strlen (text));
    ls_check_impl (*said && strstr (said, cases[i].says), __FILE__, __LINE__, "case %u: %s", i, said);
  }
  g_autofree char *said = read_text (bundle, n_bundle);
  ls_check_impl (!*said, __FILE__, __LINE__, "%s", said);
}

/* Ranks whose router sends unequal amounts make one all-to-all all the same: as large as the largest. */
static void
exchanges_are_of_the_fullest (void)
{
  g_auto (GStrv) parts = g_strsplit (bundle, "2,\"all-reduce\",1048576", 3);
  LS_CHECK (g_strv_length (parts) == 3);
  g_autofree char *text = g_strconcat (parts[0], "0,\"all-to-all\",1048576", parts[1],
                                       "0,\"all-to-all\",3145728", parts[2], NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "unequal.json", diags);
  g_autoptr (LsTrace) t = doc ? captured_bundle_parse (doc, diags) : NULL;
  g_autofree char *said = ls_diag_list_format (diags),
                  *written
      = t ? ls_trace_format (t->plan, &(LsTraceHead) { .name = "x", .source = "x" }, NULL) : NULL;
  LS_CHECK (t != NULL && !*said);
  LS_CHECK (written && strstr (written, "\"all-to-all\"") && !strstr (written, "\"1MiB\""));
}

/* A head of attention has the pairs that a line says of its operator: 4 x 1000 x 64 FLOPs, of 8 heads. */
static void
pairs_are_of_their_operator (void)
{
  g_auto (GStrv) parts = g_strsplit (bundle, "[\"k\",2,", 2);
  g_autofree char *text = g_strconcat (parts[0], "[\"v\",2,1000],[\"k\",2,", parts[1], NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "pairs.json", diags);
  g_autoptr (LsTrace) t = doc ? captured_bundle_parse (doc, diags) : NULL;
  g_autofree char *written
      = t ? ls_trace_format (t->plan, &(LsTraceHead) { .name = "x", .source = "x" }, NULL) : NULL;
  LS_CHECK (written && strstr (written, "\"flops\":2048000,"));
}

/* The host calls functions of Python before it launches: as often as a line says. */
static void
python_takes_the_host_its_time (void)
{
  g_auto (GStrv) parts = g_strsplit (bundle, "[\"k\",2,", 2);
  g_autofree char *text = g_strconcat (parts[0], "[\"y\",391],[\"k\",2,", parts[1], NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "calls.json", diags);
  g_autoptr (LsTrace) t = doc ? captured_bundle_parse (doc, diags) : NULL;
  guint n = 0;
  for (uint32_t s = 0; t && s < t->plan->n_segments; s++)
    for (uint32_t i = 0; i < t->plan->segments[s].n_ops; i++) {
      const LsOp *op = &t->plan->segments[s].ops[i];
      n += op->host == LS_HOST_PYTHON ? op->repeat : 0;
      LS_CHECK (op->host != LS_HOST_PYTHON || op->kind == LS_OP_HOST_DELAY);
    }
  LS_CHECK_INT (n, ==, 391);
}

static void
damage_ends_in_a_trace_or_a_reason (void)
{
  guint n_read = 0, n = 5000;
  for (guint32 seed = 1; seed <= n; seed++) {
    g_autoptr (GByteArray) b = mutate_bytes (bundle, n_bundle, seed);
    g_autofree char *exact = g_memdup2 (b->data, b->len), *said = read_text (exact ? exact : "", b->len);
    n_read += !*said;
  }
  printf ("%u of %u damaged traces are read\n", n_read, n);
  LS_CHECK (n_read > 0 && n_read < n);
}

static void
load_bundle (void)
{
  g_autofree char *path
      = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data", "captured-bundle.json", NULL);
  if (!g_file_get_contents (path, &bundle, &n_bundle, NULL))
    bundle = g_strdup (""); /* of which the tests say that it is none */
}

static void
free_bundle (void)
{
  g_free (bundle);
}

/* Each once where it follows on itself: what precedes it, and what a graph launches. Messages that are sent at
 * once are one op, of the first; "-": a wait of the host. */
static void
ops_know_their_lines (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (bundle, n_bundle, "bundle.json", diags);
  g_autoptr (LsTrace) t = doc ? captured_bundle_parse (doc, diags) : NULL;
  if (!LS_CHECK (t && t->work && t->work->len == 2))
    return;
  const GArray *work = t->work->pdata[0];
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < work->len; i++) {
    int32_t line = g_array_index (work, int32_t, i);
    if (line < 0)
      g_string_append (text, " -");
    else if (i == 0 || line != g_array_index (work, int32_t, i - 1))
      g_string_append_printf (text, " %d", line);
  }
  LS_CHECK_STR (text->str, " 0 - 1 2 3 4 5 6 7 8 9 10 14 15 16 17 18 - 19 20 -");
}

LS_TEST_SUITE_WITH (load_bundle, free_bundle, LS_TEST (kernels_are_of_their_class),
                    LS_TEST (kernels_of_one_operator_share_it),
                    LS_TEST (attention_is_causal_where_it_says_so),
                    LS_TEST (attention_reads_a_mask_where_it_is_given_one),
                    LS_TEST (attention_has_the_pairs_that_are_said), LS_TEST (what_is_wrong_is_said),
                    LS_TEST (exchanges_are_of_the_fullest), LS_TEST (pairs_are_of_their_operator),
                    LS_TEST (ops_know_their_lines), LS_TEST (python_takes_the_host_its_time),
                    LS_TEST (damage_ends_in_a_trace_or_a_reason))
