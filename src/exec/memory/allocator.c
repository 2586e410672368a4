#include "exec/memory/allocator.h"

#include <string.h>

#include "base/arena.h"
#include "base/order.h"

#define MIB           (UINT64_C (1) << 20)
#define MIN_BLOCK     512
#define SMALL_SIZE    MIB
#define SMALL_SEGMENT (2 * MIB)
#define MIN_LARGE     (10 * MIB)
#define LARGE_SEGMENT (20 * MIB)
#define ROUND_LARGE   (2 * MIB)

#define NONE UINT32_MAX

typedef struct {
  uint64_t address, size;
  uint32_t prev, next; /* neighbours in the segment, NONE at its ends */
  uint32_t stream;
  bool is_small, is_free;
} Block;

/* A free block, as it is looked for. */
typedef struct {
  uint64_t size, address;
  uint32_t handle;
} Free;

struct LsAllocator {
  LsArena *arena;  /* of all of it                 */
  GArray *blocks;  /* Block, by handle             */
  GArray *unused;  /* uint32_t: entries to be filled again */
  GPtrArray *free; /* GArray of Free by size, then address; by stream and kind: pool_of() */
  guint n_whole;   /* free blocks that are all of their segment */
  uint64_t limit, next_address;
  LsAllocatorStats stats;
  LsSegmentFunc watch; /* NULL: nobody */
  void *watch_data;
};

static Block *
block_at (const LsAllocator *a, uint32_t handle)
{
  return &g_array_index (a->blocks, Block, handle);
}

LsAllocator *
ls_allocator_new (uint64_t limit_bytes)
{
  LsArena *arena = ls_arena_new ();
  LsAllocator *a = ls_arena_new_array (arena, LsAllocator, 1);
  GPtrArray *pools = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  *a = (LsAllocator) { .arena = arena,
                       .blocks = ls_arena_list (arena, sizeof (Block)),
                       .unused = ls_arena_list (arena, sizeof (uint32_t)),
                       .free = ls_arena_own (arena, pools, (GDestroyNotify) g_ptr_array_unref),
                       .limit = limit_bytes };
  return a;
}

void
ls_allocator_free (LsAllocator *a)
{
  if (a)
    ls_arena_free (a->arena);
}

/* --- blocks ------------------------------------------------------------------ */

LsAllocatorBlock
ls_allocator_block (const LsAllocator *a, uint32_t handle)
{
  const Block *b = block_at (a, handle);
  return (
      LsAllocatorBlock) { b->address, b->size, handle, b->stream, b->is_small, b->is_free, b->prev == NONE };
}

static uint32_t
add_block (LsAllocator *a, Block b)
{
  if (a->unused->len == 0) {
    g_array_append_val (a->blocks, b);
    return a->blocks->len - 1;
  }
  uint32_t handle = g_array_index (a->unused, uint32_t, a->unused->len - 1);
  g_array_set_size (a->unused, a->unused->len - 1);
  *block_at (a, handle) = b;
  return handle;
}

static void
remove_block (LsAllocator *a, uint32_t handle)
{
  g_array_append_val (a->unused, handle);
}

/* --- free blocks --------------------------------------------------------------- */

static guint
pool_of (uint32_t stream, bool is_small)
{
  return 2 * stream + is_small;
}

/* NULL: there was never a free block of these. */
static GArray *
find_pool (const LsAllocator *a, uint32_t stream, bool is_small)
{
  guint pool = pool_of (stream, is_small);
  return pool < a->free->len ? a->free->pdata[pool] : NULL;
}

/* The first of at least this size, of equal sizes from this address on. */
static guint
place_in (const GArray *pool, uint64_t size, uint64_t address)
{
  guint low = 0, high = pool->len;
  while (low < high) {
    guint middle = low + (high - low) / 2;
    const Free *f = &g_array_index (pool, Free, middle);
    if (f->size < size || (f->size == size && f->address < address))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool
is_whole (const Block *b)
{
  return b->prev == NONE && b->next == NONE;
}

static void
list_free (LsAllocator *a, uint32_t handle)
{
  Block *b = block_at (a, handle);
  while (a->free->len <= pool_of (b->stream, b->is_small))
    g_ptr_array_add (a->free, g_array_new (FALSE, FALSE, sizeof (Free)));
  GArray *pool = find_pool (a, b->stream, b->is_small);
  Free f = { b->size, b->address, handle };
  b->is_free = true;
  a->n_whole += is_whole (b);
  g_array_insert_val (pool, place_in (pool, b->size, b->address), f);
}

static void
unlist_free (LsAllocator *a, uint32_t handle)
{
  Block *b = block_at (a, handle);
  GArray *pool = find_pool (a, b->stream, b->is_small);
  b->is_free = false;
  a->n_whole -= is_whole (b);
  g_array_remove_index (pool, place_in (pool, b->size, b->address));
}

/* A free block has another size than when it was listed as `old`; or another block of the pool is free in its
 * place. As if the one were taken off the list and the other put on it, but what lies beyond both stays. */
static void
relist_free (LsAllocator *a, const Block *old, uint32_t handle)
{
  Block *b = block_at (a, handle);
  GArray *pool = find_pool (a, b->stream, b->is_small);
  Free *list = (Free *) (gpointer) pool->data;
  guint from = place_in (pool, old->size, old->address), to = place_in (pool, b->size, b->address);
  b->is_free = true;
  a->n_whole += (guint) is_whole (b) - (guint) is_whole (old);
  if (to > from)
    memmove (&list[from], &list[from + 1], (--to - from) * sizeof *list);
  else
    memmove (&list[to + 1], &list[to], (from - to) * sizeof *list);
  list[to] = (Free) { b->size, b->address, handle };
}

/* --- segments ---------------------------------------------------------------- */

static uint64_t
round_up (uint64_t n, uint64_t unit)
{
  return (n + unit - 1) / unit * unit;
}

static uint64_t
segment_size (uint64_t size)
{
  return size <= SMALL_SIZE ? SMALL_SEGMENT : size < MIN_LARGE ? LARGE_SEGMENT : round_up (size, ROUND_LARGE);
}

static void
tell (const LsAllocator *a, uint32_t handle, bool is_taken)
{
  if (!a->watch)
    return;
  LsAllocatorBlock segment = ls_allocator_block (a, handle);
  a->watch (&segment, is_taken, a->watch_data);
}

static void
give_back (LsAllocator *a, uint32_t handle)
{
  uint64_t size = block_at (a, handle)->size;
  a->stats.reserved -= size;
  a->stats.freed += size;
  a->stats.n_freed++;
  tell (a, handle, false);
  unlist_free (a, handle);
  remove_block (a, handle);
}

void
ls_allocator_retry (LsAllocator *a)
{
  a->stats.n_given_back += a->n_whole > 0;
  a->stats.n_retries++;
  for (guint p = 0; p < a->free->len && a->n_whole > 0; p++) {
    GArray *pool = a->free->pdata[p];
    for (guint i = pool->len; i-- > 0;) {
      uint32_t handle = g_array_index (pool, Free, i).handle;
      if (is_whole (block_at (a, handle)))
        give_back (a, handle);
    }
  }
}

static bool
is_within_limit (const LsAllocator *a, uint64_t segment)
{
  return a->limit == 0 || a->stats.reserved + segment <= a->limit;
}

static uint32_t
new_segment (LsAllocator *a, uint64_t size, uint32_t stream)
{
  uint64_t segment = segment_size (size);
  if (!is_within_limit (a, segment))
    ls_allocator_retry (a);
  a->stats.reserved += segment;
  a->stats.taken += segment;
  a->stats.n_taken++;
  a->stats.peak_reserved = MAX (a->stats.peak_reserved, a->stats.reserved);
  Block b = { .address = a->next_address,
              .size = segment,
              .prev = NONE,
              .next = NONE,
              .stream = stream,
              .is_small = size <= SMALL_SIZE };
  a->next_address += segment;
  uint32_t handle = add_block (a, b);
  tell (a, handle, true);
  return handle;
}

/* --- taking and dropping ------------------------------------------------------ */

static uint32_t
best_fit (const LsAllocator *a, uint64_t size, uint32_t stream)
{
  const GArray *pool = find_pool (a, stream, size <= SMALL_SIZE);
  guint place = pool ? place_in (pool, size, 0) : 0;
  return pool && place < pool->len ? g_array_index (pool, Free, place).handle : NONE;
}

/* A block of at least this size, which was free or is new, is taken; what is over remains free. */
static void
split (LsAllocator *a, uint32_t handle, uint64_t size)
{
  Block whole = *block_at (a, handle);
  uint64_t left = whole.size - size;
  if (whole.is_small ? left < MIN_BLOCK : left <= SMALL_SIZE) {
    if (whole.is_free)
      unlist_free (a, handle);
    return;
  }
  Block rest = whole;
  rest.address += size;
  rest.size = left;
  rest.prev = handle;
  uint32_t rest_handle = add_block (a, rest);
  block_at (a, handle)->size = size;
  block_at (a, handle)->next = rest_handle;
  block_at (a, handle)->is_free = false;
  if (whole.next != NONE)
    block_at (a, whole.next)->prev = rest_handle;
  if (whole.is_free)
    relist_free (a, &whole, rest_handle);
  else
    list_free (a, rest_handle);
}

static uint64_t
block_size (uint64_t bytes)
{
  return round_up (MAX (bytes, 1), MIN_BLOCK);
}

bool
ls_allocator_has_room (const LsAllocator *a, uint64_t bytes, uint32_t stream)
{
  uint64_t size = block_size (bytes);
  return best_fit (a, size, stream) != NONE || is_within_limit (a, segment_size (size));
}

uint32_t
ls_allocator_take (LsAllocator *a, uint64_t bytes, uint32_t stream)
{
  uint64_t size = block_size (bytes);
  uint32_t handle = best_fit (a, size, stream);
  if (handle == NONE)
    handle = new_segment (a, size, stream);
  split (a, handle, size);
  a->stats.allocated += block_at (a, handle)->size;
  a->stats.peak_allocated = MAX (a->stats.peak_allocated, a->stats.allocated);
  return handle;
}

/* The block behind `handle` becomes part of it. */
static void
absorb_next (LsAllocator *a, uint32_t handle)
{
  uint32_t other = block_at (a, handle)->next;
  Block *b = block_at (a, handle), *o = block_at (a, other);
  b->size += o->size;
  b->next = o->next;
  if (b->next != NONE)
    block_at (a, b->next)->prev = handle;
  remove_block (a, other);
}

void
ls_allocator_drop (LsAllocator *a, uint32_t handle)
{
  g_assert (handle < a->blocks->len && !block_at (a, handle)->is_free);
  uint32_t prev = block_at (a, handle)->prev, next = block_at (a, handle)->next;
  a->stats.allocated -= block_at (a, handle)->size;
  if (next != NONE && block_at (a, next)->is_free) {
    unlist_free (a, next);
    absorb_next (a, handle);
  }
  if (prev == NONE || !block_at (a, prev)->is_free) {
    list_free (a, handle);
    return;
  }
  Block old = *block_at (a, prev);
  absorb_next (a, prev);
  relist_free (a, &old, prev);
}

LsAllocatorStats
ls_allocator_stats (const LsAllocator *a)
{
  return a->stats;
}

/* --- what is there ------------------------------------------------------------- */

void
ls_allocator_watch (LsAllocator *a, LsSegmentFunc watch, void *data)
{
  a->watch = watch;
  a->watch_data = data;
}

GArray *
ls_allocator_blocks (const LsAllocator *a)
{
  static const LsSortKey by_address[] = { { LS_RISING (LsAllocatorBlock, address) }, { 0 } };
  g_autofree bool *is_unused = g_new0 (bool, MAX (1, a->blocks->len));
  for (guint i = 0; i < a->unused->len; i++)
    is_unused[g_array_index (a->unused, uint32_t, i)] = true;
  GArray *blocks = g_array_new (FALSE, FALSE, sizeof (LsAllocatorBlock));
  for (uint32_t handle = 0; handle < a->blocks->len; handle++)
    if (!is_unused[handle]) {
      LsAllocatorBlock b = ls_allocator_block (a, handle);
      g_array_append_val (blocks, b);
    }
  ls_sort_by (blocks, by_address);
  return blocks;
}
