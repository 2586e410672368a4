/* cluster/build.c — lays out a cluster host by host, then its fabric. Linear in
 * the number of GPUs; see index.h for the order that route.c relies on. */
#include "cluster/index.h"
#include "cluster/spec.h"

#include <string.h>

static uint32_t
socket_pairs (const LsClusterSpec *s)
{
  return s->cpu_sockets > 1 ? s->cpu_sockets * (s->cpu_sockets - 1) / 2 : 0;
}

static uint32_t
take (uint32_t *at, uint32_t n)
{
  uint32_t first = *at;
  *at += n;
  return first;
}

static void
lay_out (const LsClusterSpec *s, LsTopoIndex *x)
{
  uint32_t v = 0, t = 0;
  x->v_gpu = take (&v, s->gpus_per_node);
  x->v_nvswitch = take (&v, s->nvswitch_planes);
  x->v_switch = take (&v, s->pcie_switches);
  x->v_cpu = take (&v, s->cpu_sockets);
  x->v_memory = take (&v, s->cpu_sockets);
  x->v_nvme = take (&v, s->nvme_drives);
  x->v_nic = take (&v, s->nics);
  x->vertices_per_host = v;

  x->t_nvlink = take (&t, s->nvswitch_planes > 0 ? 2 * s->gpus_per_node : 0);
  x->t_gpu_pcie = take (&t, s->pcie_switches > 0 ? 2 * s->gpus_per_node : 0);
  x->t_uplink = take (&t, s->cpu_sockets > 0 ? 2 * s->pcie_switches : 0);
  x->t_socket = take (&t, 2 * socket_pairs (s));
  x->t_memory = take (&t, 2 * s->cpu_sockets);
  x->t_nvme = take (&t, 2 * s->nvme_drives);
  x->t_nic_pcie = take (&t, 2 * s->nics);
  x->t_port = take (&t, 2 * s->nics);
  x->trunks_per_host = t;

  x->n_leaves = ls_cluster_n_leaves (s);
  x->n_spines = ls_cluster_n_spines (s);
  x->first_leaf = s->n_nodes * v;
  x->first_spine = x->first_leaf + x->n_leaves;
  x->t_fabric = s->n_nodes * t;
}

/* --- names: "node3/gpu5>nvswitch". printf would dominate the build. --- */

typedef struct {
  char text[64];
  size_t n;
} Name;

static void
put (Name *name, const char *text)
{
  size_t n = strlen (text);
  g_assert (name->n + n < sizeof name->text);
  memcpy (name->text + name->n, text, n + 1);
  name->n += n;
}

static void
put_number (Name *name, uint32_t value)
{
  char digits[12];
  size_t i = sizeof digits;
  digits[--i] = '\0';
  do
    digits[--i] = (char) ('0' + value % 10);
  while (value /= 10);
  put (name, digits + i);
}

/* One end of a link by its name; number G_MAXUINT32 where it stands for all of
 * its kind. */
typedef struct {
  uint32_t vertex;
  const char *kind;
  uint32_t number;
} End;

static void
put_end (const LsCluster *c, Name *name, const End *end, uint32_t named_host)
{
  uint32_t host = g_array_index (c->nodes, LsTopoNode, end->vertex).host;
  if (host != UINT32_MAX && host != named_host) {
    put (name, "node");
    put_number (name, host);
    put (name, "/");
  }
  put (name, end->kind);
  if (end->number != UINT32_MAX)
    put_number (name, end->number);
}

static char *
trunk_name (const LsCluster *c, const End *from, const End *to)
{
  Name name = { .n = 0 };
  put_end (c, &name, from, UINT32_MAX);
  put (&name, ">");
  put_end (c, &name, to, g_array_index (c->nodes, LsTopoNode, from->vertex).host);
  return g_string_chunk_insert_len (c->index->names, name.text, (gssize) name.n);
}

/* --- vertices, links, trunks --- */

static void
add_vertices (LsCluster *c, LsNodeKind kind, uint32_t host, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    LsTopoNode node = { .kind = kind, .host = host, .index = i };
    g_array_append_val (c->nodes, node);
  }
}

static void
add_link (LsCluster *c, uint32_t from, uint32_t to, uint32_t trunk, uint32_t n_physical,
          const LsLinkSpec *spec)
{
  LsLink link = { .from = from,
                  .to = to,
                  .trunk = trunk,
                  .n_physical = n_physical,
                  .capacity_bytes_per_s = n_physical * ls_link_capacity (spec),
                  .latency = spec->latency };
  g_array_append_val (c->links, link);
}

/* Both directions between a and `n` vertices from b on, which share
 * `n_physical` links; the first ones get one more where it does not divide
 * (18 NVLinks on 4 planes: 5 5 4 4). */
static void
add_pair (LsCluster *c, End a, End b, uint32_t n, uint32_t n_physical, const LsLinkSpec *spec)
{
  uint32_t outward = c->trunks->len;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t n_here = n_physical / n + (i < n_physical % n);
    add_link (c, a.vertex, b.vertex + i, outward, n_here, spec);
    add_link (c, b.vertex + i, a.vertex, outward + 1, n_here, spec);
  }
  LsTrunk trunk = { .capacity_bytes_per_s = n_physical * ls_link_capacity (spec), .latency = spec->latency };
  trunk.name = trunk_name (c, &a, &b);
  g_array_append_val (c->trunks, trunk);
  trunk.name = trunk_name (c, &b, &a);
  g_array_append_val (c->trunks, trunk);
}

#define END(vertex_, kind_, number_) ((End) { .vertex = (vertex_), .kind = (kind_), .number = (number_) })

static void
add_host_vertices (LsCluster *c, uint32_t host)
{
  const LsClusterSpec *s = &c->spec;
  add_vertices (c, LS_NODE_GPU, host, s->gpus_per_node);
  add_vertices (c, LS_NODE_NVSWITCH, host, s->nvswitch_planes);
  add_vertices (c, LS_NODE_PCIE_SWITCH, host, s->pcie_switches);
  add_vertices (c, LS_NODE_CPU, host, s->cpu_sockets);
  add_vertices (c, LS_NODE_CPU_MEMORY, host, s->cpu_sockets);
  add_vertices (c, LS_NODE_NVME, host, s->nvme_drives);
  add_vertices (c, LS_NODE_NIC, host, s->nics);
}

static void
add_gpus (LsCluster *c, uint32_t v)
{
  const LsClusterSpec *s = &c->spec;
  const LsTopoIndex *x = c->index;
  for (uint32_t g = 0; g < s->gpus_per_node && s->nvswitch_planes > 0; g++)
    add_pair (c, END (v + x->v_gpu + g, "gpu", g), END (v + x->v_nvswitch, "nvswitch", UINT32_MAX),
              s->nvswitch_planes, s->nvlinks_per_gpu, &s->nvlink);
  for (uint32_t g = 0; g < s->gpus_per_node && s->pcie_switches > 0; g++) {
    uint32_t sw = ls_switch_of_gpu (s, g);
    add_pair (c, END (v + x->v_gpu + g, "gpu", g), END (v + x->v_switch + sw, "pcie", sw), 1, 1, &s->pcie);
  }
}

static void
add_cpus (LsCluster *c, uint32_t v)
{
  const LsClusterSpec *s = &c->spec;
  const LsTopoIndex *x = c->index;
  for (uint32_t i = 0; i < s->pcie_switches && s->cpu_sockets > 0; i++) {
    uint32_t cpu = ls_socket_of_switch (s, i);
    add_pair (c, END (v + x->v_switch + i, "pcie", i), END (v + x->v_cpu + cpu, "cpu", cpu), 1, 1, &s->pcie);
  }
  for (uint32_t a = 0; a < s->cpu_sockets; a++)
    for (uint32_t b = a + 1; b < s->cpu_sockets; b++)
      add_pair (c, END (v + x->v_cpu + a, "cpu", a), END (v + x->v_cpu + b, "cpu", b), 1, 1,
                &s->cpu_interconnect);
  for (uint32_t i = 0; i < s->cpu_sockets; i++)
    add_pair (c, END (v + x->v_cpu + i, "cpu", i), END (v + x->v_memory + i, "memory", i), 1, 1,
              &s->cpu_memory);
}

static void
add_devices (LsCluster *c, uint32_t host, uint32_t v)
{
  const LsClusterSpec *s = &c->spec;
  const LsTopoIndex *x = c->index;
  for (uint32_t i = 0; i < s->nvme_drives; i++) {
    uint32_t sw = ls_deal (i, s->nvme_drives, s->pcie_switches);
    add_pair (c, END (v + x->v_switch + sw, "pcie", sw), END (v + x->v_nvme + i, "nvme", i), 1, 1, &s->nvme);
  }
  for (uint32_t i = 0; i < s->nics; i++) {
    uint32_t sw = ls_switch_of_nic (s, i);
    add_pair (c, END (v + x->v_switch + sw, "pcie", sw), END (v + x->v_nic + i, "nic", i), 1, 1, &s->pcie);
  }
  for (uint32_t i = 0; i < s->nics; i++) {
    uint32_t leaf = ls_leaf_of_nic (s, host, i);
    add_pair (c, END (v + x->v_nic + i, "nic", i), END (x->first_leaf + leaf, "leaf", leaf), 1, 1, &s->nic);
  }
}

static void
add_fabric (LsCluster *c)
{
  const LsTopoIndex *x = c->index;
  for (uint32_t i = 0; i < x->n_leaves && x->n_spines > 0; i++)
    add_pair (c, END (x->first_leaf + i, "leaf", i), END (x->first_spine, "spines", UINT32_MAX), x->n_spines,
              x->n_spines, &c->spec.spine);
}

LsCluster *
ls_cluster_build (const LsClusterSpec *spec, GError **error)
{
  if (!ls_cluster_spec_validate (spec, error))
    return NULL;

  LsCluster *c = g_new0 (LsCluster, 1);
  ls_cluster_spec_copy (spec, &c->spec);
  c->n_gpus = spec->n_nodes * spec->gpus_per_node;
  c->index = g_new0 (LsTopoIndex, 1);
  lay_out (&c->spec, c->index);

  const LsTopoIndex *x = c->index;
  uint32_t n_trunks = x->t_fabric + 2 * x->n_leaves;
  c->index->names = g_string_chunk_new (16 * 1024);
  c->nodes = g_array_sized_new (FALSE, FALSE, sizeof (LsTopoNode), x->first_spine + x->n_spines);
  c->links = g_array_sized_new (FALSE, FALSE, sizeof (LsLink), n_trunks);
  c->trunks = g_array_sized_new (FALSE, FALSE, sizeof (LsTrunk), n_trunks);

  for (uint32_t host = 0; host < spec->n_nodes; host++)
    add_host_vertices (c, host);
  add_vertices (c, LS_NODE_LEAF, UINT32_MAX, x->n_leaves);
  add_vertices (c, LS_NODE_SPINE, UINT32_MAX, x->n_spines);

  for (uint32_t host = 0; host < spec->n_nodes; host++) {
    uint32_t v = host * x->vertices_per_host;
    add_gpus (c, v);
    add_cpus (c, v);
    add_devices (c, host, v);
    g_assert (c->trunks->len == (host + 1) * x->trunks_per_host);
  }
  add_fabric (c);
  return c;
}

void
ls_cluster_free (LsCluster *c)
{
  if (!c)
    return;
  ls_cluster_spec_clear (&c->spec);
  g_array_unref (c->nodes);
  g_array_unref (c->links);
  g_array_unref (c->trunks);
  g_string_chunk_free (c->index->names);
  g_free (c->index);
  g_free (c);
}
