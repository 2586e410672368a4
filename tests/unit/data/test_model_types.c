/* Pins types of models that a config.json of Hugging Face may be of: that each type's file of facts is whole, what
 * layers with norms behind and mixers become, and parameters against published and counted ones. */
#include "ls_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/hf_family.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"

static bool
read_text (const char *text, LsModel *model, GPtrArray *notes)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  bool ok = doc && ls_model_read (doc, model, notes, diags);
  g_autofree char *wrong = ls_diag_list_format (diags);
  return ls_check_impl (ok, __FILE__, __LINE__, "%s", wrong);
}

/* Each type reads a file that has but the common keys: its own defaults and names are right. */
static void
every_type_is_whole (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) types = ls_data_load (LS_DATA_MODEL_TYPES, "huggingface", diags);
  const cJSON *type, *list = types ? hf_get (types, "types") : NULL;
  LS_CHECK (list != NULL);
  cJSON_ArrayForEach (type, list)
  {
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
    LsModel m;
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), name, diags);
    g_autoptr (HfFamily) f = hf_find_family (doc, NULL, diags);
    bool is_several = cJSON_GetObjectItemCaseSensitive (type, "variants") != NULL; /* test_model_variants.c */
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

/* A file of types is held by the table that reads it: keys, values, and what types are like. */
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
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *said = said_of_types (cases[i].types);
    ls_check_impl (strstr (said, cases[i].said) && (*cases[i].said || !*said), __FILE__, __LINE__, "%s: %s",
                   cases[i].types, said);
  }
}

static const char gemma[] = "{\"model_type\":\"gemma3_text\",\"hidden_size\":1152,\"intermediate_size\":6912,"
                            "\"num_hidden_layers\":26,\"num_attention_heads\":4,\"num_key_value_heads\":1,"
                            "\"sliding_window\":512,\"sliding_window_pattern\":6,\"vocab_size\":262144,"
                            "\"hidden_activation\":\"gelu_pytorch_tanh\"}";

/* Five layers see 512 keys, the sixth all; four norms a layer; the activation has a gate. */
static void
windows_and_norms_on_both_sides (void)
{
  LsModel m;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  if (!read_text (gemma, &m, notes))
    return;
  LS_CHECK (m.window == 512 && m.full_every == 6 && m.window_kind == LS_WINDOW_SLIDING);
  LS_CHECK (m.mlp == LS_MLP_GEGLU && m.norms == LS_NORMS_BOTH && m.qk_norm && m.tied_embeddings);
  LS_CHECK_INT (ls_model_params (&m, m.vocab), ==, 999885952);
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, 2);
  LS_CHECK_INT (ls_model_layer_kind (&m, 4), ==, LS_LAYER_WINDOWED);
  LS_CHECK_INT (ls_model_layer_kind (&m, 5), ==, 0);
  ls_model_clear (&m);
}

/* Names within objects of the file; a zero that means none; the outer file's word on the embedding. */
static void
names_of_publishers (void)
{
  LsModel m;
  if (read_text (
          "{\"model_type\":\"dbrx\",\"d_model\":6144,\"n_heads\":48,\"n_layers\":40,\"vocab_size\":100352,"
          "\"max_seq_len\":32768,\"attn_config\":{\"kv_n_heads\":8,\"clip_qkv\":8},"
          "\"ffn_config\":{\"ffn_hidden_size\":10752,\"moe_num_experts\":16,\"moe_top_k\":4}}",
          &m, NULL)) {
    LS_CHECK_INT (ls_model_params (&m, m.vocab), ==, 131596523520);
    LS_CHECK_INT (ls_model_active_params (&m, m.vocab), ==, 36469708800);
    ls_model_clear (&m);
  }
  if (read_text ("{\"model_type\":\"qwen3_vl\",\"tie_word_embeddings\":true,\"text_config\":{"
                 "\"model_type\":\"qwen3_vl_text\",\"hidden_size\":2048,\"intermediate_size\":6144,"
                 "\"num_hidden_layers\":28,\"num_attention_heads\":16,\"num_key_value_heads\":8,"
                 "\"head_dim\":128,\"vocab_size\":151936,\"max_position_embeddings\":262144}}",
                 &m, NULL)) {
    LS_CHECK (m.tied_embeddings && m.qk_norm && m.n_experts == 0);
    ls_model_clear (&m);
  }
  if (read_text (
          "{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"intermediate_size\":6144,"
          "\"moe_intermediate_size\":768,\"head_dim\":128,\"num_attention_heads\":32,"
          "\"num_hidden_layers\":48,\"num_key_value_heads\":4,\"vocab_size\":151936,"
          "\"shared_expert_intermediate_size\":0,\"max_position_embeddings\":40960,\"num_experts\":128,"
          "\"num_experts_per_tok\":8}",
          &m, NULL)) {
    LS_CHECK_INT (m.shared_ffn, ==, 0);
    ls_model_clear (&m);
  }
}

/* Letters of halves, lists, periods with and without an offset; what is not simulated is refused. */
static void
mixers_stand_where_the_file_says (void)
{
  static const struct {
    const char *type, *keys, *pattern; /* NULL: refused */
  } cases[] = {
    { "nemotron_h", "\"hybrid_override_pattern\":\"M-M*\"", "mdma" },
    { "nemotron_h", "\"hybrid_override_pattern\":\"M-M?\"", NULL },
    { "nemotron_h", "\"layers_block_type\":[\"mamba\",\"mlp\",\"moe\",\"attention\"],\"num_experts\":4",
      "mdea" },
    { "nemotron_h", "\"layers_block_type\":[\"linear_attention\",\"full_attention\"]", "ma" },
    { "falcon_h1", "\"mamba_d_head\":64", "P" },
    { "kimi_linear",
      "\"n_routed_experts\":4,\"moe_intermediate_size\":64,\"kv_lora_rank\":64,\"qk_rope_head_dim\":16,"
      "\"qk_nope_head_dim\":16,\"v_head_dim\":32,\"linear_attn_config\":{\"full_attn_layers\":[4],\"head_dim\":64,\"num_heads\":4}",
      "MMMA" },
    { "kimi_linear",
      "\"n_routed_experts\":4,\"moe_intermediate_size\":64,\"kv_lora_rank\":64,\"qk_rope_head_dim\":16,"
      "\"qk_nope_head_dim\":16,\"v_head_dim\":32,\"linear_attn_config\":{\"full_attn_layers\":[5],\"head_dim\":64,\"num_heads\":4}",
      NULL },
    { "solar_open2",
      "\"n_routed_experts\":4,\"linear_attn_config\":{\"num_heads\":4,\"head_dim\":64,\"num_kv_heads\":3}",
      NULL },
    { "granitemoehybrid", "\"layer_types\":[\"mamba\",\"mamba\",\"attention\",\"mamba\"]", "MMAM" },
    { "granitemoehybrid", "\"layer_types\":[\"mamba\",\"mamba\",\"attention\",\"rwkv\"]", NULL },
    { "jamba", "\"attn_layer_period\":4,\"attn_layer_offset\":1,\"num_experts\":2", "MAMM" },
    { "jamba", "\"attn_layer_period\":4,\"attn_layer_offset\":0,\"num_experts\":2", "AMMM" },
    { "jamba", "\"attn_layer_period\":4,\"attn_layer_offset\":1,\"expert_layer_offset\":0", NULL },
    { "qwen3_next", "\"full_attention_interval\":2,\"moe_intermediate_size\":64,\"x\":[0.0,Infinity]", "MA" },
    { "minimax", "\"attn_type_list\":[0,0,0,1],\"num_local_experts\":4", "MMMA" },
    { "mamba2", "\"num_heads\":8", "m" },
    { "solar_open2", "\"n_routed_experts\":4", "AMMM" },
    { "solar_open2", "\"n_routed_experts\":4,\"gqa_layers\":[1,2]", "MAAM" },
    { "solar_open2", "\"n_routed_experts\":4,\"gqa_layers\":[4]", NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = g_strdup_printf (
        "{\"model_type\":\"%s\",\"hidden_size\":256,\"intermediate_size\":512,\"num_hidden_layers\":4,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"vocab_size\":1000,"
        "\"max_position_embeddings\":512,\"mamba_num_heads\":4,"
        "\"num_experts_per_tok\":2,\"mamba_d_state\":16,%s}",
        cases[i].type, cases[i].keys);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LsModel m = { 0 };
    bool ok = doc && ls_model_read (doc, &m, NULL, diags);
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (ok == (cases[i].pattern != NULL), __FILE__, __LINE__, "%s: %s", cases[i].keys, wrong);
    LS_CHECK_STR (m.layer_pattern, cases[i].pattern);
    ls_model_clear (&m);
  }
}

/* As many layers of a decoder as of an encoder unless the file says otherwise; a gate by the activation's name. An
 * encoder alone, and one of another type, are refused. */
static void
an_encoder_and_its_decoder (void)
{
  static const struct {
    const char *keys;
    uint32_t layers, encoder, decoder_seq;
    LsMlp mlp;
  } cases[] = {
    { "\"model_type\":\"t5\",\"num_layers\":4,\"architectures\":[\"T5WithLMHeadModel\"]", 8, 4, 0,
      LS_MLP_GELU },
    { "\"model_type\":\"t5\",\"num_layers\":4,\"num_decoder_layers\":2,\"decoder_seq\":114,"
      "\"feed_forward_proj\":\"gated-gelu\",\"architectures\":[\"T5ForConditionalGeneration\"]",
      6, 4, 114, LS_MLP_GEGLU },
    { "\"model_type\":\"t5\",\"num_layers\":4,\"architectures\":[\"T5EncoderModel\"]", 0, 0, 0, LS_MLP_GELU },
    { "\"model_type\":\"bart\"", 0, 0, 0, LS_MLP_GELU },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = g_strdup_printf (
        "{\"is_encoder_decoder\":true,\"d_model\":256,\"d_kv\":64,\"d_ff\":512,\"num_heads\":4,"
        "\"vocab_size\":1000,%s}",
        cases[i].keys);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LsModel m = { 0 };
    bool ok = doc && ls_model_read (doc, &m, NULL, diags);
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (ok == (cases[i].layers > 0), __FILE__, __LINE__, "%s: %s", cases[i].keys, wrong);
    LS_CHECK_INT (m.n_layers, ==, cases[i].layers);
    LS_CHECK_INT (m.encoder_layers, ==, cases[i].encoder);
    LS_CHECK_INT (m.decoder_seq, ==, cases[i].decoder_seq);
    LS_CHECK (m.mlp == cases[i].mlp);
    ls_model_clear (&m);
  }
}

/* Published sizes that the table has not: Falcon-H1-7B, Kimi-Linear-48B-A3B, T5 v1.1 XXL, Bamba-9B, LFM2-8B-A1B,
 * Phi-3.5-MoE, StarCoder, dots.llm1. */
static void
parameters_of_other_models (void)
{
  static const struct {
    const char *keys;
    double total, active; /* billions */
  } cases[] = {
    { "\"model_type\":\"falcon_h1\",\"hidden_size\":3072,\"num_hidden_layers\":44,\"num_attention_heads\":12,"
      "\"num_key_value_heads\":2,\"head_dim\":128,\"intermediate_size\":12288,\"vocab_size\":130048,"
      "\"mamba_d_state\":256,\"mamba_n_groups\":1,\"mamba_n_heads\":24,\"mamba_d_head\":128",
      7.59, 7.59 },
    { "\"model_type\":\"kimi_linear\",\"hidden_size\":2304,\"num_hidden_layers\":27,\"num_attention_heads\":32,"
      "\"intermediate_size\":9216,\"moe_intermediate_size\":1024,\"num_experts\":256,"
      "\"num_experts_per_token\":8,\"num_shared_experts\":1,\"first_k_dense_replace\":1,\"kv_lora_rank\":512,"
      "\"q_lora_rank\":null,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"
      "\"vocab_size\":163840,\"linear_attn_config\":{\"full_attn_layers\":[4,8,12,16,20,24,27],"
      "\"head_dim\":128,\"num_heads\":32}",
      49.1, 3.48 },
    { "\"model_type\":\"t5\",\"d_model\":4096,\"d_kv\":64,\"d_ff\":10240,\"num_layers\":24,\"num_heads\":64,"
      "\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":false,\"vocab_size\":32128",
      11.135, 11.135 },
    { "\"model_type\":\"bamba\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"attn_layer_indices\":[9,18,27],"
      "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,\"mamba_d_state\":128,"
      "\"vocab_size\":128256,\"max_position_embeddings\":262144",
      9.78, 9.78 },
    { "\"model_type\":\"lfm2_moe\",\"hidden_size\":2048,\"num_hidden_layers\":24,\"num_attention_heads\":32,"
      "\"num_key_value_heads\":8,\"intermediate_size\":7168,\"moe_intermediate_size\":1792,\"num_experts\":32,"
      "\"num_experts_per_tok\":4,\"num_dense_layers\":2,\"conv_L_cache\":3,\"vocab_size\":65536,"
      "\"max_position_embeddings\":128000,\"layer_types\":[\"conv\",\"conv\",\"full_attention\",\"conv\",\"conv\","
      "\"conv\",\"full_attention\",\"conv\",\"conv\",\"conv\",\"full_attention\",\"conv\",\"conv\",\"conv\","
      "\"full_attention\",\"conv\",\"conv\",\"conv\",\"full_attention\",\"conv\",\"conv\",\"full_attention\","
      "\"conv\",\"conv\"]",
      8.34, 1.56 },
    { "\"model_type\":\"phimoe\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
      "\"num_key_value_heads\":8,\"intermediate_size\":6400,\"num_local_experts\":16,\"num_experts_per_tok\":2,"
      "\"vocab_size\":32064,\"max_position_embeddings\":131072,\"attention_bias\":true",
      41.87, 6.64 },
    { "\"model_type\":\"gpt_bigcode\",\"n_embd\":6144,\"n_layer\":40,\"n_head\":48,\"n_inner\":24576,"
      "\"vocab_size\":49152,\"n_positions\":8192",
      15.517, 15.517 },
    { "\"model_type\":\"dots1\",\"hidden_size\":4096,\"num_hidden_layers\":62,\"num_attention_heads\":32,"
      "\"num_key_value_heads\":32,\"head_dim\":128,\"intermediate_size\":10944,\"moe_intermediate_size\":1408,"
      "\"n_routed_experts\":128,\"n_shared_experts\":2,\"num_experts_per_tok\":6,\"first_k_dense_replace\":1,"
      "\"vocab_size\":152064,\"max_position_embeddings\":32768",
      142.8, 14.15 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = g_strdup_printf ("{%s}", cases[i].keys);
    LsModel m;
    if (!read_text (text, &m, NULL))
      continue;
    LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab) / 1e9, cases[i].total, 2e-3);
    LS_CHECK_NEAR ((double) ls_model_active_params (&m, m.vocab) / 1e9, cases[i].active, 2e-2);
    ls_model_clear (&m);
  }
}

/* Lists of one number a layer, an MLP that is narrower than it is said, keys of a type that are off, flat files of
 * models that see; layers that differ in what cannot differ are refused. */
static void
lists_and_wrappers (void)
{
  static const struct {
    const char *keys, *refused; /* NULL: read */
    double total, active;       /* billions */
  } cases[] = {
    { "\"model_type\":\"hunyuan_v1_moe\",\"hidden_size\":4096,\"intermediate_size\":3072,"
      "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":128167,"
      "\"num_experts\":64,\"moe_topk\":[8,8,8],\"num_shared_expert\":[1,1],"
      "\"moe_intermediate_size\":[3072,3072],\"use_cla\":false,\"tie_word_embeddings\":true",
      NULL, 80.393, 12.75 },
    { "\"model_type\":\"hunyuan_v1_moe\",\"hidden_size\":4096,\"intermediate_size\":3072,"
      "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"vocab_size\":128167,"
      "\"num_experts\":64,\"moe_topk\":[8,4],\"moe_intermediate_size\":3072",
      "as many numbers in lists of widths as there are layers", 0, 0 },
    { "\"model_type\":\"hunyuan\",\"use_cla\":true", "layers that share keys and values", 0, 0 },
    { "\"model_type\":\"longcat_flash\",\"hidden_size\":6144,\"ffn_hidden_size\":12288,\"num_layers\":28,"
      "\"num_attention_heads\":64,\"expert_ffn_hidden_size\":2048,\"n_routed_experts\":512,"
      "\"zero_expert_num\":256,\"moe_topk\":12,\"q_lora_rank\":1536,\"kv_lora_rank\":512,"
      "\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"vocab_size\":131072",
      NULL, 560.665, 27.95 },
    { "\"model_type\":\"step3p5\",\"hidden_size\":4096,\"intermediate_size\":11264,\"num_hidden_layers\":45,"
      "\"num_attention_heads\":64,\"num_attention_groups\":8,\"head_dim\":128,\"vocab_size\":128896,"
      "\"moe_num_experts\":288,\"moe_top_k\":8,\"moe_intermediate_size\":1280,\"share_expert_dim\":1280,"
      "\"attention_other_setting\":{\"num_attention_heads\":96,\"num_attention_groups\":8,\"head_dim\":128}",
      NULL, 196.94, 11.971 },
    { "\"model_type\":\"gemma4_text\",\"hidden_size\":5376,\"intermediate_size\":21504,"
      "\"num_hidden_layers\":60,\"num_attention_heads\":32,\"num_key_value_heads\":16,\"sliding_window\":1024,"
      "\"head_dim\":256,\"global_head_dim\":512,\"num_global_key_value_heads\":4,\"attention_k_eq_v\":true,"
      "\"num_kv_shared_layers\":0,\"hidden_size_per_layer_input\":0",
      NULL, 30.697, 30.697 },
    { "\"model_type\":\"gemma3n_text\"", NULL, 6.835, 6.835 }, /* E4B, as the type has it */
    { "\"model_type\":\"gemma3n_text\",\"num_hidden_layers\":30,\"intermediate_size\":8192," /* E2B */
      "\"num_kv_shared_layers\":10",
      NULL, 4.437, 4.437 },
    { "\"model_type\":\"lfm2\",\"hidden_size\":2048,\"block_ff_dim\":12288,\"num_hidden_layers\":16,"
      "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":65536,\"conv_L_cache\":3,"
      "\"full_attn_idxs\":[2,5,8,10,12,14]",
      NULL, 1.1703, 1.1703 },
    { "\"model_type\":\"qwen2_vl\",\"architectures\":[\"Qwen2VLForConditionalGeneration\"],"
      "\"hidden_size\":3584,\"intermediate_size\":18944,\"num_hidden_layers\":28,\"num_attention_heads\":28,"
      "\"num_key_value_heads\":4,\"vocab_size\":152064,\"vision_config\":{\"depth\":32}",
      NULL, 7.6156, 7.6156 },
    { "\"model_type\":\"minimax_m2\",\"hidden_size\":512,\"intermediate_size\":512,\"num_hidden_layers\":4,"
      "\"num_attention_heads\":4,\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_layer_freq\":[1,0,1,1],"
      "\"vocab_size\":1000",
      "layers that differ in this one by one cannot be simulated", 0, 0 },
    { "\"model_type\":\"bert\",\"architectures\":[\"BertForMaskedLM\"]", "not known to be a decoder", 0, 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = g_strdup_printf ("{%s}", cases[i].keys);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LsModel m;
    bool ok = doc && ls_model_read (doc, &m, NULL, diags);
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (ok == !cases[i].refused && (ok || strstr (wrong, cases[i].refused)), __FILE__, __LINE__,
                   "%s: %s", cases[i].keys, wrong);
    if (!ok)
      continue;
    LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab) / 1e9, cases[i].total, 1e-3);
    LS_CHECK_NEAR ((double) ls_model_active_params (&m, m.vocab) / 1e9, cases[i].active, 1e-3);
    ls_model_clear (&m);
  }
}

/* The first layers by moe_layer_freq. */
static void
lists_that_say_which_layers_have_experts (void)
{
  LsModel m;
  if (read_text ("{\"model_type\":\"glm4_moe_lite\",\"hidden_size\":512,\"intermediate_size\":512,"
                 "\"num_hidden_layers\":5,\"num_attention_heads\":4,\"n_routed_experts\":4,"
                 "\"num_experts_per_tok\":2,\"moe_intermediate_size\":64,\"kv_lora_rank\":64,"
                 "\"qk_rope_head_dim\":16,\"qk_nope_head_dim\":16,\"v_head_dim\":32,\"vocab_size\":1000,"
                 "\"moe_layer_freq\":[0,0,1,1,1]}",
                 &m, NULL)) {
    LS_CHECK_INT (m.n_dense_layers, ==, 2);
    LS_CHECK_INT (m.moe_every, ==, 1);
    LS_CHECK_INT (m.seq, ==, 202752);
    ls_model_clear (&m);
  }
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
      = table && g_file_test (table, G_FILE_TEST_EXISTS) ? ls_csv_load (table, diags) : NULL;
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
               LS_TEST (windows_and_norms_on_both_sides), LS_TEST (names_of_publishers),
               LS_TEST (mixers_stand_where_the_file_says), LS_TEST (an_encoder_and_its_decoder),
               LS_TEST (parameters_of_other_models), LS_TEST (lists_and_wrappers),
               LS_TEST (lists_that_say_which_layers_have_experts), LS_TEST (parameters_are_as_counted))
