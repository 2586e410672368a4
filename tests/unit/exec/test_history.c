/* PyTorch's allocator. */
#include "ls_test.h"

#include "exec/memory/history.h"
#include "exec/memory/memory_times.h"
#include "exec/memory/retries.h"
#include "plan/plan.h"

#include "hand_trace.h"

/* --- over a step ------------------------------------------------------------------------------------ */

/* Pins what PyTorch's allocator is said to do over a step: when a block that another stream still uses is
 * requested to be freed and when it is free, what is there when the window begins, that what is alive at most
 * is the peak of memory.h, that a history that was cut has that peak, and where memory ends. */

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

/* --- at the limit ----------------------------------------------------------------------------------- */

/* Pins what PyTorch's allocator does at the limit in the steady state: how often it waits, what it gives back
 * and takes, that a block which another stream still uses is not free before that; and what a plan takes
 * longer when the host is held up. */

/* Of a step: a buffer of 30 MiB on one stream, then one of 20 MiB on another. */
static Hand *
one_on_each_stream (uint64_t memory)
{
  Hand *h = with_memory (memory);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, true);
  with_buffer (h, copy (h), 1, 20 * MIB, false);
  with_buffer (h, copy (h), 1, 20 * MIB, true);
  return h;
}

static LsRetries *
retries_of (const Hand *h, const LsTimeline *t)
{
  LsRetries *r = ls_retries_new (h->plan);
  const LsMemoryInput in
      = { .plan = h->plan, .timeline = t, .cluster = h->cluster, .nccl = &h->nccl, .retries = r };
  ls_memory_free (ls_memory_new (&in));
  return r;
}

/* The example of the header. */
static void
segments_of_two_streams_take_turns (void)
{
  Hand *h = one_on_each_stream (40 * MIB);
  hand_freeze (h);
  g_autoptr (LsRetries) x = retries_of (h, NULL);
  const LsRoleRetries *r = &x->roles[0];
  LS_CHECK_INT (r->n_retries, ==, 2);
  LS_CHECK_INT (r->freed, ==, 50 * MIB);
  LS_CHECK_INT (r->taken, ==, 50 * MIB);
  LS_CHECK_INT (r->reserved_bytes, ==, 30 * MIB);
  LS_CHECK_INT (r->limit_bytes, ==, 40 * MIB);
  LS_CHECK (!r->is_out_of_memory);
  LS_CHECK_INT (r->calls->len, ==, 2);
  const LsDriverCall *second = &g_array_index (r->calls, LsDriverCall, 1);
  LS_CHECK (second->op == 2 && second->waits && second->n_freed == 1 && second->freed == 30 * MIB
            && second->n_taken == 1 && second->taken == 20 * MIB);
  hand_free (h);
}

/* Of a step: 30 MiB, 30 more, the first freed, 40; 80 are there. The first two steps have a retry each, until
 * two segments of 40 are there in the place of smaller ones: the second step is not the steady state. */
static void
what_settles_is_not_charged (void)
{
  Hand *h = with_memory (80 * MIB);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 30 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 2, 40 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 2, 40 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 30 * MIB, true);
  hand_freeze (h);
  g_autoptr (LsRetries) x = retries_of (h, NULL);
  LS_CHECK_INT (x->roles[0].n_retries, ==, 0);
  LS_CHECK_INT (x->roles[0].calls->len, ==, 0);
  LS_CHECK_INT (x->roles[0].reserved_bytes, ==, 80 * MIB);
  hand_free (h);
}

/* With room for both nothing is given back, and what the first step took is there in the second. */
static void
with_room_the_driver_is_not_called (void)
{
  Hand *h = one_on_each_stream (50 * MIB);
  hand_freeze (h);
  g_autoptr (LsRetries) x = retries_of (h, NULL);
  LS_CHECK_INT (x->roles[0].n_retries, ==, 0);
  LS_CHECK_INT (x->roles[0].calls->len, ==, 0);
  LS_CHECK_INT (x->roles[0].reserved_bytes, ==, 50 * MIB);
  hand_free (h);
}

/* 100 MiB that the step before has left are there as the first step begins: the 90 MiB that come after they
 * are freed lie in their segment, and so do the next 100. Without them there would be one of 90 more. */
static void
what_the_step_before_left_has_a_segment (void)
{
  Hand *h = with_memory (1000 * MIB);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 60 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 100 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 2, 90 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 60 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 2, 90 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 100 * MIB, false);
  hand_freeze (h);
  g_autoptr (LsRetries) x = retries_of (h, NULL);
  LS_CHECK_INT (x->roles[0].reserved_bytes, ==, 160 * MIB);
  hand_free (h);
}

static void
add_by_clock (const Hand *h, LsRetries *r, GArray *changes)
{
  const LsMemoryInput in = { .plan = h->plan, .cluster = h->cluster, .nccl = &h->nccl };
  g_autoptr (GArray) events = memory_events (changes);
  retries_add_rank (r, &in, 0, changes, events, 100);
}

/* Two buffers one behind the other, on ranks whose clocks differ, and both at once. */
static void
what_happens_in_one_order_is_replayed_once (void)
{
  Hand *h = with_memory (1000 * MIB);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 20 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 20 * MIB, true);
  hand_freeze (h);
  g_autoptr (LsRetries) r = ls_retries_new (h->plan);
  g_autoptr (GArray) changes = memory_changes_in_order (h->plan, &h->plan->programs[0]);
  const LsTime clocks[][4] = { { 0, 1, 2, 3 }, { 0, 10, 20, 30 }, { 0, 20, 10, 30 } };
  const uint64_t n_replays[] = { 1, 1, 2 }, reserved[] = { 30 * MIB, 30 * MIB, 50 * MIB };
  for (guint i = 0; i < G_N_ELEMENTS (clocks); i++) {
    for (guint c = 0; c < 4; c++) {
      MemoryChange *change = &g_array_index (changes, MemoryChange, c);
      change->at = change->issued = clocks[i][c];
    }
    add_by_clock (h, r, changes);
    LS_CHECK_INT (g_hash_table_size (r->replayed), ==, n_replays[i]);
    LS_CHECK_INT (r->roles[0].reserved_bytes, ==, reserved[i]);
  }
  hand_free (h);
}

static void
what_no_retry_can_make_room_for_is_said (void)
{
  Hand *h = one_on_each_stream (28 * MIB);
  hand_freeze (h);
  g_autoptr (LsRetries) x = retries_of (h, NULL);
  LS_CHECK (x->roles[0].is_out_of_memory);
  hand_free (h);
}

/* 30 MiB of the compute stream are freed by a copy of 10 ms; the host then allocates 30 MiB more. In the
 * order of the program they are free by then. By the clock they are not: the host waits for the copy, where
 * there is no room for both. */
static void
what_another_stream_uses_is_not_free (uint64_t memory, uint64_t n_by_order, uint64_t n_by_clock)
{
  Hand *h = with_memory (memory);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 0, 30 * MIB, false);
  with_buffer (h, copy (h), 0, 30 * MIB, true);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, LS_MS), 1, 30 * MIB, false);
  with_buffer (h, hand_kernel (h, 0, LS_TAG_F, 20 * LS_MS), 1, 30 * MIB, true);
  h->options.n_steps = 3;
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    g_autoptr (LsRetries) by_order = retries_of (h, NULL), by_clock = retries_of (h, t);
    LS_CHECK (ls_plan_changes_streams (h->plan));
    LS_CHECK_INT (by_order->roles[0].n_retries, ==, n_by_order);
    LS_CHECK_INT (by_clock->roles[0].n_retries, ==, n_by_clock);
  }
  hand_free (h);
}

static void
a_retry_waits_for_other_streams (void)
{
  what_another_stream_uses_is_not_free (40 * MIB, 0, 1);
  what_another_stream_uses_is_not_free (64 * MIB, 0, 0);
}

/* 2 calls of 50 us, and 50 MiB of 1 us each. */
static void
the_driver_takes_what_its_source_says (void)
{
  const LsDriverCall call = { .n_freed = 1, .freed = 30 * MIB, .n_taken = 1, .taken = 20 * MIB };
  LS_CHECK_INT (ls_driver_time (&call), ==, 150 * LS_US);
}

/* --- stalls ------------------------------------------------------------------------- */

static LsTime
step_with_stall (const LsStall *stall)
{
  Hand *h = with_memory (80 * MIB);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_MS);
  uint16_t second = hand_kernel (h, 0, LS_TAG_F, 10 * LS_MS);
  LsDep end = { LS_DEP_END, second };
  LsOp third = ls_op_blank (LS_OP_KERNEL, LS_STREAM_COMPUTE, LS_TAG_F, "third");
  third.recorded = 10 * LS_MS;
  hand_op (h, 0, third, &end, 1);
  hand_freeze (h);
  g_autoptr (GArray) stalls = g_array_new (FALSE, FALSE, sizeof (LsStall));
  if (stall)
    g_array_append_vals (stalls, stall, 1);
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plan_add_stalls (h->plan, 0, stalls, &error));
  LS_CHECK (ls_plan_check (h->plan, &error));
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime step = t ? t->window_end - t->window_start : 0;
  hand_free (h);
  return step;
}

/* Kernels of 10, 10 and 10 ms, which the host issues at once. Held up for 3 ms behind the first or the second
 * one: 3 ms more. If the host does not wait for the device, the device has work meanwhile. */
static void
a_stall_holds_the_device_up_if_the_host_waits (void)
{
  LS_CHECK_INT (step_with_stall (NULL), ==, 30 * LS_MS);
  for (uint16_t op = 1; op < 3; op++) {
    LS_CHECK_INT (step_with_stall (&(LsStall) { 0, op, true, 3 * LS_MS }), ==, 33 * LS_MS);
    LS_CHECK_INT (step_with_stall (&(LsStall) { 0, op, false, 3 * LS_MS }), ==, 30 * LS_MS);
  }
}

/* The other instance of the segment is as it was. */
static void
a_stall_is_of_one_instance (void)
{
  Hand *h = with_memory (80 * MIB);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_MS);
  hand_then (h, 0, 0, 2);
  hand_freeze (h);
  uint32_t segment = h->plan->programs[0].instances[0].segment;
  g_autoptr (GArray) stalls = g_array_new (FALSE, FALSE, sizeof (LsStall));
  LsStall stall = { 1, 0, true, LS_MS };
  g_array_append_val (stalls, stall);
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plan_add_stalls (h->plan, 0, stalls, &error));
  const LsInstance *instances = h->plan->programs[0].instances;
  LS_CHECK_INT (instances[0].segment, ==, segment);
  LS_CHECK (instances[1].segment != segment);
  LS_CHECK_INT (h->plan->segments[segment].n_ops, ==, 1);
  LS_CHECK_INT (h->plan->segments[instances[1].segment].n_ops, ==, 3);
  hand_free (h);
}

LS_TEST_SUITE (LS_TEST (a_free_waits_for_the_other_stream), LS_TEST (without_times_the_order_counts),
               LS_TEST (a_history_that_is_cut_has_the_peak), LS_TEST (where_memory_ends_is_said_once),
               LS_TEST (segments_of_two_streams_take_turns), LS_TEST (what_settles_is_not_charged),
               LS_TEST (with_room_the_driver_is_not_called),
               LS_TEST (what_the_step_before_left_has_a_segment),
               LS_TEST (what_happens_in_one_order_is_replayed_once),
               LS_TEST (what_no_retry_can_make_room_for_is_said), LS_TEST (a_retry_waits_for_other_streams),
               LS_TEST (the_driver_takes_what_its_source_says),
               LS_TEST (a_stall_holds_the_device_up_if_the_host_waits), LS_TEST (a_stall_is_of_one_instance))
