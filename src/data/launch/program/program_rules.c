/* data/launch/program/program_rules.c — rules of a map, run over the options of a file. */
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "strategy/strategy.h"

/* --- what rules do ------------------------------------------------------------------------------------- */

/* { "let": { "name": expression } } */
static void
let (ProgramRun *run, ProgramAct *a)
{
  program_let (run, a->name, program_value_of (run, a->what));
}

/* { "table": { "text": value }, "of": expression, "gives": name }: what "of" is in the table; none: it is not
 * there. */
static void
look_up (ProgramRun *run, ProgramAct *a)
{
  g_auto (ProgramValue) of = program_value_at (run, a->rule, "of");
  const cJSON *node = of.text ? cJSON_GetObjectItemCaseSensitive (a->what, of.text) : NULL;
  program_let (run, program_member (a->rule, "gives"), node ? program_value_of (run, node) : program_none ());
}

/* { "list": expression, "of": n, "gives": name }: its values for each `index` below n, between commas. */
static void
make_list (ProgramRun *run, ProgramAct *a)
{
  guint64 n = program_whole_at (run, a->rule, "of");
  GString *list = g_string_new (NULL);
  for (guint64 i = 0; i < MIN (n, LS_MAX_CHUNKS); i++) {
    program_let (run, "index", program_number ((double) i));
    g_auto (ProgramValue) v = program_value_of (run, a->what);
    g_autofree char *text = program_value_text (&v);
    g_string_append_printf (list, "%s%s", i > 0 ? "," : "", text);
  }
  program_let (run, program_member (a->rule, "gives"), program_taken (g_string_free (list, FALSE)));
}

/* What says it: "by"; else of a number of the model its key, of all else a rule of the program. A value that
 * is none sets nothing. */
static void
set_key (ProgramRun *run, ProgramAct *a)
{
  bool is_model = strcmp (a->action, "model") == 0;
  const char *by = program_member (a->rule, "by"), *text = program_act_text (run, a);
  g_autofree char *option = by ? program_fill (run, by) : NULL;
  const char *who = option ? option : is_model && !a->value.text ? a->name : "--";
  if (!program_value_is_none (&a->value))
    (is_model ? import_set_model : import_set_strategy) (run->job->import, a->name, text, who);
}

/* Of a key that is neither set nor left open. */
static void
set_default (ProgramRun *run, ProgramAct *a)
{
  option_default (run->job, a->name, program_act_text (run, a));
}

/* { "usual": { "layers": 32 } }: keys of the model that nothing sets, which is told, as "why" says or as the
 * default of the program. */
static void
set_usual (ProgramRun *run, ProgramAct *a)
{
  LsImport *import = run->job->import;
  const char *text = program_act_text (run, a);
  if (import_has_model (import, a->name))
    return;
  import_set_model (import, a->name, text, "--");
  program_tell_default (run, a);
}

/* { "renames": { option: name } }: an option by the name that it has today, unless that is there too. */
static void
rename_option (ProgramRun *run, ProgramAct *a)
{
  const LaunchOption *old = launch_words_find (run->words, a->name);
  if (old && !launch_words_find (run->words, a->what->valuestring))
    launch_words_add_renamed (run->words, a->what->valuestring, old);
}

/* { "tells": { option: text } }: of each that is there, "option: text" is told as unknown. */
static void
tell (ProgramRun *run, ProgramAct *a)
{
  if (option_is_there (run->job, a->name))
    import_unknown (run->job->import, "%s: %s", a->name, cJSON_GetStringValue (a->what));
}

static void
leave_open (ProgramRun *run, ProgramAct *a)
{
  g_autofree char *text = program_fill (run, program_member (a->rule, "says"));
  import_open (run->job->import, program_act_text (run, a), "%s", text);
}

static void
expect (ProgramRun *run, ProgramAct *a)
{
  option_tell_other (run->job, program_act_text (run, a), program_member (a->rule, "words"),
                     program_member (a->rule, "taken"));
}

/* What rows of the model, or of the strategy, say `otherwise`. */
static void
set_otherwise (ProgramRun *run, ProgramAct *a)
{
  option_set_defaults (run->job,
                       strcmp (a->what->valuestring, "model") == 0 ? OPTION_MODEL : OPTION_STRATEGY);
}

static void
set_optimizer (ProgramRun *run, ProgramAct *a)
{
  g_auto (ProgramValue) momentum = program_value_at (run, a->rule, "momentum");
  const char *by = program_member (a->rule, "by");
  import_set_optimizer (run->job->import, program_act_value (run, a)->text,
                        momentum.number > 0 ? momentum.number : 0, by ? by : "--");
}

/* { "called": expression }: what the program is called. */
static void
set_name (ProgramRun *run, ProgramAct *a)
{
  if (program_act_value (run, a)->text)
    run->job->import->made.program = g_intern_string (a->value.text);
}

/* { "copies": expression, "times": expression }: of the model, and micro-batches of each in a step. */
static void
set_batch (ProgramRun *run, ProgramAct *a)
{
  guint64 copies = program_whole (program_act_value (run, a));
  config_set_batch (run->job, copies, program_whole_at (run, a->rule, "times"));
}

/* { "word": name, "decides": KEY }: a variable of the file says a key of the strategy. { "notes": option }:
 * one that another file gives, as what `by` of rules behind names. */
static void
note_word (ProgramRun *run, ProgramAct *a)
{
  import_note_word (run->job->import, program_act_text (run, a), program_member (a->rule, "decides"));
}

static void
set_gpus (ProgramRun *run, ProgramAct *a)
{
  run->job->gpus = program_whole (program_act_value (run, a));
}

/* { "model_file": true }: a model's own file behind the first; 'first': the one behind it has to be such. */
static void
read_model_file (ProgramRun *run, ProgramAct *a)
{
  run->is_refused |= !import_model_files (run->files, cJSON_IsString (a->what), run->job->import, run->diags);
}

/* "lacking": the files are not all of a job. */
static void
refuse (ProgramRun *run, ProgramAct *a)
{
  bool is_lacking = strcmp (a->action, "lacking") == 0;
  const char *said = program_member (a->rule, "hint");
  g_autofree char *hint = said ? program_fill (run, said) : NULL;
  ls_diag_add (run->diags, is_lacking ? LS_ERROR_INPUT : LS_ERROR_UNSUPPORTED, run->path, 0, 0, NULL, NULL,
               hint, "%s", program_act_text (run, a));
  run->is_refused = true;
}

/* A job that learns from something else than the next token. */
static void
refuse_task (ProgramRun *run, ProgramAct *a)
{
  import_refuse_task (run->path, run->diags, "%s", program_act_text (run, a));
  run->is_refused = true;
}

/* { "read": true }, not within a rule: what options say by themselves, of the other program's where they
 * become those. Without such a rule that is before all. */
static void
read_options (ProgramRun *run, ProgramAct *a)
{
  LaunchJob *job = run->says && !run->map->has_beside ? &run->other : run->job;
  g_hash_table_unref (run->job->open);
  job->gpus = run->job->gpus;
  option_read_all (job);
  run->job->open = run->other.open = job->open;
  run->is_read = true;
}

/* { "fixed": KEY }: it stays as it is, as one that the user gave. */
static void
fix (ProgramRun *run, ProgramAct *a)
{
  const LsField *f = ls_field_find (ls_strategy_fields, a->what->valuestring);
  if (f)
    g_hash_table_add (run->job->import->given, (gpointer) f->key);
}

/* What a member is: an expression, a text with expressions in braces, a text, an option, a key of ours, a
 * program, one that reads the job, a map, a name, a list of rules; the others are objects of
 * values, of options with values, of cases with options of the other program, and those whose members are
 * acted on one after the other: of values, of keys of ours, of names, of options of the other program, of
 * these with options, of paths, of options with names that they have today, and of options with values or
 * texts. */
typedef enum {
  AS_VALUE,
  AS_TEMPLATE,
  AS_TEXT,
  AS_OPTION,
  AS_KEY,
  AS_TABLE,
  AS_READER,
  AS_MAP,
  AS_LET,
  AS_RULES,
  AS_VALUES,
  AS_BASE,
  AS_CASES,
  AS_MEMBERS,
  AS_MODEL,
  AS_STRATEGY,
  AS_LETS,
  AS_THEIRS,
  AS_THEIR_OPTIONS,
  AS_PATHS,
  AS_RENAMED,
  AS_OPTION_VALUES,
  AS_OPTION_TEXTS
} As;

typedef struct {
  const char *key;
  As as;
  bool is_free; /* of a rule: it may lack it */
} Member;

/* Which maps have such rules: those whose options become another program's, or name what is beside it; those
 * that are not around a Trainer, which see no files; those that unwrap files, alone, or too. */
enum { OF_JOBS = 0, OF_OTHER = 1, OF_FILES = 2, OF_WRAPPERS = 4, OF_ALL = 8 };

static const struct {
  Member of;
  ProgramAction *act; /* NULL: one of those below is called with what it says; or rules are within it */
  guint maps;         /* OF_ ... */
  Member more[4];     /* which it has besides */
  /* What follows, is not simulated, matters to nothing, contradicts itself. */
  void (*report) (LsImport *import, const char *format, ...) G_GNUC_PRINTF (2, 3);
  void (*set_text) (LsImport *import, const char *text); /* not of a value that is none */
  void (*set_count) (LsImport *import, guint64 n);
  void (*of_job) (LaunchJob *job, const char *text);
} actions[] = {
  { { "let", AS_LETS }, let, OF_ALL },
  { { "table", AS_VALUES }, look_up, OF_ALL, { { "of", AS_VALUE }, { "gives", AS_LET } } },
  { { "list", AS_VALUE }, make_list, OF_JOBS, { { "of", AS_VALUE }, { "gives", AS_LET } } },
  { { "take", AS_VALUE }, program_take_part },
  { { "lift", AS_TEXT }, program_lift },
  { { "put", AS_MEMBERS }, program_put },
  { { "put_text", AS_MEMBERS }, program_put },
  { { "put_said", AS_VALUE }, program_put_said, OF_JOBS, { { "switches", AS_VALUE, true } } },
  { { "put_pairs", AS_TEXT }, program_put_pairs },
  { { "lay_files", AS_TEMPLATE }, program_lay_files, OF_JOBS, { { "hint", AS_TEXT, true } } },
  { { "lies_on", AS_VALUE }, program_lie_on },
  { { "configures", AS_MAP }, program_configure, OF_JOBS, { { "told", AS_VALUES, true } } },
  { { "drop", AS_TEXT }, program_drop_members },
  { { "part", AS_TEXT },
    program_run_part,
    OF_ALL,
    { { "of_map", AS_MAP, true },
      { "own", AS_VALUE, true },
      { "but", AS_TEXT, true },
      { "told", AS_VALUES, true } } },
  { { "lacks", AS_TEMPLATE }, program_lack, OF_JOBS, { { "says", AS_TEMPLATE } } },
  { { "note", AS_TEMPLATE }, program_note },
  { { "release", AS_TEXT }, .of_job = option_release },
  { { "stages_conflict", AS_TEMPLATE }, .report = import_stages_conflict },
  { { "model", AS_MODEL }, set_key, OF_JOBS, { { "by", AS_TEMPLATE, true } } },
  { { "strategy", AS_STRATEGY }, set_key, OF_JOBS, { { "by", AS_TEMPLATE, true } } },
  { { "default", AS_STRATEGY }, set_default },
  { { "usual", AS_MODEL }, set_usual, OF_JOBS, { { "why", AS_TEXT, true } } },
  { { "assumes", AS_OPTION_VALUES }, program_assume },
  { { "renames", AS_RENAMED }, rename_option },
  { { "tells", AS_OPTION_TEXTS }, tell },
  { { "base", AS_BASE }, program_base, OF_JOBS, { { "said", AS_VALUE, true } } },
  { { "translate", AS_TABLE }, program_translate, OF_OTHER | OF_FILES },
  { { "say", AS_THEIRS }, program_say, OF_OTHER, { { "said", AS_VALUE, true } } },
  { { "say_option", AS_THEIR_OPTIONS }, program_say_option, OF_OTHER },
  { { "say_usual", AS_THEIRS }, program_assume, OF_OTHER },
  { { "say_default", AS_THEIRS },
    program_assume,
    OF_OTHER,
    { { "unless", AS_TEXT, true }, { "why", AS_TEXT, true } } },
  { { "switch", AS_OPTION }, program_switch, OF_OTHER, { { "cases", AS_CASES } } },
  { { "deepspeed", AS_VALUE }, program_deepspeed, OF_OTHER | OF_FILES, { { "at", AS_TEXT, true } } },
  { { "python", AS_VALUE }, program_python, OF_OTHER | OF_FILES, { { "name", AS_TEXT }, { "to", AS_TEXT } } },
  { { "read_as", AS_READER }, program_read_as, OF_OTHER | OF_FILES, { { "told", AS_VALUES, true } } },
  { { "beside", AS_TABLE },
    program_beside,
    OF_JOBS,
    { { "file", AS_VALUE }, { "gives", AS_LET }, { "template", AS_VALUE, true } } },
  { { "fill", AS_THEIRS }, program_fill_open },
  { { "notes", AS_TEXT }, note_word },
  { { "called", AS_VALUE }, set_name },
  { { "move", AS_PATHS }, program_move },
  { { "inferred", AS_TEMPLATE }, .report = import_infer },
  { { "unknown", AS_TEMPLATE }, .report = import_unknown },
  { { "ignored", AS_TEMPLATE }, .report = import_ignore },
  { { "conflict", AS_TEMPLATE }, .report = import_conflict },
  { { "open", AS_KEY }, leave_open, OF_JOBS, { { "says", AS_TEMPLATE } } },
  { { "expects", AS_OPTION }, expect, OF_JOBS, { { "words", AS_TEXT }, { "taken", AS_TEXT } } },
  { { "optimizer", AS_VALUE },
    set_optimizer,
    OF_JOBS,
    { { "by", AS_TEXT, true }, { "momentum", AS_VALUE, true } } },
  { { "software", AS_VALUE }, .set_text = import_set_software },
  { { "positions", AS_VALUE }, .set_count = import_positions },
  { { "model_of_name", AS_VALUE }, .set_text = import_model_of_name },
  { { "copies", AS_VALUE }, set_batch, OF_JOBS, { { "times", AS_VALUE } } },
  { { "follows_gpus", AS_KEY }, .set_text = import_follows_gpus },
  { { "word", AS_TEMPLATE }, note_word, OF_JOBS, { { "decides", AS_KEY } } },
  { { "adds", AS_OPTION_VALUES }, program_add_options },
  { { "elsewhere", AS_TEMPLATE }, program_leave_more },
  { { "in_file", AS_OPTION }, program_take_file },
  { { "arguments", AS_TEXT },
    program_take_arguments,
    OF_JOBS,
    { { "lifts", AS_TEXT }, { "says", AS_TEXT } } },
  { { "golden", AS_TEXT }, program_take_golden, OF_JOBS, { { "bytes", AS_TEXT } } },
  { { "gpus", AS_VALUE }, set_gpus },
  { { "otherwise", AS_TEXT }, set_otherwise },
  { { "forget", AS_KEY }, .of_job = option_forget },
  { { "unset", AS_TEXT }, program_unset },
  { { "fixed", AS_KEY }, fix },
  { { "model_file", AS_VALUE }, read_model_file, OF_FILES },
  { { "read", AS_VALUE }, read_options, OF_FILES },
  { { "refuse", AS_TEMPLATE }, refuse, OF_ALL, { { "hint", AS_TEMPLATE, true } } },
  { { "lacking", AS_TEMPLATE }, refuse, OF_ALL, { { "hint", AS_TEMPLATE, true } } },
  { { "refuse_task", AS_TEMPLATE }, refuse_task },
  { { "write", AS_TEMPLATE }, program_write_line, OF_WRAPPERS },
  { { "tell", AS_TEMPLATE }, program_tell_once, OF_WRAPPERS },
  { { "export", AS_VALUE }, program_write_variable, OF_WRAPPERS, { { "as", AS_VALUE } } },
  { { "variable", AS_VALUE }, program_write_variable, OF_WRAPPERS, { { "as", AS_VALUE } } },
  { { "command", AS_TEXT }, program_write_command, OF_WRAPPERS },
  { { "container", AS_RULES }, program_write_once, OF_WRAPPERS },
  { { "rules", AS_RULES }, NULL, OF_ALL, { { "else", AS_RULES, true } } },
};

/* Which action a rule has, and the member of it; *ret_what NULL: none. */
static guint
action_of (const cJSON *rule, const cJSON **ret_what)
{
  guint i = 0;
  while (i < G_N_ELEMENTS (actions)
         && !(*ret_what = cJSON_GetObjectItemCaseSensitive (rule, actions[i].of.key)))
    i++;
  return i;
}

/* --- running -------------------------------------------------------------------------------------------- */

/* What a member says as a text, newly allocated; NULL: an expression says it. */
static char *
text_of (ProgramRun *run, As as, const cJSON *what)
{
  const char *text = cJSON_GetStringValue (what);
  return !text                                    ? NULL
      : as == AS_TEMPLATE                         ? program_fill (run, text)
      : as == AS_OPTION || as == AS_THEIR_OPTIONS ? program_option_of (run, text)
      : as != AS_VALUE && as < AS_RULES           ? g_strdup (text)
                                                  : NULL;
}

/* To a function that takes what it says. */
static void
pass_on (ProgramRun *run, guint action, ProgramAct *a)
{
  LsImport *import = run->job->import;
  const char *text = a->text ? a->text : program_act_value (run, a)->text;
  if (actions[action].report)
    actions[action].report (import, "%s", text);
  else if (actions[action].set_count)
    actions[action].set_count (import, program_whole (&a->value));
  else if (actions[action].of_job)
    actions[action].of_job (run->job, text);
  else if (text)
    actions[action].set_text (import, text);
}

static void
act_on (ProgramRun *run, guint action, const cJSON *rule, const cJSON *what)
{
  As as = actions[action].of.as;
  bool is_option = as == AS_OPTION_VALUES || as == AS_OPTION_TEXTS;
  g_autofree char *option = is_option ? program_option (run->map, what->string) : NULL;
  ProgramAct a = { .rule = rule,
                   .what = what,
                   .action = actions[action].of.key,
                   .name = option ? option : what->string,
                   .text = text_of (run, as, what),
                   .value = program_none () };
  if (actions[action].act)
    actions[action].act (run, &a);
  else
    pass_on (run, action, &a);
  g_free (a.text);
  program_value_clear (&a.value);
}

static bool
act (ProgramRun *run, const cJSON *rule, bool is_its)
{
  const cJSON *what = NULL, *one;
  guint i = action_of (rule, &what);
  bool is_rules = what && !actions[i].act && actions[i].of.as == AS_RULES;
  if (!what || (!is_its && !is_rules))
    return true;
  if (is_rules)
    return program_doors->run_rules (run, is_its ? what : cJSON_GetObjectItemCaseSensitive (rule, "else"));
  if (actions[i].of.as < AS_MEMBERS)
    act_on (run, i, rule, what);
  else
    cJSON_ArrayForEach (one, what)
    {
      act_on (run, i, rule, one);
    }
  return !run->is_refused;
}

static bool
holds (ProgramRun *run, const cJSON *rule)
{
  const char *when = program_member (rule, "when");
  return !when || program_holds (run, when);
}

/* "each" is a text. */
void
program_set_each (ProgramRun *run, const char *text)
{
  program_let (run, "each", program_text (text));
}

/* For each option of the job that the pattern fits, or, "once", the first of which the rule holds; "each" is
 * its name. */
static bool
run_each (ProgramRun *run, const cJSON *rule, const char *pattern)
{
  const GPtrArray *options = run->job->words->options;
  for (guint i = 0; i < options->len; i++) {
    const LaunchOption *o = options->pdata[i];
    if (!option_fits (pattern, o->name))
      continue;
    program_set_each (run, o->name);
    bool is_its = holds (run, rule);
    if (!act (run, rule, is_its))
      return false;
    if (is_its && cJSON_HasObjectItem (rule, "once"))
      return true;
  }
  return true;
}

/* Once for each of these options, which have blanks between, or for each word of the value of an expression,
 * between commas and blanks; "each" is it. */
static bool
run_words (ProgramRun *run, const cJSON *rule, const char *options, const char *expression)
{
  g_auto (ProgramValue) text = options ? program_text (options) : program_eval (run, expression);
  g_auto (GStrv) words = g_strsplit_set (text.text ? text.text : "", ", ", -1);
  bool ok = true;
  for (char **word = words; *word && ok; word++) {
    g_autofree char *one = options ? program_option (run->map, *word) : g_strdup (*word);
    program_set_each (run, one);
    ok = !**word || act (run, rule, holds (run, rule));
  }
  return ok;
}

/* Once for each member of a mapping or a list, which is the tree meanwhile; of another node, or where it is
 * not asked for each, for all of it. "each" is its name. */
static bool
run_members (ProgramRun *run, const cJSON *rule, const char *path, bool is_each)
{
  const cJSON *tree = run->tree, *node = program_node (run, path),
              *first = is_each && (cJSON_IsObject (node) || cJSON_IsArray (node)) ? node->child : node;
  bool ok = true;
  for (const cJSON *one = first; one && ok; one = first == node ? NULL : one->next) {
    run->tree = one;
    program_set_each (run, one->string ? one->string : "");
    ok = act (run, rule, holds (run, rule));
  }
  run->tree = tree;
  return ok;
}

/* Inside of what a text says in JSON; not at all where it is none. */
static bool
run_json (ProgramRun *run, const cJSON *rule, const char *expression)
{
  const cJSON *before = run->tree;
  g_auto (ProgramValue) text = program_eval (run, expression);
  g_autoptr (cJSON) tree = text.text ? cJSON_Parse (text.text) : NULL;
  run->tree = tree;
  bool ok = !tree || act (run, rule, holds (run, rule));
  run->tree = before;
  return ok;
}

bool
program_run_rules (ProgramRun *run, const cJSON *rules)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, rules)
  {
    const char *each = program_member (rule, "each"), *options = program_member (rule, "for"),
               *words = program_member (rule, "each_of"), *members = program_member (rule, "each_at"),
               *inside = program_member (rule, "inside"), *json = program_member (rule, "in_json");
    bool ok = each         ? run_each (run, rule, each)
        : json             ? run_json (run, rule, json)
        : members          ? run_members (run, rule, members, true)
        : inside           ? run_members (run, rule, inside, false)
        : options || words ? run_words (run, rule, options, words)
                           : act (run, rule, holds (run, rule));
    if (!ok)
      return false;
  }
  return true;
}

/* --- looking at rules that run for nobody --------------------------------------------------------------- */

/* A name that rules behind may use. */
static void
name_value (ProgramRun *run, const char *name)
{
  program_let (run, name, program_none ());
}

static void
check_option (ProgramRun *run, const cJSON *node, const char *name)
{
  if (!program_names_option (run, name))
    program_complain (run->check, node, "there is no option %s among the options", name);
}

static void
check_keys (ProgramRun *run, const cJSON *object, As as)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, object)
  {
    bool is_model = as == AS_MODEL, is_theirs = as == AS_THEIRS || as == AS_THEIR_OPTIONS,
         has_option = as == AS_THEIR_OPTIONS || as == AS_RENAMED;
    bool is_known = is_model ? ls_field_find_value (ls_model_fields, one->string) != NULL
        : as == AS_STRATEGY  ? ls_field_find (ls_strategy_fields, one->string) != NULL
                             : true;
    if (!is_known)
      program_complain (run->check, one, "there is no such key of a %s", is_model ? "model" : "strategy");
    if (is_theirs && run->theirs && !option_find (run->theirs, one->string))
      program_complain (run->check, one, "there is no option %s of that program", one->string);
    if (as == AS_CASES && cJSON_IsObject (one))
      check_keys (run, one, AS_THEIRS);
    else if (as == AS_OPTION_VALUES || as == AS_OPTION_TEXTS || as == AS_BASE)
      check_option (run, one, one->string);
    if ((has_option || as == AS_PATHS) && !cJSON_IsString (one))
      program_complain (run->check, one, "expected %s", has_option ? "an option" : "a path");
    else if (has_option)
      check_option (run, one, one->valuestring);
    else if (cJSON_IsString (one) && as != AS_OPTION_TEXTS && as != AS_PATHS)
      program_check_text (run, one, false);
    if (as == AS_LETS)
      name_value (run, one->string);
  }
}

static void
check_key (ProgramRun *run, const cJSON *node)
{
  if (!ls_field_find (ls_strategy_fields, node->valuestring)
      && !ls_field_find_value (ls_model_fields, node->valuestring))
    program_complain (run->check, node, "there is no such key of a strategy or a model");
}

/* Options of a command that names no configuration may become those of one. */
static void
check_name (ProgramRun *run, const cJSON *node, As as)
{
  const char *name = node->valuestring;
  bool is_there = g_strcmp0 (name, run->map->name) == 0 || program_table_find (name) != NULL
      || (as == AS_MAP && program_doors->map_get (name))
      || (as == AS_TABLE && run->theirs && strcmp (name, PROGRAM_CONFIGURATION) == 0);
  if (!is_there)
    program_complain (run->check, node, "there is no program of that name");
}

/* A part of its own is looked at where rules run it, but not within itself. */
static void
check_part (ProgramRun *run, const cJSON *rule, const char *name)
{
  const cJSON *part = cJSON_GetObjectItemCaseSensitive (run->map->parts, name);
  if (program_member (rule, "of_map") || !run->parts)
    return;
  if (!part)
    program_complain (run->check, rule, "there is no part of that name");
  else if (g_hash_table_lookup (run->parts, name) == NULL) {
    g_hash_table_insert (run->parts, part->string, part->string);
    program_check_rules (run, part);
    g_hash_table_insert (run->parts, part->string, NULL);
  }
}

static void
check_member (ProgramRun *run, const cJSON *node, As as)
{
  bool is_list = as == AS_RULES, is_object = as >= AS_VALUES,
       is_text = !is_list && !is_object && as != AS_VALUE;
  if ((is_list && !cJSON_IsArray (node)) || (is_object && !cJSON_IsObject (node))
      || (is_text && !cJSON_IsString (node)))
    program_complain (run->check, node, "expected %s",
                      is_list         ? "a list"
                          : is_object ? "an object"
                                      : "a text");
  else if (is_list)
    program_check_rules (run, node);
  else if (is_object)
    check_keys (run, node, as);
  else if (as == AS_OPTION)
    check_option (run, node, node->valuestring);
  else if (as == AS_KEY)
    check_key (run, node);
  else if (as == AS_TABLE || as == AS_READER || as == AS_MAP)
    check_name (run, node, as);
  else if (as == AS_LET)
    name_value (run, node->valuestring);
  else if (cJSON_IsString (node) && (as == AS_VALUE || as == AS_TEMPLATE))
    program_check_text (run, node, as == AS_TEMPLATE);
}

/* What a member of a rule with that action is; false: it has none of that name. */
static bool
as_of (guint action, const char *key, As *ret)
{
  static const Member of_any[] = { { "when", AS_VALUE },  { "each_of", AS_VALUE }, { "once", AS_VALUE },
                                   { "each", AS_TEXT },   { "for", AS_TEXT },      { "each_at", AS_TEXT },
                                   { "inside", AS_TEXT }, { "in_json", AS_VALUE }, { NULL } };
  const Member *const lists[]
      = { of_any, (const Member[]) { actions[action].of, { NULL } }, actions[action].more };
  const guint most[] = { G_N_ELEMENTS (of_any), 1, G_N_ELEMENTS (actions[action].more) };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    for (guint k = 0; k < most[i] && lists[i][k].key; k++)
      if (strcmp (key, lists[i][k].key) == 0) {
        *ret = lists[i][k].as;
        return true;
      }
  return false;
}

/* Of a rule that is run once for each of several. */
static void
check_loop (ProgramRun *run, const cJSON *rule)
{
  const char *each = program_member (rule, "each"), *options = program_member (rule, "for");
  g_auto (GStrv) names = program_words (options, " ");
  if (each || options || program_member (rule, "each_of") || program_member (rule, "each_at"))
    name_value (run, "each");
  if (each)
    g_hash_table_add (run->named, g_strdup (each));
  for (char **name = names; *name; name++)
    check_option (run, cJSON_GetObjectItemCaseSensitive (rule, "for"), *name);
}

/* That maps of this kind have such rules. */
static void
check_action (ProgramRun *run, const cJSON *rule, guint action)
{
  const ProgramMap *map = run->map;
  guint maps = actions[action].maps;
  if (!(maps & OF_ALL) && !map->unwraps != !(maps & OF_WRAPPERS))
    program_complain (run->check, rule, "a map that unwraps files, and no other, has such rules");
  if (maps & OF_OTHER && !map->is_dialect && !map->has_beside)
    program_complain (run->check, rule, "its options become those of no other program");
  if (maps & OF_FILES && map->around)
    program_complain (run->check, rule, "what is around a Trainer has no such rules");
}

static void
check_rule (ProgramRun *run, const cJSON *rule)
{
  const cJSON *what = NULL, *one;
  guint action = action_of (rule, &what);
  if (!what) {
    program_complain (run->check, rule,
                      "a rule without an action: expected one of \"model\", \"strategy\", \"let\" ...");
    return;
  }
  check_action (run, rule, action);
  check_loop (run, rule);
  if (actions[action].act == make_list)
    name_value (run, "index");
  for (guint i = 0; i < G_N_ELEMENTS (actions[action].more) && actions[action].more[i].key; i++) {
    const Member *more = &actions[action].more[i];
    if (!more->is_free && !cJSON_GetObjectItemCaseSensitive (rule, more->key))
      program_complain (run->check, rule, "missing key \"%s\"", more->key);
  }
  if (actions[action].act == program_run_part)
    check_part (run, rule, program_member (rule, "part"));
  cJSON_ArrayForEach (one, rule)
  {
    As as;
    if (as_of (action, one->string, &as))
      check_member (run, one, as);
    else if (!g_str_has_prefix (one->string, "x-"))
      program_complain (run->check, one, "\"%s\" has no such key \"%s\"", actions[action].of.key,
                        one->string);
  }
}

void
program_check_rules (ProgramRun *run, const cJSON *rules)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, rules)
  {
    if (cJSON_IsObject (rule))
      check_rule (run, rule);
    else
      program_complain (run->check, rule, "expected an object");
  }
}
