/* `lockstep collective`: collectives timed alone. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "ask/collective/collective_table.h"
#include "ask/reruns.h"
#include "show/plot/plots.h"
#include "show/answers.h"

LS_ANSWER_FORM (to_text, ls_collective_to_text (&((const LsCollectiveRun *) data)->table))
LS_ANSWER_FORM (to_json, ls_collective_to_json (&((const LsCollectiveRun *) data)->table))
LS_ANSWER_FORM (to_csv, ls_collective_to_csv (&((const LsCollectiveRun *) data)->table))
LS_ANSWER_FREE (run_free, ls_collective_run_free)

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, run_free };

/* CSV has a row for each call. */
static const LsAnswerForms message_forms = { to_text, to_json, NULL, NULL, run_free };

static gboolean
plot (gconstpointer run, const char *path, GError **error)
{
  return ls_plot_collective (&((const LsCollectiveRun *) run)->table, path, error);
}

LS_REQUEST_SET (set_knob, ls_collective_spec_set)

static LsCollectiveRun *
simulate (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  spec.progress = ls_request_progress (r);
  LsCollectiveRun *run
      = ls_request_set_own (r, set_knob, &spec, error) ? ls_collective_run_new (&spec, error) : NULL;
  if (run) {
    ls_override_note_collective (&spec, &run->table, run->notes);
    ls_answer_note_all (a, run->notes);
  }
  ls_collective_spec_clear (&spec);
  return run;
}

gboolean
command_collective (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsCollectiveRun *run = simulate (r, a, error);
  if (!run)
    return FALSE;
  ls_answer_take (a, run, run->table.messages ? &message_forms : &forms);
  ls_answer_write (a, r, "plot", plot);
  return TRUE;
}
