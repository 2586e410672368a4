/* base/team.h — processes that do one piece of work together: a leader (rank 0), who hands it out,
 * and mates, who have read the same command line.
 *
 *     mate       READY or FAILED                    results...          BYE
 *     leader                         work...                 QUIT
 *
 * Each mate reports once, whatever happens to it, and stays until the leader says QUIT; the leader
 * hears all BYEs. So nobody waits for one who has left, and an error on any machine is the leader's
 * error. A process that dies takes all with it (mpirun's doing). Messages are structs as they lie
 * in memory: all machines run the same program. */
#ifndef LS_SWEEP_TEAM_H
#define LS_SWEEP_TEAM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

/* How processes of a team talk: what lockstep-mpi.so implements, which is loaded by --mpi alone, so that the
 * program starts, and runs, where there is no MPI. All is called from one thread. What goes wrong on the way
 * ends all processes (MPI's own handler): none of these fails but join. */
typedef struct {
  /* n_here: processes on this machine. NULL, or what is wrong (static). */
  const char *(*join) (guint *ret_rank, guint *ret_n, guint *ret_n_here);
  void (*send) (guint to, const void *data, guint size);
  /* False: nothing is there. Messages of one sender come in their order. */
  bool (*receive) (void *data, guint size, guint *ret_from);
  void (*leave) (void);
} LsTransport;

/* The one name that the module exports, of an LsTransport. */
#define LS_TRANSPORT_SYMBOL "ls_transport"
#define LS_TRANSPORT_MODULE "lockstep-mpi.so"

typedef struct LsTeam LsTeam;

typedef enum {
  LS_TEAM_READY,
  LS_TEAM_FAILED,
  LS_TEAM_WORK,   /* and its result */
  LS_TEAM_ANSWER, /* a result, to those who did not work for it */
  LS_TEAM_QUIT,
  LS_TEAM_BYE,
} LsTeamKind;

#define LS_TEAM_MAX_BYTES 16384

typedef struct {
  uint32_t kind;                 /* LsTeamKind */
  uint32_t number;               /* READY: threads; FAILED: LsErrorCode; WORK, ANSWER: bytes */
  char bytes[LS_TEAM_MAX_BYTES]; /* READY: key; FAILED: message; WORK, ANSWER: what it is */
} LsTeamMessage;

/* The processes that mpirun started; alone, without it. LS_ERROR_UNSUPPORTED: there is no module. */
LsTeam *ls_team_new (GError **error);
/* Over a transport of the caller's, which must outlive the team. LS_ERROR_FAILED. */
LsTeam *ls_team_new_over (const LsTransport *transport, GError **error);
/* Ends it: called by each process, also by one that failed (error). NULL allowed. */
void ls_team_free (LsTeam *team, const GError *error);

guint ls_team_own_rank (const LsTeam *team);
guint ls_team_n (const LsTeam *team);
/* For each process as many as do not crowd those beside it; where mpirun binds, no more than that. */
guint ls_team_default_threads (const LsTeam *team);

/* A mate is ready to work, once. key says on what: below LS_TEAM_MAX_BYTES. */
void ls_team_report (LsTeam *team, const char *key, guint n_threads);
/* The leader waits for all reports, once. ret_n_threads: [n], of mates. Errors: a mate's, with its rank;
 * LS_ERROR_CONFLICT: it has another key. */
gboolean ls_team_gather (LsTeam *team, const char *key, guint *ret_n_threads, GError **error);

/* WORK or ANSWER. */
void ls_team_send (LsTeam *team, guint to, LsTeamKind kind, const void *bytes, guint size);
/* WORK; at a mate ANSWER and QUIT too, at the leader FAILED; false: nothing is there. */
bool ls_team_receive (LsTeam *team, LsTeamMessage *ret_message, guint *ret_from);

/* --- a loop of all --- */

/* each (i, data) finds answer i and puts it in its place, pack () says what it is, and unpack () puts one in
 * its place that another process found. type: of what pack () makes, in GVariant's notation. */
typedef struct {
  LsParallelFunc each;
  GVariant *(*pack) (guint i, gconstpointer data); /* floating */
  void (*unpack) (guint i, GVariant *answer, gpointer data);
  const char *type;
  gpointer data;
} LsTeamLoop;

/* Who goes through it: team NULL: this process alone; n_threads 0: as many as do not crowd each other; key:
 * what the loop is of. Borrowed. */
typedef struct {
  LsTeam *team;
  guint n_threads;
  const char *key;
  const LsProgress *progress; /* or NULL */
} LsTeamSetup;

/* ls_parallel() by the threads of all processes: each i < n is found by one of them, whoever is idle; all
 * have all answers when it returns, and go on alike. The first is found by each of them: its answer and the
 * key must be the same. Errors: as of ls_team_gather(), and of a mate later on; LS_ERROR_LIMIT: an answer is
 * longer than a message. */
gboolean ls_team_each (const LsTeamSetup *setup, guint n, const LsTeamLoop *loop, GError **error);

#endif
