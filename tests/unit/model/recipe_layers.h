/* tests/unit/model/recipe_layers.h — a layer of a small model whose operators run the kernels of a list. */
#ifndef LS_TESTS_MODEL_RECIPE_LAYERS_H
#define LS_TESTS_MODEL_RECIPE_LAYERS_H

#include "ls_test.h"

#include <string.h>

#include "model/expression.h"
#include "model/operators.h"

static inline LsExpression *
expression (const char *text)
{
  char *message = NULL;
  return ls_expression_parse (text, &message);
}

static inline LsRecipeKernel
kernel (const char *name, LsAccess access, const char *elements, double read, double write)
{
  return (LsRecipeKernel) { .name = g_strdup (name),
                            .access = access,
                            .elements = expression (elements),
                            .read = read,
                            .write = write,
                            .dtype = LS_DTYPE_BF16 };
}

static inline LsRecipeKernel
launched (LsRecipeKernel k, const char *launches)
{
  k.launches = expression (launches);
  return k;
}

static inline GArray *
list (const LsRecipeKernel *kernels, guint n)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (LsRecipeKernel));
  g_array_append_vals (all, kernels, n);
  return all;
}

#define LIST(...)                                                                                            \
  list ((const LsRecipeKernel[]) { __VA_ARGS__ }, G_N_ELEMENTS (((const LsRecipeKernel[]) { __VA_ARGS__ })))
#define CORE ((LsRecipeKernel) { .is_core = true })

static inline LsRecipes *
recipes_of (LsRecipe recipe)
{
  LsRecipes *r = ls_recipes_new ();
  r->operators = g_array_new (FALSE, FALSE, sizeof (LsRecipe));
  g_array_append_val (r->operators, recipe);
  return r;
}

static inline LsModel
llama (void)
{
  return (LsModel) { .n_layers = 1,
                     .hidden = 512,
                     .n_heads = 8,
                     .n_kv_heads = 2,
                     .head_dim = 64,
                     .ffn = 1024,
                     .vocab = 1000,
                     .seq = 256,
                     .norm = LS_NORM_RMSNORM,
                     .mlp = LS_MLP_SWIGLU,
                     .position = LS_POSITION_ROPE };
}

static inline LsShard
shard (const LsRecipes *recipes)
{
  return (LsShard) { .tp = 1,
                     .micro_batch = 2,
                     .seq = 256,
                     .cp = 1,
                     .attention = LS_ATTENTION_FLASH,
                     .dtype = LS_DTYPE_BF16,
                     .grad_dtype = LS_DTYPE_FP32,
                     .grad.is_fresh = true,
                     .recipes = recipes };
}

static inline GArray *
layer (const LsModel *m, const LsShard *s)
{
  GArray *operators = ls_operators_new ();
  ls_operators_layer (m, s, 0, operators);
  return operators;
}

static inline const LsOperator *
named (const GArray *operators, const char *name)
{
  for (guint i = 0; i < operators->len; i++)
    if (strcmp (g_array_index (operators, LsOperator, i).name, name) == 0)
      return &g_array_index (operators, LsOperator, i);
  return NULL;
}

#endif
