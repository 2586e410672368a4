/* exec/replay/motion.h — what moves: collectives, transfers of groups, copies (private). */
#ifndef LS_EXEC_REPLAY_MOTION_H
#define LS_EXEC_REPLAY_MOTION_H

#include "core/flow.h"
#include "exec/replay/calls.h"
#include "exec/replay/rank.h"

/* What moves: a collective or one transfer of a p2p group. Phase by phase, first
 * the latency, then the flow. */
typedef struct Motion Motion;
struct Motion {
  LsEvent start; /* end of the latency of a phase */
  LsFlow flow;
  Call *call;
  uint32_t phase, step;
  void (*finished) (void *run, Motion *m, LsTime at);
  /* Data begin to move (sign 1) or no longer do (-1), at the cost of kernels or other copies; may be NULL. */
  void (*moving) (void *run, const Motion *m, int sign);
};

typedef struct Comm {
  Motion motion; /* first member: events lead back here */
  uint32_t id;
  uint32_t n_arrived;
  LsCommunicator group; /* its members */
  LsTime arrived;       /* latest */
  uint64_t *frame;      /* [n_ranks] of the op that arrived */
  uint16_t *op;
  uint32_t first_rank, step; /* who arrived first, and in which step it was */
  LsDtype dtype;
  Call *calls;
} Comm;

typedef struct {
  uint32_t rank;
  uint16_t op;
  uint64_t frame;
  LsTime at;
  uint64_t bytes;
  uint8_t max_ctas;
} Post;

/* The sends of one rank to its next (or previous) neighbour. */
typedef struct Channel {
  Motion motion; /* first member */
  bool is_busy;
  uint32_t from, to;   /* ranks */
  GQueue sends, recvs; /* Post */
  Call *calls;
} Channel;

/* A copy engine. */
typedef struct Copy {
  Motion motion; /* first member */
  bool is_busy;
  bool is_moving; /* past its latency */
  uint32_t rank;
  uint64_t frame;
  uint16_t op;
  Call *calls;
} Copy;

/* motion.c */
void motion_init (Motion *m, void (*finished) (void *run, Motion *m, LsTime at),
                  void (*moving) (void *run, const Motion *m, int sign));
void motion_begin (Run *x, Motion *m, Call *call, uint32_t step, LsTime at);
void motion_moves (Run *x, const Motion *m, int sign); /* see Motion.moving */
void motion_over (Run *x, Motion *m, LsTime at);       /* all of its call is there */

/* All partners of an op are there (a group: when its last transfer's are); it is over. */
void comm_matched (Run *x, uint32_t rank, uint64_t frame, uint16_t op, LsTime at);
void comm_over (Run *x, uint32_t rank, uint64_t frame, uint16_t op, uint64_t sm_share, LsTime at);

/* collectives */
void collectives_init (Run *x);
void comm_launch (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);

/* groups of sends and receives */
uint64_t group_share (Run *x, const Rank *r, const LsOp *op); /* of the SMs, that it holds */
void groups_init (Run *x);
void groups_clear (Run *x);
void group_launch (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);
Channel *group_channel (Run *x, const Rank *r, const LsTransfer *t);
/* A group of which some transfer has found no partner has not matched yet. */
void group_hide_partial_matches (Rank *r);

/* copies */
void copies_init (Run *x);
bool copy_can_start (const Run *x, const Rank *r, const LsOp *op);
void copy_start (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);

#endif
