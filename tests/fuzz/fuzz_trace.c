/* Any bytes as what was recorded of a run: Chakra's traces, profiles of torch.profiler or of Nsight Systems. fuzz_target is the
 * kind. */
#include "fuzz.h"

#include <string.h>

#include "ask/profile/import_profile.h"
#include "ask/profile/profile_step.h"
#include "data/measured/read_kineto.h"
#include "data/traces/traces.h"

/* ---- Chakra: a trace of the only rank, or of two, a half each, where the first byte is odd; or, where it has the second bit,
 * manifest.json up to a NUL and the file of the only role. What is read is a legal plan. ---- */

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
  return ls_chakra_parse ("fuzz", files, NULL, manifest, diags);
}

static LsTrace *
parse_ranks (const uint8_t *data, size_t n, bool are_two, LsDiagList *diags)
{
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func ((GDestroyNotify) g_byte_array_unref);
  size_t half = are_two ? n / 2 : n;
  add_file (files, data, half);
  if (are_two)
    add_file (files, data + half, n - half);
  return ls_chakra_parse ("fuzz", files, NULL, NULL, diags);
}

static void
fuzz_chakra (const uint8_t *data, size_t n)
{
  if (n == 0)
    return;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (LsTrace) t = data[0] & 2 ? parse_roles (data + 1, n - 1, diags)
                                      : parse_ranks (data + 1, n - 1, data[0] & 1, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert ((t == NULL) == (ls_diag_list_n (diags) > 0));
  g_assert (g_utf8_validate (said, -1, NULL));
  if (t && !ls_plan_check (t->plan, &error))
    fuzz_fail ("an illegal plan: %s", error->message);
}

/* ---- profiles, packed or not: what was read gives a step or a reason, and the step's parts add up; it becomes a trace, or there
 * is a reason, and the trace is read ---- */

static void
check_step (const LsKineto *k, const char *which)
{
  g_autoptr (GError) error = NULL;
  LsMeasuredStep step;
  if (!ls_measured_step_cut (k, which, &step, &error)) {
    g_assert (error && g_utf8_validate (error->message, -1, NULL));
    return;
  }
  g_assert (step.side->length > 0 && step.side->ops->len > 0);
  LsStepTime t = ls_reconcile_time (step.side);
  LsTime sum = t.idle_host + t.idle_device;
  for (int tier = 0; tier < LS_N_TIERS; tier++)
    sum += t.matched[tier] + t.unmatched[tier];
  g_assert (sum == step.side->length);
  ls_measured_step_clear (&step);
}

/* Takes k. */
static void
check_import (LsKineto *k, bool as_measured)
{
  g_autoptr (GError) error = NULL;
  const LsProfileImportSpec spec
      = { .name = "fuzz", .as_measured = as_measured, .changes = { as_measured, as_measured ? 1 : 0.5 } };
  g_autoptr (LsProfileImport) import = ls_profile_import_new (k, &spec, &error);
  if (!import) {
    g_assert (error && g_utf8_validate (error->message, -1, NULL));
    return;
  }
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (import->text, strlen (import->text), "fuzz.json", diags);
  g_autoptr (LsTrace) trace = doc ? ls_trace_read (doc, 0, diags) : NULL;
  g_autofree char *said = ls_diag_list_format (diags);
  if (!trace)
    fuzz_fail ("not read: %s\nof %s", said, import->text);
}

static void
fuzz_profile (const uint8_t *data, size_t n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsKineto) k = ls_kineto_parse ("fuzz", data, n, diags);
  g_assert ((k == NULL) == (ls_diag_list_n (diags) > 0));
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
  if (!k)
    return;
  for (guint i = 0; i < k->notes->len; i++)
    g_assert (g_utf8_validate (g_ptr_array_index (k->notes, i), -1, NULL));
  check_step (k, NULL);
  check_step (k, "0");
  check_step (k, "0us:1ms");
  check_import (g_steal_pointer (&k), n % 2);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  if (strcmp (fuzz_target, "chakra") == 0)
    fuzz_chakra (data, n);
  else
    fuzz_profile (data, n);
  return 0;
}
