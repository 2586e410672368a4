/* Files of Hugging Face that hold a model as a part: what a multimodal model reads text with, an encoder and
 * its decoder. */
#include "data/jobs/hf_family.h"

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
    g_ptr_array_add (
        notes,
        g_strdup_printf ("tie_word_embeddings is %s in the part that reads text and %s outside of "
                         "it: Transformers %s; taken as %s",
                         cJSON_IsTrue (inside) ? "true" : "false", cJSON_IsTrue (outside) ? "true" : "false",
                         is_outside ? "5, which saved the file, heeds the latter"
                                    : "before 5 heeds the former",
                         cJSON_IsTrue (is_outside ? outside : inside) ? "true" : "false"));
  return cJSON_IsTrue (is_outside ? outside : inside);
}

/* A model of ours has one table for both sides: with a head apart they are as many weights. */
bool
hf_separate_tables (const LsJsonDoc *doc, LsModel *m, GPtrArray *notes, LsDiagList *diags)
{
  bool is_tied = m->tied_embeddings;
  m->tied_embeddings = false;
  g_ptr_array_add (
      notes, g_strdup ("the decoder's table of words, which is the head's, is counted as the head alone"));
  return is_tied
      || hf_refuse (doc, ls_json_doc_root (doc), diags, "three tables of words cannot be simulated");
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
