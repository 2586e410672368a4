#include "ask/captured.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <lockstep/error.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/order.h"
#include "data/text/json_doc.h"
#include "data/text/write_file.h"
#include "data/traces/traces.h"

/* ---- the processes that are captured ---- */

/* The processes of a capture: one, or one for each role among a program's ranks.
 *
 * The first process finds out: where its ranks turn out to differ it writes the file "mail/roles" and ends
 * (capture/lockstep_ranks.py), and the capture begins anew with the ranks that the file names, side by side.
 * They meet in the folder "mail"; each writes what it saw into a folder of its own. */

#define REFUSED     "refused" /* the file in which the stand-ins say why they ended it */
#define EXIT_STUCK  72 /* LS_EXIT_STUCK of capture/standin.h: all that wait end so, each after a word */
#define CLOCK_STEPS 2  /* of the program, of which the last is predicted for its clock */
#define MOST_ROUNDS 8  /* each finds another family of ranks that differ */

typedef struct {
  char *output;              /* folder of what it saw */
  uint32_t rank, stands_for; /* ranks; 0: all */
  uint32_t like;             /* the first of its role: it should do the same; itself: it is the first */
  GPid pid;
  int status;                /* as of waitpid() */
  bool has_ended, was_ended; /* was_ended: by us, as another failed */
  bool is_kept;              /* it ended before the capture was interrupted, and is not run again */
} Process;

/* --- one process ------------------------------------------------------------------------------------- */

/* In the child: a group of its own, which ends with us; what the program prints is no part of the answer.
 * data: the head of its log, or NULL. */
static void
set_up (gpointer data)
{
  setpgid (0, 0);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  dup2 (STDERR_FILENO, STDOUT_FILENO);
  if (data && write (STDERR_FILENO, data, strlen (data)) < 0)
    _exit (EXIT_FAILURE);
}

static gboolean
spawn (const LsCaptureAsk *ask, char **environment, const char *mail, Process *p, GError **error)
{
  static const char *const which[] = { "auto", "one", "all", "list" };
  g_autofree char *refused = g_build_filename (p->output, REFUSED, NULL);
  g_autofree char *rank = g_strdup_printf ("%u", p->rank);
  g_auto (GStrv) e = g_strdupv (environment);
  g_autoptr (GError) problem = NULL;
  GSpawnFlags flags = G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH;
  e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_OUTPUT", p->output, TRUE);
  e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_REFUSED", refused, TRUE);
  e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_RANKS", which[ask->which], TRUE);
  e = p->rank > 0 ? g_environ_setenv (e, "LOCKSTEP_CAPTURE_RANK", rank, TRUE) : e;
  if (ask->which != LS_CAPTURE_ONE)
    e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_MAIL", mail, TRUE);
  g_mkdir (p->output, 0700);
  g_autofree char *head = ask->tables ? ls_captured_clock_head (ask->following, ask->clock, p->rank) : NULL;
  if (ask->tables) {
    g_autofree char *table = g_strdup_printf ("%s/clock-%u", ask->tables, p->rank);
    e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_CLOCK", table, TRUE);
  }
  if (!g_spawn_async (NULL, (char **) ask->command, e, flags, set_up, head, &p->pid, &problem)) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%s: %s", ask->command[0], problem->message);
    p->has_ended = true;
    return FALSE;
  }
  return TRUE;
}

static void
look (Process *p)
{
  if (p->has_ended) /* one that was never started has no process that could be killed */
    return;
  pid_t done = waitpid (p->pid, &p->status, WNOHANG);
  if (done != p->pid && !(done < 0 && errno != EINTR))
    return;
  kill (-p->pid, SIGKILL); /* what it left behind */
  p->has_ended = true;
}

/* --- all of them ------------------------------------------------------------------------------------- */

static void
end_all (GArray *processes)
{
  for (guint turn = 0; turn < 2; turn++) {
    bool any = false;
    for (guint i = 0; i < processes->len; i++) {
      Process *p = &g_array_index (processes, Process, i);
      look (p);
      p->was_ended |= !p->has_ended;
      if (!p->has_ended)
        any = kill (-p->pid, turn ? SIGKILL : SIGTERM) == 0 || any;
    }
    if (any && turn == 0)
      g_usleep (G_USEC_PER_SEC / 2);
  }
  for (guint i = 0; i < processes->len; i++) {
    Process *p = &g_array_index (processes, Process, i);
    if (!p->has_ended)
      waitpid (p->pid, &p->status, 0);
    p->has_ended = true;
  }
}

static bool
has_seen (const Process *p)
{
  g_autoptr (GDir) dir = g_dir_open (p->output, 0, NULL);
  for (const char *name; dir && (name = g_dir_read_name (dir));)
    if (g_str_has_suffix (name, ".json"))
      return true;
  return false;
}

/* One that ended by itself, and left nothing that is an answer. */
static bool
has_failed (const Process *p)
{
  return p->has_ended && !p->was_ended && p->status != 0 && !has_seen (p);
}

static gboolean
wait_for_all (const LsCaptureAsk *ask, GArray *processes, GError **error)
{
  for (;;) {
    guint n_ended = 0;
    bool failed = false;
    for (guint i = 0; i < processes->len; i++) {
      Process *p = &g_array_index (processes, Process, i);
      look (p);
      n_ended += p->has_ended;
      bool is_stuck = WIFEXITED (p->status) && WEXITSTATUS (p->status) == EXIT_STUCK;
      failed |= has_failed (p) && !is_stuck; /* the others would wait for it */
    }
    if (processes->len > 1)
      ls_progress_tell (ask->progress, n_ended, processes->len);
    if (failed || (ask->stop && g_atomic_int_get (ask->stop)))
      end_all (processes);
    if (failed || n_ended == processes->len)
      return TRUE;
    if (ask->stop && g_atomic_int_get (ask->stop)) {
      bool leaves = ask->keep && processes->len > 1; /* a single one leaves nothing to go on with */
      return ls_fail (error, LS_ERROR_STOPPED, "stopped before the program had done its steps%s%s",
                      leaves ? ": the same command goes on with what it left in " : "",
                      leaves ? ask->keep : "");
    }
    g_usleep (20000);
  }
}

/* --- who they are ------------------------------------------------------------------------------------- */

static void
add_process (GArray *processes, const char *home, uint32_t rank, uint32_t stands_for)
{
  g_autofree char *name = g_strdup_printf ("rank-%u", rank);
  const Process p = {
    .rank = rank, .like = rank, .stands_for = stands_for, .output = g_build_filename (home, name, NULL)
  };
  g_array_append_val (processes, p);
}

/* Those that the file names; NULL: there is none. */
static GArray *
read_roles (const char *path, const char *home)
{
  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    return NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load (path, diags);
  const cJSON *root = doc ? ls_json_doc_root (doc) : NULL, *rank, *other;
  const cJSON *represents = cJSON_GetObjectItemCaseSensitive (root, "represents");
  GArray *processes = ls_list_new (sizeof (Process), ls_clear_text);
  g_autoptr (GHashTable) of = g_hash_table_new (NULL, NULL); /* rank: how many it stands for */
  cJSON_ArrayForEach (other, represents) {
    gpointer key = GUINT_TO_POINTER (other->valueint);
    g_hash_table_insert (of, key, GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (of, key)) + 1));
  }
  cJSON_ArrayForEach (rank, cJSON_GetObjectItemCaseSensitive (root, "ranks")) {
    guint n = GPOINTER_TO_UINT (g_hash_table_lookup (of, GUINT_TO_POINTER (rank->valueint)));
    add_process (processes, home, (uint32_t) rank->valueint, n > 0 ? n : 1);
  }
  cJSON_ArrayForEach (other, cJSON_GetObjectItemCaseSensitive (root, "members")) {
    const cJSON *member = cJSON_GetArrayItem (other, 0), *first = cJSON_GetArrayItem (other, 1);
    for (guint i = 0; member && first && i < processes->len; i++) {
      Process *p = &g_array_index (processes, Process, i);
      p->like = p->rank == (uint32_t) member->valueint ? (uint32_t) first->valueint : p->like;
    }
  }
  return processes;
}

/* Of ranks that wait for each other: what each said. */
static gboolean
check_stuck (const char *mail, const GArray *processes, GError **error)
{
  g_autoptr (GString) all = g_string_new (NULL);
  for (guint i = 0; i < processes->len; i++) {
    const Process *p = &g_array_index (processes, Process, i);
    g_autofree char *name = g_strdup_printf ("stuck.%08u", p->rank);
    g_autofree char *path = g_build_filename (mail, name, NULL), *text = NULL;
    if (g_file_get_contents (path, &text, NULL, NULL))
      g_string_append_printf (all, "\n  %s", g_strchomp (text));
  }
  return all->len == 0 || ls_fail (error, LS_ERROR_FAILED, "its ranks wait for each other:%s", all->str);
}

/* Of a capture that was stopped: ranks that have ended stay, with what they sent; the others begin anew. */
static void
keep_ended (GArray *processes, const char *mail)
{
  g_autofree char *board = g_build_filename (mail, "board0", NULL);
  g_unlink (board);
  for (guint i = 0; i < processes->len; i++) {
    Process *p = &g_array_index (processes, Process, i);
    g_autofree char *sent = g_strdup_printf ("%s/rank%u", mail, i),
                    *mark = g_strdup_printf ("%s/ended%u", mail, i);
    p->is_kept = p->has_ended = has_seen (p);
    if (p->is_kept)
      g_file_set_contents (mark, "", 0, NULL);
    else
      g_unlink (sent);
  }
}

static gboolean
run_all (const LsCaptureAsk *ask, char **environment, const char *mail, GArray *processes, GError **error)
{
  for (guint i = 0; i < processes->len; i++) {
    Process *p = &g_array_index (processes, Process, i);
    if (p->is_kept)
      continue;
    ls_remove_folder (p->output);
    if (!spawn (ask, environment, mail, p, error)) {
      g_array_set_size (processes, i);
      end_all (processes);
      return FALSE;
    }
  }
  return wait_for_all (ask, processes, error) && check_stuck (mail, processes, error);
}

/* All have ended: Process, by rank. home: an empty folder, or that of the same capture, which was
 * stopped: those of its ranks that had ended are kept. NULL: LS_ERROR_USAGE: no such command;
 * LS_ERROR_FAILED: they wait for each other, with the lines on which they do; LS_ERROR_STOPPED. */
static GArray *
run_processes (const LsCaptureAsk *ask, char **environment, const char *home, GError **error)
{
  g_autofree char *mail = g_build_filename (home, "mail", NULL);
  g_autofree char *roles = g_build_filename (mail, "roles", NULL), *before = NULL;
  g_autoptr (GArray) processes = read_roles (roles, home);
  if (processes)
    keep_ended (processes, mail);
  else {
    processes = ls_list_new (sizeof (Process), ls_clear_text);
    for (guint i = 0; i < MAX (ask->n_ranks, 1); i++)
      add_process (processes, home, ask->n_ranks > 0 ? ask->ranks[i] : 0,
                   ask->n_ranks > 0 && ask->which != LS_CAPTURE_ONE);
  }
  g_mkdir (mail, 0700);
  g_autoptr (GString) list = g_string_new ("{\"ranks\": [");
  for (guint i = 0; i < ask->n_ranks; i++)
    g_string_append_printf (list, "%s%u", i > 0 ? ", " : "", ask->ranks[i]);
  g_string_append (list, "], \"peers\": [], \"represents\": null}\n");
  if (ask->which == LS_CAPTURE_LIST && !g_file_set_contents (roles, list->str, (gssize) list->len, error))
    return NULL;
  for (guint round = 0; round < MOST_ROUNDS; round++) {
    g_autofree char *now = NULL;
    g_file_get_contents (roles, &before, NULL, NULL);
    if (!run_all (ask, environment, mail, processes, error))
      return NULL;
    g_file_get_contents (roles, &now, NULL, NULL);
    if (g_strcmp0 (before, now) == 0)
      return g_steal_pointer (&processes);
    ls_remove_folder (mail);
    g_mkdir (mail, 0700);
    if (!g_file_set_contents (roles, now, -1, error))
      return NULL;
    g_array_unref (processes);
    processes = read_roles (roles, home);
    g_clear_pointer (&before, g_free);
  }
  return ls_fail_null (
      error, LS_ERROR_FAILED,
      "its ranks differ in more than %d ways: --ranks LIST names those that are to be captured",
      MOST_ROUNDS - 1);
}

/* What PyTorch's messages call the total capacity of a GPU over the size of its memory: 79.10 of 80 GiB on
 * H100, 79.15 of 80 GiB on A100 (messages of out of memory in issues of pytorch/pytorch and
 * huggingface/transformers). */
#define SHARE_THAT_IS_SEEN 0.9888
/* Of a process with the kernels that PyTorch loads: strategies/software, "CUDA context". */
#define CONTEXT_BYTES ((uint64_t) (0.8 * (1 << 30)))

/* Technical specifications by compute capability: CUDA C++ programming guide 13.0, table "technical
 * specifications". L2: data sheets of the largest chip of that generation. */
typedef struct {
  int capability;
  int warps_per_sm, blocks_per_sm;
  int shared_per_sm, shared_per_block; /* KiB */
  int l2;                              /* MiB */
} Limits;

static const Limits limits[] = {
  { 70, 64, 32, 96, 96, 6 },      { 75, 32, 16, 64, 64, 4 },      { 80, 64, 32, 164, 163, 40 },
  { 86, 48, 16, 100, 99, 6 },     { 89, 48, 24, 100, 99, 48 },    { 90, 64, 32, 228, 227, 50 },
  { 100, 64, 32, 228, 227, 126 }, { 103, 64, 32, 228, 227, 126 }, { 120, 48, 24, 100, 99, 96 },
  { 121, 48, 24, 100, 99, 24 },
};

/* --- the GPU, as the stand-ins read it --------------------------------------------------------------- */

static uint64_t
total_of (const LsGpu *gpu)
{
  return (uint64_t) (SHARE_THAT_IS_SEEN * (double) gpu->hbm_bytes) >> 21 << 21;
}

static char *
exact (double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_dtostr (number, sizeof number, value));
}

/* Tensor cores that lack a format take the next one's rate. */
static double
peak (const LsGpu *gpu, LsDtype first, LsDtype second)
{
  double value = gpu->peak_flops[first] > 0 ? gpu->peak_flops[first] : gpu->peak_flops[second];
  return value > 0 ? value : gpu->vector_flops;
}

#include "ask/capture_words_text.h"

/* speed: over that of the GPU. NULL, LS_ERROR_UNSUPPORTED: its capability is not known. */
static char *
gpu_text (const LsCaptureAsk *ask, double speed, GError **error)
{
  const char *version = ask->gpu->capability; /* "9.0" */
  int capability = version ? (int) (10 * g_ascii_strtod (version, NULL) + 0.5) : 0;
  for (guint i = 0; i < G_N_ELEMENTS (limits); i++)
    if (limits[i].capability == capability)
      return text_of_gpu (ask, &limits[i], speed);
  return ls_fail_null (error, LS_ERROR_UNSUPPORTED,
                       "no program is captured for %s: those of NVIDIA's accelerators from V100 on are",
                       ask->gpu->name);
}

/* --- the processes ------------------------------------------------------------------------------------- */

/* Where the stand-ins lie: $LS_MODULE_DIR, beside a build's program, installed, here or where it was built
 * for. NULL: nowhere. */
static char *
find_folder (void)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *beside = program ? g_path_get_dirname (program) : NULL;
  g_autofree char *moved = beside ? g_build_filename (beside, "..", LS_LIBDIR, "lockstep", NULL) : NULL;
  const char *const folders[] = { g_getenv ("LS_MODULE_DIR"), beside, moved, LS_MODULEDIR };
  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    for (guint up = 0; folders[i] && up < 2; up++) {
      g_autofree char *folder = g_build_filename (folders[i], up ? ".." : ".", "capture", NULL);
      g_autofree char *library = g_build_filename (folder, "liblockstep-capture.so", NULL);
      if (g_file_test (library, G_FILE_TEST_EXISTS))
        return g_canonicalize_filename (folder, NULL);
    }
  return NULL;
}

static char **
set_number (char **environment, const char *name, uint32_t value)
{
  g_autofree char *text = g_strdup_printf ("%u", value);
  return value > 0 ? g_environ_setenv (environment, name, text, TRUE) : environment;
}

/* What is the same for all ranks. */
static char **
environment_of (const LsCaptureAsk *ask, const char *gpu, const char *folder)
{
  const char *path = g_getenv ("PYTHONPATH");
  g_autofree char *python = path && *path ? g_strconcat (folder, ":", path, NULL) : g_strdup (folder);
  char **e = g_get_environ ();
  e = g_environ_setenv (e, "LOCKSTEP_CAPTURE", gpu, TRUE);
  e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_LIBRARIES", folder, TRUE);
  e = g_environ_setenv (e, "PYTHONPATH", python, TRUE);
  if (ask->expert_load)
    e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_EXPERT_LOAD", ask->expert_load, TRUE);
  if (ask->models)
    e = g_environ_setenv (e, "LOCKSTEP_CAPTURE_MODELS", ask->models, TRUE);
  if (ask->tables) {
    const char *others = g_getenv ("LD_PRELOAD");
    g_autofree char *library
        = g_strdup_printf ("%s/liblockstep-clock.so%s%s", folder, others ? ":" : "", others ? others : "");
    e = g_environ_setenv (e, "LD_PRELOAD", library, TRUE);
  }
  e = set_number (e, "LOCKSTEP_CAPTURE_WORLD", ask->world);
  e = set_number (e, "LOCKSTEP_CAPTURE_STEPS", ask->steps);
  e = set_number (e, "LOCKSTEP_CAPTURE_MEMBERS", ask->members);
  e = set_number (e, "LOCKSTEP_CAPTURE_SNAPSHOT", ask->with_snapshot);
  e = set_number (e, "LOCKSTEP_CAPTURE_TRACE", ask->with_trace);
  return set_number (e, "LOCKSTEP_CAPTURE_LOCAL", ask->world > 0 ? MIN (ask->gpus_per_node, ask->world) : 0);
}

/* --- what it wrote ------------------------------------------------------------------------------------ */

static uint64_t
number_of (const cJSON *object, const char *key)
{
  double value = cJSON_GetNumberValue (cJSON_GetObjectItemCaseSensitive (object, key));
  return value > 0 ? (uint64_t) value : 0;
}

static char *
text_of (const cJSON *object, const char *key)
{
  return g_strdup (cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, key)));
}

static void
rank_free (gpointer data)
{
  LsCaptured *c = data;
  g_free (c->gpu);
  g_free (c->torch);
  g_free (c->cuda);
  g_free (c->why);
  g_free (c->error);
  g_free (c->trace);
  g_hash_table_unref (c->done);
  g_array_unref (c->rows);
  free (c->over_time);
  g_clear_pointer (&c->snapshot, g_bytes_unref);
  g_clear_pointer (&c->recorded, g_bytes_unref);
  g_free (c->roles);
  g_free (c->keys);
  g_free (c->clock.rests_on);
  g_ptr_array_unref (c->notes);
  g_free (c);
}

static void
read_rows (const cJSON *rows, GArray *ret)
{
  const cJSON *row;
  cJSON_ArrayForEach (row, rows) {
    LsCapturedRow r = { text_of (row, "kind"), text_of (row, "phase"),   text_of (row, "operator"),
                        text_of (row, "line"), number_of (row, "bytes"), number_of (row, "blocks") };
    g_array_append_val (ret, r);
  }
}

static LsCaptured *
read_seen (const LsCaptureAsk *ask, const cJSON *seen)
{
  LsCaptured *c = g_new0 (LsCaptured, 1);
  const cJSON *counts = cJSON_GetObjectItemCaseSensitive (seen, "counts");
  const cJSON *trace = cJSON_GetObjectItemCaseSensitive (seen, "trace");
  const cJSON *traced = cJSON_GetObjectItemCaseSensitive (seen, "traced");
  *c = (LsCaptured) {
    .gpu = g_strdup (ask->gpu->name),
    .torch = text_of (seen, "torch"),
    .cuda = text_of (seen, "cuda"),
    .why = text_of (seen, "why"),
    .error = text_of (seen, "error"),
    .trace = text_of (trace, "order"),
    .done = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    .world = (uint32_t) number_of (seen, "world"),
    .rank = (uint32_t) number_of (seen, "rank"),
    .steps = (uint32_t) number_of (seen, "steps"),
    .allocated_bytes = number_of (seen, "allocated_bytes"),
    .reserved_bytes = number_of (seen, "reserved_bytes"),
    .requested_bytes = number_of (seen, "requested_bytes"),
    .context_bytes = CONTEXT_BYTES,
    .total_bytes = total_of (ask->gpu),
    .n_retries = number_of (seen, "retries"),
    .n_out_of_memory = number_of (seen, "out_of_memory"),
    .n_kernels = number_of (counts, "kernels"),
    .n_products = number_of (counts, "products"),
    .n_collectives = number_of (counts, "collectives"),
    .n_communicators = number_of (counts, "communicators"),
    .n_graphs = number_of (counts, "graphs"),
    .n_plans = number_of (counts, "plans of cuDNN"),
    .depends_on_speed = number_of (counts, "answers that depend on the speed of the GPU") > 0,
    .nccl_bytes = number_of (counts, "MiB of NCCL") << 20,
    .n_operators = number_of (traced, "operators"),
    .n_launches = number_of (traced, "launches"),
    .n_apart = number_of (traced, "apart"),
    .clock
    = { .steps = (uint32_t) number_of (seen, "steps"),
        .waited_s
        = 1e-6 * (double) number_of (counts, "microseconds that the host slept or waited until some time"),
        .n_known = number_of (counts, "launches of predicted times"),
        .n_beyond = number_of (counts, "launches beyond those of the predicted step"),
        .n_crude = number_of (counts, "launches of crude times") },
    .rows = ls_list_new (sizeof (LsCapturedRow), ls_clear_4_texts),
    .over_time = cJSON_PrintUnformatted (cJSON_GetObjectItemCaseSensitive (seen, "over_time")),
    .notes = g_ptr_array_new_with_free_func (g_free),
  };
  read_rows (cJSON_GetObjectItemCaseSensitive (seen, "peak"), c->rows);
  const cJSON *note, *one;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (trace, "done"))
    g_hash_table_insert (c->done, g_strdup (one->string), GINT_TO_POINTER (one->valueint));
  cJSON_ArrayForEach (note, cJSON_GetObjectItemCaseSensitive (seen, "notes"))
    g_ptr_array_add (c->notes, g_strdup (cJSON_GetStringValue (note)));
  return c;
}

/* Why there is nothing to be read. */
static void
explain_none (const Process *p, GError **error)
{
  g_autofree char *path = g_build_filename (p->output, REFUSED, NULL), *why = NULL;
  if (g_file_get_contents (path, &why, NULL, NULL))
    ls_fail (error, LS_ERROR_UNSUPPORTED, "the capture ended: %s", g_strchomp (why));
  else if (WIFSIGNALED (p->status))
    ls_fail (error, LS_ERROR_FAILED, "the program was ended by signal %d (%s)", WTERMSIG (p->status),
             g_strsignal (WTERMSIG (p->status)));
  else
    ls_fail (error, LS_ERROR_FAILED,
             "the program ended with exit code %d and used no GPU through PyTorch\n"
             "What is captured is a program of PyTorch with CUDA, of any launcher; JAX, TensorFlow and torch "
             "without CUDA are not",
             WEXITSTATUS (p->status));
  if (p->rank > 0)
    g_prefix_error (error, "rank %u: ", p->rank);
}

/* NULL: there is none. */
static GBytes *
read_beside (const char *path, const char *suffix)
{
  g_autofree char *other = g_strconcat (path, suffix, NULL), *text = NULL;
  gsize n;
  return g_file_get_contents (other, &text, &n, NULL) ? g_bytes_new_take (g_steal_pointer (&text), n) : NULL;
}

/* Each process that imported PyTorch wrote a file, "PID.json", whole or not at all. Of several, such as those
 * that compile kernels, that which trained: with most steps, and then with most memory. */
static LsCaptured *
read_outputs (const LsCaptureAsk *ask, const char *folder)
{
  LsCaptured *best = NULL;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name; dir && (name = g_dir_read_name (dir));) {
    if (!g_str_has_suffix (name, ".json"))
      continue;
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_load (path, diags);
    if (!doc)
      continue;
    LsCaptured *c = read_seen (ask, ls_json_doc_root (doc));
    c->snapshot = read_beside (path, ".pickle");
    c->recorded = read_beside (path, ".trace");
    g_autofree char *keys = g_strconcat (path, ".keys", NULL);
    g_file_get_contents (keys, &c->keys, NULL, NULL);
    bool is_better = !best
        || (c->steps != best->steps ? c->steps > best->steps : c->allocated_bytes > best->allocated_bytes);
    if (best)
      rank_free (is_better ? best : c);
    best = is_better ? c : best;
  }
  return best;
}

/* What a rank left; NULL: nothing that is an answer. */
static LsCaptured *
read_rank (const LsCaptureAsk *ask, const Process *p, GError **error)
{
  LsCaptured *c = read_outputs (ask, p->output);
  if (!c) {
    explain_none (p, error);
    return NULL;
  }
  if (!c->error && strcmp (c->why, "it ended") == 0 && p->status != 0)
    c->error = WIFEXITED (p->status) ? g_strdup_printf ("exit code %d", WEXITSTATUS (p->status))
                                     : g_strdup_printf ("signal %d", WTERMSIG (p->status));
  c->stands_for = p->stands_for > 0 ? p->stands_for : c->world;
  c->like = p->like;
  return c;
}

uint64_t
ls_captured_apart (const LsCaptured *a, const LsCaptured *b, uint64_t *ret_n)
{
  uint64_t apart = 0;
  GHashTableIter each;
  gpointer key, value;
  *ret_n = 0;
  for (guint turn = 0; turn < 2; turn++) {
    g_hash_table_iter_init (&each, turn ? b->done : a->done);
    while (g_hash_table_iter_next (&each, &key, &value)) {
      gint n = GPOINTER_TO_INT (value);
      gint other = GPOINTER_TO_INT (g_hash_table_lookup (turn ? a->done : b->done, key));
      apart += (uint64_t) MAX (n - other, 0);
      *ret_n += turn ? (uint64_t) n : 0;
    }
  }
  return apart;
}

/* The one of both that decides: one that failed, one that ran out of memory, the fullest; what is large and
 * of it alone the other does not keep. best NULL: c. */
static LsCaptured *
decide (LsCaptured *best, LsCaptured *c)
{
  if (!best)
    return c;
  int x = !c->error            ? 0
      : c->n_out_of_memory > 0 ? 1
                               : 2,
      y = !best->error            ? 0
      : best->n_out_of_memory > 0 ? 1
                                  : 2;
  bool is_c = x != y ? x > y : ls_captured_needed (c) > ls_captured_needed (best);
  LsCaptured *other = is_c ? best : c;
  g_clear_pointer (&other->over_time, free);
  g_clear_pointer (&other->snapshot, g_bytes_unref);
  return is_c ? c : best;
}

static LsCaptured *
read_ranks (const LsCaptureAsk *ask, const GArray *processes, GError **error)
{
  LsCaptured *best = NULL;
  for (guint i = 0; i < processes->len; i++)
    if (has_failed (&g_array_index (processes, Process, i))) {
      explain_none (&g_array_index (processes, Process, i), error);
      return NULL;
    }
  g_autoptr (GPtrArray) ranks = g_ptr_array_new_with_free_func (rank_free);
  for (guint i = 0; i < processes->len; i++) {
    LsCaptured *c = read_rank (ask, &g_array_index (processes, Process, i), error);
    if (!c)
      return NULL;
    g_ptr_array_add (ranks, c);
    c->ranks = ranks;
    best = decide (best, c);
  }
  (void) g_steal_pointer (&ranks);
  return best;
}

/* An empty folder; or that of a capture which is to be kept, of its speed, where the same may have been
 * stopped. */
static char *
home_of (const LsCaptureAsk *ask, const char *gpu, double speed, GError **error)
{
  if (!ask->keep)
    return g_dir_make_tmp ("lockstep-capture-XXXXXX", error);
  g_autofree char *home = g_strdup_printf ("%s/speed-%g", ask->keep, speed),
                  *path = g_build_filename (home, "command", NULL);
  g_autofree char *now = identity_of (ask, gpu), *before = NULL;
  bool is_there = g_file_get_contents (path, &before, NULL, NULL);
  if (is_there && strcmp (before, now) != 0)
    return ls_fail_null (error, LS_ERROR_USAGE,
                         "--keep %s: another capture was stopped there: name another folder, or remove it",
                         ask->keep);
  if (g_mkdir_with_parents (home, 0700) != 0 || (!is_there && !g_file_set_contents (path, now, -1, NULL)))
    return ls_fail_null (error, LS_ERROR_IO, "--keep %s: cannot be written", ask->keep);
  return g_steal_pointer (&home);
}

/* Of a program that was captured before: nobody needs to find out again. */
static void
write_roles (const char *home, const char *roles)
{
  g_autofree char *mail = g_build_filename (home, "mail", NULL),
                  *path = g_build_filename (mail, "roles", NULL);
  g_mkdir (mail, 0700);
  g_file_set_contents (path, roles, -1, NULL);
}

/* The program once, on a GPU of that speed. What is stopped may stay; what ended, however, does not. */
static LsCaptured *
run_once (const LsCaptureAsk *ask, const char *folder, double speed, GError **error)
{
  g_autoptr (GError) problem = NULL;
  g_autofree char *gpu = gpu_text (ask, speed, error);
  g_autofree char *home = gpu ? home_of (ask, gpu, speed, error) : NULL;
  if (!home)
    return NULL;
  if (ask->tables && ask->which != LS_CAPTURE_ONE && ask->following_roles)
    write_roles (home, ask->following_roles);
  g_auto (GStrv) environment = environment_of (ask, gpu, folder);
  g_autoptr (GArray) processes = run_processes (ask, environment, home, &problem);
  LsCaptured *c = processes ? read_ranks (ask, processes, &problem) : NULL;
  if (c) {
    g_autofree char *roles = g_build_filename (home, "mail", "roles", NULL);
    for (guint i = 0; i < processes->len; i++)
      c->n_kept += g_array_index (processes, Process, i).is_kept;
    g_file_get_contents (roles, &c->roles, NULL, NULL);
  }
  if (!ask->keep || !g_error_matches (problem, LS_ERROR, LS_ERROR_STOPPED))
    ls_remove_folder (home);
  if (problem)
    g_propagate_error (error, g_steal_pointer (&problem));
  return c;
}

/* What was captured is run once more, from its beginning, on the time that was predicted for it. The answer
 * is c, with the clock's part of what came of that. */
static bool
follow_clock (const LsCaptureAsk *ask, const char *folder, LsCaptured *c, GError **error)
{
  g_autofree char *tables = g_dir_make_tmp ("lockstep-clock-XXXXXX", error);
  bool ok = tables && ls_captured_write_clock (c, ask->clock, tables, &c->clock, error);
  LsCaptureAsk again = *ask;
  again.tables = tables;
  again.following = &c->clock;
  again.following_roles = c->roles;
  again.with_trace = again.with_snapshot = false;
  g_autoptr (LsCaptured) run = ok ? run_once (&again, folder, 1, error) : NULL;
  if (tables)
    ls_remove_folder (tables);
  if (!run)
    return false;
  char *rests_on = c->clock.rests_on;
  double step = c->clock.step_time_s;
  c->clock = run->clock;
  c->clock.rests_on = rests_on;
  c->clock.step_time_s = step;
  run->clock.rests_on = NULL;
  c->error = g_strdup (run->error);
  return true;
}

static bool
find_range (const LsCaptureAsk *ask, const char *folder, LsCaptured *c, GError **error)
{
  c->low_bytes = c->high_bytes = c->reserved_bytes;
  for (guint i = 0; i < 2 && c->depends_on_speed; i++) {
    g_autoptr (LsCaptured) other = run_once (ask, folder, i ? 2 : 0.5, error);
    if (!other)
      return false;
    if (other->error)
      return ls_fail (error, LS_ERROR_FAILED, "on a GPU of %s the speed: %s", i ? "double" : "half",
                      other->error);
    c->low_bytes = MIN (c->low_bytes, other->reserved_bytes);
    c->high_bytes = MAX (c->high_bytes, other->reserved_bytes);
  }
  return true;
}

LsCaptured *
ls_capture_run (const LsCaptureAsk *ask, GError **error)
{
  g_autofree char *folder = find_folder ();
  if (!folder)
    return ls_fail_null (
        error, LS_ERROR_UNSUPPORTED,
        "there is no capture/liblockstep-capture.so in $LS_MODULE_DIR, next to the program or in %s: this "
        "Lockstep was built with -Dcapture=disabled",
        LS_MODULEDIR);
  LsCaptureAsk first = *ask;
  first.with_trace |= ask->clock != NULL;
  first.steps = ask->clock ? CLOCK_STEPS : ask->steps;
  g_autoptr (LsCaptured) c = run_once (&first, folder, 1, error);
  if (!c || (ask->clock && !c->error && !follow_clock (ask, folder, c, error)))
    return NULL;
  if (ask->with_range && !c->error && !find_range (&first, folder, c, error))
    return NULL;
  return g_steal_pointer (&c);
}

void
ls_captured_free (LsCaptured *c)
{
  if (c)
    g_ptr_array_unref (c->ranks);
}

uint64_t
ls_captured_needed (const LsCaptured *c)
{
  return c->reserved_bytes + c->context_bytes + c->nccl_bytes;
}

bool
ls_captured_fits (const LsCaptured *c)
{
  return !c->error && ls_captured_needed (c) <= c->total_bytes;
}

/* --- advice ------------------------------------------------------------------------------------------- */

/* Of a row; "": any. */
typedef struct {
  const char *kind, *phase, *operator; /* operator: a part of its name */
  const char *line;                    /* of the advice, after the bytes */
} Advice;

static const Advice advices[] = {
  { "parameters", "", "", "of parameters: sharded over the ranks (FSDP, ZeRO-3) each has its part" },
  { "gradients", "", "", "of gradients: ZeRO-2, FSDP shard them; 16 bits take half of 32" },
  { "optimizer", "", "",
    "of optimizer states: ZeRO-1 shards them over the ranks; 8 bits take a quarter of 32" },
  { "", "", "softmax",
    "of softmax over the vocabulary: a cross-entropy by chunks, or fused with the last layer, keeps none" },
  { "activations", "forward", "",
    "of activations: checkpointing keeps the input of each layer alone; half the micro-batch takes half" },
  { "gradients of activations, and what backward needs", "", "",
    "of gradients of activations: half the micro-batch, tensor or context parallelism over 2 take half" },
};

typedef struct {
  uint64_t bytes;
  const char *line;
} AdviceSum;

static const LsSortKey most_first[] = { { LS_FALLING (AdviceSum, bytes) }, { 0 } };

char *
ls_captured_advice (const LsCaptured *c)
{
  AdviceSum sums[G_N_ELEMENTS (advices) + 1];
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (advices); i++) {
    sums[i] = (AdviceSum) { 0, advices[i].line };
    for (guint k = 0; k < c->rows->len; k++) {
      const LsCapturedRow *r = &g_array_index (c->rows, LsCapturedRow, k);
      const Advice *a = &advices[i];
      bool is_about = (!*a->kind || g_strcmp0 (a->kind, r->kind) == 0)
          && (!*a->phase || g_strcmp0 (a->phase, r->phase) == 0)
          && (!*a->operator|| (r->operator&& strstr (r->operator, a->operator)));
      sums[i].bytes += is_about ? r->bytes : 0;
    }
  }
  sums[G_N_ELEMENTS (advices)] = (AdviceSum) {
    c->reserved_bytes - MIN (c->allocated_bytes, c->reserved_bytes),
    "are reserved and in no use: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or False where it is "
    "True, may keep less"
  };
  g_qsort_with_data (sums, G_N_ELEMENTS (sums), sizeof *sums, ls_compare_by, (gpointer) most_first);
  for (guint i = 0; i < G_N_ELEMENTS (sums); i++)
    if (sums[i].bytes * 20 >= c->total_bytes) /* what is less is no help */
      g_string_append_printf (text, "\nhint: %.1f GiB %s", (double) sums[i].bytes / (1 << 30), sums[i].line);
  return g_string_free (text, FALSE);
}

gboolean
ls_captured_write_trace (const LsCaptured *c, const char *folder, GError **error)
{
  g_autoptr (GArray) files = g_array_new (FALSE, FALSE, sizeof (LsCapturedFile));
  for (guint i = 0; i < c->ranks->len; i++) {
    const LsCaptured *r = c->ranks->pdata[i];
    const LsCapturedFile file = { r->rank, r->recorded };
    if (r->recorded)
      g_array_append_val (files, file);
  }
  if (files->len == c->ranks->len)
    return ls_captured_trace_write (folder, c->world, c->gpu, c->roles, files, error);
  return ls_fail (error, LS_ERROR_FAILED,
                  "no whole step was seen of %u of %u ranks, so there is no trace: PyTorch's optimizers say "
                  "when one ends",
                  c->ranks->len - files->len, c->ranks->len);
}
