/* strategy/strategy_rules.h — what the files of rules share: how a broken one is reported
 * (private). */
#ifndef LS_STRATEGY_STRATEGY_RULES_H
#define LS_STRATEGY_STRATEGY_RULES_H

#include "schedules/sched.h"
#include "strategy/strategy.h"

#define conflict(diags, pointer, ...)                                                                        \
  ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, pointer, NULL, NULL, __VA_ARGS__)
#define unsupported(diags, pointer, ...)                                                                     \
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, NULL, 0, 0, pointer, NULL, NULL, __VA_ARGS__)

/* Ranks that have the same parameters. */
static inline uint64_t
n_copies (const LsStrategy *s)
{
  return (uint64_t) s->dp * s->cp;
}

/* Ranks that have the same experts; 1 without experts, 0 while that is not known. */
static inline uint64_t
n_expert_copies (const LsStrategy *s, const LsModel *m)
{
  uint64_t per_copy = (uint64_t) s->ep * (s->experts.etp > 0 ? s->experts.etp : s->tp);
  return m->moe.n_experts == 0 ? 1 : s->tp * n_copies (s) / per_copy;
}

/* --- strategy_pipeline.c --- */

/* Defaults of passes side by side. */
void fill_overlap (LsStrategy *s);
/* Why not some outputs of a layer can be kept and the rest run again: parts, an LS_RECOMPUTE_BY_OPERATORS;
 * static, such as "with adapters". NULL: they can. */
const char *ops_refusal (const LsStrategy *s, const LsModel *m, uint32_t parts);
void check_rank_order (const LsStrategy *s, const LsModel *m, LsDiagList *diags);
void check_experts (const LsStrategy *s, const LsModel *m, LsDiagList *diags);
void check_latent_attention (const LsStrategy *s, const LsModel *m, LsDiagList *diags);
void check_lora (const LsStrategy *s, const LsModel *m, LsDiagList *diags);
/* Layers that are not as wide as others are cut evenly, too. */
void check_widths (const LsStrategy *s, const LsModel *m, LsDiagList *diags);
void check_beside (const LsStrategy *s, const LsModel *m, LsDiagList *diags);
void check_again (const LsStrategy *s, const LsModel *m, LsDiagList *diags);
void check_encoder (const LsStrategy *s, const LsModel *m, LsDiagList *diags);

/* --- strategy.c --- */

/* What follows of attention's kernels. */
void fill_kernels (LsStrategy *s);
void check_kernels (const LsStrategy *s, const LsModel *m, LsDiagList *diags);

/* How it is cut. */
void fill_optimizer (LsStrategy *s);
void check_optimizer (const LsStrategy *s, LsDiagList *diags);

/* --- strategy_pipeline.c --- */

void fill_grad_sync (LsStrategy *s);
/* n_micro_batches: 0 if not known. */
void check_pipeline (const LsStrategy *s, const LsModel *m, uint32_t n_micro_batches, LsDiagList *diags);
/* Of replicas with numbers of their own; and the pipeline of each. */
void check_replicas (const LsStrategy *s, const LsModel *m, LsDiagList *diags);

/* NULL if the schedule lets a job have the other knobs of s, and n_micro_batches, else a
 * static text with the rule that they break. */
const char *ls_sched_job_refusal (const LsSched *sched, const LsStrategy *s, const LsModel *m,
                                  uint32_t n_micro_batches);

#endif
