/* Pins that experts go with everything: every schedule, with tp, sp, etp, cp, every way to be data
 * parallel, recomputation, uneven loads; in each run FLOPs, bytes and memory are conserved
 * (analysis/conservation.h, exec/replay/check.c), and folded and unfolded runs are the same. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "job/job.h"
#include "lower/lower.h"
#include "schedules/sched.h"

static LsModel
moe_model (bool is_latent)
{
  LsModel m = {
    .name = (char *) "experts",
    .n_layers = 8,
    .hidden = 256,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 32,
    .ffn = 1024,
    .vocab = 1024,
    .seq = 256,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
    .moe.n_experts = 8,
    .moe.top_k = 2,
    .moe.expert_ffn = 256,
    .moe.shared_ffn = 256,
    .moe.n_dense_layers = 1,
    .moe.every = 1,
  };
  if (is_latent) {
    m.latent.kv_lora = 64;
    m.latent.q_lora = 96;
    m.latent.rope_dim = 16;
    m.v_dim = 24;
  }
  return m;
}

/* knobs: "ep 4 tp 2 sp 1". The step time, or a negative number. */
static double
run (const LsHardware *hardware, const LsModel *m, const char *knobs, const char *schedule, LsShortcut fold)
{
  LsJobSpec spec;
  LsRunOptions options;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (knobs, " ", -1);
  ls_job_spec_init (&spec);
  for (guint i = 0; words[i] && words[i + 1]; i += 2)
    LS_CHECK (ls_job_spec_set (&spec, words[i], words[i + 1], diags));
  if (schedule)
    LS_CHECK (ls_job_spec_set (&spec, "schedule", schedule, diags));
  spec.strategy.gpus = 16;
  ls_run_options_init (&options);
  options.n_steps = 1;
  options.fold = fold;
  g_autoptr (LsJobResult) r = ls_job_simulate (m, hardware, 2, &spec.strategy, &options, &error);
  ls_check_impl (error == NULL, __FILE__, __LINE__, "%s, %s: %s", schedule ? schedule : "", knobs,
                 error ? error->message : "");
  double seconds = r ? ls_job_result_step_time_s (r) : -1;
  if (r)
    LS_CHECK (r->report.breakdown_s[LS_PART_OTHER] < 1e-9);
  ls_job_spec_clear (&spec);
  return seconds;
}

static LsHardware *
hardware_new (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_hardware_load ("dgx-h100", diags);
}

static void
every_schedule (void)
{
  static const char knobs[]
      = "pp 4 tp 2 sp 1 ep 2 etp 2 expert-load zipf:0.7 expert-capacity 1.1 global-batch 16";
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (false);
  for (guint i = 0; hardware && ls_sched_at (i); i++) {
    const LsSched *sched = ls_sched_at (i);
    if (strcmp (sched->name, "none") == 0)
      continue;
    LsSchedShape shape = { .pp = 4, .vpp = 1, .n_micro_batches = 8 };
    g_autofree char *all
        = g_strdup_printf ("%s%s", knobs, ls_sched_own_refusal (sched, &shape) ? " vpp 2" : "");
    run (hardware, &m, all, sched->name, LS_SHORTCUT_AUTO);
  }
  ls_hardware_free (hardware);
}

static void
every_way_to_be_data_parallel (void)
{
  static const char *const knobs[] = {
    "dp-kind ddp",
    "dp-kind megatron zero 1",
    "dp-kind megatron dp-overlap 0",
    "dp-kind ps",
    "dp-kind fsdp1",
    "dp-kind fsdp2",
    "zero 2",
    "zero 3",
    "recompute full",
    "recompute selective",
    "cp 2",
    "cp 2 cp-kind ulysses",
    "cp 2 cp-balance 0",
    "network alphabeta",
  };
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (false);
  for (guint k = 0; hardware && k < G_N_ELEMENTS (knobs); k++) {
    g_autofree char *even = g_strdup_printf ("%s ep 4", knobs[k]),
                    *uneven = g_strdup_printf ("%s ep 4 tp 2 sp 1 etp 1 expert-load zipf:1", knobs[k]);
    run (hardware, &m, even, NULL, LS_SHORTCUT_AUTO);
    run (hardware, &m, uneven, NULL, k % 4 == 0 ? LS_SHORTCUT_CHECK : LS_SHORTCUT_AUTO);
  }
  ls_hardware_free (hardware);
}

/* tp 8, dp 1: two ranks have the same experts all the same. */
static void
experts_alone_are_data_parallel (void)
{
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (false);
  if (!hardware)
    return;
  run (hardware, &m, "tp 8 sp 1 cp 1 pp 2 ep 4 etp 1", NULL, LS_SHORTCUT_CHECK);
  run (hardware, &m, "tp 8 sp 1 cp 1 pp 2 ep 4 etp 1 zero 1", NULL, LS_SHORTCUT_CHECK);
  ls_hardware_free (hardware);
}

static void
latent_attention_runs (void)
{
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (true);
  if (!hardware)
    return;
  run (hardware, &m, "ep 8", NULL, LS_SHORTCUT_CHECK);
  run (hardware, &m, "tp 4 sp 1 ep 4 etp 1 pp 2", "zb-h1", LS_SHORTCUT_AUTO);
  m.moe.n_experts = m.moe.top_k = m.moe.expert_ffn = m.moe.shared_ffn = m.moe.n_dense_layers = m.moe.every
      = 0;
  run (hardware, &m, "tp 4", NULL, LS_SHORTCUT_AUTO); /* latents on every rank: repeated FLOPs */
  m.latent.q_lora = 0;
  run (hardware, &m, "tp 4 sp 1 tp-overlap 1", NULL, LS_SHORTCUT_AUTO);
  ls_hardware_free (hardware);
}

/* What overlaps, merges, recomputes and predicts: whatever it is, nothing is lost. */
static void
all_that_experts_do_besides (void)
{
  static const char *const knobs[][2] = {
    { "ep 8 ep-overlap 1 delay-wgrad 1 global-batch 64", NULL },
    { "ep 4 cp 2 ep-overlap 1 expert-load zipf:0.7 global-batch 64", NULL },
    { "ep 8 dp-kind ddp ep-overlap 1 delay-wgrad 1 global-batch 64", NULL },
    { "ep 8 zero 1 dp-kind deepspeed ep-overlap 1 global-batch 64", NULL },
    { "ep 4 tp 2 sp 1 etp 1 pp 2 vpp 2 ep-overlap 1 delay-wgrad 1 zero 1 global-batch 64", NULL },
    { "ep 4 pp 4 p2p overlapped zero 1 global-batch 64", "dualpipe" },
    { "ep 4 pp 2 ep-overlap 1 delay-wgrad 0 global-batch 64", "dualpipev" },
    { "ep 4 pp 2 ep-overlap 0 global-batch 64", "dualpipev" },
    { "ep 8 dispatcher deepep", NULL },
    { "ep 8 dispatcher deepep network step", NULL },
    { "ep 8 dispatcher deepep expert-load zipf:0.5 dtype fp8 dispatch-fp8 1", NULL },
    { "ep 4 pp 4 dispatcher deepep dispatch-margin 1 dispatch-sms 8 global-batch 64", "dualpipe" },
    { "ep 8 dispatcher hybridep dispatch-sms 16", NULL },
    { "ep 8 recompute selective recompute-parts mla-up", NULL },
    { "ep 4 pp 2 recompute selective recompute-parts norm,activation,mla-up global-batch 64", "dualpipe" },
    { "ep 8 tp 2 sp 1 etp 1 recompute selective recompute-parts core,mla-up zero 3 dp-kind fsdp2", NULL },
    { "ep 8 fp8-act-store 1", NULL },
    { "ep 8 dispatcher deepep dtype fp8 fp8-recipe deepseek dispatch-fp8 1 expert-load zipf:0.5", NULL },
    { "ep 4 tp 2 sp 1 etp 2 dtype fp8 fp8-recipe deepseek", NULL },
    { "ep 8 recompute selective recompute-parts moe,mlp,norm,activation", NULL },
    { "ep 4 pp 2 recompute selective recompute-parts shared,mlp global-batch 64", "zb-h1" },
    { "ep 4 tp 2 sp 1 etp 2 recompute selective recompute-parts core,moe expert-load zipf:0.5", NULL },
    { "ep 8 dtype fp8 recompute selective recompute-parts moe,mlp zero 3 dp-kind fsdp2", NULL },
    { "ep 4 tp 2 sp 1 etp 1 sp_save_gathered 1 recompute selective recompute-parts moe,norm", NULL },
    { "ep 8 shared-overlap 1", NULL },
    { "ep 8 shared-overlap 1 dispatcher deepep dtype fp8 dispatch-fp8 1 zero 1", NULL },
    { "ep 4 tp 2 sp 1 etp 1 shared-overlap 1 tp-overlap 1 recompute selective recompute-parts norm,moe",
      NULL },
    { "ep 2 tp 2 sp 1 etp 2 pp 2 shared-overlap 1 expert-load zipf:0.5 global-batch 64", "zb-h1" },
    { "ep 4 pp 2 vpp 2 shared-overlap 1 recompute full recompute-early-stop 1 global-batch 64", NULL },
    { "ep 8 shared-overlap 1 recompute selective recompute-parts norm,activation dp-kind ddp", NULL },
  };
  LsHardware *hardware = hardware_new ();
  for (guint k = 0; hardware && k < G_N_ELEMENTS (knobs); k++) {
    LsModel m = moe_model (strstr (knobs[k][0], "cp 2") == NULL);
    m.moe.groups = k % 2 ? 4 : 0;
    m.moe.top_groups = k % 2 ? 2 : 0;
    m.predict.layers = k % 3;
    LS_CHECK (run (hardware, &m, knobs[k][0], knobs[k][1], k % 3 == 0 ? LS_SHORTCUT_CHECK : LS_SHORTCUT_AUTO)
              > 0);
  }
  ls_hardware_free (hardware);
}

/* DeepEP's kernels, one node: hidden, tokens, top k, experts, SMs, us of dispatch (fp8) and of combine.
 * Rows of ai-dynamo/aiconfigurator's tables of H200 whose widths no figure was fitted to. */
static void
dispatch_is_as_measured (void)
{
  static const struct {
    uint32_t hidden, tokens, top_k, experts, sms;
    double dispatch_us, combine_us;
  } rows[] = {
    { 3072, 16384, 8, 256, 4, 4807.74, 6852.02 },  { 6144, 16384, 8, 160, 4, 7376.41, 13192.13 },
    { 6144, 4096, 2, 8, 4, 959.77, 2062.04 },      { 6144, 4096, 4, 128, 8, 690.11, 1274.79 },
    { 6144, 16384, 2, 8, 8, 1879.87, 4398.95 },    { 6144, 16384, 8, 256, 8, 3795.80, 6701.19 },
    { 5120, 16384, 1, 16, 12, 914.53, 2202.53 },   { 3072, 16384, 8, 256, 12, 1676.18, 2406.50 },
    { 5120, 4096, 1, 128, 12, 251.81, 550.14 },    { 2048, 4096, 8, 256, 16, 313.81, 365.08 },
    { 6144, 16384, 8, 256, 16, 1988.18, 3434.53 }, { 6144, 4096, 8, 160, 16, 526.16, 946.16 },
    { 2048, 16384, 8, 256, 20, 926.97, 1172.27 },  { 6144, 16384, 8, 256, 20, 1694.80, 3095.14 },
    { 5120, 16384, 1, 128, 20, 568.27, 1363.91 },  { 2048, 4096, 8, 128, 24, 225.66, 314.72 },
    { 6144, 16384, 8, 160, 24, 1688.57, 3056.76 }, { 6144, 16384, 4, 128, 24, 1049.45, 2051.76 },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("dgx-h200", diags);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = h ? ls_hardware_build (h, 1, &error) : NULL;
  const uint32_t gpus[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  double off = 0;
  for (guint i = 0; LS_CHECK (c != NULL) && i < G_N_ELEMENTS (rows); i++)
    for (int is_combine = 0; is_combine < 2; is_combine++) {
      g_autoptr (LsArena) arena = ls_arena_new ();
      LsSpread spread = { { rows[i].experts, rows[i].top_k, 0, 0 }, rows[i].tokens, rows[i].sms };
      double row = rows[i].hidden * (is_combine ? 2 : 1 + 4 / 128.0);
      LsCollRequest q = { .kind = LS_COLL_ALL_TO_ALL,
                          .gpus = gpus,
                          .n = 8,
                          .bytes = (uint64_t) (row * rows[i].tokens * rows[i].top_k),
                          .algorithm = is_combine ? "combine" : "dispatch",
                          .spread = &spread };
      LS_CHECK (ls_coll_applies (c, &h->nccl, &q));
      double us
          = ls_time_to_s (ls_coll_time_alone (c, ls_coll_plan (c, &h->nccl, &q, LS_NETWORK_FLOW, arena)))
          * 1e6;
      double measured = is_combine ? rows[i].combine_us : rows[i].dispatch_us;
      LS_CHECK (fabs (us / measured - 1) < 0.35);
      off += fabs (us / measured - 1) / (2 * G_N_ELEMENTS (rows));
    }
  LS_CHECK_DOUBLE (off, <, 0.15);
}

/* HybridEP's kernels in a rack of GB200, bf16: ranks with 8 experts each, SMs, GB/s of dispatch and of combine, of
 * 4,096 tokens of 7,168 numbers to 8 experts, as rows that ranks get, their own too (Hybrid-EP_Implementation.md of
 * deepseek-ai/DeepEP@07eea0c). By hand, 32 ranks: 7.27 ranks a token, 427 MB, with 256 scores each 457 MB; 16 SMs of
 * 44.4 GB/s and 9 ns a row take 660 us, 0.776 of 900 GB/s 655 us; published 678. */
static void
hybrid_dispatch_is_as_published (void)
{
  static const struct {
    uint32_t ranks, sms;
    double gb_s[2];
  } rows[] = {
    { 8, 16, { 750.15, 684.27 } },  { 8, 32, { 764.03, 737.13 } },  { 16, 16, { 661.93, 600.75 } },
    { 16, 32, { 706.95, 666.26 } }, { 24, 16, { 637.80, 565.53 } }, { 24, 32, { 665.97, 639.80 } },
    { 32, 16, { 629.79, 547.25 } }, { 32, 32, { 642.23, 605.15 } }, { 36, 16, { 612.85, 543.27 } },
    { 36, 32, { 632.31, 596.99 } },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("gb200-nvl72", diags);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = h ? ls_hardware_build (h, 1, &error) : NULL;
  uint32_t gpus[36];
  double off = 0;
  for (uint32_t i = 0; i < 36; i++)
    gpus[i] = i;
  for (guint i = 0; LS_CHECK (c != NULL) && i < 2 * G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    uint32_t n = rows[i / 2].ranks;
    LsSpread spread = { { 8 * n, 8, 0, 0 }, 4096, rows[i / 2].sms, .is_hybrid = true };
    LsCollRequest q = { .kind = LS_COLL_ALL_TO_ALL,
                        .gpus = gpus,
                        .n = n,
                        .bytes = 4096 * 8 * 7168 * 2,
                        .algorithm = i % 2 ? "combine" : "dispatch",
                        .spread = &spread,
                        .carries_scores = true };
    double ranks = n; /* that none of 8 experts of 8 n is on: those of the others, drawn one by one */
    for (uint32_t k = 0; k < 8; k++)
      ranks *= (8.0 * n - 8 - k) / (8.0 * n - k);
    double us = 4096 * (n - ranks) * 7168 * 2 / rows[i / 2].gb_s[i % 2] / 1e3,
           ours
        = ls_time_to_s (ls_coll_time_alone (c, ls_coll_plan (c, &h->nccl, &q, LS_NETWORK_FLOW, arena))) * 1e6;
    ours -= ls_time_to_s (h->nccl.hybrid_dispatch.base_intra) * 1e6;
    LS_CHECK (fabs (ours / us - 1) < 0.15);
    off += fabs (ours / us - 1) / (2 * G_N_ELEMENTS (rows));
  }
  LS_CHECK_DOUBLE (off, <, 0.05);
}

/* HybridEP's kernels on H100, 4,096 tokens in bf16 to 8 of 128 experts: microseconds of rows that members get (one node)
 * or that nodes get, by the rates printed (NVIDIA-NeMo/Automodel@18007663, docs/deepep_vs_hybridep_benchmark.md). By
 * hand, combine of 2,048 numbers on 8 ranks with 8 SMs: 5.34 ranks a token, 4,096 + 512 bytes of scores a row, each
 * 0.161 us and 4,608 bytes at 125 GB/s: 541 us. Bytes alone would take 101. */
static void
narrow_rows_cost_what_a_row_costs (void)
{
  static const struct {
    uint32_t nodes, sms;
    uint64_t width;
    double us[2];
  } rows[] = {
    { 1, 8, 2048, { 295, 476 } },  { 1, 24, 2048, { 276, 295 } },  { 2, 8, 2048, { 512, 999 } },
    { 2, 24, 2048, { 464, 679 } }, { 2, 8, 7168, { 1366, 1530 } },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("dgx-h100", diags);
  uint32_t gpus[16];
  double off = 0, by_hand = 0;
  for (uint32_t i = 0; i < 16; i++)
    gpus[i] = i;
  for (guint i = 0; LS_CHECK (h != NULL) && i < 2 * G_N_ELEMENTS (rows); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (LsCluster) c = ls_hardware_build (h, rows[i / 2].nodes, &error);
    g_autoptr (LsArena) arena = ls_arena_new ();
    LsSpread spread = { { 128, 8, 0, 0 }, 4096, rows[i / 2].sms, .is_hybrid = true };
    LsCollRequest q = { .kind = LS_COLL_ALL_TO_ALL,
                        .gpus = gpus,
                        .n = 8 * rows[i / 2].nodes,
                        .bytes = 4096 * 8 * rows[i / 2].width * 2,
                        .algorithm = i % 2 ? "combine" : "dispatch",
                        .spread = &spread,
                        .carries_scores = true };
    LsTime called = rows[i / 2].nodes == 1 ? h->nccl.hybrid_dispatch.base_intra : 82 * LS_US;
    double us = ls_time_to_s (ls_coll_time_alone (c, ls_coll_plan (c, &h->nccl, &q, LS_NETWORK_FLOW, arena))
                              - called)
        * 1e6;
    by_hand = i == 1 ? us : by_hand;
    LS_CHECK (fabs (us / rows[i / 2].us[i % 2] - 1) < 0.3);
    off += fabs (us / rows[i / 2].us[i % 2] - 1) / (2 * G_N_ELEMENTS (rows));
  }
  LS_CHECK_NEAR (by_hand, 541, 0.005);
  LS_CHECK_DOUBLE (off, <, 0.11);
}

/* A token of 1,024 numbers in 16 bits brings as many bytes of scores where 64 ranks have 8 experts each; the
 * results of experts bring none, and DeepEP sends a token's own alone. */
static void
scores_go_with_tokens (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("gb200-nvl72", diags);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = h ? ls_hardware_build (h, 1, &error) : NULL;
  uint32_t gpus[64];
  double us[3];
  for (uint32_t i = 0; i < 64; i++)
    gpus[i] = i;
  for (guint i = 0; LS_CHECK (c != NULL) && i < G_N_ELEMENTS (us); i++) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    LsSpread spread = { { 512, 22, 0, 0 }, 4096, 32, .is_hybrid = i < 2 };
    LsCollRequest q = { .kind = LS_COLL_ALL_TO_ALL,
                        .gpus = gpus,
                        .n = 64,
                        .bytes = 4096 * 22 * 1024 * 2,
                        .algorithm = "dispatch",
                        .spread = &spread,
                        .carries_scores = i != 0 };
    us[i] = ls_time_to_s (ls_coll_time_alone (c, ls_coll_plan (c, &h->nccl, &q, LS_NETWORK_FLOW, arena)));
    us[i] -= ls_time_to_s (i < 2 ? h->nccl.hybrid_dispatch.base_intra : h->nccl.dispatch.base_intra);
    LsCollRequest without = q;
    without.carries_scores = false;
    if (i == 2)
      LS_CHECK_INT (ls_coll_time_alone (c, ls_coll_plan (c, &h->nccl, &q, LS_NETWORK_FLOW, arena)), ==,
                    ls_coll_time_alone (c, ls_coll_plan (c, &h->nccl, &without, LS_NETWORK_FLOW, arena)));
  }
  LS_CHECK_NEAR (us[1], 2 * us[0], 1e-6);
}

/* Two nodes: what leaves a node goes once to each token's other node, and over NVLink once to each GPU. */
static void
a_token_crosses_once (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("dgx-h100", diags);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = h ? ls_hardware_build (h, 2, &error) : NULL;
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[16];
  for (uint32_t i = 0; i < 16; i++)
    gpus[i] = i;
  if (!LS_CHECK (c != NULL))
    return;
  /* 16 experts, all of a token: every GPU has one. */
  LsSpread spread = { { 16, 16, 0, 0 }, 1024, 20 };
  LsCollRequest q = { .kind = LS_COLL_ALL_TO_ALL,
                      .gpus = gpus,
                      .n = 16,
                      .bytes = 16 << 20,
                      .algorithm = "dispatch",
                      .spread = &spread };
  const LsCollPlan *plan = ls_coll_plan (c, &h->nccl, &q, LS_NETWORK_FLOW, arena);
  const LsPhase *p = &plan->phases[0];
  LS_CHECK_DOUBLE (p->demand_bytes, ==, 16 << 20);
  LS_CHECK_NEAR (plan->sm_share, 20.0 / 132, 1e-9);
  double nic = 0, nvlink = 0;
  for (uint32_t i = 0; i < p->n_loads; i++) {
    g_autofree char *name = ls_cluster_resource_name (c, p->loads[i].resource);
    double bytes = p->demand_bytes * (double) p->loads[i].coef / (1 << 20);
    nic += strstr (name, "nic") && strstr (name, ">leaf") ? bytes : 0;
    nvlink += g_str_has_suffix (name, ">nvswitch") ? bytes : 0;
  }
  LS_CHECK_NEAR (nic, 16.0 * (1 << 20), 1e-6);         /* a copy of each of the 16 GPUs' tokens */
  LS_CHECK_NEAR (nvlink, 16.0 * 14 * (1 << 20), 1e-4); /* 7 for the node's own tokens, 7 for the other's */
}

/* All queries, keys and values of latent attention: 2 n + v wide, of every head, in 16 bits. */
static void
latents_are_made_again (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsModel m = moe_model (true);
  g_autoptr (GError) error = NULL;
  uint64_t kept[2] = { 0 };
  for (int again = 0; again < 2; again++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.recompute = again ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
    s.memory.recompute_parts = LS_RECOMPUTE_MLA_UP;
    LS_CHECK (ls_strategy_resolve (&s, &m, 1, 8, diags));
    g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, &error);
    for (uint32_t i = 0; LS_CHECK (plan != NULL) && i < plan->programs[0].n_instances; i++) {
      const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
      if (!g_str_has_prefix (seg->name, "forward"))
        continue;
      for (uint32_t o = 0; o < seg->n_ops; o++)
        for (uint32_t b = 0; b < seg->ops[o].n_buffers; b++)
          kept[again] += seg->ops[o].buffers[b].is_free ? 0 : seg->ops[o].buffers[b].bytes;
    }
    ls_strategy_clear (&s);
  }
  LS_CHECK_INT (kept[0] - kept[1], ==,
                UINT64_C (2) * 256 * 8 * (2 * 32 + 24) * 8); /* tokens, heads, layers */
}

/* A layer as the last, a projection of 2 h, three norms; the head again in FLOPs, not in parameters. */
static void
predictions_are_counted (void)
{
  LsModel m = moe_model (true), more = m;
  more.predict.layers = 2;
  uint64_t layer = ls_model_layer_params (&m, 7), h = m.hidden;
  LS_CHECK_INT (ls_model_params (&more, 1024) - ls_model_params (&m, 1024), ==,
                2 * (layer + 2 * h * h + 3 * h));
  double head = 6.0 * (double) h * 1024, proj = 6.0 * 2 * (double) (h * h), all = 0;
  LsModel one = m;
  one.n_layers = 9;
  double deeper = ls_model_flops (&one, 1024, 256, 1, true) - ls_model_flops (&m, 1024, 256, 1, true);
  all = 2 * (deeper + 256 * (head + proj));
  LS_CHECK_NEAR (ls_model_flops (&more, 1024, 256, 1, true) - ls_model_flops (&m, 1024, 256, 1, true), all,
                 1e-9);
}

LS_TEST_SUITE (LS_TEST (every_schedule), LS_TEST (every_way_to_be_data_parallel),
               LS_TEST (experts_alone_are_data_parallel), LS_TEST (latent_attention_runs),
               LS_TEST (all_that_experts_do_besides), LS_TEST (dispatch_is_as_measured),
               LS_TEST (hybrid_dispatch_is_as_published), LS_TEST (scores_go_with_tokens),
               LS_TEST (narrow_rows_cost_what_a_row_costs), LS_TEST (a_token_crosses_once),
               LS_TEST (latents_are_made_again), LS_TEST (predictions_are_counted))
