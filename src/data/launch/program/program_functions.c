/* Functions of expressions: about options, keys, files, numbers and texts, layers. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/gcd.h"
#include "base/list.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_software.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"
#include "data/text/field.h"
#include "data/text/read_file.h"
#include "model/lora.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

/* --- options of the job, or in those of another program ------------------------------------------------- */

static const LaunchJob *
job_of (const ProgramRun *run, const ProgramArgument *a)
{
  return a->is_other ? &run->other : run->job;
}

static const LaunchOption *
option_of (const ProgramRun *run, const ProgramArgument *a)
{
  return launch_words_find (job_of (run, a)->words, a->word);
}

/* The first value as it stands there, with what it leaves open; NULL: there is none. */
static const char *
raw_of (const ProgramRun *run, const ProgramArgument *a)
{
  return launch_words_text (job_of (run, a)->words, a->word);
}

/* A text that leaves something open; NULL: it does not. NULL allowed. */
static const char *
open_of (const char *text)
{
  return text && ls_shell_has_hole (text) ? text : NULL;
}

/* What it leaves open, "$X". */
static char *
names_open_in (const char *text)
{
  return open_of (text) ? ls_shell_hole_names (text) : NULL;
}

PROGRAM_NUMBER (f_on, option_switch (job_of (run, a), a->word) == OPTION_ON)
PROGRAM_NUMBER (f_off, option_switch (job_of (run, a), a->word) == OPTION_OFF)
PROGRAM_NUMBER (f_given, option_is_there (job_of (run, a), a->word))
PROGRAM_NUMBER (f_none, option_is_none (job_of (run, a), a->word))

PROGRAM_TEXT (f_text, option_text (job_of (run, a), a->word))
PROGRAM_TEXT (f_raw, raw_of (run, a))

/* Its name as the file has it, "--tp_size". */
PROGRAM_TEXT (f_written, option_of (run, a) ? option_of (run, a)->written : NULL)

/* 0: it is not given. */
PROGRAM_NUMBER (f_number, (double) option_number (job_of (run, a), a->word))

/* "1.5"; none: it is not given. */
static ProgramValue
f_real (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = option_text (job_of (run, a), a->word);
  return text ? program_number (g_ascii_strtod (text, NULL)) : program_none ();
}

/* What the program takes where it is not given, which is told as that of a key; 0: it is left open. */
static ProgramValue
f_number_or (ProgramRun *run, const ProgramArgument *a)
{
  guint64 value = option_number (job_of (run, a), a->word), usual = (guint64) fmax (a[2].value.number, 0);
  bool is_said = value > 0 || option_of (run, a);
  if (!is_said)
    import_infer (run->job->import, "%s %" G_GUINT64_FORMAT ": the default of %s", a[1].word, usual,
                  run->job->import->made.program);
  return program_number ((double) (is_said ? value : usual));
}

/* Whether it stands there with a value that is not off, which "given" takes a word such as none for. */
PROGRAM_NUMBER (f_found, option_of (run, a) != NULL)

/* Whether one is there whose name a pattern fits: "fsdp_config*". */
static ProgramValue
f_any (ProgramRun *run, const ProgramArgument *a)
{
  const GPtrArray *options = job_of (run, a)->words->options;
  bool has_any = false;
  for (guint i = 0; i < options->len; i++)
    has_any |= option_fits (a->word, ((const LaunchOption *) options->pdata[i])->name);
  return program_number (has_any);
}

/* Whether the file leaves its value open: "auto", "$X"; what that is, in words. */
PROGRAM_NUMBER (f_left_open, open_of (raw_of (run, a)) != NULL)
PROGRAM_TAKEN (f_leaves, names_open_in (raw_of (run, a)))

/* "5e8": none: it is not given, or left open, or, which is a conflict, no number that counts something. */
static ProgramValue
f_amount (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = option_text (job_of (run, a), a->word);
  char *end = NULL;
  double value = text ? g_ascii_strtod (text, &end) : 0;
  if (!text || !*text)
    return program_none ();
  if (!*end && value >= 0 && value < 1e18)
    return program_number (value);
  import_conflict (run->job->import, "%s: \"%s\" is no number", a->word, text);
  return program_none ();
}

/* How many values it has. */
PROGRAM_NUMBER (f_count, option_of (run, a) ? option_of (run, a)->values->len : 0)

/* All its values, with blanks between them. */
PROGRAM_TAKEN (f_values, option_of (run, a) ? ls_joined (option_of (run, a)->values, 0, " ") : NULL)

/* The same as a list in JSON. */
static ProgramValue
f_list (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchOption *o = option_of (run, a);
  g_autoptr (cJSON) list
      = o ? cJSON_CreateStringArray ((const char *const *) o->values->pdata, (int) o->values->len) : NULL;
  return program_taken (list ? cJSON_PrintUnformatted (list) : NULL);
}

/* Whether the program has such an option. */
PROGRAM_NUMBER (f_is_option, option_find (a->is_other ? run->other.table : &run->map->table, a->word) != NULL)

/* A value that is left open, for that. */
static ProgramValue
f_left_to (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *text = program_value_text (&a->value);
  return program_taken (g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, text, LS_SHELL_HOLE_END));
}

/* A text of which the script leaves nothing open. */
PROGRAM_TEXT (f_decided, open_of (a->value.text) ? NULL : a->value.text)

/* --- keys of ours, and published models ---------------------------------------------------------------- */

/* The name of the one that it names. */
static const char *
key_of (const ProgramArgument *a)
{
  bool is_model;
  return program_key_find (a->word, &is_model)->key;
}

PROGRAM_NUMBER (f_has,
                import_has (run->job->import,
                            g_str_has_prefix (a->word, "model.") ? ls_model_fields : ls_strategy_fields,
                            key_of (a)))
PROGRAM_NUMBER (f_is_open, import_is_open (run->job->import, key_of (a)))
PROGRAM_NUMBER (f_is_given, import_is_given (run->job->import, key_of (a)))

/* Of a whole number or a truth value. */
static ProgramValue
number_in (const LsField *f, const char *target)
{
  return program_number (f->kind == LS_FIELD_UINT ? *(const uint32_t *) (gconstpointer) (target + f->offset)
                                                  : *(const bool *) (target + f->offset));
}

/* What the job has, be it set or what a model or a strategy has where nothing is set. */
static ProgramValue
f_key (ProgramRun *run, const ProgramArgument *a)
{
  bool is_model;
  const LsField *f = program_key_find (a->word, &is_model);
  GHashTable *said;
  const char *target
      = import_target (run->job->import, is_model ? ls_model_fields : ls_strategy_fields, &said);
  if (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_BOOL)
    return number_in (f, target);
  bool is_set = run->is_written || g_hash_table_contains (said, f->key);
  return program_taken (is_set ? ls_field_text (f, target, NULL) : NULL);
}

/* A number of the published model of that name, or at the end of that path; none: it is nobody's. */
static ProgramValue
f_of_model (ProgramRun *run, const ProgramArgument *a)
{
  LsModel m = { 0 };
  bool is_model, is_decoder;
  g_autofree char *found = NULL;
  const LsField *f = program_key_find (a[1].word, &is_model);
  bool is_number = is_model && (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_BOOL);
  if (!is_number || !import_find_model (a->value.text, &m, &is_decoder, &found))
    return program_none ();
  ProgramValue v = number_in (f, (const char *) &m);
  ls_model_clear (&m);
  return v;
}

/* Whether there is a published model of that very name. */
static ProgramValue
f_is_model (ProgramRun *run, const ProgramArgument *a)
{
  LsModel m = { 0 };
  bool is_decoder, is_known = a->value.text && ls_model_of_name (a->value.text, &m, &is_decoder);
  ls_model_clear (&m);
  return program_number (is_known);
}

/* "llama3/8B": its model by the name that one of these families has for it; none: it is none of theirs. */
static ProgramValue
f_published (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) families = program_words (a->value.text, " ");
  return program_taken (ls_model_name_of (&run->job->import->model, (const char *const *) families));
}

/* The software profile that was set, and the one that a version of a package is. */
PROGRAM_TEXT (f_software, run->job->import->strategy.program.software)
PROGRAM_TAKEN (f_package, a[1].value.text ? ls_software_of_package (a[0].word, a[1].value.text) : NULL)

/* Whether its model is given beside the files; whether its width is known, and not only as what is given in
 * place of the files'. */
PROGRAM_NUMBER (f_model_is_given, run->job->import->model_is_given)
PROGRAM_NUMBER (f_names_model,
                import_has (run->job->import, ls_model_fields, "hidden")
                    && (!run->job->import->model_is_given || run->job->import->model_is_named))

/* Whether another file may say more of the job, or words that the file does not say. */
PROGRAM_NUMBER (f_may_have_more, run->job->import->may_have_more)

/* Whether all options are there, as a log prints them, not only those given. */
PROGRAM_NUMBER (f_is_dump, run->job->is_dump)

/* --- the command that starts it ------------------------------------------------------------------------ */

/* Of the words that start the program those that do, "litgpt pretrain"; where none are known, the script. */
PROGRAM_TEXT (f_command, run->command ? run->command : run->job->script)

/* What the program is called in what is told. */
PROGRAM_TEXT (f_called, run->job->import->made.program)

PROGRAM_TEXT (f_pair, run->script ? program_pair (run->script, a->word) : NULL)

/* What code that reads the file says of it; none: nothing. */
PROGRAM_TEXT (f_told, ls_json_text (run->told, a->word))

/* GPUs that the command is started on; 0: not known. */
PROGRAM_NUMBER (f_gpus, (double) run->job->gpus)

/* A number that what starts the script is told, as torchrun by --nproc_per_node; 0: none. */
static ProgramValue
f_starter (ProgramRun *run, const ProgramArgument *a)
{
  if (!run->script || !run->script->front)
    return program_number (0);
  g_autoptr (LaunchWords) words = launch_words_new ();
  launch_words_add (words, (char *const *) run->script->front->pdata, run->script->front->len);
  const char *text = launch_words_text (words, a->word);
  return program_number (text ? (double) g_ascii_strtoull (text, NULL, 10) : 0);
}

/* What a script sets it to; NULL: it does not, or none starts the job. */
static const char *
variable_of (const ProgramRun *run, const char *name)
{
  return run->job->variables ? g_hash_table_lookup (run->job->variables, name) : NULL;
}

PROGRAM_TEXT (f_variable, variable_of (run, a->word))

/* Of what a script sets for its processes; none: it is not set, or left open, which is told. */
static ProgramValue
f_set (ProgramRun *run, const ProgramArgument *a)
{
  LsImport *import = run->job->import;
  const char *text = variable_of (run, a->word);
  if (!text || !*text)
    return program_none ();
  import_note_word (import, a->word, NULL);
  if (!ls_shell_has_hole (text))
    return program_text (text);
  g_autofree char *names = ls_shell_hole_names (text);
  import_unknown (import, "%s: its value is %s, which is not said here", a->word, names);
  return program_none ();
}

/* Whether processes see a variable that would matter; that they do not is told. */
static ProgramValue
f_exported (ProgramRun *run, const ProgramArgument *a)
{
  GHashTable *exported = run->job->exported;
  bool is_exported = !exported || g_hash_table_contains (exported, a->word);
  if (!is_exported)
    import_unknown (run->job->import, "%s: it is set and not exported; processes are assumed not to see it",
                    a->word);
  return program_number (is_exported);
}

/* A variable of the script, or given beside it, which says what it is set to as an option does. */
static ProgramValue
f_environment (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = variable_of (run, a->word);
  text = text || !run->files ? text : import_given (run->files, a->word);
  if (text)
    import_note_word (run->job->import, a->word, NULL);
  return program_text (text);
}

/* A number of what a batch system was asked, "slices": 0: not known. */
static ProgramValue
f_batch (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *name = g_strconcat ("batch.", a->word, NULL);
  const char *text = run->script ? launch_words_text (run->script->batch, name) : NULL;
  return program_number (text ? g_ascii_strtod (text, NULL) : 0);
}

/* Whether a command starts it, or else it is a configuration alone. */
PROGRAM_NUMBER (f_script, run->script != NULL)

/* Whether that command begins with the program: no other one starts processes. */
PROGRAM_NUMBER (f_is_bare, run->script && run->script->front && run->script->front->len == 0)

/* What the command says by an option of its own. */
PROGRAM_TEXT (f_argument, run->script ? launch_words_text (run->script->words, a->word) : NULL)

/* By the name of a script: it learns from rewards or preferences; it generates or evaluates. */
PROGRAM_NUMBER (f_learns, a->value.text != NULL && launch_learns (a->value.text))
PROGRAM_NUMBER (f_uses_model, a->value.text != NULL && launch_uses_model (a->value.text))

/* A text in a table of the map. */
PROGRAM_TEXT (f_entry,
              ls_json_text (yaml_config_find (program_section (run->map, "tables"), a[0].word),
                            a[1].value.text))

/* --- the file ------------------------------------------------------------------------------------------ */

/* Of the file that says it, without its folder; as it was given. */
PROGRAM_TAKEN (f_file, run->path ? g_path_get_basename (run->path) : NULL)
PROGRAM_TEXT (f_path, run->path)

/* Whether a script sources what is not here. */
PROGRAM_NUMBER (f_lacks, run->has_lacks)

/* The name whose value a configuration in Python is. */
PROGRAM_TEXT (f_name_set, run->name)

/* What is given of that name behind the name of the file. */
PROGRAM_TEXT (f_beside, run->files ? import_given (run->files, a->word) : NULL)

/* Whether a file that is looked at is a mapping of YAML. */
PROGRAM_NUMBER (f_is_yaml, run->looked != NULL && cJSON_IsObject (yaml_config_tree (run->looked)))

/* All of its text. */
PROGRAM_TEXT (f_content, run->text)

/* Whether a line of the file begins so, behind blanks: one of several that '|' parts. */
PROGRAM_NUMBER (f_line, run->text &&launch_has_any_line (run->text, a->value.text, "|"))

/* The text of a module in Python, a.b.c, in the checkout that the job's first file lies in. */
static ProgramValue
f_module (ProgramRun *run, const ProgramArgument *a)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gsize n;
  g_autofree char *path = run->files ? python_find_module (run->files->files[0].path, a->word) : NULL;
  return program_taken (path ? ls_read_file (path, LAUNCH_MAX_BESIDE, &n, diags) : NULL);
}

/* --- its tree ------------------------------------------------------------------------------------------ */

static const cJSON *
node_of (const ProgramRun *run, const ProgramArgument *a)
{
  return program_node (run, a->word);
}

PROGRAM_NUMBER (f_at, node_of (run, a) != NULL)

/* Whether what is there is neither null nor false. */
PROGRAM_NUMBER (f_on_at,
                node_of (run, a) && !cJSON_IsNull (node_of (run, a)) && !cJSON_IsFalse (node_of (run, a)))
PROGRAM_NUMBER (f_mapping, cJSON_IsObject (node_of (run, a)))
PROGRAM_TEXT (f_text_at, cJSON_GetStringValue (node_of (run, a)))
PROGRAM_NUMBER (f_number_at, cJSON_GetNumberValue (node_of (run, a)))

/* A text, a number or a truth value, as a text. */
PROGRAM_TAKEN (f_scalar, cJSON_IsNull (node_of (run, a)) ? NULL : launch_scalar_text (node_of (run, a)))

/* How many members there are. */
PROGRAM_NUMBER (f_size, cJSON_GetArraySize (node_of (run, a)))

/* What a text of the tree leaves open, "$X"; none: nothing. */
PROGRAM_TAKEN (f_hole_at, names_open_in (cJSON_GetStringValue (node_of (run, a))))

/* Members of a mapping that another one has not, or otherwise. */
static ProgramValue
f_others_at (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *own = node_of (run, a), *other = own ? yaml_config_find (run->tree, a[1].word) : NULL, *item;
  GString *names = g_string_new (NULL);
  cJSON_ArrayForEach (item, own)
    if (item->string && !cJSON_Compare (item, yaml_config_find (other, item->string), true))
      g_string_append_printf (names, "%s%s", names->len > 0 ? " " : "", item->string);

  return program_taken (g_string_free (names, FALSE));
}

/* A recipe of formats, a mapping or the name of its file, as Megatron-LM's option of one is read. */
static ProgramValue
f_formats_at (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *node = node_of (run, a);
  const char *path = cJSON_GetStringValue (node);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gsize n;
  if (cJSON_IsObject (node))
    return program_taken (cJSON_PrintUnformatted (node));
  g_autofree char *file = path ? ls_read_file (path, LAUNCH_MAX_BESIDE, &n, diags) : NULL;
  if (file)
    g_ptr_array_add (run->job->import->made.files, g_strdup (path));
  return program_taken (file ? yaml_config_as_json (file, n, path) : NULL);
}

/* --- numbers and texts -------------------------------------------------------------------------------- */

PROGRAM_NUMBER (f_min, fmin (a[0].value.number, a[1].value.number))
PROGRAM_NUMBER (f_max, fmax (a[0].value.number, a[1].value.number))
PROGRAM_NUMBER (f_gcd,
                ls_gcd ((uint32_t) fmin (fmax (a[0].value.number, 0), UINT32_MAX),
                        (uint32_t) fmin (fmax (a[1].value.number, 0), UINT32_MAX)))
PROGRAM_NUMBER (f_floor, floor (a->value.number))
PROGRAM_NUMBER (f_ceil, ceil (a->value.number))
PROGRAM_NUMBER (f_round, nearbyint (a->value.number))

/* None unless it is above 0: what sets no key. */
PROGRAM_NUMBER (f_positive, a->value.number > 0 ? a->value.number : NAN)
PROGRAM_NUMBER (f_log2, log2 (a->value.number))
PROGRAM_NUMBER (f_power, pow (a[0].value.number, a[1].value.number))
PROGRAM_NUMBER (f_nothing, NAN)

/* The number that a text begins with, 0 without one. */
PROGRAM_NUMBER (f_parsed, a->value.text ? g_ascii_strtod (a->value.text, NULL) : a->value.number)

/* How many a text says, "8", "gpu:a100:8"; 0: it does not. */
PROGRAM_NUMBER (f_count_in, a->value.text ? (double) launch_last_number (a->value.text) : 0)

/* The whole number that a text is; none: it is another text. */
static ProgramValue
f_whole (ProgramRun *run, const ProgramArgument *a)
{
  guint64 n;
  g_autofree char *text = program_value_text (&a->value);
  return g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &n, NULL) ? program_number ((double) n)
                                                                         : program_none ();
}

PROGRAM_TAKEN (f_lower, a->value.text ? g_ascii_strdown (a->value.text, -1) : NULL)

/* Whether a text has another at its start, or its end. */
static bool
has_at (const ProgramArgument *a, gboolean (*has) (const char *text, const char *part))
{
  return a[0].value.text && a[1].value.text && has (a[0].value.text, a[1].value.text);
}

PROGRAM_NUMBER (f_starts, has_at (a, g_str_has_prefix))
PROGRAM_NUMBER (f_ends, has_at (a, g_str_has_suffix))

/* The first of words, with blanks between, that a text has in it; none: it has none of them. */
static ProgramValue
f_any_of (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) words = program_words (a[1].value.text, " ");
  char **word = words;
  while (*word && !(a->value.text && strstr (a->value.text, *word)))
    word++;
  return program_text (*word);
}

/* The words of a list as Python writes it: "['a', 'b']". */
PROGRAM_TAKEN (f_items, a->value.text ? g_strdelimit (g_strdup (a->value.text), "[],'\" ", ' ') : NULL)

/* A text with another in place of a part of it, wherever that is. */
static ProgramValue
f_replaced (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *part = a[1].value.text, *by = a[2].value.text;
  g_auto (GStrv) pieces = text && part && *part ? g_strsplit (text, part, -1) : NULL;
  return pieces ? program_taken (g_strjoinv (by ? by : "", pieces))
                : (ProgramValue) { g_strdup (a->value.text), a->value.number };
}

/* A pattern as of Perl where it fits in a text, the first group of it; NULL: nowhere. NULL allowed. */
static char *
fits (ProgramRun *run, const char *how, const char *text, int group)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GMatchInfo) match = NULL;
  g_autoptr (GRegex) pattern = g_regex_new (how ? how : "", G_REGEX_RAW, G_REGEX_MATCH_DEFAULT, &error);
  if (!pattern && !run->wrong && !run->job) /* one that a file has may be none */
    run->wrong = g_strdup (error->message);
  bool is_so = pattern && text && g_regex_match (pattern, text, G_REGEX_MATCH_DEFAULT, &match);
  return is_so ? g_match_info_fetch (match, group) : NULL;
}

/* Whether it fits somewhere. */
static bool
is_like (ProgramRun *run, const char *how, const char *text)
{
  g_autofree char *all = fits (run, how, text, 0);
  return all != NULL;
}

/* In a text, in that of the file; what its first group is, none: it does not fit. */
PROGRAM_NUMBER (f_like, is_like (run, a[1].value.text, a[0].value.text))
PROGRAM_NUMBER (f_matches, is_like (run, a->value.text, run->text))
PROGRAM_TAKEN (f_group, fits (run, a[1].value.text, a[0].value.text, 1))

/* Whether a pattern as of Python's fnmatch, which knows no escapes, fits all of a text. */
PROGRAM_NUMBER (f_glob,
                a[0].value.text &&a[1].value.text &&fnmatch (a[0].value.text, a[1].value.text, FNM_NOESCAPE)
                    == 0)

/* The first that is not none. */
static ProgramValue
f_first (ProgramRun *run, const ProgramArgument *a)
{
  const ProgramValue *v = &a[program_value_is_none (&a->value)].value;
  return (ProgramValue) { g_strdup (v->text), v->number };
}

/* A text behind another that it starts with. */
PROGRAM_TEXT (f_without,
              has_at (a, g_str_has_prefix) ? a->value.text + strlen (a[1].value.text) : a->value.text)

/* The same in front of another that it ends with, however often. */
static ProgramValue
f_without_end (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *end = a[1].value.text;
  gsize n = text ? strlen (text) : 0, n_end = end ? strlen (end) : 0;
  while (n_end > 0 && n >= n_end && strncmp (text + n - n_end, end, n_end) == 0)
    n -= n_end;
  return program_taken (g_strndup (text, n));
}

/* A text behind the last of another, "torch.optim.AdamW"; all of it where that is not there. */
static ProgramValue
f_behind (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *mark = a[1].value.text,
             *at = text && mark ? g_strrstr (text, mark) : NULL;
  return program_text (at ? at + strlen (mark) : text);
}

/* In bytes. */
PROGRAM_NUMBER (f_length, a->value.text ? (double) strlen (a->value.text) : 0)

/* --- layers, and the chunks of a pipeline that they are cut into ---------------------------------------- */

#define MOST_LAYERS 65536

/* --- of a job ------------------------------------------------------------------------------------------ */

/* Which layers have experts, "[0]*3+[1]*58": so many of a kind after each other. */
static ProgramValue
f_expert_layers (ProgramRun *run, const ProgramArgument *a)
{
  const LsModel *m = &run->job->import->model;
  GString *layers = g_string_new (NULL);
  for (uint32_t layer = 0, n; layer < m->n_layers; layer += n) {
    bool has = ls_model_has_experts (m, layer);
    for (n = 1; layer + n < m->n_layers && ls_model_has_experts (m, layer + n) == has;)
      n++;
    g_string_append_printf (layers, "%s[%d]*%u", layer > 0 ? "+" : "", has, n);
  }
  return program_taken (g_string_free (layers, FALSE));
}

/* "t*3|t||t*2": layers of each chunk of the pipeline, each a letter; none: it is not to be cut so. */
static ProgramValue
f_chunks (ProgramRun *run, const ProgramArgument *a)
{
  const LsStrategy *s = &run->job->import->strategy;
  uint32_t n = s->pp * s->vpp;
  g_autofree uint32_t *layers = g_new0 (uint32_t, n);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  if (!ls_chunk_layers (s, &run->job->import->model, layers, none))
    return program_none ();
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < n; i++) {
    g_string_append_printf (text, "%s%s", i > 0 ? "|" : "", layers[i] > 0 ? a->word : "");
    if (layers[i] > 1)
      g_string_append_printf (text, "*%u", layers[i]);
  }
  return program_taken (g_string_free (text, FALSE));
}

/* Whether attention runs the kernel that it runs by itself, of the program that runs the job. */
PROGRAM_NUMBER (f_usual_attention,
                run->job->import->strategy.use.attention_kernel == LS_ATTENTION_KERNEL_AUTO
                    || run->job->import->strategy.use.attention_kernel
                        == run->job->import->strategy.program.attention_else)

/* Words of the linear layers that adapters may stand next to; none: such a job cannot be simulated. */
static ProgramValue
f_adaptable (ProgramRun *run, const ProgramArgument *a)
{
  const LsModel *m = &run->job->import->model;
  uint32_t own = 0;
  ls_lora_modules (m, NULL, &own, NULL);
  return ls_strategy_bars_adapters (m) ? program_none () : program_taken (ls_lora_words (own, " "));
}

/* Whether ranks of the job are numbered as by that order. */
PROGRAM_NUMBER (f_is_ordered,
                a->value.text != NULL && ls_strategy_is_ordered (&run->job->import->strategy, a->value.text))

/* --- patterns ------------------------------------------------------------------------------------------ */

/* A text so many times. */
static ProgramValue
f_repeated (ProgramRun *run, const ProgramArgument *a)
{
  GString *text = g_string_new (NULL);
  for (double i = 0; a->value.text && i < a[1].value.number && i < MOST_LAYERS; i++)
    g_string_append (text, a->value.text);
  return program_taken (g_string_free (text, FALSE));
}

/* "maade" of "MA*-E" by "M=m A=a *=a -=d E=e", a letter each; none: a letter has no other, or there are too
 * many. */
static ProgramValue
f_spelled (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) pairs = program_words (a[1].value.text, " ");
  g_autoptr (GString) text = g_string_new (NULL);
  for (const char *p = a->value.text ? a->value.text : ""; *p; p++) {
    const char *other = NULL;
    for (char **pair = pairs; *pair && !other; pair++)
      other = program_pair_value (*pair, (const char[]) { *p, '\0' });
    if (!other || text->len >= MOST_LAYERS)
      return program_none ();
    g_string_append (text, other);
  }
  return program_text (text->str);
}

/* "Et*3|(t|)*2" as "Ettt|t|t|", "[0]*2+[1]" as "00+1": a character, a list or what stands in parentheses as
 * often as "*n" behind it says. Newly allocated; NULL: it is too long. */
static char *
expanded (const char *text)
{
  g_autoptr (GString) all = g_string_new (NULL);
  for (const char *p = text; *p;) {
    const char *end = *p == '[' ? strchr (p, ']') : *p == '(' ? strchr (p, ')') : NULL;
    bool is_group = end && (*p == '[' || end[1] == '*');
    g_autofree char *piece = g_strndup (p + is_group, is_group ? (gsize) (end - p - 1) : 1),
                    *inner = is_group ? expanded (piece) : g_strdup (piece);
    p = is_group ? end + 1 : p + 1;
    guint64 times = *p == '*' ? g_ascii_strtoull (p + 1, (char **) &p, 10) : 1;
    if (!inner || times > MOST_LAYERS || strlen (inner) * times + all->len > MOST_LAYERS)
      return NULL;
    for (; times > 0; times--)
      g_string_append (all, inner);
  }
  return g_strdup (all->str);
}

PROGRAM_TAKEN (f_unrolled, a->value.text ? expanded (a->value.text) : NULL)

/* --- schedules ----------------------------------------------------------------------------------------- */

/* Whether a schedule of ours says itself how many chunks a stage has. */
static ProgramValue
f_fixes_chunks (ProgramRun *run, const ProgramArgument *a)
{
  const LsSched *sched = a->value.text ? ls_sched_find (a->value.text) : NULL;
  return program_number (sched && ls_sched_fixes_chunks (sched));
}

/* --- rules -------------------------------------------------------------------------------------------- */

/* { "unset": "a b" }: numbers of the model are as if nothing set them. */
void
program_unset (ProgramRun *run, ProgramAct *a)
{
  LsImport *import = run->job->import;
  g_auto (GStrv) keys = g_strsplit (a->what->valuestring, " ", -1);
  for (char **key = keys; *key; key++) {
    const LsField *f = ls_field_find_value (ls_model_fields, *key);
    if (!f || f->kind != LS_FIELD_UINT)
      continue;
    g_hash_table_remove (import->model_said, f->key);
    *(uint32_t *) (gpointer) ((char *) &import->model + f->offset) = 0;
  }
}

/* --- the table ----------------------------------------------------------------------------------------- */

static const ProgramFunction functions[] = {
  { "on", "o", f_on },
  { "off", "o", f_off },
  { "given", "o", f_given },
  { "found", "o", f_found },
  { "any", "o", f_any },
  { "none", "o", f_none },
  { "text", "o", f_text },
  { "raw", "o", f_raw },
  { "written", "o", f_written },
  { "number", "o", f_number },
  { "real", "o", f_real },
  { "number_or", "owv", f_number_or },
  { "amount", "o", f_amount },
  { "left_open", "o", f_left_open },
  { "count", "o", f_count },
  { "values", "o", f_values },
  { "list", "o", f_list },
  { "has", "k", f_has },
  { "is_open", "k", f_is_open },
  { "is_given", "k", f_is_given },
  { "key", "k", f_key },
  { "of_model", "vk", f_of_model },
  { "is_model", "v", f_is_model },
  { "model_is_given", "", f_model_is_given },
  { "may_have_more", "", f_may_have_more },
  { "is_dump", "", f_is_dump },
  { "software", "", f_software },
  { "published", "v", f_published },
  { "command", "", f_command },
  { "pair", "w", f_pair },
  { "told", "w", f_told },
  { "entry", "wv", f_entry, true },
  { "gpus", "", f_gpus },
  { "starter", "w", f_starter },
  { "variable", "w", f_variable },
  { "set", "w", f_set },
  { "exported", "w", f_exported },
  { "environment", "w", f_environment },
  { "batch", "w", f_batch },
  { "script", "", f_script },
  { "is_bare", "", f_is_bare },
  { "argument", "w", f_argument },
  { "file", "", f_file, true },
  { "path", "", f_path },
  { "lacks", "", f_lacks },
  { "name_set", "", f_name_set },
  { "beside", "w", f_beside },
  { "at", "w", f_at, true },
  { "on_at", "w", f_on_at, true },
  { "mapping", "w", f_mapping, true },
  { "text_at", "w", f_text_at, true },
  { "number_at", "w", f_number_at, true },
  { "scalar", "w", f_scalar, true },
  { "size", "w", f_size, true },
  { "others_at", "ww", f_others_at, true },
  { "hole_at", "w", f_hole_at, true },
  { "line", "v", f_line, true },
  { "content", "", f_content, true },
  { "matches", "v", f_matches, true },
  { "min", "vv", f_min, true },
  { "max", "vv", f_max, true },
  { "gcd", "vv", f_gcd, true },
  { "floor", "v", f_floor, true },
  { "ceil", "v", f_ceil, true },
  { "round", "v", f_round, true },
  { "positive", "v", f_positive, true },
  { "log2", "v", f_log2, true },
  { "power", "vv", f_power, true },
  { "parsed", "v", f_parsed, true },
  { "whole", "v", f_whole, true },
  { "lower", "v", f_lower, true },
  { "any_of", "vv", f_any_of, true },
  { "items", "v", f_items, true },
  { "replaced", "vvv", f_replaced, true },
  { "starts", "vv", f_starts, true },
  { "ends", "vv", f_ends, true },
  { "without", "vv", f_without, true },
  { "without_end", "vv", f_without_end, true },
  { "behind", "vv", f_behind, true },
  { "length", "v", f_length, true },
  { "first", "vv", f_first, true },
  { "like", "vv", f_like, true },
  { "nothing", "", f_nothing, true },

  { "leaves", "o", f_leaves },
  { "is_option", "o", f_is_option },
  { "called", "", f_called },
  { "left_to", "v", f_left_to, true },
  { "learns", "v", f_learns, true },
  { "uses_model", "v", f_uses_model, true },
  { "decided", "v", f_decided, true },
  { "count_in", "v", f_count_in, true },
  { "group", "vv", f_group, true },
  { "glob", "vv", f_glob, true },
  { "formats_at", "w", f_formats_at },
  { "module", "w", f_module },
  { "package", "wv", f_package },
  { "names_model", "", f_names_model },
  { "is_yaml", "", f_is_yaml, true },
  { "expert_layers", "", f_expert_layers },
  { "chunks", "w", f_chunks },
  { "adaptable", "", f_adaptable },
  { "usual_attention", "", f_usual_attention },
  { "fixes_chunks", "v", f_fixes_chunks, true },
  { "is_ordered", "v", f_is_ordered },
  { "repeated", "vv", f_repeated, true },
  { "spelled", "vv", f_spelled, true },
  { "unrolled", "v", f_unrolled, true },
  { NULL },
};

const ProgramFunction *
program_function_find (const char *name)
{
  const ProgramFunction *const tables[] = { functions, program_file_functions, program_wrap_functions };
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++)
    for (const ProgramFunction *f = tables[i]; f->name; f++)
      if (*f->name == *name && strcmp (f->name, name) == 0)
        return f;
  return NULL;
}
