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
 *                       by these in all cases (lower/balance.h)
 *
 * anything else is refused. Only the first and the last chunk, which hold the embedding
 * and the head, may be without layers.
 *
 *     L = 126, n = 16:   7 8 8 8 8 8 8 8 8 8 8 8 8 8 8 7
 *     L = 61, n = 16 given as 4x13,3x3: 13 chunks of 4 layers, then 3 of 3
 */
#ifndef LS_STRATEGY_SHARD_H
#define LS_STRATEGY_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "model/documents.h"
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

/* What is known of a kind of data parallelism by itself: one row of a table each. How
 * a kind is lowered is in lower/data. */

typedef struct {
  uint32_t stages;         /* of ZeRO that it has: a set of bits 1 << stage; 0: the question does not arise */
  const char *expected;    /* these in words */
  bool is_fsdp;            /* parameters are cut and gathered; stage 3 where none is named */
  bool cuts_operators;     /* by operator, and not in units                                  */
  bool has_reshard;        /* reshard_after_forward decides how long they stay               */
  bool grad_is_fresh;      /* a backward makes new gradients, and adds to none               */
  bool keeps_gradients;    /* each rank has whole gradients, and the optimizer steps on what they become */
  bool has_overlap;        /* dp_overlap decides whether gradients are reduced beside the backward      */
  bool has_param_buckets;  /* of a number of parameters: bucket_params                       */
  bool has_byte_buckets;   /* of a number of bytes: bucket_bytes                             */
  bool reduces_at_the_end; /* with a pipeline: all gradients of a chunk behind its last backward */
  bool is_megatron;        /* of Megatron-LM's training loop, or none of its own             */
} LsDpTraits;

/* Static. dp_kind: an LsDpKind. */
const LsDpTraits *ls_dp_traits (int dp_kind);

/* Which documents are in which micro-batch of a step.
 *
 * Problem. Micro-batches with long documents take longer. The copies of a step wait for each other as its
 * gradients meet, stages of a pipeline for each micro-batch: how far the work of a step is from even decides
 * how long they wait.
 *
 * Model. Documents are drawn one behind the other (model/documents.h) and laid end to end; the first begins
 * the first of the global_batch sequences of the step, and what a sequence has no room for goes on in the
 * next one, as a document of its own. Then the sequences are shuffled (Fisher and Yates; Knuth, The Art of
 * Computer Programming 2, algorithm P) and dealt: b to the first micro-batch of each of d copies, b to the
 * second, and so on. Which documents a step has does not depend on how it is spread over ranks.
 *
 *     sorted   sequences with the most pairs come first, and every other round goes to the copies in the
 *              opposite order: what comes at the same time is alike, and the sums are nearly even
 *     mean     each micro-batch has the mean of the step: as many FLOPs, and nobody waits
 *
 * Pipes both ways have micro-batches of their own, behind one another. Each step is the same draw.
 *
 * Worked example. Sequences of 100, 80, 60, 40 pairs, two copies with two micro-batches: sorted gives the
 * first copy 100 and 40, the second 80 and 60.
 *
 * Deviations. Programs that pack documents whole (first fit) leave the ends of sequences empty, one or two in
 * a hundred tokens; those of a data set repeat. WLB-LLM (Wang et al. 2025, arXiv 2503.17924) puts off the
 * longest documents and packs for even work; no such order is modelled but `sorted`. */

typedef struct {
  LsDocuments mean;    /* of the step                                              */
  guint n_drawn;       /* different micro-batches; 0: each is the mean             */
  LsDocuments *drawn;  /* [n_drawn]                                                */
  uint32_t *number;    /* [dp * micro-batches of a copy] in drawn, by copy; NULL with the mean */
  double n_documents;  /* of the step                                              */
  uint32_t n_longer;   /* that are longer than a sequence, as drawn                */
  double busiest_copy; /* its pairs over the mean copy's: above 1 if they differ   */
  double *values;      /* owned: those of all of them                              */
} LsPacking;

/* s: resolved. *ret_packing NULL: it has no lengths. LS_ERROR_LIMIT: too many documents. */
gboolean ls_packing_new (const LsStrategy *s, const LsModel *m, LsPacking **ret_packing, GError **error);
void ls_packing_free (LsPacking *packing); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPacking, ls_packing_free)

#endif
