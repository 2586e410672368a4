/* tests/bench/program.h — the program as a user starts it: what it prints, and what it takes. */
#ifndef LS_BENCH_PROGRAM_H
#define LS_BENCH_PROGRAM_H

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The first number of this key. */
static inline double
ls_bench_number (const char *json, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("\"%s\":", key);
  const char *at = strstr (json, quoted);
  if (!at) {
    fprintf (stderr, "no %s in the output\n", quoted);
    exit (1);
  }
  return g_ascii_strtod (at + strlen (quoted), NULL);
}

/* What it prints, newly allocated, and what it takes; its failure is ours, its talk goes to stderr. env NULL:
 * ours. Inlined, gcc 12 takes what it returns for a dangling pointer. */
static G_GNUC_NO_INLINE char *
ls_bench_program (char **argv, char **env, double *ret_wall_s, double *ret_peak_mib)
{
  g_autoptr (GError) error = NULL;
  GPid pid;
  int out;
  gint64 start_us = g_get_monotonic_time ();
  if (!g_spawn_async_with_pipes (NULL, argv, env, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, NULL, &out,
                                 NULL, &error)) {
    fprintf (stderr, "%s\n", error->message);
    exit (1);
  }
  g_autoptr (GIOChannel) channel = g_io_channel_unix_new (out);
  g_io_channel_set_close_on_unref (channel, TRUE);
  char *text = NULL;
  g_io_channel_read_to_end (channel, &text, NULL, NULL);
  struct rusage used;
  int status;
  if (wait4 (pid, &status, 0, &used) != pid || status != 0) {
    fprintf (stderr, "%s failed\n", argv[0]);
    exit (1);
  }
  *ret_wall_s = (double) (g_get_monotonic_time () - start_us) / 1e6;
  *ret_peak_mib = (double) used.ru_maxrss / 1024;
  return text;
}

#endif
