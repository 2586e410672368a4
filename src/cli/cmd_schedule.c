#include <langinfo.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

#define DEFAULT_WIDTH 120
#define MIN_WIDTH     50
#define MAX_WIDTH     1000

static const CliHelp help = {
  .usage = "schedule --schedule NAME|FILE.csv --pp P --micro-batches M [OPTION...]",
  .summary = "Draws and times a pipeline schedule: the order in which each rank executes forwards and\n"
             "backwards, its makespan, bubble and activations; or compares all of them. Without link\n"
             "contention and with equal stages: `lockstep run` has both.",
  .description
  = "Examples:\n"
    "  lockstep schedule --schedule zb-h1 --pp 4 --micro-batches 8 --b-time 1 --w-time 1\n"
    "  lockstep schedule --schedule interleaved-1f1b --pp 4 --vpp 2 --micro-batches 8 --format svg "
    "-o chart.svg\n"
    "  lockstep schedule --schedule mine.csv --f-time 2ms --b-time 4ms --json\n"
    "  lockstep schedule --all --pp 8 --micro-batches 32 --plot bubbles.svg\n\n" CLI_EXIT_CODES,
};

typedef struct {
  LsScheduleOptions options; /* its texts are owned */
  char *format, *output, *plot;
  int width;
  gboolean json;
} Args;

static void
args_clear (Args *args)
{
  const LsScheduleOptions *o = &args->options;
  const char *const texts[] = {
    o->schedule,  o->pp,           o->vpp,       o->micro_batches, o->group,   o->rounds,
    o->waves,     o->pipes,        o->f_time,    o->b_time,        o->w_time,  o->fb_time,
    o->comm_time, o->memory_limit, args->format, args->output,     args->plot,
  };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free ((char *) texts[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static gboolean
check_width (const Args *args, GError **error)
{
  if (args->width == 0 || (args->width >= MIN_WIDTH && args->width <= MAX_WIDTH))
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--width: expected %d to %d columns; got %d", MIN_WIDTH,
               MAX_WIDTH, args->width);
  return FALSE;
}

/* Sets the format where none was given. */
static gboolean
check_format (Args *args, GError **error)
{
  static const char *const formats[] = { "text", "csv", "json", "svg", "png" };
  if (args->json && args->format && strcmp (args->format, "json") != 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected --json or --format %s; got both", args->format);
    return FALSE;
  }
  if (!args->format)
    args->format = g_strdup (args->json ? "json" : "text");
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    if (strcmp (formats[i], args->format) == 0)
      return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               "--format: expected one of \"text\", \"csv\", \"json\", \"svg\", \"png\"; got \"%s\"",
               args->format);
  return FALSE;
}

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  LsScheduleOptions *o = &args->options;
  const GOptionEntry entries[] = {
    { "schedule", 0, 0, G_OPTION_ARG_FILENAME, &o->schedule,
      "A schedule's name, or a file in PyTorch's text format", "NAME|FILE.csv" },
    { "all", 0, 0, G_OPTION_ARG_NONE, &o->all, "Compare all schedules for the same job", NULL },
    { "pp", 0, 0, G_OPTION_ARG_FILENAME, &o->pp, "Ranks of the pipeline", "P" },
    { "vpp", 0, 0, G_OPTION_ARG_FILENAME, &o->vpp,
      "Chunks of a rank, where the schedule leaves a choice; with --all default 2", "V" },
    { "micro-batches", 0, 0, G_OPTION_ARG_FILENAME, &o->micro_batches, "Micro-batches of a step", "M" },
    { "group", 0, 0, G_OPTION_ARG_FILENAME, &o->group,
      "Micro-batches that pass a chunk before the next chunk's turn: interleaved-1f1b, default P; hanayo, "
      "default M",
      "N" },
    { "rounds", 0, 0, G_OPTION_ARG_FILENAME, &o->rounds,
      "Whose rule forms the groups of interleaved-1f1b; default megatron", "megatron|pytorch" },
    { "waves", 0, 0, G_OPTION_ARG_FILENAME, &o->waves, "Waves of hanayo, of two chunks each; default 1",
      "W" },
    { "pipes", 0, 0, G_OPTION_ARG_FILENAME, &o->pipes,
      "Replicas of chimera, half in each direction; default 2", "K" },
    { "f-time", 0, 0, G_OPTION_ARG_FILENAME, &o->f_time,
      "Forward of a chunk (with --all: of a rank's whole share): a number, or all times with a unit; default "
      "1",
      "T" },
    { "b-time", 0, 0, G_OPTION_ARG_FILENAME, &o->b_time,
      "Full backward, default 2; with --w-time the input gradient, default 1", "T" },
    { "w-time", 0, 0, G_OPTION_ARG_FILENAME, &o->w_time, "Weight gradient; default: half of the backward",
      "T" },
    { "fb-time", 0, 0, G_OPTION_ARG_FILENAME, &o->fb_time,
      "A forward and a backward together; default: one after the other", "T" },
    { "comm-time", 0, 0, G_OPTION_ARG_FILENAME, &o->comm_time, "From a rank to another; default 0", "T" },
    { "memory-limit", 0, 0, G_OPTION_ARG_FILENAME, &o->memory_limit,
      "For orders that are searched for: micro-batches of a rank's full activations; with --all others are "
      "marked that exceed it",
      "X" },
    { "format", 0, 0, G_OPTION_ARG_FILENAME, &args->format, "What to print; svg and png are drawn by gnuplot",
      "text|csv|json|svg|png" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "The same as --format json", NULL },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &args->output, "Where to; default: stdout, but for pictures",
      "FILE" },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &args->plot,
      "Draw as well (.svg or .png; .gp: its script): the schedule, or bubbles over micro-batches and over "
      "stages with --all",
      "FILE" },
    { "width", 0, 0, G_OPTION_ARG_INT, &args->width, "Columns of the text; default: the terminal's, or 120",
      "N" },
    G_OPTION_ENTRY_NULL,
  };
  if (!cli_parse (argc, argv, &help, entries, NULL, ret_done, error))
    return FALSE;
  if (*ret_done || *argc == 1)
    return *ret_done || (check_width (args, error) && check_format (args, error));
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
  return FALSE;
}

static gboolean
is_picture (const Args *args)
{
  return strcmp (args->format, "svg") == 0 || strcmp (args->format, "png") == 0;
}

/* Before the schedule is made: a mistake must not cost it. */
static gboolean
check_files (const Args *args, GError **error)
{
  if (args->plot && !ls_check_output_path (LS_OUTPUT_PLOT, args->plot, error))
    return FALSE;
  if (!is_picture (args))
    return !args->output || ls_check_output_path (LS_OUTPUT_CSV, args->output, error);
  g_autofree char *suffix = g_strconcat (".", args->format, NULL);
  if (args->output && g_str_has_suffix (args->output, suffix))
    return ls_check_output_path (LS_OUTPUT_PLOT, args->output, error);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--format %s: expected -o and a name that ends in %s",
               args->format, suffix);
  return FALSE;
}

static LsTextStyle
text_style (const Args *args)
{
  gboolean is_color = !args->output && isatty (STDOUT_FILENO) && !g_getenv ("NO_COLOR")
      && g_strcmp0 (g_getenv ("TERM"), "dumb") != 0;
  gboolean is_utf8 = strcmp (nl_langinfo (CODESET), "UTF-8") == 0;
  return (is_color ? LS_TEXT_COLOR : LS_TEXT_PLAIN) | (is_utf8 ? LS_TEXT_PLAIN : LS_TEXT_ASCII);
}

static guint
text_width (const Args *args)
{
  struct winsize size;
  if (args->width > 0)
    return (guint) args->width;
  if (!args->output && ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return MIN (size.ws_col, MAX_WIDTH);
  return DEFAULT_WIDTH;
}

static gboolean
put (const LsSchedule *schedule, const Args *args, GError **error)
{
  if (is_picture (args))
    return ls_schedule_plot (schedule, args->output, error);
  g_autofree char *text = strcmp (args->format, "json") == 0 ? ls_schedule_json (schedule)
      : strcmp (args->format, "csv") == 0                    ? ls_schedule_csv (schedule)
                                          : ls_schedule_text (schedule, text_style (args), text_width (args));
  return args->output ? ls_schedule_write (text, args->output, error) : cli_print (text, error);
}

gboolean
cli_schedule (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  if (!check_files (&args, error))
    return FALSE;
  g_autoptr (LsSchedule) schedule = ls_schedule_new (&args.options, error);
  if (!schedule || (args.plot && !ls_schedule_plot (schedule, args.plot, error)))
    return FALSE;
  return put (schedule, &args, error);
}
