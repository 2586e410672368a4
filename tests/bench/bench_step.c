/* A ring all-reduce of 1 GiB message by message, no symmetry used: 2 n (n - 1) messages
 * on a leaf-spine without oversubscription, a GPU to a node. Messages per second, seconds
 * with the cluster's building, and the memory at the peak. The reference is a bare loop
 * with a binary heap and one event a message, that knows no links and shares nothing. Then
 * by eight channels, each with an eighth of the array; and both without events, as they
 * meet nobody.
 *
 * Published for the same job on other machines, in seconds for 1,024 and 4,096 ranks:
 * ASTRA-sim 2.5 and 52.6 (5.5 GB), LogGOPSim 0.78 and -, SimGrid 3.9 and -; a bare heap
 * loop 0.074 and 1.31. */
#include "ls_bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/heap.h"
#include "exec/messages/messages.h"

#define BYTES 0x1p30
#define RATE  50e9
#define HOP   (2 * LS_US)

#define MOST_OF_CHANNELS 1024 /* GPUs: more take half a minute by events */

/* --- by the simulator ----------------------------------------------------------- */

static LsCluster *
build (uint32_t n)
{
  LsLinkSpec link = { .bandwidth_bytes_per_s = RATE, .efficiency = 1, .latency = LS_US / 2 };
  LsClusterSpec spec = {
    .gpu
    = { .hbm_bytes_per_s = 3.35e12, .hbm_efficiency = 0.9, .hbm_bytes = UINT64_C (80) << 30, .n_sm = 132 },
    .n_nodes = n,
    .gpus_per_node = 1,
    .server.pcie_switches = 1,
    .server.pcie = link,
    .nics.n = 1,
    .nics.port = link,
    .network.rails = 1,
    .network.nodes_per_leaf = 32,
    .network.oversubscription = 1,
    .network.spine = link,
  };
  g_autoptr (GError) error = NULL;
  LsCluster *c = ls_cluster_build (&spec, &error);
  if (!c) {
    fprintf (stderr, "bench_step: %s\n", error->message);
    exit (1);
  }
  return c;
}

static uint32_t
ring_sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  uint32_t back = round % s->n, to = place + 1;
  for (uint32_t lane = 0; lane < s->max_sends; lane++)
    ret[lane] = (LsSend) { .to = to < s->n ? to : 0,
                           .first = (place >= back ? place - back : place + s->n - back) + lane * s->n,
                           .n = 1,
                           .reduces = round < s->n - 1 };
  return s->max_sends;
}

static uint32_t
ring_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  return s->max_sends;
}

typedef LsTime (*TimeFn) (const LsScript *script, const LsCluster *cluster, const LsProgress *progress);

static LsTime
simulate_by (uint32_t n, uint32_t n_channels, TimeFn time)
{
  g_autoptr (LsCluster) c = build (n);
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = i;
  LsScript script = {
    .kind = LS_COLL_ALL_REDUCE,
    .n = n,
    .n_blocks = n * n_channels,
    .n_rounds = 2 * (n - 1),
    .max_sends = n_channels,
    .has_lanes = n_channels > 1,
    .block_bytes = BYTES / n / n_channels,
    .gpus = gpus,
    .cluster = c,
    .sends = ring_sends,
    .n_receives = ring_receives,
    .hop_intra = HOP,
    .hop_inter = HOP,
    .rate_intra = RATE / n_channels,
    .rate_inter = RATE / n_channels,
    .flows = LS_COEF_ONE,
    .hbm_from = 1.5,
    .hbm_to = 1.5,
  };
  return time (&script, c, NULL);
}

static LsTime
simulate (uint32_t n)
{
  return simulate_by (n, 1, ls_messages_time_by_events);
}

static LsTime
simulate_rounds (uint32_t n)
{
  return simulate_by (n, 1, ls_messages_time_alone);
}

#define N_CHANNELS 8

static LsTime
simulate_channels (uint32_t n)
{
  return simulate_by (n, N_CHANNELS, ls_messages_time_by_events);
}

static LsTime
simulate_channels_once (uint32_t n)
{
  return simulate_by (n, N_CHANNELS, ls_messages_time_alone);
}

/* --- by a bare loop --------------------------------------------------------------- */

typedef struct {
  LsTime at;
  uint32_t from;
} Item;

typedef struct {
  Item *items; /* [n + 1], from 1 */
  uint32_t n;
} Heap;

static void
heap_push (Heap *h, Item x)
{
  uint32_t i = ++h->n;
  for (; i > 1 && x.at < h->items[i / 2].at; i /= 2)
    h->items[i] = h->items[i / 2];
  h->items[i] = x;
}

static Item
heap_pop (Heap *h)
{
  Item first = h->items[1], x = h->items[h->n--];
  uint32_t i = 1;
  for (uint32_t child; (child = 2 * i) <= h->n; i = child) {
    if (child < h->n && h->items[child + 1].at < h->items[child].at)
      child++;
    if (x.at <= h->items[child].at)
      break;
    h->items[i] = h->items[child];
  }
  h->items[i] = x;
  return first;
}

/* A rank goes on when it has sent once more and received once more. */
static LsTime
loop (uint32_t n)
{
  LsTime message = HOP + ls_time_from_s_up (BYTES / n / RATE), now = 0;
  uint32_t n_rounds = 2 * (n - 1);
  g_autofree uint32_t *sent = g_new0 (uint32_t, n), *received = g_new0 (uint32_t, n),
                      *begun = g_new0 (uint32_t, n);
  Heap h = { .items = g_new (Item, n + 2) };
  for (uint32_t i = 0; i < n; i++, begun[i - 1] = 1)
    heap_push (&h, (Item) { message, i });
  while (h.n > 0) {
    Item x = heap_pop (&h);
    uint32_t ends[] = { x.from, x.from + 1 < n ? x.from + 1 : 0 };
    now = x.at;
    sent[ends[0]]++;
    received[ends[1]]++;
    for (int i = 0; i < 2; i++) {
      uint32_t p = ends[i];
      if (sent[p] == begun[p] && received[p] >= begun[p] && begun[p] < n_rounds) {
        begun[p]++;
        heap_push (&h, (Item) { now + message, p });
      }
    }
  }
  g_free (h.items);
  return now;
}

/* --- both --------------------------------------------------------------------------- */

static double
seconds (LsTime (*run) (uint32_t n), uint32_t n, LsTime expected)
{
  double best = 0;
  for (int i = 0; i < 3; i++) { /* what disturbs only slows */
    double start = ls_bench_cpu_s ();
    if (run (n) != expected) {
      fprintf (stderr, "bench_step: %u ranks: not 2 (n - 1) (latency + ceil (S / (n B)))\n", n);
      exit (1);
    }
    double took = ls_bench_cpu_s () - start;
    best = i == 0 ? took : MIN (best, took);
  }
  return best;
}

static void
run_channels (uint32_t n, LsTime expected)
{
  double messages = 2.0 * N_CHANNELS * n * (n - 1);
  if (n <= MOST_OF_CHANNELS)
    ls_bench_print ("step_channels", n, "messages/s", messages / seconds (simulate_channels, n, expected), 0);
  ls_bench_print ("step_rounds", n, "messages/s",
                  messages / N_CHANNELS / seconds (simulate_rounds, n, expected), 0);
  ls_bench_print ("step_channels_once", n, "s", seconds (simulate_channels_once, n, expected), 0);
}

int
main (void)
{
  static const uint32_t sizes[] = { 256, 1024, 4096 };
  struct rusage used;
  cli_keep_memory ();
  ls_bench_header ();
  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    uint32_t n = sizes[i];
    LsTime expected = 2 * (LsTime) (n - 1) * (HOP + ls_time_from_s_up (BYTES / n / RATE));
    double fast = seconds (simulate, n, expected), plain = seconds (loop, n, expected);
    ls_bench_print ("step_messages", n, "messages/s", 2.0 * n * (n - 1) / fast, plain / fast);
    ls_bench_print ("step_wall", n, "s", fast, 0);
    ls_bench_print ("step_bare_loop", n, "s", plain, 0);
    run_channels (n, expected);
  }
  getrusage (RUSAGE_SELF, &used);
  ls_bench_print ("step_memory", sizes[G_N_ELEMENTS (sizes) - 1], "MiB", (double) used.ru_maxrss / 1024, 0);
}
