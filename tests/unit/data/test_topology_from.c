/* Pins: what `nvidia-smi topo -m` and others show is the tree that they mean, and numbers come out as they
 * are there. */
#include "ls_test.h"

#include "cluster/cluster.h"
#include "data/machines/machines.h"
#include "data/machines/node_tree.h"

typedef struct {
  const char *name, *gpu, *text; /* gpu NULL: the file says it */
  uint32_t gpus, nics, cpus, switches, nvswitches;
  const char *guess;   /* that is among the guesses; NULL: any */
  uint32_t joined;     /* pairs of GPUs */
  LsTreeReader reader; /* NULL: of nvidia-smi topo -m */
} Case;

#define TYPES "=== Link Type between two GPUs ===\nGPU0 GPU1 GPU2\n"

static const Case matrices[] = {
  { "of old: SOC, ports by their names, no NUMA column", "v100-16g",
    "GPU0 GPU1 GPU2 GPU3 mlx5_0 CPU Affinity\n"
    "GPU0 X NV1 SOC SOC PIX 0-9\nGPU1 NV1 X SOC SOC PIX 0-9\n"
    "GPU2 SOC SOC X NV1 SOC 10-19\nGPU3 SOC SOC NV1 X SOC 10-19\nmlx5_0 PIX PIX SOC SOC X\n",
    4, 1, 2, 1, 0, NULL },
  { "PXB above PIX: two levels of switches", "l40s",
    "GPU0 GPU1 GPU2 CPU Affinity NUMA Affinity\n"
    "GPU0 X PIX PXB 0-9 0\nGPU1 PIX X PXB 0-9 0\nGPU2 PXB PXB X 0-9 0\n",
    3, 0, 1, 2, 0, NULL },
  { "two ports of one card share its slot", "l40s",
    "GPU0 NIC0 NIC1 CPU Affinity NUMA Affinity\nGPU0 X NODE NODE 0-9 0\nNIC0 NODE X PIX\nNIC1 NODE PIX X\n",
    1, 2, 1, 1, 0, NULL },
  { "as many NVLinks as an accelerator has: through switches", NULL,
    "GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV18 NV18 0-9\nGPU1 NV18 X NV18 0-9\nGPU2 NV18 NV18 X 0-9\n", 3, 0,
    1, 0, 1, "accelerators h100" },
  { "fewer: from GPU to GPU", NULL,
    "GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV6 NV6 0-9\nGPU1 NV6 X NV6 0-9\nGPU2 NV6 NV6 X 0-9\n", 3, 0, 1, 0,
    0, "accelerators a100-80g" },
  { "a second matrix is another node's", "l40s",
    "GPU0 CPU Affinity\nGPU0 X 0-9\nGPU0 GPU1 CPU Affinity\nGPU0 X PIX 0-9\n", 1, 0, 1, 0, 0, NULL },
  { "farther NICs are left out by the legend's name", "l40s",
    "GPU0 NIC0 NIC1 CPU Affinity NUMA Affinity\nGPU0 X PIX SYS 0-9 0\nNIC0 PIX X SYS\nNIC1 SYS SYS X\n"
    "NIC Legend:\nNIC0: mlx5_0\nNIC1: mlx5_bond_0\n",
    1, 1, 2, 1, 0, "without mlx5_bond_0" },
  { "rocm-smi: joined by the lightest weight, numa nodes are CPUs, the name in the text", NULL,
    "GPU[0] : Card Series: AMD Instinct MI300X OAM\n=== Weight between two GPUs ===\nGPU0 GPU1 GPU2\n"
    "GPU0 0 15 30\nGPU1 15 0 15\nGPU2 30 15 0\n" TYPES "GPU0 0 XGMI XGMI\nGPU1 XGMI 0 XGMI\n"
    "GPU2 XGMI XGMI 0\n=== Numa Nodes ===\nGPU[0] : (Topology) Numa Node: 3\n"
    "GPU[0] : (Topology) Numa Affinity: 3\nGPU 1 : (Topology) Numa Affinity: 1\n"
    "GPU[2]\t\t: (Topology) Numa Affinity: 3\n",
    3, 0, 2, 0, 0, "1 pairs of GPUs have no xGMI link", 2, ls_tree_read_rocm },
  { "rocm-smi: PCIe between some, no weights, no NUMA nodes", "mi210",
    TYPES "GPU0 0 XGMI PCIE\nGPU1 XGMI 0 PCIE\nGPU2 PCIE PCIE 0\n", 3, 0, 1, 0, 0,
    "3 GPUs without a Numa Affinity", 1, ls_tree_read_rocm },
  { "InfraGraph: a switch of all accelerators is an NVSwitch, one at a CPU is none; pairs count once", NULL,
    "{\"name\":\"n\",\"components\":[{\"name\":\"c\",\"count\":1,\"choice\":\"cpu\"},"
    "{\"name\":\"x\",\"count\":4,\"choice\":\"xpu\",\"description\":\"NVIDIA H200\"},"
    "{\"name\":\"s\",\"count\":3,\"choice\":\"switch\"},{\"name\":\"p\",\"count\":2,\"choice\":\"nic\"}],\"edges\":["
    "{\"ep1\":{\"component\":\"c\"},\"ep2\":{\"component\":\"s[0:2]\"},\"scheme\":\"many2many\"},"
    "{\"ep1\":{\"component\":\"s[0]\"},\"ep2\":{\"component\":\"x[:2]\"},\"scheme\":\"many2many\"},"
    "{\"ep1\":{\"component\":\"s[1]\"},\"ep2\":{\"component\":\"x[2:]\"},\"scheme\":\"many2many\"},"
    "{\"ep1\":{\"component\":\"s[0:2]\"},\"ep2\":{\"component\":\"p\"},\"scheme\":\"one2one\"},"
    "{\"ep1\":{\"component\":\"x\"},\"ep2\":{\"component\":\"s[2]\"},\"scheme\":\"many2many\"},"
    "{\"ep1\":{\"component\":\"x\"},\"ep2\":{\"component\":\"x\"},\"scheme\":\"many2many\"}]}",
    4, 2, 1, 2, 1, "accelerators h200: by the description", 6, ls_tree_read_infragraph },
  { "InfraGraph's first versions: as many as edges name, without a CPU", "a100-80g",
    "devices:\n- name: n\n  components:\n  - {name: x, type: xpu}\n  - {name: p, type: nic}\n"
    "  connections:\n  - x.0.pcie.p.0\n  - x.1.pcie.p.1\n",
    2, 2, 1, 2, 0, "4 accelerators and NICs, to which no edge leads", 0, ls_tree_read_infragraph },
};

static uint32_t
n_of (const LsClusterSpec *s, LsNodeKind kind)
{
  uint32_t n = 0;
  for (guint i = 0; i < s->list.vertices->len; i++)
    n += g_array_index (s->list.vertices, LsListVertex, i).kind == (int) kind;
  return n;
}

static uint32_t
n_joined (const LsClusterSpec *s)
{
  uint32_t n = 0;
  for (guint i = 0; i < s->list.links->len; i++) {
    const LsListLink *link = &g_array_index (s->list.links, LsListLink, i);
    n += g_str_has_prefix (link->from, "gpu") && g_str_has_prefix (link->to, "gpu");
  }
  return n;
}

static bool
is_guessed (const LsClusterSpec *s, const char *guess)
{
  for (guint i = 0; guess && s->guessed && i < s->guessed->len; i++)
    if (strstr (g_array_index (s->guessed, char *, i), guess))
      return true;
  return !guess;
}

static void
a_matrix_is_the_tree_that_it_means (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (matrices); i++) {
    const Case *c = &matrices[i];
    LsClusterSpec s;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    bool ok = ls_tree_read (c->reader ? c->reader : ls_tree_read_matrix, ls_cluster_load, "a matrix", c->text,
                            strlen (c->text), "m.txt", c->gpu, &s, diags);
    g_autofree char *text = ls_diag_list_format (diags);
    ls_check_impl (ok, __FILE__, __LINE__, "%s: %s", c->name, text);
    if (!ok)
      continue;
    g_autofree char *got = g_strdup_printf ("%u %u %u %u %u %d", s.gpus_per_node, s.nics.n,
                                            n_of (&s, LS_NODE_CPU), n_of (&s, LS_NODE_PCIE_SWITCH),
                                            n_of (&s, LS_NODE_NVSWITCH), is_guessed (&s, c->guess)),
                    *expected
        = g_strdup_printf ("%u %u %u %u %u 1", c->gpus, c->nics, c->cpus, c->switches, c->nvswitches);
    ls_check_impl (g_str_equal (got, expected), __FILE__, __LINE__, "%s: expected %s; got %s", c->name,
                   expected, got);
    if (c->reader)
      LS_CHECK_INT (n_joined (&s), ==, c->joined);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsCluster) built = ls_cluster_build (&s, &error);
    LS_CHECK_NO_ERROR (error);
    LS_CHECK (built != NULL);
    ls_cluster_spec_clear (&s);
  }
}

/* NVLinks of a machine's own to itself, as a virtual machine's file has them, count for nothing, and it is said. */
static void
nvlinks_to_itself_are_noted (void)
{
  static const char text[]
      = "<system version=\"1\"><cpu arch=\"x86_64\"><pci busid=\"0001:00:00.0\" class=\"0x030200\">"
        "<gpu dev=\"0\" sm=\"80\"><nvlink target=\"0001:00:00.0\" count=\"12\" tclass=\"0x030200\"/></gpu></pci>"
        "</cpu></system>";
  LsClusterSpec s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_tree_read (ls_tree_read_nccl, ls_cluster_load, "a topology file of NCCL", text,
                               strlen (text), "v.xml", NULL, &s, diags)))
    return;
  LS_CHECK_STR (s.unread, "NVLinks of a <gpu> to itself");
  LS_CHECK_INT (s.list.links->len, ==, 1);
  ls_cluster_spec_clear (&s);
}

/* Products as drivers and PCI's list call them; NULL: of no file, and nothing near is taken. */
static void
a_product_is_its_accelerator_or_none (void)
{
  static const struct {
    const char *product, *gpu;
  } rows[] = { { "NVIDIA A100-SXM4-80GB", "a100-80g" },
               { "NVIDIA A100-SXM4-40GB", "a100-40g" },
               { "NVIDIA A100 80GB PCIe", "a100-80g-pcie" },
               { "NVIDIA A100-PCIE-40GB", NULL },
               { "NVIDIA H100 80GB HBM3", "h100" },
               { "NVIDIA H100 PCIe", "h100-pcie" },
               { "NVIDIA H100 NVL", "h100-nvl" },
               { "NVIDIA H800 PCIe", NULL },
               { "NVIDIA H200", "h200" },
               { "NVIDIA H200 NVL", "h200-nvl" },
               { "Tesla V100-SXM2-16GB", "v100-16g" },
               { "Tesla V100-SXM2-32GB", "v100" },
               { "Tesla V100-PCIE-16GB", NULL },
               { "NVIDIA A800-SXM4-80GB", "a800" },
               { "NVIDIA A800 80GB PCIe", NULL },
               { "NVIDIA L40S", "l40s" },
               { "GA100GL [A30 PCIe]", "a30" },
               { "NVIDIA A30", "a30" },
               { "Tesla T4", "t4" },
               { "NVIDIA GB200", "gb200" },
               { "AMD Instinct MI300X OAM", "mi300x" },
               { "AMD Instinct MI250X/MI250", "mi250x-gcd" },
               { "NVIDIA GeForce RTX 4090", "rtx-4090" },
               { "Tesla P100-PCIE-16GB", NULL } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *gpu = ls_tree_gpu_of_product (rows[i].product);
    ls_check_impl (g_strcmp0 (gpu, rows[i].gpu) == 0, __FILE__, __LINE__, "%s is %s, not %s", rows[i].product,
                   rows[i].gpu ? rows[i].gpu : "none", gpu ? gpu : "none");
  }
}

LS_TEST_SUITE (LS_TEST (a_product_is_its_accelerator_or_none), LS_TEST (a_matrix_is_the_tree_that_it_means),
               LS_TEST (nvlinks_to_itself_are_noted))
