/* data/jobs/hf_config.c — what a config.json says: its keys, what other names they have, what it leaves out,
 * lists and blocks of layers that differ in width one by one. */
#include <string.h>

#include "data/jobs/hf_family.h"
#include "data/jobs/job_files.h"

/* --- what a file leaves out: values of the type, and of its configuration class ------------------- */

static const cJSON *
of (const HfFamily *f, guint i, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (f->chain->pdata[i], key);
}

/* Null in the file is a value: no default counts then. */
static bool
read_values (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const cJSON *values, HfConfig *c,
             LsDiagList *diags)
{
  cJSON *left = cJSON_Duplicate (values, true);
  const cJSON *value;
  cJSON_ArrayForEach (value, values)
    if (cJSON_IsNull (hf_get (doc, value->string)))
      cJSON_DeleteItemFromObjectCaseSensitive (left, value->string);

  bool ok = !left || ls_fields_read (fields, f->doc, left, c, NULL, diags);
  cJSON_Delete (left);
  return ok;
}

static bool
is_same (const LsField *f, const LsField *other)
{
  return f && other && f->kind == other->kind && f->offset == other->offset;
}

static LsField field_called (const char *key, const char *name);

/* Whether an object of the file has it, by the names that the type gives there. */
static bool
is_said_in (const cJSON *object, const cJSON *names, const LsField *own)
{
  const cJSON *name;
  cJSON_ArrayForEach (name, names) {
    const LsField meant = field_called (name->string, cJSON_IsString (name) ? name->valuestring : "");
    if (cJSON_IsString (name) && is_same (&meant, own)
        && cJSON_GetObjectItemCaseSensitive (object, name->string))
      return true;
  }
  return false;
}

/* Whether the file has a value of a key, by any of its names. */
static bool
is_said (const HfFamily *t, const LsJsonDoc *doc, const LsField *fields, const char *key)
{
  const LsField *own = ls_field_find (fields, key);
  const cJSON *section;
  for (const LsField *f = fields; f->key; f++)
    if (is_same (f, own) && hf_get (doc, f->key))
      return true;
  for (guint i = 0; i < t->chain->len; i++)
    cJSON_ArrayForEach (section, of (t, i, "keys")) {
      const cJSON *object = cJSON_IsObject (section) ? hf_get (doc, section->string) : NULL;
      if (object && is_said_in (object, section, own))
        return true;
    }
  return false;
}

static double
said_or (const LsJsonDoc *doc, const cJSON *own, const char *key)
{
  return hf_number (hf_get (doc, key) ? ls_json_doc_root (doc) : own, key, 0);
}

/* expand x hidden_size / head_dim; 0: no such widths, or heads do not divide them. */
static uint32_t
widths_over_head (const LsJsonDoc *doc, const cJSON *own)
{
  double inner = hf_number (ls_json_doc_root (doc), "expand", 0) * said_or (doc, own, "hidden_size"),
         width = said_or (doc, own, "head_dim"), n = width > 0 ? inner / width : 0;
  return n >= 1 && n <= 1 << 20 && n == (uint32_t) n ? (uint32_t) n : 0;
}

/* Heads of mamba2: as widths of the file say, where the class has another number. 0: as the class has it. */
static uint32_t
heads_of_widths (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const cJSON *values,
                 const cJSON *value)
{
  const LsField *own = ls_field_find (fields, value->string);
  bool is_heads = own && own->kind == LS_FIELD_UINT && own->offset == offsetof (HfConfig, m.mixer.heads);
  uint32_t n = is_heads && f->model.mixer.kind == LS_MIXER_MAMBA2 && !is_said (f, doc, fields, value->string)
      ? widths_over_head (doc, values)
      : 0;
  return n == value->valuedouble ? 0 : n;
}

/* Adds to told (NULL allowed) what the file leaves out, but for what is off; the last of several counts. */
static void
tell_left_out (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const cJSON *value,
               cJSON *told)
{
  if (!told || is_said (f, doc, fields, value->string))
    return;
  cJSON_DeleteItemFromObjectCaseSensitive (told, value->string);
  if (!hf_is_off (value))
    cJSON_AddItemToObject (told, value->string, cJSON_Duplicate (value, true));
}

/* Of its class, which are changed. */
static bool
read_class (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, cJSON *values, HfConfig *c,
            cJSON *told, GPtrArray *notes, LsDiagList *diags)
{
  cJSON *value;
  cJSON_ArrayForEach (value, values) {
    uint32_t n = heads_of_widths (f, doc, fields, values, value);
    if (n == 0) {
      tell_left_out (f, doc, fields, value, told);
      continue;
    }
    if (notes)
      ls_note (notes, "%s: %u, as expand x hidden_size / head_dim says, not the class's %.0f", value->string,
               n, value->valuedouble);
    cJSON_SetNumberValue (value, n);
  }
  return read_values (f, doc, fields, values, c, diags);
}

/* Of a class that is not known, the nearest known one tells what it may have otherwise than is usual. */
static bool
is_guessed (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const HfConfig *c,
            LsDiagList *diags)
{
  const cJSON *near = NULL;
  for (guint i = f->chain->len; i-- > 0 && !near;)
    near = of (f, i, "class_defaults");
  const struct {
    const char *key;
    uint32_t usual; /* of all of the type */
  } widths[] = { { "num_key_value_heads", c->m.n_kv_heads }, { "head_dim", c->m.head_dim } };
  for (guint i = 0; i < G_N_ELEMENTS (widths) && !f->latent; i++) {
    const char *key = widths[i].key;
    if (widths[i].usual > 0 || !cJSON_GetObjectItemCaseSensitive (near, key) || is_said (f, doc, fields, key))
      continue;
    ls_json_doc_wrong (doc, ls_json_doc_root (doc), diags,
                       "missing key \"%s\"; what the class of %s takes without it is not known", key,
                       f->model_type);
    return true;
  }
  return false;
}

bool
hf_may_have_own_heads (const HfFamily *f)
{
  bool may = false;
  for (guint i = 0; i < f->chain->len && !f->latent; i++)
    may = may || cJSON_HasObjectItem (of (f, i, "class_defaults"), "head_dim");
  return may;
}

static void
note_left_out (const cJSON *told, GPtrArray *notes)
{
  g_autoptr (GString) list = g_string_new (NULL);
  const cJSON *value;
  cJSON_ArrayForEach (value, told) {
    char *printed = cJSON_PrintUnformatted (value);
    g_string_append_printf (list, "%s%s %s", list->len > 0 ? ", " : "", value->string, printed);
    cJSON_free (printed);
  }
  if (list->len > 0)
    ls_note (notes, "the file leaves out what its class has defaults of: %s", list->str);
}

/* Defaults of the type and of its class, but for keys of which the file says null, into c. told: NULL
 * allowed. */
static bool
hf_read_defaults (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, HfConfig *c, cJSON *told,
                  GPtrArray *notes, LsDiagList *diags)
{
  const cJSON *value;
  for (guint i = 0; i < f->chain->len; i++) {
    if (!read_values (f, doc, fields, of (f, i, "defaults"), c, diags))
      return false;
    cJSON_ArrayForEach (value, of (f, i, "defaults"))
      tell_left_out (f, doc, fields, value, told);
  }
  const char *class = cJSON_GetStringValue (of (f, f->chain->len - 1, "class")); /* its own alone */
  const cJSON *base = class ? hf_find_type (f->doc, class) : NULL;
  if (!class && !of (f, f->chain->len - 1, "class_defaults"))
    return !is_guessed (f, doc, fields, c, diags);
  cJSON *of_base = cJSON_Duplicate (ls_json_at (base, "class_defaults"), true),
        *own = cJSON_Duplicate (of (f, f->chain->len - 1, "class_defaults"), true);
  bool ok = read_class (f, doc, fields, of_base, c, told, notes, diags)
      && read_class (f, doc, fields, own, c, told, notes, diags);
  cJSON_Delete (of_base);
  cJSON_Delete (own);
  return ok;
}

/* --- keys ---------------------------------------------------------------------------------------- */

#define UINT(key_, member, max_)                                                                             \
  {                                                                                                          \
    key_, LS_FIELD_UINT, offsetof (HfConfig, member), .min = 1, .max = (max_)                                \
  }
#define COUNT(key_, member, max_)                                                                            \
  {                                                                                                          \
    key_, LS_FIELD_UINT, offsetof (HfConfig, member), .max = (max_)                                          \
  }
#define BOOL(key_, member)                                                                                   \
  {                                                                                                          \
    key_, LS_FIELD_BOOL, offsetof (HfConfig, member)                                                         \
  }
#define SHARE(key_, member)                                                                                  \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, offsetof (HfConfig, member), .max = 1                                             \
  }

static const LsField common[] = {
  UINT ("n_shared_head", heads_per_kv, 65536),
  BOOL ("block_auto_adjust_ff_dim", adjusts_ffn),
  { "block_ffn_dim_multiplier", LS_FIELD_DOUBLE, offsetof (HfConfig, ffn_factor), .max = 64 },
  UINT ("block_multiple_of", ffn_multiple, 65536),
  { "ffn_proj_factor", LS_FIELD_DOUBLE, offsetof (HfConfig, ffn_share), .max = 64 },
  { "hidden_ratio", LS_FIELD_DOUBLE, offsetof (HfConfig, gated_ratio), .max = 64 },
  { "qk_dim_factor", LS_FIELD_DOUBLE, offsetof (HfConfig, key_share), .max = 64 },
  { "v_dim_factor", LS_FIELD_DOUBLE, offsetof (HfConfig, value_share), .max = 64 },
  UINT ("expansion_ratio", expansion, 65536),
  UINT ("word_embed_proj_dim", embedding_width, 1 << 20),
  SHARE ("partial_rotary_factor", rotary_share),
  COUNT ("local_attention", both_sides_window, 1 << 27),
  BOOL ("use_sliding_window", use_sliding_window),
  COUNT ("max_window_layers", max_window_layers, 65536),
  UINT ("swa_v_head_dim", window_v_dim, 1 << 20),
  UINT ("num_global_key_value_heads", full_kv_heads, 65536),
  UINT ("global_head_dim", full_head_dim, 1 << 20),
  UINT ("intermediate_size_mlp", dense_ffn, 1 << 22),
  COUNT ("n_shared_experts", n_shared, 65536),
  COUNT ("first_k_dense_replace", dense_layers, 65536),
  UINT ("moe_layer_freq", sparse_step, 65536),
  COUNT ("interleave_moe_layer_step", interleave, 65536),
  BOOL ("use_mla", use_mla),
  COUNT ("qk_nope_head_dim", nope_dim, 1 << 20),
  COUNT ("index_topk_blocks", index_top_blocks, 1 << 20),
  BOOL ("use_double_wide_mlp", doubles_ffn),
  COUNT ("num_nextn_predict_layers", n_predictions, 65536),
  { "predict_pattern", LS_FIELD_STRING, offsetof (HfConfig, predict_pattern) },
  UINT ("lru_width", mixer_width, 1 << 20),
  UINT ("mamba_expand", mixer_expand, 4096),
  UINT ("full_attention_interval", attention_period, 65536),
  COUNT ("attn_layer_offset", attention_offset, 65536),
  UINT ("expert_layer_period", expert_period, 65536),
  COUNT ("expert_layer_offset", expert_offset, 65536),
  BOOL ("use_gate", mixer_gate),
  UINT ("decay_low_rank_dim", decay_rank, 65536),
  UINT ("a_low_rank_dim", rate_rank, 65536),
  UINT ("v_low_rank_dim", value_rank, 65536),
  UINT ("gate_low_rank_dim", gate_rank, 65536),
  BOOL ("mamba_conv_bias", mixer_conv_bias),
  BOOL ("attn_output_gate", attention_gate),
  UINT ("total_ut_steps", passes, 64),
  COUNT ("emb_neighbor_num", ngram_tokens, 64),
  COUNT ("emb_split_num", ngram_splits, 64),
  { "ngram_vocab_size_ratio", LS_FIELD_DOUBLE, offsetof (HfConfig, ngram_ratio), .max = 65536 },
  COUNT ("num_decoder_layers", decoder_layers, 65536),
  UINT ("adapter_rank", adapter_rank, 1 << 20),
  BOOL ("use_shared_attention_adapter", adapts_attention),
  BOOL ("use_mem_rope", mem_rope),
  BOOL ("attention_bias", attention_bias),
  BOOL ("mlp_bias", mlp_bias),
  BOOL ("bias", bias),
  BOOL ("use_post_norm", post_norm),
  BOOL ("multi_query", multi_query),
  BOOL ("new_decoder_architecture", grouped_query),
  BOOL ("alibi", alibi),
  BOOL ("do_layer_norm_before", norm_before),
  SHARE ("dropout", dropout),
  { "position_embedding_type", LS_FIELD_STRING, offsetof (HfConfig, position) },
  { "hidden_act", LS_FIELD_STRING, offsetof (HfConfig, activation) },
  { NULL },
};

static void
append_ignored (GArray *fields, const char *key)
{
  const LsField f = { key, LS_FIELD_IGNORED };
  g_array_append_val (fields, f);
}

/* What a key stands for: another of a file, or one of a model of ours; with "?", which may be 0 there. */
static LsField
field_called (const char *key, const char *name)
{
  g_autofree char *ours = g_strndup (name, strcspn (name, "?"));
  const LsField *own = ls_field_find (common, ours);
  own = own ? own : ls_field_find (ls_model_fields, ours);
  LsField renamed = own ? *own : (LsField) { .kind = LS_FIELD_IGNORED };
  renamed.key = key;
  renamed.required = false;
  if (strchr (name, '?'))
    renamed.min = 0;
  return renamed;
}
G_STATIC_ASSERT (offsetof (HfConfig, m) == 0); /* places are the same */

/* Other names that all types or one give to keys; null: of no matter. Objects have tables of their own. */
static void
append_names (GArray *fields, const cJSON *names)
{
  const cJSON *name;
  cJSON_ArrayForEach (name, names) {
    const LsField own = field_called (name->string, cJSON_IsString (name) ? name->valuestring : "");
    g_array_append_val (fields, own);
  }
}

/* The last type first, whose word counts. */
const cJSON *
hf_of_chain (const HfFamily *f, guint i, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (f->chain->pdata[f->chain->len - 1 - i], key);
}

/* Of the root of a file; of an object of this name in it (section): only the names that the type gives. */
LsField *
hf_fields_of (const HfFamily *f, const char *section)
{
  GArray *fields = g_array_new (TRUE, TRUE, sizeof (LsField));
  const cJSON *key;
  for (guint i = 0; i < f->chain->len; i++) {
    const cJSON *names = hf_of_chain (f, i, "keys");
    append_names (fields, section ? cJSON_GetObjectItemCaseSensitive (names, section) : names);
    const cJSON *refused = section ? NULL : hf_of_chain (f, i, "refused"); /* where the file has them off */
    cJSON_ArrayForEach (key, refused)
      append_ignored (fields, key->string);
  }
  if (!section) {
    g_array_append_vals (fields, common, G_N_ELEMENTS (common) - 1);
    append_names (fields, hf_get (f->doc, "keys"));
    cJSON_ArrayForEach (key, hf_get (f->doc, "lists"))
      append_ignored (fields, key->valuestring);
    cJSON_ArrayForEach (key, hf_get (f->doc, "ignored"))
      append_ignored (fields, key->valuestring);
    cJSON_ArrayForEach (key, hf_get (f->doc, "told"))
      append_ignored (fields, key->string);
  }
  return (LsField *) (gpointer) g_array_free (fields, FALSE);
}

/* --- lists ---------------------------------------------------------------------------- */

#define MOST_LAYERS 65536

/* Each list, what it is of, and where it goes. */
#define LIST(of_, usual_)                                                                                    \
  {                                                                                                          \
    offsetof (HfConfig, layer_##of_), offsetof (HfConfig, m.usual_), offsetof (LsModel, layers.of_),         \
        offsetof (LsModel, layers.n_##of_)                                                                   \
  }

static const struct {
  size_t list, usual, model, n;
} lists[] = {
  LIST (heads, n_heads),
  LIST (kv_heads, n_kv_heads),
  LIST (ffn, ffn),
  LIST (window, attn.window),
  LIST (experts, moe.n_experts),
  LIST (top_k, moe.top_k),
  LIST (expert_ffn, moe.expert_ffn),
};

static HfWidths *
widths_of (HfConfig *c, size_t offset)
{
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    if (lists[i].usual == offset)
      return &G_STRUCT_MEMBER (HfWidths, c, lists[i].list);
  return NULL;
}

void
hf_free_widths (HfConfig *c)
{
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    g_free (G_STRUCT_MEMBER (HfWidths, c, lists[i].list).of);
}

static void
append_width (HfWidths *w, uint32_t width)
{
  w->of = g_renew (uint32_t, w->of, w->n + 1);
  w->of[w->n++] = width;
}

static uint32_t
widest (const HfWidths *w)
{
  uint32_t most = 0;
  for (uint32_t i = 0; i < w->n; i++)
    most = MAX (most, w->of[i]);
  return most;
}

static bool
read_widths (const LsJsonDoc *doc, const cJSON *list, double most, HfWidths *ret, LsDiagList *diags)
{
  const cJSON *width;
  cJSON_ArrayForEach (width, list) {
    double n = cJSON_IsNumber (width) ? width->valuedouble : 0;
    if (n < 1 || n > most || n != (uint32_t) n || ret->n == MOST_LAYERS)
      return hf_refuse (doc, width, diags, "expected whole numbers, one a layer");
    append_width (ret, (uint32_t) n);
  }
  return true;
}

/* Of OpenELM, ffn_multipliers: of hidden, to a multiple of ffn_dim_divisor (make_divisible() of its
 * configuration_openelm.py: the nearest, and no less than nine tenths). */
static bool
read_multipliers (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const cJSON *list = hf_get (doc, "ffn_multipliers"), *divisor = hf_get (doc, "ffn_dim_divisor"), *one;
  double unit = cJSON_IsNumber (divisor) && divisor->valuedouble >= 1 ? divisor->valuedouble : 256;
  if (!cJSON_IsArray (list) || c->layer_ffn.n > 0)
    return true;
  cJSON_ArrayForEach (one, list) {
    double wanted = cJSON_IsNumber (one) ? one->valuedouble * c->m.hidden : 0;
    if (!(wanted >= 1 && wanted <= 1 << 22 && unit <= 65536) || c->layer_ffn.n == MOST_LAYERS)
      return hf_refuse (doc, one, diags, "expected multiples of hidden_size, one a layer");
    uint64_t divides = (uint64_t) unit,
             width = MAX (divides, (uint64_t) (wanted + unit / 2) / divides * divides);
    append_width (&c->layer_ffn, (uint32_t) ((double) width < 0.9 * wanted ? width + divides : width));
  }
  return true;
}

/* --- blocks by keys of the file ------------------------------------------------------- */

static bool
are_flat (const cJSON *blocks)
{
  return cJSON_IsArray (blocks) && cJSON_IsObject (blocks->child) && !ls_json_at (blocks->child, "attention");
}

/* What blocks say of a number that no list has: the same, if at all. said: of those before. */
static bool
take_numbers (const LsJsonDoc *doc, const cJSON *block, const LsField *fields, const HfConfig *own,
              HfConfig *said, HfConfig *c, LsDiagList *diags)
{
  for (const LsField *f = fields; f->key; f++) {
    bool is_there = f->kind == LS_FIELD_UINT && !widths_of (c, f->offset);
    uint32_t value = is_there ? G_STRUCT_MEMBER (uint32_t, own, f->offset) : 0,
             *before = is_there ? &G_STRUCT_MEMBER (uint32_t, said, f->offset) : NULL;
    if (value == 0)
      continue;
    if (*before > 0 && *before != value)
      return hf_refuse (doc, block, diags, "layers that differ in this one by one cannot be simulated");
    *before = G_STRUCT_MEMBER (uint32_t, c, f->offset) = value;
  }
  return true;
}

static bool
read_flat_block (const LsJsonDoc *doc, const cJSON *block, const LsField *fields, HfConfig *said, HfConfig *c,
                 GPtrArray *notes, LsDiagList *diags)
{
  HfConfig own = { 0 };
  bool ok = ls_fields_read (fields, doc, block, &own, notes, diags)
      && take_numbers (doc, block, fields, &own, said, c, diags);
  for (guint i = 0; ok && i < G_N_ELEMENTS (lists); i++)
    append_width (&G_STRUCT_MEMBER (HfWidths, c, lists[i].list),
                  G_STRUCT_MEMBER (uint32_t, &own, lists[i].usual));
  g_free (own.activation);
  g_free (own.position);
  return ok;
}

static bool
read_flat_blocks (const LsJsonDoc *doc, const LsField *fields, HfConfig *c, GPtrArray *notes,
                  LsDiagList *diags)
{
  const cJSON *blocks = hf_get (doc, "block_configs"), *block;
  g_autoptr (GPtrArray) others = g_ptr_array_new_with_free_func (g_free);
  HfConfig said = { 0 };
  if (!are_flat (blocks))
    return true;
  if (cJSON_GetArraySize (blocks) > MOST_LAYERS)
    return hf_refuse (doc, blocks, diags, "expected as many block_configs as there are layers");
  cJSON_ArrayForEach (block, blocks)
    if (!read_flat_block (doc, block, fields, &said, c, block == blocks->child ? notes : others, diags))
      return false;

  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    HfWidths *w = &G_STRUCT_MEMBER (HfWidths, c, lists[i].list);
    w->n = widest (w) > 0 ? w->n : 0; /* no block says it */
  }
  return true;
}

/* What the type calls by other names inside of objects of the file. */
static bool
read_sections (const HfFamily *f, const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  for (guint i = 0; i < f->chain->len; i++) {
    const cJSON *section;
    cJSON_ArrayForEach (section, hf_of_chain (f, i, "keys")) {
      const cJSON *object = cJSON_IsObject (section) ? hf_get (doc, section->string) : NULL;
      if (!cJSON_IsObject (object))
        continue;
      g_autofree LsField *fields = hf_fields_of (f, section->string);
      g_autoptr (GPtrArray) others = g_ptr_array_new_with_free_func (g_free);
      if (!ls_fields_read (fields, doc, object, c, others, diags))
        return false;
    }
  }
  return true;
}

/* A number of what reads, in the first place. */
static bool
read_first (const LsJsonDoc *doc, const cJSON *list, const LsField *field, HfConfig *c, LsDiagList *diags)
{
  if (!cJSON_IsNumber (list->child))
    return hf_refuse (doc, list->child, diags, "expected a number of the experts that read text");
  g_autofree char *text = g_strdup_printf ("%.17g", list->child->valuedouble);
  return ls_field_set_text (field, c, field->key, text, diags);
}

/* A number that a file gives layer by layer, the same for all. Of moe_layer_freq, 0 stands for layers without
 * experts, which may come first. */
static bool
read_list (const LsJsonDoc *doc, const cJSON *list, const LsField *field, HfConfig *c, LsDiagList *diags)
{
  bool may_be_dense = field->offset == offsetof (HfConfig, sparse_step);
  uint32_t n_dense = 0;
  HfWidths *widths = widths_of (c, field->offset);
  const cJSON *first = list->child;
  for (; may_be_dense && first->next && cJSON_IsNumber (first) && first->valuedouble == 0; n_dense++)
    first = first->next;
  for (const cJSON *value = first; value; value = value->next)
    if (widths && widths->n == 0 && (!cJSON_IsNumber (value) || value->valuedouble != first->valuedouble))
      return read_widths (doc, list, field->max, widths, diags);
    else if (!cJSON_IsNumber (value) || value->valuedouble != first->valuedouble)
      return hf_refuse (doc, value, diags, "layers that differ in this one by one cannot be simulated");
  c->dense_layers = n_dense > 0 ? n_dense : c->dense_layers;
  g_autofree char *text = g_strdup_printf ("%.17g", first->valuedouble);
  return ls_field_set_text (field, c, field->key, text, diags);
}

/* Fields whose value in the file is such a list: read, and not looked at again. */
static bool
read_lists (const HfFamily *f, const LsJsonDoc *doc, LsField *fields, HfConfig *c, LsDiagList *diags)
{
  for (LsField *own = fields; own->key; own++) {
    const cJSON *node = own->kind == LS_FIELD_UINT ? hf_get (doc, own->key) : NULL;
    if (!cJSON_IsArray (node) || cJSON_GetArraySize (node) == 0)
      continue;
    if (!(f->first_of_lists ? read_first : read_list) (doc, node, own, c, diags))
      return false;
    own->kind = LS_FIELD_IGNORED;
  }
  return true;
}

bool
hf_read_config (const HfFamily *f, const LsJsonDoc *doc, HfConfig *c, GPtrArray *notes, LsDiagList *diags)
{
  g_autofree LsField *fields = hf_fields_of (f, NULL);
  cJSON *told = notes ? cJSON_CreateObject () : NULL;
  bool ok = hf_read_defaults (f, doc, fields, c, told, notes, diags) && read_lists (f, doc, fields, c, diags)
      && ls_fields_read (fields, doc, ls_json_doc_root (doc), c, notes, diags)
      && read_flat_blocks (doc, fields, c, notes, diags) && read_sections (f, doc, c, diags);
  note_left_out (told, notes);
  cJSON_Delete (told);
  return ok;
}

/* --- blocks --------------------------------------------------------------------------- */

/* What stands for one half of a layer. */
typedef enum { HALF_OWN, HALF_LINEAR, HALF_NONE } Half;

static bool
is_there (const cJSON *object, const char *key)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (object, key);
  return node && !cJSON_IsNull (node) && !cJSON_IsFalse (node);
}

static Half
half_of (const cJSON *object)
{
  return is_there (object, "no_op")              ? HALF_NONE
      : is_there (object, "replace_with_linear") ? HALF_LINEAR
                                                 : HALF_OWN;
}

/* 0: not said, or not of these heads. */
static uint32_t
kv_heads_of (const cJSON *attention, uint32_t heads)
{
  double group = hf_number (attention, "n_heads_in_group", 0),
         own = hf_number (attention, "num_key_value_heads", 0);
  if (own >= 1 && own <= heads)
    return heads % (uint32_t) own == 0 ? (uint32_t) own : 0;
  return group >= 1 && group <= heads && heads % (uint32_t) group == 0 ? heads / (uint32_t) group : 0;
}

/* Two thirds of a multiple of hidden, up to a multiple of 256 (block_config.py and modeling_decilm.py of
 * Llama-3_3-Nemotron-Super-49B-v1; ml-explore/mlx-lm, mlx_lm/models/nemotron-nas.py); 0: not said. */
static uint32_t
ffn_of (const cJSON *ffn, uint32_t hidden)
{
  double own = hf_number (ffn, "intermediate_size", 0),
         width = 2 * hf_number (ffn, "ffn_mult", 0) * hidden / 3;
  if (own >= 1 && own <= 1 << 22)
    return (uint32_t) own;
  return width >= 1 && width <= 1 << 22 ? ((uint32_t) width + 255) / 256 * 256 : 0;
}

static const char *
wrong_with (const cJSON *block, Half mixing, Half mlp, uint32_t kv_heads, uint32_t width)
{
  const cJSON *attention = ls_json_at (block, "attention"), *ffn = ls_json_at (block, "ffn"),
              *gated = ls_json_at (ffn, "gated");
  bool has_attention = mixing == HALF_OWN;
  if (!cJSON_IsObject (attention) || !cJSON_IsObject (ffn))
    return "expected attention and ffn of a block";
  if (is_there (block, "parallel_blocks"))
    return "blocks side by side cannot be simulated";
  if (is_there (attention, "mamba") || is_there (attention, "llama4") || is_there (ffn, "moe"))
    return "blocks with mixers, experts or attention of their own kind cannot be simulated";
  if (is_there (attention, "sparsify") || is_there (ffn, "sparsify"))
    return "weights that are left out one by one cannot be simulated";
  if (has_attention && (is_there (attention, "window_length") || is_there (attention, "num_sink_tokens")))
    return "blocks with windows of their own cannot be simulated";
  if (mlp == HALF_LINEAR)
    return "a linear layer in the place of an MLP cannot be simulated";
  if (mlp == HALF_OWN && cJSON_IsFalse (gated))
    return "MLPs without a gate in some blocks cannot be simulated";
  if (has_attention && kv_heads == 0)
    return "expected n_heads_in_group that divides num_attention_heads";
  return mlp == HALF_OWN && width == 0 ? "expected ffn_mult or intermediate_size" : NULL;
}

/* By what stands for attention and for the MLP; 0: a block that does nothing. */
static char
letter_of (Half mixing, Half mlp)
{
  static const char letters[3][2] = { { 'A', 'a' }, { 'M', 'm' }, { 'd', '\0' } };
  return letters[mixing][mlp == HALF_NONE];
}

static bool
read_block (const LsJsonDoc *doc, const cJSON *block, HfConfig *c, GString *pattern, LsDiagList *diags)
{
  const cJSON *attention = ls_json_at (block, "attention"), *ffn = ls_json_at (block, "ffn");
  Half mixing = half_of (attention), mlp = half_of (ffn);
  uint32_t kv_heads = mixing == HALF_OWN ? kv_heads_of (attention, c->m.n_heads) : 0;
  uint32_t width = mlp == HALF_OWN ? ffn_of (ffn, c->m.hidden) : 0;
  const char *wrong = wrong_with (block, mixing, mlp, kv_heads, width);
  if (wrong)
    return hf_refuse (doc, block, diags, wrong);
  char letter = letter_of (mixing, mlp);
  if (!letter)
    return true;
  g_string_append_c (pattern, letter);
  append_width (&c->layer_kv_heads, kv_heads);
  append_width (&c->layer_ffn, width);
  return true;
}

static bool
read_blocks (const LsJsonDoc *doc, HfConfig *c, GPtrArray *notes, LsDiagList *diags)
{
  const cJSON *blocks = hf_get (doc, "block_configs"), *block;
  g_autoptr (GString) pattern = g_string_new (NULL);
  uint32_t n = cJSON_IsArray (blocks) ? (uint32_t) cJSON_GetArraySize (blocks) : 0;
  if (n == 0 || are_flat (blocks))
    return true;
  if (n != c->m.n_layers || n > MOST_LAYERS)
    return hf_refuse (doc, blocks, diags, "expected as many block_configs as there are layers");
  cJSON_ArrayForEach (block, blocks)
    if (!read_block (doc, block, c, pattern, diags))
      return false;

  if (pattern->len == 0)
    return hf_refuse (doc, blocks, diags, "expected a block that does something");
  if (pattern->len < n)
    ls_note (notes, "%u layers that do nothing are left out", n - (uint32_t) pattern->len);
  c->m.n_layers = (uint32_t) pattern->len;
  c->pattern = g_strdup (pattern->str);
  return true;
}

/* --- layers that a file saved by transformers 5 has apart ----------------------------- */

/* The width of heads, or the heads of keys and values, of full layers; 0: it says another thing. */
static bool
take_apart (const cJSON *layer, HfConfig *c)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, layer) {
    uint32_t *place = strcmp (one->string, "head_dim") == 0 ? &c->full_head_dim
        : strcmp (one->string, "num_key_value_heads") == 0  ? &c->full_kv_heads
                                                            : NULL;
    bool is_number = cJSON_IsNumber (one) && one->valuedouble >= 1 && one->valuedouble <= 65536;
    if (!place || !is_number || (*place > 0 && *place != (uint32_t) one->valuedouble))
      return false;
    *place = (uint32_t) one->valuedouble;
  }
  return true;
}

/* per_layer_config, by the number of a layer: all layers that see the whole sequence, and no others, may have
 * other heads, all the same (Gemma 4). */
static bool
read_layers_apart (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const cJSON *apart = hf_get (doc, "per_layer_config"), *types = hf_get (doc, "layer_types"), *layer, *type;
  g_autofree bool *is_left
      = g_new0 (bool, (gsize) c->m.n_layers + 1); /* that see all, and are not said yet */
  uint32_t i = 0, n_full = 0, n = 0;
  cJSON_ArrayForEach (type, types) {
    if (i == c->m.n_layers)
      break;
    is_left[i] = g_strcmp0 (cJSON_GetStringValue (type), "full_attention") == 0;
    n_full += is_left[i++];
  }
  cJSON_ArrayForEach (layer, apart) {
    guint64 at = 0;
    bool is_number = g_ascii_string_to_unsigned (layer->string, 10, 0, UINT32_MAX, &at, NULL);
    if (!is_number || at >= c->m.n_layers || !is_left[at] || !take_apart (layer, c))
      return hf_refuse (doc, layer, diags,
                        "a layer unlike others; only heads of all layers with full_attention can be");
    is_left[at] = false;
    n++;
  }
  return n == 0 || (n == n_full && n < c->m.n_layers)
      || hf_refuse (doc, apart, diags, "expected all layers with full_attention, and others without");
}

/* --- beside the halves of layers ------------------------------------------------------ */

/* Of Gemma 3n, activation_sparsity_pattern: a share of what becomes 0 for each layer, of the first alone. */
static bool
read_sparse_layers (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const cJSON *shares = hf_get (doc, "activation_sparsity_pattern"), *one;
  uint32_t i = 0, n_sparse = 0;
  if (cJSON_IsNumber (shares))
    n_sparse = shares->valuedouble > 0 ? c->m.n_layers : 0;
  else if (!cJSON_IsArray (shares)) /* as the type has it, in models of more layers */
    n_sparse = c->m.halves.sparse_layers < c->m.n_layers ? c->m.halves.sparse_layers : 0;
  cJSON_ArrayForEach (one, shares) {
    bool is_sparse = cJSON_IsNumber (one) && one->valuedouble > 0;
    if (is_sparse && n_sparse < i)
      return hf_refuse (doc, one, diags, "sparse MLPs in other layers than the first cannot be simulated");
    n_sparse += is_sparse;
    i++;
  }
  if (cJSON_IsArray (shares) && i != c->m.n_layers)
    return hf_refuse (doc, shares, diags, "expected as many shares as there are layers");
  c->m.halves.sparse_layers = n_sparse;
  return true;
}

/* huggingface/transformers, modeling_gemma4.py, Gemma4TextMLP. */
static void
double_widths (HfConfig *c)
{
  for (uint32_t i = 0; i < c->m.n_layers && c->doubles_ffn && c->m.halves.kv_shared_layers > 0
       && c->m.halves.kv_shared_layers < c->m.n_layers;
       i++)
    append_width (&c->layer_ffn, i + c->m.halves.kv_shared_layers < c->m.n_layers ? c->m.ffn : 2 * c->m.ffn);
}

bool
hf_read_beside (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  if (c->doubles_ffn && (c->m.ffn > 1 << 21 || c->m.n_layers > MOST_LAYERS || c->layer_ffn.n > 0))
    return hf_refuse (doc, hf_get (doc, "use_double_wide_mlp"), diags,
                      "expected one intermediate_size where some MLPs are twice as wide");
  double_widths (c);
  return read_sparse_layers (doc, c, diags);
}

/* --- both ----------------------------------------------------------------------------- */

bool
hf_read_blocks (const LsJsonDoc *doc, HfConfig *c, GPtrArray *notes, LsDiagList *diags)
{
  if (!read_multipliers (doc, c, diags) || !read_blocks (doc, c, notes, diags)
      || !read_layers_apart (doc, c, diags))
    return false;
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    const HfWidths *w = &G_STRUCT_MEMBER (HfWidths, c, lists[i].list);
    if (w->n > 0 && w->n != c->m.n_layers)
      return hf_refuse (doc, ls_json_doc_root (doc), diags,
                        "expected as many numbers in lists of widths as there are layers");
    if (w->n > 0)
      G_STRUCT_MEMBER (uint32_t, c, lists[i].usual) = widest (w);
  }
  if (c->pattern && c->m.ffn == 0) /* no block has an MLP */
    c->m.ffn = c->m.hidden;
  return true;
}

/* None where all layers that have it are as wide; of a window all count. */
static uint32_t
copy_widths (const HfWidths *w, bool is_window, uint32_t **ret_of)
{
  uint32_t usual = widest (w);
  bool differ = false;
  for (uint32_t i = 0; i < w->n; i++)
    differ = differ || ((w->of[i] > 0 || is_window) && w->of[i] != usual);
  *ret_of = differ ? g_memdup2 (w->of, w->n * sizeof (uint32_t)) : NULL;
  return differ ? w->n : 0;
}

void
hf_add_blocks (const HfConfig *c, LsModel *m)
{
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    G_STRUCT_MEMBER (uint32_t, m, lists[i].n) = copy_widths (
        &G_STRUCT_MEMBER (HfWidths, c, lists[i].list), lists[i].usual == offsetof (HfConfig, m.attn.window),
        &G_STRUCT_MEMBER (uint32_t *, m, lists[i].model));
  if (!c->pattern)
    return;
  g_free (m->layers.pattern);
  m->layers.pattern = g_strdup (c->pattern);
  if (!strpbrk (c->pattern, "Mm"))
    return;
  m->mixer.kind = LS_MIXER_PRODUCT;
  m->mixer.heads = 1;
  m->mixer.head_dim = m->hidden;
}
