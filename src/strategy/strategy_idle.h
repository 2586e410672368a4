/* strategy/strategy_idle.h — knobs that make no difference to a job, and why. */
#ifndef LS_STRATEGY_STRATEGY_IDLE_H
#define LS_STRATEGY_STRATEGY_IDLE_H

#include "strategy/strategy.h"

/* Why the knob (a key of the strategy file, "dp_overlap"), as it is set, makes no difference to a resolved
 * strategy of this model: "tp is 1". NULL: it may make one. Static. */
const char *ls_strategy_idle (const LsStrategy *s, const LsModel *m, const char *key);

/* Whether selective recomputation has nothing to compute again: the inside of attention is one kernel,
 * whose backward computes it again by itself. */
bool ls_strategy_recomputes_nothing (const LsStrategy *s);

#endif
