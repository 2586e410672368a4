/* data/traces/chakra_reading.c — what the parts of reading Chakra traces share: complaints, texts that are
 * kept once, and the files of a folder. */
#include <string.h>

#include "data/text/read_file.h"
#include "data/traces/chakra_read.h"

/* --- complaints --------------------------------------------------------------------------- */

bool
chakra_complain (RankReading *x, const ChakraNode *node, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *place = node ? g_strdup_printf ("node %" G_GUINT64_FORMAT ": ", node->id) : g_strdup ("");
  ls_diag_add (x->all->diags, LS_ERROR_INPUT, x->all->name, 0, 0, NULL, NULL, NULL, "rank %u: %s%s", x->rank,
               place, message);
  x->ok = false;
  return false;
}

/* --- texts that are kept once -------------------------------------------------------------- */

void
chakra_texts_init (ChakraTexts *t)
{
  *t = (ChakraTexts) { g_ptr_array_new_with_free_func (g_free), g_hash_table_new (g_str_hash, g_str_equal),
                       0 };
}

void
chakra_texts_clear (ChakraTexts *t)
{
  g_hash_table_unref (t->index);
  g_ptr_array_unref (t->list);
}

uint32_t
chakra_text_index (ChakraTexts *t, const char *text)
{
  gpointer found = g_hash_table_lookup (t->index, text);
  if (found)
    return GPOINTER_TO_UINT (found) - 1;
  char *kept = g_strdup (text);
  g_ptr_array_add (t->list, kept);
  t->n_bytes += strlen (kept);
  g_hash_table_insert (t->index, kept, GUINT_TO_POINTER (t->list->len));
  return t->list->len - 1;
}

bool
chakra_check_size (RankReading *x, size_t n)
{
  const ChakraReading *all = x->all;
  n += all->kernels.n_bytes + all->segments.n_bytes + all->programs.n_bytes + all->n_bytes;
  return n <= LS_MAX_INPUT_BYTES
      || chakra_complain (x, NULL, "as a trace the files take more than %zu bytes", LS_MAX_INPUT_BYTES);
}

/* --- the files of a folder ------------------------------------------------------------------------ */

/* "trace" and 12 of "trace.12.et". */
static bool
split_name (const char *name, char **ret_prefix, guint64 *ret_rank)
{
  g_auto (GStrv) parts = g_strsplit (name, ".", -1);
  guint n = g_strv_length (parts);
  if (n < 3 || strcmp (parts[n - 1], "et") != 0
      || !g_ascii_string_to_unsigned (parts[n - 2], 10, 0, LS_CHAKRA_MAX_RANKS - 1, ret_rank, NULL))
    return false;
  *ret_prefix = g_strndup (name, strlen (name) - strlen (parts[n - 2]) - strlen ("..et"));
  return true;
}

static GPtrArray *
refuse (const char *folder, LsDiagList *diags, const char *message)
{
  ls_diag_add (diags, LS_ERROR_INPUT, folder, 0, 0, NULL, NULL, NULL, "%s", message);
  return NULL;
}

GPtrArray *
chakra_find_files (const char *folder, LsDiagList *diags)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, &error);
  if (!dir)
    return refuse (folder, diags, error->message);
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *first = NULL;
  guint n = 0;
  for (const char *name = g_dir_read_name (dir); name; name = g_dir_read_name (dir)) {
    g_autofree char *prefix = NULL;
    guint64 rank;
    if (!split_name (name, &prefix, &rank))
      continue;
    if (first && strcmp (first, prefix) != 0)
      return refuse (folder, diags,
                     "expected traces of one job, NAME.0.et, NAME.1.et, ...; got several names");
    first = first ? first : g_steal_pointer (&prefix);
    if (rank >= paths->len)
      g_ptr_array_set_size (paths, (int) rank + 1);
    g_free (paths->pdata[rank]);
    paths->pdata[rank] = g_build_filename (folder, name, NULL);
    n++;
  }
  if (n == 0 || n != paths->len)
    return refuse (folder, diags,
                   "expected the traces of all ranks, NAME.0.et, NAME.1.et, ...; some are missing");
  return g_steal_pointer (&paths);
}
