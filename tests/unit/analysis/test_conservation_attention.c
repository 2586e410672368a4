/* Pins attention whose queries alone come from a latent (model/operators_mla.c), or by experts (model/
 * operators_moe.c): weights, FLOPs, bytes and what is kept, by hand; layers with an MLP among others with experts;
 * the laws of jobs of them, and what is refused there. */
#include "layer_laws.h"

/* Six layers with a latent of 128 for eight heads of 64, on one of keys and values; the first and the last
 * have an MLP, the others 4 experts. */
static LsModel
factorized (void)
{
  LsModel m = small_model ("factorized");
  m.mlp = LS_MLP_SWIGLU;
  m.n_kv_heads = 1;
  m.latent.q_lora = 128;
  m.layers.pattern = (char *) "DAAAAD";
  m.moe.n_experts = 4, m.moe.top_k = 2, m.moe.every = 1;
  m.moe.expert_ffn = m.moe.shared_ffn = 256;
  return m;
}

/* Down to 128, up to 512, a key and a value of 64, 512 columns out; a norm of 128 beside the two of 512. A
 * token goes through 3 of 5 experts, 256 wide each. */
static void
weights_and_flops_are_counted (void)
{
  LsModel m = factorized ();
  const uint64_t h = 512, attention = h * 128 + 128 * 512 + 2 * h * 64 + 512 * h;
  const uint64_t mlp = 3 * h * 1024, expert = 3 * h * 256, others = 128 + 2 * h;
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, attention + mlp + others);
  LS_CHECK_INT (ls_model_layer_params (&m, 5), ==, attention + mlp + others);
  LS_CHECK_INT (ls_model_layer_params (&m, 1), ==, attention + 5 * expert + 4 * h + others);
  const uint64_t met = 6 * attention + 2 * mlp + 4 * (3 * expert + 4 * h);
  LS_CHECK_INT (ls_model_linear_params (&m, 0), ==, met);
  LS_CHECK_INT (ls_model_n_moe_layers (&m), ==, 4);
  LS_CHECK_NEAR (ls_model_flops (&m, 0, 256, 1, true), 6 * 256.0 * (double) met + 6 * 6 * 256.0 * 256 * 512,
                 1e-12);
}

/* On one of two ranks with sequence parallelism: 128 of 256 tokens go through all of the way down, all of them
 * through half of the way up, of which 128 + 2 x 64 columns are gathered. Kept, in numbers of 2 bytes: what both
 * read, the latent, queries of four heads, a key and a value. */
static void
queries_are_cut_and_latents_whole (void)
{
  LsModel m = factorized ();
  LsShard shard = whole_shard (&m);
  shard.tp = 2, shard.sp = true, shard.attention = LS_ATTENTION_FLASH;
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *down = find_operator (operators, "qkv-down"), *norm = find_operator (operators, "q-norm"),
                   *up = find_operator (operators, "q-up"),
                   *attention = find_operator (operators, "attention");
  if (!LS_CHECK (down && norm && up && attention && !find_operator (operators, "qkv")))
    return;
  LS_CHECK_DOUBLE (down->fwd[0].flops, ==, 2.0 * 128 * 512 * 256);
  LS_CHECK_DOUBLE (up->fwd[0].flops, ==, 2.0 * 256 * 128 * 256);
  LS_CHECK_DOUBLE (up->wgrad[0].flops, ==, 2.0 * 256 * 128 * 256);
  LS_CHECK_DOUBLE (attention->fwd[0].flops, ==, 4.0 * 256 * 256 * 0.5 * 4 * 64);
  LS_CHECK_DOUBLE (attention->fwd[0].bytes, ==, 2 * 2 * 256.0 * (4 * 64 + 64) + 4 * 256 * 4);
  LS_CHECK_DOUBLE (down->igrad[0].bytes, ==, 2 * 2 * 128.0 * 256);
  LS_CHECK_DOUBLE (norm->fwd[0].bytes, ==, 2 * 2 * 128.0 * 128);
  LS_CHECK (down->tp == LS_TP_NONE && down->params.is_replicated && up->tp == LS_TP_COLUMN);
  LS_CHECK_INT (up->comm.tp_bytes, ==, 2 * 256 * (128 + 2 * 64));
  LS_CHECK_INT (down->kept.saved_bytes, ==, 2 * 128 * 512);
  LS_CHECK_INT (norm->kept.saved_bytes, ==, 2 * 128 * 128);
  LS_CHECK_INT (up->kept.saved_bytes, ==, 2 * (128 * 128 + 256 * (4 * 64 + 2 * 64)));
}

/* Of 48 ways to cut a job: over tp, sp, ep, pp and cp, with each recomputation, FSDP and unfused attention. */
static bool
keeps_the_laws_cut (const LsModel *m, guint i)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.global_batch = 16;
  s.tp = 1u << i / 4 % 2;
  s.sp = s.tp > 1 && (m->moe.n_experts > 0 || i / 24 > 0);
  s.ep = m->moe.n_experts > 0 && i / 8 % 2 ? 2 : 1;
  s.experts.etp = m->moe.n_experts > 0 ? 1 : 0;
  s.recompute = i / 8 % 3;
  s.pp = i / 16 % 3 == 1 ? 2 : 1;
  s.cp = i / 16 % 3 == 2 ? 2 : 1;
  s.dp_kind = i / 16 % 3 == 0 && s.ep == 1 ? LS_DP_FSDP2 : LS_DP_AUTO;
  s.use.attention = i % 4 == 0 && s.cp == 1 ? LS_ATTENTION_UNFUSED : LS_ATTENTION_FLASH;
  return keeps_the_laws (m, &s);
}

static void
jobs_keep_the_laws (void)
{
  for (guint i = 0; i < 48; i++) {
    LsModel m = factorized ();
    m.n_kv_heads = i % 4 == 3 ? 4 : 1;
    if (i % 4 == 2)
      m.moe.n_experts = m.moe.top_k = m.moe.every = m.moe.expert_ffn = m.moe.shared_ffn = 0;
    LS_CHECK (keeps_the_laws_cut (&m, i));
  }
}

static void
what_is_not_modelled_is_refused (void)
{
  static const char *const said[]
      = { "adapters of a model with latents of queries alone",
          "without latent attention or experts of attention; got split", "with experts or latent" };
  for (guint i = 0; i < G_N_ELEMENTS (said); i++) {
    LsModel m = factorized ();
    m.moe.n_experts = m.moe.top_k = m.moe.every = m.moe.expert_ffn = m.moe.shared_ffn = 0;
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 8;
    s.lora.rank = i == 0 ? 8 : 0;
    s.use.qkv_layout = i == 1 ? LS_QKV_SPLIT : LS_QKV_JOINT;
    s.recompute = i == 2 ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
    s.memory.recompute_parts = i == 2 ? LS_RECOMPUTE_DOTS : 0;
    says (&m, &s, said[i]);
  }
}

/* --- experts of attention ----------------------------------------------------------------- */

/* Of four experts of attention a token is sent to two, with four of its eight heads each. */
static LsModel
mixed_heads (void)
{
  LsModel m = small_model ("mixed-heads");
  m.mlp = LS_MLP_SWIGLU;
  m.moe.attention_experts = 4, m.moe.attention_top_k = 2;
  m.moe.n_experts = 4, m.moe.top_k = 2, m.moe.every = 1;
  m.moe.expert_ffn = 256;
  return m;
}

/* Each expert has 512 x 256 for queries and as many back; keys and values 512 x 256 each. */
static void
experts_of_attention_are_counted (void)
{
  LsModel m = mixed_heads ();
  const uint64_t h = 512, expert = 2 * h * 256, keys = 2 * h * 256, router = 4 * h, mlp = 3 * h * 256;
  LS_CHECK (!ls_model_wrong (&m, LS_MODEL_LAYERS, NULL));
  count_weights (&m);
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, 4 * expert + keys + router + 4 * mlp + router + 2 * h);
  const uint64_t met = 2 * expert + keys + router + 2 * mlp + router;
  LS_CHECK_INT (ls_model_layer_linear_params (&m, 0), ==, met);
  LS_CHECK_INT (ls_model_active_params (&m, 0), ==, 6 * (met + 2 * h) + h);
  LS_CHECK_NEAR (ls_model_flops (&m, 0, 256, 1, true),
                 6 * 256.0 * 6 * (double) met + 6 * 6 * 256.0 * 256 * 512, 1e-12);
}

/* On one of two ranks with sequence parallelism: all 256 tokens make 512 rows, 128 an expert, each of 512 x 128
 * for two heads; the router has 128 tokens. In numbers of 2 bytes rows of 512 are moved by token and by expert,
 * rows of 128 twice; kept are rows by expert, queries, contexts in both orders and what experts gave. */
static void
experts_of_attention_are_cut_by_heads (void)
{
  LsModel m = mixed_heads ();
  LsShard shard = whole_shard (&m);
  shard.tp = 2, shard.sp = true, shard.attention = LS_ATTENTION_FLASH;
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *kv = find_operator (operators, "attention-kv"),
                   *router = find_operator (operators, "attention-router"),
                   *group = find_operator (operators, "attention-group"),
                   *query = find_operator (operators, "query-experts"),
                   *back = find_operator (operators, "query-ungroup"),
                   *context = find_operator (operators, "context-group"),
                   *output = find_operator (operators, "output-experts"),
                   *sum = find_operator (operators, "attention-sum");
  if (!LS_CHECK (kv && router && group && query && back && context && output && sum))
    return;
  LS_CHECK_DOUBLE (kv->fwd[0].flops, ==, 2.0 * 256 * 512 * 256);
  LS_CHECK_DOUBLE (router->fwd[0].flops, ==, 2.0 * 128 * 512 * 4);
  LS_CHECK_DOUBLE (query->fwd[0].flops, ==, 2.0 * 512 * 512 * 128);
  LS_CHECK_DOUBLE (query->wgrad[0].flops, ==, 2.0 * 512 * 512 * 128);
  LS_CHECK_DOUBLE (output->igrad[0].flops, ==, 2.0 * 512 * 512 * 128);
  LS_CHECK_DOUBLE (query->fwd[0].bytes, ==, 2 * (512.0 * 512 + 4 * 512 * 128 + 512 * 128));
  LS_CHECK (query->fwd[0].m == 128 && query->fwd[0].n == 128 && query->fwd[0].batch == 4);
  LS_CHECK_DOUBLE (group->fwd[0].bytes, ==, 2 * (256.0 + 512) * 512);
  LS_CHECK_DOUBLE (back->fwd[0].bytes, ==, 2 * 2.0 * 512 * 128);
  LS_CHECK_DOUBLE (sum->fwd[0].bytes, ==, 2 * (256.0 + 512) * 512);
  LS_CHECK_DOUBLE (sum->igrad[0].bytes, ==, 2 * (256.0 + 2 * 512) * 512);
  LS_CHECK (!query->params.is_expert && query->params.numel[0] == 4 * 512 * 128 && sum->tp == LS_TP_ROW);
  LS_CHECK_INT (kv->kept.saved_bytes, ==, 2 * (128 * 512 + 256 * 256));
  LS_CHECK_INT (router->kept.saved_bytes, ==, 128 * 4 * 5);
  LS_CHECK_INT (group->kept.saved_bytes, ==, 0);
  LS_CHECK_INT (query->kept.saved_bytes, ==, 2 * 512 * 512);
  LS_CHECK_INT (back->kept.saved_bytes, ==, 2 * 256 * 256);
  LS_CHECK_INT (context->kept.saved_bytes, ==, 2 * 256 * 256);
  LS_CHECK_INT (output->kept.saved_bytes, ==, 2 * 512 * 128);
  LS_CHECK_INT (sum->kept.saved_bytes, ==, 2 * 512 * 512);
}

static void
jobs_with_experts_of_attention_keep_the_laws (void)
{
  for (guint i = 0; i < 48; i++) {
    LsModel m = mixed_heads ();
    if (i % 4 == 2)
      m.moe.n_experts = m.moe.top_k = m.moe.every = m.moe.expert_ffn = 0;
    m.n_kv_heads = i % 4 == 3 ? 1 : 4;
    LS_CHECK (keeps_the_laws_cut (&m, i));
  }
}

static void
experts_of_attention_have_rules (void)
{
  LsModel m = mixed_heads (), wrong = m;
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.global_batch = 8;
  s.tp = 8, s.sp = true, s.experts.etp = 1;
  says (&m, &s, "a divisor of the 4 heads of an expert of attention");
  ls_strategy_init (&s);
  s.gpus = s.global_batch = 8;
  s.lora.rank = 8;
  says (&m, &s, "with experts of attention");
  wrong.moe.attention_top_k = 0;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "attention_top_k"));
  wrong = m, wrong.moe.attention_top_k = 5;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "attention_top_k"));
  wrong = m, wrong.moe.attention_top_k = 4; /* two heads each, on four of keys */
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "divide"));
  wrong = m, wrong.attn.qk_norm = true;
  LS_CHECK (strstr (ls_model_wrong (&wrong, LS_MODEL_LAYERS, NULL), "norms of queries"));
}

/* Kernels that keep documents apart have no mask: what it says of windows does not matter. */
static void
windows_in_documents_are_no_masks (void)
{
  static const char *const lengths[] = { "fixed:32", "fixed:100", "uniform:1:300" };
  for (guint i = 0; i < 12; i++) {
    LsModel m = small_model ("windowed");
    m.attn.window = 64;
    m.attn.full_every = i % 2 ? 3 : 0;
    for (guint masked = 0; masked < 2; masked++) {
      LsStrategy s;
      ls_strategy_init (&s);
      s.gpus = s.global_batch = 8;
      g_autofree char *why = NULL;
      s.use.window_mask = masked;
      s.pp = i / 6 + 1;
      s.docs.lengths = g_strdup (lengths[i % 3]);
      s.docs.drawn = ls_lengths_parse (s.docs.lengths, &why);
      LS_CHECK (keeps_the_laws (&m, &s));
    }
  }
}

LS_TEST_SUITE (LS_TEST (windows_in_documents_are_no_masks), LS_TEST (experts_of_attention_are_counted),
               LS_TEST (experts_of_attention_are_cut_by_heads),
               LS_TEST (jobs_with_experts_of_attention_keep_the_laws),
               LS_TEST (experts_of_attention_have_rules), LS_TEST (weights_and_flops_are_counted),
               LS_TEST (queries_are_cut_and_latents_whole), LS_TEST (jobs_keep_the_laws),
               LS_TEST (what_is_not_modelled_is_refused))
