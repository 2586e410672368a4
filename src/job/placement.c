#include "job/placement.h"

#include "analysis/topology.h"
#include "cluster/route.h"
#include "plan/mesh.h"

/* A number right-aligned in six columns, or a dash. */
static void
append_cell (GString *out, gboolean is_known, uint32_t value)
{
  if (is_known)
    g_string_append_printf (out, "%6u", value);
  else
    g_string_append_printf (out, "%6s", "-");
}

static void
append_rank (GString *out, uint32_t rank, const LsPlan *plan, const LsMesh *mesh, const LsCluster *c)
{
  bool has_place = ls_mesh_n_ranks (mesh) == plan->n_ranks; /* not in a trace that lists its ranks */
  uint32_t gpu = plan->gpu_of_rank[rank];
  const LsBinding b = ls_plan_binding (plan, rank);
  LsCoord at = has_place ? ls_mesh_coord (mesh, rank) : (LsCoord) { 0 };
  const uint32_t places[] = { rank, ls_cluster_host_of (c, gpu), ls_cluster_local_of (c, gpu) };
  const uint32_t indices[] = { at.pp, at.dp, at.cp, at.tp };

  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    append_cell (out, TRUE, places[i]);
  append_cell (out, c->spec.nics > 0, c->spec.nics > 0 ? ls_nic_of_gpu (c, gpu) : 0);
  for (guint i = 0; i < G_N_ELEMENTS (indices); i++)
    append_cell (out, has_place, indices[i]);
  for (guint i = 0; i < G_N_ELEMENTS (b.peer); i++)
    append_cell (out, b.peer[i] != UINT32_MAX, b.peer[i]);
  g_string_append_c (out, '\n');
}

char *
ls_placement_format (const LsPlan *plan, const LsStrategy *s, const LsCluster *c)
{
  const char *const titles[]
      = { "rank", "node", ls_topo_kind_word (&c->spec, LS_NODE_GPU), "nic", "pp", "dp", "cp", "tp",
          "prev", "next" };
  const LsMesh mesh = ls_strategy_mesh (s);
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (titles); i++)
    g_string_append_printf (out, "%6s", titles[i]);
  g_string_append_c (out, '\n');
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    append_rank (out, rank, plan, &mesh, c);
  return g_string_free (out, FALSE);
}
