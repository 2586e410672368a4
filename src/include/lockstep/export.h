/* lockstep/export.h — marks what the shared library offers: everything else in it is
 * hidden, so a program cannot come to depend on the inside of a room. */
#ifndef LOCKSTEP_EXPORT_H
#define LOCKSTEP_EXPORT_H

#define LS_PUBLIC __attribute__ ((visibility ("default")))

#endif
