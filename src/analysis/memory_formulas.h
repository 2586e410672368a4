/* analysis/memory_formulas.h — what papers say that a rank must hold, to lay next to what a
 * run holds.
 *
 * Model states. With P parameters on a rank before data parallelism cuts anything, 2 bytes
 * each (4 in fp32), gradients of g bytes, K = 12 bytes of optimizer (8 in fp32) and d ranks
 * that share:
 *
 *     ZeRO stage       0        1          2              3
 *     parameters       2 P      2 P        2 P            2 P / d
 *     gradients        g P      g P        g P / d        g P / d
 *     optimizer        K P      K P / d    K P / d        K P / d
 *
 * Worked example: 7.5e9 parameters, d = 64, g = 2: 120, 31.4, 16.6 and 1.9 GB in all.
 * Reference: Rajbhandari et al. 2020, ZeRO, section 3 and figure 1.
 *
 * Activations that a layer keeps, with s b h = S and A = 5 a s / h (0 with flash attention,
 * which keeps what selective recomputation does):
 *
 *     tensor parallel                S (10 + 24 / t + A / t)
 *     and sequence parallel          S / t (34 + A)
 *     selective recomputation        the same without A
 *     full recomputation             2 S
 *
 * and how many layers' worth a rank r of p holds, of L / p layers and m micro-batches:
 *
 *     1F1B               min (m, p - r) L / p
 *     interleaved, v     min (m v, 2 (p - r - 1) + (v - 1) p + 1) L / (p v): for r = 0 and
 *                        many micro-batches L (1 + (p - 1) / (p v))
 *     GPipe              m L / p
 *
 * Worked example: 22B, s 2048, b 4, h 6144, a 64, t 8, L 48: 59.25 GiB, and 9.56 with both.
 * Reference: Korthikanti et al. 2022, equations 1 to 6 and table 2; section 4.2.3 for r > 0.
 *
 * Deviations. The embedding, the head and what is computed again are not in there. Models
 * that are not GPT's (gated MLPs, grouped keys and values, no dropout, experts), context
 * parallelism, fp32, other schedules and uneven layers have no formula: NAN. */
#ifndef LS_ANALYSIS_MEMORY_FORMULAS_H
#define LS_ANALYSIS_MEMORY_FORMULAS_H

#include "model/model.h"
#include "strategy/strategy.h"

/* Bytes of a rank; NAN: there is no formula. */
typedef struct {
  double parameters, gradients, optimizer;
  double activations; /* of layers */
} LsMemoryFormula;

/* s must be resolved. n_params: of the rank, before data parallelism cuts them. */
LsMemoryFormula ls_memory_formula (const LsModel *m, const LsStrategy *s, uint32_t pp_rank,
                                   uint64_t n_params);

/* What one layer keeps of one micro-batch. */
double ls_layer_activation_bytes (const LsModel *m, const LsStrategy *s);

/* Layers' worth of that on a rank at most. */
double ls_layers_held (const LsModel *m, const LsStrategy *s, uint32_t pp_rank);

#endif
