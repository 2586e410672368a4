/* Configurations that rules make: of what a command says, of files behind it and of functions in Python, each
 * over the others; the map of a program reads them. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

#define MOST_TOLD 8

/* { "put_said": true, "switches": true }: what is said in options of another program, each with the first of
 * its values; switches too, which have none, and what is off. */
void
program_put_said (ProgramRun *run, ProgramAct *a)
{
  const GPtrArray *options = run->says ? run->says->options : NULL;
  bool has_switches = cJSON_HasObjectItem (a->rule, "switches");
  for (guint i = 0; options && run->tree && i < options->len; i++) {
    const LaunchOption *o = options->pdata[i];
    if (o->values->len > 0 || has_switches)
      yaml_config_set ((cJSON *) run->tree, o->name, o->values->len > 0 ? o->values->pdata[0] : "True");
  }
  if (!has_switches || !run->says || !run->tree)
    return;
  GHashTableIter iter;
  gpointer name;
  for (g_hash_table_iter_init (&iter, run->says->off); g_hash_table_iter_next (&iter, &name, NULL);)
    yaml_config_set ((cJSON *) run->tree, name, "False");
}

/* "++a.b=c"; a launcher may have all of a job within a mapping. */
static void
put_pair (const ProgramRun *run, const char *word)
{
  const char *within = run->file->within, *name = word + strspn (word, "+");
  if (within && g_str_has_prefix (name, within))
    name += strlen (within);
  yaml_config_set_pair ((cJSON *) run->tree, name);
}

/* A word that is no pair and that the script leaves open may be many. */
static void
tell_rest (const ProgramRun *run, const char *word)
{
  if (!strchr (word, '='))
    option_tell_hole (run->job, word);
}

/* Of the words behind an option, of which the first may be its own: "data.path=x", or of these names. */
static bool
is_change (const char *word, guint at, char *const *names)
{
  g_autofree char *name = g_strndup (word, strcspn (word, "="));
  return strchr (word, '=')
      && (at > 0 || strchr (word, '.') || g_strv_contains ((const char *const *) names, name));
}

/* { "put_pairs": "a b" }: words "x.y=z" of the command, wherever they stand; these names have no dot where an
 * option is in front. Of a command that has pairs beside its options those alone are. */
void
program_put_pairs (ProgramRun *run, ProgramAct *a)
{
  const LaunchWords *words = run->script ? run->script->words : NULL;
  g_auto (GStrv) names = g_strsplit (a->what->valuestring, " ", -1);
  bool has_pairs = words && run->file->has_pairs;
  for (guint i = 0; words && run->tree && i < words->others->len; i++) {
    put_pair (run, words->others->pdata[i]);
    if (!has_pairs)
      tell_rest (run, words->others->pdata[i]);
  }
  for (guint i = 0; words && run->tree && !has_pairs && i < words->options->len; i++) {
    const GPtrArray *values = ((const LaunchOption *) words->options->pdata[i])->values;
    for (guint k = 0; k < values->len; k++) {
      if (is_change (values->pdata[k], k, names))
        put_pair (run, values->pdata[k]);
      if (k > 0)
        tell_rest (run, values->pdata[k]);
    }
  }
}

/* { "lay_files": what is wrong without any, "hint": text }: files behind the script, each over the last. */
void
program_lay_files (ProgramRun *run, ProgramAct *a)
{
  const ImportFiles *files = run->files;
  guint n = files ? files->n : 0;
  for (guint i = 1; i < n && run->tree && !run->is_refused; i++)
    run->is_refused |= !yaml_config_add ((cJSON *) run->tree, &files->files[i], run->job->import, run->diags);
  if (n > 1)
    return;
  ls_diag_add (run->diags, LS_ERROR_INPUT, run->path, 0, 0, NULL, NULL, program_member (a->rule, "hint"),
               "%s", program_act_text (run, a));
  run->is_refused = true;
}

/* { "lies_on": name of a function }: what it returns in the files behind the script from the first in Python
 * on, if there is one, lies below what was put. */
void
program_lie_on (ProgramRun *run, ProgramAct *a)
{
  const char *function = program_act_value (run, a)->text;
  const ProgramFile *script = run->file, *of = program_returned (run->map);
  const ImportFiles *files = run->files;
  guint i = 1, n = files ? files->n : 0;
  while (i < n && !g_str_has_suffix (files->files[i].path, ".py"))
    i++;
  if (function && of && run->tree && i < n) {
    run->file = of;
    g_autoptr (cJSON) below = program_python_made (run, function, &files->files[i]);
    run->file = script;
    run->is_refused |= !below;
    if (below) { /* it changes places with what lies on it */
      cJSON *tree = (cJSON *) run->tree, *above = tree->child;
      tree->child = below->child;
      below->child = above;
      yaml_config_merge (tree, below);
    }
  }
}

/* What was made, to be read: what rules made makes no other. NULL: a diagnostic. */
static cJSON *
made (const ProgramRun *run)
{
  if (run->tree && !run->told)
    return cJSON_Duplicate (run->tree, true);
  ls_diag_add (run->diags, LS_ERROR_INPUT, run->path, 0, 0, NULL, NULL, NULL,
               "%s: \"configures\" without a configuration, or of one that rules made", run->map->program);
  return NULL;
}

/* { "configures": program, "told": { name: value } }: what was made is a configuration of that program, whose
 * map reads it, and is told this of it. */
void
program_configure (ProgramRun *run, ProgramAct *a)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  ProgramTold told[MOST_TOLD + 1] = { { NULL, NULL } };
  const cJSON *one;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (a->rule, "told"))
  {
    ProgramValue v = program_value_of (run, one);
    char *text = program_value_is_none (&v) ? NULL : program_value_text (&v);
    if (texts->len < MOST_TOLD)
      told[texts->len] = (ProgramTold) { one->string, text };
    g_ptr_array_add (texts, text);
    program_value_clear (&v);
  }
  g_autoptr (cJSON) tree = made (run);
  run->is_refused |= !tree
      || !program_read_tree (a->what->valuestring, tree, run->path, told, run->job->import, run->diags);
  run->is_read = true;
}
