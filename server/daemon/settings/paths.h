// Where the daemon's files lie by default.
#pragma once

#include <string>

namespace longwire::daemon {

// $LONGWIRE_RUNTIME_DIR, /run/longwire for root, $XDG_RUNTIME_DIR/longwire, /tmp/longwire-<uid>.
std::string RuntimeDirectory();

// $CACHE_DIRECTORY (systemd's), cache in $LONGWIRE_RUNTIME_DIR, /var/cache/longwire for root,
// longwire-server in $XDG_CACHE_HOME or ~/.cache; empty when there is none of these.
std::string CacheDirectory();

// $STATE_DIRECTORY (systemd's); empty when there is none.
std::string StateDirectory();

// Makes the folder of `socket` (0700) if it is missing. False with a sentence if that fails or if
// another user could replace files in it.
bool PrepareFolderOf(const std::string& socket, std::string* sentence);

// The folder of this program's file, where our other programs are, too.
std::string ProgramFolder();

}  // namespace longwire::daemon
