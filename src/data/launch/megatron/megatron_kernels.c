/* Kernels, CUDA graphs and the optimizer: what options say of them, and what of it is not simulated. */
#include <string.h>

#include "data/launch/megatron/megatron_rules.h"
#include "strategy/dp_traits.h"

/* What turns a fusion on or off that the releases have otherwise: single elementwise kernels, which are taken
 * as the release launches them by itself. */
static const char *const fusions[] = {
  "no-rope-fusion",
  "no-bias-gelu-fusion",
  "no-bias-swiglu-fusion",
  "no-bias-dropout-fusion",
  "no-masked-softmax-fusion",
  "no-persist-layer-norm",
  "no-gradient-reduce-div-fusion",
  "cross-entropy-loss-fusion",
  "moe-permute-fusion",
  "moe-router-fusion",
  "apply-layernorm-1p",
  "fp16-lm-cross-entropy",
  "embed-layernorm",
};

static void
tell_fusions (LaunchJob *job)
{
  for (guint i = 0; i < G_N_ELEMENTS (fusions); i++)
    if (option_is_on (job, fusions[i]))
      import_infer (job->import, "--%s: kernels are those that the release launches without it", fusions[i]);
}

/* Megatron-LM has no option for it: programs that set its configuration do. Nothing is copied around
 * attention then. */
void
megatron_fused_rope (LaunchJob *job)
{
  if (option_is_on (job, "fused-single-qkv-rope"))
    import_set_strategy (job->import, "kernels",
                         option_is_on (job, "use-transformer-engine-op-fuser")
                             ? "megatron-core-op-fuser+megatron-core-fused-rope"
                             : "megatron-core-fused-rope",
                         "--fused-single-qkv-rope --use-transformer-engine-op-fuser");
}

/* A list behind those that the job has by now. */
static void
join_kernels (LaunchJob *job, const char *list, const char *option)
{
  const char *kernels = job->import->strategy.kernels;
  g_autofree char *joined = g_strconcat (kernels ? kernels : "megatron-core", "+", list, NULL);
  import_set_strategy (job->import, "kernels", joined, option);
}

/* The router sends so many tokens to an expert that their rows need no padding in fp8. */
static void
set_padding (LaunchJob *job)
{
  if (option_is_on (job, "moe-router-padding-for-fp8")
      || option_is_on (job, "moe-router-padding-for-quantization"))
    join_kernels (job, "megatron-core-router-padding",
                  "--moe-router-padding-for-fp8 --moe-router-padding-for-quantization");
}

/* What a variable of the processes is, as scripts and recipes set it; NULL: none does. */
static const char *
variable_of (const LaunchJob *job, const char *name)
{
  const char *text = job->variables ? g_hash_table_lookup (job->variables, name) : NULL;
  g_autofree char *of_recipe = g_strconcat ("env_vars.", name, NULL);
  text = text ? text : option_text (job, name);
  return text ? text : option_text (job, of_recipe);
}

/* Of each kind of norm Transformer Engine has kernels of its own and cuDNN's
 * (transformer_engine/common/normalization/common.cpp). */
static void
set_norms (LaunchJob *job)
{
  static const char forward[] = "NVTE_NORM_FWD_USE_CUDNN", backward[] = "NVTE_NORM_BWD_USE_CUDNN";
  bool fwd = g_strcmp0 (variable_of (job, forward), "1") == 0,
       bwd = g_strcmp0 (variable_of (job, backward), "1") == 0;
  if (fwd != bwd)
    import_unknown (job->import, "%s without %s: norms are taken to be Transformer Engine's own both ways",
                    fwd ? forward : backward, fwd ? backward : forward);
  if (!fwd || !bwd)
    return;
  import_note_word (job->import, forward, "kernels");
  join_kernels (job, "transformer-engine-cudnn-norms", forward);
}

/* Transformer Engine's choice of attention, by what processes are told (environment.json), where a
 * recipe or a file of variables says it. */
static void
set_te_attention (LaunchJob *job)
{
  static const char flash[] = "NVTE_FLASH_ATTN", fused[] = "NVTE_FUSED_ATTN";
  bool no_flash = g_strcmp0 (variable_of (job, flash), "0") == 0,
       no_fused = g_strcmp0 (variable_of (job, fused), "0") == 0;
  if (no_flash && no_fused) {
    import_note_word (job->import, fused, "attention");
    import_set_strategy (job->import, "attention", "unfused", fused);
  } else if (no_flash || no_fused) {
    import_note_word (job->import, no_flash ? flash : fused, "attention_kernel");
    import_set_strategy (job->import, "attention_kernel", no_flash ? "cudnn" : "fa2",
                         no_flash ? flash : fused);
  }
}

void
megatron_engine (LaunchJob *job)
{
  set_norms (job);
  set_te_attention (job);
}

/* Products of weights' gradients add to them, which Megatron-LM does by default and not with its FSDP. */
static void
set_grad_fusion (LaunchJob *job)
{
  const LsStrategy *s = &job->import->strategy;
  if (!option_is_on (job, "no-gradient-accumulation-fusion") || ls_dp_traits (s->dp_kind)->is_fsdp)
    return;
  if (s->grad_dtype == LS_DTYPE_FP32)
    import_set_strategy (job->import, "grad_apart", "1", "--no-gradient-accumulation-fusion");
  else
    import_set_strategy (job->import, "grad_fusion", "0", "--no-gradient-accumulation-fusion");
}

/* Transformer Engine does not ask; layers of Megatron-LM's own then wait for their all-reduce
 * (core/tensor_parallel/layers.py). */
static void
set_async (LaunchJob *job)
{
  const LsStrategy *s = &job->import->strategy;
  const char *impl = option_text (job, "transformer-impl");
  if (!option_is_on (job, "no-async-tensor-model-parallel-allreduce") || s->tp <= 1 || s->sp)
    return;
  if (impl && strcmp (impl, "local") != 0)
    import_infer (job->import,
                  "--no-async-tensor-model-parallel-allreduce: Transformer Engine does not heed it");
  else
    import_set_strategy (job->import, "tp_async", "0", "--no-async-tensor-model-parallel-allreduce");
}

/* Of transformer_config.py: a graph for each layer, of Megatron-LM or of Transformer Engine, or of an
 * iteration, which was a scope until core 0.17 and is an implementation since. */
void
megatron_graphs (LaunchJob *job)
{
  const char *impl = option_text (job, "cuda-graph-impl"), *scope = option_text (job, "cuda-graph-scope");
  bool is_on = option_is_on (job, "enable-cuda-graph") || option_is_on (job, "external-cuda-graph")
      || (impl && strcmp (impl, "none") != 0);
  bool is_step = (scope && strstr (scope, "full_iteration")) || g_strcmp0 (impl, "full_iteration") == 0;
  if (is_on)
    import_set_strategy (job->import, "cuda_graphs", is_step ? "step" : "layer",
                         "--enable-cuda-graph --external-cuda-graph --cuda-graph-impl --cuda-graph-scope");
  if (is_on && scope && *scope && !strstr (scope, "full"))
    import_unknown (job->import, "--cuda-graph-scope %s: a graph of all of a layer is taken", scope);
}

/* The master of the precision-aware optimizer: 16 bits are all that a bf16 weight lacks of an fp32 one
 * (store_param_remainders). */
static void
set_master (LaunchJob *job)
{
  const char *master = option_text (job, "main-params-dtype");
  if (!option_is_on (job, "use-precision-aware-optimizer"))
    return;
  if (job->import->strategy.dtype != LS_DTYPE_FP16)
    import_set_strategy (job->import, "master",
                         master && (strcmp (master, "fp16") == 0 || strstr (master, "float16")) ? "fp16"
                                                                                                : "remainder",
                         "--use-precision-aware-optimizer");
}

/* What is gathered of mxfp8 weights lies where gradients do, or in a buffer of its own. */
static void
tell_buffers (LaunchJob *job)
{
  const LsStrategy *s = &job->import->strategy;
  const char *grads = option_text (job, "main-grads-dtype");
  bool gathers = s->dtype == LS_DTYPE_FP8 && s->fp8_params && s->fp8_recipe == LS_FP8_MXFP8;
  if (gathers && !option_is_on (job, "reuse-grad-buf-for-mxfp8-param-ag"))
    import_unknown (job->import,
                    "--fp8-param-gather: the 16-bit buffer that mxfp8 weights are gathered in, without "
                    "--reuse-grad-buf-for-mxfp8-param-ag");
  if (grads && option_is_on (job, "use-precision-aware-optimizer")
      && (strstr (grads, "32") != NULL) != (s->grad_dtype == LS_DTYPE_FP32))
    import_unknown (job->import, "--main-grads-dtype %s: taken for that in which gradients are reduced",
                    grads);
}

/* In the namespace of arguments, which a log prints and other programs fill, by the options that turn off
 * what is on by itself. */
void
megatron_namespace (LaunchWords *words)
{
  static const char *const members[][2]
      = { { "gradient_accumulation_fusion", "no-gradient-accumulation-fusion" },
          { "async_tensor_model_parallel_allreduce", "no-async-tensor-model-parallel-allreduce" } };
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    if (g_hash_table_contains (words->off, members[i][0]))
      launch_words_add_value (words, members[i][1], "true");
}

/* Of whose options what changes neither time nor memory is not asked for. */
static void
set_muon (LaunchJob *job, bool is_dealt)
{
  const char *mode = option_text (job, "muon-tp-mode"), *steps = option_text (job, "muon-num-ns-steps");
  if (is_dealt) {
    import_set_strategy (job->import, "zero", "1", "--optimizer dist_muon");
    import_set_strategy (job->import, "optimizer_cut", "tensors", "--optimizer dist_muon");
  }
  if (job->import->strategy.tp > 1)
    import_set_strategy (job->import, "optimizer_tp", mode ? mode : "blockwise", "--muon-tp-mode");
  if (steps && strcmp (steps, "5") != 0)
    import_unknown (job->import, "--muon-num-ns-steps %s: taken for 5", steps);
  if (option_is_on (job, "muon-no-split-qkv"))
    import_unknown (job->import, "--muon-no-split-qkv: matrices of Q, K and V are taken apart");
}

void
megatron_optimizer (LaunchJob *job)
{
  const char *optimizer = option_text (job, "optimizer"), *momentum = option_text (job, "sgd-momentum");
  bool is_dealt = optimizer && strcmp (optimizer, "dist_muon") == 0;
  import_set_optimizer (job->import, optimizer, momentum ? g_ascii_strtod (momentum, NULL) : 0.9,
                        "--optimizer");
  if (is_dealt || (optimizer && strcmp (optimizer, "muon") == 0))
    set_muon (job, is_dealt);
  set_master (job);
  tell_buffers (job);
  set_grad_fusion (job);
  set_async (job);
}

static void
tell_memory (LaunchJob *job)
{
  if (option_number (job, "empty-unused-memory-level") > 0)
    import_unknown (job->import,
                    "--empty-unused-memory-level: memory is given back and taken again in each step");
}

/* A dump has the option where it is on, a command line too. */
static void
tell_experts (LaunchJob *job)
{
  if (job->import->model.n_experts > 0 && !option_is_on (job, "moe-grouped-gemm")
      && !option_is_there (job, "deepspeed"))
    import_infer (
        job->import,
        "products of experts are grouped here; without --moe-grouped-gemm they run one after another");
  if (option_is_there (job, "moe-router-topk-limited-devices"))
    import_infer (job->import, "tokens fall on all experts alike, however groups of them are chosen");
}

/* The flex dispatcher is DeepEP unless another backend is named. */
void
megatron_dispatcher (LaunchJob *job)
{
  const char *type = option_text (job, "moe-token-dispatcher-type"),
             *backend = option_text (job, "moe-flex-dispatcher-backend");
  guint64 n_sms = option_number (job, "moe-flex-dispatcher-num-sms");
  bool is_flex = type && strcmp (type, "flex") == 0;
  if (!backend || strcmp (backend, "hybridep") != 0)
    n_sms = n_sms ? n_sms : option_number (job, "moe-deepep-num-sms");
  if (!megatron_may_have_experts (job))
    return;
  if (type && strcmp (type, "allgather") == 0)
    import_unknown (job->import, "--moe-token-dispatcher-type allgather: tokens are sent as by alltoall");
  if (!is_flex)
    return;
  bool is_hybrid = backend && strcmp (backend, "hybridep") == 0;
  if (is_hybrid && n_sms == 0) /* core/transformer/transformer_config.py: moe_hybridep_num_sms */
    n_sms
        = option_number (job, "moe-hybridep-num-sms") > 0 ? option_number (job, "moe-hybridep-num-sms") : 16;
  import_set_strategy (job->import, "dispatcher", is_hybrid ? "hybridep" : "deepep",
                       "--moe-token-dispatcher-type --moe-enable-deepep --moe-flex-dispatcher-backend");
  if (backend && !is_hybrid && strcmp (backend, "deepep") != 0)
    import_unknown (job->import,
                    "--moe-flex-dispatcher-backend %s: its kernels are taken to be as fast as DeepEP's",
                    backend);
  if (n_sms > 0)
    import_set_strategy_count (job->import, "dispatch_sms", n_sms,
                               "--moe-flex-dispatcher-num-sms --moe-*ep-num-sms");
}

/* Without an exchange there is nothing to run beside. */
static void
set_shared (LaunchJob *job)
{
  bool is_there = job->import->model.shared_ffn > 0 && job->import->strategy.ep > 1;
  if (is_there && option_is_on (job, "moe-shared-expert-overlap"))
    import_set_strategy (job->import, "shared_overlap", "1", "--moe-shared-expert-overlap");
}

/* Ranks that hold parts of a sequence are not simulated with it. */
void
megatron_fp8_attention (LaunchJob *job)
{
  const LsStrategy *s = &job->import->strategy;
  if (!option_is_on (job, "fp8-dot-product-attention") || !ls_dtype_is_scaled ((LsDtype) s->dtype))
    return;
  if (s->cp > 1)
    import_unknown (job->import,
                    "--fp8-dot-product-attention with parts of a sequence: attention is taken to "
                    "be computed in bf16");
  else
    import_set_strategy (job->import, "fp8_attention", "recipe", "--fp8-dot-product-attention");
}

void
megatron_kernels (LaunchJob *job)
{
  tell_fusions (job);
  megatron_fused_rope (job);
  set_padding (job);
  set_norms (job);
  megatron_graphs (job);
  megatron_optimizer (job);
  tell_memory (job);
  tell_experts (job);
  megatron_dispatcher (job);
  set_shared (job);
}
