#include "data/measured/read_kernels.h"

#include <math.h>
#include <string.h>

#include "data/text/csv.h"

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

static guint
family_of (uint64_t a, uint64_t b)
{
  char key[64];
  g_snprintf (key, sizeof key, "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, a, b);
  return ls_kernel_family (key);
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
    .family = family_of (n, k),
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
  char key[80];
  g_snprintf (key, sizeof key, "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, c->heads,
              c->kv_heads, c->head_dim);
  double qkv = (double) (c->batch * c->seq) * (double) (c->heads + 2 * c->kv_heads) * (double) c->head_dim;
  LsDtype dtype = (LsDtype) c->dtype;
  LsTimedKernel row = {
    .kernel = ls_kernel_attention ("attention", dtype, c->batch, c->seq, c->heads, c->kv_heads, c->head_dim,
                                   true, false),
    .measured_s = seconds,
    /* Before it: Q, K and V read, rotated, written, the latter two into the cache. */
    .side_bytes = (ELT + ls_dtype_size (dtype)) * qkv,
    .has_host = true,
    .family = ls_kernel_family (key),
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
    .family = family_of (tokens, columns),
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
  Cells cells = { .dtype = (int) table->dtype };
  ls_csv_fields_read (csv, row, columns, &cells, diags);
  if (table->fields == stream_fields && cells.op && find_stream (cells.op) == G_N_ELEMENTS (stream_ops))
    ls_csv_error (csv, row, (guint) ls_csv_column (csv, "op"), diags,
                  "expected add, rmsnorm or silu_mul; got \"%.40s\"", cells.op);
  bool is_ours = !cells.gpu || strcmp (cells.gpu, gpu) == 0;
  guint n_rows = rows->len;
  bool is_foreign = cells.dtype == FOREIGN || (cells.kv_dtype && cells.kv_dtype != 1 + cells.dtype);
  *n_foreign += is_ours && is_foreign;
  if (ls_diag_list_n (diags) == n_before && is_ours && !is_foreign)
    table->append (&cells, cells.time * unit_s, rows);
  while (n_rows < rows->len)
    g_array_index (rows, LsTimedKernel, n_rows++).row = row;
  g_free (cells.gpu);
  g_free (cells.op);
}

GArray *
ls_read_kernels (const char *path, const char *text, const char *gpu, guint *n_foreign, LsDiagList *diags)
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
    ls_csv_fields_find (csv, f, FALSE, 0, columns, diags);
  double unit_s = NAN; /* of the column with the time */
  for (guint i = 0; isnan (unit_s) && i < G_N_ELEMENTS (time_columns); i++)
    if (ls_csv_column (csv, time_columns[i].field.key) >= 0) {
      ls_csv_fields_find (csv, &time_columns[i].field, FALSE, 0, columns, diags);
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
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&rows) : NULL;
}
