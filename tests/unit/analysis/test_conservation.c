/* Pins: the conservation laws hold for lowered jobs of every kind, and notice when a plan
 * computes something else, forgets a buffer, or frees what is not there. */
#include "ls_test.h"

#include <string.h>

#include "closed_flops.h"
#include "random_job.h"

#include "analysis/conservation.h"
#include "model/lora.h"

static LsOp *
find_op (LsPlan *plan, bool (*is_it) (const LsOp *op))
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++)
      if (is_it (&plan->segments[s].ops[i]))
        return &plan->segments[s].ops[i];
  return NULL;
}

static bool
frees (const LsOp *op)
{
  return op->n_buffers > 0 && op->buffers[op->n_buffers - 1].is_free;
}

static gboolean
conserves (const Job *j, GError **error)
{
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = j->plan });
  return ls_conserves_flops (j->plan, &j->model, &j->strategy, error) && ls_conserves_memory (memory, error);
}

static void
check_broken (const Job *j, const char *law)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!conserves (j, &error));
  LS_CHECK (error && error->code == LS_ERROR_FAILED);
  ls_check_impl (error && strstr (error->message, law), __FILE__, __LINE__, "\"%s\" does not speak of %s",
                 error ? error->message : "", law);
}

static void
jobs_of_every_kind_keep_the_laws (void)
{
  for (guint32 seed = 1; seed <= 60; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    g_autoptr (GError) error = NULL;
    Job j;
    if (job_init (&j, rand))
      LS_CHECK (conserves (&j, &error) && computes_closed_flops (j.plan, &j.model, &j.strategy));
    LS_CHECK_NO_ERROR (error);
    job_clear (&j);
  }
}

static void
a_missing_percent_of_a_kernel_is_noticed (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  Job j;
  if (!LS_CHECK (job_init (&j, rand)))
    return;
  for (uint32_t k = 0; k < j.plan->n_kernels; k++)
    j.plan->kernels[k].flops *= 0.99;
  check_broken (&j, "FLOPs");
  job_clear (&j);
}

static void
a_kernel_that_only_recomputes_does_not_count (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  Job j;
  if (!LS_CHECK (job_init (&j, rand)))
    return;
  double own = ls_plan_model_flops (j.plan, false, false), again = ls_plan_model_flops (j.plan, true, false);
  for (uint32_t s = 0; s < j.plan->n_segments; s++)
    for (uint32_t i = 0; i < j.plan->segments[s].n_ops; i++)
      j.plan->segments[s].ops[i].tag = LS_TAG_RECOMPUTE;
  LS_CHECK_DOUBLE (ls_plan_model_flops (j.plan, false, false), ==, 0);
  LS_CHECK_NEAR (ls_plan_model_flops (j.plan, true, false), own + again, 1e-12);
  check_broken (&j, "FLOPs");
  job_clear (&j);
}

static void
a_buffer_of_another_size_is_noticed (void)
{
  for (int sign = -1; sign <= 1; sign += 2) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (2);
    Job j;
    if (!LS_CHECK (job_init (&j, rand)))
      return;
    LsOp *op = find_op (j.plan, frees);
    if (LS_CHECK (op != NULL)) {
      LsBufferEvent *b = (LsBufferEvent *) &op->buffers[op->n_buffers - 1];
      b->bytes = sign < 0 ? b->bytes / 2 : UINT64_MAX / 4;
      check_broken (&j, sign < 0 ? "bytes of activations and ends with" : "freed that were not alive");
    }
    job_clear (&j);
  }
}

/* Mixers beside attention with narrow values, decays of low rank beside latents with a gate, experts behind a
 * latent, an encoder, windowed layers with heads of their own, compressed keys and residual streams. */
static LsModel
layered (guint which)
{
  LsModel m = { .name = (char *) "layered",
                .n_layers = 8,
                .hidden = 512,
                .n_heads = 8,
                .n_kv_heads = 8,
                .head_dim = 64,
                .ffn = 1024,
                .vocab = 5000,
                .seq = 256,
                .mlp = LS_MLP_SWIGLU,
                .norm = LS_NORM_RMSNORM,
                .position = LS_POSITION_NONE,
                .attention = LS_ATTENTION_FLASH };
  if (which == 3) {
    m.sides.encoder_layers = 3;
    m.sides.decoder_seq = 128;
    return m;
  }
  if (which == 4) {
    m.attn.window = 64;
    m.attn.full_every = 3;
    m.n_kv_heads = 1, m.head_dim = 128;
    m.attn.window_heads = 4, m.attn.window_kv_heads = 2, m.attn.window_head_dim = 64;
    m.attn.full_k_is_v = m.attn.qk_norm = true, m.index.heads = 2, m.index.dim = m.index.block = 16;
    return m;
  }
  if (which == 5) {
    m.layers.pattern = (char *) "ASHS";
    m.position = LS_POSITION_ROPE;
    m.n_kv_heads = 1, m.latent.q_lora = 96, m.latent.rope_dim = 16, m.attn.window = 64;
    m.compressed.out_groups = 4, m.compressed.out_lora = 32;
    m.compressed.csa_ratio = 4, m.index.heads = 2, m.index.dim = 16, m.index.top = 32;
    m.compressed.hca_ratio = 32;
    m.halves.streams = 4;
    return m;
  }
  m.layers.pattern = (char *) (which == 0 ? "P" : "MMA");
  m.mixer.kind = which == 0 ? LS_MIXER_MAMBA2 : LS_MIXER_KDA;
  m.mixer.full_gate = which == 2;
  m.mixer.heads = m.mixer.groups = 8;
  m.mixer.head_dim = m.mixer.state = m.mixer.chunk = 64;
  m.mixer.conv = 4, m.v_dim = which == 0 ? 32 : 64;
  if (which == 0)
    return m;
  m.latent.kv_lora = 128;
  m.latent.rope_dim = 16;
  m.attn.gate = true;
  if (which == 2) {
    m.moe.n_experts = 4;
    m.moe.top_k = 2;
    m.moe.expert_ffn = 256;
    m.moe.latent = 128;
    m.moe.shared_ffn = 256;
    m.moe.every = 1;
  }
  return m;
}

static void
layers_of_every_kind_keep_the_laws (void)
{
  for (guint i = 0; i < 6 * 24; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GError) error = NULL;
    Job j = { .model = layered (i % 6) };
    LsStrategy *s = &j.strategy;
    ls_strategy_init (s);
    s->gpus = 4;
    s->tp = i / 6 % 2 + 1;
    s->sp = i / 12 % 2 > 0 || i % 6 == 2;
    s->cp = i % 6 == 0 && i / 12 % 2 ? 2 : 1;
    s->recompute = i / 24 % 3;
    s->dp_kind = i / 72 % 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s->pp = (i % 6 == 5 && i / 36 % 2) || (i % 6 == 3 && i / 36 == 1) ? 2 : 1; /* with other layers each */
    s->global_batch = 8;
    if (i % 6 == 3 && s->pp > 1)
      j.model.sides.encoder_layers = 4, j.model.tied_embeddings = true;
    if (i % 6 == 3 && s->recompute == LS_RECOMPUTE_FULL)
      j.model.sides.decoder_seq = 0;
    j.model.predict.layers
        = i % 6 != 3 && i % 6 != 4 && i / 72 % 2; /* as the last layer: one of attention, or a mixer */
    j.model.n_layers -= i / 72 % 2 && i / 36 % 2;
    bool is_legal = ls_strategy_resolve (s, &j.model, 4, 8, diags);
    ls_check_impl (is_legal, __FILE__, __LINE__, "%u", i);
    j.plan = is_legal ? ls_lower (&j.model, s, NULL, &error) : NULL;
    if (j.plan)
      LS_CHECK (conserves (&j, &error));
    LS_CHECK_NO_ERROR (error);
    ls_plan_free (j.plan);
    ls_strategy_clear (s);
  }
}

/* Layers one by one of other widths, some without attention or an MLP. */
static LsModel
of_widths (uint32_t kv_heads[5], uint32_t ffn[4])
{
  LsModel m = layered (3);
  m.sides.encoder_layers = m.sides.decoder_seq = 0;
  m.layers.pattern = (char *) "AAdaA";
  m.layers.kv_heads = kv_heads, m.layers.n_kv_heads = 5;
  m.layers.ffn = ffn, m.layers.n_ffn = 4;
  return m;
}

static void
says_of_widths (uint32_t kv_heads[5], uint32_t ffn[4], LsMixerKind mixer, const char *said)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsModel m = of_widths (kv_heads, ffn);
  LsStrategy s;
  m.mixer.kind = mixer;
  ls_strategy_init (&s);
  s.gpus = s.tp = 4;
  bool ok = ls_strategy_resolve (&s, &m, 4, 8, diags);
  g_autofree char *why = ls_diag_list_format (diags);
  ls_check_impl (!ok && strstr (why, said), __FILE__, __LINE__, "%s", why);
  ls_strategy_clear (&s);
}

/* With tp 4 three ranks of four have the key
 * heads of another, where there is but one. */
static void
layers_of_their_own_width_keep_the_laws (void)
{
  uint32_t kv_heads[] = { 0, 0, 4, 1, 2 }, ffn[] = { 0, 256, 512, 0 };
  for (guint i = 0; i < 24; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GError) error = NULL;
    Job j = { .model = of_widths (kv_heads, ffn) };
    j.model.attn.window = i / 2 % 2 * 64, j.model.v_dim = i / 4 % 2 * 32;
    LsStrategy *s = &j.strategy;
    ls_strategy_init (s);
    s->gpus = 8;
    s->tp = 1u << i % 3;
    s->sp = i / 3 % 2 > 0;
    s->pp = i / 6 % 2 + 1;
    s->dp_kind = i / 12 % 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s->global_batch = 8;
    LS_CHECK (ls_strategy_resolve (s, &j.model, 8, 8, diags));
    j.plan = ls_lower (&j.model, s, NULL, &error);
    LS_CHECK (j.plan && conserves (&j, &error));
    LS_CHECK_NO_ERROR (error);
    ls_plan_free (j.plan);
    ls_strategy_clear (s);
  }
  ffn[1] = 258;
  says_of_widths (kv_heads, ffn, LS_MIXER_NONE, "the ffn width 258 of layer 1");
  ffn[1] = 256;
  says_of_widths (kv_heads, ffn, LS_MIXER_PRODUCT, "in the place of attention, cut over ranks");
}

/* Behind two layers every third has an indexer, which all ranks of tp have whole. */
static void
shared_indexers_keep_the_laws (void)
{
  for (guint i = 0; i < 12; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GError) error = NULL;
    Job j = { .model = layered (1) };
    LsModel *m = &j.model;
    LsStrategy *s = &j.strategy;
    m->layers.pattern = NULL;
    m->mixer.kind = LS_MIXER_NONE;
    m->n_kv_heads = m->n_heads;
    m->position = LS_POSITION_ROPE;
    m->latent.q_lora = 96, m->attn.window = 64;
    m->index.heads = 2, m->index.dim = 16;
    m->index.first = 2, m->index.every = 3;
    ls_strategy_init (s);
    s->gpus = 4;
    s->tp = i % 2 + 1;
    s->sp = i / 2 % 2;
    s->recompute = i / 4;
    s->global_batch = 8;
    bool is_legal = ls_strategy_resolve (s, m, 4, 8, diags);
    g_autofree char *why = ls_diag_list_format (diags);
    ls_check_impl (is_legal, __FILE__, __LINE__, "%u: %s", i, why);
    j.plan = is_legal ? ls_lower (m, s, NULL, &error) : NULL;
    if (j.plan)
      LS_CHECK (conserves (&j, &error));
    LS_CHECK_NO_ERROR (error);
    ls_plan_free (j.plan);
    ls_strategy_clear (s);
  }
}

/* 4 heads of windowed layers are not cut by 8; context parallelism and adapters are not modelled there. */
static void
heads_that_differ_have_their_limits (void)
{
  static const struct {
    uint32_t tp, cp, lora;
    const char *said;
  } cases[] = {
    { 4, 1, 0, NULL },
    { 8, 1, 0, "expected a divisor of the 4 heads and the ffn width 1024 of layer 0" },
    { 1, 2, 0, "layers whose heads differ" },
    { 1, 1, 8, "layers whose keys are their values" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = layered (4);
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = cases[i].tp;
    s.cp = cases[i].cp;
    s.lora.rank = cases[i].lora;
    bool ok = ls_strategy_resolve (&s, &m, 8, 8, diags);
    g_autofree char *why = ls_diag_list_format (diags);
    ls_check_impl (ok == !cases[i].said && (ok || strstr (why, cases[i].said)), __FILE__, __LINE__, "%u: %s",
                   i, why);
    ls_strategy_clear (&s);
  }
}

/* Bytes of parameters, gradients and optimizer of rank 0, by hand: frozen weights have 2 bytes, or 4.127 bits, and
 * no more; adapters 2, 2 and 12, or 4, 4 and 8 in the shards of FSDP. */
static void
check_states (const Job *j, uint64_t n_frozen, uint64_t n_learn)
{
  const uint64_t *bytes = j->plan->programs[0].static_bytes;
  const LsStrategy *s = &j->strategy;
  bool is_fsdp = s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2;
  uint64_t n = s->zero_stage == 3 ? s->dp : 1, o = s->zero_stage > 0 ? s->dp : 1;
  LS_CHECK_NEAR ((double) bytes[LS_MEM_PARAMETERS],
                 2.0 * (double) n_frozen / (double) n + (is_fsdp ? 4.0 : 2.0) * (double) n_learn / (double) n,
                 1e-5);
  LS_CHECK_NEAR ((double) bytes[LS_MEM_OPTIMIZER], (is_fsdp ? 8.0 : 12.0) * (double) n_learn / (double) o,
                 1e-5);
}

/* With each backend, with and without tensor parallelism, recomputation and stages. */
static void
adapters_keep_the_laws (void)
{
  static const struct {
    int dp_kind;
    uint32_t zero;
  } backends[] = { { LS_DP_MEGATRON, 0 },  { LS_DP_MEGATRON, 1 },  { LS_DP_DDP, 0 },   { LS_DP_DEEPSPEED, 0 },
                   { LS_DP_DEEPSPEED, 2 }, { LS_DP_DEEPSPEED, 3 }, { LS_DP_FSDP1, 3 }, { LS_DP_FSDP2, 3 } };
  for (guint i = 0; i < G_N_ELEMENTS (backends) * 24; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GError) error = NULL;
    Job j = { .model = layered (3) };
    j.model.sides.encoder_layers = j.model.sides.decoder_seq = 0;
    j.model.position = LS_POSITION_ROPE;
    LsStrategy *s = &j.strategy;
    ls_strategy_init (s);
    guint k = i / G_N_ELEMENTS (backends);
    s->gpus = 8;
    s->dp_kind = backends[i % G_N_ELEMENTS (backends)].dp_kind;
    s->zero_stage = backends[i % G_N_ELEMENTS (backends)].zero;
    s->tp = k % 2 + 1;
    s->sp = k / 2 % 2 > 0;
    s->pp = k / 4 % 2 && s->zero_stage < 2 ? 2 : 1;
    s->recompute = k / 8 % 3;
    s->micro_batch = 1;
    s->global_batch = 16;
    s->dtype = k % 5 == 4 && s->dp_kind == LS_DP_MEGATRON ? LS_DTYPE_FP8 : LS_DTYPE_BF16;
    s->fp8.params = k % 2;
    s->lora.rank = 8;
    s->lora.modules = k % 3 ? g_strdup ("q,v,down") : NULL;
    bool is_legal = ls_strategy_resolve (s, &j.model, 8, 8, diags);
    g_autofree char *why = ls_diag_list_format (diags);
    ls_check_impl (is_legal, __FILE__, __LINE__, "%u: %s", i, why);
    j.plan = is_legal ? ls_lower (&j.model, s, NULL, &error) : NULL;
    if (j.plan)
      LS_CHECK (conserves (&j, &error));
    LS_CHECK_NO_ERROR (error);
    const LsLora lora = { .rank = 8, .modules = k % 3 ? LS_LORA_Q | LS_LORA_V | LS_LORA_DOWN : LS_LORA_ALL };
    uint64_t vocab = ls_model_padded_vocab (&j.model, s->use.vocab_multiple, 1);
    if (j.plan && s->tp * s->pp == 1 && s->dtype == LS_DTYPE_BF16)
      check_states (&j, ls_model_params (&j.model, vocab), ls_lora_params (&j.model, &lora));
    ls_plan_free (j.plan);
    ls_strategy_clear (s);
  }
}

/* What is refused beside adapters: by knob. */
static void
adapters_are_refused_what_is_not_modelled (void)
{
  for (guint i = 0; i < 8; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = layered (3);
    m.predict.layers = i == 0, m.sides.decoder_seq = 0;
    m.sides.encoder_layers = i == 1 ? m.sides.encoder_layers : 0;
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 2;
    s.global_batch = 8;
    s.lora.rank = i < 7 ? 8 : 0;
    s.dtype = i == 2 ? LS_DTYPE_FP8 : LS_DTYPE_BF16;
    s.pp = i == 3 ? 2 : 1;
    s.schedule = i == 3 ? g_strdup ("zb-h1") : NULL;
    s.lora.modules = i == 4 ? g_strdup ("q,z") : NULL;
    s.memory.offload = i == 5 ? LS_OFFLOAD_OPTIMIZER : LS_OFFLOAD_NONE;
    s.zero_stage = i == 5 ? 2 : i == 6 ? 3 : 0;
    s.dp_kind = i == 5 || i == 6 ? LS_DP_DEEPSPEED : i == 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.lora.qlora = i == 6;
    bool is_legal = ls_strategy_resolve (&s, &m, 2, 8, diags);
    ls_check_impl (is_legal == (i == 7), __FILE__, __LINE__, "%u", i);
    ls_strategy_clear (&s);
  }
}

/* A frozen layer keeps no input, its adapter does: parts that run again would leave out the one or the other. */
static void
parts_run_again_beside_adapters (void)
{
  static const uint32_t parts[] = { LS_RECOMPUTE_CORE, LS_RECOMPUTE_NORM, LS_RECOMPUTE_ACTIVATION,
                                    LS_RECOMPUTE_MLP, LS_RECOMPUTE_CORE | LS_RECOMPUTE_NORM };
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = layered (3);
    m.sides.encoder_layers = m.sides.decoder_seq = 0;
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 2;
    s.global_batch = 8;
    s.lora.rank = 8;
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    s.memory.recompute_parts = parts[i];
    LS_CHECK_INT (ls_strategy_resolve (&s, &m, 2, 8, diags), ==, i == 0);
    ls_strategy_clear (&s);
  }
}

/* Stages, cut sequences and scores of their own need the encoder's tokens where they are not. */
static void
an_encoder_is_refused_what_is_not_modelled (void)
{
  for (guint i = 0; i < 4; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = layered (3);
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 2;
    s.pp = i == 0 ? 2 : 1;
    s.cp = i == 1 ? 2 : 1;
    s.use.attention = i == 2 ? LS_ATTENTION_UNFUSED : LS_ATTENTION_FLASH;
    s.recompute = i == 3 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    LS_CHECK (!ls_strategy_resolve (&s, &m, 2, 8, diags));
    ls_strategy_clear (&s);
  }
}

/* Half the capacity that even experts need: half of what they would compute is dropped, in layers that predict
 * too. */
static void
dropped_tokens_have_no_flops (void)
{
  LsModel m = {
    .n_layers = 3,
    .hidden = 64,
    .n_heads = 4,
    .n_kv_heads = 4,
    .head_dim = 16,
    .ffn = 128,
    .vocab = 1000,
    .seq = 32,
    .mlp = LS_MLP_SWIGLU,
    .moe.n_experts = 4,
    .moe.top_k = 2,
    .moe.expert_ffn = 128,
    .moe.every = 1,
  };
  LsStrategy s;
  ls_strategy_init (&s);
  s.global_batch = 8;
  s.experts.capacity = 0.5;
  double of_experts = 6.0 * 3 * 64 * 128 * 8 * 32 * 2 * 3; /* 6 x weights of one x tokens x top_k x layers */
  LS_CHECK_NEAR (ls_dropped_flops (&m, &s, 32), of_experts / 2, 1e-12);
  m.predict.layers = 1; /* as the last, with experts */
  LS_CHECK_NEAR (ls_dropped_flops (&m, &s, 32), of_experts * 4 / 3 / 2, 1e-12);
  s.experts.capacity = 0;
  LS_CHECK_DOUBLE (ls_dropped_flops (&m, &s, 32), ==, 0);
}

LS_TEST_SUITE (LS_TEST (jobs_of_every_kind_keep_the_laws), LS_TEST (a_missing_percent_of_a_kernel_is_noticed),
               LS_TEST (a_kernel_that_only_recomputes_does_not_count),
               LS_TEST (a_buffer_of_another_size_is_noticed), LS_TEST (layers_of_every_kind_keep_the_laws),
               LS_TEST (heads_that_differ_have_their_limits), LS_TEST (shared_indexers_keep_the_laws),
               LS_TEST (layers_of_their_own_width_keep_the_laws),
               LS_TEST (an_encoder_is_refused_what_is_not_modelled), LS_TEST (adapters_keep_the_laws),
               LS_TEST (adapters_are_refused_what_is_not_modelled), LS_TEST (parts_run_again_beside_adapters),
               LS_TEST (dropped_tokens_have_no_flops))
