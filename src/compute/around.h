/* compute/around.h — what of a GPU and its host was measured around kernels (tools/kernelbench), put before
 * what is assumed.
 *
 *   host_launch   what the driver's call to launch a kernel takes on the host: a program pays no less,
 *                 unless it was told what it pays (--host-launch)
 *   kernel_gap    from the end of a kernel to the start of the next of a full queue. The launch of kernels
 *                 with an access kind (LsAccessFit) holds it: what the file of the GPU has of it goes, this
 *                 takes its place
 *   graph_gap     the same inside a CUDA graph: a kernel that its graph launches starts so much earlier
 *                 than from a queue
 *   memcpy_share  share of the HBM bandwidth that a copy within the GPU reaches (LS_ACCESS_MEMCPY)
 *   copy_duplex   rate of a copy to or from the host while another goes the other way, over its rate alone
 *                 (exec/replay/motion.c)
 *   priority_wait how long the kernel of a stream of high priority waits for SMs while a kernel runs that
 *                 holds them all: until blocks of that end. Communication that gets ready beside a kernel
 *                 waits as long (exec/replay/kernel_run.c)
 *   streams_in_layer
 *                 time of the kernels of a layer that stream through memory, in the midst of the layer, over
 *                 their time alone (compute/cost.c)
 *   gemms         how the GEMMs of the library occupy the SMs, and by what they take longer beside a
 *                 kernel that holds a share s of these (exec/replay/kernel_run.c):
 *                   tiles       a block for each tile of the result: time * 1 / (1 - lost * s)
 *                   clusters    the same in clusters of blocks that start together on neighbouring SMs, so
 *                               that an SM that is held may cost its neighbour too: lost is of its own
 *                   persistent  a block for each SM: those that find none run in a second wave:
 *                               time * waves, whatever s is
 *                   told        persistent, and told of the SMs that are left: time * 1 / (1 - lost * s)
 *
 * Of what was not measured: lost is 1, waves 2, copy_duplex 1, priority_wait 0, streams_in_layer 1, and the
 * GPU's file says whether GEMMs are persistent (LsGpu.persistent_gemms).
 *
 * Worked example. 16 of 132 SMs held, s = 0.121: lost 1 costs 1 / 0.879 = 1.138 times the time, lost 1.5
 * 1.222 times. */
#ifndef LS_COMPUTE_AROUND_H
#define LS_COMPUTE_AROUND_H

#include <stdbool.h>

#include <lockstep/units.h>

typedef enum { LS_GEMMS_UNKNOWN, LS_GEMMS_TILES, LS_GEMMS_CLUSTERS, LS_GEMMS_PERSISTENT, LS_N_GEMMS } LsGemms;

/* 0 of each: not measured. */
typedef struct {
  LsTime host_launch, kernel_gap, graph_gap, priority_wait;
  double memcpy_share;     /* (0, 1]                                                           */
  double copy_duplex;      /* (0, 1]                                                       */
  double streams_in_layer; /* above 0; below 1: faster there                               */
  int gemms;               /* LsGemms, of the library                                          */
  double lost_tiles, lost_clusters, lost_told; /* SMs lost for each that is held                 */
  double waves; /* of a persistent GEMM: time beside over time alone, at least 1    */
} LsAround;

bool ls_around_is_measured (const LsAround *around); /* anything of it */

/* How the library's GEMMs run: as was measured, else as the GPU's file says whether they are persistent,
 * and the software whether such ones are dynamic: blocks fetch their next tile as they go, so that those
 * which find no SM leave theirs to others, and all are slowed down as clusters are. Never UNKNOWN. */
LsGemms ls_around_gemms (const LsAround *around, bool is_persistent, bool is_dynamic);
/* SMs that GEMMs of that kind lose for each that is held: of persistent ones those that were told. */
double ls_around_lost (const LsAround *around, LsGemms gemms);
/* The same of those of any kind that were told; where that was not measured, telling is no help to
 * clusters (as on an H200 with cuBLASLt 13.1, tools/kernelbench/README.md). */
double ls_around_told (const LsAround *around, LsGemms gemms);
double ls_around_waves (const LsAround *around);
double ls_around_duplex (const LsAround *around);
double ls_around_streams (const LsAround *around);
/* The launch of a kernel from a queue, of which `gap` is that of the GPU's file: with the gap that was
 * measured. */
LsTime ls_around_launch (const LsAround *around, LsTime launch, LsTime gap);
/* What a kernel whose cost holds that launch saves in a CUDA graph; negative: it costs more there. */
LsTime ls_around_graph_saves (const LsAround *around, LsTime launch);

#endif
