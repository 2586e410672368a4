/* Pins files that are written: in place or not at all, and the bytes of a pickle. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "data/text/pickle_out.h"
#include "data/text/write_file.h"
#include <lockstep/error.h>

/* Pins: all or nothing, and nothing left behind. */

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

/* A link to a file that is not there yet, in another folder, through another link. */
static void
links_to_nothing_are_followed_too (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-write-XXXXXX", NULL);
  g_autofree char *inner = g_build_filename (folder, "inner", NULL);
  g_autofree char *path = g_build_filename (inner, "out", NULL);
  g_autofree char *second = g_build_filename (inner, "second", NULL);
  g_autofree char *first = g_build_filename (folder, "first", NULL);
  LS_CHECK_INT (g_mkdir (inner, 0700), ==, 0);
  LS_CHECK_INT (symlink ("out", second) + symlink ("inner/second", first), ==, 0);
  LS_CHECK (ls_write_text (first, "new", NULL));
  check_contents (path, "new");
  LS_CHECK (g_file_test (first, G_FILE_TEST_IS_SYMLINK) && g_file_test (second, G_FILE_TEST_IS_SYMLINK));
  LS_CHECK_INT (n_files (folder) + n_files (inner), ==, 4);

  g_autofree char *loop = g_build_filename (folder, "loop", NULL);
  LS_CHECK_INT (symlink ("loop", loop), ==, 0);
  LS_CHECK (!ls_write_text (loop, "x", NULL));
  LS_CHECK_INT (g_unlink (loop) + g_unlink (first) + g_unlink (second) + g_unlink (path) + g_rmdir (inner)
                    + g_rmdir (folder),
                ==, 0);
}

static void
check_refused (const char *path, LsErrorCode code, const char *message)
{
  g_autoptr (GError) error = NULL, again = NULL;
  LS_CHECK (!ls_write_file_check (path, &error) && g_error_matches (error, LS_ERROR, (int) code));
  LS_CHECK (!ls_write_text (path, "x", &again) && g_error_matches (again, LS_ERROR, (int) code));
  LS_CHECK_STR (error ? error->message : "", message);
}

static void
paths_are_checked_without_creating_anything (void)
{
  g_autofree char *old = g_get_current_dir (), *folder = g_dir_make_tmp ("ls-write-XXXXXX", NULL);
  LS_CHECK_INT (g_chdir (folder), ==, 0);
  LS_CHECK (ls_write_file_check ("new.json", NULL));
  check_refused ("", LS_ERROR_USAGE, "\"\": expected the name of a file");
  check_refused ("a\nb", LS_ERROR_USAGE, "\"a?b\": expected the name of a file without control characters");
  check_refused ("a\x7f", LS_ERROR_USAGE, "\"a?\": expected the name of a file without control characters");
  check_refused (".", LS_ERROR_IO, ".: Is a directory");
  check_refused ("new/", LS_ERROR_IO, "new/: Is a directory");
  check_refused ("no/x.json", LS_ERROR_IO, "no/x.json: No such file or directory");
  check_refused ("/dev/null/x.json", LS_ERROR_IO, "/dev/null/x.json: Not a directory");
  LS_CHECK_INT (n_files ("."), ==, 0);
  if (geteuid () != 0 && LS_CHECK_INT (g_chmod (".", 0500), ==, 0)) /* root may write everywhere */
    check_refused ("new.json", LS_ERROR_IO, "new.json: Permission denied");
  LS_CHECK_INT (g_chdir (old) + g_rmdir (folder), ==, 0);
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
  g_autofree char *long_text
      = g_strnfill (1000000, 'x'); /* fails while it is written, not when it is closed */
  LS_CHECK (!ls_write_text ("/dev/full", long_text, &full) && full);
  LS_CHECK_STR (full ? full->message : "", "/dev/full: No space left on device");
  g_clear_error (&full);
  LS_CHECK (!ls_write_text ("/dev/full", "x", &full)); /* and is still there */
  LS_CHECK (g_error_matches (full, LS_ERROR, LS_ERROR_IO));
  LS_CHECK_STR (full ? full->message : "", "/dev/full: No space left on device");
  LS_CHECK (g_file_test ("/dev/full", G_FILE_TEST_EXISTS)
            && !g_file_test ("/dev/full", G_FILE_TEST_IS_REGULAR));
}

/* Pins the bytes of a pickle: numbers of each width, texts that come again, long lists in pieces. That Python
 * reads them is pinned by golden/memory.txt. */

static void
check_bytes (char *text, size_t n, const char *expected, size_t n_expected)
{
  LS_CHECK_INT (n, ==, n_expected);
  LS_CHECK (n == n_expected && memcmp (text, expected, n) == 0);
  free (text);
}

#define BYTES(text) text, sizeof text - 1

static void
each_number_takes_its_width (void)
{
  char *text;
  size_t n;
  FILE *f = open_memstream (&text, &n);
  LsPickleOut w;
  ls_pickle_out_begin (&w, f);
  ls_pickle_out_begin_array (&w, NULL);
  static const int64_t numbers[] = { 0, 255, 256, 65535, 65536, -1, INT64_C (1) << 46 };
  for (size_t i = 0; i < G_N_ELEMENTS (numbers); i++)
    ls_pickle_out_int (&w, NULL, numbers[i]);
  ls_pickle_out_bool (&w, NULL, true);
  ls_pickle_out_double (&w, NULL, 1);
  ls_pickle_out_pair (&w, NULL, 0, 0);
  ls_pickle_out_end_array (&w);
  ls_pickle_out_finish (&w);
  fclose (f);
  check_bytes (text, n,
               BYTES ("\x80\x02](K\x00K\xffM\x00\x01M\xff\xffJ\x00\x00\x01\x00J\xff\xff\xff\xff"
                      "\x8a\x08\x00\x00\x00\x00\x00\x40\x00\x00\x88G\x3f\xf0\x00\x00\x00\x00\x00\x00"
                      "K\x00K\x00\x86"
                      "e."));
}

/* A text and an object that was kept are written once; what is no UTF-8 can still be read. */
static void
what_is_there_is_referred_to (void)
{
  char *text;
  size_t n;
  FILE *f = open_memstream (&text, &n);
  LsPickleOut w;
  ls_pickle_out_begin (&w, f);
  ls_pickle_out_begin_object (&w, NULL);
  ls_pickle_out_begin_array (&w, "a");
  ls_pickle_out_end_array (&w);
  uint32_t list = ls_pickle_out_keep (&w);
  ls_pickle_out_again (&w, "\xff", list);
  ls_pickle_out_string (&w, "b", "a");
  ls_pickle_out_end_object (&w);
  ls_pickle_out_finish (&w);
  fclose (f);
  check_bytes (text, n,
               BYTES ("\x80\x02}(X\x01\x00\x00\x00"
                      "aq\x00](eq\x01X\x03\x00\x00\x00\xef\xbf\xbdq\x02h\x01X\x01\x00\x00\x00"
                      "bq\x03h\x00u."));
}

/* A reader holds at most a thousand items that are in no list yet. */
static void
long_lists_come_in_pieces (void)
{
  char *text;
  size_t n;
  FILE *f = open_memstream (&text, &n);
  LsPickleOut w;
  ls_pickle_out_begin (&w, f);
  ls_pickle_out_begin_array (&w, NULL);
  for (int i = 0; i < 2500; i++)
    ls_pickle_out_bool (&w, NULL, true);
  ls_pickle_out_end_array (&w);
  ls_pickle_out_finish (&w);
  fclose (f);
  LS_CHECK_INT (n, ==, 2 + 1 + 3 * 2 + 2500 + 1);
  LS_CHECK (text[4 + 1000] == 'e' && text[5 + 1000] == '(' && text[n - 2] == 'e');
  free (text);
}

LS_TEST_SUITE (LS_TEST (whole_or_not_at_all), LS_TEST (links_are_followed),
               LS_TEST (links_to_nothing_are_followed_too),
               LS_TEST (paths_are_checked_without_creating_anything), LS_TEST (failures_say_where),
               LS_TEST (each_number_takes_its_width), LS_TEST (what_is_there_is_referred_to),
               LS_TEST (long_lists_come_in_pieces))
