/* Any bytes as a profile of torch.profiler, packed or not, or of Nsight Systems: read, or refused with
 * reasons; what was read gives a step or a reason, and the step's parts add up; it becomes a trace, or there is
 * a reason, and the trace is read. */
#include <string.h>

#include "ask/profile/import_profile.h"
#include "data/traces/traces.h"
#include "fuzz.h"

#include "ask/profile/measured_step.h"
#include "data/measured/read_kineto.h"

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
  g_autoptr (LsProfileImport) import = ls_profile_import_of (k, &spec, &error);
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

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsKineto) k = ls_kineto_parse ("fuzz", data, n, diags);
  g_assert ((k == NULL) == (ls_diag_list_n (diags) > 0));
  g_autofree char *said = ls_diag_list_format (diags);
  g_assert (g_utf8_validate (said, -1, NULL));
  if (!k)
    return 0;
  for (guint i = 0; i < k->notes->len; i++)
    g_assert (g_utf8_validate (g_ptr_array_index (k->notes, i), -1, NULL));
  check_step (k, NULL);
  check_step (k, "0");
  check_step (k, "0us:1ms");
  check_import (g_steal_pointer (&k), n % 2);
  return 0;
}
