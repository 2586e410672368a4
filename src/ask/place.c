#include "ask/place.h"

#include <math.h>
#include <string.h>

#include "ask/whatif.h"
#include "base/draw.h"
#include "base/list.h"
#include "base/order.h"
#include "cluster/cluster.h"
#include "data/jobs/read_placement.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

/* A simulation takes as long as so many classes of ranks, and a 16th of a class for each rank. */
#define TRIES         2048
#define RANKS_A_CLASS 16
#define MOST_SEATS    32 /* ways to deal the GPUs: as given, in order, by kind or 3! axes, 4! digits */
#define MOST_DIGITS   4  /* of the ranks of a trace */

/* What may be dealt unevenly: layers to stages, micro-batches to replicas. */
enum { LAYERS, COUNTS, N_SHARES };

typedef struct {
  LsRankOrder order;
  bool is_own_order; /* the job's, as it names it */
  const char *seats_name;
  uint32_t *gpus;             /* [n_ranks], owned                              */
  uint32_t *shares[N_SHARES]; /* [n_parts], owned; NULL: as the job's          */
  LsTime step, least;
  char *refused;
} Candidate;

typedef struct {
  const LsJobSpec *spec;
  const LsPlaceOptions *options;
  const LsProgress *progress;
  LsRunOptions run;
  LsPlace *p;
  uint32_t n_ranks;
  uint32_t n_parts[N_SHARES]; /* stages, replicas whose shares may differ; 0: they may not */
  uint32_t *own[N_SHARES];    /* [n_parts] of the job as it is */
  double *stage_s;  /* [pp * kinds of nodes] what a micro-batch takes there; NULL: nothing may differ */
  Candidate *batch; /* of the present round */
  LsTime limit;     /* what a candidate has to be below; LS_TIME_NEVER: nothing */
} Search;

static void
candidate_clear (Candidate *c)
{
  g_free (c->gpus);
  g_free (c->refused);
  for (int which = 0; which < N_SHARES; which++)
    g_free (c->shares[which]);
}

/* A copy of its own, without a step. */
static Candidate
candidate_copy (const Search *x, const Candidate *c)
{
  Candidate copy = *c;
  copy.step = copy.least = 0;
  copy.refused = NULL;
  copy.gpus = g_memdup2 (c->gpus, x->n_ranks * sizeof *c->gpus);
  for (int which = 0; which < N_SHARES; which++)
    copy.shares[which] = g_memdup2 (c->shares[which], x->n_parts[which] * sizeof (uint32_t));
  return copy;
}

/* --- one candidate --------------------------------------------------------------------------------- */

/* An order without the degrees of 1, newly allocated: "tp-pp-dp". */
static char *
short_order (const Search *x, LsRankOrder order)
{
  if (x->spec->trace)
    return g_strdup ("the trace's");
  const LsStrategy *s = &x->p->now->strategy;
  bool has_experts = x->p->now->model.moe.n_experts > 0;
  const uint32_t degree[LS_N_DIMS]
      = { MAX (s->tp, has_experts ? s->experts.etp : 1), s->cp, has_experts ? s->ep : 1, s->dp, s->pp };
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (order, dims);
  GString *out = g_string_new (NULL);
  for (int i = 0; i < LS_N_DIMS; i++)
    if (degree[dims[i]] > 1)
      g_string_append_printf (out, "%s%s", out->len > 0 ? "-" : "", ls_dim_names[dims[i]]);
  return g_string_free (out->len > 0 ? out : g_string_append (out, "tp"), FALSE);
}

static LsAllocation *
allocation_of (const Search *x, const Candidate *c)
{
  const LsCluster *cluster = x->p->now->cluster;
  LsSeat *seats = g_new0 (LsSeat, x->n_ranks);
  for (uint32_t r = 0; r < x->n_ranks; r++)
    seats[r] = (LsSeat) { .node = ls_cluster_host_of (cluster, c->gpus[r]),
                          .gpu = ls_cluster_local_of (cluster, c->gpus[r]) };
  return ls_allocation_new (LS_ALLOCATION_RANKS, seats, x->n_ranks, NULL);
}

/* The job in that order on these GPUs. */
static void
strategy_of (const Search *x, const Candidate *c, LsStrategy *ret_s)
{
  ls_strategy_copy (ret_s, &x->p->now->strategy);
  ls_strategy_forget_placement (ret_s);
  if (!c->is_own_order) {
    g_free (ret_s->layout.rank_order);
    ret_s->layout.rank_order = c->order == 0 ? NULL : short_order (x, c->order);
  }
  if (c->shares[LAYERS]) {
    ls_strategy_forget_layers (ret_s);
    ret_s->layout.n_layers_per_chunk = ret_s->pp;
    ret_s->layout.layers_per_chunk = g_memdup2 (c->shares[LAYERS], ret_s->pp * sizeof *c->shares[LAYERS]);
  }
  if (c->shares[COUNTS]) {
    g_free (ret_s->layout.micro_batches_per_replica);
    ret_s->layout.n_micro_batches_per_replica = ret_s->dp;
    ret_s->layout.micro_batches_per_replica
        = g_memdup2 (c->shares[COUNTS], ret_s->dp * sizeof *c->shares[COUNTS]);
  }
  ret_s->layout.allocation = allocation_of (x, c);
}

/* The candidate up to its plan; of a trace, whose programs no order changes, its ranks on these GPUs. */
static LsJobResult *
prepare (const Search *x, const Candidate *c, GError **error)
{
  const LsJobResult *now = x->p->now;
  LsStrategy s;
  if (x->spec->trace) {
    LsJobSpec one; /* owns a copy of all */
    ls_job_spec_copy (x->spec, &one);
    ls_strategy_forget_placement (&one.strategy);
    one.strategy.layout.allocation = allocation_of (x, c);
    LsJobResult *prepared = ls_job_spec_prepare (&one, error);
    ls_job_spec_clear (&one);
    return prepared;
  }
  strategy_of (x, c, &s);
  LsJobResult *prepared = ls_job_prepare (&now->model, now->hardware, now->cluster->spec.n_nodes, &s, error);
  ls_strategy_clear (&s);
  return prepared;
}

/* Step, lower bound or refusal. */
static void
try_candidate (guint i, gpointer data)
{
  const Search *x = data;
  Candidate *c = &x->batch[i];
  const LsJobResult *now = x->p->now;
  g_autoptr (GError) error = NULL;
  LsJobResult *prepared = prepare (x, c, &error);
  if (prepared && !ls_software_check (x->spec->program, &now->model, &prepared->strategy, &error))
    g_clear_pointer (&prepared, ls_job_result_free);
  if (prepared && now->cluster->kind_of_host && now->report.fits) { /* what fits is to fit then too */
    const LsMemoryInput in = ls_job_result_memory_input (prepared, now->hardware, &x->run.memory);
    g_autoptr (LsMemory) memory = ls_memory_new (&in);
    const LsClassMemory *fullest = ls_memory_fullest (memory);
    if (fullest->needed_bytes > fullest->capacity_bytes) {
      c->refused = g_strdup ("a rank does not fit into the memory of its GPU");
      ls_job_result_free (prepared);
      return;
    }
  }
  LsTime least = prepared ? ls_job_bound (prepared, now->hardware, &x->run) : 0;
  if (prepared && least >= x->limit) {
    c->least = least;
    ls_job_result_free (prepared);
    return;
  }
  g_autoptr (LsJobResult) r
      = ls_job_run_prepared (prepared, now->hardware, &x->run, NULL, error ? NULL : &error);
  if (r)
    c->step = r->timeline->window_end - r->timeline->window_start;
  else
    c->refused = ls_what_if_reason (error);
}

/* Each has its step, its lower bound, or why it is refused. */
static void
try_batch (Search *x, Candidate *batch, guint n)
{
  x->batch = batch;
  ls_parallel (n, x->options->n_threads, try_candidate, x, x->progress);
}

/* The fastest below the limit, of equal ones the first; n: none is. */
static guint
fastest_of (const Candidate *batch, guint n, LsTime limit)
{
  guint best = n;
  for (guint i = 0; i < n; i++)
    if (batch[i].step > 0 && batch[i].step < limit) {
      best = i;
      limit = batch[i].step;
    }
  return best;
}

/* --- ways to deal the GPUs -------------------------------------------------------------------------- */

/* The chips of whole slices with their axes in another order, the fastest first. */
static uint32_t *
along_axes (const LsClusterSpec *spec, uint32_t n_ranks, const uint32_t axes[LS_TORUS_AXES])
{
  const LsTorusSpec *t = &spec->torus;
  uint32_t *gpus = g_new (uint32_t, n_ranks), n = spec->gpus_per_node;
  for (uint32_t r = 0; r < n_ranks; r++) {
    uint32_t rest = r % n;
    LsTorusCoord at = { { 0 } };
    for (int i = 0; i < LS_TORUS_AXES; i++) {
      at.at[axes[i]] = rest % t->dims[axes[i]];
      rest /= t->dims[axes[i]];
    }
    gpus[r] = r / n * n + ls_torus_chip (t, at);
  }
  return gpus;
}

/* Takes gpus, unless these are there. */
static void
add_seats (Candidate *all, guint *n, const char *name, uint32_t *gpus, uint32_t n_ranks)
{
  guint i = 0;
  while (i < *n && memcmp (all[i].gpus, gpus, n_ranks * sizeof *gpus) != 0)
    i++;
  if (i < *n)
    g_free (gpus);
  else
    all[(*n)++] = (Candidate) { .seats_name = name, .gpus = gpus };
}

/* The digits of the ranks of a trace, the fastest first, as its groups divide them: a group of k ranks
 * that are s apart ends a digit at s and at k s, and a stage s ranks on one at s. Returns how many; 0:
 * they are no digits, or too many. */
static guint
find_digits (const LsPlan *plan, uint32_t ret_degree[MOST_DIGITS])
{
  uint32_t cuts[2 * LS_N_SLOTS + 2] = { plan->n_ranks }, n = 1, before = 1,
                                 next = ls_plan_binding (plan, 0).peer[1];
  guint n_digits = 0;
  if (next != UINT32_MAX && next > 0)
    cuts[n++] = next;
  for (int slot = 0; slot < LS_SLOT_PREV; slot++) {
    uint32_t member, id = ls_plan_comm (plan, 0, (LsSlot) slot, &member);
    const LsCommunicator c
        = id == UINT32_MAX ? (LsCommunicator) { .n_ranks = 0 } : ls_plan_communicator (plan, id);
    uint32_t apart = c.n_ranks > 1 ? c.offsets[1] - c.offsets[0] : 0;
    bool is_digit
        = apart > 0 && plan->n_ranks % ((uint64_t) c.n_ranks * apart) == 0; /* no embeddings of two stages */
    for (uint32_t i = 2; i < c.n_ranks && is_digit; i++)
      is_digit = c.offsets[i] - c.offsets[i - 1] == apart;
    if (!is_digit)
      continue;
    cuts[n++] = apart;
    cuts[n++] = c.n_ranks * apart;
  }
  qsort (cuts, n, sizeof *cuts, ls_compare_uint32);
  for (uint32_t i = 0; i < n; i++) {
    if (cuts[i] % before != 0 || cuts[i] > plan->n_ranks || (cuts[i] > before && n_digits == MOST_DIGITS))
      return 0;
    if (cuts[i] > before)
      ret_degree[n_digits++] = cuts[i] / before;
    before = cuts[i];
  }
  return n_digits;
}

/* The ranks of a trace in an order of their digits: those that differ in the first of these are
 * neighbours. */
static void
add_by_digits (const Search *x, const uint32_t *sorted, guint n_digits, const uint32_t *degree,
               const guint *order, Candidate *all, guint *n)
{
  uint32_t *gpus = g_new (uint32_t, x->n_ranks), stride[MOST_DIGITS] = { 1 };
  g_autoptr (GString) name = g_string_new ("strides");
  for (guint i = 1; i < n_digits; i++)
    stride[i] = stride[i - 1] * degree[i - 1];
  for (guint i = 0; i < n_digits; i++)
    g_string_append_printf (name, "%s%u", i > 0 ? "-" : " ", stride[order[i]]);
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    uint32_t at = 0, weight = 1;
    for (guint i = 0; i < n_digits; i++) {
      at += weight * (r / stride[order[i]] % degree[order[i]]);
      weight *= degree[order[i]];
    }
    gpus[r] = sorted[at];
  }
  add_seats (all, n, g_intern_string (name->str), gpus, x->n_ranks);
}

static void
add_all_by_digits (const Search *x, const uint32_t *sorted, Candidate *all, guint *n)
{
  uint32_t degree[MOST_DIGITS];
  guint n_digits = find_digits (x->p->now->plan, degree);
  for (guint code = 0; n_digits > 1 && code < 256; code++) { /* two bits for each place */
    guint order[MOST_DIGITS], seen = 0;
    for (guint i = 0; i < n_digits; i++) {
      order[i] = code >> (2 * i) & 3;
      seen |= 1U << order[i];
    }
    if (code >> (2 * n_digits) == 0 && seen == (1U << n_digits) - 1)
      add_by_digits (x, sorted, n_digits, degree, order, all, n);
  }
}

/* Each with its name and GPUs; how many there are. */
static guint
find_seats (const Search *x, Candidate *ret_all)
{
  static const struct {
    const char *name;
    uint32_t axes[LS_TORUS_AXES];
  } axes[] = { { "axes x-z-y", { 0, 2, 1 } },
               { "axes y-x-z", { 1, 0, 2 } },
               { "axes y-z-x", { 1, 2, 0 } },
               { "axes z-x-y", { 2, 0, 1 } },
               { "axes z-y-x", { 2, 1, 0 } } };
  const LsClusterSpec *spec = &x->p->now->cluster->spec;
  const uint32_t *given = ls_plan_gpus (x->p->now->plan);
  uint32_t n_ranks = x->n_ranks, *sorted = g_memdup2 (given, n_ranks * sizeof *given);
  guint n = 0;
  add_seats (ret_all, &n, "as given", g_memdup2 (given, n_ranks * sizeof *given), n_ranks);
  qsort (sorted, n_ranks, sizeof *sorted, ls_compare_uint32);
  bool is_of_slices = ls_cluster_traits (spec)->is_slice && n_ranks % spec->gpus_per_node == 0
      && sorted[n_ranks - 1] == n_ranks - 1;
  const LsCluster *c = x->p->now->cluster;
  uint32_t *kinds = g_new (uint32_t, n_ranks), at = 0; /* each kind in the order of the cluster */
  for (uint32_t kind = 0; kind < ls_cluster_spec_n_kinds (spec); kind++)
    for (uint32_t r = 0; r < n_ranks; r++)
      if (ls_cluster_kind_of (c, ls_cluster_host_of (c, sorted[r])) == kind)
        kinds[at++] = sorted[r];
  if (x->spec->trace)
    add_all_by_digits (x, sorted, ret_all, &n);
  add_seats (ret_all, &n, "node after node", sorted, n_ranks);
  add_seats (ret_all, &n, "kind after kind", kinds, n_ranks);
  for (guint i = 0; is_of_slices && i < G_N_ELEMENTS (axes); i++)
    add_seats (ret_all, &n, axes[i].name, along_axes (spec, n_ranks, axes[i].axes), n_ranks);
  return n;
}

/* --- orders ------------------------------------------------------------------------------------------ */

/* The job's own first; then those that number ranks in another way than any before. */
static GArray *
find_orders (const Search *x)
{
  const LsMesh own = x->spec->trace ? (LsMesh) { 0 } : ls_strategy_mesh (&x->p->now->strategy);
  GArray *orders = g_array_new (FALSE, FALSE, sizeof (LsRankOrder));
  g_array_append_val (orders, own.order);
  for (LsRankOrder order = 0; !x->spec->trace && order < LS_N_RANK_ORDERS; order++) {
    LsMesh mesh = own, other = own;
    bool is_new = true;
    mesh.order = order;
    for (guint i = 0; i < orders->len && is_new; i++) {
      other.order = g_array_index (orders, LsRankOrder, i);
      is_new = !ls_mesh_is_alike (&mesh, &other);
    }
    if (is_new && (x->p->now->model.moe.n_experts == 0 || ls_mesh_has_one_pipeline (&mesh)))
      g_array_append_val (orders, order);
  }
  return orders;
}

/* "21,11", newly allocated; NULL of NULL. */
static char *
shares_text (const uint32_t *shares, uint32_t n)
{
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0; shares && i < n; i++)
    g_string_append_printf (out, "%s%u", i > 0 ? "," : "", shares[i]);
  return g_string_free (out, !shares);
}

static void
add_row (Search *x, const Candidate *c)
{
  const LsJobResult *now = x->p->now;
  const LsStrategy *s = &now->strategy;
  bool is_slice = ls_cluster_traits (&now->cluster->spec)->is_slice; /* whose chips follow the order */
  bool is_moved = (is_slice && !c->is_own_order)
      || memcmp (c->gpus, ls_plan_gpus (now->plan), x->n_ranks * sizeof *c->gpus) != 0;
  LsPlaceRow row
      = { .seats = c->seats_name, .step = c->step, .least = c->least, .refused = g_strdup (c->refused) };
  row.placement = is_moved ? ls_placement_text (now->cluster, c->gpus, x->n_ranks) : NULL;
  row.layers = shares_text (c->shares[LAYERS], s->pp);
  row.counts = shares_text (c->shares[COUNTS], s->dp);
  row.order
      = c->is_own_order && s->layout.rank_order ? g_strdup (s->layout.rank_order) : short_order (x, c->order);
  g_array_append_val (x->p->rows, row);
}

/* --- swaps of two nodes, of which one stands for all that are alike ----------------------------------- */

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

static const LsSortKey by_turn[]
    = { { LS_RISING (Swap, turn) }, { LS_RISING (Swap, a) }, { LS_RISING (Swap, b) }, { 0 } };

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
  g_autofree uint64_t *sum = g_new0 (uint64_t, spec->n_nodes + 1); /* of each leaf, in any order */
  for (uint32_t i = 0; i < spec->n_nodes; i++) {
    uint64_t state = kinds[i].stages + kinds[i].faults + kinds[i].machine;
    sum[kinds[i].leaf] += ls_draw_bits (&state);
  }
  for (uint32_t i = 0; i < spec->n_nodes; i++)
    kinds[i].beside = sum[kinds[i].leaf];
  return kinds;
}

/* Nodes that are alike: the first, and the first at another leaf (UINT32_MAX: none is). */
typedef struct {
  uint32_t first, elsewhere;
} Alike;

/* 0: they are of one kind. */
static int
compare_kinds (const NodeKind *x, const NodeKind *y)
{
  LS_SMALLER_FIRST (x->stages, y->stages);
  LS_SMALLER_FIRST (x->beside, y->beside);
  LS_SMALLER_FIRST (x->faults, y->faults);
  return LS_ORDER (x->machine, y->machine);
}

static int
by_kind (gconstpointer a, gconstpointer b, gpointer of)
{
  const NodeKind *kinds = of;
  int order = compare_kinds (&kinds[*(const uint32_t *) a], &kinds[*(const uint32_t *) b]);
  return order != 0 ? order : ls_compare_uint32 (a, b);
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
    if (!last || compare_kinds (&kinds[last->first], &kinds[node]) != 0)
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

/* The first swap between nodes of two kinds, with its turn; of nodes of unequal size one has no room for all
 * that are on the other. */
static void
add_swap (const Search *x, const NodeKind *kinds, const Alike *p, const Alike *q, GArray *swaps)
{
  const uint32_t ours[] = { p->first, p->elsewhere }, theirs[] = { q->first, q->elsewhere };
  const LsCluster *c = x->p->now->cluster;
  Swap best = { .turn = N_TURNS };
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      if (ours[i] == UINT32_MAX || theirs[j] == UINT32_MAX
          || ls_cluster_gpus_of (c, ours[i]) != ls_cluster_gpus_of (c, theirs[j]))
        continue;
      Swap swap = { MIN (ours[i], theirs[j]), MAX (ours[i], theirs[j]),
                    turn_of (x, &kinds[ours[i]], &kinds[theirs[j]]) };
      if (swap.turn < N_TURNS
          && (best.turn == N_TURNS || ls_compare_by (&swap, &best, (gpointer) by_turn) < 0))
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
  ls_sort_by (swaps, by_turn);
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

/* One round: whether it gained, in place. n_tries: left. */
static bool
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

/* --- layers of stages, and micro-batches of replicas, by the speed of their nodes ----------------------- */

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

static void
shares_init (Search *x)
{
  const LsJobResult *now = x->p->now;
  const LsStrategy *s = &now->strategy;
  LsHardware chosen;
  if (!now->cluster->kind_of_host || x->spec->trace)
    return;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_hardware_for_job (now->hardware, s, s->gpus, &chosen);
  x->own[LAYERS] = g_new0 (uint32_t, s->pp * s->vpp);
  x->own[COUNTS] = g_new (uint32_t, s->dp);
  for (uint32_t d = 0; d < s->dp; d++)
    x->own[COUNTS][d] = ls_strategy_micro_batches (s, d);
  bool is_known = s->pp > 1 && s->vpp == 1 && ls_chunk_layers (s, &now->model, x->own[LAYERS], diags);
  x->n_parts[LAYERS] = is_known ? s->pp : 0;
  x->n_parts[COUNTS] = s->dp > 1 && !ls_strategy_why_even (s, &now->model) ? s->dp : 0;
  if (x->n_parts[LAYERS] > 0 || x->n_parts[COUNTS] > 0)
    find_speeds (x, &chosen);
}

/* What a micro-batch takes at least on the slowest rank, newly allocated: of each stage, for a layer of it,
 * or of each replica. */
static double *
paces_of (const Search *x, const Candidate *c, int which)
{
  const LsCluster *cluster = x->p->now->cluster;
  uint32_t n_kinds = ls_cluster_spec_n_kinds (&cluster->spec);
  double *paces = g_new0 (double, x->n_parts[which] + 1);
  LsMesh mesh = ls_strategy_mesh (&x->p->now->strategy);
  if (!c->is_own_order)
    mesh.order = c->order;
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    LsCoord at = ls_mesh_coord (&mesh, r);
    uint32_t kind = ls_cluster_kind_of (cluster, ls_cluster_host_of (cluster, c->gpus[r]));
    double pace = x->stage_s[at.pp * n_kinds + kind],
           of_layer = x->n_parts[LAYERS] > 0 ? pace / MAX (1, x->own[LAYERS][at.pp]) : 0;
    double *slowest = &paces[which == LAYERS ? at.pp : at.dp];
    *slowest = fmax (*slowest,
                     which == LAYERS         ? of_layer
                         : c->shares[LAYERS] ? of_layer * c->shares[LAYERS][at.pp]
                                             : pace);
  }
  return paces;
}

/* --- shares -------------------------------------------------------------------------------- */

/* Of n layers by 1 / pace: whole numbers of at least 1, the largest remainders up. */
static void
deal_layers (uint32_t n, const double *pace, uint32_t n_stages, uint32_t *ret_layers)
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

/* How many: ret_others are c with layers, and with micro-batches by speed, to be cleared; none where all are
 * equally fast. */
static guint
shares_by_speed (const Search *x, const Candidate *c, Candidate *ret_others)
{
  guint n_others = 0;
  for (int which = 0; which < N_SHARES; which++) {
    uint32_t n = x->n_parts[which], sum = 0;
    for (uint32_t i = 0; i < n; i++)
      sum += x->own[which][i];
    if (n == 0 || sum < n)
      continue;
    g_autofree double *pace = paces_of (x, c, which);
    g_autofree uint32_t *shares = g_new (uint32_t, n);
    (which == LAYERS ? deal_layers : deal_counts) (sum, pace, n, shares);
    if (memcmp (shares, x->own[which], n * sizeof *shares) == 0)
      continue;
    ret_others[n_others] = candidate_copy (x, c);
    ret_others[n_others++].shares[which] = g_steal_pointer (&shares);
  }
  return n_others;
}

/* --- moves --------------------------------------------------------------------------------- */

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
try_moves (Search *x, Candidate *best, int which)
{
  uint32_t n_parts = x->n_parts[which], *shares = best->shares[which];
  g_autofree double *pace = paces_of (x, best, which);
  uint32_t slowest = 0;
  for (uint32_t i = 1; i < n_parts; i++)
    slowest = pace[i] * shares[i] > pace[slowest] * shares[slowest] ? i : slowest;
  g_autoptr (GArray) moves = g_array_new (FALSE, FALSE, sizeof (Candidate));
  for (uint32_t from = 0; from < n_parts; from++)
    for (uint32_t to = 0; to < n_parts; to++) {
      bool is_known = which == COUNTS && (is_repeated (shares, pace, from) || is_repeated (shares, pace, to));
      if (from == to || shares[from] < 2 || is_known || (n_parts > MOST_PARTS && from != slowest))
        continue;
      Candidate c = candidate_copy (x, best);
      c.shares[which][from]--;
      c.shares[which][to]++;
      g_array_append_val (moves, c);
    }
  guint n_tried = 0, n_pruned = 0; /* no swaps: they do not count */
  return keep_fastest (x, best, (Candidate *) (gpointer) moves->data, moves->len, &n_tried, &n_pruned);
}

/* A layer or a micro-batch at a time moves to another stage or replica as long as one gains; in place. */
static void
search_shares (Search *x, Candidate *best, int which)
{
  bool is_own = !best->shares[which], has_gained = false;
  if (x->n_parts[which] == 0)
    return;
  if (is_own)
    best->shares[which] = g_memdup2 (x->own[which], x->n_parts[which] * sizeof (uint32_t));
  while (try_moves (x, best, which))
    has_gained = true;
  if (is_own && !has_gained)
    g_clear_pointer (&best->shares[which], g_free);
}

/* --- all orders -------------------------------------------------------------------------------------- */

/* All orders on all seats. The best as it is then, to be cleared. */
static Candidate
try_orders (Search *x)
{
  Candidate seats[MOST_SEATS];
  guint n_seats = find_seats (x, seats), n = 0;
  g_autoptr (GArray) orders = find_orders (x);
  Candidate *batch = g_new0 (Candidate, (1 + N_SHARES) * n_seats * orders->len);
  for (guint k = 0; k < orders->len; k++)
    for (guint i = 0; i < n_seats; i++) {
      batch[n] = candidate_copy (x, &seats[i]);
      batch[n].order = g_array_index (orders, LsRankOrder, k);
      batch[n++].is_own_order = k == 0;
    }
  guint n_equal = n;
  for (guint i = 0; i < n_equal; i++)
    n += shares_by_speed (x, &batch[i], &batch[n]);
  const LsTimeline *t = x->p->now->timeline;
  batch[0].step = t->window_end - t->window_start;
  x->limit = batch[0].step;
  try_batch (x, batch + 1, n - 1);
  guint best = fastest_of (batch, n, LS_TIME_NEVER);
  Candidate found = candidate_copy (x, &batch[best]);
  found.step = batch[best].step;
  for (guint i = 0; i < n; i++) {
    add_row (x, &batch[i]);
    candidate_clear (&batch[i]);
  }
  x->p->best = best;
  for (guint i = 0; i < n_seats; i++)
    candidate_clear (&seats[i]);
  g_free (batch);
  return found;
}

/* --- all of it --------------------------------------------------------------------------------------- */

LsPlace *
ls_place_new (const LsJobSpec *spec, const LsPlaceOptions *options, const LsProgress *progress,
              GError **error)
{
  g_autoptr (LsPlace) p = g_new0 (LsPlace, 1);
  Search x
      = { .spec = spec, .options = options, .progress = progress, .p = p, .run = ls_job_spec_options (spec) };
  if (spec->order)
    return ls_fail_null (error, LS_ERROR_USAGE, "--order does not go with place");
  p->rows = ls_list_new (sizeof (LsPlaceRow), ls_clear_5_texts);
  p->now = ls_job_spec_run (spec, error);
  if (!p->now)
    return NULL;
  x.n_ranks = p->now->plan->n_ranks;
  x.run.no_spans = x.run.steady = true;
  shares_init (&x);
  Candidate best = try_orders (&x);
  /* by what a simulation takes, which follows from its ranks and how many of them behave alike */
  guint usual = CLAMP (TRIES / (x.n_ranks / RANKS_A_CLASS + p->now->timeline->n_classes), 8, 256);
  guint n_tries = options->n_tries > 0 ? options->n_tries : usual;
  while (n_tries > 0 && try_swaps (&x, &best, &n_tries))
    continue;
  for (int which = 0; which < N_SHARES; which++)
    search_shares (&x, &best, which);
  g_free (x.stage_s);
  for (int which = 0; which < N_SHARES; which++)
    g_free (x.own[which]);
  p->layers = shares_text (best.shares[LAYERS], x.n_parts[LAYERS]);
  p->counts = shares_text (best.shares[COUNTS], x.n_parts[COUNTS]);
  const LsRunOptions run = ls_job_spec_options (spec); /* as `run` simulates the whole job at its best */
  p->then = ls_job_simulate_prepared (prepare (&x, &best, error), p->now->hardware, &run, error);
  candidate_clear (&best);
  if (!p->then)
    return NULL;
  p->gain = ls_job_result_step_time_s (p->now) / ls_job_result_step_time_s (p->then) - 1;
  return g_steal_pointer (&p);
}

void
ls_place_free (LsPlace *p)
{
  if (!p)
    return;
  g_clear_pointer (&p->rows, g_array_unref);
  ls_job_result_free (p->now);
  ls_job_result_free (p->then);
  g_free (p->layers);
  g_free (p->counts);
  g_free (p);
}
