/* core/flow.h — activities in progress on shared resources.
 *
 * An activity (LsFlow) has D bytes left on each of its flows, a cap on their
 * common rate, and uses: on resource l, coef/LS_COEF_ONE flows cross. Rates are
 * max-min fair (core/maxmin.h). When the set of activities or a cap changes, what
 * changed is marked; once per instant, after everything that ends or starts at it,
 * every concerned activity gets its new rate. Remaining work is updated only when a rate
 * changes by value. The completion event then moves if it has to come earlier; if it comes
 * too early, it is put off when it fires.
 *
 * Only the rates that change are found again (core/fill.h). The reference solver
 * takes all activities and all that they use every time, and moves every event; both give
 * the same rates, to the bit, and the same times.
 *
 * An activity that runs from start to end at `nominal_rate` takes exactly
 * `nominal` picoseconds, so contention-free durations are not rounded twice. */
#ifndef LS_CORE_FLOW_H
#define LS_CORE_FLOW_H

#include <glib.h>

#include "core/engine.h"
#include "core/maxmin.h"

typedef struct LsFlow LsFlow;
typedef struct LsFlowNet LsFlowNet;

typedef struct {
  uint64_t coef;
  uint32_t resource;
  uint32_t slot; /* private: among the users of the resource */
} LsFlowUse;

/* In the order in which it is read. */
struct LsFlow {
  /* private to fill.c */
  int64_t level, cap_level;
  int64_t reserved;    /* up to this level only the watched uses matter          */
  uint64_t watched;    /* bits of the first uses                                 */
  uint64_t changed_in; /* the settling that changed the level                    */
  bool is_stale;
  /* private to flow.c */
  bool is_late; /* ends later than `done` fires, if rates stay as they are */

  bool is_active;
  uint32_t n_uses;
  LsFlowUse *uses;  /* the owner's memory                                     */
  double rate;      /* bytes/s; 0 before the first solve                      */
  double remaining; /* bytes per flow, as of updated_at                       */
  double moved;     /* bytes per flow until updated_at, whatever was asked    */
  LsTime updated_at;
  LsTime nominal; /* duration at nominal_rate; 0: not given                 */
  LsEvent done;   /* phase COMPLETE                                         */
  double cap;     /* bytes/s                                                */
  double nominal_rate;
  LsEventFn over; /* its owner's, with `done`: must call ls_flow_remove() first */
  LsFlowNet *net;
  uint32_t index; /* in the net's list of active flows                      */
};

/* capacity: [n], bytes/s, copied. is_reference: solve everything every time. */
LsFlowNet *ls_flow_net_new (LsEngine *engine, uint32_t n, const double *capacity, bool is_reference);
void ls_flow_net_free (LsFlowNet *net); /* NULL allowed */

/* Who is told of all that a net holds up: before something comes in, and when it is out again. A change of
 * cap is both. */
typedef struct {
  void (*enters) (void *context, const LsFlow *f); /* NULL: nobody is told */
  void (*leaves) (void *context, const LsFlow *f);
  void *context;
} LsFlowWatch;

/* While the net is empty. */
void ls_flow_net_watch (LsFlowNet *net, LsFlowWatch watch);

/* Once, before all else: what completion calls. */
void ls_flow_init (LsFlow *f, LsEventFn over);
/* Begin: `remaining`, `cap`, `uses[].resource/coef`, `n_uses` and perhaps
 * `nominal` are set, remaining > 0, cap > 0 and finite. */
void ls_flow_add (LsFlowNet *net, LsFlow *f);
/* The same for one that has been in progress since then, at its cap all the time, unseen
 * because none of its resources could fill (exec/messages/lease.h): from now on it is one like
 * any other. `end` >= now: when it is over if nothing changes. */
void ls_flow_adopt (LsFlowNet *net, LsFlow *f, LsTime since, LsTime end);
/* Afterwards `moved` is the integral of its rate: what it really moved. */
void ls_flow_remove (LsFlowNet *net, LsFlow *f);
void ls_flow_set_cap (LsFlowNet *net, LsFlow *f, double cap);

/* At how many instants something had to be solved: a resource filled, or did before. */
uint64_t ls_flow_net_n_solves (const LsFlowNet *net);

/* Asserts: no resource is over capacity (1e-9 relative and a quantum, core/level.h), no rate above its cap;
 * once rates are those of what is there now. */
void ls_flow_net_check (const LsFlowNet *net);
bool ls_flow_net_is_settled (const LsFlowNet *net);
uint32_t ls_flow_net_n_active (const LsFlowNet *net);

#endif
