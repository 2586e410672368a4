/* exec/replay/check.c — what always holds of a run, asserted after events (LS_DEBUG=check).
 *
 * Counters are sums of what they count, each found anew: ops that are not over, streams that are busy, SMs
 * that are held, flows in the net. What is busy moves, and nothing else. No link is over its capacity, once
 * the rates of an instant are found. After every event of a small run; of a large one so often that an event
 * costs no more than a look at some hundred ops. */
#include <math.h>

#include "base/diag.h"
#include "exec/replay/state.h"

#define LOOKS_PER_EVENT 256

/* Ops of the frame that are not over. One that a hook has taken is as it was issued, but for their number. */
static uint32_t
check_frame (const Frame *f)
{
  uint32_t n_left = 0;
  g_assert (f->n_issued <= f->seg->n_ops);
  for (uint32_t i = 0; i < f->seg->n_ops; i++) {
    n_left += f->state[i] != OP_ENDED;
    g_assert ((f->state[i] == OP_WAITING) == (i >= f->n_issued));
  }
  g_assert (f->n_left == n_left || f->n_left == 0);
  return f->n_left;
}

/* At so many ops. */
static uint32_t
check_frames (Rank *r)
{
  uint32_t n_outstanding = 0, n_looks = 0;
  for (uint64_t i = r->frames_first; i < r->frames_end; i++) {
    n_outstanding += check_frame (rank_frame (r, i));
    n_looks += rank_frame (r, i)->seg->n_ops;
  }
  g_assert (r->n_outstanding == n_outstanding);
  return n_looks;
}

/* What is busy holds SMs, is copied or is the kernel. */
static void
check_streams (Run *x, Rank *r)
{
  uint32_t n_busy = 0;
  uint64_t sm_share = 0;
  for (uint32_t s = 0; s < LS_N_STREAMS; s++) {
    const Stream *st = &r->streams[s];
    g_assert ((st->op != NO_OP) == ((r->with_head & 1u << s) != 0));
    g_assert (st->frame <= r->frames_end && (st->op == NO_OP) == (st->frame == r->frames_end));
    if (st->op == NO_OP)
      continue;
    const Frame *f = rank_frame (r, st->frame);
    const OpBegin *by = &op_begins[f->seg->x[st->op].kind];
    g_assert (st->is_busy == (f->state[st->op] == OP_RUNNING));
    n_busy += st->is_busy;
    sm_share += st->is_busy && by->sm_share ? by->sm_share (x, r, &f->seg->ops[st->op]) : 0;
  }
  g_assert (n_busy == r->n_resident + r->n_copies + r->is_kernel_running);
  g_assert (r->sm_share == sm_share && r->sm_margin <= sm_share);
  g_assert (r->n_resident > 0 || r->stall == 0);
}

/* Of so many things. */
static uint32_t
check_rank (Run *x, Rank *r)
{
  uint32_t n_looks = check_frames (r);
  check_streams (x, r);
  for (int i = 0; i < 2; i++)
    g_assert (r->n_spans[i] <= r->span_room[i]);
  for (int s = 0; s < LS_N_SLOTS; s++)
    g_assert (r->calls_done[s] <= r->calls_opened[s]);
  return n_looks + LS_N_STREAMS + LS_N_SLOTS;
}

static bool
is_moving (const Motion *m)
{
  return ls_event_is_queued (&m->start) || m->flow.is_active;
}

/* Those of phases that are in the net. */
static uint32_t
check_motions (const Run *x)
{
  uint32_t n_active = 0;
  for (uint32_t i = 0; i < x->plan->n_comms; i++) {
    const Comm *c = &x->comms[i];
    g_assert (!is_moving (&c->motion) || c->n_arrived == c->group.n_ranks);
    n_active += c->motion.flow.is_active;
  }
  for (uint32_t i = 0; i < 2 * x->plan->n_ranks; i++) {
    Channel *ch = &x->channels[i];
    g_assert (ch->is_busy == is_moving (&ch->motion));
    g_assert (ch->is_busy == (ch->sends.length > 0 && ch->recvs.length > 0));
    n_active += ch->motion.flow.is_active;
  }
  for (uint32_t i = 0; i < LS_N_COPY_DIRECTIONS * x->plan->n_ranks; i++) {
    g_assert (x->copies[i].is_busy == is_moving (&x->copies[i].motion));
    n_active += x->copies[i].motion.flow.is_active;
  }
  return n_active;
}

void
run_check (void *run)
{
  Run *x = run;
  if (x->error || x->engine.n_events < x->next_check)
    return;
  uint64_t n_looks = x->plan->n_comms + x->whole->n_resources;
  uint32_t n_active = check_motions (x);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    n_looks += check_rank (x, &x->ranks[i]);
    n_active += x->ranks[i].is_kernel_running;
  }
  g_assert (ls_flow_net_n_active (x->net) >= n_active);
  g_assert (x->extras || ls_flow_net_n_active (x->net) == n_active);
  if (ls_flow_net_is_settled (x->net))
    ls_flow_net_check (x->net);
  x->next_check = x->engine.n_events + 1 + n_looks / LOOKS_PER_EVENT;
}

void
run_check_spans (const LsRankSpans *spans)
{
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    g_assert (s->issued <= s->start && s->start <= s->end);
    g_assert (s->cause == LS_SPAN_NONE || s->cause < spans->n);
  }
}

/* ---- what was asked to move has moved ---- */

/* What was asked to move has moved: no byte more, none less.
 *
 * Of each flow, the integral of its rate over time is its demand; then every link that
 * it crosses has carried it too, as coefficients are constant. Of a step, what moved on
 * each communicator, channel and copy engine is what the programs ask for: the calls
 * and bytes of the plan are counted apart from the replay, and compared exactly (sums
 * are modulo 2^64). Both hold in every run, whatever disturbed it. */

/* The completion of a flow is rounded up to a picosecond; sums are of doubles. */
#define ROUNDING_S 2e-12
#define TOLERANCE  1e-9

void
conserve_flow (Run *x, const LsFlow *f, double asked)
{
  double moved = f->moved;
  g_assert (asked > 0 && !f->is_active);
  if (fabs (moved - asked) <= TOLERANCE * asked + ROUNDING_S * f->cap || x->error)
    return;
  g_autofree char *first
      = f->n_uses ? ls_cluster_resource_name (x->cluster, f->uses[0].resource) : g_strdup ("no link");
  x->error = g_error_new (
      LS_ERROR, LS_ERROR_FAILED,
      "internal error: a flow over %s was asked to move %.17g bytes and moved %.17g until %" G_GINT64_FORMAT
      " ps",
      first, asked, moved, x->engine.now);
  x->engine.stop_at = x->engine.now;
}

/* --- what the programs ask for ------------------------------------------------ */

typedef struct {
  uint64_t n, bytes;
} Count;

typedef struct {
  Count of_list[N_CALL_LISTS];
} Asked;

static void
count (Count *c, uint64_t n, uint64_t bytes)
{
  c->n += n;
  c->bytes += bytes;
}

static void
ask (void *asked, int list, CallKey key)
{
  count (&((Asked *) asked)->of_list[list], 1, key.bytes);
}

/* Of this step of each role; [n_roles], newly allocated. */
static Asked *
ask_all (const Run *x, uint32_t step)
{
  const LsPlan *plan = x->plan;
  g_autofree Asked *of_segment = g_new0 (Asked, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < x->segments[s].n_ops; i++)
      op_calls (&x->segments[s].ops[i], ask, &of_segment[s]);

  Asked *of_role = g_new0 (Asked, plan->n_roles);
  for (uint32_t r = 0; r < plan->n_roles; r++)
    for (uint32_t i = step > 0 ? plan->programs[r].n_lead : 0; i < plan->programs[r].n_instances; i++)
      for (int k = 0; k < N_CALL_LISTS; k++) {
        const Count *c = &of_segment[plan->programs[r].instances[i].segment].of_list[k];
        count (&of_role[r].of_list[k], c->n, c->bytes);
      }
  return of_role;
}

/* --- what moved ------------------------------------------------------------------ */

static gboolean
check (const Call *calls, uint32_t step, Count asked, const char *what, uint32_t id, GError **error)
{
  Count moved = { 0 };
  for (const Call *c = calls; c; c = c->next)
    if (c->step[step & 1] == step + 1)
      count (&moved, c->n_over[step & 1], c->n_over[step & 1] * c->key.bytes);
  if (moved.n == asked.n && moved.bytes == asked.bytes)
    return TRUE;
  return ls_fail (error, LS_ERROR_FAILED,
                  "internal error: %s %u: %" G_GUINT64_FORMAT " bytes in %" G_GUINT64_FORMAT
                  " calls were asked for in step %u, %" G_GUINT64_FORMAT " bytes in %" G_GUINT64_FORMAT
                  " calls moved",
                  what, id, asked.bytes, asked.n, step, moved.bytes, moved.n);
}

/* All members make the same calls: those of the first count. */
static gboolean
check_comm (const Run *x, const Asked *of_role, uint32_t comm, uint32_t step, GError **error)
{
  const LsBinding b = ls_plan_binding (x->plan, ls_plan_member (x->plan, comm, 0));
  Count asked = { 0 };
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (b.comm[s] == comm)
      count (&asked, of_role[b.role].of_list[CALLS + s].n, of_role[b.role].of_list[CALLS + s].bytes);
  return check (x->comms[comm].calls, step, asked, "communicator", comm, error);
}

static gboolean
check_asked (const Run *x, const Asked *of_role, uint32_t rank, uint32_t step, GError **error)
{
  const Count *a = of_role[ls_plan_role (x->plan, rank)].of_list;
  for (LsCopyDirection d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    if (!check (x->copies[rank * LS_N_COPY_DIRECTIONS + d].calls, step, a[COPIES + (int) d],
                ls_copies[d].calls, rank, error))
      return FALSE;
  return check (x->channels[2 * rank].calls, step, a[SENDS + 1], "sends to the next of rank", rank, error)
      && check (x->channels[2 * rank + 1].calls, step, a[SENDS], "sends to the previous of rank", rank,
                error);
}

static bool
is_of (const Run *x, uint32_t rank, const XJob *job)
{
  return run_job_of_role (x, ls_plan_role (x->plan, rank)) == job;
}

gboolean
conserve_step (const Run *x, const XJob *job, uint32_t step, GError **error)
{
  g_autofree Asked *of_role = ask_all (x, step);
  for (uint32_t comm = 0; comm < x->plan->n_comms; comm++)
    if (is_of (x, ls_plan_member (x->plan, comm, 0), job) && !check_comm (x, of_role, comm, step, error))
      return FALSE;
  for (uint32_t rank = 0; rank < x->plan->n_ranks; rank++)
    if (is_of (x, rank, job) && !check_asked (x, of_role, rank, step, error))
      return FALSE;
  return TRUE;
}
