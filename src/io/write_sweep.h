/* io/write_sweep.h — what a sweep found, for people and for programs. */
#ifndef LS_IO_WRITE_SWEEP_H
#define LS_IO_WRITE_SWEEP_H

#include "analysis/report.h"

/* A configuration that was simulated. */
typedef struct {
  LsStrategy strategy; /* resolved, owned                                          */
  char *knobs;         /* as one would type it, owned                              */
  LsTime step;
  uint64_t memory_bytes; /* of the fullest rank                                     */
  double tokens_per_s, mfu;
  double breakdown_s[LS_N_PARTS];
  double exposed_s, bubble_s;
  double usd_per_trillion, kwh_per_trillion; /* tokens; NAN: no price, no power known */
  char *why;           /* why it is not the first of its group; NULL: it is; owned  */
} LsSweepRow;

void ls_sweep_row_clear (LsSweepRow *row);

typedef struct {
  uint64_t enumerated, illegal, infeasible, pruned, simulated, left; /* left: it was stopped before */
} LsSweepCounts;

/* One number of GPUs and one global batch: a sweep by itself. */
typedef struct {
  uint32_t gpus, global_batch;
  const LsSweepRow *first; /* of best, borrowed; NULL: none is legal and fits */
  LsSweepRow *rule;   /* TP in the node, PP across, DP the rest; owned; NULL: none is legal and fits */
  uint64_t rule_rank; /* 1: the best. Of those simulated */
  bool is_rule_rank_exact; /* false: of what was pruned some may be better, too */
  double tokens_per_s_per_gpu; /* NAN, as the next two: there is no first  */
  double of_fewest_gpus;   /* that over that of the fewest GPUs, same batch */
  double of_largest_batch; /* and of the largest batch, same GPUs           */
} LsSweepGroup;

typedef struct {
  const char *title; /* "gpt3-175b on dgx-a100-80g" */
  LsSweepCounts counts;
  double wall_s, simulate_s;
  GArray *best;      /* LsSweepRow, best first: most tokens/s */
  GArray *front;     /* LsSweepRow: time x memory x cost; NULL: not asked for */
  GArray *groups;    /* LsSweepGroup, by GPUs as asked for, then batch */
  bool is_interrupted;
  double usd_per_gpu_hour, gpu_watts, pue;
} LsSweepReport;

char *ls_sweep_to_text (const LsSweepReport *r);
char *ls_sweep_to_json (const LsSweepReport *r);
char *ls_sweep_to_csv (const LsSweepReport *r); /* the best, a row each */

#endif
