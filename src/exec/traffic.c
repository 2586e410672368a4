#include "exec/traffic.h"

#include <math.h>

#include "base/order.h"
#include "cluster/route.h"
#include "exec/extras.h"

/* --- what one loads -------------------------------------------------------------------------- */

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

static int
by_resource (const void *a, const void *b)
{
  return LS_ORDER (((const LsLoad *) a)->resource, ((const LsLoad *) b)->resource);
}

/* Each resource once. */
static void
take_loads (GArray *loads, LsPhase *phase, LsArena *arena)
{
  g_array_sort (loads, by_resource);
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
start (Run *x, XTraffic *t)
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
  if (t->of->period > 0)
    ls_engine_at (&x->engine, &t->begin, event->at + t->of->period, LS_PHASE_COMPLETE);
  if (t->flow.is_active)
    t->n_waiting++;
  else
    start (x, t);
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
  start (x, t);
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
