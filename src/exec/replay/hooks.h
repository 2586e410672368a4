/* exec/replay/hooks.h — where the plain replay asks what else there is. All are NULL in the plain machine,
 * which then does what stands behind the semicolon (private to exec/). */
#ifndef LS_EXEC_REPLAY_HOOKS_H
#define LS_EXEC_REPLAY_HOOKS_H

#include "core/flow.h"
#include "exec/replay/calls.h"
#include "exec/replay/rank.h"

typedef struct Motion Motion; /* motion.h */

typedef struct {
  /* ---- before the clock starts ---- */

  /* True: x->whole is another, and x->plan a quotient; each stands for itself (whole.h). */
  bool (*stand_for) (Run *x);
  /* All is there but its calls. */
  void (*begun) (Run *x);
  /* As call_plan(), which is what happens otherwise. */
  const LsCollPlan *(*plan_call) (const Run *x, const LsCollRequest *request, LsArena *arena, GError **error);
  /* Makes c->messages of these ranks of the whole plan, if it goes message by message; by phases. */
  gboolean (*plan_messages) (Run *x, Call *c, const uint32_t *ranks, uint32_t n, LsCollMemo *memo,
                             GError **error);
  /* As run_uses(), of a load that each of n_alike makes. */
  uint32_t (*uses) (const Run *x, const LsLoad *loads, uint32_t n, uint32_t n_alike, LsFlowUse *ret_uses);

  /* ---- on the clock ---- */

  /* Whether nothing outside can touch the rank, so that it may go ahead of the clock; it never may. */
  bool (*may_run_ahead) (const Run *x, const Rank *r);
  /* Of a rank that may: the frame of its next head, all at once. False: op by op. */
  bool (*take_frame) (Run *x, Rank *r, const Candidate *head);
  void (*frame_over) (Run *x, Rank *r, uint64_t frame); /* that retires */
  /* The host goes on behind this op, for which it waited. */
  void (*host_passed) (Run *x, const Rank *r, const Frame *f, uint64_t frame, uint16_t op);
  void (*send) (Run *x, Motion *m); /* the call has messages; their latency is over */
  /* All ranks of the job are done with this step. True: whoever says so calls step_done() later; at once. */
  bool (*step_waits) (Run *x, XJob *job, uint32_t step);
  /* It is over, and the hook says when the run ends; that is after the last step asked for. */
  void (*step_over) (Run *x, XJob *job, uint32_t step);

  /* ---- afterwards ---- */

  /* Adds what moved in this step and is of no call's phases; nothing. */
  void (*add_bytes) (const Run *x, uint32_t step, double *bytes);
} Hooks;

#endif
