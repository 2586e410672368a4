#include "show/write_compare.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define NAME_WIDTH 28

/* "A" to "Z", then "27" */
static char *
column_name (guint i)
{
  return i < 26 ? g_strdup_printf ("%c", 'A' + (int) i) : g_strdup_printf ("%u", i + 1);
}

/* --- options --- */

static bool
is_same_in_all (LsResultFile *const *files, guint n, const char *name)
{
  for (guint i = 1; i < n; i++)
    if (g_strcmp0 (ls_result_option (files[i]->options, name), ls_result_option (files[0]->options, name))
        != 0)
      return false;
  return true;
}

static bool
has_text (const GPtrArray *names, const char *name)
{
  return g_ptr_array_find_with_equal_func ((GPtrArray *) names, name, g_str_equal, NULL);
}

GPtrArray *
ls_compare_options (LsResultFile *const *files, guint n)
{
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < n; i++)
    if (files[i]->options->len == 0)
      return names;
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < files[i]->options->len; k++) {
      const char *name = ((const LsResultOption *) g_ptr_array_index (files[i]->options, k))->name;
      if (!has_text (names, name) && !is_same_in_all (files, n, name))
        g_ptr_array_add (names, (gpointer) name);
    }
  return names;
}

static void
print_head (const char *title, guint n, int width, GString *out)
{
  g_string_append_printf (out, "\n%-*s", width + 2, title);
  for (guint i = 0; i < n; i++) {
    g_autofree char *column = column_name (i);
    g_string_append_printf (out, " %14s", column);
  }
  g_string_append_c (out, '\n');
}

void
ls_compare_options_print (LsResultFile *const *files, guint n, int width, GString *out)
{
  g_autoptr (GPtrArray) names = ls_compare_options (files, n);
  if (names->len > 0)
    print_head ("options that differ", n, width, out);
  for (guint k = 0; k < names->len; k++) {
    const char *name = g_ptr_array_index (names, k);
    g_string_append_printf (out, "  %-*s", width, name);
    for (guint i = 0; i < n; i++) {
      const char *value = ls_result_option (files[i]->options, name);
      g_string_append_printf (out, " %14s", value ? value : "-");
    }
    g_string_append_c (out, '\n');
  }
}

void
ls_compare_options_write (LsResultFile *const *files, guint n, LsJsonOut *w)
{
  g_autoptr (GPtrArray) names = ls_compare_options (files, n);
  ls_json_out_begin_array (w, "options");
  for (guint k = 0; k < names->len; k++) {
    const char *name = g_ptr_array_index (names, k);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", name);
    if (n > 2)
      ls_json_out_begin_array (w, "values");
    for (guint i = 0; i < n; i++)
      ls_json_out_string (w, n > 2 ? NULL : i == 0 ? "a" : "b", ls_result_option (files[i]->options, name));
    if (n > 2)
      ls_json_out_end_array (w);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

/* --- numbers --- */

/* NaN: the file lacks it. */
static double
number_of (const LsResultFile *file, int section, const char *name)
{
  for (guint i = 0; i < file->sections[section]->len; i++) {
    const LsResultNumber *number = &g_array_index (file->sections[section], LsResultNumber, i);
    if (strcmp (number->name, name) == 0)
      return number->value;
  }
  return NAN;
}

/* What any file has of a section, in the order in which it appears; char *, borrowed. */
static GPtrArray *
names_of (LsResultFile *const *files, guint n, int section)
{
  GPtrArray *names = g_ptr_array_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < files[i]->sections[section]->len; k++) {
      char *name = g_array_index (files[i]->sections[section], LsResultNumber, k).name;
      if (g_hash_table_add (seen, name))
        g_ptr_array_add (names, name);
    }
  return names;
}

static bool
says_something (LsResultFile *const *files, guint n, int section, const char *name)
{
  for (guint i = 0; i < n; i++) {
    double value = number_of (files[i], section, name);
    if (!isnan (value) && value != 0)
      return true;
  }
  return false;
}

static void
print_section (LsResultFile *const *files, guint n, int section, GString *out)
{
  g_autoptr (GPtrArray) names = names_of (files, n, section);
  bool has_head = false;
  for (guint k = 0; k < names->len; k++) {
    const char *name = g_ptr_array_index (names, k);
    if (!says_something (files, n, section, name))
      continue;
    if (!has_head)
      print_head (ls_compare_section_title (section), n, NAME_WIDTH, out);
    has_head = true;
    g_string_append_printf (out, "  %-*s", NAME_WIDTH, name);
    for (guint i = 0; i < n; i++)
      ls_compare_value_print (out, number_of (files[i], section, name), section);
    g_string_append_c (out, '\n');
  }
}

char *
ls_compare_many_to_text (LsResultFile *const *files, guint n)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < n; i++) {
    g_autofree char *column = column_name (i);
    ls_compare_file_print (out, column, files[i]);
  }
  ls_compare_options_print (files, n, NAME_WIDTH, out);
  for (int s = 0; s < LS_RESULT_LINKS; s++)
    print_section (files, n, s, out);
  return g_string_free (out, FALSE);
}

static void
write_section (LsResultFile *const *files, guint n, int section, LsJsonOut *w)
{
  g_autoptr (GPtrArray) names = names_of (files, n, section);
  ls_json_out_begin_array (w, ls_compare_section_key (section));
  for (guint k = 0; k < names->len; k++) {
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", g_ptr_array_index (names, k));
    ls_json_out_begin_array (w, "values");
    for (guint i = 0; i < n; i++)
      ls_json_out_double (w, NULL, number_of (files[i], section, g_ptr_array_index (names, k)));
    ls_json_out_end_array (w);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

char *
ls_compare_many_to_json (LsResultFile *const *files, guint n)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "compare");
  ls_json_out_begin_array (&w, "files");
  for (guint i = 0; i < n; i++)
    ls_json_out_string (&w, NULL, files[i]->path);
  ls_json_out_end_array (&w);
  ls_compare_options_write (files, n, &w);
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++)
    write_section (files, n, s, &w);
  return ls_json_out_close (&w);
}
