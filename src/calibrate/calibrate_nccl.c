#include "calibrate/calibrate_nccl.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "ask/collective/collective_table.h"
#include "base/list.h"
#include "calibrate/nccl_fit.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/measured/read_nccl_tests.h"
#include "job/hardware.h"
#include "network/nccl/nccl.h"

/* ---- files of nccl-tests as curves ---- */

static void
complain (const LsNcclTests *t, LsDiagList *diags, const char *hint, const char *message)
{
  ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, t->line > 0, NULL, NULL, hint, "%s", message);
}

/* What a table calls an operation is what --op does. */
static bool
kind_of_table (const LsNcclTests *t, LsCollKind *ret_kind, LsDiagList *diags)
{
  g_autoptr (GError) error = NULL;
  if (ls_collective_find_kind (t->op, ret_kind, &error))
    return true;
  complain (t, diags, NULL, error->message);
  return false;
}

/* Names of nccl-tests: "alltoall" is all-to-all. */
static bool
kind_of (const LsNcclTests *t, LsCollKind *ret_kind, LsDiagList *diags)
{
  static const char *const tests[] = { [LS_COLL_ALL_REDUCE] = "all_reduce",
                                       [LS_COLL_ALL_GATHER] = "all_gather",
                                       [LS_COLL_REDUCE_SCATTER] = "reduce_scatter",
                                       [LS_COLL_BROADCAST] = "broadcast",
                                       [LS_COLL_REDUCE] = "reduce",
                                       [LS_COLL_ALL_TO_ALL] = "alltoall",
                                       [LS_COLL_GATHER] = "gather",
                                       [LS_COLL_SCATTER] = "scatter",
                                       [LS_COLL_SEND_RECV] = "sendrecv" };
  if (t->op)
    return kind_of_table (t, ret_kind, diags);
  for (guint i = 0; t->test && i < G_N_ELEMENTS (tests); i++)
    if (g_strcmp0 (tests[i], t->test) == 0) {
      *ret_kind = (LsCollKind) i;
      return true;
    }
  g_autofree char *message = t->test
      ? g_strdup_printf ("%s_perf times nothing that is modelled", t->test)
      : g_strdup_printf ("%s does not say which operation ran",
                         t->line > 0 ? "the run that begins here" : "the file");
  const char *hint
      = t->line > 0 ? "give it as a file of its own, with --op" : "say it with --op, such as --op all-reduce";
  complain (t, diags, t->test ? NULL : hint, message);
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
pass_over (LsCalibrateNccl *run, const LsNcclTests *t, const char *why)
{
  ls_note (run->report.files, "%s: passed over: %s on %u, %u size%s: %s", t->path, t->op, t->n_ranks,
           t->rows->len, t->rows->len == 1 ? "" : "s", why);
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
    const LsNcclPoint point = { row->bytes, row->time_us * 1e-6 };
    g_array_append_val (curve->points, point);
  }
  ls_note (run->report.files, "%s: %s, %u size%s%s%s", t->path, curve->name, t->rows->len,
           t->rows->len == 1 ? "" : "s", t->gpu ? "; " : "", t->gpu ? t->gpu : "");
}

static void
add_file (LsCalibrateNccl *run, const char *path, const LsCollKind *asked, LsDiagList *diags)
{
  g_autoptr (GPtrArray) runs = ls_nccl_tests_load (path, diags);
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
      pass_over (run, t, why);
    else
      add_run (run, t, asked, diags);
  }
  if (is_table && run->curves->len == 0 && ls_diag_list_n (diags) == 0)
    complain (runs->pdata[0], diags, "write the name of --cluster, or nothing, into that column",
              "no row is of this cluster, of --op and of trust A");
  while (runs && runs->len > 0)
    g_ptr_array_add (run->tests, g_ptr_array_steal_index (runs, 0));
}

/* If the rule holds all of them out, none is. */
static void
hold_out (LsCalibrateNccl *run)
{
  bool all = true;
  for (guint i = 0; i < run->curves->len; i++)
    all = all && ((const LsNcclCurve *) run->curves->pdata[i])->held_out;
  for (guint i = 0; all && i < run->curves->len; i++)
    ((LsNcclCurve *) run->curves->pdata[i])->held_out = false;
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
  hold_out (run);
  return ls_diag_list_to_error (diags, error);
}

/* --- the file --------------------------------------------------------------------------------------- */

/* In the place of the member that was there, else at the end; takes value. */
static void
put (cJSON *object, const char *key, cJSON *value)
{
  if (!cJSON_ReplaceItemInObjectCaseSensitive (object, key, value))
    cJSON_AddItemToObject (object, key, value);
}

static cJSON *
value_of (const LsNcclChange *c)
{
  return c->is_number ? cJSON_CreateNumber (g_ascii_strtod (c->now, NULL)) : cJSON_CreateString (c->now);
}

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
    put (root, c->key, value_of (c));
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

static void
change_clear (gpointer data)
{
  LsNcclChange *c = data;
  g_free (c->key);
  g_free (c->was);
  g_free (c->now);
}

static LsCalibrateNccl *
run_alloc (void)
{
  LsCalibrateNccl *run = g_new0 (LsCalibrateNccl, 1);
  run->tests = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_nccl_tests_free);
  run->curves = g_ptr_array_new_with_free_func (ls_nccl_curve_free);
  run->report.files = g_ptr_array_new_with_free_func (g_free);
  run->report.changes = ls_list_new (sizeof (LsNcclChange), change_clear);
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
  if (ls_nccl_read (run->base, &file, diags)) {
    ls_nccl_carry (&carried, &file.measured_on);
    ls_nccl_clear (&file);
  }
  return carried;
}

static void
add_kept (LsCalibrateNccl *run, const LsNcclFitted *f, const char *why)
{
  const LsNccl in_file = as_in_file (run, &run->hardware->nccl);
  const LsNcclKept kept = { ls_nccl_spell (&in_file, f), f->name, why };
  g_array_append_val (run->report.kept, kept);
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

/* How many figures the points that are fitted can tell. */
static guint
n_figures (const LsCalibrateNccl *run)
{
  guint n_points = 0;
  for (guint i = 0; i < run->curves->len; i++) {
    const LsNcclCurve *c = run->curves->pdata[i];
    n_points += c->held_out ? 0 : c->points->len;
  }
  return CLAMP (n_points / POINTS_PER_FIGURE, 1, MAX_FITTED);
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
    change_clear (&c);
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

static void
keep (LsCalibrateNccl *run, Choice *choice, size_t at, const char *why)
{
  add_kept (run, &choice->list[at], why);
  memmove (choice->list + at, choice->list + at + 1, (choice->n - at) * sizeof *choice->list);
  choice->n--;
}

/* What cannot be told goes one after the other. */
static LsNccl
fit_told (LsCalibrateNccl *run, Choice *choice, const LsNcclProblem *problem, double *ret_error)
{
  LsNccl nccl = run->hardware->nccl;
  const char *why = NULL;
  while (choice->n > 0) {
    nccl = ls_nccl_fit (problem, NULL);
    size_t at = ls_nccl_untold (problem, &nccl, ret_error, &why);
    if (at == choice->n)
      return nccl;
    keep (run, choice, at, why);
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
  Choice choice = { .run = run, .max = n_figures (run) };
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
