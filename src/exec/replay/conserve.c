/* exec/replay/conserve.c — what was asked to move has moved: no byte more, none less.
 *
 * Of each flow, the integral of its rate over time is its demand; then every link that
 * it crosses has carried it too, as coefficients are constant. Of a step, what moved on
 * each communicator, channel and copy engine is what the programs ask for: the calls
 * and bytes of the plan are counted apart from the replay, and compared exactly (sums
 * are modulo 2^64). Both hold in every run, whatever disturbed it. */
#include <lockstep/error.h>

#include "exec/replay/motion.h"
#include "exec/replay/state.h"

#include <math.h>

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
  g_set_error (error, LS_ERROR, LS_ERROR_FAILED,
               "internal error: %s %u: %" G_GUINT64_FORMAT " bytes in %" G_GUINT64_FORMAT
               " calls were asked for in step %u, %" G_GUINT64_FORMAT " bytes in %" G_GUINT64_FORMAT
               " calls moved",
               what, id, asked.bytes, asked.n, step, moved.bytes, moved.n);
  return FALSE;
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
check_rank (const Run *x, const Asked *of_role, uint32_t rank, uint32_t step, GError **error)
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
    if (is_of (x, rank, job) && !check_rank (x, of_role, rank, step, error))
      return FALSE;
  return TRUE;
}
