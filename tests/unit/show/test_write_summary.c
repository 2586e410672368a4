/* Pins the terminal summary, character by character. */
#include "show/run/write_run.h"

#include <string.h>

#include "ls_test.h"
#include "report_example.h"

static const GPtrArray no_findings = { NULL, 0 };
static const LsMeasured measured
    = { .step_s = 13.5, .is_published = true, .source = "Korthikanti et al. 2022, table 5" };
static const LsSummaryText text = {
  .title = "gpt3-175b on dgx-a100-80g, 64 GPUs",
  .subtitle = "tp 8, pp 8, vpp 3, interleaved-1f1b",
  .measured = &measured,
  .findings = &no_findings,
};
static const char golden[]
    = "gpt3-175b on dgx-a100-80g, 64 GPUs; 174.6 B parameters\n"
      "tp 8, pp 8, vpp 3, interleaved-1f1b\n"
      "\n"
      "  step time  13.75 s      tokens/s   9,532        MFU        51.4 %       HFU        52.8 %\n"
      "  each GPU   160.4 TFLOP/s, 148.9 tokens/s        causal     49.0 %\n"
      "  published  13.50 s      error      +1.9 %       Korthikanti et al. 2022, table 5\n"
      "\n"
      "Where the time went  mean over 64 ranks\n"
      "  backward            7,000.0 ms   50.9 %  ████████████████████████████████████\n"
      "  forward             4,000.0 ms   29.1 %  ████████████████████▋\n"
      "  exposed tp          1,125.0 ms    8.2 %  █████▊\n"
      "  bubble                550.0 ms    4.0 %  ██▉\n"
      "  slowdown              500.0 ms    3.6 %  ██▋\n"
      "  recompute             250.0 ms    1.8 %  █▎\n"
      "  exposed pp            200.0 ms    1.5 %  █\n"
      "  optimizer             125.0 ms    0.9 %  ▋\n"
      "  step               13,750.0 ms  100.0 %\n"
      "\n"
      "Memory at its peak  rank 8, the fullest; of 80.00 GiB\n"
      "  parameters           20.00 GiB   25.0 %  █████████\n"
      "  activations          39.00 GiB   48.8 %  █████████████████▌\n"
      "  comm buffers          1.00 GiB    1.2 %  ▌\n"
      "  peak                 60.00 GiB   75.0 %  fits, 20.00 GiB free\n"
      "\n"
      "Busiest links  share of capacity and payload of a step: the most of one link, mean of all\n"
      "  node0 nic0 > leaf0                     71.3 %                  120.00 GB\n"
      "  node0 gpu* > nvswitch                  25.0 %                  450.00 GB  (2 alike)\n"
      "  leaf* > spines                         25.0 %  mean  12.5 %    100.00 GB  (4 links)\n"
      "\n"
      "Kernel times  0.0 % measured, 90.0 % fitted, 10.0 % roofline; 2.0 % extrapolated\n"
      "Simulated     3 steps of 12,345,678 ops, 64 ranks in 8 classes (8 to 1); digest 0000000000000abc\n";

static void
summary_reads_as_agreed (void)
{
  LsReport r = report_example ();
  g_autofree char *got = ls_summary_format (&r, &text);
  LS_CHECK_STR (got, golden);
}

/* Without colour it is plain; with colour only escapes are added. */
static void
color_adds_nothing_but_escapes (void)
{
  LsReport r = report_example ();
  LsSummaryText colored = text;
  colored.color = true;
  g_autofree char *got = ls_summary_format (&r, &colored);
  LS_CHECK (strstr (got, "\033[") != NULL);
  g_autoptr (GRegex) escape = g_regex_new ("\033\\[[0-9]*m", 0, 0, NULL);
  g_autofree char *stripped = g_regex_replace (escape, got, -1, 0, "", 0, NULL);
  g_autoptr (GRegex) trailing = g_regex_new (" +$", G_REGEX_MULTILINE, 0, NULL);
  g_autofree char *trimmed = g_regex_replace (trailing, stripped, -1, 0, "", 0, NULL);
  LS_CHECK_STR (trimmed, golden);
}

static void
ascii_has_no_block_characters (void)
{
  LsReport r = report_example ();
  LsSummaryText plain = text;
  plain.ascii = true;
  g_autofree char *got = ls_summary_format (&r, &plain);
  LS_CHECK (g_str_is_ascii (got));
  LS_CHECK (strstr (got, "####") != NULL);
}

static void
no_line_is_wider_than_100_columns (void)
{
  LsReport r = report_example ();
  g_autofree char *got = ls_summary_format (&r, &text);
  g_auto (GStrv) lines = g_strsplit (got, "\n", -1);
  for (char **line = lines; *line; line++)
    LS_CHECK_INT (g_utf8_strlen (*line, -1), <=, 100);
}

/* Times of each part that the network is to blame for, and why one is missing. */
static void
networks_stand_beside_each_other (void)
{
  LsReport r = report_example ();
  LsNetworkTime networks[] = {
    { .name = "flow",
      .step_time_s = 0.2,
      .breakdown_s = { [LS_PART_FORWARD] = 0.1, [LS_PART_EXPOSED_TP] = 0.05, [LS_PART_SKEW] = 0.05 } },
    { .name = "alphabeta",
      .step_time_s = 0.19,
      .breakdown_s = { [LS_PART_FORWARD] = 0.1, [LS_PART_EXPOSED_TP] = 0.09 } },
    { .name = "step", .refused = (char *) "too many messages" },
  };
  r.n_networks = G_N_ELEMENTS (networks);
  r.networks = networks;
  g_autofree char *got = ls_summary_format (&r, &text);
  LS_CHECK (strstr (got,
                    "Networks  milliseconds of the same step, against flow\n"
                    "                step           exposed tp   skew\n"
                    "  flow        200.00  +0.00 %       50.00  50.00\n"
                    "  alphabeta   190.00  -5.00 %       90.00   0.00\n"
                    "  step       refused\n"
                    "    too many messages\n")
            != NULL);
}

static void
not_fitting_is_said_in_red (void)
{
  LsReport r = report_example ();
  r.capacity_bytes = UINT64_C (50) << 30;
  r.fits = false;
  LsSummaryText colored = { .color = true };
  g_autofree char *got = ls_summary_format (&r, &colored);
  LS_CHECK (strstr (got, "\033[31mdoes not fit: 10.00 GiB too much\033[0m") != NULL);
}

/* Seconds from factors of the step; or why not. */
static void
the_interval_stands_below_the_step (void)
{
  LsReport r = report_example ();
  LsInterval interval = { .low = 0.96, .high = 1.2, .software = "Megatron-LM", .n_sources = 7 };
  LsSummaryText with = { .interval = &interval };
  g_autofree char *got = ls_summary_format (&r, &with);
  LS_CHECK (g_str_has_prefix (
      got,
      "  step time  13.75 s      tokens/s   9,532        MFU        51.4 %       HFU        52.8 %\n"
      "  each GPU   160.4 TFLOP/s, 148.9 tokens/s        causal     49.0 %\n"
      "  interval   13.20 s to 16.50 s  made to hold 80 % of measured steps, by errors against 7 published sources with Megatron-LM\n\n"));
  interval.none = (char *) "nobody measured it";
  g_autofree char *none = ls_summary_format (&r, &with);
  LS_CHECK (strstr (none, "\n  interval   unknown: nobody measured it\n") != NULL);
}

static void
recorded_kernels_have_no_estimate (void)
{
  LsReport r = report_example ();
  r.share_measured = r.share_fitted = r.share_roofline = 0;
  g_autofree char *got = ls_summary_format (&r, &(LsSummaryText) { 0 });
  LS_CHECK (strstr (got, "as recorded in the trace") != NULL);
  LS_CHECK (strstr (got, "published") == NULL);
}

/* A row for both ways of a link, of the fabric and inside a node; links that only carry as much have rows of
 * their own. */
static void
both_ways_of_a_link_share_a_row (void)
{
  LsReport r = report_example ();
  LsLinkGroup groups[] = {
    { (char *) "leaf0>spine0", 1, 0.5, 0.5, 3e9 },
    { (char *) "spine0>leaf0", 1, 0.5, 0.5, 3e9 },
    { (char *) "leaf1>spine0", 1, 0.5, 0.5, 3e9 },
    { (char *) "node0/gpu0>nvswitch", 1, 0.4, 0.4, 2e9 },
    { (char *) "node0/nvswitch>gpu0", 1, 0.4, 0.4, 2e9 },
    { (char *) "node1/gpu0>nvswitch", 1, 0.4, 0.4, 2e9 },
  };
  r.n_link_groups = G_N_ELEMENTS (groups);
  r.link_groups = groups;
  g_autofree char *got = ls_summary_format (&r, &text);
  LS_CHECK (strstr (got,
                    "mean of all\n"
                    "  leaf0<>spine0                          50.0 %                    3.00 GB  (2 alike)\n"
                    "  leaf1>spine0                           50.0 %                    3.00 GB\n"
                    "  node0/gpu0<>nvswitch                   40.0 %                    2.00 GB  (2 alike)\n"
                    "  node1/gpu0>nvswitch                    40.0 %                    2.00 GB\n\n")
            != NULL);
}

LS_TEST_SUITE (LS_TEST (summary_reads_as_agreed), LS_TEST (color_adds_nothing_but_escapes),
               LS_TEST (ascii_has_no_block_characters), LS_TEST (no_line_is_wider_than_100_columns),
               LS_TEST (networks_stand_beside_each_other), LS_TEST (not_fitting_is_said_in_red),
               LS_TEST (the_interval_stands_below_the_step), LS_TEST (recorded_kernels_have_no_estimate),
               LS_TEST (both_ways_of_a_link_share_a_row))
