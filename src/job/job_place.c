/* job/job_place.c — where a job runs: its cluster, and the GPU of each rank. */
#include <lockstep/error.h>

#include "job/job_steps.h"

/* Ranks that the strategy's degrees need. */
static gboolean
count_ranks (const LsStrategy *s, const LsClusterSpec *cluster, uint32_t *ret_n, GError **error)
{
  uint32_t dp = MAX (s->dp, 1);
  guint64 n;
  if (!g_uint64_checked_mul (&n, (guint64) s->tp * s->pp, (guint64) s->cp * dp) || n > UINT32_MAX) {
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT, "tp * pp * cp * dp = %u * %u * %u * %u exceeds 2^32 %s",
                 s->tp, s->pp, s->cp, dp, ls_cluster_chip_word (cluster, 2));
    return FALSE;
  }
  *ret_n = MAX ((uint32_t) n, 1); /* a degree of 0 is refused later, with the other rules */
  return TRUE;
}

/* Of a placement that says it: the ranks that it is for, and the nodes that it names, of which the cluster
 * has at least these. */
static void
take_placement (LsStrategy *s, const LsHardware *hardware, uint32_t *n_nodes)
{
  const LsAllocation *a = s->allocation;
  uint32_t least = ls_allocation_cluster_nodes (a);
  LsClusterSpec spec = hardware->spec; /* borrows */
  if (s->gpus == 0)
    s->gpus = ls_allocation_n_ranks (a, &spec);
  if (*n_nodes > 0 || least == 0)
    return;
  ls_cluster_spec_fit (&spec, s->gpus);
  *n_nodes = a->n_cluster_nodes > 0 ? least : MAX (MAX (least, spec.n_nodes), hardware->spec.n_nodes);
}

/* Nodes of the cluster and GPUs used, where they are not given (see job.h). */
LsCluster *
ls_job_build_cluster (LsStrategy *s, const LsHardware *hardware, uint32_t n_nodes, GError **error)
{
  take_placement (s, hardware, &n_nodes);
  if (n_nodes == 0 && s->gpus == 0 && hardware->spec.n_nodes > 1)
    n_nodes = hardware->spec.n_nodes;
  if (n_nodes == 0 && s->gpus == 0 && !count_ranks (s, &hardware->spec, &s->gpus, error))
    return NULL;
  return ls_hardware_build_brief (hardware, n_nodes, s->gpus, error);
}

uint32_t *
ls_job_gpus (const LsStrategy *s, const LsCluster *cluster, GError **error)
{
  uint32_t n = s->tp * s->cp * s->dp * s->pp;
  g_autofree uint32_t *gpus = g_new (uint32_t, MAX (n, 1));
  return ls_allocation_gpus (s->allocation, &cluster->spec, n, gpus, error) ? g_steal_pointer (&gpus) : NULL;
}
