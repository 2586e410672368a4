#include "data/launch/hf_rules.h"

#include <string.h>

/* Of flash_attention_2, flash_attention_3 and the kernels of the Hub (kernels-community/flash-attn, -attn2,
 * vllm-flash-attn3), which transformers.modeling_utils loads by their names. */
static const char *
flash_of (const char *how)
{
  if (!strstr (how, "flash"))
    return NULL;
  return g_str_has_suffix (how, "3") ? "fa3" : "fa2";
}

void
hf_set_attention (LaunchJob *job)
{
  const char *how = option_text (job, "attn_implementation"), *kernel = how ? flash_of (how) : NULL;
  if (!how)
    return;
  import_set_strategy (job->import, "attention", strcmp (how, "eager") == 0 ? "unfused" : "flash",
                       "attn_implementation");
  if (kernel) {
    import_set_strategy (job->import, "attention_kernel", kernel, "attn_implementation");
    import_set_strategy (job->import, "window_mask", "0", "--");
  } else if (strcmp (how, "eager") != 0 && strcmp (how, "sdpa") != 0)
    import_unknown (job->import, "attn_implementation %s: attention takes the time of sdpa", how);
}
