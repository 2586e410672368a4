/* data/traces/captured_kernels.c — kernels by class: their names, and the tensors of who launches them. */
#include "data/traces/captured_read.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_BYTES 32 /* of an elementwise kernel of PyTorch: four elements of two tensors */

/* --- tensors ----------------------------------------------------------------------------------------- */

typedef struct {
  LsDtype dtype;
  double size;  /* bytes of an element; 0: it is on the host */
  double n;     /* elements */
  double apart; /* of these, that do not lie on another */
  uint64_t dims[8];
  uint32_t n_dims;
  bool is_dense; /* row by row */
} Tensor;

static const struct {
  const char *name;
  LsDtype dtype;
  double size;
} types[] = {
  { "bf16", LS_DTYPE_BF16, 2 },
  { "fp16", LS_DTYPE_FP16, 2 },
  { "fp32", LS_DTYPE_FP32, 4 },
  { "fp64", LS_DTYPE_FP32, 8 },
  { "int64", LS_DTYPE_BYTE, 8 },
  { "int32", LS_DTYPE_BYTE, 4 },
  { "int16", LS_DTYPE_BYTE, 2 },
  { "int8", LS_DTYPE_BYTE, 1 },
  { "uint8", LS_DTYPE_BYTE, 1 },
  { "fp8-e5m2", LS_DTYPE_FP8, 1 },
  { "fp8", LS_DTYPE_FP8, 1 },
  { "bool", LS_DTYPE_BYTE, 1 },
  { "c10::complex<float>", LS_DTYPE_FP32, 8 },
};

/* "bf16[4,2048]:[1,4]"; false: it is none. */
static bool
read_tensor (const char *text, Tensor *ret)
{
  *ret = (Tensor) { .dtype = LS_DTYPE_BYTE, .size = 1, .n = 1, .apart = 1, .is_dense = true };
  if (!text || g_str_has_prefix (text, "cpu:"))
    return false;
  const char *open = strchr (text, '['), *strides = open ? strstr (open, "]:[") : NULL;
  if (!open)
    return false;
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (strlen (types[i].name) == (size_t) (open - text)
        && strncmp (types[i].name, text, (size_t) (open - text)) == 0) {
      ret->dtype = types[i].dtype;
      ret->size = types[i].size;
    }
  ret->is_dense = !strides;
  strides = strides ? strides + strlen ("]:[") : NULL;
  for (char *at = (char *) open + 1; *at && *at != ']' && ret->n_dims < G_N_ELEMENTS (ret->dims);) {
    uint64_t dim = strtoull (at, &at, 10), stride = strides ? strtoull (strides, (char **) &strides, 10) : 1;
    ret->dims[ret->n_dims++] = dim;
    ret->n *= (double) dim;
    ret->apart *= stride == 0 ? 1 : (double) dim;
    if (*at != ',' && *at != ']')
      return false;
    at += *at == ',';
    strides += strides && *strides == ',';
  }
  return true;
}

/* Of a list; false: it is none. */
static bool
tensor_at (const cJSON *list, int i, Tensor *ret)
{
  return read_tensor (cJSON_GetStringValue (cJSON_GetArrayItem (list, i)), ret);
}

typedef struct {
  double bytes, n_largest, n_smallest; /* elements */
  Tensor largest;
  uint32_t n;
  bool all_dense;
} Tensors;

/* Of one, or of a list of them: so many times. */
static void
add_tensors (const cJSON *node, double times, Tensors *t)
{
  const cJSON *each;
  Tensor one;
  if (cJSON_IsArray (node))
    cJSON_ArrayForEach (each, node)
      add_tensors (each, times, t);
  if (!cJSON_IsString (node) || !read_tensor (node->valuestring, &one))
    return;
  t->bytes += times * one.apart * one.size;
  t->all_dense = (t->n == 0 || t->all_dense) && one.is_dense;
  t->n_smallest = t->n == 0 ? one.apart : MIN (t->n_smallest, one.apart);
  if (t->n == 0 || one.n > t->n_largest) {
    t->largest = one;
    t->n_largest = one.n;
  }
  t->n++;
}

static const cJSON *
last_text (const cJSON *list)
{
  const cJSON *each, *last = NULL;
  cJSON_ArrayForEach (each, list)
    if (cJSON_IsString (each))
      last = each;
  return last;
}

static Tensors
tensors_of (const LsCapturedLaunch *l)
{
  /* operators that write what stands first among their inputs, and do not read it */
  static const char *const overwriting[]
      = { "aten::copy_",    "aten::fill_", "aten::zero_",          "aten::random_",        "aten::normal_",
          "aten::uniform_", "aten::set_",  "aten::_foreach_copy_", "aten::_foreach_zero_", NULL };
  Tensors t = { 0 };
  bool is_in_place = l->op && g_str_has_suffix (l->op, "_"),
       overwrites = l->op && g_strv_contains (overwriting, l->op);
  const cJSON *first = cJSON_GetArrayItem (l->inputs, 0), *last = l->is_into ? last_text (l->inputs) : NULL,
              *each;
  cJSON_ArrayForEach (each, l->inputs)
    add_tensors (each, (each == first && overwrites) || each == last ? 0 : 1, &t);
  add_tensors (l->outputs, 1, &t);
  if (is_in_place && cJSON_GetArraySize (l->outputs) == 0) { /* lists of tensors are not given back */
    add_tensors (first, 1, &t);
    for (int i = 2; i < 4 && strstr (l->op, "_fused_adam"); i++) /* nor are moments, which it writes too */
      add_tensors (cJSON_GetArrayItem (l->inputs, i), 1, &t);
  }
  return t;
}

/* --- kernels that stream ------------------------------------------------------------------------------ */

enum { BY_TYPES = LS_N_ACCESSES, BY_SHAPES, BY_DIMENSION };

/* The first of which a word stands in the kernel's name, and one in the operator's. Norms and losses read
 * rows in vectors, as other kernels over contiguous tensors do. So do kernels that join aligned tensors
 * (pytorch/pytorch, aten/src/ATen/native/cuda/Shape.cu: 16 bytes a thread); those that FSDP2 copies with have
 * lists of tensors and 16 bytes a thread (TensorShape.cu), as kernels over many tensors have. */
static const struct {
  LsKernelKind kind;
  int access;                    /* or how it is found */
  const char *words[8], *ops[3]; /* without any: all operators */
} rows[] = {
  { LS_KERNEL_OPTIMIZER, LS_ACCESS_ADAM, { "multi_tensor_apply" }, { "adam" } },
  { LS_KERNEL_OPTIMIZER, LS_ACCESS_MULTI, { "multi_tensor" } },
  { LS_KERNEL_MEMSET, LS_ACCESS_FILL, { "FillFunctor" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_MULTI, { "split_with_sizes_copy", "chunk_cat" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_VEC, { "CatArrayBatchedCopy_v", "CatArrayBatchedCopy_aligned" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_CAT, { "CatArrayBatchedCopy" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_TRITON_RED, { "triton_red", "triton_per" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_TRITON, { "triton_poi", "triton_for" } }, /* and no templates */
  { LS_KERNEL_NORM,
    LS_ACCESS_VEC,
    { "ayer_norm", "LayerNorm", "ayerNorm", "GammaBeta", "rmsnorm", "RMSNorm", "rms_norm" } },
  { LS_KERNEL_CROSS_ENTROPY, LS_ACCESS_SOFTMAX, { "SoftMax" }, { "log_softmax" } },
  { LS_KERNEL_CROSS_ENTROPY, LS_ACCESS_GATHER, { "nll_loss_forward" } },
  { LS_KERNEL_CROSS_ENTROPY, LS_ACCESS_SCATTER, { "nll_loss_backward" } },
  { LS_KERNEL_SOFTMAX, LS_ACCESS_SOFTMAX, { "SoftMax", "softmax" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_GATHER, { "gather", "indexSelect" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_SCATTER, { "embedding_backward" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_SCATTER, { "embedding" }, { "backward" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_SCATTER, { "indexing_backward", "scatter" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_TINY, { "prepare_grouped_gemm", "prepare_varlen" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_GATHER, { "" }, { "aten::repeat_interleave" } },
  { LS_KERNEL_REDUCTION, LS_ACCESS_ROWRED, { "" }, { "aten::topk" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_TINY, { "" }, { "aten::_assert_async" } },
  { LS_KERNEL_REDUCTION, LS_ACCESS_VEC, { "" }, { "aten::sort", "aten::cumsum" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_MULTI, { "" }, { "fsdp::chunk_cat" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_SCATTER, { "" }, { "embedding_dense_backward" } },
  { LS_KERNEL_REDUCTION, LS_ACCESS_MULTI, { "" }, { "_foreach_norm" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_SCATTER, { "index_elementwise" }, { "index_put" } },
  { LS_KERNEL_EMBEDDING, LS_ACCESS_GATHER, { "index" } },
  { LS_KERNEL_REDUCTION, BY_DIMENSION, { "reduce_kernel" } },
  { LS_KERNEL_ELEMENTWISE, BY_TYPES, { "unrolled_elementwise_kernel", "vectorized_elementwise_kernel" } },
  { LS_KERNEL_ELEMENTWISE, BY_SHAPES, { "elementwise_kernel" } },
  { LS_KERNEL_ELEMENTWISE, BY_TYPES, { "copy_kernel" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_VEC, { "distribution_", "fused_dropout" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_ROWRED, { "flash_bwd_dot_do_o", "FlashAttnBwdPreprocess" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_CASTDN, { "flash_bwd_convert_dq", "FlashAttnBwdPostprocess" } },
  { LS_KERNEL_REDUCTION, LS_ACCESS_VEC, { "Scan", "RadixSort", "cub" } },
  { LS_KERNEL_ELEMENTWISE, LS_ACCESS_VEC, { "tri" }, { "tril", "triu" } },
};

static bool
has_word (const char *text, const char *const *words)
{
  while (*words && !strstr (text, *words))
    words++;
  return *words != NULL;
}

static double
size_of_first (const cJSON *list)
{
  const cJSON *each;
  Tensor t;
  cJSON_ArrayForEach (each, list) {
    const cJSON *one = cJSON_IsArray (each) ? each->child : each;
    if (cJSON_IsString (one) && read_tensor (one->valuestring, &t))
      return t.size;
  }
  return 0;
}

/* Of numbers in 16 bits or fewer. */
static bool
is_narrow (const Tensors *t)
{
  return t->largest.size <= 2;
}

static LsAccess
access_of (int how, const LsCapturedLaunch *l, const Tensors *t)
{
  bool is_copy = l->op && strstr (l->op, "copy");
  double to = is_copy ? size_of_first (l->inputs) : size_of_first (l->outputs);
  const cJSON *second = cJSON_GetArrayItem (l->inputs, 1);
  Tensor from = { 0 };
  if (is_copy)
    read_tensor (cJSON_GetStringValue (second), &from);
  else
    from.size = size_of_first (l->inputs);
  switch (how) {
  case BY_TYPES:
    return from.size > 0 && to > 0 && to < from.size ? LS_ACCESS_CASTDN
        : from.size > 0 && to > from.size            ? LS_ACCESS_CASTUP
                                                     : LS_ACCESS_VEC;
  case BY_SHAPES:
    if (t->all_dense && t->n_smallest < t->n_largest)
      return is_narrow (t) ? LS_ACCESS_BCAST16 : LS_ACCESS_BCAST32;
    return is_narrow (t) ? LS_ACCESS_STRIDED16 : LS_ACCESS_STRIDED32;
  case BY_DIMENSION: {
    const cJSON *first = second && cJSON_IsArray (second) ? second->child : NULL;
    return cJSON_IsNumber (first) && first->valueint == 0 && t->largest.n_dims > 1 ? LS_ACCESS_COLRED
                                                                                   : LS_ACCESS_ROWRED;
  }
  default:
    return is_narrow (t) && (how == LS_ACCESS_MULTI || how == LS_ACCESS_ADAM)
        ? ls_access_narrow ((LsAccess) how)
        : (LsAccess) how;
  }
}

/* n: elements of the largest tensor that are touched. */
static void
stream (const LsCapturedLaunch *l, const Tensors *t, double n, LsKernelKind kind, double bytes, LsKernel *ret)
{
  double columns = t->largest.n_dims > 0 ? (double) t->largest.dims[t->largest.n_dims - 1] : 1;
  double rows_of = n > 0 && columns > 0 ? n / columns * l->share : bytes / 2;
  columns *= MIN (rows_of, 1); /* a part of a single row */
  *ret = ls_kernel_stream (l->op ? l->op : "", kind, t->n > 0 ? t->largest.dtype : LS_DTYPE_FP32,
                           (uint64_t) MAX (rows_of, 1), (uint64_t) MAX (columns, 1), MAX (bytes, 1), 0);
}

/* --- of libraries, which show PyTorch what they are given, not what they make --- */

static const struct {
  const char *word;
  LsKernelKind kind;
  LsAccess access;
  double passes; /* over what is allocated for it */
} of_libraries[] = {
  { "rmsnorm_fwd_tuned", LS_KERNEL_NORM, LS_ACCESS_TE_NORM, 2 },
  { "rmsnorm_fwd", LS_KERNEL_NORM, LS_ACCESS_TE_NORM_ANY, 2 },
  { "rmsnorm_bwd_finalize", LS_KERNEL_NORM, LS_ACCESS_TE_NORM_ANY_SUM, 1 },
  { "rmsnorm_bwd_tuned", LS_KERNEL_NORM, LS_ACCESS_TE_NORM_GRAD, 3 },
  { "rmsnorm_bwd", LS_KERNEL_NORM, LS_ACCESS_TE_NORM_ANY_GRAD, 3 },
  { "ln_fwd", LS_KERNEL_NORM, LS_ACCESS_TE_LAYER_NORM, 2 },
  { "ln_bwd_finalize", LS_KERNEL_REDUCTION, LS_ACCESS_COLRED, 1 },
  { "ln_bwd", LS_KERNEL_NORM, LS_ACCESS_TE_LAYER_NORM, 3 },
  { "extract_seed_and_offset", LS_KERNEL_ELEMENTWISE, LS_ACCESS_TINY, 1 },
  { "multi_tensor_l2norm7cleanup", LS_KERNEL_REDUCTION, LS_ACCESS_TINY, 1 },
  { "fused_rope", LS_KERNEL_ELEMENTWISE, LS_ACCESS_TE_ROPE, 2 },
};

#define UNKNOWN_PASSES 2
#define BLOCK_ELEMENTS 65536 /* of a list of tensors, apex's chunk_size and Transformer Engine's */

/* Bytes that a kernel over lists of tensors in fp32 moves: Adam writes all but the gradients, which it reads
 * too. */
static double
list_bytes (const LsCapturedLaunch *l)
{
  const char *lists = l->kernel ? strstr (l->kernel, "TensorListMetadataILi") : NULL;
  double n = lists ? strtod (lists + strlen ("TensorListMetadataILi"), NULL) : 0;
  bool is_adam = n > 0 && strstr (l->kernel, "dam");
  return l->blocks * BLOCK_ELEMENTS * 4 * (is_adam ? 2 * n - 1 : n);
}

static bool
streams_in_library (const LsCapturedLaunch *l, LsKernel *ret)
{
  Tensors t = tensors_of (l);
  const char *name = l->kernel ? l->kernel : "";
  guint i = 0;
  while (i < G_N_ELEMENTS (of_libraries) && !strstr (name, of_libraries[i].word))
    i++;
  bool is_known = i < G_N_ELEMENTS (of_libraries);
  double passes = is_known ? of_libraries[i].passes : UNKNOWN_PASSES, lists = list_bytes (l);
  double bytes = l->all_bytes > 0 ? l->all_bytes : l->made > 0 ? passes * l->made : l->threads * THREAD_BYTES;
  if (lists > 0) {
    stream (l, &t, t.n_largest, LS_KERNEL_OPTIMIZER, lists, ret);
    ret->access = strstr (name, "dam") ? LS_ACCESS_ADAM : LS_ACCESS_MULTI;
    return true;
  }
  stream (l, &t, t.n_largest, is_known ? of_libraries[i].kind : LS_KERNEL_ELEMENTWISE, bytes, ret);
  ret->access = is_known ? of_libraries[i].access : LS_ACCESS_NONE;
  return is_known;
}

/* Bytes of a table, from which rows are gathered or to which they are added, beyond those rows: what it has
 * more than all others together. It is there twice where it is changed in place, or is the gradient of a
 * loss. */
static double
untouched (const LsCapturedLaunch *l, LsAccess access, const Tensors *t)
{
  Tensor table, same;
  bool is_scatter = access == LS_ACCESS_SCATTER, is_loss = l->op && strstr (l->op, "nll_loss");
  if ((!is_scatter && access != LS_ACCESS_GATHER)
      || !tensor_at (is_scatter ? l->outputs : l->inputs, 0, &table))
    return 0;
  bool is_twice = is_scatter && (is_loss || (l->op && g_str_has_suffix (l->op, "_")))
      && tensor_at (l->inputs, is_loss ? 1 : 0, &same) && same.n == table.n;
  double bytes = (is_twice ? 2 : 1) * table.apart * table.size;
  return MAX (2 * bytes - t->bytes, 0);
}

/* Bytes that a softmax reads again of rows that no shared memory holds: for their maximum, their sum and the
 * result; backwards the gradient for its sum and the result (SoftMax.cu). */
static double
read_again (const char *name, const Tensors *t)
{
  double times = strstr (name, "Smem")       ? 0
      : strstr (name, "cunn_SoftMaxForward") ? 2
                                             : strstr (name, "cunn_SoftMaxBackward") != NULL;
  return times * t->n_largest * t->largest.size;
}

static bool
streams (const LsCapturedLaunch *l, LsKernel *ret)
{
  Tensors t = tensors_of (l);
  const char *name = l->kernel ? l->kernel : "", *op = l->op ? l->op : "";
  /* all that it is given and makes is shown by an operator of PyTorch's dispatcher, or a compiled kernel */
  if (!g_str_has_prefix (op, "triton_") && (!strstr (op, "::") || g_str_has_prefix (op, "autograd::")))
    return streams_in_library (l, ret);
  guint i = 0;
  while (i < G_N_ELEMENTS (rows)
         && !(has_word (name, rows[i].words) && (!rows[i].ops[0] || has_word (op, rows[i].ops))))
    i++;
  bool is_known = i < G_N_ELEMENTS (rows) && t.n > 0;
  double rest = is_known ? untouched (l, (LsAccess) rows[i].access, &t) : 0,
         touched = t.bytes - rest + read_again (name, &t);
  double bytes = t.n > 0 ? touched * l->share : l->threads * THREAD_BYTES;
  double n = rest > 0 && t.largest.size > 0 ? touched / 2 / t.largest.size : t.n_largest;
  stream (l, &t, n, is_known ? rows[i].kind : LS_KERNEL_ELEMENTWISE, bytes, ret);
  ret->access = is_known ? access_of (rows[i].access, l, &t) : LS_ACCESS_NONE;
  return is_known;
}

/* --- attention ----------------------------------------------------------------------------------------- */

/* Of operators whose queries, keys and values are inputs FIRST and those after it: how their dimensions
 * lie. That of PyTorch's compiler is its own kernel. */
typedef struct {
  uint32_t first;
  bool heads_first; /* [sequences, heads, tokens, width], else tokens before heads */
  const char *words[6];
  bool by_blocks; /* which pairs are left stands in lists of blocks, not in shapes */
} Attention;

static const Attention attentions[] = {
  { 1,
    true,
    { "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
      "_scaled_dot_product_cudnn_attention_backward", "_cudnn_attention_backward" } },
  { 1, false, { "flash_attention_b", "efficient_attention_b", "flash_attn_b", "_varlen_b", "attn_3::b" } },
  { 0, true, { "_scaled_dot_product_", "_cudnn_attention_forward" } },
  { 0, false, { "flash_attention_f", "efficient_attention_f", "flash_attn_f", "_varlen_f", "attn_3::f" } },
  { 0, true, { "flex_attention" }, .by_blocks = true },
};

/* The first of which all words stand in the kernel's name: whose times it has, LS_ATTENTION_KERNEL_AUTO if it
 * prepares or converts what others multiply. Kernels of CUTLASS and of PyTorch's compiler have
 * FlashAttention-2's algorithm, and its times. */
static const struct {
  const char *words[2];
  LsAttentionKernel like;
} attention_kernels[] = {
  { { "dot_do_o" }, LS_ATTENTION_KERNEL_AUTO },
  { { "convert_dq" }, LS_ATTENTION_KERNEL_AUTO },
  { { "combine" }, LS_ATTENTION_KERNEL_AUTO },
  { { "FlashAttn", "FwdSm" }, LS_ATTENTION_KERNEL_FA3 },
  { { "FlashAttn", "BwdSm" }, LS_ATTENTION_KERNEL_FA3 },
  { { "flash_" }, LS_ATTENTION_KERNEL_FA2 },
  { { "fmha_" }, LS_ATTENTION_KERNEL_FA2 },
  { { "AttentionKernel" }, LS_ATTENTION_KERNEL_FA2 },
  { { "AttentionBackwardKernel" }, LS_ATTENTION_KERNEL_FA2 },
  { { "triton_tem", "flex_attention" }, LS_ATTENTION_KERNEL_FA2 },
};

/* LS_ATTENTION_KERNEL_AUTO: it multiplies no queries. */
static LsAttentionKernel
attention_of (const LsCapturedLaunch *l)
{
  const char *name = l->kernel ? l->kernel : "";
  if (l->work == LS_CAPTURED_PLAN)
    return LS_ATTENTION_KERNEL_CUDNN;
  for (guint i = 0; i < G_N_ELEMENTS (attention_kernels); i++) {
    const char *const *words = attention_kernels[i].words;
    if (strstr (name, words[0]) && (!words[1] || strstr (name, words[1])))
      return attention_kernels[i].like;
  }
  return LS_ATTENTION_KERNEL_AUTO;
}

/* Whether it is causal is the first truth value of the arguments; of the forward of cuDNN and of efficient
 * attention the second, after whether sums are kept; of what that calls, the number before the first, a kind
 * of mask, of which 1 is causal. */
static bool
is_causal (const LsCapturedLaunch *l)
{
  bool is_backward = strstr (l->op, "backward") != NULL, is_flash = strstr (l->op, "flash") != NULL;
  bool is_kind = strstr (l->op, "aten::_efficient_attention") != NULL;
  const cJSON *each;
  int n = 0;
  cJSON_ArrayForEach (each, l->inputs) {
    if (is_kind && cJSON_IsBool (each))
      return each->prev && cJSON_IsNumber (each->prev) && each->prev->valueint == 1;
    if (!is_kind && cJSON_IsBool (each) && n++ == (is_flash || is_backward ? 0 : 1))
      return cJSON_IsTrue (each);
  }
  return false;
}

/* Sequences that lie one after the other, as a list says where each begins and the last ends; 0: there is
 * none. ret_longest: keys of the longest, the second whole number after its queries, if there is one. */
static double
n_packed (const LsCapturedLaunch *l, double *ret_longest)
{
  const cJSON *each;
  double n = 0, n_numbers = 0;
  Tensor t;
  cJSON_ArrayForEach (each, l->inputs) {
    bool is_list = n == 0 && read_tensor (cJSON_GetStringValue (each), &t) && t.n_dims == 1;
    if (is_list && t.dtype == LS_DTYPE_BYTE && t.size == 4)
      n = MAX (t.n - 1, 0);
    if (cJSON_IsNumber (each) && n_numbers++ == 1)
      *ret_longest = CLAMP (each->valuedouble, 1, *ret_longest);
  }
  return n;
}

/* What is added to scores is the fourth argument; of backward passes the fifth, and of cuDNN's the ninth. */
static bool
reads_mask (const LsCapturedLaunch *l)
{
  const char *op = l->op ? l->op : "";
  bool is_cudnn = strstr (op, "cudnn_attention"), is_back = strstr (op, "backward");
  Tensor t;
  int at = !is_back ? 3 : is_cudnn ? 8 : 4;
  return (is_cudnn || strstr (op, "efficient_attention")) && tensor_at (l->inputs, at, &t) && t.n_dims > 1;
}

/* As a graph of cuDNN has it, which does not say how long packed sequences are; false: it is no attention. */
static bool
attends_by_plan (const LsCapturedLaunch *l, LsKernel *ret)
{
  bool is_backward = l->products > 2;
  if (l->work != LS_CAPTURED_PLAN || l->products < 2 || n_packed (l, &(double) { 1 }) > 0)
    return false;
  double flops = 4 * (double) l->batch * (double) l->m * (double) l->n * (double) l->k;
  *ret = (LsKernel) { .name = "attention",
                      .kind = is_backward ? LS_KERNEL_ATTENTION_BWD : LS_KERNEL_ATTENTION_FWD,
                      .dtype = LS_DTYPE_BF16,
                      .m = l->m,
                      .n = l->n,
                      .k = l->k,
                      .batch = l->batch,
                      .attention = LS_ATTENTION_KERNEL_CUDNN,
                      .masked = reads_mask (l),
                      .flops = flops * (is_backward ? 2.5 : 1) * (l->is_masked ? 0.5 : 1),
                      .bytes = MAX (l->all_bytes, 1) };
  return true;
}

/* Queries, keys and values of an operator or a kernel of PyTorch's compiler. */
static bool
attends_with (const LsCapturedLaunch *l, const Attention *as, LsKernel *ret)
{
  Tensor q, k, v;
  int first = (int) as->first;
  if (!tensor_at (l->inputs, first, &q) || !tensor_at (l->inputs, first + 1, &k) || q.n_dims < 3
      || q.n_dims > 4 || k.n_dims != q.n_dims)
    return false;
  v = tensor_at (l->inputs, first + 2, &v) && v.n_dims == q.n_dims ? v : k;
  bool heads_first = as->heads_first && q.n_dims == 4, is_backward = first == 1 || strstr (l->op, "backward");
  uint32_t width = q.n_dims - 1, tokens = width - (heads_first ? 1 : 2),
           heads = width - (heads_first ? 2 : 1);
  double n_rows = q.n_dims == 4 ? (double) q.dims[0] : 1, longest = (double) k.dims[tokens],
         packed = n_rows > 1 || as->by_blocks ? 0 : n_packed (l, &longest),
         n = MAX (packed > 0 ? packed : n_rows, 1), of_all = n_rows * (double) q.dims[tokens],
         keys = packed > 0 ? longest : (double) k.dims[tokens];
  /* of what is not known all sequences are as long as the longest, and no block is skipped */
  bool is_uneven = packed > 0 && (n * keys != of_all || q.dims[tokens] != k.dims[tokens]);
  double pairs = l->pairs > 0 ? l->pairs : of_all * keys * (is_causal (l) ? 0.5 : 1);
  *ret = ls_kernel_attention ("attention", q.dtype, 1, (uint64_t) of_all, q.dims[heads], k.dims[heads],
                              (q.dims[width] + v.dims[width]) / 2, false, is_backward);
  ret->m = (uint64_t) ceil (of_all / n);
  ret->n = (uint64_t) keys;
  ret->batch = (uint64_t) n * q.dims[heads];
  ret->flops = (is_backward ? 10 : 4) * pairs * (double) q.dims[heads] * (double) ret->k;
  ret->masked = reads_mask (l);
  ret->is_guess = l->pairs <= 0 && (as->by_blocks || is_uneven);
  return true;
}

static bool
attends (const LsCapturedLaunch *l, LsKernel *ret)
{
  LsAttentionKernel like = attention_of (l);
  for (guint i = 0; like != LS_ATTENTION_KERNEL_AUTO && l->op && i < G_N_ELEMENTS (attentions); i++)
    if (has_word (l->op, attentions[i].words)) {
      bool ok = attends_with (l, &attentions[i], ret);
      ret->attention = like;
      return ok;
    }
  return false;
}

/* --- all ------------------------------------------------------------------------------------------------ */

static void
product (const LsCapturedLaunch *l, LsKernel *ret)
{
  static const LsDtype of_compute[] = { LS_DTYPE_BF16, LS_DTYPE_FP8, LS_DTYPE_TF32, LS_DTYPE_FP32 };
  LsDtype dtype = of_compute[MIN (l->compute, G_N_ELEMENTS (of_compute) - 1)];
  const cJSON *each;
  Tensor t;
  cJSON_ArrayForEach (each, l->inputs)
    if (l->compute == 0 && read_tensor (cJSON_GetStringValue (each), &t) && t.dtype == LS_DTYPE_FP16)
      dtype = LS_DTYPE_FP16;
  uint32_t out = dtype == LS_DTYPE_FP32 || dtype == LS_DTYPE_TF32 ? 4 : 2;
  /* cuBLAS counts by columns: what it calls rows of the result are its columns */
  *ret = ls_kernel_gemm ("product", dtype, MAX (l->n, 1), MAX (l->m, 1), MAX (l->k, 1), MAX (l->batch, 1),
                         out, false);
}

/* A product that PyTorch's compiler has made from a template: its first two tensors are those that it
 * multiplies. */
static bool
template_product (const LsCapturedLaunch *l, LsKernel *ret)
{
  Tensor a, b;
  if (!l->kernel || !g_str_has_prefix (l->kernel, "triton_tem")
      || attention_of (l) != LS_ATTENTION_KERNEL_AUTO || !tensor_at (l->inputs, 0, &a)
      || !tensor_at (l->inputs, 1, &b) || a.n_dims < 2 || a.n_dims != b.n_dims
      || a.dims[a.n_dims - 1] != b.dims[b.n_dims - 2])
    return false;
  *ret = ls_kernel_gemm ("product", a.dtype, MAX (a.dims[a.n_dims - 2], 1), MAX (b.dims[b.n_dims - 1], 1),
                         MAX (a.dims[a.n_dims - 1], 1), a.n_dims == 3 ? MAX (a.dims[0], 1) : 1, 2, false);
  return true;
}

/* Products of groups of rows, each with a matrix of its own: [T,K] by [E,K,N], or [M,T] by [T,N] for the
 * gradients of E matrices. Groups are assumed to be of one size. */
static bool
grouped_product (const LsCapturedLaunch *l, LsKernel *ret)
{
  Tensor a, b, out;
  bool is_main = l->work != LS_CAPTURED_PLAN && l->op && strstr (l->op, "grouped_mm") && l->kernel
      && !strstr (l->kernel, "prepare_grouped");
  if (!is_main || !tensor_at (l->inputs, 0, &a) || !tensor_at (l->inputs, 1, &b)
      || !tensor_at (l->outputs, 0, &out) || a.n_dims != 2)
    return false;
  bool is_of_matrices = out.n_dims == 3;
  uint64_t n_groups = is_of_matrices ? out.dims[0]
      : b.n_dims == 3                ? b.dims[0]
                                     : 1,
           tokens = a.dims[is_of_matrices ? 1 : 0] / MAX (n_groups, 1),
           other = a.dims[is_of_matrices ? 0 : 1], columns = out.dims[out.n_dims - 1];
  *ret = ls_kernel_gemm ("grouped product", a.dtype, MAX (is_of_matrices ? other : tokens, 1),
                         MAX (columns, 1), MAX (is_of_matrices ? tokens : other, 1), MAX (n_groups, 1), 2,
                         false);
  return true;
}

bool
ls_captured_kernel (const LsCapturedLaunch *l, LsKernel *ret)
{
  *ret = (LsKernel) { 0 };
  bool is_fill = l->work == LS_CAPTURED_FILL;
  double bytes = MAX (l->bytes, 1);
  switch (l->work) {
  case LS_CAPTURED_PRODUCT:
    product (l, ret);
    return true;
  case LS_CAPTURED_FILL:
  case LS_CAPTURED_MOVE:
    *ret = ls_kernel_stream (is_fill ? "fill" : "copy", is_fill ? LS_KERNEL_MEMSET : LS_KERNEL_ELEMENTWISE,
                             LS_DTYPE_BYTE, 1, (uint64_t) bytes, is_fill ? bytes : 2 * bytes, 0);
    ret->access = is_fill ? LS_ACCESS_FILL : LS_ACCESS_MEMCPY;
    return true;
  default:
    if (l->products == 1) { /* a graph of cuDNN's */
      product (l, ret);
      return true;
    }
    if (attends_by_plan (l, ret) || attends (l, ret))
      return !ret->is_guess;
    return grouped_product (l, ret) || template_product (l, ret) || streams (l, ret);
  }
}
