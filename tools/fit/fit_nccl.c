/* tools/fit/fit_nccl.c — fits the NCCL constants of topologies/calib/nccl-*.json to
 * measured collectives, with the very functions that predict them.
 *
 *     fit_nccl DATA CALIB           fit, print the constants and the errors
 *     fit_nccl --check DATA CALIB   the same, and exit 1 if a shipped constant differs;
 *                                   exit 77 (skip) where the data are not
 *
 * DATA: collectives.csv. CALIB: the folder of the files, which also hold what is not
 * fitted, with its sources. Per generation at most six numbers are fitted; H100 and H200,
 * B200 and GB200 share theirs. Data: rows of trust A, all sizes (V100: trust B, one curve,
 * two numbers). A curve is one (cluster, op, gpus); curves weigh alike, however many points
 * they have, and their points below 1 MiB together half as much as those above. Curves with
 * 4 or 32 GPUs are held out whole: they are printed, never fitted. LS_FIT_POINTS=1 prints
 * every point.
 *
 * Objective: the sum over curves of the mean Huber loss of log (predicted / measured),
 * delta 0.1, so that outliers count linearly. Minimiser: Nelder-Mead
 * (gsl_multimin_fminimizer_nmsimplex2) on the logarithms, restarted until it stays.
 * Results are rounded to three digits, and judged so. Links are made wider than any
 * collective, NICs too as far as rings fill them: what is fitted is the limit of NCCL, not
 * of a link. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "curves.h"
#include "io/read_nccl.h"

#define SMALL_BYTES  (1024 * 1024)
#define SMALL_WEIGHT 0.5
#define HUBER_DELTA  0.1
#define MAX_FITTED   6
#define MAX_GPUS     32
#define SKIP         77

/* One number that is fitted: where it lives, how it is printed. Times are LsTime in the
 * struct, and seconds here. */
typedef struct {
  const char *name;
  size_t offset;
  enum { IS_TIME, IS_BYTES, IS_RATE, IS_RATIO } unit;
  double start;
} Fitted;

#define FIT(field, unit, start) { #field, offsetof (LsNccl, field), unit, start }

typedef struct {
  const char *files[3], *clusters[3], *trust;
  uint32_t only_gpus; /* curves of others are left aside; 0: none are */
  double nic;         /* bytes/s of one, 8 to a node */
  Fitted fitted[MAX_FITTED + 1];
} Generation;

static const Generation generations[] = {
  /* The GPUs are joined by a mesh: fewer than 8 have the bandwidth of their links. */
  { .files = { "nccl-v100" },
    .clusters = { "v100-nvswitch" },
    .trust = "B",
    .only_gpus = 8,
    .nic = 12.5e9,
    .fitted = { FIT (hop_intra, IS_TIME, 1e-6), FIT (ramp_bytes, IS_BYTES, 8e6) } },
  { .files = { "nccl-a100" },
    .clusters = { "dgx-a100-80g", "azure-ndv4-a100-40g" },
    .trust = "A",
    .nic = 25e9,
    .fitted = { FIT (base_all_reduce, IS_TIME, 8e-6), FIT (hop_intra, IS_TIME, 1e-6), FIT (handshake, IS_TIME, 7e-6),
                FIT (ramp_bytes, IS_BYTES, 8e6), FIT (drain, IS_RATIO, 0.5), FIT (ring_bus_per_nic, IS_RATE, 16e9) } },
  { .files = { "nccl-h100", "nccl-h200" },
    .clusters = { "dgx-h100", "dgx-h200" },
    .trust = "A",
    .nic = 50e9,
    .fitted = { FIT (base_all_reduce, IS_TIME, 5e-6), FIT (hop_intra, IS_TIME, 1e-6), FIT (handshake, IS_TIME, 7e-6),
                FIT (ramp_bytes, IS_BYTES, 8e6), FIT (drain, IS_RATIO, 0.5), FIT (self_copy, IS_RATIO, 0.2) } },
  { .files = { "nccl-b200", "nccl-gb200" },
    .clusters = { "dgx-b200", "gb200-nvl72" },
    .trust = "A",
    .nic = 50e9,
    .fitted = { FIT (base_all_reduce, IS_TIME, 8e-6), FIT (hop_intra, IS_TIME, 1e-6), FIT (handshake, IS_TIME, 5e-6),
                FIT (ramp_bytes, IS_BYTES, 8e6), FIT (drain, IS_RATIO, 0.5), FIT (nvls_bus, IS_RATE, 800e9) } },
};

typedef struct {
  const Generation *generation;
  const LsCluster *cluster;
  LsNccl fixed;
  GPtrArray *curves; /* LsFitCurve */
  size_t n_fitted;
} Problem;

/* --- prediction --- */

static LsCluster *
wide_cluster (double nic)
{
  LsLinkSpec wide = { .bandwidth_bytes_per_s = 1e15, .efficiency = 1 };
  LsLinkSpec net = { .bandwidth_bytes_per_s = nic, .efficiency = 1 }; /* NCCL's choice sees it */
  LsClusterSpec spec = { .gpu = { .hbm_bytes_per_s = 1e15, .hbm_efficiency = 1 },
                         .n_nodes = MAX_GPUS / 8,
                         .gpus_per_node = 8,
                         .nvswitch_planes = 6,
                         .nvlinks_per_gpu = 12,
                         .nvlink = wide,
                         .pcie_switches = 4,
                         .pcie = wide,
                         .cpu_sockets = 2,
                         .cpu_interconnect = wide,
                         .cpu_memory = wide,
                         .nics = 8,
                         .nic = net,
                         .rails = 8,
                         .nodes_per_leaf = 20,
                         .oversubscription = 1,
                         .spine = net };
  g_autoptr (GError) error = NULL;
  LsCluster *c = ls_cluster_build (&spec, &error);
  if (!c)
    g_error ("%s", error->message);
  return c;
}

static double
predict_s (const LsCluster *cluster, const LsNccl *nccl, const LsFitCurve *c, uint64_t bytes, LsArena *arena)
{
  uint32_t gpus[MAX_GPUS];
  uint32_t per_node = c->n_gpus / c->n_nodes;
  for (uint32_t i = 0; i < c->n_gpus; i++)
    gpus[i] = i / per_node * cluster->spec.gpus_per_node + i % per_node;
  LsCollRequest request = { .kind = c->kind, .gpus = gpus, .n = c->n_gpus, .bytes = bytes };
  return ls_time_to_s (ls_coll_time_alone (cluster, ls_coll_plan (cluster, nccl, &request, LS_NETWORK_FLOW, arena)));
}

/* --- the numbers --- */

static double
get (const LsNccl *nccl, const Fitted *f)
{
  const char *at = (const char *) nccl + f->offset;
  return f->unit == IS_TIME ? ls_time_to_s (*(const LsTime *) at) : *(const double *) at;
}

static void
set (LsNccl *nccl, const Fitted *f, double value)
{
  char *at = (char *) nccl + f->offset;
  if (f->unit == IS_TIME)
    *(LsTime *) at = ls_time_from_s (value);
  else
    *(double *) at = value;
}

/* What follows from the fitted ones: one base for all, a single send with its hop, and
 * copies to oneself like those at the end of a ring unless fitted. */
static void
complete (LsNccl *nccl, const Generation *g)
{
  bool has_self_copy = false;
  for (const Fitted *f = g->fitted; f->name; f++)
    has_self_copy = has_self_copy || f->offset == offsetof (LsNccl, self_copy);
  nccl->base_all_gather = nccl->base_reduce_scatter = nccl->base_all_reduce;
  nccl->base_p2p_intra = nccl->base_all_reduce + nccl->hop_intra;
  if (!has_self_copy)
    nccl->self_copy = nccl->drain;
}

static LsNccl
nccl_at (const Problem *p, const gsl_vector *x)
{
  LsNccl nccl = p->fixed;
  for (size_t i = 0; i < p->n_fitted; i++)
    set (&nccl, &p->generation->fitted[i], exp (gsl_vector_get (x, i)));
  complete (&nccl, p->generation);
  return nccl;
}

static double
three_digits (double value)
{
  char text[32];
  return g_ascii_strtod (g_ascii_formatd (text, sizeof text, "%.3g", value), NULL);
}

static LsNccl
rounded (const Problem *p, const LsNccl *nccl)
{
  LsNccl r = *nccl;
  for (const Fitted *f = p->generation->fitted; f->name; f++)
    set (&r, f, three_digits (get (nccl, f)));
  complete (&r, p->generation);
  return r;
}

/* --- fit --- */

static double
huber (double e)
{
  double a = fabs (e);
  return a <= HUBER_DELTA ? 0.5 * a * a : HUBER_DELTA * (a - 0.5 * HUBER_DELTA);
}

static double
loss_of_curve (const Problem *p, const LsNccl *nccl, const LsFitCurve *c)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  double sum[2] = { 0 };
  uint32_t n[2] = { 0 };
  for (guint k = 0; k < c->points->len; k++) {
    const LsFitPoint *point = &g_array_index (c->points, LsFitPoint, k);
    int side = point->bytes >= SMALL_BYTES;
    sum[side] += huber (log (predict_s (p->cluster, nccl, c, point->bytes, arena) / point->measured_s));
    n[side]++;
  }
  return SMALL_WEIGHT * sum[0] / MAX (n[0], 1) + sum[1] / MAX (n[1], 1);
}

static double
loss (const gsl_vector *x, void *data)
{
  const Problem *p = data;
  LsNccl nccl = nccl_at (p, x);
  double sum = 0;
  for (guint i = 0; i < p->curves->len; i++) {
    const LsFitCurve *c = p->curves->pdata[i];
    if (!ls_fit_is_held_out (c))
      sum += loss_of_curve (p, &nccl, c);
  }
  return sum;
}

static double
descend (Problem *p, gsl_vector *x, double step)
{
  gsl_multimin_function f = { .f = loss, .n = p->n_fitted, .params = p };
  gsl_vector *steps = gsl_vector_alloc (p->n_fitted);
  gsl_vector_set_all (steps, step);
  gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc (gsl_multimin_fminimizer_nmsimplex2, p->n_fitted);
  gsl_multimin_fminimizer_set (m, &f, x, steps);
  for (int i = 0; i < 2000; i++)
    if (gsl_multimin_fminimizer_iterate (m) != GSL_SUCCESS || gsl_multimin_fminimizer_size (m) < 1e-4)
      break;
  gsl_vector_memcpy (x, m->x);
  double value = m->fval;
  gsl_multimin_fminimizer_free (m);
  gsl_vector_free (steps);
  return value;
}

static LsNccl
fit (Problem *p)
{
  gsl_vector *x = gsl_vector_alloc (p->n_fitted);
  for (size_t i = 0; i < p->n_fitted; i++)
    gsl_vector_set (x, i, log (p->generation->fitted[i].start));
  double before = INFINITY, after = descend (p, x, 0.5);
  while (before - after > 1e-5) {
    before = after;
    after = descend (p, x, 0.2);
  }
  LsNccl nccl = nccl_at (p, x);
  gsl_vector_free (x);
  printf ("%s: loss %.5f\n", p->generation->files[0], after);
  return rounded (p, &nccl);
}

/* --- report --- */

typedef struct {
  double abs_sum, sum, worst;
  uint32_t n;
} Error;

static void
count (Error *e, double relative)
{
  e->abs_sum += fabs (relative);
  e->sum += relative;
  e->worst = fabs (relative) > fabs (e->worst) ? relative : e->worst;
  e->n++;
}

static void
print_error (const char *what, const char *sizes, const Error *e)
{
  if (e->n > 0)
    printf ("  %-46s %-8s n %3u  MAPE %5.1f %%  bias %+6.1f %%  worst %+6.1f %%\n", what, sizes, e->n,
            100 * e->abs_sum / e->n, 100 * e->sum / e->n, 100 * e->worst);
}

static void
print_errors (const char *what, const Error e[2])
{
  print_error (what, "< 1 MiB", &e[0]);
  print_error (what, ">= 1 MiB", &e[1]);
}

static void
report_curve (const Problem *p, const LsNccl *nccl, const LsFitCurve *c, Error all[2][2])
{
  Error e[2] = { 0 };
  g_autoptr (LsArena) arena = ls_arena_new ();
  bool is_held_out = ls_fit_is_held_out (c);
  for (guint k = 0; k < c->points->len; k++) {
    const LsFitPoint *point = &g_array_index (c->points, LsFitPoint, k);
    int side = point->bytes >= SMALL_BYTES;
    double relative = predict_s (p->cluster, nccl, c, point->bytes, arena) / point->measured_s - 1;
    count (&e[side], relative);
    count (&all[is_held_out][side], relative);
    if (g_getenv ("LS_FIT_POINTS"))
      printf ("    %s %s %u %12.1f KiB %10.1f us %+6.1f %%\n", c->cluster, ls_coll_kind_name (c->kind), c->n_gpus,
              (double) point->bytes / 1024, point->measured_s * 1e6, 100 * relative);
  }
  g_autofree char *what = g_strdup_printf ("%s %s %u%s", c->cluster, ls_coll_kind_name (c->kind), c->n_gpus,
                                           is_held_out ? " (held out)" : "");
  print_errors (what, e);
}

static void
report (const Problem *p, const LsNccl *nccl)
{
  static const struct {
    const char *unit;
    double scale;
  } units[] = { [IS_TIME] = { "us", 1e6 }, [IS_BYTES] = { "MB", 1e-6 }, [IS_RATE] = { "GB/s", 1e-9 }, [IS_RATIO] = { "", 1 } };
  for (const Fitted *f = p->generation->fitted; f->name; f++)
    printf ("  %-18s %.3g%s\n", f->name, get (nccl, f) * units[f->unit].scale, units[f->unit].unit);
  Error all[2][2] = { 0 };
  for (guint i = 0; i < p->curves->len; i++)
    report_curve (p, nccl, p->curves->pdata[i], all);
  print_errors ("all fitted curves", all[0]);
  print_errors ("all held-out curves", all[1]);
}

/* --- against what is shipped --- */

static bool
load (const char *folder, const char *name, LsNccl *ret_nccl)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  g_autofree char *path = g_build_filename (folder, file, NULL);
  bool ok = ls_nccl_load (path, ret_nccl, diags);
  if (!ok)
    fprintf (stderr, "%s: cannot be read\n", path);
  return ok;
}

static uint32_t
count_differences (const Problem *p, const LsNccl *fitted, const char *folder)
{
  static const Fitted derived[] = { FIT (base_all_reduce, IS_TIME, 0), FIT (base_all_gather, IS_TIME, 0),
                                    FIT (base_reduce_scatter, IS_TIME, 0), FIT (base_p2p_intra, IS_TIME, 0),
                                    FIT (self_copy, IS_RATIO, 0) };
  uint32_t n_bad = 0;
  for (size_t i = 0; p->generation->files[i]; i++) {
    LsNccl shipped;
    if (!load (folder, p->generation->files[i], &shipped))
      return 1;
    for (size_t k = 0; k < p->n_fitted + G_N_ELEMENTS (derived); k++) {
      const Fitted *f = k < p->n_fitted ? &p->generation->fitted[k] : &derived[k - p->n_fitted];
      double is = get (&shipped, f), should = get (fitted, f);
      if (fabs (is - should) <= 1e-9 * should)
        continue;
      printf ("  %s: %s is %.6g, fitted %.6g\n", p->generation->files[i], f->name, is, should);
      n_bad++;
    }
    ls_nccl_clear (&shipped);
  }
  return n_bad;
}

static void
leave_aside (GPtrArray *curves, uint32_t only_gpus)
{
  for (guint i = curves->len; i-- > 0 && only_gpus > 0;)
    if (((const LsFitCurve *) curves->pdata[i])->n_gpus != only_gpus)
      g_ptr_array_remove_index (curves, i);
}

/* How many shipped constants differ; negative: a file is missing. */
static int
run (const Generation *g, const char *data, const char *folder)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) cluster = wide_cluster (g->nic);
  g_autoptr (GPtrArray) curves = ls_fit_read_curves (data, g->clusters, g->trust, &error);
  Problem p = { .generation = g, .cluster = cluster, .curves = curves };
  if (!curves)
    fprintf (stderr, "%s\n", error->message);
  if (!curves || !load (folder, g->files[0], &p.fixed))
    return -1;
  leave_aside (curves, g->only_gpus);
  while (g->fitted[p.n_fitted].name)
    p.n_fitted++;
  LsNccl nccl = fit (&p);
  report (&p, &nccl);
  int n_bad = (int) count_differences (&p, &nccl, folder);
  ls_nccl_clear (&p.fixed);
  return n_bad;
}

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "C");
  gsl_set_error_handler_off ();
  bool is_check = argc == 4 && strcmp (argv[1], "--check") == 0;
  if (argc != 3 && !is_check) {
    fprintf (stderr, "usage: fit_nccl [--check] DATA CALIB\n");
    return 2;
  }
  const char *data = argv[argc - 2], *folder = argv[argc - 1];
  if (is_check && !g_file_test (data, G_FILE_TEST_EXISTS)) {
    printf ("skipped: measured data not here\n");
    return SKIP;
  }
  int n_bad = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (generations); i++) {
    int n = run (&generations[i], data, folder);
    if (n < 0)
      return 3;
    n_bad += n;
  }
  printf ("%d shipped constants differ\n", n_bad);
  return is_check && n_bad > 0 ? 1 : 0;
}
