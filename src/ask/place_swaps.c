/* ask/place_swaps.c — swaps of two nodes, of which one stands for all that are alike: see place.h. */
#include <string.h>

#include "ask/place_search.h"
#include "base/draw.h"
#include "base/order.h"
#include "strategy/strategy.h"

/* What of a node a swap can change: which stages its ranks have, which leaf it is at, which faults and which
 * GPUs it has; what else is at the leaf. */
typedef struct {
  uint64_t stages, beside; /* sums over ranks, and over nodes; 0: no rank */
  uint32_t leaf, machine;
  guint faults;
} NodeKind;

typedef struct {
  uint32_t a, b;
  int turn;
} Swap;

static int
by_turn (gconstpointer a, gconstpointer b)
{
  const Swap *x = a, *y = b;
  int order = LS_ORDER (x->turn, y->turn);
  order = order ? order : LS_ORDER (x->a, y->a);
  return order ? order : LS_ORDER (x->b, y->b);
}

/* Sum of the names of faults of a node's links, without its number. */
static guint
faults_of (const LsClusterSpec *spec, uint32_t node)
{
  g_autofree char *prefix = g_strdup_printf ("node%u/", node), *inside = g_strconcat (">", prefix, NULL);
  guint sum = 0;
  for (guint i = 0; spec->faults && i < spec->faults->len; i++) {
    const LsFault *f = &g_array_index (spec->faults, LsFault, i);
    const char *to = strstr (f->link, inside);
    if (g_str_has_prefix (f->link, prefix))
      sum += g_str_hash (f->link + strlen (prefix)) | 1;
    else if (to)
      sum += g_str_hash (to + strlen (inside)) | 1;
  }
  return sum;
}

/* Sums over the nodes of each leaf, whatever their order. */
static void
add_leaves (NodeKind *kinds, uint32_t n)
{
  g_autofree uint64_t *sum = g_new0 (uint64_t, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t state = kinds[i].stages + kinds[i].faults + kinds[i].machine;
    sum[kinds[i].leaf] += ls_draw_bits (&state);
  }
  for (uint32_t i = 0; i < n; i++)
    kinds[i].beside = sum[kinds[i].leaf];
}

/* [n_nodes], newly allocated. Where fabrics are listed each node is at a place of its own. */
static NodeKind *
kinds_of (const Search *x, const Candidate *c)
{
  const LsClusterSpec *spec = &x->p->now->cluster->spec;
  bool is_trace = x->spec->trace != NULL;
  LsMesh mesh = is_trace ? (LsMesh) { 0 } : ls_strategy_mesh (&x->p->now->strategy);
  NodeKind *kinds = g_new0 (NodeKind, spec->n_nodes);
  if (!c->is_own_order)
    mesh.order = c->order;
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    uint64_t state = is_trace ? ls_plan_role (x->p->now->plan, r) : ls_mesh_coord (&mesh, r).pp;
    kinds[ls_cluster_host_of (x->p->now->cluster, c->gpus[r])].stages += ls_draw_bits (&state);
  }
  for (uint32_t i = 0; i < spec->n_nodes; i++) {
    kinds[i].leaf = spec->nodes_per_leaf > 0 ? i / spec->nodes_per_leaf : i;
    kinds[i].machine = ls_cluster_kind_of (x->p->now->cluster, i);
    kinds[i].faults = faults_of (spec, i);
  }
  add_leaves (kinds, spec->n_nodes);
  return kinds;
}

static bool
is_same_kind (const NodeKind *a, const NodeKind *b)
{
  return a->stages == b->stages && a->beside == b->beside && a->faults == b->faults
      && a->machine == b->machine;
}

/* Nodes that are alike: the first, and the first at another leaf (UINT32_MAX: none is). */
typedef struct {
  uint32_t first, elsewhere;
} Alike;

static int
by_kind (gconstpointer a, gconstpointer b, gpointer of)
{
  const NodeKind *kinds = of, *x = &kinds[*(const uint32_t *) a], *y = &kinds[*(const uint32_t *) b];
  int order = LS_ORDER (x->stages, y->stages);
  order = order ? order : LS_ORDER (x->beside, y->beside);
  order = order ? order : LS_ORDER (x->faults, y->faults);
  order = order ? order : LS_ORDER (x->machine, y->machine);
  return order ? order : LS_ORDER (*(const uint32_t *) a, *(const uint32_t *) b);
}

/* Alike of each kind; newly allocated. */
static GArray *
group_kinds (const NodeKind *kinds, uint32_t n)
{
  GArray *groups = g_array_new (FALSE, FALSE, sizeof (Alike)),
         *nodes = g_array_sized_new (FALSE, FALSE, sizeof (uint32_t), n);
  for (uint32_t i = 0; i < n; i++)
    g_array_append_val (nodes, i);
  g_array_sort_with_data (nodes, by_kind, (gpointer) kinds);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t node = g_array_index (nodes, uint32_t, i);
    Alike *last = groups->len > 0 ? &g_array_index (groups, Alike, groups->len - 1) : NULL;
    if (!last || !is_same_kind (&kinds[last->first], &kinds[node]))
      g_array_append_val (groups, ((Alike) { node, UINT32_MAX }));
    else if (last->elsewhere == UINT32_MAX && kinds[node].leaf != kinds[last->first].leaf)
      last->elsewhere = node;
  }
  g_array_unref (nodes);
  return groups;
}

/* How soon a swap is tried; N_TURNS: never. The two differ in stages, and in leaf, machine or faults.
 * Of those with a fault first the ones that leave the node. */
#define N_TURNS 4

static int
turn_of (const Search *x, const NodeKind *a, const NodeKind *b)
{
  bool is_free = a->stages == 0 || b->stages == 0, has_fault = a->faults != 0 || b->faults != 0;
  if (a->stages == b->stages || (a->leaf == b->leaf && a->faults == b->faults && a->machine == b->machine)
      || (is_free && !x->options->any_nodes))
    return N_TURNS;
  return (has_fault ? 0 : 2) + (is_free ? 0 : 1);
}

/* Of nodes of unequal size one has no room for all that are on the other. */
static bool
has_room (const Search *x, uint32_t a, uint32_t b)
{
  const LsCluster *c = x->p->now->cluster;
  return ls_cluster_gpus_of (c, a) == ls_cluster_gpus_of (c, b);
}

/* The first swap between nodes of two kinds, with its turn. */
static void
add_swap (const Search *x, const NodeKind *kinds, const Alike *p, const Alike *q, GArray *swaps)
{
  const uint32_t ours[] = { p->first, p->elsewhere }, theirs[] = { q->first, q->elsewhere };
  Swap best = { .turn = N_TURNS };
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      if (ours[i] == UINT32_MAX || theirs[j] == UINT32_MAX || !has_room (x, ours[i], theirs[j]))
        continue;
      Swap swap = { MIN (ours[i], theirs[j]), MAX (ours[i], theirs[j]),
                    turn_of (x, &kinds[ours[i]], &kinds[theirs[j]]) };
      if (swap.turn < N_TURNS && (best.turn == N_TURNS || by_turn (&swap, &best) < 0))
        best = swap;
    }
  if (best.turn < N_TURNS)
    g_array_append_val (swaps, best);
}

/* Swaps of which one stands for all that are alike. */
static GArray *
find_swaps (const Search *x, const Candidate *c)
{
  g_autofree NodeKind *kinds = kinds_of (x, c);
  g_autoptr (GArray) groups = group_kinds (kinds, x->p->now->cluster->spec.n_nodes);
  GArray *swaps = g_array_new (FALSE, FALSE, sizeof (Swap));
  for (guint p = 0; p < groups->len; p++)
    for (guint q = p + 1; q < groups->len; q++)
      add_swap (x, kinds, &g_array_index (groups, Alike, p), &g_array_index (groups, Alike, q), swaps);
  g_array_sort (swaps, by_turn);
  return swaps;
}

static Candidate
swapped (const Search *x, const Candidate *c, Swap swap)
{
  const LsCluster *cluster = x->p->now->cluster;
  Candidate other = candidate_copy (x, c);
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    uint32_t node = ls_cluster_host_of (cluster, other.gpus[r]),
             local = ls_cluster_local_of (cluster, other.gpus[r]);
    if (node == swap.a || node == swap.b)
      other.gpus[r] = ls_cluster_gpu_at (cluster, node == swap.a ? swap.b : swap.a, local);
  }
  return other;
}

bool
try_swaps (Search *x, Candidate *best, guint *n_tries)
{
  g_autoptr (GArray) swaps = find_swaps (x, best);
  guint n = MIN (swaps->len, (*n_tries + 1) / 2);
  if (x->p->n_kept == 0)
    x->p->n_left_out = swaps->len - n;
  g_autofree Candidate *batch = g_new0 (Candidate, n + 1);
  for (guint i = 0; i < n; i++)
    batch[i] = swapped (x, best, g_array_index (swaps, Swap, i));
  x->limit = best->step;
  try_batch (x, batch, n);
  guint found = fastest_of (batch, n, best->step);
  for (guint i = 0; i < n; i++) {
    x->p->n_swaps += batch[i].step > 0;
    x->p->n_pruned += batch[i].least > 0;
  }
  if (found < n) {
    Candidate old = *best;
    *best = batch[found];
    batch[found] = old;
    x->p->n_kept++;
  }
  for (guint i = 0; i < n; i++)
    candidate_clear (&batch[i]);
  *n_tries -= n;
  return found < n;
}
