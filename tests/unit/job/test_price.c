/* Pins what a job costs in money and energy, which are too large to plan, and from which batch on it pays. */
#include "ls_test.h"

#include "data/machines/machines.h"
#include "exec/replay/timeline.h"
#include "job/job.h"
#include "job/job_steps.h"
#include "job/price.h"
#include <lockstep/error.h>

/* Pins money and energy: the worked example, what is given before what a file says, and watts that follow what a
 * GPU does: shares of a step by hand, none above the limit of the board. */

static const LsGpu lab = { .watts = 400,
                           .usd_per_hour = 2,
                           .power = { .computing = 400, .communicating = 200, .idle = 80, .free = 50 } };

static void
a_trillion_tokens_cost_the_worked_example (void)
{
  LsPrice p = ls_price_of (&LS_PRICE_NOT_GIVEN, &(LsGpu) { .watts = 400, .usd_per_hour = 2 });
  LS_CHECK_NEAR (1e12 * ls_price_usd (&p, 1024, 150000), 3.79e6, 1e-3);
  LS_CHECK_NEAR (1e12 * ls_price_kwh (&p, p.gpu_watts, 1024, 150000), 834e3, 1e-3);
  LS_CHECK (!ls_price_has_activities (&p));
}

/* 5 s of kernels, 3 s of exposed communication, 2 s of waiting: (2000 + 600 + 160) / 10. */
static void
a_step_draws_by_what_it_does (void)
{
  double breakdown_s[LS_N_PARTS] = { 0 };
  breakdown_s[LS_PART_FORWARD] = 2;
  breakdown_s[LS_PART_BACKWARD] = 2;
  breakdown_s[LS_PART_OPTIMIZER] = 1;
  breakdown_s[LS_PART_EXPOSED_TP] = 2;
  breakdown_s[LS_PART_EXPOSED_COPY] = 1;
  breakdown_s[LS_PART_BUBBLE] = 1;
  breakdown_s[LS_PART_SKEW] = 0.5;
  breakdown_s[LS_PART_HOST] = 0.5;
  LsActivities step = ls_activities_of (breakdown_s);
  LS_CHECK_NEAR (step.computing_s, 5, 1e-12);
  LS_CHECK_NEAR (step.communicating_s, 3, 1e-12);
  LS_CHECK_NEAR (step.idle_s, 2, 1e-12);
  LsPrice p = ls_price_of (&LS_PRICE_NOT_GIVEN, &lab);
  LS_CHECK (ls_price_has_activities (&p));
  LS_CHECK_NEAR (ls_price_step_watts (&p, &step), 276, 1e-12);
  LS_CHECK_NEAR (ls_price_step_watts (&p, &(LsActivities) { 0 }), 400, 0);
}

static void
what_is_given_counts_all_the_time (void)
{
  LsPrice given = LS_PRICE_NOT_GIVEN;
  given.gpu_watts = 500;
  LsPrice p = ls_price_of (&given, &lab);
  LS_CHECK (!ls_price_has_activities (&p));
  LS_CHECK_NEAR (ls_price_step_watts (&p, &(LsActivities) { 1, 1, 1 }), 500, 1e-12);
}

/* A board with a lower limit draws no more whatever it does. */
static void
none_draws_more_than_the_limit (void)
{
  LsGpu low = lab;
  low.watts = 150;
  LsPrice p = ls_price_of (&LS_PRICE_NOT_GIVEN, &low);
  LS_CHECK_NEAR (p.power.computing, 150, 0);
  LS_CHECK_NEAR (p.power.communicating, 150, 0);
  LS_CHECK_NEAR (p.power.idle, 80, 0);
}

/* What is shipped: a GPU that computes draws most, one that nobody holds least, and not more than its limit. */
static void
shipped_powers_are_in_order (void)
{
  static const char *const names[] = { "a100-40g", "a100-80g", "h100", "a800", "h800" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsGpu gpu;
    if (!LS_CHECK (ls_data_file_load (&ls_gpu_file, names[i], &gpu, diags)))
      continue;
    LS_CHECK (gpu.watts >= gpu.power.computing && gpu.power.computing > gpu.power.communicating
              && gpu.power.communicating > gpu.power.idle && gpu.power.idle > gpu.power.free
              && gpu.power.free > 0);
    ls_gpu_clear (&gpu);
  }
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsGpu other;
  if (LS_CHECK (ls_data_file_load (&ls_gpu_file, "h20", &other, diags))) {
    LS_CHECK_NEAR (other.power.computing, 0, 0); /* not its relative's */
    ls_gpu_clear (&other);
  }
}

/* Pins which plans are refused before they are walked through: two spans for each kernel and each collective
 * of one rank of every stage, to the byte; 0 allows any. */

/* Seven of one role, one of the other: a message between stages is none. */
#define N_SPANS 8

static gboolean
check (uint64_t max_bytes, GError **error)
{
  LsOp many[] = {
    { .kind = LS_OP_KERNEL }, { .kind = LS_OP_P2P }, { .kind = LS_OP_COLLECTIVE }, { .kind = LS_OP_KERNEL }
  };
  LsOp one[] = { { .kind = LS_OP_KERNEL } };
  LsSegment segments[] = { { "many", G_N_ELEMENTS (many), many }, { "one", 1, one } };
  LsInstance first[] = { { .segment = 0 }, { .segment = 0 }, { .segment = 1 } },
             last[] = { { .segment = 1 } };
  LsProgram programs[]
      = { { .n_instances = 3, .instances = first }, { .n_instances = 1, .instances = last } };
  const LsPlan plan
      = { .n_micro_batches = 2, .n_segments = 2, .segments = segments, .n_roles = 2, .programs = programs };
  return ls_budget_check_plan (&plan, max_bytes, error);
}

static void
spans_of_two_steps_must_fit (void)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (check (2 * N_SPANS * sizeof (LsSpan), &error) && check (0, &error));
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (!check (2 * N_SPANS * sizeof (LsSpan) - 1, &error));
  if (LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT)))
    LS_CHECK (g_str_has_prefix (error->message,
                                "a step of 2 micro-batches, 8 ops on a rank of each stage, needs "));
}

/* Pins the tokens per GPU from which on data parallelism hides behind compute, C / W for a GPU of C
 * FLOP/s whose collectives move W bytes/s (dp-3 and dp-4 of tests/README.md; jax-ml/scaling-book,
 * gpus.md@1a55377), by simulation with ideal kernels and links.
 *
 * A layer of P parameters: 2 T P FLOPs forward, 4 T P backward; in 16 bits n ranks move (n - 1)/n of
 * 2 P bytes in the forward (FSDP's gather) and of 4 P in the backward (gather and reduce-scatter, or
 * DDP's all-reduce). Both hide from T = (n - 1)/n C / W on. */

#define SEQ 16 /* so short that attention counts for nothing */

typedef struct {
  double flops, bus; /* C, W                    */
  uint32_t n_nodes;  /* more than 1: W of a node's NICs */
  int dp_kind;
} Machine;

static void
make_ideal (LsHardware *h, const Machine *m)
{
  LsNccl *n = &h->nccl;
  double far = m->bus / h->spec.nics.n;
  h->spec.gpu.peak_flops[LS_DTYPE_BF16] = m->flops;
  h->spec.gpu.clock_spread = 0;
  h->spec.gpu.persistent_gemms = false;
  h->spec.gpu.vector_flops = h->spec.gpu.hbm_bytes_per_s = 1e19;
  h->spec.server.nvlink.bandwidth_bytes_per_s = 1e13;
  h->spec.server.nvlink.efficiency = h->spec.nics.port.efficiency = h->spec.network.spine.efficiency
      = h->spec.server.pcie.efficiency = 1;
  h->spec.nics.port.bandwidth_bytes_per_s = h->spec.network.spine.bandwidth_bytes_per_s = far;
  h->spec.server.pcie.bandwidth_bytes_per_s = 1e13;
  ls_calibration_clear (&h->calibration);
  ls_calibration_init_roofline (&h->calibration);
  n->nvlink = 0; /* no tuner */
  n->channels_nvls = 0;
  n->ring_bus_intra = m->n_nodes > 1 ? 1e13 : m->bus;
  n->ring_bus_per_nic = far;
  n->base_all_reduce = n->base_all_gather = n->base_reduce_scatter = n->hop_intra = n->hop_inter
      = n->handshake = n->handshake_hop = 0;
  n->ramp_bytes = n->drain = n->sm_share_per_channel = n->stall_per_byte = 0;
  n->hbm_per_wire_all_reduce = n->hbm_per_wire_all_gather = n->hbm_per_wire_reduce_scatter = 0;
}

/* Seconds of exposed communication. */
static double
exposed_s (const LsHardware *h, const Machine *machine, uint32_t n_layers, uint32_t tokens)
{
  LsModel m = {
    .name = (char *) "ideal",
    .n_layers = n_layers,
    .hidden = 8192,
    .n_heads = 64,
    .n_kv_heads = 64,
    .head_dim = 128,
    .ffn = 32768,
    .vocab = 128,
    .seq = SEQ,
    .mlp = LS_MLP_GELU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
  };
  LsStrategy s;
  LsRunOptions options;
  g_autoptr (GError) error = NULL;
  ls_strategy_init (&s);
  ls_run_options_init (&options);
  memset (&options.host, 0, sizeof options.host);
  s.dp_kind = machine->dp_kind;
  s.opt.grad_norm = false;
  s.micro_batch = tokens / SEQ;
  s.global_batch = s.micro_batch * 8 * machine->n_nodes;
  g_autoptr (LsJobResult) r = ls_job_simulate (&m, h, machine->n_nodes, &s, &options, &error);
  LS_CHECK_NO_ERROR (error);
  double exposed = r ? r->report.breakdown_s[LS_PART_EXPOSED_DP] : 0;
  ls_strategy_clear (&s);
  return exposed;
}

/* Layers in the middle: what the first and the last leave open cancels out. */
static bool
hides (const LsHardware *h, const Machine *m, uint32_t tokens)
{
  double layer_s = 6.0 * tokens * 12 * 8192 * 8192 / m->flops;
  return exposed_s (h, m, 8, tokens) - exposed_s (h, m, 4, tokens) < 1e-3 * layer_s;
}

static void
check_break_even (double flops, double bus, uint32_t n_nodes, int dp_kind, double expected)
{
  Machine m = { flops, bus, n_nodes, dp_kind };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("dgx-h100", diags);
  if (!LS_CHECK (h))
    return;
  make_ideal (h, &m);
  uint32_t low = 1, high = 1000; /* in units of SEQ tokens: hides (high), not (low) */
  LS_CHECK (!hides (h, &m, low * SEQ) && hides (h, &m, high * SEQ));
  while (high - low > 1) {
    uint32_t middle = (low + high) / 2;
    if (hides (h, &m, middle * SEQ))
      high = middle;
    else
      low = middle;
  }
  double n = 8.0 * n_nodes;
  LS_CHECK_NEAR (high * SEQ * n / (n - 1), expected, 1.5e-2);
}

static void
inside_a_node (void)
{
  check_break_even (990e12, 450e9, 1, LS_DP_FSDP2, 2200);
  check_break_even (990e12, 450e9, 1, LS_DP_FSDP1, 2200);
  check_break_even (990e12, 450e9, 1, LS_DP_DDP, 2200);
  check_break_even (2250e12, 900e9, 1, LS_DP_FSDP2, 2500);
}

static void
across_nodes (void)
{
  check_break_even (990e12, 400e9, 2, LS_DP_FSDP2, 2475);
  check_break_even (2250e12, 400e9, 2, LS_DP_FSDP2, 5625);
}

LS_TEST_SUITE (LS_TEST (a_trillion_tokens_cost_the_worked_example), LS_TEST (a_step_draws_by_what_it_does),
               LS_TEST (what_is_given_counts_all_the_time), LS_TEST (none_draws_more_than_the_limit),
               LS_TEST (shipped_powers_are_in_order), LS_TEST (spans_of_two_steps_must_fit),
               LS_TEST (inside_a_node), LS_TEST (across_nodes))
