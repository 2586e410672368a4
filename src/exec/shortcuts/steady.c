/* exec/shortcuts/steady.c — the steady state from one step.
 *
 * Problem. What is reported is a step as it is once all steps are alike. The first starts cold, the second
 * tells that the third is like it: three are run to report one.
 *
 * The quiescent point. Where the host reads the norm of the gradients, nothing is left to do: at that
 * HOST_SYNC each op that the rank has issued is over, and all that it does from then on, it does from then
 * on. A rank at its quiescent point at t_r is the same rank as at t_r of any other step, but for the time. If
 *
 *     (1) every rank comes to its quiescent point with nothing in progress,
 *     (2) no communication of any rank, nor its step before, ends later than the first rank is there:
 *         max_r c_r <= min_r t_r,
 *
 * what follows depends on the differences t_r - t_0 alone; by (2) no data are on the way, no call or transfer
 * has one partner on this side and one on the other, and nobody waits for the end of the step before
 * (rank.c). If those of step s are those of step s - 1, to the picosecond, then step s + 1 is step s,
 * shifted, and so are all that follow.
 *
 * What it saves. A run that is to show its first step too ends with step s (mostly the second). One that is
 * not (LsRunOptions.steady) begins with the segment of the quiescent point on each rank, whose few ops are
 * the first step, if a collective of all ranks stands there before it: what was before is then forgotten, and
 * there is one steady state only. Where (1) fails, the differences go on to change, or the calls from there
 * on do not match, it is run again from the beginning.
 *
 * Worked example. Two ranks wait for the all-reduce of the norm, which ends at 70 us; their hosts go on at 80
 * us. The step from there takes 2 s, and they are at the quiescent point again at 2.00008 s, both: that was
 * the steady state.
 *
 * Deviations. A job whose host never waits for the device at the end of a step (FSDP's clipping stays on it)
 * has no quiescent point, nor has one where something is sent between stages behind it; both are run as ever.
 * Reference: a Poincare section. */
#include "exec/extras.h"

/* Of a step. */
typedef struct {
  uint32_t step; /* + 1; 0: none yet */
  uint32_t n_passed;
  LsTime first, last;
  LsTime *at; /* [n_ranks] */
} Passage;

/* Of a role. */
typedef struct {
  uint32_t instance;
  uint16_t op; /* of its segment */
} Place;

struct Steady {
  Place *places;      /* [n_roles]             */
  Passage passage[2]; /* by parity of the step     */
};

/* The last of the program; false: none, or something is sent from there on. */
static bool
find_quiescence (const Run *x, const LsProgram *p, Place *ret_place)
{
  for (uint32_t i = p->n_instances; i-- > p->n_lead;) {
    const XSegment *seg = &x->segments[p->instances[i].segment];
    bool is_found = false;
    for (uint32_t o = 0; o < seg->n_ops; o++) {
      if (ls_op_has (seg->x[o].kind, LS_HAS_TRANSFERS))
        return false;
      if (!ls_op_kinds[seg->x[o].kind].host_waits || seg->x[o].n_deps == 0)
        continue;
      is_found = true;
      *ret_place = (Place) { .instance = i, .op = (uint16_t) o };
    }
    if (is_found)
      return true;
  }
  return false;
}

static const Place *
place_of (const Steady *w, const Rank *r)
{
  return &w->places[r->binding->role];
}

/* In the segment of the quiescent point, all ranks wait for each other. */
static bool
has_barrier (const Run *x, const Steady *w, const Rank *r)
{
  const Place *place = place_of (w, r);
  const XSegment *seg = &x->segments[r->program->instances[place->instance].segment];
  for (uint32_t o = 0; o < place->op; o++)
    if (ls_op_has (seg->x[o].kind, LS_HAS_CALL)
        && ls_plan_communicator (x->plan, r->binding->comm[seg->x[o].slot]).n_ranks == x->plan->n_ranks)
      return true;
  return x->plan->n_ranks == 1;
}

static LsTime
last_end (const Rank *r, bool with_compute)
{
  LsTime last = with_compute ? r->streams[LS_STREAM_COMPUTE].tail : 0;
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    if (s != LS_STREAM_COMPUTE)
      last = MAX (last, r->streams[s].tail);
  for (uint32_t s = 0; s < LS_N_SLOTS; s++)
    last = MAX (last, r->call_end[s]);
  return last;
}

/* All is over that this rank has issued, and not just now: else it might be told as the cause of what
 * follows. */
static bool
is_quiescent (const Rank *r, const Frame *f, uint64_t frame)
{
  return frame == r->frames_first && f->n_left == f->seg->n_ops - f->n_issued && r->n_resident == 0
      && r->n_copies == 0 && !r->is_kernel_running && last_end (r, true) < r->host_time;
}

/* Whether all ranks came to it as one step before. */
static bool
is_as_before (const Run *x, const Steady *w, uint32_t step)
{
  const Passage *now = &w->passage[step & 1], *before = &w->passage[(step + 1) & 1];
  if (step == 0 || before->step != step || before->n_passed < x->plan->n_ranks || before->last > before->first
      || now->last > now->first)
    return false;
  for (uint32_t i = 1; i < x->plan->n_ranks; i++)
    if (now->at[i] - now->at[0] != before->at[i] - before->at[0])
      return false;
  return true;
}

/* The host goes on behind this op; where all that follow are known to be like it, the step is the last. Ranks
 * are at most one step apart (rank.c), so those of the step before the last are all there. */
static void
host_passed (Run *x, const Rank *r, const Frame *f, uint64_t frame, uint16_t op)
{
  Steady *w = x->extras->steady;
  if (f->instance_id != place_of (w, r)->instance || op != place_of (w, r)->op)
    return;
  if (!is_quiescent (r, f, frame)) {
    x->hooks.host_passed = NULL;
    x->engine.stop_at = x->begins_late ? x->engine.now : x->engine.stop_at;
    return;
  }
  Passage *p = &w->passage[f->step & 1];
  if (p->step != f->step + 1)
    *p = (Passage) { .step = f->step + 1, .first = LS_TIME_NEVER, .at = p->at };
  g_assert (p->n_passed < x->plan->n_ranks && r->host_time >= x->engine.now);
  p->at[r->id] = r->host_time;
  p->first = MIN (p->first, r->host_time);
  p->last = MAX (p->last, last_end (r, false)); /* c_r */
  if (f->step > 0)
    p->last = MAX (p->last, r->step_end[(f->step - 1) & 1]);
  if (++p->n_passed < x->plan->n_ranks || !is_as_before (x, w, f->step))
    return;
  x->n_steps = f->step + 1;
  x->is_periodic = true;
}

static void
begin_at_quiescence (Run *x)
{
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    if (!has_barrier (x, x->extras->steady, &x->ranks[i]))
      return;
  x->begins_late = true;
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    x->ranks[i].next_instance = place_of (x->extras->steady, &x->ranks[i])->instance;
}

static bool
is_possible (const Run *x)
{
  return !x->extras->share && x->extras->options->coarsen != LS_SHORTCUT_OFF
      && x->options.network != LS_NETWORK_STEP && x->n_steps > 2;
}

void
steady_init (Run *x)
{
  if (!is_possible (x))
    return;
  Steady *w = ls_arena_new_array (x->arena, Steady, 1);
  w->places = ls_arena_new_array (x->arena, Place, x->plan->n_roles);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    uint32_t role = ls_plan_role (x->plan, i);
    if (!find_quiescence (x, &x->plan->programs[role], &w->places[role]))
      return;
  }
  for (int parity = 0; parity < 2; parity++)
    w->passage[parity].at = ls_arena_new_array (x->arena, LsTime, x->plan->n_ranks);
  x->extras->steady = w;
  x->hooks.host_passed = host_passed;
  if (x->extras->options->steady)
    begin_at_quiescence (x);
}
