/* Pins blocks of attention and an MLP whose weights layers share (model/block.c): weights, FLOPs, bytes and what is
 * kept, by hand; the laws of jobs of them, and what is refused there. */
#include "layer_laws.h"

/* Six layers with Mamba-2, of which the last three have two blocks in turn before it: the first, the second, and
 * the first again. Adapters of rank 16 beside the MLP, of 8 beside attention. */
static LsModel
shared (void)
{
  LsModel m = small_model ("shared");
  m.mlp = LS_MLP_GEGLU;
  m.n_kv_heads = 8;
  m.head_dim = 128; /* 2 x 512 / 8 */
  m.layers.pattern = (char *) "mmmBBB";
  m.mixer.kind = LS_MIXER_MAMBA2;
  m.mixer.heads = 16, m.mixer.head_dim = 64;
  m.mixer.groups = 2, m.mixer.state = 32;
  m.mixer.conv = 4, m.mixer.chunk = 64;
  m.layers.shared_blocks = 2;
  m.layers.block_mlp_rank = 16, m.layers.block_attention_rank = 8;
  m.tied_embeddings = true;
  return m;
}

/* A set: three products of 1024 x 1024, one of 1024 x 512, an MLP of 3 x 512 x 1024, norms of 1024 and 512. A place:
 * 512 x 512, adapters of 16 (512 + 2048) and 8 x 3 (1024 + 1024). */
static void
weights_are_counted_once_and_flops_each_time (void)
{
  LsModel m = shared ();
  const uint64_t h = 512, set = 3 * 1024 * 1024 + 1024 * h + 3 * h * 1024, norms = 1024 + h,
                 place = h * h + 16 * (h + 2048) + 8 * 3 * 2048;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_LAYERS, NULL));
  const uint64_t mixer = ls_model_layer_params (&m, 0), met = ls_model_layer_linear_params (&m, 0);
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 3), ==, mixer + set + norms + place);
  LS_CHECK_INT (ls_model_layer_params (&m, 4), ==, mixer + set + norms + place);
  LS_CHECK_INT (ls_model_layer_params (&m, 5), ==, mixer + place);
  LS_CHECK_INT (ls_model_params (&m, m.vocab), ==, 5000 * h + h + 6 * mixer + 2 * (set + norms) + 3 * place);
  LS_CHECK_INT (ls_model_linear_params (&m, 0), ==, 6 * met + 3 * (set + place));
  const double products = 6 * 3 * 4 * 2 * (2 * 64.0 * 64 * 32 + 16 * (64.0 * 64 * 64 + 2 * 64.0 * 32 * 64));
  LS_CHECK_NEAR (ls_model_flops (&m, 0, 256, 1, true),
                 6 * 256.0 * (double) (6 * met + 3 * (set + place)) + products + 3 * 6 * 256.0 * 256 * 1024,
                 1e-12);
  LS_CHECK_INT (ls_model_n_attention_layers (&m), ==, 3);
}

/* On one of two ranks with sequence parallelism, of 128 tokens of its own: x and e are read and written as one;
 * queries, keys and values of 512 columns each are made of the 1024 that tp gathers for all 256 tokens. In numbers of
 * 2 bytes: kept are what the norm reads and what it gives, Q, K and V, and what adapters are narrowed to. */
static void
blocks_are_cut_as_layers_are (void)
{
  LsModel m = shared ();
  LsShard shard = whole_shard (&m);
  shard.tp = 2, shard.sp = true, shard.attention = LS_ATTENTION_FLASH;
  for (uint32_t layer = 3; layer < 6; layer += 2) {
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (&m, &shard, layer, operators);
    const LsOperator *concat
        = find_operator (operators, "embedding-concat"),
        *norm = find_operator (operators, "block-norm"), *qkv = find_operator (operators, "qkv"),
        *down = find_operator (operators, "adapter-down"), *up = find_operator (operators, "adapter-up"),
        *attention = find_operator (operators, "attention"), *proj = find_operator (operators, "proj"),
        *fc1 = find_operator (operators, "fc1"), *out = find_operator (operators, "block-out"),
        *mixer = find_operator (operators, "mixer-in");
    if (!LS_CHECK (concat && norm && qkv && down && up && attention && proj && fc1 && out && mixer))
      return;
    LS_CHECK_DOUBLE (concat->fwd[0].bytes, ==, 2 * 4.0 * 128 * 512);
    LS_CHECK_DOUBLE (concat->igrad[0].bytes, ==, 2 * 6.0 * 128 * 512);
    LS_CHECK_INT (norm->kept.saved_bytes, ==, 2 * 128 * 1024);
    LS_CHECK_DOUBLE (qkv->fwd[0].flops, ==, 2.0 * 256 * 1024 * 3 * 512);
    LS_CHECK_INT (qkv->comm.tp_bytes, ==, 2 * 256 * 1024);
    LS_CHECK_INT (qkv->kept.saved_bytes, ==, 2 * (128 * 1024 + 256 * 3 * 512));
    LS_CHECK_DOUBLE (down->fwd[2].flops, ==, 2.0 * 128 * 1024 * 8);
    LS_CHECK_INT (down->kept.saved_bytes, ==, 0);
    LS_CHECK_DOUBLE (up->fwd[0].flops, ==, 2.0 * 256 * 8 * 512);
    LS_CHECK_INT (up->kept.saved_bytes, ==, 2 * 3 * 128 * 8);
    LS_CHECK_INT (up->comm.tp_bytes, ==, 2 * 256 * 3 * 8);
    LS_CHECK_DOUBLE (attention->fwd[0].flops, ==, 4.0 * 256 * 256 * 0.5 * 512);
    LS_CHECK_DOUBLE (proj->fwd[0].flops, ==, 2.0 * 256 * 512 * 512);
    LS_CHECK_DOUBLE (fc1->fwd[0].flops, ==, 2.0 * 256 * 512 * 1024);
    LS_CHECK_DOUBLE (out->fwd[0].flops, ==, 2.0 * 128 * 512 * 512);
    LS_CHECK (out->params.is_replicated && down->params.n == 3 && up->params.n == 3 && out->params.n == 1);
    const uint32_t own = layer == 3; /* layer 5 has the weights of layer 3 */
    LS_CHECK (norm->params.n == own && qkv->params.n == own && proj->params.n == own && fc1->params.n == own);
    LS_CHECK (qkv->n_wgrad > 0 && fc1->n_wgrad > 0 && mixer->params.n == 1);
    LS_CHECK (fc1->part == LS_MLP_PART_DENSE && out->part != LS_MLP_PART_DENSE);
  }
}

static void
jobs_keep_the_laws (void)
{
  for (guint i = 0; i < 36; i++) {
    LsModel m = shared ();
    if (i % 3 == 1)
      m.layers.block_attention_rank = 0, m.mixer.kind = LS_MIXER_MAMBA1, m.mixer.rank = 32,
      m.mixer.groups = 16;
    if (i % 3 == 2)
      m.layers.block_mlp_rank = m.layers.block_attention_rank = 0, m.layers.shared_blocks = 1,
      m.n_kv_heads = 1;
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.tp = 1u << i / 3 % 2;
    s.sp = s.tp > 1 && i / 18 > 0;
    s.recompute = i / 6 % 3;
    s.cp = i % 3 == 0 && i / 18 ? 2 : 1;
    s.use.attention = i / 18 ? LS_ATTENTION_FLASH : LS_ATTENTION_UNFUSED;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

static void
what_is_not_modelled_is_refused (void)
{
  static const char *const said[] = { "weights of others on another stage", "gathered for each of the layers",
                                      "are not modelled; expected 0" };
  for (guint i = 0; i < G_N_ELEMENTS (said); i++) {
    LsModel m = shared ();
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = s.global_batch = 8;
    s.pp = i == 0 ? 2 : 1;
    s.dp_kind = i == 1 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.lora.rank = i == 2 ? 8 : 0;
    says (&m, &s, said[i]);
  }
  LsModel m = shared (), wrong = m;
  wrong.layers.shared_blocks = 0;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "with layers B"));
  wrong = m, wrong.layers.pattern = (char *) "m";
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "with layers B"));
  wrong = m, wrong.norms = LS_NORMS_POST;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "norms before each half"));
  wrong = m, wrong.layers.own = 3;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "come again"));
}

LS_TEST_SUITE (LS_TEST (weights_are_counted_once_and_flops_each_time), LS_TEST (blocks_are_cut_as_layers_are),
               LS_TEST (jobs_keep_the_laws), LS_TEST (what_is_not_modelled_is_refused))
