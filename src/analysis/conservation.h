/* analysis/conservation.h — what must come out as it went in, checked after every run
 * in every build: a program gives back what it allocates, and its kernels compute what
 * the operators of the model ask for. (What moves is checked by exec/replay/check.c, the parts of a step
 * by idle.c; what operators ask for by closed forms in the tests.) */
#ifndef LS_ANALYSIS_CONSERVATION_H
#define LS_ANALYSIS_CONSERVATION_H

#include "exec/memory/memory.h"
#include "model/model.h"
#include "strategy/strategy.h"

/* FLOPs of one step over all ranks as the model counts them: of matrix products, and
 * of attention over all pairs or over those that its kernels compute, each counted once, without those of an
 * optimizer. Of kernels that recompute, or of all others. */
double ls_plan_model_flops (const LsPlan *plan, bool is_recomputed, bool is_causal);

/* FLOPs of a step: ls_model_flops (), or what adapters on frozen weights leave of them (model/lora.h); with
 * documents' lengths, of attention inside documents (model/documents.h). */
double ls_trained_flops (const LsModel *m, const LsStrategy *s, uint32_t seq, bool is_causal);

/* Of one step's tokens that experts with a capacity drop: the model counts them, nobody computes them. */
double ls_dropped_flops (const LsModel *m, const LsStrategy *s, uint32_t seq);

/* Of a plan that was lowered from this model and resolved strategy: kernels that do not recompute have the
 * FLOPs of the model's operators, on each rank that has them and for each of its micro-batches. */
gboolean ls_conserves_flops (const LsPlan *plan, const LsModel *m, const LsStrategy *s, GError **error);

/* A step ends with the bytes alive, by category, that it began with, and frees nothing
 * that is not alive. */
gboolean ls_conserves_memory (const LsMemory *memory, GError **error);

/* LS_ERROR_FAILED, with both sides, where one does not hold: an error in the program and
 * not in its input. */

#endif
