/* show/run/write_spans.c — tables of a run as CSV: the spans of its ranks, and what its links carried. */
#include "show/run/write_run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "data/text/csv.h"
#include "data/text/write_file.h"
#include "show/run/timeline_boxes.h"

/* --- run --links --------------------------------------------------------------------------------- */

#define HEADER_LINKS "link,capacity_bytes_per_s,bytes,utilisation\n"

typedef struct {
  const LsTimeline *timeline;
  const LsCluster *cluster;
} Table;

static void
write_number (FILE *out, double value, const char *format, char end)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, "%s%c", g_ascii_formatd (text, sizeof text, format, value), end);
}

static gboolean
write_table_links (FILE *out, void *data, GError **error)
{
  const Table *table = data;
  const LsTimeline *t = table->timeline;
  double window_s = ls_time_to_s (t->window_end - t->window_start);
  fputs (HEADER_LINKS, out);
  for (guint i = 0; i < table->cluster->n_trunks; i++) {
    const LsTrunk *trunk = ls_cluster_trunk (table->cluster, i);
    double bytes = i < t->n_resources ? ls_timeline_bytes (t, i) : 0;
    ls_csv_print (out, trunk->name);
    fputc (',', out);
    write_number (out, trunk->is_failed ? 0 : trunk->capacity_bytes_per_s, "%.17g", ',');
    write_number (out, bytes, "%.17g", ',');
    write_number (out, bytes / (trunk->capacity_bytes_per_s * window_s), "%.6g", '\n');
  }
  return TRUE;
}

gboolean
ls_links_write (const LsTimeline *timeline, const LsCluster *cluster, const char *path, GError **error)
{
  g_autoptr (LsCluster) whole = ls_cluster_spell_out (cluster); /* with all names */
  Table table = { timeline, whole };
  return ls_write_file (path, write_table_links, &table, error);
}

/* The spans of a timeline as comma-separated text (RFC 4180), for data frames, spreadsheets and awk:
 * `run --csv`. */

#define HEADER                                                                                               \
  "rank,stream,name,tag,micro_batch,chunk,stage,layer,start_ps,matched_ps,end_ps,cause,span,cause_span\n"

static void
write_time (FILE *out, const LsTimeline *t, LsTime at)
{
  if (at != LS_TIME_NEVER)
    fprintf (out, "%" PRId64, at - t->window_start);
}

/* spans: those of the rank, or of the one who stands for it. */
static void
write_span (FILE *out, const LsTimeline *t, uint32_t rank, const LsSpan *spans, const LsSpan *s)
{
  const LsOp *op = ls_span_op (t, rank, s);
  const LsInstance *instance = ls_span_instance (t, rank, s);

  fprintf (out, "%u,%s,", rank, ls_lane_name (ls_lane_of (op)));
  ls_csv_print (out, ls_span_name (t, rank, s));
  fprintf (out, ",%s,%u,%u,%u,", ls_tag_name ((LsTag) op->tag), instance->mb, instance->chunk,
           instance->stage);
  if (op->layer != UINT16_MAX)
    fprintf (out, "%u", op->layer);
  fputc (',', out);
  write_time (out, t, s->start);
  fputc (',', out);
  write_time (out, t, ls_op_is_communication (op->kind) ? s->matched : LS_TIME_NEVER);
  fputc (',', out);
  write_time (out, t, s->end);
  fprintf (out, ",%s,%u,", ls_cause_name ((LsCause) s->cause_kind), (unsigned) (s - spans));
  if (s->cause != LS_SPAN_NONE)
    fprintf (out, "%u", s->cause);
  fputc ('\n', out);
}

/* Of ranks that were only taken for alike nothing is known. */
static bool
is_expanded (const LsTimeline *t)
{
  uint64_t n_rows = 0;
  for (uint32_t rank = 0; rank < t->n_ranks; rank++)
    n_rows += ls_timeline_spans (t, ls_timeline_representative (t, rank))->n;
  return !t->is_sampled && n_rows <= LS_SPANS_MAX_ROWS;
}

static gboolean
write_table (FILE *out, void *data, GError **error)
{
  const LsTimeline *t = data;
  bool is_of_all = is_expanded (t);
  fputs (HEADER, out);
  for (uint32_t rank = 0; rank < t->n_ranks; rank++) {
    const LsRankSpans *r = ls_timeline_spans (t, is_of_all ? ls_timeline_representative (t, rank) : rank);
    for (uint32_t i = 0; i < r->n; i++)
      write_span (out, t, rank, r->spans, &r->spans[i]);
  }
  return TRUE;
}

gboolean
ls_spans_write (const LsTimeline *t, const char *path, GError **error)
{
  return ls_write_file (path, write_table, (void *) t, error);
}

char *
ls_spans_to_csv (const LsTimeline *t)
{
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream (&text, &size);
  if (!out)
    return NULL;
  write_table (out, (void *) t, NULL);
  bool ok = fclose (out) == 0;
  char *csv = ok ? g_strndup (text, size) : NULL;
  free (text);
  return csv;
}
