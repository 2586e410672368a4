/* cluster/spec.h — what the builder needs to know of a spec (private to
 * cluster/): copies, limits, and what its checks share. */
#ifndef LS_CLUSTER_SPEC_H
#define LS_CLUSTER_SPEC_H

#include "base/diag.h"
#include "cluster/cluster.h"

/* Guards against typing errors, far above any machine: GPUs; leaves, and uplinks of
 * one leaf, which are its spines; links of the graph, each direction one (2^20 GPUs
 * in DGX H100 nodes have a third of that; a link takes 48 bytes); letters of a vertex. */
#define LS_CLUSTER_MAX_GPUS   (1u << 20)
#define LS_CLUSTER_MAX_FABRIC 65536
#define LS_CLUSTER_MAX_LINKS  (1u << 26)
#define LS_MAX_VERTEX_NAME    64

void ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy);

/* LsNodeKind of a vertex of its list; -1: there is none of that name. */
int ls_spec_list_kind (const LsClusterSpec *s, const char *name);

/* LS_ERROR_CONFLICT; FALSE, to be returned. */
#define ls_spec_conflict(error, ...) ls_fail (error, LS_ERROR_CONFLICT, __VA_ARGS__)

/* Whether a link that is used has a rate. */
gboolean ls_spec_check_link (const char *what, gboolean is_used, const LsLinkSpec *link, GError **error);

/* Of link i of a list: it joins two others, which no link before it joins (joined: a set of pairs, which it
 * is added to), and has these figures. is_in_order: two names are told in order. */
gboolean ls_spec_check_listed (const char *what, guint i, const LsListLink *link, bool is_in_order,
                               const LsLinkSpec *figures, GHashTable *joined, GError **error);

/* "Evenly" both ways: 8 NICs on 4 switches, or 2 NICs on 4 switches. */
static inline gboolean
ls_deals_out (uint32_t a, uint32_t b)
{
  return a % b == 0 || b % a == 0;
}

/* Putting vertices, links, trunks and their names into a cluster
 * that is being built (private to cluster/). */

/* One end of a link, by its name: "node3/gpu5". */
typedef struct {
  uint32_t vertex;
  uint32_t host;    /* LS_NO_NUMBER: of the fabric                              */
  const char *kind; /* "gpu", "leaf"                                            */
  uint32_t number;  /* LS_NO_NUMBER: it stands for all of its kind ("spines"), or
                       kind is the whole name                                   */
} LsEnd;

#define LS_NO_NUMBER UINT32_MAX
#define LS_END(vertex_, host_, kind_, number_)                                                               \
  ((LsEnd) { .vertex = (vertex_), .host = (host_), .kind = (kind_), .number = (number_) })

/* Newly allocated: "node3/gpu5>nvswitch". */
char *ls_layout_name (LsEnd from, LsEnd to);

/* n more vertices of a kind, with index 0 .. n-1. */
void ls_layout_vertices (LsCluster *c, LsNodeKind kind, uint32_t host, uint32_t n);

/* A pair of trunks, a > b then b > a, of n_physical links between a and the n vertices
 * from b on; the first of these get one more where it does not divide (18 NVLinks on 4
 * planes: 5 5 4 4). */
void ls_layout_pair (LsCluster *c, LsEnd a, LsEnd b, uint32_t n, uint32_t n_physical, const LsLinkSpec *spec);

/* The same in two steps, for links from several vertices: a pair of trunks without links;
 * and n_physical links between a and b, both ways, in the last pair. */
void ls_layout_trunks (LsCluster *c, LsEnd a, LsEnd b, const LsLinkSpec *spec);
void ls_layout_links (LsCluster *c, uint32_t a, uint32_t b, uint32_t n_physical, const LsLinkSpec *spec);

/* The last pair of trunks carries that share of what its links do, each of these alike, and takes that long.
 * */
void ls_layout_limit (LsCluster *c, double share, LsTime latency);

#endif
