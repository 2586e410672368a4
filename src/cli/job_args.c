#include "cli/job_args.h"

#include <string.h>

typedef struct {
  char *key, *value;
} Knob;

static void
knob_clear (gpointer data)
{
  Knob *knob = data;
  g_free (knob->key);
  g_free (knob->value);
}

void
cli_job_init (CliJob *job)
{
  *job = (CliJob) { .knobs = g_array_new (FALSE, FALSE, sizeof (Knob)) };
  g_array_set_clear_func (job->knobs, knob_clear);
}

void
cli_job_clear (CliJob *job)
{
  g_array_unref (job->knobs);
  g_free (job->strategy);
}

static void
add_knob (CliJob *job, const char *key, const char *value)
{
  Knob knob = { g_strdup (key), g_strdup (value) };
  g_array_append_val (job->knobs, knob);
}

/* "--tp 8" becomes tp = 8; a switch may do without its value 1. */
static gboolean
on_knob (const char *flag, const char *value, gpointer job, GError **error)
{
  add_knob (job, flag + strspn (flag, "-"), value ? value : "1");
  return TRUE;
}

static gboolean
on_no_grad_norm (const char *flag, const char *value, gpointer job, GError **error)
{
  if (value)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--no-grad-norm takes no value; got \"%s\"", value);
  add_knob (job, "grad-norm", "0");
  return !value;
}

#define KNOB(name, text, arg) \
  { name, 0, G_OPTION_FLAG_FILENAME, G_OPTION_ARG_CALLBACK, (gpointer) on_knob, text, arg }
#define SWITCH(name, callback, text) \
  { name, 0, G_OPTION_FLAG_OPTIONAL_ARG | G_OPTION_FLAG_FILENAME, G_OPTION_ARG_CALLBACK, (gpointer) callback, text, NULL }

static const GOptionEntry knobs[] = {
  KNOB ("model", "What is trained: a name (lockstep list models), our JSON or a Hugging Face config.json",
        "NAME|FILE"),
  KNOB ("cluster", "Where: a name (lockstep list clusters) or a file", "NAME|FILE"),
  KNOB ("gpu-calibration", "What its kernels take (lockstep calibrate writes such a file); default: as its GPU names", "NAME|FILE"),
  KNOB ("nccl", "What NCCL reaches (lockstep calibrate --nccl writes such a file); default: as its GPU names", "NAME|FILE"),
  KNOB ("trace", "Replays a trace instead: a name (lockstep list traces) or a file", "NAME|FILE"),
  KNOB ("nodes", "Nodes of the cluster; default: the file's, or as many as the GPUs need", "N"),
  KNOB ("slice", "Chips of a TPU slice along x, y (and z); default: as the GPUs need, with --nodes the largest",
        "XxY[xZ]"),
  KNOB ("gpus", "GPUs used; default: all of the nodes", "N"),
  KNOB ("tp", "Tensor parallel degree; default 1", "N"),
  KNOB ("pp", "Pipeline stages; default 1", "N"),
  KNOB ("dp", "Data parallel degree; default gpus / (tp pp cp)", "N"),
  KNOB ("cp", "Context parallel degree; default 1", "N"),
  KNOB ("cp-kind", "How attention gets the keys and values of other ranks: ring, all-gather, ulysses; default ring", "KIND"),
  KNOB ("cp-balance", "Each context-parallel rank has an early and a late part of a sequence; default 1", "0|1"),
  KNOB ("ep", "Expert parallel degree; default 1", "N"),
  KNOB ("etp", "Tensor parallel degree of experts; default tp", "N"),
  KNOB ("expert-capacity", "Tokens that an expert takes at most, over the mean; default 0: none are dropped", "X"),
  KNOB ("expert-load", "How tokens fall on experts: even (default), zipf:S, lognormal:SIGMA:SEED, or weights A,B,...", "TEXT"),
  KNOB ("vpp", "Model chunks per stage (virtual pipeline); default 1", "N"),
  SWITCH ("sp", on_knob, "Sequence parallelism beside tensor parallelism; no effect with tp 1"),
  SWITCH ("sp-save-gathered", on_knob, "With sp: keep gathered inputs for the backward instead of gathering them again"),
  KNOB ("zero", "ZeRO stage 0 to 3, or N@G: within groups of G ranks; default 0, 3 with fsdp1, fsdp2 and xla-fsdp", "N[@G]"),
  KNOB ("dp-kind", "none, ps, ddp, megatron, fsdp1, fsdp2, deepspeed, xla-fsdp; default megatron, deepspeed for zero 2 and 3, xla-fsdp on TPUs",
        "KIND"),
  KNOB ("dp-overlap", "Overlap of gradient reduction with backward; default 1", "0|1"),
  KNOB ("gather-overlap", "megatron: parameters gathered during the next forward; default: as dp-overlap", "0|1"),
  KNOB ("grad-sync", "Micro-batches that reduce gradients: last, each; default each with zero 2 and 3", "WHICH"),
  KNOB ("layers-per-unit", "fsdp: layers that are gathered together; default 1", "N"),
  KNOB ("limit-all-gathers", "fsdp1: the host keeps at most two gathers in flight; default 1", "0|1"),
  KNOB ("backward-prefetch", "fsdp1: when the next gather of the backward is issued: pre, post, none; default pre", "WHEN"),
  KNOB ("forward-prefetch", "fsdp: units gathered ahead in the forward by an explicit list; default 0", "N"),
  KNOB ("backward-prefetch-units", "fsdp2: the same in the backward; default 0: one, as it does by itself", "N"),
  KNOB ("reshard-after-forward", "fsdp2: 0, 1, or the size of the groups that keep a copy; default 1 with zero 3 without pp", "N"),
  KNOB ("reduce-bucket", "deepspeed: elements of a bucket of gradients; default 5e8", "N"),
  KNOB ("allgather-bucket", "deepspeed 1, 2: elements of one gather of parameters; default 5e8", "N"),
  KNOB ("prefetch-bucket", "deepspeed 3: elements gathered ahead; default 5e7", "N"),
  KNOB ("persistence-threshold", "deepspeed 3: smaller parameters are never sharded; default 1e5", "N"),
  KNOB ("max-live-params", "deepspeed 3: gathered elements before gathering ahead stops; default 1e9", "N"),
  KNOB ("max-reuse-distance", "deepspeed 3: parameters used again within so many elements are kept; default 1e9", "N"),
  SWITCH ("collective-lists", on_knob, "deepspeed 3 of early 2021: parameters one by one, in a list of one tensor for each rank"),
  KNOB ("offload", "deepspeed: none, optimizer, parameters; default none", "WHAT"),
  KNOB ("offload-to", "Where that lives: cpu, nvme; default cpu", "PLACE"),
  KNOB ("bucket-bytes", "ddp: size of a bucket; default 25MiB, the first 1MiB", "SIZE"),
  KNOB ("bucket-params", "megatron: parameters of a bucket; default the larger of 40e6 and 1e6 dp", "N"),
  SWITCH ("wgrad-placeholders", on_knob, "megatron: 16-bit tensors stand for gradients, as with Transformer Engine from 2.3 on"),
  KNOB ("tp-overlap", "Overlap of tensor-parallel communication with GEMMs; default 0", "0|1"),
  KNOB ("tp-overlap-kind", "bulk: beside GEMMs that do not need it; ring: pipelined with those that do too; default ring", "KIND"),
  KNOB ("tp-async", "Tensor-parallel collectives of the backward beside a GEMM, as Megatron-LM since 2022; default 1",
        "0|1"),
  SWITCH ("p2p-warmup-flush", on_knob, "Overlapped p2p: in warm-up and cool-down too"),
  KNOB ("p2p", "Pipeline transfers: none, batched, scatter-gather, overlapped, deepspeed; default batched", "KIND"),
  KNOB ("schedule", "Pipeline schedule (lockstep list schedules); default 1f1b, interleaved-1f1b if vpp > 1",
        "NAME"),
  KNOB ("order", "CSV with the order of the pipeline's actions (lockstep schedule writes one), in place of the schedule's own",
        "FILE"),
  KNOB ("micro-batch", "Sequences of a micro-batch; default 1", "N"),
  KNOB ("global-batch", "Sequences of a step; default dp x micro-batch x pp", "N"),
  KNOB ("seq", "Tokens of a sequence; default: the model's", "N"),
  KNOB ("recompute", "Activation recomputation: none, selective, full; default none", "KIND"),
  KNOB ("recompute-parts", "selective: core, norm, activation, or several; op; default core, op with fsdp2", "A,B"),
  KNOB ("recompute-method", "full: uniform (groups of layers) or block (the first layers of a chunk); default uniform", "METHOD"),
  KNOB ("recompute-layers", "full: layers of a group, or recomputed layers of a chunk; default 1, block: all", "N"),
  KNOB ("recompute-stages", "full, block: recomputed layers of each pipeline rank; default: all alike", "A,B,..."),
  SWITCH ("recompute-early-stop", on_knob, "full: nothing runs again behind what the backward needs last, as in PyTorch since 2.1"),
  SWITCH ("partition-activations", on_knob, "full: kept inputs are cut over tp, and gathered for recomputation"),
  SWITCH ("offload-activations", on_knob, "Kept activations go to the host's memory and come back"),
  KNOB ("attention", "flash or unfused; default: the model's", "KIND"),
  KNOB ("attention-kernel", "flash: auto, fa1, triton, fa2 or fa3; default auto: as the accelerator was measured", "KIND"),
  KNOB ("qkv-layout", "flash: Q, K, V in one tensor (joint), as views (split), copied without padding (unpadded); default joint", "LAYOUT"),
  KNOB ("kernels", "Kernels as some software launches them (lockstep list kernels); default built-in: fused, as Megatron-LM's", "NAME|FILE"),
  KNOB ("loss", "Cross-entropy: parallel over the vocabulary, or fused (tp 1); default parallel", "KIND"),
  KNOB ("train-metrics", "How often the loss is computed again for what is logged; default 0", "N"),
  KNOB ("dtype", "fp16, bf16, fp8, fp32; default bf16", "DTYPE"),
  KNOB ("fp8-recipe", "Scaling factors: delayed, current, blockwise; default delayed", "RECIPE"),
  SWITCH ("fp8-params", on_knob, "fp8: weights are stored and gathered in fp8"),
  KNOB ("grad-dtype", "Gradients that are accumulated and reduced: fp16, bf16, fp32; default: the 16-bit "
                      "type of dtype", "DTYPE"),
  KNOB ("layers-per-chunk", "Layers of each chunk in model order, such as 4x13,3x3 (13 chunks of 4, then 3 of 3), balanced, or auto: even where "
                            "they can be, else balanced by what they cost; default auto", "LAYERS"),
  SWITCH ("post-validation", on_knob, "Nobody waits for the norm of the gradients: it is checked a step later"),
  SWITCH ("apex-norm", on_knob, "Layer norms run apex's kernels, as in Megatron-LM until early 2022, not those for long rows"),
  SWITCH ("split-bias-dropout", on_knob, "The bias before a dropout is added in a kernel of its own, as in Megatron-LM of 2023"),
  SWITCH ("batch-sync", on_knob, "Each forward fetches its micro-batch, in which the host waits for the device, as in Megatron-LM until late 2023"),
  SWITCH ("launch-blocking", on_knob, "The host waits for each op that it issues, as with CUDA_LAUNCH_BLOCKING=1"),
  SWITCH ("grad-fusion", on_knob, "Weight-gradient GEMMs add to 16-bit gradients too, as Megatron-LM since 2023; to fp32 ones they always do"),
  SWITCH ("no-grad-norm", on_no_grad_norm, "No all-reduce of the gradient norm before the optimizer"),
  KNOB ("steps", "Steps simulated; default 3, fewer if they are known to repeat", "N"),
  KNOB ("host-launch", "What issuing a kernel costs the host; default 10us, 0us: nothing", "TIME"),
  KNOB ("host-comm", "The same for a collective or a group of sends and receives; default 20us", "TIME"),
  KNOB ("host-sync", "What a synchronising call costs after the device is done; default 10us", "TIME"),
  KNOB ("host-view", "A call from Python that launches nothing; default 2us", "TIME"),
  KNOB ("host-batch", "With batch-sync: fetching a micro-batch; default 513us", "TIME"),
  KNOB ("max-memory", "Memory that the simulation may take; a job that needs more is refused; default 16GiB", "SIZE"),
  KNOB ("fold", "Simulate ranks that behave alike once: auto, off, check; default auto", "MODE"),
  KNOB ("slow", "Stragglers: ranks whose kernels take so many times as long, or a log-normal spread of all; default none",
        "rank=N:FACTOR,...|seed=N,sigma=X"),
  KNOB ("coarsen", "Run undisturbed segments as one op, and no step that is known to repeat: auto, off, check; default auto", "MODE"),
  KNOB ("network", "flow (shared links), step (every message of a collective), alphabeta (no contention), or all: flow, and "
                   "how far the others disagree; default flow", "MODEL"),
  KNOB ("memory-clock", "When a buffer counts: host, as the caching allocator sees it, or device, as tensors live; default host", "KIND"),
  KNOB ("memory-allocator", "exact: the bytes asked for; caching: segments of PyTorch's allocator too; default exact", "KIND"),
  KNOB ("for", "The program that is to run it (lockstep list software): its defaults, its headroom, and only what --emit writes for it",
        "NAME|FILE"),
  KNOB ("software", "What runs the job (lockstep list software): its defaults, below those of --strategy and all flags; with --for that",
        "NAME|FILE"),
  KNOB ("headroom", "Memory that is to stay free, a size or a share of the GPU's such as 8%; default: what allocator, CUDA context and NCCL of the program take",
        "SIZE|PERCENT"),
  KNOB ("measured", "Measured step time with a unit, further logged numbers such as tflops=145,memory=61GiB, and whose", "TIME[,KEY=VALUE][:SOURCE]"),
  KNOB ("published", "Measured step time in seconds to compare with, and whose", "SECONDS[:SOURCE]"),
  G_OPTION_ENTRY_NULL,
};

void
cli_job_entries (CliJob *job, GOptionFlags flags, GArray *entries)
{
  const GOptionEntry strategy = { "strategy", 0, 0, G_OPTION_ARG_FILENAME, &job->strategy,
                                  "Strategy: a name (lockstep list strategies) or a file", "NAME|FILE" };
  guint first = entries->len;
  g_array_append_vals (entries, knobs, G_N_ELEMENTS (knobs) - 1);
  g_array_append_val (entries, strategy);
  for (guint i = first; i < entries->len; i++)
    g_array_index (entries, GOptionEntry, i).flags |= flags;
}

/* NULL: it was not given. */
static const char *
last_value (const CliJob *args, const char *key)
{
  const char *value = NULL;
  for (guint i = 0; i < args->knobs->len; i++)
    if (strcmp (g_array_index (args->knobs, Knob, i).key, key) == 0)
      value = g_array_index (args->knobs, Knob, i).value;
  return value;
}

static bool
is_program (const char *key)
{
  return strcmp (key, "for") == 0 || strcmp (key, "software") == 0;
}

/* The program comes first: it sets defaults. */
gboolean
cli_job_apply (const CliJob *args, const CliJobSetter *setter, gpointer target, GError **error)
{
  const char *debug = g_getenv ("LS_DEBUG");
  if (debug && !setter->set (target, "debug", debug, error))
    return FALSE;
  static const char *const programs[] = { "for", "software" };
  for (guint i = 0; i < G_N_ELEMENTS (programs); i++) {
    const char *program = last_value (args, programs[i]);
    if (program && !setter->set (target, programs[i], program, error))
      return FALSE;
  }
  if (args->strategy && !setter->load_strategy (target, args->strategy, error))
    return FALSE;
  for (guint i = 0; i < args->knobs->len; i++) {
    const Knob *knob = &g_array_index (args->knobs, Knob, i);
    if (!is_program (knob->key) && !setter->set (target, knob->key, knob->value, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
set_knob (gpointer job, const char *key, const char *value, GError **error)
{
  return ls_job_set (job, key, value, error);
}

static gboolean
load_strategy (gpointer job, const char *name_or_path, GError **error)
{
  return ls_job_load_strategy (job, name_or_path, error);
}

LsJob *
cli_job_new (const CliJob *args, GError **error)
{
  const CliJobSetter setter = { set_knob, load_strategy };
  g_autoptr (LsJob) job = ls_job_new ();
  return cli_job_apply (args, &setter, job, error) ? g_steal_pointer (&job) : NULL;
}
