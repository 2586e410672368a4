/* `lockstep sweep`: the best of all legal configurations. */
#include <string.h>

#include <lockstep/error.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/job_answer.h"
#include "api/request.h"
#include "api/sweep_capture.h"
#include "data/jobs/emit.h"
#include "data/text/write_file.h"
#include "show/plot/plots.h"
#include "show/answers.h"
#include "sweep/sweep_charts.h"

static const LsOption own[] = {
  { "command", .is_positional = TRUE, .is_repeated = TRUE, .argument = "COMMAND",
    .meaning = "Of --capture, after --: what starts the training, with {tp} where a value of --tp goes" },
  { "capture",
    .meaning
    = "Layouts of a program of yours: each is captured (lockstep capture) and replayed on --cluster" },
  { "ranges", .takes_json = TRUE, .argument = "FILE",
    .meaning = "Ranges of axes from a file; the flags override it" },
  { "prune", .argument = "on|off", .meaning = "off: simulate all that may fit; default on" },
  { "top", .argument = "N",
    .meaning = "How many ideas are ranked of each number of GPUs and global batch; default 5" },
  { "objective", .argument = "NAME",
    .meaning = "What the best is best in: step; goodput: tokens that count, with failures; time-to-loss; "
               "cost-to-loss; default step" },
  { "loss", .argument = "X",
    .meaning = "The loss, in nats per token: a law says how many tokens that takes" },
  { "tokens", .argument = "N", .meaning = "Tokens that small batches need, in its place" },
  { "scaling-law", .argument = "NAME|FILE",
    .meaning = "The law of --loss (lockstep list scaling); default: besiroglu-2024" },
  { "critical-batch", .argument = "TOKENS|NAME|FILE",
    .meaning
    = "Where a larger batch begins to need more tokens: steps of B tokens need 1 + B / TOKENS times as "
      "many; a law says it of the loss" },
  { "reliability", .argument = "NAME|FILE",
    .meaning
    = "How often what fails (lockstep list reliability); none: nothing; default: llama3-h100, of TPUs "
      "none" },
  { "time-limit", .argument = "TIME",
    .meaning = "End with the results so far after that time, with exit code 6" },
  { "pareto", .meaning = "Also what nothing beats in time, memory and cost together" },
  { "threads", .letter = 'j', .argument = "N", .meaning = "Threads; default: one per processor" },
  LS_OPTION_MPI,
  { "gpu-hour", .argument = "USD", .meaning = "Dollars for an hour of a GPU; default: of May 2026" },
  { "gpu-watts", .argument = "W",
    .meaning
    = "Power of a GPU, whatever it does; default: what is published of it by what it does, or its board "
      "limit" },
  { "pue", .argument = "X", .meaning = "Power of the data centre over that; default 1.1" },
  { "list", .argument = "FILE", .writes = LS_WRITES_FILE,
    .meaning = "Write every simulated configuration with its picoseconds (CSV)" },
  { "journal", .argument = "FILE",
    .meaning = "Write down what is done; started again, the sweep goes on from there" },
  { "heat-map", .argument = "FILE", .writes = LS_WRITES_PICTURE,
    .meaning = "Draw the best over two axes, with what a bound left out (.svg or .png; .gp: its script)" },
  { "heat-axes", .argument = "A,B", .meaning = "Which axes, across and up; default tp,pp" },
  { "heat-figure", .argument = "NAME", .meaning = "Of which figure: step, tokens, mfu; default step" },
  { "pareto-chart", .argument = "FILE", .writes = LS_WRITES_PICTURE,
    .meaning = "Draw time, memory and cost (.svg or .png; .gp: its script); implies --pareto" },
  { "scaling-chart", .argument = "FILE", .writes = LS_WRITES_PICTURE,
    .meaning = "Draw the best over several numbers of GPUs or batches against ideal scaling (.svg or .png; "
               ".gp: its script)" },
  { "emit", .argument = "PROGRAM",
    .meaning
    = "Print the best for that program instead, which --for names: megatron, torchtitan, deepspeed" },
  { "timing", .meaning = "Also how long it took" },
  LS_OPTION_REPORT,
  LS_OPTION_FORMAT ("text|json|csv|markdown"),
  { "json", .meaning = "Print JSON" },
  { "csv", .meaning = "Print a row for each of the best" },
  { NULL },
};

/* Of its own, those that ls_sweep_spec_set() reads. */
static const char *const set_by_spec[]
    = { "objective", "loss",       "tokens",  "scaling-law", "critical-batch", "reliability", "prune",
        "top",       "time-limit", "threads", "gpu-hour",    "gpu-watts",      "pue",         NULL };

/* Flags of a job that a sweep has not. */
static const char *const without[]
    = { "trace", "order", "measured", "published", "slow", "dp", "slice", NULL };

typedef struct {
  LsSweepSpec spec;
  LsSweepRun *run;
  char *emitted; /* for another program, in place of the table; NULL: nobody asked */
} Data;

static void
data_free (gpointer data)
{
  Data *s = data;
  ls_sweep_run_free (s->run);
  ls_sweep_spec_clear (&s->spec);
  g_free (s->emitted);
  g_free (s);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Data, data_free)

/* --- what it prints and writes -------------------------------------------------------------------- */

static const LsSweepReport *
report (gconstpointer data)
{
  return ls_sweep_run_report (((const Data *) data)->run);
}

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  if (((const Data *) data)->emitted)
    return g_strdup (((const Data *) data)->emitted);
  return ls_sweep_to_text (report (data));
}

LS_ANSWER_FORM (to_json, ls_sweep_to_json (report (data)))
LS_ANSWER_FORM (to_csv, ls_sweep_to_csv (report (data)))

static void
page (gconstpointer data, LsPage *page)
{
  ls_page_set_title (page, report (data)->title, NULL);
  ls_page_take_packed (page, "simulated", ls_sweep_run_list (((const Data *) data)->run));
}

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, data_free, page };

static gboolean
write_list (gconstpointer data, const char *path, GError **error)
{
  g_autofree char *text = ls_sweep_run_list (((const Data *) data)->run);
  return ls_write_text (path, text, error);
}

static gboolean
write_heat_map (gconstpointer data, const char *path, GError **error)
{
  g_auto (LsHeatMap) map = { 0 };
  ls_sweep_run_heat_map (((const Data *) data)->run, &map);
  return ls_plot_heat (&map, path, error);
}

static gboolean
write_pareto_chart (gconstpointer data, const char *path, GError **error)
{
  g_auto (LsParetoPlot) plot = { 0 };
  ls_sweep_run_pareto (((const Data *) data)->run, &plot);
  return ls_plot_pareto (&plot, path, error);
}

static gboolean
write_scaling_chart (gconstpointer data, const char *path, GError **error)
{
  return ls_plot_scaling (report (data), path, error);
}

/* --- the command ---------------------------------------------------------------------------------- */

static gboolean
load_ranges (LsSweepSpec *spec, const char *path, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsRanges ranges;
  if (!ls_ranges_load (path, &ranges, diags))
    return ls_diag_list_to_error (diags, error);
  ls_space_set_ranges (&spec->space, &ranges);
  ls_ranges_clear (&ranges);
  return TRUE;
}

LS_REQUEST_SET (set_knob, ls_sweep_spec_set)

/* What a chart needs is gathered while it searches. */
static gboolean
ask_for_charts (LsSweepSpec *spec, const LsRequest *r, GError **error)
{
  const char *axes = ls_request_text (r, "heat-axes"), *figure = ls_request_text (r, "heat-figure");
  gboolean has_map = ls_request_text (r, "heat-map") != NULL;
  if (!has_map && (axes || figure))
    return ls_request_refuse ("--heat-axes and --heat-figure need --heat-map", error);
  spec->pareto = ls_request_is_on (r, "pareto") || ls_request_text (r, "pareto-chart");
  spec->scaling_chart = ls_request_text (r, "scaling-chart") != NULL;
  return !has_map || ls_sweep_spec_set_heat (spec, axes, figure, error);
}

static gboolean
read_spec (LsSweepSpec *spec, const LsRequest *r, GError **error)
{
  const char *ranges = ls_request_text (r, "ranges");
  if ((ranges && !load_ranges (spec, ranges, error)) || !ls_request_set_job (r, set_knob, spec, error)
      || !ls_request_set_all (r, set_by_spec, set_knob, spec, error) || !ask_for_charts (spec, r, error))
    return FALSE;
  spec->has_timing = ls_request_is_on (r, "timing");
  spec->journal = ls_request_text (r, "journal");
  spec->team = ls_request_team (r);
  spec->stop = ls_request_stop (r);
  spec->progress = ls_request_progress (r);
  return TRUE;
}

static void
check_result (const LsSweepReport *s, LsAnswer *a)
{
  if (s->is_interrupted)
    ls_answer_fail (a,
                    g_error_new (LS_ERROR, LS_ERROR_STOPPED,
                                 "stopped with %" G_GUINT64_FORMAT
                                 " configurations left: these are the results so far",
                                 s->counts.left));
  else if (s->best->len == 0)
    ls_answer_fail (a,
                    g_error_new (LS_ERROR, LS_ERROR_NO_FIT,
                                 "of %" G_GUINT64_FORMAT " configurations %" G_GUINT64_FORMAT
                                 " are illegal and %" G_GUINT64_FORMAT " do not fit",
                                 s->counts.enumerated, s->counts.illegal, s->counts.infeasible));
}

/* Only a sweep for the program tries what it can run. */
static gboolean
check_emit (const LsRequest *r, const LsSweepSpec *spec, GError **error)
{
  static const char *const others[] = { "json", "csv", "format", NULL };
  const char *target = ls_request_text (r, "emit");
  if (!target)
    return TRUE;
  if (ls_request_has_any (r, others))
    return ls_request_refuse ("--emit goes neither with --json nor with --csv: it prints the job instead",
                              error);
  if (!ls_emit_check_target (target, error))
    return FALSE;
  if (spec->job.program && strcmp (spec->job.program->emit, target) == 0)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               "--emit %s goes with --for %s, so that it can run what is found", target, target);
  return FALSE;
}

static void
emit (Data *s, const LsRequest *r, LsAnswer *a)
{
  GError *error = NULL;
  g_autofree char *notes = NULL;
  const char *target = ls_request_text (r, "emit");
  s->emitted = target && report (s)->best->len > 0 ? ls_sweep_emit (s->run, target, &notes, &error) : NULL;
  if (s->emitted)
    ls_answer_note_lines (a, notes);
  else if (error)
    ls_answer_fail (a, error);
}

/* All but these belong to layouts of a model. */
static gboolean
check_capture (const LsRequest *r, GError **error)
{
  static const char *const allowed[] = { "capture", "command", "format", "json", NULL };
  for (const LsOption *o = own; o->key; o++) {
    if (g_strv_contains (allowed, o->key) || (!ls_request_text (r, o->key) && !ls_request_is_on (r, o->key)))
      continue;
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s does not go with --capture", o->key);
    return FALSE;
  }
  return TRUE;
}

/* Of a team only the leader has results. */
static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  if (ls_request_is_on (r, "capture"))
    return check_capture (r, error) && ls_sweep_capture (r, a, error);
  if (ls_request_text (r, "command"))
    return ls_request_refuse ("a command goes with --capture", error);
  g_autoptr (Data) made = g_new0 (Data, 1);
  ls_sweep_spec_init (&made->spec);
  if (!read_spec (&made->spec, r, error) || !check_emit (r, &made->spec, error))
    return FALSE;
  ls_job_tell_from (&made->spec.job, a);
  ls_job_tell_unasked (&made->spec.job, a);
  made->run = ls_sweep_spec_run (&made->spec, error);
  if (!made->run)
    return FALSE;
  if (!ls_request_leads (r)) {
    ls_answer_take_text (a, g_strdup (""));
    return TRUE;
  }
  Data *s = g_steal_pointer (&made);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  ls_sweep_run_notes (s->run, notes);
  ls_answer_note_all (a, notes);
  ls_answer_take (a, s, &forms);
  emit (s, r, a);
  ls_answer_write (a, r, "list", write_list);
  ls_answer_write (a, r, "heat-map", write_heat_map);
  ls_answer_write (a, r, "pareto-chart", write_pareto_chart);
  ls_answer_write (a, r, "scaling-chart", write_scaling_chart);
  check_result (report (s), a);
  return TRUE;
}

LsTeam *
ls_team_join (GError **error)
{
  return ls_team_new (error);
}

guint
ls_team_rank (const LsTeam *team)
{
  g_return_val_if_fail (team, 0);
  return ls_team_own_rank (team);
}

void
ls_team_leave (LsTeam *team, const GError *error)
{
  ls_team_free (team, error);
}

const Command command_sweep = {
  .shown = {
    .name = "sweep",
    .line = "the best of all legal configurations of a job",
    .usage = "sweep --model NAME|FILE --cluster NAME|FILE --gpus N --global-batch B [OPTION...]",
    .summary
    = "The best of all legal configurations: enumerated, those that cannot fit or cannot win left out\n"
      "by bounds, the rest simulated on threads. --gpus, --global-batch, --tp, --pp, --cp, --ep, --vpp,\n"
      "--sp, --zero, --dp-kind, --micro-batch, --schedule, --recompute and --tp-overlap take a list\n"
      "(\"1,2,4\", or the doublings \"1..4\") that narrows their range; every other knob of parallelism\n"
      "takes one too (--p2p batched,overlapped; where values have commas: --layers-per-chunk\n"
      "auto/balanced/4x13,3x3). The other options that say which job are those of lockstep run, --for and\n"
      "--headroom among them. With --capture the layouts are those of a program of yours: each is captured\n"
      "(lockstep capture), and its step replayed on --cluster.",
    .examples
    = "Ctrl-C ends it with the results so far and exit code 6; a second time at once.\n\n"
      "Examples:\n"
      "  lockstep sweep --model gpt-7.5b --cluster dgx-a100-80g --gpus 16 --global-batch 128\n"
      "  lockstep sweep --model llama3.1-8b --cluster dgx-h100 --gpus 16 --global-batch 64 --for megatron "
      "--top 3\n"
      "  lockstep sweep --model gpt-7.5b --cluster dgx-a100-80g --gpus 16 --global-batch 64 "
      "--micro-batch 1 --p2p scatter-gather --list all.csv",
    .job = LS_JOB_TAKEN,
    .can_stop = TRUE,
  },
  .own = own,
  .without = without,
  .run = run,
};
