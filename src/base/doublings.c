#include "base/doublings.h"

#include <string.h>

#include <lockstep/units.h>

static bool
read_number (const char *text, guint32 max, guint64 *ret)
{
  return ls_parse_count (text, ret, NULL) && *ret >= 1 && *ret <= max;
}

bool
ls_doublings_add (const char *text, guint32 max, GArray *values)
{
  const char *dots = strstr (text, "..");
  g_autofree char *low = dots ? g_strndup (text, (gsize) (dots - text)) : g_strdup (text);
  guint64 first, last;
  if (!read_number (low, max, &first) || !read_number (dots ? dots + 2 : low, max, &last) || last < first)
    return false;
  for (; first <= last; first *= 2) {
    guint32 value = (guint32) first;
    g_array_append_val (values, value);
  }
  return true;
}
