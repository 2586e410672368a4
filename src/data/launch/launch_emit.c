/* data/launch/launch_emit.c — the programs for which launch files are written, and how somebody's files
 * change for another configuration, in the words of their program. */
#include <lockstep/error.h>
#include <stdbool.h>
#include <string.h>

#include "base/diag.h"
#include "base/list.h"
#include "base/suggest.h"
#include "data/jobs/emit.h"
#include "data/jobs/imported.h"
#include "data/jobs/job_files.h"
#include "data/launch/launch_words.h"
#include "data/launch/option_table.h"
#include "data/launch/program/program_map.h"
#include "data/text/read_file.h"
#include "data/text/toml.h"

/* --- the programs -------------------------------------------------------------------------------- */

static const char *const names[] = { "megatron", "torchtitan", "deepspeed", NULL };

/* Of those names: what a fragment says is in the map, which reads it too. */
typedef struct {
  const char *program;
  OptionSyntax syntax;
  const char *array; /* of a shell, that has the arguments; NULL: of another syntax */
} EmitTarget;

static const EmitTarget targets[] = { { "Megatron-LM", OPTION_ARGUMENTS, "MEGATRON_ARGS" },
                                      { "torchtitan", OPTION_TOML, NULL },
                                      { "DeepSpeed", OPTION_JSON, NULL } };

const char *const *
ls_emit_targets (void)
{
  return names;
}

static const EmitTarget *
find (const char *name)
{
  for (guint i = 0; names[i]; i++)
    if (g_str_equal (names[i], name))
      return &targets[i];
  return NULL;
}

gboolean
ls_emit_check_target (const char *target, GError **error)
{
  if (find (target))
    return TRUE;
  g_autofree char *known = g_strjoinv (", ", (char **) ls_emit_targets ());
  g_autofree char *hint = ls_did_you_mean (target, ls_emit_targets ());
  return ls_fail (error, LS_ERROR_USAGE, "--emit: expected one of %s; got \"%s\"%s", known, target, hint);
}

/* The target, if its program has all of the job; NULL: *error is set. */
static const EmitTarget *
target_of (const LsEmitJob *job, const char *name, GString *notes, GError **error)
{
  g_autoptr (LsDiagList) refusals = error ? ls_diag_list_new () : ls_diag_list_new_counting ();
  Emit e = { job->model, job->strategy, job->title, refusals, notes, .asks_whether = !error };
  const EmitTarget *target = find (name);
  if (!ls_emit_check_target (name, error))
    return NULL;
  if (job->order)
    program_refuse_written (&e, "--order", "the order of a file; a schedule has a name there");
  program_check_written (name, &e);
  if (!error)
    return ls_diag_list_n (refusals) == 0 ? target : NULL;
  if (ls_diag_list_to_error (refusals, error))
    return target;
  g_prefix_error (error, "%s cannot express this job:\n", target->program);
  return NULL;
}

gboolean
ls_emit_check (const LsEmitJob *job, const char *target, GError **error)
{
  g_autoptr (GString) notes = g_string_new (NULL);
  return target_of (job, target, notes, error) != NULL;
}

char *
ls_emit (const LsEmitJob *job, const char *target, char **ret_notes, GError **error)
{
  g_autoptr (GString) notes = g_string_new (NULL);
  const EmitTarget *t = target_of (job, target, notes, error);
  if (!t)
    return NULL;
  *ret_notes = g_strdup (notes->str);
  GString *out = g_string_new (NULL);
  if (t->syntax != OPTION_JSON)
    g_string_append_printf (out, "# %s\n", job->title);
  if (t->array)
    g_string_append_printf (out, "%s=(\n", t->array);
  option_write (program_table_find (target), t->syntax, job->model, job->strategy, out);
  if (t->array)
    g_string_append (out, ")\n");
  return g_string_free (out, FALSE);
}

/* --- where an option stands ------------------------------------------------------------------------- */

#define MAX_BYTES ((size_t) 4 << 20)

/* The lines that a pattern fits. */
typedef struct {
  guint n;
  const char *file; /* of the last of them */
  unsigned line;
  char *through; /* what the first group is in that, owned; NULL: nothing */
} Place;

/* A name as a pattern, in which '_' and '-' are the same. */
static char *
name_pattern (const char *name)
{
  GString *pattern = g_string_new (NULL);
  for (; *name; name++) {
    g_autofree char *one = g_regex_escape_string (name, 1);
    g_string_append (pattern, strchr ("-_", *name) ? "[-_]" : one);
  }
  return g_string_free (pattern, FALSE);
}

/* files: char *, paths. A line counts once. */
static Place
look (const GPtrArray *files, const char *pattern)
{
  Place x = { 0 };
  g_autoptr (GRegex) regex = g_regex_new (pattern, G_REGEX_RAW | G_REGEX_MULTILINE | G_REGEX_NEWLINE_LF,
                                          G_REGEX_MATCH_DEFAULT, NULL);
  for (guint i = 0; regex && i < files->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GMatchInfo) match = NULL;
    size_t n;
    g_autofree char *text = ls_read_file (files->pdata[i], MAX_BYTES, &n, diags);
    bool fits = text && g_regex_match (regex, text, G_REGEX_MATCH_DEFAULT, &match);
    for (int start; fits; fits = g_match_info_next (match, NULL)) {
      g_match_info_fetch_pos (match, 0, &start, NULL);
      x.n++;
      x.file = files->pdata[i];
      x.line = 1;
      for (int k = 0; k < start; k++)
        x.line += text[k] == '\n';
      g_free (x.through);
      x.through = g_match_info_fetch (match, 1);
      if (x.through && !*x.through)
        g_clear_pointer (&x.through, g_free);
    }
  }
  return x;
}

/* Of an option, "--tp-size" or "training.seq_len", and its value: the one line of the files that says it, by
 * its name and behind that its value, or a variable of a shell; of this, "TP=8" or "export TP=${TP:-8}", the
 * line that sets it, if there is one. Nothing where several may be meant. */
static void
find_place (const GPtrArray *files, LsLaunchChange *c)
{
  const char *dot = strrchr (c->option, '.');
  g_autofree char *name = name_pattern (dot ? dot + 1 : c->option + strspn (c->option, "-")),
                  *value = g_regex_escape_string (c->before, -1),
                  *begins = g_strdup_printf ("[ \\t=:\"'.]*+%s(?![\\w-])", value),
                  *line = g_strdup_printf ("^(?![ \\t]*#)(?>.*?(?<![\\w-])-*%s(?![\\w-]))"
                                           "(?:%s%s[ \\t=\"']*\\$\\{?(\\w+))%s",
                                           name, *value ? begins : "", *value ? "|" : "", *value ? "" : "?");
  Place x = look (files, line), y = { 0 };
  if (x.n == 1 && x.through) {
    g_autofree char *sets
        = g_strdup_printf ("^[ \\t]*(?:export )?%s=[\"']*+(?:(?=\\$).*?:-)?+%s", x.through, begins);
    y = look (files, sets);
  }
  const Place *found = y.n == 1 ? &y : &x;
  if (x.n == 1) {
    c->file = g_strdup (found->file);
    c->line = found->line;
    c->through = y.n == 1 ? g_steal_pointer (&x.through) : NULL;
  }
  g_free (x.through);
}

/* --- fragments ------------------------------------------------------------------------------------- */

/* JSON, TOML or an array of options, "NAME=(", options, ")". */
static LaunchWords *
words_of (const char *text)
{
  LaunchWords *w = launch_words_new ();
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const char *array = strstr (text, "=(\n");
  g_auto (GStrv) words = NULL;
  gint n = 0;
  g_autoptr (cJSON) tree = array ? NULL
      : *text == '{'             ? cJSON_Parse (text)
                                 : ls_toml_parse (text, strlen (text), "", diags);
  launch_words_add_tree (w, tree);
  if (array && g_shell_parse_argv (array + 2, &n, &words, NULL))
    launch_words_add (w, words, (guint) n - 1); /* without the ")" */
  return w;
}

/* --- the user's options ---------------------------------------------------------------------------- */

static bool
is_same_name (const char *a, const char *b)
{
  g_autofree char *one = import_bare_name (a, strlen (a)), *other = import_bare_name (b, strlen (b));
  return strcmp (one, other) == 0;
}

static const LsRemark *
option_named (const LsImported *import, const char *name)
{
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *o = &g_array_index (import->remarks, LsRemark, i);
    if (o->kind == LS_REMARK_OPTION && is_same_name (o->text, name))
      return o;
  }
  return NULL;
}

/* What an option decides, a key; NULL: not it alone. */
static const char *
key_of (const LsImported *import, const char *name)
{
  const OptionRow *row = import->table ? option_find (import->table, name + strspn (name, "-")) : NULL;
  return row ? row->key : NULL;
}

typedef struct {
  const LsImported *import;
  LaunchWords *now, *wanted; /* now: NULL if it cannot be written */
  GPtrArray *changes;
  GHashTable *told; /* LsRemark */
} Work;

static void
change_free (gpointer change)
{
  LsLaunchChange *c = change;
  g_free (c->option);
  g_free (c->before);
  g_free (c->after);
  g_free (c->file);
  g_free (c->through);
  g_free (c);
}

/* user: the option in the file; NULL: it is not there, or `before` in other words. */
static void
add_change (Work *w, const LsRemark *user, const char *option, const char *before, const char *after)
{
  LsLaunchChange *c = g_new0 (LsLaunchChange, 1);
  c->option = g_strdup (user ? user->text : option);
  c->before = g_strdup (!user ? before : user->value ? user->value : "");
  c->after = g_strdup (after);
  if (user)
    find_place (w->import->files, c);
  if (user)
    g_hash_table_add (w->told, (gpointer) user);
  g_ptr_array_add (w->changes, c);
}

/* Takes out options of the file that decide what another option does now. */
static void
take_out_others (Work *w, const char *name)
{
  const char *key = key_of (w->import, name);
  for (guint i = 0; key && i < w->import->remarks->len; i++) {
    const LsRemark *o = &g_array_index (w->import->remarks, LsRemark, i);
    if (o->kind == LS_REMARK_OPTION && !is_same_name (o->text, name) && g_strcmp0 (o->key, key) == 0
        && !g_hash_table_contains (w->told, o)
        && !launch_words_find (w->wanted, o->text + strspn (o->text, "-")))
      add_change (w, o, NULL, NULL, NULL);
  }
}

/* Nothing where the file says so already; of a job that cannot be written as it is, where what is known of it
 * does, by another option or by a default. */
static void
set_option (Work *w, const LaunchOption *wanted)
{
  const LaunchOption *now = w->now ? launch_words_find (w->now, wanted->name) : NULL;
  g_autofree char *after = ls_joined (wanted->values, 0, " "),
                  *before = now ? ls_joined (now->values, 0, " ") : NULL;
  if (now && strcmp (before, after) == 0)
    return;
  const LsRemark *user = option_named (w->import, wanted->name);
  const OptionRow *row = !w->now && w->import->table ? option_find (w->import->table, wanted->name) : NULL;
  bool is_model = row && row->kind == OPTION_MODEL;
  g_autofree char *known = !row || !row->key ? NULL
      : is_model                             ? ls_import_value (w->import->model, ls_model_fields, row->key)
                 : ls_import_value (w->import->strategy, ls_strategy_fields, row->key),
                  *value = !known || is_model ? g_strdup (after)
      : row->on                               ? g_strdup (row->on)
                                              : ls_import_spelled (ls_strategy_fields, row->key, after);
  if ((row && !row->key && row->kind == OPTION_IGNORED) || (known && g_strcmp0 (known, value) == 0)
      || (user && g_strcmp0 (user->value ? user->value : "", after) == 0))
    return;
  take_out_others (w, wanted->name);
  add_change (w, user, wanted->written, NULL, after);
}

/* Whether another option of what is wanted decides the same, or one of the file that was told. */
static bool
is_decided (const Work *w, const char *name)
{
  const char *key = key_of (w->import, name);
  for (guint i = 0; key && i < w->wanted->options->len; i++)
    if (g_strcmp0 (key_of (w->import, ((LaunchOption *) w->wanted->options->pdata[i])->name), key) == 0)
      return true;
  for (guint i = 0; key && i < w->changes->len; i++)
    if (g_strcmp0 (key_of (w->import, ((LsLaunchChange *) w->changes->pdata[i])->option), key) == 0)
      return true;
  return false;
}

static void
take_out (Work *w, const LaunchOption *now)
{
  if (launch_words_find (w->wanted, now->name))
    return;
  const LsRemark *user = option_named (w->import, now->name);
  bool is_off = g_hash_table_contains (w->wanted->off, now->name);
  guint n = w->changes->len;
  if (user && g_hash_table_contains (w->told, user))
    return;
  if (user || is_off)
    add_change (w, user, now->written, NULL, is_off ? "false" : NULL);
  else
    take_out_others (w, now->name);
  g_autofree char *before = ls_joined (now->values, 0, " ");
  if (w->changes->len == n && !is_decided (w, now->name)) /* in words that are not known to be of it */
    add_change (w, NULL, now->written, before, NULL);
}

GPtrArray *
ls_launch_changes (const LsImported *import, const char *now, const char *wanted)
{
  Work w = { import, now ? words_of (now) : NULL, words_of (wanted), NULL, NULL };
  w.changes = g_ptr_array_new_with_free_func (change_free);
  w.told = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < w.wanted->options->len; i++)
    set_option (&w, w.wanted->options->pdata[i]);
  for (guint i = 0; w.now && i < w.now->options->len; i++)
    take_out (&w, w.now->options->pdata[i]);
  g_hash_table_unref (w.told);
  launch_words_free (w.now);
  launch_words_free (w.wanted);
  return w.changes;
}
