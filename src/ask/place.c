#include "ask/place.h"

#include <string.h>

#include "base/draw.h"
#include "base/order.h"
#include "cluster/torus.h"
#include "strategy/strategy.h"

/* A simulation takes as long as so many classes of ranks, and a 16th of a class for each rank. */
#define TRIES         2048
#define RANKS_A_CLASS 16
#define MOST_SEATS    8 /* ways to deal the GPUs: as given, in order, 3! axes */

/* One candidate. */
typedef struct {
  LsRankOrder order;
  bool is_own_order; /* the job's, as it names it */
  const char *seats_name;
  uint32_t *gpus; /* [n_ranks], owned */
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
  Candidate *batch; /* of the present round */
  LsTime limit;     /* what a candidate has to be below; LS_TIME_NEVER: nothing */
} Search;

static void
candidate_clear (Candidate *c)
{
  g_free (c->gpus);
  g_free (c->refused);
}

/* --- one candidate --------------------------------------------------------------------------------- */

/* An order without the degrees of 1, newly allocated: "tp-pp-dp". */
static char *
short_order (const Search *x, LsRankOrder order)
{
  const LsStrategy *s = &x->p->now->strategy;
  bool has_experts = x->p->now->model.n_experts > 0;
  const uint32_t degree[LS_N_DIMS]
      = { MAX (s->tp, has_experts ? s->etp : 1), s->cp, has_experts ? s->ep : 1, s->dp, s->pp };
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (order, dims);
  GString *out = g_string_new (NULL);
  for (int i = 0; i < LS_N_DIMS; i++)
    if (degree[dims[i]] > 1)
      g_string_append_printf (out, "%s%s", out->len > 0 ? "-" : "", ls_dim_name (dims[i]));
  return g_string_free (out->len > 0 ? out : g_string_append (out, "tp"), FALSE);
}

/* The job in that order on these GPUs. */
static void
strategy_of (const Search *x, const Candidate *c, LsStrategy *ret_s)
{
  const LsClusterSpec *spec = &x->p->now->cluster->spec;
  ls_strategy_copy (ret_s, &x->p->now->strategy);
  ls_strategy_forget_placement (ret_s);
  if (!c->is_own_order) {
    g_free (ret_s->rank_order);
    ret_s->rank_order = c->order == 0 ? NULL : short_order (x, c->order);
  }
  LsSeat *seats = g_new0 (LsSeat, x->n_ranks);
  for (uint32_t r = 0; r < x->n_ranks; r++)
    seats[r] = (LsSeat) { .node = c->gpus[r] / spec->gpus_per_node, .gpu = c->gpus[r] % spec->gpus_per_node };
  ret_s->allocation = ls_allocation_new (LS_ALLOCATION_RANKS, seats, x->n_ranks, NULL);
}

/* Step, lower bound or refusal. */
static void
try_candidate (guint i, gpointer data)
{
  const Search *x = data;
  Candidate *c = &x->batch[i];
  const LsJobResult *now = x->p->now;
  g_autoptr (GError) error = NULL;
  LsStrategy s;
  strategy_of (x, c, &s);
  LsJobResult *prepared = ls_job_prepare (&now->model, now->hardware, now->cluster->spec.n_nodes, &s, &error);
  ls_strategy_clear (&s);
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
    c->refused = g_strdup (error->message);
}

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

typedef struct {
  const char *name; /* static */
  uint32_t *gpus;   /* owned  */
} Seats;

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

static bool
is_known (const Seats *all, guint n, const uint32_t *gpus, uint32_t n_ranks)
{
  for (guint i = 0; i < n; i++)
    if (memcmp (all[i].gpus, gpus, n_ranks * sizeof *gpus) == 0)
      return true;
  return false;
}

/* Takes gpus. */
static void
add_seats (Seats *all, guint *n, const char *name, uint32_t *gpus, uint32_t n_ranks)
{
  if (is_known (all, *n, gpus, n_ranks))
    g_free (gpus);
  else
    all[(*n)++] = (Seats) { name, gpus };
}

/* How many there are. */
static guint
find_seats (const Search *x, Seats *ret_all)
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
  const uint32_t *given = x->p->now->plan->gpu_of_rank;
  uint32_t n_ranks = x->n_ranks, *sorted = g_memdup2 (given, n_ranks * sizeof *given);
  guint n = 0;
  add_seats (ret_all, &n, "as given", g_memdup2 (given, n_ranks * sizeof *given), n_ranks);
  qsort (sorted, n_ranks, sizeof *sorted, ls_compare_uint32);
  bool is_of_slices = spec->interior == LS_INTERIOR_TORUS && n_ranks % spec->gpus_per_node == 0
      && sorted[n_ranks - 1] == n_ranks - 1;
  add_seats (ret_all, &n, "node after node", sorted, n_ranks);
  for (guint i = 0; is_of_slices && i < G_N_ELEMENTS (axes); i++)
    add_seats (ret_all, &n, axes[i].name, along_axes (spec, n_ranks, axes[i].axes), n_ranks);
  return n;
}

/* --- orders ------------------------------------------------------------------------------------------ */

/* The job's own first; then those that number ranks in another way than any before. */
static GArray *
find_orders (const Search *x)
{
  const LsMesh own = ls_strategy_mesh (&x->p->now->strategy);
  GArray *orders = g_array_new (FALSE, FALSE, sizeof (LsRankOrder));
  g_array_append_val (orders, own.order);
  for (LsRankOrder order = 0; order < LS_N_RANK_ORDERS; order++) {
    LsMesh mesh = own, other = own;
    bool is_new = true;
    mesh.order = order;
    for (guint i = 0; i < orders->len && is_new; i++) {
      other.order = g_array_index (orders, LsRankOrder, i);
      is_new = !ls_mesh_is_alike (&mesh, &other);
    }
    if (is_new && (x->p->now->model.n_experts == 0 || ls_mesh_has_one_pipeline (&mesh)))
      g_array_append_val (orders, order);
  }
  return orders;
}

static void
add_row (Search *x, const Candidate *c)
{
  const LsStrategy *s = &x->p->now->strategy;
  LsPlaceRow row
      = { .seats = c->seats_name, .step = c->step, .least = c->least, .refused = g_strdup (c->refused) };
  row.order = c->is_own_order && s->rank_order ? g_strdup (s->rank_order) : short_order (x, c->order);
  g_array_append_val (x->p->rows, row);
}

/* All orders on all seats. The best as it is then, to be cleared. */
static Candidate
try_orders (Search *x)
{
  Seats seats[MOST_SEATS];
  guint n_seats = find_seats (x, seats), n = 0;
  g_autoptr (GArray) orders = find_orders (x);
  Candidate *batch = g_new0 (Candidate, n_seats * orders->len);
  for (guint k = 0; k < orders->len; k++)
    for (guint i = 0; i < n_seats; i++)
      batch[n++] = (Candidate) { .order = g_array_index (orders, LsRankOrder, k),
                                 .is_own_order = k == 0,
                                 .seats_name = seats[i].name,
                                 .gpus = g_memdup2 (seats[i].gpus, x->n_ranks * sizeof (uint32_t)) };
  const LsTimeline *t = x->p->now->timeline;
  batch[0].step = t->window_end - t->window_start;
  x->limit = batch[0].step;
  try_batch (x, batch + 1, n - 1);
  guint best = fastest_of (batch, n, LS_TIME_NEVER);
  Candidate found = batch[best];
  for (guint i = 0; i < n; i++)
    add_row (x, &batch[i]);
  x->p->best = best;
  found.gpus = g_memdup2 (found.gpus, x->n_ranks * sizeof (uint32_t));
  found.refused = NULL;
  for (guint i = 0; i < n; i++)
    candidate_clear (&batch[i]);
  for (guint i = 0; i < n_seats; i++)
    g_free (seats[i].gpus);
  g_free (batch);
  return found;
}

/* --- swaps of nodes ---------------------------------------------------------------------------------- */

/* What of a node a swap can change: which stages its ranks have, which leaf it is at, which faults it has;
 * what else is at the leaf. */
typedef struct {
  uint64_t stages, beside;
  uint32_t leaf;
  guint faults;
} NodeKind;

typedef struct {
  uint32_t a, b;
} Swap;

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
    uint64_t state = kinds[i].stages + kinds[i].faults;
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
  LsMesh mesh = ls_strategy_mesh (&x->p->now->strategy);
  NodeKind *kinds = g_new0 (NodeKind, spec->n_nodes);
  if (!c->is_own_order)
    mesh.order = c->order;
  for (uint32_t r = 0; r < x->n_ranks; r++)
    kinds[c->gpus[r] / spec->gpus_per_node].stages |= UINT64_C (1) << ls_mesh_coord (&mesh, r).pp % 64;
  for (uint32_t i = 0; i < spec->n_nodes; i++) {
    kinds[i].leaf = spec->nodes_per_leaf > 0 ? i / spec->nodes_per_leaf : i;
    kinds[i].faults = faults_of (spec, i);
  }
  add_leaves (kinds, spec->n_nodes);
  return kinds;
}

static bool
is_same_kind (const NodeKind *a, const NodeKind *b)
{
  return a->stages == b->stages && a->beside == b->beside && a->faults == b->faults;
}

/* Numbers of kinds, the same for nodes that are alike; newly allocated. */
static uint32_t *
number_kinds (const NodeKind *kinds, uint32_t n)
{
  uint32_t *number = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k <= i; k++)
      if (is_same_kind (&kinds[i], &kinds[k])) {
        number[i] = k;
        break;
      }
  return number;
}

/* How soon a swap is tried; N_TURNS: never. The two differ in stages, and in leaf or faults. Of those with a
 * fault first the ones that leave the node. */
#define N_TURNS 4

static int
turn_of (const Search *x, const NodeKind *a, const NodeKind *b)
{
  bool is_free = a->stages == 0 || b->stages == 0, has_fault = a->faults != 0 || b->faults != 0;
  if (a->stages == b->stages || (a->leaf == b->leaf && a->faults == b->faults)
      || (is_free && !x->options->any_nodes))
    return N_TURNS;
  return (has_fault ? 0 : 2) + (is_free ? 0 : 1);
}

/* Swaps of which one stands for all that are alike. */
static GArray *
find_swaps (const Search *x, const Candidate *c)
{
  uint32_t n = x->p->now->cluster->spec.n_nodes;
  g_autofree NodeKind *kinds = kinds_of (x, c);
  g_autofree uint32_t *number = number_kinds (kinds, n);
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  GArray *swaps = g_array_new (FALSE, FALSE, sizeof (Swap));
  for (int turn = 0; turn < N_TURNS; turn++)
    for (uint32_t a = 0; a < n; a++)
      for (uint32_t b = a + 1; b < n; b++) {
        uint32_t low = MIN (number[a], number[b]), high = MAX (number[a], number[b]);
        gpointer key = GSIZE_TO_POINTER ((gsize) low << 32 | high);
        Swap swap = { a, b };
        if (turn_of (x, &kinds[a], &kinds[b]) == turn && g_hash_table_add (seen, key))
          g_array_append_val (swaps, swap);
      }
  return swaps;
}

static Candidate
swapped (const Search *x, const Candidate *c, Swap swap)
{
  uint32_t per_node = x->p->now->cluster->spec.gpus_per_node;
  Candidate other = { .order = c->order, .is_own_order = c->is_own_order, .seats_name = c->seats_name };
  other.gpus = g_memdup2 (c->gpus, x->n_ranks * sizeof *c->gpus);
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    uint32_t node = other.gpus[r] / per_node, local = other.gpus[r] % per_node;
    if (node == swap.a || node == swap.b)
      other.gpus[r] = (node == swap.a ? swap.b : swap.a) * per_node + local;
  }
  return other;
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

/* --- all of it --------------------------------------------------------------------------------------- */

static gboolean
check_job (const LsJobSpec *spec, GError **error)
{
  const char *knob = spec->trace ? "trace" : spec->order ? "order" : NULL;
  if (knob)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s does not go with place", knob);
  return !knob;
}

/* The whole job at its best, as `run` simulates it. */
static LsJobResult *
run_best (const Search *x, const Candidate *best, GError **error)
{
  LsStrategy s;
  const LsJobResult *now = x->p->now;
  LsRunOptions options;
  if (!ls_job_spec_options (x->spec, &options, error))
    return NULL;
  strategy_of (x, best, &s);
  LsJobResult *prepared = ls_job_prepare (&now->model, now->hardware, now->cluster->spec.n_nodes, &s, error);
  ls_strategy_clear (&s);
  return ls_job_simulate_prepared (prepared, now->hardware, &options, error);
}

/* By what a simulation of it takes, which follows from its ranks and how many of them behave alike. */
static guint
usual_tries (const LsJobResult *now)
{
  return CLAMP (TRIES / (now->plan->n_ranks / RANKS_A_CLASS + now->timeline->n_classes), 8, 256);
}

LsPlace *
ls_place_new (const LsJobSpec *spec, const LsPlaceOptions *options, const LsProgress *progress,
              GError **error)
{
  g_autoptr (LsPlace) p = g_new0 (LsPlace, 1);
  Search x = { .spec = spec, .options = options, .progress = progress, .p = p };
  if (!check_job (spec, error) || !ls_job_spec_options (spec, &x.run, error))
    return NULL;
  p->rows = g_array_new (FALSE, FALSE, sizeof (LsPlaceRow));
  p->now = ls_job_spec_run (spec, error);
  if (!p->now)
    return NULL;
  x.n_ranks = p->now->plan->n_ranks;
  x.run.no_spans = x.run.steady = true;
  Candidate best = try_orders (&x);
  guint n_tries = options->n_tries > 0 ? options->n_tries : usual_tries (p->now);
  while (n_tries > 0 && try_swaps (&x, &best, &n_tries))
    continue;
  p->then = run_best (&x, &best, error);
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
  for (guint i = 0; p->rows && i < p->rows->len; i++) {
    g_free (g_array_index (p->rows, LsPlaceRow, i).order);
    g_free (g_array_index (p->rows, LsPlaceRow, i).refused);
  }
  g_clear_pointer (&p->rows, g_array_unref);
  ls_job_result_free (p->now);
  ls_job_result_free (p->then);
  g_free (p);
}
