/* Pins the defaults (src/manual/formats/strategy.md), what each knob derives, and the exact
 * refusal of each rule. */
#include "ls_test.h"
#include "strategy/strategy.h"

/* GPT-3 175B (Brown et al. 2020, Table 2.1), as Megatron-LM trains it. */
static const LsModel gpt3 = { .n_layers = 96,
                              .hidden = 12288,
                              .n_heads = 96,
                              .n_kv_heads = 96,
                              .head_dim = 128,
                              .ffn = 49152,
                              .vocab = 51200,
                              .seq = 2048,
                              .attention = LS_ATTENTION_UNFUSED };

/* Llama 3 70B (Llama team 2024, Table 3): 8 key-value heads. */
static const LsModel llama3 = { .n_layers = 80,
                                .hidden = 8192,
                                .n_heads = 64,
                                .n_kv_heads = 8,
                                .head_dim = 128,
                                .ffn = 28672,
                                .vocab = 128256,
                                .seq = 8192,
                                .attention = LS_ATTENTION_FLASH };

/* What ls_strategy_resolve() fills in, on one line. */
static char *
summary (const LsStrategy *s)
{
  return g_strdup_printf ("gpus %u dp %u %s%s zero %u@%u batch %u p2p %s %s%s%s seq %u %s %s/%s", s->gpus,
                          s->dp, ls_dp_kind_name (s->dp_kind), s->data.overlap ? " overlap" : "",
                          s->zero_stage, s->data.zero_group, s->global_batch,
                          ls_enum_name (ls_p2p_names, s->mp.p2p), s->schedule, s->sp ? " sp" : "",
                          s->mp.tp_overlap ? " tp-overlap" : "", s->seq,
                          s->use.attention == LS_ATTENTION_FLASH ? "flash" : "unfused",
                          ls_dtype_name (s->dtype), ls_dtype_name (s->opt.grad_dtype));
}

typedef struct {
  const LsModel *model;
  uint32_t n_gpus;
  void (*set) (LsStrategy *s);
  const char *expected; /* a summary, or diagnostics */
} Case;

/* Resolved twice: the second time nothing may change. */
static void
check_case (const Case *c)
{
  LsStrategy s, asked;
  ls_strategy_init (&s);
  c->set (&s);
  ls_strategy_copy (&asked, &s);

  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean is_legal = ls_strategy_resolve (&s, c->model, c->n_gpus, 8, diags);
  LS_CHECK_INT (is_legal, ==, ls_diag_list_n (diags) == 0);
  g_autofree char *text = is_legal ? summary (&s) : ls_diag_list_format (diags);
  LS_CHECK_STR (text, c->expected);

  if (is_legal) {
    LS_CHECK (ls_strategy_resolve (&s, c->model, c->n_gpus, 8, diags));
    g_autofree char *again = summary (&s);
    LS_CHECK_STR (again, c->expected);
  }
  LS_CHECK_INT (ls_strategy_resolve (&asked, c->model, c->n_gpus, 8, NULL), ==, is_legal);
  ls_strategy_clear (&asked);
  ls_strategy_clear (&s);
}

#define CHECK_CASES(cases)                                                                                   \
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)                                                           \
    check_case (&(cases)[i]);

#define SET(name, ...)                                                                                       \
  static void name (LsStrategy *s)                                                                           \
  {                                                                                                          \
    __VA_ARGS__;                                                                                             \
  }

/* ---- what is filled in ---- */

SET (nothing, (void) s)
SET (megatron_175b, s->tp = 8; s->pp = 8; s->vpp = 3; s->sp = true; s->global_batch = 64;
     s->dtype = LS_DTYPE_FP16)
SET (pipeline_only, s->pp = 4; s->micro_batch = 2)
SET (tensor_only, s->tp = 8; s->opt.grad_dtype = LS_DTYPE_FP32)
SET (void_knobs, s->sp = s->mp.tp_overlap = true; s->zero_stage = 3; s->data.zero_group = 2;
     s->dp_kind = LS_DP_FSDP1; s->mp.p2p = LS_P2P_OVERLAPPED)
SET (part_of_the_cluster, s->gpus = 4; s->dp = 2; s->tp = 2)
SET (zero_1_in_one_group, s->zero_stage = 1; s->data.zero_group = 16)
SET (group_without_zero, s->data.zero_group = 4)
SET (ddp, s->dp_kind = LS_DP_DDP; s->data.overlap = false; s->schedule = g_strdup ("1f1b"))
SET (given_sequence, s->seq = 1024; s->use.attention = LS_ATTENTION_FLASH; s->dtype = LS_DTYPE_FP32)
SET (tp_across_nodes, s->tp = 16; s->pp = 2; s->mp.p2p = LS_P2P_SCATTER_GATHER)

static void
what_is_not_given_is_filled_in (void)
{
  static const Case cases[] = {
    { &gpt3, 16, nothing,
      "gpus 16 dp 16 megatron overlap zero 0@0 batch 16 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 64, megatron_175b,
      "gpus 64 dp 1 none zero 0@0 batch 64 p2p batched interleaved-1f1b sp seq 2048 unfused fp16/fp16" },
    { &llama3, 8, pipeline_only,
      "gpus 8 dp 2 megatron overlap zero 0@0 batch 16 p2p batched 1f1b seq 8192 flash bf16/bf16" },
    { &llama3, 8, tensor_only, "gpus 8 dp 1 none zero 0@0 batch 1 p2p none none seq 8192 flash bf16/fp32" },
    { &llama3, 1, void_knobs, "gpus 1 dp 1 none zero 0@0 batch 1 p2p none none seq 8192 flash bf16/bf16" },
    { &gpt3, 8, part_of_the_cluster,
      "gpus 4 dp 2 megatron overlap zero 0@0 batch 2 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 16, zero_1_in_one_group,
      "gpus 16 dp 16 megatron overlap zero 1@0 batch 16 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 16, group_without_zero,
      "gpus 16 dp 16 megatron overlap zero 0@0 batch 16 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, ddp, "gpus 8 dp 8 ddp zero 0@0 batch 8 p2p none 1f1b seq 2048 unfused bf16/bf16" },
    { &gpt3, 1, given_sequence, "gpus 1 dp 1 none zero 0@0 batch 1 p2p none none seq 1024 flash fp32/fp32" },
    { &llama3, 32, tp_across_nodes,
      "gpus 32 dp 1 none zero 0@0 batch 2 p2p scatter-gather 1f1b seq 8192 flash bf16/bf16" },
  };
  CHECK_CASES (cases)
}

/* A schedule that leaves no choice of vpp need not be told. */
static void
a_vee_has_two_chunks (void)
{
  static const char *const schedules[] = { "zbv", "v-half", "dualpipev", "zb-h1" };
  for (guint i = 0; i < G_N_ELEMENTS (schedules); i++) {
    LsStrategy s;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    ls_strategy_init (&s);
    s.pp = 8;
    s.global_batch = 16;
    s.schedule = g_strdup (schedules[i]);
    LS_CHECK (ls_strategy_resolve (&s, &gpt3, 8, 8, diags));
    LS_CHECK_INT (s.vpp, ==, i < 3 ? 2 : 1);
    ls_strategy_clear (&s);
  }
}

/* ---- what is illegal ---- */

SET (zeros, s->tp = s->pp = s->cp = s->ep = s->vpp = s->micro_batch = 0; s->zero_stage = 4)
SET (too_many_gpus, s->gpus = 16)
SET (gpus_left_over, s->tp = 2; s->pp = 3)
SET (replica_that_overflows, s->tp = s->pp = s->cp = UINT32_MAX)
SET (dp_too_small, s->tp = 2; s->dp = 2)
SET (dp_too_large, s->tp = 2; s->dp = 5)
SET (experts_of_a_dense_model, s->tp = 2; s->ep = 2; s->experts.etp = 4; s->experts.capacity = 1.5;
     s->experts.load = g_strdup ("even"))
SET (experts_cut_less, s->tp = 2; s->experts.etp = 1)
SET (heads, s->tp = 5)
SET (odd_sequence, s->tp = 4; s->sp = true; s->seq = 1023)
SET (batch, s->tp = 2; s->micro_batch = 2; s->global_batch = 12)
SET (huge_batch, s->pp = 8; s->micro_batch = UINT32_MAX)
SET (layers, s->pp = 99)
SET (misspelt_schedule, s->pp = 8; s->schedule = g_strdup ("zb-3p"))
SET (three_chunks_of_a_vee, s->pp = 8; s->vpp = 3; s->schedule = g_strdup ("zbv"))
SET (chunks_without_interleaving, s->pp = 4; s->vpp = 2; s->schedule = g_strdup ("1f1b"))
SET (interleaving_without_chunks, s->pp = 4; s->schedule = g_strdup ("interleaved-1f1b"))
SET (interleaving_in_half_groups, s->pp = 4; s->vpp = 2; s->global_batch = 12)
SET (interleaving_of_bad_batch, s->pp = 4; s->schedule = g_strdup ("interleaved-1f1b"); s->global_batch = 13)
SET (too_many_forwards, s->pp = 8; s->vpp = 4; s->global_batch = 4000000000u)
SET (no_reduction, s->dp_kind = LS_DP_NONE)
SET (sharded_ddp, s->dp_kind = LS_DP_DDP; s->zero_stage = 1)
SET (stages_that_do_not_talk, s->pp = 8; s->mp.p2p = LS_P2P_NONE)
SET (overlap_where_1f1b_waits, s->pp = 8; s->mp.p2p = LS_P2P_OVERLAPPED)
SET (deepspeed_beside_sp, s->tp = 2; s->pp = 4; s->sp = true; s->mp.p2p = LS_P2P_DEEPSPEED)
SET (byte_training, s->dtype = LS_DTYPE_BYTE)
SET (other_gradients, s->dtype = LS_DTYPE_FP16; s->opt.grad_dtype = LS_DTYPE_BF16)
SET (short_gradients, s->dtype = LS_DTYPE_FP32; s->opt.grad_dtype = LS_DTYPE_BF16)

static void
what_is_illegal_is_refused_with_its_rule (void)
{
  static const Case cases[] = {
    { &gpt3, 8, zeros,
      "error: /tp: expected at least 1; got 0\n"
      "error: /pp: expected at least 1; got 0\n"
      "error: /cp: expected at least 1; got 0\n"
      "error: /ep: expected at least 1; got 0\n"
      "error: /vpp: expected at least 1; got 0\n"
      "error: /micro_batch: expected at least 1; got 0\n"
      "error: /zero: expected a stage from 0 to 3; got 4\n" },
    { &gpt3, 8, too_many_gpus, "error: /gpus: expected at most the 8 of the cluster; got 16\n" },
    { &gpt3, 8, gpus_left_over, "error: /gpus: expected a multiple of tp * pp * cp = 2 * 3 * 1; got 8\n" },
    { &gpt3, 8, dp_too_small,
      "error: /dp: expected gpus / (tp * pp * cp) = 8 / (2 * 1 * 1) = 4; got 2\n"
      "note: dp follows from gpus; to use a part of the cluster, set gpus to tp * pp * cp * dp = 4\n" },
    { &gpt3, 8, dp_too_large, "error: /dp: expected gpus / (tp * pp * cp) = 8 / (2 * 1 * 1) = 4; got 5\n" },
    { &llama3, 8, experts_of_a_dense_model,
      "error: /ep: expected 1, as the model has no experts; got 2\n"
      "error: /etp: expected tp = 2 or nothing, as the model has no experts; got 4\n"
      "error: /expert_capacity: expected none, as the model has no experts; got 1.5\n"
      "error: /expert_load: expected none, as the model has no experts; got \"even\"\n" },
    { &llama3, 8, experts_cut_less,
      "error: /etp: expected tp = 2 or nothing, as the model has no experts; got 1\n" },
    { &llama3, 10, heads,
      "error: /tp: expected a divisor of the model's 64 heads; got 5\n"
      "error: /tp: expected a divisor or a multiple of the model's 8 key-value heads; got 5\n"
      "error: /tp: expected a divisor of the model's ffn width 28672; got 5\n" },
    { &gpt3, 8, odd_sequence, "error: /sp: expected a sequence length divisible by tp = 4; got 1023\n" },
    { &gpt3, 8, batch,
      "error: /global_batch: expected a multiple of dp * micro_batch = 4 * 2 = 8; got 12\n" },
    { &gpt3, 8, huge_batch,
      "error: /global_batch: expected dp * micro_batch * pp = 1 * 4294967295 * 8 to stay below 2^32\n" },
    { &gpt3, 99, layers,
      "error: /pp: expected pp * vpp to be at most layers + 2 = 96 + 2, as only the first and the last chunk may be without layers;"
      " got 99 * 1 = 99\n" },
    { &gpt3, 4, chunks_without_interleaving,
      "error: /schedule: 1f1b: vpp must be 1: several chunks per rank need interleaved-1f1b; got pp 4, vpp 2,"
      " 4 micro-batches\n" },
    { &gpt3, 4, interleaving_without_chunks,
      "error: /schedule: interleaved-1f1b: vpp must be greater than 1: one chunk per rank is 1f1b; got pp 4, vpp 1,"
      " 4 micro-batches\n" },
    { &gpt3, 8, interleaving_in_half_groups,
      "error: /schedule: interleaved-1f1b: the number of micro-batches must be a multiple of pp; got pp 4, vpp 2,"
      " 6 micro-batches\n" },
    { &gpt3, 8, too_many_forwards,
      "error: /global_batch: expected fewer than 2^31 chunk forwards per step on a rank; got 4000000000"
      " micro-batches, vpp 4\n" },
    { &gpt3, 8, no_reduction,
      "error: /dp_kind: expected a way to reduce gradients, as dp * cp = 8 * 1; got none\n" },
    { &gpt3, 8, sharded_ddp,
      "error: /zero: expected 0, as ddp replicates optimizer, gradients and parameters (--dp-kind "
      "fsdp2, deepspeed do not); got 1\n" },
    { &gpt3, 8, misspelt_schedule,
      "error: /schedule: expected a pipeline schedule; got \"zb-3p\"\n"
      "note: did you mean \"zb-1p\"?\n" },
    { &gpt3, 8, three_chunks_of_a_vee,
      "error: /schedule: zbv: vpp must be 2: the model goes down the ranks and back; got pp 8, vpp 3, 8 micro-batches\n" },
    { &gpt3, 8, stages_that_do_not_talk,
      "error: /p2p: expected a way to send between stages, as pp = 8; got none\n" },
    { &gpt3, 8, overlap_where_1f1b_waits,
      "error: /p2p: expected batched or scatter-gather, as 1f1b waits for every p2p (Megatron-LM overlaps it only with"
      " interleaved-1f1b); got overlapped\n" },
    { &gpt3, 8, deepspeed_beside_sp,
      "error: /p2p: expected another kind with sequence parallelism (sp), whose activations are cut already; got deepspeed\n" },
    { &gpt3, 8, byte_training, "error: /dtype: expected fp16, bf16, fp8, nvfp4 or fp32; got byte\n" },
    { &gpt3, 8, other_gradients, "error: /grad_dtype: expected fp16 or fp32 with dtype fp16; got bf16\n" },
    { &gpt3, 8, short_gradients, "error: /grad_dtype: expected fp32 with dtype fp32; got bf16\n" },
  };
  CHECK_CASES (cases)
}

/* A broken rule does not hide the others, not even where numbers are missing. */
static void
all_broken_rules_are_reported (void)
{
  static const Case cases[] = {
    { &gpt3, 8, interleaving_of_bad_batch,
      "error: /global_batch: expected a multiple of dp * micro_batch = 2 * 1 = 2; got 13\n"
      "error: /schedule: interleaved-1f1b: vpp must be greater than 1: one chunk per rank is 1f1b; got pp 4, vpp 1,"
      " 4 micro-batches\n" },
    { &gpt3, 8, replica_that_overflows,
      "error: /gpus: expected a multiple of tp * pp * cp = 4294967295 * 4294967295 * 4294967295; got 8\n"
      "error: /tp: expected a divisor of the model's 96 heads; got 4294967295\n"
      "error: /tp: expected a divisor or a multiple of the model's 96 key-value heads; got 4294967295\n"
      "error: /tp: expected a divisor of the model's ffn width 49152; got 4294967295\n"
      "error: /cp: expected a sequence length divisible by 8589934590 (cp, twice for the balance); got 2048\n"
      "error: /cp: expected flash attention with cp 4294967295; got unfused\n"
      "error: /pp: expected pp * vpp to be at most 4096; got 4294967295 * 1\n" },
  };
  CHECK_CASES (cases)
}

/* ---- context parallelism, overlapped tensor parallelism ---- */

SET (odd_ring, s->cp = 4; s->seq = 8196)
SET (even_gather, odd_ring (s); s->mp.cp_kind = LS_CP_ALL_GATHER; s->mp.cp_balance = false)
SET (cut_twice, s->cp = 2; s->tp = 4; s->sp = true; s->seq = 1032)
SET (many_heads, s->cp = 4; s->tp = 4; s->mp.cp_kind = LS_CP_ULYSSES)
SET (repeated_heads, many_heads (s); s->dp_kind = LS_DP_FSDP2)
SET (unfused_ring, s->cp = 2; s->use.attention = LS_ATTENTION_UNFUSED)
SET (pieces_of_nothing, s->tp = 8; s->mp.tp_overlap = true)
SET (pieces_of_16, s->tp = 16; s->sp = s->mp.tp_overlap = true)

static void
sequences_are_cut_by_rules (void)
{
  static const Case cases[] = {
    { &llama3, 8, odd_ring,
      "error: /cp: expected a sequence length divisible by 8 (cp, twice for the balance); got 8196\n" },
    { &llama3, 8, even_gather,
      "gpus 8 dp 2 megatron overlap zero 0@0 batch 2 p2p none none seq 8196 flash bf16/bf16" },
    { &llama3, 8, cut_twice,
      "error: /cp: expected a sequence length divisible by 16 (cp, twice for the balance, tp for sp); got 1032\n" },
    { &llama3, 16, many_heads,
      "error: /cp: expected a divisor of the 16 heads and 2 key-value heads of a rank, which ulysses cuts; got 4\n" },
    { &llama3, 32, repeated_heads,
      "gpus 32 dp 2 fsdp2 overlap zero 3@0 batch 2 p2p none none seq 8192 flash bf16/bf16" },
    { &llama3, 8, unfused_ring, "error: /cp: expected flash attention with cp 2; got unfused\n" },
    { &gpt3, 8, pieces_of_nothing,
      "error: /tp_overlap: expected sequence parallelism (sp) with it, whose collectives it cuts in pieces; got none\n" },
    { &gpt3, 16, pieces_of_16,
      "error: /tp_overlap: expected tp groups inside a node, as pieces move by copy engines: a divisor of 8, the size of a node; got tp 16\n" },
  };
  CHECK_CASES (cases)
}

/* ---- ways to be data parallel ---- */

SET (megatron_each, s->dp_kind = LS_DP_MEGATRON; s->data.grad_sync = LS_GRAD_SYNC_EACH)
SET (partial_xla, s->dp_kind = LS_DP_XLA_FSDP; s->zero_stage = 1)
SET (groups_of_three, s->zero_stage = 1; s->data.zero_group = 3)

static void
ways_have_their_limits (void)
{
  static const Case cases[] = {
    { &gpt3, 8, megatron_each,
      "error: /grad_sync: expected last, as Megatron-LM reduces with the last micro-batch only; got each\n" },
    { &gpt3, 8, partial_xla, "error: /zero: expected 3, as XLA's FSDP shards everything; got 1\n" },
    { &gpt3, 8, groups_of_three,
      "error: /zero: expected groups whose size divides dp * cp = 8 * 1; got 1@3\n" },
  };
  CHECK_CASES (cases)
}

/* ---- what has no mechanism yet ---- */

SET (two_kinds_of_groups, s->dp_kind = LS_DP_FSDP2; s->zero_stage = 3; s->data.zero_group = 4;
     s->data.reshard_after_forward = 2)

static void
what_is_not_built_is_refused_as_such (void)
{
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_strategy_init (&s);
  two_kinds_of_groups (&s);
  LS_CHECK (!ls_strategy_resolve (&s, &gpt3, 8, 8, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  LS_CHECK (g_str_has_prefix (
      text, "error: /reshard_after_forward: groups of 2 after a forward go neither with zero 3@group nor"));
  ls_strategy_clear (&s);
}

/* ---- sharding and offloading ---- */

SET (zero_3, s->zero_stage = 3)
SET (deep_pipe, s->pp = 2; s->dp = 4; s->zero_stage = 2)
SET (offload, s->memory.offload = LS_OFFLOAD_OPTIMIZER)
SET (offload_all, s->memory.offload = LS_OFFLOAD_PARAMETERS)
SET (offload_to_drives, s->memory.offload = LS_OFFLOAD_OPTIMIZER; s->memory.offload_to = LS_OFFLOAD_TO_NVME)
SET (offload_replicated, offload (s); s->zero_stage = 0)
SET (offload_of_ddp, offload (s); s->dp_kind = LS_DP_DDP)
SET (offload_parameters_early, offload_all (s); s->zero_stage = 2)
SET (offload_drives_early, offload_to_drives (s); s->zero_stage = 2)
SET (servers_shard, s->dp_kind = LS_DP_PS; s->zero_stage = 1)

/* Who offloads is deepspeed's, and one rank has something to offload too. */
static void
sharding_and_offloading_have_their_rules (void)
{
  static const Case cases[] = {
    { &gpt3, 8, zero_3,
      "gpus 8 dp 8 deepspeed overlap zero 3@0 batch 8 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, offload,
      "gpus 8 dp 8 deepspeed overlap zero 2@0 batch 8 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 1, offload,
      "gpus 1 dp 1 deepspeed overlap zero 2@0 batch 1 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, offload_all,
      "gpus 8 dp 8 deepspeed overlap zero 3@0 batch 8 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, offload_to_drives,
      "gpus 8 dp 8 deepspeed overlap zero 3@0 batch 8 p2p none none seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, deep_pipe,
      "error: /zero: expected 0 or 1 with pp 2, as DeepSpeed's pipeline engine accumulates whole gradients; got 2\n" },
    { &gpt3, 8, offload_replicated,
      "error: /offload: expected zero 1 to 3 with it, whose optimizer is cut; got zero 0\n" },
    { &gpt3, 8, offload_of_ddp,
      "error: /offload: expected none with dp_kind ddp, as only --dp-kind deepspeed offloads; got optimizer\n" },
    { &gpt3, 8, offload_parameters_early,
      "error: /offload: expected none or optimizer with zero 2, as only stage 3 gathers parameters when"
      " they are used; got parameters\n" },
    { &gpt3, 8, offload_drives_early,
      "error: /offload_to: expected cpu with zero 2, as ZeRO-Infinity is stage 3; got nvme\n" },
    { &gpt3, 8, servers_shard,
      "error: /zero: expected 0, as servers sum gradients and each rank keeps the rest; got 1\n" },
  };
  CHECK_CASES (cases)
}

/* ---- schedules with replicas or versions of the parameters ---- */

SET (pipedream, s->pp = 8; s->schedule = g_strdup ("pipedream"))
SET (batched_pipedream, pipedream (s); s->mp.p2p = LS_P2P_BATCHED)
SET (short_pipedream, pipedream (s); s->global_batch = 7)
SET (sharded_pipedream, pipedream (s); s->pp = 4; s->zero_stage = 1)
SET (scaled_pipedream, pipedream (s); s->dtype = LS_DTYPE_FP16)
SET (chimera, s->pp = 8; s->schedule = g_strdup ("chimera"))
SET (dualpipe, s->pp = 8; s->schedule = g_strdup ("dualpipe"); s->global_batch = 16)
SET (odd_dualpipe, dualpipe (s); s->global_batch = 15)

#define PIPEDREAM "error: /schedule: pipedream: "

/* Pipes replicate the model: they do not divide it further. */
static void
replicas_and_versions_have_their_rules (void)
{
  static LsModel tied;
  tied = gpt3;
  tied.tied_embeddings = true;
  const Case cases[] = {
    { &gpt3, 8, chimera, "gpus 8 dp 1 none zero 0@0 batch 8 p2p batched chimera seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, dualpipe,
      "gpus 8 dp 1 none zero 0@0 batch 16 p2p batched dualpipe seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, odd_dualpipe,
      "error: /schedule: dualpipe: the number of micro-batches must be even: half of them go in each"
      " direction; got pp 8, vpp 1, 15 micro-batches\n" },
    { &gpt3, 8, pipedream,
      "gpus 8 dp 1 none zero 0@0 batch 8 p2p overlapped pipedream seq 2048 unfused bf16/bf16" },
    { &gpt3, 8, batched_pipedream,
      PIPEDREAM "p2p must be overlapped: sends and receives are in the background;"
                " got pp 8, vpp 1, 8 micro-batches\n" },
    { &gpt3, 8, short_pipedream,
      PIPEDREAM "there must be at least pp micro-batches: as many are under way;"
                " got pp 8, vpp 1, 7 micro-batches\n" },
    { &tied, 8, pipedream,
      PIPEDREAM "the model's embeddings must not be tied: the first and the last stage update theirs at"
                " different times; got pp 8, vpp 1, 8 micro-batches\n" },
    { &gpt3, 8, sharded_pipedream,
      PIPEDREAM "data parallelism must be ddp, or megatron with zero 0: versions of the weights are"
                " kept whole; got pp 4, vpp 1, 4 micro-batches\n" },
    { &gpt3, 8, scaled_pipedream,
      PIPEDREAM "dtype must not be fp16: with loss scaling no stage updates before all have looked"
                " for infinities; got pp 8, vpp 1, 8 micro-batches\n" },
  };
  CHECK_CASES (cases)
}

static void
refusals_carry_their_code (void)
{
  static const struct {
    void (*set) (LsStrategy *s);
    int code;
  } cases[] = {
    { heads, LS_ERROR_CONFLICT },
    { layers, LS_ERROR_CONFLICT },
    { too_many_forwards, LS_ERROR_LIMIT },
    { batched_pipedream, LS_ERROR_CONFLICT },
    { two_kinds_of_groups, LS_ERROR_UNSUPPORTED },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    cases[i].set (&s);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GError) error = NULL;
    ls_strategy_resolve (&s, &gpt3, MAX (8, s.tp * s.pp), 8, diags);
    ls_diag_list_to_error (diags, &error);
    LS_CHECK (g_error_matches (error, LS_ERROR, cases[i].code));
    ls_strategy_clear (&s);
  }
}

/* ---- models ---- */

typedef struct {
  LsModel m;
  LsModelRules of;
  const char *key, *wrong; /* NULL: nothing is */
} WrongModel;

/* A small model with so many layers, and more. */
#define SMALL(layers_, ...)                                                                                  \
  {                                                                                                          \
    .n_layers = layers_, .hidden = 1024, .n_heads = 8, .n_kv_heads = 2, .head_dim = 128, .ffn = 4096,        \
    .seq = 4096, __VA_ARGS__                                                                                 \
  }
#define INDEXER(norms_, window_, block_)                                                                     \
  SMALL (12, .norms = norms_, .attn = { .window = window_, .full_every = 4 },                                \
         .index = { .heads = 4, .dim = 64, .block = block_ })

/* Lists and their rules: of keys, of which a rule may have one of several. */
static void
models_have_their_rules (void)
{
  static uint32_t kv_heads[] = { 2, 3 }, ffn[LS_MAX_MODEL_KINDS + 1], n_ffn = LS_MAX_MODEL_KINDS;
  for (uint32_t i = 0; i <= n_ffn; i++)
    ffn[i] = 64 * (i + 1);
  const WrongModel cases[] = {
    { SMALL (n_ffn, .layers = { .ffn = ffn, .n_ffn = n_ffn }), LS_MODEL_LISTS, NULL, NULL },
    { SMALL (n_ffn + 1, .layers = { .ffn = ffn, .n_ffn = n_ffn + 1 }), LS_MODEL_LISTS, "layers",
      "expected layers of at most 64 kinds" },
    { SMALL (8, .layers = { .kv_heads = kv_heads, .n_kv_heads = 2 }), LS_MODEL_LISTS, "layers",
      "expected heads of keys and values that divide the heads of each layer" },
    { INDEXER (LS_NORMS_PRE, 512, 128), LS_MODEL_KEYS, NULL, NULL },
    { INDEXER (LS_NORMS_PRE, 512, 100), LS_MODEL_KEYS, "index_heads",
      "expected \"index_block\" that divides the \"window\" of chosen keys" },
    { INDEXER (LS_NORMS_PRE, 0, 0), LS_MODEL_KEYS, "index_heads",
      "expected \"index_heads\" and \"index_dim\" with a \"window\" of chosen keys, and neither "
      "\"index_every\" nor \"index_first\" without latent attention" },
    { INDEXER (LS_NORMS_SHARED, 512, 0), LS_MODEL_KEYS, "index_heads",
      "expected norms before each half and neither patterns, lists of widths, mixers, chunks, an encoder nor "
      "q_lora with an indexer of plain attention" },
    { SMALL (8, .v_dim = 64, .attn = { .full_k_is_v = true }), LS_MODEL_ATTENTION, "v_dim",
      "expected values as wide as keys with an encoder, and where keys are values" },
    { SMALL (8, .layers = { .block_mlp_rank = 4 }), LS_MODEL_LAYERS, "block_mlp_rank",
      "expected \"shared_blocks\" with layers B, and layers B with it" },
    { SMALL (8, .layers = { .pattern = (char *) "mB" }), LS_MODEL_LAYERS, "layer_pattern",
      "expected \"shared_blocks\" with layers B, and layers B with it" },
    { SMALL (8, .layers = { .pattern = (char *) "" }, .moe = { .n_experts = 8, .top_k = 9 }),
      LS_MODEL_EXPERTS, "top_k", "expected \"top_k\" from 1 to the number of experts" },
    { SMALL (8, .layers = { .pattern = (char *) "" },
             .moe = { .n_experts = 8, .top_k = 2, .expert_ffn = 64, .every = 1 }),
      LS_MODEL_EXPERTS, NULL, NULL },
    { SMALL (8, .layers = { .pattern = (char *) "" }), LS_MODEL_PATTERN, "layer_pattern",
      "expected letters of A, B, D, M, P, S, H, a, m, d and e" },
    { SMALL (8, .predict = { .shared = true }), LS_MODEL_PARTS, "predict_shared",
      "missing key \"predict_layers\", which others go with" },
    { SMALL (8, .moe = { .every = 1 }), LS_MODEL_EXPERTS, "experts",
      "missing key \"experts\", which others go with" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *key = NULL;
    LS_CHECK_STR (ls_model_wrong (&cases[i].m, cases[i].of, &key), cases[i].wrong);
    LS_CHECK_STR (key, cases[i].key);
  }
}

/* ---- ownership and names ---- */

static void
a_copy_owns_what_it_points_to (void)
{
  static const uint32_t layers_per_chunk[] = { 3, 4 };
  LsStrategy a, b;
  ls_strategy_init (&a);
  a.name = g_strdup ("a");
  a.schedule = g_strdup ("1f1b");
  a.layout.layers_per_chunk = g_memdup2 (layers_per_chunk, sizeof layers_per_chunk);
  a.layout.n_layers_per_chunk = 2;

  ls_strategy_copy (&b, &a);
  ls_strategy_clear (&a);
  LS_CHECK (a.schedule == NULL);
  LS_CHECK_STR (b.name, "a");
  LS_CHECK_STR (b.schedule, "1f1b");
  LS_CHECK_INT (b.layout.layers_per_chunk[1], ==, 4);
  ls_strategy_clear (&b);
  ls_strategy_clear (NULL);
}

static void
what_a_program_has_is_lent (void)
{
  LsStrategy a, b;
  ls_strategy_init (&a);
  ls_strategy_init (&b);
  a.program.attention_else = b.program.attention_else + 1;
  ls_strategy_lend_own (&b, &a);
  LS_CHECK_INT (b.program.attention_else, ==, a.program.attention_else);
  ls_strategy_clear (&a);
  ls_strategy_clear (&b);
}

static void
names_are_those_of_the_flags (void)
{
  static const char *const dp_kinds[]
      = { "auto", "none", "ps", "ddp", "megatron", "fsdp1", "fsdp2", "deepspeed", "xla-fsdp" };
  static const char *const p2ps[] = { "auto", "none", "batched", "scatter-gather", "overlapped" };
  static const char *const recomputes[] = { "none", "selective", "full" };
  for (int i = 0; i < (int) G_N_ELEMENTS (dp_kinds); i++)
    LS_CHECK_STR (ls_dp_kind_name (i), dp_kinds[i]);
  for (int i = 0; i < (int) G_N_ELEMENTS (p2ps); i++)
    LS_CHECK_STR (ls_enum_name (ls_p2p_names, i), p2ps[i]);
  for (int i = 0; i < (int) G_N_ELEMENTS (recomputes); i++)
    LS_CHECK_STR (ls_recompute_names[i].name, recomputes[i]);
}

LS_TEST_SUITE (LS_TEST (what_is_not_given_is_filled_in), LS_TEST (a_vee_has_two_chunks),
               LS_TEST (what_is_illegal_is_refused_with_its_rule), LS_TEST (all_broken_rules_are_reported),
               LS_TEST (sequences_are_cut_by_rules), LS_TEST (ways_have_their_limits),
               LS_TEST (what_is_not_built_is_refused_as_such),
               LS_TEST (sharding_and_offloading_have_their_rules),
               LS_TEST (replicas_and_versions_have_their_rules), LS_TEST (refusals_carry_their_code),
               LS_TEST (models_have_their_rules), LS_TEST (a_copy_owns_what_it_points_to),
               LS_TEST (what_a_program_has_is_lent), LS_TEST (names_are_those_of_the_flags))
