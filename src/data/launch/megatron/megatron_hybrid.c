/* Hybrid models: layers by a pattern, or by shares of attention and MLPs; Mamba's mixers; blocks of
 * multi-token prediction. */
#include "data/launch/megatron/megatron_rules.h"

#include <math.h>
#include <string.h>

/* Evenly spaced attention and MLPs among Mamba layers, as pattern_from_ratios () of
 * megatron/core/models/hybrid/hybrid_layer_allocation.py has it; the caller frees it. */
static char *
pattern_of_ratios (guint n_layers, double attention, double mlp)
{
  char *pattern = g_strnfill (n_layers, 'm');
  double n_attention = rint (n_layers * attention), n_mlp = rint (n_layers * mlp);
  double section = (n_layers - n_attention) / (n_attention + 1), x = section;
  for (guint i = 0; i < n_layers; i++) {
    bool is_its = x < 0.5;
    pattern[i] = is_its ? 'a' : 'm';
    x += is_its ? section : -1;
  }
  section = n_mlp > 0 ? (n_layers - n_attention - n_mlp) / n_mlp : 0;
  x = section;
  for (guint i = 0; i < n_layers && n_mlp > 0; i++)
    if (pattern[i] == 'm') {
      bool is_its = x < 0.5;
      pattern[i] = is_its ? 'd' : 'm';
      x += is_its ? section : -1;
    }
  return pattern;
}

static double
ratio_of (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  return text ? CLAMP (g_ascii_strtod (text, NULL), 0, 1) : 0;
}

/* "M-M*E": Mamba, an MLP, attention, experts, each a layer; "|" ends a chunk of the pipeline, and behind each
 * "/" stands a block that predicts further ahead. The caller frees it; NULL: it has other layers. */
static char *
read_pattern (const char *text)
{
  static const char theirs[] = "M*+-E", ours[] = "maade";
  GString *pattern = g_string_new (NULL);
  for (const char *p = text; *p && *p != '/'; p++) {
    const char *at = strchr (theirs, *p);
    if (*p == '|')
      continue;
    if (!at || pattern->len >= 65536) {
      g_string_free (pattern, TRUE);
      return NULL;
    }
    g_string_append_c (pattern, ours[at - theirs]);
  }
  return g_string_free (pattern, FALSE);
}

static guint64
count_predicted (const char *text)
{
  guint64 n = 0;
  for (const char *p = text; *p; p++)
    n += *p == '/';
  return n;
}

/* MambaMixer (): twice the width of the layer in heads of 64, 8 groups of 128 states, convolutions of 4,
 * chunks of 128. */
static void
set_mamba (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 head_dim = megatron_number_or (job, "mamba-head-dim", "mamba-head-dim", 64);
  import_set_model (import, "mixer", "mamba2", "--hybrid-layer-pattern");
  import_set_model_number (import, "mixer_heads",
                           megatron_number_or (job, "mamba-num-heads", "mamba-num-heads",
                                               2 * (guint64) import->model.hidden / head_dim));
  import_set_model_number (import, "mixer_head_dim", head_dim);
  import_set_model_number (import, "mixer_groups",
                           megatron_number_or (job, "mamba-num-groups", "mamba-num-groups", 8));
  import_set_model_number (import, "mixer_state",
                           megatron_number_or (job, "mamba-state-dim", "mamba-state-dim", 128));
  import_set_model_number (import, "mixer_conv", 4);
  import_set_model_number (import, "mixer_chunk", 128);
}

static void
set_layers (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *text = option_text (job, "hybrid-layer-pattern");
  text = text ? text : option_text (job, "hybrid-override-pattern");
  bool has_pattern
      = option_is_there (job, "hybrid-layer-pattern") || option_is_there (job, "hybrid-override-pattern");
  bool is_hybrid = has_pattern || option_is_on (job, "is-hybrid-model")
      || (job->script && g_str_has_prefix (job->script, "pretrain_mamba"));
  if (!is_hybrid || import->model.hidden == 0)
    return;
  g_autofree char *pattern = text ? read_pattern (text)
      : import->model.n_layers > 0
      ? pattern_of_ratios (import->model.n_layers, ratio_of (job, "hybrid-attention-ratio"),
                           ratio_of (job, "hybrid-mlp-ratio"))
      : NULL;
  if (!pattern || !*pattern) {
    import_unknown (import, "which layers have Mamba: --hybrid-layer-pattern %s",
                    text ? text : "is not here");
    return;
  }
  if (job->script && !g_str_has_prefix (job->script, "pretrain_mamba")
      && !g_str_has_prefix (job->script, "pretrain_hybrid"))
    import_unknown (import,
                    "the letters of --hybrid-layer-pattern: %s makes layers of them; "
                    "taken for Mamba, MLPs, experts and attention of Megatron-Core",
                    job->script);
  import_set_model_number (import, "layers", strlen (pattern));
  if (strspn (pattern, "m") == strlen (pattern))
    pattern[1] = '\0';
  import_set_model (import, "layer_pattern", pattern, "--hybrid-layer-pattern");
  if (strchr (pattern, 'm'))
    set_mamba (job);
}

/* Layers of a block stand behind a "/" of the pattern, once for each block, or in an option of their own,
 * which hybrid models alone heed (arguments.py, validate_args ()). */
void
megatron_predictions (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *text = option_text (job, "hybrid-layer-pattern"), *behind = text ? strchr (text, '/') : NULL;
  const char *letters = behind ? behind + 1 : option_text (job, "mtp-hybrid-override-pattern");
  bool is_gpt = job->script && g_str_has_prefix (job->script, "pretrain_gpt") && !text;
  if (behind)
    import_set_model_number (import, "predict_layers", count_predicted (text));
  if (!import_has_model (import, "predict_layers"))
    return;
  if (option_is_there (job, "mtp-use-repeated-layer"))
    option_set_model (job, "predict_shared", option_is_on (job, "mtp-use-repeated-layer") ? "1" : "0");
  if (!letters || is_gpt)
    return;
  g_autofree char *pattern = read_pattern (letters);
  if (pattern && *pattern)
    import_set_model (import, "predict_pattern", pattern,
                      behind ? "--hybrid-layer-pattern" : "--mtp-hybrid-override-pattern");
  else
    import_unknown (import, "layers of a block that predicts further ahead: %s", letters);
}

void
megatron_hybrid (LaunchJob *job)
{
  set_layers (job);
  megatron_predictions (job);
}
