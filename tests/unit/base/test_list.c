#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "ls_test.h"

static void
texts_are_freed (void)
{
  g_autoptr (GArray) list = ls_list_new (sizeof (char *), ls_clear_text);
  char *text = g_strdup ("a"), *none = NULL;
  g_array_append_val (list, text);
  g_array_append_val (list, none);
  g_array_set_size (list, 1);
  LS_CHECK_STR (g_array_index (list, char *, 0), "a");
  ls_clear_text (&g_array_index (list, char *, 0));
  LS_CHECK (g_array_index (list, char *, 0) == NULL);
}

static void
the_first_that_is_not_before (void)
{
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (int64_t));
  const int64_t values[] = { 1, 3, 3, 7 };
  const struct {
    int64_t key;
    guint expected;
  } rows[] = { { 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 1 }, { 4, 3 }, { 7, 3 }, { 8, 4 } };
  LS_CHECK_INT (ls_list_first_from (list, ls_compare_int64, &values[0]), ==, 0);
  g_array_append_vals (list, values, G_N_ELEMENTS (values));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    LS_CHECK_INT (ls_list_first_from (list, ls_compare_int64, &rows[i].key), ==, rows[i].expected);
}

static bool
add_length (char *word, GArray *list)
{
  gsize n = strlen (word);
  g_array_append_val (list, n);
  return n > 0;
}

static void
a_list_is_read_whole_or_not_at_all (void)
{
  g_autoptr (GArray) list = NULL;
  LS_CHECK (!ls_list_parse ("", sizeof (gsize), add_length, &list) && list == NULL);
  LS_CHECK (ls_list_parse ("a,bcd", sizeof (gsize), add_length, &list));
  LS_CHECK (!ls_list_parse ("a,,b", sizeof (gsize), add_length, &list));
  LS_CHECK_INT (list->len, ==, 2);
  LS_CHECK_INT (g_array_index (list, gsize, 1), ==, 3);
}

typedef struct {
  bool is_last;
  uint8_t byte;
  int whole;
  uint32_t count;
  int64_t time;
  uint64_t bytes;
  double real;
  const char *name;
} Row;

/* Each row before the next by one member, whichever it is: the values are at the ends of its type. */
static void
structs_are_sorted_by_members (void)
{
  static const LsSortKey keys[]
      = { { LS_RISING (Row, is_last) }, { LS_FALLING (Row, byte) }, { LS_RISING (Row, whole) },
          { LS_FALLING (Row, count) },  { LS_RISING (Row, time) },  { LS_FALLING (Row, bytes) },
          { LS_RISING (Row, real) },    { LS_FALLING (Row, name) }, { 0 } };
  const Row rows[] = { { false, UINT8_MAX, 0, 0, 0, 0, 0, "" },
                       { false, 0, INT_MIN, 0, 0, 0, 0, "" },
                       { false, 0, INT_MAX, UINT32_MAX, 0, 0, 0, "" },
                       { false, 0, INT_MAX, 0, INT64_MIN, 0, 0, "" },
                       { false, 0, INT_MAX, 0, INT64_MAX, UINT64_MAX, 0, "" },
                       { false, 0, INT_MAX, 0, INT64_MAX, 0, -INFINITY, "" },
                       { false, 0, INT_MAX, 0, INT64_MAX, 0, 1, "b" },
                       { false, 0, INT_MAX, 0, INT64_MAX, 0, 1, "a" },
                       { true, 0, 0, 0, 0, 0, 0, "" } };
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (Row));
  for (guint i = G_N_ELEMENTS (rows); i-- > 0;)
    g_array_append_val (list, rows[i]);
  ls_sort_by (list, keys);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const Row *row = &g_array_index (list, Row, i);
    LS_CHECK_INT (ls_compare_by (row, &rows[i], (gpointer) keys), ==, 0);
  }
}

/* The first of those that are alike by all keys, and no other member counts. */
static void
what_is_not_in_a_list_is_added (void)
{
  static const LsSortKey keys[] = { { LS_RISING (Row, whole) }, { LS_FALLING (Row, name) }, { 0 } };
  const Row rows[]
      = { { .whole = 1, .name = "a" }, { .whole = 1, .name = "b" }, { .whole = 1, .name = "b" } };
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (Row));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    LS_CHECK (ls_list_add (list, &rows[i]) == &g_array_index (list, Row, i));
  Row *b = ls_list_like (list, keys, &(Row) { .whole = 1, .name = "b", .count = 7 });
  LS_CHECK (b == &g_array_index (list, Row, 1) && b->count == 0);
  Row *other = ls_list_like (list, keys, &(Row) { .whole = 2, .name = "b", .count = 7 });
  LS_CHECK_INT (list->len, ==, 4);
  LS_CHECK (other == &g_array_index (list, Row, 3) && other->whole == 2 && other->count == 7);
}

LS_TEST_SUITE (LS_TEST (texts_are_freed), LS_TEST (the_first_that_is_not_before),
               LS_TEST (a_list_is_read_whole_or_not_at_all), LS_TEST (structs_are_sorted_by_members),
               LS_TEST (what_is_not_in_a_list_is_added))
