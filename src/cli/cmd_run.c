#include "cli/cli.h"

#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  char *key, *value;
} Knob;

typedef struct {
  GArray *knobs; /* Knob, in the order given */
  char *strategy;
  char *chrome_trace;
  char **timelines;
  gboolean json, show_placement, require_fit;
} Args;

static void
knob_clear (gpointer data)
{
  Knob *knob = data;
  g_free (knob->key);
  g_free (knob->value);
}

static void
args_clear (Args *args)
{
  g_array_unref (args->knobs);
  g_free (args->strategy);
  g_free (args->chrome_trace);
  g_strfreev (args->timelines);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static void
add_knob (Args *args, const char *key, const char *value)
{
  Knob knob = { g_strdup (key), g_strdup (value) };
  g_array_append_val (args->knobs, knob);
}

/* "--tp 8" becomes tp = 8; a flag without a value switches on. */
static gboolean
on_knob (const char *flag, const char *value, gpointer args, GError **error)
{
  add_knob (args, flag + strspn (flag, "-"), value ? value : "1");
  return TRUE;
}

static gboolean
on_no_grad_norm (const char *flag, const char *value, gpointer args, GError **error)
{
  add_knob (args, "grad-norm", "0");
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
  KNOB ("nodes", "Nodes of the cluster; default: the file's, or as many as the GPUs need", "N"),
  KNOB ("gpus", "GPUs used; default: all of the nodes", "N"),
  KNOB ("tp", "Tensor parallel degree; default 1", "N"),
  KNOB ("pp", "Pipeline stages; default 1", "N"),
  KNOB ("dp", "Data parallel degree; default gpus / (tp pp cp)", "N"),
  KNOB ("cp", "Context parallel degree; default 1", "N"),
  KNOB ("ep", "Expert parallel degree; default 1", "N"),
  KNOB ("vpp", "Model chunks per stage (virtual pipeline); default 1", "N"),
  SWITCH ("sp", on_knob, "Sequence parallelism beside tensor parallelism; no effect with tp 1"),
  KNOB ("zero", "ZeRO stage 0 to 3, N@G within groups of G ranks; default 0, no effect with dp 1", "N[@G]"),
  KNOB ("dp-kind", "none, ps, ddp, megatron, fsdp1, fsdp2, deepspeed, xla-fsdp; default megatron for "
                   "ZeRO 0 and 1, deepspeed for 2 and 3", "KIND"),
  KNOB ("dp-overlap", "Overlap of gradient reduction with backward; default 1", "0|1"),
  KNOB ("tp-overlap", "Overlap of tensor-parallel communication with GEMMs; default 0", "0|1"),
  KNOB ("tp-async", "Tensor-parallel collectives of the backward beside a GEMM, as Megatron-LM since 2022; default 1",
        "0|1"),
  KNOB ("p2p", "Pipeline transfers: none, batched, scatter-gather, overlapped; default batched", "KIND"),
  KNOB ("schedule", "Pipeline schedule (lockstep list schedules); default 1f1b, interleaved-1f1b if vpp > 1",
        "NAME"),
  KNOB ("micro-batch", "Sequences of a micro-batch; default 1", "N"),
  KNOB ("global-batch", "Sequences of a step; default dp x micro-batch x pp", "N"),
  KNOB ("seq", "Tokens of a sequence; default: the model's", "N"),
  KNOB ("recompute", "Activation recomputation: none, selective, full; default none", "KIND"),
  KNOB ("attention", "flash or unfused; default: the model's", "KIND"),
  KNOB ("dtype", "fp16, bf16, fp8, fp32; default bf16", "DTYPE"),
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
  KNOB ("network", "flow (shared links) or alphabeta (no contention); default flow", "MODEL"),
  KNOB ("published", "Measured step time in seconds to compare with, and whose", "SECONDS[:SOURCE]"),
  G_OPTION_ENTRY_NULL,
};

static const CliHelp help = {
  .usage = "run --model NAME|FILE --cluster NAME|FILE [OPTION...]",
  .summary = "Simulates one training job: step time, where it goes, memory. Times are in seconds,\n"
             "batches in sequences, degrees in ranks. Options override the strategy file.",
  .description
  = "Examples:\n"
    "  lockstep run --model gpt3-175b --cluster dgx-a100-80g --nodes 8 --tp 8 --pp 8 --vpp 3 \\\n"
    "    --sp --recompute selective --global-batch 64\n"
    "  lockstep run --model llama3.1-8b --cluster dgx-h100 --gpus 8 --tp 2 --json\n\n" CLI_EXIT_CODES,
};

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry others[] = {
    { "strategy", 0, 0, G_OPTION_ARG_FILENAME, &args->strategy,
      "Strategy: a name (lockstep list strategies) or a file", "NAME|FILE" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    { "chrome-trace", 0, 0, G_OPTION_ARG_FILENAME, &args->chrome_trace,
      "Write a trace for Perfetto or chrome://tracing", "FILE" },
    { "timeline", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->timelines,
      "Draw the step (.svg or .png, by gnuplot); may be repeated", "FILE" },
    { "show-placement", 0, 0, G_OPTION_ARG_NONE, &args->show_placement,
      "Print which rank runs on which GPU with whom", NULL },
    { "require-fit", 0, 0, G_OPTION_ARG_NONE, &args->require_fit, "Exit 4 if it does not fit into memory",
      NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  g_array_append_vals (entries, knobs, G_N_ELEMENTS (knobs) - 1);
  g_array_append_vals (entries, others, G_N_ELEMENTS (others) - 1);

  if (!cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done, error))
    return FALSE;
  if (!*ret_done && *argc > 1) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
    return FALSE;
  }
  return TRUE;
}

static LsJob *
new_job (const Args *args, GError **error)
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

/* Before the run: a mistake must not cost it. */
static gboolean
check_files (const Args *args, GError **error)
{
  if (args->chrome_trace && !ls_check_output_path (LS_OUTPUT_CHROME_TRACE, args->chrome_trace, error))
    return FALSE;
  for (char **path = args->timelines; path && *path; path++)
    if (!ls_check_output_path (LS_OUTPUT_TIMELINE, *path, error))
      return FALSE;
  return TRUE;
}

static gboolean
write_files (const LsResult *result, const Args *args, GError **error)
{
  if (args->chrome_trace && !ls_result_write_chrome_trace (result, args->chrome_trace, error))
    return FALSE;
  for (char **path = args->timelines; path && *path; path++)
    if (!ls_result_write_timeline (result, *path, error))
      return FALSE;
  return TRUE;
}

/* Colour for a terminal that wants it (no-color.org), block characters for UTF-8. */
static LsTextStyle
text_style (void)
{
  gboolean is_color = isatty (STDOUT_FILENO) && !g_getenv ("NO_COLOR") && g_strcmp0 (g_getenv ("TERM"), "dumb") != 0;
  gboolean is_utf8 = strcmp (nl_langinfo (CODESET), "UTF-8") == 0;
  return (is_color ? LS_TEXT_COLOR : LS_TEXT_PLAIN) | (is_utf8 ? LS_TEXT_PLAIN : LS_TEXT_ASCII);
}

static gboolean
print_result (const LsResult *result, const Args *args, GError **error)
{
  if (args->json) {
    g_autofree char *json = ls_result_json (result);
    return cli_print (json, error);
  }
  if (args->show_placement) {
    g_autofree char *placement = ls_result_placement (result);
    if (!cli_print (placement, error) || !cli_print ("\n", error))
      return FALSE;
  }
  g_autofree char *summary = ls_result_summary (result, text_style ());
  return cli_print (summary, error);
}

static void
print_notes (const LsResult *result)
{
  g_autofree char *text = ls_result_notes (result);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (**line)
      fprintf (stderr, "note: %s\n", *line);
}

/* Not fitting is a result: it is printed, and an error only on request. */
static gboolean
report_fit (const LsResult *result, gboolean is_required, GError **error)
{
  g_autoptr (GError) misfit = NULL;
  if (ls_result_check_fit (result, &misfit))
    return TRUE;
  if (is_required) {
    g_propagate_error (error, g_steal_pointer (&misfit));
    return FALSE;
  }
  cli_warn (misfit->message);
  return TRUE;
}

gboolean
cli_run (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { .knobs = g_array_new (FALSE, FALSE, sizeof (Knob)) };
  g_array_set_clear_func (args.knobs, knob_clear);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;

  g_autoptr (LsJob) job = new_job (&args, error);
  if (!job || !check_files (&args, error))
    return FALSE;
  g_autoptr (LsResult) result = ls_job_run (job, error);
  if (!result)
    return FALSE;
  print_notes (result);
  return write_files (result, &args, error) && print_result (result, &args, error)
         && report_fit (result, args.require_fit, error);
}
