/* sweep/objective.h — what the best of a sweep is the best in.
 *
 *     step           tokens a second
 *     goodput        tokens a second that count: those times the goodput, in closed form (train/train.h)
 *     time-to-loss   days until a loss, or until as much is learned as of so many tokens in small batches
 *     cost-to-loss   money until then
 *
 * Steps of B tokens need S = D (1 + B / B_c) / B steps (train/loss_goal.h). With the goodput g of a
 * configuration the loss takes S step / g, at so many GPUs times their price.
 *
 * With one number of GPUs and one batch S, GPUs and price are the same for all: each objective but the first
 * ranks by step / g. g is known without a simulation, so a lower bound of the step over g is one of that.
 *
 * Worked example: 100e9 tokens in small batches, 4 M tokens a step, critical batch 4 M: 50,000 steps; at 2 s
 * and a goodput of 0.95 1.218 days; on 1,024 GPUs at $2 $59,880. */
#ifndef LS_SWEEP_OBJECTIVE_H
#define LS_SWEEP_OBJECTIVE_H

#include "job/price.h"
#include "train/train.h"

typedef enum {
  LS_OBJECTIVE_STEP,
  LS_OBJECTIVE_GOODPUT,
  LS_OBJECTIVE_TIME_TO_LOSS,
  LS_OBJECTIVE_COST_TO_LOSS
} LsObjectiveKind;

const char *ls_objective_name (int kind); /* static: "time-to-loss" */

typedef struct {
  int kind; /* LsObjectiveKind */
  LsLossAsk loss;
  char *reliability; /* name or path; NULL: that of train */
} LsObjectiveAsk;

void ls_objective_ask_clear (LsObjectiveAsk *ask);
/* Its knobs: objective, reliability, and those of a loss. Diagnostics are LS_ERROR_USAGE. */
bool ls_objective_ask_has (const char *key);
gboolean ls_objective_ask_set (LsObjectiveAsk *ask, const char *key, const char *value, LsDiagList *diags);

typedef struct {
  int kind;
  LsLossGoal goal;
  LsReliability reliability;
  bool reliability_is_assumed;
} LsObjective;

/* Of one configuration; NAN: not asked for, or not known. */
typedef struct {
  double goodput, steps, tokens, time_s, usd, mwh;
} LsToLoss;

void ls_objective_clear (LsObjective *o);
/* Adds what it rests on besides the step; nothing of an objective that is the step. */
void ls_objective_assume (const LsObjective *o, const LsObjectiveAsk *ask, GArray **assumptions);
/* Loads what it needs. LS_ERROR_USAGE: knobs without effect, a loss without a size, no price; those of
 * ls_loss_goal_find() and of the file of failures. */
gboolean ls_objective_find (const LsObjectiveAsk *ask, const LsJobSpec *job, const LsClusterSpec *cluster,
                            const LsPrice *price, LsObjective *ret_objective, GError **error);

/* Of a resolved strategy on that cluster; 1: the objective is the step. */
double ls_objective_goodput (const LsObjective *o, const LsModel *m, const LsStrategy *s,
                             const LsClusterSpec *cluster);
LsToLoss ls_objective_figures (const LsObjective *o, const LsPrice *price, const LsStrategy *s, double step_s,
                               double watts, double goodput);
/* Least is best. */
double ls_objective_value (const LsObjective *o, const LsToLoss *figures, double tokens_per_s);

#endif
