/* Pins config.json files whose layers are said in blocks, or whose model is a part of the file; and counts of
 * types, total and active. */
#include "ls_test.h"

#include <string.h>

#include "config_params.h"
#include "data/jobs/job_files.h"

#define QWEN3_8B                                                                                             \
  "\"hidden_size\":4096,\"intermediate_size\":12288,\"num_hidden_layers\":36,\"num_attention_heads\":32,"    \
  "\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":151936"
#define QWEN2_7B                                                                                             \
  "\"hidden_size\":3584,\"intermediate_size\":18944,\"num_hidden_layers\":28,\"num_attention_heads\":28,"    \
  "\"num_key_value_heads\":4,\"vocab_size\":152064"
#define QWEN3_30B                                                                                            \
  "\"hidden_size\":2048,\"intermediate_size\":6144,\"moe_intermediate_size\":768,\"num_hidden_layers\":48,"  \
  "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"num_experts\":128,"               \
  "\"num_experts_per_tok\":8,\"vocab_size\":151936"

#define MAINCODER                                                                                            \
  (151936ull * 1536 + 1536                                                                                   \
   + 32 * (2 * 1536ull * 1536 + 2 * 1536 * 384 + 3 * 1536ull * 4096 + 2 * 1536 + 2 * 96))
#define PARAM2(experts_)                                                                                     \
  (2 * 128000ull * 2048 + 2048 + 21 * (2 * 2048ull * 2048 + 2 * 2048ull * 512 + 2 * 2048 + 2 * 64)           \
   + 3 * 2048ull * 9216 + 20 * (3 * 2048ull * (experts_ * 2048ull + 4096) + 2048 * 64))
#define PANGU_R(experts_)                                                                                    \
  (2 * 153600ull * 4608 + 4608 + 50 * (4608ull * (64 * 192 + 4 * 192 + 4 * 128 + 64 * 128) + 4 * 4608)       \
   + 4 * 3 * 4608ull * 10240 + 46 * (3 * 4608ull * (experts_ * 1280ull + 2560) + 4608 * 80))
#define ERNIE(experts_)                                                                                      \
  (103424ull * 2560 + 2560 + 28 * (2 * 2560ull * 2560 + 2 * 2560ull * 512 + 2 * 2560) + 3 * 2560ull * 12288  \
   + 27 * (3 * 2560ull * 1536 * (experts_ + 2) + 2560 * 64))
#define PLAMO3                                                                                               \
  (2 * 107520ull * 4096 + 4096                                                                               \
   + 32 * (2 * 4096ull * 4096 + 2 * 4096ull * 512 + 3 * 4096ull * 16384 + 4 * 4096 + 2 * 128))

/* Of Qwen3-8B and Qwen2.5-7B their published counts; LLaDA-8B 8.02 B, LLaDA2.0-mini 16 B, Pangu Pro MoE 72 B and
 * 16.5 B active, openPangu-Ultra 718 B, Sarvam-105B, FLM-2-52B, Ouro-1.4B, Nanbeige4.2-3B, GroveMoE 33 B,
 * Maincoder-1B, Param2-17B, openPangu-R-72B (73.8 B, 15.2 B active): by the shapes of their layers, as PLaMo 3, what
 * reads of ERNIE-4.5-VL-28B (21.8 B of 28, the rest are experts of images and an encoder), and of HunyuanOCR and
 * PaddleOCR-VL, about half of whose 1.0 and 0.9 B are an image encoder's. */
static void
types_count_as_published (void)
{
  static const struct {
    const char *keys;
    uint64_t total, active;
  } cases[] = {
    { "\"model_type\":\"KeyeVL1_5\",\"vision_config\":{}," QWEN3_8B, 8190735360, 8190735360 },
    { "\"model_type\":\"sdar\"," QWEN3_8B, 8190735360, 8190735360 },
    { "\"model_type\":\"qwen3_asr\",\"thinker_config\":{\"text_config\":{" QWEN3_8B "}}", 8190735360,
      8190735360 },
    { "\"model_type\":\"Dream\",\"architectures\":[\"DreamModel\"]," QWEN2_7B, 7615616512, 7615616512 },
    { "\"model_type\":\"llava_qwen\"," QWEN2_7B, 7615616512, 7615616512 },
    { "\"model_type\":\"kimi_audio\",\"architectures\":[\"MoonshotKimiaForCausalLM\"]," QWEN2_7B, 7615616512,
      7615616512 },
    { "\"model_type\":\"molmo\",\"embedding_size\":152064,\"hidden_size\":3584,\"intermediate_size\":37888,"
      "\"num_hidden_layers\":28,\"num_attention_heads\":28,\"num_key_value_heads\":4,\"qkv_bias\":true,"
      "\"attention_layer_norm\":false,\"max_position_embeddings\":4096",
      7615616512, 7615616512 },
    { "\"model_type\":\"llada\",\"architectures\":[\"LLaDAModelLM\"],\"d_model\":4096,\"n_heads\":32,"
      "\"n_layers\":32,\"embedding_size\":126464,\"mlp_hidden_size\":12288,\"attention_layer_norm\":false",
      8015581184, 8015581184 },
    { "\"model_type\":\"llada2_moe\",\"architectures\":[\"LLaDA2MoeModelLM\"],\"hidden_size\":2048,"
      "\"intermediate_size\":5120,\"moe_intermediate_size\":512,\"num_attention_heads\":16,"
      "\"num_key_value_heads\":4,\"head_dim\":128,\"num_experts\":256,\"num_experts_per_tok\":8,"
      "\"num_hidden_layers\":20,\"vocab_size\":157184",
      16255638528, 1432968192 },
    { "\"model_type\":\"PanguProMoE\",\"vocab_size\":153376,\"bias\":true", 71988532224, 16497890304 },
    { "\"model_type\":\"PanguEmbedded\"", 8030748672, 8030748672 },
    { "\"model_type\":\"pangu_ultra_moe\",\"hidden_size\":7680,\"intermediate_size\":18432,"
      "\"moe_intermediate_size\":2048,\"num_hidden_layers\":61,\"num_attention_heads\":128,"
      "\"num_routed_experts\":256,\"num_experts_per_tok\":8,\"attention_kv_lora_dim\":512,"
      "\"attention_q_lora_dim\":1536,\"attention_qk_rope_dim\":64,\"attention_v_dim\":128,"
      "\"attention_qk_dim\":128,\"vocab_size\":153600,\"max_position_embeddings\":131072",
      719093767680, 40371494400 },
    { "\"model_type\":\"sarvam_mla\",\"hidden_size\":4096,\"intermediate_size\":16384,"
      "\"moe_intermediate_size\":2048,\"num_hidden_layers\":32,\"num_attention_heads\":64,\"num_experts\":128,"
      "\"num_experts_per_tok\":8,\"num_shared_experts\":1,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,"
      "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"first_k_dense_replace\":1,\"vocab_size\":262144",
      106031763456, 12414898176 },
    { "\"model_type\":\"TeleFLM\",\"hidden_size\":8192,\"intermediate_size\":21824,\"num_hidden_layers\":64,"
      "\"num_attention_heads\":64,\"vocab_size\":80000",
      52817829888, 52817829888 },
    { "\"model_type\":\"ouro\",\"hidden_size\":2048,\"intermediate_size\":5632,\"num_hidden_layers\":24,"
      "\"num_attention_heads\":16,\"vocab_size\":49152,\"total_ut_steps\":4",
      1434650624, 1434650624 },
    { "\"model_type\":\"nanbeige\",\"hidden_size\":3072,\"intermediate_size\":10752,\"num_hidden_layers\":22,"
      "\"num_attention_heads\":48,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":166144,"
      "\"num_loops\":2",
      2 * 166144ull * 3072 + 3072
          + 22 * (2 * 3072ull * 6144 + 2 * 3072 * 1024 + 3ull * 3072 * 10752 + 2 * 3072),
      2 * 166144ull * 3072 + 3072
          + 22 * (2 * 3072ull * 6144 + 2 * 3072 * 1024 + 3ull * 3072 * 10752 + 2 * 3072) },
    { "\"model_type\":\"rnd1\",\"architectures\":[\"RND1\"]," QWEN3_30B, 30532122624, 3353032704 },
    { "\"model_type\":\"maincoder\",\"use_qk_norm\":true,\"tie_word_embeddings\":true", MAINCODER,
      MAINCODER },
    { "\"model_type\":\"param2moe\",\"hidden_size\":2048,\"intermediate_size\":9216,"
      "\"moe_intermediate_size\":2048,\"moe_shared_expert_intermediate_size\":4096,\"num_shared_experts\":2,"
      "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":64,\"num_experts\":64,"
      "\"num_experts_per_tok\":6,\"num_hidden_layers\":21,\"vocab_size\":128000,\"use_qk_norm\":true",
      PARAM2 (64), PARAM2 (6) },
    { "\"model_type\":\"PanguProMoE\",\"architectures\":[\"PanguProMoEV2ForCausalLM\"],"
      "\"hidden_size\":4608,\"intermediate_size\":10240,\"moe_intermediate_size\":1280,"
      "\"shared_expert_intermediate_size\":2560,\"num_attention_heads\":64,\"num_key_value_heads\":4,"
      "\"num_experts\":80,\"num_experts_per_tok\":8,\"num_hidden_layers\":50,\"vocab_size\":153600,"
      "\"qk_nope_dim\":128,\"qk_rope_dim\":64,\"v_channels\":128,\"sandwich_norm\":true,"
      "\"mlp_only_layers\":[0,1,2,3]",
      PANGU_R (80), PANGU_R (8) },
    { "\"model_type\":\"plamo3\",\"hidden_size\":4096,\"intermediate_size\":16384,\"num_hidden_layers\":32,"
      "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"vocab_size\":107520,"
      "\"window_size\":2048,\"max_position_embeddings\":4096",
      PLAMO3, PLAMO3 },
    { "\"model_type\":\"paddleocr_vl\",\"hidden_size\":1024,\"intermediate_size\":3072,"
      "\"num_hidden_layers\":18,\"num_attention_heads\":16,\"num_key_value_heads\":2,\"head_dim\":128,"
      "\"vocab_size\":103424,\"tie_word_embeddings\":false,\"vision_config\":{}",
      466654208, 466654208 },
    { "\"model_type\":\"ernie4_5_moe_vl\",\"hidden_size\":2560,\"intermediate_size\":12288,"
      "\"moe_intermediate_size\":[1536,512],\"moe_num_experts\":[64,64],\"moe_k\":6,"
      "\"moe_num_shared_experts\":2,\"moe_layer_start_index\":[1,1],\"moe_layer_end_index\":[29,28],"
      "\"moe_layer_interval\":1,\"num_hidden_layers\":28,\"num_attention_heads\":20,"
      "\"num_key_value_heads\":4,\"vocab_size\":103424,\"vision_config\":{}",
      ERNIE (64), ERNIE (6) },
    { "\"model_type\":\"hunyuan_vl\",\"hidden_size\":1024,\"intermediate_size\":3584,\"num_hidden_layers\":24,"
      "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"attention_head_dim\":128,\"num_experts\":1,"
      "\"vocab_size\":120818,\"tie_word_embeddings\":true,\"max_position_embeddings\":32768,"
      "\"vision_config\":{}",
      539010048, 539010048 },
    { "\"model_type\":\"grove_moe\"," QWEN3_30B, 30532122624 + 48ull * 64 * 3 * 2048 * 128,
      3353032704 + 48ull * 8 * 3 * 2048 * 128 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, cases[i].total);
    LS_CHECK_INT (active, ==, cases[i].active);
    LS_CHECK_STR (said, "");
  }
}

/* Four passes through 24 layers: 96, of which 24 have weights. */
static void
layers_come_again (void)
{
  static const char text[] = "{\"model_type\":\"ouro\",\"hidden_size\":512,\"intermediate_size\":1024,"
                             "\"num_hidden_layers\":4,\"num_attention_heads\":8,\"vocab_size\":1000,"
                             "\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\","
                             "\"full_attention\"],\"total_ut_steps\":3}";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  LsModel m = { 0 };
  LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags));
  LS_CHECK (m.n_layers == 12 && m.own_layers == 4 && m.window == 0 && m.norms == LS_NORMS_BOTH);
  ls_model_clear (&m);
}

/* Pins: when cos and sin of a rotation are times a factor, as YaRN's formula says; not where the two parts of
 * that cancel, as DeepSeek-V3's do. */
static void
some_rotations_are_scaled (void)
{
  static const struct {
    const char *rope;
    bool is_scaled;
  } cases[] = {
    { "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":32.0}", true },
    { "\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4}", true },
    { "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":1.0,\"mscale_all_dim\":1.0}", false },
    { "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":0.7,\"mscale_all_dim\":1.0}", true },
    { "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"attention_factor\":1.0}", false },
    { "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":1}", false },
    { "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0}", false },
    { "\"rope_scaling\":null", false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text
        = g_strdup_printf ("{\"model_type\":\"qwen3\",\"hidden_size\":512,\"num_hidden_layers\":2,"
                           "\"num_attention_heads\":8,\"vocab_size\":1000,\"intermediate_size\":256,"
                           "\"max_position_embeddings\":4096,\"num_key_value_heads\":4,\"head_dim\":64,%s}",
                           cases[i].rope);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LsModel m = { 0 };
    ls_check_impl (doc && ls_model_read (doc, &m, NULL, diags) && m.scaled_rope == cases[i].is_scaled,
                   __FILE__, __LINE__, "%s", cases[i].rope);
    ls_model_clear (&m);
  }
}

#define PUZZLE                                                                                               \
  "\"model_type\":\"gpt_oss_puzzle\",\"hidden_size\":512,\"intermediate_size\":256,\"num_hidden_layers\":3," \
  "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":64,\"vocab_size\":1000,"                 \
  "\"num_experts_per_tok\":2,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\"]"
#define NEMOTRON                                                                                             \
  "\"model_type\":\"nemotron_h_puzzle\",\"architectures\":[\"NemotronHPuzzleForCausalLM\"],"                 \
  "\"hidden_size\":512,\"intermediate_size\":256,\"num_attention_heads\":8,\"num_key_value_heads\":2,"       \
  "\"head_dim\":64,\"vocab_size\":1000,\"max_position_embeddings\":4096,\"mamba_num_heads\":8,"              \
  "\"mamba_head_dim\":64,\"n_groups\":2,\"ssm_state_size\":16,\"n_routed_experts\":8,"                       \
  "\"mlp_hidden_act\":\"relu2\""

/* Experts, windows, widths and how many are met, layer by layer; one number that no layer may differ in is
 * refused. By hand. */
static void
blocks_may_say_keys_of_the_file (void)
{
  const uint64_t rest = 2 * 1000 * 512 + 512, plain = 2 * 512 * 512 + 2 * 512 * 256 + 1024 + 512 + 2 * 512,
                 expert = 3 * 512 * 256 + 2 * 256 + 512, router = 512 + 1; /* biases everywhere */
  static const char text[]
      = "{" PUZZLE ",\"block_configs\":[{\"num_local_experts\":4,\"sliding_window\":128},"
        "{\"num_local_experts\":2,\"sliding_window\":null},"
        "{\"num_local_experts\":2,\"sliding_window\":128}]}";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  LsModel m = { 0 };
  if (LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags))) {
    LS_CHECK_INT (ls_model_params (&m, m.vocab), ==, rest + 3 * plain + 8 * (router + expert));
    LS_CHECK_INT (ls_model_active_params (&m, m.vocab), ==, rest + 3 * plain + 8 * router + 6 * expert);
    LS_CHECK (m.window == 0 && m.n_layer_window == 3 && m.layer_window[1] == 0 && m.layer_window[2] == 128);
  }
  ls_model_clear (&m);
  uint64_t active;
  g_autofree char *said = NULL, *refused = NULL;
  const uint64_t mamba = 512 * (2 * 512 + 2 * 32 + 8) + 576 * 5 + 3 * 8 + 512 + 512 * 512 + 512;
  LS_CHECK_INT (params_of (NEMOTRON
                           ",\"block_configs\":[{\"block_type\":\"mamba\"},{\"block_type\":\"moe\","
                           "\"moe_intermediate_size\":256,\"num_experts_per_tok\":2},{\"block_type\":"
                           "\"moe\",\"moe_intermediate_size\":64,\"num_experts_per_tok\":4}]",
                           &active, &said),
                ==, rest + mamba + 2 * (512 + 512 * 8) + 8 * 2 * 512 * (256 + 64));
  LS_CHECK_INT (active, ==, rest + mamba + 2 * (512 + 512 * 8) + 2 * 512 * (2 * 256 + 4 * 64));
  params_of (NEMOTRON ",\"block_configs\":[{\"block_type\":\"mamba\",\"mamba_num_heads\":8},"
                      "{\"block_type\":\"mamba\",\"mamba_num_heads\":4}]",
             &active, &refused);
  LS_CHECK (strstr (refused, "layers that differ in this one by one"));
}

#define GEMMA_SIDE(layers_)                                                                                  \
  "{\"hidden_size\":512,\"intermediate_size\":1024,\"num_attention_heads\":4,\"num_key_value_heads\":2,"     \
  "\"head_dim\":64,\"vocab_size\":1000,\"num_hidden_layers\":" layers_ ","                                   \
  "\"layer_types\":[\"full_attention\"]}"
#define GEMMA_SIDES(type_, encoder_, tied_)                                                                  \
  "\"model_type\":\"" type_                                                                                  \
  "\",\"architectures\":[\"T5GemmaForConditionalGeneration\"],\"encoder\":" encoder_                         \
  ",\"decoder\":" GEMMA_SIDE ("3") ",\"is_encoder_decoder\":true,\"tie_word_embeddings\":" tied_

/* Two and three layers: of T5Gemma the decoder's have attention to the encoder between two more norms, and there
 * are two tables of words; of T5Gemma 2 the weights of that are those of its own, and all have one table. */
static void
sides_may_be_parts_of_the_file (void)
{
  const uint64_t attention = 2 * 512 * 256 + 2 * 512 * 128, mlp = 3 * 512 * 1024, table = 1000 * 512;
  const struct {
    const char *keys;
    uint64_t total; /* 0: refused */
  } cases[] = {
    { GEMMA_SIDES ("t5gemma", GEMMA_SIDE ("2"), "true"),
      8 * attention + 5 * mlp + (2 * 4 + 3 * 6 + 2) * 512 + 2 * table },
    { GEMMA_SIDES ("t5gemma2", "{\"text_config\":" GEMMA_SIDE ("2") "}", "true"),
      5 * (attention + mlp + 4 * 512 + 2 * 64) + 2 * 512 + table },
    { GEMMA_SIDES ("t5gemma", GEMMA_SIDE ("2"), "false"), 0 },
    { GEMMA_SIDES ("t5gemma", "{\"hidden_size\":256,\"num_hidden_layers\":2}", "true"), 0 },
    { GEMMA_SIDES ("gemma2", GEMMA_SIDE ("2"), "true"), 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==, cases[i].total);
    LS_CHECK_INT (active, ==, cases[i].total);
  }
}

#define GRIFFIN                                                                                              \
  "\"model_type\":\"recurrent_gemma\",\"architectures\":[\"RecurrentGemmaForCausalLM\"],\"conv1d_width\":4," \
  "\"attention_window_size\":2048,\"logits_soft_cap\":30.0,\"attention_bias\":false,\"head_dim\":256,"       \
  "\"num_key_value_heads\":1,\"vocab_size\":256000,\"hidden_activation\":\"gelu_pytorch_tanh\","

/* RecurrentGemma-2B and -9B, 2.7 and 8.6 billion (arXiv 2404.07839): two recurrent layers, then one of attention; an
 * MLP half as wide as it says; biases on all but queries, keys, values and the table. By hand. */
static void
recurrent_layers_and_local_attention (void)
{
  static const struct {
    const char *keys;
    uint64_t h, heads, ffn, layers, attention;
  } cases[] = {
    { GRIFFIN "\"_block_types\":[\"recurrent\",\"recurrent\",\"attention\"],\"hidden_size\":2560,"
              "\"intermediate_size\":15360,\"num_attention_heads\":10,\"num_hidden_layers\":26",
      2560, 10, 7680, 26, 8 },
    { GRIFFIN "\"block_types\":[\"recurrent\",\"recurrent\",\"attention\"],\"hidden_size\":4096,"
              "\"lru_width\":4096,\"intermediate_size\":24576,\"num_attention_heads\":16,"
              "\"num_hidden_layers\":38",
      4096, 16, 12288, 38, 12 },
  };
  static const uint64_t published[] = { 2682862080, 8579977216 };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active, h = cases[i].h, ffn = cases[i].ffn, n = cases[i].layers, a = cases[i].attention;
    g_autofree char *said = NULL;
    uint64_t recurrent = 3 * h * h + 2 * cases[i].heads * 256 * 256 + 11 * h,
             attention = 2 * h * h + 2 * h * 256 + h, mlp = 3 * h * ffn + 2 * ffn + h;
    LS_CHECK_INT (params_of (cases[i].keys, &active, &said), ==,
                  256000 * h + h + (n - a) * recurrent + a * attention + n * (mlp + 2 * h));
    LS_CHECK_INT (active, ==, published[i]);
    LS_CHECK_STR (said, "");
  }
}

/* Two of four layers are recurrent, those that the file says, as wide as it says; another kind is refused. */
static void
blocks_say_which_are_recurrent (void)
{
  static const char text[]
      = "{" GRIFFIN "\"_block_types\":[\"attention\",\"recurrent\"],\"hidden_size\":1024,"
        "\"lru_width\":1280,\"num_attention_heads\":4,\"num_hidden_layers\":4}";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  LsModel m = { 0 };
  if (LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags))) {
    LS_CHECK_STR (m.layer_pattern, "AM");
    LS_CHECK (m.mixer == LS_MIXER_RGLRU && m.mixer_heads == 4 && m.mixer_head_dim == 320
              && m.mixer_conv == 4);
    LS_CHECK (m.window == 2048 && m.full_every == 0 && m.rotary_dim == 128 && m.logit_cap);
    LS_CHECK (m.linear_bias && m.unbiased_qkv && m.tied_embeddings && m.seq == 8192);
  }
  ls_model_clear (&m);
  uint64_t active;
  g_autofree char *said = NULL;
  params_of (GRIFFIN "\"block_types\":[\"recurrent\",\"griffin\"]", &active, &said);
  LS_CHECK (strstr (said, "/block_types/1: expected attention"));
}

#define PLAMO2                                                                                               \
  "\"model_type\":\"plamo2\",\"architectures\":[\"PlamoForCausalLM\"],\"attention_window_size\":2048,"       \
  "\"hidden_size\":2048,\"hidden_size_per_head\":128,\"intermediate_size\":8192,\"mamba_chunk_size\":256,"   \
  "\"mamba_d_conv\":4,\"mamba_d_state\":64,\"mamba_enabled\":true,\"mamba_num_heads\":32,\"n_expert\":null," \
  "\"num_attention_heads\":16,\"num_hidden_layers\":16,\"num_key_value_heads\":1,\"vocab_size\":100000"

/* plamo-2-1b, 1.29 billion: 8 of 16 layers have a state-space model of 32 heads, 8 a window and one head of keys;
 * norms on both sides, and weights of those of each head. By hand. */
static void
every_second_layer_has_attention (void)
{
  const uint64_t h = 2048, inner = 4096,
                 mamba = 3 * h * inner + 4 * inner + inner * (128 + 128) + 128 * 32 + 3 * 32 + 128 + 128,
                 attention = 2 * h * h + 2 * h * 128 + 17 * 128, mlp = 3 * h * 8192 + 4 * h;
  uint64_t active;
  g_autofree char *said = NULL, *step = NULL, *listed = NULL;
  LS_CHECK_INT (params_of (PLAMO2 ",\"mamba_step\":2", &active, &said), ==,
                100000 * h + h + 8 * (mamba + attention) + 16 * mlp);
  LS_CHECK_INT (active, ==, 1291441920);
  LS_CHECK_STR (said, "");
  LS_CHECK_INT (params_of (PLAMO2 ",\"mamba_step\":4", &active, &step), ==, 0);
  LS_CHECK (strstr (step, "a type of several kinds"));
  LS_CHECK_INT (params_of (PLAMO2 ",\"full_attention_idx\":[1]", &active, &listed), ==, 0);
  LS_CHECK (strstr (listed, "/full_attention_idx: attention without a window"));
}

#define BARE_GEMMA                                                                                           \
  "{\"model_type\":\"gemma3\",\"vision_config\":{},\"text_config\":{\"model_type\":\"gemma3_text\","         \
  "\"hidden_size\":1024,\"intermediate_size\":4096,\"num_attention_heads\":8,\"num_hidden_layers\":6,"       \
  "\"num_key_value_heads\":4,\"head_dim\":128,\"vocab_size\":32000}}"
#define BARE_GPT2                                                                                            \
  "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_head\":4,\"n_layer\":6,\"n_positions\":1024,"                 \
  "\"vocab_size\":50257}"
#define BARE_T5                                                                                              \
  "{\"model_type\":\"t5\",\"is_encoder_decoder\":true,\"d_model\":256,\"d_ff\":1024,\"d_kv\":64,"            \
  "\"num_heads\":4,\"num_layers\":6,\"n_positions\":512,\"vocab_size\":32128}"

/* A change is made where its key is read: in the part that reads text, in the spelling of the file, by a key of our
 * own where it means the same. One that nobody reads would be an answer about another model: it is refused. */
static void
changes_go_where_keys_are_read (void)
{
  static const struct {
    const char *asked, *complaint;
    guint layers, hidden, seq;
  } cases[] = {
    { BARE_GEMMA, NULL, 6, 1024, 131072 },
    { BARE_GEMMA ":num_hidden_layers=2", NULL, 2, 1024, 131072 },
    { BARE_GEMMA ":layers=2,hidden_size=512", NULL, 2, 512, 131072 },
    { BARE_GEMMA ":text_config.num_hidden_layers=2", NULL, 2, 1024, 131072 },
    { BARE_GEMMA ":text_config.num_hidden_layers=2,layers=3", "expected each key once", 0, 0, 0 },
    { BARE_GEMMA ":depth=2", "\"depth\" is not read", 0, 0, 0 },
    { BARE_GEMMA ":layers=2,depth", "got \"depth\"", 0, 0, 0 },
    { BARE_GPT2 ":layers=2", NULL, 2, 256, 1024 },
    { BARE_GPT2 ":num_hidden_layers=2,seq=512", NULL, 2, 256, 512 },
    { BARE_GPT2 ":n_layer=2", NULL, 2, 256, 1024 },
    { BARE_T5 ":num_layers=2,num_decoder_layers=3", NULL, 5, 256, 512 },
    { BARE_T5 ":layers=2", "\"layers\" is not read", 0, 0, 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m = { 0 };
    bool ok = ls_model_load (cases[i].asked, &m, NULL, diags);
    g_autofree char *wrong = ls_diag_list_format (diags);
    ls_check_impl (ok == !cases[i].complaint, __FILE__, __LINE__, "%s: %s", cases[i].asked, wrong);
    ls_check_impl (ok || strstr (wrong, cases[i].complaint), __FILE__, __LINE__, "%s", wrong);
    LS_CHECK (m.n_layers == cases[i].layers && m.hidden == cases[i].hidden && m.seq == cases[i].seq);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (types_count_as_published), LS_TEST (layers_come_again),
               LS_TEST (some_rotations_are_scaled), LS_TEST (blocks_may_say_keys_of_the_file),
               LS_TEST (sides_may_be_parts_of_the_file), LS_TEST (recurrent_layers_and_local_attention),
               LS_TEST (blocks_say_which_are_recurrent), LS_TEST (every_second_layer_has_attention),
               LS_TEST (changes_go_where_keys_are_read))
