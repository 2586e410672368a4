#include "compute/around.h"

#include <glib.h>

bool
ls_around_is_measured (const LsAround *a)
{
  return a->host_launch > 0 || a->kernel_gap > 0 || a->graph_gap > 0 || a->priority_wait > 0
      || a->memcpy_share > 0 || a->copy_duplex > 0 || a->streams_in_layer > 0 || a->gemms != LS_GEMMS_UNKNOWN
      || a->lost_tiles > 0 || a->lost_clusters > 0 || a->lost_told > 0 || a->waves > 0;
}

LsGemms
ls_around_gemms (const LsAround *a, bool is_persistent, bool is_dynamic)
{
  if (a->gemms != LS_GEMMS_UNKNOWN)
    return (LsGemms) a->gemms;
  return !is_persistent ? LS_GEMMS_TILES : is_dynamic ? LS_GEMMS_CLUSTERS : LS_GEMMS_PERSISTENT;
}

double
ls_around_lost (const LsAround *a, LsGemms gemms)
{
  double lost = gemms == LS_GEMMS_PERSISTENT ? a->lost_told
      : gemms == LS_GEMMS_CLUSTERS           ? a->lost_clusters
                                             : a->lost_tiles;
  return lost > 0 ? lost : 1;
}

double
ls_around_told (const LsAround *a, LsGemms gemms)
{
  return a->lost_told > 0 || gemms != LS_GEMMS_CLUSTERS ? ls_around_lost (a, LS_GEMMS_PERSISTENT)
                                                        : ls_around_lost (a, LS_GEMMS_CLUSTERS);
}

double
ls_around_waves (const LsAround *a)
{
  return a->waves > 0 ? a->waves : 2;
}

double
ls_around_duplex (const LsAround *a)
{
  return a->copy_duplex > 0 ? a->copy_duplex : 1;
}

double
ls_around_streams (const LsAround *a)
{
  return a->streams_in_layer > 0 ? a->streams_in_layer : 1;
}

LsTime
ls_around_launch (const LsAround *a, LsTime launch, LsTime gap)
{
  return a->kernel_gap > 0 ? MAX (0, launch - gap) + a->kernel_gap : launch;
}

LsTime
ls_around_graph_saves (const LsAround *a, LsTime launch)
{
  return a->kernel_gap > 0 && a->graph_gap > 0 ? MIN (launch, a->kernel_gap - a->graph_gap) : 0;
}
