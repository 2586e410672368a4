/* `lockstep place`: which order of ranks and of nodes makes the step of a job shortest. */
#include "api/commands.h"
#include "api/job_answer.h"
#include "ask/place.h"
#include "data/jobs/read_placement.h"
#include "data/text/write_file.h"
#include "show/answers.h"

#include <string.h>

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const LsTitled *d = data;
  return ls_place_to_text (d->result, d->title, d->subtitle);
}

LS_ANSWER_FORM (to_json, ls_place_to_json (((const LsTitled *) data)->result))
LS_ANSWER_FORM (to_csv, ls_place_to_csv (((const LsTitled *) data)->result))

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, ls_titled_free };

static gboolean
write_placement (gconstpointer data, const char *path, GError **error)
{
  const LsPlace *p = ((const LsTitled *) data)->result;
  const LsJobResult *best = p->then;
  g_autofree char *name = g_path_get_basename (path),
                  *source = g_strdup_printf ("lockstep place: %s", ((const LsTitled *) data)->title);
  if (g_str_has_suffix (name, ".json"))
    name[strlen (name) - strlen (".json")] = '\0';
  g_autofree char *text
      = ls_placement_to_json (name, source, best->cluster, ls_plan_gpus (best->plan), best->plan->n_ranks);
  return ls_write_text (path, text, error);
}

static LsTitled *
search (const LsJobSpec *job, const LsRequest *r, const LsPlaceOptions *options, LsAnswer *a, GError **error)
{
  LsJobSpec spec = *job; /* borrows all */
  if (spec.network == LS_JOB_NETWORK_ALL)
    spec.network = LS_JOB_NETWORK_FLOW;
  const LsProgress progress = ls_request_progress (r);
  LsPlace *place = ls_place_new (&spec, options, &progress, error);
  if (!place)
    return NULL;
  ls_answer_note_all (a, place->now->notes);
  ls_job_tell_interval (job, place->now, "a step of the job as it is now", a);
  if (!place->now->report.fits)
    ls_answer_note (a,
                    "the job does not fit into its accelerators: lockstep memory, with the same options, "
                    "shows what would make it fit");
  return ls_titled_new (place, (GDestroyNotify) ls_place_free, place->now);
}

/* How to run it. */
static void
note_best (const LsPlace *p, const char *knobs, LsAnswer *a)
{
  const LsPlan *now = p->now->plan, *then = p->then->plan;
  bool is_moved = !ls_plan_has_same_gpus (now, then);
  bool is_written = strstr (knobs, "--placement") != NULL;
  ls_answer_note (a, "the best is the job with %s%s%s", knobs,
                  is_moved && !is_written && *knobs != '\0' ? " and " : "",
                  is_moved && !is_written ? "the placement that -o FILE writes" : "");
}

gboolean
command_place (const LsRequest *r, LsAnswer *a, GError **error)
{
  gint64 n_tries = 0;
  LsPlaceOptions options = { .any_nodes = ls_request_is_on (r, "any-nodes") };
  if (!ls_request_number (r, "tries", 1, 100000, &n_tries, error)
      || !ls_request_threads (r, &options.n_threads, error))
    return FALSE;
  options.n_tries = (guint) n_tries;
  LsJobSpec job;
  gboolean ok = ls_request_job (r, &job, error);
  if (ok) {
    ls_job_tell_from (&job, a);
    ls_job_tell_unasked (&job, a);
  }
  LsTitled *d = ok ? search (&job, r, &options, a, error) : NULL;
  ls_job_spec_clear (&job);
  if (!d)
    return FALSE;
  const char *path = ls_request_text (r, "output");
  g_autofree char *knobs = ls_place_options (d->result, path);
  ls_answer_take (a, d, &forms);
  ls_answer_write (a, r, "output", write_placement);
  if (((const LsPlace *) d->result)->gain >= LS_PLACE_LEAST_GAIN)
    note_best (d->result, knobs, a);
  return TRUE;
}
