/* Pins: all or nothing, and nothing left behind. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include <lockstep/error.h>

#include "io/write_file.h"

static guint
n_files (const char *folder)
{
  guint n = 0;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  while (dir && g_dir_read_name (dir))
    n++;
  return n;
}

static gboolean
write_then_fail (FILE *out, void *data, GError **error)
{
  fputs ("half", out);
  g_set_error_literal (error, LS_ERROR, LS_ERROR_LIMIT, "enough");
  return FALSE;
}

static void
check_contents (const char *path, const char *expected)
{
  g_autofree char *text = NULL;
  g_file_get_contents (path, &text, NULL, NULL);
  LS_CHECK_STR (text, expected);
}

static void
whole_or_not_at_all (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-write-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "out.json", NULL);
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_write_text (path, "first", &error));
  check_contents (path, "first");

  LS_CHECK (!ls_write_file (path, write_then_fail, NULL, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT));
  check_contents (path, "first");
  LS_CHECK_INT (n_files (folder), ==, 1);

  g_unlink (path);
  g_rmdir (folder);
}

static void
links_are_followed (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-write-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "out", NULL);
  g_autofree char *link = g_build_filename (folder, "link", NULL);
  LS_CHECK (ls_write_text (path, "old", NULL));
  LS_CHECK_INT (symlink (path, link), ==, 0);
  LS_CHECK (ls_write_text (link, "new", NULL));
  check_contents (path, "new");
  LS_CHECK (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  LS_CHECK_INT (n_files (folder), ==, 2);
  g_unlink (link);
  g_unlink (path);
  g_rmdir (folder);
}

static void
failures_say_where (void)
{
  g_autoptr (GError) missing = NULL, folder = NULL, full = NULL;
  LS_CHECK (!ls_write_text ("/nonexistent-folder/x", "x", &missing));
  LS_CHECK (g_error_matches (missing, LS_ERROR, LS_ERROR_IO));
  LS_CHECK (g_str_has_prefix (missing->message, "/nonexistent-folder/x: "));
  LS_CHECK (!ls_write_text ("/", "x", &folder));
  LS_CHECK (g_error_matches (folder, LS_ERROR, LS_ERROR_IO));
  if (!g_file_test ("/dev/full", G_FILE_TEST_EXISTS))
    return;
  LS_CHECK (!ls_write_text ("/dev/full", "x", &full)); /* and is still there */
  LS_CHECK (g_error_matches (full, LS_ERROR, LS_ERROR_IO));
  LS_CHECK (g_file_test ("/dev/full", G_FILE_TEST_EXISTS) && !g_file_test ("/dev/full", G_FILE_TEST_IS_REGULAR));
}

LS_TEST_MAIN ("write_file", LS_TEST (whole_or_not_at_all), LS_TEST (links_are_followed), LS_TEST (failures_say_where))
