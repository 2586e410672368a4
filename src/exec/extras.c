#include "exec/extras.h"

#include <string.h>

#include <lockstep/error.h>

#include "base/diag.h"
#include "base/handover.h"

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

/* ---- calls as they were planned, kept from run to run ---- */

/* Of plans that are kept. */
#define MOST_KEPT_BYTES ((size_t) 64 << 20)

LsKnownCalls *
ls_known_calls_new (void)
{
  LsArena *arena = ls_arena_new ();
  LsKnownCalls *k = ls_arena_new_array (arena, LsKnownCalls, 1);
  k->arena = arena;
  g_mutex_init (&k->lock);
  k->plans = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  return k;
}

void
ls_known_calls_free (LsKnownCalls *calls)
{
  if (!calls)
    return;
  g_hash_table_unref (calls->plans);
  g_mutex_clear (&calls->lock);
  ls_arena_free (calls->arena);
}

static void
known_calls_lock (LsKnownCalls *calls)
{
  g_mutex_lock (&calls->lock);
  LS_TAKE_OVER (&calls->lock);
}

static void
known_calls_unlock (LsKnownCalls *calls)
{
  LS_HAND_OVER (&calls->lock);
  g_mutex_unlock (&calls->lock);
}

/* GPUs as runs of the same step, each its first, step and number. */
GBytes *
known_calls_key (const LsKnownCalls *calls, const LsCluster *cluster, const LsCollRequest *request)
{
  bool is_spread = request->spread && request->kind == LS_COLL_ALL_TO_ALL;
  if (!calls || request->weights || is_spread)
    return NULL;
  const uint64_t head[] = { (uint64_t) (uintptr_t) cluster,
                            (uint64_t) (uintptr_t) request->algorithm,
                            request->bytes,
                            request->kind,
                            request->protocol,
                            request->root,
                            request->max_ctas,
                            request->is_light,
                            request->places != NULL };
  g_autoptr (GArray) bytes = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_vals (bytes, head, 2 * G_N_ELEMENTS (head));
  for (uint32_t i = 0, n; i < request->n; i += n) {
    uint32_t step = i + 1 < request->n ? request->gpus[i + 1] - request->gpus[i] : 0;
    for (n = 1; i + n < request->n && request->gpus[i + n] - request->gpus[i + n - 1] == step; n++)
      ;
    const uint32_t run[] = { request->gpus[i], step, n };
    g_array_append_vals (bytes, run, G_N_ELEMENTS (run));
  }
  return g_bytes_new (bytes->data, bytes->len * sizeof (uint32_t));
}

/* NULL: it is not known. */
static const LsCollPlan *
find_plan (LsKnownCalls *calls, GBytes *key)
{
  if (!key)
    return NULL;
  known_calls_lock (calls);
  const LsCollPlan *known = g_hash_table_lookup (calls->plans, key);
  known_calls_unlock (calls);
  return known;
}

static void
keep_plan (LsKnownCalls *calls, GBytes *key, const LsCollPlan *plan)
{
  if (!key)
    return;
  known_calls_lock (calls);
  if (ls_arena_bytes (calls->arena) < MOST_KEPT_BYTES && !g_hash_table_contains (calls->plans, key))
    g_hash_table_insert (calls->plans, g_bytes_ref (key),
                         (gpointer) call_keep_plan (calls->arena, plan, true));
  known_calls_unlock (calls);
}

const LsCollPlan *
known_call_plan (const Run *x, const LsCollRequest *request, LsArena *arena, GError **error)
{
  LsKnownCalls *calls = x->extras->options->calls;
  g_autoptr (GBytes) key = known_calls_key (calls, x->cluster, request);
  const LsCollPlan *plan = find_plan (calls, key);
  if (plan)
    return plan;
  plan = call_plan (x, request, arena, error);
  if (plan)
    keep_plan (calls, key, plan);
  return plan;
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
