#include "exec/slow.h"

#include <math.h>

#include <lockstep/error.h>

void
ls_slow_clear (LsSlow *s)
{
  g_clear_pointer (&s->ranks, g_array_unref);
  *s = (LsSlow) { 0 };
}

static double
draw_normal (GRand *rand)
{
  double u, v, square;
  do {
    u = g_rand_double_range (rand, -1, 1);
    v = g_rand_double_range (rand, -1, 1);
    square = u * u + v * v;
  } while (square >= 1 || square == 0);
  return u * sqrt (-2 * log (square) / square);
}

static double
draw_factor (GRand *rand, double sigma)
{
  double factor = exp (sigma * draw_normal (rand));
  return CLAMP (factor, LS_SLOW_MIN, LS_SLOW_MAX);
}

double *
ls_slow_factors (const LsSlow *s, uint32_t n_ranks, GError **error)
{
  guint n = s->ranks ? s->ranks->len : 0;
  if (n == 0 && s->sigma == 0)
    return NULL;
  for (guint i = 0; i < n; i++) {
    uint32_t rank = g_array_index (s->ranks, LsSlowRank, i).rank;
    if (rank < n_ranks)
      continue;
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "rank %u is to be slow, but the job has %u ranks", rank,
                 n_ranks);
    return NULL;
  }
  double *factor = g_new (double, n_ranks);
  g_autoptr (GRand) rand = g_rand_new_with_seed (s->seed);
  for (uint32_t r = 0; r < n_ranks; r++)
    factor[r] = s->sigma > 0 ? draw_factor (rand, s->sigma) : 1;
  for (guint i = 0; i < n; i++) {
    const LsSlowRank *slow = &g_array_index (s->ranks, LsSlowRank, i);
    factor[slow->rank] *= slow->factor;
  }
  return factor;
}
