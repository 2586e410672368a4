/* Pins: what a configuration holds at least, by a closed bound or by the order of its program, is never above
 * what a simulation says; the closed bound is most of it where what layers keep is most of a rank's memory,
 * whatever runs again. Of it nothing is to be timed. */
#include "ls_test.h"

#include <inttypes.h>

#include "job/knobs.h"
#include "small_sweep.h"

static uint64_t
least_in_order (const LsSweepRun *x, const LsJobResult *r)
{
  LsMemoryInput in = ls_job_result_memory_input (r, x->hardware, &x->options.memory);
  in.timeline = NULL;
  in.at_least = true;
  g_autoptr (LsMemory) m = ls_memory_new (&in);
  return ls_memory_fullest (m)->needed_bytes;
}

/* Each that is legal holds at least, and no more than 1 / share of, its bound. */
static void
check_memory (LsSweepSpec *spec, double share, guint at_least)
{
  gint stop = 1; /* loaded, but not run */
  spec->stop = &stop;
  g_autoptr (LsSweepRun) x = run (spec);
  g_autoptr (LsBounds) bounds = ls_bounds_new (&x->model, x->hardware);
  guint n = 0;
  LsPoint p = { 0 };
  do {
    LsStrategy s;
    if (!ls_space_is_distinct (&spec->space, &x->model, &spec->job.strategy, &p))
      continue;
    if (!candidate_strategy (x, &p, &s, NULL)) {
      ls_strategy_clear (&s);
      continue;
    }
    uint64_t bound = ls_bound_memory (bounds, &s, candidate_variant (x, &p));
    g_autoptr (LsJobResult) r = ls_job_simulate (&x->model, x->hardware, 0, &s, &x->options, NULL);
    g_autofree char *knobs = ls_knobs_format (&s);
    uint64_t needed = r ? ls_memory_fullest (r->memory)->needed_bytes : 0;
    ls_check_impl (r && bound <= needed && (double) bound >= share * (double) needed, __FILE__, __LINE__,
                   "%s: %" PRIu64 " bytes, but at least %" PRIu64, knobs, needed, bound);
    uint64_t in_order = r ? least_in_order (x, r) : 0;
    ls_check_impl (bound <= in_order && in_order <= needed, __FILE__, __LINE__,
                   "%s: %" PRIu64 " bytes, but at least %" PRIu64 " in order, and %" PRIu64, knobs, needed,
                   in_order, bound);
    n++;
    ls_strategy_clear (&s);
  } while (ls_space_next (&spec->space, &p));
  LS_CHECK_INT (n, >=, at_least);
}

/* Outputs of norms and activations are made again, and what kept them is not; a dense MLP, experts and shared
 * experts as a whole. */
static void
bounds_hold_what_parts_leave (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny:vocab=512", "gpus", "4", "global-batch", "256", "micro-batch", "8", "pp",
             "2", "tp", "2", "attention", "flash,unfused", "recompute", "selective", "recompute-parts",
             "core/norm/norm,activation/core,activation/mlp", "schedule", "gpipe", "zero", "1");
  check_memory (&spec, 0.65, 6);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", "tiny-moe:vocab=512", "gpus", "4", "global-batch", "256", "micro-batch", "8",
             "pp", "2", "ep", "1,2", "tp", "1", "attention", "flash", "recompute", "selective",
             "recompute-parts", "norm,activation/moe/shared/mlp/norm,shared", "schedule", "gpipe", "zero",
             "1");
  check_memory (&spec, 0.7, 6);
  ls_sweep_spec_clear (&spec);
}

/* Queries, keys and values of latent attention are made again. */
static void
bounds_hold_latents (void)
{
  LsSweepSpec spec;
  g_autofree char *model
      = g_build_filename (g_getenv ("LS_DATA_DIR"), "..", "..", "..", "models",
                          "deepseek.set.json#deepseek-v3:layers=6,dense_layers=3,experts=16,vocab=512", NULL);
  SPEC_INIT (&spec, "model", model, "gpus", "8", "global-batch", "64", "micro-batch", "4", "pp", "2", "ep",
             "4", "tp", "1", "attention", "flash", "recompute", "selective", "recompute-parts",
             "mla-up/norm,activation/norm,mla-up", "schedule", "gpipe", "zero", "1", "dp-kind", "megatron");
  check_memory (&spec, 0.7, 3);
  ls_sweep_spec_clear (&spec);
}

/* Where outputs are kept by operator: half of all products, or all. */
static void
bounds_hold_outputs_of_operators (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny:vocab=512", "gpus", "4", "global-batch", "256", "micro-batch", "16", "pp",
             "1,2", "tp", "1", "attention", "flash", "recompute", "selective", "recompute-parts",
             "op/dots/dots-flash", "schedule", "gpipe", "zero", "1,3", "dp-kind", "megatron,fsdp2");
  check_memory (&spec, 0.5, 6);
  ls_sweep_spec_clear (&spec);
  SPEC_INIT (&spec, "model", "tiny:vocab=512,layers=8", "gpus", "2", "global-batch", "256", "micro-batch",
             "8", "pp", "2", "recompute", "full", "recompute-layers", "1,2,4", "schedule", "gpipe", "zero",
             "0");
  check_memory (&spec, 0, 3);
  ls_sweep_spec_clear (&spec);
}

/* What was offloaded comes back when the device comes to it, and the host is ahead by then: of a backward that
 * is split, other micro-batches are gone. */
static void
bounds_leave_out_what_comes_back (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny:layers=16", "gpus", "2", "global-batch", "32", "micro-batch", "2", "seq",
             "4096", "pp", "2", "vpp", "1,2", "tp", "1", "attention", "flash", "recompute", "none,full",
             "schedule", "1f1b,gpipe,zb-h1,zb-h2,zbv,v-half,dualpipe,interleaved-1f1b,interleaved-zb", "zero",
             "0", "dp-kind", "megatron", "offload-activations", "0,1");
  check_memory (&spec, 0, 10);
  ls_sweep_spec_clear (&spec);
}

/* With the layers that take least, the fullest rank holds what is known of it however they lie, or a little
 * more; with others as much, or far more. */
static void
bounds_hold_however_layers_lie (void)
{
  LsSweepSpec spec;
  gint stop = 1; /* loaded, but not run */
  SPEC_INIT (&spec, "model", "tiny-odd", "gpus", "4", "global-batch", "64", "micro-batch", "8", "seq", "8192",
             "pp", "2", "vpp", "1,2", "tp", "1", "ep", "2", "attention", "flash", "recompute", "none,full",
             "schedule", "1f1b,gpipe,interleaved-1f1b", "zero", "0,1", "dp-kind", "megatron",
             "layers-per-chunk", "3,4/4,3/1,6/6,1/5,2/2,5/2,2,2,1/1,2,2,2/1,1,1,4/3,1,2,1");
  spec.stop = &stop;
  LsSweepRun *x = run (&spec);
  LsBounds *bounds = ls_bounds_new (&x->model, x->hardware);
  double nearest = 0;
  guint n = 0;
  LsPoint p = { 0 };
  do {
    LsStrategy s;
    if (!ls_space_is_distinct (&spec.space, &x->model, &spec.job.strategy, &p))
      continue;
    if (!candidate_strategy (x, &p, &s, NULL)) {
      ls_strategy_clear (&s);
      continue;
    }
    uint64_t variant = candidate_variant (x, &p), own = ls_bound_memory (bounds, &s, variant),
             any = ls_bound_memory_of_any_layers (bounds, &s, variant);
    g_autofree char *knobs = ls_knobs_format (&s);
    ls_check_impl (0 < any && any <= own, __FILE__, __LINE__,
                   "%s: at least %" PRIu64 " bytes, but %" PRIu64 " however layers lie", knobs, own, any);
    nearest = MAX (nearest, (double) any / (double) own);
    n++;
    ls_strategy_clear (&s);
  } while (ls_space_next (&spec.space, &p));
  LS_CHECK_INT (n, >, 20);
  LS_CHECK_DOUBLE (nearest, >, 0.7);
  ls_bounds_free (bounds);
  ls_sweep_run_free (x);
  ls_sweep_spec_clear (&spec);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (bounds_hold_what_parts_leave),
                    LS_TEST (bounds_hold_latents), LS_TEST (bounds_hold_however_layers_lie),
                    LS_TEST (bounds_hold_outputs_of_operators), LS_TEST (bounds_leave_out_what_comes_back))
