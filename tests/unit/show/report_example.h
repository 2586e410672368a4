/* A report with round numbers, for tests of what io says about it. */
#ifndef LS_TEST_REPORT_EXAMPLE_H
#define LS_TEST_REPORT_EXAMPLE_H

#include "show/run/write_run.h"

static inline LsReport
report_example (void)
{
  static LsLinkUse links[] = {
    { (char *) "node0 nic0 > leaf0", 0.713, 120e9 },
    { (char *) "node0 gpu0 > nvswitch", 0.25, 450e9 },
    { (char *) "node0 gpu1 > nvswitch", 0.25, 450e9 },
  };
  static LsLinkGroup groups[] = {
    { (char *) "node0 nic0 > leaf0", 1, 0.713, 0.713, 120e9 },
    { (char *) "node0 gpu* > nvswitch", 2, 0.25, 0.25, 900e9 },
    { (char *) "leaf* > spines", 4, 0.125, 0.25, 400e9 },
  };
  return (LsReport) {
    .step_time_s = 13.75,
    .first_step_s = 14,
    .tokens_per_s = 9532.5,
    .mfu = 0.49,
    .hfu = 0.504,
    .mfu_all_pairs = 0.514,
    .hfu_all_pairs = 0.528,
    .flops_per_gpu = 160.4e12,
    .tokens_per_s_per_gpu = 148.9,
    .n_params = 174600000000,
    .n_active_params = 174600000000,
    .chip = "GPU",
    .n_ranks = 64,
    .n_classes = 8,
    .n_steps = 3,
    .n_op_instances = 12345678,
    .bubble_frac = 0.04,
    .breakdown_s = { [LS_PART_FORWARD] = 4,
                     [LS_PART_BACKWARD] = 7,
                     [LS_PART_RECOMPUTE] = 0.25,
                     [LS_PART_OPTIMIZER] = 0.125,
                     [LS_PART_SLOWDOWN] = 0.5,
                     [LS_PART_EXPOSED_TP] = 1.125,
                     [LS_PART_EXPOSED_PP] = 0.2,
                     [LS_PART_BUBBLE] = 0.55 },
    .peak_rank = 8,
    .peak_bytes = UINT64_C (60) << 30,
    .needed_bytes = UINT64_C (60) << 30,
    .capacity_bytes = UINT64_C (80) << 30,
    .fits = true,
    .by_category = { [LS_MEM_PARAMETERS] = UINT64_C (20) << 30, [LS_MEM_ACTIVATIONS] = UINT64_C (45) << 30 },
    .at_peak = { [LS_MEM_PARAMETERS] = UINT64_C (20) << 30,
                 [LS_MEM_ACTIVATIONS] = UINT64_C (39) << 30,
                 [LS_MEM_COMM_BUFFERS] = UINT64_C (1) << 30 },
    .n_links = G_N_ELEMENTS (links),
    .links = links,
    .n_link_groups = G_N_ELEMENTS (groups),
    .link_groups = groups,
    .share_measured = 0,
    .share_fitted = 0.9,
    .share_roofline = 0.1,
    .share_extrapolated = 0.02,
    .share_unknown = 0.01,
    .digest = 0xabc,
  };
}

#endif
