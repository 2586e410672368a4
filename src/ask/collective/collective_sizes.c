#include "ask/collective/collective_sizes.h"

#include <math.h>

#include <lockstep/error.h>

#include "ask/collective/collective_call.h"
#include "job/hardware.h"
#include "job/job_steps.h"

#define DEFAULT_MIN_BYTES UINT64_C (1024)
#define DEFAULT_MAX_BYTES (UINT64_C (8) << 30)
#define DEFAULT_FACTOR    2
/* Of several numbers of GPUs five sizes: as many curves as a chart bears. */
#define DEFAULT_SCALING_MIN_BYTES (UINT64_C (1) << 20)
#define DEFAULT_SCALING_FACTOR    8

void
ls_collective_run_free (LsCollectiveRun *run)
{
  if (!run)
    return;
  g_free (run->cluster);
  g_free (run->op);
  g_clear_pointer (&run->measured, g_ptr_array_unref);
  g_array_unref (run->rows);
  g_ptr_array_unref (run->names);
  g_array_unref (run->families);
  g_ptr_array_unref (run->notes);
  g_free (run->title);
  ls_collective_messages_free (run->messages);
  g_free (run);
}

static LsCollectiveRun *
run_new (void)
{
  LsCollectiveRun *run = g_new0 (LsCollectiveRun, 1);
  run->rows = g_array_new (FALSE, TRUE, sizeof (LsCollectiveRow));
  run->names = g_ptr_array_new_with_free_func (g_free);
  run->families = g_array_new (FALSE, TRUE, sizeof (LsCollectiveFamily));
  run->notes = g_ptr_array_new_with_free_func (g_free);
  return run;
}

/* --- which GPUs ------------------------------------------------------------------- */

/* The two ends of a p2p: on different nodes if there are two. */
static GArray *
two_ends (const LsCluster *c, const char *op, uint32_t n_gpus, GError **error)
{
  if (c->n_gpus < 2 || (n_gpus > 0 && n_gpus != 2)) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--op %s is between two %s; got %u\n"
                 "note: leave --gpus out; --nodes 2 puts one on each of two",
                 op, ls_cluster_chip_word (&c->spec, 2), n_gpus > 0 ? n_gpus : c->n_gpus);
    return NULL;
  }
  uint32_t ends[] = { 0, c->spec.n_nodes > 1 ? ls_cluster_gpu_at (c, 1, 0) : 1 };
  return g_array_append_vals (g_array_new (FALSE, FALSE, sizeof *ends), ends, 2);
}

/* As those of a job lie. */
static GArray *
first_gpus (const LsCluster *c, uint32_t n_gpus)
{
  GArray *gpus = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  uint32_t n = n_gpus > 0 ? n_gpus : c->n_gpus;
  for (uint32_t rank = 0; rank < n; rank++) {
    uint32_t gpu = ls_cluster_gpu_of (&c->spec, rank);
    g_array_append_val (gpus, gpu);
  }
  return gpus;
}

/* The first GPUs of the cluster leave no node out. */
static uint32_t
count_nodes (const LsCluster *c, const LsCollRequest *request)
{
  return ls_cluster_host_of (c, request->gpus[request->n - 1]) + 1;
}

/* --- the table -------------------------------------------------------------------- */

typedef struct {
  LsCollectiveRun *run;
  const LsCollectiveSpec *spec;
  LsCollKind kind;
  const LsCollectiveNetwork *networks;
  const LsHardware *hardware;
  uint64_t n_messages, n_done; /* one by one: so far asked for, and moved */
} Sweep;

/* Of all sizes on these GPUs. */
static void
tell_messages (guint64 n_done, guint64 n_to_do, gpointer data)
{
  const Sweep *x = data;
  ls_progress_tell (&x->spec->progress, x->n_done + n_done, MAX (x->n_messages, x->n_done + n_to_do));
}

static gboolean
add_size (Sweep *x, const LsCluster *c, const LsCollRequest *request, GError **error)
{
  const LsProgress progress = { tell_messages, x };
  for (guint k = 0; k < x->run->table.n_networks; k++) {
    LsCollectiveRow row = { .cluster = x->run->cluster, .op = x->run->op, .measured_us = NAN };
    uint64_t n = 0;
    row.n_nodes = count_nodes (c, request);
    row.chips = ls_cluster_chip_word (&c->spec, request->n);
    if (!ls_collective_count (c, &x->hardware->nccl, request, &x->networks[k], &n, error)
        || !ls_collective_time (c, &x->hardware->nccl, request, &x->networks[k], n > 0 ? &progress : NULL,
                                &row, error))
      return FALSE;
    x->n_done += n;
    g_array_append_val (x->run->rows, row);
  }
  return TRUE;
}

static gboolean
count_size (Sweep *x, const LsCluster *c, const LsCollRequest *request, GError **error)
{
  for (guint k = 0; k < x->run->table.n_networks; k++) {
    uint64_t n;
    if (!ls_collective_count (c, &x->hardware->nccl, request, &x->networks[k], &n, error))
      return FALSE;
    x->n_messages += n;
  }
  return TRUE;
}

/* A barrier has no sizes. */
static gboolean
add_sizes (Sweep *x, const LsCluster *c, LsCollRequest *request, GError **error)
{
  const LsCollectiveSpec *spec = x->spec;
  uint64_t max = spec->max_bytes > 0 ? spec->max_bytes : MAX (DEFAULT_MAX_BYTES, spec->min_bytes);
  gboolean is_scaling = x->run->table.is_scaling;
  uint64_t min = spec->min_bytes > 0
      ? spec->min_bytes
      : MIN (is_scaling || spec->messages ? DEFAULT_SCALING_MIN_BYTES : DEFAULT_MIN_BYTES, max);
  uint32_t factor = spec->factor > 0 ? spec->factor : is_scaling ? DEFAULT_SCALING_FACTOR : DEFAULT_FACTOR;
  if (request->kind == LS_COLL_BARRIER || spec->messages)
    max = min;
  for (request->bytes = min; request->bytes <= max; request->bytes *= factor)
    if (!count_size (x, c, request, error))
      return FALSE;
  if (!ls_coll_check_all (x->n_messages, error))
    return FALSE;
  for (request->bytes = min; request->bytes <= max; request->bytes *= factor)
    if (!add_size (x, c, request, error))
      return FALSE;
  return TRUE;
}

/* Of the size that was just timed. */
static gboolean
add_messages (Sweep *x, const LsCluster *c, LsCollRequest *request, GError **error)
{
  const LsCollectiveRow *row = &g_array_index (x->run->rows, LsCollectiveRow, x->run->rows->len - 1);
  request->bytes = row->bytes;
  request->algorithm = *row->algorithm ? row->algorithm : NULL;
  if (!ls_coll_check_size (c, &x->hardware->nccl, request, LS_NETWORK_STEP, error))
    return FALSE;
  x->run->messages = ls_collective_messages_new (c, &x->hardware->nccl, request, error);
  return x->run->messages != NULL;
}

/* All sizes on n_gpus; 0: all. */
static gboolean
add_gpus (Sweep *x, uint32_t n_gpus, GError **error)
{
  g_autoptr (LsCluster) c = ls_hardware_build_asked (x->hardware, x->spec->n_nodes, n_gpus, error);
  if (!c)
    return FALSE;
  g_autoptr (GArray) gpus
      = x->kind == LS_COLL_SEND_RECV ? two_ends (c, x->run->op, n_gpus, error) : first_gpus (c, n_gpus);
  if (!gpus)
    return FALSE;
  g_autoptr (LsCollMemo) memo = ls_coll_memo_new ();
  LsCollRequest request = {
    .kind = x->kind,
    .gpus = (const uint32_t *) (gpointer) gpus->data,
    .n = gpus->len,
    .memo = memo,
    .algorithm = x->spec->algorithm,
    .protocol = (LsProtocol) x->spec->protocol,
    .max_ctas = x->spec->max_ctas,
  };
  if (!add_sizes (x, c, &request, error))
    return FALSE;
  return !x->spec->messages || add_messages (x, c, &request, error);
}

/* What a chart over GPUs marks; a torus has none of these, nor nodes of unequal size. */
static void
note_boundaries (LsCollectiveTable *t, const LsClusterSpec *spec)
{
  for (uint32_t k = 1; k < ls_cluster_spec_n_kinds (spec); k++)
    if (ls_cluster_spec_of_kind (spec, k)->gpus_per_node != spec->gpus_per_node)
      return;
  if (spec->interior == LS_INTERIOR_TORUS)
    return;
  t->gpus_per_node = spec->gpus_per_node;
  t->gpus_per_leaf = (uint64_t) spec->nodes_per_leaf * spec->gpus_per_node;
  if (spec->fabric == LS_FABRIC_FAT_TREE)
    t->gpus_per_pod = (uint64_t) spec->nodes_per_pod * spec->gpus_per_node;
  if (ls_is_dragonfly (spec))
    t->gpus_per_pod = (uint64_t) spec->nodes_per_group * spec->gpus_per_node;
}

static char *
title_of (const LsCollectiveRun *run)
{
  const LsCollectiveRow *first = &g_array_index (run->rows, LsCollectiveRow, 0);
  const LsCollectiveRow *last = &g_array_index (run->rows, LsCollectiveRow, run->rows->len - 1);
  if (run->table.is_scaling)
    return g_strdup_printf ("%s on %u to %u %s of %s", run->op, first->n_ranks, last->n_ranks,
                            run->table.chips, run->cluster);
  return g_strdup_printf ("%s on %u %s of %s, %u node%s", run->op, last->n_ranks, last->chips, run->cluster,
                          last->n_nodes, last->n_nodes == 1 ? "" : "s");
}

static void
note_known (const LsClusterSpec *spec, bool is_across, GPtrArray *notes)
{
  g_autoptr (GString) words = g_string_new (NULL);
  ls_append_known (words, "collectives in a node", &spec->gpu.collectives_known);
  if (is_across)
    ls_append_known (words, "collectives across nodes", &spec->network_known);
  ls_note_known (words, notes);
}

static gboolean
tabulate (LsCollectiveRun *run, const LsCollectiveSpec *spec, LsCollKind kind,
          const LsCollectiveNetwork *networks, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) hardware
      = ls_hardware_load_with (spec->cluster, &(LsMeasuredFiles) { .nccl = spec->nccl }, diags);
  if (!hardware)
    return ls_diag_list_to_error (diags, error);
  if (!ls_hardware_set_slice (hardware, spec->slice, error))
    return FALSE;
  run->cluster = g_strdup (hardware->spec.name);
  run->op = g_strdup (spec->op);
  run->table.chips = ls_cluster_chip_word (&hardware->spec, 2);
  run->table.is_scaling = spec->gpus && spec->gpus->len > 1;
  note_boundaries (&run->table, &hardware->spec);

  Sweep x = { run, spec, kind, networks, hardware };
  if (!spec->gpus && !add_gpus (&x, 0, error))
    return FALSE;
  for (guint i = 0; spec->gpus && i < spec->gpus->len; i++)
    if (!add_gpus (&x, g_array_index (spec->gpus, uint32_t, i), error))
      return FALSE;
  run->title = title_of (run);
  uint32_t n_gpus = 0;
  for (guint i = 0; i < run->rows->len; i++)
    n_gpus = MAX (n_gpus, g_array_index (run->rows, LsCollectiveRow, i).n_ranks);
  bool is_across = n_gpus > ls_cluster_taken (&hardware->spec);
  ls_note_network (&hardware->spec, spec->cluster, is_across, spec->nccl, run->notes);
  ls_cluster_doubts (&hardware->spec, run->notes);
  if (!spec->nccl || ls_hardware_has_other_nccl (hardware))
    note_known (&hardware->spec, is_across, run->notes);
  ls_note_nccl (spec->nccl, hardware, run->notes);
  return TRUE;
}

/* --- the whole -------------------------------------------------------------------- */

static gboolean
check_sizes (const LsCollectiveSpec *spec, GError **error)
{
  if (spec->max_bytes == 0 || spec->min_bytes <= spec->max_bytes)
    return TRUE;
  g_autofree char *min = ls_format_bytes (spec->min_bytes), *max = ls_format_bytes (spec->max_bytes);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--min %s exceeds --max %s", min, max);
  return FALSE;
}

/* They are of one call. */
static gboolean
check_messages (const LsCollectiveSpec *spec, guint n_networks, GError **error)
{
  if (spec->compare || n_networks > 1)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--messages does not go with %s",
                 spec->compare ? "--compare" : "--network all");
  else if (spec->max_bytes > 0 || spec->factor > 0)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--messages is of one size, --min; leave --%s out",
                 spec->max_bytes > 0 ? "max" : "factor");
  else if (spec->gpus && spec->gpus->len > 1)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--messages is of one number of --gpus; got %u",
                 spec->gpus->len);
  else
    return TRUE;
  return FALSE;
}

static gboolean
check_given (const LsCollectiveSpec *spec, guint n_networks, GError **error)
{
  if (!spec->compare && (!spec->cluster || !spec->op))
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected --%s", spec->cluster ? "op" : "cluster");
  else if (!spec->compare && spec->trust)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--trust selects rows of --compare");
  else if (spec->compare && spec->slice[0] > 0)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
                 "--slice does not go with --compare, whose rows say how many chips ran");
  else if (spec->compare && spec->nccl)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
                 "--nccl does not go with --compare, whose rows say on which cluster they ran");
  else if (spec->compare && n_networks > 1)
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--compare takes one fidelity of the network; got --network all");
  else
    return (!spec->messages || check_messages (spec, n_networks, error)) && check_sizes (spec, error);
  return FALSE;
}

LsCollectiveRun *
ls_collective_run_new (const LsCollectiveSpec *spec, GError **error)
{
  LsCollKind kind = LS_COLL_ALL_REDUCE;
  const LsCollectiveNetwork *networks;
  guint n_networks;
  if ((spec->op && !ls_collective_find_kind (spec->op, &kind, error))
      || (spec->algorithm && !ls_collective_check_algorithm (spec->algorithm, error))
      || !ls_collective_find_networks (spec->network ? spec->network : "flow", &networks, &n_networks, error)
      || !check_given (spec, n_networks, error))
    return NULL;

  g_autoptr (LsCollectiveRun) run = run_new ();
  run->table.n_networks = n_networks;
  run->table.is_comparison = spec->compare != NULL;
  if (!(spec->compare ? ls_collective_compare (run, spec, networks, error)
                      : tabulate (run, spec, kind, networks, error)))
    return NULL;
  run->table.title = run->title;
  run->table.messages = run->messages;
  run->table.n_rows = run->rows->len;
  run->table.rows = (const LsCollectiveRow *) (gpointer) run->rows->data;
  run->table.n_families = run->families->len;
  run->table.families = (const LsCollectiveFamily *) (gpointer) run->families->data;
  return g_steal_pointer (&run);
}

const LsCollectiveTable *
ls_collective_run_table (const LsCollectiveRun *run)
{
  return &run->table;
}

GPtrArray *
ls_collective_run_notes (LsCollectiveRun *run)
{
  return run->notes;
}
