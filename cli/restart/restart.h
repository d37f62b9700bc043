// longwire run --restart N: a program that ended by a fault of its device is started again.
#pragma once

#include <functional>
#include <string>

namespace longwire::cli {

inline constexpr unsigned kRestartLimit = 1000;

// Runs the program in a process of its own, by `become`, which does not return unless it cannot be
// executed (then with the exit status). Again, up to `restarts` times, as long as it ends with
// another status than 0 after a fault of the device or the end of its session by the server.
// Returns the last one's exit status; 128 and the signal's number if a signal ended it.
int RunWithRestarts(const std::string& command, const std::string& program, unsigned restarts,
                    const std::function<int()>& become);

}  // namespace longwire::cli
