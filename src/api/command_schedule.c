/* `lockstep schedule`: a pipeline schedule drawn and timed, or all of them. */
#include <string.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "ask/schedule.h"
#include "data/text/write_file.h"
#include "show/draw/pictures.h"
#include "show/page/page.h"
#include "show/plot/plots.h"
#include "show/answers.h"

#define DEFAULT_WIDTH 120
#define MIN_WIDTH     50
#define MAX_WIDTH     1000

typedef struct {
  LsScheduleSpec spec;
  LsScheduleView *view; /* one of the two is NULL */
  LsScheduleTable *table;
  guint width; /* 0: as the reader has it */
} Data;

static void
data_free (gpointer data)
{
  Data *s = data;
  ls_schedule_spec_clear (&s->spec);
  ls_schedule_view_free (s->view);
  ls_schedule_table_free (s->table);
  g_free (s);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Data, data_free)

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const Data *s = data;
  guint shown = style->width > 0 ? MIN (style->width, MAX_WIDTH) : DEFAULT_WIDTH;
  const LsScheduleText text = { style->has_color, style->is_ascii, s->width > 0 ? s->width : shown };
  return s->view ? ls_schedule_to_text (s->view, &text) : ls_schedule_all_to_text (s->table);
}

static char *
to_json (gconstpointer data, const LsTextStyle *style)
{
  const Data *s = data;
  return ls_schedule_to_json (s->view, s->table);
}

static char *
to_csv (gconstpointer data, const LsTextStyle *style)
{
  const Data *s = data;
  return s->view ? ls_schedule_to_csv (s->view) : ls_schedule_all_to_csv (s->table);
}

/* Of the schedules that were named; NULL: of all there is no such picture. */
static LsDrawing *
drawing_of_data (const Data *s)
{
  if (s->view)
    return ls_draw_schedules ((const LsScheduleView *const *) &s->view, 1, s->view->title);
  const GPtrArray *views = s->table->views;
  return views ? ls_draw_schedules ((const LsScheduleView *const *) views->pdata, views->len, s->table->title)
               : NULL;
}

static void
page (gconstpointer data, LsPage *page)
{
  const Data *s = data;
  g_autoptr (LsDrawing) sheet = drawing_of_data (s);
  ls_page_set_title (page, s->view ? s->view->title : sheet ? "pipeline schedules" : "all schedules", NULL);
  if (sheet)
    ls_page_take_packed (page, "sheet", ls_drawing_to_svg (sheet));
}

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, data_free, page };

static gboolean
draw (gconstpointer data, const char *path, GError **error)
{
  const Data *s = data;
  g_autoptr (LsDrawing) drawing = drawing_of_data (s);
  if (drawing)
    return ls_drawing_write (drawing, path, error);
  g_autoptr (LsBubbles) bubbles = ls_schedule_bubbles (&s->spec, error);
  return bubbles && ls_plot_bubbles (bubbles, path, error);
}

/* --- where to ------------------------------------------------------------------------------------- */

/* The pictures, behind LsForm. */
static const char *const formats[] = { "svg", "png" };
#define FIRST_PICTURE (LS_FORM_MARKDOWN + 1)

/* What ls_request_form() has accepted. */
static guint
format_of (const LsRequest *r)
{
  const char *asked = ls_request_text (r, "format");
  for (guint i = 0; asked && i < G_N_ELEMENTS (formats); i++)
    if (strcmp (formats[i], asked) == 0)
      return FIRST_PICTURE + i;
  LsForm form = LS_FORM_TEXT;
  ls_request_form (r, &form, NULL);
  return form;
}

/* Before the schedule is made: a mistake must not cost it. */
static gboolean
check_output (const char *path, guint format, GError **error)
{
  if (format < FIRST_PICTURE)
    return !path || ls_write_file_check (path, error);
  g_autofree char *suffix = g_strconcat (".", formats[format - FIRST_PICTURE], NULL);
  if (path && g_str_has_suffix (path, suffix))
    return ls_drawing_check (path, error);
  return ls_fail (error, LS_ERROR_USAGE, "--format %s: expected -o and a name that ends in %s",
                  formats[format - FIRST_PICTURE], suffix);
}

/* What went to a file is not printed. */
static void
put (const Data *s, const char *path, guint format, LsAnswer *a)
{
  GError *error = NULL;
  if (!path) {
    ls_answer_set_form (a, (LsForm) format);
    return;
  }
  g_autofree char *text = format < FIRST_PICTURE ? ls_answer_format (a, (LsForm) format, NULL) : NULL;
  if (text ? !ls_write_text (path, text, &error) : !draw (s, path, &error))
    ls_answer_fail (a, error);
  ls_answer_take_text (a, g_strdup (""));
}

/* --- the command ---------------------------------------------------------------------------------- */

LS_REQUEST_SET (set_knob, ls_schedule_spec_set)

static Data *
make (const LsRequest *r, GError **error)
{
  g_autoptr (Data) s = g_new0 (Data, 1);
  ls_schedule_spec_init (&s->spec);
  if (!ls_request_set_own (r, set_knob, &s->spec, error))
    return NULL;
  bool is_list = s->spec.schedule && ls_schedule_is_list (s->spec.schedule);
  if (is_list && ls_request_is_on (r, "all")) {
    ls_request_refuse ("expected --schedule or --all; got both", error);
    return NULL;
  }
  if (is_list || ls_request_is_on (r, "all"))
    s->table = ls_schedule_all (&s->spec, error);
  else
    s->view = ls_schedule_view_new (&s->spec, error);
  return s->table || s->view ? g_steal_pointer (&s) : NULL;
}

gboolean
command_schedule (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *path = ls_request_text (r, "output");
  gint64 width = 0;
  guint format = format_of (r);
  if (!ls_request_number (r, "width", MIN_WIDTH, MAX_WIDTH, &width, error)
      || !check_output (path, format, error))
    return FALSE;
  Data *s = make (r, error);
  if (!s)
    return FALSE;
  s->width = (guint) width;
  ls_answer_take (a, s, &forms);
  ls_answer_write (a, r, "plot", draw);
  put (s, path, format, a);
  return TRUE;
}
