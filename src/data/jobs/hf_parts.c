/* Files of Hugging Face that hold a model as a part: what a multimodal model reads text with, an encoder and
 * its decoder; that hold adapters and no model. */
#include <string.h>

#include "data/jobs/hf_family.h"
#include "data/jobs/job_files.h"

/* Whether a file has a part for each side. outer: NULL allowed. */
bool
hf_has_sides (const LsJsonDoc *outer)
{
  return outer && cJSON_IsTrue (hf_get (outer, "is_encoder_decoder"))
      && cJSON_IsObject (hf_get (outer, "decoder"));
}

/* Of a file with a part for each side, the encoder's, or what of it reads text. */
const cJSON *
hf_encoder_part (const LsJsonDoc *outer)
{
  const cJSON *part = hf_get (outer, "encoder"),
              *text = cJSON_GetObjectItemCaseSensitive (part, "text_config");
  return cJSON_IsObject (text) ? text : part;
}

/* Its layers, which are as wide as the decoder's. */
bool
hf_read_encoder (const LsJsonDoc *outer, const LsJsonDoc *decoder, HfConfig *c, LsDiagList *diags)
{
  static const char *const widths[]
      = { "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim" };
  const cJSON *part = hf_encoder_part (outer),
              *n = cJSON_GetObjectItemCaseSensitive (part, "num_hidden_layers");
  for (size_t i = 0; i < G_N_ELEMENTS (widths); i++) {
    const cJSON *theirs = cJSON_GetObjectItemCaseSensitive (part, widths[i]);
    if (!cJSON_Compare (theirs, hf_get (decoder, widths[i]), true) && (theirs || hf_get (decoder, widths[i])))
      return hf_refuse (outer, theirs ? theirs : part, diags,
                        "an encoder of other widths than its decoder cannot be simulated");
  }
  if (!cJSON_IsNumber (n) || n->valuedouble < 1 || n->valuedouble > 65535)
    return hf_refuse (outer, part ? part : ls_json_doc_root (outer), diags,
                      "expected num_hidden_layers of the encoder");
  c->encoder_layers = (uint32_t) n->valuedouble;
  return true;
}

/* Transformers 4, tie_weights(), asks get_text_config(); 5, get_expanded_tied_weights_keys(), the config of
 * the class with the head, which is the whole's (both in modeling_utils.py). */
bool
hf_is_tied (const LsJsonDoc *part, const LsJsonDoc *outer, bool usual, GPtrArray *notes)
{
  const cJSON *inside = hf_get (part, "tie_word_embeddings"),
              *outside = hf_get (outer, "tie_word_embeddings");
  const char *version = cJSON_GetStringValue (hf_get (outer, "transformers_version"));
  bool is_outside = version && g_ascii_strtoull (version, NULL, 10) >= 5;
  if (!cJSON_IsBool (inside) || !cJSON_IsBool (outside))
    return cJSON_IsBool (outside) ? cJSON_IsTrue (outside)
        : cJSON_IsBool (inside)   ? cJSON_IsTrue (inside)
                                  : usual;
  if (cJSON_IsTrue (inside) != cJSON_IsTrue (outside))
    ls_note (notes,
             "tie_word_embeddings is %s in the part that reads text and %s outside of "
             "it: Transformers %s; taken as %s",
             cJSON_IsTrue (inside) ? "true" : "false", cJSON_IsTrue (outside) ? "true" : "false",
             is_outside ? "5, which saved the file, heeds the latter" : "before 5 heeds the former",
             cJSON_IsTrue (is_outside ? outside : inside) ? "true" : "false");
  return cJSON_IsTrue (is_outside ? outside : inside);
}

/* A model of ours has one table for both sides: with a head apart they are as many weights. */
bool
hf_separate_tables (const LsJsonDoc *doc, LsModel *m, GPtrArray *notes, LsDiagList *diags)
{
  bool is_tied = m->tied_embeddings;
  m->tied_embeddings = false;
  g_ptr_array_add (
      notes, g_strdup ("the decoder's table of tokens, which is the head's, is counted as the head alone"));
  return is_tied
      || hf_refuse (doc, ls_json_doc_root (doc), diags, "three tables of tokens cannot be simulated");
}

/* What a multimodal model calls the part that reads text. */
const cJSON *
hf_text_part (const LsJsonDoc *doc)
{
  static const char *const names[] = { "text_config", "language_config", "llm_config", "decoder_config" };
  const cJSON *outer = hf_get (doc, "thinker_config");
  const cJSON *within = cJSON_IsObject (outer) ? outer : ls_json_doc_root (doc);
  if (hf_has_sides (doc))
    return hf_get (doc, "decoder");
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++) {
    const cJSON *part = cJSON_GetObjectItemCaseSensitive (within, names[i]);
    if (cJSON_IsObject (part))
      return part;
  }
  return NULL;
}

/* target_modules in words of the knob lora_modules: "q,v"; NULL: one is none of these, or a pattern. */
static char *
modules_of_adapter (const LsJsonDoc *doc)
{
  static const char *const names[]
      = { "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", NULL };
  g_autoptr (GString) words = g_string_new (NULL);
  const cJSON *module, *list = hf_get (doc, "target_modules");
  if (cJSON_IsString (list) && strcmp (list->valuestring, "all-linear") == 0)
    return g_strdup ("all-linear");
  cJSON_ArrayForEach (module, list)
  {
    if (!cJSON_IsString (module) || !g_strv_contains (names, module->valuestring))
      return NULL;
    g_string_append_printf (words, "%s%.*s", words->len > 0 ? "," : "",
                            (int) (strlen (module->valuestring) - strlen ("_proj")), module->valuestring);
  }
  return cJSON_IsArray (list) && words->len > 0 ? g_string_free (g_steal_pointer (&words), FALSE) : NULL;
}

/* What names its model elsewhere: Ultravox has the name of what reads text, and a params.json of Meta's or
 * Mistral's own code is none of Hugging Face's. */
static bool
refuse_elsewhere (const LsJsonDoc *doc, LsDiagList *diags)
{
  const char *text = cJSON_GetStringValue (hf_get (doc, "text_model_id"));
  const cJSON *config = hf_get (doc, "text_config");
  bool is_named = text && !(config && config->child);
  if (!is_named && !(hf_get (doc, "dim") && hf_get (doc, "n_layers") && !hf_get (doc, "model_type")))
    return false;
  ls_json_doc_diag_code (doc, LS_ERROR_UNSUPPORTED, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL,
                         is_named
                             ? "what reads text is another model: expected %s as --model"
                             : "a params.json%s of the model's own code: expected the config.json of its "
                               "Hugging Face repository, or the model's name",
                         is_named ? text : "");
  return true;
}

bool
ls_refuse_adapter (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *base = hf_get (doc, "base_model_name_or_path"), *rank = hf_get (doc, "r");
  if (hf_get (doc, "schema"))
    return false;
  if (!hf_get (doc, "peft_type"))
    return refuse_elsewhere (doc, diags);
  g_autofree char *modules = modules_of_adapter (doc);
  g_autofree char *number = cJSON_IsNumber (rank) ? g_strdup_printf ("%.0f", rank->valuedouble) : NULL;
  ls_json_doc_diag_code (
      doc, LS_ERROR_UNSUPPORTED, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL,
      "an adapter of PEFT, no model: expected its base%s%s as --model, with --lora-rank %s "
      "--lora-modules %s",
      cJSON_IsString (base) ? " " : "", cJSON_IsString (base) ? base->valuestring : "", number ? number : "N",
      modules ? modules : "A,B (lockstep run --help memory)");
  return true;
}
