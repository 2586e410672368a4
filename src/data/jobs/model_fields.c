/* Keys of a model file, of which data/keys.txt says what they mean. */
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
#define LIST(member, max_)                                                                                   \
  {                                                                                                          \
    "layer_" #member, LS_FIELD_UINT_LIST, offsetof (LsModel, layers.member),                                 \
        .n_offset = offsetof (LsModel, layers.n_##member), .max = (max_), .runs = true, .file_only = true    \
  }
#define BOOL(key_, member)                                                                                   \
  {                                                                                                          \
    key_, LS_FIELD_BOOL, offsetof (LsModel, member)                                                          \
  }
#define ENUM(key_, member, names_, ...)                                                                      \
  {                                                                                                          \
    key_, LS_FIELD_ENUM, offsetof (LsModel, member), .names = (names_), __VA_ARGS__                          \
  }

const LsField ls_model_fields[] = {
  LS_FIELDS_HEADER (LsModel),
  UINT ("layers", n_layers, 65536, .required = true),
  UINT ("hidden", hidden, 1 << 20, .required = true),
  UINT ("heads", n_heads, 65536, .required = true),
  UINT ("kv_heads", n_kv_heads, 65536),
  UINT ("head_dim", head_dim, 1 << 20),
  UINT ("ffn", ffn, 1 << 22),
  UINT ("vocab", vocab, 1 << 24, .required = true),
  UINT ("seq", seq, 1 << 27, .required = true),
  ENUM ("mlp", mlp, mlps, .required = true),
  ENUM ("norm", norm, norms, .required = true),
  ENUM ("norms", norms, places),
  ENUM ("position", position, positions, .required = true),
  ENUM ("attention", attention, attentions),
  BOOL ("act_limit", act_limit),
  BOOL ("linear_bias", linear_bias),
  BOOL ("unbiased_qkv", attn.unbiased_qkv),
  BOOL ("qkv_bias", attn.qkv_bias),
  BOOL ("qk_norm", attn.qk_norm),
  ENUM ("qk_norm_over", attn.qk_norm_over, qk_norms),
  UINT ("rotary_dim", attn.rotary_dim, 1 << 20),
  BOOL ("scaled_rope", attn.scaled_rope),
  UINT ("unrotated_every", attn.unrotated_every, 65536),
  UINT ("window", attn.window, 1 << 27),
  ENUM ("window_kind", attn.window_kind, windows),
  UINT ("full_every", attn.full_every, 65536),
  BOOL ("full_first", attn.full_first),
  UINT ("window_heads", attn.window_heads, 65536),
  UINT ("window_kv_heads", attn.window_kv_heads, 65536),
  UINT ("window_head_dim", attn.window_head_dim, 1 << 20),
  BOOL ("full_k_is_v", attn.full_k_is_v),
  BOOL ("logit_cap", attn.logit_cap),
  BOOL ("difference_plain", attn.difference_plain),
  BOOL ("difference", attn.difference),
  UINT ("kv_conv", attn.kv_conv, 4096),
  UINT ("qk_conv", attn.qk_conv, 4096),
  UINT ("qk_mix", attn.qk_mix, 4096),
  UINT ("router_hidden", moe.router_hidden, 1 << 20),
  BOOL ("residual_scale", halves.residual_scale),
  BOOL ("latent_gate", latent.gate),
  BOOL ("attention_gate", attn.gate),
  BOOL ("attention_gate_windowed", attn.gate_windowed),
  BOOL ("attention_gate_own", attn.gate_own),
  { "layer_pattern", LS_FIELD_STRING, offsetof (LsModel, layers.pattern) },
  LIST (heads, 65536),
  LIST (kv_heads, 65536),
  LIST (ffn, 1 << 22),
  LIST (window, 1 << 27),
  LIST (experts, 65536),
  LIST (top_k, 65536),
  LIST (expert_ffn, 1 << 22),
  ENUM ("mixer", mixer.kind, ls_mixer_names),
  UINT ("mixer_heads", mixer.heads, 1 << 20),
  UINT ("mixer_head_dim", mixer.head_dim, 1 << 20),
  UINT ("mixer_groups", mixer.groups, 65536),
  UINT ("mixer_state", mixer.state, 65536),
  UINT ("mixer_conv", mixer.conv, 4096),
  UINT ("mixer_chunk", mixer.chunk, 65536),
  UINT ("mixer_rank", mixer.rank, 1 << 20),
  UINT ("mixer_products", mixer.products, 16),
  BOOL ("mixer_full_gate", mixer.full_gate),
  BOOL ("mixer_bias", mixer.bias),
  BOOL ("mixer_plain_conv", mixer.plain_conv),
  BOOL ("mixer_plain_keys", mixer.plain_keys),
  BOOL ("mixer_ungated", mixer.ungated),
  BOOL ("mixer_undecayed", mixer.undecayed),
  BOOL ("mixer_head_norm", mixer.head_norm),
  BOOL ("mixer_gate_bias", mixer.gate_bias),
  UINT ("shared_blocks", layers.shared_blocks, 65536),
  UINT ("block_mlp_rank", layers.block_mlp_rank, 1 << 20),
  UINT ("block_attention_rank", layers.block_attention_rank, 1 << 20),
  BOOL ("tied_embeddings", tied_embeddings),
  BOOL ("dropout", dropout),
  UINT ("attention_experts", moe.attention_experts, 65536),
  UINT ("attention_top_k", moe.attention_top_k, 65536),
  UINT ("experts", moe.n_experts, 65536),
  UINT ("top_k", moe.top_k, 65536),
  UINT ("zero_experts", moe.zero_experts, 65536),
  BOOL ("sigmoid_router", moe.sigmoid_router),
  UINT ("expert_groups", moe.groups, 1024),
  UINT ("top_groups", moe.top_groups, 1024),
  UINT ("expert_ffn", moe.expert_ffn, 1 << 22),
  UINT ("adjugate_ffn", moe.adjugate_ffn, 1 << 22),
  UINT ("adjugate_of", moe.adjugate_of, 65536),
  UINT ("expert_latent", moe.latent, 1 << 20),
  UINT ("shared_ffn", moe.shared_ffn, 1 << 22),
  UINT ("dense_layers", moe.n_dense_layers, 65536),
  UINT ("moe_every", moe.every, 65536),
  UINT ("predict_layers", predict.layers, 64),
  { "predict_pattern", LS_FIELD_STRING, offsetof (LsModel, predict.pattern) },
  BOOL ("predict_windowed", predict.windowed),
  BOOL ("predict_shared", predict.shared),
  UINT ("own_layers", layers.own, 65536),
  UINT ("encoder_layers", sides.encoder_layers, 65536),
  UINT ("decoder_seq", sides.decoder_seq, 1 << 27),
  BOOL ("merged_cross", sides.merged_cross),
  UINT ("kv_lora", latent.kv_lora, 1 << 20),
  UINT ("q_lora", latent.q_lora, 1 << 20),
  UINT ("rope_dim", latent.rope_dim, 1 << 20),
  UINT ("index_heads", index.heads, 65536),
  UINT ("index_dim", index.dim, 65536),
  UINT ("index_block", index.block, 65536),
  UINT ("index_every", index.every, 65536),
  UINT ("index_first", index.first, 65536),
  UINT ("v_dim", v_dim, 1 << 20),
  UINT ("out_groups", compressed.out_groups, 65536),
  UINT ("out_lora", compressed.out_lora, 1 << 20),
  UINT ("csa_ratio", compressed.csa_ratio, 65536),
  UINT ("index_top", index.top, 1 << 27),
  UINT ("hca_ratio", compressed.hca_ratio, 1 << 20),
  UINT ("streams", halves.streams, 64),
  ENUM ("stream_kind", halves.stream_kind, stream_kinds),
  UINT ("layer_input", halves.layer_input, 1 << 16),
  UINT ("layer_vocab", halves.layer_vocab, 1 << 24),
  UINT ("noise_heads", attn.noise_heads, 65536),
  UINT ("norm_gate_rank", halves.norm_gate_rank, 1 << 20),
  UINT ("ngram_tables", halves.ngram_tables, 4096),
  UINT ("ngram_rows", halves.ngram_rows, 1u << 31),
  UINT ("laurel_rank", halves.laurel_rank, 1 << 20),
  UINT ("kv_shared_layers", halves.kv_shared_layers, 65536),
  UINT ("sparse_layers", halves.sparse_layers, 65536),
  { .table = "model" },
};
