/* lower/layers/lower_operator.c — one operator on one rank, with its tensor parallelism, as
 * Megatron-LM issues it (core/tensor_parallel/layers.py):
 *
 *   column-parallel  forward   SP: gather the input, GEMM
 *                    backward  SP: gather the input || I GEMM; wait; reduce-scatter
 *                              its result || W GEMM; wait
 *                              no SP: I GEMM; all-reduce its result || W GEMM; wait
 *   row-parallel     forward   GEMM, all-reduce (SP: reduce-scatter) the output
 *                    backward  SP: gather the gradient; I GEMM; W GEMM
 *
 * "||" relies on CUDA_DEVICE_MAX_CONNECTIONS = 1: the communication kernel is
 * launched first. Whatever has no "||" blocks the compute stream. Megatron-LM has
 * "||" since late 2021 (async_tensor_model_parallel_allreduce); tp_async off is the
 * code before, in which these block too.
 *
 * Pieces of these collectives beside the GEMM itself: lower_operator.c. Attention over
 * sequences that are cut over ranks: lower_cp.c.
 *
 * What runs beside the exchange of tokens: lower_experts.c.
 *
 * A split backward: I has the input gradients, W the weight gradients of matrix products,
 * and the collectives that each needs; nothing of I then runs beside the GEMMs of W. */
#include "lower/data/lower_dp.h"

#include "lower/layers/lower_layers.h"
#include "strategy/shard.h"

/* Tensor-parallel collectives in pieces that overlap the GEMM that
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

/* Whether the collective before or behind operator i runs in pieces beside its GEMM. */
static bool
pipelines_tp (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  bool is_linear = (o->tp == LS_TP_COLUMN || o->tp == LS_TP_ROW) && o->comm.tp_bytes == 0;
  return l->s->mp.tp_overlap && l->s->mp.tp_overlap_kind == LS_TP_OVERLAP_RING && l->shard.sp && is_linear
      && layer_of (c, i) != UINT16_MAX && !o->beside;
}

/* Rows of one rank go to the next, when op `after` is over (NO_OP: the move before). */
static uint16_t
build_move (Build *b, uint16_t after, uint64_t bytes, LsTag tag)
{
  const LsDep dep = { LS_DEP_END, after };
  return build_coll_after (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_COPY_PERMUTE, bytes, b->l->shard.dtype, tag,
                           "tp ring exchange", after == NO_OP ? NULL : &dep);
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
        : i == 0 ? build_coll (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_COPY_PERMUTE, bytes, b->l->shard.dtype,
                               comm_tag, "tp ring exchange")
                 : build_move (b, NO_OP, bytes, comm_tag);
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

/* Kernels of which one is that GEMM, instead of the collective and it; others stay whole, before and after.
 * The last op. */
static uint16_t
build_beside (Build *b, const LsKernel *kernels, uint32_t n, LsTag tag, LsTag comm_tag, Beside beside)
{
  uint16_t last = NO_OP;
  for (uint32_t k = 0; k < n; k++)
    last = kernels[k].kind == LS_KERNEL_GEMM ? beside (b, &kernels[k], tag, comm_tag)
                                             : build_kernel (b, &kernels[k], tag);
  return last;
}

static void hold_placeholder (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free);
static void make_gradients (Build *b, uint16_t op, const Chunk *c, guint i);

/* ---- amax of tensors in fp8 ---- */

/* What delayed scaling of fp8 does behind a pass: ranks agree on the largest
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
  uint32_t n = 0, n_experts = l->model->moe.n_experts / l->mesh.ep;
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
  bool is_stage = l->s->fp8.amax_reduction == LS_AMAX_STAGE;
  uint32_t n_copies = is_stage ? m->cp * m->dp : m->cp;
  if (!ls_strategy_delays_scales (l->s) || l->s->fp8.amax_reduction == LS_AMAX_NONE || m->tp * n_copies == 1)
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

/* ---- what is kept from a forward to its backward ---- */

/* Buffers of what lives from a forward to its backward.
 *
 * A split backward: after I only the inputs of the matrix products that W computes are kept,
 * and the gradients of their outputs. */

/* The W GEMM of an operator that a split backward puts off, or NULL: weight gradients of matrix products, as
 * zero bubble's code does (sail-sg/zero-bubble-pipeline-parallelism, WeightGradStore); biases, norms and
 * embeddings have theirs with I. */
static const LsKernel *
deferred_gemm (const LsOperator *o)
{
  for (uint32_t k = 0; k < o->n_wgrad; k++)
    if (o->wgrad[k].kind == LS_KERNEL_GEMM)
      return &o->wgrad[k];
  return NULL;
}

/* What W multiplies besides the input: the gradients of the outputs, m x k of each GEMM. */
static uint64_t
deferred_grad_bytes (const LsOperator *o)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < o->n_wgrad; i++) {
    const LsKernel *k = &o->wgrad[i];
    bytes += k->kind == LS_KERNEL_GEMM ? ls_dtype_array_bytes (k->dtype, k->batch * k->m * k->k) : 0;
  }
  return bytes;
}

/* The input of operator i, if it lives longer or shorter than the rest of what that keeps; or
 * what is there from the forward on while the rest is made again. */
static uint64_t
input_bytes_apart (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  if (recomputes_ops (l) && layer_of (c, i) != UINT16_MAX)
    return c->again ? recompute_kept_bytes (l, c, i) : 0;
  bool is_apart = (l->has_split && deferred_gemm (o)) || drops_input (l, c, i) || keeps_part_input (l, c, i);
  return is_apart ? o->kept.input_bytes : 0;
}

/* The kept activation of operator i, but for an input that lives apart. Buffer ids: the
 * operator, behind them the layers (inputs kept by full recomputation), then inputs of
 * operators, then gradients of their outputs, then placeholders of theirs. */
void
keep_activation (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  const LsOperator *o = operator_at (c, i);
  build_buffer (b, op, (uint16_t) i, LS_MEM_ACTIVATIONS, o->kept.saved_bytes - input_bytes_apart (b->l, c, i),
                is_free);
}

/* Past the layers' buffers; a chunk that has more than an id can count has too many ops too. */
static uint16_t
deferred_id (Build *b, const Chunk *c, guint i)
{
  guint id = c->operators->len + c->n_layers + i;
  b->is_too_long |= id > UINT16_MAX;
  return (uint16_t) id;
}

/* The buffer id of the placeholder of operator i. */
static uint16_t
placeholder_id (Build *b, const Chunk *c, guint i)
{
  return deferred_id (b, c, 2 * c->operators->len + i);
}

void
keep_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  build_buffer (b, op, deferred_id (b, c, i), LS_MEM_ACTIVATIONS, input_bytes_apart (b->l, c, i), is_free);
}

/* The gradients of the outputs of operator i, which W multiplies. */
static void
keep_gradient (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  uint16_t id = deferred_id (b, c, c->operators->len + i);
  build_buffer (b, op, id, LS_MEM_ACTIVATIONS, deferred_grad_bytes (operator_at (c, i)), is_free);
}

void
saved_by_layer (Build *b, uint16_t op, const Chunk *c, uint32_t layer, bool is_free)
{
  for (guint i = 0; i < c->operators->len; i++) {
    if (layer_of (c, i) != layer)
      continue;
    keep_group_input (b, op, c, i, is_free);
    if (recomputes_ops (b->l))
      keep_input (b, op, c, i, is_free);
    if (keeps_part_input (b->l, c, i))
      keep_input (b, op, c, i, is_free);
    if (is_recomputed (b->l, c, i))
      continue;
    keep_activation (b, op, c, i, is_free);
    if (!drops_input (b->l, c, i))
      keep_input (b, op, c, i, is_free);
  }
}

/* The gathered tensor that sequence parallelism cuts along the sequence: that between two layers,
 * unless the operator says otherwise. */
static uint64_t
full_bytes (const Lower *l, const LsOperator *o)
{
  if (o->comm.tp_bytes > 0)
    return o->comm.tp_bytes;
  return ls_boundary_bytes (l->model, &l->shard) * (l->shard.sp ? l->mesh.tp : 1);
}

/* What is gathered of it for a matrix product. */
static uint64_t
gathered_bytes (const Lower *l, const LsOperator *o)
{
  return gathers_scaled (l, o) ? ls_dtype_cast_bytes (scaled_dtype (o), full_bytes (l, o))
                               : full_bytes (l, o);
}

static uint16_t
build_tp (Build *b, int coll, uint64_t bytes, LsTag tag, const char *name)
{
  return build_coll (b, LS_STREAM_TP, LS_SLOT_TP, coll, bytes, b->l->shard.dtype, tag, name);
}

static void
build_tp_sync (Build *b, int coll, uint64_t bytes, LsTag tag, const char *name)
{
  build_join (b, build_tp (b, coll, bytes, tag, name));
}

/* NCCL joins what it gathers along the first dimension, and scatters along it. A tensor of [sequences,
 * tokens, hidden] that is cut along its tokens is copied into its order behind a gather, and out of it before
 * a reduction (DTensor: torch.cat of torch.chunk, torch/distributed/_functional_collectives.py); one of
 * [tokens, sequences, hidden], as Megatron-LM's, is not. Only where the job's software lists such copies. Of
 * one sequence what was gathered is in order as it is; PyTorch copies it nevertheless until it had
 * torch._utils._maybe_view_chunk_cat. Gathered logits, cut along their words, are put in order by a copy of
 * another name where one is listed, else by that behind gathers. */
static const LsRecipeKernel *
lists_tp_copy (const Lower *l, LsTpCopy copy)
{
  const LsRecipe *r = ls_recipe_find (l->shard.recipes, LS_RECIPE_TP, l->model);
  return r ? ls_recipe_kernel_named (r->forward, ls_tp_copies[copy]) : NULL;
}

static void
build_tp_copy (Build *b, LsTpCopy copy, uint64_t bytes, LsTag tag)
{
  const Lower *l = b->l;
  const LsRecipeKernel *listed = lists_tp_copy (l, copy);
  LsDtype dtype = ls_dtype_between (l->shard.dtype);
  if (!listed)
    return;
  LsKernel k = ls_kernel_stream (ls_tp_copies[copy], LS_KERNEL_ELEMENTWISE, dtype, 1,
                                 bytes / ls_dtype_bytes (dtype), 2.0 * (double) bytes, 0);
  k.access = (LsAccess) listed->access;
  build_kernel (b, &k, tag);
}

/* Behind a gather of what is cut along its tokens. */
static void
build_copy_out (Build *b, uint64_t bytes, LsTag tag)
{
  build_tp_copy (b, b->l->shard.micro_batch > 1 ? LS_TP_COPIES_GATHERED : LS_TP_COPIES_GATHERED_OF_ONE, bytes,
                 tag);
}

/* The input of a column-parallel operator, as often as it gathers. */
static void
build_input_gathers (Build *b, const LsOperator *o, LsTag tag)
{
  for (uint32_t i = 0; i < MAX (1, o->comm.n_gathers); i++) {
    build_tp_sync (b, LS_COLL_ALL_GATHER, gathered_bytes (b->l, o), tag, "tp all-gather");
    build_copy_out (b, gathered_bytes (b->l, o), tag);
  }
}

/* --- forward -------------------------------------------------------------------- */

/* The host waits for what the compute stream has: .item (), torch.nonzero (). */
static void
build_host_read (Build *b)
{
  LsDep computed = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  build_host_sync (b, LS_TAG_SYNC, "host reads", &computed, 1);
}

uint16_t
build_operator_kernel (Build *b, const LsOperator *o, const LsKernel *k, LsTag tag)
{
  LsKernel kernel = *k;
  bool is_attention = ls_kernel_is_attention (k->kind);
  if (b->documents && is_attention)
    ls_documents_apply (b->documents, o->layer_kind, 0, &kernel);
  return build_kernel (b, &kernel, tag);
}

static void
build_forward_kernels (Build *b, const Chunk *c, guint i, bool is_pipelined, LsTag tag)
{
  const LsOperator *o = operator_at (c, i);
  if (o->comm.is_context_parallel || o->comm.cp.n > 0)
    build_context (b, c, i, tag);
  else if (is_pipelined && o->tp == LS_TP_COLUMN)
    build_beside (b, o->fwd, o->n_fwd, tag, tag, gather_beside);
  else if (is_pipelined)
    build_beside (b, o->fwd, o->n_fwd, tag, tag, scatter_beside);
  else
    for (uint32_t k = 0; k < o->n_fwd; k++) {
      if (o->beside == LS_BESIDE_SUM && k + 1 == o->n_fwd)
        build_join_stream (b, LS_STREAM_SHARED);
      for (uint32_t r = 0; r < o->n_host_reads && k + 1 == o->n_fwd; r++)
        build_host_read (b);
      build_operator_kernel (b, o, &o->fwd[k], tag);
    }
}

uint16_t
first_op (Build *b, guint from)
{
  if (b->ops->len == 0)
    build_barrier (b);
  return (uint16_t) MIN (from, b->ops->len - 1);
}

void
build_gather (Build *b, const Chunk *c, guint i, LsTag tag)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  if (o->tp == LS_TP_COLUMN && l->mesh.tp > 1 && l->shard.sp && !pipelines_tp (l, c, i))
    build_input_gathers (b, o, tag);
}

void
build_forward_operator (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps)
{
  if (runs_beside (c, i)) {
    b->shared = (SharedExperts) { c, first_beside (c, i), tag, keeps, LS_ACTION_F };
    return;
  }
  if (operator_at (c, i)->beside == LS_BESIDE_GATHER)
    b->beside (b, LS_BESIDE_GATHER);
  build_gather (b, c, i, tag);
  build_forward_here (b, c, i, tag, keeps);
}

void
build_forward_here (Build *b, const Chunk *c, guint i, LsTag tag, bool keeps)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  bool sp = l->shard.sp, is_pipelined = pipelines_tp (l, c, i);
  experts_before (b, o, false, tag);
  guint first = b->ops->len;
  build_forward_kernels (b, c, i, is_pipelined, tag);
  if (keeps) {
    uint16_t op = first_op (b, first);
    keep_activation (b, op, c, i, false);
    bool is_there = tag == LS_TAG_RECOMPUTE && keeps_part_input (l, c, i);
    if (!drops_input (l, c, i) && !is_there)
      keep_input (b, op, c, i, false);
  }
  experts_after (b, o, false, tag);
  if (l->mesh.tp == 1 || is_pipelined)
    return;
  if (o->tp == LS_TP_VOCAB)
    build_tp_sync (b, LS_COLL_ALL_REDUCE, full_bytes (l, o), tag, "tp all-reduce");
  else if (o->tp == LS_TP_ROW) {
    if (sp)
      build_tp_copy (b, LS_TP_COPIES_SCATTERED, full_bytes (l, o), tag);
    build_tp_sync (b, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, full_bytes (l, o), tag,
                   sp ? "tp reduce-scatter" : "tp all-reduce");
  } else if (o->tp == LS_TP_REDUCE)
    build_tp_sync (b, LS_COLL_ALL_REDUCE, o->comm.reduce_bytes, tag, "loss all-reduce");
  else if (o->tp == LS_TP_GATHER) {
    build_tp_sync (b, LS_COLL_ALL_GATHER, o->comm.reduce_bytes, tag, "logits all-gather");
    build_tp_copy (b, lists_tp_copy (b->l, LS_TP_COPIES_LOGITS) ? LS_TP_COPIES_LOGITS : LS_TP_COPIES_GATHERED,
                   o->comm.reduce_bytes, tag);
  }
}

/* --- backward ------------------------------------------------------------------- */

/* What adds a gradient to those of earlier micro-batches, where there are none. That of words is added to
 * what the head made of the same weights. */
static bool
adds_to_nothing (const Build *b, const LsKernel *k)
{
  if (!b->l->shard.grad.is_own || !b->pass || !b->pass->is_first)
    return false;
  bool is_shared = b->l->model->tied_embeddings && b->pass->c->has_head;
  return k->role == LS_ROLE_ADD_GRAD || (k->role == LS_ROLE_ADD_WORDS && !is_shared);
}

static uint16_t
build_wgrad (Build *b, const LsOperator *o, LsActionType pass, uint16_t last)
{
  for (uint32_t k = 0; k < o->n_wgrad; k++) {
    if (adds_to_nothing (b, &o->wgrad[k]))
      continue;
    bool is_deferred = deferred_gemm (o) && o->wgrad[k].kind != LS_KERNEL_REDUCTION;
    if (pass == LS_ACTION_B || is_deferred == (pass == LS_ACTION_W))
      last = build_kernel (b, &o->wgrad[k], LS_TAG_W);
  }
  return last;
}

/* An op to which buffers can be tied: the last one, or a barrier where there is none (NO_OP). */
static uint16_t
some_op (Build *b, uint16_t last)
{
  if (last != NO_OP)
    return last;
  build_barrier (b);
  return (uint16_t) (b->ops->len - 1);
}

/* The input of a column-parallel layer, which sequence parallelism has cut; frozen, it needs none
 * (Megatron-Core, core/tensor_parallel/layers.py: LinearWithFrozenWeight). */
static bool
gathers_again (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  bool is_there = o->beside || (l->shard.sp_save_gathered && !drops_input (l, c, i));
  return l->mesh.tp > 1 && l->shard.sp && !is_there && o->n_wgrad > 0;
}

/* The gradient of the output of a row-parallel layer, or of an embedding that learns. */
static bool
gathers_gradient (const Lower *l, const LsOperator *o)
{
  bool is_cut = o->tp == LS_TP_ROW || o->tp == LS_TP_VOCAB;
  return is_cut && l->mesh.tp > 1 && l->shard.sp && o->n_igrad + o->n_wgrad > 0;
}

/* W: the input is gathered again for it, with nothing to run beside. */
void
build_weight_operator (Build *b, const Chunk *c, guint i)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  if (!deferred_gemm (o))
    return;
  if (o->tp == LS_TP_COLUMN && gathers_again (l, c, i))
    build_input_gathers (b, o, LS_TAG_W);
  uint16_t last = build_wgrad (b, o, LS_ACTION_W, NO_OP);
  keep_input (b, last, c, i, true);
  keep_gradient (b, last, c, i, true);
}

/* A collective of the backward that may run beside the GEMM which follows. */
static uint16_t
build_tp_async (Build *b, int coll, uint64_t bytes, const char *name)
{
  const LsStrategy *s = b->l->s;
  bool is_bulk = s->mp.tp_overlap && (s->mp.tp_async || s->mp.tp_overlap_kind == LS_TP_OVERLAP_BULK);
  uint16_t op = build_tp (b, coll, bytes, LS_TAG_B, name);
  g_array_index (b->ops, LsOp, op).has_margin = is_bulk && s->mp.tp_overlap_margin;
  if (!s->mp.tp_async && !is_bulk)
    build_join (b, op);
  return op;
}

/* The gradient of the input of a column-parallel operator, or of one of its products. */
static uint16_t
build_input_grad_reduction (Build *b, uint64_t bytes)
{
  bool sp = b->l->shard.sp;
  if (sp)
    build_tp_copy (b, LS_TP_COPIES_SCATTERED, bytes, LS_TAG_B);
  return build_tp_async (b, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, bytes,
                         sp ? "tp reduce-scatter" : "tp all-reduce");
}

/* The last of them may add what comes from shared experts. */
static uint16_t
build_igrad (Build *b, const LsOperator *o, uint16_t last)
{
  for (uint32_t k = 0; k < o->n_igrad; k++) {
    if (o->beside == LS_BESIDE_GRAD_SUM && k + 1 == o->n_igrad)
      build_join_stream (b, LS_STREAM_SHARED);
    last = build_operator_kernel (b, o, &o->igrad[k], LS_TAG_I);
  }
  return last;
}

void
build_backward_operator (Build *b, const Chunk *c, guint i, LsActionType pass)
{
  if (runs_beside (c, i))
    return; /* it was there before */
  if (operator_at (c, i)->beside == LS_BESIDE_SUM)
    b->shared = (SharedExperts) { .c = c, .first = first_beside (c, i), .pass = pass };
  build_backward_here (b, c, i, pass);
}

void
build_backward_here (Build *b, const Chunk *c, guint i, LsActionType pass)
{
  const Lower *l = b->l;
  const LsOperator *o = operator_at (c, i);
  bool sp = l->shard.sp, is_column = o->tp == LS_TP_COLUMN && l->mesh.tp > 1;
  bool gathers_input = is_column && gathers_again (l, c, i) && pass == LS_ACTION_B;
  bool gathers_grad = gathers_gradient (l, o);
  bool is_pipelined = gathers_grad && pipelines_tp (l, c, i);
  bool is_apart = is_column && o->beside; /* its collectives are by themselves: W is before them */
  uint64_t bytes = full_bytes (l, o);
  uint16_t last = NO_OP, async = NO_OP;

  experts_before (b, o, true, LS_TAG_B);
  if (gathers_grad && !is_pipelined) {
    build_tp_sync (b, LS_COLL_ALL_GATHER, gathered_bytes (l, o), LS_TAG_B, "tp all-gather");
    build_copy_out (b, gathered_bytes (l, o), LS_TAG_B);
  }
  for (uint32_t k = 0; gathers_input && k < MAX (1, o->comm.n_gathers); k++)
    async = build_tp_async (b, LS_COLL_ALL_GATHER, gathered_bytes (l, o), "tp all-gather");
  if (o->comm.is_context_parallel || o->comm.cp.n > 0)
    last = build_context (b, c, i, LS_TAG_I);
  else if (is_pipelined)
    last = build_beside (b, o->igrad, o->n_igrad, LS_TAG_I, LS_TAG_B, gather_beside);
  else
    last = build_igrad (b, o, last);
  if (pass == LS_ACTION_B && last != NO_OP)
    hold_placeholder (b, last, c, i, false);
  if (gathers_input)
    build_join (b, async);
  for (uint32_t k = 0; gathers_input && k < MAX (1, o->comm.n_gathers); k++)
    build_copy_out (b, gathered_bytes (l, o), LS_TAG_B);
  for (uint32_t k = 0; is_column && !is_apart && k < MAX (1, o->comm.n_reduces); k++)
    async = build_input_grad_reduction (b, bytes);
  last = build_wgrad (b, o, pass, last);
  make_gradients (b, last, c, i);
  if (pass == LS_ACTION_B && last != NO_OP)
    hold_placeholder (b, last, c, i, true);
  if (is_apart)
    build_tp_sync (b, sp ? LS_COLL_REDUCE_SCATTER : LS_COLL_ALL_REDUCE, bytes, LS_TAG_B,
                   sp ? "tp reduce-scatter" : "tp all-reduce");
  else if (is_column)
    build_join (b, async);
  experts_after (b, o, true, LS_TAG_B);
  if (o->kept.saved_bytes > 0) {
    last = some_op (b, last);
    keep_activation (b, last, c, i, true);
    if (pass == LS_ACTION_B)
      keep_input (b, last, c, i, true);
  }
  if (pass == LS_ACTION_I && deferred_gemm (o))
    keep_gradient (b, some_op (b, last), c, i, false);
}

/* ---- weight gradients ---- */

/* Weight gradients: those computed behind an exchange of tokens, and tensors
 * that stand for those that a buffer of the program's own takes. */

/* --- delayed: an exchange does not wait for them (lower_layers.h) -------------------------------------- */

/* They need nothing of what the next op waits for. */
void
build_delayed_weights (Build *b)
{
  DpPass *p = b->pass;
  GArray *joins = b->next_deps;
  b->next_deps = g_array_new (FALSE, FALSE, sizeof (LsDep));
  uint16_t layer = b->layer;
  uint8_t site = b->site;
  bool is_counted = b->is_counted;
  build_piece (b, PIECE_WEIGHTS);
  for (guint d = 0; d < b->delayed->len; d++) {
    guint i = g_array_index (b->delayed, guint, d);
    build_at_operator (b, p->c, i);
    build_weight_operator (b, p->c, i);
    dp_hook (p->backend->after, b, p, i);
  }
  b->layer = layer;
  b->site = site;
  b->is_counted = is_counted;
  g_array_set_size (b->delayed, 0);
  g_array_prepend_vals (b->next_deps, joins->data, joins->len);
  g_array_unref (joins);
}

/* --- made by autograd ---------------------------------------------------------------------------------- */

/* Of one copy of the model, next to the buckets of DDP, which stay, and with stage 1 of DeepSpeed, the
 * backward of the first micro-batch makes them, and the step forgets them (set_to_none): where activations
 * are at their peak there are none. */
bool
grads_come_and_go (const Lower *l)
{
  bool is_autograds = l->shard.grad.is_own && (l->s->dp_kind == LS_DP_NONE || ls_strategy_has_buckets (l->s));
  bool is_stage_1 = l->s->dp_kind == LS_DP_DEEPSPEED && l->s->zero_stage == 1 && !l->shard.grad.is_cast;
  return (is_autograds || is_stage_1) && l->mesh.pp == 1 && l->n_chunks == 1;
}

static void
hold_gradients_of (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  uint64_t n = trained_params (operator_at (c, i));
  build_buffer (b, op, dp_buffer (b, c, 1 + i), LS_MEM_GRADIENTS, dp_grad_bytes (b->l, n), is_free);
}

/* Where the kernel that makes them is another operator's (bias_grad_listed), they are there as well. */
static void
make_gradients (Build *b, uint16_t op, const Chunk *c, guint i)
{
  bool makes = grads_come_and_go (b->l) && b->pass && b->pass->is_first;
  if (makes && (op != NO_OP || trained_params (operator_at (c, i)) > 0))
    hold_gradients_of (b, some_op (b, op), c, i, false);
}

void
forget_gradients (Build *b, uint32_t pp_rank)
{
  if (!grads_come_and_go (b->l))
    return;
  const Chunk *c = chunk_at (b->l, pp_rank, 0);
  for (guint i = 0; i < c->operators->len; i++)
    hold_gradients_of (b, dp_last_compute (b), c, i, true);
}

/* --- placeholders ------------------------------------------------------------------------------------ */

/* Tensors that stand for gradients.
 *
 * Megatron-LM adds weight gradients to a buffer of its own (main_grad) inside the GEMM; what autograd
 * is handed in their place, so that its hooks run, is an empty tensor of the weight's shape and type:
 *
 *   linears    Transformer Engine 2.3 and later: one for each shape, kept for good (get_dummy_wgrad in
 *              pytorch/module/base.py; which release has it: SimuMax, simumax/core/config.py)
 *   the head   Megatron-LM's own linear makes one in each backward (grad_weight in
 *              LinearWithGradAccumulationAndAsyncCommunication, core/tensor_parallel/layers.py)
 *
 * Worked example. Llama 3.1 405B, tp 2, bf16: 2 (20480 + 16384 + 3 * 53248) 16384 / 2 = 3.0 GiB for the four
 * shapes of a layer, and 128256 * 16384 = 2.0 GiB while the head's backward runs.
 *
 * Deviation. A placeholder that autograd copies, as somebody else holds it too, is not counted twice. */

#define SIXTEEN_BITS 2 /* bytes of a weight's nominal type */

static uint64_t
weight_bytes_of (const LsKernel *wgrad)
{
  return SIXTEEN_BITS * wgrad->batch * wgrad->m * wgrad->n;
}

static bool
is_known (const GArray *shapes, const LsKernel *wgrad)
{
  for (guint i = 0; i < shapes->len; i++) {
    const LsKernel *k = g_array_index (shapes, const LsKernel *, i);
    if (k->batch == wgrad->batch && k->m == wgrad->m && k->n == wgrad->n)
      return true;
  }
  return false;
}

uint64_t
placeholder_bytes (const Lower *l, uint32_t pp_rank)
{
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (const LsKernel *));
  uint64_t bytes = 0;
  for (uint32_t c = 0; l->s->use.wgrad_placeholders && c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint i = 0; i < chunk->operators->len; i++) {
      const LsKernel *wgrad = deferred_gemm (operator_at (chunk, i));
      if (!wgrad || layer_of (chunk, i) == UINT16_MAX || is_known (shapes, wgrad))
        continue;
      g_array_append_val (shapes, wgrad);
      bytes += weight_bytes_of (wgrad);
    }
  }
  return bytes;
}

/* The placeholder of the head, if operator i is it: from before its weight gradient to behind it. */
static void
hold_placeholder (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  const LsKernel *wgrad = deferred_gemm (operator_at (c, i));
  if (b->l->s->use.wgrad_placeholders && wgrad && layer_of (c, i) == UINT16_MAX)
    build_buffer (b, op, placeholder_id (b, c, i), LS_MEM_UNSHARDED, weight_bytes_of (wgrad), is_free);
}
