/* analysis/topology.h — a cluster described: what a node consists of, what joins the
 * nodes, every kind of link, and how much gets through.
 *
 * All comes from the graph (cluster/cluster.h), whatever kind of node and fabric made it.
 * Rates are of one direction, in bytes/s: `data_sheet` as the makers print them, `payload`
 * what remains of them (times the efficiency of the link).
 *
 * Levels. Level 0 joins the GPUs of a node, level 1 what the lowest tier of switches
 * joins, and so on up: D parts, each with links of W altogether to the level. Of an
 * all-gather of V bytes over all below, each part still needs V (D - 1) / D from the
 * others, so it cannot be faster than
 *
 *     all_gather = W D / (D - 1)        bytes/s of V
 *
 * (jax-ml/scaling-book gpus.md@1a55377). Of H100s: 8 at 450 GB/s give 514 GB/s, 32 nodes at
 * 400 GB/s 413 GB/s, 4 such units at 12.8 TB/s 17.1 TB/s.
 *
 * Bisection. The most that can flow from one half of the GPUs to the other (below), all links busy. Of a node
 * over the links between GPUs and NVSwitches if these join all GPUs, else over all; halves are the first and
 * the second half in number, of a torus those of the axis where the least gets through. Of the
 * cluster: the first and the second half of the nodes, over all links. */
#ifndef LS_ANALYSIS_TOPOLOGY_H
#define LS_ANALYSIS_TOPOLOGY_H

#include "cluster/cluster.h"
#include "cluster/route.h"

typedef struct {
  double data_sheet, payload; /* bytes/s, one direction; NAN: not known */
} LsBandwidth;

/* Links that are alike: of one kind, between the same kinds of vertices. */
typedef struct {
  const char *name;            /* "nvlink", "pcie", ..; "link" of an explicit list           */
  LsNodeKind a, b;             /* a: the one that is below, or within                        */
  const LsLinkSpec *link;      /* within the cluster; NULL: not known                        */
  double capacity_bytes_per_s; /* of one physical link; less than link says if it is
                                  degraded, 0 if it failed                               */
  LsTime latency;
  uint64_t n_pairs;    /* vertices joined                                            */
  uint64_t n_physical; /* links between them                                         */
} LsTopoLinks;

/* A part of the tree, standing for all alike below the same parent. */
typedef struct {
  uint32_t n;
  LsNodeKind kind;
  int links;           /* to the parent: index into LsTopology.links; -1: none       */
  uint32_t n_physical; /* of those, of one part; of NVSwitches, of each GPU           */
  uint32_t vertex;     /* of the cluster, where it stands for one of node 0           */
  bool is_peers;       /* n pairs of this kind, joined by so many links in all        */
  GPtrArray *children; /* LsTopoPart                                                 */
} LsTopoPart;

typedef struct {
  const char *name;       /* "node", "leaf", "spine": what joins the parts               */
  const char *part;       /* "gpu", "node", "leaf": one part                             */
  bool is_of_gpus;        /* the part is an accelerator                                  */
  uint32_t n_groups;      /* of such                                                     */
  uint32_t n_parts;       /* D, in the largest group                                     */
  LsBandwidth each;       /* W, of the part that has least                               */
  LsBandwidth together;   /* of all parts of all groups                                  */
  LsBandwidth all_gather; /* INFINITY with one part                                      */
} LsTopoLevel;

/* The first node of another kind than that of node 0. */
typedef struct {
  uint32_t host;
  GPtrArray *parts; /* LsTopoPart */
} LsTopoOther;

typedef struct {
  const LsCluster *cluster;            /* borrowed                                                   */
  uint64_t n_of_kind[LS_N_NODE_KINDS]; /* vertices of the cluster by LsNodeKind         */
  GArray *links;                       /* LsTopoLinks, those of a node first                          */
  GPtrArray *node;                     /* LsTopoPart: of one node, the first                          */
  GArray *others;                      /* LsTopoOther; NULL: all nodes are alike                      */
  GPtrArray *each;                     /* LsTopoPart: the same with all vertices of node 0 apart      */
  GPtrArray *fabric;                   /* LsTopoPart: from the top tier down; empty without NICs      */
  GArray *levels;                      /* LsTopoLevel, from the node up                               */
  LsBandwidth node_bisection;          /* NAN with one GPU in a node                            */
  LsBandwidth cluster_bisection;       /* NAN with one node                                     */
  GArray *assumptions;                 /* LsAssumption (job/assumptions.h), by who asks; NULL: none     */
} LsTopoMap;

/* Free with ls_topo_map_free(). Linear in the number of links, but for the bisections. */
/* "2 nodes of 8 x h100, 2 of 8 x a100-80g"; newly allocated. */
char *ls_topo_nodes_text (const LsCluster *c);

LsTopoMap *ls_topo_map_new (const LsCluster *cluster);
void ls_topo_map_free (LsTopoMap *map); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTopoMap, ls_topo_map_free)

/* "gpu", "pcie switch": for programs and in names of vertices; static. */
const char *ls_topo_kind_name (LsNodeKind kind);
/* The same for people: an accelerator by what those of the cluster are called, "chip"; static. */
const char *ls_topo_kind_word (const LsClusterSpec *spec, LsNodeKind kind);
/* Of one physical link, and of a trunk; nothing of what failed. */
LsBandwidth ls_topo_links_rate (const LsTopoLinks *links);
LsBandwidth ls_topo_trunk_rate (const LsTrunk *trunk);

/* The parts of it. */
GArray *ls_topo_levels_new (const LsCluster *cluster); /* LsTopoLevel */
LsBandwidth ls_topo_node_bisection (const LsCluster *cluster);
LsBandwidth ls_topo_cluster_bisection (const LsCluster *cluster);

/* --- flows ------------------------------------------------------------------------------------------- */

/* The most that can flow between two sets of vertices of a graph,
 * which is the least capacity whose removal parts them (Ford and Fulkerson, Canadian
 * Journal of Mathematics 8, 1956).
 *
 * Dinic's algorithm (Soviet Mathematics Doklady 11, 1970): while breadth-first search
 * finds a way, saturate all shortest ways at once. Capacities are whole numbers, so the
 * result is exact and does not depend on the order of edges. */

typedef struct {
  uint32_t from, to;
  int64_t capacity; /* >= 0, this direction only */
} LsFlowEdge;

/* side[v]: -1 a source, 1 a sink, 0 neither. The sum of all capacities must be below
 * 2^62. edges: of LsFlowEdge. */
int64_t ls_max_flow (uint32_t n_vertices, const GArray *edges, const int8_t *side);

/* --- a way between two GPUs --- */

typedef struct {
  const LsTrunk *trunk; /* within the cluster                                             */
  double share;         /* of the flow, 0..1                                              */
} LsTopoHop;

typedef struct {
  uint32_t from, to; /* GPUs of the cluster      */
  GArray *hops;      /* LsTopoHop, in order      */
  guint narrowest;   /* the hop that limits it   */
  double rate;       /* bytes/s of payload that one flow alone gets over links */
  LsTime latency;
} LsTopoPath;

/* from != to. Free with ls_topo_path_free(). */
LsTopoPath *ls_topo_path_new (const LsCluster *cluster, uint32_t from, uint32_t to);
void ls_topo_path_free (LsTopoPath *path); /* NULL allowed */

#endif
