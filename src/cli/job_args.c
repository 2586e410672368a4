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

/* "--tp 8" becomes tp = 8; a flag without a value switches on. */
static gboolean
on_knob (const char *flag, const char *value, gpointer job, GError **error)
{
  add_knob (job, flag + strspn (flag, "-"), value ? value : "1");
  return TRUE;
}

static gboolean
on_no_grad_norm (const char *flag, const char *value, gpointer job, GError **error)
{
  add_knob (job, "grad-norm", "0");
  return TRUE;
}

#define KNOB(name, text, arg) \
  { name, 0, G_OPTION_FLAG_FILENAME, G_OPTION_ARG_CALLBACK, (gpointer) on_knob, text, arg }
#define SWITCH(name, callback, text) \
  { name, 0, G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer) callback, text, NULL }

static const GOptionEntry knobs[] = {
  KNOB ("model", "What is trained: a name (lockstep list models), our JSON or a Hugging Face config.json",
        "NAME|FILE"),
  KNOB ("cluster", "Where: a name (lockstep list clusters) or a file", "NAME|FILE"),
  KNOB ("trace", "Replays a trace instead: a name (lockstep list traces) or a file", "NAME|FILE"),
  KNOB ("nodes", "Nodes of the cluster; default: the file's, or as many as the GPUs need", "N"),
  KNOB ("slice", "Chips of a TPU slice along x, y (and z); default: as the GPUs need, with --nodes the largest",
        "XxY[xZ]"),
  KNOB ("gpus", "GPUs used; default: all of the nodes", "N"),
  KNOB ("tp", "Tensor parallel degree; default 1", "N"),
  KNOB ("pp", "Pipeline stages; default 1", "N"),
  KNOB ("dp", "Data parallel degree; default gpus / (tp pp cp)", "N"),
  KNOB ("cp", "Context parallel degree; default 1, others are not built yet", "N"),
  KNOB ("ep", "Expert parallel degree; default 1, others are not built yet", "N"),
  KNOB ("vpp", "Model chunks per stage (virtual pipeline); default 1", "N"),
  SWITCH ("sp", on_knob, "Sequence parallelism beside tensor parallelism; no effect with tp 1"),
  KNOB ("zero", "ZeRO stage 0 or 1; default 0, no effect with dp 1; 2, 3 and N@G (within groups of G ranks) are not built yet", "N[@G]"),
  KNOB ("dp-kind", "none, ddp, megatron; default megatron; ps, fsdp1, fsdp2, deepspeed and xla-fsdp are not "
                   "built yet", "KIND"),
  KNOB ("dp-overlap", "Overlap of gradient reduction with backward; default 1", "0|1"),
  KNOB ("tp-overlap", "Overlap of tensor-parallel communication with GEMMs; default 0, 1 is not built yet", "0|1"),
  KNOB ("tp-async", "Tensor-parallel collectives of the backward beside a GEMM, as Megatron-LM since 2022; default 1",
        "0|1"),
  KNOB ("p2p", "Pipeline transfers: none, batched, scatter-gather, overlapped; default batched", "KIND"),
  KNOB ("schedule", "Pipeline schedule (lockstep list schedules); default 1f1b, interleaved-1f1b if vpp > 1",
        "NAME"),
  KNOB ("order", "CSV with the order of the pipeline's actions (lockstep schedule writes one), in place of the schedule's own",
        "FILE"),
  KNOB ("micro-batch", "Sequences of a micro-batch; default 1", "N"),
  KNOB ("global-batch", "Sequences of a step; default dp x micro-batch x pp", "N"),
  KNOB ("seq", "Tokens of a sequence; default: the model's", "N"),
  KNOB ("recompute", "Activation recomputation: none, selective, full; default none", "KIND"),
  KNOB ("attention", "flash or unfused; default: the model's", "KIND"),
  KNOB ("dtype", "fp16, bf16, fp32; default bf16; fp8 is not built yet", "DTYPE"),
  KNOB ("grad-dtype", "Gradients that are accumulated and reduced: fp16, bf16, fp32; default: the 16-bit "
                      "type of dtype", "DTYPE"),
  KNOB ("layers-per-chunk", "Layers of each chunk in model order; default: even", "A,B,..."),
  SWITCH ("no-grad-norm", on_no_grad_norm, "No all-reduce of the gradient norm before the optimizer"),
  KNOB ("steps", "Steps simulated; default 3, fewer if they repeat to the picosecond", "N"),
  KNOB ("host-launch", "What issuing a kernel costs the host; default 10us, 0us: nothing", "TIME"),
  KNOB ("host-comm", "The same for a collective or a group of sends and receives; default 20us", "TIME"),
  KNOB ("host-sync", "What a synchronising call costs after the device is done; default 10us", "TIME"),
  KNOB ("max-memory", "Memory that the simulation may take; a job that needs more is refused; default 16GiB", "SIZE"),
  KNOB ("fold", "Simulate ranks that behave alike once: auto, off, check; default auto", "MODE"),
  KNOB ("coarsen", "Run undisturbed segments as one op: auto, off, check; default auto", "MODE"),
  KNOB ("network", "flow (shared links), step (every message of a collective), alphabeta (no contention), or all: flow, and "
                   "how far the others disagree; default flow", "MODEL"),
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

LsJob *
cli_job_new (const CliJob *args, GError **error)
{
  g_autoptr (LsJob) job = ls_job_new ();
  const char *debug = g_getenv ("LS_DEBUG");
  if (debug && !ls_job_set (job, "debug", debug, error))
    return NULL;
  if (args->strategy && !ls_job_load_strategy (job, args->strategy, error))
    return NULL;
  for (guint i = 0; i < args->knobs->len; i++) {
    const Knob *knob = &g_array_index (args->knobs, Knob, i);
    if (!ls_job_set (job, knob->key, knob->value, error))
      return NULL;
  }
  return g_steal_pointer (&job);
}
