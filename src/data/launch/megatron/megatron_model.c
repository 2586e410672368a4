/* The model: what megatron/training/arguments.py and transformer_config.py make of options together, and of
 * those that are not given. */
#include "data/launch/megatron/megatron_rules.h"

#include <math.h>
#include <string.h>

/* --- layers --------------------------------------------------------------------------------------- */

/* Of 4 h two thirds, with --swiglu in whole multiples of 64 (validate_args ()). FlagScale has Llama's rule
 * beside it (FlagOpen/FlagScale@ed55532, megatron/arguments.py): times a factor, up to whole multiples. */
static guint64
gated_ffn (const LaunchJob *job)
{
  guint64 wide = 8 * (guint64) job->import->model.hidden / 3, unit = option_number (job, "multiple-of");
  const char *factor = option_text (job, "hidden-dim-multiplier");
  if (unit == 0 || unit > wide)
    return wide / 64 * 64;
  double more = factor ? CLAMP (g_ascii_strtod (factor, NULL), 0, 64) : 1;
  return ((guint64) ((double) wide * more) + unit - 1) / unit * unit;
}

/* Without --swiglu 4 h, also of layers that are gated by an option of forks: --glu-activation
 * (bigscience-workshop/Megatron-DeepSpeed@00ae467, megatron/model/glu_activations.py) and --t5-swiglu
 * (OpenGPTX/Megatron-LM, megatron/arguments.py: a width that is given stays). */
static void
set_ffn (LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_fork = option_is_there (job, "glu-activation") || option_is_there (job, "t5-swiglu"),
       is_gated = import->model.mlp == LS_MLP_SWIGLU && !is_fork,
       is_open = g_hash_table_contains (job->open, "ffn");
  guint64 ffn = is_gated ? gated_ffn (job) : 4 * (guint64) import->model.hidden;
  const char *unit = is_gated ? option_text (job, "multiple-of") : NULL;
  if (import_has_model (import, "ffn") || is_open || ffn == 0)
    return;
  import_infer (import, "ffn %" G_GUINT64_FORMAT ": %s%s%s", ffn,
                is_gated ? "4 x 2/3 of the hidden size in multiples of " : "4 times the hidden size",
                is_gated ? (unit ? unit : "64") : "",
                is_gated ? ", as --swiglu without --ffn-hidden-size" : ", without --ffn-hidden-size");
  import_set_model_number (import, "ffn", ffn);
}

/* What is older than the type of positions, and types of rope that the table does not name: "rotary" is that
 * of forks. */
static void
set_position (LaunchJob *job)
{
  const char *type = option_text (job, "position-embedding-type");
  bool is_yarn = type && strcmp (type, "yarn") == 0,
       is_rope = is_yarn || (type && (g_str_has_suffix (type, "rope") || strcmp (type, "rotary") == 0));
  if (is_yarn || (type && job->import->model.scaled_rope))
    option_set_model (job, "scaled_rope", is_yarn ? "1" : "0");
  if (is_rope || option_is_on (job, "use-rotary-position-embeddings"))
    option_set_model (job, "position", "rope");
  else if (!type && option_is_on (job, "no-position-embedding"))
    option_set_model (job, "position", "none");
}

/* A number: of every so many layers the last is the other kind. */
static void
set_every (LaunchJob *job, const char *name, const char *key)
{
  guint64 every = option_number (job, name);
  if (every > 0)
    import_set_model_number (job->import, key, every);
  else if (option_text (job, name))
    import_unknown (job->import, "--%s %s", name, option_text (job, name));
}

/* What differs between layers. A window is "(127, 0)": keys before the query's own, and behind it. */
static void
set_layer_kinds (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *percent = option_text (job, "rotary-percent"), *window = option_text (job, "window-size");
  double part = percent ? g_ascii_strtod (percent, NULL) : 1;
  bool is_rope = import->model.position == LS_POSITION_ROPE && !option_is_on (job, "multi-latent-attention");
  guint n_heads = MAX (1, import->model.n_heads),
        head_dim = import->model.head_dim ? import->model.head_dim : import->model.hidden / n_heads;
  if (is_rope && part > 0 && part < 1 && head_dim > 0)
    import_set_model_number (import, "rotary_dim", (guint64) rint (part * head_dim));
  if (is_rope)
    set_every (job, "no-rope-freq", "unrotated_every");
  if (!window)
    return;
  g_auto (GStrv) sides = g_strsplit (window + (*window == '('), ",", 2);
  guint64 before;
  if (g_ascii_string_to_unsigned (sides[0], 10, 0, 1 << 27, &before, NULL)) {
    import_set_model_number (import, "window", before + 1);
    set_every (job, "window-attn-skip-freq", "full_every");
  } else
    import_unknown (import, "--window-size %s", window);
}

/* 0.1 each, unless it is given. */
static bool
is_dropped (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  return !text || g_ascii_strtod (text, NULL) > 0;
}

/* A dump that has no such key is of a release whose linear layers always had one. */
static bool
has_biases (const LaunchJob *job)
{
  bool is_off = option_is_off (job, "add-bias-linear");
  return !is_off && !option_is_on (job, "disable-bias-linear");
}

static void
set_switches (LaunchJob *job)
{
  const char *limit = option_text (job, "activation-func-clamp-value");
  bool has_bias = has_biases (job), has_latent = option_is_on (job, "multi-latent-attention");
  if (has_bias && option_number (job, "moe-shared-expert-intermediate-size") > 0) {
    import_infer (job->import, "linear_bias false: Megatron-Core's shared experts have none");
    has_bias = false;
  }
  if (limit && g_ascii_strtod (limit, NULL) > 0)
    option_set_model (job, "act_limit", "1");
  if (!has_bias || has_latent)
    option_set_model (job, "linear_bias", "0");
  option_set_model (job, "dropout",
                    is_dropped (job, "attention-dropout") || is_dropped (job, "hidden-dropout") ? "1" : "0");
}

/* --- attention ------------------------------------------------------------------------------------ */

guint64
megatron_number_or (const LaunchJob *job, const char *name, const char *older, guint64 otherwise)
{
  guint64 value = option_number (job, name);
  value = value ? value : option_number (job, older);
  return value ? value : otherwise;
}

/* _add_mla_args (): 128 by itself. */
static void
set_latent (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 plain = megatron_number_or (job, "qk-head-dim", "qk-nope-head-dim", 128);
  import_set_model_number (import, "head_dim", plain + import->model.rope_dim);
  if (import_has_model (import, "heads"))
    import_set_model_number (import, "kv_heads", import->model.n_heads);
}

static void
set_heads (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 older = option_number (job, "num-key-value-heads");
  const char *kind = option_text (job, "attention-head-type");
  bool is_multiquery = kind && strcmp (kind, "multiquery") == 0;
  if (option_is_on (job, "multi-latent-attention")) {
    set_latent (job);
    return;
  }
  if (option_is_on (job, "group-query-attention"))
    return;
  if (older > 0 || is_multiquery) {
    import_set_model_number (import, "kv_heads", older > 0 ? older : 1);
    return;
  }
  if (option_number (job, "num-query-groups") > 0)
    import_infer (import, "kv_heads: --num-query-groups has no effect without --group-query-attention");
  if (import_has_model (import, "heads"))
    import_set_model_number (import, "kv_heads", import->model.n_heads);
}

/* --- experts -------------------------------------------------------------------------------------- */

/* "[0,1]" at *p, which is behind it then; what is of one piece is appended. */
static bool
read_list (const char **p, GString *layers)
{
  gsize n = strcspn (*p, "]");
  if (**p != '[' || (*p)[n] != ']' || strspn (*p + 1, "01, ") != n - 1)
    return false;
  for (gsize i = 1; i < n; i++)
    if (g_ascii_isdigit ((*p)[i]))
      g_string_append_c (layers, (*p)[i]);
  *p += n + 1;
  return true;
}

/* Reads "([0]*3+[1]*58)", "[0,1]*24" to a 0 or 1 for each layer; false: it is none such. */
static bool
read_layers (const char *text, GString *layers)
{
  for (const char *p = text + strspn (text, "()+ "); *p; p += strspn (p, "()+ ")) {
    g_autoptr (GString) list = g_string_new (NULL);
    if (!read_list (&p, list))
      return false;
    char *end = NULL;
    guint64 n = *p == '*' ? g_ascii_strtoull (p + 1, &end, 10) : 1;
    if (n > 65536 || layers->len + n * list->len > 65536)
      return false;
    for (; n > 0; n--)
      g_string_append (layers, list->str);
    p = end ? end : p;
  }
  return layers->len > 0;
}

/* Dense layers first, then the last of every so many has experts; false: they lie otherwise. */
static bool
set_pattern (LsImport *import, const char *layers)
{
  const char *first = strchr (layers, '1'), *second = first ? strchr (first + 1, '1') : NULL;
  if (!first)
    return false;
  gsize every = second ? (gsize) (second - first) : 1, n = strlen (layers);
  gsize n_before = (gsize) (first - layers), n_dense = n_before >= every - 1 ? n_before - (every - 1) : 0;
  for (gsize i = 0; i < n; i++) {
    bool has = i >= n_dense && (i - n_dense + 1) % every == 0;
    if (has != (layers[i] == '1'))
      return false;
  }
  if (n_dense > 0)
    import_set_model_number (import, "dense_layers", n_dense);
  import_set_model_number (import, "moe_every", every);
  return true;
}

/* Of every so many layers the last: 2 by itself in Megatron-DeepSpeed (megatron/arguments.py,
 * --expert-interval; megatron/model/transformer.py, get_num_experts_per_layer ()). True: it is so. */
static bool
set_expert_interval (LaunchJob *job)
{
  guint64 every = option_number (job, "expert-interval");
  bool is_default = every == 0 && option_is_there (job, "deepspeed");
  if (every == 0 && !is_default)
    return false;
  import_set_model_number (job->import, "moe_every", is_default ? 2 : every);
  if (is_default)
    import_infer (job->import, "moe_every 2: the default of --expert-interval");
  return true;
}

/* A number: of every so many layers the first has experts. */
static void
set_moe_layers (LaunchJob *job)
{
  const char *text = option_text (job, "moe-layer-freq");
  guint64 every = option_number (job, "moe-layer-freq");
  if (!text && set_expert_interval (job))
    return;
  GString *layers = g_string_new (NULL);
  if (every > 1) {
    import_set_model_number (job->import, "moe_every", every);
    import_infer (job->import, "of every %" G_GUINT64_FORMAT " layers the last has experts, there the first",
                  every);
  } else if (text && every == 0 && !(read_layers (text, layers) && set_pattern (job->import, layers->str)))
    import_unknown (job->import, "--moe-layer-freq %s", text);
  g_string_free (layers, TRUE);
}

/* MindSpeed-LLM counts as files of Hugging Face do: dense layers before all others, and shared experts of the
 * width of the rest (Ascend/MindSpeed-LLM, features_manager/moe/shared_expert.py). */
static void
set_counts (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 n_dense = option_number (job, "first-k-dense-replace"),
          n_shared = option_number (job, "n-shared-experts");
  if (n_dense > 0)
    import_set_model_number (import, "dense_layers", n_dense);
  if (n_shared > 0 && !import_has_model (import, "shared_ffn"))
    import_set_model_number (import, "shared_ffn", n_shared * import->model.expert_ffn);
}

/* What MindSpeed-LLM has beside, which changes a step by much. */
static void
tell_others (LaunchJob *job)
{
  static const char *const others[][2]
      = { { "noop-layers", "layers that do nothing are taken for layers" },
          { "schedules-method", "the schedule is taken to be what other options say" },
          { "swap-optimizer", "states of the optimizer are taken to stay on the device" } };
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (option_is_there (job, others[i][0]))
      import_unknown (job->import, "--%s: %s", others[i][0], others[i][1]);
}

/* Megatron-DeepSpeed, megatron/arguments.py: tokens are dropped unless it is told not to. Each expert is sent
 * as many rows as its capacity, zeros among them (deepspeed/moe/sharded_moe.py, MOELayer). */
static void
set_capacity (LaunchJob *job)
{
  const char *factor = option_text (job, "moe-train-capacity-factor");
  if (option_is_there (job, "disable-moe-token-dropping"))
    return;
  import_set_strategy (job->import, "expert_capacity", factor ? factor : "1", "--moe-train-capacity-factor");
  import_set_strategy (job->import, "expert_padding", "capacity", "--moe-train-capacity-factor");
  if (!factor)
    import_infer (job->import, "expert_capacity 1: the default of --moe-train-capacity-factor");
}

static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_deepspeed = option_is_there (job, "deepspeed");
  guint64 ffn = import->model.ffn, top_k = is_deepspeed ? 1 : 2;
  if (!import_has_model (import, "experts"))
    return;
  if (is_deepspeed)
    set_capacity (job);
  if (!import_has_model (import, "top_k")) {
    import_infer (import, "top_k %" G_GUINT64_FORMAT ": the default", top_k);
    import_set_model_number (import, "top_k", top_k);
  }
  if (!import_has_model (import, "expert_ffn") && import_has_model (import, "ffn")) {
    import_infer (import, "expert_ffn %" G_GUINT64_FORMAT ": as --ffn-hidden-size", ffn);
    import_set_model_number (import, "expert_ffn", ffn);
  }
  guint64 n_groups = option_number (job, "moe-router-num-groups"),
          n_chosen = option_number (job, "moe-router-group-topk");
  if (n_groups > 1 && n_chosen > 0 && n_chosen < n_groups) {
    import_set_model_number (import, "expert_groups", n_groups);
    import_set_model_number (import, "top_groups", n_chosen);
  }
  set_moe_layers (job);
  set_counts (job);
}

/* --- mixers ---------------------------------------------------------------------------------------- */

/* Gated delta nets, of every so many layers all but the last, as Qwen3-Next has them. */
static void
set_delta (LaunchJob *job)
{
  static const char *const keys[][2] = { { "mixer_heads", "linear-num-value-heads" },
                                         { "mixer_head_dim", "linear-value-head-dim" },
                                         { "mixer_groups", "linear-num-key-heads" },
                                         { "mixer_state", "linear-key-head-dim" },
                                         { "mixer_conv", "linear-conv-kernel-dim" } };
  LsImport *import = job->import;
  const char *kind = option_text (job, "experimental-attention-variant");
  guint64 every = option_number (job, "linear-attention-freq");
  if (option_is_on (job, "attention-output-gate"))
    import_set_model (import, "attention_gate", "1", "--attention-output-gate");
  if (!kind)
    return;
  if (strcmp (kind, "gated_delta_net") != 0 || every < 2 || every > 64) {
    import_unknown (import, "--experimental-attention-variant %s", kind);
    return;
  }
  g_autofree char *pattern = g_strnfill (every, 'M');
  pattern[every - 1] = 'A';
  import_set_model (import, "layer_pattern", pattern, "--linear-attention-freq");
  import_set_model (import, "mixer", "delta", "--experimental-attention-variant");
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (option_number (job, keys[i][1]) > 0)
      import_set_model_number (import, keys[i][0], option_number (job, keys[i][1]));
  if (option_is_on (job, "moe-shared-expert-gate"))
    import_infer (import, "--moe-shared-expert-gate: the gate of the shared expert is left out");
}

/* --- an encoder ------------------------------------------------------------------------------------ */

/* pretrain_t5.py; of a dump, and of a test, which name no script, what only T5 has. */
static bool
has_encoder (const LaunchJob *job)
{
  if (job->script)
    return g_str_has_prefix (job->script, "pretrain_t5");
  return option_number (job, "decoder-num-layers") > 0;
}

/* Layers of each side, as many unless it is said; biases and positions are left out, as models here have
 * none beside an encoder. */
static void
set_encoder (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 n = megatron_number_or (job, "encoder-num-layers", "num-layers", 0),
          n_decoder = megatron_number_or (job, "decoder-num-layers", "decoder-num-layers", n);
  guint64 decoder_seq = option_number (job, "decoder-seq-length");
  if (!has_encoder (job) && launch_words_find (job->words, "language-model-type") && decoder_seq > 0) {
    import_set_model_number (import, "seq", decoder_seq);
    import_infer (import, "seq %" G_GUINT64_FORMAT ": --decoder-seq-length, as --seq-length is an image's",
                  decoder_seq);
  } else if (!has_encoder (job) && option_text (job, "decoder-seq-length"))
    import_unknown (import, "--decoder-seq-length %s", option_text (job, "decoder-seq-length"));
  guint64 all = option_number (job, "num-layers");
  if (n > 0 && all > 0 && n != all) /* arguments.py wants one of them; a log prints both alike */
    import_conflict (import, "--num-layers %" G_GUINT64_FORMAT " and --encoder-num-layers %" G_GUINT64_FORMAT,
                     all, n);
  if (!has_encoder (job) || n == 0)
    return;
  import_set_model_number (import, "layers", n + n_decoder);
  import_set_model_number (import, "encoder_layers", n);
  if (option_number (job, "decoder-seq-length") > 0)
    import_set_model_number (import, "decoder_seq", option_number (job, "decoder-seq-length"));
  if (import->model.linear_bias || import->model.position != LS_POSITION_NONE)
    import_unknown (import, "biases and positions of T5's layers: they are left out");
  option_set_model (job, "linear_bias", "0");
  option_set_model (job, "position", "none");
}

void
megatron_model (LaunchJob *job)
{
  option_set_defaults (job, OPTION_MODEL);
  set_ffn (job);
  set_heads (job);
  set_experts (job);
  megatron_hybrid (job);
  set_delta (job);
  set_position (job);
  import_positions (job->import, option_number (job, "max-position-embeddings"));
  set_layer_kinds (job);
  set_switches (job);
  set_encoder (job);
  tell_others (job);
  megatron_vocab (job);
}
