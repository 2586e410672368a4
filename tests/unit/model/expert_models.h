/* tests/unit/model/expert_models.h — models with experts, how they are cut, and how tokens fall on them. */
#ifndef LS_TESTS_MODEL_EXPERT_MODELS_H
#define LS_TESTS_MODEL_EXPERT_MODELS_H

#include "ls_test.h"

#include "model_shapes.h"

#include "model/expert_load.h"

#define SUM(type, n, values)                                                                                 \
  ({                                                                                                         \
    type sum_ = 0;                                                                                           \
    for (uint32_t i_ = 0; i_ < (n); i_++)                                                                    \
      sum_ += (values)[i_];                                                                                  \
    sum_;                                                                                                    \
  })

static inline LsModel
mixtral (void)
{
  LsModel m = llama (32, 4096, 32, 8, 14336, 32000);
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 14336;
  m.moe.every = 1;
  m.seq = 4096;
  return m;
}

static inline LsShard
expert_shard (const LsModel *m, uint32_t tp, uint32_t ep, uint32_t etp)
{
  LsShard s = shard (m, tp, tp > 1, 1);
  s.dtype = LS_DTYPE_BF16;
  s.grad_dtype = LS_DTYPE_FP32;
  s.experts.ep = ep;
  s.experts.etp = etp;
  return s;
}

static inline double *
shares (const char *load, const LsModel *m)
{
  g_autofree char *why = NULL;
  double *w = ls_expert_shares (load, m, &why);
  LS_CHECK_STR (why, NULL);
  return w;
}

#endif
