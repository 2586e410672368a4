#include "core/flow.h"

#include <math.h>
#include <string.h>

/* A part of the system as the solver wants it: LsMaxmin with room for all that is
 * active. Between two solves it is empty. */
typedef struct {
  LsFlow **flows;
  double *cap, *rate;
  uint32_t *first;
  uint32_t n_flows, max_flows;
  uint32_t *use_res;
  uint64_t *use_coef;
  uint32_t n_uses, max_uses;
  uint32_t *resources; /* [n_res] of the net */
  double *capacity;
  uint32_t n_resources;
} Component;

struct LsFlowNet {
  LsEngine *engine;
  LsEvent solve;
  LsFlowResource *res;
  uint32_t n_res;
  bool is_reference;
  GPtrArray *active;  /* LsFlow                                 */
  uint32_t n_uses;    /* of all that are active                 */
  GArray *marked_res; /* uint32_t: resources whose users changed */
  GPtrArray *marked;  /* LsFlow: rates to find                   */
  uint64_t n_solves;
  Component component;
  void *scratch;
  size_t scratch_bytes;
};

#define NO_LOCAL UINT32_MAX
/* A resource is taken for one that can fill slightly before it can: including
 * one that cannot changes no rate, leaving one out would. */
#define FILL_MARGIN (1 - 1e-9)

static void solve_event (LsEvent *event, void *context);

static LsFlowNet *
net_of (LsEvent *event)
{
  return (LsFlowNet *) ((char *) event - offsetof (LsFlowNet, solve));
}

static void
component_init (Component *c, uint32_t n_resources)
{
  c->resources = g_new (uint32_t, n_resources);
  c->capacity = g_new (double, n_resources);
  c->first = g_new0 (uint32_t, 1);
}

static void
component_free (Component *c)
{
  g_free (c->flows);
  g_free (c->cap);
  g_free (c->rate);
  g_free (c->first);
  g_free (c->use_res);
  g_free (c->use_coef);
  g_free (c->resources);
  g_free (c->capacity);
}

static void
component_reserve (Component *c, uint32_t n_flows, uint32_t n_uses)
{
  if (n_flows > c->max_flows) {
    c->max_flows = MAX (16, 2 * n_flows);
    c->flows = g_renew (LsFlow *, c->flows, c->max_flows);
    c->cap = g_renew (double, c->cap, c->max_flows);
    c->rate = g_renew (double, c->rate, c->max_flows);
    c->first = g_renew (uint32_t, c->first, c->max_flows + 1);
  }
  if (n_uses > c->max_uses) {
    c->max_uses = MAX (64, 2 * n_uses);
    c->use_res = g_renew (uint32_t, c->use_res, c->max_uses);
    c->use_coef = g_renew (uint64_t, c->use_coef, c->max_uses);
  }
}

LsFlowNet *
ls_flow_net_new (LsEngine *engine, uint32_t n, const double *capacity, bool is_reference)
{
  LsFlowNet *net = g_new0 (LsFlowNet, 1);
  net->engine = engine;
  ls_event_init (&net->solve, solve_event);
  net->n_res = n;
  net->res = g_new0 (LsFlowResource, n);
  for (uint32_t i = 0; i < n; i++) {
    g_assert (capacity[i] > 0);
    net->res[i].capacity = capacity[i];
    net->res[i].local = NO_LOCAL;
  }
  net->is_reference = is_reference;
  net->active = g_ptr_array_new ();
  net->marked = g_ptr_array_new ();
  net->marked_res = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  component_init (&net->component, n);
  return net;
}

void
ls_flow_net_free (LsFlowNet *net)
{
  if (!net)
    return;
  component_free (&net->component);
  g_array_unref (net->marked_res);
  g_ptr_array_unref (net->active);
  g_ptr_array_unref (net->marked);
  g_free (net->scratch);
  g_free (net->res);
  g_free (net);
}

uint64_t
ls_flow_net_n_solves (const LsFlowNet *net)
{
  return net->n_solves;
}

/* --- what changed ------------------------------------------------------ */

static void
want_solve (LsFlowNet *net)
{
  if (!ls_event_is_queued (&net->solve))
    ls_engine_at (net->engine, &net->solve, net->engine->now, LS_PHASE_RATE);
}

static void
mark_flow (LsFlowNet *net, LsFlow *f)
{
  if (f->is_marked)
    return;
  f->is_marked = true;
  g_ptr_array_add (net->marked, f);
}

static void
mark_resources (LsFlowNet *net, const LsFlow *f)
{
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowResource *r = &net->res[f->uses[i].resource];
    if (r->is_marked)
      continue;
    r->is_marked = true;
    g_array_append_val (net->marked_res, f->uses[i].resource);
  }
  want_solve (net);
}

void
ls_flow_add (LsFlowNet *net, LsFlow *f)
{
  g_assert (!f->is_active && f->remaining > 0 && f->cap > 0 && isfinite (f->cap));
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowUse *u = &f->uses[i];
    LsFlowResource *r = &net->res[u->resource];
    u->flow = f;
    u->prev = NULL;
    u->next = r->first;
    if (r->first)
      r->first->prev = u;
    r->first = u;
  }
  f->is_active = true;
  f->is_marked = false;
  f->local = NO_LOCAL;
  f->rate = 0;
  f->moved = 0;
  f->updated_at = net->engine->now;
  f->index = net->active->len;
  g_ptr_array_add (net->active, f);
  net->n_uses += f->n_uses;
  component_reserve (&net->component, net->active->len, net->n_uses);
  mark_flow (net, f);
  mark_resources (net, f);
}

void
ls_flow_remove (LsFlowNet *net, LsFlow *f)
{
  g_assert (f->is_active);
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowUse *u = &f->uses[i];
    if (u->prev)
      u->prev->next = u->next;
    else
      net->res[u->resource].first = u->next;
    if (u->next)
      u->next->prev = u->prev;
  }
  f->is_active = false;
  f->moved += f->rate * ls_time_to_s (net->engine->now - f->updated_at);
  if (f->is_marked)
    g_ptr_array_remove_fast (net->marked, f);
  f->is_marked = false;
  ls_engine_cancel (net->engine, &f->done);
  net->n_uses -= f->n_uses;
  LsFlow *last = net->active->pdata[net->active->len - 1];
  g_ptr_array_remove_index_fast (net->active, f->index);
  if (last != f)
    last->index = f->index;
  mark_resources (net, f);
}

void
ls_flow_set_cap (LsFlowNet *net, LsFlow *f, double cap)
{
  g_assert (cap > 0 && isfinite (cap));
  if (cap == f->cap)
    return;
  f->cap = cap;
  mark_flow (net, f);
  mark_resources (net, f);
}

/* --- new rates --------------------------------------------------------- */

static LsTime
finish_time (const LsFlow *f, LsTime now)
{
  bool is_untouched = f->nominal > 0 && f->rate == f->nominal_rate && f->updated_at == now;
  LsTime left = is_untouched ? f->nominal : ls_time_from_s_up (f->remaining / f->rate);
  return left >= LS_TIME_NEVER - now ? LS_TIME_NEVER : now + left;
}

static void
set_rate (LsFlowNet *net, LsFlow *f, double rate)
{
  if (rate == f->rate)
    return;
  LsTime now = net->engine->now;
  bool is_first = f->rate == 0;
  if (!is_first) {
    double moved = f->rate * ls_time_to_s (now - f->updated_at);
    f->moved += moved;
    f->remaining = fmax (0, f->remaining - moved);
    f->nominal = 0;
  }
  f->updated_at = now;
  f->rate = rate;
  ls_engine_at (net->engine, &f->done, finish_time (f, now), LS_PHASE_COMPLETE);
}

static bool
can_fill (const LsFlowResource *r)
{
  double sum = 0;
  for (const LsFlowUse *u = r->first; u; u = u->next)
    sum += (double) u->coef / (double) LS_COEF_ONE * u->flow->cap;
  return sum > r->capacity * FILL_MARGIN;
}

/* The users of a resource that could fill, or now can, need new rates. */
static void
mark_users (LsFlowNet *net)
{
  for (guint i = 0; i < net->marked_res->len; i++) {
    LsFlowResource *r = &net->res[g_array_index (net->marked_res, uint32_t, i)];
    bool could = r->can_fill;
    r->can_fill = can_fill (r);
    r->is_marked = false;
    if (could || r->can_fill)
      for (LsFlowUse *u = r->first; u; u = u->next)
        mark_flow (net, u->flow);
  }
  g_array_set_size (net->marked_res, 0);
}

static void
component_add_resource (Component *c, uint32_t id, LsFlowResource *r)
{
  if (r->local != NO_LOCAL)
    return;
  r->local = c->n_resources++;
  c->resources[r->local] = id;
  c->capacity[r->local] = r->capacity;
}

static void
component_add_flow (LsFlowNet *net, LsFlow *f)
{
  Component *c = &net->component;
  f->is_marked = false;
  f->local = c->n_flows++;
  c->flows[f->local] = f;
  c->cap[f->local] = f->cap;
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowResource *r = &net->res[f->uses[i].resource];
    if (!net->is_reference && !r->can_fill)
      continue;
    component_add_resource (c, f->uses[i].resource, r);
    c->use_res[c->n_uses] = r->local;
    c->use_coef[c->n_uses++] = f->uses[i].coef;
  }
  c->first[c->n_flows] = c->n_uses;
}

static void
component_clear (LsFlowNet *net)
{
  Component *c = &net->component;
  for (uint32_t i = 0; i < c->n_resources; i++)
    net->res[c->resources[i]].local = NO_LOCAL;
  for (uint32_t i = 0; i < c->n_flows; i++)
    c->flows[i]->local = NO_LOCAL;
  c->n_resources = c->n_flows = c->n_uses = 0;
}

static void
component_solve (LsFlowNet *net)
{
  Component *c = &net->component;
  LsMaxmin p = {
    .n_res = c->n_resources,
    .n_act = c->n_flows,
    .capacity = c->capacity,
    .rate_cap = c->cap,
    .first = c->first,
    .res = c->use_res,
    .coef = c->use_coef,
  };
  size_t need = ls_maxmin_scratch_bytes (&p);
  if (!net->scratch || need > net->scratch_bytes) {
    net->scratch_bytes = MAX (2 * need, 64);
    net->scratch = g_realloc (net->scratch, net->scratch_bytes);
  }
  ls_maxmin_solve (&p, net->scratch, c->rate);
  net->n_solves++;
  for (uint32_t i = 0; i < p.n_act; i++)
    set_rate (net, c->flows[i], c->rate[i]);
}

/* All that is connected to f by resources that can fill. */
static void
solve_around (LsFlowNet *net, LsFlow *f)
{
  Component *c = &net->component;
  component_add_flow (net, f);
  for (uint32_t done = 0; done < c->n_resources; done++) {
    LsFlowResource *r = &net->res[c->resources[done]];
    for (LsFlowUse *u = r->first; u; u = u->next)
      if (u->flow->local == NO_LOCAL)
        component_add_flow (net, u->flow);
  }
  if (c->n_resources > 0)
    component_solve (net);
  else
    set_rate (net, f, f->cap);
  component_clear (net);
}

static void
solve_all (LsFlowNet *net)
{
  for (guint i = 0; i < net->active->len; i++)
    component_add_flow (net, net->active->pdata[i]);
  component_solve (net);
  component_clear (net);
}

static void
solve_event (LsEvent *event, void *context)
{
  LsFlowNet *net = net_of (event);
  mark_users (net);
  if (net->is_reference)
    solve_all (net);
  else
    for (guint i = 0; i < net->marked->len; i++) {
      LsFlow *f = net->marked->pdata[i];
      if (f->is_marked)
        solve_around (net, f);
    }
  g_ptr_array_set_size (net->marked, 0);
}

void
ls_flow_net_check (const LsFlowNet *net)
{
  for (uint32_t i = 0; i < net->n_res; i++) {
    double sum = 0;
    for (const LsFlowUse *u = net->res[i].first; u; u = u->next)
      sum += (double) u->coef / (double) LS_COEF_ONE * u->flow->rate;
    g_assert (sum <= net->res[i].capacity * (1 + 1e-9));
  }
  for (guint i = 0; i < net->active->len; i++) {
    const LsFlow *f = net->active->pdata[i];
    g_assert (f->rate <= f->cap * (1 + 1e-12));
  }
}
