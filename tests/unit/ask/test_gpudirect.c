/* Pins what a network without GPUDirect, or over TCP, does to collectives: on every shipped cluster of
 * servers none is faster than without PXN (which it has not), and small ones are slower; a large one over all
 * nodes moves no more than the links from switch to CPU carry of it; nothing changes inside a node; and what
 * crosses nodes over TCP is said to be a bound unless the user gives figures. */
#include "ls_test.h"

#include <string.h>

#include "ask/collective/collective_sizes.h"
#include "data/datadir.h"
#include "data/machines/machines.h"

static LsCollectiveRun *
run_with (const char *cluster, const char *changes, const char *op, uint32_t n_gpus, const char *nccl)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strconcat (cluster, changes, NULL), *gpus = g_strdup_printf ("%u", n_gpus);
  LS_CHECK (ls_collective_spec_set (&spec, "cluster", name, diags)
            && ls_collective_spec_set (&spec, "op", op, diags)
            && ls_collective_spec_set (&spec, "gpus", gpus, diags)
            && ls_collective_spec_set (&spec, "min", "64KiB", diags)
            && ls_collective_spec_set (&spec, "max", "1GiB", diags)
            && ls_collective_spec_set (&spec, "factor", "128", diags));
  if (nccl)
    LS_CHECK (ls_collective_spec_set (&spec, "nccl", nccl, diags));
  LsCollectiveRun *r = ls_collective_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_collective_spec_clear (&spec);
  return r;
}

static void
check_rows (const char *cluster, const char *op, uint32_t n_gpus, bool is_same)
{
  g_autoptr (LsCollectiveRun) past = run_with (cluster, ":fabric.pxn=false", op, n_gpus, NULL);
  g_autoptr (LsCollectiveRun) through = run_with (cluster, ":node.nics.gpudirect=false", op, n_gpus, NULL);
  g_autoptr (LsCollectiveRun) tcp = run_with (cluster, ":node.nics.transport=tcp", op, n_gpus, NULL);
  if (!past || !through || !tcp)
    return;
  const LsCollectiveTable *a = ls_collective_run_table (past), *b = ls_collective_run_table (through),
                          *c = ls_collective_run_table (tcp);
  for (guint i = 0; i < a->n_rows; i++) {
    bool ok = is_same ? b->rows[i].time == a->rows[i].time : b->rows[i].time >= a->rows[i].time + (i == 0);
    ls_check_impl (ok && c->rows[i].time == b->rows[i].time, __FILE__, __LINE__,
                   "%s of %u GPUs of %s, row %u", op, n_gpus, cluster, i);
  }
  LS_CHECK_INT (ls_collective_run_notes (through)->len, ==, 0);
  LS_CHECK_INT (ls_collective_run_notes (tcp)->len, ==, !is_same);
}

static void
nothing_is_faster_through_host_memory (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  guint n = 0;
  for (guint i = 0; i < entries->len; i++) {
    const char *name = ((LsDataEntry *) entries->pdata[i])->name;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec;
    if (!LS_CHECK (ls_cluster_load (name, &spec, diags)))
      continue;
    bool has_network = spec.interior == LS_INTERIOR_SERVER && spec.nics > 0 && spec.transport == LS_NIC_RDMA;
    for (guint k = 0; has_network && k < 3; k++)
      check_rows (name, ((const char *const[]) { "all-reduce", "all-to-all", "all-gather" })[k],
                  2 * spec.gpus_per_node, false);
    if (has_network)
      check_rows (name, "all-reduce", spec.gpus_per_node, true);
    n += has_network;
    ls_cluster_spec_clear (&spec);
  }
  LS_CHECK (n > 10);
}

/* Two of the eight GPUs share a PCIe switch of dgx-h100, and so its link to the CPU, 55.4 GB/s: what one
 * sends goes up and what its NIC takes comes down; what it receives does both the other way: 2 x 2 streams
 * over each direction. */
static void
links_to_the_cpu_carry_all_of_it (void)
{
  g_autoptr (LsCollectiveRun) r = run_with ("dgx-h100", ":node.nics.gpudirect=false", "all-gather", 16, NULL);
  if (!r)
    return;
  const LsCollectiveTable *t = ls_collective_run_table (r);
  const LsCollectiveRow *last = &t->rows[t->n_rows - 1];
  double bytes = (double) last->bytes / 2,
         seconds = (double) last->time / 1e12; /* half of the array crosses, once over 8 NICs */
  LS_CHECK (bytes / 8 / seconds < 63e9 * 0.88 / 4);
  LS_CHECK (bytes / 8 / seconds > 0.5 * 63e9 * 0.88 / 4);
}

static void
figures_of_the_user_are_no_bound (void)
{
  g_autoptr (LsCollectiveRun) r
      = run_with ("dgx-h100", ":node.nics.transport=tcp", "all-reduce", 16, "nccl-h100");
  LS_CHECK (r && ls_collective_run_notes (r)->len == 0);
}

LS_TEST_MAIN ("gpudirect", LS_TEST (nothing_is_faster_through_host_memory),
              LS_TEST (links_to_the_cpu_carry_all_of_it), LS_TEST (figures_of_the_user_are_no_bound))
