/* The version: lockstep/version.h. */
#include <lockstep/version.h>

const char *
ls_version (void)
{
  return LS_VERSION;
}
