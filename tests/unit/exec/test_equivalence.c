/* Pins: the fast ways of running are exact. Random small jobs, lowered for real,
 * give the same picoseconds and the same spans with the reference queue, with the
 * reference solver, and with every op through the event queue. */
#include "ls_test.h"

#include <string.h>

#include "tiny_cluster.h"

#include "exec/memory.h"
#include "exec/run.h"
#include "parallel/lower.h"

static LsModel
small_model (GRand *rand)
{
  LsModel m = {
    .name = (char *) "small", .n_layers = 8, .hidden = 1024, .n_heads = 16, .n_kv_heads = 16, .head_dim = 64, .ffn = 4096,
    .vocab = 5000, .seq = 512, .mlp = LS_MLP_GELU, .norm = LS_NORM_LAYERNORM, .position = LS_POSITION_LEARNED,
    .attention = LS_ATTENTION_UNFUSED, .linear_bias = true, .tied_embeddings = true, .dropout = true,
  };
  if (g_rand_boolean (rand)) {
    m.mlp = LS_MLP_SWIGLU;
    m.norm = LS_NORM_RMSNORM;
    m.position = LS_POSITION_ROPE;
    m.attention = LS_ATTENTION_FLASH;
    m.linear_bias = m.tied_embeddings = m.dropout = false;
  }
  return m;
}

static uint32_t
pick (GRand *rand, uint32_t n, const uint32_t *choices)
{
  return choices[g_rand_int_range (rand, 0, (gint32) n)];
}

static void
random_strategy (GRand *rand, LsStrategy *s)
{
  ls_strategy_init (s);
  s->tp = pick (rand, 3, (uint32_t[]) { 1, 2, 4 });
  s->pp = pick (rand, 3, (uint32_t[]) { 1, 2, 4 });
  s->dp = pick (rand, 2, (uint32_t[]) { 1, 2 });
  s->vpp = s->pp > 1 && g_rand_boolean (rand) ? 2 : 1;
  s->sp = g_rand_boolean (rand);
  s->gpus = s->tp * s->pp * s->dp;
  s->micro_batch = 1;
  s->global_batch = s->dp * s->pp * (uint32_t) g_rand_int_range (rand, 1, 3);
  s->recompute = g_rand_int_range (rand, 0, 3);
  s->dp_overlap = g_rand_boolean (rand);
  s->zero_stage = s->dp > 1 && g_rand_boolean (rand) ? 1 : 0;
  if (s->dp > 1 && s->pp == 1 && s->zero_stage == 0 && g_rand_boolean (rand))
    s->dp_kind = LS_DP_DDP;
  if (s->pp > 1)
    s->p2p = (int) pick (rand, s->vpp > 1 ? 3 : 2, (uint32_t[]) { LS_P2P_BATCHED, LS_P2P_SCATTER_GATHER, LS_P2P_OVERLAPPED });
  s->dtype = g_rand_boolean (rand) ? LS_DTYPE_FP16 : LS_DTYPE_BF16;
  s->grad_norm = g_rand_int_range (rand, 0, 4) > 0;
}

static const LsNccl nccl = {
  .channels_ring = 8, .channels_net = 2, .channels_p2p = 2, .ring_bus_intra = 200e9, .ring_bus_per_nic = 20e9, .p2p_intra = 200e9,
  .p2p_inter = 20e9, .base_all_reduce = 10 * LS_US, .base_all_gather = 9 * LS_US, .base_reduce_scatter = 8 * LS_US,
  .base_p2p_intra = 5 * LS_US, .base_p2p_inter = 20 * LS_US, .hop_intra = LS_US, .hop_inter = 5 * LS_US,
  .sm_share_per_channel = 0.0093, .hbm_per_wire_all_reduce = 3, .hbm_per_wire_all_gather = 2, .hbm_per_wire_reduce_scatter = 3,
  .hbm_per_wire_p2p = 2,
};

typedef struct {
  LsCluster *cluster;
  LsPlan *plan;
  LsCalibration calibration;
  double slow[64];
} Job;

static LsTimeline *
run (const Job *j, const LsRunOptions *options)
{
  g_autoptr (GError) error = NULL;
  LsTimeline *t = ls_run (j->plan, j->cluster, &j->calibration, &nccl, options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  return t;
}

/* Spans of a rank are recorded in the order in which the engine met them, which may
 * differ between streams; compare them by (instance, op). */
static int
by_op (const void *a, const void *b)
{
  const LsSpan *x = a, *y = b;
  if (x->step != y->step)
    return (int) x->step - (int) y->step;
  if (x->instance != y->instance)
    return x->instance < y->instance ? -1 : 1;
  return (int) x->op - (int) y->op;
}

static LsSpan *
sorted_spans (const LsTimeline *t, uint32_t rank, guint *ret_n)
{
  const LsRankSpans *r = &t->ranks[rank];
  LsSpan *spans = g_new (LsSpan, r->n + 1);
  guint n = 0;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->spans[i].start < t->window_end) /* a rank may have run ahead of the end */
      spans[n++] = r->spans[i];
  qsort (spans, n, sizeof *spans, by_op);
  *ret_n = n;
  return spans;
}

static void
check_same (const LsTimeline *a, const LsTimeline *b, const char *what)
{
  bool same = a->window_start == b->window_start && a->window_end == b->window_end && a->first_step == b->first_step
              && a->digest == b->digest;
  for (uint32_t r = 0; r < a->n_ranks && same; r++) {
    guint n, m;
    g_autofree LsSpan *x = sorted_spans (a, r, &n), *y = sorted_spans (b, r, &m);
    same = n == m;
    for (guint i = 0; i < n && same; i++) {
      same = by_op (&x[i], &y[i]) == 0 && x[i].start == y[i].start
             && MIN (x[i].end, a->window_end) == MIN (y[i].end, a->window_end);
    }
  }
  ls_check_impl (same, __FILE__, __LINE__, "%s differs from the fast run: step ends at %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                 what, a->window_end, b->window_end);
}

static bool
job_init (Job *j, GRand *rand)
{
  LsClusterSpec spec = tiny_dgx (4);
  LsModel m = small_model (rand);
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  *j = (Job) { .cluster = ls_cluster_build (&spec, NULL) };
  ls_calibration_init_roofline (&j->calibration);
  random_strategy (rand, &s);
  if (ls_strategy_resolve (&s, &m, s.gpus, 8, diags))
    j->plan = ls_lower (&m, &s, &error);
  else {
    g_autofree char *text = ls_diag_list_format (diags);
    ls_check_impl (false, __FILE__, __LINE__, "unexpectedly refused: %s", text);
  }
  LS_CHECK_NO_ERROR (error);
  ls_strategy_clear (&s);
  for (int r = 0; r < 64; r++)
    j->slow[r] = 1 + 0.01 * g_rand_int_range (rand, 0, 20);
  return j->plan != NULL;
}

static void
job_clear (Job *j)
{
  ls_plan_free (j->plan);
  ls_cluster_free (j->cluster);
  ls_calibration_clear (&j->calibration);
}

static void
check_job (guint32 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  Job j;
  if (!job_init (&j, rand))
    return;
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plan_check (j.plan, &error));
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsMemory) memory = ls_memory_new (j.plan);
  LS_CHECK_INT (memory->roles[0].peak_bytes, >, 0);

  LsRunOptions fast;
  ls_run_options_init (&fast);
  fast.n_steps = 2;
  fast.slow = seed % 3 == 0 ? j.slow : NULL;
  LsRunOptions queue = fast, solver = fast, plain = fast;
  queue.queue = LS_QUEUE_REFERENCE;
  solver.solver = LS_SOLVER_REFERENCE;
  plain.no_run_ahead = true;
  g_autoptr (LsTimeline) a = run (&j, &fast);
  g_autoptr (LsTimeline) b = run (&j, &queue);
  g_autoptr (LsTimeline) c = run (&j, &solver);
  g_autoptr (LsTimeline) d = run (&j, &plain);
  if (a && b && c && d) {
    check_same (a, b, "reference queue");
    check_same (a, c, "reference solver");
    check_same (a, d, "every op an event");
  }
  job_clear (&j);
}

static void
fast_runs_equal_plain_runs (void)
{
  guint n = (guint) g_ascii_strtoull (g_getenv ("LS_CASES") ? g_getenv ("LS_CASES") : "60", NULL, 10);
  for (guint32 seed = 1; seed <= n; seed++) {
    int before = (int) CU_get_number_of_failures ();
    check_job (seed);
    if ((int) CU_get_number_of_failures () > before)
      printf ("failing seed: %u\n", seed);
  }
}

LS_TEST_MAIN ("equivalence", LS_TEST (fast_runs_equal_plain_runs))
