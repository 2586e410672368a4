/* tests/bench/ls_bench.h — one CSV line per figure:
 *
 *     name,n,unit,value,ratio_to_reference
 *
 * `ratio_to_reference` is empty where the reference was not run. Benchmarks are
 * never tests: nothing passes or fails by the clock. */
#ifndef LS_BENCH_H
#define LS_BENCH_H

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Processor time of this process: waiting for a core does not count. */
static inline double
ls_bench_cpu_s (void)
{
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static inline void
ls_bench_header (void)
{
  printf ("name,n,unit,value,ratio_to_reference\n");
}

/* ratio: above 1 the fast one is faster; 0 if there is none */
static inline void
ls_bench_print (const char *name, uint64_t n, const char *unit, double value, double ratio)
{
  printf ("%s,%" PRIu64 ",%s,%.6g,", name, n, unit, value);
  if (ratio > 0)
    printf ("%.4g", ratio);
  printf ("\n");
  fflush (stdout);
}

#endif
