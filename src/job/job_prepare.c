/* job/job_prepare.c — a job before its plan: what orders its pipeline, where it runs, what memory it will
 * take. */
#include <lockstep/error.h>
#include <lockstep/units.h>

#include "analysis/topology.h"
#include "base/list.h"
#include "cluster/route.h"
#include "compute/cost.h"
#include "data/jobs/read_schedule.h"
#include "exec/memory/memory.h"
#include "exec/replay/timeline.h"
#include "job/hardware.h"
#include "job/job.h"
#include "job/job_steps.h"
#include "job/softwares.h"
#include "plan/mesh.h"
#include "plan/plan.h"
#include "schedules/sched.h"

/* --- times of a cluster by which a pipeline is ordered ------------------------------------------- */

/* Of nodes of several kinds the slowest: any stage may be on one. */
static LsTime
kernel_time (const LsKernel *kernel, void *data)
{
  const LsCostSources *of = data;
  const LsCalibration *all = &of->hardware->calibration;
  const LsClusterSpec *spec = &of->cluster->spec;
  LsTime longest = ls_kernel_cost (all, &spec->gpu, kernel).alone;
  for (uint32_t k = 1; of->cluster->kind_of_host && k < ls_cluster_spec_n_kinds (spec); k++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (spec, k)->gpu;
    LsCalibration room;
    const LsCalibration *own = ls_calibration_of_kind (all, k, gpu, &room);
    longest = MAX (longest, ls_kernel_cost (own, gpu, kernel).alone);
  }
  return longest;
}

/* Of the GPUs of n ranks. */
static LsTime
call_time (const LsCostSources *of, LsCollKind kind, uint64_t bytes, const uint32_t *ranks, uint32_t n)
{
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = of->gpu_of_rank ? of->gpu_of_rank[ranks[i]] : ls_cluster_gpu_of (&of->cluster->spec, ranks[i]);
  return ls_call_time (of->call_times, of->cluster, kind, bytes, gpus, n);
}

/* Member i of the group of rank 0. */
static uint32_t
rank_of_member (const LsMesh *m, int slot, uint32_t i)
{
  switch (slot) {
  case LS_SLOT_CP:
    return ls_mesh_rank (m, (LsCoord) { .cp = i });
  case LS_SLOT_EP:
    return ls_mesh_expert_rank (m, (LsExpertCoord) { .ep = i });
  case LS_SLOT_ETP:
    return ls_mesh_expert_rank (m, (LsExpertCoord) { .etp = i });
  default:
    return ls_mesh_rank (m, (LsCoord) { .tp = i });
  }
}

static LsTime
collective_time (int slot, int coll, uint64_t bytes, void *data)
{
  const LsCostSources *of = data;
  const LsStrategy *s = of->strategy;
  const LsMesh mesh = ls_strategy_mesh (s);
  uint32_t n = slot == LS_SLOT_CP ? s->cp
      : slot == LS_SLOT_EP        ? s->ep
      : slot == LS_SLOT_ETP       ? s->experts.etp
                                  : s->tp;
  g_autofree uint32_t *ranks = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    ranks[i] = rank_of_member (&mesh, slot, i);
  return call_time (of, (LsCollKind) coll, bytes, ranks, n);
}

static LsTime
send_time (uint64_t bytes, void *data)
{
  const LsCostSources *of = data;
  const LsStrategy *s = of->strategy;
  const LsMesh mesh = ls_strategy_mesh (s);
  LsTime sum = 0;
  for (uint32_t pp = 0; pp + 1 < s->pp; pp++) {
    const uint32_t ends[]
        = { ls_mesh_rank (&mesh, (LsCoord) { .pp = pp }), ls_mesh_rank (&mesh, (LsCoord) { .pp = pp + 1 }) };
    sum += call_time (of, LS_COLL_SEND_RECV, bytes, ends, 2);
  }
  return s->pp > 1 ? sum / (s->pp - 1) : 0;
}

LsLowerCosts
ls_lower_costs (LsCostSources *of)
{
  return (LsLowerCosts) { kernel_time, collective_time, send_time, of };
}

static gboolean
has_shape (const char *path, const LsOrders *orders, const LsStrategy *s, GError **error)
{
  const LsLayout *l = &orders->layout;
  if (s->layout.micro_batches_per_replica)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--order %s: it is of one number of micro-batches; got micro_batches_per_replica", path);
  const LsSchedShape shape = ls_strategy_sched_shape (s, ls_strategy_micro_batches (s, 0));
  const LsSched *sched = ls_sched_find (s->schedule);
  uint32_t n_chunks = ls_sched_n_chunks (sched, &shape),
           n_pipes = sched->placement == LS_PLACE_PIPES ? n_chunks : 1;
  if (l->n_ranks == s->pp && l->n_chunks == n_chunks && l->n_pipes == n_pipes
      && l->n_micro_batches * l->n_pipes == shape.n_micro_batches)
    return TRUE;
  return ls_fail (
      error, LS_ERROR_CONFLICT,
      "--order %s: pp %u, vpp %u, %u micro-batches%s; expected pp %u, vpp %u, %u micro-batches%s, "
      "as the job has them",
      path, l->n_ranks, l->n_pipes > 1 ? 1 : l->n_chunks, l->n_micro_batches * l->n_pipes,
      l->n_pipes > 1 ? " and replicas of the model" : "", s->pp, s->vpp, shape.n_micro_batches,
      n_pipes > 1 ? " and replicas of the model" : "");
}

static gboolean
is_placed_alike (const char *path, const LsOrders *orders, const LsStrategy *s, GError **error)
{
  const LsLayout *l = &orders->layout;
  LsPlacement placement = ls_sched_find (s->schedule)->placement;
  for (uint32_t rank = 0; rank < l->n_ranks; rank++)
    for (uint32_t chunk = 0; chunk < l->n_chunks; chunk++) {
      LsStageRef at = ls_layout_stage (l, rank, chunk);
      LsStageRef expected = ls_place (placement, l->n_ranks, l->n_chunks, rank, chunk);
      if (at.stage == expected.stage && at.pipe == expected.pipe)
        continue;
      return ls_fail (error, LS_ERROR_CONFLICT,
                      "--order %s: stage %u is chunk %u of rank %u, where --schedule %s has stage %u; name a "
                      "schedule with the same placement",
                      path, at.stage, chunk, rank, s->schedule, expected.stage);
    }
  return TRUE;
}

LsOrders *
ls_job_order_load (const char *path, const LsStrategy *s, GError **error)
{
  if (!ls_sched_is_flushed (ls_sched_find (s->schedule)))
    return ls_fail_null (error, LS_ERROR_CONFLICT,
                         "--order %s: %s has no flush, so its steps have no order of their own", path,
                         s->schedule);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOrders) orders = ls_read_schedule (path, diags);
  if (!orders) {
    ls_diag_list_to_error (diags, error);
    return NULL;
  }
  if (!has_shape (path, orders, s, error) || !is_placed_alike (path, orders, s, error))
    return NULL;
  return g_steal_pointer (&orders);
}

/* --- where a job runs: its cluster, and the GPU of each rank, also as a table -------------------- */

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

/* --- memory of a job: what it will take, before it is built, and how much it is to leave free ---- */

bool
ls_headroom_parse (const char *text, void *ret_ask)
{
  const char *expected;
  LsHeadroomAsk ask = { .is_set = true };
  char *end;
  double percent = g_ascii_strtod (text, &end);
  bool is_number = g_ascii_isdigit (*text) && end != text;
  if (is_number && end[0] == '%' && end[1] == '\0' && percent < 100)
    ask.percent = percent;
  else if (!(is_number && *end == '\0' && percent == 0) && !ls_parse_bytes (text, &ask.bytes, &expected))
    return false;
  *(LsHeadroomAsk *) ret_ask = ask;
  return true;
}

static void
add_part (LsHeadroom *h, const char *what, const char *source, uint64_t bytes)
{
  LsHeadroomPart part = { g_strdup (what), g_strdup (source), bytes };
  if (!h->parts)
    h->parts = ls_list_new (sizeof (LsHeadroomPart), ls_clear_2_texts);
  g_array_append_val (h->parts, part);
  h->bytes += bytes;
}

/* Of nodes of several kinds of the largest memory: no rank is left with less than it asks for. */
static uint64_t
share_of (const LsClusterSpec *spec, double percent)
{
  uint64_t most = 0;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (spec); k++)
    most = MAX (most, ls_cluster_spec_of_kind (spec, k)->gpu.hbm_bytes);
  return (uint64_t) (percent / 100 * (double) most);
}

void
ls_headroom_of (const LsHeadroomAsk *ask, const LsSoftwareSpec *software, const LsSoftwareSpec *own,
                int dp_kind, const LsHardware *hardware, const LsMemoryOptions *memory, LsHeadroom *ret)
{
  const char *architecture = ls_hardware_architecture (hardware);
  const LsSoftwareSpec *named = software ? NULL : own,
                       *owner = software ? software
      : named && named->headroom         ? named
      : named                            ? ls_softwares_find (dp_kind, architecture)
                                         : ls_softwares_textbook ();
  const LsClusterSpec *spec = &hardware->spec;
  *ret = (LsHeadroom) { .is_asked = ask->is_set || software };
  if (ask->is_set) {
    ret->bytes = ask->bytes + share_of (spec, ask->percent);
    return;
  }
  for (guint i = 0; owner && owner->headroom && i < owner->headroom->len; i++) {
    const LsHeadroomItem *item = &g_array_index (owner->headroom, LsHeadroomItem, i);
    bool is_simulated = item->is_of_allocator && memory->allocator == LS_MEMORY_CACHING;
    if (!is_simulated && ls_software_names_architecture (item->runs_on, architecture))
      add_part (ret, item->what, item->source, item->bytes + share_of (spec, item->percent));
  }
  bool is_others = named && ret->parts && g_strcmp0 (named->program, owner->program) != 0;
  ret->program = is_others ? g_strdup_printf ("%s, as %s has it", named->program, owner->program)
      : ret->parts         ? g_strdup (owner->program)
                           : NULL;
}

/* Ops of a step that leave a span, on one rank of each role. */
static double
count_spans (const LsPlan *plan)
{
  double n = 0;
  g_autofree uint32_t *of_segment = g_new0 (uint32_t, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      LsOpKind kind = (LsOpKind) plan->segments[s].ops[i].kind;
      of_segment[s] += ls_op_takes (kind, LS_TAKES_GPU) || ls_op_has (kind, LS_HAS_CALL);
    }
  for (uint32_t role = 0; role < plan->n_roles; role++)
    for (uint32_t i = 0; i < plan->programs[role].n_instances; i++)
      n += of_segment[plan->programs[role].instances[i].segment];
  return n;
}

gboolean
ls_budget_check_plan (const LsPlan *plan, uint64_t max_bytes, GError **error)
{
  double n = count_spans (plan), bytes = MAX (2 * n * sizeof (LsSpan), (double) ls_memory_walk_bytes (plan));
  if (max_bytes == 0 || bytes <= (double) max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)), *may = ls_format_bytes (max_bytes);
  return ls_fail (error, LS_ERROR_LIMIT,
                  "a step of %u micro-batches, %.3g ops on a rank of each stage, needs %s of memory or more;"
                  " --max-memory is %s",
                  plan->n_micro_batches, n, need, may);
}

/* Of a layer in each direction, whatever it is made of: query-key-value, attention, projection, and two
 * products of an MLP or of experts. */
#define MIN_KERNELS_OF_LAYER 5

gboolean
ls_budget_check_passes (const LsStrategy *s, const LsModel *m, uint64_t max_bytes, GError **error)
{
  uint64_t n_micro_batches = ls_strategy_most_micro_batches (s);
  double n = 2.0 * MIN_KERNELS_OF_LAYER * (double) n_micro_batches * m->n_layers,
         bytes = 2 * n * sizeof (LsSpan);
  if (max_bytes == 0 || bytes <= (double) max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)), *may = ls_format_bytes (max_bytes);
  return ls_fail (error, LS_ERROR_LIMIT,
                  "a step of %" G_GUINT64_FORMAT
                  " micro-batches through %u layers needs %s of memory or more;"
                  " --max-memory is %s",
                  n_micro_batches, m->n_layers, need, may);
}
