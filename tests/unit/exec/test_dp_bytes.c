/* Pins what data parallelism sends, counted on the link of a GPU to its NVSwitches over one step of one
 * micro-batch, to the byte: k (n - 1) / n times the bytes of the parameters, k = 2 where gradients are
 * all-reduced, and where they are reduced and parameters gathered (ZeRO-1); 3 for the layers
 * of XLA's FSDP, which gathers each weight twice. (A tensor of n ranks divides by n here.) */
#include "ls_test.h"

#include <math.h>

#include "dp_job.h"

enum { LAYERS = 3, RANKS = 8 };

#define HIDDEN   1024.0
#define MATRICES (12 * HIDDEN * HIDDEN * LAYERS)
#define WORDS    (1024 * HIDDEN) /* of embedding and head, each */
#define NORMS    (HIDDEN * (2 * LAYERS + 1))
#define ALL      (MATRICES + 2 * WORDS + NORMS)

/* Over all links of so many nodes whose name begins so. */
static double
sent_over (LsStrategy *s, uint32_t n_nodes, const char *link)
{
  LsModel m = dp_model (LAYERS, 256);
  LsClusterSpec spec = dp_dgx (n_nodes);
  s->gpus = s->global_batch = RANKS * n_nodes;
  s->grad_norm = false;
  DpRun r = dp_run (&m, s, &spec);
  double bytes = 0;
  for (uint32_t i = 0; r.t && i < ls_cluster_n_resources (r.cluster); i++) {
    g_autofree char *name = ls_cluster_resource_name (r.cluster, i);
    if (g_str_has_prefix (name, link))
      bytes += r.t->resource_bytes[i];
  }
  dp_run_clear (&r);
  ls_strategy_clear (s);
  return bytes;
}

/* By GPU 0 of one node. */
static double
sent (LsStrategy *s)
{
  return sent_over (s, 1, "node0/gpu0>nvswitch");
}

static double
sent_by (int dp_kind, uint32_t zero, LsDtype grads, bool overlaps)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.dp_kind = dp_kind;
  s.zero_stage = zero;
  s.grad_dtype = grads;
  s.dp_overlap = overlaps;
  return sent (&s);
}

static void
gradients_are_summed_once (void)
{
  for (int overlaps = 0; overlaps < 2; overlaps++) {
    LS_CHECK_DOUBLE (sent_by (LS_DP_DDP, 0, LS_DTYPE_BF16, overlaps), ==, 2 * 7.0 / 8 * 2 * ALL);
    LS_CHECK_DOUBLE (sent_by (LS_DP_DDP, 0, LS_DTYPE_FP32, overlaps), ==, 2 * 7.0 / 8 * 4 * ALL);
    LS_CHECK_DOUBLE (sent_by (LS_DP_MEGATRON, 0, LS_DTYPE_BF16, overlaps), ==, 2 * 7.0 / 8 * 2 * ALL);
  }
}

/* Reduce-scatter of gradients, all-gather of 16-bit parameters. */
static void
a_distributed_optimizer_sends_as_much (void)
{
  for (int overlaps = 0; overlaps < 2; overlaps++) {
    LS_CHECK_DOUBLE (sent_by (LS_DP_MEGATRON, 1, LS_DTYPE_BF16, overlaps), ==, 7.0 / 8 * (2 + 2) * ALL);
    LS_CHECK_DOUBLE (sent_by (LS_DP_MEGATRON, 1, LS_DTYPE_FP32, overlaps), ==, 7.0 / 8 * (4 + 2) * ALL);
  }
}

/* 1@4: 3/4 of all each way inside a group; between the two a quarter, halved and gathered. */
static void
groups_send_less_of_it (void)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.zero_stage = 1;
  s.zero_group = 4;
  LS_CHECK_DOUBLE (sent (&s), ==, (3.0 / 4 + 2 * 1.0 / 2 / 4 + 3.0 / 4) * 2 * ALL);
}

/* Embedding and head are gathered once; norms, which are not cut, all-reduced. Reductions have 16
 * bits whatever gradients are kept in. */
static void
xla_gathers_weights_of_layers_twice (void)
{
  static const int recomputes[] = { LS_RECOMPUTE_NONE, LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_FULL };
  for (size_t i = 0; i < G_N_ELEMENTS (recomputes); i++)
    for (int overlaps = 0; overlaps < 2; overlaps++) {
      LsStrategy s;
      ls_strategy_init (&s);
      s.dp_kind = LS_DP_XLA_FSDP;
      s.grad_dtype = LS_DTYPE_FP32;
      s.recompute = recomputes[i];
      s.dp_overlap = overlaps;
      LS_CHECK_DOUBLE (sent (&s), ==, 7.0 / 8 * 2 * (3 * MATRICES + 2 * 2 * WORDS + 2 * NORMS));
    }
}

/* Out of node 0 by the NIC of its first GPU, where servers are. Servers of both nodes have half of all each: that of
 * node 0 brings half to each of the 8 ranks of node 1, and its own rank pushes half there. One server brings
 * all to those 8. Flows are counted in parts of 2^-20. */
static void
a_central_server_moves_all_by_one_nic (void)
{
  double out[2];
  for (int servers = LS_PS_NODES; servers <= LS_PS_ONE; servers++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.dp_kind = LS_DP_PS;
    s.ps_servers = servers;
    s.grad_dtype = LS_DTYPE_BF16;
    out[servers] = sent_over (&s, 2, "node0/nic0>leaf");
  }
  LS_CHECK_DOUBLE (fabs (out[LS_PS_NODES] / ((8 + 1) / 2.0 * 2 * ALL) - 1), <, 1e-6);
  LS_CHECK_DOUBLE (fabs (out[LS_PS_ONE] / (8 * 2 * ALL) - 1), <, 1e-6);
}

LS_TEST_MAIN ("dp_bytes", LS_TEST (gradients_are_summed_once),
              LS_TEST (a_distributed_optimizer_sends_as_much), LS_TEST (groups_send_less_of_it),
              LS_TEST (a_central_server_moves_all_by_one_nic), LS_TEST (xla_gathers_weights_of_layers_twice))
