#include "exec/memory/allocator.h"

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

struct LsAllocator {
  GArray *blocks; /* Block, by handle             */
  GArray *unused; /* uint32_t: entries to be filled again */
  GTree *free;    /* Block -> handle + 1, in the order in which they are looked for */
  uint64_t limit, next_address;
  LsAllocatorStats stats;
};

static Block *
block_at (const LsAllocator *a, uint32_t handle)
{
  return &g_array_index (a->blocks, Block, handle);
}

static int
compare_numbers (uint64_t a, uint64_t b)
{
  return a < b ? -1 : a > b;
}

static int
compare_free (gconstpointer x, gconstpointer y, gpointer data)
{
  const Block *a = x, *b = y;
  int order = compare_numbers (a->is_small, b->is_small);
  order = order ? order : compare_numbers (a->stream, b->stream);
  order = order ? order : compare_numbers (a->size, b->size);
  return order ? order : compare_numbers (a->address, b->address);
}

LsAllocator *
ls_allocator_new (uint64_t limit_bytes)
{
  LsAllocator *a = g_new0 (LsAllocator, 1);
  a->blocks = g_array_new (FALSE, FALSE, sizeof (Block));
  a->unused = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  a->free = g_tree_new_full (compare_free, NULL, g_free, NULL);
  a->limit = limit_bytes;
  return a;
}

void
ls_allocator_free (LsAllocator *a)
{
  if (!a)
    return;
  g_array_unref (a->blocks);
  g_array_unref (a->unused);
  g_tree_unref (a->free);
  g_free (a);
}

/* --- blocks ------------------------------------------------------------------ */

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

static void
list_free (LsAllocator *a, uint32_t handle)
{
  Block *b = block_at (a, handle);
  b->is_free = true;
  g_tree_insert (a->free, g_memdup2 (b, sizeof *b), GUINT_TO_POINTER (handle + 1));
}

static void
unlist_free (LsAllocator *a, uint32_t handle)
{
  Block *b = block_at (a, handle);
  b->is_free = false;
  g_tree_remove (a->free, b);
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

static gboolean
collect (gpointer key, gpointer value, gpointer handles)
{
  uint32_t handle = GPOINTER_TO_UINT (value) - 1;
  g_array_append_val ((GArray *) handles, handle);
  return FALSE;
}

void
ls_allocator_retry (LsAllocator *a)
{
  g_autoptr (GArray) handles = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  uint64_t before = a->stats.reserved;
  g_tree_foreach (a->free, collect, handles);
  for (guint i = 0; i < handles->len; i++) {
    uint32_t handle = g_array_index (handles, uint32_t, i);
    const Block *b = block_at (a, handle);
    if (b->prev != NONE || b->next != NONE)
      continue;
    a->stats.reserved -= b->size;
    a->stats.freed += b->size;
    a->stats.n_freed++;
    unlist_free (a, handle);
    remove_block (a, handle);
  }
  a->stats.n_given_back += a->stats.reserved < before;
  a->stats.n_retries++;
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
  return add_block (a, b);
}

/* --- taking and dropping ------------------------------------------------------ */

static uint32_t
best_fit (const LsAllocator *a, uint64_t size, uint32_t stream)
{
  const Block least = { .size = size, .stream = stream, .is_small = size <= SMALL_SIZE };
  GTreeNode *node = g_tree_lower_bound (a->free, &least);
  if (!node)
    return NONE;
  const Block *b = g_tree_node_key (node);
  if (b->stream != stream || b->is_small != least.is_small)
    return NONE;
  return GPOINTER_TO_UINT (g_tree_node_value (node)) - 1;
}

static void
split (LsAllocator *a, uint32_t handle, uint64_t size)
{
  Block whole = *block_at (a, handle);
  uint64_t left = whole.size - size;
  if (whole.is_small ? left < MIN_BLOCK : left <= SMALL_SIZE)
    return;
  Block rest = whole;
  rest.address += size;
  rest.size = left;
  rest.prev = handle;
  uint32_t rest_handle = add_block (a, rest);
  block_at (a, handle)->size = size;
  block_at (a, handle)->next = rest_handle;
  if (whole.next != NONE)
    block_at (a, whole.next)->prev = rest_handle;
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
  if (handle != NONE)
    unlist_free (a, handle);
  else
    handle = new_segment (a, size, stream);
  split (a, handle, size);
  a->stats.allocated += block_at (a, handle)->size;
  a->stats.peak_allocated = MAX (a->stats.peak_allocated, a->stats.allocated);
  return handle;
}

/* The free block behind `handle` becomes part of it. */
static void
join_next (LsAllocator *a, uint32_t handle)
{
  uint32_t other = block_at (a, handle)->next;
  if (other == NONE || !block_at (a, other)->is_free)
    return;
  unlist_free (a, other);
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
  a->stats.allocated -= block_at (a, handle)->size;
  join_next (a, handle);
  uint32_t prev = block_at (a, handle)->prev;
  if (prev != NONE && block_at (a, prev)->is_free) {
    unlist_free (a, prev);
    list_free (a, handle);
    join_next (a, prev);
    handle = prev;
  }
  list_free (a, handle);
}

LsAllocatorStats
ls_allocator_stats (const LsAllocator *a)
{
  return a->stats;
}
