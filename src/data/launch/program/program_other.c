/* A program whose options become options of another one, whose reader reads the job then: rules add to these,
 * and ask for them with ">" in front of a name. */
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

/* --- what is said in its options ------------------------------------------------------------------------ */

/* Of a rule: whether a file says it, else the program does. */
static bool
is_said (ProgramRun *run, const cJSON *rule)
{
  return !cJSON_HasObjectItem (rule, "said") || program_is_true_at (run, rule, "said");
}

/* { "base": { option: value }, "said": as below }: what lies under the options of the program; those that
 * stand there, or are off, hold. A value that is none is none of it. */
void
program_base (ProgramRun *run, ProgramAct *a)
{
  bool is_of_file = is_said (run, a->rule);
  LaunchWords *base = launch_words_new ();
  const cJSON *one;
  cJSON_ArrayForEach (one, a->what)
  {
    g_autofree char *option = program_option (run->map, one->string);
    g_auto (ProgramValue) v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    bool is_there = launch_words_find (run->words, option) || option_is_none (run->job, option);
    if (!is_there && !program_value_is_none (&v))
      launch_words_add_by (base, is_of_file, option, text);
  }
  launch_words_add_words (base, run->words);
  const LaunchWords above = *run->words;
  *run->words = *base;
  *base = above;
  launch_words_free (base);
}

/* { "say": { option: value }, "said": whether a file says it, else the program does }; a value that is none
 * says nothing, true that it is on. */
void
program_say (ProgramRun *run, ProgramAct *a)
{
  const char *text = program_act_text (run, a);
  if (!program_value_is_none (&a->value))
    launch_words_add_by (run->says, is_said (run, a->rule), a->name, cJSON_IsTrue (a->what) ? NULL : text);
}

/* { "say_option": { option: option of the program } }: with all its values, as it is written, if it is
 * there. */
void
program_say_option (ProgramRun *run, ProgramAct *a)
{
  const LaunchOption *o = launch_words_find (run->words, program_act_text (run, a));
  if (o)
    launch_words_add_renamed (run->says, a->name, o);
}

void
program_tell_default (ProgramRun *run, ProgramAct *a)
{
  const char *why = program_member (a->rule, "why");
  import_infer (run->job->import, "%s %s: %s%s", a->name, program_act_text (run, a),
                why ? why : "the default of ", why ? "" : run->map->program);
}

/* { "assumes": { option: value } }: options of the program that are not given, which is told. { "say_usual":
 * { option: value } }: the same of those of the other program. */
void
program_assume (ProgramRun *run, ProgramAct *a)
{
  LaunchWords *words = strcmp (a->action, "assumes") == 0 ? run->words : run->says;
  if (launch_words_find (words, a->name))
    return;
  launch_words_add_by (words, false, a->name, program_act_text (run, a));
  program_tell_default (run, a);
}

/* { "say_default": { option: value }, "unless": options of the program, "why": in words; without it they are
 * its defaults }: where nothing says them on or off, nor one of its own options; what is said is told. */
void
program_say_default (ProgramRun *run, ProgramAct *a)
{
  if (launch_words_has_any (run->says, a->name)
      || launch_words_has_any (run->job->words, program_member (a->rule, "unless")))
    return;
  launch_words_add_by (run->says, false, a->name, program_act_text (run, a));
  program_tell_default (run, a);
}

/* { "switch": option, "cases": { text: { option: value } } }: what a text of it says, in whatever letters.
 * Another one is told, unless the option is of the other program too. */
void
program_switch (ProgramRun *run, ProgramAct *a)
{
  const char *option = program_act_text (run, a), *text = option_text (run->job, option);
  const cJSON *one, *node = NULL;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (a->rule, "cases"))
  {
    if (text && g_ascii_strcasecmp (text, one->string) == 0)
      node = one;
  }
  if (text && !node && !option_find (run->job->table, option)->key)
    import_unknown (run->job->import, "%s %s", option, text);
  cJSON_ArrayForEach (one, node)
  {
    g_auto (ProgramValue) v = program_value_of (run, one);
    g_autofree char *as = program_value_text (&v);
    launch_words_add_value (run->says, one->string, as);
  }
}

/* The text of a file that comes with a program; NULL: there is none. map: NULL allowed. */
static char *
file_with (const ProgramMap *map, const char *name)
{
  const cJSON *file = map ? cJSON_GetObjectItemCaseSensitive (map->comes, name) : NULL;
  return file ? cJSON_PrintUnformatted (file) : NULL;
}

/* The text of a configuration of DeepSpeed, which comes with a program or is here; NULL: it is not. map: NULL
 * allowed. */
static char *
configuration_of (const ProgramRun *run, const ProgramMap *map, const char *name, gsize *ret_n)
{
  char *text = name ? file_with (map, name) : NULL;
  *ret_n = text ? strlen (text) : 0;
  return text || !name || !run->files ? text : launch_file_of (run->files, name, ret_n);
}

/* Reads such a text for the program. */
static void
take_deepspeed (ProgramRun *run, const char *text, gsize n, const char *path)
{
  launch_words_free (run->deepspeed);
  run->deepspeed = launch_words_new ();
  run->is_refused |= !launch_words_add_json (run->deepspeed, text, n, path, run->diags);
}

/* { "deepspeed": the name of a configuration of DeepSpeed, "at": the mapping in its place }: a file, or one
 * that comes with the program. */
void
program_deepspeed (ProgramRun *run, ProgramAct *a)
{
  const char *at = program_member (a->rule, "at"), *name = program_act_value (run, a)->text;
  const cJSON *inside = at && run->tree ? yaml_config_find (run->tree, at) : NULL;
  gsize n;
  g_autofree char *own = cJSON_IsObject (inside) ? cJSON_PrintUnformatted (inside) : NULL,
                  *text = own ? g_strdup (own) : configuration_of (run, run->map, name, &n);
  if (name || text)
    launch_words_add_value (run->says, "deepspeed", name ? name : "deepspeed");
  if (text)
    take_deepspeed (run, text, own ? strlen (own) : n, name ? name : run->files->files[0].path);
}

/* --- what is configured beside it ----------------------------------------------------------------------- */

/* { "beside": program, "file": the name of its configuration, "gives": name }: what rules behind say with
 * ">" is said in its options. The name gives whether its configuration was read. */
void
program_beside (ProgramRun *run, ProgramAct *a)
{
  g_auto (ProgramValue) name = program_value_at (run, a->rule, "file");
  gsize n;
  g_autofree char *text = run->deepspeed ? NULL : configuration_of (run, run->around, name.text, &n);
  if (text)
    take_deepspeed (run, text, n, name.text);
  program_let (run, program_member (a->rule, "gives"), program_number (run->deepspeed != NULL));
  run->says = run->deepspeed ? g_steal_pointer (&run->deepspeed) : launch_words_new ();
  run->other = (LaunchJob) { .import = run->job->import,
                             .words = run->says,
                             .table = program_table_find (a->what->valuestring),
                             .gpus = run->job->gpus,
                             .open = run->job->open };
}

/* { "fill": { option: value } }: of the options beside, or where there are none its own, those whose value
 * the file leaves to the program, "auto"; a value that is none leaves it open, and so does a variable. */
void
program_fill_open (ProgramRun *run, ProgramAct *a)
{
  LaunchWords *words = run->says ? run->says : run->words;
  const char *as = program_act_text (run, a), *text = launch_words_text (words, a->name);
  bool is_variable = text && *text == LS_SHELL_HOLE && text[1] == '$',
       is_auto = text && ls_shell_has_hole (text) && !is_variable;
  if (is_auto && !program_value_is_none (&a->value))
    launch_words_add_value (words, a->name, as);
}

/* { "handed_adapters": name }: sets those of a program whose options became these; the name gives whether
 * there are any. */
void
program_hand_adapters (ProgramRun *run, ProgramAct *a)
{
  program_let (run, a->what->valuestring, program_number (run->handed != NULL));
  if (run->handed)
    launch_set_adapters (run->job->import, run->handed);
}

/* --- readers -------------------------------------------------------------------------------------------- */

/* By all rules, or by a part of them, before which options were read. */
bool
program_run_map (const char *name, const char *part, const ProgramWith *with, LaunchJob *job,
                 const ImportFiles *files, LsDiagList *diags)
{
  const ProgramMap *map = program_doors->map_get (name);
  if (!map && diags)
    program_map_free (program_map_load (name, diags)); /* it says what is wrong */
  if (!map)
    return false;
  ProgramRun run = { .map = map,
                     .job = job,
                     .words = (LaunchWords *) job->words,
                     .path = job->import->path,
                     .files = files,
                     .told = with->told,
                     .says = with->says,
                     .other = { .import = job->import,
                                .words = with->says,
                                .table = program_table_find ("trainer"),
                                .gpus = job->gpus },
                     .deepspeed = with->deepspeed,
                     .handed = with->adapters,
                     .around = with->around,
                     .emit = with->emit,
                     .is_written = with->emit != NULL,
                     .command = g_strdup (job->script),
                     .diags = diags };
  const OptionTable *table = job->table;
  job->table = &map->table;
  bool had_open = part && job->open;
  if (!had_open)
    job->open = g_hash_table_new (g_str_hash, g_str_equal);
  run.other.open = job->open;
  if (run.says)
    option_translate (job, run.says);
  bool ok = program_doors->run_rules (
      &run, part ? cJSON_GetObjectItemCaseSensitive (map->parts, part) : map->rules);
  if (!had_open)
    g_clear_pointer (&job->open, g_hash_table_unref);
  run.job = NULL;
  run.says = with->says ? NULL : run.says;
  program_run_clear (&run);
  job->table = part && table ? table : job->table;
  return ok;
}

/* { "part": name, "of_map": another program, whose options are said, or with "own": true those of this one;
 * without, of its own } */
void
program_run_part (ProgramRun *run, ProgramAct *a)
{
  const char *of = program_member (a->rule, "of_map"), *part = a->what->valuestring;
  bool is_own = cJSON_HasObjectItem (a->rule, "own");
  if (!of)
    run->is_refused
        |= !program_doors->run_rules (run, cJSON_GetObjectItemCaseSensitive (run->map->parts, part));
  else if (run->says || is_own)
    run->is_refused |= !program_doors->run_map (of, part, &(ProgramWith) { .emit = run->emit },
                                                is_own ? run->job : &run->other, run->files, run->diags);
}

/* { "translate": program }: options that it has too, by its names. */
void
program_translate (ProgramRun *run, ProgramAct *a)
{
  const OptionTable *table = program_table_find (a->what->valuestring);
  if (table) /* else it is a configuration of the program itself */
    run->other.table = table;
  run->other.gpus = run->job->gpus;
  option_translate (run->job, run->says);
}

/* { "read_as": program, "software": the profile of a release, "why": who says so }: its map reads the job by
 * what is said in its options, told of the others, and that options became its own. */
void
program_read_as (ProgramRun *run, ProgramAct *a)
{
  const char *template = program_member (a->rule, "why"), *name = a->what->valuestring;
  g_auto (ProgramValue) software = program_value_at (run, a->rule, "software");
  g_autofree char *why = template ? program_fill (run, template) : NULL;
  const ProgramTold told[] = { { "software", software.text }, { "why", why }, { "trainer", "1" }, { NULL } };
  const ProgramWith with = { .told = told,
                             .deepspeed = g_steal_pointer (&run->deepspeed),
                             .adapters = run->adapters.option ? &run->adapters : NULL };
  run->other.table = program_table_find (name);
  run->other.gpus = run->job->gpus;
  run->is_refused |= !program_doors->run_map (name, NULL, &with, &run->other, run->files, run->diags);
  run->other.open = run->job->open; /* its reader made its own */
}
