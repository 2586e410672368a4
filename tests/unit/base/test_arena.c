/* Pins: memory is zeroed, aligned, never moves and never overlaps, across block
 * borders and for requests larger than any block. */
#include "ls_test.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"

static void
memory_is_zeroed_aligned_and_stays (void)
{
  enum { N = 2000 };
  g_autoptr (LsArena) arena = ls_arena_new ();
  unsigned char *piece[N];
  for (size_t i = 0; i < N; i++) {
    size_t n = i % 97;
    piece[i] = ls_arena_alloc (arena, n, 1);
    LS_CHECK_INT ((uintptr_t) piece[i] % _Alignof(max_align_t), ==, 0);
    for (size_t k = 0; k < n; k++)
      if (piece[i][k] != 0)
        LS_CHECK (!"memory is zero");
    memset (piece[i], (int) (i % 251) + 1, n);
  }
  for (size_t i = 0; i < N; i++) /* nobody wrote into anybody */
    for (size_t k = 0; k < i % 97; k++)
      if (piece[i][k] != i % 251 + 1)
        LS_CHECK (!"memory is as it was written");
}

static void
empty_requests_are_unique (void)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  void *a = ls_arena_alloc (arena, 0, 8), *b = ls_arena_alloc (arena, 8, 0),
       *c = ls_arena_alloc (arena, 1, 1);
  LS_CHECK (a != NULL && b != NULL);
  LS_CHECK (a != b && b != c && a != c);
}

static void
large_requests_get_their_own_block (void)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint64_t *small = ls_arena_new_array (arena, uint64_t, 1);
  *small = 7;
  uint64_t *large = ls_arena_new_array (arena, uint64_t, 4 << 20); /* 32 MiB */
  LS_CHECK_INT (large[0] + large[(4 << 20) - 1], ==, 0);
  LS_CHECK_INT (*small, ==, 7);
  LS_CHECK_INT (ls_arena_bytes (arena), >=, 32 << 20);
  LS_CHECK_INT (ls_arena_bytes (arena), <=, 33 << 20);
}

static void
strings_are_copied (void)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  char text[] = "dp all-reduce";
  char *copy = ls_arena_strdup (arena, text);
  text[0] = 'X';
  LS_CHECK_STR (copy, "dp all-reduce");
}

static void
reserves_less_than_a_constant_times_what_is_used (void)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  size_t used = 0;
  for (; used < (8 << 20); used += 48)
    ls_arena_alloc (arena, 48, 1);
  LS_CHECK_INT (ls_arena_bytes (arena), >=, used);
  LS_CHECK_INT (ls_arena_bytes (arena), <=, 3 * used);
}

static void
note (gpointer text)
{
  g_string_append_c (text, 'x');
}

static void
what_it_owns_is_freed_with_it (void)
{
  g_autoptr (GString) text = g_string_new ("");
  LsArena *arena = ls_arena_new ();
  LS_CHECK (ls_arena_own (arena, text, note) == text);
  GArray *list = ls_arena_list (arena, sizeof (uint32_t));
  uint32_t seven = 7;
  for (int i = 0; i < 1000; i++)
    g_array_append_val (list, seven);
  g_hash_table_add (ls_arena_table (arena, NULL, NULL), &seven);
  ls_arena_own (arena, text, note);
  LS_CHECK_STR (text->str, "");
  ls_arena_free (arena);
  LS_CHECK_STR (text->str, "xx");
}

LS_TEST_SUITE (LS_TEST (memory_is_zeroed_aligned_and_stays), LS_TEST (empty_requests_are_unique),
               LS_TEST (large_requests_get_their_own_block), LS_TEST (strings_are_copied),
               LS_TEST (reserves_less_than_a_constant_times_what_is_used),
               LS_TEST (what_it_owns_is_freed_with_it))
