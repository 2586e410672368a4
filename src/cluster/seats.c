#include "cluster/seats.h"

#include "base/gcd.h"
#include "cluster/cluster.h"

static uint32_t
gpus_of_kind (const LsClusterSpec *spec, uint32_t kind)
{
  return ls_cluster_spec_of_kind (spec, kind)->gpus_per_node;
}

static bool
is_even (const LsClusterSpec *spec)
{
  for (uint32_t k = 1; k < ls_cluster_spec_n_kinds (spec); k++)
    if (gpus_of_kind (spec, k) != spec->gpus_per_node)
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
