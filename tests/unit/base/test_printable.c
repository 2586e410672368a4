/* Pins: what of a stranger's text is shown, and by what the rest is replaced. */
#include "ls_test.h"

#include <string.h>

#include "base/printable.h"

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

LS_TEST_SUITE (LS_TEST (letters_of_all_scripts_stay), LS_TEST (what_drives_a_terminal_goes),
               LS_TEST (what_turns_or_hides_text_goes), LS_TEST (what_is_no_utf8_is_marked))
