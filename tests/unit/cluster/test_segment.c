/* Pins how a job lies in racks: which GPUs whole segments of trays take, when the segment of a cluster's file
 * counts, what is refused, and that a cluster of one tray a node knows no segments. */
#include "ls_test.h"

#include "cluster/segment.h"

/* Racks of 6 trays with 4 GPUs, of which jobs take 4 together. */
static LsClusterSpec
racks (uint32_t segment, bool is_asked)
{
  return (LsClusterSpec) { .name = (char *) "racks",
                           .n_nodes = 1,
                           .gpus_per_node = 24,
                           .cpu_boards = 6,
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
  server.cpu_boards = 0;
  refused (server, 24, "--segment 1: a node of racks is 1 compute tray (node.cpu.boards)");

  g_autoptr (GError) error = NULL;
  LsClusterSpec file = racks (7, false);
  LS_CHECK (!ls_cluster_spec_validate (&file, &error));
  LS_CHECK_STR (error ? error->message : "", "segments of 7 compute trays: a node has 6 (cpu.boards)");
}

LS_TEST_MAIN ("segment", LS_TEST (whole_segments_are_taken), LS_TEST (ranks_leave_the_rest_of_a_rack_free),
              LS_TEST (what_does_not_fit_is_refused))
