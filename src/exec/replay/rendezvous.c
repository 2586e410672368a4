/* exec/replay/rendezvous.c — collectives: launched, resident, matched, latency, moving, done.
 *
 * Call number k of a communicator matches when all members have launched it. From
 * launch to end it holds its share of the SMs of each member. */
#include <lockstep/error.h>

#include "exec/replay/motion.h"
#include "exec/replay/state.h"

#include <string.h>

static void
collective_finished (void *run, Motion *m, LsTime at)
{
  Run *x = run;
  Comm *c = (Comm *) m;
  const LsCommunicator *group = &c->group;
  digest_add (x->ranks[ls_comm_rank (group, 0)].job, m->step, at, whole_weight_of_comm (x->whole, c->id));
  g_assert (c->n_arrived == group->n_ranks && at >= c->arrived);
  c->n_arrived = 0;
  c->arrived = 0;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    comm_over (x, ls_comm_rank (group, i), c->frame[i], c->op[i], m->call->sm_share, at);
}

/* Newly allocated. */
static char *
describe (CallKey key, LsDtype dtype)
{
  static const char *const parts[LS_N_PARTS_KINDS] = {
    [LS_PARTS_EQUAL] = "", [LS_PARTS_RECEIVED] = ", parts by receiver", [LS_PARTS_SENT] = ", parts by sender"
  };
  LsCollKind kind = (LsCollKind) key.kind;
  const char *algorithm = ls_coll_algorithm_name (key.algorithm);
  g_autofree char *root
      = ls_coll_kind_has_root (kind) ? g_strdup_printf (", root %u", key.root) : g_strdup ("");
  return g_strdup_printf ("%s of %" G_GUINT64_FORMAT " bytes (%s)%s%s%s%s", ls_coll_kind_name (kind),
                          key.bytes, ls_dtype_name (dtype), root, parts[key.parts], algorithm ? ", by " : "",
                          algorithm ? algorithm : "");
}

static void
collective_moving (void *run, const Motion *m, int sign)
{
  Run *x = run;
  const LsCommunicator *group = &((const Comm *) m)->group;
  for (uint32_t i = 0; i < group->n_ranks && m->call->stall > 0; i++)
    kernel_stall (x, &x->ranks[ls_comm_rank (group, i)], m->call->stall, sign);
}

static void
mismatch (Run *x, Comm *c, Rank *r, uint32_t step, const LsOp *op)
{
  const LsCommunicator *group = &c->group;
  if (x->error)
    return;
  x->engine.stop_at = x->engine.now;
  if (c->step != step) {
    x->error
        = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                       "communicator %u (%s): a call of rank %u in step %u meets one of rank %u in step %u",
                       c->id, ls_axis_names[group->axis].name, r->id, step, c->first_rank, c->step);
    return;
  }
  g_autofree char *is = describe (collective_key (op), op->dtype),
                  *was = describe (c->motion.call->key, c->dtype);
  x->error = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                          "communicator %u (%s): rank %u calls %s, but rank %u called %s", c->id,
                          ls_axis_names[group->axis].name, r->id, is, c->first_rank, was);
}

void
comm_launch (Run *x, Rank *r, uint64_t frame, uint16_t op_index, LsTime at)
{
  Frame *f = rank_frame (r, frame);
  const LsOp *op = &f->seg->ops[op_index];
  uint32_t id = r->binding->comm[op->slot], member = r->binding->member[op->slot];
  Comm *c = &x->comms[id];
  const LsCommunicator *group = &c->group;
  if (c->n_arrived == 0) {
    c->motion.call = call_find (c->calls, collective_key (op));
    c->first_rank = r->id;
    c->step = f->step;
    c->dtype = op->dtype;
  } else if (c->step != f->step || !call_key_equal (c->motion.call->key, collective_key (op))
             || c->dtype != op->dtype) {
    mismatch (x, c, r, f->step, op);
    return;
  }
  g_assert (c->motion.call && member < group->n_ranks && c->n_arrived < group->n_ranks);
  c->frame[member] = frame;
  c->op[member] = op_index;
  c->arrived = MAX (c->arrived, at);
  kernel_residency (x, r, op, c->motion.call->sm_share, +1);
  if (++c->n_arrived < group->n_ranks)
    return;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    comm_matched (x, ls_comm_rank (group, i), c->frame[i], c->op[i], c->arrived);
  motion_begin (x, &c->motion, c->motion.call, f->step, c->arrived);
}

void
collectives_init (Run *x)
{
  x->comms = g_new0 (Comm, x->plan->n_comms);
  for (uint32_t i = 0; i < x->plan->n_comms; i++) {
    Comm *c = &x->comms[i];
    c->group = ls_plan_communicator (x->plan, i);
    uint32_t n = c->group.n_ranks;
    motion_init (&c->motion, collective_finished, collective_moving);
    c->id = i;
    c->frame = ls_arena_new_array (x->arena, uint64_t, n);
    c->op = ls_arena_new_array (x->arena, uint16_t, n);
    memset (c->op, 0xff, n * sizeof *c->op); /* NO_OP */
  }
}
