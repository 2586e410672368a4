/* Pins schedules that keep more than one copy of the parameters, and steps that are not
 * flushed: DualPipe and Chimera run both ways through the ranks and sum gradients over the
 * ranks that hold the same stages; PipeDream's steady state has no bubble; post-validation
 * does away with the barrier before the optimizer; Megatron-LM's overlapped p2p blocks in
 * warm-up and cool-down unless told otherwise. Hosts cost nothing. */
#include "ls_test.h"

#include "random_job.h"

#include "analysis/conservation.h"
#include "analysis/report.h"
#include "exec/memory/memory.h"
#include "plan/mesh.h"

/* Eight layers and an embedding and head so small that stages are alike but for them. */
static LsModel
even_model (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  LsModel m = small_model (rand);
  m.vocab = 128;
  m.tied_embeddings = false;
  return m;
}

typedef struct {
  LsModel model;
  LsStrategy s;
  LsCluster *cluster;
  LsCalibration calibration;
  LsPlan *plan;
} Fixture;

static void
fixture_init (Fixture *x, const char *schedule, uint32_t pp, uint32_t dp, uint32_t n_micro_batches,
              void (*set) (LsStrategy *s))
{
  LsClusterSpec spec = tiny_dgx (4);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  *x = (Fixture) { .model = even_model (), .cluster = ls_cluster_build (&spec, NULL) };
  ls_calibration_init_roofline (&x->calibration);
  ls_strategy_init (&x->s);
  x->s.pp = pp;
  x->s.gpus = pp * dp;
  x->s.schedule = g_strdup (schedule);
  x->s.global_batch = n_micro_batches * dp;
  if (set)
    set (&x->s);
  gboolean is_legal = ls_strategy_resolve (&x->s, &x->model, x->s.gpus, 8, diags);
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (is_legal, __FILE__, __LINE__, "%s", text);
  x->plan = is_legal ? ls_lower (&x->model, &x->s, NULL, &error) : NULL;
  if (x->plan)
    ls_plan_check (x->plan, &error);
  LS_CHECK_NO_ERROR (error);
}

static void
fixture_clear (Fixture *x)
{
  ls_plan_free (x->plan);
  ls_strategy_clear (&x->s);
  ls_cluster_free (x->cluster);
  ls_calibration_clear (&x->calibration);
}

static LsTimeline *
run (const Fixture *x, uint32_t n_steps)
{
  g_autoptr (GError) error = NULL;
  LsRunOptions options;
  ls_run_options_init (&options);
  options.n_steps = n_steps;
  options.host = (LsHostCosts) { .cost = { 0 } };
  LsTimeline *t
      = x->plan ? ls_run (x->plan, x->cluster, &x->calibration, &nccl, &options, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (t != NULL);
  return t;
}

static LsTime
period (const LsTimeline *t)
{
  return t ? t->window_end - t->window_start : 0;
}

/* --- pipes both ways ------------------------------------------------------------ */

typedef struct {
  LsTime start, end;
} Pass;

/* Where forwards (0) and input gradients (1) of a pipe's stage and micro-batch ran. */
static Pass *
pass_at (Pass *passes, const LsPlan *plan, uint32_t pipe, uint32_t stage, uint32_t mb, int what)
{
  uint32_t pp = plan->n_roles;
  return &passes[((pipe * pp + stage) * plan->n_micro_batches + mb) * 2 + (uint32_t) what];
}

static Pass *
passes_of (const LsTimeline *t, uint32_t ranks_per_stage)
{
  const LsPlan *plan = t->plan;
  Pass *passes = g_new0 (Pass, (gsize) plan->n_chunks * plan->n_roles * plan->n_micro_batches * 2);
  for (uint32_t r = 0; r < t->n_ranks; r += ranks_per_stage)
    for (uint32_t i = 0; i < t->ranks[r].n; i++) {
      const LsSpan *span = &t->ranks[r].spans[i];
      const LsOp *op = ls_span_op (t, r, span);
      const LsInstance *in = ls_span_instance (t, r, span);
      if (span->step != 0 || op->kind != LS_OP_KERNEL || (op->tag != LS_TAG_F && op->tag != LS_TAG_I))
        continue;
      Pass *p = pass_at (passes, plan, in->chunk, in->stage, in->mb, op->tag == LS_TAG_I);
      p->start = p->end == 0 ? span->start : MIN (p->start, span->start);
      p->end = MAX (p->end, span->end);
    }
  return passes;
}

static void
check_pipe (Pass *passes, const LsPlan *plan, uint32_t pipe, uint32_t n_micro_batches)
{
  for (uint32_t stage = 0; stage < plan->n_roles; stage++)
    for (uint32_t mb = 0; mb < n_micro_batches; mb++) {
      const Pass *f = pass_at (passes, plan, pipe, stage, mb, 0), *i = f + 1;
      LS_CHECK (f->end > 0 && i->end > 0 && i->start >= f->end);
      if (stage + 1 == plan->n_roles)
        continue;
      const Pass *next = pass_at (passes, plan, pipe, stage + 1, mb, 0);
      LS_CHECK (next->start >= f->end && i->start >= next[1].end);
    }
}

/* Every rank of its communicator has the same stages, and the gradients of each are summed
 * there, all of them. */
static void
check_replicas (const LsPlan *plan)
{
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    const LsBinding b = ls_plan_binding (plan, r);
    LS_CHECK (b.comm[LS_SLOT_PIPES] != UINT32_MAX);
    const LsCommunicator c = ls_plan_communicator (plan, b.comm[LS_SLOT_PIPES]);
    LS_CHECK_INT (c.n_ranks, ==, plan->n_chunks);
    LS_CHECK (c.spans_stages);
    const LsProgram *p = &plan->programs[b.role];
    uint64_t summed = 0;
    for (uint32_t i = 0; i < p->n_instances; i++)
      for (uint32_t o = 0; o < plan->segments[p->instances[i].segment].n_ops; o++) {
        const LsOp *op = &plan->segments[p->instances[i].segment].ops[o];
        summed += op->kind == LS_OP_COLLECTIVE && op->slot == LS_SLOT_PIPES ? op->bytes : 0;
      }
    LS_CHECK_INT (summed, ==, p->n_params * 2); /* bf16 */
  }
}

static uint64_t
all_params (const LsPlan *plan)
{
  uint64_t n = 0;
  for (uint32_t role = 0; role < plan->n_roles; role++)
    n += plan->programs[role].n_params;
  return n;
}

static void
check_pipes (const char *schedule, uint32_t pp, uint32_t dp, uint32_t n_micro_batches)
{
  Fixture one, both;
  fixture_init (&one, "1f1b", pp, dp, n_micro_batches, NULL);
  fixture_init (&both, schedule, pp, dp, n_micro_batches, NULL);
  LS_CHECK_INT (both.plan->n_chunks, ==, 2);
  LS_CHECK_INT (all_params (both.plan), ==, 2 * all_params (one.plan));
  check_replicas (both.plan);
  g_autoptr (LsTimeline) t = run (&both, 1);
  g_autofree Pass *passes = t ? passes_of (t, dp) : NULL;
  for (uint32_t pipe = 0; t && pipe < 2; pipe++)
    check_pipe (passes, both.plan, pipe, n_micro_batches / 2);
  LS_CHECK_NEAR (ls_plan_model_flops (both.plan, false, false), ls_plan_model_flops (one.plan, false, false),
                 1e-12);
  fixture_clear (&one);
  fixture_clear (&both);
}

static void
pipes_run_both_ways (void)
{
  check_pipes ("dualpipe", 2, 1, 4);
  check_pipes ("dualpipe", 4, 2, 10);
  check_pipes ("chimera", 2, 2, 6);
  check_pipes ("chimera", 4, 1, 8);
}

static void
no_norm (LsStrategy *s)
{
  s->opt.grad_norm = false;
}

/* A forward is sent while the backward that it is paired with computes. */
static void
p2p_of_a_pair_is_hidden (void)
{
  Fixture x;
  fixture_init (&x, "dualpipe", 2, 1, 8, no_norm);
  g_autoptr (LsTimeline) t = run (&x, 1);
  guint n_beside = 0;
  for (uint32_t i = 0; t && i < t->ranks[0].n; i++) {
    const LsSpan *p2p = &t->ranks[0].spans[i];
    if (ls_span_op (t, 0, p2p)->kind != LS_OP_P2P)
      continue;
    for (uint32_t k = 0; k < t->ranks[0].n; k++) {
      const LsSpan *kernel = &t->ranks[0].spans[k];
      bool is_backward
          = ls_span_op (t, 0, kernel)->kind == LS_OP_KERNEL && ls_span_op (t, 0, kernel)->tag == LS_TAG_I;
      if (is_backward && kernel->start < p2p->end && kernel->end > p2p->start) {
        n_beside++;
        break;
      }
    }
  }
  LS_CHECK_INT (n_beside, >=, 2);
  fixture_clear (&x);
}

/* --- a chain of sends ------------------------------------------------------------ */

enum { N_STAGES = 4, N_MB = 5, MESSAGE = 1 << 24 };

/* Each rank passes on what it received, one message after the other. */
static LsPlan *
chain (void)
{
  LsPlan *plan = g_new0 (LsPlan, 1);
  plan->arena = ls_arena_new ();
  plan->n_ranks = plan->n_roles = N_STAGES;
  plan->n_segments = 3; /* first, middle, last */
  plan->n_micro_batches = N_MB;
  plan->n_chunks = 1;
  plan->segments = ls_arena_new_array (plan->arena, LsSegment, 3);
  LsTransfer *transfers = ls_arena_new_array (plan->arena, LsTransfer, 2);
  LsDep *received = ls_arena_new_array (plan->arena, LsDep, 1);
  *received = (LsDep) { LS_DEP_END, 0 };
  transfers[0] = (LsTransfer) { MESSAGE, LS_SLOT_PREV, false };
  transfers[1] = (LsTransfer) { MESSAGE, LS_SLOT_NEXT, true };
  LsOp op = { .kind = LS_OP_P2P,
              .tag = LS_TAG_SYNC,
              .host = LS_HOST_FREE,
              .layer = UINT16_MAX,
              .unit = UINT16_MAX,
              .kernel = UINT32_MAX,
              .recorded = LS_TIME_NEVER,
              .n_transfers = 1,
              .name = "p2p" };
  for (int s = 0; s < 3; s++) {
    LsOp *ops = plan->segments[s].ops = ls_arena_new_array (plan->arena, LsOp, 2);
    if (s > 0) {
      ops[0] = op;
      ops[0].stream = LS_STREAM_PP_FWD_RECV;
      ops[0].transfers = &transfers[0];
      plan->segments[s].n_ops++;
    }
    if (s < 2) {
      LsOp *send = &ops[plan->segments[s].n_ops++];
      *send = op;
      send->stream = LS_STREAM_PP_FWD;
      send->transfers = &transfers[1];
      send->deps = received;
      send->n_deps = s > 0;
    }
    plan->segments[s].name = "pass on";
  }
  plan->programs = ls_arena_new_array (plan->arena, LsProgram, N_STAGES);
  for (uint32_t r = 0; r < N_STAGES; r++) {
    plan->programs[r].n_instances = N_MB;
    plan->programs[r].instances = ls_arena_new_array (plan->arena, LsInstance, N_MB);
    for (uint32_t mb = 0; mb < N_MB; mb++)
      plan->programs[r].instances[mb] = (LsInstance) { r == 0                 ? 0
                                                           : r + 1 < N_STAGES ? 1
                                                                              : 2,
                                                       mb, 0, (uint16_t) r };
  }
  ls_plan_bind_mesh (plan, &(LsMesh) { 1, 1, 1, N_STAGES }, 0);
  return plan;
}

/* pp-1 of tests/README.md (jax-ml/scaling-book, gpus.md): the pipeline's
 * communication takes 2 B D / (W N_MB) (N_MB + N_st - 2). */
static void
a_chain_takes_its_time (void)
{
  LsClusterSpec spec = tiny_dgx (1);
  spec.server.nvlink.latency = 0;
  LsNccl plain = nccl;
  plain.base_p2p_intra = plain.hop_intra = 0;
  LsCluster *cluster = ls_cluster_build (&spec, NULL);
  LsCalibration calibration;
  ls_calibration_init_roofline (&calibration);
  g_autoptr (LsPlan) plan = chain ();
  g_autoptr (GError) error = NULL;
  LsRunOptions options;
  ls_run_options_init (&options);
  options.n_steps = 1;
  LS_CHECK (ls_plan_check (plan, &error));
  g_autoptr (LsTimeline) t = ls_run (plan, cluster, &calibration, &plain, &options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  double bytes_and_w = MESSAGE / nccl.p2p_intra; /* 2 (B / N_MB) D over W */
  LS_CHECK_NEAR (ls_time_to_s (period (t)), bytes_and_w * (N_MB + N_STAGES - 2), 1e-9);
  ls_calibration_clear (&calibration);
  ls_cluster_free (cluster);
}

/* --- PipeDream --------------------------------------------------------------------- */

/* Of the window, on the rank that has the least. */
static double
least_bubble (const LsTimeline *t)
{
  double least = 1;
  for (uint32_t r = 0; t && r < t->n_ranks; r++) {
    LsTime parts[LS_N_PARTS];
    ls_breakdown_rank (t, r, parts);
    least = MIN (least, (double) parts[LS_PART_BUBBLE] / (double) period (t));
  }
  return least;
}

/* The steady state takes as long for each micro-batch, whatever a step is, and the busiest
 * stage is never idle but for p2p. Only the first step fills the pipeline. */
static void
pipedream_has_no_bubble (void)
{
  Fixture x, longer, flushed;
  fixture_init (&x, "pipedream", 4, 1, 4, NULL);
  fixture_init (&longer, "pipedream", 4, 1, 12, NULL);
  fixture_init (&flushed, "1f1b", 4, 1, 4, NULL);
  g_autoptr (LsTimeline) t = run (&x, 6);
  g_autoptr (LsTimeline) t_longer = run (&longer, 6);
  g_autoptr (LsTimeline) t_flushed = run (&flushed, 3);
  LS_CHECK_INT (3 * period (t), ==, period (t_longer));
  LS_CHECK (least_bubble (t) < 0.02);
  LS_CHECK (least_bubble (t_flushed) > 0.2);
  for (uint32_t role = 0; role < 4; role++) {
    LS_CHECK (x.plan->programs[role].n_lead > 0 || role == 0 || role == 3);
    LS_CHECK_INT (x.plan->programs[role].static_bytes[LS_MEM_PARAMETERS], ==,
                  (4 - role) * flushed.plan->programs[role].static_bytes[LS_MEM_PARAMETERS]);
    LS_CHECK_INT (x.plan->programs[role].static_bytes[LS_MEM_OPTIMIZER], ==,
                  flushed.plan->programs[role].static_bytes[LS_MEM_OPTIMIZER]);
  }
  LS_CHECK_NEAR (ls_plan_model_flops (x.plan, false, false), ls_plan_model_flops (flushed.plan, false, false),
                 1e-12);
  fixture_clear (&x);
  fixture_clear (&longer);
  fixture_clear (&flushed);
}

/* Each micro-batch has a reduction and an update of its own. */
static void
pipedream_updates_each_micro_batch (void)
{
  Fixture x;
  fixture_init (&x, "pipedream", 2, 2, 3, NULL);
  const LsProgram *p = &x.plan->programs[0];
  guint n_adam = 0;
  uint64_t reduced = 0;
  for (uint32_t i = p->n_lead; i < p->n_instances; i++)
    for (uint32_t o = 0; o < x.plan->segments[p->instances[i].segment].n_ops; o++) {
      const LsOp *op = &x.plan->segments[p->instances[i].segment].ops[o];
      n_adam += g_str_equal (op->name, "adam");
      reduced += op->kind == LS_OP_COLLECTIVE && op->slot == LS_SLOT_DP ? op->bytes : 0;
    }
  LS_CHECK_INT (n_adam, ==, 3);
  LS_CHECK_INT (reduced, ==, 3 * 2 * p->n_params);
  g_autoptr (LsTimeline) t = run (&x, 3);
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = x.plan, .timeline = t });
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_conserves_memory (memory, &error));
  LS_CHECK_NO_ERROR (error);
  fixture_clear (&x);
}

/* --- post-validation ------------------------------------------------------------------ */

static void
validate_afterwards (LsStrategy *s)
{
  s->opt.post_validation = true;
}

/* ZB-H2's ranks end one after the other: without a barrier the next step begins so too. */
static void
post_validation_needs_no_barrier (void)
{
  Fixture barrier, after, none;
  fixture_init (&barrier, "zb-h2", 4, 1, 12, NULL);
  fixture_init (&after, "zb-h2", 4, 1, 12, validate_afterwards);
  fixture_init (&none, "zb-h2", 4, 1, 12, no_norm);
  g_autoptr (LsTimeline) t_barrier = run (&barrier, 4);
  g_autoptr (LsTimeline) t_after = run (&after, 4);
  g_autoptr (LsTimeline) t_none = run (&none, 4);
  LS_CHECK (period (t_none) < period (t_after));
  LS_CHECK (period (t_after) < period (t_barrier));
  for (uint32_t i = 0; i < after.plan->n_segments; i++)
    for (uint32_t o = 0; o < after.plan->segments[i].n_ops; o++) {
      const LsOp *op = &after.plan->segments[i].ops[o];
      LS_CHECK (op->kind != LS_OP_HOST_SYNC);
      LS_CHECK (op->kind != LS_OP_COLLECTIVE || op->slot != LS_SLOT_MODEL);
    }
  fixture_clear (&barrier);
  fixture_clear (&after);
  fixture_clear (&none);
}

/* --- overlapped p2p of Megatron-LM ------------------------------------------------------ */

static void
overlap (LsStrategy *s)
{
  s->vpp = 2;
  s->mp.p2p = LS_P2P_OVERLAPPED;
}

static void
overlap_throughout (LsStrategy *s)
{
  overlap (s);
  s->mp.p2p_warmup_flush = true;
}

/* Sends that some kernel of the rank runs beside, in the first step. */
static guint
n_hidden_sends (const LsTimeline *t, uint32_t rank, bool is_forward, uint32_t mb)
{
  guint n = 0;
  for (uint32_t i = 0; t && i < t->ranks[rank].n; i++) {
    const LsSpan *p2p = &t->ranks[rank].spans[i];
    const LsOp *op = ls_span_op (t, rank, p2p);
    const LsInstance *in = ls_span_instance (t, rank, p2p);
    if (op->kind != LS_OP_P2P || p2p->step != 0 || in->mb != mb || in->chunk != 0
        || op->stream != (is_forward ? LS_STREAM_PP_FWD : LS_STREAM_PP_BWD))
      continue;
    for (uint32_t k = 0; k < t->ranks[rank].n; k++) {
      const LsSpan *kernel = &t->ranks[rank].spans[k];
      if (ls_span_op (t, rank, kernel)->kind == LS_OP_KERNEL && kernel->start < p2p->end
          && kernel->end > p2p->start) {
        n++;
        break;
      }
    }
  }
  return n;
}

/* The first forwards of rank 0 are warm-up; the last backwards of rank 1 are cool-down. */
static void
warm_up_and_cool_down_block (void)
{
  Fixture x, throughout;
  fixture_init (&x, "interleaved-1f1b", 4, 1, 8, overlap);
  fixture_init (&throughout, "interleaved-1f1b", 4, 1, 8, overlap_throughout);
  g_autoptr (LsTimeline) t = run (&x, 1);
  g_autoptr (LsTimeline) t_throughout = run (&throughout, 1);
  LS_CHECK_INT (n_hidden_sends (t, 0, true, 0), ==, 0);
  LS_CHECK_INT (n_hidden_sends (t_throughout, 0, true, 0), ==, 1);
  LS_CHECK_INT (n_hidden_sends (t, 1, false, 6), ==, 0);
  LS_CHECK_INT (n_hidden_sends (t_throughout, 1, false, 6), ==, 1);
  LS_CHECK (period (t_throughout) < period (t));
  fixture_clear (&x);
  fixture_clear (&throughout);
}

LS_TEST_SUITE (LS_TEST (pipes_run_both_ways), LS_TEST (a_chain_takes_its_time),
               LS_TEST (p2p_of_a_pair_is_hidden), LS_TEST (pipedream_has_no_bubble),
               LS_TEST (pipedream_updates_each_micro_batch), LS_TEST (post_validation_needs_no_barrier),
               LS_TEST (warm_up_and_cool_down_block))
