/* `lockstep topology`: a cluster described. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "ask/topology_view.h"
#include "data/machines/machines.h"
#include "data/text/write_file.h"
#include "show/draw/pictures.h"
#include "show/answers.h"

typedef struct {
  LsTopologyRun *run;
  gboolean has_links, has_all;
  char *from; /* the cluster made of files, in JSON; NULL: it has a file */
} Data;

static void
data_free (gpointer data)
{
  ls_topology_run_free (((Data *) data)->run);
  g_free (((Data *) data)->from);
  g_free (data);
}

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const Data *t = data;
  const LsTopologyText text = { .has_links = t->has_links, .has_all = t->has_all, .ascii = style->is_ascii };
  return ls_topology_to_text (t->run->map, t->run->paths, &text);
}

static char *
to_json (gconstpointer data, const LsTextStyle *style)
{
  const Data *t = data;
  return ls_topology_to_json (t->run->map, t->run->paths, t->has_all);
}

static void
print_json (gconstpointer data, FILE *out)
{
  const Data *t = data;
  ls_topology_write_json (t->run->map, t->run->paths, t->has_all, out);
}

static const LsAnswerForms forms
    = { .text = to_text, .json = to_json, .print_json = print_json, .free = data_free };

static gboolean
write_dot (gconstpointer data, const char *path, GError **error)
{
  g_autofree char *text = ls_dot_format (((const Data *) data)->run->cluster);
  return ls_write_text (path, text, error);
}

static gboolean
write_cluster (gconstpointer data, const char *path, GError **error)
{
  return ls_write_text (path, ((const Data *) data)->from, error);
}

static gboolean
draw (gconstpointer data, const char *path, GError **error)
{
  g_autoptr (LsDrawing) drawing = ls_draw_topology (((const Data *) data)->run->map, NULL);
  return ls_drawing_write (drawing, path, error);
}

/* The option says which kind of picture it is. */
static gboolean
check_picture (const LsRequest *r, const char *key, GError **error)
{
  const char *path = ls_request_text (r, key);
  g_autofree char *suffix = g_strconcat (".", key, NULL);
  if (!path || g_str_has_suffix (path, suffix) || g_str_has_suffix (path, ".gp"))
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE,
                  "--%s: expected a name that ends in %s, or in .gp for the script; got \"%s\"", key, suffix,
                  path);
}

/* *ret_json: the files put together, named after what is written; NULL: it was not asked for. */
static gboolean
read_files (const LsRequest *r, char **ret_json, GError **error)
{
  g_autofree const char **files = ls_request_texts (r, "from");
  const char *output = ls_request_text (r, "output");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *name = output ? ls_output_name (output, error) : g_strdup ("from-files");
  if (!name)
    return FALSE;
  *ret_json = files && *files ? ls_topology_from (files, name, diags) : NULL;
  return ls_diag_list_to_error (diags, error);
}

static LsTopologyRun *
describe (const LsRequest *r, char *from, GError **error)
{
  g_autofree const char **paths = ls_request_texts (r, "path");
  const char *lists = ls_request_is_on (r, "all") ? "all" : ls_request_text (r, "dot") ? "dot" : NULL;
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  if (from)
    spec.cluster = g_strdup (from);
  LsTopologyRun *run = ls_request_set_own (r, ls_request_set_knob, &spec, error)
      ? ls_topology_run_new (&spec, paths, lists, error)
      : NULL;
  ls_job_spec_clear (&spec);
  return run;
}

gboolean
command_topology (const LsRequest *r, LsAnswer *a, GError **error)
{
  if (!check_picture (r, "svg", error) || !check_picture (r, "png", error))
    return FALSE;
  g_autofree char *from = NULL;
  LsTopologyRun *run = read_files (r, &from, error) ? describe (r, from, error) : NULL;
  if (!run)
    return FALSE;
  Data *t = g_new (Data, 1);
  gboolean has_all = ls_request_is_on (r, "all");
  *t = (Data) { run, has_all || ls_request_is_on (r, "links"), has_all, g_steal_pointer (&from) };
  ls_answer_take (a, t, &forms);
  ls_answer_write (a, r, "output", write_cluster);
  ls_answer_write (a, r, "dot", write_dot);
  ls_answer_write (a, r, "svg", draw);
  ls_answer_write (a, r, "png", draw);
  return TRUE;
}
