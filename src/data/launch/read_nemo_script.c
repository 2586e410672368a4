/* Scripts of NeMo: they change a configuration, whose map is strategies/programs/nemo.json. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

/* NeMo's launcher has all of a job under "training". */
static const char *
bare_name (const char *name)
{
  return g_str_has_prefix (name, "training.") ? name + strlen ("training.") : name;
}

static bool
is_known (const char *name)
{
  const ProgramMap *map = program_map_get ("nemo");
  const OptionRow *row = map ? option_find (&map->table, bare_name (name)) : NULL;
  return row && row->kind != OPTION_IGNORED;
}

/* The configuration that --config-name names is one of the files that were given: without it a script says
 * only what differs from it. */
static bool
add_configs (cJSON *tree, const ImportFiles *files, const LaunchWords *words, LsImport *import,
             LsDiagList *diags)
{
  const char *said = launch_words_text (words, "config-name"), *name = said ? said : "of its program";
  for (guint i = 1; i < files->n; i++)
    if (!yaml_config_add (tree, &files->files[i], import, diags))
      return false;
  if (files->n == 1)
    ls_diag_add (diags, LS_ERROR_INPUT, files->files[0].path, 0, 0, NULL, NULL,
                 "give that file too, behind the script",
                 "this script changes the configuration %s, which is not here", name);
  return files->n > 1;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = "NeMo", .is_known = is_known, .n_needed = 2, .has_pairs = true, .has_te = true };
  LaunchScript script;
  cJSON *tree = cJSON_CreateObject ();
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && add_configs (tree, files, script.words, import, diags);
  for (guint i = 0; ok && i < script.words->others->len; i++) {
    const char *word = script.words->others->pdata[i];
    yaml_config_set_pair (tree, bare_name (word + strspn (word, "+")));
  }
  launch_script_clear (&script);
  if (ok)
    return program_read_tree ("nemo", tree, files->files[0].path, NULL, import, diags);
  cJSON_Delete (tree);
  return false;
}

/* Words "model.x=..." and "trainer.y=..." behind a script of Python: a trainer of Lightning, as other
 * programs have one with other options. */
static bool
is_its (const ImportFile *file)
{
  static const char *const own[] = { "trainer.devices",   "trainer.num_nodes",  "trainer.precision",
                                     "trainer.max_steps", "trainer.max_epochs", "trainer.strategy" };
  bool has_pairs = false;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    has_pairs = has_pairs || strstr (file->text, own[i]);
  return has_pairs && strstr (file->text, "model.") && strstr (file->text, ".py")
      && strstr (file->text, "_size=");
}

const ImportReader import_nemo_script = { NULL, is_its, read };
