/* Pins which GPUs the ranks of a job have: lists of nodes as SLURM writes them, names of the cluster's nodes,
 * nodes and GPUs at random by a seed, and what is refused, with its place. */
#include "ls_test.h"

#include <string.h>

#include "base/order.h"
#include "cluster/allocation.h"

static LsClusterSpec
nodes_of_4 (uint32_t n_nodes)
{
  return (LsClusterSpec) { .name = (char *) "four", .n_nodes = n_nodes, .gpus_per_node = 4 };
}

static char *
names_of (const char *list)
{
  g_autofree char *why = NULL;
  g_autoptr (GPtrArray) names = ls_node_list_names (list, &why);
  if (!names)
    return g_strdup_printf ("! %s", why);
  g_ptr_array_add (names, NULL);
  return g_strjoinv (" ", (char **) names->pdata);
}

static void
lists_are_read_as_slurm_writes_them (void)
{
  const char *const lists[][2] = {
    { "node7", "node7" },
    { "node[001-003,072]", "node001 node002 node003 node072" },
    { "node[8-11]", "node8 node9 node10 node11" },
    { "a[1-2], b3", "a1 a2 b3" },
    { "r[0-1]n[0-1]x", "r0n0x r0n1x r1n0x r1n1x" },
    { "0-2,9", "0 1 2 9" },
    { "gpu-a-[1,3]", "gpu-a-1 gpu-a-3" },
    { "", "! \"\": expected a name of a node between commas" },
    { "a,,b", "! \"\": expected a name of a node between commas" },
    { "n[1-", "! \"n[1-\": expected ] after [" },
    { "n1-3]", "! \"n1-3]\": expected [ before ]" },
    { "n[]", "! \"n[]\": expected numbers between [ and ]" },
    { "n[4-2]", "! \"4-2\": the range ends before it begins" },
    { "n[1-x]", "! \"1-x\": expected a number or a range such as 001-064" },
    { "n[0-999999999]", "! \"n1048576\": more than 2^20 nodes" },
    { "n[1][1][1][1][1][1][1][1]", "n11111111" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    g_autofree char *names = names_of (lists[i][0]);
    LS_CHECK_STR (names, lists[i][1]);
  }
}

/* Neither the stack nor the memory follows what is written. */
static void
long_names_are_refused (void)
{
  g_autoptr (GString) brackets = g_string_new ("n"), name = g_string_new (NULL);
  for (guint i = 0; i < 100000; i++)
    g_string_append (brackets, "[1]");
  g_autofree char *of_brackets = names_of (brackets->str);
  LS_CHECK (g_str_has_suffix (of_brackets, ": more than 8 brackets in a name"));
  for (guint i = 0; i < 254; i++)
    g_string_append_c (name, 'n');
  g_string_append (name, "[8-10]");
  g_autofree char *of_long = names_of (name->str);
  LS_CHECK (g_str_has_suffix (of_long, ": a name of more than 255 characters"));
}

/* The GPUs of so many ranks, as text; what is wrong behind "!". */
static char *
gpus_of (const LsAllocation *a, const LsClusterSpec *spec, uint32_t n_ranks)
{
  g_autoptr (GError) error = NULL;
  g_autofree uint32_t *gpus = g_new (uint32_t, n_ranks);
  if (!ls_allocation_gpus (a, spec, n_ranks, gpus, &error))
    return g_strdup_printf ("! %s", error->message);
  GString *text = g_string_new (NULL);
  for (uint32_t r = 0; r < n_ranks; r++)
    g_string_append_printf (text, "%s%u", r > 0 ? " " : "", gpus[r]);
  return g_string_free (text, FALSE);
}

static char *
gpus_of_text (const char *placement, const LsClusterSpec *spec, uint32_t n_ranks)
{
  g_autofree char *why = NULL;
  g_autoptr (LsAllocation) a = ls_allocation_parse (placement, &why);
  return a ? gpus_of (a, spec, n_ranks) : g_strdup_printf ("! %s", why);
}

static void
ranks_fill_the_nodes_of_a_list (void)
{
  const LsClusterSpec spec = nodes_of_4 (4);
  const struct {
    const char *placement;
    uint32_t n_ranks;
    const char *gpus;
  } cases[] = {
    { "n[2,0]", 8, "8 9 10 11 0 1 2 3" },
    { "n[2,0]", 6, "8 9 10 11 0 1" }, /* a part of what it has */
    { "b,a:a,b,c,d", 5, "4 5 6 7 0" },
    { "n[1-2]:n[1-4]", 4, "0 1 2 3" },
    { "n[1-2]:n[1-3]", 4, "! error: /placement: a placement on a cluster of 3 nodes: this one has 4" },
    { "cyclic", 6, "0 4 1 5 2 6" },
    { "n[0,4]", 4, "! error: /placement: node 4: the cluster has 4, 0 to 3" },
    { "n4", 4,
      "! error: /placement: node 4: the cluster has 4, 0 to 3; names that count from 1 are NODES:ALL-NODES" },
    { "n[1-4]", 8, "0 1 2 3 4 5 6 7" }, /* as many clusters of SLURM count */
    { "node[03,01]", 8, "8 9 10 11 0 1 2 3" },
    { "n[2-3]", 4, "8 9 10 11" },
    { "1-2", 4, "4 5 6 7" }, /* numbers of nodes, no names */
    { "n[1,1]", 8, "! error: /placement: node 0 is in the list twice" },
    { "n[1-2]", 9, "! error: /placement: 9 ranks: the placement has GPUs for 8" },
    { "a:a,b,b", 4, "! \"b\" is twice among all nodes of the cluster" },
    { "d:a,b,c", 4, "! \"d\" is none of the cluster's 3 nodes" },
    { "a", 4, "! \"a\" does not end in a number: say which nodes the cluster has, as NODES:ALL-NODES" },
    { "a1,b2", 4,
      "! \"a1\" and \"b2\" begin differently: say which nodes the cluster has, as NODES:ALL-NODES" },
    { "random:x", 4, "! \"random:x\": expected a whole number below 2^32 after the colon" },
    { "random:1", 20, "! error: /placement: 20 ranks: the placement has GPUs for 16" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *gpus = gpus_of_text (cases[i].placement, &spec, cases[i].n_ranks);
    LS_CHECK_STR (gpus, cases[i].gpus);
  }
  g_autofree char *none = gpus_of (NULL, &spec, 5);
  LS_CHECK_STR (none, "0 1 2 3 4");
}

/* Lists of one cluster count alike; how, is noted where it is not said. */
static void
lists_count_alike (void)
{
  static const struct {
    const char *a, *b;
    uint32_t first_a, first_b;
    const char *note; /* of a */
  } cases[] = {
    { "n[1-2]", "n[3-4]", 0, 2, "count from 1" },
    { "n[1-2]", "n[0,3]", 1, 0, NULL },
    { "n[3-4]", "n[5-6]", 3, 5, "assumed to count from 0" },
    { "1-2", "n[1-2]", 1, 1, NULL },
    { "n[3-4]:n[1-8]", "n[1-2]:n[1-8]", 2, 0, NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *why = NULL;
    g_autoptr (LsAllocation) a = ls_allocation_parse (cases[i].a, &why),
                             b = ls_allocation_parse (cases[i].b, &why);
    LsAllocation *all[] = { a, NULL, b };
    ls_allocations_agree (all, G_N_ELEMENTS (all));
    const char *note = ls_allocation_note (a);
    LS_CHECK_INT (a->seats[0].node, ==, cases[i].first_a);
    LS_CHECK_INT (b->seats[0].node, ==, cases[i].first_b);
    LS_CHECK (cases[i].note ? note && strstr (note, cases[i].note) : !note);
  }
  LS_CHECK (!ls_allocation_note (NULL));
}

/* Jobs leave GPUs of a node free (cluster/cluster.h): a list does too. */
static void
a_list_keeps_to_what_jobs_take_of_a_node (void)
{
  LsClusterSpec spec = nodes_of_4 (3);
  spec.taken_per_node = 3;
  g_autofree char *gpus = gpus_of_text ("2,1", &spec, 6);
  LS_CHECK_STR (gpus, "8 9 10 4 5 6");
}

static void
a_seed_draws_nodes_or_gpus (void)
{
  const LsClusterSpec spec = nodes_of_4 (64);
  const char *const kinds[] = { "random", "random-gpus" };
  for (int kind = 0; kind < 2; kind++)
    for (uint32_t seed = 0; seed < 50; seed++) {
      g_autofree char *text = g_strdup_printf ("%s:%u", kinds[kind], seed), *why = NULL;
      g_autoptr (LsAllocation) a = ls_allocation_parse (text, &why);
      uint32_t gpus[256], again[256], sorted[256];
      LS_CHECK (ls_allocation_gpus (a, &spec, 256, gpus, NULL)
                && ls_allocation_gpus (a, &spec, 256, again, NULL));
      LS_CHECK (memcmp (gpus, again, sizeof gpus) == 0);
      uint32_t n_whole = 0;
      for (uint32_t r = 0; r < 256; r += 4)
        n_whole += gpus[r] % 4 == 0 && gpus[r + 3] == gpus[r] + 3;
      LS_CHECK (kind == 0 ? n_whole == 64 : n_whole < 8);
      g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (uint32_t));
      g_array_append_vals (all, gpus, 256);
      g_array_sort (all, ls_compare_uint32);
      memcpy (sorted, all->data, sizeof sorted);
      for (uint32_t r = 0; r < 256; r++)
        LS_CHECK_INT (sorted[r], ==, r);
    }
}

/* A GPU for each rank: all mistakes, each with its line. */
static void
seats_are_checked_where_they_stand (void)
{
  const LsClusterSpec spec = nodes_of_4 (2);
  const LsSeat wrong[] = { { 0, 3, 3, 5 }, { 1, 0, 4, 5 }, { 0, 3, 5, 5 }, { 2, 0, 6, 5 }, { 1, 4, 7, 5 } };
  g_autoptr (LsAllocation) a
      = ls_allocation_new (LS_ALLOCATION_RANKS, g_memdup2 (wrong, sizeof wrong), 5, "place.json");
  g_autofree char *said = gpus_of (a, &spec, 5);
  LS_CHECK_STR (said,
                "! place.json:5:5: error: rank 2: GPU 3 of node 0 has rank 0 already\n"
                "place.json:6:5: error: rank 3: node 2: the cluster has 2, 0 to 1\n"
                "place.json:7:5: error: rank 4: GPU 4 of node 1: a node has 4, 0 to 3");
  a->n_seats = 2;
  g_autofree char *gpus = gpus_of (a, &spec, 2);
  LS_CHECK_STR (gpus, "3 4");
  LS_CHECK_INT (ls_allocation_cluster_nodes (a), ==, 2);
  LS_CHECK_INT (ls_allocation_n_ranks (a, &spec), ==, 2);
}

/* Nodes of 4, 2, 4 and 4, of which node 1 is of another kind: accelerators 0 to 3, 4 and 5, 6 to 9, 10 to 13. */
static void
nodes_of_unequal_size_have_their_own_seats (void)
{
  LsClusterSpec spec = nodes_of_4 (4), two = nodes_of_4 (1);
  two.gpus_per_node = 2;
  LsOtherNodes other = { .ranges = g_array_new (FALSE, FALSE, sizeof (LsNodeRange)), .spec = &two };
  g_array_append_val (other.ranges, ((LsNodeRange) { 1, 1 }));
  spec.others = g_array_new (FALSE, FALSE, sizeof (LsOtherNodes));
  g_array_append_val (spec.others, other);
  const struct {
    const char *placement;
    uint32_t n_ranks;
    const char *gpus;
  } cases[] = {
    { "n[2,1,0]", 7, "6 7 8 9 4 5 0" },
    { "n[1,0]", 7, "! error: /placement: 7 ranks: the placement has GPUs for 6" },
    { "cyclic", 10, "0 4 6 1 5 7 2 8 3 9" }, /* the full node is left out of the turn */
    { "cyclic", 15, "! error: /placement: 15 ranks: the placement has GPUs for 14" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *gpus = gpus_of_text (cases[i].placement, &spec, cases[i].n_ranks);
    LS_CHECK_STR (gpus, cases[i].gpus);
  }
  const LsSeat seats[] = { { 3, 3, 3, 5 }, { 1, 2, 4, 5 } };
  g_autoptr (LsAllocation) a
      = ls_allocation_new (LS_ALLOCATION_RANKS, g_memdup2 (seats, sizeof seats), 2, "place.json");
  g_autofree char *said = gpus_of (a, &spec, 2);
  LS_CHECK_STR (said, "! place.json:4:5: error: rank 1: GPU 2 of node 1: that has 2, 0 to 1");
  const struct {
    uint32_t n_gpus, n_nodes;
  } fits[] = { { 4, 1 }, { 5, 2 }, { 6, 2 }, { 7, 3 }, { 14, 4 }, { 15, 5 } };
  for (guint i = 0; i < G_N_ELEMENTS (fits); i++) {
    LsClusterSpec fit = spec;
    ls_cluster_spec_fit (&fit, fits[i].n_gpus);
    LS_CHECK_INT (fit.n_nodes, ==, fits[i].n_nodes);
  }
  const uint32_t taken[] = { 3, 1 }; /* of these two nodes the second is the small one */
  LsSeats s;
  ls_seats_init (&s, &spec);
  LS_CHECK (s.n_gpus == 14 && s.per_node == 4 && ls_seats_common (&s) == 2);
  LS_CHECK (ls_seats_node (&s, 5) == 1 && ls_seats_local (&s, 5) == 1 && ls_seats_first (&s, 2) == 6);
  ls_seats_clear (&s);
  ls_cluster_spec_take_nodes (&spec, taken, 2);
  spec.n_nodes = 2;
  ls_seats_init (&s, &spec);
  LS_CHECK (s.n_gpus == 6 && ls_seats_in_node (&s, 0) == 4 && ls_seats_in_node (&s, 1) == 2);
  ls_seats_clear (&s);
  g_array_unref (g_array_index (spec.others, LsOtherNodes, 0).ranges);
  g_array_unref (spec.others);
}

/* --- racks ------------------------------------------------------------------------------------------ */

/* Pins how a job lies in racks: which GPUs whole segments of trays take, when the segment of a cluster's file
 * counts, what is refused, and that a cluster of one tray a node knows no segments. */

/* Racks of 6 trays with 4 GPUs, of which jobs take 4 together. */
static LsClusterSpec
racks (uint32_t segment, bool is_asked)
{
  return (LsClusterSpec) { .name = (char *) "racks",
                           .n_nodes = 1,
                           .gpus_per_node = 24,
                           .server.cpu_boards = 6,
                           .segment = segment,
                           .segment_is_asked = is_asked };
}

static const struct {
  uint32_t segment;
  bool is_asked;
  uint32_t n_nodes, n_gpus; /* 0: not given */
  uint32_t taken, n_fit;    /* GPUs of a rack; racks that hold the job */
} jobs[] = {
  { 0, false, 0, 48, 24, 2 },                             /* nobody says anything: racks are filled */
  { 4, false, 0, 48, 16, 3 },                             /* three segments of 16 */
  { 4, false, 0, 32, 16, 2 }, { 4, false, 0, 24, 24, 1 }, /* fits into one rack */
  { 4, false, 0, 16, 24, 1 }, { 4, false, 0, 40, 24, 2 }, /* two segments and a half */
  { 4, false, 2, 48, 24, 2 },                             /* two racks are all there is */
  { 4, false, 2, 32, 16, 2 }, { 4, true, 0, 16, 16, 1 },
  { 4, true, 3, 0, 16, 3 },  /* all that segments take of three racks */
  { 2, true, 0, 48, 24, 2 }, /* three segments fill a rack */
  { 5, true, 0, 40, 20, 2 },  { 6, true, 0, 48, 24, 2 },
};

static void
whole_segments_are_taken (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    g_autoptr (GError) error = NULL;
    LsClusterSpec s = racks (jobs[i].segment, jobs[i].is_asked);
    LS_CHECK (ls_segment_place (&s, jobs[i].n_nodes, jobs[i].n_gpus, &error));
    LS_CHECK_NO_ERROR (error);
    if (jobs[i].n_nodes > 0)
      s.n_nodes = jobs[i].n_nodes;
    else
      ls_cluster_spec_fit (&s, jobs[i].n_gpus);
    if (!LS_CHECK (ls_cluster_taken (&s) == jobs[i].taken && s.n_nodes == jobs[i].n_fit))
      g_printerr ("# job %u: %u of a rack, %u racks\n", i, ls_cluster_taken (&s), s.n_nodes);
  }
}

/* Rank after rank, segment after segment, and no GPU twice; a job placed before is placed anew. */
static void
ranks_leave_the_rest_of_a_rack_free (void)
{
  LsClusterSpec s = racks (4, true);
  LS_CHECK (ls_segment_place (&s, 0, 48, NULL));
  for (uint32_t rank = 0; rank < 48; rank++)
    LS_CHECK_INT (ls_cluster_gpu_of (&s, rank), ==, rank / 16 * 24 + rank % 16);
  g_autofree char *text = ls_segment_text (&s);
  LS_CHECK_STR (text, "16 of the 24 GPUs of a node: segments of 4 of its 6 trays");
  s.segment = 0;
  LS_CHECK (ls_segment_place (&s, 0, 48, NULL));
  LS_CHECK_INT (ls_cluster_gpu_of (&s, 47), ==, 47);
  LS_CHECK (ls_segment_text (&s) == NULL);
}

static void
refused (LsClusterSpec s, uint32_t n_gpus, const char *message)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_segment_place (&s, 0, n_gpus, &error));
  LS_CHECK_STR (error ? error->message : "", message);
}

static void
what_does_not_fit_is_refused (void)
{
  refused (racks (7, true), 28, "--segment 7: a node of racks has 6 compute trays (node.cpu.boards)");
  refused (racks (4, true), 24, "--segment 4: expected GPUs in segments of 16 (4 trays with 4 each); got 24");
  refused (racks (4, true), 8, "--segment 4: expected GPUs in segments of 16 (4 trays with 4 each); got 8");
  LsClusterSpec server = racks (1, true);
  server.server.cpu_boards = 0;
  refused (server, 24, "--segment 1: a node of racks is 1 compute tray (node.cpu.boards)");

  g_autoptr (GError) error = NULL;
  LsClusterSpec file = racks (7, false);
  LS_CHECK (!ls_cluster_spec_validate (&file, &error));
  LS_CHECK_STR (error ? error->message : "", "segments of 7 compute trays: a node has 6 (cpu.boards)");
}

LS_TEST_SUITE (LS_TEST (nodes_of_unequal_size_have_their_own_seats),
               LS_TEST (lists_are_read_as_slurm_writes_them), LS_TEST (long_names_are_refused),
               LS_TEST (ranks_fill_the_nodes_of_a_list), LS_TEST (lists_count_alike),
               LS_TEST (a_list_keeps_to_what_jobs_take_of_a_node), LS_TEST (a_seed_draws_nodes_or_gpus),
               LS_TEST (seats_are_checked_where_they_stand), LS_TEST (whole_segments_are_taken),
               LS_TEST (ranks_leave_the_rest_of_a_rack_free), LS_TEST (what_does_not_fit_is_refused))
