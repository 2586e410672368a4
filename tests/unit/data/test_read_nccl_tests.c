/* Pins: rows, ranks and hosts of nccl-tests, of today's text, of that of 2020 (without
 * groups, redop and root), with timestamps, and of JSON, where a device stands for the ranks
 * of its process. Wrong files are in tests/reject/nccl-tests. */
#include "ls_test.h"

#include <string.h>

#include "data/measured/read_nccl_tests.h"

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
      "#       size         count    type     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
      "     1048576        131072   float    20.97   50.00   25.00   0e+00    20.97   50.00   25.00   0e+00\n");
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

/* --- tables ----------------------------------------------------------------------------------------- */

/* Pins the columns of a file of measured collectives. Wrong files are in
 * tests/reject/collectives. */

static void
a_row_is_one_measured_call (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) rows = ls_parse_collectives (
      "c.csv",
      "notes,time_us,size_bytes,nodes,gpus,op,trust,cluster\n\"a, b\",12.5,1024,2,16,all-gather,B,dgx-h100\n",
      diags);
  if (!LS_CHECK (rows != NULL && rows->len == 1))
    return;
  const LsMeasuredCollective *m = g_ptr_array_index (rows, 0);
  LS_CHECK_STR (m->cluster, "dgx-h100");
  LS_CHECK_STR (m->trust, "B");
  LS_CHECK_STR (m->op, "all-gather");
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
  g_autoptr (GPtrArray) without
      = ls_parse_collectives ("c.csv", "cluster,op,gpus,nodes,size_bytes,time_us\n,p2p,2,1,8,1\n", diags);
  g_autoptr (GPtrArray) empty = ls_parse_collectives (
      "c.csv", "cluster,trust,op,gpus,nodes,size_bytes,time_us\npair,,p2p,2,1,8,1\n", diags);
  if (!LS_CHECK (without != NULL && empty != NULL))
    return;
  LS_CHECK (((const LsMeasuredCollective *) g_ptr_array_index (without, 0))->trust == NULL);
  LS_CHECK_STR (((const LsMeasuredCollective *) g_ptr_array_index (without, 0))->cluster, "");
  LS_CHECK_STR (((const LsMeasuredCollective *) g_ptr_array_index (empty, 0))->trust, "");
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
  g_autoptr (GPtrArray) rows = ls_read_collectives (path, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  LS_CHECK (rows != NULL && rows->len > 1000);
}

LS_TEST_SUITE (LS_TEST (several_runs_of_one_file), LS_TEST (text_is_read),
               LS_TEST (old_text_and_timestamps_are_read), LS_TEST (json_is_read),
               LS_TEST (a_row_is_one_measured_call), LS_TEST (trust_and_cluster_may_be_unknown),
               LS_TEST (the_measured_rows_are_read))
