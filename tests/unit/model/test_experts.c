/* Pins the operators of a mixture of experts against numbers computed by hand, and what all ranks together compute and hold. */
#include "expert_models.h"

/* DeepSeek-V3, arXiv 2412.19437, section 4.2. */
static LsModel
deepseek (void)
{
  LsModel m = llama (61, 7168, 128, 128, 18432, 129280);
  m.head_dim = 192;
  m.latent.kv_lora = 512;
  m.latent.q_lora = 1536;
  m.latent.rope_dim = 64;
  m.v_dim = 128;
  m.moe.n_experts = 256;
  m.moe.top_k = 8;
  m.moe.expert_ffn = m.moe.shared_ffn = 2048;
  m.moe.n_dense_layers = 3;
  m.moe.every = 1;
  m.seq = 4096;
  return m;
}

/* --- layers ---------------------------------------------------------------------------- */

static void
which_layers_have_experts (void)
{
  LsModel m = deepseek ();
  LS_CHECK (!ls_model_has_experts (&m, 2) && ls_model_has_experts (&m, 3) && ls_model_has_experts (&m, 60));
  LS_CHECK_INT (ls_model_n_moe_layers (&m), ==, 58);
  m.moe.n_dense_layers = 0;
  m.moe.every = 2;
  LS_CHECK (!ls_model_has_experts (&m, 0) && ls_model_has_experts (&m, 1) && !ls_model_has_experts (&m, 60));
  LS_CHECK_INT (ls_model_n_moe_layers (&m), ==, 30);
}

static GArray *
moe_layer (const LsModel *m, const LsShard *s)
{
  GArray *ops = operators_new ();
  ls_operators_layer (m, s, m->moe.n_dense_layers, ops);
  return ops;
}

/* The worked example of operators_moe.c. */
static void
a_layer_by_hand (void)
{
  LsModel m = mixtral ();
  LsShard s = expert_shard (&m, 1, 8, 1);
  g_autoptr (GArray) ops = moe_layer (&m, &s);
  const LsOperator *dispatch = find_operator (ops, "dispatch"), *fc1 = find_operator (ops, "expert-fc1");
  const LsOperator *router = find_operator (ops, "router"), *fc2 = find_operator (ops, "expert-fc2");
  if (!LS_CHECK (dispatch && fc1 && fc2 && router && !find_operator (ops, "fc1")
                 && !find_operator (ops, "shared-fc1")))
    return;
  LS_CHECK (dispatch->ep == LS_EP_DISPATCH && dispatch->n_fwd == 0); /* one expert: nothing to sort */
  LS_CHECK_INT (dispatch->comm.ep_bytes, ==, 67108864);
  LS_CHECK_INT (find_operator (ops, "combine")->comm.ep_bytes, ==, 67108864);
  LS_CHECK (fc1->fwd[0].m == 8192 && fc1->fwd[0].n == 28672 && fc1->fwd[0].k == 4096
            && fc1->fwd[0].batch == 1);
  LS_CHECK_DOUBLE (fc1->fwd[0].flops, ==, 2.0 * 8192 * 28672 * 4096);
  LS_CHECK_DOUBLE (fc1->fwd[0].bytes, ==, 2.0 * (8192.0 * 4096 + 28672.0 * 4096 + 8192.0 * 28672));
  LS_CHECK_DOUBLE (fc2->wgrad[0].flops, ==, 2.0 * 8192 * 14336 * 4096);
  LS_CHECK_DOUBLE (fc2->wgrad[0].bytes, ==, 2.0 * 8192 * (4096 + 14336) + 8.0 * 14336 * 4096);
  LS_CHECK_DOUBLE (router->fwd[0].flops, ==, 2.0 * 4096 * 8 * 4096);
  LS_CHECK (fc1->params.is_expert && fc2->params.is_expert && !router->params.is_expert
            && router->params.is_replicated);
  LS_CHECK_INT (fc1->params.numel[0] + fc2->params.numel[0], ==, 3 * 4096 * 14336);

  uint64_t T = 4096, R = 8192, h = 4096, f = 14336, kept = 0;
  bool is_inside = false;
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *o = &g_array_index (ops, LsOperator, i);
    is_inside = is_inside || o == router;
    kept += is_inside ? o->kept.saved_bytes : 0;
  }
  LS_CHECK_INT (kept, ==, 2 * T * h + 5 * T * 8 + R * (2 * h + 2 * 2 * f + 4 + 2 * f));
}

/* FLOPs of matrix products that carry this prefix, all passes. */
static double
flops_of (const GArray *ops, const char *prefix)
{
  double sum = 0;
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *o = &g_array_index (ops, LsOperator, i);
    if (!g_str_has_prefix (o->name, prefix))
      continue;
    for (guint k = 0; k < o->n_fwd; k++)
      sum += o->fwd[k].flops;
    for (guint k = 0; k < o->n_igrad; k++)
      sum += o->igrad[k].flops;
    for (guint k = 0; k < o->n_wgrad; k++)
      sum += o->wgrad[k].flops;
  }
  return sum;
}

/* Over all ranks: each token meets top_k experts, however they are spread and loaded. */
static void
ranks_compute_what_tokens_ask_for (void)
{
  static const struct {
    uint32_t tp, ep, etp;
    const char *load;
  } cases[] = { { 1, 8, 1, "even" },          { 1, 4, 1, "zipf:1" }, { 2, 4, 2, "zipf:1" },
                { 4, 2, 2, "lognormal:1:3" }, { 2, 8, 1, "5,1" },    { 1, 2, 4, "3,1,1" } };
  LsModel m = mixtral ();
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree double *w = shares (cases[i].load, &m);
    LsShard s = expert_shard (&m, cases[i].tp, cases[i].ep, cases[i].etp);
    double flops = 0, rows = 0, params = 0, tokens = 4096.0 / cases[i].tp * cases[i].ep * cases[i].etp;
    s.experts.share = w;
    for (s.experts.ep_rank = 0; s.experts.ep_rank < s.experts.ep; s.experts.ep_rank++) {
      g_autoptr (GArray) ops = moe_layer (&m, &s);
      flops += s.experts.etp * flops_of (ops, "expert-");
      rows += (double) find_operator (ops, "dispatch")->comm.etp_bytes / (2 * 4096);
      params += s.experts.etp
          * (double) (find_operator (ops, "expert-fc1")->params.numel[0]
                      + find_operator (ops, "expert-fc2")->params.numel[0]);
    }
    LS_CHECK_NEAR (flops, 6 * tokens * 2 * 3 * 4096 * 14336, 1e-12);
    LS_CHECK_DOUBLE (rows, ==, tokens * 2);
    LS_CHECK_DOUBLE (params, ==, 8.0 * 3 * 4096 * 14336);
  }
}

/* Rows of an expert fill tiles by themselves. */
static void
uneven_experts_take_more_tiles (void)
{
  LsModel m = mixtral ();
  LsShard s = expert_shard (&m, 1, 1, 1);
  g_autofree double *w = shares ("3,1", &m);
  m.seq = s.seq = 40; /* 80 assignments over 8 experts: 15 and 5 */
  s.experts.share = w;
  g_autoptr (GArray) ops = moe_layer (&m, &s);
  const LsKernel *k = &find_operator (ops, "expert-fc1")->fwd[0];
  LS_CHECK_INT (k->m, ==, 64);
  LS_CHECK_INT (k->batch, ==, 8);
  LS_CHECK_DOUBLE (k->flops, ==, 2.0 * 80 * 28672 * 4096);
}

/* --- latent attention ------------------------------------------------------------------- */

static uint64_t
params_of (const GArray *ops, uint32_t tp)
{
  uint64_t sum = 0;
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *o = &g_array_index (ops, LsOperator, i);
    for (uint32_t p = 0; p < o->params.n; p++)
      sum += o->params.numel[p] * (o->params.is_replicated || o->params.is_expert ? 1 : tp);
  }
  return sum;
}

static void
layers_hold_the_parameters_of_the_model (void)
{
  LsModel m = deepseek (), qwen = llama (48, 2048, 32, 4, 6144, 151936);
  qwen.head_dim = 128;
  qwen.attn.qk_norm = true;
  qwen.moe.n_experts = 128;
  qwen.moe.top_k = 8;
  qwen.moe.expert_ffn = 768;
  qwen.moe.every = 1;
  const LsModel *models[] = { &m, &qwen };
  for (guint i = 0; i < 2; i++)
    for (uint32_t tp = 1; tp <= 4; tp *= 2) {
      LsShard s = expert_shard (models[i], tp, 1, 1);
      g_autoptr (GArray) dense = layer_operators (models[i], &s);
      g_autoptr (GArray) moe = moe_layer (models[i], &s);
      LS_CHECK_INT (params_of (dense, tp), ==, ls_model_layer_params (models[i], 0));
      LS_CHECK_INT (params_of (moe, tp), ==, ls_model_layer_params (models[i], 3));
    }
}

static void
latent_attention_by_hand (void)
{
  LsModel m = deepseek ();
  LsShard s = expert_shard (&m, 4, 1, 1);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  const LsOperator *attention = find_operator (ops, "attention"), *q_up = find_operator (ops, "q-up"),
                   *kv_up = find_operator (ops, "kv-up");
  const LsOperator *q_down = find_operator (ops, "q-down");
  if (!LS_CHECK (attention && q_up && kv_up && q_down))
    return;
  LS_CHECK_DOUBLE (attention->fwd[0].flops, ==,
                   2.0 * 4096 * 4096 * 32 * (192 + 128) / 2); /* 32 heads, causal */
  LS_CHECK (q_down->tp == LS_TP_NONE && q_down->fwd[0].m == 1024 && q_down->fwd[0].n == 1536
            && q_down->fwd[0].k == 7168);
  LS_CHECK (q_up->tp == LS_TP_COLUMN && q_up->fwd[0].m == 4096 && q_up->fwd[0].n == 32 * 192
            && q_up->fwd[0].k == 1536);
  LS_CHECK_INT (q_up->comm.tp_bytes, ==, 4096 * 1536 * 2);
  LS_CHECK (kv_up->fwd[0].n == 32 * 256 && kv_up->fwd[0].k == 512);
  LS_CHECK_INT (kv_up->comm.tp_bytes, ==, 4096 * (512 + 64) * 2);
}

/* As those of any other matrix product: FSDP adds to no gradient, DeepSpeed casts before it adds. */
static void
experts_make_gradients_as_others_do (void)
{
  LsModel m = mixtral ();
  LsShard fused = expert_shard (&m, 1, 8, 1), fresh = fused, cast = fused;
  fresh.grad.is_fresh = cast.grad.is_cast = true;
  const LsShard *const shards[] = { &fused, &fresh, &cast };
  static const uint32_t n_kernels[] = { 1, 1, 2 };
  double weight = 2.0 * 14336 * 4096, bytes[3];
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (&m, shards[i], 0, operators);
    for (guint o = 0; o < operators->len; o++) {
      const LsOperator *op = &g_array_index (operators, LsOperator, o);
      if (strcmp (op->name, "expert-fc1") != 0)
        continue;
      LS_CHECK_INT (op->n_wgrad, ==, n_kernels[i]);
      bytes[i] = op->wgrad[0].bytes;
      if (i == 2)
        LS_CHECK_NEAR (op->wgrad[1].bytes, weight * (2 + 4 * 4), 1e-12);
    }
  }
  LS_CHECK_NEAR (bytes[0] - bytes[1], weight * (8 - 2), 1e-9); /* fp32 read and written; 16 bits written */
  LS_CHECK_NEAR (bytes[1], bytes[2], 1e-12);
}

/* In fp8 the inputs of a product of experts are cast before it, forward and backward, as of others. */
static void
products_of_experts_are_cast_to_fp8 (void)
{
  static const char *const names[] = { "expert-fc1", "expert-fc2" };
  LsModel m = mixtral ();
  LsShard s = expert_shard (&m, 1, 8, 1);
  g_autoptr (GArray) plain = layer_operators (&m, &s);
  s.dtype = LS_DTYPE_FP8;
  g_autoptr (GArray) fp8 = layer_operators (&m, &s);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const LsOperator *a = find_operator (plain, names[i]), *b = find_operator (fp8, names[i]);
    if (!LS_CHECK (a && b))
      return;
    LS_CHECK_INT (a->n_fwd, ==, 1);
    LS_CHECK_INT (b->n_fwd, >, 1);
    LS_CHECK_INT (b->n_igrad, >, a->n_igrad);
    LS_CHECK_INT (b->fwd[b->n_fwd - 1].dtype, ==, LS_DTYPE_FP8); /* the product, behind what it waits for */
    LS_CHECK_STR (b->fwd[b->n_fwd - 1].name, names[i]);
  }
}

/* Bytes of the kernels of that name, one after the other, and 0s. */
static void
bytes_named (const LsKernel *kernels, uint32_t n, const char *name, double ret_bytes[2])
{
  uint32_t found = 0;
  ret_bytes[0] = ret_bytes[1] = 0;
  for (uint32_t i = 0; i < n; i++)
    if (g_str_equal (kernels[i].name, name) && LS_CHECK (found < 2))
      ret_bytes[found++] = kernels[i].bytes;
}

/* DeepSeek's kernels cast for each product by itself, 2 bytes to 1 and a 128th of 4, and transpose weights for
 * each I; of tokens that came in fp8 the first cast was before they were sent. 4 experts here get 8 x 4,096
 * rows. */
static void
each_layout_is_cast_by_itself (void)
{
  LsModel m = deepseek ();
  LsShard s = expert_shard (&m, 1, 64, 1);
  const double T = 4096, h = 7168, f = 2048, R = 8 * T, layout = 1 + 4.0 / 128, cast = 2 + layout;
  double is[2];
  m.moe.n_dense_layers = 0;
  s.dtype = LS_DTYPE_FP8;
  s.fp8.recipe = LS_FP8_DEEPSEEK;
  s.experts.sends_tokens_once = true;
  for (int is_sent = 0; is_sent < 2; is_sent++) {
    s.experts.dispatch_fp8 = is_sent;
    g_autoptr (GArray) layer = layer_operators (&m, &s);
    const LsOperator *fc1 = find_operator (layer, "expert-fc1"), *fc2 = find_operator (layer, "expert-fc2"),
                     *permute = find_operator (layer, "permute");
    if (!LS_CHECK (fc1 && fc2 && permute))
      return;
    bytes_named (permute->fwd, permute->n_fwd, "fp8-cast", is);
    LS_CHECK_DOUBLE (is[0], ==, is_sent ? T * h * cast : 0);
    bytes_named (fc1->fwd, fc1->n_fwd, "fp8-cast", is);
    LS_CHECK_DOUBLE (is[0], ==, is_sent ? 0 : R * h * cast);
    bytes_named (fc1->igrad, fc1->n_igrad, "fp8-cast", is);
    LS_CHECK_DOUBLE (is[0], ==, R * 2 * f * cast);
    bytes_named (fc1->igrad, fc1->n_igrad, "fp8-transpose", is);
    LS_CHECK_DOUBLE (is[0], ==, 4 * 2 * f * h * 2);
    bytes_named (fc1->wgrad, fc1->n_wgrad, "fp8-column-cast", is);
    LS_CHECK_DOUBLE (is[0], ==, R * h * (is_sent ? 2 * layout : cast));
    LS_CHECK_DOUBLE (is[1], ==, R * 2 * f * cast);
    bytes_named (fc2->fwd, fc2->n_fwd, "fp8-cast", is);
    LS_CHECK_DOUBLE (is[0], ==, R * f * cast);
    bytes_named (fc2->wgrad, fc2->n_wgrad, "fp8-column-cast", is);
    LS_CHECK_DOUBLE (is[0] + is[1], ==, R * (f + h) * cast);
    bytes_named (fc2->fwd, fc2->n_fwd, "fp8-cast-transpose", is);
    LS_CHECK_DOUBLE (is[0], ==, 0);
  }
}

static bool
has_by_blocks (const LsKernel *kernels, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (kernels[i].by_blocks)
      return true;
  return false;
}

/* Only they have scales along their sum on both sides: forward, a weight has blocks of 128 x 128. */
static void
weight_gradients_of_deepseek_are_by_blocks (void)
{
  LsModel m = deepseek ();
  LsShard s = expert_shard (&m, 1, 64, 1);
  m.moe.n_dense_layers = 0;
  s.dtype = LS_DTYPE_FP8;
  for (int recipe = LS_FP8_DELAYED; recipe <= LS_FP8_DEEPSEEK; recipe++) {
    s.fp8.recipe = (LsFp8Recipe) recipe;
    g_autoptr (GArray) layer = layer_operators (&m, &s);
    const LsOperator *ops[] = { find_operator (layer, "expert-fc1"), find_operator (layer, "shared-fc1") };
    for (guint i = 0; i < G_N_ELEMENTS (ops) && LS_CHECK (ops[i] != NULL); i++) {
      LS_CHECK_INT (has_by_blocks (ops[i]->wgrad, ops[i]->n_wgrad), ==, recipe == LS_FP8_DEEPSEEK);
      LS_CHECK (!has_by_blocks (ops[i]->fwd, ops[i]->n_fwd)
                && !has_by_blocks (ops[i]->igrad, ops[i]->n_igrad));
    }
  }
}

/* 256 experts on 64 ranks: the 8 of a token that follow those of the one before are on 2 ranks, those that are
 * drawn on more; R rows are computed either way. */
static void
tokens_in_turn_go_to_fewer_ranks (void)
{
  LsModel m = deepseek ();
  LsShard s = expert_shard (&m, 1, 64, 1);
  g_autofree char *why = NULL;
  const double R = 8 * 4096.0;
  m.moe.n_dense_layers = 0;
  s.experts.sends_tokens_once = true;
  g_autoptr (GArray) drawn = layer_operators (&m, &s);
  s.experts.routes_in_turn = true;
  g_autoptr (GArray) in_turn = layer_operators (&m, &s);
  const LsOperator *a = find_operator (drawn, "dispatch"), *b = find_operator (in_turn, "dispatch");
  LS_CHECK (ls_expert_load_is_even ("round-robin") && ls_expert_shares ("round-robin", &m, &why) == NULL
            && !why);
  if (!LS_CHECK (a && b))
    return;
  LS_CHECK_INT (b->comm.brought_bytes, ==, (uint64_t) (R * 2 / 8 * 7168 * 2));
  LS_CHECK (a->comm.brought_bytes > 3 * b->comm.brought_bytes && a->comm.ep_bytes == b->comm.ep_bytes);
}

/* Experts have biases of their own: behind them the sum has none, behind attention it has. */
static void
biases_of_experts_are_theirs (void)
{
  LsModel m = llama3_70b ();
  m.moe.n_experts = 8, m.moe.top_k = 2, m.moe.expert_ffn = 4096;
  m.linear_bias = true;
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) ops = layer_operators (&m, &s);
  LS_CHECK_STR (find_operator (ops, "attention-add")->fwd[0].name, "bias-add");
  LS_CHECK_STR (find_operator (ops, "mlp-add")->fwd[0].name, "residual-add");
}

LS_TEST_SUITE (LS_TEST (biases_of_experts_are_theirs), LS_TEST (weight_gradients_of_deepseek_are_by_blocks),
               LS_TEST (products_of_experts_are_cast_to_fp8), LS_TEST (each_layout_is_cast_by_itself),
               LS_TEST (which_layers_have_experts), LS_TEST (a_layer_by_hand),
               LS_TEST (ranks_compute_what_tokens_ask_for), LS_TEST (uneven_experts_take_more_tiles),
               LS_TEST (layers_hold_the_parameters_of_the_model), LS_TEST (latent_attention_by_hand),
               LS_TEST (experts_make_gradients_as_others_do), LS_TEST (tokens_in_turn_go_to_fewer_ranks))
