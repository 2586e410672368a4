/* Pins tensor parallelism in pieces: which piece waits for which move, that moves take no SMs and
 * are hidden where GEMMs are long enough, and what of the collectives still shows. */
#include "ls_test.h"

#include "random_job.h"

#include "analysis/report.h"

#include <string.h>

#define TP 4

typedef struct {
  LsModel model;
  LsStrategy s;
  LsCluster *cluster;
  LsCalibration calibration;
  LsPlan *plan;
  LsTimeline *t;
} Fixture;

static void
fixture_init (Fixture *x, uint32_t seq, bool overlaps, int kind, bool waits)
{
  LsClusterSpec spec = tiny_dgx (1);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsRunOptions options;
  spec.gpu.peak_flops[LS_DTYPE_BF16] = 312e12;
  *x = (Fixture) { .cluster = ls_cluster_build (&spec, NULL) };
  x->model = (LsModel) {
    .name = (char *) "small",
    .n_layers = 2,
    .hidden = 4096,
    .n_heads = 32,
    .n_kv_heads = 32,
    .head_dim = 128,
    .ffn = 16384,
    .vocab = 5000,
    .seq = seq,
    .mlp = LS_MLP_GELU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
  };
  ls_calibration_init_roofline (&x->calibration);
  ls_strategy_init (&x->s);
  x->s.tp = x->s.gpus = TP;
  x->s.sp = true;
  x->s.mp.tp_overlap = overlaps;
  x->s.mp.tp_overlap_kind = kind;
  x->s.mp.tp_async = !waits;
  LS_CHECK (ls_strategy_resolve (&x->s, &x->model, TP, 8, diags));
  x->plan = ls_lower (&x->model, &x->s, NULL, &error);
  ls_run_options_init (&options);
  options.n_steps = 2;
  x->t = x->plan ? ls_run (x->plan, x->cluster, &x->calibration, &nccl, &options, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
}

static void
fixture_clear (Fixture *x)
{
  ls_timeline_free (x->t);
  ls_plan_free (x->plan);
  ls_strategy_clear (&x->s);
  ls_cluster_free (x->cluster);
  ls_calibration_clear (&x->calibration);
}

/* On rank 0, of the first layer in the last step: a kernel's pieces, and the moves that were issued from
 * right before the first of them to the last. */
typedef struct {
  LsSpan piece[TP], move[TP - 1];
  uint32_t n_pieces, n_moves;
} Pieces;

static int
by_start (const void *a, const void *b)
{
  const LsSpan *x = a, *y = b;
  return x->start != y->start ? (x->start > y->start) - (x->start < y->start) : (int) x->op - (int) y->op;
}

static Pieces
pieces_of (const Fixture *x, const char *kernel)
{
  const LsRankSpans *r = &x->t->ranks[0];
  g_autofree LsSpan *spans = g_memdup2 (r->spans, r->n * sizeof *r->spans);
  Pieces p = { 0 };
  qsort (spans, r->n, sizeof *spans, by_start);
  for (uint32_t i = 0; i < r->n; i++) {
    const LsOp *op = ls_span_op (x->t, 0, &spans[i]);
    if (spans[i].start >= x->t->window_start && p.n_pieces < TP && strcmp (op->name, kernel) == 0)
      p.piece[p.n_pieces++] = spans[i];
  }
  for (uint32_t i = 0; i < r->n && p.n_moves < TP - 1 && p.n_pieces == TP; i++) {
    const LsOp *op = ls_span_op (x->t, 0, &spans[i]);
    bool is_of_it = spans[i].instance == p.piece[0].instance && spans[i].step == p.piece[0].step
        && spans[i].op + 1 >= p.piece[0].op && spans[i].op < p.piece[TP - 1].op;
    if (op->coll == LS_COLL_COPY_PERMUTE && op->kind == LS_OP_COLLECTIVE && is_of_it)
      p.move[p.n_moves++] = spans[i];
  }
  LS_CHECK_INT (p.n_pieces, ==, TP);
  LS_CHECK_INT (p.n_moves, ==, TP - 1);
  return p;
}

/* Pieces of qkv: the first starts with the first move, each other one when its rows have come. */
static void
gathered_rows_come_while_others_are_multiplied (void)
{
  Fixture x;
  fixture_init (&x, 8192, true, LS_TP_OVERLAP_RING, false);
  Pieces p = pieces_of (&x, "qkv");
  LS_CHECK_INT (p.piece[0].start, <=, p.move[0].end);
  for (uint32_t i = 0; i + 1 < TP; i++) {
    LS_CHECK_INT (p.piece[i + 1].start, >=, p.move[i].end);
    LS_CHECK_INT (p.piece[i + 1].start, ==,
                  MAX (p.piece[i].end, p.move[i].end)); /* long enough: nobody waits */
    LS_CHECK_INT (p.piece[i + 1].start, ==, p.piece[i].end);
    LS_CHECK (i == 0 || p.move[i].start >= p.move[i - 1].end);
  }
  fixture_clear (&x);
}

/* Pieces of fc2: each leaves when it is computed. */
static void
computed_rows_leave_while_others_are_multiplied (void)
{
  Fixture x;
  fixture_init (&x, 8192, true, LS_TP_OVERLAP_RING, false);
  Pieces p = pieces_of (&x, "fc2");
  for (uint32_t i = 0; i + 1 < TP; i++) {
    LS_CHECK_INT (p.move[i].start, >=, p.piece[i].end);
    LS_CHECK_INT (p.piece[i + 1].start, ==, p.piece[i].end);
  }
  fixture_clear (&x);
}

static LsTime
exposed (uint32_t seq, bool overlaps, int kind, LsTime *ret_step)
{
  LsTime parts[LS_N_PARTS] = { 0 }, bubbles[LS_N_BUBBLES];
  Fixture x;
  fixture_init (&x, seq, overlaps, kind, false);
  if (x.t)
    ls_breakdown (x.t, parts, bubbles);
  *ret_step = x.t ? x.t->window_end - x.t->window_start : 0;
  fixture_clear (&x);
  return parts[LS_PART_EXPOSED_TP];
}

/* Ring hides what bulk does and most of the rest; the reduce-scatter of the embedding and the
 * gather of the logits have nothing beside them, nor has the last move of a scatter. */
static void
less_shows (void)
{
  LsTime plain_step, bulk_step, ring_step;
  LsTime plain = exposed (8192, false, LS_TP_OVERLAP_RING, &plain_step),
         bulk = exposed (8192, true, LS_TP_OVERLAP_BULK, &bulk_step),
         ring = exposed (8192, true, LS_TP_OVERLAP_RING, &ring_step);
  LS_CHECK_INT (bulk, ==, plain); /* Megatron-LM overlaps these without being told, too */
  LS_CHECK_INT (bulk_step, ==, plain_step);
  LS_CHECK_INT (2 * ring, <, plain);
  LS_CHECK_INT (ring_step, <, plain_step);
}

/* Kernels of rank 0 that run while a whole collective moves. */
static guint
n_beside_collectives (bool waits)
{
  Fixture x;
  fixture_init (&x, 8192, true, LS_TP_OVERLAP_RING, waits);
  const LsRankSpans *r = &x.t->ranks[0];
  guint n = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    const LsOp *coll = ls_span_op (x.t, 0, &r->spans[i]);
    bool is_whole = coll->kind == LS_OP_COLLECTIVE
        && (coll->coll == LS_COLL_ALL_GATHER || coll->coll == LS_COLL_REDUCE_SCATTER);
    for (uint32_t j = 0; is_whole && j < r->n; j++)
      n += ls_span_op (x.t, 0, &r->spans[j])->kind == LS_OP_KERNEL && r->spans[j].start < r->spans[i].end
          && r->spans[j].end > r->spans[i].matched;
  }
  fixture_clear (&x);
  return n;
}

/* PyTorch's: pieces where a product can be cut, nothing beside what cannot. */
static void
collectives_that_stay_whole_block_where_asked (void)
{
  LS_CHECK_INT (n_beside_collectives (false), >, 0);
  LS_CHECK_INT (n_beside_collectives (true), ==, 0);
}

/* Collectives of a plan beside which products leave SMs. */
static guint
n_with_margin (const LsPlan *plan)
{
  guint n = 0;
  for (uint32_t g = 0; g < plan->n_segments; g++)
    for (uint32_t i = 0; i < plan->segments[g].n_ops; i++)
      n += plan->segments[g].ops[i].has_margin;
  return n;
}

/* Transformer Engine's default, and what NeMo's lists ask for. */
static void
products_leave_sms_unless_the_job_says_no (void)
{
  g_autoptr (GError) error = NULL;
  Fixture x;
  fixture_init (&x, 8192, true, LS_TP_OVERLAP_RING, false);
  LS_CHECK_INT (n_with_margin (x.plan), >, 0);
  x.s.mp.tp_overlap_margin = false;
  g_autoptr (LsPlan) without = ls_lower (&x.model, &x.s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK_INT (n_with_margin (without), ==, 0);
  fixture_clear (&x);
}

LS_TEST_SUITE (LS_TEST (gathered_rows_come_while_others_are_multiplied),
               LS_TEST (computed_rows_leave_while_others_are_multiplied), LS_TEST (less_shows),
               LS_TEST (collectives_that_stay_whole_block_where_asked),
               LS_TEST (products_leave_sms_unless_the_job_says_no))
