/* data/text/field_kinds.h — what a kind of field is: a row of data and functions for each (private to
 * field*.c). A new kind is a row more. */
#ifndef LS_DATA_TEXT_FIELD_KINDS_H
#define LS_DATA_TEXT_FIELD_KINDS_H

#include <lockstep/units.h>

#include "data/text/field.h"

/* What one read works on. */
typedef struct {
  const LsJsonDoc *doc;
  GPtrArray *notes; /* NULL: a file of ours */
  LsDiagList *diags;
} FieldReading;

/* What is being described. */
typedef struct {
  LsJsonOut *w;
  bool is_root;    /* the object is a file, not one within it                */
  bool is_partial; /* it extends another: nothing must be there, null is one */
} FieldSchema;

/* What a field is in memory; what is not compared with a blank is FIELD_OTHER. */
typedef enum {
  FIELD_OTHER,
  FIELD_FLAG,
  FIELD_CHOICE,
  FIELD_COUNT,
  FIELD_WHOLE,
  FIELD_MOMENT,
  FIELD_REAL
} FieldMemory;

typedef union {
  uint32_t count;
  uint64_t whole;
  LsTime time;
  double real;
} FieldNumber;

typedef bool FieldParse (const LsField *f, const char *text, FieldNumber *ret, const char **reterr_expected);
typedef bool FieldSet (const LsField *f, void *target, const char *text);
typedef bool FieldRead (const FieldReading *r, const LsField *f, const cJSON *node, void *target);
typedef bool FieldIsThere (const LsField *f, const void *target, const void *blank);
typedef void FieldWrite (const LsField *f, LsJsonOut *w, const char *key, const void *target,
                         const void *blank);
typedef void FieldDescribe (const FieldSchema *x, const LsField *f);

typedef struct {
  FieldMemory memory;
  FieldParse *parse;       /* of a number that may have a range; NULL: it is none        */
  double max;              /* that its type holds; 0: any                                */
  char *(*shown) (double); /* a limit of its range; NULL: it has no range                */
  bool has_unit;
  const char *unit;        /* it is written in; NULL: none                               */
  LsQuantity quantity;     /* whose pattern its texts have                               */
  FieldSet *set;           /* from text to memory; NULL: a number as it is, of others no text stands for it */
  FieldRead *read;         /* of JSON; NULL: as its text                                 */
  FieldIsThere *is_there;  /* whether there is something to write; NULL: always          */
  FieldWrite *write;       /* NULL: it is never written                                  */
  const char *types;       /* of JSON, "integer string"                                  */
  FieldDescribe *describe; /* what a schema says besides; NULL: the pattern of what has a unit */
  const char *expected;    /* NULL: what parse expects, or an object                     */
  const char *argument;    /* in the help; NULL: NAME                                    */
} FieldKind;

const FieldKind *field_kind (const LsField *f);
void field_clear_loaded (const LsField *f, void *target); /* of what has load */

FieldRead field_read_object, field_read_list, field_read_row, field_read_array, field_read_settings,
    field_read_sources, field_read_nothing;
FieldDescribe field_describe_string, field_describe_real, field_describe_count, field_describe_names,
    field_describe_list, field_describe_object, field_describe_settings, field_describe_sources,
    field_describe_ignored;

#endif
