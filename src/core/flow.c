#include "core/flow.h"

#include <math.h>

#include "core/fill.h"

struct LsFlowNet {
  LsEngine *engine;
  LsEvent solve;
  uint32_t n_res;
  double *capacity;
  GPtrArray *active; /* LsFlow                                       */
  uint32_t n_uses;   /* of all that are active                       */
  uint64_t n_solves;
  double quantum;  /* of levels                                    */
  LsFill *fill;    /* NULL: the reference, which has what follows  */
  uint32_t *local; /* [n_res]: where a resource is in a system     */
  LsFlowWatch watch;
};

#define NO_LOCAL UINT32_MAX

static void solve_event (LsEvent *event, void *context);

LsFlowNet *
ls_flow_net_new (LsEngine *engine, uint32_t n, const double *capacity, bool is_reference)
{
  LsFlowNet *net = g_new0 (LsFlowNet, 1);
  net->engine = engine;
  ls_event_init (&net->solve, solve_event);
  net->n_res = n;
  net->capacity = g_memdup2 (capacity, n * sizeof *capacity);
  for (uint32_t i = 0; i < n; i++)
    g_assert (capacity[i] > 0);
  net->active = g_ptr_array_new ();
  if (!is_reference) {
    net->fill = ls_fill_new (n, capacity);
    net->quantum = ls_fill_quantum (net->fill);
    return net;
  }
  net->quantum = ls_level_quantum (n, capacity);
  net->local = g_new (uint32_t, n);
  return net;
}

void
ls_flow_net_free (LsFlowNet *net)
{
  if (!net)
    return;
  ls_fill_free (net->fill);
  g_ptr_array_unref (net->active);
  g_free (net->capacity);
  g_free (net->local);
  g_free (net);
}

void
ls_flow_net_watch (LsFlowNet *net, LsFlowWatch watch)
{
  g_assert (net->active->len == 0);
  net->watch = watch;
}

bool
ls_flow_net_is_settled (const LsFlowNet *net)
{
  return !ls_event_is_queued (&net->solve);
}

uint32_t
ls_flow_net_n_active (const LsFlowNet *net)
{
  return net->active->len;
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

void
ls_flow_add (LsFlowNet *net, LsFlow *f)
{
  g_assert (!f->is_active && f->remaining > 0 && f->cap > 0 && isfinite (f->cap));
  if (net->watch.enters)
    net->watch.enters (net->watch.context, f);
  f->is_active = true;
  f->is_late = false;
  f->net = net;
  f->rate = 0;
  f->moved = 0;
  f->updated_at = net->engine->now;
  f->index = net->active->len;
  g_ptr_array_add (net->active, f);
  net->n_uses += f->n_uses;
  if (net->fill)
    ls_fill_add (net->fill, f);
  want_solve (net);
}

void
ls_flow_adopt (LsFlowNet *net, LsFlow *f, LsTime since, LsTime end)
{
  ls_flow_add (net, f);
  f->rate = f->cap;
  f->updated_at = since;
  ls_engine_at (net->engine, &f->done, end, LS_PHASE_COMPLETE);
}

void
ls_flow_remove (LsFlowNet *net, LsFlow *f)
{
  g_assert (f->is_active);
  f->is_active = false;
  f->moved += f->rate * ls_time_to_s (net->engine->now - f->updated_at);
  ls_engine_cancel (net->engine, &f->done);
  net->n_uses -= f->n_uses;
  LsFlow *last = net->active->pdata[net->active->len - 1];
  g_ptr_array_remove_index_fast (net->active, f->index);
  if (last != f)
    last->index = f->index;
  if (net->fill)
    ls_fill_remove (net->fill, f);
  want_solve (net);
  if (net->watch.leaves)
    net->watch.leaves (net->watch.context, f);
}

void
ls_flow_set_cap (LsFlowNet *net, LsFlow *f, double cap)
{
  g_assert (cap > 0 && isfinite (cap));
  if (cap == f->cap)
    return;
  if (net->watch.leaves)
    net->watch.leaves (net->watch.context, f);
  f->cap = cap;
  if (net->fill)
    ls_fill_set_cap (net->fill, f);
  want_solve (net);
  if (net->watch.enters)
    net->watch.enters (net->watch.context, f);
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
queue_end (LsFlowNet *net, LsFlow *f, LsTime end)
{
  f->is_late = false;
  ls_engine_at (net->engine, &f->done, end, LS_PHASE_COMPLETE);
}

static inline void
set_rate (LsFlowNet *net, LsFlow *f, double rate)
{
  if (rate == f->rate)
    return;
  LsTime now = net->engine->now;
  bool is_first = f->rate == 0;
  if (!is_first) {
    double moved = f->rate * ((double) (now - f->updated_at) / (double) LS_S);
    f->moved += moved;
    f->remaining = f->remaining > moved ? f->remaining - moved : 0;
    f->nominal = 0;
  }
  f->updated_at = now;
  f->rate = rate;
  double until_fired = (double) (f->done.at - now); /* 1e-14 is more than finish_time() is rounded by */
  if (!is_first && net->fill && f->remaining * (double) LS_S >= rate * until_fired * (1 + 1e-14))
    f->is_late = true;
  else
    queue_end (net, f, finish_time (f, now));
}

static void
done_event (LsEvent *event, void *context)
{
  LsFlow *f = (LsFlow *) ((char *) event - offsetof (LsFlow, done));
  LsTime end = f->is_late ? finish_time (f, f->updated_at) : event->at;
  if (end > event->at)
    queue_end (f->net, f, end);
  else
    f->over (event, context);
}

void
ls_flow_init (LsFlow *f, LsEventFn over)
{
  ls_event_init (&f->done, done_event);
  f->over = over;
}

/* The resources that are used, numbered as they are met, so that idle ones cost nothing. */
static void
system_add (LsFlowNet *net, LsMaxmin *p, const LsFlow *f, double *capacity, uint32_t *res, uint64_t *coef)
{
  uint32_t at = p->first[p->n_act];
  for (uint32_t i = 0; i < f->n_uses; i++, at++) {
    uint32_t *local = &net->local[f->uses[i].resource];
    if (*local == NO_LOCAL) {
      *local = p->n_res++;
      capacity[*local] = net->capacity[f->uses[i].resource];
    }
    res[at] = *local;
    coef[at] = f->uses[i].coef;
  }
  p->n_act++;
}

static void
solve_all (LsFlowNet *net)
{
  uint32_t n = net->active->len;
  g_autofree double *capacity = g_new (double, net->n_res), *cap = g_new (double, n),
                    *rate = g_new (double, n);
  g_autofree uint32_t *first = g_new0 (uint32_t, n + 1), *res = g_new (uint32_t, net->n_uses);
  g_autofree uint64_t *coef = g_new (uint64_t, net->n_uses);
  LsMaxmin p = {
    .capacity = capacity, .rate_cap = cap, .first = first, .res = res, .coef = coef, .quantum = net->quantum
  };
  for (uint32_t i = 0; i < net->n_res; i++)
    net->local[i] = NO_LOCAL;
  for (uint32_t i = 0; i < n; i++) {
    const LsFlow *f = net->active->pdata[i];
    cap[i] = f->cap;
    first[i + 1] = first[i] + f->n_uses;
    system_add (net, &p, f, capacity, res, coef);
  }
  g_autofree void *scratch = g_malloc (ls_maxmin_scratch_bytes (&p) + 1);
  ls_maxmin_solve (&p, scratch, rate);
  net->n_solves++;
  for (uint32_t i = 0; i < n; i++)
    set_rate (net, net->active->pdata[i], rate[i]);
}

static void
solve_event (LsEvent *event, void *context)
{
  LsFlowNet *net = (LsFlowNet *) ((char *) event - offsetof (LsFlowNet, solve));
  if (!net->fill) {
    solve_all (net);
    return;
  }
  LsFlow **changed;
  uint32_t n;
  net->n_solves += ls_fill_settle (net->fill, &changed, &n);
  for (uint32_t i = 0; i < n; i++)
    set_rate (net, changed[i], ls_fill_rate (changed[i], net->quantum));
}

void
ls_flow_net_check (const LsFlowNet *net)
{
  g_autofree double *load = g_new0 (double, net->n_res);
  for (guint i = 0; i < net->active->len; i++) {
    const LsFlow *f = net->active->pdata[i];
    g_assert (f->rate <= f->cap * (1 + 1e-12));
    for (uint32_t k = 0; k < f->n_uses; k++)
      load[f->uses[k].resource] += (double) f->uses[k].coef / (double) LS_COEF_ONE * f->rate;
  }
  for (uint32_t i = 0; i < net->n_res; i++)
    g_assert (load[i] <= net->capacity[i] * (1 + 1e-9) + net->quantum); /* which it is rounded up to */
  if (net->fill)
    ls_fill_check (net->fill);
}
