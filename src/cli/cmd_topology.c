#include <langinfo.h>
#include <string.h>

#include "cli/cli.h"

static const CliHelp help = {
  .usage = "topology --cluster NAME|FILE [OPTION...]",
  .summary = "Shows a cluster: what a node consists of, what joins the nodes, how much gets through at\n"
             "each level and between halves, and the way from one GPU to another. Rates are of one\n"
             "direction.",
  .description = "Examples:\n"
                 "  lockstep topology --cluster dgx-h100 --nodes 4 --links\n"
                 "  lockstep topology --cluster dgx-h100:fabric.oversubscription=4,nodes=64 --path 0,511\n"
                 "  lockstep topology --cluster tpu-v5e --slice 4x4 --svg slice.svg\n\n" CLI_EXIT_CODES,
};

typedef struct {
  char *cluster, *nodes, *gpus, *slice, *dot, *svg, *png;
  char **paths;
  gboolean links, all, json;
} Args;

static void
args_clear (Args *args)
{
  char *const texts[]
      = { args->cluster, args->nodes, args->gpus, args->slice, args->dot, args->svg, args->png };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
  g_strfreev (args->paths);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry entries[] = {
    { "cluster", 0, 0, G_OPTION_ARG_FILENAME, &args->cluster, "Which cluster", "NAME|FILE" },
    { "nodes", 0, 0, G_OPTION_ARG_FILENAME, &args->nodes, "Nodes of the cluster; default: the file's", "N" },
    { "gpus", 0, 0, G_OPTION_ARG_FILENAME, &args->gpus, "As many nodes as hold so many GPUs", "N" },
    { "slice", 0, 0, G_OPTION_ARG_FILENAME, &args->slice, "Chips of a TPU slice along x, y (and z)",
      "XxY[xZ]" },
    { "links", 0, 0, G_OPTION_ARG_NONE, &args->links, "List every kind of link, with its source", NULL },
    { "all", 0, 0, G_OPTION_ARG_NONE, &args->all, "List every link, not only kinds; also in JSON", NULL },
    { "path", 0, 0, G_OPTION_ARG_STRING_ARRAY, &args->paths,
      "Show the way between two GPUs, such as 0,12 or node0/gpu0,node1/gpu4; may be repeated", "A,B" },
    { "dot", 0, 0, G_OPTION_ARG_FILENAME, &args->dot, "Write a graph for Graphviz", "FILE" },
    { "svg", 0, 0, G_OPTION_ARG_FILENAME, &args->svg, "Draw the cluster (by gnuplot; .gp: its script)",
      "FILE" },
    { "png", 0, 0, G_OPTION_ARG_FILENAME, &args->png, "The same as PNG", "FILE" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!cli_parse (argc, argv, &help, entries, NULL, ret_done, error))
    return FALSE;
  if (*ret_done || *argc == 1)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
  return FALSE;
}

static gboolean
check_picture (const char *flag, const char *path, GError **error)
{
  if (!path)
    return TRUE;
  g_autofree char *suffix = g_strconcat (".", flag, NULL);
  if (!g_str_has_suffix (path, suffix) && !g_str_has_suffix (path, ".gp")) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
                 "--%s: expected a name that ends in %s, or in .gp for the script; got \"%s\"", flag, suffix,
                 path);
    return FALSE;
  }
  return ls_check_output_path (LS_OUTPUT_PLOT, path, error);
}

/* Before anything is built or printed. */
static gboolean
check_files (const Args *args, GError **error)
{
  return check_picture ("svg", args->svg, error) && check_picture ("png", args->png, error)
      && (!args->dot || ls_check_output_path (LS_OUTPUT_CSV, args->dot, error));
}

static gboolean
write_files (const LsTopology *topology, const Args *args, GError **error)
{
  return (!args->dot || ls_topology_write_dot (topology, args->dot, error))
      && (!args->svg || ls_topology_plot (topology, args->svg, error))
      && (!args->png || ls_topology_plot (topology, args->png, error));
}

gboolean
cli_topology (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;

  const LsTopologyOptions options = {
    .cluster = args.cluster,
    .nodes = args.nodes,
    .gpus = args.gpus,
    .slice = args.slice,
    .paths = (const char *const *) args.paths,
  };
  if (!check_files (&args, error))
    return FALSE;
  g_autoptr (LsTopology) topology = ls_topology_new (&options, error);
  if (!topology || !write_files (topology, &args, error))
    return FALSE;
  LsTopologyDetail detail = args.all ? LS_TOPOLOGY_ALL : args.links ? LS_TOPOLOGY_LINKS : LS_TOPOLOGY_BRIEF;
  bool is_utf8 = strcmp (nl_langinfo (CODESET), "UTF-8") == 0;
  if (args.json)
    ls_topology_print_json (topology, detail, stdout);
  g_autofree char *text = args.json
      ? g_strdup ("")
      : ls_topology_text (topology, detail, is_utf8 ? LS_TEXT_PLAIN : LS_TEXT_ASCII);
  return cli_print (text, error); /* which finds what went wrong with stdout */
}
