#include "exec/memory/history.h"

#include "base/order.h"
#include "exec/memory/allocator.h"
#include "exec/memory/memory_times.h"

#define NONE UINT32_MAX

/* Of a block in use, by its handle. */
typedef struct {
  LsBlockUse use;
  uint64_t requested;
  uint64_t number; /* of its allocation */
  bool is_pending;
} Owner;

typedef struct {
  const GArray *changes; /* MemoryChange */
  LsMemoryHistory *to;
  LsAllocator *allocator;
  uint64_t limit;    /* 0: none */
  uint32_t *handles; /* by lap and change (memory_laps_place) */
  GArray *owners;    /* Owner    */
  uint64_t n_allocs;
  bool is_recording, is_out_of_memory;
  LsTime base, at; /* of `at` 0; of what happens */
  uint64_t asked;  /* by the allocation at hand, which is for */
  LsBlockUse use;
} Replay;

/* Which events of the window are recorded, by their number in it. */
typedef struct {
  uint64_t from, to;
} Range;

/* Of what was there before, and of the end. */
static const LsBlockUse nobody = { .category = LS_N_MEM, .instance = NONE };

/* --- events ---------------------------------------------------------------------------- */

/* Of a block or segment, by where it is. */
static void
put (Replay *r, LsMemoryAction action, const LsAllocatorBlock *at, uint64_t size, LsBlockUse use)
{
  if (!r->is_recording)
    return;
  const LsMemoryEvent e = { .at = r->at - r->base,
                            .action = (uint8_t) action,
                            .stream = at->stream,
                            .address = at->address,
                            .size = size,
                            .use = use };
  g_array_append_val (r->to->events, e);
}

static void
put_block (Replay *r, LsMemoryAction action, uint32_t handle)
{
  const Owner *o = &g_array_index (r->owners, Owner, handle);
  const LsAllocatorBlock b = ls_allocator_block (r->allocator, handle);
  put (r, action, &b, o->requested, o->use);
}

static void
on_segment (const LsAllocatorBlock *segment, bool is_taken, void *data)
{
  Replay *r = data;
  uint64_t reserved = ls_allocator_stats (r->allocator).reserved;
  if (is_taken && r->limit > 0 && reserved > r->limit && r->is_recording && !r->is_out_of_memory) {
    const LsAllocatorBlock nowhere = { .stream = segment->stream };
    uint64_t before = reserved - segment->size;
    r->is_out_of_memory = true;
    put (r, LS_ACTION_OOM, &nowhere, r->asked, r->use);
    g_array_index (r->to->events, LsMemoryEvent, r->to->events->len - 1).device_free
        = r->limit - MIN (before, r->limit);
  }
  put (r, is_taken ? LS_ACTION_SEGMENT_ALLOC : LS_ACTION_SEGMENT_FREE, segment, segment->size, r->use);
}

/* --- allocations and frees --------------------------------------------------------------- */

static uint32_t
take (Replay *r, uint64_t bytes, uint32_t stream, LsBlockUse use)
{
  r->asked = bytes;
  r->use = use;
  uint32_t handle = ls_allocator_take (r->allocator, bytes, stream);
  if (handle >= r->owners->len)
    g_array_set_size (r->owners, handle + 1);
  g_array_index (r->owners, Owner, handle) = (Owner) { use, bytes, r->n_allocs++, false };
  put_block (r, LS_ACTION_ALLOC, handle);
  return handle;
}

static LsBlockUse
use_of (const MemoryChange *alloc)
{
  return (LsBlockUse) { alloc->buffer->category, alloc->instance, alloc->of };
}

static void
request_free (Replay *r, uint32_t handle)
{
  Owner *o = &g_array_index (r->owners, Owner, handle);
  if (o->is_pending)
    return;
  o->is_pending = true;
  put_block (r, LS_ACTION_FREE_REQUESTED, handle);
}

static void
happen (Replay *r, const MemoryEvent *e)
{
  const MemoryChange *c = &g_array_index (r->changes, MemoryChange, e->index);
  if (c->alloc == NONE)
    return;
  uint32_t *handle = &r->handles[memory_laps_place (c, e->lap, r->changes->len)];
  r->at = e->at;
  if (!c->buffer->is_free) {
    *handle = take (r, c->buffer->bytes, c->stream, use_of (c));
    return;
  }
  if (*handle == NONE)
    return;
  request_free (r, *handle);
  if (e->is_issue)
    return;
  put_block (r, LS_ACTION_FREE_COMPLETED, *handle);
  ls_allocator_drop (r->allocator, *handle);
  *handle = NONE;
}

/* --- what is there from the start ---------------------------------------------------------- */

static uint32_t
take_first (void *replay, uint64_t bytes, uint32_t stream, uint8_t category, const MemoryChange *alloc)
{
  const LsBlockUse held = { .category = category, .instance = NONE };
  return take (replay, bytes, stream, alloc ? use_of (alloc) : held);
}

/* What is free has no owner. */
static uint64_t
number_of (const Replay *r, const LsAllocatorBlock *block)
{
  return block->is_free ? 0 : g_array_index (r->owners, Owner, block->handle).number;
}

static int
compare_numbers (gconstpointer x, gconstpointer y, gpointer replay)
{
  uint64_t a = number_of (replay, x), b = number_of (replay, y);
  return LS_ORDER (a, b);
}

static void
record_segments (Replay *r, const GArray *blocks)
{
  for (guint i = 0; i < blocks->len;) {
    LsAllocatorBlock segment = g_array_index (blocks, LsAllocatorBlock, i++);
    for (; i < blocks->len && !g_array_index (blocks, LsAllocatorBlock, i).begins_segment; i++)
      segment.size += g_array_index (blocks, LsAllocatorBlock, i).size;
    put (r, LS_ACTION_SEGMENT_ALLOC, &segment, segment.size, nobody);
  }
}

/* What is there becomes the beginning of the history: segments, then blocks in the order in which they were
 * taken. */
static void
start_recording (Replay *r, LsTime at)
{
  g_autoptr (GArray) blocks = ls_allocator_blocks (r->allocator);
  r->is_recording = true;
  r->base = r->at = at;
  record_segments (r, blocks);
  g_array_sort_with_data (blocks, compare_numbers, r);
  for (guint i = 0; i < blocks->len; i++) {
    const LsAllocatorBlock *b = &g_array_index (blocks, LsAllocatorBlock, i);
    if (b->is_free)
      continue;
    put_block (r, LS_ACTION_ALLOC, b->handle);
    if (g_array_index (r->owners, Owner, b->handle).is_pending)
      put_block (r, LS_ACTION_FREE_REQUESTED, b->handle);
  }
}

static void
finish (Replay *r)
{
  uint64_t in_use = 0;
  g_autoptr (GArray) blocks = ls_allocator_blocks (r->allocator);
  for (guint i = 0; i < blocks->len; i++) {
    const LsAllocatorBlock *b = &g_array_index (blocks, LsAllocatorBlock, i);
    const Owner *o = b->is_free ? NULL : &g_array_index (r->owners, Owner, b->handle);
    LsHistoryBlock block = { .address = b->address,
                             .size = b->size,
                             .stream = b->stream,
                             .is_small = b->is_small,
                             .begins_segment = b->begins_segment };
    if (o) {
      block.requested = o->requested;
      block.state = o->is_pending ? LS_BLOCK_PENDING : LS_BLOCK_IN_USE;
      block.use = o->use;
      in_use += b->size;
    }
    g_array_append_val (r->to->blocks, block);
  }
  put (r, LS_ACTION_SNAPSHOT, &(LsAllocatorBlock) { 0 }, in_use, nobody);
}

/* --- a window of it --------------------------------------------------------------------------- */

/* The number of the event after which most is alive, and how many there are. */
static uint64_t
find_peak (const GArray *changes, const GArray *events, const MemoryWindow *w, uint64_t *ret_n)
{
  g_autofree bool *is_alive = g_new0 (bool, (w->n_laps + 1) * (gsize) changes->len);
  int64_t alive = 0, most = G_MININT64;
  uint64_t peak = 0;
  MemoryLaps laps = memory_laps_of (events, w->n_laps, w->period);
  for (guint i = 0; i < changes->len; i++)
    if (g_array_index (changes, MemoryChange, i).is_carried)
      is_alive[g_array_index (changes, MemoryChange, i).alloc] = true;
  *ret_n = 0;
  for (MemoryEvent e; memory_laps_next (&laps, &e) && e.at < w->to;) {
    const MemoryChange *c = &g_array_index (changes, MemoryChange, e.index);
    bool *it = c->alloc == NONE ? NULL : &is_alive[memory_laps_place (c, e.lap, changes->len)];
    if (it && !e.is_issue && *it == (c->buffer->is_free != 0)) {
      *it = !c->buffer->is_free;
      alive += c->buffer->is_free ? -(int64_t) c->buffer->bytes : (int64_t) c->buffer->bytes;
    }
    if (e.at < w->from)
      continue;
    if (alive > most) {
      most = alive;
      peak = *ret_n;
    }
    ++*ret_n;
  }
  return peak;
}

static Range
range_of (const GArray *changes, const GArray *events, const MemoryWindow *w, uint64_t max, uint64_t *ret_n)
{
  uint64_t peak = find_peak (changes, events, w, ret_n), n = *ret_n;
  if (n <= max)
    return (Range) { 0, n };
  uint64_t from = MIN (peak - MIN (peak, max / 2), n - max);
  return (Range) { from, from + max };
}

static void
replay (Replay *r, const GArray *events, const MemoryWindow *w, Range range)
{
  uint64_t n = 0;
  MemoryLaps laps = memory_laps_of (events, w->n_laps, w->period);
  for (MemoryEvent e; n < range.to && memory_laps_next (&laps, &e) && e.at < w->to;) {
    bool is_inside = e.at >= w->from;
    if (is_inside && n == range.from)
      start_recording (r, w->from == G_MININT64 ? e.at : w->from);
    happen (r, &e);
    n += is_inside;
  }
  if (!r->is_recording)
    start_recording (r, 0);
}

/* --- a rank -------------------------------------------------------------------------------------- */

static void
record_rank (const LsMemoryInput *in, LsMemoryHistory *h, const GArray *changes, const MemoryWindow *w,
             uint64_t max_changes)
{
  uint64_t bytes[LS_N_MEM];
  memory_throughout (in, ls_plan_role (in->plan, h->rank), h->rank, bytes);
  Replay r = { .changes = changes, .to = h, .limit = memory_allocator_limit (in, h->rank, bytes) };
  r.allocator = ls_allocator_new (r.limit);
  r.owners = g_array_new (FALSE, TRUE, sizeof (Owner));
  r.handles = memory_laps_handles (w->n_laps, changes->len);
  ls_allocator_watch (r.allocator, on_segment, &r);
  memory_take_first (changes, bytes, take_first, &r, r.handles);
  g_autoptr (GArray) events = memory_events (changes);
  Range range = range_of (changes, events, w, max_changes, &h->n_changes);
  h->n_left_out = h->n_changes - (range.to - range.from);
  replay (&r, events, w, range);
  finish (&r);
  ls_allocator_free (r.allocator);
  g_array_unref (r.owners);
  g_free (r.handles);
}

LsMemoryHistory *
ls_memory_history_new (const LsMemoryInput *in, uint32_t rank, uint64_t max_changes)
{
  const LsTimeline *t = in->timeline;
  LsMemoryHistory *h = g_new0 (LsMemoryHistory, 1);
  h->rank = t ? ls_timeline_representative (t, rank) : rank;
  h->is_timed = t && ls_timeline_spans (t, h->rank)->n > 0;
  h->events = g_array_new (FALSE, FALSE, sizeof (LsMemoryEvent));
  h->blocks = g_array_new (FALSE, FALSE, sizeof (LsHistoryBlock));
  const LsProgram *program = &in->plan->programs[ls_plan_role (in->plan, h->rank)];
  g_autoptr (GArray) in_order = memory_changes_in_order (in->plan, program);
  bool overlaps = in->options.clock == LS_MEMORY_DEVICE || memory_changes_streams (in_order);
  g_autoptr (GArray) timed
      = h->is_timed ? memory_changes_timed (t, h->rank, (LsMemoryClock) in->options.clock) : NULL;
  const MemoryWindow w = memory_window_of (h->is_timed ? t : NULL, overlaps);
  record_rank (in, h, timed ? timed : in_order, &w, max_changes);
  return h;
}

void
ls_memory_history_free (LsMemoryHistory *h)
{
  if (!h)
    return;
  g_array_unref (h->events);
  g_array_unref (h->blocks);
  g_free (h);
}

const char *const ls_memory_action_names[LS_N_MEMORY_ACTIONS] = {
  [LS_ACTION_ALLOC] = "alloc",
  [LS_ACTION_FREE_REQUESTED] = "free_requested",
  [LS_ACTION_FREE_COMPLETED] = "free_completed",
  [LS_ACTION_SEGMENT_ALLOC] = "segment_alloc",
  [LS_ACTION_SEGMENT_FREE] = "segment_free",
  [LS_ACTION_OOM] = "oom",
  [LS_ACTION_SNAPSHOT] = "snapshot",
};
