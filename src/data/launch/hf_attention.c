#include "data/launch/hf_rules.h"

#include <string.h>

/* Of flash_attention_2, flash_attention_3 and the kernels of the Hub (kernels-community/flash-attn, -attn2,
 * vllm-flash-attn3, and behind an @ their revision), which transformers.modeling_utils loads by their names.
 * NULL: none that is known. */
static const char *
flash_of (const char *how)
{
  static const char package[] = "flash-attn";
  const char *plain = strstr (how, package);
  if (strstr (how, "flash_attention_3") || strstr (how, "flash-attn3"))
    return "fa3";
  bool is_fa2 = strstr (how, "flash_attention_2") || strstr (how, "flash-attn2")
      || (plain && !g_ascii_isdigit (plain[strlen (package)]));
  return is_fa2 ? "fa2" : NULL;
}

void
hf_set_attention (LaunchJob *job)
{
  const char *how = option_text (job, "attn_implementation"), *kernel = how ? flash_of (how) : NULL;
  if (!how)
    return;
  import_set_strategy (job->import, "attention", strcmp (how, "eager") == 0 ? "unfused" : "flash",
                       "attn_implementation");
  if (strstr (how, "flash"))
    import_set_strategy (job->import, "window_mask", "0", "--");
  if (kernel)
    import_set_strategy (job->import, "attention_kernel", kernel, "attn_implementation");
  else if (strcmp (how, "eager") != 0 && strcmp (how, "sdpa") != 0)
    import_unknown (job->import, "attn_implementation %s: attention takes the time of sdpa", how);
}
