/* exec/memory/memory_libraries.h — what libraries take of a GPU's memory besides tensors
 * (private).
 *
 * cuBLAS. PyTorch gives each handle and stream a workspace (blas_workspace of the GPU's file). One
 * stream computes.
 *
 * NCCL. A ring connects each rank with the one before and the one behind, on each channel.
 *
 *     inside a node   12 MiB: the buffers of LL (512 KiB), LL128 (4.69 MiB) and Simple (4
 *                     MiB), which lie with the receiver or in part with the sender, and a
 *                     header at either end, each side rounded up to 2 MiB
 *     across nodes    17.4 MiB: LL128 and Simple at either end; LL lies in the host's memory
 *
 * (src/transport/p2p.cc, p2pSendSetup and p2pRecvSetup; src/transport/net.cc,
 * sendProxyConnect; NVIDIA/nccl issue 1685 lists allocations of 10 and 2 MiB on H100.) In a
 * ring over nodes one of a node's k connections crosses: a rank has 1 / k of it on average.
 * Each communicator has its own: sizes do not depend on messages, all channels connect.
 *
 * Worked example: all-reduce among 2 A100: 24 channels, 288 MiB. Measured: 544 MB for two,
 * kernels and all, and 144 MB more with four, whose trees have connections that their rings
 * lack (NVIDIA/nccl issue 964).
 *
 * Deviations. A lower bound: connections of trees and NVLS, and those of sends and receives,
 * are not counted: how many channels a pair gets is not in our NCCL files. Communicators
 * that share resources (ncclCommSplit with splitShare) take less.
 *
 * The CUDA context is LsGpu.reserved_bytes. */
#ifndef LS_EXEC_MEMORY_MEMORY_LIBRARIES_H
#define LS_EXEC_MEMORY_MEMORY_LIBRARIES_H

#include "exec/memory/memory.h"

/* What a rank of a role holds for the whole run: its program's, and of a rank (UINT32_MAX: none) on a cluster
 * what libraries take. */
void memory_throughout (const LsMemoryInput *in, uint32_t role, uint32_t rank, uint64_t ret_bytes[LS_N_MEM]);

/* Of these, what is not PyTorch's: NCCL asks the driver. */
static inline bool
memory_is_outside_allocator (int category)
{
  return category == LS_MEM_COMM_BUFFERS;
}

/* What segments may have together beside that; 0: no limit. */
uint64_t memory_allocator_limit (const LsMemoryInput *in, uint32_t rank, const uint64_t throughout[LS_N_MEM]);

#endif
