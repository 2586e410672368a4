/* Pins what the host does in a step: waits beside its own work, and graphs that it launches. */
#include "ls_test.h"
#include "dp_timeline.h"

#include <string.h>

/* Pins what the host waits for beside the step's own work. */

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

/* Pins: a layer that is a CUDA graph is launched once each way, with its collectives; a step that is one
 * costs no launch up to the optimizer; what the host waits for stays outside; a host that is fast enough
 * leaves the step as it is. A gap between kernels that was measured to be less in a graph shortens the
 * kernels that the graph launches, and no others. */

#define TP2 "--gpus 2 --tp 2 --global-batch 2 "

/* Of all segments: ops of layers whose launch costs the host something; *ret_rest: launches outside of layers
 * and optimizer. */
static guint
n_paid (const char *flags, guint *ret_rest)
{
  DpRun r = dp_run (flags, NULL);
  guint n = 0;
  *ret_rest = 0;
  for (uint32_t s = 0; r.result && s < r.result->plan->n_segments; s++)
    for (uint32_t i = 0; i < r.result->plan->segments[s].n_ops; i++) {
      const LsOp *op = &r.result->plan->segments[s].ops[i];
      bool is_launch = op->host == LS_HOST_LAUNCH || op->host == LS_HOST_COMM;
      n += is_launch && op->layer != UINT16_MAX;
      *ret_rest += is_launch && op->layer == UINT16_MAX && op->tag != LS_TAG_OPTIMIZER;
    }
  dp_clear (&r);
  return n;
}

static void
a_layer_is_launched_once_each_way (void)
{
  guint rest, rest_of_layers, rest_of_step;
  guint eager = n_paid (TP2, &rest), layers = n_paid (TP2 "--cuda-graphs layer", &rest_of_layers);
  LS_CHECK_INT (layers, ==, 2 * 4); /* the model has four */
  LS_CHECK_INT (eager, >, 5 * layers);
  LS_CHECK_INT (rest_of_layers, ==, rest);
  LS_CHECK_INT (n_paid (TP2 "--cuda-graphs step", &rest_of_step), ==, 0);
  LS_CHECK_INT (rest_of_step, ==, 0);
}

static void
graphs_free_a_slow_host (void)
{
  LsTime eager = dp_step (TP2 "--host-launch 1ms --host-comm 1ms"),
         layers = dp_step (TP2 "--host-launch 1ms --host-comm 1ms --cuda-graphs layer");
  LsTime whole = dp_step (TP2 "--host-launch 1ms --host-comm 1ms --cuda-graphs step");
  LS_CHECK_INT (eager, >, 2 * layers);
  LS_CHECK_INT (layers, >, whole);
  LsTime fast = dp_step (TP2 "--host-launch 0us --host-comm 0us");
  LS_CHECK_INT (dp_step (TP2 "--host-launch 0us --host-comm 0us --cuda-graphs layer"), ==, fast);
  LS_CHECK_INT (dp_step (TP2 "--host-launch 0us --host-comm 0us --cuda-graphs step"), ==, fast);
}

static void
the_host_waits_outside_of_graphs (void)
{
  LsTime plain = dp_step (TP2 "--cuda-graphs step"),
         fetched = dp_step (TP2 "--cuda-graphs step --batch-sync 1 --host-batch 20ms");
  LS_CHECK_INT (fetched, >, plain + 2 * 20 * LS_MS - LS_MS);
}

#define GAPS                                                                                                 \
  TP2 "--host-launch 0us --host-comm 0us --gpu-calibration a100:around.kernel_gap=2us,around.graph_gap=1us "
#define QUEUE TP2 "--host-launch 0us --host-comm 0us --gpu-calibration a100:around.kernel_gap=2us "

static void
kernels_of_a_graph_follow_sooner (void)
{
  LsTime queued = dp_step (GAPS), layers = dp_step (GAPS "--cuda-graphs layer"),
         whole = dp_step (GAPS "--cuda-graphs step");
  LS_CHECK_INT (dp_step (QUEUE), ==, queued);
  LS_CHECK_INT (dp_step (QUEUE "--cuda-graphs layer"), ==, queued);
  LS_CHECK_INT (layers, <, queued - 20 * LS_US); /* four layers, each way */
  LS_CHECK_INT (whole, <, layers);
}

LS_TEST_SUITE (LS_TEST (each_forward_costs_the_device_a_batch),
               LS_TEST (each_bucket_is_read_before_it_is_reduced), LS_TEST (others_do_not_check),
               LS_TEST (kernels_of_a_graph_follow_sooner), LS_TEST (a_layer_is_launched_once_each_way),
               LS_TEST (graphs_free_a_slow_host), LS_TEST (the_host_waits_outside_of_graphs))
