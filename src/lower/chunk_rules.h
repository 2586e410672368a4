/* lower/chunk_rules.h — layers spread over chunks by rules of programs that do not look at what layers cost.
 *
 * By weights of products, as nanotron does:
 *
 *     w = 4 a d h + g f h   of a layer: its heads' projections, as many of keys and values as of queries, and
 *                           an MLP of g = 3 (gated) or 2 products
 *     V h                   of the head; nothing of embedding and norms
 *
 * A chunk of n takes layers up to, and with, the first at which the sum from the start of the model passes
 * (c + 1) / n of the whole, L w + V h. What is passed counts as passed, so early chunks have more:
 *
 *     24 layers of 41.9 M, a head of 102.9 M, n = 4:   7 7 6 4
 *
 * Source: huggingface/nanotron@3034bd215, src/nanotron/models/base.py (build_model) and models/llama.py
 * (get_block_compute_costs); the branch bench_cluster of May 2024 has the same.
 *
 * By modules, as Aleph Alpha's Scaling does: embedding, L layers, last norm and head are L + 3 modules alike,
 * of which each chunk has as many; what is left over goes to the first chunks, one each:
 *
 *     80 layers, n = 4:   20 21 21 18, with the embedding before them and norm and head behind
 *
 * Source: Aleph-Alpha/scaling@737f8558, src/scaling/core/nn/parallel_module/pipeline_partitioning.py
 * (pipe_partition_uniform), transformer/model/model.py. */
#ifndef LS_LOWER_CHUNK_RULES_H
#define LS_LOWER_CHUNK_RULES_H

#include "model/model.h"

/* ret_layers: [n] in model order. False, and nothing is said of ret_layers, where the layers do not
 * reach the last chunk, whose ranks nanotron leaves without parameters. n > 0. */
bool ls_chunks_by_weights (const LsModel *m, uint32_t n, uint32_t *ret_layers);

/* The same by modules; false where a chunk between the first and the last would be without layers. */
bool ls_chunks_by_modules (const LsModel *m, uint32_t n, uint32_t *ret_layers);

#endif
