#include "data/datadir_called.h"

#include <string.h>

#include "data/text/json_doc.h"

char *
ls_data_folded (const char *name)
{
  GString *folded = g_string_new (NULL);
  for (const char *at = name; *at; at++)
    if (!strchr (" ._-", *at))
      g_string_append_c (folded, g_ascii_tolower (*at));
    else if (folded->len > 0 && folded->str[folded->len - 1] != '-')
      g_string_append_c (folded, '-');
  return g_string_free (folded, FALSE);
}

static bool
is_called (const char *name, const char *folded)
{
  g_autofree char *own = ls_data_folded (name);
  return g_str_equal (own, folded);
}

/* --- "also" --------------------------------------------------------------------------------- */

/* "v5p-1024 8x8x8": what stands behind the blank if what stands before it is called so, else NULL. */
static const char *
shape_of (const char *slice, const char *folded)
{
  const char *blank = strchr (slice, ' ');
  g_autofree char *name = blank ? g_strndup (slice, (gsize) (blank - slice)) : NULL;
  return name && is_called (name, folded) ? blank + 1 : NULL;
}

/* The text of a list of the file that is called so. What is wrong with the file, who reads it says. */
static char *
find_in_list (const char *path, const char *key, const char *folded)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_open (path, diags);
  const cJSON *list = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key) : NULL, *one;
  bool is_slices = g_str_equal (key, "slices");
  cJSON_ArrayForEach (one, list)
  {
    const char *text = cJSON_IsString (one) ? one->valuestring : "";
    if (is_slices ? shape_of (text, folded) != NULL : is_called (text, folded))
      return g_strdup (text);
  }
  return NULL;
}

static bool
is_also (const LsDataEntry *entry, const char *folded)
{
  g_autofree char *also = find_in_list (entry->path, "also", folded);
  g_autofree char *slice = also ? NULL : find_in_list (entry->path, "slices", folded);
  return also || slice;
}

char *
ls_data_slice_named (const char *path, const char *name)
{
  if (ls_data_is_path (name))
    return NULL;
  g_autofree char *folded = ls_data_folded (name);
  g_autofree char *slice = find_in_list (path, "slices", folded);
  if (!slice)
    return NULL;
  g_auto (GStrv) axes = g_strsplit (shape_of (slice, folded), "x", -1);
  g_autofree char *list = g_strjoinv (",", axes);
  return g_strdup_printf ("node.torus.slice=[%s]", list);
}

char *
ls_data_find_called (LsDataKind kind, const char *name)
{
  g_autofree char *folded = ls_data_folded (name);
  g_autoptr (GPtrArray) entries = ls_data_list (kind);
  for (guint i = 0; i < entries->len && *folded; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    if (is_called (entry->name, folded))
      return g_strdup (entry->path);
  }
  for (guint i = 0; i < entries->len && *folded && kind == LS_DATA_CLUSTERS; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    if (is_also (entry, folded))
      return g_strdup (entry->path);
  }
  return NULL;
}

/* --- clusters by their accelerators ------------------------------------------------------- */

#define MOST_NAMED 12

/* A word of letters and a number: "h100", not "nvidia" or "80". */
static bool
may_name_a_gpu (const char *word)
{
  return g_ascii_isalpha (*word) && strpbrk (word, "0123456789");
}

/* Those that a word is the name of, else the beginning of: "a100" of "a100-40g" and "a100-80g". */
static void
add_gpus (GPtrArray *gpus, const GPtrArray *entries, const char *word)
{
  size_t n = strlen (word);
  for (int is_beginning = 0; is_beginning < 2 && gpus->len == 0; is_beginning++)
    for (guint i = 0; i < entries->len; i++) {
      const LsDataEntry *entry = entries->pdata[i];
      g_autofree char *folded = ls_data_folded (entry->name);
      if (strncmp (folded, word, n) == 0 && folded[n] == (is_beginning ? '-' : '\0'))
        g_ptr_array_add (gpus, g_strdup (entry->name));
    }
}

/* Names of accelerators, char *; that of the first word that names one. */
static GPtrArray *
gpus_named (const char *folded)
{
  GPtrArray *gpus = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) words = g_strsplit (folded, "-", -1);
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_GPUS);
  for (char **word = words; *word; word++)
    if (may_name_a_gpu (*word))
      add_gpus (gpus, entries, *word);
  return gpus;
}

static bool
has_gpu (const LsDataEntry *cluster, const GPtrArray *gpus)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, cluster->path, diags);
  const cJSON *gpu = doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu") : NULL;
  for (guint i = 0; i < gpus->len && cJSON_IsString (gpu); i++)
    if (g_str_equal (gpus->pdata[i], gpu->valuestring))
      return true;
  return false;
}

static char *
join (const GPtrArray *names, const char *last)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < MIN (names->len, MOST_NAMED); i++)
    g_string_append_printf (text, "%s%s",
                            i == 0                    ? ""
                                : i + 1 == names->len ? last
                                                      : ", ",
                            (const char *) names->pdata[i]);
  if (names->len > MOST_NAMED)
    g_string_append_printf (text, " and %u more (lockstep list clusters)", names->len - MOST_NAMED);
  return g_string_free (text, FALSE);
}

/* "dgx-a100": what was typed are several words, and the beginning of a cluster's name. */
static bool
begins_a_cluster (const char *folded, const GPtrArray *clusters)
{
  size_t n = strlen (folded);
  bool begins = false;
  for (guint i = 0; i < clusters->len && strchr (folded, '-'); i++) {
    g_autofree char *name = ls_data_folded (((const LsDataEntry *) clusters->pdata[i])->name);
    begins = begins || (strncmp (name, folded, n) == 0 && name[n] == '-');
  }
  return begins;
}

char *
ls_data_clusters_with (const char *name)
{
  g_autofree char *folded = ls_data_folded (name);
  g_autoptr (GPtrArray) gpus = gpus_named (folded), entries = ls_data_list (LS_DATA_CLUSTERS);
  if (gpus->len == 0 || begins_a_cluster (folded, entries))
    return NULL;
  g_autoptr (GPtrArray) clusters = g_ptr_array_new ();
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    if (has_gpu (entry, gpus))
      g_ptr_array_add (clusters, entry->name);
  }
  g_autofree char *which = join (gpus, " or "), *where = join (clusters, " and ");
  if (clusters->len == 0)
    return g_strdup_printf ("none has the accelerator %s: a file of your own may name it in \"gpu\"", which);
  return g_strdup_printf ("the accelerator %s is in %s", which, where);
}
