#include "samples.h"

#include <stdlib.h>
#include <string.h>

#include "io/csv.h"
#include "io/read_file.h"

#define ELT        2   /* bytes of fp16 and bf16 */
#define MIN_TOKENS 256 /* fewer tokens do not occur in training */

static LsCsv *
load (const LsSampleSink *sink, const char *file, const char *header)
{
  g_autofree char *path = g_build_filename (sink->folder, file, NULL);
  if (!header)
    return ls_csv_load (path, sink->diags);

  size_t n;
  g_autofree char *body = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, sink->diags);
  if (!body)
    return NULL;
  g_autofree char *text = g_strconcat (header, "\n", body, NULL);
  return ls_csv_parse (path, text, sink->diags);
}

/* A missing column is an error of the file, reported once; cells read as 0. */
static bool
find_columns (const LsCsv *csv, LsDiagList *diags, const char *const *names, int *ret_columns, guint n)
{
  bool ok = csv != NULL;
  for (guint i = 0; ok && i < n; i++) {
    ret_columns[i] = ls_csv_column (csv, names[i]);
    if (ret_columns[i] < 0) {
      ls_csv_header_error (csv, diags, "expected a column \"%s\"", names[i]);
      ok = false;
    }
  }
  return ok;
}

static double
number (const LsCsv *csv, guint row, int column)
{
  return g_ascii_strtod (ls_csv_cell (csv, row, (guint) column), NULL);
}

static uint64_t
count (const LsCsv *csv, guint row, int column)
{
  return g_ascii_strtoull (ls_csv_cell (csv, row, (guint) column), NULL, 10); /* skips leading space */
}

static const char *
text (const LsCsv *csv, guint row, int column)
{
  return ls_csv_cell (csv, row, (guint) column);
}

/* 16 = 1 (mod 5), so a hexadecimal number and the sum of its digits agree mod 5. */
static bool G_GNUC_PRINTF (1, 2) is_held_out (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *key = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *md5 = g_compute_checksum_for_string (G_CHECKSUM_MD5, key, -1);
  int sum = 0;
  for (const char *p = md5; *p; p++)
    sum += g_ascii_xdigit_value (*p);
  return sum % 5 == 0;
}

static void
append (const LsSampleSink *sink, LsSample sample)
{
  if (sample.seconds > 0)
    g_array_append_val (sink->samples, sample);
}

static void
append_gemm (const LsSampleSink *sink, LsDtype dtype, uint64_t m, uint64_t n, uint64_t k, double seconds,
             bool has_host)
{
  LsSample sample = {
    .kernel = ls_kernel_gemm ("gemm", dtype, m, n, k, 1, ELT, false),
    .seconds = seconds,
    .has_host = has_host,
    .held_out = is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, n, k),
  };
  /* The fp8 linear of TensorRT-LLM takes bf16 and casts it: reads 2, writes 1. */
  if (dtype == LS_DTYPE_FP8)
    sample.side_bytes = 3.0 * (double) m * (double) k;
  append (sink, sample);
}

void
ls_samples_gemm (LsSampleSink *sink, const char *file, LsDtype dtype)
{
  static const char *const names[] = { "dtype", "m", "n", "k", "latency_ms" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    LsDtype row_dtype;
    if (ls_dtype_parse (text (csv, r, c[0]), &row_dtype) && row_dtype == dtype)
      append_gemm (sink, dtype, count (csv, r, c[1]), count (csv, r, c[2]), count (csv, r, c[3]),
                   number (csv, r, c[4]) * 1e-3, false);
  }
}

/* The timing includes what TensorRT-LLM does before: rotate and copy Q, K and V,
 * the latter two into the cache. */
void
ls_samples_attention (LsSampleSink *sink, const char *file, LsDtype dtype)
{
  static const char *const names[]
      = { "attn_dtype", "batch", "seq", "heads", "kv_heads", "head_dim", "latency_ms" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    LsDtype row_dtype;
    if (!ls_dtype_parse (text (csv, r, c[0]), &row_dtype) || row_dtype != dtype)
      continue;
    uint64_t batch = count (csv, r, c[1]), seq = count (csv, r, c[2]), heads = count (csv, r, c[3]);
    uint64_t kv_heads = count (csv, r, c[4]), d = count (csv, r, c[5]);
    double tokens = (double) batch * (double) seq;
    double qkv_width = (double) (heads + 2 * kv_heads) * (double) d;
    LsSample sample = {
      .kernel = { .name = "attention",
                  .kind = LS_KERNEL_ATTENTION_FWD,
                  .dtype = dtype,
                  .m = seq,
                  .n = seq,
                  .k = d,
                  .batch = batch * heads,
                  .flops = 2 * tokens * (double) seq * (double) (heads * d), /* causal */
                  .bytes = ELT * tokens * 2 * (double) ((heads + kv_heads) * d) },
      .seconds = number (csv, r, c[6]) * 1e-3,
      .side_bytes = 2 * ELT * tokens * qkv_width,
      .has_host = true,
      .held_out
      = is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, heads, kv_heads, d),
    };
    append (sink, sample);
  }
}

static void
append_stream (const LsSampleSink *sink, LsKernelKind kind, uint64_t rows, uint64_t columns, double bytes,
               double seconds, bool has_host, bool held_out)
{
  append (sink, (LsSample){
                    .kernel = ls_kernel_stream ("stream", kind, LS_DTYPE_FP16, rows, columns, bytes, 0),
                    .seconds = seconds,
                    .has_host = has_host,
                    .held_out = held_out,
                });
}

void
ls_samples_vidur_add (LsSampleSink *sink, const char *file, const char *gpu)
{
  static const char *const names[] = { "gpu", "op", "tokens", "hidden", "bytes_min", "us_median" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t tokens = count (csv, r, c[2]), hidden = count (csv, r, c[3]);
    if (strcmp (text (csv, r, c[0]), gpu) || strcmp (text (csv, r, c[1]), "add"))
      continue;
    append_stream (sink, LS_KERNEL_ELEMENTWISE, tokens, hidden, number (csv, r, c[4]),
                   number (csv, r, c[5]) * 1e-6, false,
                   is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, tokens, hidden));
  }
}

void
ls_samples_vidur_gemm (LsSampleSink *sink, const char *file, const char *gpu)
{
  static const char *const names[] = { "gpu", "M", "N", "K", "us_median" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++)
    if (!strcmp (text (csv, r, c[0]), gpu) && count (csv, r, c[1]) >= MIN_TOKENS)
      append_gemm (sink, LS_DTYPE_BF16, count (csv, r, c[1]), count (csv, r, c[2]), count (csv, r, c[3]),
                   number (csv, r, c[4]) * 1e-6, false);
}

/* The four linear layers of a row: QKV, projection, up (with gate), down. */
void
ls_samples_vidur_mlp_gemm (LsSampleSink *sink, const char *file)
{
  static const char *const names[] = { "n_head",
                                       "n_kv_head",
                                       "n_embd",
                                       "n_expanded_embd",
                                       "use_gated_mlp",
                                       "num_tokens",
                                       "num_tensor_parallel_workers",
                                       "attn_pre_proj_median_ms",
                                       "attn_post_proj_median_ms",
                                       "mlp_up_proj_median_ms",
                                       "mlp_down_proj_median_ms" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t heads = count (csv, r, c[0]), kv = count (csv, r, c[1]), h = count (csv, r, c[2]),
             f = count (csv, r, c[3]);
    uint64_t m = count (csv, r, c[5]), t = count (csv, r, c[6]);
    if (m < MIN_TOKENS || heads % t)
      continue;
    uint64_t qkv = (heads / t + 2 * MAX (1, kv / t)) * (h / heads);
    uint64_t up = (strcmp (text (csv, r, c[4]), "True") ? 1 : 2) * f / t;
    const uint64_t n[] = { qkv, h, up, h }, k[] = { h, h / t, h, f / t };
    for (guint i = 0; i < G_N_ELEMENTS (n); i++)
      append_gemm (sink, LS_DTYPE_BF16, m, n[i], k[i], number (csv, r, c[7 + i]) * 1e-3, false);
  }
}

/* A gather reads and writes each element once; ranks of a tensor-parallel group
 * add masking, so only tp = 1. */
void
ls_samples_vidur_embedding (LsSampleSink *sink, const char *file)
{
  static const char *const names[]
      = { "n_embd", "num_tokens", "num_tensor_parallel_workers", "emb_median_ms" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t h = count (csv, r, c[0]), tokens = count (csv, r, c[1]);
    if (count (csv, r, c[2]) == 1 && tokens >= MIN_TOKENS)
      append_stream (sink, LS_KERNEL_EMBEDDING, tokens, h, 2.0 * ELT * (double) (tokens * h),
                     number (csv, r, c[3]) * 1e-3, false, is_held_out ("%" G_GUINT64_FORMAT, h));
  }
}

void
ls_samples_llmcompass_gemm (LsSampleSink *sink, const char *file)
{
  g_autoptr (LsCsv) csv = load (sink, file, "m,n,k,time,rate");
  for (guint r = 0; csv && r < ls_csv_n_rows (csv); r++)
    append_gemm (sink, LS_DTYPE_FP16, count (csv, r, 0), count (csv, r, 1), count (csv, r, 2),
                 number (csv, r, 3) * 1e-3, true);
}

/* One row reads and writes m x n elements; the table has G elements per second. */
void
ls_samples_llmcompass_rows (LsSampleSink *sink, const char *file, LsKernelKind kind)
{
  g_autoptr (LsCsv) csv = load (sink, file, "m,n,rate");
  for (guint r = 0; csv && r < ls_csv_n_rows (csv); r++) {
    uint64_t m = count (csv, r, 0), n = count (csv, r, 1);
    double elements = (double) m * (double) n;
    append_stream (sink, kind, m, n, 2 * ELT * elements, elements / (number (csv, r, 2) * 1e9), true,
                   is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, m, n));
  }
}

void
ls_samples_llmcompass_gelu (LsSampleSink *sink, const char *file)
{
  g_autoptr (LsCsv) csv = load (sink, file, "n,rate");
  for (guint r = 0; csv && r < ls_csv_n_rows (csv); r++) {
    uint64_t n = count (csv, r, 0);
    append_stream (sink, LS_KERNEL_ELEMENTWISE, 1, n, 2.0 * ELT * (double) n,
                   (double) n / (number (csv, r, 1) * 1e9), true, is_held_out ("%d,%" G_GUINT64_FORMAT, 1, n));
  }
}

bool
ls_samples_mamf (const char *folder, const char *accelerator, const char *dtype, double *ret_flop_per_s,
                 uint64_t ret_mnk[3], LsDiagList *diags)
{
  static const char *const names[] = { "dtype", "accelerator", "mamf_tflops", "best_shape_MxNxK" };
  int c[G_N_ELEMENTS (names)];
  const LsSampleSink sink = { .folder = folder, .diags = diags };
  g_autoptr (LsCsv) csv = load (&sink, "mamf_table.csv", NULL);
  if (!find_columns (csv, diags, names, c, G_N_ELEMENTS (names)))
    return false;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    if (strcmp (text (csv, r, c[0]), dtype) || strcmp (text (csv, r, c[1]), accelerator))
      continue;
    g_auto (GStrv) shape = g_strsplit (text (csv, r, c[3]), "x", 3);
    for (guint i = 0; i < 3 && g_strv_length (shape) == 3; i++)
      ret_mnk[i] = g_ascii_strtoull (shape[i], NULL, 10);
    *ret_flop_per_s = number (csv, r, c[2]) * 1e12;
    return true;
  }
  ls_csv_header_error (csv, diags, "expected a row for %s in %s", accelerator, dtype);
  return false;
}
