/* A cluster described: LsTopology of lockstep/lockstep.h. */
#include <lockstep/lockstep.h>

#include "ask/topology.h"
#include "data/text/write_file.h"
#include "show/plot/plot_topology.h"
#include "show/write_dot.h"
#include "show/write_topology.h"

struct LsTopology {
  LsTopologyRun *run;
};

/* All malformed values are reported. */
static gboolean
read_options (const LsTopologyOptions *o, LsJobSpec *spec, GError **error)
{
  const struct {
    const char *key, *value;
  } knobs[]
      = { { "cluster", o->cluster }, { "nodes", o->nodes }, { "gpus", o->gpus }, { "slice", o->slice } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i].value)
      ls_job_spec_set (spec, knobs[i].key, knobs[i].value, diags);
  return ls_diag_list_to_error (diags, error);
}

LsTopology *
ls_topology_new (const LsTopologyOptions *options, GError **error)
{
  g_return_val_if_fail (options, NULL);
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  LsTopologyRun *run
      = read_options (options, &spec, error) ? ls_topology_run_new (&spec, options->paths, error) : NULL;
  ls_job_spec_clear (&spec);
  if (!run)
    return NULL;
  LsTopology *topology = g_new0 (LsTopology, 1);
  topology->run = run;
  return topology;
}

void
ls_topology_free (LsTopology *topology)
{
  if (!topology)
    return;
  ls_topology_run_free (topology->run);
  g_free (topology);
}

char *
ls_topology_text (const LsTopology *topology, LsTopologyDetail detail, LsTextStyle style)
{
  g_return_val_if_fail (topology, NULL);
  const LsTopologyText text = {
    .has_links = detail >= LS_TOPOLOGY_LINKS,
    .has_all = detail >= LS_TOPOLOGY_ALL,
    .ascii = (style & LS_TEXT_ASCII) != 0,
  };
  return ls_topology_to_text (topology->run->map, topology->run->paths, &text);
}

char *
ls_topology_json (const LsTopology *topology, LsTopologyDetail detail)
{
  g_return_val_if_fail (topology, NULL);
  return ls_topology_to_json (topology->run->map, topology->run->paths, detail >= LS_TOPOLOGY_ALL);
}

void
ls_topology_print_json (const LsTopology *topology, LsTopologyDetail detail, FILE *out)
{
  g_return_if_fail (topology && out);
  ls_topology_write_json (topology->run->map, topology->run->paths, detail >= LS_TOPOLOGY_ALL, out);
}

gboolean
ls_topology_write_dot (const LsTopology *topology, const char *path, GError **error)
{
  g_return_val_if_fail (topology && path, FALSE);
  g_autofree char *text = ls_dot_format (topology->run->cluster);
  return ls_write_text (path, text, error);
}

gboolean
ls_topology_plot (const LsTopology *topology, const char *path, GError **error)
{
  g_return_val_if_fail (topology && path, FALSE);
  return ls_plot_topology (topology->run->map, path, error);
}
