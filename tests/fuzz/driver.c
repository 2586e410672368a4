/* Runs a fuzz target on its corpus, as an ordinary test; the program has all kinds of fuzz_document.c:
 *
 *     fuzz_document_corpus gpu FILE-OR-CORPUS...          a corpus ends in .txt
 *     fuzz_document_corpus gpu --unpack FOLDER CORPUS     each input as a file, for libFuzzer
 *     fuzz_document_corpus gpu --pack FILE...             prints files as they stand in a corpus
 *
 * Each is an input that once showed something, or that reaches something of its own. A corpus is of all targets; in it
 * inputs are
 *
 *     === TARGET/NAME
 *     its lines
 *     === TARGET/NAME without newline
 *     lines of which the last has none
 *     === TARGET/NAME hex
 *     6c6f636b  bytes, in as many lines as one likes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define HEADER     "=== "
#define HEX        " hex"
#define NO_NEWLINE " without newline"
#define HEX_WIDTH  50 /* bytes of a line */

const char *fuzz_target;

typedef void (*Use) (const char *name, const char *data, gsize n, const char *folder);

static void
die (const char *what, const char *name)
{
  fprintf (stderr, "%s: %s\n", name, what);
  exit (EXIT_FAILURE);
}

static char *
contents_of (const char *path, gsize *n)
{
  g_autoptr (GError) error = NULL;
  char *data = NULL;
  if (!g_file_get_contents (path, &data, n, &error))
    die (error->message, path);
  return data;
}

static void
run (const char *name, const char *data, gsize n, const char *folder)
{
  (void) name, (void) folder;
  /* of exactly this size, so that a sanitizer sees the first byte too many */
  g_autofree uint8_t *exact = g_memdup2 (data, n);
  LLVMFuzzerTestOneInput (exact, n);
}

static void
unpack (const char *name, const char *data, gsize n, const char *folder)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (folder, name, NULL);
  if (!g_file_set_contents (path, data, (gssize) n, &error))
    die (error->message, path);
}

/* In place; returns how many bytes they are. */
static gsize
from_hex (char *text, const char *name)
{
  gsize n = 0;
  for (const char *p = text; *p; p++) {
    if (g_ascii_isspace (*p))
      continue;
    int high = g_ascii_xdigit_value (p[0]), low = g_ascii_xdigit_value (p[1]);
    if (high < 0 || low < 0)
      die ("expected hexadecimal digits", name);
    text[n++] = (char) (high * 16 + low);
    p++;
  }
  return n;
}

/* section: what follows HEADER and the target, the name's line and the input. */
static void
use_section (const char *section, Use use, const char *folder)
{
  const char *newline = strchr (section, '\n');
  if (!newline)
    die ("expected a line below", section);
  g_autofree char *name = g_strndup (section, (gsize) (newline - section)), *data = g_strdup (newline + 1);
  gsize n = strlen (data);
  if (g_str_has_suffix (name, HEX)) {
    name[strlen (name) - strlen (HEX)] = '\0';
    n = from_hex (data, name);
  } else if (g_str_has_suffix (name, NO_NEWLINE) && n > 0) {
    name[strlen (name) - strlen (NO_NEWLINE)] = '\0';
    n--;
  }
  if (!*name || strchr (name, ' ') || strchr (name, '/'))
    die ("expected a file name after \"=== \"", name);
  use (name, data, n, folder);
}

static guint
use_corpus (const char *path, Use use, const char *folder)
{
  gsize n = 0;
  g_autofree char *text = contents_of (path, &n);
  if (strlen (text) != n || !g_str_has_prefix (text, HEADER))
    die ("expected \"=== TARGET/NAME\" first, and no NUL", path);
  guint n_inputs = 0;
  for (char *at = text; at;) {
    char *section = at + strlen (HEADER), *next = strstr (section, "\n" HEADER);
    at = next ? next + 1 : NULL;
    if (!g_str_has_prefix (section, fuzz_target) || section[strlen (fuzz_target)] != '/')
      continue;
    section += strlen (fuzz_target) + 1;
    g_autofree char *one = at ? g_strndup (section, (gsize) (at - section)) : g_strdup (section);
    use_section (one, use, folder);
    n_inputs++;
  }
  return n_inputs;
}

static guint
run_path (const char *path)
{
  if (g_str_has_suffix (path, ".txt"))
    return use_corpus (path, run, NULL);
  gsize n = 0;
  g_autofree char *data = contents_of (path, &n);
  run (path, data, n, NULL);
  return 1;
}

static bool
is_plain (const char *data, gsize n)
{
  if (!g_utf8_validate (data, (gssize) n, NULL) || g_str_has_prefix (data, HEADER)
      || strstr (data, "\n" HEADER))
    return false;
  for (gsize i = 0; i < n; i++)
    if ((g_ascii_iscntrl (data[i]) && data[i] != '\n' && data[i] != '\t') || data[i] == '\x7f')
      return false;
  return n > 0;
}

static void
pack (const char *path)
{
  gsize n = 0;
  g_autofree char *data = contents_of (path, &n), *name = g_path_get_basename (path);
  if (is_plain (data, n)) {
    bool has_newline = data[n - 1] == '\n';
    printf (HEADER "%s/%s%s\n%s%s", fuzz_target, name, has_newline ? "" : NO_NEWLINE, data,
            has_newline ? "" : "\n");
    return;
  }
  printf (HEADER "%s/%s" HEX "\n", fuzz_target, name);
  for (gsize i = 0; i < n; i++)
    printf ("%02x%s", (uint8_t) data[i], i + 1 == n || (i + 1) % HEX_WIDTH == 0 ? "\n" : "");
}

int
main (int argc, char **argv)
{
  guint n = 0;
  if (argc < 2)
    die ("which target?", argv[0]);
  fuzz_target = argv[1];
  argc--, argv++;
  if (argc == 4 && strcmp (argv[1], "--unpack") == 0)
    n = use_corpus (argv[3], unpack, argv[2]);
  else if (argc > 2 && strcmp (argv[1], "--pack") == 0) {
    for (int i = 2; i < argc; i++)
      pack (argv[i]);
    return EXIT_SUCCESS;
  } else
    for (int i = 1; i < argc; i++)
      n += run_path (argv[i]);
  printf ("%u inputs\n", n);
  return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
