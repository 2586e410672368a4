/* show/markdown.h — a result as Markdown, for an issue or a paper: its JSON as tables.
 *
 * An object becomes a table of its members, a list of objects a table with a column for each member; an
 * object in a row has columns of its own. Units follow the names of members, as everywhere in our JSON: "_s"
 * seconds, "_ps" picoseconds, "bytes", fractions of 1 ("mfu", "_frac"), "_pct". What is null or empty is left
 * out, so are members that take no time, and how the simulation ran. What is deeper than the second level has
 * only the JSON; rows beyond LS_MARKDOWN_MAX_ROWS too, which the text says. */
#ifndef LS_SHOW_MARKDOWN_H
#define LS_SHOW_MARKDOWN_H

#include <glib.h>

#define LS_MARKDOWN_MAX_ROWS 60

/* command: that printed it, a block of code on top. json: an object as we write it. Newly allocated, ends in
 * a newline. */
char *ls_markdown_of_json (const char *json, const char *command);

#endif
