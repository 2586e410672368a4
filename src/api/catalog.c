/* What there is: lists and checks of lockstep/lockstep.h. */
#include <lockstep/lockstep.h>

#include "base/suggest.h"
#include "show/catalog.h"

const char *
ls_nearest_word (const char *typed, const char *const *words)
{
  g_return_val_if_fail (typed && words, NULL);
  return ls_suggest (typed, words);
}

char *
ls_list_text (const char *kind, GError **error)
{
  return ls_catalog_list (kind, error);
}

char *
ls_check_file (const char *path, const char *model, const char *cluster, GError **error)
{
  g_return_val_if_fail (path && !model == !cluster, NULL);
  return ls_catalog_check (path, model, cluster, error);
}
