/* A program whose options become options of another one, whose reader reads the job then: rules add to these,
 * and ask for them with ">" in front of a name. */
#include <string.h>

#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

/* --- what is said in its options ------------------------------------------------------------------------ */

/* Of a rule: whether a file says it, else the program does. */
static bool
is_said (ProgramRun *run, const cJSON *rule)
{
  const cJSON *said = cJSON_GetObjectItemCaseSensitive (rule, "said");
  return !said || program_is_true (run, said);
}

/* { "base": { option: value }, "said": as below }: what lies under the options of the program; those that
 * stand there, or are off, hold. A value that is none is none of it. */
void
program_base (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  bool is_of_file = is_said (run, rule);
  LaunchWords *base = launch_words_new ();
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    g_autofree char *option = program_option (run->map, one->string, strlen (one->string));
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    bool is_there = launch_words_find (run->words, option) || option_is_none (run->job, option);
    if (!is_there && !program_value_is_none (&v))
      launch_words_add_by (base, is_of_file, option, text);
    program_value_clear (&v);
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
program_say (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  bool is_of_file = is_said (run, rule);
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    if (!program_value_is_none (&v))
      launch_words_add_by (run->says, is_of_file, one->string, cJSON_IsTrue (one) ? NULL : text);
    program_value_clear (&v);
  }
}

/* { "say_option": { option: option of the program } }: with all its values, as it is written, if it is
 * there. */
void
program_say_option (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    g_autofree char *option = program_option (run->map, one->valuestring, strlen (one->valuestring));
    const LaunchOption *o = launch_words_find (run->words, option);
    if (o)
      launch_words_add_renamed (run->says, one->string, o);
  }
}

/* { "say_usual": { option: value } }: those that do not stand there, which is told. */
void
program_say_usual (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    if (launch_words_find (run->says, one->string))
      continue;
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    launch_words_add_by (run->says, false, one->string, text);
    import_infer (run->job->import, "%s %s: the default of %s", one->string, text, run->map->program);
    program_value_clear (&v);
  }
}

/* { "say_default": { option: value }, "unless": options of the program, "why": in words; without it they are
 * its defaults }: where nothing says them on or off, nor one of its own options; what is said is told. */
void
program_say_default (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const char *unless = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (rule, "unless")),
             *why = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (rule, "why"));
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    if (launch_words_has_any (run->says, one->string) || launch_words_has_any (run->job->words, unless))
      continue;
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    launch_words_add_by (run->says, false, one->string, text);
    import_infer (run->job->import, "%s %s: %s%s", one->string, text, why ? why : "the default of ",
                  why ? "" : run->map->program);
    program_value_clear (&v);
  }
}

/* { "switch": option, "cases": { text: { option: value } } }: what a text of it says, in whatever letters.
 * Another one is told, unless the option is of the other program too. */
void
program_switch (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  g_autofree char *option = program_option (run->map, what->valuestring, strlen (what->valuestring));
  const char *text = option_text (run->job, option);
  const cJSON *one, *node = NULL;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (rule, "cases"))
  {
    if (text && g_ascii_strcasecmp (text, one->string) == 0)
      node = one;
  }
  if (text && !node && !option_find (run->job->table, option)->key)
    import_unknown (run->job->import, "%s %s", option, text);
  cJSON_ArrayForEach (one, node)
  {
    ProgramValue v = program_value_of (run, one);
    g_autofree char *as = program_value_text (&v);
    launch_words_add_value (run->says, one->string, as);
    program_value_clear (&v);
  }
}

/* The text of a file that comes with a program; NULL: there is none. map: NULL allowed. */
static char *
file_with (const ProgramMap *map, const char *name)
{
  const cJSON *file = map ? cJSON_GetObjectItemCaseSensitive (map->comes, name) : NULL;
  return file ? cJSON_PrintUnformatted (file) : NULL;
}

/* { "deepspeed": the name of a configuration of DeepSpeed, "at": the mapping in its place }: a file, or one
 * that comes with the program. */
void
program_deepspeed (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue name = program_value_of (run, what);
  const char *at = program_member (rule, "at");
  const cJSON *inside = at && run->tree ? yaml_config_find (run->tree, at) : NULL;
  g_autofree char *text = cJSON_IsObject (inside) ? cJSON_PrintUnformatted (inside)
      : name.text                                 ? file_with (run->map, name.text)
                                                  : NULL;
  gsize n = text ? strlen (text) : 0;
  if (!text && name.text)
    text = launch_file_of (run->files, name.text, &n);
  if (name.text || text)
    launch_words_add_value (run->says, "deepspeed", name.text ? name.text : "deepspeed");
  if (text) {
    const char *path = name.text ? name.text : run->files->files[0].path;
    launch_words_free (run->deepspeed);
    run->deepspeed = launch_words_new ();
    run->is_refused |= !launch_words_add_json (run->deepspeed, text, n, path, run->diags);
  }
  program_value_clear (&name);
}

/* --- what is configured beside it ----------------------------------------------------------------------- */

/* { "beside": program, "file": the name of its configuration, "gives": name }: what rules behind say with
 * ">" is said in its options. The name gives whether its configuration was read. */
void
program_beside (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue name = program_value_of (run, cJSON_GetObjectItemCaseSensitive (rule, "file"));
  gsize n = 0;
  g_autofree char *text = name.text && !run->deepspeed ? file_with (run->around, name.text) : NULL;
  n = text ? strlen (text) : 0;
  if (!text && name.text && !run->deepspeed && run->files)
    text = launch_file_of (run->files, name.text, &n);
  if (text) {
    run->deepspeed = launch_words_new ();
    run->is_refused |= !launch_words_add_json (run->deepspeed, text, n, name.text, run->diags);
  }
  program_let (run, program_member (rule, "gives"), program_number (run->deepspeed != NULL));
  run->says = run->deepspeed ? g_steal_pointer (&run->deepspeed) : launch_words_new ();
  run->other = (LaunchJob) { .import = run->job->import,
                             .words = run->says,
                             .table = program_table_find (what->valuestring),
                             .gpus = run->job->gpus,
                             .open = run->job->open };
  program_value_clear (&name);
}

/* { "fill": { option: value } }: of the options beside, or where there are none its own, those whose value
 * the file leaves to the program, "auto"; a value that is none leaves it open, and so does a variable. */
void
program_fill_open (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  LaunchWords *words = run->says ? run->says : run->words;
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    ProgramValue v = program_value_of (run, one);
    const char *text = launch_words_text (words, one->string);
    bool is_variable = text && *text == LS_SHELL_HOLE && text[1] == '$',
         is_auto = text && ls_shell_has_hole (text) && !is_variable;
    g_autofree char *as = program_value_text (&v);
    if (is_auto && !program_value_is_none (&v))
      launch_words_add_value (words, one->string, as);
    program_value_clear (&v);
  }
}

/* { "handed_adapters": name }: sets those of a program whose options became these; the name gives whether
 * there are any. */
void
program_hand_adapters (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  program_let (run, what->valuestring, program_number (run->handed != NULL));
  if (run->handed)
    launch_set_adapters (run->job->import, run->handed);
}

/* --- readers -------------------------------------------------------------------------------------------- */

/* By all rules, or by a part of them, before which options were read. */
bool
engine_run_with (const char *name, const char *part, const ProgramWith *with, LaunchJob *job,
                 const ImportFiles *files, LsDiagList *diags)
{
  const ProgramMap *map = program_map_get (name);
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
  bool ok = program_run_rules (&run, part ? cJSON_GetObjectItemCaseSensitive (map->parts, part) : map->rules);
  if (!had_open)
    g_clear_pointer (&job->open, g_hash_table_unref);
  run.job = NULL;
  program_run_clear (&run);
  job->table = part && table ? table : job->table;
  return ok;
}

bool
engine_run_map (const char *name, const char *part, LaunchJob *job, const ImportFiles *files,
                LsDiagList *diags)
{
  return engine_run_with (name, part, &(ProgramWith) { NULL }, job, files, diags);
}

/* { "part": name, "of_map": another program, whose options are said, or with "own": true those of this one;
 * without, of its own } */
void
program_run_part (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const char *of = program_member (rule, "of_map");
  if (!of)
    run->is_refused
        |= !program_run_rules (run, cJSON_GetObjectItemCaseSensitive (run->map->parts, what->valuestring));
  else if (run->says || cJSON_HasObjectItem (rule, "own"))
    run->is_refused |= !program_run_with (of, what->valuestring, &(ProgramWith) { .emit = run->emit },
                                          cJSON_HasObjectItem (rule, "own") ? run->job : &run->other,
                                          run->files, run->diags);
}

bool
program_is_reader (const char *name)
{
  return program_table_find (name) != NULL;
}

const OptionTable *
engine_table_find (const char *name)
{
  const ProgramMap *map = name ? program_map_get (name) : NULL;
  return map && map->table.n > 0 ? &map->table : NULL;
}

/* { "translate": program }: options that it has too, by its names. */
void
program_translate (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const OptionTable *table = program_table_find (what->valuestring);
  if (table) /* else it is a configuration of the program itself */
    run->other.table = table;
  run->other.gpus = run->job->gpus;
  option_translate (run->job, run->says);
}

/* { "read_as": program, "software": the profile of a release, "why": who says so }: its map reads the job by
 * what is said in its options, told of the others, and that options became its own. */
void
program_read_as (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue software = program_value_of (run, cJSON_GetObjectItemCaseSensitive (rule, "software"));
  const char *template = program_member (rule, "why");
  g_autofree char *why = template ? program_fill (run, template) : NULL;
  const ProgramTold told[] = { { "software", software.text }, { "why", why }, { "trainer", "1" }, { NULL } };
  const ProgramWith with = { .told = told,
                             .deepspeed = g_steal_pointer (&run->deepspeed),
                             .adapters = run->adapters.option ? &run->adapters : NULL };
  run->other.table = program_table_find (what->valuestring);
  run->other.gpus = run->job->gpus;
  run->is_refused |= !program_run_with (what->valuestring, NULL, &with, &run->other, run->files, run->diags);
  run->other.open = run->job->open; /* its reader made its own */
  program_value_clear (&software);
}
