#include "exec/share.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/diag.h"
#include "base/digest.h"
#include "base/order.h"
#include "exec/extras.h"

#define N_WARM_STEPS 2

/* At the end of a step of the first job: how far each job is into its step, and when all was over in its last
 * one. */
typedef struct {
  uint64_t digest;
  uint32_t *n_done; /* [n_jobs] steps that were over */
} State;

/* The end of a step that the clock has not come to. */
typedef struct {
  LsEvent event; /* first member */
  XJob *job;
  uint32_t step;
} Over;

/* Of a run; in its arena. */
struct Share {
  LsArena *arena;
  Over (*over)[2];    /* [n_jobs] by parity of the step */
  uint32_t reference; /* the job at whose steps it is asked whether all is as before */
  uint32_t n_wanted;  /* steps of each job in the window */
  uint32_t *n_done;   /* [n_jobs] */
  uint32_t *first;    /* [n_jobs] steps that were over when the window opened */
  uint32_t *last;     /* [n_jobs] and when it closed */
  uint32_t n_looked;  /* of the reference's steps, at how many it was looked */
  bool is_open;
  LsTime opened, closed;
  double *moved; /* [n_traffic] bytes before it opened */
  LsEvent look;
  GArray *states; /* State */
  double **bytes; /* [n_jobs] */
};

void
ls_share_free (LsShare *s)
{
  if (s)
    ls_arena_free (s->arena);
}

/* --- the window ------------------------------------------------------------------------- */

static uint32_t
index_of (const Run *x, const XJob *job)
{
  return (uint32_t) (job - x->jobs);
}

/* How far each job is, counted from the end of the reference's step. */
static State
state_of (const Run *x)
{
  const Share *s = x->extras->share;
  const XJob *reference = &x->jobs[s->reference];
  LsTime now = reference->step_end[s->n_done[s->reference] - 1];
  LsDigest d;
  ls_digest_init (&d);
  uint32_t *n_done = ls_arena_new_array (s->arena, uint32_t, x->n_jobs);
  memcpy (n_done, s->n_done, x->n_jobs * sizeof *n_done);
  for (uint32_t i = 0; i < x->n_jobs; i++) {
    const XJob *job = &x->jobs[i];
    if (job->is_absent)
      continue;
    uint32_t step = s->n_done[i] - 1;
    ls_digest_u64 (&d, (uint64_t) (now - job->step_end[step]));
    ls_digest_u64 (&d, job->last_digest);
  }
  return (State) { ls_digest_get (&d), n_done };
}

static bool
all_have_done (const Run *x, const uint32_t *since, uint32_t n)
{
  for (uint32_t i = 0; i < x->n_jobs; i++)
    if (!x->jobs[i].is_absent && x->extras->share->n_done[i] - (since ? since[i] : 0) < n)
      return false;
  return true;
}

/* Whether the last n states are as the n before them, with a step of every job in between. */
static bool
is_period (const Run *x, guint n)
{
  const GArray *states = x->extras->share->states;
  for (guint i = 0; i < n; i++) {
    guint last = states->len - 1 - i;
    if (g_array_index (states, State, last).digest != g_array_index (states, State, last - n).digest)
      return false;
  }
  return all_have_done (x, g_array_index (states, State, states->len - 1 - n).n_done, 1);
}

static bool
find_period (Run *x)
{
  Share *s = x->extras->share;
  State now = state_of (x);
  g_array_append_val (s->states, now);
  for (guint n = 1; 2 * n <= s->states->len; n++)
    if (is_period (x, n)) {
      const uint32_t *first = g_array_index (s->states, State, s->states->len - 1 - n).n_done;
      memcpy (s->first, first, x->n_jobs * sizeof *first);
      return true;
    }
  return false;
}

/* What moved is counted while it is known: of the first step that did not begin cold. */
static bool
note_bytes (Run *x, const XJob *job, uint32_t step)
{
  if (step != 1)
    return true;
  x->extras->share->bytes[index_of (x, job)] = timeline_count_bytes (x, job, step);
  return conserve_step (x, job, step, &x->error);
}

static bool
check_step (Run *x, const XJob *job, uint32_t step)
{
  if (step > 0 && job->step_end[step] <= job->step_end[step - 1])
    x->error = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                            "job %u: the step takes no time: there is nothing to "
                            "measure",
                            index_of (x, job) + 1);
  else if (step + 1 >= LS_SHARE_MAX_STEPS)
    x->error
        = g_error_new (LS_ERROR, LS_ERROR_LIMIT,
                       "job %u has done %u steps, and another has not done what is to be measured: their "
                       "steps are too unlike",
                       index_of (x, job) + 1, LS_SHARE_MAX_STEPS);
  return x->error == NULL;
}

static void
open_window (Run *x)
{
  Share *s = x->extras->share;
  s->is_open = true;
  s->opened = x->engine.now;
  memcpy (s->first, s->n_done, x->n_jobs * sizeof *s->first);
  for (uint32_t i = 0; i < x->extras->n_traffic; i++)
    s->moved[i] = traffic_moved (x, i);
}

/* Once all steps that end now are over: in whatever order they did. */
static void
look (LsEvent *event, void *context)
{
  Run *x = context;
  Share *s = x->extras->share;
  bool is_at_reference = s->n_done[s->reference] > s->n_looked;
  s->n_looked = s->n_done[s->reference];
  if (x->error || !all_have_done (x, NULL, N_WARM_STEPS))
    return;
  if (!s->is_open)
    open_window (x);
  x->is_periodic = is_at_reference && x->extras->n_traffic == 0 && find_period (x);
  if (!x->is_periodic && !all_have_done (x, s->first, s->n_wanted))
    return;
  memcpy (s->last, s->n_done, x->n_jobs * sizeof *s->last);
  x->last_step = s->n_done[s->reference] - 1;
  s->closed = x->engine.now;
  x->engine.stop_at = x->engine.now + 1;
}

static void
step_over (Run *x, XJob *job, uint32_t step)
{
  Share *s = x->extras->share;
  g_assert (s->n_done[index_of (x, job)] == step && !job->is_absent);
  s->n_done[index_of (x, job)] = step + 1;
  if (!check_step (x, job, step) || !note_bytes (x, job, step))
    x->engine.stop_at = x->engine.now;
  else
    ls_engine_at (&x->engine, &s->look, x->engine.now, LS_PHASE_RATE);
}

/* All ranks are done with it, and the clock is there. */
static void
clock_over (LsEvent *event, void *context)
{
  Over *over = (Over *) event;
  over->job->step_n_done[over->step]++;
  step_done (context, over->job, over->step);
}

/* Ranks that meet nobody run ahead of the clock, step after step: a step is over when the clock is at its
 * end, and until then one of its ranks counts as not done, so that none gets further ahead than the next
 * step. */
static bool
step_waits (Run *x, XJob *job, uint32_t step)
{
  if (job->step_end[step] <= x->engine.now)
    return false;
  Over *over = &x->extras->share->over[index_of (x, job)][step & 1];
  job->step_n_done[step]--;
  ls_event_init (&over->event, clock_over);
  over->job = job;
  over->step = step;
  ls_engine_at (&x->engine, &over->event, job->step_end[step], LS_PHASE_DISPATCH);
  return true;
}

/* --- what comes of it --------------------------------------------------------------------- */

static LsShareSteps
steps_of (const XJob *job, uint32_t first, uint32_t last, double *resource_bytes)
{
  LsShareSteps steps
      = { .n_steps = last - first, .shortest = LS_TIME_NEVER, .resource_bytes = resource_bytes };
  g_assert (first > 0 && first < last);
  for (uint32_t i = first; i < last; i++) {
    LsTime step = job->step_end[i] - job->step_end[i - 1];
    steps.shortest = MIN (steps.shortest, step);
    steps.longest = MAX (steps.longest, step);
  }
  steps.step_ps = (double) (job->step_end[last - 1] - job->step_end[first - 1]) / steps.n_steps;
  return steps;
}

/* Over whole periods; what is left of those before the window is theirs. */
static double
rate_of_periods (const XTraffic *t)
{
  const double n = (double) t->n_begun - 1, moved = t->moved_at[1] - t->moved_at[0];
  return n > 0 ? MIN (moved, n * (double) t->of->bytes) / (n * ls_time_to_s (t->of->period)) : NAN;
}

static void
collect_traffic (const Run *x, LsShare *share)
{
  const Share *s = x->extras->share;
  if (x->extras->n_traffic == 0)
    return;
  share->traffic_rate = ls_arena_new_array (share->arena, double, x->extras->n_traffic);
  share->resource_rate = ls_arena_new_array (share->arena, double, share->n_resources);
  for (uint32_t i = 0; i < x->extras->n_traffic; i++) {
    const XTraffic *t = &x->extras->traffic[i];
    const double in_window = (traffic_moved (x, i) - s->moved[i]) / ls_time_to_s (s->closed - s->opened);
    share->traffic_rate[i] = t->of->period > 0 ? rate_of_periods (t) : in_window;
    for (uint32_t k = 0; k < t->phase->n_loads; k++)
      share->resource_rate[t->phase->loads[k].resource]
          += in_window / t->n_flows * (double) t->phase->loads[k].coef / (double) LS_COEF_ONE;
  }
}

static LsShare *
collect (Run *x)
{
  Share *s = x->extras->share;
  LsArena *arena = ls_arena_new ();
  LsShare *share = ls_arena_new_array (arena, LsShare, 1);
  share->arena = arena;
  share->n_jobs = x->n_jobs;
  share->n_resources = ls_cluster_n_resources (x->cluster);
  share->jobs = ls_arena_new_array (arena, LsShareSteps, x->n_jobs);
  share->is_periodic = x->is_periodic;
  share->n_classes = x->plan->n_ranks;
  share->n_ranks = x->whole->plan->n_ranks;
  const LsTime *end = x->jobs[s->reference].step_end;
  share->window_start = end[s->first[s->reference] - 1];
  share->window_end = end[s->last[s->reference] - 1];
  LsDigest d;
  ls_digest_init (&d);
  for (uint32_t i = 0; i < x->n_jobs; i++) {
    const XJob *job = &x->jobs[i];
    if (job->is_absent)
      continue;
    share->jobs[i] = steps_of (job, s->first[i], s->last[i],
                               ls_arena_own (arena, g_steal_pointer (&s->bytes[i]), g_free));
    ls_digest_u64 (&d, job->last_digest);
  }
  share->digest = ls_digest_get (&d);
  collect_traffic (x, share);
  return share;
}

/* --- the run -------------------------------------------------------------------------------- */

static gboolean
check_gpus_apart (const LsPlan *plan, const LsPlanPart *parts, uint32_t n_jobs, const LsCluster *cluster,
                  GError **error)
{
  g_autofree uint32_t *job_of = g_new0 (uint32_t, cluster->n_gpus); /* + 1 */
  for (uint32_t r = 0, job = 0; r < plan->n_ranks; r++) {
    while (job + 1 < n_jobs && r >= parts[job + 1].rank)
      job++;
    uint32_t gpu = ls_plan_gpu (plan, r);
    if (gpu >= cluster->n_gpus)
      continue; /* said later */
    if (job_of[gpu] > 0 && job_of[gpu] != job + 1)
      return ls_fail (error, LS_ERROR_CONFLICT, "jobs %u and %u both run on %s %u", job_of[gpu], job + 1,
                      ls_cluster_chip_word (&cluster->spec, 1), gpu);
    job_of[gpu] = job + 1;
  }
  return TRUE;
}

typedef struct {
  const LsShareJob *jobs;
  uint32_t n_jobs, only;
  const LsShareTraffic *traffic;
  const LsCluster *cluster;
  const LsNccl *nccl;
} Asked;

/* [ranks of all]; NULL where all are of one pace. */
static double *
slow_of (LsArena *arena, const Asked *a, const LsPlanPart *parts, uint32_t n_ranks)
{
  double *slow = NULL;
  for (uint32_t i = 0; i < a->n_jobs; i++) {
    if (!a->jobs[i].slow)
      continue;
    if (!slow) {
      slow = ls_arena_new_array (arena, double, n_ranks);
      for (uint32_t r = 0; r < n_ranks; r++)
        slow[r] = 1;
    }
    memcpy (slow + parts[i].rank, a->jobs[i].slow, a->jobs[i].plan->n_ranks * sizeof *slow);
  }
  return slow;
}

static XJob *
jobs_new (LsArena *arena, const Asked *a, const LsPlanPart *parts)
{
  XJob *own = ls_arena_new_array (arena, XJob, a->n_jobs);
  for (uint32_t i = 0; i < a->n_jobs; i++)
    own[i] = (XJob) {
      .plan = a->jobs[i].plan,
      .calibration = a->jobs[i].calibration,
      .host = a->jobs[i].host,
      .start = a->jobs[i].start,
      .is_absent = a->only != LS_SHARE_ALL && i != a->only,
      .first_rank = parts[i].rank,
      .first_role = parts[i].role,
      .first_segment = parts[i].segment,
      .first_kernel = parts[i].kernel,
    };
  return own;
}

/* Of what the jobs are, joined. x: with its plan and jobs. */
static LsShare *
run_joined (LsArena *arena, const Asked *a, Run *x, const LsRunOptions *options, GError **error)
{
  uint32_t n_traffic = a->traffic && a->only == LS_SHARE_ALL ? a->traffic->n : 0, n_jobs = a->n_jobs;
  XTraffic *x_traffic = ls_arena_new_array (arena, XTraffic, n_traffic);
  for (uint32_t i = 0; i < n_traffic; i++)
    x_traffic[i].of = &a->traffic->flows[i];
  g_autoptr (GArray) states = g_array_new (FALSE, FALSE, sizeof (State));
  Share share = { .arena = arena,
                  .reference = a->only == LS_SHARE_ALL ? 0 : a->only,
                  .n_wanted = MAX (options->n_steps, N_WARM_STEPS + 1) - N_WARM_STEPS,
                  .n_done = ls_arena_new_array (arena, uint32_t, n_jobs),
                  .first = ls_arena_new_array (arena, uint32_t, n_jobs),
                  .last = ls_arena_new_array (arena, uint32_t, n_jobs),
                  .states = states,
                  .moved = ls_arena_new_array (arena, double, n_traffic),
                  .bytes = ls_arena_new_array (arena, double *, n_jobs),
                  .over = ls_arena_alloc (arena, n_jobs, sizeof *share.over) };
  Extras extras = { .share = &share, .traffic = x_traffic, .n_traffic = n_traffic };
  extras_hang (x, &extras, options);
  x->hooks.step_waits = step_waits;
  x->hooks.step_over = step_over;
  ls_event_init (&share.look, look);
  LsShare *result = run_begin (x, error) && run_clock (x, error) ? collect (x) : NULL;
  extras_clear (x);
  run_clear (x);
  for (uint32_t i = 0; i < n_jobs; i++)
    g_free (share.bytes[i]);
  return result;
}

static LsShare *
run_as (const Asked *a, const LsRunOptions *options, GError **error)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsPlan **plans = ls_arena_new_array (arena, const LsPlan *, a->n_jobs);
  LsPlanPart *parts = ls_arena_new_array (arena, LsPlanPart, a->n_jobs);
  for (uint32_t i = 0; i < a->n_jobs; i++)
    plans[i] = a->jobs[i].plan;
  g_autoptr (LsPlan) plan = ls_plan_join (plans, a->n_jobs, parts, error);
  if (!plan || !check_gpus_apart (plan, parts, a->n_jobs, a->cluster, error))
    return NULL;
  LsRunOptions own = *options;
  own.slow = slow_of (arena, a, parts, plan->n_ranks);
  own.stragglers = NULL;
  own.no_spans = true;
  own.steady = false;
  Run x = { .plan = plan,
            .jobs = jobs_new (arena, a, parts),
            .n_jobs = a->n_jobs,
            .cluster = a->cluster,
            .nccl = a->nccl,
            .n_steps = LS_SHARE_MAX_STEPS };
  return run_joined (arena, a, &x, &own, error);
}

/* --- checked ---------------------------------------------------------------------------------- */

static bool
is_same_job (const LsShareSteps *a, const LsShareSteps *b, uint32_t n_resources)
{
  if (a->n_steps != b->n_steps || a->step_ps != b->step_ps || a->shortest != b->shortest
      || a->longest != b->longest)
    return false;
  for (uint32_t i = 0; a->resource_bytes && i < n_resources; i++)
    if (a->resource_bytes[i] != b->resource_bytes[i])
      return false;
  return true;
}

static gboolean
check_same (const LsShare *a, const LsShare *b, GError **error)
{
  for (uint32_t i = 0; i < a->n_jobs; i++)
    if (!is_same_job (&a->jobs[i], &b->jobs[i], a->n_resources))
      return ls_fail (error, LS_ERROR_FAILED,
                      "internal error: folded and unfolded differ: job %u takes %.17g ps a step and %.17g ps",
                      i + 1, a->jobs[i].step_ps, b->jobs[i].step_ps);
  if (a->digest == b->digest && a->is_periodic == b->is_periodic && a->window_end == b->window_end)
    return TRUE;
  return ls_fail (error, LS_ERROR_FAILED,
                  "internal error: folded and unfolded differ in when something was over");
}

LsShare *
ls_run_share (const LsShareJob *jobs, uint32_t n_jobs, uint32_t only, const LsShareTraffic *traffic,
              const LsCluster *cluster, const LsNccl *nccl, const LsRunOptions *options, GError **error)
{
  g_assert (n_jobs > 0 && (only == LS_SHARE_ALL || only < n_jobs));
  if (options->network == LS_NETWORK_STEP)
    return ls_fail_null (error, LS_ERROR_UNSUPPORTED,
                         "several jobs are not simulated message by message; expected --network flow");
  const Asked asked = { jobs, n_jobs, only, traffic, cluster, nccl };
  g_autoptr (GError) failed = NULL;
  g_autoptr (LsShare) share = run_as (&asked, options, &failed);
  if (run_names_ranks (failed) && options->fold != LS_SHORTCUT_OFF) {
    const LsRunOptions unfolded = run_plain_twin (options, true, false);
    return run_as (&asked, &unfolded, error);
  }
  if (failed)
    g_propagate_error (error, g_steal_pointer (&failed));
  bool checks_fold = options->fold == LS_SHORTCUT_CHECK,
       checks_pieces = options->coarsen == LS_SHORTCUT_CHECK;
  if (!share || (!checks_fold && !checks_pieces))
    return g_steal_pointer (&share);
  const LsRunOptions plain = run_plain_twin (options, checks_fold, checks_pieces);
  g_autoptr (LsShare) twin = run_as (&asked, &plain, error);
  return twin && check_same (share, twin, error) ? g_steal_pointer (&share) : NULL;
}

/* ---- traffic ---- */

/* From one NIC of the sender to that of the receiver, or of fewer to these in turn; what lies before and
 * behind is inside nodes. loads: LsLoad. */
static bool
add_way (const LsCluster *c, const LsTraffic *t, uint32_t nic, GArray *loads)
{
  LsRoute route;
  const LsRouteEnds ends = { .gpu_from = ls_cluster_gpu_at (c, t->node_from, 0),
                             .gpu_to = ls_cluster_gpu_at (c, t->node_to, 0),
                             .nic_from = nic % ls_cluster_node_spec (c, t->node_from)->nics.n,
                             .nic_to = nic % ls_cluster_node_spec (c, t->node_to)->nics.n,
                             .channel = nic };
  ls_route_ends (c, &ends, &route);
  uint32_t first = UINT32_MAX, last = 0;
  for (uint32_t i = 0; i < route.n_hops; i++) {
    const LsLinkSpec *link = ls_cluster_trunk (c, route.hop[i].trunk)->link;
    if (link == &ls_cluster_node_spec (c, t->node_from)->nics.port
        || link == &ls_cluster_node_spec (c, t->node_to)->nics.port) {
      first = MIN (first, i);
      last = i;
    }
  }
  for (uint32_t i = first; i <= last && first != UINT32_MAX; i++) {
    LsLoad load = { route.hop[i].trunk, (uint64_t) LS_COEF_ONE * route.hop[i].share / LS_HOP_WHOLE };
    g_array_append_val (loads, load);
  }
  return first < last;
}

/* Each resource once. */
static void
take_loads (GArray *loads, LsPhase *phase, LsArena *arena)
{
  g_array_sort (loads, ls_compare_uint32);
  phase->loads = ls_arena_new_array (arena, LsLoad, MAX (1, loads->len));
  for (guint i = 0; i < loads->len; i++) {
    LsLoad load = g_array_index (loads, LsLoad, i);
    if (phase->n_loads > 0 && phase->loads[phase->n_loads - 1].resource == load.resource)
      phase->loads[phase->n_loads - 1].coef += load.coef;
    else
      phase->loads[phase->n_loads++] = load;
  }
}

LsPhase *
ls_traffic_phase (const LsCluster *c, const LsTraffic *t, uint32_t *ret_n_flows, LsArena *arena)
{
  g_autoptr (GArray) loads = g_array_new (FALSE, FALSE, sizeof (LsLoad));
  uint32_t n_nics
      = MAX (ls_cluster_node_spec (c, t->node_from)->nics.n, ls_cluster_node_spec (c, t->node_to)->nics.n);
  for (uint32_t nic = 0; nic < n_nics; nic++)
    if (!add_way (c, t, nic, loads))
      return NULL;
  if (loads->len == 0)
    return NULL;
  LsPhase *phase = ls_arena_new_array (arena, LsPhase, 1);
  take_loads (loads, phase, arena);
  *ret_n_flows = n_nics;
  phase->demand_bytes = (double) t->bytes / n_nics;
  phase->rate_cap = t->rate > 0 ? t->rate / n_nics : INFINITY;
  for (uint32_t i = 0; i < phase->n_loads; i++)
    phase->rate_cap = MIN (phase->rate_cap,
                           ls_cluster_resource_capacity (c, phase->loads[i].resource) * (double) LS_COEF_ONE
                               / (double) phase->loads[i].coef);
  return phase;
}

/* --- in a run ---------------------------------------------------------------------------------- */

static void
traffic_start (Run *x, XTraffic *t)
{
  LsFlow *f = &t->flow;
  f->remaining = t->phase->demand_bytes;
  f->cap = f->nominal_rate = t->phase->rate_cap;
  f->nominal = ls_time_from_s_up (f->remaining / f->cap);
  f->uses = t->uses;
  f->n_uses = t->n_uses;
  ls_flow_add (x->net, f);
}

static void
begin_fired (LsEvent *event, void *context)
{
  Run *x = context;
  XTraffic *t = (XTraffic *) event;
  if (t->of->period > 0 && x->extras->share->is_open)
    t->moved_at[t->n_begun++ > 0] = traffic_moved (x, (uint32_t) (t - x->extras->traffic));
  if (t->of->period > 0)
    ls_engine_at (&x->engine, &t->begin, event->at + t->of->period, LS_PHASE_COMPLETE);
  if (t->flow.is_active)
    t->n_waiting++;
  else
    traffic_start (x, t);
}

static void
flow_over (LsEvent *event, void *context)
{
  Run *x = context;
  XTraffic *t = (XTraffic *) ((char *) event - G_STRUCT_OFFSET (XTraffic, flow.done));
  ls_flow_remove (x->net, &t->flow);
  t->n_over++;
  if (t->of->period > 0 && t->n_waiting == 0)
    return;
  t->n_waiting -= t->of->period > 0;
  traffic_start (x, t);
}

void
traffic_lower (Run *x)
{
  for (uint32_t i = 0; i < x->extras->n_traffic; i++) {
    XTraffic *t = &x->extras->traffic[i];
    LsPhase *phase = ls_traffic_phase (x->cluster, t->of, &t->n_flows, x->arena);
    g_assert (phase);
    if (x->options.network == LS_NETWORK_ALPHABETA)
      phase->n_loads = 0;
    t->phase = phase;
  }
}

void
traffic_init (Run *x)
{
  for (uint32_t i = 0; i < x->extras->n_traffic; i++) {
    XTraffic *t = &x->extras->traffic[i];
    ls_event_init (&t->begin, begin_fired);
    ls_flow_init (&t->flow, flow_over);
    t->uses = ls_arena_new_array (x->arena, LsFlowUse, t->phase->n_loads);
    t->n_uses = run_uses (x, t->phase->loads, t->phase->n_loads, 1, t->uses);
    ls_engine_at (&x->engine, &t->begin, t->of->start, LS_PHASE_COMPLETE);
  }
}

double
traffic_moved (const Run *x, uint32_t i)
{
  const XTraffic *t = &x->extras->traffic[i];
  const LsFlow *f = &t->flow;
  double now = f->is_active ? f->moved + f->rate * ls_time_to_s (x->engine.now - f->updated_at) : 0;
  return t->n_flows * ((double) t->n_over * t->phase->demand_bytes + now);
}
