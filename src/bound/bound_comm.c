#include "bound/bound_parts.h"

#include "exec/shortcuts/plan_bound.h"

/* As the replay may round its rates. */
static LsTime
group_time (const BoundComm *c, LsCollKind kind, uint64_t bytes, const uint32_t *gpus, uint32_t n)
{
  return (LsTime) ((double) ls_call_time (c->times, c->cluster, kind, bytes, gpus, n) * LS_RATE_ROUNDING);
}

/* Members that are `stride` apart, from the first rank of each stage on (plan/mesh.h). */
static LsTime
fastest (const BoundComm *c, LsCollKind kind, uint64_t bytes, uint32_t n, uint32_t stride)
{
  const LsStrategy *s = c->s;
  uint32_t per_stage = s->tp * s->cp * s->dp;
  LsTime least = LS_TIME_NEVER;
  if (n == 1 || bytes == 0)
    return 0;
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t stage = 0; stage < s->pp; stage++) {
    for (uint32_t i = 0; i < n; i++)
      gpus[i] = ls_cluster_gpu_of (&c->cluster->spec, stage * per_stage + i * stride);
    LsTime time = group_time (c, kind, bytes, gpus, n);
    least = MIN (least, time);
  }
  return least;
}

LsTime
bound_tp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->tp, 1);
}

LsTime
bound_dp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->cp * c->s->dp, c->s->tp);
}

LsTime
bound_send_time (const BoundComm *c, uint64_t bytes)
{
  const LsStrategy *s = c->s;
  uint32_t per_stage = s->tp * s->cp * s->dp;
  LsTime least = LS_TIME_NEVER;
  if (s->pp == 1)
    return 0;
  for (uint32_t from = 0; from < s->pp; from++)
    for (int is_back = 0; is_back < 2; is_back++) {
      uint32_t to = (from + (is_back ? s->pp - 1 : 1)) % s->pp;
      const LsClusterSpec *spec = &c->cluster->spec;
      const uint32_t gpus[]
          = { ls_cluster_gpu_of (spec, from * per_stage), ls_cluster_gpu_of (spec, to * per_stage) };
      LsTime time = group_time (c, LS_COLL_SEND_RECV, bytes, gpus, 2);
      least = MIN (least, time);
    }
  return least;
}
