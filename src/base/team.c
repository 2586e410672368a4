#include "base/team.h"

#include <gmodule.h>
#include <lockstep/error.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/handover.h"

#define POLL_US 1000

struct LsTeam {
  const LsTransport *transport;
  guint rank, n, n_here;
  guint *n_threads;  /* [n], at the leader: what mates reported */
  bool has_reported; /* a mate; at the leader: all have */
  bool is_over;      /* at a mate: QUIT has come        */
};

/* --- the module --------------------------------------------------------------------------------- */

static GModule *
open_module (const char *folder, GError **error)
{
  g_autofree char *path = folder ? g_build_filename (folder, LS_TRANSPORT_MODULE, NULL) : NULL;
  if (!path || !g_file_test (path, G_FILE_TEST_EXISTS))
    return NULL;
  GModule *module = g_module_open (path, G_MODULE_BIND_LAZY); /* global: plug-ins of MPI look for its names */
  if (!module)
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED, "--mpi: cannot load %s: %s", path, g_module_error ());
  return module;
}

/* $LS_MODULE_DIR, the folder of the program, the installed one. It stays loaded. */
static const LsTransport *
load_transport (GError **error)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *beside = program ? g_path_get_dirname (program) : NULL;
  const char *const folders[] = { g_getenv ("LS_MODULE_DIR"), beside, LS_MODULEDIR };
  GModule *module = NULL;
  g_autoptr (GError) problem = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (folders) && !module && !problem; i++)
    module = open_module (folders[i], &problem);
  gpointer transport = NULL;
  if (problem)
    g_propagate_error (error, g_steal_pointer (&problem));
  else if (!module)
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 "--mpi: there is no " LS_TRANSPORT_MODULE
                 " in $LS_MODULE_DIR, next to the program or in %s: "
                 "this Lockstep was built "
                 "without MPI\nhint: install Open MPI (Debian: libopenmpi-dev, openmpi-bin) and build with "
                 "-Dmpi=enabled",
                 LS_MODULEDIR);
  else if (!g_module_symbol (module, LS_TRANSPORT_SYMBOL, &transport))
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED, "--mpi: %s is no module of Lockstep",
                 g_module_name (module));
  return transport;
}

/* --- beginning ------------------------------------------------------------------------------------ */

LsTeam *
ls_team_new_over (const LsTransport *transport, GError **error)
{
  LsTeam *team = g_new0 (LsTeam, 1);
  team->transport = transport;
  const char *problem = transport->join (&team->rank, &team->n, &team->n_here);
  team->n_threads = g_new0 (guint, problem ? 1 : team->n);
  if (!problem)
    return team;
  g_set_error (error, LS_ERROR, LS_ERROR_FAILED, "--mpi: %s", problem);
  g_free (team->n_threads);
  g_free (team);
  return NULL;
}

LsTeam *
ls_team_new (GError **error)
{
  const LsTransport *transport = load_transport (error);
  return transport ? ls_team_new_over (transport, error) : NULL;
}

guint
ls_team_own_rank (const LsTeam *team)
{
  return team->rank;
}

guint
ls_team_n (const LsTeam *team)
{
  return team->n;
}

guint
ls_team_default_threads (const LsTeam *team)
{
  glong online = sysconf (_SC_NPROCESSORS_ONLN);
  return MIN (g_get_num_processors (), MAX (1, (guint) MAX (online, 1) / team->n_here));
}

/* --- messages --------------------------------------------------------------------------------------- */

static void
send_message (LsTeam *team, guint to, LsTeamKind kind, guint number, const void *bytes, guint n)
{
  LsTeamMessage m;
  m.kind = kind;
  m.number = number;
  g_assert_cmpuint (n, <, sizeof m.bytes);
  if (n > 0)
    memcpy (m.bytes, bytes, n);
  m.bytes[n] = '\0';
  team->transport->send (to, &m, (guint) offsetof (LsTeamMessage, bytes) + n + 1);
}

static void
send_text (LsTeam *team, LsTeamKind kind, guint number, const char *text)
{
  send_message (team, 0, kind, number, text, (guint) MIN (strlen (text), LS_TEAM_MAX_BYTES - 1));
  team->has_reported = true;
}

static guint
wait_for_message (LsTeam *team, LsTeamMessage *ret_message)
{
  guint from;
  while (!team->transport->receive (ret_message, sizeof *ret_message, &from))
    g_usleep (POLL_US);
  return from;
}

void
ls_team_send (LsTeam *team, guint to, LsTeamKind kind, const void *bytes, guint size)
{
  send_message (team, to, kind, size, bytes, size);
}

bool
ls_team_receive (LsTeam *team, LsTeamMessage *ret_message, guint *ret_from)
{
  if (!team->transport->receive (ret_message, sizeof *ret_message, ret_from))
    return false;
  team->is_over = ret_message->kind == LS_TEAM_QUIT;
  return true;
}

/* --- reports ------------------------------------------------------------------------------------------ */

void
ls_team_report (LsTeam *team, const char *key, guint n_threads)
{
  if (!team->has_reported)
    send_text (team, LS_TEAM_READY, n_threads, key);
}

gboolean
ls_team_gather (LsTeam *team, const char *key, guint *ret_n_threads, GError **error)
{
  g_autoptr (GError) first = NULL;
  for (guint i = 1; i < team->n && !team->has_reported; i++) {
    LsTeamMessage m;
    guint from = wait_for_message (team, &m);
    bool is_ready = m.kind == LS_TEAM_READY,
         is_same = is_ready && strncmp (m.bytes, key, sizeof m.bytes) == 0;
    team->n_threads[from] = m.number;
    if (!is_ready && !first)
      g_set_error (&first, LS_ERROR, (gint) m.number, "process %u: %s", from, m.bytes);
    else if (is_ready && !is_same && !first)
      g_set_error (&first, LS_ERROR, LS_ERROR_CONFLICT,
                   "process %u has another job than process 0: all need the same program, command line and "
                   "data",
                   from);
  }
  team->has_reported = true;
  memcpy (ret_n_threads, team->n_threads, team->n * sizeof *ret_n_threads);
  if (!first)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&first));
  return FALSE;
}

/* --- the end ------------------------------------------------------------------------------------------ */

static void
end_as_leader (LsTeam *team)
{
  for (guint to = 1; to < team->n; to++)
    send_message (team, to, LS_TEAM_QUIT, 0, NULL, 0);
  for (guint n_left = team->n - 1; n_left > 0;) {
    LsTeamMessage m;
    wait_for_message (team, &m); /* late reports and results are of no use any more */
    n_left -= m.kind == LS_TEAM_BYE;
  }
}

static void
end_as_mate (LsTeam *team, const GError *error)
{
  if (!team->has_reported || (error && !team->is_over))
    send_text (team, LS_TEAM_FAILED, error ? (guint) error->code : LS_ERROR_FAILED,
               error ? error->message : "it ended early");
  while (!team->is_over) {
    LsTeamMessage m;
    wait_for_message (team, &m);
    team->is_over = m.kind == LS_TEAM_QUIT;
  }
  send_message (team, 0, LS_TEAM_BYE, 0, NULL, 0);
}

void
ls_team_free (LsTeam *team, const GError *error)
{
  if (!team)
    return;
  if (team->rank == 0)
    end_as_leader (team);
  else
    end_as_mate (team, error);
  team->transport->leave ();
  g_free (team->n_threads);
  g_free (team);
}

/* --- one loop by all processes ---------------------------------------------------------------------- */

/* The leader hands out one number at a time to whoever has a thread idle, its own among them: one that is
 * slow gets fewer. Then it tells each what the others found. */

#define POLL_RESULTS_US 100 /* of messages, beside results of own threads */

typedef struct {
  LsTeam *team;
  guint n;
  const LsTeamLoop *loop;
  LsCrew *threads;
  GAsyncQueue *done; /* number + 1, by threads here */
  guint n_done;
  guint *by;                 /* [n] process + 1 that has found it, 0: none yet; at a mate only its own */
  guint *n_threads, *n_busy; /* [processes], at the leader */
  GError *error;
} Each;

/* A result or an answer. */
typedef struct {
  uint64_t number;
  char bytes[LS_TEAM_MAX_BYTES - 2 * sizeof (uint64_t)];
} Told;

/* --- threads here --- */

static void
do_one (gpointer i_plus_one, gpointer data)
{
  Each *x = data;
  LS_TAKE_OVER (x);
  x->loop->each (GPOINTER_TO_UINT (i_plus_one) - 1, x->loop->data);
  LS_HAND_OVER (x->done);
  g_async_queue_push (x->done, i_plus_one);
}

static void
push (Each *x, guint i)
{
  LS_HAND_OVER (x);
  ls_crew_push (x->threads, GUINT_TO_POINTER (i + 1));
}

/* What a thread here has found; false: none has, after a while. */
static bool
pop (Each *x, guint *ret_i)
{
  gpointer i_plus_one = g_async_queue_timeout_pop (x->done, POLL_RESULTS_US);
  LS_TAKE_OVER (x->done);
  *ret_i = GPOINTER_TO_UINT (i_plus_one) - 1;
  return i_plus_one != NULL;
}

/* --- what is told --- */

static void
mark (Each *x, guint i, guint by)
{
  x->by[i] = by + 1;
  x->n_done++;
}

static void
tell (Each *x, guint to, LsTeamKind kind, guint i)
{
  Told told = { .number = i };
  g_autoptr (GVariant) answer = g_variant_ref_sink (x->loop->pack (i, x->loop->data));
  gsize size = g_variant_get_size (answer);
  if (size > sizeof told.bytes) {
    if (!x->error)
      g_set_error (&x->error, LS_ERROR, LS_ERROR_LIMIT,
                   "--mpi: an answer of %" G_GSIZE_FORMAT " bytes is longer than a message", size);
    return;
  }
  g_variant_store (answer, told.bytes);
  ls_team_send (x->team, to, kind, &told, (guint) (offsetof (Told, bytes) + size));
}

static void
hear (Each *x, const LsTeamMessage *m, guint by)
{
  uint64_t number;
  gsize size = m->number - sizeof number;
  memcpy (&number, m->bytes, sizeof number);
  char *own = g_memdup2 (m->bytes + sizeof number, size);
  g_autoptr (GVariant) answer = g_variant_ref_sink (
      g_variant_new_from_data (G_VARIANT_TYPE (x->loop->type), own, size, TRUE, g_free, own));
  x->loop->unpack ((guint) number, answer, x->loop->data);
  mark (x, (guint) number, by);
}

/* --- the leader --- */

/* Most of whose threads are idle; false: none is. */
static bool
find_idle (const Each *x, guint *ret_to)
{
  guint most = 0;
  for (guint i = 0; i < ls_team_n (x->team); i++)
    if (x->n_threads[i] > x->n_busy[i] && x->n_threads[i] - x->n_busy[i] > most) {
      most = x->n_threads[i] - x->n_busy[i];
      *ret_to = i;
    }
  return most > 0;
}

static void
give (Each *x, guint to, guint i)
{
  const uint64_t number = i;
  x->n_busy[to]++;
  if (to == 0)
    push (x, i);
  else
    ls_team_send (x->team, to, LS_TEAM_WORK, &number, sizeof number);
}

static void
take (Each *x)
{
  LsTeamMessage m;
  guint i, from;
  if (pop (x, &i)) {
    x->n_busy[0]--;
    mark (x, i, 0);
  }
  while (!x->error && ls_team_receive (x->team, &m, &from)) {
    if (m.kind == LS_TEAM_FAILED) {
      g_set_error (&x->error, LS_ERROR, (gint) m.number, "process %u: %s", from, m.bytes);
      return;
    }
    x->n_busy[from]--;
    hear (x, &m, from);
  }
}

static void
tell_all (Each *x)
{
  for (guint to = 1; to < ls_team_n (x->team); to++)
    for (guint i = 1; i < x->n; i++)
      if (x->by[i] != to + 1)
        tell (x, to, LS_TEAM_ANSWER, i);
}

static void
lead (Each *x, const LsProgress *progress)
{
  guint to, next = 1;
  while (x->n_done < x->n && !x->error) {
    while (next < x->n && find_idle (x, &to))
      give (x, to, next++);
    take (x);
    ls_progress_tell (progress, x->n_done, x->n);
  }
  if (!x->error)
    tell_all (x);
}

/* --- a mate --- */

static void
serve (Each *x)
{
  guint i, from;
  while (x->n_done < x->n && !x->error) {
    LsTeamMessage m;
    if (pop (x, &i)) {
      mark (x, i, ls_team_own_rank (x->team));
      tell (x, 0, LS_TEAM_WORK, i);
    }
    while (x->n_done < x->n && !x->error && ls_team_receive (x->team, &m, &from)) {
      uint64_t number;
      memcpy (&number, m.bytes, sizeof number);
      if (m.kind == LS_TEAM_WORK)
        push (x, (guint) number);
      else if (m.kind == LS_TEAM_ANSWER)
        hear (x, &m, 0);
      else
        g_set_error (&x->error, LS_ERROR, LS_ERROR_FAILED, "--mpi: process 0 has ended");
    }
  }
}

/* --- both --- */

/* Of the job and the first answer, which each process finds for itself. */
static char *
key_of (Each *x, const char *key)
{
  x->loop->each (0, x->loop->data);
  mark (x, 0, ls_team_own_rank (x->team));
  g_autoptr (GVariant) first = g_variant_ref_sink (x->loop->pack (0, x->loop->data));
  g_autofree char *text = g_variant_print (first, TRUE), *all = g_strconcat (key, "\n", text, NULL);
  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, all, -1);
}

static gboolean
go_through (Each *x, const LsTeamSetup *setup, guint n_threads, GError **error)
{
  g_autofree char *key = key_of (x, setup->key);
  if (ls_team_own_rank (x->team) > 0) {
    ls_team_report (x->team, key, n_threads);
    serve (x);
  } else {
    if (!ls_team_gather (x->team, key, x->n_threads, error))
      return FALSE;
    x->n_threads[0] = n_threads;
    lead (x, setup->progress);
  }
  if (!x->error)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&x->error));
  return FALSE;
}

gboolean
ls_team_each (const LsTeamSetup *setup, guint n, const LsTeamLoop *loop, GError **error)
{
  if (!setup->team || n == 0) {
    ls_parallel (n, setup->n_threads, loop->each, loop->data, setup->progress);
    return TRUE;
  }
  guint n_threads = setup->n_threads > 0 ? setup->n_threads : ls_team_default_threads (setup->team);
  Each x = { .team = setup->team, .n = n, .loop = loop };
  x.by = g_new0 (guint, n);
  x.n_threads = g_new0 (guint, ls_team_n (x.team));
  x.n_busy = g_new0 (guint, ls_team_n (x.team));
  x.done = g_async_queue_new ();
  x.threads = ls_crew_new (do_one, &x, n_threads);
  gboolean ok = go_through (&x, setup, n_threads, error);
  ls_crew_end (x.threads); /* what runs, runs to its end */
  LS_TAKE_OVER (x.done);
  g_async_queue_unref (x.done);
  g_free (x.by);
  g_free (x.n_threads);
  g_free (x.n_busy);
  return ok;
}
