/* Pins classes of ranks that stretches share: each rank has the class of the one that is kept for it, runs end
 * where classes or stretches do, and what is counted by runs is what is counted one by one. */
#include "ls_test.h"

#include "exec/replay/classes.h"

/* Of 16 ranks in two blocks of four stretches of 2, as in the worked example. */
static void
one_stretch_stands_for_others (void)
{
  static const uint32_t kept[] = { 0, 0, 0, 1 }, classes[] = { 0, 1, 2, 2, 3, 4, 5, 5 },
                        expected[] = { 0, 1, 0, 1, 0, 1, 2, 2, 3, 4, 3, 4, 3, 4, 5, 5 };
  LsRankClasses *c = ls_rank_classes_of_stretches (g_memdup2 (classes, sizeof classes), 16, 8, 2, kept, 2);
  for (uint32_t i = 0; i < 16; i++)
    LS_CHECK_INT (ls_rank_class (c, i), ==, expected[i]);
  LS_CHECK_INT (ls_rank_classes_end (c, 6), ==, 8);
  LS_CHECK_INT (ls_rank_classes_end (c, 13), ==, 14);
  ls_rank_classes_free (c);
}

static void
no_classes_are_each_its_own (void)
{
  LS_CHECK_INT (ls_rank_class (NULL, 7), ==, 7);
  LS_CHECK_INT (ls_rank_classes_end (NULL, 7), ==, 8);
}

static void
check_random (GRand *rand)
{
  uint32_t per_stretch = (uint32_t) g_rand_int_range (rand, 1, 6),
           n = (uint32_t) g_rand_int_range (rand, 1, 7), n_blocks = (uint32_t) g_rand_int_range (rand, 1, 4),
           n_kept = (uint32_t) g_rand_int_range (rand, 1, (gint) n + 1), n_ranks = n_blocks * n * per_stretch,
           n_listed = n_blocks * n_kept * per_stretch;
  uint32_t kept[6], *class_of = g_new (uint32_t, n_listed), *plain = g_new (uint32_t, n_ranks);
  for (uint32_t i = 0; i < n; i++)
    kept[i] = (uint32_t) g_rand_int_range (rand, 0, (gint) n_kept);
  for (uint32_t i = 0; i < n_listed; i++)
    class_of[i] = (uint32_t) g_rand_int_range (rand, 0, 3);
  for (uint32_t i = 0; i < n_ranks; i++) {
    uint32_t stretch = i / per_stretch, block = stretch / n;
    plain[i] = class_of[(block * n_kept + kept[stretch % n]) * per_stretch + i % per_stretch];
  }
  LsRankClasses *c
      = ls_rank_classes_of_stretches (class_of, n_ranks, n * per_stretch, per_stretch, kept, n_kept),
      *p = ls_rank_classes_new (plain, n_ranks);
  uint32_t first[3], count[3] = { 0 }, plain_first[3], plain_count[3] = { 0 };
  ls_rank_classes_count (c, first, count);
  ls_rank_classes_count (p, plain_first, plain_count);
  uint32_t n_found = 0;
  for (uint32_t i = 0; i < 3; i++) {
    LS_CHECK (count[i] == plain_count[i] && (count[i] == 0 || first[i] == plain_first[i]));
    n_found += count[i];
  }
  LS_CHECK_INT (n_found, ==, n_ranks);
  for (uint32_t i = 0; i < n_ranks; i++) {
    uint32_t end = ls_rank_classes_end (c, i);
    LS_CHECK (ls_rank_class (c, i) == plain[i] && end > i && end <= ls_rank_classes_end (p, i));
  }
  ls_rank_classes_free (c);
  ls_rank_classes_free (p);
}

static void
stretches_say_what_a_list_says (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (70);
  for (uint32_t i = 0; i < 200; i++)
    check_random (rand);
}

LS_TEST_SUITE (LS_TEST (one_stretch_stands_for_others), LS_TEST (no_classes_are_each_its_own),
               LS_TEST (stretches_say_what_a_list_says))
