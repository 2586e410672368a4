/* data/jobs/read_model.c — models/ and models/scaling/ read; models of others by their names and their
 * config.json. */
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"
#include "model/lora.h"
#include "model/mixer.h"

/* --- models/ read -------------------------------------------------------------------------------- */

static bool
complain (const LsJsonDoc *doc, const char *key, LsDiagList *diags, const char *message)
{
  const cJSON *root = ls_json_doc_root (doc), *node = cJSON_GetObjectItemCaseSensitive (root, key);
  return ls_json_doc_diag (doc, node ? node : root, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
}

#define MAX_PARAMS 1e18 /* counted in 64 bits, as are the bytes of some of them */

static bool
complete_experts (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags)
{
  if (m->moe.n_experts == 0) {
    bool is_dense = m->moe.latent + m->moe.zero_experts + m->moe.top_k + m->moe.groups + m->moe.top_groups
            + m->moe.expert_ffn + m->moe.adjugate_ffn + m->moe.adjugate_of + m->moe.shared_ffn
            + m->moe.n_dense_layers + m->moe.every + m->moe.sigmoid_router
        == 0;
    return is_dense || complain (doc, "experts", diags, "missing key \"experts\", which others go with");
  }
  m->moe.every = m->moe.every ? m->moe.every : 1;
  if (m->moe.top_k == 0 || m->moe.top_k > m->moe.n_experts)
    return complain (doc, "top_k", diags, "expected \"top_k\" from 1 to the number of experts");
  if (m->moe.expert_ffn == 0)
    return complain (doc, "expert_ffn", diags, "missing key \"expert_ffn\", the inner width of an expert");
  const char *wanted = ls_model_check_expert_parts (m);
  if (wanted)
    return complain (doc, m->moe.adjugate_ffn > 0 ? "adjugate_ffn" : "expert_groups", diags, wanted);
  if (ls_model_n_moe_layers (m) == 0)
    return complain (doc, "dense_layers", diags, "expected at least one layer with experts");
  if (3.0 * m->n_layers * m->moe.n_experts * m->hidden * m->moe.expert_ffn > MAX_PARAMS)
    return complain (doc, "experts", diags, "expected experts of fewer than 1e18 parameters together");
  if (m->linear_bias && m->moe.shared_ffn + m->moe.latent + m->moe.adjugate_ffn + m->moe.router_hidden > 0)
    return complain (doc, "linear_bias", diags,
                     "expected neither shared experts, small ones, a latent around experts nor layers of a "
                     "router in a model with experts and biases");
  return true;
}

static bool
has_letter (const LsModel *m, char letter)
{
  return m->layers.pattern && strchr (m->layers.pattern, letter);
}

static bool
complete_compressed (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  bool chooses = has_letter (m, 'S'), indexes = m->index.heads > 0 && m->index.dim > 0;
  bool says_indexer = m->index.heads + m->index.dim + m->index.top > 0;
  if (m->compressed.out_lora == 0 || m->latent.q_lora == 0 || m->latent.rope_dim == 0
      || m->latent.rope_dim > m->head_dim || m->attn.window == 0)
    return complain (
        doc, "out_groups", diags,
        "expected \"out_lora\", \"q_lora\", \"rope_dim\" of at most head_dim and \"window\" with "
        "attention to compressed keys");
  if (m->n_heads % m->compressed.out_groups != 0 || m->n_kv_heads != 1)
    return complain (doc, "out_groups", diags,
                     "expected a divisor of the heads, and \"kv_heads\" 1, which all of them share");
  if (m->latent.kv_lora + m->v_dim + m->attn.full_every > 0 || m->position != LS_POSITION_ROPE
      || m->linear_bias || m->attn.qkv_bias || m->attn.qk_norm || m->attn.gate || m->attn.rotary_dim > 0
      || m->sides.encoder_layers > 0 || m->attn.window_kind != LS_WINDOW_SLIDING)
    return complain (doc, "out_groups", diags,
                     "expected rope, a sliding window in all layers, and neither latents of keys, biases, "
                     "norms of heads, gates nor an encoder");
  if (chooses != (m->compressed.csa_ratio > 0) || chooses != says_indexer
      || (chooses && (!indexes || m->index.top == 0)))
    return complain (
        doc, "csa_ratio", diags,
        "expected \"csa_ratio\", \"index_heads\", \"index_dim\" and \"index_top\" with layers S, "
        "and only with them");
  return has_letter (m, 'H') == (m->compressed.hca_ratio > 0)
      || complain (doc, "hca_ratio", diags, "expected \"hca_ratio\" with layers H, and only with them");
}

/* Queries of plain attention alone. */
static bool
complete_latent_queries (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  if (m->latent.rope_dim > 0)
    return complain (doc, "kv_lora", diags, "missing key \"kv_lora\", which \"rope_dim\" goes with");
  bool is_plain = !m->linear_bias && !m->attn.qkv_bias && !m->attn.gate && !m->attn.full_k_is_v
      && m->halves.kv_shared_layers + m->sides.encoder_layers == 0;
  return m->latent.q_lora == 0 || is_plain
      || complain (doc, "q_lora", diags,
                   "expected neither biases, gates, an encoder, shared keys nor keys that are values with "
                   "queries from a latent");
}

static bool
complete_latent (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  if (m->compressed.out_groups > 0)
    return complete_compressed (doc, m, diags);
  if (m->compressed.out_lora + m->compressed.csa_ratio + m->index.top + m->compressed.hca_ratio > 0)
    return complain (doc, "out_groups", diags, "missing key \"out_groups\", which others go with");
  const char *wanted = ls_model_check_indexer (m);
  if (wanted)
    return complain (doc, m->index.every > 0 ? "index_every" : "index_heads", diags, wanted);
  if (m->latent.kv_lora == 0)
    return complete_latent_queries (doc, m, diags);
  if (m->v_dim == 0 || m->latent.rope_dim == 0 || m->latent.rope_dim >= m->head_dim)
    return complain (doc, "kv_lora", diags, "expected \"v_dim\", and \"rope_dim\" below head_dim");
  if (m->n_kv_heads != m->n_heads || m->attn.qkv_bias || m->linear_bias || m->attn.qk_norm
      || (m->position != LS_POSITION_ROPE && m->position != LS_POSITION_NONE))
    return complain (
        doc, "kv_lora", diags,
        "expected as many heads of keys and values as of queries, rope or no positions, and neither "
        "biases nor qk_norm, with latent attention");
  return true;
}

static bool
complete_attention (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  if (m->attn.window == 0 && (m->attn.full_every > 0 || m->attn.window_kind != LS_WINDOW_SLIDING))
    return complain (doc, "full_every", diags, "missing key \"window\", which others go with");
  if (m->attn.full_first && m->attn.full_every == 0)
    return complain (doc, "full_first", diags, "missing key \"full_every\", which this one goes with");
  if (m->attn.qk_norm_over != LS_QK_NORM_HEAD && !m->attn.qk_norm)
    return complain (doc, "qk_norm_over", diags, "missing key \"qk_norm\", which this one goes with");
  if ((m->attn.rotary_dim > 0 || m->attn.unrotated_every > 0) && m->position != LS_POSITION_ROPE)
    return complain (doc, "position", diags, "expected \"rope\", as there is what it rotates");
  if (m->attn.scaled_rope && m->position != LS_POSITION_ROPE)
    return complain (doc, "scaled_rope", diags, "expected \"position\" rope, which it scales");
  if (m->attn.gate_own && !m->attn.gate)
    return complain (doc, "attention_gate_own", diags, "expected \"attention_gate\" with a layer for it");
  if (m->attn.rotary_dim > m->head_dim)
    return complain (doc, "rotary_dim", diags, "expected \"rotary_dim\" of at most head_dim");
  if (ls_model_check_windowed_gate (m))
    return complain (doc, "attention_gate_windowed", diags, ls_model_check_windowed_gate (m));
  if (m->attn.unbiased_qkv && !m->linear_bias)
    return complain (doc, "unbiased_qkv", diags, "expected \"linear_bias\" with biases on all but QKV");
  return !ls_model_check_values (m) || complain (doc, "v_dim", diags, ls_model_check_values (m));
}

/* Heads that windowed layers have for their own. */
static bool
complete_window_heads (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  if (m->attn.window_heads + m->attn.window_kv_heads + m->attn.window_head_dim == 0 && !m->attn.full_k_is_v)
    return true;
  if (m->attn.window == 0 || m->attn.full_every == 0)
    return complain (
        doc, "window_heads", diags,
        "expected \"window\" and \"full_every\", so that some layers are windowed and some are not");
  if (m->latent.kv_lora > 0 || m->sides.encoder_layers > 0)
    return complain (doc, "window_heads", diags,
                     "expected neither latent attention nor an encoder where layers differ in their heads");
  LsModel windowed = ls_model_of_kind (m, LS_LAYER_WINDOWED);
  return windowed.n_heads % windowed.n_kv_heads == 0
      || complain (doc, "window_kv_heads", diags, "expected a divisor of the heads of windowed layers");
}

static bool
has_mixers (const LsModel *m)
{
  return m->layers.pattern && strpbrk (m->layers.pattern, "MmPB");
}

static bool
complete_pattern (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  const char *pattern = m->layers.pattern;
  if (pattern && (!*pattern || pattern[strspn (pattern, "ABDMPSHamde")]))
    return complain (doc, "layer_pattern", diags, "expected letters of A, B, D, M, P, S, H, a, m, d and e");
  if (pattern && strpbrk (pattern, "SH") && m->compressed.out_groups == 0)
    return complain (doc, "layer_pattern", diags, "missing key \"out_groups\", for layers S and H");
  if (ls_streams_mix (m) && m->norms != LS_NORMS_PRE)
    return complain (doc, "streams", diags, "expected norms before each half with several streams");
  if (m->halves.streams > 1 && (m->dropout || m->sides.encoder_layers > 0))
    return complain (doc, "streams", diags, "expected neither dropout nor an encoder with several streams");
  if (pattern && strchr (pattern, 'e') && m->moe.n_experts == 0)
    return complain (doc, "layer_pattern", diags, "missing key \"experts\", for layers of them alone");
  if (m->norms == LS_NORMS_SHARED && pattern && strpbrk (pattern, "amdeB"))
    return complain (doc, "layer_pattern", diags, "expected two halves of a layer that share a norm");
  return true;
}

/* What the file may leave out of a mixer. */
static bool
complete_mixer (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags)
{
  static const LsMixerParts nothing;
  G_STATIC_ASSERT (sizeof nothing == 9 * 4 + 8); /* no padding */
  bool is_said = memcmp (&m->mixer, &nothing, sizeof nothing) != 0;
  if (m->mixer.kind == LS_MIXER_NONE)
    return (!is_said && !has_mixers (m)) || complain (doc, "mixer", diags, "missing key \"mixer\"");
  if (m->mixer.heads == 0 || !has_mixers (m))
    return complain (doc, "mixer", diags, "missing key \"mixer_heads\" or \"layer_pattern\" with an M or m");
  m->mixer.head_dim = m->mixer.head_dim ? m->mixer.head_dim : 1;
  const char *key = NULL, *wanted = ls_mixer_check (m, &key);
  if (wanted)
    return complain (doc, key, diags, wanted);
  m->mixer.groups = m->mixer.groups ? m->mixer.groups : m->mixer.heads;
  m->mixer.state = m->mixer.state ? m->mixer.state : m->mixer.head_dim;
  m->mixer.conv = m->mixer.conv ? m->mixer.conv : 4;
  m->mixer.chunk = m->mixer.chunk ? m->mixer.chunk : ls_mixers[m->mixer.kind].chunk;
  if (m->mixer.kind == LS_MIXER_MAMBA1 && m->mixer.rank == 0)
    m->mixer.rank = MAX (1, m->hidden / 16);
  wanted = ls_lora_check_products (m);
  return !wanted || complain (doc, "mixer_products", diags, wanted);
}

/* What is wrong with a key; NULL: nothing. */
typedef struct {
  const char *key, *wrong;
} Verdict;

/* The first of what is wrong. */
static bool
are_right (const LsJsonDoc *doc, const Verdict *verdicts, guint n, LsDiagList *diags)
{
  for (guint i = 0; i < n; i++)
    if (verdicts[i].wrong)
      return complain (doc, verdicts[i].key, diags, verdicts[i].wrong);
  return true;
}

static bool
complete_parts (const LsJsonDoc *doc, const LsModel *m, LsDiagList *diags)
{
  const char *of_blocks = m->layers.shared_blocks > 0 ? "shared_blocks"
      : m->layers.block_mlp_rank > 0                  ? "block_mlp_rank"
      : m->layers.block_attention_rank > 0            ? "block_attention_rank"
                                                      : "layer_pattern";
  const char *of_predictions = m->predict.pattern ? "predict_pattern"
      : m->predict.windowed                       ? "predict_windowed"
                                                  : "predict_shared";
  bool has_encoder = m->sides.encoder_layers + m->sides.decoder_seq > 0 || m->sides.merged_cross;
  const Verdict layers[] = { { "attention_experts", ls_model_check_attention_experts (m) },
                             { of_blocks, ls_model_check_blocks (m) } };
  const Verdict beside[] = {
    { has_encoder ? "encoder_layers" : "own_layers", ls_model_check_sides (m) },
    { "ngram_tables", ls_model_check_ngram (m) },
    { m->latent.gate ? "latent_gate" : "norm_gate_rank", ls_model_check_norm_gate (m) },
    { m->halves.kv_shared_layers > 0 ? "kv_shared_layers" : "layer_input", ls_model_check_beside (m) },
  };
  const Verdict others[] = {
    { m->attn.qk_conv > 0 ? "qk_conv" : "router_hidden", ls_model_check_convolved (m) },
    { "kv_conv", ls_model_check_kv_conv (m) },
    { "difference", ls_model_check_difference (m) },
    { of_predictions, ls_model_check_predictions (m) },
  };
  bool ok = are_right (doc, layers, G_N_ELEMENTS (layers), diags);
  ok = are_right (doc, beside, G_N_ELEMENTS (beside), diags) && ok;
  return are_right (doc, others, G_N_ELEMENTS (others), diags) && ok;
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
  ok = (!wanted || complain (doc, listed_key (m), diags, wanted)) && ok;
  ok = complete_parts (doc, m, diags) && ok;
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
    const cJSON *heads = ls_json_doc_at (doc, "heads");
    ok = ls_json_doc_diag (doc, heads ? heads : ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags,
                           "give \"head_dim\" if a head is not hidden / heads wide",
                           "%u heads do not divide a hidden size of %u", m->n_heads, m->hidden);
  }
  m->head_dim = m->head_dim ? m->head_dim : m->hidden / m->n_heads;
  if (!ls_model_shares_keys_evenly (m)) {
    g_autofree char *text = g_strdup_printf ("%u heads do not share %u heads of keys and values evenly",
                                             m->n_heads, m->n_kv_heads);
    ok = complain (doc, "kv_heads", diags, text);
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

/* Frees the text there was. */
static void
take_text (const LsJsonDoc *doc, const char *key, char **text)
{
  const cJSON *own = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
  if (!cJSON_IsString (own))
    return;
  g_free (*text);
  *text = g_strdup (own->valuestring);
}

/* A config.json is named after its file, but where a list of names has it in place, with name and source. */
static bool
read_config (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  if (!ls_model_read_hf (doc, ret_model, notes, diags))
    return false;
  take_text (doc, "name", &ret_model->name);
  take_text (doc, "source", &ret_model->source);
  return true;
}

bool
ls_model_read (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  if (ls_refuse_adapter (doc, diags))
    return false;
  return ls_is_hf_config (doc) ? read_config (doc, ret_model, notes, diags)
                               : read_native (doc, true, ret_model, diags);
}

bool
ls_model_read_part (const LsJsonDoc *doc, LsModel *ret_model, LsDiagList *diags)
{
  return ls_is_hf_config (doc) ? read_config (doc, ret_model, NULL, diags)
                               : read_native (doc, false, ret_model, diags);
}

/* With the changes behind its name. */
static LsJsonDoc *
load_changed (const char *file, LsDiagList *diags)
{
  const char *changes = ls_override_find (file);
  g_autofree char *bare = changes ? g_strndup (file, (gsize) (changes - 1 - file)) : g_strdup (file);
  LsJsonDoc *doc = ls_data_load (LS_DATA_MODELS, bare, diags);
  if (!doc || !changes)
    return doc;
  return ls_is_hf_config (doc) ? ls_hf_change (doc, changes, diags) : ls_override_apply (doc, changes, diags);
}

bool
ls_model_load (const char *name, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  g_autofree char *file = ls_model_file_of (name, diags);
  g_autoptr (LsJsonDoc) doc = file ? load_changed (file, diags) : NULL;
  if (!doc || !ls_model_read (doc, ret_model, notes, diags))
    return false;
  ret_model->name = ls_override_name (ret_model->name, name);
  return true;
}

/* --- models/scaling/ ----------------------------------------------------------------------------- */

static const LsEnumName params[] = { { "all", LS_SCALING_ALL }, { "layers", LS_SCALING_LAYERS }, { NULL } };
static const LsEnumName kinds_of[]
    = { { "loss", LS_CRITICAL_OF_LOSS }, { "tokens", LS_CRITICAL_OF_TOKENS }, { NULL } };

#define TERM(key_, member_) key_, LS_FIELD_DOUBLE, offsetof (LsPowerTerm, member_)
#define CRITICAL(kind_, member_)                                                                             \
  kind_, offsetof (LsScalingLaw, critical.member_) - offsetof (LsScalingLaw, critical)
#define LAW(key_, kind_, member_) key_, kind_, offsetof (LsScalingLaw, member_)

static const LsField term_fields[] = {
  { TERM ("coefficient", coefficient), .above = true, .max = 1e30 },
  { TERM ("scale", scale), .above = true, .max = 1e30 },
  { TERM ("exponent", exponent), .required = true, .above = true, .max = 10 },
  { .table = "scaling.terms" },
};

static const LsField critical_fields[] = {
  { "of", CRITICAL (LS_FIELD_ENUM, of), .required = true, .names = kinds_of },
  { "tokens", CRITICAL (LS_FIELD_DOUBLE, tokens), .required = true, .above = true, .max = 1e30 },
  { "exponent", CRITICAL (LS_FIELD_DOUBLE, exponent), .required = true, .min = -100, .max = 100 },
  { .table = "scaling.critical_batch" },
};

const LsField ls_scaling_fields[] = {
  LS_FIELDS_HEADER (LsScalingLaw),
  { LAW ("params", LS_FIELD_ENUM, params), .names = params },
  { LAW ("irreducible", LS_FIELD_DOUBLE, irreducible), .max = 100 },
  { LAW ("model", LS_FIELD_OBJECT, model), .fields = term_fields },
  { LAW ("tokens", LS_FIELD_OBJECT, tokens), .fields = term_fields },
  { LAW ("steps", LS_FIELD_OBJECT, steps), .fields = term_fields },
  { LAW ("critical_batch", LS_FIELD_OBJECT, critical), .fields = critical_fields },
  { "sources", LS_FIELD_SOURCES },
  { .table = "scaling" },
};

static bool
check_term (const LsJsonDoc *doc, const char *key, const LsPowerTerm *t, LsDiagList *diags)
{
  bool is_there = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
  if (!is_there || (t->coefficient > 0) != (t->scale > 0))
    return true;
  return complain (doc, key, diags, "expected either \"coefficient\" or \"scale\"");
}

static bool
check_law (const LsJsonDoc *doc, const cJSON *root, void *object, LsDiagList *diags)
{
  const LsScalingLaw *law = object;
  bool has_tokens = ls_json_at (root, "tokens"), has_steps = ls_json_at (root, "steps");
  if (!check_term (doc, "model", &law->model, diags) || !check_term (doc, "tokens", &law->tokens, diags)
      || !check_term (doc, "steps", &law->steps, diags))
    return false;
  if (has_tokens && has_steps)
    return complain (doc, "steps", diags, "expected \"tokens\" or \"steps\"; got both");
  bool is_of_loss = ls_scaling_has_critical (law) && law->critical.of == LS_CRITICAL_OF_LOSS;
  if (is_of_loss && law->critical.exponent > 0)
    return complain (doc, "critical_batch", diags, "of a loss its \"exponent\" is below 0");
  if (has_steps && !is_of_loss)
    return complain (doc, "steps", diags, "\"steps\" need a \"critical_batch\" of the loss to become tokens");
  if (!has_tokens && !has_steps && !ls_scaling_has_critical (law))
    return complain (doc, NULL, diags, "expected \"tokens\", \"steps\" or \"critical_batch\"");
  return true;
}

const LsDataFile ls_scaling_file
    = { "scaling", LS_DATA_SCALING, ls_scaling_fields, sizeof (LsScalingLaw), .finish = check_law };
