/* Pins the shipped clusters as machines: at several sizes every invariant of the graph
 * holds and routes are those of a search; and the bandwidths that people quote come out. */
#include "cluster_check.h"
#include "route_bfs.h"
#include "ls_test.h"

#include <string.h>

#include "cluster/route.h"
#include "data/datadir.h"
#include "data/machines/machines.h"

static LsCluster *
build (const LsClusterSpec *spec, uint32_t n_nodes)
{
  g_autoptr (GError) error = NULL;
  LsClusterSpec s = *spec; /* borrows what it holds */
  s.n_nodes = n_nodes;
  LsCluster *c = ls_cluster_build (&s, &error);
  ls_check_impl (c != NULL, __FILE__, __LINE__, "%s of %u nodes: %s", spec->name, n_nodes,
                 error ? error->message : "");
  return c;
}

/* Load by load against the search; shares are rounded to 2^-20 at each split. */
static bool
route_is_searched (const LsCluster *c, uint32_t from, uint32_t to)
{
  g_autofree double *load = g_new (double, c->trunks->len);
  LsRoute r;
  ls_route (c, from, to, 0, &r);
  ls_route_bfs (c, from, to, load);
  for (uint32_t i = 0; i < r.n_hops; i++)
    load[r.hop[i].trunk] -= (double) r.hop[i].share / LS_HOP_WHOLE;
  for (guint t = 0; t < c->trunks->len; t++)
    if (load[t] < -1e-4 || load[t] > 1e-4)
      return ls_check_impl (false, __FILE__, __LINE__, "%s, gpu %u to %u: %s is off by %g", c->spec.name,
                            from, to, g_array_index (c->trunks, LsTrunk, t).name, load[t]);
  return true;
}

/* Tori are held against a search by tests/unit/cluster/test_torus.c. Ways through memory are no shortest ones, and
 * those over bridges are as short as over CPUs: tests/unit/cluster/test_interiors.c. */
static void
check_routes (const LsCluster *c, GRand *rand)
{
  for (int k = 0; k < 8 && c->links->len < 60000 && !ls_cluster_traits (&c->spec)->is_slice
       && c->spec.server.copies == LS_COPIES_ANYWHERE
       && c->spec.server.write_bridge.bandwidth_bytes_per_s == 0;
       k++) {
    uint32_t from = (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus);
    uint32_t to = (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus);
    if (!route_is_searched (c, from, to))
      return;
  }
}

/* Any two GPUs, the two farthest among them, are joined by something. */
static void
check_ends (const LsCluster *c)
{
  LsRoute r;
  ls_route (c, 0, c->n_gpus - 1, 0, &r);
  LS_CHECK (r.n_hops > 0 || c->n_gpus == 1);
  LS_CHECK (r.latency > 0 || c->n_gpus == 1);
  ls_route_host_memory (c, c->n_gpus - 1, true, &r);
  ls_check_impl (r.n_hops > 0, __FILE__, __LINE__, "%s: no way to the memory of the host", c->spec.name);
}

/* What the row of a kind of node owes wherever it is asked. */
static void
check_traits (const LsClusterSpec *spec)
{
  const LsInteriorTraits *traits = ls_cluster_traits (spec);
  const LsField *of_node = ls_field_find (ls_cluster_fields, "node")->fields;
  LS_CHECK (traits->has_counts || ls_field_find (of_node, traits->name));
  LS_CHECK_INT (traits->has_counts + traits->is_listed + traits->is_slice, <=, 1);
  LS_CHECK (traits->has_nccl || traits->runs_xla);
  const char *word = traits->word (spec);
  LS_CHECK (*word && *traits->chip && g_str_has_prefix (traits->chips, traits->chip));
}

/* Pins: a kind of node that no shipped cluster has is run by no test over all of them; lists are of users. */
static void
shipped_clusters_hold_at_several_sizes (void)
{
  static const uint32_t sizes[] = { 1, 2, 5, 33 };
  bool is_shipped[LS_N_INTERIORS] = { false };
  g_autoptr (GRand) rand = g_rand_new_with_seed (20240504);
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *e = entries->pdata[i];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec;
    if (!LS_CHECK (ls_cluster_load (e->path, &spec, diags)))
      continue;
    is_shipped[spec.interior] = true;
    check_traits (&spec);
    for (size_t k = 0; k < G_N_ELEMENTS (sizes); k++) {
      bool is_wanted = sizes[k] == 1 || (spec.nics.n > 0 && sizes[k] * spec.gpus_per_node <= 3000);
      g_autoptr (LsCluster) c = is_wanted ? build (&spec, sizes[k]) : NULL;
      if (!c)
        continue;
      ls_cluster_check (c);
      check_ends (c);
      check_routes (c, rand);
    }
    ls_cluster_spec_clear (&spec);
  }
  for (int kind = 0; kind < LS_N_INTERIORS; kind++) {
    const LsInteriorTraits *traits = ls_cluster_traits (&(LsClusterSpec) { .interior = (LsInteriorId) kind });
    ls_check_impl (is_shipped[kind] || traits->is_listed, __FILE__, __LINE__, "no shipped node is a %s",
                   traits->name);
  }
}

/* --- links --- */

/* Of this table and those below it, which are at that place of a spec. */
static void
check_rows_of_links (const LsField *fields, size_t at)
{
  for (const LsField *f = fields; f->key; f++) {
    if (f->kind != LS_FIELD_OBJECT)
      continue;
    const LsLinkRow *row = ls_cluster_links;
    while (row->name && row->at != at + f->offset)
      row++;
    if (f->fields == ls_link_fields)
      ls_check_impl (row->name != NULL, __FILE__, __LINE__, "%s: a link without a row", f->key);
    else
      check_rows_of_links (f->fields, at + f->offset);
  }
}

/* Pins: a link that a cluster's file may give has its row, by which it is copied, named and scaled. */
static void
each_link_of_a_file_has_its_row (void)
{
  check_rows_of_links (ls_cluster_fields, 0);
}

/* --- worked examples --- */

static gboolean
name_matches (const char *name, const char *from, const char *to)
{
  return g_str_has_prefix (name, from) && strstr (name, to) != NULL;
}

/* As the data sheet says: sum over the trunks of one kind, by the rate of their links. */
static double
raw_sum (const LsCluster *c, const char *from, const char *to, const LsLinkSpec *link)
{
  double sum = 0;
  for (guint i = 0; i < c->trunks->len; i++) {
    const LsTrunk *t = &g_array_index (c->trunks, LsTrunk, i);
    if (name_matches (t->name, from, to))
      sum += t->capacity_bytes_per_s / link->efficiency;
  }
  return sum;
}

static LsCluster *
load (const char *name, uint32_t n_nodes)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsClusterSpec spec;
  if (!LS_CHECK (ls_cluster_load (name, &spec, diags)))
    return NULL;
  LsCluster *c = build (&spec, n_nodes);
  ls_cluster_spec_clear (&spec);
  return c;
}

/* jax-ml/scaling-book gpus.md: 8 x H100, 8 * 450 GB/s (quiz 2, 1); an NVL72 rack sends
 * 4 * 18 * 400 / 8 = 3600 GB/s out; 1,024 H100 have 3.6 TB/s in a node, 12.8 TB/s above
 * the leaves of a scalable unit of 32 nodes, 51.2 TB/s above all leaves (quiz 3, 1). */
static void
bandwidths_are_those_of_the_book (void)
{
  g_autoptr (LsCluster) dgx = load ("dgx-h100", 128), rack = load ("gb200-nvl72", 2);
  if (!dgx || !rack)
    return;
  LS_CHECK_NEAR (raw_sum (dgx, "node0/gpu", ">nvswitch", &dgx->spec.server.nvlink), 3.6e12, 1e-12);
  LS_CHECK_NEAR (raw_sum (rack, "node0/nic", ">leaf", &rack->spec.nics.port), 3600e9, 1e-12);
  LS_CHECK_NEAR (raw_sum (dgx, "leaf", ">spines", &dgx->spec.network.spine), 51.2e12, 1e-12);
  double unit = 0;
  for (int leaf = 0; leaf < 8; leaf++) {
    g_autofree char *name = g_strdup_printf ("leaf%d>", leaf);
    unit += raw_sum (dgx, name, "spines", &dgx->spec.network.spine);
  }
  LS_CHECK_NEAR (unit, 12.8e12, 1e-12);
  LS_CHECK_NEAR (raw_sum (rack, "node0/gpu", ">nvswitch", &rack->spec.server.nvlink), 72 * 900e9, 1e-12);
}

/* Network per node, in Gbit/s, as the table of the measurements names it. */
static void
networks_are_as_wide_as_named (void)
{
  static const struct {
    const char *name;
    double gbit_per_s;
    const char *gpu;
  } known[] = {
    { "dgx-a100-80g", 1600, "a100-80g" },
    { "a100-80g-ib800", 800, "a100-80g" },
    { "a100-80g-ib400", 400, "a100-80g" },
    { "h100-80g-ib800", 800, "h100" },
    { "a100-40g-roce1600", 1600, "a100-40g" },
    { "a100-80g-roce1600", 1600, "a100-80g" },
    { "a100-80g-roce400", 400, "a100-80g" },
    { "azure-ndv4-a100-40g", 1600, "a100-40g" },
    { "dgx-a100-40g", 1600, "a100-40g" },
    { "jean-zay-a100", 400, "a100-80g" },
    { "dgx-h100", 3200, "h100" },
    { "dgx-h200", 3200, "h200" },
    { "grand-teton-h100-96g", 3200, "h100-96g" },
    { "dgx-b200", 3200, "b200" },
    { "gb200-nvl72", 72 * 400, "gb200" },
    { "v100-nvswitch", 0, "v100" },
    { "megascale-a100", 1600, "a100-80g" },
    { "dgx-1-v100", 400, "v100" },
    { "dgx-2-v100", 800, "v100" },
    { "a100-80g-node", 0, "a100-80g" },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (known); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec;
    if (!LS_CHECK (ls_cluster_load (known[i].name, &spec, diags)))
      continue;
    LS_CHECK_NEAR (spec.nics.n * spec.nics.port.bandwidth_bytes_per_s * 8 + 1, known[i].gbit_per_s * 1e9 + 1,
                   1e-12);
    LS_CHECK_STR (spec.gpu.name, known[i].gpu);
    ls_cluster_spec_clear (&spec);
  }
}

#define LIST                                                                                                                        \
  "dgx-h100:fabric={\"kind\":\"list\",\"rails\":2,\"pxn\":false,\"routing\":\"ecmp\",\"seed\":7,\"switches\":[\"a\",\"b\",\"up\"]," \
  "\"link\":{\"bandwidth\":\"50GB/s\",\"efficiency\":1,\"latency\":\"1us\",\"source\":\"test\"},"                                   \
  "\"links\":[{\"from\":\"a\",\"to\":\"up\",\"count\":3},{\"from\":\"b\",\"to\":\"up\"}],"                                          \
  "\"nics\":[{\"switch\":\"a\"},{\"rail\":1,\"nodes\":\"0-2\",\"switch\":\"a\"},{\"rail\":1,\"nodes\":\"3\",\"switch\":\"b\"}]},"   \
  "faults={\"a>up/1\":0,\"node0/gpu0>nvswitch\":{\"failed_links\":9,\"one_way\":true}}"

/* What a file says of a fabric and of faults comes out of the build. */
static void
fabrics_and_faults_are_read (void)
{
  g_autoptr (LsCluster) list = load (LIST, 4), tree = load ("dgx-h100", 2);
  if (!LS_CHECK (list && tree))
    return;
  LS_CHECK (list->spec.fabric == LS_FABRIC_LIST && list->spec.network.routing == LS_ROUTING_ECMP
            && list->spec.network.seed == 7);
  LS_CHECK (!list->spec.network.pxn && tree->spec.network.pxn
            && tree->spec.network.routing == LS_ROUTING_IDEAL);
  guint n_failed = 0;
  for (guint t = 0; t < list->trunks->len; t++)
    n_failed += g_array_index (list->trunks, LsTrunk, t).is_failed;
  LS_CHECK_INT (n_failed, ==, 2);
  double up = g_array_index (list->trunks, LsTrunk, 0).capacity_bytes_per_s,
         down = g_array_index (list->trunks, LsTrunk, 1).capacity_bytes_per_s;
  LS_CHECK_STR (g_array_index (list->trunks, LsTrunk, 0).name, "node0/gpu0>nvswitch");
  LS_CHECK_NEAR (down, 18 * 25e9 * 0.836, 1e-12);
  LS_CHECK_NEAR (up, down / 2, 1e-12);
}

/* Without GPUDirect: those of a search by way of the memory of both CPUs, longer by that, and not through
 * proxies. */
static void
ways_through_host_memory_are_searched (void)
{
  static const char *const names[] = { "dgx-a100-80g",  "dgx-h100",   "pcie-a100:node.pcie.p2p=true",
                                       "jean-zay-a100", "dgx-1-v100", "a100-80g-ib400" };
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *staged
        = g_strconcat (names[i], strchr (names[i], ':') ? "," : ":", "node.nics.gpudirect=false", NULL);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec, direct;
    if (!LS_CHECK (ls_cluster_load (staged, &spec, diags) && ls_cluster_load (names[i], &direct, diags)))
      continue;
    g_autoptr (LsCluster) c = build (&spec, 2), d = build (&direct, 2);
    LsRoute through, past;
    for (uint32_t to = 0; c && to < c->n_gpus; to++)
      route_is_searched (c, 1, to);
    ls_route (c, 1, c->spec.gpus_per_node + 1, 0, &through);
    ls_route (d, 1, c->spec.gpus_per_node + 1, 0, &past);
    LS_CHECK (through.latency >= past.latency + 4 * spec.server.cpu_memory.latency);
    LS_CHECK_INT (ls_route_proxy (c, 1, c->spec.gpus_per_node), ==, 1);
    ls_cluster_spec_clear (&spec);
    ls_cluster_spec_clear (&direct);
  }
}

/* Sockets do without GPUDirect, unless it is said; where nothing says what the way is, it is refused. */
static void
transports_are_read (void)
{
  static const struct {
    const char *cluster, *wrong;
    bool is_staged;
    LsNicTransport transport;
  } cases[] = {
    { "dgx-h100", NULL, false, LS_NIC_RDMA },
    { "dgx-h100:node.nics.transport=tcp", NULL, true, LS_NIC_TCP },
    { "dgx-h100:node.nics.transport=tcp,node.nics.gpudirect=true", NULL, false, LS_NIC_TCP },
    { "dgx-h100:node.nics.gpudirect=false", NULL, true, LS_NIC_RDMA },
    { "dgx-h100:node.nics.gpudirect=no", "expected true or false; got \"no\"", false, LS_NIC_RDMA },
    { "dgx-h100:node.nics.transport=ib", "expected one of", false, LS_NIC_RDMA },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec;
    if (ls_cluster_load (cases[i].cluster, &spec, diags)) {
      LS_CHECK (!cases[i].wrong && spec.nics.is_staged == cases[i].is_staged
                && spec.nics.transport == cases[i].transport);
      ls_cluster_spec_clear (&spec);
    }
    g_autofree char *text = ls_diag_list_format (diags);
    ls_check_impl (cases[i].wrong ? strstr (text, cases[i].wrong) != NULL : *text == '\0', __FILE__, __LINE__,
                   "%s: %s", cases[i].cluster, text);
  }
}

LS_TEST_SUITE (LS_TEST (shipped_clusters_hold_at_several_sizes), LS_TEST (each_link_of_a_file_has_its_row),
               LS_TEST (bandwidths_are_those_of_the_book), LS_TEST (networks_are_as_wide_as_named),
               LS_TEST (fabrics_and_faults_are_read), LS_TEST (ways_through_host_memory_are_searched),
               LS_TEST (transports_are_read))
