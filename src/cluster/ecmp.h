/* cluster/ecmp.h — hashed routing: a switch sends all packets of a flow over one of the
 * links that serve it equally well, so that flows can collide while links stand idle.
 *
 * Problem. k flows from one leaf on m uplinks: how unlucky is the busiest uplink?
 *
 * Model. A flow is (source NIC, destination NIC, channel); a channel is what hardware has
 * as a queue pair with a UDP source port of its own. At each switch with n choices it
 * takes number floor (n h / 2^32), h the upper half of
 *
 *     mix (mix (mix (mix (seed) + source NIC) + destination NIC) + (channel, switch))
 *
 * with mix the output function of SplitMix64. So every switch hashes on its own, and a
 * failed link moves only what is chosen anew.
 *
 * Worked example: 8 flows on 8 uplinks leave the busiest with 2.60 flows on average over
 * seeds (balls into bins, exact over all 8^8 cases): 39 % of what ideal spreading gets.
 *
 * Deviations. Switches hash with functions of their makers, often the same at each tier
 * (polarisation); a channel's messages here never change their way.
 *
 * Reference: G. L. Steele, D. Lea, C. H. Flood, Fast splittable pseudorandom number
 * generators, OOPSLA 2014 (mix64variant13). */
#ifndef LS_CLUSTER_ECMP_H
#define LS_CLUSTER_ECMP_H

#include "cluster/fabric.h"

/* Which of n > 0 equal choices the flow takes at this switch. */
uint32_t ls_ecmp_choose (const LsClusterSpec *spec, const LsFabricFlow *flow, uint32_t switch_number,
                         uint32_t n);

#endif
