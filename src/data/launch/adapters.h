/* data/launch/adapters.h — adapters on frozen weights (model/lora.h) as programs name them (private to
 * launch/). */
#ifndef LS_DATA_LAUNCH_ADAPTERS_H
#define LS_DATA_LAUNCH_ADAPTERS_H

#include "data/launch/import_reader.h"

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

/* Where a file names none: those of PEFT for Llama and its kin. char *, static. */
GPtrArray *launch_usual_modules (void);

#endif
