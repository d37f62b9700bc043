// A worker behind walls gets its options and variables as a file (server/warden/starter_client.h),
// because who starts it reads neither.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace longwire::worker {

// The options to read in place of `words`, the arguments without the program's name: those of the
// file that --settings names, whose variables are set, or `words` themselves. *pid becomes the
// number by which other processes know this one, if that is another than its own. Before there are
// threads.
std::vector<std::string> TakeSettings(std::span<char* const> words, int* pid);

}  // namespace longwire::worker
