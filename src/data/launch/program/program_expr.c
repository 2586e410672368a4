/* data/launch/program/program_expr.c — expressions of a map, evaluated. */
#include "data/launch/program/program_map.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "data/jobs/job_files.h"
#include "data/launch/yaml_config.h"
#include "data/text/field.h"

#define MOST_ARGUMENTS 4

/* --- values ------------------------------------------------------------------------------------------ */

void
program_value_clear (ProgramValue *v)
{
  g_clear_pointer (&v->text, g_free);
}

static bool
holds (const ProgramValue *v)
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

void
program_run_clear (ProgramRun *run)
{
  g_clear_pointer (&run->lets, g_hash_table_unref);
  g_clear_pointer (&run->wrong, g_free);
  g_clear_pointer (&run->command, g_free);
  g_clear_pointer (&run->says, launch_words_free);
  g_clear_pointer (&run->deepspeed, launch_words_free);
  g_clear_pointer (&run->made, launch_words_free);
  g_clear_pointer (&run->seen, g_hash_table_unref);
  if (run->job)
    g_clear_pointer (&run->job->open, g_hash_table_unref);
}

static void
value_free (gpointer value)
{
  program_value_clear (value);
  g_free (value);
}

void
program_let (ProgramRun *run, const char *name, ProgramValue v)
{
  if (!run->lets)
    run->lets = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, value_free);
  g_hash_table_replace (run->lets, g_strdup (name), g_memdup2 (&v, sizeof v));
}

const cJSON *
program_node (const ProgramRun *run, const char *path)
{
  return strcmp (path, ".") == 0 ? run->tree
      : strcmp (path, "/") == 0  ? run->root
      : run->tree                ? yaml_config_find (run->tree, path)
                                 : NULL;
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

const LsField *
program_key_find (const char *word, bool *ret_is_model)
{
  *ret_is_model = g_str_has_prefix (word, "model.");
  return *ret_is_model                       ? ls_field_find_value (ls_model_fields, word + strlen ("model."))
      : g_str_has_prefix (word, "strategy.") ? ls_field_find (ls_strategy_fields, word + strlen ("strategy."))
                                             : NULL;
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
  return program_none ();
}

static bool
takes (Parser *p, const char *word)
{
  while (*p->at == ' ')
    p->at++;
  if (*p->at != *word) /* as it mostly is */
    return false;
  gsize n = strlen (word);
  bool is_word = g_ascii_isalpha (*word);
  if (strncmp (p->at, word, n) != 0 || (is_word && (g_ascii_isalnum (p->at[n]) || p->at[n] == '_')))
    return false;
  p->at += n;
  return true;
}

char *
program_option (const ProgramMap *map, const char *word)
{
  return *word == '$' ? g_strconcat (map->prefix ? map->prefix : "", word + 1, NULL) : g_strdup (word);
}

/* "~x": the names that it may stand for, x first. */
static char **
names_of (const ProgramMap *map, const char *word)
{
  g_autofree char *fronts = g_strconcat (" ", map->sections, NULL);
  char **names = g_strsplit (fronts, " ", -1);
  for (char **name = names; *name; name++) {
    g_autofree char *front = *name;
    *name = g_strconcat (front, word, NULL);
  }
  return names;
}

/* Of names the first that the job has, then the first that is off. */
char *
program_option_of (const ProgramRun *run, const char *word)
{
  if (*word != '~')
    return program_option (run->map, word);
  g_auto (GStrv) names = names_of (run->map, word + 1);
  for (guint i = 0; run->job && names[i]; i++)
    if (launch_words_find (run->job->words, names[i]))
      return g_strdup (names[i]);
  for (guint i = 0; run->job && names[i]; i++)
    if (option_is_none (run->job, names[i]))
      return g_strdup (names[i]);
  return g_strdup (names[0]);
}

bool
program_names_option (const ProgramRun *run, const char *word)
{
  bool is_any = *word == '~', is_there = false;
  g_autofree char *name = program_option (run->map, word + is_any);
  g_auto (GStrv) names = is_any ? names_of (run->map, name) : g_strsplit (name, " ", 1);
  for (char **one = names; *one; one++) {
    is_there |= option_find (&run->map->table, *one) != NULL;
    g_hash_table_add (run->named, g_strdup (*one));
  }
  return is_there;
}

/* "@each": the option that a value of ours names. Newly allocated; "": where no job is looked at. */
static char *
option_of_value (Parser *p, const char *word)
{
  const ProgramValue *let = p->run->lets ? g_hash_table_lookup (p->run->lets, word + 1) : NULL;
  if (!let)
    complain (p, "no rule before says what %s is", word + 1);
  return g_strdup (let && let->text ? let->text : "");
}

/* An option by its name, or by that which a value of ours is, "@each"; of either in whichever section, "~x",
 * "~@each". Newly allocated. */
static char *
parse_option (Parser *p, const char *word)
{
  bool is_any = *word == '~';
  if (word[is_any] == '@') {
    g_autofree char *name = option_of_value (p, word + is_any), *any = g_strconcat ("~", name, NULL);
    return is_any ? program_option_of (p->run, any) : g_steal_pointer (&name);
  }
  if (p->run->named && *word && !program_names_option (p->run, word))
    complain (p, "there is no option %s among the options", word);
  return program_option_of (p->run, word);
}

/* Up to a comma, a blank or the end of the arguments, which "()" in a path, what makes an object, is not. */
static void
parse_word (Parser *p, char letter, ProgramArgument *ret)
{
  p->at += strspn (p->at, " ");
  ret->is_other = letter == 'o' && *p->at == '>';
  p->at += ret->is_other;
  gsize n = strcspn (p->at, ",() ");
  while (strncmp (p->at + n, "()", 2) == 0)
    n += 2 + strcspn (p->at + n + 2, ",() ");
  g_autofree char *word = g_strndup (p->at, n);
  bool is_model;
  p->at += n;
  if (n == 0)
    complain (p, "a name is missing");
  else if (ret->is_other && !p->run->map->is_dialect && !p->run->map->has_beside)
    complain (p, "its options become those of no other program");
  ret->word = letter == 'o' && !ret->is_other ? parse_option (p, word)
      : letter != 'k' && *word == '@'         ? option_of_value (p, word)
                                              : g_strdup (word);
  if (letter == 'k' && !program_key_find (ret->word, &is_model))
    complain (p, "there is no key %s: expected model.KEY or strategy.KEY", ret->word);
}

static ProgramValue
call (Parser *p, const ProgramFunction *f)
{
  ProgramArgument a[MOST_ARGUMENTS];
  for (guint i = 0; i < MOST_ARGUMENTS; i++)
    a[i] = (ProgramArgument) { NULL, false, program_none () };
  for (guint i = 0; f->letters[i]; i++) {
    if (i > 0 && !takes (p, ","))
      complain (p, "%s takes %u arguments", f->name, (guint) strlen (f->letters));
    if (f->letters[i] == 'v')
      a[i].value = parse (p);
    else
      parse_word (p, f->letters[i], &a[i]);
  }
  if (!takes (p, ")"))
    complain (p, "%s ( ... has no end", f->name);
  bool runs = !p->run->wrong && !p->idle && (p->run->job || f->is_free);
  ProgramValue v = runs ? f->call (p->run, a) : program_none ();
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
    const ProgramFunction *f = program_doors->function_find (name);
    return f ? call (p, f) : complain (p, "there is no function %s", name);
  }
  const ProgramValue *let = p->run->lets ? g_hash_table_lookup (p->run->lets, name) : NULL;
  if (!let && n > 0 && p->run->job) /* its rule, which was there when the map was checked, did not hold */
    return program_none ();
  if (!let)
    return complain (p, n > 0 ? "no rule before says what %s is" : "a value is missing%s", name);
  return (ProgramValue) { g_strdup (let->text), let->number };
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
    g_autofree char *text = g_strndup (p->at + 1, (gsize) (end - p->at - 1));
    bool counts = !p->idle || !p->run->job; /* where no job is looked at all of it is */
    p->at = end + 1;
    return (ProgramValue) { counts ? program_fill (p->run, text) : g_strdup (text), NAN };
  }
  if (g_ascii_isdigit (*p->at)) {
    char *end;
    double n = g_ascii_strtod (p->at, &end);
    p->at = end;
    return program_number (n);
  }
  return parse_name (p);
}

/* "a * b", and sums of these. */
static ProgramValue
parse_sum (Parser *p, bool is_product)
{
  ProgramValue v = is_product ? parse_value (p) : parse_sum (p, true);
  for (;;) {
    const char *signs = is_product ? "*/%" : "+-";
    p->at += strspn (p->at, " ");
    char sign = *p->at && strchr (signs, *p->at) ? *p->at++ : '\0';
    if (!sign)
      return v;
    ProgramValue by = is_product ? parse_value (p) : parse_sum (p, true);
    double a = v.number, b = by.number;
    program_value_clear (&v);
    program_value_clear (&by);
    v = program_number (sign == '+'       ? a + b
                            : sign == '-' ? a - b
                            : sign == '*' ? a * b
                            : b == 0      ? NAN
                            : sign == '/' ? a / b
                                          : fmod (a, b));
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

static ProgramValue
parse_comparison (Parser *p)
{
  static const char *const signs[] = { "!=", "=", "<=", "<", ">=", ">", "has", "in" };
  g_auto (ProgramValue) a = parse_sum (p, false);
  for (guint i = 0; i < G_N_ELEMENTS (signs); i++) {
    if (!takes (p, signs[i]))
      continue;
    g_auto (ProgramValue) b = parse_sum (p, false);
    const bool results[] = { !is_equal (&a, &b),
                             is_equal (&a, &b),
                             a.number <= b.number,
                             a.number<b.number, a.number >= b.number, a.number> b.number,
                             a.text && b.text && strstr (a.text, b.text) != NULL,
                             a.text && ls_is_one_of (a.text, b.text) };
    return program_number (results[i]);
  }
  return (ProgramValue) { g_steal_pointer (&a.text), a.number };
}

static ProgramValue
parse_not (Parser *p)
{
  if (!takes (p, "not"))
    return parse_comparison (p);
  g_auto (ProgramValue) v = parse_not (p);
  return program_number (!holds (&v));
}

/* The second of "a and b" counts where the first does not decide. */
static ProgramValue
parse_all (Parser *p, bool is_and)
{
  ProgramValue v = is_and ? parse_not (p) : parse_all (p, true);
  while (takes (p, is_and ? "and" : "or")) {
    bool was_idle = p->idle, is_true = holds (&v);
    p->idle = was_idle || is_true != is_and;
    g_auto (ProgramValue) next = is_and ? parse_not (p) : parse_all (p, true);
    if (is_true == is_and)
      is_true = holds (&next);
    p->idle = was_idle;
    program_value_clear (&v);
    v = program_number (is_true);
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
    bool is_true = holds (&v), was_idle = p->idle;
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
  return program_none ();
}

bool
program_holds (ProgramRun *run, const char *text)
{
  g_auto (ProgramValue) v = program_eval (run, text);
  return holds (&v);
}

bool
program_fits (ProgramRun look, const char *text)
{
  bool is_its = !text || program_holds (&look, text);
  g_free (look.wrong);
  return is_its;
}

char *
program_fill (ProgramRun *run, const char *text)
{
  GString *out = g_string_new (NULL);
  for (const char *open; (open = strchr (text, '{'));) {
    const char *end = strchr (open, '}'), *bar = end ? memchr (open, '|', (gsize) (end - open)) : NULL;
    g_string_append_len (out, text, open - text);
    if (end && open[1] == '"') { /* of JSON */
      g_string_append_c (out, '{');
      text = open + 1;
      continue;
    }
    if (!end) {
      if (!run->wrong)
        run->wrong = g_strdup_printf ("\"%s\" has no }", open);
      text = open + 1;
      continue;
    }
    g_autofree char *expression = g_strndup (open + 1, (gsize) ((bar ? bar : end) - open - 1));
    g_auto (ProgramValue) v = program_eval (run, expression);
    g_autofree char *value = bar ? g_strdup_printf ("%.3g", v.number) : program_value_text (&v);
    g_string_append (out, value);
    text = end + 1;
  }
  g_string_append (out, text);
  return g_string_free (out, FALSE);
}

/* --- members of rules --------------------------------------------------------------------------------- */

bool
program_any_word (const char *words, const char *separator,
                  gboolean (*fits) (const char *text, const char *word), const char *text)
{
  g_auto (GStrv) all = program_words (words, separator);
  bool is_one = false;
  for (char **word = all; *word && !is_one; word++)
    is_one = **word && fits (text, *word);
  return is_one;
}

bool
reads_is_script (const cJSON *of)
{
  return cJSON_GetObjectItemCaseSensitive (of, "marks") || cJSON_GetObjectItemCaseSensitive (of, "starts");
}

const cJSON *
reads_node (const cJSON *of, const char *key)
{
  static const char inherited[] = "python fits sets keeps made_by own shapes without without_none";
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (of, key), *next = of ? of->next : NULL;
  bool is_heir = !node && next && reads_is_script (of) && cJSON_GetObjectItemCaseSensitive (of, "config")
      && cJSON_GetObjectItemCaseSensitive (next, "python") && !reads_is_script (next)
      && ls_is_one_of (key, inherited);
  return is_heir ? cJSON_GetObjectItemCaseSensitive (next, key) : node;
}

const char *
reads_text (const cJSON *of, const char *key)
{
  return cJSON_GetStringValue (reads_node (of, key));
}

bool
reads_is (const cJSON *of, const char *key)
{
  return cJSON_IsTrue (reads_node (of, key));
}

ProgramValue
program_value_of (ProgramRun *run, const cJSON *node)
{
  if (cJSON_IsString (node))
    return program_eval (run, node->valuestring);
  return (ProgramValue) { NULL, cJSON_IsNumber (node) ? node->valuedouble : cJSON_IsTrue (node) ? 1 : 0 };
}

ProgramValue
program_value_at (ProgramRun *run, const cJSON *rule, const char *key)
{
  return program_value_of (run, cJSON_GetObjectItemCaseSensitive (rule, key));
}

guint64
program_whole (const ProgramValue *v)
{
  return v->number > 0 ? (guint64) fmin (v->number, 1e15) : 0;
}

guint64
program_whole_at (ProgramRun *run, const cJSON *rule, const char *key)
{
  g_auto (ProgramValue) v = program_value_at (run, rule, key);
  return program_whole (&v);
}

bool
program_is_true_at (ProgramRun *run, const cJSON *rule, const char *key)
{
  g_auto (ProgramValue) v = program_value_at (run, rule, key);
  return holds (&v);
}

cJSON *
program_told_of (ProgramRun *run, const cJSON *rule)
{
  cJSON *told = cJSON_CreateObject ();
  const cJSON *one;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (rule, "told")) {
    g_auto (ProgramValue) v = program_value_of (run, one);
    g_autofree char *text = program_value_text (&v);
    if (!program_value_is_none (&v))
      cJSON_AddStringToObject (told, one->string, text);
  }
  return told;
}

const ProgramValue *
program_act_value (ProgramRun *run, ProgramAct *a)
{
  if (!a->is_evaluated)
    a->value = program_value_of (run, a->what);
  a->is_evaluated = true;
  return &a->value;
}

const char *
program_act_text (ProgramRun *run, ProgramAct *a)
{
  if (!a->text)
    a->text = program_value_text (program_act_value (run, a));
  return a->text;
}

void
program_check_text (ProgramRun *run, const cJSON *node, bool is_template)
{
  g_clear_pointer (&run->wrong, g_free);
  const char *text = node->valuestring;
  g_auto (ProgramValue) v = is_template ? program_taken (program_fill (run, text)) : program_eval (run, text);
  if (run->wrong)
    ls_json_complain (run->check, node, "%s", run->wrong);
  g_clear_pointer (&run->wrong, g_free);
}

/* --- jobs that are written for a program ---------------------------------------------------------------- */

void
program_refuse_written (Emit *e, const char *knob, const char *why)
{
  ls_diag_fail (e->refusals, LS_ERROR_UNSUPPORTED, "%s: %s", knob, why);
}

/* --- what rules do ------------------------------------------------------------------------------------- */

/* { "lacks": option of ours, "says": why } */
void
program_lack (ProgramRun *run, ProgramAct *a)
{
  g_autofree char *why = program_fill (run, ls_json_text (a->rule, "says"));
  if (run->emit)
    program_refuse_written (run->emit, program_act_text (run, a), why);
  run->is_refused |= run->emit && run->emit->asks_whether;
}

void
program_note (ProgramRun *run, ProgramAct *a)
{
  if (run->emit)
    g_string_append_printf (run->emit->notes, "%s\n", program_act_text (run, a));
}

/* --- a job --------------------------------------------------------------------------------------------- */

/* A job that rules look at, of which all keys are known, with what is calculated of it and what rules find
 * of that. The caller clears it. */
static void
start_written (ProgramRun *run, const ProgramMap *map, LaunchJob *job, Emit *e)
{
  const cJSON *let = program_entry (map, "writes", "let"), *one;
  *run = (ProgramRun) { .map = map, .job = job, .emit = e, .is_written = true };
  cJSON_ArrayForEach (one, let)
    program_let (run, one->string, program_value_of (run, one));

  program_doors->run_rules (run, program_entry (map, "writes", "finds"));
}

char *
program_written (const ProgramMap *map, const char *expression, const LsModel *m, const LsStrategy *s)
{
  LsImport import = { .model = *m, .strategy = *s }; /* theirs: nothing of it is freed */
  LaunchJob job = { .import = &import };
  ProgramRun run;
  start_written (&run, map, &job, NULL);
  g_auto (ProgramValue) v = program_eval (&run, expression);
  char *text = program_value_is_none (&v) ? NULL : program_value_text (&v);
  program_run_clear (&run);
  return text;
}

void
program_check_written (const char *name, Emit *e)
{
  const ProgramMap *map = program_doors->map_get (name);
  LsImport import = { .model = *e->m, .strategy = *e->s };
  LaunchJob job = { .import = &import };
  ProgramRun run;
  if (!map) {
    g_autofree char *why = g_strdup_printf ("your own map of %s is wrong: see lockstep check", name);
    program_refuse_written (e, "--emit", why);
    return;
  }
  start_written (&run, map, &job, e);
  program_doors->run_rules (&run, program_entry (map, "writes", "rules"));
  program_run_clear (&run);
}
