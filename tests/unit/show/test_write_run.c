/* Pins what is written of a run: the terminal summary, the JSON, the CSV of spans. */
#include "ls_test.h"
#include "pipeline.h"
#include "report_example.h"

#include <cjson/cJSON.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "data/text/csv.h"
#include "show/run/write_run.h"

/* Pins the terminal summary, character by character. */

static const GPtrArray no_findings = { NULL, 0 };
static const LsMeasured measured
    = { .step_s = 13.5, .is_published = true, .source = "Korthikanti et al. 2022, table 5" };
static const LsSummaryText text = {
  .title = "gpt3-175b on dgx-a100-80g, 64 GPUs",
  .subtitle = "tp 8, pp 8, vpp 3, interleaved-1f1b",
  .x.measured = &measured,
  .x.findings = &no_findings,
};
static const char golden[]
    = "gpt3-175b on dgx-a100-80g, 64 GPUs; 174.6 B parameters\n"
      "tp 8, pp 8, vpp 3, interleaved-1f1b\n"
      "\n"
      "  step time  13.75 s      tokens/s   9,532        MFU        49.0 %       HFU        50.4 %\n"
      "  each GPU   160.4 TFLOP/s, 148.9 tokens/s        all pairs  51.4 %\n"
      "  published  13.50 s      error      +1.9 %       Korthikanti et al. 2022, table 5\n"
      "\n"
      "Where the time went  mean over 64 ranks\n"
      "  backward               7.000 s   50.9 %  ████████████████████████████████████\n"
      "  forward                4.000 s   29.1 %  ████████████████████▋\n"
      "  exposed tp             1.125 s    8.2 %  █████▊\n"
      "  bubble                550.0 ms    4.0 %  ██▉\n"
      "  slowdown              500.0 ms    3.6 %  ██▋\n"
      "  recompute             250.0 ms    1.8 %  █▎\n"
      "  exposed pp            200.0 ms    1.5 %  █\n"
      "  optimizer             125.0 ms    0.9 %  ▋\n"
      "  step                   13.75 s  100.0 %\n"
      "\n"
      "Memory at its peak  rank 8, the fullest; of 80.00 GiB\n"
      "  parameters           20.00 GiB   25.0 %  █████████\n"
      "  activations          39.00 GiB   48.8 %  █████████████████▌\n"
      "  comm buffers          1.00 GiB    1.2 %  ▌\n"
      "  peak                 60.00 GiB   75.0 %  fits, 20.00 GiB free\n"
      "  model states         20.00 GiB, 21.47 GB; activations at most 45.00 GiB\n"
      "\n"
      "Busiest links  share of capacity and payload of a step: the most of one link, mean of all\n"
      "  node0 nic0 > leaf0                     71.3 %                  120.00 GB\n"
      "  node0 gpu* > nvswitch                  25.0 %                  450.00 GB  (2 alike)\n"
      "  leaf* > spines                         25.0 %  mean  12.5 %    100.00 GB  (4 links)\n"
      "\n"
      "Kernel times  0.0 % measured, 90.0 % fitted, 10.0 % roofline; 2.0 % extrapolated\n"
      "              1.0 % of no known class: a guess of two passes; with one to four kernels take\n"
      "              -0.5 to +1.0 %\n"
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
                    "Networks  the same step, against flow\n"
                    "                 step           exposed tp      skew\n"
                    "  flow       200.0 ms  +0.00 %    50.00 ms  50.00 ms\n"
                    "  alphabeta  190.0 ms  -5.00 %    90.00 ms       0 s\n"
                    "  step        refused\n"
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
  LsSummaryText with = { .x.interval = &interval };
  g_autofree char *got = ls_summary_format (&r, &with);
  LS_CHECK (g_str_has_prefix (
      got,
      "  step time  13.75 s      tokens/s   9,532        MFU        49.0 %       HFU        50.4 %\n"
      "  each GPU   160.4 TFLOP/s, 148.9 tokens/s        all pairs  51.4 %\n"
      "  interval   13.20 s to 16.50 s  80 % interval, from the errors on 7 published sources with Megatron-LM\n\n"));
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

/* Pins the names of `run --json` (names may be added, none renamed) and that
 * figures survive. */

static const cJSON *
at (const cJSON *root, const char *path)
{
  g_auto (GStrv) names = g_strsplit (path, "/", -1);
  for (char **name = names; *name && root; name++)
    root = cJSON_GetObjectItemCaseSensitive (root, *name);
  ls_check_impl (root != NULL, __FILE__, __LINE__, "/%s is missing", path);
  return root;
}

static double
number (const cJSON *root, const char *path)
{
  const cJSON *item = at (root, path);
  ls_check_impl (cJSON_IsNumber (item), __FILE__, __LINE__, "/%s is no number", path);
  return item ? item->valuedouble : NAN;
}

static cJSON *
parse (const LsReport *r, const LsReportProvenance *p)
{
  g_autofree char *json = ls_report_to_json (r, p, &(LsReportExtras) { 0 });
  LS_CHECK (g_str_has_suffix (json, "}\n"));
  return cJSON_Parse (json);
}

static void
links_and_networks_hold_theirs (void)
{
  LsReport r = report_example ();
  LsNetworkTime networks[] = {
    { .name = "flow", .step_time_s = 0.2, .breakdown_s = { [LS_PART_EXPOSED_TP] = 0.05 } },
    { .name = "step", .step_time_s = 0.25, .breakdown_s = { [LS_PART_EXPOSED_TP] = 0.1 } },
    { .name = "alphabeta", .refused = (char *) "why" },
  };
  r.n_networks = G_N_ELEMENTS (networks);
  r.networks = networks;
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  const cJSON *group = cJSON_GetArrayItem (at (root, "link_groups"), 2);
  LS_CHECK_DOUBLE (number (group, "n"), ==, 4);
  LS_CHECK_DOUBLE (number (group, "mean_utilisation"), ==, 0.125);
  LS_CHECK_DOUBLE (number (group, "max_utilisation"), ==, 0.25);
  LS_CHECK_DOUBLE (number (group, "bytes"), ==, 400e9);
  LS_CHECK_DOUBLE (number (root, "network_all/step/difference_pct"), ==, 25);
  LS_CHECK_DOUBLE (number (root, "network_all/step/breakdown_s/exposed_tp"), ==, 0.1);
  LS_CHECK (cJSON_IsNull (at (root, "network_all/step/refused")));
  LS_CHECK (cJSON_IsNull (at (root, "network_all/alphabeta/step_time_s")));
  LS_CHECK_STR (at (root, "network_all/alphabeta/refused")->valuestring, "why");
  cJSON_Delete (root);
}

static void
stable_names_hold_the_figures (void)
{
  LsReport r = report_example ();
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  if (!LS_CHECK (root != NULL))
    return;
  LS_CHECK_DOUBLE (number (root, "step_time_s"), ==, 13.75);
  LS_CHECK_DOUBLE (number (root, "first_step_s"), ==, 14);
  LS_CHECK_DOUBLE (number (root, "tokens_per_s"), ==, 9532.5);
  LS_CHECK_DOUBLE (number (root, "mfu"), ==, 0.49);
  LS_CHECK_DOUBLE (number (root, "mfu_causal"), ==, 0.49);
  LS_CHECK_DOUBLE (number (root, "mfu_all_pairs"), ==, 0.514);
  LS_CHECK_DOUBLE (number (root, "hfu"), ==, 0.504);
  LS_CHECK_DOUBLE (number (root, "hfu_all_pairs"), ==, 0.528);
  LS_CHECK_DOUBLE (number (root, "n_ranks"), ==, 64);
  LS_CHECK_DOUBLE (number (root, "n_classes"), ==, 8);
  LS_CHECK_DOUBLE (number (root, "bubble_frac"), ==, 0.04);
  LS_CHECK_DOUBLE (number (root, "memory/peak_bytes"), ==, 60.0 * (1 << 30));
  LS_CHECK_DOUBLE (number (root, "memory/capacity_bytes"), ==, 80.0 * (1 << 30));
  LS_CHECK (cJSON_IsTrue (at (root, "memory/fits")));
  LS_CHECK_DOUBLE (number (root, "memory/by_category/activations"), ==, 45.0 * (1 << 30));
  LS_CHECK_DOUBLE (number (root, "memory/at_peak/activations"), ==, 39.0 * (1 << 30));
  cJSON_Delete (root);
}

static void
breakdown_and_categories_have_all_keys (void)
{
  static const char *const parts[] = { "forward",      "backward",   "recompute",  "optimizer",  "slowdown",
                                       "exposed_tp",   "exposed_dp", "exposed_pp", "exposed_cp", "exposed_ep",
                                       "exposed_copy", "bubble",     "skew",       "host",       "other" };
  static const char *const categories[]
      = { "parameters", "gradients", "optimizer", "activations", "unsharded", "comm_buffers", "workspace" };
  LsReport r = report_example ();
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  double sum = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *path = g_strconcat ("breakdown_s/", parts[i], NULL);
    sum += number (root, path);
  }
  LS_CHECK_NEAR (sum, 13.75, 1e-12);
  LS_CHECK_INT (cJSON_GetArraySize (at (root, "breakdown_s")), ==, G_N_ELEMENTS (parts));
  for (size_t i = 0; i < G_N_ELEMENTS (categories); i++) {
    g_autofree char *path = g_strconcat ("memory/by_category/", categories[i], NULL);
    number (root, path);
  }
  LS_CHECK_INT (cJSON_GetArraySize (at (root, "memory/by_category")), ==, G_N_ELEMENTS (categories));
  cJSON_Delete (root);
}

static void
links_keep_their_order (void)
{
  LsReport r = report_example ();
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  const cJSON *links = at (root, "links");
  LS_CHECK_INT (cJSON_GetArraySize (links), ==, 3);
  const cJSON *first = cJSON_GetArrayItem (links, 0);
  LS_CHECK_STR (cJSON_GetStringValue (at (first, "name")), "node0 nic0 > leaf0");
  LS_CHECK_DOUBLE (number (first, "utilisation"), ==, 0.713);
  LS_CHECK_DOUBLE (number (first, "bytes"), ==, 120e9);
  cJSON_Delete (root);
}

static void
provenance_says_what_is_known (void)
{
  LsReport r = report_example ();
  LsReportProvenance p = {
    .version = "0.1.0", .model = "gpt \"x\"", .model_source = "a paper", .cluster = "dgx", .options = "--tp 8"
  };
  cJSON *root = parse (&r, &p);
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/version")), "0.1.0");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/model/name")), "gpt \"x\"");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/model/source")), "a paper");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/options")), "--tp 8");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/digest")), "0000000000000abc");
  LS_CHECK_DOUBLE (number (root, "provenance/kernel_time_frac/fitted"), ==, 0.9);
  LS_CHECK (!cJSON_HasObjectItem (at (root, "provenance"), "strategy"));
  LS_CHECK (!cJSON_HasObjectItem (at (root, "provenance/cluster"), "source"));
  cJSON_Delete (root);
}

static void
what_is_not_finite_is_null (void)
{
  LsReport r = report_example ();
  r.mfu = NAN;
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  LS_CHECK (cJSON_IsNull (at (root, "mfu")));
  cJSON_Delete (root);
}

/* Pins the CSV of spans: a row each, uncut, exact to the picosecond, names quoted as
 * RFC 4180 asks, and causes that lead from row to row. */

static const PipelineShape shape
    = { 2, 1, 3, 10 * LS_MS + 1, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

static LsCsv *
table_of (const LsTimeline *t)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-spans-XXXXXX", NULL),
                  *path = g_build_filename (folder, "s.csv", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_spans_write (t, path, &error));
  LS_CHECK_NO_ERROR (error);
  LsCsv *csv = ls_csv_parse (path, NULL, -1, diags);
  g_unlink (path);
  g_rmdir (folder);
  return csv;
}

static const char *
cell (const LsCsv *csv, guint row, const char *column)
{
  return ls_csv_cell (csv, row, (guint) ls_csv_column (csv, column));
}

static void
a_row_says_when_and_why (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autoptr (LsCsv) csv = table_of (&p.t);
  if (LS_CHECK (csv != NULL)) {
    /* rank 0, micro-batch 0: half of 10 ms and 1 ps, rounded down, the all-reduce, the rest */
    LS_CHECK_INT (ls_csv_n_rows (csv), ==, p.t.ranks[0].n + p.t.ranks[1].n);
    LS_CHECK_STR (cell (csv, 0, "stream"), "compute");
    LS_CHECK_STR (cell (csv, 0, "name"), "forward");
    LS_CHECK_STR (cell (csv, 0, "end_ps"), "5000000000");
    LS_CHECK_STR (cell (csv, 0, "cause"), "none");
    LS_CHECK_STR (cell (csv, 0, "cause_span"), "");
    LS_CHECK_STR (cell (csv, 0, "matched_ps"), "");
    LS_CHECK_STR (cell (csv, 0, "layer"), "");
    LS_CHECK_STR (cell (csv, 1, "stream"), "tp");
    LS_CHECK_STR (cell (csv, 1, "name"), "all-reduce");
    LS_CHECK_STR (cell (csv, 1, "matched_ps"), "5000000000");
    LS_CHECK_STR (cell (csv, 1, "cause"), "dep");
    LS_CHECK_STR (cell (csv, 1, "cause_span"), "0");
    LS_CHECK_STR (cell (csv, 2, "start_ps"), "6000000000");
    LS_CHECK_STR (cell (csv, 2, "end_ps"), "11000000001");
  }
  pipeline_clear (&p);
}

static void
spans_number_from_0_on_each_rank (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autoptr (LsCsv) csv = table_of (&p.t);
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++) {
    guint rank = row >= p.t.ranks[0].n;
    LS_CHECK_INT (g_ascii_strtoll (cell (csv, row, "rank"), NULL, 10), ==, rank);
    LS_CHECK_INT (g_ascii_strtoll (cell (csv, row, "span"), NULL, 10), ==, row - rank * p.t.ranks[0].n);
  }
  pipeline_clear (&p);
}

static void
spans_are_not_cut_at_the_window (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  p.t.window_start = LS_MS;
  p.t.ranks[0].spans[1].matched = p.t.ranks[0].spans[1].end = LS_TIME_NEVER;
  g_autoptr (LsCsv) csv = table_of (&p.t);
  if (LS_CHECK (csv != NULL)) {
    LS_CHECK_STR (cell (csv, 0, "start_ps"), "-1000000000");
    LS_CHECK_STR (cell (csv, 0, "end_ps"), "4000000000");
    LS_CHECK_STR (cell (csv, 1, "start_ps"), "4000000000");
    LS_CHECK_STR (cell (csv, 1, "matched_ps"), "");
    LS_CHECK_STR (cell (csv, 1, "end_ps"), "");
  }
  pipeline_clear (&p);
}

static void
any_name_survives (void)
{
  const char *const name = "one, \"two\"\tthree";
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  p.ops[p.plan.programs[0].instances[0].segment][PIPELINE_FIRST].name = name;
  g_autoptr (LsCsv) csv = table_of (&p.t);
  if (LS_CHECK (csv != NULL)) {
    LS_CHECK_STR (cell (csv, 0, "name"), name);
    LS_CHECK_STR (cell (csv, 0, "cause"), "none");
  }
  pipeline_clear (&p);
}

LS_TEST_SUITE (LS_TEST (summary_reads_as_agreed), LS_TEST (color_adds_nothing_but_escapes),
               LS_TEST (ascii_has_no_block_characters), LS_TEST (no_line_is_wider_than_100_columns),
               LS_TEST (networks_stand_beside_each_other), LS_TEST (not_fitting_is_said_in_red),
               LS_TEST (the_interval_stands_below_the_step), LS_TEST (recorded_kernels_have_no_estimate),
               LS_TEST (both_ways_of_a_link_share_a_row), LS_TEST (links_and_networks_hold_theirs),
               LS_TEST (stable_names_hold_the_figures), LS_TEST (breakdown_and_categories_have_all_keys),
               LS_TEST (links_keep_their_order), LS_TEST (provenance_says_what_is_known),
               LS_TEST (what_is_not_finite_is_null), LS_TEST (a_row_says_when_and_why),
               LS_TEST (spans_number_from_0_on_each_rank), LS_TEST (spans_are_not_cut_at_the_window),
               LS_TEST (any_name_survives))
