// Where the daemon's sockets lie by default.
#pragma once

#include <string>

namespace longwire::daemon {

// $LONGWIRE_RUNTIME_DIR, /run/longwire for root, $XDG_RUNTIME_DIR/longwire, /tmp/longwire-<uid>.
std::string RuntimeDirectory();

// Makes the folder of `socket` (0700) if it is not there. False with a sentence if that fails or if
// somebody else could replace what lies in it.
bool PrepareFolderOf(const std::string& socket, std::string* sentence);

// The folder of this program, for those that lie beside it.
std::string ProgramFolder();

}  // namespace longwire::daemon
