/* data/jobs/hf_layers.c — layers of a config.json that differ: mixers, indexers, experts, those that predict
 * further tokens, those that see less than the whole sequence or have no rope. */
#include <string.h>

#include "data/jobs/hf_family.h"
#include "model/mixer.h"

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

/* The caller frees it; NULL: a diagnostic says why. */
static char *
hf_pattern_of_list (const LsJsonDoc *doc, const HfFamily *f, const cJSON *list, LsDiagList *diags)
{
  g_autoptr (GString) pattern = g_string_new (NULL);
  const cJSON *name;
  cJSON_ArrayForEach (name, list) {
    const cJSON *of_block = ls_json_at (name, "block_type");
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
static char *
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
  const cJSON *list = ls_json_at (config, "full_attn_layers");
  *ret_first = cJSON_IsArray (list) ? 1 : 0;
  if (!cJSON_IsArray (list))
    list = ls_json_at (hf_get (doc, "attn"), "layers");
  for (guint i = 0; i < G_N_ELEMENTS (lists) && !cJSON_IsArray (list); i++)
    list = hf_get (doc, lists[i]);
  return cJSON_IsArray (list) ? list : NULL;
}

/* Sets those of a list of numbers in a pattern of n layers; false: one is the number of no layer. */
static bool
mark_numbers (const LsJsonDoc *doc, const cJSON *list, uint32_t first, char *pattern, uint32_t n,
              LsDiagList *diags)
{
  const cJSON *number;
  cJSON_ArrayForEach (number, list) {
    double at = cJSON_IsNumber (number) ? number->valuedouble - first : -1;
    if (at < 0 || at >= n)
      return hf_refuse (doc, number, diags,
                        first == 1 ? "expected the number of a layer, from 1"
                                   : "expected the number of a layer, from 0");
    pattern[(uint32_t) at] = 'A';
  }
  return true;
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
  if (numbers) {
    g_autofree char *pattern = g_strnfill (c->m.n_layers, 'M');
    bool ok = mark_numbers (doc, numbers, first, pattern, c->m.n_layers, diags);
    return ok ? g_steal_pointer (&pattern) : NULL;
  }
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
    return layer->valuedouble == 0                        ? 'A'
        : layer->valuedouble == c->m.compressed.csa_ratio ? 'S'
        : layer->valuedouble == c->m.compressed.hca_ratio ? 'H'
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
  g_autofree char *pattern = g_strnfill (c->m.n_layers, 'H');
  uint32_t i = 0;
  for (uint32_t k = 3; !cJSON_IsArray (list) && k < c->m.n_layers; k += 2)
    pattern[k] = 'S';
  cJSON_ArrayForEach (layer, list) {
    char letter = compressed_letter (c, layer);
    if (!letter) {
      hf_refuse (doc, layer, diags,
                 "expected compress_rate_csa, compress_rate_hca or 0 tokens for a key, or sliding_attention, "
                 "compressed_sparse_attention or heavily_compressed_attention");
      return NULL;
    }
    if (i < c->m.n_layers)
      pattern[i++] = letter;
  }
  if (cJSON_IsArray (list) && i < c->m.n_layers) {
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
  m->mixer = (LsMixerParts) { .kind = LS_MIXER_NONE };
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
  cJSON_ArrayForEach (one, types) {
    if (is_full (one) != (i < first || (i - first + 1) % every == 0))
      return hf_refuse (doc, one, diags,
                        "indexers by layer; only in the first few and then every so many can be simulated");
    i++;
  }
  if (i != c->m.n_layers)
    return hf_refuse (doc, types, diags, "expected as many types of indexers as layers");
  c->m.index.every = every;
  c->m.index.first = first;
  return true;
}

/* --- mixers: state-space models, linear attention, short convolutions ---------------------------- */

bool
hf_read_auto_sizes (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const struct {
    const char *key;
    uint32_t *target;
  } sizes[] = {
    { "time_step_rank", &c->mixer_rank },
    { "mamba_dt_rank", &c->mixer_rank },
    { "dt_rank", &c->mixer_rank },
    { "mamba_d_head", &c->m.mixer.head_dim },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    const cJSON *node = hf_get (doc, sizes[i].key);
    bool is_auto = cJSON_IsString (node) && strcmp (node->valuestring, "auto") == 0;
    if (!node || cJSON_IsNull (node) || is_auto)
      continue;
    if (!cJSON_IsNumber (node) || node->valuedouble < 1 || node->valuedouble > 1 << 20
        || node->valuedouble != (uint32_t) node->valuedouble)
      return hf_refuse (doc, node, diags, "expected \"auto\" or a whole number from 1 to 1048576");
    *sizes[i].target = (uint32_t) node->valuedouble;
  }
  return true;
}

/* configuration_olmo_hybrid.py of Transformers; modeling_phi4flash.py. */
void
hf_share_out (const HfFamily *f, HfConfig *c)
{
  if (f->own_behind_half > 0)
    c->m.halves.kv_shared_layers = c->m.n_layers > c->m.n_layers / 2 + f->own_behind_half
        ? c->m.n_layers - c->m.n_layers / 2 - f->own_behind_half
        : 0;
  if (f->mixer_key_share <= 0)
    return;
  c->m.mixer.heads = c->m.mixer.heads ? c->m.mixer.heads : c->m.n_heads;
  c->m.mixer.groups = c->m.mixer.groups ? c->m.mixer.groups : c->m.n_heads;
  if (c->m.mixer.state == 0)
    c->m.mixer.state = (uint32_t) (f->mixer_key_share * c->m.hidden / c->m.mixer.groups);
  c->m.mixer.head_dim = c->m.mixer.head_dim ? c->m.mixer.head_dim : 2 * c->m.mixer.state;
}

/* configuration_mamba.py of Transformers: a sixteenth of hidden, rounded up; modeling_plamo2.py. */
static uint32_t
rank (const HfFamily *f, const HfConfig *c, const LsModel *m)
{
  if (m->mixer.kind == LS_MIXER_RWKV7)
    return c->decay_rank + c->rate_rank + c->value_rank + c->gate_rank;
  if (m->mixer.kind == LS_MIXER_LINEAR)
    return c->decay_rank;
  if (f->least_rank > 0)
    return MAX (f->least_rank, m->hidden / 16);
  return m->mixer.kind != LS_MIXER_MAMBA1 ? 0 : c->mixer_rank > 0 ? c->mixer_rank : (m->hidden + 15) / 16;
}

/* Widths that are shares of others (fla/layers of flash-linear-attention, xlstm): keys and values of all
 * heads of hidden; where keys of a head are said, a value of a key. A width of a head may say how many there
 * are. */
static void
set_shares (const HfConfig *c, LsModel *m)
{
  if (c->value_share <= 0)
    return;
  if (c->key_share <= 0) {
    m->mixer.heads = c->m.mixer.heads ? c->m.mixer.heads : c->m.mixer.groups;
    m->mixer.head_dim = (uint32_t) (c->value_share * c->m.mixer.state);
    return;
  }
  m->mixer.heads = m->mixer.kind == LS_MIXER_MLSTM ? m->n_heads
      : c->m.mixer.head_dim > 0                    ? c->m.hidden / c->m.mixer.head_dim
                                                   : c->m.mixer.heads;
  m->mixer.head_dim = (uint32_t) (c->value_share * c->m.hidden) / MAX (1, m->mixer.heads);
  m->mixer.state = (uint32_t) (c->key_share * c->m.hidden) / MAX (1, m->mixer.heads);
}

void
hf_add_mixer (const HfFamily *f, const HfConfig *c, LsModel *m)
{
  bool is_conv = m->mixer.kind == LS_MIXER_CONV; /* as wide as all unless conv_dim says otherwise */
  uint64_t own = (uint64_t) (c->mixer_expand == 0 && is_conv ? 1 : c->mixer_expand) * c->m.hidden,
           inner = c->mixer_width > 0 ? c->mixer_width : own;
  if (m->mixer.kind == LS_MIXER_NONE) {
    m->mixer = (LsMixerParts) { .kind = LS_MIXER_NONE };
    return;
  }
  bool is_linear = m->mixer.kind == LS_MIXER_LINEAR, is_recurrent = m->mixer.kind == LS_MIXER_RGLRU;
  uint32_t width = c->mixer_width ? c->mixer_width : c->m.hidden;
  uint64_t own_dim
      = c->m.mixer.head_dim || c->m.mixer.heads == 0 ? c->m.mixer.head_dim : inner / c->m.mixer.heads;
  m->mixer.head_dim = is_linear ? m->head_dim : is_recurrent ? width / m->n_heads : (uint32_t) own_dim;
  m->mixer.heads = is_linear || is_recurrent ? m->n_heads
      : c->m.mixer.heads                     ? c->m.mixer.heads
                                             : (uint32_t) (inner / MAX (1, c->m.mixer.head_dim));
  m->mixer.state = m->mixer.kind != LS_MIXER_KDA ? c->m.mixer.state : 0; /* else as wide as values */
  m->mixer.rank = rank (f, c, m);
  m->mixer.plain_conv = !c->mixer_conv_bias && ls_mixers[m->mixer.kind].may.plain_conv;
  if (m->mixer.kind == LS_MIXER_RWKV7) { /* heads as wide as the file says divide hidden */
    m->mixer.head_dim = m->mixer.state = m->head_dim;
    m->mixer.heads = m->hidden / MAX (1, m->head_dim);
    m->mixer.groups = m->mixer.heads;
  }
  set_shares (c, m);
  m->mixer.ungated = !c->mixer_gate;
  if (m->mixer.ungated && m->mixer.products > 0)
    m->mixer.products--;
}

/* --- experts: of what kind, and which layers have them where a list says it ---------------------- */

typedef struct {
  char *letters; /* [n], of each layer: D without experts, else A */
  uint32_t n;
  const cJSON *said; /* the last list; NULL: none */
} Dense;

/* By kind: dense or sparse, or whether it has experts. */
static void
read_kinds (const LsJsonDoc *doc, Dense *d)
{
  const cJSON *kinds = hf_get (doc, "mlp_layer_types"), *one;
  uint32_t i = 0;
  kinds = cJSON_IsArray (kinds) ? kinds : hf_get (doc, "is_moe_layer");
  if (cJSON_IsArray (kinds) && kinds->child)
    d->said = kinds;
  cJSON_ArrayForEach (one, d->said)
    if (i < d->n)
      d->letters[i++]
          = g_strcmp0 (cJSON_GetStringValue (one), "dense") == 0 || cJSON_IsFalse (one) ? 'D' : 'A';
}

/* By the numbers of those without experts. */
static void
read_numbers (const LsJsonDoc *doc, Dense *d)
{
  const cJSON *numbers = hf_get (doc, "mlp_only_layers"), *one;
  cJSON_ArrayForEach (one, numbers) {
    if (!cJSON_IsNumber (one) || one->valuedouble < 0 || one->valuedouble >= d->n)
      continue;
    d->letters[(uint32_t) one->valuedouble] = 'D';
    d->said = numbers;
  }
}

/* By the numbers of those with experts, in a list or in one string: "4,5,6". */
static bool
read_enumeration (const LsJsonDoc *doc, Dense *d, LsDiagList *diags)
{
  const cJSON *list = hf_get (doc, "moe_layers_enum");
  char *printed = cJSON_IsArray (list) ? cJSON_PrintUnformatted (list) : NULL; /* "[4,5,6]" */
  g_autofree char *text = g_strdup (printed ? printed : cJSON_GetStringValue (list));
  cJSON_free (printed);
  if (!text || *g_strstrip (g_strdelimit (text, "[]", ' ')) == '\0')
    return true;
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  memset (d->letters, 'D', d->n);
  for (char **word = words; *word; word++) {
    guint64 number;
    if (!g_ascii_string_to_unsigned (g_strstrip (*word), 10, 0, d->n - 1, &number, NULL))
      return hf_refuse (doc, list, diags, "expected numbers of layers, with commas between them");
    d->letters[number] = 'A';
  }
  d->said = list;
  return true;
}

/* Of ERNIE, moe_layer_end_index: the last layer with experts, from 0; -1: the last. Of a list the first
 * number, that of what reads text. */
static bool
check_last (const LsJsonDoc *doc, const Dense *d, LsDiagList *diags)
{
  const cJSON *last = hf_get (doc, "moe_layer_end_index"), *number = last && last->child ? last->child : last;
  bool is_before = cJSON_IsNumber (number)
      && (number->valuedouble < 0 ? number->valuedouble < -1 : number->valuedouble + 1 < d->n);
  return !is_before || hf_refuse (doc, last, diags, "layers without experts after the others; expected -1");
}

/* A type may have a pattern of such layers itself. */
static bool
has_other_pattern (const HfFamily *f, const HfConfig *c)
{
  const char *own = f->model.layers.pattern;
  return f->model.mixer.kind != LS_MIXER_NONE || f->compressed || c->pattern
      || (own && own[strspn (own, "AD")]);
}

/* A pattern where they are not the first few. */
static bool
take_layers (const LsJsonDoc *doc, const HfFamily *f, const Dense *d, HfConfig *c, LsDiagList *diags)
{
  const size_t n_first = strspn (d->letters, "D");
  bool are_first = !strchr (d->letters + n_first, 'D');
  c->dense_layers = (uint32_t) n_first;
  if (are_first && !f->model.layers.pattern)
    return true;
  if (has_other_pattern (f, c))
    return are_first
        || hf_refuse (
               doc, d->said, diags,
               "dense layers by number next to a pattern of layers; only the first few, or all but each "
               "n-th, can be");
  c->dense_layers = 0;
  c->pattern = g_strdup (d->letters);
  return true;
}

bool
hf_read_dense_layers (const LsJsonDoc *doc, const HfFamily *f, HfConfig *c, LsDiagList *diags)
{
  g_autofree char *letters = g_strnfill (c->m.n_layers, 'A');
  Dense d = { letters, c->m.n_layers, NULL };
  if (c->m.n_layers == 0)
    return true;
  read_kinds (doc, &d);
  read_numbers (doc, &d);
  return read_enumeration (doc, &d, diags) && check_last (doc, &d, diags)
      && (!d.said || take_layers (doc, f, &d, c, diags));
}

void
hf_add_experts (const HfFamily *f, const HfConfig *c, LsModel *m)
{
  if (!hf_has_experts (f, c) && f->dense_is_shared && c->m.moe.shared_ffn > 0)
    m->ffn = c->m.moe.shared_ffn;
  if (!hf_has_experts (f, c))
    return;
  m->moe = c->m.moe;
  if (f->heads_are_experts) {
    m->moe.attention_experts = c->m.moe.n_experts;
    m->moe.attention_top_k = c->m.moe.top_k;
  }
  if (c->m.moe.zero_experts > 0) { /* they take their share of what a token is sent to, rounded */
    uint64_t all = (uint64_t) c->m.moe.n_experts + c->m.moe.zero_experts;
    m->moe.top_k = (uint32_t) MAX (1, ((uint64_t) c->m.moe.top_k * c->m.moe.n_experts + all / 2) / all);
  }
  if (c->m.moe.groups <= 1 || c->m.moe.top_groups >= c->m.moe.groups) /* they leave nothing out */
    m->moe.groups = m->moe.top_groups = 0;
  m->moe.every
      = MAX (1, f->experts == HF_INTERLEAVED ? c->interleave : MAX (c->sparse_step, c->expert_period));
  if (f->experts == HF_INTERLEAVED || c->m.moe.expert_ffn == 0)
    m->moe.expert_ffn = c->m.ffn > 0 ? c->m.ffn : m->ffn; /* four times hidden, of a type without gates */
  if (f->experts == HF_INTERLEAVED && c->dense_ffn > 0)
    m->ffn = c->dense_ffn;
  m->moe.shared_ffn = c->m.moe.shared_ffn > 0 ? c->m.moe.shared_ffn
      : f->ffn_is_shared                      ? c->m.ffn
      : f->experts == HF_AFTER                ? c->n_shared * c->m.moe.expert_ffn
      : f->experts == HF_INTERLEAVED          ? c->m.ffn
                                              : 0;
  m->moe.n_dense_layers = f->experts == HF_AFTER || f->experts == HF_STEPPED ? c->dense_layers : 0;
}

/* --- multi-token prediction ---------------------------------------------------------------------- */

void
hf_read_predictions (const LsJsonDoc *outer, HfConfig *c)
{
  const cJSON *n = hf_get (outer, "predict_layers"), *pattern = hf_get (outer, "predict_pattern");
  if (cJSON_IsNumber (n) && n->valuedouble >= 0 && n->valuedouble <= MAX_PREDICTIONS)
    c->m.predict.layers = (uint32_t) n->valuedouble;
  if (cJSON_IsString (pattern))
    c->predict_pattern = g_strdup (pattern->valuestring);
  c->m.predict.shared |= cJSON_IsTrue (hf_get (outer, "predict_shared"));
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
  const cJSON *behind = cJSON_GetArrayItem (hf_get (doc, "layer_types"), (int) c->m.n_layers);
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
  cJSON_ArrayForEach (one, list)
    if (i++ < n && !cJSON_Compare (one, list->child, true))
      return hf_refuse (doc, one, diags, "blocks that predict further tokens and differ cannot be simulated");
  return true;
}

/* The caller frees it; NULL: none is said. Of attention to compressed keys, what the list of layers says
 * behind the last; of Transformers' mtp_mlp_layer_types, an MLP where others have experts. */
static char *
find_block (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  const cJSON *letters = hf_get (doc, "mtp_hybrid_override_pattern"),
              *halves = hf_get (doc, "mtp_layers_block_type");
  const cJSON *behind = cJSON_GetArrayItem (hf_get (doc, "compress_ratios"), (int) c->m.n_layers);
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
  m->predict.layers = c->m.predict.layers;
  m->predict.pattern = NULL;
  m->predict.windowed = m->predict.shared = false;
  if (c->m.predict.layers == 0)
    return true;
  guint n = ls_diag_list_n (diags);
  m->predict.pattern = find_block (doc, f, c, diags);
  m->predict.windowed = f->model.predict.windowed || is_windowed (doc, c);
  m->predict.windowed = m->predict.windowed && m->attn.window > 0;
  m->predict.shared = c->m.predict.shared;
  return ls_diag_list_n (diags) == n && check_alike (doc, "mtp_mlp_layer_types", c->m.predict.layers, diags)
      && check_alike (doc, "mtp_layer_types", c->m.predict.layers, diags);
}

/* --- windows and rope -------------------------------------------------------------------------- */

/* Of every so many layers the last has it. */
typedef struct {
  uint32_t n_layers;
  bool *has; /* [n_layers] */
} Layers;

static uint32_t
count (const Layers *l)
{
  uint32_t n_has = 0;
  for (uint32_t i = 0; i < l->n_layers; i++)
    n_has += l->has[i];
  return n_has;
}

/* 0: none has it. *ret_exact: it is so indeed, and not only in number. */
static uint32_t
period_of (const Layers *l, bool *ret_exact)
{
  uint32_t n_has = count (l), period = n_has > 0 ? MAX (1, l->n_layers / n_has) : 0;
  if (period > 0 && 2 * n_has < l->n_layers / period + l->n_layers / (period + 1))
    period++; /* nearer in number */
  *ret_exact = true;
  for (uint32_t i = 0; i < l->n_layers; i++)
    *ret_exact &= l->has[i] == (period > 0 && (i + 1) % period == 0);
  return period;
}

/* The distance of those that have it, if the first layer has it and each after so many more; 0: not so. */
static uint32_t
period_from_first (const Layers *l)
{
  uint32_t period = 1;
  while (period < l->n_layers && !l->has[period])
    period++;
  for (uint32_t i = 0; i < l->n_layers; i++)
    if (l->has[i] != (i % period == 0))
      return 0;
  return period;
}

static void
note_period (GPtrArray *notes, bool is_exact, uint32_t period, const char *what)
{
  if (!is_exact)
    ls_note (notes, "%s: taken as each %u. layer, which the file has in other layers", what, period);
}

/* --- rope ------------------------------------------------------------------------------- */

/* modeling_rope_utils.py of Transformers, _compute_yarn_parameters: cos and sin are times attention_factor,
 * by default 0.1 m ln (factor) + 1 of mscale over that of mscale_all_dim, where both are there. */
bool
hf_rope_is_scaled (const LsJsonDoc *doc)
{
  const cJSON *scaling = hf_get (doc, "rope_scaling"),
              *rope = scaling ? scaling : hf_get (doc, "rope_parameters");
  const cJSON *new_type = ls_json_at (rope, "rope_type"),
              *type = new_type ? new_type : ls_json_at (rope, "type");
  double mscale = hf_number (rope, "mscale", 0), all = hf_number (rope, "mscale_all_dim", 0);
  bool is_yarn = cJSON_IsString (type) && strcmp (type->valuestring, "yarn") == 0,
       is_alike = mscale != 0 && mscale == all;
  double own = hf_number (rope, "factor", 1) > 1 && !is_alike ? 0 : 1; /* anything but 1 is a scale */
  return is_yarn && hf_number (rope, "attention_factor", own) != 1;
}

/* --- layers without rope ---------------------------------------------------------------- */

/* no_rope_layers has 1 for layers with rope, layer_rope_theta 0 for those without. false: no list. */
static bool
list_unrotated (const LsJsonDoc *doc, Layers *l)
{
  const cJSON *layout = hf_get (doc, "rope_layout"), *one;
  const cJSON *theta = hf_get (doc, "layer_rope_theta");
  const cJSON *list = cJSON_IsArray (layout) ? layout
      : cJSON_IsArray (theta)                ? theta
                                             : hf_get (doc, "no_rope_layers");
  if (!cJSON_IsArray (list) || (uint32_t) cJSON_GetArraySize (list) != l->n_layers)
    return false;
  uint32_t i = 0;
  cJSON_ArrayForEach (one, list)
    l->has[i++] = cJSON_IsNumber (one) && one->valuedouble < 0.5;
  return true;
}

/* full: layers that see the whole sequence, where something says which; else NULL. */
static void
add_rotation (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, const Layers *full, LsModel *m,
              GPtrArray *notes)
{
  g_autofree bool *has = g_new0 (bool, m->n_layers);
  Layers unrotated = { m->n_layers, has };
  bool is_exact = true;
  m->attn.unrotated_every = f->unrotated_full ? m->attn.full_every : c->m.attn.unrotated_every;
  if (list_unrotated (doc, &unrotated))
    m->attn.unrotated_every = period_of (&unrotated, &is_exact);
  else if (f->unrotated_full && full && m->layers.n_window > 0)
    m->attn.unrotated_every = period_of (full, &is_exact);
  note_period (notes, is_exact, m->attn.unrotated_every, "no rope");
}

/* --- windows -------------------------------------------------------------------------- */

/* By name, or 1 for a window and 0 for none. */
static bool
read_layer_types (const LsJsonDoc *doc, const HfFamily *f, const cJSON *list, Layers *l, LsDiagList *diags)
{
  const cJSON *type, *sees_all = hf_get (f->doc, "sees_all");
  uint32_t i = 0;
  cJSON_ArrayForEach (type, list) {
    const char *name = cJSON_GetStringValue (type);
    const cJSON *known = name ? cJSON_GetObjectItemCaseSensitive (sees_all, name) : NULL;
    if (!known && !cJSON_IsNumber (type))
      return hf_refuse (
          doc, type, diags,
          "expected full_attention, sliding_attention, chunked_attention, deepseek_sparse_attention, "
          "indexed_attention or minimax_m3_sparse, the layers that can be simulated");
    if (i < l->n_layers)
      l->has[i++] = known ? cJSON_IsTrue (known) : type->valuedouble == 0;
  }
  return i == l->n_layers || hf_refuse (doc, list, diags, "expected as many layer_types as there are layers");
}

/* 4, or "LLLG": a letter a layer, G for those that see all. */
static uint32_t
pattern_period (const cJSON *pattern)
{
  if (cJSON_IsNumber (pattern) && pattern->valuedouble >= 1 && pattern->valuedouble <= 65536)
    return (uint32_t) pattern->valuedouble;
  const char *letters = cJSON_GetStringValue (pattern), *global = letters ? strchr (letters, 'G') : NULL;
  return global ? (uint32_t) (global - letters) + 1 : 0;
}

/* By the first key that the file has; 0: by none. */
static uint32_t
period_said (const LsJsonDoc *doc)
{
  static const char *const keys[]
      = { "sliding_window_pattern", "global_attn_every_n_layers", "window_attn_skip_freq" };
  uint32_t period = 0;
  for (guint i = 0; i < G_N_ELEMENTS (keys) && period == 0; i++)
    period = pattern_period (hf_get (doc, keys[i]));
  return period;
}

/* Of MiniMax-M3, by layer: indexers could add values of their own to what attention makes. */
static bool
check_index_values (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *config = hf_get (doc, "sparse_attention_config"), *is_without;
  const cJSON *has = ls_json_at (config, "sparse_attention_freq");
  const cJSON *one = cJSON_IsArray (has) ? has->child : NULL;
  cJSON_ArrayForEach (is_without, ls_json_at (config, "sparse_disable_index_value")) {
    if (one && one->valuedouble > 0 && is_without->valuedouble == 0)
      return hf_refuse (
          doc, is_without, diags,
          "values of an indexer together with those of attention cannot be simulated; expected 1 in layers "
          "that have one");
    one = one ? one->next : NULL;
  }
  return true;
}

/* The list of the file that says which layers see the whole sequence; NULL: none does. */
static const cJSON *
list_of_layers (const LsJsonDoc *doc)
{
  const cJSON *lists[] = {
    hf_get (doc, "layer_types"),
    hf_get (doc, "sliding_window_layout"),
    hf_get (doc, "hybrid_layer_pattern"),
    ls_json_at (hf_get (doc, "sparse_attention_config"), "sparse_attention_freq"),
  };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    if (cJSON_IsArray (lists[i]))
      return lists[i];
  return NULL;
}

/* Those with a window by number, from 0. false: a number is of no layer. */
static bool
read_numbered (const LsJsonDoc *doc, const cJSON *list, Layers *full, LsDiagList *diags)
{
  g_autofree char *pattern = g_strnfill (full->n_layers, 'M');
  bool ok = mark_numbers (doc, list, 0, pattern, full->n_layers, diags);
  for (uint32_t i = 0; i < full->n_layers; i++)
    full->has[i] = pattern[i] == 'M';
  return ok;
}

/* Without a list, by the rule of the type. false: it has a period alone. */
static bool
apply_rule (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, const LsModel *m, Layers *full)
{
  const char *pattern = m->layers.pattern ? m->layers.pattern : "A";
  bool is_listed = f->windows == HF_WINDOWS_UNROTATED && list_unrotated (doc, full);
  for (uint32_t i = 0; i < full->n_layers; i++) {
    bool is_unrotated = is_listed ? full->has[i]
                                  : c->m.attn.unrotated_every > 0 && (i + 1) % c->m.attn.unrotated_every == 0;
    full->has[i] = f->windows == HF_WINDOWS_LISTED
        || (f->windows == HF_WINDOWS_BEHIND && i < c->max_window_layers)
        || (f->windows == HF_WINDOWS_SECOND && (i % 2 == 1 || i >= c->max_window_layers))
        || (f->windows == HF_WINDOWS_UNROTATED && !is_unrotated)
        || (f->windows == HF_WINDOWS_FIRST_HALF
            && (i >= full->n_layers / 2 || pattern[i % strlen (pattern)] == 'M'));
  }
  return f->windows != HF_WINDOWS_BEHIND || c->max_window_layers < UINT32_MAX;
}

/* Whether each layer may have a window of its own in a list. */
static bool
may_list (const HfConfig *c, const LsModel *m)
{
  bool may_share = c->m.halves.kv_shared_layers == 0
      || m->attn.difference; /* else a layer that shares may have a window */
  return m->latent.kv_lora + m->compressed.out_groups + m->sides.encoder_layers + m->index.heads == 0
      && may_share && m->attn.window_heads + m->attn.window_kv_heads + m->attn.window_head_dim == 0
      && !m->attn.full_k_is_v && m->attn.window_kind == LS_WINDOW_SLIDING;
}

/* Of layers, some of which have a window: by a period if they have one, else one by one; else by the nearest
 * period, which a note says. */
static bool
place_windows (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, const Layers *full,
               uint32_t window, LsModel *m, GPtrArray *notes, LsDiagList *diags)
{
  bool is_exact;
  m->attn.full_every = period_of (full, &is_exact);
  uint32_t from_first = is_exact || f->unrotated_full ? 0 : period_from_first (full);
  m->attn.full_first = from_first > 1 && from_first < m->n_layers;
  m->attn.full_every = m->attn.full_first ? from_first : m->attn.full_every;
  if (is_exact || m->attn.full_first)
    return true;
  if (may_list (c, m)) {
    m->layers.window = g_new0 (uint32_t, m->n_layers);
    m->layers.n_window = m->n_layers;
    for (uint32_t i = 0; i < m->n_layers; i++)
      m->layers.window[i] = full->has[i] ? 0 : window;
    m->attn.full_every = 0;
    return true;
  }
  if (m->attn.full_every == 1)
    return hf_refuse (
        doc, list_of_layers (doc) ? list_of_layers (doc) : ls_json_doc_root (doc), diags,
        "windows in so few layers cannot be simulated together with latents, indexers, chunks, shared keys "
        "or heads that go with windows");
  note_period (notes, false, m->attn.full_every, "attention over the whole sequence");
  return true;
}

/* Of a type that has none, what the file says of them is told. */
static void
note_unheeded (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, const Layers *full,
               GPtrArray *notes)
{
  bool is_off = !c->use_sliding_window || cJSON_IsNull (hf_get (doc, "sliding_window"));
  bool is_listed = full && list_of_layers (doc) && count (full) < full->n_layers;
  if (!f->slides && !f->encoder && (is_listed || (c->m.attn.window > 0 && !is_off)))
    ls_note (notes, "windows are not used: attention of %s sees whole sequences", f->model_type);
}

static void
drop_windows (LsModel *m)
{
  m->attn.window = m->attn.full_every = 0, m->attn.full_first = false,
  m->attn.window_kind = LS_WINDOW_SLIDING;
  m->attn.window_heads = m->attn.window_kv_heads = m->attn.window_head_dim = 0; /* no layer has them */
  m->attn.gate = m->attn.gate && !m->attn.gate_windowed;
  m->attn.gate_own = m->attn.gate_own && m->attn.gate;
  m->attn.gate_windowed = false;
  if (m->latent.kv_lora == 0)
    m->index.heads = m->index.dim = m->index.block = 0;
}

/* full: layers that see the whole sequence; NULL: the period of the type says which. */
static bool
add_windows (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, const Layers *full, LsModel *m,
             GPtrArray *notes, LsDiagList *diags)
{
  bool is_off = cJSON_IsNull (hf_get (doc, "sliding_window"));
  uint64_t chosen = c->m.index.top ? c->m.index.top : (uint64_t) c->m.index.block * c->index_top_blocks;
  uint32_t usual = c->both_sides_window >= 2 ? c->both_sides_window / 2 : (uint32_t) MIN (chosen, 1 << 27),
           window = c->m.attn.window ? c->m.attn.window : usual;
  uint32_t period = period_said (doc);
  m->attn.full_every = period > 0 ? period : m->attn.full_every;
  if (m->layers.n_window > 0) { /* blocks said them */
    m->attn.window = m->attn.full_every = 0, m->attn.full_first = false;
    return true;
  }
  bool are_all_full = full ? count (full) == full->n_layers : m->attn.full_every == 1;
  if (!f->slides || !c->use_sliding_window || is_off || window == 0 || are_all_full) {
    note_unheeded (doc, f, c, full, notes);
    drop_windows (m);
    return true;
  }
  if (full && !place_windows (doc, f, c, full, window, m, notes, diags))
    return false;
  m->attn.window = m->layers.n_window > 0 ? 0 : window;
  return true;
}

/* Of a type with gates where windows are, the list of the file must say so too. */
static bool
check_gates (const LsJsonDoc *doc, const HfFamily *f, const LsModel *m, LsDiagList *diags)
{
  const cJSON *list = f->model.attn.gate_windowed ? hf_get (doc, "attention_gate_layers") : NULL;
  const cJSON *one = list ? list->child : NULL;
  uint32_t i = 0;
  for (; one && i < m->n_layers; one = one->next, i++)
    if (cJSON_IsTrue (one) != ls_model_of_kind (m, ls_model_layer_kind (m, i)).attn.gate)
      break;
  return !cJSON_IsArray (list) || (!one && i == m->n_layers)
      || hf_refuse (doc, list, diags,
                    "gates after attention in other layers than those with a window cannot be simulated");
}

bool
hf_add_layers (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m, GPtrArray *notes,
               LsDiagList *diags)
{
  g_autofree bool *has = g_new0 (bool, m->n_layers);
  Layers full = { m->n_layers, has };
  const cJSON *list = list_of_layers (doc);
  bool is_plain = m->mixer.kind == LS_MIXER_NONE && !f->compressed && !f->encoder, is_said = is_plain,
       is_half = f->windows == HF_WINDOWS_FIRST_HALF;
  if (!check_index_values (doc, diags)
      || (is_plain && list && !read_layer_types (doc, f, list, &full, diags)))
    return false;
  const cJSON *numbers = is_plain && !list ? hf_get (doc, "sliding_window_layers") : NULL;
  if (cJSON_IsArray (numbers) && !read_numbered (doc, numbers, &full, diags))
    return false;
  if ((is_plain || is_half) && !list && !cJSON_IsArray (numbers))
    is_said = apply_rule (doc, f, c, m, &full);
  const Layers *said = is_said ? &full : NULL;
  if (!add_windows (doc, f, c, said, m, notes, diags))
    return false;
  add_rotation (doc, f, c, said, m, notes);
  return check_gates (doc, f, m, diags);
}
