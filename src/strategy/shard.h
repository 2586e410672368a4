/* strategy/shard.h — how a strategy cuts a model, as the operators of one rank see it. */
#ifndef LS_STRATEGY_SHARD_H
#define LS_STRATEGY_SHARD_H

#include "model/operators.h"
#include "strategy/strategy.h"

/* s: resolved. Experts are evenly loaded: which rank is meant, and with which load, is the caller's to
 * say. */
LsShard ls_strategy_shard (const LsStrategy *s, const LsModel *m);
/* Its adapters; modules that the model has not are none. */
LsLora ls_strategy_lora (const LsStrategy *s, const LsModel *m);

#endif
