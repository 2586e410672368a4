/* data/jobs/read_scaling.c — models/scaling/ read. */
#include "data/jobs/job_files.h"

#include "data/datadir.h"

static const LsEnumName params[] = { { "all", LS_SCALING_ALL }, { "layers", LS_SCALING_LAYERS }, { NULL } };
static const LsEnumName kinds_of[]
    = { { "loss", LS_CRITICAL_OF_LOSS }, { "tokens", LS_CRITICAL_OF_TOKENS }, { NULL } };

#define TERM(key_, member_) key_, LS_FIELD_DOUBLE, offsetof (LsPowerTerm, member_)
#define CRITICAL(kind_, member_)                                                                             \
  kind_, offsetof (LsScalingLaw, critical.member_) - offsetof (LsScalingLaw, critical)
#define LAW(key_, kind_, member_) key_, kind_, offsetof (LsScalingLaw, member_)

static const LsField term_fields[] = {
  { TERM ("coefficient", coefficient), .above = true, .max = 1e30, .default_text = "`scale` says it",
    .meaning = "A: the term is A / x^exponent" },
  { TERM ("scale", scale), .above = true, .max = 1e30, .default_text = "`coefficient` says it",
    .meaning = "c: the term is (c / x)^exponent" },
  { TERM ("exponent", exponent), .required = true, .above = true, .max = 10, .meaning = "how fast it falls" },
  { NULL },
};

static const LsField critical_fields[] = {
  { "of", CRITICAL (LS_FIELD_ENUM, of), .required = true, .names = kinds_of,
    .meaning = "x: the loss, or the tokens that small batches need" },
  { "tokens", CRITICAL (LS_FIELD_DOUBLE, tokens), .required = true, .above = true, .max = 1e30,
    .meaning = "B: the critical batch is B x^exponent tokens" },
  { "exponent", CRITICAL (LS_FIELD_DOUBLE, exponent), .required = true, .min = -100, .max = 100,
    .meaning = "below 0 of a loss" },
  { NULL },
};

const LsField ls_scaling_fields[] = {
  LS_FIELDS_HEADER (LsScalingLaw),
  { LAW ("params", LS_FIELD_ENUM, params), .names = params, .default_text = "`\"all\"`",
    .meaning = "what counts as parameters: all; layers: those of the layers, without embeddings and head" },
  { LAW ("irreducible", LS_FIELD_DOUBLE, irreducible), .max = 100, .default_text = "0",
    .meaning = "nats per token that no model goes below" },
  { LAW ("model", LS_FIELD_OBJECT, model), .fields = term_fields, .default_text = "none",
    .meaning = "what the parameters leave" },
  { LAW ("tokens", LS_FIELD_OBJECT, tokens), .fields = term_fields, .default_text = "none",
    .meaning = "what the tokens leave" },
  { LAW ("steps", LS_FIELD_OBJECT, steps), .fields = term_fields, .default_text = "none",
    .meaning = "in its place: what so many steps with endless batches leave" },
  { LAW ("critical_batch", LS_FIELD_OBJECT, critical), .fields = critical_fields, .default_text = "none",
    .meaning = "where a larger batch begins to need more tokens" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

static bool
complain (const LsJsonDoc *doc, const char *key, LsDiagList *diags, const char *message)
{
  const cJSON *root = ls_json_doc_root (doc),
              *node = key ? cJSON_GetObjectItemCaseSensitive (root, key) : root;
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "%s", message);
  return false;
}

static bool
check_term (const LsJsonDoc *doc, const char *key, const LsPowerTerm *t, LsDiagList *diags)
{
  bool is_there = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
  if (!is_there || (t->coefficient > 0) != (t->scale > 0))
    return true;
  return complain (doc, key, diags, "expected either \"coefficient\" or \"scale\"");
}

static bool
check (const LsJsonDoc *doc, const LsScalingLaw *law, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc);
  bool has_tokens = cJSON_GetObjectItemCaseSensitive (root, "tokens"),
       has_steps = cJSON_GetObjectItemCaseSensitive (root, "steps");
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

bool
ls_scaling_read (const LsJsonDoc *doc, LsScalingLaw *ret_law, LsDiagList *diags)
{
  LsScalingLaw law = { 0 };
  bool ok = ls_fields_read_file (ls_scaling_fields, "scaling", doc, &law, diags) && check (doc, &law, diags);
  if (ok)
    *ret_law = law;
  else
    ls_scaling_law_clear (&law);
  return ok;
}

bool
ls_scaling_load (const char *name, LsScalingLaw *ret_law, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_SCALING, name, diags);
  return doc && ls_scaling_read (doc, ret_law, diags);
}
