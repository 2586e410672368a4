/* cluster/layout.h — putting vertices, links, trunks and their names into a cluster
 * that is being built (private to cluster/). */
#ifndef LS_CLUSTER_LAYOUT_H
#define LS_CLUSTER_LAYOUT_H

#include "cluster/cluster.h"

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
