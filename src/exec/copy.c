/* exec/copy.c — copies between a GPU and the memory of its host's CPU, or its NVMe drive:
 * copy engines, one per direction, that hold no SMs and share PCIe, the CPU's memory or the
 * drive, and the HBM. */
#include "exec/state.h"

typedef struct {
  Motion motion; /* first member */
  bool is_busy;
  uint32_t rank;
  uint64_t frame;
  uint16_t op;
  Call *calls;
} Copy;

struct Copies {
  Copy engine[LS_N_COPY_DIRECTIONS]; /* by LsCopyDirection */
};

static void
copy_finished (void *run, Motion *m, LsTime at)
{
  Copy *c = (Copy *) m;
  Run *x = run;
  digest_add (x, m->step, at, x->fold->copy_weight[c->rank]);
  c->is_busy = false;
  x->ranks[c->rank].n_copies--;
  comm_over (x, c->rank, c->frame, c->op, 0, at);
}

/* One flow over the PCIe path and the HBM, as fast as its narrowest link; what stays in the
 * host loads the CPU's memory alone. */
const LsCollPlan *
copy_plan (const Run *x, uint32_t gpu, LsCopyDirection direction, uint64_t bytes, LsArena *arena)
{
  LsRoute route;
  bool is_in_host = direction == LS_COPY_IN_HOST;
  if (direction == LS_COPY_TO_DEVICE || direction == LS_COPY_TO_HOST || is_in_host)
    ls_route_host_memory (x->cluster, gpu, direction == LS_COPY_TO_HOST || is_in_host, &route);
  else
    ls_route_nvme (x->cluster, gpu, direction == LS_COPY_TO_NVME, &route);
  LsPhase *phase = ls_arena_new_array (arena, LsPhase, 1);
  phase->loads = ls_arena_new_array (arena, LsLoad, route.n_hops + 1);
  phase->latency = is_in_host ? 0 : route.latency;
  phase->demand_bytes = (double) bytes;
  uint32_t first = is_in_host ? route.n_hops - 1 : 0,
           last = is_in_host ? first : route.n_hops; /* past it: the HBM */
  for (uint32_t i = first; i <= last; i++) {
    LsHop hop = i < route.n_hops ? route.hop[i]
                                 : (LsHop) { ls_cluster_hbm_resource (x->cluster, gpu), LS_HOP_WHOLE };
    double capacity = ls_cluster_resource_capacity (x->cluster, hop.trunk) * LS_HOP_WHOLE / hop.share;
    phase->loads[phase->n_loads++]
        = (LsLoad) { hop.trunk, (uint64_t) LS_COEF_ONE * hop.share / LS_HOP_WHOLE };
    phase->rate_cap = i == first ? capacity : MIN (phase->rate_cap, capacity);
  }
  if (x->options->network == LS_NETWORK_ALPHABETA)
    phase->n_loads = 0;
  LsCollPlan *plan = ls_arena_new_array (arena, LsCollPlan, 1);
  *plan = (LsCollPlan) { .algorithm = "copy", .protocol = "DMA", .n_phases = 1, .phases = phase };
  return plan;
}

bool
copy_can_start (const Run *x, const Rank *r, const LsOp *op)
{
  return !x->copies[r->id].engine[op->root].is_busy;
}

void
copy_start (Run *x, Rank *r, uint64_t frame, uint16_t op_index, LsTime at)
{
  const LsOp *op = &rank_frame (r, frame)->seg->ops[op_index];
  Copy *c = &x->copies[r->id].engine[op->root];
  Call *call = call_find (c->calls, copy_key (op));
  c->is_busy = true;
  c->rank = r->id;
  c->frame = frame;
  c->op = op_index;
  r->n_copies++;
  comm_matched (x, r->id, frame, op_index, at);
  motion_begin (x, &c->motion, call, rank_frame (r, frame)->step, at);
}

void
copies_init (Run *x)
{
  x->copies = g_new0 (Copies, x->plan->n_ranks);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
      motion_init (&x->copies[i].engine[d].motion, copy_finished, NULL);
}

void
copies_count_bytes (const Run *x, uint32_t step, ExactBytes *resource_bytes)
{
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
      calls_count_bytes (x->copies[i].engine[d].calls, step, resource_bytes);
}

Call **
copy_calls (Run *x, uint32_t rank, LsCopyDirection direction)
{
  return &x->copies[rank].engine[direction].calls;
}

const Call *
copies_calls (const Run *x, uint32_t rank, LsCopyDirection direction)
{
  return x->copies[rank].engine[direction].calls;
}
