/* Pins how what NCCL's tools print is read: tables of nccl-tests, and files of its topology. */
#include "built_cluster.h"
#include "cluster_check.h"
#include "ls_test.h"

#include <string.h>

#include "cluster/route.h"
#include "data/machines/machines.h"
#include "data/machines/node_tree.h"
#include "data/measured/read_nccl_tests.h"

/* Pins: rows, ranks and hosts of nccl-tests, of today's text, of that of 2020 (without
 * groups, redop and root), with timestamps, and of JSON, where a device stands for the ranks
 * of its process. Wrong files are in tests/reject/nccl-tests. */

/* --- nccl-tests ------------------------------------------------------------------------------------- */

static GPtrArray *
parse_all (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  GPtrArray *runs = ls_nccl_tests_parse ("run", text, strlen (text), diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  return runs;
}

static LsNcclTests *
parse (const char *text)
{
  g_autoptr (GPtrArray) runs = parse_all (text);
  return LS_CHECK (runs && runs->len == 1) ? g_ptr_array_steal_index (runs, 0) : NULL;
}

static void
check (const LsNcclTests *t, const char *test, guint n_ranks, guint n_hosts, guint n_rows, uint64_t bytes,
       double us)
{
  if (!LS_CHECK (t != NULL))
    return;
  LS_CHECK_STR (t->test, test);
  LS_CHECK_INT (t->n_ranks, ==, n_ranks);
  LS_CHECK_INT (t->n_hosts, ==, n_hosts);
  if (!LS_CHECK (t->rows->len == n_rows))
    return;
  LS_CHECK_INT (g_array_index (t->rows, LsNcclTestsRow, n_rows - 1).bytes, ==, bytes);
  LS_CHECK_DOUBLE (g_array_index (t->rows, LsNcclTestsRow, n_rows - 1).time_us, ==, us);
}

#define DEVICES                                                                                              \
  "#  Rank  0 Group  0 Pid  1 on   node-1 device  0 [0000:07:00] NVIDIA H200\n"                              \
  "#  Rank  1 Group  0 Pid  1 on   node-1 device  1 [0000:0b:00] NVIDIA H200\n"                              \
  "#  Rank  2 Group  0 Pid  1 on   node-2 device  0 [0000:07:00] NVIDIA H200\n"                              \
  "#  Rank  3 Group  0 Pid  1 on   node-2 device  1 [0000:0b:00] NVIDIA H200\n"
#define SETTING "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5\n"

/* Sizes of 0 (fewer bytes than ranks) have no time; what MPI prints is no row. */
static void
text_is_read (void)
{
  g_autoptr (LsNcclTests) t = parse (
      "NCCL version 2.27.5+cuda12.8\n"
      "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22703\n"
      "# Collective test starting: all_gather_perf\n" SETTING DEVICES
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n"
      "           0             0     float    none      -1     8.00    0.00    0.00       0     8.10    0.00    0.00       0\n"
      "        1024            64     float    none      -1    10.24    0.10    0.08       0    10.20    0.10    0.08       0\n"
      "  1073741824      67108864     float    none      -1   5368.7  200.00  150.00     N/A   5300.0  202.59  151.94     N/A\n"
      "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 75\n#\n# Collective test concluded: all_gather_perf\n");
  check (t, "all_gather", 4, 2, 2, 1073741824, 5368.7);
  LS_CHECK_STR (t ? t->gpu : NULL, "NVIDIA H200");
  LS_CHECK_STR (t ? t->version : NULL, "22703");
}

static void
old_text_and_timestamps_are_read (void)
{
  g_autoptr (LsNcclTests) old = parse (
      SETTING
      "#   Rank  0 Pid  51 on node-1 device  0 [0x07] A100-SXM4-40GB\n"
      "#   Rank  1 Pid  51 on node-1 device  1 [0x0b] A100-SXM4-40GB\n"
      "#       size         count    type     time   algbw   busbw   error     time   algbw   busbw   error\n"
      "     1048576        131072   float    20.97   50.00   25.00   4e-07    20.97   50.00   25.00   4e-07\n");
  check (old, NULL, 2, 1, 1, 1048576, 20.97);
  g_autoptr (LsNcclTests) stamped = parse (
      "# Collective test starting: all_reduce_perf\n" SETTING DEVICES
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong           timestamp\n"
      " 1048576 262144 float sum -1 20.97 50.00 75.00 0 20.97 50.00 75.00 0  2026-11-20 08:00:00\n");
  check (stamped, "all_reduce", 4, 2, 1, 1048576, 20.97);
}

static void
json_is_read (void)
{
  g_autoptr (LsNcclTests) t = parse (
      "{\"version\":2,\"start_time\":\"2026-11-20 08:00:00\",\"args\":[\"./build/alltoall_perf\",\"-g\",\"2\"],"
      "\"env\":[],\"nccl_version\":22807,\"config\":{\"nthreads\":1,\"ngpus\":2,\"blocking_collectives\":\"false\",\"devices\":["
      "{\"rank\":0,\"group\":0,\"pid\":1,\"hostname\":\"node-1\",\"device_info\":\"NVIDIA H200\"},"
      "{\"rank\":2,\"group\":0,\"pid\":1,\"hostname\":\"node-2\",\"device_info\":\"NVIDIA H200\"}]},"
      "\"results\":[{\"size\":1048576,\"count\":1,\"type\":\"float\",\"redop\":\"none\",\"root\":\"    -1\","
      "\"out_of_place\":{\"time\":20.97,\"alg_bw\":50.0,\"bus_bw\":37.5,\"nwrong\":null},\"in_place\":null}],"
      "\"out_of_bounds\":{\"count\":0,\"okay\":\"true\"},\"end_time\":\"x\"}");
  check (t, "alltoall", 4, 2, 1, 1048576, 20.97);
  LS_CHECK_STR (t ? t->date : NULL, "2026-11-20 08:00:00");
}

#define RUN(version, name, setting, row, end)                                                                \
  version                                                                                                    \
      "# Collective test starting: " name "_perf_mpi\n" setting DEVICES                                      \
      "#       size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n" row \
      "# Out of bounds values : 0 OK\n" end

/* As joined logs and a job's output have them: with and without a version and an end, under banners, of other
 * rank counts. */
static void
several_runs_of_one_file (void)
{
  g_autoptr (GPtrArray) runs
      = parse_all ("node-1: module load nccl\n" RUN (
          "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n", "all_reduce", SETTING,
          " 1048576 262144 float sum -1 50.0 20.97 31.45 0 50.0 20.97 31.45 0\n",
          "# Collective test concluded: all_reduce_perf_mpi\n#\n") "srun: job 7\n" RUN ("", "all_gather",
                                                                                        "# nThread 1 nGpus 1 minBytes 8\n",
                                                                                        " 2097152 65536 float none -1 80.0 26.21 19.66 0 80.0 26.21 19.66 0\n",
                                                                                        "")
                       RUN ("# nccl-tests version 2.18.0 nccl-headers=22807 nccl-library=22907\n", "alltoall",
                            SETTING, " 4194304 65536 float none -1 90.0 46.60 34.95 0 90.0 46.60 34.95 0\n",
                            "# Collective test concluded: alltoall_perf_mpi\n"));
  if (!LS_CHECK (runs && runs->len == 3))
    return;
  check (runs->pdata[0], "all_reduce", 4, 2, 1, 1048576, 50);
  check (runs->pdata[1], "all_gather", 4, 2, 1, 2097152, 80);
  check (runs->pdata[2], "alltoall", 4, 2, 1, 4194304, 90);
  LS_CHECK_INT (((const LsNcclTests *) runs->pdata[0])->line, ==, 1);
  LS_CHECK_INT (((const LsNcclTests *) runs->pdata[1])->line, ==, 15);
  LS_CHECK_STR (((const LsNcclTests *) runs->pdata[2])->version, "22907");
}

/* Which operation a run is of: by its first lines, a command line above it, or its figures; and by which algorithm
 * such a line says it went. */
static void
a_run_says_what_ran (void)
{
  static const struct {
    const char *above, *row, *op, *likely, *algorithm;
  } cases[] = {
    { "# Collective test starting: alltoall_perf\n", "float none -1 50.0 20.97 15.73 0", "all-to-all", NULL,
      NULL },
    { "$ mpirun -np 4 -x NCCL_ALGO=Tree ./all_reduce_perf -g 1\n", "float sum -1 50.0 20.97 31.46 0",
      "all-reduce", "all-reduce", "tree" },
    { "export NCCL_ALGO=Ring\nexport NCCL_ALGO=NVLSTree\n", "float sum -1 50.0 20.97 31.46 0", NULL,
      "all-reduce", "nvlstree" },
    { "[1,0]<stdout>:$ reduce_scatter_perf\n", "float sum -1 50.0 20.97 15.73 0", "reduce-scatter",
      "reduce-scatter", NULL },
    { "", "float none -1 50.0 20.97 15.73 0", NULL, NULL, NULL }, /* all-gather and all-to-all */
    { "", "float sum 0 50.0 20.97 20.97 0", NULL, "reduce", NULL },
    { "", "float none 0 50.0 20.97 20.97 0", NULL, "broadcast", NULL },
    { "", "float none -1 50.0 20.97 20.97 0", NULL, "send-recv", NULL },
    { "", "float sum -1 50.0 20.97 25.00 0", NULL, NULL, NULL },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text
        = g_strconcat (cases[i].above, SETTING DEVICES,
                       "# size count type redop root time algbw busbw #wrong\n[1,0]<stdout>: 1048576 262144 ",
                       cases[i].row, "\n", NULL);
    g_autoptr (LsNcclTests) t = parse (text);
    if (!LS_CHECK (t != NULL))
      continue;
    LS_CHECK_STR (ls_nccl_tests_op (t), cases[i].op);
    LS_CHECK_STR (ls_nccl_tests_likely_op (t), cases[i].likely);
    LS_CHECK_STR (t->algorithm, cases[i].algorithm);
  }
}

/* The line that starts a run is of that run, not of the one before it. */
static void
a_command_belongs_to_the_run_below (void)
{
  const char *run
      = SETTING DEVICES "# size count type redop root time algbw busbw #wrong\n"
                        " 1048576 262144 float sum -1 50.0 20.97 31.46 0\n# Avg bus bandwidth : 31\n";
  g_autofree char *text = g_strconcat (run, "srun all_gather_perf\n", run, "all_reduce_perf is over\n", NULL);
  g_autoptr (GPtrArray) runs = parse_all (text);
  if (!LS_CHECK (runs && runs->len == 2))
    return;
  LS_CHECK_STR (((const LsNcclTests *) runs->pdata[0])->test, NULL);
  LS_CHECK_STR (((const LsNcclTests *) runs->pdata[1])->test, "all_gather");
}

/* --- tables ----------------------------------------------------------------------------------------- */

/* Pins the columns of a file of measured collectives. Wrong files are in
 * tests/reject/collectives. */

static void
a_row_is_one_measured_call (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *unread = NULL;
  g_autoptr (GPtrArray) rows = ls_read_collectives (
      "c.csv",
      "notes,time_us,size_bytes,nodes,gpus,op,trust,algorithm,link,cluster\n\"a, b\",12.5,1024,2,16,all-gather,B,ring,IB,dgx-h100\n",
      &unread, diags);
  LS_CHECK_STR (unread, "notes, link");
  if (!LS_CHECK (rows != NULL && rows->len == 1))
    return;
  const LsMeasuredCollective *m = g_ptr_array_index (rows, 0);
  LS_CHECK_STR (m->cluster, "dgx-h100");
  LS_CHECK_STR (m->trust, "B");
  LS_CHECK_STR (m->op, "all-gather");
  LS_CHECK_STR (m->algorithm, "ring");
  LS_CHECK_STR (m->protocol, NULL);
  LS_CHECK_INT (m->n_gpus, ==, 16);
  LS_CHECK_INT (m->n_nodes, ==, 2);
  LS_CHECK_INT (m->bytes, ==, 1024);
  LS_CHECK_DOUBLE (m->time_us, ==, 12.5);
}

/* No column is not the same as an empty cell: nothing can be asked of it. */
static void
trust_and_cluster_may_be_unknown (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) without = ls_read_collectives (
      "c.csv", "cluster,op,gpus,nodes,size_bytes,time_us\n,p2p,2,1,8,1\n", NULL, diags);
  g_autoptr (GPtrArray) empty = ls_read_collectives (
      "c.csv", "cluster,trust,op,gpus,nodes,size_bytes,time_us\npair,,p2p,2,1,8,1\n", NULL, diags);
  if (!LS_CHECK (without != NULL && empty != NULL))
    return;
  LS_CHECK (((const LsMeasuredCollective *) g_ptr_array_index (without, 0))->trust == NULL);
  LS_CHECK_STR (((const LsMeasuredCollective *) g_ptr_array_index (without, 0))->cluster, "");
  LS_CHECK_STR (((const LsMeasuredCollective *) g_ptr_array_index (empty, 0))->trust, "");
}

/* A source names the program that times so, or is the same as the row's above but for a part. */
static void
calls_timed_by_themselves_are_known_by_their_source (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) rows = ls_read_collectives (
      "c.csv",
      "cluster,op,gpus,nodes,size_bytes,time_us,source\n"
      "pair,p2p,2,1,8,1,\"the same, above\"\npair,p2p,2,1,8,1,x: all_reduce_bench.py of torch\n"
      "pair,p2p,2,1,8,1,\"the same, 4 nodes\"\npair,p2p,2,1,8,1,the same: nccl-tests\n",
      NULL, diags);
  if (!LS_CHECK (rows != NULL && rows->len == 4))
    return;
  for (guint i = 0; i < rows->len; i++)
    LS_CHECK_INT (((const LsMeasuredCollective *) rows->pdata[i])->is_single, ==, i == 1 || i == 2);
}

/* The file that does not ship: every row of it. */
static void
the_measured_rows_are_read (void)
{
  const char *shared = ls_test_shared_data ();
  if (!shared)
    return;
  g_autofree char *path = g_build_filename (shared, "collectives", "collectives.csv", NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) rows = ls_read_collectives (path, NULL, NULL, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  LS_CHECK (rows != NULL && rows->len > 1000);
}

/* Pins: topology files of NCCL arrive as nodes with NCCL's own rates; damaged ones are
 * refused with the line. */

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
  ls_route (c, from, to, 0, &r);
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
  LS_CHECK_INT (c->spec.nics.n, ==, 8); /* without the two slower ones for storage */
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
  LS_CHECK_INT (c->spec.nics.n, ==, 2);
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
read_nccl_topo_parse (const char *text, LsClusterSpec *ret_spec, char **ret_text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_tree_read (ls_tree_read_nccl, ls_cluster_load, "a topology file of NCCL", text, strlen (text),
                          "x.xml", NULL, ret_spec, diags);
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
  bool ok = read_nccl_topo_parse (
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
  bool ok = read_nccl_topo_parse (
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
  if (!LS_CHECK (read_nccl_topo_parse (
          SYSTEM (CPU GPU (1, 0, "") "<nic><net name=\"eth0\" dev=\"0\"/></nic></cpu>"), &spec, &text)))
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
    { "<system version=\"3\"/>", "expected version \"1\" or, of RCCL, \"2\"; got \"3\"" },
    { SYSTEM (""), "x.xml: error: no <gpu>, as in files that clouds ship" },
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
    bool ok = read_nccl_topo_parse (cases[i].text, &spec, &text);
    ls_check_impl (!ok && strstr (text, cases[i].expected), __FILE__, __LINE__, "expected \"%s\", got \"%s\"",
                   cases[i].expected, text);
    if (ok)
      ls_cluster_spec_clear (&spec);
  }
}

LS_TEST_SUITE (LS_TEST (several_runs_of_one_file), LS_TEST (text_is_read),
               LS_TEST (old_text_and_timestamps_are_read), LS_TEST (json_is_read),
               LS_TEST (a_run_says_what_ran), LS_TEST (a_command_belongs_to_the_run_below),
               LS_TEST (a_row_is_one_measured_call), LS_TEST (trust_and_cluster_may_be_unknown),
               LS_TEST (calls_timed_by_themselves_are_known_by_their_source),
               LS_TEST (the_measured_rows_are_read), LS_TEST (a_dgx_arrives_whole),
               LS_TEST (a_tree_of_switches_arrives_whole), LS_TEST (a_mesh_is_joined_once),
               LS_TEST (grace_is_reached_over_c2c), LS_TEST (a_nic_without_speed_has_ten_gigabits),
               LS_TEST (damaged_files_are_refused_with_the_line))
