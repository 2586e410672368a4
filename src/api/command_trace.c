/* `lockstep trace`: what a job does as a file. */
#include <string.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "api/answers.h"
#include "data/text/write_file.h"

static const LsOption own[] = {
  { "action", .is_positional = TRUE, .argument = "export|import", .meaning = "What to do: export, import" },
  { "file", .is_positional = TRUE, .is_repeated = TRUE, .argument = "FILE",
    .meaning = "Profiles, or a folder of Chakra traces, to import" },
  { "step", .argument = "N|FROM:TO", .usually = "",
    .meaning = "Import: which step, the N of ProfilerStep#N, or a range of time" },
  { "as-measured", .meaning = "Import: communication takes the time that it took, on any cluster" },
  { "without-stalls", .meaning = "Import: without waits for the host, and those that nothing explains" },
  { "compute-scale", .argument = "FACTOR", .usually = "1",
    .meaning = "Import: the time of kernels times this" },
  { "format", .argument = "lockstep|chakra|chakra-roles|goal", .usually = "lockstep",
    .meaning
    = "Export: a file of ours, a new folder of Chakra execution traces, of each rank or role, or GOAL" },
  { "output", .letter = 'o', .argument = "FILE", .writes = LS_WRITES_FILE,
    .meaning = "Where to write; required" },
  { NULL },
};

/* "a/gpt3.json" is named gpt3: a file says its own name. */
static char *
name_of (const char *path)
{
  g_autofree char *base = g_path_get_basename (path);
  char *suffix = g_str_has_suffix (base, ".json") ? base + strlen (base) - strlen (".json") : NULL;
  return g_strndup (base, suffix ? (gsize) (suffix - base) : strlen (base));
}

/* --- export: the plan of a job ---------------------------------------------------------------------- */

static gboolean
check_export (const LsRequest *r, GError **error)
{
  static const char *const files[] = { "file", NULL },
                           *const imports[]
      = { "step", "as-measured", "without-stalls", "compute-scale", NULL };
  if (ls_request_has_any (r, imports))
    return ls_request_refuse ("--step, --as-measured, --without-stalls and --compute-scale go with import",
                              error);
  return !ls_request_has_any (r, files)
      || ls_request_refuse ("trace export takes a job by its options, and no file", error);
}

static gboolean
export_ours (const LsJobSpec *spec, const char *name, const char *path, LsAnswer *a, GError **error)
{
  g_autofree char *text = ls_job_spec_export (spec, name, error);
  return text && ls_write_text (path, text, error);
}

static gboolean
export_chakra (const LsJobSpec *spec, const char *name, const char *path, LsAnswer *a, GError **error)
{
  return ls_job_spec_export_chakra (spec, name, false, path, error);
}

static gboolean
export_chakra_roles (const LsJobSpec *spec, const char *name, const char *path, LsAnswer *a, GError **error)
{
  return ls_job_spec_export_chakra (spec, name, true, path, error);
}

static gboolean
export_goal (const LsJobSpec *spec, const char *name, const char *path, LsAnswer *a, GError **error)
{
  g_autofree char *note = NULL;
  gboolean ok = ls_job_spec_export_goal (spec, name, path, &note, error);
  if (note)
    ls_answer_note (a, note);
  return ok;
}

static const struct {
  const char *name;
  gboolean (*write) (const LsJobSpec *spec, const char *name, const char *path, LsAnswer *a, GError **error);
} formats[] = {
  { "lockstep", export_ours },
  { "chakra", export_chakra },
  { "chakra-roles", export_chakra_roles },
  { "goal", export_goal },
};

/* Of formats: those that ls_request_form() has accepted. */
static guint
find_format (const LsRequest *r)
{
  const char *name = ls_request_text (r, "format");
  guint i = 0;
  while (name && strcmp (formats[i].name, name) != 0)
    i++;
  return i;
}

static gboolean
export_job (const LsRequest *r, LsAnswer *a, GError **error)
{
  guint format = find_format (r);
  if (!check_export (r, error))
    return FALSE;
  const char *path = ls_request_text (r, "output");
  g_autofree char *name = name_of (path);
  LsJobSpec spec;
  gboolean ok = ls_request_job (r, &spec, error) && formats[format].write (&spec, name, path, a, error);
  ls_job_spec_clear (&spec);
  if (ok)
    ls_answer_take_text (a, g_strdup (""));
  return ok;
}

/* --- the command ---------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  gboolean (*run) (const LsRequest *r, LsAnswer *a, GError **error);
} actions[] = {
  { "export", export_job },
  { "import", ls_trace_import },
};

/* "export" or ...: newly allocated. */
static char *
action_names (void)
{
  g_autoptr (GString) names = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (actions); i++)
    g_string_append_printf (names, "%s\"%s\"", i > 0 ? " or " : "", actions[i].name);
  return g_string_free (g_steal_pointer (&names), FALSE);
}

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *action = ls_request_text (r, "action");
  for (guint i = 0; action && i < G_N_ELEMENTS (actions); i++)
    if (strcmp (action, actions[i].name) == 0)
      return ls_request_text (r, "output") ? actions[i].run (r, a, error)
                                           : ls_request_refuse ("expected -o FILE", error);
  g_autofree char *names = action_names ();
  g_autofree char *got = action ? g_strdup_printf ("; got \"%s\"", action) : g_strdup ("");
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected %s%s", names, got);
  return FALSE;
}

const Command command_trace = {
  .shown = {
    .name = "trace",
    .line = "write what a job does, or did, as a file that run replays",
    .usage = "trace export|import [PROFILE...] [OPTION...] -o FILE",
    .summary = "Writes the plan of a job, what each rank runs and exchanges, as a file that lockstep run\n"
               "--trace replays: on the same cluster with the same result, or on another; or as Chakra\n"
               "traces (MLCommons), which it replays too; or in GOAL, for LogGOPSim and the like. All\n"
               "options of lockstep run that say which job are taken, from --model to --strategy. The\n"
               "formats are documented in the manual, formats/trace.md.\n"
               "\n"
               "trace import makes such a file of profiles of a real run, of one rank or of several, which\n"
               "PyTorch's profiler has written, or of an export of Nsight Systems (nsys export --type\n"
               "sqlite): kernels as measured, communication by the network of the replay. With --cluster it\n"
               "is replayed, and its step printed beside the measured one.",
    .examples
    = "Examples:\n"
      "  lockstep trace export --model gpt3-175b --cluster dgx-a100-80g --nodes 8 --tp 8 --pp 8 "
      "-o gpt3.json\n"
      "  lockstep run --trace ./gpt3.json --cluster dgx-h100\n"
      "  lockstep trace export --format chakra --model llama3.1-8b --cluster dgx-h100 --gpus 8 -o folder\n"
      "  lockstep run --trace ./folder --cluster dgx-h100\n"
      "  lockstep trace import rank0.json.gz -o mine.json --cluster dgx-h100",
    .job = LS_JOB_TAKEN,
  },
  .own = own,
  .run = run,
};
