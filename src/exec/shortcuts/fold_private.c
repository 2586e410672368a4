/* exec/shortcuts/fold_private.c — which communicators have what they load to themselves.
 *
 * Everything that loads a resource needs some ranks: a collective its members, a transfer
 * both ends, a kernel or a copy one. A resource is owned by the classes of ranks that all of
 * these need: while one of them does something else, nothing loads it. A communicator of one
 * class whose calls load only what that class owns cannot be disturbed by anything in which
 * the class has no part.
 *
 * Worked example. Tensor parallelism in a node beside a pipeline: the NVLink ports of a GPU carry
 * its all-reduces and, if the next stage is in the same node, its sends. All need that GPU, so
 * its class owns the port. If all-reduces cross a NIC that another class sends through, nobody
 * owns that, nor what traffic of no rank loads. */
#include "exec/shortcuts/refine.h"
#include "exec/extras.h"

#define NOBODY UINT32_MAX

typedef struct {
  uint32_t a, b; /* classes of ranks; NOBODY: none; b is not a */
  bool is_loaded;
} Owners;

typedef struct {
  const FoldClasses *c;
  Owners *owners; /* by class of resource */
} Private;

static bool
is_among (const uint32_t *classes, uint32_t n, uint32_t class)
{
  for (uint32_t i = 0; i < n; i++)
    if (classes[i] == class)
      return true;
  return false;
}

/* Of what is loaded; NULL: it is ample, and disturbs nobody. */
static Owners *
owners_of (const Private *p, uint32_t load)
{
  uint32_t resource = p->c->refine->loads[load].resource;
  return p->c->refine->is_ample[resource] ? NULL : &p->owners[p->c->class_of[resource]];
}

/* Loads from .. to need these classes: owners are those that have been needed each time. More than
 * two come last: what only they load, is of no communicator of one class. */
static void
need (Private *p, uint32_t from, uint32_t to, const uint32_t *classes, uint32_t n)
{
  for (uint32_t i = from; i < to; i++) {
    Owners *o = owners_of (p, i);
    if (!o)
      continue;
    if (!o->is_loaded)
      *o = (Owners) { classes[0], n > 1 ? classes[1] : NOBODY, true };
    if (!is_among (classes, n, o->a))
      o->a = NOBODY;
    if (!is_among (classes, n, o->b))
      o->b = NOBODY;
  }
}

static void
need_sends (Private *p, const Fold *f, uint32_t class, int to_next)
{
  uint32_t rank = f->whole.rank[class], peer = ls_plan_peer (f->whole.plan, rank, to_next);
  const uint32_t *sends = p->c->sends[p->c->row_of_rank[class]];
  const uint32_t ends[2] = { class, peer == UINT32_MAX ? class : ls_rank_class (f->whole.classes, peer) };
  need (p, sends[to_next], sends[to_next + 1], ends, 2);
}

/* One of a class stands for all: they load resources of the same classes. */
static void
find_owners (Private *p, const Fold *f)
{
  const uint32_t *first = p->c->refine->first;
  for (uint32_t i = 0; i < f->quotient->n_ranks; i++) {
    uint32_t row = p->c->row_of_rank[i], at = p->c->refine->n_comms + row;
    need (p, first[at], p->c->sends[row][0], &i, 1);
    need_sends (p, f, i, 0);
    need_sends (p, f, i, 1);
    need (p, p->c->sends[row][2], first[at + 1], &i, 1);
  }
  for (int is_last = 0; is_last < 2; is_last++)
    for (uint32_t i = 0; i < f->quotient->n_comms; i++) {
      const LsCommunicator c = ls_plan_communicator (f->quotient, i);
      g_autofree uint32_t *ranks = ls_comm_ranks (&c);
      if ((c.n_ranks > 1) == is_last)
        need (p, first[p->c->row_of_comm[i]], first[p->c->row_of_comm[i] + 1], ranks, c.n_ranks);
    }
  for (uint32_t i = 0; i < p->c->n_others; i++)
    p->owners[p->c->class_of[p->c->others[i]]] = (Owners) { NOBODY, NOBODY, true };
}

static bool
owns_all (const Private *p, uint32_t from, uint32_t to, uint32_t class)
{
  for (uint32_t i = from; i < to; i++) {
    const Owners *o = owners_of (p, i);
    if (o && o->a != class && o->b != class)
      return false;
  }
  return true;
}

bool *
fold_private (const Fold *f, const FoldClasses *classes)
{
  g_autofree Owners *owners = g_new0 (Owners, f->whole.n_resources);
  Private p = { classes, owners };
  find_owners (&p, f);
  bool *is_private = g_new0 (bool, (gsize) f->quotient->n_comms + 1);
  for (uint32_t i = 0; i < f->quotient->n_comms; i++) {
    const LsCommunicator c = ls_plan_communicator (f->quotient, i);
    const uint32_t *first = &classes->refine->first[classes->row_of_comm[i]];
    is_private[i] = c.n_ranks == 1 && owns_all (&p, first[0], first[1], ls_comm_rank (&c, 0));
  }
  return is_private;
}
