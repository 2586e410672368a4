/* Pins what PyTorch's allocator is said to do over a step: when a block that another stream still uses is
 * requested to be freed and when it is free, what is there when the window begins, that what is alive at most
 * is the peak of memory.h, that a history that was cut has that peak, and where memory ends. */
#include "ls_test.h"

#include "hand_trace.h"

#include "exec/memory/history.h"

#define MIB (UINT64_C (1) << 20)

static Hand *
with_memory (uint64_t bytes)
{
  Hand *h = hand_new (1);
  h->cluster->spec.gpu.hbm_bytes = bytes;
  h->cluster->spec.gpu.reserved_bytes = 0;
  h->plan->bindings[0].peer[0] = h->plan->bindings[0].peer[1] = UINT32_MAX;
  return h;
}

static void
with_buffer (Hand *h, uint16_t op, uint16_t id, uint64_t bytes, bool is_free)
{
  LsOp *o = &g_array_index (h->ops[0], LsOp, op);
  LsBufferEvent *b = ls_arena_new_array (h->plan->arena, LsBufferEvent, 1);
  *b = (LsBufferEvent) { .bytes = bytes,
                         .id = id,
                         .category = LS_MEM_ACTIVATIONS,
                         .is_free = is_free,
                         .when = is_free ? LS_AT_END : LS_AT_ISSUE };
  o->buffers = b;
  o->n_buffers = 1;
}

static uint16_t
copy (Hand *h)
{
  LsOp op = ls_op_blank (LS_OP_COPY, LS_STREAM_COPY, LS_TAG_SYNC, "copy");
  op.recorded = 10 * LS_MS;
  return hand_op (h, 0, op, NULL, 0);
}

/* A kernel allocates 30 MiB, which a copy of 10 ms frees on another stream; another kernel takes 20 MiB,
 * which the one behind it frees. */
static Hand *
freed_by_a_copy (uint64_t memory)
{
  Hand *h = with_memory (memory);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, false);
  with_buffer (h, copy (h), 0, 30 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 20 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 20 * MIB, true);
  return h;
}

static LsMemoryInput
input_of (const Hand *h, const LsTimeline *t)
{
  return (LsMemoryInput) { .plan = h->plan,
                           .timeline = t,
                           .cluster = h->cluster,
                           .nccl = &h->nccl,
                           .options.allocator = LS_MEMORY_CACHING };
}

/* The most that is alive, frees being of what was allocated. */
static uint64_t
most_alive (const LsMemoryHistory *h)
{
  g_autoptr (GHashTable) blocks = g_hash_table_new (NULL, NULL);
  uint64_t alive = 0, most = 0;
  for (guint i = 0; i < h->events->len; i++) {
    const LsMemoryEvent *e = &g_array_index (h->events, LsMemoryEvent, i);
    gpointer at = GSIZE_TO_POINTER (e->address);
    if (e->action == LS_ACTION_ALLOC) {
      LS_CHECK (g_hash_table_add (blocks, at));
      alive += e->size;
    } else if (e->action == LS_ACTION_FREE_COMPLETED) {
      LS_CHECK (g_hash_table_remove (blocks, at));
      alive -= e->size;
    }
    most = MAX (most, alive);
  }
  return most;
}

static guint
count (const LsMemoryHistory *h, LsMemoryAction action)
{
  guint n = 0;
  for (guint i = 0; i < h->events->len; i++)
    n += g_array_index (h->events, LsMemoryEvent, i).action == action;
  return n;
}

static const LsMemoryEvent *
find (const LsMemoryHistory *h, LsMemoryAction action, uint64_t size)
{
  for (guint i = 0; i < h->events->len; i++) {
    const LsMemoryEvent *e = &g_array_index (h->events, LsMemoryEvent, i);
    if (e->action == action && e->size == size)
      return e;
  }
  return NULL;
}

static void
a_free_waits_for_the_other_stream (void)
{
  Hand *h = freed_by_a_copy (1024 * MIB);
  hand_freeze (h);
  g_autoptr (LsTimeline) t = hand_run (h);
  const LsMemoryInput in = input_of (h, t);
  g_autoptr (LsMemoryHistory) history = ls_memory_history_new (&in, 0, 1000);
  g_autoptr (LsMemory) memory = ls_memory_new (&in);
  const LsMemoryEvent *requested = find (history, LS_ACTION_FREE_REQUESTED, 30 * MIB),
                      *completed = find (history, LS_ACTION_FREE_COMPLETED, 30 * MIB);
  LS_CHECK (history->is_timed && history->n_left_out == 0);
  if (!LS_CHECK (requested && completed))
    return;
  LS_CHECK (completed->at >= requested->at + 5 * LS_MS || completed->at < requested->at);
  LS_CHECK_INT (most_alive (history), ==, memory->classes[0].peak_bytes);
  hand_free (h);
}

/* In the order of the program each free is at once; the end has what no op frees. */
static void
without_times_the_order_counts (void)
{
  Hand *h = freed_by_a_copy (1024 * MIB);
  hand_freeze (h);
  h->plan->programs[0].static_bytes[LS_MEM_PARAMETERS] = 3 * MIB;
  const LsMemoryInput in = input_of (h, NULL);
  g_autoptr (LsMemoryHistory) history = ls_memory_history_new (&in, 0, 1000);
  LS_CHECK (!history->is_timed);
  LS_CHECK_INT (most_alive (history), ==, 33 * MIB);
  LS_CHECK_INT (count (history, LS_ACTION_ALLOC), ==, 3);
  LS_CHECK_INT (count (history, LS_ACTION_FREE_COMPLETED), ==, 2);
  const LsMemoryEvent *last = &g_array_index (history->events, LsMemoryEvent, history->events->len - 1);
  LS_CHECK (last->action == LS_ACTION_SNAPSHOT && last->size == 3 * MIB);
  const LsHistoryBlock *first = &g_array_index (history->blocks, LsHistoryBlock, 0);
  LS_CHECK (first->state == LS_BLOCK_IN_USE && first->use.category == LS_MEM_PARAMETERS && !first->use.op);
  hand_free (h);
}

/* 60 buffers of growing, then of falling size: what is left of the history has the largest. */
static void
a_history_that_is_cut_has_the_peak (void)
{
  Hand *h = with_memory (1024 * MIB);
  for (uint16_t i = 0; i < 60; i++) {
    uint64_t bytes = (i < 40 ? i + 1u : 80u - i) * MIB;
    with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), i, bytes, false);
    with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), i, bytes, true);
  }
  hand_freeze (h);
  const LsMemoryInput in = input_of (h, NULL);
  g_autoptr (LsMemoryHistory) whole = ls_memory_history_new (&in, 0, 1000);
  g_autoptr (LsMemoryHistory) part = ls_memory_history_new (&in, 0, 10);
  LS_CHECK_INT (whole->n_changes, ==, 120);
  LS_CHECK_INT (part->n_changes, ==, 120);
  LS_CHECK_INT (part->n_left_out, ==, 110);
  LS_CHECK_INT (most_alive (whole), ==, 40 * MIB);
  LS_CHECK_INT (most_alive (part), ==, 40 * MIB);
  LS_CHECK (part->events->len < whole->events->len);
  hand_free (h);
}

/* 40 MiB do not hold a segment of 30 beside one of 20 that is in use. */
static void
where_memory_ends_is_said_once (void)
{
  Hand *h = with_memory (40 * MIB);
  for (uint16_t i = 0; i < 4; i++)
    with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), i, 15 * MIB, false);
  for (uint16_t i = 0; i < 4; i++)
    with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), i, 15 * MIB, true);
  hand_freeze (h);
  const LsMemoryInput in = input_of (h, NULL);
  g_autoptr (LsMemoryHistory) history = ls_memory_history_new (&in, 0, 1000);
  const LsMemoryEvent *oom = find (history, LS_ACTION_OOM, 15 * MIB);
  LS_CHECK_INT (count (history, LS_ACTION_OOM), ==, 1);
  LS_CHECK (oom && oom->device_free == 8 * MIB);
  LS_CHECK_INT (most_alive (history), ==, 60 * MIB);
  hand_free (h);
}

LS_TEST_MAIN ("history", LS_TEST (a_free_waits_for_the_other_stream),
              LS_TEST (without_times_the_order_counts), LS_TEST (a_history_that_is_cut_has_the_peak),
              LS_TEST (where_memory_ends_is_said_once))
