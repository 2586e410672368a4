/* tools/fit/fit_nccl.c — fits the NCCL constants of topologies/calib/nccl-*.json
 * to measured collectives, with the very functions that predict them.
 *
 *     build/tools/fit/fit_nccl ../shared/data/collectives/collectives.csv
 *
 * Per GPU generation six numbers are fitted; everything else is fixed, from
 * NCCL's own tables or published measurements (see fixed_a100, fixed_h100). Data:
 * rows of trust A, sizes of 1 MiB and more. A curve is one (cluster, op, gpus);
 * curves weigh alike, however many points they have. Curves with gpus = 4 or 32
 * are held out whole: they are printed, never fitted. LS_FIT_POINTS=1 prints every
 * point.
 *
 * Objective: the mean over curves of the mean Huber loss of log (predicted /
 * measured), delta 0.1, so that outliers count linearly. Minimiser: Nelder-Mead
 * (gsl_multimin_fminimizer_nmsimplex2) on the logarithms, restarted until it
 * stays. Links are made wider than any collective: what is fitted is the limit
 * of NCCL, not of a link. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network/coll.h"

#define MIN_BYTES   (1024 * 1024)
#define HUBER_DELTA 0.1
#define N_FITTED    6
#define MAX_GPUS    32

typedef struct {
  LsCollKind kind;
  uint32_t n_gpus, n_nodes;
  uint64_t bytes;
  double measured_s;
} Point;

typedef struct {
  char *cluster;
  LsCollKind kind;
  uint32_t n_gpus;
  GArray *points; /* Point */
} Curve;

/* One number that may be fitted: where it lives, how it is printed. Times are
 * LsTime in the struct and microseconds here. */
typedef struct {
  const char *name;
  size_t offset, also; /* also: a second field that takes the same value, or 0 */
  enum { IS_TIME, IS_BYTES, IS_RATE, IS_RATIO } unit;
  double start;
} Fitted;

typedef struct {
  const char *name;
  const char *clusters[3];
  LsNccl fixed;
  Fitted fitted[N_FITTED];
} Generation;

#define AT(field) offsetof (LsNccl, field)

/* Fixed numbers: NCCL 2.30.7 graph search and tuning.cc (MODELS.md 2.1); p2p_intra
 * NVLink p2p as measured (network_hw.csv). */
static const Generation generations[] = {
  { .name = "a100",
    .clusters = { "dgx-a100-80g", "azure-ndv4-a100-40g" },
    .fixed = { .channels_ring = 24,
               .channels_net = 2,
               .channels_p2p = 2,
               .ring_bus_intra = 240e9,
               .p2p_intra = 274e9,
               .p2p_inter = 20e9,
               .base_p2p_intra = 12 * LS_US,
               .base_p2p_inter = 36 * LS_US,
               .hop_inter = 14 * LS_US },
    .fitted = { { "base_all_reduce", AT (base_all_reduce), 0, IS_TIME, 10 },
                { "base_all_gather", AT (base_all_gather), AT (base_reduce_scatter), IS_TIME, 10 },
                { "hop_intra", AT (hop_intra), 0, IS_TIME, 2 },
                { "ramp_bytes", AT (ramp_bytes), 0, IS_BYTES, 20e6 },
                { "drain", AT (drain), 0, IS_RATIO, 0.5 },
                { "ring_bus_per_nic", AT (ring_bus_per_nic), 0, IS_RATE, 16e9 } } },
  { .name = "h100",
    .clusters = { "dgx-h100" },
    .fixed = { .channels_ring = 24,
               .channels_net = 2,
               .channels_nvls = 16,
               .channels_p2p = 2,
               .ring_bus_intra = 360e9,
               .ring_bus_per_nic = 36.5e9,
               .p2p_intra = 376e9,
               .p2p_inter = 40e9,
               .base_nvls = 25 * LS_US,
               .base_p2p_intra = 8 * LS_US,
               .base_p2p_inter = 36 * LS_US,
               .hop_inter = 14 * LS_US },
    .fitted = { { "base_all_reduce", AT (base_all_reduce), 0, IS_TIME, 10 },
                { "base_all_gather", AT (base_all_gather), AT (base_reduce_scatter), IS_TIME, 10 },
                { "hop_intra", AT (hop_intra), 0, IS_TIME, 2 },
                { "ramp_bytes", AT (ramp_bytes), 0, IS_BYTES, 20e6 },
                { "drain", AT (drain), 0, IS_RATIO, 0.5 },
                { "nvls_bus", AT (nvls_bus), 0, IS_RATE, 476e9 } } },
};

/* --- data --- */

static bool
parse_op (const char *op, LsCollKind *ret_kind)
{
  if (strcmp (op, "p2p") == 0) {
    *ret_kind = LS_COLL_SEND_RECV;
    return true;
  }
  for (LsCollKind kind = 0; kind < LS_COLL_SEND_RECV; kind++)
    if (strcmp (op, ls_coll_kind_name (kind)) == 0) {
      *ret_kind = kind;
      return true;
    }
  return false;
}

static Curve *
curve_of (GPtrArray *curves, const char *cluster, LsCollKind kind, uint32_t n_gpus)
{
  for (guint i = 0; i < curves->len; i++) {
    Curve *c = curves->pdata[i];
    if (strcmp (c->cluster, cluster) == 0 && c->kind == kind && c->n_gpus == n_gpus)
      return c;
  }
  Curve *c = g_new0 (Curve, 1);
  c->cluster = g_strdup (cluster);
  c->kind = kind;
  c->n_gpus = n_gpus;
  c->points = g_array_new (FALSE, FALSE, sizeof (Point));
  g_ptr_array_add (curves, c);
  return c;
}

static void
curve_free (void *data)
{
  Curve *c = data;
  g_free (c->cluster);
  g_array_unref (c->points);
  g_free (c);
}

/* The first seven columns hold no quotes: cluster, trust, op, gpus, nodes,
 * size_bytes, time_us. */
static GPtrArray *
read_curves (const char *path, const Generation *g, GError **error)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, error))
    return NULL;
  GPtrArray *curves = g_ptr_array_new_with_free_func (curve_free);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (size_t i = 1; lines[i]; i++) {
    g_auto (GStrv) f = g_strsplit (lines[i], ",", 8);
    LsCollKind kind;
    if (g_strv_length (f) < 8 || strcmp (f[1], "A") != 0 || !parse_op (f[2], &kind)
        || !g_strv_contains ((const char *const *) g->clusters, f[0]))
      continue;
    Point p = { .kind = kind,
                .n_gpus = (uint32_t) strtoul (f[3], NULL, 10),
                .n_nodes = (uint32_t) strtoul (f[4], NULL, 10),
                .bytes = g_ascii_strtoull (f[5], NULL, 10),
                .measured_s = g_ascii_strtod (f[6], NULL) * 1e-6 };
    if (p.bytes >= MIN_BYTES && p.n_gpus <= MAX_GPUS)
      g_array_append_val (curve_of (curves, f[0], kind, p.n_gpus)->points, p);
  }
  return curves;
}

static bool
is_held_out (const Curve *c)
{
  return c->n_gpus == 4 || c->n_gpus == 32;
}

/* --- prediction --- */

static LsCluster *
wide_cluster (void)
{
  LsLinkSpec wide = { .bandwidth_bytes_per_s = 1e15, .efficiency = 1 };
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
                         .nic = wide,
                         .rails = 8,
                         .nodes_per_leaf = 20,
                         .oversubscription = 1,
                         .spine = wide };
  return ls_cluster_build (&spec, NULL);
}

static double
predict_s (const LsCluster *cluster, const LsNccl *nccl, const Point *p)
{
  uint32_t gpus[MAX_GPUS];
  uint32_t per_node = p->n_gpus / p->n_nodes;
  for (uint32_t i = 0; i < p->n_gpus; i++)
    gpus[i] = i / per_node * cluster->spec.gpus_per_node + i % per_node;
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *plan
      = ls_coll_plan (cluster, nccl, p->kind, gpus, p->n_gpus, p->bytes, LS_NETWORK_FLOW, arena);
  return ls_time_to_s (ls_coll_time_alone (cluster, plan));
}

/* --- fit --- */

typedef struct {
  const Generation *generation;
  const LsCluster *cluster;
  GPtrArray *curves;
} Problem;

static void
set_field (LsNccl *nccl, size_t offset, const Fitted *f, double value)
{
  char *at = (char *) nccl + offset;
  if (f->unit == IS_TIME)
    *(LsTime *) at = ls_time_from_s (value * 1e-6);
  else
    *(double *) at = value;
}

static LsNccl
nccl_at (const Generation *g, const gsl_vector *x)
{
  LsNccl nccl = g->fixed;
  for (size_t i = 0; i < N_FITTED; i++) {
    set_field (&nccl, g->fitted[i].offset, &g->fitted[i], exp (gsl_vector_get (x, i)));
    if (g->fitted[i].also)
      set_field (&nccl, g->fitted[i].also, &g->fitted[i], exp (gsl_vector_get (x, i)));
  }
  return nccl;
}

static double
huber (double e)
{
  double a = fabs (e);
  return a <= HUBER_DELTA ? 0.5 * a * a : HUBER_DELTA * (a - 0.5 * HUBER_DELTA);
}

static double
loss (const gsl_vector *x, void *data)
{
  const Problem *p = data;
  LsNccl nccl = nccl_at (p->generation, x);
  double sum = 0;
  for (guint i = 0; i < p->curves->len; i++) {
    const Curve *c = p->curves->pdata[i];
    if (is_held_out (c) || c->kind == LS_COLL_SEND_RECV)
      continue;
    double curve = 0;
    for (guint k = 0; k < c->points->len; k++) {
      const Point *point = &g_array_index (c->points, Point, k);
      curve += huber (log (predict_s (p->cluster, &nccl, point) / point->measured_s));
    }
    sum += curve / c->points->len;
  }
  return sum;
}

static double
descend (Problem *p, gsl_vector *x, double step)
{
  gsl_multimin_function f = { .f = loss, .n = N_FITTED, .params = p };
  gsl_vector *steps = gsl_vector_alloc (N_FITTED);
  gsl_vector_set_all (steps, step);
  gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc (gsl_multimin_fminimizer_nmsimplex2, N_FITTED);
  gsl_multimin_fminimizer_set (m, &f, x, steps);
  for (int i = 0; i < 2000; i++)
    if (gsl_multimin_fminimizer_iterate (m) != GSL_SUCCESS || gsl_multimin_fminimizer_size (m) < 1e-5)
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
  gsl_vector *x = gsl_vector_alloc (N_FITTED);
  for (size_t i = 0; i < N_FITTED; i++)
    gsl_vector_set (x, i, log (p->generation->fitted[i].start));
  double before = INFINITY, after = descend (p, x, 0.5);
  while (before - after > 1e-7) {
    before = after;
    after = descend (p, x, 0.2);
  }
  LsNccl nccl = nccl_at (p->generation, x);
  printf ("%s: loss %.5f\n", p->generation->name, after);
  static const char *const units[]
      = { [IS_TIME] = "us", [IS_BYTES] = "B", [IS_RATE] = "B/s", [IS_RATIO] = "" };
  for (size_t i = 0; i < N_FITTED; i++) {
    const Fitted *f = &p->generation->fitted[i];
    printf ("  %-18s %.4g%s\n", f->name, exp (gsl_vector_get (x, i)), units[f->unit]);
  }
  gsl_vector_free (x);
  return nccl;
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
print_error (const char *what, const Error *e)
{
  if (e->n > 0)
    printf ("  %-44s n %3u  MAPE %5.1f %%  bias %+6.1f %%  worst %+6.1f %%\n", what, e->n,
            100 * e->abs_sum / e->n, 100 * e->sum / e->n, 100 * e->worst);
}

static void
report (const Problem *p, const LsNccl *nccl)
{
  Error sides[3] = { 0 };
  for (guint i = 0; i < p->curves->len; i++) {
    const Curve *c = p->curves->pdata[i];
    Error e = { 0 };
    int side = c->kind == LS_COLL_SEND_RECV ? 2 : is_held_out (c);
    for (guint k = 0; k < c->points->len; k++) {
      const Point *point = &g_array_index (c->points, Point, k);
      double relative = predict_s (p->cluster, nccl, point) / point->measured_s - 1;
      count (&e, relative);
      count (&sides[side], relative);
      if (g_getenv ("LS_FIT_POINTS"))
        printf ("    %s %s %u %8.1f MiB %10.1f us %+6.1f %%\n", c->cluster, ls_coll_kind_name (c->kind),
                c->n_gpus, point->bytes / 1048576.0, point->measured_s * 1e6, 100 * relative);
    }
    static const char *const marks[] = { "", " (held out)", " (not fitted)" };
    g_autofree char *what
        = g_strdup_printf ("%s %s %u%s", c->cluster, ls_coll_kind_name (c->kind), c->n_gpus, marks[side]);
    print_error (what, &e);
  }
  print_error ("all fitted curves", &sides[0]);
  print_error ("all held-out curves", &sides[1]);
}

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "C");
  gsl_set_error_handler_off ();
  if (argc != 2) {
    fprintf (stderr, "usage: %s collectives.csv\n", argv[0]);
    return 2;
  }
  g_autoptr (LsCluster) cluster = wide_cluster ();
  for (size_t i = 0; i < G_N_ELEMENTS (generations); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GPtrArray) curves = read_curves (argv[1], &generations[i], &error);
    if (!curves) {
      fprintf (stderr, "%s\n", error->message);
      return 3;
    }
    Problem p = { .generation = &generations[i], .cluster = cluster, .curves = curves };
    LsNccl nccl = fit (&p);
    report (&p, &nccl);
  }
  return 0;
}
