/* Pins: what each kind of field takes from a file and from a flag. Messages are
 * pinned here for flags, by tests/reject for files. */
#include "ls_test.h"

#include <stddef.h>
#include <string.h>

#include "data/text/field.h"

#include "field_markdown.h"

/* --- read ------------------------------------------------------------------------------------------- */

typedef struct {
  double share;
} Inner;

typedef struct {
  char *text;
  bool yes;
  uint32_t count;
  uint64_t large;
  double number;
  LsTime time;
  uint64_t bytes;
  double extra_bytes, rate, flops;
  int choice;
  uint32_t *list, n_list;
  int half;
  GArray *lengths; /* gsize */
  Inner inner;
} Thing;

static bool
parse_even (const char *text, void *ret_half)
{
  guint64 n;
  if (!g_ascii_string_to_unsigned (text, 10, 0, 100, &n, NULL) || n % 2 != 0)
    return false;
  *(int *) ret_half = (int) n / 2;
  return true;
}

static bool
add_length (char *word, GArray *lengths)
{
  gsize n = strlen (word);
  g_array_append_val (lengths, n);
  return n > 0;
}

static const LsEnumName choices[] = { { "left", 1 }, { "right", 2 }, { "links", 1 }, { NULL } };
static const LsField inner_fields[] = {
  { "share", LS_FIELD_DOUBLE, offsetof (Inner, share), .required = true, .above = true, .max = 1,
    .meaning = "a part" },
  { NULL },
};
static const LsField fields[] = {
  { "text", LS_FIELD_STRING, offsetof (Thing, text), .meaning = "words" },
  { "yes", LS_FIELD_BOOL, offsetof (Thing, yes) },
  { "micro_batch", LS_FIELD_UINT, offsetof (Thing, count), .min = 1, .max = 8, .default_text = "1" },
  { "large", LS_FIELD_UINT64, offsetof (Thing, large) },
  { "number", LS_FIELD_DOUBLE, offsetof (Thing, number), .max = 10 },
  { "time", LS_FIELD_TIME, offsetof (Thing, time), .max = (double) LS_S },
  { "bytes", LS_FIELD_BYTES, offsetof (Thing, bytes) },
  { "extra", LS_FIELD_BYTES_DOUBLE, offsetof (Thing, extra_bytes) },
  { "rate", LS_FIELD_RATE, offsetof (Thing, rate), .above = true },
  { "flops", LS_FIELD_FLOPS, offsetof (Thing, flops) },
  { "choice", LS_FIELD_ENUM, offsetof (Thing, choice), .names = choices },
  { "list", LS_FIELD_UINT_LIST, offsetof (Thing, list), .n_offset = offsetof (Thing, n_list), .max = 9 },
  { "even", LS_FIELD_CUSTOM, offsetof (Thing, half), .parse = parse_even, .expected = "an even number" },
  { "lengths", LS_FIELD_CUSTOM, offsetof (Thing, lengths), .add = add_length, .element_size = sizeof (gsize),
    .expected = "words" },
  { "inner", LS_FIELD_OBJECT, offsetof (Thing, inner), .fields = inner_fields },
  { "sources", LS_FIELD_SOURCES },
  { "old", LS_FIELD_IGNORED },
  { NULL },
};

static bool
read_text (const char *json, Thing *thing, GPtrArray *notes, guint *n_diags)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (json, strlen (json), "t.json", diags);
  bool ok = doc && ls_fields_read (fields, doc, ls_json_doc_root (doc), thing, notes, diags);
  LS_CHECK (ok == (ls_diag_list_n (diags) == 0));
  if (n_diags)
    *n_diags = ls_diag_list_n (diags);
  return ok;
}

static void
thing_clear (Thing *thing)
{
  g_free (thing->text);
  g_free (thing->list);
}

static void
words_of_a_list_are_added_and_cleared (void)
{
  Thing thing = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_field_set_text (fields, &thing, "lengths", "a,bcd", diags));
  LS_CHECK (!ls_field_set_text (fields, &thing, "lengths", "a,,b", diags));
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 1);
  LS_CHECK_INT (thing.lengths->len, ==, 2);
  LS_CHECK_INT (g_array_index (thing.lengths, gsize, 1), ==, 3);
  ls_fields_clear (fields, &thing);
  LS_CHECK (!thing.lengths);
}

/* As DeepSpeed's files have them. */
static void
large_counts_may_have_an_exponent (void)
{
  Thing thing = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_field_set_text (fields, &thing, "large", "5e8", diags) && thing.large == 500000000);
  LS_CHECK (ls_field_set_text (fields, &thing, "large", "1.5e3", diags) && thing.large == 1500);
  static const char *const wrong[] = { "1e-3", "1.5e0", "1e99", "1e7x", "-1e3", "e3" };
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    LS_CHECK (!ls_field_set_text (fields, &thing, "large", wrong[i], diags));
  LS_CHECK (!ls_field_set_text (fields, &thing, "micro_batch", "1e0", diags)); /* a small one has none */
  thing_clear (&thing);
}

static void
counts_may_have_a_letter_in_a_file (void)
{
  Thing thing = { 0 };
  LS_CHECK (read_text ("{\"large\": \"8k\"}", &thing, NULL, NULL));
  LS_CHECK_INT (thing.large, ==, 8192);
  LS_CHECK (read_text ("{\"large\": \"1.5M\"}", &thing, NULL, NULL));
  LS_CHECK_INT (thing.large, ==, 1572864);
  static const char *const wrong[]
      = { "{\"large\": \"8192\"}",     "{\"large\": \"1.3k\"}", "{\"large\": \"8kB\"}",
          "{\"micro_batch\": \"1k\"}", "{\"number\": \"8k\"}",  "{\"large\": \"k\"}",
          "{\"large\": \"16384T\"}" };
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    LS_CHECK (!read_text (wrong[i], &thing, NULL, NULL));
  thing_clear (&thing);
}

static void
a_file_sets_every_kind (void)
{
  Thing t = { 0 };
  LS_CHECK (read_text (
      "{\"text\":\"hi\",\"yes\":true,\"micro_batch\":8.0,\"large\":9007199254740991,\"number\":2.5,"
      "\"time\":\"2us\",\"bytes\":\"80GiB\",\"extra\":\"4MiB\",\"rate\":\"400Gbit/s\","
      "\"flops\":\"312TFLOP/s\",\"choice\":\"links\",\"list\":[2,3,9],\"even\":6,"
      "\"inner\":{\"share\":0.5},\"sources\":{\"a\":\"b\"},\"old\":[{}],\"x-note\":1}",
      &t, NULL, NULL));
  LS_CHECK_STR (t.text, "hi");
  LS_CHECK (t.yes);
  LS_CHECK_INT (t.count, ==, 8);
  LS_CHECK_INT (t.large, ==, G_GINT64_CONSTANT (9007199254740991));
  LS_CHECK_DOUBLE (t.number, ==, 2.5);
  LS_CHECK_INT (t.time, ==, 2 * LS_US);
  LS_CHECK_INT (t.bytes, ==, G_GINT64_CONSTANT (85899345920));
  LS_CHECK_DOUBLE (t.extra_bytes, ==, 4194304);
  LS_CHECK_DOUBLE (t.rate, ==, 50e9);
  LS_CHECK_DOUBLE (t.flops, ==, 312e12);
  LS_CHECK_INT (t.choice, ==, 1);
  LS_CHECK_INT (t.n_list, ==, 3);
  LS_CHECK (t.list && t.list[0] == 2 && t.list[2] == 9);
  LS_CHECK_INT (t.half, ==, 3);
  LS_CHECK_DOUBLE (t.inner.share, ==, 0.5);
  thing_clear (&t);
}

static void
every_mistake_is_counted (void)
{
  static const char *const bad[] = {
    "{\"text\":1}",
    "{\"yes\":1}",
    "{\"yes\":\"true\"}",
    "{\"micro_batch\":0}",
    "{\"micro_batch\":9}",
    "{\"micro_batch\":1.5}",
    "{\"micro_batch\":\"8\"}",
    "{\"micro_batch\":-1}",
    "{\"large\":9007199254740993}",
    "{\"number\":1e999}",
    "{\"number\":10.5}",
    "{\"number\":-1}",
    "{\"time\":2}",
    "{\"time\":\"2\"}",
    "{\"time\":\"2s\"}",
    "{\"bytes\":80}",
    "{\"rate\":\"0GB/s\"}",
    "{\"flops\":\"1GB/s\"}",
    "{\"choice\":\"up\"}",
    "{\"choice\":null}",
    "{\"list\":7}",
    "{\"list\":[10]}",
    "{\"even\":7}",
    "{\"even\":true}",
    "{\"inner\":{}}",
    "{\"inner\":{\"share\":0}}",
    "{\"inner\":3}",
    "{\"sources\":{\"a\":1}}",
    "{\"unknown\":1}",
    "{\"inner\":{\"share\":1,\"y\":2}}",
    "[]",
    "7",
  };
  for (size_t i = 0; i < G_N_ELEMENTS (bad); i++) {
    Thing t = { 0 };
    guint n = 0;
    read_text (bad[i], &t, NULL, &n);
    ls_check_impl (n == 1, __FILE__, __LINE__, "%s: %u diagnostics", bad[i], n);
    thing_clear (&t);
  }
  Thing t = { 0 };
  guint n = 0;
  read_text ("{\"text\":1,\"yes\":2,\"list\":[1,\"x\",-3],\"inner\":{\"z\":0}}", &t, NULL, &n);
  LS_CHECK_INT (n, ==, 6);
  thing_clear (&t);
}

static void
foreign_files_give_notes (void)
{
  Thing t = { .count = 5 };
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  LS_CHECK (read_text ("{\"micro_batch\":null,\"strange\":1,\"text\":\"x\",\"old\":2}", &t, notes, NULL));
  LS_CHECK_INT (t.count, ==, 5); /* null is absent */
  LS_CHECK_INT (notes->len, ==, 1);
  LS_CHECK_STR (notes->pdata[0], "key \"strange\" is not used");
  thing_clear (&t);
}

static char *
flag_error (const char *name, const char *text)
{
  Thing t = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (!ls_field_set_text (fields, &t, name, text, diags));
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_diag_list_to_error (diags, &error) && g_error_matches (error, LS_ERROR, LS_ERROR_USAGE));
  thing_clear (&t);
  return ls_diag_list_format (diags);
}

static void
flags_set_the_same_fields (void)
{
  Thing t = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_field_set_text (fields, &t, "micro-batch", "4", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "yes", "1", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "list", "1,2, 3", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "list", "4", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "time", "3ms", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "choice", "right", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "even", "8", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "number", "1e-3", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "text", "one", diags));
  LS_CHECK (ls_field_set_text (fields, &t, "text", "two", diags));
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 0);
  LS_CHECK_INT (t.count, ==, 4);
  LS_CHECK (t.yes);
  LS_CHECK (t.n_list == 1 && t.list[0] == 4);
  LS_CHECK_INT (t.time, ==, 3 * LS_MS);
  LS_CHECK_INT (t.choice, ==, 2);
  LS_CHECK_INT (t.half, ==, 4);
  LS_CHECK_DOUBLE (t.number, ==, 1e-3);
  LS_CHECK_STR (t.text, "two");
  thing_clear (&t);
}

#define CHECK_FLAG_ERROR(name, text, message)                                                                \
  do {                                                                                                       \
    g_autofree char *shown_ = flag_error (name, text);                                                       \
    LS_CHECK_STR (shown_, message);                                                                          \
  } while (0)

static void
wrong_flags_are_explained (void)
{
  CHECK_FLAG_ERROR ("micro-batch", "9",
                    "error: --micro-batch: expected a whole number from 1 to 8; got \"9\"\n");
  CHECK_FLAG_ERROR ("micro_bach", "9",
                    "error: --micro-bach: unknown option; did you mean \"--micro-batch\"?\n");
  CHECK_FLAG_ERROR ("zzz", "9", "error: --zzz: unknown option\n");
  CHECK_FLAG_ERROR (
      "choice", "rigth",
      "error: --choice: expected one of \"left\", \"right\"; got \"rigth\"; did you mean \"right\"?\n");
  CHECK_FLAG_ERROR ("list", "",
                    "error: --list: expected a list of whole numbers, each from 0 to 9; got \"\"\n");
  CHECK_FLAG_ERROR ("list", "1,,2",
                    "error: --list: expected a list of whole numbers, each from 0 to 9; got \"1,,2\"\n");
  CHECK_FLAG_ERROR ("even", "7", "error: --even: expected an even number; got \"7\"\n");
  CHECK_FLAG_ERROR ("yes", "maybe", "error: --yes: expected 0 or 1; got \"maybe\"\n");
  CHECK_FLAG_ERROR (
      "rate", "400",
      "error: --rate: expected a rate with a unit such as \"400Gbit/s\" or \"25GB/s\", above 0 B/s; got \"400\"\n"
      "note: write \"400Gbit/s\" for bits or \"400GB/s\" for bytes\n");
  CHECK_FLAG_ERROR (
      "time", "2s",
      "error: --time: expected a time with a unit such as \"2us\", at most 1.000 s; got \"2s\"\n");
}

static void
markdown_has_an_item_for_each_key (void)
{
  g_autofree char *text = ls_fields_markdown (fields);
  LS_CHECK (strstr (text, "- `text` (text): words\n") != NULL);
  LS_CHECK (strstr (text, "- `micro_batch` (1–8; default 1)\n") != NULL);
  LS_CHECK (strstr (text, "- `inner` (object: `inner`") != NULL);
  LS_CHECK (strstr (text, "\n`inner`:\n\n- `") != NULL);
  LS_CHECK (strstr (text, "- `share` (share; required): a part\n") != NULL);
  for (const LsField *f = fields; f->key; f++) {
    g_autofree char *key = g_strdup_printf ("`%s`", f->key);
    LS_CHECK (strstr (text, key) != NULL);
  }
}

/* --- written ---------------------------------------------------------------------------------------- */

/* Pins: an object written by its field table reads back as the same bits, what equals
 * the blank or is no value is left out, and lists of objects and rows go both ways. */

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
} Written;

static const LsEnumName colors[] = { { "red", 0 }, { "green", 1 }, { NULL } };
static const LsField item_fields[] = {
  { "label", LS_FIELD_STRING, offsetof (Item, label) },
  { "row", LS_FIELD_ROW, offsetof (Item, row), .n_row = 3, .max = 9, .expected = "up to three digits, each" },
  { NULL },
};
static const LsField row_element[]
    = { { "", LS_FIELD_ROW, .n_row = 3, .max = 9, .expected = "up to three digits, each" }, { NULL } };
static const LsField thing_fields[] = {
  LS_FIELDS_HEADER (Written),
  { "count", LS_FIELD_UINT, offsetof (Written, count), .min = 1 },
  { "bytes", LS_FIELD_BYTES, offsetof (Written, bytes) },
  { "time", LS_FIELD_TIME, offsetof (Written, time), .max = 1e18 },
  { "ratio", LS_FIELD_DOUBLE, offsetof (Written, ratio) },
  { "traffic", LS_FIELD_BYTES_DOUBLE, offsetof (Written, traffic) },
  { "is_on", LS_FIELD_BOOL, offsetof (Written, is_on) },
  { "color", LS_FIELD_ENUM, offsetof (Written, color), .names = colors },
  { "items", LS_FIELD_ARRAY, offsetof (Written, items), .element_size = sizeof (Item), .fields = item_fields,
    .lines = true },
  { "rows", LS_FIELD_ARRAY, offsetof (Written, rows), .element_size = 3 * sizeof (uint32_t),
    .fields = row_element },
  { NULL },
};
static const Written blank = { .color = -1, .time = LS_TIME_NEVER };

static char *
write_thing (const Written *t)
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
read_thing (const char *object, Written *ret, char **ret_problems)
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
  Written t, again;
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
  Written t = blank;
  t.count = 3;
  t.time = 2 * LS_US;
  g_autofree char *text = write_thing (&t);
  LS_CHECK_STR (text, "{\n  \"count\": 3,\n  \"time\": \"2000000ps\"\n}");
}

static void
check_complaint (const char *object, const char *expected)
{
  Written t;
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

LS_TEST_SUITE (LS_TEST (words_of_a_list_are_added_and_cleared), LS_TEST (large_counts_may_have_an_exponent),
               LS_TEST (counts_may_have_a_letter_in_a_file), LS_TEST (a_file_sets_every_kind),
               LS_TEST (every_mistake_is_counted), LS_TEST (foreign_files_give_notes),
               LS_TEST (flags_set_the_same_fields), LS_TEST (wrong_flags_are_explained),
               LS_TEST (markdown_has_an_item_for_each_key), LS_TEST (what_is_written_reads_back_exactly),
               LS_TEST (defaults_are_left_out), LS_TEST (elements_are_located))
