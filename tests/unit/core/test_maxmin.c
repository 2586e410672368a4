/* Pins max-min fair levels: solved from nothing, and kept while activities change. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "core/fill.h"
#include "core/maxmin.h"

/* Pins the solver: hand-derived systems, and on random ones feasibility, the
 * max-min property, independence of order, and exact folding. */

#define ONE LS_COEF_ONE

static double
rate_in (const LsFill *fill, const LsFlow *f)
{
  return ls_fill_rate (f, ls_fill_quantum (fill));
}

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

/* Pins: levels that are kept while activities come, go and change their caps are those
 * of a solve from nothing, to the bit, after every change and for any order, with few and
 * with many uses, on resources of which all, some or none have room; only what changed is
 * told; two worked examples. */

#define MAX_RES   96
#define MAX_FLOWS 60
#define MAX_USES  90

typedef struct {
  LsFlow flow;
  LsFlowUse uses[MAX_USES];
} Activity;

/* A random system; is_even draws from few values, so that ties abound. */
typedef struct {
  GRand *rand;
  bool is_even;
  uint32_t n_res, n_flows, max_uses;
  double capacity[MAX_RES];
  Activity *all; /* [n_flows] */
  LsFill *fill;
} World;

static double
draw_rate (World *w, double most)
{
  return w->is_even ? most / g_rand_int_range (w->rand, 1, 5) : most * g_rand_double_range (w->rand, 1e-3, 1);
}

static void
world_init (World *w, guint32 seed)
{
  *w = (World) { .rand = g_rand_new_with_seed (seed), .is_even = seed % 2 };
  bool is_wide = seed % 5 == 0;
  w->n_res = (uint32_t) g_rand_int_range (w->rand, is_wide ? 66 : 1, is_wide ? MAX_RES + 1 : 25);
  w->max_uses = is_wide ? MAX_USES : 6;
  w->n_flows = (uint32_t) g_rand_int_range (w->rand, 1, MAX_FLOWS + 1);
  w->all = g_new0 (Activity, w->n_flows);
  for (uint32_t i = 0; i < w->n_res; i++)
    w->capacity[i] = draw_rate (w, 12e9) * (seed % 3 && i % 3 ? 8 : 1);
  w->fill = ls_fill_new (w->n_res, w->capacity);
}

static void
world_clear (World *w)
{
  ls_fill_free (w->fill);
  g_free (w->all);
  g_rand_free (w->rand);
}

static double
draw_cap (World *w)
{
  return g_rand_int_range (w->rand, 0, 3) ? draw_rate (w, 12e9) : 1e15;
}

static void
begin (World *w, Activity *a)
{
  uint32_t want = (uint32_t) g_rand_int_range (w->rand, 0, (gint32) w->max_uses + 1);
  a->flow = (LsFlow) { .cap = draw_cap (w), .uses = a->uses, .is_active = true };
  for (uint32_t l = 0; l < w->n_res && a->flow.n_uses < want; l++)
    if (g_rand_int_range (w->rand, 0, (gint32) (w->n_res - l)) < (gint32) (want - a->flow.n_uses)) {
      uint64_t coef = w->is_even ? LS_COEF_ONE * (uint64_t) g_rand_int_range (w->rand, 1, 3)
                                 : (uint64_t) g_rand_int_range (w->rand, 1, 1 << 23);
      a->uses[a->flow.n_uses++] = (LsFlowUse) { .resource = l, .coef = coef };
    }
  ls_fill_add (w->fill, &a->flow);
}

static void
change (World *w, Activity *a)
{
  if (!a->flow.is_active) {
    begin (w, a);
  } else if (g_rand_int_range (w->rand, 0, 3) == 0) {
    a->flow.cap = draw_cap (w);
    ls_fill_set_cap (w->fill, &a->flow);
  } else {
    ls_fill_remove (w->fill, &a->flow);
    a->flow.is_active = false;
  }
}

/* From nothing; ret_rate: [n_flows], of those that are active, in their order. */
static void
fill_solve (const World *w, double *ret_rate)
{
  double cap[MAX_FLOWS];
  uint32_t first[MAX_FLOWS + 1] = { 0 }, res[MAX_FLOWS * MAX_USES], n = 0, at = 0;
  uint64_t coef[MAX_FLOWS * MAX_USES];
  for (uint32_t i = 0; i < w->n_flows; i++) {
    const LsFlow *f = &w->all[i].flow;
    if (!f->is_active)
      continue;
    for (uint32_t k = 0; k < f->n_uses; k++, at++) {
      res[at] = f->uses[k].resource;
      coef[at] = f->uses[k].coef;
    }
    cap[n] = f->cap;
    first[++n] = at;
  }
  LsMaxmin p = { w->n_res, n, w->capacity, cap, first, res, coef, 0 };
  g_autofree void *scratch = g_malloc (ls_maxmin_scratch_bytes (&p) + 1);
  ls_maxmin_solve (&p, scratch, ret_rate);
}

/* Rates that were not told must be right too. */
static bool
settle_and_compare (World *w)
{
  LsFlow **changed;
  uint32_t n_changed, n = 0, n_wrong = 0;
  double rate[MAX_FLOWS];
  ls_fill_settle (w->fill, &changed, &n_changed);
  ls_fill_check (w->fill);
  for (uint32_t i = 0; i < n_changed; i++)
    changed[i]->rate = rate_in (w->fill, changed[i]);
  fill_solve (w, rate);
  for (uint32_t i = 0; i < w->n_flows; i++)
    if (w->all[i].flow.is_active) {
      double right = rate[n++];
      n_wrong += memcmp (&w->all[i].flow.rate, &right, sizeof right) != 0;
    }
  return LS_CHECK_INT (n_wrong, ==, 0);
}

static bool
is_right (guint32 seed)
{
  World w;
  bool ok = true;
  world_init (&w, seed);
  for (int step = 0; step < 120 && ok; step++) {
    int together = g_rand_boolean (w.rand) ? 1 : g_rand_int_range (w.rand, 1, 9);
    for (int i = 0; i < together; i++)
      change (&w, &w.all[g_rand_int_range (w.rand, 0, (gint32) w.n_flows)]);
    ok = settle_and_compare (&w);
  }
  world_clear (&w);
  if (!ok)
    printf ("seed %u\n", seed);
  return ok;
}

static void
levels_are_those_of_a_solve_from_nothing (void)
{
  guint32 n = ls_test_cases (200, 200);
  for (guint32 seed = 1; seed <= n && is_right (seed); seed++)
    ;
}

/* A coefficient so small that its resource fills beyond the greatest level. */
static void
a_seed_that_failed (void)
{
  is_right (4926);
}

static void
activity_init (Activity *a, double cap, uint32_t n, uint32_t from)
{
  *a = (Activity) { .flow = { .cap = cap, .uses = a->uses, .n_uses = n } };
  for (uint32_t i = 0; i < n; i++)
    a->uses[i] = (LsFlowUse) { .resource = from + i, .coef = LS_COEF_ONE };
}

/* The example of the header. Link 0 of 10 carries A and B, link 1 of 4 B and D. */
static void
who_is_not_concerned_is_not_told (void)
{
  double capacity[] = { 10, 4, 100 };
  Activity a, b, d, far;
  LsFlow **changed;
  uint32_t n;
  LsFill *fill = ls_fill_new (3, capacity);
  activity_init (&a, 1e6, 1, 0);
  activity_init (&b, 1e6, 2, 0);
  activity_init (&d, 1e6, 1, 1);
  activity_init (&far, 1e6, 1, 2);
  ls_fill_add (fill, &a.flow);
  ls_fill_add (fill, &b.flow);
  ls_fill_add (fill, &d.flow);
  ls_fill_add (fill, &far.flow);
  LS_CHECK (ls_fill_settle (fill, &changed, &n));
  LS_CHECK_INT (n, ==, 4);
  LS_CHECK_DOUBLE (rate_in (fill, &a.flow), ==, 8);
  LS_CHECK_DOUBLE (rate_in (fill, &b.flow), ==, 2);
  LS_CHECK_DOUBLE (rate_in (fill, &d.flow), ==, 2);
  ls_fill_remove (fill, &d.flow);
  LS_CHECK (ls_fill_settle (fill, &changed, &n));
  LS_CHECK_INT (n, ==, 2);
  LS_CHECK_DOUBLE (rate_in (fill, &a.flow), ==, 6);
  LS_CHECK_DOUBLE (rate_in (fill, &b.flow), ==, 4);
  LS_CHECK_DOUBLE (rate_in (fill, &far.flow), ==, 100);
  LS_CHECK (!ls_fill_settle (fill, &changed, &n));
  LS_CHECK_INT (n, ==, 0);
  ls_fill_free (fill);
}

/* Two links of 11 with a common activity fill at 5, whichever is looked at first: the
 * quantum that a third would leave is nobody's. In quanta: capacity 11 * 2^-53 of 2^0. */
static void
a_tie_is_nobodys (void)
{
  double quantum = ldexp (1, -53), capacity[] = { 11 * quantum, 11 * quantum, 0.75 };
  LsFlow **changed;
  uint32_t n;
  for (int turn = 0; turn < 2; turn++) {
    Activity common, on[2];
    LsFill *fill = ls_fill_new (3, capacity);
    activity_init (&common, 1, 2, 0);
    activity_init (&on[0], 6 * quantum, 1, 0);
    activity_init (&on[1], 6 * quantum, 1, 1);
    ls_fill_add (fill, &on[turn].flow);
    ls_fill_add (fill, &common.flow);
    ls_fill_settle (fill, &changed, &n);
    ls_fill_add (fill, &on[1 - turn].flow);
    ls_fill_settle (fill, &changed, &n);
    LS_CHECK_DOUBLE (rate_in (fill, &common.flow), ==, 5 * quantum);
    LS_CHECK_DOUBLE (rate_in (fill, &on[0].flow), ==, 5 * quantum);
    LS_CHECK_DOUBLE (rate_in (fill, &on[1].flow), ==, 5 * quantum);
    ls_fill_free (fill);
  }
}

/* Links fill from the slowest on, in whatever order they come to wait. f passes a link of 6 and one of 2, which
 * holds it back: 4 are left on the first for g, which has them already, and is not told. Were the link of 6
 * filled before that of 2, g would fall to 3 and rise again. The links of 1 and 4 make the heap one of four. */
static void
the_slowest_link_fills_first (void)
{
  double capacity[] = { 1, 6, 2, 4 };
  Activity g, f, on[2];
  LsFlow **changed;
  uint32_t n;
  LsFill *fill = ls_fill_new (4, capacity);
  activity_init (&g, 4, 1, 1);
  activity_init (&on[0], 1e6, 1, 0);
  activity_init (&f, 1e6, 2, 1);
  activity_init (&on[1], 1e6, 1, 3);
  ls_fill_add (fill, &g.flow);
  ls_fill_settle (fill, &changed, &n);
  LS_CHECK_DOUBLE (rate_in (fill, &g.flow), ==, 4);
  ls_fill_add (fill, &on[0].flow);
  ls_fill_add (fill, &f.flow);
  ls_fill_add (fill, &on[1].flow);
  LS_CHECK (ls_fill_settle (fill, &changed, &n));
  LS_CHECK_INT (n, ==, 3);
  LS_CHECK_DOUBLE (rate_in (fill, &f.flow), ==, 2);
  LS_CHECK_DOUBLE (rate_in (fill, &g.flow), ==, 4);
  ls_fill_free (fill);
}

LS_TEST_SUITE (LS_TEST (worked_example_of_the_header), LS_TEST (an_activity_with_two_flows_gets_two_shares),
               LS_TEST (a_cap_leaves_the_rest_to_others),
               LS_TEST (small_demands_are_met_and_the_rest_is_shared),
               LS_TEST (caps_that_add_up_to_the_capacity_are_met),
               LS_TEST (random_systems_are_feasible_and_fair), LS_TEST (order_of_activities_does_not_matter),
               LS_TEST (equal_activities_fold_to_the_bit), LS_TEST (levels_are_those_of_a_solve_from_nothing),
               LS_TEST (a_seed_that_failed), LS_TEST (who_is_not_concerned_is_not_told),
               LS_TEST (a_tie_is_nobodys), LS_TEST (the_slowest_link_fills_first))
