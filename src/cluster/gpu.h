/* cluster/gpu.h — what an accelerator is: peak rates and sizes from its data
 * sheet (topologies/gpu/NAME.json). How close kernels come to them is the
 * business of compute/. */
#ifndef LS_CLUSTER_GPU_H
#define LS_CLUSTER_GPU_H

#include <glib.h>

#include "base/dtype.h"

/* How figures of a machine are known, of which `error` is how far times by them are off for that, relative
 * and typically; 0 of what was measured on the machine itself. */
typedef enum { LS_KNOWN_MEASURED, LS_KNOWN_SCALED, LS_KNOWN_DATA_SHEET } LsKnownBy;
typedef struct {
  int by;   /* LsKnownBy                                                       */
  char *of; /* what they were measured on, if scaled: "h100"; NULL: not said  */
  double error;
} LsKnown;

/* What a GPU draws, watts; all 0: not known. */
typedef struct {
  double computing;     /* kernels run on most of it                                     */
  double communicating; /* nothing but collectives, copies and transfers                  */
  double idle;          /* a process holds it, and waits                                 */
  double free;          /* none does                                                     */
} LsGpuPower;

typedef struct {
  char *name;                     /* "a100-80g"                                          */
  char *source;                   /* where the figures come from                         */
  double peak_flops[LS_N_DTYPES]; /* dense matrix FLOP/s by dtype; 0: not supported      */
  double vector_flops;            /* fp32 FLOP/s outside the matrix units                */
  double hbm_bytes_per_s;         /* data sheet                                          */
  double hbm_efficiency;          /* achievable share of it: capacity of the HBM resource */
  double power_limited_flops;     /* 16-bit rate that long GEMMs keep under a power limit that
                                      the calibration did not have; 0: none               */
  bool persistent_gemms;          /* its GEMMs launch a block for each SM, which works through
                                      tiles: blocks that find no SM run afterwards        */
  bool has_mxfp8;                 /* its matrix units take fp8 with a scale for each 32 values */
  bool lacks_flash;               /* FlashAttention and cuDNN's fused attention do not run on it */
  double clock_spread;            /* standard deviation among chips of the rate of GEMMs,
                                      relative to its mean                                */
  uint64_t hbm_bytes;             /* an "80 GB" HBM holds 80 GiB                         */
  uint64_t reserved_bytes;        /* CUDA context and the like, not for tensors          */
  uint64_t blas_workspace_bytes;  /* that PyTorch gives cuBLAS for each stream            */
  double watts;                   /* board limit; 0: not known                           */
  LsGpuPower power;               /* by what it does                                     */
  double usd_per_hour;            /* to rent one; 0: not known                           */
  uint32_t n_sm;                  /* streaming multiprocessors or cores                  */
  char *product;                  /* as its driver calls it; NULL: not known             */
  char *capability;               /* "9.0"; NULL: not known                              */
  char *calibration;              /* name of the file in topologies/calib                */
  char *nccl;                     /* name of its NCCL file there; NULL: "nccl-" and
                                      calibration, or name where there is none            */
  LsKnown kernels_known;          /* how its calibration is known                        */
  LsKnown collectives_known;      /* and its NCCL file, inside a node                    */
  char *access;                   /* and of how fast kernels are by how they touch memory; NULL:
                                      by the bandwidth alone                              */
  char *cluster;                  /* which of several clusters is meant where only the accelerator
                                      is named; NULL: not known                           */
  char *pci;                      /* words: PCI vendor and device numbers, "10de:1db1"; NULL: not known */
  char *other_forms;              /* words of products of its line that are other accelerators; NULL: none */
  char *left_out;                 /* "clock_spread 0, reserved 0B": what a user's own file leaves
                                      to defaults; NULL: nothing                          */
} LsGpu;

void ls_gpu_copy (const LsGpu *gpu, LsGpu *ret_copy); /* the strings too */
void ls_gpu_clear (LsGpu *gpu);                       /* frees the strings; NULL allowed */

#endif
