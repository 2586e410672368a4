/* compute/cost.h — how long one kernel takes alone.
 *
 *     t = t0 + max (compute, bytes / (b * bandwidth))   and a little more where both count
 *
 * with launch time t0 and bandwidth efficiency b fitted per kernel kind and GPU
 * (a calibration), or a plain roofline where nothing was fitted. The compute
 * term is FLOPs / (e * peak), stretched by what keeps tensor cores idle: tiles
 * that do not fill the SMs, short inner loops. cost.c has the equations and a
 * worked example. Kernels that say how they touch memory have figures of their
 * own (LsAccessFit). Every estimate knows its source and whether it extrapolates. */
#ifndef LS_COMPUTE_COST_H
#define LS_COMPUTE_COST_H

#include <glib.h>
#include <math.h>

#include <lockstep/units.h>

#include "cluster/gpu.h"
#include "compute/around.h"
#include "model/kernel.h"

#define LS_ROOFLINE "roofline" /* name of the calibration of what no file is of */

typedef enum {
  LS_COST_ROOFLINE,
  LS_COST_FITTED,
  LS_COST_MEASURED,
  LS_COST_INTERPOLATED,
  LS_COST_RECORDED
} LsCostSource;
typedef enum { LS_BOUND_COMPUTE, LS_BOUND_MEMORY, LS_BOUND_LAUNCH } LsBound;

/* Coefficients of one kernel kind. A field that is 0 switches its effect off. */
typedef struct {
  bool is_fitted;            /* false: the numbers below are a stated guess            */
  double compute_efficiency; /* e, (0, 1]: of peak in the largest tile, deep loop      */
  double flops_half;         /* FLOPs at which e is halved (kinds without tiles)       */
  double depth_half;         /* inner loop (k of a GEMM, keys of attention) at which
                                prologue and epilogue take half of a tile's time       */
  double width_half;         /* head_dim at which softmax takes half the time of
                                attention                                              */
  double wide_slow;          /* extra share of attention's time above wide_head        */
  double wide_head;          /* head_dim; 0: 128, above which two tiles do not fit beside
                                each other                                             */
  double width_step;         /* a head runs the library's kernel for the next multiple of this
                                width, up to 128; 0: for its own                       */
  double causal_block;       /* edge of the blocks of queries and keys that attention computes or skips
                                whole; 0: a tile's rows, 128                           */
  double tail;               /* longest tiles of attention in which SMs run out of work
                                one by one; 0: no tiles, the work spreads evenly       */
  double tile_half;          /* edge of the square tile that runs at half rate         */
  double square_tile;        /* edge of a square tile that the library has beside those of
                                cost.c; 0: none                                        */
  bool wave_blind;           /* the library chooses a tile as if of a started wave only its
                                share were paid                                        */
  double wave_rounding;      /* [0, 1] how much of a started wave of tiles is paid;
                                0: no tiles, the work spreads evenly over the SMs      */
  LsTime split_launch;       /* joining the partial sums of a GEMM cut along k         */
  double throttle;           /* extra share of compute time when the chip is hot       */
  LsTime burst;              /* compute time of a kernel up to which an isolated loop of
                                it stays cool; the rest runs hot                       */
  double overlap;            /* p of (compute^p + memory^p)^(1/p); 0: the larger       */
  double wide_exposed;       /* [0, 1] of the traffic of a GEMM's result beyond 16 bits an
                                element, as of one that is added to in fp32, the share
                                that moves while no FLOPs run                         */
  double memory_efficiency;  /* b, (0, 1]                                              */
  double bytes_half;         /* bytes at which b is halved                             */
  double cache_bytes;        /* traffic that the L2 still serves whole; twice as much
                                comes from HBM whole. Of GEMMs: their first operand and
                                their result, which neighbours hand over              */
  double cache_speed;        /* rate of the L2 relative to HBM, >= 1                   */
  LsTime launch;             /* t0                                                     */
  LsTime matrix_launch;      /* what each matrix but the first of a grouped product adds */
  LsTime timed_host;         /* what the timings of the fit held besides the kernel: a
                                constant                                               */
  double timed_efficiency;   /* and another kernel's traffic, at this share of the
                                bandwidth. Only for comparing with such timings        */
  double min_work, max_work; /* range of FLOPs (GEMM, attention) or bytes (all others)
                                seen in the fit; both 0: never extrapolates            */
  double mape;               /* on held-out families, fraction; NaN if none            */
} LsKindFit;

/* How fast kernels of one access kind are (LsAccess):
 *
 *     t = launch + max (bytes / (share * bandwidth), elements / (elements_per_sm * n_sm), n_serial step)
 *
 * Kernels that do not load in vectors take a constant time per element, whatever its bytes. */
typedef struct {
  bool is_fitted;         /* false: a stated guess                                       */
  double share;           /* (0, 1] of the HBM bandwidth                                 */
  double elements_per_sm; /* elements that an SM does in a second; 0: no limit           */
  LsTime launch;          /* from the end of the kernel before to the start of this one  */
  LsTime step;            /* of a chain of tiles, what one takes (LsKernel.n_serial)      */
} LsAccessFit;

/* Whose coefficients: by LsKernelKind, then what stands beside a kind. */
typedef enum {
  LS_ENTRY_GEMM_FP8 = LS_N_KERNEL_KINDS, /* of fp8 GEMMs if is_fitted                                */
  LS_ENTRY_GEMM_FP8_BLOCKS,              /* and of those that are by_blocks; else GEMM_FP8           */
  LS_ENTRY_GEMM_NVFP4,                   /* of nvfp4 GEMMs if is_fitted; else GEMM_FP8               */
  LS_ENTRY_ATTENTION_FP8,                /* of fp8 attention forward, but cuDNN's                    */
  LS_ENTRY_VLLM_RMSNORM,                 /* measured, but training does not run it: for comparisons  */
  LS_ENTRY_VLLM_SILU_MUL,
  LS_ENTRY_ATTENTION, /* forward and backward of the first implementation but AUTO, then of the others; all
                         0: not known */
  LS_N_ENTRIES = LS_ENTRY_ATTENTION + 2 * (LS_N_ATTENTION_KERNELS - 1)
} LsCalibrationEntry;

static inline guint
ls_entry_attention (LsAttentionKernel kernel, bool is_backward)
{
  return LS_ENTRY_ATTENTION + 2 * ((guint) kernel - 1) + is_backward;
}

typedef struct LsCalibration {
  char *name;           /* "a100" */
  char *source;         /* data, method, date, hold-out */
  double sustained;     /* (0, 1] rate of GEMMs inside a training step relative to the
                       isolated loops that e was fitted to: power limit, cold
                       caches; multiplies e. 1 or 0: off, as in the loops */
  double sustained_fp8; /* the same of GEMMs in fp8, and in nvfp4; 0: as sustained. Fewer bits take
                       less power, but reach more FLOPs: the limit may cut them more or less */
  double sustained_nvfp4;
  double gemm_unaligned;   /* (0, 1] of the peak that 16-bit GEMMs with rows on no 16 bytes
                       reach at most; 0: not known, as if they were aligned        */
  double attention_masked; /* (0, 1] rate of 16-bit attention that reads a mask, relative to what its kernel
                       reaches without; 0: not known, 1                           */
  double clock;            /* (0, 1] of the matrix units in the job, relative to the fits'
                       (cost.c); 0: 1                                    */
  LsKindFit kind[LS_N_ENTRIES]; /* by LsCalibrationEntry */
  int attention_kernel;         /* LsAttentionKernel: which of them the job runs    */
  bool dynamic_gemms; /* so are the job's GEMMs (LsStrategy): in clusters where they were persistent */
  GArray *measured;   /* of LsMeasuredKernel, put before the fits; NULL: none  */
  LsAccessFit access[LS_N_ACCESSES]; /* [NONE] unused                        */
  LsAround around;                   /* what was measured besides                             */
  /* Of a cluster with several kinds of nodes (LsClusterSpec.others). */
  struct LsCalibration *others; /* [n_others] of kinds 1 .. ; owned; NULL: all nodes are alike            */
  uint32_t n_others;
  uint32_t clock_gpus; /* GPUs of the job, the slowest of which set the clock; 0: not said       */
} LsCalibration;

void ls_calibration_clear (LsCalibration *c);         /* frees what it owns, zeroes; NULL allowed */
void ls_calibration_init_roofline (LsCalibration *c); /* e = b = 1, t0 = 0, not fitted, own strings */
extern const LsCalibration ls_rooflines;              /* the same without strings */

typedef struct {
  LsTime alone;     /* whole time with the GPU to itself                   */
  double compute_s; /* compute term, launch excluded; both terms are       */
  double memory_s;  /* stretched alike by what they do not overlap         */
  double launch_s;  /* t0                                                  */
  LsCostSource source;
  LsBound bound;
  bool extrapolated;
  bool is_guess; /* of no kind that is known: extrapolated too */
} LsKernelCost;

/* Seconds of kernels: measured, fitted, on a roofline; of these extrapolated; of those a guess. */
#define LS_N_COST_SHARES 5

/* Of GPUs on nodes of that kind, as the job runs them: its clock and implementation of attention (AUTO where
 * they were not measured with that): `calibration` itself for the first kind, else *room, which is filled.
 * Borrows all. */
const LsCalibration *ls_calibration_of_kind (const LsCalibration *calibration, uint32_t kind,
                                             const LsGpu *gpu, LsCalibration *room);

/* A kernel that says how it touches memory is costed by its access kind, all others by their kind:
 * FLOPs of GEMM and attention kinds run at gpu->peak_flops of the dtype, all
 * others (and number formats that the GPU's matrix units lack) at vector_flops;
 * a rate of 0 counts as unlimited. A measured kernel goes before the fit (measured.h).
 * Nothing is allocated; cannot fail. */
LsKernelCost ls_kernel_cost (const LsCalibration *calibration, const LsGpu *gpu, const LsKernel *kernel);
/* The time by given coefficients alone, of which ls_kernel_cost() takes those of ls_calibration_fit()
 * (measured.h). */
double ls_calibration_sustained (const LsCalibration *calibration, const LsKernel *kernel);
LsKernelCost ls_kernel_cost_by (const LsKindFit *fit, double sustained, const LsGpu *gpu,
                                const LsKernel *kernel);

/* A GEMM whose rows begin on no 16 bytes (LsKernel.unaligned): they cannot be loaded as the fast kernels do
 * (Hopper: wgmma by TMA), and libraries fall back to kernels of older chips. ls_kernel_cost() holds it. */
void ls_kernel_cost_unaligned (const LsCalibration *calibration, const LsGpu *gpu, const LsKernel *kernel,
                               LsKernelCost *cost);

/* A kernel that streams, alone, as it is inside a layer (LsAround.streams_in_layer). ls_kernel_cost() holds
 * it. */
void ls_kernel_cost_in_layer (const LsCalibration *calibration, const LsKernel *kernel, LsKernelCost *cost);

/* What such a timing of the kernel holds besides it, in seconds: `side_bytes` of
 * another kernel's traffic, and a constant if the timing is a framework's. */
double ls_kernel_timed_besides_s (const LsKindFit *fit, const LsGpu *gpu, double side_bytes, bool has_host);

/* Time of the kernel when communication kernels hold `sm_share` of the SMs and
 * HBM is not contended: launch + max (compute / (1 - sm_share), memory);
 * sm_share in [0, 1). */
LsTime ls_kernel_time_beside (const LsKernelCost *cost, double sm_share);

/* The clock of the slowest of n_gpus >= 1 (cost.c): in (0, 1]. */
double ls_clock (const LsCalibration *calibration, const LsGpu *gpu, uint32_t n_gpus);

/* Output tiles of a GEMM and the waves in which SMs take them.
 *
 * A thread block computes one tile; n_sm of them run at a time, one per SM, so
 * blocks come in ceil (blocks / n_sm) waves. 2304 x 1536 in tiles of 256 x 128 on
 * an A100: 9 * 12 = 108 blocks, one wave; a column of tiles more, 117, is two.
 * Facts: NVIDIA, "Matrix Multiplication Background User's Guide". */

static inline double
ls_tile_blocks (double m, double n, double tile_m, double tile_n)
{
  return ceil (m / tile_m) * ceil (n / tile_n);
}

/* Waves that are paid: `rounding` of each started one, the rest as the work
 * spreads when clocks drift apart; never less than one. */
static inline double
ls_tile_waves_paid (double blocks, double n_sm, double rounding)
{
  double exact = blocks / n_sm;
  return rounding * ceil (exact) + (1 - rounding) * fmax (exact, 1);
}

#endif
