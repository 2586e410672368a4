/* The answer to a request, printed. */
#include "cli/cli.h"

#include <errno.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

gboolean
cli_print (const char *text, GError **error)
{
  if (fputs (text, stdout) == EOF || fflush (stdout) == EOF || ferror (stdout)) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "cannot write to stdout: %s", g_strerror (errno));
    return FALSE;
  }
  return TRUE;
}

/* To stderr: "note: ..." for each line, the first with a word of its own; but what warns itself. */
static void
talk (const char *first_word, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (g_str_has_prefix (*line, "warning: "))
      fprintf (stderr, "%s\n", *line);
    else if (**line)
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

/* --- progress --------------------------------------------------------------------------------------- */

/* How far a long command is: a line on a terminal, nothing into a file or a pipe. */

#define WIDTH     30
#define PERIOD_US 100000

typedef struct {
  gint64 started, shown; /* us; the same: nothing yet */
  gboolean has_terminal;
} Progress;

static void
progress_begin (Progress *p)
{
  gint64 now = g_get_monotonic_time ();
  *p = (Progress) { .started = now, .shown = now, .has_terminal = isatty (STDERR_FILENO) };
}

/* "\033[K": to the end of the line there is nothing. */
static void
show_bar (guint64 n_done, guint64 n_to_do, double rate)
{
  int filled = (int) (WIDTH * n_done / n_to_do);
  g_autofree char *full = g_strnfill ((gsize) filled, '#'),
                  *rest = g_strnfill ((gsize) (WIDTH - filled), '.');
  fprintf (stderr,
           "\r[%s%s] %" G_GUINT64_FORMAT " of at most %" G_GUINT64_FORMAT
           ", %.1f/s, %.0f s left at this rate\033[K",
           full, rest, n_done, n_to_do, rate, (double) (n_to_do - n_done) / rate);
}

static void
progress_show (guint64 n_done, guint64 n_to_do, gpointer data)
{
  Progress *p = data;
  gint64 now = g_get_monotonic_time ();
  if (!p->has_terminal || now - p->shown < PERIOD_US)
    return;
  double seconds = (double) (now - p->started) / 1e6, rate = (double) n_done / seconds;
  if (n_to_do > 0)
    show_bar (n_done, n_to_do, rate);
  else
    fprintf (stderr, "\r%" G_GUINT64_FORMAT " simulations in %.0f s, %.1f/s\033[K", n_done, seconds, rate);
  p->shown = now;
}

static void
progress_show_best (double step_s, const char *what, gpointer data)
{
  const Progress *p = data;
  double seconds = (double) (g_get_monotonic_time () - p->started) / 1e6;
  g_autofree char *step = ls_format_time (ls_time_from_s (step_s));
  if (p->has_terminal)
    fprintf (stderr, "\r\033[Kbest after %.1f s: a step of %s with %s\n", seconds, step, what);
}

/* --- while it runs -------------------------------------------------------------------------------- */

static const int asking[] = { SIGINT, SIGTERM };
static gint stop_asked;

/* The second time the signal does what it does by itself. */
static void
on_interrupt (int number)
{
  g_atomic_int_set (&stop_asked, 1);
  signal (number, SIG_DFL);
}

/* Of a command that has nothing to tell before its end. */
static void
on_end (int number)
{
  static const char text[] = "error: stopped: there is no result, which only a sweep has before its end\n";
  gboolean has_line = isatty (STDERR_FILENO); /* of progress, or what was typed */
  (void) !write (STDERR_FILENO, "\n", has_line);
  (void) !write (STDERR_FILENO, text, sizeof text - 1);
  signal (number, SIG_DFL);
  raise (number);
}

static LsAnswer *
run (const LsCommand *command, LsRequest *request, GError **error)
{
  Progress progress;
  progress_begin (&progress);
  ls_request_set_progress (request, progress_show, &progress);
  ls_request_set_best (request, progress_show_best, &progress);
  if (command->can_stop)
    ls_request_set_stop (request, &stop_asked);
  for (guint i = 0; i < G_N_ELEMENTS (asking); i++)
    if (signal (asking[i], command->can_stop ? on_interrupt : on_end) == SIG_IGN)
      signal (asking[i], SIG_IGN); /* of nohup, or of a script that goes on by itself */
  LsAnswer *answer = ls_request_run (request, error);
  for (guint i = 0; i < G_N_ELEMENTS (asking); i++)
    if (signal (asking[i], SIG_DFL) == SIG_IGN)
      signal (asking[i], SIG_IGN);
  if (progress.shown > progress.started)
    fputs ("\r\033[K", stderr);
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
  const gboolean leads = !team || ls_team_rank (team) == 0;
  const LsTextStyle style = text_style ();
  g_autofree char *notes = ls_answer_notes (answer), *warning = ls_answer_warning (answer);
  talk ("note", leads ? notes : "");
  if (!ls_answer_print (answer, ls_answer_form (answer), &style, stdout, error))
    return FALSE;
  talk ("warning", leads ? warning : "");
  return ls_answer_check (answer, error);
}
