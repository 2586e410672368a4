/* Activities that come and go: n are in progress, in groups of eight that share the
 * four links of a host, which they can fill; each that ends is followed by another.
 * Activities per second, against solving all of them every time. */
#include "ls_bench.h"

#include "cli/heap.h"
#include "core/flow.h"

#define PER_HOST 8
#define LINKS    4
#define PATH     2

typedef struct {
  LsFlow flow;
  LsFlowUse uses[PATH];
} Transfer;

typedef struct {
  LsEngine engine;
  LsFlowNet *net;
  GRand *rand;
  uint64_t left; /* transfers still to end */
} World;

static void
transfer_begin (World *w, Transfer *t)
{
  t->flow.remaining = 1e6 * g_rand_int_range (w->rand, 1, 1000);
  t->flow.cap = 1e9 * g_rand_int_range (w->rand, 10, 100);
  t->flow.nominal = 0;
  ls_flow_add (w->net, &t->flow);
}

static void
transfer_over (LsEvent *event, void *context)
{
  World *w = context;
  Transfer *t = (Transfer *) ((char *) event - G_STRUCT_OFFSET (Transfer, flow.done));
  ls_flow_remove (w->net, &t->flow);
  transfer_begin (w, t);
  if (--w->left == 0)
    w->engine.stop_at = w->engine.now;
}

static double
transfers_per_s (uint32_t n, uint64_t n_transfers, bool is_reference)
{
  World w = { .rand = g_rand_new_with_seed (n), .left = n_transfers };
  uint32_t n_links = n / PER_HOST * LINKS;
  double *capacity = g_new (double, n_links);
  Transfer *transfers = g_new0 (Transfer, n);
  for (uint32_t l = 0; l < n_links; l++)
    capacity[l] = 100e9;
  ls_engine_init (&w.engine, &ls_evq_radix, &w);
  w.net = ls_flow_net_new (&w.engine, n_links, capacity, is_reference);
  for (uint32_t i = 0; i < n; i++) {
    Transfer *t = &transfers[i];
    for (uint32_t k = 0; k < PATH; k++)
      t->uses[k] = (LsFlowUse) { .resource = i / PER_HOST * LINKS + (i + k) % LINKS, .coef = LS_COEF_ONE };
    t->flow.uses = t->uses;
    t->flow.n_uses = PATH;
    ls_flow_init (&t->flow, transfer_over);
    transfer_begin (&w, t);
  }
  double start = ls_bench_cpu_s ();
  ls_engine_run (&w.engine);
  double rate = (double) n_transfers / (ls_bench_cpu_s () - start);
  ls_flow_net_free (w.net);
  ls_engine_clear (&w.engine);
  g_rand_free (w.rand);
  g_free (capacity);
  g_free (transfers);
  return rate;
}

int
main (void)
{
  static const struct {
    uint32_t n;
    uint64_t n_fast, n_reference;
  } sizes[] = { { 8, 500000, 500000 }, { 64, 500000, 50000 }, { 1024, 500000, 300 } };

  cli_keep_memory ();
  ls_bench_header ();
  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    double fast = transfers_per_s (sizes[i].n, sizes[i].n_fast, false);
    double plain = transfers_per_s (sizes[i].n, sizes[i].n_reference, true);
    ls_bench_print ("flow", sizes[i].n, "activities/s", fast, fast / plain);
  }
}
