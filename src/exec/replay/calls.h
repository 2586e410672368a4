/* exec/replay/calls.h — the calls of a plan: collectives, sends and copies. Each distinct one of a
 * communicator, channel or copy engine is planned once, before the clock starts. So what cannot be carried
 * out ends a run before it begins; inside the event loop only deadlocks and calls that do not match are
 * errors. */
#ifndef LS_EXEC_REPLAY_CALLS_H
#define LS_EXEC_REPLAY_CALLS_H

#include <stdbool.h>

#include "cluster/route.h"
#include "core/flow.h"
#include "network/coll.h"
#include "plan/plan.h"

typedef struct Run Run;

/* What tells the calls of a communicator, channel or copy engine apart. */
typedef struct {
  uint8_t kind;        /* LsCollKind; of a copy: LsCopyDirection */
  uint8_t algorithm;   /* LsAlgorithm                            */
  uint8_t parts;       /* LsParts                                */
  uint8_t max_ctas;    /* 0: as many as NCCL has                 */
  bool is_light;       /* it loads nothing                       */
  bool carries_scores; /* LsOp.carries_scores                  */
  uint32_t root;       /* member; 0 where the kind has none      */
  uint64_t bytes;
} CallKey;

CallKey collective_key (const LsOp *op);
CallKey transfer_key (uint64_t bytes, uint8_t max_ctas);
CallKey copy_key (const LsOp *op);

static inline bool
call_key_equal (CallKey a, CallKey b)
{
  return a.kind == b.kind && a.parts == b.parts && a.algorithm == b.algorithm && a.root == b.root
      && a.bytes == b.bytes && a.max_ctas == b.max_ctas && a.is_light == b.is_light
      && a.carries_scores == b.carries_scores;
}

/* ---- what programs call ---- */

/* By kind of owner and direction. */
enum {
  CALLS,                        /* by slot             */
  SENDS = CALLS + LS_SLOT_PREV, /* to previous, next   */
  RECEIVES = SENDS + 2,         /* from previous, next */
  COPIES = RECEIVES + 2,        /* by direction        */
  N_CALL_LISTS = COPIES + LS_N_COPY_DIRECTIONS
};

/* Each call of an op, and the list that it is of. */
void op_calls (const LsOp *op, void (*call) (void *to, int list, CallKey key), void *to);

/* Of a role. Each key once, in one order, so that equal lists are alike. */
typedef struct {
  GArray *keys[N_CALL_LISTS]; /* CallKey                                          */
  uint32_t id[N_CALL_LISTS];  /* equal of equal lists, of all roles; 0: empty     */
} RoleCalls;

/* [n_roles], in arena. */
RoleCalls *role_calls_new (const LsPlan *plan, LsArena *arena);

/* ---- one call ---- */

/* ranks: of plan. GPUs are in arena, where a script keeps them. */
LsCollRequest call_request (const LsPlan *plan, CallKey key, const uint32_t *ranks, uint32_t n,
                            LsCollMemo *memo, LsArena *arena);

/* The same of ranks of the unfolded plan of a run, with the parts that the job has whose ranks they are. */
LsCollRequest run_request (const Run *x, CallKey key, const uint32_t *ranks, uint32_t n, LsCollMemo *memo,
                           LsArena *arena);

/* LS_ERROR_CONFLICT: the algorithm does not do it on these GPUs; LS_ERROR_LIMIT: it is too large. */
bool call_check (const LsCluster *cluster, const LsNccl *nccl, const LsCollRequest *request,
                 LsNetworkFidelity network, GError **error);

/* In arena. NULL: errors as of call_check(). */
const LsCollPlan *call_plan (const Run *x, const LsCollRequest *request, LsArena *arena, GError **error);

/* A copy in arena. */
const LsCollPlan *call_keep_plan (LsArena *arena, const LsCollPlan *plan, bool with_loads);

/* Share of a compute-bound kernel's rate that is lost while the call moves, in 1/LS_COEF_ONE. */
uint64_t call_stall (const Run *x, CallKey key, const LsCollRequest *request, const LsCollPlan *plan);

/* ---- the calls of a run ---- */

/* Of one owner, planned. */
typedef struct Call Call;
struct Call {
  Call *next;
  CallKey key;
  const LsCollPlan *plan;
  LsFlowUse **uses;          /* [n_phases]; of the resources of the replay */
  uint32_t *n_uses;          /* [n_phases] */
  uint32_t *n_ample;         /* [n_phases] more behind these, which count bytes and hold up nobody */
  uint64_t stall;            /* call_stall() */
  struct Messages *messages; /* NULL: phase by phase; else a hook sends them, and the phases only
                                say what it holds */
  LsTime base;               /* before the first message */
  uint64_t sm_share;
  uint32_t step[2];             /* + 1 */
  uint64_t count[2], n_over[2]; /* begun in that step; of these, over */
};

/* In arena, of a plan that is kept: it loads nothing yet. */
Call *call_new (LsArena *arena, CallKey key, const LsCollPlan *plan, Call *next);

/* One that was planned. */
Call *call_find (Call *calls, CallKey key);

/* So many calls begin in a step and are over. */
void call_count (Call *call, uint32_t step, uint64_t n_begun, uint64_t n_over);

/* Bytes by resource, in units of 2^-40: whole numbers, so that the order of terms and how many
 * of them are one is of no consequence. A demand is rounded to 2^-20 bytes. */
typedef unsigned __int128 ExactBytes;
void calls_count_bytes (const Call *calls, uint32_t step, ExactBytes *resource_bytes);

/* ---- a copy between a GPU and the host's memory, or its drives: motion.c ---- */

/* What a copy crosses but the HBM, and how long it takes until it moves. */
void ls_copy_route (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, LsRoute *ret_route);

/* One flow over the PCIe path and the HBM, as fast as its narrowest link; what stays in the host loads the
 * CPU's memory alone. In arena. */
const LsCollPlan *ls_copy_plan (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, uint64_t bytes,
                                LsNetworkFidelity network, LsArena *arena);

#endif
