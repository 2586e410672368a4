/* lower/data/lower_deepspeed.h — what DeepSpeed's backends of data parallelism share (private).
 *
 *     lower_dp_deepspeed.c   stages 0, 1 and 2
 *     lower_dp_deepspeed3.c  stage 3
 *     lower_dp_deepspeed3.c          which parameters stage 3 gathers and releases, and when
 *     lower_dp_deepspeed.c        what lives outside of the accelerator
 *
 * Files, classes and functions that are named are those of deepspeed/runtime/zero. */
#ifndef LS_LOWER_DATA_LOWER_DEEPSPEED_H
#define LS_LOWER_DATA_LOWER_DEEPSPEED_H

#include "lower/data/lower_dp.h"

/* The host waits for the device, as far as this backend uses it. */
void deepspeed_sync_host (Build *b);

/* The format that parameters are gathered in. */
LsDtype deepspeed_gathers (const Lower *l);

/* With collective_lists: n launches of kernels that move so many bytes each, as one op. */
uint16_t deepspeed_copies (Build *b, LsStream stream, const char *name, LsDtype dtype, uint64_t numel,
                           uint64_t n, LsTag tag);
/* Gradients are read and written, by the compute stream. */
void deepspeed_copy_gradients (Build *b, const char *name, uint64_t numel);
/* The host makes n views. */
void deepspeed_views (Build *b, uint64_t n);

/* The same where each rank of a shard gets its part (returns the last op of it; NO_OP with one rank), and,
 * where is_last, the replicas sum up their parts. */
uint16_t deepspeed_reduce (Build *b, uint64_t numel, bool is_expert, bool is_last, uint16_t unit);

/* Gathers numel parameters over a shard, behind `after` (NO_OP: nothing) and what compute has
 * been given so far. NO_OP with one rank. Into a list: the last copy out. */
uint16_t deepspeed_gather (Build *b, uint64_t numel, bool is_expert, uint16_t after);

/* --- lower_dp_deepspeed.c: nothing happens where nothing is offloaded ----------------- */

bool offloads_parameters (const Lower *l);

/* A rank's part of gradients leaves, once op `reduced` (NO_OP: compute) is done. */
void offload_gradients (Build *b, const DpPass *p, uint64_t numel, uint16_t reduced);
/* A rank's part of parameters comes in; returns the op. Where parameters are offloaded. */
uint16_t offload_fetch (Build *b, uint64_t numel);
/* Optimizer step on the host, and 16-bit parameters back to where they live. */
void offload_optimizer (Build *b, uint32_t pp_rank);
void offload_static_memory (const Lower *l, uint64_t bytes[LS_N_MEM]);
/* What tells segments apart by what they offload: " first", " last", both or nothing. */
const char *offload_variant (const Lower *l, const DpPass *p);

#endif
