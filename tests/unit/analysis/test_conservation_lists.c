/* Pins: the conservation laws hold where layers differ in their experts and windows one by one, where they
 * use the weights of others again, where experts share small ones, and behind encoders with rope; that the
 * operators of such layers have as many weights as the model counts; and what is refused there. */
#include "ls_test.h"

#include "layer_laws.h"

/* Six layers: by turns four and two experts of 512 x 256, of which two and one are met, each third of half the
 * width, under windows of 64, none and 128. */
static LsModel
listed (void)
{
  static uint32_t experts[] = { 4, 2 }, top_k[] = { 2, 1 }, widths[] = { 0, 0, 128 },
                  windows[] = { 64, 0, 128 };
  LsModel m = small_model ("listed");
  m.mlp = LS_MLP_SWIGLU;
  m.moe.n_experts = 4;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 256;
  m.moe.every = 1;
  m.layers.experts = experts;
  m.layers.n_experts = 2;
  m.layers.top_k = top_k;
  m.layers.n_top_k = 2;
  m.layers.expert_ffn = widths;
  m.layers.n_expert_ffn = 3;
  m.layers.window = windows;
  m.layers.n_window = 3;
  return m;
}

/* Three layers of their own, the second windowed, four times. */
static LsModel
repeated (void)
{
  LsModel m = listed ();
  m.moe.n_experts = m.moe.top_k = m.moe.expert_ffn = m.moe.every = 0;
  m.layers.n_experts = m.layers.n_top_k = m.layers.n_expert_ffn = m.layers.n_window = 0;
  m.n_layers = 12, m.layers.own = 3;
  m.attn.window = 64, m.attn.full_every = 3, m.attn.unrotated_every = 2;
  return m;
}

static void
listed_layers_keep_the_laws (void)
{
  LsModel m = listed ();
  const uint64_t own = 2 * 512 * 512 + 2 * 512 * 256 + 2 * 512, one = 3 * 512 * 256;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_LISTS, NULL));
  LsModel many = m;
  many.n_layers = LS_MAX_LISTED_LAYERS + 1;
  const char *wrong = ls_model_wrong (&many, LS_MODEL_LISTS, NULL);
  LS_CHECK (wrong && strstr (wrong, "at most"));
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, own + 4 * 512 + 4 * one);
  LS_CHECK_INT (ls_model_layer_params (&m, 2), ==, own + 4 * 512 + 4 * one / 2);
  LS_CHECK_INT (ls_model_layer_params (&m, 3), ==, own + 2 * 512 + 2 * one);
  LS_CHECK_INT (ls_model_layer_linear_params (&m, 5), ==, own - 2 * 512 + 2 * 512 + one / 2);
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, 6);
  LS_CHECK_DOUBLE (ls_model_attention_pairs (&m, ls_model_layer_kind (&m, 1), 256), ==, 0.5);
  LS_CHECK_NEAR (ls_model_attention_pairs (&m, ls_model_layer_kind (&m, 2), 256), 0.375, 1e-12);
  LS_CHECK_NEAR (ls_model_attention_pairs (&m, ls_model_layer_kind (&m, 3), 256), 0.21875, 1e-12);
  for (guint i = 0; i < 12; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.ep = 1u << i % 2;
    s.pp = i / 2 % 3 + 1;
    s.gpus = 8 / s.pp * s.pp, s.ep = s.pp == 3 ? 1 : s.ep;
    s.dp_kind = i / 6 % 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.global_batch = 24;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

static void
layers_that_come_again_keep_the_laws (void)
{
  LsModel m = repeated (), once = repeated ();
  once.n_layers = 3, once.layers.own = 0;
  count_weights (&m);
  LS_CHECK_INT (ls_model_params (&m, m.vocab), ==, ls_model_params (&once, m.vocab));
  LS_CHECK_INT (ls_model_layer_params (&m, 3), ==, 0);
  LS_CHECK_INT (ls_model_layer_linear_params (&m, 10), ==, ls_model_layer_linear_params (&once, 1));
  LS_CHECK_INT (ls_model_layer_kind (&m, 10), ==, ls_model_layer_kind (&once, 1) | LS_LAYER_AGAIN);
  double head = 6.0 * 256 * 5000 * 512;
  LS_CHECK_NEAR (ls_model_flops (&m, m.vocab, 256, 1, false) - head,
                 4 * (ls_model_flops (&once, m.vocab, 256, 1, false) - head), 1e-12);
  for (guint i = 0; i < 8; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = 1u << i % 2;
    s.recompute = i / 2 % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.dp_kind = i / 4 % 2 ? LS_DP_DDP : LS_DP_AUTO;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* Two experts share one of 64; four are 256 wide. */
static LsModel
with_small_experts (void)
{
  LsModel m = listed ();
  m.layers.n_experts = m.layers.n_top_k = m.layers.n_expert_ffn = m.layers.n_window = 0;
  m.moe.adjugate_ffn = 64, m.moe.adjugate_of = 2;
  return m;
}

static void
small_experts_keep_the_laws (void)
{
  LsModel m = with_small_experts (), none = with_small_experts ();
  none.moe.adjugate_ffn = none.moe.adjugate_of = 0;
  count_weights (&m);
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_EXPERTS, NULL));
  LS_CHECK_INT (ls_model_params (&m, 0) - ls_model_params (&none, 0), ==, 6 * 2 * 3 * 512 * 64);
  LS_CHECK_INT (ls_model_active_params (&m, 0) - ls_model_active_params (&none, 0), ==, 6 * 2 * 3 * 512 * 64);
  for (guint i = 0; i < 4; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.ep = 1u << i % 2;
    s.dp_kind = i / 2 % 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
  m.moe.adjugate_of = 3;
  LS_CHECK (ls_model_wrong (&m, LS_MODEL_EXPERTS, NULL) != NULL);
}

/* Two layers of an encoder and four of its decoder, which meets the encoder's tokens apart or at once. */
static void
encoders_with_rope_keep_the_laws (void)
{
  for (guint i = 0; i < 12; i++) {
    LsModel m = repeated ();
    m.layers.own = m.attn.window = m.attn.full_every = m.attn.unrotated_every = 0;
    m.n_layers = 6, m.sides.encoder_layers = 2, m.sides.decoder_seq = 128;
    m.norms = LS_NORMS_BOTH;
    m.tied_embeddings = true;
    m.sides.merged_cross = m.attn.qk_norm = i % 2 > 0;
    LS_CHECK (!ls_model_wrong (&m, LS_MODEL_HALVES, NULL));
    count_weights (&m);
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = 1u << i / 2 % 3;
    s.sp = s.tp > 1 && i / 6 > 0;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&m, &s));
    m.sides.merged_cross = false, m.attn.qk_norm = true;
    LS_CHECK (ls_model_wrong (&m, LS_MODEL_HALVES, NULL) != NULL);
  }
}

/* Gates of the 512 columns of contexts, in two of three layers; their adapters of rank 16 too. */
static void
gates_in_windows_alone_keep_the_laws (void)
{
  LsModel m = small_model ("gated"), plain = small_model ("plain");
  LsLora lora = { .rank = 16, .modules = LS_LORA_Q };
  m.attn.window = 64, m.attn.full_every = 3;
  m.attn.gate = m.attn.gate_own = m.attn.gate_windowed = true;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_ATTENTION, NULL));
  count_weights (&m);
  for (uint32_t i = 0; i < m.n_layers; i++)
    LS_CHECK_INT (ls_model_layer_params (&m, i) - ls_model_layer_params (&plain, i), ==,
                  i % 3 < 2 ? 512 * 512 : 0);
  LS_CHECK_INT (ls_lora_params (&m, &lora) - ls_lora_params (&plain, &lora), ==, 4 * 16 * (512 + 512));
  for (guint i = 0; i < 12; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = 1u << i % 3;
    s.pp = s.tp < 4 ? 2 : 1;
    s.dp_kind = i / 3 % 2 && s.pp == 1 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.lora.rank = i < 6 ? 0 : 16;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
  m.attn.window = 0;
  LS_CHECK (ls_model_wrong (&m, LS_MODEL_ATTENTION, NULL) != NULL);
  m.attn.window = 64, m.attn.gate = false;
  LS_CHECK (ls_model_wrong (&m, LS_MODEL_ATTENTION, NULL) != NULL);
}

static void
what_is_not_modelled_is_refused (void)
{
  LsModel again = repeated (), lists = listed (), small = with_small_experts (), sides = repeated ();
  sides.layers.own = sides.attn.window = sides.attn.full_every = sides.attn.unrotated_every = 0;
  sides.sides.encoder_layers = 6, sides.tied_embeddings = true;
  const LsModel *const models[] = { &again, &again, &again, &lists, &lists, &lists, &small, &sides };
  for (guint i = 0; i < G_N_ELEMENTS (models); i++) {
    static const char *const said[] = { "layers that use the weights of others on another stage",
                                        "weights that are gathered for each of the layers",
                                        "a model with layers that come again",
                                        "uneven loads and capacities where layers differ",
                                        "the 2 experts of layer 1",
                                        "windows by layer",
                                        "the 2 experts with one small expert together",
                                        "an encoder's tokens that ranks of tp share" };
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 8;
    s.pp = i == 0 ? 2 : 1;
    s.dp_kind = i == 1 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.lora.rank = i == 2 ? 8 : 0;
    s.experts.capacity = i == 3 ? 1 : 0;
    s.ep = i == 4 || i == 6 ? 4 : 1;
    s.tp = i == 7 ? 8 : 1;
    s.docs.lengths = i == 5 ? g_strdup ("fixed:100") : NULL;
    says (models[i], &s, said[i]);
  }
}

LS_TEST_SUITE (LS_TEST (listed_layers_keep_the_laws), LS_TEST (layers_that_come_again_keep_the_laws),
               LS_TEST (small_experts_keep_the_laws), LS_TEST (encoders_with_rope_keep_the_laws),
               LS_TEST (gates_in_windows_alone_keep_the_laws), LS_TEST (what_is_not_modelled_is_refused))
