/* show/write_schedule.c — a pipeline schedule and what it costs, for people and programs. */
#include "show/answers.h"

#include <math.h>
#include <string.h>

#include "job/assumptions.h"

/* Activations that ranks hold at most: of the one with least and with most. */
typedef struct {
  double least, most;
  uint32_t fullest;
} Peaks;

static Peaks
peaks_of (const LsScheduleView *v, LsPeakCount count)
{
  Peaks p = { INFINITY, 0, 0 };
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++) {
    double peak = ls_schedule_peak (v->eval, rank, count);
    p.fullest = peak > p.most ? rank : p.fullest;
    p.most = fmax (p.most, peak);
    p.least = fmin (p.least, peak);
  }
  return p;
}

static bool
has_refusal (const LsScheduleTable *t)
{
  bool is_there = false;
  for (guint i = 0; i < t->rows->len; i++)
    is_there |= g_array_index (t->rows, LsScheduleRow, i).refusal != NULL;
  return is_there;
}

/* ---- for programs ---- */

static char **
cells_of (const LsScheduleView *v, uint32_t rank)
{
  g_autoptr (GString) cells = g_string_new (NULL);
  ls_orders_append_rank (v->orders, rank, cells);
  return g_strsplit (cells->str, ",", -1);
}

#include "show/schedule_keys.h"

char *
ls_schedule_to_csv (const LsScheduleView *v)
{
  GString *out = g_string_new (NULL);
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++) {
    ls_orders_append_rank (v->orders, rank, out);
    g_string_append_c (out, '\n');
  }
  return g_string_free (out, FALSE);
}

/* A pipeline schedule drawn with characters: a row per rank, time to the right.
 *
 * Where there is room an action is a box with its letter (lower case on chunks 1, 3, ..) and micro-batch, in
 * colour a box of its colour with the micro-batch. Where there is not, a column is a slice of time: a letter
 * where one kind of work has four fifths of what is done in it, else a mixture, lighter where the rank is
 * idle for more than half of it. Of more than MAX_ROWS ranks every n-th is shown. */

#define MAX_ROWS    64
#define MAX_UNIT    8 /* columns of the shortest action, at most */
#define MIN_COLUMNS 20
#define SIDES       29 /* columns beside the chart: "rank 12 |" and "|  27.3 %   12.5" */

/* What a column of time holds. */
typedef enum { KIND_F, KIND_B, KIND_I, KIND_W, KIND_PAIR, N_KINDS } Kind;

/* Colours of the 256-colour palette: dark for the first chunk, light for the last. */
typedef struct {
  char letter;
  const char *name;
  guint8 shades[3];
} KindStyle;

static const KindStyle styles[N_KINDS] = {
  [KIND_F] = { 'F', "forward", { 26, 68, 117 } },
  [KIND_B] = { 'B', "backward", { 28, 71, 114 } },
  [KIND_I] = { 'I', "input gradient", { 30, 73, 116 } },
  [KIND_W] = { 'W', "weight gradient", { 130, 172, 222 } },
  [KIND_PAIR] = { 'X', "forward with backward", { 54, 97, 140 } },
};

#define NO_COLOR 0 /* black is not used */
#define WHITE    231
#define BLACK    16

typedef struct {
  char glyph[4]; /* UTF-8 */
  guint8 fg, bg;
} Cell;

typedef struct {
  const LsScheduleView *v;
  const LsScheduleText *text;
  guint n_columns;
  bool is_slices; /* a column may hold several actions; else each has columns of its own */
  Cell *cells;    /* [n_columns] of the row being drawn */
  double *shares; /* [n_columns][N_KINDS] of a column's time */
} Chart;

static Kind
kind_of (const LsAction *a)
{
  static const Kind kinds[] = {
    [LS_ACTION_F] = KIND_F,
    [LS_ACTION_B] = KIND_B,
    [LS_ACTION_I] = KIND_I,
    [LS_ACTION_W] = KIND_W,
  };
  return a->is_paired ? KIND_PAIR : kinds[a->type];
}

static guint
shade_of (const Chart *c, guint chunk)
{
  guint n = c->v->orders->layout.n_chunks;
  return n > 1 ? (2 * chunk + (n - 1) / 2) / (n - 1) : 0;
}

/* ---- scale ---- */

/* So many that the shortest action has a whole number of them, if it has at least one; else
 * all. */
static void
choose_columns (Chart *c)
{
  guint n = MAX (c->text->width, SIDES + MIN_COLUMNS) - SIDES;
  double n_shortest = (double) c->v->eval->makespan / (double) ls_schedule_shortest (c->v);
  guint unit = MIN ((guint) (n / n_shortest), MAX_UNIT);
  c->is_slices = unit < 1;
  c->n_columns = c->is_slices ? n : (guint) floor (n_shortest * unit + 1e-6);
}

/* Where each action has a column at least, it begins and ends between two. */
static double
column_at (const Chart *c, LsTime t)
{
  double at = (double) t * c->n_columns / (double) MAX (c->v->eval->makespan, 1);
  return c->is_slices ? at : round (at);
}

/* ---- a row ---- */

static void
set_cell (Cell *cell, const char *glyph, guint8 fg, guint8 bg)
{
  g_strlcpy (cell->glyph, glyph, sizeof cell->glyph);
  cell->fg = fg;
  cell->bg = bg;
}

static void
add_shares (Chart *c, const LsActionTime *t, Kind kind)
{
  double from = column_at (c, t->start), to = column_at (c, t->end);
  for (guint i = (guint) from; i < c->n_columns && i < to; i++)
    c->shares[i * N_KINDS + kind] += fmin (to, i + 1) - fmax (from, i);
}

/* A column as a slice of time. */
static void
draw_column (Chart *c, guint i)
{
  const double *shares = &c->shares[i * N_KINDS];
  double busy = 0;
  Kind most = KIND_F, second = KIND_F;
  for (Kind k = 0; k < N_KINDS; k++) {
    busy += shares[k];
    if (shares[k] > shares[most])
      most = k;
  }
  second = most == KIND_F ? KIND_B : KIND_F;
  for (Kind k = 0; k < N_KINDS; k++)
    if (k != most && shares[k] > shares[second])
      second = k;

  bool ascii = c->text->ascii;
  const char letter[] = { styles[most].letter, '\0' };
  guint8 color = c->text->color ? styles[most].shades[0] : NO_COLOR,
         other = c->text->color ? styles[second].shades[0] : NO_COLOR;
  if (busy < 0.125)
    set_cell (&c->cells[i], ascii ? "." : "·", c->text->color ? 245 : NO_COLOR, NO_COLOR);
  else if (busy < 0.5)
    set_cell (&c->cells[i], ascii ? ":" : "░", color, NO_COLOR);
  else if (shares[most] >= busy * 0.8)
    set_cell (&c->cells[i], c->text->color ? " " : letter, NO_COLOR, color);
  else
    set_cell (&c->cells[i], ascii ? "#" : "▒", other, color);
}

/* "F12", "f12" of an odd chunk, in colour "12"; of a pair both. */
static char *
label_of (const Chart *c, const LsAction *a)
{
  GString *label = g_string_new (NULL);
  for (guint k = 0; k < (a->is_paired ? 2 : 1); k++) {
    char letter = ls_action_letter (a[k].type);
    if (!c->text->color)
      g_string_append_c (label, a[k].chunk % 2 ? g_ascii_tolower (letter) : letter);
    else if (k > 0)
      g_string_append_c (label, '/');
    g_string_append_printf (label, "%u", a[k].mb);
  }
  return g_string_free (label, FALSE);
}

/* A box over the columns that are the action's alone, if it has so many as its label. */
static void
draw_box (Chart *c, const LsAction *a, const LsActionTime *t)
{
  guint from = (guint) ceil (column_at (c, t->start) - 1e-6),
        to = (guint) floor (column_at (c, t->end) + 1e-6);
  g_autofree char *label = label_of (c, a);
  size_t n = strlen (label);
  guint shade = shade_of (c, a->chunk);
  bool is_labelled = to >= from + n;
  if (!is_labelled && !c->text->color)
    return;
  guint8 bg = c->text->color ? styles[kind_of (a)].shades[shade] : NO_COLOR;
  guint8 fg = c->text->color ? (shade == 0 ? WHITE : BLACK) : NO_COLOR;
  for (guint i = from; i < to && i < c->n_columns; i++) {
    const char glyph[] = { is_labelled && i - from < n ? label[i - from] : ' ', '\0' };
    set_cell (&c->cells[i], glyph, fg, bg);
  }
}

static void
draw_row (Chart *c, uint32_t rank)
{
  const GArray *actions = c->v->orders->ranks[rank];
  const LsActionTime *times = c->v->eval->times[rank];
  memset (c->shares, 0, c->n_columns * N_KINDS * sizeof *c->shares);
  for (guint i = 0; i < actions->len; i++) {
    const LsAction *a = &g_array_index (actions, LsAction, i);
    add_shares (c, &times[i], kind_of (a));
    i += a->is_paired;
  }
  for (guint i = 0; i < c->n_columns; i++)
    draw_column (c, i);
  for (guint i = 0; i < actions->len; i++) {
    const LsAction *a = &g_array_index (actions, LsAction, i);
    draw_box (c, a, &times[i]);
    i += a->is_paired;
  }
}

static void
print_row (GString *out, const Chart *c)
{
  guint8 fg = NO_COLOR, bg = NO_COLOR;
  for (guint i = 0; i < c->n_columns; i++) {
    const Cell *cell = &c->cells[i];
    if (cell->fg != fg || cell->bg != bg) {
      fg = cell->fg;
      bg = cell->bg;
      g_string_append (out, "\033[0");
      if (fg != NO_COLOR)
        g_string_append_printf (out, ";38;5;%u", fg);
      if (bg != NO_COLOR)
        g_string_append_printf (out, ";48;5;%u", bg);
      g_string_append_c (out, 'm');
    }
    g_string_append (out, cell->glyph);
  }
  if (fg != NO_COLOR || bg != NO_COLOR)
    g_string_append (out, "\033[0m");
}

static void
find_kinds (const LsOrders *orders, bool *is_used)
{
  for (uint32_t rank = 0; rank < orders->layout.n_ranks; rank++)
    for (guint i = 0; i < orders->ranks[rank]->len; i++) {
      const LsAction *a = &g_array_index (orders->ranks[rank], LsAction, i);
      is_used[kind_of (a)] = true;
      i += a->is_paired;
    }
}

#include "show/schedule_text.h"
