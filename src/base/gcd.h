/* base/gcd.h — the greatest common divisor, the least common multiple. */
#ifndef LS_BASE_GCD_H
#define LS_BASE_GCD_H

#include <stdint.h>

/* Of 0 and b it is b. */
static inline uint32_t
ls_gcd (uint32_t a, uint32_t b)
{
  while (b != 0) {
    uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Of numbers above 0; it must fit. */
static inline uint32_t
ls_lcm (uint32_t a, uint32_t b)
{
  return a / ls_gcd (a, b) * b;
}

#endif
