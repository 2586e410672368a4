/* job/job_place.c — where a job runs: its cluster, and the GPU of each rank, also as a table. */
#include <lockstep/error.h>

#include "analysis/topology.h"
#include "cluster/route.h"
#include "job/job.h"
#include "job/job_steps.h"
#include "plan/mesh.h"

/* --- which rank runs where, for people ----------------------------------------------------------- */

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
  uint32_t gpu = ls_plan_gpu (plan, rank);
  const LsBinding b = ls_plan_binding (plan, rank);
  LsCoord at = has_place ? ls_mesh_coord (mesh, rank) : (LsCoord) { 0 };
  const uint32_t places[] = { rank, ls_cluster_host_of (c, gpu), ls_cluster_local_of (c, gpu) };
  const uint32_t indices[] = { at.pp, at.dp, at.cp, at.tp };

  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    append_cell (out, TRUE, places[i]);
  append_cell (out, c->spec.nics.n > 0, c->spec.nics.n > 0 ? ls_nic_of_gpu (c, gpu) : 0);
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

/* --- where a job runs: its cluster, and the GPU of each rank ------------------------------------- */

/* Ranks that the strategy's degrees need. */
static gboolean
count_ranks (const LsStrategy *s, const LsClusterSpec *cluster, uint32_t *ret_n, GError **error)
{
  uint32_t dp = MAX (s->dp, 1);
  guint64 n;
  if (!g_uint64_checked_mul (&n, (guint64) s->tp * s->pp, (guint64) s->cp * dp) || n > UINT32_MAX)
    return ls_fail (error, LS_ERROR_LIMIT, "tp * pp * cp * dp = %u * %u * %u * %u exceeds 2^32 %s", s->tp,
                    s->pp, s->cp, dp, ls_cluster_chip_word (cluster, 2));
  *ret_n = MAX ((uint32_t) n, 1); /* a degree of 0 is refused later, with the other rules */
  return TRUE;
}

/* Of a placement that says it: the ranks that it is for, and the nodes that it names, of which the cluster
 * has at least these. */
static void
take_placement (LsStrategy *s, const LsHardware *hardware, uint32_t *n_nodes)
{
  const LsAllocation *a = s->layout.allocation;
  uint32_t least = ls_allocation_cluster_nodes (a);
  LsClusterSpec spec = hardware->spec; /* borrows */
  if (s->gpus == 0)
    s->gpus = ls_allocation_n_ranks (a, &spec);
  if (*n_nodes > 0 || least == 0)
    return;
  ls_cluster_spec_fit (&spec, s->gpus);
  *n_nodes = a->n_cluster_nodes > 0 ? least : MAX (MAX (least, spec.n_nodes), hardware->spec.n_nodes);
}

/* Nodes that are asked for without a number: those of a file, or a slice of so many chips. */
static uint32_t
n_nodes_meant (const LsStrategy *s, const LsClusterSpec *spec)
{
  bool is_slice = spec->torus.is_given && s->dp == 0;
  return spec->n_nodes > 1 || is_slice ? MAX (spec->n_nodes, 1) : 0;
}

/* Nodes of the cluster and GPUs used, where they are not given (see job.h). */
LsCluster *
ls_job_build_cluster (LsStrategy *s, const LsHardware *hardware, uint32_t n_nodes, GError **error)
{
  take_placement (s, hardware, &n_nodes);
  if (n_nodes == 0 && s->gpus == 0)
    n_nodes = n_nodes_meant (s, &hardware->spec);
  if (n_nodes == 0 && s->gpus == 0 && !count_ranks (s, &hardware->spec, &s->gpus, error))
    return NULL;
  return ls_hardware_build_brief (hardware, n_nodes, s->gpus, error);
}

uint32_t *
ls_job_gpus (const LsStrategy *s, const LsCluster *cluster, GError **error)
{
  uint32_t n = s->tp * s->cp * s->dp * s->pp;
  g_autofree uint32_t *gpus = g_new (uint32_t, MAX (n, 1));
  return ls_allocation_gpus (s->layout.allocation, &cluster->spec, n, gpus, error) ? g_steal_pointer (&gpus)
                                                                                   : NULL;
}

static bool
copies_directly (const LsClusterSpec *node)
{
  return node->server.copies != LS_COPIES_NOWHERE || node->server.nvswitch_planes > 0
      || node->server.mesh != LS_MESH_NONE;
}

/* Transformer Engine's userbuffers map the memory of the other GPUs, by multicast or CUDA IPC
 * (NVIDIA/TransformerEngine issue 966). */
static gboolean
check_pieces_between (const LsCluster *c, uint32_t rank, uint32_t gpu, uint32_t first, uint32_t gpu_of_first,
                      GError **error)
{
  uint32_t node = ls_cluster_host_of (c, gpu), node_of_first = ls_cluster_host_of (c, gpu_of_first);
  if (node != node_of_first)
    g_set_error (
        error, LS_ERROR, LS_ERROR_CONFLICT,
        "/tp_overlap: expected tp groups inside a node, as pieces move by copy engines; ranks %u and %u "
        "of one are on nodes %u and %u",
        first, rank, node_of_first, node);
  else if (!copies_directly (ls_cluster_spec_of_kind (&c->spec, ls_cluster_spec_kind_of (&c->spec, node))))
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "/tp_overlap: expected 0, or --tp-overlap-kind bulk, as pieces move from GPU to GPU by copy "
                 "engines, and GPUs of %s have no copies to each other (node.pcie.p2p)",
                 c->spec.name);
  else
    return TRUE;
  return FALSE;
}

gboolean
ls_job_check_pieces (const LsPlan *plan, const LsStrategy *s, const LsCluster *c, GError **error)
{
  if (!s->mp.tp_overlap || s->mp.tp_overlap_kind != LS_TP_OVERLAP_RING)
    return TRUE;
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    uint32_t comm = ls_plan_comm_of (plan, r, LS_SLOT_TP),
             first = comm != UINT32_MAX ? ls_plan_member (plan, comm, 0) : r;
    if (first != r
        && !check_pieces_between (c, r, ls_plan_gpu (plan, r), first, ls_plan_gpu (plan, first), error))
      return FALSE;
  }
  return TRUE;
}
