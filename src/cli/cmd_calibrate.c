#include "cli/job_args.h"
#include "cli/progress.h"

#include <string.h>

static const CliHelp help = {
  .usage
  = "calibrate FILE... [--gpu NAME|FILE] [-o NAME.json] | --nccl FILE... --cluster NAME|FILE [-o NAME.json]\n"
    "  lockstep calibrate --runs CASES.csv [--cluster NAME|FILE] [-o NAME.json]\n"
    "  lockstep calibrate --pytorch-trace FILE --model NAME|FILE --cluster NAME|FILE [JOB...] [-o NAME.json]",
  .summary = "Fits the kernels of a GPU to measured ones, NCCL to outputs of nccl-tests, or a cluster to\n"
             "step times measured on it; prints how far off the fit is, on what it saw and on what was\n"
             "held out. Or lays a step that torch.profiler recorded beside the predicted one, op by op.",
  .job = CLI_JOB_TAKEN,
  .description
  = "FILE is a profile of tools/kernelbench (JSON or CSV), the spans of its --plan, or a table of GEMMs,\n"
    "attention or streaming kernels; with --nccl, what nccl-tests printed or wrote (-J). The file written is "
    "for\n"
    "--gpu-calibration, with --nccl for --nccl of other commands; with --runs it is a cluster, with\n"
    "--pytorch-trace a file of software, for --software ./NAME.json.\n"
    "With --pytorch-trace, the options that say which job are those of lockstep run, from --model to\n"
    "--strategy.\n\n"
    "Examples:\n"
    "  lockstep calibrate profile.json -o mine.json --plot mine.svg\n"
    "  lockstep calibrate profile.json --hold-out half --max-mape 50\n"
    "  lockstep calibrate gemm.csv attention.csv --gpu h100\n"
    "  lockstep calibrate profile.json --cluster dgx-h200 -o mine.json --cluster-output my-h200.json\n"
    "  lockstep calibrate --nccl all_reduce.txt all_gather.json --cluster dgx-h100 -o nccl-mine.json\n"
    "  lockstep calibrate --runs mine.csv --cluster dgx-h100 -o my-h100.json\n"
    "  lockstep calibrate --pytorch-trace rank0.json.gz --model llama3.1-8b --cluster dgx-h100 --tp 2\n"
    "  lockstep calibrate --pytorch-trace rank0.json.gz --model llama3.1-8b --cluster dgx-h100 --tp 2 "
    "-o my-software.json\n\n" CLI_EXIT_CODES,
};

#define NO_RANK G_MININT64 /* --rank was not said */

typedef struct {
  CliJob job; /* first: callbacks of its entries get the address of all */
  char *gpu, *cluster, *op, *output, *cluster_output, *runs, *trace, *step, *hold_out;
  char *max_mape; /* text of a number; NULL: no limit */
  char **plots, **files;
  gint64 rank;
  gint threads;
  gboolean nccl, json;
} Args;

static void
args_clear (Args *args)
{
  cli_job_clear (&args->job);
  g_free (args->gpu);
  g_free (args->cluster);
  g_free (args->op);
  g_free (args->output);
  g_free (args->cluster_output);
  g_free (args->runs);
  g_free (args->trace);
  g_free (args->step);
  g_free (args->hold_out);
  g_free (args->max_mape);
  g_strfreev (args->plots);
  g_strfreev (args->files);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

/* Options of its own: GOption would take a value for each entry of a name. */
static const char *const own_flags[] = { "cluster", "nccl", NULL };

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry own[] = {
    { "gpu", 0, 0, G_OPTION_ARG_FILENAME, &args->gpu,
      "On which GPU they ran; default: that which a profile names", "NAME|FILE" },
    { "nccl", 0, 0, G_OPTION_ARG_NONE, &args->nccl, "The files are outputs of nccl-tests", NULL },
    { "cluster", 0, 0, G_OPTION_ARG_FILENAME, &args->cluster,
      "Where they ran; required with --nccl and --pytorch-trace", "NAME|FILE" },
    { "op", 0, 0, G_OPTION_ARG_FILENAME, &args->op, "With --nccl: what ran; default: what the files say",
      "KIND" },
    { "runs", 0, 0, G_OPTION_ARG_FILENAME, &args->runs,
      "Step times measured on one cluster, as lockstep validate reads them", "FILE" },
    { "threads", 0, 0, G_OPTION_ARG_INT, &args->threads,
      "With --runs: simulations at once; default: one per processor", "N" },
    { "pytorch-trace", 0, 0, G_OPTION_ARG_FILENAME, &args->trace,
      "What torch.profiler wrote of one rank, .json or .json.gz", "FILE" },
    { "rank", 0, 0, G_OPTION_ARG_INT64, &args->rank,
      "With --pytorch-trace: which of the job's; default: as the trace says, else 0", "N" },
    { "step", 0, 0, G_OPTION_ARG_FILENAME, &args->step,
      "With --pytorch-trace: N of ProfilerStep#N, or a range such as 120ms:180ms; default: the last whole "
      "one",
      "N|FROM:TO" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "With --pytorch-trace: print JSON", NULL },
    { "hold-out", 0, 0, G_OPTION_ARG_FILENAME, &args->hold_out,
      "Of kernels: how many families are kept from the fit and predicted; default fifth", "fifth|half" },
    { "max-mape", 0, 0, G_OPTION_ARG_FILENAME, &args->max_mape,
      "Of kernels: exit 5 if those held out are off by more percent in the mean", "P" },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &args->output,
      "Write the calibration there; with --pytorch-trace the software, for --software", "FILE" },
    { "cluster-output", 0, 0, G_OPTION_ARG_FILENAME, &args->cluster_output,
      "Of kernels, with --cluster: write it there with its links as measured, simulated with the calibration "
      "of -o",
      "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->plots,
      "Draw predicted over measured time (.svg or .png, by gnuplot; .gp: its script); may be repeated",
      "FILE" },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->files, NULL, NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  g_array_append_vals (entries, own, G_N_ELEMENTS (own) - 1);
  cli_job_entries (&args->job, own_flags, entries);
  return cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done,
                    error);
}

static gboolean
refuse (GError **error, const char *why)
{
  g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, why);
  return FALSE;
}

static gboolean
check_trace_args (const Args *args, GError **error)
{
  if (args->files || args->nccl || args->runs || args->gpu || args->op || args->plots || args->threads
      || args->hold_out || args->max_mape || args->cluster_output)
    return refuse (error,
                   "--pytorch-trace goes with the flags of a job, --rank, --step, --json and --output only");
  if (args->rank < 0 && args->rank != NO_RANK)
    return refuse (error, "--rank: expected 0 or more");
  return !args->output || ls_calibrated_check_path (args->output, error);
}

static gboolean
check_held_out_args (const Args *args, GError **error)
{
  double max_mape = 0;
  if ((args->hold_out || args->max_mape) && (args->runs || args->nccl))
    return refuse (error, "--hold-out and --max-mape go with kernels, not with --runs or --nccl");
  if (args->hold_out && strcmp (args->hold_out, "half") != 0 && strcmp (args->hold_out, "fifth") != 0)
    return refuse (error, "--hold-out: expected fifth or half");
  return cli_parse_percent ("max-mape", args->max_mape, G_MAXDOUBLE, &max_mape, error);
}

/* Before the fit: a mistake must not cost it. */
static gboolean
check_fit_args (const Args *args, GError **error)
{
  if (args->job.knobs->len > 0 || args->step || args->json || args->rank != NO_RANK)
    return refuse (error, "--rank, --step, --json and the flags of a job go with --pytorch-trace");
  if (args->runs && (args->files || args->nccl || args->gpu || args->op || args->plots))
    return refuse (error, "--runs goes with --cluster, --threads and --output only");
  if (!args->runs && args->threads)
    return refuse (error, "--threads goes with --runs");
  if (args->threads < 0)
    return refuse (error, "--threads: expected 1 or more");
  if (!args->files && !args->runs)
    return refuse (error, "expected files with measured times");
  if (args->nccl && (args->gpu || args->plots))
    return refuse (error, "--gpu and --plot go with kernels, not with --nccl");
  if (args->nccl && !args->cluster)
    return refuse (error, "expected --cluster with --nccl");
  if (!args->nccl && args->op)
    return refuse (error, "--op goes with --nccl");
  if (args->cluster_output && (args->runs || args->nccl || !args->cluster))
    return refuse (error, "--cluster-output goes with kernels and --cluster");
  if (args->cluster_output && !ls_calibrated_check_path (args->cluster_output, error))
    return FALSE;
  for (char **path = args->plots; path && *path; path++)
    if (!ls_check_output_path (LS_OUTPUT_PLOT, *path, error))
      return FALSE;
  if (!check_held_out_args (args, error))
    return FALSE;
  return !args->output || ls_calibrated_check_path (args->output, error);
}

static LsCalibrated *
calibrate_runs (const Args *args, GError **error)
{
  CliProgress progress;
  cli_progress_begin (&progress);
  LsCalibrated *calibrated = ls_calibrate_runs (args->runs, args->cluster, (guint) args->threads,
                                                cli_progress_show, &progress, error);
  cli_progress_end (&progress);
  return calibrated;
}

static LsCalibrated *
calibrate (const Args *args, GError **error)
{
  const char *const *files = (const char *const *) args->files;
  if (args->runs)
    return calibrate_runs (args, error);
  gboolean holds_half = args->hold_out && strcmp (args->hold_out, "half") == 0;
  return args->nccl ? ls_calibrate_collectives (files, args->cluster, args->op, error)
                    : ls_calibrate_kernels (files, args->gpu, args->cluster, holds_half, error);
}

/* The cluster first: it may be refused. */
static gboolean
write_files (const Args *args, const LsCalibrated *calibrated, GError **error)
{
  if (args->cluster_output
      && !ls_calibrated_write_cluster (calibrated, args->cluster_output, args->output, error))
    return FALSE;
  return !args->output || ls_calibrated_write (calibrated, args->output, error);
}

static gboolean
fit (const Args *args, GError **error)
{
  g_autoptr (LsCalibrated) calibrated = calibrate (args, error);
  if (!calibrated)
    return FALSE;
  g_autofree char *notes = ls_calibrated_notes (calibrated);
  cli_note (notes);
  for (char **path = args->plots; path && *path; path++)
    if (!ls_calibrated_plot (calibrated, *path, error))
      return FALSE;
  gboolean is_written = write_files (args, calibrated, error);
  g_autofree char *text = ls_calibrated_text (calibrated);
  if (!cli_print (text, is_written ? error : NULL) || !is_written)
    return FALSE;
  double max_mape = 0;
  return !args->max_mape
      || (cli_parse_percent ("max-mape", args->max_mape, G_MAXDOUBLE, &max_mape, error)
          && ls_calibrated_check_mape (calibrated, max_mape, error));
}

static gboolean
reconcile (const Args *args, GError **error)
{
  g_autoptr (LsJob) job = cli_job_new (&args->job, error);
  if (!job || (args->cluster && !ls_job_set (job, "cluster", args->cluster, error)))
    return FALSE;
  g_autoptr (LsReconciliation) r
      = ls_job_reconcile (job, args->trace, args->step, MAX (args->rank, -1), error);
  if (!r)
    return FALSE;
  g_autofree char *notes = ls_reconciliation_notes (r);
  cli_note (notes);
  gboolean is_written = !args->output || ls_reconciliation_write_software (r, args->output, error);
  g_autofree char *text = args->json ? ls_reconciliation_json (r) : ls_reconciliation_text (r);
  return cli_print (text, is_written ? error : NULL) && is_written;
}

gboolean
cli_calibrate (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { .rank = NO_RANK };
  cli_job_init (&args.job);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  if (args.trace)
    return check_trace_args (&args, error) && reconcile (&args, error);
  return check_fit_args (&args, error) && fit (&args, error);
}
