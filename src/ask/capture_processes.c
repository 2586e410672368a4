#include "ask/capture_processes.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/error.h>

#include "data/text/json_doc.h"

#define EXIT_STUCK  72 /* LS_EXIT_STUCK of capture/standin.h: all that wait end so, each after a word */
#define MOST_ROUNDS 8  /* each finds another family of ranks that differ */

/* --- one process ------------------------------------------------------------------------------------- */

/* In the child: a group of its own, which ends with us; what the program prints is no part of the answer. */
static void
set_up (gpointer data)
{
  (void) data;
  setpgid (0, 0);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  dup2 (STDERR_FILENO, STDOUT_FILENO);
}

static gboolean
spawn (const LsCaptureAsk *ask, char **environment, const char *mail, LsCaptureProcess *p, GError **error)
{
  static const char *const which[] = { "auto", "one", "all", "list" };
  g_autofree char *refused = g_build_filename (p->output, LS_CAPTURE_REFUSED, NULL);
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
  if (!g_spawn_async (NULL, (char **) ask->command, e, flags, set_up, NULL, &p->pid, &problem)) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%s: %s", ask->command[0], problem->message);
    p->has_ended = true;
    return FALSE;
  }
  return TRUE;
}

static void
look (LsCaptureProcess *p)
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
clear_process (gpointer data)
{
  g_free (((LsCaptureProcess *) data)->output);
}

static void
end_all (GArray *processes)
{
  for (guint turn = 0; turn < 2; turn++) {
    bool any = false;
    for (guint i = 0; i < processes->len; i++) {
      LsCaptureProcess *p = &g_array_index (processes, LsCaptureProcess, i);
      look (p);
      p->was_ended |= !p->has_ended;
      if (!p->has_ended)
        any = kill (-p->pid, turn ? SIGKILL : SIGTERM) == 0 || any;
    }
    if (any && turn == 0)
      g_usleep (G_USEC_PER_SEC / 2);
  }
  for (guint i = 0; i < processes->len; i++) {
    LsCaptureProcess *p = &g_array_index (processes, LsCaptureProcess, i);
    if (!p->has_ended)
      waitpid (p->pid, &p->status, 0);
    p->has_ended = true;
  }
}

static bool
has_seen (const LsCaptureProcess *p)
{
  g_autoptr (GDir) dir = g_dir_open (p->output, 0, NULL);
  for (const char *name; dir && (name = g_dir_read_name (dir));)
    if (g_str_has_suffix (name, ".json"))
      return true;
  return false;
}

bool
ls_capture_has_failed (const LsCaptureProcess *p)
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
      LsCaptureProcess *p = &g_array_index (processes, LsCaptureProcess, i);
      look (p);
      n_ended += p->has_ended;
      bool is_stuck = WIFEXITED (p->status) && WEXITSTATUS (p->status) == EXIT_STUCK;
      failed |= ls_capture_has_failed (p) && !is_stuck; /* the others would wait for it */
    }
    if (processes->len > 1)
      ls_progress_tell (ask->progress, n_ended, processes->len);
    if (failed || (ask->stop && g_atomic_int_get (ask->stop)))
      end_all (processes);
    if (failed || n_ended == processes->len)
      return TRUE;
    if (ask->stop && g_atomic_int_get (ask->stop)) {
      bool leaves = ask->keep && processes->len > 1; /* a single one leaves nothing to go on with */
      g_set_error (error, LS_ERROR, LS_ERROR_STOPPED, "stopped before the program had done its steps%s%s",
                   leaves ? ": the same command goes on with what it left in " : "", leaves ? ask->keep : "");
      return FALSE;
    }
    g_usleep (20000);
  }
}

/* --- who they are ------------------------------------------------------------------------------------- */

static void
add_process (GArray *processes, const char *home, uint32_t rank, uint32_t stands_for)
{
  g_autofree char *name = g_strdup_printf ("rank-%u", rank);
  const LsCaptureProcess p = {
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
  GArray *processes = g_array_new (FALSE, TRUE, sizeof (LsCaptureProcess));
  g_array_set_clear_func (processes, clear_process);
  g_autoptr (GHashTable) of = g_hash_table_new (NULL, NULL); /* rank: how many it stands for */
  cJSON_ArrayForEach (other, represents)
  {
    gpointer key = GUINT_TO_POINTER (other->valueint);
    g_hash_table_insert (of, key, GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (of, key)) + 1));
  }
  cJSON_ArrayForEach (rank, cJSON_GetObjectItemCaseSensitive (root, "ranks"))
  {
    guint n = GPOINTER_TO_UINT (g_hash_table_lookup (of, GUINT_TO_POINTER (rank->valueint)));
    add_process (processes, home, (uint32_t) rank->valueint, n > 0 ? n : 1);
  }
  cJSON_ArrayForEach (other, cJSON_GetObjectItemCaseSensitive (root, "members"))
  {
    const cJSON *member = cJSON_GetArrayItem (other, 0), *first = cJSON_GetArrayItem (other, 1);
    for (guint i = 0; member && first && i < processes->len; i++) {
      LsCaptureProcess *p = &g_array_index (processes, LsCaptureProcess, i);
      p->like = p->rank == (uint32_t) member->valueint ? (uint32_t) first->valueint : p->like;
    }
  }
  return processes;
}

static GArray *
first_processes (const LsCaptureAsk *ask, const char *home)
{
  GArray *processes = g_array_new (FALSE, TRUE, sizeof (LsCaptureProcess));
  g_array_set_clear_func (processes, clear_process);
  if (ask->n_ranks == 0)
    add_process (processes, home, 0, 0);
  for (guint i = 0; i < ask->n_ranks; i++)
    add_process (processes, home, ask->ranks[i], ask->which == LS_CAPTURE_ONE ? 0 : 1);
  return processes;
}

static gboolean
write_list (const LsCaptureAsk *ask, const char *roles, GError **error)
{
  g_autoptr (GString) text = g_string_new ("{\"ranks\": [");
  for (guint i = 0; i < ask->n_ranks; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? ", " : "", ask->ranks[i]);
  g_string_append (text, "], \"peers\": [], \"represents\": null}\n");
  return g_file_set_contents (roles, text->str, (gssize) text->len, error);
}

/* Of ranks that wait for each other: what each said. */
static gboolean
check_stuck (const char *mail, const GArray *processes, GError **error)
{
  g_autoptr (GString) all = g_string_new (NULL);
  for (guint i = 0; i < processes->len; i++) {
    const LsCaptureProcess *p = &g_array_index (processes, LsCaptureProcess, i);
    g_autofree char *name = g_strdup_printf ("stuck.%08u", p->rank);
    g_autofree char *path = g_build_filename (mail, name, NULL), *text = NULL;
    if (g_file_get_contents (path, &text, NULL, NULL))
      g_string_append_printf (all, "\n  %s", g_strchomp (text));
  }
  if (all->len == 0)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_FAILED, "its ranks wait for each other:%s", all->str);
  return FALSE;
}

void
ls_capture_remove (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name; dir && (name = g_dir_read_name (dir));) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    if (g_file_test (path, G_FILE_TEST_IS_DIR) && !g_file_test (path, G_FILE_TEST_IS_SYMLINK))
      ls_capture_remove (path);
    else
      g_unlink (path);
  }
  g_rmdir (folder);
}

/* Of a capture that was stopped: ranks that have ended stay, with what they sent; the others begin anew. */
static void
keep_ended (GArray *processes, const char *mail)
{
  g_autofree char *board = g_build_filename (mail, "board0", NULL);
  g_unlink (board);
  for (guint i = 0; i < processes->len; i++) {
    LsCaptureProcess *p = &g_array_index (processes, LsCaptureProcess, i);
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
    LsCaptureProcess *p = &g_array_index (processes, LsCaptureProcess, i);
    if (p->is_kept)
      continue;
    ls_capture_remove (p->output);
    if (!spawn (ask, environment, mail, p, error)) {
      g_array_set_size (processes, i);
      end_all (processes);
      return FALSE;
    }
  }
  return wait_for_all (ask, processes, error) && check_stuck (mail, processes, error);
}

GArray *
ls_capture_processes (const LsCaptureAsk *ask, char **environment, const char *home, GError **error)
{
  g_autofree char *mail = g_build_filename (home, "mail", NULL);
  g_autofree char *roles = g_build_filename (mail, "roles", NULL), *before = NULL;
  g_autoptr (GArray) processes = read_roles (roles, home);
  if (processes)
    keep_ended (processes, mail);
  else
    processes = first_processes (ask, home);
  g_mkdir (mail, 0700);
  if (ask->which == LS_CAPTURE_LIST && !write_list (ask, roles, error))
    return NULL;
  for (guint round = 0; round < MOST_ROUNDS; round++) {
    g_autofree char *now = NULL;
    g_file_get_contents (roles, &before, NULL, NULL);
    if (!run_all (ask, environment, mail, processes, error))
      return NULL;
    g_file_get_contents (roles, &now, NULL, NULL);
    if (g_strcmp0 (before, now) == 0)
      return g_steal_pointer (&processes);
    ls_capture_remove (mail);
    g_mkdir (mail, 0700);
    if (!g_file_set_contents (roles, now, -1, error))
      return NULL;
    g_array_unref (processes);
    processes = read_roles (roles, home);
    g_clear_pointer (&before, g_free);
  }
  g_set_error (error, LS_ERROR, LS_ERROR_FAILED,
               "its ranks differ in more than %d ways: --ranks LIST names those that are to be captured",
               MOST_ROUNDS - 1);
  return NULL;
}
