/* cluster/cluster.h — a cluster: accelerators in nodes, of one kind or of a few,
 * joined by a fabric. Configured from an LsClusterSpec (one JSON file), built
 * once, then const and shareable.
 *
 * Three index spaces, never mixed: `gpu` counts accelerators of the whole
 * cluster, node after node (LsSeats), `node_id` counts vertices of the
 * graph, `trunk` counts what traffic shares. */
#ifndef LS_CLUSTER_CLUSTER_H
#define LS_CLUSTER_CLUSTER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include <lockstep/units.h>

#include "cluster/gpu.h"

/* --- slices of TPU pods --- */

/* A slice of a TPU pod: X x Y (x Z) chips, each joined to its
 * neighbours by ICI links. A slice is a node of the cluster.
 *
 * Numbering: x runs fastest, chip = x + X (y + Y z). Ranks are placed in chip order with
 * tp fastest, so a tp group lies on a line along x while tp divides X, and fills whole
 * lines, then planes, when it is a multiple of X; cp, dp and pp follow on what is left of
 * x, then y, then z.
 *
 * Wrap. On some axes the last chip is joined to the first:
 *
 *     none, all    as said
 *     full-axes    on an axis that has the length of the largest slice (v5e, v6e: 16;
 *                  v3: 32)
 *     cubes        on all axes if each is a multiple of 4, which is when the optical
 *                  switches join whole 4 x 4 x 4 cubes (v4, v5p, TPU7x)
 *
 * Never on an axis of fewer than 3 chips: both ways would be one link.
 *
 * Not modelled: twisted tori (v4 and v5p offer them for 4 x 4 x 8 and the like). */
#define LS_TORUS_AXES      3
#define LS_TORUS_MAX_AXIS  1024
#define LS_TORUS_MAX_CHIPS (1u << 16)

typedef enum { LS_WRAP_NONE, LS_WRAP_ALL, LS_WRAP_FULL_AXES, LS_WRAP_CUBES } LsTorusWrap;

typedef struct {
  uint32_t n_axes;                 /* 2 or 3; 0: no torus                              */
  uint32_t dims[LS_TORUS_AXES];    /* chips along x, y, z; 1 beyond n_axes             */
  uint32_t largest[LS_TORUS_AXES]; /* as dims, of the largest slice                  */
  bool is_given;                   /* dims were asked for; else they follow the job    */
  LsTorusWrap wrap;
  uint32_t host[LS_TORUS_AXES]; /* chips of one host along each axis, or all of a
                                    shorter axis                                     */
  uint32_t nics_per_host;
  LsTime start; /* of a collective, beside its hops                                    */
} LsTorusSpec;

typedef struct {
  uint32_t at[LS_TORUS_AXES];
} LsTorusCoord;

uint32_t ls_torus_n_chips (const LsTorusSpec *t);
uint32_t ls_torus_n_hosts (const LsTorusSpec *t);
bool ls_torus_wraps (const LsTorusSpec *t, uint32_t axis);
LsTorusCoord ls_torus_coord (const LsTorusSpec *t, uint32_t chip);
uint32_t ls_torus_chip (const LsTorusSpec *t, LsTorusCoord coord);
uint32_t ls_torus_host_of (const LsTorusSpec *t, uint32_t chip);

/* --- links, nodes and fabrics --- */

/* A kind of link inside a node or in the fabric. bandwidth is one direction of
 * one physical link as the data sheet says; efficiency the share of it that
 * payload reaches; capacity = bandwidth * efficiency. */
typedef struct {
  double bandwidth_bytes_per_s;
  double efficiency; /* (0, 1] */
  LsTime latency;
  char *source; /* of the efficiency and latency */
} LsLinkSpec;

/* Payload bytes/s of one physical link, one direction. */
static inline double
ls_link_capacity (const LsLinkSpec *link)
{
  return link->bandwidth_bytes_per_s * link->efficiency;
}

/* Kinds of node: ls_interior_server of interior_server.c, and so on. */
#define LS_INTERIORS(X)       X (SERVER, server) X (LIST, list) X (TORUS, torus)
#define LS_INTERIOR_ID(id, x) LS_INTERIOR_##id,
typedef enum { LS_INTERIORS (LS_INTERIOR_ID) LS_N_INTERIORS } LsInteriorId;

struct LsClusterSpec;

/* What is true of a kind of node wherever it is asked: rooms ask for one of these and not for the kind. All
 * static. */
typedef struct {
  const char *name;                                       /* as a key of "node": "server", "list", "torus" */
  const char *chip, *chips;                               /* its accelerators: "GPU", "GPUs"               */
  const char *(*word) (const struct LsClusterSpec *spec); /* what joins them: "nvlink", "ici"              */
  bool has_counts; /* LsServerSpec says all that is in it                                          */
  bool is_listed;  /* its parts are named and joined one by one                                    */
  bool is_slice;   /* chips have links to their neighbours, coordinates, and no NICs of their own  */
  bool runs_xla;   /* XLA compiles its programs; there are no CUDA and no allocator of PyTorch     */
  bool has_nccl;   /* messages are NCCL's; else of the algorithms that are told so                 */
} LsInteriorTraits;
typedef enum {
  LS_FABRIC_LEAF_SPINE,
  LS_FABRIC_FAT_TREE,
  LS_FABRIC_LIST,
  LS_FABRIC_DRAGONFLY,
  LS_FABRIC_DRAGONFLY_PLUS
} LsFabricId; /* fabric_kinds of build.c */

/* How a flow takes to links that serve it equally well.
 *
 *     ideal     spread over all of them as their capacity allows
 *     adaptive  the same: each packet takes the port that is least loaded, which in the mean over many
 *               packets is that; what reacting takes is not modelled
 *     spray     packets in turn over all of them, whatever their load: of links of which some are slower, all
 *               carry as much as the slowest
 *     ecmp      all of it on one, as switches do that hash packet headers (cluster/fabric.h)
 *
 * Where all links are whole the first three are the same. In a dragonfly ways are of unequal length
 * (fabric_tree.c), and ideal means adaptive:
 *
 *     adaptive  direct links as long as they are free, and over a third group or switch what is more
 *     minimal   direct links alone
 *     valiant   always over a third */
typedef enum {
  LS_ROUTING_IDEAL,
  LS_ROUTING_ECMP,
  LS_ROUTING_ADAPTIVE,
  LS_ROUTING_SPRAY,
  LS_ROUTING_MINIMAL,
  LS_ROUTING_VALIANT
} LsRouting;

typedef enum {
  LS_NODE_GPU,
  LS_NODE_NVSWITCH,
  LS_NODE_PCIE_SWITCH,
  LS_NODE_CPU,
  LS_NODE_CPU_MEMORY,
  LS_NODE_NVME,
  LS_NODE_BRIDGE, /* of a CPU, where what GPUs write through it has a rate of its own */
  LS_NODE_NIC,
  LS_NODE_LEAF,
  LS_NODE_SPINE,
  LS_NODE_CORE,
  LS_NODE_LOCALS,  /* no switch: all links between those of a group of a dragonfly, */
  LS_NODE_GLOBALS, /* and between its groups (fabric_tree.c)                            */
  LS_N_NODE_KINDS
} LsNodeKind;

/* Of a listed fabric: the NICs of this rail of nodes first .. last are at this switch. */
typedef struct {
  uint32_t rail;
  uint32_t first, last; /* nodes; beyond those of the cluster allowed */
  char *at;
} LsListNics;

/* Of a trunk by its name, and of its reverse unless one_way: the share of its capacity that
 * is left; 0: failed, and routed around. Of so many of its links failed, the share is 1. With n_links
 * that share is of so many of its links, and the others are whole: what is left of the trunk is a matter of
 * routing (LsRouting). */
typedef struct {
  char *link;
  double capacity; /* [0, 1] */
  uint32_t failed_links;
  bool one_way;
  uint32_t n_links; /* 0: all */
} LsFault;

/* A vertex and a link of an explicit list; names are unique. */
typedef struct {
  char *name;
  int kind; /* LsNodeKind, up to NIC */
} LsListVertex;
typedef struct {
  char *from, *to;
  uint32_t count; /* physical links side by side */
  LsLinkSpec link;
} LsListLink;

typedef enum { LS_MESH_NONE, LS_MESH_LIST, LS_MESH_HYBRID_CUBE, LS_MESH_FULL } LsMeshShape;

/* Whether GPUs of a node write into each other's memory over PCIe: all, those below one switch, or none. The
 * second is what NCCL does where no NVLink is: by default no path through a CPU's host bridge is one
 * (NVIDIA/nccl@04cdb808 src/graph/paths.cc, ncclTopoCheckP2p: p2pLevel = PATH_PXB), and data are staged in
 * host memory. Deviation: of two GPUs alone beside AMD's CPUs it is one. */
typedef enum { LS_COPIES_ANYWHERE, LS_COPIES_BELOW_SWITCH, LS_COPIES_NOWHERE } LsGpuCopies;

/* NICs by themselves, or the kernels of the hosts through sockets. */
typedef enum { LS_NIC_RDMA, LS_NIC_TCP } LsNicTransport;

/* GPUs a and b of a node joined by so many NVLinks. */
typedef struct {
  uint32_t a, b, count;
} LsMeshLink;

/* How far the runs of a fit were off, each predicted by a fit to the others; what the interval of a job on
 * the cluster is made of (analysis/interval.h). Of figures 0: not known, or not there. */
typedef struct {
  uint32_t n;         /* runs of different jobs; 0: nothing is said         */
  double low, high;   /* measured over predicted: from where to where is to hold one more; 0: too few runs */
  char *file;         /* of the runs */
  char *architecture; /* of their GPUs */
  GArray *traits;     /* char *: what they have, as "format bf16" (analysis/interval.h); NULL: not known */
  double lowest_mfu;  /* of what was predicted for them                     */
  double gpus, tp;    /* the most                                           */
  double params;      /* of the largest model                               */
  double fabric;      /* bytes/s of the NICs per GPU, the least             */
} LsFittedRuns;

/* What runs on the cluster itself say about it, as factors to what its files say
 * (job/fitted.h); 0: nothing. */
typedef struct {
  double compute, overlap, intra_node, inter_node;
  LsTime host_launch; /* of a kernel; no factor */
  LsFittedRuns runs;
} LsFitted;

/* Nodes first .. last. */
typedef struct {
  uint32_t first, last;
} LsNodeRange;

/* Nodes that are as those of another cluster, with its accelerators, inside and NICs; the fabric is that of
 * the cluster that they are in. */
typedef struct {
  char *nodes;                /* as it is written: "2-3,7"                            */
  char *like;                 /* name or path                                         */
  GArray *ranges;             /* LsNodeRange; those beyond the cluster count for none */
  struct LsClusterSpec *spec; /* owned; has no other nodes itself                     */
} LsOtherNodes;

/* A key that the file of a cluster leaves out, and what holds without it. */
typedef struct {
  char *path, *value; /* "node.pcie.p2p", "true"     */
  char *instead;      /* what to type for another one */
  bool is_in_node;    /* it matters within one node, too */
} LsUnsaid;

/* Kinds of nodes in a cluster, at most: 0 is that of the cluster itself, k that of others[k - 1]. */
#define LS_MAX_NODE_KINDS 4

/* What the accelerators of a node are joined by and attached to: of a server all by arithmetic
 * (interior_server.c); of a torus pcie and the CPU's memory, of each host. */
typedef struct {
  uint32_t nvswitch_planes; /* 0: no NVSwitch                                    */
  uint32_t nvlinks_per_gpu; /* spread over the planes, 18 on 4 as 5 5 4 4        */
  LsLinkSpec nvlink;        /* one link, one direction                           */
  LsMeshShape mesh;         /* NVLinks straight between GPUs                     */
  GArray *mesh_links;       /* LsMeshLink; of LS_MESH_LIST                       */

  uint32_t pcie_switches; /* per node; GPUs and NICs are dealt to them evenly;
                                     0: they are at the CPUs' own ports                */
  LsLinkSpec pcie;        /* x16, one direction                                */
  LsLinkSpec c2c;         /* with a rate: GPUs are at their CPU by NVLink-C2C
                                     instead of PCIe                                   */
  LsGpuCopies copies;     /* over PCIe, from GPU to GPU; else data pass the memory of the sender's CPU */

  uint32_t cpu_sockets;        /* PCIe switches are dealt to them evenly            */
  uint32_t cpu_boards;         /* sockets are dealt to them; 0 is 1                 */
  double cpu_call_time;        /* of a program's calls, times that on an x86 server; 0 is 1 */
  LsLinkSpec cpu_interconnect; /* between sockets of a board                        */
  /* What kernels of a GPU write into another through a CPU, if that is less than the links carry: of one PCIe
   * switch, or of one GPU where there is none, each way; from one socket to another. Rate 0: not given. */
  LsLinkSpec write_bridge, write_sockets;
  LsLinkSpec cpu_memory;     /* of one socket                                     */
  uint64_t cpu_memory_bytes; /* of the node; of a torus, of each host             */

  uint32_t nvme_drives; /* per node, dealt to the PCIe switches; 0: none     */
  LsLinkSpec nvme;      /* one drive, reads                                  */
  uint64_t nvme_bytes;  /* of one drive                                      */
} LsServerSpec;

/* What a core receives by TCP where segments are offloaded, frames are large and the flow is steered to it:
 * 42 Gbit/s, by which copies to the program are most of its time (Cai et al., Understanding Host Network
 * Stack Overheads, SIGCOMM 2021, section 3.1). By default NCCL has one thread for what a GPU sends and
 * receives by sockets (NCCL 2.30.7 src/transport/net_socket.cc), so that a NIC carries no more. All-reduces
 * over NICs of 100 and 200 Gbit/s reached 3 to 5.2 GB/s of each (NVIDIA/nccl issues 450, 465, 588, 595; AReaL
 * 639). */
#define LS_SOCKET_RATE 5.25e9

/* The NICs of a node, or of a host of a torus, for compute traffic. */
typedef struct {
  uint32_t n;                /* per node                                          */
  LsLinkSpec port;           /* NIC to leaf                                       */
  LsNicTransport transport;  /* who moves data between nodes                      */
  double socket_bytes_per_s; /* what sockets carry of a NIC, the efficiency of its port; 0: all of that */
  bool is_staged;            /* they wait in host memory on both sides, as without
                                     GPUDirect: GPU > memory > NIC; a server with CPUs */
} LsNicSpec;

/* A node vertex by vertex (interior_list.c). */
typedef struct {
  GArray *vertices; /* LsListVertex */
  GArray *links;    /* LsListLink   */
} LsNodeList;

/* What joins the nodes. With rails > 1, NIC i of every node goes to a leaf of rail i mod rails. */
typedef struct {
  uint32_t rails;
  LsRouting routing;
  uint32_t seed;           /* of the hash of ECMP                               */
  bool pxn;                /* with rails and NVLink: send through the GPU whose NIC
                                     is on the rail of the peer's                      */
  uint32_t nodes_per_leaf; /* trees: a leaf serves so many nodes of its rail    */
  double oversubscription; /* leaf: bandwidth down / bandwidth up, >= 1         */
  LsLinkSpec spine;        /* one leaf-spine link; of a list, what links without
                                     figures of their own are                          */
  /* A fat tree: leaves of one pod share its spines, and cores join the pods. */
  uint32_t nodes_per_pod;        /* a multiple of nodes_per_leaf                      */
  double spine_oversubscription; /* spine: bandwidth down / bandwidth up, >= 1        */
  LsLinkSpec core;               /* one spine-core link                               */
  /* A dragonfly (fabric.h): leaves as above, `spine` a link within a group and `core` one between two. */
  uint32_t nodes_per_group; /* a multiple of nodes_per_leaf                           */
  uint32_t groups;          /* of the machine; nodes of the cluster fill the first of them */
  uint32_t local_links;     /* between any two switches of a group; not of a dragonfly+ */
  uint32_t global_links;    /* between any two groups                                 */
  /* A listed fabric (fabric_list.c). */
  GArray *switches; /* char *, unique                                    */
  GArray *links;    /* LsListLink between them                           */
  GArray *nics;     /* LsListNics: each rail of each node once           */
  LsKnown known;    /* how what NCCL reaches across nodes is known       */
  GArray *faults;   /* LsFault; NULL: none                               */
} LsFabricSpec;

typedef struct LsClusterSpec {
  char *name;
  char *source;
  LsGpu gpu;
  uint32_t n_nodes;
  uint32_t gpus_per_node;
  uint32_t segment;        /* compute trays that jobs take together (below); 0: any */
  bool segment_is_asked;   /* by the job: what it does not fit is refused       */
  uint32_t taken_per_node; /* GPUs of a node that the job takes; 0: all         */
  LsInteriorId interior;   /* what a node looks like inside, of: */
  LsServerSpec server;
  LsNodeList list;
  LsTorusSpec torus; /* a slice of a TPU pod (interior_torus.c)            */
  LsLinkSpec ici;    /* of it, between two chips, one direction            */
  LsNicSpec nics;
  LsFabricId fabric; /* what joins the nodes, of: */
  LsFabricSpec network;
  GArray *also;       /* char *: what others call it; NULL: nothing else     */
  GArray *slices;     /* char *: "NAME XxYxZ" of slices that have names; NULL: none */
  GArray *successors; /* char *: clusters of later accelerators; NULL: none */
  GArray *others;     /* LsOtherNodes; NULL: all nodes are alike   */
  GArray *unsaid;     /* LsUnsaid, of a user's own file; NULL: nothing */
  LsFitted fitted;
  bool gpu_is_assumed;    /* by sm or gcn of a file of NCCL */
  GArray *guessed;        /* char *: what the files that it was made from do not say; NULL: nothing */
  const char *unread;     /* of such a file, interned: what has no effect; NULL: nothing */
  const char *links_like; /* likewise: the cluster as whose its NVLinks and NICs are, where it says none */
} LsClusterSpec;

/* Links between accelerators alone; of PCIe and what stands for it; of CPUs, their memory and drives. */
typedef enum { LS_LINKS_OF_GPUS, LS_LINKS_OF_PCIE, LS_LINKS_OF_HOSTS, LS_LINKS_OF_FABRIC } LsLinkPlace;

/* A link of a spec that has figures of its own. Those of lists have no rows. */
typedef struct {
  size_t at; /* an LsLinkSpec of LsClusterSpec */
  LsLinkPlace place;
  const char *name, *in_dragonfly; /* static; the other name of one in a dragonfly, or NULL */
} LsLinkRow;

extern const LsLinkRow ls_cluster_links[]; /* one row each; the end has no name */

static inline LsLinkSpec *
ls_cluster_link (const LsClusterSpec *spec, const LsLinkRow *row)
{
  return (LsLinkSpec *) (gpointer) ((char *) (gpointer) spec + row->at);
}

void ls_cluster_spec_clear (LsClusterSpec *spec); /* NULL allowed */

const LsInteriorTraits *ls_cluster_traits (const LsClusterSpec *spec);

/* Of a node of counts: whether its GPUs have NVLinks. */
static inline bool
ls_server_has_nvlink (const LsServerSpec *server)
{
  return server->nvswitch_planes > 0 || server->mesh != LS_MESH_NONE;
}

/* Of a node of counts: NVLinks of its first GPU, to switches and to other GPUs. */
uint32_t ls_cluster_nvlinks_per_gpu (const LsClusterSpec *spec);

/* Of a node of counts without NVLink: whether these of its GPUs copy to each other (LsGpuCopies). */
bool ls_gpus_copy (const LsClusterSpec *spec, uint32_t from, uint32_t to);

/* As if its file said nothing of faults. */
void ls_cluster_spec_forget_faults (LsClusterSpec *spec);

/* Of a listed node: whether a link joins GPUs and NVSwitches, and nothing else. */
bool ls_cluster_spec_is_nvlink (const LsClusterSpec *spec, const LsListLink *link);

/* Of a torus, counts that follow from others: once after its members
 * are filled in, then for a slice of these axes (1 beyond n_axes). */
void ls_cluster_spec_init_torus (LsClusterSpec *spec);
void ls_cluster_spec_set_slice (LsClusterSpec *spec, const uint32_t dims[LS_TORUS_AXES]);
/* As many nodes as hold n_gpus > 0, placed as below. A torus whose slice was not given gets that of
 * ls_torus_fit() first. */
void ls_cluster_spec_fit (LsClusterSpec *spec, uint32_t n_gpus);

/* Whether such nodes go with the others: LS_ERROR_CONFLICT, as of ls_cluster_spec_validate(), which holds
 * it. */
gboolean ls_cluster_spec_check_other (const LsClusterSpec *spec, const LsOtherNodes *other, GError **error);

/* Whether it can be built; takes no time, whatever its size. LS_ERROR_CONFLICT: counts
 * that do not deal out evenly, a link in use without a rate, or more of something than
 * cluster/index.h allows. */
gboolean ls_cluster_spec_validate (const LsClusterSpec *spec, GError **error);

/* Which rates of an accelerator or cluster look like mistaken units: peak FLOP/s for a byte of memory ten
 * times beyond all of topologies/gpu, NICs faster than the PCIe that leads to them. Sentences (char *, newly
 * allocated) are added to notes. */
void ls_gpu_doubts (const LsGpu *gpu, GPtrArray *notes);
void ls_cluster_doubts (const LsClusterSpec *spec, GPtrArray *notes);

/* Kinds of nodes that the spec names, 1 or more; the kind of a node, and its spec (of the first kind itself).
 * Linear in the number of ranges: of a cluster that was built ls_cluster_kind_of() is quick. */
uint32_t ls_cluster_spec_n_kinds (const LsClusterSpec *spec);
uint32_t ls_cluster_spec_kind_of (const LsClusterSpec *spec, uint32_t host);
const LsClusterSpec *ls_cluster_spec_of_kind (const LsClusterSpec *spec, uint32_t kind);
/* Accelerators of a node, and of all nodes; linear in the number of ranges. */
uint32_t ls_cluster_spec_gpus_of (const LsClusterSpec *spec, uint32_t host);
uint64_t ls_cluster_spec_n_gpus (const LsClusterSpec *spec);
/* Node k from now on is of the kind that nodes[k] was; nodes from n on are of the first kind. */
void ls_cluster_spec_take_nodes (LsClusterSpec *spec, const uint32_t *nodes, uint32_t n);

/* In which node each accelerator of a cluster is, and which of the node's it is: seats.
 *
 * Accelerators are numbered node after node. Where all nodes have as many, arithmetic tells; where kinds of
 * nodes differ in that, tables do:
 *
 *     nodes of 8, 4, 8     first     0 8 12 20
 *     accelerator 11       node 1, its number 3 */
typedef struct {
  uint32_t n_nodes, n_gpus;
  uint32_t per_node; /* of each node; where nodes differ in that, of the largest */
  uint32_t *first;   /* [n_nodes + 1] accelerators before a node; NULL: all have per_node */
  uint32_t *node_of; /* [n_gpus]; NULL with first */
} LsSeats;

/* Of the nodes of a spec, whole. Linear in the number of nodes, and of accelerators where nodes differ. */
void ls_seats_init (LsSeats *seats, const LsClusterSpec *spec);
void ls_seats_clear (LsSeats *seats);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsSeats, ls_seats_clear)

static inline uint32_t
ls_seats_node (const LsSeats *s, uint32_t gpu)
{
  return s->first ? s->node_of[gpu] : gpu / s->per_node;
}

/* Accelerators of the nodes before this one; of n_nodes, of all. */
static inline uint32_t
ls_seats_first (const LsSeats *s, uint32_t node)
{
  return s->first ? s->first[node] : node * s->per_node;
}

static inline uint32_t
ls_seats_local (const LsSeats *s, uint32_t gpu)
{
  return s->first ? gpu - s->first[s->node_of[gpu]] : gpu % s->per_node;
}

static inline uint32_t
ls_seats_in_node (const LsSeats *s, uint32_t node)
{
  return s->first ? s->first[node + 1] - s->first[node] : s->per_node;
}

/* The largest number that divides the accelerators of every node. */
uint32_t ls_seats_common (const LsSeats *seats);

typedef struct {
  LsNodeKind kind;
  uint32_t host;  /* node of the cluster; UINT32_MAX for switches of the fabric */
  uint32_t index; /* of its kind, within the host or the fabric            */
} LsTopoNode;

/* One direction of one or more physical links between two vertices. */
typedef struct {
  uint32_t from, to; /* node_id                                               */
  uint32_t trunk;    /* the resource that carries it                          */
  uint32_t n_physical;
  double capacity_bytes_per_s; /* payload, all physical links together        */
  LsTime latency;
} LsLink;

/* The links of one direction that ideal spreading loads evenly (a GPU's links
 * up to all NVSwitch planes, a leaf's uplinks to all spines): the unit of
 * sharing. Its capacity is the sum of theirs. Trunk t ^ 1 leads back. */
typedef struct {
  char *name; /* "node3/gpu5>nvswitch", "node3/nic2>leaf4", "leaf4>spines" */
  double capacity_bytes_per_s;
  LsTime latency;
  const LsLinkSpec *link; /* what each of its physical links is; within the cluster's spec */
  bool is_failed;         /* keeps its number and capacity, and no route takes it */
  uint8_t from, to;       /* LsNodeKind of its ends */
} LsTrunk;

/* The arrays of a brief one are private to cluster/, which keeps one node there for all. */
typedef struct {
  LsClusterSpec spec; /* owned copy */
  uint32_t n_gpus, n_trunks;
  GArray *nodes;         /* LsTopoNode */
  GArray *links;         /* LsLink     */
  GArray *trunks;        /* LsTrunk    */
  uint8_t *kind_of_host; /* [n_nodes]; NULL: all nodes are alike */
  LsSeats seats;
  /* private: interior, fabric and names (index.h) */
  struct LsTopoIndex *index;
} LsCluster;

static inline const LsTopoNode *
ls_cluster_vertex (const LsCluster *c, uint32_t v)
{
  return &g_array_index (c->nodes, LsTopoNode, v);
}

/* What its accelerators are called: "GPU" or, of TPUs, "chip"; with n other than 1 "GPUs" or "chips".
 * Static. */
const char *ls_cluster_chip_word (const LsClusterSpec *spec, uint64_t n);

/* Of either kind (cluster/fabric.h). */
static inline bool
ls_is_dragonfly (const LsClusterSpec *spec)
{
  return spec->fabric == LS_FABRIC_DRAGONFLY || spec->fabric == LS_FABRIC_DRAGONFLY_PLUS;
}

/* Whether something of it is broken or slow. */
static inline bool
ls_cluster_has_faults (const LsClusterSpec *spec)
{
  return spec->network.faults && spec->network.faults->len > 0;
}

/* What calls of a program take on its hosts, times what they take on an x86 server. */
static inline double
ls_cluster_call_time (const LsClusterSpec *spec)
{
  return spec->server.cpu_call_time > 0 ? spec->server.cpu_call_time : 1;
}

/* Of a trunk; in a brief cluster without its name. */
const LsTrunk *ls_cluster_trunk (const LsCluster *c, uint32_t trunk);
/* The switch, below n_edges of the fabric, that a trunk of a NIC's port is at. */
uint32_t ls_cluster_edge_of_trunk (const LsCluster *c, uint32_t trunk);
uint32_t ls_cluster_n_edges (const LsCluster *c);

/* Takes a copy of spec. Linear in the number of GPUs. Free with ls_cluster_free().
 * LS_ERROR_CONFLICT: as ls_cluster_spec_validate(), and faults that name no link of this
 * cluster or leave no way between two GPUs; switches of a list that are not joined. */
LsCluster *ls_cluster_build (const LsClusterSpec *spec, GError **error);
/* The same, and LS_ERROR_LIMIT, before anything large is there: it would take more than max_bytes. is_brief:
 * the same as far as functions tell, but brief where all nodes are alike and the fabric is a tree that
 * spreads ideally (cluster/places.h): linear in the number of its switches. */
LsCluster *ls_cluster_build_within (const LsClusterSpec *spec, bool is_brief, uint64_t max_bytes,
                                    GError **error);
/* A whole one of the same spec, newly built. */
LsCluster *ls_cluster_spell_out (const LsCluster *c);
void ls_cluster_free (LsCluster *cluster); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCluster, ls_cluster_free)

static inline uint32_t
ls_cluster_host_of (const LsCluster *c, uint32_t gpu)
{
  return ls_seats_node (&c->seats, gpu);
}
/* Which of its node's it is. */
static inline uint32_t
ls_cluster_local_of (const LsCluster *c, uint32_t gpu)
{
  return ls_seats_local (&c->seats, gpu);
}
/* Accelerators of a node; and the one with a number below that. */
static inline uint32_t
ls_cluster_gpus_of (const LsCluster *c, uint32_t host)
{
  return ls_seats_in_node (&c->seats, host);
}
static inline uint32_t
ls_cluster_gpu_at (const LsCluster *c, uint32_t host, uint32_t local)
{
  return ls_seats_first (&c->seats, host) + local;
}

/* Of a node: its kind, and the spec of that kind, of which only the node and its accelerator count. */
static inline uint32_t
ls_cluster_kind_of (const LsCluster *c, uint32_t host)
{
  return c->kind_of_host ? c->kind_of_host[host] : 0;
}
static inline const LsClusterSpec *
ls_cluster_node_spec (const LsCluster *c, uint32_t host)
{
  return c->kind_of_host ? ls_cluster_spec_of_kind (&c->spec, c->kind_of_host[host]) : &c->spec;
}
static inline const LsGpu *
ls_cluster_gpu_spec (const LsCluster *c, uint32_t gpu)
{
  return &ls_cluster_node_spec (c, ls_cluster_host_of (c, gpu))->gpu;
}

/* CPU hosts of a node, of which each has cpu_memory_bytes and the drives: a server or a rack is one, a slice
 * of a torus has one for each few chips. And that of an accelerator, among those of its node. */
uint32_t ls_cluster_n_cpu_hosts (const LsClusterSpec *spec);
uint32_t ls_cluster_cpu_host_of (const LsCluster *c, uint32_t gpu);

/* The resources that activities share: the trunks first, then each GPU's HBM. */
static inline uint32_t
ls_cluster_n_resources (const LsCluster *c)
{
  return c->n_trunks + c->n_gpus;
}
static inline uint32_t
ls_cluster_hbm_resource (const LsCluster *c, uint32_t gpu)
{
  return c->n_trunks + gpu;
}
double ls_cluster_resource_capacity (const LsCluster *c, uint32_t resource);
/* Newly allocated. */
char *ls_cluster_resource_name (const LsCluster *c, uint32_t resource);
/* The names of the host last asked for, for who asks for many of it: they are laid out together. Zeroed at
 * first. */
typedef struct {
  uint32_t host;
  GStrv trunks;
} LsHostNames;
void ls_host_names_clear (LsHostNames *names);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsHostNames, ls_host_names_clear)
char *ls_cluster_resource_name_with (const LsCluster *c, uint32_t resource, LsHostNames *names);
/* The names of a host's trunks, NIC ports included; newly allocated. */
GStrv ls_cluster_host_trunk_names (const LsCluster *c, uint32_t host);

/* --- segments: how the GPUs of a job lie in racks --- */

/* A rack of NVLink is a node here, and has more compute trays (boards) than jobs take: one of 18 trays gives
 * whole segments of 16, and leaves two spare. Slurm's option --segment says the same (topology/block): trays
 * of a segment lie in one rack, and segments must divide the trays of the job evenly. Racks are filled with
 * as many whole segments as they hold, rank by rank:
 *
 *     taken   = floor (trays / segment) * segment * GPUs of a tray
 *     GPU of rank r = floor (r / taken) * gpus_per_node + r mod taken
 *
 * Where nobody says it, the cluster's file may: then for jobs that need more than one node and consist of
 * whole segments; all others fill node after node. */

/* Compute trays of a node; 1: it is one. */
uint32_t ls_segment_trays (const LsClusterSpec *spec);

/* Sets taken_per_node for a job of n_gpus (0: of all there are) on n_nodes (0: as many as it needs).
 * LS_ERROR_CONFLICT, of a segment that the job asks for: a node has fewer trays, or the job is not whole
 * segments. */
gboolean ls_segment_place (LsClusterSpec *spec, uint32_t n_nodes, uint32_t n_gpus, GError **error);

/* "64 of the 72 GPUs of a node: segments of 16 of its 18 trays"; NULL: all are taken. Newly allocated. */
char *ls_segment_text (const LsClusterSpec *spec);
/* "2x4x4": the chips of a slice; NULL: it is none. Newly allocated. */
char *ls_slice_text (const LsClusterSpec *spec);

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
