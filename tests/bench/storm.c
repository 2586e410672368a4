#include "storm.h"

#include <glib.h>

#include "cluster/cluster.h"
#include "cluster/route.h"
#include "core/flow.h"
#include "ls_bench.h"

#define HOSTS_PER_LEAF 32

/* Vigna's splitmix64. */
static uint64_t
draw (uint64_t *state)
{
  uint64_t z = *state += UINT64_C (0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

static uint32_t
draw_below (uint64_t *state, uint32_t n)
{
  return (uint32_t) ((draw (state) >> 32) * n >> 32);
}

static LsLinkSpec
link_of (double bytes_per_s)
{
  return (LsLinkSpec) { .bandwidth_bytes_per_s = bytes_per_s, .efficiency = 1 };
}

static LsCluster *
cluster_of (const StormSpec *spec)
{
  LsClusterSpec s = {
    .gpu = { .hbm_bytes_per_s = 3e12, .hbm_efficiency = 1, .hbm_bytes = UINT64_C (80) << 30, .n_sm = 132 },
    .n_nodes = spec->n_hosts,
    .gpus_per_node = 1,
    .server.pcie_switches = 1,
    .server.pcie = link_of (64e9),
    .nics.n = 1,
    .nics.port = link_of (50e9),
    .network.rails = 1,
    .network.nodes_per_leaf = HOSTS_PER_LEAF,
    .network.oversubscription = spec->oversubscription,
    .network.spine = link_of (50e9),
  };
  g_autoptr (GError) error = NULL;
  LsCluster *c = ls_cluster_build (&s, &error);
  if (!c)
    g_error ("storm: %s", error->message);
  return c;
}

/* Whether trunks begin or end at a leaf: what lies inside a host is wider than its NIC,
 * serves nobody else, and is left out. */
static bool *
fabric_of (const LsCluster *c)
{
  bool *is_fabric = g_new0 (bool, c->trunks->len);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *l = &g_array_index (c->links, LsLink, i);
    if (g_array_index (c->nodes, LsTopoNode, l->from).kind == LS_NODE_LEAF
        || g_array_index (c->nodes, LsTopoNode, l->to).kind == LS_NODE_LEAF)
      is_fabric[l->trunk] = true;
  }
  return is_fabric;
}

static void
route (const LsCluster *c, const bool *is_fabric, StormFlow *f)
{
  LsRoute r;
  ls_route (c, f->from, f->to, 0, &r);
  for (uint32_t i = 0; i < r.n_hops; i++) {
    g_assert (r.hop[i].share == LS_HOP_WHOLE);
    if (!is_fabric[r.hop[i].trunk])
      continue;
    g_assert (f->n_hops < STORM_MAX_HOPS);
    f->hop[f->n_hops++] = r.hop[i].trunk;
  }
}

Storm *
storm_new (const StormSpec *spec)
{
  Storm *s = g_new0 (Storm, 1);
  uint64_t random = spec->seed;
  LsCluster *c = cluster_of (spec);
  g_autofree bool *is_fabric = fabric_of (c);
  s->spec = *spec;
  s->n_trunks = c->trunks->len;
  s->capacity = g_new (double, s->n_trunks);
  for (uint32_t i = 0; i < s->n_trunks; i++)
    s->capacity[i] = ls_cluster_resource_capacity (c, i);
  s->flows = g_new0 (StormFlow, spec->n_flows);
  for (uint32_t i = 0; i < spec->n_flows; i++) {
    StormFlow *f = &s->flows[i];
    f->from = draw_below (&random, spec->n_hosts);
    f->to = (f->from + 1 + draw_below (&random, spec->n_hosts - 1)) % spec->n_hosts;
    f->bytes = 1000000 + draw_below (&random, 99000000);
    f->start = spec->spread ? (int64_t) (draw (&random) % (uint64_t) spec->spread) : 0;
    route (c, is_fabric, f);
  }
  ls_cluster_free (c);
  return s;
}

void
storm_free (Storm *s)
{
  if (!s)
    return;
  g_free (s->capacity);
  g_free (s->flows);
  g_free (s);
}

/* --- a run ---------------------------------------------------------------- */

typedef struct {
  LsFlow flow;
  LsEvent begin;
  LsFlowUse uses[STORM_MAX_HOPS];
  uint32_t index;
} Transfer;

typedef struct {
  LsEngine engine;
  LsFlowNet *net;
  Storm *storm;
  Transfer *transfers; /* [n_at_once], or one for each flow */
} World;

static void
transfer_begin (World *w, Transfer *t)
{
  StormFlow *f = &w->storm->flows[t->index];
  f->start = w->engine.now;
  t->flow.remaining = (double) f->bytes;
  t->flow.cap = w->storm->capacity[f->hop[0]];
  t->flow.nominal = 0;
  t->flow.n_uses = f->n_hops;
  for (uint32_t i = 0; i < f->n_hops; i++)
    t->uses[i] = (LsFlowUse) { .resource = f->hop[i], .coef = LS_COEF_ONE };
  ls_flow_add (w->net, &t->flow);
}

static void
transfer_begins (LsEvent *event, void *context)
{
  transfer_begin (context, (Transfer *) ((char *) event - G_STRUCT_OFFSET (Transfer, begin)));
}

static void
transfer_over (LsEvent *event, void *context)
{
  World *w = context;
  Transfer *t = (Transfer *) ((char *) event - G_STRUCT_OFFSET (Transfer, flow.done));
  const StormSpec *spec = &w->storm->spec;
  ls_flow_remove (w->net, &t->flow);
  w->storm->flows[t->index].end = event->at;
  if (spec->n_at_once == 0 || t->index + spec->n_at_once >= spec->n_flows)
    return;
  t->index += spec->n_at_once;
  transfer_begin (w, t);
}

double
storm_run (Storm *storm, bool is_reference)
{
  const StormSpec *spec = &storm->spec;
  uint32_t n = spec->n_at_once ? spec->n_at_once : spec->n_flows;
  World w = { .storm = storm, .transfers = g_new0 (Transfer, n) };
  ls_engine_init (&w.engine, &ls_evq_radix, &w);
  w.net = ls_flow_net_new (&w.engine, storm->n_trunks, storm->capacity, is_reference);
  for (uint32_t i = 0; i < spec->n_flows; i++)
    storm->flows[i].end = -1;
  for (uint32_t i = 0; i < n; i++) {
    Transfer *t = &w.transfers[i];
    t->index = i;
    t->flow.uses = t->uses;
    ls_flow_init (&t->flow, transfer_over);
    ls_event_init (&t->begin, transfer_begins);
    ls_engine_at (&w.engine, &t->begin, spec->n_at_once ? 0 : storm->flows[i].start, LS_PHASE_DISPATCH);
  }
  double start = ls_bench_cpu_s ();
  ls_engine_run (&w.engine);
  double seconds = ls_bench_cpu_s () - start;
  ls_flow_net_check (w.net);
  ls_flow_net_free (w.net);
  ls_engine_clear (&w.engine);
  g_free (w.transfers);
  return seconds;
}

double
storm_rate (Storm *storm, bool is_reference)
{
  double s[3];
  for (int i = 0; i < 3; i++)
    s[i] = storm_run (storm, is_reference);
  double median = MAX (MIN (s[0], s[1]), MIN (MAX (s[0], s[1]), s[2]));
  return storm->spec.n_flows / median;
}
