/* base/error.c — the error domain of error.h. */
#include <lockstep/error.h>

#include "base/printable.h"

GQuark
ls_error_quark (void)
{
  return g_quark_from_static_string ("lockstep-error-quark");
}

void
ls_error_make_printable (GError *error)
{
  char *shown = ls_printable_lines (error->message);
  g_free (error->message);
  error->message = shown;
}

int
ls_error_exit_code (const GError *error)
{
  if (!error)
    return 0;
  if (error->domain != LS_ERROR)
    return 1;
  switch ((LsErrorCode) error->code) {
  case LS_ERROR_USAGE:
    return 2;
  case LS_ERROR_INPUT:
    return 3;
  case LS_ERROR_CONFLICT:
  case LS_ERROR_UNSUPPORTED:
  case LS_ERROR_NO_FIT:
    return 4;
  case LS_ERROR_TOLERANCE:
    return 5;
  case LS_ERROR_STOPPED:
    return 6;
  case LS_ERROR_FAILED:
  case LS_ERROR_IO:
  case LS_ERROR_LIMIT:
  case LS_ERROR_DEADLOCK:
    break;
  }
  return 1;
}
