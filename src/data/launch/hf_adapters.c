/* Adapters on frozen weights, by options of a Trainer and of programs of one's own. */
#include "data/launch/hf_rules.h"

/* Of programs that are none of those that are known: a switch, or a rank without a switch that is off. NULL:
 * no adapters. */
static const char *
find_adapters (LaunchJob *job)
{
  static const char *const switches[] = { "use_lora", "lora_enable", "peft_enable", "lora" },
                           *const ranks[] = { "lora_r", "lora_rank" };
  bool is_refused = false;
  for (guint i = 0; i < G_N_ELEMENTS (switches); i++) {
    if (hf_is_on (job, switches[i]))
      return switches[i];
    is_refused = is_refused || hf_is_refused (job, switches[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (ranks) && !is_refused; i++)
    if (hf_number (job, ranks[i]) > 0)
      return ranks[i];
  return NULL;
}

/* Where nothing says which modules have them, all linear ones do, which is told; the rank of PEFT is 8. */
static void
set_own_adapters (LaunchJob *job)
{
  const char *option = find_adapters (job);
  const LaunchOption *modules = hf_find (job, "lora_target_modules");
  guint64 rank = hf_number (job, "lora_r");
  if (!option)
    return;
  if (!modules || modules->values->len == 0)
    import_unknown (job->import, "%s: which modules have adapters is not said: all linear ones are taken to",
                    option);
  launch_set_adapters (job->import,
                       &(LaunchAdapters) { .option = option,
                                           .rank = rank > 0 ? rank : hf_number (job, "lora_rank"),
                                           .usual_rank = 8,
                                           .on = modules ? modules->values : NULL,
                                           .dropout = hf_text (job, "lora_dropout"),
                                           .is_nf4 = hf_is_on (job, "load_in_4bit")
                                               || hf_is_on (job, "use_4bit_quantization")
                                               || hf_is_on (job, "q_lora") });
}

/* ModelConfig of TRL (trl/trainer/model_config.py): r 16; modules as PEFT has them for Llama and its kin. The
 * examples of PEFT (examples/sft/train.py) name the same otherwise, with r 64 on all linear layers. */
void
hf_set_adapters (HfJob *hf)
{
  LaunchJob *job = &hf->job;
  const LaunchOption *modules = hf_find (job, "lora_target_modules");
  g_autoptr (GPtrArray) usual = launch_usual_modules ();
  bool is_example = hf_is_on (job, "use_peft_lora");
  if (hf->adapters)
    launch_set_adapters (job->import, hf->adapters);
  else if (hf_is_on (job, "use_peft") || is_example)
    launch_set_adapters (job->import,
                         &(LaunchAdapters) { .option = is_example ? "use_peft_lora" : "use_peft",
                                             .rank = hf_number (job, "lora_r"),
                                             .usual_rank = is_example ? 64 : 16,
                                             .on = modules    ? modules->values
                                                 : is_example ? NULL
                                                              : usual,
                                             .dropout = hf_text (job, "lora_dropout"),
                                             .is_nf4 = hf_is_on (job, "load_in_4bit")
                                                 || hf_is_on (job, "use_4bit_quantization") });
  else if (!hf_is_refused (job, "use_peft"))
    set_own_adapters (job);
  if (hf_find (job, "lora_target_parameters"))
    import_unknown (job->import, "lora_target_parameters: adapters of experts are left out");
}
