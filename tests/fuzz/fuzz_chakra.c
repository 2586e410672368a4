/* Any bytes as the Chakra trace of the only rank, or of two ranks, a half each, where the first byte is odd; or,
 * where it has the second bit, as manifest.json up to a NUL and the file of the only role: a trace, or
 * refused with reasons. What is read is a legal plan. */
#include <string.h>

#include "data/traces/traces.h"
#include "fuzz.h"

static void
add_file (GPtrArray *files, const uint8_t *data, size_t n)
{
  GByteArray *file = g_byte_array_new ();
  g_byte_array_append (file, data, (guint) n);
  g_ptr_array_add (files, file);
}

static LsTrace *
parse_roles (const uint8_t *data, size_t n, LsDiagList *diags)
{
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func ((GDestroyNotify) g_byte_array_unref);
  g_autofree char *manifest = g_strndup ((const char *) data, n);
  size_t end = MIN (strlen (manifest) + 1, n);
  add_file (files, data + end, n - end);
  return ls_chakra_parse_roles ("fuzz", files, manifest, diags);
}

static LsTrace *
parse_ranks (const uint8_t *data, size_t n, bool are_two, LsDiagList *diags)
{
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func ((GDestroyNotify) g_byte_array_unref);
  size_t half = are_two ? n / 2 : n;
  add_file (files, data, half);
  if (are_two)
    add_file (files, data + half, n - half);
  return ls_chakra_parse ("fuzz", files, NULL, diags);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  if (n == 0)
    return 0;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (LsTrace) t = data[0] & 2 ? parse_roles (data + 1, n - 1, diags)
                                      : parse_ranks (data + 1, n - 1, data[0] & 1, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert ((t == NULL) == (ls_diag_list_n (diags) > 0));
  g_assert (g_utf8_validate (said, -1, NULL));
  if (t && !ls_plan_check (t->plan, &error))
    fuzz_fail ("an illegal plan: %s", error->message);
  return 0;
}
