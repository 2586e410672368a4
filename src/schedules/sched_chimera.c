/* Chimera.
 *
 * K = 2 f replicas of the model run through D ranks, f in each direction; the i-th pipes
 * start D/f ranks apart (schedules/sched.h, "pipes"). Micro-batches come in units of D,
 * D/K for each pipe. In units of a forward, with F = B, stage s of a pipe runs its k-th
 * micro-batch of a unit
 *
 *     F at s + 2 k,    B at 2 D - 1 - s + 2 k,
 *
 * each unit 2 D after the one before. On every rank these times never meet (the two
 * directions have different parity, because D is even) and over units they tile: only
 * the first and last D/f - 2 are idle. Each rank executes its actions in the order of
 * these times; how long it takes with B = 2 F follows from the order.
 *
 * With N micro-batches, a multiple of D, and F = B the step takes 2 N + D/f - 2 forwards;
 * with N = D, f = 1 and B = 2 F it takes 3 N + 2 (D - 2). Ranks keep the activations of at
 * most D/2 + 1 (the middle) to D (the ends) micro-batches for f = 1 and N = D, and
 * K stages' parameters.
 *
 *     D = 4, N = 4; pipe:stage.micro-batch
 *     rank 0   F0:0.0 F0:0.1 F1:3.0 B1:3.0 F1:3.1 B1:3.1 B0:0.0 B0:0.1
 *     rank 1   F0:1.0 F1:2.0 F0:1.1 F1:2.1 B1:2.0 B0:1.0 B1:2.1 B0:1.1
 *
 * Units are joined as in the paper's direct concatenation; its doubled forwards and
 * halved backwards are not here.
 *
 * Reference: Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks
 * with Bidirectional Pipelines, SC 2021. */
#include "schedules/sched_impl.h"
#include "schedules/sched_layout.h"

static uint32_t
n_pipes (const LsSchedShape *shape)
{
  return shape->pipes ? shape->pipes : 2;
}

static const char *
refusal (const LsSchedShape *shape)
{
  uint32_t pipes = n_pipes (shape);
  if (shape->vpp > 1)
    return ls_sched_refuse_chunks (shape);
  if (shape->pp % 2 != 0 || shape->pp == 0)
    return "pp must be even: the two directions meet in different halves of the time";
  if (pipes % 2 != 0)
    return "pipes must be even: as many go up as go down";
  if (shape->pp / 2 % (pipes / 2) != 0)
    return "half the pipes must divide half of pp";
  if (shape->n_micro_batches % pipes != 0)
    return "the number of micro-batches must be a multiple of the pipes";
  return NULL;
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t pp = shape->pp, pipes = n_pipes (shape);
  uint32_t per_pipe = shape->n_micro_batches / pipes, per_unit = pp / pipes;

  g_autoptr (GArray) slots = g_array_new (FALSE, FALSE, sizeof (LsSchedSlot));
  for (uint32_t chunk = 0; chunk < pipes; chunk++) {
    uint32_t stage = ls_place (LS_PLACE_PIPES, pp, pipes, rank, chunk).stage;
    for (uint32_t mb = 0; mb < per_pipe; mb++) {
      uint64_t begin = (uint64_t) (mb / per_unit) * 2 * pp + mb % per_unit * 2;
      ls_sched_slot_add (slots, begin + stage, LS_ACTION_F, chunk, mb);
      ls_sched_slot_add (slots, begin + 2 * pp - 1 - stage, LS_ACTION_B, chunk, mb);
    }
  }
  ls_sched_append_slots (slots, false, actions);
}

const LsSched ls_sched_chimera = {
  .name = "chimera",
  .knobs = LS_SCHED_PIPES,
  .placement = LS_PLACE_PIPES,
  .refusal = refusal,
  .n_chunks = n_pipes,
  .order = order,
};
