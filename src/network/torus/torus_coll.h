/* network/torus/torus_coll.h — what coll_torus.c, torus_script.c and torus_exchange.c share
 * (private to network/). */
#ifndef LS_NETWORK_TORUS_TORUS_COLL_H
#define LS_NETWORK_TORUS_TORUS_COLL_H

#include "cluster/route.h"
#include "network/torus/torus_shape.h"

/* From one chip to another, a message's equal shares on all dimension-ordered ways that
 * begin with different axes; between slices as ls_route(). */
void ls_torus_spread (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, LsRoute *ret_route);

void ls_torus_script_exchange (const LsCollCall *call,
                               LsScript *ret_script); /* all-to-all, but for its costs */
void ls_torus_script (const LsCollCall *call, LsScript *ret_script);

#endif
