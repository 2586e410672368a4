#include "validate/ablation.h"

#include <string.h>

static void
ablate_contention (LsAblated *a)
{
  a->options.network = LS_NETWORK_ALPHABETA;
}

static void
ablate_slowdown (LsAblated *a)
{
  LsNccl *n = &a->hardware.nccl;
  n->sm_share_per_channel = n->stall_per_byte = 0;
  n->hbm_per_wire_all_reduce = n->hbm_per_wire_all_gather = n->hbm_per_wire_reduce_scatter
      = n->hbm_per_wire_p2p = 0;
}

static void
ablate_host (LsAblated *a)
{
  a->options.host = (LsHostCosts) { .is_final = true };
}

static void
ablate_grad_norm (LsAblated *a)
{
  a->strategy.grad_norm = false;
}

static void
ablate_p2p (LsAblated *a)
{
  LsStrategy *s = &a->strategy;
  if (s->pp > 1 && s->schedule && strcmp (s->schedule, "1f1b") != 0)
    s->p2p = LS_P2P_OVERLAPPED;
}

static void
ablate_latency (LsAblated *a)
{
  const LsHardware whole = a->hardware;
  ls_scaled_init (&a->scaled, &whole.spec, &whole, &a->options.host, LS_SCALE_NETWORK_LATENCY, 0);
  a->hardware = (LsHardware) { a->scaled.spec, a->scaled.calibration, a->scaled.nccl };
}

/* Calls f for every entry that a training kernel may be timed by. */
static void
for_each_fit (LsCalibration *c, void (*f) (LsKindFit *fit))
{
  for (int i = 0; i < LS_N_KERNEL_KINDS; i++)
    f (&c->kind[i]);
  f (&c->gemm_fp8);
  f (&c->gemm_fp8_blocks);
  f (&c->gemm_nvfp4);
  f (&c->attention_fp8);
  for (int i = 0; i < LS_N_ATTENTION_KERNELS; i++)
    for (int pass = 0; pass < 2; pass++)
      f (&c->attention[i][pass]);
}

static void
fit_without_heat (LsKindFit *fit)
{
  fit->throttle = 0;
}

static void
ablate_clocks (LsAblated *a)
{
  a->hardware.calibration.sustained = 1;
  a->hardware.calibration.sustained_fp8 = a->hardware.calibration.sustained_nvfp4 = 0;
  a->hardware.spec.gpu.clock_spread = a->hardware.spec.gpu.power_limited_flops = 0;
  for_each_fit (&a->hardware.calibration, fit_without_heat);
}

static void
fit_without_tiles (LsKindFit *fit)
{
  fit->wave_rounding = fit->tail = 0;
}

static void
ablate_tiles (LsAblated *a)
{
  for_each_fit (&a->hardware.calibration, fit_without_tiles);
}

static void
fit_with_whole_hbm (LsKindFit *fit)
{
  fit->memory_efficiency = 1;
  fit->bytes_half = 0;
}

static void
ablate_hbm (LsAblated *a)
{
  a->hardware.spec.gpu.hbm_efficiency = 1;
  for_each_fit (&a->hardware.calibration, fit_with_whole_hbm);
}

/* "is_fitted" stays: by it an implementation of attention is known. */
static void
fit_roofline (LsKindFit *fit)
{
  *fit = (LsKindFit) { .is_fitted = fit->is_fitted, .compute_efficiency = 1, .memory_efficiency = 1 };
}

static void
ablate_kernels (LsAblated *a)
{
  ablate_clocks (a);
  ablate_hbm (a);
  for_each_fit (&a->hardware.calibration, fit_roofline);
  a->hardware.calibration.measured = NULL;
}

static const struct {
  const char *key, *label;
  void (*apply) (LsAblated *a);
} mechanisms[LS_N_ABLATIONS] = {
  [LS_ABLATE_CONTENTION] = { "contention", "shared links", ablate_contention },
  [LS_ABLATE_SLOWDOWN] = { "slowdown", "slowdown of kernels", ablate_slowdown },
  [LS_ABLATE_HOST] = { "host", "host costs", ablate_host },
  [LS_ABLATE_GRAD_NORM] = { "grad_norm", "gradient norm", ablate_grad_norm },
  [LS_ABLATE_P2P] = { "p2p", "waits for p2p", ablate_p2p },
  [LS_ABLATE_LATENCY] = { "latency", "network latency", ablate_latency },
  [LS_ABLATE_CLOCKS] = { "clocks", "sustained clocks", ablate_clocks },
  [LS_ABLATE_TILES] = { "tiles", "tiles and waves", ablate_tiles },
  [LS_ABLATE_HBM] = { "hbm", "HBM efficiency", ablate_hbm },
  [LS_ABLATE_KERNELS] = { "kernels", "kernels but roofline", ablate_kernels },
};

const char *
ls_ablation_key (LsAblation ablation)
{
  return mechanisms[ablation].key;
}

const char *
ls_ablation_label (LsAblation ablation)
{
  return mechanisms[ablation].label;
}

void
ls_ablated_init (LsAblated *a, LsAblation ablation, const LsHardware *hardware, const LsStrategy *strategy,
                 const LsRunOptions *options)
{
  *a = (LsAblated) { .hardware = *hardware, .options = *options };
  ls_strategy_copy (&a->strategy, strategy);
  mechanisms[ablation].apply (a);
}

void
ls_ablated_clear (LsAblated *a)
{
  ls_strategy_clear (&a->strategy);
  ls_scaled_clear (&a->scaled);
}
