/* tests/fuzz/fuzz.h — what the fuzz targets share.
 *
 * A target is one function of bytes. It must return, whatever they are; what must
 * hold is asserted, so that libFuzzer, the sanitizers and the driver see it alike. */
#ifndef LS_TESTS_FUZZ_H
#define LS_TESTS_FUZZ_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "data/text/json_doc.h"

/* Which target: a program of libFuzzer is built for one, the driver is told. */
#ifdef FUZZ_TARGET
static const char *const fuzz_target G_GNUC_UNUSED = FUZZ_TARGET;
#else
extern const char *fuzz_target;
#endif

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

/* The bytes as a JSON document that is called `name`, read by `read`; a reader says
 * what is wrong, if and only if something is. */
static inline bool
fuzz_read (const uint8_t *data, size_t n, const char *name,
           bool (*read) (const LsJsonDoc *doc, LsDiagList *diags))
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse ((const char *) data, n, name, diags);
  bool ok = doc && read (doc, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  g_autofree char *text = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (text, -1, NULL));
  return ok;
}

/* What must not happen has: aborts, which libFuzzer and the driver both notice. */
static inline void G_GNUC_PRINTF (1, 2) G_GNUC_NORETURN fuzz_fail (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  vfprintf (stderr, format, args);
  va_end (args);
  fputc ('\n', stderr);
  abort ();
}

/* The bytes as text, up to the first NUL; newly allocated. */
static inline char *
fuzz_text (const uint8_t *data, size_t n)
{
  return g_strndup ((const char *) data, n);
}

#endif
