/* tests/support/layer_laws.h — the conservation laws of a job of a model that no file has, and its weights. */
#ifndef LS_TESTS_LAYER_LAWS_H
#define LS_TESTS_LAYER_LAWS_H

#include "ls_test.h"

#include <string.h>

#include "lower/lower.h"
#include "analysis/conservation.h"
#include "closed_flops.h"

/* Six layers 512 wide, with eight heads on four of keys and values: what a test adds to. */
static inline LsModel
small_model (const char *name)
{
  return (LsModel) {
    .name = (char *) name,
    .n_layers = 6,
    .hidden = 512,
    .n_heads = 8,
    .n_kv_heads = 4,
    .head_dim = 64,
    .ffn = 1024,
    .vocab = 5000,
    .seq = 256,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
  };
}

static inline bool
keeps_the_laws (const LsModel *m, LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  bool ok = ls_strategy_resolve (s, m, 8, 8, diags);
  g_autofree char *why = ls_diag_list_format (diags);
  LsPlan *plan = ok ? ls_lower (m, s, NULL, &error) : NULL;
  LS_CHECK_STR (why, "");
  ok = plan && ls_conserves_flops (plan, m, s, &error) && computes_closed_flops (plan, m, s);
  g_autoptr (LsMemory) memory = plan ? ls_memory_new (&(LsMemoryInput) { .plan = plan }) : NULL;
  ok = ok && ls_conserves_memory (memory, &error);
  LS_CHECK_NO_ERROR (error);
  ls_plan_free (plan);
  ls_strategy_clear (s);
  return ok;
}

static inline LsShard
whole_shard (const LsModel *m)
{
  return (LsShard) { .tp = 1,
                     .ep = 1,
                     .etp = 1,
                     .cp = 1,
                     .micro_batch = 1,
                     .seq = m->seq,
                     .dtype = LS_DTYPE_BF16,
                     .grad_dtype = LS_DTYPE_FP32 };
}

/* The first of this name; NULL: there is none. */
static inline const LsOperator *
find_operator (const GArray *operators, const char *name)
{
  for (guint i = 0; i < operators->len; i++)
    if (strcmp (g_array_index (operators, LsOperator, i).name, name) == 0)
      return &g_array_index (operators, LsOperator, i);
  return NULL;
}

static inline uint64_t
weights_of (const GArray *operators)
{
  uint64_t n = 0;
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *op = &g_array_index (operators, LsOperator, i);
    for (guint p = 0; p < op->params.n; p++)
      n += op->params.numel[p];
  }
  return n;
}

/* Of a rank that has all, the weights of each layer's operators are those that the model counts. */
static inline void
count_weights (const LsModel *m)
{
  const LsShard shard = whole_shard (m);
  for (uint32_t layer = 0; layer < m->n_layers; layer++) {
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (m, &shard, layer, operators);
    LS_CHECK_INT (weights_of (operators), ==, ls_model_layer_params (m, layer));
  }
}

/* Cut over two ranks of tp, the same: what is not on both is a half on each. Experts are whole. */
static inline bool
ranks_add_up (const LsModel *m)
{
  LsShard shard = whole_shard (m);
  bool ok = true;
  shard.tp = 2;
  for (uint32_t layer = 0; layer < m->n_layers; layer++) {
    g_autoptr (GArray) operators = ls_operators_new ();
    uint64_t n = 0;
    ls_operators_layer (m, &shard, layer, operators);
    for (guint i = 0; i < operators->len; i++) {
      const LsOperatorParams *p = &g_array_index (operators, LsOperator, i).params;
      for (guint k = 0; k < p->n; k++)
        n += p->numel[k] * (p->is_replicated || p->is_expert ? 1 : 2);
    }
    ok &= LS_CHECK_INT (n, ==, ls_model_layer_params (m, layer));
  }
  return ok;
}

static inline void
says (const LsModel *m, LsStrategy *s, const char *said)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_strategy_resolve (s, m, 8, 8, diags);
  g_autofree char *why = ls_diag_list_format (diags);
  ls_check_impl (!ok && strstr (why, said), __FILE__, __LINE__, "%s", why);
  ls_strategy_clear (s);
}

#endif
