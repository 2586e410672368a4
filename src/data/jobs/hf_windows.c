/* Layers of a config.json that see less than the whole sequence, or have no rope: by lists of the file, or by
 * the rule of its type. */
#include <string.h>

#include "data/jobs/hf_family.h"

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

static double
number_or (const cJSON *object, const char *key, double otherwise)
{
  const cJSON *number = cJSON_GetObjectItemCaseSensitive (object, key);
  return cJSON_IsNumber (number) ? number->valuedouble : otherwise;
}

/* modeling_rope_utils.py of Transformers, _compute_yarn_parameters: cos and sin are times attention_factor,
 * by default 0.1 m ln (factor) + 1 of mscale over that of mscale_all_dim, where both are there. */
bool
hf_rope_is_scaled (const LsJsonDoc *doc)
{
  const cJSON *scaling = hf_get (doc, "rope_scaling"),
              *rope = scaling ? scaling : hf_get (doc, "rope_parameters");
  const cJSON *new_type = ls_json_at (rope, "rope_type"),
              *type = new_type ? new_type : ls_json_at (rope, "type");
  double mscale = number_or (rope, "mscale", 0), all = number_or (rope, "mscale_all_dim", 0);
  bool is_yarn = cJSON_IsString (type) && strcmp (type->valuestring, "yarn") == 0,
       is_alike = mscale != 0 && mscale == all;
  double own = number_or (rope, "factor", 1) > 1 && !is_alike ? 0 : 1; /* anything but 1 is a scale */
  return is_yarn && number_or (rope, "attention_factor", own) != 1;
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
  cJSON_ArrayForEach (one, list) l->has[i++] = cJSON_IsNumber (one) && one->valuedouble < 0.5;
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
  m->attn.unrotated_every = f->unrotated_full ? m->attn.full_every : c->unrotated_every;
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
  cJSON_ArrayForEach (type, list)
  {
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
  cJSON_ArrayForEach (is_without, ls_json_at (config, "sparse_disable_index_value"))
  {
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
  const cJSON *number;
  for (uint32_t i = 0; i < full->n_layers; i++)
    full->has[i] = true;
  cJSON_ArrayForEach (number, list)
  {
    double n = cJSON_IsNumber (number) ? number->valuedouble : -1;
    if (n < 0 || n >= full->n_layers)
      return hf_refuse (doc, number, diags, "expected the number of a layer, from 0");
    full->has[(uint32_t) n] = false;
  }
  return true;
}

/* Without a list, by the rule of the type. false: it has a period alone. */
static bool
apply_rule (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, const LsModel *m, Layers *full)
{
  const char *pattern = m->layers.pattern ? m->layers.pattern : "A";
  bool is_listed = f->windows == HF_WINDOWS_UNROTATED && list_unrotated (doc, full);
  for (uint32_t i = 0; i < full->n_layers; i++) {
    bool is_unrotated
        = is_listed ? full->has[i] : c->unrotated_every > 0 && (i + 1) % c->unrotated_every == 0;
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
  bool may_share = c->kv_shared == 0 || m->attn.difference; /* else a layer that shares may have a window */
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
  if (!f->slides && !f->encoder && (is_listed || (c->sliding_window > 0 && !is_off)))
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
  uint64_t chosen = c->index_top ? c->index_top : (uint64_t) c->index_block * c->index_top_blocks;
  uint32_t usual = c->both_sides_window >= 2 ? c->both_sides_window / 2 : (uint32_t) MIN (chosen, 1 << 27),
           window = c->sliding_window ? c->sliding_window : usual;
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
