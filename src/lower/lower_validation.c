/* lower/lower_validation.c — the optimizer without a barrier: post-validation.
 *
 * The norm of the gradients and a found-inf concern all stages, but clipping and skipped updates
 * are rare. So nobody waits for all of it:
 *
 *     end of a step     a stage sums up its own part over its ranks, adds what the stages
 *                       before it have, passes the sum on, and updates by that
 *     begin of the next the last stage has the whole and sends it back, stage by stage;
 *                       each checks what it did, at the latest before its first backward
 *
 *     rank 0   .. B | norm >  update | F F ..  . < check  B ..
 *     rank 1     .. B | > norm >  update | F F . <check>  B ..
 *     rank 2       .. B | > norm  update | <  F .. B ..
 *
 * The messages are 4 bytes each way, in the order of all others on their channel. A rank's
 * first backward follows one of the last stage, which has sent its answer before, so the check
 * costs no waiting to speak of. The host reads nothing.
 *
 * Assumption: every check succeeds; an update is never rolled back and done again.
 *
 * Reference: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 4. */
#include "lower/data/lower_dp.h"
#include "lower/lower_step.h"

#define STATE_BYTES 4 /* one fp32 */

/* Waits for the compute stream, and for what the next op on it would wait for. */
static uint16_t
build_transfer (Build *b, LsStream stream, LsSlot slot, bool is_send, const char *name)
{
  LsTransfer *t = ls_arena_new_array (b->l->plan->arena, LsTransfer, 1);
  *t = (LsTransfer) { STATE_BYTES, (uint8_t) slot, is_send, (uint8_t) b->l->s->pp_max_ctas };
  LsOp op = ls_op_blank (LS_OP_P2P, stream, LS_TAG_SYNC, name);
  op.host = LS_HOST_COMM;
  op.dtype = LS_DTYPE_FP32;
  op.transfers = t;
  op.n_transfers = 1;
  g_autoptr (GArray) deps = g_array_copy (b->next_deps);
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  g_array_append_val (deps, compute);
  return build_op (b, op, (const LsDep *) deps->data, (uint16_t) deps->len);
}

static void
sum_over (Build *b, LsStream stream, LsSlot slot)
{
  build_join (b,
              build_coll (b, stream, slot, LS_COLL_ALL_REDUCE, STATE_BYTES, LS_DTYPE_FP32, LS_TAG_SYNC,
                          "stage norm all-reduce"));
}

void
pass_norm_on (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  if (l->mesh.tp > 1)
    sum_over (b, LS_STREAM_TP, LS_SLOT_TP);
  if ((l->s->zero_stage > 0 || l->mesh.ep > 1) && dp_all (l, false).n > 1)
    sum_over (b, LS_STREAM_DP, LS_SLOT_DP);
  if (pp_rank > 0)
    build_join (b, build_transfer (b, LS_STREAM_PP_FWD_RECV, LS_SLOT_PREV, false, "recv norm so far"));
  if (pp_rank + 1 < l->mesh.pp)
    build_transfer (b, LS_STREAM_PP_FWD, LS_SLOT_NEXT, true, "send norm so far");
}

void
send_norm_back (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  if (!l->s->post_validation || l->mesh.pp == 1)
    return;
  guint n_joins = b->next_deps->len;
  if (pp_rank + 1 < l->mesh.pp) {
    LsDep received
        = { LS_DEP_END, build_transfer (b, LS_STREAM_PP_BWD_RECV, LS_SLOT_NEXT, false, "recv norm") };
    LsOp record = ls_op_blank (LS_OP_RECORD, LS_STREAM_PP_BWD_RECV, LS_TAG_SYNC, "norm is known");
    record.event = EVENT_NORM;
    build_op (b, record, &received, 1);
    build_join (b, received.index);
  }
  if (pp_rank > 0)
    build_transfer (b, LS_STREAM_PP_BWD, LS_SLOT_PREV, true, "send norm");
  g_array_set_size (b->next_deps, n_joins); /* computing does not wait for it */
}

uint32_t
segment_check_norm (Lower *l, uint32_t pp_rank)
{
  static const char name[] = "check norm";
  if (!l->s->post_validation || pp_rank + 1 >= l->mesh.pp)
    return UINT32_MAX;
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  LsOp wait = ls_op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait for the norm");
  wait.event = EVENT_NORM;
  build_op (&b, wait, NULL, 0);
  return build_finish (&b, name);
}
