/* Multi-token prediction of a config.json: which layers a block has, and whether blocks share their weights.
 * How many blocks are trained no such file says: a checkpoint has those that its publisher kept. */
#include <string.h>

#include "data/jobs/hf_family.h"

void
hf_read_predictions (const LsJsonDoc *outer, HfConfig *c)
{
  const cJSON *n = hf_get (outer, "predict_layers"), *pattern = hf_get (outer, "predict_pattern");
  if (cJSON_IsNumber (n) && n->valuedouble >= 0 && n->valuedouble <= MAX_PREDICTIONS)
    c->predict_layers = (uint32_t) n->valuedouble;
  if (cJSON_IsString (pattern))
    c->predict_pattern = g_strdup (pattern->valuestring);
  c->predict_shared |= cJSON_IsTrue (hf_get (outer, "predict_shared"));
}

static bool
is_first (const LsJsonDoc *doc, const char *key, const char *wanted)
{
  const cJSON *list = hf_get (doc, key);
  return cJSON_IsArray (list) && g_strcmp0 (cJSON_GetStringValue (list->child), wanted) == 0;
}

/* Of lists of layers that go on behind the last (Step-3.5-Flash); of Transformers' list of blocks. */
static bool
is_windowed (const LsJsonDoc *doc, const HfConfig *c)
{
  const cJSON *behind = cJSON_GetArrayItem (hf_get (doc, "layer_types"), (int) c->layers);
  return g_strcmp0 (cJSON_GetStringValue (behind), "sliding_attention") == 0
      || is_first (doc, "mtp_layer_types", "sliding_attention");
}

/* All blocks are as the first. */
static bool
check_alike (const LsJsonDoc *doc, const char *key, uint32_t n, LsDiagList *diags)
{
  const cJSON *list = hf_get (doc, key), *one;
  uint32_t i = 0;
  if (!cJSON_IsArray (list))
    return true;
  cJSON_ArrayForEach (one, list) if (i++ < n && !cJSON_Compare (one, list->child, true)) return hf_refuse (
      doc, one, diags, "blocks that predict further tokens and differ cannot be simulated");
  return true;
}

/* The caller frees it; NULL: none is said. Of attention to compressed keys, what the list of layers says
 * behind the last; of Transformers' mtp_mlp_layer_types, an MLP where others have experts. */
static char *
find_block (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  const cJSON *letters = hf_get (doc, "mtp_hybrid_override_pattern"),
              *halves = hf_get (doc, "mtp_layers_block_type");
  const cJSON *behind = cJSON_GetArrayItem (hf_get (doc, "compress_ratios"), (int) c->layers);
  if (c->predict_pattern)
    return g_strdup (c->predict_pattern);
  if (f->halves && cJSON_IsString (letters) && *letters->valuestring)
    return hf_pattern_of_letters (doc, letters, diags);
  if (f->halves && cJSON_IsArray (halves) && halves->child)
    return hf_pattern_of_list (doc, f, halves, diags);
  if (f->compressed && cJSON_IsNumber (behind) && behind->valuedouble == 0)
    return g_strdup ("A");
  if (is_first (doc, "mtp_mlp_layer_types", "dense"))
    return g_strdup ("D");
  return g_strdup (f->model.predict.pattern);
}

bool
hf_add_predictions (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m, LsDiagList *diags)
{
  m->predict.layers = c->predict_layers;
  m->predict.pattern = NULL;
  m->predict.windowed = m->predict.shared = false;
  if (c->predict_layers == 0)
    return true;
  guint n = ls_diag_list_n (diags);
  m->predict.pattern = find_block (doc, f, c, diags);
  m->predict.windowed = f->model.predict.windowed || is_windowed (doc, c);
  m->predict.windowed = m->predict.windowed && m->attn.window > 0;
  m->predict.shared = c->predict_shared;
  return ls_diag_list_n (diags) == n && check_alike (doc, "mtp_mlp_layer_types", c->predict_layers, diags)
      && check_alike (doc, "mtp_layer_types", c->predict_layers, diags);
}
