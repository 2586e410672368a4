/* Pins the segments that PyTorch's caching allocator takes: sizes, splitting, joining, the
 * choice of a block, streams, giving back; and random sequences against a plain allocator
 * that searches all blocks. LS_CASES sets how many. */
#include "ls_test.h"

#include "exec/memory/allocator.h"

#define KIB UINT64_C (1024)
#define MIB (1024 * KIB)

static uint64_t
reserved (const LsAllocator *a)
{
  return ls_allocator_stats (a).reserved;
}

/* PyTorch's own expectations (test/test_cuda.py, sizes of segments by kSmallSize,
 * kMinLargeAlloc and kRoundLarge). */
static void
segments_have_the_sizes_of_pytorch (void)
{
  static const struct {
    uint64_t bytes, segment;
  } rows[] = {
    { 1, 2 * MIB },
    { 512, 2 * MIB },
    { MIB, 2 * MIB },
    { MIB + 512, 20 * MIB },
    { 10 * MIB - 512, 20 * MIB },
    { 10 * MIB, 10 * MIB },
    { 10 * MIB + 512, 12 * MIB },
    { 11 * MIB, 12 * MIB },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsAllocator) a = ls_allocator_new (0);
    ls_allocator_take (a, rows[i].bytes, 0);
    LS_CHECK_INT (reserved (a), ==, rows[i].segment);
  }
}

static void
sizes_are_multiples_of_512 (void)
{
  g_autoptr (LsAllocator) a = ls_allocator_new (0);
  ls_allocator_take (a, 1, 0);
  LS_CHECK_INT (ls_allocator_stats (a).allocated, ==, 512);
  ls_allocator_take (a, 513, 0);
  LS_CHECK_INT (ls_allocator_stats (a).allocated, ==, 512 + 1024);
}

/* The example of the header. */
static void
streams_do_not_share (void)
{
  g_autoptr (LsAllocator) a = ls_allocator_new (0);
  ls_allocator_take (a, 3 * MIB / 2, 0);
  ls_allocator_take (a, 9 * MIB, 0);
  LS_CHECK_INT (reserved (a), ==, 20 * MIB);
  ls_allocator_take (a, 3 * MIB / 2, 1);
  LS_CHECK_INT (reserved (a), ==, 40 * MIB);
}

/* 20 MiB - 9.5 - 9.5 leaves 1 MiB, which goes along; 512 bytes more are split off. */
static void
what_is_left_is_split_off_if_it_is_large (void)
{
  g_autoptr (LsAllocator) a = ls_allocator_new (0);
  ls_allocator_take (a, 19 * MIB / 2, 0);
  uint32_t second = ls_allocator_take (a, 19 * MIB / 2, 0);
  LS_CHECK_INT (ls_allocator_stats (a).allocated, ==, 20 * MIB);
  ls_allocator_drop (a, second);
  ls_allocator_take (a, 19 * MIB / 2 - 512, 0);
  LS_CHECK_INT (ls_allocator_stats (a).allocated, ==, 19 * MIB - 512);
  LS_CHECK_INT (reserved (a), ==, 20 * MIB);
}

static void
free_neighbours_are_joined (void)
{
  g_autoptr (LsAllocator) a = ls_allocator_new (0);
  uint32_t block[4];
  for (int i = 0; i < 4; i++)
    block[i] = ls_allocator_take (a, 4 * MIB, 0);
  ls_allocator_drop (a, block[0]);
  ls_allocator_drop (a, block[2]);
  LS_CHECK_INT (reserved (a), ==, 20 * MIB);
  ls_allocator_take (a, 9 * MIB, 0); /* no 9 MiB in one piece: 4, 4 and 4 */
  LS_CHECK_INT (reserved (a), ==, 40 * MIB);
  ls_allocator_drop (a, block[1]);
  ls_allocator_take (a, 9 * MIB, 0);
  LS_CHECK_INT (reserved (a), ==, 40 * MIB);
}

/* Of free blocks of 12 and 30 MiB a request for 11 gets the first, one for 13 the other. */
static void
the_smallest_that_is_enough_is_taken (void)
{
  g_autoptr (LsAllocator) a = ls_allocator_new (0);
  uint32_t large = ls_allocator_take (a, 30 * MIB, 0), small = ls_allocator_take (a, 12 * MIB, 0);
  ls_allocator_drop (a, large);
  ls_allocator_drop (a, small);
  ls_allocator_take (a, 11 * MIB, 0);
  LS_CHECK_INT (ls_allocator_stats (a).allocated, ==, 12 * MIB); /* 1 MiB goes along */
  ls_allocator_take (a, 13 * MIB, 0);
  LS_CHECK_INT (reserved (a), ==, 42 * MIB);
}

static void
whole_segments_are_given_back_at_the_limit (void)
{
  g_autoptr (LsAllocator) a = ls_allocator_new (60 * MIB);
  uint32_t whole = ls_allocator_take (a, 40 * MIB, 0), part = ls_allocator_take (a, 4 * MIB, 0);
  ls_allocator_drop (a, whole);
  ls_allocator_take (a, 40 * MIB, 1); /* 40 + 20 + 40 would be 100 */
  LS_CHECK_INT (reserved (a), ==, 60 * MIB);
  LS_CHECK_INT (ls_allocator_stats (a).n_given_back, ==, 1);
  ls_allocator_take (a, 12 * MIB, 1); /* nothing to give back: taken all the same */
  LS_CHECK_INT (reserved (a), ==, 72 * MIB);
  LS_CHECK_INT (ls_allocator_stats (a).peak_reserved, ==, 72 * MIB);
  ls_allocator_drop (a, part);
}

/* --- the plain one ------------------------------------------------------------------- */

/* Blocks of all segments, by address; a segment is where `begins` is true. */
typedef struct {
  uint64_t size;
  uint32_t stream, handle; /* handle 0: free */
  bool is_small, begins;
} Plain;

static uint32_t
plain_find (const GArray *blocks, uint64_t size, uint32_t stream)
{
  uint32_t best = UINT32_MAX;
  for (guint i = 0; i < blocks->len; i++) {
    const Plain *b = &g_array_index (blocks, Plain, i);
    bool fits = b->handle == 0 && b->stream == stream && b->is_small == (size <= MIB) && b->size >= size;
    if (fits && (best == UINT32_MAX || b->size < g_array_index (blocks, Plain, best).size))
      best = i;
  }
  return best;
}

static void
plain_take (GArray *blocks, uint64_t bytes, uint32_t stream, uint32_t handle)
{
  uint64_t size = (bytes + 511) / 512 * 512;
  uint32_t at = plain_find (blocks, size, stream);
  if (at == UINT32_MAX) {
    uint64_t segment = size <= MIB ? 2 * MIB
        : size < 10 * MIB          ? 20 * MIB
                                   : (size + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
    Plain b = { segment, stream, 0, size <= MIB, true };
    g_array_append_val (blocks, b);
    at = blocks->len - 1;
  }
  Plain *b = &g_array_index (blocks, Plain, at), rest = *b;
  b->handle = handle;
  rest.size -= size;
  rest.begins = false;
  if (rest.size < (b->is_small ? 512 : MIB + 1))
    return;
  b->size = size;
  g_array_insert_val (blocks, at + 1, rest);
}

static void
plain_join (GArray *blocks, guint at)
{
  Plain *a = &g_array_index (blocks, Plain, at), *b = &g_array_index (blocks, Plain, at + 1);
  if (at + 1 >= blocks->len || b->begins || a->handle != 0 || b->handle != 0)
    return;
  a->size += b->size;
  g_array_remove_index (blocks, at + 1);
}

static void
plain_drop (GArray *blocks, uint32_t handle)
{
  guint at = 0;
  while (g_array_index (blocks, Plain, at).handle != handle)
    at++;
  g_array_index (blocks, Plain, at).handle = 0;
  plain_join (blocks, at);
  if (at > 0)
    plain_join (blocks, at - 1);
}

static bool
agree (const LsAllocator *a, const GArray *blocks)
{
  uint64_t all = 0, used = 0;
  for (guint i = 0; i < blocks->len; i++) {
    const Plain *b = &g_array_index (blocks, Plain, i);
    all += b->size;
    used += b->handle != 0 ? b->size : 0;
  }
  return reserved (a) == all && ls_allocator_stats (a).allocated == used;
}

static void
check_sequence (guint32 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  g_autoptr (LsAllocator) a = ls_allocator_new (0);
  g_autoptr (GArray) blocks = g_array_new (FALSE, FALSE, sizeof (Plain));
  g_autoptr (GArray) used
      = g_array_new (FALSE, FALSE, sizeof (uint32_t)); /* handles; the plain ones are one more */
  bool ok = true;
  for (int i = 0; i < 200 && ok; i++) {
    if (used->len > 0 && g_rand_boolean (rand)) {
      guint at = g_rand_int_range (rand, 0, (gint32) used->len);
      uint32_t handle = g_array_index (used, uint32_t, at);
      ls_allocator_drop (a, handle);
      plain_drop (blocks, handle + 1);
      g_array_remove_index_fast (used, at);
    } else {
      static const int32_t most[] = { 4096, 2 << 20, 12 << 20, 64 << 20 };
      uint64_t bytes = (uint64_t) g_rand_int_range (rand, 1, most[g_rand_int_range (rand, 0, 4)]);
      uint32_t stream = (uint32_t) g_rand_int_range (rand, 0, 2),
               handle = ls_allocator_take (a, bytes, stream);
      plain_take (blocks, bytes, stream, handle + 1);
      g_array_append_val (used, handle);
    }
    ok = agree (a, blocks);
  }
  ls_check_impl (ok, __FILE__, __LINE__, "seed %u: the allocators differ", seed);
}

static void
it_does_what_a_plain_one_does (void)
{
  guint32 n = ls_test_cases (40, 40);
  for (guint32 seed = 1; seed <= n; seed++)
    check_sequence (seed);
}

LS_TEST_SUITE (LS_TEST (segments_have_the_sizes_of_pytorch), LS_TEST (sizes_are_multiples_of_512),
               LS_TEST (streams_do_not_share), LS_TEST (what_is_left_is_split_off_if_it_is_large),
               LS_TEST (free_neighbours_are_joined), LS_TEST (the_smallest_that_is_enough_is_taken),
               LS_TEST (whole_segments_are_given_back_at_the_limit), LS_TEST (it_does_what_a_plain_one_does))
