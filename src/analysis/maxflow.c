#include "analysis/maxflow.h"

#include <string.h>

#define NO_ARC UINT32_MAX

/* Arc 2 i is edge i, arc 2 i + 1 its way back. */
typedef struct {
  uint32_t to, next; /* next arc that leaves the same vertex */
  int64_t left;
} Arc;

typedef struct {
  uint32_t n, source, sink;
  Arc *arcs;
  uint32_t n_arcs;
  uint32_t *first, *current; /* [n] arcs: of a vertex; not yet found useless in this round */
  uint32_t *level, *queue;   /* [n] steps from the source; UINT32_MAX: out of reach */
  uint32_t *way;             /* [n] arcs from the source to where the search stands */
} Net;

static void
add_arc (Net *net, uint32_t from, uint32_t to, int64_t capacity)
{
  Arc there = { to, net->first[from], capacity }, back = { from, net->first[to], 0 };
  net->arcs[net->n_arcs] = there;
  net->first[from] = net->n_arcs++;
  net->arcs[net->n_arcs] = back;
  net->first[to] = net->n_arcs++;
}

/* All sources become one, all sinks too: what leaves one end is what any source sends. */
static uint32_t
place (const Net *net, const int8_t *side, uint32_t v)
{
  return side[v] < 0 ? net->source : side[v] > 0 ? net->sink : v;
}

static void
net_init (Net *net, uint32_t n_vertices, const GArray *edges, const int8_t *side)
{
  *net = (Net) { .n = n_vertices + 2, .source = n_vertices, .sink = n_vertices + 1 };
  net->arcs = g_new (Arc, 2 * (gsize) edges->len + 1);
  net->first = g_new (uint32_t, net->n);
  net->current = g_new (uint32_t, net->n);
  net->level = g_new (uint32_t, net->n);
  net->queue = g_new (uint32_t, net->n);
  net->way = g_new (uint32_t, net->n);
  memset (net->first, 0xff, net->n * sizeof *net->first);
  for (guint i = 0; i < edges->len; i++) {
    const LsFlowEdge *e = &g_array_index (edges, LsFlowEdge, i);
    uint32_t from = place (net, side, e->from), to = place (net, side, e->to);
    if (from != to)
      add_arc (net, from, to, e->capacity);
  }
}

static void
net_clear (Net *net)
{
  g_free (net->arcs);
  g_free (net->first);
  g_free (net->current);
  g_free (net->level);
  g_free (net->queue);
  g_free (net->way);
}

/* Levels by breadth; whether the sink is in reach. */
static gboolean
find_levels (Net *net)
{
  uint32_t n = 0;
  memset (net->level, 0xff, net->n * sizeof *net->level);
  net->level[net->source] = 0;
  net->queue[n++] = net->source;
  for (uint32_t i = 0; i < n && net->level[net->sink] == UINT32_MAX; i++)
    for (uint32_t a = net->first[net->queue[i]]; a != NO_ARC; a = net->arcs[a].next) {
      uint32_t to = net->arcs[a].to;
      if (net->arcs[a].left == 0 || net->level[to] != UINT32_MAX)
        continue;
      net->level[to] = net->level[net->queue[i]] + 1;
      net->queue[n++] = to;
    }
  return net->level[net->sink] != UINT32_MAX;
}

/* Sends what the way of n arcs can carry. */
static int64_t
send (Net *net, uint32_t n)
{
  int64_t amount = INT64_MAX;
  for (uint32_t i = 0; i < n; i++)
    amount = MIN (amount, net->arcs[net->way[i]].left);
  for (uint32_t i = 0; i < n; i++) {
    net->arcs[net->way[i]].left -= amount;
    net->arcs[net->way[i] ^ 1].left += amount;
  }
  return amount;
}

/* Saturates all shortest ways; a loop, as ways may be long. */
static int64_t
saturate (Net *net)
{
  int64_t sent = 0;
  uint32_t depth = 0, v = net->source;
  memcpy (net->current, net->first, net->n * sizeof *net->first);
  for (;;) {
    if (v == net->sink) {
      sent += send (net, depth);
      uint32_t full = 0;
      while (net->arcs[net->way[full]].left > 0)
        full++;
      v = net->arcs[net->way[full] ^ 1].to; /* go on before the first arc that is full */
      depth = full;
      continue;
    }
    uint32_t a = net->current[v];
    while (a != NO_ARC && (net->arcs[a].left == 0 || net->level[net->arcs[a].to] != net->level[v] + 1))
      a = net->arcs[a].next;
    net->current[v] = a;
    if (a != NO_ARC) {
      net->way[depth++] = a;
      v = net->arcs[a].to;
    } else if (depth > 0) {
      a = net->way[--depth];
      v = net->arcs[a ^ 1].to;
      net->current[v] = net->arcs[a].next;
    } else {
      return sent;
    }
  }
}

int64_t
ls_max_flow (uint32_t n_vertices, const GArray *edges, const int8_t *side)
{
  Net net;
  int64_t flow = 0;
  net_init (&net, n_vertices, edges, side);
  while (find_levels (&net))
    flow += saturate (&net);
  net_clear (&net);
  return flow;
}
