/* Pins types of config.json that stand for models of several kinds: which kind a file is of, by its keys, and that
 * one of none is refused; and that further types have their published sizes. */
#include "ls_test.h"

#include <string.h>

#include "config_params.h"
#include "data/jobs/job_files.h"

#define MINICPM_2B                                                                                           \
  "\"hidden_size\":2304,\"intermediate_size\":5760,\"num_hidden_layers\":40,\"num_attention_heads\":36,"     \
  "\"num_key_value_heads\":36,\"vocab_size\":122753,\"max_position_embeddings\":4096"
#define LLAMA3_8B                                                                                            \
  "\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"    \
  "\"num_key_value_heads\":8,\"vocab_size\":128256,\"max_position_embeddings\":8192"
#define QWEN2_7B                                                                                             \
  "\"hidden_size\":3584,\"intermediate_size\":18944,\"num_hidden_layers\":28,\"num_attention_heads\":28,"    \
  "\"num_key_value_heads\":4"
#define QWEN3_8B                                                                                             \
  "\"hidden_size\":4096,\"intermediate_size\":12288,\"num_hidden_layers\":36,\"num_attention_heads\":32,"    \
  "\"num_key_value_heads\":8,\"head_dim\":128"
#define V "\"model_type\":\"minicpmv\",\"architectures\":[\"MiniCPMV\"],\"slice_mode\":true,"
#define O "\"model_type\":\"minicpmo\",\"architectures\":[\"MiniCPMO\"],\"init_tts\":true,"

/* Llama 3 8B, Qwen2-7B and Qwen3-8B as published, the latter two with tables of fewer words; MiniCPM-2B with a head
 * of its own, and MiniCPM4-3B, by the shapes of their layers. */
static void
the_version_says_which_it_is (void)
{
  const uint64_t minicpm
      = 40 * (4 * 2304ull * 2304 + 3 * 2304ull * 5760 + 2 * 2304) + 2304 + 2 * 122753ull * 2304;
  const uint64_t minicpm4 = 32 * (2 * 2560ull * 4096 + 2 * 2560ull * 256 + 3 * 2560ull * 10240 + 2 * 2560)
      + 2560 + 2 * 73448ull * 2560;
  const struct {
    const char *keys;
    uint64_t total; /* 0: refused */
  } cases[] = {
    { V MINICPM_2B ",\"query_num\":64,\"scale_emb\":12,\"tie_word_embeddings\":false", minicpm },
    { V LLAMA3_8B ",\"query_num\":96", 8030261248 },
    { V LLAMA3_8B ",\"query_num\":96,\"version\":\"2.5\"", 8030261248 },
    { V QWEN2_7B ",\"vocab_size\":151666,\"version\":2.6", 7615616512 - 2ull * (152064 - 151666) * 3584 },
    { O QWEN2_7B ",\"vocab_size\":151700,\"version\":\"2.6\"", 7615616512 - 2ull * (152064 - 151700) * 3584 },
    { V "\"hidden_size\":2560,\"intermediate_size\":10240,\"num_hidden_layers\":32,"
        "\"num_attention_heads\":32,\"num_key_value_heads\":2,\"head_dim\":128,\"vocab_size\":73448,"
        "\"version\":4.0",
      minicpm4 },
    { V QWEN3_8B ",\"vocab_size\":151748,\"version\":4.5", 8190735360 - 2ull * (151936 - 151748) * 4096 },
    { O QWEN3_8B ",\"vocab_size\":151748,\"version\":\"4.5\"", 8190735360 - 2ull * (151936 - 151748) * 4096 },
    { V QWEN3_8B ",\"vocab_size\":151748,\"version\":5.5", 0 },
    { V QWEN3_8B ",\"vocab_size\":151748,\"query_num\":64", 0 },
    { V LLAMA3_8B ",\"query_num\":64", 0 },
    { O LLAMA3_8B ",\"query_num\":96", 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, cases[i].total);
    LS_CHECK (!*said == (cases[i].total > 0));
    LS_CHECK (cases[i].total > 0 || strstr (said, "/model_type: a type of several kinds"));
  }
}

#define MOLMO_O                                                                                              \
  "{\"model_type\":\"molmo\",\"architectures\":[\"MolmoForCausalLM\"],\"attention_layer_norm\":true,"        \
  "\"embedding_size\":100352,\"hidden_size\":4096,\"intermediate_size\":22016,\"layer_norm_type\":\"rms\","  \
  "\"max_position_embeddings\":4096,\"num_attention_heads\":32,\"num_hidden_layers\":32,\"qkv_bias\":false," \
  "\"num_key_value_heads\":null,\"vocab_size\":100278,\"weight_tying\":false,\"tie_word_embeddings\":false"

/* Molmo-7B-O, whose language model is OLMo-7B (7.3 B), has norms behind each half; a file that does not say so has
 * them before. As many weights either way. */
static void
a_key_says_where_norms_stand (void)
{
  static const struct {
    const char *text;
    LsNormPlaces norms;
  } cases[] = {
    { MOLMO_O ",\"norm_after\":true}", LS_NORMS_POST },
    { MOLMO_O ",\"norm_after\":false}", LS_NORMS_PRE },
    { MOLMO_O "}", LS_NORMS_PRE },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc
        = ls_json_doc_parse (cases[i].text, strlen (cases[i].text), "config.json", diags);
    LsModel m = { 0 };
    if (!LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags)))
      continue;
    LS_CHECK (m.norms == cases[i].norms && m.qk_norm && m.qk_norm_over == LS_QK_NORM_ALL);
    LS_CHECK_INT (ls_model_params (&m, m.vocab), ==,
                  2 * 100352ull * 4096 + 4096
                      + 32 * (4 * 4096ull * 4096 + 3 * 4096ull * 11008 + 2 * 4096 + 2 * 4096));
    ls_model_clear (&m);
  }
}

/* What is said of a file of types: "" where it is right. */
static char *
said_of_types (const char *types)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *text = g_strdup_printf (
      "{\"schema\":\"lockstep.model-types/1\",\"name\":\"t\",\"source\":\"s\",\"types\":["
      "{\"type\":\"a\",\"source\":\"s\",\"mlp\":\"swiglu\"},{\"type\":\"b\",\"source\":\"s\",%s}]}",
      types);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  LS_CHECK ((doc && ls_model_types_check (doc, diags) > 0) == (ls_diag_list_n (diags) == 0));
  return ls_diag_list_format (diags);
}

/* Each is like a type that there is, of one kind, and has keys. */
static void
a_wrong_variant_is_refused (void)
{
  static const struct {
    const char *types, *said;
  } cases[] = {
    { "\"variants\":[{\"like\":\"a\",\"where\":{\"x\":[1,null]}}]", "" },
    { "\"variants\":[{\"like\":\"a\",\"where\":{\"x\":1}},{\"like\":\"c\",\"where\":{}}]",
      "/types/1/variants/1/like: expected a type of this file, of one kind" },
    { "\"variants\":[{\"like\":\"b\",\"where\":{}}]", "of one kind" },
    { "\"variants\":[{\"like\":\"a\"}]", "missing key \"where\"" },
    { "\"variants\":[{\"where\":{}}]", "missing key \"like\"" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *said = said_of_types (cases[i].types);
    ls_check_impl (strstr (said, cases[i].said) && (*cases[i].said || !*said), __FILE__, __LINE__, "%s: %s",
                   cases[i].types, said);
  }
}

#define LAGUNA                                                                                               \
  "\"model_type\":\"laguna\",\"hidden_size\":512,\"head_dim\":64,\"num_hidden_layers\":2,"                   \
  "\"intermediate_size\":1024,\"num_attention_heads\":8,\"num_attention_heads_per_layer\":[8,16],"           \
  "\"num_key_value_heads\":4,\"vocab_size\":1000,\"num_experts\":3,\"num_experts_per_tok\":2,"               \
  "\"moe_intermediate_size\":64,\"shared_expert_intermediate_size\":64,\"tie_word_embeddings\":false"

/* A gate of each element is a projection as wide as that of queries, of 8 and 16 heads; one of each head is left
 * out. Grok-2 is no GIT, and CodeShell without groups is not known. */
static void
keys_say_which_kind_it_is (void)
{
  const uint64_t plain = 2 * 1000 * 512 + 512 + 2 * 512 * 64 * (8 + 16 + 4 + 4) + 2 * (2 * 512 + 2 * 64)
      + 3 * 512 * 1024 + 4 * 3 * 512 * 64 + 3 * 512;
  const struct {
    const char *keys;
    uint64_t total; /* 0: refused */
  } cases[] = {
    { LAGUNA, plain },
    { LAGUNA ",\"gating\":\"per-head\"", plain },
    { LAGUNA ",\"gating\":true", plain },
    { LAGUNA ",\"gating\":false", plain },
    { LAGUNA ",\"gating\":\"per-element\"", plain + 512 * 64 * (8 + 16) },
    { LAGUNA ",\"gating\":\"per-row\"", 0 },
    { "\"model_type\":\"git\",\"architectures\":[\"GitForCausalLM\"]", 0 },
    { "\"model_type\":\"kclgpt\",\"group_query_attention\":false", 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, cases[i].total);
    LS_CHECK (cases[i].total > 0 || strstr (said, "/model_type: a type of several kinds"));
  }
}

/* Not as an unknown type, but by what cannot be simulated. */
static void
types_that_cannot_be_say_why (void)
{
  static const char *const cases[][2] = {
    { "\"model_type\":\"zgcm\",\"num_hidden_layers\":2,\"attention_gate_layers\":[true,false]",
      "/attention_gate_layers: gates behind attention in other layers than those with a window" },
    { "\"model_type\":\"zgcm\",\"num_hidden_layers\":2,\"attention_gate_layers\":[true]",
      "/attention_gate_layers: gates behind attention in other layers than those with a window" },
    { "\"model_type\":\"qwen4_exp_text\"", "products of low rank" },
    { "\"model_type\":\"dots3_note\"", "of two shapes" },
    { "\"model_type\":\"rwkv6qwen2\"", "before its seventh version" },
    { "\"model_type\":\"arwkv7\"", "only a checkpoint says" },
    { "\"model_type\":\"k2_horizon\",\"mova_num_experts\":3", "made by experts" },
    { "\"model_type\":\"k2_horizon\",\"attention_gate_func\":\"tanh\"", "a type of several kinds" },
    { "\"model_type\":\"apertus1p5_text\",\"output_vocab_size\":131072", "a head of fewer words" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i][0], &active, &said), ==, 0);
    ls_check_impl (strstr (said, cases[i][1]) != NULL, __FILE__, __LINE__, "%s: %s", cases[i][0], said);
  }
}

/* In 10^9, within 0.1 %: published totals (xglm-7.5B, gpt-neo-2.7B, falcon-40b, chatglm3-6b, bitnet-b1.58-2B-4T,
 * Trinity-Mini, Arctic 480B, Hy3 295B, Solar Open 100B, Mistral Small 4 119B), and counts by hand of the modelling
 * code: attention, MLP or experts, embedding and head. */
static void
further_types_have_their_sizes (void)
{
  static const struct {
    const char *keys;
    double total, active;
  } cases[] = {
    { "\"model_type\":\"chatglm\",\"architectures\":[\"ChatGLMModel\"],\"add_bias_linear\":false,"
      "\"add_qkv_bias\":true,\"ffn_hidden_size\":13696,\"hidden_size\":4096,\"kv_channels\":128,"
      "\"multi_query_attention\":true,\"multi_query_group_num\":2,\"num_attention_heads\":32,"
      "\"num_layers\":28,\"padded_vocab_size\":65024,\"seq_length\":8192",
      6.243584, 6.243584 },
    { "\"model_type\":\"gpt_neo\",\"hidden_size\":2560,\"intermediate_size\":null,\"num_heads\":20,"
      "\"num_layers\":32,\"vocab_size\":50257,\"window_size\":256",
      2.65130752, 2.65130752 },
    { "\"model_type\":\"xglm\",\"attention_heads\":32,\"d_model\":4096,\"ffn_dim\":16384,\"num_layers\":32,"
      "\"vocab_size\":256008",
      7.49277184, 7.49277184 },
    { "\"model_type\":\"persimmon\",\"hidden_size\":4096,\"intermediate_size\":16384,"
      "\"num_attention_heads\":64,\"num_hidden_layers\":36,\"qk_layernorm\":true,\"vocab_size\":262144",
      9.397175296, 9.397175296 },
    { "\"model_type\":\"RefinedWeb\",\"architectures\":[\"RWForCausalLM\"],\"bias\":false,"
      "\"hidden_size\":8192,\"n_head\":128,\"n_head_kv\":8,\"n_layer\":60,\"vocab_size\":65024",
      41.303293952, 41.303293952 },
    { "\"model_type\":\"bitnet\",\"hidden_size\":2560,\"intermediate_size\":6912,\"num_attention_heads\":20,"
      "\"num_hidden_layers\":30,\"num_key_value_heads\":5,\"vocab_size\":128256,"
      "\"tie_word_embeddings\":true",
      2.41282048, 2.41282048 },
    { "\"model_type\":\"afmoe\",\"head_dim\":128,\"hidden_size\":2048,\"intermediate_size\":6144,"
      "\"moe_intermediate_size\":1024,\"num_attention_heads\":32,\"num_dense_layers\":2,\"num_experts\":128,"
      "\"num_experts_per_tok\":8,\"num_hidden_layers\":32,\"num_key_value_heads\":4,"
      "\"num_shared_experts\":1,\"vocab_size\":200192,\"tie_word_embeddings\":false",
      26.123975808, 3.474729 },
    { "\"model_type\":\"arctic\",\"hidden_size\":7168,\"intermediate_size\":4864,\"num_attention_heads\":56,"
      "\"num_hidden_layers\":35,\"num_key_value_heads\":8,\"num_local_experts\":128,"
      "\"num_experts_per_tok\":2,\"moe_layer_frequency\":1,\"vocab_size\":32000,\"sliding_window\":null",
      478.583849, 17.317888 },
    { "\"model_type\":\"solar_open\",\"head_dim\":128,\"hidden_size\":4096,\"moe_intermediate_size\":1280,"
      "\"intermediate_size\":10240,\"n_routed_experts\":128,\"n_shared_experts\":1,"
      "\"num_attention_heads\":64,\"num_experts_per_tok\":8,\"num_hidden_layers\":48,"
      "\"first_k_dense_replace\":0,\"num_key_value_heads\":8,\"vocab_size\":196608",
      102.651396, 12.05443 },
    { "\"model_type\":\"hy_v3\",\"hidden_size\":4096,\"intermediate_size\":13312,\"num_experts\":192,"
      "\"moe_intermediate_size\":1536,\"num_experts_per_tok\":8,\"num_shared_experts\":1,"
      "\"num_hidden_layers\":80,\"num_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":128,"
      "\"vocab_size\":120832",
      295.032848, 20.675035 },
    { "\"model_type\":\"mistral4\",\"hidden_size\":4096,\"intermediate_size\":12288,\"kv_lora_rank\":256,"
      "\"num_hidden_layers\":36,\"num_attention_heads\":32,\"q_lora_rank\":1024,\"qk_nope_head_dim\":64,"
      "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"n_routed_experts\":128,\"num_experts_per_tok\":4,"
      "\"n_shared_experts\":1,\"moe_intermediate_size\":2048,\"first_k_dense_replace\":0,"
      "\"vocab_size\":131072",
      118.972482, 6.632243 },
    { "\"model_type\":\"olmo_hybrid\",\"hidden_size\":3840,\"intermediate_size\":11008,"
      "\"num_hidden_layers\":32,\"num_attention_heads\":30,\"num_key_value_heads\":30,\"vocab_size\":100352",
      7.43056, 7.43056 },
    { "\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"intermediate_size\":18432,"
      "\"first_k_dense_replace\":3,\"kv_lora_rank\":512,\"moe_intermediate_size\":2048,"
      "\"num_routed_experts\":256,\"num_shared_experts\":1,\"num_attention_heads\":128,"
      "\"num_experts_per_tok\":8,\"num_hidden_layers\":61,\"q_lora_rank\":1536,\"qk_nope_head_dim\":128,"
      "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"vocab_size\":129280",
      671.026, 37.552 },
    { "\"model_type\":\"biogpt\",\"hidden_size\":1024,\"intermediate_size\":4096,\"num_attention_heads\":16,"
      "\"num_hidden_layers\":24,\"vocab_size\":42384",
      0.346763264, 0.346763264 },
    { "\"model_type\":\"flex_olmo\",\"hidden_size\":4096,\"intermediate_size\":11008,\"num_experts\":7,"
      "\"num_experts_per_tok\":5,\"num_attention_heads\":32,\"num_hidden_layers\":32,"
      "\"vocab_size\":100352",
      33.270137, 24.613093 },
    { "\"model_type\":\"vaultgemma\",\"hidden_size\":1152,\"intermediate_size\":6912,"
      "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"num_hidden_layers\":26,"
      "\"sliding_window\":512,\"hidden_activation\":\"gelu_pytorch_tanh\"",
      1.03874, 1.03874 },
    { "\"model_type\":\"llava\",\"vision_config\":{},\"text_config\":{\"model_type\":\"llama\","
      "\"vocab_size\":32064}",
      6.7389399, 6.7389399 }, /* Llama 2 7B, which the part leaves out, with 64 words more */
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *said = NULL;
    uint64_t active = 0, total = params_of (cases[i].keys, &active, &said);
    LS_CHECK_NEAR ((double) total / 1e9, cases[i].total, 1e-3);
    LS_CHECK_NEAR ((double) active / 1e9, cases[i].active, 1e-3);
  }
}

LS_TEST_SUITE (LS_TEST (keys_say_which_kind_it_is), LS_TEST (the_version_says_which_it_is),
               LS_TEST (a_key_says_where_norms_stand), LS_TEST (a_wrong_variant_is_refused),
               LS_TEST (types_that_cannot_be_say_why), LS_TEST (further_types_have_their_sizes))
