/* A user's tables laid over a shipped calibration: what that must not move.
 *
 * Random subsets of the measured tables that the shipped calibrations were fitted to, scattered or rows that
 * lie together, as a user's own: of all kernels measured no class gets an error that is 2 points larger; what
 * nobody measured, and whole steps, move by no more than 2 %, as there the full calibration is all that is
 * known.
 *
 * Tables of kernels with the times that the shipped calibration predicts, exact or scattered: products,
 * attention and streams, each alone or mixed, in the formats of kernelbench and of others. Laid over that
 * calibration they move no kernel and no step. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "calibrate/calibrate_fit.h"
#include "compute/measured.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/measured/read_kernels.h"
#include "job/job.h"

#define WORSE 0.02

enum { GEMM = 1, ATTENTION = 2, STREAM = 4, N_MIXES = 8, N_SOURCES = 3 };

typedef struct {
  const char *name;    /* of the GPU */
  const char *cluster; /* of 8 a node, with NVSwitches */
  LsGpu gpu;
  LsCalibration shipped;
} Fixture;

static const struct {
  const char *gpu, *cluster;
} machines[] = {
  { "h100", "dgx-h100" }, { "a100-80g", "dgx-a100-80g" }, { "h200", "dgx-h200" }, { "b200", "dgx-b200" }
};

static bool
fixture_load (Fixture *x, guint machine)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  x->name = machines[machine].gpu;
  x->cluster = machines[machine].cluster;
  return LS_CHECK (ls_data_file_load (&ls_gpu_file, x->name, &x->gpu, diags)
                   && ls_data_file_load (&ls_calibration_file, x->gpu.calibration, &x->shipped, diags));
}

static void
fixture_clear (Fixture *x)
{
  ls_gpu_clear (&x->gpu);
  ls_calibration_clear (&x->shipped);
}

/* Files of a user: a text of each that is not empty. */
typedef struct {
  GString *text[N_SOURCES];
} Files;

static Files
files_new (void)
{
  return (Files) { { g_string_new (NULL), g_string_new (NULL), g_string_new (NULL) } };
}

static void
files_clear (Files *files)
{
  for (guint i = 0; i < G_N_ELEMENTS (files->text); i++)
    g_string_free (files->text[i], TRUE);
}

static double
predict_s (const Fixture *x, const LsTimedKernel *t)
{
  const LsKindFit *fit = ls_calibration_fit (&x->shipped, &t->kernel);
  if (t->what != LS_TIMED_USUAL)
    fit = t->what == LS_TIMED_VLLM_RMSNORM ? &x->shipped.kind[LS_ENTRY_VLLM_RMSNORM]
                                           : &x->shipped.kind[LS_ENTRY_VLLM_SILU_MUL];
  return ls_fit_predict_s (fit, &x->gpu, t);
}

/* ---- calibrations ---- */

static LsCalibrateRun *
calibrate (const Fixture *x, const Files *files)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  char *paths[G_N_ELEMENTS (files->text) + 1] = { NULL };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (files->text); i++)
    if (files->text[i]->len > 0) {
      g_autofree char *name = g_strdup_printf ("%u.csv", i);
      paths[n] = g_build_filename (folder, name, NULL);
      LS_CHECK (g_file_set_contents (paths[n++], files->text[i]->str, -1, NULL));
    }
  const LsCalibrateSpec spec = { .files = (const char *const *) paths, .gpu = x->name, .version = "test" };
  g_autoptr (GError) error = NULL;
  LsCalibrateRun *run = ls_calibrate_run_new (&spec, &error);
  if (n > 0 && !run && !strstr (error->message, "no kernel that an entry"))
    LS_CHECK_NO_ERROR (error);
  for (guint i = 0; i < n; i++) {
    g_unlink (paths[i]);
    g_free (paths[i]);
  }
  g_rmdir (folder);
  return run;
}

static bool
result_of (const char *json, LsCalibration *ret)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (json, strlen (json), "mine.json", diags);
  bool ok = doc && ls_data_file_read (&ls_calibration_file, doc, ret, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  return ok;
}

/* ---- predictions ---- */

/* No size is one that the tables above may have. */
static GArray *
probes_new (void)
{
  const LsKernel some[] = {
    ls_kernel_gemm ("qkv", LS_DTYPE_BF16, 8191, 6143, 4095, 1, 2, false),
    ls_kernel_gemm ("fc1", LS_DTYPE_BF16, 16383, 28671, 4095, 1, 2, false),
    ls_kernel_gemm ("proj", LS_DTYPE_BF16, 2047, 4095, 511, 1, 2, false),
    ls_kernel_gemm ("small", LS_DTYPE_BF16, 127, 127, 127, 1, 2, false),
    ls_kernel_gemm ("skinny", LS_DTYPE_BF16, 15, 8191, 8191, 1, 2, false),
    ls_kernel_gemm ("bmm", LS_DTYPE_BF16, 2047, 2047, 127, 32, 2, false),
    ls_kernel_gemm ("fp8", LS_DTYPE_FP8, 8191, 6143, 4095, 1, 2, false),
    ls_kernel_attention ("long", LS_DTYPE_BF16, 1, 32767, 32, 8, 128, true, false),
    ls_kernel_attention ("usual", LS_DTYPE_BF16, 2, 4095, 32, 8, 128, true, false),
    ls_kernel_attention ("narrow", LS_DTYPE_BF16, 1, 2047, 8, 8, 64, true, false),
    ls_kernel_attention ("tiny", LS_DTYPE_BF16, 1, 511, 1, 1, 64, true, false),
    ls_kernel_attention ("usual-bwd", LS_DTYPE_BF16, 2, 4095, 32, 8, 128, true, true),
    ls_kernel_attention ("short-bwd", LS_DTYPE_BF16, 1, 1023, 4, 4, 64, true, true),
    ls_kernel_stream ("norm", LS_KERNEL_NORM, LS_DTYPE_BF16, 8191, 4095, 4.0 * 8191 * 4095, 0),
    ls_kernel_stream ("norm-small", LS_KERNEL_NORM, LS_DTYPE_BF16, 255, 1023, 4.0 * 255 * 1023, 0),
    ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 2047, 4095, 6.0 * 2047 * 4095, 0),
    ls_kernel_stream ("add-large", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 16383, 16383, 6.0 * 16383 * 16383,
                      0),
    ls_kernel_stream ("softmax", LS_KERNEL_SOFTMAX, LS_DTYPE_BF16, 65535, 2047, 4.0 * 65535 * 2047, 0),
    ls_kernel_stream ("adam", LS_KERNEL_OPTIMIZER, LS_DTYPE_FP32, 1, 1 << 28, 30.0 * (1 << 28), 0),
    ls_kernel_stream ("loss", LS_KERNEL_CROSS_ENTROPY, LS_DTYPE_BF16, 8191, 128255, 6.0 * 8191 * 128255, 0),
    ls_kernel_stream ("rows", LS_KERNEL_EMBEDDING, LS_DTYPE_BF16, 8191, 4095, 4.0 * 8191 * 4095, 0),
  };
  GArray *all = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  g_array_append_vals (all, some, G_N_ELEMENTS (some));
  return all;
}

static void
check_probes (const Fixture *x, const LsCalibration *c, const char *what)
{
  g_autoptr (GArray) probes = probes_new ();
  for (guint i = 0; i < probes->len; i++) {
    const LsKernel *k = &g_array_index (probes, LsKernel, i);
    double was = ls_time_to_s (ls_kernel_cost (&x->shipped, &x->gpu, k).alone),
           now = ls_time_to_s (ls_kernel_cost (c, &x->gpu, k).alone);
    ls_check_impl (fabs (now / was - 1) <= WORSE, __FILE__, __LINE__, "%s: %s goes from %.3f to %.3f us",
                   what, k->name, was * 1e6, now * 1e6);
  }
}

static double
step_s (const char *const *knobs, const char *gpu_calibration)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (; *knobs; knobs += 2)
    LS_CHECK (ls_job_spec_set (&spec, knobs[0], knobs[1], diags));
  if (gpu_calibration)
    LS_CHECK (ls_job_spec_set (&spec, "gpu-calibration", gpu_calibration, diags));
  LsJobResult *r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  double s = r ? ls_job_result_step_time_s (r) : NAN;
  ls_job_result_free (r);
  ls_job_spec_clear (&spec);
  return s;
}

static void
check_steps (const Fixture *x, const char *json, const char *what)
{
  const char *const dense[] = { "model", "llama3.1-8b", "cluster", x->cluster, "nodes", "1", NULL },
                    *const cut[] = { "model", "llama3.1-70b", "cluster", x->cluster, "nodes", "2", "tp",
                                     "8",     "global-batch", "8",       NULL },
                    *const experts[] = { "model", "mixtral-8x7b", "cluster", x->cluster, "nodes", "2", "ep",
                                         "8",     "global-batch", "32",      NULL };
  const char *const *jobs[] = { dense, cut, experts };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "mine.json", NULL);
  LS_CHECK (g_file_set_contents (path, json, -1, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    double was = step_s (jobs[i], NULL), now = step_s (jobs[i], path);
    ls_check_impl (fabs (now / was - 1) <= WORSE, __FILE__, __LINE__, "%s: a step of %s goes from %g to %g s",
                   what, jobs[i][1], was, now);
  }
  g_unlink (path);
  g_rmdir (folder);
}

/* No probe and no step moves by more than 2 %. False: the tables hold no kernel that is fitted; else the
 * caller clears *ret. */
static bool
check_moves (const Fixture *x, const Files *files, const char *what, LsCalibration *ret)
{
  g_autoptr (LsCalibrateRun) run = calibrate (x, files);
  g_autofree char *json = run ? ls_calibrate_run_json (run, "mine") : NULL;
  if (!json || !result_of (json, ret))
    return false;
  check_probes (x, ret, what);
  check_steps (x, json, what);
  return true;
}

/* ---- measured ---- */

/* Rows of a table of others. */
typedef struct {
  char *header;
  GPtrArray *rows; /* char *, one kernel each */
} Source;

typedef struct {
  Source source[N_SOURCES];
  GArray *kernels; /* LsTimedKernel: of all rows */
} Measured;

/* Off by so much on average: measured on another implementation than the shipped calibration stands for. */
#define OTHER_KERNELS 0.1

static bool
is_alike (const LsTimedKernel *a, const LsTimedKernel *b)
{
  return a->kernel.kind == b->kernel.kind && a->kernel.dtype == b->kernel.dtype && a->what == b->what;
}

static double
mean_error (const Fixture *x, const GArray *kernels, const LsTimedKernel *like)
{
  double sum = 0, n = 0;
  for (guint i = 0; i < kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    if (!is_alike (t, like))
      continue;
    sum += log (t->measured_s / predict_s (x, t));
    n++;
  }
  return sum / n;
}

static void
take_rows (Measured *d, guint which, const Fixture *x, char **lines, const GArray *kernels)
{
  bool is_other[LS_N_KERNEL_KINDS][LS_N_DTYPES] = { 0 }, is_seen[LS_N_KERNEL_KINDS][LS_N_DTYPES] = { 0 };
  for (guint i = 0; i < kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    guint kind = t->kernel.kind, dtype = t->kernel.dtype;
    if (t->what == LS_TIMED_USUAL && !is_seen[kind][dtype])
      is_other[kind][dtype] = fabs (mean_error (x, kernels, t)) > OTHER_KERNELS;
    is_seen[kind][dtype] |= t->what == LS_TIMED_USUAL;
    if (t->what == LS_TIMED_USUAL && is_other[kind][dtype])
      continue;
    g_ptr_array_add (d->source[which].rows, g_strdup (lines[t->row + 1]));
    g_array_append_vals (d->kernels, t, 1);
  }
}

/* Of text, which they are cut out of. */
static GPtrArray *
lines_of (char *text)
{
  GPtrArray *lines = g_ptr_array_new ();
  for (char *line = text, *end; line; line = end) {
    g_ptr_array_add (lines, line);
    end = strchr (line, '\n');
    if (end)
      *end++ = '\0';
  }
  return lines;
}

static void
source_load (Measured *d, guint which, const Fixture *x, const char *file)
{
  g_autofree char *path = g_build_filename (ls_test_shared_data (), "kernels", file, NULL), *text = NULL;
  d->source[which].rows = g_ptr_array_new_with_free_func (g_free);
  if (!g_file_get_contents (path, &text, NULL, NULL))
    return;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GArray) kernels = ls_read_kernels (file, text, x->gpu.calibration, NULL, NULL, diags);
  g_autoptr (GPtrArray) lines = lines_of (text);
  d->source[which].header = g_strdup (lines->pdata[0]);
  if (kernels) /* NULL: none is of this GPU */
    take_rows (d, which, x, (char **) lines->pdata, kernels);
}

static Measured
measured_load (const Fixture *x)
{
  Measured d = { .kernels = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel)) };
  g_autofree char *gemm = g_strdup_printf ("gemm_%s.csv", x->gpu.calibration),
                  *attention = g_strdup_printf ("attn_fwd_%s.csv", x->gpu.calibration);
  const char *const files[N_SOURCES] = { gemm, attention, "elementwise_vidur.csv" };
  for (guint i = 0; i < N_SOURCES; i++)
    source_load (&d, i, x, files[i]);
  return d;
}

static void
measured_clear (Measured *d)
{
  for (guint i = 0; i < N_SOURCES; i++) {
    g_free (d->source[i].header);
    g_ptr_array_unref (d->source[i].rows);
  }
  g_array_unref (d->kernels);
}

static bool
has_common_divisor (guint a, guint b)
{
  while (b > 0) {
    guint rest = a % b;
    a = b;
    b = rest;
  }
  return a > 1;
}

/* Rows that lie together, or n of them a step apart that leaves out none in the end: each at most once. */
static void
append_rows (GString *csv, const Source *s, guint n, bool is_together, GRand *rand)
{
  guint n_all = s->rows->len;
  if (n_all == 0)
    return;
  guint first = (guint) g_rand_int_range (rand, 0, (gint32) n_all), step = 1;
  while (!is_together && (step == 1 || has_common_divisor (step, n_all)))
    step = (guint) g_rand_int_range (rand, 2, (gint32) n_all);
  g_string_append (csv, s->header);
  for (guint k = 0; k < MIN (n, n_all); k++)
    g_string_append_printf (csv, "\n%s", (char *) s->rows->pdata[(first + (guint64) k * step) % n_all]);
}

static Files
subset_of (const Measured *d, guint mix, guint n, bool is_together, GRand *rand)
{
  Files files = files_new ();
  for (guint i = 0; i < N_SOURCES; i++)
    if (mix & (1u << i))
      append_rows (files.text[i], &d->source[i], n, is_together, rand);
  return files;
}

typedef struct {
  double was, now, n;
} ClassError;

enum { N_DECADES = 20 };

static double
error_of (const Fixture *x, const LsCalibration *c, const LsTimedKernel *t)
{
  return fabs (log (ls_fit_predict_s (ls_calibration_fit (c, &t->kernel), &x->gpu, t) / t->measured_s));
}

/* Kernel kinds by number format and decade of their work. Timers of others are too coarse for small streams. */
static void
check_classes (const Fixture *x, const LsCalibration *c, const GArray *kernels, const char *what)
{
  ClassError e[LS_N_DTYPES][LS_N_KERNEL_KINDS][N_DECADES] = { 0 };
  for (guint i = 0; i < kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    bool is_matrix = t->kernel.kind <= LS_KERNEL_ATTENTION_BWD;
    double work = is_matrix ? t->kernel.flops : t->kernel.bytes;
    if (t->what != LS_TIMED_USUAL || (!is_matrix && work < 8e6))
      continue;
    ClassError *at = &e[t->kernel.dtype][t->kernel.kind][CLAMP ((int) log10 (work), 0, N_DECADES - 1)];
    at->was += error_of (x, &x->shipped, t);
    at->now += error_of (x, c, t);
    at->n++;
  }
  for (guint i = 0; i < LS_N_DTYPES * LS_N_KERNEL_KINDS * N_DECADES; i++) {
    guint dtype = i / (LS_N_KERNEL_KINDS * N_DECADES), kind = i / N_DECADES % LS_N_KERNEL_KINDS;
    const ClassError *at = &e[dtype][kind][i % N_DECADES];
    ls_check_impl (at->now <= at->was + WORSE * at->n, __FILE__, __LINE__,
                   "%s: %s %s of 1e%u: %g are off by %.1f %%, were by %.1f %%", what,
                   ls_kernel_kind_names[kind].name, ls_dtype_name (dtype), i % N_DECADES, at->n,
                   100 * at->now / at->n, 100 * at->was / at->n);
  }
}

/* ---- tests ---- */

static void
check_subset (const Fixture *x, const Measured *d, guint32 seed)
{
  static const guint counts[] = { 1, 3, 10, 30, 100, 300, 1000 };
  GRand *rand = g_rand_new_with_seed (seed);
  guint mix = (guint) g_rand_int_range (rand, 1, N_MIXES),
        n = counts[g_rand_int_range (rand, 0, G_N_ELEMENTS (counts))];
  bool is_together = g_rand_boolean (rand);
  Files files = subset_of (d, mix, n, is_together, rand);
  g_autofree char *what = g_strdup_printf ("%s, seed %u: %u rows of mix %u%s", x->name, seed, n, mix,
                                           is_together ? ", together" : "");
  LsCalibration c;
  if (check_moves (x, &files, what, &c)) {
    check_classes (x, &c, d->kernels, what);
    ls_calibration_clear (&c);
  }
  files_clear (&files);
  g_rand_free (rand);
}

static void
measured_kernels_make_nothing_worse (void)
{
  guint n = ls_test_cases (4, 10);
  for (guint machine = 0; ls_test_shared_data () && machine < G_N_ELEMENTS (machines); machine++) {
    Fixture x;
    if (!fixture_load (&x, machine))
      return;
    Measured d = measured_load (&x);
    LS_CHECK_INT (d.kernels->len, >, 1000);
    for (guint seed = 1; seed <= n; seed++)
      check_subset (&x, &d, seed);
    measured_clear (&d);
    fixture_clear (&x);
  }
}

/* ---- predicted ---- */

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
  g_autoptr (GArray) rows = ls_read_kernels ("t.csv", one, x->gpu.calibration, NULL, NULL, diags);
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
  if (!LS_CHECK (doc && ls_data_file_read (&ls_calibration_file, doc, &c, diags)))
    return;
  const LsKindFit *forward = &c.kind[LS_KERNEL_ATTENTION_FWD], *backward = &c.kind[LS_KERNEL_ATTENTION_BWD];
  LS_CHECK (strstr (json, "no data: as the forward") != NULL);
  LS_CHECK (forward->is_fitted && !backward->is_fitted);
  LS_CHECK_DOUBLE (backward->compute_efficiency, ==, forward->compute_efficiency);
  LS_CHECK_DOUBLE (backward->memory_efficiency, ==, forward->memory_efficiency);
  LS_CHECK_INT (backward->launch, ==, forward->launch);
  ls_calibration_clear (&c);
}

LS_TEST_SUITE (LS_TEST (measured_kernels_make_nothing_worse), LS_TEST (predicted_kernels_move_nothing),
               LS_TEST (a_backward_without_data_runs_as_the_forward))
