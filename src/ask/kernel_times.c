#include "ask/kernel_times.h"

#include <lockstep/units.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/order.h"
#include "compute/measured.h"
#include "data/jobs/job_files.h"
#include "data/machines/machines.h"
#include "data/measured/read_kernels.h"
#include "job/assumptions.h"
#include "job/hardware.h"
#include "job/job_steps.h"

/* --- which kernels, from text -------------------------------------------------------------------- */

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
  const LsField *f = ls_field_find (fields, key);
  if (f)
    spec->given |= 1u << (f - fields);
  return ls_field_set_text (fields, spec, key, value, diags);
}

/* Whether key was set, to whatever value. */
static bool
is_given (const LsKernelSpec *s, const char *key)
{
  return s->given >> (ls_field_find (fields, key) - fields) & 1;
}

/* Exactly one kernel or table, and what goes with it: LS_ERROR_USAGE. */
static gboolean
kernel_spec_check (const LsKernelSpec *s, GError **error)
{
  guint n_asked = (s->gemm[0] > 0) + (s->attention[0] > 0) + (s->op >= 0) + (s->from != NULL);
  bool is_op = s->op >= 0, has_shape = s->shape[0] > 0, has_access = s->access != LS_ACCESS_NONE;
  const LsWrong rows[] = {
    { n_asked != 1, "expected one of --gemm, --attention, --op and --from" },
    { has_access && (!is_op || !has_shape),
      "--access goes with --op and --shape: its time depends on how many elements there are" },
    { is_op && !has_access && has_shape == (s->bytes > 0),
      s->bytes > 0 ? "expected --shape or --bytes with --op; got both"
                   : "expected --shape or --bytes with --op" },
    { !is_op && (has_shape || s->bytes > 0), "--shape and --bytes go with --op" },
    { s->gemm[0] == 0 && (is_given (s, "batch") || is_given (s, "layout")),
      "--batch and --layout go with --gemm" },
    { s->attention[0] == 0 && (is_given (s, "backward") || is_given (s, "causal")),
      "--causal and --backward go with --attention" },
  };
  return ls_check (rows, G_N_ELEMENTS (rows), error);
}

/* --- which kernels somebody asks about, and their times on a GPU --------------------------------- */

#define OPTIMIZER_BYTES 30 /* a parameter: fp32 gradient, master, two moments, bf16 copy */

/* A GPU with what was measured on it. */
typedef struct {
  const LsKernelSpec *spec;
  LsGpu gpu;
  LsCalibration calibration;
  GArray *measured; /* of LsTimedKernel, or NULL */
} Bench;

void
ls_kernel_rows_free (LsKernelRows *rows)
{
  if (!rows)
    return;
  g_free ((char *) rows->gpu);
  g_array_unref (rows->rows);
  if (rows->notes)
    g_ptr_array_unref (rows->notes);
  g_clear_pointer (&rows->assumptions, g_array_unref);
  g_free (rows);
}

/* ---- what a table has measured ---- */

/* The measured rows next below and above in m, of the same kernel otherwise. */
static void
find_neighbours (const GArray *table, const LsKernel *kernel, const LsTimedKernel **ret_below,
                 const LsTimedKernel **ret_above)
{
  *ret_below = *ret_above = NULL;
  for (guint i = 0; i < table->len; i++) {
    const LsTimedKernel *t = &g_array_index (table, LsTimedKernel, i);
    const LsKernel *a = &t->kernel, *b = kernel;
    if (isnan (t->measured_s) || a->kind != b->kind || a->dtype != b->dtype || a->n != b->n || a->k != b->k
        || a->batch != b->batch || (a->kind != LS_KERNEL_GEMM && a->bytes != b->bytes))
      continue;
    if (t->kernel.m <= kernel->m && (!*ret_below || t->kernel.m > (*ret_below)->kernel.m))
      *ret_below = t;
    if (t->kernel.m >= kernel->m && (!*ret_above || t->kernel.m < (*ret_above)->kernel.m))
      *ret_above = t;
  }
}

/* A row of the table, or a power law in m between two of a GEMM. */
static void
take_measured (const GArray *table, LsKernelRow *row)
{
  const LsTimedKernel *below, *above;
  const LsKernel *k = &row->kernel;
  find_neighbours (table, k, &below, &above);
  if (!below || !above || (below->kernel.m != above->kernel.m && k->kind != LS_KERNEL_GEMM))
    return;
  bool is_there = below->kernel.m == above->kernel.m;
  double share = is_there ? 0
                          : log ((double) k->m / (double) below->kernel.m)
          / log ((double) above->kernel.m / (double) below->kernel.m);
  row->source = is_there ? LS_COST_MEASURED : LS_COST_INTERPOLATED;
  row->time_s = below->measured_s * pow (above->measured_s / below->measured_s, share);
  row->extrapolated = false;
  row->is_of_table = true;
}

/* ---- the model ---- */

/* Of numbers in 16 bits. Y = X W with M rows of tokens: rows of Y lie along N; those of X, the second operand
 * of BLAS, along K, or along M if it is transposed; those of W along K if it is transposed, else along N. */
static bool
is_unaligned (const LsKernel *k, LsGemmLayout layout)
{
  bool first_is_t = layout == LS_LAYOUT_TN || layout == LS_LAYOUT_TT;
  bool second_is_t = layout == LS_LAYOUT_NT || layout == LS_LAYOUT_TT;
  bool is_off_k = k->k % 8 != 0 && (first_is_t || !second_is_t);
  bool is_off = k->n % 8 != 0 || is_off_k || (second_is_t && k->m % 8 != 0);
  return is_off && ls_kernel_is_gemm (k->kind) && ls_dtype_size (k->dtype) == 2;
}

static LsKernelRow
cost_row (const Bench *b, const LsTimedKernel *timed, bool is_in_table)
{
  const LsCalibration *cal = &b->calibration;
  const LsKindFit *vllm = timed->what == LS_TIMED_VLLM_RMSNORM ? &cal->kind[LS_ENTRY_VLLM_RMSNORM]
      : timed->what == LS_TIMED_VLLM_SILU_MUL                  ? &cal->kind[LS_ENTRY_VLLM_SILU_MUL]
                                                               : NULL;
  const LsKindFit *fit = vllm && vllm->is_fitted ? vllm : ls_calibration_fit (cal, &timed->kernel);
  bool by_access = timed->kernel.access != LS_ACCESS_NONE;
  double sustained = b->spec->sustained ? ls_calibration_sustained (&b->calibration, &timed->kernel) : 1;
  LsKernelRow row = {
    .kernel = timed->kernel,
    .cost = by_access ? ls_kernel_cost (&b->calibration, &b->gpu, &timed->kernel)
                      : ls_kernel_cost_by (fit, sustained, &b->gpu, &timed->kernel),
    .measured_s = timed->measured_s,
    .held_out = timed->held_out,
    .lacks_dtype = timed->lacks_dtype,
  };
  if (timed->what == LS_TIMED_USUAL && !by_access)
    ls_measured_refine (b->calibration.measured, timed->attention, fit, &b->gpu, &timed->kernel, &row.cost);
  row.kernel.unaligned = is_unaligned (&row.kernel, (LsGemmLayout) b->spec->layout);
  if (!by_access)
    ls_kernel_cost_unaligned (&b->calibration, &b->gpu, &row.kernel, &row.cost);
  if (b->spec->sustained)
    ls_kernel_cost_in_layer (&b->calibration, &timed->kernel, &row.cost);
  if (is_in_table)
    row.besides_s = ls_kernel_timed_besides_s (fit, &b->gpu, timed->side_bytes, timed->has_host);
  row.time_s = ls_time_to_s (row.cost.alone) + row.besides_s;
  row.source = row.cost.source;
  const LsKernel *k = &timed->kernel;
  bool is_measured = row.source == LS_COST_MEASURED || row.source == LS_COST_INTERPOLATED;
  bool is_of_16_bit = fit->is_fitted && fit == &cal->kind[k->kind]; /* it stands in for other formats */
  row.extrapolated = row.cost.extrapolated || b->spec->layout != LS_LAYOUT_TN
      || (!is_measured && is_of_16_bit && k->kind <= LS_KERNEL_ATTENTION_BWD && k->dtype != LS_DTYPE_BF16
          && k->dtype != LS_DTYPE_FP16);
  if (b->measured)
    take_measured (b->measured, &row);
  return row;
}

/* Whether what is asked otherwise takes another time. */
static bool
is_other (const Bench *b, const LsKernelSpec *spec, const LsTimedKernel *timed, bool is_in_table,
          double time_s)
{
  Bench of_other = *b;
  of_other.spec = spec;
  return cost_row (&of_other, timed, is_in_table).time_s != time_s;
}

/* The same, and whether a hot chip takes another time. */
static LsKernelRow
heeding_row (const Bench *b, const LsTimedKernel *timed, bool is_in_table)
{
  LsKernelRow row = cost_row (b, timed, is_in_table);
  LsKernelSpec other = *b->spec;
  other.sustained = !other.sustained;
  row.heeds_heat = is_other (b, &other, timed, is_in_table, row.time_s);
  return row;
}

/* What cannot be represented is no result. */
static gboolean
check_time (const LsKernelRow *row, GError **error)
{
  bool is_timed = row->source == LS_COST_MEASURED || row->source == LS_COST_INTERPOLATED;
  return is_timed || row->cost.alone < LS_TIME_NEVER
      || ls_fail (error, LS_ERROR_LIMIT, "%s: not over after %.0f days; more cannot be represented",
                  ls_kernel_kind_names[row->kernel.kind].name, floor (ls_time_to_s (LS_TIME_NEVER) / 86400));
}

/* ---- one kernel ---- */

/* Tensors of the shape that cross HBM: what is read and written once. */
static double
stream_bytes (const LsKernelSpec *s)
{
  double elements = (double) s->shape[0] * (double) s->shape[1];
  double elt = ls_dtype_size ((LsDtype) s->dtype);
  switch (s->op) {
  case LS_KERNEL_ELEMENTWISE: /* two in, one out */
    return 3 * elt * elements;
  case LS_KERNEL_SOFTMAX:
  case LS_KERNEL_NORM:
  case LS_KERNEL_EMBEDDING:
    return 2 * elt * elements;
  case LS_KERNEL_OPTIMIZER:
    return OPTIMIZER_BYTES * elements;
  default:
    return elt * elements;
  }
}

static LsKernel
kernel_of (const LsKernelSpec *s)
{
  LsDtype dtype = (LsDtype) s->dtype;
  if (s->gemm[0] > 0)
    return ls_kernel_gemm ("gemm", dtype, s->gemm[0], s->gemm[1], s->gemm[2], s->batch,
                           ls_dtype_bytes (ls_dtype_between (dtype)), false);
  const uint64_t *a = s->attention;
  if (a[0] > 0)
    return ls_kernel_attention ("attention", dtype, a[0], a[1], a[2], a[3], a[4], s->causal, s->backward);
  double bytes = s->bytes > 0 ? s->bytes : stream_bytes (s);
  LsKernel k = ls_kernel_stream (ls_kernel_kind_names[s->op].name, (LsKernelKind) s->op, dtype, s->shape[0],
                                 s->shape[1], bytes, 0);
  k.access = (LsAccess) s->access;
  return k;
}

static gboolean
append_one (const Bench *b, GArray *rows, GError **error)
{
  const LsTimedKernel asked = { .kernel = kernel_of (b->spec), .measured_s = NAN };
  bool is_matrix = asked.kernel.kind <= LS_KERNEL_ATTENTION_BWD;
  if (b->spec->attention[0] > 0 && b->spec->dtype == LS_DTYPE_NVFP4)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--dtype nvfp4: there are no attention kernels in it\n"
                    "note: Transformer Engine runs attention in bf16 or fp8 next to nvfp4 products");
  if (is_matrix && !ls_hardware_check_dtype (&b->gpu, asked.kernel.dtype, error))
    return FALSE;
  LsKernelRow row = heeding_row (b, &asked, false);
  LsKernelSpec other = *b->spec; /* what streams so many bytes takes as long in any format */
  other.dtype = other.dtype == LS_DTYPE_FP32 ? LS_DTYPE_BF16 : LS_DTYPE_FP32;
  const LsTimedKernel in_other = { .kernel = kernel_of (&other), .measured_s = NAN };
  row.heeds_dtype = is_matrix || is_other (b, &other, &in_other, false, row.time_s);
  g_array_append_val (rows, row);
  return check_time (&row, error);
}

/* ---- a table ---- */

static gboolean
append_table (const Bench *b, GArray *rows, GPtrArray *notes, LsDiagList *diags, GError **error)
{
  const LsKernelSpec *s = b->spec;
  guint n_foreign = 0;
  g_autofree char *unread = NULL;
  g_autoptr (GArray) table
      = ls_read_kernels (b->spec->from, NULL, b->calibration.name, &n_foreign, &unread, diags);
  if (unread)
    ls_note (notes, "columns of %s that nothing reads: %s", s->from, unread);
  if (n_foreign > 0)
    ls_note (notes,
             "%u rows are passed over: products in fp8_block, fp4_block or int8, or "
             "attention to keys in another format, which are not simulated",
             n_foreign);
  for (guint i = 0; table && i < table->len; i++) {
    const LsTimedKernel *t = &g_array_index (table, LsTimedKernel, i);
    const LsKernel *k = &t->kernel;
    if ((s->has_dtype && (int) k->dtype != s->dtype) || (s->holdout && !t->held_out)
        || (k->kind == LS_KERNEL_GEMM && k->m < s->min_m)
        || (k->kind == LS_KERNEL_ATTENTION_FWD && k->m < s->min_seq) || k->flops < s->min_flops
        || k->bytes < s->min_bytes)
      continue;
    LsKernelRow row = heeding_row (b, t, true);
    if (!check_time (&row, error))
      return FALSE;
    g_array_append_val (rows, row);
  }
  if (table && rows->len == 0)
    return ls_fail (error, LS_ERROR_USAGE, "no row of %s is selected", b->spec->from);
  return table != NULL;
}

static LsKernelErrors
errors_of (const GArray *rows, bool only_held_out)
{
  g_autoptr (GArray) errors = g_array_new (FALSE, FALSE, sizeof (double));
  double sum = 0;
  for (guint i = 0; i < rows->len; i++) {
    const LsKernelRow *row = &g_array_index (rows, LsKernelRow, i);
    double error = ls_kernel_row_error_pct (row);
    if (isnan (error) || (only_held_out && !row->held_out))
      continue;
    g_array_append_val (errors, error);
    sum += fabs (error);
  }
  if (errors->len == 0)
    return (LsKernelErrors) { .mape_pct = NAN, .median_pct = NAN };
  guint n = errors->len;
  return (LsKernelErrors) { .n = n,
                            .mape_pct = sum / n,
                            .median_pct = ls_median (&g_array_index (errors, double, 0), n) };
}

/* What kernels rest on besides what is asked, of a table besides its rows. */
static void
assume (const Bench *b, LsKernelRows *shown)
{
  const LsKernelSpec *s = b->spec;
  const LsKernelRow *first = (gpointer) shown->rows->data;
  const char *const of_table = "times are those of --measured";
  guint n_heed_heat = 0, n_of_table = 0;
  double besides_s = 0;
  const LsKernelRow *lacking = NULL; /* its format, in a table */
  bool is_attention = false;
  for (guint i = 0; i < shown->rows->len; i++) {
    n_heed_heat += first[i].heeds_heat;
    n_of_table += first[i].is_of_table;
    besides_s = fmax (besides_s, first[i].besides_s);
    lacking = first[i].lacks_dtype ? &first[i] : lacking;
    is_attention = is_attention || ls_kernel_is_attention (first[i].kernel.kind);
  }
  const bool is_gemm = s->gemm[0] > 0, has_dtype = first->heeds_dtype,
             is_all = n_of_table == shown->rows->len;
  const struct {
    bool is_so;
    const char *key, *words, *why, *instead, *idle; /* idle: why it has no effect where it is not so */
  } rows[] = {
    { has_dtype, "dtype", "%s", "by default", "--dtype DTYPE",
      s->from ? NULL : "so many bytes take as long in any format" },
    { is_gemm, "layout", "operands %s", "by default", "--layout LAYOUT" },
    { is_attention, "causal", "causal attention", s->from ? "as in all such tables" : "by default",
      s->from ? "--attention, --causal 0" : "--causal 0|1" },
    { n_heed_heat > 0, "sustained", "heat that other kernels of a step make", "by default", "--sustained",
      is_all ? of_table : "no such kernel takes longer on a hot chip" },
    { n_of_table > 0, "measured", "times measured in %s", NULL, "--measured FILE",
      "the table has no such kernel" },
    { b->calibration.name && !is_all, "gpu_calibration", "times of %s", "the accelerator's file",
      "--gpu-calibration NAME|FILE", of_table },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const LsField *f = ls_field_find (fields, rows[i].key);
    const bool is_typed = is_given (s, f->key);
    const char *instead = rows[i].instead,
               *own = strcmp (f->key, "gpu_calibration") == 0 ? b->calibration.name
        : strcmp (f->key, "dtype") == 0                       ? ls_dtype_name ((LsDtype) s->dtype)
                                                              : NULL;
    if (rows[i].is_so)
      ls_assumptions_add (&shown->assumptions, f->key, own ? g_strdup (own) : ls_field_text (f, s, NULL),
                          rows[i].words, is_typed ? NULL : rows[i].why, instead);
    else if (is_typed && rows[i].idle)
      ls_note (shown->notes, "%.*s has no effect here: %s", (int) strcspn (instead, " "), instead,
               rows[i].idle);
  }
  if (lacking)
    ls_assumptions_add (&shown->assumptions, "dtype", g_strdup (ls_dtype_name (lacking->kernel.dtype)),
                        "rows in %s", "where the table does not say it", "its column dtype or attn_dtype");
  if (besides_s > 0)
    ls_assumptions_add (&shown->assumptions, "besides", ls_format_time (ls_time_from_s (besides_s)),
                        "up to %s of each time for casts, rotations and the host", "as such tables are timed",
                        "--gemm or --attention, without it");
}

static LsKernelRows *
rows_new (const Bench *b, LsDiagList *diags, GError **error)
{
  g_autoptr (LsKernelRows) rows = g_new0 (LsKernelRows, 1);
  rows->gpu = g_strdup (b->gpu.name);
  rows->rows = g_array_new (FALSE, FALSE, sizeof (LsKernelRow));
  rows->notes = g_ptr_array_new_with_free_func (g_free);
  if (b->spec->from ? !append_table (b, rows->rows, rows->notes, diags, error)
                    : !append_one (b, rows->rows, error))
    return NULL;
  rows->all = errors_of (rows->rows, false);
  rows->held_out = errors_of (rows->rows, true);
  rows->has_measured = rows->all.n > 0;
  g_autoptr (GString) known = g_string_new (NULL); /* the user's own times, and errors, say it themselves */
  if (!rows->has_measured && !b->spec->gpu_calibration && !b->spec->measured)
    ls_append_known (known, "kernels", &b->gpu.kernels_known);
  ls_note_known (known, rows->notes);
  if (b->spec->attention[0] > 0)
    ls_assumptions_add (&rows->assumptions, "attention_kernel", g_strdup ("auto"), "attention kernel %s",
                        "as the accelerator's file times attention",
                        "lockstep run --set attention_kernel=KIND");
  assume (b, rows);
  return g_steal_pointer (&rows);
}

static bool
load (Bench *b, LsDiagList *diags)
{
  if (!ls_data_file_load (&ls_gpu_file, b->spec->gpu, &b->gpu, diags))
    return false;
  const char *calibration = b->spec->gpu_calibration ? b->spec->gpu_calibration : b->gpu.calibration;
  if (!calibration)
    ls_calibration_init_roofline (&b->calibration);
  else if (!ls_data_file_load (&ls_calibration_file, calibration, &b->calibration, diags))
    return false;
  if (!ls_access_load (b->gpu.access, &b->calibration, diags))
    return false;
  if (b->spec->measured)
    b->measured = ls_read_kernels (b->spec->measured, NULL, b->calibration.name, NULL, NULL, diags);
  return !b->spec->measured || b->measured;
}

LsKernelRows *
ls_kernel_rows_new (const LsKernelSpec *spec, GError **error)
{
  if (!kernel_spec_check (spec, error))
    return NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  Bench b = { .spec = spec };
  LsKernelRows *rows = load (&b, diags) ? rows_new (&b, diags, error) : NULL;
  if (!rows && ls_diag_list_n (diags) > 0)
    ls_diag_list_to_error (diags, error);
  ls_gpu_clear (&b.gpu);
  ls_calibration_clear (&b.calibration);
  if (b.measured)
    g_array_unref (b.measured);
  return rows;
}

double
ls_kernel_row_error_pct (const LsKernelRow *row)
{
  return 100 * (row->time_s / row->measured_s - 1);
}
