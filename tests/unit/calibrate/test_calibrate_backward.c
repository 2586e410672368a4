/* Pins what a calibration of no other does for attention that was timed forward only: the backward runs as the
 * forward does, and the file says so. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "data/machines/machines.h"

static char *
write_file (const char *folder, const char *name, const char *text)
{
  char *path = g_build_filename (folder, name, NULL);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
  return path;
}

/* What attention takes that reaches 60 of 100 TFLOP/s. */
static char *
calibrated (void)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  g_autofree char *gpu
      = write_file (folder, "flat.json",
                    "{\"schema\":\"lockstep.gpu/1\",\"name\":\"flat\",\"source\":\"made up\","
                    "\"peak_flops\":{\"bf16\":\"100TFLOP/s\"},\"vector_flops\":\"10TFLOP/s\","
                    "\"hbm_bandwidth\":\"1TB/s\",\"hbm_efficiency\":1,\"hbm_size\":\"16GiB\",\"sm\":100}");
  g_autoptr (GString) csv = g_string_new ("batch,seq,heads,kv_heads,head_dim,attn_dtype,latency_ms\n");
  for (uint64_t seq = 512; seq <= 8192; seq *= 2) {
    LsKernel k = ls_kernel_attention ("attention", LS_DTYPE_BF16, 1, seq, 16, 16, 128, true, false);
    g_string_append_printf (csv, "1,%" G_GUINT64_FORMAT ",16,16,128,bf16,%.6f\n", seq, k.flops / 60e9);
  }
  g_autofree char *table = write_file (folder, "attention.csv", csv->str);
  const char *const files[] = { table, NULL };
  const LsCalibrateSpec spec = { .files = files, .gpu = gpu, .version = "test" };
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCalibrateRun) run = ls_calibrate_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  g_unlink (table);
  g_unlink (gpu);
  g_rmdir (folder);
  return run ? ls_calibrate_run_json (run, "mine") : NULL;
}

static void
a_backward_without_data_runs_as_the_forward (void)
{
  g_autofree char *json = calibrated ();
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = json ? ls_json_doc_parse (json, strlen (json), "mine.json", diags) : NULL;
  LsCalibration c;
  if (!LS_CHECK (doc && ls_calibration_read (doc, &c, diags)))
    return;
  const LsKindFit *forward = &c.kind[LS_KERNEL_ATTENTION_FWD], *backward = &c.kind[LS_KERNEL_ATTENTION_BWD];
  LS_CHECK (strstr (json, "no data: as the forward") != NULL);
  LS_CHECK (forward->is_fitted && !backward->is_fitted);
  LS_CHECK_DOUBLE (backward->compute_efficiency, ==, forward->compute_efficiency);
  LS_CHECK_DOUBLE (backward->memory_efficiency, ==, forward->memory_efficiency);
  LS_CHECK_INT (backward->launch, ==, forward->launch);
  ls_calibration_clear (&c);
}

LS_TEST_MAIN ("calibrate_backward", LS_TEST (a_backward_without_data_runs_as_the_forward))
