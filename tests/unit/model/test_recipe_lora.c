/* Pins what a list of kernels says of adapters: it stands around the product of each module by itself, as wide as
 * what that reads or writes, and may give each module a tensor of its own to keep. */
#include "recipe_layers.h"

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
  LS_CHECK_INT (qkv->saved_bytes, ==, 3 * 2 * TOKENS * HIDDEN);
  LS_CHECK_INT (nth (built_in, "lora-a", 0)->saved_bytes, ==, 2 * TOKENS * HIDDEN); /* one for all */
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
  LS_CHECK_INT (b->saved_bytes, ==, own->saved_bytes);
}

LS_TEST_SUITE (LS_TEST (each_module_has_its_kernels), LS_TEST (what_b_writes_is_as_wide_as_its_module))
