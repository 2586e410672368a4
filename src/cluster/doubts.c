/* cluster/doubts.c — what a valid machine has that none would: most often a wrong unit. */
#include <math.h>

#include <lockstep/units.h>

#include "cluster/spec.h"

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

/* The slowest link of a list that leads to a NIC; 0: there is none. */
static double
rate_to_nics (const LsClusterSpec *c)
{
  double rate = INFINITY;
  for (guint i = 0; i < c->list_links->len; i++) {
    const LsListLink *l = &g_array_index (c->list_links, LsListLink, i);
    if (ls_spec_list_kind (c, l->from) == LS_NODE_NIC || ls_spec_list_kind (c, l->to) == LS_NODE_NIC)
      rate = fmin (rate, MAX (l->count, 1) * l->link.bandwidth_bytes_per_s);
  }
  return isinf (rate) ? 0 : rate;
}

/* A network card is on PCIe, and no faster; not those of the hosts of TPUs, which chips do not send by. */
static void
doubt_nic (const LsClusterSpec *c, GPtrArray *notes)
{
  double nic = c->nic.bandwidth_bytes_per_s,
         pcie = c->interior == LS_INTERIOR_LIST ? rate_to_nics (c) : c->pcie.bandwidth_bytes_per_s;
  if (c->interior == LS_INTERIOR_TORUS || c->nics == 0 || pcie <= 0 || nic <= pcie)
    return;
  g_autofree char *fast = ls_format_rate (nic), *slow = ls_format_rate (pcie);
  g_ptr_array_add (notes,
                   g_strdup_printf ("a NIC of %s is behind PCIe of %s, which holds it up: is "
                                    "node.nics.link.bandwidth in bits (400Gbit/s is 50GB/s)?",
                                    fast, slow));
}

void
ls_cluster_doubts (const LsClusterSpec *cluster, GPtrArray *notes)
{
  ls_gpu_doubts (&cluster->gpu, notes);
  doubt_nic (cluster, notes);
}
