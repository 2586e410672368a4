/* train/run_history.h — a training run with its failures, event by event.
 *
 * Problem. A run of weeks is stopped, goes back to its last checkpoint, waits for nodes, is slow or wrong for
 * a while. How long does it take until its steps are done?
 *
 * Mechanism. The run is always in one state: it works, saves, is held up, or is down (nobody has noticed yet;
 * the node is looked for; no node is free; nodes are placed and processes start; the checkpoint is read). The
 * next failure comes after an exponential time at the sum of the rates of all causes, and is of a cause by
 * its share (cluster/reliability.h). What each does:
 *
 *   replace   all since the last checkpoint that may be read is lost; down, with another node, or as many
 *             as fail at once
 *   restart   the same, on the same nodes
 *   planned   a checkpoint, then down; nothing is lost
 *   stall     held up for `detect`
 *   slow      steps take `factor` times as long for `detect`; then a checkpoint, down, with another node
 *   corrupt   goes on for `detect`, then back to the last checkpoint before it; down, with another node
 *
 * A failure while it is down begins the recovery anew. A checkpoint holds the job up for save_s, and may be
 * read write_s later; the next one waits for that. Of fast checkpoints (in a peer's memory, on the node's
 * drives) every storage_every-th is written to storage too. What is on the drives of a node is lost with it,
 * what is in the memory of peers with several nodes that fail at once: they are taken to be each other's.
 *
 * Nodes that failed are back after `repair`. Without a spare the job waits for one, or, if it is elastic,
 * goes on with fewer replicas: a step takes as long and counts for so much less. It is stopped behind a
 * checkpoint when a node is back.
 *
 * Accounts. Each second is of one kind: it counted, or was lost in one of LS_N_LOST ways; they add up to
 * the time that passed. Work that is done again was lost the first time.
 *
 * Worked example: tests/unit/train/test_run_history.c has runs by hand.
 *
 * Deviations. Rates are of the whole job also while it is smaller. Nothing fails while it waits for nodes.
 * Nodes of the reserve do not fail. Missing nodes are of as few replicas as they can be; a slow
 * node hands over what is on its drives. All failures of a cause take the same times. */
#ifndef LS_TRAIN_RUN_HISTORY_H
#define LS_TRAIN_RUN_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/team.h"
#include "cluster/reliability.h"

#define LS_SPARES_ANY              UINT32_MAX
#define LS_HISTORY_MAX_IDLE_EVENTS 2000000u
#define LS_HISTORY_MAX_EVENTS      100000000u

/* Steps that are alike. */
typedef struct {
  uint64_t n_steps;
  double step_s;
  uint64_t every; /* steps from a checkpoint to the next; there is one behind the last step too */
  double longer;  /* a step in the mean over step_s, less 1: as steps vary (ask/step_spread.h)  */
} LsRunPhase;

typedef struct {
  double save_s;          /* the job is held up                                              */
  double write_s;         /* behind that, until it may be read                               */
  double read_s;          /* at a restart                                                    */
  double frozen_s;        /* to read weights that are in no checkpoint, at each restart      */
  bool is_on_node;        /* it is lost with the node                                        */
  bool is_on_peer;        /* it is lost with several nodes that fail at once                 */
  uint32_t storage_every; /* each so manieth goes to storage too; 0: all are there           */
  double storage_write_s, storage_read_s;
} LsCheckpointTimes;

typedef struct {
  const LsRunPhase *phases; /* borrowed */
  guint n_phases;
  LsCheckpointTimes checkpoint;
  const LsReliability *reliability; /* borrowed */
  LsJobUnits units;
  uint32_t spares; /* nodes at first; LS_SPARES_ANY: one is always free */
  bool is_elastic;
  uint32_t n_replicas;      /* data-parallel                                    */
  double nodes_per_replica; /* also below 1                                     */
  double end_s;             /* after which it is looked at; 0: when all is done */
  bool keeps_spans;
} LsRunPlan;

typedef enum {
  LS_LOST_CHECKPOINT, /* held up by checkpoints, and by writing the one before */
  LS_LOST_REWORK,     /* done, and thrown away                                 */
  LS_LOST_DETECTION,  /* nobody had noticed, or found the node                 */
  LS_LOST_WAITING,    /* no node was free                                      */
  LS_LOST_RESTART,    /* placing, starting, reading                            */
  LS_LOST_SLOW,       /* steps took longer                                     */
  LS_LOST_SMALLER,    /* fewer replicas                                        */
  LS_LOST_STALL,
  LS_LOST_VARIATION, /* steps took longer than predicted, as they vary */
  LS_N_LOST
} LsLost;

extern const char *const ls_lost_names[LS_N_LOST]; /* by value: "rework" */

typedef struct {
  uint64_t n;
  double lost_s; /* rework, detection, waiting, restart, slow, stall that it brought */
} LsCauseTally;

/* A time in which it did not work as planned: all but checkpoints and the variation of steps. */
typedef struct {
  LsLost kind;
  guint cause; /* of the file; of SMALLER that of the last stop */
  double from_s, to_s;
} LsRunSpan;

typedef struct {
  double wall_s, useful_s, lost_s[LS_N_LOST];
  uint64_t n_stops;             /* times that it was down */
  uint64_t n_events;            /* of the engine          */
  LsCauseTally *causes;         /* as the file's          */
  GArray *spans;                /* LsRunSpan, in order; NULL: the plan did not ask */
  bool is_finished, is_endless; /* endless: given up, as so many events
                                    passed without a checkpoint behind all before, or a century did */
} LsRunHistory;

/* Of a seed: the same at any number of threads. Clear with ls_run_history_clear(). */
void ls_run_history_init (LsRunHistory *h, const LsRunPlan *plan, uint32_t seed);
void ls_run_history_clear (LsRunHistory *h);
/* Of n seeds from the first on: [n], each to be cleared; free with g_free (). NULL: LS_ERROR_LIMIT: one of
 * them does not get on; errors of ls_team_each(). */
LsRunHistory *ls_run_histories_new (const LsRunPlan *plan, uint32_t first_seed, guint n,
                                    const LsTeamSetup *setup, GError **error);

/* --- what checkpoints of a training run cost, and how often they are worth it -------------------- */

/* Problem. A checkpoint holds a job up for C seconds; a failure throws away what was done since the last one.
 * Too many cost more than they save.
 *
 * Equations. Failures are exponential with mean M, and a restart takes R, in which the next failure may come.
 * A piece of work of t seconds with the checkpoint behind it takes in the mean
 *
 *     E (t) = M exp (R / M) (exp ((t + C) / M) - 1)
 *
 * and E (t) / t is least where (1 - t / M) exp ((t + C) / M) = 1, so at
 *
 *     t = M (1 + W (-exp (-1 - C / M)))            W: Lambert's, upper branch
 *
 * whatever R is. Young's and Daly's formulas come near it:
 *
 *     Young  t = sqrt (2 C M)
 *     Daly   t = sqrt (2 C M) (1 + sqrt (C / 2 M) / 3 + C / 18 M) - C      (M if C >= 2 M)
 *
 * Worked example. 16,384 GPUs that fail every 3.09 h, C 10 s, R 300 s: Young 472 s, Daly 465 s, exactly
 * 465 s; of each 465 s that count, 499 pass: 93.1 %.
 *
 * Reference: Young 1974 (Communications of the ACM 17, 530); Daly 2006 (Future Generation Computer Systems
 * 22, 303), equations 20 and 37. */

/* Seconds; C and M positive and finite. */
double ls_young_interval_s (double save_s, double mtbf_s);
double ls_daly_interval_s (double save_s, double mtbf_s);
double ls_best_interval_s (double save_s, double mtbf_s);

/* E (t); mtbf_s INFINITY: t + C. */
double ls_expected_piece_s (double work_s, double save_s, double restart_s, double mtbf_s);

#endif
