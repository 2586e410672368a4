#include "exec/messages/messages.h"
#include "exec/messages/way.h"

static void
note_end (void *context, void *owner, LsTime at)
{
  *(LsTime *) owner = at;
}

static LsTime
after_base (const LsScript *script, LsTime end)
{
  return end >= LS_TIME_NEVER - script->base ? LS_TIME_NEVER : script->base + end;
}

static double *
capacities_of (const LsCluster *c)
{
  double *capacity = g_new (double, ls_cluster_n_resources (c));
  for (uint32_t i = 0; i < ls_cluster_n_resources (c); i++)
    capacity[i] = ls_cluster_resource_capacity (c, i);
  return capacity;
}

LsTime
ls_messages_time_by_events (const LsScript *script, const LsCluster *cluster, const LsProgress *progress)
{
  uint32_t n = ls_cluster_n_resources (cluster);
  g_autofree double *capacity = capacities_of (cluster);
  LsEngine engine;
  LsTime end = LS_TIME_NEVER;
  ls_engine_init (&engine, &ls_evq_radix, NULL);
  engine.stop_at = MESSAGES_CLOCK_END;
  MessageNet net
      = { .engine = &engine, .flows = ls_flow_net_new (&engine, n, capacity, false), .progress = progress };
  net.leases = leases_new (n, capacity, messages_revoked);
  Messages *m = messages_new (&net, script, note_end);
  messages_begin (m, &end, NULL);
  LsEngineEnd how = ls_engine_run (&engine);
  g_assert (how == LS_ENGINE_STOPPED || (how == LS_ENGINE_DRAINED && end != LS_TIME_NEVER));
  messages_free (m);
  leases_free (net.leases);
  ls_flow_net_free (net.flows);
  ls_engine_clear (&engine);
  return after_base (script, end);
}

LsTime
ls_messages_time_alone (const LsScript *script, const LsCluster *cluster, const LsProgress *progress)
{
  g_autofree double *capacity = capacities_of (cluster);
  LsTime end;
  if (messages_time_unshared (script, capacity, &end))
    return after_base (script, end);
  return ls_messages_time_by_events (script, cluster, progress);
}
