/* Pins: names with changes (NAME:KEY=VALUE,...): where they are cut, what a value may be,
 * what is added on the way, and that damaged ones are refused. */
#include "ls_test.h"

#include <string.h>

#include "data/text/override.h"

/* Printed without blanks; NULL: refused. */
static char *
changed (const char *text, const char *changes)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJsonDoc *doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  doc = ls_override_apply (doc, changes, diags);
  LS_CHECK ((doc != NULL) == (ls_diag_list_n (diags) == 0));
  if (!doc)
    return NULL;
  char *printed = cJSON_PrintUnformatted (ls_json_doc_root (doc)), *copy = g_strdup (printed);
  cJSON_free (printed);
  ls_json_doc_free (doc);
  return copy;
}

static void
check (const char *text, const char *changes, const char *expected)
{
  g_autofree char *got = changed (text, changes);
  LS_CHECK_STR (got, expected);
}

static void
names_are_cut_at_the_colon_before_a_key (void)
{
  LS_CHECK_STR (ls_override_find ("dgx-h100:nodes=4"), "nodes=4");
  LS_CHECK_STR (ls_override_find ("./a:b/c.json:x.y=1"), "x.y=1");
  LS_CHECK_STR (ls_override_find ("t:a=1"), "a=1");
  LS_CHECK (ls_override_find ("dgx-h100") == NULL);
  LS_CHECK (ls_override_find ("./a:b.json") == NULL);
  LS_CHECK (ls_override_find ("dgx-h100:=4") == NULL);
}

static void
values_are_replaced (void)
{
  check ("{\"a\":1,\"b\":{\"c\":[1,{\"d\":\"x\"}]}}", "a=2", "{\"a\":2,\"b\":{\"c\":[1,{\"d\":\"x\"}]}}");
  check ("{\"a\":1,\"b\":{\"c\":[1,{\"d\":\"x\"}]}}", "b.c.1.d=25GB/s,a=true",
         "{\"a\":true,\"b\":{\"c\":[1,{\"d\":\"25GB/s\"}]}}");
  check ("{\"a\": [1,2] , \"b\": 3}", "a=[4,5],b={\"x\":\"1,2\"}", "{\"a\":[4,5],\"b\":{\"x\":\"1,2\"}}");
  check ("{\"a\":1}", "a=say \"hi, you\"", "{\"a\":\"say \\\"hi, you\\\"\"}");
  check ("{\"a\":1}", "a=", "{\"a\":\"\"}");
}

static void
what_is_missing_is_added (void)
{
  check ("{\"a\":1}", "b=2", "{\"b\":2,\"a\":1}");
  check ("{}", "b.c.d=2,b.e=3", "{\"b\":{\"e\":3,\"c\":{\"d\":2}}}");
}

static void
a_key_goes_on_behind_the_name_of_a_file (void)
{
  check ("{\"gpu\":\"h100\"}", "gpu.reserved=2GiB", "{\"gpu\":\"h100:reserved=2GiB\"}");
  check ("{\"gpu\":\"h100\"}", "gpu.reserved=2GiB,gpu.nccl.x=1", "{\"gpu\":\"h100:reserved=2GiB,nccl.x=1\"}");
  check ("{\"kind\":\"h100\"}", "kind.reserved=2GiB", NULL);
}

static void
a_key_changes_once (void)
{
  static const char *const wrong[]
      = { "a=1,a=2", "a=1,b=2,a=1", "b.c=1,b.c=2", "b.c=1,b={}", "b.c=1,d=2,b=3" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autofree char *got = changed ("{\"a\":1,\"b\":{\"c\":1}}", wrong[i]);
    LS_CHECK (got == NULL);
  }
  check ("{\"a\":1,\"b\":{\"c\":1}}", "b={},b.c=2", "{\"a\":1,\"b\":{\"c\":2}}");
  check ("{\"a\":1,\"ab\":1}", "ab=2,a=3", "{\"a\":3,\"ab\":2}");
}

static void
changes_are_added_to_a_name (void)
{
  static const struct {
    const char *name, *added, *expected;
  } cases[] = {
    { "pair", "a=1", "pair:a=1" },
    { "pair:b=2", "a=1", "pair:b=2,a=1" },
    { "pair:a=2,b=[1,2]", "a=1", "pair:b=[1,2],a=1" },
    { "pair:a.b=2,ab=3", "a={}", "pair:ab=3,a={}" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *got = ls_override_add (cases[i].name, cases[i].added);
    LS_CHECK_STR (got, cases[i].expected);
  }
}

static void
nonsense_is_refused (void)
{
  static const char *const wrong[] = { "a", "=1", "a=1,", "a=1,b", "a.x=1", "a=1,,b=2" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autofree char *got = changed ("{\"a\":1}", wrong[i]);
    bool ends_in_comma = strcmp (wrong[i], "a=1,") == 0; /* nothing after it: nothing to change */
    LS_CHECK ((got == NULL) != ends_in_comma);
  }
}

LS_TEST_SUITE (LS_TEST (names_are_cut_at_the_colon_before_a_key), LS_TEST (values_are_replaced),
               LS_TEST (what_is_missing_is_added), LS_TEST (a_key_goes_on_behind_the_name_of_a_file),
               LS_TEST (a_key_changes_once), LS_TEST (changes_are_added_to_a_name),
               LS_TEST (nonsense_is_refused))
