/* lower/layers/lower_tp_overlap.c — tensor-parallel collectives in pieces that overlap the GEMM that
 * they feed or that feeds them.
 *
 * Problem. With sequence parallelism the input of a column-parallel layer is gathered, the
 * output of a row-parallel one reduced and scattered; plain collectives leave the GEMM
 * waiting.
 *
 * Model (ring exchange: Transformer Engine's userbuffers, CommOverlapP2PBase; the idea is in
 * Wang et al., ASPLOS 2023). The rows of the GEMM are cut into tp pieces, a kernel each.
 *
 *     gather, GEMM    piece 0 is of this rank's rows and starts at once; meanwhile they go to
 *                     the next rank. Piece i waits for the i-th move, and rows that have
 *                     come go on: tp - 1 moves
 *     GEMM, scatter   piece i is of another rank's rows and leaves when it is computed; the
 *                     last is of this rank's own. When all have come, one kernel adds up tp
 *                     pieces
 *
 * Moves are by copy engines (use_ce, the default of ring_exchange in
 * transformer_engine/pytorch/module/base.py; PyTorch's async tensor parallelism copies
 * through symmetric memory likewise), so they take no SMs. Each rank sends (tp - 1) / tp of
 * the tensor, as in the collective.
 *
 * Ring: the forward of column- and row-parallel layers, the input gradient of row-parallel
 * ones. The backward of column-parallel layers is in bulk: gather beside the I GEMM,
 * reduce-scatter beside the W GEMM, as without overlap (lower_operator.c). Bulk: only the
 * latter. Layers only, neither embedding nor logits, nor experts.
 *
 * PyTorch's (ring with tp_async off). Inductor cuts a product whose left factor was gathered, and one whose
 * result alone is reduced and scattered (torch/_inductor/fx_passes/micro_pipeline_tp.py). In the backward of
 * a column-parallel layer the gathered input is the right factor of W, and what is scattered is a sum over
 * weights (Q, K, V; gate, up): both collectives stay whole, and the compute stream waits for each.
 *
 * Worked example: tp 4, a GEMM of 400 us, a move 60 us: pieces of 100 us hide all moves; an
 * all-gather before it would have added 3 * 60 us.
 *
 * Deviations. Pieces follow each other on one stream; userbuffers alternates between streams,
 * which fills the last wave of a piece. Out of row-parallel layers it scatters by default with
 * a kernel on 16 SMs (method pipeline, 4 pieces); here as with ring_exchange. Partial sums go
 * to the next rank here, straight to their owner there: the same through NVSwitches. Bulk
 * collectives are NCCL's, save that the GEMM is launched on the SMs that they leave (set_sm_margin, in the
 * same file the default of all but ring_exchange), unless the job says otherwise (tp_overlap_margin), as the
 * lists do that NeMo ships (nemo/collections/llm/recipes/tp_overlap_configs/userbuffers.py). */
#include "lower/layers/lower_layers.h"

bool
pipelines_tp (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  bool is_linear = (o->tp == LS_TP_COLUMN || o->tp == LS_TP_ROW) && o->comm.tp_bytes == 0;
  return l->s->mp.tp_overlap && l->s->mp.tp_overlap_kind == LS_TP_OVERLAP_RING && l->shard.sp && is_linear
      && layer_of (c, i) != UINT16_MAX && !o->beside;
}

/* Rows of one rank go to the next, when op `after` is over. */
static uint16_t
build_move (Build *b, uint16_t after, uint64_t bytes, LsTag tag)
{
  const Lower *l = b->l;
  LsOp op = ls_op_blank (LS_OP_COLLECTIVE, LS_STREAM_TP, tag, "tp ring exchange");
  op.host = LS_HOST_COMM;
  op.slot = LS_SLOT_TP;
  op.coll = LS_COLL_COPY_PERMUTE;
  op.bytes = bytes;
  op.dtype = (uint8_t) l->shard.dtype;
  LsDep dep = { LS_DEP_END, after };
  return build_op (b, op, &dep, after == NO_OP ? 0 : 1);
}

static uint16_t
build_first_move (Build *b, uint64_t bytes, LsTag tag)
{
  return build_coll (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_COPY_PERMUTE, bytes, b->l->shard.dtype, tag,
                     "tp ring exchange");
}

static uint16_t
gather_beside (Build *b, const LsKernel *gemm, LsTag tag, LsTag comm_tag)
{
  uint32_t n = b->l->mesh.tp;
  uint64_t bytes = ls_dtype_cast_bytes (gemm->dtype, ls_boundary_bytes (b->l->model, &b->l->shard));
  LsKernel piece = ls_kernel_gemm_part (gemm, n);
  uint16_t last = NO_OP, coming = NO_OP;
  for (uint32_t i = 0; i < n; i++) {
    uint16_t moved = i + 1 == n ? NO_OP
        : i == 0                ? build_first_move (b, bytes, comm_tag)
                                : build_move (b, NO_OP, bytes, comm_tag);
    if (coming != NO_OP)
      build_join (b, coming);
    last = build_kernel (b, &piece, tag);
    coming = moved;
  }
  return last;
}

static LsKernel
sum_of_pieces (const Lower *l)
{
  uint64_t bytes = ls_boundary_bytes (l->model, &l->shard),
           elt = ls_dtype_bytes (ls_dtype_between (l->shard.dtype));
  uint64_t width = l->model->hidden;
  return ls_kernel_stream ("tp-partial-sum", LS_KERNEL_REDUCTION, l->shard.dtype, bytes / elt / width, width,
                           (l->mesh.tp + 1.0) * (double) bytes, 0);
}

static uint16_t
scatter_beside (Build *b, const LsKernel *gemm, LsTag tag, LsTag comm_tag)
{
  uint32_t n = b->l->mesh.tp;
  uint64_t bytes = ls_boundary_bytes (b->l->model, &b->l->shard);
  LsKernel piece = ls_kernel_gemm_part (gemm, n), sum = sum_of_pieces (b->l);
  uint16_t moved = NO_OP;
  for (uint32_t i = 0; i < n; i++) {
    uint16_t computed = build_kernel (b, &piece, tag);
    if (i + 1 < n)
      moved = build_move (b, computed, bytes, comm_tag);
  }
  build_join (b, moved); /* the others were before it on their stream */
  return build_kernel (b, &sum, tag);
}

typedef uint16_t (*Beside) (Build *b, const LsKernel *gemm, LsTag tag, LsTag comm_tag);

/* Other kernels stay whole, before and after. */
static uint16_t
build_beside (Build *b, const LsKernel *kernels, uint32_t n, LsTag tag, LsTag comm_tag, Beside beside)
{
  uint16_t last = NO_OP;
  for (uint32_t k = 0; k < n; k++)
    last = kernels[k].kind == LS_KERNEL_GEMM ? beside (b, &kernels[k], tag, comm_tag)
                                             : build_kernel (b, &kernels[k], tag);
  return last;
}

uint16_t
build_gather_gemm (Build *b, const LsKernel *kernels, uint32_t n, LsTag tag, LsTag comm_tag)
{
  return build_beside (b, kernels, n, tag, comm_tag, gather_beside);
}

uint16_t
build_gemm_scatter (Build *b, const LsKernel *kernels, uint32_t n, LsTag tag, LsTag comm_tag)
{
  return build_beside (b, kernels, n, tag, comm_tag, scatter_beside);
}
