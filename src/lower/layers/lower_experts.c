/* lower/layers/lower_experts.c — what expert parallelism does around operators, as Megatron-LM's
 * all-to-all dispatcher (core/transformer/moe/token_dispatcher.py):
 *
 *     dispatch  forward   count tokens for each expert on all of ep; the host waits for the counts,
 *                         which are the sizes of what follows; all-to-all; gather over etp
 *               backward  reduce-scatter over etp; all-to-all
 *     combine   forward   reduce-scatter over etp; all-to-all
 *               backward  all-to-all; gather over etp
 *
 * Everything blocks the compute stream, unless passes run side by side (lower_pieces.h) or shared experts
 * beside the exchange (lower_shared.c). Where a capacity is padded to, sizes are known and the host need not
 * wait: there is no knob for that. The counts go over ep; Megatron-LM gathers them over etp as well.
 *
 * With DeepEP the exchanges are its dispatch and combine, as Megatron-LM's flex dispatcher calls them: the
 * host waits for the counts in the same way. With HybridEP ranks gather, in the place of counts, which
 * experts each token goes to, a byte for each expert (executor.cu, allgather_routing_map () of deepseek-ai/
 * DeepEP@94a9f8f6, branch hybrid-ep; by NCCL unless enable_custom_allgather is set, which Megatron-LM's
 * fused_a2a.py does not). Worked example. 8,192 tokens of 512 experts on 64 ranks: 268 MB. Deviations: the
 * kernel that then reads it, and rows of scores that are made for gradients on their way back, are left out.
 *
 * Unequal parts: member j of ep receives share w_j of what is sent, or sends it back; all other
 * numbers follow (plan.h, LsParts). */
#include "lower/layers/lower_layers.h"

#define COUNT_BYTES 8 /* torch.long */

static void
exchange (Build *b, const LsOperator *o, bool is_dispatch, LsTag tag, const char *name)
{
  Lower *l = b->l;
  if (l->mesh.ep == 1)
    return;
  build_piece (b, PIECE_EXCHANGE);
  uint16_t index = build_coll (b, LS_STREAM_EP, LS_SLOT_EP, LS_COLL_ALL_TO_ALL,
                               is_dispatch ? o->to_ep_bytes : o->ep_bytes, l->act, tag, name);
  LsOp *op = &g_array_index (b->ops, LsOp, index);
  if (l->n_ep_roles > 1)
    op->parts = is_dispatch ? LS_PARTS_RECEIVED : LS_PARTS_SENT;
  if (l->shard.sends_tokens_once) {
    op->algorithm = is_dispatch ? LS_ALGORITHM_DISPATCH : LS_ALGORITHM_COMBINE;
    op->has_margin = l->s->dispatch_margin;
    op->carries_scores = o->ep == LS_EP_DISPATCH;
  }
  if (b->beside)
    b->beside (b, o->ep == LS_EP_DISPATCH ? LS_BESIDE_DISPATCH : LS_BESIDE_COMBINE);
  build_join (b, index);
  if (b->behind_exchange)
    b->behind_exchange (b);
  build_piece (b, PIECE_COMPUTE);
}

/* Its communicator is tp's if it has the same ranks. */
static void
over_etp (Build *b, const LsOperator *o, int coll, LsTag tag, const char *name)
{
  Lower *l = b->l;
  bool is_tp = l->mesh.etp == l->mesh.tp;
  if (l->mesh.etp > 1)
    build_join (b,
                build_coll (b, is_tp ? LS_STREAM_TP : LS_STREAM_EP, is_tp ? LS_SLOT_TP : LS_SLOT_ETP, coll,
                            o->etp_bytes, l->act, tag, name));
}

static void
host_counts_tokens (Build *b, LsTag tag)
{
  Lower *l = b->l;
  LsDep dep = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  if (l->mesh.ep > 1) {
    bool has_map = l->plan->spread.is_hybrid;
    uint64_t each = has_map ? l->plan->spread.n_tokens : COUNT_BYTES;
    uint64_t bytes = each * l->model->n_experts * l->mesh.ep;
    const char *name = has_map ? "routing map all-gather" : "token counts all-gather";
    dep = (LsDep) { LS_DEP_END,
                    build_coll (b, LS_STREAM_EP, LS_SLOT_EP, LS_COLL_ALL_GATHER, bytes, LS_DTYPE_BYTE, tag,
                                name) };
  }
  LsOp op = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, tag, "token counts");
  op.host = LS_HOST_SYNC;
  build_op (b, op, &dep, 1);
  uint32_t n_others = l->model->n_experts / l->mesh.ep - 1;
  if (n_others > 0 && ls_recipes_loop (l->shard.recipes, l->model))
    build_waits (b, LS_HOST_SYNC, n_others, tag);
}

void
experts_before (Build *b, const LsOperator *o, bool is_backward, LsTag tag)
{
  if (o->ep == LS_EP_DISPATCH && !is_backward) {
    host_counts_tokens (b, tag);
    exchange (b, o, true, tag, "dispatch all-to-all");
    over_etp (b, o, LS_COLL_ALL_GATHER, tag, "expert all-gather");
  } else if (o->ep == LS_EP_GATHER && !is_backward) {
    over_etp (b, o, LS_COLL_ALL_GATHER, tag, "expert all-gather");
  } else if (o->ep == LS_EP_COMBINE && is_backward) {
    exchange (b, o, true, tag, "combine grad all-to-all");
    over_etp (b, o, LS_COLL_ALL_GATHER, tag, "expert all-gather");
  }
}

void
experts_after (Build *b, const LsOperator *o, bool is_backward, LsTag tag)
{
  if (o->ep == LS_EP_COMBINE && !is_backward) {
    over_etp (b, o, LS_COLL_REDUCE_SCATTER, tag, "expert reduce-scatter");
    exchange (b, o, false, tag, "combine all-to-all");
  } else if (o->ep == LS_EP_DISPATCH && is_backward) {
    over_etp (b, o, LS_COLL_REDUCE_SCATTER, tag, "expert reduce-scatter");
    exchange (b, o, false, tag, "dispatch grad all-to-all");
  }
}
