/* data/launch/deepspeed_options.h — keys of DeepSpeed's configuration and what they are in our files (private
 * to launch/). Names and rules as in docs/_pages/config-json.md of DeepSpeed 0.17, of ZeRO as in
 * deepspeed/runtime/zero/config.py, which takes keys with and without "stage3_". */
#ifndef LS_DATA_LAUNCH_DEEPSPEED_OPTIONS_H
#define LS_DATA_LAUNCH_DEEPSPEED_OPTIONS_H

#include "data/launch/option_table.h"

extern const OptionTable deepspeed_options;

#endif
