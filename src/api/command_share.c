/* `lockstep share`: several jobs on one cluster. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "ask/sharing.h"
#include "job/assumptions.h"
#include "show/answers.h"

#include <string.h>

#define DEFAULT_TOP 10

typedef struct {
  LsSharing *sharing;
  guint top; /* 0: all */
} Data;

static void
data_free (gpointer data)
{
  ls_sharing_free (((Data *) data)->sharing);
  g_free (data);
}

LS_ANSWER_FORM (to_text, ls_sharing_to_text (((const Data *) data)->sharing, ((const Data *) data)->top))
LS_ANSWER_FORM (to_json, ls_sharing_to_json (((const Data *) data)->sharing))
LS_ANSWER_FORM (to_csv, ls_sharing_to_csv (((const Data *) data)->sharing))

static void
page_of (gconstpointer data, LsPage *page)
{
  const LsSharing *s = ((const Data *) data)->sharing;
  g_autofree char *title = g_strdup_printf ("%u job%s on %u nodes of %s", s->n_jobs,
                                            s->n_jobs == 1 ? "" : "s", s->n_nodes, s->cluster);
  ls_page_set_title (page, title, NULL);
}

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, data_free, page_of };

/* One of the words of an option; what was not set leaves *value. */
static gboolean
choose (const LsRequest *r, const char *key, const char *const *words, int *value, GError **error)
{
  const char *text = ls_request_text (r, key);
  for (int i = 0; text && words[i]; i++)
    if (strcmp (words[i], text) == 0) {
      *value = i;
      return TRUE;
    }
  g_autofree char *flag = g_strconcat ("--", key, NULL);
  return !text || ls_request_refuse_word (flag, words, text, error);
}

static gboolean
read_options (const LsRequest *r, LsSharingOptions *o, GError **error)
{
  static const char *const shortcuts[] = { "off", "auto", "check", NULL };
  static const char *const networks[] = { "flow", "alphabeta", NULL };
  gint64 steps = o->run.n_steps, shifts = 0;
  int fold = (int) o->run.fold, coarsen = (int) o->run.coarsen, network = 0;
  if (!ls_request_number (r, "steps", 1, 1000, &steps, error)
      || !ls_request_number (r, "shift", 2, 4096, &shifts, error)
      || !choose (r, "network", networks, &network, error) || !choose (r, "fold", shortcuts, &fold, error)
      || !choose (r, "coarsen", shortcuts, &coarsen, error))
    return FALSE;
  o->run.n_steps = (uint32_t) steps;
  o->n_shifts = (guint) shifts;
  o->run.network = network == 0 ? LS_NETWORK_FLOW : LS_NETWORK_ALPHABETA;
  o->run.fold = (LsShortcut) fold;
  o->run.coarsen = (LsShortcut) coarsen;
  return TRUE;
}

/* What all jobs rest on, next to what is the file's. */
static void
assume (const LsRequest *r, const LsSharingOptions *o, GArray **assumptions)
{
  const char *network = ls_request_text (r, "network"), *steps = ls_request_text (r, "steps");
  ls_assumptions_add (assumptions, "network", g_strdup (network ? network : "flow"), "network %s",
                      network ? NULL : "by default", "--network KIND");
  ls_assumptions_add (assumptions, "steps", g_strdup_printf ("%u", o->run.n_steps),
                      "%s steps of each, where all does not repeat sooner", steps ? NULL : "by default",
                      "--steps N");
}

gboolean
command_share (const LsRequest *r, LsAnswer *a, GError **error)
{
  gint64 top = DEFAULT_TOP;
  guint n_threads;
  LsSharingOptions options;
  ls_sharing_options_init (&options);
  const char *path = ls_request_text (r, "file");
  if (!ls_request_number (r, "top", 1, 1000, &top, error) || !ls_request_threads (r, &n_threads, error)
      || !read_options (r, &options, error))
    return FALSE;
  const LsProgress progress = ls_request_progress (r);
  LsSharing *sharing = ls_sharing_new (path, &options, n_threads, &progress, error);
  if (!sharing)
    return FALSE;
  ls_answer_note_all (a, sharing->notes);
  if (options.run.network == LS_NETWORK_ALPHABETA)
    ls_answer_note (a, "by --network alphabeta no job slows another, and what links carry is not counted");
  ls_answer_note (a,
                  "a step alone has the interval that lockstep run names for its job; how much slower one "
                  "becomes has none: no jobs measured on one cluster are known here");
  assume (r, &options, &sharing->assumptions);
  Data *data = g_new (Data, 1);
  *data = (Data) { sharing, ls_request_is_on (r, "all") ? 0 : (guint) top };
  ls_answer_take (a, data, &forms);
  return TRUE;
}
