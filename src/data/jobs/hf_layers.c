/* Layers of a config.json that differ: windows of attention, and layers without rope. */
#include <string.h>

#include "data/jobs/hf_family.h"

/* Of every so many layers the last has it. */
typedef struct {
  uint32_t n_layers;
  bool *has; /* [n_layers] */
} Layers;

/* 0: none has it. *ret_exact: it is so indeed, and not only in number. */
static uint32_t
period_of (const Layers *l, bool *ret_exact)
{
  uint32_t n_has = 0;
  for (uint32_t i = 0; i < l->n_layers; i++)
    n_has += l->has[i];
  uint32_t period = n_has > 0 ? MAX (1, l->n_layers / n_has) : 0;
  *ret_exact = true;
  for (uint32_t i = 0; i < l->n_layers; i++)
    *ret_exact &= l->has[i] == (period > 0 && (i + 1) % period == 0);
  return period;
}

static void
note_period (GPtrArray *notes, bool is_exact, uint32_t period, const char *what)
{
  if (!is_exact)
    g_ptr_array_add (
        notes,
        g_strdup_printf ("%s: taken as each %u. layer, which the file has in other layers", what, period));
}

/* --- windows -------------------------------------------------------------------------- */

static bool
read_layer_types (const LsJsonDoc *doc, const cJSON *list, Layers *l, LsDiagList *diags)
{
  static const char *const windowed[] = { "sliding_attention", "chunked_attention", NULL };
  const cJSON *type;
  uint32_t i = 0;
  cJSON_ArrayForEach (type, list)
  {
    const char *name = cJSON_GetStringValue (type);
    bool is_full = g_strcmp0 (name, "full_attention") == 0;
    if (!is_full && (!name || !g_strv_contains (windowed, name)))
      return hf_refuse (
          doc, type, diags,
          "expected full_attention, sliding_attention or chunked_attention, the layers that can "
          "be simulated");
    if (i < l->n_layers)
      l->has[i++] = is_full;
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

static bool
add_windows (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m, GPtrArray *notes,
             LsDiagList *diags)
{
  const cJSON *list = hf_get (doc, "layer_types"), *pattern = hf_get (doc, "sliding_window_pattern");
  bool is_exact = true, is_off = cJSON_IsNull (hf_get (doc, "sliding_window"));
  m->full_every = pattern_period (pattern) > 0 ? pattern_period (pattern) : m->full_every;
  if (cJSON_IsArray (list)) {
    g_autofree bool *has = g_new0 (bool, m->n_layers);
    Layers l = { m->n_layers, has };
    if (!read_layer_types (doc, list, &l, diags))
      return false;
    m->full_every = period_of (&l, &is_exact);
  }
  m->window = f->slides && c->use_sliding_window && !is_off && m->full_every != 1 ? c->sliding_window : 0;
  if (m->window == 0)
    m->full_every = 0, m->window_kind = LS_WINDOW_SLIDING;
  else
    note_period (notes, is_exact, m->full_every, "attention over the whole sequence");
  return true;
}

/* --- rope ----------------------------------------------------------------------------- */

/* no_rope_layers has 1 for layers with rope. */
static void
add_rotation (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m, GPtrArray *notes)
{
  const cJSON *list = hf_get (doc, "no_rope_layers"), *one;
  m->unrotated_every = f->unrotated_full ? m->full_every : c->unrotated_every;
  if (!cJSON_IsArray (list) || (uint32_t) cJSON_GetArraySize (list) != m->n_layers)
    return;
  g_autofree bool *has = g_new0 (bool, m->n_layers);
  bool is_exact;
  uint32_t i = 0;
  cJSON_ArrayForEach (one, list) has[i++] = cJSON_IsNumber (one) && one->valuedouble < 0.5;
  m->unrotated_every = period_of (&(Layers) { m->n_layers, has }, &is_exact);
  note_period (notes, is_exact, m->unrotated_every, "no rope");
}

bool
hf_add_layers (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsModel *m, GPtrArray *notes,
               LsDiagList *diags)
{
  if (!add_windows (doc, f, c, m, notes, diags))
    return false;
  add_rotation (doc, f, c, m, notes);
  return true;
}
