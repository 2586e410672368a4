#include <math.h>
#include <string.h>

#include "data/measured/read_profile.h"

#define MAX_SIZE    1e9  /* of a dimension                               */
#define FLOPS_SLACK 0.01 /* of a GEMM: the file counts 2 m n k, as we do */

/* The streams of kernelbench and their kinds in the simulator (model/operators_*.c). */
static const struct {
  const char *name;
  LsKernelKind kind;
} streams[] = {
  { "copy", LS_KERNEL_ELEMENTWISE },
  { "memcpy", LS_KERNEL_ELEMENTWISE },
  { "memset", LS_KERNEL_MEMSET },
  { "add", LS_KERNEL_ELEMENTWISE },
  { "residual-grad-add", LS_KERNEL_ELEMENTWISE },
  { "bias-add", LS_KERNEL_ELEMENTWISE },
  { "bias-gelu", LS_KERNEL_ELEMENTWISE },
  { "gelu-bwd", LS_KERNEL_ELEMENTWISE },
  { "bias-dropout-add", LS_KERNEL_ELEMENTWISE },
  { "dropout", LS_KERNEL_ELEMENTWISE },
  { "dropout-bwd", LS_KERNEL_ELEMENTWISE },
  { "bias-grad", LS_KERNEL_REDUCTION },
  { "scale-mask-softmax", LS_KERNEL_SOFTMAX },
  { "scale-mask-softmax-bwd", LS_KERNEL_SOFTMAX },
  { "layernorm-fwd", LS_KERNEL_NORM },
  { "layernorm-dgrad", LS_KERNEL_NORM },
  { "layernorm-gamma-beta-grad", LS_KERNEL_NORM },
  { "rmsnorm-fwd", LS_KERNEL_NORM },
  { "rmsnorm-bwd", LS_KERNEL_NORM },
  { "swiglu", LS_KERNEL_ELEMENTWISE },
  { "swiglu-bwd", LS_KERNEL_ELEMENTWISE },
  { "rope-fwd", LS_KERNEL_ELEMENTWISE },
  { "rope-bwd", LS_KERNEL_ELEMENTWISE },
  { "moe-permute", LS_KERNEL_ELEMENTWISE },
  { "moe-unpermute", LS_KERNEL_ELEMENTWISE },
  { "embedding-lookup", LS_KERNEL_EMBEDDING },
  { "embedding-grad", LS_KERNEL_EMBEDDING },
  { "cross-entropy", LS_KERNEL_CROSS_ENTROPY },
  { "cross-entropy-bwd", LS_KERNEL_CROSS_ENTROPY },
  { "adam", LS_KERNEL_OPTIMIZER },
  { "weight-copy", LS_KERNEL_OPTIMIZER },
  { "main-grad-copy", LS_KERNEL_OPTIMIZER },
  { "grad-unscale", LS_KERNEL_OPTIMIZER },
  { "grad-norm", LS_KERNEL_REDUCTION },
  { "grad-clip", LS_KERNEL_OPTIMIZER },
};

/* Kernels of its layer, which go by what they are used for. */
static const struct {
  const char *use, *stream;
} uses[] = {
  { "attention-dropout", "dropout" },
  { "attention-dropout-bwd", "dropout-bwd" },
  { "bias-dropout-add-bwd", "dropout-bwd" },
  { "row-bias-grad", "bias-grad" },
  { "fc1-bias-grad", "bias-grad" },
  { "qkv-bias-grad", "bias-grad" },
  { "qkv-bias", "bias-add" },
  { "context-transpose", "copy" },
  { "qkv-grad-concat", "copy" },
};

/* Its products. */
static const char *const products[]
    = { "forward",          "dgrad",      "wgrad",           "wgrad16", "scores-bmm", "dk-bmm", "expert-fc1",
        "expert-fc1-wgrad", "expert-fc2", "expert-fc2-wgrad" };

/* Of interleaved batches the simulator knows nothing. */
static const char interleaved[] = "operands=interleaved";

/* "8*128x2048x64": batch, then n sizes; without "8*" a batch of 1. */
static bool
parse_shape (const char *text, guint n, uint64_t *ret_sizes, uint64_t *ret_batch)
{
  const char *star = strchr (text, '*');
  g_autofree char *batch = star ? g_strndup (text, (gsize) (star - text)) : g_strdup ("1");
  g_auto (GStrv) items = g_strsplit (star ? star + 1 : text, "x", -1);
  bool ok = g_strv_length (items) == n
      && g_ascii_string_to_unsigned (batch, 10, 1, (guint64) MAX_SIZE, ret_batch, NULL);
  for (guint i = 0; ok && i < n; i++)
    ok = g_ascii_string_to_unsigned (items[i], 10, 1, (guint64) MAX_SIZE, &ret_sizes[i], NULL);
  return ok;
}

static bool
check_row (const LsProfile *p, guint row, const LsProfileRow *r, const char *shape, bool has_shape,
           LsDtype *ret_dtype, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (!has_shape)
    ls_profile_error_at (p, row, "shape", diags, "expected %s; got \"%.40s\"", shape,
                         r->shape ? r->shape : "");
  if (!r->dtype || !ls_dtype_parse (r->dtype, ret_dtype) || *ret_dtype == LS_DTYPE_BYTE)
    ls_profile_error_at (p, row, "dtype", diags,
                         "expected a number format such as bf16 or fp8; got \"%.40s\"",
                         r->dtype ? r->dtype : "");
  if (!(r->time_us > 0))
    ls_profile_error_at (p, row, "time_us", diags, "expected a time above 0; got %g", r->time_us);
  if (!(r->bytes > 0))
    ls_profile_error_at (p, row, "bytes", diags, "expected bytes above 0; got %g", r->bytes);
  return ls_diag_list_n (diags) == n_before;
}

static guint G_GNUC_PRINTF (1, 2) family_of (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *key = g_strdup_vprintf (format, args);
  va_end (args);
  return ls_kernel_family (key);
}

static void
append_gemm (LsProfile *p, guint row, const LsProfileRow *r, const char *name, GArray *kernels,
             LsDiagList *diags)
{
  uint64_t s[3] = { 0 }, batch = 1;
  LsDtype dtype = LS_DTYPE_BF16;
  bool has_shape = r->shape && parse_shape (r->shape, 3, s, &batch);
  if (!check_row (p, row, r, "rows x columns x inner such as 2048x12288x4096, after batch*", has_shape,
                  &dtype, diags))
    return;
  LsTimedKernel t = { .kernel = ls_kernel_gemm (name, dtype, s[0], s[1], s[2], batch, 2, false),
                      .measured_s = r->time_us * 1e-6,
                      .family = family_of ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, s[1], s[2]),
                      .row = row };
  if (fabs (r->flops / t.kernel.flops - 1) > FLOPS_SLACK)
    ls_profile_error_at (p, row, "flops", diags, "expected %.0f FLOPs of this shape; got %.0f",
                         t.kernel.flops, r->flops);
  t.kernel.bytes = r->bytes; /* with what the result is and whether it accumulates */
  g_array_append_val (kernels, t);
}

static void
append_stream (LsProfile *p, guint row, const LsProfileRow *r, const char *name, LsKernelKind kind,
               GArray *kernels, LsDiagList *diags)
{
  uint64_t s[2] = { 0 }, batch = 1;
  LsDtype dtype = LS_DTYPE_FP16;
  bool has_shape = r->shape && parse_shape (r->shape, 2, s, &batch)
      && (batch == 1 || strcmp (r->group, "shapes") == 0 || strcmp (r->group, "plan") == 0);
  if (!check_row (p, row, r, "rows x columns such as 8192x6144", has_shape, &dtype, diags))
    return;
  LsTimedKernel t = {
    .kernel = ls_kernel_stream (name, kind, dtype, s[0], s[1], r->bytes, 0),
    .measured_s = r->time_us * 1e-6,
    .family = family_of ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, s[0], s[1]),
    .row = row,
  };
  t.kernel.batch = batch;
  g_array_append_val (kernels, t);
}

/* Whose flash attention ran. */
static const struct {
  const char *name;
  LsAttentionKernel kernel;
} implementations[] = {
  { "fa1", LS_ATTENTION_KERNEL_FA1 },           { "triton", LS_ATTENTION_KERNEL_TRITON },
  { "fa2", LS_ATTENTION_KERNEL_FA2 },           { "fa3", LS_ATTENTION_KERNEL_FA3 },
  { "aotriton", LS_ATTENTION_KERNEL_AOTRITON }, { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
};

/* AUTO: none of these, so kernelbench's own. */
static LsAttentionKernel
attention_of (const LsProfileRow *r)
{
  for (guint i = 0; r->implementation && i < G_N_ELEMENTS (implementations); i++)
    if (strcmp (r->implementation, implementations[i].name) == 0)
      return implementations[i].kernel;
  return LS_ATTENTION_KERNEL_AUTO;
}

/* "1x8192x32x8x128": sequences, tokens, heads, key/value heads, width. */
static void
append_attention (LsProfile *p, guint row, const LsProfileRow *r, bool is_backward, LsDiagList *diags)
{
  uint64_t s[5] = { 1, 1, 1, 1, 1 }, batch = 1;
  LsDtype dtype = LS_DTYPE_BF16;
  bool has_shape = r->shape && parse_shape (r->shape, 5, s, &batch) && batch == 1;
  if (!check_row (p, row, r, "sequences x tokens x heads x key/value heads x width", has_shape, &dtype,
                  diags))
    return;
  bool is_causal = r->note && strstr (r->note, "causal=1");
  LsTimedKernel t = {
    .kernel = ls_kernel_attention (is_backward ? "flash-attention-bwd" : "flash-attention-fwd", dtype, s[0],
                                   s[1], s[2], s[3], s[4], is_causal, is_backward),
    .measured_s = r->time_us * 1e-6,
    .family = family_of ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, s[2], s[3], s[4]),
    .attention = attention_of (r),
    .row = row,
  };
  if (fabs (r->flops / t.kernel.flops - 1) > FLOPS_SLACK)
    ls_profile_error_at (p, row, "flops", diags, "expected %.0f FLOPs of this shape; got %.0f",
                         t.kernel.flops, r->flops);
  t.kernel.bytes = r->bytes;
  g_array_append_val (p->kernels, t);
}

static bool
take_product (LsProfile *p, guint row, const LsProfileRow *r, GArray *kernels, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (products); i++)
    if (strcmp (r->name, products[i]) == 0 && !(r->note && strstr (r->note, interleaved))) {
      append_gemm (p, row, r, products[i], kernels, diags);
      return true;
    }
  return false;
}

static bool
take_stream (LsProfile *p, guint row, const LsProfileRow *r, const char *name, GArray *kernels,
             LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (streams); i++)
    if (strcmp (name, streams[i].name) == 0) {
      append_stream (p, row, r, streams[i].name, streams[i].kind, kernels, diags);
      return true;
    }
  return false;
}

/* No kernel alone: it is counted as passed over. */
static void
take_stream_in_layer (LsProfile *p, guint row, const LsProfileRow *r, LsDiagList *diags)
{
  const char *name = r->name;
  for (guint i = 0; i < G_N_ELEMENTS (uses); i++)
    if (strcmp (name, uses[i].use) == 0)
      name = uses[i].stream;
  take_stream (p, row, r, name, p->in_layer, diags);
}

/* kernelbench's own is a kernel that no job runs: it is never taken for one of those. */
static void
take_attention (LsProfile *p, guint row, const LsProfileRow *r, bool is_backward, LsDiagList *diags)
{
  if (attention_of (r) != LS_ATTENTION_KERNEL_AUTO)
    append_attention (p, row, r, is_backward, diags);
  else
    p->n_own_attention++;
}

static bool
take_attention_row (LsProfile *p, guint row, const LsProfileRow *r, LsDiagList *diags)
{
  bool is_forward = strcmp (r->name, "flash-attention-fwd") == 0,
       is_backward = strcmp (r->name, "flash-attention-bwd") == 0;
  if (is_forward || is_backward)
    take_attention (p, row, r, is_backward, diags);
  return is_forward || is_backward;
}

/* Of the group `shapes`: what the note says of the kernel's kind. -1: nothing that is known. */
static int
kind_of (const LsProfileRow *r)
{
  static const char key[] = "kind=";
  const char *at = r->note ? strstr (r->note, key) : NULL;
  for (int kind = 0; at && kind < LS_N_KERNEL_KINDS; kind++) {
    const char *name = ls_kernel_kind_name ((LsKernelKind) kind), *word = at + strlen (key);
    if (strcspn (word, " ") == strlen (name) && g_str_has_prefix (word, name))
      return kind;
  }
  return -1;
}

/* Kernels of a job, alone or in a step, under the job's names. Those that only streamed as many bytes tell
 * nothing of it. */
static bool
take_shape (LsProfile *p, guint row, const LsProfileRow *r, LsDiagList *diags)
{
  int kind = kind_of (r);
  const char *name = g_intern_string (r->name);
  GArray *in = strcmp (r->group, "plan") == 0 ? p->sustained : p->kernels;
  if (kind < 0 || g_strcmp0 (r->implementation, "stand-in") == 0
      || (r->note && strstr (r->note, "implementation=stand-in")))
    return false;
  if (ls_kernel_is_gemm (kind))
    append_gemm (p, row, r, name, in, diags);
  else if (ls_kernel_is_attention (kind))
    take_attention (p, row, r, kind == LS_KERNEL_ATTENTION_BWD, diags);
  else
    append_stream (p, row, r, name, (LsKernelKind) kind, p->kernels, diags);
  return true;
}

bool
ls_profile_row_is_disturbed (const LsProfileRow *r)
{
  return r->disturbed || (r->note && strstr (r->note, "disturbed="));
}

static void
note_fact (LsProfile *p, const LsProfileRow *r)
{
  static const char *const groups[] = { "host", "copies", "slowdown", "context", NULL };
  const LsProfileFact fact = { g_intern_string (r->group), g_intern_string (r->name),
                               g_intern_string (r->note), r->time_us * 1e-6, r->bytes };
  if (g_strv_contains (groups, r->group) && r->time_us > 0)
    g_array_append_val (p->facts, fact);
}

void
ls_profile_take_row (LsProfile *p, guint row, const LsProfileRow *r, LsDiagList *diags)
{
  bool is_taken = false;
  if (ls_profile_row_is_disturbed (r)) {
    p->n_disturbed++;
    p->n_passed++;
    return;
  }
  if (strcmp (r->group, "gemm-isolated") == 0 || strcmp (r->group, "gemm-batched") == 0)
    is_taken = take_product (p, row, r, p->kernels, diags);
  else if (strcmp (r->group, "gemm-sustained") == 0)
    is_taken = take_product (p, row, r, p->sustained, diags);
  else if (strcmp (r->group, "streams") == 0 || strcmp (r->group, "operators") == 0)
    is_taken = take_stream (p, row, r, r->name, p->kernels, diags);
  else if (strcmp (r->group, "attention") == 0)
    is_taken = take_attention_row (p, row, r, diags);
  else if (strcmp (r->group, "shapes") == 0 || strcmp (r->group, "plan") == 0)
    is_taken = take_shape (p, row, r, diags);
  else if (strcmp (r->group, "context") == 0)
    take_stream_in_layer (p, row, r, diags);
  p->n_passed += !is_taken;
  note_fact (p, r);
}
