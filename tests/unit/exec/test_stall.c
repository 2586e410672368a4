/* Pins what communication costs beside kernels: SMs and memory, and waits that a calibration has measured. */
#include "ls_test.h"
#include "hand_trace.h"

#include <math.h>

#include "exec/shortcuts/plan_bound.h"
#include "exec/replay/state.h"

/* Pins: what communication costs a compute-bound kernel beside it. The SMs of its channels from launch to
 * end, waiting for partners included; and while its data move the time of the HBM for stall_per_byte bytes
 * per byte of the array, twice for all-reduce; nothing before and after; nothing for copy engines. A
 * persistent GEMM that starts beside communication runs in two waves, unless it was told to leave its SMs.
 * What a calibration has measured of that stands for the two waves and for the one SM that each costs, of
 * the library's way only. A measured time that holds the slowdown is not slowed again. No bound exceeds the
 * step. */

#define BYTES  (UINT64_C (256) << 20)
#define KERNEL (20 * LS_MS)

static const uint32_t both[] = { 0, 1 };

static LsAround around; /* of the calibration */
static bool is_dynamic; /* so are GEMMs of the software */

typedef enum { PLAIN, PERSISTENT, PERSISTENT_WITH_MARGIN } Gemm;

/* Of the same time, and with so little traffic that HBM does not matter. */
static void
make_gemm (Hand *h, uint16_t kernel, uint16_t collective, Gemm gemm)
{
  LsKernel shape = ls_kernel_gemm ("gemm", LS_DTYPE_FP16, 64, 64, 64, 1, 2, false);
  shape.bytes = 1;
  g_array_append_val (h->kernels, shape);
  g_array_index (h->ops[0], LsOp, kernel).kernel = 0;
  g_array_index (h->ops[0], LsOp, collective).has_margin = gemm == PERSISTENT_WITH_MARGIN;
  h->cluster->spec.gpu.persistent_gemms = gemm != PLAIN;
}

/* When a kernel of rank 0 ends, of a run that no bound exceeds. Frees h. */
static LsTime
end_of (Hand *h, uint16_t kernel)
{
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime end = LS_TIME_NEVER,
         least = ls_plan_bound (h->plan, h->cluster, &h->calibration, &h->nccl, &h->options);
  LS_CHECK_INT (least, <=, t->window_end - t->window_start);
  for (uint32_t i = 0; i < t->ranks[0].n; i++)
    if (t->ranks[0].spans[i].step == 0 && t->ranks[0].spans[i].op == kernel)
      end = t->ranks[0].spans[i].end;
  g_clear_pointer (&t, ls_timeline_free);
  hand_free (h);
  return end;
}

/* When the kernel of rank 0 ends that begins together with a collective; rank 1 joins
 * the collective late. */
static LsTime
kernel_end (LsCollKind kind, Gemm gemm, double stall_per_byte, LsTime late, LsTime *ret_latency,
            LsTime *ret_moving, double *ret_share)
{
  Hand *h = hand_new (2);
  h->nccl.stall_per_byte = stall_per_byte;
  h->calibration.around = around;
  h->calibration.dynamic_gemms = is_dynamic;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, both, 2);
  if (late > 0)
    hand_kernel (h, 1, LS_TAG_F, late);
  uint16_t collective = hand_async (h, 0, LS_SLOT_TP, LS_STREAM_TP, (int) kind, BYTES);
  hand_join (h, 0, collective);
  g_array_set_size (h->next_deps[0], 0); /* the kernel does not wait for it */
  uint16_t kernel = hand_kernel (h, 0, LS_TAG_F, KERNEL);
  make_gemm (h, kernel, collective, gemm);
  hand_sync (h, 1, LS_SLOT_TP, LS_STREAM_TP, (int) kind, BYTES);
  hand_kernel (h, 1, LS_TAG_F, KERNEL);

  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollRequest request = { .kind = kind, .gpus = both, .n = 2, .bytes = BYTES };
  LsCollPlan *plan = ls_coll_plan (h->cluster, &h->nccl, &request, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (plan->n_phases, ==, 1);
  *ret_latency = plan->phases[0].latency;
  *ret_moving = ls_coll_time_alone (h->cluster, plan) - *ret_latency;
  *ret_share = plan->sm_share;

  return end_of (h, kernel);
}

static void
check (LsCollKind kind, double passes, double stall_per_byte, LsTime late)
{
  LsTime latency, moving;
  double share;
  LsTime end = kernel_end (kind, PLAIN, stall_per_byte, late, &latency, &moving, &share);
  LsClusterSpec spec = tiny_dgx (1);
  double stall_s = stall_per_byte * passes * (double) BYTES / spec.gpu.hbm_bytes_per_s;
  double resident_s = ls_time_to_s (late + latency + moving);
  double expected_s = ls_time_to_s (KERNEL) + share * resident_s + stall_s;
  LS_CHECK (share > 0 && stall_s < ls_time_to_s (moving) * (1 - share) && resident_s < ls_time_to_s (KERNEL));
  LS_CHECK_NEAR (ls_time_to_s (end), expected_s, 1e-6);
}

static void
moving_data_stall_a_kernel (void)
{
  check (LS_COLL_ALL_GATHER, 1, 0, 0);
  check (LS_COLL_ALL_GATHER, 1, 1.6, 0);
  check (LS_COLL_REDUCE_SCATTER, 1, 1.6, 0);
  check (LS_COLL_ALL_REDUCE, 2, 1.6, 0);
}

static void
waiting_costs_only_the_sms (void)
{
  check (LS_COLL_ALL_GATHER, 1, 1.6, 5 * LS_MS);
}

/* The kernel of rank 0, whose recorded time holds the slowdown of so much communication. */
static LsTime
recorded_end (LsTime beside)
{
  Hand *h = hand_new (2);
  h->nccl.stall_per_byte = 1.6;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, both, 2);
  hand_async (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, BYTES);
  uint16_t kernel = hand_kernel (h, 0, LS_TAG_F, KERNEL);
  g_array_index (h->ops[0], LsOp, kernel).beside = beside;
  hand_sync (h, 1, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, BYTES);
  hand_kernel (h, 1, LS_TAG_F, KERNEL);
  return end_of (h, kernel);
}

/* Measured beside communication throughout, a kernel takes that time; measured beside it for half of its
 * time, half of what communication takes comes on top. */
static void
a_measured_slowdown_is_not_added_again (void)
{
  LsTime plain = recorded_end (0), half = recorded_end (KERNEL / 2), all = recorded_end (KERNEL);
  LS_CHECK_INT (plain, >, KERNEL + KERNEL / 100);
  LS_CHECK_INT (all, ==, KERNEL);
  LS_CHECK_NEAR ((double) (half - all), (double) (plain - all) / 2, 0.2);
}

/* Copy engines hold no SMs. They reach the GPUs of their host: across hosts it is a permute. */
static void
copy_engines_stall_nobody (void)
{
  LsClusterSpec spec = tiny_dgx (2);
  g_autoptr (LsCluster) cluster = ls_cluster_build (&spec, NULL);
  Hand *h = hand_new (1);
  h->nccl.stall_per_byte = 1.6;
  const Run x = { .cluster = cluster, .nccl = &h->nccl };
  for (int is_far = 0; is_far < 2; is_far++) {
    uint64_t stall[2];
    for (int is_copy = 0; is_copy < 2; is_copy++) {
      g_autoptr (LsArena) arena = ls_arena_new ();
      const uint32_t gpus[] = { 0, is_far ? cluster->n_gpus - 1 : 1 };
      LsCollRequest request = {
        .kind = is_copy ? LS_COLL_COPY_PERMUTE : LS_COLL_PERMUTE, .gpus = gpus, .n = 2, .bytes = BYTES
      };
      stall[is_copy] = call_stall (&x, (CallKey) { .kind = (uint8_t) request.kind, .bytes = BYTES }, &request,
                                   ls_coll_plan (cluster, &h->nccl, &request, LS_NETWORK_FLOW, arena));
    }
    LS_CHECK_INT (stall[0], >, 0);
    LS_CHECK_INT (stall[1], ==, is_far ? stall[0] : 0);
  }
  hand_free (h);
}

/* 20 ms beside a collective: it waits for that to end, or for its own first blocks. */
static void
a_persistent_gemm_needs_two_waves (void)
{
  for (LsTime late = 0; late <= 30 * LS_MS; late += 30 * LS_MS) {
    LsTime latency, moving;
    double share;
    LsTime end = kernel_end (LS_COLL_ALL_GATHER, PERSISTENT, 0, late, &latency, &moving, &share);
    double waits_s = fmin (ls_time_to_s (late + latency + moving), ls_time_to_s (KERNEL));
    LS_CHECK_NEAR (ls_time_to_s (end), waits_s + ls_time_to_s (KERNEL), 1e-6);
    end = kernel_end (LS_COLL_ALL_GATHER, PERSISTENT_WITH_MARGIN, 0, 0, &latency, &moving, &share);
    LS_CHECK_NEAR (ls_time_to_s (end), ls_time_to_s (KERNEL) + share * ls_time_to_s (latency + moving), 1e-6);
  }
}

/* Of a GEMM that begins beside a collective: how long it takes more, over the share of the SMs times how
 * long that is there. */
static double
lost (Gemm gemm)
{
  LsTime latency, moving;
  double share;
  LsTime end = kernel_end (LS_COLL_ALL_GATHER, gemm, 0, 0, &latency, &moving, &share);
  return ls_time_to_s (end - KERNEL) / (share * ls_time_to_s (latency + moving));
}

static void
what_was_measured_beside_a_kernel_is_used (void)
{
  LsTime latency, moving;
  double share;
  around = (LsAround) { .waves = 3 };
  LsTime end = kernel_end (LS_COLL_ALL_GATHER, PERSISTENT, 0, 30 * LS_MS, &latency, &moving, &share);
  LS_CHECK_NEAR (ls_time_to_s (end), 3 * ls_time_to_s (KERNEL), 1e-6);
  LS_CHECK_NEAR (lost (PLAIN), 1, 1e-3);

  around = (LsAround) { .gemms = LS_GEMMS_CLUSTERS, .lost_clusters = 2, .lost_tiles = 3, .lost_told = 2.5 };
  LS_CHECK_NEAR (lost (PLAIN), 2, 1e-3);
  LS_CHECK_NEAR (lost (PERSISTENT), 2, 1e-3); /* whatever the GPU's file says */
  LS_CHECK_NEAR (lost (PERSISTENT_WITH_MARGIN), 2.5, 1e-3);
  around.gemms = LS_GEMMS_TILES;
  LS_CHECK_NEAR (lost (PERSISTENT), 3, 1e-3);
  around.gemms = LS_GEMMS_PERSISTENT;
  LS_CHECK_NEAR (lost (PERSISTENT_WITH_MARGIN), 2.5, 1e-3);
  around = (LsAround) { 0 };
}

/* Pins: persistent GEMMs of a software whose blocks fetch their next tile take no second wave, but lose SMs as
 * clusters do, told of them or not; what was measured of the library goes before. */
static void
dynamic_gemms_take_no_second_wave (void)
{
  is_dynamic = true;
  LS_CHECK_NEAR (lost (PERSISTENT), 1, 1e-3);
  around = (LsAround) { .lost_clusters = 1.5, .lost_tiles = 3 };
  LS_CHECK_NEAR (lost (PERSISTENT), 1.5, 1e-3);
  LS_CHECK_NEAR (lost (PERSISTENT_WITH_MARGIN), 1.5, 1e-3);
  LS_CHECK_NEAR (lost (PLAIN), 3, 1e-3);
  around.lost_told = 1.25;
  LS_CHECK_NEAR (lost (PERSISTENT_WITH_MARGIN), 1.25, 1e-3);
  around.gemms = LS_GEMMS_TILES;
  LS_CHECK_NEAR (lost (PERSISTENT), 3, 1e-3);
  is_dynamic = false;
  around = (LsAround) { 0 };
}

/* Pins: what waits where a calibration has measured it, and nothing where it has not. Communication that gets
 * ready beside a kernel, or as one begins, starts so much later, or behind the kernel; not what needs no SMs,
 * what comes to a GEMM that leaves it some, or what is there as a persistent GEMM begins. Copies to and from
 * the host that go both ways at once share the link. Bounds stay below the step. */

#define WAITS_BYTES  (UINT64_C (1) << 20)
#define WAITS_KERNEL (100 * LS_US)

static const uint32_t waits_both[] = { 0, 1 };

static LsTimeline *
run_bounded (Hand *h)
{
  h->options.fold = h->options.coarsen = LS_SHORTCUT_CHECK;
  LsTimeline *t = hand_run (h);
  if (t)
    LS_CHECK_INT (ls_plan_bound (h->plan, h->cluster, &h->calibration, &h->nccl, &h->options), <=,
                  t->window_end - t->window_start);
  return t;
}

static const LsSpan *
span_of (const LsTimeline *t, uint32_t rank, uint16_t op)
{
  for (uint32_t i = 0; t && i < t->ranks[rank].n; i++)
    if (t->ranks[rank].spans[i].op == op && t->ranks[rank].spans[i].step == 0)
      return &t->ranks[rank].spans[i];
  return NULL;
}

static LsTime
start_of (const LsTimeline *t, uint16_t op)
{
  const LsSpan *s = span_of (t, 0, op);
  return s ? s->start : LS_TIME_NEVER;
}

/* --- communication beside a kernel -------------------------------------------------------- */

typedef enum { COLLECTIVE, SEND } What;
typedef enum { RECORDED, GEMM, GEMM_LEAVES_SOME } Beside;

/* Two ranks, each with a kernel from 0 on and communication that the host issues at `issued`, which the next
 * kernel waits for. */
static Hand *
beside_a_kernel (What what, LsTime issued, LsTime wait, uint16_t *ret_op)
{
  Hand *h = hand_new (2);
  h->calibration.around.priority_wait = wait;
  h->options.host.cost[LS_HOST_COMM] = issued;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, waits_both, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, WAITS_KERNEL);
    if (what == COLLECTIVE)
      *ret_op = hand_async (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, WAITS_BYTES);
    else
      *ret_op = hand_p2p (h, r, r == 0 ? LS_SLOT_NEXT : LS_SLOT_PREV, r == 0, WAITS_BYTES);
    g_array_index (h->ops[r], LsOp, *ret_op).n_deps = 0;
    hand_join (h, r, *ret_op);
    hand_kernel (h, r, LS_TAG_F, WAITS_KERNEL);
  }
  return h;
}

static void
waits_make_gemm (Hand *h, uint16_t op, Beside beside)
{
  LsKernel shape = ls_kernel_gemm ("gemm", LS_DTYPE_FP16, 64, 64, 64, 1, 2, false);
  g_array_append_val (h->kernels, shape);
  for (uint32_t r = 0; r < 2; r++) {
    g_array_index (h->ops[r], LsOp, 0).kernel = 0;
    g_array_index (h->ops[r], LsOp, op).has_margin = beside == GEMM_LEAVES_SOME;
  }
}

static LsTime
starts_at (What what, Beside beside, LsTime issued, LsTime wait, double sm_share)
{
  uint16_t op;
  Hand *h = beside_a_kernel (what, issued, wait, &op);
  h->nccl.sm_share_per_channel = sm_share;
  if (beside != RECORDED)
    waits_make_gemm (h, op, beside);
  g_autoptr (LsTimeline) t = run_bounded (h);
  LsTime start = start_of (t, op);
  g_clear_pointer (&t, ls_timeline_free);
  hand_free (h);
  return start;
}

static void
communication_waits_for_the_blocks_of_a_kernel (void)
{
  for (What what = COLLECTIVE; what <= SEND; what++) {
    LS_CHECK_INT (starts_at (what, RECORDED, 20 * LS_US, 0, 1.0 / 32), ==, 20 * LS_US);
    LS_CHECK_INT (starts_at (what, RECORDED, 20 * LS_US, 10 * LS_US, 1.0 / 32), ==, 30 * LS_US);
    LS_CHECK_INT (starts_at (what, RECORDED, 95 * LS_US, 10 * LS_US, 1.0 / 32), ==, WAITS_KERNEL);
    LS_CHECK_INT (starts_at (what, RECORDED, 20 * LS_US, LS_S, 1.0 / 32), ==, WAITS_KERNEL);
    LS_CHECK_INT (starts_at (what, RECORDED, WAITS_KERNEL + 5 * LS_US, 10 * LS_US, 1.0 / 32), ==,
                  WAITS_KERNEL + 5 * LS_US); /* nothing runs */
    LS_CHECK_INT (starts_at (what, RECORDED, 20 * LS_US, 10 * LS_US, 0), ==, 20 * LS_US);
    LS_CHECK_INT (starts_at (what, GEMM, 20 * LS_US, 10 * LS_US, 1.0 / 32), ==, 30 * LS_US);
    LS_CHECK_INT (starts_at (what, GEMM_LEAVES_SOME, 20 * LS_US, 10 * LS_US, 1.0 / 32), ==, 20 * LS_US);
  }
}

/* A kernel, and then at once another one and a collective: who is there first. */
static LsTime
starts_with_a_kernel (bool is_persistent, LsTime wait, LsTime *ret_kernel_end)
{
  Hand *h = hand_new (2);
  h->calibration.around.priority_wait = wait;
  h->cluster->spec.gpu.persistent_gemms = is_persistent;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, waits_both, 2);
  uint16_t collective = 0, kernel = 0;
  LsKernel shape = ls_kernel_gemm ("gemm", LS_DTYPE_FP16, 64, 64, 64, 1, 2, false);
  shape.bytes = 1;
  g_array_append_val (h->kernels, shape);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, WAITS_KERNEL);
    collective = hand_async (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 64 * WAITS_BYTES);
    kernel = hand_kernel (h, r, LS_TAG_F, WAITS_KERNEL);
    g_array_index (h->ops[r], LsOp, kernel).kernel = 0;
    hand_join (h, r, collective);
    hand_kernel (h, r, LS_TAG_F, WAITS_KERNEL);
  }
  g_autoptr (LsTimeline) t = run_bounded (h);
  LsTime start = start_of (t, collective);
  const LsSpan *s = span_of (t, 0, kernel);
  *ret_kernel_end = s ? s->end : 0;
  g_clear_pointer (&t, ls_timeline_free);
  hand_free (h);
  return start;
}

static void
the_next_kernel_of_a_queue_is_there_first (void)
{
  LsTime end, end_before;
  LS_CHECK_INT (starts_with_a_kernel (false, 0, &end_before), ==, WAITS_KERNEL);
  LS_CHECK_INT (starts_with_a_kernel (false, 10 * LS_US, &end), ==, WAITS_KERNEL + 10 * LS_US);
  LS_CHECK_INT (end, <, end_before); /* it had its SMs to itself for as long */
  LS_CHECK_INT (starts_with_a_kernel (true, 0, &end_before), ==, WAITS_KERNEL);
  LS_CHECK_INT (starts_with_a_kernel (true, 10 * LS_US, &end), ==, WAITS_KERNEL);
  LS_CHECK_INT (end, ==, end_before); /* two waves, whatever is measured */
}

/* The step of the first job by its wait: never shorter for a longer one, but for what kernels notice, and the
 * same once it is longer than a kernel. */
static void
a_longer_wait_is_no_shorter_step (void)
{
  for (What what = COLLECTIVE; what <= SEND; what++) {
    LsTime last = 0, first = 0;
    uint64_t digest = 0;
    for (LsTime wait = 0; wait <= 2 * WAITS_KERNEL; wait += 10 * LS_US) {
      uint16_t op;
      Hand *h = beside_a_kernel (what, 20 * LS_US, wait, &op);
      h->nccl.sm_share_per_channel = 1e-6; /* kernels do not notice */
      g_autoptr (LsTimeline) t = run_bounded (h);
      if (t) {
        LsTime step = t->window_end - t->window_start;
        LS_CHECK_INT (step, >=, last - WAITS_KERNEL / 100000);
        if (wait > WAITS_KERNEL + 10 * LS_US)
          LS_CHECK (t->digest == digest);
        first = wait == 0 ? step : first;
        last = step;
        digest = t->digest;
      }
      g_clear_pointer (&t, ls_timeline_free);
      hand_free (h);
    }
    LS_CHECK_INT (last, >, first);
  }
}

/* What is not measured is a run without any of it, to the digest. */
static void
nothing_measured_changes_nothing (void)
{
  uint64_t digest[2];
  for (int is_one = 0; is_one < 2; is_one++) {
    uint16_t op;
    Hand *h = beside_a_kernel (COLLECTIVE, 20 * LS_US, 0, &op);
    if (is_one)
      h->calibration.around.copy_duplex = h->calibration.around.streams_in_layer = 1;
    g_autoptr (LsTimeline) t = run_bounded (h);
    digest[is_one] = t ? t->digest : (uint64_t) is_one;
    g_clear_pointer (&t, ls_timeline_free);
    hand_free (h);
  }
  LS_CHECK (digest[0] == digest[1]);
}

/* --- copies waits_both ways ------------------------------------------------------------------------ */

static uint16_t
copy (Hand *h, uint32_t rank, LsStream stream, LsCopyDirection direction, uint64_t bytes)
{
  LsOp op = ls_op_blank (LS_OP_COPY, stream, LS_TAG_SYNC, "copy");
  op.direction = (uint8_t) direction;
  op.bytes = bytes;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE }; /* behind the step before */
  return hand_op (h, rank, op, &compute, 1);
}

/* When copies of the second rank that begin together end, one to the device, the other to the host; 0 bytes: there
 * is none. */
static void
copies_end (double duplex, LsNetworkFidelity network, uint64_t in_bytes, uint64_t out_bytes,
            double ret_end_s[2])
{
  Hand *h = hand_new (2);
  h->calibration.around.copy_duplex = duplex;
  h->options.network = network;
  uint16_t op[2] = { 0 };
  if (in_bytes > 0)
    op[0] = copy (h, 1, LS_STREAM_COPY_IN, LS_COPY_TO_DEVICE, in_bytes);
  if (out_bytes > 0)
    op[1] = copy (h, 1, LS_STREAM_COPY, LS_COPY_TO_HOST, out_bytes);
  for (int i = 0; i < 2; i++)
    if ((i == 0 ? in_bytes : out_bytes) > 0)
      hand_join (h, 1, op[i]);
  for (uint32_t r = 0; r < 2; r++)
    hand_kernel (h, r, LS_TAG_F, LS_US);
  g_autoptr (LsTimeline) t = run_bounded (h);
  for (int i = 0; i < 2; i++) {
    const LsSpan *s = span_of (t, 1, op[i]);
    ret_end_s[i] = s ? ls_time_to_s (s->end) : -1;
  }
  g_clear_pointer (&t, ls_timeline_free);
  hand_free (h);
}

static void
copies_both_ways_share_the_link (void)
{
  const uint64_t n = UINT64_C (1) << 32;
  double alone[2], none[2], one[2], some[2], uneven[2], past[2];
  copies_end (0, LS_NETWORK_FLOW, n, n, none);
  copies_end (1, LS_NETWORK_FLOW, n, n, one);
  copies_end (0.8, LS_NETWORK_FLOW, n, 0, alone);
  LS_CHECK (none[0] == one[0] && none[1] == one[1] && none[0] == alone[0]);
  copies_end (0.8, LS_NETWORK_FLOW, n, n, some);
  LS_CHECK_NEAR (some[0], alone[0] / 0.8, 1e-4);
  LS_CHECK_NEAR (some[1], some[0], 1e-4);
  copies_end (0.8, LS_NETWORK_FLOW, n, n / 2, uneven); /* the rest of the longer one has the link to itself */
  LS_CHECK_NEAR (uneven[1], alone[0] / 2 / 0.8, 1e-4);
  LS_CHECK_NEAR (uneven[0], alone[0] / 2 / 0.8 + alone[0] * 0.5, 1e-4);
  copies_end (0.5, LS_NETWORK_FLOW, n, n, past); /* no better than one behind the other */
  LS_CHECK_NEAR (past[0], 2 * alone[0], 1e-4);
  for (int network = 0; network < 2; network++) {
    double same[2];
    copies_end (0.8, network == 0 ? LS_NETWORK_STEP : LS_NETWORK_ALPHABETA, n, n / 2, same);
    LS_CHECK (same[0] == uneven[0] && same[1] == uneven[1]);
  }
}

LS_TEST_SUITE (LS_TEST (what_was_measured_beside_a_kernel_is_used),
               LS_TEST (dynamic_gemms_take_no_second_wave), LS_TEST (moving_data_stall_a_kernel),
               LS_TEST (waiting_costs_only_the_sms), LS_TEST (a_measured_slowdown_is_not_added_again),
               LS_TEST (a_persistent_gemm_needs_two_waves), LS_TEST (copy_engines_stall_nobody),
               LS_TEST (communication_waits_for_the_blocks_of_a_kernel),
               LS_TEST (the_next_kernel_of_a_queue_is_there_first),
               LS_TEST (a_longer_wait_is_no_shorter_step), LS_TEST (nothing_measured_changes_nothing),
               LS_TEST (copies_both_ways_share_the_link))
