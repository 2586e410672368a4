/* Pins config.json as newer programs write it: keys that transformers 5 saves in place of those that a
 * publisher wrote say the same model, and what it has no words for is refused; parameters are those that were
 * counted by hand from the modeling files. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"

static bool
read_text (const char *text, LsModel *model, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  return doc && ls_model_read (doc, model, NULL, diags);
}

/* "full_attention" in each so-manieth of n layers, with commas. */
static char *
layer_types (guint n, guint every, const char *others)
{
  GString *types = g_string_new (NULL);
  for (guint i = 1; i <= n; i++)
    g_string_append_printf (types, "%s\"%s\"", i > 1 ? "," : "", i % every == 0 ? "full_attention" : others);
  return g_string_free (types, FALSE);
}

/* In 10^9, all and those that meet a token. */
static void
check_params (const char *text, double total, double active)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsModel m;
  if (!read_text (text, &m, diags)) {
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (false, __FILE__, __LINE__, "%.200s: %s", text, wrong);
    return;
  }
  double all = (double) ls_model_params (&m, m.vocab) * 1e-9,
         met = (double) ls_model_active_params (&m, m.vocab) * 1e-9;
  ls_check_impl (fabs (all / total - 1) < 1e-3 && fabs (met / active - 1) < 1e-3, __FILE__, __LINE__,
                 "%.80s: %.4f and %.4f, counted %.4f and %.4f", text, all, met, total, active);
  ls_model_clear (&m);
}

static void
check_refused (const char *text, const char *why)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsModel m;
  LS_CHECK (!read_text (text, &m, diags));
  g_autofree char *said = ls_diag_list_format (diags);
  ls_check_impl (strstr (said, why) != NULL, __FILE__, __LINE__, "%s", said);
}

#define GEMMA(apart)                                                                                         \
  "{\"model_type\":\"gemma4_text\",\"vocab_size\":262144,\"hidden_size\":5376,\"intermediate_size\":21504,"  \
  "\"num_hidden_layers\":60,\"num_attention_heads\":32,\"num_key_value_heads\":16,\"head_dim\":256,"         \
  "\"sliding_window\":1024,\"attention_k_eq_v\":true,\"hidden_size_per_layer_input\":0," apart               \
  ",\"layer_types\":[%s]}"

/* Gemma 4 31B: layers that see all have heads of 512, four of keys; its own file says so by global_head_dim. */
static void
heads_of_full_layers_may_be_said_by_layer (void)
{
  g_autofree char *types = layer_types (60, 6, "sliding_attention");
  g_autofree char *own
      = g_strdup_printf (GEMMA ("\"global_head_dim\":512,\"num_global_key_value_heads\":4"), types);
  GString *by_layer = g_string_new (NULL);
  for (guint i = 5; i < 60; i += 6)
    g_string_append_printf (by_layer, "%s\"%02u\":{\"head_dim\":512,\"num_key_value_heads\":4}",
                            i > 5 ? "," : "", i);
  g_autofree char *saved
      = g_strdup_printf (GEMMA ("\"per_layer_config\":{%s}"), by_layer->str, types),
      *some = g_strdup_printf (GEMMA ("\"per_layer_config\":{\"5\":{\"head_dim\":512}}"), types),
      *other = g_strdup_printf (GEMMA ("\"per_layer_config\":{\"5\":{\"skip\":[\"mlp\"]}}"), types),
      *twice = g_strdup_printf (
          GEMMA ("\"per_layer_config\":{\"5\":{\"head_dim\":512},\"05\":{\"head_dim\":512}}"), types),
      *unnumbered = g_strdup_printf (GEMMA ("\"per_layer_config\":{\"a\":{}}"), types),
      *windowed = g_strdup_printf (GEMMA ("\"per_layer_config\":{\"4\":{\"head_dim\":512}}"), types);
  check_params (own, 30.697, 30.697);
  check_params (saved, 30.697, 30.697);
  check_refused (some, "expected all layers with full_attention");
  check_refused (other, "a layer unlike others");
  check_refused (windowed, "a layer unlike others");
  check_refused (twice, "a layer unlike others");
  check_refused (unnumbered, "a layer unlike others");
  g_string_free (by_layer, TRUE);
}

/* K-EXAONE-236B in its first revision; with neither key its class has one dense layer. */
static void
the_first_layer_of_k_exaone_is_dense (void)
{
  static const char *const keys[]
      = { "\"first_last_k_dense_replace\":1", "\"is_moe_layer\":[false,%s]", "\"n_group\":1" };
  g_autofree char *types = layer_types (48, 4, "sliding_attention");
  GString *sparse = g_string_new ("true");
  for (guint i = 2; i < 48; i++)
    g_string_append (sparse, ",true");
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    g_auto (GStrv) halves = g_strsplit (keys[i], "%s", 2);
    g_autofree char *key = g_strjoinv (sparse->str, halves),
                    *text
        = g_strdup_printf (
            "{\"model_type\":\"exaone_moe\",\"hidden_size\":6144,\"intermediate_size\":18432,"
            "\"moe_intermediate_size\":2048,\"num_attention_heads\":64,\"num_key_value_heads\":8,"
            "\"head_dim\":128,\"num_experts\":128,\"num_experts_per_tok\":8,\"num_shared_experts\":1,"
            "\"num_hidden_layers\":48,\"max_position_embeddings\":262144,\"vocab_size\":153600,"
            "\"sliding_window\":128,\"tie_word_embeddings\":false,%s,\"layer_types\":[%s]}",
            key, types);
    check_params (text, 236.57, 23.67);
  }
  g_string_free (sparse, TRUE);
}

static void
other_names_and_defaults (void)
{
  check_params (/* MobileLLM-R1-950M: of llama4_text's type, without experts */
                "{\"model_type\":\"llama4_text\",\"hidden_size\":1536,\"intermediate_size\":6144,"
                "\"intermediate_size_mlp\":6144,\"num_hidden_layers\":22,\"num_attention_heads\":24,"
                "\"num_key_value_heads\":6,\"head_dim\":64,\"vocab_size\":128256,\"interleave_moe_layer_step\":0,"
                "\"tie_word_embeddings\":true}",
                0.949686, 0.949686);
  check_params (/* LLaDA-MoE-7B-A1B, published 7.36 */
                "{\"model_type\":\"llada\",\"architectures\":[\"LLaDAMoEModelLM\"],\"hidden_size\":2048,"
                "\"expert_intermediate_size\":1024,\"intermediate_size\":8192,\"num_attention_heads\":16,"
                "\"num_key_value_heads\":16,\"num_experts\":64,\"num_experts_per_tok\":8,\"num_hidden_layers\":16,"
                "\"vocab_size\":157184,\"max_position_embeddings\":8192,\"tie_word_embeddings\":false}",
                7.357, 1.720);
  check_params (/* EXAONE-3.5-2.4B, whose class ties both tables */
                "{\"model_type\":\"exaone\",\"hidden_size\":2560,\"intermediate_size\":7168,\"num_layers\":30,"
                "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":80,\"vocab_size\":102400,"
                "\"max_position_embeddings\":32768}",
                2.405, 2.405);
  check_refused ("{\"model_type\":\"glm_moe_dsa\",\"index_topk_pattern\":\"FFSS\"}", "pattern of letters");
}

/* Inside of text_config and outside: 4 heeds the former, 5 the latter, as a note tells; else what is said counts,
 * and unless it is that of the class. */
static void
a_table_may_be_said_to_be_the_heads_twice (void)
{
  static const struct {
    const char *inside, *outside;
    bool is_tied;
    const char *note; /* part of it; NULL: none */
  } cases[] = {
    { "true", "\"tie_word_embeddings\":false,\"transformers_version\":\"4.57.1\"", true,
      "true in the part that reads text and false outside of it: Transformers before 5 heeds the former" },
    { "true", "\"tie_word_embeddings\":false,\"transformers_version\":\"5.0.0.dev0\"", false,
      "Transformers 5, which saved the file, heeds the latter; taken as false" },
    { "false", "\"tie_word_embeddings\":true,\"transformers_version\":\"5.2.0\"", true, "taken as true" },
    { "false", "\"tie_word_embeddings\":true", false, "taken as false" },
    { "true", "\"tie_word_embeddings\":true", true, NULL },
    { "true", "\"transformers_version\":\"5.0.0\"", true, NULL },
    { "null", "\"tie_word_embeddings\":true", true, NULL },
    { "null", "\"image_token_id\":1", false, NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    g_autofree char *text = g_strdup_printf (
        "{\"model_type\":\"qwen3_vl\",%s,\"text_config\":{\"model_type\":\"qwen3_vl_text\",\"hidden_size\":512,"
        "\"intermediate_size\":512,\"num_hidden_layers\":2,\"num_attention_heads\":8,"
        "\"num_key_value_heads\":8,\"vocab_size\":1000,\"tie_word_embeddings\":%s}}",
        cases[i].outside, cases[i].inside);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LS_CHECK (doc && ls_model_read (doc, &m, notes, diags));
    LS_CHECK_INT (m.tied_embeddings, ==, cases[i].is_tied);
    bool is_told = false;
    for (guint k = 0; k < notes->len; k++)
      is_told = is_told || strstr (notes->pdata[k], cases[i].note ? cases[i].note : "tie_word_embeddings");
    LS_CHECK_INT (is_told, ==, cases[i].note != NULL);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (a_table_may_be_said_to_be_the_heads_twice),
               LS_TEST (heads_of_full_layers_may_be_said_by_layer),
               LS_TEST (the_first_layer_of_k_exaone_is_dense), LS_TEST (other_names_and_defaults))
