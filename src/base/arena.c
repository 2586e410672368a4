/* A list of blocks, newest first. Each is handed out from the front, zeroed as far as that; a large one is
 * zeroed as a whole.
 *
 *     block -> [header | used ............ | free ........ ] -> older block
 *                                          ^ header + used
 *
 * A request that does not fit opens a block twice as large as the one before
 * (up to MAX_BLOCK); the rest of the old block is lost, which wastes less than
 * half of what was reserved. One from ALONE on has a block of its own size, behind
 * the newest, which goes on being used. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#define FIRST_BLOCK ((size_t) 4096)
#define MAX_BLOCK   ((size_t) 16 << 20)
#define LARGE       ((size_t) 256 << 10)
#define ALONE       ((size_t) 16 << 10)
#define ALIGNMENT   (_Alignof(max_align_t))

typedef struct Block Block;
struct Block {
  Block *older;
  size_t n_bytes; /* of data[]               */
  size_t n_used;  /* multiple of ALIGNMENT   */
  _Alignas(max_align_t) unsigned char data[];
};

typedef struct Owned Owned;
struct Owned {
  Owned *before;
  gpointer what;
  GDestroyNotify free;
};

struct LsArena {
  Block *newest;
  Owned *last;
  size_t n_bytes; /* of all data[] */
};

LsArena *
ls_arena_new (void)
{
  return g_new0 (LsArena, 1);
}

void
ls_arena_free (LsArena *arena)
{
  if (!arena)
    return;
  for (const Owned *o = arena->last; o; o = o->before)
    o->free (o->what);
  for (Block *block = arena->newest, *older; block; block = older) {
    older = block->older;
    g_free (block);
  }
  g_free (arena);
}

/* A large one is zeroed as a whole: the system has pages that are. */
static Block *
block_new (LsArena *arena, size_t n_bytes, Block *older)
{
  if (n_bytes > SIZE_MAX - sizeof (Block))
    g_error ("arena: a block of %zu bytes cannot exist", n_bytes);
  Block *block
      = n_bytes >= LARGE ? g_malloc0 (sizeof (Block) + n_bytes) : g_malloc (sizeof (Block) + n_bytes);
  block->n_bytes = n_bytes;
  block->n_used = 0;
  block->older = older;
  arena->n_bytes += n_bytes;
  return block;
}

static Block *
block_with (LsArena *arena, size_t n_bytes)
{
  Block *newest = arena->newest;
  if (newest && newest->n_bytes - newest->n_used >= n_bytes)
    return newest;
  if (newest && n_bytes >= ALONE)
    return newest->older = block_new (arena, n_bytes, newest->older);
  size_t twice = newest ? MIN (2 * newest->n_bytes, MAX_BLOCK) : FIRST_BLOCK;
  return arena->newest = block_new (arena, MAX (twice, n_bytes), newest);
}

/* Rounded up to the alignment; never 0, so that every pointer is unique. */
static size_t
padded (size_t n, size_t size)
{
  size_t n_bytes;
  if (__builtin_mul_overflow (n, size, &n_bytes) || n_bytes > SIZE_MAX - ALIGNMENT)
    g_error ("arena: %zu elements of %zu bytes overflow", n, size);
  return MAX ((n_bytes + ALIGNMENT - 1) / ALIGNMENT, 1) * ALIGNMENT;
}

void *
ls_arena_alloc (LsArena *arena, size_t n, size_t size)
{
  size_t n_bytes = padded (n, size);
  Block *block = block_with (arena, n_bytes);
  void *start = block->data + block->n_used;
  block->n_used += n_bytes;
  return block->n_bytes >= LARGE ? start : memset (start, 0, n_bytes);
}

char *
ls_arena_strdup (LsArena *arena, const char *text)
{
  size_t n = strlen (text) + 1;
  return memcpy (ls_arena_alloc (arena, n, 1), text, n);
}

size_t
ls_arena_bytes (const LsArena *arena)
{
  return arena->n_bytes;
}

gpointer
ls_arena_own (LsArena *arena, gpointer what, GDestroyNotify free)
{
  Owned *o = ls_arena_new_array (arena, Owned, 1);
  *o = (Owned) { arena->last, what, free };
  arena->last = o;
  return what;
}

GArray *
ls_arena_list (LsArena *arena, guint size)
{
  return ls_arena_own (arena, g_array_new (FALSE, FALSE, size), (GDestroyNotify) g_array_unref);
}

GHashTable *
ls_arena_table (LsArena *arena, GHashFunc hash, GEqualFunc equal)
{
  return ls_arena_own (arena, g_hash_table_new (hash, equal), (GDestroyNotify) g_hash_table_unref);
}
