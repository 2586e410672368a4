/* Lists of kernels by their names, or several joined by "+": the entries of a later one go before those of
 * the one before it, and what each is based on stands behind both. "a+b", both based on c, is b over a over
 * c. */
#include <string.h>

#include "base/handover.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"

static LsRecipes *
load_one (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_KERNELS, name, diags);
  return doc ? ls_recipes_read (doc, diags) : NULL;
}

static bool
has_list (const LsRecipes *chain, const char *name)
{
  for (; chain; chain = chain->base)
    if (strcmp (chain->name, name) == 0)
      return true;
  return false;
}

/* What a later list is based on, where the earlier ones are not, behind these. */
static void
put_behind (LsRecipes *earlier, LsRecipes *base)
{
  LsRecipes *end = earlier;
  while (end->base)
    end = end->base;
  if (base && !has_list (earlier, base->name))
    end->base = base;
  else
    ls_recipes_unref (base);
}

GStrv
ls_recipes_parts (const char *text)
{
  if (!g_file_test (text, G_FILE_TEST_EXISTS))
    return g_strsplit (text, "+", -1);
  GStrv one = g_new0 (char *, 2); /* a file, whose name may have a "+" */
  one[0] = g_strdup (text);
  return one;
}

LsRecipes *
ls_recipes_load (const char *name, LsDiagList *diags)
{
  g_auto (GStrv) parts = ls_recipes_parts (name);
  guint n = g_strv_length (parts);
  if (n < 2)
    return load_one (name, diags);
  g_autoptr (LsRecipes) all = NULL;
  for (guint i = 0; i < n; i++) {
    LsRecipes *list = load_one (parts[i], diags);
    if (!list)
      return NULL;
    if (all) {
      put_behind (all, list->base);
      list->base = all;
    }
    all = list;
  }
  g_free (all->name);
  all->name = g_strdup (name);
  return g_steal_pointer (&all);
}

static GPtrArray *
load_all (void)
{
  GPtrArray *all = g_ptr_array_new ();
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_KERNELS);
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsRecipes *list = load_one (((const LsDataEntry *) entries->pdata[i])->path, diags);
    if (list)
      g_ptr_array_add (all, list);
  }
  return all;
}

const GPtrArray *
ls_recipes_all (void)
{
  static GPtrArray *all;
  static gsize is_made;
  if (ls_once_enter (&is_made)) {
    all = load_all ();
    ls_once_leave (&is_made);
  }
  return all;
}
