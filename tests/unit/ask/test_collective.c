/* Pins which GPUs a call is placed on, which sizes and measured rows are timed, that the times are those of
 * network/coll.h, and what a full node and a full leaf cost. On the made-up cluster of tests/golden/data: 2
 * GPUs a node, NVLink of 100 GB/s, 2 NICs of 10 GB/s; 8 nodes a leaf, one rail. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include <lockstep/error.h>

#include "ask/collective/collective_table.h"
#include "job/hardware.h"

/* Knobs as "key=value", ending in NULL. Says why where it fails. */
static LsCollectiveRun *
run (const char *const *knobs, GError **error)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (; *knobs; knobs++) {
    g_auto (GStrv) pair = g_strsplit (*knobs, "=", 2);
    LS_CHECK (ls_collective_spec_set (&spec, pair[0], pair[1], diags));
  }
  LsCollectiveRun *r = ls_collective_run_new (&spec, error);
  ls_collective_spec_clear (&spec);
  return r;
}

#define RUN(...) run ((const char *const[]) { __VA_ARGS__, NULL }, NULL)

static const LsCollectiveRow *
row_of (const LsCollectiveRun *r, guint i)
{
  return &r->table.rows[i];
}

static void
sizes_run_from_min_to_max_by_the_factor (void)
{
  g_autoptr (LsCollectiveRun) by_default = RUN ("cluster=pair", "op=all-reduce");
  g_autoptr (LsCollectiveRun) thrice
      = RUN ("cluster=pair", "op=all-reduce", "min=10B", "max=269B", "factor=3");
  g_autoptr (LsCollectiveRun) small = RUN ("cluster=pair", "op=all-reduce", "max=8B");
  g_autoptr (LsCollectiveRun) large = RUN ("cluster=pair", "op=all-reduce", "min=1TiB");
  if (!LS_CHECK (by_default && thrice && small && large))
    return;
  LS_CHECK_INT (by_default->table.n_rows, ==, 24);
  LS_CHECK_INT (row_of (by_default, 0)->bytes, ==, 1024);
  LS_CHECK_INT (row_of (by_default, 23)->bytes, ==, INT64_C (8) << 30);
  LS_CHECK_INT (thrice->table.n_rows, ==, 3);
  LS_CHECK_INT (row_of (thrice, 2)->bytes, ==, 90);
  LS_CHECK_INT (small->table.n_rows, ==, 1);
  LS_CHECK_INT (row_of (large, 0)->bytes, ==, INT64_C (1) << 40);
}

static void
the_cluster_is_as_large_as_was_asked (void)
{
  g_autoptr (LsCollectiveRun) node = RUN ("cluster=pair", "op=all-reduce", "max=1KiB");
  g_autoptr (LsCollectiveRun) nodes = RUN ("cluster=pair", "op=all-reduce", "nodes=3", "max=1KiB");
  g_autoptr (LsCollectiveRun) gpus = RUN ("cluster=pair", "op=all-reduce", "gpus=5", "max=1KiB");
  if (!LS_CHECK (node && nodes && gpus))
    return;
  LS_CHECK_INT (row_of (node, 0)->n_ranks, ==, 2);
  LS_CHECK_INT (row_of (node, 0)->n_nodes, ==, 1);
  LS_CHECK_INT (row_of (nodes, 0)->n_ranks, ==, 6);
  LS_CHECK_INT (row_of (nodes, 0)->n_nodes, ==, 3);
  LS_CHECK_INT (row_of (gpus, 0)->n_ranks, ==, 5);
  LS_CHECK_INT (row_of (gpus, 0)->n_nodes, ==, 3);
}

/* Time of a call on these GPUs, straight from the network. */
static LsTime
expected (LsCollKind kind, const uint32_t *gpus, uint32_t n, uint32_t n_nodes, uint64_t bytes)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) hardware = ls_hardware_load ("pair", diags);
  g_autoptr (LsCluster) c = ls_hardware_build (hardware, n_nodes, NULL);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  return ls_coll_time_alone (c, ls_coll_plan (c, &hardware->nccl, &request, LS_NETWORK_FLOW, arena));
}

static void
p2p_crosses_nodes_if_there_are_two (void)
{
  g_autoptr (LsCollectiveRun) inside = RUN ("cluster=pair", "op=p2p", "min=1MB", "max=1MB");
  g_autoptr (LsCollectiveRun) across
      = RUN ("cluster=pair", "op=send-recv", "nodes=2", "gpus=2", "min=1MB", "max=1MB");
  if (!LS_CHECK (inside && across))
    return;
  LS_CHECK_STR (row_of (inside, 0)->op, "p2p");
  LS_CHECK_INT (row_of (inside, 0)->n_nodes, ==, 1);
  LS_CHECK_INT (row_of (across, 0)->n_nodes, ==, 2);
  LS_CHECK_INT (row_of (across, 0)->n_ranks, ==, 2);
  LS_CHECK_INT (row_of (inside, 0)->time, ==,
                expected (LS_COLL_SEND_RECV, (uint32_t[]) { 0, 1 }, 2, 2, 1000000));
  LS_CHECK_INT (row_of (across, 0)->time, ==,
                expected (LS_COLL_SEND_RECV, (uint32_t[]) { 0, 2 }, 2, 2, 1000000));
}

static void
fidelities_of_a_size_are_neighbours (void)
{
  g_autoptr (LsCollectiveRun) r = RUN ("cluster=pair", "op=all-reduce", "network=all", "max=2KiB");
  if (!LS_CHECK (r != NULL))
    return;
  const LsCollectiveTable *t = &r->table;
  LS_CHECK_INT (t->n_networks, >=, 2);
  LS_CHECK_INT (t->n_rows, ==, 2 * t->n_networks);
  LS_CHECK_STR (t->rows[0].network, "flow");
  LS_CHECK_STR (t->rows[1].network, "alphabeta");
  LS_CHECK_INT (t->rows[t->n_networks - 1].bytes, ==, 1024);
}

static gboolean
has_gpus (const char *text, const uint32_t *wanted, guint n)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean ok = ls_collective_spec_set (&spec, "gpus", text, diags) && spec.gpus->len == n
      && memcmp (spec.gpus->data, wanted, n * sizeof *wanted) == 0;
  ls_collective_spec_clear (&spec);
  return ok;
}

static void
numbers_of_gpus_are_lists_and_doublings (void)
{
  LS_CHECK (has_gpus ("8", (uint32_t[]) { 8 }, 1));
  LS_CHECK (has_gpus ("8, 2,4,2", (uint32_t[]) { 2, 4, 8 }, 3));
  LS_CHECK (has_gpus ("3..24", (uint32_t[]) { 3, 6, 12, 24 }, 4));
  LS_CHECK (has_gpus ("1..7,6", (uint32_t[]) { 1, 2, 4, 6 }, 4));
  LS_CHECK (has_gpus ("1048576..1048576", (uint32_t[]) { 1048576 }, 1));
  static const char *const wrong[]
      = { "", "0", "2,", "8..2", "..8", "2..", "2...8", "2..4..8", "-1", "1048577", "all" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    LS_CHECK (!has_gpus (wrong[i], NULL, 0));
}

static void
each_number_of_gpus_has_its_own_nodes (void)
{
  g_autoptr (LsCollectiveRun) r
      = RUN ("cluster=pair", "op=all-reduce", "gpus=2..8,5", "min=1KiB", "max=2KiB", "factor=2");
  if (!LS_CHECK (r != NULL))
    return;
  const LsCollectiveTable *t = &r->table;
  static const uint32_t gpus[] = { 2, 4, 5, 8 }, nodes[] = { 1, 2, 3, 4 };
  LS_CHECK (t->is_scaling);
  LS_CHECK_INT (t->gpus_per_node, ==, 2);
  LS_CHECK_INT (t->gpus_per_leaf, ==, 16);
  LS_CHECK_STR (t->title, "all-reduce on 2 to 8 GPUs of pair");
  if (!LS_CHECK_INT (t->n_rows, ==, 2 * G_N_ELEMENTS (gpus)))
    return;
  for (guint i = 0; i < t->n_rows; i++) {
    LS_CHECK_INT (t->rows[i].n_ranks, ==, gpus[i / 2]);
    LS_CHECK_INT (t->rows[i].n_nodes, ==, nodes[i / 2]);
    LS_CHECK_INT (t->rows[i].bytes, ==, i % 2 == 0 ? 1024 : 2048);
  }
}

/* Seconds of a terabyte, beside which latency is nothing, on 16 GPUs, which fill a leaf, and on 32 and 64. */
static gboolean
measure (const char *cluster, const char *op, double ret_seconds[3])
{
  g_autofree char *where = g_strconcat ("cluster=", cluster, NULL), *what = g_strconcat ("op=", op, NULL);
  const char *algorithm = strcmp (op, "all-reduce") == 0 ? "algorithm=ring" : "algorithm=pairwise";
  g_autoptr (LsCollectiveRun) r = run (
      (const char *const[]) { where, what, algorithm, "gpus=16..64", "min=1TB", "max=1TB", NULL }, NULL);
  if (!LS_CHECK (r != NULL) || !LS_CHECK_INT (r->table.n_rows, ==, 3))
    return FALSE;
  for (guint i = 0; i < 3; i++)
    ret_seconds[i] = ls_time_to_s (row_of (r, i)->time);
  return TRUE;
}

#define PORT      10e9 /* bytes/s of a NIC, one for each GPU */
#define NODE_GPUS 2
#define LEAF_GPUS 16
#define TERABYTE  1e12

/* Every GPU has the same for each other one. What leaves its node passes its port; what
 * leaves its leaf, its share of the uplinks, a quarter of a port. */
static void
all_to_all_falls_where_leaves_are_full (void)
{
  double seconds[3];
  if (!measure ("pair:fabric.oversubscription=4", "all-to-all", seconds))
    return;
  for (guint i = 0; i < 3; i++) {
    double n = LEAF_GPUS << i, port = (n - NODE_GPUS) / n / PORT, uplinks = (n - LEAF_GPUS) / n / (PORT / 4);
    LS_CHECK_NEAR (seconds[i], TERABYTE * MAX (port, uplinks), 1e-3 * seconds[i]);
  }
  LS_CHECK_NEAR (seconds[1] / seconds[0], 16.0 / 7, 1e-3);
}

/* A ring leaves a leaf once, with what the ports of one node carry: 20 GB/s. Of the 160 of
 * a leaf 4:1 leaves 40 upwards, enough; 16:1 leaves 10, through which go 2 (n-1)/n of the array. */
static void
a_ring_falls_only_where_uplinks_are_fewer_than_ports_of_a_node (void)
{
  double full[3], quarter[3], sixteenth[3];
  if (!measure ("pair", "all-reduce", full)
      || !measure ("pair:fabric.oversubscription=4", "all-reduce", quarter)
      || !measure ("pair:fabric.oversubscription=16", "all-reduce", sixteenth))
    return;
  for (guint i = 0; i < 3; i++) {
    double n = LEAF_GPUS << i, through = 2 * (n - 1) / n * TERABYTE / (LEAF_GPUS * PORT / 16);
    LS_CHECK_NEAR (quarter[i], full[i], 1e-3 * full[i]);
    LS_CHECK_NEAR (sixteenth[i], i == 0 ? full[i] : through, 1e-3 * full[i]);
  }
}

/* Writes a CSV, compares with it, removes it. */
static LsCollectiveRun *
compare (const char *csv, const char *knob, GError **error)
{
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("ls-measured-XXXXXX.csv", &path, NULL);
  LS_CHECK (fd >= 0 && g_close (fd, NULL) && g_file_set_contents (path, csv, -1, NULL));
  g_autofree char *compared = g_strconcat ("compare=", path, NULL);
  LsCollectiveRun *r = run ((const char *const[]) { compared, knob, NULL }, error);
  g_unlink (path);
  return r;
}

#define HEADER "cluster,trust,op,gpus,nodes,size_bytes,time_us\n"

/* 2 GPUs on 2 nodes are one of each, not the two of the first. */
static void
measured_gpus_are_spread_over_their_nodes (void)
{
  g_autoptr (LsCollectiveRun) r
      = compare (HEADER "pair,A,all-gather,2,2,1000000,100\npair,A,all-gather,2,1,1000000,100\n", NULL, NULL);
  if (!LS_CHECK (r != NULL))
    return;
  LS_CHECK_INT (row_of (r, 0)->time, ==, expected (LS_COLL_ALL_GATHER, (uint32_t[]) { 0, 2 }, 2, 2, 1000000));
  LS_CHECK_INT (row_of (r, 1)->time, ==, expected (LS_COLL_ALL_GATHER, (uint32_t[]) { 0, 1 }, 2, 1, 1000000));
  LS_CHECK_INT (row_of (r, 0)->time, >, row_of (r, 1)->time);
}

static void
errors_are_means_of_each_family_and_of_all (void)
{
  double us = (double) expected (LS_COLL_SEND_RECV, (uint32_t[]) { 0, 1 }, 2, 1, 1 << 20) / LS_US;
  g_autofree char *csv = g_strdup_printf (HEADER "pair,A,p2p,2,1,%d,%.17g\npair,A,p2p,2,1,%d,%.17g\n",
                                          1 << 20, us / 1.1, 1 << 20, us / 0.7);
  g_autoptr (LsCollectiveRun) r = compare (csv, NULL, NULL);
  if (!LS_CHECK (r != NULL))
    return;
  const LsCollectiveTable *t = &r->table;
  if (!LS_CHECK_INT (t->n_families, ==, 1))
    return;
  LS_CHECK_STR (t->families[0].name, "pair/p2p");
  LS_CHECK_NEAR (t->families[0].all.mape_pct, 20.0, 1e-9);
  LS_CHECK_NEAR (t->families[0].all.bias_pct, -10.0, 1e-9);
  LS_CHECK_NEAR (t->families[0].all.worst_pct, -30.0, 1e-9);
  LS_CHECK_NEAR (t->total.large.mape_pct, 20.0, 1e-9);
  LS_CHECK_INT (t->total.small.n, ==, 0);
}

static void
rows_that_cannot_be_simulated_are_counted_with_the_reason (void)
{
  g_autoptr (LsCollectiveRun) r = compare (
      HEADER
      "pair,A,p2p,2,1,8,9\n,A,p2p,2,1,8,9\nnowhere,A,p2p,2,1,8,9\nnowhere,A,p2p,2,1,9,9\npair,A,p2p,3,1,8,9\n"
      "pair,B,p2p,2,1,8,9\n",
      NULL, NULL);
  if (!LS_CHECK (r != NULL))
    return;
  const GPtrArray *notes = r->notes;
  LS_CHECK_INT (r->table.n_rows, ==, 1);
  LS_CHECK_INT (r->table.n_skipped, ==, 4);
  if (!LS_CHECK_INT (notes->len, ==, 3))
    return;
  LS_CHECK_STR (g_ptr_array_index (notes, 0), "1 row skipped: the cluster is not known");
  LS_CHECK_STR (g_ptr_array_index (notes, 1),
                "2 rows skipped: no cluster is named \"nowhere\" in topologies/");
  LS_CHECK_STR (g_ptr_array_index (notes, 2), "1 row skipped: a node of pair has 2 GPUs; got 3 on 1");
}

static guint
n_compared (const char *knob)
{
  g_autoptr (LsCollectiveRun) r = compare (
      HEADER "pair,A,p2p,2,1,8,9\npair,B,p2p,2,2,1024,9\npair,A,all-reduce,4,2,2048,9\n", knob, NULL);
  return r ? r->table.n_rows : 0;
}

static void
flags_select_measured_rows (void)
{
  LS_CHECK_INT (n_compared (NULL), ==, 2);
  LS_CHECK_INT (n_compared ("trust=all"), ==, 3);
  LS_CHECK_INT (n_compared ("trust=B"), ==, 1);
  LS_CHECK_INT (n_compared ("trust=C"), ==, 0);
  LS_CHECK_INT (n_compared ("op=send-recv"), ==, 1);
  LS_CHECK_INT (n_compared ("op=all-reduce"), ==, 1);
  LS_CHECK_INT (n_compared ("gpus=4"), ==, 1);
  LS_CHECK_INT (n_compared ("gpus=2,4"), ==, 2);
  LS_CHECK_INT (n_compared ("nodes=1"), ==, 1);
  LS_CHECK_INT (n_compared ("min=9B"), ==, 1);
  LS_CHECK_INT (n_compared ("max=8B"), ==, 1);
  LS_CHECK_INT (n_compared ("cluster=pair"), ==, 2);
  LS_CHECK_INT (n_compared ("cluster=single"), ==, 0);
}

/* Who must have all of a block at the end, of n ranks. */
static gboolean
must_hold (LsCollKind kind, uint32_t n, uint32_t rank, uint32_t block)
{
  switch (kind) {
  case LS_COLL_REDUCE:
  case LS_COLL_GATHER:
    return rank == 0;
  case LS_COLL_ALL_TO_ALL:
    return block % n == rank;
  default:
    return TRUE;
  }
}

/* A block is whole with the contributions of all that have something of it at the start. Parts may lie in any
 * order, so of a reduce-scatter each rank must have as many whole blocks as any other. */
static void
check_ends (const LsCollectiveMessages *m, LsCollKind kind, const char *algorithm)
{
  for (uint32_t rank = 0; rank < m->n; rank++) {
    uint32_t n_whole = 0;
    for (uint32_t block = 0; block < m->n_blocks; block++) {
      uint32_t whole = 0;
      for (uint32_t other = 0; other < m->n; other++)
        whole |= ls_collective_messages_held (m, 0, other, block);
      gboolean is_whole = ls_collective_messages_held (m, m->n_rounds, rank, block) == whole;
      n_whole += is_whole;
      if (kind != LS_COLL_REDUCE_SCATTER && must_hold (kind, m->n, rank, block) && !LS_CHECK (is_whole))
        g_printerr ("%s, rank %u, block %u\n", algorithm, rank, block);
    }
    if (kind == LS_COLL_REDUCE_SCATTER)
      LS_CHECK_INT (n_whole, >=, m->n_blocks / m->n);
  }
}

static void
messages_bring_every_block_where_it_belongs (void)
{
  static const LsCollKind kinds[]
      = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER, LS_COLL_BROADCAST,
          LS_COLL_REDUCE,     LS_COLL_ALL_TO_ALL, LS_COLL_GATHER,         LS_COLL_BARRIER };
  guint n = 0;
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (const char *const *algorithm = ls_coll_algorithms (); *algorithm; algorithm++)
      for (guint n_gpus = 2; n_gpus <= 8; n_gpus += 2) {
        g_autofree char *op = g_strdup_printf ("op=%s", ls_coll_kind_name (kinds[k]));
        g_autofree char *by = g_strdup_printf ("algorithm=%s", *algorithm);
        g_autofree char *gpus = g_strdup_printf ("gpus=%u", n_gpus);
        g_autoptr (LsCollectiveRun) r = RUN ("cluster=pair", op, by, gpus, "messages=1");
        if (!r)
          continue; /* the algorithm does not do this */
        n++;
        check_ends (r->table.messages, kinds[k], *algorithm);
      }
  LS_CHECK_INT (n, >=, 40);
}

/* Reduce-scatter by a ring in two directions: n - 1 rounds, in each every rank sends a block both ways, and the
 * receiver adds it. */
static void
a_ring_sends_a_block_each_way_in_each_round (void)
{
  g_autoptr (LsCollectiveRun) r
      = RUN ("cluster=pair", "op=reduce-scatter", "algorithm=ring", "gpus=4", "messages=1", "min=4KiB");
  if (!LS_CHECK (r != NULL))
    return;
  const LsCollectiveMessages *m = r->table.messages;
  LS_CHECK_INT (m->n_rounds, ==, 3);
  LS_CHECK_INT (m->n_blocks, ==, 8);
  LS_CHECK (m->block_bytes == 512);
  if (!LS_CHECK_INT (m->messages->len, ==, 24))
    return;
  for (guint i = 0; i < m->messages->len; i++) {
    const LsCollectiveMessage *message = &g_array_index (m->messages, LsCollectiveMessage, i);
    LS_CHECK_INT (message->round, ==, i / 8);
    LS_CHECK_INT (message->send.n, ==, 1);
    LS_CHECK (message->send.reduces);
  }
  /* after r rounds each rank has blocks with r + 1 contributions, and none with more */
  for (uint32_t round = 0; round <= 3; round++)
    for (uint32_t rank = 0; rank < 4; rank++) {
      guint most = 0;
      for (uint32_t block = 0; block < 8; block++)
        most = MAX (most, (guint) __builtin_popcount (ls_collective_messages_held (m, round, rank, block)));
      LS_CHECK_INT (most, ==, round + 1);
    }
}

static void
messages_are_of_one_call (void)
{
  static const struct {
    const char *knob;
    int code;
  } wrong[] = {
    { "gpus=2,4", LS_ERROR_USAGE },    { "max=1MiB", LS_ERROR_USAGE }, { "factor=2", LS_ERROR_USAGE },
    { "network=all", LS_ERROR_USAGE }, { "gpus=32", LS_ERROR_LIMIT },
  };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (LsCollectiveRun) r = run (
        (const char *const[]) { "cluster=pair", "op=all-reduce", "messages=1", wrong[i].knob, NULL }, &error);
    LS_CHECK (r == NULL && g_error_matches (error, LS_ERROR, wrong[i].code));
  }
}

LS_TEST_SUITE_WITH (
    ls_test_golden_data, NULL, LS_TEST (sizes_run_from_min_to_max_by_the_factor),
    LS_TEST (the_cluster_is_as_large_as_was_asked), LS_TEST (p2p_crosses_nodes_if_there_are_two),
    LS_TEST (fidelities_of_a_size_are_neighbours), LS_TEST (numbers_of_gpus_are_lists_and_doublings),
    LS_TEST (each_number_of_gpus_has_its_own_nodes), LS_TEST (all_to_all_falls_where_leaves_are_full),
    LS_TEST (a_ring_falls_only_where_uplinks_are_fewer_than_ports_of_a_node),
    LS_TEST (measured_gpus_are_spread_over_their_nodes), LS_TEST (errors_are_means_of_each_family_and_of_all),
    LS_TEST (rows_that_cannot_be_simulated_are_counted_with_the_reason), LS_TEST (flags_select_measured_rows),
    LS_TEST (messages_bring_every_block_where_it_belongs),
    LS_TEST (a_ring_sends_a_block_each_way_in_each_round), LS_TEST (messages_are_of_one_call))
