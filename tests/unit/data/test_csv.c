/* Pins how tables are read and where mistakes in them are said to be. */
#include "ls_test.h"

#include <string.h>

#include "data/text/csv.h"

static void
cells_are_found_by_row_and_column_name (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "id,gpus\na,8\r\n\nb,16", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  LS_CHECK_INT (ls_csv_n_rows (csv), ==, 2);
  LS_CHECK_INT (ls_csv_column (csv, "gpus"), ==, 1);
  LS_CHECK_INT (ls_csv_column (csv, "nodes"), ==, -1);
  LS_CHECK_STR (ls_csv_cell (csv, 0, 1), "8");
  LS_CHECK_STR (ls_csv_cell (csv, 1, 0), "b");
}

static void
quoted_cells_hold_commas_quotes_and_lines (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "a,b\n\"x, \"\"y\"\"\",\"1\n2\"\n,\n", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  LS_CHECK_STR (ls_csv_cell (csv, 0, 0), "x, \"y\"");
  LS_CHECK_STR (ls_csv_cell (csv, 0, 1), "1 2"); /* base/printable.h */
  LS_CHECK_STR (ls_csv_cell (csv, 1, 1), "");
}

/* The table is refused and its first diagnostic begins so. */
static void
check_refused (const char *text, const char *expected_start)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", text, -1, diags);
  LS_CHECK (csv == NULL);
  g_autofree char *got = ls_diag_list_format (diags);
  ls_check_impl (g_str_has_prefix (got, expected_start), __FILE__, __LINE__, "\"%s\" begins with \"%s\"", got,
                 expected_start);
}

static void
broken_tables_are_refused_with_their_place (void)
{
  check_refused ("", "t.csv:1:1: error: expected a header row; got an empty file");
  check_refused ("\n\n", "t.csv:1:1: error: expected a header row; got an empty file");
  check_refused ("a,b\n1\n", "t.csv:2:1: error: expected 2 cells as in the header; got 1");
  check_refused ("a,b\n1,2\n1,2,3\n", "t.csv:3:1: error: expected 2 cells as in the header; got 3");
  check_refused ("a,b,a\n", "t.csv:1:5: error: duplicate column \"a\"");
  check_refused ("a,b\n1,\"2\n", "t.csv:2:3: error: expected a closing quote; got the end of the file");
}

/* Above the header, between rows and at the end; in a cell '#' is a letter, and what begins with it is written
 * in quotes. Places are those of the file. */
static void
lines_that_begin_with_a_hash_are_comments (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "# a, b\r\n#\nid,n\n#x,1\ny,#2\n\"#z\",3\n# end", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  LS_CHECK_INT (ls_csv_n_rows (csv), ==, 2);
  LS_CHECK_STR (ls_csv_cell (csv, 0, 1), "#2");
  LS_CHECK_STR (ls_csv_cell (csv, 1, 0), "#z");
  g_autoptr (GString) out = g_string_new (NULL);
  ls_csv_append (out, "#z");
  LS_CHECK_STR (out->str, "\"#z\"");
  check_refused ("# only a comment", "t.csv:1:1: error: expected a header row; got an empty file");
  check_refused ("# semicolons\na;b;c\n", "t.csv:2:2: error: expected commas between cells; got semicolons");
  check_refused ("# short\na,b\n1\n", "t.csv:3:1: error: expected 2 cells as in the header; got 1");
}

static void
columns_of_a_place_count_code_points (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "id,n\n\xc3\xa9\xc3\xa9,x\n", -1, diags);
  if (!LS_CHECK (csv != NULL))
    return;
  ls_csv_error (csv, 0, 1, diags, "expected a number");
  g_autofree char *got = ls_diag_list_format (diags);
  LS_CHECK (strstr (got, "t.csv:2:4: error: /\xc3\xa9\xc3\xa9/n: expected a number") == got);
}

/* A JSON file in one line is such a header; 10^10 comparisons if each name met each. */
static void
a_very_wide_header_is_refused_at_once (void)
{
  g_autoptr (GString) text = g_string_new ("k");
  for (int i = 1; i < 200000; i++)
    g_string_append (text, ",k");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", text->str, -1, diags);
  LS_CHECK (csv == NULL);
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 199999);
}

static void
cells_are_printable (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse ("t.csv", "id\n\"a\x1b[1m\nb\u202e\"\n", -1, diags);
  if (LS_CHECK (csv != NULL))
    LS_CHECK_STR (ls_csv_cell (csv, 0, 0), "a?[1m b?");
}

static void
a_missing_file_is_an_input_error (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_load ("no/such/file.csv", diags);
  g_autoptr (GError) error = NULL;
  LS_CHECK (csv == NULL);
  LS_CHECK (!ls_diag_list_to_error (diags, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
}

LS_TEST_SUITE (LS_TEST (cells_are_found_by_row_and_column_name),
               LS_TEST (quoted_cells_hold_commas_quotes_and_lines),
               LS_TEST (broken_tables_are_refused_with_their_place),
               LS_TEST (lines_that_begin_with_a_hash_are_comments),
               LS_TEST (columns_of_a_place_count_code_points),
               LS_TEST (a_very_wide_header_is_refused_at_once), LS_TEST (cells_are_printable),
               LS_TEST (a_missing_file_is_an_input_error))
