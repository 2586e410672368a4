#include "base/order.h"

#include <string.h>

#include "base/list.h"

#define ORDER_OF(type, a, b) LS_ORDER (*(const type *) (a), *(const type *) (b))

/* By one member. */
static int
compare_members (char type, const void *a, const void *b)
{
  return type == 'b' ? ORDER_OF (uint8_t, a, b)
      : type == 'i'  ? ORDER_OF (int, a, b)
      : type == 'u'  ? ORDER_OF (uint32_t, a, b)
      : type == 'l'  ? ORDER_OF (int64_t, a, b)
      : type == 'm'  ? ORDER_OF (uint64_t, a, b)
      : type == 'd'  ? ORDER_OF (double, a, b)
                     : strcmp (*(char *const *) a, *(char *const *) b);
}

int
ls_compare_by (const void *a, const void *b, void *keys)
{
  int order = 0;
  for (const LsSortKey *k = keys; k->type && order == 0; k++) {
    order = compare_members (k->type, (const char *) a + k->offset, (const char *) b + k->offset);
    order = k->is_falling ? -order : order;
  }
  return order;
}

void
ls_sort_by (GArray *list, const LsSortKey *keys)
{
  g_array_sort_with_data (list, ls_compare_by, (gpointer) keys);
}

gpointer
ls_list_like (GArray *list, const LsSortKey *keys, gconstpointer element)
{
  const gsize size = g_array_get_element_size (list);
  for (guint i = 0; i < list->len; i++)
    if (ls_compare_by (list->data + i * size, element, (gpointer) keys) == 0)
      return list->data + i * size;
  return ls_list_add (list, element);
}
