/* parallel/sched.h — pipeline schedules: the order of (chunk, micro-batch, F | B)
 * on each pipeline rank, and nothing else. One .c file a schedule, one line in
 * the registry of sched.c.
 *
 * Chunk c of rank r is global (virtual) stage c * pp + r. */
#ifndef LS_PARALLEL_SCHED_H
#define LS_PARALLEL_SCHED_H

#include <glib.h>
#include <stdint.h>

typedef enum { LS_ACTION_F, LS_ACTION_B, LS_ACTION_I, LS_ACTION_W } LsActionType;

typedef struct {
  uint32_t mb;
  uint16_t chunk; /* of the rank */
  uint8_t type;   /* LsActionType */
} LsAction;

typedef struct {
  uint32_t pp, vpp, n_micro_batches;
  uint32_t group; /* interleaved: micro-batches that pass a chunk before the next chunk's turn; 0: pp */
} LsSchedShape;

typedef struct {
  const char *name; /* "1f1b" */
  /* NULL if legal, else a static text with the rule that the shape breaks. */
  const char *(*refusal) (const LsSchedShape *shape);
  /* Appends LsAction values; the shape must be legal. */
  void (*order) (const LsSchedShape *shape, uint32_t rank, GArray *actions);
  /* Warm-up forwards: those before the steady state, which is made of pairs of a
   * forward and a backward (none is left for it if all forwards are warm-up). */
  uint32_t (*n_warmup) (const LsSchedShape *shape, uint32_t rank);
} LsSched;

const LsSched *ls_sched_find (const char *name); /* NULL if unknown */
const LsSched *ls_sched_at (guint i);            /* NULL past the end */

#endif
