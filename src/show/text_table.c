#include "show/text_table.h"

#include <math.h>
#include <string.h>
#include <lockstep/units.h>

#define GAP 2

void
ls_text_table_init (LsTextTable *t, const char *align)
{
  g_assert (strlen (align) <= LS_TEXT_TABLE_MAX_COLUMNS);
  t->align = align;
  t->cells = g_ptr_array_new_with_free_func (g_free);
  t->notes = g_ptr_array_new_with_free_func (g_free);
}

void
ls_text_table_take (LsTextTable *t, char *cell)
{
  g_ptr_array_add (t->cells, cell ? cell : g_strdup (""));
  if (t->cells->len % strlen (t->align) == 0)
    g_ptr_array_add (t->notes, NULL);
}

void
ls_text_table_note (LsTextTable *t, const char *note)
{
  g_assert (t->notes->len > 0);
  g_free (t->notes->pdata[t->notes->len - 1]);
  t->notes->pdata[t->notes->len - 1] = g_strdup (note);
}

void
ls_text_end_line (GString *out)
{
  while (out->len > 0 && out->str[out->len - 1] == ' ')
    g_string_truncate (out, out->len - 1);
  g_string_append_c (out, '\n');
}

void
ls_text_table_print (LsTextTable *t, int indent, GString *out)
{
  guint n = (guint) strlen (t->align);
  glong width[LS_TEXT_TABLE_MAX_COLUMNS] = { 0 };
  g_assert (t->cells->len % n == 0);
  for (guint i = 0; i < t->cells->len; i++)
    width[i % n] = MAX (width[i % n], g_utf8_strlen (t->cells->pdata[i], -1));
  for (guint i = 0; i < t->cells->len; i++) {
    const char *cell = t->cells->pdata[i];
    glong rest = width[i % n] - g_utf8_strlen (cell, -1);
    int before = (i % n == 0 ? indent : 0) + (t->align[i % n] == 'r' ? (int) rest : 0);
    g_string_append_printf (out, "%*s%s%*s", before, "", cell,
                            GAP + (t->align[i % n] == 'l' ? (int) rest : 0), "");
    if (i % n + 1 < n)
      continue;
    ls_text_end_line (out);
    if (t->notes->pdata[i / n]) {
      g_string_append_printf (out, "%*s%s\n", indent + 2, "", (const char *) t->notes->pdata[i / n]);
    }
  }
  g_ptr_array_unref (t->cells);
  g_ptr_array_unref (t->notes);
}

void
ls_text_paint (GString *out, bool is_color, const char *code)
{
  if (is_color)
    g_string_append_printf (out, "\033[%sm", code);
}

void
ls_text_heading (GString *out, bool is_color, const char *heading, const char *note)
{
  g_string_append_c (out, '\n');
  ls_text_paint (out, is_color, "1");
  g_string_append (out, heading);
  ls_text_paint (out, is_color, "0");
  g_string_append (out, "  ");
  ls_text_paint (out, is_color, "2");
  g_string_append (out, note);
  ls_text_paint (out, is_color, "0");
  g_string_append_c (out, '\n');
}

int
ls_text_widest (int least, const void *first, guint n, gsize size)
{
  int width = least;
  for (guint i = 0; i < n; i++)
    width = MAX (width, (int) g_utf8_strlen (*(const char *const *) ((const char *) first + i * size), -1));
  return width;
}

/* --- quantities ---------------------------------------------------------------------------------- */

#define HOUR_S 3600.0
#define DAY_S  86400.0

/* Four digits that count. */
static char *
four_digits (double value, const char *unit)
{
  int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
  return g_strdup_printf ("%.*f %s", decimals, value, unit);
}

char *
ls_text_time (double seconds)
{
  if (isnan (seconds) || isinf (seconds))
    return g_strdup (isnan (seconds) ? "-" : "never");
  if (seconds == 0)
    return g_strdup ("0 s");
  if (seconds >= DAY_S)
    return four_digits (seconds / DAY_S, "days");
  return seconds >= HOUR_S ? four_digits (seconds / HOUR_S, "h") : ls_format_time (ls_time_from_s (seconds));
}

char *
ls_text_grouped (double value, int decimals)
{
  g_autofree char *plain = g_strdup_printf ("%.*f", decimals, value);
  size_t n_digits = strcspn (plain, ".");
  GString *text = g_string_new (NULL);
  for (size_t i = 0; i < n_digits; i++) {
    if (i > 0 && (n_digits - i) % 3 == 0 && plain[i - 1] != '-')
      g_string_append_c (text, ',');
    g_string_append_c (text, plain[i]);
  }
  g_string_append (text, plain + n_digits);
  return g_string_free (text, FALSE);
}

char *
ls_text_count (double n)
{
  static const struct {
    double scale;
    const char *word;
  } words[] = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" } };
  if (isnan (n))
    return g_strdup ("-");
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (n >= words[i].scale)
      return g_strdup_printf ("%.4g %s", n / words[i].scale, words[i].word);
  return n < 999.95 ? g_strdup_printf ("%.4g", n) : ls_text_grouped (n, 0);
}

char *
ls_text_money (double usd)
{
  if (isnan (usd))
    return g_strdup ("-");
  if (usd >= 1e6)
    return g_strdup_printf ("$%.4g million", usd / 1e6);
  g_autofree char *text = ls_text_grouped (usd, usd < 1 ? 3 : 2);
  return g_strconcat ("$", text, NULL);
}

char *
ls_text_energy (double kwh)
{
  if (isnan (kwh))
    return g_strdup ("-");
  return kwh >= 1e3 ? g_strdup_printf ("%.4g MWh", kwh / 1e3) : g_strdup_printf ("%.4g kWh", kwh);
}

char *
ls_text_plain (const char *format, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (isnan (value) ? "NaN" : g_ascii_formatd (text, sizeof text, format, value));
}

char *
ls_text_number (const char *format, double value)
{
  return isnan (value) ? g_strdup ("-") : ls_text_plain (format, value);
}

char *
ls_text_words (const char *name)
{
  return g_strdelimit (g_strdup (name), "_", ' ');
}
