/* data/text/yaml.h — a YAML file as a tree of cJSON: what a loader of YAML 1.1 (PyYAML, OmegaConf) makes of
 * it.
 *
 * - Plain scalars are resolved as PyYAML does (yaml.h): `yes` and `off` are booleans, `0o17` and
 *   `1e9` are text; quoted and block scalars always are. Whole numbers beyond 2^53 and infinities stay text.
 * - An alias is a copy of what its anchor names; `<<` merges mappings under the keys of their own.
 * - Tags that are not of YAML itself are kept as text: a scalar without a text is its tag
 *   ("!!python/name:torch.bfloat16"), a mapping has its tag as the member "!", a sequence becomes an object
 *   of "!" and "=".
 * - Keys are text as written. Of equal keys of a mapping the last holds, which is told.
 *
 * Refused, with the line: what is no YAML 1.1 in UTF-8, keys that are no scalars, more than one document,
 * more than LS_JSON_MAX_DEPTH levels or LS_YAML_MAX_NODES values, and aliases that repeat more than
 * LS_YAML_MAX_COPIED values or LS_YAML_MAX_COPIED_BYTES of text.
 */
#ifndef LS_DATA_TEXT_YAML_H
#define LS_DATA_TEXT_YAML_H

#include <cjson/cJSON.h>
#include <glib.h>

#include "base/diag.h"

#define LS_YAML_MAX_NODES        (1u << 20)
#define LS_YAML_MAX_COPIED       (1u << 16)
#define LS_YAML_MAX_COPIED_BYTES ((size_t) 4 << 20)
#define LS_YAML_TAG              "!"
#define LS_YAML_ITEMS            "="

/* The document of n bytes, which the caller frees with cJSON_Delete(); an empty one is null. name stands for
 * the path in diagnostics. notes (char *, owned by the array) takes what is told; NULL if nobody wants to
 * know. NULL: a diagnostic, LS_ERROR_INPUT. */
cJSON *ls_yaml_parse (const char *text, gsize n, const char *name, GPtrArray *notes, LsDiagList *diags);

/* --- what a plain scalar of YAML 1.1 is ---------------------------------------------------------- */

/* The rules are those of PyYAML's resolver (yaml/resolver.py), which differ from the specification in that a
 * float needs a point, and its exponent a sign: 1e9 and 1.5e9 are text. */

/* null, a boolean, a number or a string. */
cJSON *ls_yaml_scalar (const char *text);

#endif
