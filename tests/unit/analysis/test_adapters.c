/* Pins adapters beside latent attention (model/lora.h): their weights by hand, how tensor parallelism cuts them, what
 * is kept, and the laws of jobs that have them, over tp, sp, modules, recomputation and pipelines. */
#include "layer_laws.h"

#include "model/lora.h"

/* Heads of 64 columns that are rotated in half of them, values of 64; latents of 128 + 32, and of q_lora. */
static LsModel
latent (uint32_t q_lora)
{
  LsModel m = small_model ("latent");
  m.mlp = LS_MLP_SWIGLU;
  m.n_kv_heads = 8;
  m.kv_lora = 128;
  m.rope_dim = 32;
  m.v_dim = 64;
  m.q_lora = q_lora;
  return m;
}

/* The worked example of lora.h, of attention: 61 layers of DeepSeek-V3. */
static void
weights_are_counted (void)
{
  LsModel m = latent (1536);
  m.n_layers = 61, m.hidden = 7168, m.n_heads = m.n_kv_heads = 128;
  m.head_dim = 192, m.v_dim = 128, m.kv_lora = 512, m.rope_dim = 64, m.ffn = 18432;
  uint32_t modules;
  g_autofree char *wrong = NULL;
  LS_CHECK (ls_lora_modules (&m, "q,k,o", &modules, &wrong));
  LsLora lora = { .rank = 16, .modules = modules };
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==,
                61 * 16 * (7168 + 1536 + 1536 + 24576 + 7168 + 576 + 512 + 32768 + 16384 + 7168));
  LS_CHECK_INT (ls_lora_repeated_params (&m, &lora), ==,
                61 * 16 * (7168 + 1536 + 1536 + 7168 + 576 + 512 + 7168));
  m.q_lora = 0;
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
  GArray *operators = g_array_new (FALSE, FALSE, sizeof (LsOperator));
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
    if (g_array_index (operators, LsOperator, i).is_adapter && n < 4)
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
    LS_CHECK_INT (adapter[i]->param_numel[0], ==, want[i].numel);
    LS_CHECK_INT (adapter[i]->tp_bytes, ==, want[i].tp_bytes);
    LS_CHECK_INT (adapter[i]->saved_bytes, ==, want[i].saved);
    LS_CHECK (adapter[i]->param_replicated == want[i].is_whole);
  }
}

static uint64_t
kept (const LsModel *m, uint32_t modules)
{
  g_autoptr (GArray) operators = adapted (m, modules, 1);
  uint64_t bytes = 0;
  for (guint i = 0; i < operators->len; i++)
    bytes += g_array_index (operators, LsOperator, i).saved_bytes;
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

static void
jobs_keep_the_laws (void)
{
  static const char *const modules[] = { "all-linear", "q,k,o", "k,gate", "q", "o,down" };
  for (guint i = 0; i < 60; i++) {
    LsModel m = latent (i % 2 ? 256 : 0);
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.tp = 1u << i % 3;
    s.sp = s.tp > 1 && i / 3 % 2;
    s.pp = i / 6 % 2 ? 2 : 1;
    s.recompute = i / 12 % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.dp_kind = s.tp == 1 && i / 6 % 4 == 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.lora_rank = 8;
    s.lora_modules = g_strdup (modules[i % G_N_ELEMENTS (modules)]);
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

LS_TEST_SUITE (LS_TEST (weights_are_counted), LS_TEST (both_sides_of_a_latent_are_whole),
               LS_TEST (one_input_is_kept_once), LS_TEST (jobs_keep_the_laws))
