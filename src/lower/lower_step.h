/* lower/lower_step.h — how a step begins and ends (private). */
#ifndef LS_LOWER_LOWER_STEP_H
#define LS_LOWER_LOWER_STEP_H

#include "lower/lower_build.h"

uint32_t segment_step_begin (Lower *l, uint32_t pp_rank);
uint32_t segment_step_end (Lower *l, uint32_t pp_rank);
/* Between two flushes of the pipeline; the first of the step. */
uint32_t segment_flush (Lower *l, uint32_t pp_rank, bool is_first);
/* Gathers parameters of a chunk as the step begins; UINT32_MAX: nothing to gather. */
uint32_t segment_early_gather (Lower *l, uint32_t pp_rank, uint32_t chunk);
/* Where lower_dp.h has them between passes. */
uint32_t segment_gather_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk);
uint32_t segment_reduce_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk);
/* Bytes alive for the whole run, and what lives outside: weights, gradients, what the optimizer keeps. */
void step_static_memory (const Lower *l, uint32_t pp_rank, LsProgram *p);

/* --- lower_optimizer.c: of an optimizer that is not Adam --- */

/* What the fullest rank keeps besides gradients, with a master weight of so many bytes. */
uint64_t optimizer_state_bytes (const Lower *l, uint32_t pp_rank, uint32_t master_bytes);
/* Elements that the busiest rank steps on, where tensors are dealt out. */
uint64_t n_dealt (const Lower *l, uint32_t pp_rank);
/* The step, behind norm and clipping. */
void build_optimizer_step (Build *b, uint32_t pp_rank);

/* --- lower_optimizer.c --- */

/* The optimizer waits for the norm of this stage and those before it only. */
void pass_norm_on (Build *b, uint32_t pp_rank);
/* At the begin of a step: the whole norm, from the last stage to the first; computing does not
 * wait for it. Nothing to do without post-validation. */
void send_norm_back (Build *b, uint32_t pp_rank);
/* It waits; for micro-batch 0, chunk 0. UINT32_MAX: nothing to check. */
uint32_t segment_check_norm (Lower *l, uint32_t pp_rank);

/* --- lower_replicas.c --- */

/* Sums gradients over the ranks that hold the same stages; nothing to do without pipes. */
void reduce_pipes (Build *b, uint32_t pp_rank);
/* Of the 16-bit weights. */
uint32_t n_weight_versions (const Lower *l, uint32_t pp_rank);

#endif
