/* A list of blocks, newest first. Each is handed out from the front, zeroed as far as that:
 *
 *     block -> [header | used ............ | free ........ ] -> older block
 *                                          ^ header + used
 *
 * A request that does not fit opens a block twice as large as the one before
 * (up to MAX_BLOCK, or as large as the request needs); the rest of the old
 * block is lost, which wastes less than half of what was reserved. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#define FIRST_BLOCK ((size_t) 4096)
#define MAX_BLOCK   ((size_t) 16 << 20)
#define ALIGNMENT   (_Alignof(max_align_t))

typedef struct Block Block;
struct Block {
  Block *older;
  size_t n_bytes; /* of data[]               */
  size_t n_used;  /* multiple of ALIGNMENT   */
  _Alignas(max_align_t) unsigned char data[];
};

struct LsArena {
  Block *newest;
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
  for (Block *block = arena->newest, *older; block; block = older) {
    older = block->older;
    g_free (block);
  }
  g_free (arena);
}

static void
open_block (LsArena *arena, size_t at_least)
{
  size_t n_bytes = arena->newest ? MIN (2 * arena->newest->n_bytes, MAX_BLOCK) : FIRST_BLOCK;
  n_bytes = MAX (n_bytes, at_least);
  if (n_bytes > SIZE_MAX - sizeof (Block))
    g_error ("arena: a block of %zu bytes cannot exist", n_bytes);
  Block *block = g_malloc (sizeof (Block) + n_bytes);
  block->n_bytes = n_bytes;
  block->n_used = 0;
  block->older = arena->newest;
  arena->newest = block;
  arena->n_bytes += n_bytes;
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
  if (!arena->newest || arena->newest->n_bytes - arena->newest->n_used < n_bytes)
    open_block (arena, n_bytes);
  Block *block = arena->newest;
  void *start = block->data + block->n_used;
  block->n_used += n_bytes;
  return memset (start, 0, n_bytes);
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
