/* Pins what a list of kernels says of operators that more than replaces their kernels. Norms: their kernels depend on how
 * wide a row is, and of an operator's own kernels a list says how they touch memory, and nothing else; those of heads of Q
 * and K and of latents have their own rows and widths, and latent attention its rotation. Adapters: a list stands around the
 * product of each module by itself, as wide as what that reads or writes, and may give each a tensor of its own to keep. */
#include "recipe_layers.h"

/* --- norms by width ------------------------------------------------------------------------------ */

static LsRecipeKernel
own (LsAccess access)
{
  return (LsRecipeKernel) { .is_core = true, .access = access };
}

/* Rows of 512 and of 64, and others, of RMSNorm. */
static LsRecipes *
by_width (void)
{
  static const uint32_t hidden = 512, head = 64;
  LsRecipe tuned = { .operator_ = LS_RECIPE_NORM,
                     .widths = g_memdup2 (&hidden, sizeof hidden),
                     .n_widths = 1,
                     .forward = LIST (own (LS_ACCESS_TE_NORM)),
                     .backward = LIST (own (LS_ACCESS_TE_NORM_GRAD)) },
           narrow
      = { .operator_ = LS_RECIPE_NORM,
          .widths = g_memdup2 (&head, sizeof head),
          .n_widths = 1,
          .forward = LIST (own (LS_ACCESS_TE_NORM)),
          .backward = LIST (own (LS_ACCESS_TE_NORM_GRAD), kernel ("sum", LS_ACCESS_TE_NORM_SUM, "h", 4, 2)) },
           any = { .operator_ = LS_RECIPE_NORM,
                   .forward = LIST (own (LS_ACCESS_TE_NORM_ANY)),
                   .backward = LIST (own (LS_ACCESS_TE_NORM_ANY_GRAD)) };
  LsRecipes *r = recipes_of (tuned);
  g_array_append_val (r->operators, narrow);
  g_array_append_val (r->operators, any);
  return r;
}

static void
check_accesses (const LsOperator *o, LsAccess forward, LsAccess backward)
{
  LS_CHECK_INT (o->fwd[0].access, ==, forward);
  LS_CHECK_INT (o->igrad[0].access, ==, backward);
}

static void
norms_run_the_kernels_of_their_width (void)
{
  LsModel m = llama ();
  m.attn.qk_norm = true;
  g_autoptr (LsRecipes) r = by_width ();
  LsShard s = shard (r);
  g_autoptr (GArray) ops = layer (&m, &s);
  check_accesses (named (ops, "mlp-norm"), LS_ACCESS_TE_NORM, LS_ACCESS_TE_NORM_GRAD);
  check_accesses (named (ops, "k-norm"), LS_ACCESS_TE_NORM, LS_ACCESS_TE_NORM_GRAD);
  LS_CHECK_STR (named (ops, "k-norm")->igrad[1].name, "sum");
  LS_CHECK_INT (named (ops, "k-norm")->igrad[1].n, ==, 64);
  m.hidden = 768;
  g_autoptr (GArray) others = layer (&m, &s);
  check_accesses (named (others, "mlp-norm"), LS_ACCESS_TE_NORM_ANY, LS_ACCESS_TE_NORM_ANY_GRAD);
}

/* With delayed scales a norm writes a byte for each number: 3 bytes an element, as built in. */
static void
own_kernels_keep_their_bytes (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r = by_width ();
  LsShard s = shard (r), plain = shard (NULL);
  s.dtype = plain.dtype = LS_DTYPE_FP8;
  s.fp8.recipe = plain.fp8.recipe = LS_FP8_DELAYED;
  g_autoptr (GArray) ops = layer (&m, &s);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  const LsOperator *o = named (ops, "input-norm"), *same = named (built_in, "input-norm");
  LS_CHECK_INT (o->n_fwd, ==, 1);
  LS_CHECK_DOUBLE (o->fwd[0].bytes, ==, 3 * 262144.0);
  LS_CHECK_DOUBLE (o->fwd[0].bytes, ==, same->fwd[0].bytes);
  LS_CHECK_STR (o->fwd[0].name, same->fwd[0].name);
  LS_CHECK_INT (same->fwd[0].access, ==, LS_ACCESS_NONE);
  LS_CHECK_INT (o->kept.saved_bytes, ==, same->kept.saved_bytes);
}

/* Unless the list says what its loss keeps, it is the logits in fp32. */
static void
a_loss_keeps_its_logits (void)
{
  const LsRecipe loss = { .operator_ = LS_RECIPE_LOSS,
                          .forward = LIST (kernel ("log-softmax", LS_ACCESS_CASTUP, "s*b*V", 2, 4)) };
  g_autoptr (LsRecipes) r = recipes_of (loss);
  LsModel m = llama ();
  LsShard s = shard (r);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_head (&m, &s, true, operators);
  const LsOperator *o = named (operators, "loss");
  if (LS_CHECK (o != NULL))
    LS_CHECK_INT (o->kept.saved_bytes, ==, 4 * (2 * 256) * 1024); /* words, padded */
}

/* What brings rows of experts back to their tokens is as the list has it. */
static void
rows_come_back_by_the_list (void)
{
  const LsRecipe back = { .operator_ = LS_RECIPE_UNPERMUTE,
                          .forward = LIST (kernel ("add rows", LS_ACCESS_VEC, "P*h", 2, 2)) };
  g_autoptr (LsRecipes) r = recipes_of (back);
  LsModel m = llama ();
  m.moe.n_experts = 4, m.moe.top_k = 2, m.moe.expert_ffn = 512;
  LsShard s = shard (r);
  s.experts.ep = s.experts.etp = 1;
  g_autoptr (GArray) ops = layer (&m, &s);
  const LsOperator *o = named (ops, "unpermute");
  if (LS_CHECK (o && o->n_fwd > 0))
    LS_CHECK_STR (o->fwd[0].name, "add rows");
}

/* --- norms and rotation of attention ------------------------------------------------------------- */

static LsRecipe
listed_norm (void)
{
  return (LsRecipe) { .operator_ = LS_RECIPE_NORM,
                      .saved = expression ("6*s*b*h"),
                      .forward = LIST (kernel ("to fp32", LS_ACCESS_CASTUP, "s*b*h", 2, 4),
                                       kernel ("rsqrt", LS_ACCESS_TINY, "s*b", 4, 4)) };
}

static void
check_norm (const LsOperator *o, uint64_t rows, uint64_t width)
{
  if (!LS_CHECK (o) || !LS_CHECK_INT (o->n_fwd, ==, 2))
    return;
  LS_CHECK_INT (o->fwd[0].n, ==, rows * width);
  LS_CHECK_INT (o->fwd[1].n, ==, rows);
  LS_CHECK_INT (o->kept.saved_bytes, ==, 6 * rows * width);
}

/* 512 tokens; eight heads of Q and two of K, each normalised by itself in 64, or all together. */
static void
norms_of_heads_run_it_too (void)
{
  LsModel m = llama ();
  m.attn.qk_norm = true;
  g_autoptr (LsRecipes) r = recipes_of (listed_norm ());
  LsShard s = shard (r), plain = shard (NULL);
  g_autoptr (GArray) ops = layer (&m, &s);
  check_norm (named (ops, "q-norm"), 512 * 8, 64);
  check_norm (named (ops, "k-norm"), 512 * 2, 64);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  LS_CHECK (!named (ops, "qk-norm") && named (built_in, "qk-norm"));
  m.attn.qk_norm_over = LS_QK_NORM_ALL;
  g_autoptr (GArray) over_all = layer (&m, &s);
  check_norm (named (over_all, "q-norm"), 512, 512);
  check_norm (named (over_all, "k-norm"), 512, 128);
  g_autoptr (GArray) all_built_in = layer (&m, &plain);
  const LsOperator *whole = named (all_built_in, "qk-norm");
  LS_CHECK_INT (named (over_all, "q-norm")->params.numel[0] + named (over_all, "k-norm")->params.numel[0], ==,
                whole->params.numel[0] + whole->params.numel[1]);
}

/* Eight heads of 64 + 32 rotated, values of 48, latents of 256 and 128. */
static LsModel
latent (void)
{
  LsModel m = llama ();
  m.n_kv_heads = 8;
  m.head_dim = 96;
  m.latent.rope_dim = 32;
  m.v_dim = 48;
  m.latent.q_lora = 256;
  m.latent.kv_lora = 128;
  return m;
}

static void
latents_run_their_norms_and_rotation (void)
{
  LsModel m = latent ();
  g_autoptr (LsRecipes) norm = recipes_of (listed_norm ());
  LsShard s = shard (norm);
  g_autoptr (GArray) ops = layer (&m, &s);
  check_norm (named (ops, "q-norm"), 512, 256);
  check_norm (named (ops, "kv-norm"), 512, 128);
  g_autoptr (LsRecipes) rope = recipes_of (
      (LsRecipe) { .operator_ = LS_RECIPE_LATENT_ROPE,
                   .forward = LIST (kernel ("rotate", LS_ACCESS_BCAST32, "s*b*a*r", 4, 4),
                                    kernel ("parts", LS_ACCESS_CAT, "s*b*q", 2, 2)),
                   .backward = LIST (kernel ("grads", LS_ACCESS_CAT, "s*b*a*n + s*b*v + s*b*l", 2, 2)) });
  s = shard (rope);
  g_autoptr (GArray) rotated = layer (&m, &s);
  const LsOperator *o = named (rotated, "rope");
  LS_CHECK_INT (o->n_fwd, ==, 2);
  LS_CHECK_INT (o->fwd[0].n, ==, 512 * 8 * 32);
  LS_CHECK_INT (o->fwd[1].n, ==, 512 * 8 * 96);
  LS_CHECK_INT (o->n_igrad, ==, 1);
  LS_CHECK_INT (o->igrad[0].n, ==, 512 * (8 * 64 + 8 * 48 + 128));
  LS_CHECK_INT (o->kept.saved_bytes, ==, 512 * 8 * (96 + 96 + 48) * 2);
}

/* --- adapters ------------------------------------------------------------------------------------ */

#define TOKENS 512
#define HIDDEN 512

static LsShard
adapted (const LsRecipes *r, uint32_t modules)
{
  LsShard s = shard (r);
  s.lora = (LsLora) { .rank = 16, .modules = modules };
  return s;
}

/* The i-th adapter's product of that name. */
static const LsOperator *
nth (const GArray *operators, const char *name, guint n)
{
  for (guint i = 0; i < operators->len; i++)
    if (strcmp (g_array_index (operators, LsOperator, i).name, name) == 0 && n-- == 0)
      return &g_array_index (operators, LsOperator, i);
  return NULL;
}

/* Q, K and V read one input of 512 columns; two casts before each product, 3 and 6 bytes an element. */
static void
each_module_has_its_kernels (void)
{
  LsModel m = llama ();
  LsRecipe down = { .operator_ = LS_RECIPE_LORA_A,
                    .saved = expression ("2*s*b*h"),
                    .forward = LIST (kernel ("up", LS_ACCESS_CASTUP, "s*b*h", 2, 4),
                                     kernel ("down", LS_ACCESS_CASTDN, "s*b*h", 4, 2), CORE),
                    .backward = LIST (CORE, kernel ("back", LS_ACCESS_CASTUP, "s*b*h", 2, 4)) };
  g_autoptr (LsRecipes) r = recipes_of (down);
  LsShard s = adapted (r, LS_LORA_Q | LS_LORA_K | LS_LORA_V | LS_LORA_DOWN),
          plain = adapted (NULL, s.lora.modules);
  g_autoptr (GArray) ops = layer (&m, &s);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  const LsOperator *qkv = nth (ops, "lora-a", 0), *fc2 = nth (ops, "lora-a", 1);
  if (!LS_CHECK (qkv && fc2))
    return;
  LS_CHECK_INT (qkv->n_fwd, ==, 3 * 3);
  LS_CHECK_INT (qkv->n_igrad, ==, 3 * 3); /* a product, a sum, the cast */
  for (guint i = 0; i < 3; i++) {
    LS_CHECK_STR (qkv->fwd[3 * i].name, "up");
    LS_CHECK_INT (qkv->fwd[3 * i].n, ==, TOKENS * HIDDEN);
    LS_CHECK_INT (qkv->fwd[3 * i].bytes, ==, 6 * TOKENS * HIDDEN);
    LS_CHECK_INT (qkv->fwd[3 * i + 2].kind, ==, LS_KERNEL_GEMM);
    LS_CHECK_INT (qkv->igrad[3 * i].kind, ==, LS_KERNEL_GEMM);
    LS_CHECK_STR (qkv->igrad[3 * i + 2].name, "back");
  }
  LS_CHECK_INT (qkv->kept.saved_bytes, ==, 3 * 2 * TOKENS * HIDDEN);
  LS_CHECK_INT (nth (built_in, "lora-a", 0)->kept.saved_bytes, ==, 2 * TOKENS * HIDDEN); /* one for all */
  LS_CHECK_INT (fc2->fwd[0].n, ==, TOKENS * m.ffn);
  LS_CHECK_INT (qkv->n_wgrad, ==, nth (built_in, "lora-a", 0)->n_wgrad);
}

/* K and V of two heads write 128 columns each, Q 512. */
static void
what_b_writes_is_as_wide_as_its_module (void)
{
  LsModel m = llama ();
  LsRecipe up = { .operator_ = LS_RECIPE_LORA_B,
                  .forward = LIST (CORE, kernel ("after", LS_ACCESS_VEC, "s*b*h", 2, 2)),
                  .backward = LIST (CORE) };
  g_autoptr (LsRecipes) r = recipes_of (up);
  LsShard s = adapted (r, LS_LORA_Q | LS_LORA_K | LS_LORA_V), plain = adapted (NULL, s.lora.modules);
  g_autoptr (GArray) ops = layer (&m, &s);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  const LsOperator *b = nth (ops, "lora-b", 0), *own = nth (built_in, "lora-b", 0);
  if (!LS_CHECK (b && own) || !LS_CHECK_INT (b->n_fwd, ==, own->n_fwd + 3))
    return;
  static const uint64_t widths[] = { 512, 128, 128 };
  guint n = 0;
  for (guint i = 0; i < b->n_fwd; i++)
    if (strcmp (b->fwd[i].name, "after") == 0)
      LS_CHECK_INT (b->fwd[i].n, ==, TOKENS * widths[n++]);
  LS_CHECK_INT (n, ==, 3);
  LS_CHECK_INT (b->kept.saved_bytes, ==, own->kept.saved_bytes);
}

LS_TEST_SUITE (LS_TEST (a_loss_keeps_its_logits), LS_TEST (rows_come_back_by_the_list),
               LS_TEST (norms_run_the_kernels_of_their_width), LS_TEST (own_kernels_keep_their_bytes),
               LS_TEST (norms_of_heads_run_it_too), LS_TEST (latents_run_their_norms_and_rotation),
               LS_TEST (each_module_has_its_kernels), LS_TEST (what_b_writes_is_as_wide_as_its_module))
