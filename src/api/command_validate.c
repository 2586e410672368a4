/* `lockstep validate`: measured training runs, simulated. */
#include <math.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "data/measured/read_cases.h"
#include "data/text/write_file.h"
#include "show/fits/write_fits.h"
#include "show/plot/plots.h"
#include "validate/validate.h"

static const LsOption own[] = {
  { "cases", .is_positional = TRUE, .is_repeated = TRUE, .argument = "FILE",
    .meaning = "Tables of measured runs, a row each (CSV), and logs of programs that import reads" },
  { "from", .argument = "FILE", .is_repeated = TRUE,
    .meaning = "A log, as its name alone is: a job of its own; may be repeated" },
  { "cluster", .argument = "NAME|FILE",
    .meaning = "Where the logs ran, and rows that name no cluster; without it, such rows by their hardware" },
  { "split", .argument = "validation|pool", .meaning = "Only rows of this split" },
  { "only", .argument = "REGEX", .meaning = "Only rows whose id matches" },
  { "threads", .letter = 'j', .argument = "N", .meaning = "Threads; default: one per processor" },
  LS_OPTION_MPI,
  { "assume", .argument = "KNOB=VALUE", .is_repeated = TRUE,
    .meaning = "Sets a knob of the strategy, or a host cost, for every row, whatever the row says; may be "
               "repeated" },
  { "max-mape", .argument = "P", .meaning = "Exit 5 if the mean absolute error in percent is larger" },
  { "coverage",
    .meaning = "Whether intervals as of run hold: those of each source by what the others measured" },
  { "min-coverage", .argument = "P",
    .meaning = "With coverage: exit 5 if they hold less percent, each source counting once" },
  { "max-width", .argument = "P",
    .meaning = "With coverage: exit 5 if their median width in percent is larger, likewise" },
  { "residuals", .argument = "NAME.json", .writes = LS_WRITES_NAMED,
    .meaning = "Write what was measured over what was predicted, for run --residuals" },
  { "fold", .argument = "auto|off|check", .meaning = "As for run" },
  { "coarsen", .argument = "auto|off|check", .meaning = "As for run" },
  { "network", .argument = "flow|alphabeta|step", .meaning = "As for run" },
  { "chart", .argument = "FILE", .writes = LS_WRITES_PICTURE,
    .meaning = "Draw predicted over measured time (.svg or .png, by gnuplot; .gp: its script)" },
  { "markdown", .argument = "FILE", .writes = LS_WRITES_FILE,
    .meaning = "Write the scores by family as a table in Markdown" },
  { "ablate",
    .meaning = "Simulate all again with each mechanism off in turn, and show what that does to the errors" },
  { "template", .meaning = "Print a file of cases to fill in, and exit" },
  LS_OPTION_REPORT,
  { "json", .meaning = "Print JSON" },
  { NULL },
};

static const char *const of_coverage[] = { "coverage", "min-coverage", "max-width", NULL };

/* --- what it prints and writes -------------------------------------------------------------------- */

LS_ANSWER_FORM (to_text, ls_scores_to_text (ls_validation_run_scores (data)))
LS_ANSWER_FORM (to_json, ls_scores_to_json (ls_validation_run_scores (data)))
LS_ANSWER_FREE (run_free, ls_validation_run_free)

static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = run_free };

static gboolean
write_residuals (gconstpointer run, const char *path, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  if (!name)
    return FALSE;
  g_autofree char *text = ls_validation_run_residuals (run, name, ls_version ());
  return ls_write_text (path, text, error);
}

static gboolean
write_markdown (gconstpointer run, const char *path, GError **error)
{
  g_autofree char *text = ls_scores_to_markdown (ls_validation_run_scores (run));
  return ls_write_text (path, text, error);
}

static gboolean
draw (gconstpointer run, const char *path, GError **error)
{
  return ls_plot_scores (ls_validation_run_scores (run), path, error);
}

/* --- what may fail though there is a result ------------------------------------------------------- */

typedef struct {
  double max_mape, min_coverage, max_width; /* percent */
  gboolean has_coverage;                    /* one of the last two was asked for */
} Limits;

static gboolean
read_limits (const LsRequest *r, Limits *limits, GError **error)
{
  static const char *const of_limits[] = { "min-coverage", "max-width", NULL };
  *limits = (Limits) { INFINITY, 0, INFINITY, ls_request_has_any (r, of_limits) };
  const char *network = ls_request_text (r, "network");
  if (ls_request_text (r, "residuals") && network && g_strcmp0 (network, "flow") != 0)
    return ls_request_refuse ("--residuals are of --network flow, as the intervals of run are", error);
  return ls_request_percent (r, "max-mape", G_MAXDOUBLE, &limits->max_mape, error)
      && ls_request_percent (r, "min-coverage", 100, &limits->min_coverage, error)
      && ls_request_percent (r, "max-width", G_MAXDOUBLE, &limits->max_width, error);
}

/* A figure that is not known is outside. */
static GError *
outside_coverage (const LsCoverage *c, const Limits *limits)
{
  if (100 * c->each.covered >= limits->min_coverage && 100 * c->each.width <= limits->max_width)
    return NULL;
  if (c->each.n == 0)
    return g_error_new (LS_ERROR, LS_ERROR_TOLERANCE, "no row has an interval by the other sources");
  if (100 * c->each.covered < limits->min_coverage)
    return g_error_new (LS_ERROR, LS_ERROR_TOLERANCE,
                        "intervals hold %.2f %% of each source by the others, less than %.2f %%",
                        100 * c->each.covered, limits->min_coverage);
  return g_error_new (LS_ERROR, LS_ERROR_TOLERANCE, "median width of intervals %.2f %% exceeds %.2f %%",
                      100 * c->each.width, limits->max_width);
}

static void
check_limits (const LsScores *scores, const Limits *limits, LsAnswer *a)
{
  if (scores->total.mape_pct > limits->max_mape)
    ls_answer_fail (a,
                    g_error_new (LS_ERROR, LS_ERROR_TOLERANCE, "mean absolute error %.2f %% exceeds %.2f %%",
                                 scores->total.mape_pct, limits->max_mape));
  GError *error = limits->has_coverage ? outside_coverage (scores->coverage, limits) : NULL;
  if (error)
    ls_answer_fail (a, error);
}

/* A table without a result says nothing. */
static gboolean
check_simulated (const LsScores *scores, GError **error)
{
  if (scores->total.n > 0)
    return TRUE;
  g_autofree char *reasons = ls_scores_refusals (scores);
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "no case could be simulated, %u refused:\n%s",
               scores->total.refused, g_strchomp (reasons));
  return FALSE;
}

/* --- the command ---------------------------------------------------------------------------------- */

/* A table has one column for what is predicted. */
static gboolean
check_network (const LsJobSpec *spec, GError **error)
{
  return spec->network != LS_JOB_NETWORK_ALL
      || ls_request_refuse ("--network all is for lockstep run; expected flow, alphabeta or step", error);
}

/* The options of a run, checked as those of a job are. */
static gboolean
read_options (const LsRequest *r, LsRunOptions *ret_options, GError **error)
{
  static const char *const keys[] = { "fold", "coarsen", "network", NULL };
  LsJobSpec spec;
  gboolean ok = ls_request_job (r, &spec, error)
      && ls_request_set_all (r, keys, ls_request_set_knob, &spec, error) && check_network (&spec, error)
      && ls_job_spec_options (&spec, ret_options, error);
  ls_job_spec_clear (&spec);
  return ok;
}

static LsValidationRun *
validate (const LsRequest *r, GError **error)
{
  g_autofree const char **paths = ls_request_paths (r, "cases"), **assume = ls_request_texts (r, "assume");
  LsRunOptions options;
  LsValidateSpec spec = {
    .paths = paths,
    .cluster = ls_request_text (r, "cluster"),
    .split = ls_request_text (r, "split"),
    .only = ls_request_text (r, "only"),
    .options = &options,
    .assume = assume,
    .ablate = ls_request_is_on (r, "ablate"),
    .with_coverage = ls_request_has_any (r, of_coverage),
    .progress = ls_request_progress (r),
    .team = ls_request_team (r),
  };
  if (!ls_request_threads (r, &spec.n_threads, error) || !read_options (r, &options, error))
    return NULL;
  return ls_validate (&spec, error);
}

static gboolean
show_template (const LsRequest *r, LsAnswer *a, GError **error)
{
  if (!ls_request_is_alone (r, "template"))
    return ls_request_refuse ("--template goes without a file of cases and other options", error);
  ls_answer_take_text (a, ls_template_text ("runs"));
  return TRUE;
}

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  Limits limits;
  if (ls_request_is_on (r, "template"))
    return show_template (r, a, error);
  if (!ls_request_text (r, "cases") && !ls_request_text (r, "from"))
    return ls_request_refuse ("expected a file of cases, or logs", error);
  if (!read_limits (r, &limits, error))
    return FALSE;
  LsValidationRun *made = validate (r, error);
  if (!made)
    return FALSE;
  ls_answer_take (a, made, &forms);
  if (!check_simulated (ls_validation_run_scores (made), error))
    return FALSE;
  if (!ls_request_leads (r))
    return TRUE;
  ls_answer_write (a, r, "markdown", write_markdown);
  ls_answer_write (a, r, "chart", draw);
  ls_answer_write (a, r, "residuals", write_residuals);
  check_limits (ls_validation_run_scores (made), &limits, a);
  return TRUE;
}

const Command command_validate = {
  .shown = {
    .name = "validate",
    .line = "compare with published measurements",
    .usage = "validate CASES.csv... | LOG... --cluster NAME|FILE [OPTION...]\n"
             "  lockstep validate --template",
    .summary = "Simulates measured training runs and compares the step times. A case that needs a\n"
               "mechanism which does not exist yet is refused with the reason, never guessed.",
    .examples = "Examples:\n"
                "  lockstep validate --template > mine.csv\n"
                "  lockstep validate cases.csv --split validation\n"
                "  lockstep validate megatron.log --cluster dgx-h100\n"
                "  lockstep validate cases.csv --only '^korth' -j 4 --max-mape 10 --json\n"
                "  lockstep validate cases.csv --chart errors.svg --markdown table.md --ablate",
  },
  .own = own,
  .run = run,
};
