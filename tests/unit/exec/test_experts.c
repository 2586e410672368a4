/* Pins what experts send, counted on the links of an NVSwitch node, to the byte, and what it costs
 * that some have more to do: the step of a job is as much longer as the busiest rank needs. */
#include "ls_test.h"

#include "random_job.h"

#define SEQ      1024
#define HIDDEN   1024
#define N_LAYERS 4
#define TOP_K    2

static LsModel
moe_model (void)
{
  return (LsModel) {
    .name = (char *) "experts",
    .n_layers = N_LAYERS,
    .hidden = HIDDEN,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 128,
    .ffn = 4096,
    .vocab = 5120,
    .seq = SEQ,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
    .moe.n_experts = 16,
    .moe.top_k = TOP_K,
    .moe.expert_ffn = 4096,
    .moe.n_dense_layers = 1,
    .moe.every = 1,
  };
}

typedef struct {
  LsCluster *cluster;
  LsPlan *plan;
  LsTimeline *timeline;
} Ran;

static Ran
run_job (uint32_t tp, uint32_t ep, uint32_t etp, const char *load, double capacity)
{
  Ran r = { 0 };
  LsModel m = moe_model ();
  LsClusterSpec spec = tiny_dgx (1);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsCalibration calibration;
  LsRunOptions options;
  LsStrategy s;
  ls_calibration_init_roofline (&calibration);
  ls_run_options_init (&options);
  memset (&options.host, 0, sizeof options.host);
  options.n_steps = 1;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.tp = tp;
  s.sp = tp > 1;
  s.ep = ep;
  s.experts.etp = etp;
  s.experts.load = g_strdup (load);
  s.experts.capacity = capacity;
  r.cluster = ls_cluster_build (&spec, &error);
  LS_CHECK (ls_strategy_resolve (&s, &m, 8, 8, diags));
  r.plan = ls_lower (&m, &s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (r.plan && ls_plan_check (r.plan, &error));
  LS_CHECK_NO_ERROR (error);
  r.timeline = r.plan ? ls_run (r.plan, r.cluster, &calibration, &nccl, &options, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  ls_strategy_clear (&s);
  ls_calibration_clear (&calibration);
  return r;
}

static void
ran_clear (Ran *r)
{
  ls_timeline_free (r->timeline);
  ls_plan_free (r->plan);
  ls_cluster_free (r->cluster);
}

static double
bytes_on (const Ran *r, bool is_up, uint32_t gpu)
{
  g_autofree char *wanted
      = is_up ? g_strdup_printf ("node0/gpu%u>nvswitch", gpu) : g_strdup_printf ("node0/nvswitch>gpu%u", gpu);
  for (uint32_t i = 0; i < ls_cluster_n_resources (r->cluster); i++) {
    g_autofree char *name = ls_cluster_resource_name (r->cluster, i);
    if (g_strcmp0 (name, wanted) == 0)
      return ls_timeline_bytes (r->timeline, i);
  }
  g_assert_not_reached ();
}

#define UP   true
#define DOWN false

/* Four all-to-alls a layer, each (n - 1) / n of T k h elements of 2 bytes. What else the step
 * sends is the same whatever the load. */
static void
bytes_follow_tokens (void)
{
  const double B = 2.0 * SEQ * TOP_K * HIDDEN, n_layers = N_LAYERS - 1;
  Ran even = run_job (1, 8, 1, NULL, 0), uneven = run_job (1, 8, 1, "8,8,2,2,2,2,2,2,1,1,1,1,1,1,0,0", 0);
  const double weight[] = { 16, 4, 4, 4, 2, 2, 2, 0 }; /* of 34 */
  double other_up = bytes_on (&even, UP, 0) - 4 * n_layers * B * 7 / 8;
  double all_even = 0, all_uneven = 0;
  for (uint32_t i = 0; i < 8; i++) {
    LS_CHECK_NEAR (bytes_on (&even, UP, i), bytes_on (&even, UP, 0), 1e-12);
    double w = weight[i] / 34;
    /* Two dispatches, of activations and of gradients, and two that come back. */
    double sent = 2 * n_layers * B * (1 - w) + 2 * n_layers * B * 7 * w;
    LS_CHECK_NEAR (bytes_on (&uneven, UP, i) - other_up, sent,
                   1e-3); /* whole tokens: 34 does not divide them */
    LS_CHECK_NEAR (bytes_on (&uneven, DOWN, i) - other_up, sent, 1e-3);
    all_even += bytes_on (&even, UP, i);
    all_uneven += bytes_on (&uneven, UP, i);
  }
  LS_CHECK_NEAR (all_uneven, all_even, 1e-8); /* shares of a flow are rounded to 2^-20 */
  ran_clear (&even);
  ran_clear (&uneven);
}

static void
all_to_alls_to_the_byte (void)
{
  Ran r = run_job (1, 8, 1, NULL, 0);
  uint64_t bytes = 0, n = 0;
  for (uint32_t i = 0; i < r.plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &r.plan->segments[r.plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      if (seg->ops[o].kind == LS_OP_COLLECTIVE && seg->ops[o].coll == LS_COLL_ALL_TO_ALL) {
        bytes += seg->ops[o].bytes;
        n++;
      }
  }
  LS_CHECK_INT (n, ==, 4 * (N_LAYERS - 1));
  LS_CHECK_INT (bytes, ==, 4ul * (N_LAYERS - 1) * 2 * SEQ * TOP_K * HIDDEN);
  ran_clear (&r);
}

/* Kernels, and communication from when all are there, of one rank. */
static LsTime
busy (const Ran *r, uint32_t rank, bool with_ep)
{
  LsTime sum = 0;
  for (uint32_t i = 0; i < r->timeline->ranks[rank].n; i++) {
    const LsSpan *span = &r->timeline->ranks[rank].spans[i];
    const LsOp *op = ls_span_op (r->timeline, rank, span);
    if (span->start >= r->timeline->window_end)
      continue;
    if (op->kind == LS_OP_KERNEL)
      sum += span->end - span->start;
    else if (with_ep && op->stream == LS_STREAM_EP)
      sum += span->end - span->matched;
  }
  return sum;
}

static void
the_busiest_rank_governs (void)
{
  Ran even = run_job (1, 8, 1, NULL, 0), uneven = run_job (1, 8, 1, "4,4,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 0);
  LsTime longer = (uneven.timeline->window_end - uneven.timeline->window_start)
      - (even.timeline->window_end - even.timeline->window_start);
  LsTime more = busy (&uneven, 0, true) - busy (&even, 0, true);
  LS_CHECK (longer > 0);
  LS_CHECK_NEAR ((double) longer, (double) more, 0.02);
  LS_CHECK (busy (&uneven, 1, false) < busy (&even, 1, false));
  /* With a capacity nobody has more than that, and the step is shorter again. */
  Ran capped = run_job (1, 8, 1, "4,4,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 1);
  LS_CHECK (capped.timeline->window_end - capped.timeline->window_start
            <= even.timeline->window_end - even.timeline->window_start);
  ran_clear (&even);
  ran_clear (&uneven);
  ran_clear (&capped);
}

/* A role for each stage and, where loads differ, for each ep rank. */
static void
roles_are_as_many_as_programs_differ (void)
{
  Ran even = run_job (2, 4, 2, NULL, 0), uneven = run_job (2, 4, 2, "zipf:1", 0),
      mirrored = run_job (2, 4, 2, "1,1", 0);
  LS_CHECK_INT (even.plan->n_roles, ==, 1);
  LS_CHECK_INT (uneven.plan->n_roles, ==, 4);
  LS_CHECK_INT (mirrored.plan->n_roles, ==, 1);
  for (uint32_t r = 0; r < 8; r++)
    LS_CHECK_INT (ls_plan_role (uneven.plan, r), ==, ls_plan_binding (uneven.plan, r).member[LS_SLOT_EP]);
  ran_clear (&even);
  ran_clear (&uneven);
  ran_clear (&mirrored);
}

LS_TEST_SUITE (LS_TEST (bytes_follow_tokens), LS_TEST (all_to_alls_to_the_byte),
               LS_TEST (the_busiest_rank_governs), LS_TEST (roles_are_as_many_as_programs_differ))
