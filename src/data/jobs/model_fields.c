/* Keys of a model file. */
#include "data/jobs/job_files.h"
#include "model/mixer.h"

static const LsEnumName mlps[] = {
  { "gelu", LS_MLP_GELU },
  { "relu2", LS_MLP_RELU2 },
  { "swiglu", LS_MLP_SWIGLU },
  { "geglu", LS_MLP_GEGLU },
  { "quick-geglu", LS_MLP_QUICK_GEGLU },
  { NULL },
};
static const LsEnumName norms[] = {
  { "layernorm", LS_NORM_LAYERNORM },
  { "rmsnorm", LS_NORM_RMSNORM },
  { "layernorm_weight", LS_NORM_LAYERNORM_WEIGHT },
  { "layernorm_plain", LS_NORM_LAYERNORM_PLAIN },
  { NULL },
};
static const LsEnumName places[] = {
  { "pre", LS_NORMS_PRE },
  { "post", LS_NORMS_POST },
  { "both", LS_NORMS_BOTH },
  { "shared", LS_NORMS_SHARED },
  { NULL },
};
static const LsEnumName qk_norms[] = { { "head", LS_QK_NORM_HEAD }, { "all", LS_QK_NORM_ALL }, { NULL } };
static const LsEnumName windows[]
    = { { "sliding", LS_WINDOW_SLIDING }, { "chunk", LS_WINDOW_CHUNK }, { NULL } };
static const LsEnumName positions[] = {
  { "learned", LS_POSITION_LEARNED },
  { "rope", LS_POSITION_ROPE },
  { "alibi", LS_POSITION_ALIBI },
  { "none", LS_POSITION_NONE },
  { NULL },
};
static const LsEnumName stream_kinds[]
    = { { "mixed", LS_STREAMS_MIXED }, { "alternate", LS_STREAMS_ALTERNATE }, { NULL } };
static const LsEnumName attentions[] = {
  { "flash", LS_ATTENTION_FLASH },
  { "unfused", LS_ATTENTION_UNFUSED },
  { NULL },
};

#define UINT(key_, member, max_, ...)                                                                        \
  {                                                                                                          \
    key_, LS_FIELD_UINT, offsetof (LsModel, member), .min = 1, .max = (max_), __VA_ARGS__                    \
  }
#define LIST(member, max_, default_, meaning_)                                                               \
  {                                                                                                          \
    "layer_" #member, LS_FIELD_UINT_LIST, offsetof (LsModel, layers.member),                                 \
        .n_offset = offsetof (LsModel, layers.n_##member), .max = (max_), .runs = true, .file_only = true,   \
        .default_text = (default_), .meaning = (meaning_)                                                    \
  }
#define BOOL(key_, member, meaning_)                                                                         \
  {                                                                                                          \
    key_, LS_FIELD_BOOL, offsetof (LsModel, member), .default_text = "false", .meaning = (meaning_)          \
  }
#define ENUM(key_, member, names_, ...)                                                                      \
  {                                                                                                          \
    key_, LS_FIELD_ENUM, offsetof (LsModel, member), .names = (names_), __VA_ARGS__                          \
  }

const LsField ls_model_fields[] = {
  LS_FIELDS_HEADER (LsModel),
  UINT ("layers", n_layers, 65536, .required = true, .meaning = "transformer layers"),
  UINT ("hidden", hidden, 1 << 20, .required = true, .meaning = "width of the residual stream"),
  UINT ("heads", n_heads, 65536, .required = true, .meaning = "attention heads"),
  UINT ("kv_heads", n_kv_heads, 65536, .default_text = "heads",
        .meaning = "heads of keys and values; fewer with GQA"),
  UINT ("head_dim", head_dim, 1 << 20, .default_text = "hidden / heads", .meaning = "width of one head"),
  UINT ("ffn", ffn, 1 << 22, .default_text = "4 hidden", .meaning = "inner width of the MLP"),
  UINT ("vocab", vocab, 1 << 24, .required = true,
        .meaning = "entries of the vocabulary as published, before padding"),
  UINT ("seq", seq, 1 << 27, .required = true, .meaning = "tokens of a training sequence"),
  ENUM ("mlp", mlp, mlps, .required = true,
        .meaning = "activation; with a gate (glu) there are three matrices, else two"),
  ENUM ("norm", norm, norms, .required = true,
        .meaning = "normalisation; layernorm_weight has no bias, layernorm_plain nothing to learn"),
  ENUM ("norms", norms, places, .default_text = "`\"pre\"`",
        .meaning = "where they stand: before attention and the MLP, after (`post`), `both`, or one before "
                   "both, side by side (`shared`)"),
  ENUM ("position", position, positions, .required = true, .meaning = "position encoding"),
  ENUM ("attention", attention, attentions, .default_text = "`\"flash\"`",
        .meaning = "attention kernels, unless the run says otherwise"),
  BOOL ("act_limit", act_limit, "what goes into the activation is kept between limits (GPT-OSS)"),
  BOOL ("linear_bias", linear_bias, "biases on all linear layers, those of experts and routers too"),
  BOOL ("unbiased_qkv", attn.unbiased_qkv, "with linear_bias, on all but QKV (GPT-Neo)"),
  BOOL ("qkv_bias", attn.qkv_bias, "biases on the QKV projection only"),
  BOOL ("qk_norm", attn.qk_norm, "RMS norms of queries and keys"),
  ENUM ("qk_norm_over", attn.qk_norm_over, qk_norms, .default_text = "`\"head\"`",
        .meaning = "what these norm: each head, or all heads together (`all`)"),
  UINT ("rotary_dim", attn.rotary_dim, 1 << 20, .default_text = "head_dim",
        .meaning = "of head_dim, what rope rotates"),
  BOOL ("scaled_rope", attn.scaled_rope, "cos and sin of rope are times a factor, YaRN's of attention"),
  UINT ("unrotated_every", attn.unrotated_every, 65536, .default_text = "none",
        .meaning = "of every so many layers the last has no rope"),
  UINT ("window", attn.window, 1 << 27, .default_text = "none",
        .meaning = "keys that a query sees in windowed layers, its own among them"),
  ENUM ("window_kind", attn.window_kind, windows, .default_text = "`\"sliding\"`",
        .meaning = "the last keys (`sliding`), or those of its block of so many (`chunk`)"),
  UINT ("full_every", attn.full_every, 65536, .default_text = "none",
        .meaning = "of every so many layers the last sees the whole sequence"),
  BOOL ("full_first", attn.full_first, "of these the first sees the whole sequence, not the last"),
  UINT ("window_heads", attn.window_heads, 65536, .default_text = "heads",
        .meaning = "attention heads of windowed layers"),
  UINT ("window_kv_heads", attn.window_kv_heads, 65536, .default_text = "kv_heads",
        .meaning = "their heads of keys and values"),
  UINT ("window_head_dim", attn.window_head_dim, 1 << 20, .default_text = "head_dim",
        .meaning = "their width"),
  BOOL ("full_k_is_v", attn.full_k_is_v, "layers that see the whole sequence take keys for values, too"),
  BOOL ("logit_cap", attn.logit_cap, "logits are capped by a tanh"),
  BOOL ("difference_plain", attn.difference_plain, "the norm of these differences has no weights"),
  BOOL ("difference", attn.difference,
        "attention is the difference of two, of the first and of the second of each pair of heads, "
        "over the values of both"),
  UINT ("kv_conv", attn.kv_conv, 4096, .default_text = "none",
        .meaning = "taps of a convolution of keys and values over tokens, of each head by itself"),
  UINT ("qk_conv", attn.qk_conv, 4096, .default_text = "none",
        .meaning
        = "taps of a convolution of queries and keys over tokens, of each column; `qk_mix` goes with it"),
  UINT ("qk_mix", attn.qk_mix, 4096, .default_text = "none",
        .meaning = "taps of another after it, in which the columns of a head meet"),
  UINT ("router_hidden", moe.router_hidden, 1 << 20, .default_text = "none",
        .meaning = "columns of three layers of a router before its last, and of a norm"),
  BOOL ("residual_scale", halves.residual_scale,
        "each half scales and shifts what it adds, and what it adds to"),
  BOOL ("latent_gate", latent.gate,
        "queries of latent attention, and a gate of its output, are made of their latent before "
        "and after its norm"),
  BOOL ("attention_gate", attn.gate,
        "attention's output is gated, by a projection as wide as that of queries"),
  BOOL ("attention_gate_windowed", attn.gate_windowed, "in layers with a window alone"),
  BOOL ("attention_gate_own", attn.gate_own,
        "that projection is a linear layer of its own, with an adapter of its own (LoRA)"),
  { "layer_pattern", LS_FIELD_STRING, offsetof (LsModel, layers.pattern), .default_text = "`\"A\"`",
    .meaning
    = "a letter a layer, begun again at its end: A attention and MLP or experts, D attention and an MLP, M a "
      "mixer and MLP or experts, P both side by side and those; a, m, d, e: attention, a mixer, an MLP, "
      "experts alone; B a block that layers share, then a mixer alone; S, H: attention to "
      "compressed keys that are chosen, or to all of them, and MLP or experts" },
  LIST (heads, 65536, "heads",
        "attention heads layer by layer, begun again at the end; 0: as `heads` has it"),
  LIST (kv_heads, 65536, "kv_heads", "likewise heads of keys and values"),
  LIST (ffn, 1 << 22, "ffn", "likewise inner widths of MLPs"),
  LIST (window, 1 << 27, "none", "likewise keys that a query sees; 0: the whole sequence"),
  LIST (experts, 65536, "experts", "likewise experts, of layers that have them"),
  LIST (top_k, 65536, "top_k", "likewise experts that each token is sent to"),
  LIST (expert_ffn, 1 << 22, "expert_ffn", "likewise inner widths of experts"),
  ENUM ("mixer", mixer.kind, ls_mixer_names, .default_text = "`\"none\"`",
        .meaning
        = "what M and m are: a state-space model (`mamba1`, `mamba2`), a gated delta net (`delta`), "
          "`linear` attention, a short convolution (`conv`), Kimi's delta attention (`kda`), Griffin's "
          "recurrent unit (`rglru`), the matrix memory of xLSTM (`mlstm`), "
          "the time mixing of RWKV-7 (`rwkv7`), one linear layer (`product`); the "
          "keys that follow go with it"),
  UINT ("mixer_heads", mixer.heads, 1 << 20, .default_text = "none", .meaning = "its heads"),
  UINT ("mixer_head_dim", mixer.head_dim, 1 << 20, .default_text = "1", .meaning = "width of a head"),
  UINT ("mixer_groups", mixer.groups, 65536, .default_text = "mixer_heads",
        .meaning = "groups of heads that share keys"),
  UINT ("mixer_state", mixer.state, 65536, .default_text = "mixer_head_dim",
        .meaning = "width of a key, which a head's state has for each of its own"),
  UINT ("mixer_conv", mixer.conv, 4096, .default_text = "4",
        .meaning = "taps of its convolution over tokens"),
  UINT ("mixer_chunk", mixer.chunk, 65536, .default_text = "256 (delta, kda, mlstm, rwkv7: 64)",
        .meaning = "tokens that meet each other in matrix products"),
  UINT (
      "mixer_rank", mixer.rank, 1 << 20, .default_text = "hidden / 16",
      .meaning
      = "rank of the step sizes of mamba1; of mamba2, where these and keys are made of convolved columns; of "
        "the decays of linear (gated linear attention); of the four low-rank products of rwkv7 together"),
  UINT ("mixer_products", mixer.products, 16, .default_text = "2 (delta)",
        .meaning
        = "linear layers that make the way into a delta net, each with an adapter (LoRA): 2, 4 or 6; of "
          "linear 2 or 4"),
  BOOL ("mixer_full_gate", mixer.full_gate, "the gate of kda is one matrix, not two of low rank"),
  BOOL ("mixer_bias", mixer.bias,
        "the ways into and out of mamba1, mamba2 and conv have biases; of conv the taps, too"),
  BOOL ("mixer_plain_conv", mixer.plain_conv, "the convolution of mamba1 or mamba2 has no bias"),
  BOOL ("mixer_plain_keys", mixer.plain_keys,
        "keys and step sizes of mamba1 have no norms to learn, as Jamba's have"),
  BOOL ("mixer_ungated", mixer.ungated, "nothing gates what delta or linear gives"),
  BOOL ("mixer_undecayed", mixer.undecayed, "states of delta have no decay (DeltaNet)"),
  BOOL ("mixer_head_norm", mixer.head_norm,
        "the norm of linear is of a head, one for all, not as wide as all heads"),
  BOOL ("mixer_gate_bias", mixer.gate_bias, "the gate of kda has a bias"),
  UINT ("shared_blocks", layers.shared_blocks, 65536, .default_text = "none",
        .meaning
        = "sets of weights of the blocks that layers B share, which take them in turn (Zamba): attention, "
          "whose input is the embedding, too, and an MLP"),
  UINT ("block_mlp_rank", layers.block_mlp_rank, 1 << 20, .default_text = "none",
        .meaning = "rank of adapters that each of these layers has next to the way up of the MLP"),
  UINT ("block_attention_rank", layers.block_attention_rank, 1 << 20, .default_text = "none",
        .meaning = "likewise together with queries, keys and values"),
  BOOL ("tied_embeddings", tied_embeddings, "the head shares the embedding's weights"),
  BOOL ("dropout", dropout, "trained with dropout"),
  UINT ("attention_experts", moe.attention_experts, 65536, .default_text = "none",
        .meaning = "experts of queries and of the way out of attention; keys and values are of all"),
  UINT ("attention_top_k", moe.attention_top_k, 65536, .default_text = "none",
        .meaning = "of these, those that each token is sent to, whose heads together are `heads`"),
  UINT ("experts", moe.n_experts, 65536, .default_text = "none",
        .meaning = "experts of a layer; the keys that follow go with it"),
  UINT ("top_k", moe.top_k, 65536, .default_text = "none", .meaning = "experts that each token is sent to"),
  UINT ("zero_experts", moe.zero_experts, 65536, .default_text = "none",
        .meaning
        = "outputs of the router next to these that stand for doing nothing; `top_k` is without them, "
          "on the mean"),
  BOOL ("sigmoid_router", moe.sigmoid_router,
        "scores of its experts are sigmoids, to which a bias of each is added for the choice alone"),
  UINT ("expert_groups", moe.groups, 1024, .default_text = "none",
        .meaning
        = "equal parts of the experts, in order: a token is sent to experts of `top_groups` of them"),
  UINT ("top_groups", moe.top_groups, 1024, .default_text = "none",
        .meaning = "groups that each token is sent to"),
  UINT ("expert_ffn", moe.expert_ffn, 1 << 22, .default_text = "none",
        .meaning = "inner width of one expert"),
  UINT ("adjugate_ffn", moe.adjugate_ffn, 1 << 22, .default_text = "none",
        .meaning = "inner width of a small expert next to each, which `adjugate_of` neighbours share"),
  UINT ("adjugate_of", moe.adjugate_of, 65536, .default_text = "none", .meaning = "so many"),
  UINT ("expert_latent", moe.latent, 1 << 20, .default_text = "none",
        .meaning = "width that experts read and write, after a projection of all tokens and before another"),
  UINT ("shared_ffn", moe.shared_ffn, 1 << 22, .default_text = "none",
        .meaning = "inner width of the shared experts together, which see every token"),
  UINT ("dense_layers", moe.n_dense_layers, 65536, .default_text = "none",
        .meaning = "first layers that have an MLP, of width ffn, and no experts"),
  UINT ("moe_every", moe.every, 65536, .default_text = "1",
        .meaning = "of every so many of the others the last has experts"),
  UINT ("predict_layers", predict.layers, 64, .default_text = "none",
        .meaning
        = "blocks after the last layer that predict tokens further ahead (MTP): each takes its input and "
          "an embedding through a projection, and ends in the head again"),
  { "predict_pattern", LS_FIELD_STRING, offsetof (LsModel, predict.pattern),
    .default_text = "one, as the last of the model",
    .meaning = "layers of each of these blocks, letters as in `layer_pattern`" },
  BOOL ("predict_windowed", predict.windowed,
        "their attention has the `window`, also where that of the last layer has none"),
  BOOL ("predict_shared", predict.shared, "these blocks have the same weights: those of the first"),
  UINT ("own_layers", layers.own, 65536, .default_text = "layers",
        .meaning = "first layers, whose weights those after them use again, in order"),
  UINT ("encoder_layers", sides.encoder_layers, 65536, .default_text = "none",
        .meaning = "first layers that are an encoder's; the others are a decoder's that attends to it, too"),
  UINT ("decoder_seq", sides.decoder_seq, 1 << 27, .default_text = "seq",
        .meaning = "tokens of a sequence of that decoder"),
  BOOL ("merged_cross", sides.merged_cross,
        "that decoder meets its tokens and the encoder's at once, with the same weights"),
  UINT ("kv_lora", latent.kv_lora, 1 << 20, .default_text = "none",
        .meaning = "latent width of keys and values (multi-head latent attention); `rope_dim` goes with it"),
  UINT ("q_lora", latent.q_lora, 1 << 20, .default_text = "none",
        .meaning = "latent width of queries, of plain attention too"),
  UINT ("rope_dim", latent.rope_dim, 1 << 20, .default_text = "none",
        .meaning = "of head_dim, what is rotated: one such key for all heads"),
  UINT ("index_heads", index.heads, 65536, .default_text = "none",
        .meaning = "heads of the indexer that chooses `window` keys for each query"),
  UINT ("index_dim", index.dim, 65536, .default_text = "none", .meaning = "their width"),
  UINT ("index_block", index.block, 65536, .default_text = "one",
        .meaning = "keys that it chooses together, without latent attention"),
  UINT ("index_every", index.every, 65536, .default_text = "1",
        .meaning
        = "after the first layers of every so many the last has an indexer, the others meet the keys "
          "that it chose"),
  UINT ("index_first", index.first, 65536, .default_text = "none",
        .meaning = "so many layers first, which all have one"),
  UINT ("v_dim", v_dim, 1 << 20, .default_text = "head_dim", .meaning = "width of one head of values"),
  UINT ("out_groups", compressed.out_groups, 65536, .default_text = "none",
        .meaning = "attention to compressed keys (DeepSeek-V4), whose heads share one key that is its value: "
                   "groups of heads on the way out; the keys that follow go with it, and `q_lora`, "
                   "`rope_dim`, `window`"),
  UINT ("out_lora", compressed.out_lora, 1 << 20, .default_text = "none", .meaning = "columns of each group"),
  UINT ("csa_ratio", compressed.csa_ratio, 65536, .default_text = "none",
        .meaning = "tokens of a compressed key in layers S, which an indexer chooses from"),
  UINT ("index_top", index.top, 1 << 27, .default_text = "none", .meaning = "keys that it chooses"),
  UINT ("hca_ratio", compressed.hca_ratio, 1 << 20, .default_text = "none",
        .meaning = "tokens of a compressed key in layers H"),
  UINT ("streams", halves.streams, 64, .default_text = "one",
        .meaning = "residual streams, of the kind that follows"),
  ENUM ("stream_kind", halves.stream_kind, stream_kinds, .default_text = "`\"mixed\"`",
        .meaning = "mixed before and after each half of a layer (hyper-connections, `mixed`), or one is "
                   "computed in each layer and all are predicted (AltUp, `alternate`)"),
  UINT ("layer_input", halves.layer_input, 1 << 16, .default_text = "none",
        .meaning = "width of an input that each layer has of its own, from a table and from the embedding"),
  UINT ("layer_vocab", halves.layer_vocab, 1 << 24, .default_text = "none", .meaning = "rows of that table"),
  UINT ("noise_heads", attn.noise_heads, 65536, .default_text = "half",
        .meaning = "with difference, the heads of the second attention, each shared by several of the first"),
  UINT ("norm_gate_rank", halves.norm_gate_rank, 1 << 20, .default_text = "none",
        .meaning = "rank of gates after the norms before attention and before experts (A.X-K2)"),
  UINT ("ngram_tables", halves.ngram_tables, 4096, .default_text = "none",
        .meaning = "tables of several tokens in a row, each `hidden / ngram_tables` wide, of which products "
                   "are added to the embedding of a token"),
  UINT ("ngram_rows", halves.ngram_rows, 1u << 31, .default_text = "none",
        .meaning = "rows of the first of them; each next one has two more"),
  UINT ("laurel_rank", halves.laurel_rank, 1 << 20, .default_text = "none",
        .meaning = "rank of two products together with attention (LAuReL)"),
  UINT ("kv_shared_layers", halves.kv_shared_layers, 65536, .default_text = "none",
        .meaning = "last layers that meet keys and values of the last layer before them that is windowed as "
                   "they are; those with a mixer gate what the last one before them made"),
  UINT ("sparse_layers", halves.sparse_layers, 65536, .default_text = "none",
        .meaning = "first layers whose MLP keeps the highest values of its gate only"),
  { NULL },
};
