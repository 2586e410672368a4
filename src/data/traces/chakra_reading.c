/* data/traces/chakra_reading.c — what the parts of reading Chakra traces share: complaints, and texts that
 * are kept once. */
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
