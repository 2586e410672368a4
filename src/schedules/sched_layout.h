/* schedules/sched_layout.h — which stage of which pipe a rank's chunk holds, and the
 * other way round; orders of all ranks on such a layout, and their text.
 *
 * A pipe is a replica of the model that micro-batches pass in one direction: one,
 * save for dualpipe (2) and chimera (2 or more). Stages and micro-batches are
 * numbered within their pipe. */
#ifndef LS_SCHEDULES_SCHED_LAYOUT_H
#define LS_SCHEDULES_SCHED_LAYOUT_H

#include "schedules/sched.h"

typedef struct {
  uint16_t pipe;
  uint16_t stage;
} LsStageRef;

typedef struct {
  uint32_t rank;
  uint16_t chunk;
} LsHome;

typedef struct {
  uint32_t n_ranks, n_chunks; /* chunks per rank, at most */
  uint32_t n_pipes, n_stages; /* stages of a pipe */
  uint32_t n_micro_batches;   /* of a pipe */
  LsStageRef *stages;         /* [rank * n_chunks + chunk] */
  LsHome *homes;              /* [pipe * n_stages + stage] */
} LsLayout;

typedef struct {
  LsLayout layout;
  GArray **ranks; /* [n_ranks] of LsAction */
} LsOrders;

/* Chunks per rank; the shape must be legal. */
uint32_t ls_sched_n_chunks (const LsSched *sched, const LsSchedShape *shape);

/* Of a legal shape; free with ls_orders_free. */
LsOrders *ls_sched_orders (const LsSched *sched, const LsSchedShape *shape);
/* Empty orders; what is at each (rank, chunk), copied. A stage whose home is not told is
 * where its first rank is, so that a foreign order may be checked; stages that no rank
 * holds have home rank UINT32_MAX. */
LsOrders *ls_orders_new (uint32_t n_ranks, uint32_t n_chunks, uint32_t n_pipes, uint32_t n_stages,
                         uint32_t n_micro_batches, const LsStageRef *stages);
void ls_orders_free (LsOrders *orders); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsOrders, ls_orders_free)

LsStageRef ls_place (LsPlacement placement, uint32_t pp, uint32_t n_chunks, uint32_t rank, uint32_t chunk);

static inline LsStageRef
ls_layout_stage (const LsLayout *l, uint32_t rank, uint32_t chunk)
{
  return l->stages[rank * l->n_chunks + chunk];
}

static inline LsHome
ls_layout_home (const LsLayout *l, uint32_t pipe, uint32_t stage)
{
  return l->homes[pipe * l->n_stages + stage];
}

/* "3F0", stage 3, micro-batch 0; with several pipes "d1s3F0": pipe (direction) 1. */
void ls_action_append_text (const LsLayout *l, uint32_t rank, const LsAction *a, GString *text);
/* A rank's cells, separated by commas, in PyTorch's text format; pairs as
 * "(0F7;7B3)OVERLAP_F_B". */
void ls_orders_append_rank (const LsOrders *orders, uint32_t rank, GString *text);

#endif
