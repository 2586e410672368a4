/* data/python/python_format.c — values as Python writes them: str (), f"{a:03d}", "%s" % a.
 *
 * What a format says: Python's Library Reference, "Format Specification Mini-Language". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/python/python_parts.h"

#define MAX_WIDTH 200

static bool
is_whole (const cJSON *of)
{
  return cJSON_IsNumber (of) && !python_is_kind (of, PYTHON_FLOAT)
      && of->valuedouble == (double) (gint64) CLAMP (of->valuedouble, -9e15, 9e15);
}

/* The shortest digits that are read as the same number, with an exponent from 1e16 on and below 1e-4. */
static char *
text_of_float (double value)
{
  char digits[G_ASCII_DTOSTR_BUF_SIZE + 8] = "", format[] = "%.00e";
  for (int n = 0; n < 17 && (n == 0 || g_ascii_strtod (digits, NULL) != value); n++) {
    format[2] = (char) ('0' + n / 10);
    format[3] = (char) ('0' + n % 10);
    g_ascii_formatd (digits, sizeof digits, format, value);
  }
  const char *mark = strchr (digits, 'e');
  const int exponent = mark ? atoi (mark + 1) : 0,
            n_behind = mark ? (int) (mark - digits) - 1 - (value < 0) : 0;
  if (exponent < -4 || exponent >= 16)
    return g_strdup (digits);
  char plain[64], fixed[] = "%.00f";
  const int n = MAX (1, MAX (0, n_behind - 1) - exponent);
  fixed[2] = (char) ('0' + n / 10);
  fixed[3] = (char) ('0' + n % 10);
  return g_strdup (g_ascii_formatd (plain, sizeof plain, fixed, value));
}

char *
python_written (const cJSON *of)
{
  if (cJSON_IsBool (of))
    return g_strdup (cJSON_IsTrue (of) ? "True" : "False");
  if (cJSON_IsNull (of))
    return g_strdup ("None");
  if (is_whole (of))
    return g_strdup_printf ("%.0f", of->valuedouble + 0.0);
  if (python_is_kind (of, PYTHON_FLOAT) && isfinite (of->valuedouble))
    return text_of_float (of->valuedouble);
  return python_is_text (of) ? g_strdup (of->valuestring) : NULL;
}

/* "<8.2f": how a value is written. */
typedef struct {
  char fill, align, kind; /* 0: none is said */
  bool has_sign, has_commas;
  guint width;
  int digits; /* -1: none are said */
} Form;

static bool
is_align (char c)
{
  return c == '<' || c == '>' || c == '^';
}

/* False: it is another one than those that are known here. */
static bool
read_form (const char *text, Form *ret)
{
  *ret = (Form) { .fill = ' ', .digits = -1 };
  if (*text && is_align (text[1])) {
    ret->fill = *text;
    ret->align = text[1];
    text += 2;
  } else if (is_align (*text))
    ret->align = *text++;
  ret->has_sign = *text == '+';
  text += ret->has_sign;
  if (*text == '0' && !ret->align) {
    ret->fill = '0';
    ret->align = '=';
  }
  char *end;
  ret->width = (guint) MIN (strtoul (g_ascii_isdigit (*text) ? text : "0", &end, 10), MAX_WIDTH + 1);
  text += strspn (text, G_CSET_DIGITS);
  ret->has_commas = *text == ',';
  text += ret->has_commas;
  if (*text == '.' && g_ascii_isdigit (text[1])) {
    ret->digits = (int) MIN (strtoul (text + 1, &end, 10), 30);
    text = end;
  }
  ret->kind = *text;
  return (*text == '\0' || (strchr ("dsfeg%x", *text) && text[1] == '\0')) && ret->width <= MAX_WIDTH
      && *text != 'g' && *text != 'x';
}

/* A comma before each three digits in front of the point. */
static void
add_commas (GString *text)
{
  gssize at = (gssize) strcspn (text->str, ".e%");
  for (at -= 3; at > (*text->str == '-'); at -= 3)
    g_string_insert_c (text, at, ',');
}

/* A number or a text without its width; NULL: it is not known. */
static char *
plain_text (const cJSON *of, const Form *form)
{
  bool is_number = cJSON_IsNumber (of), is_fixed = form->kind && strchr ("fe%", form->kind);
  if (cJSON_IsNull (of) || (!form->kind && cJSON_IsBool (of)))
    return form->width == 0 && form->digits < 0 && !form->align && !form->has_commas && !form->has_sign
        ? python_written (of)
        : NULL;
  if (is_number && is_fixed) {
    char number[400], format[] = "%.00f";
    const int digits = form->digits < 0 ? 6 : form->digits;
    format[2] = (char) ('0' + digits / 10);
    format[3] = (char) ('0' + digits % 10);
    format[4] = form->kind == 'e' ? 'e' : 'f';
    g_ascii_formatd (number, sizeof number, format, of->valuedouble * (form->kind == '%' ? 100 : 1));
    return g_strconcat (number, form->kind == '%' ? "%" : "", NULL);
  }
  bool is_fit = is_number ? form->kind != 's' && form->digits < 0 && (form->kind != 'd' || is_whole (of))
                          : python_is_text (of) && form->kind != 'd' && !is_fixed && !form->has_commas
          && !form->has_sign && form->align != '=' && g_str_is_ascii (of->valuestring);
  char *text = is_fit ? python_written (of) : NULL;
  if (text && !is_number && form->digits >= 0 && strlen (text) > (gsize) form->digits)
    text[form->digits] = '\0';
  return text;
}

char *
python_formatted (const cJSON *of, const char *format)
{
  Form form;
  if (*format == '\0')
    return python_written (of);
  g_autofree char *plain = read_form (format, &form) ? plain_text (of, &form) : NULL;
  if (!plain)
    return NULL;
  GString *text = g_string_new (plain);
  if (form.has_commas && form.align == '=')
    return g_string_free (text, TRUE), NULL; /* zeros are in threes, too */
  if (form.has_commas)
    add_commas (text);
  if (form.has_sign && *text->str != '-')
    g_string_prepend_c (text, '+');
  bool has_sign = *text->str == '-' || (form.has_sign && *text->str == '+');
  char align = form.align ? form.align : cJSON_IsNumber (of) ? '>' : '<';
  for (guint n = 0; text->len < form.width; n++)
    g_string_insert_c (text,
                       align == '='                                       ? has_sign
                           : align == '<' || (align == '^' && n % 2 == 0) ? (gssize) text->len
                                                                          : 0,
                       form.fill);
  return g_string_free (text, FALSE);
}

/* "%s-%03d" % (a, b): what each mark stands for. */
cJSON *
python_percent (const char *text, const cJSON *of)
{
  bool is_tuple = python_is_kind (of, PYTHON_TUPLE),
       is_known = of && !cJSON_IsObject (of) && (is_tuple || !cJSON_IsArray (of));
  const cJSON *next = is_tuple ? of->child : of;
  GString *out = g_string_new (NULL);
  while (*text && is_known) {
    gsize n = strcspn (text, "%");
    g_string_append_len (out, text, (gssize) n);
    text += n;
    if (*text == '%' && text[1] == '%') {
      g_string_append_c (out, '%');
      text += 2;
    } else if (*text == '%') {
      gsize n_form = strspn (text + 1, G_CSET_DIGITS ".");
      const char kind = text[1 + n_form];
      bool is_text = kind == 's';
      g_autofree char *form = g_strdup_printf ("%.*s%c", (int) n_form, text + 1, is_text ? '\0' : kind),
                      *whole = is_text && n_form == 0 && next ? python_written (next) : NULL;
      if (!whole && kind && strchr ("dfe", kind) && cJSON_IsNumber (next) && (kind != 'd' || is_whole (next)))
        whole = python_formatted (next, form);
      is_known = whole;
      g_string_append (out, whole ? whole : "");
      next = is_tuple && next ? next->next : NULL;
      text += is_known ? 2 + n_form : 0;
    }
  }
  cJSON *made = is_known && !next ? cJSON_CreateString (out->str) : NULL;
  g_string_free (out, TRUE);
  return made;
}
