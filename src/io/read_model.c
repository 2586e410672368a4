#include "io/read_model.h"

#include "io/datadir.h"
#include "io/override.h"
#include "io/read_hf.h"

static const LsEnumName mlps[] = {
  { "gelu", LS_MLP_GELU }, { "relu2", LS_MLP_RELU2 }, { "swiglu", LS_MLP_SWIGLU }, { NULL },
};
static const LsEnumName norms[] = { { "layernorm", LS_NORM_LAYERNORM }, { "rmsnorm", LS_NORM_RMSNORM }, { NULL } };
static const LsEnumName positions[] = {
  { "learned", LS_POSITION_LEARNED }, { "rope", LS_POSITION_ROPE }, { "alibi", LS_POSITION_ALIBI },
  { "none", LS_POSITION_NONE },       { NULL },
};
static const LsEnumName attentions[] = {
  { "flash", LS_ATTENTION_FLASH }, { "unfused", LS_ATTENTION_UNFUSED }, { NULL },
};

#define UINT(key_, member, max_, ...) \
  { key_, LS_FIELD_UINT, offsetof (LsModel, member), .min = 1, .max = (max_), __VA_ARGS__ }
#define BOOL(key_, meaning_) \
  { #key_, LS_FIELD_BOOL, offsetof (LsModel, key_), .default_text = "false", .meaning = (meaning_) }
#define ENUM(key_, names_, ...) { #key_, LS_FIELD_ENUM, offsetof (LsModel, key_), .names = (names_), __VA_ARGS__ }

const LsField ls_model_fields[] = {
  LS_FIELDS_HEADER (LsModel),
  UINT ("layers", n_layers, 65536, .required = true, .meaning = "transformer layers"),
  UINT ("hidden", hidden, 1 << 20, .required = true, .meaning = "width of the residual stream"),
  UINT ("heads", n_heads, 65536, .required = true, .meaning = "attention heads"),
  UINT ("kv_heads", n_kv_heads, 65536, .default_text = "heads", .meaning = "heads of keys and values; fewer with GQA"),
  UINT ("head_dim", head_dim, 1 << 20, .default_text = "hidden / heads", .meaning = "width of one head"),
  UINT ("ffn", ffn, 1 << 22, .default_text = "4 hidden", .meaning = "inner width of the MLP"),
  UINT ("vocab", vocab, 1 << 24, .required = true, .meaning = "entries of the vocabulary as published, before padding"),
  UINT ("seq", seq, 1 << 27, .required = true, .meaning = "tokens of a training sequence"),
  ENUM (mlp, mlps, .required = true, .meaning = "activation; swiglu has three matrices, the others two"),
  ENUM (norm, norms, .required = true, .meaning = "normalisation"),
  ENUM (position, positions, .required = true, .meaning = "position encoding"),
  ENUM (attention, attentions, .default_text = "`\"flash\"`",
        .meaning = "attention kernels, unless the run says otherwise"),
  BOOL (linear_bias, "biases on all linear layers"),
  BOOL (qkv_bias, "biases on the QKV projection only"),
  BOOL (tied_embeddings, "the head shares the embedding's weights"),
  BOOL (dropout, "trained with dropout"),
  { NULL },
};

static bool
complain (const LsJsonDoc *doc, const char *key, LsDiagList *diags, const char *hint, const char *message)
{
  const cJSON *root = ls_json_doc_root (doc), *node = cJSON_GetObjectItemCaseSensitive (root, key);
  ls_json_doc_diag (doc, node ? node : root, LS_JSON_AT_VALUE, diags, hint, "%s", message);
  return false;
}

/* What the file may leave out, and what must divide what. */
static bool
complete (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags)
{
  bool ok = true;
  m->n_kv_heads = m->n_kv_heads ? m->n_kv_heads : m->n_heads;
  m->ffn = m->ffn ? m->ffn : 4 * m->hidden;
  if (m->head_dim == 0 && m->hidden % m->n_heads != 0) {
    g_autofree char *text = g_strdup_printf ("%u heads do not divide a hidden size of %u", m->n_heads, m->hidden);
    ok = complain (doc, "heads", diags, "give \"head_dim\" if a head is not hidden / heads wide", text);
  }
  m->head_dim = m->head_dim ? m->head_dim : m->hidden / m->n_heads;
  if (m->n_heads % m->n_kv_heads != 0) {
    g_autofree char *text = g_strdup_printf ("%u heads do not share %u heads of keys and values evenly",
                                             m->n_heads, m->n_kv_heads);
    ok = complain (doc, "kv_heads", diags, NULL, text);
  }
  return ok;
}

static bool
read_native (const LsJsonDoc *doc, LsModel *ret_model, LsDiagList *diags)
{
  LsModel model = { .attention = LS_ATTENTION_FLASH };
  bool ok = ls_fields_read_file (ls_model_fields, "model", doc, &model, diags) && complete (doc, &model, diags);
  if (ok)
    *ret_model = model;
  else
    ls_model_clear (&model);
  return ok;
}

bool
ls_model_read (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  return ls_is_hf_config (doc) ? ls_model_read_hf (doc, ret_model, notes, diags)
                               : read_native (doc, ret_model, diags);
}

bool
ls_model_load (const char *name, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_MODELS, name, diags);
  if (!doc || !ls_model_read (doc, ret_model, notes, diags))
    return false;
  ret_model->name = ls_override_name (ret_model->name, name);
  return true;
}
