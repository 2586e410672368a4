#include <stddef.h>
#include <string.h>

#include <lockstep/units.h>

#include "ask/kernel_times.h"
#include "data/jobs/read_recipes.h"

#define MAX_SIZE 1e9 /* of a dimension */

static const LsEnumName layouts[] = {
  { "tn", LS_LAYOUT_TN }, { "nn", LS_LAYOUT_NN }, { "nt", LS_LAYOUT_NT }, { "tt", LS_LAYOUT_TT }, { NULL },
};

/* "4096,1024,512": exactly n whole numbers from 1 on. */
static bool
parse_sizes (const char *text, uint64_t *ret_sizes, guint n)
{
  uint64_t sizes[8];
  g_auto (GStrv) items = g_strsplit_set (text, ",xX", -1);
  if (g_strv_length (items) != n)
    return false;
  for (guint i = 0; i < n; i++)
    if (!ls_parse_count (items[i], &sizes[i], NULL) || sizes[i] < 1 || sizes[i] > (uint64_t) MAX_SIZE)
      return false;
  memcpy (ret_sizes, sizes, n * sizeof *sizes);
  return true;
}

static bool
parse_gemm (const char *text, void *target)
{
  return parse_sizes (text, ((LsKernelSpec *) target)->gemm, 3);
}

static bool
parse_attention (const char *text, void *target)
{
  uint64_t sizes[5];
  if (!parse_sizes (text, sizes, 5) || sizes[2] % sizes[3] != 0)
    return false;
  memcpy (((LsKernelSpec *) target)->attention, sizes, sizeof sizes);
  return true;
}

static bool
parse_shape (const char *text, void *target)
{
  return parse_sizes (text, ((LsKernelSpec *) target)->shape, 2);
}

static bool
parse_dtype (const char *text, void *target)
{
  LsDtype dtype;
  if (!ls_dtype_parse (text, &dtype) || dtype == LS_DTYPE_BYTE)
    return false;
  ((LsKernelSpec *) target)->dtype = (int) dtype;
  ((LsKernelSpec *) target)->has_dtype = true;
  return true;
}

#define AT(member) offsetof (LsKernelSpec, member)

static const LsField fields[] = {
  { "gpu", LS_FIELD_STRING, AT (gpu), .required = true },
  { "gpu_calibration", LS_FIELD_STRING, AT (gpu_calibration), .required = true },
  { "gemm", LS_FIELD_CUSTOM, .parse = parse_gemm, .expected = "three sizes M,N,K such as 4096,12288,4096" },
  { "attention", LS_FIELD_CUSTOM, .parse = parse_attention,
    .expected = "BATCH,SEQ,HEADS,KV_HEADS,HEAD_DIM such as 1,8192,32,8,128, HEADS a multiple of KV_HEADS" },
  { "op", LS_FIELD_ENUM, AT (op), .names = LS_STREAM_KIND_NAMES },
  { "shape", LS_FIELD_CUSTOM, .parse = parse_shape, .expected = "two sizes ROWS,COLUMNS such as 4096,12288" },
  { "access", LS_FIELD_ENUM, AT (access), .names = ls_access_names },
  { "bytes", LS_FIELD_BYTES_DOUBLE, AT (bytes), .above = true, .max = 1e15 },
  { "batch", LS_FIELD_UINT64, AT (batch), .min = 1, .max = MAX_SIZE },
  { "layout", LS_FIELD_ENUM, AT (layout), .names = layouts },
  { "causal", LS_FIELD_BOOL, AT (causal) },
  { "backward", LS_FIELD_BOOL, AT (backward) },
  { "dtype", LS_FIELD_CUSTOM, .parse = parse_dtype, .expected = "fp32, tf32, fp16, bf16, fp8 or nvfp4" },
  { "sustained", LS_FIELD_BOOL, AT (sustained) },
  { "from", LS_FIELD_STRING, AT (from), .required = true },
  { "measured", LS_FIELD_STRING, AT (measured), .required = true },
  { "holdout", LS_FIELD_BOOL, AT (holdout) },
  { "min_m", LS_FIELD_UINT64, AT (min_m), .max = MAX_SIZE },
  { "min_seq", LS_FIELD_UINT64, AT (min_seq), .max = MAX_SIZE },
  { "min_flops", LS_FIELD_DOUBLE, AT (min_flops), .max = 1e24 },
  { "min_bytes", LS_FIELD_BYTES_DOUBLE, AT (min_bytes), .max = 1e15 },
  { NULL },
};

void
ls_kernel_spec_init (LsKernelSpec *spec)
{
  *spec = (LsKernelSpec) {
    .op = -1, .batch = 1, .layout = LS_LAYOUT_TN, .causal = true, .dtype = LS_DTYPE_BF16
  };
}

void
ls_kernel_spec_clear (LsKernelSpec *spec)
{
  ls_fields_clear (fields, spec);
}

bool
ls_kernel_spec_set (LsKernelSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  return ls_field_set_text (fields, spec, key, value, diags);
}

static gboolean
refuse (GError **error, const char *why)
{
  g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, why);
  return FALSE;
}

gboolean
ls_kernel_spec_check (const LsKernelSpec *s, GError **error)
{
  guint n_asked = (s->gemm[0] > 0) + (s->attention[0] > 0) + (s->op >= 0) + (s->from != NULL);
  if (!s->gpu)
    return refuse (error, "expected --gpu");
  if (n_asked != 1)
    return refuse (error, "expected one of --gemm, --attention, --op and --from");
  if (s->access != LS_ACCESS_NONE && (s->op < 0 || s->shape[0] == 0))
    return refuse (error,
                   "--access goes with --op and --shape: its time depends on how many elements there are");
  if (s->op >= 0 && s->access == LS_ACCESS_NONE && (s->shape[0] > 0) == (s->bytes > 0))
    return refuse (error,
                   s->bytes > 0 ? "expected --shape or --bytes with --op; got both"
                                : "expected --shape or --bytes with --op");
  if (s->op < 0 && (s->shape[0] > 0 || s->bytes > 0))
    return refuse (error, "--shape and --bytes go with --op");
  if (s->gemm[0] == 0 && (s->batch > 1 || s->layout != LS_LAYOUT_TN))
    return refuse (error, "--batch and --layout go with --gemm");
  if (s->attention[0] == 0 && (s->backward || !s->causal))
    return refuse (error, "--causal and --backward go with --attention");
  bool selects = s->holdout || s->min_m > 0 || s->min_seq > 0 || s->min_flops > 0 || s->min_bytes > 0;
  if (!s->from && selects)
    return refuse (error, "--holdout and --min-... select rows of --from");
  return TRUE;
}
