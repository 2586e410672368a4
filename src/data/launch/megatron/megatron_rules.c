#include "data/launch/megatron/megatron_rules.h"

void
megatron_read (LaunchJob *job)
{
  job->table = &megatron_options;
  option_release (job, "megatron");
  option_read_all (job);
  megatron_model (job);
  megatron_strategy (job);
  megatron_kernels (job);
  g_hash_table_unref (job->open);
}
