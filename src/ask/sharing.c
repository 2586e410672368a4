#include "ask/sharing.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "analysis/report.h"
#include "base/list.h"
#include "base/order.h"
#include "cluster/allocation.h"
#include "data/jobs/read_jobs.h"
#include "job/assumptions.h"
#include "job/job.h"

void
ls_sharing_options_init (LsSharingOptions *o)
{
  *o = (LsSharingOptions) { 0 };
  ls_run_options_init (&o->run);
  o->run.n_steps = 8;
  o->run.fold = o->run.coarsen = LS_SHORTCUT_AUTO;
}

void
ls_sharing_free (LsSharing *s)
{
  if (!s)
    return;
  for (guint i = 0; i < s->n_jobs; i++) {
    g_clear_pointer (&s->jobs[i].assumptions, g_array_unref);
    g_clear_pointer (&s->jobs[i].knobs, g_array_unref);
  }
  g_clear_pointer (&s->assumptions, g_array_unref);
  g_clear_pointer (&s->links, g_array_unref);
  g_clear_pointer (&s->shifts, g_array_unref);
  g_clear_pointer (&s->notes, g_ptr_array_unref);
  ls_arena_free (s->arena);
  g_free (s);
}

/* --- jobs of a file, put onto their nodes of one cluster ------------------------------------------ */

typedef struct {
  LsJobResult *job;  /* prepared; its plan has GPUs of the cluster of all */
  LsHardware chosen; /* borrows those of the job */
  LsHostCosts host;
  double *slow; /* [ranks], NULL: none is */
  LsAllocation *allocation;
  uint32_t *own; /* [ranks] the GPUs of the plan where the job has a cluster to itself */
} SharedJob;

typedef struct {
  LsJobsFile file;
  LsHardware *hardware;
  LsCluster *cluster;
  guint n;
  SharedJob *jobs;        /* [n] */
  LsShareJob *share;      /* [n] the same for exec/share.h */
  GArray *flows;          /* LsTraffic, in the order of the file */
  GArray *first_flow;     /* guint: of each entry of the file's traffic, and behind the last */
  LsShareTraffic traffic; /* the same flows */
} SharedJobs;

/* NULL allowed */
static void
shared_jobs_free (SharedJobs *jobs)
{
  if (!jobs)
    return;
  for (guint i = 0; i < jobs->n; i++) {
    ls_job_result_free (jobs->jobs[i].job);
    ls_allocation_unref (jobs->jobs[i].allocation);
    g_free (jobs->jobs[i].slow);
    g_free (jobs->jobs[i].own);
  }
  g_free (jobs->jobs);
  g_free (jobs->share);
  g_clear_pointer (&jobs->flows, g_array_unref);
  g_clear_pointer (&jobs->first_flow, g_array_unref);
  ls_cluster_free (jobs->cluster);
  ls_hardware_free (jobs->hardware);
  ls_jobs_clear (&jobs->file);
  g_free (jobs);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (SharedJobs, shared_jobs_free)

static const LsJobsEntry *
entry (const SharedJobs *jobs, guint i)
{
  return &g_array_index (jobs->file.jobs, LsJobsEntry, i);
}

/* --- one job: its options ------------------------------------------------------------------- */

/* Those of the machine and of the run, which all jobs have in common. */
static const char *const common[]
    = { "cluster",  "nodes",     "slice",        "segment",          "gpu-calibration", "nccl",
        "steps",    "network",   "fold",         "coarsen",          "max-memory",      "residuals",
        "measured", "published", "memory-clock", "memory-allocator", "headroom",        "strict",
        "debug",    NULL };

/* What sets defaults comes first (job/job.h). */
static const char *const sets_defaults[] = { "for", "software", "model", "from", "strategy", NULL };

/* A rule of a strategy begins with what it is about, and belongs there, without its beginning. */
static void
tell_one (const SharedJobs *jobs, guint i, const char *key, bool is_option, LsErrorCode code,
          const char *text, LsDiagList *diags)
{
  g_autofree char *about = NULL;
  if (g_str_has_prefix (text, "/placement: "))
    text += strlen ("/placement: ");
  const char *colon = text[0] == '/' && !is_option ? strstr (text, ": ") : NULL;
  if (colon)
    about = g_strndup (text + 1, (gsize) (colon - text - 1));
  bool is_there = false;
  for (char **o = entry (jobs, i)->options; about && strcmp (key, "options") == 0 && o && *o; o++)
    is_there |= g_str_has_prefix (*o, about) && (*o)[strlen (about)] == '=';
  if (is_there)
    text = colon + strlen (": "); /* the place says it */
  ls_jobs_diag (&jobs->file, i, is_there ? about : key, is_option || is_there, code, text, diags);
}

/* Takes the error, which may be several. */
static void
tell (const SharedJobs *jobs, guint i, const char *key, bool is_option, GError *error, LsDiagList *diags)
{
  const char *text = error->message;
  if (g_str_has_prefix (text, "error: "))
    text += strlen ("error: ");
  g_auto (GStrv) all = g_strsplit (text, "\nerror: ", -1);
  LsErrorCode code = error->code == LS_ERROR_USAGE ? LS_ERROR_INPUT : (LsErrorCode) error->code;
  for (char **one = all; *one; one++)
    tell_one (jobs, i, key, is_option, code, *one, diags);
  g_error_free (error);
}

static void
set_option (const SharedJobs *jobs, guint i, const char *key, const char *value, LsJobSpec *spec,
            LsDiagList *diags)
{
  g_autofree char *flag = g_strdelimit (g_strdup (key), "_", '-');
  g_autoptr (LsDiagList) own = ls_diag_list_new ();
  GError *error = NULL;
  if (g_strv_contains (common, flag))
    g_set_error (&error, LS_ERROR, LS_ERROR_INPUT, "\"%s\" is not of one job: all have it in common", key);
  else if (ls_job_spec_set (spec, flag, value, own))
    return;
  if (!error)
    ls_diag_list_to_error (own, &error);
  tell (jobs, i, key, true, error, diags);
}

/* turn: of `sets_defaults`, or behind all of them. */
static void
set_options (const SharedJobs *jobs, guint i, LsJobSpec *spec, LsDiagList *diags)
{
  for (guint turn = 0; turn < G_N_ELEMENTS (sets_defaults); turn++)
    for (char **o = entry (jobs, i)->options; o && *o; o++) {
      const char *equals = strchr (*o, '=');
      g_autofree char *key = g_strndup (*o, (gsize) (equals - *o));
      gboolean now = sets_defaults[turn] ? strcmp (key, sets_defaults[turn]) == 0
                                         : !g_strv_contains (sets_defaults, key);
      if (now)
        set_option (jobs, i, key, equals + 1, spec, diags);
    }
}

/* --- one job: its nodes --------------------------------------------------------------------- */

static void
find_nodes (SharedJobs *jobs, guint i, LsDiagList *diags)
{
  g_autofree char *why = NULL;
  LsAllocation *a = ls_allocation_parse (entry (jobs, i)->nodes, &why);
  if (a && a->kind != LS_ALLOCATION_NODES) {
    g_clear_pointer (&a, ls_allocation_unref);
    why = g_strdup ("expected a list of nodes, such as \"0-3,7\": nodes are not drawn for several jobs");
  }
  jobs->jobs[i].allocation = a;
  if (!a)
    ls_jobs_diag (&jobs->file, i, "nodes", false, LS_ERROR_INPUT, why, diags);
}

/* Several lists count alike, another one (or NULL) too; how they count is noted once, unless notes is
 * NULL. */
static void
count_nodes (const SharedJobs *jobs, LsAllocation *other, GPtrArray *notes)
{
  const char *note = NULL;
  g_autofree LsAllocation **all = g_new (LsAllocation *, jobs->n + 1);
  for (guint i = 0; i < jobs->n; i++)
    all[i] = jobs->jobs[i].allocation;
  all[jobs->n] = other;
  ls_allocations_agree (all, jobs->n + (other != NULL));
  for (guint i = 0; notes && i < jobs->n && !note; i++)
    note = ls_allocation_note (all[i]);
  if (note)
    g_ptr_array_add (notes, g_strdup (note));
}

/* How many nodes a list needs the cluster to have; NULL: none, as of one that is wrong, which is said
 * later. */
static uint32_t
most_named (const LsAllocation *a)
{
  uint32_t n = a ? ls_allocation_cluster_nodes (a) : 0;
  for (uint32_t k = 0; a && a->kind == LS_ALLOCATION_NODES && k < a->n_seats; k++)
    n = MAX (n, a->seats[k].node + 1);
  return n;
}

/* Counts as the jobs do. */
static LsAllocation *
parse_beside (const SharedJobs *jobs, const char *text, char **reterr_why)
{
  LsAllocation *a = ls_allocation_parse (text, reterr_why);
  count_nodes (jobs, a, NULL);
  return a;
}

/* As many as the lists name, or are behind their colons, and at least those of the cluster's file. */
static uint32_t
n_nodes_of (const SharedJobs *jobs)
{
  uint32_t n = jobs->hardware->spec.n_nodes;
  if (jobs->file.n_nodes > 0)
    return jobs->file.n_nodes;
  for (guint i = 0; i < jobs->n; i++)
    n = MAX (n, most_named (jobs->jobs[i].allocation));
  for (guint i = 0; jobs->file.traffic && i < jobs->file.traffic->len; i++) {
    const LsJobsTraffic *t = &g_array_index (jobs->file.traffic, LsJobsTraffic, i);
    g_autofree char *why_from = NULL, *why_to = NULL;
    g_autoptr (LsAllocation) from = parse_beside (jobs, t->from, &why_from),
                             to = parse_beside (jobs, t->to, &why_to);
    n = MAX (n, MAX (most_named (from), most_named (to)));
  }
  return n;
}

/* No node is of two jobs. */
static void
check_nodes_apart (const SharedJobs *jobs, guint i, uint32_t *job_of, LsDiagList *diags)
{
  const LsAllocation *a = jobs->jobs[i].allocation;
  for (uint32_t k = 0; k < a->n_seats; k++) {
    uint32_t node = a->seats[k].node, *of = &job_of[node];
    if (node >= jobs->cluster->spec.n_nodes)
      continue; /* said already */
    if (*of > 0 && *of != i + 1) {
      g_autofree char *text
          = g_strdup_printf ("node %u is of job \"%s\" already", node, entry (jobs, *of - 1)->name);
      ls_jobs_diag (&jobs->file, i, "nodes", false, LS_ERROR_CONFLICT, text, diags);
      return;
    }
    *of = i + 1;
  }
}

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

/* Puts a job onto these nodes instead, as many as it has: the plan changes its GPUs. */
static void
shared_job_place (const SharedJobs *jobs, guint i, const uint32_t *nodes)
{
  const SharedJob *j = &jobs->jobs[i];
  for (uint32_t r = 0; r < j->job->plan->n_ranks; r++) {
    uint32_t node = ls_cluster_host_of (j->job->cluster, j->own[r]),
             local = ls_cluster_local_of (j->job->cluster, j->own[r]);
    ls_plan_gpus (j->job->plan)[r] = ls_cluster_gpu_at (jobs->cluster, nodes[node], local);
  }
}

/* --- one job -------------------------------------------------------------------------------- */

/* Lowered as if it had a cluster of its nodes to itself. */
static gboolean
prepare (SharedJobs *jobs, guint i, LsJobSpec *spec, const LsSharingOptions *options, GError **error)
{
  SharedJob *j = &jobs->jobs[i];
  g_autofree uint32_t *nodes = own_nodes (jobs, i);
  spec->n_nodes = spec->n_of_nodes = j->allocation->n_seats;
  spec->of_nodes = nodes;
  spec->has_no_faults = true; /* which are of the cluster's nodes, not of its own */
  spec->options.max_memory_bytes = options->run.max_memory_bytes;
  j->job = ls_job_spec_prepare (spec, error);
  spec->of_nodes = NULL;
  if (!j->job)
    return FALSE;
  const LsRunOptions run = ls_job_spec_options (spec);
  ls_job_hardware (j->job, j->job->hardware, &run, &j->chosen);
  ls_host_costs_default (&j->host);
  ls_hardware_host (j->job->hardware, &j->job->strategy, &j->host);
  g_autoptr (GError) failed = NULL;
  LsPlan *plan = j->job->plan;
  j->slow = run.stragglers ? ls_slow_factors (run.stragglers, plan->n_ranks, &failed) : NULL;
  if (failed)
    return ls_fail (error, (LsErrorCode) failed->code, "%s", failed->message);
  j->own = g_memdup2 (ls_plan_gpus (plan), plan->n_ranks * sizeof *plan->gpu_of_rank);
  shared_job_place (jobs, i, nodes);
  return TRUE;
}

/* Memory by the order of allocations (exec/memory/memory.h). */
static void
keep_notes (const SharedJobs *jobs, guint i, GPtrArray *notes)
{
  const SharedJob *j = &jobs->jobs[i];
  for (guint k = 0; j->job->notes && k < j->job->notes->len; k++)
    ls_note (notes, "%s: %s", entry (jobs, i)->name, (char *) j->job->notes->pdata[k]);
  LsMemoryOptions options = { 0 };
  LsMemoryInput in = ls_job_result_memory_input (j->job, &j->chosen, &options);
  in.cluster = jobs->cluster; /* where its ranks are */
  g_autoptr (LsMemory) memory = ls_memory_new (&in);
  uint64_t needed = ls_memory_fullest (memory)->needed_bytes,
           there = ls_memory_fullest (memory)->capacity_bytes;
  if (needed <= there)
    return;
  g_autofree char *need = ls_format_bytes (needed), *have = ls_format_bytes (there);
  ls_note (notes, "%s: does not fit: a rank needs about %s of %s; lockstep run says more",
           entry (jobs, i)->name, need, have);
}

static void
add_job (SharedJobs *jobs, guint i, const LsSharingOptions *options, GPtrArray *notes, LsDiagList *diags)
{
  LsJobSpec spec;
  GError *error = NULL;
  guint n_before = ls_diag_list_n (diags);
  ls_job_spec_init (&spec);
  spec.cluster = g_strdup (jobs->file.cluster);
  set_options (jobs, i, &spec, diags);
  if (ls_diag_list_n (diags) == n_before) {
    if (prepare (jobs, i, &spec, options, &error))
      keep_notes (jobs, i, notes);
    else
      tell (jobs, i, "options", false, error, diags);
  }
  ls_job_spec_clear (&spec);
}

/* --- traffic ---------------------------------------------------------------------------------- */

/* uint32_t; NULL: it is not a list of nodes of this cluster. */
static GArray *
nodes_of (const SharedJobs *jobs, guint i, const char *key, const char *text, LsDiagList *diags)
{
  g_autofree char *why = NULL;
  g_autoptr (LsAllocation) a = parse_beside (jobs, text, &why);
  uint32_t n = jobs->cluster->spec.n_nodes;
  GArray *nodes = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  if (a && a->kind != LS_ALLOCATION_NODES)
    why = g_strdup ("expected a list of nodes, such as \"0-3,7\"");
  for (uint32_t k = 0; a && !why && k < a->n_seats; k++) {
    g_array_append_val (nodes, a->seats[k].node);
    if (a->seats[k].node >= n)
      why = g_strdup_printf ("node %u: the cluster has %u, 0 to %u", a->seats[k].node, n, n - 1);
  }
  if (!why)
    return nodes;
  ls_jobs_diag_traffic (&jobs->file, i, key, LS_ERROR_CONFLICT, why, diags);
  g_array_unref (nodes);
  return NULL;
}

/* Whether there is a way over NICs. */
static bool
check_flow (const SharedJobs *jobs, guint i, const LsTraffic *t, LsDiagList *diags)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t n_flows;
  if (t->node_from == t->node_to) {
    g_autofree char *text = g_strdup_printf ("node %u sends to itself: expected another", t->node_to);
    ls_jobs_diag_traffic (&jobs->file, i, "to", LS_ERROR_CONFLICT, text, diags);
    return false;
  }
  if (ls_traffic_phase (jobs->cluster, t, &n_flows, arena))
    return true;
  ls_jobs_diag_traffic (&jobs->file, i, "from", LS_ERROR_CONFLICT,
                        "there is no way from NICs of one node to those of the other", diags);
  return false;
}

static void
add_traffic (SharedJobs *jobs, guint i, LsDiagList *diags)
{
  const LsJobsTraffic *e = &g_array_index (jobs->file.traffic, LsJobsTraffic, i);
  g_autoptr (GArray) from = nodes_of (jobs, i, "from", e->from, diags),
                     to = nodes_of (jobs, i, "to", e->to, diags);
  bool ok = from && to;
  if (ok && to->len > from->len) {
    g_autofree char *text = g_strdup_printf (
        "%u nodes send, the others get nothing: expected at most so many; got %u", from->len, to->len);
    ls_jobs_diag_traffic (&jobs->file, i, "to", LS_ERROR_CONFLICT, text, diags);
    ok = false;
  }
  for (guint k = 0; ok && k < from->len; k++) {
    LsTraffic t = { .node_from = g_array_index (from, uint32_t, k),
                    .node_to = g_array_index (to, uint32_t, k % to->len),
                    .bytes = e->bytes,
                    .period = e->period,
                    .start = e->start,
                    .rate = e->rate };
    ok = check_flow (jobs, i, &t, diags);
    g_array_append_val (jobs->flows, t);
  }
}

static void
add_all_traffic (SharedJobs *jobs, LsDiagList *diags)
{
  jobs->flows = g_array_new (FALSE, FALSE, sizeof (LsTraffic));
  jobs->first_flow = g_array_new (FALSE, FALSE, sizeof (guint));
  guint n = jobs->file.traffic ? jobs->file.traffic->len : 0;
  for (guint i = 0; i <= n; i++) {
    g_array_append_val (jobs->first_flow, jobs->flows->len);
    if (i < n)
      add_traffic (jobs, i, diags);
  }
  jobs->traffic = (LsShareTraffic) { (const LsTraffic *) jobs->flows->data, jobs->flows->len };
}

/* --- all ------------------------------------------------------------------------------------- */

static void
place_all (SharedJobs *jobs, LsDiagList *diags)
{
  g_autofree uint32_t *job_of = g_new0 (uint32_t, jobs->cluster->spec.n_nodes); /* + 1 */
  for (guint i = 0; i < jobs->n; i++) {
    GError *error = NULL;
    uint32_t gpu;
    if (ls_allocation_gpus (jobs->jobs[i].allocation, &jobs->cluster->spec, 1, &gpu, &error))
      check_nodes_apart (jobs, i, job_of, diags);
    else
      tell (jobs, i, "nodes", false, error, diags);
  }
}

static void
share_all (SharedJobs *jobs)
{
  jobs->share = g_new0 (LsShareJob, jobs->n);
  for (guint i = 0; i < jobs->n; i++) {
    const SharedJob *j = &jobs->jobs[i];
    jobs->share[i] = (LsShareJob) { .plan = j->job->plan,
                                    .calibration = &j->chosen.calibration,
                                    .host = &j->host,
                                    .slow = j->slow,
                                    .start = entry (jobs, i)->start };
  }
}

/* NULL: errors as of ls_sharing_new(). notes: what is worth knowing of the jobs. */
static SharedJobs *
shared_jobs_new (const char *path, const LsSharingOptions *options, GPtrArray *notes, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (SharedJobs) jobs = g_new0 (SharedJobs, 1);
  if (ls_jobs_load (path, &jobs->file, diags)) {
    jobs->hardware = ls_hardware_load (jobs->file.cluster, diags);
    jobs->n = jobs->file.jobs->len;
    jobs->jobs = g_new0 (SharedJob, jobs->n);
    for (guint i = 0; i < jobs->n; i++)
      find_nodes (jobs, i, diags);
    count_nodes (jobs, NULL, notes);
  }
  if (!ls_diag_list_to_error (diags, error))
    return NULL;
  jobs->hardware->max_memory_bytes = options->run.max_memory_bytes;
  jobs->cluster = ls_hardware_build (jobs->hardware, n_nodes_of (jobs), error);
  if (!jobs->cluster)
    return NULL;
  place_all (jobs, diags);
  for (guint i = 0; i < jobs->n; i++)
    add_job (jobs, i, options, notes, diags);
  add_all_traffic (jobs, diags);
  if (!ls_diag_list_to_error (diags, error))
    return NULL;
  share_all (jobs);
  return g_steal_pointer (&jobs);
}

/* --- runs ------------------------------------------------------------------------------------ */

/* Of one question: one job alone, or all of them, begun later by so much. */
typedef struct {
  uint32_t only;
  const LsTime *shift; /* [n] of the jobs; NULL: none */
  LsShare *result;     /* NULL until it is asked, and where that failed */
} SharedAsk;

typedef struct {
  const SharedJobs *jobs;
  const LsSharingOptions *options;
  guint n_threads;
  const LsProgress *progress;
  LsRunOptions run;
  SharedAsk *asks;
  GError **errors; /* [n_asks] */
} Asks;

/* Whose error it is: ranks of all jobs are counted on. */
static void
name_job (const SharedJobs *jobs, uint32_t job, GError **error)
{
  uint32_t first = 0;
  for (guint i = 0; i < job; i++)
    first += jobs->jobs[i].job->plan->n_ranks;
  if (first > 0)
    g_prefix_error (error, "job \"%s\", whose rank 0 is rank %u here: ", entry (jobs, job)->name, first);
  else
    g_prefix_error (error, "job \"%s\": ", entry (jobs, job)->name);
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
                              &a->jobs->hardware->nccl, &a->run, &a->errors[i]);
  if (a->errors[i] && ask->only != LS_SHARE_ALL)
    name_job (a->jobs, ask->only, &a->errors[i]);
}

/* All of them, or the first error. asks: [n]. */
static gboolean
ask_all (const Asks *x, SharedAsk *asks, guint n, GError **error)
{
  g_autofree GError **errors = g_new0 (GError *, n + 1);
  Asks a = *x;
  a.asks = asks;
  a.errors = errors;
  a.run = x->options->run;
  a.run.n_steps += 2;
  ls_parallel (n, x->n_threads, answer, &a, x->progress);
  return ls_parallel_first_error (errors, n, error) == n;
}

static void
clear_asks (SharedAsk *asks, guint n)
{
  for (guint i = 0; i < n; i++)
    ls_share_free (asks[i].result);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static double
seconds (double ps)
{
  return ps / 1e12;
}

/* What is typed of a job, as its file says it: "--set a=N" and "--a-b N" are its keys, "--cluster X" all
 * jobs'. */
static char *
as_key (const char *typed)
{
  const bool is_set = g_str_has_prefix (typed, "--set "), is_option = g_str_has_prefix (typed, "--");
  const char *key = typed + (is_set ? strlen ("--set ") : strlen ("--"));
  if (!is_option)
    return g_strdup (typed);
  if (g_str_has_prefix (key, "cluster "))
    return g_strdup_printf ("\"cluster\": \"%s\"", key + strlen ("cluster "));
  const gsize n = strcspn (key, is_set ? "=" : " ");
  g_autofree char *name = g_strdelimit (g_strndup (key, n), "-", '_');
  return g_strdup_printf ("\"%s\": %s", name, key[n] ? key + n + 1 : "true");
}

/* All but of what all jobs share; NULL: has none. */
static GArray *
own_rows (GArray *rows)
{
  static const char *const shared[] = { "network", "steps", "memory_clock", "memory_allocator", NULL };
  for (guint i = rows ? rows->len : 0; i-- > 0;) {
    LsAssumption *a = &g_array_index (rows, LsAssumption, i);
    g_autofree char *typed = a->instead;
    a->instead = as_key (typed);
    if (g_strv_contains (shared, a->key))
      g_array_remove_index (rows, i);
  }
  return rows ? g_array_ref (rows) : NULL;
}

static LsSharingJob
job_of (const SharedJobs *jobs, guint i, const LsShareSteps *alone, const LsShareSteps *shared,
        LsArena *arena)
{
  const LsJobsEntry *e = entry (jobs, i);
  const LsJobResult *r = jobs->jobs[i].job;
  return (LsSharingJob) {
    .name = ls_arena_strdup (arena, e->name),
    .what = ls_arena_strdup (arena, r->model.name ? r->model.name : r->trace),
    .nodes = ls_arena_strdup (arena, e->nodes),
    .n_gpus = r->plan->n_ranks,
    .n_nodes = jobs->jobs[i].allocation->n_seats,
    .start = e->start,
    .alone_s = seconds (alone->step_ps),
    .shared_s = seconds (shared->step_ps),
    .shortest_s = seconds ((double) shared->shortest),
    .longest_s = seconds ((double) shared->longest),
    .n_steps = shared->n_steps,
    .slowdown = shared->step_ps / alone->step_ps,
    .assumptions = own_rows (r->assumptions),
    .knobs = own_rows (r->knobs),
  };
}

/* --- links ------------------------------------------------------------------------------------ */

static LsSharingLink
link_of (const SharedJobs *jobs, const SharedAsk *asks, uint32_t link, LsArena *arena)
{
  const LsShare *shared = asks[jobs->n].result;
  g_autofree char *name = ls_cluster_resource_name (jobs->cluster, link);
  double capacity = ls_cluster_resource_capacity (jobs->cluster, link);
  LsSharingLink l = { .name = ls_arena_strdup (arena, name),
                      .n = 1,
                      .bytes_per_s = capacity,
                      .uses = ls_arena_new_array (arena, LsSharingUse, jobs->n) };
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

static const LsSortKey by_use[]
    = { { LS_FALLING (LsSharingLink, use_alone) }, { LS_RISING (LsSharingLink, name) }, { 0 } };

/* Sorted by use, those that are alike are neighbours, but for others with the very same use. */
static void
add_link (GArray *links, const LsSharingLink *l, guint n_jobs, LsArena *arena)
{
  for (guint i = links->len; i-- > 0;) {
    LsSharingLink *known = &g_array_index (links, LsSharingLink, i);
    if (known->use_alone != l->use_alone)
      break;
    if (!is_alike (known, l, n_jobs))
      continue;
    g_autofree char *name = ls_link_merge (known->name, l->name);
    known->name = ls_arena_strdup (arena, name);
    known->n++;
    return;
  }
  g_array_append_val (links, *l);
}

static GArray *
contested_links (const SharedJobs *jobs, const SharedAsk *asks, LsArena *arena)
{
  const LsShare *shared = asks[jobs->n].result;
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (LsSharingLink));
  for (uint32_t i = 0; i < jobs->cluster->n_trunks; i++) {
    guint n = shared->resource_rate && shared->resource_rate[i] > 0;
    for (guint k = 0; k < jobs->n; k++)
      n += shared->jobs[k].resource_bytes[i] > 0;
    if (n < 2)
      continue;
    LsSharingLink l = link_of (jobs, asks, i, arena);
    g_array_append_val (all, l);
  }
  ls_sort_by (all, by_use);
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsSharingLink));
  for (guint i = 0; i < all->len; i++)
    add_link (links, &g_array_index (all, LsSharingLink, i), jobs->n, arena);
  ls_sort_by (links, by_use);
  return links;
}

/* --- traffic ----------------------------------------------------------------------------------- */

static LsSharingTraffic
traffic_of (const SharedJobs *jobs, guint i, const LsShare *shared, LsArena *arena)
{
  const LsJobsTraffic *e = &g_array_index (jobs->file.traffic, LsJobsTraffic, i);
  guint first = g_array_index (jobs->first_flow, guint, i),
        behind = g_array_index (jobs->first_flow, guint, i + 1);
  double each = e->period > 0 ? (double) e->bytes / ls_time_to_s (e->period) : INFINITY;
  LsSharingTraffic t = { .name = ls_arena_strdup (arena, e->name),
                         .from = ls_arena_strdup (arena, e->from),
                         .to = ls_arena_strdup (arena, e->to),
                         .n_flows = behind - first,
                         .asked = (behind - first) * (e->rate > 0 ? fmin (each, e->rate) : each) };
  for (guint k = first; k < behind; k++)
    t.moved += shared->traffic_rate[k];
  return t;
}

static void
note_periods (const SharedJobs *jobs, const LsSharing *s)
{
  for (guint i = 0; i < s->n_traffic; i++) {
    const LsJobsTraffic *e = &g_array_index (jobs->file.traffic, LsJobsTraffic, i);
    if (isnan (s->traffic[i].moved))
      ls_note (
          s->notes,
          "%s: it comes every %.4g s, and steps were measured for %.4g s, without a whole period: "
          "what it gets is unknown, and their means depend on what of it was there; --steps N takes more",
          e->name, ls_time_to_s (e->period), s->window_s);
  }
}

/* --- the whole --------------------------------------------------------------------------------- */

/* asks: of each job alone, then of all. */
static void
fill (LsSharing *s, const SharedJobs *jobs, const SharedAsk *asks)
{
  const LsShare *shared = asks[jobs->n].result;
  s->cluster = ls_arena_strdup (s->arena, jobs->cluster->spec.name);
  s->chips = ls_cluster_chip_word (&jobs->cluster->spec, 2);
  s->n_nodes = jobs->cluster->spec.n_nodes;
  s->n_gpus = jobs->cluster->n_gpus;
  s->is_periodic = shared->is_periodic;
  s->window_s = seconds ((double) (shared->window_end - shared->window_start));
  s->n_jobs = jobs->n;
  s->jobs = ls_arena_new_array (s->arena, LsSharingJob, jobs->n);
  for (guint i = 0; i < jobs->n; i++) {
    s->jobs[i] = job_of (jobs, i, &asks[i].result->jobs[i], &shared->jobs[i], s->arena);
    s->mean_slowdown += s->jobs[i].slowdown / jobs->n;
  }
  s->n_traffic = jobs->file.traffic ? jobs->file.traffic->len : 0;
  s->traffic = ls_arena_new_array (s->arena, LsSharingTraffic, s->n_traffic);
  for (guint i = 0; i < s->n_traffic; i++)
    s->traffic[i] = traffic_of (jobs, i, shared, s->arena);
  s->links = contested_links (jobs, asks, s->arena);
  note_periods (jobs, s);
  const char *by = s->n_nodes == jobs->hardware->spec.n_nodes ? "the cluster's file" : "those that are named";
  ls_assumptions_add (&s->assumptions, "nodes", g_strdup_printf ("%u", s->n_nodes), "a cluster of %s nodes",
                      jobs->file.n_nodes > 0 ? NULL : by, "\"nodes\": N");
}

/* --- other starts ------------------------------------------------------------------------------ */

/* result NULL: as they are. */
static void
add_shift (LsSharing *s, guint job, const LsTime *later, const LsShare *result)
{
  LsSharingShift shift = { job, ls_arena_new_array (s->arena, LsTime, s->n_jobs),
                           ls_arena_new_array (s->arena, double, s->n_jobs), 0 };
  for (guint i = 0; i < s->n_jobs; i++) {
    shift.shift[i] = result ? later[i] : 0;
    shift.slowdown[i] = result ? seconds (result->jobs[i].step_ps) / s->jobs[i].alone_s : s->jobs[i].slowdown;
    shift.mean += shift.slowdown[i] / s->n_jobs;
  }
  g_array_append_val (s->shifts, shift);
  if (shift.mean < g_array_index (s->shifts, LsSharingShift, s->best).mean)
    s->best = s->shifts->len - 1;
}

/* One job, the others where they were best so far. */
static gboolean
shift_job (const Asks *x, guint job, LsSharing *s, GError **error)
{
  guint n = x->options->n_shifts - 1;
  const LsTime *best = g_array_index (s->shifts, LsSharingShift, s->best).shift;
  g_autofree SharedAsk *asks = g_new0 (SharedAsk, n);
  g_autofree LsTime *shifts = g_new (LsTime, (gsize) n * s->n_jobs);
  for (guint i = 0; i < n; i++) {
    LsTime *shift = shifts + (gsize) i * s->n_jobs;
    memcpy (shift, best, s->n_jobs * sizeof *shift);
    shift[job] = ls_time_from_s (s->jobs[job].alone_s * (i + 1) / x->options->n_shifts);
    asks[i] = (SharedAsk) { LS_SHARE_ALL, shift, NULL };
  }
  gboolean ok = ask_all (x, asks, n, error);
  for (guint i = 0; ok && i < n; i++)
    add_shift (s, job, asks[i].shift, asks[i].result);
  clear_asks (asks, n);
  return ok;
}

/* Other starts. s: the jobs as they are. */
static gboolean
sharing_shift (const Asks *x, LsSharing *s, GError **error)
{
  if (x->options->n_shifts == 0)
    return TRUE;
  s->shifts = g_array_new (FALSE, FALSE, sizeof (LsSharingShift));
  s->n_points = x->options->n_shifts;
  add_shift (s, 0, NULL, NULL);
  gboolean ok = TRUE;
  for (guint job = 1; ok && job < s->n_jobs; job++)
    ok = shift_job (x, job, s, error);
  return ok;
}

/* --- other nodes -------------------------------------------------------------------------------- */

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

/* Where they are now. */
static gboolean
run_packed (const Asks *x, char **texts, LsSharing *s, GError **error)
{
  SharedAsk ask = { .only = LS_SHARE_ALL };
  Asks plain = *x;
  plain.progress = NULL;
  if (!ask_all (&plain, &ask, 1, error))
    return FALSE;
  s->packed_s = ls_arena_new_array (s->arena, double, s->n_jobs);
  s->packed_nodes = ls_arena_new_array (s->arena, char *, s->n_jobs);
  for (guint i = 0; i < s->n_jobs; i++) {
    s->packed_s[i] = ask.result->jobs[i].step_ps / 1e12;
    s->packed_nodes[i] = ls_arena_strdup (s->arena, texts[i]);
  }
  clear_asks (&ask, 1);
  return TRUE;
}

/* Other nodes. The jobs are as they were, afterwards. */
static gboolean
sharing_pack (const Asks *x, LsSharing *s, GError **error)
{
  const SharedJobs *jobs = x->jobs;
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (uint32_t)); /* nodes, in order */
  for (guint i = 0; i < jobs->n; i++) {
    g_autofree uint32_t *own = own_nodes (jobs, i);
    g_array_append_vals (all, own, jobs->jobs[i].allocation->n_seats);
  }
  g_array_sort (all, ls_compare_uint32);
  bool is_other = false, has_room = true;
  g_auto (GStrv) texts = g_new0 (char *, jobs->n + 1);
  for (guint i = 0, first = 0; i < jobs->n; first += jobs->jobs[i++].allocation->n_seats) {
    const uint32_t *nodes = &g_array_index (all, uint32_t, first);
    uint32_t n = jobs->jobs[i].allocation->n_seats;
    g_autofree uint32_t *own = own_nodes (jobs, i);
    is_other |= memcmp (own, nodes, n * sizeof *own) != 0;
    texts[i] = list_text (nodes, n);
    for (uint32_t k = 0; k < n; k++) /* as many GPUs as the node of its own */
      has_room &= ls_cluster_gpus_of (jobs->cluster, nodes[k]) == ls_cluster_gpus_of (jobs->cluster, own[k]);
    if (has_room)
      shared_job_place (jobs, i, nodes);
  }
  gboolean ok = !is_other || !has_room || run_packed (x, texts, s, error);
  for (guint i = 0; i < jobs->n; i++) {
    g_autofree uint32_t *own = own_nodes (jobs, i);
    shared_job_place (jobs, i, own);
  }
  return ok;
}

LsSharing *
ls_sharing_new (const char *path, const LsSharingOptions *options, guint n_threads,
                const LsProgress *progress, GError **error)
{
  g_autoptr (LsSharing) s = g_new0 (LsSharing, 1);
  s->arena = ls_arena_new ();
  s->notes = g_ptr_array_new_with_free_func (g_free);
  s->counts_links = options->run.network != LS_NETWORK_ALPHABETA;
  g_autoptr (SharedJobs) jobs = shared_jobs_new (path, options, s->notes, error);
  if (!jobs)
    return NULL;
  const Asks x = { .jobs = jobs, .options = options, .n_threads = n_threads, .progress = progress };
  g_autofree SharedAsk *asks = g_new0 (SharedAsk, jobs->n + 1);
  for (guint i = 0; i <= jobs->n; i++)
    asks[i].only = i < jobs->n ? i : LS_SHARE_ALL;
  gboolean ok = ask_all (&x, asks, jobs->n + 1, error);
  if (ok)
    fill (s, jobs, asks);
  clear_asks (asks, jobs->n + 1);
  ok = ok && sharing_shift (&x, s, error) && sharing_pack (&x, s, error);
  return ok ? g_steal_pointer (&s) : NULL;
}
