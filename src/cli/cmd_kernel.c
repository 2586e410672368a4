#include "cli/cli.h"

#include <string.h>

static const CliHelp help = {
  .usage = "kernel --gpu NAME|FILE --gemm M,N,K | --attention B,S,H,KV,D | --op KIND | --from FILE.csv",
  .summary = "Time of a kernel alone on a GPU, where the figure comes from and what limits it; or of\n"
             "a table of kernels, and the errors where they were measured.",
  .description = "Examples:\n"
                 "  lockstep kernel --gpu h100 --gemm 4096,12288,4096\n"
                 "  lockstep kernel --gpu b200 --attention 1,8192,32,8,128 --backward\n"
                 "  lockstep kernel --gpu a100-80g --op norm --shape 8192,12288 --json\n"
                 "  lockstep kernel --gpu h100 --op elementwise --shape 8192,4096 --bytes 134MB --access strided16\n"
                 "  lockstep kernel --gpu h200 --from gemm.csv --dtype bf16 --min-flops 1e9 --holdout\n\n" CLI_EXIT_CODES,
};

typedef struct {
  LsKernelQuery *query;
  gboolean json;
} Args;

/* "--min-m 256" sets min-m; a flag without a value switches on. */
static gboolean
on_flag (const char *flag, const char *value, gpointer query, GError **error)
{
  return ls_kernel_query_set (query, flag + strspn (flag, "-"), value ? value : "1", error);
}

#define FLAG(name, text, arg) \
  { name, 0, G_OPTION_FLAG_FILENAME, G_OPTION_ARG_CALLBACK, (gpointer) on_flag, text, arg }
#define SWITCH(name, text) { name, 0, G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer) on_flag, text, NULL }

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry entries[] = {
    FLAG ("gpu", "On which GPU: a name (lockstep list gpus) or a file", "NAME|FILE"),
    FLAG ("gpu-calibration", "What its kernels take (lockstep calibrate writes such a file); default: as the GPU names", "NAME|FILE"),
    FLAG ("gemm", "A matrix product, M x K times K x N", "M,N,K"),
    FLAG ("batch", "So many of them in one kernel; default 1", "N"),
    FLAG ("layout", "Which operands are transposed, as BLAS says it: tn, nn, nt, tt; default tn, the only one that was "
                    "measured: the time is the same, but counts as extrapolated",
          "LAYOUT"),
    FLAG ("attention", "Flash attention: sequences, tokens, heads, key/value heads, width of a head", "B,S,H,KV,D"),
    FLAG ("causal", "Whether tokens see only those before them; default 1", "0|1"),
    SWITCH ("backward", "The gradient of attention; default: the forward"),
    FLAG ("op", "A kernel that streams: softmax, norm, elementwise, reduction, embedding, cross-entropy, optimizer, memset",
          "KIND"),
    FLAG ("shape", "Its elements, read and written once: two tensors in and one out for elementwise, one and one for "
                   "softmax, norm and embedding, 30 bytes an element for optimizer, one tensor for others",
          "ROWS,COLUMNS"),
    FLAG ("bytes", "Its traffic instead; with --access besides", "SIZE"),
    FLAG ("access", "How it touches memory, as kernels of PyTorch do that are not fused: vec, castup, bcast16, strided16, cat, ... (topologies/README.md)",
          "KIND"),
    FLAG ("dtype", "fp32, tf32, fp16, bf16, fp8 or nvfp4; default bf16; of --from only such rows", "DTYPE"),
    SWITCH ("sustained", "As inside a training step, on a hot chip, instead of in a loop of its own"),
    FLAG ("from", "The kernels of a table: GEMM (m, n, k), attention, streaming or vidur's mlp.csv", "FILE"),
    FLAG ("measured", "Takes times from such a table where it has the kernel, or a GEMM between two values of m",
          "FILE"),
    SWITCH ("holdout", "Of --from only families that are held out of the fits"),
    FLAG ("min-m", "Of --from only GEMMs with at least so many rows", "N"),
    FLAG ("min-seq", "Only attention over at least so many tokens", "N"),
    FLAG ("min-flops", "Only kernels of at least so many FLOPs, such as 1e9", "N"),
    FLAG ("min-bytes", "Only kernels of at least so much traffic, such as 8MB", "SIZE"),
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!cli_parse (argc, argv, &help, entries, args->query, ret_done, error))
    return FALSE;
  if (*ret_done || *argc == 1)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
  return FALSE;
}

gboolean
cli_kernel (int argc, char **argv, GError **error)
{
  g_autoptr (LsKernelQuery) query = ls_kernel_query_new ();
  Args args = { .query = query };
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  g_autofree char *text = args.json ? ls_kernel_query_json (query, error) : ls_kernel_query_text (query, error);
  return text && cli_print (text, error);
}
