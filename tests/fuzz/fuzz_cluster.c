/* Any bytes as a cluster: read, or refused with reasons. What is read and valid can be
 * built, unless faults or a list leave something apart; small ones are, and every invariant
 * of theirs holds. */
#include "fuzz.h"

#include "cluster_check.h"

#include "cluster/route.h"
#include "data/machines/machines.h"

#define MAX_GPUS  64
#define MAX_PARTS 64 /* of a kind in a node */

static void
build (LsClusterSpec *spec)
{
  spec->n_nodes = MIN (spec->n_nodes, 4);
  bool is_small = spec->gpus_per_node * spec->n_nodes <= MAX_GPUS && spec->nvswitch_planes <= MAX_PARTS
      && spec->nics <= MAX_PARTS && spec->pcie_switches <= MAX_PARTS && spec->cpu_sockets <= MAX_PARTS
      && spec->nvme_drives <= MAX_PARTS;
  g_autoptr (GError) error = NULL;
  if (!ls_cluster_spec_validate (spec, &error)) {
    g_assert (error != NULL);
    return;
  }
  if (!is_small)
    return;
  g_autoptr (LsCluster) c = ls_cluster_build (spec, &error);
  g_assert (c != NULL || (error != NULL && (spec->faults || spec->fabric == LS_FABRIC_LIST)));
  if (!c || c->links->len > 20000)
    return;
  ls_cluster_check (c);
  LsRoute route;
  ls_route (c, 0, c->n_gpus - 1, LS_NIC_AUTO, LS_NIC_AUTO, &route);
  g_assert (c->n_gpus == 1 || route.n_hops > 0);
  ls_route_host_memory (c, 0, true, &route);
}

static bool
read_cluster (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsClusterSpec spec;
  if (!ls_cluster_read (doc, &spec, diags))
    return false;
  build (&spec);
  ls_cluster_spec_clear (&spec);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_cluster);
  return 0;
}
