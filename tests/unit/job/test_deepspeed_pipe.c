/* Pins DeepSpeed beyond ZeRO on the GPU: its pipeline, and what it offloads. */
#include "dp_timeline.h"

/* Pins DeepSpeed's pipeline: what stands between passes and in which order, bytes of slices; a host
 * that waits for each launch; fp32 gradients of its bf16 optimizer. Jobs of the tiny model on one
 * made-up node. */

#define TWO "--gpus 4 --tp 2 --pp 2 --global-batch 3 --p2p deepspeed --grad-norm 0 --fold off "

/* What rank 0 does in the window but for kernels of passes: transfers, gathers and copies of the boundary, by
 * their start. */
static char *
between (const DpRun *r)
{
  static const char *const initials[][2] = {
    { "send activations", "S" },    { "receive gradients", "R" }, { "boundary-zeros", "z" },
    { "boundary all-gather", "g" }, { "boundary-copy-out", "o" }, { "boundary-clone", "c" },
  };
  GString *out = g_string_new (NULL);
  g_autoptr (GPtrArray) spans = dp_spans (r);
  for (guint i = 0; i < spans->len; i++)
    for (guint k = 0; k < G_N_ELEMENTS (initials); k++)
      if (strcmp (dp_name (r, spans->pdata[i]), initials[k][0]) == 0)
        g_string_append (out, initials[k][1]);
  return g_string_free (out, FALSE);
}

/* F0 F1 B0 F2 B1 B2 on the first stage. A backward gathers its output and its gradient. */
static void
the_first_stage_sends_then_receives_and_gathers_twice (void)
{
  DpRun r = dp_run (TWO, dp_untied);
  if (r.result) {
    g_autofree char *text = between (&r);
    LS_CHECK_STR (text,
                  "S"
                  "SRzgoczgoc"
                  "SRzgoczgoc"
                  "Rzgoczgoc");
  }
  dp_clear (&r);
}

static double
p2p_bytes (const char *flags)
{
  DpRun r = dp_run (flags, dp_untied);
  double bytes = 0;
  for (uint32_t p = 0; r.result && p < 2; p++) {
    const LsPlan *plan = r.result->plan;
    const LsProgram *program = &plan->programs[p];
    for (uint32_t i = 0; i < program->n_instances; i++) {
      const LsSegment *s = &plan->segments[program->instances[i].segment];
      for (uint32_t o = 0; o < s->n_ops; o++)
        for (uint16_t t = 0; s->ops[o].kind == LS_OP_P2P && t < s->ops[o].n_transfers; t++)
          bytes += s->ops[o].transfers[t].is_send ? (double) s->ops[o].transfers[t].bytes : 0;
    }
  }
  dp_clear (&r);
  return bytes;
}

/* Three micro-batches there and back, half of [seq, hidden] of 2 bytes. */
static void
slices_are_sent (void)
{
  DpRun r = dp_run (TWO, dp_untied);
  double whole = 2.0 * r.model.seq * r.model.hidden;
  dp_clear (&r);
  LS_CHECK_DOUBLE (p2p_bytes (TWO), ==, 6 * whole / 2);
  LS_CHECK_DOUBLE (p2p_bytes ("--gpus 2 --pp 2 --global-batch 3 --p2p deepspeed --grad-norm 0"), ==,
                   6 * whole);
}

/* Only where samples and labels are needed; a middle stage reads none. */
static void
first_and_last_stages_read_batches (void)
{
  DpRun r = dp_run (
      "--gpus 4 --pp 4 --global-batch 4 --p2p deepspeed --batch-sync 1 --grad-norm 0 --fold off", dp_untied);
  for (uint32_t p = 0; r.result && p < 4; p++) {
    const LsPlan *plan = r.result->plan;
    guint n = 0;
    for (uint32_t i = 0; i < plan->programs[p].n_instances; i++) {
      const LsSegment *s = &plan->segments[plan->programs[p].instances[i].segment];
      for (uint32_t o = 0; o < s->n_ops; o++)
        n += s->ops[o].host == LS_HOST_BATCH;
    }
    LS_CHECK_INT (n, ==, p == 0 || p == 3 ? 4 : 0);
  }
  dp_clear (&r);
}

/* The device then waits for each launch, and for the host to notice the end of the one before. */
static void
a_blocked_host_adds_its_costs_to_each_op (void)
{
#define ONE "--gpus 1 --global-batch 2 --grad-norm 0 --fold off "
  DpRun plain = dp_run (ONE "--host-launch 0us --host-sync 0us", dp_untied);
  DpRun blocked = dp_run (ONE "--host-launch 3us --host-sync 4us --launch-blocking 1", dp_untied);
  if (plain.result && blocked.result) {
    const LsTimeline *a = plain.result->timeline, *b = blocked.result->timeline;
    g_autoptr (GPtrArray) spans = dp_spans (&plain);
    guint n = 0;
    for (guint i = 0; i < spans->len; i++)
      n += dp_op (&plain, spans->pdata[i])->kind == LS_OP_KERNEL;
    LS_CHECK_INT (b->window_end - b->window_start, ==,
                  a->window_end - a->window_start + (int64_t) n * 7 * LS_US);
  }
  dp_clear (&plain);
  dp_clear (&blocked);
}

/* Pins ZeRO-Offload and ZeRO-Infinity of DeepSpeed: what is copied to and from the host and drives, when, and who
 * shares the way. */

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
    if (c.bytes[op->direction] == 0)
      c.first[op->direction] = s->start;
    c.bytes[op->direction] += op->bytes;
    c.time[op->direction] += s->end - s->start;
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

LS_TEST_SUITE (LS_TEST (the_first_stage_sends_then_receives_and_gathers_twice), LS_TEST (slices_are_sent),
               LS_TEST (first_and_last_stages_read_batches),
               LS_TEST (a_blocked_host_adds_its_costs_to_each_op), LS_TEST (one_gpu_offloads_its_optimizer),
               LS_TEST (ranks_share_the_memory_of_their_socket), LS_TEST (sums_of_gradients_come_and_go),
               LS_TEST (drives_hold_parameters_and_states))
