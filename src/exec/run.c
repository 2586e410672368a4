#include "exec/state.h"

#include <string.h>

void
ls_run_options_init (LsRunOptions *o)
{
  memset (o, 0, sizeof *o);
  o->n_steps = 3;
  o->network = LS_NETWORK_FLOW;
  o->queue = LS_QUEUE_FAST;
  o->solver = LS_SOLVER_COMPONENT;
  ls_host_costs_default (&o->host);
}

/* Kernels may be calibrated to more bandwidth than the data file grants the HBM;
 * a kernel with the GPU to itself must run at its time alone. */
static double *
capacities (const Run *x)
{
  uint32_t n = ls_cluster_n_resources (x->cluster), n_trunks = x->cluster->trunks->len;
  double *capacity = g_new (double, n);
  for (uint32_t i = 0; i < n; i++)
    capacity[i] = ls_cluster_resource_capacity (x->cluster, i);
  double fastest = 0;
  for (uint32_t k = 0; k < x->plan->n_kernels; k++)
    if (x->costs[k].alone > 0)
      fastest = MAX (fastest, x->plan->kernels[k].bytes / ls_time_to_s (x->costs[k].alone));
  for (uint32_t i = n_trunks; i < n; i++)
    capacity[i] = MAX (capacity[i], fastest * (1 + 1e-6));
  return capacity;
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

static void
run_init (Run *x)
{
  ls_engine_init (&x->engine, x->options->queue == LS_QUEUE_FAST ? &ls_evq_heap : &ls_evq_reference, x);
  g_autofree double *capacity = capacities (x);
  x->net = ls_flow_net_new (&x->engine, ls_cluster_n_resources (x->cluster), capacity,
                            x->options->solver == LS_SOLVER_REFERENCE);
  ls_event_init (&x->dispatch, dispatch_fired);
  x->ready = g_ptr_array_new ();
  x->ready_next = g_ptr_array_new ();
  x->n_steps = MAX (1, x->options->n_steps);
  x->step_n_done = g_new0 (uint32_t, x->n_steps + 2);
  x->step_end = g_new0 (LsTime, x->n_steps + 2);
  x->last_step = NO_ID;
  comm_init (x);
  x->ranks = g_new0 (Rank, x->plan->n_ranks);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    rank_init (x, &x->ranks[i], i);
}

static void
run_clear (Run *x)
{
  for (uint32_t i = 0; x->ranks && i < x->plan->n_ranks; i++)
    rank_clear (&x->ranks[i]);
  g_free (x->ranks);
  if (x->net) {
    comm_clear (x);
    ls_flow_net_free (x->net);
    ls_engine_clear (&x->engine);
    g_ptr_array_unref (x->ready);
    g_ptr_array_unref (x->ready_next);
  }
  g_free (x->step_n_done);
  g_free (x->step_end);
  ls_arena_free (x->arena);
}

/* The clock. A run ends when the reported step is over on all ranks. */
static gboolean
run_clock (Run *x, GError **error)
{
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    rank_ready (x, &x->ranks[i]);
  LsEngineEnd end = ls_engine_run (&x->engine);
  if (x->error) {
    g_propagate_error (error, x->error);
    return FALSE;
  }
  if (x->last_step != NO_ID)
    return TRUE;
  if (end == LS_ENGINE_LIVELOCK)
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT, "more than %u events at one instant (%" G_GINT64_FORMAT " ps)",
                 LS_ENGINE_MAX_PER_INSTANT, x->engine.now);
  else
    g_propagate_error (error, deadlock_report (x));
  return FALSE;
}

LsTimeline *
ls_run (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration, const LsNccl *nccl,
        const LsRunOptions *options, double *ret_cost_share, GError **error)
{
  Run x = { .plan = plan, .cluster = cluster, .nccl = nccl, .options = options, .arena = ls_arena_new () };
  LsTimeline *timeline = NULL;
  if (run_compile (&x, calibration, error)) {
    run_init (&x);
    if (run_clock (&x, error))
      timeline = spans_collect (&x);
  }
  if (ret_cost_share && timeline)
    memcpy (ret_cost_share, x.cost_share, sizeof x.cost_share);
  run_clear (&x);
  return timeline;
}
