/* train/run_state.h — a training run as it goes on (private): its state, and what the files of its
 * history do to it. A file calls only those that stand before it here. */
#ifndef LS_TRAIN_RUN_STATE_H
#define LS_TRAIN_RUN_STATE_H

#include "core/engine.h"
#include "train/run_history.h"

#define LS_RUN_NS_PER_S 1e9
#define LS_RUN_FAR_S    3e9 /* a century: nothing that is later matters, and times of it add up in 64 bits */

typedef enum { WORKING, SAVING, STALLED, DOWN, WAITING, DONE } RunState;

/* What a run that is down goes through, in this order; a node is taken between the second and the third. */
typedef enum { DETECTING, LOCATING, PLACING, READING, N_STAGES } StopStage;

/* A checkpoint that was begun. */
typedef struct {
  double position;   /* of the work, seconds                        */
  LsTime taken_at;   /* work until then is in it                    */
  LsTime durable_at; /* from then on it may be read                 */
  LsTime storage_at; /* from then on storage; LS_TIME_NEVER: never  */
  bool on_node;      /* a copy is on the drives of nodes            */
} SavedWork;

/* Something that happens later on: a node is back, a fault is found. */
typedef struct {
  LsEvent event; /* first */
  guint cause;
  LsTime since;
} Later;

typedef struct {
  const LsRunPlan *plan;
  LsRunHistory *out;
  LsEngine engine;
  GRand *rand;
  double rate;       /* of all causes, per second */
  double total_s;    /* of all work */
  double *phase_end; /* [n_phases] positions      */
  LsEvent failure, end_of_state;
  GPtrArray *later; /* Later *, of which some are idle */
  RunState state;
  StopStage stage;
  LsTime mark;     /* until then all is accounted for */
  double position; /* of the work: at mark, while it works */
  double target;   /* where the next checkpoint is due */
  GArray *saved;   /* SavedWork, in order of position */
  uint32_t n_saved;
  bool stops_behind;  /* a checkpoint is followed by a stop */
  guint cause;        /* of the stop that there is, or will be */
  guint stall_cause;  /* of the stall that there is */
  bool reads_storage; /* that stop lost the fast checkpoint */
  GArray *failed;     /* guint: causes of nodes that need another in their place */
  uint32_t free_nodes, missing_nodes;
  guint *n_slow; /* of each cause: nodes that are slow now */
  double slow;   /* factor of a step, of the slowest       */
  double longer; /* factor of the mean step of this phase  */
  guint slow_cause;
  LsTime save_began, storage_free_at;
  uint64_t n_idle_events; /* since a checkpoint was further than all before */
  double furthest;
} LiveRun;

/* --- run_work.c: what time went to, work, checkpoints --------------------------------- */

LsTime ls_run_ns (double seconds);
const LsFailureCause *ls_run_cause (const LiveRun *r, guint i);
/* Data-parallel replicas that stand still, as their nodes are missing. */
uint32_t ls_run_lost_replicas (const LiveRun *r);
/* The time since the last account, to what it was. */
void ls_run_account (LiveRun *r);
/* The state that follows: it ends in so many seconds, or when something happens. */
void ls_run_enter (LiveRun *r, RunState state, double seconds);
void ls_run_enter_open (LiveRun *r, RunState state);
/* Until the last checkpoint may be read, seconds; until storage is free for the next. */
double ls_run_writing_left_s (const LiveRun *r);
/* Works from where it is: to the target that there is, or to the next. */
void ls_run_go_on (LiveRun *r);
void ls_run_begin_work (LiveRun *r);
void ls_run_begin_save (LiveRun *r);
void ls_run_add_saved (LiveRun *r);
/* Back to the last checkpoint that may be read, was taken by then, and is not lost with so many nodes. */
void ls_run_go_back (LiveRun *r, LsTime taken_by, guint n_lost);

/* --- run_stops.c: stops, and what failures do ------------------------------------------ */

/* Nothing happens any more. */
void ls_run_end (LiveRun *r);
/* Gives up what does not get on; whether it has. Before each event. */
bool ls_run_gives_up (LiveRun *r);
/* Down, from that stage on. */
void ls_run_go_down (LiveRun *r, guint cause, StopStage from);
void ls_run_next_stage (LiveRun *r);
/* One of a cause, now. */
void ls_run_happen (LiveRun *r, guint cause);

#endif
