/* lockstep/version.h — which Lockstep this is. The release is that of meson.build,
 * which refuses to build if the two differ; ls_version() says which one a program
 * runs with. */
#ifndef LOCKSTEP_VERSION_H
#define LOCKSTEP_VERSION_H

#include <lockstep/export.h>

/* meson.build holds these lines against its own. */
/* clang-format off */
#define LS_VERSION_MAJOR 0
#define LS_VERSION_MINOR 1
#define LS_VERSION_MICRO 0
#define LS_VERSION "0.1.0"
/* clang-format on */

/* The number after liblockstep.so: one more whenever a program that was linked with an
 * earlier library might no longer run with this one. */
#define LS_SOVERSION 0

#ifdef __cplusplus
extern "C" {
#endif

LS_PUBLIC const char *ls_version (void); /* static: "0.1.0" */

/* The licence of the program or library that this is part of, in SPDX's words. The sources are under
 * Apache-2.0; what is linked with GSL is, as a whole, under GPL-3.0. Static: "Apache-2.0", or "Apache-2.0 AND
 * GPL-3.0-or-later". */
LS_PUBLIC const char *ls_licence (void);

#ifdef __cplusplus
}
#endif

#endif
