/* Pins models/<name>.json: each has the size that its source publishes. Reads the
 * files with cJSON alone, so that it checks them and not the reader. */
#include "ls_test.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "fixtures.h"

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
};

static cJSON *
load (const char *dir, const char *name)
{
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  g_autofree char *path = g_build_filename (dir, file, NULL);
  g_autofree char *text = NULL;
  return g_file_get_contents (path, &text, NULL, NULL) ? cJSON_Parse (text) : NULL;
}

static uint32_t
number (const cJSON *json, const char *key, uint32_t if_absent)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (json, key);
  return cJSON_IsNumber (item) ? (uint32_t) item->valuedouble : if_absent;
}

static bool
is (const cJSON *json, const char *key, const char *value)
{
  return g_strcmp0 (cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (json, key)), value) == 0;
}

static bool
is_true (const cJSON *json, const char *key)
{
  return cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (json, key));
}

static LsModel
dimensions (const cJSON *json)
{
  LsModel m = {
    .n_layers = number (json, "layers", 0),
    .hidden = number (json, "hidden", 0),
    .n_heads = number (json, "heads", 1),
    .vocab = number (json, "vocab", 0),
    .seq = number (json, "seq", 0),
    .mlp = is (json, "mlp", "swiglu") ? LS_MLP_SWIGLU : LS_MLP_GELU,
    .norm = is (json, "norm", "rmsnorm") ? LS_NORM_RMSNORM : LS_NORM_LAYERNORM,
    .position = is (json, "position", "learned") ? LS_POSITION_LEARNED : LS_POSITION_ROPE,
    .linear_bias = is_true (json, "linear_bias"),
    .qkv_bias = is_true (json, "qkv_bias"),
    .tied_embeddings = is_true (json, "tied_embeddings"),
  };
  m.n_kv_heads = number (json, "kv_heads", m.n_heads);
  m.head_dim = number (json, "head_dim", m.hidden / m.n_heads);
  m.ffn = number (json, "ffn", 4 * m.hidden);
  m.qk_norm = is_true (json, "qk_norm");
  m.kv_lora = number (json, "kv_lora", 0);
  m.q_lora = number (json, "q_lora", 0);
  m.rope_dim = number (json, "rope_dim", 0);
  m.v_dim = number (json, "v_dim", 0);
  m.n_experts = number (json, "experts", 0);
  m.top_k = number (json, "top_k", 0);
  m.expert_ffn = number (json, "expert_ffn", 0);
  m.shared_ffn = number (json, "shared_ffn", 0);
  m.n_dense_layers = number (json, "dense_layers", 0);
  m.moe_every = number (json, "moe_every", 1);
  return m;
}

static void
sizes_are_as_published (void)
{
  g_autofree char *dir = g_build_filename (g_getenv ("LS_DATA_DIR"), "models", NULL);
  for (size_t i = 0; i < G_N_ELEMENTS (published); i++) {
    cJSON *json = load (dir, published[i].name);
    if (!LS_CHECK (json != NULL))
      continue;
    LsModel m = dimensions (json);
    LS_CHECK (is (json, "name", published[i].name));
    LS_CHECK (is (json, "schema", "lockstep.model/1"));
    double params = (double) ls_model_params (&m, m.vocab);
    double active = (double) ls_model_active_params (&m, m.vocab);
    LS_CHECK_DOUBLE (fabs (params - published[i].params), <=, published[i].half_digit);
    if (published[i].active > 0)
      LS_CHECK_DOUBLE (fabs (active - published[i].active), <=, published[i].active_half_digit);
    else
      LS_CHECK_DOUBLE (active, ==, params);
    cJSON_Delete (json);
  }
}

/* A new file gets a row above. */
static void
every_file_has_a_published_size (void)
{
  g_autofree char *path = g_build_filename (g_getenv ("LS_DATA_DIR"), "models", NULL);
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  if (!LS_CHECK (dir != NULL))
    return;
  const char *file;
  size_t n = 0;
  while ((file = g_dir_read_name (dir)))
    n += g_str_has_suffix (file, ".json");
  LS_CHECK_INT (n, ==, G_N_ELEMENTS (published));
}

LS_TEST_MAIN ("shipped models", LS_TEST (sizes_are_as_published), LS_TEST (every_file_has_a_published_size))
