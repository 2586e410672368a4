#include "model/kernel.h"

#include <glib.h>
#include <string.h>

#define KIND(name, kind) [kind] = { name, kind }

const LsEnumName ls_kernel_kind_names[LS_N_KERNEL_KINDS + 1] = { LS_KERNEL_KINDS (KIND) };
G_STATIC_ASSERT (LS_KERNEL_ATTENTION_BWD + 1 == LS_KERNEL_SOFTMAX); /* after which all only stream */
const LsEnumName ls_access_names[LS_N_ACCESSES + 1] = { KIND ("none", LS_ACCESS_NONE), LS_ACCESSES (KIND) };

LsAccess
ls_access_narrow (LsAccess access)
{
  static const LsAccess narrow[LS_N_ACCESSES] = { [LS_ACCESS_BCAST32] = LS_ACCESS_BCAST16,
                                                  [LS_ACCESS_STRIDED32] = LS_ACCESS_STRIDED16,
                                                  [LS_ACCESS_MULTI] = LS_ACCESS_MULTI16,
                                                  [LS_ACCESS_ADAM] = LS_ACCESS_ADAM16 };
  g_assert ((unsigned) access < LS_N_ACCESSES);
  return narrow[access] != LS_ACCESS_NONE ? narrow[access] : access;
}

LsKernel
ls_kernel_gemm (const char *name, LsDtype dtype, uint64_t m, uint64_t n, uint64_t k, uint64_t batch,
                uint32_t out_bytes_per_element, bool accumulate)
{
  double mk = (double) m * (double) k;
  double kn = (double) k * (double) n;
  double mn = (double) m * (double) n;
  double passes_over_c = accumulate ? 2 : 1;

  return (LsKernel) {
    .name = name,
    .kind = batch > 1 ? LS_KERNEL_BATCHED_GEMM : LS_KERNEL_GEMM,
    .dtype = dtype,
    .m = m,
    .n = n,
    .k = k,
    .batch = batch,
    .flops = 2 * mn * (double) k * (double) batch,
    .bytes
    = (double) batch * (ls_dtype_size (dtype) * (mk + kn) + passes_over_c * out_bytes_per_element * mn),
  };
}

LsKernel
ls_kernel_gemm_part (const LsKernel *gemm, uint32_t n)
{
  LsKernel part = *gemm;
  double b = (double) gemm->batch * ls_dtype_size (gemm->dtype) * (double) gemm->k * (double) gemm->n;
  g_assert (n > 0 && gemm->m % n == 0);
  part.m /= n;
  part.flops /= n;
  part.bytes = (gemm->bytes - b) / n + b;
  return part;
}

LsKernel
ls_kernel_gemm_columns (const LsKernel *gemm, uint64_t n)
{
  LsKernel part = *gemm;
  double a = (double) gemm->batch * ls_dtype_size (gemm->dtype) * (double) gemm->m * (double) gemm->k;
  double share = (double) n / (double) gemm->n;
  g_assert (n > 0 && n <= gemm->n);
  part.n = n;
  part.flops *= share;
  part.bytes = a + (gemm->bytes - a) * share;
  return part;
}

LsKernel
ls_kernel_gemm_resized (const LsKernel *gemm, uint64_t m, uint64_t n, uint64_t k)
{
  double elt = (double) gemm->batch * ls_dtype_size (gemm->dtype), at = (double) gemm->m,
         by = (double) gemm->n, deep = (double) gemm->k;
  double of_result = (gemm->bytes - elt * deep * (at + by)) / (at * by);
  LsKernel other = *gemm;
  other.m = m;
  other.n = n;
  other.k = k;
  other.flops = 2 * (double) m * (double) n * (double) k * (double) gemm->batch;
  other.bytes = elt * (double) k * ((double) m + (double) n) + of_result * (double) m * (double) n;
  return other;
}

LsKernel
ls_kernel_attention (const char *name, LsDtype dtype, uint64_t batch, uint64_t seq, uint64_t heads,
                     uint64_t kv_heads, uint64_t head_dim, bool is_causal, bool is_backward)
{
  double tokens = (double) batch * (double) seq, elt = ls_dtype_size (dtype);
  double q = (double) heads * (double) head_dim, kv = (double) kv_heads * (double) head_dim;
  double flops = 4 * tokens * (double) seq * q * (is_causal ? 0.5 : 1);
  double out_elt = MAX (elt, 2);

  return (LsKernel) {
    .name = name,
    .kind = is_backward ? LS_KERNEL_ATTENTION_BWD : LS_KERNEL_ATTENTION_FWD,
    .dtype = dtype,
    .m = seq,
    .n = seq,
    .k = head_dim,
    .batch = batch * heads,
    .flops = is_backward ? 2.5 * flops : flops,
    .bytes = is_backward ? elt * tokens * 4 * (q + kv) : tokens * (elt * (q + 2 * kv) + out_elt * q),
  };
}

double
ls_attention_group_sum_bytes (uint64_t tokens, uint64_t heads, uint64_t kv_heads, uint64_t width)
{
  double gradients = (double) tokens * (double) width;
  return kv_heads < heads ? gradients * (8 * (double) heads + 2 * (double) kv_heads) : 0;
}

LsKernel
ls_kernel_stream (const char *name, LsKernelKind kind, LsDtype dtype, uint64_t m, uint64_t n, double bytes,
                  double flops)
{
  return (LsKernel) {
    .name = name,
    .kind = kind,
    .dtype = dtype,
    .m = m,
    .n = n,
    .batch = 1,
    .flops = flops,
    .bytes = bytes,
  };
}

const char *const ls_module_names[LS_N_MODULES + 1] = {
  [LS_MODULE_OTHER] = "",
  [LS_MODULE_QKV] = "qkv",
  [LS_MODULE_PROJ] = "proj",
  [LS_MODULE_FC1] = "fc1",
  [LS_MODULE_FC2] = "fc2",
  [LS_MODULE_EXPERT_FC1] = "expert-fc1",
  [LS_MODULE_EXPERT_FC2] = "expert-fc2",
  [LS_MODULE_SHARED_FC1] = "shared-fc1",
  [LS_MODULE_SHARED_FC2] = "shared-fc2",
  [LS_MODULE_LATENT_DOWN] = "latent-down",
  [LS_MODULE_LATENT_UP] = "latent-up",
  [LS_MODULE_MIXER_IN] = "mixer-in",
  [LS_MODULE_MIXER_OUT] = "mixer-out",
  [LS_MODULE_MTP] = "mtp",
};

const char *const ls_format_names[LS_N_FORMATS + 1] = {
  [LS_FORMAT_OF_ALL] = "",         [LS_FORMAT_BF16] = "bf16",
  [LS_FORMAT_CURRENT] = "current", [LS_FORMAT_BLOCKWISE] = "blockwise",
  [LS_FORMAT_MXFP8] = "mxfp8",     [LS_FORMAT_NVFP4] = "nvfp4",
};

bool
ls_formats_have (const LsFormats *formats, LsFormat which)
{
  return memchr (formats->of, which, sizeof formats->of) != NULL;
}

bool
ls_formats_any (const LsFormats *formats)
{
  bool any = false;
  for (uint32_t m = 0; m < LS_N_MODULES; m++)
    any |= formats->of[m] != LS_FORMAT_OF_ALL;
  return any;
}

/* Which of them a word is; 0: none. */
static uint8_t
place_of (const char *word, const char *const *names)
{
  uint8_t i = 1;
  while (names[i] && strcmp (word, names[i]) != 0)
    i++;
  return names[i] ? i : 0;
}

bool
ls_formats_parse (const char *text, LsFormats *ret_formats)
{
  LsFormats made = { 0 };
  g_auto (GStrv) pairs = g_strsplit (text, ",", -1);
  for (guint i = 0; pairs[i]; i++) {
    char *colon = strchr (pairs[i], ':');
    if (!colon)
      return false;
    *colon = '\0';
    uint8_t module = place_of (pairs[i], ls_module_names), format = place_of (colon + 1, ls_format_names);
    if (module == 0 || format == 0 || made.of[module] != LS_FORMAT_OF_ALL)
      return false;
    made.of[module] = format;
  }
  *ret_formats = made;
  return true;
}

char *
ls_formats_text (const LsFormats *formats)
{
  GString *text = g_string_new (NULL);
  for (uint32_t m = 1; m < LS_N_MODULES; m++)
    if (formats->of[m] != LS_FORMAT_OF_ALL)
      g_string_append_printf (text, "%s%s:%s", text->len > 0 ? "," : "", ls_module_names[m],
                              ls_format_names[formats->of[m]]);
  return g_string_free (text, FALSE);
}
