#include <lockstep/error.h>

#include "cluster/route.h"
#include "exec/motion.h"
#include "exec/shortcuts/coarsen.h"
#include "exec/state.h"

#include <string.h>

void
ls_run_options_init (LsRunOptions *o)
{
  memset (o, 0, sizeof *o);
  o->n_steps = 3;
  o->max_spans = 20000000;
  o->max_memory_bytes = UINT64_C (16) << 30;
  o->network = LS_NETWORK_FLOW;
  o->queue = LS_QUEUE_FAST;
  o->solver = LS_SOLVER_FAST;
  ls_host_costs_default (&o->host);
}

static void
dispatch_fired (LsEvent *event, void *context)
{
  Run *x = context;
  GPtrArray *now = x->ready;
  x->ready = x->ready_next;
  x->ready_next = now;
  for (guint i = 0; i < now->len; i++)
    ((Rank *) now->pdata[i])->is_ready = false;
  for (guint i = 0; i < now->len; i++)
    rank_advance (x, now->pdata[i]);
  g_ptr_array_set_size (now, 0);
}

/* Ops of one step of a role, and the most that one of its frames holds. */
static uint64_t
count_ops (const Run *x, const LsProgram *p, uint32_t *ret_longest)
{
  uint64_t n = 0;
  *ret_longest = 0;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t n_ops = x->segments[p->instances[i].segment].n_ops;
    n += n_ops;
    *ret_longest = MAX (*ret_longest, n_ops);
  }
  return n;
}

/* Seconds of a role's kernels in one step, one after the other, on nodes of that kind. */
static double
serial_seconds (const Run *x, const LsProgram *p, const XKind *kind)
{
  double sum = 0;
  g_autofree double *of_segment = g_new0 (double, x->plan->n_segments);
  g_autofree bool *is_known = g_new0 (bool, x->plan->n_segments);
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t id = p->instances[i].segment;
    for (uint32_t o = 0; o < kind->segments[id].n_ops && !is_known[id]; o++) {
      const XOp *op = &kind->segments[id].x[o];
      bool is_unknown
          = ls_op_takes (op->kind, LS_TAKES_ENGINE) && op->alone == LS_TIME_NEVER; /* its path decides */
      of_segment[id] += (is_unknown ? 0 : ls_time_to_s (op->alone)) + ls_time_to_s (op->host + op->host_rest);
    }
    is_known[id] = true;
    sum += of_segment[id];
  }
  return sum;
}

/* The plan knows nothing of the cluster that it runs on. */
static gboolean
check_gpus (const Run *x, GError **error)
{
  uint32_t n_listed = x->plan->gpu_of_rank || x->plan->n_ranks > x->cluster->n_gpus ? x->plan->n_ranks : 0;
  for (uint32_t r = 0; r < n_listed; r++)
    if (ls_plan_gpu (x->plan, r) >= x->cluster->n_gpus) {
      g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "rank %u runs on %s %u, but the cluster has %u %s", r,
                   ls_cluster_chip_word (&x->cluster->spec, 1), ls_plan_gpu (x->plan, r), x->cluster->n_gpus,
                   ls_cluster_chip_word (&x->cluster->spec, x->cluster->n_gpus));
      return FALSE;
    }
  return TRUE;
}

static bool
has_host_memory (const LsCluster *c)
{
  LsRoute route;
  ls_route_host_memory (c, 0, true, &route);
  return route.n_hops > 0 && (c->spec.interior != LS_INTERIOR_SERVER || c->spec.server.cpu_sockets > 0);
}

/* What a copy loads must be there; one of recorded length loads nothing. */
static gboolean
check_copies (const Run *x, GError **error)
{
  bool has_drives = ls_cluster_has_nvme (x->cluster), has_memory = has_host_memory (x->cluster);
  for (uint32_t s = 0; s < x->plan->n_segments && !(has_drives && has_memory); s++)
    for (uint32_t i = 0; i < x->plan->segments[s].n_ops; i++) {
      const LsOp *op = &x->plan->segments[s].ops[i];
      bool is_in_host = op->root == LS_COPY_IN_HOST,
           is_nvme = op->root == LS_COPY_FROM_NVME || op->root == LS_COPY_TO_NVME;
      if (!ls_op_takes (op->kind, LS_TAKES_ENGINE) || op->recorded != LS_TIME_NEVER
          || !((is_in_host && !has_memory) || (is_nvme && !has_drives)))
        continue;
      g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "segment %u (%s) %s", s, x->plan->segments[s].name,
                   is_nvme ? "copies from or to NVMe, but the nodes have no drives"
                           : "works in the memory of CPUs, but the nodes have none");
      return FALSE;
    }
  return TRUE;
}

static bool
has_states_outside (const LsPlan *plan)
{
  for (uint32_t role = 0; role < plan->n_roles; role++)
    if (plan->programs[role].host_bytes > 0 || plan->programs[role].nvme_bytes > 0)
      return true;
  return false;
}

/* The CPU host of a GPU among those of all nodes, of which each has as many as the first. */
static uint32_t
host_of_gpu (const LsCluster *c, uint32_t gpu)
{
  return ls_cluster_host_of (c, gpu) * ls_cluster_n_cpu_hosts (&c->spec) + ls_cluster_cpu_host_of (c, gpu);
}

/* States that live outside the accelerators find room in the memory and on the drives of each host,
 * as far as their sizes are known. */
static gboolean
check_room_outside (const Run *x, GError **error)
{
  uint32_t n_hosts = x->cluster->spec.n_nodes * ls_cluster_n_cpu_hosts (&x->cluster->spec);
  if (!has_states_outside (x->plan))
    return TRUE;
  g_autofree uint64_t *in_memory = g_new0 (uint64_t, n_hosts), *on_drives = g_new0 (uint64_t, n_hosts);
  for (uint32_t r = 0; r < x->plan->n_ranks; r++) {
    const LsProgram *p = &x->plan->programs[ls_plan_role (x->plan, r)];
    uint32_t node = ls_cluster_host_of (x->cluster, ls_plan_gpu (x->plan, r)),
             host = host_of_gpu (x->cluster, ls_plan_gpu (x->plan, r));
    const LsClusterSpec *spec = ls_cluster_node_spec (x->cluster, node);
    uint64_t memory = spec->server.cpu_memory_bytes,
             drives = spec->server.nvme_bytes * spec->server.nvme_drives;
    in_memory[host] += p->host_bytes;
    on_drives[host] += p->nvme_bytes;
    bool is_memory = memory > 0 && in_memory[host] > memory,
         is_drives = drives > 0 && on_drives[host] > drives;
    if (!is_memory && !is_drives)
      continue;
    g_autofree char *has = ls_format_bytes (is_memory ? memory : drives);
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "what is offloaded to the %s of node %u takes more than its %s; expected more nodes, or "
                 "less offloaded",
                 is_memory ? "memory" : "drives", node, has);
    return FALSE;
  }
  return TRUE;
}

/* What cannot be represented or would not fit is refused before it is begun. */
static gboolean
check_limits (const Run *x, GError **error)
{
  double bytes = 0, n_ops = 0, longest_s = 0, slowest = 1;
  g_autofree uint64_t *n_ranks = ls_plan_ranks_of_roles (x->plan);
  for (uint32_t role = 0; role < x->plan->n_roles; role++) {
    const LsProgram *p = &x->plan->programs[role];
    uint32_t longest;
    double ops = (double) count_ops (x, p, &longest), ranks = (double) n_ranks[role];
    double spans = x->options->no_spans ? 0 : x->keeps_all_spans ? ranks : 1;
    double per_rank = sizeof (Rank) + 6 * sizeof (Frame) + 3.0 * longest * 13 + sizeof (Channel) * 2
        + (double) p->n_events * x->plan->n_micro_batches * x->plan->n_chunks * sizeof (EventRecord);
    n_ops += ops * ranks;
    bytes += ranks * per_rank + spans * 2 * (double) x->spans_of_role[role] * sizeof (LsSpan);
    for (const XKind *kind = x->kinds; kind < x->kinds + LS_MAX_NODE_KINDS; kind++)
      longest_s = MAX (longest_s, kind->gpu ? serial_seconds (x, p, kind) : 0);
  }
  if (bytes > (double) x->options->max_memory_bytes) {
    g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)),
                    *may = ls_format_bytes (x->options->max_memory_bytes);
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "a step of %.3g ops on %u ranks needs about %s of memory; --max-memory is %s", n_ops,
                 x->plan->n_ranks, need, may);
    return FALSE;
  }
  for (uint32_t r = 0; x->options->slow && r < x->fold->plan->n_ranks; r++)
    slowest = MAX (slowest, x->options->slow[r]);
  longest_s *= slowest;
  uint32_t n_steps = MAX (1, x->options->n_steps);
  if (longest_s * (n_steps + 1) > 0.25 * ls_time_to_s (LS_TIME_NEVER)) {
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "a step of this job takes %.3g days or more; %.3g can be simulated", longest_s / 86400,
                 0.25 * ls_time_to_s (LS_TIME_NEVER) / 86400 / (n_steps + 1));
    return FALSE;
  }
  return TRUE;
}

/* Spans of all ranks, or of the first of each role. */
static void
choose_recorded (Run *x)
{
  uint64_t n_spans = 0;
  g_autofree uint64_t *n_ranks = ls_plan_ranks_of_roles (x->plan);
  for (uint32_t role = 0; role < x->plan->n_roles; role++)
    n_spans += n_ranks[role] * x->spans_of_role[role];
  x->keeps_all_spans = n_spans <= x->options->max_spans;
}

static void
mark_recorded (Run *x)
{
  g_autofree bool *has_one = g_new0 (bool, x->plan->n_roles);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    bool *seen = &has_one[ls_plan_role (x->plan, i)];
    x->ranks[i].keeps_spans = !x->options->no_spans && (x->keeps_all_spans || !*seen);
    *seen = true;
  }
}

/* No event fires later. Half of what can be represented: the kernels of all steps,
 * which may run ahead of the clock, take a quarter at most (check_limits). */
#define CLOCK_END (LS_TIME_NEVER / 2)

static void
run_init (Run *x)
{
  ls_engine_init (&x->engine, x->options->queue == LS_QUEUE_FAST ? &ls_evq_radix : &ls_evq_reference, x);
  x->engine.stop_at = CLOCK_END;
  x->net = ls_flow_net_new (&x->engine, x->fold->n_resources, x->fold->capacity,
                            x->options->solver == LS_SOLVER_REFERENCE);
  motions_init (x, x->fold->capacity);
  ls_event_init (&x->dispatch, dispatch_fired);
  x->ready = g_ptr_array_new ();
  x->ready_next = g_ptr_array_new ();
  for (uint32_t i = 0; i < x->n_jobs; i++)
    steps_make_room (&x->jobs[i], 4);
  x->last_step = NO_ID;
  collectives_init (x);
  groups_init (x);
  copies_init (x);
  x->bindings = x->plan->bindings ? x->plan->bindings : ls_plan_bindings (x->plan, x->arena);
  x->ranks = g_new0 (Rank, x->plan->n_ranks);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    rank_init (x, &x->ranks[i], i);
  mark_recorded (x);
  coarsen_init (x);
  steady_init (x);
}

void
run_clear (Run *x)
{
  coarsen_clear (x);
  for (uint32_t i = 0; x->ranks && i < x->plan->n_ranks; i++)
    rank_clear (&x->ranks[i]);
  g_free (x->ranks);
  if (x->net) {
    groups_clear (x);
    g_free (x->comms);
    g_free (x->copies);
    motions_clear (x);
    ls_flow_net_free (x->net);
    ls_engine_clear (&x->engine);
    g_ptr_array_unref (x->ready);
    g_ptr_array_unref (x->ready_next);
  }
  for (uint32_t i = 0; i < x->n_jobs; i++) {
    g_free (x->jobs[i].step_n_done);
    g_free (x->jobs[i].step_end);
  }
  role_calls_free (x->role_calls, x->plan->n_roles);
  fold_free (x->fold);
  ls_arena_free (x->arena);
}

/* A run ends when the reported step is over on all ranks, or share.c says so. */
gboolean
run_clock (Run *x, GError **error)
{
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    if (!x->ranks[i].job->is_absent)
      rank_ready (x, &x->ranks[i]);
  LsEngineEnd end = ls_engine_run (&x->engine);
  if (x->error) {
    g_propagate_error (error, x->error);
    return FALSE;
  }
  if (x->last_step != NO_ID)
    return x->share || conserve_step (x, x->jobs, x->last_step, error);
  if (end == LS_ENGINE_LIVELOCK)
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "more than %u events at one instant (%" G_GINT64_FORMAT " ps)", LS_ENGINE_MAX_PER_INSTANT,
                 x->engine.now);
  else if (end == LS_ENGINE_STOPPED)
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "the steps are not over after %.3g days; more cannot be simulated",
                 ls_time_to_s (CLOCK_END) / 86400);
  else
    g_propagate_error (error, deadlock_report (x));
  return FALSE;
}

/* From here on the run knows the quotient only. */
static void
fold (Run *x)
{
  x->role_calls = role_calls_new (x->plan);
  fold_new (x);
  if (x->fold->quotient)
    x->plan = x->fold->quotient;
}

gboolean
run_begin (Run *x, GError **error)
{
  x->arena = ls_arena_new ();
  if (!check_gpus (x, error) || !check_copies (x, error) || !check_room_outside (x, error)
      || !run_compile (x, error))
    return FALSE;
  traffic_lower (x);
  fold (x);
  choose_recorded (x);
  if (!check_limits (x, error))
    return FALSE;
  run_init (x);
  traffic_init (x);
  return run_plan_calls (x, error);
}

/* *ret_is_folded: whether a rank stood for another. *ret_is_lost: there is no result, for it did not begin as
 * it should have. */
static LsTimeline *
run_from (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration, const LsNccl *nccl,
          const LsRunOptions *options, double *ret_cost_share, bool *ret_is_folded, bool *ret_is_lost,
          GError **error)
{
  XJob job = { .plan = plan, .calibration = calibration, .host = &options->host };
  Run x = { .plan = plan, .jobs = &job, .n_jobs = 1, .cluster = cluster, .nccl = nccl, .options = options };
  LsTimeline *timeline = NULL;
  x.n_steps = MAX (1, options->n_steps);
  bool is_over = run_begin (&x, error) && run_clock (&x, error);
  *ret_is_folded = x.fold && x.fold->quotient != NULL;
  *ret_is_lost = x.begins_at_quiescence && !x.is_periodic;
  if (is_over && !*ret_is_lost)
    timeline = timeline_collect (&x);
  if (ret_cost_share && timeline)
    memcpy (ret_cost_share, x.cost_share, sizeof x.cost_share);
  run_clear (&x);
  return timeline;
}

/* From the quiescent point if only the steady state is wanted, and from the beginning if that leads
 * nowhere. */
static LsTimeline *
run_once (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration, const LsNccl *nccl,
          const LsRunOptions *options, double *ret_cost_share, bool *ret_is_folded, GError **error)
{
  bool is_lost;
  g_autoptr (GError) failed = NULL;
  LsTimeline *t = run_from (plan, cluster, calibration, nccl, options, ret_cost_share, ret_is_folded,
                            &is_lost, &failed);
  if (is_lost) {
    LsRunOptions whole = *options;
    whole.steady = false;
    return run_from (plan, cluster, calibration, nccl, &whole, ret_cost_share, ret_is_folded, &is_lost,
                     error);
  }
  if (failed)
    g_propagate_error (error, g_steal_pointer (&failed));
  return t;
}

/* Such an error names ranks: all, not one for each class. */
static bool
is_of_ranks (const GError *error)
{
  return g_error_matches (error, LS_ERROR, LS_ERROR_DEADLOCK)
      || g_error_matches (error, LS_ERROR, LS_ERROR_INPUT);
}

/* What is to be checked is done the plain way, and compared. */
static gboolean
check_twin (const LsTimeline *t, bool is_folded, const LsPlan *plan, const LsCluster *cluster,
            const LsCalibration *calibration, const LsNccl *nccl, const LsRunOptions *options, GError **error)
{
  bool checks_fold = is_folded && options->fold == LS_SHORTCUT_CHECK,
       checks_pieces = options->coarsen == LS_SHORTCUT_CHECK;
  if (!checks_fold && !checks_pieces)
    return TRUE;
  LsRunOptions plain = *options;
  plain.fold = checks_fold ? LS_SHORTCUT_OFF : options->fold;
  plain.coarsen = checks_pieces ? LS_SHORTCUT_OFF : options->coarsen;
  bool none;
  g_autoptr (LsTimeline) twin = run_once (plan, cluster, calibration, nccl, &plain, NULL, &none, error);
  const char *names = !checks_pieces ? "folded and unfolded"
      : checks_fold                  ? "folded in pieces, and unfolded op by op,"
                                     : "in pieces and op by op";
  return twin && fold_check (t, twin, cluster, names, error);
}

/* Folded or each rank by itself, or both. */
static LsTimeline *
run_folded (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration,
            const LsNccl *nccl, const LsRunOptions *options, double *ret_cost_share, GError **error)
{
  LsRunOptions unfolded = *options;
  unfolded.fold = LS_SHORTCUT_OFF;
  bool is_folded, none;
  g_autoptr (GError) failed = NULL;
  g_autoptr (LsTimeline) t
      = run_once (plan, cluster, calibration, nccl, options, ret_cost_share, &is_folded, &failed);
  if (!t && is_folded && is_of_ranks (failed))
    return run_once (plan, cluster, calibration, nccl, &unfolded, ret_cost_share, &none, error);
  if (!t) {
    g_propagate_error (error, g_steal_pointer (&failed));
    return NULL;
  }
  return check_twin (t, is_folded, plan, cluster, calibration, nccl, options, error) ? g_steal_pointer (&t)
                                                                                     : NULL;
}

LsTimeline *
ls_run (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration, const LsNccl *nccl,
        const LsRunOptions *options, double *ret_cost_share, GError **error)
{
  LsRunOptions own = *options;
  g_autofree double *slow = NULL;
  if (options->stragglers && !options->slow) {
    g_autoptr (GError) failed = NULL;
    own.slow = slow = ls_slow_factors (options->stragglers, plan->n_ranks, &failed);
    if (failed) {
      g_propagate_error (error, g_steal_pointer (&failed));
      return NULL;
    }
  }
  return run_folded (plan, cluster, calibration, nccl, &own, ret_cost_share, error);
}
