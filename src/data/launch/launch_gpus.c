#include "data/launch/launch_gpus.h"

#include <string.h>

#include "data/launch/launch_words.h"

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
static const char *const task_options[]
    = { "gpus-per-node", "ntasks-per-node", "gres", "tasks-per-node", NULL };

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
    import_unknown (import, "what sbatch is told by %s: the script's own lines are taken", open);
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

static bool
has_word (const GPtrArray *words, const char *const *names)
{
  for (guint i = 0; i < words->len; i++)
    if (g_strv_contains (names, ls_shell_base_of (words->pdata[i])))
      return true;
  return false;
}

/* torchtune's own command for torchrun. */
static bool
has_tune (const GPtrArray *words)
{
  for (guint i = 1; i < words->len; i++)
    if (strcmp (words->pdata[i - 1], "tune") == 0 && strcmp (words->pdata[i], "run") == 0)
      return true;
  return false;
}

/* A word whose options are not decided; NULL: there is none. */
static const char *
find_hole (const GPtrArray *words)
{
  for (guint i = 0; i < words->len; i++)
    if (*(const char *) words->pdata[i] == LS_SHELL_HOLE)
      return words->pdata[i];
  return NULL;
}

/* What torchrun is told by an option, or by a variable in its place (torch/distributed/argparse_util.py). */
static const char *
torchrun_value (const LaunchWords *w, const LaunchPlace *p, const char *name, const char *variable)
{
  const LaunchOption *o = launch_words_find (w, name);
  if (o)
    return o->values->len > 0 ? o->values->pdata[0] : "";
  return g_hash_table_lookup (p->seen, variable);
}

/* "4:4" is 4. */
static bool
is_range (const char *text)
{
  const char *colon = strchr (text, ':');
  gsize n = colon ? (gsize) (colon - text) : 0;
  return colon && (strlen (colon + 1) != n || strncmp (text, colon + 1, n) != 0);
}

/* "4", "auto" and "gpu" of a node; "1:4", any number of nodes between. */
static guint64
torchrun_number (const char *text, guint64 of_pods, LsImport *import)
{
  if (strcmp (text, "auto") == 0 || strcmp (text, "gpu") == 0 || strcmp (text, "elastic") == 0)
    return of_pods;
  if (strchr (text, ':') && of_pods > 0)
    return of_pods;
  if (is_range (text))
    import_unknown (import, "--nnodes %s: as many nodes as there are; the most is taken", text);
  return ls_shell_has_hole (text) ? 0 : launch_last_number (text);
}

/* One by default, unless a word that is not decided may hold it. */
static guint64
count_torchrun_of (const LaunchWords *w, const LaunchPlace *p, const char *const names[2], guint64 of_pods,
                   bool has_hole, LsImport *import)
{
  const char *text = torchrun_value (w, p, names[0], names[1]);
  return text ? torchrun_number (text, of_pods, import) : has_hole ? 0 : 1;
}

/* It starts processes of its own on each node. */
static guint64
count_torchrun (const LaunchPlace *p, const LaunchWords *w, const GPtrArray *words, LsImport *import)
{
  static const char *const of_node[] = { "nproc-per-node", "PET_NPROC_PER_NODE" },
                           *const of_nodes[] = { "nnodes", "PET_NNODES" };
  const char *hole = find_hole (words);
  guint64 each = count_torchrun_of (w, p, of_node, p->batch.per_pod, hole, import),
          count = count_torchrun_of (w, p, of_nodes, p->batch.pods, hole, import);
  g_autofree char *names = hole ? ls_shell_hole_names (hole) : NULL;
  if (names && each * count == 0)
    import_unknown (import, "options of the launcher: %s", names);
  return each * count;
}

/* "localhost:0,1,2,3": of one host those that are listed; 0: it says another thing. */
static guint64
count_included (const LaunchWords *w)
{
  const char *text = launch_words_text (w, "include"), *colon = text ? strchr (text, ':') : NULL;
  if (!colon || strchr (text, '@') || ls_shell_has_hole (text))
    return 0;
  g_auto (GStrv) gpus = g_strsplit (colon + 1, ",", -1);
  return g_strv_length (gpus);
}

/* On the nodes of a file of hosts, or, without one, on this node. */
static guint64
count_deepspeed (const LaunchBatch *b, const LaunchWords *w, LsImport *import)
{
  guint64 each = value_of (w, "num-gpus"), nodes = value_of (w, "num-nodes"), included = count_included (w);
  bool is_here = !launch_words_find (w, "num-nodes") && !launch_words_find (w, "hostfile");
  if (included > 0)
    return included;
  if (each == 0 && !launch_words_find (w, "num-gpus") && is_here && b->nodes <= 1)
    each = b->per_node;
  if (each > 0 && is_here)
    import_infer (import, "1 node: deepspeed is started without --num_nodes and --hostfile");
  return each * (is_here ? 1 : nodes);
}

static guint64
count_slurm (const LaunchBatch *b, const LaunchWords *w)
{
  guint64 nodes = launch_first_of (w, node_options), tasks = launch_first_of (w, task_options),
          all = launch_first_of (w, (const char *const[]) { "ntasks", "n", NULL });
  nodes = nodes ? nodes : b->nodes;
  guint64 count = nodes * (tasks > 1 ? tasks : b->per_node);
  return count > 0 ? count : all;
}

/* Where how many it starts is not decided, all that the job has. */
static guint64
count_mpi (const LaunchBatch *b, const LaunchWords *w, LsImport *import)
{
  static const char *const names[] = { "np", "n", NULL };
  guint64 said = launch_first_of (w, names), all = b->nodes * b->per_node;
  if (said > 0 || all == 0)
    return said;
  import_infer (
      import, "gpus %" G_GUINT64_FORMAT ": all of the job's nodes; the launcher does not say how many", all);
  return all;
}

/* Python in front, or what starts a command once. */
static bool
is_started_once (const GPtrArray *words)
{
  static const char *const starters[]
      = { "nohup", "exec", "time",   "env",   "nice",   "sudo",        "numactl",   "taskset", "nsys",
          "ncu",   "uv",   "poetry", "conda", "pipenv", "singularity", "apptainer", "docker",  NULL };
  const char *first = ls_shell_base_of (words->pdata[0]);
  return g_str_has_prefix (first, "python") || strchr (first, '=') || g_strv_contains (starters, first);
}

static guint64
count_alone (const GPtrArray *words, bool is_one_of_many, LsImport *import)
{
  if (!has_word (words, (const char *const[]) { "python", "python3", NULL }) || is_one_of_many)
    return 0;
  if (is_started_once (words)) {
    import_infer (import, "1 GPU: python is started by itself");
    return 1;
  }
  const char *first = words->pdata[0];
  g_autofree char *names = ls_shell_has_hole (first) ? ls_shell_hole_names (first) : NULL;
  import_unknown (import, "how %s starts python, and on how many GPUs", names ? names : first);
  return 0;
}

/* 0: its words do not say. */
static guint64
count_started (const LaunchPlace *place, const GPtrArray *front, LsImport *import)
{
  static const char *const torch[]
      = { "torchrun", "torch.distributed.launch", "torch.distributed.run", "hyperpodrun", NULL };
  static const char *const deepspeed[] = { "deepspeed", "deepspeed.launcher.runner", NULL },
                           *const accelerate[] = { "accelerate", "accelerate.commands.launch", NULL },
                           *const mpi[]
      = { "mpirun", "mpiexec", "mpirun_rsh", "mpiexec.hydra", "aprun", "ibrun", NULL },
                           *const slurm[] = { "srun", "sbatch", NULL };
  static const char *const bcprun_nodes[] = { "nnodes", "n", NULL },
                           *const bcprun_of_node[] = { "npernode", "p", NULL };
  const LaunchBatch *batch = &place->batch;
  g_autoptr (LaunchWords) w = launch_words_new ();
  launch_words_add (w, (char *const *) front->pdata, front->len);
  if (has_word (front, torch) || has_tune (front))
    return count_torchrun (place, w, front, import);
  if (has_word (front, (const char *const[]) { "msrun", NULL })) /* of MindSpore: of all nodes */
    return value_of (w, "worker-num");
  if (has_word (front, (const char *const[]) { "bcprun", NULL })) /* of NVIDIA's Base Command: of one node */
    return MAX (1, launch_first_of (w, bcprun_nodes)) * launch_first_of (w, bcprun_of_node);
  if (has_word (front, mpi))
    return count_mpi (batch, w, import);
  if (has_word (front, deepspeed))
    return count_deepspeed (batch, w, import);
  if (has_word (front, accelerate)) /* num_processes says, which may stand in its configuration */
    return 0;
  if (has_word (front, slurm) || batch->nodes > 0)
    return count_slurm (batch, w);
  if (batch->in_pods > 0)
    return 0;
  return front->len > 0 ? count_alone (front, place->is_one_of_many, import) : 0;
}

/* All GPUs of pods, where nothing else says how many; where it says another number, that is told. */
guint64
launch_count_gpus (const LaunchPlace *place, const GPtrArray *front, LsImport *import)
{
  guint64 n = count_started (place, front, import), in_pods = place->batch.in_pods;
  if (in_pods == 0 || n == in_pods)
    return n;
  if (n > 0) {
    import_unknown (import,
                    "what starts the job starts %" G_GUINT64_FORMAT
                    " processes; its pods have %" G_GUINT64_FORMAT " GPUs",
                    n, in_pods);
    return n;
  }
  import_infer (import, "gpus %" G_GUINT64_FORMAT ": all that its pods have", in_pods);
  return in_pods;
}

/* NULL: nothing. */
static const char *
seen_of (const LaunchPlace *place, const char *name)
{
  const char *text = g_hash_table_lookup (place->seen, name);
  return text && *text ? text : NULL;
}

guint64
launch_count_by_variables (const LaunchPlace *place)
{
  const char *each = seen_of (place, "NPROC_PER_NODE"), *nodes = seen_of (place, "NNODES"),
             *seen = seen_of (place, "CUDA_VISIBLE_DEVICES");
  guint64 n = each ? launch_last_number (each) : 0, n_nodes = nodes ? launch_last_number (nodes) : 1;
  bool sees_one = seen && g_ascii_isdigit (*seen) && !strchr (seen, ',');
  return n > 0 ? n * MAX (1, n_nodes) : sees_one;
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
