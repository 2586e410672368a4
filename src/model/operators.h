/* model/operators.h — every operator of a layer, of the embedding, of the head
 * and of the loss, as kernels on one rank.
 *
 * An operator has forward kernels, input-gradient kernels (I) and weight-gradient
 * kernels (W), the bytes that it keeps from its forward to its backward, and its
 * parameters. What tensor parallelism does around it is said by `tp`; the
 * collectives themselves are inserted by parallel/:
 *
 *   LS_TP_NONE    nothing. With sequence parallelism its activations are 1/t.
 *   LS_TP_COLUMN  forward: input gathered (SP). backward: gradient of the input
 *                 all-reduced, or reduce-scattered (SP), beside the W GEMM;
 *                 input gathered again (SP) beside the I GEMM.
 *   LS_TP_ROW     forward: output all-reduced, or reduce-scattered (SP).
 *                 backward: gradient of the output gathered (SP).
 *   LS_TP_VOCAB   as LS_TP_ROW, but the output is all-reduced even with SP: learned
 *                 positions are added to whole sequences, which are cut afterwards.
 *   LS_TP_REDUCE  forward: `reduce_bytes` all-reduced afterwards, no overlap;
 *                 backward: nothing (vocabulary-parallel cross-entropy).
 *   LS_TP_GATHER  forward: `reduce_bytes` gathered afterwards, no overlap; backward:
 *                 nothing, as each rank takes its part (a loss over whole logits).
 *
 * Column-parallel products that were not joined may each gather, and be reduced, by themselves:
 * n_gathers and n_reduces times what is said above.
 */
#ifndef LS_MODEL_OPERATORS_H
#define LS_MODEL_OPERATORS_H

#include "model/documents.h"
#include "model/kernel.h"
#include "model/lora.h"
#include "model/model.h"
#include "model/optimizer_kind.h"
#include "model/recipe.h"

typedef enum { LS_TP_NONE, LS_TP_COLUMN, LS_TP_ROW, LS_TP_VOCAB, LS_TP_REDUCE, LS_TP_GATHER } LsTpMode;

/* What expert parallelism does around an operator (operators_moe.c, lower/layers/lower_experts.c):
 *
 *   LS_EP_DISPATCH  forward: tokens go to their experts before it: an all-to-all over ep, then
 *                   gathered over etp. backward: gradients come back after it.
 *   LS_EP_COMBINE   forward: results go back after it: reduce-scattered over etp, then an
 *                   all-to-all over ep. backward: gradients go there before it.
 *   LS_EP_GATHER    of a forward that runs again: tokens are only gathered over etp before it. */
typedef enum { LS_EP_NONE, LS_EP_DISPATCH, LS_EP_COMBINE, LS_EP_GATHER } LsEpMode;

/* What an operator has to do with shared experts that run beside the exchange of tokens
 * (lower/layers/lower_experts.c). */
typedef enum {
  LS_BESIDE_NONE,
  LS_BESIDE_DISPATCH, /* it runs beside the dispatch, and beside the return of gradients from it  */
  LS_BESIDE_COMBINE,
  LS_BESIDE_GATHER,   /* before it what they multiply is gathered over tp                         */
  LS_BESIDE_SUM,      /* its last forward kernel adds what they made                              */
  LS_BESIDE_GRAD_SUM, /* its last input-gradient kernel adds the gradient of their input          */
} LsBeside;

/* Which part of an MLP, or of what is in its place, it belongs to. */
typedef enum { LS_MLP_PART_NONE, LS_MLP_PART_DENSE, LS_MLP_PART_MOE, LS_MLP_PART_SHARED } LsMlpPart;

#define LS_OPERATOR_MAX_KERNELS   36 /* of a pass: those of a list, and the operator's own */
#define LS_OPERATOR_MAX_PARAMS    3
#define LS_OPERATOR_MAX_PRODUCTS  3
#define LS_OPERATOR_MAX_EXCHANGES 5

/* All-to-alls between copies: forward behind the first of them, or before the last; backward, where the
 * gradients go the other way, it is the reverse. */
typedef struct {
  bool is_behind_first;
  uint8_t n;
  uint64_t bytes[LS_OPERATOR_MAX_EXCHANGES]; /* what a rank sends in each */
} LsExchange;

/* What an operator is in its layer, where somebody asks. */
typedef enum {
  LS_OPERATOR_OTHER,
  LS_OPERATOR_NORM,
  LS_OPERATOR_QKV,       /* the product that makes queries, keys and values */
  LS_OPERATOR_ROPE,      /* their rotation                                  */
  LS_OPERATOR_ATTENTION, /* the attention, or a part of it                  */
  LS_OPERATOR_RESIDUAL,  /* a sum with what passed by                       */
} LsOperatorRole;

/* What an operator learns on a rank. */
typedef struct {
  uint8_t n;
  uint64_t numel[LS_OPERATOR_MAX_PARAMS]; /* weight, bias, in definition order                   */
  LsTensor shape[LS_OPERATOR_MAX_PARAMS]; /* of one of ...                                       */
  uint64_t alike[LS_OPERATOR_MAX_PARAMS]; /* ... so many: experts                                */
  uint32_t n_met;                         /* of experts, how many a token meets; 0: all there is */
  bool is_replicated;                     /* not divided by t (norms, row biases, positions)     */
  bool has_whole_grad; /* replicated, yet with SP each rank has the whole gradient: no all-reduce over tp
                          (positions)                                                              */
  bool is_adapter;     /* learns next to weights that do not                                       */
  bool is_frozen;      /* does not learn                                                           */
  bool is_nf4;         /* and is kept in 4 bits                                                    */
  bool is_linear;      /* of a mixer: its weight is that of linear layers                          */
  bool is_expert;      /* held by the ranks of an edp communicator, not of dp                      */
} LsOperatorParams;

/* What recomputation keeps or makes again of it. */
typedef struct {
  bool is_core;                /* of attention: selective (Korthikanti et al. 2022, section 5) */
  bool is_norm, is_activation; /* its output can be had again from what it keeps */
  bool is_latent_up;           /* makes queries, keys or values from latents; the last keeps all three */
  bool is_latent_attention;    /* meets them */
  uint64_t saved_bytes;        /* kept on this rank from forward to backward          */
  uint64_t input_bytes;        /* of these, the input of its matrix product           */
} LsOperatorKept;

/* What ranks exchange for it. */
typedef struct {
  uint8_t n_gathers, n_reduces; /* LS_TP_COLUMN: of its input, and of the input's gradient; 0 counts as 1 */
  uint64_t reduce_bytes;        /* LS_TP_REDUCE and GATHER only                    */
  uint64_t tp_bytes;        /* the whole array that tp gathers or reduces; 0: the tensor between two layers */
  uint64_t ep_bytes;        /* all-to-all: what the mean member sends               */
  uint64_t to_ep_bytes;     /* the same of the way to experts                       */
  uint64_t etp_bytes;       /* of this ep rank, over all of etp                     */
  uint64_t brought_bytes;   /* to this rank, by the exchange of a forward          */
  bool is_context_parallel; /* attention with cp > 1: its kernels are those of ls_context_step(), and casts */
  LsExchange cp;            /* in the midst of its kernels                         */
} LsOperatorComm;

typedef struct {
  const char *name; /* static; for people */
  LsOperatorRole role;
  LsTpMode tp;
  LsEpMode ep;
  LsBeside beside;
  LsMlpPart part;
  LsOperatorParams params;
  LsOperatorKept kept;
  LsOperatorComm comm;
  bool is_counted;      /* of as many tokens as the host has counted                              */
  bool is_logits;       /* of the head; without weights of its own where these are the embedding's */
  bool is_of_block;     /* of a layer of multi-token prediction, which stands with the head       */
  bool is_in_block;     /* of such a block, up to the norm before its logits                      */
  bool begins_block;    /* the first of these                                                     */
  uint8_t n_host_reads; /* of results on the host, before the last forward kernel                 */
  uint32_t layer_kind;  /* of flash attention: LsLayerTrait                                       */
  uint8_t n_products;   /* products of which its GEMM is made, as a model in PyTorch has them:    */
  uint64_t product_columns[LS_OPERATOR_MAX_PRODUCTS]; /* columns of Q, K, V; of gate and up    */
  uint8_t n_fwd, n_igrad, n_wgrad;
  LsKernel *fwd, *igrad, *wgrad; /* [n_fwd], [n_igrad], [n_wgrad]: one piece of memory, of its array */
} LsOperator;

/* Rows of zeros behind the tokens of an expert: none; as many as the fullest expert of its rank has more;
 * as many as its capacity leaves, which are sent to it, too. */
typedef enum {
  LS_EXPERT_PADDING_NONE,
  LS_EXPERT_PADDING_FULLEST,
  LS_EXPERT_PADDING_CAPACITY
} LsExpertPadding;

/* Which experts a rank has, and how tokens come to them. */
typedef struct {
  uint32_t ep, etp;    /* experts over ep ranks, each over etp; 0 counts as 1 */
  uint32_t ep_rank;    /* whose experts, where they differ in load      */
  const double *share; /* [n_experts] of all tokens; NULL: evenly */
  double capacity;     /* tokens of an expert over the mean; 0: no limit */
  LsExpertPadding padding;
  bool sends_tokens_once; /* to a rank of ep, however many of its experts a token has there */
  bool pads_sent_tokens;  /* rows of experts arrive padded to what products in fp8 want */
  bool routes_in_turn;    /* the experts of a token follow those of the token before it     */
  bool dispatch_fp8;      /* what goes to experts                                           */
  bool grouped_gemm;      /* products of a rank's experts are one kernel                    */
  bool shared_is_beside;  /* shared experts beside these exchanges                          */
} LsExpertShard;

/* What is in a scaled format, and whose. */
typedef struct {
  LsFp8Recipe recipe;
  LsFp8Linear linear;
  LsFp8Attention attention;       /* of layers in a scaled format */
  bool act_store;                 /* the input of an activation is kept in fp8 */
  bool weights;                   /* weights come in fp8                */
  LsFormats formats;              /* of products, where they are not of the scaled dtype: by module */
  uint32_t bf16_first, bf16_last; /* layers whose products are in bf16, not in the scaled dtype */
} LsScaledParts;

/* What W's GEMM does with a gradient. */
typedef struct {
  bool is_fused; /* it adds to a 16-bit gradient too, not only to an fp32 one */
  bool is_apart; /* it adds to none, an fp32 one neither: a kernel of its own does  */
  bool is_cast;  /* it makes one in the type of activations, which is cast and then added to an fp32 one */
  bool is_fresh; /* it makes a gradient of its own in the type of activations, and adds to none */
  bool is_own;   /* so that of the first micro-batch does, and autograd adds those of others  */
} LsGradParts;

/* How a model is cut, as far as one rank's operators depend on it. */
typedef struct {
  uint32_t tp;
  bool sp;               /* sequence parallelism; no effect with tp 1 */
  bool sp_save_gathered; /* with SP, keep the gathered input of COLUMN layers for the backward */
  /* beside products: Q, K and V, gate and up share what was gathered, in one product each */
  bool gathers_in_pieces;
  uint32_t micro_batch; /* sequences                                 */
  uint32_t seq;         /* tokens per sequence                       */
  uint32_t cp; /* context-parallel degree; seq is of whole sequences: a rank has seq / cp tokens of each */
  LsCpKind cp_kind;
  LsCpSteps cp_steps;
  bool cp_balance;
  bool sides_are_apart; /* an encoder and its decoder are on different stages */
  LsAttention attention;
  LsQkvLayout qkv_layout;       /* of flash attention                     */
  bool window_mask;             /* flash attention with a window gets a mask, and skips nothing */
  bool flash_is_core;           /* flash attention is of the inside of attention that runs again */
  const LsDocuments *documents; /* of a micro-batch: attention is inside each; NULL: over whole sequences */
  LsLoss loss;
  uint32_t vocab_multiple;  /* as ls_model_padded_vocab() takes it */
  uint32_t train_metrics;   /* of the loss, computed again for each   */
  LsDtype dtype;            /* of activations and weights                */
  LsDtype grad_dtype;       /* of the gradients that W accumulates into  */
  bool apex_norm;           /* layer norms run apex's kernels, not those for long rows that came in 2022 */
  bool bias_is_apart;       /* the bias of proj and fc2 is added in a kernel of its own        */
  const LsRecipes *recipes; /* kernels as some software launches them; NULL: as built in */
  LsLora lora;
  LsExpertShard experts;
  LsScaledParts fp8;
  LsGradParts grad;
} LsShard;

/* The number format of its products: bf16 at the ends of a model in a scaled format, if so many layers
 * are. */
LsDtype ls_layer_dtype (const LsModel *m, const LsShard *s, uint32_t layer);

/* Appends its parameters as LsTensor, each by itself: of Q, K and V one each, of gate and up too if they are
 * apart. */
void ls_operator_tensors (const LsOperator *op, bool gate_is_apart, GArray *tensors);

#define LS_OPERATORS_USUAL 16 /* of a layer, for which an array may have room from the start */

/* dest: not set. */
void ls_operator_copy (LsOperator *dest, const LsOperator *source);
/* An array of LsOperator, which owns their kernels; ones that it is made longer by are blank. */
GArray *ls_operators_new (void);

/* Whether products in fp8 keep their input in 16 bits, and cast it again in their backward. */
bool ls_scaled_keeps_input (const LsShard *s);
/* From a forward that runs again beside kept results, of which maxima are some (torchtitan keeps those of
 * aten.max): casts that no product of it wants. */
void ls_scaled_drop_casts (const LsShard *s, LsOperator *op);

/* Flash attention, whether or not cut over ranks. */
bool ls_operator_is_flash (const LsOperator *op);

/* Append LsOperator values to a GArray in forward order. Where sides are apart the embedding is that of the
 * encoder's words, and the head has no norm of the encoder. */
void ls_operators_embedding (const LsModel *m, const LsShard *s, GArray *operators);
void ls_operators_layer (const LsModel *m, const LsShard *s, uint32_t layer,
                         GArray *operators); /* in model order */
/* Of one of this kind, in the number format of s. */
void ls_operators_of_kind (const LsModel *m, const LsShard *s, uint32_t kind, GArray *operators);
/* Final norm, logits, loss. with_weight: the head has a weight of its own here
 * (untied, or tied but on another stage than the embedding). */
void ls_operators_head (const LsModel *m, const LsShard *s, bool with_weight, GArray *operators);
/* Where sides are apart: the norm behind the last layer of the encoder; the words of the decoder; on each
 * stage of the decoder what the encoder made, which has no kernels and is kept for its layers. */
void ls_operators_encoder_end (const LsModel *m, const LsShard *s, GArray *operators);
void ls_operators_decoder_embedding (const LsModel *m, const LsShard *s, GArray *operators);
void ls_operators_encoder_output (const LsModel *m, const LsShard *s, GArray *operators);

/* Attention with cp > 1, in steps that communication goes between (operators_attention.c). */
typedef struct {
  bool is_idle; /* the mask leaves nothing to compute: no kernels           */
  LsKernel fwd, bwd;
  LsKernel merge, merge_grad; /* of its results with those of the steps before; bytes 0: none */
} LsContextStep;

/* Whether attention goes by the steps of PyTorch's ring, however keys and values come. */
bool ls_context_is_pytorchs (const LsShard *s);
/* Steps of a rank: one for the keys and values of each, or one for all. */
uint32_t ls_context_n_steps (const LsShard *s);
/* Whether ranks of a cp group have different kernels. */
bool ls_context_is_uneven (const LsShard *s);
/* Of member cp_rank of the cp group, which does not matter unless they are uneven; in a layer of this kind.
 * What a window leaves out is taken from all steps alike. */
typedef struct {
  uint32_t layer_kind, cp_rank, step;
} LsContextPlace;

void ls_context_step (const LsModel *m, const LsShard *s, LsContextPlace place, LsContextStep *ret_step);
/* A copy of n_bytes, read and written, before or after an exchange. */
LsKernel ls_context_copy (const LsShard *s, const char *name, uint64_t n_bytes);
/* Bytes of this rank's tokens. */
typedef struct {
  uint64_t q, k, v, context;
} LsContextBytes;
LsContextBytes ls_context_bytes (const LsModel *m, const LsShard *s);

/* Bytes of the tensor between two layers on one rank (2sbh, /t with SP). */
uint64_t ls_boundary_bytes (const LsModel *m, const LsShard *s);
/* The same of all residual streams: what goes from stage to stage, and what a layer that is computed again
 * begins with. */
uint64_t ls_residual_bytes (const LsModel *m, const LsShard *s);
/* The tensors that go to a stage which begins with this layer, one message each (Megatron-LM core_r0.5.0,
 * core/pipeline_parallel/schedules.py, get_tensor_shapes): what a stage of the encoder made; what a stage of
 * the decoder made, and behind it what the encoder made. Returns how many. */
uint32_t ls_residual_tensors (const LsModel *m, const LsShard *s, uint32_t layer, uint64_t ret_bytes[2]);

/* One optimizer step over n_params local parameters with mixed-precision Adam, as
 * Megatron-LM launches it; bytes per parameter follow from the dtypes
 * (optimizer_kind.c). Appends LsKernel values. The one of kind REDUCTION is the gradient
 * norm, and that with LS_ROLE_UNSCALE (fp16) looks for inf: their all-reduces follow them. */
void ls_optimizer_kernels (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype, GArray *kernels);
/* The same where it steps on the weights themselves, as torch.optim's fused Adam and clip_grad_norm_ do:
 * weights, gradients and moments are all of this format. dtype: of the activations. */
void ls_optimizer_kernels_own (uint64_t n_params, LsDtype dtype, LsDtype weights, GArray *kernels);
/* What Adam keeps of a weight: a master of 32 bits, of 16, or the 16 that the weight lacks; none: it steps on
 * the weight, in 16 bits, or, WEIGHTS, in fp32, which each product has cast (torch.autocast). Its moments in
 * fp32, bf16, fp16, or fp8. */
typedef enum {
  LS_MASTER_FP32,
  LS_MASTER_FP16,
  LS_MASTER_REMAINDER,
  LS_MASTER_NONE,
  LS_MASTER_WEIGHTS
} LsMaster;
typedef struct {
  LsMaster master;
  LsDtype moment, variance;
} LsAdamStates;

bool ls_master_is_the_weight (LsMaster master); /* the optimizer steps on the weights themselves */

bool ls_adam_is_plain (const LsAdamStates *states);                 /* all in fp32 */
uint32_t ls_adam_bytes (const LsAdamStates *states, LsDtype dtype); /* of an element */
uint32_t ls_adam_scratch_bytes (const LsAdamStates *states);        /* of an element, while it steps */
/* The same with Transformer Engine's FusedAdam, which reads gradients as they were accumulated, writes 16-bit
 * weights itself and steps in fp32: narrower states are cast before it ("state-unscale") and behind it
 * ("state-scale"). */
void ls_optimizer_kernels_narrow (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype,
                                  const LsAdamStates *states, GArray *kernels);
/* What casts weights of products in a scaled format to it, once per step; nothing for other formats. */
void ls_weight_cast_kernels (uint64_t n_weights, LsDtype dtype, GArray *kernels);
/* Of either, norm and clipping, and Adam, as some software launches them; the norm stays of kind REDUCTION.
 * recipes may be NULL. n_tensors: of which the parameters are. */
typedef struct {
  uint64_t n_params, n_tensors;
  bool is_not_adam; /* or states of several formats: the list's step is not this one */
  bool is_narrow;   /* all in 16 bits                                                */
} LsStepped;

void ls_optimizer_as_launched (const LsRecipes *recipes, const LsModel *model, LsStepped stepped,
                               GArray *kernels);
/* What Adam's step holds besides its states, as that software runs it. */
uint64_t ls_optimizer_held_bytes (const LsRecipes *recipes, const LsModel *model, LsStepped stepped);

#endif
