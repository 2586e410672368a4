/* cluster/allocation.h — the GPUs of a job, rank by rank, on a cluster that may have more nodes.
 *
 * A scheduler hands out nodes: ranks fill them in its order, each with as many GPUs as jobs take of a node
 * (cluster/cluster.h). Or each rank has its GPU. Nodes are numbered from 0 in the order of the cluster, which
 * is how they are wired: leaf by leaf. Names are numbers of nodes in one of two ways:
 *
 *     node[000-003,007]            the number at the end: nodes 0 to 3 and 7
 *     node[1-4]                    the same from 1, as none is 0: nodes 0 to 3
 *     node[001-004]:node[001-064]  behind the colon all nodes of the cluster: its nodes 0 to 3 of 64
 *
 * A list is as SLURM writes it (sbatch, --nodelist; scontrol show hostlist): items between commas; numbers
 * and ranges in brackets, as wide as they are written; several brackets in a name, of which the last runs
 * fastest. "0-3,7" does without a name.
 *
 * Cyclic, as srun's --distribution and mpirun's --map-by node: with N nodes rank r is on node r mod N; of
 * nodes of unequal size those that are full are left out of the turn.
 *
 * At random: nodes of the cluster in an order that a seed draws, as many as the ranks need; or GPUs. */
#ifndef LS_CLUSTER_ALLOCATION_H
#define LS_CLUSTER_ALLOCATION_H

#include "base/diag.h"
#include "cluster/cluster.h"

/* Nodes of a list at most. */
#define LS_ALLOCATION_MAX_NODES (1u << 20)

typedef enum {
  LS_ALLOCATION_NODES,
  LS_ALLOCATION_RANKS,
  LS_ALLOCATION_CYCLIC,
  LS_ALLOCATION_RANDOM_NODES,
  LS_ALLOCATION_RANDOM_GPUS,
} LsAllocationKind;

/* Of a rank; of a list of nodes only the node counts. */
typedef struct {
  uint32_t node, gpu; /* of the cluster; of the node */
  int line, col;      /* in the file; 0: none        */
} LsSeat;

/* What the first node of the cluster is called, where it is not said: 1 where names begin there, unknown
 * where they begin after that, which are counted from 0 then. */
typedef enum {
  LS_NODES_SAID,
  LS_NODES_FROM_0,
  LS_NODES_FROM_1,
  LS_NODES_FROM_UNKNOWN,
} LsNodesFrom;

/* Does not change; shared between threads. */
typedef struct {
  gint n_references;
  LsAllocationKind kind;
  uint32_t seed;            /* of the random ones                        */
  uint32_t n_seats;         /* nodes, or ranks; 0 of cyclic and random   */
  LsSeat *seats;            /* [n_seats] in the order of the job         */
  uint32_t n_cluster_nodes; /* of the cluster that it is for; 0: not said */
  LsNodesFrom from;         /* how names were counted                    */
  char *file;               /* where the seats stand; NULL: in no file   */
} LsAllocation;

/* Names of a list, char * in its order, newly allocated. NULL: *reterr_why says what is wrong, newly
 * allocated. */
GPtrArray *ls_node_list_names (const char *text, char **reterr_why);

/* "cyclic", "random:SEED", "random-gpus:SEED", or a list of nodes, with all nodes of the cluster behind a
 * colon. NULL: *reterr_why, newly allocated. */
LsAllocation *ls_allocation_parse (const char *text, char **reterr_why);

/* Numbers of names, [n_names]; all_names: of the cluster's nodes; NULL: a name has its number at the end, and
 * all begin alike. false: *reterr_why, and *reterr_at is the name at fault. */
bool ls_node_numbers (const GPtrArray *names, const GPtrArray *all_names, uint32_t *ret_numbers,
                      LsNodesFrom *ret_from, guint *reterr_at, char **reterr_why);

/* Lists of one cluster count alike: from 0 if one does, else from 1 if one does. [n], NULL among them
 * allowed. For lists that nobody else has yet. */
void ls_allocations_agree (LsAllocation **all, guint n);
/* How names are counted, where they do not say it; NULL: they do. a: NULL allowed. Static. */
const char *ls_allocation_note (const LsAllocation *a);

/* Takes the seats, from g_malloc (); copies file. */
LsAllocation *ls_allocation_new (LsAllocationKind kind, LsSeat *seats, uint32_t n_seats, const char *file);
LsAllocation *ls_allocation_ref (LsAllocation *a); /* NULL allowed */
void ls_allocation_unref (LsAllocation *a);        /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsAllocation, ls_allocation_unref)

/* Nodes that the cluster must have at least, 0: as many as the ranks need. a: NULL allowed. */
uint32_t ls_allocation_cluster_nodes (const LsAllocation *a);
/* Ranks that it has GPUs for on nodes of that kind; 0: any number. a: NULL allowed. */
uint32_t ls_allocation_n_ranks (const LsAllocation *a, const LsClusterSpec *spec);

/* The GPU of each of n_ranks, of those of the cluster, no two alike. a NULL: node after node
 * (cluster/cluster.h). LS_ERROR_CONFLICT, with all mistakes and their places: a node or GPU that the cluster
 * does not have, one that is taken twice, fewer than the ranks need. */
gboolean ls_allocation_gpus (const LsAllocation *a, const LsClusterSpec *spec, uint32_t n_ranks,
                             uint32_t *ret_gpus, GError **error);

/* Whether any two of these GPUs are of different nodes; NULL: the first n of the cluster. */
bool ls_gpus_span_nodes (const LsCluster *cluster, const uint32_t *gpus, uint32_t n);

#endif
