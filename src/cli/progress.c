#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#define WIDTH     30
#define PERIOD_US 100000

void
cli_progress_begin (CliProgress *p)
{
  gint64 now = g_get_monotonic_time ();
  *p = (CliProgress) { .started = now, .shown = now, .has_terminal = isatty (STDERR_FILENO) };
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

void
cli_progress_show (guint64 n_done, guint64 n_to_do, gpointer data)
{
  CliProgress *p = data;
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

void
cli_progress_end (CliProgress *p)
{
  if (p->shown > p->started)
    fputs ("\r\033[K", stderr);
}
