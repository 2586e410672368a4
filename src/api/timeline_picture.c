#include <string.h>

#include <lockstep/error.h>

#include "api/job_answer.h"
#include "show/draw/pictures.h"

#define MAX_RANKS 256

static const char *const keys[]
    = { "timeline-rows", "timeline-ranks", "timeline-window", "timeline-width", "timeline-arrows", NULL };

static gboolean
refuse (const char *key, const char *expected, const char *text, GError **error)
{
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s: expected %s; got \"%s\"", key, expected, text);
  return FALSE;
}

static gboolean
read_rows (const LsRequest *r, LsTimelineRows *rows, GError **error)
{
  const char *text = ls_request_text (r, "timeline-rows");
  static const char *const names[] = { [LS_TIMELINE_RANKS] = "ranks",
                                       [LS_TIMELINE_MICRO_BATCHES] = "micro-batches",
                                       [LS_TIMELINE_STREAMS] = "streams",
                                       [LS_TIMELINE_OPS] = "ops",
                                       NULL };
  for (guint i = 0; names[i]; i++)
    if (!text || strcmp (text, names[i]) == 0) {
      *rows = (LsTimelineRows) i;
      return TRUE;
    }
  return ls_request_refuse_word ("--timeline-rows", names, text, error);
}

/* uint32_t; none: NULL. */
static gboolean
read_ranks (const LsRequest *r, GArray **ret_ranks, GError **error)
{
  const char *text = ls_request_text (r, "timeline-ranks");
  *ret_ranks = NULL;
  if (!text)
    return TRUE;
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_auto (GStrv) words = g_strsplit (text, ",", MAX_RANKS + 1);
  for (char **word = words; *word; word++) {
    guint64 rank;
    if (word - words == MAX_RANKS || !g_ascii_string_to_unsigned (*word, 10, 0, UINT32_MAX - 1, &rank, NULL))
      return refuse ("timeline-ranks", "at most 256 ranks with a comma between two", text, error);
    uint32_t value = (uint32_t) rank;
    g_array_append_val (ranks, value);
  }
  *ret_ranks = g_steal_pointer (&ranks);
  return TRUE;
}

static gboolean
read_window (const LsRequest *r, LsTime *from, LsTime *to, GError **error)
{
  const char *text = ls_request_text (r, "timeline-window"), *expected;
  g_auto (GStrv) ends = g_strsplit (text ? text : "", "..", 2);
  if (!text)
    return TRUE;
  if (g_strv_length (ends) == 2 && ls_parse_time (ends[0], from, &expected)
      && ls_parse_time (ends[1], to, &expected) && *from >= 0 && *to > *from)
    return TRUE;
  return refuse ("timeline-window", "two times with units, such as 1.2s..1.35s", text, error);
}

/* Free ret->ranks. */
static gboolean
read_options (const LsRequest *r, LsTimelinePicture *ret, GArray **ret_ranks, GError **error)
{
  gint64 width = LS_TIMELINE_WIDTH;
  *ret = (LsTimelinePicture) { 0 };
  *ret_ranks = NULL;
  if (!ls_request_number (r, "timeline-width", LS_TIMELINE_MIN_WIDTH, LS_TIMELINE_MAX_WIDTH, &width, error)
      || !read_rows (r, &ret->rows, error) || !read_window (r, &ret->from, &ret->to, error)
      || !read_ranks (r, ret_ranks, error))
    return FALSE;
  ret->width = (guint) width;
  ret->has_arrows = ls_request_is_on (r, "timeline-arrows");
  ret->ranks = *ret_ranks;
  return TRUE;
}

gboolean
ls_timeline_options_check (const LsRequest *r, GError **error)
{
  LsTimelinePicture picture;
  g_autoptr (GArray) ranks = NULL;
  if (!read_options (r, &picture, &ranks, error))
    return FALSE;
  g_autofree const char **paths = ls_request_texts (r, "timeline");
  bool is_asked = ls_request_has_any (r, keys);
  return !is_asked || paths
      || ls_request_refuse ("--timeline-rows, -arrows, -ranks, -window and -width go with --timeline FILE",
                            error);
}

static gboolean
check_ranks (const LsTimeline *t, const GArray *ranks, GError **error)
{
  for (guint i = 0; ranks && i < ranks->len; i++) {
    uint32_t rank = g_array_index (ranks, uint32_t, i);
    bool is_there = rank < t->n_ranks;
    if (is_there && (!t->is_sampled || t->multiplicity[rank] > 0))
      continue;
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
                 is_there
                     ? "--timeline-ranks: spans of rank %u were not kept, only those of one rank of each role"
                     : "--timeline-ranks: there is no rank %u",
                 rank);
    return FALSE;
  }
  return TRUE;
}

static gboolean
draw (const LsJobAnswer *j, const LsRequest *r, const char *path, GError **error)
{
  LsTimelinePicture picture;
  g_autoptr (GArray) ranks = NULL;
  const LsTimeline *t = j->job->timeline;
  if (!read_options (r, &picture, &ranks, error) || !check_ranks (t, ranks, error))
    return FALSE;
  if (picture.from >= t->window_end - t->window_start)
    return ls_request_refuse ("--timeline-window: the step is over by then", error);
  picture.title = j->title;
  g_autoptr (LsDrawing) drawing = ls_draw_timeline (t, &picture);
  return ls_drawing_write (drawing, path, error);
}

void
ls_job_answer_draw_timelines (const LsJobAnswer *j, const LsRequest *r, LsAnswer *a)
{
  g_autofree const char **paths = ls_request_texts (r, "timeline");
  for (const char **path = paths; path && *path; path++) {
    GError *error = NULL;
    if (!draw (j, r, *path, &error))
      ls_answer_fail (a, error);
  }
}
