#include "data/launch/adapters.h"

#include <string.h>

#include "model/lora.h"
#include "strategy/shard.h"

/* Names of modules in models of Transformers, as PEFT matches their ends; in NeMo's and Megatron-LM's, and in
 * MPT; and words that stand for several. */
static const struct {
  const char *name;
  uint32_t modules;
} known[] = {
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
  { "out_proj", LS_LORA_O },
  { "attention", LS_LORA_ATTENTION },
  { "mlp", LS_LORA_MLP },
  { "all", LS_LORA_ALL },
  { "all-linear", LS_LORA_ALL },
  { "*_proj", LS_LORA_ALL },
};

static uint32_t
modules_of (const char *name)
{
  const char *dot = strrchr (name, '.'), *last = dot ? dot + 1 : name, *star = strrchr (last, '*');
  const char *whole = star ? star + 1 : last; /* "*q_proj": of whatever part of the model */
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].name, last) == 0 || strcmp (known[i].name, whole) == 0)
      return known[i].modules;
  return strcmp (last, "*") == 0 ? LS_LORA_ALL : 0;
}

static uint32_t
read_modules (LsImport *import, const LaunchAdapters *a)
{
  uint32_t set = 0;
  if (!a->on || a->on->len == 0)
    return LS_LORA_ALL;
  for (guint i = 0; i < a->on->len; i++) {
    g_auto (GStrv) names = g_strsplit_set (a->on->pdata[i], ", ", -1); /* "q_proj,v_proj" */
    for (char **name = names; *name; name++) {
      uint32_t modules = modules_of (*name);
      set |= modules;
      if (**name && modules == 0)
        import_unknown (import, "%s: %s is no linear layer that can have adapters; it is taken to have none",
                        a->option, *name);
    }
  }
  return set;
}

/* Those that the model has. */
static void
set_modules (LsImport *import, const LaunchAdapters *a, uint32_t set)
{
  static const char *const words[] = { "q", "k", "v", "o", "gate", "up", "down" };
  uint32_t own;
  char *wrong = NULL;
  if (!ls_lora_modules (&import->model, NULL, &own, &wrong))
    return;
  if (set & LS_LORA_MLP && import->model.n_experts > 0)
    import_unknown (import, "%s: adapters of experts are left out", a->option);
  if ((set & own) == own)
    return;
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (set & own & (1U << i))
      g_string_append_printf (text, "%s%s", text->len > 0 ? "," : "", words[i]);
  import_set_strategy (import, "lora_modules", text->str, a->option);
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
  import_set_strategy_number (import, "lora_rank", rank);
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
