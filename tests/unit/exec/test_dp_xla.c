/* Pins XLA's FSDP as it runs on a slice of a torus: weights of a layer are gathered as the layer
 * begins, the first of them exposed, the others behind the products before them where these are
 * long enough; reductions block; slices sum their parts in the background; memory holds the
 * weights of one layer. */
#include "ls_test.h"

#include "dp_job.h"
#include "tiny_cluster.h"

#include "exec/memory/memory.h"

static const char gather[] = "weight all-gather", scatter[] = "grad reduce-scatter",
                  sum[] = "shard all-reduce";

/* Slices of 4 x 4, rings both ways. */
static DpRun
run_slices (uint32_t n, uint32_t seq, int recompute)
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
  s.zero_group = n > 1 ? 16 : 0;
  s.recompute = recompute;
  DpRun r = dp_run (&m, &s, &spec);
  ls_strategy_clear (&s);
  return r;
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

LS_TEST_SUITE (LS_TEST (only_the_first_weight_of_a_long_layer_is_exposed),
               LS_TEST (short_layers_wait_for_every_weight), LS_TEST (backward_blocks_on_its_reductions),
               LS_TEST (slices_sum_in_the_background), LS_TEST (memory_holds_the_weights_of_a_layer),
               LS_TEST (a_pipeline_reduces_once))
