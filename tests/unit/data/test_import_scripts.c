/* Pins what files of others are that say less than they seem to: scripts that start a command through another
 * one, jobs that train no decoder on the next token, a tokenizer that is not what its class is called. */
#include "ls_test.h"

#include "import_check.h"

#define MAXTEXT "base_config: base.yml\nmodel_name: mixtral-8x7b\nhardware: gpu\nper_device_batch_size: 1\n"

/* Of a model that is known by its name too; sorted tokens, the default, have none. */
static void
a_capacity_of_experts_is_heeded (void)
{
  check_read ("MaxText", MAXTEXT "sparse_matmul: false\ncapacity_factor: 1.25\n",
              "experts=8; expert_capacity=1.25");
  check_read ("MaxText", MAXTEXT "megablox: false\ncapacity_factor: 2\n", "expert_capacity=2");
  check_read ("MaxText", MAXTEXT "megablox: false\nsparse_matmul: true\ncapacity_factor: 2\n",
              "expert_capacity; ~capacity_factor: it has no effect with sparse_matmul");
  check_read ("MaxText", MAXTEXT "capacity_factor: 2\n",
              "expert_capacity; ~capacity_factor: it has no effect");
  check_read ("MaxText", MAXTEXT "sparse_matmul: false\n",
              "expert_capacity; ?sparse_matmul is off, and capacity_factor not given");
  check_read ("MaxText", MAXTEXT, "expert_capacity; experts=8");
}

LS_TEST_SUITE (LS_TEST (a_capacity_of_experts_is_heeded))
