#include "calibrate/nccl_fit.h"

#include <math.h>

#include "calibrate/calibrate_fit.h"
#include "calibrate/solve.h"

#define SMALL_WEIGHT 0.5
#define N_ITERATIONS 2000
#define SIMPLEX_SIZE 1e-4
#define NOTHING      1e-6 /* of a ratio */
#define WIDE         1e15 /* bytes/s: more than any collective asks for */

/* --- curves --- */

LsNcclCurve *
ls_nccl_curve_new (const char *name, LsCollKind kind, uint32_t n_gpus, uint32_t n_nodes)
{
  LsNcclCurve *c = g_new0 (LsNcclCurve, 1);
  *c = (LsNcclCurve) { .name = g_strdup (name), .kind = kind, .n_gpus = n_gpus, .n_nodes = n_nodes };
  c->held_out = n_gpus == 4 || n_gpus == 32; /* never fitted */
  c->points = g_array_new (FALSE, FALSE, sizeof (LsNcclPoint));
  return c;
}

void
ls_nccl_curve_free (void *curve)
{
  LsNcclCurve *c = curve;
  g_free (c->name);
  g_array_unref (c->points);
  g_free (c);
}

/* --- prediction --- */

static LsLinkSpec
ideal (const LsLinkSpec *link)
{
  return (LsLinkSpec) { .bandwidth_bytes_per_s = link->bandwidth_bytes_per_s, .efficiency = 1 };
}

LsCluster *
ls_nccl_wide_cluster (const LsClusterSpec *spec, uint32_t n_nodes, GError **error)
{
  const LsLinkSpec wide = { .bandwidth_bytes_per_s = WIDE, .efficiency = 1 };
  LsClusterSpec s = *spec; /* borrows; the cluster copies */
  s.n_nodes = n_nodes;
  s.network.faults = NULL;
  s.gpu.hbm_bytes_per_s = WIDE;
  s.gpu.hbm_efficiency = 1;
  s.server.nvlink = s.server.pcie = s.server.cpu_interconnect = s.server.cpu_memory = wide;
  if (s.server.c2c.bandwidth_bytes_per_s > 0)
    s.server.c2c = wide;
  if (s.server.write_bridge.bandwidth_bytes_per_s > 0)
    s.server.write_bridge = s.server.write_sockets = wide;
  s.nics.port = ideal (&spec->nics.port);
  s.network.spine = ideal (&spec->network.spine);
  s.network.core = ideal (&spec->network.core);
  return ls_cluster_build (&s, error);
}

double
ls_nccl_predict_s (const LsCluster *cluster, const LsNccl *nccl, const LsNcclCurve *c, uint64_t bytes,
                   LsArena *arena)
{
  g_autofree uint32_t *gpus = g_new (uint32_t, c->n_gpus);
  uint32_t per_node = c->n_gpus / c->n_nodes;
  for (uint32_t i = 0; i < c->n_gpus; i++)
    gpus[i] = i / per_node * cluster->spec.gpus_per_node + i % per_node;
  LsCollRequest request = { .kind = c->kind, .gpus = gpus, .n = c->n_gpus, .bytes = bytes };
  return ls_time_to_s (
      ls_coll_time_alone (cluster, ls_coll_plan (cluster, nccl, &request, LS_NETWORK_FLOW, arena)));
}

/* --- the numbers --- */

double
ls_nccl_get (const LsNccl *nccl, const LsNcclFitted *f)
{
  return ls_number_get (nccl, f->offset, f->unit == LS_NCCL_TIME);
}

static void
nccl_set (LsNccl *nccl, const LsNcclFitted *f, double value)
{
  ls_number_set (nccl, f->offset, f->unit == LS_NCCL_TIME, value);
}

char *
ls_nccl_spell (const LsNccl *nccl, const LsNcclFitted *f)
{
  static const struct {
    const char *unit;
    double scale;
  } units[] = { [LS_NCCL_TIME] = { "us", 1e6 },
                [LS_NCCL_BYTES] = { "MB", 1e-6 },
                [LS_NCCL_RATE] = { "GB/s", 1e-9 },
                [LS_NCCL_RATIO] = { "", 1 } };
  return g_strdup_printf ("%.3g%s", ls_nccl_get (nccl, f) * units[f->unit].scale, units[f->unit].unit);
}

/* What data that do not show a figure may at most drive it to: what a file may say. */
static const double most[]
    = { [LS_NCCL_TIME] = 1, [LS_NCCL_BYTES] = 1e12, [LS_NCCL_RATE] = WIDE, [LS_NCCL_RATIO] = 16 };

static LsNccl
nccl_at (const LsNcclProblem *p, const gsl_vector *x)
{
  LsNccl nccl = *p->fixed;
  for (size_t i = 0; p->fitted[i].name; i++)
    nccl_set (&nccl, &p->fitted[i], fmin (exp (gsl_vector_get (x, i)), most[p->fitted[i].unit]));
  p->complete (&nccl, p->fitted);
  return nccl;
}

static LsNccl
rounded (const LsNcclProblem *p, const LsNccl *nccl)
{
  LsNccl r = *nccl;
  for (const LsNcclFitted *f = p->fitted; f->name; f++) {
    double value = ls_nccl_get (nccl, f);
    nccl_set (&r, f, f->unit == LS_NCCL_RATIO && value < NOTHING ? 0 : ls_fit_round (value, 3));
  }
  p->complete (&r, p->fitted);
  return r;
}

/* --- fit --- */

static double
loss_of_curve (const LsNcclProblem *p, const LsNccl *nccl, const LsNcclCurve *c)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  double sum[2] = { 0 };
  uint32_t n[2] = { 0 };
  for (guint k = 0; k < c->points->len; k++) {
    const LsNcclPoint *point = &g_array_index (c->points, LsNcclPoint, k);
    int side = point->bytes >= LS_NCCL_SMALL_BYTES;
    sum[side]
        += ls_huber (log (ls_nccl_predict_s (p->cluster, nccl, c, point->bytes, arena) / point->measured_s));
    n[side]++;
  }
  return SMALL_WEIGHT * sum[0] / MAX (n[0], 1) + sum[1] / MAX (n[1], 1);
}

static double
loss (const gsl_vector *x, void *data)
{
  const LsNcclProblem *p = data;
  LsNccl nccl = nccl_at (p, x);
  double sum = 0;
  for (guint i = 0; i < p->curves->len; i++) {
    const LsNcclCurve *c = p->curves->pdata[i];
    if (!c->held_out)
      sum += loss_of_curve (p, &nccl, c);
  }
  return sum;
}

LsNccl
ls_nccl_fit (const LsNcclProblem *p, double *ret_loss)
{
  size_t n = 0;
  while (p->fitted[n].name)
    n++;
  gsl_vector *x = gsl_vector_alloc (n);
  for (size_t i = 0; i < n; i++)
    gsl_vector_set (x, i, log (p->fitted[i].start));
  double before = INFINITY, after = ls_descend (loss, p, x, 0.5, N_ITERATIONS, SIMPLEX_SIZE);
  while (before - after > 1e-5) {
    before = after;
    after = ls_descend (loss, p, x, 0.2, N_ITERATIONS, SIMPLEX_SIZE);
  }
  LsNccl nccl = nccl_at (p, x);
  gsl_vector_free (x);
  if (ret_loss)
    *ret_loss = after;
  return rounded (p, &nccl);
}

/* --- which figures of an NCCL file measured collectives can tell --------------------------------- */

#define DELTA      0.02 /* of ln, in differences             */
#define MOVES      0.1  /* of a point, for all of the figure */
#define MIN_POINTS 2
#define SCATTER    0.01
#define MOST_ERROR 0.25

static size_t
n_points (const LsNcclProblem *p)
{
  size_t n = 0;
  for (guint i = 0; i < p->curves->len; i++) {
    const LsNcclCurve *c = p->curves->pdata[i];
    n += c->held_out ? 0 : c->points->len;
  }
  return n;
}

/* ln (predicted / measured) of each point that is fitted. */
static void
residuals (const LsNcclProblem *p, const LsNccl *nccl, double *ret)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  for (guint i = 0; i < p->curves->len; i++) {
    const LsNcclCurve *c = p->curves->pdata[i];
    for (guint k = 0; k < c->points->len && !c->held_out; k++) {
      const LsNcclPoint *point = &g_array_index (c->points, LsNcclPoint, k);
      *ret++ = log (ls_nccl_predict_s (p->cluster, nccl, c, point->bytes, arena) / point->measured_s);
    }
  }
}

static void
residuals_with (const LsNcclProblem *p, const LsNccl *at, size_t j, double value, double *ret)
{
  LsNccl other = *at;
  nccl_set (&other, &p->fitted[j], value);
  p->complete (&other, p->fitted);
  residuals (p, &other, ret);
}

/* At the start: a figure that a fit drives to 0 would depend on nothing there. */
static guint
set_column (const LsNcclProblem *p, const LsNccl *at, size_t j, gsl_matrix *J)
{
  size_t n = n_points (p);
  g_autofree double *here = g_new (double, n), *beside = g_new (double, n);
  guint n_moving = 0;
  residuals_with (p, at, j, p->fitted[j].start, here);
  residuals_with (p, at, j, p->fitted[j].start * exp (DELTA), beside);
  for (size_t i = 0; i < n; i++) {
    double slope = (beside[i] - here[i]) / DELTA;
    n_moving += fabs (slope) >= MOVES;
    gsl_matrix_set (J, i, j, slope);
  }
  return n_moving;
}

static size_t
worst_of (const gsl_matrix *J, size_t n_fitted, double scatter, double *ret_error)
{
  LsSvd svd;
  size_t worst = n_fitted;
  double largest = MOST_ERROR;
  ls_svd_init (&svd, J);
  for (size_t j = 0; j < n_fitted; j++) {
    ret_error[j] = scatter * sqrt (ls_svd_variance (&svd, j));
    if (ret_error[j] > largest) {
      largest = ret_error[j];
      worst = j;
    }
  }
  ls_svd_clear (&svd);
  return worst;
}

size_t
ls_nccl_untold (const LsNcclProblem *p, const LsNccl *at, double *ret_error, const char **ret_why)
{
  size_t n = n_points (p), n_fitted = 0, first = SIZE_MAX;
  while (p->fitted[n_fitted].name)
    ret_error[n_fitted++] = NAN;
  if (n_fitted == 0)
    return 0;
  g_autofree double *r = g_new0 (double, n);
  gsl_matrix *J = gsl_matrix_calloc (MAX (n, n_fitted), n_fitted);
  double sum = 0;
  residuals (p, at, r);
  for (size_t i = 0; i < n; i++)
    sum += r[i] * r[i];
  for (size_t j = 0; j < n_fitted; j++)
    if (set_column (p, at, j, J) < MIN_POINTS && first == SIZE_MAX)
      first = j;
  *ret_why = first < n_fitted ? "no size depends on it" : "these sizes cannot tell it from others";
  if (first == SIZE_MAX)
    first = worst_of (J, n_fitted, fmax (SCATTER, sqrt (sum / (double) MAX (n, n_fitted + 1))), ret_error);
  gsl_matrix_free (J);
  return first;
}
