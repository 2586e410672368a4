/* lower/data/lower_offload.c — ZeRO-Offload and ZeRO-Infinity: optimizer states, and with stage 3
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
#include "lower/data/lower_deepspeed.h"

#define SUB_GROUP        1000000000u /* sub_group_size, zero/config.py */
#define CLIP_BYTES       8u
#define ADAM_BYTES       28u
#define CAST_BYTES       6u
#define STATES_IN_BYTES  16u
#define STATES_OUT_BYTES 12u
#define FP32_BYTES       4u

bool
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
  op.root = direction;
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
  HostStep h = { .adam = NO_OP };
  for (int is_expert = 0; is_expert < 2; is_expert++)
    h.n += dp_part (dp_params_of_rank (l, pp_rank, is_expert), dp_shard (l, is_expert).n);
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
offload_static_memory (const Lower *l, uint64_t bytes[LS_N_MEM])
{
  if (!offloads_optimizer (l))
    return;
  bytes[LS_MEM_OPTIMIZER] = 0;
  if (l->s->zero_stage >= 2)
    bytes[LS_MEM_GRADIENTS] = 0;
  if (offloads_parameters (l))
    bytes[LS_MEM_PARAMETERS] = 0;
}
