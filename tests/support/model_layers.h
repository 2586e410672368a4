/* tests/support/model_layers.h — layers of a model as operators, whose weights are held against their products. */
#ifndef LS_TESTS_MODEL_LAYERS_H
#define LS_TESTS_MODEL_LAYERS_H

#include "ls_test.h"

#include "model_shapes.h"

static inline LsModel
small (void)
{
  LsModel m = llama (12, 1024, 8, 2, 4096, 32000);
  m.seq = 4096;
  return m;
}

static inline uint64_t
columns_of_products (const LsOperator *op)
{
  uint64_t n = 0;
  for (uint32_t p = 0; p < op->n_products; p++)
    n += op->product_columns[p];
  return n;
}

/* The first of them, or NULL; its gradient may be added by a kernel behind it. */
static inline const LsKernel *
product_of (const LsKernel *kernels, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (is_gemm (&kernels[i]))
      return &kernels[i];
  return NULL;
}

/* Weights of products are matrices, which optimizers tell from vectors, with the sides of their gradients;
 * products that software launches one by one are all of them together. */
static inline void
check_weights (const GArray *operators)
{
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *op = &g_array_index (operators, LsOperator, i);
    const LsTensor *t = &op->params.shape[0];
    const LsKernel *k = product_of (op->wgrad, op->n_wgrad);
    if (!k || op->params.n == 0)
      continue;
    if (op->n_products > 0 && op->params.alike[0] <= 1)
      ls_check_impl (columns_of_products (op) == t->rows, __FILE__, __LINE__, "%s", op->name);
    ls_check_impl (t->kind == LS_TENSOR_MATRIX
                       && (op->params.alike[0] > 1 || (t->rows == k->m && t->columns == k->n)),
                   __FILE__, __LINE__, "%s: %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT, op->name,
                   (guint64) t->rows, (guint64) t->columns);
  }
}

static inline GArray *
layer_of (const LsModel *m, uint32_t layer)
{
  GArray *operators = operators_new ();
  LsShard s = shard (m, 1, false, 1);
  ls_operators_layer (m, &s, layer, operators);
  check_weights (operators);
  return operators;
}

static inline uint64_t
n_layer_params (const GArray *operators)
{
  uint64_t sum = 0;
  for (guint i = 0; i < operators->len; i++)
    for (uint32_t p = 0; p < g_array_index (operators, LsOperator, i).params.n; p++)
      sum += g_array_index (operators, LsOperator, i).params.numel[p];
  return sum;
}

#endif
