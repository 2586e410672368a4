/* Storms: n random flows on a leaf-spine of n hosts, of n / 4, and of n with leaves that
 * are four times oversubscribed; all start at once and none follows, or each that ends
 * is followed by another. Flows per second, against solving all of them every time. */
#include "ls_bench.h"

#include "cli/heap.h"
#include "storm.h"

#define SUSTAINED 4 /* flows that follow each other */

static void
measure (const char *name, StormSpec spec, bool is_sustained, bool has_reference)
{
  uint32_t n = spec.n_flows;
  g_autofree char *full = g_strconcat (name, is_sustained ? "_sustained" : "", NULL);
  if (is_sustained) {
    spec.n_at_once = n;
    spec.n_flows = SUSTAINED * n;
  }
  Storm *s = storm_new (&spec);
  double fast = storm_rate (s, false);
  double plain = has_reference ? spec.n_flows / storm_run (s, true) : 0;
  ls_bench_print (full, n, "flows/s", fast, plain > 0 ? fast / plain : 0);
  storm_free (s);
}

int
main (void)
{
  static const uint32_t sizes[] = { 1024, 4096 };

  cli_keep_memory ();
  ls_bench_header ();
  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++)
    for (int sustained = 0; sustained < 2; sustained++) {
      uint32_t n = sizes[i];
      bool has_reference = n <= 1024 && !sustained;
      measure ("storm", (StormSpec) { n, 1, n, .seed = 1 }, sustained, has_reference);
      measure ("storm_dense", (StormSpec) { n / 4, 1, n, .seed = 1 }, sustained, has_reference);
      measure ("storm_narrow", (StormSpec) { n, 4, n, .seed = 1 }, sustained, has_reference);
    }
}
