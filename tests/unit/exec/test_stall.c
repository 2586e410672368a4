/* Pins: what communication costs a compute-bound kernel beside it. The SMs of its channels from launch to
 * end, waiting for partners included; and while its data move the time of the HBM for stall_per_byte bytes
 * per byte of the array, twice for all-reduce; nothing before and after; nothing for copy engines. A
 * persistent GEMM that starts beside communication runs in two waves, unless it was told to leave its SMs.
 * What a calibration has measured of that stands for the two waves and for the one SM that each costs, of
 * the library's way only. A measured time that holds the slowdown is not slowed again. No bound exceeds the
 * step. */
#include "ls_test.h"

#include <math.h>

#include "hand_trace.h"

#include "exec/shortcuts/plan_bound.h"
#include "exec/state.h"

#define BYTES  (UINT64_C (256) << 20)
#define KERNEL (20 * LS_MS)

static const uint32_t both[] = { 0, 1 };

static LsAround around; /* of the calibration */

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

LS_TEST_SUITE (LS_TEST (what_was_measured_beside_a_kernel_is_used), LS_TEST (moving_data_stall_a_kernel),
               LS_TEST (waiting_costs_only_the_sms), LS_TEST (a_measured_slowdown_is_not_added_again),
               LS_TEST (a_persistent_gemm_needs_two_waves), LS_TEST (copy_engines_stall_nobody))
