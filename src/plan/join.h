/* plan/join.h — several plans as one: ranks, communicators, roles, segments and kernels of each behind those
 * of the one before. Nothing of one plan is bound to anything of another, so what each does stays what it
 * was; what they have in common is the cluster that they run on.
 *
 *     plan a   ranks 0 .. 7    roles 0 1   segments 0 .. 4
 *     plan b   ranks 0 .. 3    role  0     segments 0 .. 2
 *     joined   ranks 0 .. 11   roles 0 1 2 segments 0 .. 7     rank 0 of b is rank 8, its role 2
 *
 * No role is of two plans, so a fold (exec/shortcuts/fold.h) never takes ranks of two plans for alike.
 * Weights of members and the spread of tokens stay with the plans: the joined one has none. */
#ifndef LS_PLAN_JOIN_H
#define LS_PLAN_JOIN_H

#include "plan/plan.h"

/* Where what is of one plan begins in the joined one. */
typedef struct {
  uint32_t rank, comm, role, segment, kernel;
} LsPlanPart;

/* ret_parts: [n]. plans are borrowed, and their texts: they must outlive the result. LS_ERROR_LIMIT: more
 * ranks, communicators or kernels than can be counted. Free with ls_plan_free(). */
LsPlan *ls_plan_join (const LsPlan *const *plans, uint32_t n, LsPlanPart *ret_parts, GError **error);

#endif
