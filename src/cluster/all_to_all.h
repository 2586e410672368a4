/* cluster/all_to_all.h — what a member of a group sends to the others, where each is joined to each by as
 * many links and switches choose ways as they fill (private to cluster/).
 *
 * Problem. In a dragonfly the switches of a group are joined so, and the groups: few links lead from one to
 * the next, and a ring or a pipeline sends all that leaves a group to one other. Adaptive routing (UGAL)
 * takes the direct links until they are full, and then detours over a third member, which cross two links
 * instead of one. How much can a member send?
 *
 * Model. Of n members b have traffic, each to one other, and k links join any two. A member has k direct
 * links to where it sends, and k (n - 2) others, over which detours spread evenly. The second link of a
 * detour begins at a member that may need it itself: of those that can be in between, b - 2 of n - 2. So a
 * byte on a detour takes of its kind
 *
 *     w = 1 + (b - 2) / (n - 2)     links that members with traffic have,
 *
 * and what leaves a member at most is, in links,
 *
 *     minimal    k                           direct links alone
 *     valiant    k (n - 2) / w               always a detour
 *     adaptive   k + k (n - 2) / w           direct links, then detours
 *
 * A member is so a star's arm: one trunk out and one in, of that many links, whoever it sends to. That keeps
 * rates independent of which members talk to each other.
 *
 * Worked example. 74 groups, 4 links between any two, all of them busy: w = 2, and of its 292 links a group
 * has 4 + 4 * 72 / 2 = 148 for what leaves it, 144 with valiant, 4 with minimal. If only two groups have
 * traffic, all others are detours: w = 1, 4 + 288 = 292.
 *
 * Deviations. Where all members send to all others as much, direct links suffice and carry k (n - 1), up to
 * twice of what is said here with b = n; of few busy members among many it is the same. A member counts as
 * busy if the cluster has nodes there, whether or not a job is on them. Detours take links of switches
 * within the group between, which is not counted. Adaptive switches see queues nearby and react late; here
 * they know all. Other jobs' traffic is not there.
 *
 * References: J. Kim, W. J. Dally, S. Scott, D. Abts, Technology-driven, highly-scalable dragonfly topology,
 * ISCA 2008 (the topology, VAL and UGAL: adversarial traffic gets half under VAL); A. Shpiner et al.,
 * Dragonfly+: low cost topology for scaling datacenters, HiPINEB 2017; D. De Sensi et al., An in-depth
 * analysis of the Slingshot interconnect, SC 2020 (adaptive routing that weighs minimal and non-minimal
 * ways). */
#ifndef LS_CLUSTER_ALL_TO_ALL_H
#define LS_CLUSTER_ALL_TO_ALL_H

#include "cluster/cluster.h"

/* Links, of one direction, that a member's traffic to one other has: of n > 1 members joined by n_links
 * between any two, n_busy > 0 with traffic. Need not be whole. */
double ls_all_to_all_links (LsRouting routing, uint32_t n, uint32_t n_busy, uint32_t n_links);

#endif
