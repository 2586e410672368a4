#include "ask/collective/collective_table.h"

#include <math.h>

/* bytes/s */
static double
bandwidth (uint64_t bytes, double time_us)
{
  return time_us > 0 ? (double) bytes / time_us * 1e6 : 0;
}

double
ls_collective_time_us (const LsCollectiveRow *row)
{
  return (double) row->time / LS_US;
}

double
ls_collective_algbw (const LsCollectiveRow *row)
{
  return bandwidth (row->bytes, ls_collective_time_us (row));
}

double
ls_collective_busbw (const LsCollectiveRow *row)
{
  return ls_collective_algbw (row) * row->bus_factor;
}

double
ls_collective_measured_busbw (const LsCollectiveRow *row)
{
  return isnan (row->measured_us) ? NAN : bandwidth (row->bytes, row->measured_us) * row->bus_factor;
}
