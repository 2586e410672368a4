/* data/jobs/hf_config.c — keys of config.json, what other names they have and what a type of models adds to
 * them; what a file leaves out; whether it is one and of a decoder. */
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
  {
    if (cJSON_IsNull (hf_get (doc, value->string)))
      cJSON_DeleteItemFromObjectCaseSensitive (left, value->string);
  }
  bool ok = !left || ls_fields_read (fields, f->doc, left, c, NULL, diags);
  cJSON_Delete (left);
  return ok;
}

static bool
is_same (const LsField *f, const LsField *other)
{
  return f && other && f->kind == other->kind && f->offset == other->offset;
}

/* Whether an object of the file has it, by the names that the type gives there. */
static bool
is_said_in (const cJSON *object, const cJSON *names, const LsField *fields, const LsField *own)
{
  const cJSON *name;
  cJSON_ArrayForEach (name, names)
  {
    const char *other = cJSON_GetStringValue (name);
    if (other && is_same (ls_field_find (fields, other), own)
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
    cJSON_ArrayForEach (section, of (t, i, "keys"))
    {
      const cJSON *object = cJSON_IsObject (section) ? hf_get (doc, section->string) : NULL;
      if (object && is_said_in (object, section, fields, own))
        return true;
    }
  return false;
}

static double
number_of (const LsJsonDoc *doc, const cJSON *own, const char *key)
{
  const cJSON *said = hf_get (doc, key), *value = said ? said : cJSON_GetObjectItemCaseSensitive (own, key);
  return cJSON_IsNumber (value) ? value->valuedouble : 0;
}

/* expand x hidden_size / head_dim; 0: no such widths, or heads do not divide them. */
static uint32_t
widths_over_head (const LsJsonDoc *doc, const cJSON *own)
{
  double inner = number_of (doc, NULL, "expand") * number_of (doc, own, "hidden_size"),
         width = number_of (doc, own, "head_dim"), n = width > 0 ? inner / width : 0;
  return n >= 1 && n <= 1 << 20 && n == (uint32_t) n ? (uint32_t) n : 0;
}

/* Heads of mamba2: as widths of the file say, where the class has another number. 0: as the class has it. */
static uint32_t
heads_of_widths (const HfFamily *f, const LsJsonDoc *doc, const LsField *fields, const cJSON *values,
                 const cJSON *value)
{
  const LsField *own = ls_field_find (fields, value->string);
  bool is_heads = own && own->kind == LS_FIELD_UINT && own->offset == offsetof (HfConfig, mixer_heads);
  uint32_t n = is_heads && f->model.mixer.kind == LS_MIXER_MAMBA2 && !is_said (f, doc, fields, value->string)
      ? widths_over_head (doc, values)
      : 0;
  return n == value->valuedouble ? 0 : n;
}

static void
note_heads (const cJSON *value, uint32_t n, GPtrArray *notes)
{
  if (notes)
    ls_note (notes, "%s: %u, as expand x hidden_size / head_dim says, not the class's %.0f", value->string, n,
             value->valuedouble);
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
  cJSON_ArrayForEach (value, values)
  {
    uint32_t n = heads_of_widths (f, doc, fields, values, value);
    if (n == 0) {
      tell_left_out (f, doc, fields, value, told);
      continue;
    }
    note_heads (value, n, notes);
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
  } widths[] = { { "num_key_value_heads", c->kv_heads }, { "head_dim", c->head_dim } };
  for (guint i = 0; i < G_N_ELEMENTS (widths) && !f->latent; i++) {
    const char *key = widths[i].key;
    if (widths[i].usual > 0 || !cJSON_GetObjectItemCaseSensitive (near, key) || is_said (f, doc, fields, key))
      continue;
    ls_json_doc_diag (doc, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL,
                      "missing key \"%s\"; what the class of %s takes without it is not known", key,
                      f->model_type);
    return true;
  }
  return false;
}

static void
note_left_out (const cJSON *told, GPtrArray *notes)
{
  g_autoptr (GString) list = g_string_new (NULL);
  const cJSON *value;
  cJSON_ArrayForEach (value, told)
  {
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
    cJSON_ArrayForEach (value, of (f, i, "defaults")) tell_left_out (f, doc, fields, value, told);
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
  UINT ("num_hidden_layers", layers, 65536),
  UINT ("hidden_size", hidden, 1 << 20),
  UINT ("num_attention_heads", heads, 65536),
  UINT ("num_key_value_heads", kv_heads, 65536),
  UINT ("n_shared_head", heads_per_kv, 65536),
  UINT ("head_dim", head_dim, 1 << 20),
  UINT ("intermediate_size", ffn, 1 << 22),
  BOOL ("block_auto_adjust_ff_dim", adjusts_ffn),
  { "block_ffn_dim_multiplier", LS_FIELD_DOUBLE, offsetof (HfConfig, ffn_factor), .max = 64 },
  UINT ("block_multiple_of", ffn_multiple, 65536),
  { "ffn_proj_factor", LS_FIELD_DOUBLE, offsetof (HfConfig, ffn_share), .max = 64 },
  { "hidden_ratio", LS_FIELD_DOUBLE, offsetof (HfConfig, gated_ratio), .max = 64 },
  { "qk_dim_factor", LS_FIELD_DOUBLE, offsetof (HfConfig, key_share), .max = 64 },
  { "v_dim_factor", LS_FIELD_DOUBLE, offsetof (HfConfig, value_share), .max = 64 },
  UINT ("expansion_ratio", expansion, 65536),
  UINT ("vocab_size", vocab, 1 << 24),
  UINT ("max_position_embeddings", seq, 1 << 27),
  UINT ("word_embed_proj_dim", embedding_width, 1 << 20),
  UINT ("rotary_dim", rotary_dim, 1 << 20),
  SHARE ("partial_rotary_factor", rotary_share),
  COUNT ("sliding_window", sliding_window, 1 << 27),
  COUNT ("local_attention", both_sides_window, 1 << 27),
  BOOL ("use_sliding_window", use_sliding_window),
  COUNT ("max_window_layers", max_window_layers, 65536),
  UINT ("swa_num_attention_heads", window_heads, 65536),
  UINT ("swa_num_key_value_heads", window_kv_heads, 65536),
  UINT ("swa_head_dim", window_head_dim, 1 << 20),
  UINT ("swa_v_head_dim", window_v_dim, 1 << 20),
  UINT ("num_global_key_value_heads", full_kv_heads, 65536),
  UINT ("global_head_dim", full_head_dim, 1 << 20),
  BOOL ("attention_k_eq_v", full_k_is_v),
  COUNT ("no_rope_layer_interval", unrotated_every, 65536),
  COUNT ("num_local_experts", experts, 65536),
  COUNT ("num_experts_per_tok", top_k, 65536),
  COUNT ("zero_expert_num", zero_experts, 65536),
  COUNT ("n_group", expert_groups, 1024),
  COUNT ("topk_group", top_groups, 1024),
  UINT ("moe_intermediate_size", expert_ffn, 1 << 22),
  COUNT ("shared_expert_intermediate_size", shared_ffn, 1 << 22),
  UINT ("intermediate_size_mlp", dense_ffn, 1 << 22),
  COUNT ("n_shared_experts", n_shared, 65536),
  COUNT ("first_k_dense_replace", dense_layers, 65536),
  UINT ("moe_layer_freq", sparse_step, 65536),
  COUNT ("interleave_moe_layer_step", interleave, 65536),
  UINT ("q_lora_rank", q_lora, 1 << 20),
  UINT ("kv_lora_rank", kv_lora, 1 << 20),
  BOOL ("use_mla", use_mla),
  COUNT ("qk_rope_head_dim", rope_dim, 1 << 20),
  COUNT ("qk_nope_head_dim", nope_dim, 1 << 20),
  COUNT ("v_head_dim", v_dim, 1 << 20),
  UINT ("index_n_heads", index_heads, 65536),
  UINT ("index_head_dim", index_dim, 65536),
  COUNT ("index_topk", index_top, 1 << 27),
  UINT ("index_block_size", index_block, 65536),
  COUNT ("index_topk_blocks", index_top_blocks, 1 << 20),
  COUNT ("index_topk_freq", index_every, 65536),
  COUNT ("index_skip_topk_offset", index_first, 65536),
  UINT ("o_groups", out_groups, 65536),
  UINT ("o_lora_rank", out_lora, 1 << 20),
  UINT ("compress_rate_csa", csa_ratio, 65536),
  UINT ("compress_rate_hca", hca_ratio, 1 << 20),
  UINT ("hc_mult", streams, 64),
  COUNT ("hidden_size_per_layer_input", layer_input, 1 << 16),
  UINT ("vocab_size_per_layer_input", layer_vocab, 1 << 24),
  COUNT ("laurel_rank", laurel_rank, 1 << 20),
  COUNT ("gated_norm_rank", norm_gate_rank, 1 << 20),
  COUNT ("num_kv_shared_layers", kv_shared, 65536),
  BOOL ("use_double_wide_mlp", doubles_ffn),
  COUNT ("num_nextn_predict_layers", n_predictions, 65536),
  UINT ("predict_layers", predict_layers, MAX_PREDICTIONS),
  { "predict_pattern", LS_FIELD_STRING, offsetof (HfConfig, predict_pattern) },
  BOOL ("predict_shared", predict_shared),
  UINT ("mamba_num_heads", mixer_heads, 1 << 20),
  UINT ("mamba_head_dim", mixer_head_dim, 1 << 20),
  UINT ("n_groups", mixer_groups, 65536),
  UINT ("ssm_state_size", mixer_state, 65536),
  UINT ("conv_kernel", mixer_conv, 4096),
  UINT ("chunk_size", mixer_chunk, 65536),
  UINT ("lru_width", mixer_width, 1 << 20),
  UINT ("mamba_expand", mixer_expand, 4096),
  UINT ("full_attention_interval", attention_period, 65536),
  COUNT ("attn_layer_offset", attention_offset, 65536),
  UINT ("expert_layer_period", expert_period, 65536),
  COUNT ("expert_layer_offset", expert_offset, 65536),
  COUNT ("moe_latent_size", expert_latent, 1 << 20),
  BOOL ("use_full_rank_gate", mixer_full_gate),
  BOOL ("use_gate", mixer_gate),
  UINT ("decay_low_rank_dim", decay_rank, 65536),
  UINT ("a_low_rank_dim", rate_rank, 65536),
  UINT ("v_low_rank_dim", value_rank, 65536),
  UINT ("gate_low_rank_dim", gate_rank, 65536),
  BOOL ("mamba_proj_bias", mixer_bias),
  BOOL ("mamba_conv_bias", mixer_conv_bias),
  BOOL ("attn_output_gate", attention_gate),
  UINT ("conv_window", kv_conv, 4096),
  UINT ("cca_time0", qk_conv, 4096),
  UINT ("cca_time1", qk_mix, 4096),
  UINT ("router_hidden_size", router_hidden, 1 << 20),
  UINT ("total_ut_steps", passes, 64),
  COUNT ("num_noise_heads", noise_heads, 65536),
  COUNT ("emb_neighbor_num", ngram_tokens, 64),
  COUNT ("emb_split_num", ngram_splits, 64),
  { "ngram_vocab_size_ratio", LS_FIELD_DOUBLE, offsetof (HfConfig, ngram_ratio), .max = 65536 },
  COUNT ("num_decoder_layers", decoder_layers, 65536),
  UINT ("decoder_seq", decoder_seq, 1 << 27),
  UINT ("num_mem_blocks", mem_blocks, 65536),
  UINT ("adapter_rank", adapter_rank, 1 << 20),
  BOOL ("use_shared_attention_adapter", adapts_attention),
  BOOL ("use_mem_rope", mem_rope),
  BOOL ("tie_word_embeddings", tied),
  BOOL ("attention_bias", attention_bias),
  BOOL ("mlp_bias", mlp_bias),
  BOOL ("bias", bias),
  BOOL ("use_qk_norm", qk_norm),
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

/* Other names that all types or one give to keys; null: of no matter. Objects have tables of their own. */
static void
append_names (GArray *fields, const cJSON *names)
{
  const cJSON *name;
  cJSON_ArrayForEach (name, names)
  {
    const LsField *f = cJSON_IsString (name) ? ls_field_find (common, name->valuestring) : NULL;
    if (f) {
      LsField renamed = *f;
      renamed.key = name->string;
      g_array_append_val (fields, renamed);
    } else {
      append_ignored (fields, name->string);
    }
  }
}

/* The last type first, whose word counts. */
static const cJSON *
of_chain (const HfFamily *f, guint i, const char *key)
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
    const cJSON *names = of_chain (f, i, "keys");
    append_names (fields, section ? cJSON_GetObjectItemCaseSensitive (names, section) : names);
    const cJSON *refused = section ? NULL : of_chain (f, i, "refused"); /* where the file has them off */
    cJSON_ArrayForEach (key, refused) append_ignored (fields, key->string);
  }
  if (!section) {
    g_array_append_vals (fields, common, G_N_ELEMENTS (common) - 1);
    append_names (fields, hf_get (f->doc, "keys"));
    cJSON_ArrayForEach (key, hf_get (f->doc, "lists")) append_ignored (fields, key->valuestring);
    cJSON_ArrayForEach (key, hf_get (f->doc, "ignored")) append_ignored (fields, key->valuestring);
    cJSON_ArrayForEach (key, hf_get (f->doc, "told")) append_ignored (fields, key->string);
  }
  return (LsField *) (gpointer) g_array_free (fields, FALSE);
}

/* What the type calls by other names inside of objects of the file. */
static bool
read_sections (const HfFamily *f, const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  for (guint i = 0; i < f->chain->len; i++) {
    const cJSON *section;
    cJSON_ArrayForEach (section, of_chain (f, i, "keys"))
    {
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
  HfWidths *widths = hf_widths_of (c, field->offset);
  const cJSON *first = list->child;
  for (; may_be_dense && first->next && cJSON_IsNumber (first) && first->valuedouble == 0; n_dense++)
    first = first->next;
  for (const cJSON *value = first; value; value = value->next)
    if (widths && widths->n == 0 && (!cJSON_IsNumber (value) || value->valuedouble != first->valuedouble))
      return hf_read_widths (doc, list, field->max, widths, diags);
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
      && hf_read_flat_blocks (doc, fields, c, notes, diags) && read_sections (f, doc, c, diags);
  note_left_out (told, notes);
  cJSON_Delete (told);
  return ok;
}

/* --- what a file is --------------------------------------------------------------------- */

const cJSON *
hf_get (const LsJsonDoc *doc, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
}

bool
ls_is_hf_config (const LsJsonDoc *doc)
{
  return !hf_get (doc, "schema") && (hf_get (doc, "model_type") || hf_get (doc, "architectures"));
}

bool
hf_refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *reason)
{
  ls_json_doc_diag_code (doc, LS_ERROR_UNSUPPORTED, node, LS_JSON_AT_VALUE, diags, NULL, "%s", reason);
  return false;
}

/* Experts where the family has none that we know. */
bool
hf_is_dense (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags)
{
  static const char *const counts[]
      = { "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts" };
  if (f->experts != HF_DENSE)
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS (counts); i++) {
    const cJSON *n = hf_get (doc, counts[i]), *most = n;
    if (cJSON_IsArray (n))
      cJSON_ArrayForEach (most, n) if (cJSON_IsNumber (most) && most->valuedouble > 1) break;
    if (cJSON_IsNumber (most) && most->valuedouble > 1)
      return hf_refuse (doc, n, diags, "experts in a model_type that has none");
  }
  return true;
}

/* By the name of its class, or since the type says so. */
static bool
has_head (const HfFamily *f, const cJSON *name)
{
  const char *text = cJSON_GetStringValue (name);
  const cJSON *one;
  for (guint i = 0; text && f && i < f->chain->len; i++)
    cJSON_ArrayForEach (one, of_chain (f, i, "classes"))
    {
      if (strcmp (one->valuestring, text) == 0)
        return true;
    }
  static const char *const endings[] = { "CausalLM", "LMHeadModel", "ConditionalGeneration" };
  bool has = false;
  for (size_t i = 0; text && i < G_N_ELEMENTS (endings); i++)
    has = has || strstr (text, endings[i]);
  return has;
}

bool
hf_is_decoder (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags)
{
  const cJSON *both = hf_get (doc, "is_encoder_decoder"), *name;
  bool has_encoder = f && f->encoder;
  if (cJSON_IsTrue (both) && !has_encoder)
    return hf_refuse (doc, both, diags, "a model with an encoder; only decoders, and T5, can be simulated");
  cJSON_ArrayForEach (name, hf_get (doc, "architectures"))
  {
    if (!has_head (f, name))
      return hf_refuse (
          doc, name, diags,
          "not known to be a decoder with a language-model head, which is all that can be simulated; a "
          "decoder with another head is simulated with that one where architectures=null stands after its "
          "name");
  }
  return true;
}

/* --- what it must say ------------------------------------------------------------------- */

bool
hf_has_experts (const HfFamily *f, const HfConfig *c)
{
  bool has_none = f->experts == HF_INTERLEAVED && c->interleave == 0; /* of so many layers */
  bool is_one = f->one_is_dense && c->experts == 1;
  return f->experts != HF_DENSE && !has_none && !is_one && (c->experts > 0 || !f->experts_are_optional);
}

bool
hf_is_latent (const HfFamily *f, const HfConfig *c)
{
  return f->latent && c->use_mla;
}

bool
hf_is_complete (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  bool has_experts = hf_has_experts (f, c), is_latent = hf_is_latent (f, c),
       has_own_width = has_experts && (f->experts == HF_STEPPED || f->experts == HF_AFTER),
       has_mlp = !has_experts || c->expert_ffn == 0 || c->dense_layers > 0,
       has_no_rule = c->expansion == 0 && c->ffn_share == 0; /* else the others have four times hidden */
  const struct {
    uint32_t value;
    const char *key;
    bool is_needed;
  } needs[] = {
    { c->layers, "num_hidden_layers", true },
    { c->hidden, "hidden_size", true },
    { c->heads, "num_attention_heads", true },
    { c->vocab, "vocab_size", true },
    { c->seq, "max_position_embeddings", true },
    { c->ffn, "intermediate_size", ls_mlp_is_gated (f->model.mlp) && has_mlp && has_no_rule },
    { c->experts, f->experts == HF_AFTER ? "n_routed_experts" : "num_experts", has_experts },
    { c->top_k, "num_experts_per_tok", has_experts },
    { c->expert_ffn, "moe_intermediate_size", has_own_width },
    { c->out_groups, "o_groups", f->compressed },
    { c->out_lora, "o_lora_rank", f->compressed },
    { c->q_lora, "q_lora_rank", f->compressed },
    { c->sliding_window, "sliding_window", f->compressed },
    { c->kv_lora, "kv_lora_rank", is_latent },
    { c->rope_dim, "qk_rope_head_dim", is_latent },
    { c->nope_dim, "qk_nope_head_dim", is_latent },
    { c->v_dim, "v_head_dim", is_latent },
  };
  bool is_complete = true;
  for (guint i = 0; i < G_N_ELEMENTS (needs); i++)
    if (needs[i].is_needed && needs[i].value == 0)
      is_complete = ls_json_doc_diag (doc, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL,
                                      "missing key \"%s\"", needs[i].key);
  return is_complete;
}
