/* lower/lower_step.c — how a step begins and ends on one rank.
 *
 * Begin: the gradients that this rank keeps are zeroed.
 *
 * End: data-parallel reduction finishes (lower_dp.h), then that between the ranks
 * which hold the same stages, where pipes run both ways; with SP the
 * gradients of replicated parameters are all-reduced over tp; tied embeddings;
 * found-inf (fp16) and the gradient norm, whose values the host reads (.item ()),
 * a barrier over the stages; optimizer; parameters gathered. */
#include "lower/data/lower_deepspeed.h"
#include "lower/layers/lower_layers.h"
#include "lower/lower_step.h"
#include "strategy/shard.h"

#include <string.h>

typedef enum { CUT_PARAMS, CUT_GRADS, CUT_OPTIMIZER } Cut;

static uint32_t
n_parts (const Lower *l, bool is_expert, Cut cut)
{
  uint32_t parts[3];
  l->backend->cuts (l, is_expert, &parts[CUT_PARAMS], &parts[CUT_GRADS], &parts[CUT_OPTIMIZER]);
  return parts[cut];
}

/* Elements that this rank has, of the parameters of its chunks. */
static uint64_t
n_kept (const Lower *l, uint32_t pp_rank, Cut cut)
{
  uint64_t n = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++)
    n += dp_part (dp_params_of_rank (l, pp_rank, is_expert), n_parts (l, is_expert, cut));
  return n;
}

/* Of which the parameters of its chunks are. */
static uint64_t
n_tensors (const Lower *l, uint32_t pp_rank)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint i = 0; i < chunk->operators->len; i++)
      n += operator_at (chunk, i)->params.is_frozen ? 0 : operator_at (chunk, i)->params.n;
  }
  return n;
}

uint32_t
segment_step_begin (Lower *l, uint32_t pp_rank)
{
  Build b;
  build_init (&b, l);
  uint64_t n = n_kept (l, pp_rank, CUT_GRADS);
  LsKernel zero = ls_kernel_stream ("zero gradients", LS_KERNEL_MEMSET, l->shard.grad_dtype, 1, n,
                                    (double) dp_grad_bytes (l, n), 0);
  if (!ls_strategy_steps_on_weights (l->s)) /* torch sets them to None */
    build_kernel (&b, &zero, LS_TAG_OPTIMIZER);
  if (l->backend->step_begin)
    l->backend->step_begin (&b, pp_rank);
  send_norm_back (&b, pp_rank);
  g_autofree char *name = g_strdup_printf ("begin stage %u", pp_rank);
  return build_finish (&b, name);
}

/* --- end ----------------------------------------------------------------------- */

static void
reduce_global (Build *b, LsSlot slot, uint64_t bytes, LsDtype dtype, const char *name)
{
  build_join (b, build_coll (b, LS_STREAM_GLOBAL, slot, LS_COLL_ALL_REDUCE, bytes, dtype, LS_TAG_SYNC, name));
}

static void
reduce_replicated (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  uint64_t numel = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++)
    numel += chunk_at (l, pp_rank, c)->n_partial;
  if (l->shard.sp && numel > 0)
    build_join (b,
                build_coll (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_REDUCE, dp_grad_bytes (l, numel),
                            l->shard.grad_dtype, LS_TAG_SYNC, "layer-norm grad all-reduce"));
}

static void
reduce_tied_embedding (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  bool is_end = pp_rank == 0 || pp_rank == last_rank (l) || (l->mesh.split > 0 && pp_rank == l->mesh.split);
  if (!is_tied_over_ranks (l) || !is_end || l->shard.lora.rank > 0)
    return;
  uint64_t words = ls_model_padded_vocab (l->model, l->shard.vocab_multiple, l->mesh.tp) / l->mesh.tp,
           numel = words * l->model->hidden;
  reduce_global (b, LS_SLOT_EMBEDDING, dp_grad_bytes (l, numel), l->shard.grad_dtype,
                 "embedding grad all-reduce");
}

/* The communicator over which all parameters of the model are spread. */
static bool
norm_slot (const Lower *l, LsSlot *ret_slot)
{
  bool is_sharded = (l->s->zero_stage > 0 && dp_all (l, false).n > 1) || l->mesh.ep > 1;
  *ret_slot = is_sharded ? LS_SLOT_WORLD : LS_SLOT_MODEL;
  return l->mesh.tp * l->mesh.pp > 1 || is_sharded;
}

static void
host_reads (Build *b)
{
  if (b->next_deps->len > 0)
    build_barrier (b);
  build_device_sync (b);
}

/* Weights of products in this scaled format, but those that their layers cast. */
static uint64_t
n_scaled (const Lower *l, uint32_t pp_rank, LsDtype dtype, Cut cut)
{
  bool is_nvfp4 = dtype == LS_DTYPE_NVFP4;
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks && !l->shard.fp8_linear; c++)
    for (int is_expert = 0; is_expert < 2; is_expert++)
      n += dp_part (chunk_at (l, pp_rank, c)->n_scaled[is_expert][is_nvfp4], n_parts (l, is_expert, cut));
  return n;
}

static const LsDtype scaled_dtypes[] = { LS_DTYPE_FP8, LS_DTYPE_NVFP4 };

/* Frozen weights in 16 bits, which Transformer Engine casts at the first micro-batch of a step all the same;
 * those in fp8 alone are as they are. */
static uint64_t
n_frozen_cast (const Lower *l, uint32_t pp_rank)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks && !l->shard.lora.is_fp8; c++)
    n += chunk_at (l, pp_rank, c)->n_frozen_scaled;
  return n;
}

/* Elements that the rank's optimizer steps on. */
static uint64_t
n_stepped (const Lower *l, uint32_t pp_rank)
{
  bool is_dealt = l->s->opt.kind && l->s->opt.cut == LS_OPTIMIZER_CUT_TENSORS;
  return is_dealt ? n_dealt (l, pp_rank) : n_kept (l, pp_rank, CUT_OPTIMIZER);
}

static GArray *
optimizer_kernels (const Lower *l, uint32_t pp_rank, LsStepped *ret_stepped)
{
  uint64_t n = n_stepped (l, pp_rank);
  GArray *kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  LsStepped stepped = ls_strategy_optimizer_kernels (l->s, n, kernels);
  stepped.n_tensors = l->backend->n_tensors ? l->backend->n_tensors (l, pp_rank) : n_tensors (l, pp_rank);
  for (guint i = 0; i < G_N_ELEMENTS (scaled_dtypes) && !l->backend->steps_on_shards; i++) {
    LsDtype dtype = scaled_dtypes[i];
    ls_weight_cast_kernels (n_scaled (l, pp_rank, dtype, dp_gathers_fp8 (l) ? CUT_OPTIMIZER : CUT_PARAMS)
                                + (dtype == l->shard.dtype ? n_frozen_cast (l, pp_rank) : 0),
                            dtype, kernels);
  }
  ls_optimizer_as_launched (l->shard.recipes, l->model, stepped, kernels);
  *ret_stepped = stepped;
  return kernels;
}

/* DeepSpeed steps on so many elements of a rank's part at a time (zero/config.py: sub_group_size of stage 3).
 */
#define SUB_GROUP UINT64_C (1000000000)

/* What the step holds besides the states, and gradients that are there all along. DeepSpeed's is on an fp32
 * copy of those in 16 bits, which are laid flat first, and gone behind it, with those of other ranks' parts
 * (zero/stage_1_and_2.py, step; stage3.py, _prepare_fp32_grad_for_sub_group). */
static uint64_t
step_bytes (const Lower *l, uint32_t pp_rank, LsStepped stepped)
{
  bool copies = l->backend->copies_gradients && l->s->zero_stage > 0
      && ls_dtype_bytes (l->shard.grad_dtype) < 4 && l->s->memory.offload == LS_OFFLOAD_NONE;
  if (copies && l->s->zero_stage == 3)
    stepped.n_params = MIN (stepped.n_params, SUB_GROUP);
  uint64_t held = ls_optimizer_held_bytes (l->shard.recipes, l->model, stepped),
           own = dp_grad_bytes (l, stepped.n_params), all = dp_grad_bytes (l, n_kept (l, pp_rank, CUT_GRADS));
  if (!copies)
    return held;
  uint64_t most = 4 * stepped.n_params + MAX (own, held > own ? held - own : 0),
           gone = l->s->zero_stage == 1 && all > own ? all - own : 0;
  return most > gone ? most - gone : 0;
}

static void
hold_step (Build *b, uint64_t bytes, uint16_t first)
{
  build_buffer (b, first, UINT16_MAX, LS_MEM_WORKSPACE, bytes, false);
  build_buffer (b, (uint16_t) (b->ops->len - 1), UINT16_MAX, LS_MEM_WORKSPACE, bytes, true);
}

/* fp32 copies of narrower states live from the first cast to the last. */
static void
hold_scratch (Build *b, uint32_t pp_rank, uint16_t first, bool is_free)
{
  const LsAdamStates states = ls_strategy_adam (b->l->s);
  build_buffer (b, first, UINT16_MAX, LS_MEM_WORKSPACE,
                n_stepped (b->l, pp_rank) * ls_adam_scratch_bytes (&states), is_free);
}

static void
optimizer (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  LsStepped stepped;
  g_autoptr (GArray) kernels = optimizer_kernels (l, pp_rank, &stepped);
  uint16_t last_cast = NO_OP, first_step = NO_OP;
  bool held = false;
  LsSlot slot;
  bool is_spread = norm_slot (l, &slot), is_offloaded = l->s->memory.offload != LS_OFFLOAD_NONE;
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernel *k = &g_array_index (kernels, LsKernel, i);
    bool is_norm = k->kind == LS_KERNEL_REDUCTION;
    bool finds_inf = k->role == LS_ROLE_UNSCALE;
    if ((is_norm && !l->s->opt.grad_norm) || (is_offloaded && !is_norm))
      continue;
    if (l->s->opt.kind && k->role == LS_ROLE_STEP) {
      build_optimizer_step (b, pp_rank);
      continue;
    }
    bool casts = k->role == LS_ROLE_CAST_STATE;
    uint16_t op = build_kernel (b, k, LS_TAG_OPTIMIZER);
    first_step = first_step == NO_OP && !is_norm && !finds_inf ? op : first_step;
    if (casts && !held)
      hold_scratch (b, pp_rank, op, false);
    last_cast = casts ? op : last_cast;
    held |= casts;
    if (!is_norm && !finds_inf)
      continue;
    if (l->s->opt.post_validation) {
      if (is_norm)
        pass_norm_on (b, pp_rank);
      continue;
    }
    if (is_spread && l->s->opt.grad_norm)
      reduce_global (b, slot, 4, LS_DTYPE_FP32, is_norm ? "grad-norm all-reduce" : "found-inf all-reduce");
    if (finds_inf || !ls_strategy_steps_on_weights (l->s))
      host_reads (b);
  }
  if (held)
    hold_scratch (b, pp_rank, last_cast, true);
  else if (first_step != NO_OP)
    hold_step (b, step_bytes (l, pp_rank, stepped), first_step);
  if (is_offloaded)
    offload_optimizer (b, pp_rank);
}

uint32_t
segment_step_end (Lower *l, uint32_t pp_rank)
{
  Build b;
  build_init (&b, l);
  b.is_end = true;
  if (l->backend->reduce_rest)
    l->backend->reduce_rest (&b, pp_rank);
  reduce_pipes (&b, pp_rank);
  reduce_replicated (&b, pp_rank);
  reduce_tied_embedding (&b, pp_rank);
  optimizer (&b, pp_rank);
  forget_gradients (&b, pp_rank);
  if (l->backend->step_end)
    l->backend->step_end (&b, pp_rank);
  g_autofree char *name = g_strdup_printf ("end stage %u", pp_rank);
  return build_finish (&b, name);
}

/* Nothing but the last stage has a loss; others make one of a number on the host, which they wait for
 * (torchtitan/trainer.py, pp_forward_backward_step; nemo_automodel/recipes/llm/train_ft.py). */
uint32_t
segment_flush (Lower *l, uint32_t pp_rank, bool is_first)
{
  Build b;
  build_init (&b, l);
  if (l->backend->reduce_flush && l->s->data.grad_sync == LS_GRAD_SYNC_FLUSH)
    l->backend->reduce_flush (&b, pp_rank, is_first);
  if (pp_rank != last_rank (l))
    build_compute_sync (&b, "stand-in of a loss");
  g_autofree char *name = g_strdup_printf ("%s stage %u", is_first ? "flush" : "flush again", pp_rank);
  return build_finish (&b, name);
}

uint32_t
segment_early_gather (Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  const DpBackend *backend = l->backend;
  Build b;
  build_init (&b, l);
  if (!backend->early_gather || !backend->early_gather (&b, pp_rank, chunk)) {
    build_clear (&b);
    return UINT32_MAX;
  }
  g_autofree char *name = g_strdup_printf ("gather parameters stage %u chunk %u", pp_rank, chunk);
  return build_finish (&b, name);
}

uint32_t
segment_gather_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  Build b;
  build_init (&b, l);
  l->backend->gather_chunk (&b, pp_rank, chunk);
  g_autofree char *name = g_strdup_printf ("gather parameters stage %u chunk %u", pp_rank, chunk);
  return build_finish (&b, name);
}

uint32_t
segment_reduce_chunk (Lower *l, uint32_t pp_rank, uint32_t chunk)
{
  Build b;
  build_init (&b, l);
  l->backend->reduce_chunk (&b, pp_rank, chunk);
  g_autofree char *name = g_strdup_printf ("reduce gradients stage %u chunk %u", pp_rank, chunk);
  return build_finish (&b, name);
}

/* Weights of fp8 or nvfp4 products are there in both layouts, beside 16 bits or instead of them. */
static uint64_t
weight_bytes (const Lower *l, uint32_t pp_rank)
{
  uint64_t bytes = n_kept (l, pp_rank, CUT_PARAMS) * ls_dtype_bytes (ls_strategy_weights (l->s));
  for (guint i = 0; i < G_N_ELEMENTS (scaled_dtypes) && !l->s->fp8.params; i++)
    bytes += ls_dtype_array_bytes (scaled_dtypes[i], 2 * n_scaled (l, pp_rank, scaled_dtypes[i], CUT_PARAMS));
  return bytes;
}

/* Of weights that do not learn, cut as all parameters are: they need no more than what is computed with. */
static uint64_t
frozen_bytes (const Lower *l, uint32_t pp_rank)
{
  uint64_t bytes = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (int is_expert = 0; is_expert < 2; is_expert++)
      bytes += dp_part (dp_frozen_bytes (l, chunk->n_frozen[is_expert], is_expert ? 0 : chunk->n_nf4,
                                         is_expert ? 0 : chunk->n_frozen_scaled),
                        n_parts (l, is_expert, CUT_PARAMS));
  }
  return bytes;
}

/* One weight at a time is written in 16 bits: the largest. */
static uint64_t
dequantised_bytes (const Lower *l, uint32_t pp_rank)
{
  uint64_t most = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint i = 0; i < chunk->operators->len; i++) {
      const LsOperator *o = operator_at (chunk, i);
      most = o->params.is_nf4 ? MAX (most, o->params.numel[0]) : most;
    }
  }
  return dp_param_bytes (l, most);
}

static uint64_t
states (const uint64_t bytes[LS_N_MEM])
{
  return bytes[LS_MEM_PARAMETERS] + bytes[LS_MEM_GRADIENTS] + bytes[LS_MEM_OPTIMIZER];
}

/* Master weights, momentum and variance, as wide as they are; fp32 training has no extra master. */
static uint64_t
optimizer_bytes (const Lower *l, uint32_t pp_rank)
{
  const LsAdamStates states = ls_strategy_adam (l->s);
  if (!l->s->opt.kind)
    return n_kept (l, pp_rank, CUT_OPTIMIZER) * ls_adam_bytes (&states, l->shard.dtype);
  bool has_master = l->shard.dtype != LS_DTYPE_FP32 && !l->shard.grad_is_own;
  return optimizer_state_bytes (l, pp_rank, has_master ? 4 : 0);
}

void
step_static_memory (const Lower *l, uint32_t pp_rank, LsProgram *p)
{
  uint64_t *bytes = p->static_bytes;
  bytes[LS_MEM_PARAMETERS] = weight_bytes (l, pp_rank);
  bytes[LS_MEM_GRADIENTS] = grads_come_and_go (l) ? 0 : dp_grad_bytes (l, n_kept (l, pp_rank, CUT_GRADS));
  bytes[LS_MEM_OPTIMIZER] = optimizer_bytes (l, pp_rank);
  bytes[LS_MEM_WORKSPACE] = placeholder_bytes (l, pp_rank) + dequantised_bytes (l, pp_rank);
  uint64_t all = states (bytes);
  if (l->backend->static_memory)
    l->backend->static_memory (l, pp_rank, bytes);
  bytes[LS_MEM_PARAMETERS] += frozen_bytes (l, pp_rank);
  if (l->s->memory.offload != LS_OFFLOAD_NONE)
    *(l->s->memory.offload_to == LS_OFFLOAD_TO_NVME ? &p->nvme_bytes : &p->host_bytes) = all - states (bytes);
  p->host_bytes += activations_in_host (l, p);
}
