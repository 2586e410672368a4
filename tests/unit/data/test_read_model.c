/* Pins: what a model file and a Hugging Face config.json of each family become.
 * The configurations are those of published models, shortened to the keys that
 * matter; parameter counts hold them against the published sizes. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"

static bool
read_text (const char *text, const char *name, LsModel *model, GPtrArray *notes)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), name, diags);
  bool ok = doc && ls_model_read (doc, model, notes, diags);
  g_autofree char *wrong = ls_diag_list_format (diags);
  return ls_check_impl (ok, __FILE__, __LINE__, "%s", wrong);
}

static void
defaults_of_a_native_file (void)
{
  LsModel m;
  if (!read_text (
          "{\"schema\":\"lockstep.model/1\",\"name\":\"t\",\"source\":\"test\",\"layers\":2,\"hidden\":256,\"heads\":4,"
          "\"vocab\":1000,\"seq\":128,\"mlp\":\"gelu\",\"norm\":\"layernorm\",\"position\":\"alibi\"}",
          "t.json", &m, NULL))
    return;
  LS_CHECK (m.n_kv_heads == 4 && m.head_dim == 64 && m.ffn == 1024);
  LS_CHECK (m.attention == LS_ATTENTION_FLASH && m.position == LS_POSITION_ALIBI);
  LS_CHECK (!m.linear_bias && !m.qkv_bias && !m.tied_embeddings && !m.dropout);
  ls_model_clear (&m);
}

static void
llama (void)
{
  LsModel m;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  if (!read_text (
          "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_act\":\"silu\","
          "\"hidden_size\":4096,\"intermediate_size\":14336,\"num_attention_heads\":32,\"num_hidden_layers\":32,"
          "\"num_key_value_heads\":8,\"vocab_size\":128256,\"max_position_embeddings\":8192,"
          "\"tie_word_embeddings\":false,\"attention_bias\":false,\"rope_scaling\":null,\"quirk\":1}",
          "models/llama3-8b/config.json", &m, notes))
    return;
  LS_CHECK_STR (m.name, "llama3-8b");
  LS_CHECK (m.n_layers == 32 && m.hidden == 4096 && m.n_kv_heads == 8 && m.head_dim == 128 && m.ffn == 14336);
  LS_CHECK (m.mlp == LS_MLP_SWIGLU && m.norm == LS_NORM_RMSNORM && m.position == LS_POSITION_ROPE);
  LS_CHECK (!m.linear_bias && !m.tied_embeddings && !m.dropout && m.seq == 8192);
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 8.03e9, 0.01);
  LS_CHECK_INT (notes->len, ==, 2);
  LS_CHECK_STR (notes->pdata[0], "key \"quirk\" is not used");
  ls_model_clear (&m);
}

static void
mistral_slides (void)
{
  LsModel m;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  if (!read_text (
          "{\"architectures\":[\"MistralForCausalLM\"],\"model_type\":\"mistral\",\"hidden_act\":\"silu\","
          "\"hidden_size\":4096,\"intermediate_size\":14336,\"max_position_embeddings\":32768,"
          "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":8,\"sliding_window\":4096,"
          "\"vocab_size\":32000}",
          "mistral-7b.json", &m, notes))
    return;
  LS_CHECK_STR (m.name, "mistral-7b");
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 7.24e9, 0.01);
  LS_CHECK (m.window == 4096 && m.full_every == 0);
  LS_CHECK_INT (notes->len, ==, 1); /* sequence length */
  ls_model_notes_drop_length (notes);
  LS_CHECK_INT (notes->len, ==, 0);
  ls_model_clear (&m);
}

static void
qwen2_has_qkv_biases (void)
{
  LsModel m;
  if (!read_text (
          "{\"model_type\":\"qwen2\",\"hidden_act\":\"silu\",\"hidden_size\":3584,\"intermediate_size\":18944,"
          "\"max_position_embeddings\":131072,\"num_attention_heads\":28,\"num_hidden_layers\":28,"
          "\"num_key_value_heads\":4,\"vocab_size\":152064,\"use_sliding_window\":false,\"sliding_window\":131072}",
          "t.json", &m, NULL))
    return;
  LS_CHECK (m.qkv_bias && !m.linear_bias && !m.tied_embeddings);
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 7.62e9, 0.01);
  ls_model_clear (&m);
}

static void
gpt2_has_its_own_spelling (void)
{
  LsModel m;
  if (!read_text (
          "{\"activation_function\":\"gelu_new\",\"architectures\":[\"GPT2LMHeadModel\"],\"attn_pdrop\":0.1,"
          "\"model_type\":\"gpt2\",\"n_ctx\":1024,\"n_embd\":1600,\"n_head\":25,\"n_layer\":48,\"n_positions\":1024,"
          "\"n_inner\":null,\"resid_pdrop\":0.1,\"vocab_size\":50257}",
          "gpt2-xl.json", &m, NULL))
    return;
  LS_CHECK (m.ffn == 6400 && m.tied_embeddings && m.linear_bias && m.dropout
            && m.position == LS_POSITION_LEARNED);
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 1.558e9, 0.01);
  ls_model_clear (&m);
}

static void
gpt_neox_runs_side_by_side (void)
{
  LsModel m;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  if (!read_text (
          "{\"architectures\":[\"GPTNeoXForCausalLM\"],\"model_type\":\"gpt_neox\",\"hidden_act\":\"gelu_fast\","
          "\"hidden_size\":6144,\"intermediate_size\":24576,\"max_position_embeddings\":2048,"
          "\"num_attention_heads\":64,\"num_hidden_layers\":44,\"vocab_size\":50432,\"use_cache\":true}",
          "gpt-neox-20b.json", &m, notes))
    return;
  LS_CHECK (m.position == LS_POSITION_ROPE && m.linear_bias && !m.dropout && !m.tied_embeddings);
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 20.55e9, 0.01);
  LS_CHECK_INT (notes->len, ==, 3); /* what the file leaves out, too */
  LS_CHECK_STR (notes->pdata[0], "the file leaves out what its class has defaults of: rotary_pct 0.25");
  ls_model_clear (&m);
}

static void
opt_has_relu (void)
{
  LsModel m;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  if (!read_text (
          "{\"activation_function\":\"relu\",\"architectures\":[\"OPTForCausalLM\"],\"model_type\":\"opt\","
          "\"do_layer_norm_before\":true,\"dropout\":0.1,\"ffn_dim\":16384,\"hidden_size\":4096,"
          "\"max_position_embeddings\":2048,\"num_attention_heads\":32,\"num_hidden_layers\":32,\"vocab_size\":50272,"
          "\"word_embed_proj_dim\":4096}",
          "opt-6.7b.json", &m, notes))
    return;
  LS_CHECK (m.mlp == LS_MLP_GELU && m.tied_embeddings && m.linear_bias && m.dropout);
  LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), 6.66e9, 0.01);
  LS_CHECK_INT (notes->len, ==, 2);
  ls_model_clear (&m);
}

/* The family says how many matrices an MLP has; what it does between them is noted if
 * it is not one of those whose cost is meant. */
static void
an_unknown_activation_is_noted (void)
{
  LsModel m;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  if (!read_text (
          "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_act\":\"xielu\","
          "\"hidden_size\":4096,\"intermediate_size\":14336,\"num_attention_heads\":32,\"num_hidden_layers\":32,"
          "\"num_key_value_heads\":8,\"vocab_size\":128256,\"max_position_embeddings\":8192}",
          "x.json", &m, notes))
    return;
  LS_CHECK_INT (notes->len, ==, 2);
  LS_CHECK_STR (notes->pdata[1], "the activation is taken to cost as much as GELU or SiLU");
  ls_model_clear (&m);
}

static void
falcons_share_keys_in_two_ways (void)
{
  LsModel seven, forty;
  if (!read_text (
          "{\"model_type\":\"falcon\",\"hidden_size\":4544,\"num_attention_heads\":71,\"num_hidden_layers\":32,"
          "\"vocab_size\":65024,\"multi_query\":true,\"new_decoder_architecture\":false,\"bias\":false,\"alibi\":false,"
          "\"hidden_dropout\":0.0}",
          "falcon-7b.json", &seven, NULL))
    return;
  LS_CHECK (seven.n_kv_heads == 1 && seven.seq == 2048 && seven.ffn == 4 * 4544 && seven.tied_embeddings
            && !seven.dropout);
  LS_CHECK_NEAR ((double) ls_model_params (&seven, seven.vocab), 6.92e9, 0.01);
  ls_model_clear (&seven);
  if (!read_text (
          "{\"model_type\":\"falcon\",\"hidden_size\":8192,\"num_attention_heads\":128,\"num_hidden_layers\":60,"
          "\"num_kv_heads\":8,\"vocab_size\":65024,\"new_decoder_architecture\":true,\"alibi\":true}",
          "falcon-40b.json", &forty, NULL))
    return;
  LS_CHECK (forty.n_kv_heads == 8 && forty.position == LS_POSITION_ALIBI);
  LS_CHECK_NEAR ((double) ls_model_params (&forty, forty.vocab), 41.3e9, 0.02);
  ls_model_clear (&forty);
}

/* What config.json of published checkpoints says, and how many parameters they have. */
static void
mixtures_of_experts (void)
{
  static const struct {
    const char *text;
    uint32_t n_moe_layers, n_notes;
    double params, tolerance;
  } models[] = {
    { "{\"architectures\":[\"MixtralForCausalLM\"],\"model_type\":\"mixtral\",\"hidden_size\":4096,\"intermediate_size\":14336,"
      "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":8,\"vocab_size\":32000,"
      "\"max_position_embeddings\":32768,\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":null}",
      32, 1, 46702792704, 0 },
    { "{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"intermediate_size\":6144,\"moe_intermediate_size\":768,\"head_dim\":128,"
      "\"num_attention_heads\":32,\"num_hidden_layers\":48,\"num_key_value_heads\":4,\"vocab_size\":151936,\"mlp_only_layers\":[],"
      "\"decoder_sparse_step\":1,\"max_position_embeddings\":40960,\"num_experts\":128,\"num_experts_per_tok\":8}",
      48, 2, 30532122624, 0 },
    { "{\"model_type\":\"qwen2_moe\",\"hidden_size\":2048,\"intermediate_size\":5632,\"moe_intermediate_size\":1408,"
      "\"shared_expert_intermediate_size\":5632,\"num_attention_heads\":16,\"num_hidden_layers\":24,\"num_key_value_heads\":16,"
      "\"vocab_size\":151936,\"max_position_embeddings\":8192,\"num_experts\":60,\"num_experts_per_tok\":4}",
      24, 3, 14.3e9, 0.01 },
    { "{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"intermediate_size\":18432,\"moe_intermediate_size\":2048,"
      "\"num_attention_heads\":128,\"num_hidden_layers\":61,\"num_key_value_heads\":128,\"vocab_size\":129280,\"moe_layer_freq\":1,"
      "\"max_position_embeddings\":163840,\"n_routed_experts\":256,\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
      "\"first_k_dense_replace\":3,\"q_lora_rank\":1536,\"kv_lora_rank\":512,\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,"
      "\"v_head_dim\":128,\"num_nextn_predict_layers\":1}",
      58, 3, 671026404352, 0 },
    { "{\"model_type\":\"llama4_text\",\"hidden_size\":5120,\"intermediate_size\":8192,\"intermediate_size_mlp\":16384,\"head_dim\":128,"
      "\"num_attention_heads\":40,\"num_hidden_layers\":48,\"num_key_value_heads\":8,\"vocab_size\":202048,"
      "\"max_position_embeddings\":1048576,\"num_local_experts\":128,\"num_experts_per_tok\":1,\"interleave_moe_layer_step\":2}",
      24, 2, 400e9, 0.01 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (models); i++) {
    LsModel m;
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    if (!read_text (models[i].text, "config.json", &m, notes))
      continue;
    LS_CHECK_NEAR ((double) ls_model_params (&m, m.vocab), models[i].params, models[i].tolerance);
    LS_CHECK_INT (ls_model_n_moe_layers (&m), ==, models[i].n_moe_layers);
    LS_CHECK_INT (notes->len, ==, models[i].n_notes);
    ls_model_clear (&m);
  }
}

/* --- models that ship ------------------------------------------------------------------------------- */

/* Pins the models that ship: each has the size that its source publishes. */

/* Narayanan et al. 2021 Table 1 (Figure 13 for 162.2B), Korthikanti et al. 2022
 * Table 3, Llama 3 checkpoints (8,030,261,248; 70,553,706,496; 405,853,388,800); of models with
 * experts the checkpoints, and what a token meets: Mixtral 8x7B, Qwen3-30B-A3B, DeepSeek-V3
 * (46,702,792,704, 30,532,122,624, 671,026,419,200, of which 58 * 256 are biases of the
 * router that no gradient changes); 141 B and 39 B of Mixtral 8x22B, 235 B and
 * 22 B of Qwen3, 236 B and 21 B of DeepSeek-V2 as announced. */
static const struct {
  const char *name;
  double params;
  double half_digit;                /* of the last one printed; 0: exact */
  double active, active_half_digit; /* 0: all */
} published[] = {
  { "gpt-1.7b", 1.7e9, 0.05e9 },
  { "gpt-3.6b", 3.6e9, 0.05e9 },
  { "gpt-7.5b", 7.5e9, 0.05e9 },
  { "gpt-18.4b", 18.4e9, 0.05e9 },
  { "gpt-39.1b", 39.1e9, 0.05e9 },
  { "gpt-76.1b", 76.1e9, 0.05e9 },
  { "gpt-145.6b", 145.6e9, 0.05e9 },
  { "gpt-162b", 162.2e9, 0.05e9 },
  { "gpt-310.1b", 310.1e9, 0.05e9 },
  { "gpt-529.6b", 529.6e9, 0.05e9 },
  { "gpt-1008b", 1008.0e9, 0.05e9 },
  { "gpt-22b", 22e9, 0.5e9 },
  { "gpt3-175b", 175e9, 0.5e9 },
  { "llama3.1-8b", 8030261248, 0 },
  { "llama3.1-70b", 70553706496, 0 },
  { "llama3.1-405b", 405853388800, 0 },
  { "mixtral-8x7b", 46702792704, 0, 12879925248, 0 },
  { "mixtral-8x22b", 141e9, 0.5e9, 39e9, 0.5e9 },
  { "qwen3-30b-a3b", 30532122624, 0, 3353032704, 0 },
  { "qwen3-235b-a22b", 235e9, 0.5e9, 22e9, 0.5e9 },
  { "deepseek-v2", 236e9, 0.5e9, 21e9, 0.5e9 },
  { "deepseek-v3", 671026419200 - 58 * 256, 0, 37552282624, 0 },
  /* what is active is published without the embedding */
  { "deepseek-v4-flash", 284e9, 0.5e9, 13e9 + 129280 * 4096, 0.5e9 },
  { "deepseek-v4-pro", 1.6e12, 0.05e12, 49e9 + 129280 * 7168, 0.5e9 },
};

static void
check (const LsModel *m, guint i)
{
  double params = (double) ls_model_params (m, m->vocab),
         active = (double) ls_model_active_params (m, m->vocab);
  LS_CHECK_STR (m->name, published[i].name);
  LS_CHECK_DOUBLE (fabs (params - published[i].params), <=, published[i].half_digit);
  if (published[i].active > 0)
    LS_CHECK_DOUBLE (fabs (active - published[i].active), <=, published[i].active_half_digit);
  else
    LS_CHECK_DOUBLE (active, ==, params);
}

static void
sizes_are_as_published (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (published); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m;
    if (!LS_CHECK (ls_model_load (published[i].name, &m, NULL, diags)))
      continue;
    check (&m, i);
    ls_model_clear (&m);
  }
}

/* A new model gets a row above. */
static void
every_model_has_a_published_size (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_MODELS);
  for (guint i = 0; i < entries->len; i++) {
    const char *name = ((const LsDataEntry *) entries->pdata[i])->name;
    guint k = 0;
    while (k < G_N_ELEMENTS (published) && strcmp (published[k].name, name) != 0)
      k++;
    if (!LS_CHECK (k < G_N_ELEMENTS (published)))
      g_printerr ("# %s has no row\n", name);
  }
  LS_CHECK_INT (entries->len, ==, G_N_ELEMENTS (published));
}

/* Layers by tokens of a compressed key, of which a list may have more, or by name; as the type has
 * them where neither is said. */
static void
deepseek_v4_has_compressed_keys (void)
{
  static const struct {
    const char *keys, *pattern; /* NULL: refused */
  } cases[] = {
    { ",\"compress_ratios\":[0,4,128,4,0]", "ASHS" },
    { ",\"compress_rate_csa\":8,\"compress_ratios\":[0,8,128,8]", "ASHS" },
    { ",\"compress_rates\":{\"heavily_compressed_attention\":64},\"compress_ratios\":[0,4,64,4]", "ASHS" },
    { ",\"layer_types\":[\"sliding_attention\",\"compressed_sparse_attention\",\"heavily_compressed_attention\","
      "\"sliding_attention\"]",
      "ASHA" },
    { "", "HHHS" },
    { ",\"compress_ratios\":[0,8,128,4]", NULL },
    { ",\"compress_ratios\":[0,4,128]", NULL },
    { ",\"layer_types\":[\"full_attention\"]", NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text
        = g_strdup_printf ("{\"model_type\":\"deepseek_v4\",\"num_hidden_layers\":4%s}", cases[i].keys);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LsModel m = { 0 };
    bool ok = doc && ls_model_read (doc, &m, NULL, diags);
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (ok == (cases[i].pattern != NULL), __FILE__, __LINE__, "%s: %s", cases[i].keys, wrong);
    LS_CHECK_STR (m.layer_pattern, cases[i].pattern);
    LS_CHECK_INT (m.hca_ratio, ==, !ok ? 0 : i == 2 ? 64 : 128);
    LS_CHECK_INT (m.rope_dim, ==, ok ? 64 : 0);
    ls_model_clear (&m);
  }
}

/* --model takes what hubs and programs call a published model, with changes; what looks like such a name and
 * is none is refused by what was probably meant. A file of that name would go before. */
static void
names_of_hubs_are_names (void)
{
  static const struct {
    const char *asked, *name, *complaint; /* NULL: accepted */
    guint layers;
  } cases[] = {
    { "meta-llama/Llama-3.1-8B", "llama3.1-8b", NULL, 32 },
    { "META-LLAMA/llama-3.1-8b:layers=4", "llama3.1-8b:layers=4", NULL, 4 },
    { "Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B", NULL, 24 },
    { "gpt2-xl:layers=2", "gpt2-xl:layers=2", NULL, 2 },
    { "gpt-oss-120b", "openai/gpt-oss-120b", NULL, 36 },
    { "Qwen3 8B:layers=3", "qwen3/8B:layers=3", NULL, 3 },
    { "LLaMA3.1_8b", "llama3.1-8b", NULL, 32 },
    { "gemma-3-27b", NULL, "did you mean \"litgpt/Gemma-3-27b-it\"?", 0 },
    { "8B", NULL, "no model is named \"8B\"", 0 },
    { "mixtral-8x22b-v0.1", NULL, "did you mean \"mixtral-8x22b\"?", 0 },
    { "meta-lama/Llama-3.1-8B", NULL, "did you mean \"meta-llama/Llama-3.1-8B\"?", 0 },
    { "./nowhere/Llama-3.1-8B", NULL, "cannot read", 0 },
    { "nowhere/config.json", NULL, "cannot read", 0 },
    { "meta-llama/Llama-3.1-8B:hiden=3", NULL, "did you mean \"hidden\"?", 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = { 0 };
    bool ok = ls_model_load (cases[i].asked, &m, NULL, diags);
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (ok == (cases[i].complaint == NULL), __FILE__, __LINE__, "%s: %s", cases[i].asked, wrong);
    ls_check_impl (ok || strstr (wrong, cases[i].complaint), __FILE__, __LINE__, "%s", wrong);
    LS_CHECK_STR (m.name, cases[i].name);
    LS_CHECK_INT (m.n_layers, ==, cases[i].layers);
    ls_model_clear (&m);
  }
}

/* What a repository of Hugging Face says of itself is the model of its names, and its size is the published one,
 * in 10^9 within half a percent. Without its owner it goes before what a program makes of it. */
static void
repositories_have_their_sizes (void)
{
  static const struct {
    const char *name;
    double params;
  } cases[] = {
    { "huggyllama/llama-7b", 6.738 },
    { "NousResearch/Llama-2-70b-hf", 68.977 },
    { "codellama/CodeLlama-34b-hf", 33.744 },
    { "TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1.1 },
    { "mistralai/Mistral-Nemo-Base-2407", 12.248 },
    { "microsoft/phi-2", 2.78 },
    { "google/gemma-2-9b-it", 9.242 },
    { "facebook/opt-6.7b", 6.658 },
    { "bigscience/bloom-7b1", 7.069 },
    { "EleutherAI/pythia-6.9b", 6.857 },
    { "EleutherAI/gpt-neox-20b", 20.554 },
    { "EleutherAI/gpt-j-6b", 6.051 },
    { "tiiuae/falcon-7b", 6.922 },
    { "mosaicml/mpt-7b", 6.649 },
    { "Qwen/Qwen1.5-7B", 7.721 },
    { "Qwen/Qwen2-72B", 72.706 },
    { "HuggingFaceTB/SmolLM2-1.7B", 1.711 },
    { "allenai/OLMo-2-1124-13B", 13.716 },
    { "stabilityai/stablelm-3b-4e1t", 2.795 },
    { "bigcode/starcoder2-7b", 7.174 },
    { "Qwen/Qwen1.5-MoE-A2.7B", 14.316 },
    { "unsloth/gpt-oss-20b", 20.915 },
    { "moonshotai/Kimi-K2-Instruct", 1026.5 },
    { "zai-org/GLM-4.5-Air-Base", 106.85 },
    { "google/gemma-3-27b-pt", 27.009 },
    { "Qwen/Qwen3-Next-80B-A3B-Instruct", 79.67 },
    { "pythia-12b", 11.846 },
    { "Qwen/Qwen2.5-VL-7B-Instruct", 7.616 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = { 0 };
    bool ok = ls_model_load (cases[i].name, &m, NULL, diags);
    double params = ok ? (double) ls_model_params (&m, m.vocab) / 1e9 : 0;
    ls_check_impl (fabs (params / cases[i].params - 1) <= 5e-3, __FILE__, __LINE__, "%s: %g parameters",
                   cases[i].name, params);
    ls_model_clear (&m);
  }
}

/* Of a model that sees what reads text is simulated, which who asks by name must be able to tell. */
static void
decoders_are_told_from_whole_models (void)
{
  static const struct {
    const char *name;
    bool is_whole, is_decoder;
  } cases[] = {
    { "Qwen/Qwen2-7B", true, false },
    { "Qwen/Qwen2.5-VL-7B-Instruct", false, true },
    { "llava-hf/llava-1.5-7b-hf", false, true },
    { "xtuner/Qwen3VLDense8BConfig", false, true },
    { "nobody/knows-it", false, false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    bool is_decoder, is_there = ls_model_of_name (cases[i].name, &m, &is_decoder);
    LS_CHECK ((is_there && !is_decoder) == cases[i].is_whole);
    LS_CHECK ((is_there && is_decoder) == cases[i].is_decoder);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (defaults_of_a_native_file), LS_TEST (llama), LS_TEST (mistral_slides),
               LS_TEST (qwen2_has_qkv_biases), LS_TEST (gpt2_has_its_own_spelling),
               LS_TEST (gpt_neox_runs_side_by_side), LS_TEST (opt_has_relu),
               LS_TEST (an_unknown_activation_is_noted), LS_TEST (falcons_share_keys_in_two_ways),
               LS_TEST (mixtures_of_experts), LS_TEST (sizes_are_as_published),
               LS_TEST (every_model_has_a_published_size), LS_TEST (deepseek_v4_has_compressed_keys),
               LS_TEST (names_of_hubs_are_names), LS_TEST (repositories_have_their_sizes),
               LS_TEST (decoders_are_told_from_whole_models))
