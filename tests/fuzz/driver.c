/* Runs a fuzz target on the files of its corpus, as an ordinary test:
 *
 *     fuzz_gpu_corpus FILE-OR-FOLDER...
 *
 * Each is an input that once showed something, or that reaches something of its own. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

static guint
run_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *data = NULL;
  gsize n = 0;
  if (!g_file_get_contents (path, &data, &n, &error)) {
    fprintf (stderr, "%s\n", error->message);
    exit (EXIT_FAILURE);
  }
  /* of exactly this size, so that a sanitizer sees the first byte too many */
  g_autofree uint8_t *exact = g_memdup2 (data, n);
  LLVMFuzzerTestOneInput (exact, n);
  return 1;
}

static int
by_name (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const char *const *) a, *(const char *const *) b);
}

static guint
run (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  if (!dir)
    return run_file (path);
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func (g_free);
  for (const char *name = g_dir_read_name (dir); name; name = g_dir_read_name (dir))
    g_ptr_array_add (files, g_build_filename (path, name, NULL));
  g_ptr_array_sort (files, by_name);
  guint n = 0;
  for (guint i = 0; i < files->len; i++)
    n += run (files->pdata[i]);
  return n;
}

int
main (int argc, char **argv)
{
  guint n = 0;
  for (int i = 1; i < argc; i++)
    n += run (argv[i]);
  printf ("%u inputs\n", n);
  return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
