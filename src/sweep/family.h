/* sweep/family.h — cases by the paper or benchmark they come from.
 *
 * A table of measured runs gives dimensions, not architecture: whether there are
 * biases, dropout, tied embeddings. They follow from the kind of MLP and from the
 * family:
 *
 *   gelu    LayerNorm, learned positions, biases, tied embeddings (GPT-2 and -3)
 *   swiglu  RMSNorm, rotary positions, no biases, untied (Llama)
 *   relu2   LayerNorm, rotary positions, no biases, untied (Nemotron)
 *
 * Dropout: the runs of Megatron-LM's GPT (Narayanan et al. 2021, Korthikanti et
 * al. 2022, Megatron-Turing NLG, vTrain, zero bubble) train with it; BLOOM has
 * ALiBi positions and none (Le Scao et al. 2022); the others have none.
 *
 * Software: the backward of tensor parallelism runs beside a GEMM since Megatron-LM's
 * ColumnParallelLinearWithAsyncAllreduce (between late 2021 and February 2022). The
 * runs of Narayanan et al. (April 2021) come before it, and Megatron-DeepSpeed, which
 * vTrain, Megatron-Turing NLG and BLOOM used, leaves it off
 * (deepspeedai/Megatron-DeepSpeed, issue 447). The automatic schedules of zero bubble step
 * the optimizer without waiting for the global gradient norm, which is validated later (Qi
 * et al. 2024, section 4), except where the row is there to compare that (-sync, table 7). */
#ifndef LS_SWEEP_FAMILY_H
#define LS_SWEEP_FAMILY_H

#include "model/model.h"

/* "sc21-t1", "sc21-t2", "vtrain-multi" or "vtrain-single" where the id starts so,
 * else its leading letters. Newly allocated. */
char *ls_family_of_id (const char *id);

/* Sets norm, position, linear_bias, qkv_bias, tied_embeddings and dropout of a model
 * whose dimensions and mlp are known. */
void ls_family_complete_model (const char *family, LsModel *model);

/* Whether the family's software has the asynchronous backward (--tp-async). */
bool ls_family_tp_async (const char *family);

/* Whether the optimizer of a row waits for the gradient norm of all stages (--grad-norm).
 * schedule: NULL if the row names none. */
bool ls_family_grad_norm (const char *id, const char *schedule);

#endif
