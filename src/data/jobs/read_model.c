#include "data/jobs/job_files.h"

#include <string.h>

#include "data/datadir.h"
#include "data/text/override.h"

static const LsEnumName mlps[] = {
  { "gelu", LS_MLP_GELU },
  { "relu2", LS_MLP_RELU2 },
  { "swiglu", LS_MLP_SWIGLU },
  { "geglu", LS_MLP_GEGLU },
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
static const LsEnumName mixers[] = {
  { "none", LS_MIXER_NONE },   { "mamba1", LS_MIXER_MAMBA1 },   { "mamba2", LS_MIXER_MAMBA2 },
  { "delta", LS_MIXER_DELTA }, { "linear", LS_MIXER_LINEAR },   { "conv", LS_MIXER_CONV },
  { "kda", LS_MIXER_KDA },     { "product", LS_MIXER_PRODUCT }, { NULL },
};
static const LsEnumName attentions[] = {
  { "flash", LS_ATTENTION_FLASH },
  { "unfused", LS_ATTENTION_UNFUSED },
  { NULL },
};

#define UINT(key_, member, max_, ...)                                                                        \
  {                                                                                                          \
    key_, LS_FIELD_UINT, offsetof (LsModel, member), .min = 1, .max = (max_), __VA_ARGS__                    \
  }
#define LIST(key_, max_, default_, meaning_)                                                                 \
  {                                                                                                          \
#key_, LS_FIELD_UINT_LIST, offsetof(LsModel, key_), .n_offset = offsetof(LsModel, n_##key_),             \
                                                        .max = (max_), .runs = true, .file_only = true,      \
                                                        .default_text = (default_), .meaning = (meaning_)    \
  }
#define BOOL(key_, meaning_)                                                                                 \
  {                                                                                                          \
#key_, LS_FIELD_BOOL, offsetof(LsModel, key_), .default_text = "false", .meaning = (meaning_)            \
  }
#define ENUM(key_, names_, ...)                                                                              \
  {                                                                                                          \
#key_, LS_FIELD_ENUM, offsetof(LsModel, key_), .names = (names_), __VA_ARGS__                            \
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
  ENUM (mlp, mlps, .required = true,
        .meaning = "activation; swiglu and geglu have three matrices, the others two"),
  ENUM (norm, norms, .required = true,
        .meaning = "normalisation; layernorm_weight has no bias, layernorm_plain nothing to learn"),
  ENUM (norms, places, .default_text = "`\"pre\"`",
        .meaning = "where they stand: before attention and the MLP, after (`post`), `both`, or one before "
                   "both, side by side (`shared`)"),
  ENUM (position, positions, .required = true, .meaning = "position encoding"),
  ENUM (attention, attentions, .default_text = "`\"flash\"`",
        .meaning = "attention kernels, unless the run says otherwise"),
  BOOL (linear_bias, "biases on all linear layers"),
  BOOL (unbiased_qkv, "with linear_bias, on all but QKV (GPT-Neo)"),
  BOOL (qkv_bias, "biases on the QKV projection only"),
  BOOL (qk_norm, "RMS norms of queries and keys"),
  ENUM (qk_norm_over, qk_norms, .default_text = "`\"head\"`",
        .meaning = "what these norm: each head, or all heads together (`all`)"),
  UINT ("rotary_dim", rotary_dim, 1 << 20, .default_text = "head_dim",
        .meaning = "of head_dim, what rope rotates"),
  UINT ("unrotated_every", unrotated_every, 65536, .default_text = "none",
        .meaning = "of every so many layers the last has no rope"),
  UINT ("window", window, 1 << 27, .default_text = "none",
        .meaning = "keys that a query sees in windowed layers, its own among them"),
  ENUM (window_kind, windows, .default_text = "`\"sliding\"`",
        .meaning = "the last keys (`sliding`), or those of its block of so many (`chunk`)"),
  UINT ("full_every", full_every, 65536, .default_text = "none",
        .meaning = "of every so many layers the last sees the whole sequence"),
  BOOL (full_first, "of these the first sees the whole sequence, not the last"),
  UINT ("window_heads", window_heads, 65536, .default_text = "heads",
        .meaning = "attention heads of windowed layers"),
  UINT ("window_kv_heads", window_kv_heads, 65536, .default_text = "kv_heads",
        .meaning = "their heads of keys and values"),
  UINT ("window_head_dim", window_head_dim, 1 << 20, .default_text = "head_dim", .meaning = "their width"),
  BOOL (full_k_is_v, "layers that see the whole sequence take keys for values, too"),
  BOOL (logit_cap, "logits are capped by a tanh"),
  BOOL (attention_gate, "attention's output is gated, by a projection as wide as that of queries"),
  { "layer_pattern", LS_FIELD_STRING, offsetof (LsModel, layer_pattern), .default_text = "`\"A\"`",
    .meaning
    = "a letter a layer, begun again at its end: A attention and MLP or experts, M a mixer and those, P both "
      "side by side and those; a, m, d, e: attention, a mixer, an MLP, experts alone; S, H: attention to "
      "compressed keys that are chosen, or to all of them, and MLP or experts" },
  LIST (layer_heads, 65536, "heads",
        "attention heads layer by layer, begun again at the end; 0: as `heads` has it"),
  LIST (layer_kv_heads, 65536, "kv_heads", "likewise heads of keys and values"),
  LIST (layer_ffn, 1 << 22, "ffn", "likewise inner widths of MLPs"),
  LIST (layer_window, 1 << 27, "none", "likewise keys that a query sees; 0: the whole sequence"),
  LIST (layer_experts, 65536, "experts", "likewise experts, of layers that have them"),
  LIST (layer_top_k, 65536, "top_k", "likewise experts that each token is sent to"),
  LIST (layer_expert_ffn, 1 << 22, "expert_ffn", "likewise inner widths of experts"),
  ENUM (
      mixer, mixers, .default_text = "`\"none\"`",
      .meaning
      = "what M and m are: a state-space model (`mamba1`, `mamba2`), a gated delta net (`delta`), "
        "`linear` attention, a short convolution (`conv`), Kimi's delta attention (`kda`), one linear layer "
        "(`product`); the keys that follow go with it"),
  UINT ("mixer_heads", mixer_heads, 1 << 20, .default_text = "none", .meaning = "its heads"),
  UINT ("mixer_head_dim", mixer_head_dim, 1 << 20, .default_text = "1", .meaning = "width of a head"),
  UINT ("mixer_groups", mixer_groups, 65536, .default_text = "mixer_heads",
        .meaning = "groups of heads that share keys"),
  UINT ("mixer_state", mixer_state, 65536, .default_text = "mixer_head_dim",
        .meaning = "width of a key, which a head's state has for each of its own"),
  UINT ("mixer_conv", mixer_conv, 4096, .default_text = "4",
        .meaning = "taps of its convolution over tokens"),
  UINT ("mixer_chunk", mixer_chunk, 65536, .default_text = "256 (delta, kda: 64)",
        .meaning = "tokens that meet each other in matrix products"),
  UINT ("mixer_rank", mixer_rank, 1 << 20, .default_text = "hidden / 16",
        .meaning = "rank of the step sizes of mamba1"),
  BOOL (mixer_full_gate, "the gate of kda is one matrix, not two of low rank"),
  BOOL (tied_embeddings, "the head shares the embedding's weights"),
  BOOL (dropout, "trained with dropout"),
  UINT ("experts", n_experts, 65536, .default_text = "none",
        .meaning = "experts of a layer; the keys that follow go with it"),
  UINT ("top_k", top_k, 65536, .default_text = "none", .meaning = "experts that each token is sent to"),
  UINT ("zero_experts", zero_experts, 65536, .default_text = "none",
        .meaning
        = "outputs of the router beside these that stand for doing nothing; `top_k` is without them, "
          "on the mean"),
  UINT ("expert_groups", expert_groups, 1024, .default_text = "none",
        .meaning
        = "equal parts of the experts, in order: a token is sent to experts of `top_groups` of them"),
  UINT ("top_groups", top_groups, 1024, .default_text = "none",
        .meaning = "groups that each token is sent to"),
  UINT ("expert_ffn", expert_ffn, 1 << 22, .default_text = "none", .meaning = "inner width of one expert"),
  UINT ("adjugate_ffn", adjugate_ffn, 1 << 22, .default_text = "none",
        .meaning = "inner width of a small expert beside each, which `adjugate_of` neighbours share"),
  UINT ("adjugate_of", adjugate_of, 65536, .default_text = "none", .meaning = "so many"),
  UINT ("expert_latent", expert_latent, 1 << 20, .default_text = "none",
        .meaning = "width that experts read and write, behind a projection of all tokens and before another"),
  UINT ("shared_ffn", shared_ffn, 1 << 22, .default_text = "none",
        .meaning = "inner width of the shared experts together, which see every token"),
  UINT ("dense_layers", n_dense_layers, 65536, .default_text = "none",
        .meaning = "first layers that have an MLP, of width ffn, and no experts"),
  UINT ("moe_every", moe_every, 65536, .default_text = "1",
        .meaning = "of every so many of the others the last has experts"),
  UINT ("predict_layers", predict_layers, 64, .default_text = "none",
        .meaning
        = "layers behind the last that predict tokens further ahead (MTP): each takes its input and an "
          "embedding through a projection, and ends in the head again"),
  UINT ("own_layers", own_layers, 65536, .default_text = "layers",
        .meaning = "first layers, whose weights those behind them use again, in order"),
  UINT ("encoder_layers", encoder_layers, 65536, .default_text = "none",
        .meaning = "first layers that are an encoder's; the others are a decoder's that attends to it, too"),
  UINT ("decoder_seq", decoder_seq, 1 << 27, .default_text = "seq",
        .meaning = "tokens of a sequence of that decoder"),
  BOOL (merged_cross, "that decoder meets its tokens and the encoder's at once, with the same weights"),
  UINT ("kv_lora", kv_lora, 1 << 20, .default_text = "none",
        .meaning = "latent width of keys and values (multi-head latent attention); the keys that follow go "
                   "with it"),
  UINT ("q_lora", q_lora, 1 << 20, .default_text = "none", .meaning = "latent width of queries"),
  UINT ("rope_dim", rope_dim, 1 << 20, .default_text = "none",
        .meaning = "of head_dim, what is rotated: one such key for all heads"),
  UINT ("index_heads", index_heads, 65536, .default_text = "none",
        .meaning = "heads of the indexer that chooses `window` keys for each query"),
  UINT ("index_dim", index_dim, 65536, .default_text = "none", .meaning = "their width"),
  UINT ("index_block", index_block, 65536, .default_text = "one",
        .meaning = "keys that it chooses together, without latent attention"),
  UINT ("index_every", index_every, 65536, .default_text = "1",
        .meaning
        = "behind the first layers of every so many the last has an indexer, the others meet the keys "
          "that it chose"),
  UINT ("index_first", index_first, 65536, .default_text = "none",
        .meaning = "so many layers first, which all have one"),
  UINT ("v_dim", v_dim, 1 << 20, .default_text = "head_dim", .meaning = "width of one head of values"),
  UINT ("out_groups", out_groups, 65536, .default_text = "none",
        .meaning = "attention to compressed keys (DeepSeek-V4), whose heads share one key that is its value: "
                   "groups of heads on the way out; the keys that follow go with it, and `q_lora`, "
                   "`rope_dim`, `window`"),
  UINT ("out_lora", out_lora, 1 << 20, .default_text = "none", .meaning = "columns of each group"),
  UINT ("csa_ratio", csa_ratio, 65536, .default_text = "none",
        .meaning = "tokens of a compressed key in layers S, which an indexer chooses from"),
  UINT ("index_top", index_top, 1 << 27, .default_text = "none", .meaning = "keys that it chooses"),
  UINT ("hca_ratio", hca_ratio, 1 << 20, .default_text = "none",
        .meaning = "tokens of a compressed key in layers H"),
  UINT ("streams", streams, 64, .default_text = "one",
        .meaning = "residual streams, mixed before and behind each half of a layer (hyper-connections)"),
  { NULL },
};

static bool
complain (const LsJsonDoc *doc, const char *key, LsDiagList *diags, const char *hint, const char *message)
{
  const cJSON *root = ls_json_doc_root (doc), *node = cJSON_GetObjectItemCaseSensitive (root, key);
  ls_json_doc_diag (doc, node ? node : root, LS_JSON_AT_VALUE, diags, hint, "%s", message);
  return false;
}

#define MAX_PARAMS 1e18 /* counted in 64 bits, as are the bytes of some of them */

static bool
complete_experts (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags)
{
  if (m->n_experts == 0) {
    bool is_dense = m->expert_latent + m->zero_experts + m->top_k + m->expert_groups + m->top_groups
            + m->expert_ffn + m->adjugate_ffn + m->adjugate_of + m->shared_ffn + m->n_dense_layers
            + m->moe_every
        == 0;
    return is_dense
        || complain (doc, "experts", diags, NULL, "missing key \"experts\", which others go with");
  }
  m->moe_every = m->moe_every ? m->moe_every : 1;
  if (m->top_k == 0 || m->top_k > m->n_experts)
    return complain (doc, "top_k", diags, NULL, "expected \"top_k\" from 1 to the number of experts");
  if (m->expert_ffn == 0)
    return complain (doc, "expert_ffn", diags, NULL,
                     "missing key \"expert_ffn\", the inner width of an expert");
  const char *wanted = ls_model_check_expert_parts (m);
  if (wanted)
    return complain (doc, m->adjugate_ffn > 0 ? "adjugate_ffn" : "expert_groups", diags, NULL, wanted);
  if (ls_model_n_moe_layers (m) == 0)
    return complain (doc, "dense_layers", diags, NULL, "expected at least one layer with experts");
  if (3.0 * m->n_layers * m->n_experts * m->hidden * m->expert_ffn > MAX_PARAMS)
    return complain (doc, "experts", diags, NULL, "expected experts of fewer than 1e18 parameters together");
  if (m->linear_bias)
    return complain (doc, "linear_bias", diags, NULL,
                     "expected no biases in a model with experts: grouped matrix products have none");
  return true;
}

static bool
has_letter (const LsModel *m, char letter)
{
  return m->layer_pattern && strchr (m->layer_pattern, letter);
}

static bool
complete_compressed (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  bool chooses = has_letter (m, 'S'), indexes = m->index_heads > 0 && m->index_dim > 0;
  bool says_indexer = m->index_heads + m->index_dim + m->index_top > 0;
  if (m->out_lora == 0 || m->q_lora == 0 || m->rope_dim == 0 || m->rope_dim > m->head_dim || m->window == 0)
    return complain (
        doc, "out_groups", diags, NULL,
        "expected \"out_lora\", \"q_lora\", \"rope_dim\" of at most head_dim and \"window\" with "
        "attention to compressed keys");
  if (m->n_heads % m->out_groups != 0 || m->n_kv_heads != 1)
    return complain (doc, "out_groups", diags, NULL,
                     "expected a divisor of the heads, and \"kv_heads\" 1, which all of them share");
  if (m->kv_lora + m->v_dim + m->full_every > 0 || m->position != LS_POSITION_ROPE || m->linear_bias
      || m->qkv_bias || m->qk_norm || m->attention_gate || m->rotary_dim > 0 || m->encoder_layers > 0
      || m->window_kind != LS_WINDOW_SLIDING)
    return complain (doc, "out_groups", diags, NULL,
                     "expected rope, a sliding window in all layers, and neither latents of keys, biases, "
                     "norms of heads, gates nor an encoder");
  if (chooses != (m->csa_ratio > 0) || chooses != says_indexer
      || (chooses && (!indexes || m->index_top == 0)))
    return complain (
        doc, "csa_ratio", diags, NULL,
        "expected \"csa_ratio\", \"index_heads\", \"index_dim\" and \"index_top\" with layers S, "
        "and only with them");
  return has_letter (m, 'H') == (m->hca_ratio > 0)
      || complain (doc, "hca_ratio", diags, NULL, "expected \"hca_ratio\" with layers H, and only with them");
}

static bool
complete_latent (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  if (m->out_groups > 0)
    return complete_compressed (doc, m, diags);
  if (m->out_lora + m->csa_ratio + m->index_top + m->hca_ratio > 0)
    return complain (doc, "out_groups", diags, NULL, "missing key \"out_groups\", which others go with");
  const char *wanted = ls_model_check_indexer (m);
  if (wanted)
    return complain (doc, m->index_every > 0 ? "index_every" : "index_heads", diags, NULL, wanted);
  if (m->kv_lora == 0)
    return m->q_lora + m->rope_dim == 0
        || complain (doc, "kv_lora", diags, NULL, "missing key \"kv_lora\", which others go with");
  if (m->v_dim == 0 || m->rope_dim == 0 || m->rope_dim >= m->head_dim)
    return complain (doc, "kv_lora", diags, NULL, "expected \"v_dim\", and \"rope_dim\" below head_dim");
  if (m->n_kv_heads != m->n_heads || m->qkv_bias || m->linear_bias || m->qk_norm
      || (m->position != LS_POSITION_ROPE && m->position != LS_POSITION_NONE))
    return complain (
        doc, "kv_lora", diags, NULL,
        "expected as many heads of keys and values as of queries, rope or no positions, and neither "
        "biases nor qk_norm, with latent attention");
  return true;
}

static bool
complete_attention (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  if (m->window == 0 && (m->full_every > 0 || m->window_kind != LS_WINDOW_SLIDING))
    return complain (doc, "full_every", diags, NULL, "missing key \"window\", which others go with");
  if (m->full_first && m->full_every == 0)
    return complain (doc, "full_first", diags, NULL, "missing key \"full_every\", which this one goes with");
  if (m->qk_norm_over != LS_QK_NORM_HEAD && !m->qk_norm)
    return complain (doc, "qk_norm_over", diags, NULL, "missing key \"qk_norm\", which this one goes with");
  if ((m->rotary_dim > 0 || m->unrotated_every > 0) && m->position != LS_POSITION_ROPE)
    return complain (doc, "position", diags, NULL, "expected \"rope\", as there is what it rotates");
  if (m->rotary_dim > m->head_dim)
    return complain (doc, "rotary_dim", diags, NULL, "expected \"rotary_dim\" of at most head_dim");
  if (m->unbiased_qkv && !m->linear_bias)
    return complain (doc, "unbiased_qkv", diags, NULL, "expected \"linear_bias\" with biases on all but QKV");
  return !ls_model_check_values (m) || complain (doc, "v_dim", diags, NULL, ls_model_check_values (m));
}

/* Heads that windowed layers have for their own. */
static bool
complete_window_heads (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  if (m->window_heads + m->window_kv_heads + m->window_head_dim == 0 && !m->full_k_is_v)
    return true;
  if (m->window == 0 || m->full_every == 0)
    return complain (
        doc, "window_heads", diags, NULL,
        "expected \"window\" and \"full_every\", so that some layers are windowed and some are not");
  if (m->kv_lora > 0 || m->encoder_layers > 0)
    return complain (doc, "window_heads", diags, NULL,
                     "expected neither latent attention nor an encoder where layers differ in their heads");
  LsModel windowed = ls_model_of_kind (m, LS_LAYER_WINDOWED);
  return windowed.n_heads % windowed.n_kv_heads == 0
      || complain (doc, "window_kv_heads", diags, NULL, "expected a divisor of the heads of windowed layers");
}

static bool
has_mixers (const LsModel *m)
{
  return m->layer_pattern && strpbrk (m->layer_pattern, "MmP");
}

static bool
complete_pattern (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  const char *pattern = m->layer_pattern;
  if (pattern && (!*pattern || pattern[strspn (pattern, "AMPSHamde")]))
    return complain (doc, "layer_pattern", diags, NULL, "expected letters of A, M, P, S, H, a, m, d and e");
  if (pattern && strpbrk (pattern, "SH") && m->out_groups == 0)
    return complain (doc, "layer_pattern", diags, NULL, "missing key \"out_groups\", for layers S and H");
  if (m->streams > 1 && m->norms != LS_NORMS_PRE)
    return complain (doc, "streams", diags, NULL, "expected norms before each half with several streams");
  if (m->streams > 1 && (m->dropout || m->encoder_layers > 0))
    return complain (doc, "streams", diags, NULL,
                     "expected neither dropout nor an encoder with several streams");
  if (pattern && strchr (pattern, 'e') && m->n_experts == 0)
    return complain (doc, "layer_pattern", diags, NULL, "missing key \"experts\", for layers of them alone");
  if (m->norms == LS_NORMS_SHARED && pattern && strpbrk (pattern, "amde"))
    return complain (doc, "layer_pattern", diags, NULL, "expected two halves of a layer that share a norm");
  return true;
}

/* What the file may leave out of a mixer. */
static bool
complete_mixer (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags)
{
  uint32_t said = m->mixer_heads + m->mixer_head_dim + m->mixer_groups + m->mixer_state + m->mixer_conv
      + m->mixer_chunk + m->mixer_rank + m->mixer_full_gate;
  bool is_delta = m->mixer == LS_MIXER_DELTA || m->mixer == LS_MIXER_KDA;
  if (m->mixer == LS_MIXER_NONE)
    return (said == 0 && !has_mixers (m)) || complain (doc, "mixer", diags, NULL, "missing key \"mixer\"");
  if (m->mixer_heads == 0 || !has_mixers (m))
    return complain (doc, "mixer", diags, NULL,
                     "missing key \"mixer_heads\" or \"layer_pattern\" with an M or m");
  m->mixer_head_dim = m->mixer_head_dim ? m->mixer_head_dim : 1;
  if (m->mixer == LS_MIXER_KDA && (m->mixer_groups > 0 || m->mixer_state > 0))
    return complain (doc, "mixer_state", diags, NULL, "expected neither groups nor a state with kda");
  if (m->mixer == LS_MIXER_PRODUCT && (m->mixer_heads != 1 || m->mixer_head_dim != m->hidden))
    return complain (doc, "mixer_heads", diags, NULL, "expected one head as wide as hidden of a product");
  if (m->mixer != LS_MIXER_KDA && m->mixer_full_gate)
    return complain (doc, "mixer_full_gate", diags, NULL, "expected it with kda");
  m->mixer_groups = m->mixer_groups ? m->mixer_groups : m->mixer_heads;
  m->mixer_state = m->mixer_state ? m->mixer_state : m->mixer_head_dim;
  m->mixer_conv = m->mixer_conv ? m->mixer_conv : 4;
  m->mixer_chunk = m->mixer_chunk ? m->mixer_chunk : is_delta ? 64 : 256;
  m->mixer_rank = m->mixer != LS_MIXER_MAMBA1 ? 0 : m->mixer_rank ? m->mixer_rank : MAX (1, m->hidden / 16);
  return true;
}

static bool
complete_sides (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  const char *wanted = ls_model_check_sides (m);
  bool has_encoder = m->encoder_layers + m->decoder_seq > 0 || m->merged_cross;
  return !wanted || complain (doc, has_encoder ? "encoder_layers" : "own_layers", diags, NULL, wanted);
}

/* The last of the lists that there are. */
static const char *
listed_key (const LsModel *m)
{
  const char *key = "layers";
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (f->kind == LS_FIELD_UINT_LIST && G_STRUCT_MEMBER (uint32_t, m, f->n_offset) > 0)
      key = f->key;
  return key;
}

bool
ls_model_complete (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags)
{
  bool ok = complete_experts (doc, m, diags);
  ok = complete_pattern (doc, m, diags) && complete_mixer (doc, m, diags) && ok;
  ok = complete_attention (doc, m, diags) && complete_window_heads (doc, m, diags) && ok;
  const char *wanted = ls_model_check_lists (m);
  ok = (!wanted || complain (doc, listed_key (m), diags, NULL, wanted)) && ok;
  ok = complete_sides (doc, m, diags) && ok;
  return complete_latent (doc, m, diags) && ok;
}

/* What the file may leave out, and what must divide what. */
static bool
complete (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags)
{
  bool ok = true;
  m->n_kv_heads = m->n_kv_heads ? m->n_kv_heads : m->n_heads;
  m->ffn = m->ffn ? m->ffn : 4 * m->hidden;
  if (m->head_dim == 0 && m->hidden % m->n_heads != 0) {
    g_autofree char *text
        = g_strdup_printf ("%u heads do not divide a hidden size of %u", m->n_heads, m->hidden);
    ok = complain (doc, "heads", diags, "give \"head_dim\" if a head is not hidden / heads wide", text);
  }
  m->head_dim = m->head_dim ? m->head_dim : m->hidden / m->n_heads;
  if (m->n_heads % m->n_kv_heads != 0) {
    g_autofree char *text = g_strdup_printf ("%u heads do not share %u heads of keys and values evenly",
                                             m->n_heads, m->n_kv_heads);
    ok = complain (doc, "kv_heads", diags, NULL, text);
  }
  return ls_model_complete (doc, m, diags) && ok;
}

static bool
read_native (const LsJsonDoc *doc, bool is_file, LsModel *ret_model, LsDiagList *diags)
{
  LsModel model = { .attention = LS_ATTENTION_FLASH };
  bool ok = is_file ? ls_fields_read_file (ls_model_fields, "model", doc, &model, diags)
                    : ls_fields_read (ls_model_fields, doc, ls_json_doc_root (doc), &model, NULL, diags);
  ok = ok && complete (doc, &model, diags);
  if (ok)
    *ret_model = model;
  else
    ls_model_clear (&model);
  return ok;
}

bool
ls_model_read (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  if (ls_refuse_adapter (doc, diags))
    return false;
  return ls_is_hf_config (doc) ? ls_model_read_hf (doc, ret_model, notes, diags)
                               : read_native (doc, true, ret_model, diags);
}

bool
ls_model_read_part (const LsJsonDoc *doc, LsModel *ret_model, LsDiagList *diags)
{
  return read_native (doc, false, ret_model, diags);
}

bool
ls_model_load (const char *name, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  g_autofree char *file = ls_model_file_of (name, diags);
  g_autoptr (LsJsonDoc) doc = file ? ls_data_load (LS_DATA_MODELS, file, diags) : NULL;
  if (!doc || !ls_model_read (doc, ret_model, notes, diags))
    return false;
  ret_model->name = ls_override_name (ret_model->name, name);
  return true;
}
