#include "ask/collective/measured_collectives.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "data/text/read_file.h"
#include "data/text/text_place.h"
#include "exec/replay/replay.h"
#include "job/hardware.h"

typedef struct {
  const LsCollectiveSpec *spec;
  LsCollectiveRun *run;
  GPtrArray *clusters; /* at hand, LsClusterSpec; NULL: nobody has asked */
  LsDiagList *diags;
} Reading;

/* --- logs --------------------------------------------------------------------------------------------- */

/* The cluster of a run, and why it is that one, newly allocated; "": it is not known. */
static const char *
cluster_of (Reading *x, const LsNcclTests *t, char **ret_why)
{
  *ret_why = g_strdup ("--cluster");
  if (x->spec->cluster)
    return x->spec->cluster;
  g_free (*ret_why);
  const char *device = t->gpu && *t->gpu ? t->gpu : NULL;
  g_autofree char *gpu = device ? ls_gpu_called (device) : NULL;
  guint n = 0;
  x->clusters = x->clusters ? x->clusters : ls_clusters_at_hand ();
  const LsClusterSpec *c = gpu ? ls_cluster_with (x->clusters, gpu, t->n_ranks / t->n_hosts, &n) : NULL;
  c = c || !gpu ? c : ls_cluster_with (x->clusters, gpu, 0, &n); /* not all of a node */
  *ret_why = g_strdup_printf ("%s%s; --cluster NAME",
                              c             ? "assumed: it has "
                                  : !device ? "its devices have no name"
                                  : n > 0   ? "several have "
                                            : "none has ",
                              device ? device : "");
  return c ? c->name : "";
}

/* The operation, and why it is that one, static; NULL: it is not known. */
static const char *
op_of (const Reading *x, const LsNcclTests *t, const char **ret_why)
{
  const char *said = ls_nccl_tests_op (t), *likely = ls_nccl_tests_likely_op (t);
  const char *op = said ? said : t->test ? t->test : likely ? likely : x->spec->op;
  *ret_why = said || t->test ? "" : likely ? " (assumed: by its rates)" : " (--op)";
  /* around a ring, as sendrecv_perf sends; between two it is a send and a receive */
  return g_strcmp0 (op, "send-recv") == 0 && t->n_ranks > 2 ? "permute" : op;
}

/* What a variable of NCCL says, small, as --algorithm and --protocol do; NULL: nothing, or no single name. */
static const char *
way_of (const char *variable)
{
  bool is_name = variable && !strpbrk (variable, "^,;:");
  return is_name && strcmp (variable, "nvlstree") == 0 ? "nvls-tree" : is_name ? variable : NULL;
}

static void
add_log (Reading *x, const LsNcclTests *t)
{
  const char *why_op, *op = op_of (x, t, &why_op), *wrong = NULL;
  if (t->n_ranks % t->n_hosts != 0)
    wrong = "not all nodes have as many ranks";
  else if (!op)
    wrong = "the log does not say which operation ran (all_reduce_perf), nor do its rates: --op KIND";
  if (wrong) {
    ls_diag_add (x->diags, LS_ERROR_INPUT, t->path, t->line, t->line > 0, NULL, NULL, NULL, "%s", wrong);
    return;
  }
  g_autofree char *why = NULL;
  const char *cluster = cluster_of (x, t, &why), *algorithm = way_of (t->algorithm),
             *protocol = way_of (t->protocol);
  for (guint i = 0; i < t->rows->len; i++) {
    const LsNcclTestsRow *row = &g_array_index (t->rows, LsNcclTestsRow, i);
    LsMeasuredCollective *m = g_new (LsMeasuredCollective, 1);
    *m = (LsMeasuredCollective) { .cluster = g_strdup (cluster),
                                  .op = g_strdup (op),
                                  .algorithm = g_strdup (algorithm),
                                  .protocol = g_strdup (protocol),
                                  .n_gpus = t->n_ranks,
                                  .n_nodes = t->n_hosts,
                                  .bytes = row->bytes,
                                  .time_us = row->time_us };
    g_ptr_array_add (x->run->measured, m);
  }
  ls_note (x->run->notes, "%s: %s%s, %u GPU%s on %u node%s, %u size%s out of place; on %s (%s)", t->path, op,
           why_op, t->n_ranks, t->n_ranks == 1 ? "" : "s", t->n_hosts, t->n_hosts == 1 ? "" : "s",
           t->rows->len, t->rows->len == 1 ? "" : "s", *cluster ? cluster : "no cluster", why);
  if (t->algorithm || t->protocol)
    ls_note (x->run->notes,
             "%s: by its NCCL_ALGO and NCCL_PROTO, where each is one name: algorithm %s, protocol %s",
             t->path, algorithm ? algorithm : "auto", protocol ? protocol : "auto");
}

/* --- files -------------------------------------------------------------------------------------------- */

LsTime
ls_collective_launch (const LsMeasuredCollective *m, const LsClusterSpec *spec)
{
  LsHostCosts costs;
  ls_host_costs_default (&costs);
  return m->is_single ? (LsTime) llround ((double) costs.cost[LS_HOST_COMM] * ls_cluster_call_time (spec))
                      : 0;
}

static void
note_single (const Reading *x, const char *path, const GPtrArray *rows)
{
  guint n = 0;
  for (guint i = 0; i < rows->len; i++)
    n += ((const LsMeasuredCollective *) rows->pdata[i])->is_single;
  if (n > 0)
    ls_note (
        x->run->notes,
        "%u row%s of %s: single calls, as %s times them: with what PyTorch takes to launch one (host_comm)",
        n, n == 1 ? "" : "s", path, LS_SINGLE_CALLS);
}

static void
add_table (Reading *x, const char *path, const char *text)
{
  g_autofree char *unread = NULL;
  GPtrArray *rows = ls_read_collectives (path, text, &unread, x->diags);
  if (!rows)
    return;
  if (unread)
    ls_note (x->run->notes, "columns of %s that nothing reads: %s", path, unread);
  note_single (x, path, rows);
  if (x->spec->trust && !((const LsMeasuredCollective *) rows->pdata[0])->trust)
    ls_file_diag (x->diags, LS_ERROR_INPUT, path, NULL, "--trust %s wants a column \"trust\"; got none",
                  x->spec->trust);
  g_ptr_array_extend_and_steal (x->run->measured, rows);
}

static void
add_file (Reading *x, const char *path)
{
  size_t n;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, x->diags);
  if (!text)
    return;
  if (ls_is_collectives (text) || g_str_has_suffix (path, ".csv")) {
    add_table (x, path, text);
    return;
  }
  g_autoptr (GPtrArray) runs = ls_nccl_tests_parse (path, text, n, x->diags);
  for (guint i = 0; runs && i < runs->len; i++)
    add_log (x, runs->pdata[i]);
}

gboolean
ls_collective_read_measured (const LsCollectiveSpec *spec, LsCollectiveRun *run, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  Reading x = { spec, run, NULL, diags };
  run->measured = ls_measured_collectives_new ();
  add_file (&x, spec->compare);
  for (char **path = spec->more; path && *path; path++)
    add_file (&x, *path);
  g_clear_pointer (&x.clusters, g_ptr_array_unref);
  for (guint i = 0; i < run->measured->len; i++) {
    const LsMeasuredCollective *m = run->measured->pdata[i];
    run->has_ways |= (m->algorithm && *m->algorithm) || (m->protocol && *m->protocol);
  }
  return ls_diag_list_to_error (diags, error);
}

/* --- regret ------------------------------------------------------------------------------------------- */

static const LsSortKey by_call[]
    = { { LS_RISING (LsCollectiveRow, cluster) }, { LS_RISING (LsCollectiveRow, op) },
        { LS_RISING (LsCollectiveRow, n_ranks) }, { LS_RISING (LsCollectiveRow, n_nodes) },
        { LS_RISING (LsCollectiveRow, bytes) },   { 0 } };

void
ls_collective_note_regret (LsCollectiveRun *run)
{
  g_autoptr (GArray) rows = g_array_copy (run->rows);
  ls_sort_by (rows, by_call);
  guint n_calls = 0;
  double sum = 0, worst = -1;
  g_autofree char *where = NULL;
  for (guint i = 0, end = 0; i < rows->len; i = end) {
    const LsCollectiveRow *first = &g_array_index (rows, LsCollectiveRow, i), *chosen = first, *best = first;
    bool has_ways = false;
    for (end = i; end < rows->len && ls_compare_by (first, first + (end - i), (void *) by_call) == 0; end++) {
      const LsCollectiveRow *row = first + (end - i);
      has_ways = has_ways || strcmp (row->algorithm, first->algorithm) != 0
          || strcmp (row->protocol, first->protocol) != 0;
      chosen = row->time < chosen->time ? row : chosen;
      best = row->measured_us < best->measured_us ? row : best;
    }
    const double regret = chosen->measured_us / best->measured_us - 1;
    sum += has_ways ? regret : 0;
    n_calls += has_ways;
    if (has_ways && regret > worst) {
      g_autofree char *bytes = ls_format_bytes (first->bytes);
      worst = regret;
      g_free (where);
      where = g_strdup_printf ("%s of %s on %u GPUs of %s, %s/%s instead of %s/%s", first->op, bytes,
                               first->n_ranks, first->cluster, chosen->algorithm, chosen->protocol,
                               best->algorithm, best->protocol);
    }
  }
  if (n_calls > 0)
    ls_note (
        run->notes,
        "regret of choosing the way that is simulated to be the fastest: %.2f %% in the mean of %u call%s "
        "measured by several; at most %.2f %% (%s)",
        100 * sum / n_calls, n_calls, n_calls == 1 ? "" : "s", 100 * worst, where);
}
