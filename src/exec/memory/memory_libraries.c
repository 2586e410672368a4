#include "exec/memory/memory_libraries.h"

#include <string.h>

#include "cluster/route.h"
#include "network/nccl/tuning.h"

#define KIB UINT64_C (1024)
#define MIB (1024 * KIB)

/* CUDA_IPC_MIN: what is shared with another process begins and ends at its multiples. */
#define SHARED_UNIT (2 * MIB)
/* ncclSendMem and ncclRecvMem: a page each. */
#define HEADER (4 * KIB)

static bool
has_kernels (const LsPlan *plan, const LsProgram *p)
{
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      if (ls_op_takes (seg->ops[o].kind, LS_TAKES_GPU))
        return true;
  }
  return false;
}

static uint32_t
slots_called (const LsPlan *plan, const LsProgram *p)
{
  uint32_t slots = 0;
  g_autofree bool *is_seen = g_new0 (bool, plan->n_segments);
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t id = p->instances[i].segment;
    const LsSegment *seg = &plan->segments[id];
    for (uint32_t o = 0; o < seg->n_ops && !is_seen[id]; o++)
      if (ls_op_has (seg->ops[o].kind, LS_HAS_CALL))
        slots |= 1u << seg->ops[o].slot;
    is_seen[id] = true;
  }
  return slots;
}

static uint64_t
round_up (uint64_t n, uint64_t unit)
{
  return (n + unit - 1) / unit * unit;
}

static uint64_t
inside_node (void)
{
  uint64_t buffers = ls_tune_buffer_bytes (LS_PROTOCOL_LL) + ls_tune_buffer_bytes (LS_PROTOCOL_LL128)
      + ls_tune_buffer_bytes (LS_PROTOCOL_SIMPLE);
  return round_up (HEADER, SHARED_UNIT) + round_up (HEADER + buffers, SHARED_UNIT);
}

static uint64_t
across_nodes (void)
{
  return 2 * (ls_tune_buffer_bytes (LS_PROTOCOL_LL128) + ls_tune_buffer_bytes (LS_PROTOCOL_SIMPLE));
}

/* Members on the rank's own host, and the NICs that these use. */
typedef struct {
  uint32_t n_here;
  GHashTable *nics;
} Neighbours;

static void
add_neighbour (Neighbours *n, const LsCluster *cluster, uint32_t gpu)
{
  n->n_here++;
  g_hash_table_add (n->nics, GUINT_TO_POINTER (ls_nic_of_gpu (cluster, gpu) + 1));
}

/* Where GPU i has rank i by the ranks of the host, which are few, else by the members. */
static void
find_neighbours (const LsPlan *plan, const LsCluster *cluster, uint32_t comm, uint32_t rank, Neighbours *n)
{
  const LsCommunicator c = ls_plan_communicator (plan, comm);
  uint32_t host = ls_cluster_host_of (cluster, ls_plan_gpu (plan, rank)),
           first = ls_cluster_gpu_at (cluster, host, 0), n_gpus = ls_cluster_gpus_of (cluster, host);
  for (uint32_t i = 0; plan->gpu_of_rank && i < c.n_ranks; i++) {
    uint32_t gpu = ls_plan_gpu (plan, ls_comm_rank (&c, i));
    if (gpu - first < n_gpus)
      add_neighbour (n, cluster, gpu);
  }
  for (uint32_t gpu = first; !plan->gpu_of_rank && gpu < MIN (first + n_gpus, plan->n_ranks); gpu++)
    if (ls_plan_slots_to (plan, gpu, comm) != 0)
      add_neighbour (n, cluster, gpu);
}

static uint64_t
buffers_of (const LsPlan *plan, const LsCluster *cluster, const LsNccl *nccl, uint32_t comm, uint32_t rank)
{
  uint32_t n_ranks = ls_plan_communicator (plan, comm).n_ranks;
  if (n_ranks < 2)
    return 0;
  g_autoptr (GHashTable) nics = g_hash_table_new (NULL, NULL);
  Neighbours n = { 0, nics };
  find_neighbours (plan, cluster, comm, rank, &n);
  if (n.n_here == n_ranks)
    return nccl->channels_ring * inside_node ();
  uint64_t channels = (uint64_t) nccl->channels_net * g_hash_table_size (nics);
  return channels * ((n.n_here - 1) * inside_node () + across_nodes ()) / n.n_here;
}

/* Adds what the rank's program makes them take, by category. TPUs have neither. */
static void
add_libraries (const LsPlan *plan, const LsCluster *cluster, const LsNccl *nccl, uint32_t rank,
               uint64_t bytes[LS_N_MEM])
{
  const LsBinding binding = ls_plan_binding (plan, rank);
  const LsProgram *program = &plan->programs[binding.role];
  if (nccl->nvlink <= 0) /* no NCCL: not an NVIDIA GPU */
    return;
  if (has_kernels (plan, program))
    bytes[LS_MEM_WORKSPACE] += ls_cluster_gpu_spec (cluster, ls_plan_gpu (plan, rank))->blas_workspace_bytes;
  uint32_t slots = slots_called (plan, program);
  for (uint32_t s = 0; s < LS_N_SLOTS; s++) {
    uint32_t comm = slots & 1u << s ? binding.comm[s] : UINT32_MAX;
    for (uint32_t before = 0; before < s && comm != UINT32_MAX; before++)
      if (slots & 1u << before && binding.comm[before] == comm)
        comm = UINT32_MAX;
    if (comm != UINT32_MAX)
      bytes[LS_MEM_COMM_BUFFERS] += buffers_of (plan, cluster, nccl, comm, rank);
  }
}

void
memory_throughout (const LsMemoryInput *in, uint32_t role, uint32_t rank, uint64_t ret_bytes[LS_N_MEM])
{
  memcpy (ret_bytes, in->plan->programs[role].static_bytes, LS_N_MEM * sizeof *ret_bytes);
  if (in->cluster && in->nccl && rank != UINT32_MAX)
    add_libraries (in->plan, in->cluster, in->nccl, rank, ret_bytes);
}

uint64_t
memory_allocator_limit (const LsMemoryInput *in, uint32_t rank, const uint64_t throughout[LS_N_MEM])
{
  bool has_gpu = in->cluster && rank != UINT32_MAX;
  uint64_t limit = has_gpu ? ls_memory_capacity_of (in->plan, in->cluster, rank)
      : in->cluster        ? ls_memory_capacity (&in->cluster->spec.gpu)
                           : 0,
           outside = 0;
  for (int c = 0; c < LS_N_MEM; c++)
    outside += memory_is_outside_allocator (c) ? throughout[c] : 0;
  return limit > outside ? limit - outside : 0;
}
