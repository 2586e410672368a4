/* Pins layers that differ within a model or from Llama's: what a window leaves of attention, where norms stand,
 * rope in some layers and on a part of a head, gates, caps of logits, mixers beside attention, experts behind a
 * latent, an encoder, against counts by hand; and that operators hold the parameters that a model has. */
#include "ls_test.h"

#include <string.h>

#include "model_shapes.h"
#include "model/mixer.h"

/* Query i of 4096 sees min (i + 1, 1024) keys: 1024 - 1024^2 / 8192 = 896 by the mean, taken as a line. */
static void
a_window_leaves_what_it_shows (void)
{
  LsModel m = small ();
  m.attn.window = 1024;
  m.attn.full_every = 4;
  g_autoptr (GArray) windowed = layer_of (&m, 2), full = layer_of (&m, 3);
  double pairs = 4.0 * 4096 * 8 * 128;
  LS_CHECK_DOUBLE (find_operator (full, "attention")->fwd[0].flops, ==, pairs * 2048);
  LS_CHECK_DOUBLE (find_operator (windowed, "attention")->fwd[0].flops, ==, pairs * 896);
  LS_CHECK_DOUBLE (find_operator (windowed, "attention")->igrad[0].flops, ==, 2.5 * pairs * 896);

  m.attn.window_kind = LS_WINDOW_CHUNK; /* four blocks of 1024: 512 by the mean */
  g_autoptr (GArray) chunked = layer_of (&m, 2);
  LS_CHECK_DOUBLE (find_operator (chunked, "attention")->fwd[0].flops, ==, pairs * 512);

  m.attn.window = 8192; /* longer than the sequence */
  g_autoptr (GArray) wide = layer_of (&m, 2);
  LS_CHECK_DOUBLE (find_operator (wide, "attention")->fwd[0].flops, ==, pairs * 2048);
}

/* 9 of 12 layers are windowed: of attention 3 + 9 * 896 / 2048 layers are left. */
static void
flops_of_a_model_count_windows (void)
{
  LsModel m = small (), all = small ();
  m.attn.window = 1024;
  m.attn.full_every = 4;
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
  m.attn.unrotated_every = 4;
  m.attn.rotary_dim = 32; /* of 128 */
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
          m.attn.qk_norm = true;
          m.attn.qk_norm_over = (LsQkNormOver) over;
          m.mlp = (LsMlp) mlp;
          g_autoptr (GArray) operators = layer_of (&m, 0);
          LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, 0));
        }
}

static LsModel
hybrid (LsMixerKind mixer)
{
  LsModel m = small ();
  m.layers.pattern = (char *) "AMamde";
  m.mixer.kind = mixer;
  m.mixer.heads = 8;
  m.mixer.head_dim = 64;
  m.mixer.groups = 2;
  m.mixer.state = 128;
  m.mixer.conv = 4;
  m.mixer.chunk = 256;
  m.mixer.rank = mixer == LS_MIXER_MAMBA1 ? 64 : 0;
  m.moe.n_experts = 4;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 512;
  m.moe.n_dense_layers = 1;
  m.moe.every = 2;
  return m;
}

/* Of all kinds of mixers, in layers of all letters. */
static void
operators_hold_the_parameters_of_a_mixer (void)
{
  for (int mixer = LS_MIXER_NONE + 1; mixer < LS_N_MIXERS; mixer++) {
    LsModel m = hybrid ((LsMixerKind) mixer);
    m.attn.gate = true;
    for (uint32_t layer = 0; layer < 6; layer++) {
      g_autoptr (GArray) operators = layer_of (&m, layer);
      LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, layer));
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
  m.mixer.groups = 1;
  LS_CHECK_DOUBLE (ls_mixer_flops (&m, 1, 256), ==, 150994944);
  for (int mixer = LS_MIXER_NONE + 1; mixer < LS_N_MIXERS; mixer++) {
    m.mixer.kind = (LsMixerKind) mixer, m.mixer.rank = mixer == LS_MIXER_MAMBA1 ? 64 : 0;
    g_autoptr (GArray) operators = layer_of (&m, 3);
    const LsOperator *chunks = find_operator (operators, "mixer-chunks");
    double flops = chunks ? gemm_flops (chunks->fwd, chunks->n_fwd) : 0;
    double back = chunks ? gemm_flops (chunks->igrad, chunks->n_igrad) : 0;
    LS_CHECK_DOUBLE (flops, ==, ls_mixer_flops (&m, 1, 4096));
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
  m.moe.every = 12; /* but for the letter e, none has them */
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
  m.latent.kv_lora = 256;
  m.latent.q_lora = 512;
  m.latent.rope_dim = 64;
  m.v_dim = 128;
  m.attn.window = 512;
  m.index.heads = 4;
  m.index.dim = 64;
  g_autoptr (GArray) operators = layer_of (&m, 0);
  LS_CHECK_DOUBLE (find_operator (operators, "attention")->fwd[0].flops, ==, 4.0 * 4096 * 8 * 128 * 480);
  LS_CHECK_DOUBLE (find_operator (operators, "index-scores")->fwd[0].flops, ==, 4096.0 * 4096 * 4 * 64);
  LS_CHECK_DOUBLE (find_operator (operators, "index-scores")->igrad[0].flops, ==, 2 * 4096.0 * 4096 * 4 * 64);
  LS_CHECK_DOUBLE (ls_model_index_flops (&m, LS_LAYER_WINDOWED, 4096), ==, 4096.0 * 4096 * 4 * 64);
  LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, 0));
}

/* Full, full, shared, full, shared, full, ... of 12: an indexer in 7, whose parameters the others have not, but
 * its keys are met. */
static void
an_indexer_chooses_for_several_layers (void)
{
  LsModel m = small (), without;
  m.n_kv_heads = m.n_heads;
  m.latent.kv_lora = 256;
  m.latent.q_lora = 512;
  m.latent.rope_dim = 64;
  m.v_dim = 128;
  m.attn.window = 512;
  m.index.heads = 4;
  m.index.dim = 64;
  m.index.every = m.index.first = 2;
  without = m;
  without.index.heads = without.index.dim = without.index.every = without.index.first = 0;
  uint64_t own = ls_model_layer_params (&m, 0) - ls_model_layer_params (&without, 0), all = 0;
  LS_CHECK_INT (own, ==, 512 * 4 * 64 + 1024 * (64 + 4) + 2 * 64);
  for (uint32_t i = 0; i < m.n_layers; i++) {
    g_autoptr (GArray) operators = layer_of (&m, i);
    bool has_indexer = i < 2 || i % 2 == 1;
    LS_CHECK ((find_operator (operators, "index-scores") != NULL) == has_indexer);
    LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, i));
    LS_CHECK_DOUBLE (find_operator (operators, "attention")->fwd[0].flops, ==, 4.0 * 4096 * 8 * 128 * 480);
    all += has_indexer ? own : 0;
  }
  LS_CHECK_INT (ls_model_params (&m, 1000) - ls_model_params (&without, 1000), ==, all);
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, 2);
}

/* q, k and v, beta; two gates through 64 columns each, or one of them whole: counted by hand from the
 * publisher's code. H 8 of 64: I 512; h 1024. */
static void
kda_has_gates_of_low_rank (void)
{
  LsModel m = hybrid (LS_MIXER_KDA);
  m.mixer.groups = 8;
  m.mixer.state = 64;
  uint64_t in = 1024 * (3 * 512 + 8), out = 512 * 1024, low = 64 * (1024 + 512);
  LS_CHECK_INT (ls_model_layer_linear_params (&m, 3), ==, in + out + 2 * low);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 4 * 3 * 512 + 8 + 512 + 64);
  g_autoptr (GArray) operators = layer_of (&m, 3);
  LS_CHECK_DOUBLE (find_operator (operators, "mixer-gates-down")->fwd[0].flops, ==, 2.0 * 4096 * 1024 * 128);
  LS_CHECK_DOUBLE (find_operator (operators, "mixer-gates-up")->fwd[0].flops, ==, 2.0 * 4096 * 64 * 1024);
  LsShard scaled = shard (&m, 1, false, 1); /* they have no format of their own */
  scaled.dtype = LS_DTYPE_NVFP4;
  LS_CHECK (ls_formats_parse ("qkv:bf16", &scaled.fp8.formats));
  g_autoptr (GArray) narrow = operators_new ();
  ls_operators_layer (&m, &scaled, 3, narrow);
  const LsOperator *up = find_operator (narrow, "mixer-gates-up");
  LS_CHECK_INT (up->fwd[up->n_fwd - 1].dtype, ==, LS_DTYPE_NVFP4);
  m.mixer.full_gate = true;
  LS_CHECK_INT (ls_model_layer_linear_params (&m, 3), ==, in + 1024 * 512 + out + low);
  g_autoptr (GArray) full = layer_of (&m, 3);
  LS_CHECK_INT (n_layer_params (full), ==, ls_model_layer_params (&m, 3));
  LS_CHECK_DOUBLE (find_operator (full, "mixer-gates-up")->fwd[0].flops, ==, 2.0 * 4096 * 64 * 512);
}

/* One norm's output goes into both and is kept once; their sums are one more pass, as is that of gradients. */
static void
attention_and_a_mixer_side_by_side (void)
{
  LsModel m = hybrid (LS_MIXER_MAMBA2);
  m.layers.pattern = (char *) "aaam";
  m.moe.n_experts = 0;
  g_autoptr (GArray) a = layer_of (&m, 0), x = layer_of (&m, 3);
  m.layers.pattern = (char *) "P";
  g_autoptr (GArray) both = layer_of (&m, 0);
  uint64_t tensor = 4096 * 1024 * 2, mlp = 0;
  for (guint i = 0; i < both->len; i++) {
    const LsOperator *op = &g_array_index (both, LsOperator, i);
    bool is_mlp = strstr (op->name, "mlp") || strstr (op->name, "fc");
    mlp += is_mlp ? op->kept.saved_bytes : 0;
  }
  LS_CHECK_INT (saved_bytes (both, true) - mlp, ==,
                saved_bytes (a, true) + saved_bytes (x, true) - 2 * tensor);
  const LsOperator *sum = find_operator (both, "side-sum");
  if (LS_CHECK (sum != NULL)) {
    LS_CHECK_DOUBLE (sum->fwd[0].bytes, ==, 3.0 * (double) tensor);
    LS_CHECK_DOUBLE (sum->igrad[0].bytes, ==, 3.0 * (double) tensor);
  }
  LS_CHECK_INT (n_layer_params (both), ==, ls_model_layer_params (&m, 0));
  LS_CHECK_INT (ls_model_n_attention_layers (&m), ==, m.n_layers);
  LS_CHECK_DOUBLE (ls_model_flops (&m, 32000, 4096, 1, false), ==,
                   6.0 * 4096 * (double) ls_model_linear_params (&m, 32000)
                       + 12 * (12 * 4096.0 * 4096 * 1024 + 3 * ls_mixer_flops (&m, 1, 4096)));
}

/* 4 experts of 3 matrices of 256 x 512; two products of 1024 x 256 and the router's see every token. Each of 2
 * rows a token sends 256 numbers. */
static void
experts_behind_a_latent (void)
{
  LsModel m = hybrid (LS_MIXER_MAMBA2);
  m.layers.pattern = (char *) "e";
  m.moe.n_dense_layers = 0;
  m.moe.latent = 256;
  m.moe.shared_ffn = 2048;
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==,
                4 * 3 * 256 * 512 + 2 * 1024 * 256 + 1024 * 4 + 3 * 1024 * 2048 + 1024);
  g_autoptr (GArray) operators = layer_of (&m, 0);
  LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, 0));
  LS_CHECK_DOUBLE (find_operator (operators, "latent-down")->fwd[0].flops, ==, 2.0 * 4096 * 1024 * 256);
  LS_CHECK_DOUBLE (find_operator (operators, "latent-up")->fwd[0].flops, ==, 2.0 * 4096 * 1024 * 256);
  LS_CHECK_DOUBLE (find_operator (operators, "expert-fc1")->fwd[0].flops, ==, 2.0 * 8192 * 256 * 1024);
  LS_CHECK_INT (find_operator (operators, "dispatch")->comm.ep_bytes, ==, 8192 * 256 * 2);
  LS_CHECK_INT (find_operator (operators, "latent-down")->kept.saved_bytes, ==, 0);
  LS_CHECK_INT (find_operator (operators, "latent-up")->kept.saved_bytes, ==, 4096 * 256 * 2);
}

/* Of 12 layers each 4th sees all by 8 heads of 256, whose 2 keys are their values; the others by 16 of 128, with 4
 * pairs. */
static LsModel
with_window_heads (void)
{
  LsModel m = small ();
  m.attn.window = 1024;
  m.attn.full_every = 4;
  m.n_heads = 8, m.n_kv_heads = 2, m.head_dim = 256;
  m.attn.window_heads = 16, m.attn.window_kv_heads = 4, m.attn.window_head_dim = 128;
  m.attn.full_k_is_v = true;
  m.attn.qk_norm = true;
  return m;
}

static void
windowed_layers_have_heads_of_their_own (void)
{
  LsModel m = with_window_heads ();
  uint64_t windowed = 1024 * (2048 + 2 * 512) + 2048 * 1024, full = 1024 * (2048 + 512) + 2048 * 1024;
  uint64_t rest = 3 * 1024 * 4096 + 2 * 1024;
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, windowed + rest + 2 * 128);
  LS_CHECK_INT (ls_model_layer_params (&m, 3), ==, full + rest + 2 * 256);
  for (uint32_t layer = 0; layer < m.n_layers; layer++) {
    g_autoptr (GArray) operators = layer_of (&m, layer);
    bool sees_all = layer % 4 == 3;
    LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, layer));
    LS_CHECK_DOUBLE (find_operator (operators, "qkv")->fwd[0].flops, ==,
                     2.0 * 4096 * 1024 * (sees_all ? 2560 : 3072));
    LS_CHECK_DOUBLE (find_operator (operators, "attention")->fwd[0].flops, ==,
                     4.0 * 4096 * 2048 * (sees_all ? 2048 : 896));
    LS_CHECK_INT (find_operator (operators, "attention")->fwd[0].k, ==, sees_all ? 256 : 128);
  }
  double linear = 6.0 * 4096 * (double) ls_model_linear_params (&m, 32000);
  m.attn.window_heads = 8; /* half as wide as the others: 9 of 12 layers have 896 / 2048 of half the FLOPs */
  LS_CHECK_NEAR (ls_model_flops (&m, 32000, 4096, 1, false),
                 linear - 9 * 6.0 * 4096 * 2 * 1024 * 1024
                     + 12 * 4096.0 * 4096 * (3 * 2048 + 9 * 1024 * 896 / 2048.0),
                 1e-12);
  LS_CHECK (ls_model_heads_differ (&m) && ls_model_is_cut_evenly (&m, 8) && !ls_model_is_cut_evenly (&m, 16));
}

/* Keys of 128 and values of 64, 8 heads and 2 of these: Q 1024, K 256 and V 128 columns, a context of 512. An
 * attention kernel has 2 s^2 (128 + 64) FLOPs a head, as if both were 96 wide, half of it if causal. */
static void
values_may_be_narrower_than_keys (void)
{
  LsModel m = small (), same = small ();
  uint64_t small_params = ls_model_layer_params (&m, 0);
  m.v_dim = 64;
  same.v_dim = 128;
  LS_CHECK_INT (ls_model_layer_params (&same, 0), ==, small_params);
  uint64_t rest = ls_model_layer_params (&same, 0) - 1024 * (1024 + 2 * 256) - 1024 * 1024;
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, rest + 1024 * (1024 + 256 + 128) + 512 * 1024);
  m.attn.gate = true; /* of the context */
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, rest + 1024 * (1024 + 256 + 128) + 2 * 512 * 1024);
  g_autoptr (GArray) operators = layer_of (&m, 0);
  const LsOperator *attention = find_operator (operators, "attention");
  LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, 0));
  LS_CHECK_DOUBLE (find_operator (operators, "proj")->fwd[0].flops, ==, 2.0 * 4096 * 512 * 1024);
  LS_CHECK_DOUBLE (find_operator (operators, "rope")->fwd[0].bytes, ==, 4096.0 * (8 + 2) * 128 * 4);
  LS_CHECK_DOUBLE (attention->fwd[0].flops, ==, 2.0 * 4096 * 2048 * 8 * (128 + 64));
  LS_CHECK_DOUBLE (attention->fwd[0].bytes, ==, 4096.0 * (2 * (8 + 2) * (128 + 64) + 4 * 8));
  LS_CHECK_INT (attention->fwd[0].k, ==, 96);
  LS_CHECK_NEAR (ls_model_flops (&same, 32000, 4096, 1, false) - ls_model_flops (&m, 32000, 4096, 1, false),
                 m.n_layers * (6.0 * 4096 * 1024 * (128 + 512 - 512) + 12.0 * 4096 * 4096 * 8 * 32), 1e-12);
  LsLora lora = { .rank = 4, .modules = LS_LORA_V | LS_LORA_O };
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==, m.n_layers * 4 * (1024 + 128 + 512 + 1024));
}

/* Behind attention and in the MLP, of GPT-Neo: 1024 and, with a gate, 2 ffn + 1024. */
static void
queries_keys_and_values_may_have_no_biases (void)
{
  LsModel m = small (), plain = small ();
  m.linear_bias = m.attn.unbiased_qkv = true;
  g_autoptr (GArray) operators = layer_of (&m, 0);
  LS_CHECK_INT (ls_model_layer_params (&m, 0) - ls_model_layer_params (&plain, 0), ==, 2 * 1024 + 2 * m.ffn);
  LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, 0));
}

/* 4 experts and 2 that do nothing: a router of 6 outputs. */
static void
experts_that_do_nothing_are_routed_to (void)
{
  LsModel m = hybrid (LS_MIXER_MAMBA2);
  m.layers.pattern = (char *) "e";
  m.moe.n_dense_layers = 0;
  uint64_t before = ls_model_layer_params (&m, 0);
  m.moe.zero_experts = 2;
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, before + 2 * 1024);
  g_autoptr (GArray) operators = layer_of (&m, 0);
  LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, 0));
  LS_CHECK_DOUBLE (find_operator (operators, "router")->fwd[0].flops, ==, 2.0 * 4096 * 1024 * 6);
}

static LsModel
two_sides (void)
{
  LsModel m = small ();
  m.n_kv_heads = m.n_heads;
  m.position = LS_POSITION_NONE;
  m.sides.encoder_layers = 5;
  m.seq = 512;
  m.sides.decoder_seq = 128;
  return m;
}

/* 512 tokens of an encoder see each other, 128 of a decoder those before and all of the encoder's. */
static void
an_encoder_and_a_decoder (void)
{
  LsModel m = two_sides ();
  g_autoptr (GArray) encoder = layer_of (&m, 0), decoder = layer_of (&m, 5);
  double width = 8 * 128;
  LS_CHECK_DOUBLE (find_operator (encoder, "attention")->fwd[0].flops, ==, 4 * 512.0 * 512 * width);
  LS_CHECK_DOUBLE (find_operator (decoder, "attention")->fwd[0].flops, ==, 2 * 128.0 * 128 * width);
  const LsOperator *cross = find_operator (decoder, "cross-attention"),
                   *kv = find_operator (decoder, "cross-kv");
  if (!LS_CHECK (cross && kv && !find_operator (encoder, "cross-attention")))
    return;
  LS_CHECK_DOUBLE (cross->fwd[0].flops, ==, 4 * 128.0 * 512 * width);
  LS_CHECK_DOUBLE (cross->igrad[0].flops, ==, 10 * 128.0 * 512 * width);
  LS_CHECK_DOUBLE (cross->fwd[0].bytes, ==, 2 * 2 * (128 + 512) * width + 4 * 128.0 * 8);
  LS_CHECK_INT (kv->fwd[0].m, ==, 512);
  LS_CHECK_INT (kv->kept.saved_bytes, ==, 512 * 2 * 1024 * 2); /* not the encoder's output */
  LS_CHECK_INT (kv->comm.tp_bytes, ==, 512 * 1024 * 2);
  LS_CHECK_INT (find_operator (decoder, "fc1")->fwd[0].m, ==, 128);
  LS_CHECK_INT (find_operator (decoder, "fc1")->comm.tp_bytes, ==, 128 * 1024 * 2);
  for (uint32_t layer = 0; layer < m.n_layers; layer++) {
    g_autoptr (GArray) operators = layer_of (&m, layer);
    LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, layer));
  }
  LS_CHECK_INT (ls_model_layer_params (&m, 5) - ls_model_layer_params (&m, 0), ==, 4 * 1024 * 1024 + 1024);
}

/* By sides: 4 h^2 of attention, 3 h f of the MLP; keys and values of the encoder's tokens are made in each of
 * the 7 layers of the decoder. */
static void
flops_of_two_sides (void)
{
  LsModel m = two_sides ();
  double h2 = 1024.0 * 1024, mlp = 3 * 1024.0 * 4096, v = 32000 * 1024.0, width = 1024;
  double encoder = 5 * (4 * h2 + mlp) + 7 * 2 * h2, decoder = 7 * (6 * h2 + mlp) + v;
  double attention = 5 * 4 * 512.0 * 512 * width + 7 * 4 * 128.0 * 512 * width;
  double causal = 7 * 2 * 128.0 * 128 * width;
  LS_CHECK_NEAR (ls_model_flops (&m, 32000, 512, 1, true),
                 6 * (512 * encoder + 128 * decoder) + 3 * (attention + causal), 1e-12);
  LS_CHECK_NEAR (ls_model_flops (&m, 32000, 512, 1, false),
                 6 * (512 * encoder + 128 * decoder) + 3 * (attention + 2 * causal), 1e-12);
  g_autoptr (GArray) head = operators_new (), embedding = operators_new ();
  LsShard s = shard (&m, 1, false, 1);
  ls_operators_head (&m, &s, true, head);
  ls_operators_embedding (&m, &s, embedding);
  LS_CHECK_INT (find_operator (head, "logits")->fwd[0].m, ==, 128);
  LS_CHECK_INT (find_operator (head, "encoder-norm")->kept.saved_bytes, ==, 2 * 512 * 1024 * 2);
  LS_CHECK_INT (find_operator (embedding, "word-embedding")->fwd[0].m, ==, 640);
}

static void
caps_pass_over_the_logits (void)
{
  LsModel m = small ();
  m.attn.logit_cap = true;
  LsShard s = shard (&m, 1, false, 1);
  g_autoptr (GArray) operators = operators_new ();
  ls_operators_head (&m, &s, true, operators);
  const LsOperator *cap = find_operator (operators, "logit-cap");
  double logits = 4096.0 * 32000;
  if (LS_CHECK (cap != NULL)) {
    LS_CHECK_DOUBLE (cap->fwd[0].bytes, ==, 4 * logits);
    LS_CHECK_DOUBLE (cap->igrad[0].bytes, ==, 6 * logits);
    LS_CHECK_INT (cap->kept.saved_bytes, ==, 2 * (uint64_t) logits);
  }
}

LS_TEST_SUITE (LS_TEST (a_window_leaves_what_it_shows), LS_TEST (flops_of_a_model_count_windows),
               LS_TEST (rope_where_it_is), LS_TEST (norms_keep_what_they_read),
               LS_TEST (operators_hold_the_parameters_of_a_layer),
               LS_TEST (operators_hold_the_parameters_of_a_mixer), LS_TEST (chunks_are_products),
               LS_TEST (letters_say_what_a_layer_has), LS_TEST (an_indexer_chooses_keys),
               LS_TEST (an_indexer_chooses_for_several_layers), LS_TEST (kda_has_gates_of_low_rank),
               LS_TEST (attention_and_a_mixer_side_by_side), LS_TEST (experts_behind_a_latent),
               LS_TEST (windowed_layers_have_heads_of_their_own), LS_TEST (values_may_be_narrower_than_keys),
               LS_TEST (queries_keys_and_values_may_have_no_biases),
               LS_TEST (experts_that_do_nothing_are_routed_to), LS_TEST (an_encoder_and_a_decoder),
               LS_TEST (flops_of_two_sides), LS_TEST (caps_pass_over_the_logits))
