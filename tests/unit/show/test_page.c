/* Pins the page of a result: names that files give cannot leave the JSON that they stand in, nothing is to be
 * loaded, packed parts unpack to what was put in, and the columns of a timeline add up to its spans. */
#include "show/page/page.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "data/text/read_file.h"
#include "ls_test.h"
#include "pipeline.h"
#include "show/draw/drawing.h"

#define HOSTILE "</script><script>alert(1)</script>]]>&\"'<!--\x01\xe2\x80\xa8"

/* The text of a part, newly allocated; NULL: it is not there. */
static char *
part_of (const char *page, const char *name)
{
  g_autofree char *mark = g_strdup_printf ("id=\"data-%s\">", name);
  const char *at = strstr (page, mark);
  if (!at)
    return NULL;
  at += strlen (mark);
  return g_strndup (at, (gsize) (strstr (at, "</script>") - at));
}

static guint
count (const char *text, const char *word)
{
  guint n = 0;
  for (const char *at = text; (at = strstr (at, word)); at += strlen (word))
    n++;
  return n;
}

static char *
hostile_page (void)
{
  g_autoptr (LsPage) page = ls_page_new ("run");
  cJSON *result = cJSON_CreateObject ();
  cJSON_AddStringToObject (result, "name", HOSTILE);
  ls_page_set_title (page, HOSTILE, HOSTILE);
  ls_page_set_notes (page, HOSTILE "\n\nsecond\n");
  char *text = cJSON_PrintUnformatted (result);
  ls_page_take (page, "result", g_strdup (text));
  cJSON_free (text);
  cJSON_Delete (result);
  return ls_page_format (page, "0.1.0", "lockstep run --model '" HOSTILE "'");
}

static void
hostile_names_stay_text (void)
{
  g_autofree char *page = hostile_page (), *about = part_of (page, "about"),
                  *result = part_of (page, "result");
  LS_CHECK_INT (count (page, "<script"), ==, 3); /* two parts and the program */
  LS_CHECK_INT (count (page, "</script>"), ==, 3);
  LS_CHECK_INT (count (page, "alert(1)"), ==, 6);
  LS_CHECK (!strchr (about, '<') && !strchr (about, '&') && !strchr (result, '<'));
  LS_CHECK (strstr (page, "<title>&lt;/script&gt;") != NULL);
  cJSON *json = cJSON_Parse (about);
  LS_CHECK_STR (cJSON_GetStringValue (cJSON_GetObjectItem (json, "title")), HOSTILE);
  const cJSON *notes = cJSON_GetObjectItem (json, "notes");
  LS_CHECK_INT (cJSON_GetArraySize (notes), ==, 2);
  LS_CHECK_STR (cJSON_GetStringValue (cJSON_GetArrayItem (notes, 0)), HOSTILE);
  cJSON_Delete (json);
}

static void
nothing_is_loaded (void)
{
  g_autofree char *page = hostile_page ();
  LS_CHECK (strstr (page, "default-src 'none'") != NULL);
  LS_CHECK_INT (count (page, "src="), ==, 0);
  LS_CHECK_INT (count (page, "href=\""), ==, 0);
  LS_CHECK_INT (count (page, "://"), ==, 1); /* the name of SVG's elements */
  LS_CHECK_INT (count (page, "innerHTML"), ==, 0);
}

/* Each colour of a page is a variable of the palette: the sheet names none but there, nor do the programs. */
static void
colours_are_those_of_the_palette (void)
{
  g_autofree char *page = hostile_page (), *palette = ls_palette_to_css ();
  g_autoptr (GRegex) color = g_regex_new ("#[0-9a-f]{6}\\b", 0, 0, NULL);
  g_auto (GStrv) rest = g_strsplit (page, palette, 2);
  if (LS_CHECK_INT (g_strv_length (rest), ==, 2))
    LS_CHECK (!g_regex_match (color, rest[0], 0, NULL) && !g_regex_match (color, rest[1], 0, NULL));
  LS_CHECK (g_regex_match (color, palette, 0, NULL));
}

static char *
unpacked (const char *text)
{
  gsize n;
  g_autofree guchar *bytes = g_base64_decode (text, &n);
  g_autoptr (LsInput) input = ls_input_of_memory (bytes, n);
  GString *out = g_string_new (NULL);
  char piece[512];
  for (size_t read; (read = ls_input_read (input, piece, sizeof piece)) > 0;)
    g_string_append_len (out, piece, (gssize) read);
  LS_CHECK (ls_input_trouble (input) == NULL);
  return g_string_free (out, FALSE);
}

static void
packed_parts_unpack (void)
{
  g_autoptr (LsPage) page = ls_page_new ("run");
  ls_page_take_packed (page, "memory", g_strdup ("{\"at\":[1,2,3]}"));
  g_autofree char *text = ls_page_format (page, "0.1.0", "lockstep run"),
                  *again = ls_page_format (page, "0.1.0", "lockstep run");
  LS_CHECK_STR (text, again);
  g_autofree char *part = part_of (text, "memory"), *json = unpacked (part);
  LS_CHECK_STR (json, "{\"at\":[1,2,3]}");
}

static int64_t
item (const cJSON *columns, const char *key, guint i)
{
  return (int64_t) cJSON_GetNumberValue (cJSON_GetArrayItem (cJSON_GetObjectItem (columns, key), (int) i));
}

/* Each op of a rank, as the program of the page adds it up. */
static void
check_ops (const LsTimeline *t, const cJSON *timeline, const cJSON *rank, uint32_t number)
{
  const cJSON *ops = cJSON_GetObjectItem (rank, "ops"), *names = cJSON_GetObjectItem (timeline, "names");
  const LsRankSpans *spans = &t->ranks[number];
  LS_CHECK_INT (cJSON_GetArraySize (cJSON_GetObjectItem (ops, "start")), ==, spans->n);
  int64_t start = 0;
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    start += item (ops, "start", i);
    LS_CHECK_INT (start, ==, (s->start - t->window_start + LS_NS / 2) / LS_NS);
    LS_CHECK_INT (start + item (ops, "length", i), ==, (s->end - t->window_start + LS_NS / 2) / LS_NS);
    LS_CHECK_STR (cJSON_GetStringValue (cJSON_GetArrayItem (names, (int) item (ops, "name", i))),
                  ls_span_name (t, number, s));
    int64_t cause = item (ops, "cause", i);
    LS_CHECK_INT (cause > 0 ? i - cause : LS_SPAN_NONE, ==, s->cause);
  }
}

static void
columns_add_up_to_spans (void)
{
  static const PipelineShape shape
      = { 2, 1, 3, 10 * LS_MS + 1, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autofree char *text = ls_page_timeline (&p.t);
  cJSON *timeline = cJSON_Parse (text);
  const cJSON *ranks = cJSON_GetObjectItem (timeline, "ranks");
  LS_CHECK_INT (cJSON_GetArraySize (ranks), ==, 2);
  for (uint32_t i = 0; i < 2; i++)
    check_ops (&p.t, timeline, cJSON_GetArrayItem (ranks, (int) i), i);
  const cJSON *messages = cJSON_GetObjectItem (timeline, "messages"); /* 3 there, 3 back */
  LS_CHECK_INT (cJSON_GetArraySize (cJSON_GetObjectItem (messages, "from")), ==, 6);
  for (guint i = 0; i < 6; i++) {
    uint32_t from = (uint32_t) item (messages, "from", i), to = (uint32_t) item (messages, "to", i);
    const LsSpan *send = &p.t.ranks[from].spans[item (messages, "from_op", i)];
    const LsSpan *receive = &p.t.ranks[to].spans[item (messages, "to_op", i)];
    LS_CHECK_INT (from + to, ==, 1);
    LS_CHECK (ls_span_op (&p.t, from, send)->transfers[0].is_send);
    LS_CHECK (!ls_span_op (&p.t, to, receive)->transfers[0].is_send);
    LS_CHECK_INT (ls_span_instance (&p.t, from, send)->mb, ==, ls_span_instance (&p.t, to, receive)->mb);
  }
  const cJSON *boxes = cJSON_GetObjectItem (cJSON_GetArrayItem (ranks, 0), "boxes");
  /* 3 F, 3 B, each of two kernels a second apart, and the optimizer */
  LS_CHECK_INT (cJSON_GetArraySize (cJSON_GetObjectItem (boxes, "mb")), ==, 13);
  LS_CHECK_INT (item (boxes, "from", 0), ==, 0);
  LS_CHECK_INT (item (boxes, "length", 0), ==, 5000000);
  LS_CHECK_INT (item (boxes, "from", 1), ==, 6000000);
  LS_CHECK_INT (item (boxes, "share", 0), ==, 100);
  cJSON_Delete (timeline);
  pipeline_clear (&p);
}

LS_TEST_SUITE (LS_TEST (hostile_names_stay_text), LS_TEST (nothing_is_loaded),
               LS_TEST (colours_are_those_of_the_palette), LS_TEST (packed_parts_unpack),
               LS_TEST (columns_add_up_to_spans))
