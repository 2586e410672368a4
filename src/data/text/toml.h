/* data/text/toml.h — a text of TOML 1.0.0 (toml.io/en/v1.0.0) as a tree of cJSON.
 *
 * Strict: what the standard calls invalid is refused, with its line. Tables are objects, dates and times are
 * texts as they stand, whole numbers that a double does not hold exactly are cJSON_Raw with their digits.
 * inf and nan are numbers. Refused are texts of more than LS_TOML_MAX_ITEMS values and tables, or nested
 * deeper than LS_JSON_MAX_DEPTH, before memory is taken for them; and NUL, which "\u0000" can write. */
#ifndef LS_DATA_TEXT_TOML_H
#define LS_DATA_TEXT_TOML_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/diag.h"

#define LS_TOML_MAX_ITEMS 100000

/* n bytes; name stands for the path in diagnostics. The caller frees it with cJSON_Delete(); NULL and a
 * diagnostic (LS_ERROR_INPUT) if it is not TOML. */
cJSON *ls_toml_parse (const char *text, size_t n, const char *name, LsDiagList *diags);

#endif
