/* model/lora.h — adapters of low rank next to frozen weights (Hu et al. 2021, LoRA; Dettmers et al. 2023,
 * QLoRA).
 *
 * Y = X W^T + s (X A^T) B^T: W [out, in] does not learn, A [r, in] and B [out, r] do. Of r only the size
 * matters, of s nothing.
 *
 *     forward    X W^T, X A^T, (.) B^T, a product by s, a sum
 *     backward   dY W and dY B, (.) A, their sum; dB, dA; no dW
 *
 * so a linear layer of N weights costs 4 N FLOPs a token, and 6 r (in + out), instead of 6 N. What only dW
 * needs is not kept: the input of a layer, unless its adapter takes it. Frozen weights have neither
 * gradients nor optimizer states. All else of the model is frozen too: norms, biases, embedding, head,
 * experts.
 *
 * Tensor parallelism. Beside a column-parallel layer A is on every rank, of that rank's tokens with sequence
 * parallelism, and B is cut as W is; beside a row-parallel one A is cut as W is, and B on every rank:
 *
 *     column    a: T_local x r x in                    b: gathers T r; T x out / t x r
 *     row       a: T x r x in / t, T r summed over tp  b: T_local x out x r
 *
 * Ranks beyond one for a head of keys and values have a copy of that head, and of B beside it.
 *
 * Q, K, V, gate and up have an adapter each (PEFT; Megatron-Bridge's canonical LoRA).
 *
 * Latent attention. Each of its products has one (PEFT's all-linear: q_a_proj, q_b_proj, kv_a_proj_with_mqa,
 * kv_b_proj, o_proj): Q those of queries, K those of keys and values, which are made together. What makes a
 * latent is on every rank for its tokens, and so are both A and B beside it; what is made of one is
 * column-parallel.
 *
 * Mixers (model/mixer.h). Each linear layer of theirs that a modeling file of Transformers has is one with
 * adapters; convolutions, and gates that are parameters of heads, are none. With I, K, H and R of mixer.h,
 * their columns are
 *
 *     mamba1, mamba2, conv   in_proj all; of mamba1, and of mamba2 with R > 0, x_proj R + 2 N or R + 2 K
 *                            (select) and dt_proj I or H (step)
 *     delta    of 2   in_proj_qkvz 2 K + 2 I, in_proj_ba 2 H                            (qwen3_next)
 *              of 4   in_proj_qkv 2 K + I, in_proj_z I, in_proj_b H, in_proj_a H        (qwen3_5)
 *              of 6   q K, k K, v I, g I, a H, b H, all _proj                           (olmo_hybrid)
 *     linear   qkv_proj 3 I, output_gate I                                              (minimax)
 *     kda      q K, k K, v I, b H, all _proj, and g_proj I or of low rank; f_a_proj, f_b_proj, g_a_proj,
 *              g_b_proj beside it                                                       (kimi_linear)
 *     rglru    linear_x I, linear_y I                                                   (recurrent_gemma)
 *     mlstm    q K, k K, v I, ogate_preact I, igate_preact H, fgate_preact H            (xlstm)
 *     product  none
 *
 * and one out of it: of delta of 6 and kda o, of others out. Q, K and V have their names there too; the rest
 * into it and beside it is in. Ways in and out are cut over tp as columns and rows are, products of low rank
 * as latents. What makes keys and step sizes (select) has its output whole on each rank: so has B beside it,
 * and A beside what these make (step).
 *
 * A gate of attention (attention_gate) is part of the product of queries, whose adapter is as wide as both
 * (qwen3_next); made by a product of its own (attention_gate_own, afmoe's gate_proj) it has one of its own,
 * which comes and goes with that of queries.
 *
 * QLoRA. W is kept in NF4, 4 bits, with a constant of 8 bits for each block of 64 and one of 32 for 256 of
 * these: 4.127 bits a weight (Dettmers et al. 2023, section 3). Each use of it first writes it in 16 bits,
 * the forward and dY W alike (bitsandbytes, dequantize_4bit): N (4.127 / 8 + 2) bytes. Only the linear
 * layers of attention, mixers and MLPs are quantised.
 *
 * Products in a scaled format. Adapters' products stay in 16 bits (NeMo's are no layers of Transformer
 * Engine). A norm writes 16 bits for them, which are cast for the frozen product by a kernel of its own
 * (return_layernorm_output). What only dW needs is not made: inputs and gradients are cast into one layout.
 * Weights in fp8 alone (fp8_params) are kept once, N bytes, and transposed before each dY W, 2 N bytes: both
 * layouts of 70 billion would fill a GPU of 141 GB, on which MLPerf's runs have them whole.
 *
 * Worked example. Llama 3.1 8B, r 16, all linear layers: a layer has 16 (2 x 4096 + 2 (4096 + 1024) + 2 x
 * 4096 + 3 (4096 + 14336)) = 1.31 M, the model 41.9 M. DeepSeek-V3 (h 7168, latents 1536 and 512 + 64, 128
 * heads of 192 and 128), r 16: 16 (7168 + 1536 + 1536 + 24576 + 7168 + 576 + 512 + 32768 + 16384 + 7168) =
 * 1.59 M a layer, 97.0 M in all 61. Qwen3.5-27B (h 5120), r 16, a layer with a delta net of 48 heads of 128
 * on 16 keys of 128, I 6144, K 2048: 16 (4 x 5120 + 10240 + 6144 + 48 + 48 + 6144 + 5120) = 0.77 M.
 *
 * Software. A list of kernels (model/recipe.h: lora-a, lora-b) has what stands around the products of a
 * module: PEFT's adapters are in fp32, and their inputs are cast to that and back. Without a list inputs are
 * of the type of activations.
 *
 * Deviations. Dropout before A is left out, but where a list has it (hf-transformers-4.49-peft-dropout and
 * -peft-fp32). Gradients reach the embedding's output, as PEFT asks for
 * (enable_input_require_grads): without it the first layer's products with them are not made. Megatron-Bridge
 * cuts A over tp beside column-parallel layers, and gathers as much; Megatron-Core's delta net has one
 * product in. With more ranks than heads of keys and values it has no copies but cuts Q, K and V of a group
 * as one, beside adapters too, and gathers what they make (core/transformer/attention.py). Sums over tp of
 * the gradient of A beside step sizes, r R numbers a layer, are left out. */
#ifndef LS_MODEL_LORA_H
#define LS_MODEL_LORA_H

#include "model/model.h"

typedef enum {
  LS_LORA_Q = 1,
  LS_LORA_K = 2,
  LS_LORA_V = 4,
  LS_LORA_O = 8,
  LS_LORA_GATE = 16,
  LS_LORA_UP = 32,
  LS_LORA_DOWN = 64,
  LS_LORA_IN = 128, /* of mixers */
  LS_LORA_SELECT = 256,
  LS_LORA_STEP = 512,
  LS_LORA_OUT = 1024,
  LS_LORA_ATTENTION = 15,
  LS_LORA_MLP = 112,
  LS_LORA_MIXER = 1920,
  LS_LORA_ALL = 2047
} LsLoraModule;

/* A linear layer into a mixer: which module it is, and its columns on all ranks. */
typedef struct {
  LsLoraModule module;
  uint64_t columns;
} LsLoraProduct;

#define LS_LORA_MAX_PRODUCTS 6

typedef struct {
  uint32_t rank;    /* 0: all is trained, and the rest does not matter */
  uint32_t modules; /* set of LsLoraModule */
  bool is_nf4;      /* frozen weights of linear layers in 4 bits       */
  bool is_fp8;      /* in fp8 and nothing else                         */
} LsLora;

/* Those that make the way into a mixer, of a model of one kind; how many. The module of the way out. */
uint32_t ls_lora_products_in (const LsModel *m, LsLoraProduct ret_products[LS_LORA_MAX_PRODUCTS]);
LsLoraModule ls_lora_way_out (const LsModel *m);
/* What is wrong with mixer_products; NULL: nothing. Static. */
const char *ls_lora_check_products (const LsModel *m);

/* "q,k,v,o,gate,up,down,in,select,step,out" or parts of it, "all-linear" or NULL: all that the model has.
 * False: *ret_wrong is the word, the caller's. */
bool ls_lora_modules (const LsModel *m, const char *text, uint32_t *ret_modules, char **ret_wrong);

/* The words of such a set, with this between them; the caller's. */
char *ls_lora_words (uint32_t modules, const char *between);

/* Bytes of so many weights in NF4, with their constants. */
uint64_t ls_nf4_bytes (uint64_t numel);

uint64_t ls_lora_params (const LsModel *m, const LsLora *lora); /* of all adapters of the model */

/* What a step over so many sequences of seq tokens computes less than one that trains all, whose vocabulary
 * is padded to this: weight gradients that nobody needs, less the adapters. */
double ls_lora_flops_saved (const LsModel *m, const LsLora *lora, uint64_t vocab, uint32_t seq,
                            double n_sequences);

#endif
