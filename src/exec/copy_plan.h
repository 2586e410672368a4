/* exec/copy_plan.h — a copy between a GPU and the host's memory, or its drives. */
#ifndef LS_EXEC_COPY_PLAN_H
#define LS_EXEC_COPY_PLAN_H

#include "cluster/cluster.h"
#include "network/coll.h"
#include "plan/plan.h"

/* One flow over the PCIe path and the HBM, as fast as its narrowest link; what stays in the host loads the
 * CPU's memory alone. In arena. */
const LsCollPlan *ls_copy_plan (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, uint64_t bytes,
                                LsNetworkFidelity network, LsArena *arena);

#endif
