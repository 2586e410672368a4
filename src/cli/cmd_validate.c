#include "cli/cli.h"

#include <math.h>
#include <string.h>

#include "cli/progress.h"

static const CliHelp help = {
  .usage = "validate CASES.csv [OPTION...]",
  .summary = "Simulates measured training runs and compares the step times. A case that needs a\n"
             "mechanism which does not exist yet is refused with the reason, never guessed.",
  .description
  = "Examples:\n"
    "  lockstep validate cases.csv --split validation\n"
    "  lockstep validate cases.csv --only '^korth' -j 4 --max-mape 10 --json\n"
    "  lockstep validate cases.csv --chart errors.svg --markdown table.md --ablate\n\n" CLI_EXIT_CODES,
};

typedef struct {
  char *split, *only, *fold, *coarsen, *network;
  char *max_mape, *min_coverage, *max_width; /* texts of numbers; NULL: no limit */
  char *chart, *markdown, *residuals;        /* files */
  char **assume;
  int n_threads;
  gboolean ablate, coverage, json;
} Args;

static void
args_clear (Args *args)
{
  g_free (args->split);
  g_free (args->only);
  g_free (args->fold);
  g_free (args->coarsen);
  g_free (args->network);
  g_free (args->max_mape);
  g_free (args->chart);
  g_free (args->markdown);
  g_free (args->min_coverage);
  g_free (args->max_width);
  g_free (args->residuals);
  g_strfreev (args->assume);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

/* What may fail after the result is printed. */
typedef struct {
  double max_mape, min_coverage, max_width; /* percent */
} Limits;

static gboolean
parse_limits (const Args *args, Limits *limits, GError **error)
{
  *limits = (Limits) { 0, 0, INFINITY };
  if (args->residuals && args->network && strcmp (args->network, "flow") != 0) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE,
                         "--residuals are of --network flow, as the intervals of run are");
    return FALSE;
  }
  return cli_parse_percent ("max-mape", args->max_mape, G_MAXDOUBLE, &limits->max_mape, error)
      && cli_parse_percent ("min-coverage", args->min_coverage, 100, &limits->min_coverage, error)
      && cli_parse_percent ("max-width", args->max_width, G_MAXDOUBLE, &limits->max_width, error)
      && (!args->residuals || ls_validation_check_residuals_path (args->residuals, error));
}

static gboolean
check_limits (const Args *args, const Limits *limits, const LsValidation *v, GError **error)
{
  if (args->max_mape && !ls_validation_check_mape (v, limits->max_mape, error))
    return FALSE;
  return (!args->min_coverage && !args->max_width)
      || ls_validation_check_coverage (v, limits->min_coverage, limits->max_width, error);
}

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry entries[] = {
    { "split", 0, 0, G_OPTION_ARG_FILENAME, &args->split, "Only rows of this split", "validation|pool" },
    { "only", 0, 0, G_OPTION_ARG_FILENAME, &args->only, "Only rows whose id matches", "REGEX" },
    { "threads", 'j', 0, G_OPTION_ARG_INT, &args->n_threads, "Threads; default: one per processor", "N" },
    { "assume", 0, 0, G_OPTION_ARG_STRING_ARRAY, &args->assume,
      "Sets a knob of the strategy, or a host cost, for every row, whatever the row says; may be repeated",
      "KNOB=VALUE" },
    { "max-mape", 0, 0, G_OPTION_ARG_FILENAME, &args->max_mape,
      "Exit 5 if the mean absolute error in percent is larger", "P" },
    { "coverage", 0, 0, G_OPTION_ARG_NONE, &args->coverage,
      "Whether intervals as of run hold: those of each source by what the others measured", NULL },
    { "min-coverage", 0, 0, G_OPTION_ARG_FILENAME, &args->min_coverage,
      "With coverage: exit 5 if they hold less percent, each source counting once", "P" },
    { "max-width", 0, 0, G_OPTION_ARG_FILENAME, &args->max_width,
      "With coverage: exit 5 if their median width in percent is larger, likewise", "P" },
    { "residuals", 0, 0, G_OPTION_ARG_FILENAME, &args->residuals,
      "Write what was measured over what was predicted, for run --residuals", "NAME.json" },
    { "fold", 0, 0, G_OPTION_ARG_FILENAME, &args->fold, "As for run", "auto|off|check" },
    { "coarsen", 0, 0, G_OPTION_ARG_FILENAME, &args->coarsen, "As for run", "auto|off|check" },
    { "network", 0, 0, G_OPTION_ARG_FILENAME, &args->network, "As for run", "flow|alphabeta|step" },
    { "chart", 0, 0, G_OPTION_ARG_FILENAME, &args->chart,
      "Draw predicted over measured time (.svg or .png, by gnuplot; .gp: its script)", "FILE" },
    { "markdown", 0, 0, G_OPTION_ARG_FILENAME, &args->markdown,
      "Write the scores by family as a table in Markdown", "FILE" },
    { "ablate", 0, 0, G_OPTION_ARG_NONE, &args->ablate,
      "Simulate all again with each mechanism off in turn, and show what that does to the errors", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!cli_parse (argc, argv, &help, entries, NULL, ret_done, error))
    return FALSE;
  if (!*ret_done && (*argc != 2 || args->n_threads < 0)) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%s",
                 *argc != 2 ? "expected one file of cases" : "-j: expected a number of threads");
    return FALSE;
  }
  return TRUE;
}

/* Before minutes are spent. */
static gboolean
check_outputs (const Args *args, GError **error)
{
  return (!args->chart || ls_check_output_path (LS_OUTPUT_PLOT, args->chart, error))
      && (!args->markdown || ls_check_output_path (LS_OUTPUT_CSV, args->markdown, error));
}

static gboolean
write_files (const LsValidation *validation, const Args *args, GError **error)
{
  return (!args->markdown || ls_validation_write_markdown (validation, args->markdown, error))
      && (!args->chart || ls_validation_plot (validation, args->chart, error))
      && (!args->residuals || ls_validation_write_residuals (validation, args->residuals, error));
}

gboolean
cli_validate (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  gboolean is_done = FALSE;
  Limits limits;
  CliProgress progress;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  if (!parse_limits (&args, &limits, error) || !check_outputs (&args, error))
    return FALSE;

  const LsValidateOptions options = {
    .cases_path = argv[1],
    .split = args.split,
    .only = args.only,
    .n_threads = (guint) args.n_threads,
    .fold = args.fold,
    .coarsen = args.coarsen,
    .network = args.network,
    .debug = g_getenv ("LS_DEBUG"),
    .assume = (const char *const *) args.assume,
    .ablate = args.ablate,
    .coverage = args.coverage || args.min_coverage || args.max_width,
    .progress = cli_progress_show,
    .progress_data = &progress,
  };
  cli_progress_begin (&progress);
  g_autoptr (LsValidation) validation = ls_validation_run (&options, error);
  cli_progress_end (&progress);
  if (!validation
      || !ls_validation_check_simulated (validation, error)) /* a table without a result says nothing */
    return FALSE;
  g_autofree char *text = args.json ? ls_validation_json (validation) : ls_validation_text (validation);
  if (!cli_print (text, error) || !write_files (validation, &args, error))
    return FALSE;
  return check_limits (&args, &limits, validation, error);
}
