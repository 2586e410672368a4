/* cluster/segment.h — how the GPUs of a job lie in racks.
 *
 * A rack of NVLink is a node here, and has more compute trays (boards) than jobs take: one of 18 trays gives
 * whole segments of 16, and leaves two spare. Slurm's option --segment says the same (topology/block): trays
 * of a segment lie in one rack, and segments must divide the trays of the job evenly. Racks are filled with
 * as many whole segments as they hold, rank by rank:
 *
 *     taken   = floor (trays / segment) * segment * GPUs of a tray
 *     GPU of rank r = floor (r / taken) * gpus_per_node + r mod taken
 *
 * Where nobody says it, the cluster's file may: then for jobs that need more than one node and consist of
 * whole segments; all others fill node after node. */
#ifndef LS_CLUSTER_SEGMENT_H
#define LS_CLUSTER_SEGMENT_H

#include "cluster/cluster.h"

/* Compute trays of a node; 1: it is one. */
uint32_t ls_segment_trays (const LsClusterSpec *spec);

/* Sets taken_per_node for a job of n_gpus (0: of all there are) on n_nodes (0: as many as it needs).
 * LS_ERROR_CONFLICT, of a segment that the job asks for: a node has fewer trays, or the job is not whole
 * segments. */
gboolean ls_segment_place (LsClusterSpec *spec, uint32_t n_nodes, uint32_t n_gpus, GError **error);

/* "64 of the 72 GPUs of a node: segments of 16 of its 18 trays"; NULL: all are taken. Newly allocated. */
char *ls_segment_text (const LsClusterSpec *spec);

/* GPUs of each node that the job takes; with segments all nodes are alike. Else those of the first kind. */
static inline uint32_t
ls_cluster_taken (const LsClusterSpec *spec)
{
  return spec->taken_per_node > 0 ? spec->taken_per_node : spec->gpus_per_node;
}

/* The largest number that divides what the job takes of every node. */
static inline uint32_t
ls_cluster_common (const LsCluster *c)
{
  return c->spec.taken_per_node > 0 ? c->spec.taken_per_node : ls_seats_common (&c->seats);
}

static inline uint32_t
ls_cluster_n_taken (const LsCluster *c)
{
  return c->spec.taken_per_node > 0 ? c->spec.n_nodes * c->spec.taken_per_node : c->n_gpus;
}

static inline uint32_t
ls_cluster_gpu_of (const LsClusterSpec *spec, uint32_t rank)
{
  uint32_t taken = spec->taken_per_node;
  return taken > 0 ? rank / taken * spec->gpus_per_node + rank % taken : rank;
}

#endif
