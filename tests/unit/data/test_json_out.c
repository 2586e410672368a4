/* Pins: the text that the writer makes, and that every double reads back. */
#include "ls_test.h"

#include <math.h>

#include "data/text/json_doc.h"
#include "data/text/json_out.h"

static void
write_sample (LsJsonOut *w)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "s", "a\"\\\n\t\001\u00e9");
  ls_json_out_string (w, "none", NULL);
  ls_json_out_begin_array (w, "list");
  ls_json_out_int (w, NULL, INT64_MIN);
  ls_json_out_uint (w, NULL, UINT64_MAX);
  ls_json_out_bool (w, NULL, false);
  ls_json_out_null (w, NULL);
  ls_json_out_double (w, NULL, NAN);
  ls_json_out_double (w, NULL, -INFINITY);
  ls_json_out_end_array (w);
  ls_json_out_begin_object (w, "empty");
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
compact (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  write_sample (&w);
  LS_CHECK_STR (text->str,
                "{\"s\":\"a\\\"\\\\\\n\\t\\u0001\u00e9\",\"none\":null,"
                "\"list\":[-9223372036854775808,18446744073709551615,false,null,null,null],\"empty\":{}}");
}

static void
indented (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_begin_array (&w, "a");
  ls_json_out_int (&w, NULL, 1);
  ls_json_out_int (&w, NULL, 2);
  ls_json_out_end_array (&w);
  ls_json_out_double (&w, "b", 0.1);
  ls_json_out_end_object (&w);
  LS_CHECK_STR (text->str, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": 0.10000000000000001\n}");
}

static void
what_is_written_is_json (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJsonOut w;
  ls_json_out_init (&w, text, 1);
  ls_json_out_begin_array (&w, NULL);
  ls_json_out_string (&w, NULL, "\377 not UTF-8");
  double x = 1;
  for (int i = 0; i < 200; i++, x = -x * 3.7e-3 + 1e-300)
    ls_json_out_double (&w, NULL, x);
  ls_json_out_end_array (&w);

  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text->str, text->len, "t", diags);
  if (!LS_CHECK (doc != NULL))
    return;
  const cJSON *node = ls_json_doc_root (doc)->child->next;
  x = 1;
  for (int i = 0; i < 200; i++, x = -x * 3.7e-3 + 1e-300, node = node->next)
    LS_CHECK_DOUBLE (node->valuedouble, ==, x);
}

LS_TEST_SUITE (LS_TEST (compact), LS_TEST (indented), LS_TEST (what_is_written_is_json))
