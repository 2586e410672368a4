/* analysis/seen_software.h — what a profiled step shows of the software that ran it.
 *
 * What issuing a kernel costs the host. Where the GPU has run out of work, the host is the limit, and its
 * launches come as fast as it can: the time from a launch to the one before it, over those launches of
 * kernels at which all kernels before had ended, outside graphs, not behind a collective's launch nor behind
 * one that the trace lacks. The median of these: waits for data and blocking calls are longer, and few. Under
 * 6 of them there is no interval of 95 % for a median (1 - 2 / 2^n), and none is told. The profiler's own
 * cost on the host is part of it.
 *
 * CUDA graphs. All kernels of a graph have one launch. A graph that holds attention forwards and backwards is
 * of the step; graphs that hold attention once each are of a layer each way; others are not told.
 *
 * Flash attention by the names of its kernels: FlashAttention-2's flash_fwd_kernel, FlashAttention-3's
 * FlashAttnFwd (Dao-AILab/flash-attention, csrc and hopper), FlashAttention's fmha_fwd_loop_kernel (its
 * release 0.2 to 1.0), cuDNN's cudnn_generated_fort_native_sdpa (profiles of PyTorch 2.11 on Hopper). */
#ifndef LS_ANALYSIS_SEEN_SOFTWARE_H
#define LS_ANALYSIS_SEEN_SOFTWARE_H

#include "analysis/reconcile.h"
#include "strategy/strategy.h"

typedef struct {
  LsTime host_launch;         /* -1: too few launches tell                  */
  guint n_launches;           /* that tell                                  */
  guint n_graphs;             /* launched                                   */
  int cuda_graphs;            /* LsCudaGraphs; -1: not told                 */
  int attention;              /* LsAttentionKernel; -1: not told            */
  const char *attention_name; /* of a kernel of it, borrowed; NULL: none ran */
} LsSeenSoftware;

LsSeenSoftware ls_software_seen (const LsStepSide *side);

#endif
