/* data/traces/captured_kernels.h — what a captured launch computes, by the name of its kernel and the
 * tensors of the operator that launched it.
 *
 * Problem. A stand-in sees a name, a grid, and for products their sizes; PyTorch says which operator runs
 * on which tensors. What the launch does with memory follows from both.
 *
 * Equations. A product: its sizes. Attention: as ls_kernel_attention() of the operator's queries and keys.
 * All others stream: bytes = sum over the operator's tensors on the GPU of those that are read and those
 * that are written, of each as many elements as lie apart in memory. Of what an operator launches, each
 * has the share of its threads. The access (LsAccess), which says how fast a kind of kernel streams, is
 * that of a row of names.
 *
 * Worked example. aten::add of two bf16[4,2048,2048], one launch of vectorized_elementwise_kernel: 3 x
 * 16,777,216 x 2 bytes, access vec.
 *
 * Libraries. What an extension launches is not among an operator's tensors; but what it writes is allocated
 * just before. A row says how many passes over that its kernels make: a norm reads as much as it writes,
 * its backward reads twice that. What no row knows is taken to make two, and is counted as unknown; where
 * nothing is allocated, 32 bytes a thread. Kernels of apex's kind (multi_tensor_apply) take 65,536 elements
 * a block, of each of their lists.
 *
 * Deviations. The last block of each tensor of such a list is taken to be full. */
#ifndef LS_DATA_TRACES_CAPTURED_KERNELS_H
#define LS_DATA_TRACES_CAPTURED_KERNELS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/kernel.h"

typedef enum {
  LS_CAPTURED_KERNEL,
  LS_CAPTURED_PRODUCT,
  LS_CAPTURED_PLAN, /* of cuDNN */
  LS_CAPTURED_FILL,
  LS_CAPTURED_MOVE /* on the device */
} LsCapturedWork;

typedef struct {
  LsCapturedWork work;
  const char *kernel;            /* its name, mangled; NULL: it has none */
  const char *op;                /* "aten::add"; NULL: outside of any */
  const cJSON *inputs, *outputs; /* of the op, as lockstep_trace.py writes them; NULL: none */
  double blocks;                 /* of this launch's grid */
  double threads;                /* of this launch */
  double share;                  /* of the threads of all that the operator launches */
  double bytes;                  /* of a fill, of a move */
  uint64_t m, n, k, batch;       /* of a product */
  double made;                   /* bytes that were allocated for it since the launch before */
  double products, all_bytes;    /* of a plan: matrix products, m x n x k the first; of its tensors */
  bool is_masked;                /* half of the first product is */
  uint32_t compute;              /* 0: in 16 bits, 1: fp8, 2: tf32, 3: fp32 */
} LsCapturedLaunch;

/* Its name is static, or in the launch; false: no row knows it, and it is taken to stream. */
bool ls_captured_kernel (const LsCapturedLaunch *launch, LsKernel *ret_kernel);

#endif
