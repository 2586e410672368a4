/* Pins that an export of Nsight Systems becomes what a profile of torch.profiler does: names, streams, launches,
 * syncs, steps, collectives by NCCL's own ranges; that columns which a release lacks are done without; and
 * what of strangers' SQLite files is refused. The exports are made up here. */
#include "ls_test.h"

#include <sqlite3.h>
#include <string.h>

#include "analysis/op_class.h"
#include "data/measured/nsys_reader.h"

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
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3');";

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
  LS_CHECK_STR (k->gpu, "NVIDIA H100 80GB HBM3");
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

LS_TEST_SUITE (LS_TEST (an_export_is_a_profile), LS_TEST (other_releases_have_other_columns),
               LS_TEST (files_of_strangers_are_refused))
