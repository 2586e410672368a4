#include "data/launch/adapters.h"

#include <string.h>

#include "data/shell/shell.h"
#include "model/lora.h"
#include "strategy/shard.h"

/* A name of a module, in models with this mixer, or in any. */
typedef struct {
  const char *name;
  uint32_t modules;
  LsMixerKind mixer;
} Name;

/* Names of modules in models of Transformers, as PEFT matches their ends; in NeMo's and Megatron-LM's, and in
 * MPT; and words that stand for several. The first that fits a model counts: out_proj is of attention in
 * models without mixers, of both in LFM2, whose mixers are convolutions. */
static const Name known[] = {
  { "out_proj", LS_LORA_O, LS_MIXER_NONE },
  { "out_proj", LS_LORA_O | LS_LORA_OUT, LS_MIXER_CONV },
  { "qkv_proj", LS_LORA_IN, LS_MIXER_LINEAR },
  { "query_key_value", LS_LORA_Q | LS_LORA_K | LS_LORA_V | LS_LORA_IN, LS_MIXER_LINEAR },
  { "q", LS_LORA_Q, LS_MIXER_MLSTM },
  { "k", LS_LORA_K, LS_MIXER_MLSTM },
  { "v", LS_LORA_V, LS_MIXER_MLSTM },
  { "ogate_preact", LS_LORA_IN, LS_MIXER_MLSTM },
  { "igate_preact", LS_LORA_IN, LS_MIXER_MLSTM },
  { "fgate_preact", LS_LORA_IN, LS_MIXER_MLSTM },
  { "g_proj", LS_LORA_IN, LS_MIXER_DELTA },
  { "g_proj", LS_LORA_IN, LS_MIXER_KDA },
  { "g_proj", LS_LORA_IN, LS_MIXER_LINEAR },
  { "b_proj", LS_LORA_IN, LS_MIXER_KDA },
  { "b_proj", LS_LORA_IN, LS_MIXER_DELTA },
  { "a_proj", LS_LORA_IN, LS_MIXER_DELTA },
  { "f_a_proj", LS_LORA_IN, LS_MIXER_KDA },
  { "f_b_proj", LS_LORA_IN, LS_MIXER_KDA },
  { "g_a_proj", LS_LORA_IN, LS_MIXER_KDA },
  { "g_b_proj", LS_LORA_IN, LS_MIXER_KDA },
  { "w1", LS_LORA_GATE, LS_MIXER_CONV },
  { "w3", LS_LORA_UP, LS_MIXER_CONV },
  { "w2", LS_LORA_DOWN, LS_MIXER_CONV },
  { "linear_y", LS_LORA_IN, LS_MIXER_RGLRU },
  { "linear_x", LS_LORA_IN, LS_MIXER_RGLRU },
  { "linear_out", LS_LORA_OUT, LS_MIXER_RGLRU },
  { "input_linear", LS_LORA_GATE | LS_LORA_UP, LS_MIXER_MAMBA2 },
  { "output_linear", LS_LORA_DOWN, LS_MIXER_MAMBA2 },
};

static const Name known_in_any[] = {
  { "in_proj", LS_LORA_IN },
  { "in_proj_qkvz", LS_LORA_IN },
  { "in_proj_ba", LS_LORA_IN },
  { "in_proj_qkv", LS_LORA_IN },
  { "in_proj_z", LS_LORA_IN },
  { "in_proj_b", LS_LORA_IN },
  { "in_proj_a", LS_LORA_IN },
  { "output_gate", LS_LORA_IN },
  { "x_proj", LS_LORA_SELECT },
  { "bcdt_proj", LS_LORA_SELECT },
  { "dt_proj", LS_LORA_STEP },

  { "q_proj", LS_LORA_Q },
  { "k_proj", LS_LORA_K },
  { "v_proj", LS_LORA_V },
  { "o_proj", LS_LORA_O },
  { "output_proj", LS_LORA_O },
  { "gate_proj", LS_LORA_GATE },
  { "up_proj", LS_LORA_UP },
  { "down_proj", LS_LORA_DOWN },
  { "qkv_proj", LS_LORA_Q | LS_LORA_K | LS_LORA_V },
  { "query_key_value", LS_LORA_Q | LS_LORA_K | LS_LORA_V },
  { "gate_up_proj", LS_LORA_GATE | LS_LORA_UP },
  { "q_a_proj", LS_LORA_Q },
  { "q_b_proj", LS_LORA_Q },
  { "kv_a_proj_with_mqa", LS_LORA_K },
  { "kv_b_proj", LS_LORA_K },
  { "linear_q", LS_LORA_Q },
  { "linear_k", LS_LORA_K },
  { "linear_v", LS_LORA_V },
  { "linear_q_proj", LS_LORA_Q },
  { "linear_q_down_proj", LS_LORA_Q },
  { "linear_q_up_proj", LS_LORA_Q },
  { "linear_kv_down_proj", LS_LORA_K },
  { "linear_kv_up_proj", LS_LORA_K },
  { "linear_qkv", LS_LORA_Q | LS_LORA_K | LS_LORA_V },
  { "linear_proj", LS_LORA_O },
  { "linear_fc1", LS_LORA_GATE | LS_LORA_UP },
  { "linear_fc2", LS_LORA_DOWN },
  { "attention_qkv", LS_LORA_Q | LS_LORA_K | LS_LORA_V },
  { "attention_dense", LS_LORA_O },
  { "mlp_fc1", LS_LORA_GATE | LS_LORA_UP },
  { "mlp_fc2", LS_LORA_DOWN },
  { "Wqkv", LS_LORA_Q | LS_LORA_K | LS_LORA_V },
  { "out_proj", LS_LORA_OUT },
  { "attention", LS_LORA_ATTENTION },
  { "mlp", LS_LORA_MLP },
  { "all", LS_LORA_ALL },
  { "all-linear", LS_LORA_ALL },
  { "*_proj", LS_LORA_ALL },
};

static bool
is_named (const Name *known_as, const char *last, const char *whole)
{
  return strcmp (known_as->name, last) == 0 || strcmp (known_as->name, whole) == 0;
}

static uint32_t
modules_of (const LsModel *m, const char *name)
{
  const char *dot = strrchr (name, '.'), *last = dot ? dot + 1 : name, *star = strrchr (last, '*');
  const char *whole = star ? star + 1 : last; /* "*q_proj": of whatever part of the model */
  for (guint i = 0; i < G_N_ELEMENTS (known) && m->n_layers > 0; i++)
    if (known[i].mixer == m->mixer && is_named (&known[i], last, whole))
      return known[i].modules;
  for (guint i = 0; i < G_N_ELEMENTS (known_in_any); i++)
    if (is_named (&known_in_any[i], last, whole))
      return known_in_any[i].modules;
  return strcmp (last, "*") == 0 ? LS_LORA_ALL : 0;
}

/* A text that is no list of names, which PEFT matches with whole paths of modules (tuners_utils.py,
 * check_target_module_exists: re.fullmatch). */
static bool
is_pattern (const char *text)
{
  return *text != '[' && strpbrk (text, "\\|()[]^$+?") && strlen (text) < 1000;
}

/* By the paths that layers have in Transformers' models, alone and inside of those that see or hear. */
static uint32_t
modules_by_pattern (const char *pattern)
{
  static const char *const above[] = { "layers.1.",
                                       "model.layers.1.",
                                       "language_model.layers.1.",
                                       "model.language_model.layers.1.",
                                       "language_model.model.layers.1.",
                                       "model.language_model.model.layers.1.",
                                       "thinker.model.layers.1." };
  static const Name below[] = { { "self_attn.q_proj", LS_LORA_Q }, { "self_attn.k_proj", LS_LORA_K },
                                { "self_attn.v_proj", LS_LORA_V }, { "self_attn.o_proj", LS_LORA_O },
                                { "mlp.gate_proj", LS_LORA_GATE }, { "mlp.up_proj", LS_LORA_UP },
                                { "mlp.down_proj", LS_LORA_DOWN } };
  g_autofree char *whole = g_strdup_printf ("^(?:%s)$", pattern);
  uint32_t set = 0;
  for (guint i = 0; i < G_N_ELEMENTS (above); i++)
    for (guint k = 0; k < G_N_ELEMENTS (below); k++) {
      g_autofree char *path = g_strconcat (above[i], below[k].name, NULL);
      if (g_regex_match_simple (whole, path, G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT))
        set |= below[k].modules;
    }
  return set;
}

static uint32_t
read_pattern (LsImport *import, const LaunchAdapters *a, const char *pattern)
{
  uint32_t set = modules_by_pattern (pattern);
  g_autofree char *text = ls_lora_words (set, ",");
  if (set == 0)
    import_unknown (import,
                    "%s: %s is the pattern of no linear layer that is known; it is taken to be of all",
                    a->option, pattern);
  else
    import_infer (import, "%s: its pattern is that of %s, by names of Transformers' models", a->option, text);
  return set ? set : LS_LORA_ALL;
}

static uint32_t
read_modules (LsImport *import, const LaunchAdapters *a)
{
  uint32_t set = 0;
  if (!a->on || a->on->len == 0)
    return LS_LORA_ALL;
  for (guint i = 0; i < a->on->len; i++) {
    if (ls_shell_has_hole (a->on->pdata[i])) {
      import_unknown (import, "%s: which layers have adapters is not said here; all linear ones are taken to",
                      a->option);
      return LS_LORA_ALL;
    }
    if (is_pattern (a->on->pdata[i])) {
      set |= read_pattern (import, a, a->on->pdata[i]);
      continue;
    }
    g_auto (GStrv) names = g_strsplit_set (a->on->pdata[i], ", ", -1); /* "q_proj,v_proj" */
    for (char **name = names; *name; name++) {
      uint32_t modules = modules_of (&import->model, *name);
      set |= modules;
      if (**name && modules == 0)
        import_unknown (import, "%s: %s is no linear layer that can have adapters; it is taken to have none",
                        a->option, *name);
    }
  }
  return set;
}

/* Those that the model has. Of one whose layers are not known: those of attention and MLPs, and of mixers if
 * a way into these was named, without which out_proj is attention's. */
static void
set_modules (LsImport *import, const LaunchAdapters *a, uint32_t set)
{
  uint32_t own = LS_LORA_ATTENTION | LS_LORA_MLP;
  bool has_mixers = set != LS_LORA_ALL && set & LS_LORA_MIXER & ~(uint32_t) LS_LORA_OUT;
  if (import->model.n_layers > 0)
    ls_lora_modules (&import->model, NULL, &own, NULL);
  else if (has_mixers)
    own |= set & LS_LORA_MIXER;
  else if (set & LS_LORA_OUT)
    set |= LS_LORA_O;
  if (set & LS_LORA_MLP && import->model.n_experts > 0)
    import_unknown (import, "%s: adapters of experts are left out", a->option);
  if ((set & own) == own)
    return;
  g_autofree char *text = ls_lora_words (set & own, ",");
  import_set_strategy (import, "lora_modules", text, a->option);
}

/* As far as the file says it (strategy/strategy_experts.c). */
static bool
can_be_simulated (const LsImport *import, const LaunchAdapters *a)
{
  const LsModel *m = &import->model;
  const LsStrategy *s = &import->strategy;
  bool is_scaled = ls_dtype_is_scaled ((LsDtype) s->dtype);
  return !ls_strategy_bars_adapters (m)
      && (!is_scaled || (s->dp_kind == LS_DP_MEGATRON && m->n_experts == 0 && !a->is_nf4));
}

void
launch_set_adapters (LsImport *import, const LaunchAdapters *a)
{
  uint32_t set = read_modules (import, a);
  if (set == 0 || !can_be_simulated (import, a)) {
    import_unknown (
        import, "%s: only adapters are trained, which cannot be simulated here; all weights are taken to be",
        a->option);
    return;
  }
  if (a->dropout && g_ascii_strtod (a->dropout, NULL) > 0)
    import_unknown (import, "lora_dropout %s: left out", a->dropout);
  guint64 rank = a->rank > 0 ? a->rank : a->usual_rank;
  if (a->rank == 0)
    import_infer (import, "lora_rank %" G_GUINT64_FORMAT ": the default of the program", rank);
  import_set_strategy_count (import, "lora_rank", rank, a->option);
  set_modules (import, a, set);
  if (a->is_nf4)
    import_set_strategy (import, "qlora", "1", a->option);
}

GPtrArray *
launch_usual_modules (void)
{
  GPtrArray *modules = g_ptr_array_new ();
  g_ptr_array_add (modules, (gpointer) "q_proj");
  g_ptr_array_add (modules, (gpointer) "v_proj");
  return modules;
}
