#include "cli/cli.h"

static const CliHelp help = {
  .usage = "calibrate FILE... [--gpu NAME|FILE] [-o NAME.json] | --nccl FILE... --cluster NAME|FILE [-o NAME.json]",
  .summary = "Fits the kernels of a GPU to measured ones, or NCCL to outputs of nccl-tests; prints how far off\n"
             "the fit is, on what it saw and on what was held out.",
  .description = "FILE is a profile of tools/kernelbench (JSON or CSV) or a table of GEMMs, attention or streaming\n"
                 "kernels; with --nccl, what nccl-tests printed or wrote (-J). The file written is named by a GPU:\n"
                 "\"calibration\" in its file, or --gpu h200:calibration=./mine.json.\n\n"
                 "Examples:\n"
                 "  lockstep calibrate profile.json -o mine.json --plot mine.svg\n"
                 "  lockstep calibrate gemm.csv attention.csv --gpu h100\n"
                 "  lockstep calibrate --nccl all_reduce.txt all_gather.json --cluster dgx-h100 -o nccl-mine.json\n\n" CLI_EXIT_CODES,
};

typedef struct {
  char *gpu, *cluster, *op, *output;
  char **plots, **files;
  gboolean nccl;
} Args;

static void
args_clear (Args *args)
{
  g_free (args->gpu);
  g_free (args->cluster);
  g_free (args->op);
  g_free (args->output);
  g_strfreev (args->plots);
  g_strfreev (args->files);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry entries[] = {
    { "gpu", 0, 0, G_OPTION_ARG_FILENAME, &args->gpu, "On which GPU they ran; default: that which a profile names", "NAME|FILE" },
    { "nccl", 0, 0, G_OPTION_ARG_NONE, &args->nccl, "The files are outputs of nccl-tests", NULL },
    { "cluster", 0, 0, G_OPTION_ARG_FILENAME, &args->cluster, "With --nccl: where they ran", "NAME|FILE" },
    { "op", 0, 0, G_OPTION_ARG_FILENAME, &args->op, "With --nccl: what ran; default: what the files say", "KIND" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &args->output, "Write the calibration there", "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->plots,
      "Draw predicted over measured time (.svg or .png, by gnuplot); may be repeated", "FILE" },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->files, NULL, NULL },
    G_OPTION_ENTRY_NULL,
  };
  return cli_parse (argc, argv, &help, entries, NULL, ret_done, error);
}

static gboolean
refuse (GError **error, const char *why)
{
  g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, why);
  return FALSE;
}

/* Before the fit: a mistake must not cost it. */
static gboolean
check_args (const Args *args, GError **error)
{
  if (!args->files)
    return refuse (error, "expected files with measured times");
  if (args->nccl && (args->gpu || args->plots))
    return refuse (error, "--gpu and --plot go with kernels, not with --nccl");
  if (args->nccl && !args->cluster)
    return refuse (error, "expected --cluster with --nccl");
  if (!args->nccl && (args->cluster || args->op))
    return refuse (error, "--cluster and --op go with --nccl");
  for (char **path = args->plots; path && *path; path++)
    if (!ls_check_output_path (LS_OUTPUT_PLOT, *path, error))
      return FALSE;
  return !args->output || ls_calibrated_check_path (args->output, error);
}

static LsCalibrated *
calibrate (const Args *args, GError **error)
{
  const char *const *files = (const char *const *) args->files;
  return args->nccl ? ls_calibrate_collectives (files, args->cluster, args->op, error) : ls_calibrate_kernels (files, args->gpu, error);
}

gboolean
cli_calibrate (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;

  if (!check_args (&args, error))
    return FALSE;
  g_autoptr (LsCalibrated) calibrated = calibrate (&args, error);
  if (!calibrated)
    return FALSE;
  g_autofree char *notes = ls_calibrated_notes (calibrated);
  cli_note (notes);
  for (char **path = args.plots; path && *path; path++)
    if (!ls_calibrated_plot (calibrated, *path, error))
      return FALSE;
  if (args.output && !ls_calibrated_write (calibrated, args.output, error))
    return FALSE;
  g_autofree char *text = ls_calibrated_text (calibrated);
  return cli_print (text, error);
}
