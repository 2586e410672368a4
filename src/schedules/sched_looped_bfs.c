/* Looped breadth-first.
 *
 * Each of p ranks holds v chunks on a loop. All micro-batches pass chunk 0, then all
 * chunk 1, and so on; then the backwards, last chunk first, and within a chunk the last
 * micro-batch first. Each chunk is visited once, so what belongs to it (gathered
 * parameters, the reduction of its gradients) happens once and overlaps the next
 * chunk's work.
 *
 * With whole-rank times F and B and m >= p, the step takes m (F + B) + (p - 1)(F + B)/v;
 * with fewer micro-batches ranks wait between chunks. Every rank keeps the activations
 * of all m v chunks.
 *
 *     p = 2, v = 2, m = 2; stage.micro-batch
 *     rank 0   F0.0 F0.1 F2.0 F2.1 B2.1 B2.0 B0.1 B0.0
 *     rank 1   F1.0 F1.1 F3.0 F3.1 B3.1 B3.0 B1.1 B1.0
 *
 * Reference: Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023; orders
 * checked against PyTorch's ScheduleLoopedBFS, which reverses the micro-batches. */
#include "schedules/sched_impl.h"

static const char *
refusal (const LsSchedShape *shape)
{
  return shape->vpp < 2 ? "vpp must be greater than 1: one chunk per rank is gpipe" : NULL;
}

static LsAction
nth (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  uint32_t m = shape->n_micro_batches;
  uint32_t in_time = type == LS_ACTION_F ? k : shape->vpp * m - 1 - k;
  return (LsAction) { .mb = in_time % m, .chunk = (uint16_t) (in_time / m), .type = (uint8_t) type };
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  ls_sched_append_1f1b (shape, shape->vpp * shape->n_micro_batches, nth, actions);
}

const LsSched ls_sched_looped_bfs = {
  .name = "looped-bfs",
  .refusal = refusal,
  .order = order,
};
