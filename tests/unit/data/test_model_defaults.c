/* Pins what a config.json is read as that leaves keys out: its configuration class says them, of a whole file and of a
 * part; null is a value. */
#include "ls_test.h"

#include <string.h>

#include "config_params.h"
#include "data/datadir.h"
#include "data/jobs/hf_family.h"

/* By hand, from the arguments of each class. ATTENTION: Q and O, K and V. */
#define ATTENTION(h_, heads_, kv_, dim_) (2ull * (h_) * (dim_) * ((heads_) + (kv_)))
#define LAYER(h_, heads_, kv_, dim_, matrices_, ffn_)                                                        \
  (ATTENTION (h_, heads_, kv_, dim_) + (matrices_) *1ull * (h_) * (ffn_) + 2ull * (h_))
#define MODEL(tables_, vocab_, h_, n_, layer_) ((tables_) *1ull * (vocab_) * (h_) + (h_) + (n_) * (layer_))
#define ROUTED(h_, all_, met_, ffn_)           ((all_) *1ull * (h_) + 3ull * (h_) * (met_) * (ffn_))
#define MLA(h_, heads_, q_, kv_, nope_, rope_, v_)                                                           \
  ((h_) *1ull * (q_) + (q_) + (q_) *1ull * (heads_) * ((nope_) + (rope_)) + (h_) *1ull * ((kv_) + (rope_))   \
   + (kv_) + (kv_) *1ull * (heads_) * ((nope_) + (v_)) + (heads_) *1ull * (v_) * (h_) + 2ull * (h_))

typedef struct {
  const char *type, *keys;
  uint64_t total, active; /* active 0: all */
} Pin;

static void
check_pin (const Pin *pin, bool is_part)
{
  uint64_t active;
  const char *before = is_part ? "\"model_type\":\"some\",\"vision_config\":{},\"text_config\":{" : "",
             *behind = is_part ? "}" : "";
  g_autofree char *said = NULL,
                  *keys
      = g_strdup_printf ("%s\"model_type\":\"%s\"%s%s", before, pin->type, pin->keys, behind);
  uint64_t total = params_of (keys, &active, &said);
  ls_check_impl (total == pin->total && active == (pin->active ? pin->active : pin->total), __FILE__,
                 __LINE__, "%s: %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT " %s", keys, total, active,
                 said);
}

static void
classes_say_what_files_leave_out (void)
{
  static const Pin pins[] = {
    { "llama", "", MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 32, 128, 3, 11008)), 0 },
    { "mistral", "", MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 8, 128, 3, 14336)), 0 },
    { "ministral", "", MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 8, 128, 3, 14336)), 0 },
    { "ministral3", ",\"hidden_size\":5120", MODEL (2, 131072, 5120, 34, LAYER (5120, 32, 8, 128, 3, 14336)),
      0 },
    { "mixtral", "", MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 8, 128, 0, 0) + ROUTED (4096, 8, 8, 14336)),
      MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 8, 128, 0, 0) + ROUTED (4096, 8, 2, 14336)) },
    { "qwen3", ",\"hidden_size\":2048",
      MODEL (2, 151936, 2048, 32, LAYER (2048, 32, 32, 128, 3, 22016) + 256), 0 },
    { "qwen3_vl_text", ",\"hidden_size\":2048",
      MODEL (2, 151936, 2048, 32, LAYER (2048, 32, 32, 128, 3, 22016) + 256), 0 },
    { "qwen3_moe", "",
      MODEL (2, 151936, 2048, 24, LAYER (2048, 32, 4, 64, 0, 0) + 128 + ROUTED (2048, 128, 128, 768)),
      MODEL (2, 151936, 2048, 24, LAYER (2048, 32, 4, 64, 0, 0) + 128 + ROUTED (2048, 128, 8, 768)) },
    { "qwen2_moe", "",
      MODEL (2, 151936, 2048, 24,
             LAYER (2048, 16, 16, 128, 3, 5632) + 3 * 2048 + ROUTED (2048, 60, 60, 1408)),
      MODEL (2, 151936, 2048, 24,
             LAYER (2048, 16, 16, 128, 3, 5632) + 3 * 2048 + ROUTED (2048, 60, 4, 1408)) },
    { "qwen2_5_vl", "", MODEL (2, 152064, 8192, 80, LAYER (8192, 64, 8, 128, 3, 29568) + 80 * 128), 0 },
    { "starcoder2", "",
      MODEL (1, 49152, 3072, 30,
             LAYER (3072, 24, 2, 128, 2, 12288) + 2 * 3072 + 28 * 128 + 3072 + 12288 + 3072)
          + 3072,
      0 },
    { "smollm3", "", MODEL (1, 128256, 2048, 36, LAYER (2048, 16, 4, 128, 3, 11008)), 0 },
    { "glm4", "", MODEL (2, 151552, 4096, 40, LAYER (4096, 32, 2, 128, 3, 13696) + 2 * 4096 + 36 * 128), 0 },
    { "glm", "", MODEL (2, 151552, 4096, 40, LAYER (4096, 32, 2, 128, 3, 13696) + 36 * 128), 0 },
    { "ernie4_5", "", MODEL (1, 103424, 1024, 18, LAYER (1024, 16, 2, 128, 3, 3072)), 0 },
    { "seed_oss", "", MODEL (2, 155136, 4096, 64, LAYER (4096, 80, 8, 128, 3, 27648) + 96 * 128), 0 },
    { "helium", ",\"hidden_size\":1280", MODEL (2, 48000, 1280, 24, LAYER (1280, 20, 20, 128, 3, 7040)), 0 },
    { "minimax_m2", "",
      MODEL (2, 200064, 3072, 62, LAYER (3072, 48, 8, 128, 0, 0) + 56 * 128 + ROUTED (3072, 256, 256, 1536)),
      MODEL (2, 200064, 3072, 62, LAYER (3072, 48, 8, 128, 0, 0) + 56 * 128 + ROUTED (3072, 256, 8, 1536)) },
    { "phimoe", "",
      MODEL (2, 32064, 4096, 32, LAYER (4096, 32, 8, 128, 0, 0) + 2 * 4096 + ROUTED (4096, 16, 16, 6400))
          + 4096,
      MODEL (2, 32064, 4096, 32, LAYER (4096, 32, 8, 128, 0, 0) + 2 * 4096 + ROUTED (4096, 16, 2, 6400))
          + 4096 },
    { "llama4_text", "",
      MODEL (2, 202048, 5120, 48, LAYER (5120, 40, 8, 128, 3, 8192) + ROUTED (5120, 16, 16, 8192)),
      MODEL (2, 202048, 5120, 48, LAYER (5120, 40, 8, 128, 3, 8192) + ROUTED (5120, 16, 1, 8192)) },
    { "deepseek_v3", "",
      MODEL (2, 129280, 7168, 61, MLA (7168, 128, 1536, 512, 128, 64, 128)) + 3 * 3ull * 7168 * 18432
          + 58 * (ROUTED (7168, 256, 257, 2048)),
      MODEL (2, 129280, 7168, 61, MLA (7168, 128, 1536, 512, 128, 64, 128)) + 3 * 3ull * 7168 * 18432
          + 58 * (ROUTED (7168, 256, 9, 2048)) },
    { "glm4_moe_lite", "",
      MODEL (2, 154880, 2048, 47, MLA (2048, 20, 768, 512, 192, 64, 256)) + 3ull * 2048 * 10240
          + 46 * (ROUTED (2048, 64, 65, 1536)),
      MODEL (2, 154880, 2048, 47, MLA (2048, 20, 768, 512, 192, 64, 256)) + 3ull * 2048 * 10240
          + 46 * (ROUTED (2048, 64, 5, 1536)) },
    { "solar_open", "",
      MODEL (2, 196608, 4096, 48, LAYER (4096, 64, 8, 128, 0, 0) + ROUTED (4096, 128, 129, 1280)),
      MODEL (2, 196608, 4096, 48, LAYER (4096, 64, 8, 128, 0, 0) + ROUTED (4096, 128, 9, 1280)) },
    { "granitemoe", "",
      MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 32, 128, 0, 0) + ROUTED (4096, 8, 8, 11008)),
      MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 32, 128, 0, 0) + ROUTED (4096, 8, 2, 11008)) },
    { "cwm", "", MODEL (2, 128256, 6144, 64, LAYER (6144, 48, 8, 128, 3, 21504)), 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (pins); i++) {
    check_pin (&pins[i], false);
    check_pin (&pins[i], true);
  }
}

#define GELU_LAYER(h_, ffn_) (4ull * (h_) * (h_) + 2ull * (h_) * (ffn_) + (ffn_) + 9ull * (h_))
/* Of mamba1, whose keys have no norms but in Jamba, and mamba2 (model/mixer.h), with the norm before it; of a gated delta net and kda without. */
#define MAMBA1(h_, i_, n_, r_)                                                                               \
  (3ull * (h_) * (i_) + 5ull * (i_) + (i_) * (2ull * (r_) + 2 * (n_)) + (i_) * ((n_) + 2ull) + (h_))
#define MAMBA2(h_, i_, k_, heads_)                                                                           \
  ((h_) * (3ull * (i_) + 2 * (k_) + (heads_)) + 5ull * ((i_) + 2 * (k_)) + 3 * (heads_) + (i_) + (h_))
#define DELTA(h_, heads_, n_, p_)                                                                            \
  ((h_) * (heads_) * (2ull * (n_) + 3 * (p_) + 2) + 4ull * (heads_) * (2 * (n_) + (p_)) + 2 * (heads_) + (p_))
#define KDA(h_, heads_, groups_, p_)                                                                         \
  ((h_) * (2ull * (heads_) * (p_) + 2 * (groups_) * (p_) + (heads_))                                         \
   + 2ull * (p_) * ((h_) + (heads_) * (p_)) + 4ull * (p_) * ((heads_) + 2 * (groups_)) + (heads_)            \
   + (heads_) * (p_) + (p_))

/* Sizes of an older class, of parts of a file, of mixers by the width of all: Jamba Reasoning 3B has one expert, which
 * is an MLP (3.03 B). The norm behind BLOOM's embedding and two positions of BioGPT are left out. */
static void
sizes_follow_from_what_is_said (void)
{
  static const Pin pins[] = {
    { "bloom", "", 250880ull * 64 + 2 * GELU_LAYER (64, 256) + 2 * 64, 0 },
    { "bloom", ",\"hidden_size\":1024,\"n_layer\":24,\"n_head\":16",
      250880ull * 1024 + 24 * GELU_LAYER (1024, 4096) + 2 * 1024, 0 },
    { "xglm", "", 256008ull * 1024 + 24 * GELU_LAYER (1024, 4096) + 2 * 1024, 0 },
    { "biogpt", "", (42384ull + 1024) * 1024 + 24 * GELU_LAYER (1024, 4096) + 2 * 1024, 0 },
    { "dbrx", "", MODEL (2, 32000, 2048, 24, LAYER (2048, 16, 1, 128, 0, 0) + ROUTED (2048, 4, 4, 3584)),
      MODEL (2, 32000, 2048, 24, LAYER (2048, 16, 1, 128, 0, 0) + ROUTED (2048, 4, 1, 3584)) },
    { "dbrx",
      ",\"d_model\":6144,\"n_heads\":48,\"n_layers\":40,\"vocab_size\":100352,"
      "\"attn_config\":{\"kv_n_heads\":8},\"ffn_config\":{\"moe_num_experts\":16,\"moe_top_k\":4}",
      MODEL (2, 100352, 6144, 40, LAYER (6144, 48, 8, 128, 0, 0) + ROUTED (6144, 16, 16, 3584)),
      MODEL (2, 100352, 6144, 40, LAYER (6144, 48, 8, 128, 0, 0) + ROUTED (6144, 16, 4, 3584)) },
    { "mamba", "", 50280ull * 768 + 32 * MAMBA1 (768, 1536, 16, 48) + 768, 0 },
    { "mamba", ",\"hidden_size\":2560,\"num_hidden_layers\":64",
      50280ull * 2560 + 64 * MAMBA1 (2560, 5120, 16, 160) + 2560, 0 },
    { "mamba", ",\"hidden_size\":2560,\"num_hidden_layers\":64,\"intermediate_size\":5120,\"expand\":2",
      50280ull * 2560 + 64 * MAMBA1 (2560, 5120, 16, 160) + 2560, 0 },
    /* mamba-130m: 129.1 M, of which its files have 129135360 numbers; a rank, biases of 2 I and h, and without taps' */
    { "mamba", ",\"num_hidden_layers\":24,\"time_step_rank\":48", 129135360, 0 },
    { "mamba", ",\"num_hidden_layers\":24,\"time_step_rank\":\"auto\"", 129135360, 0 },
    { "mamba", ",\"num_hidden_layers\":24,\"time_step_rank\":100", 129135360 + 24 * 52 * 2 * 1536ull, 0 },
    { "mamba", ",\"num_hidden_layers\":24,\"dt_rank\":100", 129135360 + 24 * 52 * 2 * 1536ull, 0 },
    { "mamba", ",\"num_hidden_layers\":24,\"use_bias\":true", 129135360 + 24 * (2 * 1536 + 768), 0 },
    { "mamba", ",\"num_hidden_layers\":24,\"use_conv_bias\":false", 129135360 - 24 * 1536, 0 },
    { "mamba2", ",\"use_bias\":true,\"use_conv_bias\":false",
      2 * 32768ull * 4096
          + 64 * (MAMBA2 (4096, 8192, 1024, 128) + 2 * 8192 + 2 * 1024 + 128 + 4096 - 8192 - 2048) + 4096,
      0 },
    { "mamba2", "", 2 * 32768ull * 4096 + 64 * MAMBA2 (4096, 8192, 1024, 128) + 4096, 0 },
    { "olmo_hybrid", "",
      MODEL (2, 100352, 3840, 32, 3ull * 3840 * 11008 + 2 * 3840) + 24 * DELTA (3840, 30, 96, 192)
          + 8 * (ATTENTION (3840, 30, 30, 128) + 2 * 3840),
      0 },
    { "olmo_hybrid", ",\"hidden_size\":2048,\"num_attention_heads\":16,\"linear_num_key_heads\":null",
      MODEL (2, 100352, 2048, 32, 3ull * 2048 * 11008 + 2 * 2048) + 24 * DELTA (2048, 16, 96, 192)
          + 8 * (ATTENTION (2048, 16, 16, 128) + 2 * 2048),
      0 },
    { "solar_open2",
      ",\"num_hidden_layers\":4,\"linear_attn_config\":{\"head_dim\":128,\"num_heads\":64,\"num_kv_heads\":16}",
      MODEL (2, 196608, 4096, 4, 2 * 4096 + ROUTED (4096, 320, 321, 1280)) + 3 * KDA (4096, 64, 16, 128)
          + ATTENTION (4096, 64, 8, 128) + 4096ull * 8192,
      MODEL (2, 196608, 4096, 4, 2 * 4096 + ROUTED (4096, 320, 9, 1280)) + 3 * KDA (4096, 64, 16, 128)
          + ATTENTION (4096, 64, 8, 128) + 4096ull * 8192 },
    { "jamba",
      ",\"hidden_size\":2560,\"intermediate_size\":8192,\"num_hidden_layers\":28,\"num_attention_heads\":20,"
      "\"num_key_value_heads\":1,\"attn_layer_period\":14,\"attn_layer_offset\":7,\"num_experts\":1,"
      "\"num_experts_per_tok\":1,\"tie_word_embeddings\":true",
      MODEL (1, 65536, 2560, 28, 3ull * 2560 * 8192 + 2560)
          + 26 * (MAMBA1 (2560, 5120, 16, 160) + 160 + 2 * 16) + 2 * (ATTENTION (2560, 20, 1, 128) + 2560),
      0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (pins); i++)
    check_pin (&pins[i], false);
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
  cJSON_ArrayForEach (type, list)
  {
    const cJSON *values = cJSON_GetObjectItemCaseSensitive (type, "class_defaults");
    if (!values)
      continue;
    const char *name = cJSON_GetObjectItemCaseSensitive (type, "type")->valuestring;
    cJSON *all = cJSON_Duplicate (values, true);
    add_needed (all, name);
    cJSON_ArrayForEach (key, values)
    {
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

/* As many heads of keys as of queries, as wide as they divide; no window; no latent of queries. */
static void
null_is_no_default (void)
{
  static const Pin pins[] = {
    { "mistral", ",\"num_key_value_heads\":null",
      MODEL (2, 32000, 4096, 32, LAYER (4096, 32, 32, 128, 3, 14336)), 0 },
    { "qwen3", ",\"hidden_size\":2048,\"head_dim\":null",
      MODEL (2, 151936, 2048, 32, LAYER (2048, 32, 32, 64, 3, 22016) + 128), 0 },
    { "gemma2", ",\"hidden_size\":2048,\"head_dim\":null,\"num_key_value_heads\":8",
      MODEL (1, 256000, 2048, 26, LAYER (2048, 8, 8, 256, 3, 9216) + 2 * 2048), 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (pins); i++)
    check_pin (&pins[i], false);
  static const char *const windows[] = { "4096", "null" };
  for (guint i = 0; i < 2; i++) {
    LsModel m = { 0 };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *text = g_strdup_printf ("{\"model_type\":\"olmo3\",\"sliding_window\":%s}", windows[i]);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags));
    LS_CHECK_INT (m.window, ==, i == 0 ? 4096 : 0);
    ls_model_clear (&m);
  }
}

/* Like one whose class has other heads than the usual, and of a class that nobody has read. */
static void
what_nobody_knows_is_refused (void)
{
#define SMALL                                                                                                \
  ",\"vocab_size\":1000,\"hidden_size\":256,\"intermediate_size\":512,\"num_hidden_layers\":2,"              \
  "\"num_attention_heads\":4"
  static const struct {
    const char *keys, *said; /* "": it is right */
  } cases[] = {
    { "\"model_type\":\"sdar\"" SMALL ",\"num_key_value_heads\":4",
      "missing key \"head_dim\"; what the class of sdar takes without it is not known" },
    { "\"model_type\":\"sdar\"" SMALL ",\"head_dim\":64", "missing key \"num_key_value_heads\"; what" },
    { "\"model_type\":\"sdar\"" SMALL ",\"num_key_value_heads\":4,\"head_dim\":null", "" },
    { "\"model_type\":\"sdar_moe\"" SMALL ",\"num_key_value_heads\":4,\"num_experts\":4,"
      "\"num_experts_per_tok\":2,\"moe_intermediate_size\":64",
      "" },
    { "\"model_type\":\"xverse\"" SMALL, "" },
    { "\"model_type\":\"solar_open2\",\"gqa_interval\":5", "a type of several kinds" },
    { "\"model_type\":\"solar_open2\",\"kda_use_full_proj\":true", "a type of several kinds" },
    { "\"model_type\":\"doge\",\"is_moe\":true", "experts of one column each" },
    { "\"model_type\":\"plamo2\",\"full_attention_idx\":[]", "" },
    { "\"model_type\":\"plamo2\",\"full_attention_idx\":[3]", "attention without a window" },
    { "\"model_type\":\"llama4_text\",\"interleave_moe_layer_step\":0", "" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t active;
    g_autofree char *said = NULL;
    bool ok = params_of (cases[i].keys, &active, &said) > 0;
    ls_check_impl (ok == !*cases[i].said && strstr (said, cases[i].said), __FILE__, __LINE__, "%s: %s",
                   cases[i].keys, said);
  }
}

/* "auto" of mamba_d_head: what all heads have, said or so many times hidden, by their number. */
static void
heads_of_mixers_share_their_width (void)
{
  static const struct {
    const char *keys;
    uint32_t heads, head_dim;
  } cases[] = {
    { "\"model_type\":\"falcon_h1\"", 128, 8 },
    { "\"model_type\":\"falcon_h1\",\"mamba_d_ssm\":1536,\"mamba_n_heads\":24", 24, 64 },
    { "\"model_type\":\"falcon_h1\",\"mamba_d_ssm\":null", 128, 64 },
    { "\"model_type\":\"falcon_h1\",\"mamba_d_ssm\":1536,\"mamba_n_heads\":24,\"mamba_d_head\":32", 24, 32 },
    { "\"model_type\":\"bamba\",\"hidden_size\":2048,\"attn_layer_indices\":[9]", 128, 32 },
    { "\"model_type\":\"bamba\",\"hidden_size\":4096,\"attn_layer_indices\":[9],\"mamba_n_heads\":64,"
      "\"mamba_d_head\":\"auto\"",
      64, 128 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *text = g_strdup_printf ("{%s}", cases[i].keys);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags));
    LS_CHECK_INT (m.mixer_heads, ==, cases[i].heads);
    LS_CHECK_INT (m.mixer_head_dim, ==, cases[i].head_dim);
    ls_model_clear (&m);
  }
}

static void
kimi_rotates_where_it_says_so (void)
{
  static const char *const said[] = { "", ",\"mla_use_nope\":true", ",\"mla_use_nope\":false" };
  for (guint i = 0; i < G_N_ELEMENTS (said); i++) {
    LsModel m = { 0 };
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *text = g_strdup_printf (
        "{\"model_type\":\"kimi_linear\",\"vocab_size\":1000,\"hidden_size\":256,\"intermediate_size\":512,"
        "\"num_hidden_layers\":4,\"num_attention_heads\":4,\"num_experts\":4,\"num_experts_per_token\":2,"
        "\"moe_intermediate_size\":64,\"kv_lora_rank\":64,\"qk_rope_head_dim\":16,\"qk_nope_head_dim\":16,"
        "\"v_head_dim\":32,\"linear_attn_config\":{\"full_attn_layers\":[4],\"head_dim\":64,\"num_heads\":4}%s}",
        said[i]);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    LS_CHECK (doc && ls_model_read (doc, &m, NULL, diags));
    LS_CHECK_INT (m.position, ==, i == 2 ? LS_POSITION_ROPE : LS_POSITION_NONE);
    ls_model_clear (&m);
  }
}

/* What is told: values that are not off, and not what the file says by another name. */
static void
what_the_class_says_is_told (void)
{
  static const struct {
    const char *keys, *note; /* NULL: none */
  } cases[] = {
    { "\"model_type\":\"opt\",\"vocab_size\":1000,\"d_model\":256,\"ffn_dim\":512,\"num_hidden_layers\":2",
      "the file leaves out what its class has defaults of: num_attention_heads 12, max_position_embeddings 2048" },
    { "\"model_type\":\"dbrx\",\"d_model\":6144,\"n_heads\":48,\"n_layers\":40,\"vocab_size\":100352,"
      "\"max_seq_len\":2048,\"attn_config\":{\"kv_n_heads\":8},\"ffn_config\":{\"ffn_hidden_size\":10752,"
      "\"moe_top_k\":4}",
      "the file leaves out what its class has defaults of: num_experts 4" },
    { "\"model_type\":\"smollm3\",\"vocab_size\":1000,\"hidden_size\":256,\"intermediate_size\":512,"
      "\"num_hidden_layers\":2,\"num_attention_heads\":4",
      "the file leaves out what its class has defaults of: num_key_value_heads 4" },
    { "\"model_type\":\"smollm3\",\"vocab_size\":1000,\"hidden_size\":256,\"intermediate_size\":512,"
      "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":null",
      NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *text = g_strdup_printf ("{%s}", cases[i].keys);
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
    ls_model_read (doc, &m, notes, diags);
    const char *first = notes->len > 0 ? notes->pdata[0] : "";
    LS_CHECK_STR (g_str_has_prefix (first, "the file leaves out") ? first : NULL, cases[i].note);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (classes_say_what_files_leave_out), LS_TEST (sizes_follow_from_what_is_said),
               LS_TEST (what_is_left_out_counts_as_if_said), LS_TEST (null_is_no_default),
               LS_TEST (what_nobody_knows_is_refused), LS_TEST (heads_of_mixers_share_their_width),
               LS_TEST (kimi_rotates_where_it_says_so), LS_TEST (what_the_class_says_is_told))
