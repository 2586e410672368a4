/* Tables of kernels with the times that the shipped calibration predicts, exact or scattered: products,
 * attention and streams, each alone or mixed, in the formats of kernelbench and of others. Laid over that
 * calibration they move no kernel and no step. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "data/machines/machines.h"
#include "support/calibration_check.h"

typedef struct {
  guint mix;          /* of GEMM, ATTENTION, STREAM     */
  guint n;            /* of each                        */
  bool is_ours;       /* one file of kernelbench        */
  double least, most; /* of each size of a product      */
  double noise;
} Table;

static uint64_t
draw (GRand *rand, double least, double most, uint64_t step)
{
  uint64_t size = (uint64_t) exp (g_rand_double_range (rand, log (least), log (most)));
  return MAX (step, size / step * step);
}

static LsKernel
draw_gemm (GRand *rand, const Table *t)
{
  uint64_t m = draw (rand, t->least, t->most, 16), n = draw (rand, t->least, t->most, 16),
           k = draw (rand, t->least, t->most, 16);
  return ls_kernel_gemm ("forward", LS_DTYPE_BF16, m, n, k, 1, 2, false);
}

typedef struct {
  uint64_t batch, seq, heads, kv_heads, width;
} Heads;

static Heads
draw_heads (GRand *rand, const Table *t)
{
  uint64_t heads = 1u << g_rand_int_range (rand, 0, 7), width = g_rand_boolean (rand) ? 128 : 64;
  uint64_t kv_heads = heads >> g_rand_int_range (rand, 0, 4);
  return (Heads) { 1u << g_rand_int_range (rand, 0, 4), MAX (512, draw (rand, t->least, t->most, 128)), heads,
                   MAX (1, kv_heads), width };
}

static const struct {
  const char *name;
  LsKernelKind kind;
  double bytes; /* an element */
} streams[] = {
  { "add", LS_KERNEL_ELEMENTWISE, 6 },
  { "swiglu", LS_KERNEL_ELEMENTWISE, 6 },
  { "rmsnorm-fwd", LS_KERNEL_NORM, 4 },
  { "rmsnorm-bwd", LS_KERNEL_NORM, 8 },
  { "adam", LS_KERNEL_OPTIMIZER, 30 },
  { "scale-mask-softmax", LS_KERNEL_SOFTMAX, 4 },
  { "cross-entropy", LS_KERNEL_CROSS_ENTROPY, 4 },
};

/* No stream goes faster than HBM: calibrate refuses it. */
static double
scattered (const Fixture *x, GRand *rand, const Table *t, const LsKernel *kernel, double s)
{
  double least = kernel->kind > LS_KERNEL_ATTENTION_BWD ? 1.001 * kernel->bytes / x->gpu.hbm_bytes_per_s : 0;
  return fmax (least, s * exp (t->noise * g_rand_double_range (rand, -1.7, 1.7)));
}

static double
kernel_s (const Fixture *x, const LsKernel *kernel)
{
  const LsTimedKernel t = { .kernel = *kernel };
  return predict_s (x, &t);
}

#define N64 "%" G_GUINT64_FORMAT

static void
add_product (GString *csv, const Fixture *x, GRand *rand, const Table *t)
{
  LsKernel k = draw_gemm (rand, t);
  g_string_append_printf (csv, "gemm-isolated,forward," N64 "x" N64 "x" N64 ",bf16,%.0f,%.0f,%.6f,\n", k.m,
                          k.n, k.k, k.bytes, k.flops, 1e6 * scattered (x, rand, t, &k, kernel_s (x, &k)));
}

static void
add_attention (GString *csv, const Fixture *x, GRand *rand, const Table *t)
{
  Heads h = draw_heads (rand, t);
  bool is_backward = g_rand_boolean (rand);
  LsKernel k = ls_kernel_attention ("a", LS_DTYPE_BF16, h.batch, h.seq, h.heads, h.kv_heads, h.width, true,
                                    is_backward);
  g_string_append_printf (csv,
                          "attention,flash-attention-%s," N64 "x" N64 "x" N64 "x" N64 "x" N64
                          ",bf16,%.0f,%.0f,%.6f,causal=1\n",
                          is_backward ? "bwd" : "fwd", h.batch, h.seq, h.heads, h.kv_heads, h.width, k.bytes,
                          k.flops, 1e6 * scattered (x, rand, t, &k, kernel_s (x, &k)));
}

static void
add_stream (GString *csv, const Fixture *x, GRand *rand, const Table *t)
{
  guint which = (guint) g_rand_int_range (rand, 0, G_N_ELEMENTS (streams));
  uint64_t m = draw (rand, t->least, t->most, 16), n = draw (rand, t->least, t->most, 16);
  LsKernel k = ls_kernel_stream (streams[which].name, streams[which].kind, LS_DTYPE_FP16, m, n,
                                 streams[which].bytes * (double) (m * n), 0);
  g_string_append_printf (csv, "streams,%s," N64 "x" N64 ",fp16,%.0f,0,%.6f,\n", k.name, m, n, k.bytes,
                          1e6 * scattered (x, rand, t, &k, kernel_s (x, &k)));
}

static void
add_ours (GString *csv, const Fixture *x, GRand *rand, const Table *t)
{
  if (t->mix & GEMM)
    add_product (csv, x, rand, t);
  if (t->mix & ATTENTION)
    add_attention (csv, x, rand, t);
  if (t->mix & STREAM)
    add_stream (csv, x, rand, t);
}

/* A row without its time, read as calibrate reads it, with the time that is predicted. */
static void
add_timed (GString *csv, const Fixture *x, GRand *rand, const Table *t, const char *header, const char *cells,
           double unit)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *one = g_strdup_printf ("%s\n%s,1\n", header, cells);
  g_autoptr (GArray) rows = ls_read_kernels ("t.csv", one, x->gpu.calibration, NULL, diags);
  if (!LS_CHECK (rows && rows->len == 1))
    return;
  if (csv->len == 0)
    g_string_append_printf (csv, "%s\n", header);
  g_string_append_printf (csv, "%s,%.9f\n", cells,
                          scattered (x, rand, t, &g_array_index (rows, LsTimedKernel, 0).kernel,
                                     predict_s (x, &g_array_index (rows, LsTimedKernel, 0)))
                              / unit);
}

static void
add_others (Files *files, const Fixture *x, GRand *rand, const Table *t)
{
  if (t->mix & GEMM) {
    LsKernel k = draw_gemm (rand, t);
    const char *dtype
        = g_rand_boolean (rand) && x->shipped.kind[LS_ENTRY_GEMM_FP8].is_fitted ? "fp8" : "bf16";
    g_autofree char *cells = g_strdup_printf ("%s," N64 "," N64 "," N64, dtype, k.m, k.n, k.k);
    add_timed (files->text[0], x, rand, t, "dtype,m,n,k,latency_ms", cells, 1e-3);
  }
  if (t->mix & ATTENTION) {
    Heads h = draw_heads (rand, t);
    g_autofree char *cells = g_strdup_printf ("bf16," N64 "," N64 "," N64 "," N64 "," N64, h.batch, h.seq,
                                              h.heads, h.kv_heads, h.width);
    add_timed (files->text[1], x, rand, t, "attn_dtype,batch,seq,heads,kv_heads,head_dim,latency_ms", cells,
               1e-3);
  }
  if (t->mix & STREAM) {
    static const char *const ops[] = { "add", "rmsnorm", "silu_mul" };
    static const guint bytes[] = { 6, 4, 6 };
    guint op = (guint) g_rand_int_range (rand, 0, x->shipped.kind[LS_ENTRY_VLLM_RMSNORM].is_fitted ? 3 : 1);
    uint64_t m = draw (rand, t->least, t->most, 16), n = draw (rand, 1024, 16384, 128);
    g_autofree char *cells = g_strdup_printf ("%s," N64 "," N64 "," N64, ops[op], m, n, bytes[op] * m * n);
    add_timed (files->text[2], x, rand, t, "op,tokens,hidden,bytes_min,us_median", cells, 1e-6);
  }
}

static Table
random_table (GRand *rand, guint mix)
{
  static const guint counts[] = { 1, 3, 5, 12, 40, 100 };
  static const double ranges[][2]
      = { { 16, 256 }, { 64, 1024 }, { 1024, 8192 }, { 16, 8192 }, { 4096, 16384 } };
  static const double noises[] = { 0, 0.02, 0.06 };
  guint range = (guint) g_rand_int_range (rand, 0, G_N_ELEMENTS (ranges));
  return (Table) { .mix = mix,
                   .n = counts[g_rand_int_range (rand, 0, G_N_ELEMENTS (counts))],
                   .is_ours = g_rand_boolean (rand),
                   .least = ranges[range][0],
                   .most = ranges[range][1],
                   .noise = noises[g_rand_int_range (rand, 0, 3)] };
}

static Files
files_of (const Fixture *x, const Table *t, GRand *rand)
{
  Files files = files_new ();
  if (t->is_ours)
    g_string_append (files.text[0], "group,name,shape,dtype,bytes,flops,time_us,note\n");
  for (guint i = 0; i < t->n; i++)
    if (t->is_ours)
      add_ours (files.text[0], x, rand, t);
    else
      add_others (&files, x, rand, t);
  return files;
}

/* ---- tests ---- */

static void
check_table (const Fixture *x, guint32 seed)
{
  GRand *rand = g_rand_new_with_seed (seed);
  Table t = random_table (rand, (guint) g_rand_int_range (rand, 1, N_MIXES));
  Files files = files_of (x, &t, rand);
  g_autofree char *what
      = g_strdup_printf ("%s, seed %u: %u kernels of mix %u, %g to %g, noise %g%s", x->name, seed, t.n, t.mix,
                         t.least, t.most, t.noise, t.is_ours ? ", as of kernelbench" : "");
  LsCalibration c;
  if (check_moves (x, &files, what, &c))
    ls_calibration_clear (&c);
  files_clear (&files);
  g_rand_free (rand);
}

static void
predicted_kernels_move_nothing (void)
{
  guint n = ls_test_cases (20, 80);
  for (guint machine = 0; machine < G_N_ELEMENTS (machines); machine++) {
    Fixture x;
    if (!fixture_load (&x, machine))
      return;
    for (guint seed = 1 + machine; seed <= n; seed += G_N_ELEMENTS (machines))
      check_table (&x, seed);
    fixture_clear (&x);
  }
}

/* --- attention that was timed forward only ---------------------------------------------------------- */

/* Pins what a calibration of no other does for attention that was timed forward only: the backward runs as the
 * forward does, and the file says so. */

static char *
write_file (const char *folder, const char *name, const char *text)
{
  char *path = g_build_filename (folder, name, NULL);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
  return path;
}

/* What attention takes that reaches 60 of 100 TFLOP/s. */
static char *
calibrated (void)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  g_autofree char *gpu
      = write_file (folder, "flat.json",
                    "{\"schema\":\"lockstep.gpu/1\",\"name\":\"flat\",\"source\":\"made up\","
                    "\"peak_flops\":{\"bf16\":\"100TFLOP/s\"},\"vector_flops\":\"10TFLOP/s\","
                    "\"hbm_bandwidth\":\"1TB/s\",\"hbm_efficiency\":1,\"hbm_size\":\"16GiB\",\"sm\":100}");
  g_autoptr (GString) csv = g_string_new ("batch,seq,heads,kv_heads,head_dim,attn_dtype,latency_ms\n");
  for (uint64_t seq = 512; seq <= 8192; seq *= 2) {
    LsKernel k = ls_kernel_attention ("attention", LS_DTYPE_BF16, 1, seq, 16, 16, 128, true, false);
    g_string_append_printf (csv, "1,%" G_GUINT64_FORMAT ",16,16,128,bf16,%.6f\n", seq, k.flops / 60e9);
  }
  g_autofree char *table = write_file (folder, "attention.csv", csv->str);
  const char *const files[] = { table, NULL };
  const LsCalibrateSpec spec = { .files = files, .gpu = gpu, .version = "test" };
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCalibrateRun) run = ls_calibrate_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  g_unlink (table);
  g_unlink (gpu);
  g_rmdir (folder);
  return run ? ls_calibrate_run_json (run, "mine") : NULL;
}

static void
a_backward_without_data_runs_as_the_forward (void)
{
  g_autofree char *json = calibrated ();
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = json ? ls_json_doc_parse (json, strlen (json), "mine.json", diags) : NULL;
  LsCalibration c;
  if (!LS_CHECK (doc && ls_calibration_read (doc, &c, diags)))
    return;
  const LsKindFit *forward = &c.kind[LS_KERNEL_ATTENTION_FWD], *backward = &c.kind[LS_KERNEL_ATTENTION_BWD];
  LS_CHECK (strstr (json, "no data: as the forward") != NULL);
  LS_CHECK (forward->is_fitted && !backward->is_fitted);
  LS_CHECK_DOUBLE (backward->compute_efficiency, ==, forward->compute_efficiency);
  LS_CHECK_DOUBLE (backward->memory_efficiency, ==, forward->memory_efficiency);
  LS_CHECK_INT (backward->launch, ==, forward->launch);
  ls_calibration_clear (&c);
}

LS_TEST_SUITE (LS_TEST (predicted_kernels_move_nothing),
               LS_TEST (a_backward_without_data_runs_as_the_forward))
