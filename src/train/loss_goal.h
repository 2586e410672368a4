/* train/loss_goal.h — a run that goes to a loss: its tokens, and what larger batches need more.
 *
 * A law (model/scaling.h) turns a loss into tokens, or tokens into a loss. The critical batch is a number, or
 * a law's at that loss. Worked example: Llama 3.1 8B to 2.1 nats by Besiroglu et al. takes 498e9 tokens in
 * small batches; by Kaplan et al. the critical batch is there 6.14e6 tokens, so steps of 8.39e6 take
 * 1.18e12. */
#ifndef LS_TRAIN_LOSS_GOAL_H
#define LS_TRAIN_LOSS_GOAL_H

#include "job/job.h"
#include "model/scaling.h"

typedef struct {
  double loss;           /* nats per token; 0: not said                              */
  double tokens;         /* what small batches need; 0: not said                     */
  double critical_batch; /* tokens; 0: not said                                      */
  char *law;             /* name or path of a law of the loss; NULL: the default     */
  char *critical_law;    /* name or path of a law of the critical batch; NULL: `law`'s, if it has one */
} LsLossAsk;

typedef struct {
  LsScalingLaw law;   /* of the loss; name NULL: none is asked */
  char *critical_law; /* its name; NULL: none is used          */
  bool law_is_assumed;
  double n_params, floor, loss; /* NAN without a law of the loss         */
  double tokens;                /* what small batches need; 0: not known */
  double critical_batch;        /* tokens; 0: none                       */
  bool counts_tokens;           /* a part of the run says its own        */
} LsLossGoal;

/* The loss once so much is done, in tokens of small batches; NAN: there is no law, or nothing is done. */
double ls_loss_goal_after (const LsLossGoal *goal, double tokens);

void ls_loss_ask_clear (LsLossAsk *ask);
void ls_loss_goal_clear (LsLossGoal *goal);

/* "15.6T", "300B", "2e11": a count of tokens or steps from 1 to 1e18; false: it is none. */
#define LS_COUNT_EXPECTED "a count such as 15T, 300B or 2e11 (K is 1000 here)"
bool ls_count_read (const char *text, void *ret_count);

/* Its knobs: loss, tokens, scaling_law, critical_batch (a count, or the name or path of a law).
 * Diagnostics are LS_ERROR_USAGE. */
bool ls_loss_ask_has (const char *key);
gboolean ls_loss_ask_set (LsLossAsk *ask, const char *key, const char *value, LsDiagList *diags);

/* Whether a law is asked for. */
bool ls_loss_ask_needs_law (const LsLossAsk *ask);

/* Loads laws and model. LS_ERROR_INPUT, LS_ERROR_USAGE (a law that does not say what is asked of it),
 * LS_ERROR_CONFLICT (a loss below what the model can reach; experts, an encoder or adapters: laws are of
 * dense decoders of which all learns), LS_ERROR_LIMIT (tokens that nobody has). */
gboolean ls_loss_goal_find (const LsLossAsk *ask, const LsJobSpec *job, LsLossGoal *ret_goal, GError **error);

/* Adds what its tokens rest on: the critical batch, and the law of the loss. */
void ls_loss_goal_assume (const LsLossGoal *goal, const LsLossAsk *ask, GArray **all);

#endif
