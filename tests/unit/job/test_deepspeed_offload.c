/* Pins ZeRO-Offload and ZeRO-Infinity of DeepSpeed: what is copied to and from the host and drives, when, and who
 * shares the way. */
#include "dp_timeline.h"

#define N 8

typedef struct {
  uint64_t bytes[LS_N_COPY_DIRECTIONS];
  LsTime first[LS_N_COPY_DIRECTIONS], time[LS_N_COPY_DIRECTIONS];
} Copied;

static Copied
copies_of (const DpRun *r)
{
  Copied c = { .first = { 0 } };
  g_autoptr (GPtrArray) spans = dp_spans (r);
  for (guint i = 0; i < spans->len; i++) {
    const LsSpan *s = spans->pdata[i];
    const LsOp *op = dp_op (r, s);
    if (op->kind != LS_OP_COPY)
      continue;
    if (c.bytes[op->root] == 0)
      c.first[op->root] = s->start;
    c.bytes[op->root] += op->bytes;
    c.time[op->root] += s->end - s->start;
  }
  return c;
}

/* 2 sockets of 100 GB/s; 42 bytes per parameter with clipping, 34 without. */
#define SOCKET 100e9

static void
one_gpu_offloads_its_optimizer (void)
{
  DpRun r = dp_run ("--gpus 1 --offload optimizer --fold off --global-batch 1 --reduce-bucket 4200000",
                    dp_untied);
  if (r.result) {
    uint64_t n = dp_n_params (&r);
    Copied c = copies_of (&r);
    LS_CHECK_INT (c.bytes[LS_COPY_TO_HOST], ==, 4 * n);
    LS_CHECK_INT (c.bytes[LS_COPY_TO_DEVICE], ==, 2 * n);
    LS_CHECK_INT (c.bytes[LS_COPY_IN_HOST], ==, 42 * n);
    LS_CHECK_NEAR (ls_time_to_s (c.time[LS_COPY_IN_HOST]), 42 * (double) n / SOCKET, 1e-6);
    LS_CHECK_INT (c.first[LS_COPY_TO_HOST], <, c.first[LS_COPY_IN_HOST]);
    LS_CHECK_INT (r.result->plan->programs[0].static_bytes[LS_MEM_OPTIMIZER], ==, 0);
    LS_CHECK_INT (r.result->plan->programs[0].static_bytes[LS_MEM_GRADIENTS], ==, 0);
    LS_CHECK_INT (r.result->plan->programs[0].static_bytes[LS_MEM_PARAMETERS], ==, 2 * n);
  }
  dp_clear (&r);
}

/* Eight parts; four ranks share the memory of a socket. */
static void
ranks_share_the_memory_of_their_socket (void)
{
  DpRun r = dp_run ("--gpus 8 --offload optimizer --grad-norm 0 --fold off --global-batch 8", dp_untied);
  if (r.result) {
    double n = (double) dp_n_params (&r) / N;
    Copied c = copies_of (&r);
    LS_CHECK_NEAR (ls_time_to_s (c.time[LS_COPY_IN_HOST]), 34 * n / (SOCKET / 4), 1e-3);
  }
  dp_clear (&r);
}

/* Two micro-batches: the first sum leaves in 16 bits and comes back, the second leaves in 32. */
static void
sums_of_gradients_come_and_go (void)
{
  DpRun r = dp_run ("--gpus 8 --offload optimizer --fold off --global-batch 16", dp_untied);
  if (r.result) {
    uint64_t n = dp_n_params (&r) / N;
    Copied c = copies_of (&r);
    LS_CHECK_INT (c.bytes[LS_COPY_TO_HOST], ==, (2 + 4) * n);
    LS_CHECK_INT (c.bytes[LS_COPY_TO_DEVICE], ==, (2 + 2) * n);
  }
  dp_clear (&r);
}

/* Infinity: parameters are read for the forward and for the backward, and written once. */
static void
drives_hold_parameters_and_states (void)
{
  DpRun r = dp_run ("--gpus 8 --offload parameters --offload-to nvme --fold off --global-batch 8 "
                    "--persistence-threshold 1 --max-reuse-distance 0 --prefetch-bucket 1",
                    dp_untied);
  if (r.result) {
    uint64_t n = dp_n_params (&r) / N;
    Copied c = copies_of (&r);
    LS_CHECK_INT (c.bytes[LS_COPY_FROM_NVME], ==, (2 * 2 + 16) * n);
    LS_CHECK_INT (c.bytes[LS_COPY_TO_NVME], ==, (4 + 12 + 2) * n);
    LS_CHECK_INT (c.bytes[LS_COPY_TO_HOST] + c.bytes[LS_COPY_TO_DEVICE], ==, 0);
    LS_CHECK_INT (r.result->plan->programs[0].static_bytes[LS_MEM_PARAMETERS], ==, 0);
  }
  dp_clear (&r);
}

LS_TEST_SUITE (LS_TEST (one_gpu_offloads_its_optimizer), LS_TEST (ranks_share_the_memory_of_their_socket),
               LS_TEST (sums_of_gradients_come_and_go), LS_TEST (drives_hold_parameters_and_states))
