#include "api/sweep_capture.h"

#include <string.h>

#include <lockstep/error.h>

#include "ask/capture_layouts.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "show/write_captured.h"

LS_ANSWER_FORM (to_text, ls_capture_layouts_to_text (data))
LS_ANSWER_FORM (to_json, ls_capture_layouts_to_json (data))
LS_ANSWER_FREE (free_layouts, ls_capture_layouts_free)

static const LsAnswerForms forms = { to_text, to_json, NULL, NULL, free_layouts, NULL };

typedef struct {
  char *cluster;
  GArray *axes; /* LsCaptureAxis */
} Said;

static gboolean
take_knob (gpointer target, const char *key, const char *value, LsDiagList *diags)
{
  Said *said = target;
  (void) diags;
  if (strcmp (key, "cluster") == 0) {
    g_free (said->cluster);
    said->cluster = g_strdup (value);
    return TRUE;
  }
  const LsCaptureAxis axis = { g_strdelimit (g_strdup (key), "_", '-'), g_strsplit (value, ",", -1) };
  g_array_append_val (said->axes, axis);
  return TRUE;
}

static gboolean
capture (const LsRequest *r, Said *said, const LsClusterSpec *cluster, LsAnswer *a, GError **error)
{
  const LsProgress progress = ls_request_progress (r);
  g_autofree const char **words = ls_request_texts (r, "command");
  g_autofree char *message = NULL, *models = ls_data_find (LS_DATA_MODEL_NAMES, "published", &message);
  const LsCaptureAsk ask = { .gpu = &cluster->gpu,
                             .gpus_per_node = cluster->gpus_per_node,
                             .which = LS_CAPTURE_AUTO,
                             .steps = 2,
                             .command = words[0] && strcmp (words[0], "--") == 0 ? words + 1 : words,
                             .models = models,
                             .stop = ls_request_stop (r),
                             .progress = &progress };
  LsCaptureLayouts *layouts = ls_capture_layouts (&ask, said->cluster, g_steal_pointer (&said->axes), error);
  if (!layouts)
    return FALSE;
  ls_answer_take (a, layouts, &forms);
  if (!g_array_index (layouts->layouts, LsCaptureLayout, 0).fits)
    ls_answer_fail_with (a, LS_ERROR_NO_FIT, "no layout fits");
  return TRUE;
}

gboolean
ls_sweep_capture (const LsRequest *r, LsAnswer *a, GError **error)
{
  Said said = { NULL, ls_capture_axes_new () };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree const char **words = ls_request_texts (r, "command");
  LsClusterSpec cluster;
  gboolean ok = ls_request_set_job (r, take_knob, &said, error);
  if (ok && (!said.cluster || !words))
    ok = ls_request_refuse ("--capture: expected --cluster, and -- and a command with {tp} and the like",
                            error);
  if (ok && !ls_cluster_load (said.cluster, &cluster, diags))
    ok = ls_diag_list_to_error (diags, error);
  else if (ok) {
    ok = capture (r, &said, &cluster, a, error);
    ls_cluster_spec_clear (&cluster);
  }
  g_free (said.cluster);
  g_clear_pointer (&said.axes, g_array_unref);
  return ok;
}
