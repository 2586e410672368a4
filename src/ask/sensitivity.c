#include "ask/sensitivity.h"

#include "base/parallel.h"
#include "job/sensitivity_scale.h"

#define PERCENT 0.01

static const struct {
  const char *key, *label;
} parameters[LS_N_SCALES] = {
  [LS_SCALE_GPU_FLOPS] = { "gpu_flops", "FLOPs" },
  [LS_SCALE_HBM_BANDWIDTH] = { "hbm_bandwidth", "HBM bandwidth" },
  [LS_SCALE_NVLINK_BANDWIDTH] = { "nvlink_bandwidth", "NVLink or ICI bandwidth" },
  [LS_SCALE_NIC_BANDWIDTH] = { "nic_bandwidth", "NIC and fabric bandwidth" },
  [LS_SCALE_NETWORK_LATENCY] = { "network_latency", "network latency" },
  [LS_SCALE_HOST_LAUNCH] = { "host_launch", "host launch cost" },
};

static const char *
label_of (guint scale, const LsClusterSpec *cluster)
{
  if (scale != LS_SCALE_GPU_FLOPS)
    return parameters[scale].label;
  g_autofree char *label
      = g_strdup_printf ("%s %s", ls_cluster_chip_word (cluster, 1), parameters[scale].label);
  return g_intern_string (label);
}

/* Each run has a place of its own: [parameter][down, up]. */
typedef struct {
  const LsJobResult *r;
  const LsHardware *hardware;
  LsRunOptions options;
  double step_s[LS_N_SCALES][2];
  GError *errors[2 * LS_N_SCALES];
} Runs;

static void
run_one (guint i, gpointer data)
{
  Runs *runs = data;
  guint scale = i / 2, up = i % 2;
  GError **error = &runs->errors[i];
  LsScaled x;
  ls_scaled_init (&x, &runs->r->cluster->spec, runs->hardware, &runs->options.host, (LsScale) scale,
                  up ? 1 + PERCENT : 1 - PERCENT);
  const LsHardware scaled = { x.spec, x.calibration, x.nccl };
  LsRunOptions options = runs->options;
  options.host = x.host;
  g_autoptr (LsTimeline) t = ls_rerun (runs->r, &scaled, &options, NULL, error);
  if (t)
    runs->step_s[scale][up] = ls_rerun_step_s (t);
  ls_scaled_clear (&x);
}

static gboolean
check_all (Runs *runs, GError **error)
{
  guint n = 2 * LS_N_SCALES, failed = ls_parallel_first_error (runs->errors, n, error);
  if (failed < n)
    g_prefix_error (error, "%s a percent %s: ", label_of (failed / 2, &runs->r->cluster->spec),
                    failed % 2 ? "up" : "down");
  return failed == n;
}

LsSensitivityTable *
ls_sensitivity_new (const LsJobSpec *spec, const LsJobResult *r, guint n_threads, GError **error)
{
  Runs runs = { .r = r, .hardware = r->hardware };
  if (!ls_hardware_check_alike (&r->cluster->spec, "--sensitivity", error)
      || !ls_rerun_options (spec, r, &runs.options, error))
    return NULL;
  ls_parallel (2 * LS_N_SCALES, n_threads, run_one, &runs, NULL);
  if (!check_all (&runs, error))
    return NULL;

  LsSensitivityTable *table = g_new (LsSensitivityTable, 1);
  *table = (LsSensitivityTable) { ls_job_result_step_time_s (r), LS_N_SCALES,
                                  g_new0 (LsSensitivity, LS_N_SCALES) };
  for (guint i = 0; i < LS_N_SCALES; i++) {
    double down_s = runs.step_s[i][0], up_s = runs.step_s[i][1], per_percent = (up_s - down_s) / 2;
    table->rows[i] = (LsSensitivity) {
      .parameter = parameters[i].key,
      .label = label_of (i, &r->cluster->spec),
      .elasticity = per_percent / (PERCENT * table->step_s),
      .seconds_per_percent = per_percent,
      .up_s = up_s,
      .down_s = down_s,
    };
  }
  return table;
}

void
ls_sensitivity_free (LsSensitivityTable *table)
{
  if (!table)
    return;
  g_free (table->rows);
  g_free (table);
}
