/* Pins money and energy: the worked example, what is given before what a file says, and watts that follow what a
 * GPU does: shares of a step by hand, none above the limit of the board. */
#include "ls_test.h"

#include "data/machines/machines.h"
#include "job/price.h"

static const LsGpu lab = { .watts = 400,
                           .usd_per_hour = 2,
                           .power = { .computing = 400, .communicating = 200, .idle = 80, .free = 50 } };

static void
a_trillion_tokens_cost_the_worked_example (void)
{
  LsPrice p = ls_price_of (&LS_PRICE_NOT_GIVEN, &(LsGpu) { .watts = 400, .usd_per_hour = 2 });
  LS_CHECK_NEAR (1e12 * ls_price_usd (&p, 1024, 150000), 3.79e6, 1e-3);
  LS_CHECK_NEAR (1e12 * ls_price_kwh (&p, p.gpu_watts, 1024, 150000), 834e3, 1e-3);
  LS_CHECK (!ls_price_has_activities (&p));
}

/* 5 s of kernels, 3 s of exposed communication, 2 s of waiting: (2000 + 600 + 160) / 10. */
static void
a_step_draws_by_what_it_does (void)
{
  double breakdown_s[LS_N_PARTS] = { 0 };
  breakdown_s[LS_PART_FORWARD] = 2;
  breakdown_s[LS_PART_BACKWARD] = 2;
  breakdown_s[LS_PART_OPTIMIZER] = 1;
  breakdown_s[LS_PART_EXPOSED_TP] = 2;
  breakdown_s[LS_PART_EXPOSED_COPY] = 1;
  breakdown_s[LS_PART_BUBBLE] = 1;
  breakdown_s[LS_PART_SKEW] = 0.5;
  breakdown_s[LS_PART_HOST] = 0.5;
  LsActivities step = ls_activities_of (breakdown_s);
  LS_CHECK_NEAR (step.computing_s, 5, 1e-12);
  LS_CHECK_NEAR (step.communicating_s, 3, 1e-12);
  LS_CHECK_NEAR (step.idle_s, 2, 1e-12);
  LsPrice p = ls_price_of (&LS_PRICE_NOT_GIVEN, &lab);
  LS_CHECK (ls_price_has_activities (&p));
  LS_CHECK_NEAR (ls_price_step_watts (&p, &step), 276, 1e-12);
  LS_CHECK_NEAR (ls_price_step_watts (&p, &(LsActivities) { 0 }), 400, 0);
}

static void
what_is_given_counts_all_the_time (void)
{
  LsPrice given = LS_PRICE_NOT_GIVEN;
  given.gpu_watts = 500;
  LsPrice p = ls_price_of (&given, &lab);
  LS_CHECK (!ls_price_has_activities (&p));
  LS_CHECK_NEAR (ls_price_step_watts (&p, &(LsActivities) { 1, 1, 1 }), 500, 1e-12);
}

/* A board with a lower limit draws no more whatever it does. */
static void
none_draws_more_than_the_limit (void)
{
  LsGpu low = lab;
  low.watts = 150;
  LsPrice p = ls_price_of (&LS_PRICE_NOT_GIVEN, &low);
  LS_CHECK_NEAR (p.power.computing, 150, 0);
  LS_CHECK_NEAR (p.power.communicating, 150, 0);
  LS_CHECK_NEAR (p.power.idle, 80, 0);
}

/* What is shipped: a GPU that computes draws most, one that nobody holds least, and not more than its limit. */
static void
shipped_powers_are_in_order (void)
{
  static const char *const names[] = { "a100-40g", "a100-80g", "h100", "a800", "h800" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsGpu gpu;
    if (!LS_CHECK (ls_gpu_load (names[i], &gpu, diags)))
      continue;
    LS_CHECK (gpu.watts >= gpu.power.computing && gpu.power.computing > gpu.power.communicating
              && gpu.power.communicating > gpu.power.idle && gpu.power.idle > gpu.power.free
              && gpu.power.free > 0);
    ls_gpu_clear (&gpu);
  }
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsGpu other;
  if (LS_CHECK (ls_gpu_load ("h20", &other, diags))) {
    LS_CHECK_NEAR (other.power.computing, 0, 0); /* not its relative's */
    ls_gpu_clear (&other);
  }
}

LS_TEST_SUITE (LS_TEST (a_trillion_tokens_cost_the_worked_example), LS_TEST (a_step_draws_by_what_it_does),
               LS_TEST (what_is_given_counts_all_the_time), LS_TEST (none_draws_more_than_the_limit),
               LS_TEST (shipped_powers_are_in_order))
