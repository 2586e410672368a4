/* Pins multi-token prediction of a config.json: how many blocks by what stands behind the file's name, their
 * layers by the file's lists and letters, by the rule of its type or as the last layer; what is refused. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "model/predict.h"

/* Nemotron 3 Super 120B-A12B, with a part of its layers where the rest is of no matter. */
#define NEMOTRON(layers_)                                                                                    \
  "\"model_type\":\"nemotron_h\",\"vocab_size\":131072,\"hidden_size\":4096,\"intermediate_size\":5376,"     \
  "\"num_attention_heads\":32,\"num_key_value_heads\":2,\"head_dim\":128,\"mlp_hidden_act\":\"relu2\","      \
  "\"max_position_embeddings\":262144,\"mamba_num_heads\":128,\"mamba_head_dim\":64,\"n_groups\":8,"         \
  "\"ssm_state_size\":128,\"conv_kernel\":4,\"chunk_size\":128,\"n_routed_experts\":512,"                    \
  "\"num_experts_per_tok\":22,\"n_shared_experts\":1,\"moe_intermediate_size\":2688,"                        \
  "\"moe_shared_expert_intermediate_size\":5376,\"moe_latent_size\":1024,\"num_nextn_predict_layers\":1,"    \
  "\"hybrid_override_pattern\":\"" layers_ "\""
#define SUPER "MEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*E"
/* Attention, a router, the ways into a latent and out of it, 512 experts there, a shared one, the projection of
 * two inputs, and five norms. */
#define SUPER_BLOCK                                                                                          \
  (4096ull * (4096 + 2 * 256) + 4096ull * 4096 + 4096ull * 512 + 2 * 4096ull * 1024                          \
   + 512 * 2 * 1024ull * 2688 + 2 * 4096ull * 5376 + 2 * 4096ull * 4096 + 5 * 4096ull)

#define SMALL                                                                                                \
  "\"hidden_size\":256,\"intermediate_size\":512,\"num_attention_heads\":4,\"vocab_size\":1000,"             \
  "\"max_position_embeddings\":8192,\"num_key_value_heads\":4,\"head_dim\":64,"
#define EXPERTS                                                                                              \
  "\"moe_intermediate_size\":64,\"n_routed_experts\":8,\"num_experts\":8,\"num_experts_per_tok\":2,"
#define LATENTS                                                                                              \
  "\"q_lora_rank\":64,\"kv_lora_rank\":64,\"qk_nope_head_dim\":32,\"qk_rope_head_dim\":32,\"v_head_dim\":32,"

static bool
read_keys (const char *keys, LsModel *ret_model, char **ret_said)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *text = g_strdup_printf ("{%s}", keys);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "config.json", diags);
  bool ok = doc && ls_model_read (doc, ret_model, NULL, diags);
  *ret_said = ls_diag_list_format (diags);
  return ok;
}

static uint64_t
params_of (const char *keys)
{
  LsModel m = { 0 };
  g_autofree char *said = NULL;
  LS_CHECK (read_keys (keys, &m, &said));
  uint64_t n = ls_model_params (&m, m.vocab);
  ls_model_clear (&m);
  return n;
}

/* 120.7 B without it: "120B-A12B". A checkpoint has one block, which training runs as often as it likes. */
static void
blocks_of_nemotron_share_their_weights (void)
{
#define PATTERN ",\"mtp_hybrid_override_pattern\":\"*E\""
  uint64_t n = params_of (NEMOTRON (SUPER) PATTERN);
  LS_CHECK_INT (n / 100000000, ==, 1206);
  LS_CHECK_INT (params_of (NEMOTRON (SUPER) PATTERN ",\"predict_layers\":1") - n, ==, SUPER_BLOCK);
  LS_CHECK_INT (params_of (NEMOTRON (SUPER) PATTERN ",\"predict_layers\":2") - n, ==, SUPER_BLOCK);
  LS_CHECK_INT (params_of (NEMOTRON (SUPER) PATTERN ",\"predict_layers\":2,\"mtp_use_repeated_layer\":false")
                    - n,
                ==, 2 * SUPER_BLOCK);
  LS_CHECK_INT (
      params_of (NEMOTRON (SUPER) ",\"predict_layers\":1,\"mtp_layers_block_type\":[\"attention\",\"moe\"]")
          - n,
      ==, SUPER_BLOCK);
}

/* Pattern, whether windowed, whether shared; NULL: as the last layer. */
static const struct {
  const char *keys, *pattern;
  bool is_windowed, is_shared;
} blocks[] = {
  { NEMOTRON ("ME*E") ",\"mtp_hybrid_override_pattern\":\"*E\"", NULL, false, false },
  { NEMOTRON ("ME*E") ",\"predict_layers\":1", NULL, false, true },
  { NEMOTRON (
        "ME*E") ",\"predict_layers\":2,\"predict_pattern\":\"em\",\"mtp_hybrid_override_pattern\":\"*E\"",
    "em", false, true },
  { NEMOTRON ("ME*E") ",\"predict_layers\":2,\"predict_shared\":false,\"mtp_hybrid_override_pattern\":\"*E\"",
    "ae", false, false },
  { SMALL "\"model_type\":\"llama\",\"num_hidden_layers\":2,\"predict_layers\":2,\"predict_shared\":true",
    NULL, false, true },
  { SMALL EXPERTS LATENTS
    "\"model_type\":\"deepseek_v3\",\"num_hidden_layers\":4,\"first_k_dense_replace\":1,"
    "\"predict_layers\":1",
    NULL, false, false },
  { SMALL EXPERTS LATENTS "\"model_type\":\"longcat_flash\",\"num_layers\":2,\"expert_ffn_hidden_size\":64,"
                          "\"ffn_hidden_size\":512,\"predict_layers\":1",
    "D", false, false },
  { SMALL EXPERTS "\"model_type\":\"mimo_v2_flash\",\"num_hidden_layers\":12,\"sliding_window\":64,"
                  "\"swa_num_key_value_heads\":4,\"swa_head_dim\":64,\"v_head_dim\":64,\"swa_v_head_dim\":64,"
                  "\"predict_layers\":3",
    "D", true, false },
  { SMALL "\"model_type\":\"ernie4_5_moe\",\"num_hidden_layers\":4,\"moe_num_experts\":8,\"moe_k\":2,"
          "\"moe_intermediate_size\":64,\"predict_layers\":1",
    "D", false, false },
  { SMALL EXPERTS
    "\"model_type\":\"exaone_moe\",\"num_hidden_layers\":4,\"sliding_window\":64,\"num_shared_experts\":1,"
    "\"predict_layers\":1",
    "D", false, false },
  { SMALL
    "\"model_type\":\"step3p5\",\"num_hidden_layers\":8,\"num_attention_groups\":4,\"moe_num_experts\":8,"
    "\"moe_top_k\":2,\"moe_intermediate_size\":64,\"share_expert_dim\":64,\"predict_layers\":1,"
    "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\","
    "\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\","
    "\"sliding_attention\"]",
    "D", false, false },
  { SMALL
    "\"model_type\":\"step3p5\",\"num_hidden_layers\":5,\"num_attention_groups\":4,\"moe_num_experts\":8,"
    "\"moe_top_k\":2,\"moe_intermediate_size\":64,\"share_expert_dim\":64,\"predict_layers\":1,"
    "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"sliding_attention\","
    "\"full_attention\",\"sliding_attention\",\"sliding_attention\"]",
    "D", true, false },
  { SMALL EXPERTS "\"model_type\":\"glm4_moe\",\"num_hidden_layers\":4,\"predict_layers\":1,"
                  "\"mtp_mlp_layer_types\":[\"dense\"]",
    "D", false, false },
};

static void
layers_of_a_block_are_as_the_release_has_them (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++) {
    LsModel m = { 0 };
    g_autofree char *said = NULL;
    bool ok = read_keys (blocks[i].keys, &m, &said);
    ls_check_impl (ok && g_strcmp0 (m.predict_pattern, blocks[i].pattern) == 0
                       && m.predict_windowed == blocks[i].is_windowed
                       && m.predict_shared == blocks[i].is_shared,
                   __FILE__, __LINE__, "%u: %s %d %d %s", i, m.predict_pattern, m.predict_windowed,
                   m.predict_shared, said);
    ls_model_clear (&m);
  }
}

/* Routers of Nemotron-H are by sigmoids where it has any. */
static void
routers_are_there_with_experts_alone (void)
{
  for (guint i = 0; i < 2; i++) {
    LsModel m = { 0 };
    g_autofree char *said = NULL;
    LS_CHECK (read_keys (i ? NEMOTRON ("M*-") : NEMOTRON ("ME*E"), &m, &said));
    LS_CHECK_INT (m.sigmoid_router, ==, i == 0);
    ls_model_clear (&m);
  }
}

static void
what_cannot_be_simulated_is_refused (void)
{
  static const struct {
    const char *keys, *said;
  } wrong[] = {
    { NEMOTRON ("ME*E") ",\"predict_layers\":1,\"mtp_hybrid_override_pattern\":\"*X\"",
      "expected letters of" },
    { NEMOTRON ("ME*E") ",\"predict_layers\":1,\"mtp_layers_block_type\":[\"rest\"]",
      "expected attention, mamba" },
    { NEMOTRON ("ME*E") ",\"predict_layers\":1,\"predict_pattern\":\"aB\"", "letters of A" },
    { SMALL EXPERTS "\"model_type\":\"glm4_moe\",\"num_hidden_layers\":4,\"predict_layers\":2,"
                    "\"mtp_mlp_layer_types\":[\"dense\",\"sparse\"]",
      "blocks that predict further tokens and differ" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    LsModel m = { 0 };
    g_autofree char *said = NULL;
    bool ok = read_keys (wrong[i].keys, &m, &said);
    ls_check_impl (!ok && strstr (said, wrong[i].said), __FILE__, __LINE__, "%u: %s", i, said);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (blocks_of_nemotron_share_their_weights),
               LS_TEST (layers_of_a_block_are_as_the_release_has_them),
               LS_TEST (routers_are_there_with_experts_alone), LS_TEST (what_cannot_be_simulated_is_refused))
