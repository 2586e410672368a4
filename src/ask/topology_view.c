#include "ask/topology_view.h"

#include <string.h>

#include <lockstep/error.h>

#include "data/machines/machines.h"
#include "job/assumptions.h"

static LsCluster *
build (const LsJobSpec *spec, GError **error)
{
  if (!spec->cluster)
    return ls_fail_null (error, LS_ERROR_USAGE, "expected --cluster");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsHardware h = { 0 }; /* without calibrations, which no link needs */
  if (!ls_cluster_load (spec->cluster, &h.spec, diags)) {
    ls_diag_list_to_error (diags, error);
    return NULL;
  }
  LsCluster *c = NULL;
  if (ls_hardware_set_slice (&h, spec->slice, error))
    c = ls_hardware_build_asked (&h, spec->n_nodes, spec->strategy.gpus, error);
  ls_cluster_spec_clear (&h.spec);
  return c;
}

/* "12", or "node1/gpu4". */
static gboolean
read_gpu (const LsCluster *c, const char *text, uint32_t *ret_gpu, GError **error)
{
  guint64 gpu, node = 0, limit = c->n_gpus;
  const char *number = text;
  if (g_str_has_prefix (text, "node")) {
    const char *slash = strstr (text, "/gpu");
    g_autofree char *host
        = slash ? g_strndup (text + strlen ("node"), (gsize) (slash - text) - strlen ("node")) : NULL;
    if (!host || !g_ascii_string_to_unsigned (host, 10, 0, G_MAXUINT32, &node, NULL))
      goto malformed;
    number = slash + strlen ("/gpu");
    limit = node < c->spec.n_nodes ? ls_cluster_gpus_of (c, (uint32_t) node) : 0;
  }
  if (!g_ascii_string_to_unsigned (number, 10, 0, G_MAXUINT32, &gpu, NULL))
    goto malformed;
  if (gpu >= limit || node >= c->spec.n_nodes)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--path: no %s \"%s\"; expected one of 0 to %u, or node0/gpu0 to node%u/gpu%u",
                    ls_cluster_chip_word (&c->spec, 1), text, c->n_gpus - 1, c->spec.n_nodes - 1,
                    ls_cluster_gpus_of (c, c->spec.n_nodes - 1) - 1);
  *ret_gpu = ls_cluster_gpu_at (c, (uint32_t) node, (uint32_t) gpu);
  return TRUE;
malformed:
  return ls_fail (error, LS_ERROR_USAGE, "--path: expected a %s such as 12 or node1/gpu4; got \"%s\"",
                  ls_cluster_chip_word (&c->spec, 1), text);
}

static LsTopoPath *
find_path (const LsCluster *c, const char *ends, GError **error)
{
  g_auto (GStrv) names = g_strsplit (ends, ",", -1);
  uint32_t from, to;
  if (g_strv_length (names) != 2)
    return ls_fail_null (error, LS_ERROR_USAGE, "--path: expected two %s such as 0,12; got \"%s\"",
                         ls_cluster_chip_word (&c->spec, 2), ends);
  if (!read_gpu (c, names[0], &from, error) || !read_gpu (c, names[1], &to, error))
    return NULL;
  if (from == to)
    return ls_fail_null (error, LS_ERROR_USAGE, "--path: expected two different %s; got \"%s\"",
                         ls_cluster_chip_word (&c->spec, 2), ends);
  return ls_topo_path_new (c, from, to);
}

LsTopologyRun *
ls_topology_run_new (const LsJobSpec *spec, const char *const *paths, const char *lists, GError **error)
{
  g_autoptr (LsTopologyRun) run = g_new0 (LsTopologyRun, 1);
  run->paths = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_topo_path_free);
  run->cluster = build (spec, error);
  if (!run->cluster)
    return NULL;
  if (lists && run->cluster->n_trunks > LS_TOPOLOGY_MAX_LISTED) /* nobody can read it, and it takes minutes */
    return ls_fail_null (
        error, LS_ERROR_LIMIT,
        "--%s: %u nodes have %u links; %u are listed at most: give fewer --nodes, or --links for each "
        "kind of link once",
        lists, run->cluster->spec.n_nodes, run->cluster->n_trunks, LS_TOPOLOGY_MAX_LISTED);
  for (; paths && *paths; paths++) {
    LsTopoPath *path = find_path (run->cluster, *paths, error);
    if (!path)
      return NULL;
    g_ptr_array_add (run->paths, path);
  }
  run->map = ls_topo_map_new (run->cluster);
  const LsClusterSpec *c = &run->cluster->spec;
  const char *by = spec->strategy.gpus > 0 ? "by --gpus" : "the cluster's file";
  if (ls_cluster_traits (c)->is_slice) {
    ls_assumptions_add_place (&run->map->assumptions, spec->cluster, c, spec->slice[0] > 0, "");
    return g_steal_pointer (&run);
  }
  ls_assumptions_add (&run->map->assumptions, "nodes", g_strdup_printf ("%u", c->n_nodes), "--nodes %s",
                      spec->n_nodes > 0 ? NULL : by, "--nodes N");
  ls_assumptions_add_unsaid (&run->map->assumptions, spec->cluster, c, true);
  return g_steal_pointer (&run);
}

void
ls_topology_run_free (LsTopologyRun *run)
{
  if (!run)
    return;
  g_ptr_array_unref (run->paths);
  ls_topo_map_free (run->map);
  ls_cluster_free (run->cluster);
  g_free (run);
}
