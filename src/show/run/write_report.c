#include "show/run/write_report.h"

#include <math.h>

#include "job/assumptions.h"
#include "show/run_keys.h"
