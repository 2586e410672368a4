/* lockstep — the command line: finds the command, asks, prints its error, exits. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/heap.h"

static char *
usage_text (void)
{
  GString *text = g_string_new ("Usage: lockstep COMMAND [OPTION...]\n\n"
                                "Predicts one training step of a large model on a cluster.\n\nCommands:\n");
  for (const LsCommand *const *c = ls_commands (); *c; c++)
    g_string_append_printf (text, "  %-11s %s\n", (*c)->name, (*c)->line);
  g_string_append (text,
                   "\nSee 'lockstep COMMAND --help'; 'lockstep --version' prints the version.\n"
                   "'lockstep --confine COMMAND' reads no file outside the folders of those that are named.\n"
                   "\n" CLI_EXIT_CODES "\n");
  return g_string_free (text, FALSE);
}

static const char linked_with_gsl[]
    = "The sources are under Apache-2.0. This program is linked with the GNU Scientific Library\n"
      "and is, as a whole, under the GNU General Public License, version 3 or later.\n";

static gboolean
print_version (GError **error)
{
  g_autofree char *text = g_strdup_printf ("lockstep %s\nlicence: %s\n%s", ls_version (), ls_licence (),
                                           strcmp (ls_licence (), "Apache-2.0") == 0 ? "" : linked_with_gsl);
  return cli_print (text, error);
}

/* --- one command ---------------------------------------------------------------------------------- */

static gboolean
ask (int argc, char **argv, const LsCommand *command, LsTeam *team, GError **error)
{
  g_autoptr (LsRequest) request = ls_request_new (command->name, error);
  gboolean is_done = FALSE;
  return request && cli_parse (argc, argv, command, request, &is_done, error)
      && (is_done || cli_answer (command, request, team, error));
}

/* Of all processes only the leader prints; it also gets the errors of the others. */
static gboolean
ask_together (int argc, char **argv, const LsCommand *command, GError **error)
{
  g_autoptr (GError) problem = NULL;
  LsTeam *team = ls_team_join (error);
  if (!team)
    return FALSE;
  gboolean is_leader = ls_team_rank (team) == 0;
  if (!is_leader && !freopen ("/dev/null", "w", stdout))
    fputs ("warning: cannot open /dev/null\n", stderr);
  ask (argc, argv, command, team, &problem);
  ls_team_leave (team, problem);
  if (!is_leader || !problem)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&problem));
  return FALSE;
}

/* Before anything can fail. */
static gboolean
is_of_team (int argc, char **argv, const LsCommand *command)
{
  guint n;
  const LsOption *options = ls_command_options (command, &n);
  gboolean has_mpi = FALSE, says_so = FALSE;
  for (guint i = 0; i < n; i++)
    has_mpi |= strcmp (options[i].key, "mpi") == 0;
  for (int i = 1; i < argc; i++)
    says_so |= strcmp (argv[i], "--mpi") == 0;
  return has_mpi && says_so;
}

static gboolean
dispatch (int argc, char **argv, const LsCommand **ret_command, GError **error)
{
  const char *name = argc > 1 ? argv[1] : NULL;
  if (!name) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "no command given");
    return FALSE;
  }
  if (strcmp (name, "--help") == 0 || strcmp (name, "-h") == 0 || strcmp (name, "help") == 0) {
    g_autofree char *text = usage_text ();
    return cli_print (text, error);
  }
  if (strcmp (name, "--version") == 0)
    return print_version (error);

  *ret_command = ls_command_find (name, error);
  if (!*ret_command)
    return FALSE;
  return is_of_team (argc - 1, argv + 1, *ret_command)
      ? ask_together (argc - 1, argv + 1, *ret_command, error)
      : ask (argc - 1, argv + 1, *ret_command, NULL, error);
}

/* Located diagnostics come complete; other messages get the word. */
static gboolean
says_error (const char *message)
{
  g_autofree char *first_line = g_strndup (message, strcspn (message, "\n"));
  return g_str_has_prefix (first_line, "error: ") || strstr (first_line, ": error: ");
}

static void
print_error (const GError *error, const LsCommand *command)
{
  fprintf (stderr, "%s%s\n", says_error (error->message) ? "" : "error: ", error->message);
  if (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE))
    fprintf (stderr, "see 'lockstep%s%s --help'\n", command ? " " : "", command ? command->name : "");
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  const LsCommand *command = NULL;
  cli_keep_memory ();
  if (argc > 1 && strcmp (argv[1], "--confine") == 0) {
    g_setenv ("LS_CONFINE", "1", TRUE);
    argc--;
    argv++;
  }
  setlocale (LC_CTYPE, ""); /* only to know what the terminal can show */
  if (dispatch (argc, argv, &command, &error))
    return 0;
  ls_error_make_printable (error);
  print_error (error, command);
  return ls_error_exit_code (error);
}
