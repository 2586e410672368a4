/* Options of another program that those of one become, whose reader reads the job then; and what else a job
 * is told by: arguments that a log prints or a file has in place of a command's, files that options name, and
 * numbers that a test measured. */
#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"

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
  cJSON_ArrayForEach (one, a->what) {
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
  const char *why = ls_json_text (a->rule, "why");
  import_infer (run->job->import, "%s %s: %s%s", a->name, program_act_text (run, a),
                why ? why : "the default of ", why ? "" : run->map->program);
}

/* { "assumes": { option: value } }: options of the program that are not given, which is told. { "say_usual":
 * { option: value } }: the same of those of the other program. { "say_default": { option: value }, "unless":
 * options of the program, "why": in words; without it they are its defaults }: of the other program where
 * nothing says them on or off, nor one of its own options. */
void
program_assume (ProgramRun *run, ProgramAct *a)
{
  LaunchWords *words = strcmp (a->action, "assumes") == 0 ? run->words : run->says;
  bool is_default = strcmp (a->action, "say_default") == 0,
       is_there = is_default ? launch_words_has_any (words, a->name)
          || launch_words_has_any (run->job->words, ls_json_text (a->rule, "unless"))
                             : launch_words_find (words, a->name) != NULL;
  if (is_there)
    return;
  launch_words_add_by (words, false, a->name, program_act_text (run, a));
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
    if (text && g_ascii_strcasecmp (text, one->string) == 0)
      node = one;

  if (text && !node && !option_find (run->job->table, option)->key)
    import_unknown (run->job->import, "%s %s", option, text);
  cJSON_ArrayForEach (one, node) {
    g_auto (ProgramValue) v = program_value_of (run, one);
    g_autofree char *as = program_value_text (&v);
    launch_words_add_value (run->says, one->string, as);
  }
}

/* The text of a configuration of DeepSpeed, which comes with a program or is here; NULL: it is not. map: NULL
 * allowed. */
static char *
configuration_of (const ProgramRun *run, const ProgramMap *map, const char *name, gsize *ret_n)
{
  const cJSON *own = program_entry (map, "comes_with", name);
  char *text = own ? cJSON_PrintUnformatted (own) : NULL;
  *ret_n = text ? strlen (text) : 0;
  return text || !name || !run->files ? text : launch_file_of (run->files, name, ret_n);
}

/* Reads such a text for the program; false: a diagnostic. */
static bool
take_deepspeed (ProgramRun *run, const char *text, gsize n, const char *path, LsDiagList *diags)
{
  LaunchWords *read = launch_words_new ();
  bool ok = launch_words_add_json (read, text, n, path, diags);
  launch_words_free (ok ? run->deepspeed : read);
  run->deepspeed = ok ? read : run->deepspeed;
  return ok;
}

/* { "deepspeed": the name of a configuration of DeepSpeed, "at": the mapping in its place }: a file, or one
 * that comes with the program. */
void
program_deepspeed (ProgramRun *run, ProgramAct *a)
{
  const char *at = ls_json_text (a->rule, "at"), *name = program_act_value (run, a)->text;
  const cJSON *inside = at && run->tree ? yaml_config_find (run->tree, at) : NULL;
  gsize n;
  g_autofree char *own = cJSON_IsObject (inside) ? cJSON_PrintUnformatted (inside) : NULL,
                  *text = own ? g_strdup (own) : configuration_of (run, run->map, name, &n);
  if (name || text)
    launch_words_add_value (run->says, "deepspeed", name ? name : "deepspeed");
  if (text)
    run->is_refused |= !take_deepspeed (run, text, own ? strlen (own) : n,
                                        name ? name : run->files->files[0].path, run->diags);
}

/* --- what is configured beside it ----------------------------------------------------------------------- */

/* { "beside": program, "file": the name of its configuration, "gives": name, "template": it may be one, which
 * is not read }: what rules behind say with ">" is said in its options. The name gives whether its
 * configuration was read. */
void
program_beside (ProgramRun *run, ProgramAct *a)
{
  g_auto (ProgramValue) name = program_value_at (run, a->rule, "file");
  gsize n;
  g_autofree char *text = run->deepspeed ? NULL : configuration_of (run, run->around, name.text, &n);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  if (text && cJSON_HasObjectItem (a->rule, "template"))
    take_deepspeed (run, text, n, name.text, none);
  else if (text)
    run->is_refused |= !take_deepspeed (run, text, n, name.text, run->diags);
  program_let (run, ls_json_text (a->rule, "gives"), program_number (run->deepspeed != NULL));
  run->says = run->deepspeed ? g_steal_pointer (&run->deepspeed) : launch_words_new ();
  run->other = (LaunchJob) { .import = run->job->import,
                             .words = run->says,
                             .table = program_table_find (a->what->valuestring),
                             .gpus = run->job->gpus,
                             .open = run->job->open };
}

/* { "fill": { option: value }, "said": as of "say" }: of the options beside, or where there are none its own,
 * those whose value the file leaves to the program, "auto"; a value that is none leaves it open, and so does
 * a variable. */
void
program_fill_open (ProgramRun *run, ProgramAct *a)
{
  LaunchWords *words = run->says ? run->says : run->words;
  const char *as = program_act_text (run, a), *text = launch_words_text (words, a->name);
  bool is_variable = text && *text == LS_SHELL_HOLE && text[1] == '$',
       is_auto = text && ls_shell_has_hole (text) && !is_variable;
  if (is_auto && !program_value_is_none (&a->value))
    launch_words_add_by (words, is_said (run, a->rule), a->name, as);
}

/* --- readers -------------------------------------------------------------------------------------------- */

/* By all rules, or by a part of them, before which options were read. */
bool
program_run_map (const char *name, const char *part, ProgramRun run, LaunchJob *job)
{
  const ProgramMap *map = program_doors->map_get (name);
  LaunchWords *says = run.says;
  if (!map && run.diags)
    program_map_free (program_map_load (name, run.diags)); /* it says what is wrong */
  if (!map)
    return false;
  run.map = map;
  run.job = job;
  run.words = (LaunchWords *) job->words;
  run.path = job->import->made.path;
  run.other = (LaunchJob) {
    .import = job->import, .words = says, .table = program_table_find ("trainer"), .gpus = job->gpus
  };
  run.is_written = run.emit != NULL;
  run.command = g_strdup (job->script);
  const OptionTable *table = job->table;
  job->table = &map->table;
  bool had_open = part && job->open;
  if (!had_open)
    job->open = g_hash_table_new (g_str_hash, g_str_equal);
  run.other.open = job->open;
  if (run.says)
    option_translate (job, run.says);
  bool ok = program_doors->run_rules (
      &run, part ? program_entry (map, "parts", part) : program_section (map, "rules"));
  if (!had_open)
    g_clear_pointer (&job->open, g_hash_table_unref);
  run.job = NULL;
  run.says = says ? NULL : run.says;
  program_run_clear (&run);
  job->table = part && table ? table : job->table;
  return ok;
}

/* { "part": name, "of_map": another program, whose options are said, or with "own": true those of this one;
 * without, of its own; "told": what it is told; "but": what of the options is said elsewhere } */
void
program_run_part (ProgramRun *run, ProgramAct *a)
{
  const char *of = ls_json_text (a->rule, "of_map"), *part = a->what->valuestring,
             *but = ls_json_text (a->rule, "but");
  bool is_own = cJSON_HasObjectItem (a->rule, "own");
  g_autoptr (cJSON) told = program_told_of (run, a->rule);
  const ProgramRun with = { .told = told, .emit = run->emit, .files = run->files, .diags = run->diags };
  if (!of)
    run->is_refused |= !program_doors->run_rules (run, program_entry (run->map, "parts", part));
  else if (but && run->says) {
    const OptionTable *table = run->job->import->made.table;
    g_autoptr (LaunchWords) words = launch_words_new ();
    for (guint i = 0; i < run->says->options->len; i++) {
      const LaunchOption *o = run->says->options->pdata[i];
      if (!program_any_word (but, " ", g_str_has_prefix, o->name))
        launch_words_add_renamed (words, o->name, o);
    }
    LaunchJob rest = { .import = run->job->import, .words = words };
    program_doors->run_map (of, part, (ProgramRun) { NULL }, &rest);
    run->job->import->made.table = table;
  } else if (run->says || is_own)
    run->is_refused |= !program_doors->run_map (of, part, with, is_own ? run->job : &run->other);
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

/* { "read_as": program, "told": { name: value } }: its map reads the job by what is said in its options. */
void
program_read_as (ProgramRun *run, ProgramAct *a)
{
  const char *name = a->what->valuestring;
  g_autoptr (cJSON) told = program_told_of (run, a->rule);
  const ProgramRun with = {
    .told = told, .deepspeed = g_steal_pointer (&run->deepspeed), .files = run->files, .diags = run->diags
  };
  run->other.table = program_table_find (name);
  run->other.gpus = run->job->gpus;
  run->is_refused |= !program_doors->run_map (name, NULL, with, &run->other);
  run->other.open = run->job->open; /* its reader made its own */
}

/* --- options ------------------------------------------------------------------------------------------- */

/* { "adds": { option: value } }: options behind those that stand there, as a file says them; true: it is
 * on. */
void
program_add_options (ProgramRun *run, ProgramAct *a)
{
  launch_words_add_value (run->words, a->name, cJSON_IsTrue (a->what) ? NULL : program_act_text (run, a));
}

/* { "elsewhere": text }: another file says more of the model, of which what is not given is not as by
 * default. */
void
program_leave_more (ProgramRun *run, ProgramAct *a)
{
  run->job->is_part = run->job->import->may_have_more = true;
  import_unknown (run->job->import, "%s", program_act_text (run, a));
}

/* { "in_file": option }: its value is what the file of that name has, as JSON, where it is here. */
void
program_take_file (ProgramRun *run, ProgramAct *a)
{
  const char *option = program_act_text (run, a), *name = launch_words_text (run->words, option);
  gsize n;
  g_autofree char *text = name ? launch_file_of (run->files, name, &n) : NULL,
                  *json = text ? yaml_config_as_json (text, n, name) : NULL;
  if (json)
    launch_words_add_by (run->words, false, option, json);
}

/* { "arguments": option, "lifts": mappings, "says": text }: the YAML that it names, members of whose mappings
 * are its own, is all that the program is told; the text is told of each other option, "each". */
void
program_take_arguments (ProgramRun *run, ProgramAct *a)
{
  LaunchJob *job = run->job;
  const LaunchWords *own = job->words;
  g_autofree char *option = program_option (run->map, a->what->valuestring);
  g_auto (GStrv) lifts = g_strsplit (ls_json_text (a->rule, "lifts"), " ", -1);
  cJSON *tree = launch_words_find (own, option)
      ? yaml_config_of_name (run->files, launch_words_text (own, option), job->import, run->diags)
      : cJSON_CreateObject ();
  if (!tree) {
    run->is_refused = true;
    return;
  }
  for (char **part = lifts; *part; part++)
    yaml_config_lift (tree, *part);
  for (guint i = 0; i < own->options->len; i++) {
    const LaunchOption *o = own->options->pdata[i];
    program_set_each (run, o->written);
    g_autofree char *text = program_fill (run, ls_json_text (a->rule, "says"));
    if (!o->is_default && !option_fits (option, o->name))
      import_unknown (job->import, "%s", text);
  }
  launch_words_free (run->made);
  run->made = yaml_config_words (tree);
  job->words = run->words = run->made;
  job->is_dump = true;
}

/* Options of the job: "all", those with "valued" keys, or "other" ones than its program's. */
static ProgramValue
f_options (ProgramRun *run, const ProgramArgument *a)
{
  guint n = 0;
  for (guint i = 0; i < run->words->options->len; i++) {
    const LaunchOption *o = run->words->options->pdata[i];
    const OptionRow *row = option_find (&run->map->table, o->name);
    n += *a[0].word == 'v' ? option_is_valued (row) : *a[0].word == 'a' || !row;
  }
  return program_number (n);
}

/* --- files --------------------------------------------------------------------------------------------- */

/* The number behind the first such text of a log, on its line; none: there is none. */
PROGRAM_NUMBER (f_number_behind, run->text && a->value.text ? log_number (run->text, a->value.text) : NAN)

/* Whether a file of the job, by its place, or the one that is looked at, is an object of JSON, or of a
 * template of it, that has one of these members itself, and not another one in it; no names: with any. */
static ProgramValue
f_object_has (ProgramRun *run, const ProgramArgument *a)
{
  static const char words[] = "\"(?>\\\\.|[^\"\\\\])*+\"?|#[^\\n]*+|//[^\\n]*+|/\\*.*?(?:\\*/|\\z)|[][{}]";
  const guint i = (guint) fmax (0, a[0].value.number);
  const char *all = !run->files ? run->text
      : i < run->files->n       ? run->files->files[i].text
                                : "",
             *text = all ? all + strspn (all, " \t\r\n") : "";
  const char *names = a[1].value.text ? a[1].value.text : "";
  bool is_object = strchr ("{/#", *text) && *text && !g_str_has_prefix (text, "#!"), has_one = !*names;
  g_autoptr (GRegex) pattern = g_regex_new (words, G_REGEX_RAW | G_REGEX_DOTALL, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  int depth = 0;
  for (bool fits = is_object && !has_one && g_regex_match (pattern, text, 0, &match); fits && !has_one;
       fits = g_match_info_next (match, NULL)) {
    g_autofree char *word = g_match_info_fetch (match, 0), *bare = g_strdup (word + 1);
    bool is_text = *word == '"' && g_str_has_suffix (bare, "\"");
    has_one = depth == 1 && is_text && ls_is_one_of (g_strdelimit (bare, "\"", '\0'), names);
    depth += (*word == '{' || *word == '[') - (*word == '}' || *word == ']');
  }
  return program_number (is_object && has_one);
}

/* Whether a file that is looked at is a configuration of a program around a Trainer. */
PROGRAM_NUMBER (f_is_around, run->looked &&hf_is_around (run->looked))

/* --- a test -------------------------------------------------------------------------------------------- */

#define MAX_VALUES 1000000

/* The numbers of a metric, in order; text "nan" is none. */
static GArray *
values_of (const cJSON *root, const char *metric)
{
  GArray *values = g_array_new (FALSE, FALSE, sizeof (double));
  const cJSON *all
      = cJSON_GetObjectItemCaseSensitive (cJSON_GetObjectItemCaseSensitive (root, metric), "values"),
      *one;
  cJSON_ArrayForEach (one, all) {
    double value
        = cJSON_IsString (one) ? g_ascii_strtod (one->valuestring, NULL) : cJSON_GetNumberValue (one);
    if (isfinite (value) && value > 0 && values->len < MAX_VALUES)
      g_array_append_val (values, value);
  }
  return values;
}

/* { "golden": metric, "bytes": metric }: files behind the first have values of these by the number of the
 * iteration, { "iteration-time": { "values": { "5": 3.80, ... } }, ... }: the median of the later half of
 * times, and the most bytes. */
void
program_take_golden (ProgramRun *run, ProgramAct *a)
{
  LsMeasured *m = &run->job->import->made.measured;
  for (guint i = 1; i < run->files->n && !run->is_refused; i++) {
    const ImportFile *file = &run->files->files[i];
    g_autoptr (cJSON) root = cJSON_ParseWithLength (file->text, file->n);
    g_autoptr (GArray) times = values_of (root, a->what->valuestring),
                       bytes = values_of (root, ls_json_text (a->rule, "bytes"));
    import_use_file (file);
    if (!cJSON_HasObjectItem (root, a->what->valuestring)) {
      ls_file_diag (run->diags, LS_ERROR_INPUT, file->path, NULL,
                    "these are no golden values of such a test");
      run->is_refused = true;
      return;
    }
    m->n_lines = times->len;
    if (times->len > 1)
      g_array_remove_range (times, 0, times->len / 2);
    m->n_steady = times->len;
    g_array_sort (times, ls_compare_doubles);
    if (times->len > 0) {
      m->step_s = g_array_index (times, double, times->len / 2);
      import_infer (run->job->import, "measured.iteration_s: the median of the last %u of %u golden values",
                    m->n_steady, m->n_lines);
    }
    for (guint k = 0; k < bytes->len; k++)
      m->memory_bytes = MAX (m->memory_bytes, g_array_index (bytes, double, k));
  }
}

/* --- the table ----------------------------------------------------------------------------------------- */

const ProgramFunction program_file_functions[] = {
  { "options", "w", f_options },
  { "number_behind", "v", f_number_behind },
  { "object_has", "vv", f_object_has, true },
  { "is_around", "", f_is_around, true },
  { NULL },
};
