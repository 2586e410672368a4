/* lower/layers/lower_amax.c — what delayed scaling of fp8 does behind a pass: ranks agree on the largest
 * number of each tensor, from which the scales of later passes follow.
 *
 * Problem. Each fp8 tensor of a linear layer has a scale, made from its largest numbers (amax) in earlier
 * passes. Ranks with parts of one tensor, or of one batch, must have the same scale. Transformer Engine 1.6
 * and later does this once for all modules of a rank, where the outermost fp8_autocast ends, and in the
 * backward of the first module (NVIDIA/TransformerEngine@d0067d0d, pytorch/quantization.py:
 * reduce_and_update_fp8_tensors): the amaxes are put into one array (torch.cat), this is all-reduced, and one
 * kernel rolls the histories and writes the scales. The compute stream waits for each of the three.
 * Megatron-LM wraps all layers of a chunk in one fp8_autocast (core/transformer/transformer_block.py), so it
 * is once for each pass over a chunk.
 *
 *     n = 3 products forward (input, weight, output), 2 products backward (both gradients); each expert has
 *         products of its own
 *     all-reduce of 4 n bytes; update moves 2 * 4 * 1,024 n bytes, as histories have 1,024 entries
 *
 * Who shares (fp8_amax_reduction): all ranks of a stage, tp x cp x dp, as Megatron-LM's default; tp x cp with
 * tp_only_amax_red (core/parallel_state.py: get_amax_reduction_group); nobody with reduce_amax false.
 *
 * Worked example. 24 layers of 4 products on a rank: 288 amaxes forward, 1,152 bytes; 192 backward.
 *
 * Deviations. All chunks of a rank count in each pass, as they do from the second step on. Histories of one
 * entry, Megatron-LM's own default, make the update smaller by some microseconds. So few bytes load no link
 * (LsOp.is_light). The amaxes of attention in fp8, and what is reduced once a step for weights that are kept
 * in fp8, are left out. Where weight gradients are a pass of their own, input gradients are the backward.
 *
 * Reference. Micikevicius et al. 2022, "FP8 Formats for Deep Learning". */
#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

#define HISTORY 1024 /* entries; fp8_amax_history_len of NeMo and MLPerf */

bool
scales_behind (const Lower *l, const DpPass *p)
{
  return ls_strategy_delays_scales (l->s) && p->type != LS_ACTION_W
      && p->c->n_products[0] + p->c->n_products[1] > 0;
}

uint32_t
n_amaxes (const Lower *l, const DpPass *p)
{
  uint32_t n = 0, n_experts = l->model->n_experts / l->mesh.ep;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, p->pp_rank, c);
    n += chunk->n_products[0] + chunk->n_products[1] * n_experts;
  }
  return n * (p->type == LS_ACTION_F ? 3 : 2);
}

/* LS_N_SLOTS: each rank has its own. */
static LsSlot
amax_slot (const Lower *l)
{
  const LsMesh *m = &l->mesh;
  bool is_stage = l->s->fp8_amax_reduction == LS_AMAX_STAGE;
  uint32_t n_copies = is_stage ? m->cp * m->dp : m->cp;
  if (!ls_strategy_delays_scales (l->s) || l->s->fp8_amax_reduction == LS_AMAX_NONE || m->tp * n_copies == 1)
    return LS_N_SLOTS;
  if (n_copies == 1)
    return LS_SLOT_TP;
  if (m->tp == 1)
    return is_stage ? LS_SLOT_DP : LS_SLOT_CP;
  return is_stage ? LS_SLOT_STAGE : LS_SLOT_TP_CP;
}

bool
is_amax_slot (const Lower *l, LsSlot slot)
{
  return amax_slot (l) == slot;
}

void
build_scales (Build *b, const DpPass *p)
{
  if (!scales_behind (b->l, p))
    return;
  uint64_t n = n_amaxes (b->l, p);
  LsSlot slot = amax_slot (b->l);
  LsTag tag = p->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B;
  LsKernel cat = ls_kernel_stream ("fp8-amax-cat", LS_KERNEL_ELEMENTWISE, LS_DTYPE_FP32, 1, n, 8.0 * n, 0),
           update = ls_kernel_stream ("fp8-scale-update", LS_KERNEL_REDUCTION, LS_DTYPE_FP32, HISTORY, n,
                                      8.0 * HISTORY * n, 0);
  build_kernel (b, &cat, tag);
  if (slot != LS_N_SLOTS) {
    uint16_t agreed = build_coll (b, LS_STREAM_GLOBAL, slot, LS_COLL_ALL_REDUCE, 4 * n, LS_DTYPE_FP32,
                                  LS_TAG_SYNC, "amax all-reduce");
    g_array_index (b->ops, LsOp, agreed).is_light = true;
    build_join (b, agreed);
  }
  build_kernel (b, &update, tag);
}
