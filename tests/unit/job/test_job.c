/* Pins how a job is put together, and a job in the order of a file. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "job/job.h"
#include "job/knobs.h"
#include "schedules/sched.h"

/* Pins how a job is put together: knobs from text, the size of the cluster, and
 * that a run gives the same step time with and without spans. Simulates the small
 * job of tests/golden/data. */

static gboolean
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean ok = ls_job_spec_set (spec, key, value, diags);
  LS_CHECK_INT (ls_diag_list_n (diags), ==, ok ? 0 : 1);
  return ok;
}

static void
init_small (LsJobSpec *spec)
{
  ls_job_spec_init (spec);
  set (spec, "model", "tiny");
  set (spec, "cluster", "pair");
  set (spec, "tp", "2");
  set (spec, "pp", "2");
}

static void
knobs_are_set_from_text (void)
{
  LsJobSpec spec;
  init_small (&spec);
  LS_CHECK (set (&spec, "micro-batch", "4") && spec.strategy.micro_batch == 4);
  LS_CHECK (set (&spec, "sp", "1") && spec.strategy.sp);
  LS_CHECK (set (&spec, "grad-norm", "0") && !spec.strategy.opt.grad_norm);
  LS_CHECK (set (&spec, "zero", "1@8") && spec.strategy.zero_stage == 1
            && spec.strategy.data.zero_group == 8);
  LS_CHECK (set (&spec, "network", "step") && spec.network == LS_JOB_NETWORK_STEP);
  LS_CHECK (set (&spec, "network", "alphabeta") && spec.network == LS_JOB_NETWORK_ALPHABETA);
  LS_CHECK (set (&spec, "steps", "5") && spec.options.n_steps == 5);
  LS_CHECK (set (&spec, "published", "13.75:paper: table 5") && spec.measured.step_s == 13.75);
  LS_CHECK_STR (spec.measured.source, "paper: table 5");
  LS_CHECK (set (&spec, "published", "2") && spec.measured.source == NULL);
  LS_CHECK (set (&spec, "published", "1e-9") && set (&spec, "published", "1e9:x")
            && spec.measured.step_s == 1e9);
  LS_CHECK (set (&spec, "published", "38s:log") && spec.measured.step_s == 38 && spec.measured.is_published);
  ls_measured_clear (&spec.measured); /* a step has one of both */
  LS_CHECK (set (&spec, "measured", "1234ms,tflops=145,memory=61GiB,tokens_per_s=9400:my log: a, b")
            && !spec.measured.is_published);
  LS_CHECK (spec.measured.step_s == 1.234 && spec.measured.flops_per_gpu == 145e12
            && spec.measured.tokens_per_s == 9400);
  LS_CHECK (spec.measured.memory_bytes == 61.0 * (1 << 30));
  LS_CHECK_STR (spec.measured.source, "my log: a, b");
  LS_CHECK (set (&spec, "dtype", "torch.bfloat16") && set (&spec, "dtype", "BF16")
            && set (&spec, "recompute", "Full"));
  LS_CHECK (set (&spec, "max-memory", "64GiB") && spec.options.max_memory_bytes == (uint64_t) 64 << 30);
  LS_CHECK (set (&spec, "debug", "evq=ref,runahead=off") && spec.options.queue == LS_QUEUE_REFERENCE
            && spec.options.no_run_ahead);
  ls_job_spec_clear (&spec);
}

static void
wrong_knobs_change_nothing (void)
{
  LsJobSpec spec;
  init_small (&spec);
  LS_CHECK (!set (&spec, "tp", "0") && spec.strategy.tp == 2);
  LS_CHECK (!set (&spec, "steps", "0") && spec.options.n_steps == 3);
  LS_CHECK (!set (&spec, "published", "-1") && spec.measured.step_s == 0);
  LS_CHECK (!set (&spec, "published", "1x") && !set (&spec, "published", "1s,tflops=2"));
  LS_CHECK (!set (&spec, "measured", "13.9") && !set (&spec, "measured", "13.9s,145")
            && !set (&spec, "measured", "1s,memory=61"));
  LS_CHECK (!set (&spec, "measured", "0s")
            && !set (&spec, "measured", "1s,tokens_per_s=1,tokens_per_s_per_gpu=1")
            && spec.measured.step_s == 0);
  LS_CHECK (!set (&spec, "published", "nan") && !set (&spec, "published", "9e-10")
            && !set (&spec, "published", "1.1e9:x"));
  LS_CHECK (!set (&spec, "max-memory", "16") && !set (&spec, "max-memory", "0B"));
  LS_CHECK_INT (spec.options.max_memory_bytes, ==, (uint64_t) 16 << 30);
  LS_CHECK (set (&spec, "debug", "evq=ref,solver=ref,runahead=off")
            && spec.options.queue == LS_QUEUE_REFERENCE);
  LS_CHECK (spec.options.solver == LS_SOLVER_REFERENCE && spec.options.no_run_ahead);
  LS_CHECK (set (&spec, "debug", "evq=fast,solver=fast,runahead=on")
            && spec.options.solver == LS_SOLVER_FAST);
  LS_CHECK (set (&spec, "debug", "fold=walk,check") && spec.options.folds_by_walk && spec.options.checks);
  LS_CHECK (!set (&spec, "debug", "evq=ref,solver=slow") && spec.options.queue == LS_QUEUE_FAST);
  LS_CHECK (!set (&spec, "no-such-knob", "1"));
  ls_job_spec_clear (&spec);
}

static void
check_size (const char *key, const char *value, uint32_t n_nodes, uint32_t n_ranks)
{
  LsJobSpec spec;
  init_small (&spec);
  if (key)
    set (&spec, key, value);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (r) {
    LS_CHECK_INT (r->cluster->spec.n_nodes, ==, n_nodes);
    LS_CHECK_INT (r->plan->n_ranks, ==, n_ranks);
  }
  ls_job_spec_clear (&spec);
}

static void
the_cluster_is_as_large_as_asked_or_needed (void)
{
  check_size (NULL, NULL, 2, 4); /* tp 2 x pp 2 on nodes of two GPUs   */
  check_size ("dp", "3", 6, 12);
  check_size ("gpus", "8", 4, 8); /* dp 2 follows                       */
  check_size ("nodes", "4", 4, 8);
}

static void
spans_do_not_change_the_step_time (void)
{
  LsJobSpec spec;
  init_small (&spec);
  g_autoptr (LsJobResult) full = ls_job_spec_run (&spec, NULL);
  spec.options.no_spans = true;
  g_autoptr (LsJobResult) bare = ls_job_spec_run (&spec, NULL);
  if (LS_CHECK (full && bare)) {
    LS_CHECK_DOUBLE (ls_job_result_step_time_s (full), ==, ls_job_result_step_time_s (bare));
    LS_CHECK_DOUBLE (ls_job_result_step_time_s (full), ==, full->report.step_time_s);
    LS_CHECK (full->memory && bare->memory);
  }
  ls_job_spec_clear (&spec);
}

static void
check_refused (const char *key, const char *value, LsErrorCode code)
{
  LsJobSpec spec;
  init_small (&spec);
  set (&spec, key, value);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK (r == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, (int) code));
  ls_job_spec_clear (&spec);
}

static void
what_cannot_run_is_refused_with_its_code (void)
{
  check_refused ("model", "no-such-model", LS_ERROR_INPUT);
  check_refused ("cluster", "no-such-cluster", LS_ERROR_INPUT);
  check_refused ("tp", "5", LS_ERROR_CONFLICT);
  check_refused ("nodes", "1048576", LS_ERROR_CONFLICT);
  check_refused ("max-memory", "1KiB", LS_ERROR_LIMIT);
}

/* Sets every "--key value" of a line of flags; a flag without value is "1"; "--set KEY=VALUE". */
static void
set_flags (LsJobSpec *spec, const char *line)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  for (char **word = words; *word; word++) {
    const char *key = *word + strlen ("--");
    gboolean has_value = word[1] && !g_str_has_prefix (word[1], "--");
    g_auto (GStrv) pair = strcmp (key, "set") == 0 ? g_strsplit (word[1], "=", 2) : NULL;
    LS_CHECK (pair ? set (spec, pair[0], pair[1]) : set (spec, key, has_value ? word[1] : "1"));
    word += has_value;
  }
}

static void
knobs_read_back_as_the_same_strategy (void)
{
  LsJobSpec spec, again;
  init_small (&spec);
  set_flags (&spec,
             "--sp --zero 1 --micro-batch 2 --global-batch 32 --recompute full --dtype fp16"
             " --grad-dtype fp32 --layers-per-chunk 1,3 --grad-norm 0 --gpus 8 --set grad_fusion=1");
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (r) {
    g_autofree char *knobs = ls_knobs_format (&r->strategy);
    ls_job_spec_init (&again);
    set_flags (&again, knobs);
    g_autofree char *knobs_again = ls_knobs_format (&again.strategy);
    LS_CHECK_STR (knobs_again, knobs);
    LS_CHECK (strstr (knobs, "--layers-per-chunk 1,3 --grad-norm 0") != NULL);
    ls_job_spec_clear (&again);
  }
  ls_job_spec_clear (&spec);
}

/* The degrees of the first line are those whose product is the ranks, and it says how each cuts. */
static void
a_summary_has_every_degree (void)
{
  static const struct {
    const char *flags, *summary;
  } cases[] = {
    { "--gpus 16 --cp 2 --dp-kind fsdp2 --zero 3@2 --pp 1",
      "tp 2, pp 1, cp 2 (ring), dp 4 (ZeRO-3 in groups of 2)," },
    { "--gpus 16 --cp 2 --cp-kind ulysses --pp 1 --zero 1", "tp 2, pp 1, cp 2 (ulysses), dp 4 (ZeRO-1)," },
    { "--gpus 8 --sp", "tp 2 + sp, pp 2, dp 2, 1f1b," },
    { "--gpus 16 --dp-kind fsdp2 --zero 3 --pp 1 --reshard-after-forward 0",
      "tp 2, pp 1, dp 8 (ZeRO-3), not resharded after forward, micro-batch" },
    { "--gpus 16 --dp-kind fsdp2 --zero 3 --pp 1 --reshard-after-forward 4",
      "tp 2, pp 1, dp 8 (ZeRO-3), resharded after forward into groups of 4, micro-batch" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    LsJobSpec spec;
    init_small (&spec);
    set_flags (&spec, cases[i].flags);
    g_autoptr (LsJobResult) r = ls_job_spec_prepare (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    g_autofree char *summary = r ? ls_knobs_summary (&r->strategy, &r->model) : g_strdup ("");
    LS_CHECK (g_str_has_prefix (summary, cases[i].summary));
    ls_job_spec_clear (&spec);
  }
}

/* What tells a job from others of its model goes on: the recipe of fp8, which parts are recomputed. What is so by
 * itself is not said, nor what a result says it rests on. */
static void
a_summary_tells_a_job_from_others (void)
{
  static const struct {
    const char *flags, *said, *not_said;
    LsDtype dtype; /* which the machine of round numbers lacks */
  } cases[] = {
    { "--gpus 8 --seq 512", ", bf16", "sequences", LS_DTYPE_BF16 },
    { "--gpus 8 --attention unfused --recompute selective", ", selective recompute", " of core",
      LS_DTYPE_BF16 },
    { "--gpus 8 --recompute selective --recompute-parts norm", ", selective recompute of norm", "(",
      LS_DTYPE_BF16 },
    { "--gpus 8 --recompute full", ", full recompute", "layers", LS_DTYPE_BF16 },
    { "--gpus 8 --recompute full --recompute-method block --recompute-layers 1",
      ", full recompute (block, 1 layer)", "sequences", LS_DTYPE_BF16 },
    { "--gpus 8 --fp8-recipe blockwise", ", fp8 (blockwise)", "resharded", LS_DTYPE_FP8 },
    { "--gpus 8", ", fp8 (delayed)", "resharded", LS_DTYPE_FP8 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    LsJobSpec spec;
    init_small (&spec);
    set_flags (&spec, cases[i].flags);
    g_autoptr (LsJobResult) r = ls_job_spec_prepare (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    if (r)
      r->strategy.dtype = cases[i].dtype;
    g_autofree char *summary = r ? ls_knobs_summary (&r->strategy, &r->model) : g_strdup ("");
    ls_check_impl (strstr (summary, cases[i].said) != NULL, __FILE__, __LINE__, "%s: %s", cases[i].flags,
                   summary);
    LS_CHECK (!strstr (summary, cases[i].not_said));
    ls_job_spec_clear (&spec);
  }
}

/* Communication of tensor parallelism that nothing runs beside; *ret_noted: something is said of it. */
static double
exposed_tp (const char *schedule, const char *tp_async, bool *ret_noted)
{
  g_autoptr (GError) error = NULL;
  LsJobSpec spec;
  init_small (&spec);
  set (&spec, "schedule", schedule);
  set (&spec, "tp-async", tp_async);
  set (&spec, "sp", "1");
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  *ret_noted
      = r && r->notes->len > 0 && strstr (g_ptr_array_index (r->notes, 0), "puts weight gradients off");
  return r ? r->report.breakdown_s[LS_PART_EXPOSED_TP] : 0;
}

/* Why zb-h1 may be slower than 1f1b though its bubble is smaller: what the note says is so. Where nothing of
 * a whole backward runs beside its collectives either, both have as much exposed, and there is no note. */
static void
a_schedule_that_cannot_deliver_says_why (void)
{
  bool is_noted[4];
  double whole = exposed_tp ("1f1b", "1", &is_noted[0]), split = exposed_tp ("zb-h1", "1", &is_noted[1]);
  double blocking = exposed_tp ("1f1b", "0", &is_noted[2]),
         split_blocking = exposed_tp ("zb-h1", "0", &is_noted[3]);
  LS_CHECK_DOUBLE (split, >, 1.05 * whole);
  LS_CHECK_NEAR (split_blocking, blocking, 0.01);
  LS_CHECK (is_noted[1] && !is_noted[0] && !is_noted[2] && !is_noted[3]);
}

/* Searched orders without a limit hold what no GPU has: which hold less is said, where they do not fit. */
static void
an_order_without_a_limit_says_which_have_one (void)
{
  static const struct {
    const char *schedule, *cluster;
    bool is_told;
  } cases[] = { { "zb-auto", "pair:gpu.hbm_size=1025MiB", true },
                { "zbv-auto", "pair:gpu.hbm_size=1025MiB", true },
                { "zb-2p", "pair:gpu.hbm_size=1025MiB", false },
                { "zb-auto", "pair", false } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    LsJobSpec spec;
    init_small (&spec);
    set (&spec, "schedule", cases[i].schedule);
    set (&spec, "cluster", cases[i].cluster);
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    bool is_told = false;
    for (guint k = 0; r && k < r->notes->len; k++)
      is_told = is_told || strstr (r->notes->pdata[k], "hold fewer");
    LS_CHECK (is_told == cases[i].is_told);
    ls_job_spec_clear (&spec);
  }
}

/* Pins: a job in the order of a file is the job of the schedule that wrote the file, to the
 * picosecond; a file of another shape or placement is refused with the difference. */

static char *
write_order (const char *schedule, uint32_t vpp, uint32_t n_micro_batches)
{
  LsSchedShape shape = { .pp = 2, .vpp = vpp, .n_micro_batches = n_micro_batches };
  LsOrders *orders = ls_sched_orders (ls_sched_find (schedule), &shape);
  g_autoptr (GString) text = g_string_new (NULL);
  for (uint32_t r = 0; r < 2; r++) {
    ls_orders_append_rank (orders, r, text);
    g_string_append_c (text, '\n');
  }
  ls_orders_free (orders);
  char *path = NULL;
  int fd = g_file_open_tmp ("order-XXXXXX.csv", &path, NULL);
  LS_CHECK (fd >= 0 && g_close (fd, NULL) && g_file_set_contents (path, text->str, -1, NULL));
  return path;
}

static LsJobResult *
run (const char *schedule, const char *order, GError **error)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  const char *const knobs[][2]
      = { { "model", "tiny" },     { "cluster", "pair" },    { "pp", "2" },     { "dp", "1" },
          { "global-batch", "4" }, { "schedule", schedule }, { "order", order } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i][1])
      LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  LsJobResult *r = ls_job_spec_run (&spec, error);
  ls_job_spec_clear (&spec);
  return r;
}

static void
a_file_is_the_schedule_that_wrote_it (void)
{
  g_autofree char *path = write_order ("zb-h1", 1, 4);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) own = run ("zb-h1", NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsJobResult) given = run ("1f1b", path, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (own && given && own->timeline->digest == given->timeline->digest);
  LS_CHECK (own && given && own->timeline->window_end == given->timeline->window_end);
  g_unlink (path);
}

static void
a_file_may_have_pipes_both_ways (void)
{
  g_autofree char *path = write_order ("dualpipe", 1, 4);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) own = run ("dualpipe", NULL, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsJobResult) given = run ("chimera", path, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (own && given && own->timeline->digest == given->timeline->digest);
  LS_CHECK (!run ("pipedream", path, &error)); /* whose steps have no order of their own */
  g_unlink (path);
}

static void
refuse (const char *schedule, uint32_t vpp, uint32_t n_micro_batches, const char *said)
{
  g_autofree char *path = write_order (schedule, vpp, n_micro_batches);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = run ("1f1b", path, &error);
  LS_CHECK (!r && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  if (error && !LS_CHECK (strstr (error->message, said) != NULL))
    fprintf (stderr, "%s\n", error->message);
  g_unlink (path);
}

static void
other_shapes_are_refused (void)
{
  refuse ("1f1b", 1, 8, "8 micro-batches; expected pp 2, vpp 1, 4 micro-batches");
  refuse ("zbv", 2, 4, "vpp 2");
  refuse ("dualpipe", 1, 4, "replicas");
}

LS_TEST_SUITE_WITH (
    ls_test_golden_data, NULL, LS_TEST (knobs_are_set_from_text), LS_TEST (wrong_knobs_change_nothing),
    LS_TEST (the_cluster_is_as_large_as_asked_or_needed), LS_TEST (spans_do_not_change_the_step_time),
    LS_TEST (what_cannot_run_is_refused_with_its_code), LS_TEST (knobs_read_back_as_the_same_strategy),
    LS_TEST (a_summary_has_every_degree), LS_TEST (a_summary_tells_a_job_from_others),
    LS_TEST (a_schedule_that_cannot_deliver_says_why), LS_TEST (an_order_without_a_limit_says_which_have_one),
    LS_TEST (a_file_is_the_schedule_that_wrote_it), LS_TEST (a_file_may_have_pipes_both_ways),
    LS_TEST (other_shapes_are_refused))
