/* data/launch/hf_options.h — options of Hugging Face's Trainer and of accelerate, and what they are in our
 * files (private to launch/): TrainingArguments (transformers 4.57, training_args.py), keys of accelerate's
 * configuration (1.10, commands/config/config_args.py) since 0.11, and flags of accelerate launch. */
#ifndef LS_DATA_LAUNCH_HF_OPTIONS_H
#define LS_DATA_LAUNCH_HF_OPTIONS_H

#include "data/launch/option_table.h"

extern const OptionTable hf_options;

#endif
