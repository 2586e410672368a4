/* model/expert_load.h — how many tokens each expert gets.
 *
 * Problem. A router sends every token to top_k of E experts. How evenly, the data decide; here
 * it is an input.
 *
 * Model. An expert has a share w of all assignments, sum of w = 1, the same on every rank and in
 * every layer and micro-batch. N assignments become whole numbers that add up to N: each
 * expert gets floor (N w), and what is left over goes one by one to the largest remainders
 * (to the lower number among equals). No token is sent to an expert twice, so that w is
 * at most 1 / top_k: what a wanted share has above that goes to the others, in proportion.
 * With a capacity c an expert takes ceil (c N / E) and drops the rest. Some programs multiply with equal
 * matrices: rows of zeros follow the tokens of an expert (LsExpertPadding).
 *
 *     even               1 / E
 *     round-robin        1 / E, and a token has the top_k experts behind those of the token before it
 *     zipf:S             (e + 1)^-S of expert e = 0, 1, ...: the busiest are on the first rank
 *     lognormal:S:SEED   exp (S z), z normal: SplitMix64 of the seed, then Box-Muller
 *     a,b,c,...          these, over and over again
 *
 * Worked example. "3,1" for 4 experts and 10 assignments: w = 3/8, 1/8, 3/8, 1/8; N w = 3.75,
 * 1.25, 3.75, 1.25; floors 3 1 3 1, and the two left go to the first and the third: 4 1 4 1. Padded to the
 * fullest they are 4 4 4 4 rows; with a capacity of 1.2 and its padding 3 3 3 3, of which 8 are tokens.
 *
 * Deviations. Real loads differ between layers, micro-batches and sources. Megatron-LM applies
 * a capacity to the tokens of each source; that is the same here, as all sources are alike. */
#ifndef LS_MODEL_EXPERT_LOAD_H
#define LS_MODEL_EXPERT_LOAD_H

#include "base/draw.h"
#include "model/operators.h"

/* Whether all experts have as many tokens; whether it is "round-robin". */
bool ls_expert_load_is_even (const char *load);
bool ls_expert_load_is_in_turn (const char *load);

/* The experts of a token, as a draw from all. */
LsDraw ls_expert_draw (const LsModel *m, const LsShard *s);

/* Shares of m's experts, newly allocated, or NULL: *ret_why says why not (newly allocated), or is
 * NULL if all are alike. */
double *ls_expert_shares (const char *load, const LsModel *m, char **ret_why);

/* Tokens that each expert computes of what an ep x etp group of ranks sends in a layer, and what
 * each is sent if none were dropped; [n_experts], NULL: not wanted. */
void ls_expert_tokens (const LsModel *m, const LsShard *s, uint64_t *ret_kept, uint64_t *ret_sent);

/* Rows that are brought to each expert, and rows that it computes: the tokens that it keeps, and rows of
 * zeros; [n_experts]. */
void ls_expert_rows (const LsModel *m, const LsShard *s, uint64_t *ret_brought, uint64_t *ret_computed);

/* Rows that are brought to the experts of each ep rank: [ep]. */
void ls_expert_rows_of_ranks (const LsModel *m, const LsShard *s, uint64_t *ret_rows);
/* Whether they are of different numbers; false without experts. */
bool ls_expert_ranks_differ (const LsModel *m, const LsShard *s);

/* Share of the assignments that are computed: below 1 if a capacity drops some. */
double ls_expert_kept_share (const LsModel *m, const LsShard *s);
/* Rows of zeros that are computed, over the assignments. */
double ls_expert_blank_share (const LsModel *m, const LsShard *s);

#endif
