/* data/shell/shell_scan.h — where a word of a shell script ends (private to launch/).
 *
 * Quotes, $(...), ${...}, $((...)), `...` and arrays =( ... ) belong to a word; what is nested deeper than
 * SHELL_MAX_NESTED is given up. */
#ifndef LS_DATA_LAUNCH_SHELL_SCAN_H
#define LS_DATA_LAUNCH_SHELL_SCAN_H

#include <stdbool.h>

#define SHELL_MAX_NESTED 32

/* Behind a word that begins at p; p itself: there is none. NULL: a quote or bracket of it is not closed. */
const char *shell_word_end (const char *p, const char *end);

/* Behind the bracket that closes what was opened before p; NULL: none does. */
const char *shell_group_end (const char *p, const char *end, char open, char close);
/* Behind the quote that closes what was opened before p; NULL: none does. */
const char *shell_quote_end (const char *p, const char *end, char quote);
/* Behind an expansion, p at its '$' or '`'; NULL: it is not closed. */
const char *shell_expansion_end (const char *p, const char *end);

/* Behind a "<path to data>" that stands for what a user is to fill in, p at its '<'; NULL: it is none. */
const char *shell_placeholder_end (const char *p, const char *end);
/* Behind a hole that begins at p. */
const char *shell_hole_end (const char *p, const char *end);

/* Behind a name of a variable that begins at p; p itself: there is none. */
const char *shell_name_end (const char *p, const char *end);
/* Of NAME=, NAME+= or NAME[...]=: behind the '='; NULL: the word assigns nothing. */
const char *shell_assignment_value (const char *p, const char *end);

#endif
