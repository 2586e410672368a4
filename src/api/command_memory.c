/* `lockstep memory`: what each rank of a job holds. */
#include "api/job_answer.h"

#include "api/commands.h"
#include "ask/memory_view.h"
#include "show/run/write_run.h"

/* --- the snapshot ----------------------------------------------------------------------------------- */

/* Allocations and frees of all ranks together: some 50 MB, and about what a browser still shows. */
#define MAX_CHANGES 500000

#define SNAPSHOT_MAX_RANKS 16

static void
clear_device (gpointer device)
{
  LsSnapshotDevice *d = device;
  ls_memory_history_free ((LsMemoryHistory *) d->history);
  g_array_unref ((GArray *) d->parts);
}

static void
note_device (const LsSnapshotDevice *d, guint number, LsAnswer *a)
{
  const LsMemoryHistory *h = d->history;
  g_autofree char *left_out = h->n_left_out > 0
      ? g_strdup_printf (": %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " around the peak",
                         h->n_changes - h->n_left_out, h->n_changes)
      : NULL;
  ls_answer_note (a,
                  "snapshot: device %u is rank %u, a step of %" G_GUINT64_FORMAT " allocations and frees%s%s",
                  number, d->rank, h->n_changes, left_out ? left_out : "",
                  h->is_timed ? "" : "; without times: in the order of its program, one each microsecond");
}

static void
note_outside (const LsJobResult *r, LsAnswer *a)
{
  uint64_t bytes = r->report.at_peak[LS_MEM_COMM_BUFFERS];
  if (bytes == 0)
    return;
  g_autofree char *size = ls_format_bytes (bytes);
  ls_answer_note (
      a, "snapshot: without the buffers of NCCL (%s on the fullest rank), which PyTorch does not allocate",
      size);
}

static gboolean
add_device (const LsJobAnswer *j, GArray *devices, uint32_t rank, uint64_t max, const uint32_t *first_layers,
            uint32_t n_stages, GError **error)
{
  LsMemoryHistory *h = ls_memory_history_of (j->job, &j->spec.options.memory, rank, max, error);
  if (!h)
    return FALSE;
  LsSnapshotDevice d
      = { rank, h, ls_rank_parts (j->job, ls_plan_role (j->job->plan, rank), first_layers, n_stages) };
  g_array_append_val (devices, d);
  return TRUE;
}

/* Writes what PyTorch's allocator does on ranks (uint32_t; empty: the fullest) into a file, and notes what is
 * not in it. Errors as of ls_memory_history_of() and ls_snapshot_write(). */
static gboolean
write_snapshot (const LsJobAnswer *j, const GArray *ranks, const char *path, LsAnswer *a, GError **error)
{
  g_autoptr (GArray) devices = g_array_new (FALSE, FALSE, sizeof (LsSnapshotDevice));
  g_array_set_clear_func (devices, clear_device);
  guint n = MAX (1, ranks->len);
  uint32_t n_stages;
  g_autofree uint32_t *first_layers = ls_first_layers (j->job, &n_stages);
  for (guint i = 0; i < n; i++) {
    uint32_t rank = ranks->len > 0 ? g_array_index (ranks, uint32_t, i) : j->job->report.peak_rank;
    if (!add_device (j, devices, rank, MAX_CHANGES / n, first_layers, n_stages, error))
      return FALSE;
  }
  const LsSnapshot s = { j->title, j->job->plan, first_layers,
                         (const LsSnapshotDevice *) (gpointer) devices->data, devices->len };
  if (!ls_snapshot_write (&s, path, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    note_device (&g_array_index (devices, LsSnapshotDevice, i), i, a);
  note_outside (j->job, a);
  return TRUE;
}

/* --- the table -------------------------------------------------------------------------------------- */

static char *
format (const LsJobAnswer *j, char *(*to) (const LsMemoryTable *t))
{
  g_auto (LsMemoryTable) table = { 0 };
  ls_memory_table_init (&table, j->job, j->title, j->subtitle, j->advice);
  return to (&table);
}

LS_ANSWER_FORM (to_text, format (data, ls_memory_to_text))
LS_ANSWER_FORM (to_json, format (data, ls_memory_to_json))
LS_ANSWER_FORM (to_csv, format (data, ls_memory_to_csv))

static const LsAnswerForms forms
    = { to_text, to_json, to_csv, NULL, ls_job_answer_free, ls_job_answer_memory_page };

/* A trace has no changes to try: the table goes without. */
static void
advise (LsJobAnswer *j, LsAnswer *a)
{
  g_autoptr (GError) error = NULL;
  if (j->job->report.fits)
    return;
  j->advice = ls_memory_advise (&j->spec, j->job, &error);
  if (!j->advice)
    ls_answer_note (a, "%s", error->message);
  g_free (j->subtitle);
  j->subtitle = ls_job_subtitle (j->job);
}

/* uint32_t; empty: the fullest. */
static GArray *
ranks_of (const LsRequest *r, GError **error)
{
  g_autoptr (GArray) ranks = ls_request_ranks (r, "rank", SNAPSHOT_MAX_RANKS,
                                               "a rank, or at most 16 with a comma between two", error);
  if (!ranks)
    return NULL;
  if (ranks->len > 0 && !ls_request_text (r, "memory-chart") && !ls_request_text (r, "snapshot")) {
    ls_request_refuse ("--rank goes with --memory-chart or --snapshot: the table has all ranks", error);
    return NULL;
  }
  if (ranks->len > 1 && ls_request_text (r, "memory-chart")) {
    ls_request_refuse ("--memory-chart draws one rank: --rank N", error);
    return NULL;
  }
  return g_steal_pointer (&ranks);
}

gboolean
command_memory (const LsRequest *r, LsAnswer *a, GError **error)
{
  g_autoptr (GArray) ranks = ranks_of (r, error);
  g_autoptr (LsJobAnswer) made = ranks ? ls_job_answer_new (r, a, error) : NULL;
  const char *chart = ls_request_text (r, "memory-chart"), *snapshot = ls_request_text (r, "snapshot");
  gint64 first = made && ranks->len > 0 ? (gint64) g_array_index (ranks, uint32_t, 0) : -1;
  if (!made || (chart && !ls_job_answer_plot_memory (made, first, chart, error))
      || (snapshot && !write_snapshot (made, ranks, snapshot, a, error)))
    return FALSE;
  LsJobAnswer *j = g_steal_pointer (&made);
  if (j->job->assumptions) /* its text has the headroom at the verdict */
    ls_what_if_assume_headroom (&j->spec, NULL, j->job);
  ls_answer_take (a, j, &forms);
  if (!ls_request_is_on (r, "no-advice"))
    advise (j, a);
  ls_job_answer_check_fit (j, r, NULL, a);
  return TRUE;
}
