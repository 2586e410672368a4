/* plan/plan_check.h — the parts of ls_plan_check() and how they report. */
#ifndef LS_PLAN_PLAN_CHECK_H
#define LS_PLAN_PLAN_CHECK_H

#include "plan/plan.h"

/* The first thing that is wrong, and which op is at fault; role UINT32_MAX: no one op. */
typedef struct {
  GError *error;
  LsOpPlace at;
} LsPlanFault;

/* A plan whose indices are known to be in range, and a rank of every role. */
typedef struct {
  const LsPlan *plan;
  const uint32_t *rank_of_role; /* [n_roles] the first that runs it */
} LsPlanCheck;

/* Slots of neighbours; the others are of communicators. */
static inline gboolean
ls_slot_is_peer (uint32_t slot)
{
  return slot == LS_SLOT_PREV || slot == LS_SLOT_NEXT;
}

static inline const LsOp *
ls_op_at (const LsPlan *plan, LsOpPlace at)
{
  return &plan->segments[plan->programs[at.role].instances[at.instance].segment].ops[at.op];
}

/* The slots that an op uses, as a bit set. */
uint32_t ls_op_slots (const LsOp *op);

/* Moves to the next op in issue order; FALSE at the end of the program. Begin with
 * { .role = role, .op = UINT32_MAX }, which stands before the first. */
gboolean ls_op_next (const LsPlan *plan, LsOpPlace *at);

#define LS_OP_BEFORE(r) ((LsOpPlace) { .role = (r), .op = UINT32_MAX })

/* Sets the error to LS_ERROR_INPUT: rank and role, and where the op is; "rank 3 (role 1),
 * instance 17 (forward, micro-batch 2, chunk 0), op 5 (qkv): ...". Returns FALSE. */
gboolean ls_plan_fail (LsPlanFault *fault, const LsPlan *plan, uint32_t rank, LsOpPlace at,
                       const char *format, ...) G_GNUC_PRINTF (5, 6);

/* plan_check_match.c: what ranks owe each other. */
gboolean ls_plan_check_matches (const LsPlanCheck *check, LsPlanFault *fault);

#endif
