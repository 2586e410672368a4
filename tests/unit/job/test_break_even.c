/* Pins the tokens per GPU from which on data parallelism hides behind compute, C / W for a GPU of C
 * FLOP/s whose collectives move W bytes/s (dp-3 and dp-4 of tests/README.md; jax-ml/scaling-book,
 * gpus.md@1a55377), by simulation with ideal kernels and links.
 *
 * A layer of P parameters: 2 T P FLOPs forward, 4 T P backward; in 16 bits n ranks move (n - 1)/n of
 * 2 P bytes in the forward (FSDP's gather) and of 4 P in the backward (gather and reduce-scatter, or
 * DDP's all-reduce). Both hide from T = (n - 1)/n C / W on. */
#include "ls_test.h"

#include "job/job.h"

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
  double far = m->bus / h->spec.nics;
  h->spec.gpu.peak_flops[LS_DTYPE_BF16] = m->flops;
  h->spec.gpu.clock_spread = 0;
  h->spec.gpu.persistent_gemms = false;
  h->spec.gpu.vector_flops = h->spec.gpu.hbm_bytes_per_s = 1e19;
  h->spec.nvlink.bandwidth_bytes_per_s = 1e13;
  h->spec.nvlink.efficiency = h->spec.nic.efficiency = h->spec.spine.efficiency = h->spec.pcie.efficiency = 1;
  h->spec.nic.bandwidth_bytes_per_s = h->spec.spine.bandwidth_bytes_per_s = far;
  h->spec.pcie.bandwidth_bytes_per_s = 1e13;
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
  s.grad_norm = false;
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

LS_TEST_SUITE (LS_TEST (inside_a_node), LS_TEST (across_nodes))
