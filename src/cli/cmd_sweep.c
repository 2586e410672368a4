#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/job_args.h"
#include "cli/progress.h"

typedef struct {
  CliJob job; /* first: callbacks of its entries get the address of all */
  char *prune, *top, *time_limit, *threads, *gpu_hour, *gpu_watts, *pue, *list, *journal;
  char *ranges, *heat_map, *heat_axes, *heat_figure, *pareto_chart, *scaling_chart;
  gboolean pareto, mpi, timing, json, csv;
} Args;

static void
args_clear (Args *args)
{
  cli_job_clear (&args->job);
  char *texts[]
      = { args->prune,     args->top,       args->time_limit,  args->threads,      args->gpu_hour,
          args->gpu_watts, args->pue,       args->list,        args->journal,      args->ranges,
          args->heat_map,  args->heat_axes, args->heat_figure, args->pareto_chart, args->scaling_chart };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static const CliHelp help = {
  .usage = "sweep --model NAME|FILE --cluster NAME|FILE --gpus N --global-batch B [OPTION...]",
  .summary
  = "The best of all legal configurations: enumerated, those that cannot fit or cannot win left out\n"
    "by bounds, the rest simulated on threads. --gpus, --global-batch, --tp, --pp, --cp, --ep, --vpp,\n"
    "--sp, --zero, --dp-kind, --micro-batch, --schedule, --recompute and --tp-overlap take a list\n"
    "(\"1,2,4\", or the doublings \"1..4\") that narrows their range; every other knob of parallelism\n"
    "takes one too (--p2p batched,overlapped; where values have commas: --layers-per-chunk\n"
    "auto/balanced/4x13,3x3). The other options that say which job are those of lockstep run, --for and\n"
    "--headroom among them.",
  .job = CLI_JOB_TAKEN,
  .description
  = "Ctrl-C ends it with the results so far and exit code 6; a second time at once.\n\n"
    "Examples:\n"
    "  lockstep sweep --model gpt-7.5b --cluster dgx-a100-80g --gpus 64 --global-batch 512\n"
    "  lockstep sweep --model llama3.1-8b --cluster dgx-h100 --gpus 16 --global-batch 64 --for megatron\n"
    "  lockstep sweep --model gpt-39.1b --cluster dgx-a100-80g --gpus 64 --global-batch 128 --micro-batch 1 "
    "--p2p scatter-gather --list all.csv\n\n" CLI_EXIT_CODES,
};

/* Flags that a sweep has not. */
static const char *const single_flags[]
    = { "trace", "order", "measured", "published", "slow", "dp", "slice", NULL };

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry others[] = {
    { "ranges", 0, 0, G_OPTION_ARG_FILENAME, &args->ranges,
      "Ranges of axes from a file; the flags override it", "FILE" },
    { "prune", 0, 0, G_OPTION_ARG_FILENAME, &args->prune, "off: simulate all that may fit; default on",
      "on|off" },
    { "top", 0, 0, G_OPTION_ARG_FILENAME, &args->top,
      "How many ideas are ranked of each number of GPUs and global batch; default 5", "N" },
    { "time-limit", 0, 0, G_OPTION_ARG_FILENAME, &args->time_limit,
      "End with the results so far after that time, with exit code 6", "TIME" },
    { "pareto", 0, 0, G_OPTION_ARG_NONE, &args->pareto,
      "Also what nothing beats in time, memory and cost together", NULL },
    { "threads", 'j', 0, G_OPTION_ARG_FILENAME, &args->threads, "Threads; default: one per processor", "N" },
    { "mpi", 0, 0, G_OPTION_ARG_NONE, &args->mpi, "With all processes that mpirun started", NULL },
    { "gpu-hour", 0, 0, G_OPTION_ARG_FILENAME, &args->gpu_hour,
      "Dollars for an hour of a GPU; default: of May 2026", "USD" },
    { "gpu-watts", 0, 0, G_OPTION_ARG_FILENAME, &args->gpu_watts, "Power of a GPU; default: its board limit",
      "W" },
    { "pue", 0, 0, G_OPTION_ARG_FILENAME, &args->pue, "Power of the data centre over that; default 1.1",
      "X" },
    { "list", 0, 0, G_OPTION_ARG_FILENAME, &args->list,
      "Write every simulated configuration with its picoseconds (CSV)", "FILE" },
    { "journal", 0, 0, G_OPTION_ARG_FILENAME, &args->journal,
      "Write down what is done; started again, the sweep goes on from there", "FILE" },
    { "heat-map", 0, 0, G_OPTION_ARG_FILENAME, &args->heat_map,
      "Draw the best over two axes, with what a bound left out (.svg or .png; .gp: its script)", "FILE" },
    { "heat-axes", 0, 0, G_OPTION_ARG_FILENAME, &args->heat_axes, "Which axes, across and up; default tp,pp",
      "A,B" },
    { "heat-figure", 0, 0, G_OPTION_ARG_FILENAME, &args->heat_figure,
      "Of which figure: step, tokens, mfu; default step", "NAME" },
    { "pareto-chart", 0, 0, G_OPTION_ARG_FILENAME, &args->pareto_chart,
      "Draw time, memory and cost (.svg or .png; .gp: its script); implies --pareto", "FILE" },
    { "scaling-chart", 0, 0, G_OPTION_ARG_FILENAME, &args->scaling_chart,
      "Draw the best over several numbers of GPUs or batches against ideal scaling (.svg or .png; .gp: its "
      "script)",
      "FILE" },
    { "timing", 0, 0, G_OPTION_ARG_NONE, &args->timing, "Also how long it took", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    { "csv", 0, 0, G_OPTION_ARG_NONE, &args->csv, "Print a row for each of the best", NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  cli_job_entries (&args->job, single_flags, entries);
  g_array_append_vals (entries, others, G_N_ELEMENTS (others) - 1);
  if (!cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done, error))
    return FALSE;
  const char *wrong = args->json && args->csv ? "--json and --csv exclude each other"
      : !args->heat_map && (args->heat_axes || args->heat_figure)
      ? "--heat-axes and --heat-figure need --heat-map"
      : NULL;
  if (*ret_done || (!wrong && *argc == 1))
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, wrong ? "%s" : "unexpected argument \"%s\"",
               wrong ? wrong : (*argv)[1]);
  return FALSE;
}

static gboolean
set_knob (gpointer sweep, const char *key, const char *value, GError **error)
{
  return ls_sweep_set (sweep, key, value, error);
}

static LsSweep *
make_sweep (const Args *args, LsTeam *team, GError **error)
{
  const struct {
    const char *key, *value;
  } own[] = {
    { "prune", args->prune },     { "top", args->top },           { "time-limit", args->time_limit },
    { "threads", args->threads }, { "gpu-hour", args->gpu_hour }, { "gpu-watts", args->gpu_watts },
    { "pue", args->pue },
  };
  g_autoptr (LsSweep) sweep = ls_sweep_new ();
  if (args->ranges && !ls_sweep_load_ranges (sweep, args->ranges, error))
    return NULL;
  if (!cli_job_apply (&args->job, set_knob, sweep, error))
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    if (own[i].value && !ls_sweep_set (sweep, own[i].key, own[i].value, error))
      return NULL;
  if (args->heat_map && !ls_sweep_set_heat_map (sweep, args->heat_axes, args->heat_figure, error))
    return NULL;
  ls_sweep_set_pareto (sweep, args->pareto || args->pareto_chart);
  ls_sweep_set_timing (sweep, args->timing);
  ls_sweep_set_scaling_chart (sweep, args->scaling_chart != NULL);
  ls_sweep_set_journal (sweep, args->journal);
  ls_sweep_set_team (sweep, team);
  return g_steal_pointer (&sweep);
}

/* Before the search: a mistake must not cost it. */
static gboolean
check_files (const Args *args, GError **error)
{
  const char *const charts[] = { args->heat_map, args->pareto_chart, args->scaling_chart };
  for (guint i = 0; i < G_N_ELEMENTS (charts); i++)
    if (charts[i] && !ls_check_output_path (LS_OUTPUT_PLOT, charts[i], error))
      return FALSE;
  return !args->list || ls_check_output_path (LS_OUTPUT_CSV, args->list, error);
}

static gboolean
write_files (const LsSweep *sweep, const Args *args, GError **error)
{
  if (args->list && !ls_sweep_write_list (sweep, args->list, error))
    return FALSE;
  if (args->heat_map && !ls_sweep_write_heat_map (sweep, args->heat_map, error))
    return FALSE;
  if (args->pareto_chart && !ls_sweep_write_pareto_chart (sweep, args->pareto_chart, error))
    return FALSE;
  return !args->scaling_chart || ls_sweep_write_scaling_chart (sweep, args->scaling_chart, error);
}

/* --- while it runs ------------------------------------------------------------------------ */

static gint stop_asked;

/* The second time the signal does what it does by itself. */
static void
on_interrupt (int number)
{
  g_atomic_int_set (&stop_asked, 1);
  signal (number, SIG_DFL);
}

static gboolean
run_sweep (LsSweep *sweep, GError **error)
{
  CliProgress progress;
  cli_progress_begin (&progress);
  signal (SIGINT, on_interrupt);
  signal (SIGTERM, on_interrupt);
  gboolean ok = ls_sweep_run (sweep, &stop_asked, cli_progress_show, &progress, error);
  signal (SIGINT, SIG_DFL);
  signal (SIGTERM, SIG_DFL);
  cli_progress_end (&progress);
  return ok;
}

static gboolean
sweep (int argc, char **argv, LsTeam *team, GError **error)
{
  g_auto (Args) args = { 0 };
  cli_job_init (&args.job);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  gboolean is_mate = team && ls_team_rank (team) > 0;
  g_autoptr (LsSweep) sweep = make_sweep (&args, team, error);
  if (!sweep || (!is_mate && !check_files (&args, error)) || !run_sweep (sweep, error))
    return FALSE;
  if (is_mate)
    return TRUE;
  if (!write_files (sweep, &args, error))
    return FALSE;
  g_autofree char *text = args.json ? ls_sweep_json (sweep)
      : args.csv                    ? ls_sweep_csv (sweep)
                                    : ls_sweep_text (sweep);
  return cli_print (text, error) && ls_sweep_check (sweep, error);
}

/* Of all processes only the leader prints; it also gets the errors of the others. */
static gboolean
sweep_together (int argc, char **argv, GError **error)
{
  g_autoptr (GError) problem = NULL;
  LsTeam *team = ls_team_join (error);
  if (!team)
    return FALSE;
  gboolean is_leader = ls_team_rank (team) == 0;
  if (!is_leader && !freopen ("/dev/null", "w", stdout))
    cli_warn ("cannot open /dev/null");
  sweep (argc, argv, team, &problem);
  ls_team_leave (team, problem);
  if (!is_leader || !problem)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&problem));
  return FALSE;
}

gboolean
cli_sweep (int argc, char **argv, GError **error)
{
  for (int i = 1; i < argc; i++) /* before anything can fail */
    if (strcmp (argv[i], "--mpi") == 0)
      return sweep_together (argc, argv, error);
  return sweep (argc, argv, NULL, error);
}
