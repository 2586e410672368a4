/* Pins the journal of a sweep: a sweep that was killed anywhere goes on from what is written and ends with
 * the same result; a journal that is damaged, of another sweep or not writable is refused. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "show/answers.h"
#include "small_sweep.h"

/* Some of these: what a journal does is the same for any number. */
#define FEW SMALL, "micro-batch", "1", "schedule", "1f1b", "zero", "1"

static char *
run_with_journal (const char *path, LsErrorCode *ret_code)
{
  LsSweepSpec spec;
  g_autoptr (GError) error = NULL;
  SPEC_INIT (&spec, FEW, "threads", "2");
  spec.journal = path;
  g_autoptr (LsSweepRun) x = ls_sweep_spec_run (&spec, &error);
  *ret_code = error ? (LsErrorCode) error->code : (LsErrorCode) -1;
  char *json = x ? ls_sweep_to_json (ls_sweep_run_report (x)) : NULL;
  ls_sweep_spec_clear (&spec);
  return json;
}

/* Of work: without who wrote it. */
static guint
n_lines (const char *path)
{
  g_autofree char *text = NULL;
  guint n = 0;
  LS_CHECK (g_file_get_contents (path, &text, NULL, NULL));
  g_auto (GStrv) lines = g_strsplit (text ? text : "", "\n", -1);
  for (char **line = lines; *line; line++)
    n += **line && !g_str_has_prefix (*line, "writer ");
  return n;
}

/* The last that was told. */
typedef struct {
  guint64 n_done, n_to_do;
} Told;

static void
on_progress (guint64 n_done, guint64 n_to_do, gpointer told)
{
  *(Told *) told = (Told) { n_done, n_to_do };
}

/* Of a sweep that takes all from its journal nothing was done now: a rate of that would be none. */
static void
progress_counts_what_is_done_now (void)
{
  g_autofree char *folder = g_dir_make_tmp ("sweep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "journal", NULL);
  Told told[2] = { 0 };
  for (guint i = 0; i < 2; i++) {
    LsSweepSpec spec;
    SPEC_INIT (&spec, FEW, "threads", "2");
    spec.journal = path;
    spec.progress = (LsProgress) { on_progress, &told[i] };
    g_autoptr (LsSweepRun) x = run (&spec);
    ls_sweep_spec_clear (&spec);
  }
  LS_CHECK_INT (told[0].n_done, >, 5);
  LS_CHECK_INT (told[1].n_done, <=, 2); /* the rule of thumb runs again, before the journal is read */
  LS_CHECK_INT (told[1].n_to_do, <, told[0].n_to_do);
  g_unlink (path);
  g_rmdir (folder);
}

static gboolean
take_any (const char *text, gpointer data)
{
  return TRUE;
}

static void
a_journal_in_use_says_by_whom (void)
{
  g_autofree char *folder = g_dir_make_tmp ("sweep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "journal", NULL);
  g_autofree char *who = g_strdup_printf (": in use: process %ld on %s writes this journal", (long) getpid (),
                                          g_get_host_name ());
  g_autoptr (GError) error = NULL;
  LsJournal *first = ls_journal_open (path, "work", take_any, NULL, NULL),
            *second = ls_journal_open (path, "work", take_any, NULL, &error);
  LS_CHECK (first && !second && error);
  LS_CHECK (error && g_error_matches (error, LS_ERROR, LS_ERROR_IO)
            && g_str_has_suffix (error->message, who));
  ls_journal_close (first);
  g_unlink (path);
  g_rmdir (folder);
}

/* Cut anywhere, as a kill does: the same result, and nothing is written twice. */
static void
a_killed_sweep_goes_on (void)
{
  g_autofree char *folder = g_dir_make_tmp ("sweep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "journal", NULL);
  LsErrorCode code;
  g_autofree char *whole = run_with_journal (path, &code), *bytes = NULL;
  gsize n = 0;
  LS_CHECK (whole && g_file_get_contents (path, &bytes, &n, NULL));
  guint n_whole = n_lines (path);
  LS_CHECK_INT (n_whole, >, 10);
  const gsize cuts[] = { 5, n / 2 + 1, n - 1, n };
  for (guint i = 0; i < G_N_ELEMENTS (cuts); i++) {
    LS_CHECK (g_file_set_contents (path, bytes, (gssize) cuts[i], NULL));
    g_autofree char *again = run_with_journal (path, &code);
    LS_CHECK_STR (again, whole);
    LS_CHECK_INT (n_lines (path), ==, n_whole);
  }
  g_unlink (path);
  g_rmdir (folder);
}

static void
bad_journals_are_refused (void)
{
  g_autofree char *folder = g_dir_make_tmp ("sweep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "journal", NULL);
  g_autofree char *nowhere = g_build_filename (folder, "none", "journal", NULL), *bytes = NULL, *left = NULL;
  LsErrorCode code;
  g_autofree char *whole = run_with_journal (path, &code), *a = run_with_journal (nowhere, &code);
  LS_CHECK (whole && !a);
  LS_CHECK_INT (code, ==, LS_ERROR_IO);
  g_autofree char *device = run_with_journal ("/dev/full", &code);
  LS_CHECK (!device);
  LS_CHECK_INT (code, ==, LS_ERROR_IO);

  LS_CHECK (g_file_get_contents (path, &bytes, NULL, NULL));
  char *second = strchr (bytes, '\n') + 1;
  second[4] ^= 1; /* in the middle: no kill does that */
  LS_CHECK (g_file_set_contents (path, bytes, -1, NULL));
  g_autofree char *damaged = run_with_journal (path, &code);
  LS_CHECK (!damaged);
  LS_CHECK_INT (code, ==, LS_ERROR_INPUT);
  LS_CHECK (g_file_set_contents (path, "mine, not yours", -1, NULL));
  g_autofree char *foreign = run_with_journal (path, &code);
  LS_CHECK (!foreign && g_file_get_contents (path, &left, NULL, NULL));
  LS_CHECK_INT (code, ==, LS_ERROR_INPUT);
  LS_CHECK_STR (left, "mine, not yours");

  LsSweepSpec other;
  g_autoptr (GError) error = NULL;
  g_unlink (path);
  g_autofree char *anew = run_with_journal (path, &code);
  SPEC_INIT (&other, FEW, "tp", "1");
  other.journal = path;
  g_autoptr (LsSweepRun) x = ls_sweep_spec_run (&other, &error);
  LS_CHECK (anew && !x && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  ls_sweep_spec_clear (&other);
  g_unlink (path);
  g_rmdir (folder);
}

/* A limit of the size of files fails as a full disk does. */
static void
a_full_disk_ends_with_an_error (void)
{
  g_autofree char *folder = g_dir_make_tmp ("sweep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "journal", NULL);
  struct rlimit before, small;
  LsErrorCode code;
  getrlimit (RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 1500;
  signal (SIGXFSZ, SIG_IGN);
  setrlimit (RLIMIT_FSIZE, &small);
  g_autofree char *json = run_with_journal (path, &code);
  setrlimit (RLIMIT_FSIZE, &before);
  signal (SIGXFSZ, SIG_DFL);
  LS_CHECK (!json);
  LS_CHECK_INT (code, ==, LS_ERROR_IO);
  g_autofree char *again = run_with_journal (path, &code);
  LS_CHECK (again != NULL); /* what was written is sound */
  g_unlink (path);
  g_rmdir (folder);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (progress_counts_what_is_done_now),
                    LS_TEST (a_journal_in_use_says_by_whom), LS_TEST (a_killed_sweep_goes_on),
                    LS_TEST (bad_journals_are_refused), LS_TEST (a_full_disk_ends_with_an_error))
