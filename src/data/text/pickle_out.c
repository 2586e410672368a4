#include "data/text/pickle_out.h"

#include <string.h>

/* Opcodes, as Lib/pickletools.py names them. */
#define PROTO           "\x80\x02"
#define STOP            '.'
#define MARK            '('
#define EMPTY_DICT      '}'
#define SETITEMS        'u'
#define EMPTY_LIST      ']'
#define APPENDS         'e'
#define TUPLE2          0x86
#define BINUNICODE      'X'
#define BININT          'J'
#define BININT1         'K'
#define BININT2         'M'
#define LONG1           0x8a
#define BINFLOAT        'G'
#define NEWTRUE         0x88
#define NEWFALSE        0x89
#define BINPUT          'q'
#define LONG_BINPUT     'r'
#define BINGET          'h'
#define LONG_BINGET     'j'
#define ITEMS_AT_A_TIME 1000

void
ls_pickle_out_begin (LsPickleOut *w, FILE *file)
{
  *w = (LsPickleOut) { .file = file, .texts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  fputs (PROTO, file);
}

void
ls_pickle_out_finish (LsPickleOut *w)
{
  g_assert (w->depth == 0);
  putc (STOP, w->file);
  g_hash_table_unref (w->texts);
}

/* n bytes, the lowest first. */
static void
put_bytes (LsPickleOut *w, uint64_t value, int n)
{
  for (int i = 0; i < n; i++)
    putc ((int) (value >> 8 * i & 0xff), w->file);
}

/* --- containers -------------------------------------------------------------------- */

/* Before each value: what the container has on the stack becomes its own when it is much. */
static void
count (LsPickleOut *w)
{
  if (w->depth == 0)
    return;
  bool is_list = w->open[w->depth - 1].is_list;
  uint32_t *n = &w->open[w->depth - 1].n;
  if (*n == ITEMS_AT_A_TIME) {
    putc (is_list ? APPENDS : SETITEMS, w->file);
    putc (MARK, w->file);
    *n = 0;
  }
  ++*n;
}

static void put_text (LsPickleOut *w, const char *text);

/* Before each value, with its key. */
static void
begin_item (LsPickleOut *w, const char *key)
{
  if (key)
    put_text (w, key);
  count (w);
}

static void
begin (LsPickleOut *w, const char *key, bool is_list)
{
  begin_item (w, key);
  g_assert (w->depth < LS_PICKLE_MAX_DEPTH);
  putc (is_list ? EMPTY_LIST : EMPTY_DICT, w->file);
  putc (MARK, w->file);
  w->open[w->depth].is_list = is_list;
  w->open[w->depth++].n = 0;
}

static void
end (LsPickleOut *w, bool is_list)
{
  g_assert (w->depth > 0);
  w->depth--;
  g_assert (w->open[w->depth].is_list == is_list && (is_list || w->open[w->depth].n % 2 == 0));
  putc (is_list ? APPENDS : SETITEMS, w->file);
}

void
ls_pickle_out_begin_object (LsPickleOut *w, const char *key)
{
  begin (w, key, false);
}

void
ls_pickle_out_end_object (LsPickleOut *w)
{
  end (w, false);
}

void
ls_pickle_out_begin_array (LsPickleOut *w, const char *key)
{
  begin (w, key, true);
}

void
ls_pickle_out_end_array (LsPickleOut *w)
{
  end (w, true);
}

/* --- values -------------------------------------------------------------------------- */

static void
put_number (LsPickleOut *w, int64_t value)
{
  bool is_small = value >= 0 && value <= UINT16_MAX;
  if (is_small) {
    putc (value <= UINT8_MAX ? BININT1 : BININT2, w->file);
    put_bytes (w, (uint64_t) value, value <= UINT8_MAX ? 1 : 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    putc (BININT, w->file);
    put_bytes (w, (uint64_t) value, 4);
  } else {
    putc (LONG1, w->file);
    putc (8, w->file);
    put_bytes (w, (uint64_t) value, 8);
  }
}

void
ls_pickle_out_int (LsPickleOut *w, const char *key, int64_t value)
{
  begin_item (w, key);
  put_number (w, value);
}

void
ls_pickle_out_pair (LsPickleOut *w, const char *key, int64_t first, int64_t second)
{
  begin_item (w, key);
  put_number (w, first);
  put_number (w, second);
  putc (TUPLE2, w->file);
}

void
ls_pickle_out_double (LsPickleOut *w, const char *key, double value)
{
  uint64_t bits;
  begin_item (w, key);
  memcpy (&bits, &value, sizeof bits);
  putc (BINFLOAT, w->file);
  put_bytes (w, GUINT64_SWAP_LE_BE (bits), 8);
}

void
ls_pickle_out_bool (LsPickleOut *w, const char *key, bool value)
{
  begin_item (w, key);
  putc (value ? NEWTRUE : NEWFALSE, w->file);
}

/* --- what is there already --------------------------------------------------------------- */

uint32_t
ls_pickle_out_keep (LsPickleOut *w)
{
  bool is_short = w->n_kept <= UINT8_MAX;
  putc (is_short ? BINPUT : LONG_BINPUT, w->file);
  put_bytes (w, w->n_kept, is_short ? 1 : 4);
  return w->n_kept++;
}

void
ls_pickle_out_again (LsPickleOut *w, const char *key, uint32_t number)
{
  g_assert (number < w->n_kept);
  begin_item (w, key);
  bool is_short = number <= UINT8_MAX;
  putc (is_short ? BINGET : LONG_BINGET, w->file);
  put_bytes (w, number, is_short ? 1 : 4);
}

static void
put_text (LsPickleOut *w, const char *text)
{
  gpointer known = g_hash_table_lookup (w->texts, text);
  if (known) {
    ls_pickle_out_again (w, NULL, GPOINTER_TO_UINT (known) - 1);
    return;
  }
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gsize n = strlen (valid);
  count (w);
  putc (BINUNICODE, w->file);
  put_bytes (w, n, 4);
  fwrite (valid, 1, n, w->file);
  g_hash_table_insert (w->texts, g_strdup (text), GUINT_TO_POINTER (ls_pickle_out_keep (w) + 1));
}

void
ls_pickle_out_string (LsPickleOut *w, const char *key, const char *value)
{
  if (key)
    put_text (w, key);
  put_text (w, value);
}
