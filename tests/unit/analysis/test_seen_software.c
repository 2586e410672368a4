/* Pins what a profiled step shows of its software: the median time between launches where the GPU waits, and
 * only of those; whose graphs are launched; which flash attention runs; and that nothing is told where
 * nothing shows. */
#include "ls_test.h"

#include "analysis/seen_software.h"

#define US LS_US

typedef struct {
  LsStepSide *side;
  LsTime launch, end; /* of the last op */
} Step;

static LsStepOp *
add (Step *step, LsOpClass class, LsTime start, LsTime end, LsTime launch)
{
  const LsStepOp op = { .start = start, .end = end, .launch = launch, .name = "k", .class = (uint8_t) class };
  g_array_append_val (step->side->ops, op);
  step->launch = launch;
  step->end = end;
  return &g_array_index (step->side->ops, LsStepOp, step->side->ops->len - 1);
}

/* Launched `gap` after the last one, it runs 5 us later, or when the last has ended. */
static LsStepOp *
launch (Step *step, LsOpClass class, LsTime gap, LsTime duration)
{
  LsTime at = step->launch + gap, start = MAX (at + 5 * US, step->end);
  return add (step, class, start, start + duration, at);
}

static Step
step_new (void)
{
  Step step = { .side = ls_step_side_new () };
  add (&step, LS_CLASS_ELEMENTWISE, 5 * US, 6 * US, 0);
  return step;
}

static LsSeenSoftware
seen_of (Step *step)
{
  LsSeenSoftware seen = ls_software_seen (step->side);
  ls_step_side_free (step->side);
  return seen;
}

static void
the_host_is_timed_where_the_gpu_waits (void)
{
  Step step = step_new ();
  for (guint i = 0; i < 9; i++)
    launch (&step, LS_CLASS_ELEMENTWISE, (20 + i) * US, 1 * US); /* waits: 20 to 28 us */
  for (guint i = 0; i < 50; i++)
    launch (&step, LS_CLASS_GEMM, 6 * US, 100 * US); /* the first waits too, the others run ahead */
  LsSeenSoftware seen = seen_of (&step);
  LS_CHECK_INT (seen.n_launches, ==, 10);
  LS_CHECK_INT (seen.host_launch, ==, 24 * US); /* of 6, 20 ... 28, the upper of the two in the middle */
}

static void
other_launches_do_not_count (void)
{
  Step step = step_new ();
  for (guint i = 0; i < 10; i++) {
    launch (&step, LS_CLASS_ALL_REDUCE, 90 * US, 1 * US);
    launch (&step, LS_CLASS_ELEMENTWISE, 80 * US, 1 * US); /* behind a collective's */
    launch (&step, LS_CLASS_COPY, 70 * US, 1 * US);
    launch (&step, LS_CLASS_ELEMENTWISE, 60 * US, 1 * US);
    launch (&step, LS_CLASS_ELEMENTWISE, 50 * US, 1 * US)->in_graph = true;
    launch (&step, LS_CLASS_GEMM, 45 * US, 1 * US); /* behind a graph's */
    LsTime at = step.launch;
    add (&step, LS_CLASS_ELEMENTWISE, step.end + 10 * US, step.end + 11 * US, LS_TIME_NEVER);
    step.launch = at;
    launch (&step, LS_CLASS_ELEMENTWISE, 40 * US, 1 * US); /* behind one that is not in the trace */
  }
  LsSeenSoftware seen = seen_of (&step);
  LS_CHECK_INT (seen.n_launches, ==, 0);
  LS_CHECK_INT (seen.host_launch, ==, -1);
}

static void
few_launches_tell_nothing (void)
{
  for (guint n = 5; n <= 6; n++) {
    Step step = step_new ();
    for (guint i = 0; i < n; i++)
      launch (&step, LS_CLASS_ELEMENTWISE, 20 * US, 1 * US);
    LsSeenSoftware seen = seen_of (&step);
    LS_CHECK_INT (seen.n_launches, ==, n);
    LS_CHECK_INT (seen.host_launch, ==, n < 6 ? -1 : 20 * US);
  }
}

/* Letters are the ops of a graph: A attention, B its backward, g a product; a blank begins the next graph. */
static LsSeenSoftware
seen_of_graphs (const char *letters)
{
  Step step = { .side = ls_step_side_new () };
  LsTime now = 0, at = 0;
  for (const char *c = letters; *c; c++, now += 2 * US) {
    if (*c == ' ')
      at = now;
    else
      add (&step,
           *c == 'A'       ? LS_CLASS_ATTENTION_FWD
               : *c == 'B' ? LS_CLASS_ATTENTION_BWD
                           : LS_CLASS_GEMM,
           now, now + US, at)
          ->in_graph
          = true;
  }
  return seen_of (&step);
}

static void
graphs_are_of_a_layer_or_of_the_step (void)
{
  LS_CHECK_INT (seen_of_graphs ("gAggAggBggBg").cuda_graphs, ==, LS_GRAPHS_STEP);
  LS_CHECK_INT (seen_of_graphs ("gAg gAg gBBg gBBg").cuda_graphs, ==, LS_GRAPHS_LAYER);
  LS_CHECK_INT (seen_of_graphs ("gAg gAg gBBg gBBg").n_graphs, ==, 4);
  LS_CHECK_INT (seen_of_graphs ("gAgAg gBgBg").cuda_graphs, ==, -1); /* of two layers each */
  LS_CHECK_INT (seen_of_graphs ("ggg gg").cuda_graphs, ==, -1);
  Step none = step_new ();
  LS_CHECK_INT (seen_of (&none).n_graphs, ==, 0);
}

static void
attention_is_known_by_name (void)
{
  static const struct {
    const char *name;
    int kernel;
  } names[] = {
    { "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128>>(Params)",
      LS_ATTENTION_KERNEL_FA2 },
    { "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>>",
      LS_ATTENTION_KERNEL_FA3 },
    { "void fmha_fwd_loop_kernel<FMHA_kernel_traits<256, 64, 16, 1, 4, 8u, __half>>(Params)",
      LS_ATTENTION_KERNEL_FA1 },
    { "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3", -1 },
    { "attn_fwd", -1 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    Step step = step_new ();
    launch (&step, ls_op_class_of_kernel (names[i].name), 20 * US, 1 * US)->name = names[i].name;
    LsSeenSoftware seen = seen_of (&step);
    LS_CHECK_STR (seen.attention_name, names[i].name);
    LS_CHECK_INT (seen.attention, ==, names[i].kernel);
  }
  Step none = step_new ();
  LS_CHECK (seen_of (&none).attention_name == NULL);
}

LS_TEST_SUITE (LS_TEST (the_host_is_timed_where_the_gpu_waits), LS_TEST (other_launches_do_not_count),
               LS_TEST (few_launches_tell_nothing), LS_TEST (graphs_are_of_a_layer_or_of_the_step),
               LS_TEST (attention_is_known_by_name))
