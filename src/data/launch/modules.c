#include "data/launch/modules.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"
#include "data/shell/shell.h"
#include "data/text/field.h"
#include "data/text/yaml.h"
#include "model/lora.h"
#include "strategy/shard.h"

/* Names of modules in models of Transformers, as PEFT matches their ends; in NeMo's and Megatron-LM's, and in
 * MPT; and words that stand for several: strategies/programs/peft.json. */
const cJSON *
launch_modules (const char *name)
{
  const ProgramMap *peft = program_doors->map_get ("peft");
  return peft ? cJSON_GetObjectItemCaseSensitive (peft->tables, name) : NULL;
}

/* "q,k"; "all". */
static uint32_t
modules_of_words (const char *text)
{
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  uint32_t set = strcmp (text, "all") == 0 ? LS_LORA_ALL : 0;
  for (uint32_t module = 1; module < LS_LORA_ALL; module *= 2) {
    g_autofree char *word = ls_lora_words (module, ",");
    if (g_strv_contains ((const char *const *) words, word))
      set |= module;
  }
  return set;
}

/* By its last part, or that behind a star, which is of whatever part of the model; 0: it is none. */
static uint32_t
find_modules (const cJSON *table, const char *last)
{
  const char *star = strrchr (last, '*');
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (table, last);
  if (!node && star)
    node = cJSON_GetObjectItemCaseSensitive (table, star + 1);
  return cJSON_IsString (node) ? modules_of_words (node->valuestring) : 0;
}

/* The name's in models with this mixer go first. */
static uint32_t
modules_of (const LsModel *m, const char *name)
{
  const char *dot = strrchr (name, '.'), *last = dot ? dot + 1 : name;
  const cJSON *modules = launch_modules ("modules");
  g_autofree char *mixer = ls_field_text (ls_field_find (ls_model_fields, "mixer"), m, NULL);
  uint32_t own
      = m->n_layers > 0 && mixer ? find_modules (cJSON_GetObjectItemCaseSensitive (modules, mixer), last) : 0;
  return own ? own : find_modules (cJSON_GetObjectItemCaseSensitive (modules, "any"), last);
}

/* A text that is no list of names, which PEFT matches with whole paths of modules (tuners_utils.py,
 * check_target_module_exists: re.fullmatch). */
static bool
is_pattern (const char *text)
{
  return *text != '[' && strpbrk (text, "\\|()[]^$+?") && strlen (text) < 1000;
}

/* By the paths that layers have in Transformers' models. */
static uint32_t
modules_by_pattern (const char *pattern)
{
  const cJSON *above, *below;
  g_autofree char *whole = g_strdup_printf ("^(?:%s)$", pattern);
  uint32_t set = 0;
  cJSON_ArrayForEach (above, launch_modules ("above")) cJSON_ArrayForEach (below, launch_modules ("below"))
  {
    g_autofree char *path = g_strconcat (above->string, below->string, NULL);
    if (g_regex_match_simple (whole, path, G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT))
      set |= modules_of_words (below->valuestring);
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
                    "%s: %s is the pattern of no linear layer that is known; it is assumed to be of all",
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
        import_unknown (import,
                        "%s: %s is no linear layer that can have adapters; it is assumed to have none",
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
  if (set & LS_LORA_MLP && import->model.moe.n_experts > 0)
    import_unknown (import, "%s: adapters of experts are left out", a->option);
  if ((set & own) == own)
    return;
  g_autofree char *text = ls_lora_words (set & own, ",");
  import_set_strategy (import, "lora_modules", text, a->option);
}

/* As far as the file says it (strategy/strategy_pipeline.c). */
static bool
can_be_simulated (const LsImport *import, const LaunchAdapters *a)
{
  const LsModel *m = &import->model;
  const LsStrategy *s = &import->strategy;
  bool is_scaled = ls_dtype_is_scaled ((LsDtype) s->dtype);
  return !ls_strategy_bars_adapters (m)
      && (!is_scaled || (s->dp_kind == LS_DP_MEGATRON && m->moe.n_experts == 0 && !a->is_nf4));
}

void
launch_set_adapters (LsImport *import, const LaunchAdapters *a)
{
  uint32_t set = read_modules (import, a);
  if (set == 0 || !can_be_simulated (import, a)) {
    import_unknown (
        import,
        "%s: only adapters are trained, which cannot be simulated here; all weights are assumed to be",
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

char *
megatron_formats_text (const char *text, gsize n, const char *name)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  cJSON *tree = ls_yaml_parse (text, n, name, NULL, diags);
  char *made = cJSON_IsObject (tree) ? cJSON_PrintUnformatted (tree) : NULL,
       *copy = made ? g_strdup (made) : NULL;
  cJSON_free (made);
  cJSON_Delete (tree);
  return copy;
}
