#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/jobs/job_files.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "strategy/strategy.h"

/* Of a member of a rule; 0: it has none. */
static ProgramValue
value_at (ProgramRun *run, const cJSON *rule, const char *key)
{
  return program_value_of (run, cJSON_GetObjectItemCaseSensitive (rule, key));
}

static guint64
whole (const ProgramValue *v)
{
  return v->number > 0 ? (guint64) fmin (v->number, 1e15) : 0;
}

/* --- what rules do ------------------------------------------------------------------------------------- */

/* { "let": { "name": expression } } */
static void
let (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    program_let (run, one->string, program_value_of (run, one));
  }
}

/* { "table": { "text": value }, "of": expression, "gives": name }: what "of" is in the table; none: it is not
 * there. */
static void
look_up (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue of = value_at (run, rule, "of");
  const cJSON *node = of.text ? cJSON_GetObjectItemCaseSensitive (what, of.text) : NULL;
  program_let (run, program_member (rule, "gives"), node ? program_value_of (run, node) : program_none ());
  program_value_clear (&of);
}

/* { "list": expression, "of": n, "gives": name }: its values for each `index` below n, between commas. */
static void
make_list (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue n = value_at (run, rule, "of");
  GString *list = g_string_new (NULL);
  for (guint64 i = 0; i < MIN (whole (&n), LS_MAX_CHUNKS); i++) {
    program_let (run, "index", program_number ((double) i));
    ProgramValue v = program_value_of (run, what);
    g_autofree char *text = program_value_text (&v);
    g_string_append_printf (list, "%s%s", i > 0 ? "," : "", text);
    program_value_clear (&v);
  }
  program_let (run, program_member (rule, "gives"), (ProgramValue) { g_string_free (list, FALSE), NAN });
  program_value_clear (&n);
}

/* What says it: "by"; else of a number of the model its key, of all else a rule of the program. A value that
 * is none sets nothing. */
static void
set_keys (ProgramRun *run, const cJSON *rule, const cJSON *what, bool is_model)
{
  const char *by = program_member (rule, "by");
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v), *option = by ? program_fill (run, by) : NULL;
    const char *who = option ? option : is_model && !v.text ? one->string : "--";
    if (!program_value_is_none (&v))
      (is_model ? import_set_model : import_set_strategy) (run->job->import, one->string, text, who);
    program_value_clear (&v);
  }
}

static void
set_model (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  set_keys (run, rule, what, true);
}

static void
set_strategy (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  set_keys (run, rule, what, false);
}

/* Of keys that are neither set nor left open. */
static void
set_default (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    option_default (run->job, one->string, text);
    program_value_clear (&v);
  }
}

/* { "usual": { "layers": 32 } }: keys of the model that nothing sets, which is told, as "why" says or as the
 * default of the program. */
static void
set_usual (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  LsImport *import = run->job->import;
  const char *why = program_member (rule, "why");
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    if (!import_has_model (import, one->string)) {
      import_set_model (import, one->string, text, "--");
      import_infer (import, "%s %s: %s%s", one->string, text, why ? why : "the default of ",
                    why ? "" : run->map->program);
    }
    program_value_clear (&v);
  }
}

/* { "assumes": { option: value } }: options of the program that are not given, which is told. */
static void
assume (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    g_autofree char *option = program_option (run->map, one->string, strlen (one->string));
    if (launch_words_find (run->words, option))
      continue;
    ProgramValue v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    launch_words_add_by (run->words, false, option, text);
    import_infer (run->job->import, "%s %s: the default of %s", option, text, run->map->program);
    program_value_clear (&v);
  }
}

/* { "renames": { option: name } }: an option by the name that it has today, unless that is there too. */
static void
rename_options (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    const LaunchOption *old = launch_words_find (run->words, one->string);
    if (old && !launch_words_find (run->words, one->valuestring))
      launch_words_add_renamed (run->words, one->valuestring, old);
  }
}

/* { "tells": { option: text } }: of each that is there, "option: text" is told as unknown. */
static void
tell (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    g_autofree char *option = program_option (run->map, one->string, strlen (one->string));
    if (option_is_there (run->job, option))
      import_unknown (run->job->import, "%s: %s", option, cJSON_GetStringValue (one));
  }
}

/* What follows, is not simulated, matters to nothing, contradicts itself; the last is of stages and layers of
 * each, which are left out where one of these was given beside the file. */
static const struct {
  const char *name;
  void (*report) (LsImport *import, const char *format, ...) G_GNUC_PRINTF (2, 3);
} reports[] = {
  { "inferred", import_infer },
  { "unknown", import_unknown },
  { "ignored", import_ignore },
  { "conflict", import_conflict },
  { "stages_conflict", import_stages_conflict },
};

static void
report (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  g_autofree char *text = program_fill (run, what->valuestring);
  for (guint i = 0; i < G_N_ELEMENTS (reports); i++)
    if (strcmp (reports[i].name, what->string) == 0)
      reports[i].report (run->job->import, "%s", text);
}

static void
leave_open (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  g_autofree char *text = program_fill (run, program_member (rule, "says"));
  import_open (run->job->import, what->valuestring, "%s", text);
}

static void
expect (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  g_autofree char *option = program_option_of (run, what->valuestring, strlen (what->valuestring));
  option_tell_other (run->job, option, program_member (rule, "words"), program_member (rule, "taken"));
}

/* What rows of the model, or of the strategy, say `otherwise`. */
static void
set_otherwise (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  option_set_defaults (run->job, strcmp (what->valuestring, "model") == 0 ? OPTION_MODEL : OPTION_STRATEGY);
}

static void
set_optimizer (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue v = program_value_of (run, what), momentum = value_at (run, rule, "momentum");
  const char *by = program_member (rule, "by");
  import_set_optimizer (run->job->import, v.text, momentum.number > 0 ? momentum.number : 0, by ? by : "--");
  program_value_clear (&v);
  program_value_clear (&momentum);
}

/* Words of a vocabulary, padding among them. */
static void
set_padded_vocab (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue v = program_value_of (run, what);
  import_padded_vocab (run->job->import, whole (&v));
  program_value_clear (&v);
}

static void
set_software (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue v = program_value_of (run, what);
  if (v.text)
    import_set_software (run->job->import, v.text);
  program_value_clear (&v);
}

static void
set_positions (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue v = program_value_of (run, what);
  import_positions (run->job->import, whole (&v));
  program_value_clear (&v);
}

static void
name_model (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue v = program_value_of (run, what);
  if (v.text)
    import_model_of_name (run->job->import, v.text);
  program_value_clear (&v);
}

/* { "copies": expression, "times": expression }: of the model, and micro-batches of each in a step. */
static void
set_batch (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue copies = program_value_of (run, what), times = value_at (run, rule, "times");
  config_set_batch (run->job, whole (&copies), whole (&times));
  program_value_clear (&copies);
  program_value_clear (&times);
}

/* A key of the strategy that was set by the number of GPUs. */
static void
follow_gpus (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  import_follows_gpus (run->job->import, what->valuestring);
}

/* { "word": name, "decides": KEY }: a variable of the file says a key of the strategy. */
static void
note_word (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  g_autofree char *name = program_fill (run, what->valuestring);
  import_note_word (run->job->import, name, program_member (rule, "decides"));
}

static void
set_gpus (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue v = program_value_of (run, what);
  run->job->gpus = whole (&v);
  program_value_clear (&v);
}

/* What "on" names, or else PEFT's; with "more" these beside it, be it none. */
static GPtrArray *
adapted (ProgramRun *run, const cJSON *rule)
{
  const char *on = program_member (rule, "on");
  const cJSON *more = cJSON_GetObjectItemCaseSensitive (rule, "more");
  g_autofree char *option = on ? program_option_of (run, on, strlen (on)) : NULL;
  const LaunchOption *named = option ? launch_words_find (run->job->words, option) : NULL;
  if (!more)
    return named && named->values->len > 0 ? g_ptr_array_ref (named->values) : launch_usual_modules ();
  GPtrArray *modules = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; named && i < named->values->len; i++)
    g_ptr_array_add (modules, g_strdup (named->values->pdata[i]));
  ProgramValue v = program_value_of (run, more);
  g_auto (GStrv) words = g_strsplit (v.text ? v.text : "", " ", -1);
  for (char **word = words; *word; word++)
    g_ptr_array_add (modules, g_strdup (*word));
  program_value_clear (&v);
  return modules;
}

/* { "adapters": option that says so, "rank": 0: it is not said, "usual_rank": n, "on": option that names
 * modules, "more": others, "all": of all linear layers, whatever is named, "dropout": ..., "nf4": whether
 * frozen weights are in 4 bits } */
static void
set_adapters (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue rank = value_at (run, rule, "rank"), usual_rank = value_at (run, rule, "usual_rank");
  bool is_all = program_is_true (run, cJSON_GetObjectItemCaseSensitive (rule, "all"));
  g_autofree char *who = program_fill (run, what->valuestring);
  g_clear_pointer (&run->adapted, g_ptr_array_unref);
  program_value_clear (&run->dropout);
  run->dropout = value_at (run, rule, "dropout");
  run->adapted = is_all ? NULL : adapted (run, rule);
  const LaunchAdapters adapters
      = { .option = g_intern_string (who),
          .rank = whole (&rank),
          .usual_rank = whole (&usual_rank),
          .on = run->adapted,
          .dropout = run->dropout.text,
          .is_nf4 = program_is_true (run, cJSON_GetObjectItemCaseSensitive (rule, "nf4")) };
  if (run->map->is_dialect && !run->is_read)
    run->adapters = adapters; /* the other program's reader sets them, once the model is known */
  else
    launch_set_adapters (run->job->import, &adapters);
  program_value_clear (&rank);
  program_value_clear (&usual_rank);
}

/* { "takes": { KEY: OPTION } }: keys of the model as options say them. */
static void
take_options (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    g_autofree char *option = program_option (run->map, one->valuestring, strlen (one->valuestring));
    const char *text = option_text (run->job, option);
    if (text)
      import_set_model (run->job->import, one->string, text, option);
  }
}

/* { "release": today's }: software by the oldest option. */
static void
set_release (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  option_release (run->job, what->valuestring);
}

/* Of the strategy: other options make it idle. */
static void
forget (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  option_forget (run->job, what->valuestring);
}

/* { "model_file": true }: a model's own file behind the first; 'first': the one behind it has to be such. */
static void
read_model_file (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  run->is_refused |= !import_model_files (run->files, cJSON_IsString (what), run->job->import, run->diags);
}

/* "lacking": the files are not all of a job. */
static void
refuse (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  g_autofree char *text = program_fill (run, what->valuestring);
  bool is_lacking = strcmp (what->string, "lacking") == 0;
  ls_diag_add (run->diags, is_lacking ? LS_ERROR_INPUT : LS_ERROR_UNSUPPORTED, run->path, 0, 0, NULL, NULL,
               program_member (rule, "hint"), "%s", text);
  run->is_refused = true;
}

/* A job that learns from something else than the next token. */
static void
refuse_task (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  g_autofree char *text = program_fill (run, what->valuestring);
  import_refuse_task (run->path, run->diags, "%s", text);
  run->is_refused = true;
}

/* { "read": true }, not within a rule: what options say by themselves, of the other program's where they
 * become those. Without such a rule that is before all. */
static void
read_options (ProgramRun *run, const cJSON *rule, const cJSON *what)
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
fix (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const LsField *f = ls_field_find (ls_strategy_fields, what->valuestring);
  if (f)
    g_hash_table_add (run->job->import->given, (gpointer) f->key);
}

/* { "notes": option }: one that another file gives, as what `by` of rules behind names. */
static void
note_option (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  import_note_word (run->job->import, what->valuestring, NULL);
}

/* { "called": expression }: what the program is called. */
static void
set_name (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  ProgramValue v = program_value_of (run, what);
  if (v.text)
    run->job->import->program = g_intern_string (v.text);
  program_value_clear (&v);
}

/* { "move": { FROM: TO } }, of a YAML before its options are read: a mapping becomes part of another, whose
 * own members stay. */
static void
move (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, what)
  {
    if (run->shaped)
      yaml_config_move (run->shaped, one->string, cJSON_GetStringValue (one));
  }
}

/* { "formats": true }: of single modules, as Megatron-LM's option names a recipe of them. */
static void
set_formats (ProgramRun *run, const cJSON *rule, const cJSON *what)
{
  megatron_formats (run->job);
}

/* What a member is: an expression, a text with expressions in braces, a text, an option, a key of ours, a
 * program, one that reads the job, a map, a name, a list of rules; the others are objects of
 * keys of ours, of names, of any kind, of options of the other program, of cases with such, of options with
 * values or texts, of keys of the model, or of options of the other program, with options, of paths, and of
 * options with names that they have today. */
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
  AS_MODEL,
  AS_OPTIONS,
  AS_STRATEGY,
  AS_LETS,
  AS_VALUES,
  AS_CASES,
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
} Member;

static const struct {
  Member of;
  ProgramAction *act; /* NULL: rules within it */
  Member more[7];     /* which it has besides, and needs, but for those of is_free () */
} actions[] = {
  { { "let", AS_LETS }, let, { { NULL } } },
  { { "table", AS_VALUES }, look_up, { { "of", AS_VALUE }, { "gives", AS_LET } } },
  { { "list", AS_VALUE }, make_list, { { "of", AS_VALUE }, { "gives", AS_LET } } },
  { { "put", AS_VALUES }, program_put, { { NULL } } },
  { { "put_text", AS_VALUES }, program_put_text, { { NULL } } },
  { { "put_said", AS_VALUE }, program_put_said, { { "switches", AS_VALUE } } },
  { { "put_pairs", AS_TEXT }, program_put_pairs, { { NULL } } },
  { { "lay_files", AS_TEMPLATE }, program_lay_files, { { "hint", AS_TEXT } } },
  { { "lies_on", AS_VALUE }, program_lie_on, { { NULL } } },
  { { "configures", AS_MAP }, program_configure, { { "told", AS_VALUES } } },
  { { "drop", AS_TEXT }, program_drop_members, { { NULL } } },
  { { "part", AS_TEXT }, program_run_part, { { "of_map", AS_MAP }, { "own", AS_VALUE } } },
  { { "lacks", AS_TEMPLATE }, program_lack, { { "says", AS_TEMPLATE } } },
  { { "note", AS_TEMPLATE }, program_note, { { NULL } } },
  { { "note_attention", AS_TEXT }, program_note_attention, { { NULL } } },
  { { "release", AS_TEXT }, set_release, { { NULL } } },
  { { "stages_conflict", AS_TEMPLATE }, report, { { NULL } } },
  { { "model", AS_MODEL }, set_model, { { "by", AS_TEMPLATE } } },
  { { "strategy", AS_STRATEGY }, set_strategy, { { "by", AS_TEMPLATE } } },
  { { "default", AS_STRATEGY }, set_default, { { NULL } } },
  { { "usual", AS_MODEL }, set_usual, { { "why", AS_TEXT } } },
  { { "assumes", AS_OPTION_VALUES }, assume, { { NULL } } },
  { { "renames", AS_RENAMED }, rename_options, { { NULL } } },
  { { "tells", AS_OPTION_TEXTS }, tell, { { NULL } } },
  { { "base", AS_OPTION_VALUES }, program_base, { { "said", AS_VALUE } } },
  { { "translate", AS_TABLE }, program_translate, { { NULL } } },
  { { "say", AS_THEIRS }, program_say, { { "said", AS_VALUE } } },
  { { "say_option", AS_THEIR_OPTIONS }, program_say_option, { { NULL } } },
  { { "say_usual", AS_THEIRS }, program_say_usual, { { NULL } } },
  { { "say_default", AS_THEIRS }, program_say_default, { { "unless", AS_TEXT }, { "why", AS_TEXT } } },
  { { "switch", AS_OPTION }, program_switch, { { "cases", AS_CASES } } },
  { { "deepspeed", AS_VALUE }, program_deepspeed, { { "at", AS_TEXT } } },
  { { "python", AS_VALUE }, program_python, { { "name", AS_TEXT }, { "to", AS_TEXT } } },
  { { "read_as", AS_READER }, program_read_as, { { "software", AS_VALUE }, { "why", AS_TEMPLATE } } },
  { { "beside", AS_TABLE }, program_beside, { { "file", AS_VALUE }, { "gives", AS_LET } } },
  { { "fill", AS_THEIRS }, program_fill_open, { { NULL } } },
  { { "handed_adapters", AS_LET }, program_hand_adapters, { { NULL } } },
  { { "notes", AS_TEXT }, note_option, { { NULL } } },
  { { "called", AS_VALUE }, set_name, { { NULL } } },
  { { "move", AS_PATHS }, move, { { NULL } } },
  { { "inferred", AS_TEMPLATE }, report, { { NULL } } },
  { { "unknown", AS_TEMPLATE }, report, { { NULL } } },
  { { "ignored", AS_TEMPLATE }, report, { { NULL } } },
  { { "conflict", AS_TEMPLATE }, report, { { NULL } } },
  { { "open", AS_KEY }, leave_open, { { "says", AS_TEMPLATE } } },
  { { "expects", AS_OPTION }, expect, { { "words", AS_TEXT }, { "taken", AS_TEXT } } },
  { { "optimizer", AS_VALUE }, set_optimizer, { { "by", AS_TEXT }, { "momentum", AS_VALUE } } },
  { { "software", AS_VALUE }, set_software, { { NULL } } },
  { { "padded_vocab", AS_VALUE }, set_padded_vocab, { { NULL } } },
  { { "positions", AS_VALUE }, set_positions, { { NULL } } },
  { { "model_of_name", AS_VALUE }, name_model, { { NULL } } },
  { { "copies", AS_VALUE }, set_batch, { { "times", AS_VALUE } } },
  { { "follows_gpus", AS_KEY }, follow_gpus, { { NULL } } },
  { { "word", AS_TEMPLATE }, note_word, { { "decides", AS_KEY } } },
  { { "adds", AS_OPTION_VALUES }, program_add_options, { { NULL } } },
  { { "elsewhere", AS_TEMPLATE }, program_leave_more, { { NULL } } },
  { { "in_file", AS_OPTION }, program_take_file, { { NULL } } },
  { { "arguments", AS_TEXT }, program_take_arguments, { { "lifts", AS_TEXT }, { "says", AS_TEXT } } },
  { { "engine", AS_VALUE }, program_read_engine, { { NULL } } },
  { { "engine_but", AS_TEXT }, program_run_engine, { { NULL } } },
  { { "golden", AS_TEXT }, program_take_golden, { { "bytes", AS_TEXT } } },
  { { "gpus", AS_VALUE }, set_gpus, { { NULL } } },
  { { "windows", AS_VALUE }, program_set_windows, { { "layers", AS_VALUE }, { "of", AS_VALUES } } },
  { { "adapters", AS_TEMPLATE },
    set_adapters,
    { { "rank", AS_VALUE },
      { "usual_rank", AS_VALUE },
      { "on", AS_OPTION },
      { "more", AS_VALUE },
      { "all", AS_VALUE },
      { "dropout", AS_VALUE },
      { "nf4", AS_VALUE } } },
  { { "otherwise", AS_TEXT }, set_otherwise, { { NULL } } },
  { { "takes", AS_OPTIONS }, take_options, { { NULL } } },
  { { "forget", AS_KEY }, forget, { { NULL } } },
  { { "unset", AS_TEXT }, program_unset, { { NULL } } },
  { { "fixed", AS_KEY }, fix, { { NULL } } },
  { { "model_file", AS_VALUE }, read_model_file, { { NULL } } },
  { { "read", AS_VALUE }, read_options, { { NULL } } },
  { { "formats", AS_VALUE }, set_formats, { { NULL } } },
  { { "refuse", AS_TEMPLATE }, refuse, { { "hint", AS_TEXT } } },
  { { "lacking", AS_TEMPLATE }, refuse, { { "hint", AS_TEXT } } },
  { { "refuse_task", AS_TEMPLATE }, refuse_task, { { NULL } } },
  { { "write", AS_TEMPLATE }, program_write_line, { { NULL } } },
  { { "tell", AS_TEMPLATE }, program_tell_once, { { NULL } } },
  { { "export", AS_VALUE }, program_write_variable, { { "as", AS_VALUE } } },
  { { "variable", AS_VALUE }, program_write_variable, { { "as", AS_VALUE } } },
  { { "command", AS_TEXT }, program_write_command, { { NULL } } },
  { { "container", AS_RULES }, program_write_once, { { NULL } } },
  { { "below", AS_TEXT },
    program_walk,
    { { "of", AS_VALUE }, { "times", AS_TEXT }, { "until", AS_VALUE }, { "rules", AS_RULES } } },
  { { "rules", AS_RULES }, NULL, { { "else", AS_RULES } } },
};

/* --- running -------------------------------------------------------------------------------------------- */

static bool
act (ProgramRun *run, const cJSON *rule, bool holds)
{
  for (guint i = 0; i < G_N_ELEMENTS (actions); i++) {
    const cJSON *what = cJSON_GetObjectItemCaseSensitive (rule, actions[i].of.key);
    if (!what)
      continue;
    if (!actions[i].act)
      return program_run_rules (run, holds ? what : cJSON_GetObjectItemCaseSensitive (rule, "else"));
    if (!holds)
      return true;
    actions[i].act (run, rule, what);
    return !run->is_refused;
  }
  return true;
}

static bool
run_one (ProgramRun *run, const cJSON *rule)
{
  const char *when = program_member (rule, "when");
  return act (run, rule, !when || program_holds (run, when));
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
    const char *when = program_member (rule, "when");
    bool holds = !when || program_holds (run, when);
    if (!act (run, rule, holds))
      return false;
    if (holds && cJSON_HasObjectItem (rule, "once"))
      return true;
  }
  return true;
}

/* Once for each of these options, which have blanks between, or for each word of the value of an expression,
 * between commas and blanks; "each" is it. */
static bool
run_words (ProgramRun *run, const cJSON *rule, const char *options, const char *expression)
{
  ProgramValue text = options ? (ProgramValue) { g_strdup (options), NAN } : program_eval (run, expression);
  g_auto (GStrv) words = g_strsplit_set (text.text ? text.text : "", ", ", -1);
  bool ok = true;
  for (char **word = words; *word && ok; word++) {
    g_autofree char *one = options ? program_option (run->map, *word, strlen (*word)) : g_strdup (*word);
    program_set_each (run, one);
    ok = !**word || run_one (run, rule);
  }
  program_value_clear (&text);
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
    ok = run_one (run, rule);
  }
  run->tree = tree;
  return ok;
}

bool
engine_run_rules (ProgramRun *run, const cJSON *rules)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, rules)
  {
    const char *each = program_member (rule, "each"), *options = program_member (rule, "for"),
               *words = program_member (rule, "each_of"), *members = program_member (rule, "each_at"),
               *inside = program_member (rule, "inside");
    bool ok = each         ? run_each (run, rule, each)
        : members          ? run_members (run, rule, members, true)
        : inside           ? run_members (run, rule, inside, false)
        : options || words ? run_words (run, rule, options, words)
                           : run_one (run, rule);
    if (!ok)
      return false;
  }
  return true;
}

/* --- looking at rules that run for nobody --------------------------------------------------------------- */

typedef struct {
  ProgramRun *run;
  ProgramCheck *of;
} Check;

static void check_list (Check *c, const cJSON *rules);

/* A name that rules behind may use. */
static void
name_value (Check *c, const char *name)
{
  program_let (c->run, name, program_none ());
}

static void
check_option (Check *c, const cJSON *node, const char *name)
{
  if (!program_names_option (c->run, name, strlen (name)))
    program_complain (c->of, node, "there is no option %s among the options", name);
}

static void
check_keys (Check *c, const cJSON *object, As as)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, object)
  {
    bool is_model = as == AS_MODEL || as == AS_OPTIONS, is_theirs = as == AS_THEIRS || as == AS_THEIR_OPTIONS,
         has_option = as == AS_OPTIONS || as == AS_THEIR_OPTIONS || as == AS_RENAMED;
    bool is_known = is_model ? ls_field_find_value (ls_model_fields, one->string) != NULL
        : as == AS_STRATEGY  ? ls_field_find (ls_strategy_fields, one->string) != NULL
                             : true;
    if (!is_known)
      program_complain (c->of, one, "there is no such key of a %s", is_model ? "model" : "strategy");
    if (is_theirs && c->run->theirs && !option_find (c->run->theirs, one->string))
      program_complain (c->of, one, "there is no option %s of that program", one->string);
    if (as == AS_CASES && cJSON_IsObject (one))
      check_keys (c, one, AS_THEIRS);
    else if (as == AS_OPTION_VALUES || as == AS_OPTION_TEXTS)
      check_option (c, one, one->string);
    if ((has_option || as == AS_PATHS) && !cJSON_IsString (one))
      program_complain (c->of, one, "expected %s", has_option ? "an option" : "a path");
    else if (has_option)
      check_option (c, one, one->valuestring);
    else if (cJSON_IsString (one) && as != AS_OPTION_TEXTS && as != AS_PATHS)
      program_check_text (c->run, c->of, one, false);
    if (as == AS_LETS)
      name_value (c, one->string);
  }
}

static void
check_key (Check *c, const cJSON *node)
{
  if (!ls_field_find (ls_strategy_fields, node->valuestring)
      && !ls_field_find_value (ls_model_fields, node->valuestring))
    program_complain (c->of, node, "there is no such key of a strategy or a model");
}

/* Options of a command that names no configuration may become those of one. */
static void
check_name (Check *c, const cJSON *node, As as)
{
  const char *name = node->valuestring;
  bool is_there = g_strcmp0 (name, c->run->map->name) == 0 || program_is_reader (name)
      || (as == AS_MAP && program_map_get (name))
      || (as == AS_TABLE && c->run->theirs && strcmp (name, PROGRAM_CONFIGURATION) == 0);
  if (!is_there)
    program_complain (c->of, node, "there is no program of that name");
}

/* A part of its own is looked at where rules run it, but not within itself. */
static void
check_part (Check *c, const cJSON *rule, const char *name)
{
  const cJSON *part = cJSON_GetObjectItemCaseSensitive (c->run->map->parts, name);
  if (program_member (rule, "of_map") || !c->run->parts)
    return;
  if (!part)
    program_complain (c->of, rule, "there is no part of that name");
  else if (g_hash_table_lookup (c->run->parts, name) == NULL) {
    g_hash_table_insert (c->run->parts, part->string, part->string);
    check_list (c, part);
    g_hash_table_insert (c->run->parts, part->string, NULL);
  }
}

static void
check_member (Check *c, const cJSON *node, As as)
{
  bool is_list = as == AS_RULES, is_object = as >= AS_MODEL,
       is_text = !is_list && !is_object && as != AS_VALUE;
  if ((is_list && !cJSON_IsArray (node)) || (is_object && !cJSON_IsObject (node))
      || (is_text && !cJSON_IsString (node)))
    program_complain (c->of, node, "expected %s", is_list ? "a list" : is_object ? "an object" : "a text");
  else if (is_list)
    check_list (c, node);
  else if (is_object)
    check_keys (c, node, as);
  else if (as == AS_OPTION)
    check_option (c, node, node->valuestring);
  else if (as == AS_KEY)
    check_key (c, node);
  else if (as == AS_TABLE || as == AS_READER || as == AS_MAP)
    check_name (c, node, as);
  else if (as == AS_LET)
    name_value (c, node->valuestring);
  else if (cJSON_IsString (node) && (as == AS_VALUE || as == AS_TEMPLATE))
    program_check_text (c->run, c->of, node, as == AS_TEMPLATE);
}

/* What a member of a rule with that action is; false: it has none of that name. */
static bool
as_of (guint action, const char *key, As *ret)
{
  *ret = AS_VALUE;
  if (strcmp (key, "when") == 0 || strcmp (key, "each_of") == 0 || strcmp (key, "once") == 0)
    return true;
  *ret = AS_TEXT;
  if (strcmp (key, "each") == 0 || strcmp (key, "for") == 0 || strcmp (key, "each_at") == 0
      || strcmp (key, "inside") == 0)
    return true;
  *ret = actions[action].of.as;
  if (strcmp (key, actions[action].of.key) == 0)
    return true;
  for (guint i = 0; i < G_N_ELEMENTS (actions[action].more) && actions[action].more[i].key; i++) {
    *ret = actions[action].more[i].as;
    if (strcmp (key, actions[action].more[i].key) == 0)
      return true;
  }
  return false;
}

/* Of a rule that is run once for each of several. */
static void
check_loop (Check *c, const cJSON *rule)
{
  const char *each = program_member (rule, "each"), *options = program_member (rule, "for");
  g_auto (GStrv) names = g_strsplit (options ? options : "", " ", -1);
  if (each || options || program_member (rule, "each_of") || program_member (rule, "each_at"))
    name_value (c, "each");
  if (each)
    g_hash_table_add (c->run->named, g_strdup (each));
  for (char **name = names; *name; name++)
    check_option (c, cJSON_GetObjectItemCaseSensitive (rule, "for"), *name);
}

/* A member that a rule may lack. */
static bool
is_free (const char *key)
{
  static const char *const names[]
      = { "all", "at",  "by",   "dropout",  "else",     "hint", "momentum", "more", "nf4", "of_map",
          "on",  "own", "said", "software", "switches", "told", "unless",   "why",  NULL };
  return g_strv_contains (names, key);
}

#define N_WRITING 6 /* of what a wrapper's rules do, which no other's do */

/* Actions that need the other program, whose options its own become, and files that are not there where only
 * its options are asked for. */
static void
check_action (Check *c, const cJSON *rule, ProgramAction *action)
{
  static ProgramAction *const of_other[]
      = { program_translate, program_say,       program_say_option, program_say_usual, program_say_default,
          program_switch,    program_deepspeed, program_read_as,    program_python };
  static ProgramAction *const of_files[]
      = { program_translate, program_deepspeed, program_read_as, program_python,
          read_model_file,   read_options,      set_formats };
  static ProgramAction *const of_wrapper[] = { program_write_line,
                                               program_tell_once,
                                               program_write_variable,
                                               program_write_command,
                                               program_write_once,
                                               program_walk,
                                               let,
                                               look_up,
                                               refuse,
                                               program_run_part,
                                               NULL };
  const ProgramMap *map = c->run->map;
  guint k = 0;
  while (k < G_N_ELEMENTS (of_wrapper) && of_wrapper[k] != action)
    k++;
  if (map->unwraps ? k == G_N_ELEMENTS (of_wrapper) : k < N_WRITING)
    program_complain (c->of, rule, "a map that unwraps files, and no other, has such rules");
  for (guint i = 0; i < G_N_ELEMENTS (of_other) && !map->is_dialect && !map->has_beside; i++)
    if (action == of_other[i])
      program_complain (c->of, rule, "its options become those of no other program");
  for (guint i = 0; i < G_N_ELEMENTS (of_files) && map->is_around; i++)
    if (action == of_files[i])
      program_complain (c->of, rule, "what is around a Trainer has no such rules");
}

static void
check_rule (Check *c, const cJSON *rule)
{
  static const char *const walked[] = { "pods", "copies", "depth" };
  guint action = 0;
  while (action < G_N_ELEMENTS (actions) && !cJSON_GetObjectItemCaseSensitive (rule, actions[action].of.key))
    action++;
  if (action == G_N_ELEMENTS (actions)) {
    program_complain (c->of, rule,
                      "a rule without an action: expected one of \"model\", \"strategy\", \"let\" ...");
    return;
  }
  check_action (c, rule, actions[action].act);
  check_loop (c, rule);
  if (actions[action].act == make_list)
    name_value (c, "index");
  for (guint i = 0; i < G_N_ELEMENTS (walked) && actions[action].act == program_walk; i++)
    name_value (c, walked[i]);
  for (guint i = 0; i < G_N_ELEMENTS (actions[action].more) && actions[action].more[i].key; i++) {
    const char *key = actions[action].more[i].key;
    if (!is_free (key) && !cJSON_GetObjectItemCaseSensitive (rule, key))
      program_complain (c->of, rule, "missing key \"%s\"", key);
  }
  if (actions[action].act == program_run_part)
    check_part (c, rule, program_member (rule, "part"));
  const cJSON *one;
  cJSON_ArrayForEach (one, rule)
  {
    As as;
    if (as_of (action, one->string, &as))
      check_member (c, one, as);
    else if (!g_str_has_prefix (one->string, "x-"))
      program_complain (c->of, one, "\"%s\" has no such key \"%s\"", actions[action].of.key, one->string);
  }
}

static void
check_list (Check *c, const cJSON *rules)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, rules)
  {
    if (cJSON_IsObject (rule))
      check_rule (c, rule);
    else
      program_complain (c->of, rule, "expected an object");
  }
}

void
program_check_rules (ProgramRun *run, ProgramCheck *check, const cJSON *rules)
{
  check_list (&(Check) { run, check }, rules);
}
