/* Pins the columns of a file of measured collectives. Wrong files are in
 * tests/reject/collectives. */
#include "ls_test.h"

#include <string.h>

#include "data/measured/read_collectives.h"

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

LS_TEST_MAIN ("read_collectives", LS_TEST (a_row_is_one_measured_call),
              LS_TEST (trust_and_cluster_may_be_unknown), LS_TEST (the_measured_rows_are_read))
