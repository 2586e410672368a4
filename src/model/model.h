/* model/model.h — what is trained: the dimensions of a decoder, dense or with a mixture of
 * experts, perhaps behind an encoder.
 *
 * Letters as in the literature: L layers, h hidden, a heads, f ffn, V
 * vocabulary, s sequence, b micro-batch, t tensor-parallel degree, E experts.
 *
 * Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1): queries, and keys
 * with values, come from narrow latents. A key head has a part that is rotated, one for all
 * heads (rope_dim), and one that is not; head_dim is both together, v_dim that of a value.
 *
 * Multi-matrix factorization attention (Hu et al. 2024, arXiv 2412.19255; StepFun 2025, Step-3, arXiv
 * 2507.19427, section 3): queries alone come from a latent of q_lora, which has a norm; attention is plain.
 *
 * Encoder and decoder (Raffel et al. 2020, T5, section 2.1): the first encoder_layers of the layers see a
 * whole sequence of `seq` tokens; the others, each with attention to what the encoder made between its own
 * attention and its MLP, one of decoder_seq tokens. Both have a norm at their end and share the embedding; in
 * a pipeline they are on different stages. */
#ifndef LS_MODEL_MODEL_H
#define LS_MODEL_MODEL_H

#include <glib.h>
#include <stdint.h>

#include "base/dtype.h"

/* 2 matrices, or 3 with a gate; a quick GELU is x sigmoid (1.702 x), and its gate meets up + 1 (GPT-OSS). */
typedef enum { LS_MLP_GELU, LS_MLP_RELU2, LS_MLP_SWIGLU, LS_MLP_GEGLU, LS_MLP_QUICK_GEGLU } LsMlp;
/* Layer norms have a weight and a bias, a weight only, or nothing to learn. */
typedef enum { LS_NORM_LAYERNORM, LS_NORM_RMSNORM, LS_NORM_LAYERNORM_WEIGHT, LS_NORM_LAYERNORM_PLAIN } LsNorm;
/* Norms of a layer: before attention and before the MLP; after each instead, on what is added to the residual
 * stream; before and after; or one before both, which work side by side. */
typedef enum { LS_NORMS_PRE, LS_NORMS_POST, LS_NORMS_BOTH, LS_NORMS_SHARED } LsNormPlaces;
/* RMS norms of queries and keys, with weights as wide as a head, or as all heads together. */
typedef enum { LS_QK_NORM_HEAD, LS_QK_NORM_ALL } LsQkNormOver;
/* What stands in some layers for attention: rows of model/mixer.h. */
typedef enum {
  LS_MIXER_NONE,
  LS_MIXER_MAMBA1,
  LS_MIXER_MAMBA2,
  LS_MIXER_DELTA,
  LS_MIXER_LINEAR,
  LS_MIXER_CONV,
  LS_MIXER_KDA,
  LS_MIXER_RGLRU,
  LS_MIXER_MLSTM,
  LS_MIXER_RWKV7,
  LS_MIXER_PRODUCT,
  LS_N_MIXERS
} LsMixerKind;
/* Of a windowed layer a query sees so many keys, the last its own; or those of its own block of so many. */
typedef enum { LS_WINDOW_SLIDING, LS_WINDOW_CHUNK } LsWindowKind;
/* Several residual streams: weights of each half read and write all of them, or each layer computes one and
 * predicts the others (model/streams.c). */
typedef enum { LS_STREAMS_MIXED, LS_STREAMS_ALTERNATE } LsStreamKind;
typedef enum { LS_POSITION_LEARNED, LS_POSITION_ROPE, LS_POSITION_ALIBI, LS_POSITION_NONE } LsPosition;
typedef enum { LS_ATTENTION_UNFUSED, LS_ATTENTION_FLASH } LsAttention;
/* How flash attention gets Q, K and V of a fused projection, and gives their gradients back: in one
 * tensor; as three views; as three copies that leave out padding, whether or not there is any. */
typedef enum { LS_QKV_JOINT, LS_QKV_SPLIT, LS_QKV_UNPADDED } LsQkvLayout;
/* Cross-entropy: Megatron-LM's, parallel over the vocabulary, or one kernel each way. */
typedef enum { LS_LOSS_PARALLEL, LS_LOSS_FUSED } LsLoss;
/* How the attention of a sequence that is cut over ranks gets the keys and values of others. */
typedef enum { LS_CP_RING, LS_CP_ALL_GATHER, LS_CP_ULYSSES } LsCpKind;
/* Whose steps these are: Transformer Engine's, or those of PyTorch, run eagerly or compiled. */
typedef enum { LS_CP_STEPS_TE, LS_CP_STEPS_PYTORCH, LS_CP_STEPS_PYTORCH_COMPILE } LsCpSteps;
/* Scaling factors of fp8: from earlier steps, from the tensor itself, or one for each of its blocks, of 128
 * or of 32. */
/* Attention whose operands are in fp8, by which way of scaling; RECIPE: as the linear layers are (model/
 * operators_build.h). */
typedef enum {
  LS_FP8_ATTENTION_NONE,
  LS_FP8_ATTENTION_RECIPE,
  LS_FP8_ATTENTION_DELAYED,
  LS_FP8_ATTENTION_CURRENT,
  LS_FP8_ATTENTION_MXFP8
} LsFp8Attention;

/* Whose linear layers are in fp8: Transformer Engine's; torchao's, which keep what they cast; or what they
 * were given. */
typedef enum { LS_FP8_LINEAR_TE, LS_FP8_LINEAR_TORCHAO_CAST, LS_FP8_LINEAR_TORCHAO } LsFp8Linear;
typedef enum { LS_FP8_DELAYED, LS_FP8_CURRENT, LS_FP8_BLOCKWISE, LS_FP8_MXFP8, LS_FP8_DEEPSEEK } LsFp8Recipe;

/* Latent attention, and latents of queries. */
typedef struct {
  uint32_t kv_lora;  /* latent of keys and values; 0: no latent attention, and rope_dim is 0 too */
  uint32_t q_lora;   /* of queries, of plain attention too; 0: none */
  uint32_t rope_dim; /* of head_dim, what is rotated    */
  bool gate;         /* queries of latent attention, and a gate of its output, are made of their latent
                               before and behind its norm together */
} LsLatentAttention;

/* What chooses the keys that a query meets. */
typedef struct {
  /* An indexer that chooses which keys a query of latent attention meets (DeepSeek-AI 2025, DeepSeek-V3.2,
   * section 2.1): `window` of them; 0: none, and the next are 0 too. Behind the first so many layers only
   * each so manieth has one, the others meet what it chose (GLM-5.2; Megatron-LM at d98e8a64,
   * dsa_indexer_topk_freq); every 0: all have one. */
  uint32_t heads, dim;
  /* Of plain attention it stands in windowed layers, a head of it for some of the heads of keys, and
   * chooses so many keys together (MiniMax-M3); 0: one by one. */
  uint32_t block;
  uint32_t every, first;
  uint32_t top;
} LsKeyIndexer;

/* Attention to compressed keys (model/compressed.c). */
typedef struct {
  /* Attention to compressed keys (model/compressed.c): heads share one key, which is its value; 0: it is of
   * another sort, and the rest is 0 too. Groups of heads and columns of each on the way out; tokens of a
   * compressed key, and how many of these an indexer chooses. */
  uint32_t out_groups, out_lora;
  uint32_t csa_ratio;
  uint32_t hca_ratio;
} LsCompressedAttention;

/* What plain attention has. */
typedef struct {
  bool qkv_bias;     /* bias on QKV only (Qwen)       */
  bool unbiased_qkv; /* with linear_bias, on all but QKV (GPT-Neo) */
  bool qk_norm;      /* RMS norms of Q and K (Qwen3)             */
  LsQkNormOver qk_norm_over;
  uint32_t rotary_dim;      /* of head_dim, what rope rotates; 0: all */
  bool scaled_rope;         /* cos and sin of rope are times a factor: YaRN's of attention (Peng et al. 2023,
                               arXiv 2309.00071, section 3.4) */
  uint32_t unrotated_every; /* of every so many layers the last has no rope; 0: all have it */
  uint32_t window;          /* keys that a query of a windowed layer sees; 0: no layer is windowed */
  LsWindowKind window_kind;
  uint32_t full_every; /* of every so many layers the last is not windowed; 0: all are */
  bool full_first;     /* the first of these, not the last */
  /* Heads of windowed layers where others have other ones; 0: as others. */
  uint32_t window_heads, window_kv_heads, window_head_dim;
  bool full_k_is_v;         /* layers that see all have no values of their own: their keys are (Gemma 4) */
  bool logit_cap;           /* logits go through c tanh (x / c) */
  bool gate;                /* attention's output is gated: as wide a projection more as that of queries */
  bool gate_own;            /* by a linear layer of its own, not one with that of queries (model/lora.h) */
  bool gate_windowed;       /* in layers with a window alone */
  bool difference;          /* of two attentions (model/difference.c) */
  bool difference_plain;    /* their norm has no weights */
  uint32_t noise_heads;     /* of the heads of queries, those of the second; 0: half */
  uint32_t kv_conv;         /* taps of a convolution of keys and values over tokens; 0: none */
  uint32_t qk_conv, qk_mix; /* taps of convolutions of queries and keys (model/convolved.c); 0: none */
} LsAttentionParts;

/* What stands next to the halves of a layer, and how these are added (beside.c, streams.c). */
typedef struct {
  uint32_t streams; /* of the residual (model/streams.c); 0: one, and the next is 0 too */
  LsStreamKind stream_kind;
  bool residual_scale; /* each half scales what it adds, and what it adds to */
  /* Beside the halves of a layer (model/beside.c): an input of its own, so wide, and rows of the table that
   * it comes from; the rank of products beside attention (LAuReL). 0: none. */
  uint32_t layer_input, layer_vocab;
  uint32_t laurel_rank;
  uint32_t norm_gate_rank; /* of a gate behind norms of attention and of experts (model/beside.c); 0: none */
  /* Tables of several tokens in a row (model/beside.c), and rows of the first; 0: none, and the next is 0
   * too. */
  uint32_t ngram_tables, ngram_rows;
  uint32_t kv_shared_layers; /* last layers that meet keys and values of a layer before them, of the last that
                                is windowed as they are and has its own, or gate what a mixer made (model/
                                difference.c); of one kind: whether it does so */
  uint32_t sparse_layers;    /* first layers whose MLP keeps the highest values of its gate only */
} LsHalfParts;

/* Layers that differ. */
typedef struct {
  /* Layers one by one, a letter each, begun again where it is shorter than the model; NULL: all A.
   *
   *     A  attention, then an MLP or experts     a  attention alone    d  an MLP alone
   *     M  a mixer, then an MLP or experts       m  a mixer alone      e  experts alone
   *     D  attention, then an MLP where others have experts
   *     B  a block that layers share, then a mixer alone (model/block.c)
   *     P  attention and a mixer side by side, then an MLP or experts
   *     S  attention to chosen compressed keys, then an MLP or experts; H  to more compressed ones */
  char *pattern;
  uint32_t own; /* first layers, whose weights those behind them use again, in order; 0: all have
                              their own (Dehghani et al. 2018, Universal Transformers, arXiv 1807.03819) */
  /* Widths of layers one by one, begun again at the end of a list as the pattern is; 0, or no list: as
   * above, and of windows 0: the whole sequence. Found by search in Puzzle's models (Bercovich et al. 2024,
   * arXiv 2411.19146), set in DeciLM's. */
  uint32_t *heads, *kv_heads, *ffn, *window, *experts, *top_k, *expert_ffn;
  uint32_t n_heads, n_kv_heads, n_ffn, n_window, n_experts, n_top_k, n_expert_ffn;
  /* Sets of weights of blocks that layers B share; ranks of the adapters of each place. 0: none. */
  uint32_t shared_blocks, block_mlp_rank, block_attention_rank;
} LsLayerKinds;

/* A mixer in the place of attention (model/mixer.h). */
typedef struct {
  /* A mixer: LS_MIXER_NONE, and the rest is 0 too. */
  LsMixerKind kind;
  uint32_t heads, head_dim;
  uint32_t groups, state; /* of keys, and their width */
  uint32_t conv;          /* taps of the convolution before it */
  uint32_t chunk;         /* tokens that meet each other in products */
  uint32_t rank;          /* of step sizes, decays (linear), all low-rank products (rwkv7) */
  uint32_t products;      /* linear layers that make the way in (model/lora.h); 0: the usual */
  bool full_gate;         /* the gate is a product, not two of low rank (kda) */
  bool bias;              /* the ways into it and out of it have biases; of conv its taps, too */
  bool plain_conv;        /* the convolution of mamba1 or mamba2 has no bias */
  bool plain_keys;        /* keys and step sizes of mamba1 have no norms to learn */
  bool ungated;           /* nothing gates what it gives (delta, linear) */
  bool undecayed;         /* states of delta have no decay */
  bool head_norm;         /* the norm of linear is of a head, one for all, as delta's is */
  bool gate_bias;         /* the gate of kda has a bias */
} LsMixerParts;

/* Mixture of experts. */
typedef struct {
  /* Mixture of experts; n_experts 0: none, and the rest is then 0 too. */
  uint32_t n_experts;
  uint32_t top_k; /* experts that a token is sent to                 */
  /* Mixture of attention heads (Zhang et al. 2022, arXiv 2210.05144; JetMoE, Shen et al. 2024, arXiv
   * 2404.07413, section 2.2): queries and the way out of attention are by so many experts of its own, of
   * which a token is sent to so many; each has their share of the heads. 0: none, and the next is 0 too. */
  uint32_t attention_experts, attention_top_k;
  uint32_t zero_experts; /* more of them that the router may choose and that do nothing; top_k is without
                              these, on the mean (LongCat-Flash) */
  bool
      sigmoid_router; /* scores are sigmoids of logits, to which a bias of each expert is added for the choice
                             alone (DeepSeek-AI 2024, DeepSeek-V3, section 2.1.2) */
  uint32_t router_hidden; /* columns of the layers of a router; 0: it has none but the last */
  uint32_t groups;        /* parts of the experts, in order, of which a token is sent to experts of top_groups
                              only; 0: to any, and the next is 0 too */
  uint32_t top_groups;
  uint32_t expert_ffn;   /* inner width of one expert's MLP                 */
  uint32_t adjugate_ffn; /* of a small one beside each, which adjugate_of neighbours share (Wu et al. 2025,
                              Grove MoE, arXiv 2508.07785); 0: none, and the next is 0 too */
  uint32_t adjugate_of;
  uint32_t latent;         /* width that experts read and write, between two projections of all; 0: hidden */
  uint32_t shared_ffn;     /* inner width of the experts that see every token, together */
  uint32_t n_dense_layers; /* first layers that have an MLP instead (of width ffn) */
  uint32_t every;          /* of every so many others the last has experts: 1, all of them */
} LsMoe;

/* Multi-token prediction (model/layers.c). */
typedef struct {
  uint32_t layers; /* blocks of multi-token prediction behind the last layer (model/layers.c) */
  char *pattern;   /* layers of each, as in layer_pattern; NULL: one, as the last of the model */
  bool windowed;   /* their attention has the window, also where that of the last layer has none */
  bool shared;     /* each block has the weights of the first */
} LsPredictLayers;

/* An encoder and its decoder. */
typedef struct {
  uint32_t encoder_layers; /* first layers that are an encoder's; 0: a decoder alone, and the next is 0 too */
  uint32_t decoder_seq;    /* tokens of a sequence of the decoder; 0: as the encoder's */
  bool merged_cross;       /* the decoder meets its tokens and the encoder's at once, with the same weights
                              (T5Gemma 2, arXiv 2512.14856) */
} LsSides;

typedef struct {
  char *name;
  char *source;
  char *left_out; /* "ffn 16384, dropout false": what a user's own file leaves to defaults; NULL: nothing */
  bool lacks_attention; /* so does it the kind of its attention */
  uint32_t n_layers;
  uint32_t hidden;
  uint32_t n_heads;
  uint32_t n_kv_heads; /* = n_heads without GQA           */
  uint32_t head_dim;   /* usually hidden / n_heads        */
  uint32_t v_dim;      /* width of a head of values; 0: head_dim, as without latent attention most have it */
  uint32_t ffn;        /* inner width of the MLP          */
  uint32_t vocab;      /* as published, before padding    */
  uint32_t seq;        /* training sequence length        */
  LsMlp mlp;
  LsNorm norm;
  LsPosition position;
  LsAttention attention; /* default of the runs           */
  bool act_limit;        /* what goes into the activation is kept between limits (GPT-OSS) */
  bool linear_bias;      /* biases on the linear layers, those of experts and routers too */
  LsNormPlaces norms;
  bool tied_embeddings;
  bool dropout; /* trained with dropout          */
  LsLatentAttention latent;
  LsKeyIndexer index;
  LsCompressedAttention compressed;
  LsAttentionParts attn;
  LsHalfParts halves;
  LsLayerKinds layers;
  LsMixerParts mixer;
  LsMoe moe;
  LsPredictLayers predict;
  LsSides sides;
} LsModel;

void ls_model_clear (LsModel *model);                      /* NULL allowed */
void ls_model_copy (LsModel *dest, const LsModel *source); /* deep */

#define LS_VOCAB_MULTIPLE 128 /* Megatron-LM, --make-vocab-size-divisible-by */

/* V padded to a multiple of multiple * tp; multiple 0 counts as LS_VOCAB_MULTIPLE, tp is at least 1. */
uint64_t ls_model_padded_vocab (const LsModel *m, uint32_t multiple, uint32_t tp);

/* What layers may differ in. Those of one kind, a sum of these, launch the same operators. */
typedef enum {
  LS_LAYER_EXPERTS = 1,       /* experts and not one MLP    */
  LS_LAYER_WINDOWED = 2,      /* its attention has a window */
  LS_LAYER_UNROTATED = 4,     /* no rope                    */
  LS_LAYER_MIXER = 8,         /* a mixer, and no attention  */
  LS_LAYER_NO_MIXING = 16,    /* neither of the two        */
  LS_LAYER_NO_MLP = 32,       /* nor an MLP or experts     */
  LS_LAYER_BOTH = 64,         /* with a mixer: attention beside it */
  LS_LAYER_ENCODER = 128,     /* attention to all tokens, not only those before */
  LS_LAYER_CROSS = 256,       /* attention to the encoder's tokens behind its own */
  LS_LAYER_CSA = 512,         /* attention to compressed keys, of which an indexer chooses some */
  LS_LAYER_HCA = 1024,        /* to all keys that are compressed more */
  LS_LAYER_CHOSEN = 2048,     /* to keys that the indexer of a layer before it chose */
  LS_LAYER_AGAIN = 4096,      /* with the weights of a layer before it */
  LS_LAYER_MERGED = 8192,     /* attention to the encoder's tokens is one with that to its own */
  LS_LAYER_KV_SHARED = 16384, /* it meets keys and values of a layer before it, or what its mixer made */
  LS_LAYER_SPARSE = 32768,    /* low values of its MLP's gate become 0 */
  LS_LAYER_BLOCK = 65536,     /* before its mixer a block that layers share; with AGAIN, of one before it */
  LS_N_LAYER_TRAITS = 131072  /* times the first of 16384 layers fits in 32 bits, and twice that */
} LsLayerTrait;

/* Of a layer in model order, behind the last those of blocks of multi-token prediction: its traits, and
 * LS_N_LAYER_TRAITS times the first layer that is as wide, where layers differ in width one by one. */
uint32_t ls_model_layer_kind (const LsModel *m, uint32_t layer);
/* The model as layers of this kind have it: their widths and heads, of an indexer too, and no lists of them.
 * Its strings are those of m. */
LsModel ls_model_of_kind (const LsModel *m, uint32_t kind);
/* Whether layers differ in their heads; in these or an MLP, one by one. */
bool ls_model_heads_differ (const LsModel *m);
/* Heads or the MLP: else all layers are as wide as the model says. */
bool ls_model_widths_differ (const LsModel *m);
bool ls_model_has_lists (const LsModel *m);
/* Whether the experts of layers differ in number, in width or in how many a token is sent to. */
bool ls_model_experts_differ (const LsModel *m);
/* Each list, its length, and the field that it stands for in a layer, by their places in LsModel. */
typedef struct {
  size_t list, n, field;
} LsModelList;
#define LS_N_MODEL_LISTS 7
extern const LsModelList ls_model_lists[LS_N_MODEL_LISTS];
/* Whether so many ranks cut the heads and the MLP of each layer evenly. */
bool ls_model_is_cut_evenly (const LsModel *m, uint32_t tp);
/* How many kinds its layers are of, and the first layer of each, in order of layers. Of more than
 * LS_MAX_MODEL_KINDS, which rules forbid (strategy/rules.txt), so many and one. */
#define LS_MAX_MODEL_KINDS   64 /* no pattern has more, 25 and as many that come again; of lists, checked */
#define LS_MAX_LISTED_LAYERS 16384
uint32_t ls_model_first_of_kinds (const LsModel *m, uint32_t ret_first[LS_MAX_MODEL_KINDS]);
/* The place of a layer's kind among these. */
uint32_t ls_model_kind_place (const LsModel *m, const uint32_t *first, uint32_t n_kinds, uint32_t layer);
uint32_t ls_model_n_layer_kinds (const LsModel *m);

/* Whether this layer, in model order, has experts and not one MLP; how many have. */
bool ls_model_has_experts (const LsModel *m, uint32_t layer);
uint32_t ls_model_n_moe_layers (const LsModel *m);

/* Whether the MLP has a gate beside the way up: three matrices. */
bool ls_mlp_is_gated (LsMlp mlp);
bool ls_norm_is_layernorm (LsNorm norm);
/* Whether layers of this kind have attention. */
bool ls_layer_has_attention (uint32_t kind);
uint32_t ls_model_n_attention_layers (const LsModel *m);

/* Tokens of a sequence of the decoder, where one of the encoder has seq; seq without an encoder. */
uint32_t ls_model_decoder_seq (const LsModel *m, uint32_t seq);

/* Width of what experts read and write: expert_latent, or hidden. */
uint32_t ls_model_expert_width (const LsModel *m);

/* Of the s x s pairs of a query and a key of a sequence, the share that the mask of a layer of this kind
 * leaves: a half with a causal mask alone, all in an encoder. */
double ls_model_attention_pairs (const LsModel *m, uint32_t kind, uint32_t seq);
/* Whether software that knows no windows makes a mask of its window: of plain attention, and no longer than
 * the sequence. */
bool ls_model_masks_window (const LsModel *m, uint32_t kind, uint32_t seq);

/* Of a layer of this kind with attention, heads times the mean width of a key and a value. */
double ls_model_attention_width (const LsModel *m, uint32_t kind);

/* FLOPs of the scores of an indexer of a layer of this kind, forward, for a sequence: each query meets the
 * keys before it, compressed or not. */
double ls_model_index_flops (const LsModel *m, uint32_t kind, uint32_t seq);

/* Outputs of a router. */
uint32_t ls_model_router_width (const LsModel *m);

/* Width of a head of values: v_dim, or head_dim where that is 0. */
uint32_t ls_model_v_dim (const LsModel *m);

/* Parameter counts of the whole model, with the given vocabulary. Active are those that one
 * token meets: of the experts, top_k. Linear parameters are those that a token multiplies (no
 * embedding lookup, no norms, no biases); a tied or untied head counts once. */
uint64_t ls_model_params (const LsModel *m, uint64_t vocab);
uint64_t ls_model_active_params (const LsModel *m, uint64_t vocab);
uint64_t ls_model_layer_params (const LsModel *m, uint32_t layer);
uint64_t ls_model_expert_params (const LsModel *m); /* of one expert, and of the small one beside it */
uint64_t
ls_model_linear_params (const LsModel *m,
                        uint64_t vocab); /* Of these, of a layer, with the experts that a token is sent to. */
uint64_t ls_model_layer_linear_params (const LsModel *m, uint32_t layer);

/* Forward FLOPs of attention without a causal mask, for a sequence: of an encoder, and to its tokens. */
double ls_model_two_way_flops (const LsModel *m, uint32_t seq);

/* Model FLOPs of one training step (forward + backward, no recomputation) over
 * n_sequences of length seq. causal: count only the lower triangle of attention.
 * Megatron-LM's num_floating_point_operations since r0.8 (non-causal); causal as
 * Megatron-Bridge 2025+. */
double ls_model_flops (const LsModel *m, uint64_t vocab, uint32_t seq, double n_sequences, bool causal);

/* --- differences of attentions, convolutions of keys (difference.c) --- */

/* Of so many heads, those of the second of the differences. */
uint64_t ls_difference_noise_heads (const LsModel *m, uint64_t heads);
/* Whether heads of queries share those of keys evenly, in each attention; of all models. */
bool ls_model_shares_keys_evenly (const LsModel *m);

/* --- attention to compressed keys (compressed.c) --- */

/* Whether attention of the model is of this sort; of this one, or latent attention: queries or keys come from
 * latents that every tensor-parallel rank makes. */
bool ls_model_is_compressed (const LsModel *m);
bool ls_model_has_latents (const LsModel *m);

/* Of a layer of this kind (LsLayerTrait): tokens of a compressed key; 0: it has none. */
uint32_t ls_compressed_ratio (const LsModel *m, uint32_t kind);
/* Columns that a token is projected to for compressed keys, and for those of the indexer, without its
 * weights. */
uint64_t ls_compressed_columns (const LsModel *m, uint32_t kind);
uint64_t ls_compressed_index_columns (const LsModel *m, uint32_t kind);

/* Pairs with compressed keys of a sequence, of seq^2. */
double ls_compressed_pairs (const LsModel *m, uint32_t kind, uint32_t seq);

/* --- residual streams (streams.c) --- */

uint32_t ls_model_n_streams (const LsModel *m); /* at least 1 */
bool ls_streams_mix (const LsModel *m);         /* each half reads and writes all of several */
bool ls_streams_alternate (const LsModel *m);   /* each layer computes one of several */

/* Of a layer, what a token multiplies a second time. */
uint64_t ls_streams_again_params (const LsModel *m);

/* --- what stands next to the halves of a layer (beside.c) --- */

/* Whether layers have anything of this, or streams that alternate. */
bool ls_model_has_beside (const LsModel *m);

/* Columns and rows of all tables; 0: there are none. */
uint64_t ls_ngram_width (const LsModel *m);
uint64_t ls_ngram_rows (const LsModel *m);

/* --- multi-token prediction (layers.c) --- */

#define LS_MAX_BLOCK_LAYERS 16

/* Layers of a block. */
uint32_t ls_model_block_layers (const LsModel *m);
/* Layers of the model and of all blocks, which ls_model_layer_kind() knows. */
uint32_t ls_model_n_all_layers (const LsModel *m);
/* Whether block i, from 0, has the weights of one before it. */
bool ls_model_block_is_again (const LsModel *m, uint32_t block);

#endif
