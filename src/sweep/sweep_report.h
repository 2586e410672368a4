/* sweep/sweep_report.h — what a sweep found. */
#ifndef LS_SWEEP_SWEEP_REPORT_H
#define LS_SWEEP_SWEEP_REPORT_H

#include "analysis/report.h"
#include "ask/memory_view.h"
#include "sweep/objective.h"

/* One idea with a row, but for some knobs. */
typedef struct {
  char *change, *knobs; /* "vpp 5"; all of it as one would type it; owned */
  LsTime step;
  uint64_t memory_bytes;
  double goodput; /* 1: the objective is the step */
} LsSweepVariant;

/* A configuration that was simulated. */
typedef struct {
  LsStrategy strategy; /* resolved, owned                                          */
  char *knobs;         /* as one would type it, owned                              */
  char *command;       /* `lockstep run` with all of it, owned                     */
  char *instead;       /* knobs behind the command of the first; NULL: it is that, owned */
  LsTime step;
  uint64_t index;        /* in the space                                            */
  uint64_t memory_bytes; /* of the fullest rank                                     */
  double tokens_per_s, mfu;
  double breakdown_s[LS_N_PARTS];
  double exposed_s, bubble_s;
  double usd_per_trillion, kwh_per_trillion; /* tokens; NAN: no price, no power known */
  double gpu_watts;                          /* mean over a step; the same            */
  char *why;                                 /* why it is not the first of its group; NULL: it is; owned  */
  char *rests_on; /* otherwise than the first of its group: "masters fp32"; NULL: nothing; owned */
  char *slice;    /* its chips, "2x4x4"; NULL: of another cluster; owned */
  GArray *also;   /* LsSweepVariant, fastest first; NULL: none                 */
  uint64_t headroom_bytes, free_bytes;
  double goodput; /* 1: the objective is the step */
  LsToLoss to_loss;
  double value;         /* of the objective: least is best */
  double low_s, high_s; /* between which a measured step would lie; NAN: there is no interval */
} LsSweepRow;

void ls_sweep_row_clear (gpointer row); /* LsSweepRow */

/* "5,4x11,3x4", newly allocated; NULL: even. */
char *ls_sweep_layers_text (const LsStrategy *s);

typedef struct {
  uint64_t enumerated, illegal, infeasible, pruned, simulated, left; /* left: it was stopped before */
} LsSweepCounts;

/* How the files of a job change for the first; all owned. */
typedef struct {
  char *path, *program; /* "train.sh"; "Megatron-LM", that it is written for */
  double now_s, best_s; /* steps; now_s NAN: the job as it is cannot be simulated */
  uint32_t now_gpus, best_gpus;
  char *now_refused; /* why, in a line; NULL: it can                       */
  bool now_fits;
  GPtrArray *changes; /* LsLaunchChange                                       */
} LsSweepChanges;

/* A rule that forbids configurations. */
typedef struct {
  char *text;          /* of one of them; owned */
  uint64_t n, n_alone; /* that break it; that break no other */
  bool is_of_all;      /* each configuration breaks it, or each that no other rule forbids */
} LsSweepRule;

/* Why there is none. */
typedef struct {
  uint64_t n_looked_at; /* configurations, of all alike, that the rules were counted over */
  GArray *rules;        /* LsSweepRule, those first that are alone most often    */
  char *nearest;        /* knobs of the one that lacks the least memory; NULL: none is legal */
  uint32_t gpus;        /* of that one */
  uint64_t needed_bytes, capacity_bytes, headroom_bytes;
  char *headroom;     /* in words */
  LsWhatIf *advice;   /* what would make that one fit; NULL: not known */
  bool advice_is_cut; /* as the time of the sweep was over */
} LsSweepNone;

/* An axis of which some values were not tried. */
typedef struct {
  char *tried;      /* "1"; owned, as the next */
  char *option;     /* with which they are, those tried first: "--cp 1,2,4,8" */
  const char *knob; /* its key; static */
} LsSweepUntried;

void ls_sweep_none_free (LsSweepNone *none); /* NULL allowed */

/* One number of GPUs and one global batch: a sweep by itself. */
typedef struct {
  uint32_t gpus, global_batch;
  const LsSweepRow *first; /* of best, borrowed; NULL: none is legal and fits */
  LsSweepRow *rule; /* TP, or EP, in the node, PP across, DP the rest; owned; NULL: none is legal and fits */
  uint64_t rule_rank;          /* 1: the best. Of those simulated */
  bool is_rule_rank_exact;     /* false: of what was pruned, or not reached, some may be better, too */
  double tokens_per_s_per_gpu; /* NAN, as the next two: there is no first  */
  double of_fewest_gpus;       /* that over that of the fewest GPUs, same batch */
  double of_largest_batch;     /* and of the largest batch, same GPUs           */
  bool is_beaten;              /* another one gets to the loss as fast and as cheaply, and better in one */
  GArray *rests_on, *knobs; /* LsAssumption of its first, otherwise than of others; owned; NULL: no first */
} LsSweepGroup;

typedef struct {
  char *title;              /* "gpt3-175b on dgx-a100-80g" */
  const char *chip, *chips; /* what its accelerators are called, one and several: "GPU", "GPUs"; static */
  LsSweepCounts counts;
  double wall_s, simulate_s;
  const LsObjective *objective; /* borrowed                         */
  GArray *best;                 /* LsSweepRow, best first, by the objective */
  GArray *front;                /* LsSweepRow: time x memory x cost; NULL: not asked for */
  GArray *groups;               /* LsSweepGroup, by GPUs as asked for, then batch */
  bool is_interrupted;
  bool has_timing;             /* wall_s and simulate_s are wanted: they differ from run to run */
  const char *command;         /* that runs the first; NULL: there is none */
  char *headroom;              /* in words, of the first; NULL: none */
  const char *software;        /* that they run */
  GArray *assumptions, *knobs; /* LsAssumption, alike of the firsts of all groups; NULL: there are none */
  bool has_experts;            /* of MLPs, in some layer of the model */
  GArray *untried;             /* LsSweepUntried, in the order of axes */
  LsSweepChanges *changes;     /* of launch files, with their program; NULL: there are none */
  LsSweepNone *none;           /* why there is no best; NULL: there is, or it was stopped */
  LsPrice price;
} LsSweepReport;

/* Appends a cell for each knob, each behind a comma: of s, or NULL: its name. is_left_out: NULL or those that
 * are not wanted. */
void ls_sweep_csv_knobs (GString *out, const LsStrategy *s, bool (*is_left_out) (const char *key));

#endif
