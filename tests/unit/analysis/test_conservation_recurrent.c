/* Pins Griffin's recurrent layers, and state-space models whose keys are made of convolved columns: what they
 * launch and hold, by hand, and the laws of jobs of them. */
#include "layer_laws.h"
#include "model/mixer.h"

#include <stddef.h>
#include <string.h>

/* On 8 GPUs, with and without tensor and sequence parallelism and FSDP, and with each recomputation; with context
 * parallelism where there may be. */
static void
check_laws (const LsModel *m)
{
  for (guint i = 0; i < (ls_mixer_has_context_parallelism (m) ? 24 : 12); i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.cp = i / 12 + 1;
    s.tp = ls_mixers[m->mixer.kind].is_whole ? 1 : i % 2 + 1;
    s.sp = s.tp > 1 && i / 2 % 2;
    s.recompute = i / 4 % 3;
    s.dp_kind = i / 2 % 2 ? LS_DP_FSDP2 : LS_DP_AUTO;
    LS_CHECK (keeps_the_laws (m, &s));
  }
}

/* Two layers of three have a recurrent unit of 8 heads of 64. */
static LsModel
griffin (void)
{
  LsModel m = small_model ("griffin");
  m.layers.pattern = (char *) "MMA";
  m.mixer.kind = LS_MIXER_RGLRU;
  m.mixer.heads = m.mixer.groups = 8;
  m.mixer.head_dim = m.mixer.state = 64;
  m.mixer.conv = 4, m.mixer.chunk = 256;
  m.mlp = LS_MLP_GEGLU;
  return m;
}

/* As griffin(), of a kind: 8 heads of 64, or one as wide as hidden where it asks for that. */
static LsModel
of_kind (int kind)
{
  LsModel m = griffin ();
  m.mixer.kind = (LsMixerKind) kind;
  m.mixer.rank = ls_mixers[kind].may.rank > 0 ? 32 : 0;
  m.mixer.conv = ls_mixer_conv_width (&m) > 0 ? 4 : 0;
  if (ls_model_wrong (&m, LS_MODEL_MIXER, NULL))
    m.mixer.heads = m.mixer.groups = 1, m.mixer.head_dim = m.mixer.state = m.hidden;
  return m;
}

/* Pins what each kind of mixer owes: a name, a row that is whole, weights and FLOPs that operators have as the
 * model counts them, with each thing that a file may say of it; other things are refused. */
static void
each_kind_has_its_row (void)
{
  for (int kind = LS_MIXER_NONE + 1; kind < LS_N_MIXERS; kind++) {
    const LsMixerRow *row = &ls_mixers[kind];
    LsModel m = of_kind (kind);
    const char *wrong = ls_model_wrong (&m, LS_MODEL_MIXER, NULL);
    LS_CHECK (ls_mixer_names[kind].name && ls_mixer_names[kind].value == kind && row->chunk > 0);
    ls_check_impl (!wrong, __FILE__, __LINE__, "%s: %s", ls_mixer_names[kind].name, wrong);
    LS_CHECK ((row->kernels == LS_MIXER_CHUNKS || row->kernels == LS_MIXER_MEASURED_CHUNKS)
              == (ls_mixer_flops (&m, 1, 256) > 0));
    count_weights (&m);
    LS_CHECK (row->is_whole || ranks_add_up (&m));
    check_laws (&m);
    for (gsize at = offsetof (LsMixerParts, full_gate); at <= offsetof (LsMixerParts, gate_bias); at++) {
      LsModel with = m;
      *((bool *) &with.mixer + at) = true;
      LS_CHECK ((ls_model_wrong (&with, LS_MODEL_MIXER, NULL) == NULL) == *((const bool *) &row->may + at));
      if (*((const bool *) &row->may + at))
        count_weights (&with);
    }
  }
}

/* Why a kind is refused names each kind that may have it, but where it names itself: then it may, by a rule of its
 * own. set: of a model. */
static void
check_refusal (int refused, void (*set) (LsModel *m, gsize at), gsize at)
{
  LsModel m = of_kind (refused);
  set (&m, at);
  const char *wrong = ls_model_wrong (&m, LS_MODEL_MIXER, NULL);
  bool is_own = wrong && strstr (wrong, ls_mixer_names[refused].name);
  for (int kind = LS_MIXER_NONE + 1; kind < LS_N_MIXERS && wrong && !is_own; kind++) {
    LsModel other = of_kind (kind);
    set (&other, at);
    ls_check_impl (ls_model_wrong (&other, LS_MODEL_MIXER, NULL) || strstr (wrong, ls_mixer_names[kind].name),
                   __FILE__, __LINE__, "%s is not named: %s", ls_mixer_names[kind].name, wrong);
  }
}

static void
say (LsModel *m, gsize at)
{
  *((bool *) &m->mixer + at) = true;
}

static void
set_rank (LsModel *m, gsize at)
{
  m->mixer.rank = 32;
}

static void
share_keys (LsModel *m, gsize at)
{
  m->mixer.groups = m->mixer.heads > 1 ? m->mixer.heads / 2 : 2;
}

/* Pins: reasons that name kinds of mixers name all, also a new one. */
static void
refusals_name_each_kind (void)
{
  for (int kind = LS_MIXER_NONE + 1; kind < LS_N_MIXERS; kind++) {
    for (gsize at = offsetof (LsMixerParts, full_gate); at <= offsetof (LsMixerParts, gate_bias); at++)
      check_refusal (kind, say, at);
    check_refusal (kind, set_rank, 0);
    check_refusal (kind, share_keys, 0);
    LsModel m = of_kind (kind);
    m.mixer.conv = 4;
    const char *wrong = ls_model_wrong (&m, LS_MODEL_MIXER, NULL);
    LS_CHECK (!wrong || strstr (wrong, ls_mixer_names[kind].name));
  }
}

/* Weights of products of the first layer's mixer. */
static uint64_t
products_of_mixer (const LsModel *m)
{
  return ls_model_layer_linear_params (m, 0)
      - (ls_mlp_is_gated (m->mlp) ? 3 : 2) * (uint64_t) m->hidden * m->ffn;
}

/* Two products in and one out, 512 x 512 each; two gates of each head, 64 x 64; four taps and a bias, three
 * more biases of 512 beside that of the taps and one of what comes out, a decay of 512. */
static void
weights_are_counted (void)
{
  LsModel m = griffin ();
  LS_CHECK_INT (products_of_mixer (&m), ==, 3 * 512 * 512 + 2 * 8 * 64 * 64);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 512 * 4 + 512 + 4 * 512 + 512 + 512);
  LS_CHECK (ls_mixer_flops (&m, 1, 256) == 0);
  count_weights (&m);
  const uint64_t plain = ls_model_layer_params (&m, 0);
  m.linear_bias = true;
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, plain + 2 * 1024 + 512); /* of the MLP alone */
}

/* Of 256 tokens on one of two ranks, four heads: gates are 2 x 256 x 128 x 64 FLOPs of each head forward, twice
 * that backward; the scan moves four tensors of 256 x 256 in 16 bits, the branch three. Kept: the convolution's
 * output, two gates, the state. */
static void
heads_are_cut_over_ranks (void)
{
  LsModel m = griffin ();
  LsShard shard = whole_shard (&m);
  shard.tp = 2;
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const double gates = 4 * 2.0 * 256 * 128 * 64, tensor = 256 * 256 * 2;
  const LsOperator *op = find_operator (operators, "mixer-head-gates"),
                   *scan = find_operator (operators, "mixer-scan"),
                   *conv = find_operator (operators, "mixer-conv"),
                   *branch = find_operator (operators, "mixer-gate");
  if (!LS_CHECK (op && scan && conv && branch))
    return;
  LS_CHECK_DOUBLE (op->fwd[0].flops, ==, gates);
  LS_CHECK_DOUBLE (op->igrad[0].flops, ==, gates);
  LS_CHECK_DOUBLE (op->wgrad[0].flops, ==, gates);
  LS_CHECK (op->n_fwd == 1 && op->n_igrad == 1 && op->n_wgrad == 1 && op->tp == LS_TP_NONE);
  shard.grad.is_apart = true; /* and another kernel adds it to those of earlier micro-batches */
  g_autoptr (GArray) apart = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, apart);
  LS_CHECK_INT (find_operator (apart, "mixer-head-gates")->n_wgrad, ==, 2);
  LS_CHECK_INT (weights_of (operators) * 2 - ls_model_layer_params (&m, 0), ==,
                2 * 512); /* both norms twice */
  LS_CHECK_DOUBLE (scan->fwd[0].bytes, ==, 4 * tensor);
  LS_CHECK_DOUBLE (scan->igrad[0].bytes, ==, 8 * tensor);
  LS_CHECK_DOUBLE (branch->fwd[0].bytes, ==, 3 * tensor);
  LS_CHECK_DOUBLE ((double) conv->kept.saved_bytes, ==, tensor);
  LS_CHECK_DOUBLE ((double) op->kept.saved_bytes, ==, 2 * tensor);
  LS_CHECK_DOUBLE ((double) scan->kept.saved_bytes, ==, tensor);
  LS_CHECK_INT (branch->kept.saved_bytes, ==, 0); /* its other half is the way in's */
}

/* Tensor parallelism, sequence parallelism, recomputation, FSDP, a pipeline. */
static void
jobs_keep_the_laws (void)
{
  for (guint i = 0; i < 24; i++) {
    LsModel m = griffin ();
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.tp = i % 2 + 1;
    s.sp = i % 2 && i / 2 % 2;
    s.recompute = i / 4 % 3;
    s.dp_kind = i / 12 ? LS_DP_FSDP2 : LS_DP_AUTO;
    s.pp = i / 12 == 0 && i / 2 % 2 == 0 ? 2 : 1;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
}

/* No library was found that cuts sequences of such layers over ranks. */
static void
what_is_not_known_is_refused (void)
{
  LsModel m = griffin ();
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.global_batch = 16;
  s.cp = 2;
  says (&m, &s, "which pass their state from token to token");
  ls_strategy_init (&s);
  s.gpus = 8;
  s.global_batch = 16;
  s.tp = 8, m.mixer.heads = m.mixer.groups = 4;
  says (&m, &s, "heads");
}

/* PLaMo 2: 512 columns and as many for a gate in, four taps without a bias; of the convolved columns 96 of step
 * sizes and two keys of 32, each with a norm; a step size of each of 8 heads; three numbers a head. */
static void
keys_of_convolved_columns (void)
{
  LsModel m = griffin ();
  m.mixer.kind = LS_MIXER_MAMBA2;
  m.mixer.groups = 1, m.mixer.state = 32, m.mixer.rank = 96;
  LS_CHECK_INT (products_of_mixer (&m), ==, 3 * 512 * 512 + 512 * (96 + 64) + 96 * 8);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 512 * 4 + 3 * 8 + 96 + 64);
  count_weights (&m);
  const LsShard shard = whole_shard (&m);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *select = find_operator (operators, "mixer-select"),
                   *step = find_operator (operators, "mixer-step"),
                   *chunks = find_operator (operators, "mixer-chunks");
  if (!LS_CHECK (select && step && chunks && !find_operator (operators, "mixer-scan")))
    return;
  LS_CHECK_DOUBLE (select->fwd[0].flops, ==, 2.0 * 256 * 512 * (96 + 64));
  LS_CHECK_DOUBLE (step->fwd[0].flops, ==, 2.0 * 256 * 96 * 8);
  LS_CHECK_DOUBLE (ls_mixer_flops (&m, 1, 256), ==,
                   2.0 * (256 * 256 * 32 + 8 * (256 * 256 * 64 + 2 * 256 * 64 * 32)));
  for (guint i = 0; i < 4; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.recompute = i % 3;
    s.pp = i / 2 + 1;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.global_batch = 16;
  s.cp = 2;
  says (&m, &s, "which pass their state from token to token");
}

/* xLSTM: queries and keys of 32 for each of 8 heads of 64, values and a gate of 512, two gates a head with a bias;
 * a norm of 512. A chunk of 64 has four products a head: 64 x 64 x 32 for scores, 64 x 64 x 64 for what they weigh,
 * 64 x 64 x 32 with the state and as many into it; no convolution stands before. */
static void
matrix_memories_are_linear_attention (void)
{
  LsModel m = griffin ();
  m.mixer.kind = LS_MIXER_MLSTM;
  m.mixer.state = 32, m.mixer.chunk = 64;
  const uint64_t in = 2 * 8 * 32 + 2 * 512 + 2 * 8;
  LS_CHECK_INT (ls_mixer_in_width (&m), ==, in);
  LS_CHECK_INT (products_of_mixer (&m), ==, 512 * (in + 512));
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 512 + 2 * 8);
  LS_CHECK_DOUBLE (ls_mixer_flops (&m, 1, 256), ==, 4 * 2.0 * 8 * (3 * 64 * 64 * 32 + 64 * 64 * 64));
  count_weights (&m);
  const LsShard shard = whole_shard (&m);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *chunks = find_operator (operators, "mixer-chunks"),
                   *gate = find_operator (operators, "mixer-gate");
  if (!LS_CHECK (chunks && gate && !find_operator (operators, "mixer-conv")))
    return;
  LS_CHECK_INT (chunks->kept.saved_bytes, ==,
                4 * 512 * 32 * 4 + 2 * 256 * 512); /* states of chunks, and what is made */
  LS_CHECK_INT (gate->params.numel[0], ==, 512 + 2 * 8);
  check_laws (&m);
}

/* Gated linear attention: keys of 32 and values of 64 for each of 8 heads, decays of keys by 16 columns with a bias of
 * 256, a norm of 64. Its chunks are those of linear attention. Without a gate, 512 columns fewer, the norm moves two
 * tensors, not three. */
static void
decays_of_linear_attention (void)
{
  LsModel m = griffin ();
  m.mixer.kind = LS_MIXER_LINEAR;
  m.mixer.state = 32, m.mixer.chunk = 64;
  LS_CHECK_INT (products_of_mixer (&m), ==, 512 * (2 * 256 + 2 * 512 + 512));
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 512);
  m.mixer.rank = 16, m.mixer.head_norm = true;
  LS_CHECK_INT (products_of_mixer (&m), ==, 512 * (2 * 256 + 2 * 512 + 512) + 16 * (512 + 256));
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 64 + 256);
  LS_CHECK_DOUBLE (ls_mixer_flops (&m, 1, 256), ==, 4 * 2.0 * 8 * (3 * 64 * 64 * 32 + 64 * 64 * 64));
  for (guint i = 0; i < 2; i++) {
    m.mixer.ungated = i == 1;
    count_weights (&m);
    LsShard shard = whole_shard (&m);
    shard.tp = 2;
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (&m, &shard, 0, operators);
    const LsOperator *in = find_operator (operators, "mixer-in"),
                     *down = find_operator (operators, "mixer-gates-down"),
                     *up = find_operator (operators, "mixer-gates-up"),
                     *gate = find_operator (operators, "mixer-gate");
    if (!LS_CHECK (in && down && up && gate))
      return;
    LS_CHECK_DOUBLE (in->fwd[0].flops, ==, 2.0 * 256 * 512 * (256 + 512 - 256 * i));
    LS_CHECK_DOUBLE (down->fwd[0].flops, ==, 2.0 * 256 * 512 * 16);
    LS_CHECK_DOUBLE (up->fwd[0].flops, ==, 2.0 * 256 * 16 * 128);
    LS_CHECK_DOUBLE (gate->fwd[0].bytes, ==, (3.0 - i) * 256 * 256 * 2);
    check_laws (&m);
  }
}

/* DeltaNet: no decay, 2 x 8 weights and 8 columns fewer, and no gate; its convolution is that of gated delta nets. Of
 * kda the gate has a bias of 512. */
static void
delta_nets_without_gates_or_decays (void)
{
  LsModel m = griffin ();
  m.mixer.kind = LS_MIXER_DELTA;
  m.mixer.state = 32, m.mixer.chunk = 64;
  const double flops = ls_mixer_flops (&m, 1, 256);
  const uint64_t columns = 2 * 256 + 2 * 512 + 2 * 8, taps = 4 * (2 * 256 + 512);
  LS_CHECK_INT (ls_mixer_in_width (&m), ==, columns);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, taps + 2 * 8 + 64);
  m.mixer.undecayed = true;
  LS_CHECK_INT (ls_mixer_in_width (&m), ==, columns - 8);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, taps + 64);
  check_laws (&m);
  m.mixer.ungated = true;
  LS_CHECK_INT (ls_mixer_in_width (&m), ==, columns - 8 - 512);
  LS_CHECK_INT (ls_mixer_conv_width (&m), ==, 2 * 256 + 512);
  LS_CHECK_DOUBLE (ls_mixer_flops (&m, 1, 256), ==, flops);
  count_weights (&m);
  check_laws (&m);
  LsModel kda = griffin ();
  kda.mixer.kind = LS_MIXER_KDA;
  const uint64_t plain = ls_mixer_other_params (&kda);
  kda.mixer.gate_bias = true;
  LS_CHECK_INT (ls_mixer_other_params (&kda) - plain, ==, 512);
  count_weights (&kda);
  check_laws (&kda);
}

/* Mamba with biases: of 1024 columns in and of 512 out, none of the taps, and no norms of keys; the gradient of each
 * is a sum over tokens, the latter's over those of a rank. */
static void
ways_in_and_out_have_biases (void)
{
  LsModel m = griffin ();
  m.mixer.kind = LS_MIXER_MAMBA1;
  m.mixer.heads = m.mixer.groups = 512, m.mixer.head_dim = 1, m.mixer.state = 16, m.mixer.rank = 32;
  const uint64_t with_norms = ls_mixer_other_params (&m);
  m.mixer.plain_keys = true;
  LS_CHECK_INT (with_norms - ls_mixer_other_params (&m), ==, 32 + 2 * 16);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 512 * (4 + 1) + 512 * (16 + 2));
  m.mixer.plain_conv = m.mixer.bias = true;
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 512 * 4 + 512 * (16 + 2) + 2 * 512 + 512);
  count_weights (&m);
  LsShard shard = whole_shard (&m);
  shard.tp = 2;
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *in = find_operator (operators, "mixer-in"),
                   *out = find_operator (operators, "mixer-out-bias");
  if (!LS_CHECK (in && out && in->n_wgrad == 2 && out->n_wgrad == 1))
    return;
  LS_CHECK_INT (in->params.numel[0] + in->params.numel[1], ==, 512 * 512 + 512);
  LS_CHECK (out->params.numel[0] == 512 && out->params.is_replicated);
  LS_CHECK_DOUBLE (in->wgrad[1].bytes, ==, 256.0 * 512 * 2);
  check_laws (&m);
}

/* RWKV-7 with ranks of 96 together: receptance, keys and values of 512 x 512 each and as much out, 96 columns in and
 * out; 6 vectors that mix tokens, 8 more, one of the MLP. Of a chunk of 64 and 8 heads of 64: four products of keys,
 * four of values, two with the state and two into it, all of 64 x 64 x 64. Kept of 256 tokens, in 2 x 512 bytes each: 5
 * shifted inputs and the normed one, the way in's input and three that it makes, the columns (96) and four that these
 * make, five for chunks, and the MLP's. */
static void
rwkv7_is_a_delta_rule (void)
{
  LsModel m = griffin ();
  m.layers.pattern = (char *) "M";
  m.mlp = LS_MLP_RELU2;
  m.norm = LS_NORM_LAYERNORM;
  m.mixer.kind = LS_MIXER_RWKV7;
  m.mixer.rank = 96, m.mixer.chunk = 64;
  const uint64_t h = 512, in_and_out = 4 * h * h, low = 96 * 2 * h;
  LS_CHECK_INT (products_of_mixer (&m), ==, in_and_out + low);
  LS_CHECK_INT (ls_mixer_other_params (&m), ==, 14 * h);
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, in_and_out + low + 2 * h * 1024 + (14 + 1 + 4) * h);
  LS_CHECK_DOUBLE (ls_mixer_flops (&m, 1, 256), ==, 4 * 8 * 12 * 2.0 * 64 * 64 * 64);
  count_weights (&m);
  const LsShard shard = whole_shard (&m);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *shift
      = find_operator (operators, "token-shift"),
      *in = find_operator (operators, "mixer-in"), *up = find_operator (operators, "mixer-gates-up"),
      *mix = find_operator (operators, "mixer-mix"), *mlp = find_operator (operators, "mlp-shift");
  if (!LS_CHECK (shift && in && up && mix && mlp && !find_operator (operators, "mixer-conv")))
    return;
  const uint64_t tensor = 256 * 512 * 2;
  LS_CHECK_DOUBLE (shift->fwd[0].bytes, ==, 7.0 * tensor);
  LS_CHECK_DOUBLE (in->fwd[0].flops, ==, 2.0 * 256 * 512 * 3 * 512);
  LS_CHECK_DOUBLE (up->fwd[0].flops, ==, 2.0 * 256 * 96 * 512);
  LS_CHECK_INT (shift->kept.saved_bytes, ==, 6 * tensor);
  LS_CHECK_INT (in->kept.saved_bytes, ==, 4 * tensor);
  LS_CHECK_INT (up->kept.saved_bytes, ==, 256 * 96 * 2 + 4 * tensor);
  LS_CHECK_INT (mix->kept.saved_bytes, ==, 5 * tensor);
  LS_CHECK (mlp->kept.saved_bytes == tensor && mlp->params.numel[0] == h);
  for (guint i = 0; i < 12; i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.gpus = 8;
    s.global_batch = 16;
    s.recompute = i % 3;
    s.pp = i / 3 % 2 + 1;
    s.dp_kind = i / 6 && s.pp == 1 ? LS_DP_FSDP2 : LS_DP_AUTO;
    LS_CHECK (keeps_the_laws (&m, &s));
  }
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = 8;
  s.global_batch = 16;
  s.tp = 2;
  says (&m, &s, "RWKV in the place of attention, cut over ranks");
}

LS_TEST_SUITE (LS_TEST (each_kind_has_its_row), LS_TEST (refusals_name_each_kind),
               LS_TEST (decays_of_linear_attention), LS_TEST (delta_nets_without_gates_or_decays),
               LS_TEST (rwkv7_is_a_delta_rule), LS_TEST (ways_in_and_out_have_biases),
               LS_TEST (matrix_memories_are_linear_attention), LS_TEST (weights_are_counted),
               LS_TEST (heads_are_cut_over_ranks), LS_TEST (jobs_keep_the_laws),
               LS_TEST (what_is_not_known_is_refused), LS_TEST (keys_of_convolved_columns))
