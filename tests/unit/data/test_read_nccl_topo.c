/* Pins: topology files of NCCL arrive as nodes with NCCL's own rates; damaged ones are
 * refused with the line. */
#include "cluster_check.h"
#include "ls_test.h"
#include "built_cluster.h"

#include <string.h>

#include "cluster/route.h"
#include "data/machines/machines.h"

static LsCluster *
load (const char *name, uint32_t n_nodes)
{
  g_autofree char *path = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data", name, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsClusterSpec spec;
  if (!ls_cluster_load (path, &spec, diags)) {
    g_autofree char *text = ls_diag_list_format (diags);
    ls_check_impl (false, __FILE__, __LINE__, "%s", text);
    return NULL;
  }
  spec.n_nodes = n_nodes;
  LsCluster *c = ls_cluster_build (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_cluster_spec_clear (&spec);
  if (c)
    ls_cluster_check (c);
  return c;
}

static void
check_route (const LsCluster *c, uint32_t from, uint32_t to, const char *expected)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsRoute r;
  ls_route (c, from, to, LS_NIC_AUTO, LS_NIC_AUTO, &r);
  for (uint32_t i = 0; i < r.n_hops; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "",
                            g_array_index (c->trunks, LsTrunk, r.hop[i].trunk).name);
  LS_CHECK_STR (text->str, expected);
}

static void
a_dgx_arrives_whole (void)
{
  g_autoptr (LsCluster) c = load ("nccl-dgx.xml", 3);
  if (!LS_CHECK (c != NULL))
    return;
  LS_CHECK_STR (c->spec.name, "nccl-dgx");
  LS_CHECK_STR (c->spec.gpu.name, "h100");
  LS_CHECK_INT (c->spec.gpus_per_node, ==, 8);
  LS_CHECK_INT (c->spec.nics, ==, 8); /* without the two slower ones for storage */
  LS_CHECK_NEAR (capacity_of (c, "node0/gpu3>nvswitch0"), 18 * 20.6e9, 1e-12);
  LS_CHECK_NEAR (capacity_of (c, "node0/gpu3>pcie1"), 48e9, 1e-12);
  LS_CHECK_NEAR (capacity_of (c, "node0/nic5>pcie2"), 48e9, 1e-12);
  LS_CHECK_NEAR (capacity_of (c, "node0/cpu0>cpu1"), 22e9, 1e-12);
  LS_CHECK_NEAR (capacity_of (c, "node0/nic5>leaf5"), 50e9, 1e-12);
  check_route (c, 0, 5, "node0/gpu0>nvswitch0 node0/nvswitch0>gpu5");
  check_route (
      c, 1, 17,
      "node0/gpu1>pcie0 node0/pcie0>nic1 node0/nic1>leaf1 leaf1>node2/nic1 node2/nic1>pcie0 node2/pcie0>gpu1");
  for (uint32_t gpu = 0; gpu < 8; gpu++)
    LS_CHECK_INT (ls_nic_of_gpu (c, gpu), ==, gpu);
  LsRoute r;
  ls_route_host_memory (c, 4, true, &r);
  LS_CHECK_INT (r.n_hops, ==, 2); /* pcie2, cpu1 */
  LS_CHECK (ls_host_has_nvswitch (c, 2));
}

/* Two levels of switches; GPUs by their dev, which runs backwards in the file; x-gpu. */
static void
a_tree_of_switches_arrives_whole (void)
{
  g_autoptr (LsCluster) c = load ("nccl-pcie.xml", 1);
  if (!LS_CHECK (c != NULL))
    return;
  LS_CHECK_STR (c->spec.gpu.name, "a100-40g");
  LS_CHECK_INT (c->spec.nics, ==, 2);
  LS_CHECK_NEAR (capacity_of (c, "node0/gpu0>pcie2"), 24e9, 1e-12);
  LS_CHECK_NEAR (capacity_of (c, "node0/pcie3>pcie0"), 12e9, 1e-12); /* the x8 of the NIC */
  LS_CHECK (!ls_host_has_nvswitch (c, 0) && !ls_cluster_has_gpu_links (c));
  check_route (c, 0, 1, "node0/gpu0>pcie2 node0/pcie2>gpu1");
  check_route (c, 0, 3, "node0/gpu0>pcie2 node0/pcie2>pcie0 node0/pcie0>pcie1 node0/pcie1>gpu3");
}

/* --- small files --- */

#define CPU "<cpu arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
#define GPU(id, dev, inside)                                                                                 \
  "<pci busid=\"0000:0" #id ":00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"16\">"            \
  "<gpu dev=\"" #dev "\" sm=\"70\">" inside "</gpu></pci>"
#define SYSTEM(inside) "<system version=\"1\">\n" inside "\n</system>\n"

static bool
parse (const char *text, LsClusterSpec *ret_spec, char **ret_text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_nccl_topo_parse (text, strlen (text), "x.xml", NULL, ret_spec, diags);
  *ret_text = ls_diag_list_format (diags);
  return ok;
}

/* Links both ways are one; links to a GPU that is not there are left out, as in the dump
 * of some GPUs of a DGX-1. */
static void
a_mesh_is_joined_once (void)
{
  LsClusterSpec spec;
  g_autofree char *text = NULL;
  bool ok = parse (
      SYSTEM (CPU GPU (1, 0,
                       "<nvlink target=\"0000:02:00.0\" count=\"2\" tclass=\"0x030200\"/>"
                       "<nvlink target=\"0000:09:00.0\" count=\"1\" tclass=\"0x030200\"/>")
                  GPU (2, 1,
                       "<nvlink target=\"00000000:02:00.0\" count=\"0\" tclass=\"0x030200\"/>"
                       "<nvlink target=\"00000000:01:00.0\" count=\"2\" tclass=\"0x030200\"/>") "</cpu>"),
      &spec, &text);
  if (!LS_CHECK (ok))
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (LS_CHECK (c != NULL)) {
    LS_CHECK_NEAR (capacity_of (c, "node0/gpu0>gpu1"), 2 * 20e9, 1e-12);
    LS_CHECK_NEAR (capacity_of (c, "node0/gpu1>cpu0"), 12e9, 1e-12);
    check_route (c, 0, 1, "node0/gpu0>gpu1");
  }
  LS_CHECK_STR (spec.gpu.name, "v100");
  ls_cluster_spec_clear (&spec);
}

static void
grace_is_reached_over_c2c (void)
{
  LsClusterSpec spec;
  g_autofree char *text = NULL;
  bool ok = parse (
      SYSTEM ("<cpu arch=\"arm64\"><pci busid=\"0:1:0.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"100\">"
              "<c2c bw=\"44712\" count=\"5\"/></gpu></pci></cpu>"),
      &spec, &text);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ok ? ls_cluster_build (&spec, &error) : NULL;
  if (LS_CHECK (c != NULL)) {
    LS_CHECK_NEAR (capacity_of (c, "node0/gpu0>cpu0"), 223.56e9, 1e-12);
    LS_CHECK_INT (c->links->len, ==, 2);
  }
  if (ok)
    ls_cluster_spec_clear (&spec);
}

/* A NIC that hides its speed has the 10,000 Mbit/s that NCCL takes. */
static void
a_nic_without_speed_has_ten_gigabits (void)
{
  LsClusterSpec spec;
  g_autofree char *text = NULL;
  if (!LS_CHECK (parse (SYSTEM (CPU GPU (1, 0, "") "<nic><net name=\"eth0\" dev=\"0\"/></nic></cpu>"), &spec,
                        &text)))
    return;
  spec.n_nodes = 2;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (LS_CHECK (c != NULL))
    LS_CHECK_NEAR (capacity_of (c, "node0/nic0>leaf0"), 1.25e9, 1e-12);
  ls_cluster_spec_clear (&spec);
}

static void
damaged_files_are_refused_with_the_line (void)
{
  static const struct {
    const char *text, *expected;
  } cases[] = {
    { "", "x.xml:1:1: error: not XML: " },
    { "{ \"schema\": 1 }", "x.xml:1:" },
    { "<system version=\"1\">\n<cpu>", "x.xml:2:" },
    { "<graphs/>", "x.xml:1:1: error: expected <system>; got <graphs>" },
    { "<system/>", "x.xml:1:1: error: <system>: missing attribute \"version\"" },
    { "<system version=\"2\"/>", "expected version \"1\"; got \"2\"" },
    { SYSTEM (""), "x.xml: error: no <gpu>" },
    { SYSTEM ("<pci busid=\"0:0:0.0\"/>"), "x.xml:2:1: error: <pci> stands outside of <cpu> and <pci>" },
    { SYSTEM (CPU "<gpu dev=\"0\" sm=\"90\"/></cpu>"), "x.xml:2:1: error: <gpu> stands outside of <pci>" },
    { SYSTEM (CPU "<pci busid=\"17\"/></cpu>"),
      "<pci>: busid: expected a PCI address like \"0000:1b:00.0\"; got \"17\"" },
    { SYSTEM (CPU "<pci class=\"0\"/></cpu>"), "<pci>: missing attribute \"busid\"" },
    { SYSTEM (CPU "<pci busid=\"0:0:0.0\" link_width=\"wide\"/></cpu>"),
      "<pci>: link_width: expected a whole number of at most 64; got \"wide\"" },
    { SYSTEM (CPU "<pci busid=\"0:0:0.0\"><gpu dev=\"0\"/></pci></cpu>"), "<gpu>: missing attribute \"sm\"" },
    { SYSTEM (CPU "<pci busid=\"0:0:0.0\"><gpu dev=\"0\" sm=\"61\"/></pci></cpu>"),
      "sm 61: expected 7x (v100), 8x (a100-80g), 9x (h100)" },
    { SYSTEM (CPU
              "<pci busid=\"0:0:0.0\"><gpu dev=\"0\" sm=\"80\"/>\n<gpu dev=\"1\" sm=\"80\"/></pci></cpu>"),
      "x.xml:3:1: error: <gpu>: a second one in the same <pci>" },
    { SYSTEM (CPU "<net speed=\"1\"/></cpu>"), "<net> stands outside of <nic>" },
    { SYSTEM (CPU GPU (1, 0, "<nvlink count=\"1\"/>") "</cpu>"), "<nvlink>: missing attribute \"target\"" },
    { SYSTEM (CPU "\n" GPU (1, 0, "") "\n" GPU (1, 1, "") "</cpu>"),
      "x.xml:4:1: error: a second GPU with the bus id of that in line 3" },
    { SYSTEM (CPU GPU (1, 0, "<nvlink target=\"0:2:0.0\" count=\"2\"/>") GPU (2, 1, "") "</cpu>"),
      "gpu0 has 2 NVLinks to gpu1, which has 0 back" },
    { "<system version=\"1\" x-gpu=\"h1000\">" CPU GPU (1, 0, "") "</cpu></system>", "h1000" },
    { SYSTEM (CPU "<system version=\"1\"/></cpu>"), "<system> inside <system>" },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsClusterSpec spec;
    g_autofree char *text = NULL;
    bool ok = parse (cases[i].text, &spec, &text);
    ls_check_impl (!ok && strstr (text, cases[i].expected), __FILE__, __LINE__, "expected \"%s\", got \"%s\"",
                   cases[i].expected, text);
    if (ok)
      ls_cluster_spec_clear (&spec);
  }
}

LS_TEST_SUITE (LS_TEST (a_dgx_arrives_whole), LS_TEST (a_tree_of_switches_arrives_whole),
               LS_TEST (a_mesh_is_joined_once), LS_TEST (grace_is_reached_over_c2c),
               LS_TEST (a_nic_without_speed_has_ten_gigabits),
               LS_TEST (damaged_files_are_refused_with_the_line))
