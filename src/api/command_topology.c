/* `lockstep topology`: a cluster described. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "ask/topology_view.h"
#include "data/text/write_file.h"
#include "show/draw/pictures.h"
#include "show/answers.h"

typedef struct {
  LsTopologyRun *run;
  gboolean has_links, has_all;
} Data;

static void
data_free (gpointer data)
{
  ls_topology_run_free (((Data *) data)->run);
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

static LsTopologyRun *
describe (const LsRequest *r, GError **error)
{
  g_autofree const char **paths = ls_request_texts (r, "path");
  const char *lists = ls_request_is_on (r, "all") ? "all" : ls_request_text (r, "dot") ? "dot" : NULL;
  LsJobSpec spec;
  ls_job_spec_init (&spec);
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
  LsTopologyRun *run = describe (r, error);
  if (!run)
    return FALSE;
  Data *t = g_new (Data, 1);
  gboolean has_all = ls_request_is_on (r, "all");
  *t = (Data) { run, has_all || ls_request_is_on (r, "links"), has_all };
  ls_answer_take (a, t, &forms);
  ls_answer_write (a, r, "dot", write_dot);
  ls_answer_write (a, r, "svg", draw);
  ls_answer_write (a, r, "png", draw);
  return TRUE;
}
