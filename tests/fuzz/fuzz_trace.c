/* Any bytes as a trace: read, or refused with reasons. What is read is a legal plan; it
 * is written as a file that reads back as one that is written alike; if it is small it
 * runs, to a result, an error or a deadlock report. */
#include <string.h>

#include "data/traces/trace_json.h"
#include "exec/run.h"
#include "fuzz.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"

#define MAX_OPS 5000

static char *
format (const LsTrace *t)
{
  LsTraceHead head = { .name = t->name,
                       .source = t->source,
                       .mesh = &t->mesh,
                       .model = t->has_model ? &t->model : NULL,
                       .strategy = t->has_model ? &t->strategy : NULL };
  g_autoptr (GError) error = NULL;
  char *text = ls_trace_format (t->plan, &head, &error);
  if (!text && error->code != LS_ERROR_UNSUPPORTED)
    fuzz_fail ("not written: %s", error->message);
  return text;
}

static void
check_round_trip (const LsTrace *t)
{
  g_autofree char *once = format (t);
  if (!once)
    return;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (once, strlen (once), "fuzz.json", diags);
  g_autoptr (LsTrace) again = doc ? ls_trace_read (doc, 0, diags) : NULL;
  g_autofree char *said = ls_diag_list_format (diags), *twice = again ? format (again) : NULL;
  if (g_strcmp0 (once, twice) != 0)
    fuzz_fail ("written as\n%s\nread back with\n%s\nas\n%s", once, said, twice ? twice : "nothing");
}

static void
run (const LsPlan *plan)
{
  static LsCluster *cluster;
  static LsCalibration calibration;
  static const LsNccl nccl = {
    .tables = LS_TEST_NCCL_VOLTA,
    .channels_ring = 8,
    .channels_net = 2,
    .channels_p2p = 2,
    .ring_bus_intra = 200e9,
    .ring_bus_per_nic = 20e9,
    .p2p_intra = 200e9,
    .p2p_inter = 20e9,
    .sm_share_per_channel = 0.0093,
    .hbm_per_wire_all_reduce = 3,
    .hbm_per_wire_p2p = 2,
  };
  LsClusterSpec spec = tiny_dgx (2);
  if (!cluster) {
    cluster = ls_cluster_build (&spec, NULL);
    ls_calibration_init_roofline (&calibration);
  }
  LsRunOptions options;
  ls_run_options_init (&options);
  options.max_memory_bytes = 64 << 20;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsTimeline) t = ls_run (plan, cluster, &calibration, &nccl, &options, NULL, &error);
  if (!t && error->code != LS_ERROR_DEADLOCK && error->code != LS_ERROR_LIMIT
      && error->code != LS_ERROR_CONFLICT)
    fuzz_fail ("a legal plan: %s", error->message);
}

static bool
read_trace (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsTrace) t = ls_trace_read (doc, 0, diags);
  if (!t)
    return false;
  g_autoptr (GError) error = NULL;
  if (!ls_plan_check (t->plan, &error))
    fuzz_fail ("an illegal plan: %s", error->message);
  if (ls_plan_n_op_instances (t->plan) > MAX_OPS)
    return true;
  check_round_trip (t);
  run (t->plan);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_trace);
  return 0;
}
