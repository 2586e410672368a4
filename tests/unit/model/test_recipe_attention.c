/* Pins which norms of a layer a list of kernels reaches, with their own rows and widths: those of heads of Q and K,
 * and of latents; and what it says of the rotation of latent attention. */
#include "recipe_layers.h"

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
  LS_CHECK_INT (o->saved_bytes, ==, 6 * rows * width);
}

/* 512 tokens; eight heads of Q and two of K, each normalised by itself in 64, or all together. */
static void
norms_of_heads_run_it_too (void)
{
  LsModel m = llama ();
  m.qk_norm = true;
  g_autoptr (LsRecipes) r = recipes_of (listed_norm ());
  LsShard s = shard (r), plain = shard (NULL);
  g_autoptr (GArray) ops = layer (&m, &s);
  check_norm (named (ops, "q-norm"), 512 * 8, 64);
  check_norm (named (ops, "k-norm"), 512 * 2, 64);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  LS_CHECK (!named (ops, "qk-norm") && named (built_in, "qk-norm"));
  m.qk_norm_over = LS_QK_NORM_ALL;
  g_autoptr (GArray) over_all = layer (&m, &s);
  check_norm (named (over_all, "q-norm"), 512, 512);
  check_norm (named (over_all, "k-norm"), 512, 128);
  g_autoptr (GArray) all_built_in = layer (&m, &plain);
  const LsOperator *whole = named (all_built_in, "qk-norm");
  LS_CHECK_INT (named (over_all, "q-norm")->param_numel[0] + named (over_all, "k-norm")->param_numel[0], ==,
                whole->param_numel[0] + whole->param_numel[1]);
}

/* Eight heads of 64 + 32 rotated, values of 48, latents of 256 and 128. */
static LsModel
latent (void)
{
  LsModel m = llama ();
  m.n_kv_heads = 8;
  m.head_dim = 96;
  m.rope_dim = 32;
  m.v_dim = 48;
  m.q_lora = 256;
  m.kv_lora = 128;
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
  LS_CHECK_INT (o->saved_bytes, ==, 512 * 8 * (96 + 96 + 48) * 2);
}

LS_TEST_SUITE (LS_TEST (norms_of_heads_run_it_too), LS_TEST (latents_run_their_norms_and_rotation))
