/* data/text/field.h — one table per kind of file says what a key means. It drives the
 * reading of JSON, range checks, "did you mean", command-line flags and the
 * tables of the manual. What keys mean is in data/keys.txt.
 *
 *     static const LsField link_fields[] = {
 *       { "bandwidth", LS_FIELD_RATE, offsetof (LsLinkSpec, bandwidth_bytes_per_s),
 *         .required = true, .above = true, .meaning = "one direction of one link" },
 *       { NULL } };
 *
 * Ranges are in base units (ps, bytes, bytes/s, FLOP/s) and inclusive unless
 * `above`. Every key that is wrong is reported, not only the first. */
#ifndef LS_DATA_TEXT_FIELD_H
#define LS_DATA_TEXT_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/enum_name.h"
#include "data/text/json_doc.h"
#include "data/text/json_out.h"

typedef enum {
  LS_FIELD_STRING,       /* char *, freed when replaced; not empty if required    */
  LS_FIELD_BOOL,         /* bool; as a flag 0, 1, true, false                     */
  LS_FIELD_UINT,         /* uint32_t; exact integers only, also as text with a letter: "8k" */
  LS_FIELD_UINT64,       /* uint64_t below 2^53, likewise                         */
  LS_FIELD_DOUBLE,       /* double                                                */
  LS_FIELD_TIME,         /* LsTime "2us"                                          */
  LS_FIELD_BYTES,        /* uint64_t "80GiB"                                      */
  LS_FIELD_BYTES_DOUBLE, /* double "4MiB"                                         */
  LS_FIELD_RATE,         /* double, bytes/s "25GB/s"                              */
  LS_FIELD_FLOPS,        /* double, FLOP/s "312TFLOP/s"                           */
  LS_FIELD_ENUM,         /* int or an enum; names                                 */
  LS_FIELD_UINT_LIST,    /* uint32_t *, length at n_offset; as a flag "2,3,3"; with
                            runs as text also "2,3x2", or a word of names         */
  LS_FIELD_ROW,          /* uint32_t[n_row]; a list of 1 to n_row whole numbers   */
  LS_FIELD_ARRAY,        /* GArray * of element_size; a list of fields' objects, or
                            of values if the key of fields is ""                  */
  LS_FIELD_CUSTOM,       /* string or number; parse, expected; with load char *, NULL: its own */
  LS_FIELD_OBJECT,       /* fields, whose offsets count from offset               */
  LS_FIELD_SETTINGS,     /* char **, "key=value", NULL: an object of values; its keys are
                            those of fields, of a struct of element_size, or any  */
  LS_FIELD_SOURCES,      /* an object of free strings, for readers; not stored    */
  LS_FIELD_IGNORED,      /* anything; known to make no difference here            */
} LsFieldKind;

/* A value that names a file, or says what one would, and is loaded when it is set. */
typedef struct {
  const char *const *own; /* values that load nothing; the first is what holds without any */
  gpointer (*load) (const char *text, LsDiagList *diags); /* NULL: diagnostics */
  GDestroyNotify unref;                                   /* of what was loaded */
  size_t offset;                                          /* where it is: gpointer, NULL with none */
  const char *prefix;                                     /* that values which name a file begin with */
} LsFieldLoad;

typedef struct LsField LsField;
struct LsField {
  const char *key; /* NULL ends the table; "micro_batch" is the flag --micro-batch */
  LsFieldKind kind;
  size_t offset;
  bool required;
  double min;
  double max; /* 0: no limit of its own */
  bool above; /* the value must exceed min, not just reach it */
  const LsEnumName *names;
  const LsField *fields;
  const char *table; /* of OBJECT: the kind of file whose keys these are, documented there; of the end of a
                        table: what data/keys.txt calls it */
  size_t n_offset;
  bool runs;          /* of UINT_LIST: NxM is N, M times; a text in JSON too */
  size_t word_offset; /* of UINT_LIST with names: int, the word's value; 0 with a list */
  uint32_t n_row;
  size_t element_size;
  const void *blank;                             /* of ARRAY: an element without keys; NULL: zeros */
  bool lines;                                    /* of ARRAY, in writing: an element per line      */
  bool (*parse) (const char *text, void *place); /* place: at offset; false leaves it alone           */
  bool (*add) (char *word, GArray *list);        /* of CUSTOM, instead of parse and clear: a GArray * of
                                                    element_size, by words as of ls_list_parse()      */
  char *(*format) (const void *target);          /* of CUSTOM, for writing; the text that parse reads */
  const LsFieldLoad *load;                       /* of CUSTOM, instead of parse, format and clear   */
  char *(*why) (const char *text); /* of CUSTOM: what is wrong in the file that it names, or NULL */
  void (*clear) (void *target);    /* of CUSTOM: frees what parse stored, if it stores what is to be freed */
  const char *expected;            /* of CUSTOM and ROW: "0 to 3 or N@group"; of IGNORED: its type */
  const char *const
      *words; /* of CUSTOM: those of its values, "random:SEED", for "did you mean"; NULL: none */
  const char *default_text; /* what happens without the key; NULL: data/keys.txt says it */
  const char *meaning;      /* likewise                                                   */
  bool file_only;           /* not a flag                                   */
  const char *topic;        /* of a knob of a job: the group of the help that shows it */
  const char *argument;     /* of a knob: what the help shows for its value; NULL: as its kind has it; of a
                               cluster's key: what to type where its file leaves it out; NULL: no matter */
  bool repeated;            /* of a knob: its flag may be given several times, and all count */
  bool usual;               /* of a knob: the short help shows it too       */
  bool set_only;            /* of a knob: no flag of its own, --set alone; what it says is the program's */
  bool of_program;          /* of a knob with a flag: what it says is the program's, not the user's choice */
  bool of_job;    /* of a knob: which ranks, sequences and weights that learn a job has, whatever runs it */
  bool root_only; /* required of a file, not of an object within one */
  char **(*items) (
      const char *text); /* of ARRAY of values: a text instead of it, such as "1..8", as the texts
                                         of its values; NULL: it is none, or one value */
};

/* The keys that begin every file of ours; type has the members name and source. An
 * object of such a table within another file may do without. */
#define LS_FIELDS_HEADER(type)                                                                               \
  { "schema",          LS_FIELD_IGNORED,  .required = true,                                                  \
    .file_only = true, .root_only = true, .meaning = "kind and version of the file" },                       \
      { "name",                                                                                              \
        LS_FIELD_STRING,                                                                                     \
        offsetof (type, name),                                                                               \
        .required = true,                                                                                    \
        .file_only = true,                                                                                   \
        .root_only = true,                                                                                   \
        .meaning = "the name of the file without .json" },                                                   \
  {                                                                                                          \
    "source", LS_FIELD_STRING, offsetof (type, source),                                                      \
        .required = true, .file_only = true, .root_only = true, .meaning = "where the figures come from"     \
  }

/* Of ARRAY: a list of texts (char *), none of them empty. */
#define LS_FIELD_TEXTS .fields = ls_text_element, .element_size = sizeof (char *)
extern const LsField ls_text_element[];

/* Reads an object into target, which was initialised with the defaults. Unknown
 * keys are errors, except those that start with "x-". With notes (char *, owned
 * by the array) the file is a foreign one: unknown keys go there and null counts
 * as absent. Returns whether nothing was wrong; target is filled as far as
 * possible either way. */
bool ls_fields_read (const LsField *fields, const LsJsonDoc *doc, const cJSON *object, void *target,
                     GPtrArray *notes, LsDiagList *diags);

/* A whole file of ours: "schema" must be "lockstep.<kind>/1" and "name" the stem
 * of the file; the rest as above. */
bool ls_fields_read_file (const LsField *fields, const char *kind, const LsJsonDoc *doc, void *target,
                          LsDiagList *diags);

/* "ffn 16384, dropout false": what these keys come to in target that an object leaves out, newly allocated;
 * NULL: none, or to nothing. */
char *ls_fields_left_out (const LsField *fields, const char *const *keys, const cJSON *object,
                          const void *target);

/* Frees what reading stored in target: strings, lists, arrays and their elements. */
void ls_fields_clear (const LsField *fields, void *target);

/* Sets one field from a flag: name "micro-batch" (or "micro_batch"), text its
 * value. Diagnostics are LS_ERROR_USAGE and begin with ls_field_flag(). */
bool ls_field_set_text (const LsField *fields, void *target, const char *name, const char *text,
                        LsDiagList *diags);
/* The same; a text that is a repeated knob's is added to what is there, after a blank. */
bool ls_field_add_text (const LsField *fields, void *target, const char *name, const char *text,
                        LsDiagList *diags);

/* The field that a flag sets, in either spelling; NULL if there is none. */
const LsField *ls_field_find (const LsField *fields, const char *name);
/* What a key means, for people, and what happens without it: as its row or data/keys.txt has it. Static;
 * NULL: neither does. f: in its table. */
const char *ls_field_meaning (const LsField *f);
const char *ls_field_default (const LsField *f);

/* Whether a key says what is described, not which file it is: flags, and lists, which have none. */
bool ls_field_is_value (const LsField *f);
/* The field of such a key, as a flag or as a file spells it; NULL if there is none. */
const LsField *ls_field_find_value (const LsField *fields, const char *key);

/* How a knob is typed, newly allocated: "--micro-batch" or "--set tp_async"; with a value, which
 * ls_field_text() gives: "--micro-batch 4", "--sp", "--dp-overlap 0", "--set tp_async=0". */
char *ls_field_flag (const LsField *f);
char *ls_field_option (const LsField *f, const char *value);
/* A value as it is typed: of a boolean "1" or "0" where a file has true or false. Static, or value itself. */
const char *ls_field_typed (const LsField *f, const char *value);
/* Whether its flag may do without a value, which is then 1. */
bool ls_field_is_switch (const LsField *f);
/* What the help shows for its value: "N", "SIZE", "KIND"; NULL of a switch. Static. */
const char *ls_field_argument (const LsField *f);

/* The key that was probably meant, borrowed; NULL if none is near (base/suggest.h). */
const char *ls_field_suggest (const LsField *fields, const char *typed);

/* --- one value of one field: from text to memory ------------------------------------------------- */

/* Used by
 * field.c, csv.c and read_cases.c only. */

/* Stores the value that text stands for; false leaves the field alone. Not for
 * ROW, ARRAY, OBJECT, SETTINGS, SOURCES and IGNORED. */
bool ls_field_value_set (const LsField *f, void *target, const char *text);

/* The value of a name, which may be NULL; -1: there is none. */
int ls_enum_value (const LsEnumName *names, const char *name);
/* Not another spelling of a value that stands before it. */
bool ls_enum_is_first (const LsEnumName *names, const LsEnumName *name);

/* Stores a copy of a list. */
void ls_field_value_set_list (const LsField *f, void *target, const uint32_t *values, uint32_t n);

/* The field's own limit, or that of its type. */
double ls_field_value_max (const LsField *f);

/* Where a value stood: a switch is true or false in JSON, 0 or 1 as a flag or cell. */
typedef enum { LS_FIELD_IN_JSON, LS_FIELD_IN_TEXT } LsFieldOrigin;

/* "expected a whole number from 1 to 8; got ..."; newly allocated. text: NULL if it
 * was no text; got: how to name it. */
char *ls_field_value_complaint (const LsField *f, LsFieldOrigin origin, const char *text, const char *got);

/* How to write what was probably meant; newly allocated or NULL. */
char *ls_field_value_hint (const LsField *f, const char *text);

/* " from 1 to 8", ", at most 1.000 s", "" — newly allocated. */
char *ls_field_value_range (const LsField *f);

/* --- an object written by the field table that reads it ------------------------------------------ */

/* Quantities come out exact, in the smallest unit ("1500000ps", "4096B"), so that
 * reading gives back the same bits. A field is left out if it equals that of
 * `blank`, which is what reading starts from, and if its value is one that no text
 * stands for (0 for "the default" where 0 is out of range, a name that is not in
 * the list, NULL). */

/* The members of an object, whose braces the caller writes; blank may be NULL.
 * Elements of ARRAY and values of ROW are on a line each. IGNORED, SOURCES, RATE and
 * FLOPS are not written: nothing needs it yet. */
void ls_fields_write (const LsField *fields, LsJsonOut *w, const void *target, const void *blank);

/* The object, on one line; newly allocated. */
char *ls_fields_text (const LsField *fields, const void *target, const void *blank);

/* The value of one simple field (no list of objects) as the text of its flag; NULL if
 * ls_fields_write() would leave it out. Newly allocated. */
char *ls_field_text (const LsField *field, const void *target, const void *blank);

/* --- what a field table reads, as JSON Schema (2020-12) ------------------------------------------ */

/* It says what a key is called, its type, range, choices and pattern, and which keys there must be. What two
 * keys mean together is said by no table, and so by no schema: that is left to the reader. */

/* The dialect: the value of "$schema". */
#define LS_JSON_SCHEMA_DIALECT "https://json-schema.org/draft/2020-12/schema"

/* The members of the schema of a file, whose braces the caller writes: an object of `fields` whose "schema"
 * is "lockstep.<kind>/1". extends: a file of the kind may name another under "extends"; then no key but the
 * first three must be there, and null takes one out. */
void ls_fields_schema (const LsField *fields, const char *kind, bool extends, LsJsonOut *w);

#endif
