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
append_own (GString *out, const LsCommand *command, gboolean only_usual)
{
  guint n;
  const LsOption *options = ls_command_options (command, &n);
  for (guint i = 0; i < n; i++) {
    const LsOption *o = &options[i];
    if (o->topic || o->is_positional || (only_usual && o->is_rare))
      continue;
    g_autofree char *letter = o->letter ? g_strdup_printf ("-%c, ", o->letter) : g_strdup ("");
    g_autofree char *option = g_strconcat (letter, "--", o->flag, o->argument ? "=" : "", o->argument, NULL);
    append_option (out, option, o->meaning);
  }
}

/* --- knobs ------------------------------------------------------------------------------------ */

static char *
knob_option (const LsOption *k)
{
  if (!k->flag)
    return g_strconcat ("--set ", k->key, "=", k->argument, NULL);
  return g_strconcat ("--", k->flag, k->argument ? "=" : NULL, k->argument, NULL);
}

/* "who reduces gradients: none, ddp; default none" */
static char *
full_text (const LsOption *k, gboolean with_choices, gboolean with_default)
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
line_text (const LsOption *k)
{
  static const gboolean parts[][2] = { { TRUE, TRUE }, { TRUE, FALSE }, { FALSE, TRUE }, { FALSE, FALSE } };
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *text = full_text (k, parts[i][0], parts[i][1]);
    if (g_utf8_strlen (text, -1) <= WIDTH - COLUMN)
      return g_steal_pointer (&text);
  }
  return g_strdup (k->meaning);
}

static void
append_topic (GString *out, const LsCommand *command, const LsTopic *topic, gboolean only_usual)
{
  guint n, n_shown = 0;
  const LsOption *knobs = ls_command_options (command, &n);
  for (guint i = 0; i < n; i++) {
    if (g_strcmp0 (knobs[i].topic, topic->name) != 0 || (only_usual && !knobs[i].is_usual))
      continue;
    if (n_shown++ == 0)
      g_string_append_printf (out, "%s (--help %s):\n", topic->title, topic->name);
    g_autofree char *option = knob_option (&knobs[i]),
                    *text = only_usual ? line_text (&knobs[i]) : full_text (&knobs[i], TRUE, TRUE);
    append_option (out, option, text);
  }
}

static void
append_topics (GString *out, const LsCommand *command, gboolean only_usual)
{
  guint n;
  const LsTopic *topics = ls_topics (&n);
  for (guint t = 0; t < n; t++)
    append_topic (out, command, &topics[t], only_usual);
}

static char *
topic_names (void)
{
  guint n;
  const LsTopic *topics = ls_topics (&n);
  GString *names = g_string_new (NULL);
  for (guint t = 0; t < n; t++)
    g_string_append_printf (names, "%s, ", topics[t].name);
  g_string_append (names, "all");
  return g_string_free (names, FALSE);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void
append_general (GString *out, const LsCommand *command)
{
  if (command->job == LS_JOB_NONE) {
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
whole_help (const LsCommand *command, gboolean is_short)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "Usage: lockstep %s\n\n%s\n\n", command->usage, command->summary);
  gboolean has_knobs = is_short ? command->job == LS_JOB_SHOWN : command->job != LS_JOB_NONE;
  if (has_knobs)
    append_topics (out, command, is_short);
  g_string_append (out, has_knobs ? "Results:\n" : "Options:\n");
  append_own (out, command, is_short && has_knobs);
  append_general (out, command);
  g_string_append_printf (out, "\n%s\n\n%s\n", command->examples,
                          is_short && has_knobs ? "All options, and the exit codes: --help all"
                                                : CLI_EXIT_CODES);
  return g_string_free (out, FALSE);
}

static char *
topic_help (const LsCommand *command, const char *name, GError **error)
{
  guint n;
  const LsTopic *topics = ls_topics (&n);
  for (guint t = 0; command->job != LS_JOB_NONE && t < n; t++)
    if (strcmp (topics[t].name, name) == 0) {
      GString *out = g_string_new (NULL);
      append_topic (out, command, &topics[t], FALSE);
      return g_string_free (out, FALSE);
    }
  g_autofree char *names = command->job != LS_JOB_NONE ? topic_names () : g_strdup ("all");
  g_auto (GStrv) words = g_strsplit (names, ", ", -1);
  const char *near = ls_nearest_word (name, (const char *const *) words);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--help: expected a topic, which are %s; got \"%s\"%s%s%s",
               names, name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
  return NULL;
}

char *
cli_help_text (const LsCommand *command, const char *topic, GError **error)
{
  if (topic && strcmp (topic, "all") != 0)
    return topic_help (command, topic, error);
  return whole_help (command, !topic);
}
