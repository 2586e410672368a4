/* Pins norms of a list whose kernels depend on how wide a row is, and what a list says of an operator's own
 * kernels: how they touch memory, and nothing else. */
#include "recipe_layers.h"

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
  m.qk_norm = true;
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
  s.fp8_recipe = plain.fp8_recipe = LS_FP8_DELAYED;
  g_autoptr (GArray) ops = layer (&m, &s);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  const LsOperator *o = named (ops, "input-norm"), *same = named (built_in, "input-norm");
  LS_CHECK_INT (o->n_fwd, ==, 1);
  LS_CHECK_DOUBLE (o->fwd[0].bytes, ==, 3 * 262144.0);
  LS_CHECK_DOUBLE (o->fwd[0].bytes, ==, same->fwd[0].bytes);
  LS_CHECK_STR (o->fwd[0].name, same->fwd[0].name);
  LS_CHECK_INT (same->fwd[0].access, ==, LS_ACCESS_NONE);
  LS_CHECK_INT (o->saved_bytes, ==, same->saved_bytes);
}

LS_TEST_SUITE (LS_TEST (norms_run_the_kernels_of_their_width), LS_TEST (own_kernels_keep_their_bytes))
