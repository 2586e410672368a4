/* model/operators_build.h — what the operators_*.c files share: one rank's part
 * of the dimensions, and how an operator is put together. Private to model/.
 *
 * FLOPs are those of matrix products and attention. Kernels that stream through
 * memory have 0: a handful of vector operations per element never binds before
 * the bytes do, and HFU counts matrix FLOPs only. Exceptions are dropout, whose
 * random numbers take about as long as its bytes, and kernels of 2021: apex's norms and
 * TorchScript's GELU. */
#ifndef LS_MODEL_OPERATORS_BUILD_H
#define LS_MODEL_OPERATORS_BUILD_H

#include "model/operators.h"

/* Dimensions on one rank. */
typedef struct LsCut {
  const LsModel *model;
  const LsShard *shard;
  uint64_t tokens;       /* s b / c, with c context-parallel ranks             */
  uint64_t local_tokens; /* outside the tensor-parallel regions: / t with SP   */
  uint64_t heads;        /* a / t                                              */
  uint64_t kv_heads;
  uint64_t q_width;       /* heads * head_dim                              */
  uint64_t k_width;       /* of keys                                       */
  uint64_t v_width;       /* of values, which may be narrower              */
  uint64_t context_width; /* heads * width of a value                      */
  uint64_t ffn;           /* f / t                                              */
  uint64_t vocab;         /* padded V / t                                       */
  uint32_t kind;          /* of the layer: LsLayerTrait                         */
  const LsShard *encoder; /* behind one: how its tokens are cut                  */
  LsDtype act;            /* of activations outside GEMMs: bf16 if these are fp8 */
  uint32_t elt;           /* its bytes per element                              */
} LsCut;

/* Asserts what the strategy must have checked: t divides heads, ffn and, with
 * SP, s b. */
void ls_cut_init (LsCut *cut, const LsModel *m, const LsShard *s);

/* A kernel that moves bytes_per_element for each of rows x cols elements of the
 * activation type. */
LsKernel ls_cut_stream (const LsCut *cut, const char *name, LsKernelKind kind, uint64_t rows, uint64_t cols,
                        double bytes_per_element);

/* The same where each element also takes a random number, as in dropout. */
LsKernel ls_cut_random_stream (const LsCut *cut, const char *name, uint64_t rows, uint64_t cols,
                               double bytes_per_element);

/* Element by element over n tensors of that width, read or written, of all tokens. */
LsKernel ls_cut_pass (const LsCut *cut, const char *name, uint64_t width, uint32_t n);

/* Appends an empty operator; the pointer is good until the next one. */
LsOperator *ls_operator_append (GArray *operators, const char *name, LsTpMode tp);
void ls_operator_fwd (LsOperator *op, LsKernel kernel);
void ls_operator_igrad (LsOperator *op, LsKernel kernel);
void ls_operator_wgrad (LsOperator *op, LsKernel kernel);
/* Kernels, element by element, of rows x columns: how many of the type of activations are read and written
 * for each, forward, and for the gradient of the input; NULL: there is none. */
void ls_operator_passes (LsOperator *op, const LsCut *cut, uint64_t rows, uint64_t columns, const char *fwd,
                         double n_fwd, const char *igrad, double n_igrad);
/* The same of another kind of kernels. */
void ls_operator_streams (LsOperator *op, const LsCut *cut, LsKernelKind kind, uint64_t rows,
                          uint64_t columns, const char *fwd, double n_fwd, const char *igrad, double n_igrad);
/* Appends an operator of such kernels, named as the forward one, that keeps n_kept of its elements. */
LsOperator *ls_operators_passes (GArray *operators, const LsCut *cut, uint64_t rows, uint64_t columns,
                                 const char *fwd, double n_fwd, const char *igrad, double n_igrad,
                                 uint64_t n_kept);
void ls_operator_param (LsOperator *op, uint64_t numel); /* a vector */
/* The weight of a product, rows x columns of this rank, cut over tp as said; n of them. Of an embedding or
 * the head. */
void ls_operator_weight (LsOperator *op, LsTensorCut cut, uint64_t rows, uint64_t columns, uint64_t n);
void ls_operator_table (LsOperator *op, LsTensorCut cut, uint64_t rows, uint64_t columns);
void ls_operator_product (LsOperator *op, uint64_t columns);
/* From this place on: products and their gradients are computed, but what they add up to is another's. */
void ls_operators_leave_params (GArray *operators, guint from);

/* Of the products of an operator those whose rows begin on no 16 bytes (LsKernel.unaligned), after the last
 * kernel is there; or of each that has a weight, from a place on. */
void ls_operator_mark_unaligned (LsOperator *op, const LsCut *cut);
void ls_operators_mark_unaligned (GArray *operators, guint from, const LsCut *cut);

/* A bias that was added to rows x cols elements: its parameters and the column
 * sum that gives its gradient, unless the job's software lists that. */
typedef struct {
  const char *grad_name;
  LsRecipeOperator which;
  uint64_t n; /* so many, each of some of the rows: experts; 0: one */
} LsBias;

void ls_operator_bias (LsOperator *op, const LsCut *cut, LsBias bias, uint64_t rows, uint64_t cols);

/* Does the job's software list the kernels of this operator? Then those around its products are the
 * list's. */
bool ls_cut_lists (const LsCut *cut, LsRecipeOperator which);
/* Puts the kernels that the job's software launches (LsShard.recipes) in the place of those of op, if its
 * list names this operator: of `tokens` rows, an MLP of width ffn. Its own products and attention stay where
 * the list has its core, one by one if it says so, and all of W but for an embedding's
 * (operators_recipe.c). */
void ls_operator_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which, uint64_t tokens,
                              uint64_t ffn);
/* The same of a norm of so many rows of another width. */
void ls_operator_norm_as_launched (LsOperator *op, const LsCut *cut, uint64_t rows, uint64_t width);
/* A module of an adapter's product: its kernels are those of the operator from these on. */
typedef struct {
  uint8_t first_fwd, first_igrad;
  uint64_t tokens, width; /* of what A reads, or B writes */
} LsAdapterPart;
/* Puts the kernels of the list around them. True: the list says what the module keeps, *ret_saved bytes. */
bool ls_operator_adapter_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which,
                                      const LsAdapterPart *part, uint64_t *ret_saved);
/* Of an operator of a mixer, whose sizes are these; those of all operators are filled in. */
void ls_operator_mixer_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which, LsSizes sizes);
/* Of the router or around the experts: rows that the rank's experts compute (P). Products of experts and what
 * is between them have as many as tokens, s b, as other lists do: ls_operator_as_launched. */
void ls_operator_experts_as_launched (LsOperator *op, const LsCut *cut, LsRecipeOperator which,
                                      uint64_t rows);
/* Of experts that run one after the other (LsRecipe.loops): each kernel is launched for each; of fc1, a
 * product for gate and up each if the list has them one by one. Others stay as they are. */
void ls_operator_launch_each (LsOperator *op, const LsCut *cut, uint32_t n_experts, bool is_fc1);
/* Appends to what op does backwards the sum of the gradients of its input, which goes into this sum too;
 * false: nobody lists it. */
bool ls_operator_residual_sum (LsOperator *op, const LsCut *cut, LsRecipeOperator sum);

typedef struct {
  const char *fwd, *igrad, *wgrad; /* GEMMs */
  LsModule module;                 /* whose format they have */
} LsLinearNames;

/* Those of a product of this name; module 0: of none that has a format of its own. */
#define LS_LINEAR(name, module)                                                                              \
  {                                                                                                          \
    name, name "-dgrad", name "-wgrad", module                                                               \
  }

/* The cut for products of such a module in a model whose products are of this dtype: with the format that the
 * module has of its own, where dtype is a scaled one. own: room for its shard, which the cut borrows. */
LsCut ls_cut_in_format (const LsCut *cut, LsModule module, LsDtype dtype, LsShard *own);

/* Adds to op, COLUMN or ROW, the three GEMMs of Y = X W^T with X [tokens, in],
 * W [out, in] on this rank; op saves X. W is no parameter yet. The W GEMM
 * accumulates into an fp32 gradient buffer itself (gradient-accumulation fusion);
 * into a 16-bit one a kernel of its own does. What fp8
 * adds is in operators_fp8.h. */
void ls_operator_linear (LsOperator *op, const LsCut *cut, const LsLinearNames *names, LsDtype dtype,
                         uint64_t in, uint64_t out);

/* Of each head of this rank by a matrix of its own, all in 16 bits; op saves nothing. */
void ls_operator_each_head (LsOperator *op, const LsCut *cut, const LsLinearNames *names, uint64_t heads,
                            uint64_t in, uint64_t out);

/* As ls_operator_linear(), of this rank's tokens alone, outside of the tensor-parallel regions, with a weight
 * that all ranks of tp have: a parameter of op then. */
void ls_operator_local_linear (LsOperator *op, const LsCut *cut, const LsLinearNames *names, LsDtype dtype,
                               uint64_t in, uint64_t out);

/* Append operators of either, named as the product; of the first with its weight, cut as tp says. */
LsOperator *ls_operators_linear (GArray *operators, const LsCut *cut, const LsLinearNames *names, LsTpMode tp,
                                 uint64_t in, uint64_t out);
LsOperator *ls_operators_local (GArray *operators, const LsCut *cut, const LsLinearNames *names,
                                LsDtype dtype, uint64_t in, uint64_t out);

/* Whether the W GEMM itself adds to the gradient; the kernel that adds in x out gradients to
 * what is there, where there is one. */
bool ls_cut_fuses_gradients (const LsCut *cut);
void ls_operator_accumulate (LsOperator *op, const LsCut *cut, uint64_t in, uint64_t out);
/* What adds it to those of earlier micro-batches, of so many rows; nothing where each has its own. */
void ls_operator_add_grad (LsOperator *op, const LsCut *cut, LsKernelRole role, const char *name,
                           uint64_t rows, uint64_t width);

/* Where a norm stands. in_residual: its input also feeds a residual connection, which ends in this sum, so
 * the two gradients are added. */
typedef struct {
  const char *name;
  LsRecipeOperator which, sum;
  bool in_residual;
} LsNormPlace;

/* Layer or RMS norm over the hidden dimension. out_bytes: per element of the result. */
void ls_operators_norm (GArray *operators, const LsCut *cut, const LsNormPlace *place, uint32_t out_bytes);

/* Such a product of an input that another one keeps; the gradients of it meet. */
LsOperator *ls_operators_down_beside (GArray *operators, const LsCut *cut, const LsLinearNames *names,
                                      uint64_t width);
void ls_operators_latent_norm (GArray *operators, const LsCut *cut, const char *name, uint64_t rows,
                               uint64_t width);
void ls_operators_latent_query (GArray *operators, const LsCut *cut);
/* Of plain attention: queries through such a latent, keys and values beside it. */
void ls_operators_latent_qkv (GArray *operators, const LsCut *cut);

/* What chooses keys for a query: columns of its keys and weights, numbers of its norm and beside them, tokens
 * of a key, how many it chooses, and numbers that it writes for a pair of a query and a key. */
typedef struct {
  uint64_t columns, norm, n_others;
  uint32_t ratio, chosen;
  double scores;
} LsIndexer;

void ls_operators_indexer (GArray *operators, const LsCut *cut, const LsIndexer *what);

/* Attention to compressed keys, with its way out (model/compressed.c). */
void ls_operators_compressed_attention (GArray *operators, const LsCut *cut);

/* Residual streams (model/streams.c): before a half of a layer, behind it; behind the
 * embedding, and before the norm of the head. Nothing but for the first two where there is one stream. */
void ls_operators_streams_in (GArray *operators, const LsCut *cut, const char *name);
void ls_operators_streams_out (GArray *operators, const LsCut *cut, const char *name);
void ls_operators_streams_begin (GArray *operators, const LsCut *cut);
void ls_operators_streams_end (GArray *operators, const LsCut *cut);

/* Alternating streams: before the first half of a layer, behind its last. */
void ls_operators_streams_predict (GArray *operators, const LsCut *cut);
void ls_operators_streams_correct (GArray *operators, const LsCut *cut);

/* Beside the halves of a layer (model/beside.c); nothing where the layer has none. Behind
 * attention's sum; in the place of keys and values; before the activation; at the end of a layer; behind the
 * embedding. */
void ls_operators_laurel (GArray *operators, const LsCut *cut);
void ls_operators_norm_gate (GArray *operators, const LsCut *cut); /* behind a norm that has one */
void ls_operators_shared_keys (GArray *operators, const LsCut *cut);
void ls_operators_sparse_gate (GArray *operators, const LsCut *cut);
/* Names of a table that tokens look up, and of its kernels. */
typedef struct {
  const char *table, *lookup, *mask, *zero, *grad, *accumulate;
} LsTableNames;

/* Cut by rows over tp as that of words is, and summed over tp: each token takes so many columns from it. */
void ls_operators_table (GArray *operators, const LsCut *cut, const LsTableNames *names, uint64_t rows,
                         uint64_t width, uint64_t n_columns);
void ls_operators_layer_input (GArray *operators, const LsCut *cut);
void ls_operators_layer_inputs (GArray *operators, const LsCut *cut);
void ls_operators_ngram (GArray *operators, const LsCut *cut); /* behind words */

/* A part of flash attention: queries that meet keys, of each sequence. */
typedef struct {
  uint64_t queries, keys;
  uint64_t heads, kv_heads;
  double pairs;     /* share of the queries x keys that a causal mask leaves       */
  uint32_t cp_rank; /* whose queries, where ranks meet documents that others do not */
} LsAttentionPart;

/* Values of another width than keys: as if both had their mean (operators_mla.c). */
LsKernel ls_attention_kernel (const LsCut *cut, const LsAttentionPart *part, bool is_backward);

/* Attention over sequences that are cut over ranks: what op keeps; its kernels are those of
 * ls_context_step(). Kernels of op itself are of attention in fp8, by Ulysses: forward, casts of what is
 * sent, and last the context cast back; backward the cast of its gradient first, then the three gradients
 * cast back (Transformer Engine's AttnFuncWithCPAndQKVOA2A sends all in fp8). */
void ls_operator_context_parallel (LsOperator *op, const LsCut *cut);

/* What stands in a layer with latent attention between its norm and the sum (operators_mla.c). */
void ls_operators_latent_attention (GArray *operators, const LsCut *cut);

/* The context, so wide, times the sigmoid of a gate (Qwen3-Next): one kernel each way, which keeps both. */
void ls_operator_gate (GArray *operators, const LsCut *cut, uint64_t width);

/* Four calls of attention and their difference (model/difference.c). */
void ls_operators_difference (GArray *operators, const LsCut *cut);
void ls_operators_kv_conv (GArray *operators, const LsCut *cut); /* nothing without one */

/* Of convolved queries and keys (model/convolved.c), nothing where there are none:
 * behind what makes Q, K and V; layers before the scores of a router, returns what these are made of; before
 * the sum of a half. */
void ls_operators_qk_conv (GArray *operators, const LsCut *cut);
uint64_t ls_operators_router_layers (GArray *operators, const LsCut *cut);
void ls_operators_residual_scale (GArray *operators, const LsCut *cut);

/* A mixer, from its way in to its way out (model/mixer.h). */
void ls_operators_mixer (GArray *operators, const LsCut *cut);
void ls_operators_mlp_shift (GArray *operators, const LsCut *cut); /* of an MLP behind one of rwkv7 */

/* A dense MLP of width cut->ffn, its names; and what stands in a layer with experts for it
 * (operators_moe.c). */
typedef struct {
  const char *fc1, *act, *fc2;
  bool is_shared;        /* of shared experts */
  uint32_t adapter_rank; /* of products beside the way up (ls_operators_low_rank()); 0: none */
} LsMlpNames;

void ls_operators_mlp (GArray *operators, const LsCut *cut, const LsMlpNames *names);
void ls_operators_experts (GArray *operators, const LsCut *cut);
/* operators_recipe.c: whether experts of so many columns, with rows of such a width, are computed by products
 * that hold what stands between them; and makes that of three operators in order: the product fc1, the
 * activation and fc2. cut->tokens: rows of all experts here. */
bool ls_cut_fuses_experts (const LsCut *cut, uint64_t ffn, uint64_t width);
void ls_operators_fuse_experts (LsOperator *fc1, const LsCut *cut, uint64_t ffn);
/* Whether products with masks bring a cut's tokens to experts, and whether these, or listed kernels, leave
 * tokens in the order of experts. The products with `sent` rows, so wide, and those back. */
bool ls_cut_masks_tokens (const LsCut *cut);
bool ls_cut_lists_order (const LsCut *cut);
void ls_operator_mask_in (LsOperator *op, const LsCut *cut, uint64_t sent, uint64_t width);
void ls_operator_mask_out (LsOperator *op, const LsCut *cut, uint64_t sent, uint64_t width);
/* Before and behind the experts of a cut whose products are scaled: copies of their rows with some more for
 * each expert, as scales want, where a list has them. */
void ls_operators_pad_experts (GArray *operators, const LsCut *cut, const char *name, uint64_t ffn);
/* Attention whose queries and way out are by experts, all of it (operators_moe.c). */
void ls_operators_attention_experts (GArray *operators, const LsCut *cut);

/* A linear layer with adapters, on this rank: its input, and outputs of n modules. Tensor parallelism cuts
 * the input of a row-parallel one, the outputs of a column-parallel one, and neither of what is on every
 * rank. */
typedef struct {
  bool cuts_in, cuts_out;
  bool is_input_kept; /* by the adapter of another */
  bool is_inside;     /* of a mixer: what is not cut is whole on each rank, of all tokens */
  uint64_t in, out[LS_OPERATOR_MAX_PRODUCTS];
  uint32_t n;
} LsAdapted;

/* What stands beside it; nothing where n is 0 (lora.c). */
void ls_operators_adapter (GArray *operators, const LsCut *cut, const LsAdapted *what);
/* Of this module alone, if the strategy wants one. */
void ls_operators_adapter_of (GArray *operators, const LsCut *cut, LsLoraModule module, LsAdapted what);
/* With adapters: takes from all other operators from this one on what learns. */
void ls_operators_freeze (GArray *operators, guint from, const LsCut *cut);

/* Two products of low rank beside each of n outputs of one input, which what stands before keeps: the first
 * on every rank, for its tokens, the second cut as the outputs are. rank 0: nothing. */
typedef struct {
  uint64_t in;
  uint32_t rank, n;
  uint64_t out[LS_OPERATOR_MAX_PRODUCTS];
} LsLowRank;

void ls_operators_low_rank (GArray *operators, const LsCut *cut, const LsLowRank *what);

/* A block that layers share, up to the sum that a mixer reads (model/block.c). */
void ls_operators_block (GArray *operators, const LsCut *cut);

/* Of plain attention, from cut->model->hidden columns; from heads to them. */
void ls_operators_qkv (GArray *operators, const LsCut *cut);
void ls_operators_proj (GArray *operators, const LsCut *cut);

/* The activation, of an MLP or of experts, of rows x cols: reads gate and up where the MLP has both; op keeps
 * them. */
void ls_operator_activation (LsOperator *op, const LsCut *cut, LsRecipeOperator which, uint64_t rows,
                             uint64_t cols);

/* Attention to the tokens of an encoder, from its way in to its way out; merged: of the queries that meet a
 * layer's own tokens, too (operators_attention.c). */
void ls_operators_cross_attention (GArray *operators, const LsCut *cut);

/* Norms of Q and K, behind what makes them. */
void ls_operators_qk_norm (GArray *operators, const LsCut *cut);

/* The attention of a layer, between the QKV GEMM and the projection. */
void ls_operators_attention (GArray *operators, const LsCut *cut);

/* What fp8 and nvfp4 add around matrix products, as Transformer Engine does it (2.x, module/linear.py
 * and layernorm_linear.py). */

/* Recipes of fp8:
 *
 *   delayed    scales come from earlier steps: a tensor is cast, and transposed for the W
 *              GEMM, in one pass, which notes its maximum as well; a norm writes fp8 itself
 *   current    the tensor's own maximum: a pass over it before the cast
 *   blockwise  a scale for each 1 x 128 block: one pass, no maximum of the whole, 4 bytes of
 *              scale per block (DeepSeek-V3, section 3.3.2)
 *   deepseek   blockwise, by DeepSeek's own kernels, below
 *   mxfp8      a scale of one byte for each 1 x 32 block (OCP Microscaling Formats 1.0)
 *
 * nvfp4: a scale of one byte for each 1 x 16 block, and one for the tensor, from its maximum: a pass over it
 * before the cast (NVFP4Quantizer::quantize_impl in csrc/quantizer.cpp). All three products are in fp4. The
 * random Hadamard transform of what W takes, stochastic rounding and 16 x 16 blocks of weights are in these
 * passes: no traffic of their own.
 *
 * Scales of blocks go along one direction, so of mxfp8 and nvfp4 both layouts are made from the 16-bit
 * tensor, in one pass. Of the others the input of a COLUMN layer is cast on this rank's tokens before
 * sequence parallelism gathers it (so fp8 is what moves), and transposed when the W GEMM wants it; that of a
 * ROW layer, and gradients, are cast into both layouts at once. The fp4 layout for W lies transposed: where
 * it is gathered over ranks, their parts are put together by a kernel (distributed.py,
 * _post_process_nvfp4_gather). Weights are cast once per step, by the optimizer. Hopper's GEMMs want both
 * operands K-major, hence the transposes; Blackwell's would do without for delayed scaling: not modelled.
 * Blockwise and mxfp8 GEMMs are costed as those with one scale, but deepseek's W (LsKernel.by_blocks). What
 * ranks do with the maxima of delayed scaling is in lower_operator.c. With current scaling and nvfp4
 * the maximum of what sequence parallelism cuts, the input of a COLUMN layer and the gradient of a ROW
 * layer's output, is that of all of the tensor: an all-reduce over tp before the cast
 * (NVIDIA/TransformerEngine@d0067d0d, pytorch/module/linear.py: set_quantizer_amax_reduction_group).
 *
 * deepseek: what the published profile of DeepSeek-V3's training launches (deepseek-ai/profile-data,
 * train.json; DeepSeek-V3 Technical Report, section 3.5.2, which regrets it). Each layout is a pass over the
 * tensor by itself: per_token_cast_to_fp8 of an input before its product, and of a gradient before I's; for W
 * per_channel_cast_and_transpose of both, as its scales go along the tokens; and batched_transpose of the
 * weight before each I. What experts get in fp8 was cast before it was sent, and is cast anew for W from fp8.
 * Worked example: T tokens, a product of h x f: forward 3.03 T h bytes, I 3.03 T f + 2 h f, W 3.03 T (h + f),
 * where Transformer Engine moves 3.03 T h, 4.06 T f and 2 T h. Deviations: transposes of scales (10 us each
 * in the profile), and the formats of more bits in which some inputs are kept, are left out. */

/* fp8_linear torchao: Float8Linear compiled (pytorch/ao@36027d82:torchao/float8/float8_linear.py, _ops.py;
 * mxfp8: prototype/moe_training/mxfp8_linear.py). Each pass casts what it multiplies. Before a product the
 * input and, unless fp8 is what FSDP gathers, the weight: amax, then one layout. For I the gradient as above,
 * and the weight in its other layout; for W the input in its other layout. What is kept for these is the
 * input in 16 bits. With one scale for a tensor it is in fp8 where tensor parallelism gathers it so
 * (float8_tensor_parallel.py), and was always before July 2025 (torchao-cast:
 * manual_float8_matmul_with_args_in_float8): other layouts are then made from fp8. mxfp8 has no amax, and two
 * kernels for a gradient.
 * Worked example: T tokens, a product of h x f, one scale: forward 5 T h + 5 h f bytes, I 6 T f + 3 h f,
 * W 3 T h; torchao-cast: I 6 T f + 2 h f, W 2 T h.
 * Deviations: not compiled, each cast is several kernels over fp32; casts of shards before FSDP gathers them,
 * once for each gather, are left out, as are weights in fp8 that torchao-cast keeps to the backward; scales
 * of rows are taken for one of the tensor. */

/* Attention in fp8, as Transformer Engine 2.x runs cuDNN's (NVIDIA/TransformerEngine@d0067d0d,
 * transformer_engine/pytorch/attention/dot_product_attention: FusedAttnFunc of backends.py,
 * combine_and_quantize of utils.py), with Q, K and V in three tensors, between linear layers whose
 * activations are in 16 bits:
 *
 *              before forward            behind it     before backward  behind it
 *     delayed  torch.cat of Q, K, V;     O is brought  dO is cast       torch.cat of dQ, dK, dV,
 *              cast, which notes amax    to 16 bits                     which are brought to 16 bits
 *     current  torch.cat; amax; cast     -             amax; cast       -
 *     mxfp8    each cast into both       -             both layouts     -
 *              layouts
 *
 * With current and mxfp8 O and the gradients come from the kernel in 16 bits (NVTE_DPA_FP8CS_O_in_F16 is 1).
 * With groups of heads a sum follows the backward (ls_attention_group_sum_bytes()). Kept for the backward
 * are Q, K and V in fp8, of mxfp8 in both layouts, not in 16 bits; of the context, what the projection
 * keeps, as without.
 *
 * Worked example. 8,192 tokens, 32 heads of 128, 8 of keys: Q, K and V are 50.3 M elements. Delayed moves
 * 4 + 3 bytes for each and 3 of 33.6 M of the context forward; 3 of dO's 33.6 M, 2 + 3 of 50.3 M, and the
 * 570 MB of the sum backward.
 *
 * Deviations. Permuting and swizzling the scales of mxfp8 is left out, as is the all-reduce of maxima. That
 * Transformer Engine keeps the context in 16 bits (delayed: fp8) beside the projection's own copy in fp8 is
 * not counted, here as in 16 bits. */

/* Whether it is so in this layer. */
bool ls_scaled_attention (const LsCut *cut);
/* Bytes per element of Q, K and V that are kept for its backward. */
double ls_scaled_attention_kept (const LsCut *cut);
/* Bytes of an element that its kernel reads, and of one of O and of gradients; whether scales are of
 * blocks. */
typedef struct {
  double in, out;
  bool by_blocks;
} LsScaledAttention;
LsScaledAttention ls_scaled_attention_bytes (const LsCut *cut);
/* Kernels before and behind each pass of op. */
void ls_scaled_before_attention (LsOperator *op, const LsCut *cut, bool is_backward);
void ls_scaled_after_attention (LsOperator *op, const LsCut *cut, bool is_backward);

/* Bytes per element that the norm before a COLUMN layer writes. */
uint32_t ls_scaled_norm_out_bytes (const LsShard *s);

/* The format in which a product in this one keeps its input. */
LsDtype ls_scaled_kept (const LsShard *s, LsDtype dtype);

/* A product, or n of them side by side over all tokens together. */
typedef struct {
  uint64_t in, out, n;
  bool is_sent; /* its input came from other ranks in fp8 */
} LsScaled;

/* Kernels that precede the GEMM; its gradient's; W's. */
void ls_scaled_before_fwd (LsOperator *op, const LsCut *cut, const LsScaled *p);
void ls_scaled_before_igrad (LsOperator *op, const LsCut *cut, const LsScaled *p);
void ls_scaled_before_wgrad (LsOperator *op, const LsCut *cut, const LsScaled *p);
/* W's product, whose operands both have scales of blocks along the tokens where that is so. */
LsKernel ls_scaled_wgrad (const LsShard *s, LsKernel gemm);
/* What is sent in fp8 may be cast before, by a kernel of its own. */
void ls_scaled_cast_sent (LsOperator *op, const LsCut *cut, uint64_t rows, uint64_t cols);

#endif
