/* sweep/sweep_state.h — a sweep as it goes on: what its files share (private). */
#ifndef LS_SWEEP_SWEEP_STATE_H
#define LS_SWEEP_SWEEP_STATE_H

#include <glib.h>

#include "base/stop.h"
#include "bound/bound.h"
#include "data/text/journal.h"
#include "job/hardware.h"
#include "job/job_interval.h"
#include "strategy/strategy.h"
#include "sweep/sweep.h"

typedef enum {
  TRY_PENDING,
  TRY_PRUNED,
  TRY_ILLEGAL,    /* refused by the lowering or the run */
  TRY_INFEASIBLE, /* does not fit                        */
  TRY_DONE,
  TRY_RAN, /* without what its allocator may cost it (job/job_steps.h): its step takes at least as long */
} TryStatus;

typedef struct {
  uint64_t index; /* in the space */
  struct {
    LsTime step;
    uint64_t memory_bytes;
  } bound;
  uint32_t group;
  uint32_t idea;         /* a number: sweep/idea.h */
  uint8_t status;        /* TryStatus */
  uint8_t found;         /* TryStatus: the last that was simulated; PENDING: nothing yet. Of a later
                   * wave, it is not the status yet      */
  bool is_due, is_asked; /* now waited for; in somebody's hands */
  bool is_confirmed;     /* memory is that of recorded times, and fits */
  LsTime key;            /* what a step takes at least, as far as the search knows, whoever was fast */
  LsTime least;          /* the same by its plan; 0: not known */
  LsTime step;           /* RAN: at least */
  uint64_t memory_bytes;
  double goodput; /* 1: the objective is the step */
} Candidate;

typedef struct {
  uint32_t gpus, global_batch;
  uint32_t first, n; /* of the candidates */
  double limit;      /* the top-th best step over its goodput, ps; INFINITY: fewer fit */
  int64_t rule;      /* the candidate of the rule of thumb; -1: none is legal and fits */
  double told;       /* the best pace that somebody was told of; INFINITY: none */
} Group;

/* What a simulation found. */
typedef struct {
  bool is_there;
  uint8_t status; /* TryStatus */
  LsTime step, least;
  uint64_t memory_bytes;
} Found;

/* What a journal says of a candidate. */
typedef struct {
  uint64_t index; /* first: the key */
  Found tried, confirmed;
} Known;

typedef enum {
  WORK_TRY,     /* does it run, and how long does a step take at least?          */
  WORK_CONFIRM, /* with recorded times: does it fit?                              */
  WORK_REPORT,  /* the same for its figures, which no journal has                 */
  WORK_PROOF,   /* the same: does the other process simulate what this one does?  */
  WORK_NEXT,    /* of what is pending a try, of all else to confirm it            */
} WorkKind;

/* Of the report of a run. */
typedef struct {
  uint32_t n_ranks;
  double tokens_per_s, mfu;
  double breakdown_s[LS_N_PARTS];
  double low, high; /* of its step, by measured runs (analysis/interval.h); NAN: there is no interval */
} Figures;

/* By a run with its times: whether it fits, and its figures. */
typedef struct {
  uint8_t status; /* TryStatus; PENDING: nobody looked; of all others but DONE the rest is not known */
  LsTime step;
  uint64_t memory_bytes; /* of INFEASIBLE too */
  Figures figures;
} Confirmation;

/* A question, and the same with its answer. Travels between processes as it is. */
typedef struct {
  uint64_t index;        /* in the space        */
  uint32_t candidate;    /* whose: comes back   */
  uint8_t kind;          /* WorkKind            */
  LsTime limit;          /* WORK_TRY: if the step takes longer by its plan, it is not simulated yet: PRUNED */
  LsTime likely;         /* WORK_TRY: up to so much by its plan it is likely to be confirmed later, */
  LsTime hope;           /* and is confirmed at once if the step takes at most that      */
  uint8_t status;        /* WORK_TRY: TryStatus: answer, as all below; ILLEGAL: cannot run */
  LsTime least, step;    /* WORK_TRY; least: by its plan, also where the question says it; 0: not known */
  uint64_t memory_bytes; /* WORK_TRY */
  int64_t simulate_us;
  bool is_cut; /* the sweep was stopped meanwhile: there is no answer */
  Confirmation confirmed;
} Work;

/* A configuration, and what it lacks. */
typedef struct {
  uint64_t index, short_bytes;
  uint32_t pp;
} Near;

/* Of what surely does not fit, those that lack least, by their bounds; least first, then by index. Some of
 * each number of stages (up to the next power of two), as bounds are the looser the more there are. */
#define N_NEAR       32
#define N_NEAR_OF_PP 2
typedef struct {
  Near at[N_NEAR];
  guint n;
} Nearest;

typedef struct Workers Workers;

struct LsSweepRun {
  LsSweepSpec *spec;
  LsModel model;
  LsHardware *hardware;
  LsResiduals *residuals; /* NULL: no interval is wanted */
  LsRunOptions options;
  LsKnownCalls *calls; /* of options */
  LsObjective objective;
  GPtrArray *clusters; /* LsCluster, of each value of the axis of GPUs, and each placement of it */
  uint64_t capacity_bytes;
  LsHeadroom headroom[LS_N_DP_KINDS];
  LsStrategy base[LS_N_DP_KINDS]; /* the job's, with each backend */
  guint n_refused;                /* by the program of the launch files, though it was simulated */
  char *refused;                  /* why the first of them was; NULL: none */
  GArray *candidates;             /* Candidate, by group, then bound, then index  */
  GArray *settled;                /* the same as a heat map knows them; NULL: none is asked for */
  GArray *groups;                 /* Group                                        */
  GArray *front;                  /* guint: candidates that nothing dominates      */
  gint64 started, simulate_us;
  uint64_t n_done, n_to_do;
  LsJournal *journal;  /* NULL: none                                    */
  GHashTable *known;   /* Known, by index                               */
  GHashTable *answers; /* Confirmation: of those simulated here, by place; some ahead of their wave */
  GHashTable *ideas;   /* text (owned) -> number                        */
  Nearest nearest;
  LsStop *stop;         /* by its user, or its time                      */
  bool is_cut;          /* not all of the space was gone through         */
  GError *error;        /* of the journal, or a mate's: ends the sweep   */
  GError *over_budget;  /* of the first configuration that takes more than --max-memory, whatever it is */
  Workers *workers;     /* reads what stands up to capacity_bytes        */
  const Group *ahead;   /* NULL, or the group that is searched, and      */
  uint32_t ahead_at;    /* how far it was looked through for more work   */
  double threshold;     /* the pace up to which what is tried is simulated: that of the next in the queue */
  GPtrArray *confirmed; /* Candidate *: of the group that is searched, borrowed  */
  GPtrArray *ran;       /* the same: whose steps are known, whether or not they fit */
  double hope;          /* the pace of the top-th best idea of these; INFINITY: there are fewer */
  double stretch;       /* the mean of their steps over the least by their plans */
  GArray *paces;        /* double: of each idea the best that are confirmed, N_OF_IDEA, best first */
  GArray *ran_paces;    /* the same of those that ran */
  LsSweepReport report;
};

static inline Candidate *
candidate_at (const LsSweepRun *x, guint i)
{
  return &g_array_index (x->candidates, Candidate, i);
}

/* The cluster that a configuration runs on, borrowed. */
const LsCluster *candidate_cluster (const LsSweepRun *x, const LsPoint *p);
/* Resolved; false: a rule forbids it, or the program that it is for cannot express it, and why: NULL or a
 * list. Clear it in either case. */
bool candidate_strategy (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s, LsDiagList *why);
/* The same in two: as it is asked for, and resolved. */
void candidate_start (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s);
bool candidate_settle (const LsSweepRun *x, const LsPoint *p, LsStrategy *s, LsDiagList *why);
/* The same whatever its program can do. */
bool candidate_is_allowed (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s);
/* ls_space_variant(), and apart for each program that jobs are taken to run. */
uint64_t candidate_variant (const LsSweepRun *x, const LsPoint *p);
/* What a configuration may need: the capacity without the headroom of its program. */
uint64_t candidate_limit (const LsSweepRun *x, const LsStrategy *s);
void candidate_strategy_at (const LsSweepRun *x, uint64_t index, LsStrategy *ret_s);
/* The same with the layers of its chunks, as it was simulated. */
void candidate_settled (const LsSweepRun *x, const Candidate *c, LsStrategy *ret_s);

/* By its user, its time or an error. */
static inline bool
is_stopped (const LsSweepRun *x)
{
  return ls_stop_is_asked (x->stop, 0) || x->error;
}

/* Whether steps are wanted with all that they take, also where they cannot win. */
static inline bool
sweep_wants_all (const LsSweepRun *x)
{
  return x->spec->no_prune || x->spec->pareto || x->spec->heat_map;
}

/* --- sweep_workers.c --- */

/* Answers it. By any thread. */
void work_do (const LsSweepRun *x, Work *w);

Workers *workers_new (LsSweepRun *x);
void workers_free (Workers *workers); /* NULL allowed */
/* Of this process. */
guint workers_n_threads (const Workers *workers);
/* As a mate: until the leader ends it. */
void workers_serve (LsSweepRun *x);
/* Waits for the mates. Errors: theirs, LS_ERROR_CONFLICT. */
gboolean workers_gather (LsSweepRun *x, GError **error);
/* Lets them work, but first run the rule of thumb. rule: NULL, or tried and confirmed. */
void workers_prove (LsSweepRun *x, const Candidate *rule);
/* Asks that of each and takes the answers: status, step and memory of the candidates. Of a sweep
 * that is stopped, what is not tried stays pending, also in the middle; kinds other than WORK_TRY are done
 * all the same, up to SWEEP_GRACE_US after that, and else pending again. */
#define SWEEP_GRACE_US 1500000
void workers_do (LsSweepRun *x, WorkKind kind, Candidate **list, guint n);
/* What a run with its times said here, NULL: nothing yet. */
const Confirmation *sweep_answer (const LsSweepRun *x, const Candidate *c);

/* --- sweep_journal.c --- */

/* rule: NULL, or tried. */
gboolean sweep_journal_open (LsSweepRun *x, const Candidate *rule, GError **error);
const Known *sweep_known (const LsSweepRun *x, const Candidate *c); /* NULL: nothing */
void sweep_journal_try (LsSweepRun *x, const Candidate *c);
void sweep_journal_confirm (LsSweepRun *x, const Candidate *c);
void sweep_journal_sync (LsSweepRun *x);
/* Of all by which results depend on the command line. Newly allocated. */
char *sweep_digest (const LsSweepRun *x);

/* --- sweep_search.c --- */

/* What the space needs to be gone through. */
gboolean sweep_build_clusters (LsSweepRun *x, GError **error);
void sweep_enumerate (LsSweepRun *x, guint n_threads);
void sweep_begin_search (LsSweepRun *x); /* once its ideas are known */
void sweep_search (LsSweepRun *x);
/* By what is known of its step, the limit of its group, its idea and the front, which stay as they are during
 * a wave. */
bool sweep_cannot_win (const LsSweepRun *x, const Candidate *c);
/* The longest step with which that one would be within the limit; LS_TIME_NEVER: any is. */
LsTime sweep_step_limit (const LsSweepRun *x, const Candidate *c);
/* The same of a pace in its place. */
LsTime sweep_step_within (const Candidate *c, double pace);
/* Tells who wants to know, if it is better than all before. */
void sweep_tell (LsSweepRun *x, const Candidate *c, const Confirmation *answer);
/* A step with which it is likely to be among the best, as far as others are known: whether it is confirmed at
 * once or later makes no difference to what is found. 0: none is. */
LsTime sweep_hope (const LsSweepRun *x, const Candidate *c);
/* Its step over its goodput, ps: what its group is ranked by. */
double sweep_paced (const Candidate *c);
/* Of later waves, one that may be worth a try; NULL: none. */
Candidate *sweep_next_ahead (LsSweepRun *x);
/* Candidate *: those of a group that ran, fastest first. */
GPtrArray *sweep_ranking (LsSweepRun *x, const Group *g);

/* --- sweep_rank.c --- */

/* The configuration of the rule of thumb of each group, tried. That of the last; NULL: none. */
Candidate *sweep_rule (LsSweepRun *x);
void sweep_rank (LsSweepRun *x);

/* Of an idea so many others are ranked with its best. */
#define N_VARIANTS 3
#define N_OF_IDEA  (1 + N_VARIANTS)

/* --- sweep_workers.c --- */

/* Candidates of a group that are still of interest, those that take least first, then by index. */
typedef struct {
  LsSweepRun *x;
  const Group *group;
  uint32_t at;      /* those before it, of the group, were taken once */
  GSequence *again; /* Candidate *: taken and put back, in that order  */
} Queue;

void queue_init (Queue *q, LsSweepRun *x, const Group *group);
/* NULL: it is empty. The first stays in it. */
Candidate *queue_first (const Queue *q);
Candidate *queue_take (Queue *q);
void queue_put_back (Queue *q, Candidate *c);

/* --- sweep_none.c --- */

/* Takes note of a configuration that surely does not fit. */
void sweep_note_near (Nearest *nearest, const Near *near);
/* Fills report.none. Takes a while. */
void sweep_explain_none (LsSweepRun *x);

/* Fills report.untried by the first, or by the nearest; NULL: none is legal, or known. */
void sweep_note_untried (LsSweepRun *x, const uint64_t *index);

/* --- sweep_map.c --- */

/* Makes sure, while there is a workers, that the best of each cell fits. */
void sweep_settle_map (LsSweepRun *x);

/* --- sweep_report.c --- */

/* Fills what groups are compared by. */
void sweep_scaling (LsSweepReport *report);

/* --- sweep_report.c: the best configuration of somebody's own job in the words of a program ---------- */

/* As a fragment, and as changes to the files that the job came from. NULL without an error: the job is of no
 * launch file, for no program, of another program, or nothing is legal and fits. */
LsSweepChanges *ls_sweep_changes_new (const LsSweepRun *run);
void ls_sweep_changes_free (LsSweepChanges *changes); /* NULL allowed */

/* Notes that the job as its launch files say it leaves too little memory to be found. */
void ls_sweep_note_now (const LsSweepRun *run, GPtrArray *notes);

/* --- sweep_enumerate.c: layers of chunks --------------------------------------------------------- */

/* Layers balanced over chunks for many configurations: what their parts take is
 * timed once for all that have it in common. */

typedef struct LsLayouts LsLayouts;

/* Borrows both; parts: what was lowered of the model, of which it keeps a reference, or NULL. One thread at a
 * time. */
LsLayouts *ls_layouts_new (const LsModel *m, const LsHardware *hardware, LsPartsMemo *parts);
void ls_layouts_free (LsLayouts *layouts); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsLayouts, ls_layouts_free)

/* As ls_strategy_balance() with what things take on a cluster, which is to outlive the layouts. s: resolved.
 * variant: strategies with the same agree in all knobs that have no axis of their own in a sweep
 * (sweep/space.h). False: that cannot be known, as such a job cannot be lowered. */
bool ls_layouts_balance (LsLayouts *layouts, LsStrategy *s, const LsCluster *cluster, uint64_t variant);

/* --- sweep_enumerate.c: ideas ------------------------------------------------------------------------- */

/* What makes two configurations one idea: the same layout, with knobs turned.
 *
 * One idea: GPUs, global batch, tp, pp, cp, ep (so dp too), who shards what (dp_kind, zero), how much is
 * recomputed, and the family of the schedule: interleaved-1f1b is 1f1b with more chunks, all of zb-h1, zb-h2,
 * zb-auto ... are zero bubble in a line, zbv, v-half, v-min in a V. Chunks, micro-batch, overlap, sequence
 * parallelism and all else are turned within an idea. */

/* Of a resolved strategy, newly allocated: equal for one idea. */
char *ls_idea_text (const LsStrategy *s);

/* How b differs from a within their idea: "vpp 5, no tp-overlap"; newly allocated. Both resolved. */
char *ls_idea_difference (const LsStrategy *a, const LsStrategy *b);

#endif
