/* strategy/dp_traits.h — what is known of a kind of data parallelism by itself: one row of a table each. How
 * a kind is lowered is in lower/data. */
#ifndef LS_STRATEGY_DP_TRAITS_H
#define LS_STRATEGY_DP_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/strategy.h"

typedef struct {
  const char *name;
  uint32_t stages;         /* of ZeRO that it has: a set of bits 1 << stage; 0: the question does not arise */
  const char *expected;    /* these in words */
  bool is_fsdp;            /* parameters are cut and gathered; stage 3 where none is named */
  bool cuts_operators;     /* by operator, and not in units                                  */
  bool has_reshard;        /* reshard_after_forward decides how long they stay               */
  bool grad_is_fresh;      /* a backward makes new gradients, and adds to none               */
  bool keeps_gradients;    /* each rank has whole gradients, and the optimizer steps on what they become */
  bool has_overlap;        /* dp_overlap decides whether gradients are reduced beside the backward      */
  bool has_param_buckets;  /* of a number of parameters: bucket_params                       */
  bool has_byte_buckets;   /* of a number of bytes: bucket_bytes                             */
  bool reduces_at_the_end; /* with a pipeline: all gradients of a chunk behind its last backward */
  bool is_megatron;        /* of Megatron-LM's training loop, or none of its own             */
} LsDpTraits;

/* Static. dp_kind: an LsDpKind. */
const LsDpTraits *ls_dp_traits (int dp_kind);

#endif
