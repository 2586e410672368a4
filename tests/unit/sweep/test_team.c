/* Pins teams: a sweep by three processes has the bytes of one, whoever works how fast; a mate that fails, has
 * another job or simulates another step is the leader's error, and nobody hangs. The processes are
 * this program started again, over sockets in the place of MPI. */
#include "ls_test.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "show/answers.h"
#include "sweep/sweep_state.h"

#define N 3

/* --- a transport over sockets ---------------------------------------------------------------- */

static guint own_rank;
static int sockets[N]; /* at a mate only [0] */

static const char *
join (guint *ret_rank, guint *ret_n, guint *ret_n_here)
{
  *ret_rank = own_rank;
  *ret_n = *ret_n_here = N;
  return NULL;
}

static void
send_to (guint to, const void *data, guint size)
{
  g_assert_cmpint (send (sockets[to], data, size, 0), ==, (gssize) size);
}

static bool
receive (void *data, guint size, guint *ret_from)
{
  for (guint i = own_rank == 0 ? 1 : 0; i < (own_rank == 0 ? N : 1); i++) {
    gssize n = recv (sockets[i], data, size, MSG_DONTWAIT);
    if (n == (gssize) size) {
      *ret_from = i;
      return true;
    }
    if (n == 0 && own_rank > 0)
      g_error ("the leader has died");
  }
  return false;
}

static void
leave (void)
{
  for (guint i = 0; i < N; i++)
    if (sockets[i] > 0)
      close (sockets[i]);
}

static const LsTransport transport = { join, send_to, receive, leave };

/* --- processes --------------------------------------------------------------------------------- */

/* knobs: "KEY VALUE KEY VALUE". NULL: reterr. */
static char *
sweep (LsTeam *team, const char *knobs, GError **error)
{
  LsSweepSpec spec;
  g_auto (GStrv) words = g_strsplit (knobs, " ", -1);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_sweep_spec_init (&spec);
  for (guint i = 0; words[i]; i += 2)
    if (!ls_sweep_spec_set (&spec, words[i], words[i + 1], diags))
      g_error ("%s: no such knob", words[i]); /* a mate has no test to fail */
  spec.pareto = true;
  spec.team = team;
  g_autoptr (LsSweepRun) x = ls_sweep_spec_run (&spec, error);
  g_autofree char *json = NULL, *list = NULL;
  if (x && own_rank == 0) {
    x->report.wall_s = x->report.simulate_s = 0;
    json = ls_sweep_to_json (ls_sweep_run_report (x));
    list = ls_sweep_run_list (x);
  }
  ls_sweep_spec_clear (&spec);
  return json ? g_strconcat (json, list, NULL) : NULL;
}

/* told: "RANK SOCKET KNOBS". */
static int
be_mate (const char *told)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (told, " ", 3);
  const char *knobs = words[2];
  own_rank = (guint) atoi (words[0]);
  sockets[0] = atoi (words[1]);
  LsTeam *team = ls_team_new_over (&transport, NULL);
  g_free (sweep (team, knobs, &error));
  ls_team_free (team, error);
  return 0;
}

static GPid
start_mate (guint rank, const char *knobs)
{
  int pair[2];
  g_assert (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  fcntl (pair[0], F_SETFD, FD_CLOEXEC);
  sockets[rank] = pair[0];
  g_autofree char *told = g_strdup_printf ("%u %d %s", rank, pair[1], knobs);
  g_auto (GStrv) environment = g_environ_setenv (g_get_environ (), "LS_TEST_MATE", told, TRUE);
  char *argv[] = { "/proc/self/exe", "team", NULL };
  GPid pid = 0;
  g_spawn_async (NULL, argv, environment, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_LEAVE_DESCRIPTORS_OPEN, NULL,
                 NULL, &pid, NULL);
  close (pair[1]);
  return pid;
}

/* One mate with the knobs of the leader, the last with its own. */
static char *
sweep_together (const char *knobs, const char *last, GError **error)
{
  GPid mates[N];
  for (guint i = 1; i < N; i++)
    mates[i] = start_mate (i, i + 1 < N ? knobs : last);
  LsTeam *team = ls_team_new_over (&transport, NULL);
  char *text = sweep (team, knobs, error);
  ls_team_free (team, error ? *error : NULL);
  for (guint i = 1; i < N; i++) {
    int status;
    LS_CHECK (waitpid (mates[i], &status, 0) == mates[i] && status == 0);
  }
  return text;
}

/* --- what they find ------------------------------------------------------------------------------ */

#define JOB                                                                                                  \
  "cluster pair gpus 4 global-batch 16 micro-batch 1,2 pp 1,2 recompute none vpp 1 dp-kind megatron threads 2"
#define TINY JOB " model tiny"

static void
three_processes_find_the_same (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *alone = sweep (NULL, TINY, &error), *together = sweep_together (TINY, TINY, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (alone && strstr (alone, "\"simulated\": 0") == NULL);
  LS_CHECK_STR (together, alone);
}

static void
check_error (const char *last, LsErrorCode code, const char *message)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = sweep_together (TINY " prune off", last, &error);
  LS_CHECK (!text && error);
  if (!error)
    return;
  LS_CHECK_INT (error->code, ==, code);
  ls_check_impl (strstr (error->message, message) != NULL, __FILE__, __LINE__, "\"%s\" in: %s", message,
                 error->message);
}

static void
errors_of_mates_reach_the_leader (void)
{
  check_error (JOB " model nope prune off", LS_ERROR_INPUT, "process 2: ");
  check_error (TINY " tp 1 prune off", LS_ERROR_CONFLICT, "process 2 has another job");
}

/* A file of the same name, as it may lie on another machine. */
static void
another_model_of_the_same_name_is_seen (void)
{
  g_autofree char *from = g_build_filename (g_getenv ("LS_DATA_DIR"), "models", "tiny.json", NULL),
                  *text = NULL;
  g_autofree char *folder = g_dir_make_tmp ("team-XXXXXX", NULL),
                  *to = g_build_filename (folder, "tiny.json", NULL);
  LS_CHECK (g_file_get_contents (from, &text, NULL, NULL));
  char *layers = text ? strstr (text, "\"layers\": 4") : NULL;
  if (!LS_CHECK (layers != NULL))
    return;
  layers[strlen ("\"layers\": ")] = '8';
  LS_CHECK (g_file_set_contents (to, text, -1, NULL));
  g_autofree char *knobs = g_strdup_printf (JOB " model %s prune off", to);
  check_error (knobs, LS_ERROR_CONFLICT, "process 2 simulates another step");
  g_unlink (to);
  g_rmdir (folder);
}

static void
an_error_of_the_leader_ends_all (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = sweep_together (JOB " model nope", TINY, &error);
  LS_CHECK (!text && g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
}

static void
before (void)
{
  if (g_getenv ("LS_TEST_MATE"))
    exit (be_mate (g_getenv ("LS_TEST_MATE")));
  ls_test_golden_data ();
  alarm (100); /* who hangs, fails */
}

LS_TEST_SUITE_WITH (before, NULL, LS_TEST (three_processes_find_the_same),
                    LS_TEST (errors_of_mates_reach_the_leader),
                    LS_TEST (another_model_of_the_same_name_is_seen),
                    LS_TEST (an_error_of_the_leader_ends_all))
