/* sweep/team.h — processes that do one piece of work together: a leader (rank 0), who hands it out,
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

#include <stdint.h>

#include "sweep/transport.h"

typedef struct LsTeam LsTeam;

typedef enum {
  LS_TEAM_READY,
  LS_TEAM_FAILED,
  LS_TEAM_WORK, /* and its result */
  LS_TEAM_QUIT,
  LS_TEAM_BYE,
} LsTeamKind;

#define LS_TEAM_MAX_BYTES 512

typedef struct {
  uint32_t kind;                 /* LsTeamKind */
  uint32_t number;               /* READY: threads; FAILED: LsErrorCode; WORK: bytes */
  char bytes[LS_TEAM_MAX_BYTES]; /* READY: key; FAILED: message; WORK: what it is */
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

/* A mate is ready to work. key says on what: at most LS_TEAM_MAX_BYTES. */
void ls_team_report (LsTeam *team, const char *key, guint n_threads);
/* The leader waits for all reports. ret_n_threads: [n], of mates. Errors: a mate's, with its rank;
 * LS_ERROR_CONFLICT: it has another key. */
gboolean ls_team_gather (LsTeam *team, const char *key, guint *ret_n_threads, GError **error);

void ls_team_send (LsTeam *team, guint to, const void *work, guint size);
/* WORK, at a mate QUIT too; false: nothing is there. */
bool ls_team_receive (LsTeam *team, LsTeamMessage *ret_message, guint *ret_from);

#endif
