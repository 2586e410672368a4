#include "exec/extras.h"

#include <string.h>

#include <lockstep/error.h>

#include "base/diag.h"

/* --- ahead of the clock --- */

/* A rank goes ahead of the clock.
 *
 * As long as no communication is resident on a rank and no kernel is held as an activity, nothing outside the
 * rank can touch it: its kernels then take the time that they take alone, and the rank is advanced in its own
 * local time, without events, to its next communication. That is exact, and makes the cost of a run
 * proportional to communications rather than to kernels. LsRunOptions.no_run_ahead switches it off; the
 * results are the same. */

/* Each step but the first may be the last until it is over on all ranks. */
static bool
is_behind_last_step (const Run *x, const Rank *r)
{
  uint32_t n = r->steps_done;
  return n >= x->n_steps || (n >= 2 && r->job->step_n_done[n - 1] < r->job->n_ranks) || x->last_step != NO_ID;
}

/* Nothing outside can touch it (rank.h): not while its host waits for other ranks either, as they decide when
 * it issues more, nor after what may be the last step. */
static bool
may_run_ahead (const Run *x, const Rank *r)
{
  return !r->is_gated && r->n_resident == 0 && r->n_copies == 0 && !r->is_kernel_running
      && !is_behind_last_step (x, r);
}

/* ---- collectives message by message (--network step) ---- */

/* The collectives of a run message by message (--network step). One message is a flow:
 * sends, receives and copies have no script, and go by phases. */

static double *
bytes_of_step (Run *x, uint32_t step)
{
  SentCalls *s = &x->extras->sent;
  uint32_t parity = step & 1, n = ls_cluster_n_resources (x->cluster);
  if (!s->moved[parity])
    s->moved[parity] = g_new (double, n);
  if (s->of_step[parity] != step + 1)
    memset (s->moved[parity], 0, n * sizeof (double));
  s->of_step[parity] = step + 1;
  return s->moved[parity];
}

static void
add_bytes (const Run *x, uint32_t step, double *bytes)
{
  const SentCalls *s = &x->extras->sent;
  uint32_t parity = step & 1, n = ls_cluster_n_resources (x->cluster);
  for (uint32_t i = 0; i < n && s->of_step[parity] == step + 1; i++)
    bytes[i] += s->moved[parity][i];
}

static void
send (Run *x, Motion *m)
{
  messages_begin (m->call->messages, m, bytes_of_step (x, m->step));
}

static void
messages_over (void *context, void *motion, LsTime at)
{
  motion_moves (context, motion, -1);
  motion_over (context, motion, at);
}

static void
flow_over (void *context, const LsFlow *f, double asked)
{
  conserve_flow (context, f, asked);
}

static gboolean
plan_messages (Run *x, Call *c, const uint32_t *ranks, uint32_t n, LsCollMemo *memo, GError **error)
{
  SentCalls *s = &x->extras->sent;
  if (c->key.kind == LS_COLL_SEND_RECV || n == 1)
    return TRUE;
  LsCollRequest request = run_request (x, c->key, ranks, n, memo, x->arena);
  request.algorithm = c->plan->algorithm;
  const LsScript *script = ls_coll_script (x->cluster, x->nccl, &request, x->arena);
  s->all_bytes += messages_bytes (script);
  if (s->all_bytes > x->options.max_memory_bytes) {
    g_autofree char *need = ls_format_bytes (s->all_bytes),
                    *may = ls_format_bytes (x->options.max_memory_bytes);
    return ls_fail (
        error, LS_ERROR_LIMIT,
        "the messages of %s over %u ranks need %s of memory with what came before; --max-memory is %s",
        ls_coll_kind_name ((LsCollKind) c->key.kind), script->n, need, may);
  }
  c->messages = messages_new (&s->net, script, messages_over);
  c->base = script->base;
  g_ptr_array_add (s->all, c->messages);
  return TRUE;
}

static void
sent_init (Run *x)
{
  SentCalls *s = &x->extras->sent;
  if (x->options.network != LS_NETWORK_STEP)
    return;
  s->net = (MessageNet) { .engine = &x->engine, .flows = x->net, .context = x, .flow_over = flow_over };
  s->all = g_ptr_array_new_with_free_func ((GDestroyNotify) messages_free);
  if (x->options.solver != LS_SOLVER_REFERENCE)
    s->net.leases
        = leases_new (x->net, ls_cluster_n_resources (x->cluster), x->whole->capacity, messages_revoked);
  x->hooks.plan_messages = plan_messages;
  x->hooks.send = send;
  x->hooks.add_bytes = add_bytes;
}

void
extras_clear (Run *x)
{
  SentCalls *s = &x->extras->sent;
  g_clear_pointer (&s->all, g_ptr_array_unref);
  leases_free (s->net.leases);
  g_free (s->moved[0]);
  g_free (s->moved[1]);
}

/* --- what hangs on the hooks --- */

static LsReplayOptions
plain_options (const LsRunOptions *o)
{
  return (LsReplayOptions) {
    .n_steps = o->n_steps,
    .network = o->network,
    .queue = o->queue,
    .solver = o->solver,
    .no_spans = o->no_spans,
    .checks = o->checks,
    .max_spans = o->max_spans,
    .max_memory_bytes = o->max_memory_bytes,
    .slow = o->slow,
  };
}

static bool
stand_for (Run *x)
{
  traffic_lower (x);
  return fold_new (x);
}

static void
begun (Run *x)
{
  sent_init (x);
  coarsen_init (x);
  steady_init (x);
  traffic_init (x);
}

void
extras_hang (Run *x, Extras *extras, const LsRunOptions *options)
{
  x->extras = extras;
  x->extras->options = options;
  x->options = plain_options (options);
  x->hooks.stand_for = stand_for;
  x->hooks.begun = begun;
  x->hooks.plan_call = known_call_plan;
  x->hooks.may_run_ahead = options->no_run_ahead ? NULL : may_run_ahead;
}
