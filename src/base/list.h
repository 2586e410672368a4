/* base/list.h — lists whose elements own something, and lists from text. */
#ifndef LS_BASE_LIST_H
#define LS_BASE_LIST_H

#include <glib.h>
#include <stdbool.h>

/* Of elements of that size, each of which `clear` gets before it goes. */
static inline GArray *
ls_list_new (gsize size, GDestroyNotify clear)
{
  GArray *list = g_array_new (FALSE, TRUE, (guint) size);
  g_array_set_clear_func (list, clear);
  return list;
}

/* The `clear` of texts (char *), and of structs that own one, their first member. */
static inline void
ls_clear_text (gpointer element)
{
  g_clear_pointer ((char **) element, g_free);
}

/* Where in a list that is in the order of `compare` the first is that does not come before key; its length:
 * all do. */
static inline guint
ls_list_first_from (const GArray *list, GCompareFunc compare, gconstpointer key)
{
  guint low = 0, high = list->len, size = g_array_get_element_size ((GArray *) list);
  while (low < high) {
    guint middle = low + (high - low) / 2;
    if (compare (list->data + (gsize) middle * size, key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Words with commas between them, at least one, each of which `add` appends. False if it refuses one: *list
 * is then as it was. */
static inline bool
ls_list_parse (const char *text, gsize size, bool (*add) (char *word, GArray *list), GArray **list)
{
  g_autoptr (GArray) read = g_array_new (FALSE, FALSE, (guint) size);
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  for (char **word = words; *word; word++)
    if (!add (*word, read))
      return false;
  if (read->len == 0)
    return false;
  g_clear_pointer (list, g_array_unref);
  *list = g_steal_pointer (&read);
  return true;
}

#endif
