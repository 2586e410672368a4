/* data/datadir.h — named models, laws of loss, clusters, accelerators, calibrations, tables of NCCL, rates of
 * failures, jitter, strategies, software, kernels, optimizers, traces, labs.
 *
 * A name is looked up in the folder of its kind under, in this order,
 *
 *   $LS_DATA_DIR
 *   .
 *   user       $XDG_DATA_HOME/lockstep (~/.local/share/lockstep)
 *   program    beside the program, or the library where this is part of one: ../share/lockstep,
 *              ../../share/lockstep, share/lockstep, its build tree
 *   installed  the data of the prefix that it was built for
 *   system     lockstep in each of $XDG_DATA_DIRS (/usr/local/share:/usr/share)
 *
 * Where $LS_DATA_DIR is set, user, program and system are not looked at; but types of models and what
 * else the program reads by itself are found beside it all the same.
 * What contains a '/' or ends in ".json" is a path. What begins with '{' is the JSON itself, in which paths
 * are meant from the current folder; diagnostics name it after its kind (model:3:12).
 * Files go before members of sets. A name that nothing has as it stands may differ in case, blanks and
 * dashes, or be what else a cluster is called ("also" in its file). Any may be followed by changes: see
 * data/text/override.h. */
#ifndef LS_DATA_DATADIR_H
#define LS_DATA_DATADIR_H

#include "data/text/field.h"
#include "data/text/json_doc.h"

typedef enum {
  LS_DATA_MODELS,       /* models/           */
  LS_DATA_MODEL_TYPES,  /* models/types/     */
  LS_DATA_MODEL_NAMES,  /* models/names/     */
  LS_DATA_SCALING,      /* models/scaling/   */
  LS_DATA_CLUSTERS,     /* topologies/       */
  LS_DATA_GPUS,         /* topologies/gpu/   */
  LS_DATA_CALIBRATIONS, /* topologies/calib/ */
  LS_DATA_NCCL_TABLES,  /* topologies/nccl/  */
  LS_DATA_ENVIRONMENTS, /* topologies/environment/ */
  LS_DATA_RELIABILITY,  /* topologies/reliability/ */
  LS_DATA_JITTER,       /* topologies/jitter/ */
  LS_DATA_STRATEGIES,   /* strategies/       */
  LS_DATA_SOFTWARE,     /* strategies/software/ */
  LS_DATA_KERNELS,      /* strategies/kernels/  */
  LS_DATA_PROGRAMS,     /* strategies/programs/ */
  LS_DATA_OPTIMIZERS,   /* strategies/optimizers/ */
  LS_DATA_TRACES,       /* traces/           */
  LS_DATA_LABS,         /* strategies/labs/  */
  LS_N_DATA_KINDS
} LsDataKind;

/* Static: "models"; "topologies/gpu". */
const char *ls_data_folder (LsDataKind kind);

/* Lets what is in these folders be shown (base/near.h). */
void ls_data_are_near (void);

/* The path of a name or path, newly allocated; a path is not checked to exist, and what nothing is named is
 * a file of the working folder, if it has one. NULL if no file has that name, or one has it up to a colon:
 * then *reterr_message, newly allocated, says so and what was probably meant. */
char *ls_data_find (LsDataKind kind, const char *name, char **reterr_message);

/* What contains a '/' or ends in ".json", is a member of a set, or the JSON itself. */
bool ls_data_is_path (const char *name);

/* A set is several data files of one schema in one, "NAME.set.json":
 *
 *     { "schema": "lockstep.set/1", "of": "lockstep.gpu/1", "members": { "l40s": { ... }, ... } }
 *
 * Its members have names as files have; the path of one is "topologies/gpu/workstation.set.json#l40s". */

/* The bytes of a path, whether a file, a member of a set or given; without what it extends. NULL and
 * diagnostics (LS_ERROR_INPUT) on failure. */
LsJsonDoc *ls_data_open (const char *path, LsDiagList *diags);
LsJsonDoc *ls_data_member (const LsJsonDoc *set, const char *member, LsDiagList *diags);

/* A name or path that stands in a file. The path of a file that is there as from its folder is meant so; all
 * else stays. Changes may stand behind it. Newly allocated. */
char *ls_data_beside (const char *file, const char *name);

/* Finds, loads and completes; NULL and diagnostics (LS_ERROR_INPUT) on failure. */
LsJsonDoc *ls_data_load (LsDataKind kind, const char *name, LsDiagList *diags);

/* A kind of files whose contents are a struct. */
typedef struct {
  const char *kind; /* "jitter" of "lockstep.jitter/1" */
  LsDataKind of;    /* where a name is looked up */
  const LsField *fields;
  size_t size;       /* of the struct */
  size_t room;       /* of one that begins with it and holds what only reading needs; 0: as size */
  const void *blank; /* [size] without keys; NULL: zeros */
  /* What no key shows by itself; NULL: nothing. False: diagnostics. */
  bool (*finish) (const LsJsonDoc *doc, const cJSON *root, void *object, LsDiagList *diags);
  void (*clear) (void *object); /* frees what is in it; NULL: what its fields have */
} LsDataFile;

/* A document, or the file of a name or path, as its struct. On success the caller clears what *ret is; on
 * failure that is untouched and diags says why (LS_ERROR_INPUT). */
bool ls_data_file_read (const LsDataFile *file, const LsJsonDoc *doc, void *ret, LsDiagList *diags);
bool ls_data_file_load (const LsDataFile *file, const char *name, void *ret, LsDiagList *diags);
/* The same, newly allocated; NULL: diagnostics. Free with ls_data_file_free(). */
void *ls_data_file_new (const LsDataFile *file, const LsJsonDoc *doc, LsDiagList *diags);
void ls_data_file_free (const LsDataFile *file, void *object);

/* The file, of that kind, that the text "based_on" of doc names, behind n_bases files that led to doc. NULL:
 * there are too many, or it cannot be read. */
LsJsonDoc *ls_data_load_base (LsDataKind kind, const LsJsonDoc *doc, guint n_bases, LsDiagList *diags);

/* A document as it is meant. Paths of other files that stand in it (what it extends, a cluster's GPU, a GPU's
 * calibration, also of a GPU described in the cluster, the generation of an NCCL file) are meant from its own
 * folder, if there is such a file: rewritten so. "extends" in it, or in a GPU described in it, names another
 * file of its kind or is the path of one: what it does not say itself is taken over from there, object by
 * object; a key that is null here is not. What a file says of itself (schema, name, also, source, successors)
 * is never taken over. Takes doc. ls_data_load() does it, before the changes of a name, whose paths are the
 * user's. */
LsJsonDoc *ls_data_complete (LsDataKind kind, LsJsonDoc *doc, LsDiagList *diags);

/* As names are compared: in lower case, each run of blanks, dots, dashes and underscores as one dash.
 * "GB300 NVL72" is "gb300-nvl72". Newly allocated. */
char *ls_data_folded (const char *name);

typedef struct {
  char *name;       /* without ".json"                               */
  char *path;       /* of a file or of a member of a set             */
  const char *from; /* static: of those above                    */
} LsDataEntry;

/* What ls_data_find() would find, by name; each name once. GPtrArray of
 * LsDataEntry that frees them. */
GPtrArray *ls_data_list (LsDataKind kind);

#endif
