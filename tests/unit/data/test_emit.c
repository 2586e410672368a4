/* Pins what other programs are told, and what they are spared: a knob that a program cannot
 * express is refused by name, one that it can is in the fragment. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/emit.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "import_check.h"
#include "lower/lower.h"

static const LsModel dense = {
  .name = (char *) "dense",
  .n_layers = 8,
  .hidden = 1024,
  .n_heads = 16,
  .n_kv_heads = 4,
  .head_dim = 64,
  .ffn = 4096,
  .vocab = 5000,
  .seq = 512,
  .mlp = LS_MLP_SWIGLU,
  .norm = LS_NORM_RMSNORM,
  .position = LS_POSITION_ROPE,
  .attention = LS_ATTENTION_FLASH,
};

typedef enum { DENSE, EXPERTS, LATENT, WINDOWED } Kind;

static LsModel
model_of (Kind kind)
{
  LsModel m = dense;
  if (kind == WINDOWED)
    m.window = 128;
  if (kind == LATENT) {
    m.n_kv_heads = m.n_heads;
    m.kv_lora = 128;
    m.rope_dim = m.v_dim = 32;
  }
  if (kind != EXPERTS)
    return m;
  m.n_experts = 8;
  m.top_k = 2;
  m.expert_ffn = 512;
  m.shared_ffn = 256;
  m.moe_every = 1;
  return m;
}

/* "tp=2 sp=1": keys of a strategy. */
static bool
resolve (LsStrategy *s, const LsModel *m, const char *knobs)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_auto (GStrv) pairs = g_strsplit (knobs, " ", -1);
  ls_strategy_init (s);
  s->gpus = 16;
  for (char **pair = pairs; *pair && **pair; pair++) {
    char *value = strchr (*pair, '=');
    *value++ = '\0';
    ls_field_set_text (ls_strategy_fields, s, *pair, value, diags);
  }
  if (ls_strategy_resolve (s, m, 16, 8, diags))
    LS_CHECK (ls_strategy_balance (s, m, NULL, NULL));
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (ls_diag_list_n (diags) == 0, __FILE__, __LINE__, "\"%s\": %s", knobs, text);
  return ls_diag_list_n (diags) == 0;
}

/* expected: "!--knob" is refused so, else a line of the fragment, or of the notes. */
typedef struct {
  const char *target, *knobs, *expected;
  Kind kind;
} Case;

static const Case all_cases[] = {
  { "megatron", "tp=2 pp=2", "  --pipeline-model-parallel-size 2\n" },
  { "megatron", "tp=2 sp=1", "  --sequence-parallel\n" },
  { "megatron", "tp=2 sp=1 tp-overlap=1 tp-overlap-kind=bulk",
    "  --disable-tp-comm-overlap-ag --disable-tp-comm-overlap-rs\n" },
  { "megatron", "tp=2 sp=1 tp-overlap=1 tp-overlap-margin=0", "set_sm_margin 0 for what stays whole" },
  { "megatron", "tp=2 sp=1 sp-save-gathered=1", "!--set sp_save_gathered=1" },
  { "megatron", "tp=2 tp-async=0", "!--set tp_async=0" },
  { "megatron", "pp=4 vpp=2 p2p=batched", "  --no-overlap-p2p-communication\n" },
  { "megatron", "pp=2 vpp=2 p2p=batched", "!--p2p batched" },
  { "megatron", "pp=4 vpp=2 p2p=overlapped p2p-warmup-flush=1",
    "  --overlap-p2p-communication-warmup-flush\n" },
  { "megatron", "pp=4 vpp=2 p2p=overlapped", "  --num-virtual-stages-per-pipeline-rank 2\n" },
  { "megatron", "pp=4 p2p=scatter-gather", "!--p2p scatter-gather" },
  { "megatron", "pp=4 p2p=deepspeed", "!--p2p deepspeed" },
  { "megatron", "pp=4 schedule=gpipe", "!--schedule gpipe" },
  { "megatron", "pp=1 schedule=zb-h1", "!--schedule" },
  { "megatron", "pp=1 vpp=2 schedule=hanayo", "!--vpp" },
  { "megatron", "pp=4 layers-per-chunk=1,3,3,1", "  --pipeline-model-parallel-layout 'Et|t*3|t*3|tL'\n" },
  { "megatron", "pp=2 vpp=3 p2p=overlapped", "  --pipeline-model-parallel-layout 'Et|t*2|t*2|t|t|tL'\n" },
  { "megatron", "pp=4 layers-per-chunk=balanced",
    "  --pipeline-model-parallel-layout 'Et*2|t*2|t*2|t*2L'\n" },
  { "megatron", "pp=2 post-validation=1", "!--post-validation" },
  { "megatron", "cp=2 cp-kind=ulysses", "  --cp-comm-type a2a\n" },
  { "megatron", "cp=2 cp-kind=ring", "  --cp-comm-type p2p\n" },
  { "megatron", "cp=2 cp-balance=0", "!--cp-balance 0" },
  { "megatron", "cp=2 cp-kind=all-gather", "!--cp-kind", LATENT },
  { "megatron", "cp=2 cp-kind=ring", "  --cp-comm-type p2p\n", LATENT },
  { "megatron", "cp=2 cp-kind=all-gather", "  --cp-comm-type all_gather\n", WINDOWED },
  { "megatron", "cp=2 cp-kind=ring", "!--cp-kind", WINDOWED },
  { "megatron", "window_mask=1", "!--set window_mask=1", WINDOWED },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 window_mask=1", "!--set window_mask=1", WINDOWED },
  { "megatron", "tp=2 vocab_multiple=64", "  --vocab-size 5000\n  --make-vocab-size-divisible-by 64\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32",
    "the 5000 words are padded to 5120 here (vocab_multiple 128), not there\n" },
  { "deepspeed", "zero=3 vocab_multiple=48",
    "the 5000 words are padded to 5040 here (vocab_multiple 48), not there\n" },
  { "megatron", "zero=1", "  --use-distributed-optimizer\n" },
  { "megatron", "zero=1@4", "  --num-distributed-optimizer-instances 4\n" },
  { "megatron", "zero=1 gather-overlap=0", "  --overlap-grad-reduce\n" },
  { "megatron", "bucket-params=1000000", "  --ddp-bucket-size 1000000\n" },
  { "megatron", "zero=3", "!--dp-kind deepspeed" },
  { "megatron", "dp-kind=fsdp2",
    "  --use-torch-fsdp2 --no-gradient-accumulation-fusion --ckpt-format torch_dist\n" },
  { "megatron", "ep=4 dispatcher=deepep dispatch-sms=24",
    "type flex\n  --moe-flex-dispatcher-backend deepep --moe-flex-dispatcher-num-sms 24\n", EXPERTS },
  { "megatron", "ep=4 dispatcher=hybridep dispatch-sms=16",
    "type flex\n  --moe-flex-dispatcher-backend hybridep --moe-flex-dispatcher-num-sms 16\n", EXPERTS },
  { "megatron", "tp=2 sp=0 recompute=full partition-activations=1", "  --distribute-saved-activations\n" },
  { "megatron", "dp-kind=fsdp2 zero=2", "  --torch-fsdp2-no-reshard-after-forward\n" },
  { "megatron", "dp-kind=fsdp2 layers-per-unit=2", "!--layers-per-unit" },
  { "megatron", "dp-kind=fsdp2 narrow-shards=1", "!--set narrow_shards=1" },
  { "megatron", "recompute=full recompute-method=block recompute-layers=3",
    "--recompute-method block --recompute-num-layers 3\n" },
  { "megatron", "recompute=selective recompute-parts=core,norm", "--recompute-modules layernorm\n" },
  { "megatron", "recompute=selective recompute-parts=core,norm recompute_flash=1",
    "--recompute-modules core_attn layernorm\n" },
  { "megatron", "recompute=selective recompute-parts=core,norm attention=unfused",
    "--recompute-modules core_attn layernorm\n" },
  { "megatron", "recompute=selective recompute-parts=activation", "!--recompute-parts activation" },
  { "megatron", "recompute=selective recompute-parts=activation", "--recompute-modules moe_act\n", EXPERTS },
  { "megatron", "recompute=selective recompute-parts=mlp", "--recompute-modules mlp\n" },
  { "megatron", "recompute=selective recompute-parts=moe,norm", "--recompute-modules layernorm moe\n",
    EXPERTS },
  { "megatron", "recompute=selective recompute-parts=shared", "--recompute-modules shared_experts\n",
    EXPERTS },
  { "megatron", "ep=4 shared-overlap=1", "  --moe-shared-expert-overlap\n", EXPERTS },
  { "megatron", "offload-activations=1", "!--offload-activations" },
  { "megatron", "dtype=fp8 fp8-recipe=current", "  --fp8-format hybrid --fp8-recipe tensorwise\n" },
  { "megatron", "dtype=fp8 fp8-attention=recipe", "!--fp8-attention" },
  { "megatron", "dtype=fp8 fp8-recipe=deepseek", "!--fp8-recipe deepseek" },
  { "megatron", "dtype=fp8 fp8-recipe=mxfp8", "  --fp8-format e4m3 --fp8-recipe mxfp8\n" },
  { "megatron", "dtype=nvfp4", "  --bf16\n  --fp4-format e2m1 --fp4-recipe nvfp4\n" },
  { "megatron", "dtype=nvfp4 bf16-last=1",
    "  --first-last-layers-bf16 --num-layers-at-start-in-bf16 0 --num-layers-at-end-in-bf16 1\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 dtype=fp8 fp8-recipe=current bf16-last=1", "!--bf16-last" },
  { "megatron", "dtype=nvfp4 tp=2 sp=1 tp-overlap=1", "!--tp-overlap" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 dtype=nvfp4", "!--dtype nvfp4" },
  { "deepspeed", "zero=2 dtype=nvfp4", "!--dtype nvfp4" },
  { "megatron", "grad-dtype=fp32", "  --accumulate-allreduce-grads-in-fp32\n" },
  { "megatron", "dtype=fp16", "  --fp16\n" },
  { "megatron", "grad-norm=0", "  --clip-grad 0\n" },
  { "megatron", "ep=4", "  --expert-model-parallel-size 4\n", EXPERTS },
  { "megatron", "ep=4 expert-load=zipf:1", "zipf:1) is up to the router\n", EXPERTS },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32", "data_parallel_shard_degree = 16\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 zero=3@4", "data_parallel_replicate_degree = 4\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 zero=2", "fsdp_reshard_after_forward = \"never\"\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 narrow-shards=1", "!--set narrow_shards=1" },
  { "torchtitan", "dp-kind=fsdp2", "!--grad-dtype" },
  { "torchtitan", "dp-kind=ddp grad-dtype=fp32", "data_parallel_replicate_degree = 16\n" },
  { "torchtitan", "dp-kind=ddp grad-dtype=fp32 tp=2 sp=1", "!--dp-kind ddp" },
  { "torchtitan", "tp=2 dp-kind=fsdp2 grad-dtype=fp32", "!--tp" },
  { "torchtitan", "tp=2 sp=1 dp-kind=fsdp2 grad-dtype=fp32 tp-overlap=1",
    "enable_async_tensor_parallel = true\n" },
  { "torchtitan", "pp=4 dp-kind=fsdp2 grad-dtype=fp32 schedule=gpipe",
    "pipeline_parallel_schedule = \"GPipe\"\n" },
  { "torchtitan", "pp=4 dp-kind=fsdp2 grad-dtype=fp32 schedule=zb-h1", "!--schedule zb-h1" },
  { "torchtitan", "pp=4 vpp=2 dp-kind=fsdp2 grad-dtype=fp32", "pipeline_parallel_layers_per_stage = 1\n" },
  { "torchtitan", "pp=4 dp-kind=fsdp2 grad-dtype=fp32 layers-per-chunk=1,3,3,1", "!--layers-per-chunk" },
  { "torchtitan", "pp=4 dp-kind=fsdp2 grad-dtype=fp32 global-batch=32", "local_batch_size = 8\n" },
  { "torchtitan", "pp=8 dp-kind=fsdp2 grad-dtype=fp32 global-batch=8", "!--pp" },
  { "torchtitan", "pp=4 tp=4 sp=1 dp-kind=none grad-dtype=fp32", "!--dtype" },
  { "torchtitan", "pp=4 tp=4 sp=1 dp-kind=none dtype=fp32", "pipeline_parallel_degree = 4\n" },
  { "torchtitan", "cp=2 dp-kind=fsdp2 grad-dtype=fp32 cp-kind=ring",
    "context_parallel_rotate_method = \"alltoall\"\n" },
  { "torchtitan", "cp=2 dp-kind=fsdp2 grad-dtype=fp32 cp-kind=ulysses", "!--cp-kind ulysses" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 recompute=selective recompute-parts=op",
    "mode = \"selective\"\nselective_ac_option = \"op\"\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 recompute=selective recompute-parts=core",
    "!--recompute selective" },
  { "megatron", "recompute=selective recompute-parts=op", "!--recompute-parts op" },
  { "megatron", "recompute=selective recompute-parts=dots", "!--recompute-parts dots" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 recompute=full", "mode = \"full\"\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 ep=4", "!--grouped-gemm 0", EXPERTS },
  { "megatron", "ep=4 grouped-gemm=1", "!--grouped-gemm 1", EXPERTS },
  { "megatron", "ep=4 expert-capacity=2 expert-padding=capacity", "--moe-pad-expert-input-to-capacity",
    EXPERTS },
  { "megatron", "ep=4 expert-load=zipf:1 expert-padding=fullest", "!--expert-padding fullest", EXPERTS },
  { "torchtitan",
    "dp-kind=fsdp2 grad-dtype=fp32 ep=4 grouped-gemm=1 expert-load=zipf:1 expert-padding=fullest",
    "!--expert-padding", EXPERTS },
  { "deepspeed", "zero=2 ep=4 grouped-gemm=1", "!--grouped-gemm 1", EXPERTS },
  { "megatron", "pp=4 global-batch=32 pipeline-batch=4", "!--pipeline-batch" },
  { "torchtitan", "pp=4 dp-kind=fsdp2 grad-dtype=fp32 global-batch=64 pipeline-batch=8",
    "local_batch_size = 8\nglobal_batch_size = 64\n" },
  { "torchtitan",
    "dp-kind=fsdp2 grad-dtype=fp32 ep=4 dispatcher=deepep grouped-gemm=1 recompute=selective recompute-parts=op",
    "expert_parallel_comm_backend = \"deepep\"\n", EXPERTS },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 dtype=fp8 fp8-recipe=current",
    "recipe_name = \"tensorwise\"\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 dtype=fp8", "!--fp8-recipe" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 attention=unfused", "!--attention unfused" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 attention_kernel=cudnn",
    "which kernel attention runs (--set attention_kernel=cudnn) is up to PyTorch" },
  { "megatron", "attention_kernel=triton", "(--set attention_kernel=triton) is up to Transformer Engine" },
  { "megatron", "attention_kernel=aotriton", "--attention-backend fused" },
  { "megatron", "attention_kernel=aotriton", "NVTE_FUSED_ATTN_CK=0 in the environment" },
  { "deepspeed", "pp=4 dp-kind=deepspeed layers-per-chunk=1,3,3,1", "!--layers-per-chunk" },
  { "deepspeed", "zero=3", "\"stage3_prefetch_bucket_size\": 50000000" },
  { "deepspeed", "zero=2 reduce-bucket=1000", "\"reduce_bucket_size\": 1000" },
  { "deepspeed", "zero=3@4", "\"mics_shard_size\": 4" },
  { "deepspeed", "zero=2@4", "!--zero" },
  { "deepspeed", "zero=3 offload=parameters offload-to=nvme", "nvme_path, " },
  { "deepspeed", "zero=2 global-batch=64", "\"gradient_accumulation_steps\": 4" },
  { "deepspeed", "zero=2 dtype=fp8", "!--dtype fp8" },
  { "deepspeed", "zero=1", "!--dp-kind megatron" },
  { "deepspeed", "dp-kind=deepspeed zero=1 pp=2", "PipelineModule (num_stages=2)" },
  { "deepspeed", "dp-kind=deepspeed zero=1 pp=4 schedule=gpipe", "!--schedule" },
  { "megatron", "cuda-graphs=layer", "  --cuda-graph-impl local\n" },
  { "megatron", "cuda-graphs=step", "  --cuda-graph-impl local --cuda-graph-scope full_iteration\n" },
  { "torchtitan", "dp-kind=fsdp2 grad-dtype=fp32 cuda-graphs=layer", "!--cuda-graphs" },
  { "deepspeed", "zero=2 cuda-graphs=step", "!--cuda-graphs" },
  { "torchtitan", "dp-kind=ddp grad-dtype=fp32 dp-overlap=0", "!--dp-overlap 0" },
  { "deepspeed", "zero=2 ep=4 dispatcher=deepep", "!--dispatcher deepep", EXPERTS },
  { "deepspeed", "zero=2 ep=4 shared-overlap=1", "!--shared-overlap", EXPERTS },
  { "megatron", "dp-kind=fsdp2 grad-sync=last global-batch=64", "!--grad-sync last" },
  { "megatron", "grad-check=1", "!--set grad_check=1" },
  { "megatron", "dtype=fp8 fp8_amax_reduction=tp", "!--set fp8_amax_reduction" },
  { "megatron", "dtype=fp8 fp8_amax_reduction=none", "!--set fp8_amax_reduction" },
  { "megatron", "dtype=fp8 fp8_amax_reduction=stage", "  --fp8-format hybrid" },
};

static void
check_case (const Case *c)
{
  LsStrategy s;
  LsModel m = model_of (c->kind);
  g_autofree char *notes = NULL;
  g_autoptr (GError) error = NULL;
  if (resolve (&s, &m, c->knobs)) {
    const LsEmitJob job = { .model = &m, .strategy = &s, .title = "a job" };
    g_autofree char *text = ls_emit (&job, c->target, &notes, &error);
    g_autofree char *all = g_strconcat (text ? text : error->message, notes, NULL);
    g_autofree char *line
        = c->expected[0] == '!' ? g_strdup_printf ("\nerror: %s: ", c->expected + 1) : g_strdup (c->expected);
    ls_check_impl ((text == NULL) == (c->expected[0] == '!') && strstr (all, line), __FILE__, __LINE__,
                   "%s of \"%s\": expected \"%s\"; got\n%s", c->target, c->knobs, c->expected, all);
    LS_CHECK (text || g_error_matches (error, LS_ERROR, LS_ERROR_UNSUPPORTED));
  }
  ls_strategy_clear (&s);
}

static void
knobs_are_said_or_refused (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (all_cases); i++)
    check_case (&all_cases[i]);
}

static void
unknown_programs_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_emit_check_target ("nemo", &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE)
            && strstr (error->message, "megatron, torchtitan, deepspeed"));
  for (const char *const *name = ls_emit_targets (); *name; name++)
    LS_CHECK (ls_emit_check_target (*name, NULL));
}

/* A file's order has no name that another program knows. */
static void
an_order_of_its_own_is_refused (void)
{
  LsStrategy s;
  g_autofree char *notes = NULL;
  g_autoptr (GError) error = NULL;
  if (!resolve (&s, &dense, "pp=2"))
    return;
  const LsEmitJob job = { .model = &dense, .strategy = &s, .order = "order.csv", .title = "a job" };
  LS_CHECK (!ls_emit (&job, "megatron", &notes, &error) && strstr (error->message, "error: --order: "));
  ls_strategy_clear (&s);
}

/* --- what is written is read ----------------------------------------------------------------------- */

/* Of published models; open: what the program's file does not say, but its profile, or who reads it. */
#define TITAN "dp-kind=fsdp2 grad-dtype=fp32 p2p=batched "
static const struct {
  const char *target, *model, *knobs, *open;
} round_trips[] = {
  { "torchtitan", "llama3/8B", TITAN "tp=2 sp=1 recompute=full", "" },
  { "torchtitan", "llama3/70B", TITAN "zero=3@8 seq=4096 pp=2", "" },
  { "torchtitan", "qwen3/30B-A3B", TITAN "ep=8 grouped-gemm=1 dispatcher=deepep", "grouped-gemm=1" },
  { "torchtitan", "deepseek_v3/671B", TITAN "ep=8 grouped-gemm=1", "grouped-gemm=1" },
  { "torchtitan", "llama3/8B", TITAN "kernels=torchtitan-2025-03-compile", "" },
  { "megatron", "llama3/8B", "tp=2 sp=1 pp=2 zero=1 grad-dtype=fp32", "" },
  { "megatron", "qwen3/30B-A3B", "ep=8 dispatcher=deepep recompute=full zero=1", "" },
  { "megatron", "deepseek_v3/671B", "ep=8 tp=2 sp=1 etp=1 pp=2 layers-per-chunk=31,30", "" },
  { "megatron", "gpt2-xl", "cp=2 cp-kind=ring dtype=fp16 grad-norm=0", "" },
  { "megatron", "gpt_oss/20b", "tp=2 sp=1 dp-kind=fsdp2 zero=2 recompute=selective recompute-parts=norm",
    "" },
  { "deepspeed", "llama3/8B", "dp-kind=deepspeed zero=3 offload=parameters micro-batch=2", "seq=8192" },
  { "deepspeed", "llama3/8B", "dp-kind=deepspeed zero=1 dtype=fp16 tp=2", "seq=8192 tp=2" },
};

/* All of a strategy; of a model those that are said, whose sequences are the strategy's. */
static void
check_keys (const LsField *fields, const void *written, const void *read, const char *what)
{
  for (const LsField *f = fields; f->key; f++) {
    g_autofree char *one = ls_field_text (f, written, NULL), *other = ls_field_text (f, read, NULL);
    bool is_said = fields == ls_strategy_fields || other;
    if (f->file_only || !is_said || strcmp (f->key, "software") == 0
        || (fields == ls_model_fields && strcmp (f->key, "seq") == 0))
      continue;
    ls_check_impl (g_strcmp0 (one, other) == 0, __FILE__, __LINE__, "%s: %s is %s; it was %s", what, f->key,
                   other, one);
  }
}

/* The job of a fragment, with what is said beside it. */
static void
check_read_back (const char *fragment, const char *open, const LsModel *m, const LsStrategy *s)
{
  LsImport import;
  LsStrategy read;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_auto (GStrv) pairs = g_strsplit (open, " ", -1);
  if (!read_text (fragment, &import))
    return;
  LS_CHECK_INT (import.conflicts->len, ==, 0);
  ls_strategy_copy (&read, &import.strategy);
  read.gpus = s->gpus;
  read.vocab_multiple = s->vocab_multiple;
  read.seq = read.seq > 0 ? read.seq : import.model.seq;
  for (char **pair = pairs; *pair && **pair; pair++) {
    char *value = strchr (*pair, '=');
    *value++ = '\0';
    ls_field_set_text (ls_strategy_fields, &read, *pair, value, diags);
  }
  LS_CHECK (ls_strategy_resolve (&read, m, 16, 8, diags) && ls_strategy_balance (&read, m, NULL, NULL));
  check_keys (ls_strategy_fields, s, &read, fragment);
  bool is_whole = !strstr (open, "seq="); /* DeepSpeed's says nothing of the model */
  LS_CHECK_INT (import.model.n_layers, ==, is_whole ? m->n_layers : 0);
  if (is_whole)
    check_keys (ls_model_fields, m, &import.model, fragment);
  ls_strategy_clear (&read);
  ls_import_clear (&import);
}

static void
what_is_written_is_read_back (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (round_trips); i++) {
    LsModel m;
    bool is_decoder;
    LsStrategy s;
    g_autofree char *notes = NULL;
    g_autoptr (GError) error = NULL;
    if (!LS_CHECK (ls_model_of_name (round_trips[i].model, &m, &is_decoder)))
      continue;
    if (resolve (&s, &m, round_trips[i].knobs)) {
      const LsEmitJob job = { .model = &m, .strategy = &s, .title = "a job" };
      g_autofree char *text = ls_emit (&job, round_trips[i].target, &notes, &error);
      ls_check_impl (text != NULL, __FILE__, __LINE__, "%s: %s", round_trips[i].knobs,
                     error ? error->message : "");
      if (text)
        check_read_back (text, round_trips[i].open, &m, &s);
    }
    ls_strategy_clear (&s);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (knobs_are_said_or_refused), LS_TEST (what_is_written_is_read_back),
               LS_TEST (unknown_programs_are_refused), LS_TEST (an_order_of_its_own_is_refused))
