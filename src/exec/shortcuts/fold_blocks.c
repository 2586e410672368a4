#include "exec/shortcuts/fold_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#include "exec/extras.h"

/* --- what lies where ------------------------------------------------------------------ */

/* GPU i has rank i. */
static bool
is_identity (const LsPlan *plan)
{
  for (uint32_t i = 0; i < plan->n_ranks && plan->gpu_of_rank; i++)
    if (plan->gpu_of_rank[i] != i)
      return false;
  return true;
}

/* False: two ranks share a GPU. */
static bool
find_ranks (Blocks *b)
{
  uint32_t n_gpus = b->stretches.whole->n_hosts * b->stretches.whole->gpus_per_host;
  if (b->plan->n_ranks <= n_gpus && is_identity (b->plan))
    return true;
  b->rank_of_gpu = g_new (uint32_t, n_gpus);
  memset (b->rank_of_gpu, 0xff, n_gpus * sizeof *b->rank_of_gpu);
  for (uint32_t i = 0; i < b->plan->n_ranks; i++) {
    uint32_t *rank = &b->rank_of_gpu[ls_plan_gpu (b->plan, i)];
    if (*rank != UINT32_MAX)
      return false;
    *rank = i;
  }
  return true;
}

/* After how many hosts all comes again: where ranks are bound by a mesh, in the order of GPUs, and what is
 * above hosts differs in nothing. */
static void
find_period (Blocks *b)
{
  if (b->rank_of_gpu || b->plan->bindings || ls_cluster_has_faults (&b->x->cluster->spec))
    return;
  b->period = b->at->trunks_per_pod > 0 ? b->at->hosts_per_group * b->at->groups_per_pod
      : b->at->trunks_per_group > 0     ? b->at->hosts_per_group
                                        : 1;
}

static void
count_places_of_period (Blocks *b)
{
  b->groups_of_period = b->at->trunks_per_group > 0 ? b->period / b->at->hosts_per_group : 0;
  b->pods_of_period
      = b->at->trunks_per_pod > 0 ? b->period / (b->at->hosts_per_group * b->at->groups_per_pod) : 0;
}

/* --- all of it ---------------------------------------------------------------------------- */

/* What find() found. */
static void
forget (Blocks *b)
{
  g_clear_pointer (&b->templates, g_array_unref);
  g_clear_pointer (&b->kinds, g_array_unref);
  g_clear_pointer (&b->kept, g_array_unref);
  g_clear_pointer (&b->kept_of_comm, g_free);
  g_clear_pointer (&b->across, g_array_unref);
  g_clear_pointer (&b->bundles, g_free);
  g_clear_pointer (&b->kept_of_bundle, g_free);
  g_clear_pointer (&b->rows, g_array_unref);
  g_clear_pointer (&b->row_lies, g_array_unref);
  g_clear_pointer (&b->rows_at, g_array_unref);
  g_clear_pointer (&b->row_places, g_array_unref);
  b->n_bundles = b->n_row_labels = 0;
  stretches_clear (&b->stretches);
}

static bool
find (Blocks *b, const uint8_t *slot)
{
  b->n_places = ls_places_n (b->at);
  count_places_of_period (b);
  return bundles_find (b, slot) && rows_find (b);
}

/* False: nothing comes again that often, and nothing is found. */
static bool
find_in_stretches (Blocks *b, const uint8_t *slot)
{
  uint32_t period = b->period;
  if (period == 0 || b->x->options.slow || !stretches_find (&b->stretches, b->plan, period))
    return false;
  b->period = b->stretches.tier[0].stretch;
  if (sorts_find (b, slot) && find (b, slot))
    return true;
  forget (b);
  b->period = period;
  stretches_init (&b->stretches, b->stretches.whole);
  return false;
}

/* The cluster as its places are, or as one. False: it has none. */
static bool
lay_out (Blocks *b, bool is_one)
{
  const Run *x = b->x;
  bool knows_hosts = x->n_jobs == 1 && x->extras->n_traffic == 0;
  b->shapes = is_one || knows_hosts ? shapes_new (x, is_one) : NULL;
  if (!b->shapes)
    return false;
  stretches_init (&b->stretches, shapes_places (b->shapes));
  b->at = &b->stretches.at;
  b->fastest = run_fastest_kernel (x);
  b->capacity = is_one ? run_capacities (x) : NULL;
  b->laid_out = !is_one                                ? b->stretches.whole
      : ls_places_init (&b->laid_out_else, x->cluster) ? &b->laid_out_else
                                                       : NULL;
  return true;
}

/* slot: [n_comms] of each communicator's members. False: this cluster or plan is not made so. */
static bool
blocks_init (Blocks *b, bool is_one, const uint8_t *slot)
{
  const Run *x = b->x;
  b->arena = ls_arena_new ();
  if (!lay_out (b, is_one) || !find_ranks (b))
    return false;
  if (!is_one)
    find_period (b);
  if (!find_in_stretches (b, slot) && !find (b, slot))
    return false;
  b->is_ample = g_new (bool, b->n_places - b->at->n_hosts + 1);
  for (uint32_t i = b->at->n_hosts; i < b->n_places; i++)
    b->is_ample[i - b->at->n_hosts]
        = ls_places_are_ample (b->stretches.whole, x->cluster, stretch_place (&b->stretches, i));
  blocks_refine (b);
  return true;
}

static void
blocks_clear (Blocks *b)
{
  forget (b);
  shapes_free (b->shapes);
  g_free (b->rank_of_gpu);
  g_clear_pointer (&b->arena, ls_arena_free);
  g_free (b->is_ample);
  g_free (b->capacity);
  g_free (b->class_of_place);
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
count_resources (const Blocks *b, const uint32_t *place, uint32_t n_classes, PlaceClasses *p)
{
  g_autofree uint32_t *n_places = g_new0 (uint32_t, b->n_place_classes);
  double most = 0;
  p->n_of_resource = g_new0 (uint32_t, n_classes + 1);
  p->capacity = g_new0 (double, n_classes + 1);
  for (uint32_t i = 0; i < b->n_places; i++)
    n_places[b->class_of_place[i]] += stretch_times (&b->stretches, i);
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t i = 0; i < ls_places_n_at (b->at, place[class]); i++) {
      double capacity = blocks_capacity (b, blocks_resource (b, place[class], i));
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
  g_autofree bool *is_loaded = g_new0 (bool, r->n_resources + 1);
  for (uint32_t e = 0; e < r->n_resources; e++)
    is_loaded[e] = r->first_use[e + 1] > r->first_use[e];
  for (uint32_t i = 0; i < ret->n_others; i++)
    is_loaded[ret->others[i]] = true;
  g_autofree Element *elements = g_new (Element, r->n_resources + 1);
  g_autofree uint32_t *number = g_new0 (uint32_t, r->n_resources + 1);
  for (uint32_t class = 0; class < b->n_place_classes; class ++)
    for (uint32_t e = first[class]; e < first[class + 1]; e++)
      if (is_loaded[e])
        elements[n++] = (Element) { blocks_resource (b, place[class], e - first[class]), e };
  qsort (elements, n, sizeof *elements, by_resource);
  ret->class_of = g_new (uint32_t, r->n_resources + 1);
  memset (ret->class_of, 0xff, r->n_resources * sizeof *ret->class_of);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t *own = &number[class_of[elements[i].element]];
    *own = *own == 0 ? ++ret->n_resources : *own;
    ret->class_of[elements[i].element] = *own - 1;
  }
  PlaceClasses *p = ret->places = g_new0 (PlaceClasses, 1);
  p->at = *b->stretches.whole;
  p->class_of_place = g_new (uint32_t, ls_places_n (&p->at) + 1);
  stretches_spread (&b->stretches, b->class_of_place, p->class_of_place);
  p->first = g_memdup2 (first, b->n_place_classes * sizeof *first);
  p->class_of = g_memdup2 (ret->class_of, r->n_resources * sizeof *p->class_of);
  count_resources (b, place, ret->n_resources, p);
}

bool
fold_classes (Run *x, bool is_one, FoldClasses *ret)
{
  g_autofree uint8_t *slot = fold_owed (x), *peers = fold_peers (x);
  Blocks b = { .x = x, .plan = x->plan, .roles = x->role_calls, .peers = peers };
  bool ok = slot && blocks_init (&b, is_one, slot);
  ok = ok && blocks_classify (&b, slot, ret);
  blocks_clear (&b);
  return ok;
}
