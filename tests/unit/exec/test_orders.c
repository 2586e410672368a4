/* Pins that p2p is right for any legal order: hundreds of random ones, on loops and waves,
 * batched and overlapped, on ranks of uneven speed that the lowering knows nothing of. The
 * plan passes its check, the run does not deadlock, and every pass of a stage starts after
 * the pass whose output it needs has ended, so each receive got its own message. Messages of one time
 * are posted by the rank of their sender. */
#include "ls_test.h"

#include "random_job.h"

#include "schedules/sched_eval.h"

/* --- an order ------------------------------------------------------------------ */

typedef struct {
  LsOrders *orders;
  bool is_split;
  bool *is_done; /* [(stage * m + mb) * 3 + (F 0, I or B 1, W 2)] */
} Draw;

static bool *
done_at (Draw *d, uint32_t stage, uint32_t mb, int what)
{
  return &d->is_done[(stage * d->orders->layout.n_micro_batches + mb) * 3 + (uint32_t) what];
}

static bool
is_ready (Draw *d, uint32_t stage, uint32_t mb, int what)
{
  bool has_input = what == 0 ? stage == 0 || *done_at (d, stage - 1, mb, 0)
      : what == 1            ? *done_at (d, stage, mb, 0)
          && (stage + 1 == d->orders->layout.n_stages || *done_at (d, stage + 1, mb, 1))
                  : d->is_split && *done_at (d, stage, mb, 1);
  return has_input && !*done_at (d, stage, mb, what);
}

/* Whatever can be next, drawn among all ranks until nothing is left. */
static void
draw_order (Draw *d, GRand *rand)
{
  const LsLayout *l = &d->orders->layout;
  g_autoptr (GArray) ready = g_array_new (FALSE, FALSE, sizeof (uint32_t[3]));
  do {
    g_array_set_size (ready, 0);
    for (uint32_t s = 0; s < l->n_stages; s++)
      for (uint32_t mb = 0; mb < l->n_micro_batches; mb++)
        for (uint32_t what = 0; what < 3; what++)
          if (is_ready (d, s, mb, (int) what))
            g_array_append_vals (ready, (&(uint32_t[3]) { s, mb, what }), 1);
    if (ready->len == 0)
      return;
    const uint32_t *pick = ((uint32_t (*)[3]) ready->data)[g_rand_int_range (rand, 0, (gint32) ready->len)];
    LsHome home = ls_layout_home (l, 0, pick[0]);
    LsActionType types[] = { LS_ACTION_F, d->is_split ? LS_ACTION_I : LS_ACTION_B, LS_ACTION_W };
    LsAction a = { .mb = pick[1], .chunk = home.chunk, .type = (uint8_t) types[pick[2]] };
    *done_at (d, pick[0], pick[1], (int) pick[2]) = true;
    g_array_append_val (d->orders->ranks[home.rank], a);
  } while (true);
}

static LsOrders *
random_orders (GRand *rand, const LsStrategy *s, uint32_t n_micro_batches)
{
  const LsSched *sched = ls_sched_find (s->schedule);
  uint32_t n = s->pp * s->vpp;
  g_autofree LsStageRef *stages = g_new (LsStageRef, n);
  for (uint32_t r = 0; r < s->pp; r++)
    for (uint32_t c = 0; c < s->vpp; c++)
      stages[r * s->vpp + c] = ls_place (sched->placement, s->pp, s->vpp, r, c);
  Draw d = { ls_orders_new (s->pp, s->vpp, 1, n, n_micro_batches, stages), g_rand_boolean (rand),
             g_new0 (bool, (gsize) n *n_micro_batches * 3) };
  draw_order (&d, rand);
  g_free (d.is_done);
  return d.orders;
}

/* --- when each pass ran --------------------------------------------------------------- */

typedef struct {
  LsTime start, end;
} Pass;

/* [(stage * m + mb) * 2 + (0 forward, 1 its input gradients)] of tp rank 0; the run has one step. */
static Pass *
passes_of (const LsTimeline *t, const LsStrategy *s)
{
  const LsPlan *plan = t->plan;
  Pass *passes = g_new0 (Pass, (gsize) s->pp * s->vpp * plan->n_micro_batches * 2);
  for (uint32_t r = 0; r < t->n_ranks; r += s->tp * s->dp)
    for (uint32_t i = 0; i < t->ranks[r].n; i++) {
      const LsSpan *span = &t->ranks[r].spans[i];
      const LsOp *op = ls_span_op (t, r, span);
      const LsInstance *in = ls_span_instance (t, r, span);
      if (span->step != 0 || op->kind != LS_OP_KERNEL || (op->tag != LS_TAG_F && op->tag != LS_TAG_I))
        continue;
      Pass *p = &passes[(in->stage * plan->n_micro_batches + in->mb) * 2 + (op->tag == LS_TAG_I)];
      p->start = p->end == 0 ? span->start : MIN (p->start, span->start);
      p->end = MAX (p->end, span->end);
    }
  return passes;
}

static void
check_passes (const LsTimeline *t, const LsStrategy *s, guint32 seed)
{
  g_autofree Pass *passes = passes_of (t, s);
  uint32_t n = s->pp * s->vpp, m = t->plan->n_micro_batches;
  uint32_t n_seen = 0;
  for (uint32_t stage = 0; stage < n; stage++)
    for (uint32_t mb = 0; mb < m; mb++) {
      const Pass *f = &passes[(stage * m + mb) * 2], *i = f + 1;
      n_seen += f->end > 0 && i->end > 0;
      ls_check_impl (i->start >= f->end, __FILE__, __LINE__,
                     "seed %u stage %u mb %u: gradients before activations", seed, stage, mb);
      if (stage + 1 == n)
        continue;
      const Pass *next = &passes[((stage + 1) * m + mb) * 2];
      ls_check_impl (next->start >= f->end, __FILE__, __LINE__,
                     "seed %u stage %u mb %u: forward before its input", seed, stage + 1, mb);
      ls_check_impl (i->start >= next[1].end, __FILE__, __LINE__,
                     "seed %u stage %u mb %u: backward before its input", seed, stage, mb);
    }
  LS_CHECK_INT (n_seen, ==, n * m);
}

/* --- the test ------------------------------------------------------------------------- */

static void
draw_strategy (GRand *rand, LsStrategy *s)
{
  static const char *const schedules[] = { "gpipe", "looped-bfs", "zbv", "hanayo" };
  guint which = (guint) g_rand_int_range (rand, 0, 4);
  ls_strategy_init (s);
  s->pp = (uint32_t) pick (rand, 2, (uint32_t[]) { 2, 4 });
  s->tp = pick (rand, 2, (uint32_t[]) { 1, 2 });
  s->vpp = which == 0 ? 1 : 2;
  s->schedule = g_strdup (schedules[which]);
  s->gpus = s->tp * s->pp;
  s->global_batch = s->pp * (uint32_t) g_rand_int_range (rand, 1, 3);
  s->mp.p2p = (int) pick (rand, 3, (uint32_t[]) { LS_P2P_BATCHED, LS_P2P_OVERLAPPED, LS_P2P_SCATTER_GATHER });
}

static void
run_one (GRand *rand, guint32 seed)
{
  LsModel m = small_model (rand);
  LsStrategy s;
  LsClusterSpec spec = tiny_dgx (1);
  LsCalibration calibration;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsCluster *cluster = ls_cluster_build (&spec, NULL);
  ls_calibration_init_roofline (&calibration);
  draw_strategy (rand, &s);
  LS_CHECK (ls_strategy_resolve (&s, &m, s.gpus, 8, diags));
  g_autoptr (LsOrders) orders = random_orders (rand, &s, s.global_batch);
  LS_CHECK (ls_orders_check (orders, NULL, diags));
  g_autoptr (LsPlan) plan = ls_lower_orders (&m, &s, orders, NULL, &error);
  LsRunOptions options;
  double slow[8];
  for (int r = 0; r < 8; r++)
    slow[r] = 1 + 0.2 * g_rand_int_range (rand, 0, 20);
  ls_run_options_init (&options);
  options.n_steps = 1; /* all of it lies in the window */
  options.slow = slow;
  g_autoptr (LsTimeline) t = NULL;
  if (plan && ls_plan_check (plan, &error))
    t = ls_run (plan, cluster, &calibration, &nccl, &options, NULL, &error);
  ls_check_impl (t != NULL, __FILE__, __LINE__, "seed %u, %s pp %u m %u: %s", seed, s.schedule, s.pp,
                 s.global_batch, error ? error->message : "no plan");
  if (t)
    check_passes (t, &s, seed);
  ls_strategy_clear (&s);
  ls_calibration_clear (&calibration);
  ls_cluster_free (cluster);
}

static void
any_legal_order_runs (void)
{
  guint n = ls_test_cases (60, 60);
  for (guint32 seed = 1; seed <= n; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed + 70000);
    run_one (rand, seed);
  }
}

/* GPipe on 4 even stages: rank 1 is done with micro-batch 0 when rank 0 is with 1. What rank 0
 * sends is posted before what rank 1 sends. */
static void
messages_of_one_time_go_by_rank (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  LsModel m = small_model (rand);
  m.n_layers = 8;
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_strategy_init (&s);
  s.pp = s.gpus = 4;
  s.schedule = g_strdup ("gpipe");
  s.global_batch = 4;
  s.mp.p2p = LS_P2P_OVERLAPPED;
  LS_CHECK (ls_strategy_resolve (&s, &m, s.gpus, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (GString) names = g_string_new (NULL);
  const LsProgram *p = plan ? &plan->programs[1] : NULL;
  for (uint32_t i = 0; p && i < 8; i++)
    g_string_append_printf (names, "%s\n", plan->segments[p->instances[i].segment].name);
  LS_CHECK_STR (
      names->str,
      "begin stage 1\nrecv from previous\nreceived activations on pp-fwd-recv\nwait for activations\nforward 2 layers\n"
      "recv from previous\nreceived activations on pp-fwd-recv\nsend to next\n");
  ls_strategy_clear (&s);
}

LS_TEST_SUITE (LS_TEST (any_legal_order_runs), LS_TEST (messages_of_one_time_go_by_rank))
