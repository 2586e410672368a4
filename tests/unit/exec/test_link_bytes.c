/* Pins that what is to be moved is moved, to the byte. */
#include "ls_test.h"
#include "dp_job.h"
#include "hand_trace.h"
#include "random_job.h"

#include <math.h>
#include <string.h>

#include "exec/replay/state.h"
#include <lockstep/error.h>

/* Pins what a step sends over the links of an NVSwitch node, to the byte; and what it takes where replicas have
 * unequal numbers of micro-batches. */

/* --- data parallelism ------------------------------------------------------------------------------- */

/* Pins what data parallelism sends, counted on the link of a GPU to its NVSwitches over one step of one
 * micro-batch, to the byte: k (n - 1) / n times the bytes of the parameters, k = 2 where gradients are
 * all-reduced, and where they are reduced and parameters gathered (ZeRO-1); 3 for the layers
 * of XLA's FSDP, which gathers each weight twice. (A tensor of n ranks divides by n here.) */

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
  s->opt.grad_norm = false;
  DpRun r = dp_run (&m, s, &spec);
  double bytes = 0;
  for (uint32_t i = 0; r.t && i < ls_cluster_n_resources (r.cluster); i++) {
    g_autofree char *name = ls_cluster_resource_name (r.cluster, i);
    if (g_str_has_prefix (name, link))
      bytes += ls_timeline_bytes (r.t, i);
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
  s.opt.grad_dtype = grads;
  s.data.overlap = overlaps;
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
  s.data.zero_group = 4;
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
      s.opt.grad_dtype = LS_DTYPE_FP32;
      s.recompute = recomputes[i];
      s.data.overlap = overlaps;
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
    s.data.ps_servers = servers;
    s.opt.grad_dtype = LS_DTYPE_BF16;
    out[servers] = sent_over (&s, 2, "node0/nic0>leaf");
  }
  LS_CHECK_DOUBLE (fabs (out[LS_PS_NODES] / ((8 + 1) / 2.0 * 2 * ALL) - 1), <, 1e-6);
  LS_CHECK_DOUBLE (fabs (out[LS_PS_ONE] / (8 * 2 * ALL) - 1), <, 1e-6);
}

/* A step, and bytes of GPU 0's link, with 6 micro-batches for every other replica and 2 or 6 for the others. */
static LsTime
step_with (int dp_kind, uint32_t zero, uint32_t pp, uint32_t n_others, double *ret_bytes)
{
  LsModel m = dp_model (LAYERS + 1, 256);
  LsClusterSpec spec = dp_dgx (1);
  LsStrategy s;
  ls_strategy_init (&s);
  s.dp_kind = dp_kind;
  s.zero_stage = zero;
  s.pp = pp;
  s.gpus = RANKS;
  s.data.overlap = false;
  s.mp.p2p = pp > 1 ? LS_P2P_BATCHED : LS_P2P_NONE;
  uint32_t n = s.layout.n_micro_batches_per_replica = RANKS / pp;
  s.layout.micro_batches_per_replica = g_new (uint32_t, n);
  for (uint32_t d = 0; d < n; d++)
    s.layout.micro_batches_per_replica[d] = d % 2 == 0 ? 6 : n_others;
  DpRun r = dp_run (&m, &s, &spec);
  LS_CHECK_INT (s.global_batch, ==, n / 2 * (6 + n_others));
  LsTime step = r.t ? r.t->window_end - r.t->window_start : 0;
  for (uint32_t i = 0; r.t && i < ls_cluster_n_resources (r.cluster); i++) {
    g_autofree char *name = ls_cluster_resource_name (r.cluster, i);
    if (strcmp (name, "node0/gpu0>nvswitch") == 0)
      *ret_bytes = ls_timeline_bytes (r.t, i);
  }
  g_autoptr (GError) error = NULL;
  LS_CHECK (r.plan && ls_plan_check (r.plan, &error));
  LS_CHECK_NO_ERROR (error);
  dp_run_clear (&r);
  ls_strategy_clear (&s);
  return step;
}

/* On GPUs that are alike all wait for those with most, and gradients meet once: the step is that of as many for
 * all, to the picosecond, and rank 0 sends the same bytes. */
static void
replicas_with_fewer_micro_batches_wait (void)
{
  static const struct {
    int dp_kind;
    uint32_t zero;
  } kinds[] = { { LS_DP_DDP, 0 },
                { LS_DP_MEGATRON, 0 },
                { LS_DP_MEGATRON, 1 },
                { LS_DP_DEEPSPEED, 0 },
                { LS_DP_DEEPSPEED, 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    for (uint32_t pp = 1; pp <= 2; pp++) {
      double few = 0, all = 0;
      LsTime unequal = step_with (kinds[i].dp_kind, kinds[i].zero, pp, 2, &few),
             equal = step_with (kinds[i].dp_kind, kinds[i].zero, pp, 6, &all);
      LS_CHECK (unequal > 0);
      LS_CHECK_INT (unequal, ==, equal);
      LS_CHECK (few > 0 && few == all);
    }
}

/* --- tensor parallelism ----------------------------------------------------------------------------- */

/* Pins what tensor parallelism sends, counted on the links of an NVSwitch node: per layer, in
 * units of b s h (t - 1) / t elements, 8 without sequence parallelism and 10 with it, because the
 * backward gathers its input again; 8 if it keeps what it gathered; 4 more with full
 * recomputation; and as much in pieces that GEMMs run beside. To the byte. */

#define SEQ   2048
#define WIDTH 1024

typedef struct {
  uint32_t tp;
  bool sp, saves, overlaps;
  int kind, recompute;
  uint32_t units;
} Case;

static LsModel
model_of (uint32_t n_layers)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  LsModel m = small_model (rand);
  m.n_layers = n_layers;
  m.seq = SEQ;
  m.hidden = WIDTH;
  m.attention = LS_ATTENTION_FLASH;
  return m;
}

static uint32_t
way_up (const LsCluster *c)
{
  for (uint32_t i = 0; i < ls_cluster_n_resources (c); i++) {
    g_autofree char *name = ls_cluster_resource_name (c, i);
    if (g_strcmp0 (name, "node0/gpu0>nvswitch") == 0)
      return i;
  }
  g_assert_not_reached ();
}

/* What one call puts on the way of member 0 to the NVSwitches. */
static double
bytes_of_call (const LsCluster *c, LsCollKind kind, uint32_t n, uint64_t bytes, uint32_t resource)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  const LsCollPlan *plan = ls_coll_plan (c, &nccl, &request, LS_NETWORK_FLOW, arena);
  double sum = 0;
  for (uint32_t p = 0; p < plan->n_phases; p++)
    for (uint32_t i = 0; i < plan->phases[p].n_loads; i++)
      if (plan->phases[p].loads[i].resource == resource)
        sum += plan->phases[p].demand_bytes * ((double) plan->phases[p].loads[i].coef / (double) (1u << 20));
  return sum;
}

/* On the way of GPU 0 to the NVSwitches in one step, without the gradients of replicated
 * parameters, which are summed at its end. */
static double
bytes_of_step (const Case *k, uint32_t n_layers)
{
  LsModel m = model_of (n_layers);
  LsClusterSpec spec = tiny_dgx (1);
  g_autoptr (LsCluster) c = ls_cluster_build (&spec, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsCalibration calibration;
  LsRunOptions options;
  LsStrategy s;
  ls_calibration_init_roofline (&calibration);
  ls_run_options_init (&options);
  options.n_steps = 1;
  ls_strategy_init (&s);
  s.gpus = s.tp = k->tp;
  s.sp = k->sp;
  s.mp.sp_save_gathered = k->saves;
  s.mp.tp_overlap = k->overlaps;
  s.mp.tp_overlap_kind = k->kind;
  s.recompute = k->recompute;
  double bytes = -1;
  LS_CHECK (ls_strategy_resolve (&s, &m, k->tp, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, &error);
  g_autoptr (LsTimeline) t = plan ? ls_run (plan, c, &calibration, &nccl, &options, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  uint32_t up = way_up (c);
  if (t)
    bytes = ls_timeline_bytes (t, up);
  for (uint32_t i = 0; t && i < plan->n_segments; i++)
    for (uint32_t o = 0; o < plan->segments[i].n_ops; o++) {
      const LsOp *op = &plan->segments[i].ops[o];
      if (op->kind == LS_OP_COLLECTIVE && op->tag == LS_TAG_SYNC)
        bytes -= bytes_of_call (c, (LsCollKind) op->coll, k->tp, op->bytes, up);
    }
  ls_strategy_clear (&s);
  ls_calibration_clear (&calibration);
  return bytes;
}

static void
bytes_per_layer (void)
{
  static const Case cases[] = {
    { .tp = 2, .units = 8 },
    { .tp = 4, .units = 8 },
    { .tp = 8, .units = 8 },
    { .tp = 4, .sp = true, .units = 10 },
    { .tp = 8, .sp = true, .units = 10 },
    { .tp = 8, .sp = true, .saves = true, .units = 8 },
    { .tp = 8, .recompute = LS_RECOMPUTE_FULL, .units = 12 },
    { .tp = 8, .sp = true, .recompute = LS_RECOMPUTE_FULL, .units = 14 },
    { .tp = 8, .sp = true, .saves = true, .recompute = LS_RECOMPUTE_FULL, .units = 12 },
    { .tp = 8, .sp = true, .recompute = LS_RECOMPUTE_SELECTIVE, .units = 10 },
    { .tp = 8, .sp = true, .overlaps = true, .kind = LS_TP_OVERLAP_BULK, .units = 10 },
    { .tp = 8, .sp = true, .overlaps = true, .kind = LS_TP_OVERLAP_RING, .units = 10 },
    { .tp = 4, .sp = true, .overlaps = true, .kind = LS_TP_OVERLAP_RING, .saves = true, .units = 8 },
    { .tp = 8,
      .sp = true,
      .overlaps = true,
      .kind = LS_TP_OVERLAP_RING,
      .recompute = LS_RECOMPUTE_FULL,
      .units = 14 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint32_t t = cases[i].tp;
    double layer = bytes_of_step (&cases[i], 3) - bytes_of_step (&cases[i], 2);
    double expected = (double) cases[i].units * SEQ * WIDTH * 2 * (t - 1) / t;
    ls_check_impl (layer == expected, __FILE__, __LINE__, "case %zu: %.17g bytes, expected %.17g", i, layer,
                   expected);
  }
}

/* Pins: that what was asked to move has moved is checked, not assumed: a flow that moved
 * a byte too few, a call that is not over, or one too many is an internal error that
 * says what and how much. (That it holds in runs, every other test of exec relies on.) */

/* Two ranks and an all-reduce of 1 MiB, as a run leaves them behind after step 0. */
typedef struct {
  Hand *hand;
  Run run;
  XJob job;
  Comm comm;
  Channel channels[4];
  Call call;
  LsCollPlan plan;
  LsPhase phase;
} Fixture;

static void
fixture_init (Fixture *f)
{
  *f = (Fixture) { .hand = hand_new (2) };
  Hand *h = f->hand;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (const uint32_t[]) { 0, 1 }, 2);
  for (uint32_t r = 0; r < 2; r++)
    hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
  hand_freeze (h);
  f->phase = (LsPhase) { .demand_bytes = 1e6, .rate_cap = 1e9 };
  f->plan = (LsCollPlan) { .n_phases = 1, .phases = &f->phase };
  f->call = (Call) {
    .key = { .bytes = 1 << 20 }, .plan = &f->plan, .step = { 1, 0 }, .count = { 1, 0 }, .n_over = { 1, 0 }
  };
  f->comm.calls = &f->call;
  f->job = (XJob) { .plan = h->plan, .calibration = &h->calibration, .host = &h->options.host };
  f->run = (Run) { .plan = h->plan,
                   .jobs = &f->job,
                   .n_jobs = 1,
                   .cluster = h->cluster,
                   .arena = ls_arena_new (),
                   .comms = &f->comm,
                   .channels = f->channels };
  LS_CHECK (run_compile (&f->run, NULL));
  copies_init (&f->run);
}

static void
fixture_clear (Fixture *f)
{
  ls_arena_free (f->run.arena);
  hand_free (f->hand);
}

static void
check_message (const GError *error, const char *expected)
{
  LS_CHECK (error && error->code == LS_ERROR_FAILED);
  LS_CHECK_STR (error ? error->message : NULL, expected);
}

static void
what_was_asked_for_is_what_moved (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  LS_CHECK (conserve_step (&f.run, &f.job, 0, &error));
  LS_CHECK_NO_ERROR (error);
  fixture_clear (&f);
}

static void
a_call_that_is_not_over_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  f.call.n_over[0] = 0;
  LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
  check_message (
      error,
      "internal error: communicator 0: 1048576 bytes in 1 calls were asked for in step 0, 0 bytes in 0 calls moved");
  fixture_clear (&f);
}

static void
a_call_of_another_size_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  f.call.key.bytes = 1000;
  LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
  check_message (
      error,
      "internal error: communicator 0: 1048576 bytes in 1 calls were asked for in step 0, 1000 bytes in 1 calls moved");
  fixture_clear (&f);
}

static void
a_transfer_that_nobody_asked_for_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  g_autoptr (GError) error = NULL;
  Call send = { .key = { .bytes = 7 }, .plan = &f.plan, .step = { 1, 0 }, .n_over = { 1, 0 } };
  f.channels[3].calls = &send;
  LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
  check_message (
      error,
      "internal error: sends to the previous of rank 1: 0 bytes in 0 calls were asked for in step 0, 7 bytes in 1 calls moved");
  fixture_clear (&f);
}

/* Every direction has words of its own. */
static void
a_copy_that_did_not_move_is_noticed (void)
{
  static const char *const words[LS_N_COPY_DIRECTIONS] = {
    [LS_COPY_TO_DEVICE] = "copies to the device",    [LS_COPY_TO_HOST] = "copies to the host",
    [LS_COPY_FROM_NVME] = "reads from NVMe",         [LS_COPY_TO_NVME] = "writes to NVMe",
    [LS_COPY_IN_HOST] = "work in the host's memory",
  };
  for (uint32_t d = 0; d < LS_N_COPY_DIRECTIONS; d++) {
    Fixture f;
    fixture_init (&f);
    g_autoptr (GError) error = NULL;
    f.call.step[0] = 0; /* the collective of rank 0 becomes a copy */
    LsOp *op = &f.hand->plan->segments[f.hand->plan->programs[0].instances[0].segment].ops[0];
    op->kind = LS_OP_COPY;
    op->direction = d;
    LS_CHECK (!conserve_step (&f.run, &f.job, 0, &error));
    g_autofree char *expected = g_strdup_printf (
        "internal error: %s of rank 0: 1048576 bytes in 1 calls were asked for in step 0, 0 bytes in 0 calls moved",
        words[d]);
    check_message (error, expected);
    fixture_clear (&f);
  }
}

static void
a_flow_that_lost_a_byte_is_noticed (void)
{
  Fixture f;
  fixture_init (&f);
  LsFlow flow = { .moved = 1e6, .cap = 1e9 };
  conserve_flow (&f.run, &flow, 1e6);
  LS_CHECK (f.run.error == NULL);
  flow.moved = 1e6 - 1;
  conserve_flow (&f.run, &flow, 1e6);
  check_message (
      f.run.error,
      "internal error: a flow over no link was asked to move 1000000 bytes and moved 999999 until 0 ps");
  g_clear_error (&f.run.error);
  fixture_clear (&f);
}

/* Each way of copies loads the first of its links with its bytes, or its share of them. */
static void
copies_load_their_links (void)
{
  for (int direction = 0; direction < LS_N_COPY_DIRECTIONS; direction++) {
    Hand *h = hand_new (1);
    LsRoute route = { 0 };
    hand_join (h, 0, hand_copy (h, 0, (LsCopyDirection) direction, 1 << 20));
    hand_kernel (h, 0, LS_TAG_F, LS_US);
    g_autoptr (LsTimeline) t = hand_run (h);
    ls_copy_route (h->cluster, 0, (LsCopyDirection) direction, &route);
    if (LS_CHECK (t && route.n_hops > 0))
      LS_CHECK_NEAR (ls_timeline_bytes (t, route.hop[0].trunk),
                     (1 << 20) * (double) route.hop[0].share / LS_HOP_WHOLE, 1e-9);
    hand_free (h);
  }
}

LS_TEST_SUITE (LS_TEST (gradients_are_summed_once), LS_TEST (replicas_with_fewer_micro_batches_wait),
               LS_TEST (a_distributed_optimizer_sends_as_much), LS_TEST (groups_send_less_of_it),
               LS_TEST (a_central_server_moves_all_by_one_nic), LS_TEST (xla_gathers_weights_of_layers_twice),
               LS_TEST (bytes_per_layer), LS_TEST (what_was_asked_for_is_what_moved),
               LS_TEST (a_call_that_is_not_over_is_noticed), LS_TEST (a_call_of_another_size_is_noticed),
               LS_TEST (a_transfer_that_nobody_asked_for_is_noticed), LS_TEST (copies_load_their_links),
               LS_TEST (a_copy_that_did_not_move_is_noticed), LS_TEST (a_flow_that_lost_a_byte_is_noticed))
