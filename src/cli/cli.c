#include "cli/cli.h"

#include <math.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

gboolean
cli_print (const char *text, GError **error)
{
  if (fputs (text, stdout) == EOF || fflush (stdout) == EOF || ferror (stdout)) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "cannot write to stdout: %s", g_strerror (errno));
    return FALSE;
  }
  return TRUE;
}

void
cli_warn (const char *message)
{
  fprintf (stderr, "warning: %s\n", message);
}

void
cli_note (const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (**line)
      fprintf (stderr, "note: %s\n", *line);
}

gboolean
cli_report_fit (const LsResult *result, gboolean is_required, const char *note, GError **error)
{
  g_autoptr (GError) misfit = NULL;
  if (ls_result_check_fit (result, &misfit))
    return TRUE;
  if (is_required) {
    g_propagate_error (error, g_steal_pointer (&misfit));
    return FALSE;
  }
  cli_warn (misfit->message);
  if (note)
    cli_note (note);
  return TRUE;
}

static GOptionContext *
new_context (const GOptionEntry *entries, gpointer group_data)
{
  GOptionContext *context = g_option_context_new (NULL);
  g_option_context_set_help_enabled (context, FALSE);
  GOptionGroup *group = g_option_group_new ("main", "", "", group_data, NULL);
  g_option_group_add_entries (group, entries);
  g_option_context_set_main_group (context, group);
  return context;
}

/* --- what GOption leaves undone ---------------------------------------------------------- */

/* Whether "-j8" is the short option -j with its value. */
static gboolean
has_attached_value (const char *arg, const GOptionEntry *entries)
{
  if (arg[0] != '-' || arg[1] == '-' || arg[1] == '\0' || arg[2] == '\0')
    return FALSE;
  for (const GOptionEntry *e = entries; e->long_name; e++)
    if (e->short_name == arg[1])
      return e->arg != G_OPTION_ARG_NONE && !(e->flags & G_OPTION_FLAG_NO_ARG);
  return FALSE;
}

/* The arguments with "-j8" as "-j", "8", NULL-terminated, for as long as the program runs. */
static GPtrArray *
split_short (int argc, char *const *argv, const GOptionEntry *entries)
{
  static GStringChunk *made;
  static GPtrArray *args;
  made = g_string_chunk_new (16);
  args = g_ptr_array_new ();
  gboolean has_ended = FALSE;
  for (int i = 0; i < argc; i++) {
    has_ended = has_ended || strcmp (argv[i], "--") == 0;
    if (i == 0 || has_ended || !has_attached_value (argv[i], entries)) {
      g_ptr_array_add (args, argv[i]);
      continue;
    }
    g_ptr_array_add (args, g_string_chunk_insert_len (made, argv[i], 2));
    g_ptr_array_add (args, argv[i] + 2);
  }
  g_ptr_array_add (args, NULL);
  return args;
}

/* A knob without an option of its own; NULL: name is none. */
static const char *
key_to_set (const char *name)
{
  g_autofree char *key = g_strdelimit (g_strdup (name), "-", '_');
  guint n;
  const LsKnob *knobs = ls_knobs (&n);
  for (guint i = 0; i < n; i++)
    if (!knobs[i].flag && strcmp (knobs[i].key, key) == 0)
      return knobs[i].key;
  return NULL;
}

/* "Unknown option --modle", with the option that was probably meant. */
static void
report_unknown (const char *message, const CliHelp *help, GError **error)
{
  const char *typed = strstr (message, "--");
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (const GOptionEntry *e = help->entries; e->long_name; e++)
    g_ptr_array_add (names, (gpointer) e->long_name);
  g_ptr_array_add (names, NULL);
  const char *key = typed && help->job != CLI_NO_JOB ? key_to_set (typed + 2) : NULL;
  const char *near = typed ? ls_nearest_word (typed + 2, (const char *const *) names->pdata) : NULL;
  if (key)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
                 "unknown option %s; it is a knob without one: --set %s=VALUE", typed, key);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, near ? "%c%s; did you mean --%s?" : "%c%s",
                 g_ascii_tolower (*message), message + 1, near);
}

static void
report_parse (const GError *problem, const CliHelp *help, GError **error)
{
  if (g_error_matches (problem, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION))
    report_unknown (problem->message, help, error);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%c%s", g_ascii_tolower (*problem->message),
                 problem->message + 1);
}

/* --- help ---------------------------------------------------------------------------------------- */

static gboolean
is_help (const char *arg)
{
  return strcmp (arg, "--help") == 0 || strcmp (arg, "-h") == 0;
}

/* Whether help was asked for, wherever that stands; *ret_topic: borrowed, NULL: without a topic. */
static gboolean
find_help (const GPtrArray *args, const char **ret_topic)
{
  for (guint i = 1; i < args->len - 1; i++) {
    const char *arg = args->pdata[i], *next = args->pdata[i + 1];
    if (strcmp (arg, "--") == 0)
      return FALSE;
    *ret_topic = g_str_has_prefix (arg, "--help=") ? arg + strlen ("--help=")
        : next && *next != '-'                     ? next
                                                   : NULL;
    if (is_help (arg) || g_str_has_prefix (arg, "--help="))
      return TRUE;
  }
  return FALSE;
}

/* Without topics what follows may be a file. */
static gboolean
print_help (const CliHelp *help, const char *topic, GError **error)
{
  if (help->job == CLI_NO_JOB && g_strcmp0 (topic, "all") != 0)
    topic = NULL;
  g_autofree char *text = cli_help_text (help, topic, error);
  return text && cli_print (text, error);
}

gboolean
cli_parse (int *argc, char ***argv, const CliHelp *help, const GOptionEntry *entries, gpointer group_data,
           gboolean *ret_done, GError **error)
{
  CliHelp shown = *help;
  shown.entries = entries;
  const GPtrArray *args = split_short (*argc, *argv, entries);
  const char *topic;
  *ret_done = find_help (args, &topic);
  if (*ret_done)
    return print_help (&shown, topic, error);

  g_autoptr (GOptionContext) context = new_context (entries, group_data);
  g_autoptr (GError) problem = NULL;
  *argc = (int) args->len - 1;
  *argv = (char **) args->pdata;
  if (g_option_context_parse (context, argc, argv, &problem))
    return TRUE;
  if (problem->domain == LS_ERROR)
    g_propagate_error (error, g_steal_pointer (&problem));
  else
    report_parse (problem, &shown, error);
  return FALSE;
}

gboolean
cli_parse_percent (const char *flag, const char *text, double most, double *pct, GError **error)
{
  char *end = NULL;
  double value = text ? g_ascii_strtod (text, &end) : *pct;
  if (text && (end == text || *end != '\0' || !isfinite (value) || value < 0)) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s: expected a percentage of 0 or more; got \"%s\"",
                 flag, text);
    return FALSE;
  }
  if (text && value > most) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s: expected a percentage up to %g; got \"%s\"", flag,
                 most, text);
    return FALSE;
  }
  *pct = value;
  return TRUE;
}
