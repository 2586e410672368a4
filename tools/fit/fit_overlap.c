/* tools/fit/fit_overlap.c — what a collective costs a kernel beside it: fits
 * stall_per_byte of nccl-a100 (topologies/calib).
 *
 *     build/tools/fit/fit_overlap ../shared/data/kernels/mist_a100_40gb_overlap.csv topologies
 *     build/tools/fit/fit_overlap --check ...     exit 1 if the file says otherwise
 *
 * Data: GEMMs and all-gathers on A100-40G, alone and together (2, 4 and 8 GPUs of one
 * node). Sizes there are taken for MiB: 3936 "MB" in 16.75 ms then have a bus bandwidth of
 * 216 GB/s on 8 GPUs, of 240 that NCCL's rings have. A GEMM that takes a alone beside an
 * all-gather that takes b:
 *
 *     rate   x = 1 - rho - kappa S / (B b)       while the all-gather runs
 *     end    max (b, a / x) if the GEMM ends first, else b + a - b x
 *
 * rho = channels / SMs is counted, S the array, B the HBM's rate, kappa is fitted: the
 * golden-section minimum of the mean |log (predicted / measured)| (gsl_min). Held out:
 * pairs (GEMM, size) whose md5 of "n,MB", as a hexadecimal number, is 0 mod 5, on all
 * numbers of GPUs. Beside it two models without physics: no slowdown, max (a, b), and a
 * constant, c max (a, b) with the best c. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/machines/machines.h"
#include "data/text/csv.h"

#define MIB 1048576.0

typedef struct {
  double gemm, mib, copies; /* n of the GEMM; all-gather; copies to and from the host, MiB */
  uint32_t n_gpus;
  double gemm_s, gather_s, copies_s; /* alone */
  double together_s;
  bool is_held_out;
} Pair;

typedef struct {
  const GArray *pairs; /* Pair */
  double rho, hbm;     /* bytes/s */
} Fit;

typedef double (*Model) (const Fit *fit, double parameter, const Pair *p);

/* --- models --------------------------------------------------------------------- */

static double
stalled (const Fit *fit, double kappa, const Pair *p)
{
  double x = 1 - fit->rho - kappa * p->mib * MIB / (fit->hbm * p->gather_s);
  double end = p->gemm_s <= p->gather_s * x ? p->gather_s : p->gather_s + p->gemm_s - p->gather_s * x;
  return fmax (end, p->copies_s);
}

static double
constant (const Fit *fit, double factor, const Pair *p)
{
  return fmax (factor * fmax (p->gemm_s, p->gather_s), p->copies_s);
}

/* --- errors --------------------------------------------------------------------- */

typedef struct {
  double mape, worst;
  guint n;
} Errors;

typedef bool (*Filter) (const Pair *p);

static bool
is_fitted (const Pair *p)
{
  return !p->is_held_out && p->copies == 0;
}
static bool
is_held_out (const Pair *p)
{
  return p->is_held_out && p->copies == 0;
}
static bool
has_copies (const Pair *p)
{
  return p->copies > 0;
}

static Errors
errors_of (const Fit *fit, Model model, double parameter, Filter filter)
{
  Errors e = { 0 };
  for (guint i = 0; i < fit->pairs->len; i++) {
    const Pair *p = &g_array_index (fit->pairs, Pair, i);
    if (!filter (p))
      continue;
    double error = 100 * (model (fit, parameter, p) / p->together_s - 1);
    e.mape += fabs (error);
    e.worst = fabs (error) > fabs (e.worst) ? error : e.worst;
    e.n++;
  }
  e.mape /= MAX (1, e.n);
  return e;
}

typedef struct {
  const Fit *fit;
  Model model;
} Objective;

static double
loss (double parameter, void *data)
{
  const Objective *o = data;
  double sum = 0;
  for (guint i = 0; i < o->fit->pairs->len; i++) {
    const Pair *p = &g_array_index (o->fit->pairs, Pair, i);
    if (is_fitted (p))
      sum += fabs (log (o->model (o->fit, parameter, p) / p->together_s));
  }
  return sum;
}

static double
best (const Fit *fit, Model model, double low, double start, double high)
{
  Objective o = { fit, model };
  gsl_function f = { loss, &o };
  gsl_min_fminimizer *m = gsl_min_fminimizer_alloc (gsl_min_fminimizer_goldensection);
  gsl_min_fminimizer_set (m, &f, start, low, high);
  while (gsl_min_fminimizer_x_upper (m) - gsl_min_fminimizer_x_lower (m) > 1e-7)
    gsl_min_fminimizer_iterate (m);
  double x = gsl_min_fminimizer_x_minimum (m);
  gsl_min_fminimizer_free (m);
  return x;
}

/* --- data ----------------------------------------------------------------------- */

static double
number (const LsCsv *csv, guint row, const char *column)
{
  return g_ascii_strtod (ls_csv_cell (csv, row, (guint) ls_csv_column (csv, column)), NULL);
}

/* Seconds of the row with exactly these parts; NAN if there is none. */
static double
time_of (const LsCsv *csv, double n_gpus, double gemm, double gather, double h2d, double d2h)
{
  for (guint i = 0; i < ls_csv_n_rows (csv); i++)
    if (number (csv, i, "intra_group") == n_gpus && number (csv, i, "inter_group") == 1
        && number (csv, i, "compute_n") == gemm && number (csv, i, "allgather_MB") == gather
        && number (csv, i, "h2d_MB") == h2d && number (csv, i, "d2h_MB") == d2h)
      return number (csv, i, "latency_ms") * 1e-3;
  return NAN;
}

static bool
hold_out (double gemm, double mib)
{
  g_autofree char *key = g_strdup_printf ("%.0f,%.0f", gemm, mib);
  g_autofree char *md5 = g_compute_checksum_for_string (G_CHECKSUM_MD5, key, -1);
  uint32_t rest = 0;
  for (const char *c = md5; *c; c++)
    rest = (rest * 16 + (uint32_t) g_ascii_xdigit_value (*c)) % 5;
  return rest == 0;
}

static GArray *
read_pairs (const LsCsv *csv)
{
  GArray *pairs = g_array_new (FALSE, FALSE, sizeof (Pair));
  for (guint i = 0; i < ls_csv_n_rows (csv); i++) {
    double h2d = number (csv, i, "h2d_MB"), d2h = number (csv, i, "d2h_MB");
    Pair p = { .gemm = number (csv, i, "compute_n"),
               .mib = number (csv, i, "allgather_MB"),
               .copies = h2d + d2h,
               .n_gpus = (uint32_t) number (csv, i, "intra_group"),
               .together_s = number (csv, i, "latency_ms") * 1e-3 };
    if (number (csv, i, "inter_group") != 1 || p.gemm == 0 || p.mib == 0)
      continue;
    p.gemm_s = time_of (csv, p.n_gpus, p.gemm, 0, 0, 0);
    p.gather_s = time_of (csv, p.n_gpus, 0, p.mib, 0, 0);
    p.copies_s = p.copies > 0 ? time_of (csv, p.n_gpus, 0, 0, h2d, d2h) : 0;
    p.is_held_out = hold_out (p.gemm, p.mib);
    if (p.gemm_s > 0 && p.gather_s > 0 && p.copies_s >= 0)
      g_array_append_val (pairs, p);
  }
  return pairs;
}

/* --- report --------------------------------------------------------------------- */

static Errors
print_model (const Fit *fit, const char *name, Model model, double parameter)
{
  Errors fitted = errors_of (fit, model, parameter, is_fitted),
         held = errors_of (fit, model, parameter, is_held_out),
         copies = errors_of (fit, model, parameter, has_copies);
  printf ("%-26s %8.4f %8.2f %8.1f %8.2f %8.1f %8.2f %8.1f\n", name, parameter, fitted.mape, fitted.worst,
          held.mape, held.worst, copies.mape, copies.worst);
  return held;
}

static int
report (const Fit *fit, double shipped, bool is_check)
{
  double kappa = best (fit, stalled, 0, 1, 3), factor = best (fit, constant, 1, 1.2, 2);
  Errors count = errors_of (fit, stalled, kappa, is_fitted),
         held_n = errors_of (fit, stalled, kappa, is_held_out),
         copies_n = errors_of (fit, stalled, kappa, has_copies);
  printf (
      "GEMM together with all-gather, A100-40G: %u pairs fitted, %u held out, %u with copies to or from the host besides\n",
      count.n, held_n.n, copies_n.n);
  printf ("%-26s %8s %17s %17s %17s\n", "", "", "fitted", "held out", "with copies");
  printf ("%-26s %8s %8s %8s %8s %8s %8s %8s\n", "model", "value", "mape %", "worst %", "mape %", "worst %",
          "mape %", "worst %");
  print_model (fit, "no slowdown", constant, 1);
  Errors plain = print_model (fit, "a constant", constant, factor);
  Errors ours = print_model (fit, "stall_per_byte", stalled, kappa);
  printf ("SMs held: %.3f of the GPU; the file says stall_per_byte %.2f\n", fit->rho, shipped);
  if (!is_check)
    return 0;
  bool is_same = fabs (shipped - round (kappa * 100) / 100) < 1e-9, is_better = ours.mape < plain.mape / 4;
  if (!is_same)
    printf ("expected stall_per_byte %.2f in the file\n", kappa);
  if (!is_better)
    printf ("expected less than a quarter of the error of a constant\n");
  return is_same && is_better ? 0 : 1;
}

static int
fail (LsDiagList *diags)
{
  g_autoptr (GError) error = NULL;
  ls_diag_list_to_error (diags, &error);
  fprintf (stderr, "%s\n", error ? error->message : "?");
  return 3;
}

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "C");
  bool is_check = argc > 1 && strcmp (argv[1], "--check") == 0;
  if (argc != (is_check ? 4 : 3)) {
    fprintf (stderr, "usage: fit_overlap [--check] MIST.csv TOPOLOGIES\n");
    return 2;
  }
  const char *data = argv[argc - 2], *folder = argv[argc - 1];
  if (is_check && !g_file_test (data, G_FILE_TEST_EXISTS)) {
    printf ("skipped: %s is not there\n", data);
    return 77;
  }
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *nccl_path = g_build_filename (folder, "calib", "nccl.set.json#nccl-a100", NULL);
  g_autofree char *cluster_path = g_build_filename (folder, "measured.set.json#azure-ndv4-a100-40g", NULL);
  g_autoptr (LsCsv) csv = ls_csv_parse (data, NULL, -1, diags);
  LsNccl nccl = { 0 };
  LsClusterSpec spec = { 0 };
  if (!csv || !ls_data_file_load (&ls_nccl_file, nccl_path, &nccl, diags)
      || !ls_cluster_load (cluster_path, &spec, diags))
    return fail (diags);
  g_autoptr (GArray) pairs = read_pairs (csv);
  Fit fit = { pairs, nccl.channels_ring * nccl.sm_share_per_channel, spec.gpu.hbm_bytes_per_s };
  int status = report (&fit, nccl.stall_per_byte, is_check);
  ls_nccl_clear (&nccl);
  ls_cluster_spec_clear (&spec);
  return status;
}
