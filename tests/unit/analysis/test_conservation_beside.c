/* Pins: the conservation laws hold with what stands beside the halves of layers (model/beside.c) and with streams
 * that alternate; weights, FLOPs and kept bytes of such layers, by hand; tables of several
 * tokens in a row, gates of norms and latents; and what is refused there. */
#include "layer_laws.h"

/* Six layers, each third sees all: the last three meet keys and values of the first three, and the last two are
 * twice as wide; the first two have sparse MLPs. */
static LsModel
beside (void)
{
  static uint32_t widths[] = { 1024, 1024, 1024, 1024, 2048, 2048 };
  LsModel m = small_model ("beside");
  m.mlp = LS_MLP_GEGLU;
  m.norms = LS_NORMS_BOTH;
  m.attn.qk_norm = true;
  m.tied_embeddings = true;
  m.attn.window = 64;
  m.attn.full_every = 3;
  m.layers.ffn = widths;
  m.layers.n_ffn = 6;
  m.halves.streams = 4;
  m.halves.stream_kind = LS_STREAMS_ALTERNATE;
  m.halves.layer_input = 32;
  m.halves.layer_vocab = 4096;
  m.halves.laurel_rank = 16;
  m.halves.kv_shared_layers = 3;
  m.halves.sparse_layers = 2;
  return m;
}

/* Products of a token, in multiplications: the router of the streams twice. */
static void
weights_and_flops_are_those_of_the_parts (void)
{
  LsModel m = beside ();
  const uint64_t h = 512, query = 2 * h * 512, keys = 2 * h * 256, mlp = 3 * h * 1024;
  const uint64_t added = 2 * h * 16 + 2 * h * 32 + 4 * h, others = 4 * h + 2 * h + 64 + 16 + 2 * h;
  const uint64_t ends = 6 * h * h + h * 6 * 32, tables = 5000 * h + 4096 * 6 * 32;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_HALVES, NULL) && !ls_model_wrong (&m, LS_MODEL_LISTS, NULL));
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, query + keys + mlp + added + others + 128);
  LS_CHECK_INT (ls_model_layer_params (&m, 3), ==, query + mlp + added + others + 64);
  LS_CHECK_INT (ls_model_layer_params (&m, 5), ==, query + 2 * mlp + added + others + 64);
  LS_CHECK_INT (ls_model_params (&m, m.vocab), ==,
                tables + ends + 32 + h + 6 * (query + added + others + 64) + 3 * (keys + 64) + 8 * mlp);
  const uint64_t met = ends + 6 * (query + added + 4 * h) + 3 * keys + 8 * mlp;
  LS_CHECK_INT (ls_model_linear_params (&m, 0), ==, met);
  const double pairs = 4 * (64 - 64.0 * 64 / 512) / 256 + 2 * 0.5; /* of 256 x 256, of six layers */
  LS_CHECK_NEAR (ls_model_flops (&m, 0, 256, 1, true),
                 6 * 256.0 * (double) met + 12 * 256.0 * 256 * 512 * pairs, 1e-12);
  const LsShard shard = whole_shard (&m);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_embedding (&m, &shard, operators);
  ls_operators_head (&m, &shard, false, operators);
  LS_CHECK_INT (weights_of (operators), ==, 5120 * h + 4096 * 6 * 32 + ends + 32 + h);
  LsShard half = shard; /* of the rows */
  half.tp = 2;
  g_autoptr (GArray) cut = ls_operators_new ();
  ls_operators_embedding (&m, &half, cut);
  LS_CHECK_INT (find_operator (cut, "layer-words")->params.numel[0], ==, 2048 * 6 * 32);
}

static uint64_t
kept (const LsModel *m, uint32_t layer)
{
  const LsShard shard = whole_shard (m);
  g_autoptr (GArray) operators = ls_operators_new ();
  uint64_t n = 0;
  ls_operators_layer (m, &shard, layer, operators);
  for (guint i = 0; i < operators->len; i++)
    n += g_array_index (operators, LsOperator, i).kept.saved_bytes;
  return n;
}

/* In numbers of 2 bytes a token: of keys and values 512 and what the norm of keys reads; of a gate its width; of a
 * layer's input what its gate reads and makes, what goes back and what the norm reads; of LAuReL 16 and a norm; of
 * streams three beside the computed one, and twice what a norm and a product read, with what was computed. */
static void
layers_keep_what_the_backward_reads (void)
{
  const uint64_t token = 2 * 256;
  LsModel all = beside (), without = beside ();
  without.halves.kv_shared_layers = 0;
  LS_CHECK_INT (kept (&without, 3) - kept (&all, 3), ==, token * (512 + 256));
  LS_CHECK_INT (kept (&without, 2), ==, kept (&all, 2));
  without = beside (), without.halves.sparse_layers = 1;
  LS_CHECK_INT (kept (&all, 1) - kept (&without, 1), ==, token * 1024);
  without = beside (), without.halves.layer_input = without.halves.layer_vocab = 0;
  LS_CHECK_INT (kept (&all, 0) - kept (&without, 0), ==, token * (512 + 32 + 32 + 512));
  without = beside (), without.halves.laurel_rank = 0;
  LS_CHECK_INT (kept (&all, 0) - kept (&without, 0), ==, token * (16 + 512));
  without = beside (), without.halves.streams = 0, without.halves.stream_kind = LS_STREAMS_MIXED;
  LS_CHECK_INT (kept (&all, 0) - kept (&without, 0), ==, token * 512 * (3 + 2 * 2 + 1));
}

/* What a layer's input is made of ends in no residual: no gradient joins that of its norm. */
static void
norms_of_a_layers_input_add_nothing (void)
{
  LsModel m = beside ();
  const LsShard shard = whole_shard (&m);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *norm = find_operator (operators, "layer-input-norm");
  LS_CHECK (norm && norm->n_igrad == 1);
}

static void
parts_beside_layers_keep_the_laws (void)
{
  for (guint i = 0; i < 48; i++) {
    LsModel m = beside ();
    if (i % 3 == 1) /* as Gemma 4 has them, with other heads in windows */
      m.halves.streams = m.halves.laurel_rank = m.halves.sparse_layers = 0,
      m.halves.stream_kind = LS_STREAMS_MIXED, m.attn.window_head_dim = 32, m.n_kv_heads = 1;
    if (i % 3 == 2)
      m.halves.kv_shared_layers = m.halves.layer_input = m.halves.layer_vocab = 0, m.norms = LS_NORMS_PRE;
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.tp = 1u << i / 3 % 2;
    s.sp = s.tp > 1 && i / 24 > 0;
    s.pp = i % 3 == 2 && i / 12 % 2 ? 2 : 1;
    s.recompute = i / 6 % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
    s.dp_kind = i / 12 % 2 && s.pp == 1 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.use.attention = i / 24 ? LS_ATTENTION_UNFUSED : LS_ATTENTION_FLASH;
    s.global_batch = 8;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

static void
what_is_not_modelled_is_refused (void)
{
  static const char *const said[] = { "inputs of layers, and keys and values that layers share",
                                      "keys and values that layers share in sequences that are cut",
                                      "a model with several residual streams", "a divisor of the 4097 rows" };
  for (guint i = 0; i < G_N_ELEMENTS (said); i++) {
    LsModel m = beside ();
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 8;
    s.pp = i == 0 ? 2 : 1;
    s.cp = i == 1 ? 2 : 1;
    s.lora.rank = i == 2 ? 8 : 0;
    s.tp = i == 3 ? 2 : 1;
    m.halves.layer_vocab = i == 3 ? 4097 : m.halves.layer_vocab;
    says (&m, &s, said[i]);
  }
}

/* Each breaks one rule. */
static void
models_must_agree_with_themselves (void)
{
  LsModel m = beside (), none = beside ();
  none.halves.layer_vocab = 0;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "layer_vocab"));
  none = m, none.halves.streams = 0;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "where they alternate"));
  none = m, none.halves.kv_shared_layers = 4; /* before them no layer that sees all */
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "windowed as they are"));
  none = m, none.halves.kv_shared_layers = 6;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "windowed as they are"));
  none = m, none.halves.sparse_layers = 7;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "sparse_layers"));
  none = m, none.mlp = LS_MLP_GELU;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "has a gate"));
  none = m, none.layers.own = 3;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "own_layers"));
  none = m, none.layers.n_heads = 1;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "lists of heads"));
  none = m, none.halves.sparse_layers = 0, none.norms = LS_NORMS_SHARED;
  LS_CHECK (strstr (ls_model_wrong (&none, LS_MODEL_HALVES, NULL), "both halves"));
}

/* Four tables of 128 columns, of 1000, 1002, 1004 and 1006 rows, each with a product of 128 x 512: 4012 x 128 numbers
 * in tables, of which a token meets 4 x 128, and 512 x 512 in products. A token of 512 numbers is looked up and kept
 * once; the sum reads four products and the word. */
static void
tables_of_several_tokens (void)
{
  LsModel m = small_model ("ngram"), plain = small_model ("plain");
  m.halves.ngram_tables = 4, m.halves.ngram_rows = 1000;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_HALVES, NULL));
  count_weights (&m);
  const uint64_t tables = 4012 * 128, products = 512 * 512;
  LS_CHECK_INT (ls_model_params (&m, m.vocab) - ls_model_params (&plain, m.vocab), ==, tables + products);
  LS_CHECK_INT (ls_model_active_params (&m, m.vocab) - ls_model_active_params (&plain, m.vocab), ==,
                4 * 128 + products);
  LS_CHECK_INT (ls_model_linear_params (&m, 0) - ls_model_linear_params (&plain, 0), ==, products);
  LsShard shard = whole_shard (&m);
  shard.tp = 2;
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_embedding (&m, &shard, operators);
  const LsOperator *words = find_operator (operators, "ngram-words"),
                   *product = find_operator (operators, "ngram-proj"),
                   *sum = find_operator (operators, "ngram-add");
  if (!LS_CHECK (words && product && sum && operators->len == 1 + 1 + 4 + 1))
    return;
  LS_CHECK_INT (words->params.numel[0], ==, 2006 * 128);
  LS_CHECK_DOUBLE (words->fwd[0].bytes, ==, 2 * 256.0 * 512 * 2);
  LS_CHECK_INT (words->comm.tp_bytes, ==, 256 * 512 * 2);
  LS_CHECK_DOUBLE (words->wgrad[0].bytes, ==, 2006.0 * 128 * 2);
  LS_CHECK_DOUBLE (product->fwd[0].flops, ==, 2.0 * 256 * 128 * 512);
  LS_CHECK (product->kept.saved_bytes == 256 * 128 * 2 && product->params.is_replicated);
  LS_CHECK_DOUBLE (sum->fwd[0].bytes, ==, 256.0 * 512 * 2 * (4 + 2));
  for (guint i = 0; i < 12; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.tp = i % 2 + 1;
    s.sp = i % 2 && i / 2 % 2;
    s.pp = i / 4 == 1 ? 2 : 1;
    s.dp_kind = i / 8 ? LS_DP_FSDP2 : LS_DP_AUTO;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.global_batch = 16;
  s.tp = 8;
  says (&m, &s, "4012 rows of tables of several tokens");
  m.halves.ngram_rows = 0;
  LS_CHECK_STR (ls_model_wrong (&m, LS_MODEL_HALVES, NULL), "expected \"ngram_tables\" with \"ngram_rows\"");
  m.halves.ngram_rows = 1000, m.dropout = true;
  LS_CHECK (ls_model_wrong (&m, LS_MODEL_HALVES, NULL) != NULL);
}

/* A.X-K2: latents of 128 for queries, of 64 for keys with 32 rotated; eight heads of 64 + 32 and values of 64. Queries
 * and a gate come of 2 x 128 columns, 8 (96 + 64) wide. Gates of rank 16 stand behind the norms of attention in all six
 * layers, of experts in five. Of 256 tokens, norm-gate-down is 2 x 256 x 512 x 16 FLOPs; kept are the norm's output, what
 * the gate is made of and 16 twice. */
static void
norms_and_latents_have_gates (void)
{
  LsModel m = small_model ("gated"), plain = small_model ("plain");
  m.latent.kv_lora = plain.latent.kv_lora = 64, m.latent.q_lora = plain.latent.q_lora = 128,
  m.latent.rope_dim = plain.latent.rope_dim = 32;
  m.head_dim = plain.head_dim = 96, m.v_dim = plain.v_dim = 64, m.n_kv_heads = plain.n_kv_heads = 8;
  m.moe.n_experts = plain.moe.n_experts = 8, m.moe.top_k = plain.moe.top_k = 2,
  m.moe.expert_ffn = plain.moe.expert_ffn = 256;
  m.moe.n_dense_layers = plain.moe.n_dense_layers = 1, m.moe.every = plain.moe.every = 1;
  m.mlp = plain.mlp = LS_MLP_SWIGLU;
  m.latent.gate = true, m.halves.norm_gate_rank = 16;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_HALVES, NULL));
  count_weights (&m);
  const uint64_t up = 128 * 8 * (96 + 2 * 64), gate = 2 * 512 * 16;
  LS_CHECK_INT (ls_model_layer_params (&m, 0) - ls_model_layer_params (&plain, 0), ==, up + gate);
  LS_CHECK_INT (ls_model_layer_params (&m, 1) - ls_model_layer_params (&plain, 1), ==, up + 2 * gate);
  LsShard shard = whole_shard (&m);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 1, operators);
  const LsOperator *down
      = find_operator (operators, "norm-gate-down"),
      *act = find_operator (operators, "norm-gate-act"), *wide = find_operator (operators, "norm-gate-up"),
      *product = find_operator (operators, "norm-gate"), *query = find_operator (operators, "q-up");
  if (!LS_CHECK (down && act && wide && product && query))
    return;
  LS_CHECK_DOUBLE (down->fwd[0].flops, ==, 2.0 * 256 * 512 * 16);
  LS_CHECK_DOUBLE (query->fwd[0].flops, ==, 2.0 * 256 * 2 * 128 * 8 * (96 + 64));
  LS_CHECK_INT (down->kept.saved_bytes + act->kept.saved_bytes + wide->kept.saved_bytes
                    + product->kept.saved_bytes,
                ==, 256 * 2 * (2 * 512 + 2 * 16));
  LS_CHECK_DOUBLE (product->fwd[0].bytes, ==, 256.0 * 512 * 2 * 3);
  for (guint i = 0; i < 24; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.tp = i % 2 + 1;
    LsModel own = m;
    if (i / 2 % 2) /* else each rank routes its own tokens */
      own.moe.n_experts = own.moe.top_k = own.moe.expert_ffn = own.moe.n_dense_layers = own.moe.every = 0;
    s.sp = i % 2 && own.moe.n_experts > 0;
    s.recompute = i / 4 % 3;
    s.dp_kind = i / 12 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.ep = i / 12 || own.moe.n_experts == 0 ? 1 : 2;
    LS_CHECK (keeps_the_laws (&own, &s));
  }
  m.norms = LS_NORMS_BOTH;
  LS_CHECK (ls_model_wrong (&m, LS_MODEL_HALVES, NULL) != NULL);
  m.norms = LS_NORMS_PRE, m.attn.gate = true;
  LS_CHECK_STR (ls_model_wrong (&m, LS_MODEL_HALVES, NULL),
                "expected \"latent_gate\" with \"kv_lora\" and \"q_lora\", and without \"attention_gate\"");
}

LS_TEST_SUITE (LS_TEST (norms_and_latents_have_gates), LS_TEST (tables_of_several_tokens),
               LS_TEST (weights_and_flops_are_those_of_the_parts),
               LS_TEST (layers_keep_what_the_backward_reads), LS_TEST (norms_of_a_layers_input_add_nothing),
               LS_TEST (parts_beside_layers_keep_the_laws), LS_TEST (what_is_not_modelled_is_refused),
               LS_TEST (models_must_agree_with_themselves))
