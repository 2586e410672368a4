#include "exec/messages/lease.h"

#include "core/level.h"

typedef struct {
  LsLoad capacity, load; /* load: of all caps */
  GQueue leases;         /* Lease, the latest first */
} Resource;

struct Leases {
  Resource *res;
  double quantum;
  void (*revoked) (Lease *lease);
  GPtrArray *ended; /* Lease: owners not told yet */
  bool is_telling;
};

static void leaves (void *leases, const LsFlow *f);

Leases *
leases_new (LsFlowNet *net, uint32_t n, const double *capacity, void (*revoked) (Lease *lease))
{
  Leases *l = g_new0 (Leases, 1);
  l->res = g_new0 (Resource, n);
  l->quantum = ls_level_quantum (n, capacity);
  for (uint32_t i = 0; i < n; i++)
    l->res[i].capacity = ls_load_of_capacity (capacity[i], l->quantum);
  l->revoked = revoked;
  l->ended = g_ptr_array_new ();
  if (net)
    ls_flow_net_watch (net, (LsFlowWatch) { leases_enter, leaves, l });
  return l;
}

void
leases_free (Leases *l)
{
  if (!l)
    return;
  g_ptr_array_unref (l->ended);
  g_free (l->res);
  g_free (l);
}

static bool
can_fill (const Resource *r)
{
  return r->load > r->capacity;
}

/* sign: +1 it is there, -1 no longer */
static void
count (Leases *l, const LsFlow *f, int sign)
{
  LsLoad level = (LsLoad) sign * ls_level_of_cap (f->cap, l->quantum);
  for (uint32_t i = 0; i < f->n_uses; i++) {
    Resource *r = &l->res[f->uses[i].resource];
    r->load += level * (LsLoad) f->uses[i].coef;
    g_assert (r->load >= 0);
  }
}

bool
leases_could_fill (const Leases *l, const LsFlow *f)
{
  for (uint32_t i = 0; i < f->n_uses; i++)
    if (can_fill (&l->res[f->uses[i].resource]))
      return true;
  return false;
}

bool
leases_take (Leases *l, Lease *lease)
{
  const LsFlow *f = lease->flow;
  g_assert (!lease->is_held);
  count (l, f, +1);
  if (leases_could_fill (l, f)) {
    count (l, f, -1);
    return false;
  }
  for (uint32_t i = 0; i < f->n_uses; i++) {
    lease->at[i] = (GList) { .data = lease };
    g_queue_push_head_link (&l->res[f->uses[i].resource].leases, &lease->at[i]);
  }
  lease->is_held = true;
  return true;
}

void
leases_drop (Leases *l, Lease *lease)
{
  if (!lease->is_held)
    return;
  const LsFlow *f = lease->flow;
  for (uint32_t i = 0; i < f->n_uses; i++)
    g_queue_unlink (&l->res[f->uses[i].resource].leases, &lease->at[i]);
  lease->is_held = false;
  count (l, f, -1);
}

/* What an owner hands over enters in its turn and may end more of them. */
static void
tell_owners (Leases *l)
{
  if (l->is_telling)
    return;
  l->is_telling = true;
  for (guint i = 0; i < l->ended->len; i++)
    l->revoked (l->ended->pdata[i]);
  g_ptr_array_set_size (l->ended, 0);
  l->is_telling = false;
}

void
leases_enter (void *leases, const LsFlow *f)
{
  Leases *l = leases;
  count (l, f, +1);
  for (uint32_t i = 0; i < f->n_uses; i++) {
    Resource *r = &l->res[f->uses[i].resource];
    bool fills = can_fill (r); /* asked once: each that ends changes it */
    while (fills && r->leases.head) {
      g_ptr_array_add (l->ended, r->leases.head->data);
      leases_drop (l, r->leases.head->data);
    }
  }
  tell_owners (l);
}

static void
leaves (void *leases, const LsFlow *f)
{
  count (leases, f, -1);
}
