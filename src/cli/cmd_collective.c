#include "cli/cli.h"
#include "cli/progress.h"

static const CliHelp help = {
  .usage = "collective --cluster NAME|FILE --op OP [OPTION...]",
  .summary
  = "Times one operation alone on a cluster, over sizes and numbers of GPUs, in the shape of nccl-tests;\n"
    "or, with --compare, measured ones, and how far off they are. Sizes are those of nccl-tests:\n"
    "the whole array; of all-to-all, what one rank sends.",
  .description
  = "Operations: all-reduce, all-gather, reduce-scatter, broadcast, reduce, all-to-all, gather,\n"
    "scatter, barrier, permute, copy-permute, send-recv (or p2p: between the first GPUs of two nodes)\n\n"
    "Examples:\n"
    "  lockstep collective --cluster dgx-h100 --op all-reduce --plot all-reduce.svg\n"
    "  lockstep collective --cluster dgx-a100-80g --nodes 8 --op all-gather --network all\n"
    "  lockstep collective --cluster dgx-h100 --op all-to-all --gpus 2..1024 --plot scaling.svg\n"
    "  lockstep collective --compare measured.csv --cluster dgx-h100 --plot errors.png\n\n" CLI_EXIT_CODES,
};

typedef struct {
  char *cluster, *nodes, *gpus, *op, *algorithm, *protocol, *network, *min, *max, *factor, *compare, *trust,
      *slice, *nccl;
  char **plots;
  gboolean json, csv;
} Args;

static void
args_clear (Args *args)
{
  char *const texts[] = { args->cluster,  args->nodes,   args->gpus,  args->op,  args->algorithm,
                          args->protocol, args->network, args->min,   args->max, args->factor,
                          args->compare,  args->trust,   args->slice, args->nccl };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
  g_strfreev (args->plots);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry entries[] = {
    { "cluster", 0, 0, G_OPTION_ARG_FILENAME, &args->cluster, "On which cluster", "NAME|FILE" },
    { "nodes", 0, 0, G_OPTION_ARG_FILENAME, &args->nodes,
      "Nodes of the cluster; default: the file's, or as many as the GPUs need", "N" },
    { "slice", 0, 0, G_OPTION_ARG_FILENAME, &args->slice,
      "Chips of a TPU slice along x, y (and z); default: as the GPUs need, with --nodes the largest",
      "XxY[xZ]" },
    { "gpus", 0, 0, G_OPTION_ARG_FILENAME, &args->gpus,
      "GPUs used, the first ones: 8, or each of 8,16,24, or doublings 2..1024; default: all of the nodes",
      "N,.." },
    { "nccl", 0, 0, G_OPTION_ARG_FILENAME, &args->nccl,
      "What NCCL reaches (lockstep calibrate --nccl writes such a file); default: as the cluster's GPU names",
      "NAME|FILE" },
    { "op", 0, 0, G_OPTION_ARG_FILENAME, &args->op,
      "Which operation, such as all-reduce; a wrong one is answered with a list; with --compare: only its "
      "rows",
      "KIND" },
    { "algorithm", 0, 0, G_OPTION_ARG_FILENAME, &args->algorithm,
      "By which algorithm, such as ring; a wrong one is answered with a list; default: as NCCL", "KIND" },
    { "protocol", 0, 0, G_OPTION_ARG_FILENAME, &args->protocol, "NCCL's protocol; default: as NCCL",
      "auto|simple|ll|ll128" },
    { "network", 0, 0, G_OPTION_ARG_FILENAME, &args->network,
      "Fidelity of the network; all: beside each other, and how they disagree; default: flow",
      "flow|alphabeta|step|all" },
    { "min", 0, 0, G_OPTION_ARG_FILENAME, &args->min,
      "Smallest size; default: 1KiB; of several numbers of GPUs 1MiB; of --compare all", "SIZE" },
    { "max", 0, 0, G_OPTION_ARG_FILENAME, &args->max, "Largest size; default: 8GiB; of --compare all",
      "SIZE" },
    { "factor", 0, 0, G_OPTION_ARG_FILENAME, &args->factor,
      "A size over the one before; default: 2; of several numbers of GPUs 8", "N" },
    { "compare", 0, 0, G_OPTION_ARG_FILENAME, &args->compare,
      "Simulate the rows of a CSV of measured times; the flags above select some", "FILE" },
    { "trust", 0, 0, G_OPTION_ARG_FILENAME, &args->trust,
      "With --compare: only rows of this trust; default: A, if there is such a column", "LETTER|all" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    { "csv", 0, 0, G_OPTION_ARG_NONE, &args->csv, "Print CSV", NULL },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->plots,
      "Draw bus bandwidth over size or GPUs (.svg or .png, by gnuplot; .gp: its script); may be repeated",
      "FILE" },
    G_OPTION_ENTRY_NULL,
  };
  if (!cli_parse (argc, argv, &help, entries, NULL, ret_done, error))
    return FALSE;
  if (*ret_done || (*argc == 1 && !(args->json && args->csv)))
    return TRUE;
  if (*argc > 1)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected --json or --csv; got both");
  return FALSE;
}

/* Before the run: a mistake must not cost it. */
static gboolean
check_plots (const Args *args, GError **error)
{
  for (char **path = args->plots; path && *path; path++)
    if (!ls_check_output_path (LS_OUTPUT_PLOT, *path, error))
      return FALSE;
  return TRUE;
}

static LsCollective *
simulate (const Args *args, GError **error)
{
  CliProgress progress;
  const LsCollectiveOptions options = {
    .cluster = args->cluster,
    .op = args->op,
    .nodes = args->nodes,
    .gpus = args->gpus,
    .algorithm = args->algorithm,
    .protocol = args->protocol,
    .network = args->network,
    .min = args->min,
    .max = args->max,
    .factor = args->factor,
    .compare = args->compare,
    .trust = args->trust,
    .slice = args->slice,
    .nccl = args->nccl,
    .progress = cli_progress_show,
    .progress_data = &progress,
  };
  cli_progress_begin (&progress);
  LsCollective *collective = ls_collective_run (&options, error);
  cli_progress_end (&progress);
  return collective;
}

gboolean
cli_collective (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;

  if (!check_plots (&args, error))
    return FALSE;
  g_autoptr (LsCollective) collective = simulate (&args, error);
  if (!collective)
    return FALSE;
  g_autofree char *notes = ls_collective_notes (collective);
  cli_note (notes);
  for (char **path = args.plots; path && *path; path++)
    if (!ls_collective_plot (collective, *path, error))
      return FALSE;
  g_autofree char *text = args.json ? ls_collective_json (collective)
      : args.csv                    ? ls_collective_csv (collective)
                                    : ls_collective_text (collective);
  return cli_print (text, error);
}
