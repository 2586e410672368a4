/* Every combination of ways to be parallel either runs or is refused with its rule.
 *
 * Jobs are drawn from all that the strategy can say. Which are legal is written down here a
 * second time, from strategies/README.md: a job that breaks a rule must be refused with a
 * diagnostic that points at the knob of a broken rule, any other must resolve, pass the checks
 * of its plan, run, and come out with the FLOPs and the buffers that went in.
 *
 * LS_COMBINATIONS=N draws N jobs instead of a sample. */
#include <string.h>

#include "analysis/conservation.h"
#include "closed_flops.h"
#include "combination_rules.h"
#include "lower/lower.h"
#include "ls_test.h"
#include "plan/plan.h"
#include "random_job.h"

#define N_SAMPLE 250

static guint n_legal, n_refused;

static LsModel
expert_model (void)
{
  return (LsModel) {
    .name = (char *) "experts",
    .n_layers = 8,
    .hidden = 512,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 64,
    .ffn = 1024,
    .vocab = 4000,
    .seq = 256,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
    .moe.n_experts = 4,
    .moe.top_k = 2,
    .moe.expert_ffn = 512,
    .moe.shared_ffn = 512,
    .moe.every = 1,
  };
}

static bool
chance (GRand *rand, double p)
{
  return g_rand_double (rand) < p;
}

static void
draw_data_parallel (GRand *rand, LsStrategy *s)
{
  s->dp_kind = g_rand_int_range (rand, LS_DP_AUTO, LS_DP_XLA_FSDP + 1);
  bool shards_all = s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2 || s->dp_kind == LS_DP_XLA_FSDP;
  if (chance (rand, 0.4))
    s->zero_stage = (uint32_t) g_rand_int_range (rand, 0, 4);
  else
    s->zero_stage = shards_all         ? 3
        : s->dp_kind == LS_DP_MEGATRON ? pick (rand, 2, (uint32_t[]) { 0, 1 })
                                       : LS_ZERO_AUTO;
  if (chance (rand, 0.2))
    s->data.zero_group = pick (rand, 3, (uint32_t[]) { 2, 4, 3 });
  s->data.overlap = chance (rand, 0.7);
  if (!s->data.overlap)
    s->data.gather_overlap = chance (rand, 0.1) ? 1 : LS_FLAG_AUTO;
  if (chance (rand, 0.2))
    s->data.grad_sync = (int) pick (rand, 2, (uint32_t[]) { LS_GRAD_SYNC_LAST, LS_GRAD_SYNC_EACH });
  s->data.backward_prefetch = g_rand_int_range (rand, LS_PREFETCH_PRE, LS_PREFETCH_NONE + 1);
  s->data.forward_prefetch = chance (rand, 0.2) ? 1 : 0;
  s->data.limit_all_gathers = chance (rand, 0.7);
  s->data.layers_per_unit = pick (rand, 3, (uint32_t[]) { 1, 1, 2 });
  if (chance (rand, 0.1))
    s->memory.offload = g_rand_int_range (rand, LS_OFFLOAD_NONE, LS_OFFLOAD_PARAMETERS + 1);
  s->data.reduce_bucket = pick (rand, 2, (uint32_t[]) { 3000000, 500000000 });
  s->data.max_live_params = pick (rand, 3, (uint32_t[]) { 1, 2000000, 1000000000 });
  s->data.max_reuse_distance = pick (rand, 3, (uint32_t[]) { 0, 2000000, 1000000000 });
  s->data.loop_overlap = g_rand_int_range (rand, LS_LOOP_OVERLAP_GATHERS, LS_LOOP_OVERLAP_PIPELINED + 1);
  s->data.loop_copies = g_rand_int_range (rand, LS_LOOP_COPIES_NONE, LS_LOOP_COPIES_WEIGHTS + 1);
  if (chance (rand, 0.3))
    s->data.reshard_after_forward = (uint32_t) g_rand_int_range (rand, 0, 4);
}

static void
draw_pipeline (GRand *rand, LsStrategy *s)
{
  s->pp = pick (rand, 4, (uint32_t[]) { 1, 1, 2, 4 });
  s->vpp = pick (rand, 3, (uint32_t[]) { 1, 1, 2 });
  if (chance (rand, 0.6)) {
    guint n = 0;
    while (ls_sched_at (n))
      n++;
    s->schedule = g_strdup (ls_sched_at ((guint) g_rand_int_range (rand, 0, (gint32) n))->name);
  }
  s->mp.p2p = chance (rand, 0.3) ? (int) pick (
                  rand, 4,
                  (uint32_t[]) { LS_P2P_BATCHED, LS_P2P_SCATTER_GATHER, LS_P2P_OVERLAPPED, LS_P2P_DEEPSPEED })
                                 : LS_P2P_AUTO;
  s->opt.post_validation = chance (rand, 0.1);
  s->launch.launch_blocking = chance (rand, 0.1);
}

/* Chunks of unequal length, some of them empty; or layers that do not come out even. */
static void
draw_layers (GRand *rand, Ask *a)
{
  LsStrategy *s = &a->s;
  a->model.n_layers += chance (rand, 0.2) ? (uint32_t) g_rand_int_range (rand, 1, 4) : 0;
  s->layout.layer_rule = chance (rand, 0.05) ? LS_LAYER_RULE_BALANCED : LS_LAYER_RULE_AUTO;
  a->model.predict.layers = chance (rand, 0.1) ? 1 : 0;
  if (!chance (rand, 0.15))
    return;
  s->layout.n_layers_per_chunk = s->pp * s->vpp;
  s->layout.layers_per_chunk = g_new0 (uint32_t, s->layout.n_layers_per_chunk);
  for (uint32_t i = 0; i < a->model.n_layers; i++)
    s->layout.layers_per_chunk[g_rand_int_range (rand, 0, (gint32) s->layout.n_layers_per_chunk)]++;
}

static void
draw_recompute (GRand *rand, LsStrategy *s)
{
  s->recompute = g_rand_int_range (rand, LS_RECOMPUTE_NONE, LS_RECOMPUTE_FULL + 1);
  s->memory.recompute_parts = (uint32_t) g_rand_int_range (rand, 1, 8);
  if (chance (rand, 0.2))
    s->memory.recompute_parts
        |= pick (rand, 3, (uint32_t[]) { LS_RECOMPUTE_MLP, LS_RECOMPUTE_MOE, LS_RECOMPUTE_SHARED });
  if (!s->schedule && chance (rand, 0.2))
    s->memory.recompute_parts
        = pick (rand, 3,
                (uint32_t[]) { LS_RECOMPUTE_BUT_QKV, LS_RECOMPUTE_BUT_PROJECTION | LS_RECOMPUTE_BUT_UP,
                               LS_RECOMPUTE_DOTS_FLASH });
  s->memory.recompute_method = g_rand_int_range (rand, LS_RECOMPUTE_UNIFORM, LS_RECOMPUTE_BLOCK + 1);
  s->memory.recompute_layers = pick (rand, 4, (uint32_t[]) { 0, 1, 1, 2 });
  s->memory.partition_activations = chance (rand, 0.05);
  s->memory.offload_activations = chance (rand, 0.1);
}

static void
draw_numbers (GRand *rand, LsStrategy *s)
{
  s->dtype = (int) pick (rand, 6,
                         (uint32_t[]) { LS_DTYPE_BF16, LS_DTYPE_BF16, LS_DTYPE_FP16, LS_DTYPE_FP32,
                                        LS_DTYPE_FP8, LS_DTYPE_NVFP4 });
  s->fp8.recipe = g_rand_int_range (rand, LS_FP8_DELAYED, LS_FP8_MXFP8 + 1);
  bool is_torchaos = s->fp8.recipe == LS_FP8_CURRENT || s->fp8.recipe == LS_FP8_MXFP8;
  s->fp8.linear
      = is_torchaos && s->lora.rank == 0 ? g_rand_int_range (rand, 0, LS_FP8_LINEAR_TORCHAO + 1) : 0;
  s->fp8.bf16_last = chance (rand, 0.2);
  s->fp8.bf16_experts = chance (rand, 0.2);
  bool can_mix = !s->fp8.linear && s->lora.rank == 0
      && (s->dtype == LS_DTYPE_NVFP4 || s->fp8.recipe != LS_FP8_DELAYED);
  for (uint32_t m = 1; can_mix && chance (rand, 0.3) && m < LS_N_MODULES; m++)
    s->fp8.module_formats.of[m]
        = (uint8_t) (chance (rand, 0.3) ? g_rand_int_range (rand, 0, LS_N_FORMATS) : 0);
  s->experts.dispatch_fp8
      &= !s->fp8.bf16_experts && s->fp8.module_formats.of[LS_MODULE_EXPERT_FC1] != LS_FORMAT_BF16;
  s->fp8.params = !s->fp8.bf16_last && !s->fp8.bf16_experts && !ls_formats_any (&s->fp8.module_formats)
      && chance (rand, 0.2);
}

/* Where it is modelled. */
static void
draw_fp8_attention (GRand *rand, Ask *a)
{
  LsStrategy *s = &a->s;
  const LsModel *m = &a->model;
  bool is_in_blocks = s->dtype == LS_DTYPE_FP8 && s->fp8.recipe == LS_FP8_BLOCKWISE,
       has_part = s->cp > 1 || s->docs.lengths || s->use.attention == LS_ATTENTION_UNFUSED
      || m->attention == LS_ATTENTION_UNFUSED || m->sides.encoder_layers > 0,
       is_far
      = m->index.heads > 0 || ls_model_is_compressed (m) || m->head_dim > 192 || ls_model_v_dim (m) > 128;
  int first = m->head_dim > 128 ? LS_FP8_ATTENTION_CURRENT : LS_FP8_ATTENTION_DELAYED;
  if (chance (rand, 0.3) && !has_part && !is_in_blocks && !is_far)
    s->fp8.attention = g_rand_int_range (rand, first, LS_FP8_ATTENTION_MXFP8 + 1);
}

static void
draw_exchanges (GRand *rand, LsStrategy *s, bool has_experts)
{
  s->mp.ep_overlap = chance (rand, has_experts ? 0.3 : 0.02) ? 1 : LS_FLAG_AUTO;
  s->mp.delay_wgrad = chance (rand, s->mp.ep_overlap == 1 ? 0.5 : 0.02) ? 1 : LS_FLAG_AUTO;
  s->experts.dispatcher
      = chance (rand, has_experts ? 0.2 : 0.02) ? LS_DISPATCHER_DEEPEP : LS_DISPATCHER_ALL_TO_ALL;
  s->experts.dispatch_fp8 = chance (rand, 0.3);
  s->experts.dispatch_margin = chance (rand, 0.3);
  s->fp8.act_store = chance (rand, 0.1);
  s->experts.shared_overlap = chance (rand, has_experts ? 0.2 : 0.02);
  if (s->zero_stage == 3 || s->zero_stage == LS_ZERO_AUTO)
    s->mp.ep_overlap = s->mp.delay_wgrad = s->experts.shared_overlap = 0; /* may be 3 */
}

/* Adapters on frozen weights, where they are modelled. */
static void
draw_adapters (GRand *rand, Ask *a)
{
  LsStrategy *s = &a->s;
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  bool can = !ls_dtype_is_scaled ((LsDtype) s->dtype) && !(sched && (sched->is_split || sched->always_pairs))
      && s->mp.delay_wgrad != 1 && s->dp_kind != LS_DP_XLA_FSDP && s->dp_kind != LS_DP_PS
      && s->memory.offload == LS_OFFLOAD_NONE && s->tp <= a->model.n_kv_heads;
  can &= s->recompute != LS_RECOMPUTE_SELECTIVE || s->memory.recompute_parts == LS_RECOMPUTE_CORE;
  can &= a->model.predict.layers == 0;
  s->lora.rank = chance (rand, 0.2) && can ? 8 : 0;
  s->lora.qlora = chance (rand, 0.3) && a->model.moe.n_experts == 0 && s->dp_kind != LS_DP_DEEPSPEED
      && s->dp_kind != LS_DP_AUTO;
}

static void
draw_lengths (GRand *rand, LsStrategy *s)
{
  g_autofree char *why = NULL;
  if (!chance (rand, 0.3))
    return;
  s->docs.lengths = g_strdup ("uniform:1:300");
  s->docs.drawn = ls_lengths_parse (s->docs.lengths, &why);
  s->docs.draw = chance (rand, 0.3) ? LS_LENGTHS_MEAN : LS_LENGTHS_EACH;
  s->docs.balance = chance (rand, 0.3) ? LS_LENGTHS_SORTED : LS_LENGTHS_AS_DRAWN;
}

static void
draw (GRand *rand, Ask *a)
{
  LsStrategy *s = &a->s;
  ls_strategy_init (s);
  bool has_experts = chance (rand, 0.4);
  a->model = has_experts ? expert_model () : small_model (rand);
  s->tp = pick (rand, 4, (uint32_t[]) { 1, 2, 4, 8 });
  s->sp = s->tp > 1 && chance (rand, 0.6);
  s->cp = pick (rand, 3, (uint32_t[]) { 1, 1, 2 });
  s->mp.cp_kind = g_rand_int_range (rand, LS_CP_RING, LS_CP_ULYSSES + 1);
  s->mp.cp_steps = g_rand_int_range (rand, LS_CP_STEPS_TE, LS_CP_STEPS_PYTORCH_COMPILE + 1);
  s->mp.cp_balance = chance (rand, 0.7);
  s->use.attention = s->cp > 1 && chance (rand, 0.9) ? LS_ATTENTION_FLASH : LS_ATTENTION_AUTO;
  s->ep = has_experts || chance (rand, 0.05) ? pick (rand, 3, (uint32_t[]) { 1, 2, 4 }) : 1;
  s->experts.etp = has_experts && chance (rand, 0.3) ? pick (rand, 2, (uint32_t[]) { 1, 2 }) : 0;
  s->experts.load = has_experts && chance (rand, 0.2) ? g_strdup ("zipf:0.5") : NULL;
  s->experts.capacity = chance (rand, has_experts ? 0.3 : 0.02) ? 1.1 : 0;
  s->experts.padding
      = has_experts ? pick (rand, 4, (uint32_t[]) { 0, 0, 1, s->experts.capacity > 0 ? 2 : 1 }) : 0;
  s->mp.tp_overlap = chance (rand, 0.15);
  s->mp.tp_overlap_kind = g_rand_int_range (rand, LS_TP_OVERLAP_BULK, LS_TP_OVERLAP_RING + 1);
  s->mp.sp_save_gathered = chance (rand, 0.1);
  draw_data_parallel (rand, s);
  draw_exchanges (rand, s, has_experts);
  draw_pipeline (rand, s);
  draw_layers (rand, a);
  draw_recompute (rand, s);
  draw_numbers (rand, s);
  s->micro_batch = pick (rand, 2, (uint32_t[]) { 1, 2 });
  uint32_t dp = pick (rand, s->tp * s->pp < 16 ? 4 : 2, (uint32_t[]) { 1, 2, 4, 8 });
  s->gpus = s->tp * s->pp * s->cp * dp;
  a->n_micro_batches = s->pp * pick (rand, 2, (uint32_t[]) { 1, 2 });
  s->global_batch = dp * s->micro_batch * a->n_micro_batches;
  bool may_be_deepspeed = s->dp_kind == LS_DP_AUTO || s->dp_kind == LS_DP_DEEPSPEED;
  s->data.collective_lists = may_be_deepspeed && s->zero_stage == 3 && chance (rand, 0.5);
  draw_adapters (rand, a);
  draw_lengths (rand, s);
  draw_fp8_attention (rand, a);
  s->data.bucket_params = chance (rand, 0.3) ? 300000 : 0;
}

/* --- one job --------------------------------------------------------------------------- */

static void
check_refused (const GPtrArray *broken, const char *text, const char *knobs)
{
  bool names_one = false;
  for (guint i = 0; i < broken->len; i++)
    names_one |= strstr (text, g_ptr_array_index (broken, i)) != NULL;
  ls_check_impl (names_one, __FILE__, __LINE__, "%s: breaks %s, refused for\n%s", knobs,
                 (char *) g_ptr_array_index (broken, 0), text);
  n_refused++;
}

static void
run (const Ask *a, const char *knobs)
{
  LsClusterSpec spec = tiny_dgx ((a->s.gpus + 7) / 8);
  g_autoptr (LsCluster) cluster = ls_cluster_build (&spec, NULL);
  g_autoptr (GError) error = NULL;
  LsCalibration calibration;
  ls_calibration_init_roofline (&calibration);
  LsRunOptions options;
  ls_run_options_init (&options);
  options.n_steps = 2;
  g_autoptr (LsPlan) plan = ls_lower (&a->model, &a->s, NULL, &error);
  if (plan && ls_plan_check (plan, &error) && ls_conserves_flops (plan, &a->model, &a->s, &error)) {
    computes_closed_flops (plan, &a->model, &a->s);
    g_autoptr (LsTimeline) t = ls_run (plan, cluster, &calibration, &nccl, &options, NULL, &error);
    LS_CHECK (!t || t->window_end > t->window_start);
  }
  ls_check_impl (!error, __FILE__, __LINE__, "%s: %s", knobs, error ? error->message : "");
  ls_calibration_clear (&calibration);
  n_legal++;
}

static char *
describe (const Ask *a)
{
  const LsStrategy *s = &a->s;
  return g_strdup_printf (
      "%s gpus %u tp %u sp %d cp %u (%d, balance %d) ep %u etp %u pp %u vpp %u m %u, %s, zero %d@%u %s, overlap %d %d, sync %d,"
      " offload %d, recompute %d %u %d %u %d %d, tp_overlap %d %d, p2p %d, pv %d, dtype %s, unit %u, lists %d, mb %u, reshard %d, live %" G_GUINT64_FORMAT
      ", capacity %g, given %u, lengths %s %d %d",
      a->model.name, s->gpus, s->tp, s->sp, s->cp, s->mp.cp_kind, s->mp.cp_balance, s->ep, s->experts.etp,
      s->pp, s->vpp, a->n_micro_batches, s->schedule ? s->schedule : "auto", (int) s->zero_stage,
      s->data.zero_group, ls_dp_kind_name (s->dp_kind), s->data.overlap, s->data.gather_overlap,
      s->data.grad_sync, s->memory.offload, s->recompute, s->memory.recompute_parts,
      s->memory.recompute_method, s->memory.recompute_layers, s->memory.partition_activations,
      s->memory.offload_activations, s->mp.tp_overlap, s->mp.tp_overlap_kind, s->mp.p2p,
      s->opt.post_validation, ls_dtype_name ((LsDtype) s->dtype), s->data.layers_per_unit,
      s->data.collective_lists, s->micro_batch, (int) s->data.reshard_after_forward, s->data.max_live_params,
      s->experts.capacity, s->layout.n_layers_per_chunk, s->docs.lengths ? s->docs.lengths : "whole",
      s->docs.draw, s->docs.balance);
}

static void
check_job (GRand *rand)
{
  Ask a;
  draw (rand, &a);
  g_autofree char *knobs = describe (&a);
  g_autoptr (GPtrArray) broken = broken_rules (&a);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy asked;
  ls_strategy_copy (&asked, &a.s);
  bool is_legal = ls_strategy_resolve (&a.s, &a.model, a.s.gpus, 8, diags);
  LS_CHECK_INT (ls_strategy_resolve (&asked, &a.model, asked.gpus, 8, NULL), ==, is_legal);
  ls_strategy_clear (&asked);
  g_autofree char *text = ls_diag_list_format (diags);
  if (!is_legal && broken->len > 0)
    check_refused (broken, text, knobs);
  else if (is_legal && broken->len == 0)
    run (&a, knobs);
  else
    ls_check_impl (false, __FILE__, __LINE__, "%s: %s %s", knobs,
                   is_legal ? "not refused, but breaks" : "refused:",
                   is_legal ? (char *) g_ptr_array_index (broken, 0) : text);
  ls_strategy_clear (&a.s);
}

static void
legal_combinations_run (void)
{
  const char *n_text = g_getenv ("LS_COMBINATIONS");
  guint64 n = n_text ? g_ascii_strtoull (n_text, NULL, 10) : N_SAMPLE;
  for (guint64 i = 0; i < n; i++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed ((guint32) i);
    check_job (rand);
  }
  if (n_text)
    g_print ("%u ran, %u were refused\n", n_legal, n_refused);
  LS_CHECK (n_legal > n / 8);
  LS_CHECK (n_refused > n / 8);
}

/* --- what draws have found ---------------------------------------------------------------- */

/* dp 1: experts have copies, the rest has none. */
static void
norms_of_copied_experts_are_passed_on (void)
{
  Ask a = { .model = expert_model () };
  ls_strategy_init (&a.s);
  a.s.schedule = g_strdup ("zb-h1");
  a.s.tp = 2;
  a.s.pp = 2;
  a.s.gpus = a.s.global_batch = 4;
  a.s.experts.etp = a.s.zero_stage = 1;
  a.s.sp = a.s.opt.post_validation = true;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_strategy_resolve (&a.s, &a.model, a.s.gpus, 8, diags));
  run (&a, "experts that tp copies");
  ls_strategy_clear (&a.s);
}

/* Pipes both ways: the first stage is on the last rank too, whose passes over the same documents are those of
 * the first: one of 256 tokens, or two of 128, which the last micro-batches of copies have or not. */
static void
mirrored_stages_reduce_the_same_buckets (void)
{
  for (uint32_t seed = 0; seed < 8; seed++) {
    g_autofree char *why = NULL;
    Ask a = { .model = expert_model () };
    ls_strategy_init (&a.s);
    a.s.schedule = g_strdup ("dualpipe");
    a.s.pp = 4;
    a.s.gpus = 8;
    a.s.global_batch = 2 * 8;
    a.s.data.bucket_params = 100000;
    a.s.docs.lengths = g_strdup ("fixed:384");
    a.s.docs.drawn = ls_lengths_parse (a.s.docs.lengths, &why);
    a.s.docs.seed = seed;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LS_CHECK (ls_strategy_resolve (&a.s, &a.model, a.s.gpus, 8, diags));
    run (&a, "pipes both ways");
    ls_strategy_clear (&a.s);
  }
}

/* Too many ops are refused, not counted out in memory. */
static void
a_gather_per_parameter_is_refused (void)
{
  LsModel model = expert_model ();
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_strategy_init (&s);
  s.gpus = 2;
  s.dp_kind = LS_DP_DEEPSPEED;
  s.zero_stage = 2;
  s.data.allgather_bucket = 1;
  LS_CHECK (ls_strategy_resolve (&s, &model, s.gpus, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&model, &s, NULL, &error);
  LS_CHECK (!plan && error && error->code == LS_ERROR_UNSUPPORTED);
  ls_strategy_clear (&s);
}

/* Lists of parameters are copied in the 16 bits that they are gathered in. */
static void
lists_of_parameters_are_copied_in_nvfp4_jobs (void)
{
  Ask a = { .model = expert_model () };
  a.model.moe.n_experts = 0;
  ls_strategy_init (&a.s);
  a.s.dtype = LS_DTYPE_NVFP4;
  a.s.dp_kind = LS_DP_DEEPSPEED;
  a.s.zero_stage = 3;
  a.s.data.collective_lists = true;
  a.s.gpus = a.s.global_batch = 4;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_strategy_resolve (&a.s, &a.model, a.s.gpus, 8, diags));
  run (&a, "lists in nvfp4");
  ls_strategy_clear (&a.s);
}

LS_TEST_SUITE (LS_TEST (legal_combinations_run), LS_TEST (lists_of_parameters_are_copied_in_nvfp4_jobs),
               LS_TEST (norms_of_copied_experts_are_passed_on), LS_TEST (a_gather_per_parameter_is_refused),
               LS_TEST (mirrored_stages_reduce_the_same_buckets))
