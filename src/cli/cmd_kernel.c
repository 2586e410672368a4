#include "cli/job_args.h"

#include <string.h>

static const CliHelp help = {
  .usage = "kernel --gpu NAME|FILE --gemm M,N,K | --attention B,S,H,KV,D | --op KIND | --from FILE.csv\n"
           "  lockstep kernel --list-shapes --model NAME|FILE --cluster NAME|FILE [JOB...]",
  .summary = "Time of a kernel alone on a GPU, where the figure comes from and what limits it; or of\n"
             "a table of kernels, and the errors where they were measured. Or the kernels of a job, as\n"
             "a list that tools/kernelbench times.",
  .job = CLI_JOB_TAKEN,
  .description
  = "With --list-shapes, the options that say which job are those of lockstep run; --attention,\n"
    "--dtype and --gpu-calibration are then the job's.\n\n"
    "Examples:\n"
    "  lockstep kernel --gpu h100 --gemm 4096,12288,4096\n"
    "  lockstep kernel --gpu b200 --attention 1,8192,32,8,128 --backward\n"
    "  lockstep kernel --gpu a100-80g --op norm --shape 8192,12288 --json\n"
    "  lockstep kernel --gpu h100 --op elementwise --shape 8192,4096 --bytes 134MB --access strided16\n"
    "  lockstep kernel --gpu h200 --from gemm.csv --dtype bf16 --min-flops 1e9 --holdout\n"
    "  lockstep kernel --list-shapes --model llama3.1-8b --cluster dgx-h100 --gpus 8 "
    "--tp 2\n\n" CLI_EXIT_CODES,
};

typedef struct {
  char *key, *value;
} Given;

typedef struct {
  CliJob job;  /* first: callbacks of its entries get the address of all */
  GArray *own; /* Given: options of this command, some of which a job has too */
  gboolean json, list_shapes;
} Args;

static void
given_clear (gpointer given)
{
  g_free (((Given *) given)->key);
  g_free (((Given *) given)->value);
}

static void
args_init (Args *args)
{
  *args = (Args) { .own = g_array_new (FALSE, FALSE, sizeof (Given)) };
  g_array_set_clear_func (args->own, given_clear);
  cli_job_init (&args->job);
}

static void
args_clear (Args *args)
{
  cli_job_clear (&args->job);
  g_array_unref (args->own);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

/* "--min-m 256" is min-m; a flag without a value switches on. */
static gboolean
on_flag (const char *flag, const char *value, gpointer args, GError **error)
{
  const Given given = { g_strdup (flag + strspn (flag, "-")), g_strdup (value ? value : "1") };
  g_array_append_val (((Args *) args)->own, given);
  return TRUE;
}

/* Options of its own that a job has too. */
static const char *const shared_flags[] = { "attention", "dtype", "gpu-calibration", "measured", NULL };

#define FLAG(name, text, arg)                                                                                \
  {                                                                                                          \
    name, 0, G_OPTION_FLAG_FILENAME, G_OPTION_ARG_CALLBACK, (gpointer) on_flag, text, arg                    \
  }
#define SWITCH(name, text)                                                                                   \
  {                                                                                                          \
    name, 0, G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer) on_flag, text, NULL                     \
  }

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry own[] = {
    FLAG ("gpu", "On which GPU: a name (lockstep list gpus) or a file", "NAME|FILE"),
    FLAG ("gpu-calibration",
          "What its kernels take (lockstep calibrate writes such a file); default: as the GPU names",
          "NAME|FILE"),
    FLAG ("gemm", "A matrix product, M x K times K x N", "M,N,K"),
    FLAG ("batch", "So many of them in one kernel; default 1", "N"),
    FLAG ("layout",
          "Which operands are transposed, as BLAS says it: tn, nn, nt, tt; default tn, the only one that was "
          "measured: the time is the same, but counts as extrapolated",
          "LAYOUT"),
    FLAG ("attention", "Flash attention: sequences, tokens, heads, key/value heads, width of a head",
          "B,S,H,KV,D"),
    FLAG ("causal", "Whether tokens see only those before them; default 1", "0|1"),
    SWITCH ("backward", "The gradient of attention; default: the forward"),
    FLAG (
        "op",
        "A kernel that streams: softmax, norm, elementwise, reduction, embedding, cross-entropy, optimizer, "
        "memset",
        "KIND"),
    FLAG ("shape",
          "Its elements, read and written once: two tensors in and one out for elementwise, one and one for "
          "softmax, norm and embedding, 30 bytes an element for optimizer, one tensor for others",
          "ROWS,COLUMNS"),
    FLAG ("bytes", "Its traffic instead; with --access besides", "SIZE"),
    FLAG ("access",
          "How it touches memory, as kernels of PyTorch do that are not fused: vec, castup, bcast16, "
          "strided16, cat, ... (manual: formats/access.md)",
          "KIND"),
    FLAG ("dtype", "fp32, tf32, fp16, bf16, fp8 or nvfp4; default bf16; of --from only such rows", "DTYPE"),
    SWITCH ("sustained", "As inside a training step, on a hot chip, instead of in a loop of its own"),
    FLAG ("from", "The kernels of a table: GEMM (m, n, k), attention, streaming or vidur's mlp.csv", "FILE"),
    FLAG ("measured",
          "Takes times from such a table where it has the kernel, or a GEMM between two values of m", "FILE"),
    SWITCH ("holdout", "Of --from only families that are held out of the fits"),
    FLAG ("min-m", "Of --from only GEMMs with at least so many rows", "N"),
    FLAG ("min-seq", "Only attention over at least so many tokens", "N"),
    FLAG ("min-flops", "Only kernels of at least so many FLOPs, such as 1e9", "N"),
    FLAG ("min-bytes", "Only kernels of at least so much traffic, such as 8MB", "SIZE"),
    { "list-shapes", 0, 0, G_OPTION_ARG_NONE, &args->list_shapes,
      "The kernels of a job, for kernelbench --shapes", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  g_array_append_vals (entries, own, G_N_ELEMENTS (own) - 1);
  cli_job_entries (&args->job, shared_flags, entries);
  if (!cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done, error))
    return FALSE;
  if (*ret_done || *argc == 1)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
  return FALSE;
}

static char *
shapes (const Args *args, GError **error)
{
  g_autoptr (LsJob) job = cli_job_new (&args->job, error);
  for (guint i = 0; job && i < args->own->len; i++) {
    const Given *given = &g_array_index (args->own, Given, i);
    if (!g_strv_contains (shared_flags, given->key)) {
      g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s does not go with --list-shapes, which is of a job",
                   given->key);
      return NULL;
    }
    if (!ls_job_set (job, given->key, given->value, error))
      return NULL;
  }
  return job ? ls_job_shapes (job, error) : NULL;
}

static char *
times (const Args *args, GError **error)
{
  g_autoptr (LsKernelQuery) query = ls_kernel_query_new ();
  if (args->job.knobs->len > 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "the flags of a job go with --list-shapes");
    return NULL;
  }
  for (guint i = 0; i < args->own->len; i++) {
    const Given *given = &g_array_index (args->own, Given, i);
    if (!ls_kernel_query_set (query, given->key, given->value, error))
      return NULL;
  }
  return args->json ? ls_kernel_query_json (query, error) : ls_kernel_query_text (query, error);
}

gboolean
cli_kernel (int argc, char **argv, GError **error)
{
  g_auto (Args) args;
  args_init (&args);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  g_autofree char *text = args.list_shapes ? shapes (&args, error) : times (&args, error);
  return text && cli_print (text, error);
}
