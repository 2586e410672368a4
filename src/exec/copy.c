/* exec/copy.c — copies between a GPU and the memory of its host's CPU, or its NVMe drive:
 * copy engines, one per direction, that hold no SMs and share PCIe, the CPU's memory or the
 * drive, and the HBM. */
#include "exec/motion.h"
#include "exec/state.h"

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

static Copy *
engine_of (const Run *x, const Rank *r, const LsOp *op)
{
  return &x->copies[r->id * LS_N_COPY_DIRECTIONS + op->root];
}

bool
copy_can_start (const Run *x, const Rank *r, const LsOp *op)
{
  return !engine_of (x, r, op)->is_busy;
}

void
copy_start (Run *x, Rank *r, uint64_t frame, uint16_t op_index, LsTime at)
{
  const LsOp *op = &rank_frame (r, frame)->seg->ops[op_index];
  Copy *c = engine_of (x, r, op);
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
  uint32_t n = x->plan->n_ranks * LS_N_COPY_DIRECTIONS;
  x->copies = g_new0 (Copy, n);
  for (uint32_t i = 0; i < n; i++)
    motion_init (&x->copies[i].motion, copy_finished, NULL);
}
