#include "cluster/ecmp.h"

#include "cluster/index.h"

static uint64_t
mix (uint64_t x)
{
  x += UINT64_C (0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
  return x ^ x >> 31;
}

uint32_t
ls_ecmp_choose (const LsClusterSpec *spec, const LsFabricFlow *flow, uint32_t switch_number, uint32_t n)
{
  uint64_t h = mix (spec->seed);
  h = mix (h + ((uint64_t) flow->node_from << 32 | flow->nic_from));
  h = mix (h + ((uint64_t) flow->node_to << 32 | flow->nic_to));
  h = mix (h + ((uint64_t) flow->channel << 32 | switch_number));
  return (uint32_t) ((h >> 32) * n >> 32);
}
