/* strategy/shard.h — how a strategy cuts a model: layers into chunks, the operators of a layer over ranks.
 *
 * L layers over n = pp * vpp chunks, in model order:
 *
 *     --layers-per-chunk a,b,...   as given: n counts that sum to L
 *     n divides L       L/n layers in every chunk
 *     n divides L + 2   embedding and head count as a layer each: (L + 2)/n in
 *                       every chunk, one fewer in the first and in the last
 *     n <= L + 2        balanced by what layers, embedding and head cost (lower/balance.h);
 *                       with --layers-per-chunk balanced also where n divides, with weights or modules
 *                       by these in all cases (lower/chunk_rules.h)
 *
 * anything else is refused. Only the first and the last chunk, which hold the embedding
 * and the head, may be without layers.
 *
 *     L = 126, n = 16:   7 8 8 8 8 8 8 8 8 8 8 8 8 8 8 7
 *     L = 61, n = 16 given as 4x13,3x3: 13 chunks of 4 layers, then 3 of 3
 */
#ifndef LS_STRATEGY_SHARD_H
#define LS_STRATEGY_SHARD_H

#include "model/operators.h"
#include "strategy/strategy.h"

/* --- which layers live in which chunk ---------------------------------------------------------------- */

/* ret_layers: [pp * vpp], in model order (global stage); NULL to check only. Layers that are to be balanced
 * must be known unless it is NULL. FALSE, with a diagnostic of LS_ERROR_CONFLICT each, if refused; more than
 * LS_MAX_CHUNKS chunks always are. */
gboolean ls_chunk_layers (const LsStrategy *s, const LsModel *m, uint32_t *ret_layers, LsDiagList *diags);

/* Whether L layers on n chunks come out even, embedding and head counted or not. n > 0. */
bool ls_chunks_are_even (uint32_t n_layers, uint64_t n_chunks);

/* Whether the layers of each chunk are still to be balanced; s as resolved. */
bool ls_chunks_want_balance (const LsStrategy *s, const LsModel *m);

/* Of a model with an encoder: the chunks that have its layers and no others, which are the first; 0: no chunk
 * ends where it does. s as resolved, with counts of layers that ls_chunk_layers() takes. */
uint32_t ls_encoder_chunks (const LsStrategy *s, const LsModel *m);

/* --- what one rank has of an operator ---------------------------------------------------------------- */

/* s: resolved. Experts are evenly loaded: which rank is meant, and with which load, is the caller's to
 * say. */
LsShard ls_strategy_shard (const LsStrategy *s, const LsModel *m);
/* What Adam keeps of a weight. */
LsAdamStates ls_strategy_adam (const LsStrategy *s);
/* The number format that weights are kept in, where one is for all of them; of a scaled format that of its 16
 * bits. Of FSDP that of the shards. */
LsDtype ls_strategy_weights (const LsStrategy *s);
/* Whether the optimizer steps on the weights themselves, or on shards of them, not on masters beside. */
bool ls_strategy_steps_on_weights (const LsStrategy *s);
/* Whether gradients lie in buckets, too, for as long as the job runs: of torch's DDP, whose reducer overlaps
 * (reducer.cpp, initialize_buckets), but with gradient_as_bucket_view. */
bool ls_strategy_has_buckets (const LsStrategy *s);
/* Appends the kernels of Adam's step on n elements; returns what ls_optimizer_as_launched() is to know. */
LsStepped ls_strategy_optimizer_kernels (const LsStrategy *s, uint64_t n, GArray *kernels);
/* Its adapters; modules that the model has not are none. */
LsLora ls_strategy_lora (const LsStrategy *s, const LsModel *m);
/* The first of what a model has that no adapters are modelled of or beside; static; NULL: nothing. */
const char *ls_strategy_bars_adapters (const LsModel *m);

#endif
