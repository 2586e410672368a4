/* The answer to a request, printed. */
#include "cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/progress.h"

gboolean
cli_print (const char *text, GError **error)
{
  if (fputs (text, stdout) == EOF || fflush (stdout) == EOF || ferror (stdout)) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "cannot write to stdout: %s", g_strerror (errno));
    return FALSE;
  }
  return TRUE;
}

/* To stderr: "note: ..." for each line, the first with a word of its own. */
static void
talk (const char *first_word, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (**line)
      fprintf (stderr, "%s: %s\n", line == lines ? first_word : "note", *line);
}

/* Colour for a terminal that wants it (no-color.org), block characters for UTF-8. */
static LsTextStyle
text_style (void)
{
  struct winsize size;
  gboolean is_terminal = isatty (STDOUT_FILENO);
  gboolean wants_color = !g_getenv ("NO_COLOR") && g_strcmp0 (g_getenv ("TERM"), "dumb") != 0;
  gboolean is_utf8 = strcmp (nl_langinfo (CODESET), "UTF-8") == 0;
  gboolean has_width = ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return (LsTextStyle) { is_terminal && wants_color, !is_utf8, has_width ? size.ws_col : 0 };
}

/* --- while it runs -------------------------------------------------------------------------------- */

static gint stop_asked;

/* The second time the signal does what it does by itself. */
static void
on_interrupt (int number)
{
  g_atomic_int_set (&stop_asked, 1);
  signal (number, SIG_DFL);
}

static LsAnswer *
run (const LsCommand *command, LsRequest *request, GError **error)
{
  CliProgress progress;
  cli_progress_begin (&progress);
  ls_request_set_progress (request, cli_progress_show, &progress);
  if (command->can_stop) {
    ls_request_set_stop (request, &stop_asked);
    signal (SIGINT, on_interrupt);
    signal (SIGTERM, on_interrupt);
  }
  LsAnswer *answer = ls_request_run (request, error);
  if (command->can_stop) {
    signal (SIGINT, SIG_DFL);
    signal (SIGTERM, SIG_DFL);
  }
  cli_progress_end (&progress);
  return answer;
}

gboolean
cli_answer (const LsCommand *command, LsRequest *request, LsTeam *team, GError **error)
{
  ls_request_set_debug (request, g_getenv ("LS_DEBUG"));
  ls_request_set_team (request, team);
  g_autoptr (LsAnswer) answer = run (command, request, error);
  if (!answer)
    return FALSE;
  const LsTextStyle style = text_style ();
  g_autofree char *notes = ls_answer_notes (answer), *warning = ls_answer_warning (answer);
  talk ("note", notes);
  if (!ls_answer_print (answer, ls_answer_form (answer), &style, stdout, error))
    return FALSE;
  talk ("warning", warning);
  return ls_answer_check (answer, error);
}
