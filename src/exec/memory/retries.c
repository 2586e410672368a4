#include "exec/memory/retries.h"

#include "base/digest.h"
#include "base/order.h"
#include "exec/memory/allocator.h"
#include "exec/memory/memory_times.h"

#define N_LAPS    MEMORY_MAX_LAPS
#define FIRST_LAP 1 /* that may count */
#define LAST_LAP  (N_LAPS - 2)
#define NONE      UINT32_MAX

/* A segment of GPU memory taken or given back: 50 us and 1 us a MiB. cudaMalloc took 59 us, the mean of
 * 54,600 calls of 5.5 MiB, and cudaFree 46 us, the mean of 7,460 (Quadro RTX 5000, JuliaGPU/CuArrays.jl pull
 * 414, 2019); cudaMalloc of 381 MiB 432 us (kokkos/kokkos issue 317, 2016): 1 us a MiB more. 23.74 GiB were
 * given back in 23.4 ms (H100, vllm-project/vllm issue 17117, 2025): 1 us a MiB at most. Nobody has published
 * more of the driver's cost for segments of a GiB while the memory is full; 1 GiB taken and given back
 * through the driver's own pool took 31 ms once (vortex-data/vortex pull 7831, 2026). */
#define DRIVER_CALL (50 * LS_US)
#define DRIVER_MIB  LS_US
#define MIB         (UINT64_C (1) << 20)

LsTime
ls_driver_time (const LsDriverCall *call)
{
  return (LsTime) (call->n_freed + call->n_taken) * DRIVER_CALL
      + (LsTime) ((call->freed + call->taken) / MIB) * DRIVER_MIB;
}

typedef struct {
  const GArray *changes; /* MemoryChange */
  LsAllocator *allocator;
  uint32_t *handles; /* of its blocks, by lap and change; first those of the lap before */
  GArray *pending;   /* gsize: places in handles of blocks that were freed and may still be in use */
  LsRoleRetries laps[N_LAPS];
} Replay;

/* --- one event ------------------------------------------------------------------- */

static void
drop (Replay *r, gsize place)
{
  if (r->handles[place] != NONE)
    ls_allocator_drop (r->allocator, r->handles[place]);
  r->handles[place] = NONE;
}

/* The host waits for the device: nothing is pending any longer. */
static void
retry (Replay *r)
{
  for (guint i = 0; i < r->pending->len; i++)
    drop (r, g_array_index (r->pending, gsize, i));
  g_array_set_size (r->pending, 0);
  ls_allocator_retry (r->allocator);
}

static void
note_call (Replay *r, const MemoryChange *c, uint32_t lap, bool waits, const LsAllocatorStats *before)
{
  LsAllocatorStats after = ls_allocator_stats (r->allocator);
  LsDriverCall call = {
    .instance = c->instance,
    .op = c->op,
    .waits = waits,
    .n_freed = after.n_freed - before->n_freed,
    .freed = after.freed - before->freed,
    .n_taken = after.n_taken - before->n_taken,
    .taken = after.taken - before->taken,
  };
  LsRoleRetries *to = &r->laps[lap];
  to->n_retries += waits;
  to->freed += call.freed;
  to->taken += call.taken;
  if (waits || call.n_taken > 0)
    g_array_append_val (to->calls, call);
}

static void
take (Replay *r, const MemoryChange *c, const MemoryEvent *e)
{
  LsAllocatorStats before = ls_allocator_stats (r->allocator);
  bool waits = !ls_allocator_has_room (r->allocator, c->buffer->bytes, c->stream);
  if (waits)
    retry (r);
  r->handles[memory_laps_place (c, e->lap, r->changes->len)]
      = ls_allocator_take (r->allocator, c->buffer->bytes, c->stream);
  note_call (r, c, e->lap, waits, &before);
}

static void
happen (Replay *r, const MemoryEvent *e)
{
  const MemoryChange *c = &g_array_index (r->changes, MemoryChange, e->index);
  if (c->alloc == NONE)
    return;
  if (!c->buffer->is_free) {
    take (r, c, e);
    return;
  }
  gsize place = memory_laps_place (c, e->lap, r->changes->len);
  if (e->is_issue)
    g_array_append_val (r->pending, place);
  else
    drop (r, place);
}

/* --- one rank -------------------------------------------------------------------- */

static int
compare_calls (gconstpointer x, gconstpointer y)
{
  const LsDriverCall *a = x, *b = y;
  LS_SMALLER_FIRST (a->instance, b->instance);
  return (int) a->op - (int) b->op;
}

/* An op that allocates several buffers has one call. */
static void
join_calls (GArray *calls)
{
  g_array_sort (calls, compare_calls);
  guint n = 0;
  for (guint i = 0; i < calls->len; i++) {
    const LsDriverCall c = g_array_index (calls, LsDriverCall, i);
    LsDriverCall *last = n > 0 ? &g_array_index (calls, LsDriverCall, n - 1) : NULL;
    if (!last || compare_calls (last, &c) != 0) {
      g_array_index (calls, LsDriverCall, n++) = c;
      continue;
    }
    last->waits |= c.waits;
    last->n_freed += c.n_freed;
    last->freed += c.freed;
    last->n_taken += c.n_taken;
    last->taken += c.taken;
  }
  g_array_set_size (calls, n);
}

/* The next event, if the lap is not over. */
static bool
next_until (MemoryLaps *laps, uint32_t lap, MemoryEvent *ret)
{
  return laps->next[lap] < laps->events->len && memory_laps_next (laps, ret);
}

/* To the end of a lap. */
static void
replay_lap (Replay *r, MemoryLaps *laps, uint32_t lap)
{
  for (MemoryEvent e; next_until (laps, lap, &e);)
    happen (r, &e);
}

/* Until a lap is over in which the driver was not called, or the last one. Returns that lap. */
static uint32_t
replay_laps (Replay *r, MemoryLaps *laps)
{
  uint32_t lap = FIRST_LAP;
  replay_lap (r, laps, lap);
  while (r->laps[lap].calls->len > 0 && lap < LAST_LAP)
    replay_lap (r, laps, ++lap);
  return lap;
}

/* Of the lap that counts; the others are freed. */
static LsRoleRetries
result_of (Replay *r, uint32_t lap, uint64_t limit)
{
  LsRoleRetries to = r->laps[lap];
  for (uint32_t i = 0; i < N_LAPS; i++)
    if (i != lap)
      g_array_unref (r->laps[i].calls);
  to.limit_bytes = limit;
  to.reserved_bytes = ls_allocator_stats (r->allocator).peak_reserved;
  to.is_out_of_memory = to.reserved_bytes > limit;
  join_calls (to.calls);
  return to;
}

static LsRoleRetries
replay (const LsMemoryInput *in, uint32_t role, const uint64_t bytes[LS_N_MEM], const GArray *changes,
        MemoryLaps *laps)
{
  uint64_t capacity = ls_memory_least_capacity (in->plan, in->cluster, role),
           limit = MAX (1, capacity - MIN (capacity, bytes[LS_MEM_COMM_BUFFERS]));
  Replay r = { .changes = changes, .allocator = ls_allocator_new (limit) };
  for (uint32_t i = 0; i < N_LAPS; i++)
    r.laps[i].calls = g_array_new (FALSE, FALSE, sizeof (LsDriverCall));
  r.handles = memory_laps_handles (N_LAPS, changes->len);
  r.pending = g_array_new (FALSE, FALSE, sizeof (gsize));
  memory_take_first (changes, bytes, NULL, r.allocator, r.handles);
  LsRoleRetries to = result_of (&r, replay_laps (&r, laps), limit);
  g_array_unref (r.pending);
  g_free (r.handles);
  ls_allocator_free (r.allocator);
  return to;
}

/* What a replay follows from, whatever times its rank has: what is there throughout, and the order to the end
 * of the first lap that may count. */
static LsSig
sig_of (uint32_t role, const uint64_t bytes[LS_N_MEM], MemoryLaps laps)
{
  LsSig sig = { role, 0 };
  for (uint32_t i = 0; i < LS_N_MEM; i++)
    ls_sig_add (&sig, bytes[i]);
  for (MemoryEvent e; next_until (&laps, FIRST_LAP, &e);)
    ls_sig_add (&sig, (uint64_t) e.index << 32 | e.lap << 1 | e.is_issue);
  return sig;
}

/* --- roles ------------------------------------------------------------------------ */

static void
keep_worse (LsRoleRetries *kept, LsRoleRetries other)
{
  bool is_as_full = kept->n_retries == other.n_retries && kept->reserved_bytes >= other.reserved_bytes;
  if (kept->calls && (kept->n_retries > other.n_retries || is_as_full)) {
    g_array_unref (other.calls);
    return;
  }
  g_clear_pointer (&kept->calls, g_array_unref);
  *kept = other;
}

void
retries_add_rank (LsRetries *r, const LsMemoryInput *in, uint32_t rank, const GArray *changes,
                  const GArray *events, LsTime period)
{
  MemoryLaps laps = memory_laps_of (events, N_LAPS, period);
  uint32_t role = ls_plan_role (in->plan, rank);
  uint64_t bytes[LS_N_MEM];
  memory_throughout (in, role, rank, bytes);
  const LsSig sig = sig_of (role, bytes, laps);
  if (g_hash_table_add (r->replayed, g_memdup2 (&sig, sizeof sig))) /* of equals the first counts */
    keep_worse (&r->roles[role], replay (in, role, bytes, changes, &laps));
}

void
retries_add_role (LsRetries *r, const LsMemoryInput *in, uint32_t role, const GArray *changes)
{
  const LsTimeline *t = in->timeline;
  for (uint32_t row = 0; row < (t ? t->n_rows : in->plan->n_ranks); row++) {
    uint32_t rank = t ? ls_timeline_rank (t, row) : row;
    if ((t && t->multiplicity[row] == 0) || ls_plan_role (in->plan, rank) != role)
      continue;
    g_autoptr (GArray) events = memory_events (changes);
    retries_add_rank (r, in, rank, changes, events, changes->len);
    return;
  }
}

LsRetries *
ls_retries_new (const LsPlan *plan)
{
  LsRetries *r = g_new0 (LsRetries, 1);
  r->n_roles = plan->n_roles;
  r->roles = g_new0 (LsRoleRetries, MAX (1, r->n_roles));
  r->replayed = g_hash_table_new_full (ls_sig_hash, ls_sig_is_same, g_free, NULL);
  return r;
}

void
ls_retries_free (LsRetries *r)
{
  if (!r)
    return;
  for (uint32_t i = 0; i < r->n_roles; i++)
    g_clear_pointer (&r->roles[i].calls, g_array_unref);
  g_free (r->roles);
  g_hash_table_unref (r->replayed);
  g_free (r);
}

bool
ls_plan_changes_streams (const LsPlan *plan)
{
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    g_autoptr (GArray) changes = memory_changes_in_order (plan, &plan->programs[role]);
    if (memory_changes_streams (changes))
      return true;
  }
  return false;
}
