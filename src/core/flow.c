#include "core/flow.h"

#include <math.h>
#include <string.h>

struct LsFlowNet {
  LsEngine *engine;
  LsEvent solve;
  LsFlowResource *res;
  uint32_t n_res;
  bool is_reference;
  GPtrArray *active;  /* LsFlow                                 */
  GArray *marked_res; /* uint32_t: resources whose users changed */
  GPtrArray *marked;  /* LsFlow: rates to find                   */
  uint64_t n_solves;
  /* one component, as the solver wants it */
  GPtrArray *flows;
  GArray *resources, *capacity, *cap, *first, *use_res, *use_coef, *rate;
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
  net->flows = g_ptr_array_new ();
  net->marked_res = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  net->resources = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  net->first = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  net->use_res = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  net->use_coef = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  net->capacity = g_array_new (FALSE, FALSE, sizeof (double));
  net->cap = g_array_new (FALSE, FALSE, sizeof (double));
  net->rate = g_array_new (FALSE, FALSE, sizeof (double));
  return net;
}

void
ls_flow_net_free (LsFlowNet *net)
{
  if (!net)
    return;
  GArray *arrays[] = { net->marked_res, net->resources, net->first, net->use_res, net->use_coef, net->capacity, net->cap, net->rate };
  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    g_array_unref (arrays[i]);
  g_ptr_array_unref (net->active);
  g_ptr_array_unref (net->marked);
  g_ptr_array_unref (net->flows);
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
  f->updated_at = net->engine->now;
  f->index = net->active->len;
  g_ptr_array_add (net->active, f);
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
  if (f->is_marked)
    g_ptr_array_remove_fast (net->marked, f);
  f->is_marked = false;
  ls_engine_cancel (net->engine, &f->done);
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
    f->remaining = fmax (0, f->remaining - f->rate * ls_time_to_s (now - f->updated_at));
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
component_add_resource (LsFlowNet *net, uint32_t id)
{
  LsFlowResource *r = &net->res[id];
  if (r->local != NO_LOCAL)
    return;
  r->local = net->resources->len;
  g_array_append_val (net->resources, id);
  g_array_append_val (net->capacity, r->capacity);
}

static void
component_add_flow (LsFlowNet *net, LsFlow *f)
{
  f->is_marked = false;
  f->local = net->flows->len;
  g_ptr_array_add (net->flows, f);
  g_array_append_val (net->cap, f->cap);
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowResource *r = &net->res[f->uses[i].resource];
    if (!net->is_reference && !r->can_fill)
      continue;
    component_add_resource (net, f->uses[i].resource);
    g_array_append_val (net->use_res, r->local);
    g_array_append_val (net->use_coef, f->uses[i].coef);
  }
  g_array_append_val (net->first, net->use_res->len);
}

static void
component_clear (LsFlowNet *net)
{
  for (guint i = 0; i < net->resources->len; i++)
    net->res[g_array_index (net->resources, uint32_t, i)].local = NO_LOCAL;
  for (guint i = 0; i < net->flows->len; i++)
    ((LsFlow *) net->flows->pdata[i])->local = NO_LOCAL;
  g_ptr_array_set_size (net->flows, 0);
  GArray *arrays[] = { net->resources, net->capacity, net->cap, net->first, net->use_res, net->use_coef };
  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    g_array_set_size (arrays[i], 0);
  uint32_t zero = 0;
  g_array_append_val (net->first, zero);
}

static void
component_solve (LsFlowNet *net)
{
  LsMaxmin p = {
    .n_res = net->resources->len,
    .n_act = net->flows->len,
    .capacity = (const double *) net->capacity->data,
    .rate_cap = (const double *) net->cap->data,
    .first = (const uint32_t *) net->first->data,
    .res = (const uint32_t *) net->use_res->data,
    .coef = (const uint64_t *) net->use_coef->data,
  };
  size_t need = ls_maxmin_scratch_bytes (&p);
  if (need > net->scratch_bytes) {
    net->scratch = g_realloc (net->scratch, need * 2);
    net->scratch_bytes = need * 2;
  }
  g_array_set_size (net->rate, p.n_act);
  double *rate = (double *) net->rate->data;
  ls_maxmin_solve (&p, net->scratch, rate);
  net->n_solves++;
  for (uint32_t i = 0; i < p.n_act; i++)
    set_rate (net, net->flows->pdata[i], rate[i]);
}

/* All that is connected to f by resources that can fill. */
static void
solve_around (LsFlowNet *net, LsFlow *f)
{
  component_clear (net);
  component_add_flow (net, f);
  for (guint done = 0; done < net->resources->len; done++) {
    LsFlowResource *r = &net->res[g_array_index (net->resources, uint32_t, done)];
    for (LsFlowUse *u = r->first; u; u = u->next)
      if (u->flow->local == NO_LOCAL)
        component_add_flow (net, u->flow);
  }
  if (net->resources->len > 0)
    component_solve (net);
  else
    set_rate (net, f, f->cap);
  component_clear (net);
}

static void
solve_all (LsFlowNet *net)
{
  component_clear (net);
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
