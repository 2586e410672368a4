/* Pins adapters beside latent attention and mixers (model/lora.h): their weights by hand, how tensor parallelism
 * cuts them, what is kept, and the laws of jobs that have them, over tp, sp, modules, recomputation and
 * pipelines. */
#include "layer_laws.h"

#include "model/lora.h"
#include "model/mixer.h"

/* Heads of 64 columns that are rotated in half of them, values of 64; latents of 128 + 32, and of q_lora. */
static LsModel
latent (uint32_t q_lora)
{
  LsModel m = small_model ("latent");
  m.mlp = LS_MLP_SWIGLU;
  m.n_kv_heads = 8;
  m.latent.kv_lora = 128;
  m.latent.rope_dim = 32;
  m.v_dim = 64;
  m.latent.q_lora = q_lora;
  return m;
}

/* The worked example of lora.h, of attention: 61 layers of DeepSeek-V3. */
static void
weights_are_counted (void)
{
  LsModel m = latent (1536);
  m.n_layers = 61, m.hidden = 7168, m.n_heads = m.n_kv_heads = 128;
  m.head_dim = 192, m.v_dim = 128, m.latent.kv_lora = 512, m.latent.rope_dim = 64, m.ffn = 18432;
  uint32_t modules;
  g_autofree char *wrong = NULL;
  LS_CHECK (ls_lora_modules (&m, "q,k,o", &modules, &wrong));
  LsLora lora = { .rank = 16, .modules = modules };
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==,
                61 * 16 * (7168 + 1536 + 1536 + 24576 + 7168 + 576 + 512 + 32768 + 16384 + 7168));
  LS_CHECK_INT (repeated_adapter_params (&m, &lora, false), ==,
                61 * 16 * (7168 + 1536 + 1536 + 7168 + 576 + 512 + 7168));
  m.latent.q_lora = 0;
  lora.modules = LS_LORA_Q;
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==, 61 * 16 * (7168 + 24576));
  LS_CHECK (!ls_lora_modules (&m, "q,v", &modules, &wrong)); /* keys and values are made together */
  LS_CHECK_STR (wrong, "v");
}

static GArray *
adapted (const LsModel *m, uint32_t modules, uint32_t tp)
{
  LsShard shard = whole_shard (m);
  shard.tp = tp, shard.sp = tp > 1, shard.attention = LS_ATTENTION_FLASH;
  shard.lora = (LsLora) { .rank = 16, .modules = modules };
  GArray *operators = ls_operators_new ();
  ls_operators_layer (m, &shard, 0, operators);
  return operators;
}

/* Of one of two ranks: 128 of 256 tokens meet all of what makes a latent, and 256 half of what is made. */
static void
both_sides_of_a_latent_are_whole (void)
{
  LsModel m = latent (256);
  g_autoptr (GArray) operators = adapted (&m, LS_LORA_K, 2);
  const LsOperator *adapter[4] = { NULL };
  guint n = 0;
  for (guint i = 0; i < operators->len; i++)
    if (g_array_index (operators, LsOperator, i).params.is_adapter && n < 4)
      adapter[n++] = &g_array_index (operators, LsOperator, i);
  if (!LS_CHECK (n == 4))
    return;
  const struct {
    uint64_t rows, numel, tp_bytes, saved;
    bool is_whole;
  } want[4] = { { 128, 16 * 512, 0, 128 * 512 * 2, true },
                { 128, 16 * (128 + 32), 0, 128 * 16 * 2, true },
                { 128, 16 * 128, 0, 128 * 128 * 2, true },
                { 256, 16 * 8 * (32 + 64) / 2, 256 * 16 * 2, 128 * 16 * 2, false } };
  for (guint i = 0; i < 4; i++) {
    LS_CHECK_INT (adapter[i]->fwd[0].m, ==, want[i].rows);
    LS_CHECK_INT (adapter[i]->params.numel[0], ==, want[i].numel);
    LS_CHECK_INT (adapter[i]->comm.tp_bytes, ==, want[i].tp_bytes);
    LS_CHECK_INT (adapter[i]->kept.saved_bytes, ==, want[i].saved);
    LS_CHECK (adapter[i]->params.is_replicated == want[i].is_whole);
  }
}

static uint64_t
kept (const LsModel *m, uint32_t modules)
{
  g_autoptr (GArray) operators = adapted (m, modules, 1);
  uint64_t bytes = 0;
  for (guint i = 0; i < operators->len; i++)
    bytes += g_array_index (operators, LsOperator, i).kept.saved_bytes;
  return bytes;
}

/* What makes the latents reads one input, which two adapters keep once. */
static void
one_input_is_kept_once (void)
{
  LsModel m = latent (256);
  uint64_t none = kept (&m, LS_LORA_GATE), q = kept (&m, LS_LORA_Q | LS_LORA_GATE),
           k = kept (&m, LS_LORA_K | LS_LORA_GATE), both = kept (&m, LS_LORA_Q | LS_LORA_K | LS_LORA_GATE);
  LS_CHECK_INT (both + none, ==, q + k - 256 * 512 * 2);
}

/* On 8 GPUs, of rank 8. */
static LsStrategy
small_job (void)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.lora.rank = 8;
  s.global_batch = 16;
  return s;
}

static void
jobs_keep_the_laws (void)
{
  static const char *const modules[] = { "all-linear", "q,k,o", "k,gate", "q", "o,down" };
  for (guint i = 0; i < 60; i++) {
    LsModel m = latent (i % 2 ? 256 : 0);
    LsStrategy s = small_job ();
    s.tp = 1u << i % 3;
    s.sp = s.tp > 1 && i / 3 % 2;
    s.pp = i / 6 % 2 ? 2 : 1;
    s.recompute = i / 12 % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.dp_kind = s.tp == 1 && i / 6 % 4 == 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.lora.modules = g_strdup (modules[i % G_N_ELEMENTS (modules)]);
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* Layers with a mixer of 8 heads of 64 on 4 keys of 32, and each third with attention. */
static LsModel
mixing (LsMixerKind mixer)
{
  LsModel m = small_model ("mixing");
  m.mlp = LS_MLP_SWIGLU;
  m.layers.pattern = (char *) "MMA";
  m.mixer.kind = mixer;
  m.mixer.heads = 8, m.mixer.groups = 4;
  m.mixer.head_dim = 64, m.mixer.state = 32;
  m.mixer.conv = 4, m.mixer.chunk = 64;
  m.mixer.rank = mixer == LS_MIXER_MAMBA1 ? 32 : 0;
  if (mixer == LS_MIXER_KDA)
    m.mixer.groups = 8, m.mixer.state = 64;
  if (mixer == LS_MIXER_MLSTM || mixer == LS_MIXER_LINEAR)
    m.mixer.groups = 8;
  if (mixer == LS_MIXER_PRODUCT)
    m.mixer.heads = m.mixer.groups = 1, m.mixer.head_dim = m.mixer.state = 512;
  return m;
}

/* In and out of each adapter of a layer with a mixer, by hand: h 512, I 512, K 128, H 8. */
static void
weights_of_mixers (void)
{
  static const struct {
    LsMixerKind mixer;
    uint32_t n_products;
    const char *modules;
    uint64_t widths;
  } of[] = {
    { LS_MIXER_MAMBA2, 0, "in", 512 + 2 * 512 + 2 * 128 + 8 },
    { LS_MIXER_MAMBA2, 0, "out", 512 + 512 },
    { LS_MIXER_MAMBA1, 0, "in", 512 + 2 * 512 },
    { LS_MIXER_MAMBA1, 0, "select", 512 + 32 + 2 * 32 },
    { LS_MIXER_MAMBA1, 0, "step", 32 + 512 },
    { LS_MIXER_DELTA, 0, "in", 2 * 512 + 2 * 128 + 2 * 512 + 2 * 8 },
    { LS_MIXER_DELTA, 4, "in", 4 * 512 + 2 * 128 + 2 * 512 + 2 * 8 },
    { LS_MIXER_DELTA, 4, "out", 512 + 512 },
    { LS_MIXER_DELTA, 6, "in", 3 * 512 + 512 + 2 * 8 },
    { LS_MIXER_LINEAR, 0, "in", 2 * 512 + 2 * 256 + 2 * 512 },
    { LS_MIXER_LINEAR, 4, "in", 512 + 512 },
    { LS_MIXER_CONV, 0, "in", 512 + 3 * 512 },
    { LS_MIXER_KDA, 0, "in", 512 + 8 + 2 * (512 + 64 + 64 + 512) },
    { LS_MIXER_RGLRU, 0, "in", 2 * 512 + 2 * 512 },
    { LS_MIXER_MLSTM, 0, "in", 3 * 512 + 512 + 2 * 8 },
    { LS_MIXER_PRODUCT, 0, "out", 512 + 512 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (of); i++) {
    LsModel m = mixing (of[i].mixer);
    m.mixer.products = of[i].n_products;
    LsLora lora = { .rank = 16 };
    g_autofree char *wrong = NULL;
    LS_CHECK (ls_lora_modules (&m, of[i].modules, &lora.modules, &wrong));
    LS_CHECK_INT (ls_lora_params (&m, &lora), ==, 4 * 16 * of[i].widths);
    LS_CHECK (!ls_lora_check_products (&m));
  }
}

/* Without a gate there is one product fewer, of delta without decays too; of linear the columns of decays, 16, and what
 * these make, 8 keys of 32, have adapters with the ways in. */
static void
ways_in_without_a_gate (void)
{
  static const struct {
    LsMixerKind mixer;
    bool ungated, undecayed;
    uint32_t n_products, rank;
    uint64_t widths;
  } of[] = {
    { LS_MIXER_DELTA, true, false, 5, 0, 2 * (512 + 8) },
    { LS_MIXER_DELTA, true, true, 4, 0, 512 + 8 },
    { LS_MIXER_DELTA, false, true, 5, 0, 512 + 8 + 512 + 512 },
    { LS_MIXER_LINEAR, true, false, 3, 16, 512 + 16 + 16 + 256 },
    { LS_MIXER_LINEAR, false, false, 4, 16, 512 + 512 + 512 + 16 + 16 + 256 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (of); i++) {
    LsModel m = mixing (of[i].mixer);
    m.mixer.ungated = of[i].ungated, m.mixer.undecayed = of[i].undecayed;
    m.mixer.products = of[i].n_products, m.mixer.rank = of[i].rank;
    LsLora lora = { .rank = 16, .modules = LS_LORA_IN };
    LS_CHECK_INT (ls_lora_params (&m, &lora), ==, 4 * 16 * of[i].widths);
    LS_CHECK (!ls_lora_check_products (&m));
    LS_CHECK_INT (ls_lora_way_out (&m), ==, LS_LORA_O);
    for (guint k = 0; k < 8; k++) {
      LsStrategy s = small_job ();
      s.tp = 1u << k % 2;
      s.sp = k % 4 == 3;
      s.lora.modules = k / 4 ? g_strdup ("in") : NULL;
      LS_CHECK (keeps_the_laws (&m, &s));
    }
  }
}

/* Q, K and V where attention is, and where a mixer has products of these names; all of them together. */
static void
names_that_mixers_share (void)
{
  LsModel m = mixing (LS_MIXER_KDA);
  LsLora lora = { .rank = 16 };
  g_autofree char *wrong = NULL;
  LS_CHECK (ls_lora_modules (&m, "q,v,o", &lora.modules, &wrong));
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==,
                16 * (4 * (3 * (512 + 512)) + 2 * (512 + 512 + 512 + 256 + 512 + 512)));
  LS_CHECK (!ls_lora_modules (&m, "out", &lora.modules, &wrong)); /* it is o */
  LS_CHECK_STR (wrong, "out");
  m.mixer.products = 3;
  LS_CHECK (ls_lora_check_products (&m) != NULL);
  LsModel alone = mixing (LS_MIXER_MAMBA2);
  alone.layers.pattern = (char *) "m";
  LS_CHECK (ls_lora_modules (&alone, NULL, &lora.modules, &wrong));
  LS_CHECK_INT (lora.modules, ==, LS_LORA_IN | LS_LORA_OUT); /* neither attention nor an MLP */
  g_autofree char *words = ls_lora_words (lora.modules, ", ");
  LS_CHECK_STR (words, "in, out");
}

/* As wide as queries and their gate, or both by themselves: a layer of 8 heads of 64. */
static void
gates_of_attention (void)
{
  LsModel m = small_model ("gated");
  m.attn.gate = true;
  LsLora lora = { .rank = 16, .modules = LS_LORA_Q };
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==, 6 * 16 * (512 + 2 * 512));
  m.attn.gate_own = true;
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==, 6 * 16 * (2 * 512 + 2 * 512));
  for (guint i = 0; i < 4; i++) {
    LsStrategy s = small_job ();
    s.tp = i / 2 + 1;
    m.attn.gate_own = i % 2;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* Of 8 heads on 2 of keys and values with 8 ranks: each has a head of 64, six of them one that another has. */
static void
heads_that_ranks_share (void)
{
  LsModel m = small_model ("shared heads");
  m.n_kv_heads = 2;
  LsLora lora = { .rank = 16, .modules = LS_LORA_Q | LS_LORA_K };
  LS_CHECK_INT (copied_adapter_params (&m, &lora, 2), ==, 0);
  LS_CHECK_INT (copied_adapter_params (&m, &lora, 8), ==, 6 * 16 * (8 - 2) * 64);
  g_autoptr (GArray) operators = adapted (&m, LS_LORA_K | LS_LORA_V, 8);
  const LsOperator *b = find_operator (operators, "lora-b");
  if (LS_CHECK (b != NULL))
    LS_CHECK_INT (b->params.numel[0], ==, 16 * 64);
  static const char *const modules[] = { "all-linear", "q,o", "k", "v,gate" };
  for (guint i = 0; i < 32; i++) {
    LsStrategy s = small_job ();
    m.mlp = LS_MLP_SWIGLU;
    m.attn.window = i % 3 ? 0 : 64;
    m.attn.window_kv_heads = i % 3 ? 0 : 4;
    m.attn.full_every = i % 3 ? 0 : 2;
    s.tp = 4u << i % 2;
    s.sp = i / 2 % 2;
    s.recompute = i / 4 % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.lora.qlora = i / 8 % 2;
    s.lora.modules = g_strdup (modules[i / 8]);
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* The input of a mixer's products is kept once, beside attention too: 256 tokens of 512. */
static void
mixers_keep_an_input_once (void)
{
  LsModel m = mixing (LS_MIXER_DELTA);
  const uint64_t input = 256 * 512 * 2, narrow = 256 * 16 * 2;
  LS_CHECK_INT (kept (&m, LS_LORA_IN) - kept (&m, LS_LORA_GATE), ==, 2 * narrow - input - narrow + input);
  m.mixer.products = 4;
  LS_CHECK_INT (kept (&m, LS_LORA_IN) - kept (&m, LS_LORA_GATE), ==, 4 * narrow - narrow);
  m = mixing (LS_MIXER_MAMBA2);
  m.layers.pattern = (char *) "P";
  LS_CHECK_INT (kept (&m, LS_LORA_IN | LS_LORA_Q) + kept (&m, 0), ==,
                kept (&m, LS_LORA_IN) + kept (&m, LS_LORA_Q) - input);
}

static void
jobs_with_mixers_keep_the_laws (void)
{
  static const char *const patterns[] = { "MMA", "P", "mad" };
  for (guint i = 0; i < 24 * LS_N_MIXERS; i++) {
    LsModel m = mixing ((LsMixerKind) (i / 24));
    if (i / 24 == LS_MIXER_NONE || ls_mixers[i / 24].no_adapters)
      continue;
    LsStrategy s = small_job ();
    m.layers.pattern = (char *) patterns[i % 3];
    s.tp = ls_mixers[i / 24].is_whole ? 1 : 1u << i / 3 % 2;
    s.sp = s.tp > 1 && i / 6 % 2;
    s.recompute = i / 12 % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.dp_kind = s.tp == 1 && i / 6 % 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.pp = s.tp == 2 && i % 3 == 0 ? 2 : 1;
    s.lora.qlora = i % 5 == 1;
    s.lora.modules = i % 4 == 3 && m.mixer.kind != LS_MIXER_PRODUCT ? g_strdup ("in") : NULL;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* One group of keys on two ranks of cp: its products, which no weight is in, are there twice, and count in full. */
static void
groups_that_ranks_share (void)
{
  for (guint i = 0; i < 12; i++) {
    LsModel m = mixing (LS_MIXER_MAMBA2);
    LsStrategy s = small_job ();
    m.mixer.groups = 1u << i % 2;
    s.cp = 2u << i % 2;
    s.pp = i / 2 % 2 + 1;
    s.recompute = i / 4 % 3;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* In 4 bits as other linear layers: 512 x (1024 + 256 + 8) into it. */
static void
mixers_in_four_bits (void)
{
  LsModel m = mixing (LS_MIXER_MAMBA2);
  LsShard shard = whole_shard (&m);
  shard.lora = (LsLora) { .rank = 16, .modules = LS_LORA_IN, .is_nf4 = true };
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *in = find_operator (operators, "mixer-in"),
                   *conv = find_operator (operators, "mixer-conv");
  if (!LS_CHECK (in && conv && in->params.is_nf4 && !conv->params.is_nf4))
    return;
  LS_CHECK_STR (in->fwd[0].name, "nf4-dequant");
  LS_CHECK_NEAR (in->fwd[0].bytes, 512 * 1288.0 * (4.127 / 8 + 2), 1e-6);
}

/* Each token of RWKV-7 is mixed with the one before in another way for each product. */
static void
other_mixers_are_refused (void)
{
  LsModel m = mixing (LS_MIXER_RWKV7);
  m.mixer.rank = 32, m.mixer.groups = 8, m.mixer.state = 64;
  LsStrategy s = small_job ();
  says (&m, &s, "adapters of a model with time mixing of RWKV-7");
}

LS_TEST_SUITE (LS_TEST (weights_are_counted), LS_TEST (both_sides_of_a_latent_are_whole),
               LS_TEST (one_input_is_kept_once), LS_TEST (jobs_keep_the_laws), LS_TEST (weights_of_mixers),
               LS_TEST (ways_in_without_a_gate), LS_TEST (names_that_mixers_share),
               LS_TEST (gates_of_attention), LS_TEST (heads_that_ranks_share),
               LS_TEST (mixers_keep_an_input_once), LS_TEST (jobs_with_mixers_keep_the_laws),
               LS_TEST (groups_that_ranks_share), LS_TEST (mixers_in_four_bits),
               LS_TEST (other_mixers_are_refused))
