#include "ask/override_notes.h"

#include <string.h>

#include "data/machines/machines.h"
#include "data/text/override.h"

/* --- names ------------------------------------------------------------------------------- */

/* `name` without its i-th change. Newly allocated. */
static char *
without (const char *name, const GPtrArray *changes, guint i)
{
  GString *out = g_string_new_len (name, ls_override_find (name) - 1 - name);
  for (guint k = 0, n = 0; k < changes->len; k++)
    if (k != i)
      g_string_append_printf (out, "%c%s", n++ == 0 ? ':' : ',', (const char *) changes->pdata[k]);
  return g_string_free (out, FALSE);
}

/* "node.nics.link.bandwidth" of "node.nics.link.bandwidth=100GB/s". */
static char *
key_of (const char *change)
{
  return g_strndup (change, strcspn (change, "="));
}

static bool
is_size (const char *change)
{
  return g_str_has_prefix (change, "nodes=");
}

/* --- reasons ----------------------------------------------------------------------------- */

static double
carried_bytes (const LsJobResult *r, const LsLinkSpec *link)
{
  double bytes = 0;
  for (guint i = 0; i < r->cluster->n_trunks && i < r->timeline->n_resources; i++)
    if (ls_cluster_trunk (r->cluster, i)->link == link)
      bytes += ls_timeline_bytes (r->timeline, i);
  return bytes;
}

/* Why a key of a link has no effect; bytes: what crosses such links, negative: that is not known. */
static const char *
reason_of (const char *key, bool is_link, double bytes)
{
  if (!is_link)
    return "nothing here depends on it";
  if (bytes == 0)
    return "nothing crosses such a link here";
  if (bytes < 0)
    return "nothing here crosses such a link, or something else limits what does";
  if (g_str_has_suffix (key, ".latency"))
    return "NCCL's own latencies hold for the way to the leaf and back, and this link is not on it, or hides "
           "after others";
  return "what crosses such links is limited elsewhere (--critical-path and --sensitivity show where)";
}

static bool
is_same_link (const LsLinkSpec *a, const LsLinkSpec *b)
{
  return a->bandwidth_bytes_per_s == b->bandwidth_bytes_per_s && a->efficiency == b->efficiency
      && a->latency == b->latency;
}

/* A figure of the accelerator, by the last part of its key. */
static bool
is_same_figure (const LsGpu *a, const LsGpu *b, const char *key)
{
  const LsField *f = ls_field_find (ls_gpu_fields, key);
  const char *x = (const char *) a, *y = (const char *) b;
  switch (f ? f->kind : LS_FIELD_IGNORED) {
  case LS_FIELD_BYTES:
    return memcmp (x + f->offset, y + f->offset, sizeof (uint64_t)) == 0;
  case LS_FIELD_UINT:
    return memcmp (x + f->offset, y + f->offset, sizeof (uint32_t)) == 0;
  case LS_FIELD_BOOL:
    return memcmp (x + f->offset, y + f->offset, sizeof (bool)) == 0;
  case LS_FIELD_DOUBLE:
  case LS_FIELD_RATE:
  case LS_FIELD_FLOPS:
    return memcmp (x + f->offset, y + f->offset, sizeof (double)) == 0;
  default:
    return false;
  }
}

/* Whether the cluster has that value without the change too. other: its name without. */
static bool
is_said_already (const char *key, const LsClusterSpec *spec, const char *other)
{
  LsClusterSpec without;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!ls_cluster_load (other, &without, diags))
    return false;
  const LsLinkSpec *link = ls_cluster_link_at (spec, key), *same = ls_cluster_link_at (&without, key);
  bool is = link && same
      ? is_same_link (link, same)
      : g_str_has_prefix (key, "gpu.") && is_same_figure (&spec->gpu, &without.gpu, key + strlen ("gpu."));
  ls_cluster_spec_clear (&without);
  return is;
}

/* other: the cluster without the change. */
static void
add_note (GPtrArray *notes, const char *change, const char *other, const LsClusterSpec *spec,
          const LsJobResult *r)
{
  g_autofree char *key = key_of (change);
  const LsLinkSpec *link = ls_cluster_link_at (spec, key);
  double bytes = link && r ? carried_bytes (r, link) : -1;
  const char *reason = is_said_already (key, spec, other) ? "that is what it is without it"
                                                          : reason_of (key, link != NULL, bytes);
  ls_note (notes, "%s changes nothing: %s", change, reason);
}

/* --- jobs -------------------------------------------------------------------------------- */

/* The step, what a GPU can hold and what it must are the same with another cluster. */
static bool
is_same_job (const LsJobSpec *spec, const LsJobResult *r, char *cluster)
{
  LsJobSpec other = *spec; /* borrows all else */
  other.cluster = cluster;
  other.options.steady = true;
  other.network = spec->network == LS_JOB_NETWORK_ALL ? LS_JOB_NETWORK_FLOW : spec->network;
  g_autoptr (LsJobResult) x = ls_job_spec_run (&other, NULL);
  return x && x->report.step_time_s == r->report.step_time_s
      && x->report.capacity_bytes == r->report.capacity_bytes
      && x->report.context_bytes == r->report.context_bytes
      && x->report.needed_bytes == r->report.needed_bytes;
}

/* A job has a cluster of the nodes that it takes, whatever a file has, but with --nodes. What that many
 * change (detours of a dragonfly, hashed ways) is told. */
static void
note_size (const LsJobSpec *spec, const LsJobResult *r, const char *change, GPtrArray *notes)
{
  double asked = g_ascii_strtod (change + strlen ("nodes="), NULL);
  uint32_t has = r->cluster->spec.n_nodes;
  if (spec->n_nodes > 0 || asked <= has || asked > UINT32_MAX)
    return;
  LsJobSpec other = *spec; /* borrows all else */
  other.n_nodes = (uint32_t) asked;
  other.options.steady = true;
  other.network = spec->network == LS_JOB_NETWORK_ALL ? LS_JOB_NETWORK_FLOW : spec->network;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) x = ls_job_spec_run (&other, &error);
  if (x && x->report.step_time_s == r->report.step_time_s)
    return;
  g_autofree char *words
      = x ? g_strdup (" has all of them, and another step") : g_strconcat (": ", error->message, NULL);
  ls_note (notes,
           "%s changes nothing: the job is simulated on the nodes that it "
           "takes (%u); --nodes %u%s",
           change, has, other.n_nodes, words);
}

void
ls_override_note_job (const LsJobSpec *spec, const LsJobResult *r, GPtrArray *notes)
{
  const char *text = spec->cluster ? ls_override_find (spec->cluster) : NULL;
  g_autoptr (GPtrArray) changes = text ? ls_override_split (text) : NULL;
  for (guint i = 0; changes && i < changes->len; i++) {
    g_autofree char *cluster = without (spec->cluster, changes, i);
    if (is_size (changes->pdata[i]))
      note_size (spec, r, changes->pdata[i], notes);
    else if (is_same_job (spec, r, cluster))
      add_note (notes, changes->pdata[i], cluster, &r->cluster->spec, r);
  }
}

/* --- collectives ------------------------------------------------------------------------- */

static bool
is_same_table (const LsCollectiveSpec *spec, const LsCollectiveTable *table, char *cluster)
{
  LsCollectiveSpec other = *spec; /* borrows all else */
  other.cluster = cluster;
  g_autoptr (LsCollectiveRun) run = ls_collective_run_new (&other, NULL);
  const LsCollectiveTable *t = run ? ls_collective_run_table (run) : NULL;
  bool same = t && t->n_rows == table->n_rows;
  for (guint i = 0; same && i < t->n_rows; i++)
    same = t->rows[i].time == table->rows[i].time;
  return same;
}

void
ls_override_note_collective (const LsCollectiveSpec *spec, const LsCollectiveTable *table, GPtrArray *notes)
{
  const char *text = spec->cluster && !spec->compare ? ls_override_find (spec->cluster) : NULL;
  g_autoptr (GPtrArray) changes = text ? ls_override_split (text) : NULL;
  LsClusterSpec cluster;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!changes || !ls_cluster_load (spec->cluster, &cluster, diags))
    return;
  for (guint i = 0; i < changes->len; i++) {
    g_autofree char *name = without (spec->cluster, changes, i);
    if (!is_size (changes->pdata[i]) && is_same_table (spec, table, name))
      add_note (notes, changes->pdata[i], name, &cluster, NULL);
  }
  ls_cluster_spec_clear (&cluster);
}
