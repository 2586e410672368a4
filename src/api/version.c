/* api/version.c — the version of version.h. */
#include <lockstep/lockstep.h>

const char *
ls_version (void)
{
  return LS_VERSION;
}

const char *
ls_licence (void)
{
#ifdef LS_HAS_GSL
  return "Apache-2.0 AND GPL-3.0-or-later";
#else
  return "Apache-2.0";
#endif
}
