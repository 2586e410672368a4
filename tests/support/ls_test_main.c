/* ls_test_main.c — the program of a room's tests: runs the suites named by its arguments, or all.
 *
 * Each suite has a process of its own, as it may change folder and environment; one that is asked for
 * alone has the program's, for a debugger. */
#include "ls_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static LsTestSuite *first, **end = &first;

void
ls_test_add_suite (LsTestSuite *suite)
{
  *end = suite;
  end = &suite->next;
}

/* The caller frees it. */
static char *
name_of (const LsTestSuite *suite)
{
  g_autofree char *base = g_path_get_basename (suite->file);
  return g_strndup (base + strlen ("test_"), strlen (base) - strlen ("test_") - strlen (".c"));
}

/* NULL, after saying which there are. */
static const LsTestSuite *
find (const char *wanted)
{
  g_autoptr (GString) names = g_string_new (NULL);
  for (const LsTestSuite *s = first; s; s = s->next) {
    g_autofree char *name = name_of (s);
    if (strcmp (name, wanted) == 0)
      return s;
    g_string_append_printf (names, " %s", name);
  }
  fprintf (stderr, "no suite \"%s\" here, but:%s\n", wanted, names->str);
  return NULL;
}

static int
run (const LsTestSuite *suite)
{
  g_autofree char *name = name_of (suite);
  if (suite->before)
    suite->before ();
  int status = ls_test_run (name, suite->cases, suite->n_cases);
  if (suite->after)
    suite->after ();
  return status;
}

static bool
passes_in_own_process (const LsTestSuite *suite)
{
  fflush (stdout);
  pid_t child = fork ();
  if (child == 0)
    exit (run (suite));
  int status = 1;
  if (child < 0 || waitpid (child, &status, 0) != child)
    perror ("fork");
  if (WIFSIGNALED (status))
    fprintf (stderr, "%s: ended by signal %d\n", suite->file, WTERMSIG (status));
  return status == 0;
}

int
main (int argc, char **argv)
{
  bool ok = true;
  if (!g_getenv ("LS_DATA_DIR"))
    g_setenv ("LS_DATA_DIR", ".", TRUE);
  for (int i = 1; i < argc; i++) {
    const LsTestSuite *suite = find (argv[i]);
    if (suite && argc == 2)
      return run (suite);
    ok = suite && passes_in_own_process (suite) && ok;
  }
  for (const LsTestSuite *s = argc == 1 ? first : NULL; s; s = s->next)
    ok = passes_in_own_process (s) && ok;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
