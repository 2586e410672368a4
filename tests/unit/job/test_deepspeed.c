/* Pins DeepSpeed's ZeRO: bytes on the wire to the byte, buckets, fetching and
 * prefetching with their timelines, memory; and parameter servers. Jobs of the tiny
 * model on one made-up node of 8 GPUs, whose NVLinks carry nothing else: without a gradient norm. */
#include "dp_timeline.h"

#define N     8
#define ONCE  "--persistence-threshold 1 --max-reuse-distance 0 --prefetch-bucket 1 "
#define PLAIN "--gpus 8 --dp-kind deepspeed --grad-norm 0 --fold off "

/* --- bytes on the wire ------------------------------------------------------------ */

/* What GPU 0 sends, in units of the (n - 1)/n Psi of a ring that gathers all. */
static void
check_k (const char *flags, double k)
{
  DpRun r = dp_run (flags, dp_untied);
  if (r.result)
    LS_CHECK_NEAR (dp_bytes_sent (&r), k * (N - 1) / N * 2.0 * (double) dp_n_params (&r), 1e-12);
  dp_clear (&r);
}

static void
a_step_moves_k_times_the_model (void)
{
  check_k (PLAIN "--zero 0 --global-batch 8", 2);
  check_k (PLAIN "--zero 1 --global-batch 8", 2);
  check_k (PLAIN "--zero 2 --global-batch 8", 2);
  check_k (PLAIN ONCE "--zero 3 --global-batch 8", 3);
  /* Small buckets and chunks move the same. */
  check_k (PLAIN "--zero 0 --global-batch 8 --reduce-bucket 3000000", 2);
  check_k (PLAIN "--zero 2 --global-batch 8 --reduce-bucket 3000000 --allgather-bucket 4000000", 2);
  check_k (PLAIN ONCE "--zero 3 --global-batch 8 --reduce-bucket 3000000", 3);
  /* All-reduced, they go both ways before parameters are gathered; stage 3 has no such buckets. */
  check_k (PLAIN "--zero 1 --global-batch 8 --bucket-all-reduce 1", 2 + 1);
  check_k (PLAIN "--zero 2 --global-batch 24 --bucket-all-reduce 1", 3 * 2 + 1);
  check_k (PLAIN ONCE "--zero 3 --global-batch 8 --bucket-all-reduce 1", 3);
}

/* The bf16 optimizer all-reduces fp32, 4 of 2 bytes each way, and gathers 16 bits. */
static void
flat_fp32_gradients_are_all_reduced (void)
{
  check_k (PLAIN "--zero 1 --grad-dtype fp32 --global-batch 8", 2 * 2 + 1);
  check_k (PLAIN "--zero 1 --grad-dtype fp32 --global-batch 24", 2 * 2 + 1);
  DpRun r = dp_run (PLAIN "--zero 1 --grad-dtype fp32 --global-batch 8", dp_untied);
  if (r.result) {
    g_autoptr (GPtrArray) spans = dp_spans (&r);
    guint n = 0;
    for (guint i = 0; i < spans->len; i++)
      n += strcmp (dp_name (&r, spans->pdata[i]), "grad all-reduce") == 0;
    LS_CHECK_INT (n, ==, 1);
  }
  dp_clear (&r);
}

static void
three_micro_batches_reduce_as_their_stage_does (void)
{
  check_k (PLAIN "--zero 1 --global-batch 24", 2);     /* at the boundary             */
  check_k (PLAIN "--zero 2 --global-batch 24", 3 + 1); /* in each, then gather        */
  check_k (PLAIN ONCE "--zero 3 --global-batch 24", 3 * 3);
}

/* Distance 1e9: nothing of a small model is released between forward and backward. */
static void
what_is_reused_soon_is_gathered_once (void)
{
  check_k (PLAIN "--persistence-threshold 1 --zero 3 --global-batch 8", 2);
}

/* Full recomputation visits layers once more; the embedding and the head not. */
static void
recomputation_gathers_once_more (void)
{
  DpRun r = dp_run (PLAIN ONCE "--zero 3 --global-batch 8 --recompute full", dp_untied);
  if (r.result) {
    double outside = 2.0 * 1024 * 50048 + 1024 * 1024 + 2 * 1024; /* words twice, positions, final norm */
    double layers = (double) dp_n_params (&r) - outside;
    LS_CHECK_NEAR (dp_bytes_sent (&r), (N - 1.0) / N * 2 * (3 * outside + 4 * layers), 1e-12);
  }
  dp_clear (&r);
}

/* Reduce-scatter and gather in groups of 4, all-reduce of a quarter over 2. */
static void
groups_shard_inside_and_sum_over_replicas (void)
{
  double psi = 3.0 / 4, sum = 2 * (1.0 / 2) / 4, unit = (N - 1.0) / N;
  check_k (PLAIN "--zero 1@4 --global-batch 8", (2 * psi + sum) / unit);
  check_k (PLAIN "--zero 2@4 --global-batch 8", (2 * psi + sum) / unit);
  check_k (PLAIN ONCE "--zero 3@4 --global-batch 8", (3 * psi + sum) / unit);
  check_k (PLAIN ONCE "--zero 3@4 --global-batch 24",
           (9 * psi + sum) / unit); /* the sum at the boundary only */
}

/* --- memory ---------------------------------------------------------------------- */

/* ZeRO's table (Rajbhandari et al. 2020, figure 1): parameters, gradients and optimizer of 7.5e9
 * parameters on 64 ranks. */
static void
model_states_shrink_as_in_the_paper (void)
{
  static const double gb[] = { 120, 31.4, 16.6, 1.9 };
  for (guint zero = 0; zero < 4; zero++) {
    LsJobSpec spec;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autofree char *stage = g_strdup_printf ("%u", zero);
    const char *const knobs[][2]
        = { { "model", "gpt-7.5b" },    { "cluster", "dgx-a100-80g" }, { "nodes", "8" }, { "zero", stage },
            { "dp-kind", "deepspeed" }, { "global-batch", "64" },      { "steps", "1" } };
    ls_job_spec_init (&spec);
    for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
      LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
    g_autoptr (GError) error = NULL;
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    if (r) {
      const uint64_t *bytes = r->plan->programs[0].static_bytes;
      uint64_t gradients = r->memory->classes[0].category_peak[LS_MEM_GRADIENTS];
      LS_CHECK_NEAR (1e-9 * (double) (bytes[LS_MEM_PARAMETERS] + gradients + bytes[LS_MEM_OPTIMIZER]),
                     gb[zero], 0.02);
      LS_CHECK_INT (bytes[LS_MEM_GRADIENTS], ==, zero == 1 ? 0 : gradients); /* stage 1: with the backward */
    }
    ls_job_spec_clear (&spec);
  }
}

/* Both buckets of stage 2 while a backward runs, however small the model. */
static void
stage_2_holds_two_buckets (void)
{
  DpRun r = dp_run (PLAIN "--zero 2 --global-batch 8 --reduce-bucket 3000000", NULL);
  if (r.result)
    LS_CHECK_INT (r.result->memory->classes[0].category_peak[LS_MEM_UNSHARDED], ==, 2 * 2 * 3000000);
  dp_clear (&r);
}

/* A bucket that is as large as all else is at the peak where it is there before the loss is gone. */
static void
buckets_come_before_or_with_the_first_gradient (void)
{
  static const char *const flags[] = { PLAIN "--zero 2 --global-batch 8 --bucket-late 0",
                                       PLAIN "--zero 2 --global-batch 8 --bucket-late 1" };
  uint64_t with_loss[2] = { 0 };
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    DpRun r = dp_run (flags[i], NULL);
    if (LS_CHECK (r.result != NULL)) {
      const LsPlan *plan = r.result->plan;
      const LsSegment *backward = NULL;
      for (uint32_t s = 0; s < plan->n_segments && !backward; s++)
        backward = g_str_has_prefix (plan->segments[s].name, "backward") ? &plan->segments[s] : NULL;
      uint32_t first = 0;
      while (backward && first < backward->n_ops && backward->ops[first].n_buffers == 0)
        first++;
      for (uint32_t k = 0; backward && first < backward->n_ops && k < backward->ops[first].n_buffers; k++)
        with_loss[i] += backward->ops[first].buffers[k].category == LS_MEM_UNSHARDED;
      LS_CHECK_INT (r.result->memory->classes[0].overfreed_bytes, ==, 0);
      LS_CHECK_INT (r.result->memory->classes[0].category_peak[LS_MEM_UNSHARDED], >, 0);
    }
    dp_clear (&r);
  }
  LS_CHECK (with_loss[0] > 0 && with_loss[1] == 0);
}

/* --- buckets, stage 2 --------------------------------------------------------------- */

static guint
count (const DpRun *r, const char *name)
{
  g_autoptr (GPtrArray) spans = dp_spans (r);
  guint n = 0;
  for (guint i = 0; i < spans->len; i++)
    n += strcmp (dp_name (r, spans->pdata[i]), name) == 0;
  return n;
}

/* Before a bucket is averaged and queued, compute waits for the reduction that was queued
 * before: at most one is beside compute. */
static void
check_double_buffering (const DpRun *r)
{
  g_autoptr (GPtrArray) spans = dp_spans (r);
  LsTime reduced = 0;
  for (guint i = 0; i < spans->len; i++) {
    const LsSpan *s = spans->pdata[i];
    const char *name = dp_name (r, s);
    if (strcmp (name, "grad-average") == 0)
      LS_CHECK_INT (s->start, >=, reduced);
    if (strcmp (name, "grad reduce-scatter") == 0)
      reduced = s->end;
  }
}

/* Of the last reduction of the step, which nothing can hide, and of the gather. */
static double
unhidable_s (const DpRun *r)
{
  g_autoptr (GPtrArray) spans = dp_spans (r);
  LsTime last = 0, gathers = 0;
  for (guint i = 0; i < spans->len; i++) {
    const LsSpan *s = spans->pdata[i];
    LsStream stream = (LsStream) dp_op (r, s)->stream;
    last = stream == LS_STREAM_DP ? s->end - s->matched : last;
    gathers += stream == LS_STREAM_GATHER ? s->end - s->matched : 0;
  }
  return ls_time_to_s (last + gathers);
}

/* Wide: a layer's backward takes longer than its bucket, so only what nothing hides is exposed.
 * Narrow: compute waits for reductions. */
#define BUCKETS "--gpus 8 --dp-kind deepspeed --zero 2 --grad-norm 0 --fold off --global-batch 8 "

static void
a_bucket_hides_behind_a_long_backward (void)
{
  DpRun r = dp_run (BUCKETS "--reduce-bucket 70000000", dp_wide);
  if (r.result) {
    check_double_buffering (&r);
    LS_CHECK_DOUBLE (dp_part_s (&r, LS_PART_EXPOSED_DP), <=, 1.05 * unhidable_s (&r));
    dp_check_golden (&r, "deepspeed", "2-wide");
  }
  dp_clear (&r);
}

static void
a_bucket_makes_a_short_backward_wait (void)
{
  DpRun r = dp_run (BUCKETS "--reduce-bucket 4200000", dp_untied);
  if (r.result) {
    check_double_buffering (&r);
    LS_CHECK_DOUBLE (dp_part_s (&r, LS_PART_EXPOSED_DP), >, 1.05 * unhidable_s (&r));
    dp_check_golden (&r, "deepspeed", "2-narrow");
  }
  dp_clear (&r);
}

/* A bucket closes before the gradient that it would overflow with; a larger one is alone. A layer has
 * 3 + 1 + 4 + 4 million weights and 13,312 others: with 4.2e6, from the back, the head alone; fc2 with
 * biases and norms; ... */
static void
buckets_close_before_they_overflow (void)
{
  DpRun r = dp_run (BUCKETS "--reduce-bucket 4200000", dp_untied);
  if (r.result) {
    g_autoptr (GPtrArray) spans = dp_spans (&r);
    guint n = 0, n_large = 0;
    for (guint i = 0; i < spans->len; i++) {
      const LsOp *op = dp_op (&r, spans->pdata[i]);
      if (op->stream != LS_STREAM_DP)
        continue;
      n++;
      n_large += op->bytes > 2 * 4200000;
      LS_CHECK (op->bytes <= 2 * 4200000 || op->bytes == 2 * 1024 * 50048);
    }
    LS_CHECK_INT (n_large, ==, 2); /* the words, on both sides */
    LS_CHECK_INT (n, >=, 4 * 3 + 2);
  }
  dp_clear (&r);
}

/* --- fetching, stage 3 ---------------------------------------------------------------- */

#define FETCH "--gpus 8 --zero 3 --grad-norm 0 --fold off --global-batch 8 --max-reuse-distance 0 "

static void
prefetched_gathers_hide_behind_long_operators (void)
{
  DpRun ahead = dp_run (FETCH, dp_wide), behind = dp_run (FETCH "--max-live-params 1", dp_wide);
  if (ahead.result && behind.result) {
    /* The host goes on while three events are pending and one gather is asked for; they are counted
     * from the begin of a pass, so where the backward begins three of the forward add to that. */
    LS_CHECK_INT (dp_most_pending (&behind, LS_STREAM_GATHER), <=, 3 + 1 + 3);
    LS_CHECK_INT (dp_most_pending (&ahead, LS_STREAM_DP), <=, 3 + 1);
    /* Nothing ahead: every gather is waited for. */
    LS_CHECK_DOUBLE (dp_part_s (&ahead, LS_PART_EXPOSED_DP), <,
                     0.5 * dp_part_s (&behind, LS_PART_EXPOSED_DP));
    dp_check_golden (&ahead, "deepspeed", "3-wide");
  }
  dp_clear (&ahead);
  dp_clear (&behind);
}

static void
short_operators_wait_for_their_gathers (void)
{
  DpRun r = dp_run (FETCH "--prefetch-bucket 4000000 --reduce-bucket 5000000", dp_untied);
  if (r.result) {
    LS_CHECK_INT (dp_most_pending (&r, LS_STREAM_DP), <=, 3 + 1);
    double compute = dp_part_s (&r, LS_PART_FORWARD) + dp_part_s (&r, LS_PART_BACKWARD);
    LS_CHECK_DOUBLE (dp_part_s (&r, LS_PART_EXPOSED_DP), >, 0.2 * compute);
    dp_check_golden (&r, "deepspeed", "3-narrow");
  }
  dp_clear (&r);
}

/* Biases and norms, 13,312 of a layer, and the final norm: gathered together once a step, none of
 * them in between. */
static void
small_parameters_persist (void)
{
  DpRun r = dp_run (
      "--gpus 8 --zero 3 --grad-norm 0 --fold off --global-batch 8 --max-reuse-distance 0 --max-live-params 1",
      dp_untied);
  if (r.result) {
    double small = 4 * 13312.0 + 2 * 1024, large = (double) dp_n_params (&r) - small;
    LS_CHECK_NEAR (dp_bytes_sent (&r), (N - 1.0) / N * 2 * (3 * large + 2 * small), 1e-12);
    LS_CHECK_INT (r.result->plan->programs[0].static_bytes[LS_MEM_UNSHARDED], ==,
                  2 * (uint64_t) small + UINT64_C (1000000000));
  }
  dp_clear (&r);
}

/* --- lists of tensors, stage 3 ----------------------------------------------------------- */

#define LISTS PLAIN ONCE "--zero 3 --global-batch 8 --collective-lists 1 "

/* The same bytes, in more calls. */
static void
lists_move_what_others_move (void)
{
  check_k (LISTS, 3);
  check_k (LISTS "--dp-overlap 0 ", 3);
  check_k (PLAIN ONCE "--zero 3@4 --global-batch 8 --collective-lists 1",
           (3 * 3.0 / 4 + 2 * (1.0 / 2) / 4) * N / (N - 1.0));
}

typedef struct {
  uint64_t n_gathers, n_reductions, n_out, n_in, n_persistent, n_views, n_launches, n_syncs;
  uint64_t longest_gather;
} Lists;

/* Of one step of rank 0: calls, and copies and views with what their ops stand for. */
static Lists
lists_of (const DpRun *r)
{
  Lists n = { 0 };
  const LsPlan *plan = r->result->plan;
  const LsProgram *p = &plan->programs[0];
  for (uint32_t i = p->n_lead; i < p->n_instances; i++) {
    const LsSegment *s = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < s->n_ops; o++) {
      const LsOp *op = &s->ops[o];
      bool is_coll = op->kind == LS_OP_COLLECTIVE;
      n.n_gathers += is_coll && op->stream == LS_STREAM_GATHER;
      n.n_reductions += is_coll && op->stream == LS_STREAM_DP;
      if (is_coll && op->stream == LS_STREAM_GATHER)
        n.longest_gather = MAX (n.longest_gather, op->bytes);
      n.n_out += g_strcmp0 (op->name, "parameter-copy-out") == 0 ? op->repeat : 0;
      n.n_in += g_strcmp0 (op->name, "grad-copy-in") == 0 ? op->repeat : 0;
      n.n_persistent += g_strcmp0 (op->name, "persistent-copy-out") == 0 ? op->repeat : 0;
      n.n_views += op->host == LS_HOST_VIEW ? op->repeat : 0;
      n.n_syncs += op->kind == LS_OP_HOST_SYNC && op->host == LS_HOST_SYNC;
    }
  }
  return n;
}

/* For each rank a copy out of a gather and one into a reduction; a view for each copy out, two for
 * each copy in. 4 layers of 12 parameters, words, positions, 2 of the last norm, head: 52, each gathered
 * twice and reduced once, however small. */
static void
lists_are_copied_once_for_each_rank (void)
{
  DpRun r = dp_run (LISTS, dp_untied);
  if (r.result) {
    Lists n = lists_of (&r);
    LS_CHECK_INT (n.n_gathers, ==, 2 * 53);
    LS_CHECK_INT (n.n_reductions, ==, 53);
    LS_CHECK_INT (n.n_out, ==, N * n.n_gathers);
    LS_CHECK_INT (n.n_in, ==, N * n.n_reductions);
    LS_CHECK_INT (n.n_views, ==, n.n_out + 2 * n.n_in);
    LS_CHECK_INT (n.n_persistent, ==, 0);
    LS_CHECK_INT (n.longest_gather, ==, 2 * 1024 * 50048); /* nothing is gathered together */
    LS_CHECK_INT (n.n_syncs, >=, 2 * n.n_gathers);         /* before and behind each of them */
  }
  dp_clear (&r);
}

/* 34 persistent parameters are gathered in one call; each is then copied from each rank's part. */
static void
persistent_parameters_are_copied_part_by_part (void)
{
  DpRun r = dp_run (PLAIN "--zero 3 --global-batch 8 --collective-lists 1 --max-reuse-distance 0", dp_untied);
  if (r.result) {
    Lists n = lists_of (&r);
    LS_CHECK_INT (n.n_persistent, ==, N * (4 * 8 + 2));
    LS_CHECK_INT (n.n_views, ==, n.n_out + 2 * n.n_in + 3 * n.n_persistent);
    LS_CHECK_INT (n.n_out, ==, N * n.n_gathers);
  }
  dp_clear (&r);
}

/* The host waits for the device before each gather: on a small model nothing hides what it does. */
static void
lists_take_the_time_of_the_host (void)
{
  DpRun r = dp_run (LISTS "--host-launch 0us --host-comm 0us --host-sync 0us --host-view 0us", dp_untied),
        views
      = dp_run (LISTS "--host-launch 0us --host-comm 0us --host-sync 0us --host-view 100us", dp_untied);
  if (r.result && views.result) {
    double seconds = ls_time_to_s (views.result->timeline->window_end - views.result->timeline->window_start)
        - ls_time_to_s (r.result->timeline->window_end - r.result->timeline->window_start);
    double gathers = 100e-6 * (double) lists_of (&r).n_out; /* a view each; those of reductions may hide */
    LS_CHECK_DOUBLE (seconds, >=, 0.9 * gathers);
    LS_CHECK_DOUBLE (seconds, <=, 100e-6 * (double) lists_of (&r).n_views);
  }
  dp_clear (&r);
  dp_clear (&views);
}

/* Each module with weights is visited in the forward and in the backward, and its tensors, biases too, are
 * gathered for both: of a layer two norms, Q, K, V, three other products, and two
 * sums that add a bias; of the ends words, positions, a
 * norm and the head. */
static void
hooks_call_python (void)
{
  LsPlan *plan
      = dp_plan (PLAIN ONCE "--zero 3 --global-batch 8 --hook-calls 3 --gather-calls 100", dp_untied);
  uint64_t n = 0;
  for (uint32_t s = 0; plan && s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops; o++)
      n += plan->segments[s].ops[o].host == LS_HOST_PYTHON ? plan->segments[s].ops[o].repeat : 0;
  LS_CHECK_INT (n, ==, 2 * (3 * (4 * 10 + 4) + 100 * (4 * 14 + 5)));
  ls_plan_free (plan);
}

/* Weights in fp8, in both layouts beside 16 bits, are cut as all parameters are. */
static void
fp8_weights_are_cut_with_the_rest (void)
{
  LsPlan *whole = dp_plan (PLAIN "--zero 0 --global-batch 8 --dtype fp8", dp_untied);
  LsPlan *cut = dp_plan (PLAIN "--zero 3 --global-batch 8 --dtype fp8", dp_untied);
  if (whole && cut) {
    double bytes = (double) whole->programs[0].static_bytes[LS_MEM_PARAMETERS];
    LS_CHECK (bytes > 2.0 * (double) whole->programs[0].n_params);
    LS_CHECK_NEAR ((double) cut->programs[0].static_bytes[LS_MEM_PARAMETERS], bytes / N, 1e-6);
  }
  ls_plan_free (whole);
  ls_plan_free (cut);
}

/* Behind the backward the step is on an fp32 copy of a rank's gradients, which are laid flat first; torch's
 * AdamW holds one, or, up to PyTorch 2.0, two fp32 numbers of each element then, and the 16-bit gradients are
 * gone. In bytes of an element of a rank's part, besides what is there all along. */
static void
a_step_copies_the_gradients (void)
{
  static const struct {
    const char *options;
    uint32_t bytes;
  } rows[] = {
    { "--zero 2 ", 2 + 4 },
    { "--zero 2 --kernels deepspeed-torch-adamw ", 4 + 4 - 2 },
    { "--zero 2 --kernels deepspeed-torch-adamw-2023 ", 4 + 8 - 2 },
    { "--zero 3 --kernels deepspeed-torch-adamw-2023 ", 4 + 8 - 2 },
    { "--zero 2 --grad-dtype fp32 ", 0 },
    { "--zero 0 ", 0 },
    { "--zero 1 ", 0 }, /* 7/8 of 2 bytes that other ranks step on are more than 6 of its own */
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *options = g_strconcat (PLAIN "--global-batch 8 ", rows[i].options, NULL);
    DpRun r = dp_run (options, dp_untied);
    if (r.result)
      ls_check_impl (r.result->memory->classes[0].category_peak[LS_MEM_WORKSPACE]
                         == dp_n_params (&r) / N * rows[i].bytes,
                     __FILE__, __LINE__, "%s: %" G_GUINT64_FORMAT " bytes of %" G_GUINT64_FORMAT " elements",
                     options, r.result->memory->classes[0].category_peak[LS_MEM_WORKSPACE], dp_n_params (&r));
    dp_clear (&r);
  }
}

/* --- parameter servers ---------------------------------------------------------------- */

/* On one host member 0 is the server: it sends each bucket to the 7 others. */
static void
a_server_sends_to_everybody (void)
{
  DpRun r = dp_run ("--gpus 8 --dp-kind ps --grad-norm 0 --fold off --global-batch 8", dp_untied);
  if (r.result) {
    LS_CHECK_NEAR (dp_bytes_sent (&r), (N - 1) * 2.0 * (double) dp_n_params (&r), 1e-12);
    LS_CHECK_INT (count (&r, "grad all-reduce"), >, 4);
  }
  dp_clear (&r);
}

LS_TEST_SUITE (LS_TEST (a_step_moves_k_times_the_model), LS_TEST (flat_fp32_gradients_are_all_reduced),
               LS_TEST (three_micro_batches_reduce_as_their_stage_does),
               LS_TEST (what_is_reused_soon_is_gathered_once), LS_TEST (recomputation_gathers_once_more),
               LS_TEST (groups_shard_inside_and_sum_over_replicas),
               LS_TEST (model_states_shrink_as_in_the_paper), LS_TEST (stage_2_holds_two_buckets),
               LS_TEST (buckets_come_before_or_with_the_first_gradient),
               LS_TEST (a_bucket_hides_behind_a_long_backward),
               LS_TEST (a_bucket_makes_a_short_backward_wait), LS_TEST (buckets_close_before_they_overflow),
               LS_TEST (prefetched_gathers_hide_behind_long_operators),
               LS_TEST (short_operators_wait_for_their_gathers), LS_TEST (small_parameters_persist),
               LS_TEST (lists_move_what_others_move), LS_TEST (lists_are_copied_once_for_each_rank),
               LS_TEST (persistent_parameters_are_copied_part_by_part),
               LS_TEST (lists_take_the_time_of_the_host), LS_TEST (hooks_call_python),
               LS_TEST (a_server_sends_to_everybody), LS_TEST (fp8_weights_are_cut_with_the_rest),
               LS_TEST (a_step_copies_the_gradients))
