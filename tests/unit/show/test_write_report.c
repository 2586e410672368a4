/* Pins the names of `run --json` (names may be added, none renamed) and that
 * figures survive. */
#include "show/run/write_report.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "ls_test.h"
#include "report_example.h"

static const cJSON *
at (const cJSON *root, const char *path)
{
  g_auto (GStrv) names = g_strsplit (path, "/", -1);
  for (char **name = names; *name && root; name++)
    root = cJSON_GetObjectItemCaseSensitive (root, *name);
  ls_check_impl (root != NULL, __FILE__, __LINE__, "/%s is missing", path);
  return root;
}

static double
number (const cJSON *root, const char *path)
{
  const cJSON *item = at (root, path);
  ls_check_impl (cJSON_IsNumber (item), __FILE__, __LINE__, "/%s is no number", path);
  return item ? item->valuedouble : NAN;
}

static cJSON *
parse (const LsReport *r, const LsReportProvenance *p)
{
  g_autofree char *text = ls_report_to_json (r, p, NULL);
  LS_CHECK (g_str_has_suffix (text, "}\n"));
  return cJSON_Parse (text);
}

static void
links_and_networks_hold_theirs (void)
{
  LsReport r = report_example ();
  LsNetworkTime networks[] = {
    { .name = "flow", .step_time_s = 0.2, .breakdown_s = { [LS_PART_EXPOSED_TP] = 0.05 } },
    { .name = "step", .step_time_s = 0.25, .breakdown_s = { [LS_PART_EXPOSED_TP] = 0.1 } },
    { .name = "alphabeta", .refused = (char *) "why" },
  };
  r.n_networks = G_N_ELEMENTS (networks);
  r.networks = networks;
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  const cJSON *group = cJSON_GetArrayItem (at (root, "link_groups"), 2);
  LS_CHECK_DOUBLE (number (group, "n"), ==, 4);
  LS_CHECK_DOUBLE (number (group, "mean_utilisation"), ==, 0.125);
  LS_CHECK_DOUBLE (number (group, "max_utilisation"), ==, 0.25);
  LS_CHECK_DOUBLE (number (group, "bytes"), ==, 400e9);
  LS_CHECK_DOUBLE (number (root, "network_all/step/difference_pct"), ==, 25);
  LS_CHECK_DOUBLE (number (root, "network_all/step/breakdown_s/exposed_tp"), ==, 0.1);
  LS_CHECK (cJSON_IsNull (at (root, "network_all/step/refused")));
  LS_CHECK (cJSON_IsNull (at (root, "network_all/alphabeta/step_time_s")));
  LS_CHECK_STR (at (root, "network_all/alphabeta/refused")->valuestring, "why");
  cJSON_Delete (root);
}

static void
stable_names_hold_the_figures (void)
{
  LsReport r = report_example ();
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  if (!LS_CHECK (root != NULL))
    return;
  LS_CHECK_DOUBLE (number (root, "step_time_s"), ==, 13.75);
  LS_CHECK_DOUBLE (number (root, "first_step_s"), ==, 14);
  LS_CHECK_DOUBLE (number (root, "tokens_per_s"), ==, 9532.5);
  LS_CHECK_DOUBLE (number (root, "mfu"), ==, 0.514);
  LS_CHECK_DOUBLE (number (root, "mfu_causal"), ==, 0.49);
  LS_CHECK_DOUBLE (number (root, "hfu"), ==, 0.528);
  LS_CHECK_DOUBLE (number (root, "n_ranks"), ==, 64);
  LS_CHECK_DOUBLE (number (root, "n_classes"), ==, 8);
  LS_CHECK_DOUBLE (number (root, "bubble_frac"), ==, 0.04);
  LS_CHECK_DOUBLE (number (root, "memory/peak_bytes"), ==, 60.0 * (1 << 30));
  LS_CHECK_DOUBLE (number (root, "memory/capacity_bytes"), ==, 80.0 * (1 << 30));
  LS_CHECK (cJSON_IsTrue (at (root, "memory/fits")));
  LS_CHECK_DOUBLE (number (root, "memory/by_category/activations"), ==, 45.0 * (1 << 30));
  LS_CHECK_DOUBLE (number (root, "memory/at_peak/activations"), ==, 39.0 * (1 << 30));
  cJSON_Delete (root);
}

static void
breakdown_and_categories_have_all_keys (void)
{
  static const char *const parts[] = { "forward",      "backward",   "recompute",  "optimizer",  "slowdown",
                                       "exposed_tp",   "exposed_dp", "exposed_pp", "exposed_cp", "exposed_ep",
                                       "exposed_copy", "bubble",     "skew",       "host",       "other" };
  static const char *const categories[]
      = { "parameters", "gradients", "optimizer", "activations", "unsharded", "comm_buffers", "workspace" };
  LsReport r = report_example ();
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  double sum = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *path = g_strconcat ("breakdown_s/", parts[i], NULL);
    sum += number (root, path);
  }
  LS_CHECK_NEAR (sum, 13.75, 1e-12);
  LS_CHECK_INT (cJSON_GetArraySize (at (root, "breakdown_s")), ==, G_N_ELEMENTS (parts));
  for (size_t i = 0; i < G_N_ELEMENTS (categories); i++) {
    g_autofree char *path = g_strconcat ("memory/by_category/", categories[i], NULL);
    number (root, path);
  }
  LS_CHECK_INT (cJSON_GetArraySize (at (root, "memory/by_category")), ==, G_N_ELEMENTS (categories));
  cJSON_Delete (root);
}

static void
links_keep_their_order (void)
{
  LsReport r = report_example ();
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  const cJSON *links = at (root, "links");
  LS_CHECK_INT (cJSON_GetArraySize (links), ==, 3);
  const cJSON *first = cJSON_GetArrayItem (links, 0);
  LS_CHECK_STR (cJSON_GetStringValue (at (first, "name")), "node0 nic0 > leaf0");
  LS_CHECK_DOUBLE (number (first, "utilisation"), ==, 0.713);
  LS_CHECK_DOUBLE (number (first, "bytes"), ==, 120e9);
  cJSON_Delete (root);
}

static void
provenance_says_what_is_known (void)
{
  LsReport r = report_example ();
  LsReportProvenance p = {
    .version = "0.1.0", .model = "gpt \"x\"", .model_source = "a paper", .cluster = "dgx", .options = "--tp 8"
  };
  cJSON *root = parse (&r, &p);
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/version")), "0.1.0");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/model/name")), "gpt \"x\"");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/model/source")), "a paper");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/options")), "--tp 8");
  LS_CHECK_STR (cJSON_GetStringValue (at (root, "provenance/digest")), "0000000000000abc");
  LS_CHECK_DOUBLE (number (root, "provenance/kernel_time_frac/fitted"), ==, 0.9);
  LS_CHECK (!cJSON_HasObjectItem (at (root, "provenance"), "strategy"));
  LS_CHECK (!cJSON_HasObjectItem (at (root, "provenance/cluster"), "source"));
  cJSON_Delete (root);
}

static void
what_is_not_finite_is_null (void)
{
  LsReport r = report_example ();
  r.mfu = NAN;
  cJSON *root = parse (&r, &(LsReportProvenance) { .version = "1" });
  LS_CHECK (cJSON_IsNull (at (root, "mfu")));
  cJSON_Delete (root);
}

LS_TEST_SUITE (LS_TEST (links_and_networks_hold_theirs), LS_TEST (stable_names_hold_the_figures),
               LS_TEST (breakdown_and_categories_have_all_keys), LS_TEST (links_keep_their_order),
               LS_TEST (provenance_says_what_is_known), LS_TEST (what_is_not_finite_is_null))
