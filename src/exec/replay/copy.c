/* exec/replay/copy.c — copies between a GPU and the memory of its host's CPU, or its NVMe drive:
 * copy engines, one per direction, that hold no SMs and share PCIe, the CPU's memory or the
 * drive, and the HBM.
 *
 * A link carries as much each way whatever goes the other. Where a calibration knows better
 * (LsAround.copy_duplex), a copy to the device and one to the host move at that share of their rates while
 * both do. The share is of one GPU with the host to itself; what several GPUs share is the links' and the
 * memory's. Copies to and from a drive, whose rate is a fraction of the link's, neither cause it nor pay it.
 *
 * Worked example. 10 GB each way at 50 GB/s, copy_duplex 0.8: 250 ms. 10 GB in and 5 GB out: the 5 GB take
 * 125 ms at 40 GB/s; the 5 GB that are left go at 50 GB/s, 225 ms in all. */
#include "exec/replay/motion.h"
#include "exec/replay/state.h"

static void
copy_finished (void *run, Motion *m, LsTime at)
{
  Copy *c = (Copy *) m;
  Run *x = run;
  digest_add (x->ranks[c->rank].job, m->step, at, whole_weight_of_copy (x->whole, c->rank));
  g_assert (c->is_busy && !c->is_moving && x->ranks[c->rank].n_copies > 0);
  c->is_busy = false;
  x->ranks[c->rank].n_copies--;
  comm_over (x, c->rank, c->frame, c->op, 0, at);
}

static void
copy_recap (Run *x, Copy *c, double share)
{
  LsFlow *f = &c->motion.flow;
  double cap = f->nominal_rate * share;
  if (c->is_moving)
    ls_flow_set_cap (x->net, f, cap);
}

static void
copy_moving (void *run, const Motion *m, int sign)
{
  Run *x = run;
  Copy *c = (Copy *) m, *engines = &x->copies[c->rank * LS_N_COPY_DIRECTIONS],
       *in = &engines[LS_COPY_TO_DEVICE], *out = &engines[LS_COPY_TO_HOST];
  g_assert (c->is_busy && c->is_moving == (sign < 0));
  c->is_moving = sign > 0;
  double share = in->is_moving && out->is_moving ? ls_around_duplex (x->ranks[c->rank].kind->around) : 1;
  copy_recap (x, in, share);
  copy_recap (x, out, share);
}

static Copy *
engine_of (const Run *x, const Rank *r, const LsOp *op)
{
  return &x->copies[r->id * LS_N_COPY_DIRECTIONS + op->direction];
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
    motion_init (&x->copies[i].motion, copy_finished, copy_moving);
}
