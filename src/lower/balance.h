/* lower/balance.h — layers that do not come out even, spread over chunks by what they cost.
 *
 * Problem. A model is an embedding, L layers in a fixed order and a head; n chunks take it in order.
 *
 *     t_c = (embedding, if c = 0) + its layers + (head, if c = n - 1)     of chunk c
 *     T_r = sum of t_c over the chunks c that rank r holds                (schedules/sched.h)
 *
 * A pipeline of m micro-batches runs at the pace of its busiest rank. With 1F1B, stages of f forwards and
 * t both ways, p of them, sends for nothing, a step takes
 *
 *     max over k of  sum of all t + (m - 1) t_k - (p - 1 - k) f_k
 *
 * (micro-batch 0 goes down and up again; k then does the rest, less the forwards that it did meanwhile).
 * The sum does not depend on the layout. What counts is the largest t, and that the last stage that takes
 * so long comes early.
 *
 * Wanted: counts with the least max T_r; among these the least max t_c; then the busiest ranks as early as
 * they can be; then the least sum of T_r squared; then late chunks take as little as can be. The first and
 * the last chunk may be without layers, others have at least one. Memory is not looked at: of equals the
 * first ranks have more layers, and they hold most micro-batches in flight. Where that is too much, layers
 * are given.
 *
 * Algorithm. Layers are dealt out one at a time, each to the chunk whose rank is then least busy; of
 * equals to the earlier. That is the optimum where all layers cost the same: a layer moved from any rank to
 * any other would make that one at least as busy. Where layers with and without experts differ, what a count
 * costs depends on the counts before it. Then single layers move from chunk to chunk while that helps, once
 * from what was dealt out, once from chunks filled in order to the least time that takes all layers; the
 * better result is taken. With one chunk per rank that is the least max T_r again; with several it need not
 * be.
 *
 *     61 layers of 10, embedding 1, head 15, n = 16:   3 4 4 4 4 4 4 4 4 4 4 4 4 4 4 2
 *
 * O(L n); with two kinds of layers O(n^3) for each move, and none beyond 128 chunks. */
#ifndef LS_LOWER_BALANCE_H
#define LS_LOWER_BALANCE_H

#include "lower/lower.h"
#include "model/model.h"

/* resolved. ret_layers: [pp * vpp] in model order. */
void ls_balance_layers (const LsModel *m, const LsStrategy *s, const LsPartTimes *times,
                        uint32_t *ret_layers);

/* Layers spread over chunks by rules of programs that do not look at what layers cost.
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

/* ret_layers: [n] in model order. False, and nothing is said of ret_layers, where the layers do not
 * reach the last chunk, whose ranks nanotron leaves without parameters. n > 0. */
bool ls_chunks_by_weights (const LsModel *m, uint32_t n, uint32_t *ret_layers);

/* The same by modules; false where a chunk between the first and the last would be without layers. */
bool ls_chunks_by_modules (const LsModel *m, uint32_t n, uint32_t *ret_layers);

#endif
