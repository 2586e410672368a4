#include "cli/cli.h"

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
new_context (const CliHelp *help, const GOptionEntry *entries, gboolean *wants_help, gpointer group_data)
{
  const GOptionEntry help_entry[] = {
    { "help", 'h', 0, G_OPTION_ARG_NONE, wants_help, "Show this and exit", NULL },
    G_OPTION_ENTRY_NULL,
  };
  GOptionContext *context = g_option_context_new (NULL);
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_set_summary (context, help->summary);
  g_option_context_set_description (context, help->description);
  GOptionGroup *group = g_option_group_new ("main", "", "", group_data, NULL);
  g_option_group_add_entries (group, entries);
  g_option_group_add_entries (group, help_entry);
  g_option_context_set_main_group (context, group);
  return context;
}

/* GOption's text with a usage line of our own, which does not depend on how the
 * program was called. */
static char *
help_text (GOptionContext *context, const CliHelp *help)
{
  g_autofree char *text = g_option_context_get_help (context, TRUE, NULL);
  const char *rest = strstr (text, help->summary);
  return g_strdup_printf ("Usage: lockstep %s\n\n%s", help->usage, rest ? rest : text);
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

/* "Unknown option --modle", with the option that was probably meant. */
static void
report_unknown (const char *message, const GOptionEntry *entries, GError **error)
{
  const char *typed = strstr (message, "--");
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (const GOptionEntry *e = entries; e->long_name; e++)
    g_ptr_array_add (names, (gpointer) e->long_name);
  g_ptr_array_add (names, NULL);
  const char *near = typed ? ls_nearest_word (typed + 2, (const char *const *) names->pdata) : NULL;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, near ? "%c%s; did you mean --%s?" : "%c%s", g_ascii_tolower (*message), message + 1, near);
}

gboolean
cli_parse (int *argc, char ***argv, const CliHelp *help, const GOptionEntry *entries,
           gpointer group_data, gboolean *ret_done, GError **error)
{
  gboolean wants_help = FALSE;
  g_autoptr (GOptionContext) context = new_context (help, entries, &wants_help, group_data);
  g_autoptr (GError) problem = NULL;

  const GPtrArray *args = split_short (*argc, *argv, entries);
  *argc = (int) args->len - 1;
  *argv = (char **) args->pdata;
  if (!g_option_context_parse (context, argc, argv, &problem)) {
    if (problem->domain == LS_ERROR)
      g_propagate_error (error, g_steal_pointer (&problem));
    else if (g_error_matches (problem, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION))
      report_unknown (problem->message, entries, error);
    else
      g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%c%s", g_ascii_tolower (*problem->message),
                   problem->message + 1);
    return FALSE;
  }
  *ret_done = wants_help;
  if (!wants_help)
    return TRUE;
  g_autofree char *text = help_text (context, help);
  return cli_print (text, error);
}
