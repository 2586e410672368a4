/* Pins: a forward that fetches its micro-batch waits for the device, then for the host. */
#include "ls_test.h"

#include "dp_timeline.h"

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

LS_TEST_MAIN ("batch", LS_TEST (each_forward_costs_the_device_a_batch))
