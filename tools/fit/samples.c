#include "samples.h"

#include <stdlib.h>
#include <string.h>

#include "data/text/read_file.h"

#define ELT        2   /* bytes of fp16 and bf16 */
#define MIN_TOKENS 256 /* fewer tokens do not occur in training */

static LsCsv *
load (const LsSampleSink *sink, const char *file, const char *header)
{
  g_autofree char *path = g_build_filename (sink->folder, file, NULL);
  if (!header)
    return ls_csv_parse (path, NULL, -1, sink->diags);

  size_t n;
  g_autofree char *body = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, sink->diags);
  if (!body)
    return NULL;
  g_autofree char *text = g_strconcat (header, "\n", body, NULL);
  return ls_csv_parse (path, text, -1, sink->diags);
}

bool
ls_samples_find_columns (const LsCsv *csv, LsDiagList *diags, const char *const *names, int *ret_columns,
                         guint n)
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

LsSampleSink
ls_samples_sink (const char *folder, LsDiagList *diags)
{
  return (LsSampleSink) { .folder = folder,
                          .samples = g_array_new (FALSE, TRUE, sizeof (LsTimedKernel)),
                          .diags = diags };
}

bool
ls_sample_is_training_gemm (const LsTimedKernel *s)
{
  return s->kernel.kind == LS_KERNEL_GEMM && s->kernel.m >= 2048 && s->kernel.n >= 512 && s->kernel.k >= 512;
}

static bool G_GNUC_PRINTF (1, 2) is_held_out (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *key = g_strdup_vprintf (format, args);
  va_end (args);
  return ls_kernel_family (key) % 5 == 0; /* as read_kernels.h says */
}

void
ls_samples_read (LsSampleSink *sink, const char *file, const char *gpu, LsSampleFilter filter)
{
  g_autofree char *path = g_build_filename (sink->folder, file, NULL);
  g_autoptr (GArray) rows = ls_read_kernels (path, NULL, gpu, NULL, NULL, sink->diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsTimedKernel *row = &g_array_index (rows, LsTimedKernel, i);
    if (!filter || filter (row))
      g_array_append_vals (sink->samples, row, 1);
  }
}

static bool
row_has (const LsCsv *csv, guint row, char *const *conditions)
{
  for (; *conditions; conditions++) {
    g_auto (GStrv) sides = g_strsplit (*conditions, "=", 2);
    int column = ls_csv_column (csv, sides[0]);
    if (column < 0 || strcmp (text (csv, row, column), sides[1]) != 0)
      return false;
  }
  return true;
}

/* The whole file with only those rows: it is small, and its reader knows what else stands in them. */
void
ls_samples_where (LsSampleSink *sink, const char *file, const char *where)
{
  g_autofree char *path = g_build_filename (sink->folder, file, NULL), *body = NULL;
  g_auto (GStrv) conditions = g_strsplit (where, ",", -1);
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!csv || !g_file_get_contents (path, &body, NULL, NULL))
    return;
  g_auto (GStrv) lines = g_strsplit (body, "\n", -1);
  g_autoptr (GString) kept = g_string_new (lines[0]);
  for (guint r = 0; r < ls_csv_n_rows (csv) && lines[r + 1]; r++)
    if (row_has (csv, r, conditions))
      g_string_append_printf (kept, "\n%s", lines[r + 1]);
  g_string_append_c (kept, '\n');
  g_autoptr (GArray) rows = ls_read_kernels (file, kept->str, NULL, NULL, NULL, sink->diags);
  if (rows)
    g_array_append_vals (sink->samples, rows->data, rows->len);
}

static void
append_stream (const LsSampleSink *sink, LsKernelKind kind, uint64_t rows, uint64_t columns, double bytes,
               double seconds, bool has_host, bool held_out)
{
  const LsTimedKernel sample = {
    .kernel = ls_kernel_stream ("stream", kind, LS_DTYPE_FP16, rows, columns, bytes, 0),
    .measured_s = seconds,
    .has_host = has_host,
    .held_out = held_out,
  };
  if (seconds > 0)
    g_array_append_val (sink->samples, sample);
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
  if (!ls_samples_find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t h = count (csv, r, c[0]), tokens = count (csv, r, c[1]);
    if (count (csv, r, c[2]) == 1 && tokens >= MIN_TOKENS)
      append_stream (sink, LS_KERNEL_EMBEDDING, tokens, h, 2.0 * ELT * (double) (tokens * h),
                     number (csv, r, c[3]) * 1e-3, false, is_held_out ("%" G_GUINT64_FORMAT, h));
  }
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
                   (double) n / (number (csv, r, 1) * 1e9), true,
                   is_held_out ("%d,%" G_GUINT64_FORMAT, 1, n));
  }
}

/* The linear of TensorRT-LLM takes bf16 and casts it to blocks with scales: reads 2, writes 4.5 bits. */
static void
read_nvfp4 (LsSampleSink *sink, const char *file, bool has_cast)
{
  static const char *const names[] = { "dtype", "m", "n", "k", "latency_ms" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!ls_samples_find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t m = count (csv, r, c[1]), n = count (csv, r, c[2]), k = count (csv, r, c[3]);
    const LsTimedKernel sample = {
      .kernel = ls_kernel_gemm ("gemm", LS_DTYPE_NVFP4, m, n, k, 1, ELT, false),
      .measured_s = number (csv, r, c[4]) * 1e-3,
      .side_bytes = has_cast ? (ELT + ls_dtype_size (LS_DTYPE_NVFP4)) * (double) m * (double) k : 0,
      .has_host = has_cast,
      .held_out = has_cast && is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, n, k),
    };
    if (strcmp (text (csv, r, c[0]), "nvfp4") == 0)
      g_array_append_val (sink->samples, sample);
  }
}

void
ls_samples_gemm_nvfp4 (LsSampleSink *sink, const char *file)
{
  read_nvfp4 (sink, file, true);
}

void
ls_samples_cublaslt_nvfp4 (LsSampleSink *sink, const char *file)
{
  read_nvfp4 (sink, file, false);
}

void
ls_samples_deepgemm_wgrad (LsSampleSink *sink, const char *file)
{
  static const char *const names[] = { "m", "n", "k", "tflops" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!ls_samples_find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    LsTimedKernel sample = {
      .kernel = ls_kernel_gemm ("gemm", LS_DTYPE_FP8, count (csv, r, c[0]), count (csv, r, c[1]),
                                count (csv, r, c[2]), 1, 4, true),
    };
    sample.kernel.by_blocks = true;
    sample.measured_s = sample.kernel.flops / (1e12 * number (csv, r, c[3]));
    g_array_append_val (sink->samples, sample);
  }
}

#define SIMUMAX_PEAK 2250e12 /* what its shares are of: tflops in the source */
#define WARM_UP      25      /* calls before the clock starts                */
#define MIN_HOT_LOOP 25e-3   /* seconds                                      */
#define FP32         4       /* bytes                                        */

void
ls_samples_simumax_gemm (LsSampleSink *sink, const char *file, double peak, bool accumulates)
{
  static const char *const names[] = { "layout", "m", "n", "k", "efficiency" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!ls_samples_find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t m = count (csv, r, c[1]), n = count (csv, r, c[2]), k = count (csv, r, c[3]);
    LsTimedKernel sample = {
      .kernel = ls_kernel_gemm ("gemm", LS_DTYPE_BF16, m, n, k, 1, accumulates ? FP32 : ELT, accumulates),
      .held_out
      = is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, n, accumulates ? m : k), /* the weight */
    };
    sample.measured_s = sample.kernel.flops / (number (csv, r, c[4]) * peak);
    if ((strcmp (text (csv, r, c[0]), "NT") == 0) == accumulates
        && WARM_UP * sample.measured_s >= MIN_HOT_LOOP)
      g_array_append_val (sink->samples, sample);
  }
}

/* Its FLOPs are those without the mask. */
void
ls_samples_simumax_attention (LsSampleSink *sink, const char *file, bool is_backward)
{
  const char *const names[]
      = { "batch", "seq", "heads", "kv_heads", "head_dim", is_backward ? "backward" : "forward" };
  int c[G_N_ELEMENTS (names)];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!ls_samples_find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t seq = count (csv, r, c[1]), heads = count (csv, r, c[2]), kv_heads = count (csv, r, c[3]);
    LsTimedKernel sample = {
      .kernel = ls_kernel_attention ("attention", LS_DTYPE_BF16, count (csv, r, c[0]), seq, heads, kv_heads,
                                     count (csv, r, c[4]), true, is_backward),
      .has_host = true,
      .held_out
      = is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, seq, heads, kv_heads),
    };
    sample.measured_s = 2 * sample.kernel.flops / (number (csv, r, c[5]) * SIMUMAX_PEAK);
    g_array_append_val (sink->samples, sample);
  }
}

enum { GPU, KERNEL, PASS, CAUSAL, BATCH, HEADS, HEAD_DIM, SEQ, TFLOPS, N_FIGURE_COLUMNS };

typedef struct {
  LsCsv *csv;
  int column[N_FIGURE_COLUMNS];
  const LsFigure *of;
} Figures;

static bool
is_of (const Figures *f, guint row, const char *gpu, const char *kernel)
{
  return strcmp (text (f->csv, row, f->column[GPU]), gpu) == 0
      && strcmp (text (f->csv, row, f->column[KERNEL]), kernel) == 0
      && (!f->of->only_causal || count (f->csv, row, f->column[CAUSAL]) > 0);
}

static bool
is_pass (const Figures *f, guint row, const char *pass)
{
  return strcmp (text (f->csv, row, f->column[PASS]), pass) == 0;
}

static bool
is_alike (const Figures *f, guint a, guint b)
{
  static const int columns[] = { CAUSAL, HEAD_DIM, SEQ };
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    if (count (f->csv, a, f->column[columns[i]]) != count (f->csv, b, f->column[columns[i]]))
      return false;
  return true;
}

/* Of both passes, under the same mask, with the same heads and length; 0: not there. */
static double
rate_like (const Figures *f, guint row, const char *gpu)
{
  for (guint r = 0; r < ls_csv_n_rows (f->csv); r++)
    if (is_of (f, r, gpu, f->of->as) && is_pass (f, r, "both") && is_alike (f, r, row))
      return number (f->csv, r, f->column[TFLOPS]);
  return 0;
}

static LsKernel
figure_kernel (const Figures *f, guint row, bool is_backward)
{
  const int *c = f->column;
  uint64_t heads = count (f->csv, row, c[HEADS]);
  return ls_kernel_attention ("attention", LS_DTYPE_BF16, count (f->csv, row, c[BATCH]),
                              count (f->csv, row, c[SEQ]), heads, heads, count (f->csv, row, c[HEAD_DIM]),
                              count (f->csv, row, c[CAUSAL]) > 0, is_backward);
}

static void
add_figure (LsSampleSink *sink, const Figures *f, guint row)
{
  double factor = f->of->as ? rate_like (f, row, f->of->gpu) / rate_like (f, row, "a100") : 1;
  double flop_per_s = number (f->csv, row, f->column[TFLOPS]) * 1e12 * factor;
  LsTimedKernel sample = { .kernel = figure_kernel (f, row, f->of->is_backward) };
  sample.measured_s = sample.kernel.flops / flop_per_s;
  if (f->of->forward && is_pass (f, row, "both")) {
    const LsTimedKernel forward = { .kernel = figure_kernel (f, row, false) };
    sample.measured_s
        += forward.kernel.flops / flop_per_s - ls_fit_predict_s (f->of->forward, f->of->chip, &forward);
  }
  if (flop_per_s > 0)
    g_array_append_val (sink->samples, sample);
}

static bool
prints_passes (const Figures *f, const char *gpu)
{
  for (guint r = 0; r < ls_csv_n_rows (f->csv); r++)
    if (is_of (f, r, gpu, f->of->kernel) && is_pass (f, r, "forward"))
      return true;
  return false;
}

bool
ls_samples_attention_figures (LsSampleSink *sink, const char *file, const LsFigure *of)
{
  static const char *const names[N_FIGURE_COLUMNS]
      = { "gpu", "kernel", "pass", "causal", "batch", "heads", "head_dim", "seq", "tflops" };
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  Figures f = { .csv = csv, .of = of };
  if (!ls_samples_find_columns (csv, sink->diags, names, f.column, N_FIGURE_COLUMNS))
    return false;

  const char *gpu = of->as ? "a100" : of->gpu, *own = of->is_backward ? "backward" : "forward";
  bool has_passes = prints_passes (&f, gpu), takes_both = !has_passes || of->is_backward;
  for (guint r = 0; r < ls_csv_n_rows (csv); r++)
    if (is_of (&f, r, gpu, of->kernel) && (is_pass (&f, r, own) || (takes_both && is_pass (&f, r, "both"))))
      add_figure (sink, &f, r);
  return has_passes;
}

/* ---- cuDNN's attention ---- */

enum {
  C_GPU,
  C_BACKEND,
  C_DTYPE,
  C_MASK,
  C_BATCH,
  C_SEQ,
  C_HEADS,
  C_KV_HEADS,
  C_QK,
  C_V,
  C_WINDOW,
  C_PASS,
  C_FIXED,
  C_MS,
  N_CUDNN_COLUMNS
};

static bool
is_cudnn_row (const LsCsv *csv, const int *c, guint r, const LsCudnnRows *of)
{
  return strcmp (text (csv, r, c[C_GPU]), of->gpu) == 0 && strcmp (text (csv, r, c[C_BACKEND]), "cudnn") == 0
      && strcmp (text (csv, r, c[C_DTYPE]), of->dtype) == 0
      && strcmp (text (csv, r, c[C_PASS]), of->is_backward ? "bwd" : "fwd") == 0
      && *text (csv, r, c[C_WINDOW]) == '\0'
      && !(of->is_backward && strcmp (text (csv, r, c[C_FIXED]), "True") == 0)
      && !(of->only_causal && strcmp (text (csv, r, c[C_MASK]), "top_left") != 0);
}

/* Keys and values of two widths: as of their mean, as in model/operators_attention.c. */
void
ls_samples_cudnn_attention (LsSampleSink *sink, const char *file, const LsCudnnRows *of)
{
  static const char *const names[N_CUDNN_COLUMNS]
      = { "gpu",      "backend",     "dtype",      "mask",   "batch", "seq",           "heads",
          "kv_heads", "head_dim_qk", "head_dim_v", "window", "pass",  "deterministic", "time_ms" };
  int c[N_CUDNN_COLUMNS];
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!ls_samples_find_columns (csv, sink->diags, names, c, N_CUDNN_COLUMNS))
    return;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    uint64_t seq = count (csv, r, c[C_SEQ]), heads = count (csv, r, c[C_HEADS]),
             kv_heads = count (csv, r, c[C_KV_HEADS]);
    LsTimedKernel sample = {
      .kernel
      = ls_kernel_attention ("attention", strcmp (of->dtype, "bfloat16") == 0 ? LS_DTYPE_BF16 : LS_DTYPE_FP8,
                             count (csv, r, c[C_BATCH]), seq, heads, kv_heads,
                             (count (csv, r, c[C_QK]) + count (csv, r, c[C_V])) / 2,
                             strcmp (text (csv, r, c[C_MASK]), "top_left") == 0, of->is_backward),
      .measured_s = number (csv, r, c[C_MS]) * 1e-3 * of->slower + ls_time_to_s (of->launch),
      .held_out
      = is_held_out ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, seq, heads, kv_heads),
    };
    sample.kernel.by_blocks = strcmp (of->dtype, "mxfp8") == 0;
    if (of->is_backward && sample.kernel.dtype == LS_DTYPE_FP8)
      sample.side_bytes = ls_attention_group_sum_bytes (count (csv, r, c[C_BATCH]) * seq, heads, kv_heads,
                                                        count (csv, r, c[C_QK]) + count (csv, r, c[C_V]));
    if (is_cudnn_row (csv, c, r, of))
      g_array_append_val (sink->samples, sample);
  }
}

#define MIN_CALL 1.0 /* ms */

static GHashTable *
attention_times (LsSampleSink *sink, const char *file, const char *dtype)
{
  static const char *const names[]
      = { "attn_dtype", "kv_dtype", "batch", "seq", "heads", "kv_heads", "head_dim", "latency_ms" };
  int c[G_N_ELEMENTS (names)];
  GHashTable *times = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr (LsCsv) csv = load (sink, file, NULL);
  if (!ls_samples_find_columns (csv, sink->diags, names, c, G_N_ELEMENTS (names)))
    return times;

  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    double ms = number (csv, r, c[7]);
    if (strcmp (text (csv, r, c[0]), dtype) == 0 && strcmp (text (csv, r, c[1]), dtype) == 0
        && ms >= MIN_CALL)
      g_hash_table_insert (times,
                           g_strjoin (",", text (csv, r, c[2]), text (csv, r, c[3]), text (csv, r, c[4]),
                                      text (csv, r, c[5]), text (csv, r, c[6]), NULL),
                           g_memdup2 (&ms, sizeof ms));
  }
  return times;
}

static int
by_size (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

double
ls_samples_attention_ratio (LsSampleSink *sink, const char *file, const char *other, const char *dtype)
{
  g_autoptr (GHashTable) mine = attention_times (sink, file, dtype),
                         theirs = attention_times (sink, other, dtype);
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
  GHashTableIter iter;
  gpointer key, ms;
  g_hash_table_iter_init (&iter, mine);
  while (g_hash_table_iter_next (&iter, &key, &ms)) {
    const double *their = g_hash_table_lookup (theirs, key);
    double ratio = their ? *(double *) ms / *their : 0;
    if (their)
      g_array_append_val (ratios, ratio);
  }
  g_array_sort (ratios, by_size);
  return ratios->len > 0 ? g_array_index (ratios, double, ratios->len / 2) : 1;
}

bool
ls_samples_mamf (const char *folder, const char *accelerator, const char *dtype, double *ret_flop_per_s,
                 uint64_t ret_mnk[3], LsDiagList *diags)
{
  static const char *const names[] = { "dtype", "accelerator", "mamf_tflops", "best_shape_MxNxK" };
  int c[G_N_ELEMENTS (names)];
  const LsSampleSink sink = { .folder = folder, .diags = diags };
  g_autoptr (LsCsv) csv = load (&sink, "mamf_table.csv", NULL);
  if (!ls_samples_find_columns (csv, diags, names, c, G_N_ELEMENTS (names)))
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
