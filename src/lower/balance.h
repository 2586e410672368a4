/* lower/balance.h — layers that do not come out even, spread over chunks by what they cost.
 *
 * Problem. A model is an embedding, L layers in a fixed order and a head; n chunks take it in order.
 *
 *     t_c = (embedding, if c = 0) + its layers + (head, if c = n - 1)     of chunk c
 *     T_r = sum of t_c over the chunks c that rank r holds                (schedules/sched_layout.h)
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

/* resolved. ret_layers: [pp * vpp] in model order. */
void ls_balance_layers (const LsModel *m, const LsStrategy *s, const LsPartTimes *times,
                        uint32_t *ret_layers);

#endif
