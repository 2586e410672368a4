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
