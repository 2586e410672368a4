/* Pins teams: a sweep by three processes has the bytes of one, whoever works how fast; a mate that fails, has
 * another job or simulates another step is the leader's error, and nobody hangs. Of a loop all have all, whoever
 * found it, and one that is slow holds up nobody. The processes are
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
    if (n > 0) {
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

/* --- a loop --------------------------------------------------------------------------------------- */

#define N_NUMBERS 40

/* "loop KEY GATE [HOW]": GATE: a file, without which mates do not get on with what they are given; HOW: a
 * mate finds another first answer, or one that is too long, or goes through one loop alone. */
typedef struct {
  const char *gate, *how;
  gint n_found; /* here */
  uint64_t squares[N_NUMBERS];
  bool is_known[N_NUMBERS];
} Squares;

static void
find_square (guint i, gpointer data)
{
  Squares *x = data;
  bool is_mate = own_rank > 0, is_other = is_mate && g_strcmp0 (x->how, "other") == 0;
  while (is_mate && i > 0 && !g_file_test (x->gate, G_FILE_TEST_EXISTS))
    g_usleep (1000);
  x->squares[i] = (uint64_t) i * i + is_other;
  x->is_known[i] = true;
  int n_found = g_atomic_int_add (&x->n_found, 1) + 1;
  if (!is_mate && n_found == N_NUMBERS - (N - 1)) /* all but one of each mate */
    g_file_set_contents (x->gate, "", 0, NULL);
}

static GVariant *
pack_square (guint i, gconstpointer data)
{
  const Squares *x = data;
  bool is_long = own_rank > 0 && i > 0 && g_strcmp0 (x->how, "long") == 0;
  g_autofree char *more = g_strnfill (is_long ? LS_TEAM_MAX_BYTES : 3, 'x');
  return g_variant_new ("(ts)", x->squares[i], more);
}

static void
unpack_square (guint i, GVariant *answer, gpointer data)
{
  Squares *x = data;
  g_variant_get (answer, "(t&s)", &x->squares[i], NULL);
  x->is_known[i] = true;
}

/* Twice. Newly allocated: how many it found by itself, in the first; NULL: reterr. */
static char *
loop (LsTeam *team, const char *words, GError **error)
{
  g_auto (GStrv) said = g_strsplit (words, " ", 4);
  char *text = NULL;
  for (int round = 0; round < 2; round++) {
    Squares x = { .gate = said[2], .how = said[3] };
    const LsTeamLoop squares
        = { .each = find_square, .pack = pack_square, .unpack = unpack_square, .type = "(ts)", .data = &x };
    const LsTeamSetup setup = { .team = team, .n_threads = 1, .key = said[1] };
    if (own_rank > 0 && round > 0 && g_strcmp0 (x.how, "once") == 0) {
      g_set_error (error, LS_ERROR, LS_ERROR_IO, "its disk is full");
      return text;
    }
    if (!ls_team_each (&setup, N_NUMBERS, &squares, error)) {
      g_free (text);
      return NULL;
    }
    for (uint64_t i = 0; i < N_NUMBERS; i++)
      if (!x.is_known[i] || x.squares[i] != i * i)
        g_error ("process %u does not know the square of %u", own_rank, (guint) i);
    text = text ? text : g_strdup_printf ("%d", x.n_found);
  }
  return text;
}

static char *
work (LsTeam *team, const char *words, GError **error)
{
  return g_str_has_prefix (words, "loop ") ? loop (team, words, error) : sweep (team, words, error);
}

/* told: "RANK SOCKET WORDS". */
static int
be_mate (const char *told)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (told, " ", 3);
  own_rank = (guint) atoi (words[0]);
  sockets[0] = atoi (words[1]);
  LsTeam *team = ls_team_new_over (&transport, NULL);
  g_free (work (team, words[2], &error));
  ls_team_free (team, error);
  return 0;
}

static GPid
start_mate (guint rank, const char *words)
{
  int pair[2];
  g_assert (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  fcntl (pair[0], F_SETFD, FD_CLOEXEC);
  sockets[rank] = pair[0];
  g_autofree char *told = g_strdup_printf ("%u %d %s", rank, pair[1], words);
  g_auto (GStrv) environment = g_environ_setenv (g_get_environ (), "LS_TEST_MATE", told, TRUE);
  char *argv[] = { "/proc/self/exe", "team", NULL };
  GPid pid = 0;
  g_spawn_async (NULL, argv, environment, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_LEAVE_DESCRIPTORS_OPEN, NULL,
                 NULL, &pid, NULL);
  close (pair[1]);
  return pid;
}

/* One mate with the words of the leader, the last with its own. */
static char *
work_together (const char *words, const char *last, GError **error)
{
  GPid mates[N];
  for (guint i = 1; i < N; i++)
    mates[i] = start_mate (i, i + 1 < N ? words : last);
  LsTeam *team = ls_team_new_over (&transport, NULL);
  char *text = work (team, words, error);
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
  g_autofree char *alone = sweep (NULL, TINY, &error), *together = work_together (TINY, TINY, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (alone && strstr (alone, "\"simulated\": 0") == NULL);
  LS_CHECK_STR (together, alone);
}

static void
check_error_of (const char *words, const char *last, LsErrorCode code, const char *message)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = work_together (words, last, &error);
  LS_CHECK (!text && error);
  if (!error)
    return;
  LS_CHECK_INT (error->code, ==, code);
  ls_check_impl (strstr (error->message, message) != NULL, __FILE__, __LINE__, "\"%s\" in: %s", message,
                 error->message);
}

static void
check_error (const char *last, LsErrorCode code, const char *message)
{
  check_error_of (TINY " prune off", last, code, message);
}

static void
errors_of_mates_reach_the_leader (void)
{
  check_error (JOB " model nope prune off", LS_ERROR_INPUT, "process 2: ");
  check_error (TINY " tp 1 prune off", LS_ERROR_CONFLICT, "process 2 has another job");
}

#define TRIES 20

/* A file of the same name, as it may lie on another machine: seen when that one has simulated something, which
 * the others may have done before it came. */
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
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < TRIES && !error; i++) {
    g_autofree char *found = work_together (TINY " prune off", knobs, &error);
  }
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT)
            && strstr (error->message, "process 2 simulates another step"));
  g_unlink (to);
  g_rmdir (folder);
}

static void
an_error_of_the_leader_ends_all (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = work_together (JOB " model nope", TINY, &error);
  LS_CHECK (!text && g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
}

/* Mates do nothing until the leader has found all but what they were given. */
static void
one_that_is_slow_holds_up_nobody (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("team-XXXXXX", NULL),
                  *gate = g_build_filename (folder, "gate", NULL);
  g_autofree char *words = g_strdup_printf ("loop squares %s", gate);
  g_autofree char *n_found = work_together (words, words, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK_STR (n_found, "38");
  g_unlink (gate);
  g_rmdir (folder);
}

static void
errors_of_mates_end_a_loop (void)
{
  const char *open = "loop squares /"; /* a gate that is there */
  check_error_of (open, "loop cubes /", LS_ERROR_CONFLICT, "process 2 has another job");
  check_error_of (open, "loop squares / other", LS_ERROR_CONFLICT, "process 2 has another job");
  check_error_of (open, "loop squares / long", LS_ERROR_LIMIT, "longer than a message");
  check_error_of (open, "loop squares / once", LS_ERROR_IO, "process 2: its disk is full");
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
                    LS_TEST (an_error_of_the_leader_ends_all), LS_TEST (one_that_is_slow_holds_up_nobody),
                    LS_TEST (errors_of_mates_end_a_loop))
