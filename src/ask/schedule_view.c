#include "ask/schedule_view.h"

double
ls_schedule_bubble (LsTime ideal, LsTime total)
{
  return total > 0 ? 1 - (double) ideal / (double) total : 0;
}

double
ls_schedule_number (LsTime t, bool has_unit)
{
  return has_unit ? ls_time_to_s (t) : (double) t / (double) LS_SCHEDULE_ONE;
}

char *
ls_schedule_time_text (LsTime t, bool has_unit)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  if (has_unit)
    return ls_format_time (t);
  return g_strdup (g_ascii_formatd (buffer, sizeof buffer, "%.10g", ls_schedule_number (t, false)));
}

double
ls_schedule_peak (const LsSchedEval *e, uint32_t rank, LsPeakCount count)
{
  return count == LS_PEAK_TO_W ? e->ranks[rank].held_peak * e->per_chunk
                               : e->ranks[rank].split_peak * e->per_chunk / 2;
}

LsPeakCount
ls_schedule_count (bool is_searched)
{
  return is_searched ? LS_PEAK_BY_HALVES : LS_PEAK_TO_W;
}
