/* Pins what is alive when: on both clocks in hand-made runs, with buffers that change
 * streams and steps that overlap; what libraries take; and the activations of the first
 * stage that Korthikanti et al. 2022 (figure 1, layers only) give, walked out of real
 * programs. */
#include "ls_test.h"

#include "hand_trace.h"
#include "model_shapes.h"

#include "exec/memory/memory.h"
#include "lower/lower.h"

#define GIB 1073741824.0

static LsMemory *
memory_of (uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t micro_batch, uint32_t pp, uint32_t vpp,
           uint32_t n_micro_batches, LsRecompute recompute, bool sp)
{
  LsModel m = gpt (layers, hidden, heads);
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_strategy_init (&s);
  s.tp = 8;
  s.pp = pp;
  s.vpp = vpp;
  s.sp = sp;
  s.gpus = 8 * pp;
  s.micro_batch = micro_batch;
  s.global_batch = micro_batch * n_micro_batches;
  s.recompute = (int) recompute;
  s.dtype = LS_DTYPE_FP16;
  LS_CHECK (ls_strategy_resolve (&s, &m, s.gpus, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  ls_strategy_clear (&s);
  return plan ? ls_memory_new (&(LsMemoryInput) { .plan = plan }) : NULL;
}

/* actG-* (tests/README.md): no recomputation without sequence
 * parallelism, and selective with it. Our figure has the embedding's dropout mask
 * and, where the stage is also the last, the loss on top. */
static void
first_stage_activations_are_the_published_ones (void)
{
  static const struct {
    uint32_t layers, hidden, heads, micro_batch, pp, vpp, n_mb;
    double none_gib, selective_gib;
  } rows[] = {
    { 96, 12288, 96, 1, 8, 3, 64, 66.84375, 12.3515625 },
    { 105, 20480, 128, 1, 35, 3, 280, 114.0234375, 23.076171875 },
    { 128, 25600, 160, 1, 64, 1, 512, 131.25, 26.5625 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    for (int selective = 0; selective < 2; selective++) {
      g_autoptr (LsMemory) m = memory_of (rows[i].layers, rows[i].hidden, rows[i].heads, rows[i].micro_batch,
                                          rows[i].pp, rows[i].vpp, rows[i].n_mb,
                                          selective ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE, selective);
      if (m)
        LS_CHECK_NEAR ((double) m->classes[0].category_peak[LS_MEM_ACTIVATIONS] / GIB,
                       selective ? rows[i].selective_gib : rows[i].none_gib, 0.03);
    }
}

/* actG-22B: one stage, one micro-batch of 4: 59.25 GiB of layers. The head's logits
 * and loss come on top: 2 and 4 bytes of b s V / t, and its inputs. */
static void
one_stage_holds_the_head_too (void)
{
  g_autoptr (LsMemory) m = memory_of (48, 6144, 64, 4, 1, 1, 1, LS_RECOMPUTE_NONE, false);
  double tokens = 4 * 2048.0, head = tokens * 51200 / 8 * 4 + 3 * tokens * 6144 * 2;
  if (m)
    LS_CHECK_NEAR ((double) m->classes[0].category_peak[LS_MEM_ACTIVATIONS], 59.25 * GIB + head, 0.01);
}

/* Full recomputation keeps 2sbh per layer and one layer's worth while it runs. */
static void
full_recomputation_keeps_inputs_and_one_layer (void)
{
  g_autoptr (LsMemory) m = memory_of (48, 6144, 64, 4, 1, 1, 1, LS_RECOMPUTE_FULL, false);
  double sbh = 4 * 2048.0 * 6144, one_layer = sbh * (10 + 24.0 / 8 + 5 * 64 * 2048.0 / (6144 * 8));
  if (m)
    LS_CHECK_NEAR ((double) m->classes[0].category_peak[LS_MEM_ACTIVATIONS], 48 * 2 * sbh + one_layer + sbh,
                   0.02);
}

/* 18 bytes per parameter with fp32 gradients, 16 with 16-bit ones: 2 + 2 + 12. */
static void
static_memory_follows_the_recipe (void)
{
  g_autoptr (LsMemory) m = memory_of (96, 12288, 96, 1, 8, 3, 8, LS_RECOMPUTE_SELECTIVE, true);
  if (!m)
    return;
  const LsClassMemory *r = &m->classes[3];
  LS_CHECK_INT (r->category_peak[LS_MEM_GRADIENTS], ==, r->category_peak[LS_MEM_PARAMETERS]);
  LS_CHECK_INT (r->category_peak[LS_MEM_OPTIMIZER], ==, 6 * r->category_peak[LS_MEM_PARAMETERS]);
  LS_CHECK (r->peak_bytes
            >= r->at_peak[LS_MEM_PARAMETERS] + r->at_peak[LS_MEM_GRADIENTS] + r->at_peak[LS_MEM_OPTIMIZER]);
}

/* Activations at their peak on one stage without a pipeline: F0 I0 F1 I1 ..., then the W. */
static uint64_t
peak_of_late_weights (uint32_t layers, uint32_t n_micro_batches)
{
  LsModel m = {
    .name = (char *) "gpt",
    .n_layers = layers,
    .hidden = 1024,
    .n_heads = 16,
    .n_kv_heads = 16,
    .head_dim = 64,
    .ffn = 4096,
    .vocab = 51200,
    .seq = 2048,
    .mlp = LS_MLP_GELU,
    .norm = LS_NORM_LAYERNORM,
    .position = LS_POSITION_LEARNED,
    .attention = LS_ATTENTION_UNFUSED,
    .linear_bias = true,
    .tied_embeddings = true,
    .dropout = true,
  };
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_strategy_init (&s);
  s.schedule = g_strdup ("zb-h1");
  s.global_batch = n_micro_batches;
  LS_CHECK (ls_strategy_resolve (&s, &m, 1, 8, diags));
  g_autoptr (LsOrders) orders = ls_orders_new (1, 1, 1, 1, n_micro_batches, &(LsStageRef) { 0, 0 });
  for (uint32_t i = 0; i < 3 * n_micro_batches; i++) {
    bool is_w = i >= 2 * n_micro_batches;
    LsAction a = { .mb = is_w ? i - 2 * n_micro_batches : i / 2,
                   .type = (uint8_t) (is_w        ? LS_ACTION_W
                                          : i % 2 ? LS_ACTION_I
                                                  : LS_ACTION_F) };
    g_array_append_val (orders->ranks[0], a);
  }
  g_autoptr (LsPlan) plan = ls_lower_orders (&m, &s, orders, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsMemory) memory = plan ? ls_memory_new (&(LsMemoryInput) { .plan = plan }) : NULL;
  ls_strategy_clear (&s);
  return memory ? memory->classes[0].category_peak[LS_MEM_ACTIVATIONS] : 0;
}

/* M_W = 32 s b h of a layer (Qi et al. 2024, section 3.1): each micro-batch more that waits
 * for its W holds so much more per layer; the head's part, which both depths have, cancels. */
static void
what_waits_for_weight_gradients_is_the_published (void)
{
  uint64_t deep = peak_of_late_weights (4, 3) - peak_of_late_weights (4, 2);
  uint64_t flat = peak_of_late_weights (2, 3) - peak_of_late_weights (2, 2);
  LS_CHECK_INT (deep - flat, ==, UINT64_C (2) * 32 * 2048 * 1024);
}

/* Activations at their peak on each rank of a pipeline of 4, over s h. A GPT without dropout, by flash attention,
 * tp 2. */
static void
peaks_of (const char *schedule, uint32_t layers, bool sp, double ret_peaks[4])
{
  LsModel m = gpt (layers, 1024, 16);
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  m.dropout = false;
  m.attention = LS_ATTENTION_FLASH;
  ls_strategy_init (&s);
  s.schedule = g_strdup (schedule);
  s.gpus = 8, s.tp = 2, s.pp = 4, s.sp = sp, s.global_batch = 12;
  LS_CHECK (ls_strategy_resolve (&s, &m, 8, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsMemory) memory = plan ? ls_memory_new (&(LsMemoryInput) { .plan = plan }) : NULL;
  for (uint32_t r = 0; memory && r < 4; r++)
    ret_peaks[r]
        = (double) memory->classes[r].category_peak[LS_MEM_ACTIVATIONS] / (double) (m.seq * m.hidden);
  ls_strategy_clear (&s);
}

/* Of a layer, in bytes over s b h, with t = 2. A forward keeps inputs of both norms 2 + 2, of QKV and fc1 2 + 2, Q, K
 * and V 6 / t, what attention makes 2 / t and a number of each head (a / h more, 16 x 4 / t / 1024), what GELU reads
 * and makes 16 / t: 20. With sequence parallelism the first four are cut, too: 16. W has the inputs 2 + 2 + (2 + 8) / t
 * and gradients (6 + 8) / t + 2 + 2: 20; with sequence parallelism 1 + 1 + 5 + 7 + 2 + 2 = 18, as gradients behind
 * row-parallel products are whole. So 1F1B holds p - r of the forward's, ZB-H1 as many less one and r + 1 of W's: on
 * rank 0 what 1F1B does, on each as much, as the paper says, or with sequence parallelism more. Four layers on a rank
 * less two, so that heads and messages cancel. zb-1p, whose orders differ with depth, holds no more than 1F1B's first
 * rank but for what one I leaves more than its forward, and a gradient beside what it replaces, 16 / t. */
static void
zb_h1_holds_what_1f1b_does (void)
{
  static const double forward[] = { 20, 16 }, kept[] = { 20, 18 }, heads = 16 * 4.0 / 2 / 1024;
  for (uint32_t sp = 0; sp < 2; sp++) {
    double plain[2][4] = { { 0 } }, h1[2][4] = { { 0 } }, p1[4] = { 0 }, f = 2 * (forward[sp] + heads),
           w = 2 * kept[sp];
    for (uint32_t deep = 0; deep < 2; deep++) {
      peaks_of ("1f1b", deep ? 16 : 8, sp, plain[deep]);
      peaks_of ("zb-h1", deep ? 16 : 8, sp, h1[deep]);
    }
    peaks_of ("zb-1p", 16, sp, p1);
    for (uint32_t r = 0; r < 4; r++) {
      double in_forward = (4 - r) * f + r * w, in_backward = (3 - r) * f + (r + 1) * w;
      LS_CHECK_NEAR (plain[1][r] - plain[0][r], (4 - r) * f, 0.002);
      LS_CHECK_NEAR (h1[1][r] - h1[0][r], r == 3 ? in_forward : MAX (in_forward, in_backward),
                     0.002); /* on the last rank with logits */
      LS_CHECK (r == 3 || p1[r] < plain[1][0] + MAX (0, 2 * (w - f)) + 8);
    }
  }
}

/* --- clocks ------------------------------------------------------------------------- */

static const LsBufferEvent *
buffer (Hand *h, uint16_t id, uint64_t bytes, bool is_free)
{
  LsBufferEvent *b = ls_arena_new_array (h->plan->arena, LsBufferEvent, 1);
  *b = (LsBufferEvent) { .bytes = bytes,
                         .id = id,
                         .category = LS_MEM_UNSHARDED,
                         .is_free = is_free,
                         .when = is_free ? LS_AT_END : LS_AT_ISSUE };
  return b;
}

static void
with_buffer (Hand *h, uint32_t rank, uint16_t op, uint16_t id, uint64_t bytes, bool is_free)
{
  LsOp *o = &g_array_index (h->ops[rank], LsOp, op);
  o->buffers = buffer (h, id, bytes, is_free);
  o->n_buffers = 1;
}

#define X_BYTES 1000
#define Y_BYTES 700

/* X is gathered on stream dp and freed by a kernel of 5 ms; after that kernel Y is gathered
 * and used in the same way. `alloc_by_kernels`: by a kernel before each gather instead, so
 * that no buffer changes streams. */
static Hand *
two_gathers (bool alloc_by_kernels)
{
  Hand *h = hand_new (2);
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, (uint32_t[]) { 0, 1 }, 2);
  for (uint32_t r = 0; r < 2; r++)
    for (uint16_t id = 0; id < 2; id++) {
      uint64_t bytes = id == 0 ? X_BYTES : Y_BYTES;
      uint16_t first = hand_kernel (h, r, LS_TAG_F, LS_MS);
      uint16_t gather = hand_sync (h, r, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_GATHER, 1 << 20);
      uint16_t user = hand_kernel (h, r, LS_TAG_F, 5 * LS_MS);
      with_buffer (h, r, alloc_by_kernels ? first : gather, id, bytes, false);
      with_buffer (h, r, user, id, bytes, true);
    }
  return h;
}

static uint64_t
peak_of (const Hand *h, const LsTimeline *t, LsMemoryClock clock)
{
  g_autoptr (LsMemory) m
      = ls_memory_new (&(LsMemoryInput) { .plan = h->plan, .timeline = t, .options.clock = clock });
  uint64_t peak = m->classes[0].peak_bytes;
  for (uint32_t i = 0; i < m->n_classes; i++)
    LS_CHECK (m->classes[i].overfreed_bytes == 0 && m->classes[i].at_end[LS_MEM_UNSHARDED] == 0);
  return peak;
}

/* The host has issued all long before X is used: X waits for its user on the other stream,
 * and Y is there already. Y is gathered on the device when X is no longer needed. */
static void
buffers_that_change_streams_live_longer_on_the_host_clock (void)
{
  Hand *h = two_gathers (false);
  h->options.n_steps = 1;
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_HOST), ==, X_BYTES + Y_BYTES);
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_DEVICE), ==, X_BYTES);
    LS_CHECK_INT (peak_of (h, NULL, LS_MEMORY_HOST), ==, X_BYTES); /* by order: a lower bound */
  }
  hand_free (h);
}

/* A kernel makes Y while X, which it frees at its end, is still there. */
static void
what_an_op_frees_is_there_until_it_ends (void)
{
  Hand *h = hand_new (1);
  with_buffer (h, 0, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, X_BYTES, false);
  with_buffer (h, 0, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, X_BYTES, true);
  LsOp *last = &g_array_index (h->ops[0], LsOp, h->ops[0]->len - 1);
  LsBufferEvent *both = ls_arena_new_array (h->plan->arena, LsBufferEvent, 2);
  both[0] = *buffer (h, 1, Y_BYTES, false), both[1] = *last->buffers;
  last->buffers = both, last->n_buffers = 2;
  with_buffer (h, 0, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, Y_BYTES, true);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t)
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_DEVICE), ==, X_BYTES + Y_BYTES);
  hand_free (h);
}

/* Of a stream with itself order is all: the host frees X before it allocates Y. */
static void
buffers_of_one_stream_go_in_order (void)
{
  Hand *h = two_gathers (true);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_HOST), ==, X_BYTES);
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_HOST), ==, peak_of (h, NULL, LS_MEMORY_HOST));
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_DEVICE), ==, X_BYTES);
  }
  hand_free (h);
}

/* The host is ahead by a step: X and Y of two steps are there. */
static void
steps_overlap_on_the_host_clock (void)
{
  Hand *h = two_gathers (false);
  h->options.n_steps = 3;
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    const LsMemoryInput in = { .plan = h->plan, .timeline = t };
    g_autoptr (GArray) curve = ls_memory_curve (&in, 0);
    const LsMemorySample *first = &g_array_index (curve, LsMemorySample, 0);
    LS_CHECK_INT (first->at, ==, 0);
    LS_CHECK_INT (first->alive[LS_MEM_UNSHARDED], >, 0);
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_HOST), ==, 2 * (X_BYTES + Y_BYTES));
    LS_CHECK_INT (peak_of (h, t, LS_MEMORY_DEVICE), ==, X_BYTES);
    for (guint i = 1; i < curve->len; i++)
      LS_CHECK (g_array_index (curve, LsMemorySample, i).at
                > g_array_index (curve, LsMemorySample, i - 1).at);
    LS_CHECK (g_array_index (curve, LsMemorySample, curve->len - 1).at <= t->window_end - t->window_start);
  }
  hand_free (h);
}

/* Both buffers share a stream, so a segment: 20 MiB if they are of a MiB and more. */
static void
the_caching_allocator_counts_segments (void)
{
  Hand *h = two_gathers (false);
  h->options.n_steps = 1;
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    g_autoptr (LsMemory) m = ls_memory_new (
        &(LsMemoryInput) { .plan = h->plan, .timeline = t, .options.allocator = LS_MEMORY_CACHING });
    LS_CHECK_INT (m->classes[0].peak_bytes, ==, X_BYTES + Y_BYTES);
    LS_CHECK_INT (m->classes[0].allocated_bytes, ==, 1024 + 1024);
    LS_CHECK_INT (m->classes[0].reserved_bytes, ==, 2 << 20);
    LS_CHECK_INT (m->classes[0].needed_bytes, ==, 2 << 20);
  }
  hand_free (h);
}

/* A step's first op, an event, frees what the last kernel of the step before allocated. The
 * host issues it long before that kernel runs; on the device it comes behind it. */
static void
an_event_frees_what_the_step_before_left (void)
{
  Hand *h = hand_new (1);
  LsOp event = ls_op_blank (LS_OP_RECORD, LS_STREAM_COMPUTE, LS_TAG_SYNC, "event");
  with_buffer (h, 0, hand_op (h, 0, event, NULL, 0), 0, X_BYTES, true);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_MS);
  with_buffer (h, 0, hand_kernel (h, 0, LS_TAG_F, 10 * LS_MS), 0, X_BYTES, false);
  h->options.n_steps = 3;
  g_autoptr (LsTimeline) t = hand_run (h);
  for (int clock = 0; t && clock < 2; clock++) {
    g_autoptr (LsMemory) m = ls_memory_new (&(LsMemoryInput) {
        .plan = h->plan, .timeline = t, .options = { .clock = clock, .allocator = LS_MEMORY_CACHING } });
    LS_CHECK_INT (m->classes[0].overfreed_bytes, ==, 0);
    LS_CHECK_INT (m->classes[0].at_begin[LS_MEM_UNSHARDED], ==, X_BYTES);
    LS_CHECK_INT (m->classes[0].at_end[LS_MEM_UNSHARDED], ==, X_BYTES);
    LS_CHECK_INT (m->classes[0].peak_bytes, ==, X_BYTES);
    LS_CHECK_INT (m->classes[0].allocated_bytes, ==, 1024);
  }
  hand_free (h);
}

/* --- libraries ------------------------------------------------------------------------ */

/* 24 channels of 12 MiB; over two nodes of 8, one channel for each of 8 NICs, of which a
 * rank has an eighth of the 17.375 MiB that cross and seven eighths of 12 MiB. */
static void
libraries_take_what_their_sources_say (void)
{
  static const struct {
    uint32_t n_ranks;
    uint64_t workspace, buffers;
  } rows[] = {
    { 2, 8519680, UINT64_C (24) * 12 << 20 },
    { 8, 32 << 20, UINT64_C (24) * 12 << 20 },
    { 16, 8519680, (UINT64_C (7) * 12 << 20) + 18219008 },
  };
  LsClusterSpec spec = tiny_dgx (2);
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    spec.gpu.blas_workspace_bytes = rows[i].workspace;
    LsCluster *cluster = ls_cluster_build (&spec, NULL);
    LsNccl nccl = { .nvlink = 240e9, .channels_ring = 24, .channels_net = 1 };
    uint32_t ranks[16];
    LsBinding bindings[16] = { 0 };
    for (uint32_t r = 0; r < 16; r++) {
      ranks[r] = r;
      for (int s = 0; s < LS_N_SLOTS; s++)
        bindings[r].comm[s] = s == LS_SLOT_DP || s == LS_SLOT_WORLD ? 0 : UINT32_MAX;
    }
    LsOp ops[] = { { .kind = LS_OP_KERNEL },
                   { .kind = LS_OP_COLLECTIVE, .slot = LS_SLOT_DP },
                   { .kind = LS_OP_COLLECTIVE, .slot = LS_SLOT_WORLD } };
    LsSegment segment = { "s", G_N_ELEMENTS (ops), ops };
    LsInstance instance = { 0 };
    LsProgram program = { .n_instances = 1, .instances = &instance };
    LsCommunicator comm = { .n_ranks = rows[i].n_ranks, .offsets = ranks };
    LsPlan plan = { .n_ranks = rows[i].n_ranks,
                    .n_micro_batches = 1,
                    .n_chunks = 1,
                    .n_segments = 1,
                    .segments = &segment,
                    .n_roles = 1,
                    .programs = &program,
                    .n_comms = 1,
                    .comms = &comm,
                    .bindings = bindings };
    for (int is_listed = 0; is_listed < 2; is_listed++) {
      plan.gpu_of_rank = is_listed ? ranks : NULL;
      g_autoptr (LsMemory) m
          = ls_memory_new (&(LsMemoryInput) { .plan = &plan, .cluster = cluster, .nccl = &nccl });
      LS_CHECK_INT (m->classes[0].at_peak[LS_MEM_WORKSPACE], ==, rows[i].workspace);
      LS_CHECK_INT (m->classes[0].at_peak[LS_MEM_COMM_BUFFERS], ==, rows[i].buffers);
    }
    ls_cluster_free (cluster);
  }
}

LS_TEST_SUITE (
    LS_TEST (buffers_that_change_streams_live_longer_on_the_host_clock),
    LS_TEST (what_an_op_frees_is_there_until_it_ends), LS_TEST (buffers_of_one_stream_go_in_order),
    LS_TEST (steps_overlap_on_the_host_clock), LS_TEST (the_caching_allocator_counts_segments),
    LS_TEST (an_event_frees_what_the_step_before_left), LS_TEST (libraries_take_what_their_sources_say),
    LS_TEST (first_stage_activations_are_the_published_ones), LS_TEST (one_stage_holds_the_head_too),
    LS_TEST (full_recomputation_keeps_inputs_and_one_layer), LS_TEST (static_memory_follows_the_recipe),
    LS_TEST (what_waits_for_weight_gradients_is_the_published), LS_TEST (zb_h1_holds_what_1f1b_does))
