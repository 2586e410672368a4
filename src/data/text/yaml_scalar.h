/* data/text/yaml_scalar.h — what a plain scalar of YAML 1.1 is.
 *
 * The rules are those of PyYAML's resolver (yaml/resolver.py), which differ from the specification in that a
 * float needs a point, and its exponent a sign: 1e9 and 1.5e9 are text. */
#ifndef LS_DATA_TEXT_YAML_SCALAR_H
#define LS_DATA_TEXT_YAML_SCALAR_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* null, a boolean, a number or a string. */
cJSON *ls_yaml_scalar (const char *text);

/* The value of a scalar with a tag of YAML itself ("int", "float", "bool", "null"; any other is text). */
cJSON *ls_yaml_tagged (const char *type, const char *text);

#endif
