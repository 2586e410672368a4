/* data/traces/op_walk.h — the ops of a rank as nodes of a graph, in the order in which its host issues them,
 * and what must be over before each.
 *
 * Whoever writes such a graph gives nodes their ids, in a row for each op. What must be over: the op before
 * in the stream, the last that held the host up, the ops and streams that the op waits for, and the record of
 * its event. That an op was issued is told apart. */
#ifndef LS_DATA_TRACES_OP_WALK_H
#define LS_DATA_TRACES_OP_WALK_H

#include "plan/plan.h"

/* The nodes whose end is that of an op; n 0: none. */
typedef struct {
  uint64_t first;
  uint32_t n;
} LsOpNodes;

typedef struct {
  const LsPlan *plan;
  uint32_t rank;
  LsBinding binding;
  const LsProgram *program;
  GArray *ends, *issues; /* uint64_t, each once: nodes that the op at hand waits for */
  LsOpNodes last[LS_N_STREAMS], host;
  GArray *ops;        /* LsOpNodes of the ops of the instance at hand */
  GHashTable *events; /* event -> first node of the op that recorded it, + 1 */
} LsOpWalk;

/* Writes the nodes of an op, after all of walk->ends; false: with an error. */
typedef gboolean LsOpPut (void *data, const LsOp *op, LsOpNodes *ret_nodes, GError **error);

/* At the first op of a rank. */
void ls_op_walk_begin (LsOpWalk *w, const LsPlan *plan, uint32_t rank);
void ls_op_walk_end (LsOpWalk *w);
/* The ops of the next instance of its program. */
gboolean ls_op_walk_instance (LsOpWalk *w, const LsInstance *instance, LsOpPut *put, void *data,
                              GError **error);

/* An id into a list of uint64_t, unless it is there. */
void ls_op_walk_add (GArray *ids, uint64_t id);

#endif
