/* show/fits/write_kernel.h — times of kernels, for people and for programs (`kernel --json`). */
#ifndef LS_SHOW_FITS_WRITE_KERNEL_H
#define LS_SHOW_FITS_WRITE_KERNEL_H

#include "ask/kernel_times.h"

/* Newly allocated, ending in a newline. */
char *ls_kernel_rows_to_json (const LsKernelRows *rows);
/* All of a single kernel; a line each of up to 40; of more measured ones the errors. */
char *ls_kernel_rows_to_text (const LsKernelRows *rows);

#endif
