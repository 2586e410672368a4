/* data/jobs/read_model.c — models/ and models/scaling/ read; models of others by their names and their
 * config.json. */
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"
#include "model/lora.h"
#include "model/mixer.h"
#include "strategy/strategy.h"

/* --- models/ read -------------------------------------------------------------------------------- */

static bool
complain (const LsJsonDoc *doc, const char *key, LsDiagList *diags, const char *message)
{
  const cJSON *root = ls_json_doc_root (doc), *node = cJSON_GetObjectItemCaseSensitive (root, key);
  return ls_json_doc_wrong (doc, node ? node : root, diags, "%s", message);
}

static bool
has_mixers (const LsModel *m)
{
  return m->layers.pattern && strpbrk (m->layers.pattern, "MmPB");
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
  g_autofree char *key = NULL;
  const char *wanted = ls_model_wrong (m, LS_MODEL_MIXER, &key);
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
  bool ok = true;
  m->moe.every = m->moe.n_experts > 0 && m->moe.every == 0 ? 1 : m->moe.every;
  for (LsModelRules of = 0; of < LS_N_MODEL_RULES; of++) {
    g_autofree char *key = NULL;
    const char *wrong = of == LS_MODEL_MIXER ? NULL : ls_model_wrong (m, of, &key);
    if (wrong)
      ok = complain (doc, of == LS_MODEL_LISTS ? listed_key (m) : key, diags, wrong);
    else if (of == LS_MODEL_PATTERN)
      ok = complete_mixer (doc, m, diags) && ok;
  }
  return ok;
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

/* What a user's own file of ours may leave out and every job heeds, into m. */
static void
find_left_out (const LsJsonDoc *doc, LsModel *m)
{
  static const char *const keys[]
      = { "kv_heads", "head_dim", "ffn", "linear_bias", "qkv_bias", "tied_embeddings", "dropout", NULL };
  const bool has_latent = m->latent.kv_lora > 0; /* of which heads of keys say nothing */
  m->left_out = ls_fields_left_out (ls_model_fields, keys + has_latent, ls_json_doc_root (doc), m);
  m->lacks_attention = !ls_json_doc_at (doc, "attention");
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
  g_autofree char *bare = ls_override_bare (name);
  const bool is_own = ls_json_is_given (name) || ls_data_is_path (bare);
  if (is_own && !ls_is_hf_config (doc))
    find_left_out (doc, ret_model);
  else if (!is_own)
    g_clear_pointer (&ret_model->left_out, g_free);
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
