/* Any text as a quantity: refused with what was expected, or read, in range, and what
 * is printed for people reads back as nearly the same. */
#include "fuzz.h"

#include <math.h>

#include <lockstep/units.h>

/* What is printed has a digit after the point. */
static void
check_near (double got, double printed)
{
  g_assert (fabs (got - printed) <= 0.06 * fabs (got) + 1);
}

static void
check_time (const char *text)
{
  LsTime t = -1, again;
  const char *expected = NULL;
  if (!ls_parse_time (text, &t, &expected)) {
    g_assert (t == -1 && expected);
    return;
  }
  g_assert (t >= 0 && t < LS_TIME_NEVER);
  g_autofree char *printed = ls_format_time (t);
  if (ls_parse_time (printed, &again, NULL)) /* minutes and hours are for people only */
    check_near ((double) t, (double) again);
}

static void
check_bytes (const char *text)
{
  uint64_t bytes = UINT64_MAX, again;
  const char *expected = NULL;
  if (!ls_parse_bytes (text, &bytes, &expected)) {
    g_assert (bytes == UINT64_MAX && expected);
    return;
  }
  g_autofree char *printed = ls_format_bytes (bytes);
  if (ls_parse_bytes (printed, &again, NULL))
    check_near ((double) bytes, (double) again);
}

static void
check_rate (const char *text, bool (*parse) (const char *, double *, const char **),
            char *(*format) (double) )
{
  double rate = -1, again;
  const char *expected = NULL;
  if (!parse (text, &rate, &expected)) {
    g_assert (rate == -1 && expected);
    return;
  }
  g_assert (isfinite (rate) && rate >= 0);
  g_autofree char *printed = format (rate);
  if (parse (printed, &again, NULL))
    check_near (rate, again);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autofree char *text = fuzz_text (data, n);
  check_time (text);
  check_bytes (text);
  check_rate (text, ls_parse_rate, ls_format_rate);
  check_rate (text, ls_parse_flops, ls_format_flops);
  return 0;
}
