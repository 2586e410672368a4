/* sweep/sweep_state.h — a sweep as it goes on: what its files share (private). */
#ifndef LS_SWEEP_SWEEP_STATE_H
#define LS_SWEEP_SWEEP_STATE_H

#include "io/journal.h"
#include "sweep/bound.h"
#include "sweep/sweep.h"

typedef enum {
  TRY_PENDING,
  TRY_PRUNED,
  TRY_ILLEGAL,    /* refused by the lowering or the run */
  TRY_INFEASIBLE, /* does not fit                        */
  TRY_DONE,
} TryStatus;

typedef struct {
  uint64_t index; /* in the space */
  LsLowerBound bound;
  uint32_t group;
  uint8_t status; /* TryStatus */
  bool is_confirmed; /* memory is that of recorded times, and fits */
  LsTime step;
  uint64_t memory_bytes;
} Candidate;

typedef struct {
  uint32_t gpus, global_batch;
  uint32_t first, n; /* of the candidates */
  LsTime limit;      /* the top-th best step; LS_TIME_NEVER: fewer fit */
} Group;

/* What a journal says of a candidate. */
typedef struct {
  uint64_t index; /* first: the key */
  bool is_tried, is_confirmed;
  uint8_t status, confirmed_status; /* TryStatus */
  LsTime step;
  uint64_t memory_bytes, confirmed_bytes;
} Known;

struct LsSweepRun {
  LsSweepSpec *spec;
  LsModel model;
  LsHardware *hardware;
  LsRunOptions options;
  LsPrice price;
  GPtrArray *clusters;  /* LsCluster, of each value of the axis of GPUs */
  uint64_t capacity_bytes;
  GArray *candidates;   /* Candidate, by group, then bound, then index  */
  GArray *groups;       /* Group                                        */
  GArray *front;        /* guint: candidates that nothing dominates      */
  gint64 started, simulate_us;
  uint64_t n_done, n_to_do;
  LsJournal *journal;   /* NULL: none                                    */
  GHashTable *known;    /* Known, by index; read only while threads run  */
  GError *error;        /* of the journal: ends the sweep, by            */
  gint has_failed;      /* atomic                                        */
  GMutex lock;          /* of what is above from simulate_us on, but known, and of progress */
  char *title;
  LsSweepReport report;
  LsSweepRow rule;
};

static inline Candidate *
candidate_at (const LsSweepRun *x, guint i)
{
  return &g_array_index (x->candidates, Candidate, i);
}

/* Resolved; false: a rule forbids it. Clear it in either case. */
bool candidate_strategy (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s);
void candidate_strategy_at (const LsSweepRun *x, uint64_t index, LsStrategy *ret_s);

/* --- sweep_try.c --- */

/* Simulates a candidate, or says why not. */
void candidate_try (LsSweepRun *x, Candidate *c);
/* Again with its times recorded: memory, and what its step is made of. False: it does not fit
 * after all, or cannot run. ret_row: NULL, or filled. */
bool candidate_confirm (LsSweepRun *x, Candidate *c, LsSweepRow *ret_row);
/* On the sweep's threads: f (x, candidate) for each of n. */
void candidates_each (LsSweepRun *x, Candidate **list, guint n, void (*f) (LsSweepRun *x, Candidate *c));
bool is_stopped (const LsSweepRun *x);

/* --- sweep_journal.c --- */

/* rule: NULL, or tried. */
gboolean sweep_journal_open (LsSweepRun *x, const Candidate *rule, GError **error);
const Known *sweep_known (const LsSweepRun *x, const Candidate *c); /* NULL: nothing */
/* Under the lock. */
void sweep_journal_try (LsSweepRun *x, const Candidate *c);
void sweep_journal_confirm (LsSweepRun *x, const Candidate *c);
void sweep_journal_sync (LsSweepRun *x);

/* --- sweep_search.c --- */

gboolean sweep_enumerate (LsSweepRun *x, GError **error);
void sweep_search (LsSweepRun *x);
/* By its bound, the limit of its group and the front, which stay as they are during a wave. */
bool candidate_cannot_win (const LsSweepRun *x, const Candidate *c);
double seconds_per_token (const LsSweepRun *x, const Candidate *c, LsTime step);

/* --- sweep_rank.c --- */

/* The configuration of the rule of thumb, tried; NULL: none. */
Candidate *sweep_rule (LsSweepRun *x);
void sweep_rank (LsSweepRun *x, Candidate *rule);

#endif
