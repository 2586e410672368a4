#include "ask/sharing.h"

#include <math.h>
#include <string.h>

#include "analysis/report.h"
#include "ask/sharing_jobs.h"
#include "base/order.h"

static gboolean sharing_pack (const SharedJobs *jobs, const LsSharingOptions *options, LsSharing *s,
                              GError **error);
static gboolean sharing_shift (const SharedJobs *jobs, const LsSharingOptions *options, guint n_threads,
                               const LsProgress *progress, LsSharing *s, GError **error);

void
ls_sharing_options_init (LsSharingOptions *o)
{
  LsRunOptions run;
  ls_run_options_init (&run);
  *o = (LsSharingOptions) { .n_steps = 8,
                            .fold = LS_SHORTCUT_AUTO,
                            .coarsen = LS_SHORTCUT_AUTO,
                            .network = run.network,
                            .max_memory_bytes = run.max_memory_bytes };
}

static void
link_clear (gpointer link)
{
  LsSharingLink *l = link;
  g_free (l->name);
  g_free (l->uses);
}

void
ls_sharing_free (LsSharing *s)
{
  if (!s)
    return;
  for (guint i = 0; i < s->n_jobs; i++) {
    g_free (s->jobs[i].name);
    g_free (s->jobs[i].what);
    g_free (s->jobs[i].nodes);
    g_clear_pointer (&s->jobs[i].assumptions, g_array_unref);
  }
  for (guint i = 0; i < s->n_traffic; i++) {
    g_free (s->traffic[i].name);
    g_free (s->traffic[i].from);
    g_free (s->traffic[i].to);
  }
  g_free (s->traffic);
  g_free (s->jobs);
  g_free (s->cluster);
  g_clear_pointer (&s->links, g_array_unref);
  g_clear_pointer (&s->shifts, g_array_unref);
  g_free (s->packed_s);
  g_strfreev (s->packed_nodes);
  g_clear_pointer (&s->notes, g_ptr_array_unref);
  g_free (s);
}

/* --- runs ------------------------------------------------------------------------------------ */

typedef struct {
  const SharedJobs *jobs;
  LsRunOptions options;
  SharedAsk *asks;
  GError **errors; /* [n_asks] */
} Asks;

/* Whose error it is: ranks of all jobs are counted on. */
static void
name_job (const SharedJobs *jobs, uint32_t job, GError **error)
{
  const char *name = g_array_index (jobs->file.jobs, LsJobsEntry, job).name;
  uint32_t first = 0;
  for (guint i = 0; i < job; i++)
    first += jobs->jobs[i].job->plan->n_ranks;
  if (first > 0)
    g_prefix_error (error, "job \"%s\", whose rank 0 is rank %u here: ", name, first);
  else
    g_prefix_error (error, "job \"%s\": ", name);
}

static void
answer (guint i, gpointer data)
{
  const Asks *a = data;
  SharedAsk *ask = &a->asks[i];
  guint n = a->jobs->n;
  g_autofree LsShareJob *share = g_memdup2 (a->jobs->share, n * sizeof *share);
  for (guint k = 0; ask->shift && k < n; k++)
    share[k].start += ask->shift[k];
  ask->result = ls_run_share (share, n, ask->only, &a->jobs->traffic, a->jobs->cluster,
                              &a->jobs->hardware->nccl, &a->options, &a->errors[i]);
  if (a->errors[i] && ask->only != LS_SHARE_ALL)
    name_job (a->jobs, ask->only, &a->errors[i]);
}

/* All of them, or the first error. asks: [n]. */
static gboolean
shared_jobs_ask (const SharedJobs *jobs, const LsSharingOptions *options, SharedAsk *asks, guint n,
                 guint n_threads, const LsProgress *progress, GError **error)
{
  g_autofree GError **errors = g_new0 (GError *, n + 1);
  Asks a = { .jobs = jobs, .asks = asks, .errors = errors };
  ls_run_options_init (&a.options);
  a.options.n_steps = options->n_steps + 2;
  a.options.fold = options->fold;
  a.options.coarsen = options->coarsen;
  a.options.network = options->network;
  a.options.max_memory_bytes = options->max_memory_bytes;
  ls_parallel (n, n_threads, answer, &a, progress);
  return ls_parallel_first_error (errors, n, error) == n;
}

/* All of them, or the first error. asks: [n]. */
static void
shared_asks_free (SharedAsk *asks, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_free (asks[i].shift);
    ls_share_free (asks[i].result);
  }
  g_free (asks);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static double
seconds (double ps)
{
  return ps / 1e12;
}

static LsSharingJob
job_of (const SharedJobs *jobs, guint i, const LsShareSteps *alone, const LsShareSteps *shared)
{
  const LsJobsEntry *e = &g_array_index (jobs->file.jobs, LsJobsEntry, i);
  const LsJobResult *r = jobs->jobs[i].job;
  return (LsSharingJob) {
    .name = g_strdup (e->name),
    .what = g_strdup (r->model.name ? r->model.name : r->trace),
    .nodes = g_strdup (e->nodes),
    .n_gpus = r->plan->n_ranks,
    .n_nodes = jobs->jobs[i].allocation->n_seats,
    .start = e->start,
    .alone_s = seconds (alone->step_ps),
    .shared_s = seconds (shared->step_ps),
    .shortest_s = seconds ((double) shared->shortest),
    .longest_s = seconds ((double) shared->longest),
    .n_steps = shared->n_steps,
    .slowdown = shared->step_ps / alone->step_ps,
    .assumptions = r->assumptions ? g_array_ref (r->assumptions) : NULL,
  };
}

/* --- links ------------------------------------------------------------------------------------ */

static bool
is_contested (const LsShare *shared, uint32_t link)
{
  guint n = 0;
  for (guint i = 0; i < shared->n_jobs; i++)
    n += shared->jobs[i].resource_bytes[link] > 0;
  return n > 1 || (n == 1 && shared->resource_rate && shared->resource_rate[link] > 0);
}

static LsSharingLink
link_of (const SharedJobs *jobs, const SharedAsk *asks, uint32_t link)
{
  const LsShare *shared = asks[jobs->n].result;
  double capacity = ls_cluster_resource_capacity (jobs->cluster, link);
  LsSharingLink l = { .name = ls_cluster_resource_name (jobs->cluster, link),
                      .n = 1,
                      .bytes_per_s = capacity,
                      .uses = g_new0 (LsSharingUse, jobs->n) };
  for (guint i = 0; i < jobs->n; i++) {
    double bytes = shared->jobs[i].resource_bytes[link], full_s = bytes / capacity;
    l.uses[i] = (LsSharingUse) { bytes, full_s / seconds (asks[i].result->jobs[i].step_ps),
                                 full_s / seconds (shared->jobs[i].step_ps) };
    l.use_alone += l.uses[i].use_alone;
  }
  if (shared->resource_rate)
    l.use_traffic = shared->resource_rate[link] / capacity;
  return l;
}

static bool
is_alike (const LsSharingLink *a, const LsSharingLink *b, guint n_jobs)
{
  g_autofree char *x = ls_link_pattern (a->name), *y = ls_link_pattern (b->name);
  if (a->bytes_per_s != b->bytes_per_s || a->use_traffic != b->use_traffic || strcmp (x, y) != 0)
    return false;
  for (guint i = 0; i < n_jobs; i++)
    if (a->uses[i].bytes != b->uses[i].bytes)
      return false;
  return true;
}

static int
by_use (const void *a, const void *b)
{
  const LsSharingLink *x = a, *y = b;
  if (x->use_alone != y->use_alone)
    return x->use_alone > y->use_alone ? -1 : 1;
  return strcmp (x->name, y->name);
}

/* Sorted by use, those that are alike are neighbours, but for others with the very same use. */
static void
add_link (GArray *links, LsSharingLink *l, guint n_jobs)
{
  for (guint i = links->len; i-- > 0;) {
    LsSharingLink *known = &g_array_index (links, LsSharingLink, i);
    if (known->use_alone != l->use_alone)
      break;
    if (!is_alike (known, l, n_jobs))
      continue;
    char *name = ls_link_merge (known->name, l->name);
    g_free (known->name);
    known->name = name;
    known->n++;
    link_clear (l);
    return;
  }
  g_array_append_val (links, *l);
}

static GArray *
contested_links (const SharedJobs *jobs, const SharedAsk *asks)
{
  const LsShare *shared = asks[jobs->n].result;
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (LsSharingLink));
  for (uint32_t i = 0; i < jobs->cluster->n_trunks; i++) {
    if (!is_contested (shared, i))
      continue;
    LsSharingLink l = link_of (jobs, asks, i);
    g_array_append_val (all, l);
  }
  g_array_sort (all, by_use);
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsSharingLink));
  g_array_set_clear_func (links, link_clear);
  for (guint i = 0; i < all->len; i++)
    add_link (links, &g_array_index (all, LsSharingLink, i), jobs->n);
  g_array_sort (links, by_use);
  return links;
}

/* --- traffic ----------------------------------------------------------------------------------- */

static LsSharingTraffic
traffic_of (const SharedJobs *jobs, guint i, const LsShare *shared)
{
  const LsJobsTraffic *e = &g_array_index (jobs->file.traffic, LsJobsTraffic, i);
  guint first = g_array_index (jobs->first_flow, guint, i),
        behind = g_array_index (jobs->first_flow, guint, i + 1);
  double each = e->period > 0 ? (double) e->bytes / ls_time_to_s (e->period) : INFINITY;
  LsSharingTraffic t = { .name = g_strdup (e->name),
                         .from = g_strdup (e->from),
                         .to = g_strdup (e->to),
                         .n_flows = behind - first,
                         .asked = (behind - first) * (e->rate > 0 ? fmin (each, e->rate) : each) };
  for (guint k = first; k < behind; k++)
    t.moved += shared->traffic_rate[k];
  return t;
}

/* A mean over less than a period has what of its bursts happens to be there. */
static void
note_periods (const SharedJobs *jobs, const LsSharing *s, GPtrArray *notes)
{
  for (guint i = 0; i < s->n_traffic; i++) {
    const LsJobsTraffic *e = &g_array_index (jobs->file.traffic, LsJobsTraffic, i);
    if (ls_time_to_s (e->period) > s->window_s)
      g_ptr_array_add (notes,
                       g_strdup_printf ("%s: it comes every %.4g s, and steps were measured for %.4g s: "
                                        "their means depend on what of it was there; --steps N takes more",
                                        e->name, ls_time_to_s (e->period), s->window_s));
  }
}

/* --- the whole --------------------------------------------------------------------------------- */

static LsSharing *
sharing_of (const SharedJobs *jobs, const SharedAsk *asks)
{
  LsSharing *s = g_new0 (LsSharing, 1);
  const LsShare *shared = asks[jobs->n].result;
  s->cluster = g_strdup (jobs->cluster->spec.name);
  s->chips = ls_cluster_chip_word (&jobs->cluster->spec, 2);
  s->n_nodes = jobs->cluster->spec.n_nodes;
  s->n_gpus = jobs->cluster->n_gpus;
  s->is_periodic = shared->is_periodic;
  s->window_s = seconds ((double) (shared->window_end - shared->window_start));
  s->n_jobs = jobs->n;
  s->jobs = g_new0 (LsSharingJob, jobs->n);
  for (guint i = 0; i < jobs->n; i++) {
    s->jobs[i] = job_of (jobs, i, &asks[i].result->jobs[i], &shared->jobs[i]);
    s->mean_slowdown += s->jobs[i].slowdown / jobs->n;
  }
  s->n_traffic = jobs->file.traffic ? jobs->file.traffic->len : 0;
  s->traffic = g_new0 (LsSharingTraffic, s->n_traffic + 1);
  for (guint i = 0; i < s->n_traffic; i++)
    s->traffic[i] = traffic_of (jobs, i, shared);
  s->links = contested_links (jobs, asks);
  return s;
}

LsSharing *
ls_sharing_new (const char *path, const LsSharingOptions *options, guint n_threads,
                const LsProgress *progress, GError **error)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (SharedJobs) jobs = shared_jobs_new (path, options, notes, error);
  if (!jobs)
    return NULL;
  SharedAsk *asks = g_new0 (SharedAsk, jobs->n + 1);
  for (guint i = 0; i <= jobs->n; i++)
    asks[i].only = i < jobs->n ? i : LS_SHARE_ALL;
  LsSharing *s = NULL;
  if (shared_jobs_ask (jobs, options, asks, jobs->n + 1, n_threads, progress, error)) {
    s = sharing_of (jobs, asks);
    note_periods (jobs, s, notes);
    s->notes = g_steal_pointer (&notes);
  }
  shared_asks_free (asks, jobs->n + 1);
  if (s
      && (!sharing_shift (jobs, options, n_threads, progress, s, error)
          || !sharing_pack (jobs, options, s, error)))
    g_clear_pointer (&s, ls_sharing_free);
  return s;
}

/* ---- what other starts, and other nodes, would give the jobs ---- */

/* --- other starts ------------------------------------------------------------------------------ */

static void
shift_clear (gpointer shift)
{
  LsSharingShift *s = shift;
  g_free (s->shift);
  g_free (s->slowdown);
}

/* As they are. */
static LsSharingShift
no_shift (const LsSharing *s)
{
  LsSharingShift none
      = { 0, g_new0 (LsTime, s->n_jobs), g_new (double, s->n_jobs), .mean = s->mean_slowdown };
  for (guint i = 0; i < s->n_jobs; i++)
    none.slowdown[i] = s->jobs[i].slowdown;
  return none;
}

static LsSharingShift
shift_of (const LsSharing *s, guint job, const SharedAsk *ask)
{
  LsSharingShift shift
      = { job, g_memdup2 (ask->shift, s->n_jobs * sizeof *ask->shift), g_new (double, s->n_jobs), 0 };
  for (guint i = 0; i < s->n_jobs; i++) {
    shift.slowdown[i] = ask->result->jobs[i].step_ps / 1e12 / s->jobs[i].alone_s;
    shift.mean += shift.slowdown[i] / s->n_jobs;
  }
  return shift;
}

static const LsSharingShift *
best_of (const LsSharing *s)
{
  return &g_array_index (s->shifts, LsSharingShift, s->best);
}

/* One job, the others where they were best so far. */
static gboolean
shift_job (const SharedJobs *jobs, guint job, const LsSharingOptions *options, guint n_threads,
           const LsProgress *progress, LsSharing *s, GError **error)
{
  guint n = options->n_shifts - 1;
  SharedAsk *asks = g_new0 (SharedAsk, n);
  for (guint i = 0; i < n; i++) {
    asks[i].only = LS_SHARE_ALL;
    asks[i].shift = g_memdup2 (best_of (s)->shift, s->n_jobs * sizeof *asks[i].shift);
    asks[i].shift[job] = ls_time_from_s (s->jobs[job].alone_s * (i + 1) / options->n_shifts);
  }
  gboolean ok = shared_jobs_ask (jobs, options, asks, n, n_threads, progress, error);
  for (guint i = 0; ok && i < n; i++) {
    LsSharingShift shift = shift_of (s, job, &asks[i]);
    g_array_append_val (s->shifts, shift);
    if (shift.mean < best_of (s)->mean)
      s->best = s->shifts->len - 1;
  }
  shared_asks_free (asks, n);
  return ok;
}

/* Other starts, and other nodes. jobs: as they were, afterwards. s: the jobs as they are. */
static gboolean
sharing_shift (const SharedJobs *jobs, const LsSharingOptions *options, guint n_threads,
               const LsProgress *progress, LsSharing *s, GError **error)
{
  if (options->n_shifts == 0)
    return TRUE;
  LsSharingShift none = no_shift (s);
  s->shifts = g_array_new (FALSE, FALSE, sizeof (LsSharingShift));
  g_array_set_clear_func (s->shifts, shift_clear);
  g_array_append_val (s->shifts, none);
  s->n_points = options->n_shifts;
  gboolean ok = TRUE;
  for (guint job = 1; ok && job < s->n_jobs; job++)
    ok = shift_job (jobs, job, options, n_threads, progress, s, error);
  return ok;
}

/* --- other nodes -------------------------------------------------------------------------------- */

/* [n] newly allocated: the nodes of a job as they are. */
static uint32_t *
own_nodes (const SharedJobs *jobs, guint i)
{
  const LsAllocation *a = jobs->jobs[i].allocation;
  uint32_t *nodes = g_new (uint32_t, a->n_seats);
  for (uint32_t k = 0; k < a->n_seats; k++)
    nodes[k] = a->seats[k].node;
  return nodes;
}

/* "0-3,7". */
static char *
list_text (const uint32_t *nodes, uint32_t n)
{
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0, last; i < n; i = last + 1) {
    for (last = i; last + 1 < n && nodes[last + 1] == nodes[last] + 1;)
      last++;
    g_string_append_printf (out, "%s%u", i > 0 ? "," : "", nodes[i]);
    if (last > i)
      g_string_append_printf (out, "-%u", nodes[last]);
  }
  return g_string_free (out, FALSE);
}

/* uint32_t: the nodes of all, in the order of the cluster. */
static GArray *
all_nodes (const SharedJobs *jobs)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (guint i = 0; i < jobs->n; i++) {
    g_autofree uint32_t *own = own_nodes (jobs, i);
    g_array_append_vals (all, own, jobs->jobs[i].allocation->n_seats);
  }
  g_array_sort (all, ls_compare_uint32);
  return all;
}

static gboolean
run_packed (const SharedJobs *jobs, const LsSharingOptions *options, LsSharing *s, GError **error)
{
  SharedAsk *ask = g_new0 (SharedAsk, 1);
  ask->only = LS_SHARE_ALL;
  gboolean ok = shared_jobs_ask (jobs, options, ask, 1, 1, NULL, error);
  s->packed_s = ok ? g_new (double, s->n_jobs) : NULL;
  for (guint i = 0; ok && i < s->n_jobs; i++)
    s->packed_s[i] = ask->result->jobs[i].step_ps / 1e12;
  shared_asks_free (ask, 1);
  return ok;
}

/* Other starts, and other nodes. jobs: as they were, afterwards. s: the jobs as they are. */
static gboolean
sharing_pack (const SharedJobs *jobs, const LsSharingOptions *options, LsSharing *s, GError **error)
{
  g_autoptr (GArray) all = all_nodes (jobs);
  bool is_other = false, has_room = true;
  char **texts = g_new0 (char *, jobs->n + 1);
  for (guint i = 0, first = 0; i < jobs->n; first += jobs->jobs[i++].allocation->n_seats) {
    const uint32_t *nodes = &g_array_index (all, uint32_t, first);
    uint32_t n = jobs->jobs[i].allocation->n_seats;
    g_autofree uint32_t *own = own_nodes (jobs, i);
    is_other |= memcmp (own, nodes, n * sizeof *own) != 0;
    texts[i] = list_text (nodes, n);
    has_room &= shared_job_has_room (jobs, i, nodes);
    if (has_room)
      shared_job_place (jobs, i, nodes);
  }
  gboolean ok = !is_other || !has_room || run_packed (jobs, options, s, error);
  for (guint i = 0; i < jobs->n; i++) {
    g_autofree uint32_t *own = own_nodes (jobs, i);
    shared_job_place (jobs, i, own);
  }
  if (s->packed_s)
    s->packed_nodes = texts;
  else
    g_strfreev (texts);
  return ok;
}
