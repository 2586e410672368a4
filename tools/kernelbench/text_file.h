/* tools/kernelbench/text_file.h — files as a whole. Host code. */
#ifndef LS_KERNELBENCH_TEXT_FILE_H
#define LS_KERNELBENCH_TEXT_FILE_H

#include <string>

namespace kb {

/* Both throw PlanError, "PATH: error: ...". */
std::string read_text_file (const std::string &path);
/* Beside, then renamed: the file is there as a whole or not at all. */
void write_text_file (const std::string &path, const std::string &text);

}

#endif
