/* Functions of higher files, called by lower ones (program_map.h). */
#include "data/launch/program/program_map.h"

const ProgramDoors *program_doors;
