/* data/shell/shell_count.c — what a $(command) counts of a job's nodes and GPUs. */
#include "data/shell/shell_parts.h"

#include <string.h>

/* "nvidia-smi -L | wc -l", "scontrol show hostnames $X | wc -l", "sort -u $PBS_NODEFILE | wc -l":
 * variables of the batch system say the same. */
static const struct {
  const char *command, *with, *or_with, *variable;
} counts[] = {
  { "nvidia-smi", " -L", "--list-gpus", "SLURM_GPUS_ON_NODE" },
  { "scontrol", "hostname", "hostname", "SLURM_NNODES" },
  { "PBS_NODEFILE", "sort -u", "uniq", "PBS_NUM_NODES" },
  { "SKYPILOT_NODE_IPS", "echo", "cat", "SKYPILOT_NUM_NODES" },
};

const char *
shell_counted (const char *text, gsize n)
{
  static const char *const others[] = { "grep", "awk", "head", "tail", ";", "&&", "||", "<<" };
  g_autofree char *command = g_strndup (text, n);
  g_strchomp (command);
  const char *behind = strrchr (command, '|');
  g_autofree char *last = g_strstrip (g_strdup (behind ? behind + 1 : ""));
  if (strcmp (last, "wc -l") != 0)
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (strstr (command, others[i]))
      return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    if (strstr (command, counts[i].command)
        && (strstr (command, counts[i].with) || strstr (command, counts[i].or_with)))
      return counts[i].variable;
  return NULL;
}
