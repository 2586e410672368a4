/* model/scaling.h — the loss that a model of so many parameters reaches with so many tokens, and the batch
 * beyond which more tokens are needed.
 *
 * Equations. N parameters, D tokens, L loss in nats per token of the authors' tokeniser and data.
 *
 *     L (N, D) = E + A / N^a + B / D^b                  of tokens: Hoffmann et al. 2022, equation 2
 *     L (N, S) = E + A / N^a + B / S^b                  of steps with endless batches: Kaplan et al. 2020,
 *                                                       equation 1.6, as A = N_c^a, B = S_c^b
 *     B_c = B0 x^e                                      the critical batch, in tokens, of the loss x (Kaplan
 *                                                       et al., equation 5.3) or of the tokens x
 *
 * Steps of B tokens need D (1 + B / B_c) tokens in D / B (1 + B / B_c) steps, where D are those that small
 * batches need; S = D / B_c are the steps that endless batches need. A law of steps so gives D = S B_c (L).
 * A law of tokens is taken to be of small batches. E + A / N^a is what no number of tokens goes below.
 *
 * Worked example. Besiroglu et al. 2024: 70e9 parameters and 1.4e12 tokens give 1.974; 1.899 is the least.
 * Kaplan et al.: 70e9 come to 2 nats in 9,910 steps of endless batches; B_c is 7.74e6, so 76.7e9 tokens.
 *
 * Deviations. Laws were fitted to dense decoders, each trained to its own end: nothing is said of other
 * learning rates, data that are seen again, experts. Losses of different tokenisers do not compare.
 *
 * Reference: Hoffmann et al. 2022, arXiv 2203.15556; Besiroglu et al. 2024, arXiv 2404.10102; Kaplan et al.
 * 2020, arXiv 2001.08361; McCandlish et al. 2018, arXiv 1812.06162, equation 5.4. */
#ifndef LS_MODEL_SCALING_H
#define LS_MODEL_SCALING_H

#include "model/model.h"

/* Which parameters N counts: all; those of the layers. */
typedef enum { LS_SCALING_ALL, LS_SCALING_LAYERS } LsScalingParams;

/* coefficient / x^exponent, or (scale / x)^exponent; both 0: it is not there. */
typedef struct {
  double coefficient, scale, exponent;
} LsPowerTerm;

typedef enum { LS_CRITICAL_OF_LOSS, LS_CRITICAL_OF_TOKENS } LsCriticalOf;

typedef struct {
  char *name, *source;
  int params; /* LsScalingParams */
  double irreducible;
  LsPowerTerm model;
  LsPowerTerm tokens, steps; /* one of them; neither: it says nothing of the loss */
  struct {
    int of;                  /* LsCriticalOf */
    double tokens, exponent; /* B0, e; B0 0: it says nothing of batches */
  } critical;
} LsScalingLaw;

void ls_scaling_law_clear (LsScalingLaw *law);

bool ls_scaling_has_loss (const LsScalingLaw *law);
bool ls_scaling_has_critical (const LsScalingLaw *law);

/* N of a model. */
double ls_scaling_params (const LsScalingLaw *law, const LsModel *m);

/* Of laws with a loss. The least loss of N parameters; the tokens that small batches need for a loss,
 * INFINITY where that is not above the least; the loss after so many. */
double ls_scaling_floor (const LsScalingLaw *law, double n_params);
double ls_scaling_tokens (const LsScalingLaw *law, double n_params, double loss);
double ls_scaling_loss (const LsScalingLaw *law, double n_params, double tokens);

/* Of laws with one: tokens, at that loss and where small batches need so many tokens for it. */
double ls_scaling_critical (const LsScalingLaw *law, double loss, double tokens);

#endif
