/* Pins the figures of a report: speed, memory, links, and the formulas of memory beside them. */
#include "ls_test.h"
#include "model_shapes.h"
#include "trace.h"

#include <math.h>
#include <string.h>

#include "analysis/memory_formulas.h"
#include "analysis/report.h"
#include "cluster/index.h"

/* Pins the figures of a report that are not the breakdown: speed, MFU and HFU,
 * memory of the fullest rank, busiest links, provenance of kernel times. */

#define H      1024.0
#define LAYERS 24.0
#define SEQ    2048.0
#define VOCAB  51200.0 /* a multiple of 128: not padded further */
#define BATCH  8.0

static LsModel
small_gpt (void)
{
  return (LsModel) {
    .name = (char *) "gpt",
    .n_layers = LAYERS,
    .hidden = H,
    .n_heads = 16,
    .n_kv_heads = 16,
    .head_dim = 64,
    .ffn = 4096,
    .vocab = VOCAB,
    .seq = SEQ,
    .tied_embeddings = true,
    .linear_bias = true,
  };
}

typedef struct {
  Trace trace;
  LsModel model;
  LsStrategy strategy;
  LsCluster cluster;
  LsClassMemory classes[2];
  LsMemory memory;
  LsProgram programs[2];
  LsKernel kernels[3];
  double resource_bytes[64];
  uint32_t gpu_of_rank[2];
  LsFabric fabric;
  LsTopoIndex index;
} Job;

/* Trunks as they are added, each for itself. */
static const LsFabricKind listed = { .name = "listed" };

static void
job_init (Job *job)
{
  *job = (Job) { .model = small_gpt (), .gpu_of_rank = { 0, 1 } };
  trace_init (&job->trace, 2, 0, 2 * LS_S);
  ls_strategy_init (&job->strategy);
  job->strategy.tp = 1;
  job->strategy.seq = SEQ;
  job->strategy.global_batch = BATCH;
  job->strategy.dtype = LS_DTYPE_BF16;
  job->cluster.spec.gpu.peak_flops[LS_DTYPE_BF16] = 312e12;
  job->cluster.spec.gpu.hbm_bytes = 1000;
  job->cluster.spec.gpu.reserved_bytes = 100;
  job->cluster.spec.gpus_per_node = 2;
  job->cluster.n_gpus = 2;
  job->cluster.seats.per_node = 2;
  job->cluster.spec.n_nodes = 1;
  job->fabric.kind = &listed;
  job->index.fabric = &job->fabric;
  job->cluster.index = &job->index;
  job->cluster.trunks = g_array_new (FALSE, TRUE, sizeof (LsTrunk));

  job->programs[0] = job->programs[1] = job->trace.program;
  job->trace.plan.n_roles = 2;
  job->trace.plan.gpu_of_rank = job->gpu_of_rank;
  job->trace.plan.programs = job->programs;
  job->trace.bindings[1].role = 1;
  job->trace.plan.kernels = job->kernels;
  job->trace.t.first_step = 3 * LS_S;
  job->trace.t.n_steps = 3;
  job->trace.t.digest = 0xfeed;
  job->trace.t.resource_bytes = job->resource_bytes;

  job->classes[0] = (LsClassMemory) { .rank = 0,
                                      .count = 1,
                                      .peak_bytes = 700,
                                      .needed_bytes = 700,
                                      .at_peak = { 300, 400 },
                                      .category_peak = { 300, 500 } };
  job->classes[1] = (LsClassMemory) { .rank = 1,
                                      .role = 1,
                                      .count = 1,
                                      .peak_bytes = 800,
                                      .needed_bytes = 800,
                                      .at_peak = { 200, 600 },
                                      .category_peak = { 250, 650 } };
  job->memory = (LsMemory) { .n_classes = 2, .classes = job->classes };
}

static void
job_add_trunk (Job *job, const char *name, double capacity, double bytes)
{
  LsTrunk trunk = { .name = g_strdup (name), .capacity_bytes_per_s = capacity };
  job->resource_bytes[job->cluster.trunks->len] = bytes;
  g_array_append_val (job->cluster.trunks, trunk);
  job->cluster.n_trunks++;
}

static void
job_report (Job *job, LsReport *r)
{
  static const double share[LS_N_COST_SHARES] = { 1, 2, 5, 4, 2 };
  job->trace.t.n_resources = job->cluster.trunks->len + 2;
  ls_report_init (r, &job->trace.t, &job->memory, &job->model, &job->strategy, &job->cluster, share);
}

static void
job_clear (Job *job)
{
  for (guint i = 0; i < job->cluster.trunks->len; i++)
    g_free (g_array_index (job->cluster.trunks, LsTrunk, i).name);
  g_array_unref (job->cluster.trunks);
  ls_strategy_clear (&job->strategy);
}

/* Narayanan et al. 2021, equation 3, without recomputation: 72 B s L h^2 (1 + s/6h + V/12Lh). */
static double
published_flops (void)
{
  return 72 * BATCH * SEQ * LAYERS * H * H * (1 + SEQ / (6 * H) + VOCAB / (12 * LAYERS * H));
}

static void
mfu_is_the_published_formula_over_the_peak (void)
{
  Job job;
  job_init (&job);
  LsReport r;
  job_report (&job, &r);
  double peak = 312e12 * 2 * 2; /* two ranks, two seconds */
  double attention = 12 * BATCH * SEQ * SEQ * H * LAYERS;
  LS_CHECK_DOUBLE (r.step_time_s, ==, 2.0);
  LS_CHECK_DOUBLE (r.first_step_s, ==, 3.0);
  LS_CHECK_DOUBLE (r.tokens_per_s, ==, 8192.0);
  LS_CHECK_NEAR (r.mfu_all_pairs, published_flops () / peak, 1e-12);
  LS_CHECK_NEAR (r.mfu, (published_flops () - attention / 2) / peak, 1e-12);
  LS_CHECK_DOUBLE (r.hfu, ==, r.mfu); /* nothing recomputed */
  LS_CHECK_INT (r.n_ranks, ==, 2);
  LS_CHECK_INT (r.n_classes, ==, 2);
  LS_CHECK_INT (r.n_steps, ==, 3);
  LS_CHECK_INT (r.n_op_instances, ==, 2 * N_OPS);
  LS_CHECK_INT (r.digest, ==, 0xfeed);
  ls_report_clear (&r);
  job_clear (&job);
}

/* Only matrix products that are tagged as recomputed count; attention as its causal kernel computes it, or over
 * all pairs, which are twice as many; once per instance and rank of the role. */
static void
hfu_adds_what_was_recomputed (void)
{
  Job job;
  job_init (&job);
  job.kernels[0] = (LsKernel) { .kind = LS_KERNEL_GEMM, .flops = 1e12 };
  job.kernels[1] = (LsKernel) {
    .kind = LS_KERNEL_ATTENTION_FWD, .flops = 2 * 10 * 1e6 * 100, .batch = 10, .m = 1000, .n = 1000, .k = 100
  };
  job.kernels[2] = (LsKernel) { .kind = LS_KERNEL_NORM, .flops = 1e15 };
  for (uint32_t i = 0; i < 3; i++) {
    job.trace.ops[OP_F + (int) i].tag = LS_TAG_RECOMPUTE;
    job.trace.ops[OP_F + (int) i].kernel = i;
  }
  job.trace.ops[OP_B].kernel = 0; /* a backward product is no recomputation */
  LsInstance twice[2] = { { .segment = 0 }, { .segment = 0, .mb = 1 } };
  job.programs[1].n_instances = 2;
  job.programs[1].instances = twice;
  LsReport r;
  job_report (&job, &r);
  double attention = 2 * 10 * 1e6 * 100, peak = 312e12 * 4;
  LS_CHECK_NEAR (r.hfu, r.mfu + 3 * (1e12 + attention) / peak, 1e-12);
  LS_CHECK_NEAR (r.hfu_all_pairs, (published_flops () + 3 * (1e12 + 2 * attention)) / peak, 1e-12);
  ls_report_clear (&r);
  job_clear (&job);
}

static void
breakdown_is_the_mean_over_ranks (void)
{
  Job job;
  job_init (&job);
  trace_add (&job.trace, 0, (TestSpan) { OP_F, 0, 2 * LS_S, 2 * LS_S, LS_CAUSE_NONE, NONE });
  trace_add (&job.trace, 1, (TestSpan) { OP_P2P, 0, LS_S, LS_S, LS_CAUSE_NONE, NONE });
  trace_add (&job.trace, 1, (TestSpan) { OP_F, LS_S, LS_S, 2 * LS_S, LS_CAUSE_DEP, 0 });
  LsReport r;
  job_report (&job, &r);
  LS_CHECK_DOUBLE (r.breakdown_s[LS_PART_FORWARD], ==, 1.5);
  LS_CHECK_DOUBLE (r.breakdown_s[LS_PART_BUBBLE], ==, 0.5);
  LS_CHECK_DOUBLE (r.bubble_frac, ==, 0.25);
  ls_report_clear (&r);
  job_clear (&job);
}

static void
memory_is_that_of_the_fullest_rank (void)
{
  Job job;
  job_init (&job);
  LsReport r;
  job_report (&job, &r);
  LS_CHECK_INT (r.peak_rank, ==, 1);
  LS_CHECK_INT (r.peak_bytes, ==, 800);
  LS_CHECK_INT (r.capacity_bytes, ==, 900);
  LS_CHECK (r.fits);
  LS_CHECK_INT (r.at_peak[LS_MEM_GRADIENTS], ==, 600);
  LS_CHECK_INT (r.by_category[LS_MEM_GRADIENTS], ==, 650);
  ls_report_clear (&r);

  job.classes[0].peak_bytes = job.classes[0].needed_bytes = 800; /* a tie: the lowest rank */
  job_report (&job, &r);
  LS_CHECK_INT (r.peak_rank, ==, 0);
  ls_report_clear (&r);

  job.classes[0].peak_bytes = job.classes[0].needed_bytes = 900; /* exactly full */
  job_report (&job, &r);
  LS_CHECK (r.fits);
  ls_report_clear (&r);

  job.classes[0].peak_bytes = job.classes[0].needed_bytes = 901;
  job_report (&job, &r);
  LS_CHECK (!r.fits);
  ls_report_clear (&r);
  job_clear (&job);
}

static void
links_are_sorted_by_use_then_name (void)
{
  Job job;
  job_init (&job);
  job_add_trunk (&job, "b", 100, 50);   /* 25 % of two seconds */
  job_add_trunk (&job, "idle", 100, 0); /* not listed */
  job_add_trunk (&job, "c", 100, 160);
  job_add_trunk (&job, "a", 200, 100);
  job.resource_bytes[4] = 1e9; /* an HBM is no link */
  LsReport r;
  job_report (&job, &r);
  if (LS_CHECK_INT (r.n_links, ==, 3)) {
    LS_CHECK_STR (r.links[0].name, "c");
    LS_CHECK_DOUBLE (r.links[0].utilisation, ==, 0.8);
    LS_CHECK_DOUBLE (r.links[0].bytes, ==, 160);
    LS_CHECK_STR (r.links[1].name, "a");
    LS_CHECK_STR (r.links[2].name, "b");
    LS_CHECK_DOUBLE (r.links[2].utilisation, ==, 0.25);
  }
  ls_report_clear (&r);
  job_clear (&job);
}

static void
at_most_32_links (void)
{
  Job job;
  job_init (&job);
  for (int i = 0; i < 40; i++) {
    char name[8];
    g_snprintf (name, sizeof name, "%02d", i);
    job_add_trunk (&job, name, 100, i + 1);
  }
  LsReport r;
  job_report (&job, &r);
  if (LS_CHECK_INT (r.n_links, ==, 32)) {
    LS_CHECK_STR (r.links[0].name, "39");
    LS_CHECK_STR (r.links[31].name, "08");
  }
  ls_report_clear (&r);
  job_clear (&job);
}

/* By name but for numbers; those that are the same in all stay. */
static void
symmetric_links_are_a_group (void)
{
  Job job;
  job_init (&job);
  job_add_trunk (&job, "node0/gpu0>nvswitch", 100, 50); /* 25 % of two seconds */
  job_add_trunk (&job, "node0/gpu11>nvswitch", 100, 100);
  job_add_trunk (&job, "node0/gpu2>nvswitch", 100, 0); /* idle: not counted */
  job_add_trunk (&job, "leaf0>node1/nic1", 100, 80);
  job_add_trunk (&job, "leaf0>node1/nic10", 100, 80);
  job_add_trunk (&job, "leaf3>spines", 100, 20);
  LsReport r;
  job_report (&job, &r);
  if (LS_CHECK_INT (r.n_link_groups, ==, 3)) {
    LS_CHECK_STR (r.link_groups[0].name, "node0/gpu*>nvswitch");
    LS_CHECK_INT (r.link_groups[0].n, ==, 2);
    LS_CHECK_DOUBLE (r.link_groups[0].max_utilisation, ==, 0.5);
    LS_CHECK_DOUBLE (r.link_groups[0].mean_utilisation, ==, 0.375);
    LS_CHECK_DOUBLE (r.link_groups[0].bytes, ==, 150);
    LS_CHECK_STR (r.link_groups[1].name, "leaf0>node1/nic*");
    LS_CHECK_DOUBLE (r.link_groups[1].mean_utilisation, ==, 0.4);
    LS_CHECK_STR (r.link_groups[2].name, "leaf3>spines");
  }
  ls_report_clear (&r);
  job_clear (&job);
}

static void
shares_of_kernel_time (void)
{
  Job job;
  job_init (&job);
  LsReport r;
  job_report (&job, &r);
  LS_CHECK_DOUBLE (r.share_measured, ==, 0.125);
  LS_CHECK_DOUBLE (r.share_fitted, ==, 0.25);
  LS_CHECK_DOUBLE (r.share_roofline, ==, 0.625);
  LS_CHECK_DOUBLE (r.share_extrapolated, ==, 0.5);
  LS_CHECK_DOUBLE (r.share_unknown, ==, 0.25);
  ls_report_clear (&r);
  job_clear (&job);
}

/* Pins the formulas of the papers that a run's memory is laid beside: model states of
 * ZeRO, activations of Korthikanti et al. and how many layers' worth a rank holds. */

#define GIB 1073741824.0
#define GB  1e9

static LsStrategy
strategy (uint32_t tp, uint32_t pp, uint32_t vpp, uint32_t micro_batch, uint32_t n_micro_batches)
{
  const char *schedule = vpp > 1 ? "interleaved-1f1b" : pp > 1 ? "1f1b" : "none";
  return (LsStrategy) {
    .tp = tp,
    .pp = pp,
    .vpp = vpp,
    .cp = 1,
    .ep = 1,
    .dp = 1,
    .micro_batch = micro_batch,
    .global_batch = micro_batch * n_micro_batches,
    .schedule = (char *) schedule,
    .dtype = LS_DTYPE_FP16,
    .opt.grad_dtype = LS_DTYPE_FP16,
    .use.attention = LS_ATTENTION_UNFUSED,
  };
}

/* Rajbhandari et al. 2020, figure 1: 7.5e9 parameters, 64 ranks, K = 12. */
static void
model_states_are_those_of_zero (void)
{
  static const double gb[] = { 120, 31.4, 16.6, 1.9 };
  LsModel m = gpt (36, 4096, 32);
  for (uint32_t stage = 0; stage < 4; stage++) {
    LsStrategy s = strategy (1, 1, 1, 1, 1);
    s.dp = 64;
    s.zero_stage = stage;
    LsMemoryFormula f = ls_memory_formula (&m, &s, 0, UINT64_C (7500000000));
    LS_CHECK_NEAR ((f.parameters + f.gradients + f.optimizer) / GB, gb[stage], 0.02);
  }
}

/* actG-* (tests/README.md): first stage, no recomputation, and selective with SP. */
static void
activations_of_the_first_stage_are_the_published (void)
{
  static const struct {
    uint32_t layers, hidden, heads, pp, vpp, micro_batch;
    double none_gib, both_gib;
  } rows[] = {
    { 48, 6144, 64, 1, 1, 4, 59.25, 9.5625 },
    { 96, 12288, 96, 8, 3, 1, 66.84375, 12.3515625 },
    { 105, 20480, 128, 35, 3, 1, 114.0234375, 23.076171875 },
    { 128, 25600, 160, 64, 1, 1, 131.25, 26.5625 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    LsModel m = gpt (rows[i].layers, rows[i].hidden, rows[i].heads);
    LsStrategy s = strategy (8, rows[i].pp, rows[i].vpp, rows[i].micro_batch, rows[i].pp == 1 ? 1 : 512);
    LS_CHECK_NEAR (ls_memory_formula (&m, &s, 0, 0).activations / GIB, rows[i].none_gib, 1e-6);
    s.sp = true;
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    LS_CHECK_NEAR (ls_memory_formula (&m, &s, 0, 0).activations / GIB, rows[i].both_gib, 1e-6);
  }
}

/* Flash attention keeps what selective recomputation does; full recomputation 2 s b h. */
static void
recipes_keep_what_table_2_says (void)
{
  LsModel m = gpt (48, 6144, 64);
  LsStrategy s = strategy (8, 1, 1, 4, 1);
  double sbh = 2048.0 * 4 * 6144;
  s.use.attention = LS_ATTENTION_FLASH;
  LS_CHECK_NEAR (ls_layer_activation_bytes (&m, &s), sbh * 13, 1e-12);
  s.sp = true;
  LS_CHECK_NEAR (ls_layer_activation_bytes (&m, &s), sbh * 34 / 8, 1e-12);
  s.recompute = LS_RECOMPUTE_FULL;
  LS_CHECK_NEAR (ls_layer_activation_bytes (&m, &s), sbh * 2, 1e-12);
}

static void
stages_hold_fewer_micro_batches_down_the_pipeline (void)
{
  LsModel m = gpt (96, 12288, 96);
  LsStrategy s = strategy (8, 8, 1, 1, 64);
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 0), ==, 8 * 12);
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 7), ==, 12);
  s.global_batch = 3; /* fewer than stages */
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 0), ==, 3 * 12);
  s = strategy (8, 8, 3, 1, 64);
  LS_CHECK_NEAR (ls_layers_held (&m, &s, 0), 96 * (1 + 7.0 / 24), 1e-12);
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 7), ==, 4 * 17);
  s.schedule = (char *) "gpipe";
  s.vpp = 1;
  LS_CHECK_DOUBLE (ls_layers_held (&m, &s, 0), ==, 64 * 12);
  s.schedule = (char *) "zb-h1";
  LS_CHECK (isnan (ls_layers_held (&m, &s, 0)));
}

static void
other_models_have_no_formula (void)
{
  LsModel m = gpt (48, 6144, 64);
  LsStrategy s = strategy (8, 1, 1, 1, 1);
  m.mlp = LS_MLP_SWIGLU;
  LS_CHECK (isnan (ls_layer_activation_bytes (&m, &s)));
  LS_CHECK (!isnan (ls_memory_formula (&m, &s, 0, 1000).optimizer));
  s.lora.rank = 8;
  LS_CHECK (isnan (ls_memory_formula (&m, &s, 0, 1000).parameters)); /* most of which do not learn */
  m.mlp = LS_MLP_GELU;
  LS_CHECK (isnan (ls_layer_activation_bytes (&m, &s)));
}

LS_TEST_SUITE (LS_TEST (mfu_is_the_published_formula_over_the_peak), LS_TEST (hfu_adds_what_was_recomputed),
               LS_TEST (breakdown_is_the_mean_over_ranks), LS_TEST (memory_is_that_of_the_fullest_rank),
               LS_TEST (links_are_sorted_by_use_then_name), LS_TEST (at_most_32_links),
               LS_TEST (symmetric_links_are_a_group), LS_TEST (shares_of_kernel_time),
               LS_TEST (model_states_are_those_of_zero),
               LS_TEST (activations_of_the_first_stage_are_the_published),
               LS_TEST (recipes_keep_what_table_2_says),
               LS_TEST (stages_hold_fewer_micro_batches_down_the_pipeline),
               LS_TEST (other_models_have_no_formula))
