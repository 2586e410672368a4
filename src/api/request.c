#include "api/request.h"

#include <math.h>
#include <string.h>

#include "api/commands.h"
#include "base/list.h"
#include "base/near.h"
#include "base/team.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/machines/machines.h"
#include "data/text/field.h"
#include "data/text/write_file.h"
#include "job/job_from.h"
#include "show/draw/drawing.h"
#include "show/plot/plots.h"

typedef struct {
  char *value;
  const LsOption *option;
} Given;

struct LsRequest {
  const Command *command;
  GArray *given; /* Given, in order */
  char *debug;   /* NULL: none      */
  LsProgress progress;
  const gint *stop;
  LsTeam *team;
};

LsRequest *
ls_request_of (const Command *command)
{
  LsRequest *r = g_new0 (LsRequest, 1);
  r->command = command;
  r->given = ls_list_new (sizeof (Given), ls_clear_text);
  return r;
}

void
ls_request_free (LsRequest *r)
{
  if (!r)
    return;
  g_array_unref (r->given);
  g_free (r->debug);
  g_free (r);
}

/* --- what is set ---------------------------------------------------------------------------------- */

/* In the words of a job, which knows what was probably meant, unless it is a knob that the command does not
 * take. */
static gboolean
refuse_key (const LsRequest *r, const char *key, GError **error)
{
  const char *name = r->command->shown.name;
  if (r->command->shown.job == LS_JOB_NONE || ls_field_find (ls_job_fields, key)
      || ls_field_find (ls_strategy_fields, key))
    return ls_fail (error, LS_ERROR_USAGE, "%s has no option \"%s\"", name, key);
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_job_spec_set (&spec, key, "", diags);
  ls_job_spec_clear (&spec);
  return ls_diag_list_to_error (diags, error);
}

gboolean
ls_request_set (LsRequest *r, const char *key, const char *value, GError **error)
{
  g_return_val_if_fail (r && key, FALSE);
  const LsOption *option = command_option (&r->command->shown, key);
  if (!option)
    return refuse_key (r, key, error);
  gboolean is_own_switch = !option->topic && !option->argument && !option->is_positional;
  if (is_own_switch && value && strcmp (value, "0") != 0 && strcmp (value, "1") != 0)
    return ls_fail (error, LS_ERROR_USAGE, "--%s: expected 0 or 1; got \"%s\"", option->key, value);
  if (option->argument && !value)
    return ls_fail (error, LS_ERROR_USAGE, "--%s: expected %s", option->key, option->argument);
  ls_list_add (r->given, &(Given) { g_strdup (value ? value : "1"), option });
  return TRUE;
}

void
ls_request_set_debug (LsRequest *r, const char *text)
{
  g_return_if_fail (r);
  g_free (r->debug);
  r->debug = g_strdup (text);
}

void
ls_request_set_progress (LsRequest *r, LsProgressFunc progress, gpointer data)
{
  g_return_if_fail (r);
  r->progress.func = progress;
  r->progress.data = data;
}

void
ls_request_set_best (LsRequest *r, LsBestFunc best, gpointer data)
{
  g_return_if_fail (r);
  r->progress.best = best;
  r->progress.best_data = data;
}

void
ls_request_set_stop (LsRequest *r, const gint *stop)
{
  g_return_if_fail (r);
  r->stop = stop;
}

void
ls_request_set_team (LsRequest *r, LsTeam *team)
{
  g_return_if_fail (r);
  r->team = team;
}

LsProgress
ls_request_progress (const LsRequest *r)
{
  return r->progress;
}

const Command *
ls_request_command (const LsRequest *r)
{
  return r->command;
}

void
ls_request_name_files (const LsRequest *r)
{
  ls_data_are_near ();
  for (guint i = 0; i < r->given->len; i++) {
    const char *value = g_array_index (r->given, Given, i).value;
    g_auto (GStrv) words = g_strsplit_set (value, " \t\n,=:+", -1); /* of a case, "file:PATH", "A+B" */
    ls_near_add (value);
    for (char **word = words; *word; word++)
      ls_near_add (*word);
  }
}

const gint *
ls_request_stop (const LsRequest *r)
{
  return r->stop;
}

LsTeam *
ls_request_team (const LsRequest *r)
{
  return r->team;
}

/* As it is typed: a knob without a flag of its own is set by its key. */
static void
append_given (GString *text, const Given *g)
{
  const LsOption *o = g->option;
  const char *plain = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_./,:=+@%";
  bool is_plain = *g->value && g->value[strspn (g->value, plain)] == '\0';
  g_autofree char *value = is_plain ? g_strdup (g->value) : g_shell_quote (g->value);
  if (o->is_positional)
    g_string_append_printf (text, " %s", value);
  else if (!o->flag)
    g_string_append_printf (text, " --set %s=%s", o->key, value);
  else if (!o->argument && strcmp (g->value, "1") == 0)
    g_string_append_printf (text, " --%s", o->flag);
  else
    g_string_append_printf (text, " --%s %s", o->flag, value);
}

char *
ls_request_to_text (const LsRequest *r)
{
  GString *text = g_string_new ("lockstep ");
  g_string_append (text, r->command->shown.name);
  for (guint i = 0; i < r->given->len; i++) {
    const Given *g = &g_array_index (r->given, Given, i);
    if (strcmp (g->option->key, "report") != 0)
      append_given (text, g);
  }
  return g_string_free (text, FALSE);
}

void
ls_request_note_again (const LsRequest *r, GPtrArray *notes)
{
  for (guint i = 1; i < r->given->len; i++) {
    const Given *last = &g_array_index (r->given, Given, i);
    for (guint k = 0; k < i && !last->option->is_repeated; k++) {
      const Given *g = &g_array_index (r->given, Given, k);
      if (g->option != last->option || strcmp (g->value, last->value) == 0)
        continue;
      g_autoptr (GString) text = g_string_new (NULL);
      append_given (text, g);
      g_string_append (text, " is not used:");
      append_given (text, last);
      ls_note (notes, "%s comes after it", text->str + 1);
    }
  }
}

/* --- the command's own options -------------------------------------------------------------------- */

static void
append_texts (const LsRequest *r, const char *key, GPtrArray *texts)
{
  const guint n_before = texts->len;
  for (guint i = 0; i < r->given->len; i++) {
    const Given *g = &g_array_index (r->given, Given, i);
    if (g_strcmp0 (g->option->key, key) != 0)
      continue;
    if (!g->option->is_repeated)
      g_ptr_array_set_size (texts, (gint) n_before);
    g_ptr_array_add (texts, g->value);
  }
}

const LsOption *
ls_request_given (const LsRequest *r, guint i, const char **ret_value)
{
  const Given *g = i < r->given->len ? &g_array_index (r->given, Given, i) : NULL;
  *ret_value = g ? g->value : NULL;
  return g ? g->option : NULL;
}

const char **
ls_request_texts (const LsRequest *r, const char *key)
{
  return ls_request_paths (r, key, NULL);
}

const char **
ls_request_paths (const LsRequest *r, const char *key, const char *other)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new ();
  append_texts (r, key, paths);
  append_texts (r, other, paths);
  if (paths->len == 0)
    return NULL;
  g_ptr_array_add (paths, NULL);
  return (const char **) (gpointer) g_ptr_array_steal (paths, NULL);
}

const char *
ls_request_text (const LsRequest *r, const char *key)
{
  const char *text = NULL;
  for (guint i = 0; i < r->given->len; i++) {
    const Given *g = &g_array_index (r->given, Given, i);
    if (strcmp (g->option->key, key) == 0)
      text = g->value;
  }
  return text;
}

gboolean
ls_request_is_on (const LsRequest *r, const char *key)
{
  return g_strcmp0 (ls_request_text (r, key), "1") == 0;
}

static gboolean
is_given (const LsRequest *r, const char *key)
{
  const char *text = ls_request_text (r, key);
  return text && (strcmp (text, "0") != 0 || command_option (&r->command->shown, key)->argument);
}

gboolean
ls_request_has_any (const LsRequest *r, const char *const *keys)
{
  while (*keys && !is_given (r, *keys))
    keys++;
  return *keys != NULL;
}

static gboolean
has_others (const LsRequest *r)
{
  for (guint i = 1; i < r->given->len; i++)
    if (g_array_index (r->given, Given, i).option != g_array_index (r->given, Given, 0).option)
      return TRUE;
  return FALSE;
}

/* Whether a term of a rule (commands.txt) holds. */
static gboolean
holds (const LsRequest *r, const char *term)
{
  gboolean is_contrary = *term == '!', has_one = FALSE;
  g_auto (GStrv) keys = g_strsplit (term + is_contrary, "|", -1);
  for (char **key = keys; *key; key++) {
    g_auto (GStrv) pair = g_strsplit (*key, "=", 2);
    has_one |= pair[1]                 ? g_strcmp0 (ls_request_text (r, pair[0]), pair[1]) == 0
        : strcmp (*key, "knobs") == 0  ? ls_request_has_knobs (r)
        : strcmp (*key, "others") == 0 ? has_others (r)
                                       : is_given (r, *key);
  }
  return has_one != is_contrary;
}

gboolean
ls_request_check_rules (const LsRequest *r, GError **error)
{
  for (char **rule = r->command->rules; rule && *rule; rule++) {
    g_auto (GStrv) parts = g_strsplit (*rule, ": ", 2);
    g_auto (GStrv) terms = g_strsplit (parts[0], " ", -1);
    char **term = terms;
    while (*term && holds (r, *term))
      term++;
    if (!*term)
      return ls_request_refuse (parts[1], error);
  }
  return TRUE;
}

gboolean
ls_request_number (const LsRequest *r, const char *key, gint64 min, gint64 max, gint64 *value, GError **error)
{
  const char *text = ls_request_text (r, key);
  guint64 count;
  bool ok = text && ls_parse_count (text, &count, NULL) && count <= (guint64) max && (gint64) count >= min;
  if (ok)
    *value = (gint64) count;
  if (!text || ok)
    return TRUE;
  g_autofree char *range = max == G_MAXINT64
      ? g_strdup_printf ("%" G_GINT64_FORMAT " or more", min)
      : g_strdup_printf ("%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, min, max);
  return ls_fail (error, LS_ERROR_USAGE, "--%s: expected %s; got \"%s\"", key, range, text);
}

GArray *
ls_request_ranks (const LsRequest *r, const char *key, guint most, const char *expected, GError **error)
{
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  const char *text = ls_request_text (r, key);
  g_auto (GStrv) words = g_strsplit (text ? text : "", ",", (gint) most + 1);
  for (guint i = 0; words[i]; i++) {
    guint64 rank;
    if (i == most || !g_ascii_string_to_unsigned (words[i], 10, 0, UINT32_MAX - 1, &rank, NULL))
      return ls_fail_null (error, LS_ERROR_USAGE, "--%s: expected %s; got \"%s\"", key, expected, text);
    uint32_t value = (uint32_t) rank;
    g_array_append_val (ranks, value);
  }
  return g_steal_pointer (&ranks);
}

gboolean
ls_request_threads (const LsRequest *r, guint *ret_n, GError **error)
{
  gint64 n = 0;
  gboolean ok = ls_request_number (r, "threads", 0, 1024, &n, error);
  *ret_n = (guint) n;
  return ok;
}

gboolean
ls_request_percent (const LsRequest *r, const char *key, double max, double *value, GError **error)
{
  const char *text = ls_request_text (r, key);
  char *end = NULL;
  double read = text ? g_ascii_strtod (text, &end) : *value;
  gboolean is_number = !text || (end != text && *end == '\0' && isfinite (read) && read >= 0);
  if (is_number && (!text || read <= max)) {
    *value = read;
    return TRUE;
  }
  g_autofree char *of = is_number ? g_strdup_printf ("up to %g", max) : g_strdup ("of 0 or more");
  return ls_fail (error, LS_ERROR_USAGE, "--%s: expected a percentage %s; got \"%s\"", key, of, text);
}

gboolean
ls_request_set_own (const LsRequest *r, LsSetFunc set, gpointer target, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const GPtrArray *keys = r->command->set;
  for (guint i = 0; keys->pdata[i]; i++) {
    g_autofree const char **values = ls_request_texts (r, keys->pdata[i]);
    for (guint k = 0; values && values[k]; k++)
      set (target, keys->pdata[i], values[k], diags);
  }
  return ls_diag_list_to_error (diags, error);
}

/* --- the job -------------------------------------------------------------------------------------- */

static gboolean
is_of_job (const LsRequest *r, const LsOption *o)
{
  return o->topic || g_strv_contains ((const char *const *) r->command->job_too->pdata, o->key);
}

gboolean
ls_request_has_knobs (const LsRequest *r)
{
  for (guint i = 0; i < r->given->len; i++)
    if (g_array_index (r->given, Given, i).option->topic)
      return TRUE;
  return FALSE;
}

/* What sets defaults comes first, and the model for which launch files are read. */
static const char *const files[] = { "for", "software", "model", "from", "strategy", NULL };

/* How many GPUs the nodes have that are asked for, newly allocated; NULL: that many are not what is asked. */
static char *
gpus_of_nodes (const LsRequest *r)
{
  const char *nodes = ls_request_text (r, "nodes"), *cluster = ls_request_text (r, "cluster");
  bool is_size = nodes && cluster && !ls_request_text (r, "gpus") && !ls_request_text (r, "dp");
  guint64 n;
  LsClusterSpec spec;
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  if (!is_size || !g_ascii_string_to_unsigned (nodes, 10, 1, G_MAXUINT16, &n, NULL)
      || !ls_cluster_load (cluster, &spec, unheard))
    return NULL;
  bool is_uneven = spec.others || ls_cluster_traits (&spec)->is_slice;
  char *gpus = is_uneven ? NULL : g_strdup_printf ("%" G_GUINT64_FORMAT, n * spec.gpus_per_node);
  ls_cluster_spec_clear (&spec);
  return gpus;
}

/* Options of the command line count among those of the files of a job. */
static void
append_known (const LsRequest *r, GString *lines)
{
  for (guint i = 0; i < r->given->len; i++) {
    const Given *g = &g_array_index (r->given, Given, i);
    if (g->option->topic)
      ls_job_add_known (lines, g->option->key, g->value);
  }
  g_autofree char *gpus = gpus_of_nodes (r);
  if (gpus)
    ls_job_add_known (lines, "gpus", gpus);
}

/* Whether what is given by that key is of the job: in some commands --from is a job for each file. */
static gboolean
is_given_of_job (const LsRequest *r, const char *key)
{
  for (guint i = 0; i < r->given->len; i++) {
    const LsOption *o = g_array_index (r->given, Given, i).option;
    if (strcmp (o->key, key) == 0 && is_of_job (r, o))
      return TRUE;
  }
  return FALSE;
}

/* All that was said, a line each; NULL: nothing. */
static char *
lines_of (const LsRequest *r, const char *key, const char *from)
{
  bool is_from = strcmp (key, "from") == 0;
  g_autofree const char **texts = !is_from || is_given_of_job (r, key) ? ls_request_texts (r, key) : NULL;
  g_autofree char *all = from && is_from ? g_strdup (from)
      : texts                            ? g_strjoinv ("\n", (char **) texts)
                                         : NULL;
  if (!all || !is_from)
    return g_steal_pointer (&all);
  GString *lines = g_string_new (all);
  append_known (r, lines);
  return g_string_free (lines, FALSE);
}

static gboolean
set_one (LsSetFunc set, gpointer target, const char *key, const char *value, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return set (target, key, value, diags) || ls_diag_list_to_error (diags, error);
}

/* from: a launch file in the place of that option's; NULL: none. */
static gboolean
set_job (const LsRequest *r, const char *from, LsSetFunc set, gpointer target, GError **error)
{
  if (r->debug && !set_one (set, target, "debug", r->debug, error))
    return FALSE;
  for (guint i = 0; files[i]; i++) {
    g_autofree char *file = lines_of (r, files[i], from);
    if (file && !set_one (set, target, files[i], file, error))
      return FALSE;
  }
  bool has_files = from || is_given_of_job (r, "from");
  g_autofree char *gpus = has_files ? gpus_of_nodes (r) : NULL;
  for (guint i = 0; i < r->given->len; i++) {
    const Given *g = &g_array_index (r->given, Given, i);
    if (is_of_job (r, g->option) && !g_strv_contains (files, g->option->key)
        && !set_one (set, target, g->option->key, g->value, error))
      return FALSE;
  }
  return !gpus || set_one (set, target, "gpus", gpus, error);
}

gboolean
ls_request_set_job (const LsRequest *r, LsSetFunc set, gpointer target, GError **error)
{
  return set_job (r, NULL, set, target, error);
}

gboolean
ls_request_set_knob (gpointer spec, const char *key, const char *value, LsDiagList *diags)
{
  return ls_job_spec_set (spec, key, value, diags);
}

gboolean
ls_request_job (const LsRequest *r, LsJobSpec *ret_spec, GError **error)
{
  return ls_request_job_of (r, NULL, ret_spec, error);
}

gboolean
ls_request_job_of (const LsRequest *r, const char *from, LsJobSpec *ret_spec, GError **error)
{
  ls_job_spec_init (ret_spec);
  return set_job (r, from, ls_request_set_knob, ret_spec, error);
}

/* --- what it writes, and how it is answered ------------------------------------------------------- */

static gboolean
check_named (const char *path, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  return name && ls_write_file_check (path, error);
}

gboolean
ls_request_leads (const LsRequest *r)
{
  return !r->team || ls_team_own_rank (r->team) == 0;
}

gboolean
ls_request_check_outputs (const LsRequest *r, GError **error)
{
  if (!ls_request_leads (r))
    return TRUE;
  for (guint i = 0; i < r->given->len; i++) {
    const Given *g = &g_array_index (r->given, Given, i);
    LsWrites writes = g->option->writes;
    if ((writes == LS_WRITES_FILE && !ls_write_file_check (g->value, error))
        || (writes == LS_WRITES_PICTURE && !ls_picture_check (g->value, error))
        || (writes == LS_WRITES_DRAWING && !ls_drawing_check (g->value, error))
        || (writes == LS_WRITES_NAMED && !check_named (g->value, error)))
      return FALSE;
  }
  return TRUE;
}

/* "csv" of run is a file. */
static gboolean
asks_for (const LsRequest *r, const char *form)
{
  const LsOption *option = command_option (&r->command->shown, form);
  return option && !option->argument && ls_request_is_on (r, form);
}

/* -1: none of them. */
static int
form_of (const char *name)
{
  static const char *const names[] = { "text", "json", "csv", "markdown" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (names[i], name) == 0)
      return (int) i;
  return -1;
}

/* Whether it is one of those that the option names: "text|json". */
static gboolean
check_format (const LsRequest *r, const char *format, GError **error)
{
  const LsOption *option = command_option (&r->command->shown, "format");
  g_auto (GStrv) words = g_strsplit (option->argument, "|", -1);
  if (g_strv_contains ((const char *const *) words, format))
    return TRUE;
  return ls_request_refuse_word ("--format", (const char *const *) words, format, error);
}

gboolean
ls_request_form (const LsRequest *r, LsForm *ret_form, GError **error)
{
  gboolean is_json = asks_for (r, "json"), is_csv = asks_for (r, "csv");
  const char *format = ls_request_text (r, "format");
  if (format && !check_format (r, format, error))
    return FALSE;
  int form = format ? form_of (format) : -1;
  *ret_form = form >= 0 ? (LsForm) form : is_json ? LS_FORM_JSON : is_csv ? LS_FORM_CSV : LS_FORM_TEXT;
  if (is_json && is_csv)
    return ls_request_refuse ("--json and --csv exclude each other", error);
  if (form >= 0 && (is_json || is_csv) && (is_json ? LS_FORM_JSON : LS_FORM_CSV) != *ret_form)
    return ls_fail (error, LS_ERROR_USAGE, "expected --%s or --format %s; got both", is_json ? "json" : "csv",
                    format);
  return TRUE;
}
