/* io/write_sensitivity.h — how a step follows the hardware, for people and for programs. */
#ifndef LS_IO_WRITE_SENSITIVITY_H
#define LS_IO_WRITE_SENSITIVITY_H

#include <glib.h>
#include <stdbool.h>

#include "io/json_out.h"

/* One parameter of the hardware, a percent up and down. */
typedef struct {
  const char *parameter; /* static: "gpu_flops"                                              */
  const char *label;     /* static: for people                                               */
  double elasticity;     /* percent of the step's time per percent of the parameter         */
  double seconds_per_percent;
  double up_s, down_s;   /* the step with the parameter a percent higher, and lower         */
} LsSensitivity;

typedef struct {
  double step_s;
  guint n;
  LsSensitivity *rows; /* [n], in the order of the parameters */
} LsSensitivityTable;

/* Appends a section of a summary (io/write_summary.h), longest bar first. is_ascii: no block
 * characters. */
void ls_sensitivity_to_text (const LsSensitivityTable *t, bool is_color, bool is_ascii, GString *out);

/* The member "sensitivity" of an object. */
void ls_sensitivity_to_json (const LsSensitivityTable *t, LsJsonOut *w);

#endif
