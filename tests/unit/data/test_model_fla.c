/* Pins config.json files of flash-linear-attention and of flame, its trainer: counts by the shapes of their layers
 * at bc3b101d and as published, and what is refused. */
#include "ls_test.h"

#include <string.h>

#include "config_params.h"

#define PLAIN                                                                                                          \
  "\"schema\":\"lockstep.model/1\",\"name\":\"config\",\"source\":\"a test\",\"layers\":4,\"hidden\":512,\"heads\":8," \
  "\"vocab\":1000,\"seq\":256,\"mlp\":\"swiglu\",\"norm\":\"rmsnorm\",\"position\":\"rope\""

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
  LS_CHECK_STR (m.layers.pattern, "MAMA");
  LS_CHECK (m.n_heads == 16 && m.n_kv_heads == 4 && m.head_dim == 128 && m.attn.window == 512);
  LS_CHECK (m.mixer.heads == 8 && m.mixer.groups == 8 && m.mixer.state == 256 && m.mixer.head_dim == 512);
  LS_CHECK (m.mixer.products == 6 && m.mixer.chunk == 64 && m.position == LS_POSITION_ROPE);
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
    { MAMBA2_OF (",\"expand\":4,\"head_dim\":64"), "vocab_size 32768, num_heads 128", NULL, 128 },
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
    LS_CHECK_INT (m.mixer.heads, ==, cases[i].heads);
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

LS_TEST_SUITE (LS_TEST (weights_of_fla_are_those_of_its_layers), LS_TEST (some_layers_have_attention),
               LS_TEST (heads_follow_from_widths), LS_TEST (what_of_fla_is_not_simulated_is_refused))
