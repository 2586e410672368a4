/* Pins what the files of strategies/software know of published tables besides their columns, and that a row
 * is told by its columns, never by its id. */
#include "ls_test.h"

#include <math.h>

#include "analysis/interval.h"
#include "data/measured/read_cases.h"
#include "model/kernel.h"

/* What differs between the rows of these tests. */
typedef struct {
  const char *software, *source, *mlp, *attention, *cluster, *schedule, *p2p, *dp_kind;
  uint32_t gpus, hidden, zero, pp;
  const char *recompute, *id;
} Row;

static GPtrArray *
parse (Row r)
{
  g_autofree char *text = g_strdup_printf (
      "id,split,cluster,gpus,layers,hidden,heads,kv_heads,ffn,vocab,seq,mlp,attention,dtype,grad_dtype,global_batch,micro_batch,"
      "tp,pp,vpp,dp,cp,ep,zero,sp,recompute,schedule,dp_kind,dp_overlap,tp_overlap,p2p,iteration_s,source,caveat,software\n"
      "%s,pool,%s,%u,32,%u,32,32,16384,51200,2048,%s,%s,bf16,bf16,1024,1,1,%u,1,%u,1,1,%u,0,%s,%s,%s,1,0,%s,1,\"%s\",,%s\n",
      r.id ? r.id : "x", r.cluster ? r.cluster : "dgx-a100-80g", r.gpus ? r.gpus : 8,
      r.hidden ? r.hidden : 4096, r.mlp ? r.mlp : "gelu", r.attention ? r.attention : "unfused",
      r.pp ? r.pp : 1, (r.gpus ? r.gpus : 8) / (r.pp ? r.pp : 1), r.zero, r.recompute ? r.recompute : "none",
      r.schedule ? r.schedule : "none", r.dp_kind ? r.dp_kind : "megatron", r.p2p ? r.p2p : "none",
      r.source ? r.source : "a table of their own", r.software);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  GPtrArray *cases = ls_read_cases ("c.csv", text, false, diags);
  g_autofree char *report = ls_diag_list_format (diags);
  LS_CHECK_STR (report, "");
  LS_CHECK (cases && cases->len == 1);
  return cases;
}

#define FIRST(cases_) ((const LsCase *) g_ptr_array_index (cases_, 0))

static void
check_family (Row row, const char *family, bool has_facts)
{
  g_autoptr (GPtrArray) cases = parse (row);
  LS_CHECK_STR (FIRST (cases)->family, family);
  LS_CHECK_INT (FIRST (cases)->has_facts, ==, has_facts);
}

static void
families_are_tables_or_software (void)
{
  check_family ((Row) { .software = "" }, "other", false);
  check_family ((Row) { .software = "", .id = "zb-t4", .source = "Zero Bubble Table 4" }, "other", false);
  check_family ((Row) { .software = "nemo-2024" }, "nemo-2024", false);
  check_family ((Row) { .software = "nemo-2024", .source = "NVIDIA/dgxc-benchmarking@v25.02" }, "dgxc",
                false);
  check_family ((Row) { .software = "megatron-lm-2022-05", .source = "Korthikanti et al. 2022 Table 5" },
                "korth", true);
  check_family ((Row) { .software = "megatron-deepspeed-2022", .source = "vTrain ground_truth_single.csv" },
                "vtrain-single", true);
  check_family ((Row) { .software = "megatron-deepspeed-2022", .source = "vTrain ground_truth_multi.csv" },
                "vtrain-multi", true);
}

static void
the_mlp_tells_the_architecture (void)
{
  g_autoptr (GPtrArray) gpt = parse ((Row) { .software = "", .mlp = "gelu" }),
                        llama = parse ((Row) { .software = "", .mlp = "swiglu" });
  g_autoptr (GPtrArray) nemotron = parse ((Row) { .software = "", .mlp = "relu2" });
  const LsModel *g = &FIRST (gpt)->model, *l = &FIRST (llama)->model, *n = &FIRST (nemotron)->model;
  LS_CHECK (g->norm == LS_NORM_LAYERNORM && g->position == LS_POSITION_LEARNED && g->linear_bias
            && g->tied_embeddings);
  LS_CHECK (l->norm == LS_NORM_RMSNORM && l->position == LS_POSITION_ROPE && !l->linear_bias
            && !l->tied_embeddings);
  LS_CHECK (n->norm == LS_NORM_LAYERNORM && n->position == LS_POSITION_ROPE && !n->linear_bias
            && !n->tied_embeddings);
  LS_CHECK (!g->dropout && !l->dropout && !n->dropout);
}

/* Megatron-LM's default of 0.1 is for GPT, of tables that it is known of: a table of a user's own is as a run is,
 * whose model says so itself. BLOOM's positions are ALiBi. */
static void
megatron_trains_gpt_with_dropout (void)
{
#define SC21 "Narayanan et al. 2021 (arXiv 2104.04473) Table 1"
  g_autoptr (GPtrArray) own = parse ((Row) { .software = "megatron-lm-2021-04" }),
                        sc21 = parse ((Row) { .software = "megatron-lm-2021-04", .source = SC21 });
  g_autoptr (GPtrArray) llama
      = parse ((Row) { .software = "megatron-lm-2021-04", .source = SC21, .mlp = "swiglu" });
  g_autoptr (GPtrArray) mpt = parse ((Row) { .software = "llm-foundry-2023" });
  g_autoptr (GPtrArray) bloom
      = parse ((Row) { .software = "bigscience-2022", .source = "BLOOM-176B production run" });
  LS_CHECK (FIRST (sc21)->model.dropout && !FIRST (own)->model.dropout && !FIRST (llama)->model.dropout
            && !FIRST (mpt)->model.dropout);
  LS_CHECK (FIRST (bloom)->model.dropout && FIRST (bloom)->model.position == LS_POSITION_ALIBI
            && FIRST (bloom)->strategy.launch.launch_blocking);
}

/* The rows say gelu; 31.4e9 parameters need a third matrix, 15.7e9 heads of 128. */
static void
maxtext_has_gated_mlps_and_heads_of_128 (void)
{
  g_autoptr (GPtrArray) cases = parse ((Row) { .software = "maxtext-2024",
                                               .source = "MaxText README/configs tables",
                                               .hidden = 2048,
                                               .dp_kind = "xla-fsdp",
                                               .zero = 3 });
  const LsModel *m = &FIRST (cases)->model;
  LS_CHECK (m->mlp == LS_MLP_SWIGLU && m->head_dim == 128 && m->norm == LS_NORM_RMSNORM
            && !m->tied_embeddings);
  LS_CHECK_STR (FIRST (cases)->strategy.use.kernels,
                "maxtext-2024"); /* words by a product with a one-hot matrix */
}

/* XLA makes no flash attention of a program unless told to; Transformer Engine has it. */
static void
pax_has_flash_attention_by_transformer_engine_alone (void)
{
  const char *of = "JAX-Toolbox PAX tables";
  g_autoptr (GPtrArray) xla = parse (
      (Row) { .software = "pax-2024", .source = of, .attention = "flash", .dp_kind = "xla-fsdp", .zero = 3 });
  g_autoptr (GPtrArray) te = parse ((Row) {
      .software = "pax-2024-te", .source = of, .attention = "flash", .dp_kind = "xla-fsdp", .zero = 3 });
  LS_CHECK_INT (FIRST (xla)->strategy.use.attention, ==, LS_ATTENTION_UNFUSED);
  LS_CHECK_INT (FIRST (te)->strategy.use.attention, ==, LS_ATTENTION_FLASH);
}

static void
software_of_2021_has_its_kernels_and_its_batches (void)
{
  g_autoptr (GPtrArray) old = parse ((Row) { .software = "megatron-lm-2021-04" }),
                        later = parse ((Row) { .software = "megatron-lm-2022-05" });
  g_autoptr (GPtrArray) fork = parse ((Row) { .software = "megatron-lm-2023-08" }),
                        titan
      = parse ((Row) { .software = "torchtitan-2024-12-compile", .dp_kind = "fsdp2", .zero = 3 });
  g_autoptr (GPtrArray) nemo = parse ((Row) { .software = "nemo-2024" }),
                        lists
      = parse ((Row) { .software = "megatron-deepspeed-2021-zero3", .dp_kind = "deepspeed", .zero = 3 });
  const LsStrategy *a = &FIRST (old)->strategy, *b = &FIRST (later)->strategy, *c = &FIRST (fork)->strategy,
                   *d = &FIRST (titan)->strategy;
  LS_CHECK (a->use.apex_norm && a->launch.batch_sync && !a->mp.tp_async && !a->data.collective_lists
            && !a->use.grad_fusion);
  LS_CHECK (!b->use.apex_norm && b->launch.batch_sync && b->mp.tp_async);
  LS_CHECK (c->launch.batch_sync && c->launch.batch_ends && c->use.split_bias_dropout && c->use.grad_fusion
            && !b->launch.batch_ends);
  LS_CHECK (!d->mp.tp_async && !d->launch.batch_sync && d->use.attention_kernel == LS_ATTENTION_KERNEL_FA2);
  LS_CHECK (FIRST (nemo)->strategy.mp.tp_async && !FIRST (nemo)->strategy.launch.batch_sync);
  LS_CHECK (FIRST (lists)->strategy.data.collective_lists && FIRST (lists)->strategy.use.apex_norm);
}

static void
megatron_sends_slices_where_nobody_says_otherwise (void)
{
  static const struct {
    const char *software, *source, *p2p;
    int expected;
  } rows[] = {
    { "megatron-deepspeed-2022", "vTrain ground_truth_multi.csv", "batched", LS_P2P_SCATTER_GATHER },
    { "megatron-lm-2022-05", "Korthikanti 2022 Table 5", "batched", LS_P2P_SCATTER_GATHER },
    { "megatron-lm-2022-05", "a table that knows", "batched", LS_P2P_BATCHED },
    { "megatron-lm-2022-05", "a table that does not", "", LS_P2P_SCATTER_GATHER },
    { "megatron-deepspeed-2022", "vTrain ground_truth_multi.csv", "none", LS_P2P_NONE },
    { "megatron-lm-2021-04", "Megatron-LM SC21 Table 1", "batched", LS_P2P_BATCHED },
    { "bigscience-2022", "BLOOM-176B production run", "batched", LS_P2P_DEEPSPEED },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GPtrArray) cases = parse ((Row) { .software = rows[i].software,
                                                 .source = rows[i].source,
                                                 .p2p = rows[i].p2p,
                                                 .pp = 2,
                                                 .schedule = "1f1b" });
    LS_CHECK_INT (FIRST (cases)->strategy.mp.p2p, ==, rows[i].expected);
  }
}

static void
pipelines_of_deepspeed_have_its_optimizer (void)
{
  g_autoptr (GPtrArray) cases = parse ((Row) { .software = "megatron-deepspeed-2021",
                                               .source = "MT-NLG 530B",
                                               .pp = 2,
                                               .schedule = "1f1b",
                                               .p2p = "batched" });
  const LsStrategy *s = &FIRST (cases)->strategy;
  LS_CHECK (s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage == 1 && s->mp.p2p == LS_P2P_DEEPSPEED
            && !s->launch.launch_blocking);
  LS_CHECK_STR (FIRST (cases)->runs_like, "DeepSpeed");
}

/* The source says cp_comm_type a2a and that nothing overlaps; Transformer Engine has its placeholders since
 * 2.3. */
static void
simumax_says_what_it_ran (void)
{
  g_autoptr (GPtrArray) cases
      = parse ((Row) { .software = "megatron-core-0.13", .source = "SimuMax B200 v1.2", .mlp = "swiglu" });
  g_autoptr (GPtrArray) own = parse ((Row) { .software = "megatron-core-0.13", .mlp = "swiglu" });
  const LsStrategy *s = &FIRST (cases)->strategy, *o = &FIRST (own)->strategy;
  LS_CHECK (s->mp.cp_kind == LS_CP_ULYSSES && !s->mp.tp_async && s->use.wgrad_placeholders);
  LS_CHECK (o->mp.cp_kind == LS_CP_RING && o->mp.tp_async && o->use.wgrad_placeholders);
}

/* What table 4 prints: 12 L h^2 + h V parameters in billions. */
static void
zero_bubble_is_what_its_own_figures_say (void)
{
  static const struct {
    double layers, hidden, billions;
  } rows[] = { { 22, 2304, 1.5 }, { 30, 4096, 6.2 }, { 46, 5120, 14.6 }, { 62, 6144, 28.3 } };
  g_autoptr (GPtrArray) cases = parse (
      (Row) { .software = "megatron-lm-2023-08", .source = "Zero Bubble Table 4", .attention = "flash" });
  g_autoptr (GPtrArray) own = parse ((Row) { .software = "megatron-lm-2023-08", .attention = "flash" });
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    double h = rows[i].hidden, n = 12 * rows[i].layers * h * h + h * FIRST (cases)->model.vocab;
    LS_CHECK_DOUBLE (round (n / 1e8) / 10, ==, rows[i].billions);
  }
  LS_CHECK (FIRST (cases)->strategy.use.attention == LS_ATTENTION_UNFUSED
            && FIRST (cases)->model.attention == LS_ATTENTION_UNFUSED);
  LS_CHECK (FIRST (own)->strategy.use.attention == LS_ATTENTION_FLASH && FIRST (own)->model.vocab == 51200);
}

/* Zero bubble's automatic schedules, save for the table that measures what waiting costs. */
static void
automatic_zero_bubble_validates_its_norm_later (void)
{
  static const struct {
    const char *source, *schedule;
    bool waits;
  } rows[] = {
    { "Zero Bubble Table 4", "zb-2p", false },
    { "Zero Bubble Table 8", "zb-1p", false },
    { "Zero Bubble Table 4", "1f1b", true },
    { "Zero Bubble Table 7", "zb-2p", true },
    { "Qi et al. 2024 (Zero Bubble Pipeline Parallelism) Table 9", "zb-2p", false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GPtrArray) cases = parse ((Row) { .software = "megatron-lm-2023-08",
                                                 .source = rows[i].source,
                                                 .schedule = rows[i].schedule,
                                                 .pp = 8,
                                                 .p2p = "batched" });
    LS_CHECK_INT (FIRST (cases)->strategy.opt.grad_norm, ==, rows[i].waits);
  }
}

/* llm-foundry's table of H100 has two parts: 8 to 64 of them, and 128 to 512 by sweep.py. */
static void
rows_run_the_attention_that_their_source_names (void)
{
  static const struct {
    const char *cluster;
    uint32_t gpus, hidden;
    const char *recompute;
    int kernel, layout;
    bool stops;
  } rows[] = {
    { "a100-80g-roce1600", 64, 4096, "full", LS_ATTENTION_KERNEL_TRITON, LS_QKV_SPLIT, true },
    { "a100-40g-roce1600", 128, 4096, "full", LS_ATTENTION_KERNEL_TRITON, LS_QKV_SPLIT, false },
    { "dgx-h100", 8, 4096, "none", LS_ATTENTION_KERNEL_TRITON, LS_QKV_SPLIT, false },
    { "dgx-h100", 512, 4096, "none", LS_ATTENTION_KERNEL_FA2, LS_QKV_UNPADDED, false },
    { "dgx-h100", 512, 5120, "none", LS_ATTENTION_KERNEL_TRITON, LS_QKV_SPLIT, false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GPtrArray) cases = parse ((Row) { .software = "llm-foundry-2023",
                                                 .source = "MosaicML llm-foundry benchmark tables",
                                                 .cluster = rows[i].cluster,
                                                 .gpus = rows[i].gpus,
                                                 .hidden = rows[i].hidden,
                                                 .recompute = rows[i].recompute,
                                                 .attention = "flash",
                                                 .dp_kind = "fsdp1",
                                                 .zero = 3 });
    const LsStrategy *s = &FIRST (cases)->strategy;
    LS_CHECK_INT (s->use.attention_kernel, ==, rows[i].kernel);
    LS_CHECK (g_hash_table_contains (FIRST (cases)->said, "attention_kernel")
              == (rows[i].kernel == LS_ATTENTION_KERNEL_FA2));
    LS_CHECK_INT (s->use.qkv_layout, ==, rows[i].layout);
    LS_CHECK_INT (s->memory.recompute_early_stop, ==, rows[i].stops);
    LS_CHECK (s->use.loss_kernel == LS_LOSS_FUSED && s->use.train_metrics == 2
              && s->data.backward_prefetch == LS_PREFETCH_POST);
  }
}

/* A row keeps all when only its id changes. */
static void
ids_tell_nothing (void)
{
  static const char *const ids[] = { "zb-t7-28.3B-m96-ZB-2p-sync", "mpt-h100_80gb-7b-s2048-g512", "17" };
  for (guint i = 0; i < G_N_ELEMENTS (ids); i++) {
    g_autoptr (GPtrArray) cases = parse ((Row) { .software = "megatron-lm-2023-08",
                                                 .source = "Zero Bubble Table 4",
                                                 .schedule = "zb-2p",
                                                 .pp = 8,
                                                 .p2p = "batched",
                                                 .id = ids[i] });
    const LsCase *c = FIRST (cases);
    LS_CHECK_STR (c->family, "zb");
    LS_CHECK (!c->strategy.opt.grad_norm && c->strategy.use.attention_kernel == LS_ATTENTION_KERNEL_AUTO
              && c->model.vocab == 32000);
  }
}

LS_TEST_SUITE (LS_TEST (families_are_tables_or_software), LS_TEST (the_mlp_tells_the_architecture),
               LS_TEST (megatron_trains_gpt_with_dropout), LS_TEST (maxtext_has_gated_mlps_and_heads_of_128),
               LS_TEST (pax_has_flash_attention_by_transformer_engine_alone),
               LS_TEST (software_of_2021_has_its_kernels_and_its_batches),
               LS_TEST (megatron_sends_slices_where_nobody_says_otherwise),
               LS_TEST (pipelines_of_deepspeed_have_its_optimizer),
               LS_TEST (zero_bubble_is_what_its_own_figures_say),
               LS_TEST (automatic_zero_bubble_validates_its_norm_later),
               LS_TEST (rows_run_the_attention_that_their_source_names), LS_TEST (simumax_says_what_it_ran),
               LS_TEST (ids_tell_nothing))
