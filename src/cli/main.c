/* lockstep — the command line: finds the subcommand, prints its error, exits. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

typedef struct {
  const char *name;
  gboolean (*run) (int argc, char **argv, GError **error);
  const char *line;
} Command;

static const Command commands[] = {
  { "run", cli_run, "simulate one training job: step time, where it goes, memory" },
  { "sweep", cli_sweep, "the best of all legal configurations of a job" },
  { "collective", cli_collective, "time a collective alone: a table over sizes, or errors" },
  { "kernel", cli_kernel, "time of a kernel alone, or errors over a table of them" },
  { "calibrate", cli_calibrate, "fit a GPU's kernels, or NCCL, to measured times" },
  { "compare", cli_compare, "two results side by side, or measured spans and predicted ones" },
  { "topology", cli_topology, "a cluster as a tree, its links and bandwidths, paths, pictures" },
  { "schedule", cli_schedule, "a pipeline schedule: its order drawn and timed, or all compared" },
  { "validate", cli_validate, "compare with published measurements" },
  { "whatif", cli_whatif, "single changes to a job, simulated and ranked by what they gain" },
  { "memory", cli_memory, "what each rank holds at its peak, and what would make it fit" },
  { "trace", cli_trace, "write what a job does as a file that run replays" },
  { "list", cli_list, "models, clusters, GPUs, software, schedules and others at hand" },
  { "check", cli_check, "read data files and report every mistake" },
};

static char *
usage_text (void)
{
  GString *text = g_string_new ("Usage: lockstep COMMAND [OPTION...]\n\n"
                                "Predicts one training step of a large model on a cluster.\n\nCommands:\n");
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    g_string_append_printf (text, "  %-11s %s\n", commands[i].name, commands[i].line);
  g_string_append (
      text,
      "\nSee 'lockstep COMMAND --help'; 'lockstep --version' prints the version.\n\n" CLI_EXIT_CODES "\n");
  return g_string_free (text, FALSE);
}

static gboolean
print_usage (GError **error)
{
  g_autofree char *text = usage_text ();
  return cli_print (text, error);
}

static gboolean
print_version (GError **error)
{
  g_autofree char *text = g_strdup_printf ("lockstep %s\n", ls_version ());
  return cli_print (text, error);
}

static const Command *
find_command (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (commands[i].name, name) == 0)
      return &commands[i];
  return NULL;
}

static void
unknown_command (const char *name, GError **error)
{
  const char *names[G_N_ELEMENTS (commands) + 1] = { NULL };
  for (guint i = 0; i < G_N_ELEMENTS (commands); i++)
    names[i] = commands[i].name;
  const char *near = ls_nearest_word (name, names);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               near ? "unknown command \"%s\"; did you mean \"%s\"?" : "unknown command \"%s\"", name, near);
}

static gboolean
dispatch (int argc, char **argv, const Command **ret_command, GError **error)
{
  const char *name = argc > 1 ? argv[1] : NULL;
  if (!name) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "no command given");
    return FALSE;
  }
  if (strcmp (name, "--help") == 0 || strcmp (name, "-h") == 0 || strcmp (name, "help") == 0)
    return print_usage (error);
  if (strcmp (name, "--version") == 0)
    return print_version (error);

  *ret_command = find_command (name);
  if (!*ret_command) {
    unknown_command (name, error);
    return FALSE;
  }
  return (*ret_command)->run (argc - 1, argv + 1, error);
}

/* Located diagnostics come complete; other messages get the word. */
static gboolean
says_error (const char *message)
{
  g_autofree char *first_line = g_strndup (message, strcspn (message, "\n"));
  return g_str_has_prefix (first_line, "error: ") || strstr (first_line, ": error: ");
}

static void
print_error (const GError *error, const Command *command)
{
  fprintf (stderr, "%s%s\n", says_error (error->message) ? "" : "error: ", error->message);
  if (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE))
    fprintf (stderr, "see 'lockstep%s%s --help'\n", command ? " " : "", command ? command->name : "");
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  const Command *command = NULL;
  setlocale (LC_CTYPE, ""); /* only to know what the terminal can show */
  if (dispatch (argc, argv, &command, &error))
    return 0;
  print_error (error, command);
  return ls_error_exit_code (error);
}
