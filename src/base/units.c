/* Quantities are read in two steps: a decimal number, then a unit from a table.
 *
 * Times and sizes are integers, so they are computed exactly: the number is kept
 * as digits * 10^exponent, multiplied by the unit in 128 bits and divided with
 * rounding half away from zero. "0.1us" is 100000 ps without a detour through
 * binary fractions. Rates are doubles and go through g_ascii_strtod(). */
#include <lockstep/units.h>

#include <glib.h>
#include <math.h>
#include <string.h>

#define KIB (UINT64_C (1) << 10)
#define MIB (UINT64_C (1) << 20)
#define GIB (UINT64_C (1) << 30)
#define TIB (UINT64_C (1) << 40)
#define PIB (UINT64_C (1) << 50)

typedef struct {
  const char *name;
  uint64_t scale;   /* of the base unit in one of these  */
  uint64_t divisor; /* 8 where bits become bytes, else 0 */
} Unit;

/* Largest first: the formatters take the first one that a value reaches. */
static const Unit time_units[] = {
  { "d", 86400 * LS_S }, { "h", 3600 * LS_S }, { "min", 60 * LS_S }, { "s", LS_S },   { "ms", LS_MS },
  { "us", LS_US },       { "\u00b5s", LS_US }, { "ns", LS_NS },      { "ps", LS_PS }, { NULL },
};
static const Unit byte_units[] = {
  { "PiB", PIB },
  { "TiB", TIB },
  { "GiB", GIB },
  { "MiB", MIB },
  { "KiB", KIB },
  { "PB", UINT64_C (1000000000000000) },
  { "TB", UINT64_C (1000000000000) },
  { "GB", 1000000000 },
  { "MB", 1000000 },
  { "kB", 1000 },
  { "KB", 1000 },
  { "B", 1 },
  { "T", TIB },
  { "G", GIB },
  { "M", MIB },
  { "k", KIB },
  { "K", KIB },
  { NULL },
};
static const Unit count_units[] = {
  { "", 1 },     { "k", KIB }, { "K", KIB },  { "Ki", KIB }, { "M", MIB },
  { "Mi", MIB }, { "G", GIB }, { "Gi", GIB }, { NULL },
};
static const Unit rate_units[] = {
  { "TB/s", UINT64_C (1000000000000) },
  { "GB/s", 1000000000 },
  { "MB/s", 1000000 },
  { "kB/s", 1000 },
  { "B/s", 1 },
  { "TiB/s", TIB },
  { "GiB/s", GIB },
  { "MiB/s", MIB },
  { "KiB/s", KIB },
  { "Tbit/s", UINT64_C (1000000000000), 8 },
  { "Gbit/s", 1000000000, 8 },
  { "Mbit/s", 1000000, 8 },
  { "kbit/s", 1000, 8 },
  { "bit/s", 1, 8 },
  { "Tbps", UINT64_C (1000000000000), 8 },
  { "Gbps", 1000000000, 8 },
  { "Mbps", 1000000, 8 },
  { NULL },
};
static const Unit flop_units[] = {
  { "EFLOP/s", UINT64_C (1000000000000000000) },
  { "PFLOP/s", UINT64_C (1000000000000000) },
  { "TFLOP/s", UINT64_C (1000000000000) },
  { "GFLOP/s", 1000000000 },
  { "MFLOP/s", 1000000 },
  { "FLOP/s", 1 },
  { NULL },
};

/* --- seconds and picoseconds -------------------------------------------------- */

static LsTime
saturate (double ps)
{
  const double limit = 9223372036854775808.0; /* 2^63 */
  if (!(ps < limit))                          /* NaN too */
    return LS_TIME_NEVER;
  return ps <= -limit ? -LS_TIME_NEVER : (LsTime) ps;
}

LsTime
ls_time_from_s (double seconds)
{
  return saturate (round (seconds * (double) LS_S));
}

LsTime
ls_time_from_s_up (double seconds)
{
  return saturate (ceil (seconds * (double) LS_S));
}

double
ls_time_to_s (LsTime t)
{
  return (double) t / (double) LS_S;
}

/* --- reading ------------------------------------------------------------------ */

typedef unsigned __int128 Wide;

/* digits * 10^exponent; what follows the number starts at `rest`. */
typedef struct {
  uint64_t digits;
  int exponent;
  const char *rest;
} Decimal;

#define MAX_EXPONENT 40

static bool
read_exponent (const char **at, int *exponent)
{
  const char *p = *at;
  if (*p != 'e' && *p != 'E')
    return true;
  p++;
  int sign = *p == '-' ? -1 : 1;
  if (*p == '-' || *p == '+')
    p++;
  if (!g_ascii_isdigit (*p))
    return true; /* not an exponent: "3EFLOP/s" */
  int value = 0;
  for (; g_ascii_isdigit (*p); p++)
    if ((value = 10 * value + (*p - '0')) > MAX_EXPONENT)
      return false;
  *exponent += sign * value;
  *at = p;
  return true;
}

/* A number without sign: "12", "0.91", ".5", "1e-6"; false with more than 19
 * significant digits. */
static bool
read_decimal (const char *text, Decimal *ret)
{
  Decimal d = { 0 };
  bool in_fraction = false, has_digit = false;
  const char *p = text;
  for (;; p++) {
    if (*p == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (!g_ascii_isdigit (*p))
      break;
    has_digit = true;
    if (__builtin_mul_overflow (d.digits, (uint64_t) 10, &d.digits)
        || __builtin_add_overflow (d.digits, (uint64_t) (*p - '0'), &d.digits))
      return false;
    d.exponent -= in_fraction;
  }
  if (!has_digit || !read_exponent (&p, &d.exponent))
    return false;
  d.rest = p;
  *ret = d;
  return true;
}

static const Unit *
find_unit (const Unit *table, const char *text)
{
  while (*text == ' ')
    text++;
  for (const Unit *u = table; u->name; u++)
    if (strcmp (u->name, text) == 0)
      return u;
  return NULL;
}

/* digits * 10^exponent * scale, half away from zero; false above max. */
static bool
scale_exactly (const Decimal *d, uint64_t scale, uint64_t max, uint64_t *ret)
{
  Wide value = (Wide) d->digits * scale, divisor = 1;
  int exponent = value == 0 ? 0 : d->exponent;
  for (; exponent > 0; exponent--)
    if (__builtin_mul_overflow (value, (Wide) 10, &value))
      return false;
  for (; exponent < 0; exponent++)
    if (__builtin_mul_overflow (divisor, (Wide) 10, &divisor) || divisor > 2 * value) {
      *ret = 0; /* below one half */
      return true;
    }
  value = value / divisor + (value % divisor >= divisor - divisor / 2);
  if (value > max)
    return false;
  *ret = (uint64_t) value;
  return true;
}

static bool
parse_integer (const char *text, const Unit *table, uint64_t max, uint64_t *ret)
{
  Decimal d;
  if (!read_decimal (text, &d))
    return false;
  const Unit *unit = find_unit (table, d.rest);
  return unit && scale_exactly (&d, unit->scale, max, ret);
}

static bool
parse_double (const char *text, const Unit *table, double *ret)
{
  Decimal d; /* for the syntax: strtod would take signs, hex, inf and nan */
  if (!read_decimal (text, &d))
    return false;
  const Unit *unit = find_unit (table, d.rest);
  if (!unit)
    return false;
  double value = g_ascii_strtod (text, NULL) * (double) unit->scale;
  *ret = unit->divisor ? value / (double) unit->divisor : value;
  return true;
}

static bool
expected (bool ok, const char *what, const char **reterr_expected)
{
  if (!ok && reterr_expected)
    *reterr_expected = what;
  return ok;
}

bool
ls_parse_time (const char *text, LsTime *ret_value, const char **reterr_expected)
{
  uint64_t ps;
  bool ok = parse_integer (text, time_units, (uint64_t) LS_TIME_NEVER - 1, &ps);
  if (ok)
    *ret_value = (LsTime) ps;
  return expected (ok, "a time with a unit such as \"2us\"", reterr_expected);
}

bool
ls_parse_bytes (const char *text, uint64_t *ret_value, const char **reterr_expected)
{
  return expected (parse_integer (text, byte_units, UINT64_MAX, ret_value),
                   "a size with a unit such as \"80GiB\"", reterr_expected);
}

/* Whether digits * 10^exponent * scale is the whole number `value`. */
static bool
is_exactly (const Decimal *d, uint64_t scale, uint64_t value)
{
  Wide left = (Wide) d->digits * scale, right = value;
  for (int exponent = d->exponent; exponent < 0; exponent++)
    if (__builtin_mul_overflow (right, (Wide) 10, &right))
      return left == 0;
  return left == right;
}

bool
ls_parse_count (const char *text, uint64_t *ret_value, const char **reterr_expected)
{
  Decimal d;
  uint64_t value = 0;
  bool ok = !strpbrk (text, "eE ") && read_decimal (text, &d) && (*d.rest || !strchr (text, '.'));
  const Unit *unit = ok ? find_unit (count_units, d.rest) : NULL;
  ok = unit && scale_exactly (&d, unit->scale, UINT64_MAX, &value) && is_exactly (&d, unit->scale, value);
  if (ok)
    *ret_value = value;
  return expected (ok, "a whole number such as 8192 or 8k", reterr_expected);
}

bool
ls_parse_rate (const char *text, double *ret_value, const char **reterr_expected)
{
  return expected (parse_double (text, rate_units, ret_value),
                   "a rate with a unit such as \"400Gbit/s\" or \"25GB/s\"", reterr_expected);
}

bool
ls_parse_flops (const char *text, double *ret_value, const char **reterr_expected)
{
  return expected (parse_double (text, flop_units, ret_value),
                   "a FLOP rate with a unit such as \"312TFLOP/s\"", reterr_expected);
}

/* --- what is read, as a pattern ------------------------------------------------ */

char *
ls_quantity_pattern (LsQuantity quantity)
{
  static const Unit *const tables[] = { [LS_QUANTITY_TIME] = time_units,
                                        [LS_QUANTITY_BYTES] = byte_units,
                                        [LS_QUANTITY_RATE] = rate_units,
                                        [LS_QUANTITY_FLOPS] = flop_units,
                                        [LS_QUANTITY_COUNT] = count_units + 1 };
  GString *pattern = g_string_new ("^([0-9]+\\.?[0-9]*|\\.[0-9]+)");
  g_string_append (pattern, quantity == LS_QUANTITY_COUNT ? "(" : "([eE][-+]?[0-9]+)? *(");
  for (const Unit *u = tables[quantity]; u->name; u++)
    g_string_append_printf (pattern, "%s%s", u == tables[quantity] ? "" : "|", u->name);
  return g_string_free (g_string_append (pattern, ")$"), FALSE);
}

/* --- writing ------------------------------------------------------------------ */

static char *
print (const char *sign, const char *format, double value, const char *unit)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE + 320];
  g_ascii_formatd (number, sizeof number, format, value);
  return g_strconcat (sign, number, " ", unit, NULL);
}

/* Four significant digits; the thresholds keep 9.9996 from becoming "10.000". */
static const char *
four_digits (double value)
{
  return value < 9.9995 ? "%.3f" : value < 99.995 ? "%.2f" : value < 999.95 ? "%.1f" : "%.0f";
}

char *
ls_format_time (LsTime t)
{
  static const Unit shown[] = { { "s", LS_S }, { "ms", LS_MS }, { "us", LS_US }, { "ns", LS_NS } };
  if (t == LS_TIME_NEVER)
    return g_strdup ("never");
  const char *sign = t < 0 ? "-" : "";
  double ps = fabs ((double) t);
  for (size_t i = 0; i < G_N_ELEMENTS (shown); i++) {
    double value = ps / (double) shown[i].scale;
    if (value >= 0.99995)
      return print (sign, four_digits (value), value, shown[i].name);
  }
  return print (sign, "%.0f", ps, "ps");
}

/* Decimals in the first of units[0..n) that the value reaches, else none in
 * units[n]. A value that the next unit would round up to a whole one of this
 * unit has reached it: never "1000.0 MB/s". half: of the last decimal. */
static char *
print_in_first_reached (double value, const Unit *units, size_t n, const char *format, double half)
{
  for (size_t i = 0; i < n; i++) {
    double in_unit = value / (double) units[i].scale;
    double next = (double) units[i + 1].scale / (double) units[i].scale;
    if (in_unit >= 1 - (i + 1 < n ? half : 0.5) * next)
      return print ("", format, in_unit, units[i].name);
  }
  return print ("", "%.0f", value, units[n].name);
}

char *
ls_format_bytes (uint64_t bytes)
{
  static const Unit shown[] = {
    { "PiB", PIB }, { "TiB", TIB }, { "GiB", GIB }, { "MiB", MIB }, { "KiB", KIB }, { "B", 1 },
  };
  return print_in_first_reached ((double) bytes, shown, G_N_ELEMENTS (shown) - 1, "%.2f", 0.005);
}

char *
ls_format_rate (double bytes_per_s)
{
  return print_in_first_reached (bytes_per_s, rate_units, 4, "%.1f", 0.05); /* TB/s to kB/s, then B/s */
}

char *
ls_format_flops (double flop_per_s)
{
  return print_in_first_reached (flop_per_s, flop_units, 5, "%.1f",
                                 0.05); /* EFLOP/s to MFLOP/s, then FLOP/s */
}
