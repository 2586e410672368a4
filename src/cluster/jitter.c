#include "cluster/jitter.h"

#include <glib.h>

void
ls_jitter_clear (LsJitter *j)
{
  g_free (j->name);
  g_free (j->source);
  *j = (LsJitter) { 0 };
}
