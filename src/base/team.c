#include "base/team.h"

#include <gmodule.h>
#include <lockstep/error.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

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
