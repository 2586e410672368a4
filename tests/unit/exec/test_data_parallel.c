/* Pins data parallelism as Megatron-LM and as XLA run it. */
#include "dp_job.h"
#include "ls_test.h"
#include "tiny_cluster.h"

#include "exec/memory/memory.h"
#include "lower/lower_build.h"

/* Pins the semantics of Megatron-LM's data parallelism: parameters gathered one bucket ahead, which
 * hides where compute is long enough and leaves bubbles where it is not; gathers and reductions of
 * all pipeline ranks aligned with interleaved 1F1B; the optimizer cut in groups; torch's DDP
 * reducing with each micro-batch or with the last. */

/* --- one bucket ahead -------------------------------------------------------------------- */

/* 4 ranks, 3 layers, 4 buckets: head and layer 2, but for its first norm; layer 1, likewise;
 * layer 0; embedding. */
static DpRun
run_zero1 (uint32_t seq)
{
  LsModel m = dp_model (3, seq);
  LsClusterSpec spec = dp_dgx (1);
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.global_batch = 4;
  s.zero_stage = 1;
  s.data.bucket_params = 12000000;
  DpRun r = dp_run (&m, &s, &spec);
  ls_strategy_clear (&s);
  return r;
}

/* A gather waits for the bucket before it to be needed, and is launched then, not sooner: never
 * more than one is under way. */
static void
check_look_ahead (const GArray *spans)
{
  static const char gather[] = "parameter all-gather";
  LS_CHECK_INT (dp_count (spans, gather), ==, 4);
  for (guint k = 1; k < 4; k++) {
    DpSpan last = dp_nth (spans, gather, k - 1), next = dp_nth (spans, gather, k);
    LS_CHECK_INT (next.op->unit, ==, 3 - k);
    LS_CHECK_INT (next.start, >=, last.end);
    /* The first kernel of the bucket that was awaited starts together with the next gather. */
    DpSpan kernel = k == 1 ? dp_nth (spans, "embedding-lookup", 0) : dp_nth (spans, "qkv", k - 2);
    LS_CHECK_INT (next.start, ==, kernel.start);
  }
}

static void
gathers_hide_behind_long_layers (void)
{
  DpRun r = run_zero1 (4096);
  g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
  if (spans) {
    check_look_ahead (spans);
    /* Exposed: the first, and the second but for the embedding and a norm. */
    DpSpan first = dp_nth (spans, "parameter all-gather", 0),
           second = dp_nth (spans, "parameter all-gather", 1);
    DpSpan layer0 = dp_nth (spans, "qkv", 0), layer2 = dp_nth (spans, "qkv", 2),
           loss = dp_nth (spans, "logits", 0);
    LS_CHECK_INT (layer0.start, ==, second.end);
    LS_CHECK_INT (dp_idle (spans, first.start, layer0.start), <,
                  (first.end - first.start) + (second.end - second.start));
    LS_CHECK_INT (dp_idle (spans, layer0.start, loss.end), ==, 0);
    LS_CHECK_INT (dp_nth (spans, "parameter all-gather", 3).end, <, layer2.start);
    dp_check_timeline (spans, "megatron", "megatron-long");
  }
  dp_run_clear (&r);
}

static void
short_layers_leave_bubbles (void)
{
  DpRun r = run_zero1 (128);
  g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
  if (spans) {
    check_look_ahead (spans);
    for (guint layer = 0; layer < 3; layer++) /* each waits for its gather */
      LS_CHECK_INT (dp_nth (spans, "qkv", layer).start, ==,
                    dp_nth (spans, "parameter all-gather", layer + 1).end);
    DpSpan layer0 = dp_nth (spans, "qkv", 0), layer2 = dp_nth (spans, "qkv", 2);
    LS_CHECK_INT (dp_idle (spans, layer0.start, layer2.start), >, (layer2.start - layer0.start) / 2);
    dp_check_timeline (spans, "megatron", "megatron-short");
  }
  dp_run_clear (&r);
}

/* --- interleaved ----------------------------------------------------------------------------- */

enum { PP = 2, VPP = 4, MICRO_BATCHES = 4 };

/* Instances of a role up to the first one that runs this segment for this chunk; of passes, by
 * the start of their names. */
static uint32_t
count_before (const LsPlan *plan, uint32_t role, const char *segment, const char *pass)
{
  uint32_t n = 0;
  const LsProgram *p = &plan->programs[role];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const char *name = plan->segments[p->instances[i].segment].name;
    if (strcmp (name, segment) == 0)
      return n;
    n += g_str_has_prefix (name, pass);
  }
  return UINT32_MAX;
}

static bool
has_op (const LsPlan *plan, const char *segment, const char *op)
{
  for (uint32_t i = 0; i < plan->n_segments; i++)
    for (uint32_t o = 0; strcmp (plan->segments[i].name, segment) == 0 && o < plan->segments[i].n_ops; o++)
      if (g_strcmp0 (plan->segments[i].ops[o].name, op) == 0)
        return true;
  return false;
}

/* The forwards of a rank are chunk 0 for micro-batches 0, 1, chunk 1 for 0, 1, .. chunk 3, then chunk 0
 * for 2, 3 ..; its backwards chunk 3 for 0, 1, chunk 2 .. So forward 2 c is the first of chunk c, and
 * backward 15 - 2 c the last. Chunk c + 1 is gathered before forward 2 c - rank; chunk c is
 * reduced behind backward 15 - 2 c + rank. */
static void
check_turns (const LsPlan *plan, uint32_t rank)
{
  for (uint32_t chunk = 0; chunk < VPP; chunk++) {
    g_autofree char *gather = g_strdup_printf ("gather parameters stage %u chunk %u", rank, chunk);
    g_autofree char *reduce = g_strdup_printf ("reduce gradients stage %u chunk %u", rank, chunk);
    uint32_t last = 15 - 2 * chunk + rank;
    LS_CHECK_INT (count_before (plan, rank, gather, "forward"), ==, chunk < 2 ? 0 : 2 * (chunk - 1) - rank);
    LS_CHECK_INT (count_before (plan, rank, reduce, "backward"), ==,
                  last < VPP * MICRO_BATCHES ? last + 1 : UINT32_MAX);
    LS_CHECK (has_op (plan, gather, "parameter all-gather"));
    LS_CHECK (last >= VPP * MICRO_BATCHES || has_op (plan, reduce, "grad reduce-scatter"));
  }
}

static void
pipeline_ranks_gather_and_reduce_together (void)
{
  LsModel m = dp_model (8, 512);
  LsClusterSpec spec = dp_dgx (1);
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 4;
  s.pp = PP;
  s.vpp = VPP;
  s.zero_stage = 1;
  s.global_batch = 2 * MICRO_BATCHES;
  DpRun r = dp_run (&m, &s, &spec);
  for (uint32_t rank = 0; r.t && rank < PP; rank++)
    check_turns (r.plan, rank);
  /* What no backward of rank 1 stands behind is left to the end: its chunk 0. */
  if (r.t) {
    LS_CHECK (has_op (r.plan, "end stage 1", "grad reduce-scatter"));
    LS_CHECK (!has_op (r.plan, "end stage 0", "grad reduce-scatter"));
  }
  ls_strategy_clear (&s);
  dp_run_clear (&r);
}

/* --- groups ------------------------------------------------------------------------------------ */

/* 1@4 of 8: a quarter of each bucket is summed over the two groups, behind its reduce-scatter and
 * before the next one; parameters are gathered among 4. */
static void
an_optimizer_in_groups_sums_its_parts (void)
{
  LsModel m = dp_model (2, 1024);
  LsClusterSpec spec = dp_dgx (1);
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.global_batch = 8;
  s.zero_stage = 1;
  s.data.zero_group = 4;
  s.data.bucket_params = 12000000;
  DpRun r = dp_run (&m, &s, &spec);
  g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
  guint n = spans ? dp_count (spans, "grad reduce-scatter") : 0;
  LS_CHECK_INT (n, ==, 3);
  for (guint k = 0; k < n; k++) {
    DpSpan scatter = dp_nth (spans, "grad reduce-scatter", k), sum = dp_nth (spans, "shard all-reduce", k);
    LS_CHECK_INT (scatter.op->slot, ==, LS_SLOT_SHARD);
    LS_CHECK_INT (sum.op->slot, ==, LS_SLOT_REPLICA);
    LS_CHECK_INT (scatter.op->bytes, ==, 4 * sum.op->bytes);
    LS_CHECK_INT (sum.start, >=, scatter.end);
    LS_CHECK (k + 1 == n || dp_nth (spans, "grad reduce-scatter", k + 1).start >= sum.end);
    LS_CHECK_INT (dp_nth (spans, "parameter all-gather", k).op->slot, ==, LS_SLOT_SHARD);
  }
  ls_strategy_clear (&s);
  dp_run_clear (&r);
}

/* --- torch DDP ------------------------------------------------------------------------------------ */

/* 2 layers in buckets of 1 MiB, then 25 MiB, a parameter closing the bucket that it fills: the head
 * (2 MB); layer 1 and fc2 of layer 0 (34 MB); the rest. */
static void
ddp_reduces_each_micro_batch_or_the_last (void)
{
  for (int each = 0; each < 2; each++)
    for (int overlaps = 0; overlaps < 2; overlaps++) {
      LsModel m = dp_model (2, 1024);
      LsClusterSpec spec = dp_dgx (1);
      LsStrategy s;
      ls_strategy_init (&s);
      s.gpus = 4;
      s.global_batch = 12;
      s.dp_kind = LS_DP_DDP;
      s.data.overlap = overlaps;
      s.data.grad_sync = each ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
      DpRun r = dp_run (&m, &s, &spec);
      g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
      if (spans) {
        guint buckets = overlaps ? 3 : 1;
        LS_CHECK_INT (dp_count (spans, "grad all-reduce"), ==, buckets * (each ? 3 : 1));
        /* The backward of a micro-batch ends with its last all-reduce: the next forward, or the
         * optimizer, comes behind. */
        DpSpan last = dp_nth (spans, "grad all-reduce", buckets - 1);
        DpSpan next = each ? dp_nth (spans, "embedding-lookup", 1) : dp_nth (spans, "grad-norm", 0);
        LS_CHECK (next.op && next.start >= last.end);
        DpSpan first = dp_nth (spans, "grad all-reduce", 0);
        DpSpan backward_end = dp_nth (spans, "embedding-grad-accumulate", each ? 0 : 2);
        LS_CHECK (overlaps ? first.start < backward_end.start : first.start >= backward_end.end);
        if (overlaps && !each)
          dp_check_timeline (spans, "megatron", "ddp");
      }
      ls_strategy_clear (&s);
      dp_run_clear (&r);
    }
}

/* Pins XLA's FSDP as it runs on a slice of a torus: weights of a layer are gathered as the layer
 * begins, the first of them exposed, the others behind the products before them where these are
 * long enough; reductions block; slices sum their parts in the background; memory holds the
 * weights of one layer. */

static const char gather[] = "weight all-gather", scatter[] = "grad reduce-scatter",
                  sum[] = "shard all-reduce";

/* Slices of 4 x 4, rings both ways. */
static DpRun
run_loop (uint32_t n, uint32_t seq, int recompute, LsLoopOverlap overlap, LsLoopCopies copies)
{
  LsModel m = dp_model (3, seq);
  LsClusterSpec spec = tiny_torus (n, 4, 4, 0, LS_WRAP_FULL_AXES);
  spec.gpu.peak_flops[LS_DTYPE_BF16] = 275e12;
  spec.gpu.vector_flops = 8.6e12;
  LsStrategy s;
  ls_strategy_init (&s);
  s.global_batch = 16 * n;
  s.dp_kind = LS_DP_XLA_FSDP;
  s.zero_stage = 3;
  s.data.zero_group = n > 1 ? 16 : 0;
  s.recompute = recompute;
  s.data.loop_overlap = overlap;
  s.data.loop_copies = copies;
  DpRun r = dp_run (&m, &s, &spec);
  ls_strategy_clear (&s);
  return r;
}

static DpRun
run_slices (uint32_t n, uint32_t seq, int recompute)
{
  return run_loop (n, seq, recompute, LS_LOOP_OVERLAP_GATHERS, LS_LOOP_COPIES_NONE);
}

/* Gathers of a forward: embedding, then qkv, proj, fc1, fc2 of each layer, head. */
enum {
  EMBEDDING,
  LAYER0,
  PER_LAYER = 4,
  LAYER1 = LAYER0 + PER_LAYER,
  HEAD = LAYER0 + 3 * PER_LAYER,
  FORWARD
};

static void
only_the_first_weight_of_a_long_layer_is_exposed (void)
{
  DpRun r = run_slices (1, 4096, LS_RECOMPUTE_FULL);
  g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
  if (spans) {
    LS_CHECK_INT (dp_count (spans, gather), ==, FORWARD + 3 * PER_LAYER);
    DpSpan qkv = dp_nth (spans, "qkv", 1), next = dp_nth (spans, "qkv", 2);
    DpSpan first = dp_nth (spans, gather, LAYER1), second = dp_nth (spans, gather, LAYER1 + 1),
           fourth = dp_nth (spans, gather, LAYER1 + 3);
    DpSpan norm = dp_nth (spans, "rmsnorm-fwd", 2); /* of layer 1 */
    LS_CHECK_INT (first.start, ==, norm.start);     /* as the layer begins, not before */
    LS_CHECK_INT (qkv.start, ==, first.end);
    LS_CHECK_INT (second.start, ==, first.end); /* one at a time */
    LS_CHECK_INT (fourth.end, <, dp_nth (spans, "fc2", 1).start);
    LS_CHECK_INT (dp_idle (spans, qkv.start, dp_nth (spans, gather, LAYER1 + PER_LAYER).start), ==, 0);
    LS_CHECK_INT (dp_idle (spans, qkv.start, next.start), ==, dp_idle (spans, norm.start, qkv.start));
    dp_check_timeline (spans, "xla", "xla-long");
  }
  dp_run_clear (&r);
}

static void
short_layers_wait_for_every_weight (void)
{
  DpRun r = run_slices (1, 128, LS_RECOMPUTE_FULL);
  g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
  static const char *const products[] = { "qkv", "proj", "fc1", "fc2" };
  if (spans) {
    for (guint k = 0; k < PER_LAYER; k++)
      LS_CHECK_INT (dp_nth (spans, products[k], 1).start, ==, dp_nth (spans, gather, LAYER1 + k).end);
    DpSpan qkv = dp_nth (spans, "qkv", 1), fc2 = dp_nth (spans, "fc2", 1);
    LS_CHECK_INT (dp_idle (spans, qkv.start, fc2.end), >, (fc2.end - qkv.start) / 2);
    dp_check_timeline (spans, "xla", "xla-short");
  }
  dp_run_clear (&r);
}

/* A backward gathers once for what runs again and for the gradient of the input; its reductions stand
 * between kernels. */
static void
backward_blocks_on_its_reductions (void)
{
  for (int recompute = LS_RECOMPUTE_NONE; recompute <= LS_RECOMPUTE_FULL; recompute += LS_RECOMPUTE_FULL) {
    DpRun r = run_slices (1, 1024, recompute);
    g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
    if (!spans)
      continue;
    LS_CHECK_INT (dp_count (spans, gather), ==, FORWARD + 3 * PER_LAYER);
    LS_CHECK_INT (dp_count (spans, scatter), ==, 3 * PER_LAYER + 2);
    for (guint k = 0; k < 3 * PER_LAYER + 2; k++) {
      DpSpan s = dp_nth (spans, scatter, k);
      LS_CHECK_INT (dp_idle (spans, s.start, s.end), ==, s.end - s.start);
    }
    dp_run_clear (&r);
  }
}

/* 3@16 over two slices: what a chip has of a weight is summed over DCN beside the layers below,
 * and waited for at the end only. */
static void
slices_sum_in_the_background (void)
{
  DpRun r = run_slices (2, 4096, LS_RECOMPUTE_FULL);
  g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
  if (spans) {
    guint n = 3 * PER_LAYER + 2;
    LS_CHECK_INT (dp_count (spans, sum), ==, n);
    for (guint k = 0; k < n; k++) {
      DpSpan part = dp_nth (spans, sum, k), whole = dp_nth (spans, scatter, k);
      LS_CHECK_INT (part.op->bytes, ==, whole.op->bytes / 16);
      LS_CHECK_INT (part.start, >=, whole.end);
    }
    DpSpan early = dp_nth (spans, sum, 1);
    LS_CHECK_INT (dp_idle (spans, early.start, early.end), <,
                  early.end - early.start); /* computes meanwhile */
    LS_CHECK_INT (dp_nth (spans, "grad-norm", 0).start, >=, dp_nth (spans, sum, n - 1).end);
  }
  dp_run_clear (&r);
}

/* At most the weights of a layer, and one gradient, besides the head's weight. */
static void
memory_holds_the_weights_of_a_layer (void)
{
  DpRun r = run_slices (1, 1024, LS_RECOMPUTE_FULL);
  if (r.t) {
    const LsMemoryInput in = { .plan = r.plan, .timeline = r.t };
    g_autoptr (LsMemory) memory = ls_memory_new (&in);
    uint64_t h = 1024, layer = 2 * 12 * h * h, head = 2 * 1024 * h, gradient = 2 * 4 * h * h;
    LS_CHECK_INT (memory->classes[0].category_peak[LS_MEM_UNSHARDED], >=, layer);
    LS_CHECK_INT (memory->classes[0].category_peak[LS_MEM_UNSHARDED], <=, layer + gradient + head);
    uint64_t n = 12 * h * h * 3 + 2 * 1024 * h + 7 * h;
    LS_CHECK_INT (r.plan->programs[0].static_bytes[LS_MEM_PARAMETERS], ==, 4 * ((n + 15) / 16));
    LS_CHECK_INT (r.plan->programs[0].static_bytes[LS_MEM_OPTIMIZER], ==, 8 * ((n + 15) / 16));
  }
  dp_run_clear (&r);
}

/* Ops of that name for whose end a later op of compute waits. */
static guint
n_awaited (const LsPlan *plan, const char *name)
{
  guint n = 0;
  for (LsOpPlace at = LS_OP_BEFORE (0); ls_op_next (plan, &at);) {
    const LsOp *op = ls_op_at (plan, at);
    const LsOp *ops = op - at.op;
    for (uint32_t d = 0; d < op->n_deps && op->stream == LS_STREAM_COMPUTE; d++)
      n += op->deps[d].kind == LS_DEP_END && strcmp (ops[op->deps[d].index].name, name) == 0;
  }
  return n;
}

/* As on GPUs: reductions of a turn run beside the rest of it, and its end waits for them. Pipelined, the
 * gathers of a turn start with the turn before, and its reductions have all of the next; slices sum behind
 * them. As much is gathered and reduced, and what a turn had is free when its reductions are waited for. */
static void
loops_overlap_their_turns (void)
{
  static const LsLoopOverlap overlaps[] = { LS_LOOP_OVERLAP_TURN, LS_LOOP_OVERLAP_PIPELINED };
  const guint last = 1 + PER_LAYER; /* reductions: the head's, then fc2 to qkv of layer 2 */
  for (guint i = 0; i < 2 * G_N_ELEMENTS (overlaps); i++) {
    bool is_pipelined = overlaps[i / 2] == LS_LOOP_OVERLAP_PIPELINED;
    DpRun r = run_loop (1 + i % 2, 4096, LS_RECOMPUTE_FULL, overlaps[i / 2], LS_LOOP_COPIES_NONE);
    g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
    if (!LS_CHECK (spans != NULL))
      return;
    LS_CHECK_INT (dp_count (spans, gather), ==, FORWARD + 3 * PER_LAYER);
    LS_CHECK_INT (dp_count (spans, scatter), ==, 3 * PER_LAYER + 2);
    LS_CHECK_INT (n_awaited (r.plan, scatter), ==, 3 * PER_LAYER + 2);
    DpSpan early = dp_nth (spans, scatter, 1), qkv = dp_nth (spans, scatter, last - 1);
    LS_CHECK_INT (dp_idle (spans, early.start, early.end), <, early.end - early.start);
    guint waits_at = is_pipelined ? 2 : 1;
    LS_CHECK_INT (dp_nth (spans, "fc2-dgrad", waits_at).start, >=, qkv.end);
    DpSpan first = dp_nth (spans, gather, LAYER1), norm = dp_nth (spans, "rmsnorm-fwd", is_pipelined ? 0 : 2);
    LS_CHECK_INT (first.start, ==, MAX (norm.start, dp_nth (spans, gather, LAYER1 - 1).end));
    DpSpan fc2 = dp_nth (spans, "fc2", 0), next = dp_nth (spans, "qkv", 1);
    LS_CHECK (is_pipelined == (dp_idle (spans, fc2.end, next.start) == 0));
    if (i % 2 == 1)
      LS_CHECK_INT (dp_nth (spans, sum, 1).start, >=, dp_nth (spans, scatter, 1).end);
    LS_CHECK_INT (dp_nth (spans, "grad-norm", 0).start, >=, dp_nth (spans, scatter, 3 * PER_LAYER + 1).end);
    const LsMemoryInput in = { .plan = r.plan, .timeline = r.t };
    g_autoptr (LsMemory) memory = ls_memory_new (&in);
    LS_CHECK_INT (memory->classes[0].overfreed_bytes, ==, 0);
    double layers = (double) memory->classes[0].category_peak[LS_MEM_UNSHARDED] / (2 * 12 * 1024.0 * 1024);
    LS_CHECK (layers <= (is_pipelined ? 3.34 : 1.34)); /* weights and gradients of two turns, of one */
    dp_run_clear (&r);
  }
}

/* Of each layer what the products made that are kept: all but the last, whose output nothing needs. A unit but
 * the first of a pass copies its weights where they come from the turn before; the head's stay. */
static void
loops_copy_what_they_keep (void)
{
  static const struct {
    int recompute;
    LsLoopOverlap overlap;
    LsLoopCopies copies;
    guint kept, weights;
  } cases[] = {
    { LS_RECOMPUTE_NONE, LS_LOOP_OVERLAP_GATHERS, LS_LOOP_COPIES_NONE, 0, 0 },
    { LS_RECOMPUTE_NONE, LS_LOOP_OVERLAP_GATHERS, LS_LOOP_COPIES_KEPT, 3 * (PER_LAYER - 1), 0 },
    { LS_RECOMPUTE_FULL, LS_LOOP_OVERLAP_PIPELINED, LS_LOOP_COPIES_KEPT, 0, 0 },
    { LS_RECOMPUTE_FULL, LS_LOOP_OVERLAP_TURN, LS_LOOP_COPIES_WEIGHTS, 0, 0 },
    { LS_RECOMPUTE_FULL, LS_LOOP_OVERLAP_PIPELINED, LS_LOOP_COPIES_WEIGHTS, 0, 4 + 2 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    DpRun r = run_loop (1, 1024, cases[i].recompute, cases[i].overlap, cases[i].copies);
    g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
    if (!LS_CHECK (spans != NULL))
      return;
    LS_CHECK_INT (dp_count (spans, "kept output copy"), ==, cases[i].kept);
    LS_CHECK_INT (dp_count (spans, "gathered weights copy"), ==, cases[i].weights);
    dp_run_clear (&r);
  }
}

/* With a schedule that accumulates, gradients are reduced behind the last micro-batch. */
static void
a_pipeline_reduces_once (void)
{
  LsModel m = dp_model (4, 256);
  LsClusterSpec spec = dp_dgx (1);
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.pp = 2;
  s.global_batch = 16;
  s.dp_kind = LS_DP_XLA_FSDP;
  DpRun r = dp_run (&m, &s, &spec);
  g_autoptr (GArray) spans = r.t ? dp_spans (r.t, 0) : NULL;
  if (spans) {
    LS_CHECK_INT (dp_count (spans, gather), ==, 4 * (1 + 2 * 2 * PER_LAYER));
    LS_CHECK_INT (dp_count (spans, scatter), ==, 1 + 2 * PER_LAYER);
  }
  ls_strategy_clear (&s);
  dp_run_clear (&r);
}

LS_TEST_SUITE (LS_TEST (gathers_hide_behind_long_layers), LS_TEST (short_layers_leave_bubbles),
               LS_TEST (pipeline_ranks_gather_and_reduce_together),
               LS_TEST (an_optimizer_in_groups_sums_its_parts),
               LS_TEST (ddp_reduces_each_micro_batch_or_the_last),
               LS_TEST (only_the_first_weight_of_a_long_layer_is_exposed),
               LS_TEST (short_layers_wait_for_every_weight), LS_TEST (backward_blocks_on_its_reductions),
               LS_TEST (slices_sum_in_the_background), LS_TEST (loops_overlap_their_turns),
               LS_TEST (loops_copy_what_they_keep), LS_TEST (memory_holds_the_weights_of_a_layer),
               LS_TEST (a_pipeline_reduces_once))
