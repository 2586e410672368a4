/* data/text/toml_parts.h — what the parts of the reader of TOML share (private to text/). */
#ifndef LS_DATA_TEXT_TOML_PARTS_H
#define LS_DATA_TEXT_TOML_PARTS_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
  const char *text; /* NUL-terminated, valid UTF-8 */
  const char *at;
  char *why;    /* what is wrong, newly allocated; NULL: nothing is */
  size_t fault; /* the byte where */
  unsigned n_items;
} TomlScan;

/* The first fault counts. Returns false. */
bool toml_fail (TomlScan *s, const char *where, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* Spaces and tabs. */
void toml_skip_blanks (TomlScan *s);
/* Also ends of lines and comments. */
bool toml_skip_lines (TomlScan *s);
/* The rest of a line: blanks, a comment, its end or that of the text. */
bool toml_end_line (TomlScan *s);

/* One part of a key, newly allocated; NULL: none is here. */
char *toml_key_part (TomlScan *s);

/* A string, number, date, time, true or false. NULL: none is here. */
cJSON *toml_scalar (TomlScan *s);

/* NULL: there are too many. Takes item. */
cJSON *toml_count (TomlScan *s, cJSON *item);

#endif
