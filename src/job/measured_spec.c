#include "job/measured_spec.h"

#include <string.h>

#include <lockstep/units.h>

#include "data/measured/read_cases.h"

/* Seconds of "13.9s" or, if numbers may stand alone, "13.9". */
static bool
parse_seconds (const char *text, bool may_lack_unit, double *ret_s)
{
  LsTime time;
  char *end;
  if (ls_parse_time (text, &time, NULL)) {
    *ret_s = ls_time_to_s (time);
  } else {
    *ret_s = g_ascii_strtod (text, &end);
    if (!may_lack_unit || end == text || *end)
      return false;
  }
  return *ret_s >= LS_MEASURED_MIN_S && *ret_s <= LS_MEASURED_MAX_S; /* not NAN either */
}

static bool
parse_number (const char *text, double *ret)
{
  char *end;
  double value = g_ascii_strtod (text, &end);
  if (end == text || *end || !(value > 0 && value < 1e30))
    return false;
  *ret = value;
  return true;
}

/* One of "tflops=145". */
static bool
parse_item (const char *item, LsMeasured *m)
{
  uint64_t bytes;
  if (g_str_has_prefix (item, "tflops=")) {
    if (!parse_number (item + strlen ("tflops="), &m->flops_per_gpu))
      return false;
    m->flops_per_gpu *= 1e12;
    return true;
  }
  if (g_str_has_prefix (item, "memory=")) {
    if (!ls_parse_bytes (item + strlen ("memory="), &bytes, NULL) || bytes == 0)
      return false;
    m->memory_bytes = (double) bytes;
    return true;
  }
  if (g_str_has_prefix (item, "tokens_per_s="))
    return parse_number (item + strlen ("tokens_per_s="), &m->tokens_per_s);
  return g_str_has_prefix (item, "tokens_per_s_per_gpu=")
      && parse_number (item + strlen ("tokens_per_s_per_gpu="), &m->tokens_per_s_per_gpu);
}

static void
take (LsMeasured *m, LsMeasured *parsed, const char *source)
{
  ls_measured_clear (m);
  *m = *parsed;
  m->source = source && *source ? g_strdup (source) : NULL;
}

bool
ls_measured_parse (const char *text, LsMeasured *m)
{
  LsMeasured parsed = { 0 };
  g_auto (GStrv) parts = g_strsplit (text, ":", 2);
  g_auto (GStrv) items = g_strsplit (parts[0] ? parts[0] : "", ",", -1);
  if (!items[0] || !parse_seconds (items[0], false, &parsed.step_s))
    return false;
  for (char **item = items + 1; *item; item++)
    if (!parse_item (*item, &parsed))
      return false;
  if (parsed.tokens_per_s > 0 && parsed.tokens_per_s_per_gpu > 0)
    return false;
  take (m, &parsed, parts[1]);
  return true;
}

bool
ls_published_parse (const char *text, LsMeasured *m)
{
  LsMeasured parsed = { .is_published = true };
  g_auto (GStrv) parts = g_strsplit (text, ":", 2);
  if (!parts[0] || !parse_seconds (parts[0], true, &parsed.step_s))
    return false;
  take (m, &parsed, parts[1]);
  return true;
}
