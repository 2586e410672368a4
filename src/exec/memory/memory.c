#include "exec/memory/memory.h"

#include <string.h>

#include "cluster/route.h"
#include "exec/memory/allocator.h"
#include "exec/memory/memory_times.h"
#include "exec/memory/retries.h"
#include "network/nccl/tuning.h"

/* ---- what libraries take ---- */

/* What libraries take of a GPU's memory besides tensors.
 *
 * cuBLAS. PyTorch gives each handle and stream a workspace (blas_workspace of the GPU's file). One
 * stream computes.
 *
 * NCCL. A ring connects each rank with the one before and the one behind, on each channel.
 *
 *     inside a node   12 MiB: the buffers of LL (512 KiB), LL128 (4.69 MiB) and Simple (4
 *                     MiB), which lie with the receiver or in part with the sender, and a
 *                     header at either end, each side rounded up to 2 MiB
 *     across nodes    17.4 MiB: LL128 and Simple at either end; LL lies in the host's memory
 *
 * (src/transport/p2p.cc, p2pSendSetup and p2pRecvSetup; src/transport/net.cc,
 * sendProxyConnect; NVIDIA/nccl issue 1685 lists allocations of 10 and 2 MiB on H100.) In a
 * ring over nodes one of a node's k connections crosses: a rank has 1 / k of it on average.
 * Each communicator has its own: sizes do not depend on messages, all channels connect.
 *
 * Worked example: all-reduce among 2 A100: 24 channels, 288 MiB. Measured: 544 MB for two,
 * kernels and all, and 144 MB more with four, whose trees have connections that their rings
 * lack (NVIDIA/nccl issue 964).
 *
 * Deviations. A lower bound: connections of trees and NVLS, and those of sends and receives,
 * are not counted: how many channels a pair gets is not in our NCCL files. Communicators
 * that share resources (ncclCommSplit with splitShare) take less.
 *
 * The CUDA context is LsGpu.reserved_bytes. */

#define KIB UINT64_C (1024)
#define MIB (1024 * KIB)

/* CUDA_IPC_MIN: what is shared with another process begins and ends at its multiples. */
#define SHARED_UNIT (2 * MIB)
/* ncclSendMem and ncclRecvMem: a page each. */
#define HEADER (4 * KIB)

/* The slots, as bits, on which a program calls; *ret_has_kernels: whether it launches any. */
static uint32_t
slots_called (const LsPlan *plan, const LsProgram *p, bool *ret_has_kernels)
{
  uint32_t slots = 0;
  g_autofree uint32_t *n_uses = ls_program_uses (plan, p, 0);
  *ret_has_kernels = false;
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops && n_uses[s] > 0; o++) {
      const LsOp *op = &plan->segments[s].ops[o];
      slots |= ls_op_has (op->kind, LS_HAS_CALL) ? 1u << op->slot : 0;
      *ret_has_kernels |= ls_op_takes (op->kind, LS_TAKES_GPU);
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
  uint64_t across
      = 2 * (ls_tune_buffer_bytes (LS_PROTOCOL_LL128) + ls_tune_buffer_bytes (LS_PROTOCOL_SIMPLE));
  return channels * ((n.n_here - 1) * inside_node () + across) / n.n_here;
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
  bool has_kernels;
  uint32_t slots = slots_called (plan, program, &has_kernels);
  if (has_kernels)
    bytes[LS_MEM_WORKSPACE] += ls_cluster_gpu_spec (cluster, ls_plan_gpu (plan, rank))->blas_workspace_bytes;
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

static uint64_t
outside_allocator (const uint64_t bytes[LS_N_MEM])
{
  uint64_t outside = 0;
  for (int c = 0; c < LS_N_MEM; c++)
    outside += memory_is_outside_allocator (c) ? bytes[c] : 0;
  return outside;
}

uint64_t
memory_allocator_limit (const LsMemoryInput *in, uint32_t rank, const uint64_t throughout[LS_N_MEM])
{
  bool has_gpu = in->cluster && rank != UINT32_MAX;
  uint64_t limit = has_gpu ? ls_memory_capacity_of (in->plan, in->cluster, rank)
      : in->cluster        ? ls_memory_capacity (&in->cluster->spec.gpu)
                           : 0,
           outside = outside_allocator (throughout);
  return limit > outside ? limit - outside : 0;
}

/* --- the ledger: what is alive, and the most of it ------------------------------- */

typedef struct {
  LsClassMemory *m;
  uint64_t alive[LS_N_MEM];
  uint64_t total;
  uint64_t layers;        /* kept by forward for the backward of layers */
  LsAllocator *allocator; /* NULL: none                                */
  uint32_t *handles;      /* of its blocks, by lap and change; first those of the lap before */
  GArray *samples;        /* LsMemorySample, NULL: nobody asked        */
} Ledger;

static bool
is_kept_by_layer (const MemoryChange *alloc)
{
  return alloc->buffer->category == LS_MEM_ACTIVATIONS && alloc->of->layer != UINT16_MAX
      && alloc->of->tag != LS_TAG_RECOMPUTE;
}

static void
note_peak (Ledger *l, const MemoryChange *c, LsTime at)
{
  LsClassMemory *m = l->m;
  for (int i = 0; i < LS_N_MEM; i++)
    m->category_peak[i] = MAX (m->category_peak[i], l->alive[i]);
  m->kept_by_layers = MAX (m->kept_by_layers, l->layers);
  if (l->total <= m->peak_bytes)
    return;
  m->peak_bytes = l->total;
  memcpy (m->at_peak, l->alive, sizeof m->at_peak);
  m->peak_instance = c ? c->instance : 0;
  m->peak_op = c ? c->op : UINT16_MAX;
  m->peak_at = at;
}

static void
note_sample (Ledger *l, LsTime at)
{
  guint n = l->samples->len;
  if (n == 0 || g_array_index (l->samples, LsMemorySample, n - 1).at < at)
    g_array_set_size (l->samples, ++n);
  LsMemorySample *s = &g_array_index (l->samples, LsMemorySample, n - 1);
  s->at = at;
  memcpy (s->alive, l->alive, sizeof s->alive);
}

static void
add_bytes (Ledger *l, const GArray *changes, const MemoryChange *c)
{
  uint64_t bytes = c->buffer->bytes, *alive = &l->alive[c->buffer->category];
  if (!c->buffer->is_free) {
    *alive += bytes;
    l->total += bytes;
    l->layers += is_kept_by_layer (c) ? bytes : 0;
    return;
  }
  uint64_t freed = MIN (bytes, *alive);
  *alive -= freed;
  l->total -= freed;
  l->m->overfreed_bytes += bytes - freed;
  if (c->alloc != UINT32_MAX && is_kept_by_layer (&g_array_index (changes, MemoryChange, c->alloc)))
    l->layers -= MIN (freed, l->layers);
}

static void
tell_allocator (Ledger *l, const MemoryChange *c, uint32_t lap, guint n_changes)
{
  if (!l->allocator || c->alloc == UINT32_MAX)
    return;
  uint32_t *handle = &l->handles[memory_laps_place (c, lap, n_changes)];
  if (c->buffer->is_free && *handle == UINT32_MAX)
    return; /* counted as overfreed */
  if (c->buffer->is_free)
    ls_allocator_drop (l->allocator, *handle);
  else
    *handle = ls_allocator_take (l->allocator, c->buffer->bytes, c->stream);
}

static void
ledger_init (Ledger *l, LsClassMemory *m, const LsMemoryInput *in, uint32_t n_laps, const GArray *changes)
{
  *l = (Ledger) { .m = m };
  memcpy (l->alive, m->at_begin, sizeof l->alive);
  for (int c = 0; c < LS_N_MEM; c++)
    l->total += l->alive[c];
  if (in->options.allocator != LS_MEMORY_CACHING)
    return;
  l->handles = memory_laps_handles (n_laps, changes->len);
  l->allocator = ls_allocator_new (memory_allocator_limit (in, m->rank, l->alive));
  memory_take_first (changes, l->alive, NULL, l->allocator, l->handles);
}

/* What the step before has left to be freed. */
static void
carry_in (Ledger *l, const GArray *changes)
{
  for (guint i = 0; i < changes->len; i++) {
    const MemoryChange *c = &g_array_index (changes, MemoryChange, i);
    if (!c->is_carried)
      continue;
    add_bytes (l, changes, &g_array_index (changes, MemoryChange, c->alloc));
    l->m->at_begin[c->buffer->category] += c->buffer->bytes;
  }
}

static void
ledger_finish (Ledger *l)
{
  LsClassMemory *m = l->m;
  memcpy (m->at_end, l->alive, sizeof m->at_end);
  m->needed_bytes = m->peak_bytes;
  if (l->allocator) {
    LsAllocatorStats stats = ls_allocator_stats (l->allocator);
    m->reserved_bytes = stats.peak_reserved;
    m->allocated_bytes = stats.peak_allocated;
    m->n_given_back = stats.n_given_back;
    m->needed_bytes = stats.peak_reserved + outside_allocator (m->category_peak);
  }
  ls_allocator_free (l->allocator);
  g_free (l->handles);
}

/* --- a step, and what lies around it ----------------------------------------------- */

static LsTime
in_step (const MemoryWindow *w, LsTime at)
{
  if (w->period == 0)
    return LS_TIME_NEVER;
  LsTime since = (at - w->start) % w->period; /* the host is ahead: of the step before */
  return since < 0 ? since + w->period : since;
}

static void
account (Ledger *l, const GArray *changes, MemoryLaps *laps, const MemoryWindow *w)
{
  bool is_inside = false;
  for (MemoryEvent e; memory_laps_next (laps, &e);) {
    const MemoryChange *c = &g_array_index (changes, MemoryChange, e.index);
    if (e.is_issue)
      continue;
    if (!is_inside && e.at >= w->from) {
      note_peak (l, NULL, w->period > 0 ? 0 : LS_TIME_NEVER);
      if (l->samples)
        note_sample (l, 0);
      is_inside = true;
    }
    add_bytes (l, changes, c);
    tell_allocator (l, c, e.lap, changes->len);
    if (e.at < w->from || e.at >= w->to)
      continue;
    if (!c->buffer->is_free)
      note_peak (l, c, in_step (w, e.at));
    if (l->samples)
      note_sample (l, e.at - w->from);
  }
  if (is_inside)
    return;
  note_peak (l, NULL, w->period > 0 ? 0 : LS_TIME_NEVER);
  if (l->samples)
    note_sample (l, 0);
}

/* LAPS_ONE: all of the step by itself, which is enough where nothing of it outlives it. */
typedef enum { LAPS_ONE, LAPS_THREE } Laps;

/* t NULL: the changes are in order only. */
static void
measure (LsClassMemory *m, const LsMemoryInput *in, const GArray *changes, const GArray *events,
         const LsTimeline *t, Laps laps, GArray *samples)
{
  MemoryWindow w = memory_window_of (t, laps == LAPS_THREE);
  if (samples) {
    w.from = t->window_start;
    w.to = t->window_end;
  }
  MemoryLaps ordered = memory_laps_of (events, w.n_laps, w.period);
  Ledger l;
  ledger_init (&l, m, in, w.n_laps, changes);
  carry_in (&l, changes);
  l.samples = samples;
  account (&l, changes, &ordered, &w);
  ledger_finish (&l);
}

static LsClassMemory
blank_class (const LsMemoryInput *in, uint32_t role, uint32_t rank)
{
  LsClassMemory m = { .rank = rank, .role = role, .peak_op = UINT16_MAX, .peak_at = LS_TIME_NEVER };
  memory_throughout (in, role, rank, m.at_begin);
  if (in->cluster && rank != UINT32_MAX)
    m.capacity_bytes = ls_memory_capacity_of (in->plan, in->cluster, rank);
  return m;
}

/* --- classes ----------------------------------------------------------------------- */

static bool
has_spans (const LsTimeline *t, uint32_t rank)
{
  return t && ls_timeline_spans (t, rank)->n > 0;
}

static uint32_t
count_of (const LsMemoryInput *in, uint32_t rank)
{
  return in->timeline ? ls_timeline_multiplicity (in->timeline, rank) : 1;
}

static bool
holds_the_same (const LsClassMemory *a, const LsClassMemory *b)
{
  return a->peak_bytes == b->peak_bytes && a->needed_bytes == b->needed_bytes
      && a->kept_by_layers == b->kept_by_layers && memcmp (a->at_peak, b->at_peak, sizeof a->at_peak) == 0
      && memcmp (a->category_peak, b->category_peak, sizeof a->category_peak) == 0;
}

/* Ranks of a role that turn out to hold the same are one class. */
static void
add_class (GArray *classes, guint first_of_role, const LsClassMemory *m)
{
  for (guint i = first_of_role; i < classes->len; i++) {
    LsClassMemory *other = &g_array_index (classes, LsClassMemory, i);
    if (holds_the_same (other, m)) {
      other->count += m->count;
      return;
    }
  }
  g_array_append_val (classes, *m);
}

/* Ranks of a role on nodes of a kind. */
typedef struct {
  uint32_t role, node_kind;
} Ranks;

static bool
is_of (const LsMemoryInput *in, Ranks of, uint32_t rank)
{
  const LsCluster *c = in->cluster;
  uint32_t kind = c ? ls_cluster_kind_of (c, ls_cluster_host_of (c, ls_plan_gpu (in->plan, rank))) : 0;
  return ls_plan_role (in->plan, rank) == of.role && kind == of.node_kind;
}

static void
add_role_in_order (GArray *classes, const LsMemoryInput *in, Ranks of, const GArray *changes)
{
  uint32_t first = UINT32_MAX, count = 0, role = of.role;
  for (uint32_t rank = 0; rank < in->plan->n_ranks; rank++)
    if (is_of (in, of, rank)) {
      first = first == UINT32_MAX ? rank : first;
      count += count_of (in, rank);
    }
  if (first == UINT32_MAX && of.node_kind > 0)
    return;
  LsClassMemory m = blank_class (in, role, first);
  m.count = count;
  g_autoptr (GArray) events = memory_events (changes);
  measure (&m, in, changes, events, NULL, LAPS_ONE, NULL);
  g_array_append_val (classes, m);
}

/* Where order alone decides, one rank says what all of its role hold. */
static void
add_role_timed (GArray *classes, const LsMemoryInput *in, Ranks of, bool is_order_enough)
{
  const LsTimeline *t = in->timeline;
  guint first_of_role = classes->len; /* and kind */
  for (uint32_t row = 0; row < t->n_rows; row++) {
    uint32_t rank = ls_timeline_rank (t, row);
    if (t->multiplicity[row] == 0 || !is_of (in, of, rank))
      continue;
    if (is_order_enough && classes->len > first_of_role) {
      g_array_index (classes, LsClassMemory, first_of_role).count += count_of (in, rank);
      continue;
    }
    if (!has_spans (t, rank))
      continue;
    g_autoptr (GArray) changes = memory_changes_timed (t, rank, (LsMemoryClock) in->options.clock);
    LsClassMemory m = blank_class (in, of.role, rank);
    m.count = count_of (in, rank);
    g_autoptr (GArray) events = memory_events (changes);
    measure (&m, in, changes, events, t, is_order_enough ? LAPS_ONE : LAPS_THREE, NULL);
    add_class (classes, first_of_role, &m);
    if (in->retries && !is_order_enough)
      retries_add_rank (in->retries, in, rank, changes, events, t->window_end - t->window_start);
  }
}

static bool
any_spans (const LsMemoryInput *in)
{
  for (uint32_t row = 0; in->timeline && row < in->timeline->n_rows; row++)
    if (in->timeline->ranks[row].n > 0)
      return true;
  return false;
}

LsMemory *
ls_memory_new (const LsMemoryInput *in)
{
  LsMemory *memory = g_new0 (LsMemory, 1);
  memory->options = in->options;
  memory->is_timed = any_spans (in);
  g_assert (!in->at_least || !memory->is_timed);
  g_assert (!in->retries || in->options.clock == LS_MEMORY_HOST);
  g_autoptr (GArray) classes = g_array_new (FALSE, FALSE, sizeof (LsClassMemory));
  for (uint32_t role = 0; role < in->plan->n_roles; role++) {
    g_autoptr (GArray) changes = memory_changes_in_order (in->plan, &in->plan->programs[role]);
    bool is_order_enough = in->options.clock == LS_MEMORY_HOST && !memory_changes_streams (changes);
    if (in->at_least)
      memory_changes_leave_out_places (changes);
    if (in->retries && (is_order_enough || !in->timeline))
      retries_add_role (in->retries, in, role, changes);
    uint32_t n_kinds = in->cluster ? ls_cluster_spec_n_kinds (&in->cluster->spec) : 1;
    for (uint32_t kind = 0; kind < n_kinds; kind++)
      if (memory->is_timed)
        add_role_timed (classes, in, (Ranks) { role, kind }, is_order_enough);
      else
        add_role_in_order (classes, in, (Ranks) { role, kind }, changes);
  }
  memory->n_classes = classes->len;
  memory->classes = (LsClassMemory *) (gpointer) g_array_free (g_steal_pointer (&classes), FALSE);
  return memory;
}

void
ls_memory_free (LsMemory *m)
{
  if (!m)
    return;
  g_free (m->classes);
  g_free (m);
}

/* What it needs beyond what its GPU has. */
static int64_t
over (const LsClassMemory *c)
{
  return (int64_t) c->needed_bytes - (int64_t) c->capacity_bytes;
}

const LsClassMemory *
ls_memory_fullest (const LsMemory *m)
{
  const LsClassMemory *fullest = NULL;
  for (uint32_t i = 0; i < m->n_classes; i++) {
    const LsClassMemory *c = &m->classes[i];
    if (c->count == 0)
      continue;
    if (!fullest || over (c) > over (fullest) || (over (c) == over (fullest) && c->rank < fullest->rank))
      fullest = c;
  }
  return fullest;
}

uint64_t
ls_memory_sample_total (const LsMemorySample *s)
{
  uint64_t total = 0;
  for (int c = 0; c < LS_N_MEM; c++)
    total += s->alive[c];
  return total;
}

GArray *
ls_memory_samples_thin (const GArray *samples, LsTime window, guint n_columns)
{
  GArray *thin = g_array_new (FALSE, FALSE, sizeof (LsMemorySample));
  const LsMemorySample *all = (const LsMemorySample *) samples->data;
  double per_ps = n_columns / (double) MAX (window, 1);
  for (guint i = 0, end; i < samples->len; i = end) {
    const LsMemorySample *fullest = &all[i];
    guint column = (guint) ((double) all[i].at * per_ps);
    for (end = i; end < samples->len && (guint) ((double) all[end].at * per_ps) == column; end++)
      if (ls_memory_sample_total (&all[end]) > ls_memory_sample_total (fullest))
        fullest = &all[end];
    g_array_append_val (thin, *fullest);
    if (fullest != &all[end - 1])
      g_array_append_val (thin, all[end - 1]);
  }
  return thin;
}

GArray *
ls_memory_curve (const LsMemoryInput *in, uint32_t rank)
{
  g_assert (has_spans (in->timeline, rank));
  GArray *samples = g_array_new (FALSE, TRUE, sizeof (LsMemorySample));
  g_autoptr (GArray) changes = memory_changes_timed (in->timeline, rank, (LsMemoryClock) in->options.clock);
  LsClassMemory m = blank_class (in, ls_plan_role (in->plan, rank), rank);
  g_autoptr (GArray) events = memory_events (changes);
  measure (&m, in, changes, events, in->timeline, LAPS_THREE, samples);
  return samples;
}

uint64_t
ls_memory_capacity (const LsGpu *gpu)
{
  return gpu->hbm_bytes - MIN (gpu->reserved_bytes, gpu->hbm_bytes);
}

uint64_t
ls_memory_capacity_of (const LsPlan *plan, const LsCluster *cluster, uint32_t rank)
{
  return ls_memory_capacity (ls_cluster_gpu_spec (cluster, ls_plan_gpu (plan, rank)));
}

uint64_t
ls_memory_least_capacity (const LsPlan *plan, const LsCluster *cluster, uint32_t role)
{
  uint64_t least = 0;
  if (!cluster->kind_of_host)
    return ls_memory_capacity (ls_cluster_gpu_spec (cluster, 0));
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    if (ls_plan_role (plan, r) != role)
      continue;
    uint64_t own = ls_memory_capacity_of (plan, cluster, r);
    least = least == 0 ? own : MIN (least, own);
  }
  return least;
}

const LsEnumName ls_memory_clock_names[]
    = { { "host", LS_MEMORY_HOST }, { "device", LS_MEMORY_DEVICE }, { NULL } };
const LsEnumName ls_memory_allocator_names[]
    = { { "exact", LS_MEMORY_EXACT }, { "caching", LS_MEMORY_CACHING }, { NULL } };

uint64_t
ls_memory_allocated (const LsMemory *m)
{
  uint64_t most = 0;
  for (uint32_t i = 0; i < m->n_classes; i++)
    if (m->classes[i].count > 0)
      most = MAX (most, m->classes[i].peak_bytes - outside_allocator (m->classes[i].category_peak));
  return most;
}
