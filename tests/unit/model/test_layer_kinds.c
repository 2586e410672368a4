/* Pins layers that differ within a model or from Llama's: what a window leaves of attention, where norms stand,
 * rope in some layers and on a part of a head, gates, caps of logits, against counts by hand; and that operators
 * hold the parameters that a model has. */
#include "ls_test.h"

#include "fixtures.h"
#include "model/mixer.h"

static LsModel
small (void)
{
  LsModel m = llama (12, 1024, 8, 2, 4096, 32000);
  m.seq = 4096;
  return m;
}

static GArray *
layer_of (const LsModel *m, uint32_t layer)
{
  GArray *operators = operators_new ();
  LsShard s = shard (m, 1, false, 1);
  ls_operators_layer (m, &s, layer, operators);
  return operators;
}

/* Query i of 4096 sees min (i + 1, 1024) keys: 1024 - 1024^2 / 8192 = 896 by the mean, taken as a line. */
static void
a_window_leaves_what_it_shows (void)
{
  LsModel m = small ();
  m.window = 1024;
  m.full_every = 4;
  g_autoptr (GArray) windowed = layer_of (&m, 2), full = layer_of (&m, 3);
  double pairs = 4.0 * 4096 * 8 * 128;
  LS_CHECK_DOUBLE (find_operator (full, "attention")->fwd[0].flops, ==, pairs * 2048);
  LS_CHECK_DOUBLE (find_operator (windowed, "attention")->fwd[0].flops, ==, pairs * 896);
  LS_CHECK_DOUBLE (find_operator (windowed, "attention")->igrad[0].flops, ==, 2.5 * pairs * 896);

  m.window_kind = LS_WINDOW_CHUNK; /* four blocks of 1024: 512 by the mean */
  g_autoptr (GArray) chunked = layer_of (&m, 2);
  LS_CHECK_DOUBLE (find_operator (chunked, "attention")->fwd[0].flops, ==, pairs * 512);

  m.window = 8192; /* longer than the sequence */
  g_autoptr (GArray) wide = layer_of (&m, 2);
  LS_CHECK_DOUBLE (find_operator (wide, "attention")->fwd[0].flops, ==, pairs * 2048);
}

/* 9 of 12 layers are windowed: of attention 3 + 9 * 896 / 2048 layers are left. */
static void
flops_of_a_model_count_windows (void)
{
  LsModel m = small (), all = small ();
  m.window = 1024;
  m.full_every = 4;
  double attention = 12 * 4096.0 * 4096 * 1024;
  double linear = ls_model_flops (&all, 32000, 4096, 1, false) - 12 * attention;
  LS_CHECK_NEAR (ls_model_flops (&m, 32000, 4096, 1, false), linear + (3 + 9 * 896 / 2048.0) * attention,
                 1e-12);
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, 2);
  LS_CHECK_INT (ls_model_n_layer_kinds (&all), ==, 1);
}

static void
rope_where_it_is (void)
{
  LsModel m = small ();
  m.unrotated_every = 4;
  m.rotary_dim = 32; /* of 128 */
  g_autoptr (GArray) rotated = layer_of (&m, 0), unrotated = layer_of (&m, 7);
  LS_CHECK_DOUBLE (find_operator (rotated, "rope")->fwd[0].bytes, ==, 4096.0 * (8 + 2) * 32 * 4);
  LS_CHECK (!find_operator (unrotated, "rope"));
  LS_CHECK_INT (ls_model_layer_kind (&m, 7), ==, LS_LAYER_UNROTATED);
}

/* A norm keeps what it reads, 2 bytes a number: two more keep two more; behind a shared one the way up keeps
 * nothing of its own. */
static void
norms_keep_what_they_read (void)
{
  uint64_t tensor = 4096 * 1024 * 2;
  LsModel m = small ();
  g_autoptr (GArray) pre = layer_of (&m, 0);
  m.norms = LS_NORMS_POST;
  g_autoptr (GArray) post = layer_of (&m, 0);
  m.norms = LS_NORMS_BOTH;
  g_autoptr (GArray) both = layer_of (&m, 0);
  m.norms = LS_NORMS_SHARED;
  g_autoptr (GArray) shared = layer_of (&m, 0);
  LS_CHECK_INT (saved_bytes (post, true), ==, saved_bytes (pre, true));
  LS_CHECK_INT (saved_bytes (both, true), ==, saved_bytes (pre, true) + 2 * tensor);
  LS_CHECK_INT (saved_bytes (shared, true), ==, saved_bytes (pre, true) - 2 * tensor);
  LS_CHECK (!find_operator (post, "input-norm") && find_operator (post, "attention-post-norm")
            && find_operator (post, "mlp-input"));
  LS_CHECK (find_operator (both, "mlp-norm") && find_operator (both, "mlp-post-norm"));
  LS_CHECK (find_operator (shared, "input-norm") && !find_operator (shared, "mlp-norm"));
}

static uint64_t
n_params (const GArray *operators)
{
  uint64_t sum = 0;
  for (guint i = 0; i < operators->len; i++)
    for (uint32_t p = 0; p < g_array_index (operators, LsOperator, i).n_params; p++)
      sum += g_array_index (operators, LsOperator, i).param_numel[p];
  return sum;
}

/* In each form there is of a layer. */
static void
operators_hold_the_parameters_of_a_layer (void)
{
  for (int norms = LS_NORMS_PRE; norms <= LS_NORMS_SHARED; norms++)
    for (int norm = LS_NORM_LAYERNORM; norm <= LS_NORM_LAYERNORM_PLAIN; norm++)
      for (int over = LS_QK_NORM_HEAD; over <= LS_QK_NORM_ALL; over++)
        for (int mlp = LS_MLP_GELU; mlp <= LS_MLP_GEGLU; mlp++) {
          LsModel m = small ();
          m.norms = (LsNormPlaces) norms;
          m.norm = (LsNorm) norm;
          m.qk_norm = true;
          m.qk_norm_over = (LsQkNormOver) over;
          m.mlp = (LsMlp) mlp;
          g_autoptr (GArray) operators = layer_of (&m, 0);
          LS_CHECK_INT (n_params (operators), ==, ls_model_layer_params (&m, 0));
        }
}

static LsModel
hybrid (LsMixerKind mixer)
{
  LsModel m = small ();
  m.layer_pattern = (char *) "AMamde";
  m.mixer = mixer;
  m.mixer_heads = 8;
  m.mixer_head_dim = 64;
  m.mixer_groups = 2;
  m.mixer_state = 128;
  m.mixer_conv = 4;
  m.mixer_chunk = 256;
  m.mixer_rank = 64;
  m.n_experts = 4;
  m.top_k = 2;
  m.expert_ffn = 512;
  m.n_dense_layers = 1;
  m.moe_every = 2;
  return m;
}

/* Of all kinds of mixers, in layers of all letters. */
static void
operators_hold_the_parameters_of_a_mixer (void)
{
  for (int mixer = LS_MIXER_MAMBA1; mixer <= LS_MIXER_CONV; mixer++) {
    LsModel m = hybrid ((LsMixerKind) mixer);
    m.attention_gate = true;
    for (uint32_t layer = 0; layer < 6; layer++) {
      g_autoptr (GArray) operators = layer_of (&m, layer);
      LS_CHECK_INT (n_params (operators), ==, ls_model_layer_params (&m, layer));
    }
  }
}

static double
gemm_flops (const LsKernel *kernels, uint32_t n)
{
  double flops = 0;
  for (uint32_t i = 0; i < n; i++)
    flops += is_gemm (&kernels[i]) ? kernels[i].flops : 0;
  return flops;
}

/* The worked example of mixer.h, and the products that a layer launches: each forwards once, backwards twice. */
static void
chunks_are_products (void)
{
  LsModel m = hybrid (LS_MIXER_MAMBA2);
  m.mixer_groups = 1;
  LS_CHECK_DOUBLE (ls_mixer_flops (&m, 256), ==, 150994944);
  for (int mixer = LS_MIXER_MAMBA1; mixer <= LS_MIXER_CONV; mixer++) {
    m.mixer = (LsMixerKind) mixer;
    g_autoptr (GArray) operators = layer_of (&m, 3);
    const LsOperator *chunks = find_operator (operators, "mixer-chunks");
    double flops = chunks ? gemm_flops (chunks->fwd, chunks->n_fwd) : 0;
    double back = chunks ? gemm_flops (chunks->igrad, chunks->n_igrad) : 0;
    LS_CHECK_DOUBLE (flops, ==, ls_mixer_flops (&m, 4096));
    LS_CHECK_DOUBLE (back, ==, 2 * flops);
  }
}

/* By letter: A, M, a, m, d, e. */
static void
letters_say_what_a_layer_has (void)
{
  static const bool has_attention[] = { true, false, true, false, false, false },
                    has_mixer[] = { false, true, false, true, false, false },
                    has_mlp[] = { true, true, false, false, true, false },
                    has_experts[] = { false, false, false, false, false, true };
  LsModel m = hybrid (LS_MIXER_MAMBA2);
  m.moe_every = 12; /* but for the letter e, none has them */
  for (uint32_t i = 0; i < 6; i++) {
    g_autoptr (GArray) operators = layer_of (&m, i + 6);
    LS_CHECK ((find_operator (operators, "attention") != NULL) == has_attention[i]);
    LS_CHECK ((find_operator (operators, "mixer-in") != NULL) == has_mixer[i]);
    LS_CHECK ((find_operator (operators, "fc1") != NULL) == has_mlp[i]);
    LS_CHECK ((find_operator (operators, "permute") != NULL) == has_experts[i]);
  }
  LS_CHECK_INT (ls_model_n_attention_layers (&m), ==, 4);
  LS_CHECK_INT (ls_model_n_moe_layers (&m), ==, 2);
}

/* 4096 queries meet 512 keys: 512 - 512^2 / 8192 = 480 by the mean. The indexer scores all pairs before:
 * 4096^2 / 2 of 4 heads of 64, 2 FLOPs each, and backwards twice. */
static void
an_indexer_chooses_keys (void)
{
  LsModel m = small ();
  m.n_kv_heads = m.n_heads;
  m.kv_lora = 256;
  m.q_lora = 512;
  m.rope_dim = 64;
  m.v_dim = 128;
  m.window = 512;
  m.index_heads = 4;
  m.index_dim = 64;
  g_autoptr (GArray) operators = layer_of (&m, 0);
  LS_CHECK_DOUBLE (find_operator (operators, "attention")->fwd[0].flops, ==, 4.0 * 4096 * 8 * 128 * 480);
  LS_CHECK_DOUBLE (find_operator (operators, "index-scores")->fwd[0].flops, ==, 4096.0 * 4096 * 4 * 64);
  LS_CHECK_DOUBLE (find_operator (operators, "index-scores")->igrad[0].flops, ==, 2 * 4096.0 * 4096 * 4 * 64);
  LS_CHECK_DOUBLE (ls_model_index_flops (&m, 4096), ==, 4096.0 * 4096 * 4 * 64);
  LS_CHECK_INT (n_params (operators), ==, ls_model_layer_params (&m, 0));
}

static void
caps_pass_over_the_logits (void)
{
  LsModel m = small ();
  m.logit_cap = true;
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) operators = operators_new ();
  ls_operators_head (&m, &s, true, operators);
  const LsOperator *cap = find_operator (operators, "logit-cap");
  double logits = 4096.0 * 32000;
  if (LS_CHECK (cap != NULL)) {
    LS_CHECK_DOUBLE (cap->fwd[0].bytes, ==, 4 * logits);
    LS_CHECK_DOUBLE (cap->igrad[0].bytes, ==, 6 * logits);
    LS_CHECK_INT (cap->saved_bytes, ==, 2 * (uint64_t) logits);
  }
}

LS_TEST_MAIN ("layer_kinds", LS_TEST (a_window_leaves_what_it_shows),
              LS_TEST (flops_of_a_model_count_windows), LS_TEST (rope_where_it_is),
              LS_TEST (norms_keep_what_they_read), LS_TEST (operators_hold_the_parameters_of_a_layer),
              LS_TEST (operators_hold_the_parameters_of_a_mixer), LS_TEST (chunks_are_products),
              LS_TEST (letters_say_what_a_layer_has), LS_TEST (an_indexer_chooses_keys),
              LS_TEST (caps_pass_over_the_logits))
