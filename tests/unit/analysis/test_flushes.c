/* Pins steps that flush their pipeline several times (pipeline_batch): the program between two flushes is that of
 * a step of its own, whatever the schedule and its messages; the second time takes as long as the first; bubbles
 * of each are its own; and gradients are reduced once a step, or before each flush. */
#include <string.h>

#include "analysis/report.h"
#include "dp_job.h"
#include "ls_test.h"

enum { BATCH = 8, LAYERS = 8 };

typedef struct {
  const char *schedule;
  uint32_t vpp;
  LsP2p p2p;
} Way;

static const Way ways[] = {
  { "gpipe", 1, LS_P2P_BATCHED },
  { "1f1b", 1, LS_P2P_BATCHED },
  { "1f1b", 1, LS_P2P_SCATTER_GATHER },
  { "interleaved-1f1b", 2, LS_P2P_BATCHED },
  { "interleaved-1f1b", 2, LS_P2P_OVERLAPPED },
  { "looped-bfs", 2, LS_P2P_BATCHED },
  { "zb-h1", 1, LS_P2P_OVERLAPPED },
  { "zb-auto", 1, LS_P2P_BATCHED },
  { "zbv", 2, LS_P2P_BATCHED },
  { "dualpipev", 2, LS_P2P_OVERLAPPED },
  { "chimera", 1, LS_P2P_BATCHED },
};

/* On four stages; so many times what passes between two flushes. */
static LsStrategy
job_of (const Way *way, uint32_t n_flushes)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.pp = 4;
  s.vpp = way->vpp;
  s.schedule = g_strdup (way->schedule);
  s.mp.p2p = way->p2p;
  s.global_batch = n_flushes * BATCH;
  s.mp.pipeline_batch = BATCH;
  return s;
}

static DpRun
run_job (LsStrategy s)
{
  LsModel m = dp_model (LAYERS, 1024);
  LsClusterSpec spec = dp_dgx (2);
  DpRun r = dp_run (&m, &s, &spec);
  ls_strategy_clear (&s);
  return r;
}

/* --- programs --------------------------------------------------------------------------------------- */

static const char *
name_at (const LsPlan *plan, const LsProgram *p, uint32_t i)
{
  return plan->segments[p->instances[i].segment].name;
}

static bool
is_alike (const LsPlan *a, const LsProgram *p, uint32_t i, const LsPlan *b, const LsProgram *q, uint32_t j,
          uint32_t n_before)
{
  const LsInstance *x = &p->instances[i], *y = &q->instances[j];
  return strcmp (name_at (a, p, i), name_at (b, q, j)) == 0 && x->mb + n_before == y->mb
      && x->chunk == y->chunk;
}

/* What stands between begin and end of a step, twice with a flush between. */
static bool
is_twice (const LsPlan *one, const LsProgram *p, const LsPlan *two, const LsProgram *q)
{
  uint32_t n = p->n_instances - 2;
  bool is_right = LS_CHECK_INT (q->n_instances, ==, 2 * n + 3)
      && LS_CHECK_INT (q->n_per_flush, ==, p->n_per_flush)
      && LS_CHECK (g_str_has_prefix (name_at (two, q, n + 1), "flush stage"));
  for (uint32_t i = 1; i <= n && is_right; i++)
    is_right = LS_CHECK (is_alike (one, p, i, two, q, i, 0))
        && LS_CHECK (is_alike (one, p, i, two, q, n + 1 + i, p->n_per_flush));
  return is_right;
}

static void
each_flush_ends_a_step_of_its_own (void)
{
  for (guint w = 0; w < G_N_ELEMENTS (ways); w++) {
    DpRun one = run_job (job_of (&ways[w], 1)), two = run_job (job_of (&ways[w], 2));
    bool is_right = one.t && two.t;
    for (uint32_t role = 0; is_right && role < one.plan->n_roles; role++)
      is_right = is_twice (one.plan, &one.plan->programs[role], two.plan, &two.plan->programs[role]);
    ls_check_impl (is_right, __FILE__, __LINE__, "%s, %s", ways[w].schedule,
                   ls_enum_name (ls_p2p_names, ways[w].p2p));
    dp_run_clear (&one);
    dp_run_clear (&two);
  }
}

/* --- times ------------------------------------------------------------------------------------------ */

static LsTime
step_of (LsStrategy s)
{
  DpRun r = run_job (s);
  LsTime step = r.t ? r.t->window_end - r.t->window_start : 0;
  dp_run_clear (&r);
  return step;
}

/* A second flush adds as much as a third; and more than its micro-batches would in one pipeline. */
static void
each_flush_takes_as_long (void)
{
  for (guint w = 0; w < G_N_ELEMENTS (ways); w++) {
    LsStrategy whole = job_of (&ways[w], 2);
    whole.mp.pipeline_batch = 0;
    LsTime one = step_of (job_of (&ways[w], 1)), two = step_of (job_of (&ways[w], 2)),
           three = step_of (job_of (&ways[w], 3)), unbroken = step_of (whole);
    bool is_right = LS_CHECK_INT (two - one, >, 0) && LS_CHECK_INT (three - two, ==, two - one)
        && LS_CHECK_INT (unbroken, <, two) && LS_CHECK_INT (two, <, 2 * one);
    ls_check_impl (is_right, __FILE__, __LINE__, "%s, %s", ways[w].schedule,
                   ls_enum_name (ls_p2p_names, ways[w].p2p));
  }
}

/* What waits behind the first flush fills or drains its own pipeline: nothing of it is of a steady state. */
static void
bubbles_are_of_their_flush (void)
{
  const Way *way = &ways[1];
  DpRun one = run_job (job_of (way, 1)), two = run_job (job_of (way, 2));
  if (one.t && two.t) {
    LsTime sum[LS_N_PARTS], a[LS_N_BUBBLES], b[LS_N_BUBBLES];
    ls_breakdown (one.t, sum, a);
    ls_breakdown (two.t, sum, b);
    LS_CHECK_INT (a[LS_BUBBLE_WARMUP], >, 0);
    LS_CHECK_INT (b[LS_BUBBLE_WARMUP] + b[LS_BUBBLE_DRAIN], >,
                  3 * (a[LS_BUBBLE_WARMUP] + a[LS_BUBBLE_DRAIN]) / 2);
    LS_CHECK_INT (b[LS_BUBBLE_STEADY] + b[LS_BUBBLE_IMBALANCE], <=,
                  2 * (a[LS_BUBBLE_STEADY] + a[LS_BUBBLE_IMBALANCE]));
  }
  dp_run_clear (&one);
  dp_run_clear (&two);
}

/* --- gradients ---------------------------------------------------------------------------------------- */

typedef struct {
  guint gathers, reductions, sums;
} Calls;

static void
add_calls (const LsPlan *plan, const LsSegment *seg, Calls *c)
{
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o];
    c->gathers += op->kind == LS_OP_COLLECTIVE && strcmp (op->name, "unit all-gather") == 0;
    c->reductions += op->kind == LS_OP_COLLECTIVE
        && (strcmp (op->name, "unit reduce-scatter") == 0 || strcmp (op->name, "grad all-reduce") == 0);
    c->sums
        += op->kind == LS_OP_KERNEL && strcmp (plan->kernels[op->kernel].name, "grad-shard-accumulate") == 0;
  }
}

/* Of the first stage, on two copies of two stages; three flushes. */
static Calls
calls_of (LsDpKind kind, LsGradSync sync)
{
  Calls c = { 0 };
  LsStrategy s = job_of (&ways[1], 3);
  s.pp = s.dp = 2;
  s.global_batch *= 2;
  s.dp_kind = kind;
  s.zero_stage = kind == LS_DP_FSDP2 ? 3 : 0;
  s.data.grad_sync = sync;
  DpRun r = run_job (s);
  for (uint32_t i = 0; r.t && i < r.plan->programs[0].n_instances; i++)
    add_calls (r.plan, &r.plan->segments[r.plan->programs[0].instances[i].segment], &c);
  dp_run_clear (&r);
  return c;
}

/* Four layers and the embedding: five units of FSDP2, kept from the first forward on; buckets of DDP. */
static void
gradients_are_reduced_as_often_as_said (void)
{
  Calls once = calls_of (LS_DP_FSDP2, LS_GRAD_SYNC_LAST), each = calls_of (LS_DP_FSDP2, LS_GRAD_SYNC_FLUSH);
  LS_CHECK_INT (once.gathers, ==, 5);
  LS_CHECK_INT (once.reductions, ==, 5);
  LS_CHECK_INT (once.sums, ==, 0);
  LS_CHECK_INT (each.gathers, ==, 3 * 5);
  LS_CHECK_INT (each.reductions, ==, 3 * 5);
  LS_CHECK_INT (each.sums, ==, 2 * 5);
  Calls buckets = calls_of (LS_DP_DDP, LS_GRAD_SYNC_LAST);
  LS_CHECK_INT (buckets.reductions, >, 0);
  LS_CHECK_INT (calls_of (LS_DP_DDP, LS_GRAD_SYNC_FLUSH).reductions, ==, 3 * buckets.reductions);
}

/* --- what is legal -------------------------------------------------------------------------------------- */

static void
check_refused (LsStrategy s, const char *why)
{
  LsModel m = dp_model (LAYERS, 1024);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (!ls_strategy_resolve (&s, &m, s.gpus, 8, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (strstr (text, why) != NULL, __FILE__, __LINE__, "%s: %s", why, text);
  ls_strategy_clear (&s);
}

static void
what_cannot_be_flushed_is_refused (void)
{
  static const Way never = { "pipedream", 1, LS_P2P_OVERLAPPED }, deepspeed = { "1f1b", 1, LS_P2P_DEEPSPEED };
  LsStrategy rest = job_of (&ways[1], 2), part = job_of (&ways[1], 2), megatron = job_of (&ways[1], 2);
  rest.mp.pipeline_batch = 5;
  part.micro_batch = 16;
  megatron.gpus = 8;
  megatron.dp = 2;
  megatron.dp_kind = LS_DP_MEGATRON;
  megatron.data.grad_sync = LS_GRAD_SYNC_FLUSH;
  check_refused (rest, "expected a divisor of the 16 sequences of a copy in a step; got 5");
  check_refused (part, "expected a multiple of micro_batch = 16; got 8");
  check_refused (job_of (&never, 2), "pipedream, which is never flushed");
  check_refused (job_of (&deepspeed, 2), "whose engine flushes once a step");
  check_refused (megatron, "expected last or each with dp_kind megatron");
}

LS_TEST_SUITE (LS_TEST (each_flush_ends_a_step_of_its_own), LS_TEST (each_flush_takes_as_long),
               LS_TEST (bubbles_are_of_their_flush), LS_TEST (gradients_are_reduced_as_often_as_said),
               LS_TEST (what_cannot_be_flushed_is_refused))
