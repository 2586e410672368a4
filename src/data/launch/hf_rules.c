#include "data/launch/hf_rules.h"

/* --- names ----------------------------------------------------------------------------------------- */

/* What stands in front of a name: a section of a configuration, or nothing on a command line. */
static const char *const sections[] = { "",
                                        "fsdp_config.",
                                        "fsdp_config.fsdp_",
                                        "fsdp_",
                                        "deepspeed_config.",
                                        "parallelism_config.",
                                        "dynamo_config." };

const LaunchOption *
hf_find (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (sections) && !o; i++) {
    g_autofree char *option = g_strconcat (sections[i], name, NULL);
    o = launch_words_find (job->words, option);
  }
  return o;
}

static bool
hf_is_on (const LaunchJob *job, const char *name)
{
  const LaunchOption *o = hf_find (job, name);
  return o && option_is_on (job, o->name);
}

static bool
has_type (const LaunchJob *job, const char *type)
{
  const char *text = option_text (job, "distributed_type");
  return text && g_ascii_strcasecmp (text, type) == 0;
}

bool
hf_uses_deepspeed (const LaunchJob *job)
{
  return hf_find (job, "deepspeed") || option_text (job, "deepspeed_config")
      || hf_is_on (job, "use_deepspeed") || has_type (job, "DEEPSPEED");
}
