/* Pins: a layer that is a CUDA graph is launched once each way, with its collectives; a step that is one
 * costs no launch up to the optimizer; what the host waits for stays outside; a host that is fast enough
 * leaves the step as it is. A gap between kernels that was measured to be less in a graph shortens the
 * kernels that the graph launches, and no others. */
#include "ls_test.h"

#include "dp_timeline.h"

#define TWO "--gpus 2 --tp 2 --global-batch 2 "

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
  guint eager = n_paid (TWO, &rest), layers = n_paid (TWO "--cuda-graphs layer", &rest_of_layers);
  LS_CHECK_INT (layers, ==, 2 * 4); /* the model has four */
  LS_CHECK_INT (eager, >, 5 * layers);
  LS_CHECK_INT (rest_of_layers, ==, rest);
  LS_CHECK_INT (n_paid (TWO "--cuda-graphs step", &rest_of_step), ==, 0);
  LS_CHECK_INT (rest_of_step, ==, 0);
}

static void
graphs_free_a_slow_host (void)
{
  LsTime eager = dp_step (TWO "--host-launch 1ms --host-comm 1ms"),
         layers = dp_step (TWO "--host-launch 1ms --host-comm 1ms --cuda-graphs layer");
  LsTime whole = dp_step (TWO "--host-launch 1ms --host-comm 1ms --cuda-graphs step");
  LS_CHECK_INT (eager, >, 2 * layers);
  LS_CHECK_INT (layers, >, whole);
  LsTime fast = dp_step (TWO "--host-launch 0us --host-comm 0us");
  LS_CHECK_INT (dp_step (TWO "--host-launch 0us --host-comm 0us --cuda-graphs layer"), ==, fast);
  LS_CHECK_INT (dp_step (TWO "--host-launch 0us --host-comm 0us --cuda-graphs step"), ==, fast);
}

static void
the_host_waits_outside_of_graphs (void)
{
  LsTime plain = dp_step (TWO "--cuda-graphs step"),
         fetched = dp_step (TWO "--cuda-graphs step --batch-sync 1 --host-batch 20ms");
  LS_CHECK_INT (fetched, >, plain + 2 * 20 * LS_MS - LS_MS);
}

#define GAPS                                                                                                 \
  TWO "--host-launch 0us --host-comm 0us --gpu-calibration a100:around.kernel_gap=2us,around.graph_gap=1us "
#define QUEUE TWO "--host-launch 0us --host-comm 0us --gpu-calibration a100:around.kernel_gap=2us "

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

LS_TEST_SUITE (LS_TEST (kernels_of_a_graph_follow_sooner), LS_TEST (a_layer_is_launched_once_each_way),
               LS_TEST (graphs_free_a_slow_host), LS_TEST (the_host_waits_outside_of_graphs))
