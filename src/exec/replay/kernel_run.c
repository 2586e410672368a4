/* exec/replay/kernel_run.c — kernels on one rank, one at a time: alone, or together with resident
 * communication as an activity that the HBM's sharing and the SMs left slow down.
 *
 * The activity moves the kernel's HBM bytes. Alone its rate is bytes / time alone;
 * with a share s of the SMs taken, bytes / (launch + max (compute / (1 - s),
 * memory)); never more than alone. A kernel without known traffic moves one unit.
 *
 * s is what communication holds from launch to end (its channels) and, while its data
 * move, what their traffic costs a compute-bound kernel besides (LsNccl.stall_per_byte).
 * Persistent GEMMs (LsGpu.persistent_gemms) launch a block for each SM, and each works through its
 * part of the tiles. If communication is resident as one starts, the blocks that find no SM wait for
 * the others to end, or for the communication: a second wave, which takes as long as the GEMM alone,
 * however few SMs are held (pytorch/pytorch issue 143988 of H100; forums.developer.nvidia.com 337991:
 * 132 blocks beside the 24 of an all-gather, 80 % of peak alone and 47 % beside). One that is there
 * first keeps its SMs. So s is
 *
 *     1 - (1 - 1/2) (1 - stall)   of a persistent GEMM that starts beside communication; if that
 *                                 is over before the first wave, the GEMM begins anew, alone
 *     margin + stall              of one that communication comes to
 *     channels + stall            of other kernels
 *
 * Where the calibration holds how GEMMs of the library were slowed down beside a resident kernel
 * (compute/around.h), that stands for the 2 of the two waves, and for the 1 that an SM which is held costs.
 *
 * GEMMs of cuBLAS 13 launch a block for each SM too, but beside a kernel that waits they took no second
 * wave: 1.37 times as long on an H200, where ones of our own with fixed parts of the tiles took 1.79 times
 * (tools/kernelbench/profiles/h200-beside-2026-11.json). So where the software has them
 * (LsStrategy.dynamic_gemms) they are slowed down as clusters are.
 *
 * On Blackwell GEMMs are as others: a persistent grid of sm_100 has all tiles, and a block that is
 * done takes over one that has not started (cluster launch control: CUDA programming guide, 4.12;
 * CUTLASS documentation, blackwell_cluster_launch_control, in whose example another kernel holds 20 of
 * 100 SMs), so that SMs which are held cost their share and no wave. That cuBLAS does so was not
 * found written; the files of those GPUs say persistent_gemms false.
 *
 * A library may tell GEMMs to leave the SMs of its communication (LsOp.has_margin): that is the margin.
 *
 * Worked example: 400 us alone. Beside communication for all of its time 800 us; if that ends after
 * 150 us, 150 + 400.
 *
 * A recorded duration may hold the slowdown by communication that ran beside the kernel when it was
 * measured, for a part b of it (LsOp.beside). So s is (1 - b) of what it would be: one that ran beside
 * communication throughout is not slowed again. It keeps that time where there is less communication.
 *
 * Communication that gets ready beside a kernel finds its SMs when blocks of that kernel end. A calibration
 * knows how long that takes (LsAround.priority_wait); then it starts, and holds SMs, so much later, or
 * behind the kernel if that ends before. So does what gets ready as a kernel begins: the next kernel of a
 * queue is there sooner than one of another stream that waits for an event. But of a persistent GEMM, whose
 * blocks end with it, the other order stays, that of the two waves above. What needs no SMs does not wait,
 * nor what comes to a GEMM that leaves it some. Where nothing was measured, nothing waits.
 *
 * Worked example. A kernel of 100 us; a collective is ready at 20 us and another at 95, priority_wait is 10
 * us: they start at 30 us and at 100.
 *
 * Deviations: the wait is that for one block beside blocks of one length, whatever the kernel. A stream
 * without priority waits longer, for all blocks of the kernel that have not started; so does one beside a
 * persistent GEMM, whose blocks end with it.
 *
 * Example: all-gathers of 4 GiB over 8 A100-40G beside GEMMs: 24 of 108 SMs and 1.6
 * bytes of HBM time per byte at 246 of 1,555 GB/s, 0.22 + 0.25 = 0.47 of the GEMM's rate;
 * measured 0.46 to 0.49 (mist_a100_40gb_overlap.csv). */
#include "exec/replay/state.h"

#include <math.h>

LsTime
kernel_time_alone (double slow, const XOp *op)
{
  return slow == 1.0 ? op->alone
                     : ls_time_from_s_up (ls_time_to_s (op->alone) * slow); /* no faster than its HBM */
}

static void
kernel_finish (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime end)
{
  r->gpu_free = end;
  rank_op_ended (x, r, frame, op, end);
}

/* The kernel meets nobody: it takes its time alone. */
void
kernel_run_alone (Run *x, Rank *r, const Candidate *c)
{
  Stream *st = &r->streams[c->stream];
  uint64_t frame = st->frame;
  uint16_t op = st->op;
  Frame *f = rank_frame (r, frame);
  LsTime alone = kernel_time_alone (r->slow, &f->seg->x[op]), end = c->start + alone;
  f->span[op] = span_add (x, r, f, op, c->start, alone, end, c->kind, c->span);
  kernel_finish (x, r, frame, op, end);
}

static bool
is_gemm (const Run *x, uint32_t kernel)
{
  int kind = x->plan->kernels[kernel].kind;
  return kind == LS_KERNEL_GEMM || kind == LS_KERNEL_BATCHED_GEMM;
}

/* Of the plan, on a kind of node: a GEMM whose blocks keep their SMs. */
static bool
kernel_is_persistent (const Run *x, const XKind *kind, uint32_t kernel)
{
  return kind->gemms == LS_GEMMS_PERSISTENT && is_gemm (x, kernel);
}

/* One of recorded duration (NO_ID) may be a GEMM or not. A persistent one may have been there first. */
double
kernel_least_lost (const Run *x, const XKind *kind, uint32_t kernel)
{
  LsGemms gemms = kind->gemms;
  if (kernel == NO_ID || is_gemm (x, kernel)) {
    double lost = gemms == LS_GEMMS_PERSISTENT
        ? 0
        : fmin (ls_around_lost (kind->around, gemms), ls_around_told (kind->around, gemms));
    return kernel == NO_ID ? fmin (lost, 1) : lost;
  }
  return 1;
}

static bool
is_persistent (const Run *x, const Rank *r, const XOp *op)
{
  return op->cost != NO_ID && kernel_is_persistent (x, r->kind, op->cost);
}

static const XOp *
running_op (Rank *r)
{
  return &rank_frame (r, r->kernel_frame)->seg->x[r->kernel_op];
}

/* Communication holds SMs that GEMMs count on. */
static bool
is_crowded (const Rank *r)
{
  return r->sm_share > r->sm_margin;
}

LsTime
kernel_lets_in (const Run *x, Rank *r, LsTime ready, bool has_margin)
{
  if (!r->is_kernel_running || ready < r->kernel_start)
    return ready;
  const XOp *running = running_op (r);
  bool was_first = ready == r->kernel_start && is_persistent (x, r, running),
       has_room = has_margin && running->cost != NO_ID && is_gemm (x, running->cost);
  return was_first || has_room ? ready : ready + r->kind->around->priority_wait;
}

/* Of the SMs that communication holds, those that were announced cost a GEMM what is measured of told
 * ones. */
static double
sms_lost (const Run *x, const Rank *r, const XOp *op)
{
  if (op->cost == NO_ID || !is_gemm (x, op->cost))
    return (double) r->sm_share;
  LsGemms gemms = r->kind->gemms;
  double told = (double) r->sm_margin * ls_around_told (r->kind->around, gemms);
  return gemms == LS_GEMMS_PERSISTENT
      ? told
      : told + (double) (r->sm_share - r->sm_margin) * ls_around_lost (r->kind->around, gemms);
}

/* Of a compute-bound kernel's rate, what communication takes; at most MOST_SHARE. */
static double
share_taken (const Run *x, const Rank *r, const XOp *op)
{
  double stall = (double) r->stall / (double) LS_COEF_ONE;
  g_assert (stall >= 0 && r->sm_margin <= r->sm_share);
  if (r->is_kernel_split)
    return fmin (1 - (1 - fmin (stall, 1)) / ls_around_waves (r->kind->around), MOST_SHARE);
  return fmin (sms_lost (x, r, op) / (double) LS_COEF_ONE + stall, MOST_SHARE);
}

/* Rate of the running kernel, in bytes/s (per second if it has no traffic), when
 * communication holds part of the SMs. */
static double
kernel_cap (Run *x, const Rank *r)
{
  Rank *m = (Rank *) r;
  const Frame *f = rank_frame (m, r->kernel_frame);
  const XOp *op = &f->seg->x[r->kernel_op];
  if (r->sm_share + r->stall == 0 && !r->is_kernel_split)
    return r->kernel.nominal_rate;
  double share = share_taken (x, r, op);
  const LsOp *said = &f->seg->ops[r->kernel_op];
  if (said->recorded != LS_TIME_NEVER) { /* nothing is known of what bounds it: take it for compute */
    double slowed = said->beside == 0 ? 0 : ls_time_to_s (said->beside) / ls_time_to_s (said->recorded);
    return r->kernel.nominal_rate
        * (1 - share * (1 - slowed)); /* communication ran beside it for that part */
  }
  LsTime beside = ls_kernel_time_beside (&r->kind->costs[op->cost], share);
  return r->kernel.nominal_rate
      * fmin (1, ls_time_to_s (r->kind->costs[op->cost].alone) / ls_time_to_s (beside));
}

void
kernel_start (Run *x, Rank *r, const Candidate *c)
{
  Stream *st = &r->streams[c->stream];
  Frame *f = rank_frame (r, st->frame);
  const XOp *op = &f->seg->x[st->op];
  LsTime alone = kernel_time_alone (r->slow, op);
  if (alone == 0) {
    kernel_run_alone (x, r, c);
    return;
  }
  g_assert (!r->is_kernel_running && c->start == x->engine.now);
  bool has_traffic
      = op->cost != NO_ID && f->seg->ops[st->op].kernel != NO_ID && x->plan->kernels[op->cost].bytes > 0;
  f->state[st->op] = OP_RUNNING;
  f->span[st->op] = span_add (x, r, f, st->op, c->start, alone, LS_TIME_NEVER, c->kind, c->span);
  st->is_busy = true;
  r->is_kernel_running = true;
  r->kernel_frame = st->frame;
  r->kernel_op = st->op;
  r->kernel_start = c->start;
  r->is_kernel_split = is_crowded (r) && is_persistent (x, r, op);
  r->kernel.remaining
      = has_traffic ? x->plan->kernels[op->cost].bytes * MAX (1, f->seg->ops[st->op].repeat) : 1.0;
  r->kernel.n_uses = has_traffic ? 1 : 0;
  r->kernel.nominal = alone;
  r->kernel.nominal_rate = r->kernel.remaining / ls_time_to_s (alone);
  r->kernel.cap = kernel_cap (x, r);
  ls_flow_add (x->net, &r->kernel);
}

static void
kernel_done (LsEvent *event, void *context)
{
  Run *x = context;
  Rank *r = (Rank *) ((char *) event - G_STRUCT_OFFSET (Rank, kernel.done));
  ls_flow_remove (x->net, &r->kernel);
  g_assert (r->is_kernel_running && event->at > r->kernel_start);
  r->is_kernel_running = false;
  Frame *f = rank_frame (r, r->kernel_frame);
  LsSpan *span = span_at (r, f->span[r->kernel_op]);
  if (span)
    span->end = event->at;
  kernel_finish (x, r, r->kernel_frame, r->kernel_op, event->at);
  rank_ready (x, r);
}

void
kernel_init (Run *x, Rank *r)
{
  ls_flow_init (&r->kernel, kernel_done);
  r->kernel.uses = &r->kernel_use;
  LsLoad load = { ls_cluster_hbm_resource (x->cluster, ls_plan_gpu (x->plan, r->id)), LS_COEF_ONE };
  run_uses (x, &load, 1, whole_n_of_rank (x->whole, r->id), &r->kernel_use);
}

static void
kernel_recap (Run *x, Rank *r)
{
  if (r->is_kernel_running)
    ls_flow_set_cap (x->net, &r->kernel, kernel_cap (x, r));
}

/* Communication is over before the first wave of blocks: the second has all of its time before it. */
static void
kernel_begin_anew (Run *x, Rank *r)
{
  if (!r->is_kernel_running || !r->is_kernel_split || is_crowded (r))
    return;
  LsTime alone = kernel_time_alone (r->slow, running_op (r));
  if (x->engine.now >= r->kernel_start + alone)
    return;
  r->is_kernel_split = false;
  ls_flow_remove (x->net, &r->kernel);
  r->kernel.nominal = alone;
  r->kernel.remaining = r->kernel.nominal_rate * ls_time_to_s (alone);
  r->kernel.cap = kernel_cap (x, r);
  ls_flow_add (x->net, &r->kernel);
}

void
kernel_residency (Run *x, Rank *r, const LsOp *op, uint64_t sm_share, int sign)
{
  g_assert (sign > 0 || (r->n_resident > 0 && r->sm_share >= sm_share));
  g_assert (sign > 0 || !op->has_margin || r->sm_margin >= sm_share);
  r->n_resident = (uint32_t) ((int64_t) r->n_resident + sign);
  r->sm_share = sign > 0 ? r->sm_share + sm_share : r->sm_share - sm_share;
  if (op->has_margin)
    r->sm_margin = sign > 0 ? r->sm_margin + sm_share : r->sm_margin - sm_share;
  if (sign > 0 && r->is_kernel_running && x->engine.now == r->kernel_start && is_crowded (r))
    r->is_kernel_split
        = is_persistent (x, r, running_op (r)); /* launched before it, as an asynchronous collective is */
  kernel_begin_anew (x, r);
  kernel_recap (x, r);
}

void
kernel_stall (Run *x, Rank *r, uint64_t stall, int sign)
{
  g_assert (sign > 0 || r->stall >= stall);
  r->stall = sign > 0 ? r->stall + stall : r->stall - stall;
  kernel_recap (x, r);
}
