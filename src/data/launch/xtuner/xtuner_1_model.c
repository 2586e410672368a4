/* The model of a job of XTuner v1: the class of its configuration, which models/names has, with the members
 * that the job sets itself (xtuner/v1/model of InternLM/xtuner@b934f462). */
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/xtuner/xtuner_1_rules.h"

#define MODEL     "model_cfg."
#define ATTENTION MODEL "attention."

/* Members that change what is computed in ways that no key here says, '*' any: {name, what is taken}. */
static const char *const others[][2] = {
  { MODEL "mlp_bias", "MLPs are taken to have no biases" },
  { MODEL "moe_bias", "biases of experts are those of the model that it is named by" },
  { MODEL "mlp_layer_types", "layers with experts are those of the model that it is named by" },
  { ATTENTION "o_bias", "biases are those of the model that it is named by" },
  { ATTENTION "with_sink", "attention sinks are left out" },
  { ATTENTION "dropout", "attention is taken to have none" },
  { ATTENTION "index*", "the indexer is that of the model that it is named by" },
  { MODEL "linear_attention.*", "mixers are those of the model that it is named by" },
  { MODEL "router_async_offload", "what routers say is taken to stay on the GPU" },
};

/* --- which model -------------------------------------------------------------------------------------- */

/* "path/to/Qwen3-8B", "Qwen/Qwen3-8B": the name of a hub at its end; NULL: it has none. Newly allocated. */
static char *
hub_name_of (const char *path)
{
  g_auto (GStrv) parts = g_strsplit (path, "/", -1);
  guint n = g_strv_length (parts);
  while (n > 0 && *parts[n - 1] == '\0')
    n--;
  return n >= 2 ? g_strconcat (parts[n - 2], "/", parts[n - 1], NULL) : NULL;
}

/* Of functions that read a configuration of the hub: its path. */
static bool
reads_path (const char *class)
{
  return strcmp (class, "get_model_config_from_hf") == 0 || g_str_has_suffix (class, ".from_hf");
}

/* What the model is called; NULL: nothing says. Newly allocated. */
static char *
name_of (const LaunchJob *job)
{
  const char *class = option_text (job, MODEL "class"), *path = option_text (job, MODEL "path"),
             *name = option_text (job, MODEL "name"), *loaded = option_text (job, "load_from");
  bool is_path = class ? reads_path (class) : !name;
  if (is_path) {
    path = class ? path : loaded;
    return path ? hub_name_of (path) : NULL;
  }
  name = name ? name : class && strcmp (class, "get_model_config") == 0 ? path : class;
  return name ? g_strconcat ("xtuner/", name, NULL) : NULL;
}

/* Whether its dimensions are all in the job: of a class that has none of its own. */
static bool
is_said_in_place (const LsImport *import)
{
  static const char *const keys[] = { "layers", "hidden", "heads", "vocab" };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (!import_has_model (import, keys[i]))
      return false;
  return import_has_model (import, "ffn") || import_has_model (import, "expert_ffn");
}

static bool
is_named (const char *name)
{
  LsModel m = { 0 };
  bool is_decoder, is_there = ls_model_of_name (name, &m, &is_decoder);
  ls_model_clear (&m);
  return is_there;
}

static void
set_base (LaunchJob *job)
{
  LsImport *import = job->import;
  g_autofree char *name = name_of (job);
  bool is_given = import->model_is_given;
  if (import_has_model (import, "mlp") && !is_given) /* of its file, which stands behind */
    return;
  if (name && (is_given || is_named (name)))
    import_model_of_name (import, name);
  else if (is_given)
    return;
  else if (is_said_in_place (import)) {
    import_set_model (import, "mlp", "swiglu", MODEL "hidden_act");
    import_set_model (import, "norm", "rmsnorm", MODEL "rms_norm_type");
    import_set_model (import, "position", "rope", MODEL "rope_parameters_cfg");
  } else if (name)
    import_model_of_name (import, name);
  else
    import_unknown (import, "the model: no name of one is given; its config.json may stand behind this file");
}

/* --- its members -------------------------------------------------------------------------------------- */

/* Of attention that is made anew each is off where it is not said. */
static void
set_switches (LaunchJob *job)
{
  static const struct {
    const char *option, *key;
    bool is_attention;
  } switches[] = {
    { MODEL "tie_word_embeddings", "tied_embeddings", false },
    { ATTENTION "qk_norm", "qk_norm", true },
    { ATTENTION "qkv_bias", "qkv_bias", true },
    { ATTENTION "with_gate", "attention_gate", true },
  };
  bool is_new = option_is_there (job, ATTENTION "class");
  for (guint i = 0; i < G_N_ELEMENTS (switches); i++) {
    const char *option = switches[i].option;
    bool is_said = option_is_there (job, option) || option_is_none (job, option);
    if (is_said || (is_new && switches[i].is_attention))
      import_set_model (job->import, switches[i].key, option_is_on (job, option) ? "1" : "0", option);
  }
}

static void
set_attention (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 plain = option_number (job, ATTENTION "qk_nope_head_dim"),
          rotated = option_number (job, ATTENTION "qk_rope_head_dim"),
          wide = option_number (job, ATTENTION "head_dim"),
          window = option_number (job, ATTENTION "sliding_window");
  if (plain > 0 && rotated > 0)
    import_set_model_number (import, "head_dim", plain + rotated);
  else if (wide > 0 && rotated == 0)
    import_set_model_number (import, "head_dim", wide);
  if (plain > 0 && option_number (job, ATTENTION "num_attention_heads") > 0)
    import_set_model_number (import, "kv_heads", option_number (job, ATTENTION "num_attention_heads"));
  if (option_is_on (job, MODEL "use_sliding_window") && window > 0) {
    import_set_model_number (import, "window", window);
    if (option_is_there (job, MODEL "max_window_layers"))
      import_unknown (import, MODEL "max_window_layers: all layers are taken to have the window");
  }
  const char *how = option_text (job, ATTENTION "attn_impl");
  if (how && strcmp (how, "eager_attention") == 0)
    import_set_model (import, "attention", "unfused", ATTENTION "attn_impl");
  else
    option_tell_other (job, ATTENTION "attn_impl", "flash_attention", "flash_attention");
}

/* Shared experts are one MLP, as wide as so many experts. */
static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 shared = option_number (job, MODEL "n_shared_experts"),
          wide = option_number (job, MODEL "moe_intermediate_size"),
          groups = option_number (job, MODEL "router.n_group");
  if (shared > 0 && wide > 0)
    import_set_model_number (import, "shared_ffn", shared * wide);
  else if (shared > 0)
    import_unknown (import,
                    MODEL "n_shared_experts: their width is taken to be that of the model that "
                          "it is named by");
  if (groups > 1 && option_number (job, MODEL "router.topk_group") > 0) {
    import_set_model_number (import, "expert_groups", groups);
    import_set_model_number (import, "top_groups", option_number (job, MODEL "router.topk_group"));
  }
}

static void
set_predictions (LaunchJob *job)
{
  guint64 n = option_number (job, MODEL "mtp_config.num_layers");
  if (n == 0)
    return;
  import_set_model_number (job->import, "predict_layers", n);
  if (n > 1 && option_is_on (job, MODEL "mtp_config.share_weights"))
    import_set_model (job->import, "predict_shared", "1", MODEL "mtp_config.share_weights");
}

/* Once; 0.0 and 0 are as if nothing was said. */
static void
tell_other (LaunchJob *job, const char *pattern, const char *taken)
{
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    const char *value = o->values->len > 0 ? o->values->pdata[0] : "1";
    if (!option_fits (pattern, o->name) || strcmp (value, "0") == 0
        || g_ascii_strcasecmp (value, "false") == 0)
      continue;
    import_unknown (job->import, "%s: %s", o->name, taken);
    return;
  }
}

/* Of a model some of whose layers have a window by themselves. */
static void
set_own_window (LaunchJob *job)
{
  guint64 window = option_number (job, ATTENTION "sliding_window");
  if (window > 0 && job->import->model.window > 0 && !option_is_on (job, MODEL "use_sliding_window"))
    import_set_model_number (job->import, "window", window);
}

static void
tell_rest (LaunchJob *job)
{
  static const char *const frozen[]
      = { MODEL "freeze_vision", MODEL "freeze_projector", MODEL "freeze_language" };
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    tell_other (job, others[i][0], others[i][1]);
  for (guint i = 0; i < G_N_ELEMENTS (frozen); i++)
    if (option_is_on (job, frozen[i]))
      import_unknown (job->import, "%s: all weights of the decoder are taken to be trained", frozen[i]);
  const char *around = option_text (job, MODEL "around");
  if (around)
    import_unknown (job->import,
                    "model_cfg %s: its decoder alone is simulated; what sees or hears is left out", around);
  option_tell_other (job, MODEL "hidden_act", "silu", "silu");
  const char *act = option_text (job, MODEL "moe_act_fn_cfg.act_type");
  if (act && strcmp (act, "clipped_swiglu") == 0)
    import_set_model (job->import, "act_limit", "1", MODEL "moe_act_fn_cfg.act_type");
}

void
xtuner_1_model (LaunchJob *job)
{
  set_switches (job);
  set_attention (job);
  set_experts (job);
  set_predictions (job);
  set_base (job);
  set_own_window (job);
  tell_rest (job);
}
