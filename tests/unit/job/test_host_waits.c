/* Pins what the host waits for beside the step's own work. */
#include "ls_test.h"

#include <string.h>

#include "dp_timeline.h"

/* --- micro-batches ---------------------------------------------------------------------------------- */

/* Pins: a forward that fetches its micro-batch waits for the device, then for the host. */

#define ONE "--gpus 1 --global-batch 4 --host-launch 0us --host-sync 0us "

/* Four micro-batches, which the device would else take back to back. */
static void
each_forward_costs_the_device_a_batch (void)
{
  LsTime plain = dp_step (ONE);
  LS_CHECK_INT (dp_step (ONE "--batch-sync 1 --host-batch 0us"), ==, plain);
  LS_CHECK_INT (dp_step (ONE "--batch-sync 1 --host-batch 300us"), ==, plain + 4 * 300 * LS_US);
  LS_CHECK_INT (dp_step (ONE "--batch-sync 1"), ==, plain + 4 * 513 * LS_US);
  LS_CHECK_INT (dp_step (ONE "--host-batch 300us"), ==, plain);
}

/* --- gradients -------------------------------------------------------------------------------------- */

/* Pins: Megatron-Core's check of gradients is a kernel that reads each bucket once, which the host waits for,
 * before the bucket is reduced; nobody else has it. */

#define TWO "--gpus 2 --dp-kind megatron --bucket-params 1000000 --global-batch 2 "

typedef struct {
  guint n_checks, n_reads, n_reductions;
  double bytes, reduced;
} Found;

/* In all segments. A check is followed by the wait of the host, and that by the reduction. */
static Found
look (const char *flags)
{
  DpRun r = dp_run (flags, NULL);
  Found f = { 0 };
  for (uint32_t s = 0; r.result && s < r.result->plan->n_segments; s++) {
    const LsSegment *seg = &r.result->plan->segments[s];
    for (uint32_t i = 0; i < seg->n_ops; i++) {
      const LsOp *op = &seg->ops[i];
      f.n_reductions += strcmp (op->name, "grad all-reduce") == 0;
      f.reduced += strcmp (op->name, "grad all-reduce") == 0 ? (double) op->bytes : 0;
      if (strcmp (op->name, "grad-check") != 0)
        continue;
      f.n_checks++;
      f.bytes += r.result->plan->kernels[op->kernel].bytes;
      LS_CHECK (i + 1 < seg->n_ops && op[1].kind == LS_OP_HOST_SYNC);
      f.n_reads += i + 1 < seg->n_ops && op[1].kind == LS_OP_HOST_SYNC;
    }
  }
  dp_clear (&r);
  return f;
}

static void
each_bucket_is_read_before_it_is_reduced (void)
{
  Found without = look (TWO), with = look (TWO "--grad-check 1");
  LS_CHECK_INT (without.n_checks, ==, 0);
  LS_CHECK_INT (with.n_checks, >=, 3);
  LS_CHECK_INT (with.n_checks, ==, with.n_reductions);
  LS_CHECK_INT (with.n_reductions, ==, without.n_reductions);
  LS_CHECK_DOUBLE (with.bytes, ==, with.reduced);
}

static void
others_do_not_check (void)
{
  LS_CHECK_INT (look ("--gpus 2 --dp-kind ddp --global-batch 2 --grad-check 1").n_checks, ==, 0);
}

LS_TEST_SUITE (LS_TEST (each_forward_costs_the_device_a_batch),
               LS_TEST (each_bucket_is_read_before_it_is_reduced), LS_TEST (others_do_not_check))
