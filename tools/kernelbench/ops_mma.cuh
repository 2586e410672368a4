/* tools/kernelbench/ops_mma.cuh — 16 x 8 x 16 products of a warp, and how their operands come
 * from shared memory (PTX ISA, "Matrix Fragments for mma.m16n8k16", "ldmatrix").
 *
 * Of the 16 x 8 result a lane holds four elements, e = 0 to 3, at (row_of, col_of). A
 * fragment of A has 16 x 16 elements in four registers, of B 16 x 8 in two; the load
 * functions below fetch A, or B for two neighbouring results. Two neighbouring results of
 * a product, rounded to pairs, are a fragment of A. */
#ifndef LS_KERNELBENCH_OPS_MMA_CUH
#define LS_KERNELBENCH_OPS_MMA_CUH

#include <cstdint>

#include "bench.h"
#include "ops.h"

namespace kb {

__device__ inline int row_of (int lane, int e) { return lane / 4 + e / 2 * 8; }
__device__ inline int col_of (int lane, int e) { return lane % 4 * 2 + e % 2; }

template <typename T> __device__ unsigned pack (float low, float high);

template <> __device__ inline unsigned
pack<half> (float low, float high)
{
  half2 v = __floats2half2_rn (low, high);
  return *reinterpret_cast<unsigned *> (&v);
}

template <> __device__ inline unsigned
pack<__nv_bfloat16> (float low, float high)
{
  __nv_bfloat162 v = __floats2bfloat162_rn (low, high);
  return *reinterpret_cast<unsigned *> (&v);
}

/* Code for chips before 8.0 holds traps in their place: attention_capability of shapes.h keeps
 * these kernels from being launched there. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
#define KB_FROM_8_0(...) __trap ()
#else
#define KB_FROM_8_0(...) asm volatile (__VA_ARGS__)
#endif

template <typename T> __device__ void mma (float (&acc)[4], const unsigned *a, const unsigned *b);

template <> __device__ inline void
mma<half> (float (&acc)[4], const unsigned *a, const unsigned *b)
{
  KB_FROM_8_0 ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <> __device__ inline void
mma<__nv_bfloat16> (float (&acc)[4], const unsigned *a, const unsigned *b)
{
  KB_FROM_8_0 ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four 8 x 8 matrices; lanes 8 i to 8 i + 7 name the rows of matrix i. */
__device__ inline void
load_matrices (unsigned *r, const void *row)
{
  unsigned address = (unsigned) __cvta_generic_to_shared (row);
  asm volatile ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ inline void
load_matrices_transposed (unsigned *r, const void *row)
{
  unsigned address = (unsigned) __cvta_generic_to_shared (row);
  asm volatile ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

/* A from 16 rows of 16; from 16 columns of 16 (memory holds its transpose). */
template <typename T> __device__ void
load_a (unsigned *r, const T *at, int stride)
{
  int lane = threadIdx.x % 32;
  load_matrices (r, at + lane % 16 * stride + lane / 16 * 8);
}

template <typename T> __device__ void
load_a_transposed (unsigned *r, const T *at, int stride)
{
  int lane = threadIdx.x % 32;
  load_matrices_transposed (r, at + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8);
}

/* B, 16 x 16, from 16 rows of 16; from its transpose. */
template <typename T> __device__ void
load_b (unsigned *r, const T *at, int stride)
{
  int lane = threadIdx.x % 32;
  load_matrices_transposed (r, at + lane % 16 * stride + lane / 16 * 8);
}

template <typename T> __device__ void
load_b_transposed (unsigned *r, const T *at, int stride)
{
  int lane = threadIdx.x % 32;
  load_matrices (r, at + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8);
}

/* 16 bytes to shared memory, beside what the thread does next; and the end of all of the
 * thread's. */
__device__ inline void
copy_async (void *to, const void *from)
{
  unsigned address = (unsigned) __cvta_generic_to_shared (to);
  KB_FROM_8_0 ("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(address), "l"(from) : "memory");
}

__device__ inline void
wait_copies ()
{
  KB_FROM_8_0 ("cp.async.wait_all;" : : : "memory");
}

}

#endif
