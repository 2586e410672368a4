/* Pins: the conservation laws hold with differences of attention and with mixers that gate what one before them made
 * (model/difference.c); weights, FLOPs and kept bytes of such layers, by hand; and what is refused there. */
#include "layer_laws.h"
#include "model/mixer.h"

/* As Phi-4-mini-flash has them: of 8 layers 3 meet keys of the fifth, or gate what the mixer of the fourth made. */
static LsModel
flash (void)
{
  static char pattern[] = "MA";
  static uint32_t windows[] = { 0, 64, 0, 64, 0, 0, 0, 0 };
  LsModel m = small_model ("flash");
  m.n_layers = 8;
  m.mlp = LS_MLP_SWIGLU;
  m.norm = LS_NORM_LAYERNORM;
  m.position = LS_POSITION_NONE;
  m.attn.qkv_bias = m.attn.difference = m.tied_embeddings = true;
  m.layers.pattern = pattern;
  m.layers.window = windows;
  m.layers.n_window = 8;
  m.halves.kv_shared_layers = 2;
  m.mixer.kind = LS_MIXER_MAMBA1;
  m.mixer.heads = 1024;
  m.mixer.head_dim = 1;
  m.mixer.groups = 1024;
  m.mixer.state = 16;
  m.mixer.conv = 4;
  m.mixer.chunk = 256;
  m.mixer.rank = 32;
  return m;
}

static void
weights_and_flops_are_those_of_the_parts (void)
{
  LsModel m = flash ();
  const uint64_t h = 512, i = 1024, query = 2 * h * h, keys = 2 * h * 256, mlp = 3 * h * 1024, norms = 4 * h;
  const uint64_t scan = 3 * h * i + i * (2 * 32 + 2 * 16), beside = 5 * i + i * 18 + 32 + 2 * 16;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_HALVES, NULL) && !ls_model_wrong (&m, LS_MODEL_LISTS, NULL)
            && !ls_model_wrong (&m, LS_MODEL_PARTS, NULL));
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 4), ==, scan + beside + mlp + norms);
  LS_CHECK_INT (ls_model_layer_params (&m, 5), ==, query + keys + mlp + norms + 512 + 512 + 6 * 64);
  LS_CHECK_INT (ls_model_layer_params (&m, 6), ==, 2 * h * i + mlp + norms);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 0);
  const LsShard shard = whole_shard (&m);
  g_autoptr (GArray) gating = ls_operators_new ();
  ls_operators_layer (&m, &shard, 6, gating);
  LS_CHECK_DOUBLE (find_operator (gating, "memory-gate")->fwd[0].bytes, ==, 3 * 2.0 * 256 * i);
  LS_CHECK_INT (ls_model_layer_params (&m, 7), ==, query + mlp + norms + 512 + 6 * 64);
  const uint64_t met = 3 * scan + 2 * h * i + 4 * query + 3 * keys + 8 * mlp;
  LS_CHECK_INT (ls_model_linear_params (&m, 0), ==, met);
  const double pairs = 2 * (64 - 64.0 * 64 / 512) / 256 + 2 * 0.5; /* of 256 x 256, of four layers, twice */
  LS_CHECK_NEAR (ls_model_flops (&m, 0, 256, 1, true),
                 6 * 256.0 * (double) met + 2 * 12 * 256.0 * 256 * 512 * pairs, 1e-12);
}

static uint64_t
kept (const LsModel *m, uint32_t layer)
{
  LsShard shard = whole_shard (m);
  shard.attention = LS_ATTENTION_FLASH;
  g_autoptr (GArray) operators = ls_operators_new ();
  uint64_t n = 0;
  ls_operators_layer (m, &shard, layer, operators);
  for (guint i = 0; i < operators->len; i++)
    n += g_array_index (operators, LsOperator, i).kept.saved_bytes;
  return n;
}

/* In numbers of 2 bytes a token: two contexts, the second attention, what the norm reads, and a number of 4 bytes more
 * for each head; of a gate of memory what the way in made and what the way out reads. */
static void
layers_keep_what_the_backward_reads (void)
{
  LsModel m = flash (), without = flash ();
  without.attn.difference = false;
  LS_CHECK_INT (kept (&m, 5) - kept (&without, 5), ==, 256 * (2 * 4 * 512 + 4 * 8));
  LS_CHECK_INT (kept (&without, 5) - kept (&without, 7), ==, 256 * 2 * 2 * 256);
  without.layers.pattern = NULL,
  without.halves.kv_shared_layers = 0; /* attention of the same layer, and a norm */
  LsModel none = without;
  none.layers.pattern = "d";
  LS_CHECK_INT (kept (&m, 6) - kept (&none, 6), ==, 256 * 2 * (2 * 512 + 2 * 1024));
}

/* Eight heads of 64, two of them the second of differences that three of the first share: six of twice 64 go
 * out. Calls are of six and of two heads, on two of keys; of a token 2 x 512 numbers are made, 768 left, and
 * the second, 256, kept beside these. */
static void
grouped_heads_share_a_second (void)
{
  LsModel m = small_model ("grouped"), plain = small_model ("plain");
  m.attn.difference = plain.attn.difference = true;
  m.attn.noise_heads = 2;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_PARTS, NULL));
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 0) - ls_model_layer_params (&plain, 0), ==, (768 - 512) * 512);
  LsShard shard = whole_shard (&m);
  shard.attention = LS_ATTENTION_FLASH;
  g_autoptr (GArray) operators = ls_operators_new (), others = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  ls_operators_layer (&plain, &shard, 0, others);
  const LsOperator *calls = find_operator (operators, "attention"),
                   *halves = find_operator (others, "attention"),
                   *second = find_operator (operators, "attention-difference"),
                   *norm = find_operator (operators, "difference-norm");
  if (!LS_CHECK (calls && halves && second && norm && calls->n_fwd == 4))
    return;
  LS_CHECK_DOUBLE (calls->fwd[0].flops, ==, 1.5 * halves->fwd[0].flops);
  LS_CHECK_DOUBLE (calls->fwd[2].flops, ==, 0.5 * halves->fwd[2].flops);
  LS_CHECK_INT (calls->kept.saved_bytes, ==, halves->kept.saved_bytes);
  LS_CHECK_DOUBLE (second->fwd[1].bytes, ==, 256.0 * 2 * (2 * 512 + 768));
  LS_CHECK_INT (second->kept.saved_bytes, ==, 256 * 2 * 256);
  LS_CHECK_INT (norm->kept.saved_bytes, ==, 256 * 2 * 768);
  for (guint i = 0; i < 12; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.tp = i % 2 + 1;
    s.sp = i % 2 && i / 2 % 2;
    s.recompute = i / 4 % 3;
    s.use.attention = LS_ATTENTION_FLASH;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

static void
differences_keep_the_laws (void)
{
  for (guint i = 0; i < 24; i++) {
    LsModel m = flash ();
    m.attn.difference = i % 3 != 1;
    if (i % 3 == 2)
      m.halves.kv_shared_layers = 0;
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = 1u << i / 3 % 2;
    s.sp = s.tp > 1 && i / 12 > 0;
    s.recompute = i / 6 % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.dp_kind = i / 12 % 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* Taps of 4 heads of keys and 4 of values. */
static void
convolutions_of_keys_keep_the_laws (void)
{
  LsModel with = small_model ("conv"), without = small_model ("plain");
  with.attn.kv_conv = 3;
  LS_CHECK (!ls_model_wrong (&with, LS_MODEL_PARTS, NULL));
  count_weights (&with);
  LS_CHECK_INT (ls_model_layer_params (&with, 0) - ls_model_layer_params (&without, 0), ==, 2 * 4 * 3);
  LS_CHECK_INT (kept (&with, 0) - kept (&without, 0), ==, 256 * 2 * 2 * 256);
  for (guint i = 0; i < 8; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = 1u << i % 4; /* to twice as many as heads of keys */
    s.pp = s.tp < 8 && i / 4 ? 2 : 1;
    s.use.attention = i / 4 ? LS_ATTENTION_UNFUSED : LS_ATTENTION_FLASH;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&with, &s));
  }
}

static void
what_is_not_modelled_is_refused (void)
{
  LsModel conv = small_model ("conv");
  conv.attn.kv_conv = 2;
  LsStrategy cut;
  ls_strategy_init (&cut);
  cut.gpus = cut.global_batch = 8;
  cut.cp = 2;
  says (&conv, &cut, "keys that meet those of tokens on another rank");
  for (guint i = 0; i < 3; i++) {
    LsModel m = flash ();
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 8;
    s.tp = i == 0 ? 4 : 1;
    s.use.attention = i == 1 ? LS_ATTENTION_UNFUSED : LS_ATTENTION_FLASH;
    s.cp = i == 2 ? 2 : 1;
    says (&m, &s,
          i == 0 ? "pairs of heads of keys; got 4" : "differences of two attentions are modelled in flash");
  }
}

/* Each breaks one rule. */
static void
models_must_agree_with_themselves (void)
{
  LsModel m = flash (), none = flash ();
  none.n_kv_heads = 1;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_PARTS, NULL), "pairs of heads"));
  none = m, none.v_dim = 32;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_PARTS, NULL), "v_dim"));
  none = m, none.halves.kv_shared_layers = 3; /* before them no layer that sees all */
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "windowed as they are"));
  none = m, none.halves.kv_shared_layers = 6; /* some of them have windows */
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "windowed as they are"));
  none = m, none.mixer.kind = LS_MIXER_MAMBA2;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "with mamba1 alone"));
  none = m, none.linear_bias = true;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "no biases"));
}

LS_TEST_SUITE (LS_TEST (weights_and_flops_are_those_of_the_parts),
               LS_TEST (layers_keep_what_the_backward_reads), LS_TEST (grouped_heads_share_a_second),
               LS_TEST (differences_keep_the_laws), LS_TEST (convolutions_of_keys_keep_the_laws),
               LS_TEST (what_is_not_modelled_is_refused), LS_TEST (models_must_agree_with_themselves))
