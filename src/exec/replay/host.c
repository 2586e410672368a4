/* exec/replay/host.c — what issuing an op costs the host.
 *
 * A kernel: Python, autograd and dispatcher of PyTorch, then cudaLaunchKernel. Put
 * at 5 to 25 us an op (J. Lin, "From PyTorch op to kernel launch", 2026, which adds
 * up the layers), at 21 us by LLMCompass (Zhang et al. 2024, launch overhead on an
 * A100); the backward runs from C++ and is at the low end: 10 us, a guess in that
 * range. A communication call goes through c10d and NCCL's group launch as well:
 * 20 us, the constant part of nccl-tests curves that is not the network's. A
 * synchronising call: 10 us until the host goes on, a guess. A call from Python that
 * launches nothing, such as a view: 2 us, about half of it Python (N. Gimelshein,
 * pytorch/pytorch issue 41383, July 2020, of an operation on the CPU).
 *
 * A call of a function of Python, of a step that was captured (lockstep_trace.py counts them): 1 us, with
 * what the interpreter and PyTorch's bindings do until the next one. Measured by tools/host-costs on an
 * Intel Xeon that its hypervisor does not name (2 cores at 2.7 GHz, AMX in fp16, 480 MB of L3: by these a
 * Xeon 6 of 2024), Python 3.11.7, PyTorch 2.15.0 on stand-ins of CUDA's libraries, which launch nothing,
 * December 2026, next to other work: 1.5 us of eight blocks by DDP (2,129 calls in a step of 10.4 ms of a
 * core, 30 % of it in Python and its bindings), 1.0 by FSDP1 (10,610 calls, 52 % of 20.6 ms), 1.0 by
 * FSDP2 (22,650, 62 % of 36.5 ms), 1.5 of Trainer by DDP (8,316, 28 % of 44.1 ms), 0.6 by DeepSpeed's
 * ZeRO-3 (301,219, 65 % of 298 ms): the median. The rest are operators, without what the driver and
 * cuBLAS take: of the first four 0.8, 1.4, 1.6 and 0.9 times what launches, views and messages of the
 * step cost by the figures above, which stay. There a linear layer of 2048 took 9.8 us of the core,
 * without the driver and cuBLAS; a Xeon Platinum 8480C takes 13.5 with them (NVIDIA/TransformerEngine
 * issue 2053): the two are assumed to be as fast.
 *
 * A micro-batch that Megatron-LM fetches, broadcasts over tp and makes masks and positions for (get_batch (),
 * until late 2023): 525.0 ms for 1024 of them, the mean "batch-generator" of steps 2 to 10 in a training log
 * of September 2021 on GitHub (GPT of 40 layers x 5120, tp 2, pp 4, micro-batch 1, 2048 tokens; step 2 says
 * 523.89), whose timers synchronise. BERT on a DGX A100 took 0.70 and 0.81 ms each in a like log (its batches
 * have six arrays).
 *
 * One of the products of a rank's experts: 33 us. Eight of 128 x 2048 x 2048, which the device does sooner,
 * took 267 us by Transformer Engine's multi-stream cuBLASLt (nvfp4 on SM100, operands and scales were ready;
 * NVIDIA/TransformerEngine pull 3134, 2026). Other formats are taken to cost as much.
 *
 * All of it is of x86 servers. On other CPUs it is times the call_time of the cluster (job/job.c): on Grace,
 * a linear layer of PyTorch takes 2.5 to 2.75 times as long (NVIDIA/TransformerEngine issue 2053).
 *
 * None of this matters while the host runs ahead of the device; each can be set to
 * zero (--host-launch 0us and so on) to see what it is worth. */
#include "exec/replay/replay.h"

void
ls_host_costs_default (LsHostCosts *ret_costs)
{
  *ret_costs = (LsHostCosts) {
    .cost = {
      [LS_HOST_LAUNCH] = 10 * LS_US,
      [LS_HOST_COMM] = 20 * LS_US,
      [LS_HOST_FREE] = 0,
      [LS_HOST_SYNC] = 10 * LS_US,
      [LS_HOST_VIEW] = 2 * LS_US,
      [LS_HOST_BATCH] = 513 * LS_US,
      [LS_HOST_PRODUCT] = 33 * LS_US,
      [LS_HOST_PYTHON] = 1 * LS_US,
    },
  };
}
