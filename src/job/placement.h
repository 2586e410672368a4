/* job/placement.h — which rank runs where, for people. */
#ifndef LS_JOB_PLACEMENT_H
#define LS_JOB_PLACEMENT_H

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "strategy/strategy.h"

/* A table with a line per rank: node, GPU of the node, NIC of the node, place in
 * each dimension of the mesh, and the ranks before and after it in the pipeline.
 * s must be resolved. Newly allocated, ends in a newline. */
char *ls_placement_format (const LsPlan *plan, const LsStrategy *s, const LsCluster *c);

#endif
