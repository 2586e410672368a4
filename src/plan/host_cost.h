/* plan/host_cost.h — what issuing an op costs the host, by kind; how much is in exec/host.c, a strategy or a
 * fit. */
#ifndef LS_PLAN_HOST_COST_H
#define LS_PLAN_HOST_COST_H

typedef enum {
  LS_HOST_LAUNCH, /* one kernel                        */
  LS_HOST_COMM,   /* one collective or p2p group       */
  LS_HOST_FREE,   /* events and waits                  */
  LS_HOST_SYNC,   /* a synchronising call, once it returns */
  LS_HOST_VIEW,   /* a call on a tensor that launches nothing */
  LS_HOST_BATCH,  /* a micro-batch fetched and handed out     */
  LS_N_HOST_COSTS
} LsHostCost;

#endif
