/* ask/collective/collective_compare.c — measured collectives simulated, and their errors. */
#include <string.h>

#include <lockstep/error.h>

#include "analysis/score.h"
#include "ask/collective/collective_call.h"
#include "data/measured/read_nccl_tests.h"
#include "job/hardware.h"

#define DEFAULT_TRUST "A"
#define ANY_TRUST     "all"

/* A cluster that rows name: loaded once, built again where the number of nodes changes. */
typedef struct {
  LsHardware *hardware; /* NULL: it cannot be used, reason */
  char *reason;
  LsCluster *cluster;
} Machine;

typedef struct {
  char *reason;
  guint n;
} Skipped;

typedef struct {
  LsCollectiveRun *run;
  const LsCollectiveSpec *spec;
  const LsCollectiveNetwork *network;
  GHashTable *machines; /* name (borrowed) -> Machine */
  GArray *skipped;      /* Skipped, by first row      */
} Comparison;

static void
machine_free (gpointer data)
{
  Machine *m = data;
  ls_hardware_free (m->hardware);
  ls_cluster_free (m->cluster);
  g_free (m->reason);
  g_free (m);
}

static void
skipped_clear (gpointer data)
{
  g_free (((Skipped *) data)->reason);
}

/* The first diagnostic in one line. */
static char *
one_line (const char *message)
{
  g_autofree char *line = g_strndup (message, strcspn (message, "\n"));
  const char *mark = strstr (line, "error: ");
  return g_strdup (mark && (mark == line || mark[-1] == ' ') ? mark + strlen ("error: ") : line);
}

static void
skip (Comparison *x, const char *message)
{
  g_autofree char *reason = one_line (message);
  x->run->table.n_skipped++;
  for (guint i = 0; i < x->skipped->len; i++) {
    Skipped *s = &g_array_index (x->skipped, Skipped, i);
    if (strcmp (s->reason, reason) == 0) {
      s->n++;
      return;
    }
  }
  Skipped s = { g_steal_pointer (&reason), 1 };
  g_array_append_val (x->skipped, s);
}

/* --- which rows --------------------------------------------------------------------- */

static gboolean
is_trusted (const LsMeasuredCollective *m, const char *trust)
{
  return !m->trust || g_strcmp0 (trust, ANY_TRUST) == 0
      || strcmp (m->trust, trust ? trust : DEFAULT_TRUST) == 0;
}

/* "p2p" is "send-recv" too. */
static gboolean
is_op (const LsMeasuredCollective *m, const char *op)
{
  LsCollKind wanted, kind;
  return strcmp (m->op, op) == 0
      || (ls_collective_find_kind (op, &wanted, NULL) && ls_collective_find_kind (m->op, &kind, NULL)
          && kind == wanted);
}

static gboolean
is_count (uint32_t n_gpus, const GArray *wanted)
{
  for (guint i = 0; wanted && i < wanted->len; i++)
    if (g_array_index (wanted, uint32_t, i) == n_gpus)
      return TRUE;
  return !wanted;
}

static gboolean
is_wanted (const LsMeasuredCollective *m, const LsCollectiveSpec *spec)
{
  return is_trusted (m, spec->trust) && (!spec->cluster || strcmp (m->cluster, spec->cluster) == 0)
      && (!spec->op || is_op (m, spec->op)) && is_count (m->n_gpus, spec->gpus)
      && (spec->n_nodes == 0 || m->n_nodes == spec->n_nodes)
      && (spec->min_bytes == 0 || m->bytes >= spec->min_bytes)
      && (spec->max_bytes == 0 || m->bytes <= spec->max_bytes);
}

static gboolean
read_measured (LsCollectiveRun *run, const LsCollectiveSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  run->measured = ls_read_collectives (spec->compare, diags);
  if (!run->measured)
    return ls_diag_list_to_error (diags, error);
  const LsMeasuredCollective *first = g_ptr_array_index (run->measured, 0);
  if (!spec->trust || first->trust)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_INPUT, "%s: --trust %s wants a column \"trust\"; got none",
               spec->compare, spec->trust);
  return FALSE;
}

/* --- one row ------------------------------------------------------------------------ */

static Machine *
machine_of (Comparison *x, const char *name)
{
  Machine *m = g_hash_table_lookup (x->machines, name);
  if (m)
    return m;
  m = g_new0 (Machine, 1);
  g_hash_table_insert (x->machines, (gpointer) name, m);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  m->hardware = ls_hardware_load (name, diags);
  g_autoptr (GError) error = NULL;
  if (!m->hardware && !ls_diag_list_to_error (diags, &error))
    m->reason = g_strdup (error->message);
  return m;
}

static const LsCluster *
cluster_of (Machine *m, uint32_t n_nodes, GError **error)
{
  if (!m->cluster || m->cluster->spec.n_nodes != n_nodes) {
    g_clear_pointer (&m->cluster, ls_cluster_free);
    m->cluster = ls_hardware_build (m->hardware, n_nodes, error);
  }
  return m->cluster;
}

static uint32_t *
spread (const LsMeasuredCollective *m, const LsCluster *c)
{
  uint32_t *gpus = g_new (uint32_t, m->n_gpus), per_node = m->n_gpus / m->n_nodes;
  for (uint32_t i = 0; i < m->n_gpus; i++)
    gpus[i] = ls_cluster_gpu_at (c, i / per_node, i % per_node);
  return gpus;
}

static gboolean
has_room (const LsCluster *c, LsCollKind kind, const LsMeasuredCollective *m, GError **error)
{
  uint32_t least = UINT32_MAX;
  for (uint32_t node = 0; node < m->n_nodes; node++)
    least = MIN (least, ls_cluster_gpus_of (c, node));
  if (m->n_gpus / m->n_nodes > least)
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "a node of %s has %u %s; got %u on %u", m->cluster,
                 least, ls_cluster_chip_word (&c->spec, least), m->n_gpus, m->n_nodes);
  else if (kind == LS_COLL_SEND_RECV && m->n_gpus != 2)
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s is between two %s; got %u", m->op,
                 ls_cluster_chip_word (&c->spec, 2), m->n_gpus);
  else
    return TRUE;
  return FALSE;
}

static gboolean
simulate (const Comparison *x, Machine *machine, const LsMeasuredCollective *m, LsCollectiveRow *row,
          GError **error)
{
  LsCollKind kind;
  if (!ls_collective_find_kind (m->op, &kind, NULL)) {
    g_set_error (error, LS_ERROR, LS_ERROR_INPUT, "no operation is named \"%s\"", m->op);
    return FALSE;
  }
  const LsCluster *c = cluster_of (machine, m->n_nodes, error);
  if (!c)
    return FALSE;
  if (!has_room (c, kind, m, error))
    return FALSE;
  row->chips = ls_cluster_chip_word (&c->spec, m->n_gpus);
  g_autofree uint32_t *gpus = spread (m, c);
  const LsCollRequest request = {
    .kind = kind,
    .gpus = gpus,
    .n = m->n_gpus,
    .bytes = m->bytes,
    .algorithm = x->spec->algorithm,
    .protocol = (LsProtocol) x->spec->protocol,
    .max_ctas = x->spec->max_ctas,
  };
  return ls_collective_time (c, &machine->hardware->nccl, &request, x->network, NULL, row, error);
}

static void
compare_row (Comparison *x, const LsMeasuredCollective *m)
{
  if (!*m->cluster) {
    skip (x, "the cluster is not known");
    return;
  }
  Machine *machine = machine_of (x, m->cluster);
  if (!machine->hardware) {
    skip (x, machine->reason);
    return;
  }
  g_autoptr (GError) error = NULL;
  LsCollectiveRow row
      = { .cluster = m->cluster, .op = m->op, .n_nodes = m->n_nodes, .measured_us = m->time_us };
  if (simulate (x, machine, m, &row, &error))
    g_array_append_val (x->run->rows, row);
  else
    skip (x, error->message);
}

/* --- errors ------------------------------------------------------------------------- */

static gboolean
is_in_family (const LsCollectiveRow *row, const LsCollectiveRow *first)
{
  return !first || (strcmp (row->cluster, first->cluster) == 0 && strcmp (row->op, first->op) == 0);
}

/* Of the rows of first's family (NULL: of all) from min to max bytes. */
static LsScore
score (const GArray *rows, const LsCollectiveRow *first, uint64_t min, uint64_t max)
{
  g_autofree LsScoreRow *chosen = g_new (LsScoreRow, MAX (rows->len, 1));
  guint n = 0;
  for (guint i = 0; i < rows->len; i++) {
    const LsCollectiveRow *row = &g_array_index (rows, LsCollectiveRow, i);
    if (is_in_family (row, first) && row->bytes >= min && row->bytes <= max)
      chosen[n++] = (LsScoreRow) {
        .measured_s = row->measured_us * 1e-6,
        .predicted_s = ls_time_to_s (row->time),
      };
  }
  LsScore s;
  ls_score (chosen, n, &s);
  return s;
}

static LsCollectiveFamily
score_family (const GArray *rows, const LsCollectiveRow *first, const char *name)
{
  return (LsCollectiveFamily) {
    .name = name,
    .all = score (rows, first, 0, UINT64_MAX),
    .large = score (rows, first, LS_COLLECTIVE_LARGE_BYTES, UINT64_MAX),
    .small = score (rows, first, 0, LS_COLLECTIVE_LARGE_BYTES - 1),
  };
}

static gboolean
is_first_of_family (const GArray *rows, guint i)
{
  const LsCollectiveRow *row = &g_array_index (rows, LsCollectiveRow, i);
  for (guint k = 0; k < i; k++)
    if (is_in_family (&g_array_index (rows, LsCollectiveRow, k), row))
      return FALSE;
  return TRUE;
}

static gint
by_name (gconstpointer a, gconstpointer b)
{
  return strcmp (((const LsCollectiveFamily *) a)->name, ((const LsCollectiveFamily *) b)->name);
}

static void
score_all (LsCollectiveRun *run)
{
  for (guint i = 0; i < run->rows->len; i++) {
    if (!is_first_of_family (run->rows, i))
      continue;
    const LsCollectiveRow *row = &g_array_index (run->rows, LsCollectiveRow, i);
    char *name = g_strconcat (row->cluster, "/", row->op, NULL);
    g_ptr_array_add (run->names, name);
    LsCollectiveFamily family = score_family (run->rows, row, name);
    g_array_append_val (run->families, family);
  }
  g_array_sort (run->families, by_name);
  run->table.total = score_family (run->rows, NULL, "all");
}

static void
write_notes (Comparison *x, guint n_wanted)
{
  for (guint i = 0; i < x->skipped->len; i++) {
    const Skipped *s = &g_array_index (x->skipped, Skipped, i);
    g_ptr_array_add (x->run->notes,
                     g_strdup_printf ("%u row%s skipped: %s", s->n, s->n == 1 ? "" : "s", s->reason));
  }
  g_autofree char *file = g_path_get_basename (x->spec->compare);
  x->run->title = g_strdup_printf ("%s: %u of %u rows selected, %u compared", file, n_wanted,
                                   x->run->measured->len, x->run->rows->len);
}

/* A table without a row says nothing. */
static gboolean
check_compared (const LsCollectiveRun *run, GError **error)
{
  if (run->rows->len > 0)
    return TRUE;
  g_ptr_array_add (run->notes, NULL);
  g_autofree char *reasons = g_strjoinv ("\n  ", (char **) run->notes->pdata);
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "no row could be compared:\n  %s", reasons);
  return FALSE;
}

gboolean
ls_collective_compare (LsCollectiveRun *run, const LsCollectiveSpec *spec, const LsCollectiveNetwork *network,
                       GError **error)
{
  if (!read_measured (run, spec, error))
    return FALSE;
  g_autoptr (GHashTable) machines = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, machine_free);
  g_autoptr (GArray) skipped = g_array_new (FALSE, FALSE, sizeof (Skipped));
  g_array_set_clear_func (skipped, skipped_clear);
  Comparison x = { run, spec, network, machines, skipped };

  guint n_wanted = 0;
  for (guint i = 0; i < run->measured->len; i++) {
    const LsMeasuredCollective *m = g_ptr_array_index (run->measured, i);
    if (!is_wanted (m, spec))
      continue;
    n_wanted++;
    compare_row (&x, m);
  }
  if (n_wanted == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%s: none of %u rows matches", spec->compare,
                 run->measured->len);
    return FALSE;
  }
  score_all (run);
  write_notes (&x, n_wanted);
  return check_compared (run, error);
}
