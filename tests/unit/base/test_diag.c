/* Pins what a user is told: diagnostics, suggestions of names, and what of a stranger's text is shown. */
#include "ls_test.h"

#include <string.h>

#include "base/diag.h"
#include "base/printable.h"
#include "base/suggest.h"
#include <lockstep/error.h>

/* Pins: the text of a diagnostic, byte for byte, and the exit code that each error stands for, which scripts
 * rely on. */

#define CHECK_FORMAT(list, text)                                                                             \
  do {                                                                                                       \
    g_autofree char *shown_ = ls_diag_list_format (list);                                                    \
    LS_CHECK_STR (shown_, text);                                                                             \
  } while (0)

static void
the_documented_example (void)
{
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  ls_diag_add (list, LS_ERROR_INPUT, "a.json", 7, 34, "/link/bandwidth",
               "{ \"kind\": \"ib\", \"bandwidth\":    400 }",
               "write \"400Gbit/s\" for bits or \"400GB/s\" for bytes", "expected %s; got %d", "a rate", 400);
  CHECK_FORMAT (list,
                "a.json:7:34: error: /link/bandwidth: expected a rate; got 400\n"
                "    7 | { \"kind\": \"ib\", \"bandwidth\":    400 }\n"
                "      |                                  ^\n"
                "note: write \"400Gbit/s\" for bits or \"400GB/s\" for bytes\n");
}

static void
unknown_parts_are_left_out (void)
{
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  CHECK_FORMAT (list, "");
  ls_diag_add (list, LS_ERROR_USAGE, NULL, 0, 0, NULL, NULL, NULL, "no such flag");
  ls_diag_add (list, LS_ERROR_INPUT, "b.json", 0, 0, "", "never shown", NULL, "is a directory");
  ls_diag_add (list, LS_ERROR_INPUT, "c.json", 1, 2, "/x", NULL, NULL, "bad");
  CHECK_FORMAT (list,
                "error: no such flag\n"
                "b.json: error: is a directory\n"
                "c.json:1:2: error: /x: bad\n");
}

static void
carets_survive_tabs_and_wide_characters (void)
{
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  ls_diag_add (list, LS_ERROR_INPUT, "t", 123456, 5, NULL, "\t\u00e9\t\"x", NULL, "m");
  CHECK_FORMAT (list,
                "t:123456:5: error: m\n"
                "123456 | \t\u00e9\t\"x\n"
                "       | \t \t ^\n");
}

static void
long_lines_are_cut_around_the_caret (void)
{
  g_autofree char *line = g_strnfill (5000, 'a');
  line[3000] = 'B';
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  ls_diag_add (list, LS_ERROR_INPUT, "long", 1, 3001, NULL, line, NULL, "m");
  g_autofree char *text = ls_diag_list_format (list);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  LS_CHECK_INT (strlen (lines[1]), <, 120);
  LS_CHECK_INT (strchr (lines[1], 'B') - lines[1], ==, strchr (lines[2], '^') - lines[2]);
}

static void
control_characters_do_not_reach_the_terminal (void)
{
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  ls_diag_add (list, LS_ERROR_INPUT, "f", 1, 1, NULL, "\033[31m\377", NULL, "got \"%s\"", "\033]0;");
  CHECK_FORMAT (list, "f:1:1: error: got \"?]0;\"\n    1 | ?[31m\xef\xbf\xbd\n      | ^\n");
}

static void
only_twenty_are_shown (void)
{
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  for (int i = 0; i < 27; i++)
    ls_diag_add (list, LS_ERROR_INPUT, NULL, 0, 0, NULL, NULL, NULL, "number %d", i);
  LS_CHECK_INT (ls_diag_list_n (list), ==, 27);
  g_autofree char *text = ls_diag_list_format (list);
  LS_CHECK (strstr (text, "number 19\n... and 7 more\n") != NULL);
  LS_CHECK (strstr (text, "number 20") == NULL);
}

/* 100 GB if each took the line along, or only its time. */
static void
what_is_not_shown_costs_nothing (void)
{
  g_autofree char *line = g_strnfill (1000000, 'a');
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  for (int i = 0; i < 100000; i++)
    ls_diag_add (list, LS_ERROR_INPUT, "long", 1, 1, NULL, line, NULL, "got \"%s\"", line);
  g_autofree char *text = ls_diag_list_format (list);
  LS_CHECK_INT (strlen (text), <, 20 * 1200);
  LS_CHECK (strstr (text, "aaa...\n") != NULL);
  LS_CHECK (g_str_has_suffix (text, "... and 99980 more\n"));
}

static void
an_error_carries_everything (void)
{
  g_autoptr (LsDiagList) list = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_diag_list_to_error (list, &error));
  LS_CHECK_NO_ERROR (error);
  ls_diag_add (list, LS_ERROR_CONFLICT, NULL, 0, 0, NULL, NULL, NULL, "one");
  ls_diag_add (list, LS_ERROR_INPUT, NULL, 0, 0, NULL, NULL, NULL, "two");
  LS_CHECK (!ls_diag_list_to_error (list, NULL));
  LS_CHECK (!ls_diag_list_to_error (list, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  LS_CHECK_STR (error->message, "error: one\nerror: two");
}

static int
exit_code_of (LsErrorCode code)
{
  g_autoptr (GError) error = g_error_new_literal (LS_ERROR, (gint) code, "x");
  return ls_error_exit_code (error);
}

static void
exit_codes_are_as_documented (void)
{
  LS_CHECK_INT (ls_error_exit_code (NULL), ==, 0);
  LS_CHECK_INT (exit_code_of (LS_ERROR_FAILED), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_IO), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_LIMIT), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_DEADLOCK), ==, 1);
  LS_CHECK_INT (exit_code_of (LS_ERROR_USAGE), ==, 2);
  LS_CHECK_INT (exit_code_of (LS_ERROR_INPUT), ==, 3);
  LS_CHECK_INT (exit_code_of (LS_ERROR_CONFLICT), ==, 4);
  LS_CHECK_INT (exit_code_of (LS_ERROR_UNSUPPORTED), ==, 4);
  LS_CHECK_INT (exit_code_of (LS_ERROR_NO_FIT), ==, 4);
  LS_CHECK_INT (exit_code_of (LS_ERROR_TOLERANCE), ==, 5);
}

static void
errors_of_other_domains_are_failures (void)
{
  g_autoptr (GError) error = g_error_new_literal (g_quark_from_static_string ("other"), 3, "x");
  LS_CHECK_INT (ls_error_exit_code (error), ==, 1);
}

static void
a_list_may_only_count (void)
{
  g_autoptr (LsDiagList) list = ls_diag_list_new_counting ();
  LS_CHECK (ls_diag_list_to_error (list, NULL));
  for (guint i = 0; i < 3; i++)
    ls_diag_add (list, LS_ERROR_INPUT, "f", 1, 1, NULL, NULL, NULL, "mistake %u", i);
  LS_CHECK_INT (ls_diag_list_n (list), ==, 3);
}

/* Pins: the distance, and which mistakes get a suggestion and which none. */

static void
distances (void)
{
  LS_CHECK_INT (ls_edit_distance ("", ""), ==, 0);
  LS_CHECK_INT (ls_edit_distance ("", "abc"), ==, 3);
  LS_CHECK_INT (ls_edit_distance ("abc", ""), ==, 3);
  LS_CHECK_INT (ls_edit_distance ("kitten", "sitting"), ==, 3);
  LS_CHECK_INT (ls_edit_distance ("hidden", "hiddne"), ==, 1); /* one swap */
  LS_CHECK_INT (ls_edit_distance ("pt", "tp"), ==, 1);
  LS_CHECK_INT (ls_edit_distance ("HBM", "hbm"), ==, 0);
  LS_CHECK_INT (ls_edit_distance ("ca", "abc"), ==, 3); /* restricted: no edit inside a swap */
}

/* "3" is not the beginning of "3.6". */
static void
numbers_are_whole (void)
{
  static const char *const words[]
      = { "gpt-3.6b", "gpt-310.1b", "gpt3-175b", "llama3.1-8b", "llama-7b", NULL };
  LS_CHECK_STR (ls_suggest ("gpt-3", words), "gpt3-175b");
  LS_CHECK_STR (ls_suggest ("GPT_3", words), "gpt3-175b");
  LS_CHECK_STR (ls_suggest ("gpt-31", words), "gpt-310.1b"); /* none has it: as any beginning */
  LS_CHECK_STR (ls_suggest ("llama3", words), "llama3.1-8b");
  LS_CHECK_STR (ls_suggest ("llama7", words), "llama-7b");
}

static void
near_words_are_suggested (void)
{
  static const char *const words[] = { "hidden", "heads", "kv_heads", "layers", "tp", NULL };
  LS_CHECK_STR (ls_suggest ("hiden", words), "hidden");
  LS_CHECK_STR (ls_suggest ("haeds", words), "heads");
  LS_CHECK_STR (ls_suggest ("kvheads", words), "kv_heads");
  LS_CHECK_STR (ls_suggest ("tpp", words), "tp");
  LS_CHECK_STR (ls_suggest ("lay", words), "layers"); /* a beginning */
}

static void
a_beginning_may_be_mistyped_too (void)
{
  static const char *const words[]
      = { "mixtral-8x22b", "mixtral-8x7b", "llama3.1-8b", "fsdp1", "ddp", "gpt3-175b", NULL };
  LS_CHECK_STR (ls_suggest ("mixtrl", words), "mixtral-8x7b");
  LS_CHECK_STR (ls_suggest ("lama", words), "llama3.1-8b");
  LS_CHECK_STR (ls_suggest ("fdsp", words), "fsdp1");
  LS_CHECK_STR (ls_suggest ("gtp", words), NULL); /* three letters tell nothing */
  LS_CHECK_STR (ls_suggest ("banana", words), NULL);
}

static void
a_word_is_near_what_continues_it (void)
{
  static const char *const words[] = { "micro", "micro_batch", "tp", "dgx-h100", NULL };
  LS_CHECK_STR (ls_suggest ("micro_batch_size", words), "micro_batch");
  LS_CHECK_STR (ls_suggest ("dgx-h100-sxm-80g", words), "dgx-h100");
  LS_CHECK_STR (ls_suggest ("microbatchsizes", words), NULL);
  LS_CHECK_STR (ls_suggest ("tp_something", words), NULL); /* too short to be told */
}

static void
far_words_are_not (void)
{
  static const char *const words[] = { "hidden", "tp", NULL };
  LS_CHECK_STR (ls_suggest ("banana", words), NULL);
  LS_CHECK_STR (ls_suggest ("", words), NULL);
  LS_CHECK_STR (ls_suggest ("xy", words), NULL);
  g_autofree char *huge = g_strnfill (1 << 20, 'h');
  LS_CHECK_STR (ls_suggest (huge, words), NULL);
}

/* "dgx-h100" is one change away from "dgx-a100" and the other word four, but who
 * typed the beginning of a name meant that name. */
static void
a_beginning_beats_what_is_nearer (void)
{
  static const char *const words[] = { "dgx-h100", "dgx-a100-80g-ib", "dgx-a100-80g", NULL };
  LS_CHECK_STR (ls_suggest ("dgx-a100", words), "dgx-a100-80g");
  LS_CHECK_STR (ls_suggest ("dgx-a10-80g", words), "dgx-a100-80g");
}

static void
a_word_between_dashes_is_a_beginning_too (void)
{
  static const char *const words[] = { "h100-80g-ib800", "xla-fsdp", "fsdp1", "dgx-h100", NULL };
  LS_CHECK_STR (ls_suggest ("h100", words), "dgx-h100");
  LS_CHECK_STR (ls_suggest ("fsdp", words), "fsdp1");
}

static void
the_first_of_equals_wins (void)
{
  static const char *const words[] = { "a100-40g", "a100-80g", NULL };
  LS_CHECK_STR (ls_suggest ("a100-60g", words), "a100-40g");
}

/* Words that have values: what stands before the colon or the equals sign is compared, in each item of a list. */
static void
words_with_values_are_suggested (void)
{
  static const char *const words[] = { "cyclic", "random:SEED", "rank=N:FACTOR", "sigma=X", NULL };
  static const struct {
    const char *typed, *expected;
  } cases[] = {
    { "cyclc", "; did you mean \"cyclic\"?" },
    { "radom:7", "; did you mean \"random:SEED\"?" },
    { "random", "; did you mean \"random:SEED\"?" }, /* its value is missing */
    { "random:x", "" },                              /* what is wrong is the value */
    { "cyclic", "" },
    { "rank=1:2,sgma=3", "; did you mean \"sigma=X\"?" },
    { "node[0-3]", "" },
    { "", "" },
    { ",,", "" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *said = ls_did_you_mean (cases[i].typed, words);
    LS_CHECK_STR (said, cases[i].expected);
  }
}

/* Pins: what of a stranger's text is shown, and by what the rest is replaced. */

static void
check (const char *text, const char *expected)
{
  g_autofree char *shown = ls_printable (text);
  LS_CHECK_STR (shown, expected);
  if (g_utf8_validate (text, -1, NULL))
    LS_CHECK_INT (g_utf8_strlen (shown, -1), ==, g_utf8_strlen (text, -1));
}

static void
letters_of_all_scripts_stay (void)
{
  check ("", "");
  check ("a b\tc", "a b\tc");
  check ("\u00e9\u4e2d\u05d0 \U0001f600", "\u00e9\u4e2d\u05d0 \U0001f600");
  LS_CHECK (ls_printable (NULL) == NULL);
}

static void
what_drives_a_terminal_goes (void)
{
  check ("\x1b[31mred\x1b]0;t\a", "?[31mred?]0;t?");
  check ("a\x7f"
         "b\xc2\x9b"
         "31m",
         "a?b?31m"); /* DEL, and CSI as one code point */
  check ("a\nb\r\nc\u2028"
         "d\xc2\x85",
         "a b  c d ");
}

static void
what_turns_or_hides_text_goes (void)
{
  check ("a\u202e"
         "b\u2066"
         "c\u200b"
         "d\ufeff"
         "e\U000e0041",
         "a?b?c?d?e?");
}

static void
what_is_no_utf8_is_marked (void)
{
  check ("a\xff"
         "b\x1b",
         "a\ufffd"
         "b?");
}

static void
what_fails_says_why (void)
{
  g_autoptr (GError) error = NULL, other = NULL;
  LS_CHECK (!ls_fail (&error, LS_ERROR_UNSUPPORTED, "%s: %d layers", "a.toml", 3));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_UNSUPPORTED));
  LS_CHECK_STR (error->message, "a.toml: 3 layers");
  LS_CHECK (ls_fail_null (&other, LS_ERROR_FAILED, "no") == NULL);
  LS_CHECK (g_error_matches (other, LS_ERROR, LS_ERROR_FAILED));
  LS_CHECK (ls_fail_null (NULL, LS_ERROR_FAILED, "no") == NULL);
}

static void
a_message_has_a_first_line (void)
{
  const struct {
    const char *message, *expected;
  } rows[] = {
    { "error: no\nnote: more", "no" },
    { "a.toml:1:2: error: no", "no" },
    { "an error: no", "no" },
    { "terror: no", "terror: no" },
    { "plain", "plain" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *line = ls_first_line (rows[i].message);
    LS_CHECK_STR (line, rows[i].expected);
  }
}

static void
notes_are_in_order (void)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  ls_note (notes, "%d of %d", 1, 2);
  ls_note (notes, "last");
  LS_CHECK_INT (notes->len, ==, 2);
  LS_CHECK_STR (g_ptr_array_index (notes, 0), "1 of 2");
  LS_CHECK_STR (g_ptr_array_index (notes, 1), "last");
}

LS_TEST_SUITE (LS_TEST (what_fails_says_why), LS_TEST (a_message_has_a_first_line),
               LS_TEST (notes_are_in_order), LS_TEST (the_documented_example),
               LS_TEST (unknown_parts_are_left_out), LS_TEST (carets_survive_tabs_and_wide_characters),
               LS_TEST (long_lines_are_cut_around_the_caret),
               LS_TEST (control_characters_do_not_reach_the_terminal), LS_TEST (only_twenty_are_shown),
               LS_TEST (what_is_not_shown_costs_nothing), LS_TEST (an_error_carries_everything),
               LS_TEST (exit_codes_are_as_documented), LS_TEST (errors_of_other_domains_are_failures),
               LS_TEST (a_list_may_only_count), LS_TEST (distances), LS_TEST (numbers_are_whole),
               LS_TEST (near_words_are_suggested), LS_TEST (far_words_are_not),
               LS_TEST (a_beginning_beats_what_is_nearer), LS_TEST (a_word_between_dashes_is_a_beginning_too),
               LS_TEST (the_first_of_equals_wins), LS_TEST (a_beginning_may_be_mistyped_too),
               LS_TEST (a_word_is_near_what_continues_it), LS_TEST (words_with_values_are_suggested),
               LS_TEST (letters_of_all_scripts_stay), LS_TEST (what_drives_a_terminal_goes),
               LS_TEST (what_turns_or_hides_text_goes), LS_TEST (what_is_no_utf8_is_marked))
