/* data/launch/modules.h — modules of a model as programs name them: which have adapters (model/lora.h;
 * private to launch/). */
#ifndef LS_DATA_LAUNCH_MODULES_H
#define LS_DATA_LAUNCH_MODULES_H

#include "data/launch/option_table.h"

typedef struct {
  const char *option;  /* that says there are adapters */
  guint64 rank;        /* 0: not said                  */
  guint64 usual_rank;  /* the program's default        */
  const GPtrArray *on; /* char *: modules by names of PEFT, NeMo or Megatron-LM; NULL or empty: all-linear */
  const char *dropout; /* before them; NULL: none */
  bool is_nf4;
} LaunchAdapters;

/* Sets the keys of the strategy, once its model and number format are known. Where such a job cannot be
 * simulated all weights are taken to be trained, which is told, as is each name that is none of a module. */
void launch_set_adapters (LsImport *import, const LaunchAdapters *a);

/* A table of the map "peft": "usual", a text, those where a file names none. NULL: there is none. */
const cJSON *launch_modules (const char *table);

/* A file of YAML as JSON, newly allocated; NULL: it is no mapping. name: for its path. */
char *megatron_formats_text (const char *text, gsize n, const char *name);

#endif
