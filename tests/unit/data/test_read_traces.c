/* Pins how profiled steps are read: of torch.profiler, and of Nsight Systems. */
#include "ls_test.h"

#include <sqlite3.h>
#include <string.h>
#include <zlib.h>

#include "analysis/op_class.h"
#include "data/measured/kineto_reader.h"
#include "data/measured/read_kineto.h"

/* Pins how a Kineto trace is read: what is kept, exact nanoseconds, launches by correlation,
 * collectives by the kernel or by its call, gzip in one or more members; and that damage is
 * told wherever it is: each cut of a file, plain or packed, is refused and none hangs. */

static const char trace[]
    = "{ \"schemaVersion\": 1,\n"
      "  \"deviceProperties\": [ { \"id\": 0, \"name\": \"NVIDIA A100\", \"numSms\": 108 } ],\n"
      "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8, \"pg_config\": [ {\"ranks\": [0, 1]} ]},\n"
      "  \"traceEvents\": [\n"
      "  { \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#4\", \"pid\": 1, \"tid\": 1, \"ts\": 1000.000, \"dur\": 500 },\n"
      "  { \"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"ProfilerStep#4\", \"pid\": 0, \"tid\": 7, \"ts\": 1100, \"dur\": 400 },\n"
      "  { \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"ts\": 1001, \"dur\": 20, \"args\": { \"External id\": 5, \"Input Dims\": [[1, 2], []] } },\n"
      "  { \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"ts\": 1002.125, \"dur\": 4, \"args\": { \"correlation\": 11 } },\n"
      "  { \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ampere_bf16_s16816gemm_bf16\", \"ts\": 1100.001, \"dur\": 20.500,\n"
      "    \"args\": { \"External id\": 5, \"device\": 0, \"stream\": 7, \"correlation\": 11, \"grid\": [8, 1, 1] } },\n"
      "  { \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"record_param_comms\", \"ts\": 1030, \"dur\": 20,\n"
      "    \"args\": { \"External id\": 6, \"Collective name\": \"_allgather_base\", \"In msg nelems\": 100, \"Out msg nelems\": 800, \"dtype\": \"BFloat16\" } },\n"
      "  { \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)\", \"ts\": 1.1205e3, \"dur\": 30,\n"
      "    \"args\": { \"External id\": 6, \"device\": 0, \"stream\": 20, \"correlation\": 12 } },\n"
      "  { \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum_f32_RING_LL\", \"ts\": 1200, \"dur\": 1,\n"
      "    \"args\": { \"device\": 0, \"stream\": 20, \"Collective name\": \"allreduce\", \"In msg nelems\": 10, \"Out msg nelems\": 10, \"dtype\": \"Float\" } },\n"
      "  { \"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD\", \"ts\": 1300, \"dur\": 2, \"args\": { \"stream\": 7, \"bytes\": 64 } },\n"
      "  { \"ph\": \"f\", \"id\": 1, \"cat\": \"ac2g\", \"name\": \"ac2g\", \"ts\": 1 }\n"
      "  ], \"traceName\": \"x.json\" }\n";

static LsKineto *
parsed (const void *bytes, size_t n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsKineto *k = ls_kineto_parse ("t", bytes, n, diags);
  LS_CHECK ((k != NULL) == (ls_diag_list_n (diags) == 0));
  return k;
}

static void
check_trace (const LsKineto *k)
{
  if (!LS_CHECK (k != NULL))
    return;
  const LsKinetoOp *op = (const LsKinetoOp *) (gpointer) k->ops->data;
  LS_CHECK_INT (k->rank, ==, 3);
  LS_CHECK_INT (k->world_size, ==, 8);
  LS_CHECK_STR (k->gpu, "NVIDIA A100");
  LS_CHECK_INT (k->n_records, ==, 10);
  LS_CHECK_INT (k->steps->len, ==, 1);
  LS_CHECK_INT (g_array_index (k->steps, LsKinetoStep, 0).number, ==, 4);
  LS_CHECK_INT (g_array_index (k->steps, LsKinetoStep, 0).end, ==, 500000);
  if (!LS_CHECK_INT (k->ops->len, ==, 4))
    return;
  LS_CHECK (op[0].class == LS_CLASS_GEMM && op[0].start == 100001 && op[0].end == 120501
            && op[0].launch == 2125 && op[0].stream == 7);
  LS_CHECK (op[1].class == LS_CLASS_ALL_GATHER && op[1].start == 120500 && op[1].bytes == 1600
            && op[1].launch == LS_KINETO_NONE);
  LS_CHECK (op[2].class == LS_CLASS_ALL_REDUCE && op[2].bytes == 40);
  LS_CHECK (op[3].class == LS_CLASS_COPY && op[3].bytes == 0);
  LS_CHECK_INT (op[3].record, ==, 8);
}

static void
a_trace_is_read (void)
{
  g_autoptr (LsKineto) k = parsed (trace, strlen (trace));
  check_trace (k);
}

/* All kernels of a CUDA graph have its one launch, and are told from others. */
static void
kernels_of_a_graph_are_known (void)
{
  static const char text[]
      = "{ \"traceEvents\": [\n"
        "  { \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaGraphLaunch\", \"ts\": 10, \"dur\": 4, \"args\": { \"correlation\": 20 } },\n"
        "  { \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"ts\": 15, \"dur\": 4, \"args\": { \"correlation\": 21 } },\n"
        "  { \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"ts\": 20, \"dur\": 1, \"args\": { \"device\": 0, \"stream\": 7, \"correlation\": 20 } },\n"
        "  { \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"b\", \"ts\": 22, \"dur\": 1, \"args\": { \"device\": 0, \"stream\": 7, \"correlation\": 20 } },\n"
        "  { \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"c\", \"ts\": 24, \"dur\": 1, \"args\": { \"device\": 0, \"stream\": 7, \"correlation\": 21 } },\n"
        "  { \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"d\", \"ts\": 26, \"dur\": 1, \"args\": { \"device\": 0, \"stream\": 7, \"correlation\": 22 } }\n"
        "  ] }\n";
  g_autoptr (LsKineto) k = parsed (text, strlen (text));
  if (!LS_CHECK (k && k->ops->len == 4))
    return;
  const LsKinetoOp *op = (const LsKinetoOp *) (gpointer) k->ops->data;
  LS_CHECK (op[0].in_graph && op[1].in_graph && !op[2].in_graph && !op[3].in_graph);
  LS_CHECK (op[0].launch == op[1].launch && op[2].launch != LS_KINETO_NONE && op[3].launch == LS_KINETO_NONE);
}

/* gzip -c of some bytes behind what is there. */
static void
pack (GByteArray *out, const char *bytes, size_t n)
{
  z_stream z = { 0 };
  g_autofree guint8 *packed = g_malloc (n + 1024);
  LS_CHECK_INT (deflateInit2 (&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), ==, Z_OK);
  z.next_in = (Bytef *) (gpointer) bytes;
  z.avail_in = (uInt) n;
  z.next_out = packed;
  z.avail_out = (uInt) (n + 1024);
  LS_CHECK_INT (deflate (&z, Z_FINISH), ==, Z_STREAM_END);
  g_byte_array_append (out, packed, (guint) z.total_out);
  deflateEnd (&z);
}

static void
gzip_is_unpacked (void)
{
  g_autoptr (GByteArray) one = g_byte_array_new (), two = g_byte_array_new ();
  pack (one, trace, strlen (trace));
  g_autoptr (LsKineto) k = parsed (one->data, one->len);
  check_trace (k);
  pack (two, trace, 700); /* two members, as cat a.gz b.gz makes them, and padding */
  pack (two, trace + 700, strlen (trace) - 700);
  g_byte_array_append (two, (const guint8 *) "\0\0\0", 3);
  g_autoptr (LsKineto) l = parsed (two->data, two->len);
  check_trace (l);
}

/* Refused after 64 MiB of n times as much: by the size of the whole; where that is not known (of a pipe), or
 * within the limit, as no text unpacks so well. */
static void
what_unpacks_to_too_much_is_refused_at_once (void)
{
  static const struct {
    int n;
    const char *said;
  } cases[] = {
    { 100, "about 6.25 GiB unpacked; 1 GiB at most, record fewer steps or gunzip it first" },
    { 33, "about 2.06 GiB unpacked; 1 GiB at most, record fewer steps or gunzip it first" },
    { 8, "unpacks to more than 100 times its size, which no profile does; gunzip it first" },
  };
  g_autofree char *blanks = g_strnfill ((gsize) 64 << 20, ' ');
  g_autoptr (GByteArray) one = g_byte_array_new ();
  pack (one, blanks, (gsize) 64 << 20);
  for (guint c = 0; c < G_N_ELEMENTS (cases); c++) {
    g_autoptr (GByteArray) all = g_byte_array_new ();
    for (int i = 0; i < cases[c].n; i++)
      g_byte_array_append (all, one->data, one->len);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    gint64 start = g_get_monotonic_time ();
    LS_CHECK (!ls_kineto_parse ("t.json.gz", all->data, all->len, diags));
    LS_CHECK (g_get_monotonic_time () - start < 10 * G_USEC_PER_SEC);
    g_autofree char *text = ls_diag_list_format (diags);
    if (!LS_CHECK (strstr (text, cases[c].said)))
      g_printerr ("%s", text);
  }
}

static void
every_cut_is_told (void)
{
  g_autoptr (GByteArray) packed = g_byte_array_new ();
  pack (packed, trace, strlen (trace));
  size_t end = strlen (trace) - 2; /* the last brace */
  for (size_t n = 0; n <= end; n += n < end - 8 ? 7 : 1)
    LS_CHECK (!parsed (trace, n));
  for (size_t n = 2; n < packed->len; n += 3)
    LS_CHECK (!parsed (packed->data, n));
  for (size_t i = 12; i < packed->len; i += 5) {
    guint8 was = packed->data[i];
    packed->data[i] ^= 0x55;
    ls_kineto_free (parsed (packed->data, packed->len));
    packed->data[i] = was;
  }
}

static void
decimals_are_exact (void)
{
  static const struct {
    const char *text;
    bool ok;
    int64_t ns;
  } numbers[] = {
    { "88511388202.765", true, 88511388202765 },
    { "0.001", true, 1 },
    { "12", true, 12000 },
    { "-1.5", true, -1500 },
    { "1e3", true, 1000000 },
    { "1.0005", true, 1001 },
    { "1.00049999", true, 1000 },
    { "1726040082000000.123", true, 1726040082000000123 },
    { "", false, 0 },
    { "-", false, 0 },
    { ".", false, 0 },
    { "1.2.3", false, 0 },
    { "99999999999999999999", false, 0 },
    { "1e30", false, 0 },
    { "x", false, 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    int64_t ns = 0;
    LS_CHECK (ls_kineto_decimal (numbers[i].text, 3, &ns) == numbers[i].ok);
    LS_CHECK_INT (numbers[i].ok ? ns : 0, ==, numbers[i].ns);
  }
}

static void
overlaps_are_noted (void)
{
  static const char two[]
      = "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":0,\"dur\":10,\"args\":{\"stream\":7}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":5,\"dur\":10,\"args\":{\"stream\":7}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"c\",\"ts\":6,\"dur\":1,\"args\":{\"stream\":8}}]";
  g_autoptr (LsKineto) k = parsed (two, strlen (two));
  LS_CHECK (k && k->notes->len == 2 && strstr (g_ptr_array_index (k->notes, 0), "1 kernel overlaps") != NULL);
  LS_CHECK (
      k && strstr (g_ptr_array_index (k->notes, 0), "record 1 \"b\" on stream 7, under record 0") != NULL);
}

/* Kernels that do not say where they ran are not taken to be on one stream. */
static void
streamless_kernels_are_noted (void)
{
  static const char two[] = "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":0,\"dur\":10},"
                            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":5,\"dur\":10}]";
  g_autoptr (LsKineto) k = parsed (two, strlen (two));
  LS_CHECK (
      k && k->notes->len == 2
      && strstr (g_ptr_array_index (k->notes, 0), "2 of 2 kernels and copies do not say their \"stream\"")
          != NULL);
}

/* Pins that an export of Nsight Systems becomes what a profile of torch.profiler does: names, streams, launches,
 * syncs, steps, collectives by NCCL's own ranges; that columns which a release lacks are done without; and
 * what of strangers' SQLite files is refused. The exports are made up here. */

/* Two steps: a GEMM, and an all-gather of 4 MB from each of 8 ranks. */
static const char tables[]
    = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (1, 'sm90_gemm'), (2, 'ncclDevKernel_AllGather_RING_LL(x)'),"
      " (3, 'cudaLaunchKernel_v7000'), (4, 'cudaStreamSynchronize_v3020'), (5, 'ncclAllGather'),"
      " (6, 'ncclCommInitRank'), (7, 'iteration 3'), (8, 'Step#4');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid,"
      " demangledName);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 5000, 0, 7, 1, 16777216, 1),"
      " (6000, 9000, 0, 20, 2, 16777216, 2), (12000, 15000, 0, 7, 4, 16777216, 1);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 1200, 16777220, 1, 3),"
      " (1600, 1700, 16777220, 2, 3), (1800, 9500, 16777220, 3, 4), (11000, 11100, 16777220, 4, 3),"
      " (500, 600, 33554440, 1, 3);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (streamId, correlationId, syncType);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (20, 3, 3);"
      "CREATE TABLE NVTX_EVENTS (start, end, text, textId, globalTid, jsonText);"
      "INSERT INTO NVTX_EVENTS VALUES (900, 9900, NULL, 7, 16777220, NULL),"
      " (10000, 19000, NULL, 8, 16777220, NULL),"
      " (100, 200, NULL, 6, 16777220, '{\"No. of ranks\": 8, \"Rank\": 5}'),"
      " (1500, 1550, NULL, 5, 16777220, '{\"Message size [bytes]\": 4000000}');"
      "CREATE TABLE TARGET_INFO_GPU (id, name);"
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA\x1b[1m H100 80GB HBM3');";

static void
add_sql (sqlite3 *db, const char *sql)
{
  char *message = NULL;
  sqlite3_exec (db, sql, NULL, NULL, &message);
  ls_check_impl (!message, __FILE__, __LINE__, "%s: %s", sql, message);
  sqlite3_free (message);
}

/* Of these tables, with changes. */
static LsKineto *
read_export (const char *base, const char *changes, LsDiagList *diags)
{
  sqlite3 *db;
  sqlite3_int64 n = 0;
  sqlite3_open (":memory:", &db);
  add_sql (db, base);
  add_sql (db, changes);
  unsigned char *bytes = sqlite3_serialize (db, "main", &n, 0);
  sqlite3_close (db);
  LsKineto *k = ls_kineto_parse ("export.sqlite", bytes, (size_t) n, diags);
  sqlite3_free (bytes);
  return k;
}

static const LsKinetoOp *
op_at (const LsKineto *k, guint i)
{
  return &g_array_index (k->ops, LsKinetoOp, i);
}

static void
an_export_is_a_profile (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsKineto) k = read_export (tables, "", diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  if (!k)
    return;
  LS_CHECK_STR (k->gpu, "NVIDIA?[1m H100 80GB HBM3");
  LS_CHECK_INT (k->ops->len, ==, 3);
  LS_CHECK_INT (op_at (k, 0)->class, ==, LS_CLASS_GEMM);
  LS_CHECK_INT (op_at (k, 0)->start, ==, 2000 - 900);
  LS_CHECK_INT (op_at (k, 0)->launch, ==, 1000 - 900); /* not that of another process */
  LS_CHECK_INT (op_at (k, 1)->class, ==, LS_CLASS_ALL_GATHER);
  LS_CHECK_INT (op_at (k, 1)->bytes, ==, 32000000);
  LS_CHECK_INT (op_at (k, 1)->group, ==, 1);
  LS_CHECK_INT (g_array_index (k->groups, LsKinetoGroup, 0).size, ==, 8);
  LS_CHECK_INT (k->world_size, ==, 8);
  LS_CHECK_INT (k->rank, ==, 5);
  LS_CHECK_INT (k->calls->len, ==, 1);
  LS_CHECK_INT (g_array_index (k->calls, LsKinetoCall, 0).kind, ==, LS_CALL_SYNC);
  LS_CHECK_INT (g_array_index (k->calls, LsKinetoCall, 0).awaited, ==, 20);
  LS_CHECK_INT (k->steps->len, ==, 2);
  LS_CHECK_INT (g_array_index (k->steps, LsKinetoStep, 1).number, ==, 4);
}

static void
other_releases_have_other_columns (void)
{
  static const char old[] = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                            "INSERT INTO StringIds VALUES (1, 'gemm');"
                            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, shortName);"
                            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 50, 7, 1), (60, 90, 7, 1);"
                            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, streamId, copyKind);"
                            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (95, 99, 7, 2);";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsKineto) k = read_export (old, "", diags);
  if (!LS_CHECK (k != NULL))
    return;
  LS_CHECK_STR (op_at (k, 0)->name, "gemm");
  LS_CHECK_INT (op_at (k, 0)->launch, ==, LS_KINETO_NONE);
  LS_CHECK_STR (op_at (k, 2)->name, "Memcpy DtoH");
  g_autoptr (LsKineto) two = read_export (
      tables, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 1, 7, 9, 33554432, 1)", diags);
  LS_CHECK (two && two->ops->len == 3 && two->notes->len > 0);
  LS_CHECK (two && strstr (two->notes->pdata[0], "of 2 devices"));
}

static void
check_refused (const char *base, const char *changes, const char *part)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsKineto) k = read_export (base, changes, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK (k == NULL);
  ls_check_impl (strstr (said, part) != NULL, __FILE__, __LINE__, "\"%s\" in \"%s\"", part, said);
}

/* What a file makes SQLite do is not done: views, virtual tables, rows without end. */
static void
files_of_strangers_are_refused (void)
{
  check_refused ("CREATE TABLE songs (title)", "", "an SQLite file without kernels");
  check_refused (
      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i"
      " + 1 FROM n) SELECT i AS start, i AS end, 0 AS streamId FROM n",
      "", "an SQLite file without kernels");
  check_refused ("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)",
                 "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2)", "no column \"streamId\"");
  check_refused (tables, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 1", "lasts from");
  check_refused (tables, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = -5", "lasts from -5");
  check_refused (tables, "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL", "without kernels");
}

LS_TEST_SUITE (LS_TEST (a_trace_is_read), LS_TEST (kernels_of_a_graph_are_known), LS_TEST (gzip_is_unpacked),
               LS_TEST (what_unpacks_to_too_much_is_refused_at_once), LS_TEST (every_cut_is_told),
               LS_TEST (decimals_are_exact), LS_TEST (overlaps_are_noted),
               LS_TEST (streamless_kernels_are_noted), LS_TEST (an_export_is_a_profile),
               LS_TEST (other_releases_have_other_columns), LS_TEST (files_of_strangers_are_refused))
