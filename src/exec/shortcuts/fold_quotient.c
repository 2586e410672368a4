/* exec/shortcuts/fold_quotient.c — the two refinements (fold_blocks.h). Of the first, hosts are the ranks,
 * bundles of several places the communicators, and places the resources; of the second, the ranks,
 * communicators and resources of one place of each class. */

#include <string.h>

#include "base/tally.h"
#include "exec/extras.h"
#include "exec/shortcuts/fold_blocks.h"

/* --- to begin with --------------------------------------------------------------------- */

static LsSig
first_of_host (const Blocks *b, uint32_t host)
{
  const double *slow = b->x->options.slow;
  LsSig sig = { .a = 1 };
  if (!ls_places_is_sound (b->x->cluster, stretch_place (&b->stretches, host)))
    ls_sig_add (&sig, UINT64_C (1) << 63 | host);
  for (uint32_t i = 0; i < b->at->gpus_per_host; i++) {
    uint32_t rank = blocks_rank (b, host * b->at->gpus_per_host + i);
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
    ls_sig_add_double (&sig, blocks_capacity (b, blocks_resource (b, place, i)));
  return sig;
}

/* What a bundle in one host adds to what the host is. */
static LsSig
sig_of_local (const BundleKind *kind)
{
  LsSig sig = kind->sig;
  ls_sig_add (&sig, kind->label[0]);
  return sig;
}

/* --- who sees what ------------------------------------------------------------------------ */

/* The bundles of several places, and those of one host as a part of what that is: of_place. */
static void
add_bundles (const Blocks *b, RefineLists *l, GArray *wide, LsSig *of_place)
{
  for (uint32_t i = 0; i < b->bundles->len; i++) {
    const Bundle *bundle = blocks_bundle (b, i);
    const BundleKind *kind = blocks_kind (b, bundle);
    if (blocks_is_local (b, bundle)) {
      ls_sig_add_times (&of_place[blocks_place (b, bundle, 0)], 1, sig_of_local (kind));
      continue;
    }
    refine_begin (l, true);
    RefineLoad *loads = refine_add_loads (l, kind->n);
    for (uint32_t k = 0; k < kind->n; k++) {
      uint32_t place = blocks_place (b, bundle, k);
      bool is_seen = kind->gpu == NO_GPU_NUMBER
          || place < b->at->n_hosts; /* the two hosts of a send see what they are in */
      loads[k] = (RefineLoad) { !is_seen ? 0 : kind->times ? kind->times[k] : 1, place, kind->label[k] };
    }
    g_array_append_val (wide, i);
  }
}

#define OF_ITSELF 0 /* what a host sees, beside what it is in */

/* Hosts that see more than what loads them: what they are in, where that matters. Returns how many. */
static uint32_t
add_hosts (const Blocks *b, RefineLists *l)
{
  uint32_t n = 0;
  for (uint32_t host = 0; host < b->at->n_hosts; host++) {
    const uint32_t above[] = { ls_places_group_of (b->at, host), ls_places_pod_of (b->at, host) };
    if (!blocks_matters (b, above[0]) && !blocks_matters (b, above[1]))
      continue;
    refine_begin (l, false);
    refine_add_load (l, host, 1, OF_ITSELF);
    for (int i = 0; i < 2; i++)
      if (blocks_matters (b, above[i]))
        refine_add_load (l, above[i], 1, REFINE_SEEN_ONLY);
    n++;
  }
  return n;
}

/* Where GPU i has rank i, and with ranks that are slow no stretch is left out. */
static bool
hosts_begin_alike (const Blocks *b, uint32_t host, uint32_t other)
{
  const double *slow = b->x->options.slow;
  uint32_t n = b->at->gpus_per_host;
  return hosts_have_same_roles (b, host, other)
      && (!slow || memcmp (&slow[host * n], &slow[other * n], n * sizeof *slow) == 0);
}

/* What things are to begin with; resource: with what add_bundles() knows of them. */
static void
tell_places_apart (const Blocks *b, const GArray *wide, LsArena *scratch, Refine *r)
{
  g_autofree LsSig *hosts = g_new (LsSig, b->at->n_hosts + 1);
  for (uint32_t i = 0; i < b->at->n_hosts; i++)
    hosts[i]
        = b->period > 0 && i > 0 && hosts_begin_alike (b, i, i - 1) ? hosts[i - 1] : first_of_host (b, i);
  r->rank = ls_arena_new_array (scratch, LsSig, r->n_ranks);
  r->comm = ls_arena_new_array (scratch, LsSig, r->n_comms);
  r->is_ample = ls_arena_new_array (scratch, bool, r->n_resources);
  for (uint32_t i = 0; i < b->n_places; i++) {
    ls_sig_add_sig (&r->resource[i], i < b->at->n_hosts ? hosts[i] : first_above (b, i));
    r->is_ample[i] = !blocks_matters (b, i);
  }
  for (guint i = 0; i < wide->len; i++)
    r->comm[i] = blocks_kind (b, blocks_bundle (b, g_array_index (wide, uint32_t, i)))->sig;
}

/* --- what it says of communicators --------------------------------------------------------- */

/* Classes of the bundles of communicators, by those of several places, which come first, and those of
 * hosts. */
static uint32_t
number_bundles (const Blocks *b, const GArray *wide, const uint32_t *class_of_wide, uint32_t *ret_class)
{
  g_autofree LsSig *sig = g_new (LsSig, b->n_comm_bundles + 1);
  for (uint32_t i = 0, n_wide = 0; i < b->n_comm_bundles; i++) {
    const Bundle *bundle = blocks_bundle (b, i);
    if (n_wide < wide->len && g_array_index (wide, uint32_t, n_wide) == i) {
      sig[i] = ls_sig_of (class_of_wide[n_wide++]);
      continue;
    }
    sig[i] = sig_of_local (blocks_kind (b, bundle));
    ls_sig_add (&sig[i], b->class_of_place[blocks_place (b, bundle, 0)]);
  }
  return sigs_number (sig, b->n_comm_bundles, ret_class);
}

/* Of communicators that are kept: one class for each of a bundle. */
static void
spread_bundles (Blocks *b, const GArray *wide, const uint32_t *class_of_wide)
{
  g_autofree uint32_t *class = g_new (uint32_t, b->n_comm_bundles + 1);
  uint32_t n = number_bundles (b, wide, class_of_wide, class);
  g_autofree uint32_t *first = g_new0 (uint32_t, n + 1); /* + 1 */
  for (uint32_t i = 0; i < b->n_comm_bundles; i++) {
    const Bundle *bundle = blocks_bundle (b, i);
    uint32_t *own = &first[class[i]], n_comms = blocks_kind (b, bundle)->n_callers;
    if (*own == 0) {
      *own = b->n_comm_classes + 1;
      b->n_comm_classes += n_comms;
    }
    for (uint32_t k = 0; k < n_comms; k++)
      blocks_kept (b, b->kept_of_bundle[bundle->first + k])->class = *own - 1 + k;
  }
}

void
blocks_refine (Blocks *b)
{
  g_autoptr (GArray) wide = g_array_new (FALSE, FALSE, sizeof (uint32_t)); /* bundles of several places */
  g_autoptr (LsArena) scratch = ls_arena_new ();
  RefineLists lists = refine_lists_new (false, scratch);
  Refine r = { .n_resources = b->n_places, .counts_once = true };
  r.resource = ls_arena_new_array (scratch, LsSig, b->n_places);
  add_bundles (b, &lists, wide, r.resource);
  r.n_comms = wide->len;
  r.n_ranks = add_hosts (b, &lists);
  tell_places_apart (b, wide, scratch, &r);
  refine_take_lists (&r, &lists);
  Classes c = refine (&r, b->arena);
  b->class_of_place = c.resource;
  b->n_place_classes = c.n_resources;
  spread_bundles (b, wide, c.comm);
}

/* ---- the second step ---- */

/* Things of it: a seat is GPU i of the place of a class, a resource the i-th of such a place. */
typedef struct {
  const Blocks *b;
  const uint8_t *slot;
  uint32_t *place, *comm;   /* by class: the first, of communicators that are kept */
  uint32_t *rank_of_seat;   /* [classes * GPUs of a host] in it, or UINT32_MAX */
  uint32_t *seat;           /* [n_ranks]                                      */
  uint32_t *first_resource; /* [classes + 1]                                  */
  uint32_t n_ranks;
  uint32_t (*shape)[3]; /* [n_ranks] see sends_shape_rank() */
  uint32_t (*send_places)[2][SEND_PLACES];
  RefineLists lists;
  uint32_t (*sends)[3]; /* [n_ranks] see FoldClasses */
  GArray *others;       /* uint32_t: likewise        */
} Quotient;

/* --- who stands for whom --------------------------------------------------------------- */

static void
find_seats (Quotient *q)
{
  const Blocks *b = q->b;
  uint32_t per_host = b->at->gpus_per_host, n = b->n_place_classes;
  q->place = ls_arena_new_array (b->arena, uint32_t, n);
  for (uint32_t i = b->n_places; i-- > 0;)
    q->place[b->class_of_place[i]] = i;
  q->comm = ls_arena_new_array (b->arena, uint32_t, b->n_comm_classes);
  for (guint i = b->kept->len; i-- > 0;)
    q->comm[blocks_kept (b, i)->class] = i;
  q->rank_of_seat = ls_arena_new_array (b->arena, uint32_t, (gsize) n * per_host);
  q->seat = ls_arena_new_array (b->arena, uint32_t, (gsize) n * per_host);
  q->first_resource = ls_arena_new_array (b->arena, uint32_t, n + 1);
  for (uint32_t class = 0; class < n; class ++) {
    uint32_t place = q->place[class];
    q->first_resource[class + 1] = q->first_resource[class] + ls_places_n_at (b->at, place);
    for (uint32_t i = 0; i < per_host; i++) {
      uint32_t rank = place < b->at->n_hosts ? blocks_rank (b, place * per_host + i) : UINT32_MAX;
      q->rank_of_seat[class * per_host + i] = UINT32_MAX;
      if (rank == UINT32_MAX)
        continue;
      q->rank_of_seat[class * per_host + i] = q->n_ranks;
      q->seat[q->n_ranks++] = class * per_host + i;
    }
  }
}

/* The rank that an element of the quotient is. */
static uint32_t
rank_at (const Quotient *q, uint32_t i)
{
  uint32_t per_host = q->b->at->gpus_per_host;
  return blocks_rank (q->b, q->place[q->seat[i] / per_host] * per_host + q->seat[i] % per_host);
}

static uint32_t
element_of (const Quotient *q, uint32_t rank)
{
  return q->rank_of_seat[blocks_seat (q->b, rank)];
}

/* --- what each loads ------------------------------------------------------------------- */

/* n times what a vector loads, at places of the class of this one. */
static void
add_vector (Quotient *q, uint32_t class, uint32_t vector, uint64_t n, uint32_t pattern)
{
  uint32_t n_loads;
  const PlaceLoad *l = shapes_vector (q->b->shapes, vector, &n_loads);
  for (uint32_t i = 0; i < n_loads; i++)
    refine_add_load (&q->lists, q->first_resource[class] + l[i].local, n * l[i].coef, pattern + l[i].pattern);
}

/* The same, of those who load the places of a class. */
static void
use_vector (Quotient *q, uint32_t class, uint32_t vector, uint32_t owner, uint32_t pattern)
{
  uint32_t n_loads;
  const PlaceLoad *l = shapes_vector (q->b->shapes, vector, &n_loads);
  for (uint32_t i = 0; i < n_loads; i++)
    refine_add_use (&q->lists, q->first_resource[class] + l[i].local, l[i].coef, owner,
                    pattern + l[i].pattern);
}

static void
add_comm (Quotient *q, uint32_t class)
{
  const Blocks *b = q->b;
  const KeptComm *kept = blocks_kept (b, q->comm[class]);
  const LsCommunicator comm = ls_plan_communicator (b->plan, kept->comm);
  const Bundle *bundle = blocks_bundle (b, kept->bundle);
  const BundleKind *kind = blocks_kind (b, bundle);
  const Template *template = blocks_template (b, kept);
  const Shape *shape = shapes_at (b->shapes, template->shape);
  g_autoptr (GArray) vectors = ls_tally_new (), ranks = ls_tally_new ();
  refine_begin (&q->lists, true);
  for (uint32_t k = 0; k < kind->n; k++)
    ls_tally_add_times (vectors,
                        (uint64_t) b->class_of_place[blocks_place (b, bundle, k)] << 32
                            | shape->vector[kind->number[k]],
                        kind->times ? kind->times[k] : 1);
  ls_tally_sort (vectors);
  for (guint i = 0; i < vectors->len; i++) {
    const LsTally *t = &g_array_index (vectors, LsTally, i);
    add_vector (q, (uint32_t) (t->value >> 32), (uint32_t) t->value, t->n, 0);
  }
  for (uint32_t i = 0; i < template->n_kept_members; i++) {
    uint32_t rank = ls_comm_rank (&comm, template->kept_members ? template->kept_members[i] : i);
    ls_tally_add_times (ranks, element_of (q, rank),
                        template->across ? stretch_times (&b->stretches, blocks_host (b, rank)) : 1);
  }
  ls_tally_sort (ranks);
  for (guint i = 0; i < ranks->len; i++) {
    const LsTally *t = &g_array_index (ranks, LsTally, i);
    const RefineMember member = { t->n, (uint32_t) t->value, q->slot[kept->comm] };
    g_array_append_val (q->lists.members, member);
  }
}

/* Patterns of a rank: its kernels, its sends to the previous, to the next, its copies. */
static uint32_t
first_pattern (const Quotient *q, uint32_t i, uint32_t part)
{
  uint32_t pattern = 1;
  for (uint32_t p = 0; p < part; p++)
    if (q->shape[i][p] != NO_SHAPE)
      pattern += shapes_at (q->b->shapes, q->shape[i][p])->n_patterns;
  return pattern;
}

/* Of the rank that stands for its place: its kernels, its sends, its copies. */
static void
add_rank (Quotient *q, uint32_t i)
{
  const Blocks *b = q->b;
  uint32_t per_host = b->at->gpus_per_host, class = q->seat[i] / per_host,
           hbm = q->first_resource[class] + b->at->trunks_per_host + q->seat[i] % per_host,
           owner = b->n_comm_classes + i, copies = shapes_at (b->shapes, q->shape[i][2])->vector[0];
  refine_begin (&q->lists, false);
  refine_add_load (&q->lists, hbm, LS_COEF_ONE, 0);
  refine_add_use (&q->lists, hbm, LS_COEF_ONE, owner, 0);
  for (uint32_t p = 0; p < 2; p++) {
    q->sends[i][p] = q->lists.loads->len;
    if (q->shape[i][p] == NO_SHAPE)
      continue;
    const Shape *shape = shapes_at (b->shapes, q->shape[i][p]);
    for (uint32_t k = 0; k < shape->n_places; k++)
      add_vector (q, b->class_of_place[q->send_places[i][p][k]], shape->vector[k], 1,
                  first_pattern (q, i, p));
  }
  q->sends[i][2] = q->lists.loads->len;
  add_vector (q, class, copies, 1, first_pattern (q, i, 2));
  use_vector (q, class, copies, owner, first_pattern (q, i, 2));
}

/* --- who loads each --------------------------------------------------------------------- */

/* What a bundle loads at the k-th place of its kind. */
static void
use_by_bundle (Quotient *q, const Bundle *bundle, uint32_t k)
{
  const Blocks *b = q->b;
  const BundleKind *kind = blocks_kind (b, bundle);
  uint32_t class = b->class_of_place[blocks_place (b, bundle, k)],
           from = b->class_of_place[blocks_place (b, bundle, 0)] * b->at->gpus_per_host;
  for (uint32_t i = 0; i < kind->n_callers; i++) {
    uint32_t vector = shapes_at (b->shapes, kind->shape[i])->vector[kind->number[k]];
    if (kind->gpu == NO_GPU_NUMBER) {
      use_vector (q, class, vector, blocks_kept (b, b->kept_of_bundle[bundle->first + i])->class, 0);
      continue;
    }
    uint32_t element = q->rank_of_seat[from + kind->gpu + i];
    use_vector (q, class, vector, b->n_comm_classes + element, first_pattern (q, element, kind->to_next));
  }
}

static void
use_by_bundles (Quotient *q)
{
  const Blocks *b = q->b;
  for (uint32_t i = 0; i < b->bundles->len; i++) {
    const Bundle *bundle = blocks_bundle (b, i);
    for (uint32_t k = 0; k < blocks_kind (b, bundle)->n; k++)
      if (q->place[b->class_of_place[blocks_place (b, bundle, k)]] == blocks_place (b, bundle, k))
        use_by_bundle (q, bundle, k);
  }
}

/* --- the refinement ------------------------------------------------------------------------ */

static LsBinding *
bindings_of (const Quotient *q, LsArena *arena)
{
  const Blocks *b = q->b;
  LsBinding *bindings = ls_arena_new_array (arena, LsBinding, q->n_ranks);
  for (uint32_t i = 0; i < q->n_ranks; i++) {
    LsBinding *to = &bindings[i];
    *to = ls_plan_binding (b->plan, rank_at (q, i));
    for (int s = 0; s < LS_SLOT_PREV; s++)
      to->comm[s] = to->comm[s] == UINT32_MAX ? UINT32_MAX : blocks_class (b, to->comm[s]);
    for (int p = 0; p < 2; p++)
      to->peer[p] = to->peer[p] == UINT32_MAX ? UINT32_MAX : element_of (q, to->peer[p]);
  }
  return bindings;
}

static LsSig
first_of_rank (const Quotient *q, uint32_t i)
{
  const double *slow = q->b->x->options.slow;
  LsSig sig = { 0 };
  ls_sig_add (&sig, ls_plan_role (q->b->plan, rank_at (q, i)));
  ls_sig_add_double (&sig, slow ? slow[rank_at (q, i)] : 1);
  ls_sig_add (&sig, (uint64_t) (run_kind_of (q->b->x, q->b->plan, rank_at (q, i)) - q->b->x->kinds));
  for (int p = 0; p < 3; p++)
    if (q->shape[i][p] != NO_SHAPE)
      ls_sig_add_sig (&sig, shapes_at (q->b->shapes, q->shape[i][p])->sig);
  return sig;
}

/* Resources are alike only where the same traffic loads them, as much. Then all is one place. */
static void
tell_traffic (Quotient *q, Refine *r)
{
  const Extras *extras = q->b->x->extras;
  for (uint32_t t = 0; t < extras->n_traffic; t++) {
    const LsPhase *p = extras->traffic[t].phase;
    for (uint32_t i = 0; i < p->n_loads; i++) {
      uint32_t at;
      ls_places_find (q->b->at, p->loads[i].resource, &at);
      ls_sig_add (&r->resource[at], t);
      ls_sig_add (&r->resource[at], p->loads[i].coef);
      g_array_append_val (q->others, at);
    }
  }
}

static void
tell_apart (Quotient *q, Refine *r, LsArena *arena)
{
  const Blocks *b = q->b;
  r->rank = ls_arena_new_array (arena, LsSig, r->n_ranks);
  r->comm = ls_arena_new_array (arena, LsSig, r->n_comms);
  r->resource = ls_arena_new_array (arena, LsSig, r->n_resources);
  for (uint32_t i = 0; i < r->n_ranks; i++)
    r->rank[i] = first_of_rank (q, i);
  for (uint32_t c = 0; c < r->n_comms; c++) {
    const KeptComm *kept = blocks_kept (b, q->comm[c]);
    ls_sig_add (&r->comm[c], ls_plan_communicator (b->plan, kept->comm).n_ranks);
    ls_sig_add_sig (&r->comm[c], shapes_at (b->shapes, blocks_template (b, kept)->shape)->sig);
  }
  r->is_ample = ls_arena_new_array (arena, bool, r->n_resources);
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t i = q->first_resource[class]; i < q->first_resource[class + 1]; i++) {
      uint32_t resource = blocks_resource (b, q->place[class], i - q->first_resource[class]);
      r->is_ample[i] = b->laid_out && ls_places_is_ample (b->laid_out, b->x->cluster, resource);
      ls_sig_add_double (&r->resource[i], blocks_capacity (b, resource));
    }
  tell_traffic (q, r);
}

/* Takes the lists of the quotient. Unless they are whole, they alone are there. */
static Refine *
refine_new (Quotient *q, bool are_whole, LsArena *arena)
{
  const Blocks *b = q->b;
  Refine *r = ls_arena_new_array (arena, Refine, 1);
  r->n_ranks = q->n_ranks;
  r->n_comms = b->n_comm_classes;
  r->n_resources = q->first_resource[b->n_place_classes];
  r->peers = b->peers;
  if (are_whole) {
    r->bindings = bindings_of (q, arena);
    tell_apart (q, r, arena);
  }
  if (are_whole && q->lists.uses)
    use_by_bundles (q);
  refine_take_lists (r, &q->lists);
  return r;
}

/* Where a rank has two communicators of one class, one in the quotient cannot be both. */
static bool
has_slots_apart (const Refine *r, const uint32_t *comm)
{
  for (uint32_t i = 0; i < r->n_ranks; i++)
    for (int s = 0; s < LS_SLOT_PREV; s++)
      for (int o = 0; o < s && r->bindings[i].comm[s] != UINT32_MAX; o++)
        if (r->bindings[i].comm[o] != UINT32_MAX
            && comm[r->bindings[i].comm[o]] == comm[r->bindings[i].comm[s]])
          return false;
  return true;
}

/* --- what it says of all --------------------------------------------------------------------- */

/* Numbers classes anew, in the order of who is first asked for; + 1. */
static uint32_t
renumber (uint32_t *number, uint32_t class, uint32_t *n)
{
  if (number[class] == 0)
    number[class] = ++*n;
  return number[class] - 1;
}

/* Rows: who of the quotient stands for the first of each class. */
static void
spread_ranks (const Quotient *q, const Classes *c, FoldClasses *ret)
{
  const Blocks *b = q->b;
  g_autofree uint32_t *number = g_new0 (uint32_t, c->n_ranks + 1);
  uint32_t *class_of = g_new (uint32_t, stretch_n_gpus (&b->stretches) + 1);
  ret->row_of_rank = ls_arena_new_array (ret->arena, uint32_t, c->n_ranks);
  for (uint32_t first = 0, n; first < b->plan->n_ranks; first += n) {
    uint32_t kept = stretch_before (&b->stretches, first, &n);
    n = MIN (n, b->plan->n_ranks - first);
    for (uint32_t i = first; i < first + n && kept == first; i++) {
      uint32_t element = element_of (q, i), before = ret->n_ranks;
      class_of[stretch_kept_gpu (&b->stretches, i)] = renumber (number, c->rank[element], &ret->n_ranks);
      if (ret->n_ranks > before)
        ret->row_of_rank[before] = element;
    }
  }
  ret->rank = stretch_classes_new (&b->stretches, class_of, b->plan->n_ranks);
  for (uint32_t i = 0; i < q->n_ranks; i++)
    ret->owner[b->n_comm_classes + i] = ret->n_comms + number[c->rank[i]] - 1;
}

static void
spread_comms (const Quotient *q, const Classes *c, FoldClasses *ret)
{
  const Blocks *b = q->b;
  g_autofree uint32_t *number = g_new0 (uint32_t, c->n_comms + 1);
  gsize n_lists = c->n_comms + 2 * (gsize) c->n_ranks;
  ret->comm = ls_arena_new_array (ret->arena, uint32_t, b->plan->n_comms);
  ret->row_of_comm = ls_arena_new_array (ret->arena, uint32_t, c->n_comms);
  ret->owner = ls_arena_new_array (ret->arena, uint32_t, b->n_comm_classes + q->n_ranks);
  ret->calls = ls_arena_new_array (ret->arena, const ShapedCalls *, n_lists);
  ret->first_pattern = ls_arena_new_array (ret->arena, uint32_t, n_lists);
  g_autofree uint32_t *of_kept = g_new (uint32_t, b->kept->len + 1);
  for (guint i = 0; i < b->kept->len; i++) { /* in the order of those for which they stand */
    uint32_t class = blocks_kept (b, i)->class, before = ret->n_comms;
    of_kept[i] = renumber (number, c->comm[class], &ret->n_comms);
    if (ret->n_comms == before)
      continue;
    ret->row_of_comm[before] = class;
    ret->calls[before]
        = shapes_at (b->shapes, blocks_template (b, blocks_kept (b, q->comm[class]))->shape)->calls;
  }
  for (uint32_t i = 0; i < b->plan->n_comms; i++)
    ret->comm[i] = of_kept[b->kept_of_comm[i]];
  for (uint32_t i = 0; i < b->n_comm_classes; i++)
    ret->owner[i] = number[c->comm[i]] - 1;
}

/* Of those that stand for their classes. */
static void
spread_sends (const Quotient *q, FoldClasses *ret)
{
  for (uint32_t i = 0; i < ret->n_ranks; i++)
    for (uint32_t p = 0; p < 2; p++) {
      uint32_t row = ret->row_of_rank[i], shape = q->shape[row][p], list = ret->n_comms + 2 * i + p;
      if (shape == NO_SHAPE)
        continue;
      ret->calls[list] = shapes_at (q->b->shapes, shape)->calls;
      ret->first_pattern[list] = first_pattern (q, row, p);
    }
}

/* What can be carried by each class, and the most of all, loaded or not; how many are in each. */
static void
count_resources (const Quotient *q, FoldClasses *ret)
{
  const Blocks *b = q->b;
  g_autofree uint32_t *n_places = g_new0 (uint32_t, b->n_place_classes);
  double most = 0;
  ret->n_of_resource = ls_arena_new_array (b->x->arena, uint32_t, ret->n_resources + 1);
  ret->capacity = ls_arena_new_array (b->x->arena, double, ret->n_resources + 1);
  for (uint32_t i = 0; i < b->n_places; i++)
    n_places[b->class_of_place[i]] += stretch_times (&b->stretches, i);
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t i = 0; i < ls_places_n_at (b->at, q->place[class]); i++) {
      double capacity = blocks_capacity (b, blocks_resource (b, q->place[class], i));
      uint32_t of = ret->class_of[q->first_resource[class] + i];
      most = MAX (most, capacity);
      if (of == NO_CLASS)
        continue;
      ret->capacity[of] = capacity;
      ret->n_of_resource[of] += n_places[class];
    }
  ret->capacity[ret->n_resources] = most;
}

static void
spread_resources (const Quotient *q, const Classes *c, FoldClasses *ret)
{
  const Blocks *b = q->b;
  const Refine *r = ret->refine;
  const uint32_t *first = q->first_resource;
  g_autofree bool *is_loaded = g_new0 (bool, r->n_resources + 1);
  for (uint32_t i = 0, owner = 0; i < r->n_uses; i++)
    is_loaded[refine_use (r, i, &owner).resource] = true;
  for (uint32_t i = 0; i < ret->n_others; i++)
    is_loaded[ret->others[i]] = true;
  g_autofree uint32_t *number = g_new0 (uint32_t, r->n_resources + 1);
  ret->class_of = ls_arena_new_array (ret->arena, uint32_t, r->n_resources);
  for (uint32_t i = 0; i < r->n_resources; i++)
    ret->class_of[i] = is_loaded[i] ? renumber (number, c->resource[i], &ret->n_resources) : NO_CLASS;
  PlaceClasses *p = ret->places = g_new0 (PlaceClasses, 1);
  p->at = *b->stretches.whole;
  p->class_of_place = g_new (uint32_t, ls_places_n (&p->at) + 1);
  stretches_spread (&b->stretches, b->class_of_place, p->class_of_place);
  p->first = g_memdup2 (first, b->n_place_classes * sizeof *first);
  p->class_of = g_memdup2 (ret->class_of, r->n_resources * sizeof *p->class_of);
  count_resources (q, ret);
}

/* False: a call cannot be planned. Where all is one place, nobody asks again what a rank loads. */
static bool
find_loads (Quotient *q)
{
  const Blocks *b = q->b;
  for (uint32_t c = 0; c < b->n_comm_classes; c++)
    add_comm (q, c);
  for (uint32_t i = 0; i < q->n_ranks; i++) {
    if (b->is_one)
      shapes_forget_vectors (b->shapes);
    if (!sends_shape_rank (b, rank_at (q, i), q->shape[i], q->send_places[i]))
      return false;
    add_rank (q, i);
  }
  return true;
}

bool
blocks_classify (const Blocks *b, const uint8_t *slot, FoldClasses *ret)
{
  *ret = (FoldClasses) { .arena = ls_arena_new () };
  Quotient q = { .b = b,
                 .slot = slot,
                 .lists = refine_lists_new (!b->is_one, ret->arena),
                 .others = ls_arena_list (ret->arena, sizeof (uint32_t)) };
  find_seats (&q);
  q.shape = ls_arena_alloc (b->arena, q.n_ranks, sizeof *q.shape);
  q.send_places = ls_arena_alloc (b->arena, q.n_ranks, sizeof *q.send_places);
  ret->sends = q.sends = ls_arena_alloc (ret->arena, q.n_ranks, sizeof *q.sends);
  bool ok = find_loads (&q);
  ret->refine = refine_new (&q, ok, ret->arena);
  ret->n_others = q.others->len;
  ret->others = (uint32_t *) (gpointer) q.others->data;
  if (ok) {
    Classes c = refine (ret->refine, b->arena);
    ret->has_slots_apart = has_slots_apart (ret->refine, c.comm);
    spread_comms (&q, &c, ret);
    spread_ranks (&q, &c, ret);
    spread_sends (&q, ret);
    spread_resources (&q, &c, ret);
  }
  return ok;
}
