/* On how many GPUs a command starts a job, by its launcher and the lines of a batch system. */
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"

guint64
launch_last_number (const char *text)
{
  const char *colon = strrchr (text, ':');
  guint64 value = 0;
  return g_ascii_string_to_unsigned (colon ? colon + 1 : text, 10, 1, 1 << 20, &value, NULL) ? value : 0;
}

static guint64
value_of (const LaunchWords *w, const char *name)
{
  const LaunchOption *o = launch_words_find (w, name);
  return o && o->values->len > 0 && !ls_shell_has_hole (o->values->pdata[0])
      ? launch_last_number (o->values->pdata[0])
      : 0;
}

guint64
launch_first_of (const LaunchWords *w, const char *const *names)
{
  for (; *names; names++) {
    guint64 value = value_of (w, *names);
    if (value > 0)
      return value;
  }
  return 0;
}

/* --- the batch system ------------------------------------------------------------------------------ */

/* "A=1": sets a variable, by its name and value; false: it is a name alone. */
static bool
split_pair (char *item, const char **ret_value)
{
  char *equals = strchr (item, '=');
  if (!equals || equals == item)
    return false;
  *equals = '\0';
  *ret_value = equals + 1;
  return true;
}

/* "--export=ALL,A=1": variables of the job. */
static void
read_export (LsShell *shell, const LaunchWords *w)
{
  const char *said = launch_words_text (w, "export"), *value;
  g_auto (GStrv) items = g_strsplit (said ? said : "", ",", -1);
  for (char **item = items; *item; item++)
    if (split_pair (*item, &value))
      ls_shell_set (shell, *item, value);
}

static gboolean
is_not_named (gpointer name, gpointer value, gpointer items)
{
  (void) value;
  return !g_strv_contains (items, name);
}

/* slurm.schedmd.com/srun.html: --export=[ALL,]A=1,B; NONE. */
void
launch_export (char *const *words, guint n, GHashTable *variables, GHashTable *exported)
{
  guint at = 0;
  while (at < n && strcmp (ls_shell_base_of (words[at]), "srun") != 0)
    at++;
  if (at == n)
    return;
  g_autoptr (LaunchWords) w = launch_words_new ();
  launch_words_add (w, words + at, n - at);
  const char *said = launch_words_text (w, "export"), *value;
  if (!said || ls_shell_has_hole (said))
    return;
  g_auto (GStrv) items = g_strsplit (said, ",", -1);
  if (!g_strv_contains ((const char *const *) items, "ALL"))
    g_hash_table_foreach_remove (exported, is_not_named, items);
  for (char **item = items; *item; item++)
    if (split_pair (*item, &value)) {
      g_hash_table_replace (variables, g_strdup (*item), g_strdup (value));
      g_hash_table_add (exported, g_strdup (*item));
    }
}

/* How many words of sbatch stand in front of the script that it starts; 0: it starts none. */
static guint
submit_words (const LsShellCommand *c)
{
  for (guint i = 1; i < c->n; i++)
    if (*c->words[i] != '-' && launch_has_end (c->words[i], ".sh .sbatch .slurm .job .batch"))
      return i;
  return 0;
}

/* The part of the map that reads such a line, and how many words of it; NULL: it asks for nothing. */
static const char *
part_of (const LsShellCommand *c, guint *ret_n)
{
  const char *first = c->words[0], *name = ls_shell_base_of (first);
  *ret_n = c->n;
  if (*first == '#')
    return strcmp (first, "#PBS") == 0 ? "pbs" : "slurm_lines";
  if (strcmp (first, "kubernetes-pods") == 0)
    return "pods";
  if (strcmp (name, "xpk") == 0)
    return c->n > 2 && strcmp (c->words[1], "workload") == 0 && g_str_has_prefix (c->words[2], "create")
        ? "xpk"
        : NULL;
  *ret_n = strcmp (name, "sbatch") == 0 ? submit_words (c) : 0;
  return *ret_n > 0 ? "sbatch" : NULL;
}

/* "batch.nodes 4", which a rule adds, is kept; "set.SLURM_NNODES 4" sets a variable. */
static void
take_added (const LaunchWords *w, LaunchWords *batch, LsShell *shell)
{
  for (guint i = 0; i < w->options->len; i++) {
    const LaunchOption *o = w->options->pdata[i];
    const char *value = o->values->len > 0 ? o->values->pdata[0] : "";
    if (g_str_has_prefix (o->name, "batch."))
      launch_words_add_value (batch, o->name, value);
    else if (g_str_has_prefix (o->name, "set."))
      ls_shell_set (shell, o->name + strlen ("set."), value);
  }
}

void
launch_read_batch (LaunchWords *batch, LsShell *shell, const LsShellCommand *c, LsImport *import)
{
  guint n;
  const char *part = part_of (c, &n);
  if (!part)
    return;
  g_autoptr (LaunchWords) w = launch_words_new ();
  LaunchJob job = { .import = import, .words = w };
  g_autoptr (GStrvBuilder) all = g_strv_builder_new ();
  for (guint i = 0; i < n; i++)
    g_strv_builder_add (all, c->words[i]);
  g_auto (GStrv) words = g_strv_builder_end (all);
  g_autofree char *line = g_strjoinv (" ", words);
  launch_words_add (w, words, n);
  launch_words_add_value (w, "line", line);
  launch_words_add_words (w, batch);
  program_doors->run_map ("starters", part, &(ProgramWith) { NULL }, &job, NULL, NULL);
  take_added (w, batch, shell);
  if (strcmp (part, "sbatch") == 0)
    read_export (shell, w);
}

void
launch_given_nodes (LaunchWords *batch, const char *name, const char *value)
{
  if (strcmp (name, "SLURM_NNODES") == 0 || strcmp (name, "SLURM_JOB_NUM_NODES") == 0)
    launch_words_add_value (batch, "batch.submitted-nodes", value);
}

/* --- the launcher ---------------------------------------------------------------------------------- */

/* A program without its folder, as a word between others. */
static char *
word_of (const char *text)
{
  static const char others[] = { ' ', ',', LS_SHELL_HOLE, LS_SHELL_HOLE_END, '\0' };
  return g_strdelimit (g_strdup (ls_shell_base_of (text)), others, '~');
}

/* The words in front, the first, and what is not decided. */
static void
add_front (LaunchWords *w, const GPtrArray *front)
{
  GString *all = g_string_new (NULL);
  const char *first = front->len > 0 ? front->pdata[0] : "", *open = NULL;
  for (guint i = 0; i < front->len; i++) {
    g_autofree char *base = word_of (front->pdata[i]);
    g_string_append_printf (all, "%s%s", i > 0 ? " " : "", base);
    open = open || *(const char *) front->pdata[i] != LS_SHELL_HOLE ? open : front->pdata[i];
  }
  g_autofree char *hole = open ? ls_shell_hole_names (open) : NULL,
                  *written = ls_shell_has_hole (first) ? ls_shell_hole_names (first) : g_strdup (first),
                  *base = word_of (first);
  launch_words_add_value (w, "front.words", all->str);
  launch_words_add_value (w, "front.first", base);
  launch_words_add_value (w, "front.written", written);
  launch_words_add_value (w, "front.hole", hole ? hole : "");
  g_string_free (all, TRUE);
}

guint64
launch_count_gpus (const LaunchPlace *place, const GPtrArray *front, bool is_command, LsImport *import)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  LaunchJob job = { .import = import, .words = w, .variables = place->seen };
  launch_words_add (w, (char *const *) front->pdata, front->len);
  add_front (w, front);
  launch_words_add_words (w, place->batch);
  launch_words_add_value (w, "front.is-one", place->is_one_of_many ? "true" : "");
  program_doors->run_map ("starters", is_command ? "by_variables" : "by_words", &(ProgramWith) { NULL }, &job,
                          NULL, NULL);
  return job.gpus;
}
