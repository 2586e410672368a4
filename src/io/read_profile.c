#include "io/read_profile.h"

#include <math.h>
#include <string.h>

#include "io/csv_fields.h"
#include "io/read_file.h"

#define MAX_SIZE    1e9  /* of a dimension                                             */
#define MAX_TIME_US 1e12
#define FLOPS_SLACK 0.01 /* of a GEMM: the file counts 2 m n k, as we do               */

/* What kernelbench says of a kernel, as text where only some groups spell it alike. */
typedef struct {
  char *group, *name, *shape, *dtype, *note, *disturbed;
  double bytes, flops, time_us;
} Row;

typedef struct {
  char *what, *why;
} Failed;

typedef struct {
  char *schema, *gpu, *driver, *cuda, *date;
  uint32_t n_sm;
  GArray *rows;   /* Row    */
  GArray *failed; /* Failed */
} File;

#define TEXT(type, key_, member_) { key_, LS_FIELD_STRING, offsetof (type, member_) }
#define NUMBER(key_, member_, max_) { key_, LS_FIELD_DOUBLE, offsetof (Row, member_), .required = true, .max = (max_) }
#define IGNORED(key_) { key_, LS_FIELD_IGNORED }

static const LsField row_fields[] = {
  { "group", LS_FIELD_STRING, offsetof (Row, group), .required = true },
  { "name", LS_FIELD_STRING, offsetof (Row, name), .required = true },
  TEXT (Row, "shape", shape),
  TEXT (Row, "dtype", dtype),
  NUMBER ("bytes", bytes, 1e18),
  NUMBER ("flops", flops, 1e24),
  NUMBER ("time_us", time_us, MAX_TIME_US),
  IGNORED ("spread_pct"),
  IGNORED ("rate"),
  TEXT (Row, "note", note),
  TEXT (Row, "disturbed", disturbed),
  IGNORED ("implementation"),
  IGNORED ("sm_mhz"),
  IGNORED ("sm_mhz_min"),
  IGNORED ("memory_mhz"),
  IGNORED ("power_w"),
  IGNORED ("temperature_c"),
  IGNORED ("throttle"),
  IGNORED ("others"),
  { NULL },
};

static const LsField failed_fields[] = {
  { "case", LS_FIELD_STRING, offsetof (Failed, what), .required = true },
  { "why", LS_FIELD_STRING, offsetof (Failed, why), .required = true },
  { NULL },
};

static const LsField file_fields[] = {
  { "schema", LS_FIELD_STRING, offsetof (File, schema), .required = true },
  { "gpu", LS_FIELD_STRING, offsetof (File, gpu), .required = true, .meaning = "what the driver calls it" },
  { "n_sms", LS_FIELD_UINT, offsetof (File, n_sm), .required = true, .min = 1, .max = 65536,
    .meaning = "its multiprocessors" },
  TEXT (File, "driver", driver),
  TEXT (File, "cuda", cuda),
  { "date", LS_FIELD_STRING, offsetof (File, date), .required = true, .meaning = "of the measurement" },
  IGNORED ("l2_bytes"),
  IGNORED ("memory_bytes"),
  IGNORED ("cublaslt"),
  IGNORED ("method"),
  IGNORED ("n_skipped"),
  IGNORED ("states"),
  IGNORED ("uuid"),
  IGNORED ("mig"),
  IGNORED ("host"),
  IGNORED ("checked"),
  { "failed", LS_FIELD_ARRAY, offsetof (File, failed), .fields = failed_fields, .element_size = sizeof (Failed),
    .meaning = "kernels that could not be measured" },
  { "rows", LS_FIELD_ARRAY, offsetof (File, rows), .required = true, .fields = row_fields,
    .element_size = sizeof (Row), .meaning = "the kernels" },
  { NULL },
};

void
ls_profile_free (LsProfile *p)
{
  if (!p)
    return;
  g_free (p->path);
  g_free (p->gpu);
  g_free (p->driver);
  g_free (p->cuda);
  g_free (p->date);
  g_free (p->sha256);
  g_clear_pointer (&p->kernels, g_array_unref);
  g_clear_pointer (&p->sustained, g_array_unref);
  ls_json_doc_free (p->doc);
  ls_csv_free (p->csv);
  g_free (p);
}

/* ---- where ---- */

static void G_GNUC_PRINTF (5, 0)
complain (const LsProfile *p, guint row, const char *key, LsDiagList *diags, const char *format, va_list args)
{
  g_autofree char *message = g_strdup_vprintf (format, args);
  if (p->csv) {
    static const char *const times[] = { "time_us", "latency_ms", "latency_us", "us_median" };
    int column = ls_csv_column (p->csv, key);
    for (guint i = 0; column < 0 && i < G_N_ELEMENTS (times); i++)
      column = ls_csv_column (p->csv, times[i]);
    ls_csv_error (p->csv, row, (guint) MAX (column, 0), diags, "%s", message);
    return;
  }
  const cJSON *rows = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (p->doc), "rows");
  const cJSON *node = cJSON_GetArrayItem (rows, (int) row), *member = cJSON_GetObjectItemCaseSensitive (node, key);
  ls_json_doc_diag (p->doc, member ? member : node, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
}

static void G_GNUC_PRINTF (5, 6)
error_at (const LsProfile *p, guint row, const char *key, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  complain (p, row, key, diags, format, args);
  va_end (args);
}

void
ls_profile_error (const LsProfile *p, guint row, LsDiagList *diags, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  complain (p, row, "time_us", diags, format, args);
  va_end (args);
}

/* ---- kernels ---- */

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

/* Its products. */
static const char *const products[] = { "forward",    "dgrad",      "wgrad",           "wgrad16",    "scores-bmm",
                                        "dk-bmm",     "expert-fc1", "expert-fc1-wgrad", "expert-fc2", "expert-fc2-wgrad" };

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
check_row (const LsProfile *p, guint row, const Row *r, const char *shape, bool has_shape, LsDtype *ret_dtype,
           LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (!has_shape)
    error_at (p, row, "shape", diags, "expected %s; got \"%.40s\"", shape, r->shape ? r->shape : "");
  if (!r->dtype || !ls_dtype_parse (r->dtype, ret_dtype) || *ret_dtype == LS_DTYPE_BYTE)
    error_at (p, row, "dtype", diags, "expected a number format such as bf16 or fp8; got \"%.40s\"", r->dtype ? r->dtype : "");
  if (!(r->time_us > 0))
    error_at (p, row, "time_us", diags, "expected a time above 0; got %g", r->time_us);
  if (!(r->bytes > 0))
    error_at (p, row, "bytes", diags, "expected bytes above 0; got %g", r->bytes);
  return ls_diag_list_n (diags) == n_before;
}

static guint G_GNUC_PRINTF (1, 2)
family_of (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *key = g_strdup_vprintf (format, args);
  va_end (args);
  return ls_kernel_family (key);
}

static void
append_gemm (LsProfile *p, guint row, const Row *r, const char *name, GArray *kernels, LsDiagList *diags)
{
  uint64_t s[3] = { 0 }, batch = 1;
  LsDtype dtype = LS_DTYPE_BF16;
  bool has_shape = r->shape && parse_shape (r->shape, 3, s, &batch);
  if (!check_row (p, row, r, "rows x columns x inner such as 2048x12288x4096, after batch*", has_shape, &dtype, diags))
    return;
  LsTimedKernel t = { .kernel = ls_kernel_gemm (name, dtype, s[0], s[1], s[2], batch, 2, false),
                      .measured_s = r->time_us * 1e-6,
                      .family = family_of ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, s[1], s[2]),
                      .row = row };
  if (fabs (r->flops / t.kernel.flops - 1) > FLOPS_SLACK)
    error_at (p, row, "flops", diags, "expected %.0f FLOPs of this shape; got %.0f", t.kernel.flops, r->flops);
  t.kernel.bytes = r->bytes; /* with what the result is and whether it accumulates */
  g_array_append_val (kernels, t);
}

static void
append_stream (LsProfile *p, guint row, const Row *r, guint which, LsDiagList *diags)
{
  uint64_t s[2] = { 0 }, batch = 1;
  LsDtype dtype = LS_DTYPE_FP16;
  bool has_shape = r->shape && parse_shape (r->shape, 2, s, &batch) && batch == 1;
  if (!check_row (p, row, r, "rows x columns such as 8192x6144", has_shape, &dtype, diags))
    return;
  const LsTimedKernel t = {
    .kernel = ls_kernel_stream (streams[which].name, streams[which].kind, dtype, s[0], s[1], r->bytes, 0),
    .measured_s = r->time_us * 1e-6,
    .family = family_of ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, s[0], s[1]),
    .row = row,
  };
  g_array_append_val (p->kernels, t);
}

/* "1x8192x32x8x128": sequences, tokens, heads, key/value heads, width. */
static void
append_attention (LsProfile *p, guint row, const Row *r, bool is_backward, LsDiagList *diags)
{
  uint64_t s[5] = { 1, 1, 1, 1, 1 }, batch = 1;
  LsDtype dtype = LS_DTYPE_BF16;
  bool has_shape = r->shape && parse_shape (r->shape, 5, s, &batch) && batch == 1;
  if (!check_row (p, row, r, "sequences x tokens x heads x key/value heads x width", has_shape, &dtype, diags))
    return;
  bool is_causal = r->note && strstr (r->note, "causal=1");
  LsTimedKernel t = {
    .kernel = ls_kernel_attention (is_backward ? "flash-attention-bwd" : "flash-attention-fwd", dtype, s[0], s[1], s[2], s[3],
                                   s[4], is_causal, is_backward),
    .measured_s = r->time_us * 1e-6,
    .family = family_of ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, s[2], s[3], s[4]),
    .row = row,
  };
  if (fabs (r->flops / t.kernel.flops - 1) > FLOPS_SLACK)
    error_at (p, row, "flops", diags, "expected %.0f FLOPs of this shape; got %.0f", t.kernel.flops, r->flops);
  t.kernel.bytes = r->bytes;
  g_array_append_val (p->kernels, t);
}

static bool
take_product (LsProfile *p, guint row, const Row *r, GArray *kernels, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (products); i++)
    if (strcmp (r->name, products[i]) == 0 && !(r->note && strstr (r->note, interleaved))) {
      append_gemm (p, row, r, products[i], kernels, diags);
      return true;
    }
  return false;
}

static bool
take_stream (LsProfile *p, guint row, const Row *r, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (streams); i++)
    if (strcmp (r->name, streams[i].name) == 0) {
      append_stream (p, row, r, i, diags);
      return true;
    }
  return false;
}

static bool
take_attention (LsProfile *p, guint row, const Row *r, LsDiagList *diags)
{
  bool is_forward = strcmp (r->name, "flash-attention-fwd") == 0, is_backward = strcmp (r->name, "flash-attention-bwd") == 0;
  if (is_forward || is_backward)
    append_attention (p, row, r, is_backward, diags);
  return is_forward || is_backward;
}

static bool
is_disturbed (const Row *r)
{
  return r->disturbed || (r->note && strstr (r->note, "disturbed="));
}

static void
append_row (LsProfile *p, guint row, const Row *r, LsDiagList *diags)
{
  bool is_taken = false;
  if (is_disturbed (r)) {
    p->n_disturbed++;
    p->n_passed++;
    return;
  }
  if (strcmp (r->group, "gemm-isolated") == 0 || strcmp (r->group, "gemm-batched") == 0)
    is_taken = take_product (p, row, r, p->kernels, diags);
  else if (strcmp (r->group, "gemm-sustained") == 0)
    is_taken = take_product (p, row, r, p->sustained, diags);
  else if (strcmp (r->group, "streams") == 0 || strcmp (r->group, "operators") == 0)
    is_taken = take_stream (p, row, r, diags);
  else if (strcmp (r->group, "attention") == 0)
    is_taken = take_attention (p, row, r, diags);
  p->n_passed += !is_taken;
}

/* ---- events around kernels ---- */

static bool
is_isolated (LsKernelKind kind)
{
  return kind <= LS_KERNEL_ATTENTION_BWD;
}

static void
find_events (LsProfile *p, const Row *r)
{
  if (strcmp (r->group, "host") == 0 && strcmp (r->name, "event-pair") == 0 && !is_disturbed (r))
    p->events_s = r->time_us * 1e-6;
}

/* Products and attention are timed alone, between two events; streams back to back. */
static void
take_events_off (LsProfile *p)
{
  for (guint i = 0; i < p->kernels->len; i++) {
    LsTimedKernel *t = &g_array_index (p->kernels, LsTimedKernel, i);
    if (is_isolated (t->kernel.kind) && p->events_s < t->measured_s)
      t->measured_s -= p->events_s;
  }
}

/* ---- files ---- */

static void
read_json (LsProfile *p, LsDiagList *diags)
{
  static const char *const schema = "lockstep.kernelbench/1";
  File file = { 0 };
  bool ok = ls_fields_read (file_fields, p->doc, ls_json_doc_root (p->doc), &file, NULL, diags);
  if (ok && strcmp (file.schema, schema) != 0) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (p->doc), "schema");
    ls_json_doc_diag (p->doc, node, LS_JSON_AT_VALUE, diags, NULL, "expected \"%s\"; got \"%.40s\"", schema, file.schema);
    ok = false;
  }
  p->n_rows = file.rows ? file.rows->len : 0;
  for (guint i = 0; ok && i < p->n_rows; i++) {
    find_events (p, &g_array_index (file.rows, Row, i));
    append_row (p, i, &g_array_index (file.rows, Row, i), diags);
  }
  p->n_failed = file.failed ? file.failed->len : 0;
  p->gpu = g_steal_pointer (&file.gpu);
  p->driver = g_steal_pointer (&file.driver);
  p->cuda = g_steal_pointer (&file.cuda);
  p->date = g_steal_pointer (&file.date);
  p->n_sm = file.n_sm;
  ls_fields_clear (file_fields, &file);
}

static void
read_csv (LsProfile *p, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  for (const LsField *f = row_fields; f->key; f++)
    if (f->kind != LS_FIELD_IGNORED)
      ls_csv_fields_find (p->csv, f, f->required, 0, columns, diags);
  bool ok = ls_diag_list_n (diags) == n_before;
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; ok && i < p->n_rows; i++) {
    Row row = { 0 };
    n_before = ls_diag_list_n (diags);
    ls_csv_fields_read (p->csv, i, columns, &row, diags);
    if (ls_diag_list_n (diags) == n_before) {
      find_events (p, &row);
      append_row (p, i, &row, diags);
    }
    ls_fields_clear (row_fields, &row);
  }
}

static void
read_table (LsProfile *p, const char *text, const char *gpu, LsDiagList *diags)
{
  g_autoptr (GArray) rows = ls_parse_kernels (p->path, text, gpu, diags);
  p->n_rows = ls_csv_n_rows (p->csv);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsTimedKernel *t = &g_array_index (rows, LsTimedKernel, i);
    if (isnan (t->measured_s)) {
      ls_csv_header_error (p->csv, diags, "expected a column with times: latency_ms, latency_us or us_median; got none");
      return;
    }
    g_array_append_val (p->kernels, *t);
  }
}

/* The first character that is no blank tells JSON from CSV. */
static bool
is_json (const char *text)
{
  return text[strspn (text, " \t\r\n")] == '{';
}

LsProfile *
ls_profile_parse (const char *path, const char *text, size_t n, const char *gpu, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsProfile) p = g_new0 (LsProfile, 1);
  p->path = g_strdup (path);
  p->sha256 = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, n);
  p->kernels = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  p->sustained = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  if (is_json (text))
    p->doc = ls_json_doc_parse (text, n, path, diags);
  else
    p->csv = ls_csv_parse (path, text, (gssize) n, diags);
  if (!p->doc && !p->csv)
    return NULL;
  p->is_ours = p->doc || (ls_csv_column (p->csv, "group") >= 0 && ls_csv_column (p->csv, "time_us") >= 0);
  if (p->doc)
    read_json (p, diags);
  else if (p->is_ours)
    read_csv (p, diags);
  else
    read_table (p, text, gpu ? gpu : "", diags);
  take_events_off (p);
  ls_hold_kernels_out (p->kernels, false);
  ls_hold_kernels_out (p->sustained, false);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&p) : NULL;
}

LsProfile *
ls_profile_load (const char *path, const char *gpu, LsDiagList *diags)
{
  size_t n;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  return text ? ls_profile_parse (path, text, n, gpu, diags) : NULL;
}
