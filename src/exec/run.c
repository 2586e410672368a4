#include <lockstep/error.h>
#include <string.h>

#include "exec/extras.h"

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
  const char *debug = g_getenv ("LS_DEBUG");
  g_auto (GStrv) items = g_strsplit (debug ? debug : "", ",", -1);
  o->checks = g_strv_contains ((const char *const *) items, "check");
}

/* What a run is asked for; borrowed. */
typedef struct {
  const LsPlan *plan;
  const LsCluster *cluster;
  const LsCalibration *calibration;
  const LsNccl *nccl;
  const LsRunOptions *options;
} Asked;

/* With other options. */
static Asked
asked_with (Asked asked, const LsRunOptions *options)
{
  asked.options = options;
  return asked;
}

/* *ret_is_folded: whether a rank stood for another. *ret_is_lost: there is no result, for it did not begin as
 * it should have. */
static LsTimeline *
run_from (Asked asked, double *ret_cost_share, bool *ret_is_folded, bool *ret_is_lost, GError **error)
{
  XJob job = { .plan = asked.plan, .calibration = asked.calibration, .host = &asked.options->host };
  Extras extras = { 0 };
  Run x = { .plan = asked.plan,
            .jobs = &job,
            .n_jobs = 1,
            .cluster = asked.cluster,
            .nccl = asked.nccl,
            .n_steps = MAX (1, asked.options->n_steps) };
  LsTimeline *timeline = NULL;
  extras_hang (&x, &extras, asked.options);
  bool is_over = run_begin (&x, error) && run_clock (&x, error);
  *ret_is_folded = extras.fold != NULL;
  *ret_is_lost = x.begins_late && !x.is_periodic;
  if (is_over && !*ret_is_lost) {
    timeline = timeline_collect (&x);
    timeline->n_coarse = coarsen_count (&x);
  }
  if (ret_cost_share && timeline)
    memcpy (ret_cost_share, x.cost_share, sizeof x.cost_share);
  extras_clear (&x);
  run_clear (&x);
  return timeline;
}

/* From the quiescent point if only the steady state is wanted, and from the beginning if that leads
 * nowhere. */
static LsTimeline *
run_once (Asked asked, double *ret_cost_share, bool *ret_is_folded, GError **error)
{
  bool is_lost;
  g_autoptr (GError) failed = NULL;
  LsTimeline *t = run_from (asked, ret_cost_share, ret_is_folded, &is_lost, &failed);
  if (is_lost) {
    LsRunOptions whole = *asked.options;
    whole.steady = false;
    return run_from (asked_with (asked, &whole), ret_cost_share, ret_is_folded, &is_lost, error);
  }
  if (failed)
    g_propagate_error (error, g_steal_pointer (&failed));
  return t;
}

bool
run_names_ranks (const GError *error)
{
  return g_error_matches (error, LS_ERROR, LS_ERROR_DEADLOCK)
      || g_error_matches (error, LS_ERROR, LS_ERROR_INPUT);
}

LsRunOptions
run_plain_twin (const LsRunOptions *options, bool checks_fold, bool checks_pieces)
{
  LsRunOptions plain = *options;
  plain.fold = checks_fold ? LS_SHORTCUT_OFF : plain.fold;
  plain.coarsen = checks_pieces ? LS_SHORTCUT_OFF : plain.coarsen;
  return plain;
}

/* What is to be checked is done the plain way, and compared. */
static gboolean
check_twin (const LsTimeline *t, bool is_folded, Asked asked, GError **error)
{
  bool checks_fold = is_folded && asked.options->fold == LS_SHORTCUT_CHECK,
       checks_pieces = asked.options->coarsen == LS_SHORTCUT_CHECK;
  if (!checks_fold && !checks_pieces)
    return TRUE;
  const LsRunOptions plain = run_plain_twin (asked.options, checks_fold, checks_pieces);
  bool none;
  g_autoptr (LsTimeline) twin = run_once (asked_with (asked, &plain), NULL, &none, error);
  const char *names = !checks_pieces ? "folded and unfolded"
      : checks_fold                  ? "folded in pieces, and unfolded op by op,"
                                     : "in pieces and op by op";
  return twin && fold_check (t, twin, asked.cluster, names, error);
}

/* Folded or each rank by itself, or both. */
static LsTimeline *
run_folded (Asked asked, double *ret_cost_share, GError **error)
{
  bool is_folded, none;
  g_autoptr (GError) failed = NULL;
  g_autoptr (LsTimeline) t = run_once (asked, ret_cost_share, &is_folded, &failed);
  if (!t && is_folded && run_names_ranks (failed)) {
    const LsRunOptions unfolded = run_plain_twin (asked.options, true, false);
    return run_once (asked_with (asked, &unfolded), ret_cost_share, &none, error);
  }
  if (!t) {
    g_propagate_error (error, g_steal_pointer (&failed));
    return NULL;
  }
  return check_twin (t, is_folded, asked, error) ? g_steal_pointer (&t) : NULL;
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
  return run_folded ((Asked) { plan, cluster, calibration, nccl, &own }, ret_cost_share, error);
}
