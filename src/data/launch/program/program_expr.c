#include "data/launch/program/program_map.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/yaml_config.h"

#define MOST_ARGUMENTS 4

/* --- values ------------------------------------------------------------------------------------------ */

static const ProgramValue none = { NULL, NAN };

static ProgramValue
number (double n)
{
  return (ProgramValue) { NULL, n };
}

static ProgramValue
text_of (const char *text)
{
  return (ProgramValue) { g_strdup (text), NAN };
}

static ProgramValue
copy (const ProgramValue *v)
{
  return (ProgramValue) { g_strdup (v->text), v->number };
}

void
program_value_clear (ProgramValue *v)
{
  g_clear_pointer (&v->text, g_free);
}

bool
program_value_is_true (const ProgramValue *v)
{
  return v->text ? *v->text != '\0' : !isnan (v->number) && v->number != 0;
}

char *
program_value_text (const ProgramValue *v)
{
  if (v->text || isnan (v->number))
    return g_strdup (v->text ? v->text : "");
  return v->number == floor (v->number) && fabs (v->number) < 1e18 ? g_strdup_printf ("%.0f", v->number)
                                                                   : g_strdup_printf ("%.6g", v->number);
}

/* --- parsing ----------------------------------------------------------------------------------------- */

typedef struct {
  ProgramRun *run;
  const char *at;
  guint depth;
  bool idle; /* what is read does not count: another branch is taken */
} Parser;

#define MOST_DEPTH 64

static ProgramValue parse (Parser *p);

static ProgramValue G_GNUC_PRINTF (2, 3) complain (Parser *p, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  if (!p->run->wrong)
    p->run->wrong = g_steal_pointer (&text);
  p->at = "";
  return none;
}

static bool
takes (Parser *p, const char *word)
{
  gsize n = strlen (word);
  p->at += strspn (p->at, " ");
  bool is_word = g_ascii_isalpha (*word);
  if (strncmp (p->at, word, n) != 0 || (is_word && (g_ascii_isalnum (p->at[n]) || p->at[n] == '_')))
    return false;
  p->at += n;
  return true;
}

/* --- functions --------------------------------------------------------------------------------------- */

/* An option or a key as it is written, or a value: by the letter of the function. */
typedef struct {
  char *word;
  ProgramValue value;
} Argument;

typedef ProgramValue Function (ProgramRun *run, const Argument *a);

static ProgramValue
f_on (ProgramRun *run, const Argument *a)
{
  return number (option_is_on (run->job, a[0].word));
}

static ProgramValue
f_off (ProgramRun *run, const Argument *a)
{
  return number (option_is_off (run->job, a[0].word));
}

static ProgramValue
f_given (ProgramRun *run, const Argument *a)
{
  return number (option_is_there (run->job, a[0].word));
}

static ProgramValue
f_none (ProgramRun *run, const Argument *a)
{
  return number (option_is_none (run->job, a[0].word));
}

static ProgramValue
f_text (ProgramRun *run, const Argument *a)
{
  const char *text = option_text (run->job, a[0].word);
  return text ? text_of (text) : none;
}

/* 0: it is not given. */
static ProgramValue
f_number (ProgramRun *run, const Argument *a)
{
  return number ((double) option_number (run->job, a[0].word));
}

/* "1.5"; none: it is not given. */
static ProgramValue
f_real (ProgramRun *run, const Argument *a)
{
  const char *text = option_text (run->job, a[0].word);
  return text ? number (g_ascii_strtod (text, NULL)) : none;
}

/* What the program takes where it is not given, which is told as that of a key; 0: it is left open. */
static ProgramValue
f_number_or (ProgramRun *run, const Argument *a)
{
  return number (
      (double) config_number_or (run->job, a[0].word, a[1].word, (guint64) fmax (a[2].value.number, 0)));
}

/* How many values it has. */
static ProgramValue
f_count (ProgramRun *run, const Argument *a)
{
  const LaunchOption *o = launch_words_find (run->job->words, a[0].word);
  return number (o ? o->values->len : 0);
}

static bool
is_of_model (const char *key)
{
  return g_str_has_prefix (key, "model.");
}

static const char *
key_in (const char *key)
{
  return strchr (key, '.') + 1;
}

static ProgramValue
f_has (ProgramRun *run, const Argument *a)
{
  const LsImport *import = run->job->import;
  return number (is_of_model (a[0].word) ? import_has_model (import, key_in (a[0].word))
                                         : import_has_strategy (import, key_in (a[0].word)));
}

static ProgramValue
f_is_given (ProgramRun *run, const Argument *a)
{
  return number (import_is_given (run->job->import, key_in (a[0].word)));
}

/* What the job has, be it set or what a model or a strategy has where nothing is set. */
static ProgramValue
f_key (ProgramRun *run, const Argument *a)
{
  const LsImport *import = run->job->import;
  bool is_model = is_of_model (a[0].word);
  const LsField *f = is_model ? ls_field_find_value (ls_model_fields, key_in (a[0].word))
                              : ls_field_find (ls_strategy_fields, key_in (a[0].word));
  const char *target = is_model ? (const char *) &import->model : (const char *) &import->strategy;
  if (f->kind == LS_FIELD_UINT)
    return number (*(const uint32_t *) (gconstpointer) (target + f->offset));
  if (f->kind == LS_FIELD_BOOL)
    return number (*(const bool *) (target + f->offset));
  char *text = is_model ? ls_import_model_value (import, f->key) : ls_import_strategy_value (import, f->key);
  return text ? (ProgramValue) { text, NAN } : none;
}

/* GPUs that the command is started on; 0: not known. */
static ProgramValue
f_gpus (ProgramRun *run, const Argument *a)
{
  return number ((double) run->job->gpus);
}

static ProgramValue
f_variable (ProgramRun *run, const Argument *a)
{
  const char *text = run->job->variables ? g_hash_table_lookup (run->job->variables, a[0].word) : NULL;
  return text ? text_of (text) : none;
}

/* Words of the published tokenizer of that name; 0: it is nobody's. */
static ProgramValue
f_tokenizer_words (ProgramRun *run, const Argument *a)
{
  return number ((double) import_vocab_of_tokenizer (run->job->import, a[0].value.text));
}

static ProgramValue
f_at (ProgramRun *run, const Argument *a)
{
  return number (run->tree && yaml_config_find (run->tree, a[0].word) != NULL);
}

static ProgramValue
f_mapping (ProgramRun *run, const Argument *a)
{
  return number (run->tree && cJSON_IsObject (yaml_config_find (run->tree, a[0].word)));
}

static ProgramValue
f_text_at (ProgramRun *run, const Argument *a)
{
  const char *text = run->tree ? cJSON_GetStringValue (yaml_config_find (run->tree, a[0].word)) : NULL;
  return text ? text_of (text) : none;
}

/* The first of names, with blanks between, that a mapping has. */
static ProgramValue
f_which (ProgramRun *run, const Argument *a)
{
  g_auto (GStrv) names = g_strsplit (a[1].value.text ? a[1].value.text : "", " ", -1);
  const cJSON *mapping = run->tree ? yaml_config_find (run->tree, a[0].word) : NULL;
  for (char **name = names; mapping && *name; name++)
    if (yaml_config_find (mapping, *name))
      return text_of (*name);
  return none;
}

/* How many of these names, with blanks between, the file has. */
static ProgramValue
f_members (ProgramRun *run, const Argument *a)
{
  g_auto (GStrv) names = g_strsplit (a[0].value.text ? a[0].value.text : "", " ", -1);
  guint n = 0;
  for (char **name = names; run->tree && *name; name++)
    n += yaml_config_find (run->tree, *name) != NULL;
  return number (n);
}

/* Whether the file's own values are rather of a program that is read in C. */
static ProgramValue
f_rather (ProgramRun *run, const Argument *a)
{
  const OptionTable *other = program_table_find (a[0].word);
  return number (run->tree && other && yaml_config_is_rather (run->tree, other, &run->map->table));
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
f_other_at (ProgramRun *run, const Argument *a)
{
  g_auto (GStrv) words = g_strsplit (a[1].value.text ? a[1].value.text : "", " ", -1);
  const cJSON *node = run->tree ? yaml_config_find (run->tree, a[0].word) : NULL;
  const char *other = find_other (node, (const char *const *) words);
  return other ? text_of (other) : none;
}

static ProgramValue
f_pattern_at (ProgramRun *run, const Argument *a)
{
  const cJSON *node = run->tree ? yaml_config_find (run->tree, a[0].word) : NULL;
  char *pattern = program_pattern (node, a[1].value.text ? a[1].value.text : "");
  return pattern ? (ProgramValue) { pattern, NAN } : none;
}

/* Of the file that says it, without its folder. */
static ProgramValue
f_file (ProgramRun *run, const Argument *a)
{
  return (ProgramValue) { g_path_get_basename (run->path), NAN };
}

static ProgramValue
f_script (ProgramRun *run, const Argument *a)
{
  return number (run->script != NULL);
}

/* What a script starts: "train.py", "apps.main.train". */
static ProgramValue
f_command (ProgramRun *run, const Argument *a)
{
  return run->script && run->script->script ? text_of (run->script->script) : none;
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
f_pair (ProgramRun *run, const Argument *a)
{
  const char *text = run->script ? program_pair (run->script, a[0].word) : NULL;
  return text ? text_of (text) : none;
}

static ProgramValue
f_min (ProgramRun *run, const Argument *a)
{
  return number (fmin (a[0].value.number, a[1].value.number));
}

static ProgramValue
f_max (ProgramRun *run, const Argument *a)
{
  return number (fmax (a[0].value.number, a[1].value.number));
}

static ProgramValue
f_floor (ProgramRun *run, const Argument *a)
{
  return number (floor (a[0].value.number));
}

static ProgramValue
f_ceil (ProgramRun *run, const Argument *a)
{
  return number (ceil (a[0].value.number));
}

static ProgramValue
f_round (ProgramRun *run, const Argument *a)
{
  return number (nearbyint (a[0].value.number));
}

static ProgramValue
f_log2 (ProgramRun *run, const Argument *a)
{
  return number (log2 (a[0].value.number));
}

static ProgramValue
f_power (ProgramRun *run, const Argument *a)
{
  return number (pow (a[0].value.number, a[1].value.number));
}

/* The number that a text begins with, 0 without one. */
static ProgramValue
f_parsed (ProgramRun *run, const Argument *a)
{
  return a[0].value.text ? number (g_ascii_strtod (a[0].value.text, NULL)) : copy (&a[0].value);
}

/* A number above 0; else none, which sets nothing. */
static ProgramValue
f_some (ProgramRun *run, const Argument *a)
{
  return a[0].value.number > 0 ? number (a[0].value.number) : none;
}

static ProgramValue
f_join (ProgramRun *run, const Argument *a)
{
  g_autofree char *x = program_value_text (&a[0].value), *y = program_value_text (&a[1].value);
  return (ProgramValue) { g_strconcat (x, y, NULL), NAN };
}

static ProgramValue
f_lower (ProgramRun *run, const Argument *a)
{
  return a[0].value.text ? (ProgramValue) { g_ascii_strdown (a[0].value.text, -1), NAN } : none;
}

static ProgramValue
f_starts (ProgramRun *run, const Argument *a)
{
  return number (a[0].value.text && a[1].value.text && g_str_has_prefix (a[0].value.text, a[1].value.text));
}

static ProgramValue
f_ends (ProgramRun *run, const Argument *a)
{
  return number (a[0].value.text && a[1].value.text && g_str_has_suffix (a[0].value.text, a[1].value.text));
}

/* The first that is not none. */
static ProgramValue
f_first (ProgramRun *run, const Argument *a)
{
  return copy (&a[program_value_is_none (&a[0].value)].value);
}

/* Whether a text has these letters alone, and is not empty. */
static ProgramValue
f_made_of (ProgramRun *run, const Argument *a)
{
  const char *text = a[0].value.text, *letters = a[1].value.text;
  return number (text && letters && *text && strspn (text, letters) == strlen (text));
}

/* A text behind another that it starts with. */
static ProgramValue
f_without (ProgramRun *run, const Argument *a)
{
  const char *text = a[0].value.text, *front = a[1].value.text;
  if (!text)
    return none;
  return text_of (front && g_str_has_prefix (text, front) ? text + strlen (front) : text);
}

/* The same in front of another that it ends with. */
static ProgramValue
f_without_end (ProgramRun *run, const Argument *a)
{
  const char *text = a[0].value.text, *end = a[1].value.text;
  bool has_end = text && end && g_str_has_suffix (text, end);
  return has_end ? (ProgramValue) { g_strndup (text, strlen (text) - strlen (end)), NAN }
                 : copy (&a[0].value);
}

/* Behind the last letter that is this one: "torch.optim.AdamW". */
static ProgramValue
f_behind (ProgramRun *run, const Argument *a)
{
  const char *text = a[0].value.text, *at = text && a[1].value.text ? strrchr (text, *a[1].value.text) : NULL;
  return at ? text_of (at + 1) : copy (&a[0].value);
}

/* Letters: o an option, k a key, w a word as it stands, v a value. */
static const struct {
  const char *name, *letters;
  Function *call;
  bool is_free; /* needs no job */
} functions[] = {
  { "on", "o", f_on },
  { "off", "o", f_off },
  { "given", "o", f_given },
  { "none", "o", f_none },
  { "text", "o", f_text },
  { "number", "o", f_number },
  { "real", "o", f_real },
  { "number_or", "owv", f_number_or },
  { "count", "o", f_count },
  { "has", "k", f_has },
  { "is_given", "k", f_is_given },
  { "key", "k", f_key },
  { "gpus", "", f_gpus },
  { "variable", "w", f_variable },
  { "tokenizer_words", "v", f_tokenizer_words },
  { "at", "w", f_at, true },
  { "mapping", "w", f_mapping, true },
  { "text_at", "w", f_text_at, true },
  { "which", "wv", f_which, true },
  { "members", "v", f_members, true },
  { "rather", "w", f_rather, true },
  { "other_at", "wv", f_other_at, true },
  { "pattern_at", "wv", f_pattern_at, true },
  { "file", "", f_file },
  { "script", "", f_script },
  { "command", "", f_command },
  { "pair", "w", f_pair },
  { "min", "vv", f_min, true },
  { "max", "vv", f_max, true },
  { "floor", "v", f_floor, true },
  { "ceil", "v", f_ceil, true },
  { "round", "v", f_round, true },
  { "log2", "v", f_log2, true },
  { "power", "vv", f_power, true },
  { "parsed", "v", f_parsed, true },
  { "some", "v", f_some, true },
  { "join", "vv", f_join, true },
  { "lower", "v", f_lower, true },
  { "starts", "vv", f_starts, true },
  { "ends", "vv", f_ends, true },
  { "without", "vv", f_without, true },
  { "without_end", "vv", f_without_end, true },
  { "behind", "vv", f_behind, true },
  { "first", "vv", f_first, true },
  { "made_of", "vv", f_made_of, true },
};

char *
program_option (const ProgramMap *map, const char *word, gsize n)
{
  if (n > 0 && *word == '$')
    return g_strdup_printf ("%s%.*s", map->prefix ? map->prefix : "", (int) n - 1, word + 1);
  return g_strndup (word, n);
}

static bool
is_key (const char *word)
{
  const char *dot = strchr (word, '.');
  if (!dot)
    return false;
  return is_of_model (word)                  ? ls_field_find_value (ls_model_fields, dot + 1) != NULL
      : g_str_has_prefix (word, "strategy.") ? ls_field_find (ls_strategy_fields, dot + 1) != NULL
                                             : false;
}

/* Up to a comma or the end of the arguments. */
static void
parse_word (Parser *p, char letter, Argument *ret)
{
  p->at += strspn (p->at, " ");
  gsize n = strcspn (p->at, ",) ");
  ret->word = letter == 'o' ? program_option (p->run->map, p->at, n) : g_strndup (p->at, n);
  p->at += n;
  if (n == 0)
    complain (p, "a name is missing");
  else if (letter == 'k' && !is_key (ret->word))
    complain (p, "there is no key %s: expected model.KEY or strategy.KEY", ret->word);
  else if (letter == 'o' && p->run->named) {
    if (!option_find (&p->run->map->table, ret->word))
      complain (p, "there is no option %s among the options", ret->word);
    g_hash_table_add (p->run->named, g_strdup (ret->word));
  }
}

static ProgramValue
call (Parser *p, guint f)
{
  Argument a[MOST_ARGUMENTS] = { { NULL, none }, { NULL, none }, { NULL, none }, { NULL, none } };
  const char *letters = functions[f].letters;
  for (guint i = 0; letters[i]; i++) {
    if (i > 0 && !takes (p, ","))
      complain (p, "%s takes %u arguments", functions[f].name, (guint) strlen (letters));
    if (letters[i] == 'v')
      a[i].value = parse (p);
    else
      parse_word (p, letters[i], &a[i]);
  }
  if (!takes (p, ")"))
    complain (p, "%s ( ... has no end", functions[f].name);
  bool runs = !p->run->wrong && !p->idle && (p->run->job || functions[f].is_free);
  ProgramValue v = runs ? functions[f].call (p->run, a) : none;
  for (guint i = 0; i < MOST_ARGUMENTS; i++) {
    g_free (a[i].word);
    program_value_clear (&a[i].value);
  }
  return v;
}

/* --- what expressions are made of ---------------------------------------------------------------------- */

static ProgramValue
parse_name (Parser *p)
{
  gsize n = 0;
  while (g_ascii_isalnum (p->at[n]) || p->at[n] == '_')
    n++;
  g_autofree char *name = g_strndup (p->at, n);
  p->at += n;
  if (takes (p, "(")) {
    for (guint i = 0; i < G_N_ELEMENTS (functions); i++)
      if (strcmp (functions[i].name, name) == 0)
        return call (p, i);
    return complain (p, "there is no function %s", name);
  }
  const ProgramValue *let = p->run->lets ? g_hash_table_lookup (p->run->lets, name) : NULL;
  if (!let)
    return complain (p, n > 0 ? "no rule before says what %s is" : "a value is missing%s", name);
  return copy (let);
}

static ProgramValue
parse_value (Parser *p)
{
  p->at += strspn (p->at, " ");
  if (takes (p, "(")) {
    ProgramValue v = parse (p);
    if (!takes (p, ")"))
      complain (p, "a parenthesis has no end");
    return v;
  }
  if (*p->at == '\'') {
    const char *end = strchr (p->at + 1, '\'');
    if (!end)
      return complain (p, "a text has no end");
    ProgramValue v = { g_strndup (p->at + 1, (gsize) (end - p->at - 1)), NAN };
    p->at = end + 1;
    return v;
  }
  if (g_ascii_isdigit (*p->at)) {
    char *end;
    double n = g_ascii_strtod (p->at, &end);
    p->at = end;
    return number (n);
  }
  return parse_name (p);
}

static ProgramValue
parse_product (Parser *p)
{
  ProgramValue v = parse_value (p);
  for (;;) {
    char sign = takes (p, "*") ? '*' : takes (p, "/") ? '/' : takes (p, "%") ? '%' : '\0';
    if (!sign)
      return v;
    ProgramValue by = parse_value (p);
    double a = v.number, b = by.number;
    program_value_clear (&v);
    program_value_clear (&by);
    v = number (sign == '*' ? a * b : b == 0 ? NAN : sign == '/' ? a / b : fmod (a, b));
  }
}

static ProgramValue
parse_sum (Parser *p)
{
  ProgramValue v = parse_product (p);
  for (;;) {
    int sign = takes (p, "+") ? 1 : takes (p, "-") ? -1 : 0;
    if (!sign)
      return v;
    ProgramValue by = parse_product (p);
    double sum = v.number + sign * by.number;
    program_value_clear (&v);
    program_value_clear (&by);
    v = number (sum);
  }
}

static bool
is_equal (const ProgramValue *a, const ProgramValue *b)
{
  if (!a->text && !b->text)
    return a->number == b->number;
  g_autofree char *x = program_value_text (a), *y = program_value_text (b);
  return strcmp (x, y) == 0;
}

/* "in": of words with blanks between them. */
static bool
is_in (const ProgramValue *a, const ProgramValue *words)
{
  g_auto (GStrv) all = words->text ? g_strsplit (words->text, " ", -1) : NULL;
  return a->text && all && g_strv_contains ((const char *const *) all, a->text);
}

static ProgramValue
parse_comparison (Parser *p)
{
  static const char *const signs[] = { "!=", "=", "<=", "<", ">=", ">", "has", "in" };
  ProgramValue a = parse_sum (p);
  for (guint i = 0; i < G_N_ELEMENTS (signs); i++) {
    if (!takes (p, signs[i]))
      continue;
    ProgramValue b = parse_sum (p);
    const bool results[] = { !is_equal (&a, &b),
                             is_equal (&a, &b),
                             a.number <= b.number,
                             a.number<b.number, a.number >= b.number, a.number> b.number,
                             a.text && b.text && strstr (a.text, b.text) != NULL,
                             is_in (&a, &b) };
    program_value_clear (&a);
    program_value_clear (&b);
    return number (results[i]);
  }
  return a;
}

static ProgramValue
parse_not (Parser *p)
{
  if (!takes (p, "not"))
    return parse_comparison (p);
  ProgramValue v = parse_not (p);
  bool is_true = program_value_is_true (&v);
  program_value_clear (&v);
  return number (!is_true);
}

/* The second of "a and b" counts where the first does not decide. */
static ProgramValue
parse_all (Parser *p, bool is_and)
{
  ProgramValue v = is_and ? parse_not (p) : parse_all (p, true);
  while (takes (p, is_and ? "and" : "or")) {
    bool was_idle = p->idle, is_true = program_value_is_true (&v);
    p->idle = was_idle || is_true != is_and;
    ProgramValue next = is_and ? parse_not (p) : parse_all (p, true);
    if (is_true == is_and)
      is_true = program_value_is_true (&next);
    p->idle = was_idle;
    program_value_clear (&v);
    program_value_clear (&next);
    v = number (is_true);
  }
  return v;
}

/* "a ? b : c" */
static ProgramValue
parse (Parser *p)
{
  if (++p->depth > MOST_DEPTH)
    return complain (p, "it is too deep");
  ProgramValue v = parse_all (p, false);
  if (takes (p, "?")) {
    bool is_true = program_value_is_true (&v), was_idle = p->idle;
    program_value_clear (&v);
    p->idle = was_idle || !is_true;
    ProgramValue yes = parse (p);
    if (!takes (p, ":"))
      complain (p, "\"?\" has no \":\"");
    p->idle = was_idle || is_true;
    ProgramValue no = parse (p);
    p->idle = was_idle;
    v = is_true ? yes : no;
    program_value_clear (is_true ? &no : &yes);
  }
  p->depth--;
  return v;
}

/* --- whole ones --------------------------------------------------------------------------------------- */

ProgramValue
program_eval (ProgramRun *run, const char *text)
{
  Parser p = { .run = run, .at = text };
  ProgramValue v = parse (&p);
  p.at += strspn (p.at, " ");
  if (*p.at)
    complain (&p, "what does \"%s\" mean here?", p.at);
  if (!run->wrong)
    return v;
  program_value_clear (&v);
  return none;
}

bool
program_holds (ProgramRun *run, const char *text)
{
  ProgramValue v = program_eval (run, text);
  bool is_true = program_value_is_true (&v);
  program_value_clear (&v);
  return is_true;
}

char *
program_fill (ProgramRun *run, const char *text)
{
  GString *out = g_string_new (NULL);
  for (const char *open; (open = strchr (text, '{'));) {
    const char *end = strchr (open, '}'), *bar = end ? memchr (open, '|', (gsize) (end - open)) : NULL;
    g_string_append_len (out, text, open - text);
    if (!end) {
      text = open + 1;
      continue;
    }
    g_autofree char *expression = g_strndup (open + 1, (gsize) ((bar ? bar : end) - open - 1));
    ProgramValue v = program_eval (run, expression);
    g_autofree char *value = bar ? g_strdup_printf ("%.3g", v.number) : program_value_text (&v);
    g_string_append (out, value);
    program_value_clear (&v);
    text = end + 1;
  }
  g_string_append (out, text);
  return g_string_free (out, FALSE);
}
