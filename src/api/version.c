#include <lockstep/lockstep.h>

const char *
ls_version (void)
{
  return LS_VERSION;
}
