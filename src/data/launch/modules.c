#include "data/launch/modules.h"

#include <fnmatch.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/launch_script.h"
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

/* --- formats of single modules -------------------------------------------------------------------------- */

/* Which of its modules run in which format: --te-precision-config-file of Megatron-LM, whose file is
 * quant_recipe of Megatron-Bridge.
 *
 * Matchers stand in an order; the first pattern that a module's name fits says which recipe it has, and one
 * that none fits has that of the job (megatron/core/quantization/quant_config.py of
 * NVIDIA/Megatron-LM@d98e8a64; recipes: megatron/core/extensions/transformer_engine.py,
 * TEQuantizationRecipe). Patterns are those of Python's fnmatch, which knows no escapes. Names are those of
 * the modules of a rank, as hybrid_model.py and gpt_model.py go through them. */

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

#define MANY_LAYERS 128 /* of a model that is not in the files */
#define OPTION      "--te-precision-config-file"

/* A file. */
typedef struct {
  const cJSON *matchers, *configs, *formats; /* formats: ours by its words */
  GPtrArray *modules;                        /* cJSON: modules of the model by their names, ours */
  LsFormat of_all;                           /* the job's own, which needs no word */
  LsImport *import;                          /* which is told what is not understood */
} Recipe;

/* Each once. */
static void
complain (Recipe *r, const char *what)
{
  g_autofree char *text = g_strconcat (OPTION ": ", what, NULL);
  if (!g_ptr_array_find_with_equal_func (r->import->unknown, text, g_str_equal, NULL))
    import_unknown (r->import, "%s", text);
}

static bool
is_on (const cJSON *object, const char *key)
{
  return cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (object, key));
}

/* 0: it is none of them. */
static guint
index_of (const char *const *names, const char *name)
{
  guint i = 0;
  while (names[i] && g_strcmp0 (names[i], name) != 0)
    i++;
  return names[i] ? i : 0;
}

/* Ours of one of the modules. */
static LsModule
module_at (const Recipe *r, guint i)
{
  return index_of (ls_module_names, cJSON_GetStringValue (r->modules->pdata[i]));
}

/* What a module runs in while it is trained. */
static LsFormat
format_of_config (Recipe *r, const cJSON *config)
{
  const cJSON *training = cJSON_GetObjectItemCaseSensitive (config, "training_recipe"),
              *overrides = cJSON_GetObjectItemCaseSensitive (training, "override_quantized_autocast");
  const char *fp8 = program_member (training, "fp8_quantization_recipe"),
             *fp4 = program_member (training, "fp4_quantization_recipe"), *name = fp8 ? fp8 : fp4;
  if (!cJSON_IsObject (training))
    complain (r, "a configuration without training_recipe");
  if (is_on (training, "override_nonquantized_autocast"))
    complain (r, "override_nonquantized_autocast: layers in bf16 are assumed to stay so");
  if (is_on (training, "fp8_param") || is_on (training, "fp4_param"))
    complain (r, "parameters that are kept as they are multiplied: they are assumed to be in 16 bits");
  if (!cJSON_IsObject (training) || cJSON_IsFalse (overrides))
    return LS_FORMAT_OF_ALL;
  if (!name)
    return LS_FORMAT_BF16;
  LsFormat format = index_of (ls_format_names, program_member (r->formats, name));
  if (format == LS_FORMAT_OF_ALL)
    complain (r, name);
  return format;
}

static LsFormat
format_of (Recipe *r, const char *path)
{
  const cJSON *matcher;
  cJSON_ArrayForEach (matcher, r->matchers)
  {
    const char *type = program_member (matcher, "type"), *pattern = program_member (matcher, "pattern"),
               *config = program_member (matcher, "config");
    if (!is_on (matcher, "enabled"))
      continue;
    if (g_strcmp0 (type, "glob") != 0 || !pattern || !config)
      complain (r, "a matcher that is no glob");
    else if (fnmatch (pattern, path, FNM_NOESCAPE) == 0) {
      LsFormat format = format_of_config (r, cJSON_GetObjectItemCaseSensitive (r->configs, config));
      return format == r->of_all ? LS_FORMAT_OF_ALL : format;
    }
  }
  return LS_FORMAT_OF_ALL;
}

/* Of modules in so many layers, or blocks, whose names begin so. False: some of one kind have another than
 * the first. */
static bool
formats_of (Recipe *r, const char *begin, const char *inside, guint n, LsFormats *ret)
{
  bool is_alike = true, is_known[LS_N_MODULES] = { false };
  *ret = (LsFormats) { 0 };
  for (guint i = 0; i < r->modules->len; i++) {
    LsModule module = module_at (r, i);
    for (guint layer = 0; layer < n; layer++) {
      g_autofree char *path
          = g_strdup_printf ("%s%u.%s%s", begin, layer, inside, ((cJSON *) r->modules->pdata[i])->string);
      LsFormat format = format_of (r, path);
      is_alike &= !is_known[module] || ret->of[module] == format;
      if (!is_known[module])
        ret->of[module] = (uint8_t) format;
      is_known[module] = true;
    }
  }
  return is_alike;
}

/* Blocks of multi-token prediction: as layers are, or all in one format. */
static void
add_blocks (Recipe *r, const LsModel *m, LsFormats *formats)
{
  LsFormats own;
  bool is_alike = formats_of (r, "mtp.layers.", "mtp_model_layer.", m->predict.layers, &own);
  uint8_t proj = (uint8_t) format_of (r, "mtp.layers.0.eh_proj");
  bool is_one = is_alike, is_as_layers = is_alike && proj == LS_FORMAT_OF_ALL;
  for (guint i = 0; i < r->modules->len; i++) {
    is_one &= own.of[module_at (r, i)] == proj;
    is_as_layers &= own.of[module_at (r, i)] == formats->of[module_at (r, i)];
  }
  if (is_as_layers)
    return;
  if (!is_one)
    complain (r, "blocks of multi-token prediction whose modules are in several formats");
  formats->of[LS_MODULE_MTP] = is_one ? proj : LS_FORMAT_OF_ALL;
}

static LsFormat
format_of_job (const LsStrategy *s)
{
  static const LsFormat formats[] = { [LS_FP8_CURRENT] = LS_FORMAT_CURRENT,
                                      [LS_FP8_BLOCKWISE] = LS_FORMAT_BLOCKWISE,
                                      [LS_FP8_MXFP8] = LS_FORMAT_MXFP8,
                                      [LS_FP8_DEEPSEEK] = LS_FORMAT_OF_ALL };
  return s->dtype == LS_DTYPE_NVFP4 ? LS_FORMAT_NVFP4 : formats[s->fp8.recipe];
}

static void
set_formats (LsImport *import, const cJSON *tree)
{
  const LsModel *m = &import->model;
  LsFormats formats;
  const ProgramMap *map = program_doors->map_get ("megatron");
  const cJSON *tables = map ? map->tables : NULL,
              *attention = cJSON_GetObjectItemCaseSensitive (
                  tables, m->latent.kv_lora > 0 ? "latent_attention" : "plain_attention"),
              *others = cJSON_GetObjectItemCaseSensitive (tables, "modules"), *one;
  g_autoptr (GPtrArray) modules = g_ptr_array_new ();
  cJSON_ArrayForEach (one, attention) g_ptr_array_add (modules, (gpointer) one);
  cJSON_ArrayForEach (one, others) g_ptr_array_add (modules, (gpointer) one);
  Recipe r = { .modules = modules,
               .formats = cJSON_GetObjectItemCaseSensitive (tables, "formats"),
               .matchers = cJSON_GetObjectItemCaseSensitive (tree, "matchers"),
               .configs = cJSON_GetObjectItemCaseSensitive (tree, "configs"),
               .of_all = format_of_job (&import->strategy),
               .import = import };
  if (!formats_of (&r, "decoder.layers.", "", m->n_layers > 0 ? m->n_layers : MANY_LAYERS, &formats))
    complain (&r, "patterns of single layers: all are assumed to be as the first");
  if (m->predict.layers > 0 && import->strategy.dtype == LS_DTYPE_FP8)
    add_blocks (&r, m, &formats); /* nothing of a block is in nvfp4 */
  g_autofree char *text = ls_formats_text (&formats);
  if (*text)
    import_set_strategy (import, "module_formats", text, OPTION " model.quant_recipe");
}

void
megatron_formats (LaunchJob *job, const char *option)
{
  const char *text = option_text (job, option);
  cJSON *tree = text && *text == '{' ? cJSON_Parse (text) : NULL;
  if (text && !tree)
    import_unknown (job->import, OPTION " %s: it is not here", text);
  else if (tree && ls_dtype_is_scaled ((LsDtype) job->import->strategy.dtype))
    set_formats (job->import, tree);
  cJSON_Delete (tree);
}
