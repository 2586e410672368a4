/* lower/pipeline/lower_order.h — orders of actions, their messages, and the instances that come of both
 * (private). */
#ifndef LS_LOWER_PIPELINE_LOWER_ORDER_H
#define LS_LOWER_PIPELINE_LOWER_ORDER_H

#include "lower/lower_state.h"

/* Fills in orders, and times and posts where somebody needs them, of each number of micro-batches that copies
 * have. given: other orders than the schedule's, copied; or NULL. */
void orders_init (Lower *l, const LsOrders *given);
/* Makes those of the copies with that role the present ones. */
void orders_use (Lower *l, uint32_t dp_role);
void orders_clear (Lower *l);
/* Of a pipe, the most that any copies have. */
uint32_t orders_most_micro_batches (const Lower *l);
/* Of all its kernels and collectives, each alone. At least 1 ps, so that what needs another's output ends
 * later. */
LsTime pass_time (Lower *l, const Chunk *c, LsActionType pass);

/* --- lower_p2p.c ------------------------------------------------------------- */

/* Bytes of one message; a tp-th of the tensor if it is scattered. */
uint64_t message_bytes (const Lower *l);
bool scatters (const Lower *l);
/* What goes from this stage to the next, or its gradients back: 1 or 2 tensors, whole over tp. */
uint32_t message_tensors (const Lower *l, uint32_t stage, uint64_t ret_bytes[2]);

/* A send or a receive of a rank, before its action number `before`. */
typedef struct {
  uint32_t before;
  bool is_beside; /* arrives while that action runs: not in the group of what comes before */
  bool is_send, is_next, is_gradient;
  uint32_t mb;
  uint16_t chunk; /* of the rank */
} Post;

/* Fills in posts, those of a rank in the order in which they are issued. */
void posts_init (Lower *l, const LsSchedTimes *times);
void posts_clear (Lower *l);
/* One group of posts, n above 0; its receives record no event. */
uint32_t segment_posts (Lower *l, const Post *posts, guint n);
/* A post alone, on the stream of its channel. */
uint32_t segment_post (Lower *l, const Post *post);
/* Says that what was received is there; on the stream of the post, if it was posted alone. */
uint32_t segment_received (Lower *l, const Post *post, bool is_alone);
/* The compute stream waits for it. */
uint32_t segment_await (Lower *l, bool is_gradient);

/* --- lower_pipe.c --- */

/* The instances of pipeline rank pp_rank, LsInstance; of these, only the first step runs the
 * first *ret_n_lead. */
GArray *pipe_instances (Lower *l, uint32_t pp_rank, uint32_t *ret_n_lead);

#endif
