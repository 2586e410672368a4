/* Pins lists of a config.json that say of each layer whether it has an indexer, and whether it has experts; and
 * types whose own keys count heads, experts and norms in other words, or that are refused with the reason. */
#include "ls_test.h"

#include <string.h>

#include "config_params.h"
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
    { "ffffffff", "dsssssss", 0, 0, 1 },          { "fffsssfs", "dddsssss", 4, 3, 3 },
    { "sfsfsfsf", "ssssssss", 2, 0, 0 },          { "fsffsssf", "dddsssss", UINT32_MAX, 0, 0 },
    { "fffsssf", "ssssssss", UINT32_MAX, 0, 0 },  { "ffffffff", "dsdsssss", 0, 0, 0 },
    { "sfsfsfsf", "dsdsssss", UINT32_MAX, 0, 0 },
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

#define HY                                                                                                   \
  "\"model_type\":\"hy_v3\",\"hidden_size\":4096,\"intermediate_size\":13312,\"num_experts\":192,"           \
  "\"moe_intermediate_size\":1536,\"num_experts_per_tok\":8,\"num_shared_experts\":1,"                       \
  "\"num_hidden_layers\":80,\"num_attention_heads\":64,\"num_key_value_heads\":8,"                           \
  "\"head_dim\":128,\"vocab_size\":120832"

#define CLOVAX                                                                                               \
  "\"hidden_size\":6144,\"intermediate_size\":14336,\"num_hidden_layers\":38,\"num_attention_heads\":48,"    \
  "\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":110592,\"max_position_embeddings\":4096"

#define M3_EIGHT ",1,1,1,1,1,1,1,1"
#define M3_57    M3_EIGHT M3_EIGHT M3_EIGHT M3_EIGHT M3_EIGHT M3_EIGHT M3_EIGHT ",1"

/* Windows by layer as the file of MiMo-V2-Flash has them: 9 layers of 48 have none. */
#define MIMO_FIRST "0,1,1,1,1,0,"
#define MIMO_SIX   "1,1,1,1,1,0"

/* Tied, as FalconConfig has it where a file is silent; as many weights as its files hold, head and all, are 179 522
 * 565 120 (huggingface.co/tiiuae/falcon-180B at d2ea5531). */
#define FALCON_180B                                                                                          \
  "\"hidden_size\":14848,\"num_attention_heads\":232,\"num_hidden_layers\":80,\"num_kv_heads\":8,"           \
  "\"new_decoder_architecture\":true,\"vocab_size\":65024"

/* Counts of the publishers' code: GPT-Neo-2.7B, Falcon-180B, MiMo-V2-Flash (309 B and 15 B; by hand of its modelling code, keys of 192 and
 * values of 128), PLaMo-13B (its file says 40 heads of keys and values, of which it has
 * five), Klear-46B-A2.5B, GPT (116,534,784 and a norm at the end), North Mini Code (its name says 30 B and 3 B
 * active), Mellum2-12B-A2.5B, SmallThinker-4BA0.6B, Jais-13B, OLMo-7B and OLMo-1B; of Granite 4.0 Micro, in four layers, that none has a mixer. */
static void
other_words_count_the_same (void)
{
  static const struct {
    const char *keys;
    uint64_t total, active;
  } cases[] = {
    { "\"model_type\":\"plamo\",\"hidden_size\":5120,\"intermediate_size\":16640,\"n_shared_head\":8,"
      "\"num_attention_heads\":40,\"num_hidden_layers\":40,\"num_key_value_heads\":40,"
      "\"max_position_embeddings\":4096,\"vocab_size\":50432",
      13099545600, 13099545600 },
    { "\"model_type\":\"mimo_v2_flash\",\"v_head_dim\":128,\"swa_v_head_dim\":128,\"swa_head_dim\":192,"
      "\"hybrid_layer_pattern\":[" MIMO_FIRST MIMO_SIX "," MIMO_SIX "," MIMO_SIX "," MIMO_SIX "," MIMO_SIX
      "," MIMO_SIX "," MIMO_SIX "]",
      308778766336, 15445921792 },
    { "\"model_type\":\"gpt_neo\",\"hidden_size\":2560,\"num_heads\":20,\"num_layers\":32,\"vocab_size\":50257",
      2651307520, 2651307520 },
    { "\"model_type\":\"falcon\"," FALCON_180B, 178557088768, 178557088768 },
    { "\"model_type\":\"falcon\",\"tie_word_embeddings\":false," FALCON_180B, 179522565120, 179522565120 },
    { "\"model_type\":\"Klear\",\"hidden_size\":2048,\"intermediate_size\":8064,"
      "\"moe_intermediate_size\":896,\"n_shared_experts\":1,\"num_attention_heads\":32,"
      "\"num_experts\":256,\"num_experts_per_tok\":8,\"num_hidden_layers\":32,"
      "\"num_key_value_heads\":4,\"head_dim\":64,\"vocab_size\":151936,\"mlp_only_layers\":[]",
      46214551552, 2526681088 },
    { "\"model_type\":\"openai-gpt\",\"afn\":\"gelu\",\"n_embd\":768,\"n_head\":12,\"n_layer\":12,"
      "\"n_positions\":512,\"vocab_size\":40478",
      116536320, 116536320 },
    { "\"model_type\":\"cohere2_moe\",\"hidden_size\":2048,\"head_dim\":128,\"num_hidden_layers\":49,"
      "\"intermediate_size\":768,\"prefix_dense_intermediate_size\":3072,\"num_attention_heads\":32,"
      "\"num_key_value_heads\":4,\"vocab_size\":262144,\"num_experts\":128,\"num_experts_per_tok\":8,"
      "\"num_shared_experts\":0,\"first_k_dense_replace\":1,\"sliding_window\":4096",
      30484303872, 3305213952 },
    { "\"model_type\":\"telechat\",\"hidden_size\":4096,\"ffn_hidden_size\":12288,\"n_layer\":30,"
      "\"n_head\":32,\"vocab_size\":131072,\"seq_length\":8192",
      7617105920, 7617105920 },
    { "\"model_type\":\"mellum\",\"tie_word_embeddings\":false", 12149923072, 2439060736 },
    { "\"model_type\":\"smallthinker\",\"hidden_size\":1536,\"moe_ffn_hidden_size\":768,\"head_dim\":128,"
      "\"moe_num_active_primary_experts\":4,\"moe_num_primary_experts\":32,\"num_attention_heads\":12,"
      "\"num_hidden_layers\":32,\"num_key_value_heads\":2",
      4035085824, 864192000 },
    { "\"model_type\":\"jais\",\"architectures\":[\"JAISLMHeadModel\"],\"n_embd\":5120,\"n_layer\":40,"
      "\"n_head\":40,\"n_inner\":13653,\"vocab_size\":84992,\"n_positions\":2048,"
      "\"position_embedding_type\":\"alibi\",\"activation_function\":\"swiglu\"",
      13020811920, 13020811920 },
    { "\"model_type\":\"hf_olmo\",\"d_model\":4096,\"n_heads\":32,\"n_layers\":32,\"mlp_hidden_size\":22016,"
      "\"mlp_ratio\":4,\"embedding_size\":50304,\"vocab_size\":50280,\"weight_tying\":false",
      6888095744, 6888095744 },
    { "\"model_type\":\"hf_olmo\",\"d_model\":2048,\"n_heads\":16,\"n_layers\":16,\"mlp_hidden_size\":null,"
      "\"mlp_ratio\":8,\"embedding_size\":50304,\"vocab_size\":50280,\"weight_tying\":true",
      1176764416, 1176764416 },
    { "\"model_type\":\"granitemoehybrid\",\"hidden_size\":2560,\"shared_intermediate_size\":8192,"
      "\"intermediate_size\":8192,\"num_attention_heads\":40,\"num_key_value_heads\":8,"
      "\"num_hidden_layers\":4,\"vocab_size\":100352,\"num_local_experts\":0,\"num_experts_per_tok\":0,"
      "\"max_position_embeddings\":131072,\"mamba_n_heads\":128,\"mamba_d_head\":40,"
      "\"tie_word_embeddings\":true,"
      "\"layer_types\":[\"attention\",\"attention\",\"attention\",\"attention\"]",
      571496960, 571496960 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, cases[i].total);
    LS_CHECK_INT (active, ==, cases[i].active);
  }
}

/* Counts by hand of modelling code of transformers: of class defaults for Jais-2-8B, A.X K1 (519 B, 33 B active), Sarvam-30B,
 * the first Granite with windows, and MiniMax-M3 (428 B with what sees, 23 B without embeddings); of dimensions made up for the others. */
static void
defaults_of_classes_count_the_same (void)
{
  static const struct {
    const char *keys;
    uint64_t total, active;
  } cases[] = {
    { "\"model_type\":\"jais2\"", 8090401280, 8090401280 },
    { "\"model_type\":\"axk1\"", 518982622208, 32778902528 },
    { "\"model_type\":\"sarvam_moe\",\"use_qk_norm\":true,\"use_qkv_bias\":false", 32152648064, 4520573312 },
    { "\"model_type\":\"granite_swa\"", 2144463360, 2144463360 },
    { "\"model_type\":\"granitemoe_swa\",\"hidden_size\":1536,\"intermediate_size\":512,\"num_hidden_layers\":8,"
      "\"num_attention_heads\":12,\"num_key_value_heads\":4,\"num_local_experts\":40,\"num_experts_per_tok\":8,"
      "\"vocab_size\":100352,\"max_position_embeddings\":4096",
      959964672, 355984896 },
    { "\"model_type\":\"aria_text\",\"hidden_size\":2560,\"intermediate_size\":1664,\"num_hidden_layers\":28,"
      "\"num_attention_heads\":20,\"moe_num_experts\":64,\"moe_topk\":6,\"vocab_size\":100352",
      24869091840, 4115151360 },
    { "\"model_type\":\"hyperclovax\"," CLOVAX ",\"use_post_norm\":true", 14748112896, 14748112896 },
    { "\"model_type\":\"hyperclovax\"," CLOVAX, 14748112896 - 38 * 2 * 6144, 14748112896 - 38 * 2 * 6144 },
    { "\"model_type\":\"minimax_m3\",\"moe_layer_freq\":[0,0,0" M3_57 "],\"sparse_attention_config\":{"
      "\"sparse_num_index_heads\":4,\"sparse_index_dim\":128,\"sparse_topk_blocks\":16,\"sparse_block_size\":128,"
      "\"sparse_attention_freq\":[0,0,0" M3_57 "],\"sparse_disable_index_value\":[0,0,0" M3_57 "]}",
      426174565632, 25962466560 },
    { "\"model_type\":\"minimax_m3_vl_text\",\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\"],"
      "\"num_hidden_layers\":4,\"layer_types\":[\"full_attention\",\"minimax_m3_sparse\",\"minimax_m3_sparse\","
      "\"minimax_m3_sparse\"]",
      25040051968, 3976257280 },
    { "\"model_type\":\"minimax_m3\",\"num_hidden_layers\":2,\"sparse_attention_config\":{"
      "\"sparse_attention_freq\":[0,1],\"sparse_disable_index_value\":[1,0]}",
      0, 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, cases[i].total);
    LS_CHECK_INT (active, ==, cases[i].active);
    LS_CHECK (cases[i].total > 0 || strstr (said, "cannot be simulated"));
  }
}

/* A base of 0 in layer_rope_theta is no rope: of eight layers the fourth and the last. */
static void
layers_without_a_base_have_no_rope (void)
{
  static const char text[] = "{\"model_type\":\"granite_swa\",\"num_hidden_layers\":8,"
                             "\"layer_rope_theta\":[1e4,1e4,1e4,0,1e4,1e4,1e4,0]}";
  LsModel m = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags));
  LS_CHECK_INT (m.unrotated_every, ==, 4);
  LS_CHECK (m.window == 128 && m.full_every == 4 && m.full_first);
  ls_model_clear (&m);
}

/* Two norms of 128 in each of 80 layers, which qk_norm has or not. */
static void
norms_of_queries_and_keys_may_be_off (void)
{
  uint64_t active;
  g_autofree char *said = NULL, *also = NULL;
  uint64_t with = params_of (HY, &active, &said),
           without = params_of (HY ",\"qk_norm\":false", &active, &also);
  LS_CHECK_INT (with - without, ==, 80 * 2 * 128);
}

/* Of granitemoehybrid some have rope, which position_embedding_type says. */
static void
positions_are_as_the_file_says (void)
{
  static const struct {
    const char *key;
    LsPosition position;
    guint n_notes;
  } cases[] = {
    { "", LS_POSITION_NONE, 2 },
    { ",\"position_embedding_type\":\"rope\"", LS_POSITION_ROPE, 2 },
    { ",\"position_embedding_type\":\"nope\"", LS_POSITION_NONE, 2 },
    { ",\"position_embedding_type\":\"rope_gptj\"", LS_POSITION_NONE, 3 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *text = g_strdup_printf (
        "{\"model_type\":\"granitemoehybrid\",\"hidden_size\":2560,\"shared_intermediate_size\":8192,"
        "\"intermediate_size\":8192,\"num_attention_heads\":40,\"num_hidden_layers\":2,\"vocab_size\":100352,"
        "\"num_local_experts\":0,\"max_position_embeddings\":4096,"
        "\"layer_types\":[\"attention\",\"attention\"]%s}",
        cases[i].key);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LS_CHECK (doc && ls_model_read (doc, &m, notes, diags));
    LS_CHECK_INT (m.position, ==, cases[i].position);
    LS_CHECK_INT (notes->len, ==, cases[i].n_notes); /* the length, what is left out or not known */
    ls_model_clear (&m);
  }
}

#define NAS                                                                                                  \
  "\"model_type\":\"nemotron-nas\",\"hidden_size\":512,\"num_attention_heads\":8,\"vocab_size\":1000,"       \
  "\"intermediate_size\":null,\"num_key_value_heads\":null,\"max_position_embeddings\":4096"
#define DOES_NOTHING            "{\"no_op\":true,\"n_heads_in_group\":null,\"ffn_mult\":null}"
#define LINEAR                  "{\"no_op\":false,\"replace_with_linear\":true}"
#define BLOCK(attention_, ffn_) "{\"attention\":" attention_ ",\"ffn\":" ffn_ "}"
#define GROUPS(n_)              "{\"no_op\":false,\"n_heads_in_group\":" #n_ ",\"window_length\":null}"
#define TIMES(n_)               "{\"no_op\":false,\"ffn_mult\":" #n_ "}"

/* By hand, 2 tables of 1000 x 512 and a norm beside the layers. A width is int (2 n 512 / 3), up to 256: of 2.625
 * 1024, of 0.5 256. Llama-3_3-Nemotron-Super-49B-v1 itself has 49 867 145 216. */
static void
layers_may_differ_one_by_one (void)
{
  const uint64_t rest = 2 * 1000 * 512 + 512;
  static const struct {
    const char *keys;
    uint64_t layers;
  } cases[] = {
    { NAS ",\"num_hidden_layers\":2,\"block_configs\":[" BLOCK (GROUPS (4), TIMES (2.625)) "," BLOCK (
          GROUPS (8), TIMES (0.5)) "]",
      2 * 2 * 512 * 512 + 2 * 512 * 64 * (2 + 1) + 3 * 512 * (1024 + 256) + 4 * 512 },
    { NAS ",\"num_hidden_layers\":3,\"block_configs\":[" BLOCK (DOES_NOTHING, TIMES (0.5)) "," BLOCK (
          DOES_NOTHING, DOES_NOTHING) "," BLOCK (LINEAR, "{\"intermediate_size\":300}") "]",
      3 * 512 * (256 + 300) + 512 * 512 + 3 * 512 },
    { NAS ",\"num_hidden_layers\":1,\"block_configs\":[" BLOCK (GROUPS (1), DOES_NOTHING) "]",
      4 * 512 * 512 + 512 },
    { "\"model_type\":\"deci\",\"hidden_size\":512,\"num_attention_heads\":8,\"vocab_size\":1000,"
      "\"intermediate_size\":700,\"max_position_embeddings\":4096,\"num_hidden_layers\":3,"
      "\"num_key_value_heads_per_layer\":[4,2,1]",
      3 * (2 * 512 * 512 + 3 * 512 * 700 + 2 * 512) + 2 * 512 * 64 * 7 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, rest + cases[i].layers);
    LS_CHECK_INT (active, ==, rest + cases[i].layers);
    LS_CHECK_STR (said, "");
  }
}

/* OpenELM-1.1B: heads of queries, of keys and values, and widths of MLPs, and 1 079 891 456 weights. */
static void
queries_may_differ_one_by_one (void)
{
  uint64_t active;
  g_autofree char *said = NULL;
  const char *keys
      = "\"model_type\":\"openelm\",\"model_dim\":2048,\"head_dim\":64,\"num_transformer_layers\":28,"
        "\"ffn_dim_divisor\":256,\"num_query_heads\":["
        "16,16,16,20,20,20,20,20,20,20,24,24,24,24,24,24,24,24,28,28,28,28,28,28,32,32,32"
        ",32"
        "],\"num_kv_heads\":["
        "4,4,4,5,5,5,5,5,5,5,6,6,6,6,6,6,6,6,7,7,7,7,7,7,8,8,8,8"
        "],\"ffn_multipliers\":["
        "0.5,0.63,0.76,0.89,1.02,1.15,1.28,1.41,1.54,1.67,1.8,1.93,2.06,2.19,2.31,2.44,2."
        "57,2.7,2.83,2.96,3.09,3.22,3.35,3.48,3.61,3.74,3.87,4.0"
        "]";
  LS_CHECK_INT (params_of (keys, &active, &said), ==, 1079891456);
  LS_CHECK_STR (said, "");
}

/* Of four layers, the first without experts, three have a window and more heads of queries. By hand: a table and a
 * head of 1000 x 512, norms of 512 and 64, experts of 3 x 512 x 64, 3 and 2 of them and a shared one. */
static void
heads_go_with_windows_and_experts (void)
{
  uint64_t active;
  g_autofree char *said = NULL;
  const char *keys
      = "\"model_type\":\"laguna\",\"hidden_size\":512,\"head_dim\":64,\"num_hidden_layers\":4,"
        "\"intermediate_size\":1024,\"num_attention_heads\":8,\"num_attention_heads_per_layer\":[8,16,16,16],"
        "\"num_key_value_heads\":4,\"vocab_size\":1000,\"num_experts\":3,\"num_experts_per_tok\":2,"
        "\"moe_intermediate_size\":64,\"shared_expert_intermediate_size\":64,\"tie_word_embeddings\":false,"
        "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\"],"
        "\"mlp_layer_types\":[\"dense\",\"sparse\",\"sparse\",\"sparse\"]";
  uint64_t attention = 2 * 512 * 64 * (8 + 3 * 16) + 4 * 2 * 512 * 64 * 4, expert = 3 * 512 * 64;
  uint64_t rest = 2 * 1000 * 512 + 512 + attention + 4 * (2 * 512 + 2 * 64) + 3 * 512 * 1024 + 3 * 512 * 3;
  LS_CHECK_INT (params_of (keys, &active, &said), ==, rest + 3 * 4 * expert);
  LS_CHECK_INT (active, ==, rest + 3 * 3 * expert);
  LS_CHECK_STR (said, "");
}

/* 1 is a window, and a layer of four has none and no rope. */
static void
layouts_say_windows_and_rope (void)
{
  LsModel m = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const char *text
      = "{\"architectures\":[\"SmallThinkerForCausalLM\"],\"hidden_size\":512,\"moe_ffn_hidden_size\":64,"
        "\"moe_num_active_primary_experts\":1,\"moe_num_primary_experts\":4,\"num_attention_heads\":8,"
        "\"num_hidden_layers\":8,\"sliding_window_layout\":[0,1,1,1,0,1,1,1],\"rope_layout\":[1,1,1,0,1,1,1,0]}";
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags));
  LS_CHECK_INT (m.window, ==, 4096);
  LS_CHECK_INT (m.full_every, ==, 4);
  LS_CHECK (m.full_first);
  LS_CHECK_INT (m.unrotated_every, ==, 4);
  ls_model_clear (&m);
}

#define STEP                                                                                                 \
  "\"model_type\":\"step3p5\",\"hidden_size\":512,\"intermediate_size\":1024,\"num_hidden_layers\":6,"       \
  "\"num_attention_heads\":8,\"num_attention_groups\":4,\"head_dim\":64,\"vocab_size\":1000,"                \
  "\"moe_num_experts\":4,\"moe_top_k\":2,\"moe_intermediate_size\":64,\"share_expert_dim\":64,"              \
  "\"max_position_embeddings\":4096"

/* Numbers of the layers with experts, in a string or a list; without them three layers have none. */
static void
layers_with_experts_may_be_numbered (void)
{
  static const struct {
    const char *keys;
    uint32_t n_dense; /* UINT32_MAX: refused */
    const char *said;
  } cases[] = {
    { "", 3, "" },
    { ",\"moe_layers_enum\":\"\"", 3, "" },
    { ",\"moe_layers_enum\":null", 3, "" },
    { ",\"moe_layers_enum\":\"5, 4\"", 4, "" },
    { ",\"moe_layers_enum\":\"1,2,3,4,5\"", 1, "" },
    { ",\"moe_layers_enum\":[2,3,4,5]", 2, "" },
    { ",\"moe_layers_enum\":\"3,5\"", 0, "" }, /* a pattern says which */
    { ",\"moe_layers_enum\":\"3,6\"", UINT32_MAX, "/moe_layers_enum: expected numbers of layers" },
    { ",\"moe_layers_enum\":[3,\"four\"]", UINT32_MAX, "/moe_layers_enum: expected numbers of layers" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *text = g_strdup_printf ("{" STEP "%s}", cases[i].keys);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    bool ok = doc && ls_model_read (doc, &m, NULL, diags);
    g_autofree char *said = ls_diag_list_format (diags);
    LS_CHECK_INT (ok, ==, cases[i].n_dense < UINT32_MAX);
    LS_CHECK (strstr (said, cases[i].said) != NULL);
    LS_CHECK_INT (m.n_dense_layers, ==, ok ? cases[i].n_dense : 0);
    ls_model_clear (&m);
  }
}

#define ERNIE                                                                                                  \
  "\"model_type\":\"ernie4_5_moe_vl\",\"hidden_size\":512,\"intermediate_size\":1024,\"num_hidden_layers\":4," \
  "\"num_attention_heads\":8,\"num_key_value_heads\":8,\"vocab_size\":1000,\"moe_num_experts\":4,"             \
  "\"moe_k\":2,\"moe_intermediate_size\":64"

/* The last layer with experts is the last, by its number or one behind it, as ERNIE's files have it. */
static void
the_last_layers_have_experts (void)
{
  static const char *const ends[] = { "-1", "3", "4", "[3,2]" };
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++) {
    uint64_t active;
    g_autofree char *said = NULL, *keys = g_strconcat (ERNIE ",\"moe_layer_end_index\":", ends[i], NULL);
    LS_CHECK_INT (params_of (keys, &active, &said), >, 0);
    LS_CHECK_STR (said, "");
  }
}

static bool
has_note (const GPtrArray *notes, const char *words)
{
  for (guint i = 0; i < notes->len; i++)
    if (strstr (notes->pdata[i], words))
      return true;
  return false;
}

/* Once, and only where it is on. */
static void
what_is_left_out_is_told (void)
{
  static const struct {
    const char *keys, *said;
    guint n_notes;
  } cases[] = {
    { "", "dropout", 1 },
    { ",\"attention_dropout\":0.0,\"visual\":null", "dropout", 1 },
    { ",\"attention_dropout\":0.1,\"embd_pdrop\":0.1", "dropout of attention weights", 2 },
    { ",\"visual\":{\"layers\":48}", "a tower that sees", 2 },
    { ",\"mtp_num_hidden_layers\":1", "layers that predict further tokens", 2 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *text = g_strdup_printf (
        "{\"model_type\":\"llama\",\"hidden_size\":512,\"intermediate_size\":1024,\"num_attention_heads\":8,"
        "\"num_hidden_layers\":2,\"vocab_size\":1000,\"max_position_embeddings\":4096%s}",
        cases[i].keys);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LS_CHECK (doc && ls_model_read (doc, &m, notes, diags));
    LS_CHECK_INT (notes->len, ==, cases[i].n_notes); /* the length of sequences is one */
    LS_CHECK_INT (has_note (notes, cases[i].said), ==, cases[i].n_notes > 1);
    ls_model_clear (&m);
  }
}

/* Not as an unknown type, but by what cannot be simulated. */
static void
what_is_refused_says_why (void)
{
  static const struct {
    const char *keys, *said;
  } cases[] = {
    { "\"model_type\":\"ernie4_5_moe_vl\",\"num_key_value_heads\":8,\"moe_num_experts\":[[64],64]",
      "experts that read text" },
    { ERNIE ",\"moe_layer_end_index\":2", "/moe_layer_end_index: layers without experts behind" },
    { ERNIE ",\"moe_layer_end_index\":[2,3]", "/moe_layer_end_index: layers without experts behind" },
    { ERNIE ",\"moe_layer_end_index\":-2", "/moe_layer_end_index: layers without experts behind" },
    { "\"model_type\":\"llama\",\"num_experts\":16", "experts in a model_type that has none" },
    { "\"model_type\":\"llama\",\"num_experts\":[16]", "experts in a model_type that has none" },
    { "\"model_type\":\"llama\",\"num_local_experts\":[1,8]", "experts in a model_type that has none" },
    { "\"model_type\":\"cosmos3_edge_text\",\"layers_block_type\":[\"attention\",\"mlp\"]",
      "of its first form" },
    { "\"model_type\":\"inkling_text\"", "a bias of scores" },
    { "\"model_type\":\"deepseek_v41\"", "layers share by lists" },
    { "\"model_type\":\"diffusion_gemma_text\"", "block diffusion" },
    { "\"model_type\":\"glm_image_text\"", "a head of other words" },
    { "\"model_type\":\"nemotron_flash\"", "delta nets and state-space" },
    { "\"model_type\":\"bailing_hybrid\",\"short_conv_kernel_size\":4", "gated latent attention" },
    { NAS ",\"num_hidden_layers\":2,\"block_configs\":[" BLOCK (GROUPS (4), TIMES (1)) "]",
      "as many block_configs" },
    { NAS ",\"num_hidden_layers\":1,\"block_configs\":[" BLOCK (GROUPS (4), LINEAR) "]",
      "a linear layer in the place of an MLP" },
    { NAS ",\"num_hidden_layers\":1,\"block_configs\":[" BLOCK (GROUPS (3), TIMES (1)) "]",
      "n_heads_in_group" },
    { NAS ",\"num_hidden_layers\":1,\"block_configs\":[" BLOCK (DOES_NOTHING, DOES_NOTHING) "]",
      "does something" },
    { NAS ",\"num_hidden_layers\":1,\"block_configs\":[" BLOCK (GROUPS (1), "{\"moe\":{}}") "]", "experts" },
    { NAS ",\"num_hidden_layers\":1,\"block_configs\":[" BLOCK (
          "{\"n_heads_in_group\":1,\"window_length\":64}", TIMES (1)) "]",
      "windows of their own" },
    { NAS ",\"num_hidden_layers\":1,\"block_configs\":[" BLOCK (GROUPS (1), "{}") "]", "ffn_mult" },
    { "\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadCustomModel\"],"
      "\"attention_head_type\":\"multiquery\"",
      "expected gpt_bigcode" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, 0);
    ls_check_impl (strstr (said, cases[i].said) != NULL, __FILE__, __LINE__, "%s: %s", cases[i].keys, said);
  }
}

LS_TEST_SUITE (LS_TEST (lists_say_which_layers_choose_and_have_experts), LS_TEST (other_words_count_the_same),
               LS_TEST (defaults_of_classes_count_the_same), LS_TEST (layers_without_a_base_have_no_rope),
               LS_TEST (norms_of_queries_and_keys_may_be_off), LS_TEST (positions_are_as_the_file_says),
               LS_TEST (layers_may_differ_one_by_one), LS_TEST (queries_may_differ_one_by_one),
               LS_TEST (layouts_say_windows_and_rope), LS_TEST (heads_go_with_windows_and_experts),
               LS_TEST (layers_with_experts_may_be_numbered), LS_TEST (the_last_layers_have_experts),
               LS_TEST (what_is_left_out_is_told), LS_TEST (what_is_refused_says_why))
