/* Hanayo: waves.
 *
 * Each of p ranks holds 2 w chunks of w waves: the model goes down the ranks, back up,
 * down again and so on, one replica, 2 w p stages. The forwards of all micro-batches pass
 * wave by wave, then the backwards. In units of a forward, with F = B and n = max (m, p),
 * a stage that is the s-th of wave j (0 <= s < 2 p) runs micro-batch k
 *
 *     F at 2 n j + s + 2 k,    B at 2 n (2 w - 1 - j) + 2 p - 1 - s + 2 k
 *
 * On every rank these times never meet (chunks on the way down and on the way up have
 * different parity), and from its first to its last action in each phase there is no gap.
 * Each rank executes its actions in the order of these times; backwards are split into I
 * and, right after it, W, so that the gradient goes on before W.
 *
 * With chunk times and m >= p, the step takes
 *
 *     2 w m (F + I + W) + 2 (p - 1) max (F, I)
 *
 * (I = B and W = 0 if backwards are not split; exact where I >= F or W = 0, else less).
 * Rank r keeps up to 2 w m - (p - 1 - r) chunk activations: with m = p about as many as
 * 1F1B's first rank. With a group size N (p <= N) this is done for N micro-batches at a
 * time, each group's forwards filling what the backwards before leave idle: 2 w N chunks
 * at most, and as long if F = I + W, but longer if not.
 *
 *     p = 2, w = 1, m = 2; stage.micro-batch, B for I W
 *     rank 0   F0.0 F0.1 F3.0 B3.0 F3.1 B3.1 B0.0 B0.1
 *     rank 1   F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1
 *
 * Deviation: the authors' code was not found. The order here is derived from the paper's
 * figures; the time formula was found by executing an independent implementation (ELF).
 *
 * Reference: Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced
 * Large Model Training Efficiency, SC 2023. */
#include "schedules/sched_impl.h"

static uint32_t
n_chunks (const LsSchedShape *shape)
{
  if (shape->waves)
    return 2 * shape->waves;
  return shape->vpp ? shape->vpp : 2;
}

static const char *
refusal (const LsSchedShape *shape)
{
  if (shape->vpp % 2 != 0)
    return "vpp must be even: a wave has two chunks";
  if (shape->waves && shape->vpp && shape->vpp != 2 * shape->waves)
    return "vpp must be twice the waves";
  if (shape->group && shape->group < shape->pp)
    return "the micro-batch group must not be smaller than pp";
  return NULL;
}

static void
add_group (const LsSchedShape *shape, uint32_t rank, uint64_t begin, uint32_t first_mb, uint32_t n_mb,
           GArray *slots)
{
  uint32_t pp = shape->pp, n = n_chunks (shape);
  uint64_t wave = 2 * (uint64_t) MAX (n_mb, pp);

  for (uint32_t chunk = 0; chunk < n; chunk++) {
    uint32_t j = chunk / 2;
    uint32_t s = chunk % 2 == 0 ? rank : 2 * pp - 1 - rank;
    for (uint32_t k = 0; k < n_mb; k++) {
      ls_sched_slot_add (slots, begin + wave * j + s + 2 * k, LS_ACTION_F, chunk, first_mb + k);
      ls_sched_slot_add (slots, begin + wave * (n - 1 - j) + 2 * pp - 1 - s + 2 * k, LS_ACTION_B, chunk,
                         first_mb + k);
    }
  }
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t m = shape->n_micro_batches;
  uint32_t group = shape->group ? MIN (shape->group, m) : m;

  g_autoptr (GArray) slots = g_array_new (FALSE, FALSE, sizeof (LsSchedSlot));
  for (uint32_t first_mb = 0; first_mb < m; first_mb += group)
    add_group (shape, rank, (uint64_t) first_mb * 2 * n_chunks (shape), first_mb, MIN (group, m - first_mb),
               slots);
  ls_sched_append_slots (slots, true, actions);
}

const LsSched ls_sched_hanayo = {
  .name = "hanayo",
  .knobs = LS_SCHED_GROUP | LS_SCHED_WAVES,
  .placement = LS_PLACE_WAVE,
  .is_split = true,
  .refusal = refusal,
  .n_chunks = n_chunks,
  .order = order,
};

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
zbv_order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
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
  .order = zbv_order,
};
