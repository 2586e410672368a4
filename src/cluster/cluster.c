#include "cluster/cluster.h"

#include <lockstep/units.h>

#include "base/gcd.h"
#include "cluster/index.h"

const LsTrunk *
ls_cluster_trunk (const LsCluster *c, uint32_t trunk)
{
  g_assert (trunk < c->n_trunks);
  return &g_array_index (c->trunks, LsTrunk, ls_trunk_slot (c, trunk));
}

/* Whose trunk it is, and which. */
static uint32_t
host_of_trunk (const LsCluster *c, uint32_t trunk, uint32_t *ret_local)
{
  uint32_t low = 0, high = c->spec.n_nodes;
  g_assert (trunk < c->index->fabric->first_trunk);
  if (!c->index->starts)
    low = trunk / c->index->layouts[0].n_trunks;
  while (c->index->starts && high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(ls_first_trunk (c, middle) <= trunk ? &low : &high) = middle;
  }
  *ret_local = trunk - ls_first_trunk (c, low);
  return low;
}

uint32_t
ls_cluster_edge_of_trunk (const LsCluster *c, uint32_t trunk)
{
  const LsFabric *fabric = c->index->fabric;
  uint32_t local, host = host_of_trunk (c, trunk, &local), n_inside = ls_interior_of (c, host)->n_trunks;
  g_assert (local >= n_inside);
  return fabric->kind->edge (fabric, host, (local - n_inside) / 2);
}

uint32_t
ls_cluster_n_edges (const LsCluster *c)
{
  return c->index->fabric->n_edges;
}

double
ls_cluster_resource_capacity (const LsCluster *c, uint32_t resource)
{
  g_assert (resource < ls_cluster_n_resources (c));
  if (resource < c->n_trunks)
    return ls_cluster_trunk (c, resource)->capacity_bytes_per_s;
  const LsGpu *gpu = ls_cluster_gpu_spec (c, resource - c->n_trunks);
  return gpu->hbm_bytes_per_s * gpu->hbm_efficiency;
}

static char *
trunk_name (const LsCluster *c, uint32_t trunk, LsHostNames *names)
{
  const char *known = ls_cluster_trunk (c, trunk)->name;
  if (known)
    return g_strdup (known);
  const LsFabric *fabric = c->index->fabric;
  if (trunk >= fabric->first_trunk)
    return fabric->kind->trunk_name (fabric, trunk - fabric->first_trunk);
  uint32_t local, host = host_of_trunk (c, trunk, &local);
  if (!names->trunks || names->host != host) {
    ls_host_names_clear (names);
    *names = (LsHostNames) { host, ls_cluster_host_trunk_names (c, host) };
  }
  return g_strdup (names->trunks[local]);
}

void
ls_host_names_clear (LsHostNames *names)
{
  g_clear_pointer (&names->trunks, g_strfreev);
}

char *
ls_cluster_resource_name (const LsCluster *c, uint32_t resource)
{
  g_auto (LsHostNames) names = { 0 };
  return ls_cluster_resource_name_with (c, resource, &names);
}

char *
ls_cluster_resource_name_with (const LsCluster *c, uint32_t resource, LsHostNames *names)
{
  g_assert (resource < ls_cluster_n_resources (c));
  if (resource < c->n_trunks)
    return trunk_name (c, resource, names);
  uint32_t gpu = resource - c->n_trunks;
  return g_strdup_printf ("node%u/gpu%u/hbm", ls_cluster_host_of (c, gpu), ls_cluster_local_of (c, gpu));
}

/* ---- seats ---- */

static bool
is_even (const LsClusterSpec *spec)
{
  for (uint32_t k = 1; k < ls_cluster_spec_n_kinds (spec); k++)
    if (ls_cluster_spec_of_kind (spec, k)->gpus_per_node != spec->gpus_per_node)
      return false;
  return true;
}

void
ls_seats_init (LsSeats *s, const LsClusterSpec *spec)
{
  *s = (LsSeats) { .n_nodes = spec->n_nodes,
                   .n_gpus = (uint32_t) ls_cluster_spec_n_gpus (spec),
                   .per_node = spec->gpus_per_node };
  if (is_even (spec))
    return;
  s->first = g_new0 (uint32_t, s->n_nodes + 1);
  s->node_of = g_new (uint32_t, s->n_gpus + 1);
  s->per_node = 0;
  for (uint32_t node = 0; node < s->n_nodes; node++) {
    uint32_t n = ls_cluster_spec_gpus_of (spec, node);
    s->per_node = MAX (s->per_node, n);
    s->first[node + 1] = s->first[node] + n;
    for (uint32_t i = 0; i < n; i++)
      s->node_of[s->first[node] + i] = node;
  }
  g_assert (s->first[s->n_nodes] == s->n_gpus);
}

void
ls_seats_clear (LsSeats *s)
{
  g_clear_pointer (&s->first, g_free);
  g_clear_pointer (&s->node_of, g_free);
}

uint32_t
ls_seats_common (const LsSeats *s)
{
  uint32_t common = s->per_node;
  for (uint32_t node = 0; s->first && node < s->n_nodes; node++)
    common = ls_gcd (common, ls_seats_in_node (s, node));
  return common;
}

/* ---- doubts ---- */

/* What a valid machine has that none would: most often a wrong unit. */

/* FLOP/s in 16 bits over bytes/s of memory: h20 and tpu-v6e have the least and the most in topologies/gpu.
 * Ten times beyond is a wrong unit rather than a machine. */
#define LEAST_BALANCE 37
#define MOST_BALANCE  574
#define FAR_BEYOND    10

void
ls_gpu_doubts (const LsGpu *gpu, GPtrArray *notes)
{
  double peak = MAX (gpu->peak_flops[LS_DTYPE_BF16], gpu->peak_flops[LS_DTYPE_FP16]),
         balance = gpu->hbm_bytes_per_s > 0 ? peak / gpu->hbm_bytes_per_s : 0;
  bool is_usual = balance * FAR_BEYOND >= LEAST_BALANCE && balance <= MOST_BALANCE * FAR_BEYOND;
  if (peak <= 0 || is_usual)
    return;
  g_autofree char *flops = ls_format_flops (peak), *bytes = ls_format_rate (gpu->hbm_bytes_per_s);
  g_ptr_array_add (notes,
                   g_strdup_printf ("%s does %s in 16 bits at %s of memory, %.3g for each byte, where others "
                                    "do %d to %d: is the unit of peak_flops or hbm_bandwidth wrong?",
                                    gpu->name, flops, bytes, balance, LEAST_BALANCE, MOST_BALANCE));
}
