#include "exec/messages/way.h"

#include <math.h>

static double
flows_of (const LsScript *s)
{
  return (double) s->flows / (double) LS_COEF_ONE;
}

static void
add_use (Way *way, uint32_t resource, double flows)
{
  uint64_t coef = (uint64_t) llround (flows * (double) LS_COEF_ONE);
  uint32_t i = 0;
  while (i < way->n_uses && way->uses[i].resource != resource)
    i++;
  if (coef == 0)
    return;
  if (i == way->n_uses)
    way->uses[way->n_uses++] = (LsFlowUse) { .resource = resource };
  way->uses[i].coef += coef;
}

static void
make_room (Way *way, uint32_t n_uses)
{
  if (n_uses > way->max_uses) {
    way->max_uses = n_uses;
    way->uses = g_renew (LsFlowUse, way->uses, n_uses);
  }
}

void
way_find (Way *way, const LsScript *script, uint32_t from, uint32_t to)
{
  LsRoute route;
  double flows = flows_of (script);
  way->n_uses = 0;
  for (uint32_t c = 0; c < ls_script_n_channels (script); c++) {
    double here = (double) ls_script_channel_flows (script, c) / (double) LS_COEF_ONE;
    ls_script_route_channel (script, from, to, c, &route);
    make_room (way, way->n_uses + route.n_hops + 2);
    for (uint32_t i = 0; i < route.n_hops; i++)
      add_use (way, route.hop[i].trunk, here * ((double) route.hop[i].share / LS_HOP_WHOLE));
  }
  if (from < script->n)
    add_use (way, ls_cluster_hbm_resource (script->cluster, script->gpus[from]), flows * script->hbm_from);
  if (to < script->n)
    add_use (way, ls_cluster_hbm_resource (script->cluster, script->gpus[to]), flows * script->hbm_to);
}

void
way_clear (Way *way)
{
  g_free (way->uses);
}

double
way_demand (const LsScript *script, uint32_t n)
{
  return n * script->block_bytes / flows_of (script);
}

LsTime
way_moving (const LsScript *script, uint32_t n, double cap)
{
  double demand = way_demand (script, n);
  return demand > 0 ? MIN (ls_time_from_s_up (demand / cap), MESSAGES_CLOCK_END) : 0;
}
