/* Pins: an object written by its field table reads back as the same bits, what equals
 * the blank or is no value is left out, and lists of objects and rows go both ways. */
#include "ls_test.h"

#include <stddef.h>
#include <string.h>

#include "data/text/field_write.h"

typedef struct {
  char *label;
  uint32_t row[3];
} Item;

typedef struct {
  char *name, *source;
  uint32_t count;
  uint64_t bytes;
  LsTime time;
  double ratio, traffic;
  bool is_on;
  int color;
  GArray *items; /* Item */
  GArray *rows;  /* uint32_t[3] */
} Thing;

static const LsEnumName colors[] = { { "red", 0 }, { "green", 1 }, { NULL } };
static const LsField item_fields[] = {
  { "label", LS_FIELD_STRING, offsetof (Item, label) },
  { "row", LS_FIELD_ROW, offsetof (Item, row), .n_row = 3, .max = 9, .expected = "up to three digits, each" },
  { NULL },
};
static const LsField row_element[]
    = { { "", LS_FIELD_ROW, .n_row = 3, .max = 9, .expected = "up to three digits, each" }, { NULL } };
static const LsField thing_fields[] = {
  LS_FIELDS_HEADER (Thing),
  { "count", LS_FIELD_UINT, offsetof (Thing, count), .min = 1 },
  { "bytes", LS_FIELD_BYTES, offsetof (Thing, bytes) },
  { "time", LS_FIELD_TIME, offsetof (Thing, time), .max = 1e18 },
  { "ratio", LS_FIELD_DOUBLE, offsetof (Thing, ratio) },
  { "traffic", LS_FIELD_BYTES_DOUBLE, offsetof (Thing, traffic) },
  { "is_on", LS_FIELD_BOOL, offsetof (Thing, is_on) },
  { "color", LS_FIELD_ENUM, offsetof (Thing, color), .names = colors },
  { "items", LS_FIELD_ARRAY, offsetof (Thing, items), .element_size = sizeof (Item), .fields = item_fields,
    .lines = true },
  { "rows", LS_FIELD_ARRAY, offsetof (Thing, rows), .element_size = 3 * sizeof (uint32_t),
    .fields = row_element },
  { NULL },
};
static const Thing blank = { .color = -1, .time = LS_TIME_NEVER };

static char *
write_thing (const Thing *t)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  ls_json_out_begin_object (&w, NULL);
  ls_fields_write (thing_fields, &w, t, &blank);
  ls_json_out_end_object (&w);
  return g_string_free (text, FALSE);
}

/* An object within a file, so that it may do without schema, name and source. */
static bool
read_thing (const char *object, Thing *ret, char **ret_problems)
{
  g_autofree char *text = g_strdup_printf ("{\"thing\": %s}", object);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "thing.json", diags);
  *ret = blank;
  bool ok = doc && ls_fields_read (thing_fields, doc, ls_json_doc_root (doc)->child, ret, NULL, diags);
  if (ret_problems)
    *ret_problems = ls_diag_list_format (diags);
  return ok;
}

static void
what_is_written_reads_back_exactly (void)
{
  Thing t, again;
  LS_CHECK (read_thing (
      "{\"name\": \"a \\\"b\\\"\", \"count\": 7, \"bytes\": \"18446744073709551615B\", \"time\": \"1.234567us\","
      " \"ratio\": 0.1, \"traffic\": \"3GiB\", \"is_on\": true, \"color\": \"green\","
      " \"items\": [{\"label\": \"x\", \"row\": [1, 2]}, {}], \"rows\": [[4], [5, 6, 7]]}",
      &t, NULL));
  g_autofree char *text = write_thing (&t);
  LS_CHECK (read_thing (text, &again, NULL));
  LS_CHECK_STR (again.name, "a \"b\"");
  LS_CHECK (again.bytes == UINT64_MAX && again.ratio == t.ratio
            && again.traffic == (double) (UINT64_C (3) << 30));
  LS_CHECK_INT (again.time, ==, 1234567);
  LS_CHECK (again.is_on && again.color == 1 && again.count == 7);
  if (LS_CHECK (again.items && again.items->len == 2 && again.rows && again.rows->len == 2)) {
    const Item *item = &g_array_index (again.items, Item, 0);
    LS_CHECK_STR (item->label, "x");
    LS_CHECK (item->row[0] == 1 && item->row[1] == 2 && item->row[2] == 0);
    LS_CHECK_INT (((uint32_t *) (gpointer) again.rows->data)[5], ==, 7);
  }
  g_autofree char *twice = write_thing (&again);
  LS_CHECK_STR (twice, text);
  ls_fields_clear (thing_fields, &t);
  ls_fields_clear (thing_fields, &again);
  LS_CHECK (!t.name && !t.items && !t.rows);
}

static void
defaults_are_left_out (void)
{
  g_autofree char *nothing = write_thing (&blank);
  LS_CHECK_STR (nothing, "{}");
  Thing t = blank;
  t.count = 3;
  t.time = 2 * LS_US;
  g_autofree char *text = write_thing (&t);
  LS_CHECK_STR (text, "{\n  \"count\": 3,\n  \"time\": \"2000000ps\"\n}");
}

static void
check_complaint (const char *object, const char *expected)
{
  Thing t;
  g_autofree char *problems = NULL;
  LS_CHECK (!read_thing (object, &t, &problems));
  ls_check_impl (problems && strstr (problems, expected), __FILE__, __LINE__, "%s: %s", object, problems);
  ls_fields_clear (thing_fields, &t);
}

static void
elements_are_located (void)
{
  check_complaint ("{\"items\": [{}, {\"lable\": \"x\"}]}",
                   "/thing/items/1/lable: unknown key; did you mean \"label\"?");
  check_complaint ("{\"items\": 3}", "/thing/items: expected a list; got the number 3");
  check_complaint ("{\"items\": [3]}", "/thing/items/0: expected an object; got the number 3");
  check_complaint ("{\"rows\": [[1], [1, 10]]}",
                   "/thing/rows/1/1: expected a whole number from 0 to 9; got the number 10");
  check_complaint ("{\"rows\": [[1, 2, 3, 4]]}",
                   "/thing/rows/0: expected up to three digits, each from 0 to 9; got an array");
  check_complaint ("{\"rows\": [[]]}", "/thing/rows/0: expected up to three digits");
}

LS_TEST_MAIN ("field_write", LS_TEST (what_is_written_reads_back_exactly), LS_TEST (defaults_are_left_out),
              LS_TEST (elements_are_located))
