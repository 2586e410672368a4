/* What --help prints: the options of a command, and the knobs of a job by topic. */
#include "cli/cli.h"

#include <string.h>

#define WIDTH  110
#define COLUMN 30 /* where the text of an option begins */

/* --- one option ------------------------------------------------------------------------------- */

static void
break_line (GString *out)
{
  g_string_append_printf (out, "\n%*s", COLUMN, "");
}

/* The words of text from COLUMN on, in lines of at most WIDTH. */
static void
append_wrapped (GString *out, const char *text)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  gsize used = COLUMN;
  for (char **word = words; *word; word++) {
    gsize length = (gsize) g_utf8_strlen (*word, -1);
    if (used > COLUMN && used + 1 + length > WIDTH) {
      break_line (out);
      used = COLUMN;
    }
    g_string_append_printf (out, "%s%s", used > COLUMN ? " " : "", *word);
    used += length + (used > COLUMN);
  }
}

static void
append_option (GString *out, const char *option, const char *text)
{
  g_string_append_printf (out, "  %-*s", COLUMN - 3, option);
  if (strlen (option) > COLUMN - 3)
    break_line (out);
  else
    g_string_append_c (out, ' ');
  append_wrapped (out, text);
  g_string_append_c (out, '\n');
}

static void
append_entry (GString *out, const GOptionEntry *e)
{
  g_autofree char *letter = e->short_name ? g_strdup_printf ("-%c, ", e->short_name) : g_strdup ("");
  g_autofree char *option
      = g_strconcat (letter, "--", e->long_name, e->arg_description ? "=" : "", e->arg_description, NULL);
  append_option (out, option, e->description);
}

static void
append_entries (GString *out, const GOptionEntry *entries)
{
  for (const GOptionEntry *e = entries; e->long_name; e++)
    if (!(e->flags & G_OPTION_FLAG_HIDDEN) && *e->long_name) /* G_OPTION_REMAINING is "" */
      append_entry (out, e);
}

/* --- knobs ------------------------------------------------------------------------------------ */

static char *
knob_option (const LsKnob *k)
{
  if (!k->flag)
    return g_strconcat ("--set ", k->key, "=", k->argument, NULL);
  return g_strconcat ("--", k->flag, k->argument ? "=" : NULL, k->argument, NULL);
}

/* "who reduces gradients: none, ddp; default none" */
static char *
full_text (const LsKnob *k, gboolean with_choices, gboolean with_default)
{
  GString *text = g_string_new (k->meaning);
  if (with_choices && k->choices)
    g_string_append_printf (text, ": %s", k->choices);
  if (with_default && *k->usually && k->argument)
    g_string_append_printf (text, "; default %s", k->usually);
  return g_string_free (text, FALSE);
}

/* Of one line: as much of it as fits. */
static char *
line_text (const LsKnob *k)
{
  static const gboolean parts[][2] = { { TRUE, TRUE }, { TRUE, FALSE }, { FALSE, TRUE }, { FALSE, FALSE } };
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *text = full_text (k, parts[i][0], parts[i][1]);
    if (g_utf8_strlen (text, -1) <= WIDTH - COLUMN)
      return g_steal_pointer (&text);
  }
  return g_strdup (k->meaning);
}

static gboolean
is_offered (const LsKnob *k, const GOptionEntry *entries)
{
  for (const GOptionEntry *e = entries; e->long_name; e++)
    if (g_strcmp0 (e->long_name, k->flag) == 0)
      return (e->flags & G_OPTION_FLAG_HIDDEN) != 0;
  return !k->flag;
}

static void
append_topic (GString *out, const CliHelp *help, const LsKnobTopic *topic, gboolean only_usual)
{
  guint n, n_shown = 0;
  const LsKnob *knobs = ls_knobs (&n);
  for (guint i = 0; i < n; i++) {
    if (strcmp (knobs[i].topic, topic->name) != 0 || (only_usual && !knobs[i].is_usual)
        || !is_offered (&knobs[i], help->entries))
      continue;
    if (n_shown++ == 0)
      g_string_append_printf (out, "%s (--help %s):\n", topic->title, topic->name);
    g_autofree char *option = knob_option (&knobs[i]),
                    *text = only_usual ? line_text (&knobs[i]) : full_text (&knobs[i], TRUE, TRUE);
    append_option (out, option, text);
  }
}

static void
append_topics (GString *out, const CliHelp *help, gboolean only_usual)
{
  guint n;
  const LsKnobTopic *topics = ls_knob_topics (&n);
  for (guint t = 0; t < n; t++)
    append_topic (out, help, &topics[t], only_usual);
}

static char *
topic_names (void)
{
  guint n;
  const LsKnobTopic *topics = ls_knob_topics (&n);
  GString *names = g_string_new (NULL);
  for (guint t = 0; t < n; t++)
    g_string_append_printf (names, "%s, ", topics[t].name);
  g_string_append (names, "all");
  return g_string_free (names, FALSE);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void
append_general (GString *out, const CliHelp *help)
{
  if (help->job == CLI_NO_JOB) {
    append_option (out, "-h, --help", "Show this and exit");
    return;
  }
  g_autofree char *names = topic_names (),
                  *text = g_strconcat ("Show this, or all options of a topic: ", names, NULL);
  append_option (out, "--set=KEY=VALUE", "Set a knob by its key, also one without an option of its own");
  append_option (out, "-h, --help [TOPIC]", text);
}

/* is_short: of the knobs the usual ones, where the command shows them. */
static char *
whole_help (const CliHelp *help, gboolean is_short)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "Usage: lockstep %s\n\n%s\n\n", help->usage, help->summary);
  gboolean has_knobs = is_short ? help->job == CLI_JOB_SHOWN : help->job != CLI_NO_JOB;
  if (has_knobs)
    append_topics (out, help, is_short);
  g_string_append (out, has_knobs ? "Results:\n" : "Options:\n");
  append_entries (out, help->entries);
  append_general (out, help);
  g_string_append_printf (out, "\n%s\n", help->description);
  return g_string_free (out, FALSE);
}

static char *
topic_help (const CliHelp *help, const char *name, GError **error)
{
  guint n;
  const LsKnobTopic *topics = ls_knob_topics (&n);
  for (guint t = 0; help->job != CLI_NO_JOB && t < n; t++)
    if (strcmp (topics[t].name, name) == 0) {
      GString *out = g_string_new (NULL);
      append_topic (out, help, &topics[t], FALSE);
      return g_string_free (out, FALSE);
    }
  g_autofree char *names = help->job != CLI_NO_JOB ? topic_names () : g_strdup ("all");
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--help: expected a topic, which are %s; got \"%s\"", names,
               name);
  return NULL;
}

char *
cli_help_text (const CliHelp *help, const char *topic, GError **error)
{
  if (topic && strcmp (topic, "all") != 0)
    return topic_help (help, topic, error);
  return whole_help (help, !topic);
}
