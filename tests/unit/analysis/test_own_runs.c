/* Pins what a user's own runs say of a prediction: logged numbers, and intervals. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "analysis/report.h"
#include "analysis/interval.h"

/* Pins intervals from a user's own runs: the worked example of analysis/interval.h, how many runs it takes,
 * that repeats of a job count as one, and that a job unlike the runs has a wider one, or none where nobody's
 * runs tell. */

static const double worked[] = { -0.02, -0.01, 0, 0.01, 0.04 };
static const guint each[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

static LsFittedRuns
runs_of (const double *errors, guint n)
{
  LsFittedRuns runs = { .file = (char *) "mine.csv",
                        .architecture = (char *) "hopper",
                        .lowest_mfu = 0.4,
                        .gpus = 64,
                        .tp = 4,
                        .params = 8e9,
                        .fabric = 50e9 };
  ls_own_runs_set_range (errors, each, n, &runs);
  runs.traits = g_array_new (FALSE, FALSE, sizeof (char *));
  static const char *const words[] = { "format bf16", "backend megatron" };
  g_array_append_vals (runs.traits, words, G_N_ELEMENTS (words));
  return runs;
}

/* As all of these runs are. */
static LsIntervalJob
job_like_them (void)
{
  LsIntervalJob job = { "hopper", "Megatron-LM", 0.4, { .chip = "GPU", .chips = "GPUs" } };
  job.traits.word[LS_ASPECT_FORMAT] = "bf16";
  job.traits.word[LS_ASPECT_BACKEND] = "megatron";
  job.traits.figure[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS] = 64;
  job.traits.figure[LS_ASPECT_TENSOR - LS_N_WORD_ASPECTS] = 4;
  job.traits.figure[LS_ASPECT_PARAMS - LS_N_WORD_ASPECTS] = 8e9;
  job.traits.figure[LS_ASPECT_FABRIC - LS_N_WORD_ASPECTS] = 50e9;
  return job;
}

static LsInterval
published (void)
{
  return (LsInterval) { .low = 0.9, .high = 1.1, .stretch = 1, .software = "Megatron-LM", .n_sources = 6 };
}

static LsInterval
nothing_published (void)
{
  return (LsInterval) { .none = g_strdup ("nobody published any") };
}

/* Of a step of 10 s. */
static void
check (LsInterval *i, double low, double high, double stretch, const char *label)
{
  g_autofree char *is = ls_interval_label (i);
  LS_CHECK_NEAR (10 * i->low, low, 0.005);
  LS_CHECK_NEAR (10 * i->high, high, 0.005);
  LS_CHECK_NEAR (i->stretch, stretch, 0.01);
  LS_CHECK_STR (is, label);
  ls_interval_clear (i);
}

#define HOLDS "80 % interval, from 5 of your runs (mine.csv), left out one at a time"

static void
the_worked_example_holds (void)
{
  LsFittedRuns runs = runs_of (worked, 5);
  LS_CHECK_INT (runs.n, ==, 5);
  LS_CHECK_NEAR (runs.low, exp (-0.04), 1e-12);
  LS_CHECK_NEAR (runs.high, exp (0.04), 1e-12);

  LsIntervalJob job = job_like_them ();
  LsInterval i = published ();
  ls_own_runs_interval (&runs, &job, &i);
  LS_CHECK_INT (i.n_sources, ==, 0);
  LS_CHECK_INT (i.n_runs, ==, 5);
  check (&i, 9.61, 10.41, 1, HOLDS);

  i = published ();
  job.mfu = 0.2;
  ls_own_runs_interval (&runs, &job, &i);
  check (&i, 9.23, 10.83, 2,
         HOLDS "; 2.0 times as wide as for a job like these, as none of yours has an MFU below 40.0 %");

  i = published ();
  job.mfu = 0.5;
  job.traits.figure[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS] = 128;
  ls_own_runs_interval (&runs, &job, &i);
  LS_CHECK_INT (i.n_sources, ==, 6);
  check (
      &i, 8.69, 11.51, 3.51,
      HOLDS
      "; 3.5 times as wide as for a job like these, by what is added for the errors on 6 published sources with Megatron-LM, as none of yours "
      "is on more than 64 GPUs");
  g_array_unref (runs.traits);
}

/* Eight of nine are enough: 0.8 * 10 / 9. */
static void
an_outlier_of_nine_is_left_aside (void)
{
  static const double errors[] = { 0.3, -0.02, -0.01, 0, 0.01, 0.02, 0.03, 0.04, 0.05 };
  LsFittedRuns runs = { 0 };
  ls_own_runs_set_range (errors, each, 9, &runs);
  LS_CHECK_NEAR (log (runs.low), -0.05, 1e-12);
  LS_CHECK_NEAR (log (runs.high), 0.05, 1e-12);
  ls_own_runs_set_range (errors, each, 8, &runs); /* of eight all are needed */
  LS_CHECK_NEAR (log (runs.high), 0.3, 1e-12);
}

/* The published interval stays, and says why it is not theirs. */
static void
three_runs_are_too_few (void)
{
  LsFittedRuns runs = runs_of (worked, 3);
  LS_CHECK_INT (runs.n, ==, 3);
  LS_CHECK (runs.low == 0 && runs.high == 0);
  const LsIntervalJob job = job_like_them ();
  LsInterval i = published ();
  ls_own_runs_interval (&runs, &job, &i);
  check (
      &i, 9.0, 11.0, 1,
      "80 % interval, from the errors on 6 published sources with Megatron-LM; your 3 runs (mine.csv) are too "
      "few for an interval of their own, 4 are enough");
  i = nothing_published ();
  ls_own_runs_interval (&runs, &job, &i);
  LS_CHECK (i.none != NULL);
  g_autofree char *label = ls_interval_label (&i);
  LS_CHECK_STR (
      label,
      "unknown: nobody published any; your 3 runs (mine.csv) are too few for an interval of their own, 4 are enough");
  ls_interval_clear (&i);
  g_array_unref (runs.traits);
}

/* Ten runs of three jobs are three. Of five jobs that of six repeats weighs as much as each other one. */
static void
repeats_are_one_run (void)
{
  static const double errors[] = { -0.05, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, -0.01, 0, 0.01 };
  static const guint of_three[] = { 0, 1, 1, 1, 1, 1, 1, 7, 7, 7 },
                     of_five[] = { 0, 1, 1, 1, 1, 1, 1, 7, 8, 9 };
  LsFittedRuns runs = { 0 };
  ls_own_runs_set_range (errors, of_three, 10, &runs);
  LS_CHECK_INT (runs.n, ==, 3);
  LS_CHECK (runs.low == 0);
  ls_own_runs_set_range (errors, of_five, 10, &runs);
  LS_CHECK_INT (runs.n, ==, 5);
  LS_CHECK_NEAR (log (runs.low), -0.05,
                 1e-12); /* 96 % of the weight: all; by rows nine of ten would do without it */
}

/* What the runs have not, one after the other. */
static void
unlike_jobs_are_told (void)
{
  LsFittedRuns runs = runs_of (worked, 5);
  const struct {
    LsAspect aspect;
    const char *word, *words;
    double figure;
  } cases[] = {
    { LS_ASPECT_FORMAT, "fp8", "is in fp8", 0 },
    { LS_ASPECT_BACKEND, "fsdp2", "has --dp-kind fsdp2", 0 },
    { LS_ASPECT_SCHEDULE, "1f1b", "has --schedule 1f1b", 0 },
    { LS_ASPECT_EXPERTS, "on", "has experts", 0 },
    { LS_ASPECT_TRANSPORT, "tcp", "is joined by TCP", 0 },
    { LS_ASPECT_TRANSPORT, "host-memory", "has its data go through host memory between nodes", 0 },
    { LS_ASPECT_TENSOR, NULL, "has --tp above 4", 8 },
    { LS_ASPECT_PARAMS, NULL, "has more than 8 billion parameters", 70e9 },
    { LS_ASPECT_FABRIC, NULL, "has a fabric of 25 GB/s per GPU (50 at least)", 25e9 },
  };
  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    LsIntervalJob job = job_like_them ();
    g_autofree char *like = ls_own_runs_unlike (&runs, &job);
    LS_CHECK_STR (like, NULL);
    if (cases[k].word)
      job.traits.word[cases[k].aspect] = cases[k].word;
    else
      job.traits.figure[cases[k].aspect - LS_N_WORD_ASPECTS] = cases[k].figure;
    g_autofree char *unlike = ls_own_runs_unlike (&runs, &job);
    LS_CHECK_STR (unlike, cases[k].words);

    LsInterval i = nothing_published (), wide = published ();
    ls_own_runs_interval (&runs, &job, &i);
    g_autofree char *none = g_strdup_printf (
        "none of your 5 runs (mine.csv) %s; of published ones: nobody published any", cases[k].words);
    LS_CHECK_STR (i.none, none);
    ls_own_runs_interval (&runs, &job, &wide);
    LS_CHECK_DOUBLE (log (wide.high / wide.low), >, log (1.1 / 0.9));
    ls_interval_clear (&i);
    ls_interval_clear (&wide);
  }
  LsIntervalJob other = job_like_them ();
  other.architecture = "blackwell";
  g_autofree char *unlike = ls_own_runs_unlike (&runs, &other);
  LS_CHECK_STR (unlike, "is on GPUs of architecture blackwell");
  g_array_unref (runs.traits);
}

/* Of errors drawn alike the interval of n runs holds the next one as often as it says: exactly k / (n + 1)
 * with the k-th largest |e|. Here, of 20,000 draws, within 1 % (three standard deviations). */
static void
it_holds_what_it_says (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  static const double holds[] = { [4] = 4.0 / 5, [6] = 6.0 / 7, [9] = 8.0 / 10 };
  for (guint n = 4; n <= 9; n++) {
    double errors[10];
    guint n_held = 0;
    for (guint draw = 0; draw < 20000; draw++) {
      LsFittedRuns runs = { 0 };
      for (guint i = 0; i <= n; i++)
        errors[i] = pow (g_rand_double_range (rand, -1, 1), 3);
      ls_own_runs_set_range (errors, each, n, &runs);
      n_held += runs.low <= exp (errors[n]) && exp (errors[n]) <= runs.high;
    }
    LS_CHECK_DOUBLE (n_held / 20000.0, >, LS_INTERVAL_LEVEL - 0.01);
    LS_CHECK (holds[n] <= 0 || fabs (n_held / 20000.0 - holds[n]) < 0.01);
  }
}

/* Runs that the fit meets exactly have a range of no width: another job's is wider, and not by a factor. */
static void
no_error_is_no_factor (void)
{
  static const double none[] = { 0, 0, 0, 0 };
  LsFittedRuns runs = runs_of (none, 4);
  LsIntervalJob job = job_like_them ();
  job.traits.figure[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS] = 128;
  LsInterval i = published ();
  ls_own_runs_interval (&runs, &job, &i);
  g_autofree char *label = ls_interval_label (&i);
  LS_CHECK (strstr (label, "one at a time; wider than for a job like these, by what is added") != NULL);
  LS_CHECK_NEAR (log (i.high / i.low), log (1.1 / 0.9), 1e-12);
  ls_interval_clear (&i);
  g_array_unref (runs.traits);
}

/* Pins what is said of logged numbers: that they agree where they were made from the job, each known way of
 * counting FLOPs where it was used, and another batch or sequence where tokens differ. */

#define GIB (UINT64_C (1) << 30)

static const LsModel model = {
  .name = (char *) "m",
  .n_layers = 32,
  .hidden = 4096,
  .n_heads = 32,
  .n_kv_heads = 32,
  .head_dim = 128,
  .ffn = 16384,
  .vocab = 51200,
  .seq = 2048,
};

static LsStrategy
strategy (void)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.tp = 1, s.dp = 8, s.global_batch = 64, s.seq = 2048;
  return s;
}

static double
flops (const LsStrategy *s, bool is_causal)
{
  return ls_model_flops (&model, ls_model_padded_vocab (&model, s->use.vocab_multiple, s->tp), s->seq,
                         s->global_batch, is_causal);
}

static LsReport
report (const LsStrategy *s)
{
  return (LsReport) {
    .step_time_s = 10,
    .mfu_all_pairs = 0.4,
    .hfu_all_pairs = 0.5,
    .n_ranks = 8,
    .chip = "GPU",
    .n_params = 6000000000,
    .n_active_params = 6000000000,
    .needed_bytes = 40 * GIB,
    .peak_bytes = 40 * GIB,
    .context_bytes = 2 * GIB,
    .at_peak
    = { [LS_MEM_GRADIENTS] = 10 * GIB, [LS_MEM_OPTIMIZER] = 16 * GIB, [LS_MEM_ACTIVATIONS] = 8 * GIB },
  };
}

/* What is said, all together. */
static char *
said (const LsMeasured *m)
{
  g_autofree LsStrategy *s = g_new (LsStrategy, 1);
  *s = strategy ();
  LsReport r = report (s);
  g_autoptr (GPtrArray) words = ls_measured_explain (m, &r, &model, s);
  g_ptr_array_add (words, NULL);
  return g_strjoinv ("\n", (char **) words->pdata);
}

static void
numbers_of_the_job_agree (void)
{
  LsStrategy s = strategy ();
  const LsMeasured m = {
    .step_s = 12,
    .flops_per_gpu = flops (&s, false) / 8 / 12,
    .tokens_per_s = 64 * 2048 / 12.0,
    .memory_bytes = 40.0 * GIB,
  };
  g_autofree char *words = said (&m);
  LS_CHECK (strstr (words, "TFLOP/s: agree with the time and this job (+0.0 %)") != NULL);
  LS_CHECK (strstr (words, "tokens/s: agree with the time and this job's 1.311e+05 tokens a step (+0.0 %)")
            != NULL);
  LS_CHECK (strstr (words, "memory: agrees with the 40.00 GiB predicted (+0.0 %)") != NULL);
}

static void
check_way (double step_flops, const char *way)
{
  const LsMeasured m = { .step_s = 12, .flops_per_gpu = step_flops / 8 / 12 };
  g_autofree char *words = said (&m);
  ls_check_impl (strstr (words, way) != NULL, __FILE__, __LINE__, "%s: %s", way, words);
}

static void
each_way_to_count_is_named (void)
{
  LsStrategy s = strategy ();
  double whole = flops (&s, false), tokens = 64.0 * 2048;
  check_way (flops (&s, true), "if the log counts with the causal half of attention");
  check_way (whole * 0.5 / 0.4, "if the log counts with what is computed again");
  check_way (8 * 6e9 * tokens, "as 8 FLOPs a parameter and token");
  check_way (3 * whole, "which no known way to count explains");
}

static void
another_batch_is_named_with_its_error (void)
{
  const LsMeasured m = { .step_s = 12, .tokens_per_s_per_gpu = 2 * 64 * 2048 / 12.0 / 8 };
  g_autofree char *words = said (&m);
  LS_CHECK (strstr (words, "another batch (128 sequences of 2048)") != NULL);
  LS_CHECK (strstr (words, "this job would take 6 s, and the error would be +66.7 %") != NULL);
}

static void
memory_names_what_would_explain_it (void)
{
  LsMeasured m = { .step_s = 12, .memory_bytes = 50.0 * GIB };
  g_autofree char *more = said (&m);
  LS_CHECK (
      strstr (more, "10.00 GiB more than the 40.00 GiB predicted; would be explained by gradients in fp32")
      != NULL);
  m.memory_bytes = 42.0 * GIB;
  g_autofree char *context = said (&m);
  LS_CHECK (strstr (context, "the CUDA context, which nvidia-smi counts") != NULL);
  m.memory_bytes = 70.0 * GIB;
  g_autofree char *unknown = said (&m);
  LS_CHECK (strstr (unknown, "30.00 GiB more") != NULL && strstr (unknown, "explained") == NULL);
}

LS_TEST_SUITE (LS_TEST (the_worked_example_holds), LS_TEST (an_outlier_of_nine_is_left_aside),
               LS_TEST (three_runs_are_too_few), LS_TEST (repeats_are_one_run),
               LS_TEST (unlike_jobs_are_told), LS_TEST (no_error_is_no_factor),
               LS_TEST (it_holds_what_it_says), LS_TEST (numbers_of_the_job_agree),
               LS_TEST (each_way_to_count_is_named), LS_TEST (another_batch_is_named_with_its_error),
               LS_TEST (memory_names_what_would_explain_it))
