/* lower/lower.h — model x strategy -> plan. */
#ifndef LS_LOWER_LOWER_H
#define LS_LOWER_LOWER_H

#include "model/model.h"
#include "model/operators.h"
#include "plan/plan.h"
#include "schedules/sched.h"
#include "strategy/strategy.h"

/* How long things take alone, for schedules that are searched for, and for where a receive
 * is posted in schedules without a recipe (lower_p2p.c). This room sees no hardware: who
 * does says it. */
typedef struct {
  LsTime (*kernel) (const LsKernel *kernel, void *data);
  LsTime (*collective) (int slot, int coll, uint64_t bytes, void *data); /* slot, coll as in LsOp */
  LsTime (*send) (uint64_t bytes, void *data);                           /* from a stage to the next */
  void *data;
} LsLowerCosts;

/* s must be resolved. costs NULL: a kernel takes its FLOPs at the same rate, whatever it
 * is, and communication nothing. Errors: LS_ERROR_UNSUPPORTED (a mechanism that does not
 * exist yet, named), LS_ERROR_CONFLICT. */
LsPlan *ls_lower (const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs, GError **error);

/* The same in other orders, which must be able to run (schedules/sched_eval.h), on the
 * layout of the strategy's schedule; NULL: its own. Pairs are executed one after the
 * other. */
LsPlan *ls_lower_orders (const LsModel *m, const LsStrategy *s, const LsOrders *orders,
                         const LsLowerCosts *costs, GError **error);

/* What parts of a model take on one rank alone, forward and backward of a micro-batch with what runs
 * again; 0: it has none. */
typedef struct {
  LsTime embedding, head;
  LsTime layer[LS_MAX_MODEL_KINDS]; /* a layer of each kind, in the order of ls_model_first_of_kinds() */
} LsPartTimes;

/* Appends the operators (model/operators.h, LsOperator) of a layer as this job launches them: with a mixture
 * of experts if most layers have one. s: resolved. Errors as of ls_lower(). */
gboolean ls_layer_operators (const LsModel *m, const LsStrategy *s, GArray *operators, GError **error);

/* Finds the layers of each chunk (lower/balance.h) where they are to be balanced and not known yet
 * (strategy/shard.h); else nothing changes. s: resolved. Errors and costs as of ls_lower(), which does the
 * same for itself. */
gboolean ls_strategy_balance (LsStrategy *s, const LsModel *m, const LsLowerCosts *costs, GError **error);
/* The same with what is known of the parts; layers are to be balanced and not known yet. */
void ls_strategy_set_balanced (LsStrategy *s, const LsModel *m, const LsPartTimes *times);
/* The same with layers that were found before: [pp * vpp], copied. */
void ls_strategy_set_layers (LsStrategy *s, const uint32_t *layers);

#endif
