/* Random subsets of the measured tables that the shipped calibrations were fitted to, scattered or rows that
 * lie together, as a user's own: of all kernels measured no class gets an error that is 2 points larger; what
 * nobody measured, and whole steps, move by no more than 2 %, as there the full calibration is all that is
 * known. */
#include "support/calibration_check.h"

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
  g_autoptr (GArray) kernels = ls_read_kernels (file, text, x->gpu.calibration, NULL, diags);
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

LS_TEST_SUITE (LS_TEST (measured_kernels_make_nothing_worse))
