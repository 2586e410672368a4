#include "ask/sharing_jobs.h"

#include <string.h>

#include <lockstep/error.h>

void
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
static const char *const first[] = { "for", "software", "model", "from", "strategy", NULL };

static bool
has_option (const SharedJobs *jobs, guint i, const char *key)
{
  for (char **o = entry (jobs, i)->options; o && *o; o++)
    if (g_str_has_prefix (*o, key) && (*o)[strlen (key)] == '=')
      return true;
  return false;
}

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
  bool is_there = about && strcmp (key, "options") == 0 && has_option (jobs, i, about);
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

/* turn: of `first`, or behind all of them. */
static void
set_options (const SharedJobs *jobs, guint i, LsJobSpec *spec, LsDiagList *diags)
{
  for (guint turn = 0; turn < G_N_ELEMENTS (first); turn++)
    for (char **o = entry (jobs, i)->options; o && *o; o++) {
      const char *equals = strchr (*o, '=');
      g_autofree char *key = g_strndup (*o, (gsize) (equals - *o));
      if (first[turn] ? strcmp (key, first[turn]) == 0 : !g_strv_contains (first, key))
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

/* Several lists count alike, and how they count is noted once. */
static void
count_nodes (SharedJobs *jobs, GPtrArray *notes)
{
  const char *note = NULL;
  g_autofree LsAllocation **all = g_new (LsAllocation *, jobs->n);
  for (guint i = 0; i < jobs->n; i++)
    all[i] = jobs->jobs[i].allocation;
  ls_allocations_agree (all, jobs->n);
  for (guint i = 0; i < jobs->n && !note; i++)
    note = ls_allocation_note (all[i]);
  if (note)
    g_ptr_array_add (notes, g_strdup (note));
}

/* How many nodes a list needs the cluster to have; NULL: none. */
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
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  for (guint i = 0; i < jobs->n; i++)
    g_ptr_array_add (all, jobs->jobs[i].allocation);
  g_ptr_array_add (all, a);
  ls_allocations_agree ((LsAllocation **) all->pdata, all->len);
  return a;
}

/* The same of a list that may be wrong, which is said later. */
static uint32_t
most_in_text (const SharedJobs *jobs, const char *text)
{
  g_autofree char *why = NULL;
  g_autoptr (LsAllocation) a = parse_beside (jobs, text, &why);
  return most_named (a);
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
    n = MAX (n, MAX (most_in_text (jobs, t->from), most_in_text (jobs, t->to)));
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

void
shared_job_place (const SharedJobs *jobs, guint i, const uint32_t *nodes)
{
  const SharedJob *j = &jobs->jobs[i];
  for (uint32_t r = 0; r < j->job->plan->n_ranks; r++) {
    uint32_t node = ls_cluster_host_of (j->job->cluster, j->own[r]),
             local = ls_cluster_local_of (j->job->cluster, j->own[r]);
    ls_plan_gpus (j->job->plan)[r] = ls_cluster_gpu_at (jobs->cluster, nodes[node], local);
  }
}

bool
shared_job_has_room (const SharedJobs *jobs, guint i, const uint32_t *nodes)
{
  const LsAllocation *a = jobs->jobs[i].allocation;
  for (uint32_t k = 0; k < a->n_seats; k++)
    if (ls_cluster_gpus_of (jobs->cluster, nodes[k]) != ls_cluster_gpus_of (jobs->cluster, a->seats[k].node))
      return false;
  return true;
}

/* A list that names a node twice, or one that there is not. */
static gboolean
check_list (const SharedJobs *jobs, guint i, GError **error)
{
  g_autofree uint32_t *gpus = g_new (uint32_t, 1);
  return ls_allocation_gpus (jobs->jobs[i].allocation, &jobs->cluster->spec, 1, gpus, error);
}

/* --- one job -------------------------------------------------------------------------------- */

/* Lowered as if it had a cluster of its nodes to itself. */
static gboolean
prepare (SharedJobs *jobs, guint i, LsJobSpec *spec, const LsSharingOptions *options, GError **error)
{
  SharedJob *j = &jobs->jobs[i];
  g_autofree uint32_t *nodes = g_new (uint32_t, j->allocation->n_seats);
  for (uint32_t k = 0; k < j->allocation->n_seats; k++)
    nodes[k] = j->allocation->seats[k].node;
  spec->n_nodes = spec->n_of_nodes = j->allocation->n_seats;
  spec->of_nodes = nodes;
  spec->has_no_faults = true; /* which are of the cluster's nodes, not of its own */
  spec->options.max_memory_bytes = options->max_memory_bytes;
  j->job = ls_job_spec_prepare (spec, error);
  spec->of_nodes = NULL;
  LsRunOptions run;
  if (!j->job || !ls_job_spec_options (spec, &run, error))
    return FALSE;
  ls_job_hardware (j->job, j->job->hardware, &run, &j->chosen);
  ls_host_costs_default (&j->host);
  ls_job_host (j->job->hardware, &j->job->strategy, &j->host);
  GError *failed = NULL;
  LsPlan *plan = j->job->plan;
  if (run.stragglers)
    j->slow = ls_slow_factors (run.stragglers, plan->n_ranks, &failed);
  if (failed) {
    g_propagate_error (error, failed);
    return FALSE;
  }
  j->own = g_memdup2 (ls_plan_gpus (plan), plan->n_ranks * sizeof *plan->gpu_of_rank);
  shared_job_place (jobs, i, nodes);
  return TRUE;
}

/* By the order of allocations (exec/memory/memory.h). */
static void
note_memory (const SharedJobs *jobs, guint i, GPtrArray *notes)
{
  const SharedJob *j = &jobs->jobs[i];
  LsMemoryOptions options = { 0 };
  LsMemoryInput in = ls_job_result_memory_input (j->job, &j->chosen, &options);
  in.cluster = jobs->cluster; /* where its ranks are */
  g_autoptr (LsMemory) memory = ls_memory_new (&in);
  uint64_t needed = ls_memory_fullest (memory)->needed_bytes,
           there = ls_memory_fullest (memory)->capacity_bytes;
  if (needed <= there)
    return;
  g_autofree char *need = ls_format_bytes (needed), *have = ls_format_bytes (there);
  g_ptr_array_add (notes,
                   g_strdup_printf ("%s: does not fit: a rank needs about %s of %s; lockstep run says more",
                                    entry (jobs, i)->name, need, have));
}

static void
keep_notes (const SharedJobs *jobs, guint i, GPtrArray *notes)
{
  const GPtrArray *own = jobs->jobs[i].job->notes;
  for (guint k = 0; own && k < own->len; k++)
    g_ptr_array_add (notes, g_strdup_printf ("%s: %s", entry (jobs, i)->name, (char *) own->pdata[k]));
  note_memory (jobs, i, notes);
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
    if (check_list (jobs, i, &error))
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

SharedJobs *
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
    count_nodes (jobs, notes);
  }
  if (!ls_diag_list_to_error (diags, error))
    return NULL;
  jobs->hardware->max_memory_bytes = options->max_memory_bytes;
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
