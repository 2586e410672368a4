#include "show/page/page_parts.h"

#include <lockstep/units.h>

#include "data/text/json_out.h"
#include "show/draw/pictures.h"
#include "show/run/timeline_boxes.h"

/* --- columns of whole numbers, which pack better than rows ------------------------------------------ */

/* To the nearest. */
static int64_t
nanoseconds (LsTime ps)
{
  return (ps + (ps >= 0 ? LS_NS / 2 : -(LS_NS / 2))) / LS_NS;
}

/* Of int64_t. */
static void
columns_init (GArray **columns, guint n)
{
  for (guint i = 0; i < n; i++)
    columns[i] = g_array_new (FALSE, FALSE, sizeof (int64_t));
}

static void
push (GArray *column, int64_t value)
{
  g_array_append_val (column, value);
}

/* Writes them as members of an object, and frees them. */
static void
columns_write (LsJsonOut *w, const char *const *keys, GArray **columns, guint n)
{
  for (guint i = 0; i < n; i++) {
    ls_json_out_begin_array (w, keys[i]);
    for (guint k = 0; k < columns[i]->len; k++)
      ls_json_out_int (w, NULL, g_array_index (columns[i], int64_t, k));
    ls_json_out_end_array (w);
    g_array_unref (columns[i]);
  }
}

/* --- a timeline ------------------------------------------------------------------------------------- */

#define MAX_ROWS        64
#define SHORTEST_STRIPS 2000 /* of the window, as so many parts: shorter strips and gaps are drawn as one */

static LsTime
resolution_of (const LsTimeline *t)
{
  return MAX (1, (t->window_end - t->window_start) / SHORTEST_STRIPS);
}

/* --- passes of a rank, and what it did not compute for ---------------------------------------- */

/* Where it begins, less where the one before did, and how long it is. */
static void
push_interval (GArray *from, GArray *length, LsTime begin, LsTime end, int64_t *before)
{
  int64_t at = nanoseconds (begin);
  push (from, at - *before);
  push (length, nanoseconds (end) - at);
  *before = at;
}

static void
add_boxes (LsJsonOut *w, const LsTimeline *t, uint32_t rank)
{
  enum { FROM, LENGTH, SHARE, MB, CHUNK, KIND, N };
  static const char *const keys[N] = { "from", "length", "share", "mb", "chunk", "kind" };
  GArray *c[N];
  columns_init (c, N);
  int64_t before = 0;
  g_autoptr (GArray) boxes = ls_timeline_boxes (t, rank, resolution_of (t));
  for (guint i = 0; i < boxes->len; i++) {
    const LsTimelineBox *b = &g_array_index (boxes, LsTimelineBox, i);
    push_interval (c[FROM], c[LENGTH], b->from, b->to, &before);
    push (c[SHARE], (int64_t) (100.0 * (double) b->work / (double) (b->to - b->from) + 0.5));
    push (c[MB], b->mb);
    push (c[CHUNK], b->chunk);
    push (c[KIND], b->kind);
  }
  ls_json_out_begin_object (w, "boxes");
  columns_write (w, keys, c, N);
  ls_json_out_end_object (w);
}

static void
add_strips (LsJsonOut *w, const LsTimeline *t, uint32_t rank)
{
  enum { FROM, LENGTH, SHARE, PART, N };
  static const char *const keys[N] = { "from", "length", "share", "part" };
  GArray *c[N];
  columns_init (c, N);
  int64_t before = 0;
  g_autoptr (GPtrArray) parts = ls_timeline_strips (t, rank, resolution_of (t));
  for (int part = LS_PART_EXPOSED_TP; part < LS_N_PARTS; part++) {
    const GArray *strips = parts->pdata[part];
    for (guint i = 0; i < strips->len; i++) {
      const LsTimelineStrip *s = &g_array_index (strips, LsTimelineStrip, i);
      push_interval (c[FROM], c[LENGTH], s->from, s->to, &before);
      push (c[SHARE], (int64_t) (100 * s->height + 0.5));
      push (c[PART], part - LS_PART_EXPOSED_TP);
    }
  }
  ls_json_out_begin_object (w, "strips");
  columns_write (w, keys, c, N);
  ls_json_out_end_object (w);
}

/* --- ops of a rank ----------------------------------------------------------------------------------- */

typedef struct {
  GHashTable *index; /* name -> index + 1; borrowed */
  GPtrArray *names;  /* borrowed from the plan       */
} Names;

static int64_t
index_of_name (Names *n, const char *name)
{
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (n->index, name));
  if (at > 0)
    return at - 1;
  g_ptr_array_add (n->names, (gpointer) name);
  g_hash_table_insert (n->index, (gpointer) name, GUINT_TO_POINTER (n->names->len));
  return n->names->len - 1;
}

static int64_t
wait_of (const LsOp *op, const LsSpan *s)
{
  if (ls_op_is_communication (op->kind))
    return s->matched == LS_TIME_NEVER ? -1 : nanoseconds (s->matched - s->start);
  bool is_slower = op->kind == LS_OP_KERNEL && s->end != LS_TIME_NEVER && s->matched != LS_TIME_NEVER
      && s->end - s->start > s->matched;
  return is_slower ? nanoseconds (s->end - s->start - s->matched) : 0;
}

static void
add_ops (LsJsonOut *w, const LsTimeline *t, uint32_t rank, Names *names)
{
  enum { START, LENGTH, WAIT, STREAM, NAME, TAG, MB, CHUNK, LAYER, CAUSE, WHY, N };
  static const char *const keys[N]
      = { "start", "length", "wait", "stream", "name", "tag", "mb", "chunk", "layer", "cause", "why" };
  GArray *c[N];
  columns_init (c, N);
  const LsRankSpans *spans = ls_timeline_spans (t, rank);
  int64_t before = 0;
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    const LsOp *op = ls_span_op (t, rank, s);
    const LsInstance *instance = ls_span_instance (t, rank, s);
    int64_t start = nanoseconds (s->start - t->window_start);
    push (c[START], start - before);
    push (c[LENGTH], s->end == LS_TIME_NEVER ? -1 : nanoseconds (s->end - t->window_start) - start);
    push (c[WAIT], wait_of (op, s));
    push (c[STREAM], ls_lane_of (op));
    push (c[NAME], index_of_name (names, ls_span_name (t, rank, s)));
    push (c[TAG], op->tag);
    push (c[MB], instance->mb);
    push (c[CHUNK], instance->chunk);
    push (c[LAYER], op->layer == UINT16_MAX ? -1 : op->layer);
    push (c[CAUSE], s->cause == LS_SPAN_NONE ? 0 : (int64_t) i - s->cause);
    push (c[WHY], s->cause_kind);
    before = start;
  }
  ls_json_out_begin_object (w, "ops");
  columns_write (w, keys, c, N);
  ls_json_out_end_object (w);
}

/* --- a timeline -------------------------------------------------------------------------------------- */

static void
add_rank (LsJsonOut *w, const LsTimeline *t, uint32_t rank, bool has_ops, Names *names)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_uint (w, "rank", rank);
  ls_json_out_uint (w, "stage", t->plan->programs[ls_plan_role (t->plan, rank)].stage);
  ls_json_out_uint (w, "stands_for", ls_timeline_multiplicity (t, rank));
  add_boxes (w, t, rank);
  add_strips (w, t, rank);
  if (has_ops)
    add_ops (w, t, rank, names);
  ls_json_out_end_object (w);
}

static void
add_names (LsJsonOut *w, const char *key, const GPtrArray *names)
{
  ls_json_out_begin_array (w, key);
  for (guint i = 0; i < names->len; i++)
    ls_json_out_string (w, NULL, names->pdata[i]);
  ls_json_out_end_array (w);
}

static void
add_words (LsJsonOut *w)
{
  ls_json_out_begin_array (w, "streams");
  for (int i = 0; i <= LS_N_STREAMS; i++)
    ls_json_out_string (w, NULL, ls_lane_name (i));
  ls_json_out_end_array (w);
  ls_json_out_begin_array (w, "stream_paints");
  for (int i = 0; i <= LS_N_STREAMS; i++)
    ls_json_out_string (w, NULL, ls_stream_paint (i));
  ls_json_out_end_array (w);
  ls_json_out_begin_array (w, "tags");
  for (int i = 0; i < LS_N_TAGS; i++)
    ls_json_out_string (w, NULL, ls_tag_name ((LsTag) i));
  ls_json_out_end_array (w);
  ls_json_out_begin_array (w, "kinds");
  for (int i = 0; i < LS_N_BOX_KINDS; i++)
    ls_json_out_string (w, NULL, ls_box_kind_name ((LsBoxKind) i));
  ls_json_out_end_array (w);
  ls_json_out_begin_array (w, "parts");
  for (int i = LS_PART_EXPOSED_TP; i < LS_N_PARTS; i++)
    ls_json_out_string (w, NULL, ls_part_name ((LsPart) i));
  ls_json_out_end_array (w);
}

/* index: of ranks whose ops are there, in the list of ranks, + 1. */
static void
add_messages (LsJsonOut *w, const LsTimeline *t, const uint32_t *index)
{
  enum { FROM, FROM_OP, TO, TO_OP, N };
  static const char *const keys[N] = { "from", "from_op", "to", "to_op" };
  GArray *c[N];
  columns_init (c, N);
  g_autoptr (GArray) pairs = ls_p2p_pairs (t);
  for (guint i = 0; i < pairs->len; i++) {
    const LsP2pPair *pair = &g_array_index (pairs, LsP2pPair, i);
    if (index[pair->from] == 0 || index[pair->to] == 0)
      continue;
    push (c[FROM], index[pair->from] - 1);
    push (c[FROM_OP], pair->from_span);
    push (c[TO], index[pair->to] - 1);
    push (c[TO_OP], pair->to_span);
  }
  ls_json_out_begin_object (w, "messages");
  columns_write (w, keys, c, N);
  ls_json_out_end_object (w);
}

char *
ls_page_timeline (const LsTimeline *t)
{
  LsJsonOut w;
  GString *text = g_string_new (NULL);
  g_autoptr (GArray) rows = ls_timeline_rows (t, MAX_ROWS);
  Names names = { g_hash_table_new (g_str_hash, g_str_equal), g_ptr_array_new () };
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "schema", "lockstep.page-timeline/1");
  ls_json_out_int (&w, "window", nanoseconds (t->window_end - t->window_start));
  ls_json_out_uint (&w, "n_ranks", t->n_ranks);
  add_words (&w);
  ls_json_out_begin_array (&w, "ranks");
  uint64_t n_ops = 0;
  g_autofree uint32_t *index = g_new0 (uint32_t, t->n_ranks);
  for (guint i = 0; i < rows->len; i++) {
    uint32_t rank = ls_timeline_representative (t, g_array_index (rows, uint32_t, i));
    n_ops += ls_timeline_spans (t, rank)->n;
    index[rank] = n_ops <= LS_PAGE_MAX_OPS ? i + 1 : 0;
    add_rank (&w, t, rank, n_ops <= LS_PAGE_MAX_OPS, &names);
  }
  ls_json_out_end_array (&w);
  add_messages (&w, t, index);
  add_names (&w, "names", names.names);
  ls_json_out_end_object (&w);
  g_hash_table_unref (names.index);
  g_ptr_array_unref (names.names);
  return g_string_free (text, FALSE);
}

/* --- memory over it --------------------------------------------------------------------------------- */

#define N_COLUMNS 1000

static void
add_curve (LsJsonOut *w, const GArray *samples, LsTime window)
{
  GArray *at, *alive[LS_N_MEM];
  const char *const at_key = "at", *keys[LS_N_MEM];
  columns_init (&at, 1);
  columns_init (alive, LS_N_MEM);
  g_autoptr (GArray) thin = ls_memory_samples_thin (samples, window, N_COLUMNS);
  for (guint i = 0; i < thin->len; i++) {
    const LsMemorySample *s = &g_array_index (thin, LsMemorySample, i);
    push (at, nanoseconds (s->at));
    for (int c = 0; c < LS_N_MEM; c++)
      push (alive[c], (int64_t) s->alive[c]);
  }
  for (int c = 0; c < LS_N_MEM; c++)
    keys[c] = ls_mem_category_name ((LsMemCategory) c);
  columns_write (w, &at_key, &at, 1);
  ls_json_out_begin_object (w, "alive");
  columns_write (w, keys, alive, LS_N_MEM);
  ls_json_out_end_object (w);
}

char *
ls_page_memory (const LsPageMemory *ranks, guint n, LsTime window, uint64_t capacity_bytes)
{
  LsJsonOut w;
  GString *text = g_string_new (NULL);
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "schema", "lockstep.page-memory/1");
  ls_json_out_int (&w, "window", nanoseconds (window));
  ls_json_out_uint (&w, "capacity_bytes", capacity_bytes);
  ls_json_out_begin_array (&w, "ranks");
  for (guint i = 0; i < n; i++) {
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_uint (&w, "rank", ranks[i].rank);
    add_curve (&w, ranks[i].samples, window);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  ls_json_out_end_object (&w);
  return g_string_free (text, FALSE);
}
