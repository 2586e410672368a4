/* core/flow.h — activities in progress on shared resources.
 *
 * An activity (LsFlow) has D bytes left on each of its flows, a cap on their
 * common rate, and uses: on resource l, coef/LS_COEF_ONE flows cross. Rates are
 * max-min fair (core/maxmin.h). When the set of activities or a cap changes, what
 * changed is marked; once per instant, after everything that ends or starts at it,
 * ls_flow_net_solve() gives every concerned activity its new rate and moves its
 * completion event. Remaining work is updated only when a rate changes by value.
 *
 * Only the part that changed is solved again. Two activities are coupled by a
 * resource only if it can fill: where the sum of coef * cap of all its activities
 * stays below its capacity, the resource never binds, whatever the others do.
 * A component is what is connected by resources that can fill; an activity that
 * touches none runs at its cap, found in O(path). The reference solver takes all
 * activities and all resources every time.
 *
 * An activity that runs from start to end at `nominal_rate` takes exactly
 * `nominal` picoseconds, so contention-free durations are not rounded twice. */
#ifndef LS_CORE_FLOW_H
#define LS_CORE_FLOW_H

#include <glib.h>

#include "core/engine.h"
#include "core/maxmin.h"

typedef struct LsFlow LsFlow;
typedef struct LsFlowUse LsFlowUse;

struct LsFlowUse {
  LsFlow *flow;
  LsFlowUse *prev, *next; /* on the resource: LsFlowResource.first */
  uint64_t coef;
  uint32_t resource;
};

struct LsFlow {
  LsEvent done;      /* fires at completion, phase COMPLETE; its owner's callback
                        must call ls_flow_remove() first                     */
  double remaining;  /* bytes per flow, as of updated_at                     */
  double cap;        /* bytes/s                                              */
  double rate;       /* bytes/s; 0 before the first solve                    */
  double moved;      /* bytes per flow until updated_at, whatever was asked  */
  LsTime updated_at;
  LsTime nominal;    /* duration at nominal_rate; 0: not given               */
  double nominal_rate;
  LsFlowUse *uses;   /* the owner's memory                                   */
  uint32_t n_uses;
  uint32_t index;    /* in the net's list of active flows                    */
  uint32_t local;    /* scratch: index within the component being solved     */
  bool is_active, is_marked;
};

typedef struct {
  double capacity;
  LsFlowUse *first;
  uint32_t local;    /* scratch                                              */
  bool is_marked, can_fill;
} LsFlowResource;

typedef struct LsFlowNet LsFlowNet;

/* capacity: [n], bytes/s, copied. is_reference: solve everything every time. */
LsFlowNet *ls_flow_net_new (LsEngine *engine, uint32_t n, const double *capacity, bool is_reference);
void ls_flow_net_free (LsFlowNet *net); /* NULL allowed */

/* Begin: `remaining`, `cap`, `uses[].resource/coef`, `n_uses` and perhaps
 * `nominal` are set, remaining > 0, cap > 0 and finite. */
void ls_flow_add (LsFlowNet *net, LsFlow *f);
/* Afterwards `moved` is the integral of its rate: what it really moved. */
void ls_flow_remove (LsFlowNet *net, LsFlow *f);
void ls_flow_set_cap (LsFlowNet *net, LsFlow *f, double cap);

uint64_t ls_flow_net_n_solves (const LsFlowNet *net);

/* Asserts: no resource is over capacity (1e-9 relative), no rate above its cap. */
void ls_flow_net_check (const LsFlowNet *net);

#endif
