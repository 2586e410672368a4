/* Pins: a bound is never above what the simulation says, in time and in memory, whatever was bound before,
 * and by a plan the same with calls that were known before, as is what runs; it holds what runs again; what is
 * refused at a glance is refused by the rules; layers of chunks found among others are those found alone. Small
 * jobs of tests/golden/data. */
#include "ls_test.h"

#include <inttypes.h>
#include <string.h>

#include "job/knobs.h"
#include "small_sweep.h"
#include "sweep/sweep_state.h"

/* With calls that others planned it runs as without. */
static void
check_known_calls (const LsSweepRun *x, const LsStrategy *s, const LsTimeline *without)
{
  const LsCluster *cluster = g_ptr_array_index (x->clusters, 0);
  LsRunOptions options = x->options;
  options.no_spans = true;
  LsJobResult *prepared = ls_job_prepare_on (&x->model, x->hardware, cluster, s, NULL);
  g_autoptr (LsJobResult) r = ls_job_simulate_prepared (prepared, x->hardware, &options, NULL);
  g_autofree char *knobs = ls_knobs_format (s);
  ls_check_impl (r && r->timeline->digest == without->digest, __FILE__, __LINE__,
                 "%s: a run depends on what ran before", knobs);
}

/* False: it is refused by the lowering. */
static bool
check_bound (const LsSweepRun *x, LsBounds *bounds, const LsStrategy *s, uint64_t variant)
{
  g_autoptr (LsBounds) fresh = ls_bounds_new (&x->model, x->hardware);
  const LsCluster *cluster = g_ptr_array_index (x->clusters, 0);
  const LsTime bound = ls_bound_step (bounds, s, cluster, variant),
               alone = ls_bound_step (fresh, s, cluster, variant);
  const uint64_t held = ls_bound_memory (bounds, s, variant);
  LsRunOptions options = x->options;
  options.no_spans = true;
  LsJobResult *prepared = ls_job_prepare (&x->model, x->hardware, 0, s, NULL);
  LsTime least = prepared ? ls_job_bound (prepared, x->hardware, &options) : 0;
  options.calls = NULL; /* what others called */
  LS_CHECK (!prepared || ls_job_bound (prepared, x->hardware, &options) == least);
  g_autoptr (LsJobResult) r = ls_job_simulate_prepared (prepared, x->hardware, &options, NULL);
  if (!r)
    return false;
  LsTime step = r->timeline->window_end - r->timeline->window_start;
  uint64_t bytes = ls_memory_fullest (r->memory)->needed_bytes;
  g_autofree char *knobs = ls_knobs_format (s);
  ls_check_impl (0 < bound && bound <= step, __FILE__, __LINE__, "%s: %" PRId64 " ps, but at least %" PRId64,
                 knobs, (int64_t) step, (int64_t) bound);
  ls_check_impl (bound == alone && held == ls_bound_memory (fresh, s, variant), __FILE__, __LINE__,
                 "%s: a bound depends on what was bound before", knobs);
  ls_check_impl (0 < least && least <= step, __FILE__, __LINE__,
                 "%s: %" PRId64 " ps, but at least %" PRId64 " by its plan", knobs, (int64_t) step,
                 (int64_t) least);
  ls_check_impl (held <= bytes, __FILE__, __LINE__, "%s: %" PRIu64 " bytes, but at least %" PRIu64, knobs,
                 bytes, held);
  check_known_calls (x, s, r->timeline);
  return true;
}

/* Found among others, the layers of the chunks are those that are found alone. Moves on to the chunks of
 * *s. */
static bool
balance (const LsSweepRun *x, LsLayouts *shared, LsStrategy *s, uint64_t variant)
{
  const LsCluster *cluster = g_ptr_array_index (x->clusters, 0);
  g_autoptr (LsLayouts) fresh = ls_layouts_new (&x->model, x->hardware, NULL);
  LsStrategy alone;
  ls_strategy_copy (&alone, s);
  bool is_known = ls_layouts_balance (shared, s, cluster, variant);
  LS_CHECK (ls_layouts_balance (fresh, &alone, cluster, variant) == is_known);
  bool is_same = s->layout.layers_are_found == alone.layout.layers_are_found
      && s->layout.n_layers_per_chunk == alone.layout.n_layers_per_chunk
      && (s->layout.n_layers_per_chunk == 0
          || memcmp (s->layout.layers_per_chunk, alone.layout.layers_per_chunk,
                     s->layout.n_layers_per_chunk * sizeof *s->layout.layers_per_chunk)
              == 0);
  if (!is_same) { /* knobs are long to write */
    g_autofree char *is = ls_knobs_format (s), *expected = ls_knobs_format (&alone);
    ls_check_impl (false, __FILE__, __LINE__, "%s; alone: %s", is, expected);
  }
  ls_strategy_clear (&alone);
  return is_known;
}

/* GPUs whose files grant a share of their memory's bandwidth, of which kernels that were measured get more. */
static void
slow_memory (LsSweepRun *x, double hbm_efficiency)
{
  g_autoptr (GError) error = NULL;
  x->hardware->spec.gpu.hbm_efficiency = hbm_efficiency;
  g_ptr_array_set_size (x->clusters, 0);
  LS_CHECK (sweep_build_clusters (x, &error));
  LS_CHECK_NO_ERROR (error);
}

/* One of `every` that is legal, or of eight times as many; with LS_CASES so many times as often. hbm_efficiency 0: of
 * the file. */
static void
check_bounds_with_memory (LsSweepSpec *spec, guint every, double hbm_efficiency)
{
  bool is_full = ls_test_has_all_cases () || g_getenv ("LS_CASES");
  every = is_full ? MAX (1, every / MAX (1, ls_test_cases (1, 1))) : 8 * every + 1;
  gint stop = 1; /* loaded, but not run: configurations are gone through here */
  spec->stop = &stop;
  g_autoptr (LsSweepRun) x = run (spec);
  if (hbm_efficiency > 0)
    slow_memory (x, hbm_efficiency);
  g_autoptr (LsBounds) bounds = ls_bounds_new (&x->model, x->hardware);
  g_autoptr (LsLayouts) layouts = ls_layouts_new (&x->model, x->hardware, NULL);
  const LsStrategy *base = &spec->job.strategy;
  guint n = 0, n_checked = 0;
  LsPoint p = { 0 };
  do {
    LsStrategy s;
    if (!ls_space_is_distinct (&spec->space, &x->model, base, &p))
      continue;
    bool is_legal = candidate_strategy (x, &p, &s, NULL);
    is_legal = is_legal && balance (x, layouts, &s, candidate_variant (x, &p));
    LS_CHECK (!is_legal || !ls_space_is_refused (&spec->space, &x->model, base, &p));
    if (is_legal && n++ % every == 0)
      n_checked += check_bound (x, bounds, &s, candidate_variant (x, &p));
    ls_strategy_clear (&s);
  } while (ls_space_next (&spec->space, &p));
  LS_CHECK_INT (n_checked, >, is_full ? 10 : 1);
}

static void
check_bounds (LsSweepSpec *spec, guint every)
{
  check_bounds_with_memory (spec, every, 0);
}

/* A run lets calls have the bandwidth of the fastest kernel where the file grants less: calls that are held to
 * the file are no bound. */
static void
bounds_leave_the_file_s_memory_bandwidth_out (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "tp", "2,4", "sp", "0,1");
  check_bounds_with_memory (&spec, 1, 0.01);
  ls_sweep_spec_clear (&spec);
}

static void
bounds_are_below_dense_jobs (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny", "gpus", "8", "global-batch", "16", "micro-batch", "1,2");
  check_bounds (&spec, 41);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", "tiny", "gpus", "8", "global-batch", "16", "micro-batch", "1", "pp", "2,4",
             "schedule", "gpipe,zb-h2,zbv,dualpipe,chimera,hanayo,interleaved-zb", "recompute", "none",
             "zero", "1");
  check_bounds (&spec, 2);
  ls_sweep_spec_clear (&spec);
}

/* Where nobody waits for the norm, stages are not all in one step: what a rank does last may lie beside the
 * first of the next. */
static void
bounds_are_below_jobs_without_a_barrier (void)
{
  static const char *const knobs[][2] = { { "grad-norm", "0" }, { "post-validation", "1" } };
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++) {
    LsSweepSpec spec;
    SPEC_INIT (&spec, "model", "tiny-moe", "gpus", "4", "global-batch", "16", "micro-batch", "4", "pp", "4",
               "recompute", "none,full", "schedule", "1f1b,gpipe,zb-h1,zb-h2,zb-1p,zb-2p,zbv,hanayo",
               knobs[i][0], knobs[i][1]);
    check_bounds (&spec, 1);
    ls_sweep_spec_clear (&spec);
  }
  LsSweepSpec spec; /* no flush at all; long sequences, as each micro-batch has an optimizer of its own */
  SPEC_INIT (&spec, "model", "tiny-moe", "gpus", "4", "global-batch", "16", "micro-batch", "1,2,4", "pp",
             "2,4", "seq", "4096", "schedule", "pipedream", "recompute", "none,full");
  check_bounds (&spec, 1);
  ls_sweep_spec_clear (&spec);
}

/* FSDP2 with a pipeline reduces all gradients of the first stage behind its last backward. With short
 * sequences, most layers on that stage and gradients twice as wide as parameters this tail is most of a step:
 * a bound that counts it twice is above it. */
static void
bounds_are_below_jobs_that_end_in_a_reduction (void)
{
  LsSweepSpec spec;
  g_autofree char *model = g_build_filename (g_getenv ("LS_DATA_DIR"), "..", "..", "..", "models",
                                             "llama3.1.set.json#llama3.1-8b", NULL); /* untied */
  SPEC_INIT (&spec, "model", model, "gpus", "8", "global-batch", "8", "micro-batch", "1", "pp", "2", "tp",
             "1", "cp", "1", "seq", "128", "dp-kind", "fsdp2", "zero", "2,3", "grad-sync", "last",
             "grad-dtype", "bf16,fp32", "grad-norm", "0,1", "schedule", "1f1b,gpipe", "recompute", "none",
             "layers-per-chunk", "31,1/16,16");
  check_bounds (&spec, 1);
  ls_sweep_spec_clear (&spec);
}

/* Short sequences, so that gathering the units of FSDP2, adding and copying their gradients is most of a
 * step. */
static void
bounds_are_below_jobs_that_gather_units (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny", "gpus", "8", "global-batch", "16", "micro-batch", "1,4", "pp", "1,2,4",
             "tp", "1,2", "cp", "1,2", "vpp", "1,2", "seq", "128,2048", "dp-kind", "fsdp2", "zero", "2,3",
             "grad-sync", "each,last", "grad-dtype", "bf16,fp32", "grad-norm", "0,1", "recompute",
             "none,full", "reshard-after-forward", "auto,0,1", "layers-per-unit", "1,2", "schedule",
             "1f1b,interleaved-1f1b,gpipe,zb-h1,zbv,looped-bfs", "host-launch", "0us");
  check_bounds (&spec, 61);
  ls_sweep_spec_clear (&spec);
}

/* DeepSpeed's ZeRO-3 on short sequences, where gathers and reductions are most of a step: with parameters that
 * go as soon as they are used, some that stay, and all that stay. */
static void
bounds_are_below_jobs_that_gather_each_parameter (void)
{
  static const char *const models[] = { "tiny", "tiny-moe" };
  for (guint i = 0; i < G_N_ELEMENTS (models); i++) {
    LsSweepSpec spec;
    SPEC_INIT (&spec, "model", models[i], "gpus", "8", "global-batch", "16", "micro-batch", "1,4", "pp", "1",
               "tp", "1,2", "seq", "128,2048", "dp-kind", "deepspeed", "zero", "3", "recompute", "none,full",
               "max-live-params", "1,5000000,1000000000", "max-reuse-distance", "1,3000000,1000000000",
               "host-launch", "0us", "prefetch-bucket", "1,4000000", "persistence-threshold", "1,100000");
    check_bounds (&spec, 17);
    ls_sweep_spec_clear (&spec);
  }
}

/* The stages of Megatron-LM wait for parameters and reductions that nothing is beside, on short sequences most
 * of a step: with experts, whose parts of a stage are apart, and weight gradients that come last. */
static void
bounds_are_below_jobs_of_stages_that_wait_for_parameters (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny-moe", "gpus", "8", "global-batch", "8,32", "micro-batch", "1", "pp",
             "1,2,4", "tp", "1,2", "etp", "1,2", "ep", "1,2", "seq", "128", "dp-kind", "megatron", "zero",
             "0,1", "dp-overlap", "0,1", "gather-overlap", "0,1", "grad-dtype", "bf16,fp32", "grad-norm",
             "0,1", "schedule", "none,1f1b,zb-h1,gpipe", "recompute", "none", "host-launch", "0us");
  check_bounds (&spec, 17);
  ls_sweep_spec_clear (&spec);
}

/* What a bound remembers must not be of another value of a knob that is listed. */
static void
bounds_are_below_jobs_of_listed_knobs (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "grad-dtype", "bf16,fp32", "attention", "flash,unfused", "p2p",
             "batched,overlapped", "dtype", "bf16,fp16", "recompute", "none,selective", "recompute-parts",
             "core/norm,activation", "tp-async", "0,1", "seq", "512,1024");
  LS_CHECK (spec.space.values[ls_space_axis ("recompute-parts")]->len == 2);
  check_bounds (&spec, 397);
  ls_sweep_spec_clear (&spec);
}

/* A pipeline that is flushed several times a step is filled as often, and its units may be gathered as often. */
static void
bounds_are_below_jobs_that_flush (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "pp", "1,2,4", "pipeline-batch", "0,4,8", "dp-kind", "ddp,fsdp2,megatron", "zero",
             "0,1,3", "schedule", "none,1f1b,gpipe,zb-h1,interleaved-1f1b", "recompute", "none,full",
             "host-launch", "0us");
  check_bounds (&spec, 7);
  ls_sweep_spec_clear (&spec);
}

/* Which ranks are neighbours, and on which GPUs, decides what calls take at least; layers of chunks are
 * balanced by it. */
static void
bounds_are_below_jobs_in_any_order (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "tp", "2,4", "pp", "1,2,4", "recompute", "none", "rank-order",
             "tp-dp-pp,tp-pp-dp,dp-tp-pp,pp-dp-tp", "placement", "block,cyclic,random:1,random-gpus:2");
  check_bounds (&spec, 31);
  ls_sweep_spec_clear (&spec);
}

/* Kernels as launched: more of them, other bytes kept, once again where the forward runs again; and next to
 * none, so that a bound by those that are built in is above the step. */
static void
bounds_are_below_jobs_of_listed_kernels (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "kernels", "built-in,eager,fused", "recompute", "none,selective,full", "dp-kind",
             "megatron,fsdp1,fsdp2", "recompute-parts", "core/op", "zero", "1,3", "grad-norm", "0,1");
  check_bounds (&spec, 29);
  ls_sweep_spec_clear (&spec);
}

/* Outputs that are kept by operator: half of the products, or none, run again, with the collectives before
 * them. */
static void
bounds_are_below_jobs_that_keep_outputs (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "recompute", "selective", "recompute-parts", "op/dots/dots-flash", "attention",
             "flash,unfused", "tp", "1,2", "sp", "0,1", "tp-overlap", "0,1", "cp", "1,2", "dp-kind",
             "megatron,fsdp2,xla-fsdp", "zero", "1,3", "schedule", "1f1b,zb-h1");
  check_bounds (&spec, 5);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, SMALL, "model", "tiny-moe", "recompute", "selective", "recompute-parts", "op",
             "attention", "flash", "tp", "1,2", "sp", "0,1", "ep", "1,2,4", "etp", "1", "dp-kind",
             "megatron,fsdp2", "zero", "1,3");
  check_bounds (&spec, 3);
  ls_sweep_spec_clear (&spec);
}

/* On GPUs whose host takes no time nearly all of a step is in its bound, what runs again and what is waited for
 * of tp: with parts left out of it a sweep simulates what cannot win. */
static void
bounds_hold_what_runs_again (void)
{
  static const char *const jobs[][4] = {
    { "1", "selective", "op", "0" },   { "1", "selective", "dots", "0" }, { "1", "selective", "core", "0" },
    { "4", "selective", "core", "0" }, { "4", "none", "core", "1" },      { "4", "full", "core", "1" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    LsSweepSpec spec;
    gint stop = 1; /* loaded, but not run */
    SPEC_INIT (&spec, SMALL, "gpus", jobs[i][0], "tp", jobs[i][0], "sp", jobs[i][3], "pp", "1", "vpp", "1",
               "zero", "0", "seq", "8192", "schedule", "none", "attention", "flash", "host-launch", "0us",
               "recompute", jobs[i][1], "recompute-parts", jobs[i][2]);
    spec.stop = &stop;
    LsSweepRun *x = run (&spec);
    LsBounds *bounds = ls_bounds_new (&x->model, x->hardware);
    LsStrategy s;
    LsPoint p = { 0 };
    LS_CHECK (candidate_strategy (x, &p, &s, NULL));
    LsTime bound = ls_bound_step (bounds, &s, g_ptr_array_index (x->clusters, 0), 0);
    g_autoptr (LsJobResult) r = ls_job_simulate (&x->model, x->hardware, 0, &s, &x->options, NULL);
    double share = r ? ls_time_to_s (bound) / r->report.step_time_s : 0;
    ls_check_impl (share > 0.95 && share <= 1, __FILE__, __LINE__, "job %u: %g of a step", i, share);
    ls_strategy_clear (&s);
    ls_bounds_free (bounds);
    ls_sweep_run_free (x);
    ls_sweep_spec_clear (&spec);
  }
}

/* Attention over a sequence that is cut over ranks, most of a step of a long one, is in the bound, and no more of
 * it than runs: each way to exchange keys and values, with and without equal work for all ranks. */
static void
bounds_hold_attention_that_is_cut_over_ranks (void)
{
  static const char *const ways[][3] = {
    { "ring", "te", "1" },
    { "ring", "te", "0" },
    { "all-gather", "te", "1" },
    { "ulysses", "te", "1" },
    { "all-gather", "te", "0" },
    { "ring", "pytorch", "1" },
    { "all-gather", "pytorch-compile", "1" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    LsSweepSpec spec;
    gint stop = 1; /* loaded, but not run */
    SPEC_INIT (&spec, SMALL, "tp", "1", "cp", "4", "pp", "1", "vpp", "1", "zero", "0", "global-batch", "1",
               "micro-batch", "1", "seq", "131072", "schedule", "none", "attention", "flash", "host-launch",
               "0us", "cp-kind", ways[i][0], "cp-steps", ways[i][1], "cp-balance", ways[i][2]);
    spec.stop = &stop;
    LsSweepRun *x = run (&spec);
    LsBounds *bounds = ls_bounds_new (&x->model, x->hardware);
    LsStrategy s;
    LsPoint p = { 0 };
    bool is_even = *ways[i][2] == '1'; /* else the rank with index 0 has least to do */
    LS_CHECK (candidate_strategy (x, &p, &s, NULL));
    LsTime bound = ls_bound_step (bounds, &s, g_ptr_array_index (x->clusters, 0), 0);
    g_autoptr (LsJobResult) r = ls_job_simulate (&x->model, x->hardware, 0, &s, &x->options, NULL);
    double share = r ? ls_time_to_s (bound) / r->report.step_time_s : 0;
    ls_check_impl (r && share > (is_even ? 0.8 : 0.1) && share <= 1, __FILE__, __LINE__,
                   "%s %s %s: %g of a step", ways[i][0], ways[i][1], ways[i][2], share);
    ls_strategy_clear (&s);
    ls_bounds_free (bounds);
    ls_sweep_run_free (x);
    ls_sweep_spec_clear (&spec);
  }
}

/* Adapters on weights that do not learn, in 16 and in 4 bits. */
static void
bounds_are_below_jobs_with_adapters (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "lora-rank", "0,8", "lora-modules", "all-linear/q,v", "qlora", "0,1", "dp-kind",
             "megatron,deepspeed,fsdp2", "zero", "1,3", "recompute", "none,full", "recompute-method",
             "uniform,block", "recompute-layers", "1,2");
  check_bounds (&spec, 23);
  ls_sweep_spec_clear (&spec);
}

/* Documents in long sequences, of which whole ones would take far longer: micro-batches differ. Layers are
 * balanced by the mean of a step, which is another with another batch. */
static void
bounds_are_below_jobs_with_documents (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "attention", "flash", "seq", "16384", "lengths",
             "whole,uniform:1:200,lognormal:60:2", "lengths-draw", "each,mean", "cp", "1,2", "cp-kind",
             "ring,all-gather", "lengths-balance", "none,sorted");
  check_bounds (&spec, 47);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", "tiny-odd", "gpus", "8", "global-batch", "8,16,32,64", "micro-batch", "1", "pp",
             "4", "seq", "65536", "attention", "flash", "lengths", "lognormal:200:2.5", "lengths-seed",
             "1,2,3,4,5,6", "schedule", "1f1b", "recompute", "none", "zero", "1", "layers-per-chunk",
             "balanced");
  check_bounds (&spec, 7);
  ls_sweep_spec_clear (&spec);
}

/* Other optimizers keep less, and step in less time, than Adam. */
static void
bounds_are_below_jobs_of_other_optimizers (void)
{
  LsSweepSpec spec;
  g_autofree char *set = g_build_filename (g_getenv ("LS_DATA_DIR"), "..", "..", "..", "strategies",
                                           "optimizers", "optimizers.set.json", NULL);
  g_autofree char *kinds = g_strdup_printf ("adam,%1$s#sgd,%1$s#adamw-8bit,%1$s#muon,%1$s#adafactor", set);
  SPEC_INIT (&spec, SMALL, "optimizer", kinds, "zero", "0,1,3", "dp-kind", "megatron,ddp,fsdp2", "grad-norm",
             "0,1");
  check_bounds (&spec, 29);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, SMALL, "zero", "1", "dp-kind", "megatron", "master", "fp32,fp16,remainder",
             "moment-dtype", "fp32,bf16,fp8", "grad-norm", "0,1");
  check_bounds (&spec, 17);
  ls_sweep_spec_clear (&spec);
}

static void
bounds_are_below_jobs_with_experts (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny-moe", "gpus", "8", "global-batch", "16", "micro-batch", "1,2", "cp", "1,2",
             "expert-load", "even/zipf:1.5");
  check_bounds (&spec, 59);
  ls_sweep_spec_clear (&spec);
}

/* Passes side by side hide what one alone waits for, and weight gradients come behind what others wait for.
 * */
static void
bounds_are_below_passes_side_by_side (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny-moe", "gpus", "8", "global-batch", "32", "micro-batch", "1", "ep", "2,4",
             "vpp", "1,2", "ep-overlap", "0,1", "delay-wgrad", "0,1", "schedule",
             "none,interleaved-1f1b,dualpipe,dualpipev", "fp8-act-store", "0,1");
  check_bounds (&spec, 7);
  ls_sweep_spec_clear (&spec);
}

/* Shared experts beside the exchange, parts that run again. */
static void
bounds_are_below_shared_experts_beside (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny-moe", "gpus", "8", "global-batch", "32", "micro-batch", "1", "ep", "2,4",
             "tp", "1,2", "sp", "0,1", "etp", "1", "shared-overlap", "0,1", "dispatcher", "all-to-all,deepep",
             "recompute", "none,selective", "recompute-parts", "moe/shared/moe,mlp/norm,shared");
  check_bounds (&spec, 5);
  ls_sweep_spec_clear (&spec);
}

/* tiny-odd has 7 layers, of which the first has no experts: on 2 and 4 stages, with several chunks each, and
 * as given. */
static void
bounds_are_below_jobs_of_uneven_chunks (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny-odd", "gpus", "8", "global-batch", "32", "micro-batch", "1,2", "pp", "2,4",
             "vpp", "1,2,3", "schedule", "1f1b,interleaved-1f1b,zb-h1,gpipe,zb-h2", "layers-per-chunk",
             "auto/3,1,2,1/0,4,3,0/0,7/6,1/0,1x5,2,0");
  check_bounds (&spec, 23);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", "tiny-odd", "gpus", "8", "global-batch", "16", "micro-batch", "1", "pp", "2,4",
             "recompute", "none,full", "schedule", "1f1b,zbv,dualpipe,chimera,hanayo,dualpipev,looped-bfs",
             "zero", "1", "layers-per-chunk", "balanced");
  check_bounds (&spec, 5);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", "tiny-odd", "gpus", "4", "global-batch", "16", "micro-batch", "1,4", "seq",
             "128,8192", "pp", "2,4", "recompute", "none,full", "schedule", "1f1b", "zero", "1",
             "layers-per-chunk", "balanced");
  check_bounds (&spec, 3);
  ls_sweep_spec_clear (&spec);
}

/* XLA's FSDP, collectives on a torus, and messages on it: a shipped cluster. */
static void
bounds_are_below_jobs_on_a_torus (void)
{
  LsSweepSpec spec;
  g_autofree char *data = g_strdup (g_getenv ("LS_DATA_DIR")),
                  *root = g_build_filename (data, "..", "..", "..", NULL);
  g_autofree char *tiny = g_build_filename (data, "models", "tiny.json", NULL),
                  *moe = g_build_filename (data, "models", "tiny-moe.json", NULL);
  g_setenv ("LS_DATA_DIR", root, TRUE);
  static const char *const p2p[] = { "batched", "overlapped" };
  for (guint i = 0; i < G_N_ELEMENTS (p2p); i++) {
    SPEC_INIT (&spec, "model", tiny, "cluster", "tpu-v5p", "gpus", "16", "global-batch", "16", "micro-batch",
               "1,2", "pp", "1,2,4", "p2p", p2p[i], "schedule",
               i == 0 ? "1f1b,interleaved-1f1b,zb-h1,gpipe" : "interleaved-1f1b,zb-h1,dualpipe");
    check_bounds (&spec, 23);
    ls_sweep_spec_clear (&spec);
  }
  SPEC_INIT (&spec, "model", moe, "cluster", "tpu-v5p", "gpus", "8", "global-batch", "16", "micro-batch", "1",
             "cp", "1,2", "zero", "0,3", "dp-kind", "auto,xla-fsdp");
  check_bounds (&spec, 31);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", tiny, "cluster", "dgx-h100", "gpus", "8", "global-batch", "16", "micro-batch",
             "2", "attention", "flash", "attention-kernel", "fa1,cudnn,fa3", "tp", "1,2", "pp", "1", "seq",
             "2048");
  check_bounds (&spec, 1); /* times of kernels are of one implementation of attention */
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", tiny, "cluster", "tpu-v5p", "gpus", "8", "global-batch", "16", "micro-batch",
             "1,2", "pp", "1,2", "zero", "1,3", "dp-kind", "megatron,xla-fsdp", "grad-sync", "each,last",
             "recompute", "none", "seq", "128");
  check_bounds (&spec, 1);
  ls_sweep_spec_clear (&spec);
  g_setenv ("LS_DATA_DIR", data, TRUE);
}

LS_TEST_SUITE_WITH (
    ls_test_golden_data, NULL, LS_TEST (bounds_leave_the_file_s_memory_bandwidth_out),
    LS_TEST (bounds_are_below_dense_jobs), LS_TEST (bounds_are_below_jobs_without_a_barrier),
    LS_TEST (bounds_are_below_jobs_with_experts), LS_TEST (bounds_are_below_jobs_of_other_optimizers),
    LS_TEST (bounds_are_below_passes_side_by_side), LS_TEST (bounds_are_below_shared_experts_beside),
    LS_TEST (bounds_are_below_jobs_of_uneven_chunks), LS_TEST (bounds_are_below_jobs_on_a_torus),
    LS_TEST (bounds_are_below_jobs_that_end_in_a_reduction),
    LS_TEST (bounds_are_below_jobs_that_gather_units),
    LS_TEST (bounds_are_below_jobs_that_gather_each_parameter),
    LS_TEST (bounds_are_below_jobs_of_stages_that_wait_for_parameters),
    LS_TEST (bounds_are_below_jobs_of_listed_knobs), LS_TEST (bounds_are_below_jobs_of_listed_kernels),
    LS_TEST (bounds_are_below_jobs_that_flush), LS_TEST (bounds_are_below_jobs_in_any_order),
    LS_TEST (bounds_are_below_jobs_that_keep_outputs), LS_TEST (bounds_hold_what_runs_again),
    LS_TEST (bounds_hold_attention_that_is_cut_over_ranks), LS_TEST (bounds_are_below_jobs_with_adapters),
    LS_TEST (bounds_are_below_jobs_with_documents))
