/* data/launch/deepspeed_rules.h — what keys of DeepSpeed's configuration mean together (private to
 * launch/). */
#ifndef LS_DATA_LAUNCH_DEEPSPEED_RULES_H
#define LS_DATA_LAUNCH_DEEPSPEED_RULES_H

#include "data/launch/option_table.h"

/* A configuration as options: values that a script or the Trainer of Hugging Face fills in ("auto", "${X}")
 * are holes. False: with a diagnostic. */
bool deepspeed_add_json (LaunchWords *words, const char *text, gsize n, const char *path, LsDiagList *diags);

/* Reads all options: job->table is set by it. What belongs to the model and to degrees that the model's code
 * sets is read before. */
void deepspeed_read (LaunchJob *job);

/* Of a program that has the batch, number formats, recomputation and the optimizer itself, and a table of its
 * own, the rest: stages, buckets, offloading, gradients, clipping. job->table is that of DeepSpeed then. */
void deepspeed_read_engine (LaunchJob *job);

/* With bf16 and no stage, the engine of pipelines has the optimizer of runtime/bf16_optimizer.py, which
 * shards its state and sums gradients in fp32 (runtime/engine.py, _do_optimizer_sanity_check): stage 1 as
 * that is simulated. The number format is set before. */
void deepspeed_pipeline_shards (LaunchJob *job);

#endif
