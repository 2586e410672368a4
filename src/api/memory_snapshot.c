#include "api/answers.h"

#include "ask/memory_view.h"
#include "show/run/write_snapshot.h"

/* Allocations and frees of all ranks together: some 50 MB, and about what a browser still shows. */
#define MAX_CHANGES 500000

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
  g_autofree char *line = g_strdup_printf (
      "snapshot: device %u is rank %u, a step of %" G_GUINT64_FORMAT " allocations and frees%s%s", number,
      d->rank, h->n_changes, left_out ? left_out : "",
      h->is_timed ? "" : "; without times: in the order of its program, one each microsecond");
  ls_answer_note (a, line);
}

static void
note_outside (const LsJobResult *r, LsAnswer *a)
{
  uint64_t bytes = r->report.at_peak[LS_MEM_COMM_BUFFERS];
  if (bytes == 0)
    return;
  g_autofree char *size = ls_format_bytes (bytes);
  g_autofree char *line = g_strdup_printf (
      "snapshot: without the buffers of NCCL (%s on the fullest rank), which PyTorch does not allocate",
      size);
  ls_answer_note (a, line);
}

static gboolean
add_device (const LsJobAnswer *j, GArray *devices, uint32_t rank, uint64_t max, const uint32_t *first_layers,
            uint32_t n_stages, GError **error)
{
  LsMemoryHistory *h = ls_memory_history_of (j->job, &j->spec.options.memory, rank, max, error);
  if (!h)
    return FALSE;
  LsSnapshotDevice d
      = { rank, h, ls_rank_parts (j->job, j->job->plan->bindings[rank].role, first_layers, n_stages) };
  g_array_append_val (devices, d);
  return TRUE;
}

gboolean
ls_job_answer_write_snapshot (const LsJobAnswer *j, const GArray *ranks, const char *path, LsAnswer *a,
                              GError **error)
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
