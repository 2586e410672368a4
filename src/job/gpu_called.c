#include "job/gpu_called.h"

#include <glib.h>
#include <string.h>

#include "data/datadir.h"

/* The words of a name, small: "NVIDIA A100-SXM4-80GB" has nvidia, a100, sxm4, 80gb. */
static char **
words_of (const char *name)
{
  g_autofree char *small = g_ascii_strdown (name, -1);
  return g_strsplit_set (small, " -_()", -1);
}

/* "80gb" says "80g", but "h200" not "h20". */
static bool
says (const char *theirs, const char *ours)
{
  return *ours && g_str_has_prefix (theirs, ours) && !g_ascii_isdigit (theirs[strlen (ours)]);
}

/* Does the driver's name say all words of ours? "a100-80g": a100 and 80gb. */
static guint
matching_words (char **driver, const char *name)
{
  g_auto (GStrv) ours = words_of (name);
  guint n = 0;
  for (char **word = ours; *word; word++) {
    bool found = false;
    for (char **d = driver; *d && !found; d++)
      found = says (*d, *word);
    if (!found)
      return 0;
    n++;
  }
  return n;
}

char *
ls_gpu_called (const char *driver_name)
{
  g_autoptr (GPtrArray) gpus = ls_data_list (LS_DATA_GPUS);
  g_auto (GStrv) words = words_of (driver_name);
  guint best = 0;
  const char *name = NULL;
  for (guint i = 0; i < gpus->len; i++) {
    const LsDataEntry *entry = g_ptr_array_index (gpus, i);
    guint n = matching_words (words, entry->name);
    if (n > 0 && n == best)
      name = NULL;
    if (n > best)
      name = entry->name;
    best = MAX (best, n);
  }
  return g_strdup (name);
}

bool
ls_gpu_is_other (const char *driver_name, const char *name)
{
  g_autofree char *called = ls_gpu_called (driver_name);
  if (!called)
    return false;
  g_auto (GStrv) theirs = words_of (called), ours = words_of (name);
  for (char **word = theirs; *word; word++)
    if (!g_strv_contains ((const char *const *) ours, *word))
      return true;
  return false;
}
