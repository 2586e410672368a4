/* data/launch/xtuner/xtuner_1_tree.h — the trainer of a configuration of XTuner v1 (private to launch/). */
#ifndef LS_DATA_LAUNCH_XTUNER_1_TREE_H
#define LS_DATA_LAUNCH_XTUNER_1_TREE_H

#include <cjson/cJSON.h>

/* As data/python/python.h has it, by the names of xtuner_1_options, in place. */
void xtuner_1_settle (cJSON *trainer);

#endif
