#include "exec/shortcuts/fold_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#include "exec/state.h"

/* --- what lies where ------------------------------------------------------------------ */

/* False: two ranks share a GPU. */
static bool
find_ranks (Blocks *b)
{
  uint32_t n_gpus = b->at->n_hosts * b->at->gpus_per_host;
  b->rank_of_gpu = g_new (uint32_t, n_gpus);
  memset (b->rank_of_gpu, 0xff, n_gpus * sizeof *b->rank_of_gpu);
  for (uint32_t i = 0; i < b->plan->n_ranks; i++) {
    uint32_t *rank = &b->rank_of_gpu[b->plan->gpu_of_rank[i]];
    if (*rank != UINT32_MAX)
      return false;
    *rank = i;
  }
  return true;
}

static bool
shape_comms (Blocks *b, const uint8_t *slot)
{
  const LsPlan *plan = b->plan;
  g_autoptr (GArray) places = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  b->shape_of_comm = g_new (uint32_t, plan->n_comms + 1);
  b->first = g_new (uint32_t, plan->n_comms + 1);
  for (uint32_t c = 0; c < plan->n_comms; c++) {
    const LsCommunicator *comm = &plan->comms[c];
    const RoleCalls *role = &b->roles[ls_plan_role (plan, ls_comm_rank (comm, 0))];
    int list = CALLS + slot[c];
    const uint32_t *at;
    g_autofree uint32_t *ranks = ls_comm_ranks (comm);
    uint32_t shape = shapes_of_calls (b->shapes, role->keys[list], role->id[list], ranks, comm->n_ranks, &at);
    if (shape == NO_SHAPE)
      return false;
    b->shape_of_comm[c] = shape;
    b->first[c] = places->len;
    g_array_append_vals (places, at, shapes_at (b->shapes, shape)->n_places);
  }
  b->first[plan->n_comms] = places->len;
  b->places = (uint32_t *) g_array_free (g_steal_pointer (&places), FALSE);
  return true;
}

bool
blocks_shape_rank (const Blocks *b, uint32_t rank, uint32_t ret_shape[3], uint32_t ret_places[2][SEND_PLACES])
{
  const RoleCalls *role = &b->roles[ls_plan_role (b->plan, rank)];
  for (uint32_t p = 0; p < 2; p++) {
    ret_shape[p] = NO_SHAPE;
    if (role->id[SENDS + p] == 0)
      continue;
    const uint32_t ranks[] = { rank, ls_plan_peer (b->plan, rank, p) };
    const uint32_t *at;
    ret_shape[p] = shapes_of_calls (b->shapes, role->keys[SENDS + p], role->id[SENDS + p], ranks, 2, &at);
    if (ret_shape[p] == NO_SHAPE)
      return false;
    memcpy (ret_places[p], at, shapes_at (b->shapes, ret_shape[p])->n_places * sizeof *at);
  }
  ret_shape[2] = shapes_of_copies (b->shapes, role, rank);
  return ret_shape[2] != NO_SHAPE;
}

/* --- rows ------------------------------------------------------------------------------- */

static uint32_t
rank_at (const Blocks *b, uint32_t host, uint32_t gpu)
{
  return b->rank_of_gpu[host * b->at->gpus_per_host + gpu];
}

/* Of each GPU of a host, the neighbour in that direction, if it matters; else UINT32_MAX. */
static void
find_peers (const Blocks *b, uint32_t host, uint32_t to_next, uint32_t *ret_peers)
{
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = rank_at (b, host, i);
    bool matters = rank != UINT32_MAX && (b->peers[ls_plan_role (b->plan, rank)] >> to_next & 1);
    ret_peers[i] = matters ? ls_plan_peer (b->plan, rank, to_next) : UINT32_MAX;
  }
}

static uint32_t
host_of_peer (const Blocks *b, uint32_t peer)
{
  return peer == UINT32_MAX ? UINT32_MAX : b->plan->gpu_of_rank[peer] / b->at->gpus_per_host;
}

/* False: a call cannot be planned. */
static bool
make_row (Blocks *b, uint32_t host, uint32_t n_places, Row *row)
{
  uint32_t *shapes = ls_arena_new_array (b->arena, uint32_t, row->n);
  for (uint32_t i = 0; i < row->n; i++) {
    uint32_t shape[3], places[2][SEND_PLACES];
    if (!blocks_shape_rank (b, rank_at (b, host, row->gpu + i), shape, places))
      return false;
    shapes[i] = shape[row->to_next];
    g_assert (shapes[i] == NO_SHAPE || shapes_at (b->shapes, shapes[i])->n_places == n_places);
    row->n_places = shapes[i] == NO_SHAPE ? row->n_places : n_places;
  }
  row->shape = shapes;
  row->label = b->n_row_labels;
  b->n_row_labels += MAX (1, n_places);
  return true;
}

/* Of `row` nothing is known but the GPUs. peers: of these; ranks: scratch, two for each GPU of a host. */
static bool
add_row (Blocks *b, uint32_t host, Row row, const uint32_t *peers, uint32_t *ranks)
{
  const uint32_t *places;
  uint32_t n_places;
  for (uint32_t i = 0; i < row.n; i++)
    ranks[i] = rank_at (b, host, row.gpu + i);
  memcpy (&ranks[row.n], peers, row.n * sizeof *peers);
  LsSig key = shapes_key (b->shapes, row.to_next, ranks, 2 * row.n, &places, &n_places);
  for (uint32_t i = 0; i < row.n; i++)
    ls_sig_add (&key, b->roles[ls_plan_role (b->plan, ranks[i])].id[SENDS + row.to_next]);
  RowAt at = { .from = host, .to = host_of_peer (b, peers[0]), .first = b->row_places->len };
  g_array_append_vals (b->row_places, places, n_places);
  at.row = GPOINTER_TO_UINT (g_hash_table_lookup (b->known, &key));
  if (at.row == 0) {
    if (!make_row (b, host, n_places, &row))
      return false;
    g_array_append_val (b->rows, row);
    LsSig *kept = ls_arena_new_array (b->arena, LsSig, 1);
    *kept = key;
    g_hash_table_insert (b->known, kept, GUINT_TO_POINTER (at.row = b->rows->len));
  }
  at.row--;
  g_array_append_val (b->rows_at, at);
  return true;
}

static bool
find_rows_of (Blocks *b, uint32_t host, uint32_t to_next, uint32_t *peers, uint32_t *ranks)
{
  uint32_t per_host = b->at->gpus_per_host;
  find_peers (b, host, to_next, peers);
  for (uint32_t i = 0, n; i < per_host; i += n) {
    uint32_t to = host_of_peer (b, peers[i]);
    for (n = 1; i + n < per_host && host_of_peer (b, peers[i + n]) == to;)
      n++;
    if (to != UINT32_MAX
        && !add_row (b, host, (Row) { .gpu = i, .n = n, .to_next = to_next }, &peers[i], ranks))
      return false;
  }
  return true;
}

static bool
find_rows (Blocks *b)
{
  g_autofree uint32_t *peers = g_new (uint32_t, b->at->gpus_per_host),
                      *ranks = g_new (uint32_t, 2 * b->at->gpus_per_host);
  b->arena = ls_arena_new ();
  b->rows = g_array_new (FALSE, FALSE, sizeof (Row));
  b->known = g_hash_table_new (ls_sig_hash, ls_sig_is_same);
  b->rows_at = g_array_new (FALSE, FALSE, sizeof (RowAt));
  b->row_places = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t host = 0; host < b->at->n_hosts; host++)
    for (uint32_t p = 0; p < 2; p++)
      if (!find_rows_of (b, host, p, peers, ranks))
        return false;
  return true;
}

/* --- to begin with --------------------------------------------------------------------- */

static LsSig
first_of_host (const Blocks *b, uint32_t host)
{
  const double *slow = b->x->options->slow;
  LsSig sig = { .a = 1 };
  if (!ls_places_is_sound (b->x->cluster, host))
    ls_sig_add (&sig, UINT64_C (1) << 63 | host);
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = b->rank_of_gpu[host * b->at->gpus_per_host + i];
    ls_sig_add (&sig, rank == UINT32_MAX ? UINT64_MAX : ls_plan_role (b->plan, rank));
    if (slow && rank != UINT32_MAX)
      ls_sig_add_double (&sig, slow[rank]);
  }
  return sig;
}

/* Of a group or a pod: its rates. */
static LsSig
first_above (const Blocks *b, uint32_t place)
{
  LsSig sig = { .a = place < b->at->n_hosts + b->at->n_groups ? 2 : 3 };
  for (uint32_t i = 0; i < ls_places_n_at (b->at, place); i++)
    ls_sig_add_double (&sig, run_capacity (b->x, b->at, b->fastest, ls_places_resource (b->at, place, i)));
  return sig;
}

/* --- a round ---------------------------------------------------------------------------- */

typedef struct {
  Blocks *b;
  LsSig *sums; /* [most of places, communicators] */
  LsSig *scratch;
} Round;

/* Who sees what of a class by which label. */
typedef enum { SEEN_PLACE, SEEN_COMM, SEEN_ROW, SEEN_PEERS } Seen;

static inline LsSig
sig_seen (Seen kind, uint32_t class, uint32_t label)
{
  return ls_sig_of ((uint64_t) kind << 62 | (uint64_t) class << 32 | label);
}

static void
refine_comms (Round *x)
{
  Blocks *b = x->b;
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    const Shape *shape = shapes_at (b->shapes, b->shape_of_comm[c]);
    const uint32_t *places = &b->places[b->first[c]];
    LsSig sum = { 0 }, own = ls_sig_of (b->class_of_comm[c]);
    for (uint32_t k = 0; k < shape->n_places; k++)
      if (shape->label[k] > 0 && blocks_matters (b, places[k]))
        ls_sig_add_times (&sum, 1, sig_seen (SEEN_PLACE, b->class_of_place[places[k]], shape->label[k]));
    ls_sig_add_sig (&own, sum);
    x->scratch[c] = own;
  }
  b->n_comm_classes = sigs_number (x->scratch, b->plan->n_comms, b->class_of_comm);
}

static void
add_comms (Round *x)
{
  const Blocks *b = x->b;
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    const Shape *shape = shapes_at (b->shapes, b->shape_of_comm[c]);
    const uint32_t *places = &b->places[b->first[c]];
    for (uint32_t k = 0; k < shape->n_places; k++)
      if (shape->label[k] > 0)
        ls_sig_add_times (&x->sums[places[k]], 1, sig_seen (SEEN_COMM, b->class_of_comm[c], shape->label[k]));
  }
}

static void
add_rows (Round *x)
{
  const Blocks *b = x->b;
  for (guint i = 0; i < b->rows_at->len; i++) {
    const RowAt *at = &g_array_index (b->rows_at, RowAt, i);
    const Row *row = &g_array_index (b->rows, Row, at->row);
    const uint32_t *places = &g_array_index (b->row_places, uint32_t, at->first);
    ls_sig_add_times (&x->sums[at->from], 1, sig_seen (SEEN_PEERS, b->class_of_place[at->to], row->label));
    for (uint32_t k = 0; k < row->n_places; k++)
      ls_sig_add_times (&x->sums[places[k]], 1,
                        sig_seen (SEEN_ROW, b->class_of_place[at->from], row->label + k));
  }
}

static void
add_above (const Blocks *b, uint32_t place, LsSig *sig)
{
  if (blocks_matters (b, place))
    ls_sig_add (sig, b->class_of_place[place]);
}

static void
refine_places (Round *x)
{
  Blocks *b = x->b;
  memset (x->sums, 0, b->n_places * sizeof *x->sums);
  add_comms (x);
  add_rows (x);
  for (uint32_t i = 0; i < b->n_places; i++) {
    LsSig own = ls_sig_of (b->class_of_place[i]);
    ls_sig_add_sig (&own, x->sums[i]);
    if (i < b->at->n_hosts) {
      add_above (b, ls_places_group_of (b->at, i), &own);
      add_above (b, ls_places_pod_of (b->at, i), &own);
    }
    x->scratch[i] = own;
  }
  b->n_place_classes = sigs_number (x->scratch, b->n_places, b->class_of_place);
}

static void
begin (Round *x, const uint8_t *slot)
{
  Blocks *b = x->b;
  for (uint32_t i = 0; i < b->n_places; i++)
    x->scratch[i] = i < b->at->n_hosts ? first_of_host (b, i) : first_above (b, i);
  b->n_place_classes = sigs_number (x->scratch, b->n_places, b->class_of_place);
  for (uint32_t c = 0; c < b->plan->n_comms; c++) {
    LsSig sig = shapes_at (b->shapes, b->shape_of_comm[c])->sig;
    ls_sig_add (&sig, (uint64_t) b->plan->comms[c].n_ranks << 32 | slot[c]);
    x->scratch[c] = sig;
  }
  b->n_comm_classes = sigs_number (x->scratch, b->plan->n_comms, b->class_of_comm);
}

static void
refine_blocks (Blocks *b, const uint8_t *slot)
{
  uint32_t most = MAX (b->n_places, b->plan->n_comms) + 1;
  b->class_of_place = g_new (uint32_t, b->n_places + 1);
  b->class_of_comm = g_new (uint32_t, b->plan->n_comms + 1);
  Round x = { b, g_new (LsSig, most), g_new (LsSig, most) };
  begin (&x, slot);
  for (uint32_t before = 0, now = 1; now != before;) {
    before = b->n_place_classes + b->n_comm_classes;
    refine_comms (&x);
    refine_places (&x);
    now = b->n_place_classes + b->n_comm_classes;
  }
  g_free (x.sums);
  g_free (x.scratch);
}

bool
blocks_init (Blocks *b, const Run *x, const uint8_t *slot, const uint8_t *peers)
{
  *b = (Blocks) { .x = x, .plan = x->plan, .roles = x->role_calls, .peers = peers };
  b->fastest = run_fastest_kernel (x);
  if (x->n_jobs > 1 || x->n_traffic > 0 || !(b->shapes = shapes_new (x)))
    return false;
  b->at = shapes_places (b->shapes);
  b->n_places = ls_places_n (b->at);
  if (!find_ranks (b) || !shape_comms (b, slot) || !find_rows (b))
    return false;
  b->is_ample = g_new (bool, b->n_places - b->at->n_hosts + 1);
  for (uint32_t i = b->at->n_hosts; i < b->n_places; i++)
    b->is_ample[i - b->at->n_hosts] = ls_places_are_ample (b->at, x->cluster, i);
  refine_blocks (b, slot);
  return true;
}

void
blocks_clear (Blocks *b)
{
  shapes_free (b->shapes);
  g_free (b->rank_of_gpu);
  g_free (b->shape_of_comm);
  g_free (b->places);
  g_free (b->first);
  if (b->rows) {
    g_array_unref (b->rows);
    g_hash_table_unref (b->known);
    g_array_unref (b->rows_at);
    g_array_unref (b->row_places);
    ls_arena_free (b->arena);
  }
  g_free (b->is_ample);
  g_free (b->class_of_place);
  g_free (b->class_of_comm);
}

/* --- what it says of resources ----------------------------------------------------------- */

/* One that is loaded, and the first resource of those that it stands for. */
typedef struct {
  uint32_t resource, element;
} Element;

static int
by_resource (const void *a, const void *b)
{
  return LS_ORDER (((const Element *) a)->resource, ((const Element *) b)->resource);
}

/* What can be carried by each class, and the most of all, loaded or not; how many are in each. */
static void
count_resources (const Blocks *b, const uint32_t *place, uint32_t n_classes, FoldPlaces *p)
{
  g_autofree uint32_t *n_places = g_new0 (uint32_t, b->n_place_classes);
  double most = 0;
  p->n_of_resource = g_new0 (uint32_t, n_classes + 1);
  p->capacity = g_new0 (double, n_classes + 1);
  for (uint32_t i = 0; i < b->n_places; i++)
    n_places[b->class_of_place[i]]++;
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t i = 0; i < ls_places_n_at (b->at, place[class]); i++) {
      double capacity = run_capacity (b->x, b->at, b->fastest, ls_places_resource (b->at, place[class], i));
      uint32_t of = p->class_of[p->first[class] + i];
      most = MAX (most, capacity);
      if (of == NO_CLASS)
        continue;
      p->capacity[of] = capacity;
      p->n_of_resource[of] += n_places[class];
    }
  p->capacity[n_classes] = most;
}

/* Resources of one number at places are in the order of these, so the first place has the first of each. */
void
blocks_spread_resources (const Blocks *b, const uint32_t *place, const uint32_t *first,
                         const uint32_t *class_of, FoldClasses *ret)
{
  const Refine *r = ret->refine;
  uint32_t n = 0;
  g_autofree Element *elements = g_new (Element, r->n_resources + 1);
  g_autofree uint32_t *number = g_new0 (uint32_t, r->n_resources + 1);
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t e = first[class]; e < first[class + 1]; e++)
      if (r->first_use[e + 1] > r->first_use[e])
        elements[n++] = (Element) { ls_places_resource (b->at, place[class], e - first[class]), e };
  qsort (elements, n, sizeof *elements, by_resource);
  ret->class_of = g_new (uint32_t, r->n_resources + 1);
  memset (ret->class_of, 0xff, r->n_resources * sizeof *ret->class_of);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t *own = &number[class_of[elements[i].element]];
    *own = *own == 0 ? ++ret->n_resources : *own;
    ret->class_of[elements[i].element] = *own - 1;
  }
  FoldPlaces *p = ret->places = g_new0 (FoldPlaces, 1);
  p->at = *b->at;
  p->class_of_place = g_memdup2 (b->class_of_place, b->n_places * sizeof *p->class_of_place);
  p->first = g_memdup2 (first, b->n_place_classes * sizeof *first);
  p->class_of = g_memdup2 (ret->class_of, r->n_resources * sizeof *p->class_of);
  count_resources (b, place, ret->n_resources, p);
}

bool
fold_by_blocks (Run *x, FoldClasses *ret)
{
  g_autofree uint8_t *slot = fold_owed (x), *peers = fold_peers (x);
  Blocks b = { 0 };
  bool ok = slot && blocks_init (&b, x, slot, peers);
  ok = ok && blocks_classify (&b, slot, ret);
  blocks_clear (&b);
  return ok;
}
