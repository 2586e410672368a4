/* cluster/interior_server.c — a node whose inside follows from counts: GPUs on NVSwitch
 * planes or in an NVLink mesh; GPUs, NICs and drives dealt evenly to PCIe switches (or
 * straight to the CPUs), switches to CPU sockets, sockets to boards.
 *
 *     GPU > NVSwitch planes      one trunk up, one down: ideal spreading loads them evenly
 *     GPU > GPU                  mesh
 *     GPU > PCIe switch > CPU    or GPU > CPU, over PCIe or NVLink-C2C
 *     CPU > CPU                  any two of a board
 *     CPU > memory; switch or CPU > drive; switch or CPU > NIC
 *     switch or GPU > bridge > bridge   what GPUs write into each other through CPUs, if its rate is said
 *
 * Ways between GPUs: NVSwitch; else NVLink (straight, or over a common neighbour: route.h);
 * else PCIe. To a NIC: PCIe; where no CPU link leads to the NIC's board, first over
 * NVSwitch to the first GPU at the NIC's socket, as NCCL does with PXN.
 *
 * Trunks come in pairs, outward (away from the GPU, towards the network or memory) then
 * inward, in sections: nvlink or mesh, gpu_pcie, uplink, socket, memory, nvme, nic_pcie, write, write_socket.
 *
 * Not modelled: the PCIe switch's own limits, that writes through a bridge share the uplink with copies to
 * memory, which have several times their rate, and that the GPU in the middle of an NVB
 * way spends memory bandwidth on it. */

#include "base/order.h"
#include "cluster/index.h"

/* ---- where its parts are ---- */

/* GPUs, NICs and drives are dealt evenly to plugs, plugs to CPU sockets, sockets to boards. */

/* The i-th of n things dealt to `to` places in runs: 8 NICs on 4 switches give
 * 0 0 1 1 2 2 3 3; 2 NICs give 0 2. */
static uint32_t
deal (uint32_t i, uint32_t n, uint32_t to)
{
  return (uint32_t) ((uint64_t) i * to / n);
}

static bool
has_c2c (const LsClusterSpec *s)
{
  return s->server.c2c.bandwidth_bytes_per_s > 0;
}

/* Where GPUs, NICs and drives are plugged in: PCIe switches, or CPUs; 0: nowhere. */
static uint32_t
n_plugs (const LsClusterSpec *s)
{
  return s->server.pcie_switches > 0 ? s->server.pcie_switches : s->server.cpu_sockets;
}

static uint32_t
plug_of_gpu (const LsClusterSpec *s, uint32_t gpu)
{
  return deal (gpu, s->gpus_per_node, n_plugs (s));
}

static uint32_t
plug_of_nic (const LsClusterSpec *s, uint32_t nic)
{
  return deal (nic, s->nics.n, n_plugs (s));
}

static uint32_t
socket_of_plug (const LsClusterSpec *s, uint32_t plug)
{
  return s->server.cpu_sockets > 0 ? deal (plug, n_plugs (s), s->server.cpu_sockets) : 0;
}

static uint32_t
n_boards (const LsClusterSpec *s)
{
  return MAX (s->server.cpu_boards, 1);
}

static uint32_t
board_of_socket (const LsClusterSpec *s, uint32_t socket)
{
  return s->server.cpu_sockets > 0 ? deal (socket, s->server.cpu_sockets, n_boards (s)) : 0;
}

static uint32_t
sockets_per_board (const LsClusterSpec *s)
{
  return s->server.cpu_sockets / n_boards (s);
}

static uint32_t
pairs_among (uint32_t n)
{
  return n > 1 ? n * (n - 1) / 2 : 0;
}

static uint32_t
n_socket_pairs (const LsClusterSpec *s)
{
  return n_boards (s) * pairs_among (sockets_per_board (s));
}

/* Of sockets a < b of a board, in the order 01 02 .. 12 13 .. */
static uint32_t
socket_pair (const LsClusterSpec *s, uint32_t a, uint32_t b)
{
  uint32_t k = sockets_per_board (s), board = board_of_socket (s, a);
  a -= board * k;
  b -= board * k;
  return board * pairs_among (k) + a * (2 * k - a - 1) / 2 + (b - a - 1);
}

/* Whether what GPUs write into each other through a CPU has a rate of its own; ways to a bridge. */
static bool
has_writes (const LsClusterSpec *s)
{
  return s->server.write_bridge.bandwidth_bytes_per_s > 0;
}

static uint32_t
n_writers (const LsClusterSpec *s)
{
  return !has_writes (s) ? 0 : s->server.pcie_switches > 0 ? s->server.pcie_switches : s->gpus_per_node;
}

bool
ls_gpus_copy (const LsClusterSpec *spec, uint32_t from, uint32_t to)
{
  if (spec->server.copies != LS_COPIES_BELOW_SWITCH)
    return spec->server.copies == LS_COPIES_ANYWHERE;
  return spec->server.pcie_switches > 0 && plug_of_gpu (spec, from) == plug_of_gpu (spec, to);
}

/* ---- GPUs of a node joined straight by NVLinks  ---- */

/* Which pairs, and the ways over them. */

/* A table of pairs is kept; more ports than any GPU has. */
#define LS_MESH_MAX_GPUS 64

/* DGX-1 with V100, the hybrid cube mesh: two fully joined quads 0-3 and 4-7, and i joined
 * to i + 4, 6 NVLinks per GPU. Those of GPUs 0 and 1 are in the NCCL topology dump of a
 * DGX-1V of NVIDIA/nccl issue #671, the rest follows from the symmetry and the 6 links. */
static const LsMeshLink hybrid_cube[] = {
  { 0, 1, 1 }, { 0, 2, 1 }, { 0, 3, 2 }, { 0, 4, 2 }, { 1, 2, 2 }, { 1, 3, 1 }, { 1, 5, 2 }, { 2, 3, 2 },
  { 2, 6, 1 }, { 3, 7, 1 }, { 4, 5, 1 }, { 4, 6, 1 }, { 4, 7, 2 }, { 5, 6, 2 }, { 5, 7, 1 }, { 6, 7, 2 },
};
#define HYBRID_CUBE_GPUS 8

/* MI300X and its successors: a link from each GPU to each other. */
static void
append_full (GArray *links, uint32_t n_gpus)
{
  for (uint32_t a = 0; a < n_gpus; a++)
    for (uint32_t b = a + 1; b < n_gpus; b++) {
      const LsMeshLink link = { a, b, 1 };
      g_array_append_val (links, link);
    }
}

static const LsSortKey by_ends[] = { { LS_RISING (LsMeshLink, a) }, { LS_RISING (LsMeshLink, b) }, { 0 } };

/* LsMeshLink, a < b, by a then b. Free with g_array_unref(). */
static GArray *
ls_mesh_links (const LsClusterSpec *s)
{
  GArray *links = g_array_new (FALSE, FALSE, sizeof (LsMeshLink));
  if (s->server.mesh == LS_MESH_HYBRID_CUBE)
    g_array_append_vals (links, hybrid_cube, G_N_ELEMENTS (hybrid_cube));
  if (s->server.mesh == LS_MESH_FULL)
    append_full (links, s->gpus_per_node);
  for (guint i = 0; s->server.mesh == LS_MESH_LIST && s->server.mesh_links && i < s->server.mesh_links->len;
       i++) {
    LsMeshLink link = g_array_index (s->server.mesh_links, LsMeshLink, i);
    LsMeshLink sorted = { MIN (link.a, link.b), MAX (link.a, link.b), link.count };
    g_array_append_val (links, sorted);
  }
  ls_sort_by (links, by_ends);
  return links;
}

uint32_t
ls_cluster_nvlinks_per_gpu (const LsClusterSpec *s)
{
  g_autoptr (GArray) links = ls_mesh_links (s);
  uint32_t n = s->server.nvlinks_per_gpu;
  for (guint i = 0; i < links->len; i++)
    n += g_array_index (links, LsMeshLink, i).a == 0 ? g_array_index (links, LsMeshLink, i).count : 0;
  return n;
}

/* Pairs of GPUs that are joined. */
static double
ls_mesh_n_links (const LsClusterSpec *s)
{
  if (s->server.mesh == LS_MESH_HYBRID_CUBE)
    return G_N_ELEMENTS (hybrid_cube);
  if (s->server.mesh == LS_MESH_FULL)
    return 0.5 * s->gpus_per_node * (s->gpus_per_node - 1.0);
  return s->server.mesh == LS_MESH_LIST && s->server.mesh_links ? s->server.mesh_links->len : 0;
}

/* From any GPU to any; trunk 2 i is link i from a to b, 2 i + 1 back. */
static LsWays *
ls_mesh_ways (const LsClusterSpec *s, const GArray *mesh_links, LsArena *arena)
{
  uint32_t n = s->gpus_per_node;
  g_autofree LsNodeKind *kinds = g_new0 (LsNodeKind, n); /* LS_NODE_GPU */
  g_autofree LsLink *links = g_new (LsLink, 2 * mesh_links->len);
  for (guint i = 0; i < mesh_links->len; i++) {
    const LsMeshLink *m = &g_array_index (mesh_links, LsMeshLink, i);
    ls_ways_links (&s->server.nvlink, m->count, 2 * i, m->a, m->b, &links[2 * i]);
  }
  return ls_ways_new (kinds, n, links, 2 * mesh_links->len, (LsVertices) { 0, n }, (LsVertices) { 0, n },
                      arena);
}

static gboolean
check_pairs (const LsClusterSpec *s, const GArray *links, GError **error)
{
  for (guint i = 0; i < links->len; i++) {
    const LsMeshLink *link = &g_array_index (links, LsMeshLink, i);
    if (link->b >= s->gpus_per_node)
      return ls_spec_conflict (error, "nvlink_mesh: GPU %u of a node of %u GPUs (the first is 0)", link->b,
                               s->gpus_per_node);
    if (link->a == link->b)
      return ls_spec_conflict (error, "nvlink_mesh: GPU %u is joined to itself", link->a);
    if (link->count == 0)
      return ls_spec_conflict (error, "nvlink_mesh: GPUs %u and %u are joined by 0 links", link->a, link->b);
    if (i > 0 && ls_compare_by (link - 1, link, (gpointer) by_ends) == 0)
      return ls_spec_conflict (error,
                               "nvlink_mesh: GPUs %u and %u are joined twice; give the sum of their links",
                               link->a, link->b);
  }
  return TRUE;
}

static gboolean
check_ways (const LsClusterSpec *s, const GArray *links, GError **error)
{
  uint32_t n = s->gpus_per_node, far = 0;
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsWays *ways = ls_mesh_ways (s, links, arena);
  while (far < n * n && ls_ways_length (ways, far / n, far % n) != LS_WAYS_NONE)
    far++;
  return far == n * n
      || ls_spec_conflict (
             error,
             "nvlink_mesh: GPUs %u and %u have no NVLink and no common neighbour, and there is no PCIe",
             far / n, far % n);
}

/* Whether the mesh can be built: its shape fits the number of GPUs, no pair twice; and,
 * without PCIe, whether any two GPUs are joined or have a common neighbour. */
static gboolean
ls_mesh_check (const LsClusterSpec *s, bool has_pcie, GError **error)
{
  if (s->server.mesh == LS_MESH_HYBRID_CUBE && s->gpus_per_node != HYBRID_CUBE_GPUS)
    return ls_spec_conflict (error, "nvlink_mesh: a hybrid cube mesh has %u GPUs; got %u", HYBRID_CUBE_GPUS,
                             s->gpus_per_node);
  if (s->gpus_per_node > LS_MESH_MAX_GPUS)
    return ls_spec_conflict (error, "nvlink_mesh: %u GPUs; expected at most %u", s->gpus_per_node,
                             LS_MESH_MAX_GPUS);
  g_autoptr (GArray) links = ls_mesh_links (s);
  return check_pairs (s, links, error) && (has_pcie || check_ways (s, links, error));
}

/* ---- which nodes of NVSwitch, NVLink mesh, PCIe and CPUs there can be ---- */

static gboolean
check_links (const LsClusterSpec *s, GError **error)
{
  bool has_pcie
      = s->server.pcie_switches > 0 || (s->server.cpu_sockets > 0 && (!has_c2c (s) || s->nics.n > 0));
  return ls_spec_check_link ("nvswitch link", s->server.nvswitch_planes > 0, &s->server.nvlink, error)
      && ls_spec_check_link ("nvlink_mesh link", s->server.mesh != LS_MESH_NONE, &s->server.nvlink, error)
      && ls_spec_check_link ("pcie link", has_pcie, &s->server.pcie, error)
      && ls_spec_check_link ("c2c link", has_c2c (s), &s->server.c2c, error)
      && ls_spec_check_link ("cpu interconnect", n_socket_pairs (s) > 0, &s->server.cpu_interconnect, error)
      && ls_spec_check_link ("cpu memory", s->server.cpu_sockets > 0, &s->server.cpu_memory, error)
      && ls_spec_check_link ("nvme link", s->server.nvme_drives > 0, &s->server.nvme, error)
      && ls_spec_check_link ("p2p_writes bridge", has_writes (s), &s->server.write_bridge, error)
      && ls_spec_check_link ("p2p_writes sockets", has_writes (s) && n_socket_pairs (s) > 0,
                             &s->server.write_sockets, error);
}

static gboolean
check_writes (const LsClusterSpec *s, GError **error)
{
  if (!has_writes (s))
    return TRUE;
  if (s->server.copies != LS_COPIES_ANYWHERE || s->server.cpu_sockets == 0)
    return ls_spec_conflict (error, "\"p2p_writes\" goes with \"p2p\": true and with \"cpu\" in the node");
  if (s->network.faults)
    return ls_spec_conflict (error, "ways around faults are not known with \"p2p_writes\"");
  return TRUE;
}

static gboolean
check_nvlink (const LsClusterSpec *s, GError **error)
{
  if (s->server.nvswitch_planes > s->server.nvlinks_per_gpu)
    return ls_spec_conflict (error, "%u NVLinks per GPU cannot reach %u NVSwitch planes",
                             s->server.nvlinks_per_gpu, s->server.nvswitch_planes);
  if (s->server.mesh == LS_MESH_NONE)
    return TRUE;
  if (s->server.nvswitch_planes > 0)
    return ls_spec_conflict (error, "GPUs are joined by NVSwitch or in a mesh, not both");
  return ls_mesh_check (s, n_plugs (s) > 0, error);
}

/* Devices at their PCIe switches or CPUs. */
static gboolean
check_plugs (const LsClusterSpec *s, GError **error)
{
  uint32_t n = n_plugs (s);
  const char *what = s->server.pcie_switches > 0 ? "PCIe switches" : "CPU sockets";
  if (n == 0) {
    if (s->nics.n > 0 || s->server.nvme_drives > 0 || has_c2c (s))
      return ls_spec_conflict (error, "NICs, NVMe drives and NVLink-C2C need a PCIe switch or a CPU");
    return TRUE;
  }
  if (has_c2c (s) && s->server.pcie_switches > 0)
    return ls_spec_conflict (error, "NVLink-C2C joins a GPU to its CPU: expected 0 PCIe switches; got %u",
                             s->server.pcie_switches);
  if (s->gpus_per_node % n != 0)
    return ls_spec_conflict (error, "%u GPUs per node do not deal out to %u %s", s->gpus_per_node, n, what);
  if (s->server.pcie_switches > 0
      && (s->server.cpu_sockets == 0 ? s->server.pcie_switches > 1
                                     : s->server.pcie_switches % s->server.cpu_sockets != 0))
    return ls_spec_conflict (error, "%u PCIe switches do not deal out to %u CPU sockets",
                             s->server.pcie_switches, s->server.cpu_sockets);
  if (s->server.nvme_drives > 0 && !ls_deals_out (s->server.nvme_drives, n))
    return ls_spec_conflict (error, "%u NVMe drives do not deal out to %u %s", s->server.nvme_drives, n,
                             what);
  if (s->nics.n > 0 && !ls_deals_out (s->nics.n, n))
    return ls_spec_conflict (error, "%u NICs do not deal out to %u %s", s->nics.n, n, what);
  if (s->nics.n > 0 && !ls_deals_out (s->nics.n, s->gpus_per_node))
    return ls_spec_conflict (error, "%u NICs do not deal out to %u GPUs per node", s->nics.n,
                             s->gpus_per_node);
  return TRUE;
}

/* check of ls_interior_server. */
static gboolean
ls_server_check (const LsClusterSpec *s, GError **error)
{
  if (!check_nvlink (s, error))
    return FALSE;
  if (s->server.nvswitch_planes == 0 && s->server.mesh == LS_MESH_NONE && n_plugs (s) == 0
      && s->gpus_per_node > 1)
    return ls_spec_conflict (error, "%u GPUs of a node need NVSwitch, an NVLink mesh or PCIe between them",
                             s->gpus_per_node);
  if (!check_plugs (s, error) || !check_writes (s, error))
    return FALSE;
  if (s->nics.is_staged && s->server.cpu_sockets == 0)
    return ls_spec_conflict (
        error, "without GPUDirect data wait in the memory of a CPU: expected \"cpu\" in the node");
  if (s->server.copies != LS_COPIES_ANYWHERE && s->server.cpu_sockets == 0)
    return ls_spec_conflict (error,
                             "without P2P data pass the memory of a CPU: expected \"cpu\" in the node");
  if ((s->nics.is_staged || s->server.copies != LS_COPIES_ANYWHERE) && s->network.faults)
    return ls_spec_conflict (error, "ways around faults are not known without %s",
                             s->nics.is_staged ? "GPUDirect" : "P2P");
  if (s->server.cpu_sockets % n_boards (s) != 0)
    return ls_spec_conflict (error, "%u CPU sockets do not deal out to %u boards", s->server.cpu_sockets,
                             n_boards (s));
  if (n_boards (s) > 1 && s->server.nvswitch_planes == 0)
    return ls_spec_conflict (error, "nothing joins the %u boards of a node: expected NVSwitch", n_boards (s));
  return check_links (s, error);
}

typedef struct {
  LsInterior base;
  uint32_t v_nvswitch, v_switch, v_cpu, v_memory, v_nvme, v_bridge;
  uint32_t t_nvlink, t_gpu_pcie, t_uplink, t_socket, t_memory, t_nvme, t_nic_pcie, t_write, t_write_socket;
  GArray *mesh; /* LsMeshLink; NULL: none */
  LsWays *ways; /* over the mesh, from any GPU to any; NULL: none */
} Server;

typedef enum { OUTWARD = 0, INWARD = 1 } Direction;

/* --- layout --- */

static double
n_links (const LsClusterSpec *s)
{
  double k = sockets_per_board (s), pairs = n_boards (s) * k * (k - 1) / 2;
  return 2
      * (n_writers (s) + (has_writes (s) ? pairs : 0) + (double) s->gpus_per_node * s->server.nvswitch_planes
         + ls_mesh_n_links (s) + (n_plugs (s) > 0 ? s->gpus_per_node : 0)
         + (s->server.cpu_sockets > 0 ? s->server.pcie_switches : 0) + pairs + s->server.cpu_sockets
         + s->server.nvme_drives + s->nics.n);
}

static uint32_t
take (uint32_t *at, uint32_t n)
{
  uint32_t first = *at;
  *at += n;
  return first;
}

static void
number (Server *in, const LsClusterSpec *s)
{
  uint32_t v = 0, t = 0;
  in->base.v_gpu = take (&v, s->gpus_per_node);
  in->v_nvswitch = take (&v, s->server.nvswitch_planes);
  in->v_switch = take (&v, s->server.pcie_switches);
  in->v_cpu = take (&v, s->server.cpu_sockets);
  in->v_memory = take (&v, s->server.cpu_sockets);
  in->v_nvme = take (&v, s->server.nvme_drives);
  in->base.v_nic = take (&v, s->nics.n);
  in->v_bridge = take (&v, has_writes (s) ? s->server.cpu_sockets : 0);
  in->base.n_vertices = v;

  uint32_t n_mesh = in->mesh ? in->mesh->len : 0;
  in->t_nvlink = take (&t, s->server.nvswitch_planes > 0 ? 2 * s->gpus_per_node : 2 * n_mesh);
  in->t_gpu_pcie = take (&t, n_plugs (s) > 0 ? 2 * s->gpus_per_node : 0);
  in->t_uplink = take (&t, s->server.cpu_sockets > 0 ? 2 * s->server.pcie_switches : 0);
  in->t_socket = take (&t, 2 * n_socket_pairs (s));
  in->t_memory = take (&t, 2 * s->server.cpu_sockets);
  in->t_nvme = take (&t, 2 * s->server.nvme_drives);
  in->t_nic_pcie = take (&t, 2 * s->nics.n);
  in->t_write = take (&t, 2 * n_writers (s));
  in->t_write_socket = take (&t, has_writes (s) ? 2 * n_socket_pairs (s) : 0);
  in->base.n_trunks = t;
}

static LsInterior *
server_new (const LsClusterSpec *s, LsArena *arena)
{
  Server *in = ls_arena_new_array (arena, Server, 1);
  in->base.has_nvswitch = s->server.nvswitch_planes > 0;
  in->base.has_gpu_links = s->server.mesh != LS_MESH_NONE;
  if (s->server.mesh != LS_MESH_NONE) {
    in->mesh = ls_arena_own (arena, ls_mesh_links (s), (GDestroyNotify) g_array_unref);
    in->ways = ls_mesh_ways (s, in->mesh, arena);
  }
  number (in, s);
  return &in->base;
}

static LsEnd
gpu_end (uint32_t v, uint32_t host, uint32_t gpu)
{
  return LS_END (v + gpu, host, "gpu", gpu);
}

static LsEnd
plug_end (const Server *in, uint32_t v, uint32_t host, uint32_t plug)
{
  return in->base.spec->server.pcie_switches > 0 ? LS_END (v + in->v_switch + plug, host, "pcie", plug)
                                                 : LS_END (v + in->v_cpu + plug, host, "cpu", plug);
}

static void
add_gpus (const Server *in, LsCluster *c, uint32_t host, uint32_t v)
{
  const LsClusterSpec *s = in->base.spec;
  for (uint32_t g = 0; g < s->gpus_per_node && s->server.nvswitch_planes > 0; g++)
    ls_layout_pair (c, gpu_end (v, host, g), LS_END (v + in->v_nvswitch, host, "nvswitch", LS_NO_NUMBER),
                    s->server.nvswitch_planes, s->server.nvlinks_per_gpu, &s->server.nvlink);
  for (guint i = 0; in->mesh && i < in->mesh->len; i++) {
    const LsMeshLink *link = &g_array_index (in->mesh, LsMeshLink, i);
    ls_layout_pair (c, gpu_end (v, host, link->a), gpu_end (v, host, link->b), 1, link->count,
                    &s->server.nvlink);
  }
  for (uint32_t g = 0; g < s->gpus_per_node && n_plugs (s) > 0; g++)
    ls_layout_pair (c, gpu_end (v, host, g), plug_end (in, v, host, plug_of_gpu (s, g)), 1, 1,
                    has_c2c (s) ? &s->server.c2c : &s->server.pcie);
}

/* Vertices of that kind, one for each socket from `first` on: any two of a board are joined. */
static void
join_sockets (const LsClusterSpec *s, LsCluster *c, uint32_t host, uint32_t first, const char *kind,
              const LsLinkSpec *link)
{
  for (uint32_t a = 0; a < s->server.cpu_sockets; a++)
    for (uint32_t b = a + 1; b < s->server.cpu_sockets && board_of_socket (s, b) == board_of_socket (s, a);
         b++)
      ls_layout_pair (c, LS_END (first + a, host, kind, a), LS_END (first + b, host, kind, b), 1, 1, link);
}

static void
add_cpus (const Server *in, LsCluster *c, uint32_t host, uint32_t v)
{
  const LsClusterSpec *s = in->base.spec;
  uint32_t cpu = v + in->v_cpu;
  for (uint32_t i = 0; i < s->server.pcie_switches && s->server.cpu_sockets > 0; i++) {
    uint32_t socket = socket_of_plug (s, i);
    ls_layout_pair (c, plug_end (in, v, host, i), LS_END (cpu + socket, host, "cpu", socket), 1, 1,
                    &s->server.pcie);
  }
  join_sockets (s, c, host, cpu, "cpu", &s->server.cpu_interconnect);
  for (uint32_t i = 0; i < s->server.cpu_sockets; i++)
    ls_layout_pair (c, LS_END (cpu + i, host, "cpu", i), LS_END (v + in->v_memory + i, host, "memory", i), 1,
                    1, &s->server.cpu_memory);
}

static void
add_writes (const Server *in, LsCluster *c, uint32_t host, uint32_t v)
{
  const LsClusterSpec *s = in->base.spec;
  uint32_t bridge = v + in->v_bridge;
  for (uint32_t i = 0; i < n_writers (s); i++) {
    uint32_t socket = socket_of_plug (s, s->server.pcie_switches > 0 ? i : plug_of_gpu (s, i));
    LsEnd writer = s->server.pcie_switches > 0 ? plug_end (in, v, host, i) : gpu_end (v, host, i);
    ls_layout_pair (c, writer, LS_END (bridge + socket, host, "bridge", socket), 1, 1,
                    &s->server.write_bridge);
  }
  if (has_writes (s))
    join_sockets (s, c, host, bridge, "bridge", &s->server.write_sockets);
}

static void
lay_out (const LsInterior *interior, LsCluster *c, uint32_t host)
{
  const Server *in = (const Server *) interior;
  const LsClusterSpec *s = in->base.spec;
  uint32_t v = c->nodes->len;
  ls_layout_vertices (c, LS_NODE_GPU, host, s->gpus_per_node);
  ls_layout_vertices (c, LS_NODE_NVSWITCH, host, s->server.nvswitch_planes);
  ls_layout_vertices (c, LS_NODE_PCIE_SWITCH, host, s->server.pcie_switches);
  ls_layout_vertices (c, LS_NODE_CPU, host, s->server.cpu_sockets);
  ls_layout_vertices (c, LS_NODE_CPU_MEMORY, host, s->server.cpu_sockets);
  ls_layout_vertices (c, LS_NODE_NVME, host, s->server.nvme_drives);
  ls_layout_vertices (c, LS_NODE_NIC, host, s->nics.n);
  ls_layout_vertices (c, LS_NODE_BRIDGE, host, has_writes (s) ? s->server.cpu_sockets : 0);

  add_gpus (in, c, host, v);
  add_cpus (in, c, host, v);
  for (uint32_t i = 0; i < s->server.nvme_drives; i++)
    ls_layout_pair (c, plug_end (in, v, host, deal (i, s->server.nvme_drives, n_plugs (s))),
                    LS_END (v + in->v_nvme + i, host, "nvme", i), 1, 1, &s->server.nvme);
  for (uint32_t i = 0; i < s->nics.n; i++)
    ls_layout_pair (c, plug_end (in, v, host, plug_of_nic (s, i)),
                    LS_END (v + in->base.v_nic + i, host, "nic", i), 1, 1, &s->server.pcie);
  add_writes (in, c, host, v);
}

/* --- ways --- */

static void
hop (LsRoute *r, uint32_t section, uint32_t i, Direction dir, const LsLinkSpec *link)
{
  ls_route_hop (r, section + 2 * i + dir, link->latency);
}

static void
gpu_hop (const Server *in, LsRoute *r, uint32_t gpu, Direction dir)
{
  hop (r, in->t_gpu_pcie, gpu, dir,
       has_c2c (in->base.spec) ? &in->base.spec->server.c2c : &in->base.spec->server.pcie);
}

/* From a socket to another one of its board, by that section of links. */
static void
between_sockets (const Server *in, uint32_t section, const LsLinkSpec *link, uint32_t from, uint32_t to,
                 LsRoute *r)
{
  if (from < to)
    hop (r, section, socket_pair (in->base.spec, from, to), OUTWARD, link);
  if (from > to)
    hop (r, section, socket_pair (in->base.spec, to, from), INWARD, link);
}

/* From one PCIe switch (or CPU) to another of its board, through the CPUs. */
static void
cross (const Server *in, LsRoute *r, uint32_t from, uint32_t to)
{
  if (from == to)
    return;
  const LsClusterSpec *s = in->base.spec;
  uint32_t cpu_from = socket_of_plug (s, from), cpu_to = socket_of_plug (s, to);
  bool has_switches = s->server.pcie_switches > 0;
  if (has_switches)
    hop (r, in->t_uplink, from, OUTWARD, &s->server.pcie);
  between_sockets (in, in->t_socket, &s->server.cpu_interconnect, cpu_from, cpu_to, r);
  if (has_switches)
    hop (r, in->t_uplink, to, INWARD, &s->server.pcie);
}

static void
over_nvswitch (const Server *in, uint32_t from, uint32_t to, LsRoute *r)
{
  hop (r, in->t_nvlink, from, OUTWARD, &in->base.spec->server.nvlink);
  hop (r, in->t_nvlink, to, INWARD, &in->base.spec->server.nvlink);
}

/* The GPU that reaches the NIC over PCIe alone: the flow's own, or where the NIC is on
 * another board, the first at the NIC's socket. */
static uint32_t
gpu_near_nic (const LsClusterSpec *s, uint32_t gpu, uint32_t nic)
{
  if (n_boards (s) == 1) /* there is no other: said first, as plans of all pairs ask a million times */
    return gpu;
  uint32_t own = socket_of_plug (s, plug_of_gpu (s, gpu)), there = socket_of_plug (s, plug_of_nic (s, nic));
  if (board_of_socket (s, own) == board_of_socket (s, there))
    return gpu;
  return there * (s->gpus_per_node / s->server.cpu_sockets);
}

static void
to_memory (const Server *in, uint32_t gpu, LsRoute *r)
{
  const LsClusterSpec *s = in->base.spec;
  if (n_plugs (s) == 0)
    return;
  uint32_t plug = plug_of_gpu (s, gpu);
  gpu_hop (in, r, gpu, OUTWARD);
  if (s->server.cpu_sockets == 0)
    return;
  if (s->server.pcie_switches > 0)
    hop (r, in->t_uplink, plug, OUTWARD, &s->server.pcie);
  hop (r, in->t_memory, socket_of_plug (s, plug), OUTWARD, &s->server.cpu_memory);
}

static void
memory_to_plug (const Server *in, uint32_t socket, uint32_t plug, LsRoute *r)
{
  hop (r, in->t_memory, socket, INWARD, &in->base.spec->server.cpu_memory);
  between_sockets (in, in->t_socket, &in->base.spec->server.cpu_interconnect, socket,
                   socket_of_plug (in->base.spec, plug), r);
  if (in->base.spec->server.pcie_switches > 0)
    hop (r, in->t_uplink, plug, INWARD, &in->base.spec->server.pcie);
}

/* Without P2P the sender writes into memory of its own CPU, from which the receiver reads. */
static void
through_memory (const Server *in, uint32_t from, uint32_t to, LsRoute *r)
{
  to_memory (in, from, r);
  memory_to_plug (in, socket_of_plug (in->base.spec, plug_of_gpu (in->base.spec, from)),
                  plug_of_gpu (in->base.spec, to), r);
  gpu_hop (in, r, to, INWARD);
}

/* Between a GPU and the bridge of its CPU. */
static void
to_bridge (const Server *in, uint32_t gpu, Direction dir, LsRoute *r)
{
  const LsClusterSpec *s = in->base.spec;
  bool has_switches = s->server.pcie_switches > 0;
  if (has_switches && dir == OUTWARD)
    gpu_hop (in, r, gpu, dir);
  hop (r, in->t_write, has_switches ? plug_of_gpu (s, gpu) : gpu, dir, &s->server.write_bridge);
  if (has_switches && dir == INWARD)
    gpu_hop (in, r, gpu, dir);
}

static void
over_bridges (const Server *in, uint32_t from, uint32_t to, LsRoute *r)
{
  const LsClusterSpec *s = in->base.spec;
  to_bridge (in, from, OUTWARD, r);
  between_sockets (in, in->t_write_socket, &s->server.write_sockets,
                   socket_of_plug (s, plug_of_gpu (s, from)), socket_of_plug (s, plug_of_gpu (s, to)), r);
  to_bridge (in, to, INWARD, r);
}

static void
within (const Server *in, uint32_t from, uint32_t to, LsRoute *r)
{
  const LsClusterSpec *s = in->base.spec;
  if (s->server.nvswitch_planes > 0) {
    over_nvswitch (in, from, to, r);
    return;
  }
  if (in->ways && ls_ways_length (in->ways, from, to) != LS_WAYS_NONE) {
    ls_ways_append (in->ways, from, to, r);
    return;
  }
  if (!ls_gpus_copy (s, from, to))
    return through_memory (in, from, to, r);
  bool is_below_switch = s->server.pcie_switches > 0 && plug_of_gpu (s, from) == plug_of_gpu (s, to);
  if (has_writes (s) && !is_below_switch) /* without switches no CPU's port is shared */
    return over_bridges (in, from, to, r);
  gpu_hop (in, r, from, OUTWARD);
  cross (in, r, plug_of_gpu (s, from), plug_of_gpu (s, to));
  gpu_hop (in, r, to, INWARD);
}

static void
to_nic (const Server *in, uint32_t gpu, uint32_t nic, LsRoute *r)
{
  const LsClusterSpec *s = in->base.spec;
  uint32_t near = gpu_near_nic (s, gpu, nic);
  if (near != gpu)
    over_nvswitch (in, gpu, near, r);
  if (s->nics.is_staged) {
    to_memory (in, near, r);
    memory_to_plug (in, socket_of_plug (s, plug_of_gpu (s, near)), plug_of_nic (s, nic), r);
  } else {
    gpu_hop (in, r, near, OUTWARD);
    cross (in, r, plug_of_gpu (s, near), plug_of_nic (s, nic));
  }
  hop (r, in->t_nic_pcie, nic, OUTWARD, &s->server.pcie);
}

static void
to_nvme (const Server *in, uint32_t gpu, LsRoute *r)
{
  const LsClusterSpec *s = in->base.spec;
  uint32_t drive = deal (gpu, s->gpus_per_node, s->server.nvme_drives);
  gpu_hop (in, r, gpu, OUTWARD);
  cross (in, r, plug_of_gpu (s, gpu), deal (drive, s->server.nvme_drives, n_plugs (s)));
  hop (r, in->t_nvme, drive, OUTWARD, &s->server.nvme);
}

static void
way (const LsInterior *interior, LsLeg leg, uint32_t from, uint32_t to, LsRoute *r)
{
  const Server *in = (const Server *) interior;
  bool is_back = leg == LS_LEG_FROM_NIC || leg == LS_LEG_FROM_MEMORY || leg == LS_LEG_FROM_NVME;
  uint32_t first = r->n_hops;
  if (leg == LS_LEG_WITHIN)
    within (in, from, to, r);
  else if (leg <= LS_LEG_FROM_NIC)
    to_nic (in, is_back ? to : from, is_back ? from : to, r);
  else if (leg <= LS_LEG_FROM_MEMORY)
    to_memory (in, from, r);
  else
    to_nvme (in, from, r);
  if (is_back)
    ls_route_turn_back (r, first);
}

static uint32_t
nic_of_gpu (const LsInterior *interior, uint32_t gpu)
{
  const LsClusterSpec *s = interior->spec;
  return deal (gpu, s->gpus_per_node, s->nics.n);
}

static const char *
word (const LsClusterSpec *spec)
{
  return ls_server_has_nvlink (&spec->server) ? "nvlink" : "pcie";
}

const LsInteriorKind ls_interior_server = {
  .traits = { "server", "GPU", "GPUs", word, .has_counts = true, .has_nccl = true },
  .check = ls_server_check,
  .n_links = n_links,
  .new = server_new,
  .lay_out = lay_out,
  .way = way,
  .reaches_nvme = true,
  .nic_of_gpu = nic_of_gpu,
};
