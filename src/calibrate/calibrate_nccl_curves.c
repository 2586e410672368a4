/* calibrate/calibrate_nccl_curves.c — files of nccl-tests as curves. */
#include "calibrate/calibrate_nccl.h"

#include <string.h>

#include <lockstep/error.h>

#include "ask/collective/collective_call.h"
#include "calibrate/nccl_fit.h"
#include "data/datadir.h"
#include "data/measured/read_nccl_tests.h"

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
  g_ptr_array_add (run->report.files,
                   g_strdup_printf ("%s: passed over: %s on %u, %u size%s: %s", t->path, t->op, t->n_ranks,
                                    t->rows->len, t->rows->len == 1 ? "" : "s", why));
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
  g_ptr_array_add (run->report.files,
                   g_strdup_printf ("%s: %s, %u size%s%s%s", t->path, curve->name, t->rows->len,
                                    t->rows->len == 1 ? "" : "s", t->gpu ? "; " : "", t->gpu ? t->gpu : ""));
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

gboolean
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
  if (run->hardware->spec.interior == LS_INTERIOR_TORUS) {
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED, "%s: NCCL does not run on a torus", spec->cluster);
    return FALSE;
  }
  if (!ls_hardware_check_alike (&run->hardware->spec, "a fit of NCCL", error))
    return FALSE;
  g_autofree char *name = ls_hardware_nccl_name (&run->hardware->spec.gpu);
  run->base = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  for (const char *const *file = spec->files; *file; file++)
    add_file (run, *file, spec->op ? &asked : NULL, diags);
  hold_out (run);
  return ls_diag_list_to_error (diags, error);
}
