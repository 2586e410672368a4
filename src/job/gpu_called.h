/* job/gpu_called.h — GPUs by what their driver calls them: "NVIDIA A100-SXM4-80GB" is a100-80g. */
#ifndef LS_JOB_GPU_CALLED_H
#define LS_JOB_GPU_CALLED_H

#include <stdbool.h>

/* The GPU file all of whose words the driver's begin with, that with most of them; NULL: none or
 * several. Newly allocated. */
char *ls_gpu_called (const char *driver_name);

/* Whether the driver's name contradicts that of our GPU: it is that of a file some of whose words ours
 * lacks. Not so "NVIDIA H100" and "my-h100". */
bool ls_gpu_is_other (const char *driver_name, const char *name);

#endif
