/* base/enum_name.h — the names that files have for the values of an enum.
 *
 * A room that has names for all values of an enum has them in a table by value, which readers and writers of
 * files take as it is. */
#ifndef LS_BASE_ENUM_NAME_H
#define LS_BASE_ENUM_NAME_H

#include <stddef.h>

typedef struct {
  const char *name; /* NULL ends the list; of several for a value the first is shown */
  int value;
} LsEnumName;

/* The name of a value, the first of several; NULL: it has none. */
static inline const char *
ls_enum_name (const LsEnumName *names, int value)
{
  while (names->name && names->value != value)
    names++;
  return names->name;
}

#endif
