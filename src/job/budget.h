/* job/budget.h — whether a job may be built at all: what it will take, known before it does.
 *
 * What takes memory follows the number of micro-batches, which a user types: the order of their passes,
 * the plan, the spans of two steps, the walk that measures memory. A run that is refused at its end
 * has taken all of it before. These are lower bounds; exec/run.c knows the sum better, later. */
#ifndef LS_JOB_BUDGET_H
#define LS_JOB_BUDGET_H

#include "model/model.h"
#include "plan/plan.h"
#include "strategy/strategy.h"

/* Before the plan is made, of a resolved strategy: LS_ERROR_LIMIT. max_bytes 0: any. */
gboolean ls_budget_check_passes (const LsStrategy *strategy, const LsModel *model, uint64_t max_bytes,
                                 GError **error);

/* Of a plan, before anything walks through it. */
gboolean ls_budget_check_plan (const LsPlan *plan, uint64_t max_bytes, GError **error);

#endif
