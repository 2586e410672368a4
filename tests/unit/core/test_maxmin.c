/* Pins the solver: hand-derived systems, and on random ones feasibility, the
 * max-min property, independence of order, and exact folding. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "core/maxmin.h"

#define ONE LS_COEF_ONE

static void
solve (const LsMaxmin *p, double *rate)
{
  g_autofree void *scratch = g_malloc (ls_maxmin_scratch_bytes (p) + 1);
  ls_maxmin_solve (p, scratch, rate);
}

/* Link 0 of 10 carries A and B, link 1 of 4 carries B and D: link 1 fills at 2,
 * then A takes the 8 that B leaves. */
static void
worked_example_of_the_header (void)
{
  double capacity[] = { 10, 4 }, cap[] = { INFINITY, INFINITY, INFINITY }, rate[3];
  uint32_t first[] = { 0, 1, 3, 4 }, res[] = { 0, 0, 1, 1 };
  uint64_t coef[] = { ONE, ONE, ONE, ONE };
  LsMaxmin p = { 2, 3, capacity, cap, first, res, coef };
  solve (&p, rate);
  LS_CHECK_DOUBLE (rate[0], ==, 8);
  LS_CHECK_DOUBLE (rate[1], ==, 2);
  LS_CHECK_DOUBLE (rate[2], ==, 2);
}

/* Two flows of A and one of B on a link of 9: three equal shares. */
static void
an_activity_with_two_flows_gets_two_shares (void)
{
  double capacity[] = { 9 }, cap[] = { INFINITY, INFINITY }, rate[2];
  uint32_t first[] = { 0, 1, 2 }, res[] = { 0, 0 };
  uint64_t coef[] = { 2 * ONE, ONE };
  LsMaxmin p = { 1, 2, capacity, cap, first, res, coef };
  solve (&p, rate);
  LS_CHECK_DOUBLE (rate[0], ==, 3);
  LS_CHECK_DOUBLE (rate[1], ==, 3);
}

static void
a_cap_leaves_the_rest_to_others (void)
{
  double capacity[] = { 10 }, cap[] = { 1, INFINITY }, rate[2];
  uint32_t first[] = { 0, 1, 2 }, res[] = { 0, 0 };
  uint64_t coef[] = { ONE, ONE };
  LsMaxmin p = { 1, 2, capacity, cap, first, res, coef };
  solve (&p, rate);
  LS_CHECK_DOUBLE (rate[0], ==, 1);
  LS_CHECK_DOUBLE (rate[1], ==, 9);
}

/* Demands of 2, 4 and 10 on a link of 10: the first has all that it asks for. */
static void
small_demands_are_met_and_the_rest_is_shared (void)
{
  double capacity[] = { 10 }, cap[] = { 2, 4, 10 }, rate[3];
  uint32_t first[] = { 0, 1, 2, 3 }, res[] = { 0, 0, 0 };
  uint64_t coef[] = { ONE, ONE, ONE };
  LsMaxmin p = { 1, 3, capacity, cap, first, res, coef };
  solve (&p, rate);
  LS_CHECK_DOUBLE (rate[0], ==, 2);
  LS_CHECK_DOUBLE (rate[1], ==, 4);
  LS_CHECK_DOUBLE (rate[2], ==, 4);
}

/* Caps that divide a capacity are met although C / n is rounded. */
static void
caps_that_add_up_to_the_capacity_are_met (void)
{
  for (uint32_t n = 1; n <= 64; n++) {
    double capacity[] = { 25e9 * 0.97, 3.35e12 }, cap[64], rate[64];
    uint32_t first[65] = { 0 }, res[64] = { 0 };
    uint64_t coef[64];
    for (uint32_t f = 0; f < n; f++) {
      cap[f] = capacity[0] / n;
      coef[f] = ONE;
      first[f + 1] = f + 1;
    }
    LsMaxmin p = { 2, n, capacity, cap, first, res, coef };
    solve (&p, rate);
    for (uint32_t f = 0; f < n; f++)
      LS_CHECK_DOUBLE (rate[f], ==, cap[f]);
  }
}

#define N_RES 12
#define N_ACT 20

typedef struct {
  double capacity[N_RES], cap[N_ACT];
  uint32_t first[N_ACT + 1], res[N_ACT * N_RES];
  uint64_t coef[N_ACT * N_RES];
} System;

static LsMaxmin
random_system (GRand *rand, System *s)
{
  for (int l = 0; l < N_RES; l++)
    s->capacity[l] = 1 + g_rand_int_range (rand, 0, 100);
  s->first[0] = 0;
  for (int f = 0; f < N_ACT; f++) {
    s->cap[f] = g_rand_boolean (rand) ? INFINITY : 1 + g_rand_int_range (rand, 0, 20);
    uint32_t at = s->first[f];
    for (uint32_t l = 0; l < N_RES; l++)
      if (g_rand_int_range (rand, 0, 4) == 0 || (at == s->first[f] && l == N_RES - 1)) {
        s->res[at] = l;
        s->coef[at++] = (uint64_t) g_rand_int_range (rand, 1, 4) * ONE / 2;
      }
    s->first[f + 1] = at;
  }
  return (LsMaxmin) { N_RES, N_ACT, s->capacity, s->cap, s->first, s->res, s->coef };
}

static double
load (const LsMaxmin *p, const double *rate, uint32_t l)
{
  double sum = 0;
  for (uint32_t f = 0; f < p->n_act; f++)
    for (uint32_t i = p->first[f]; i < p->first[f + 1]; i++)
      if (p->res[i] == l)
        sum += (double) p->coef[i] / ONE * rate[f];
  return sum;
}

/* Every activity runs at its cap or crosses a full resource on which nobody gets
 * more: that is the definition of max-min fairness. */
static void
random_systems_are_feasible_and_fair (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  for (int round = 0; round < 300; round++) {
    System s;
    double rate[N_ACT];
    LsMaxmin p = random_system (rand, &s);
    solve (&p, rate);
    for (uint32_t l = 0; l < N_RES; l++)
      LS_CHECK_DOUBLE (load (&p, rate, l), <=, s.capacity[l] * (1 + 1e-9));
    for (uint32_t f = 0; f < N_ACT; f++) {
      bool is_bound = rate[f] == s.cap[f];
      for (uint32_t i = s.first[f]; i < s.first[f + 1] && !is_bound; i++) {
        double most = 0;
        for (uint32_t g = 0; g < N_ACT; g++)
          for (uint32_t k = s.first[g]; k < s.first[g + 1]; k++)
            if (s.res[k] == s.res[i])
              most = fmax (most, rate[g]);
        is_bound
            = load (&p, rate, s.res[i]) >= s.capacity[s.res[i]] * (1 - 1e-9) && rate[f] >= most * (1 - 1e-12);
      }
      LS_CHECK (is_bound);
    }
  }
}

/* Reversing the activities changes no bit. */
static void
order_of_activities_does_not_matter (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (8);
  for (int round = 0; round < 200; round++) {
    System s, t;
    double rate[N_ACT], reversed[N_ACT];
    LsMaxmin p = random_system (rand, &s);
    memcpy (t.capacity, s.capacity, sizeof t.capacity);
    t.first[0] = 0;
    for (int f = 0; f < N_ACT; f++) {
      int from = N_ACT - 1 - f;
      uint32_t n = s.first[from + 1] - s.first[from];
      t.cap[f] = s.cap[from];
      memcpy (&t.res[t.first[f]], &s.res[s.first[from]], n * sizeof (uint32_t));
      memcpy (&t.coef[t.first[f]], &s.coef[s.first[from]], n * sizeof (uint64_t));
      t.first[f + 1] = t.first[f] + n;
    }
    LsMaxmin q = { N_RES, N_ACT, t.capacity, t.cap, t.first, t.res, t.coef };
    solve (&p, rate);
    solve (&q, reversed);
    for (int f = 0; f < N_ACT; f++)
      LS_CHECK (rate[f] == reversed[N_ACT - 1 - f]);
  }
}

/* Five equal activities behave as one with coefficients five times as large. */
static void
equal_activities_fold_to_the_bit (void)
{
  double capacity[] = { 7, 100 }, caps[] = { INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY };
  uint32_t first[] = { 0, 1, 2, 3, 4, 5, 7 }, res[] = { 0, 0, 0, 0, 0, 0, 1 };
  uint64_t coef[] = { ONE, ONE, ONE, ONE, ONE, ONE / 3, ONE };
  double rate[6], folded[2];
  LsMaxmin p = { 2, 6, capacity, caps, first, res, coef };
  solve (&p, rate);
  uint32_t first2[] = { 0, 1, 3 }, res2[] = { 0, 0, 1 };
  uint64_t coef2[] = { 5 * ONE, ONE / 3, ONE };
  LsMaxmin q = { 2, 2, capacity, caps, first2, res2, coef2 };
  solve (&q, folded);
  LS_CHECK (rate[0] == folded[0] && rate[4] == folded[0]);
  LS_CHECK (rate[5] == folded[1]);
}

LS_TEST_SUITE (LS_TEST (worked_example_of_the_header), LS_TEST (an_activity_with_two_flows_gets_two_shares),
               LS_TEST (a_cap_leaves_the_rest_to_others),
               LS_TEST (small_demands_are_met_and_the_rest_is_shared),
               LS_TEST (caps_that_add_up_to_the_capacity_are_met),
               LS_TEST (random_systems_are_feasible_and_fair), LS_TEST (order_of_activities_does_not_matter),
               LS_TEST (equal_activities_fold_to_the_bit))
