/* api/job_page.c — what the page of a job shows besides its result: the timeline, memory over it, links. */
#include "api/job_answer.h"
#include "ask/memory_view.h"
#include "show/draw/pictures.h"
#include "show/page/page_parts.h"

#define MAX_CURVES 16

/* The fullest rank first, then one of each stage. uint32_t. */
static GArray *
ranks_of (const LsJobResult *r)
{
  const LsPlan *plan = r->plan;
  GArray *ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autofree bool *is_taken = g_new0 (bool, plan->n_roles);
  uint32_t fullest = r->report.peak_rank;
  g_array_append_val (ranks, fullest);
  is_taken[plan->bindings[fullest].role] = true;
  for (uint32_t rank = 0; rank < plan->n_ranks && ranks->len < MAX_CURVES; rank++)
    if (!is_taken[plan->bindings[rank].role]) {
      is_taken[plan->bindings[rank].role] = true;
      g_array_append_val (ranks, rank);
    }
  return ranks;
}

static char *
memory_of (const LsJobAnswer *j)
{
  const LsJobResult *r = j->job;
  g_autoptr (GArray) ranks = ranks_of (r);
  g_autoptr (GPtrArray) curves = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  LsPageMemory shown[MAX_CURVES];
  for (guint i = 0; i < ranks->len; i++) {
    uint32_t rank = g_array_index (ranks, uint32_t, i);
    GArray *samples = ls_memory_curve_of (r, &j->spec.options.memory, rank, NULL);
    if (!samples)
      continue;
    shown[curves->len] = (LsPageMemory) { rank, samples };
    g_ptr_array_add (curves, samples);
  }
  return ls_page_memory (shown, curves->len, r->timeline->window_end - r->timeline->window_start,
                         r->report.capacity_bytes);
}

static char *
links_of (const LsJobResult *r)
{
  g_autoptr (LsCluster) whole = ls_cluster_spell_out (r->cluster);
  g_autoptr (LsTopoMap) map = ls_topo_map_new (whole);
  g_autoptr (LsTopoUse) use = ls_topo_use_new (whole, r->timeline);
  g_autoptr (LsDrawing) drawing = ls_draw_topology (map, use);
  return ls_drawing_to_svg (drawing);
}

void
ls_job_answer_memory_page (gconstpointer job_answer, LsPage *page)
{
  const LsJobAnswer *j = job_answer;
  ls_page_set_title (page, j->title, j->subtitle);
  ls_page_take_packed (page, "memory", memory_of (j));
}

void
ls_job_answer_page (gconstpointer job_answer, LsPage *page)
{
  const LsJobAnswer *j = job_answer;
  ls_job_answer_memory_page (j, page);
  ls_page_take_packed (page, "timeline", ls_page_timeline (j->job->timeline));
  ls_page_take_packed (page, "links", links_of (j->job));
}
