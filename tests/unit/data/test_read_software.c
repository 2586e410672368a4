/* Pins what a file of software takes from the one that it is based on, and that circles and wrong facts are
 * refused. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/read_software.h"

#define HEAD(name_)                                                                                          \
  "{\"schema\":\"lockstep.software/1\",\"name\":\"" name_ "\",\"source\":\"s\",\"program\":\"" name_ "\""

static void
write_file (const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
}

/* Loads NAME.json from a folder of files as given; NULL-terminated pairs of name and text. */
static bool
load (const char *const *files, const char *name, LsSoftwareSpec *ret, char **ret_report)
{
  g_autofree char *root = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *folder = g_build_filename (root, "strategies", "software", NULL);
  g_autofree char *before = g_strdup (g_getenv ("LS_DATA_DIR"));
  g_mkdir_with_parents (folder, 0700);
  for (guint i = 0; files[i]; i += 2)
    write_file (folder, files[i], files[i + 1]);
  g_setenv ("LS_DATA_DIR", root, TRUE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_software_load (name, ret, diags);
  *ret_report = ls_diag_list_format (diags);
  g_setenv ("LS_DATA_DIR", before, TRUE);
  return ok;
}

static const char *const family[] = {
  "old.json",
  HEAD (
      "old") ",\"vendor\":\"v\",\"release\":\"1\",\"dp_kinds\":\"ddp\",\"runs_like\":\"a loop of our own\",\"defaults\":{\"apex_norm\":true,\"tp_async\":false},"
             "\"headroom\":[{\"what\":\"a\",\"size\":\"1GiB\",\"source\":\"s\"}],\"tables\":[{\"of\":\"*\",\"source\":\"s\"}]}",
  "new.json",
  HEAD (
      "new") ",\"based_on\":\"old\",\"release\":\"2\",\"defaults\":{\"tp_async\":true,\"batch_sync\":true}}",
  "newest.json",
  HEAD ("newest") ",\"based_on\":\"new\",\"headroom\":[{\"what\":\"b\",\"size\":\"2GiB\",\"source\":\"s\"}]}",
  NULL,
};

static void
a_file_says_what_differs_from_its_base (void)
{
  LsSoftwareSpec s;
  g_autofree char *report = NULL;
  if (!LS_CHECK (load (family, "newest", &s, &report)))
    return;
  LS_CHECK_STR (s.name, "newest");
  LS_CHECK_STR (s.release, "2");
  LS_CHECK_STR (s.vendor, "v");
  LS_CHECK_STR (s.defaults.software, "newest");
  LS_CHECK (s.defaults.apex_norm && s.defaults.tp_async && s.defaults.batch_sync);
  LS_CHECK_STR (s.runs_like, "a loop of our own");
  LS_CHECK (s.dp_kinds == NULL && s.tables == NULL);
  LS_CHECK (s.headroom->len == 1
            && g_array_index (s.headroom, LsHeadroomItem, 0).bytes == (uint64_t) 2 << 30);
  ls_software_clear (&s);
}

static void
check_refused (const char *const *files, const char *name, const char *why)
{
  LsSoftwareSpec s;
  g_autofree char *report = NULL;
  LS_CHECK (!load (files, name, &s, &report));
  ls_check_impl (strstr (report, why) != NULL, __FILE__, __LINE__, "\"%s\" in:\n%s", why, report);
}

static void
circles_and_wrong_facts_are_refused (void)
{
  const char *const circle[]
      = { "a.json", HEAD ("a") ",\"based_on\":\"b\"}", "b.json", HEAD ("b") ",\"based_on\":\"a\"}", NULL };
  const char *const nobody[] = { "a.json", HEAD ("a") ",\"based_on\":\"b\"}", NULL };
  const char *const key[]
      = { "a.json",
          HEAD ("a") ",\"tables\":[{\"of\":\"*\",\"source\":\"s\",\"strategy\":{\"atention\":\"flash\"}}]}",
          NULL };
  const char *const value[]
      = { "a.json", HEAD ("a") ",\"tables\":[{\"of\":\"*\",\"source\":\"s\",\"model\":{\"vocab\":-1}}]}",
          NULL };
  const char *const list[]
      = { "a.json", HEAD ("a") ",\"tables\":[{\"of\":\"*\",\"source\":\"s\",\"when\":{\"gpus\":[8]}}]}",
          NULL };
  check_refused (circle, "a", "expected at most 8 files, each based on the next; got more, or a circle");
  check_refused (nobody, "a", "no software is named \"b\"");
  check_refused (key, "a", "unknown key; did you mean \"attention\"?");
  check_refused (value, "a", "expected a whole number from 1 to 16777216; got");
  check_refused (list, "a", "expected a string; got an array");
}

LS_TEST_SUITE (LS_TEST (a_file_says_what_differs_from_its_base),
               LS_TEST (circles_and_wrong_facts_are_refused))
