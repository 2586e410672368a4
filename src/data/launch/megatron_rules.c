#include "data/launch/megatron_rules.h"

#include <string.h>

#include "data/launch/megatron_options.h"
#include "data/launch/shell.h"

const char *
megatron_text (const MegatronJob *job, const char *name)
{
  const LaunchOption *o = launch_words_find (job->words, name);
  return o && o->values->len > 0 && !ls_shell_has_hole (o->values->pdata[0]) ? o->values->pdata[0] : NULL;
}

bool
megatron_is_on (const MegatronJob *job, const char *name)
{
  const char *text = megatron_text (job, name);
  return launch_words_find (job->words, name)
      && !(text && (g_ascii_strcasecmp (text, "false") == 0 || g_ascii_strcasecmp (text, "none") == 0));
}

guint64
megatron_number (const MegatronJob *job, const char *name)
{
  const char *text = megatron_text (job, name);
  guint64 value = 0;
  return text && g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &value, NULL) ? value : 0;
}

/* --- each by itself ------------------------------------------------------------------------------- */

static void
tell_hole (MegatronJob *job, const char *word)
{
  if (!ls_shell_has_hole (word))
    return;
  g_autofree char *names = ls_shell_hole_names (word);
  import_unknown (job->import, "what %s stands for: the script does not say", names);
}

/* Words with holes behind an option that takes so many. */
static void
tell_holes (MegatronJob *job, const LaunchOption *o, guint n_values)
{
  for (guint i = n_values; i < o->values->len; i++)
    tell_hole (job, o->values->pdata[i]);
}

/* A value that the script leaves open; false: it does not. */
static bool
is_open (MegatronJob *job, const LaunchOption *o)
{
  if (o->values->len == 0 || !ls_shell_has_hole (o->values->pdata[0]))
    return false;
  g_autofree char *names = ls_shell_hole_names (o->values->pdata[0]);
  import_unknown (job->import, "--%s: its value is %s, which the script does not say", o->name, names);
  return true;
}

static void
set_value (MegatronJob *job, const LaunchOption *o, const MegatronOption *row)
{
  g_autofree char *option = g_strconcat ("--", o->name, NULL);
  tell_holes (job, o, 1);
  if (is_open (job, o)) {
    g_hash_table_add (job->open, (gpointer) row->key);
    return;
  }
  if (o->values->len == 0)
    import_conflict (job->import, "%s: a value is missing", option);
  else if (row->kind == MEGATRON_MODEL)
    import_set_model (job->import, row->key, o->values->pdata[0], option);
  else
    import_set_strategy (job->import, row->key, o->values->pdata[0], option);
}

static void
read_option (MegatronJob *job, const LaunchOption *o)
{
  const MegatronOption *row = megatron_option (o->name);
  if (!row) {
    const char *value = o->values->len > 0 ? o->values->pdata[0] : "";
    bool is_shown = *value && !ls_shell_has_hole (value);
    import_unknown (job->import, "--%s%s%s", o->name, is_shown ? " " : "", is_shown ? value : "");
    tell_holes (job, o, 0);
  } else if (row->kind == MEGATRON_IGNORED) {
    import_ignore (job->import, "--%s", o->name);
    tell_holes (job, o, 1);
  } else if (row->kind == MEGATRON_MODEL || row->kind == MEGATRON_STRATEGY)
    set_value (job, o, row);
  else if (row->kind == MEGATRON_SWITCH) {
    tell_holes (job, o, 0);
    if (megatron_is_on (job, o->name))
      import_set_strategy (job->import, row->key, "1", o->name);
  } else if (!is_open (job, o))
    tell_holes (job, o, 0);
}

/* The release is that of the oldest word. */
static void
find_release (MegatronJob *job)
{
  const char *until = NULL, *word = NULL;
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    const MegatronOption *row = megatron_option (o->name);
    if (row && row->until && (!until || strcmp (row->until, until) < 0)) {
      until = row->until;
      word = o->name;
    }
  }
  const char *software = until ? until : "megatron";
  job->import->strategy.software = g_strdup (software);
  g_hash_table_add (job->import->strategy_said, (gpointer) "software");
  if (until)
    import_infer (job->import, "software %s: --%s is an option of its time", until, word);
  else
    import_infer (job->import, "software megatron: no option says an earlier release");
}

void
megatron_read (MegatronJob *job)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  job->open = g_hash_table_new (g_str_hash, g_str_equal);
  find_release (job);
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o
        = launch_words_find (job->words, ((LaunchOption *) job->words->options->pdata[i])->name);
    if (g_hash_table_add (seen, o->name))
      read_option (job, o);
  }
  for (guint i = 0; i < job->words->others->len; i++)
    tell_hole (job, job->words->others->pdata[i]);
  megatron_model (job);
  megatron_strategy (job);
  g_hash_table_unref (job->open);
}
