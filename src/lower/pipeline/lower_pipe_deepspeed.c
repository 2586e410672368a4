/* lower/pipeline/lower_pipe_deepspeed.c — 1F1B as DeepSpeed's pipeline engine communicates
 * (runtime/pipe/schedule.py, TrainSchedule; engine.py; PartitionedTensor in runtime/utils.py).
 *
 * Problem. Stages take turns: where one runs a forward, its neighbours run backwards. Between two
 * passes a stage sends what it made and receives what it needs, one transfer after the other; the
 * compute stream waits for each. A stage that goes from a backward to a forward receives first,
 * one that goes from a forward to a backward sends first, so neighbours agree:
 *
 *     rank r - 1   F | send activations, receive gradients | B
 *     rank r       B | receive activations, send gradients | F
 *
 * With tensor parallelism the boundary tensor, equal on all tp ranks, travels as 1/tp slices with a
 * tensor that says how it was cut (is_pipe_partitioned, is_grad_partitioned). The sender copies that from
 * the host, for which it waits until the pass is over; the receiver reads it on the host, then gathers
 * the whole: zeros, an all-gather into a list, which c10d copies out, and a clone. A backward
 * gathers twice, the gradient and the output of its forward, of which only the slice was kept.
 *
 *     bytes of a gather in kernels: S zeroed, 2 S copied out, 2 S cloned; all-gather of S
 *
 * Deviations. The tensors of metadata (some 100 bytes, with a message of their own) are not sent; nor
 * are the copies of slices, 1/tp of those of the whole, counted.
 *
 * Reference: DeepSpeed of 2021 and 2022, v0.3.13 to v0.7; since 2023 the metadata are kept on the host. */
#include "lower/pipeline/lower_pipe.h"
#include "lower/pipeline/lower_order.h"

/* One transfer, for which the compute stream waits. */
static void
build_transfer (Build *b, uint32_t what)
{
  const char *name = what == SEND_F ? "send activations"
      : what == RECV_F              ? "receive activations"
      : what == SEND_B              ? "send gradients"
                                    : "receive gradients";
  build_join (b, pipe_build_group (b, LS_STREAM_PP_FWD, what, message_bytes (b->l), name));
}

static void
build_copy (Build *b, const char *name, LsKernelKind kind, uint32_t passes, LsTag tag)
{
  const Lower *l = b->l;
  uint64_t bytes = ls_residual_bytes (l->model, &l->shard);
  LsKernel copy
      = ls_kernel_stream (name, kind, l->act, 1, bytes / ls_dtype_bytes (l->act), (double) bytes * passes, 0);
  build_kernel (b, &copy, tag);
}

/* PartitionedTensor.full () */
static void
build_whole (Build *b, LsTag tag)
{
  const Lower *l = b->l;
  build_copy (b, "boundary-zeros", LS_KERNEL_MEMSET, 1, tag);
  build_join (b,
              build_coll (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER,
                          ls_residual_bytes (l->model, &l->shard), l->shard.dtype, LS_TAG_SYNC,
                          "boundary all-gather"));
  build_copy (b, "boundary-copy-out", LS_KERNEL_ELEMENTWISE, 2, tag);
  build_copy (b, "boundary-clone", LS_KERNEL_ELEMENTWISE, 2, tag);
}

static void
build_send (Build *b, uint32_t what)
{
  if (what == 0)
    return;
  if (scatters (b->l))
    build_compute_sync (b, "how a tensor is cut");
  build_transfer (b, what);
}

static void
build_receive (Build *b, uint32_t what)
{
  if (what == 0)
    return;
  build_transfer (b, what);
  if (!scatters (b->l))
    return;
  build_compute_sync (b, "how a tensor was cut");
  LsTag tag = what == RECV_B ? LS_TAG_B : LS_TAG_F;
  build_whole (b, tag);
  if (what == RECV_B)
    build_whole (b, tag);
}

static uint32_t
segment_between (Lower *l, uint32_t send, uint32_t receive)
{
  bool receives_first = receive == RECV_F && send == SEND_B;
  g_autofree char *name = g_strdup_printf (
      "between passes%s%s%s%s", send == SEND_F ? " send activations" : "",
      send == SEND_B ? " send gradients" : "", receive == RECV_F ? " receive activations" : "",
      receive == RECV_B ? " receive gradients" : "");
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  if (receives_first)
    build_receive (&b, receive);
  build_send (&b, send);
  if (!receives_first)
    build_receive (&b, receive);
  return build_finish (&b, name);
}

static uint32_t
sends_after (const Pipe *p, const LsAction *a)
{
  if (a->type == LS_ACTION_F)
    return p->rank + 1 == p->shape.pp ? 0 : SEND_F;
  return p->rank == 0 ? 0 : SEND_B;
}

static uint32_t
receives_before (const Pipe *p, const LsAction *a)
{
  if (a->type == LS_ACTION_F)
    return p->rank == 0 ? 0 : RECV_F;
  return p->rank + 1 == p->shape.pp ? 0 : RECV_B;
}

void
pipe_deepspeed (Pipe *p)
{
  for (guint i = 0; i <= p->actions->len; i++) {
    const LsAction *done = i > 0 ? pipe_action (p, i - 1) : NULL, *next = pipe_action (p, i);
    uint32_t send = done ? sends_after (p, done) : 0, receive = next ? receives_before (p, next) : 0;
    const LsAction *about = done ? done : next;
    if ((send | receive) != 0)
      pipe_add (p, segment_between (p->l, send, receive), about->mb, about->chunk);
    if (next)
      pipe_add_action (p, next);
  }
}
