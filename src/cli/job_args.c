#include "cli/job_args.h"

#include <string.h>

typedef struct {
  char *key, *value;
} Knob;

static void
knob_clear (gpointer data)
{
  Knob *knob = data;
  g_free (knob->key);
  g_free (knob->value);
}

void
cli_job_init (CliJob *job)
{
  *job = (CliJob) { .knobs = g_array_new (FALSE, FALSE, sizeof (Knob)) };
  g_array_set_clear_func (job->knobs, knob_clear);
}

void
cli_job_clear (CliJob *job)
{
  g_array_unref (job->knobs);
}

static void
add_knob (CliJob *job, const char *key, const char *value)
{
  Knob knob = { g_strdup (key), g_strdup (value) };
  g_array_append_val (job->knobs, knob);
}

/* "--tp 8" becomes tp = 8; a switch may do without its value 1. */
static gboolean
on_knob (const char *flag, const char *value, gpointer job, GError **error)
{
  add_knob (job, flag + strspn (flag, "-"), value ? value : "1");
  return TRUE;
}

/* "--set tp_async=0" */
static gboolean
on_set (const char *flag, const char *text, gpointer job, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, "=", 2);
  if (!parts[0] || !*parts[0] || !parts[1]) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--set: expected KEY=VALUE, such as tp_async=0; got \"%s\"",
                 text);
    return FALSE;
  }
  add_knob (job, parts[0], parts[1]);
  return TRUE;
}

static GOptionEntry
entry_of (const LsKnob *knob)
{
  GOptionEntry entry = { knob->flag,
                         0,
                         G_OPTION_FLAG_HIDDEN | G_OPTION_FLAG_FILENAME,
                         G_OPTION_ARG_CALLBACK,
                         (gpointer) on_knob,
                         knob->meaning,
                         knob->argument };
  if (!knob->argument)
    entry.flags |= G_OPTION_FLAG_OPTIONAL_ARG;
  return entry;
}

void
cli_job_entries (CliJob *job, const char *const *without, GArray *entries)
{
  const GOptionEntry set = { "set",
                             0,
                             G_OPTION_FLAG_HIDDEN | G_OPTION_FLAG_FILENAME,
                             G_OPTION_ARG_CALLBACK,
                             (gpointer) on_set,
                             "",
                             "KEY=VALUE" };
  guint n;
  const LsKnob *knobs = ls_knobs (&n);
  for (guint i = 0; i < n; i++) {
    const GOptionEntry entry = entry_of (&knobs[i]);
    if (knobs[i].flag && !(without && g_strv_contains (without, knobs[i].flag)))
      g_array_append_val (entries, entry);
  }
  g_array_append_val (entries, set);
}

/* NULL: it was not given. */
static const char *
last_value (const CliJob *args, const char *key)
{
  const char *value = NULL;
  for (guint i = 0; i < args->knobs->len; i++)
    if (strcmp (g_array_index (args->knobs, Knob, i).key, key) == 0)
      value = g_array_index (args->knobs, Knob, i).value;
  return value;
}

/* What sets defaults comes first. */
static const char *const files[] = { "for", "software", "strategy", NULL };

gboolean
cli_job_apply (const CliJob *args, CliJobSetter set, gpointer target, GError **error)
{
  const char *debug = g_getenv ("LS_DEBUG");
  if (debug && !set (target, "debug", debug, error))
    return FALSE;
  for (guint i = 0; files[i]; i++) {
    const char *file = last_value (args, files[i]);
    if (file && !set (target, files[i], file, error))
      return FALSE;
  }
  for (guint i = 0; i < args->knobs->len; i++) {
    const Knob *knob = &g_array_index (args->knobs, Knob, i);
    if (!g_strv_contains (files, knob->key) && !set (target, knob->key, knob->value, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
set_knob (gpointer job, const char *key, const char *value, GError **error)
{
  return ls_job_set (job, key, value, error);
}

LsJob *
cli_job_new (const CliJob *args, GError **error)
{
  g_autoptr (LsJob) job = ls_job_new ();
  return cli_job_apply (args, set_knob, job, error) ? g_steal_pointer (&job) : NULL;
}
