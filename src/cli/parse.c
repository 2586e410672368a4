/* Options and arguments, by GOption, into a request. */
#include "cli/cli.h"

#include <string.h>

typedef struct {
  const LsCommand *command;
  LsRequest *request;
} Parse;

/* --- entries -------------------------------------------------------------------------------------- */

/* "--tp 8" becomes tp = 8; a switch may do without its value 1. */
static gboolean
on_option (const char *flag, const char *value, gpointer parse, GError **error)
{
  const char *name = flag + strspn (flag, "-");
  guint n;
  const LsOption *options = ls_command_options (((Parse *) parse)->command, &n);
  if (flag[1] != '-')
    for (guint i = 0; i < n; i++)
      if (options[i].letter == *name)
        name = options[i].key;
  return ls_request_set (((Parse *) parse)->request, name, value, error);
}

/* "--set tp_async=0" */
static gboolean
on_set (const char *flag, const char *text, gpointer parse, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, "=", 2);
  if (parts[0] && *parts[0] && parts[1])
    return ls_request_set (((Parse *) parse)->request, parts[0], parts[1], error);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--set: expected KEY=VALUE, such as tp_async=0; got \"%s\"",
               text);
  return FALSE;
}

static GOptionEntry
entry_of (const LsOption *o)
{
  gboolean is_knob_switch = !o->argument && o->topic;
  GOptionFlags flags = o->argument ? G_OPTION_FLAG_FILENAME
      : is_knob_switch             ? G_OPTION_FLAG_FILENAME | G_OPTION_FLAG_OPTIONAL_ARG
                                   : G_OPTION_FLAG_NO_ARG;
  return (GOptionEntry) { o->flag,    o->letter,  (int) flags, G_OPTION_ARG_CALLBACK, (gpointer) on_option,
                          o->meaning, o->argument };
}

static GArray *
entries_of (const LsCommand *command)
{
  const GOptionEntry set
      = { "set", 0, G_OPTION_FLAG_FILENAME, G_OPTION_ARG_CALLBACK, (gpointer) on_set, "", "KEY=VALUE" };
  GArray *entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  guint n;
  const LsOption *options = ls_command_options (command, &n);
  for (guint i = 0; i < n; i++) {
    const GOptionEntry entry = entry_of (&options[i]);
    if (options[i].flag && !options[i].is_positional)
      g_array_append_val (entries, entry);
  }
  if (command->job != LS_JOB_NONE)
    g_array_append_val (entries, set);
  return entries;
}

static GOptionContext *
new_context (const GArray *entries, Parse *parse)
{
  GOptionContext *context = g_option_context_new (NULL);
  g_option_context_set_help_enabled (context, FALSE);
  GOptionGroup *group = g_option_group_new ("main", "", "", parse, NULL);
  g_option_group_add_entries (group, (const GOptionEntry *) (gpointer) entries->data);
  g_option_context_set_main_group (context, group);
  return context;
}

/* --- what GOption leaves undone ---------------------------------------------------------- */

/* Whether "-j8" is the short option -j with its value. */
static gboolean
has_attached_value (const char *arg, const GArray *entries)
{
  if (arg[0] != '-' || arg[1] == '-' || arg[1] == '\0' || arg[2] == '\0')
    return FALSE;
  for (guint i = 0; i < entries->len; i++) {
    const GOptionEntry *e = &g_array_index (entries, GOptionEntry, i);
    if (e->short_name == arg[1])
      return !(e->flags & G_OPTION_FLAG_NO_ARG);
  }
  return FALSE;
}

/* The arguments with "-j8" as "-j", "8", NULL-terminated, for as long as the program runs. */
static GPtrArray *
split_short (int argc, char *const *argv, const GArray *entries)
{
  static GStringChunk *made;
  static GPtrArray *args;
  made = g_string_chunk_new (16);
  args = g_ptr_array_new ();
  gboolean has_ended = FALSE;
  for (int i = 0; i < argc; i++) {
    has_ended = has_ended || strcmp (argv[i], "--") == 0;
    if (i == 0 || has_ended || !has_attached_value (argv[i], entries)) {
      g_ptr_array_add (args, argv[i]);
      continue;
    }
    g_ptr_array_add (args, g_string_chunk_insert_len (made, argv[i], 2));
    g_ptr_array_add (args, argv[i] + 2);
  }
  g_ptr_array_add (args, NULL);
  return args;
}

/* A knob without an option of its own, before a '='; NULL: name is none. */
static const char *
key_to_set (const LsCommand *command, const char *name)
{
  g_autofree char *key = g_strdelimit (g_strndup (name, strcspn (name, "=")), "-", '_');
  guint n;
  const LsOption *options = ls_command_options (command, &n);
  for (guint i = 0; i < n; i++)
    if (!options[i].flag && strcmp (options[i].key, key) == 0)
      return options[i].key;
  return NULL;
}

/* Whether a command has the option that a text begins with: "--dp-kind=fsdp2". */
static bool
has_option (const GPtrArray *names, const char *text)
{
  size_t n = strcspn (text + 2, "=: ");
  for (guint i = 0; i + 1 < names->len; i++)
    if (strlen (names->pdata[i]) == n && strncmp (names->pdata[i], text + 2, n) == 0)
      return true;
  return false;
}

/* What other programs call our options, in the words that most of them use. near: one of ours that is much
 * like it, before which a whole name goes, and not the beginning of one; NULL: none. names: of the options
 * that the command has, NULL behind the last. */
static const char *
called_elsewhere (const char *typed, const char *near, const GPtrArray *names)
{
  static const struct {
    const char *theirs, *ours;
  } words[] = {
    { "tensor-parallel", "--tp" },
    { "tensor-model-parallel", "--tp" },
    { "pipeline-parallel", "--pp" },
    { "pipeline-model-parallel", "--pp" },
    { "virtual-pipeline", "--vpp" },
    { "data-parallel", "--dp" },
    { "context-parallel", "--cp" },
    { "expert-parallel", "--ep" },
    { "expert-model-parallel", "--ep" },
    { "expert-tensor-parallel", "--etp" },
    { "sequence-parallel", "--sp" },
    { "fsdp", "--dp-kind=fsdp2" },
    { "ddp", "--dp-kind=ddp" },
    { "deepspeed", "--dp-kind=deepspeed, or --from FILE for what a launch file of DeepSpeed says" },
    { "tp-size", "--tp" },
    { "tp-degree", "--tp" },
    { "pp-size", "--pp" },
    { "pp-degree", "--pp" },
    { "dp-size", "--dp" },
    { "dp-degree", "--dp" },
    { "cp-size", "--cp" },
    { "cp-degree", "--cp" },
    { "ep-size", "--ep" },
    { "ep-degree", "--ep" },
    { "gbs", "--global-batch" },
    { "mbs", "--micro-batch" },
    { "batch-size", "--micro-batch or --global-batch" },
    { "per-device-train-batch-size", "--micro-batch" },
    { "gradient-accumulation", "--global-batch: dp times --micro-batch times the steps that accumulate" },
    { "grad-accum", "--global-batch: dp times --micro-batch times the steps that accumulate" },
    { "precision", "--dtype" },
    { "bf16", "--dtype=bf16" },
    { "fp16", "--dtype=fp16" },
    { "fp8", "--dtype=fp8" },
    { "activation-checkpointing", "--recompute" },
    { "gradient-checkpointing", "--recompute" },
    { "cpu-offload", "--offload" },
    { "flash-attention", "--attention=flash" },
    { "flash-attn", "--attention=flash" },
    { "packing", "--lengths: those of the documents that are packed into a sequence" },
    { "packed", "--lengths: those of the documents that are packed into a sequence" },
    { "document", "--lengths: those of the documents that are packed into a sequence" },
    { "doc-len", "--lengths: those of the documents that are packed into a sequence" },
    { "topology", "--cluster" },
    { "hardware", "--cluster" },
    { "machine", "--cluster" },
    { "gpu-type", "--cluster" },
    { "gpus-per-node", "--cluster=NAME:node.gpus=N" },
    { "num-nodes", "--nodes" },
    { "nnodes", "--nodes" },
    { "num-gpus", "--gpus" },
    { "ngpus", "--gpus" },
    { "world-size", "--gpus" },
    { "nproc", "--gpus" },
    { "max-seq-len", "--seq" },
    { "context-length", "--seq" },
    { "sequence-length", "--seq" },
    { "size", "--min and --max" },
  };
  g_autofree char *name = g_strdelimit (g_strdup (typed), "_", '-');
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_str_has_prefix (name, words[i].theirs) && (!near || strcspn (name, "=") == strlen (words[i].theirs))
        && has_option (names, words[i].ours))
      return words[i].ours;
  return NULL;
}

/* "Unknown option --modle", with the option that was probably meant. */
static void
report_unknown (const char *message, const LsCommand *command, const GArray *entries, GError **error)
{
  const char *typed = strstr (message, "--");
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < entries->len; i++)
    g_ptr_array_add (names, (gpointer) g_array_index (entries, GOptionEntry, i).long_name);
  g_ptr_array_add (names, NULL);
  const char *key = typed ? key_to_set (command, typed + 2) : NULL;
  const char *near = typed ? ls_nearest_word (typed + 2, (const char *const *) names->pdata) : NULL,
             *ours = typed ? called_elsewhere (typed + 2, near, names) : NULL;
  if (key)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
                 "unknown option %s; it is a knob without one: --set %s=VALUE", typed, key);
  else if (ours)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unknown option %s; here it is %s", typed, ours);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, near ? "%c%s; did you mean --%s?" : "%c%s",
                 g_ascii_tolower (*message), message + 1, near);
}

static void
report (GError *problem, const LsCommand *command, const GArray *entries, GError **error)
{
  if (problem->domain == LS_ERROR)
    g_propagate_error (error, g_error_copy (problem));
  else if (g_error_matches (problem, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION))
    report_unknown (problem->message, command, entries, error);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%c%s", g_ascii_tolower (*problem->message),
                 problem->message + 1);
}

/* --- help ---------------------------------------------------------------------------------------- */

/* Whether help was asked for, wherever that stands; *ret_topic: borrowed, NULL: without a topic. */
static gboolean
find_help (const GPtrArray *args, const char **ret_topic)
{
  for (guint i = 1; i < args->len - 1; i++) {
    const char *arg = args->pdata[i], *next = args->pdata[i + 1];
    if (strcmp (arg, "--") == 0)
      return FALSE;
    *ret_topic = g_str_has_prefix (arg, "--help=") ? arg + strlen ("--help=")
        : next && *next != '-'                     ? next
                                                   : NULL;
    if (strcmp (arg, "--help") == 0 || strcmp (arg, "-h") == 0 || g_str_has_prefix (arg, "--help="))
      return TRUE;
  }
  return FALSE;
}

/* Without topics what follows may be a file. */
static gboolean
print_help (const LsCommand *command, const char *topic, GError **error)
{
  if (command->job == LS_JOB_NONE && g_strcmp0 (topic, "all") != 0)
    topic = NULL;
  g_autofree char *text = cli_help_text (command, topic, error);
  return text && cli_print (text, error);
}

/* --- the whole ------------------------------------------------------------------------------------ */

/* What stands alone: values of the options that are meant by that, in their order; a repeated one takes all
 * that is left. */
static gboolean
take_arguments (int argc, char **argv, const Parse *parse, GError **error)
{
  guint n, at = 0;
  const LsOption *options = ls_command_options (parse->command, &n);
  for (int i = 1; i < argc; i++) {
    if (at == n || !options[at].is_positional) {
      g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", argv[i]);
      return FALSE;
    }
    if (!ls_request_set (parse->request, options[at].key, argv[i], error))
      return FALSE;
    at += !options[at].is_repeated;
  }
  return TRUE;
}

gboolean
cli_parse (int argc, char **argv, const LsCommand *command, LsRequest *request, gboolean *ret_done,
           GError **error)
{
  g_autoptr (GArray) entries = entries_of (command);
  const GPtrArray *args = split_short (argc, argv, entries);
  const char *topic;
  *ret_done = find_help (args, &topic);
  if (*ret_done)
    return print_help (command, topic, error);

  Parse parse = { command, request };
  g_autoptr (GOptionContext) context = new_context (entries, &parse);
  g_autoptr (GError) problem = NULL;
  argc = (int) args->len - 1;
  argv = (char **) args->pdata;
  if (g_option_context_parse (context, &argc, &argv, &problem))
    return take_arguments (argc, argv, &parse, error);
  report (problem, command, entries, error);
  return FALSE;
}
