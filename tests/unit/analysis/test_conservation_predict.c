/* Pins blocks of multi-token prediction (model/layers.c): their layers, weights, FLOPs and what is kept, by
 * hand, with weights of their own and shared ones; the laws of jobs of them; that selective recomputation runs
 * in them, too; what is refused there. */
#include "layer_laws.h"

/* Six layers of one half each, as Nemotron 3 has them, and two blocks of attention and experts. */
static LsModel
hybrid (bool is_shared)
{
  LsModel m = small_model ("hybrid");
  m.mlp = LS_MLP_RELU2;
  m.position = LS_POSITION_NONE;
  m.layers.pattern = (char *) "memeae";
  m.mixer.kind = LS_MIXER_MAMBA2;
  m.mixer.heads = 16, m.mixer.head_dim = 64;
  m.mixer.groups = 2, m.mixer.state = 32;
  m.mixer.conv = 4, m.mixer.chunk = 64;
  m.moe.n_experts = 8, m.moe.top_k = 2, m.moe.expert_ffn = 256, m.moe.shared_ffn = 128, m.moe.every = 1;
  m.predict.layers = 2;
  m.predict.pattern = (char *) "ae";
  m.predict.shared = is_shared;
  return m;
}

/* A block: queries, keys and values of 8 + 2 * 4 heads of 64, the way out, a router of 8, experts of 2 * 512 * 256,
 * a shared one of 2 * 512 * 128, a projection of 1024 x 512, and norms: of both inputs, of the halves, of the
 * head. */
#define H      512ull
#define MIXING (H * 1024 + H * 512)
#define ROUTED (2 * H * 256)
#define OTHERS (H * 8 + 2 * H * 128 + 2 * H * H)
#define BLOCK  (MIXING + 8 * ROUTED + OTHERS + 5 * H)
#define MET    (MIXING + 2 * ROUTED + OTHERS)

static void
weights_are_counted_once_and_flops_each_time (void)
{
  for (guint shared = 0; shared < 2; shared++) {
    LsModel m = hybrid (shared), none = m;
    none.predict.layers = 0, none.predict.pattern = NULL, none.predict.shared = false;
    LS_CHECK (!ls_model_wrong (&m, LS_MODEL_PARTS, NULL));
    LS_CHECK_INT (ls_model_n_all_layers (&m), ==, 10);
    uint64_t n = ls_model_params (&none, 5000), blocks = shared ? 1 : 2;
    LS_CHECK_INT (ls_model_params (&m, 5000) - n, ==, blocks * BLOCK);
    LS_CHECK_INT (ls_model_active_params (&m, 5000) - ls_model_active_params (&none, 5000), ==,
                  blocks * (MET + 5 * H));
    LS_CHECK_INT (ls_model_linear_params (&m, 5000) - ls_model_linear_params (&none, 5000), ==,
                  2 * (MET + 5000 * H));
    LS_CHECK_NEAR (ls_model_flops (&m, 5000, 256, 1, true) - ls_model_flops (&none, 5000, 256, 1, true),
                   2 * (6 * 256.0 * (MET + 5000 * H) + 6 * 256.0 * 256 * 512), 1e-12);
  }
}

/* The kind of a layer is its letter's; of the second block with the weights of the first. */
static void
layers_of_blocks_have_kinds (void)
{
  LsModel m = hybrid (true);
  for (uint32_t i = 0; i < 4; i++)
    LS_CHECK_INT (ls_model_layer_kind (&m, 6 + i), ==,
                  ls_model_layer_kind (&m, 4 + i % 2) + (i < 2 ? 0 : LS_LAYER_AGAIN));
  m.predict.shared = false;
  LS_CHECK_INT (ls_model_layer_kind (&m, 9), ==, ls_model_layer_kind (&m, 5));
  m.predict.pattern = (char *) "D";
  LS_CHECK_INT (ls_model_layer_kind (&m, 6), ==, 0);
  m.predict.pattern = (char *) "A";
  LS_CHECK_INT (ls_model_layer_kind (&m, 7), ==, LS_LAYER_EXPERTS);
  m.predict.pattern = NULL; /* as the last layer: experts alone */
  LS_CHECK_INT (ls_model_layer_kind (&m, 7), ==, ls_model_layer_kind (&m, 5));
  LsModel plain = small_model ("plain");
  plain.attn.window = 64, plain.attn.full_every = 2; /* the last layer sees all */
  plain.predict.layers = 1;
  LS_CHECK_INT (ls_model_layer_kind (&plain, 6), ==, 0);
  plain.predict.windowed = true;
  LS_CHECK_INT (ls_model_layer_kind (&plain, 6), ==, LS_LAYER_WINDOWED);
  plain.predict.pattern = (char *) "A";
  LS_CHECK_INT (ls_model_layer_kind (&plain, 6), ==, LS_LAYER_WINDOWED);
}

static guint
n_named (const GArray *operators, const char *name)
{
  guint n = 0;
  for (guint i = 0; i < operators->len; i++)
    n += strcmp (g_array_index (operators, LsOperator, i).name, name) == 0;
  return n;
}

/* The head has the table, its norm and the blocks: once, where they are shared, though they run twice. */
static void
operators_hold_the_weights (void)
{
  for (guint shared = 0; shared < 2; shared++) {
    LsModel m = hybrid (shared);
    const LsShard shard = whole_shard (&m);
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_head (&m, &shard, true, operators);
    LS_CHECK_INT (weights_of (operators), ==, 5120 * H + H + (shared ? 1 : 2) * BLOCK);
    LS_CHECK_INT (n_named (operators, "predict-proj"), ==, 2);
    LS_CHECK_INT (n_named (operators, "qkv"), ==, 2);
    LS_CHECK_INT (n_named (operators, "expert-fc1"), ==, 2);
    LS_CHECK_INT (n_named (operators, "logits"), ==, 3);
  }
}

/* Whoever has the head; bytes of a kind. */
static uint64_t
bytes_of (const LsModel *m, uint32_t recompute, uint32_t parts, LsMemCategory category)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 1, s.global_batch = 2;
  s.recompute = recompute;
  s.memory.recompute_parts = parts;
  LS_CHECK (ls_strategy_resolve (&s, m, 8, 8, diags));
  LsPlan *plan = ls_lower (m, &s, NULL, NULL);
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = plan });
  uint64_t bytes = memory->classes[0].category_peak[category];
  ls_plan_free (plan);
  ls_strategy_clear (&s);
  return bytes;
}

static void
states_are_there_once_and_activations_for_each_pass (void)
{
  LsModel shared = hybrid (true), own = hybrid (false), one = hybrid (true);
  one.predict.layers = 1;
  LS_CHECK_INT (bytes_of (&own, 0, 0, LS_MEM_PARAMETERS) - bytes_of (&shared, 0, 0, LS_MEM_PARAMETERS), ==,
                2 * BLOCK);
  LS_CHECK_INT (bytes_of (&own, 0, 0, LS_MEM_GRADIENTS) - bytes_of (&shared, 0, 0, LS_MEM_GRADIENTS), ==,
                2 * BLOCK);
  LS_CHECK_INT (bytes_of (&own, 0, 0, LS_MEM_OPTIMIZER) - bytes_of (&shared, 0, 0, LS_MEM_OPTIMIZER), ==,
                12 * BLOCK);
  LS_CHECK_INT (bytes_of (&shared, 0, 0, LS_MEM_PARAMETERS), ==, bytes_of (&one, 0, 0, LS_MEM_PARAMETERS));
  LS_CHECK_INT (bytes_of (&shared, 0, 0, LS_MEM_ACTIVATIONS), ==, bytes_of (&own, 0, 0, LS_MEM_ACTIVATIONS));
  LS_CHECK_INT (bytes_of (&shared, 0, 0, LS_MEM_ACTIVATIONS), >, bytes_of (&one, 0, 0, LS_MEM_ACTIVATIONS));
}

/* FLOPs that run again of the experts of four layers and of two blocks: of each the router, the shared ones and
 * those that tokens are sent to. */
static void
parts_of_blocks_run_again (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  double flops[2];
  for (guint n = 0; n < 2; n++) {
    LsModel m = hybrid (true);
    m.predict.layers = 1 + n;
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 1, s.global_batch = 2;
    s.recompute = LS_RECOMPUTE_SELECTIVE, s.memory.recompute_parts = LS_RECOMPUTE_MOE | LS_RECOMPUTE_NORM;
    LS_CHECK (ls_strategy_resolve (&s, &m, 8, 8, diags));
    LsPlan *plan = ls_lower (&m, &s, NULL, NULL);
    flops[n] = ls_plan_model_flops (plan, true, false);
    ls_plan_free (plan);
    ls_strategy_clear (&s);
  }
  LS_CHECK_NEAR (flops[1] - flops[0], 2 * 2 * 256.0 * (H * 8 + 2 * H * 128 + 2 * ROUTED), 1e-12);
  LsModel m = hybrid (true), without = m;
  without.predict.layers = 0, without.predict.pattern = NULL, without.predict.shared = false;
  uint64_t all = bytes_of (&m, 0, 0, LS_MEM_ACTIVATIONS),
           none = bytes_of (&without, 0, 0, LS_MEM_ACTIVATIONS),
           some = bytes_of (&m, LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_MOE, LS_MEM_ACTIVATIONS),
           rest = bytes_of (&without, LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_MOE, LS_MEM_ACTIVATIONS);
  LS_CHECK_INT (all - none, >, some - rest);
}

static void
jobs_keep_the_laws (void)
{
  static const char *const patterns[] = { "ae", "A", "amed", "D" };
  static const uint32_t parts[]
      = { LS_RECOMPUTE_CORE, LS_RECOMPUTE_MOE | LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION };
  for (guint i = 0; i < 96; i++) {
    LsModel m = hybrid (i % 2);
    m.predict.pattern = (char *) patterns[i / 2 % 4];
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.tp = 1u << i / 8 % 2;
    s.sp = s.tp > 1;
    s.pp = i / 16 % 2 ? 2 : 1;
    s.ep = i / 16 % 3 == 0 ? 2 : 1;
    s.recompute = i / 4 % 3;
    if (s.recompute == LS_RECOMPUTE_SELECTIVE)
      s.memory.recompute_parts = parts[i % 2];
    s.schedule = s.pp > 1 && i / 48 ? g_strdup ("zb-h1") : NULL;
    s.dp_kind = i / 32 == 1 && s.ep == 1 && s.pp == 1 ? LS_DP_FSDP2 : LS_DP_AUTO;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

static void
what_is_wrong_is_said (void)
{
  LsModel dense = small_model ("dense");
  dense.predict.layers = 2, dense.predict.shared = true;
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.global_batch = 8;
  s.dp_kind = LS_DP_DEEPSPEED, s.zero_stage = 3;
  says (&dense, &s, "gathered for each of them");
  LsModel m = hybrid (true), wrong = m;
  wrong.predict.layers = 0;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_PARTS, NULL), "missing key \"predict_layers\""));
  wrong = m, wrong.predict.pattern = (char *) "aB";
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_PARTS, NULL), "letters of"));
  wrong = m, wrong.predict.pattern = (char *) "S";
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_PARTS, NULL), "layers S and H"));
  wrong = m, wrong.moe.n_experts = 0;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_PARTS, NULL), "missing key \"experts\""));
  wrong = m, wrong.predict.pattern = (char *) "m", wrong.mixer.kind = LS_MIXER_NONE;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_PARTS, NULL), "missing key \"mixer\""));
  wrong = m, wrong.predict.windowed = true;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_PARTS, NULL), "missing key \"window\""));
  wrong = m, wrong.norms = LS_NORMS_SHARED;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_PARTS, NULL), "share a norm"));
}

LS_TEST_SUITE (LS_TEST (weights_are_counted_once_and_flops_each_time), LS_TEST (layers_of_blocks_have_kinds),
               LS_TEST (operators_hold_the_weights),
               LS_TEST (states_are_there_once_and_activations_for_each_pass),
               LS_TEST (parts_of_blocks_run_again), LS_TEST (jobs_keep_the_laws),
               LS_TEST (what_is_wrong_is_said))
