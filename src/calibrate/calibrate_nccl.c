#include "calibrate/calibrate_nccl.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "ask/collective/collective_table.h"
#include "base/list.h"
#include "calibrate/calibrate_fit.h"
#include "calibrate/solve.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/measured/read_nccl_tests.h"
#include "job/hardware.h"
#include "network/nccl/nccl.h"

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
  for (const LsLinkRow *row = ls_cluster_links; row->name; row++) {
    LsLinkSpec *link = ls_cluster_link (&s, row);
    if (row->place == LS_LINKS_OF_FABRIC)
      *link = (LsLinkSpec) { .bandwidth_bytes_per_s = link->bandwidth_bytes_per_s, .efficiency = 1 };
    else if (link->bandwidth_bytes_per_s > 0)
      *link = wide;
  }
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

/* J_ij: by how much ln (time) of point i moves for ln (figure j), by differences of 2 % from where the
 * fit of j starts, with the others as they were fitted. Of the points that are fitted
 *
 *   two at least must move by a tenth of what the figure does: else no size depends on it (a bandwidth, of
 *   1 to 16 KiB);
 *   the standard error s sqrt ((J'J)^-1_jj) must be below 0.25: else it trades with others, and the worst
 *   one goes
 *
 * with s the larger of 1 %, what runs of nccl-tests scatter by (a guess), and the root mean square of what is
 * left. */

#define DELTA      0.02 /* of ln, in differences             */
#define MOVES      0.1  /* of a point, for all of the figure */
#define MIN_POINTS 2
#define SCATTER    0.01
#define MOST_ERROR 0.25

/* That are fitted. */
static size_t
n_points (const GPtrArray *curves)
{
  size_t n = 0;
  for (guint i = 0; i < curves->len; i++) {
    const LsNcclCurve *c = curves->pdata[i];
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
  size_t n = n_points (p->curves);
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

/* The first of p->fitted that they cannot tell at these figures, and why (static); their number: all are
 * told. ret_error: standard errors of their ln, as far as known. */
static size_t
find_untold (const LsNcclProblem *p, const LsNccl *at, double *ret_error, const char **ret_why)
{
  size_t n = n_points (p->curves), n_fitted = 0, first = SIZE_MAX;
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

/* ---- files of nccl-tests as curves ---- */

static void
complain (const LsNcclTests *t, LsDiagList *diags, const char *hint, const char *message)
{
  ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, t->line > 0, NULL, NULL, hint, "%s", message);
}

static bool
kind_of (const LsNcclTests *t, LsCollKind *ret_kind, LsDiagList *diags)
{
  g_autoptr (GError) error = NULL;
  const char *op = ls_nccl_tests_op (t);
  if (op && ls_collective_find_kind (op, ret_kind, &error))
    return true;
  g_autofree char *message = error ? g_strdup (error->message)
      : t->test                    ? g_strdup_printf ("%s_perf times nothing that is modelled", t->test)
                                   : g_strdup_printf ("%s does not say which operation ran",
                                   t->line > 0 ? "the run that begins here" : "the file");
  const char *hint
      = t->line > 0 ? "give it as a file of its own, with --op" : "say it with --op, such as --op all-reduce";
  complain (t, diags, error || t->test ? NULL : hint, message);
  return false;
}

static bool
check_shape (const LsCalibrateNccl *run, const LsNcclTests *t, LsCollKind kind, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags), per_node = run->hardware->spec.gpus_per_node;
  g_autofree char *message = NULL;
  if (t->n_ranks < 2)
    message = g_strdup ("expected 2 ranks or more; got 1");
  else if (t->n_ranks % t->n_hosts != 0 || t->n_ranks / t->n_hosts > per_node)
    message
        = g_strdup_printf ("%u ranks on %u host%s; a node of %s has %u %s, and all hosts must use as many",
                           t->n_ranks, t->n_hosts, t->n_hosts > 1 ? "s" : "", run->hardware->spec.name,
                           per_node, ls_cluster_chip_word (&run->hardware->spec, per_node));
  else if (kind == LS_COLL_BARRIER)
    message = g_strdup ("a barrier has no sizes, and nccl-tests does not time it");
  else if (kind == LS_COLL_SEND_RECV && t->n_ranks != 2)
    message = g_strdup_printf (
        "a send is between 2 ranks; sendrecv_perf on %u shifts around a ring, which is not modelled",
        t->n_ranks);
  if (message)
    complain (t, diags, NULL, message);
  return ls_diag_list_n (diags) == n_before;
}

static LsNcclCurve *
curve_for (LsCalibrateNccl *run, LsCollKind kind, guint n_ranks, guint n_hosts)
{
  for (guint i = 0; i < run->curves->len; i++) {
    LsNcclCurve *c = g_ptr_array_index (run->curves, i);
    if (c->kind == kind && c->n_gpus == n_ranks && c->n_nodes == n_hosts)
      return c;
  }
  g_autofree char *name = g_strdup_printf ("%s, %u %s on %u node%s", ls_coll_kind_name (kind), n_ranks,
                                           ls_cluster_chip_word (&run->hardware->spec, n_ranks), n_hosts,
                                           n_hosts > 1 ? "s" : "");
  LsNcclCurve *c = ls_nccl_curve_new (name, kind, n_ranks, n_hosts);
  g_ptr_array_add (run->curves, c);
  return c;
}

/* Of a table: why its rows are not for this fit; NULL: they are. Those of another operation than --op, of
 * another cluster, and those that `collective --compare` leaves out too. */
static char *
passed_over (const LsCalibrateNccl *run, const LsNcclTests *t, const LsCollKind *asked)
{
  const char *cluster = run->hardware->spec.name;
  LsCollKind kind;
  if (asked && t->op && ls_collective_find_kind (t->op, &kind, NULL) && kind != *asked)
    return g_strdup ("another operation");
  if (t->trust && strcmp (t->trust, "A") != 0)
    return g_strdup_printf ("trust %s", *t->trust ? t->trust : "is not said");
  return t->op && *t->cluster && strcmp (t->cluster, cluster) != 0
      ? g_strdup_printf ("of cluster %s", t->cluster)
      : NULL;
}

static void
add_run (LsCalibrateNccl *run, const LsNcclTests *t, const LsCollKind *asked, LsDiagList *diags)
{
  LsCollKind kind = asked ? *asked : LS_COLL_ALL_REDUCE;
  if (((t->op || !asked) && !kind_of (t, &kind, diags)) || !check_shape (run, t, kind, diags))
    return;
  LsNcclCurve *curve = curve_for (run, kind, t->n_ranks, t->n_hosts);
  for (guint i = 0; i < t->rows->len; i++) {
    const LsNcclTestsRow *row = &g_array_index (t->rows, LsNcclTestsRow, i);
    ls_list_add (curve->points, &(LsNcclPoint) { row->bytes, row->time_us * 1e-6 });
  }
  ls_note (run->report.files, "%s: %s, %u size%s%s%s", t->path, curve->name, t->rows->len,
           t->rows->len == 1 ? "" : "s", t->gpu ? "; " : "", t->gpu ? t->gpu : "");
}

static void
add_file (LsCalibrateNccl *run, const char *path, const LsCollKind *asked, LsDiagList *diags)
{
  g_autoptr (GPtrArray) runs = ls_nccl_tests_parse (path, NULL, 0, diags);
  bool is_table = runs && ((const LsNcclTests *) runs->pdata[0])->op;
  if (runs && runs->len > 1 && asked && !is_table) {
    g_autofree char *message = g_strdup_printf (
        "--op is of one operation; this file holds %u runs, each of which says its own, or not at all",
        runs->len);
    complain (runs->pdata[0], diags, "leave out --op, or give a file for each", message);
    return;
  }
  for (guint i = 0; runs && i < runs->len; i++) {
    const LsNcclTests *t = runs->pdata[i];
    g_autofree char *why = passed_over (run, t, asked);
    if (why)
      ls_note (run->report.files, "%s: passed over: %s on %u, %u size%s: %s", t->path, t->op, t->n_ranks,
               t->rows->len, t->rows->len == 1 ? "" : "s", why);
    else
      add_run (run, t, asked, diags);
  }
  if (is_table && run->curves->len == 0 && ls_diag_list_n (diags) == 0)
    complain (runs->pdata[0], diags, "write the name of --cluster, or nothing, into that column",
              "no row is of this cluster, of --op and of trust A");
  while (runs && runs->len > 0)
    g_ptr_array_add (run->tests, g_ptr_array_steal_index (runs, 0));
}

/* Cluster and files, into curves. Errors as of ls_calibrate_nccl_new(). */
static gboolean
calibrate_nccl_load (LsCalibrateNccl *run, const LsCalibrateNcclSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsCollKind asked = LS_COLL_ALL_REDUCE;
  if (spec->op && !ls_collective_find_kind (spec->op, &asked, error))
    return FALSE;
  run->hardware = ls_hardware_load (spec->cluster, diags);
  if (!run->hardware)
    return ls_diag_list_to_error (diags, error);
  run->report.cluster = g_strdup (run->hardware->spec.name);
  if (!ls_cluster_traits (&run->hardware->spec)->has_nccl)
    return ls_fail (error, LS_ERROR_UNSUPPORTED, "%s: NCCL does not run on a torus", spec->cluster);
  if (!ls_hardware_check_alike (&run->hardware->spec, "a fit of NCCL", error))
    return FALSE;
  g_autofree char *name = ls_hardware_nccl_name (&run->hardware->spec.gpu);
  run->base = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  for (const char *const *file = spec->files; *file; file++)
    add_file (run, *file, spec->op ? &asked : NULL, diags);
  bool all = true; /* if the rule holds all of them out, none is */
  for (guint i = 0; i < run->curves->len; i++)
    all = all && ((const LsNcclCurve *) run->curves->pdata[i])->held_out;
  for (guint i = 0; all && i < run->curves->len; i++)
    ((LsNcclCurve *) run->curves->pdata[i])->held_out = false;
  return ls_diag_list_to_error (diags, error);
}

/* --- the file --------------------------------------------------------------------------------------- */

/* The base file with another name and source and these changes (LsNcclChange), each with `why` as its
 * source; all else as it was. Newly allocated. */
static char *
rewrite (const LsJsonDoc *base, const char *name, const char *source, const GArray *changes, const char *why)
{
  cJSON *root = cJSON_Duplicate (ls_json_doc_root (base), true);
  cJSON *sources = cJSON_DetachItemFromObjectCaseSensitive (root, "sources");
  if (!sources)
    sources = cJSON_CreateObject ();
  cJSON_ReplaceItemInObjectCaseSensitive (root, "name", cJSON_CreateString (name));
  cJSON_ReplaceItemInObjectCaseSensitive (root, "source", cJSON_CreateString (source));
  for (guint i = 0; i < changes->len; i++) {
    const LsNcclChange *c = &g_array_index (changes, LsNcclChange, i);
    g_autofree char *reason
        = g_strconcat (c->is_derived ? "follows from what was fitted: " : "fitted: ", why, NULL);
    cJSON *value
        = c->is_number ? cJSON_CreateNumber (g_ascii_strtod (c->now, NULL)) : cJSON_CreateString (c->now);
    if (!cJSON_ReplaceItemInObjectCaseSensitive (root, c->key, value))
      cJSON_AddItemToObject (root, c->key, value);
    cJSON_DeleteItemFromObjectCaseSensitive (sources, c->key);
    cJSON_AddItemToObject (sources, c->key, cJSON_CreateString (reason));
  }
  cJSON_AddItemToObject (root, "sources", sources);
  char *text = ls_cluster_print (root);
  cJSON_Delete (root);
  return text;
}

/* --- the fit ---------------------------------------------------------------------------------------- */

#define MAX_FITTED        16
#define POINTS_PER_FIGURE 2 /* at least */

static LsCalibrateNccl *
run_alloc (void)
{
  LsCalibrateNccl *run = g_new0 (LsCalibrateNccl, 1);
  run->tests = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_nccl_tests_free);
  run->curves = g_ptr_array_new_with_free_func (ls_nccl_curve_free);
  run->report.files = g_ptr_array_new_with_free_func (g_free);
  run->report.changes = ls_list_new (sizeof (LsNcclChange), ls_clear_3_texts);
  run->report.kept = ls_list_new (sizeof (LsNcclKept), ls_clear_text);
  run->report.curves = ls_list_new (sizeof (LsNcclFitCurve), ls_clear_text);
  return run;
}

void
ls_calibrate_nccl_free (LsCalibrateNccl *run)
{
  if (!run)
    return;
  ls_hardware_free (run->hardware);
  ls_json_doc_free (run->base);
  g_ptr_array_unref (run->tests);
  g_ptr_array_unref (run->curves);
  g_free (run->report.cluster);
  g_ptr_array_unref (run->report.files);
  g_array_unref (run->report.changes);
  g_array_unref (run->report.curves);
  g_array_unref (run->report.kept);
  g_free (run);
}

/* ---- what the curves show ---- */

/* As a file says it: for the links that its figures were measured on. Borrows all. */
static LsNccl
as_in_file (const LsCalibrateNccl *run, const LsNccl *nccl)
{
  LsNccl file, carried = *nccl;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (ls_data_file_read (&ls_nccl_file, run->base, &file, diags)) {
    ls_nccl_carry (&carried, &file.measured_on);
    ls_nccl_clear (&file);
  }
  return carried;
}

static void
add_kept (LsCalibrateNccl *run, const LsNcclFitted *f, const char *why)
{
  const LsNccl in_file = as_in_file (run, &run->hardware->nccl);
  ls_list_add (run->report.kept, &(LsNcclKept) { ls_nccl_spell (&in_file, f), f->name, why });
}

typedef struct {
  LsCalibrateNccl *run;
  LsNcclFitted list[MAX_FITTED + 1];
  guint n, max;
} Choice;

/* A start that is 0 says nothing of the order: then a usual figure stands in. */
static void
choose (Choice *c, bool is_shown, LsNcclFitted f)
{
  double start = ls_nccl_get (&c->run->hardware->nccl, &f);
  if (!is_shown)
    return;
  if (c->n == c->max) {
    add_kept (c->run, &f, "too few sizes: two for each that is fitted");
    return;
  }
  g_assert (c->n < MAX_FITTED);
  f.start = start > 0 ? start : f.start;
  c->list[c->n++] = f;
}

static bool
is_nvls (const LsCalibrateNccl *run, const LsNcclCurve *c)
{
  const LsClusterSpec *spec = &run->hardware->spec;
  return c->kind == LS_COLL_ALL_REDUCE && run->hardware->nccl.nvls_bus > 0 && spec->server.nvswitch_planes > 0
      && c->n_gpus / c->n_nodes == spec->gpus_per_node;
}

/* The steps of the curves inside a node: of one number only, a step and the start look alike. */
static bool
has_several_steps (const LsCalibrateNccl *run)
{
  uint32_t first = 0;
  for (guint i = 0; i < run->curves->len; i++) {
    const LsNcclCurve *c = run->curves->pdata[i];
    if (c->held_out || c->n_nodes > 1 || c->kind == LS_COLL_SEND_RECV)
      continue;
    uint32_t steps = (c->kind == LS_COLL_ALL_REDUCE ? 2 : 1) * (c->n_gpus - 1);
    if (first > 0 && steps != first)
      return true;
    first = steps;
  }
  return false;
}

static void
choose_all (const LsCalibrateNccl *run, Choice *choice)
{
  bool collective = false, ring = false, nvls = false, across = false, all_to_all = false,
       send[2] = { false };
  for (guint i = 0; i < run->curves->len; i++) {
    const LsNcclCurve *c = run->curves->pdata[i];
    bool is_across = c->n_nodes > 1;
    if (c->held_out)
      continue;
    if (c->kind == LS_COLL_SEND_RECV) {
      send[is_across] = true;
      continue;
    }
    collective = true;
    across = across || is_across;
    nvls = nvls || (!is_across && is_nvls (run, c));
    ring = ring || (!is_across && !is_nvls (run, c));
    all_to_all = all_to_all || c->kind == LS_COLL_ALL_TO_ALL;
  }
  bool steps = has_several_steps (run);
  choose (choice, collective, (LsNcclFitted) LS_NCCL_FIT (base_all_reduce, LS_NCCL_TIME, 8e-6));
  choose (choice, ring, (LsNcclFitted) LS_NCCL_FIT (ring_bus_intra, LS_NCCL_RATE, 200e9));
  choose (choice, nvls, (LsNcclFitted) LS_NCCL_FIT (nvls_bus, LS_NCCL_RATE, 400e9));
  choose (choice, across, (LsNcclFitted) LS_NCCL_FIT (ring_bus_per_nic, LS_NCCL_RATE, 16e9));
  choose (choice, send[0], (LsNcclFitted) LS_NCCL_FIT (p2p_intra, LS_NCCL_RATE, 200e9));
  choose (choice, send[1], (LsNcclFitted) LS_NCCL_FIT (p2p_inter, LS_NCCL_RATE, 20e9));
  choose (choice, send[1], (LsNcclFitted) LS_NCCL_FIT (base_p2p_inter, LS_NCCL_TIME, 30e-6));
  choose (choice, ring || nvls, (LsNcclFitted) LS_NCCL_FIT (ramp_bytes, LS_NCCL_BYTES, 8e6));
  choose (choice, across, (LsNcclFitted) LS_NCCL_FIT (hop_inter, LS_NCCL_TIME, 14e-6));
  choose (choice, collective, (LsNcclFitted) LS_NCCL_FIT (handshake, LS_NCCL_TIME, 5e-6));
  choose (choice, steps, (LsNcclFitted) LS_NCCL_FIT (hop_intra, LS_NCCL_TIME, 1e-6));
  choose (choice, ring && steps, (LsNcclFitted) LS_NCCL_FIT (drain, LS_NCCL_RATIO, 0.5));
  choose (choice, nvls, (LsNcclFitted) LS_NCCL_FIT (base_nvls, LS_NCCL_TIME, 25e-6));
  choose (choice, all_to_all, (LsNcclFitted) LS_NCCL_FIT (self_copy, LS_NCCL_RATIO, 0.2));
}

/* One base for all collectives; a send has a hop more. */
static void
complete (LsNccl *nccl, const LsNcclFitted *fitted)
{
  for (const LsNcclFitted *f = fitted; f->name; f++) {
    if (f->offset != offsetof (LsNccl, base_all_reduce))
      continue;
    nccl->base_all_gather = nccl->base_reduce_scatter = nccl->base_all_reduce;
    nccl->base_p2p_intra = nccl->base_all_reduce + nccl->hop_intra;
  }
}

/* ---- what the fit reached ---- */

static void
add_change (LsCalibrateNccl *run, const LsNcclFitted *f, const LsNccl *was, const LsNccl *now,
            bool is_derived, double error)
{
  LsNcclChange c = { g_strdup (f->name),
                     ls_nccl_spell (was, f),
                     ls_nccl_spell (now, f),
                     f->unit == LS_NCCL_RATIO,
                     is_derived,
                     error };
  if (is_derived && ls_nccl_get (was, f) == ls_nccl_get (now, f))
    ls_clear_3_texts (&c);
  else
    g_array_append_val (run->report.changes, c);
}

static void
add_changes (LsCalibrateNccl *run, const Choice *choice, const LsNccl *now, const double *error)
{
  static const LsNcclFitted derived[]
      = { LS_NCCL_FIT (base_all_gather, LS_NCCL_TIME, 0), LS_NCCL_FIT (base_reduce_scatter, LS_NCCL_TIME, 0),
          LS_NCCL_FIT (base_p2p_intra, LS_NCCL_TIME, 0) };
  const LsNccl before = as_in_file (run, &run->hardware->nccl), after = as_in_file (run, now);
  for (guint i = 0; i < choice->n; i++)
    add_change (run, &choice->list[i], &before, &after, false, error[i]);
  for (guint i = 0; i < G_N_ELEMENTS (derived); i++)
    add_change (run, &derived[i], &before, &after, true, NAN);
}

static void
count (LsFitError *e, double relative)
{
  e->mape += fabs (relative);
  e->bias += relative;
  e->n++;
}

static void
finish (LsFitError *e)
{
  e->mape /= MAX (e->n, 1);
  e->bias /= MAX (e->n, 1);
}

static void
judge (LsCalibrateNccl *run, const LsCluster *cluster, const LsNccl *nccl)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  for (guint i = 0; i < run->curves->len; i++) {
    const LsNcclCurve *c = run->curves->pdata[i];
    LsNcclFitCurve judged = { .name = g_strdup (c->name), .held_out = c->held_out };
    for (guint k = 0; k < c->points->len; k++) {
      const LsNcclPoint *p = &g_array_index (c->points, LsNcclPoint, k);
      int side = p->bytes >= LS_NCCL_SMALL_BYTES;
      double relative = ls_nccl_predict_s (cluster, nccl, c, p->bytes, arena) / p->measured_s - 1;
      count (&judged.error[side], relative);
      count (&run->report.all[c->held_out][side], relative);
    }
    finish (&judged.error[0]);
    finish (&judged.error[1]);
    g_array_append_val (run->report.curves, judged);
  }
  for (int i = 0; i < 4; i++)
    finish (&run->report.all[i / 2][i % 2]);
}

/* What cannot be told goes one after the other. */
static LsNccl
fit_told (LsCalibrateNccl *run, Choice *choice, const LsNcclProblem *problem, double *ret_error)
{
  LsNccl nccl = run->hardware->nccl;
  const char *why = NULL;
  while (choice->n > 0) {
    nccl = ls_nccl_fit (problem, NULL);
    size_t at = find_untold (problem, &nccl, ret_error, &why);
    if (at == choice->n)
      return nccl;
    add_kept (run, &choice->list[at], why);
    memmove (choice->list + at, choice->list + at + 1, (choice->n - at) * sizeof *choice->list);
    choice->n--;
  }
  return run->hardware->nccl;
}

static gboolean
fit (LsCalibrateNccl *run, GError **error)
{
  uint32_t n_nodes = 1;
  for (guint i = 0; i < run->curves->len; i++)
    n_nodes = MAX (n_nodes, ((const LsNcclCurve *) run->curves->pdata[i])->n_nodes);
  g_autoptr (LsCluster) cluster = ls_nccl_wide_cluster (&run->hardware->spec, n_nodes, error);
  if (!cluster)
    return FALSE;
  Choice choice = { .run = run };
  choice.max = (guint) CLAMP (n_points (run->curves) / POINTS_PER_FIGURE, 1, MAX_FITTED);
  choose_all (run, &choice);
  const LsNcclProblem problem = { .cluster = cluster,
                                  .fixed = &run->hardware->nccl,
                                  .fitted = choice.list,
                                  .curves = run->curves,
                                  .complete = complete };
  double errors[MAX_FITTED];
  LsNccl nccl = fit_told (run, &choice, &problem, errors);
  add_changes (run, &choice, &nccl, errors);
  judge (run, cluster, &nccl);
  return TRUE;
}

LsCalibrateNccl *
ls_calibrate_nccl_new (const LsCalibrateNcclSpec *spec, GError **error)
{
  if (!spec->files || !spec->files[0] || !spec->cluster)
    return ls_fail_null (error, LS_ERROR_USAGE,
                         spec->cluster ? "expected files of nccl-tests" : "expected --cluster with --nccl");
  g_autoptr (LsCalibrateNccl) run = run_alloc ();
  return calibrate_nccl_load (run, spec, error) && fit (run, error) ? g_steal_pointer (&run) : NULL;
}

const LsNcclFitReport *
ls_calibrate_nccl_report (const LsCalibrateNccl *run)
{
  return &run->report;
}

/* ---- as a file ---- */

char *
ls_calibrate_nccl_json (const LsCalibrateNccl *run, const char *name)
{
  g_autoptr (GString) source = g_string_new (NULL);
  g_string_append_printf (source, "lockstep calibrate --nccl --cluster %s over", run->report.cluster);
  for (guint i = 0; i < run->tests->len; i++) {
    const LsNcclTests *t = g_ptr_array_index (run->tests, i);
    g_autofree char *file = g_path_get_basename (t->path);
    g_string_append_printf (source, "%s %s (sha256 %s%s%s%s%s)", i > 0 ? "," : "", file, t->sha256,
                            t->date ? ", " : "", t->date ? t->date : "", t->version ? ", NCCL " : "",
                            t->version ? t->version : "");
  }
  const LsFitError *e = run->report.all[0];
  for (guint i = 0; i < run->report.kept->len; i++) {
    const LsNcclKept *kept = &g_array_index (run->report.kept, LsNcclKept, i);
    g_string_append_printf (source, "%s %s (%s)", i > 0 ? "," : "; kept:", kept->key, kept->why);
  }
  g_string_append_printf (
      source,
      "; mean absolute error %.1f %% below 1 MiB, %.1f %% from there on; what was not fitted is that of %s",
      100 * e[0].mape, 100 * e[1].mape, run->hardware->nccl.name);
  return rewrite (run->base, name, source->str, run->report.changes, "lockstep calibrate --nccl, see source");
}
