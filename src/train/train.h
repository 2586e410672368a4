/* train/train.h — a training run: its steps simulated, its days, failures and costs.
 *
 *     phases -> a simulated step of each -> checkpoints -> histories of many seeds -> means
 *
 * Problem. A job has so many tokens to see. When is that done, what does it cost, and how much of it is lost?
 *
 * Equations. A phase of T tokens with steps of B sequences of s tokens has ceil (T / (B s)) steps of the
 * simulated time. Goodput is the time of all steps that count over the time that passed
 * (train/run_history.h).
 *
 *     GPU hours = GPUs x time; money = GPU hours x price; energy = GPU hours x watts x PUE
 *
 * Watts follow what a GPU does (job/price.h). Time in steps, done again ones too, is split as the simulated
 * step is. GPUs are idle in saves and stalls, until a failure is noticed, and for what steps take longer as
 * they vary. They are free while nodes are waited for, placed and started, and as spares.
 *
 * A checkpoint holds weights as they are trained, master weights and moments: of Adam in 16 bits 14 bytes a
 * parameter; of another optimizer what it keeps of each tensor (model/optimizer_kind.h). All ranks write it,
 * or those of one replica where each holds all of it. To storage it takes size / rate of the storage; with
 * checkpoint_async the job waits only for the copy to the host, as it does for checkpoints in a peer's memory
 * (which travel over the NICs) and on the node's drives.
 *
 * With a critical batch B_c (tokens) a larger batch needs more of them for the same loss: what is given is
 * what small batches would need, and steps of B tokens need D (1 + B / B_c), in S (1 + B_c / B) steps.
 *
 * Worked example. BLOOM: 366e9 tokens in steps of 2,048 x 2,048 are 87,262 steps; at 105.2 s 106.2 days, and
 * 0.979e6 GPU hours of its 384 GPUs.
 *
 * Steps vary (ask/step_spread.h): all of a phase take their mean, which is longer than the predicted step by
 * what noise adds. Of a batch that grows, each part as the last.
 *
 * Deviations. All steps of a phase take the same time. Prices are for all hours, also those that were lost.
 * Storage serves nobody else.
 * Spare nodes are paid and draw power like the others, but those of an endless reserve. The critical
 * batch is one number for the whole run; it grows as the loss falls.
 *
 * Reference: McCandlish et al. 2018, An empirical model of large-batch training, arXiv 1812.06162, equation
 * 5.4 of steps and examples. */
#ifndef LS_TRAIN_TRAIN_H
#define LS_TRAIN_TRAIN_H

#include "ask/step_spread.h"
#include "base/team.h"
#include "job/job.h"
#include "job/price.h"
#include "train/loss_goal.h"
#include "train/run_history.h"

/* --- what is asked ------------------------------------------------------------------------------ */

typedef enum { LS_CHECKPOINT_STORAGE, LS_CHECKPOINT_PEER, LS_CHECKPOINT_LOCAL } LsCheckpointTo;

/* From a checkpoint to the next: `of` times what is best; so many steps; so many seconds. */
typedef enum { LS_EVERY_BEST, LS_EVERY_STEPS, LS_EVERY_SECONDS } LsEveryKind;
typedef struct {
  LsEveryKind kind;
  double of;
} LsEvery;

/* Measured in place of size over rate; LS_TIME_NEVER: not said. */
typedef struct {
  LsTime save, write, read;
} LsCheckpointGiven;

/* The batch grows from `start` by `increment` up to the job's, each of these for an equal share of so many
 * sequences, as Megatron-LM's --rampup-batch-size. */
typedef struct {
  double start, increment, samples; /* samples 0: none */
} LsBatchRamp;

typedef struct {
  LsJobSpec job;
  GHashTable *said;  /* keys of its own knobs that were set, static                   */
  GPtrArray *phases; /* char *: "tokens=1T,global-batch=512"; empty: one, of the job  */
  LsBatchRamp ramp;
  LsLossAsk goal;    /* tokens, or a loss, of the phases that do not say theirs; batches */
  double steps;      /* the same in steps; 0: not said                           */
  GArray *batches;   /* uint32_t, sequences: compared with the job's; NULL: none    */
  double days;       /* after which the run is looked at; 0: when all is done         */
  char *reliability; /* name or path; NULL: the default                               */
  char *jitter;      /* name or path, or "off"; NULL: the default, of other chips than GPUs, and where the job
                        says how fast ranks are, off */
  uint32_t jitter_seed;
  int checkpoint_to; /* LsCheckpointTo                                                */
  bool checkpoint_async;
  GArray *every; /* LsEvery; empty: the best                                      */
  LsCheckpointGiven given;
  double storage_bytes_per_s; /* of all ranks together; 0: the default                         */
  uint32_t storage_every;
  GArray *spares; /* uint32_t; empty: any                                          */
  bool elastic;
  uint32_t seeds, seed;
  bool keeps_timeline;  /* of the first seed */
  LsPrice price;        /* NAN: the default                                              */
  double co2_g_per_kwh; /* 0: not said                                                   */
  guint n_threads;      /* 0: one per processor                                          */
  LsProgress progress;  /* in histories; borrowed                                        */
  LsTeam *team;         /* of processes that share the histories; NULL: none             */
} LsTrainSpec;

void ls_train_spec_init (LsTrainSpec *spec);
void ls_train_spec_clear (LsTrainSpec *spec);
/* Sets a knob of the run, or one of its job. Diagnostics are LS_ERROR_USAGE. */
gboolean ls_train_spec_set (LsTrainSpec *spec, const char *key, const char *value, LsDiagList *diags);

/* A phase from its text: what of it is the run's; the rest goes to job. LS_ERROR_USAGE. */
typedef struct {
  char *name;
  double tokens, steps; /* 0: not said */
} LsPhaseSize;
gboolean ls_train_phase_read (const char *text, LsJobSpec *job, LsPhaseSize *ret_size, GError **error);

/* --- what is answered --------------------------------------------------------------------------- */

typedef struct {
  char *name;
  GArray *rests_on; /* LsAssumption: what it rests on otherwise than the last; words with why and instead */
  double tokens, n_steps, step_s, tokens_per_step, mfu;
  double longer;           /* the mean step over step_s, less 1: as steps vary */
  LsActivities activities; /* of a step, mean over ranks */
  uint32_t global_batch, seq;
  uint64_t every; /* steps from a checkpoint to the next */
  double checkpoint_bytes;
  bool fits;
} LsTrainPhase;

/* Over seeds; of one all are equal. */
typedef struct {
  double mean, low, high; /* 5 % are below low, 5 % above high */
  double error;           /* standard error of the mean        */
} LsOverSeeds;

typedef struct {
  double bytes;
  LsCheckpointTimes times;
  double storage_bytes_per_s;
  double mtbf_s;                  /* of what ends the job; INFINITY */
  double restart_s;               /* from a failure until it works again, in the mean */
  double young_s, daly_s, best_s; /* NAN: nothing fails, or saving takes no time */
  double interval_s;              /* of the last phase */
  double expected_goodput;        /* in closed form, of that interval; NAN: there is none */
} LsTrainCheckpoint;

typedef struct {
  char *name;
  double n, lost_s; /* means */
} LsTrainCause;

/* One of several intervals and reserves that were asked for. */
typedef struct {
  double interval_s;
  uint64_t every;
  uint32_t spares;
  LsOverSeeds goodput, wall_s;
} LsTrainChoice;

/* The same run with another global batch. */
typedef struct {
  char *refused; /* why it is none; NULL: it is, and the rest holds */
  uint32_t global_batch;
  bool fits;
  double tokens, steps, step_s, wall_s, gpu_hours, usd;
} LsTrainBatch;

typedef struct {
  LsJobResult *job; /* a step of the last phase */
  char *reliability, *reliability_source;
  bool reliability_is_assumed;
  const char *chip; /* static: "GPU" or "chip" */
  uint32_t n_gpus, n_nodes, n_seeds;
  GArray *phases; /* LsTrainPhase */
  double ideal_s; /* all steps, nothing else                       */
  bool has_steps; /* steps were given, in place of tokens */
  bool has_end;   /* days were given */
  LsTrainCheckpoint checkpoint;
  uint32_t spares;
  LsOverSeeds wall_s, goodput, stops, steps, tokens;
  double lost_s[LS_N_LOST]; /* means */
  GArray *causes;           /* LsTrainCause */
  GArray *timeline;         /* LsRunSpan, of the first seed; NULL: not asked for */
  double timeline_s;        /* how long that run is */
  GArray *choices;          /* LsTrainChoice; one: the run itself */
  LsLossGoal goal;
  double loss;         /* at the end, by its law; NAN: there is none */
  double small_tokens; /* done at the end, as small batches would need; a mean                      */
  GArray *batches;     /* LsTrainBatch; the first is the run itself; empty: none was asked for */
  double gpu_hours, usd, mwh, co2_t; /* means; NAN: not known */
  double gpu_watts;                  /* mean over the GPUs that are paid, and the run; NAN: not known */
  bool has_activities;               /* watts differ by what a GPU does                 */
  struct {
    double computing, communicating, idle, free;
  } mwh_by; /* NAN: not known */
  uint64_t n_events;
  LsStepSpread *step_spread; /* of the last phase; NULL: off */
  GPtrArray *notes;          /* char * */
} LsTrainReport;

/* The file of failures of that name or path; NULL: the default, of chips other than GPUs none.
 * LS_ERROR_INPUT. */
gboolean ls_train_load_reliability (const char *name, const LsClusterSpec *cluster,
                                    LsReliability *ret_reliability, GError **error);

/* Goodput in closed form (train/run_history.h), without a simulated step: checkpoints to storage at the best
 * interval, not rounded to steps; restarts behind failures that end the job; steps as predicted. s: resolved.
 * 1: nothing fails. */
double ls_train_goodput (const LsModel *m, const LsStrategy *s, const LsClusterSpec *cluster,
                         const LsReliability *reliability);

/* Errors: those of a job, of the file of failures, LS_ERROR_USAGE, LS_ERROR_CONFLICT (a way to save that the
 * cluster has not), LS_ERROR_LIMIT (no run survives these failures; it never ends). */
LsTrainReport *ls_train_run (const LsTrainSpec *spec, GError **error);
void ls_train_report_free (LsTrainReport *report); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTrainReport, ls_train_report_free)

#endif
