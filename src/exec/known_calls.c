/* exec/known_calls.c — calls as they were planned, kept from run to run. */
#include "base/handover.h"
#include "exec/extras.h"

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
