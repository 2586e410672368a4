/* Layers of a config.json that differ: mixers, indexers. Windows are in hf_windows.c. */
#include <string.h>

#include "data/jobs/hf_family.h"

/* --- mixers --------------------------------------------------------------------------- */

/* Of a name of a layer in a list, or of one half of a layer. A number stands in lists of MiniMax: 1 has
 * attention. */
static char
letter_of_name (const HfFamily *f, const cJSON *name)
{
  const cJSON *letters = hf_get (f->doc, f->halves ? "half_letters" : "layer_letters"),
              *letter
      = cJSON_IsString (name) ? cJSON_GetObjectItemCaseSensitive (letters, name->valuestring) : NULL;
  if (cJSON_IsNumber (name) && !f->halves)
    return name->valuedouble > 0.5 ? 'A' : 'M';
  return cJSON_IsString (letter) ? *letter->valuestring : '\0';
}

char *
hf_pattern_of_list (const LsJsonDoc *doc, const HfFamily *f, const cJSON *list, LsDiagList *diags)
{
  g_autoptr (GString) pattern = g_string_new (NULL);
  const cJSON *name;
  cJSON_ArrayForEach (name, list)
  {
    const cJSON *of_block = cJSON_GetObjectItemCaseSensitive (name, "block_type");
    char letter = letter_of_name (f, of_block ? of_block : name);
    if (!letter) {
      hf_refuse (doc, name, diags,
                 f->halves
                     ? "expected attention, mamba, mlp, moe or hybrid"
                     : "expected attention, full_attention, linear_attention, mamba, conv or recurrent");
      return NULL;
    }
    g_string_append_c (pattern, letter);
  }
  return g_strdup (pattern->str);
}

/* M mixer, * attention, - MLP, E experts. */
char *
hf_pattern_of_letters (const LsJsonDoc *doc, const cJSON *halves, LsDiagList *diags)
{
  static const char theirs[] = "M*-E", ours[] = "made"; /* place by place */
  g_autofree char *pattern = g_strdup (halves->valuestring);
  for (char *p = pattern; *p; p++) {
    const char *at = strchr (theirs, *p);
    if (!at) {
      hf_refuse (doc, halves, diags, "expected letters of M, *, - and E");
      return NULL;
    }
    *p = ours[at - theirs];
  }
  return g_steal_pointer (&pattern);
}

/* One layer of so many has attention: the last, unless it is said which. */
static char *
pattern_of_period (const HfConfig *c)
{
  char *pattern = g_strnfill (c->attention_period, 'M');
  pattern[MIN (c->attention_offset, c->attention_period - 1)] = 'A';
  return pattern;
}

/* Layers with attention by number: from 1 (Kimi), or from 0 (Bamba, LFM2, Solar Open 2, types of fla). */
static const cJSON *
numbered_attention (const LsJsonDoc *doc, uint32_t *ret_first)
{
  static const char *const lists[] = { "attn_layer_indices", "full_attn_idxs", "gqa_layers" };
  const cJSON *config = hf_get (doc, "linear_attn_config");
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (config, "full_attn_layers");
  *ret_first = cJSON_IsArray (list) ? 1 : 0;
  if (!cJSON_IsArray (list))
    list = cJSON_GetObjectItemCaseSensitive (hf_get (doc, "attn"), "layers");
  for (guint i = 0; i < G_N_ELEMENTS (lists) && !cJSON_IsArray (list); i++)
    list = hf_get (doc, lists[i]);
  return cJSON_IsArray (list) ? list : NULL;
}

static char *
pattern_of_numbers (const LsJsonDoc *doc, const cJSON *list, uint32_t first, uint32_t n_layers,
                    LsDiagList *diags)
{
  g_autofree char *pattern = g_strnfill (n_layers, 'M');
  const cJSON *number;
  cJSON_ArrayForEach (number, list)
  {
    double n = cJSON_IsNumber (number) ? number->valuedouble - first : -1;
    if (n < 0 || n >= n_layers) {
      hf_refuse (doc, number, diags,
                 first == 1 ? "expected the number of a layer, from 1"
                            : "expected the number of a layer, from 0");
      return NULL;
    }
    pattern[(uint32_t) n] = 'A';
  }
  return g_steal_pointer (&pattern);
}

uint32_t
hf_count_layers (const LsJsonDoc *doc)
{
  const cJSON *list = hf_get (doc, "layers_block_type"), *letters = hf_get (doc, "hybrid_override_pattern");
  const cJSON *blocks = hf_get (doc, "block_configs");
  return cJSON_IsArray (list)    ? (uint32_t) cJSON_GetArraySize (list)
      : cJSON_IsArray (blocks)   ? (uint32_t) cJSON_GetArraySize (blocks)
      : cJSON_IsString (letters) ? (uint32_t) strlen (letters->valuestring)
                                 : 0;
}

static char *
find_pattern (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  static const char *const lists[] = { "layer_types",   "layers_block_type", "attn_type_list",
                                       "block_configs", "block_types",       "_block_types" };
  const cJSON *halves = hf_get (doc, "hybrid_override_pattern");
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    if (cJSON_IsArray (hf_get (doc, lists[i])))
      return hf_pattern_of_list (doc, f, hf_get (doc, lists[i]), diags);
  uint32_t first;
  const cJSON *numbers = numbered_attention (doc, &first), *attention = hf_get (doc, "attn");
  if (!numbers && !hf_is_off (attention)) {
    hf_refuse (doc, attention, diags,
               "expected one object with \"layers\", a list of layers that have this attention: that of "
               "several kinds cannot be simulated");
    return NULL;
  }
  if (numbers)
    return pattern_of_numbers (doc, numbers, first, c->layers, diags);
  if (cJSON_IsString (halves))
    return hf_pattern_of_letters (doc, halves, diags);
  if (c->attention_period > 0)
    return pattern_of_period (c);
  if (!f->model.layers.pattern)
    hf_refuse (doc, ls_json_doc_root (doc), diags, "expected a list of layers, to know which have attention");
  return g_strdup (f->model.layers.pattern);
}

/* Of a layer with attention to compressed keys, by how many tokens each has, or by name; 0: unknown. */
static char
compressed_letter (const HfConfig *c, const cJSON *layer)
{
  const char *name = cJSON_GetStringValue (layer);
  if (cJSON_IsNumber (layer))
    return layer->valuedouble == 0           ? 'A'
        : layer->valuedouble == c->csa_ratio ? 'S'
        : layer->valuedouble == c->hca_ratio ? 'H'
                                             : '\0';
  return g_strcmp0 (name, "sliding_attention") == 0           ? 'A'
      : g_strcmp0 (name, "compressed_sparse_attention") == 0  ? 'S'
      : g_strcmp0 (name, "heavily_compressed_attention") == 0 ? 'H'
                                                              : '\0';
}

/* A list may go on with layers that predict; without one, as configuration_deepseek_v4.py has it. */
static char *
compressed_pattern (const LsJsonDoc *doc, const HfConfig *c, LsDiagList *diags)
{
  const cJSON *types = hf_get (doc, "layer_types"), *ratios = hf_get (doc, "compress_ratios"), *layer;
  const cJSON *list = cJSON_IsArray (types) ? types : ratios;
  g_autofree char *pattern = g_strnfill (c->layers, 'H');
  uint32_t i = 0;
  for (uint32_t k = 3; !cJSON_IsArray (list) && k < c->layers; k += 2)
    pattern[k] = 'S';
  cJSON_ArrayForEach (layer, list)
  {
    char letter = compressed_letter (c, layer);
    if (!letter) {
      hf_refuse (doc, layer, diags,
                 "expected compress_rate_csa, compress_rate_hca or 0 tokens for a key, or sliding_attention, "
                 "compressed_sparse_attention or heavily_compressed_attention");
      return NULL;
    }
    if (i < c->layers)
      pattern[i++] = letter;
  }
  if (cJSON_IsArray (list) && i < c->layers) {
    hf_refuse (doc, list, diags, "expected as many of them as there are layers");
    return NULL;
  }
  return g_steal_pointer (&pattern);
}

/* A file of a type with mixers whose layers all have attention: granite-4.0-micro. */
static void
drop_mixer (LsModel *m)
{
  g_clear_pointer (&m->layers.pattern, g_free);
  m->mixer.kind = LS_MIXER_NONE;
  m->mixer.heads = m->mixer.head_dim = m->mixer.groups = m->mixer.state = m->mixer.conv = m->mixer.chunk = 0;
  m->mixer.products = 0;
  m->mixer.full_gate = m->mixer.bias = m->mixer.plain_conv = m->mixer.plain_keys = false;
  m->mixer.ungated = m->mixer.undecayed = m->mixer.head_norm = m->mixer.gate_bias = false;
  m->mixer.rank = 0;
}

bool
hf_add_pattern (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m, LsDiagList *diags)
{
  if (f->compressed)
    return (m->layers.pattern = compressed_pattern (doc, c, diags)) != NULL;
  if (m->mixer.kind == LS_MIXER_NONE) {
    m->layers.pattern = g_strdup (f->model.layers.pattern);
    return true;
  }
  m->layers.pattern = find_pattern (doc, f, c, diags);
  if (!m->layers.pattern)
    return false;
  if (strspn (m->layers.pattern, "A") == strlen (m->layers.pattern)) {
    drop_mixer (m);
    return true;
  }
  if (f->halves && !strchr (m->layers.pattern, 'e')) { /* the file may say how many there would be */
    m->moe.n_experts = m->moe.top_k = m->moe.expert_ffn = m->moe.latent = m->moe.shared_ffn = m->moe.every
        = 0;
    m->moe.groups = m->moe.top_groups = 0;
  }
  if (!strpbrk (m->layers.pattern, "AaPB")) { /* heads are the mixer's alone */
    m->n_heads = m->n_kv_heads = m->mixer.heads;
    m->head_dim = 1;
  }
  return true;
}

/* --- indexers ------------------------------------------------------------------------- */

static bool
is_full (const cJSON *type)
{
  return g_strcmp0 (cJSON_GetStringValue (type), "full") == 0;
}

bool
hf_read_indexers (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const cJSON *types = hf_get (doc, "indexer_types"), *one = cJSON_IsArray (types) ? types->child : NULL;
  uint32_t first = 0, every = 1, i = 0;
  if (!one)
    return true;
  for (; one && is_full (one); one = one->next)
    first++;
  for (; one && !is_full (one); one = one->next)
    every++;
  cJSON_ArrayForEach (one, types)
  {
    if (is_full (one) != (i < first || (i - first + 1) % every == 0))
      return hf_refuse (doc, one, diags,
                        "indexers by layer; only in the first few and then every so many can be simulated");
    i++;
  }
  if (i != c->layers)
    return hf_refuse (doc, types, diags, "expected as many types of indexers as layers");
  c->index_every = every;
  c->index_first = first;
  return true;
}
