/* exec/messages/lease.h — flows that need not tell anybody when they come and go.
 *
 * Problem. Each message of a collective is a flow. To add and remove it costs the
 * solver of core/flow.h far more than the one event that says when it is over, though
 * most messages meet nobody: their rate is their cap.
 *
 * A flow with a *lease* runs at its cap whenever its owner likes, without being added
 * to the flow net. Leases are granted, and kept, as long as no resource that the flow
 * uses can fill: with the caps of all that is in the net and of all leases there, in
 * progress or not. Then no rate depends on whether the flow is there, its own neither.
 * What enters the net and could fill a resource first ends the leases on it: their
 * owners are told, and hand over what is in progress (ls_flow_adopt()).
 *
 * Which flows hold a lease depends on the order of events, results do not: rates, and
 * so times, are the same with and without (tests/unit/exec/test_messages.c).
 *
 * A resource with coefficients k and capacity C cannot fill if the sum of k times cap is
 * not above C, in the whole numbers of core/level.h: then all there can run at their cap.
 *
 * Cost: O(uses) to grant, end, enter and leave. */
#ifndef LS_EXEC_MESSAGES_LEASE_H
#define LS_EXEC_MESSAGES_LEASE_H

#include "core/flow.h"

typedef struct Lease Lease;
typedef struct Leases Leases;

/* flow: its cap and uses are set. at: [flow->n_uses], the owner's memory. */
struct Lease {
  LsFlow *flow;
  GList *at; /* on each resource */
  bool is_held;
};

/* They watch the net, which is empty, and outlive what is in it; NULL: leases_enter() says what is there.
 * capacity: [n], copied. revoked is called when a lease is over that its owner did not end; what it adds to
 * the net may end more. */
Leases *leases_new (LsFlowNet *net, uint32_t n, const double *capacity, void (*revoked) (Lease *lease));
void leases_free (Leases *l); /* NULL allowed */

/* False, and nothing has changed, if a resource could fill. */
bool leases_take (Leases *l, Lease *lease);
void leases_drop (Leases *l, Lease *lease); /* no effect if it is not held */

/* Something else is there from now on, as if it were in the net. */
void leases_enter (void *leases, const LsFlow *f);

/* Whether a resource of f can, with all that is in the net and all leases. */
bool leases_could_fill (const Leases *l, const LsFlow *f);

#endif
