// Whether this host has cores to spare for threads that only stay awake: at least half of the cores
// that this process may use must do without them.
#pragma once

#include <optional>
#include <string>

namespace longwire::link {

// The threads that want a core now, of the whole host, from the text of /proc/loadavg.
std::optional<int> RunningThreads(const std::string& loadavg);

// The caller is one of the threads that run.
bool HasSpareCores();

}  // namespace longwire::link
