/* Pins config.json files of types with a mechanism of their own: counts, total and active, as published and by
 * the shapes of their layers; what model files must say of these mechanisms. */
#include "ls_test.h"

#include <string.h>

#include "config_params.h"

/* Step-3 of StepFun without its encoder: 316 B of 321, 38 B active (arXiv 2507.19427, table 1). */
#define STEP3(experts_)                                                                                      \
  (2 * 128815ull * 7168 + 7168                                                                               \
   + 61 * (7168ull * (2048 + 2 * 256) + 2048ull * 64 * 256 + 64 * 256 * 7168ull + 2048 + 2 * 7168)           \
   + 5 * 3 * 7168ull * 18432 + 56 * (3 * 7168ull * 5120 * (experts_ + 1) + 7168 * 48))

/* JetMoE-8B: 8.52 B, 2.2 B active without the table of words (arXiv 2404.07413, table 1; model card). */
#define JETMOE(experts_)                                                                                     \
  (32000ull * 2048 + 2048                                                                                    \
   + 24 * (2048ull * 2048 * 2 * (experts_ + 1) + 3 * 2048ull * 5632 * experts_ + 2 * 8 * 2048 + 2 * 2048))

/* Of Zamba2-2.7B, 7B and 1.2B: 2.66 B, 7.36 B, 1.22 B by hand; Zamba-7B 7.23 B. Mixers, sets, places. */
#define ZAMBA2_MIXER(h_, state_, groups_, heads_)                                                            \
  (h_ * (4ull * h_ + 2 * groups_ * state_ + heads_) + 2ull * h_ * h_                                         \
   + 5 * (2ull * h_ + 2 * groups_ * state_) + 3 * heads_ + 2 * h_ + h_)
#define ZAMBA_SET(h_)    (12ull * h_ * h_ + 2ull * h_ * h_ + 12ull * h_ * h_ + 3 * h_)
#define ZAMBA2_PLACE(h_) ((uint64_t) h_ * h_ + 128ull * 9 * h_)
#define ZAMBA2_27B                                                                                           \
  (32000ull * 2560 + 2560 + 54 * ZAMBA2_MIXER (2560, 64, 1, 80) + 2 * ZAMBA_SET (2560)                       \
   + 9 * ZAMBA2_PLACE (2560))
#define ZAMBA2_7B                                                                                            \
  (32000ull * 3584 + 3584 + 81 * ZAMBA2_MIXER (3584, 64, 2, 112) + 2 * ZAMBA_SET (3584)                      \
   + 13 * ZAMBA2_PLACE (3584))
#define ZAMBA2_12B                                                                                           \
  (32000ull * 2048 + 2048 + 38 * ZAMBA2_MIXER (2048, 128, 1, 64) + ZAMBA_SET (2048)                          \
   + 6 * (ZAMBA2_PLACE (2048) + 128ull * 3 * 4 * 4096 / 2))
#define ZAMBA_7B                                                                                             \
  (32000ull * 3712 + 3712                                                                                    \
   + 76 * (6 * 3712ull * 3712 + 7424ull * (2 * 232 + 32) + 5 * 7424 + 7424 * 18 + 3712) + ZAMBA_SET (3712)   \
   + 13 * 3712ull * 3712)

/* xLSTM-7B: six files of 27.46 GB in fp32. */
#define XLSTM                                                                                                \
  (2 * 50304ull * 4096 + 4096                                                                                \
   + 32                                                                                                      \
       * (4096ull * (2 * 2048 + 2 * 4096 + 16) + 16 + 4096 + 4096ull * 4096 + 3 * 4096ull * 10944            \
          + 2 * 4096))

/* Phi-4-mini-flash-reasoning: 3.8 B (model card). Biases behind attention, 41 thousand, are left out. */
#define PHI4_SCAN (3 * 2560ull * 5120 + 5120ull * (2 * 160 + 2 * 16) + 5120ull * (5 + 16 + 2))
#define PHI4FLASH                                                                                            \
  (200064ull * 2560 + 2 * 2560 + 32 * (3 * 2560ull * 10240 + 4 * 2560) + 9 * PHI4_SCAN                       \
   + 7 * 2 * 2560ull * 5120 + 16 * (2 * 2560ull * 2560 + 2560 + 6 * 64) + 9 * (2 * 2560ull * 1280 + 2560))

/* Baichuan-M1-14B: 14.5 B; heads of 256 in layers that see all, of 128 in those with a window, taps for each. */
#define BAICHUAN_M1                                                                                          \
  (2 * 133120ull * 5120 + 5120 + 40 * (3 * 5120ull * 17408 + 2 * 5120ull * 5120 + 2 * 5120)                  \
   + 20 * (2 * 5120ull * 2 * 256 + 2 * 2 * 2) + 20 * (2 * 5120ull * 8 * 128 + 2 * 8 * 2))

/* ZAYA1-8B: 8.4 B, 760 M active without the table of words (model card). Left out are 4096 numbers behind it, and of
 * the first router 256 too many are counted. */
#define ZAYA(experts_)                                                                                       \
  (262272ull * 2048 + 2048                                                                                   \
   + 40                                                                                                      \
       * (2048ull * (1024 + 2 * 256) + 1024 * 2048ull + 1280 * (2 + 1) + 1280 * (128 * 2 + 1) + 2 + 2 * 2048 \
          + 2 * 4 * 2048 + 2048 * 256 + 256 + 256 + 256 + 2 * (256 * 256 + 256) + 256 * 17                   \
          + experts_ * 3 * 2048ull * 2048))

/* LongCat-Flash-Lite: 68.5 B, of which 31.4 B in tables of several tokens; 2.9 to 4.5 B active (model card). */
#define LONGCAT_MLA (3072ull * (1536 + 576) + 1536 * 32 * 192 + 512 * 32 * 256 + 32 * 128 * 3072 + 1536 + 512)
#define LONGCAT(experts_, rows_)                                                                             \
  (2 * 131072ull * 3072 + 3072 + 256ull * (rows_) + 3072ull * 3072                                           \
   + 14                                                                                                      \
       * (2 * LONGCAT_MLA + 2 * 3 * 3072ull * 6144 + 3072 * 384 + 3 * 3072ull * 1024 * (experts_)            \
          + 5 * 3072))

/* Motif-2.6B: 2.6 B, but for four numbers of an activation in each layer. */
#define MOTIF                                                                                                \
  (219520ull * 2048 + 2048 + 32 * (4 * 2048ull * 2048 + 3 * 2048ull * 8192 + 2 * 2048 + (4 + 2) * 128))
/* Motif-2-12.7B: of 40 heads 8 are the second of the differences of 32, twice as wide, which go out. */
#define MOTIF_2                                                                                              \
  (2 * 219520ull * 4096 + 4096                                                                               \
   + 40                                                                                                      \
       * (4096ull * (40 + 2 * 16) * 128 + 2 * 32 * 128 * 4096ull + 3 * 4096ull * 16384 + 2 * 4096            \
          + 6 * 128))
#define DIFFLLAMA                                                                                            \
  (2 * 32000ull * 2048 + 2048 + 16 * (4 * 2048ull * 2048 + 3 * 2048ull * 8192 + 2 * 2048 + 4 * 64))

/* RWKV-7 1.5B: by the shapes of its modeling file two tables, two norms, of a layer 12 D^2 + 2 D R + 19 D; the norm behind
 * the embedding, 2 D, is left out, and what the first layer lacks, 2 D 64 + D, counted. */
#define RWKV7(v_, d_, l_, r_) (2 * (v_) * (d_) + 2 * (d_) + (l_) * (d_) * (12ull * (d_) + 2ull * (r_) + 19))

/* A.X-K2-Light by its class: 20.3 B, 2.57 B active. */
#define AXK2(experts_)                                                                                       \
  (2 * 163840ull * 2048 + 2048                                                                               \
   + 48                                                                                                      \
       * (2048ull * 384 + 2 * 384 * 32 * (96 + 64) + 2048 * (128 + 32) + 128 * 32 * (64 + 64)                \
          + 32 * 64 * 2048 + 384 + 128 + 384 * 16 * 128 + 2048 * (128 + 16) + 2 * 128 + 2 * 2048 * 16        \
          + 2 * 2048)                                                                                        \
   + 3 * 2048ull * 5120 + 47 * (2048ull * 128 + (experts_ + 1) * 3 * 2048 * 512 + 2 * 2048 * 16))

/* CPM-Ant-10B, but for 4.3 M in tables of prompts, segments and biases of positions. */
#define CPMANT (2 * 30720ull * 4096 + 4096 + 48 * (4 * 4096ull * 4096 + 3 * 4096ull * 10240 + 2 * 4096))

#define M  "\"mamba\","
#define M5 M M M M M
#define H  "\"hybrid\","

static void
types_count_as_published (void)
{
  static const struct {
    const char *keys;
    uint64_t total, active;
    double published, published_active; /* billions */
  } cases[] = {
    { "\"model_type\":\"step3_vl\",\"architectures\":[\"Step3VLForConditionalGeneration\"],\"vision_config\":{},"
      "\"text_config\":{\"architectures\":[\"Step3TextForCausalLM\"],\"hidden_size\":7168,"
      "\"intermediate_size\":18432,\"num_attention_heads\":64,\"num_attention_groups\":1,"
      "\"num_hidden_layers\":61,\"max_seq_len\":65536,\"vocab_size\":128815,\"moe_intermediate_size\":5120,"
      "\"moe_num_experts\":48,\"moe_top_k\":3,\"share_expert_dim\":5120,\"share_q_dim\":2048,\"head_dim\":256,"
      "\"max_position_embedding\":65536,\"norm_expert_weight\":false,\"moe_layers_enum\":\"4,5,6,7,8,9,10,11,"
      "12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,"
      "46,47,48,49,50,51,52,53,54,55,56,57,58,59\"}",
      STEP3 (48), STEP3 (3), 316, 38 },
    { "\"model_type\":\"step3_text\"", STEP3 (48), STEP3 (3), 316, 38 },
    { "\"model_type\":\"jetmoe\",\"architectures\":[\"JetMoEForCausalLM\"],\"bias\":true,"
      "\"ffn_hidden_size\":5632,\"glu\":true,\"hidden_size\":2048,\"kv_channels\":128,\"moe_num_experts\":8,"
      "\"moe_top_k\":2,\"n_positions\":4096,\"num_attention_heads\":32,\"num_hidden_layers\":24,"
      "\"num_key_value_heads\":16,\"num_layers\":24,\"vocab_size\":32000",
      JETMOE (8), JETMOE (2), 8.52, 2.2 + 0.0655 },
    { "\"model_type\":\"zamba2\",\"n_mamba_heads\":80,\"mamba_headdim\":64,\"num_mem_blocks\":2", ZAMBA2_27B,
      ZAMBA2_27B, 2.662, 2.662 },
    { "\"model_type\":\"zamba2\",\"adapter_rank\":128,\"add_bias_linear\":false,\"attention_head_dim\":224,"
      "\"attention_hidden_size\":7168,\"ffn_hidden_size\":14336,\"hidden_size\":3584,\"intermediate_size\":14336,"
      "\"kv_channels\":112,\"layers_block_type\":[" M5 M H M M M M H M5 H M5 H M5 H M5 H M5 H M5 H M5 H M5 H
          M5 H M5 H M5 H M M
      "\"mamba\"],\"mamba_d_state\":64,\"mamba_headdim\":64,\"mamba_ngroups\":2,\"n_mamba_heads\":112,"
      "\"num_hidden_layers\":81,\"num_mem_blocks\":2,\"use_mem_rope\":true,\"use_shared_attention_adapter\":false,"
      "\"use_shared_mlp_adapter\":true",
      ZAMBA2_7B, ZAMBA2_7B, 7.357, 7.357 },
    { "\"model_type\":\"zamba2\",\"hidden_size\":2048,\"intermediate_size\":8192,\"layers_block_type\":[" M5 H
          M5 H M5 H M5 H M5 H M5 H M
      "\"mamba\"],\"mamba_d_state\":128,\"n_mamba_heads\":64,\"num_hidden_layers\":38,"
      "\"use_mem_rope\":true,\"use_shared_attention_adapter\":true",
      ZAMBA2_12B, ZAMBA2_12B, 1.215, 1.215 },
    { "\"model_type\":\"zamba\",\"attn_layer_offset\":4,\"attn_layer_period\":6,\"mamba_dt_rank\":232,"
      "\"n_mamba_heads\":2",
      ZAMBA_7B, ZAMBA_7B, 7.232, 7.232 },
    { "\"model_type\":\"xlstm\",\"architectures\":[\"xLSTMForCausalLM\"],\"hidden_size\":4096,\"num_blocks\":32,"
      "\"use_bias\":false",
      XLSTM, XLSTM, 6.865, 6.865 },
    { "\"model_type\":\"phi4flash\",\"architectures\":[\"Phi4FlashForCausalLM\"],\"hidden_size\":2560,"
      "\"intermediate_size\":10240,\"lm_head_bias\":false,\"mamba_conv_bias\":true,\"mamba_d_conv\":4,"
      "\"mamba_d_state\":16,\"mamba_dt_rank\":160,\"mamba_expand\":2,\"mamba_proj_bias\":false,"
      "\"max_position_embeddings\":262144,\"mb_per_layer\":2,\"mlp_bias\":false,\"num_attention_heads\":40,"
      "\"num_hidden_layers\":32,\"num_key_value_heads\":20,\"resid_pdrop\":0.0,\"sliding_window\":512,"
      "\"tie_word_embeddings\":true,\"vocab_size\":200064",
      PHI4FLASH, PHI4FLASH, 3.853, 3.853 },
    { "\"model_type\":\"baichuan_m1\",\"architectures\":[\"BaichuanM1ForCausalLM\"],\"hidden_size\":5120,"
      "\"intermediate_size\":17408,\"num_attention_heads\":20,\"num_key_value_heads\":2,\"num_hidden_layers\":40,"
      "\"num_swa_attention_heads\":40,\"num_swa_key_value_heads\":8,\"sliding_window\":8192,\"conv_window\":2,"
      "\"sliding_window_layers\":[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39],\"vocab_size\":133120,"
      "\"max_position_embeddings\":32768,\"tie_word_embeddings\":false",
      BAICHUAN_M1, BAICHUAN_M1, 14.47, 14.47 },
    { "\"model_type\":\"zaya\",\"architectures\":[\"ZayaForCausalLM\"],\"hidden_size\":2048,"
      "\"num_hidden_layers\":40,\"num_attention_heads\":8,\"num_key_value_heads\":2,\"head_dim\":128,"
      "\"moe_intermediate_size\":2048,\"num_experts\":16,\"num_experts_per_tok\":1,\"router_hidden_size\":256,"
      "\"cca_time0\":2,\"cca_time1\":2,\"vocab_size\":262272,\"tie_word_embeddings\":true,\"lm_head_bias\":false,"
      "\"rope_parameters\":{\"hybrid\":{\"partial_rotary_factor\":0.5},\"rope_type\":\"default\"}",
      ZAYA (16), ZAYA (1), 8.84, 0.753 + 0.537 },
    { "\"model_type\":\"longcat_flash_ngram\",\"hidden_size\":3072,\"ffn_hidden_size\":6144,\"moe_topk\":12,"
      "\"expert_ffn_hidden_size\":1024,\"n_routed_experts\":256,\"zero_expert_num\":128,\"num_layers\":14,"
      "\"vocab_size\":131072,\"max_position_embeddings\":327680,\"num_attention_heads\":32,"
      "\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,"
      "\"v_head_dim\":128,\"ngram_vocab_size_ratio\":78,\"emb_neighbor_num\":4,\"emb_split_num\":4",
      LONGCAT (256, 12 * (78 * 131072ull) + 144), LONGCAT (8, 12), 68.56, 4.39 },
    { "\"model_type\":\"Motif\",\"architectures\":[\"MotifForCausalLM\"],\"hidden_size\":2048,"
      "\"num_hidden_layers\":32,\"num_attention_heads\":16,\"num_key_value_heads\":16,"
      "\"intermediate_size\":8192,\"vocab_size\":219520,\"max_position_embeddings\":16384,"
      "\"tie_word_embeddings\":true,\"hidden_act\":\"poly_norm\"",
      MOTIF, MOTIF, 2.597, 2.597 },
    { "\"model_type\":\"motif\",\"hidden_size\":4096,\"num_hidden_layers\":40,\"intermediate_size\":16384,"
      "\"num_attention_heads\":40,\"num_key_value_heads\":16,\"num_noise_heads\":8,\"k_ratio\":1,"
      "\"head_dim\":128,\"vocab_size\":219520,\"max_position_embeddings\":16384,\"hidden_act\":\"poly_norm\"",
      MOTIF_2, MOTIF_2, 12.7, 12.7 },
    { "\"model_type\":\"diffllama\",\"lambda_std_dev\":0.1", DIFFLLAMA, DIFFLLAMA, 1.205, 1.205 },
    { "\"model_type\":\"rwkv7\",\"architectures\":[\"RWKV7ForCausalLM\"],\"hidden_size\":2048,"
      "\"num_hidden_layers\":24,\"decay_low_rank_dim\":96,\"a_low_rank_dim\":96,\"v_low_rank_dim\":64,"
      "\"gate_low_rank_dim\":256,\"vocab_size\":65536,\"hidden_act\":\"sqrelu\",\"attn_mode\":\"chunk\"",
      RWKV7 (65536ull, 2048ull, 24, 512), RWKV7 (65536ull, 2048ull, 24, 512), 1.527, 1.527 },
    { "\"model_type\":\"axk2\",\"gated_norm_rank\":16,\"n_group\":null", AXK2 (128), AXK2 (8), 20.31, 2.573 },
    { "\"model_type\":\"cpmant\",\"prompt_length\":32", CPMANT, CPMANT, 9.514, 9.514 },
    { "\"model_type\":\"zaya\"", ZAYA (16), ZAYA (1), 8.84, 0.753 + 0.537 },
    { "\"model_type\":\"BlueLM\",\"architectures\":[\"BlueLMForCausalLM\"],\"hidden_size\":4096,"
      "\"intermediate_size\":11008,\"num_hidden_layers\":32,\"num_attention_heads\":32,\"vocab_size\":100096,"
      "\"max_position_embeddings\":2048,\"use_stable_embedding\":true",
      2 * 100096ull * 4096 + 4096 + 32 * (4 * 4096ull * 4096 + 3 * 4096ull * 11008 + 2 * 4096),
      2 * 100096ull * 4096 + 4096 + 32 * (4 * 4096ull * 4096 + 3 * 4096ull * 11008 + 2 * 4096), 7.296,
      7.296 },
    { "\"model_type\":\"jetmoe\",\"num_hidden_layers\":24", JETMOE (8), JETMOE (2), 8.52, 2.2 + 0.0655 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    uint64_t total = params_of (cases[i].keys, &active, &said);
    LS_CHECK_STR (said, "");
    LS_CHECK_INT (total, ==, cases[i].total);
    LS_CHECK_INT (active, ==, cases[i].active);
    LS_CHECK_NEAR ((double) total / 1e9, cases[i].published, 1e-3);
    LS_CHECK_NEAR ((double) active / 1e9, cases[i].published_active, 0.03); /* is said with two digits */
  }
}

#define MOE_OF_12                                                                                            \
  "\"model_type\":\"qwen3_moe\",\"hidden_size\":64,\"intermediate_size\":256,\"moe_intermediate_size\":32,"  \
  "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"head_dim\":16,\"num_experts\":8,"                   \
  "\"num_experts_per_tok\":2,\"vocab_size\":1000,\"num_hidden_layers\":12"

/* By number, by kind, by the numbers of the others: of 12 layers these have an MLP of 3 x 64 x 256 weights, and
 * others 8 experts of 3 x 64 x 32 with a router; of every second layer those behind the first. */
static void
layers_without_experts_by_number (void)
{
  static const struct {
    const char *keys;
    uint32_t n_dense;
    const char *refused;
  } cases[] = {
    { MOE_OF_12, 0, NULL },
    { MOE_OF_12 ",\"mlp_only_layers\":[0,1]", 2, NULL },
    { MOE_OF_12 ",\"mlp_only_layers\":[3,11]", 2, NULL },
    { MOE_OF_12 ",\"mlp_only_layers\":[3],\"decoder_sparse_step\":2", 7, NULL },
    { MOE_OF_12 ",\"mlp_layer_types\":[\"dense\",\"sparse\",\"dense\"]", 2, NULL },
    { MOE_OF_12 ",\"moe_layers_enum\":[1,2,4]", 9, NULL },
    { MOE_OF_12 ",\"moe_layers_enum\":\"1, 2,4\"", 9, NULL },
    { MOE_OF_12 ",\"moe_layers_enum\":\"1,12\"", 0, "numbers of layers" },
    { MOE_OF_12 ",\"moe_layers_enum\":\"1;2\"", 0, "numbers of layers" },
    { "\"model_type\":\"qwen3_next\",\"hidden_size\":64,\"intermediate_size\":256,"
      "\"moe_intermediate_size\":32,\"num_attention_heads\":4,\"head_dim\":16,\"num_experts\":8,"
      "\"num_experts_per_tok\":2,\"vocab_size\":1000,\"num_hidden_layers\":12,\"mlp_only_layers\":[3]",
      0, "dense layers by number beside a pattern" },
  };
  uint64_t active, all_experts = 0;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *said = NULL;
    uint64_t total = params_of (cases[i].keys, &active, &said);
    all_experts = i == 0 ? total : all_experts;
    ls_check_impl (cases[i].refused ? strstr (said, cases[i].refused) != NULL : !*said, __FILE__, __LINE__,
                   "%u: %s", i, said);
    if (!cases[i].refused)
      LS_CHECK_INT (total, ==,
                    all_experts + cases[i].n_dense * 3 * 64 * 256
                        - cases[i].n_dense * (8 * 3 * 64 * 32 + 64 * 8));
  }
}

#define PLAIN                                                                                                          \
  "\"schema\":\"lockstep.model/1\",\"name\":\"config\",\"source\":\"a test\",\"layers\":4,\"hidden\":512,\"heads\":8," \
  "\"vocab\":1000,\"seq\":256,\"mlp\":\"swiglu\",\"norm\":\"rmsnorm\",\"position\":\"rope\""
#define MAMBA "\"mixer\":\"mamba2\",\"mixer_heads\":16,\"mixer_head_dim\":64,\"mixer_groups\":1"

/* The same mechanisms in files of ours: what goes with what. */
static void
model_files_say_the_same (void)
{
  static const struct {
    const char *keys, *refused;
  } cases[] = {
    { PLAIN ",\"kv_heads\":1,\"q_lora\":128", NULL },
    { PLAIN ",\"kv_heads\":1,\"q_lora\":128,\"rope_dim\":32", "missing key \"kv_lora\"" },
    { PLAIN ",\"kv_heads\":1,\"q_lora\":128,\"qkv_bias\":true", "with queries from a latent" },
    { PLAIN ",\"kv_heads\":4,\"attention_experts\":8,\"attention_top_k\":2", NULL },
    { PLAIN ",\"kv_heads\":4,\"attention_experts\":8", "expected \"attention_top_k\"" },
    { PLAIN ",\"kv_heads\":4,\"attention_top_k\":2", "expected \"attention_top_k\" of" },
    { PLAIN ",\"attention_experts\":8,\"attention_top_k\":2", "heads of keys and values divide" },
    { PLAIN ",\"kv_heads\":4,\"attention_experts\":8,\"attention_top_k\":2,\"q_lora\":64",
      "neither latents" },
    { PLAIN ",\"head_dim\":128,\"layer_pattern\":\"mmB\",\"shared_blocks\":1,\"block_mlp_rank\":8," MAMBA,
      NULL },
    { PLAIN ",\"layer_pattern\":\"mmB\"," MAMBA, "expected \"shared_blocks\" with layers B" },
    { PLAIN ",\"shared_blocks\":1", "expected \"shared_blocks\" with layers B" },
    { PLAIN ",\"layer_pattern\":\"mmB\",\"shared_blocks\":1," MAMBA ",\"norms\":\"post\"",
      "norms before each half" },
    { "\"model_type\":\"baichuan_m1\",\"hidden_size\":256,\"intermediate_size\":512,\"num_hidden_layers\":4,"
      "\"num_attention_heads\":4,\"vocab_size\":1000,\"max_position_embeddings\":512,\"sliding_window\":64,"
      "\"sliding_window_layers\":[1,4]",
      "/sliding_window_layers/1: expected the number of a layer" },
    { "\"model_type\":\"phi4flash\",\"mb_per_layer\":3", "a type of several kinds" },
    { "\"model_type\":\"phi4flash\",\"mlp_bias\":true", "biases of MLPs alone" },
    { "\"model_type\":\"hrm_text\"", "several of which no gradient passes" },
    { PLAIN ",\"qk_conv\":2,\"qk_mix\":2,\"residual_scale\":true", NULL },
    { PLAIN ",\"qk_conv\":2", "\"qk_conv\" with \"qk_mix\"" },
    { PLAIN ",\"kv_conv\":2", NULL },
    { PLAIN ",\"kv_conv\":2,\"kv_shared_layers\":2", "a convolution of keys and values" },
    { PLAIN ",\"difference\":true", NULL },
    { PLAIN ",\"kv_heads\":2,\"difference\":true,\"noise_heads\":2", NULL },
    { PLAIN ",\"kv_heads\":2,\"difference\":true,\"noise_heads\":3", "a divisor of the heads" },
    { PLAIN ",\"noise_heads\":2", "expected \"difference\"" },
    { PLAIN ",\"difference_plain\":true", "expected \"difference\" with" },
    { PLAIN ",\"ngram_tables\":4,\"ngram_rows\":100", NULL },
    { PLAIN ",\"ngram_tables\":4", "with \"ngram_rows\"" },
    { PLAIN ",\"ngram_tables\":4,\"ngram_rows\":100,\"dropout\":true", "learned positions nor dropout" },
    { PLAIN ",\"layer_pattern\":\"M\",\"mixer\":\"rwkv7\",\"mixer_heads\":8,\"mixer_head_dim\":64",
      "with \"mixer_rank\"" },
    { PLAIN
      ",\"layer_pattern\":\"M\",\"mixer\":\"rwkv7\",\"mixer_heads\":8,\"mixer_head_dim\":64,\"mixer_rank\":96",
      NULL },
    { PLAIN ",\"mixer_bias\":true", "missing key \"mixer\"" },
    { PLAIN ",\"layer_pattern\":\"m\",\"mixer\":\"linear\",\"mixer_heads\":8,\"mixer_head_dim\":64,"
            "\"mixer_bias\":true",
      "of others no biases are known" },
    { PLAIN ",\"layer_pattern\":\"m\"," MAMBA ",\"mixer_plain_keys\":true", "mamba1, whose keys" },
    { PLAIN ",\"difference\":true,\"kv_heads\":1", "pairs of heads" },
    { PLAIN ",\"kv_shared_layers\":1,\"layer_pattern\":\"aA\"", "a pattern of A and M" },
    { PLAIN ",\"layer_pattern\":\"DA\",\"experts\":4,\"top_k\":2,\"expert_ffn\":64", NULL },
    { PLAIN ",\"layer_pattern\":\"D\",\"experts\":4,\"top_k\":2,\"expert_ffn\":64", "at least one layer" },
    { PLAIN
      ",\"layer_pattern\":\"M\",\"mixer\":\"mlstm\",\"mixer_heads\":8,\"mixer_head_dim\":64,\"mixer_state\":32",
      NULL },
    { PLAIN
      ",\"layer_pattern\":\"M\",\"mixer\":\"mlstm\",\"mixer_heads\":8,\"mixer_head_dim\":64,\"mixer_groups\":2",
      "a key for each head" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    bool ok = params_of (cases[i].keys, &active, &said) > 0;
    ls_check_impl (ok == !cases[i].refused && (ok ? !*said : strstr (said, cases[i].refused) != NULL),
                   __FILE__, __LINE__, "%u: %s", i, said);
  }
}

/* --- flash-linear-attention, and flame, its trainer; layers at bc3b101d --- */

/* Two tables, the last norm, two norms and an MLP of three matrices in each layer. */
#define FLA(h_, layers_, layer_, ffn_, vocab_)                                                               \
  (2 * (vocab_) * (uint64_t) (h_) + (h_) + (layers_) * ((layer_) + 2ull * (h_) + 3ull * (h_) * (ffn_)))
/* Ways in of queries and keys (K), values and a gate (I), step and decay of H heads; 4 taps of K, K and I, A and dt of
 * a head, a norm of a head's values; the way out. */
#define GATED_DELTA(h_, k_, i_, heads_, v_)                                                                  \
  ((h_) * (2ull * (k_) + 2 * (i_) + 2 * (heads_)) + 4ull * (2 * (k_) + (i_)) + 2 * (heads_) + (v_)           \
   + (uint64_t) (h_) * (i_))
/* Without decay and gate; with the gate (h_) * (i_) more. */
#define DELTA_NET(h_, k_, i_, heads_)                                                                        \
  ((h_) * (2ull * (k_) + (i_) + (heads_)) + 4ull * (2 * (k_) + (i_)) + (i_) / (heads_)                       \
   + (uint64_t) (h_) * (i_))
/* A gate of I, decays by 16 columns with a bias of K, a norm of a head; retention is without these decays. */
#define RETENTION(h_, k_, i_, heads_)                                                                        \
  ((h_) * (2ull * (k_) + 2 * (i_)) + (i_) / (heads_) + (uint64_t) (h_) * (i_))
#define GLA(h_, k_, i_, heads_) (RETENTION (h_, k_, i_, heads_) + 16ull * (h_) + 17 * (k_))
/* Decays and a gate through a head's width, the gate with a bias; A of a head, dt of K. */
#define KDA(h_, k_, i_, heads_, d_)                                                                          \
  ((h_) * (2ull * (k_) + (i_) + (heads_) + 2 * (d_)) + 4ull * (2 * (k_) + (i_)) + 2ull * (d_) * (i_)         \
   + (heads_) + 2 * (i_) + (d_) + (uint64_t) (h_) * (i_))
#define ATTENTION(h_, kv_) (2ull * (h_) * (h_) + 2ull * (h_) * (kv_))
/* Of both kinds of Mamba: taps and a bias of each column that is convolved. */
#define MAMBA2(h_, i_, n_, heads_)                                                                           \
  ((h_) * (2ull * (i_) + 2 * (n_) + (heads_)) + 5ull * ((i_) + 2 * (n_)) + 3 * (heads_) + (i_) + (h_)        \
   + (uint64_t) (h_) * (i_))
#define MAMBA1(h_, i_, n_, rank_)                                                                            \
  (3ull * (h_) * (i_) + 5ull * (i_) + (i_) * (2ull * (rank_) + 2 * (n_)) + (i_) * ((n_) + 2ull))
/* A latent of queries and one of keys and values, each with its norm; 16 heads of 128 + 64, values of 128. */
#define MLA (2048ull * (64 + 512 + 64) + 64 * 16 * 192 + 512 * 16 * 256ull + 64 + 512 + 16 * 128 * 2048ull)

#define ODD                                                                                                  \
  "\"attn\":{\"layers\":[1,3,5,7,9,11,13,15,17],\"num_heads\":18,\"num_kv_heads\":18,\"qkv_bias\":false,"    \
  "\"rope_theta\":10000.0,\"window_size\":2048}"
#define GDN_340M                                                                                               \
  "\"model_type\":\"gated_deltanet\",\"expand_v\":2,\"head_dim\":256,\"hidden_ratio\":4,\"hidden_size\":1024," \
  "\"intermediate_size\":null,\"num_heads\":6,\"num_hidden_layers\":21,\"use_gate\":true"
#define DELTA_340M                                                                                           \
  "\"model_type\":\"delta_net\",\"expand_k\":1,\"expand_v\":1,\"hidden_ratio\":4,\"hidden_size\":1024,"      \
  "\"intermediate_size\":null,\"num_heads\":8,\"num_hidden_layers\":24,\"use_beta\":true,\"use_gate\":false"

/* Published: 357,781,928 weights of a gated delta net (puigde/gated-deltanet-380M-15B-slimpajama); 411 M and 549 M of
 * flame's "340M" with a table of 50,257 words (fla-org/flame, issue 34); 1.3 B of those of 100 B tokens. Lower bounds
 * of HGRN2, hidden_size a layer, are left out. */
static void
weights_of_fla_are_those_of_its_layers (void)
{
  static const struct {
    const char *keys;
    uint64_t total;
    double published; /* in 10^6; 0: none */
  } cases[] = {
    { "\"model_type\":\"gated_deltanet\",\"expand_v\":1,\"hidden_size\":1024,\"num_heads\":4,\"head_dim\":256",
      357781928, 357.781928 },
    { "\"model_type\":\"gated_deltanet\",\"expand_v\":1,\"hidden_size\":1024,\"num_heads\":4,\"head_dim\":256",
      FLA (1024, 21, GATED_DELTA (1024, 1024, 1024, 4, 256), 2816, 32000ull), 357.781928 },
    { GDN_340M ",\"vocab_size\":50257",
      FLA (1024, 21, GATED_DELTA (1024, 1536, 3072, 6, 512), 2816, 50257ull), 549 },
    { DELTA_340M ",\"vocab_size\":50257", FLA (1024, 24, DELTA_NET (1024, 1024, 1024, 8), 2816, 50257ull),
      411 },
    { "\"model_type\":\"gated_deltanet\"",
      FLA (2048, 21, GATED_DELTA (2048, 1536, 3072, 6, 512), 5632, 32000ull), 1387 },
    { "\"model_type\":\"delta_net\"", FLA (2048, 24, DELTA_NET (2048, 2048, 2048, 16), 5632, 32000ull),
      1365 },
    { "\"model_type\":\"gla\"", FLA (2048, 24, GLA (2048, 1024, 2048, 4), 5632, 32000ull), 1365 },
    { "\"model_type\":\"gla\",\"hidden_size\":4096,\"num_heads\":16,\"num_hidden_layers\":32,"
      "\"intermediate_size\":11008",
      FLA (4096, 32, GLA (4096, 2048, 4096, 16), 11008, 32000ull), 6741 },
    { "\"model_type\":\"transformer\"", FLA (2048, 24, ATTENTION (2048, 2048), 5632, 32000ull), 1364 },
    { "\"model_type\":\"mamba2\",\"conv_kernel\":4,\"expand\":2,\"head_dim\":64,\"hidden_size\":2048,"
      "\"n_groups\":1,\"num_hidden_layers\":48,\"state_size\":128,\"chunk_size\":256,\"vocab_size\":32000",
      2 * 32000ull * 2048 + 2048 + 48 * MAMBA2 (2048, 4096, 128, 64), 1371 },
    { "\"model_type\":\"samba\"," ODD
      ",\"hidden_size\":2304,\"intermediate_size\":4608,\"time_step_rank\":144,"
      "\"num_hidden_layers\":18",
      FLA (2304, 18, 0, 6144, 32000ull) + 9 * (MAMBA1 (2304, 4608, 16, 144) + ATTENTION (2304, 2304)), 1403 },
    /* of which no counts are known */
    { "\"model_type\":\"retnet\"", FLA (2048, 24, RETENTION (2048, 2048, 4096, 8), 2816, 32000ull), 0 },
    { "\"model_type\":\"kda\"", FLA (2048, 24, KDA (2048, 2048, 2048, 16, 128), 5632, 32000ull), 0 },
    { "\"model_type\":\"hgrn2\"", FLA (2048, 24, 4 * 2048ull * 2048 + 2048, 5632, 32000ull), 0 },
    { "\"model_type\":\"hgrn2\",\"expand_ratio\":null,\"num_heads\":8",
      FLA (2048, 24, 4 * 2048ull * 2048 + 2048, 5632, 32000ull), 0 },
    { "\"model_type\":\"linear_attn\",\"feature_map\":\"elu\"",
      FLA (2048, 24, RETENTION (2048, 2048, 2048, 4) - 2048ull * 2048, 5632, 32000ull), 0 },
    { "\"model_type\":\"mla\"", FLA (2048, 24, MLA, 5632, 32000ull), 0 },
    /* ways in and out that a file leaves out or adds */
    { "\"model_type\":\"gated_deltanet\",\"use_gate\":false",
      FLA (2048, 21, GATED_DELTA (2048, 1536, 3072, 6, 512) - 2048ull * 3072, 5632, 32000ull), 0 },
    { "\"model_type\":\"delta_net\",\"use_gate\":true",
      FLA (2048, 24, DELTA_NET (2048, 2048, 2048, 16) + 2048ull * 2048, 5632, 32000ull), 0 },
    { "\"model_type\":\"gla\",\"use_output_gate\":false",
      FLA (2048, 24, GLA (2048, 1024, 2048, 4) - 2048ull * 2048, 5632, 32000ull), 0 },
    { "\"model_type\":\"gated_deltanet\",\"num_v_heads\":12,\"hidden_ratio\":2",
      FLA (2048, 21, GATED_DELTA (2048, 1536, 6144, 12, 512), 2816, 32000ull), 0 },
    { "\"model_type\":\"kda\",\"num_v_heads\":32",
      FLA (2048, 24, KDA (2048, 2048, 4096, 32, 128), 5632, 32000ull), 0 },
    { "\"model_type\":\"transformer\",\"num_kv_heads\":8,\"qkv_bias\":true,\"qk_norm\":true,\"hidden_ratio\":null",
      FLA (2048, 24, ATTENTION (2048, 512) + 2048 + 2 * 512 + 2 * 64, 5632, 32000ull), 0 },
    { "\"model_type\":\"gla\",\"num_hidden_layers\":4,\"attn\":{\"layers\":[1],\"num_heads\":16,\"num_kv_heads\":4,"
      "\"window_size\":512}",
      FLA (2048, 4, 0, 5632, 32000ull) + 3 * GLA (2048, 1024, 2048, 4) + ATTENTION (2048, 512), 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    uint64_t total = params_of (cases[i].keys, &active, &said);
    LS_CHECK_STR (said, "");
    LS_CHECK_INT (total, ==, cases[i].total);
    LS_CHECK_INT (active, ==, cases[i].total);
    if (cases[i].published > 0)
      LS_CHECK_NEAR ((double) total / 1e6, cases[i].published, 2e-3); /* most are cut to whole millions */
  }
}

/* Attention of some layers is that of `attn`, and theirs alone is its window. */
static void
some_layers_have_attention (void)
{
  static const char keys[]
      = "{\"model_type\":\"gated_deltanet\",\"num_hidden_layers\":4,\"num_heads\":8,\"attn\":{\"layers\":[1,3],"
        "\"num_heads\":16,\"num_kv_heads\":4,\"window_size\":512}}";
  LsModel m;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (keys, strlen (keys), "config.json", diags);
  if (!LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags)))
    return;
  LS_CHECK_STR (m.layer_pattern, "MAMA");
  LS_CHECK (m.n_heads == 16 && m.n_kv_heads == 4 && m.head_dim == 128 && m.window == 512);
  LS_CHECK (m.mixer_heads == 8 && m.mixer_groups == 8 && m.mixer_state == 256 && m.mixer_head_dim == 512);
  LS_CHECK (m.mixer_products == 6 && m.mixer_chunk == 64 && m.position == LS_POSITION_ROPE);
  ls_model_clear (&m);
}

/* Heads of mamba2: those of the widths, and a note, where the file does not say them; of the class, where widths do
 * not either. */
static void
heads_follow_from_widths (void)
{
#define MAMBA2_OF(more_)                                                                                     \
  "{\"model_type\":\"mamba2\",\"hidden_size\":2048,\"n_groups\":1,\"num_hidden_layers\":2" more_ "}"
  static const struct {
    const char *text, *note, *refused;
    uint32_t heads;
  } cases[] = {
    { MAMBA2_OF (",\"expand\":2,\"head_dim\":64"),
      "num_heads: 64, as expand x hidden_size / head_dim says, not the class's 128", NULL, 64 },
    { MAMBA2_OF (",\"expand\":2"), "num_heads: 64, as expand x", NULL, 64 },
    { MAMBA2_OF (",\"expand\":4,\"head_dim\":64"), "defaults of: vocab_size 32768, num_heads 128", NULL,
      128 },
    { MAMBA2_OF (",\"head_dim\":64"), "num_heads 128", NULL, 128 },
    { MAMBA2_OF (",\"expand\":2,\"head_dim\":64,\"num_heads\":64"), "the file leaves out", NULL, 64 },
    { MAMBA2_OF (",\"expand\":2,\"head_dim\":64,\"num_heads\":128"), NULL, "is not num_heads x head_dim", 0 },
    { MAMBA2_OF (",\"expand\":2,\"head_dim\":48"), NULL, "is not num_heads x head_dim", 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    g_autoptr (LsJsonDoc) doc
        = ls_json_doc_parse (cases[i].text, strlen (cases[i].text), "config.json", diags);
    bool ok = doc && ls_model_read (doc, &m, notes, diags);
    g_autofree char *said = ls_diag_list_format (diags);
    g_ptr_array_add (notes, NULL);
    g_autofree char *told = g_strjoinv ("\n", (char **) notes->pdata);
    ls_check_impl (ok ? cases[i].note && strstr (told, cases[i].note)
                      : cases[i].refused && strstr (said, cases[i].refused),
                   __FILE__, __LINE__, "%u: %s %s", i, told, said);
    LS_CHECK (!ok || cases[i].heads == 128 || !strstr (told, "num_heads 128"));
    LS_CHECK_INT (m.mixer_heads, ==, cases[i].heads);
    ls_model_clear (&m);
  }
}

#define WITH_MIXER PLAIN ",\"layer_pattern\":\"M\",\"mixer_heads\":8,\"mixer_head_dim\":64"

static void
what_of_fla_is_not_simulated_is_refused (void)
{
  static const char *const cases[][2] = {
    { "\"model_type\":\"gated_deltanet\",\"use_short_conv\":false", "expected use_short_conv" },
    { "\"model_type\":\"kda\",\"use_short_conv\":false", "expected use_short_conv" },
    { "\"model_type\":\"kda\",\"expand_v\":2", "/expand_v: values of kda wider" },
    { "\"model_type\":\"delta_net\",\"use_beta\":false", "expected use_beta" },
    { "\"model_type\":\"delta_net\",\"num_heads\":48", "/num_heads: expected heads that divide" },
    { "\"model_type\":\"gla\",\"use_short_conv\":true", "/use_short_conv: convolutions" },
    { "\"model_type\":\"gla\",\"num_kv_heads\":2", "/num_kv_heads: heads of linear attention" },
    { "\"model_type\":\"gla\",\"elementwise_affine\":false", "expected elementwise_affine" },
    { "\"model_type\":\"gla\",\"attnres_block_size\":4", "attention residuals" },
    { "\"model_type\":\"gla\",\"attn\":[{\"layers\":[1],\"num_heads\":8}]", "/attn: expected one object" },
    { "\"model_type\":\"gla\",\"attn\":{\"layers\":[24],\"num_heads\":8}",
      "/attn/layers/0: expected the number" },
    { "\"model_type\":\"linear_attn\"", "expected feature_map elu, relu or identity" },
    { "\"model_type\":\"samba\"", "to know which have attention" },
    { "\"model_type\":\"mamba2\",\"D_has_hdim\":true", "/D_has_hdim: a skip" },
    { "\"model_type\":\"rwkv7\",\"attn\":{\"layers\":[1],\"num_heads\":8}", "/attn: attention in some" },
    { "\"model_type\":\"gsa\"", "gated slot attention" },
    { "\"model_type\":\"gated_deltaproduct\"", "several steps of the delta rule" },
    { "\"model_type\":\"sba\"", "stick-breaking" },
    { WITH_MIXER ",\"mixer\":\"kda\",\"mixer_ungated\":true",
      "/mixer_ungated: expected \"mixer\" delta or linear" },
    { WITH_MIXER ",\"mixer\":\"linear\",\"mixer_undecayed\":true",
      "/mixer_undecayed: expected \"mixer\" delta" },
    { WITH_MIXER ",\"mixer\":\"delta\",\"mixer_head_norm\":true",
      "/mixer_head_norm: expected \"mixer\" linear" },
    { WITH_MIXER ",\"mixer\":\"delta\",\"mixer_gate_bias\":true",
      "/mixer_gate_bias: expected \"mixer\" kda" },
    { WITH_MIXER ",\"mixer\":\"linear\",\"mixer_products\":3", "linear of 2 or 4, one fewer without a gate" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    LS_CHECK_INT (params_of (cases[i][0], &active, &said), ==, 0);
    ls_check_impl (strstr (said, cases[i][1]) != NULL, __FILE__, __LINE__, "%s: %s", cases[i][0], said);
  }
}

LS_TEST_SUITE (LS_TEST (model_files_say_the_same), LS_TEST (types_count_as_published),
               LS_TEST (layers_without_experts_by_number), LS_TEST (weights_of_fla_are_those_of_its_layers),
               LS_TEST (some_layers_have_attention), LS_TEST (heads_follow_from_widths),
               LS_TEST (what_of_fla_is_not_simulated_is_refused))
