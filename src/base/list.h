/* base/list.h — lists whose elements own something, and lists from text. */
#ifndef LS_BASE_LIST_H
#define LS_BASE_LIST_H

#include <glib.h>
#include <stdbool.h>
#include <string.h>

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

/* Defines ls_clear_N_texts(), the `clear` of structs whose first N members are such texts. */
#define LS_DEFINE_CLEAR_TEXTS(n)                                                                             \
  static inline void ls_clear_##n##_texts (gpointer element)                                                 \
  {                                                                                                          \
    for (int i = 0; i < n; i++)                                                                              \
      ls_clear_text ((char **) element + i);                                                                 \
  }
LS_DEFINE_CLEAR_TEXTS (2)
LS_DEFINE_CLEAR_TEXTS (3)
LS_DEFINE_CLEAR_TEXTS (4)
LS_DEFINE_CLEAR_TEXTS (5)

/* Appends a copy of the element; returns where it lies until the list grows. */
static inline gpointer
ls_list_add (GArray *list, gconstpointer element)
{
  g_array_append_vals (list, element, 1);
  return list->data + (gsize) (list->len - 1) * g_array_get_element_size (list);
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

/* Whether a word is one of these, with blanks between; words NULL: none is. */
static inline bool
ls_is_one_of (const char *word, const char *words)
{
  const gsize n = strcspn (word, " ");
  const char *p = words && n > 0 && word[n] == '\0' ? strstr (words, word) : NULL;
  while (p && ((p > words && p[-1] != ' ') || (p[n] != ' ' && p[n] != '\0')))
    p = strstr (p + n, word);
  return p != NULL;
}

/* Texts (char *) from one on, with that between; newly allocated. texts NULL: none. */
static inline char *
ls_joined (const GPtrArray *texts, guint from, const char *between)
{
  GString *all = g_string_new (NULL);
  for (guint i = from; texts && i < texts->len; i++)
    g_string_append_printf (all, "%s%s", i > from ? between : "", (const char *) texts->pdata[i]);
  return g_string_free (all, FALSE);
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
