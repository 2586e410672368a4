#include "show/quantity.h"

#include <lockstep/units.h>
#include <math.h>
#include <string.h>

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
