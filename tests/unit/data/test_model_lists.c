/* Pins lists of a config.json that say of each layer whether it has an indexer, and whether it has experts. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"

static char *
words_of (const char *letters, char letter, const char *word, const char *other)
{
  GString *text = g_string_new (NULL);
  for (const char *c = letters; *c; c++)
    g_string_append_printf (text, "%s\"%s\"", c > letters ? "," : "", *c == letter ? word : other);
  return g_string_free (text, FALSE);
}

/* Full and shared, dense and sparse, one letter each; what the model says of it. */
static void
lists_say_which_layers_choose_and_have_experts (void)
{
  static const struct {
    const char *indexers, *mlps;
    uint32_t every, first, n_dense; /* UINT32_MAX: refused */
  } cases[] = {
    { "ffffffff", "dsssssss", 0, 0, 1 },         { "fffsssfs", "dddsssss", 4, 3, 3 },
    { "sfsfsfsf", "ssssssss", 2, 0, 0 },         { "fsffsssf", "dddsssss", UINT32_MAX, 0, 0 },
    { "fffsssf", "ssssssss", UINT32_MAX, 0, 0 }, { "ffffffff", "dsdsssss", UINT32_MAX, 0, 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *indexers = words_of (cases[i].indexers, 'f', "full", "shared");
    g_autofree char *mlps = words_of (cases[i].mlps, 'd', "dense", "sparse");
    g_autofree char *text = g_strdup_printf (
        "{\"model_type\":\"glm_moe_dsa\",\"hidden_size\":512,\"intermediate_size\":1024,\"num_attention_heads\":8,"
        "\"num_hidden_layers\":8,\"vocab_size\":1000,\"max_position_embeddings\":8192,\"n_routed_experts\":4,"
        "\"num_experts_per_tok\":2,\"moe_intermediate_size\":256,\"q_lora_rank\":128,\"kv_lora_rank\":64,"
        "\"qk_rope_head_dim\":32,\"qk_nope_head_dim\":32,\"v_head_dim\":32,\"index_topk\":64,"
        "\"index_head_dim\":64,\"indexer_types\":[%s],\"mlp_layer_types\":[%s]}",
        indexers, mlps);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    bool ok = doc && ls_model_read (doc, &m, NULL, diags);
    LS_CHECK_INT (ok, ==, cases[i].every < UINT32_MAX);
    LS_CHECK_INT (m.index_every, ==, ok ? cases[i].every : 0);
    LS_CHECK_INT (m.index_first, ==, cases[i].first);
    LS_CHECK_INT (m.n_dense_layers, ==, cases[i].n_dense);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (lists_say_which_layers_choose_and_have_experts))
