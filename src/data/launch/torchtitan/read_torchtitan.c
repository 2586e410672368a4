/* A configuration of torchtitan, in TOML, or the script that launches it, with the configuration beside. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/torchtitan/torchtitan_rules.h"
#include "data/text/toml.h"

static bool
add_toml (LaunchWords *words, const char *text, gsize n, const char *path, LsDiagList *diags)
{
  cJSON *tree = ls_toml_parse (text, n, path, diags);
  if (!tree)
    return false;
  launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
  return true;
}

static bool
read_config (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "torchtitan";
  if (!add_toml (words, file->text, file->n, file->path, diags))
    return false;
  LaunchJob job = { .import = import, .words = words };
  return torchtitan_read (&job, diags);
}

/* Sections that every release has one of. */
static bool
is_config (const ImportFile *file)
{
  static const char *const marks[] = { "[training]", "[parallelism]", "[activation_checkpoint]" };
  const char *p = file->text + strspn (file->text, " \t\r\n");
  if (*p == '{' || g_str_has_prefix (p, "#!"))
    return false;
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (launch_has_line (file->text, marks[i]))
      return true;
  return false;
}

const ImportReader import_torchtitan = { "a configuration of torchtitan", is_config, read_config };

/* --- scripts --------------------------------------------------------------------------------------- */

static bool
is_known (const char *name)
{
  const OptionRow *row = option_find (&torchtitan_options, name);
  return strcmp (name, "job.config_file") == 0 || strcmp (name, "job.config-file") == 0
      || (row && row->kind != OPTION_IGNORED);
}

/* The one that a script names, or the only other file that was given. The caller frees it; NULL: a
 * diagnostic. */
static char *
find_config (const ImportFiles *files, const char *name, gsize *ret_n, LsDiagList *diags)
{
  char *text = launch_file_of (files, name, ret_n);
  if (!text && files->n == 2) {
    *ret_n = files->files[1].n;
    text = g_strndup (files->files[1].text, files->files[1].n);
  }
  if (!text)
    ls_diag_add (diags, LS_ERROR_INPUT, files->files[0].path, 0, 0, NULL, NULL,
                 "give the configuration behind the script", "it launches %s, which is not here", name);
  return text;
}

/* The configuration, and what the command changes of it. */
static bool
read_launch (const ImportFiles *files, const LaunchScript *script, LaunchWords *words, LsDiagList *diags)
{
  const LaunchOption *config = launch_words_find (script->words, "job.config_file");
  const char *name = config && config->values->len > 0 ? config->values->pdata[0] : NULL;
  bool is_open = name && ls_shell_has_hole (name);
  gsize n;
  g_autofree char *text = name ? find_config (files, is_open ? "a configuration" : name, &n, diags) : NULL;
  if (name && (!text || !add_toml (words, text, n, name, diags)))
    return false;
  launch_words_add_words (words, script->words);
  return true;
}

static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { "torchtitan", is_known, 1, false };
  g_autoptr (LaunchWords) words = launch_words_new ();
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && read_launch (files, &script, words, diags);
  if (ok) {
    LaunchJob job = { .import = import, .words = words, .script = script.script, .gpus = script.gpus };
    ok = torchtitan_read (&job, diags);
  }
  launch_script_clear (&script);
  return ok;
}

static bool
is_script (const ImportFile *file)
{
  static const char *const marks[] = { "--job.config_file", "--job.config-file", "torchtitan" };
  const char *p = file->text + strspn (file->text, " \t\r\n");
  for (guint i = 0; i < G_N_ELEMENTS (marks) && *p != '{'; i++)
    if (strstr (file->text, marks[i]) && strstr (file->text, "train"))
      return !strstr (file->text, "--num-layers");
  return false;
}

const ImportReader import_torchtitan_script = { "a launch script of torchtitan", is_script, read_script };
