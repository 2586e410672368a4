#include "show/page/page.h"

#include <lockstep/units.h>
#include <page_assets.h>
#include <string.h>

#include "base/list.h"
#include "data/text/write_file.h"
#include "show/draw/drawing.h"
#include "show/draw/pictures.h"
#include "show/run/timeline_boxes.h"

typedef struct {
  char *text;
  const char *name; /* static */
  bool is_packed;
} Part;

struct LsPage {
  const char *kind; /* static */
  char *title, *subtitle, *notes;
  GArray *parts; /* Part */
};

LsPage *
ls_page_new (const char *kind)
{
  LsPage *p = g_new0 (LsPage, 1);
  p->kind = kind;
  p->parts = ls_list_new (sizeof (Part), ls_clear_text);
  return p;
}

void
ls_page_free (LsPage *p)
{
  if (!p)
    return;
  g_free (p->title);
  g_free (p->subtitle);
  g_free (p->notes);
  g_array_unref (p->parts);
  g_free (p);
}

void
ls_page_set_title (LsPage *p, const char *title, const char *subtitle)
{
  g_free (p->title);
  g_free (p->subtitle);
  p->title = g_strdup (title);
  p->subtitle = g_strdup (subtitle);
}

void
ls_page_set_notes (LsPage *p, const char *notes)
{
  g_free (p->notes);
  p->notes = g_strdup (notes);
}

void
ls_page_take (LsPage *p, const char *name, char *json)
{
  const Part part = { json, name, false };
  g_array_append_val (p->parts, part);
}

void
ls_page_take_packed (LsPage *p, const char *name, char *json)
{
  g_autoptr (GByteArray) packed = ls_gzip (json, strlen (json));
  ls_list_add (p->parts, &(Part) { g_base64_encode (packed->data, packed->len), name, true });
  g_free (json);
}

/* --- the file ---------------------------------------------------------------------------------------- */

/* Without what would be markup. */
static void
append_json (GString *out, const char *json)
{
  for (gsize n; n = strcspn (json, "<>&"), json[n]; json += n + 1) {
    g_string_append_len (out, json, (gssize) n);
    g_string_append_printf (out, "\\u%04x", (guint) json[n]);
  }
  g_string_append (out, json);
}

static void
append_part (GString *out, const char *name, const char *text, bool is_packed)
{
  g_string_append_printf (out, "<script type=\"%s\" id=\"data-%s\">",
                          is_packed ? "text/plain" : "application/json", name);
  append_json (out, text);
  g_string_append (out, "</script>\n");
}

#include "show/page_keys.h"

static char *
about (const LsPage *p, const char *version, const char *command)
{
  LsJsonOut w;
  g_auto (GStrv) lines = g_strsplit (p->notes ? p->notes : "", "\n", -1);
  ls_json_out_open_as (&w, "page");
  ls_keys_page (&w, p, version, command, lines);
  return ls_json_out_close (&w);
}

static const char *
asset (const char *name)
{
  g_autofree char *path = g_strconcat ("/lockstep/page/", name, NULL);
  g_autoptr (GBytes) bytes
      = g_resource_lookup_data (page_get_resource (), path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_assert (bytes);
  return g_bytes_get_data (bytes, NULL); /* it lies in the program, with a NUL at its end */
}

/* page.html has two places to fill. */
static void
append_head (const LsPage *p, const char *command, GString *out)
{
  g_autofree char *title = g_markup_escape_text (p->title ? p->title : command, -1);
  g_auto (GStrv) pieces = g_strsplit (asset ("page.html"), "@@", 3);
  g_assert (g_strv_length (pieces) == 3);
  g_string_append (out, pieces[0]);
  g_string_append (out, title);
  g_string_append (out, pieces[1]);
  g_autofree char *palette = ls_palette_to_css ();
  g_string_append (out, palette);
  g_string_append (out, asset ("page.css"));
  g_string_append (out, pieces[2]);
}

char *
ls_page_format (const LsPage *p, const char *version, const char *command)
{
  static const char *const scripts[] = { "page.js", "charts.js", "timeline.js", "views.js" };
  GString *out = g_string_new (NULL);
  g_autofree char *head = about (p, version, command);
  append_head (p, command, out);
  append_part (out, "about", head, false);
  for (guint i = 0; i < p->parts->len; i++) {
    const Part *part = &g_array_index (p->parts, Part, i);
    append_part (out, part->name, part->text, part->is_packed);
  }
  g_string_append (out, "<script>\n\"use strict\";\n");
  for (guint i = 0; i < G_N_ELEMENTS (scripts); i++)
    g_string_append (out, asset (scripts[i]));
  g_string_append (out, "</script>\n</body>\n</html>\n");
  return g_string_free (out, FALSE);
}

/* ---- page parts ---- */

/* To the nearest. */
static int64_t
nanoseconds (LsTime ps)
{
  return (ps + (ps >= 0 ? LS_NS / 2 : -(LS_NS / 2))) / LS_NS;
}

/* --- a timeline: columns of whole numbers, which pack better than rows ------------------------------ */

#define MAX_ROWS        64
#define SHORTEST_STRIPS 2000 /* of the window, as so many parts: shorter strips and gaps are drawn as one */

typedef struct {
  uint32_t rank;
  GArray *boxes, *strips;   /* LsTimelineBox, LsTimelineStrip */
  const LsRankSpans *spans; /* NULL: its ops are not there */
} Rank;

typedef struct {
  const LsTimeline *of;
  Rank ranks[MAX_ROWS];
  guint n;
  uint32_t *index;        /* of ranks whose ops are there, in the list of ranks, + 1 */
  GArray *messages;       /* LsP2pPair */
  GHashTable *name_index; /* name -> index + 1; borrowed from the plan */
  GPtrArray *names;
} Timeline;

static LsTime
resolution_of (const LsTimeline *t)
{
  return MAX (1, (t->window_end - t->window_start) / SHORTEST_STRIPS);
}

static int64_t
index_of_name (const Timeline *t, const char *name)
{
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (t->name_index, name));
  if (at > 0)
    return at - 1;
  g_ptr_array_add (t->names, (gpointer) name);
  g_hash_table_insert (t->name_index, (gpointer) name, GUINT_TO_POINTER (t->names->len));
  return t->names->len - 1;
}

static const LsOp *
op_of (const Timeline *t, const Rank *r, const LsSpan *s)
{
  return ls_span_op (t->of, r->rank, s);
}

static int64_t
start_of (const Timeline *t, const LsSpan *s)
{
  return nanoseconds (s->start - t->of->window_start);
}

static int64_t
wait_of (const LsOp *op, const LsSpan *s)
{
  if (ls_op_is_communication (op->kind))
    return s->matched == LS_TIME_NEVER ? -1 : nanoseconds (s->matched - s->start);
  bool is_slower = ls_op_takes (op->kind, LS_TAKES_GPU) && s->end != LS_TIME_NEVER
      && s->alone != LS_TIME_NEVER && s->end - s->start > s->alone;
  return is_slower ? nanoseconds (s->end - s->start - s->alone) : 0;
}

#include "show/page_timeline_keys.h"

static void
timeline_init (Timeline *t, const LsTimeline *of)
{
  uint64_t n_ops = 0;
  g_autoptr (GArray) rows = ls_timeline_rows (of, MAX_ROWS);
  *t = (Timeline) { .of = of,
                    .n = rows->len,
                    .index = g_new0 (uint32_t, of->n_ranks),
                    .messages = ls_p2p_pairs (of),
                    .name_index = g_hash_table_new (g_str_hash, g_str_equal),
                    .names = g_ptr_array_new () };
  for (guint i = 0; i < rows->len; i++) {
    uint32_t rank = ls_timeline_representative (of, g_array_index (rows, uint32_t, i));
    const LsRankSpans *spans = ls_timeline_spans (of, rank);
    n_ops += spans->n;
    t->index[rank] = n_ops <= LS_PAGE_MAX_OPS ? i + 1 : 0;
    t->ranks[i] = (Rank) { rank, ls_timeline_boxes (of, rank, resolution_of (of)),
                           ls_timeline_strips (of, rank, resolution_of (of)),
                           n_ops <= LS_PAGE_MAX_OPS ? spans : NULL };
  }
}

static void
timeline_clear (Timeline *t)
{
  for (guint i = 0; i < t->n; i++) {
    g_array_unref (t->ranks[i].boxes);
    g_array_unref (t->ranks[i].strips);
  }
  g_free (t->index);
  g_array_unref (t->messages);
  g_hash_table_unref (t->name_index);
  g_ptr_array_unref (t->names);
}

char *
ls_page_timeline (const LsTimeline *of)
{
  Timeline t;
  LsJsonOut w;
  GString *text = g_string_new (NULL);
  timeline_init (&t, of);
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_schema (&w, "page-timeline");
  ls_keys_page_timeline (&w, &t);
  ls_json_out_end_object (&w);
  timeline_clear (&t);
  return g_string_free (text, FALSE);
}

/* --- memory over it --------------------------------------------------------------------------------- */

#define N_COLUMNS 1000

#include "show/page_memory_keys.h"

char *
ls_page_memory (const LsPageMemory *ranks, guint n, LsTime window, uint64_t capacity_bytes)
{
  LsJsonOut w;
  GString *text = g_string_new (NULL);
  g_autofree LsPageMemory *thin = g_memdup2 (ranks, n * sizeof *ranks);
  for (guint i = 0; i < n; i++)
    thin[i].samples = ls_memory_samples_thin (ranks[i].samples, window, N_COLUMNS);
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_schema (&w, "page-memory");
  ls_keys_page_memory (&w, thin, n, window, capacity_bytes);
  ls_json_out_end_object (&w);
  for (guint i = 0; i < n; i++)
    g_array_unref ((GArray *) thin[i].samples);
  return g_string_free (text, FALSE);
}
