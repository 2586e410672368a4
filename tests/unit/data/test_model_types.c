/* Pins types of models that a config.json of Hugging Face may be of: that each type's file of facts is whole,
 * that what a file leaves out is as its class has it, and parameters against counted ones. What
 * files mean is pinned by the cases of tests/models. */
#include "ls_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/hf_family.h"
#include "config_params.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"

/* Each type reads a file that has but the common keys: its own defaults and names are right. */
static void
every_type_is_whole (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) types = ls_data_load (LS_DATA_MODEL_TYPES, "huggingface", diags);
  const cJSON *type, *list = types ? hf_get (types, "types") : NULL;
  LS_CHECK (list != NULL);
  cJSON_ArrayForEach (type, list) {
    const char *name = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (type, "type"));
    g_autofree char *text = g_strdup_printf (
        "{\"model_type\":\"%s\",\"hidden_size\":512,\"intermediate_size\":1024,\"num_hidden_layers\":12,"
        "\"num_attention_heads\":8,\"num_key_value_heads\":%d,\"head_dim\":64,\"vocab_size\":1000,"
        "\"max_position_embeddings\":8192,\"sliding_window\":1024,\"num_experts\":4,\"num_experts_per_tok\":2,"
        "\"moe_intermediate_size\":256,\"q_lora_rank\":128,\"kv_lora_rank\":64,\"qk_rope_head_dim\":32,"
        "\"qk_nope_head_dim\":32,\"v_head_dim\":32,"
        "\"n_group\":1,\"layers_block_type\":[\"mamba\",\"attention\"],\"mamba_num_heads\":8,\"mamba_head_dim\":64}",
        name, cJSON_GetObjectItemCaseSensitive (type, "compressed") ? 1 : 8);
    const cJSON *experts = cJSON_GetObjectItemCaseSensitive (type, "experts");
    LsModel m = { 0 };
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), name, diags);
    g_autoptr (HfFamily) f = hf_find_family (doc, NULL, diags);
    bool is_several
        = cJSON_GetObjectItemCaseSensitive (type, "variants") != NULL; /* tests/models/types.txt */
    bool ok = is_several || (f && (f->experts == HF_DENSE || ls_model_read (doc, &m, NULL, diags)));
    if (ok && f && f->experts != HF_DENSE)
      ls_model_clear (&m);
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (ok, __FILE__, __LINE__, "%s: %s", name, wrong);
    LS_CHECK (!experts || (f && f->experts != HF_DENSE));
  }
}

/* What is said of such a file: "" where it is right. types: its list. */
static char *
said_of_types (const char *types)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *text = g_strdup_printf (
      "{\"schema\":\"lockstep.model-types/1\",\"name\":\"t\",\"source\":\"s\",\"types\":[%s]}", types);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  guint n = doc ? ls_model_types_check (doc, diags) : 0;
  LS_CHECK ((n > 0) == (ls_diag_list_n (diags) == 0));
  return ls_diag_list_format (diags);
}

/* Behind it come the variants of the second type. */
#define OF_SEVERAL "{\"type\":\"a\",\"source\":\"s\",\"mlp\":\"swiglu\"},{\"type\":\"b\",\"source\":\"s\","

/* A file of types is held by the table that reads it: keys, values, and what types are like; a variant is like a
 * type that there is, of one kind, and has keys. */
static void
a_wrong_file_of_types_is_refused (void)
{
  static const struct {
    const char *types, *said;
  } cases[] = {
    { "{\"type\":\"a\",\"source\":\"s\",\"mlp\":\"swiglu\"},"
      "{\"type\":\"b\",\"source\":\"s\",\"like\":\"a\",\"experts\":\"every\",\"slides\":true}",
      "" },
    { "{\"type\":\"a\",\"source\":\"s\",\"slide\":true}", "did you mean \"slides\"?" },
    { "{\"type\":\"a\",\"source\":\"s\",\"mlp\":\"swigluu\"}", "did you mean \"swiglu\"?" },
    { "{\"type\":\"a\",\"source\":\"s\",\"experts\":8}", "/types/0/experts: expected one of" },
    { "{\"type\":\"a\"}", "missing key \"source\"" },
    { "{\"type\":\"a\",\"source\":\"s\",\"like\":\"c\"}", "/types/0/like: expected a type of this file" },
    { "{\"type\":\"a\",\"source\":\"s\",\"like\":\"a\"}", "expected a type of this file" },
    { "{\"type\":\"a\",\"source\":\"s\"},{\"type\":\"a\",\"source\":\"s\"}",
      "expected a type that comes once" },
    { "{\"type\":\"a\",\"source\":\"s\",\"class_defaults\":{\"hidden_size\":1}},"
      "{\"type\":\"b\",\"source\":\"s\",\"class\":\"a\"}",
      "" },
    { "{\"type\":\"a\",\"source\":\"s\"},{\"type\":\"b\",\"source\":\"s\",\"class\":\"a\"}",
      "/types/1/class: expected a type of this file with class_defaults" },
    { OF_SEVERAL "\"variants\":[{\"like\":\"a\",\"where\":{\"x\":[1,null]}}]}", "" },
    { OF_SEVERAL "\"variants\":[{\"like\":\"a\",\"where\":{\"x\":1}},{\"like\":\"c\",\"where\":{}}]}",
      "/types/1/variants/1/like: expected a type of this file, of one kind" },
    { OF_SEVERAL "\"variants\":[{\"like\":\"b\",\"where\":{}}]}", "of one kind" },
    { OF_SEVERAL "\"variants\":[{\"like\":\"a\"}]}", "missing key \"where\"" },
    { OF_SEVERAL "\"variants\":[{\"where\":{}}]}", "missing key \"like\"" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *said = said_of_types (cases[i].types);
    ls_check_impl (strstr (said, cases[i].said) && (*cases[i].said || !*said), __FILE__, __LINE__, "%s: %s",
                   cases[i].types, said);
  }
}

/* What classes have no value of, so that all can be read. */
static void
add_needed (cJSON *config, const char *type)
{
  static const struct {
    const char *type, *key, *value;
  } needed[] = {
    { "deepseek_v2", "num_experts_per_tok", "6" },
    { "glm4_moe", "head_dim", "128" },
    { "glm4v_moe_text", "head_dim", "128" },
    { "qwen3_omni_moe_text", "head_dim", "128" },
    { "nemotron_h", "hybrid_override_pattern", "\"M-M*\"" },
    { "granitemoehybrid", "attn_layer_period", "4" },
    { "bamba", "attn_layer_period", "4" },
    { "lfm2", "attn_layer_period", "4" },
    { "lfm2_moe", "attn_layer_period", "4" },
    { "dots1", "n_routed_experts", "8" },
    { "dots1", "num_experts_per_tok", "2" },
    { "hunyuan_v1_moe", "num_experts", "8" },
    { "hunyuan_v1_moe", "moe_intermediate_size", "512" },
    { "linear_attn", "feature_map", "\"elu\"" },
    { "samba", "attn", "{\"layers\":[1],\"num_heads\":18}" },
  };
  cJSON_AddStringToObject (config, "model_type", type);
  for (guint i = 0; i < G_N_ELEMENTS (needed); i++)
    if (strcmp (needed[i].type, type) == 0)
      cJSON_AddRawToObject (config, needed[i].key, needed[i].value);
}

/* Keys of each class that has some, said or left out one by one. */
static void
what_is_left_out_counts_as_if_said (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) types = ls_data_load (LS_DATA_MODEL_TYPES, "huggingface", diags);
  const cJSON *type, *key;
  guint n = 0;
  const cJSON *list = types ? hf_get (types, "types") : NULL;
  cJSON_ArrayForEach (type, list) {
    const cJSON *values = cJSON_GetObjectItemCaseSensitive (type, "class_defaults");
    if (!values)
      continue;
    const char *name = cJSON_GetObjectItemCaseSensitive (type, "type")->valuestring;
    cJSON *all = cJSON_Duplicate (values, true);
    add_needed (all, name);
    cJSON_ArrayForEach (key, values) {
      cJSON *some = cJSON_Duplicate (all, true);
      cJSON_DeleteItemFromObjectCaseSensitive (some, key->string);
      uint64_t active[2], total[2];
      char *said[2] = { NULL, NULL };
      for (guint i = 0; i < 2; i++) {
        char *text = cJSON_PrintUnformatted (i == 0 ? all : some);
        text[strlen (text) - 1] = '\0'; /* without its braces */
        total[i] = params_of (text + 1, &active[i], &said[i]);
        cJSON_free (text);
      }
      ls_check_impl (total[0] > 0 && total[0] == total[1] && active[0] == active[1], __FILE__, __LINE__,
                     "%s without %s: %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT " %s", name, key->string,
                     total[0], total[1], said[1]);
      g_free (said[0]);
      g_free (said[1]);
      cJSON_Delete (some);
    }
    cJSON_Delete (all);
    n++;
  }
  LS_CHECK (n > 70);
}

/* By 0.1 %: what a type leaves out, such as biases of experts, is less. */
static void
parameters_are_as_counted (void)
{
  const char *shared = ls_test_shared_data ();
  g_autofree char *table
      = shared ? g_build_filename (shared, "..", "reference", "param_checks.csv", NULL) : NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv
      = table && g_file_test (table, G_FILE_TEST_EXISTS) ? ls_csv_parse (table, NULL, -1, diags) : NULL;
  guint n_read = 0;
  for (guint i = 0; csv && i < ls_csv_n_rows (csv); i++) {
    g_autofree char *path = g_build_filename (shared, "configs", ls_csv_cell (csv, i, 0), NULL);
    g_autoptr (LsDiagList) refused = ls_diag_list_new ();
    LsModel m;
    if (!ls_model_load (path, &m, NULL, refused))
      continue;
    double total = (double) ls_model_params (&m, m.vocab),
           active = (double) ls_model_active_params (&m, m.vocab);
    double asked = strtod (ls_csv_cell (csv, i, 2), NULL), met = strtod (ls_csv_cell (csv, i, 3), NULL);
    ls_check_impl (fabs (total / asked - 1) < 1e-3 && fabs (active / met - 1) < 1e-3, __FILE__, __LINE__,
                   "%s: %.0f and %.0f, counted %.0f and %.0f", path, total, active, asked, met);
    n_read++;
    ls_model_clear (&m);
  }
  LS_CHECK (!csv || n_read >= 42);
}

LS_TEST_SUITE (LS_TEST (every_type_is_whole), LS_TEST (a_wrong_file_of_types_is_refused),
               LS_TEST (what_is_left_out_counts_as_if_said), LS_TEST (parameters_are_as_counted))
