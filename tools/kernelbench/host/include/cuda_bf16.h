/* tools/kernelbench/host/include/cuda_bf16.h — bf16 as the upper half of a float. */
#ifndef LS_KERNELBENCH_HOST_CUDA_BF16_H
#define LS_KERNELBENCH_HOST_CUDA_BF16_H

#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
  uint16_t bits;

  __nv_bfloat16 () = default;
  /* To the nearest, ties to even; of finite numbers. */
  explicit __nv_bfloat16 (float x)
  {
    uint32_t word;
    memcpy (&word, &x, sizeof word);
    bits = (uint16_t) ((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  explicit operator float () const
  {
    uint32_t word = (uint32_t) bits << 16;
    float x;
    memcpy (&x, &word, sizeof x);
    return x;
  }
};

#endif
