/* exec/extras.h — what a run has beyond the plain replay, and how it hangs on the hooks of that
 * (replay/state.h; private to exec/). */
#ifndef LS_EXEC_EXTRAS_H
#define LS_EXEC_EXTRAS_H

#include "exec/messages/messages.h"
#include "exec/replay/state.h"
#include "exec/shortcuts/fold.h"
#include "exec/share.h"

typedef struct Steady Steady; /* shortcuts/steady.c      */
typedef struct Coarse Coarse; /* shortcuts/coarsen.c     */
typedef struct Share Share;   /* share.c                 */

/* Traffic between two nodes. */
typedef struct {
  LsEvent begin; /* first member */
  LsFlow flow;
  const LsTraffic *of;
  const LsPhase *phase;
  uint32_t n_flows;
  LsFlowUse *uses;
  uint32_t n_uses;
  uint64_t n_over, n_waiting; /* periods: that are over; that began while one was not */
  uint64_t n_begun;           /* periods that began in the window: one less are whole in it */
  double moved_at[2];         /* bytes when the first of these began, and when the last did */
} XTraffic;

/* Collectives message by message (extras.c). */
typedef struct {
  MessageNet net;
  GPtrArray *all;      /* Messages: of all calls that have them */
  size_t all_bytes;    /* of memory that these take             */
  double *moved[2];    /* bytes by resource, never folded; by parity of the step */
  uint32_t of_step[2]; /* + 1 */
} SentCalls;

/* NULL or zero: there is none. */
typedef struct Extras {
  const LsRunOptions *options;
  Fold *fold;
  Coarse *coarse;
  Steady *steady;
  SentCalls sent;
  Share *share;
  XTraffic *traffic; /* [n_traffic] */
  uint32_t n_traffic;
} Extras;

/* On x, whose plan, jobs, cluster and NCCL are there: the plain options of these, and their hooks. All that
 * hangs there is freed by extras_clear(), before run_clear(). */
void extras_hang (Run *x, Extras *extras, const LsRunOptions *options);
void extras_clear (Run *x);

/* run.c: such an error names ranks: all, not one for each class. */
bool run_names_ranks (const GError *error);
/* The options without the shortcuts that are to be checked. */
LsRunOptions run_plain_twin (const LsRunOptions *options, bool checks_fold, bool checks_pieces);

/* LS_ERROR_FAILED with the first thing that is not the same in both, as far as
 * the window goes. names: what to call the two ("folded and unfolded"). */
gboolean fold_check (const LsTimeline *folded, const LsTimeline *whole, const LsCluster *cluster,
                     const char *names, GError **error);

/* known_calls.c: calls as they were planned, kept from one run to the next. */
struct LsKnownCalls {
  GMutex lock;
  LsArena *arena;    /* of plans */
  GHashTable *plans; /* GBytes of known_calls_key() -> LsCollPlan * */
};

/* All that a plan of the request depends on but NCCL and fidelity. NULL: there is more to it, or none are
 * kept. */
GBytes *known_calls_key (const LsKnownCalls *calls, const LsCluster *cluster, const LsCollRequest *request);

/* As call_plan(), but kept by options->calls, which outlives the run. */
const LsCollPlan *known_call_plan (const Run *x, const LsCollRequest *request, LsArena *arena,
                                   GError **error);

/* shortcuts/coarsen.c: segments that nothing disturbs, in one piece; after the ranks. */
void coarsen_init (Run *x);
uint64_t coarsen_count (const Run *x); /* frames that ran in one piece */

/* shortcuts/steady.c: after the ranks. */
void steady_init (Run *x);

/* share.c: before the fold, and when the net is there. */
void traffic_lower (Run *x);
void traffic_init (Run *x);
double traffic_moved (const Run *x, uint32_t i); /* bytes since the beginning, until now */

#endif
