/* Pins what models of MaxText's benchmark_runner mean; tests/golden/import.txt asks for one of several. */
#include "ls_test.h"

#include "import_check.h"

#define ONE                                                                                                  \
  "FLAGS = {\"enable_checkpointing\": True}\nall_models = {}\n\n"                                            \
  "llama_70b = _add_to_model_dictionary(\n    all_models,\n    MaxTextModel(\n"                              \
  "        model_name=\"llama-70b\",\n        model_type=\"llama2-70b\",\n        tuning_params={\n"         \
  "            \"per_device_batch_size\": 4,\n            \"remat_policy\": \"full\",\n"                     \
  "            \"max_target_length\": 4096,\n            \"attention\": \"flash\",\n"
#define END "        },\n        xla_flags=(library.SOME_FLAG + library.OTHER),\n    ),\n)\n"

/* Options on top of base.yml; degrees of -1 are what is left of the devices, shards by another name too. */
static void
models_are_read (void)
{
  check_read ("MaxText", ONE "\"ici_fsdp_parallelism\": 1, \"ici_fsdp_transpose_parallelism\": -1,\n" END,
              "layers=80; seq=4096; gpus; zero=3; dp_kind=xla-fsdp; micro_batch=4; recompute=full; "
              "~xla_flags; ?how many devices");
  check_read ("MaxText", ONE "\"ici_fsdp_parallelism\": 1, \"ici_expert_parallelism\": -1,\n" END,
              "zero=3; ep; ?ep: what the other degrees leave");
  check_read ("MaxText",
              ONE "\"ici_fsdp_parallelism\": 8, \"ici_tensor_parallelism\": 2, \"a_new_one\": 3,\n" END,
              "gpus=16; tp=2; global_batch=64; ?a_new_one");
}

static void
several_are_told_apart (void)
{
  check_read (NULL, ONE END "other = _add_to_model_dictionary(all_models, MaxTextModel(model_name=\"b\"))\n",
              "it has several models: llama_70b, other");
}

LS_TEST_SUITE (LS_TEST (models_are_read), LS_TEST (several_are_told_apart))
