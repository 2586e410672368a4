/* data/launch/tpu_slices.h — slices of TPUs, as tools that start jobs on them name them (private to launch/).
 * An accelerator of ours is a chip. */
#ifndef LS_DATA_LAUNCH_TPU_SLICES_H
#define LS_DATA_LAUNCH_TPU_SLICES_H

#include <glib.h>

/* Chips of a slice: "v6e-256", "v5p-512" (TensorCores, two of a chip), "tpu7x-4x4x8"; 0: it is none. */
guint64 tpu_slice_chips (const char *type);
guint64 tpu_topology_chips (const char *topology); /* "4x4x8"; 0: it is none */

/* Devices that JAX has of each chip: one where the cores of a chip are one, or where it has one; 0: the name
 * is of no TPU. name: of a slice, or of GKE's node selector, "tpu-v5p-slice". */
guint tpu_devices_of_chip (const char *name);

#endif
