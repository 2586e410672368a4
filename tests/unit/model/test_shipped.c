/* Pins models/<name>.json: each has the size that its source publishes. Reads the
 * files with cJSON alone, so that it checks them and not the reader. */
#include "ls_test.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "fixtures.h"

/* Narayanan et al. 2021 Table 1 (Figure 13 for 162.2B), Korthikanti et al. 2022
 * Table 3, Llama 3 checkpoints (8,030,261,248; 70,553,706,496; 405,853,388,800). */
static const struct {
  const char *name;
  double params;
  double half_digit; /* of the last one printed; 0: exact */
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
    .n_layers = number (json, "layers", 0), .hidden = number (json, "hidden", 0),
    .n_heads = number (json, "heads", 1), .vocab = number (json, "vocab", 0), .seq = number (json, "seq", 0),
    .mlp = is (json, "mlp", "swiglu") ? LS_MLP_SWIGLU : LS_MLP_GELU,
    .norm = is (json, "norm", "rmsnorm") ? LS_NORM_RMSNORM : LS_NORM_LAYERNORM,
    .position = is (json, "position", "learned") ? LS_POSITION_LEARNED : LS_POSITION_ROPE,
    .linear_bias = is_true (json, "linear_bias"), .qkv_bias = is_true (json, "qkv_bias"),
    .tied_embeddings = is_true (json, "tied_embeddings"),
  };
  m.n_kv_heads = number (json, "kv_heads", m.n_heads);
  m.head_dim = number (json, "head_dim", m.hidden / m.n_heads);
  m.ffn = number (json, "ffn", 4 * m.hidden);
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
    LS_CHECK_DOUBLE (fabs (params - published[i].params), <=, published[i].half_digit);
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
