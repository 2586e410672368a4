#include "data/launch/launch_gpus.h"

#include <string.h>

#include "data/launch/launch_words.h"
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

static const char *const node_options[] = { "nodes", "N", "num-nodes", NULL };

/* --- the batch system ------------------------------------------------------------------------------ */

static void
set_number (LsShell *shell, const char *name, guint64 value)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, value);
  if (value > 0)
    ls_shell_set (shell, name, text);
}

static const char *const gpu_options[] = { "gres", "gpus-per-node", NULL };

/* Options of sbatch and lines of a script are the same; the former go before the latter. */
static void
read_slurm (LaunchBatch *b, LsShell *shell, const LaunchWords *w)
{
  guint64 nodes = b->submitted_nodes ? b->submitted_nodes : launch_first_of (w, node_options),
          gpus = b->submitted_per_node ? b->submitted_per_node : launch_first_of (w, gpu_options),
          tasks = value_of (w, "ntasks-per-node");
  b->nodes = nodes ? nodes : b->nodes;
  if (gpus > 0)
    b->per_node = gpus;
  else if (tasks > 1 && b->per_node == 0)
    b->per_node = tasks;
  set_number (shell, "SLURM_NNODES", nodes);
  set_number (shell, "SLURM_JOB_NUM_NODES", nodes);
  set_number (shell, "SLURM_GPUS_PER_NODE", value_of (w, "gpus-per-node"));
  set_number (shell, "SLURM_GPUS_ON_NODE", gpus);
  set_number (shell, "SLURM_NTASKS_PER_NODE", tasks);
  set_number (shell, "SLURM_JOB_ID", 1); /* it is run as a job; which, says nothing */
  set_number (shell, "SLURM_JOBID", 1);
}

/* "--export=ALL,A=1": variables of the job. */
static void
read_export (LsShell *shell, const LaunchWords *w)
{
  const char *said = launch_words_text (w, "export");
  g_auto (GStrv) items = g_strsplit (said ? said : "", ",", -1);
  for (char **item = items; *item; item++) {
    char *equals = strchr (*item, '=');
    if (!equals || equals == *item)
      continue;
    *equals = '\0';
    ls_shell_set (shell, *item, equals + 1);
  }
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
  const char *said = launch_words_text (w, "export");
  if (!said || ls_shell_has_hole (said))
    return;
  g_auto (GStrv) items = g_strsplit (said, ",", -1);
  if (!g_strv_contains ((const char *const *) items, "ALL"))
    g_hash_table_foreach_remove (exported, is_not_named, items);
  for (char **item = items; *item; item++) {
    char *equals = strchr (*item, '=');
    if (!equals || equals == *item)
      continue;
    *equals = '\0';
    g_hash_table_replace (variables, g_strdup (*item), g_strdup (equals + 1));
    g_hash_table_add (exported, g_strdup (*item));
  }
}

/* The first of these whose value the script does not decide; NULL: there is none. */
static const char *
open_of (const LaunchWords *w, const char *const *names)
{
  for (; *names; names++) {
    const LaunchOption *o = launch_words_find (w, *names);
    if (o && o->values->len > 0 && ls_shell_has_hole (o->values->pdata[0]))
      return o->written;
  }
  return NULL;
}

/* How many words of sbatch stand in front of the script that it starts; 0: it is another command. */
static guint
submit_words (const LsShellCommand *c)
{
  static const char *const ends[] = { ".sh", ".sbatch", ".slurm", ".job", ".batch" };
  if (strcmp (ls_shell_base_of (c->words[0]), "sbatch") != 0)
    return 0;
  for (guint i = 1; i < c->n; i++)
    for (guint k = 0; k < G_N_ELEMENTS (ends); k++)
      if (*c->words[i] != '-' && g_str_has_suffix (c->words[i], ends[k]))
        return i;
  return 0;
}

void
launch_read_submit (LaunchBatch *batch, LsShell *shell, const LsShellCommand *c, LsImport *import)
{
  guint n = submit_words (c);
  if (n == 0)
    return;
  g_autoptr (LaunchWords) w = launch_words_new ();
  launch_words_add (w, c->words, n);
  const char *nodes = open_of (w, node_options), *gpus = open_of (w, gpu_options),
             *open = nodes ? nodes : gpus;
  if (open)
    import_unknown (import, "what sbatch is given by %s: the script's own lines are taken", open);
  guint64 n_nodes = launch_first_of (w, node_options), per_node = launch_first_of (w, gpu_options);
  batch->submitted_nodes = n_nodes ? n_nodes : batch->submitted_nodes;
  batch->submitted_per_node = per_node ? per_node : batch->submitted_per_node;
  if (n_nodes > 0 || per_node > 0)
    read_slurm (batch, shell, w);
  read_export (shell, w);
}

void
launch_given_nodes (LaunchBatch *batch, const char *name, const char *value)
{
  if (strcmp (name, "SLURM_NNODES") == 0 || strcmp (name, "SLURM_JOB_NUM_NODES") == 0)
    batch->submitted_nodes = launch_last_number (value);
}

/* "-l select=4:ncpus=8:ngpus=8": of so many nodes each. */
static void
read_pbs (LaunchBatch *b, LsShell *shell, const LsShellCommand *c)
{
  for (guint i = 1; i < c->n; i++) {
    g_auto (GStrv) parts = g_strsplit (c->words[i], ":", -1);
    for (char **part = parts; *part; part++) {
      guint64 *place = g_str_has_prefix (*part, "select=") ? &b->nodes
          : g_str_has_prefix (*part, "ngpus=")             ? &b->per_node
                                                           : NULL;
      if (place)
        *place = launch_last_number (strchr (*part, '=') + 1);
    }
  }
  set_number (shell, "PBS_NUM_NODES", b->nodes);
}

void
launch_read_directive (LaunchBatch *batch, LsShell *shell, const LsShellCommand *line)
{
  if (strcmp (line->words[0], "#PBS") == 0)
    read_pbs (batch, shell, line);
  else {
    g_autoptr (LaunchWords) w = launch_words_new ();
    launch_words_add (w, line->words, line->n);
    read_slurm (batch, shell, w);
  }
}

/* --- the launcher ---------------------------------------------------------------------------------- */

static void
add_number (LaunchWords *w, const char *name, guint64 value)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, value);
  launch_words_add_value (w, name, text);
}

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
  const LaunchBatch *b = &place->batch;
  g_autoptr (LaunchWords) w = launch_words_new ();
  LaunchJob job = { .import = import, .words = w, .variables = place->seen };
  launch_words_add (w, (char *const *) front->pdata, front->len);
  add_front (w, front);
  add_number (w, "batch.nodes", b->nodes);
  add_number (w, "batch.per-node", b->per_node);
  add_number (w, "batch.pods", b->pods);
  add_number (w, "batch.per-pod", b->per_pod);
  add_number (w, "batch.in-pods", b->in_pods);
  launch_words_add_value (w, "front.is-one", place->is_one_of_many ? "true" : "");
  program_run_map ("starters", is_command ? "by_variables" : "by_words", &job, NULL, NULL);
  return job.gpus;
}

bool
launch_says_gpus (const char *options, const LaunchWords *words)
{
  g_auto (GStrv) names = g_strsplit (options ? options : "", " ", -1);
  bool is_said = false;
  for (char **name = names; *name; name++)
    is_said = is_said || launch_words_find (words, *name);
  return is_said;
}
