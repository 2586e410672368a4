/* model/mixer.h — what stands in some layers for attention: state-space models, linear attention, short
 * convolutions.
 *
 * Problem. A head carries a state of `state` x `head_dim` numbers from token to token. Training cuts a
 * sequence into chunks of Q tokens: within one, tokens meet each other in matrix products as in attention;
 * between chunks the state goes on.
 *
 * Letters: H heads of P (mixer_heads, mixer_head_dim), G groups of keys of N (mixer_groups, mixer_state),
 * inner width I = H P, keys K = G N, k taps of a convolution over tokens, h hidden, R the rank of the step
 * sizes (mixer_rank). A row (mixer.c) has the columns into it, those that are convolved and what is learned
 * beside the products, as so many I, K and H; a convolution learns k a column, k + 1 with a bias, a norm as
 * many as it is wide; mamba1 I (R + 2 N) + R I, I (N + 2) and norms of R + 2 N; rwkv7 h of the MLP behind it
 * too; product is one matrix, I = h, of one head. I h lead out of it; with mixer_bias, biases of all
 * columns into it and of h out of it, and of conv of the convolved ones. mixer_plain_conv leaves out the
 * one of k + 1, mixer_plain_keys the norms of mamba1, which Jamba has and Mamba has not. mamba2 with R > 0
 * (PLaMo 2) makes keys and step sizes of the convolved columns as mamba1 does, by I (R + 2 K) + R H. kda
 * also has, through P columns each, I for the decay of each channel and I for the gate (mixer_full_gate:
 * that as I columns into it instead; mixer_gate_bias: with a bias of I). linear with R > 0 (gated linear
 * attention) has, through R columns, K for the decay of each channel of keys, with a bias. mixer_ungated
 * takes away I columns of delta and of linear, mixer_undecayed H columns and the 2 H of delta (DeltaNet).
 * rglru, a real-gated linear recurrent unit, makes of the convolved columns of each head two gates as
 * wide, P x P each, of what comes in and of the decay; the other I columns gate what it gives. Products of
 * a chunk, m n k:
 *
 *     mamba2   C B^T of each group: Q Q N; of each head (C B^T) X: Q P Q, B^T X: P N Q, C S: Q P N
 *     delta    of each head K K^T, Q K^T: Q Q N; W: Q N Q; U, output: Q P Q; W S, Q S: Q P N; K^T V: N P Q
 *     kda      as delta, with N = P, and a value for each key, which heads of a group share
 *     linear   of each head Q K^T: Q Q N; the output: Q P Q; Q S: Q P N; K^T V: N P Q, with decays or none
 *     mlstm    as linear
 *     rwkv7    of each head (N = P) four of Q Q N; four of Q P Q; two each of Q P N and N P Q
 *     conv     none, and none of a product
 *     mamba1   none: a scan of 9 I N operations a token (state-spaces/mamba, issue 110)
 *     rglru    none: a scan of 10 I operations a token, h' = a h + sqrt(1 - a^2) i x with a = exp(-8 r s),
 *              s = softplus of the decay: two products and an exponential for a, a^2, 1 - a^2 and its root,
 *              two products for what comes in, a product and a sum
 *
 * Context parallelism exchanges tokens for heads, as Ulysses does attention's: behind the way into it each
 * of cp ranks gets all tokens of its heads, and before the way out of it gives them back. Of mamba2 both
 * inner activations, B, C and the steps go by themselves, of delta nets all in one; tokens in the order of
 * attention's balance are put in theirs (Megatron-LM at d98e8a64, core/ssm/mamba_context_parallel.py and
 * gated_delta_net/common.py). With fewer groups on a rank of tp than cp, B and C of mamba2 go to each rank
 * that has heads of a group, and C B^T is on each. No library was found that cuts the others: they are
 * refused.
 *
 * Worked example: mamba2 with Q 256, H 8, P 64, G 1, N 128: a chunk is
 * 2 (256^2 128 + 8 (256^2 64 + 2 x 256 x 64 x 128)) = 151.0 MFLOP.
 *
 * mlstm (Beck et al. 2024, xLSTM, arXiv 2405.04517, section 2.3; 2025, xLSTM 7B, arXiv 2503.13427) has two
 * exponential gates a head, of what comes in and of the state, and a key for each head (G = H). Its chunks
 * are those of linear attention (Beck et al. 2025, Tiled Flash Linear Attention, arXiv 2503.14376, section
 * 3); the vector that it divides by, N a head, and the maximum that its gates are kept below are left out: 1
 * of P numbers of a state. Worked example: xLSTM-7B (h 4096, H 8, P 512, N 256): 12288 + 16 columns in.
 *
 * rwkv7 (Peng et al. 2025, RWKV-7 "Goose", arXiv 2503.14456, section 4) mixes each token with the one
 * before: x + (x' - x) s, with a vector s for each of what makes receptance r, keys k, values v, and by
 * products of low rank, R columns together, decays w, learning rates a, gates g and, of all but the first
 * layer, how values mix with those of the first. With b = k' a, k' keys of unit length, the state is S =
 * (diag (w) - b k'^T) S + k v^T and each head gives r S. Its chunks: q b, q k, r k, r b of Q Q N; from
 * them (I + tril (q b))^-1 (q S + tril (q k) v) = u, and r S + tril (r k) v - tril (r b) u; the state
 * gains k v^T - b u^T. Elements moved beside products, of I: 7 for shifts and 8 back, 11 for what makes w,
 * k, v, k' and b and 17 back, 6 for the norm, the bonus (r k) v and the gate and 12 back; kept 6 of
 * shifted tokens, one of which a product's input is, 4 of low-rank products, 5 of what goes into chunks.
 * The MLP's shift moves 2 and 3 of h and keeps one more. Worked example: RWKV-7 1.5B (h 2048, 32 heads of
 * 64, R 96 + 96 + 64 + 256): a layer has 12 h^2 + 2 h R + 19 h = 52.5 M weights; 24 layers with both
 * tables of 65,536 rows 1.53 G.
 *
 * Kernels. A product is a kernel of Triton (access triton-dot of compute/cost.h), as flash-linear-attention
 * 0.5 and mamba_ssm 2.3 have them: their small tiles reach a seventh of what cuBLAS does on Hopper. Backward
 * each has two gradients, and some are made again from what was kept (n_again): scores, and of mamba2 the
 * states and what dt's gradient takes (mamba_ssm/ops/triton/ssd_combined.py of
 * state-spaces/mamba@e9594ce1: 143 kFLOP a token and head of P 64, N 128 for 53 forward); of delta nets W, U,
 * the states and twice the scores (fla/ops/gated_delta_rule/chunk.py of
 * fla-org/flash-linear-attention@bc3b101d: 491 for 180 with N = P = 128). States of delta nets, mlstm, rwkv7
 * and linear attention go from chunk to chunk inside a kernel, once forward and three times backward, a step
 * of latency each (n_serial).
 *
 * mamba2 keeps what its way in makes and what its scan gives before the gate, and makes all else again: the
 * convolution and the states too (MambaSplitConv1dScanCombinedFn of the same file). The gate is in the norm
 * behind the scan, as mamba_ssm's own module calls it. Megatron-LM has it in the scan: its mixer is a list of
 * kernels (strategies/kernels: megatron-core-mamba2), whose time forwards is that of vLLM's table of an H100
 * but for 2 to 23 % (tests/unit/job/test_mamba2_kernels.c).
 *
 * Deviations. Products within a chunk are whole squares, though causal; the solution of the triangular system
 * of delta nets is left out (Q^3 / 3 a head, a sixth of one product); the state's pass between chunks of
 * mamba2 is bytes only. Sums that give the gradients of biases of rglru, of decays of linear and of the gate
 * of kda are left out, and so are blocks of a chunk whose decays are had apart. Kernels of gated delta
 * nets alone were measured, by others (topologies/calib/access.set.json): mean error 11 % over heads and
 * lengths (tests/unit/job/test_mixer_kernels.c).
 *
 * References: Gu and Dao 2023 (mamba1), Dao and Gu 2024, section 6 (mamba2), Yang et al. 2024, sections
 * 3.2 and 3.3 (delta), Yang et al. 2023, section 4 (linear with decays), MiniMax 2025, section 2.2 (linear),
 * Kimi Team 2025, section 4 (kda), De et al. 2024
 * (rglru), huggingface/transformers@2c774e29 src/transformers/models/rwkv7/modular_rwkv7.py (rwkv7). Sizes
 * and parameters: modeling files of Transformers for nemotron_h, jamba, qwen3_next, minimax, lfm2 and
 * recurrent_gemma, of the publisher for kimi_linear. */
#ifndef LS_MODEL_MIXER_H
#define LS_MODEL_MIXER_H

#include "base/enum_name.h"
#include "model/model.h"

/* Multiples of the inner width I, of all keys K, of heads H, of the width of one and of hidden. */
typedef struct {
  uint8_t inners, keys, heads, head_dims, hiddens;
} LsMixerColumns;

/* Pairs of products of low rank beside it, such as h x P and P x I: how many, of which rank, and the columns
 * that each makes. */
typedef struct {
  uint32_t n;
  uint64_t rank, width;
} LsMixerPairs;

/* What its kernels take their time from: nothing of its own, the bytes and FLOPs of a scan, products of
 * chunks, or of those that were measured. */
typedef enum { LS_MIXER_NO_KERNELS, LS_MIXER_SCAN, LS_MIXER_CHUNKS, LS_MIXER_MEASURED_CHUNKS } LsMixerKernels;

/* With context parallelism: not cut; what goes from tokens to heads in one exchange, or in several. */
typedef enum { LS_MIXER_UNCUT, LS_MIXER_TOGETHER, LS_MIXER_APART } LsMixerExchanges;

struct LsCut;
typedef struct LsMixerProduct LsMixerProduct; /* of chunks: mixer.c */

/* What is true of a kind wherever it is asked: rooms ask the row and not the kind, so a new kind is a row and
 * what it alone needs. Functions may be NULL: there is none of it. */
typedef struct {
  LsMixerColumns in, convolved, learned; /* columns into it, and of these through a convolution; what else is
                                            learned, beside taps */
  LsMixerParts may;                      /* not 0: what a file may say of it that it may not of all    */
  uint16_t chunk;                        /* tokens, where the file does not say                        */
  uint8_t kernels;                       /* LsMixerKernels                                             */
  uint8_t exchanges;                     /* LsMixerExchanges                                           */
  bool is_whole;                         /* not cut over ranks of tp                                   */
  bool has_conv_bias;                    /* unless the file says that it has none                      */
  bool selects;                          /* keys and steps are products of what is convolved, if of a rank */
  bool steps_by_head; /* one of these a head, and keys of groups; else a step for each channel */
  bool shifts;        /* tokens are mixed with those before, in the MLP behind it too */
  bool makes_again;   /* backwards, from what the way in keeps, the convolution and states */
  uint8_t n_products;
  const LsMixerProduct *products;
  const char *no_adapters; /* why there are none (in words of it); NULL: there may be   */
  LsMixerPairs (*pairs) (const LsModel *m);
  uint64_t (*params) (const LsModel *m);                            /* learned beside `learned` */
  void (*append_more) (GArray *operators, const struct LsCut *cut); /* behind the way in        */
  void (*append_mixing) (GArray *operators, const struct LsCut *cut);
  void (*append_gate) (GArray *operators, const struct LsCut *cut);
} LsMixerRow;

extern const LsMixerRow ls_mixers[LS_N_MIXERS];
extern const LsEnumName ls_mixer_names[LS_N_MIXERS + 1]; /* in files of models, by value */

/* Columns, of all ranks. */
uint64_t ls_mixer_inner (const LsModel *m);
uint64_t ls_mixer_in_width (const LsModel *m);
uint64_t ls_mixer_conv_width (const LsModel *m);

LsMixerPairs ls_mixer_pairs (const LsModel *m);

/* Whether step sizes and keys are made of the convolved columns. */
bool ls_mixer_selects (const LsModel *m);

/* All that is learned beside matrix products with tokens. */
uint64_t ls_mixer_other_params (const LsModel *m);

/* FLOPs of the products of a sequence, forward; with heads cut over so many ranks, of all of them. */
double ls_mixer_flops (const LsModel *m, uint32_t n_ranks, uint32_t seq);

/* --- with context parallelism --- */

/* Whether whole sequences of some heads can be on each of cp ranks. */
bool ls_mixer_has_context_parallelism (const LsModel *m);
#endif
