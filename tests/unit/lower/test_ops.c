/* Pins what stands beside kernels in a lowered job: waits for each launch, weights of exchanges, and what goes
 * from stage to stage of an encoder and its decoder. */
#include "fixtures.h"

/* Pins what a host does that waits for each op it launches (CUDA_LAUNCH_BLOCKING=1): behind each of these
 * stands a wait for its end, and for no other, in the layer that it is of. */

static bool
is_launched (const LsOp *op)
{
  return op->kind == LS_OP_KERNEL || op->kind == LS_OP_COLLECTIVE || op->kind == LS_OP_P2P
      || op->kind == LS_OP_COPY;
}

static bool
is_wait (const LsOp *op)
{
  return op->kind == LS_OP_HOST_SYNC && strcmp (op->name, "launch blocks") == 0;
}

/* How many waits stand in it; each is checked. */
static guint
check_waits (const LsSegment *seg, guint *ret_n_of_layers)
{
  guint n = 0;
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o], *next = o + 1 < seg->n_ops ? op + 1 : NULL;
    LS_CHECK_INT (is_launched (op), ==, next && is_wait (next));
    if (!next || !is_wait (next))
      continue;
    n++;
    *ret_n_of_layers += next->layer != UINT16_MAX;
    LS_CHECK_INT (next->layer, ==, op->layer);
    LS_CHECK_INT (next->host, ==, LS_HOST_SYNC);
    if (LS_CHECK_INT (next->n_deps, ==, 1)) {
      LS_CHECK_INT (next->deps[0].kind, ==, LS_DEP_END);
      LS_CHECK_INT (next->deps[0].index, ==, o);
    }
  }
  return n;
}

static void
each_launch_is_waited_for_in_its_layer (void)
{
  LsStrategy s = job (2, 1);
  guint n = 0, n_of_layers = 0;
  s.launch.launch_blocking = true;
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  for (uint32_t i = 0; plan && i < plan->n_segments; i++)
    n += check_waits (&plan->segments[i], &n_of_layers);
  LS_CHECK (n > 50 && n_of_layers > 50 && n_of_layers < n);
  ls_strategy_clear (&s);
}

/* Pins what the ranks of a group of experts receive, as weights of its all-to-alls: tokens, and, where these
 * are more than 2^30, shares of 2^30; and what sequence parallelism gathers in a backward. */

static void
check_weights (uint32_t seq, uint32_t micro_batch, double sum)
{
  static const double share[] = { 0.5, 0.25, 0.125, 0.125 }; /* of ranks, two experts each */
  LsModel m = model;
  m.seq = seq;
  m.attention = LS_ATTENTION_FLASH;
  m.moe.n_experts = 8;
  m.moe.top_k = 1;
  m.moe.expert_ffn = 1024;
  m.moe.every = 1;
  LsStrategy s = job (1, 1);
  s.gpus = s.dp = s.ep = 4;
  s.micro_batch = micro_batch;
  s.global_batch = 4 * micro_batch;
  s.experts.load = g_strdup ("4,4,2,2,1,1,1,1");
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  if (plan && LS_CHECK_INT (plan->n_weights, ==, 4))
    for (uint32_t r = 0; r < 4; r++)
      LS_CHECK_NEAR ((double) plan->weights[r], share[r] * sum, 1e-6);
  ls_strategy_clear (&s);
}

static void
weights_are_tokens_or_shares_of_many (void)
{
  check_weights (4096, 2, 4 * 4096 * 2);
  check_weights (1 << 18, 1 << 14, (double) (1u << 30)); /* of 2^34 tokens */
}

/* What came from the stage before is recorded on its stream, and awaited where it is computed with. */
static void
what_is_received_is_recorded_and_awaited (void)
{
  LsStrategy s = job (1, 2);
  s.mp.p2p = LS_P2P_OVERLAPPED, s.global_batch = 8;
  s.schedule = g_strdup ("gpipe");
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  guint n = 0;
  for (uint32_t i = 0; LS_CHECK (plan != NULL) && i < plan->n_segments; i++)
    for (uint32_t o = 0; o < plan->segments[i].n_ops; o++) {
      const LsOp *op = &plan->segments[i].ops[o];
      if (strstr (op->name, "received") && ++n)
        LS_CHECK_INT (op->kind, ==, strcmp (op->name, "received") == 0 ? LS_OP_RECORD : LS_OP_WAIT);
    }
  LS_CHECK_INT (n, >, 0);
  ls_strategy_clear (&s);
}

/* PipeDream's last stage waits for each micro-batch before it computes with it. */
static void
each_forward_waits_for_its_input (void)
{
  LsStrategy s = job (1, 2);
  s.schedule = g_strdup ("pipedream"), s.global_batch = 8;
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  g_autofree char *name = g_strdup_printf ("wait for %s", ls_stream_names[LS_STREAM_PP_FWD_RECV].name);
  guint n = 0;
  for (uint32_t i = 0; LS_CHECK (plan != NULL) && i < plan->programs[1].n_instances; i++)
    n += strcmp (plan->segments[plan->programs[1].instances[i].segment].name, name) == 0;
  LS_CHECK_INT (n, ==, 4);
  ls_strategy_clear (&s);
}

/* Ops of that name on the first rank, of passes with that tag. */
static guint
n_tagged (const LsPlan *plan, const char *name, LsTag tag)
{
  guint n = 0;
  for (LsOpPlace at = LS_OP_BEFORE (0); plan && ls_op_next (plan, &at);)
    n += ls_op_at (plan, at)->tag == tag && strcmp (ls_op_at (plan, at)->name, name) == 0;
  return n;
}

/* Experts cut in two: tokens are gathered before each layer's and summed behind them, in both passes. */
static void
cut_experts_gather_and_reduce (void)
{
  static const LsTag tags[] = { LS_TAG_F, LS_TAG_B };
  LsModel m = model;
  m.attention = LS_ATTENTION_FLASH;
  m.moe.n_experts = 8, m.moe.top_k = 2, m.moe.expert_ffn = 512, m.moe.every = 1;
  LsStrategy s = job (2, 1);
  s.gpus = 4, s.dp = s.ep = 2, s.experts.etp = 2;
  s.sp = true, s.global_batch = 4;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  for (guint i = 0; i < G_N_ELEMENTS (tags); i++) {
    LS_CHECK_INT (n_tagged (plan, "expert all-gather", tags[i]), ==, m.n_layers);
    LS_CHECK_INT (n_tagged (plan, "expert reduce-scatter", tags[i]), ==, m.n_layers);
  }
  ls_strategy_clear (&s);
}

/* Of two copies, without overlap, at the end of the step: all but experts, then these, in bf16. */
static void
a_step_gathers_experts_and_others (void)
{
  LsModel m = model;
  m.attention = LS_ATTENTION_FLASH;
  m.moe.n_experts = 4, m.moe.top_k = 2, m.moe.expert_ffn = 512, m.moe.every = 1;
  LsStrategy s = job (1, 1);
  s.gpus = s.dp = 2, s.global_batch = 4;
  s.dp_kind = LS_DP_MEGATRON, s.zero_stage = 1, s.data.overlap = false;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  uint64_t bytes = 0;
  for (LsOpPlace at = LS_OP_BEFORE (0); plan && ls_op_next (plan, &at);)
    if (strcmp (ls_op_at (plan, at)->name, "parameter all-gather") == 0)
      bytes += ls_op_at (plan, at)->bytes;
  LS_CHECK_INT (bytes, ==, 2 * ls_model_params (&m, 1024));
  ls_strategy_clear (&s);
}

static guint
gathers_of_backward (uint32_t lora_rank)
{
  LsStrategy s = job (2, 1);
  s.sp = true;
  s.lora.rank = lora_rank;
  s.lora.modules = g_strdup ("q");
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  guint n = n_tagged (plan, "tp all-gather", LS_TAG_B);
  ls_strategy_clear (&s);
  return n;
}

/* Of four layers: inputs of qkv and fc1 for their weight gradients, gradients of the outputs of proj and fc2;
 * of the model the input of the head, and the gradient of the embedding's output. Of what is frozen gradients
 * of proj and fc2 alone, and beside q the input of B. */
static void
frozen_layers_gather_no_input (void)
{
  LS_CHECK_INT (gathers_of_backward (0), ==, 4 * 4 + 2);
  LS_CHECK_INT (gathers_of_backward (8), ==, 4 * 3);
}

/* Pins an encoder and its decoder in a pipeline, by hand: an encoder of 4 layers and a decoder of 4 on 4 stages,
 * two micro-batches of 2 sequences of 128 and of 32 tokens, h = 256, f = 1024, 1,024 words. */

static LsModel
two_sides (void)
{
  LsModel m = model;
  m.n_layers = 8;
  m.sides.encoder_layers = 4;
  m.sides.decoder_seq = 32;
  m.norm = LS_NORM_RMSNORM;
  m.attention = LS_ATTENTION_FLASH;
  m.linear_bias = m.dropout = false;
  m.tied_embeddings = true;
  return m;
}

#define ENCODER_BYTES (128 * 2 * 256 * 2)
#define DECODER_BYTES (32 * 2 * 256 * 2)

/* All that a stage sends, in groups of one tensor. */
static uint64_t
sent_bytes (const LsPlan *plan, uint32_t stage)
{
  uint64_t sum = 0;
  const LsProgram *p = &plan->programs[stage];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      for (uint16_t t = 0; seg->ops[o].kind == LS_OP_P2P && t < seg->ops[o].n_transfers; t++)
        sum += seg->ops[o].transfers[t].is_send ? seg->ops[o].transfers[t].bytes : 0;
  }
  return sum;
}

/* Of a stage; NULL: it has none. */
static const LsOp *
op_named (const LsPlan *plan, uint32_t stage, const char *name)
{
  const LsProgram *p = &plan->programs[stage];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      if (strcmp (seg->ops[o].name, name) == 0)
        return &seg->ops[o];
  }
  return NULL;
}

/* What its forward keeps before its first kernel. */
static uint64_t
kept_first (const LsPlan *plan, uint32_t stage)
{
  const LsProgram *p = &plan->programs[stage];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    if (g_str_has_prefix (seg->name, "forward"))
      return seg->ops[0].kind == LS_OP_RECORD && seg->ops[0].n_buffers > 0 ? seg->ops[0].buffers[0].bytes : 0;
  }
  return 0;
}

static void
a_decoder_passes_on_what_its_encoder_made (void)
{
  LsModel m = two_sides ();
  LsStrategy s = job (1, 4);
  s.global_batch = 4;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  const uint64_t h = 256, words = 1024 * h, encoder = 4 * h * h + 2 * h * 1024 + 2 * h,
                 decoder = encoder + 4 * h * h + h, e = ENCODER_BYTES, both = e + DECODER_BYTES;
  const uint64_t params[]
      = { words + 2 * encoder, 2 * encoder + h, words + 2 * decoder, 2 * decoder + h + words },
      sent[] = { 2 * e, 2 * e + 2 * e, 2 * both + 2 * e, 2 * both };
  for (uint32_t stage = 0; plan && stage < 4; stage++) {
    LS_CHECK_INT (plan->programs[stage].n_params, ==, params[stage]);
    LS_CHECK_INT (sent_bytes (plan, stage), ==, sent[stage]);
    const LsOp *tied = op_named (plan, stage, "embedding grad all-reduce");
    LS_CHECK (!tied == (stage == 1));
    if (tied)
      LS_CHECK_INT (tied->bytes, ==, 2 * words);
    LS_CHECK_INT (kept_first (plan, stage) == e, ==, stage >= 2); /* for all layers that meet it */
  }
  ls_strategy_clear (&s);
}

/* With sequence parallelism each rank sends its half of the tokens; slices are sent of whole tensors, and gathered. */
static void
each_tensor_is_cut_over_ranks (void)
{
  for (int sp = 0; sp < 2; sp++) {
    LsModel m = two_sides ();
    LsStrategy s = job (2, 2);
    s.sp = sp;
    s.mp.p2p = sp ? LS_P2P_BATCHED : LS_P2P_SCATTER_GATHER;
    s.global_batch = 2;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    if (plan)
      LS_CHECK_INT (sent_bytes (plan, 0), ==, ENCODER_BYTES / 2);
    const LsOp *gather = plan ? op_named (plan, 1, "boundary all-gather") : NULL;
    LS_CHECK ((gather == NULL) == (sp > 0));
    if (gather)
      LS_CHECK_INT (gather->bytes, ==, ENCODER_BYTES);
    ls_strategy_clear (&s);
  }
}

static void
an_encoder_has_stages_of_its_own (void)
{
  static const struct {
    uint32_t layers[3];
    bool is_untied;
    int dp_kind;
    const char *schedule, *said;
  } cases[] = {
    { { 4, 2, 2 }, .said = NULL },
    { { 1, 3, 4 }, .said = NULL },
    { { 3, 3, 2 }, .said = "expected stages of the encoder's 4 layers, then stages of the decoder's 4" },
    { { 0 }, .said = "say how many each of the pp = 3 has" }, /* balanced they would fall anywhere */
    { { 4, 2, 2 }, .is_untied = true, .said = "the head does not share" },
    { { 4, 2, 2 }, .schedule = "gpipe", .said = "expected 1f1b, vpp 1" },
    { { 4, 2, 2 }, .dp_kind = LS_DP_FSDP2, .said = "expected megatron or ddp" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = two_sides ();
    LsStrategy s = job (1, 3);
    m.tied_embeddings = !cases[i].is_untied;
    s.gpus = 6;
    s.global_batch = 24;
    s.dp_kind = cases[i].dp_kind;
    s.schedule = g_strdup (cases[i].schedule);
    if (cases[i].layers[1] > 0) {
      s.layout.layers_per_chunk = g_memdup2 (cases[i].layers, sizeof cases[i].layers);
      s.layout.n_layers_per_chunk = 3;
    }
    bool ok = ls_strategy_resolve (&s, &m, 6, 8, diags);
    g_autofree char *why = ls_diag_list_format (diags);
    ls_check_impl (ok == !cases[i].said && (ok || strstr (why, cases[i].said)), __FILE__, __LINE__, "%u: %s",
                   i, why);
    ls_strategy_clear (&s);
  }
}

/* Thread blocks that a communicator is held to hold for each of its collectives, whoever issues it: also for
 * those of FSDP's units, and for all moves of a ring. */
static void
blocks_are_limited_by_whoever_calls (void)
{
  static const int kinds[]
      = { LS_DP_DDP, LS_DP_MEGATRON, LS_DP_FSDP1, LS_DP_FSDP2, LS_DP_DEEPSPEED, LS_DP_XLA_FSDP };
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    const LsModel m = small_llama ();
    LsStrategy s = job (1, 1);
    guint n_of[2] = { 0 };
    s.cp = 4;
    s.gpus = 8;
    s.global_batch = 4;
    s.dp_kind = kinds[i];
    s.mp.dp_max_ctas = 3;
    s.mp.cp_max_ctas = 5;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    for (uint32_t k = 0; plan && k < plan->n_segments; k++)
      for (uint32_t o = 0; o < plan->segments[k].n_ops; o++) {
        const LsOp *op = &plan->segments[k].ops[o];
        bool is_cp = op->slot == LS_SLOT_CP;
        if (op->kind != LS_OP_COLLECTIVE || (!is_cp && op->slot != LS_SLOT_DP))
          continue;
        LS_CHECK_INT (op->max_ctas, ==, is_cp ? 5 : 3);
        n_of[is_cp]++;
      }
    LS_CHECK (n_of[0] > 0 && n_of[1] > 6);
    ls_strategy_clear (&s);
  }
}

LS_TEST_SUITE (LS_TEST (blocks_are_limited_by_whoever_calls),
               LS_TEST (a_decoder_passes_on_what_its_encoder_made), LS_TEST (each_tensor_is_cut_over_ranks),
               LS_TEST (an_encoder_has_stages_of_its_own), LS_TEST (each_launch_is_waited_for_in_its_layer),
               LS_TEST (weights_are_tokens_or_shares_of_many),
               LS_TEST (what_is_received_is_recorded_and_awaited), LS_TEST (each_forward_waits_for_its_input),
               LS_TEST (a_step_gathers_experts_and_others), LS_TEST (cut_experts_gather_and_reduce),
               LS_TEST (frozen_layers_gather_no_input))
