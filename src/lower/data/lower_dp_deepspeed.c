/* DeepSpeed's ZeRO stages 0, 1 and 2 (runtime/zero/stage_1_and_2.py; stage 0:
 * runtime/engine.py, buffered_allreduce_fallback).
 *
 * Stage 0. Behind the last backward, gradients are flattened into buckets that take a tensor,
 * then close if they have more than reduce_bucket elements; all-reduced and copied back, one
 * after the other.
 *
 * Stages 1 and 2. As a gradient becomes ready it is copied to a contiguous bucket (ipg). A bucket is
 * reduced BEFORE the gradient that it would overflow with; a larger gradient is reduced alone
 * and in place. With overlap_comm (dp_overlap) there are two buckets: when one is queued, the
 * compute stream first waits for what was queued before, so at most one reduction is beside
 * compute; at the end of the backward the rest is flushed and the host waits for the device.
 * Without it, compute waits for each. Stage 1 reduces at the boundary of the step only, stage 2
 * in each micro-step. A pipeline has no overlap: all is reduced behind its last backward
 * (engine.py: "Pipeline parallelism does not support overlapped communication").
 *
 *     compute  B B B | copy B B B | wait, copy B B ...
 *     dp               [ bucket 0 ]  [ bucket 1 ]
 *
 * Stage 1 of bf16 weights with fp32 gradients (runtime/bf16_optimizer.py; BLOOM's). Gradients are one
 * flat fp32 tensor, to which each micro-batch adds (model/operators_build.c). Behind the last one all
 * of it is averaged, all-reduced, although a rank needs its part only, and copied back; nothing overlaps
 * (engine.py: _bf16_reduce_grads (), buffered_allreduce_fallback (), allreduce_and_copy ()).
 *
 * Each rank updates its part, and parameters are gathered in chunks of about
 * allgather_bucket elements, as many as fit whole.
 *
 * N@G. Parts are of groups of G ranks; behind the reduce-scatter in a group the replicas
 * all-reduce a part (DeepSpeed has this for stage 3 only, as MiCS; InternEvo for stage 1).
 *
 * Memory. Stage 1 has whole gradients from the first backward to the step, as autograd makes them; stage 2
 * keeps its part. While a backward runs both have the one or two buckets of reduce_bucket elements, however
 * small the model: from its begin, or, with bucket_late, from the first gradient on (setup_buckets (), called
 * by process_gradients () in 0.19.8).
 *
 * Wire bytes of a rank, of Psi bytes and n ranks: reduce-scatter (n - 1)/n Psi, gather as much:
 * k = 2, for stage 2 in each micro-step one more.
 *
 * With bucket_all_reduce a bucket of stages 1 and 2 is all-reduced, which is twice the bytes: DeepSpeed's
 * default (use_multi_rank_bucket_allreduce; captured of 0.19.8). Else it is reduced and scattered, as the
 * ZeRO paper says (Rajbhandari et al. 2020, section 7).
 *
 * Deviations. The average is a kernel of the compute stream. With 16-bit gradients and
 * stage 2 the copy to the bucket is the operator's accumulation (three passes for two). Copies
 * of the part that a rank keeps, a share 1/n of a bucket, are left out. Newer versions gather
 * in one piece. */
#include "lower/data/lower_dp.h"

/* The compute stream waits for all on that stream, before what comes next on any. */
static void
deepspeed_wait (Build *b, LsStream stream)
{
  build_join_stream (b, stream);
  build_barrier (b);
}

void
deepspeed_sync_host (Build *b)
{
  static const LsStream streams[]
      = { LS_STREAM_COMPUTE, LS_STREAM_DP, LS_STREAM_GATHER, LS_STREAM_COPY, LS_STREAM_COPY_IN };
  LsDep deps[G_N_ELEMENTS (streams)];
  for (guint i = 0; i < G_N_ELEMENTS (streams); i++)
    deps[i] = (LsDep) { LS_DEP_STREAM, (uint16_t) streams[i] };
  build_host_sync (b, LS_TAG_SYNC, "device synchronize", deps, G_N_ELEMENTS (deps));
}

/* A whole number of elements for each of n ranks. */
static uint64_t
padded (uint64_t numel, uint32_t n)
{
  return dp_part (numel, n) * n;
}

LsDtype
deepspeed_gathers (const Lower *l)
{
  return dp_gathers_fp8 (l) ? LS_DTYPE_FP8 : ls_dtype_between (l->shard.dtype);
}

uint16_t
deepspeed_copies (Build *b, LsStream stream, const char *name, LsDtype dtype, uint64_t numel, uint64_t n,
                  LsTag tag)
{
  uint64_t part = (numel + n - 1) / n;
  LsKernel copy = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, dtype, 1, part,
                                    2.0 * (double) (part * ls_dtype_bytes (dtype)), 0);
  uint16_t op = build_kernel_on (b, stream, &copy, tag, NULL, 0);
  g_array_index (b->ops, LsOp, op).repeat = (uint32_t) n;
  return op;
}

/* A list of n views of a gradient, .grad.view (-1).narrow (...) each; c10d copies them into one array. */
static void
flatten_list (Build *b, uint64_t numel, uint32_t n)
{
  const Lower *l = b->l;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  build_host_calls (b, LS_TAG_SYNC, LS_HOST_VIEW, 2 * (uint64_t) n, VIEWS);
  build_event (b, LS_OP_RECORD, LS_STREAM_DP, "gradients are there", LS_EVENT_NONE, &compute);
  deepspeed_copies (b, LS_STREAM_DP, "grad-copy-in", l->shard.grad_dtype, numel, n, LS_TAG_SYNC);
}

static uint16_t
reduce_over (Build *b, DpGroup group, int coll, uint64_t numel, const char *name, uint16_t unit)
{
  const Lower *l = b->l;
  if (group.n <= 1)
    return NO_OP;
  uint64_t bytes = dp_grad_bytes (l, padded (numel, group.n));
  if (l->s->data.collective_lists && coll == LS_COLL_REDUCE_SCATTER)
    flatten_list (b, padded (numel, group.n), group.n);
  uint16_t op = build_coll (b, LS_STREAM_DP, group.slot, coll, bytes, l->shard.grad_dtype, LS_TAG_SYNC, name);
  g_array_index (b->ops, LsOp, op).unit = unit;
  return op;
}

/* Averages and sums numel gradients over the ranks that share them, of which each gets all; NO_OP with one
 * rank. */
static uint16_t
deepspeed_reduce_whole (Build *b, uint64_t numel, bool is_expert, uint16_t unit)
{
  DpGroup all = dp_all (b->l, is_expert);
  if (all.n > 1)
    dp_pass_gradients (b, "grad-average", 2, numel);
  return reduce_over (b, all, LS_COLL_ALL_REDUCE, numel, "grad all-reduce", unit);
}

uint16_t
deepspeed_reduce (Build *b, uint64_t numel, bool is_expert, bool is_last, uint16_t unit)
{
  const Lower *l = b->l;
  if (dp_all (l, is_expert).n > 1)
    dp_pass_gradients (b, "grad-average", 2, numel);
  DpGroup shard = dp_shard (l, is_expert), replica = dp_replica (l, is_expert);
  bool is_whole = l->s->data.bucket_all_reduce && l->s->zero_stage < 3;
  uint16_t op = reduce_over (b, shard, is_whole ? LS_COLL_ALL_REDUCE : LS_COLL_REDUCE_SCATTER, numel,
                             is_whole ? "grad all-reduce" : "grad reduce-scatter", unit);
  if (!is_last)
    return op;
  uint16_t summed
      = reduce_over (b, replica, LS_COLL_ALL_REDUCE, dp_part (numel, shard.n), "grad all-reduce", unit);
  return summed != NO_OP ? summed : op;
}

uint16_t
deepspeed_gather (Build *b, uint64_t numel, bool is_expert, uint16_t after)
{
  const Lower *l = b->l;
  DpGroup shard = dp_shard (l, is_expert);
  if (shard.n <= 1)
    return NO_OP;
  LsDep copied = { LS_DEP_END, after };
  guint n_joins = b->next_deps->len;
  if (after != NO_OP)
    g_array_append_val (b->next_deps, copied);
  if (l->s->data.collective_lists)
    build_host_calls (b, LS_TAG_SYNC, LS_HOST_VIEW, shard.n, VIEWS);
  uint16_t op = build_coll (b, LS_STREAM_GATHER, shard.slot, LS_COLL_ALL_GATHER,
                            dp_param_bytes (l, padded (numel, shard.n)), l->shard.dtype, LS_TAG_SYNC,
                            "parameter all-gather");
  g_array_set_size (b->next_deps, n_joins);
  LsTag tag = !b->pass ? LS_TAG_OPTIMIZER : b->pass->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B;
  if (l->s->data.collective_lists)
    op = deepspeed_copies (b, LS_STREAM_GATHER, "parameter-copy-out", deepspeed_gathers (l),
                           padded (numel, shard.n), shard.n, tag);
  return op;
}

/* ZeRO-Offload and ZeRO-Infinity: optimizer states, and with stage 3
 * parameters, live in the memory of the host or on its NVMe drives.
 *
 * Gradients (optimizer or parameters offloaded). Behind each reduction a rank's part goes to the
 * host; with several micro-batches and stage 2 or 3 the sum so far comes back first, is added
 * to on the accelerator, and leaves again. In the last micro-batch what leaves is fp32
 * (stage_1_and_2.py, async_inplace_copy_grad_to_fp32_buffer_from_gpu); for NVMe it is written to
 * the drive (stage3.py, swap_out_gradients).
 *
 * Optimizer, in sub-groups of 1e9 elements of the rank's part. The CPU's Adam streams through the host's
 * memory, which the ranks of a socket share. Bytes per parameter:
 *
 *     clip    8      fp32 gradient, in place; with grad_norm
 *     Adam    28     read gradient; read and write master, m, v
 *     cast    6      read master, write 16 bits; not in fp32
 *
 * Then 16-bit parameters go to the accelerator, beside the next sub-group, unless they live
 * outside. NVMe: a sub-group's 16 bytes per parameter (master, m, v, gradient) are read while the one
 * before is computed, 12 are written behind it, and the 16-bit parameters if they live there.
 *
 * Parameters (stage 3). Before a gather each rank fetches its part over its own PCIe link or from a
 * drive: all links of all hosts at once (bandwidth-centric partitioning).
 *
 * Worked example. 1e9 parameters on one rank, socket of 102.4 GB/s (6 channels of DDR4-2666 at
 * 0.8): Adam and cast move 34 GB in 0.33 s. Gradients out: 4 GB at 12 GB/s, 0.33 s, beside the
 * backward; parameters in: 2 GB, 0.17 s.
 *
 * Deviations. The CPU's arithmetic is free: its memory binds (4 fused multiply-adds a word). Reads and
 * writes share one direction of the memory's link. What moves between a drive and the host passes
 * the accelerator's PCIe link instead of the CPU's. Adding to a sum that came back costs
 * no kernel. Delayed parameter update is not there.
 *
 * References: Ren et al., ZeRO-Offload, USENIX ATC 2021, sections 3 and 4; Rajbhandari et al.,
 * ZeRO-Infinity, SC 2021, sections 5 and 6. */

#define SUB_GROUP        1000000000u /* sub_group_size, zero/config.py */
#define CLIP_BYTES       8u
#define ADAM_BYTES       28u
#define CAST_BYTES       6u
#define STATES_IN_BYTES  16u
#define STATES_OUT_BYTES 12u
#define FP32_BYTES       4u

static bool
offloads_optimizer (const Lower *l)
{
  return l->s->memory.offload != LS_OFFLOAD_NONE;
}

bool
offloads_parameters (const Lower *l)
{
  return l->s->memory.offload == LS_OFFLOAD_PARAMETERS;
}

static bool
is_on_nvme (const Lower *l)
{
  return l->s->memory.offload_to == LS_OFFLOAD_TO_NVME;
}

const char *
offload_variant (const Lower *l, const DpPass *p)
{
  return offloads_optimizer (l) && p->is_first ? " first" : "";
}

/* after NO_OP: behind nothing but its stream. */
static uint16_t
copy (Build *b, LsStream stream, LsCopyDirection direction, uint64_t bytes, uint16_t after, const char *name)
{
  LsOp op = ls_op_blank (LS_OP_COPY, stream, LS_TAG_OPTIMIZER, name);
  op.host = LS_HOST_LAUNCH;
  op.direction = direction;
  op.bytes = bytes;
  LsDep dep = { LS_DEP_END, after };
  return build_op (b, op, &dep, after == NO_OP ? 0 : 1);
}

void
offload_gradients (Build *b, const DpPass *p, uint64_t numel, uint16_t reduced)
{
  const Lower *l = b->l;
  if (!offloads_optimizer (l))
    return;
  if (reduced == NO_OP)
    reduced = dp_last_compute (b);
  if (!p->is_first && l->s->zero_stage >= 2)
    reduced = copy (b, LS_STREAM_COPY_IN, LS_COPY_TO_DEVICE, dp_grad_bytes (l, numel), reduced,
                    "gradient sum in");
  if (p->is_last)
    copy (b, LS_STREAM_COPY, is_on_nvme (l) ? LS_COPY_TO_NVME : LS_COPY_TO_HOST, numel * FP32_BYTES, reduced,
          "gradients out");
  else
    copy (b, LS_STREAM_COPY, LS_COPY_TO_HOST, dp_grad_bytes (l, numel), reduced, "gradient sum out");
}

uint16_t
offload_fetch (Build *b, uint64_t numel)
{
  const Lower *l = b->l;
  return copy (b, LS_STREAM_COPY_IN, is_on_nvme (l) ? LS_COPY_FROM_NVME : LS_COPY_TO_DEVICE,
               dp_param_bytes (l, numel), NO_OP, "parameters in");
}

/* --- the optimizer ------------------------------------------------------------------- */

typedef struct {
  uint64_t n, n_groups;
  uint16_t adam; /* of the sub-group before, or NO_OP */
} HostStep;

static uint64_t
group_size (const HostStep *h, uint64_t i)
{
  return i + 1 < h->n_groups ? SUB_GROUP : h->n - SUB_GROUP * i;
}

static uint16_t
read_states (Build *b, const HostStep *h, uint64_t i)
{
  if (!is_on_nvme (b->l) || i >= h->n_groups)
    return NO_OP;
  return copy (b, LS_STREAM_COPY_IN, LS_COPY_FROM_NVME, group_size (h, i) * STATES_IN_BYTES, h->adam,
               "optimizer states in");
}

static void
write_back (Build *b, uint64_t numel, uint16_t adam)
{
  const Lower *l = b->l;
  uint64_t out = 0;
  if (is_on_nvme (l))
    out = numel * STATES_OUT_BYTES + (offloads_parameters (l) ? dp_param_bytes (l, numel) : 0);
  if (out > 0)
    copy (b, LS_STREAM_COPY, LS_COPY_TO_NVME, out, adam, "optimizer states out");
  if (!offloads_parameters (l))
    copy (b, LS_STREAM_COPY_IN, LS_COPY_TO_DEVICE, dp_param_bytes (l, numel), adam, "parameters in");
}

void
offload_optimizer (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  if (!offloads_optimizer (l))
    return;
  HostStep h = { .n = dp_n_kept (l, pp_rank, DP_CUT_OPTIMIZER), .adam = NO_OP };
  h.n_groups = dp_part (h.n, SUB_GROUP);
  bool has_master = l->shard.dtype != LS_DTYPE_FP32;
  uint64_t traffic = ADAM_BYTES + (l->s->opt.grad_norm ? CLIP_BYTES : 0) + (has_master ? CAST_BYTES : 0);

  deepspeed_wait (b, LS_STREAM_COPY); /* gradients are there */
  uint16_t states = read_states (b, &h, 0);
  for (uint64_t i = 0; i < h.n_groups; i++) {
    uint16_t next = read_states (b, &h, i + 1);
    h.adam = copy (b, LS_STREAM_COMPUTE, LS_COPY_IN_HOST, group_size (&h, i) * traffic, states, "cpu-adam");
    write_back (b, group_size (&h, i), h.adam);
    states = next;
  }
  build_join_stream (b, LS_STREAM_COPY);
  build_join_stream (b, LS_STREAM_COPY_IN);
  build_barrier (b);
  deepspeed_sync_host (b);
}

/* Stage 1 keeps whole gradients where they are. */
void
offload_static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  if (!offloads_optimizer (l))
    return;
  bytes[LS_MEM_OPTIMIZER] = 0;
  if (l->s->zero_stage >= 2)
    bytes[LS_MEM_GRADIENTS] = 0;
  if (offloads_parameters (l))
    bytes[LS_MEM_PARAMETERS] = 0;
}

typedef struct {
  uint64_t elements[2]; /* in the open bucket: of others, of experts */
  guint n_reduced;
  bool overlaps, is_last, is_there;
} Ipg;

enum { BUFFER_IPG };

/* Stage 1 with 16-bit weights and fp32 gradients is another optimizer's. */
static bool
has_flat_gradients (const Lower *l)
{
  return l->shard.grad.is_cast && l->s->zero_stage == 1;
}

static bool
overlaps (const Lower *l)
{
  return l->s->data.overlap && l->mesh.pp == 1 && !has_flat_gradients (l);
}

/* A pass in which gradients are reduced; else all are at the end of the step. */
static bool
reduces (const Lower *l, const DpPass *p)
{
  return l->s->zero_stage == 1 ? dp_completes (p) && overlaps (l)
                               : l->s->zero_stage == 2 && dp_has_weights (p);
}

static char *
variant (const Lower *l, const DpPass *p)
{
  return reduces (l, p) ? g_strconcat (" reduces", p->is_last ? " last" : "", offload_variant (l, p), NULL)
                        : NULL;
}

/* --- buckets --------------------------------------------------------------------- */

static void
flush (Build *b, Ipg *ipg, bool is_expert, const DpPass *p)
{
  uint64_t numel = ipg->elements[is_expert];
  ipg->elements[is_expert] = 0;
  if (numel == 0)
    return;
  if (ipg->overlaps && ipg->n_reduced > 0)
    deepspeed_wait (b, LS_STREAM_DP);
  uint16_t reduced = deepspeed_reduce (b, numel, is_expert, ipg->is_last, (uint16_t) ipg->n_reduced++);
  offload_gradients (b, p, dp_part (numel, dp_shard (b->l, is_expert).n), reduced);
  if (!ipg->overlaps)
    build_join (b, reduced);
}

static void
take (Build *b, Ipg *ipg, uint64_t numel, bool is_expert, const DpPass *p)
{
  const Lower *l = b->l;
  uint64_t limit = l->s->data.reduce_bucket;
  if (ipg->elements[is_expert] + numel > limit)
    flush (b, ipg, is_expert, p);
  bool is_copied_already = l->s->zero_stage == 2 && ls_dtype_bytes (l->shard.grad_dtype) < 4;
  if (numel <= limit && !is_copied_already)
    dp_pass_gradients (b, "grad-to-bucket", 2, numel);
  ipg->elements[is_expert] += numel;
}

static void
take_operator (Build *b, Ipg *ipg, const LsOperator *o, const DpPass *p)
{
  for (uint32_t i = o->params.is_frozen ? 0 : o->params.n; i-- > 0;)
    take (b, ipg, o->params.numel[i], o->params.is_expert, p);
}

static void
ipg_buffer (Build *b, const DpPass *p, bool is_there)
{
  Ipg *ipg = p->state;
  if (is_there == ipg->is_there)
    return;
  build_buffer (b, dp_last_compute (b), dp_buffer (b, p->c, BUFFER_IPG), LS_MEM_UNSHARDED,
                dp_grad_bytes (b->l, b->l->s->data.reduce_bucket) * (overlaps (b->l) ? 2 : 1), !is_there);
  ipg->is_there = is_there;
}

/* --- hooks ----------------------------------------------------------------------- */

static void
begin (Build *b, DpPass *p)
{
  if (!reduces (b->l, p))
    return;
  Ipg *ipg = g_new0 (Ipg, 1);
  ipg->overlaps = overlaps (b->l);
  ipg->is_last = p->is_last;
  p->state = ipg;
  ipg_buffer (b, p, !b->l->s->data.bucket_late);
}

static void
after (Build *b, DpPass *p, guint o)
{
  if (!p->state)
    return;
  if (trained_params (operator_at (p->c, o)) > 0)
    ipg_buffer (b, p, true);
  take_operator (b, p->state, operator_at (p->c, o), p);
}

static void
end (Build *b, DpPass *p)
{
  Ipg *ipg = p->state;
  if (!ipg)
    return;
  flush (b, ipg, false, p);
  flush (b, ipg, true, p);
  if (ipg->overlaps)
    deepspeed_wait (b, LS_STREAM_DP);
  if (b->next_deps->len > 0)
    build_barrier (b);
  if (ipg->overlaps)
    deepspeed_sync_host (b);
  ipg_buffer (b, p, false);
  g_clear_pointer (&p->state, g_free);
}

/* Stage 0: a bucket laid flat, summed and copied back. */
static void
all_reduce_bucket (Build *b, uint64_t numel, bool is_expert, uint16_t unit)
{
  if (numel == 0)
    return;
  dp_pass_gradients (b, "grad-flatten", 2, numel);
  build_join (b, deepspeed_reduce_whole (b, numel, is_expert, unit));
  dp_pass_gradients (b, "grad-unflatten", 2, numel);
}

/* Tensors in the order of the backward. */
static void
all_reduce (Build *b, const Chunk *c, bool is_expert)
{
  uint64_t numel = 0;
  uint16_t unit = 0;
  if (dp_all (b->l, is_expert).n == 1)
    return;
  for (guint i = c->operators->len; i-- > 0;) {
    const LsOperator *o = operator_at (c, i);
    for (uint32_t k = 0; k < o->params.n && o->params.is_expert == is_expert && !o->params.is_frozen; k++) {
      numel += o->params.numel[k];
      if (numel <= b->l->s->data.reduce_bucket)
        continue;
      all_reduce_bucket (b, numel, is_expert, unit++);
      numel = 0;
    }
  }
  all_reduce_bucket (b, numel, is_expert, unit);
}

static void
all_reduce_flat (Build *b, uint32_t pp_rank)
{
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint64_t numel = dp_params_of_rank (b->l, pp_rank, is_expert);
    if (numel == 0 || dp_all (b->l, is_expert).n == 1)
      continue;
    build_join (b, deepspeed_reduce_whole (b, numel, is_expert, 0));
    dp_pass_gradients (b, "grad-copy-back", 2, numel);
  }
}

static void
reduce_chunk (Build *b, uint32_t pp_rank, const Chunk *c)
{
  DpPass p = { .c = c, .pp_rank = pp_rank, .type = LS_ACTION_B, .is_first = true, .is_last = true };
  Ipg ipg = { .is_last = true };
  for (guint i = c->operators->len; i-- > 0;)
    take_operator (b, &ipg, operator_at (c, i), &p);
  flush (b, &ipg, false, &p);
  flush (b, &ipg, true, &p);
}

static void
reduce_rest (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  if (has_flat_gradients (l)) {
    all_reduce_flat (b, pp_rank);
    return;
  }
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    if (l->s->zero_stage == 0)
      for (int is_expert = 0; is_expert < 2; is_expert++)
        all_reduce (b, chunk, is_expert);
    else if (l->s->zero_stage == 1 && !overlaps (l))
      reduce_chunk (b, pp_rank, chunk);
  }
}

/* Chunks are cut from each rank's part alike. */
static void
gather_in_chunks (Build *b, uint64_t numel, bool is_expert)
{
  uint32_t n = dp_shard (b->l, is_expert).n;
  uint64_t n_chunks = MAX (1, numel / b->l->s->data.allgather_bucket), part = dp_part (numel, n),
           size = part / n_chunks;
  uint16_t last = NO_OP;
  for (uint64_t i = 0; i < n_chunks && !b->is_too_long; i++)
    last = deepspeed_gather (b, n * (i + 1 < n_chunks ? size : part - size * i), is_expert, NO_OP);
  build_join (b, last); /* the others are before it on their stream */
}

static void
step_end (Build *b, uint32_t pp_rank)
{
  if (b->l->s->zero_stage == 0)
    return;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint64_t numel = dp_params_of_rank (b->l, pp_rank, is_expert);
    if (numel > 0)
      gather_in_chunks (b, numel, is_expert);
  }
}

const DpBackend dp_backend_deepspeed = {
  .copies_gradients = true,
  .variant = variant,
  .begin = begin,
  .after = after,
  .end = end,
  .reduce_rest = reduce_rest,
  .step_end = step_end,
  .static_memory = offload_static_memory,
};
