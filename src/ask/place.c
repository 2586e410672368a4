#include "ask/place.h"

#include "ask/place_search.h"
#include "ask/whatif.h"

#include <string.h>

#include "base/order.h"
#include "cluster/torus.h"
#include "data/jobs/read_placement.h"
#include "strategy/strategy.h"

/* A simulation takes as long as so many classes of ranks, and a 16th of a class for each rank. */
#define TRIES         2048
#define RANKS_A_CLASS 16
#define MOST_SEATS                                                                                           \
  32 /* ways to deal the GPUs: as given, in order, by kind or 3! axes, 4! digits of a trace */
#define MOST_DIGITS 4

void
candidate_clear (Candidate *c)
{
  g_free (c->gpus);
  g_free (c->layers);
  g_free (c->counts);
  g_free (c->refused);
}

Candidate
candidate_copy (const Search *x, const Candidate *c)
{
  Candidate copy = *c;
  copy.step = copy.least = 0;
  copy.refused = NULL;
  copy.gpus = g_memdup2 (c->gpus, x->n_ranks * sizeof *c->gpus);
  copy.layers = c->layers ? g_memdup2 (c->layers, x->n_stages * sizeof *c->layers) : NULL;
  copy.counts = c->counts ? g_memdup2 (c->counts, x->n_replicas * sizeof *c->counts) : NULL;
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
      g_string_append_printf (out, "%s%s", out->len > 0 ? "-" : "", ls_dim_name (dims[i]));
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
  if (c->layers) {
    ls_strategy_forget_layers (ret_s);
    ret_s->layout.n_layers_per_chunk = ret_s->pp;
    ret_s->layout.layers_per_chunk = g_memdup2 (c->layers, ret_s->pp * sizeof *c->layers);
  }
  if (c->counts) {
    g_free (ret_s->layout.micro_batches_per_replica);
    ret_s->layout.n_micro_batches_per_replica = ret_s->dp;
    ret_s->layout.micro_batches_per_replica = g_memdup2 (c->counts, ret_s->dp * sizeof *c->counts);
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

/* Where GPUs differ in memory, or stages in layers: whether each rank has room, if the job as given has. */
static bool
has_room (const Search *x, const LsJobResult *prepared)
{
  const LsJobResult *now = x->p->now;
  if (!now->cluster->kind_of_host || !now->report.fits)
    return true;
  const LsMemoryInput in = ls_job_result_memory_input (prepared, now->hardware, &x->run.memory);
  g_autoptr (LsMemory) memory = ls_memory_new (&in);
  const LsClassMemory *fullest = ls_memory_fullest (memory);
  return fullest->needed_bytes <= fullest->capacity_bytes;
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
  if (prepared && !has_room (x, prepared)) {
    c->refused = g_strdup ("a rank does not fit into the memory of its GPU");
    ls_job_result_free (prepared);
    return;
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

void
try_batch (Search *x, Candidate *batch, guint n)
{
  x->batch = batch;
  ls_parallel (n, x->options->n_threads, try_candidate, x, x->progress);
}

guint
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

/* Nodes of the first kind first, each kind in the order of the cluster. */
static uint32_t *
by_kind (const LsCluster *c, const uint32_t *sorted, uint32_t n_ranks)
{
  uint32_t *gpus = g_new (uint32_t, n_ranks), n = 0;
  for (uint32_t kind = 0; kind < ls_cluster_spec_n_kinds (&c->spec); kind++)
    for (uint32_t r = 0; r < n_ranks; r++)
      if (ls_cluster_kind_of (c, ls_cluster_host_of (c, sorted[r])) == kind)
        gpus[n++] = sorted[r];
  return gpus;
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
               const guint *order, Seats *all, guint *n)
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
add_all_by_digits (const Search *x, const uint32_t *sorted, Seats *all, guint *n)
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
  const uint32_t *given = ls_plan_gpus (x->p->now->plan);
  uint32_t n_ranks = x->n_ranks, *sorted = g_memdup2 (given, n_ranks * sizeof *given);
  guint n = 0;
  add_seats (ret_all, &n, "as given", g_memdup2 (given, n_ranks * sizeof *given), n_ranks);
  qsort (sorted, n_ranks, sizeof *sorted, ls_compare_uint32);
  bool is_of_slices = ls_cluster_traits (spec)->is_slice && n_ranks % spec->gpus_per_node == 0
      && sorted[n_ranks - 1] == n_ranks - 1;
  uint32_t *kinds = by_kind (x->p->now->cluster, sorted, n_ranks);
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
  row.layers = shares_text (c->layers, s->pp);
  row.counts = shares_text (c->counts, s->dp);
  row.order
      = c->is_own_order && s->layout.rank_order ? g_strdup (s->layout.rank_order) : short_order (x, c->order);
  g_array_append_val (x->p->rows, row);
}

/* All orders on all seats. The best as it is then, to be cleared. */
static Candidate
try_orders (Search *x)
{
  Seats seats[MOST_SEATS];
  guint n_seats = find_seats (x, seats), n = 0;
  g_autoptr (GArray) orders = find_orders (x);
  Candidate *batch = g_new0 (Candidate, (1 + MOST_SHARES) * n_seats * orders->len);
  for (guint k = 0; k < orders->len; k++)
    for (guint i = 0; i < n_seats; i++)
      batch[n++] = (Candidate) { .order = g_array_index (orders, LsRankOrder, k),
                                 .is_own_order = k == 0,
                                 .seats_name = seats[i].name,
                                 .gpus = g_memdup2 (seats[i].gpus, x->n_ranks * sizeof (uint32_t)) };
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
  for (guint i = 0; i < n; i++)
    add_row (x, &batch[i]);
  x->p->best = best;
  for (guint i = 0; i < n; i++)
    candidate_clear (&batch[i]);
  for (guint i = 0; i < n_seats; i++)
    g_free (seats[i].gpus);
  g_free (batch);
  return found;
}

/* --- all of it --------------------------------------------------------------------------------------- */

/* The whole job at its best, as `run` simulates it. */
static LsJobResult *
run_best (const Search *x, const Candidate *best, GError **error)
{
  LsRunOptions options;
  if (!ls_job_spec_options (x->spec, &options, error))
    return NULL;
  LsJobResult *prepared = prepare (x, best, error);
  return ls_job_simulate_prepared (prepared, x->p->now->hardware, &options, error);
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
  if (spec->order)
    return ls_fail_null (error, LS_ERROR_USAGE, "--order does not go with place");
  if (!ls_job_spec_options (spec, &x.run, error))
    return NULL;
  p->rows = g_array_new (FALSE, FALSE, sizeof (LsPlaceRow));
  p->now = ls_job_spec_run (spec, error);
  if (!p->now)
    return NULL;
  x.n_ranks = p->now->plan->n_ranks;
  x.run.no_spans = x.run.steady = true;
  shares_init (&x);
  Candidate best = try_orders (&x);
  guint n_tries = options->n_tries > 0 ? options->n_tries : usual_tries (p->now);
  while (n_tries > 0 && try_swaps (&x, &best, &n_tries))
    continue;
  shares_search (&x, &best);
  shares_clear (&x);
  p->layers = shares_text (best.layers, x.n_stages);
  p->counts = shares_text (best.counts, x.n_replicas);
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
    g_free (g_array_index (p->rows, LsPlaceRow, i).placement);
    g_free (g_array_index (p->rows, LsPlaceRow, i).layers);
    g_free (g_array_index (p->rows, LsPlaceRow, i).counts);
  }
  g_clear_pointer (&p->rows, g_array_unref);
  ls_job_result_free (p->now);
  ls_job_result_free (p->then);
  g_free (p->layers);
  g_free (p->counts);
  g_free (p);
}
