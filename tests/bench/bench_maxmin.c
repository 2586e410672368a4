/* The solver alone: systems of n activities that cross three of n / 2 resources
 * each, half of them capped. Solves per second; the solver is its own reference. */
#include "ls_bench.h"

#include <math.h>

#include "cli/heap.h"
#include "core/maxmin.h"

#define PATH 3

typedef struct {
  LsMaxmin p;
  double *capacity, *cap, *rate;
  uint32_t *first, *res;
  uint64_t *coef;
  void *scratch;
} System;

static void
system_init (System *s, uint32_t n)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (n);
  uint32_t n_res = n / 2;
  *s = (System) {
    .capacity = g_new (double, n_res),
    .cap = g_new (double, n),
    .rate = g_new (double, n),
    .first = g_new0 (uint32_t, n + 1),
    .res = g_new (uint32_t, PATH * n),
    .coef = g_new (uint64_t, PATH * n),
  };
  for (uint32_t l = 0; l < n_res; l++)
    s->capacity[l] = 1e9 * g_rand_int_range (rand, 10, 100);
  for (uint32_t f = 0; f < n; f++) {
    uint32_t start = (uint32_t) g_rand_int_range (rand, 0, (gint32) n_res);
    s->cap[f] = f % 2 ? INFINITY : 1e9 * g_rand_int_range (rand, 1, 20);
    s->first[f + 1] = PATH * (f + 1);
    for (uint32_t i = 0; i < PATH; i++) {
      s->res[PATH * f + i] = (start + i) % n_res;
      s->coef[PATH * f + i] = LS_COEF_ONE;
    }
  }
  s->p = (LsMaxmin) { n_res, n, s->capacity, s->cap, s->first, s->res, s->coef };
  s->scratch = g_malloc (ls_maxmin_scratch_bytes (&s->p));
}

static void
system_clear (System *s)
{
  void *all[] = { s->capacity, s->cap, s->rate, s->first, s->res, s->coef, s->scratch };
  for (size_t i = 0; i < G_N_ELEMENTS (all); i++)
    g_free (all[i]);
}

int
main (void)
{
  static const struct {
    uint32_t n, n_solves;
  } sizes[] = { { 8, 1000000 }, { 64, 50000 }, { 512, 1000 } };

  cli_keep_memory ();
  ls_bench_header ();
  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    System s;
    system_init (&s, sizes[i].n);
    double start = ls_bench_cpu_s ();
    for (uint32_t k = 0; k < sizes[i].n_solves; k++)
      ls_maxmin_solve (&s.p, s.scratch, s.rate);
    ls_bench_print ("maxmin", sizes[i].n, "solves/s", sizes[i].n_solves / (ls_bench_cpu_s () - start), 0);
    system_clear (&s);
  }
}
