/* ask/place_swaps.c — swaps of two nodes, of which one stands for all that are alike: see place.h. */
#include <math.h>
#include <string.h>

#include "ask/place_search.h"
#include "base/draw.h"
#include "base/order.h"
#include "plan/mesh.h"
#include "strategy/shard.h"
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
  LS_SMALLER_FIRST (x->turn, y->turn);
  LS_SMALLER_FIRST (x->a, y->a);
  return LS_ORDER (x->b, y->b);
}

/* Sum of the names of faults of a node's links, without its number. */
static guint
faults_of (const LsClusterSpec *spec, uint32_t node)
{
  g_autofree char *prefix = g_strdup_printf ("node%u/", node), *inside = g_strconcat (">", prefix, NULL);
  guint sum = 0;
  for (guint i = 0; spec->network.faults && i < spec->network.faults->len; i++) {
    const LsFault *f = &g_array_index (spec->network.faults, LsFault, i);
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
    kinds[i].leaf = spec->network.nodes_per_leaf > 0 ? i / spec->network.nodes_per_leaf : i;
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
  LS_SMALLER_FIRST (x->stages, y->stages);
  LS_SMALLER_FIRST (x->beside, y->beside);
  LS_SMALLER_FIRST (x->faults, y->faults);
  LS_SMALLER_FIRST (x->machine, y->machine);
  return ls_compare_uint32 (a, b);
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

/* Tries and clears the batch; whether one of it was faster than the best, in whose place it is then. Adds how
 * many were simulated, and how many could not be faster. */
static bool
keep_fastest (Search *x, Candidate *best, Candidate *batch, guint n, guint *n_tried, guint *n_pruned)
{
  x->limit = best->step;
  try_batch (x, batch, n);
  guint found = fastest_of (batch, n, best->step);
  for (guint i = 0; i < n; i++) {
    *n_tried += batch[i].step > 0;
    *n_pruned += batch[i].least > 0;
  }
  if (found < n) {
    Candidate old = *best;
    *best = batch[found];
    batch[found] = old;
  }
  for (guint i = 0; i < n; i++)
    candidate_clear (&batch[i]);
  return found < n;
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
  bool has_gained = keep_fastest (x, best, batch, n, &x->p->n_swaps, &x->p->n_pruned);
  x->p->n_kept += has_gained;
  *n_tries -= n;
  return has_gained;
}

/* ---- layers of stages, and micro-batches of replicas, by the speed of their nodes ---- */

/* Problem. Of stages, or of data-parallel replicas, with equal shares on GPUs of several kinds the slowest
 * sets the pace of all.
 *
 * Method. A micro-batch takes T_s (kind) on stage s: the kernels of its program alone, one after the other,
 * on a GPU of that kind, over its micro-batches. A layer of it takes t_s = max over the ranks of the stage
 * of T_s (kind) / L_s, with L_s the layers that it has now: stages get layers in proportion to 1 / t_s, what
 * is left by the largest remainder, at least one each. A micro-batch of replica d takes u_d = max over its
 * ranks of T_s (kind), times the layers that the candidate gives s over L_s: one by one each goes to the
 * replica where it is done first, (n_d + 1) u_d. From there one layer, or one micro-batch, at a time moves
 * from a stage or replica to another, by simulation, as long as one gains: that finds what embedding, head,
 * fill of pipelines and communication cost.
 *
 * Worked examples. 32 layers on two stages, a layer of 4 ms on the first and of 8 ms on the second: 21.3 and
 * 10.7 by proportion, 21 and 11. 16 micro-batches on two replicas of 3 and 5 ms: 10 and 6, 30 ms both; 8 and
 * 8 take 40.
 *
 * Deviations. Layers move in pipelines of one chunk per rank only. Layers and micro-batches by speed are not
 * dealt together; moves find what both give. That gradients stay right with unequal numbers is up to the
 * framework: each replica adds up its micro-batches, all divide by the global batch. Whale (USENIX ATC 2022)
 * balances data parallelism over unlike GPUs; Megatron-LM, torchtitan and DeepSpeed have one number. */

#define MOST_PARTS 8 /* of which all moves are tried; else those from the slowest */

char *
shares_text (const uint32_t *shares, uint32_t n)
{
  if (!shares)
    return NULL;
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0; i < n; i++)
    g_string_append_printf (out, "%s%u", i > 0 ? "," : "", shares[i]);
  return g_string_free (out, FALSE);
}

/* [n_stages] of the job as it is. */
static bool
layers_of (const LsJobResult *now, uint32_t *ret_layers)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_chunk_layers (&now->strategy, &now->model, ret_layers, diags);
}

/* --- speeds -------------------------------------------------------------------------------- */

/* Kernels of a program, one after the other. */
static double
program_s (const LsPlan *plan, const LsProgram *p, const LsCalibration *calibration, const LsGpu *gpu)
{
  double sum = 0;
  g_autofree double *of_segment = g_new (double, plan->n_segments + 1);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    of_segment[s] = -1;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t id = p->instances[i].segment;
    const LsSegment *seg = &plan->segments[id];
    if (of_segment[id] < 0) {
      of_segment[id] = 0;
      for (uint32_t o = 0; o < seg->n_ops; o++)
        if (ls_op_takes (seg->ops[o].kind, LS_TAKES_GPU) && seg->ops[o].kernel < plan->n_kernels)
          of_segment[id] += MAX (1, seg->ops[o].repeat)
              * ls_time_to_s (ls_kernel_cost (calibration, gpu, &plan->kernels[seg->ops[o].kernel]).alone);
    }
    sum += of_segment[id];
  }
  return sum;
}

/* Of the stages of the first replica, on GPUs of each kind. */
static void
find_speeds (Search *x, const LsHardware *hardware)
{
  const LsJobResult *now = x->p->now;
  const LsMesh mesh = ls_strategy_mesh (&now->strategy);
  uint32_t n_kinds = ls_cluster_spec_n_kinds (&now->cluster->spec);
  x->stage_s = g_new0 (double, now->strategy.pp *n_kinds);
  for (uint32_t stage = 0; stage < now->strategy.pp; stage++) {
    uint32_t rank = ls_mesh_rank (&mesh, (LsCoord) { .pp = stage });
    const LsProgram *p = &now->plan->programs[ls_plan_role (now->plan, rank)];
    for (uint32_t k = 0; k < n_kinds; k++) {
      const LsGpu *gpu = &ls_cluster_spec_of_kind (&now->cluster->spec, k)->gpu;
      LsCalibration room;
      const LsCalibration *calibration = ls_calibration_of_kind (&hardware->calibration, k, gpu, &room);
      x->stage_s[stage * n_kinds + k]
          = program_s (now->plan, p, calibration, gpu) / ls_strategy_micro_batches (&now->strategy, 0);
    }
  }
}

void
shares_init (Search *x)
{
  const LsJobResult *now = x->p->now;
  const LsStrategy *s = &now->strategy;
  LsHardware chosen;
  if (!now->cluster->kind_of_host || x->spec->trace)
    return;
  ls_hardware_for_job (now->hardware, s, s->gpus, &chosen);
  x->own_layers = g_new0 (uint32_t, s->pp * s->vpp);
  x->n_stages = s->pp > 1 && s->vpp == 1 && layers_of (now, x->own_layers) ? s->pp : 0;
  x->n_replicas = s->dp > 1 && !ls_strategy_why_even (s, &now->model) ? s->dp : 0;
  if (x->n_stages > 0 || x->n_replicas > 0)
    find_speeds (x, &chosen);
}

void
shares_clear (Search *x)
{
  g_clear_pointer (&x->stage_s, g_free);
  g_clear_pointer (&x->own_layers, g_free);
}

/* What a micro-batch takes at least on the slowest rank of each stage, [n_stages] for a layer of it, or of
 * each replica, [n_replicas]; the other NULL. */
static void
paces_of (const Search *x, const Candidate *c, double *ret_of_stage, double *ret_of_replica)
{
  const LsCluster *cluster = x->p->now->cluster;
  uint32_t n_kinds = ls_cluster_spec_n_kinds (&cluster->spec);
  LsMesh mesh = ls_strategy_mesh (&x->p->now->strategy);
  if (!c->is_own_order)
    mesh.order = c->order;
  for (uint32_t i = 0; ret_of_stage && i < x->n_stages; i++)
    ret_of_stage[i] = 0;
  for (uint32_t i = 0; ret_of_replica && i < x->n_replicas; i++)
    ret_of_replica[i] = 0;
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    LsCoord at = ls_mesh_coord (&mesh, r);
    uint32_t kind = ls_cluster_kind_of (cluster, ls_cluster_host_of (cluster, c->gpus[r]));
    double pace = x->stage_s[at.pp * n_kinds + kind],
           of_layer = x->n_stages > 0 ? pace / MAX (1, x->own_layers[at.pp]) : 0;
    if (ret_of_stage)
      ret_of_stage[at.pp] = fmax (ret_of_stage[at.pp], of_layer);
    if (ret_of_replica)
      ret_of_replica[at.dp] = fmax (ret_of_replica[at.dp], c->layers ? of_layer * c->layers[at.pp] : pace);
  }
}

/* --- shares -------------------------------------------------------------------------------- */

/* Of n layers by 1 / pace: whole numbers of at least 1, the largest remainders up. */
static void
deal (uint32_t n, const double *pace, uint32_t n_stages, uint32_t *ret_layers)
{
  double sum = 0;
  uint32_t n_dealt = 0;
  g_autofree double *rest = g_new (double, n_stages);
  for (uint32_t i = 0; i < n_stages; i++)
    sum += 1 / pace[i];
  for (uint32_t i = 0; i < n_stages; i++) {
    double share = n / pace[i] / sum;
    ret_layers[i] = (uint32_t) fmax (1, floor (share));
    rest[i] = share - ret_layers[i];
    n_dealt += ret_layers[i];
  }
  for (; n_dealt != n; n_dealt += n_dealt < n ? 1 : -1) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < n_stages; i++)
      if (n_dealt < n ? rest[i] > rest[at] : ret_layers[i] > 1 && (ret_layers[at] == 1 || rest[i] < rest[at]))
        at = i;
    ret_layers[at] += n_dealt < n ? 1 : -1;
    rest[at] += n_dealt < n ? -1 : 1;
  }
}

/* Of n micro-batches, one by one to where it is done first; at least 1 each. */
static void
deal_counts (uint32_t n, const double *pace, uint32_t n_replicas, uint32_t *ret_counts)
{
  for (uint32_t i = 0; i < n_replicas; i++)
    ret_counts[i] = 1;
  for (uint32_t k = n_replicas; k < n; k++) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < n_replicas; i++)
      if ((ret_counts[i] + 1) * pace[i] < (ret_counts[first] + 1) * pace[first])
        first = i;
    ret_counts[first]++;
  }
}

static uint32_t
sum_of (const uint32_t *shares, uint32_t n)
{
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += shares[i];
  return sum;
}

static uint32_t *
own_counts (const Search *x)
{
  uint32_t *counts = g_new (uint32_t, x->n_replicas + 1);
  for (uint32_t d = 0; d < x->n_replicas; d++)
    counts[d] = ls_strategy_micro_batches (&x->p->now->strategy, d);
  return counts;
}

static guint
layers_by_speed (const Search *x, const Candidate *c, Candidate *ret_other)
{
  uint32_t n = x->n_stages > 0 ? sum_of (x->own_layers, x->n_stages) : 0;
  if (x->n_stages == 0 || n < x->n_stages)
    return 0;
  g_autofree double *pace = g_new (double, x->n_stages);
  g_autofree uint32_t *layers = g_new (uint32_t, x->n_stages);
  paces_of (x, c, pace, NULL);
  deal (n, pace, x->n_stages, layers);
  if (memcmp (layers, x->own_layers, x->n_stages * sizeof *layers) == 0)
    return 0;
  *ret_other = candidate_copy (x, c);
  ret_other->layers = g_steal_pointer (&layers);
  return 1;
}

static guint
counts_by_speed (const Search *x, const Candidate *c, Candidate *ret_other)
{
  if (x->n_replicas == 0)
    return 0;
  g_autofree double *pace = g_new (double, x->n_replicas);
  g_autofree uint32_t *counts = g_new (uint32_t, x->n_replicas), *own = own_counts (x);
  paces_of (x, c, NULL, pace);
  deal_counts (sum_of (own, x->n_replicas), pace, x->n_replicas, counts);
  if (memcmp (counts, own, x->n_replicas * sizeof *counts) == 0)
    return 0;
  *ret_other = candidate_copy (x, c);
  ret_other->counts = g_steal_pointer (&counts);
  return 1;
}

guint
shares_by_speed (const Search *x, const Candidate *c, Candidate *ret_others)
{
  guint n = layers_by_speed (x, c, ret_others);
  return n + counts_by_speed (x, c, ret_others + n);
}

/* --- moves --------------------------------------------------------------------------------- */

/* Layers of stages, or micro-batches of replicas, of a candidate. */
static uint32_t **
shares_of (Candidate *c, bool is_of_layers)
{
  return is_of_layers ? &c->layers : &c->counts;
}

static uint32_t
slowest_of (const uint32_t *shares, const double *pace, uint32_t n)
{
  uint32_t slowest = 0;
  for (uint32_t i = 1; i < n; i++)
    if (pace[i] * shares[i] > pace[slowest] * shares[slowest])
      slowest = i;
  return slowest;
}

/* Whether a part before this one has the same share and pace: a move of either is the other's. */
static bool
is_repeated (const uint32_t *shares, const double *pace, uint32_t at)
{
  for (uint32_t i = 0; i < at; i++)
    if (shares[i] == shares[at] && pace[i] == pace[at])
      return true;
  return false;
}

/* One round: whether it gained, in place. */
static bool
try_moves (Search *x, Candidate *best, bool is_of_layers)
{
  uint32_t n_parts = is_of_layers ? x->n_stages : x->n_replicas, *shares = *shares_of (best, is_of_layers);
  g_autofree double *pace = g_new (double, n_parts);
  paces_of (x, best, is_of_layers ? pace : NULL, is_of_layers ? NULL : pace);
  uint32_t slowest = slowest_of (shares, pace, n_parts);
  g_autoptr (GArray) moves = g_array_new (FALSE, FALSE, sizeof (Candidate));
  for (uint32_t from = 0; from < n_parts; from++)
    for (uint32_t to = 0; to < n_parts; to++) {
      bool is_known = !is_of_layers && (is_repeated (shares, pace, from) || is_repeated (shares, pace, to));
      if (from == to || shares[from] < 2 || is_known || (n_parts > MOST_PARTS && from != slowest))
        continue;
      Candidate c = candidate_copy (x, best);
      (*shares_of (&c, is_of_layers))[from]--;
      (*shares_of (&c, is_of_layers))[to]++;
      g_array_append_val (moves, c);
    }
  guint n_tried = 0, n_pruned = 0; /* no swaps: they do not count */
  return keep_fastest (x, best, (Candidate *) (gpointer) moves->data, moves->len, &n_tried, &n_pruned);
}

static void
search_shares (Search *x, Candidate *best, bool is_of_layers)
{
  uint32_t n_parts = is_of_layers ? x->n_stages : x->n_replicas;
  bool is_own = !*shares_of (best, is_of_layers), has_gained = false;
  if (n_parts == 0)
    return;
  if (is_own)
    *shares_of (best, is_of_layers)
        = is_of_layers ? g_memdup2 (x->own_layers, n_parts * sizeof *x->own_layers) : own_counts (x);
  while (try_moves (x, best, is_of_layers))
    has_gained = true;
  if (is_own && !has_gained)
    g_clear_pointer (shares_of (best, is_of_layers), g_free);
}

void
shares_search (Search *x, Candidate *best)
{
  search_shares (x, best, true);
  search_shares (x, best, false);
}
