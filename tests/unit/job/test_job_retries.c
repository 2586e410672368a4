/* Pins what a job does at the limit of the GPU's memory when its program runs PyTorch's allocator: it is
 * slower than with segments that grow or with memory enough, by what it says; it is the same with and without
 * spans; a job with room is not touched. Limits are made by what the GPU reserves. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "job/job.h"

/* allocator NULL: that of the program, PyTorch. NULL: refused. */
static LsJobResult *
run_with (const char *reserved, const char *allocator, const char *limit_gathers)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  g_autofree char *cluster = g_strdup_printf ("dgx-a100-80g:gpu.reserved=%s", reserved);
  const char *const knobs[][2] = {
    { "software", "pytorch" },       { "model", "gpt-3.6b" },
    { "cluster", cluster },          { "gpus", "8" },
    { "dp-kind", "fsdp1" },          { "attention", "unfused" },
    { "recompute", "full" },         { "micro-batch", "4" },
    { "global-batch", "64" },        { "limit-all-gathers", limit_gathers },
    { "cuda-allocator", allocator },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (size_t i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i][1])
      LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  g_autoptr (GError) error = NULL;
  LsJobResult *r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r;
}

static bool
is_noted (const LsJobResult *r, const char *words)
{
  for (guint i = 0; i < r->notes->len; i++)
    if (strstr (g_ptr_array_index (r->notes, i), words))
      return true;
  return false;
}

/* Gathered without a limit the host fills what is there. */
static void
a_job_at_the_limit_is_slower (void)
{
  g_autoptr (LsJobResult) caching = run_with ("60GiB", NULL, "0"),
                          expandable = run_with ("60GiB", "expandable", "0");
  if (!caching || !expandable)
    return;
  const LsRetriesReport *x = &caching->report.retries;
  LS_CHECK (x->is_known && x->n > 0 && !x->is_out_of_memory && x->reserved_bytes <= x->limit_bytes);
  LS_CHECK (x->freed_bytes > 0 && x->taken_bytes >= x->freed_bytes);
  double lost = caching->report.step_time_s - expandable->report.step_time_s;
  LS_CHECK (lost > 0.01 && fabs (lost - x->lost_s) < 1e-9);
  LS_CHECK (caching->report.fits && !expandable->report.fits); /* a retry waits for what is pending */
  LS_CHECK (is_noted (caching, "num_alloc_retries") && !is_noted (expandable, "num_alloc_retries"));
  LS_CHECK (!expandable->report.retries.is_known);
}

static void
a_job_with_room_is_as_it_was (void)
{
  g_autoptr (LsJobResult) caching = run_with ("20GiB", NULL, "1"), none = run_with ("20GiB", "none", "1");
  if (!caching || !none)
    return;
  LS_CHECK_INT (caching->report.digest, ==, none->report.digest);
  LS_CHECK_INT (caching->retries.n, ==, 0);
  LS_CHECK (!is_noted (caching, "allocator"));
}

static void
a_job_that_finds_no_room_says_so (void)
{
  g_autoptr (LsJobResult) r = run_with ("70GiB", NULL, "0"),
                          expandable = run_with ("70GiB", "expandable", "0");
  if (!r || !expandable)
    return;
  LS_CHECK (r->retries.is_out_of_memory);
  LS_CHECK (!r->report.fits);
  LS_CHECK_INT (r->report.digest, ==, expandable->report.digest); /* nothing is charged */
}

/* All that is alive at once would fit, the segments that hold it do not. */
static void
segments_without_room_do_not_fit (void)
{
  static const char *const knobs[][2] = {
    { "software", "megatron" },
    { "grad-dtype", "bf16" },
    { "model", "qwen3-30b-a3b" },
    { "cluster", "dgx-h100" },
    { "gpus", "16" },
    { "tp", "2" },
    { "sp", "1" },
    { "ep", "8" },
    { "etp", "1" },
    { "global-batch", "32" },
  };
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (size_t i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  if (!r)
    return;
  LS_CHECK (r->retries.is_out_of_memory && is_noted (r, "finds no room"));
  LS_CHECK (!r->report.fits && r->report.needed_bytes > r->report.capacity_bytes);
}

/* What a sweep and validate run. */
static void
a_run_without_spans_takes_as_long (void)
{
  g_autoptr (LsJobResult) with = run_with ("66GiB", NULL, "0");
  if (!with)
    return;
  LsRunOptions options;
  ls_run_options_init (&options);
  options.no_spans = true;
  options.fold = options.coarsen = LS_SHORTCUT_AUTO;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) without
      = ls_job_simulate (&with->model, with->hardware, 0, &with->strategy, &options, &error);
  LS_CHECK_NO_ERROR (error);
  if (!without)
    return;
  LS_CHECK_INT (without->retries.n, ==, with->retries.n);
  LS_CHECK_INT (without->timeline->window_end - without->timeline->window_start, ==,
                with->timeline->window_end - with->timeline->window_start);
}

LS_TEST_SUITE (LS_TEST (a_job_at_the_limit_is_slower), LS_TEST (a_job_with_room_is_as_it_was),
               LS_TEST (a_job_that_finds_no_room_says_so), LS_TEST (segments_without_room_do_not_fit),
               LS_TEST (a_run_without_spans_takes_as_long))
