/* Functions of expressions. */
#include <math.h>
#include <string.h>

#include "base/gcd.h"
#include "data/jobs/job_files.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"
#include "data/text/field.h"

/* --- options of the job, or in those of another program ------------------------------------------------- */

static const LaunchJob *
job_of (const ProgramRun *run, const ProgramArgument *a)
{
  return a->is_other ? &run->other : run->job;
}

static ProgramValue
f_on (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (option_is_on (job_of (run, a), a[0].word));
}

static ProgramValue
f_off (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (option_is_off (job_of (run, a), a[0].word));
}

/* Of a switch that is on where nothing is said. */
static ProgramValue
f_on_by_default (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchJob *job = job_of (run, a);
  return program_number (option_is_on (job, a[0].word)
                         || !(option_is_there (job, a[0].word) || option_is_none (job, a[0].word)));
}

static ProgramValue
f_given (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (option_is_there (job_of (run, a), a[0].word));
}

static ProgramValue
f_none (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (option_is_none (job_of (run, a), a[0].word));
}

static ProgramValue
f_text (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = option_text (job_of (run, a), a[0].word);
  return text ? program_text (text) : program_none ();
}

/* The same as it stands there, with what it leaves open. */
static ProgramValue
f_raw (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = launch_words_text (job_of (run, a)->words, a[0].word);
  return text ? program_text (text) : program_none ();
}

/* 0: it is not given. */
static ProgramValue
f_number (ProgramRun *run, const ProgramArgument *a)
{
  return program_number ((double) option_number (job_of (run, a), a[0].word));
}

/* "1.5"; none: it is not given. */
static ProgramValue
f_real (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = option_text (job_of (run, a), a[0].word);
  return text ? program_number (g_ascii_strtod (text, NULL)) : program_none ();
}

/* What the program takes where it is not given, which is told as that of a key; 0: it is left open. */
static ProgramValue
f_number_or (ProgramRun *run, const ProgramArgument *a)
{
  return program_number ((double) config_number_or (job_of (run, a), a[0].word, a[1].word,
                                                    (guint64) fmax (a[2].value.number, 0)));
}

/* Whether it stands there with a value that is not off, which "given" takes a word such as none for. */
static ProgramValue
f_found (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (launch_words_find (job_of (run, a)->words, a[0].word) != NULL);
}

/* Whether one is there whose name a pattern fits: "fsdp_config*". */
static ProgramValue
f_any (ProgramRun *run, const ProgramArgument *a)
{
  const GPtrArray *options = job_of (run, a)->words->options;
  bool has_any = false;
  for (guint i = 0; i < options->len; i++)
    has_any |= option_fits (a[0].word, ((const LaunchOption *) options->pdata[i])->name);
  return program_number (has_any);
}

/* Whether it is there with a value that is neither 0 nor false, be that known or not. */
static ProgramValue
f_nonzero (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchJob *job = job_of (run, a);
  const char *text = option_text (job, a[0].word);
  bool is_zero = text && (strcmp (text, "0") == 0 || g_ascii_strcasecmp (text, "false") == 0);
  return program_number (launch_words_find (job->words, a[0].word) && !is_zero);
}

/* Whether the file leaves its value open: "auto", "$X". */
static ProgramValue
f_left_open (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchOption *o = launch_words_find (job_of (run, a)->words, a[0].word);
  return program_number (o && o->values->len > 0 && ls_shell_has_hole (o->values->pdata[0]));
}

/* Whether what is left open is the end of its value: "/models/$X". */
static ProgramValue
f_ends_open (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = launch_words_text (job_of (run, a)->words, a[0].word);
  return program_number (text && g_str_has_suffix (text, (const char[]) { LS_SHELL_HOLE_END, 0 }));
}

/* "5e8": none: it is not given, or left open, or, which is a conflict, no number that counts something. */
static ProgramValue
f_amount (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchJob *job = job_of (run, a);
  const char *text = option_text (job, a[0].word);
  char *end = NULL;
  double value = text ? g_ascii_strtod (text, &end) : 0;
  if (!text || !*text)
    return program_none ();
  if (!*end && value >= 0 && value < 1e18)
    return program_number (value);
  import_conflict (job->import, "%s: \"%s\" is no number", a[0].word, text);
  return program_none ();
}

/* How many values it has. */
static ProgramValue
f_count (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchOption *o = launch_words_find (job_of (run, a)->words, a[0].word);
  return program_number (o ? o->values->len : 0);
}

/* All its values, with blanks between them. */
static ProgramValue
f_values (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchOption *o = launch_words_find (job_of (run, a)->words, a[0].word);
  GString *text = o ? g_string_new (NULL) : NULL;
  for (guint i = 0; o && i < o->values->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "", (const char *) o->values->pdata[i]);
  return text ? (ProgramValue) { g_string_free (text, FALSE), NAN } : program_none ();
}

/* Of the first n values of an option each p-th is that word, by the first of them; -p: not these alone; 0:
 * none is. */
static ProgramValue
f_every (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchOption *o = launch_words_find (job_of (run, a)->words, a[0].word);
  guint period = 0, n = o ? (guint) fmax (0, fmin (o->values->len, a[2].value.number)) : 0;
  bool is_regular = true;
  for (guint i = 0; i < n; i++) {
    bool is_one = strcmp (o->values->pdata[i], a[1].word) == 0;
    period = period == 0 && is_one ? i + 1 : period;
    is_regular &= period == 0 || is_one == ((i + 1) % period == 0);
  }
  return program_number (is_regular ? period : -(double) period);
}

/* --- keys of ours, and published models ---------------------------------------------------------------- */

const LsField *
engine_key_find (const char *word, bool *ret_is_model)
{
  *ret_is_model = g_str_has_prefix (word, "model.");
  return *ret_is_model                       ? ls_field_find_value (ls_model_fields, word + strlen ("model."))
      : g_str_has_prefix (word, "strategy.") ? ls_field_find (ls_strategy_fields, word + strlen ("strategy."))
                                             : NULL;
}

static ProgramValue
f_has (ProgramRun *run, const ProgramArgument *a)
{
  bool is_model;
  const char *key = program_key_find (a[0].word, &is_model)->key;
  return program_number ((is_model ? import_has_model : import_has_strategy) (run->job->import, key));
}

static ProgramValue
f_is_open (ProgramRun *run, const ProgramArgument *a)
{
  bool is_model;
  return program_number (import_is_open (run->job->import, program_key_find (a[0].word, &is_model)->key));
}

static ProgramValue
f_is_given (ProgramRun *run, const ProgramArgument *a)
{
  bool is_model;
  return program_number (import_is_given (run->job->import, program_key_find (a[0].word, &is_model)->key));
}

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
  const LsImport *import = run->job->import;
  bool is_model;
  const LsField *f = program_key_find (a[0].word, &is_model);
  const char *target = is_model ? (const char *) &import->model : (const char *) &import->strategy;
  if (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_BOOL)
    return number_in (f, target);
  if (run->is_written) {
    char *its = ls_field_text (f, target, NULL);
    return its ? (ProgramValue) { its, NAN } : program_none ();
  }
  char *text = is_model ? ls_import_model_value (import, f->key) : ls_import_strategy_value (import, f->key);
  return text ? (ProgramValue) { text, NAN } : program_none ();
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
  if (!is_number || !import_find_model (a[0].value.text, &m, &is_decoder, &found))
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
  bool is_decoder, is_known = a[0].value.text && ls_model_of_name (a[0].value.text, &m, &is_decoder);
  ls_model_clear (&m);
  return program_number (is_known);
}

/* "llama3/8B": its model by the name that one of these families has for it; none: it is none of theirs. */
static ProgramValue
f_published (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) families = g_strsplit (a[0].value.text ? a[0].value.text : "", " ", -1);
  char *name = ls_model_name_of (&run->job->import->model, (const char *const *) families);
  return name ? (ProgramValue) { name, NAN } : program_none ();
}

/* The software profile that was set. */
static ProgramValue
f_software (ProgramRun *run, const ProgramArgument *a)
{
  const char *name = run->job->import->strategy.software;
  return name ? program_text (name) : program_none ();
}

/* Whether its model is given beside the files. */
static ProgramValue
f_model_is_given (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->job->import->model_is_given);
}

/* Whether another file may say more of the job. */
static ProgramValue
f_may_have_more (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->job->import->may_have_more);
}

/* Whether all options are there, as a log prints them, not only those given. */
static ProgramValue
f_is_dump (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->job->is_dump);
}

/* Words of the published tokenizer of that name; 0: it is nobody's. */
static ProgramValue
f_tokenizer_words (ProgramRun *run, const ProgramArgument *a)
{
  return program_number ((double) import_vocab_of_tokenizer (run->job->import, a[0].value.text));
}

/* --- the command that starts it ------------------------------------------------------------------------ */

/* Of the words that start the program those that do, "litgpt pretrain"; where none are known, the script. */
static ProgramValue
f_command (ProgramRun *run, const ProgramArgument *a)
{
  const char *command = run->command ? run->command : run->job->script;
  return command ? program_text (command) : program_none ();
}

const char *
program_pair_value (const char *word, const char *name)
{
  gsize n = strlen (name);
  return strncmp (word, name, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

const char *
program_pair (const LaunchScript *script, const char *name)
{
  const GPtrArray *words = script->words->others;
  const char *value = NULL;
  for (guint i = 0; i < words->len && !value; i++)
    value = program_pair_value (words->pdata[i], name);
  return value;
}

static ProgramValue
f_pair (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = run->script ? program_pair (run->script, a[0].word) : NULL;
  return text ? program_text (text) : program_none ();
}

/* What code that reads the file says of it; none: nothing. */
static ProgramValue
f_told (ProgramRun *run, const ProgramArgument *a)
{
  for (const ProgramTold *told = run->told; told && told->name; told++)
    if (strcmp (told->name, a[0].word) == 0)
      return told->value ? program_text (told->value) : program_none ();
  return program_none ();
}

/* --- the file ------------------------------------------------------------------------------------------ */

/* Of the file that says it, without its folder. */
static ProgramValue
f_file (ProgramRun *run, const ProgramArgument *a)
{
  return run->path ? (ProgramValue) { g_path_get_basename (run->path), NAN } : program_none ();
}

/* The same as it was given. */
static ProgramValue
f_path (ProgramRun *run, const ProgramArgument *a)
{
  return program_text (run->path);
}

/* Whether a script sources what is not here. */
static ProgramValue
f_lacks (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->has_lacks);
}

/* The name whose value a configuration in Python is. */
static ProgramValue
f_name_set (ProgramRun *run, const ProgramArgument *a)
{
  return run->name ? program_text (run->name) : program_none ();
}

/* The name of its folder; none: it is in none. */
static ProgramValue
f_folder (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *folder = g_path_get_dirname (run->path);
  ProgramValue name = { g_path_get_basename (folder), NAN };
  if (strcmp (name.text, ".") == 0) {
    program_value_clear (&name);
    return program_none ();
  }
  return name;
}

/* What is given of that name behind the name of the file. */
static ProgramValue
f_beside (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = run->files ? import_given (run->files, a[0].word) : NULL;
  return text ? program_text (text) : program_none ();
}

/* What makes the items of a list, with blanks between. */
static ProgramValue
f_makers_at (ProgramRun *run, const ProgramArgument *a)
{
  GString *all = g_string_new (NULL);
  const cJSON *list = program_node (run, a[0].word), *item;
  cJSON_ArrayForEach (item, list)
  {
    const char *made = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (item, "()"));
    g_string_append_printf (all, "%s%s", all->len > 0 ? " " : "", made ? made : "?");
  }
  return (ProgramValue) { g_string_free (all, FALSE), NAN };
}

static ProgramValue
f_at (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (program_node (run, a[0].word) != NULL);
}

/* Whether what is there is neither null nor false. */
static ProgramValue
f_on_at (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *node = program_node (run, a[0].word);
  return program_number (node && !cJSON_IsNull (node) && !cJSON_IsFalse (node));
}

static ProgramValue
f_mapping (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (cJSON_IsObject (program_node (run, a[0].word)));
}

static ProgramValue
f_text_at (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = cJSON_GetStringValue (program_node (run, a[0].word));
  return text ? program_text (text) : program_none ();
}

/* A text, a number or a truth value, as a text. */
static ProgramValue
f_scalar (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *node = program_node (run, a[0].word);
  char *text = cJSON_IsNull (node) ? NULL : yaml_config_text (node);
  return text ? (ProgramValue) { text, NAN } : program_none ();
}

/* How many members there are. */
static ProgramValue
f_size (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (cJSON_GetArraySize (program_node (run, a[0].word)));
}

static ProgramValue
f_number_at (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (cJSON_GetNumberValue (program_node (run, a[0].word)));
}

/* Members of a mapping that another one has not, or otherwise. */
static ProgramValue
f_others_at (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *own = program_node (run, a[0].word),
              *other = own ? yaml_config_find (run->tree, a[1].word) : NULL, *item;
  GString *names = g_string_new (NULL);
  cJSON_ArrayForEach (item, own)
  {
    if (item->string && !cJSON_Compare (item, yaml_config_find (other, item->string), true))
      g_string_append_printf (names, "%s%s", names->len > 0 ? " " : "", item->string);
  }
  return (ProgramValue) { g_string_free (names, FALSE), NAN };
}

/* Of "defaults", files that Hydra reads too; '~' is a blank in one. */
static ProgramValue
f_defaults (ProgramRun *run, const ProgramArgument *a)
{
  GString *names = g_string_new (NULL);
  const cJSON *list = run->tree ? yaml_config_find (run->tree, "defaults") : NULL, *item;
  cJSON_ArrayForEach (item, list)
  {
    const cJSON *pair = cJSON_IsObject (item) ? item->child : NULL;
    g_autofree char *name = g_strdup (pair                        ? pair->string
                                          : cJSON_IsString (item) ? item->valuestring
                                                                  : "_self_");
    if (strcmp (name, "_self_") != 0 && !(pair && cJSON_IsNull (pair)))
      g_string_append_printf (names, "%s%s", names->len > 0 ? " " : "", g_strdelimit (name, " ,", '~'));
  }
  return (ProgramValue) { g_string_free (names, FALSE), NAN };
}

/* What a text of the tree leaves open, "$X"; none: nothing. */
static ProgramValue
f_hole_at (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = cJSON_GetStringValue (program_node (run, a[0].word));
  return text && ls_shell_has_hole (text) ? (ProgramValue) { ls_shell_hole_names (text), NAN }
                                          : program_none ();
}

/* The first of names, with blanks between, that a mapping has. */
static ProgramValue
f_which (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) names = g_strsplit (a[1].value.text ? a[1].value.text : "", " ", -1);
  const cJSON *mapping = program_node (run, a[0].word);
  for (char **name = names; mapping && *name; name++)
    if (yaml_config_find (mapping, *name))
      return program_text (*name);
  return program_none ();
}

/* How many of these names, with blanks between, the file has. */
static ProgramValue
f_members (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) names = g_strsplit (a[0].value.text ? a[0].value.text : "", " ", -1);
  guint n = 0;
  for (char **name = names; run->tree && *name; name++)
    n += yaml_config_find (run->tree, *name) != NULL;
  return program_number (n);
}

/* Whether the file's own values are rather of a program that is read in C. */
static ProgramValue
f_rather (ProgramRun *run, const ProgramArgument *a)
{
  const OptionTable *other = program_table_find (a[0].word);
  return program_number (run->tree && other && yaml_config_is_rather (run->tree, other, &run->map->table));
}

/* The first text of a tree that is none of words; NULL: all are. */
static const char *
find_other (const cJSON *node, const char *const *words)
{
  if (cJSON_IsString (node))
    return g_strv_contains (words, node->valuestring) ? NULL : node->valuestring;
  const char *other = NULL;
  for (const cJSON *child = node ? node->child : NULL; child && !other; child = child->next)
    other = find_other (child, words);
  return other;
}

static ProgramValue
f_other_at (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) words = g_strsplit (a[1].value.text ? a[1].value.text : "", " ", -1);
  const cJSON *node = program_node (run, a[0].word);
  const char *other = find_other (node, (const char *const *) words);
  return other ? program_text (other) : program_none ();
}

static ProgramValue
f_pattern_at (ProgramRun *run, const ProgramArgument *a)
{
  const cJSON *node = program_node (run, a[0].word);
  char *pattern = program_pattern (node, a[1].value.text ? a[1].value.text : "");
  return pattern ? (ProgramValue) { pattern, NAN } : program_none ();
}

/* Whether a line of the file begins so, behind blanks: one of several that '|' parts. */
static ProgramValue
f_line (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) all = g_strsplit (a[0].value.text ? a[0].value.text : "", "|", -1);
  bool is_there = false;
  for (char **start = all; run->text && *start && !is_there; start++)
    is_there = launch_has_line (run->text, *start);
  return program_number (is_there);
}

/* Whether a pattern as of Perl fits somewhere in a text; NULL allowed. */
static bool
fits (ProgramRun *run, const char *how, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GRegex) pattern = g_regex_new (how ? how : "", G_REGEX_RAW, G_REGEX_MATCH_DEFAULT, &error);
  if (!pattern && !run->wrong)
    run->wrong = g_strdup (error->message);
  return pattern && text && g_regex_match (pattern, text, G_REGEX_MATCH_DEFAULT, NULL);
}

static ProgramValue
f_matches (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (fits (run, a[0].value.text, run->text));
}

/* --- numbers and texts -------------------------------------------------------------------------------- */

/* A function by an expression of its arguments. */
#define NUMBER(name, expression)                                                                             \
  static ProgramValue name (ProgramRun *run, const ProgramArgument *a)                                       \
  {                                                                                                          \
    return program_number (expression);                                                                      \
  }

NUMBER (f_min, fmin (a[0].value.number, a[1].value.number))
NUMBER (f_max, fmax (a[0].value.number, a[1].value.number))
NUMBER (f_gcd,
        ls_gcd ((uint32_t) fmin (fmax (a[0].value.number, 0), UINT32_MAX),
                (uint32_t) fmin (fmax (a[1].value.number, 0), UINT32_MAX)))
NUMBER (f_floor, floor (a[0].value.number))
NUMBER (f_ceil, ceil (a[0].value.number))
NUMBER (f_round, nearbyint (a[0].value.number))

/* None unless it is above 0: what sets no key. */
static ProgramValue
f_positive (ProgramRun *run, const ProgramArgument *a)
{
  return a[0].value.number > 0 ? program_number (a[0].value.number) : program_none ();
}

NUMBER (f_log2, log2 (a[0].value.number))
NUMBER (f_power, pow (a[0].value.number, a[1].value.number))

/* The number that a text begins with, 0 without one. */
static ProgramValue
f_parsed (ProgramRun *run, const ProgramArgument *a)
{
  return a[0].value.text ? program_number (g_ascii_strtod (a[0].value.text, NULL))
                         : program_value_copy (&a[0].value);
}

/* The whole number that a text is; none: it is another text. */
static ProgramValue
f_whole (ProgramRun *run, const ProgramArgument *a)
{
  guint64 n;
  g_autofree char *text = program_value_text (&a[0].value);
  return g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &n, NULL) ? program_number ((double) n)
                                                                         : program_none ();
}

static ProgramValue
f_lower (ProgramRun *run, const ProgramArgument *a)
{
  return a[0].value.text ? (ProgramValue) { g_ascii_strdown (a[0].value.text, -1), NAN } : program_none ();
}

NUMBER (f_starts, a[0].value.text &&a[1].value.text &&g_str_has_prefix (a[0].value.text, a[1].value.text))
NUMBER (f_ends, a[0].value.text &&a[1].value.text &&g_str_has_suffix (a[0].value.text, a[1].value.text))

static ProgramValue
f_nothing (ProgramRun *run, const ProgramArgument *a)
{
  return program_none ();
}

/* The first of words, with blanks between, that a text has in it; none: it has none of them. */
static ProgramValue
f_any_of (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) words = g_strsplit (a[1].value.text ? a[1].value.text : "", " ", -1);
  for (char **word = words; *word && a[0].value.text; word++)
    if (strstr (a[0].value.text, *word))
      return program_text (*word);
  return program_none ();
}

/* Words of a text, between commas and blanks, each as "WORD=OTHER WORD=OTHER" has it, with blanks between;
 * those that it has not are left out. */
static ProgramValue
f_in_words (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) words = g_strsplit_set (a[0].value.text ? a[0].value.text : "", ", ", -1),
                 pairs = g_strsplit (a[1].value.text ? a[1].value.text : "", " ", -1);
  GString *text = g_string_new (NULL);
  for (char **word = words; *word; word++)
    for (char **pair = pairs; **word && *pair; pair++) {
      const char *other = program_pair_value (*pair, *word);
      if (other)
        g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "", other);
    }
  return (ProgramValue) { g_string_free (text, FALSE), NAN };
}

/* The words of a list as Python writes it: "['a', 'b']". */
static ProgramValue
f_items (ProgramRun *run, const ProgramArgument *a)
{
  return a[0].value.text ? (ProgramValue) { g_strdelimit (g_strdup (a[0].value.text), "[],'\" ", ' '), NAN }
                         : program_none ();
}

/* A text with another in place of a part of it, wherever that is. */
static ProgramValue
f_replaced (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *part = a[1].value.text, *by = a[2].value.text;
  g_auto (GStrv) pieces = text && part && *part ? g_strsplit (text, part, -1) : NULL;
  return pieces ? (ProgramValue) { g_strjoinv (by ? by : "", pieces), NAN }
                : program_value_copy (&a[0].value);
}

/* Whether a pattern as of Perl fits somewhere in a text. */
static ProgramValue
f_like (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (fits (run, a[1].value.text, a[0].value.text));
}

/* As a word of a shell, in a script that rules write. */
static ProgramValue
f_quoted (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *text = program_value_text (&a[0].value);
  return (ProgramValue) { program_quoted (text), NAN };
}

/* What a shell takes the product of two texts for. */
static ProgramValue
f_times (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *x = program_value_text (&a[0].value), *y = program_value_text (&a[1].value);
  return (ProgramValue) { program_times (x, y), NAN };
}

/* How many commands rules wrote. */
NUMBER (f_commands, program_commands (run))

/* The first that is not none. */
static ProgramValue
f_first (ProgramRun *run, const ProgramArgument *a)
{
  return program_value_copy (&a[program_value_is_none (&a[0].value)].value);
}

/* Whether a text has these letters alone, and is not empty. */
static ProgramValue
f_made_of (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *letters = a[1].value.text;
  return program_number (text && letters && *text && strspn (text, letters) == strlen (text));
}

/* A text behind another that it starts with. */
static ProgramValue
f_without (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *front = a[1].value.text;
  if (!text)
    return program_none ();
  return program_text (front && g_str_has_prefix (text, front) ? text + strlen (front) : text);
}

/* The same in front of another that it ends with, however often. */
static ProgramValue
f_without_end (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *end = a[1].value.text;
  gsize n = text ? strlen (text) : 0, n_end = end ? strlen (end) : 0;
  while (n_end > 0 && n >= n_end && strncmp (text + n - n_end, end, n_end) == 0)
    n -= n_end;
  return text ? (ProgramValue) { g_strndup (text, n), NAN } : program_none ();
}

/* A text behind the last of another, "torch.optim.AdamW"; all of it where that is not there. */
static ProgramValue
f_behind (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *mark = a[1].value.text,
             *at = text && mark ? g_strrstr (text, mark) : NULL;
  return !text ? program_none () : program_text (at ? at + strlen (mark) : text);
}

/* A text in front of the first of another; all of it where that is not there. */
static ProgramValue
f_before (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = a[0].value.text, *mark = a[1].value.text,
             *at = text && mark ? strstr (text, mark) : NULL;
  return at ? (ProgramValue) { g_strndup (text, (gsize) (at - text)), NAN }
            : program_value_copy (&a[0].value);
}

/* In bytes. */
static ProgramValue
f_length (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (a[0].value.text ? (double) strlen (a[0].value.text) : 0);
}

/* "b/c" of "a/b/c/", the last two parts of a path; none: it has fewer. */
static ProgramValue
f_last_parts (ProgramRun *run, const ProgramArgument *a)
{
  g_auto (GStrv) parts = g_strsplit (a[0].value.text ? a[0].value.text : "", "/", -1);
  guint n = g_strv_length (parts), wanted = (guint) fmin (fmax (a[1].value.number, 0), n + 1);
  while (n > 0 && *parts[n - 1] == '\0')
    g_clear_pointer (&parts[--n], g_free);
  return wanted <= n ? (ProgramValue) { g_strjoinv ("/", parts + n - wanted), NAN } : program_none ();
}

/* --- the table ----------------------------------------------------------------------------------------- */

static const ProgramFunction functions[] = {
  { "on", "o", f_on },
  { "off", "o", f_off },
  { "on_by_default", "o", f_on_by_default },
  { "given", "o", f_given },
  { "found", "o", f_found },
  { "any", "o", f_any },
  { "nonzero", "o", f_nonzero },
  { "none", "o", f_none },
  { "text", "o", f_text },
  { "raw", "o", f_raw },
  { "number", "o", f_number },
  { "real", "o", f_real },
  { "number_or", "owv", f_number_or },
  { "amount", "o", f_amount },
  { "left_open", "o", f_left_open },
  { "ends_open", "o", f_ends_open },
  { "count", "o", f_count },
  { "values", "o", f_values },
  { "every", "owv", f_every },

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
  { "tokenizer_words", "v", f_tokenizer_words },

  { "command", "", f_command },
  { "pair", "w", f_pair },
  { "told", "w", f_told },

  { "file", "", f_file, true },
  { "path", "", f_path },
  { "lacks", "", f_lacks },
  { "name_set", "", f_name_set },
  { "folder", "", f_folder },
  { "beside", "w", f_beside },
  { "makers_at", "w", f_makers_at, true },
  { "at", "w", f_at, true },
  { "on_at", "w", f_on_at, true },
  { "mapping", "w", f_mapping, true },
  { "text_at", "w", f_text_at, true },
  { "number_at", "w", f_number_at, true },
  { "scalar", "w", f_scalar, true },
  { "size", "w", f_size, true },
  { "others_at", "ww", f_others_at, true },
  { "defaults", "", f_defaults, true },
  { "hole_at", "w", f_hole_at, true },
  { "which", "wv", f_which, true },
  { "members", "v", f_members, true },
  { "rather", "w", f_rather, true },
  { "other_at", "wv", f_other_at, true },
  { "pattern_at", "wv", f_pattern_at, true },
  { "line", "v", f_line, true },
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
  { "in_words", "vv", f_in_words, true },
  { "items", "v", f_items, true },
  { "replaced", "vvv", f_replaced, true },
  { "starts", "vv", f_starts, true },
  { "ends", "vv", f_ends, true },
  { "without", "vv", f_without, true },
  { "without_end", "vv", f_without_end, true },
  { "behind", "vv", f_behind, true },
  { "before", "vv", f_before, true },
  { "length", "v", f_length, true },
  { "last_parts", "vv", f_last_parts, true },
  { "first", "vv", f_first, true },
  { "like", "vv", f_like, true },
  { "nothing", "", f_nothing, true },
  { "made_of", "vv", f_made_of, true },
  { "quoted", "v", f_quoted, true },
  { "times", "vv", f_times, true },
  { "commands", "", f_commands, true },
};

const ProgramFunction *
engine_function_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (functions); i++)
    if (strcmp (functions[i].name, name) == 0)
      return &functions[i];
  const ProgramFunction *const more[]
      = { program_text_functions, program_open_functions, program_layer_functions, program_file_functions,
          program_start_functions };
  for (guint i = 0; i < G_N_ELEMENTS (more); i++)
    for (const ProgramFunction *f = more[i]; f->name; f++)
      if (strcmp (f->name, name) == 0)
        return f;
  return NULL;
}
