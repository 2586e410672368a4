#include "data/measured/read_kernels.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "data/jobs/job_files.h"
#include "data/text/read_file.h"

/* --- tables of others ------------------------------------------------------------------------------- */

#define ELT        2   /* bytes of fp16 and bf16                                   */
#define MIN_TOKENS 256 /* of vidur's layers: fewer are decoding, not training      */
#define SIZE_MAX_D 1e9 /* no dimension is larger: their products stay exact enough */

/* What the cells of a row say, whatever the table. */
typedef struct {
  char *gpu, *op;
  int dtype, kv_dtype; /* kv_dtype: of the cache; 0: not said, else 1 + LsDtype */
  uint64_t m, n, k;
  uint64_t batch, seq, heads, kv_heads, head_dim;
  uint64_t tokens, hidden;
  double bytes;
  double time; /* in the unit of its column */
  uint64_t ffn, tp;
  bool is_gated;
  double qkv_ms, projection_ms, up_ms, down_ms, norm_ms, act_ms, add_ms;
} Cells;

/* Formats in tables of others, of whose products no time is simulated by itself: scales of blocks of 128
 * (aiconfigurator, AITER), and whole numbers. */
static const char *const foreign_formats[] = { "fp8_block", "fp4_block", "int8", NULL };
#define FOREIGN (-1)
#define UNSAID  (-2)

static bool
parse_dtype (const char *text, void *target)
{
  LsDtype dtype;
  if (g_strv_contains (foreign_formats, text)) {
    ((Cells *) target)->dtype = FOREIGN;
    return true;
  }
  if (!ls_dtype_parse (text, &dtype) || dtype == LS_DTYPE_BYTE)
    return false;
  ((Cells *) target)->dtype = (int) dtype;
  return true;
}

static bool
parse_kv_dtype (const char *text, void *target)
{
  LsDtype dtype;
  if (!ls_dtype_parse (text, &dtype))
    return false;
  ((Cells *) target)->kv_dtype = 1 + (int) dtype;
  return true;
}

static bool
parse_python_bool (const char *text, void *target)
{
  bool is_true = strcmp (text, "True") == 0;
  if (!is_true && strcmp (text, "False") != 0)
    return false;
  ((Cells *) target)->is_gated = is_true;
  return true;
}

#define SIZE(key_, member_)                                                                                  \
  key_, LS_FIELD_UINT64, offsetof (Cells, member_), .required = true, .min = 1, .max = SIZE_MAX_D
#define TIMED(key_, member_)                                                                                 \
  key_, LS_FIELD_DOUBLE, offsetof (Cells, member_), .required = true, .min = 1e-6, .max = 1e12
#define DTYPE(key_)                                                                                          \
  key_, LS_FIELD_CUSTOM, 0, .parse = parse_dtype, .expected = "a number format such as bf16 or fp8"
#define GPU_COLUMN "gpu", LS_FIELD_STRING, offsetof (Cells, gpu)

static const LsField gemm_fields[] = { { SIZE ("m", m) },   { SIZE ("n", n) }, { SIZE ("k", k) },
                                       { DTYPE ("dtype") }, { GPU_COLUMN },    { NULL } };
static const LsField big_gemm_fields[] = { { SIZE ("M", m) },   { SIZE ("N", n) }, { SIZE ("K", k) },
                                           { DTYPE ("dtype") }, { GPU_COLUMN },    { NULL } };
static const LsField attention_fields[] = {
  { SIZE ("batch", batch) },
  { SIZE ("seq", seq) },
  { SIZE ("heads", heads) },
  { SIZE ("kv_heads", kv_heads) },
  { SIZE ("head_dim", head_dim) },
  { DTYPE ("attn_dtype") },
  { "kv_dtype", LS_FIELD_CUSTOM, 0, .parse = parse_kv_dtype,
    .expected = "a number format such as bf16 or fp8" },
  { GPU_COLUMN },
  { NULL },
};
static const LsField stream_fields[] = {
  { "op", LS_FIELD_STRING, offsetof (Cells, op), .required = true },
  { SIZE ("tokens", tokens) },
  { SIZE ("hidden", hidden) },
  { "bytes_min", LS_FIELD_DOUBLE, offsetof (Cells, bytes), .required = true, .above = true, .max = 1e15 },
  { GPU_COLUMN },
  { NULL },
};
static const LsField layer_fields[] = {
  { SIZE ("n_head", heads) },
  { SIZE ("n_kv_head", kv_heads) },
  { SIZE ("n_embd", hidden) },
  { SIZE ("n_expanded_embd", ffn) },
  { SIZE ("num_tokens", tokens) },
  { SIZE ("num_tensor_parallel_workers", tp) },
  { "use_gated_mlp", LS_FIELD_CUSTOM, 0, .required = true, .parse = parse_python_bool,
    .expected = "True or False" },
  { TIMED ("attn_pre_proj_median_ms", qkv_ms) },
  { TIMED ("attn_post_proj_median_ms", projection_ms) },
  { TIMED ("mlp_up_proj_median_ms", up_ms) },
  { TIMED ("mlp_down_proj_median_ms", down_ms) },
  { TIMED ("input_layernorm_median_ms", norm_ms) },
  { TIMED ("mlp_act_median_ms", act_ms) },
  { TIMED ("add_median_ms", add_ms) },
  { GPU_COLUMN },
  { NULL },
};

/* At most one of these columns has the measured time. */
static const struct {
  LsField field;
  double unit_s;
} time_columns[] = {
  { { TIMED ("latency_ms", time) }, 1e-3 },
  { { TIMED ("latency_us", time) }, 1e-6 },
  { { TIMED ("us_median", time) }, 1e-6 },
  { { TIMED ("time_us", time) }, 1e-6 },
};

guint
ls_kernel_family (const char *key)
{
  g_autofree char *md5 = g_compute_checksum_for_string (G_CHECKSUM_MD5, key, -1);
  guint rest = 0;
  for (const char *p = md5; *p; p++)
    rest = (16 * rest + (guint) g_ascii_xdigit_value (*p)) % 10;
  return rest;
}

void
ls_hold_kernels_out (GArray *kernels, bool holds_half)
{
  for (guint i = 0; i < kernels->len; i++) {
    LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    t->held_out = t->family % (holds_half ? 2 : 5) == 0;
  }
}

/* By the sizes that are the key. */
static guint
family_of (const uint64_t *sizes, guint n)
{
  g_autoptr (GString) key = g_string_new (NULL);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (key, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "", sizes[i]);
  return ls_kernel_family (key->str);
}

static LsTimedKernel
timed_gemm (const char *name, LsDtype dtype, uint64_t m, uint64_t n, uint64_t k, double seconds)
{
  return (LsTimedKernel) {
    .kernel = ls_kernel_gemm (name, dtype, m, n, k, 1, ELT, false),
    .measured_s = seconds,
    /* The linear of TensorRT-LLM takes bf16 and casts it: reads 2, writes 1, or 4.5 bits. */
    .side_bytes = ls_dtype_is_scaled (dtype) ? (ELT + ls_dtype_size (dtype)) * (double) m * (double) k : 0,
    .has_host = ls_dtype_is_scaled (dtype),
    .family = family_of ((const uint64_t[]) { n, k }, 2),
  };
}

static void
append_gemm (const Cells *c, double seconds, GArray *rows)
{
  LsTimedKernel row = timed_gemm ("gemm", (LsDtype) c->dtype, c->m, c->n, c->k, seconds);
  g_array_append_val (rows, row);
}

static void
append_attention (const Cells *c, double seconds, GArray *rows)
{
  double qkv = (double) (c->batch * c->seq) * (double) (c->heads + 2 * c->kv_heads) * (double) c->head_dim;
  LsDtype dtype = (LsDtype) c->dtype;
  LsTimedKernel row = {
    .kernel = ls_kernel_attention ("attention", dtype, c->batch, c->seq, c->heads, c->kv_heads, c->head_dim,
                                   true, false),
    .measured_s = seconds,
    /* Before it: Q, K and V read, rotated, written, the latter two into the cache. */
    .side_bytes = (ELT + ls_dtype_size (dtype)) * qkv,
    .has_host = true,
    .family = family_of ((const uint64_t[]) { c->heads, c->kv_heads, c->head_dim }, 3),
  };
  g_array_append_val (rows, row);
}

static LsTimedKernel
timed_stream (const char *name, LsKernelKind kind, LsTimedWhat what, uint64_t tokens, uint64_t columns,
              double bytes, double seconds)
{
  return (LsTimedKernel) {
    .kernel = ls_kernel_stream (name, kind, LS_DTYPE_FP16, tokens, columns, bytes, 0),
    .what = what,
    .measured_s = seconds,
    .family = family_of ((const uint64_t[]) { tokens, columns }, 2),
  };
}

static const struct {
  const char *op;
  LsKernelKind kind;
  LsTimedWhat what;
} stream_ops[] = { { "add", LS_KERNEL_ELEMENTWISE, LS_TIMED_USUAL },
                   { "rmsnorm", LS_KERNEL_NORM, LS_TIMED_VLLM_RMSNORM },
                   { "silu_mul", LS_KERNEL_ELEMENTWISE, LS_TIMED_VLLM_SILU_MUL } };

/* Of stream_ops: as many as there are if it is none. */
static guint
find_stream (const char *op)
{
  guint i = 0;
  while (i < G_N_ELEMENTS (stream_ops) && strcmp (op, stream_ops[i].op) != 0)
    i++;
  return i;
}

static void
append_stream (const Cells *c, double seconds, GArray *rows)
{
  guint i = find_stream (c->op);
  LsTimedKernel row = timed_stream (stream_ops[i].op, stream_ops[i].kind, stream_ops[i].what, c->tokens,
                                    c->hidden, c->bytes, seconds);
  g_array_append_val (rows, row);
}

/* The operators of a layer that vidur timed: QKV, projection, up (with gate), down;
 * RMSNorm, activation, residual. */
static void
append_layer (const Cells *c, double seconds G_GNUC_UNUSED, GArray *rows)
{
  bool is_even = c->heads % c->tp == 0 && c->ffn % c->tp == 0 && c->hidden % c->heads == 0;
  if (c->tokens < MIN_TOKENS || !is_even)
    return;
  uint64_t h = c->hidden, ffn = c->ffn / c->tp, width = h / c->heads;
  uint64_t qkv = (c->heads / c->tp + 2 * MAX (1, c->kv_heads / c->tp)) * width;
  double tokens = (double) c->tokens, token_bytes = ELT * tokens * (double) h;
  const LsTimedKernel layer[] = {
    timed_gemm ("qkv", LS_DTYPE_FP16, c->tokens, qkv, h, c->qkv_ms * 1e-3),
    timed_gemm ("projection", LS_DTYPE_FP16, c->tokens, h, h / c->tp, c->projection_ms * 1e-3),
    timed_gemm ("up", LS_DTYPE_FP16, c->tokens, (c->is_gated ? 2 : 1) * ffn, h, c->up_ms * 1e-3),
    timed_gemm ("down", LS_DTYPE_FP16, c->tokens, h, ffn, c->down_ms * 1e-3),
    timed_stream ("rmsnorm", LS_KERNEL_NORM, LS_TIMED_VLLM_RMSNORM, c->tokens, h, 2 * token_bytes,
                  c->norm_ms * 1e-3),
    timed_stream ("silu_mul", LS_KERNEL_ELEMENTWISE, LS_TIMED_VLLM_SILU_MUL, c->tokens, h,
                  3.0 * ELT * tokens * (double) ffn, c->act_ms * 1e-3),
    timed_stream ("add", LS_KERNEL_ELEMENTWISE, LS_TIMED_USUAL, c->tokens, h, 3 * token_bytes,
                  c->add_ms * 1e-3),
  };
  g_array_append_vals (rows, layer, G_N_ELEMENTS (layer));
}

typedef struct {
  const LsField *fields;
  LsDtype dtype; /* without a column */
  void (*append) (const Cells *cells, double seconds, GArray *rows);
} Table;

static const Table tables[] = {
  { gemm_fields, LS_DTYPE_FP16, append_gemm },           { big_gemm_fields, LS_DTYPE_FP16, append_gemm },
  { attention_fields, LS_DTYPE_BF16, append_attention }, { stream_fields, LS_DTYPE_FP16, append_stream },
  { layer_fields, LS_DTYPE_FP16, append_layer },
};

static const Table *
find_table (const LsCsv *csv, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++) {
    const LsField *f = tables[i].fields;
    while (f->key && (!f->required || ls_csv_column (csv, f->key) >= 0))
      f++;
    if (!f->key)
      return &tables[i];
  }
  ls_csv_header_error (
      csv, diags,
      "expected columns that say which kernels: m, n, k (GEMM); batch, seq, heads, kv_heads, "
      "head_dim (attention); op, tokens, hidden, bytes_min (streaming); or those of vidur's mlp.csv");
  return NULL;
}

static void
read_row (const LsCsv *csv, guint row, const Table *table, const GArray *columns, double unit_s,
          const char *gpu, GArray *rows, guint *n_foreign, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  Cells cells = { .dtype = UNSAID };
  ls_csv_fields_read (csv, row, columns, &cells, diags);
  const bool lacks_dtype = cells.dtype == UNSAID;
  cells.dtype = lacks_dtype ? (int) table->dtype : cells.dtype;
  if (table->fields == stream_fields && cells.op && find_stream (cells.op) == G_N_ELEMENTS (stream_ops))
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "op"), diags,
                  "expected add, rmsnorm or silu_mul; got \"%.40s\"", cells.op);
  bool is_ours = !cells.gpu || strcmp (cells.gpu, gpu) == 0;
  guint n_rows = rows->len;
  bool is_foreign = cells.dtype == FOREIGN || (cells.kv_dtype && cells.kv_dtype != 1 + cells.dtype);
  *n_foreign += is_ours && is_foreign;
  if (ls_diag_list_n (diags) == n_before && is_ours && !is_foreign)
    table->append (&cells, cells.time * unit_s, rows);
  for (LsTimedKernel *t; n_rows < rows->len; t->row = row, t->lacks_dtype = lacks_dtype)
    t = &g_array_index (rows, LsTimedKernel, n_rows++);
  g_free (cells.gpu);
  g_free (cells.op);
}

GArray *
ls_read_kernels (const char *path, const char *text, const char *gpu, guint *n_foreign, char **ret_unread,
                 LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (path, text, -1, diags);
  if (!csv)
    return NULL;
  guint n_passed = 0;
  guint n_before = ls_diag_list_n (diags);
  const Table *table = find_table (csv, diags);
  if (!table)
    return NULL;
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  for (const LsField *f = table->fields; f->key; f++)
    ls_csv_fields_find (csv, f, LS_CSV_MAY_LACK, 0, columns, diags);
  double unit_s = NAN; /* of the column with the time */
  for (guint i = 0; isnan (unit_s) && i < G_N_ELEMENTS (time_columns); i++)
    if (ls_csv_column (csv, time_columns[i].field.key) >= 0) {
      ls_csv_fields_find (csv, &time_columns[i].field, LS_CSV_MAY_LACK, 0, columns, diags);
      unit_s = time_columns[i].unit_s;
    }

  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  for (guint row = 0; row < ls_csv_n_rows (csv); row++)
    read_row (csv, row, table, columns, unit_s, gpu, rows, &n_passed, diags);
  if (ls_diag_list_n (diags) == n_before && rows->len == 0)
    ls_csv_header_error (csv, diags, "expected a row for each kernel of %s below the header; got none", gpu);
  ls_hold_kernels_out (rows, false);
  if (n_foreign)
    *n_foreign = n_passed;
  if (ret_unread)
    *ret_unread = ls_csv_unread (csv, columns);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&rows) : NULL;
}

/* --- what tools/kernelbench writes ------------------------------------------------------------------ */

#define MAX_TIME_US 1e12
#define FLOPS_SLACK 0.01 /* of a GEMM: the file counts 2 m n k, as we do */

/* What kernelbench says of a kernel, as text where only some groups spell it alike. */
typedef struct {
  char *group, *name, *shape, *dtype, *note, *disturbed, *implementation;
  double bytes, flops, time_us;
} LsProfileRow;

typedef struct {
  char *what, *why;
} Failed;

#define ROW(key_, kind_, member_)     key_, kind_, offsetof (LsProfileRow, member_)
#define OF_FILE(key_, kind_, member_) key_, kind_, offsetof (LsProfile, member_)

static const LsField row_fields[] = {
  { ROW ("group", LS_FIELD_STRING, group), .required = true },
  { ROW ("name", LS_FIELD_STRING, name), .required = true },
  { ROW ("shape", LS_FIELD_STRING, shape) },
  { ROW ("dtype", LS_FIELD_STRING, dtype) },
  { ROW ("bytes", LS_FIELD_DOUBLE, bytes), .required = true, .max = 1e18 },
  { ROW ("flops", LS_FIELD_DOUBLE, flops), .required = true, .max = 1e24 },
  { ROW ("time_us", LS_FIELD_DOUBLE, time_us), .required = true, .max = MAX_TIME_US },
  { "spread_pct", LS_FIELD_IGNORED },
  { "rate", LS_FIELD_IGNORED },
  { ROW ("note", LS_FIELD_STRING, note) },
  { ROW ("disturbed", LS_FIELD_STRING, disturbed) },
  { ROW ("implementation", LS_FIELD_STRING, implementation) },
  { "sm_mhz", LS_FIELD_IGNORED },
  { "sm_mhz_min", LS_FIELD_IGNORED },
  { "memory_mhz", LS_FIELD_IGNORED },
  { "power_w", LS_FIELD_IGNORED },
  { "temperature_c", LS_FIELD_IGNORED },
  { "throttle", LS_FIELD_IGNORED },
  { "others", LS_FIELD_IGNORED },
  { NULL },
};

static const LsField failed_fields[] = {
  { "case", LS_FIELD_STRING, offsetof (Failed, what), .required = true },
  { "why", LS_FIELD_STRING, offsetof (Failed, why), .required = true },
  { NULL },
};

const LsField ls_profile_file_fields[] = {
  { OF_FILE ("schema", LS_FIELD_STRING, schema), .required = true },
  { OF_FILE ("gpu", LS_FIELD_STRING, gpu), .required = true, .meaning = "what the driver calls it" },
  { OF_FILE ("n_sms", LS_FIELD_UINT, n_sm), .required = true, .min = 1, .max = 65536,
    .meaning = "its multiprocessors" },
  { OF_FILE ("driver", LS_FIELD_STRING, driver) },
  { OF_FILE ("cuda", LS_FIELD_STRING, cuda) },
  { OF_FILE ("date", LS_FIELD_STRING, date), .required = true, .meaning = "of the measurement" },
  { "l2_bytes", LS_FIELD_IGNORED },
  { "memory_bytes", LS_FIELD_IGNORED },
  { "cublaslt", LS_FIELD_IGNORED },
  { "method", LS_FIELD_IGNORED },
  { "n_skipped", LS_FIELD_IGNORED },
  { "states", LS_FIELD_IGNORED },
  { "uuid", LS_FIELD_IGNORED },
  { "mig", LS_FIELD_IGNORED },
  { "host", LS_FIELD_IGNORED },
  { "checked", LS_FIELD_IGNORED },
  { OF_FILE ("failed", LS_FIELD_ARRAY, failed), .fields = failed_fields, .element_size = sizeof (Failed),
    .meaning = "kernels that could not be measured" },
  { OF_FILE ("rows", LS_FIELD_ARRAY, rows), .required = true, .fields = row_fields,
    .element_size = sizeof (LsProfileRow), .meaning = "the kernels" },
  { NULL },
};

void
ls_profile_free (LsProfile *p)
{
  if (!p)
    return;
  g_free (p->path);
  ls_fields_clear (ls_profile_file_fields, p);
  g_free (p->sha256);
  g_array_unref (p->kernels);
  g_array_unref (p->sustained);
  g_array_unref (p->in_layer);
  g_array_unref (p->facts);
  ls_json_doc_free (p->doc);
  ls_csv_free (p->csv);
  g_free (p);
}

/* ---- where ---- */

void
ls_profile_error (const LsProfile *p, guint row, const char *key, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  if (p->csv) {
    const char *const keys[] = { key, "time_us", "latency_ms", "latency_us", "us_median", "end_us" };
    int column = -1;
    for (guint i = 0; column < 0 && i < G_N_ELEMENTS (keys); i++)
      column = ls_csv_column (p->csv, keys[i]);
    ls_csv_error (p->csv, row, (guint) MAX (column, 0), diags, "%s", message);
    return;
  }
  const cJSON *node = cJSON_GetArrayItem (ls_json_doc_at (p->doc, "rows"), (int) row),
              *member = ls_json_at (node, key);
  ls_json_doc_wrong (p->doc, member ? member : node, diags, "%s", message);
}

/* ---- the kernel of a row ---- */

/* The kernels of kernelbench by their kinds in the simulator (model/operators_*.c). */
static const struct {
  LsKernelKind kind;
  const char *names[24];
} known[] = {
  { LS_KERNEL_GEMM,
    { "forward", "dgrad", "wgrad", "wgrad16", "scores-bmm", "dk-bmm", "expert-fc1", "expert-fc1-wgrad",
      "expert-fc2", "expert-fc2-wgrad" } },
  { LS_KERNEL_ATTENTION_FWD, { "flash-attention-fwd" } },
  { LS_KERNEL_ATTENTION_BWD, { "flash-attention-bwd" } },
  { LS_KERNEL_ELEMENTWISE,
    { "copy", "memcpy", "add", "residual-grad-add", "bias-add", "bias-gelu", "gelu-bwd", "bias-dropout-add",
      "dropout", "dropout-bwd", "swiglu", "swiglu-bwd", "rope-fwd", "rope-bwd", "moe-permute",
      "moe-unpermute" } },
  { LS_KERNEL_MEMSET, { "memset" } },
  { LS_KERNEL_REDUCTION, { "bias-grad", "grad-norm" } },
  { LS_KERNEL_SOFTMAX, { "scale-mask-softmax", "scale-mask-softmax-bwd" } },
  { LS_KERNEL_NORM,
    { "layernorm-fwd", "layernorm-dgrad", "layernorm-gamma-beta-grad", "rmsnorm-fwd", "rmsnorm-bwd" } },
  { LS_KERNEL_EMBEDDING, { "embedding-lookup", "embedding-grad" } },
  { LS_KERNEL_CROSS_ENTROPY, { "cross-entropy", "cross-entropy-bwd" } },
  { LS_KERNEL_OPTIMIZER, { "adam", "weight-copy", "main-grad-copy", "grad-unscale", "grad-clip" } },
};

/* Kernels of its layer, which go by what they are used for. */
static const struct {
  const char *stream, *uses[4];
} used[] = {
  { "dropout", { "attention-dropout" } },
  { "dropout-bwd", { "attention-dropout-bwd", "bias-dropout-add-bwd" } },
  { "bias-grad", { "row-bias-grad", "fc1-bias-grad", "qkv-bias-grad" } },
  { "bias-add", { "qkv-bias" } },
  { "copy", { "context-transpose", "qkv-grad-concat" } },
};

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
      && g_ascii_string_to_unsigned (batch, 10, 1, (guint64) SIZE_MAX_D, ret_batch, NULL);
  for (guint i = 0; ok && i < n; i++)
    ok = g_ascii_string_to_unsigned (items[i], 10, 1, (guint64) SIZE_MAX_D, &ret_sizes[i], NULL);
  return ok;
}

static bool
check_row (const LsProfile *p, guint row, const LsProfileRow *r, const char *shape, bool has_shape,
           LsDtype *ret_dtype, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (!has_shape)
    ls_profile_error (p, row, "shape", diags, "expected %s; got \"%.40s\"", shape, r->shape ? r->shape : "");
  if (!r->dtype || !ls_dtype_parse (r->dtype, ret_dtype) || *ret_dtype == LS_DTYPE_BYTE)
    ls_profile_error (p, row, "dtype", diags, "expected a number format such as bf16 or fp8; got \"%.40s\"",
                      r->dtype ? r->dtype : "");
  if (!(r->time_us > 0))
    ls_profile_error (p, row, "time_us", diags, "expected a time above 0; got %g", r->time_us);
  if (!(r->bytes > 0))
    ls_profile_error (p, row, "bytes", diags, "expected bytes above 0; got %g", r->bytes);
  return ls_diag_list_n (diags) == n_before;
}

/* What the sizes of a kernel are, by its kind. */
typedef struct {
  guint n;
  const char *expected;
  guint family, n_family; /* which of them are the key of its family */
} Shape;

static const Shape *
shape_of (LsKernelKind kind)
{
  static const Shape gemm = { 3, "rows x columns x inner such as 2048x12288x4096, after batch*", 1, 2 },
                     attention = { 5, "sequences x tokens x heads x key/value heads x width", 2, 3 },
                     stream = { 2, "rows x columns such as 8192x6144", 0, 2 };
  return ls_kernel_is_gemm (kind) ? &gemm : ls_kernel_is_attention (kind) ? &attention : &stream;
}

/* Whose flash attention ran; AUTO: none that a job runs, so kernelbench's own. */
static LsAttentionKernel
attention_of (const LsProfileRow *r)
{
  for (const LsEnumName *n = ls_attention_kernel_names; r->implementation && n->name; n++)
    if (strcmp (r->implementation, n->name) == 0)
      return (LsAttentionKernel) n->value;
  return LS_ATTENTION_KERNEL_AUTO;
}

static LsKernel
kernel_of (const char *name, LsKernelKind kind, LsDtype dtype, const uint64_t *s, uint64_t batch,
           const LsProfileRow *r)
{
  if (ls_kernel_is_gemm (kind))
    return ls_kernel_gemm (name, dtype, s[0], s[1], s[2], batch, 2, false);
  if (ls_kernel_is_attention (kind)) {
    bool is_backward = kind == LS_KERNEL_ATTENTION_BWD, is_causal = r->note && strstr (r->note, "causal=1");
    return ls_kernel_attention (is_backward ? "flash-attention-bwd" : "flash-attention-fwd", dtype, s[0],
                                s[1], s[2], s[3], s[4], is_causal, is_backward);
  }
  LsKernel kernel = ls_kernel_stream (name, kind, dtype, s[0], s[1], r->bytes, 0);
  kernel.batch = batch;
  return kernel;
}

/* Of a job's kernels, alone or in a step. */
static bool
is_of_job (const LsProfileRow *r)
{
  return strcmp (r->group, "shapes") == 0 || strcmp (r->group, "plan") == 0;
}

/* With what the row says of it: of its bytes also what the result is and whether it accumulates.
 * kernelbench's own attention is a kernel that no job runs: it is never taken for one of those. */
static void
append (LsProfile *p, guint row, const LsProfileRow *r, const char *name, LsKernelKind kind, GArray *kernels,
        LsDiagList *diags)
{
  const Shape *shape = shape_of (kind);
  uint64_t s[5] = { 0 }, batch = 1;
  LsDtype dtype = LS_DTYPE_BF16;
  bool is_attention = ls_kernel_is_attention (kind);
  if (is_attention && attention_of (r) == LS_ATTENTION_KERNEL_AUTO) {
    p->n_own_attention++;
    return;
  }
  bool has_shape = r->shape && parse_shape (r->shape, shape->n, s, &batch)
      && (batch == 1 || ls_kernel_is_gemm (kind) || (!is_attention && is_of_job (r)));
  if (!check_row (p, row, r, shape->expected, has_shape, &dtype, diags))
    return;
  LsTimedKernel t = { .kernel = kernel_of (name, kind, dtype, s, batch, r),
                      .family = family_of (s + shape->family, shape->n_family),
                      .attention = is_attention ? attention_of (r) : LS_ATTENTION_KERNEL_AUTO,
                      .measured_s = r->time_us * 1e-6,
                      .row = row };
  if (t.kernel.flops != 0 && fabs (r->flops / t.kernel.flops - 1) > FLOPS_SLACK)
    ls_profile_error (p, row, "flops", diags, "expected %.0f FLOPs of this shape; got %.0f", t.kernel.flops,
                      r->flops);
  t.kernel.bytes = r->bytes;
  g_array_append_val (kernels, t);
}

static bool
is_stream (LsKernelKind kind)
{
  return !ls_kernel_is_gemm (kind) && !ls_kernel_is_attention (kind);
}

/* Groups of kernels that have names of kernelbench's, and where they are kept; those of a layer are no
 * kernels alone, and count as passed over. */
static const struct {
  const char *name;
  bool (*is_of) (LsKernelKind kind);
  size_t list; /* a GArray * of LsProfile */
  bool is_passed;
} groups[] = {
  { "gemm-isolated", ls_kernel_is_gemm, offsetof (LsProfile, kernels) },
  { "gemm-batched", ls_kernel_is_gemm, offsetof (LsProfile, kernels) },
  { "gemm-sustained", ls_kernel_is_gemm, offsetof (LsProfile, sustained) },
  { "streams", is_stream, offsetof (LsProfile, kernels) },
  { "operators", is_stream, offsetof (LsProfile, kernels) },
  { "attention", ls_kernel_is_attention, offsetof (LsProfile, kernels) },
  { "context", is_stream, offsetof (LsProfile, in_layer), true },
};

/* Whether the row is one of the kernels of group i, which then are those of the profile. */
static bool
take_known (LsProfile *p, guint i, guint row, const LsProfileRow *r, LsDiagList *diags)
{
  const char *name = r->name;
  for (guint u = 0; groups[i].is_passed && u < G_N_ELEMENTS (used); u++)
    if (g_strv_contains (used[u].uses, r->name))
      name = used[u].stream;
  if (groups[i].is_of == ls_kernel_is_gemm && r->note && strstr (r->note, interleaved))
    return false;
  for (guint k = 0; k < G_N_ELEMENTS (known); k++)
    if (groups[i].is_of (known[k].kind) && g_strv_contains (known[k].names, name)) {
      GArray *list = *(GArray **) (gpointer) ((char *) p + groups[i].list);
      append (p, row, r, g_intern_string (name), known[k].kind, list, diags);
      return !groups[i].is_passed;
    }
  return false;
}

/* Under the job's names. Those that only streamed as many bytes tell nothing of it. */
static bool
take_of_job (LsProfile *p, guint row, const LsProfileRow *r, LsDiagList *diags)
{
  static const char key[] = "kind=";
  const char *at = r->note ? strstr (r->note, key) : NULL, *word = at ? at + strlen (key) : "";
  int kind = LS_N_KERNEL_KINDS - 1; /* as the note says; -1: nothing that is known */
  while (kind >= 0
         && (strcspn (word, " ") != strlen (ls_kernel_kind_names[kind].name)
             || !g_str_has_prefix (word, ls_kernel_kind_names[kind].name)))
    kind--;
  if (kind < 0 || g_strcmp0 (r->implementation, "stand-in") == 0
      || (r->note && strstr (r->note, "implementation=stand-in")))
    return false;
  bool is_hot = strcmp (r->group, "plan") == 0 && ls_kernel_is_gemm ((LsKernelKind) kind);
  append (p, row, r, g_intern_string (r->name), (LsKernelKind) kind, is_hot ? p->sustained : p->kernels,
          diags);
  return true;
}

static bool
is_disturbed (const LsProfileRow *r)
{
  return r->disturbed || (r->note && strstr (r->note, "disturbed="));
}

/* Appends the kernel of row number `row` to those of the profile, or counts it as passed over. Diagnostics: a
 * shape, number format, time or count is wrong. */
static void
take_row (LsProfile *p, guint row, const LsProfileRow *r, LsDiagList *diags)
{
  static const char *const of_facts[] = { "host", "copies", "slowdown", "context", NULL };
  bool is_taken = is_of_job (r) && !is_disturbed (r) && take_of_job (p, row, r, diags);
  if (is_disturbed (r)) {
    p->n_disturbed++;
    p->n_passed++;
    return;
  }
  if (strcmp (r->group, "host") == 0 && strcmp (r->name, "event-pair") == 0)
    p->events_s = r->time_us * 1e-6;
  for (guint i = 0; i < G_N_ELEMENTS (groups); i++)
    if (strcmp (r->group, groups[i].name) == 0)
      is_taken = take_known (p, i, row, r, diags);
  p->n_passed += !is_taken;
  const LsProfileFact fact = { g_intern_string (r->group), g_intern_string (r->name),
                               g_intern_string (r->note), r->time_us * 1e-6, r->bytes };
  if (g_strv_contains (of_facts, r->group) && r->time_us > 0)
    g_array_append_val (p->facts, fact);
}

/* ---- events around kernels ---- */

/* Products and attention are timed alone, between two events, and so are the kernels of a layer; streams back
 * to back. */
static void
take_events_off (const LsProfile *p, GArray *kernels, bool with_streams)
{
  for (guint i = 0; i < kernels->len; i++) {
    LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    if ((with_streams || t->kernel.kind <= LS_KERNEL_ATTENTION_BWD) && p->events_s < t->measured_s)
      t->measured_s -= p->events_s;
  }
}

/* ---- kernels of a step that kernelbench ran from a trace (`--plan`), as rows of a profile ---- */

/* A span lies between two events of its stream. What two events cost around nothing is in the file
 * (`event-pair` of the stream `step`), and goes. Spans of one kernel (name, shape, format, bytes) are one
 * row, their median. A kernel beside which another ran does not tell its own time: such spans are left out,
 * and so are kernels that only moved as many bytes as the job's, and kernelbench's own attention.
 *
 * Inside a step the chip is as hot as it gets: products are those of the group `gemm-sustained`. */

#define GROUP "plan"

typedef struct {
  LsProfileRow row;
  char *stream;
  double start_us, end_us;
  guint number; /* in the file */
} Span;

/* What has no kernel has no shape, number format, note and implementation. */
#define SPAN(key_, kind_, member_) key_, kind_, offsetof (Span, member_)
static const LsField span_fields[] = {
  { SPAN ("stream", LS_FIELD_STRING, stream), .required = true },
  { SPAN ("name", LS_FIELD_STRING, row.name), .required = true },
  { SPAN ("start_us", LS_FIELD_DOUBLE, start_us), .required = true, .max = 1e12 },
  { SPAN ("end_us", LS_FIELD_DOUBLE, end_us), .required = true, .max = 1e12 },
  { SPAN ("shape", LS_FIELD_STRING, row.shape) },
  { SPAN ("dtype", LS_FIELD_STRING, row.dtype) },
  { SPAN ("bytes", LS_FIELD_DOUBLE, row.bytes), .required = true, .max = 1e18 },
  { SPAN ("flops", LS_FIELD_DOUBLE, row.flops), .required = true, .max = 1e24 },
  { SPAN ("note", LS_FIELD_STRING, row.note) },
  { SPAN ("implementation", LS_FIELD_STRING, row.implementation) },
  { NULL },
};

static void
span_clear (gpointer span)
{
  ls_fields_clear (span_fields, span);
}

/* --- which tell a kernel's time -------------------------------------------------------------- */

static bool
is_of_step (const Span *s)
{
  return strcmp (s->stream, "step") == 0;
}

/* Which hold SMs: a copy, a wait or a host's call has no shape. */
static bool
is_kernel (const Span *s)
{
  return !is_of_step (s) && s->row.shape && s->end_us > s->start_us;
}

static bool
is_beside_another (const GArray *spans, const Span *s)
{
  for (guint i = 0; i < spans->len; i++) {
    const Span *other = &g_array_index (spans, Span, i);
    if (other != s && is_kernel (other) && strcmp (other->stream, s->stream) != 0
        && other->start_us < s->end_us && s->start_us < other->end_us)
      return true;
  }
  return false;
}

/* --- as rows ------------------------------------------------------------------------------------ */

typedef struct {
  const Span *first;
  GArray *us; /* double */
} Same;

static void
same_free (gpointer same)
{
  g_array_unref (((Same *) same)->us);
  g_free (same);
}

/* In the order in which they first ran. */
static GPtrArray *
group_spans (LsProfile *p, const GArray *spans)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (same_free);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < spans->len; i++) {
    const Span *s = &g_array_index (spans, Span, i);
    if (!is_kernel (s) || is_beside_another (spans, s)) {
      p->n_beside += is_kernel (s);
      p->n_passed += !is_of_step (s);
      continue;
    }
    g_autofree char *key = g_strdup_printf ("%s,%s,%s,%.17g,%s,%s", s->row.name, s->row.shape, s->row.dtype,
                                            s->row.bytes, s->row.note, s->row.implementation);
    Same *same = g_hash_table_lookup (seen, key);
    if (!same) {
      same = g_new (Same, 1);
      *same = (Same) { s, g_array_new (FALSE, FALSE, sizeof (double)) };
      g_hash_table_insert (seen, g_steal_pointer (&key), same);
      g_ptr_array_add (all, same);
    }
    double us = s->end_us - s->start_us;
    g_array_append_val (same->us, us);
  }
  return all;
}

static void
read_span_file (LsProfile *p, LsDiagList *diags)
{
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  g_autoptr (GArray) spans = ls_list_new (sizeof (Span), span_clear);
  guint n_before = ls_diag_list_n (diags);
  ls_csv_fields_find_all (p->csv, span_fields, 0, columns, diags);
  if (ls_csv_column (p->csv, "shape") < 0)
    ls_csv_header_error (
        p->csv, diags,
        "expected the columns of kernelbench --plan, which says the shape of what ran; got no shape");
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; ls_diag_list_n (diags) == n_before && i < p->n_rows; i++) {
    Span s = { .number = i };
    ls_csv_fields_read (p->csv, i, columns, &s, diags);
    g_array_append_val (spans, s);
    if (s.end_us < s.start_us)
      ls_profile_error (p, i, "end_us", diags, "expected an end after the start, %g; got %g", s.start_us,
                        s.end_us);
  }
  if (ls_diag_list_n (diags) > n_before)
    return;
  g_autoptr (GPtrArray) all = group_spans (p, spans);
  const Span *pair = (const Span *) (gconstpointer) spans->data, *end = pair + spans->len;
  while (pair < end && !(is_of_step (pair) && strcmp (pair->row.name, "event-pair") == 0))
    pair++;
  double events = pair < end ? pair->end_us - pair->start_us : 0;
  for (guint i = 0; i < all->len; i++) {
    const Same *same = g_ptr_array_index (all, i);
    LsProfileRow row = same->first->row; /* borrows */
    double us = ls_median (&g_array_index (same->us, double, 0), same->us->len);
    row.group = (char *) GROUP;
    row.time_us = us > events ? us - events : us;
    take_row (p, same->first->number, &row, diags);
  }
}

/* ---- files ---- */

static void
read_json (LsProfile *p, LsDiagList *diags)
{
  static const char *const schema = "lockstep.kernelbench/1";
  bool ok = ls_fields_read (ls_profile_file_fields, p->doc, ls_json_doc_root (p->doc), p, NULL, diags);
  if (ok && strcmp (p->schema, schema) != 0)
    ok = ls_json_doc_wrong (p->doc, ls_json_doc_at (p->doc, "schema"), diags,
                            "expected \"%s\"; got \"%.40s\"", schema, p->schema);
  p->n_rows = p->rows ? p->rows->len : 0;
  for (guint i = 0; ok && i < p->n_rows; i++)
    take_row (p, i, &g_array_index (p->rows, LsProfileRow, i), diags);
  p->n_failed = p->failed ? p->failed->len : 0;
}

static void
read_csv (LsProfile *p, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  ls_csv_fields_find_all (p->csv, row_fields, 0, columns, diags);
  bool ok = ls_diag_list_n (diags) == n_before;
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; ok && i < p->n_rows; i++) {
    LsProfileRow row = { 0 };
    n_before = ls_diag_list_n (diags);
    ls_csv_fields_read (p->csv, i, columns, &row, diags);
    if (ls_diag_list_n (diags) == n_before)
      take_row (p, i, &row, diags);
    ls_fields_clear (row_fields, &row);
  }
}

static void
read_table (LsProfile *p, const char *text, const char *gpu, LsDiagList *diags)
{
  g_autoptr (GArray) rows = ls_read_kernels (p->path, text, gpu, NULL, NULL, diags);
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsTimedKernel *t = &g_array_index (rows, LsTimedKernel, i);
    if (isnan (t->measured_s)) {
      ls_csv_header_error (p->csv, diags,
                           "expected a column with times: latency_ms, latency_us or us_median; got none");
      return;
    }
    g_array_append_val (p->kernels, *t);
  }
}

LsProfile *
ls_profile_parse (const char *path, const char *text, size_t n, const char *gpu, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autofree char *own = text ? NULL : ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  if (!text && !(text = own))
    return NULL;
  g_autoptr (LsProfile) p = g_new0 (LsProfile, 1);
  p->path = g_strdup (path);
  p->sha256 = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, n);
  p->kernels = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  p->sustained = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  p->in_layer = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  p->facts = g_array_new (FALSE, FALSE, sizeof (LsProfileFact));
  if (text[strspn (text, " \t\r\n")] == '{')
    p->doc = ls_json_doc_parse (text, n, path, diags);
  else
    p->csv = ls_csv_parse (path, text, (gssize) n, diags);
  if (!p->doc && !p->csv)
    return NULL;
  bool are_spans = p->csv && ls_csv_column (p->csv, "start_us") >= 0 && ls_csv_column (p->csv, "end_us") >= 0;
  p->is_ours = p->doc || are_spans
      || (ls_csv_column (p->csv, "group") >= 0 && ls_csv_column (p->csv, "time_us") >= 0);
  if (p->doc)
    read_json (p, diags);
  else if (are_spans)
    read_span_file (p, diags);
  else if (p->is_ours)
    read_csv (p, diags);
  else
    read_table (p, text, gpu ? gpu : "", diags);
  take_events_off (p, p->kernels, false);
  take_events_off (p, p->in_layer, true);
  ls_hold_kernels_out (p->kernels, false);
  ls_hold_kernels_out (p->sustained, false);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&p) : NULL;
}

/* --- by group and name ----------------------------------------------------------------------------- */

const LsProfileFact *
ls_profile_fact (const LsProfile *p, const char *group, const char *name)
{
  for (guint i = p->facts->len; i > 0; i--) {
    const LsProfileFact *f = &g_array_index (p->facts, LsProfileFact, i - 1);
    if (strcmp (f->group, group) == 0 && strcmp (f->name, name) == 0)
      return f;
  }
  return NULL;
}

double
ls_profile_noted (const LsProfileFact *f, const char *key)
{
  g_auto (GStrv) words = g_strsplit (f->note ? f->note : "", " ", -1);
  for (char **word = words; *word; word++)
    if (g_str_has_prefix (*word, key) && (*word)[strlen (key)] == '=')
      return g_ascii_strtod (*word + strlen (key) + 1, NULL);
  return NAN;
}

bool
ls_profile_has_word (const LsProfileFact *f, const char *word)
{
  g_auto (GStrv) words = g_strsplit (f->note ? f->note : "", " ", -1);
  return g_strv_contains ((const char *const *) words, word);
}

double
ls_profile_mean_noted (const LsProfile *p, const char *group, const char *name, const char *key)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < p->facts->len; i++) {
    const LsProfileFact *f = &g_array_index (p->facts, LsProfileFact, i);
    double value
        = strcmp (f->group, group) == 0 && strcmp (f->name, name) == 0 ? ls_profile_noted (f, key) : NAN;
    if (isnan (value))
      continue;
    sum += value;
    n++;
  }
  return n > 0 ? sum / n : NAN;
}
