/* lower/pipeline/lower_pipe.h — the program of a pipeline rank under construction: what the
 * recipes share.
 *
 *     lower_pipe.c       an action, and what stands around it; a forward and a backward side by side; any
 *                        order, with p2p where lower_p2p.c puts it; 1F1B as DeepSpeed does; without a flush
 *     lower_megatron.c   1F1B and interleaved 1F1B, as Megatron-LM communicates */
#ifndef LS_LOWER_PIPELINE_LOWER_PIPE_H
#define LS_LOWER_PIPELINE_LOWER_PIPE_H

#include "lower/data/lower_dp.h"
#include "lower/parts.h"

/* Numbers, in a rank's order, of a chunk's first and last actions: forwards, input gradients (I), and what
 * completes weight gradients (B, W). */
enum { TURN_FORWARD, TURN_INPUT, TURN_WEIGHTS, N_TURNS };
typedef struct {
  guint first[N_TURNS], last[N_TURNS];
} Turns;

typedef struct {
  Lower *l;
  uint32_t rank; /* of the pipeline */
  LsSchedShape shape;
  GArray *actions;  /* LsAction: those between two flushes               */
  guint first;      /* number of the first of them in the rank's order    */
  uint32_t mb;      /* micro-batches that were flushed before              */
  Turns *turns;     /* [n_chunks]: of the step, or between two flushes (grad_sync flush) */
  DpTurn *dp_turns; /* [n_chunks] */
  uint32_t n_warmup;
  bool has_backward; /* of which the first is issued after the norm was checked */
  uint32_t n_lead;   /* instances that only the first step runs */
  GArray *instances;
} Pipe;

/* What an action sends to, or receives from, another rank; what one group carries. */
enum { SEND_F = 1, RECV_F = 2, SEND_B = 4, RECV_B = 8 };

/* Of these, what the action makes for a neighbour, and what it needs of one. */
uint32_t pipe_sends_after (const Pipe *p, const LsAction *a);
uint32_t pipe_receives_before (const Pipe *p, const LsAction *a);
/* Behind the last flush; NULL past the end. */
const LsAction *pipe_action (const Pipe *p, guint i);
void pipe_add (Pipe *p, uint32_t segment, uint32_t mb, uint32_t chunk);
void pipe_add_action (Pipe *p, const LsAction *a);
/* One group of what is set in `what`, so many bytes each, behind the compute stream so far. */
uint16_t pipe_build_group (Build *b, LsStream stream, uint32_t what, uint64_t bytes, const char *name);
/* The same of tensors of so many bytes over tp, and the host waits for the device; parts of what came are
 * gathered. */
void pipe_build_synced_group (Build *b, uint32_t what, uint64_t bytes, const char *name);

/* lower_pipe.c: both passes; what is sent of them stands between the two calls. */
typedef struct {
  const LsAction *forward, *backward;
  const GArray *rest; /* Piece: of the backward     */
  guint first;        /* of these, the first to come */
} Pair;

Pair pipe_open_pair (Pipe *p, const LsAction *first, const LsAction *second);
void pipe_close_pair (Pipe *p, Pair *pair);
/* Nothing is sent between the two. */
void pipe_add_pair (Pipe *p, const LsAction *first, const LsAction *second);

/* lower_megatron.c */
void pipe_megatron (Pipe *p);

/* Orders of actions, their messages, and the instances that come of both
 * (private). */

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
/* One without its dependencies. */
LsPartOp part_op (const LsOp *op);
/* Of one, alone, without costs a kernel by its FLOPs; kernels: those that ops have. */
LsTime part_op_time (const LsLowerCosts *costs, const LsPartOp *op, const LsKernel *kernels);

/* Bytes of activations that are there after a pass that is built, less those before it. */
double activations_left (const Build *b);

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
