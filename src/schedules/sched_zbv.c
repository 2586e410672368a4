/* ZB-V, the fixed order for F = I = W.
 *
 * Each of p ranks holds two chunks of a V: the model goes down the ranks and back, so
 * rank 0 has the first and the last, and the last rank's turn costs no communication. On
 * rank r, with chunks 0 and 1:
 *
 *     warm-up    2 (p - r) - 1 times F0; r times F1 F0; p - r times F1 I1 W1
 *     steady     F0 I0 W0 F1 I1 W1 while forwards are left (F0 may be used up)
 *     cool-down  r times I0 I1; p - r times I0 W0; the W1 and then the W0 that are left
 *
 * for max (2 p - 1, m) micro-batches; what belongs to those above m is left out. Every
 * rank holds at most 2 p chunk activations (held until W): those of p micro-batches, as
 * 1F1B's first rank. With chunk times W <= F <= I and m >= 2 p - 1 the span (a rank's last
 * end less its first start, the largest) is
 *
 *     2 m (F + I + W) + 2 (p - 1)(I - W),
 *
 * no idle time at all if they are equal (found by executing the order; not in the paper).
 *
 *     p = 2, m = 2; stage.micro-batch
 *     rank 0   F0.0 F0.1 F3.0 I3.0 W3.0 F3.1 I3.1 W3.1 I0.0 W0.0 I0.1 W0.1
 *     rank 1   F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 I1.0 W1.0 I2.1 W2.1 I1.1 W1.1
 *
 * Deviation: the order does not look at the times; zbv-auto does.
 *
 * Reference: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024;
 * orders checked against PyTorch's ScheduleZBVZeroBubble. */
#include "schedules/sched_impl.h"

typedef struct {
  uint32_t n_micro_batches; /* that exist */
  uint32_t next[2][4];      /* [chunk][LsActionType] micro-batch */
  GArray *actions;
} Emit;

static void
emit (Emit *e, LsActionType type, uint32_t chunk)
{
  uint32_t mb = e->next[chunk][type]++;
  if (mb < e->n_micro_batches)
    ls_sched_append (e->actions, type, chunk, mb);
}

static void
emit_backward (Emit *e, uint32_t chunk)
{
  emit (e, LS_ACTION_I, chunk);
  emit (e, LS_ACTION_W, chunk);
}

static void
warm_up (Emit *e, uint32_t pp, uint32_t rank)
{
  for (uint32_t i = 0; i < 2 * (pp - rank) - 1; i++)
    emit (e, LS_ACTION_F, 0);
  for (uint32_t i = 0; i < rank; i++) {
    emit (e, LS_ACTION_F, 1);
    emit (e, LS_ACTION_F, 0);
  }
  for (uint32_t i = 0; i < pp - rank; i++) {
    emit (e, LS_ACTION_F, 1);
    emit_backward (e, 1);
  }
}

static void
cool_down (Emit *e, uint32_t pp, uint32_t rank)
{
  for (uint32_t i = 0; i < rank; i++) {
    emit (e, LS_ACTION_I, 0);
    emit (e, LS_ACTION_I, 1);
  }
  for (uint32_t i = 0; i < pp - rank; i++)
    emit_backward (e, 0);
  for (uint32_t chunk = 2; chunk-- > 0;)
    while (e->next[chunk][LS_ACTION_W] < e->next[chunk][LS_ACTION_I])
      emit (e, LS_ACTION_W, chunk);
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t n = MAX (2 * shape->pp - 1, shape->n_micro_batches);
  Emit e = { .n_micro_batches = shape->n_micro_batches, .actions = actions };

  warm_up (&e, shape->pp, rank);
  while (e.next[1][LS_ACTION_F] < e.next[0][LS_ACTION_F] || e.next[0][LS_ACTION_F] < n) {
    if (e.next[0][LS_ACTION_F] < n)
      emit (&e, LS_ACTION_F, 0);
    emit_backward (&e, 0);
    emit (&e, LS_ACTION_F, 1);
    emit_backward (&e, 1);
  }
  cool_down (&e, shape->pp, rank);
}

const LsSched ls_sched_zbv = {
  .name = "zbv",
  .placement = LS_PLACE_WAVE,
  .is_split = true,
  .refusal = ls_sched_refuse_other_than_two,
  .n_chunks = ls_sched_two_chunks,
  .order = order,
};
